//! Every field of the kernel's `struct bbr`, and the fields of its socket that BBR writes, with the kernel's names and units.

use super::{AckAggregation, Bbr1, Cycle, FullPipe, Mode, Policer, ProbeRtt, Rounds, cwnd, pacing};
use crate::controller::CaState;
use crate::controllers::recovery::PriorThreshold;
use crate::gain::Gain;
use crate::windowed::WindowedMax;

/// A view of a [`Bbr1`] for replaying recorded kernel state. Bandwidths are in segments a microsecond times 2^24.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names and meanings are those of struct bbr in Linux net/ipv4/tcp_bbr.c")]
pub struct State {
    pub min_rtt_us: u32,
    pub min_rtt_stamp: u32,
    pub probe_rtt_done_stamp: u32,
    pub bw: WindowedMax,
    pub rtt_cnt: u32,
    pub next_rtt_delivered: u32,
    pub cycle_mstamp: u64,
    pub mode: Mode,
    pub prev_ca_state: CaState,
    pub packet_conservation: bool,
    pub round_start: bool,
    pub idle_restart: bool,
    pub probe_rtt_round_done: bool,
    pub lt_is_sampling: bool,
    pub lt_rtt_cnt: u32,
    pub lt_use_bw: bool,
    pub lt_bw: u32,
    pub lt_last_delivered: u32,
    pub lt_last_stamp: u32,
    pub lt_last_lost: u32,
    pub pacing_gain: u32,
    pub cwnd_gain: u32,
    pub full_bw_reached: bool,
    pub full_bw_cnt: u32,
    pub cycle_idx: u32,
    pub has_seen_rtt: bool,
    pub prior_cwnd: u32,
    pub full_bw: u32,
    pub ack_epoch_mstamp: u64,
    pub extra_acked: [u16; 2],
    pub ack_epoch_acked: u32,
    pub extra_acked_win_rtts: u32,
    pub extra_acked_win_idx: u32,
    /// `tp->snd_cwnd`.
    pub snd_cwnd: u32,
    /// `tp->snd_ssthresh`.
    pub snd_ssthresh: u32,
    /// `sk->sk_pacing_rate`, bytes a second.
    pub pacing_rate: u64,
    /// `tp->prior_ssthresh`, which the core keeps: the threshold to return to, zero if nothing can be undone.
    pub prior_ssthresh: u32,
}

impl Bbr1 {
    /// The whole state.
    pub fn state(&self) -> State {
        State {
            min_rtt_us: self.probe_rtt.min_rtt_us,
            min_rtt_stamp: self.probe_rtt.min_rtt_stamp,
            probe_rtt_done_stamp: self.probe_rtt.probe_rtt_done_stamp,
            bw: self.max_bw,
            rtt_cnt: self.rounds.rtt_cnt,
            next_rtt_delivered: self.rounds.next_rtt_delivered,
            cycle_mstamp: self.cycle.cycle_mstamp,
            mode: self.mode,
            prev_ca_state: self.recovery.prev_ca_state,
            packet_conservation: self.recovery.packet_conservation,
            round_start: self.rounds.round_start,
            idle_restart: self.idle_restart,
            probe_rtt_round_done: self.probe_rtt.probe_rtt_round_done,
            lt_is_sampling: self.policer.lt_is_sampling,
            lt_rtt_cnt: self.policer.lt_rtt_cnt,
            lt_use_bw: self.policer.lt_use_bw,
            lt_bw: self.policer.lt_bw,
            lt_last_delivered: self.policer.lt_last_delivered,
            lt_last_stamp: self.policer.lt_last_stamp,
            lt_last_lost: self.policer.lt_last_lost,
            pacing_gain: self.pacing_gain.q8(),
            cwnd_gain: self.cwnd_gain.q8(),
            full_bw_reached: self.full_pipe.full_bw_reached,
            full_bw_cnt: self.full_pipe.full_bw_cnt,
            cycle_idx: self.cycle.cycle_idx,
            has_seen_rtt: self.has_seen_rtt,
            prior_cwnd: self.recovery.prior_cwnd,
            full_bw: self.full_pipe.full_bw,
            ack_epoch_mstamp: self.aggregation.ack_epoch_mstamp,
            extra_acked: self.aggregation.extra_acked,
            ack_epoch_acked: self.aggregation.ack_epoch_acked,
            extra_acked_win_rtts: self.aggregation.extra_acked_win_rtts,
            extra_acked_win_idx: self.aggregation.extra_acked_win_idx,
            snd_cwnd: self.cwnd,
            snd_ssthresh: self.ssthresh,
            pacing_rate: self.pacing_rate,
            prior_ssthresh: self.prior_ssthresh.get().unwrap_or(0),
        }
    }

    /// Takes over recorded state; parameters and configuration stay.
    pub fn restore(&mut self, state: &State) {
        self.probe_rtt = ProbeRtt {
            min_rtt_us: state.min_rtt_us,
            min_rtt_stamp: state.min_rtt_stamp,
            probe_rtt_done_stamp: state.probe_rtt_done_stamp,
            probe_rtt_round_done: state.probe_rtt_round_done,
            ..self.probe_rtt
        };
        self.policer = Policer {
            lt_is_sampling: state.lt_is_sampling,
            lt_use_bw: state.lt_use_bw,
            lt_rtt_cnt: state.lt_rtt_cnt,
            lt_bw: state.lt_bw,
            lt_last_delivered: state.lt_last_delivered,
            lt_last_stamp: state.lt_last_stamp,
            lt_last_lost: state.lt_last_lost,
        };
        self.aggregation = AckAggregation {
            ack_epoch_mstamp: state.ack_epoch_mstamp,
            extra_acked: state.extra_acked,
            ack_epoch_acked: state.ack_epoch_acked,
            extra_acked_win_rtts: state.extra_acked_win_rtts,
            extra_acked_win_idx: state.extra_acked_win_idx,
        };
        self.full_pipe = FullPipe {
            full_bw: state.full_bw,
            full_bw_cnt: state.full_bw_cnt,
            full_bw_reached: state.full_bw_reached,
        };
        self.recovery = cwnd::Recovery {
            prior_cwnd: state.prior_cwnd,
            prev_ca_state: state.prev_ca_state,
            packet_conservation: state.packet_conservation,
        };
        self.cycle = Cycle { cycle_idx: state.cycle_idx, cycle_mstamp: state.cycle_mstamp };
        self.max_bw = state.bw;
        self.rounds = Rounds {
            next_rtt_delivered: state.next_rtt_delivered,
            rtt_cnt: state.rtt_cnt,
            round_start: state.round_start,
        };
        self.mode = state.mode;
        self.idle_restart = state.idle_restart;
        self.has_seen_rtt = state.has_seen_rtt;
        self.pacing_gain = Gain::from_q8(state.pacing_gain);
        self.cwnd_gain = Gain::from_q8(state.cwnd_gain);
        self.cwnd = state.snd_cwnd;
        self.ssthresh = state.snd_ssthresh;
        self.pacing_rate = state.pacing_rate;
        self.prior_ssthresh = PriorThreshold::restored(state.prior_ssthresh);
        self.burst_goal = pacing::burst_goal(&self.params, state.pacing_rate, self.mss);
    }
}
