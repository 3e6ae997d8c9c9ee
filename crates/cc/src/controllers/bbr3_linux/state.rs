//! Every field of the kernel's `struct bbr`, and the fields of its socket that BBR writes, with the kernel's names and units.

use super::{AckPhase, Bbr3Linux, Mode, Phase};
use crate::controller::CaState;
use crate::controllers::recovery::PriorThreshold;
use crate::gain::Gain;

/// A view of a [`Bbr3Linux`]. Bandwidths are in segments a microsecond times 2^24. Fields that only protective load balancing and the
/// receiving half use (`plb`, `ce_state`, `prior_rcv_nxt`) are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(
    missing_docs,
    reason = "the names and meanings are those of struct bbr in Google's net/ipv4/tcp_bbr.c"
)]
pub struct State {
    pub min_rtt_us: u32,
    pub min_rtt_stamp: u32,
    pub probe_rtt_done_stamp: u32,
    pub probe_rtt_min_us: u32,
    pub probe_rtt_min_stamp: u32,
    pub next_rtt_delivered: u32,
    pub cycle_mstamp: u64,
    pub mode: Mode,
    pub prev_ca_state: CaState,
    pub round_start: bool,
    pub bw_probe_up_rounds: u32,
    pub try_fast_path: bool,
    pub idle_restart: bool,
    pub probe_rtt_round_done: bool,
    pub init_cwnd: u32,
    pub pacing_gain: u32,
    pub cwnd_gain: u32,
    pub full_bw_reached: bool,
    pub full_bw_cnt: u32,
    pub cycle_idx: Phase,
    pub has_seen_rtt: bool,
    pub prior_cwnd: u32,
    pub full_bw: u32,
    pub ack_epoch_mstamp: u64,
    pub extra_acked: [u16; 2],
    pub ack_epoch_acked: u32,
    pub extra_acked_win_rtts: u32,
    pub extra_acked_win_idx: u32,
    pub full_bw_now: bool,
    pub startup_ecn_rounds: u32,
    pub loss_in_cycle: bool,
    pub ecn_in_cycle: bool,
    pub loss_round_delivered: u32,
    pub undo_bw_lo: u32,
    pub undo_inflight_lo: u32,
    pub undo_inflight_hi: u32,
    pub bw_latest: u32,
    pub bw_lo: u32,
    pub bw_hi: [u32; 2],
    pub inflight_latest: u32,
    pub inflight_lo: u32,
    pub inflight_hi: u32,
    pub bw_probe_up_cnt: u32,
    pub bw_probe_up_acks: u32,
    pub probe_wait_us: u32,
    pub ecn_eligible: bool,
    pub ecn_alpha: u32,
    pub bw_probe_samples: bool,
    pub prev_probe_too_high: bool,
    pub stopped_risky_probe: bool,
    pub rounds_since_probe: u32,
    pub loss_round_start: bool,
    pub loss_in_round: bool,
    pub ecn_in_round: bool,
    pub ack_phase: AckPhase,
    pub loss_events_in_round: u32,
    pub alpha_last_delivered: u32,
    pub alpha_last_delivered_ce: u32,
    /// `tp->snd_cwnd`.
    pub snd_cwnd: u32,
    /// `tp->snd_ssthresh`.
    pub snd_ssthresh: u32,
    /// `sk->sk_pacing_rate`, bytes a second.
    pub pacing_rate: u64,
    /// `tp->prior_ssthresh`, which the core keeps: the threshold to return to, zero if nothing can be undone.
    pub prior_ssthresh: u32,
}

/// Each field of the view and where the controller has it.
macro_rules! fields {
    ($use:ident) => {
        $use! {
            min_rtt_us: min_rtt.min_rtt_us,
            min_rtt_stamp: min_rtt.min_rtt_stamp,
            probe_rtt_done_stamp: min_rtt.probe_rtt_done_stamp,
            probe_rtt_min_us: min_rtt.probe_rtt_min_us,
            probe_rtt_min_stamp: min_rtt.probe_rtt_min_stamp,
            next_rtt_delivered: rounds.next_rtt_delivered,
            cycle_mstamp: probe.cycle_mstamp,
            mode: mode,
            prev_ca_state: prev_ca_state,
            round_start: rounds.round_start,
            bw_probe_up_rounds: probe.bw_probe_up_rounds,
            try_fast_path: try_fast_path,
            idle_restart: idle_restart,
            probe_rtt_round_done: min_rtt.probe_rtt_round_done,
            init_cwnd: init_cwnd,
            full_bw_reached: full_pipe.full_bw_reached,
            full_bw_cnt: full_pipe.full_bw_cnt,
            cycle_idx: probe.phase,
            has_seen_rtt: has_seen_rtt,
            prior_cwnd: prior_cwnd,
            full_bw: full_pipe.full_bw,
            ack_epoch_mstamp: aggregation.ack_epoch_mstamp,
            extra_acked: aggregation.extra_acked,
            ack_epoch_acked: aggregation.ack_epoch_acked,
            extra_acked_win_rtts: aggregation.extra_acked_win_rtts,
            extra_acked_win_idx: aggregation.extra_acked_win_idx,
            full_bw_now: full_pipe.full_bw_now,
            startup_ecn_rounds: ecn.startup_ecn_rounds,
            loss_in_cycle: signals.loss_in_cycle,
            ecn_in_cycle: signals.ecn_in_cycle,
            loss_round_delivered: signals.loss_round_delivered,
            undo_bw_lo: undoable.bw_lo,
            undo_inflight_lo: undoable.inflight_lo,
            undo_inflight_hi: undoable.inflight_hi,
            bw_latest: signals.bw_latest,
            bw_lo: signals.bw_lo,
            bw_hi: max_bw.hi,
            inflight_latest: signals.inflight_latest,
            inflight_lo: signals.inflight_lo,
            inflight_hi: probe.inflight_hi,
            bw_probe_up_cnt: probe.bw_probe_up_cnt,
            bw_probe_up_acks: probe.bw_probe_up_acks,
            probe_wait_us: probe.probe_wait_us,
            ecn_eligible: ecn.ecn_eligible,
            bw_probe_samples: probe.bw_probe_samples,
            prev_probe_too_high: probe.prev_probe_too_high,
            stopped_risky_probe: probe.stopped_risky_probe,
            rounds_since_probe: probe.rounds_since_probe,
            loss_round_start: signals.loss_round_start,
            loss_in_round: signals.loss_in_round,
            ecn_in_round: signals.ecn_in_round,
            ack_phase: probe.ack_phase,
            loss_events_in_round: loss_events_in_round,
            alpha_last_delivered: ecn.alpha_last_delivered,
            alpha_last_delivered_ce: ecn.alpha_last_delivered_ce,
            snd_cwnd: cwnd,
            snd_ssthresh: ssthresh,
            pacing_rate: pacing_rate,
        }
    };
}

impl Bbr3Linux {
    /// The whole state.
    pub fn state(&self) -> State {
        macro_rules! view {
            ($($field:ident: $first:ident $(.$rest:ident)?,)+) => {
                State {
                    $($field: self.$first$(.$rest)?,)+
                    pacing_gain: self.pacing_gain.q8(),
                    cwnd_gain: self.cwnd_gain.q8(),
                    ecn_alpha: self.ecn.ecn_alpha.q8(),
                    prior_ssthresh: self.prior_ssthresh.get().unwrap_or(0),
                }
            };
        }
        fields!(view)
    }

    /// Takes over such a state; parameters and configuration stay.
    pub fn restore(&mut self, state: &State) {
        macro_rules! take {
            ($($field:ident: $first:ident $(.$rest:ident)?,)+) => {
                $(self.$first$(.$rest)? = state.$field;)+
            };
        }
        fields!(take);
        self.pacing_gain = Gain::from_q8(state.pacing_gain);
        self.cwnd_gain = Gain::from_q8(state.cwnd_gain);
        self.ecn.ecn_alpha = Gain::from_q8(state.ecn_alpha);
        self.prior_ssthresh = PriorThreshold::restored(state.prior_ssthresh);
        self.plan_bursts();
    }
}
