//! BBRv1 in the kernel's place.
//!
//! [`Bbr1`] hides that the core calls `ssthresh` first and `set_state` later, with the window of a timeout set in between
//! (`tcp_enter_recovery`, `tcp_enter_cwr`, `tcp_enter_loss` and `tcp_process_tlp_ack` in `net/ipv4/tcp_input.c`): it gets
//! one event, so nothing is compared between the two. Nor does it see marks, which show in the record only where they
//! forbid an undo.

mod branches;

use branches::Seen;

use super::coverage::Coverage;
use super::layout::BBR;
use super::machine::{Fields, MOST_FIELDS, Machine};
use super::plausible::{Unequal, unequal};
use super::unwrapped::{Counters, micros};
use super::{Call, Hook, Private};
use fullpipe_cc::controller::*;
use fullpipe_cc::controllers::bbr1::{Bbr1, Mode, Params, State};
use fullpipe_cc::windowed::{Candidate, WindowedMax};
use fullpipe_units::{Duration, Rate, Time};

/// Linux: `CA_EVENT_TX_START`.
const TX_START: i64 = 0;

/// The field in which a draw shows.
const CYCLE_IDX: usize = 29;

#[derive(Clone, Copy, Debug)]
pub(super) struct BbrMachine {
    hz: u32,
    bbr: Option<Bbr1>,
    counters: Counters,
    mss: u32,
    max_pacing_rate: u64,
    /// `init` was called.
    established: bool,
    /// The core has called `ssthresh`, and not `set_state` yet.
    reducing: bool,
    /// The last ACK had to mark the sampler: `delivered` then, and the mark.
    marked: Option<(u32, u32)>,
}

impl BbrMachine {
    pub(super) fn new(hz: u32) -> BbrMachine {
        BbrMachine {
            hz,
            bbr: None,
            counters: Counters::default(),
            mss: 0,
            max_pacing_rate: 0,
            established: false,
            reducing: false,
            marked: None,
        }
    }

    pub(super) const fn coverage() -> Coverage {
        branches::COVERAGE
    }

    fn bbr(&mut self) -> &mut Bbr1 {
        self.bbr.as_mut().expect("a flow begins with clear or init")
    }

    fn state(&self) -> State {
        self.bbr.as_ref().map(Bbr1::state).unwrap_or_default()
    }

    /// A controller whose `init` would be this call.
    fn fresh(&mut self, call: &Call) -> Bbr1 {
        let socket = &call.socket;
        (self.mss, self.max_pacing_rate) = (socket.mss_cache, socket.sk_max_pacing_rate);
        (self.reducing, self.marked) = (false, None);
        let config = Config {
            mss: socket.mss_cache,
            unit: socket.mss_cache,
            initial_cwnd: socket.snd_cwnd,
            cwnd_clamp: socket.snd_cwnd_clamp,
            max_pacing_rate: Rate::from_bytes_per_sec(socket.sk_max_pacing_rate),
            gso_max: socket.sk_gso_max_size,
            max_tcp_header: socket.max_tcp_header(),
            paced: true,
            hz: self.hz,
            ssthresh: Limits::INFINITE,
        };
        Bbr1::new(&Params::default(), &config, &self.counters.connection(call, 0))
    }

    fn on_ack(&mut self, call: &Call) {
        let sample = &call.rate_sample;
        let connection = self.counters.connection(call, draw(call));
        let ack = Ack {
            connection,
            prior_in_flight: sample.prior_in_flight,
            newly_delivered: sample.acked_sacked,
            newly_lost: sample.losses as u32,
            rtt: u64::try_from(sample.rtt_us).ok().map(|us| Duration::from_nanos(us.saturating_mul(1_000))),
            maybe_delayed: sample.is_ack_delayed,
            sample: RateSample {
                delivered: u32::try_from(sample.delivered).ok(),
                interval: u64::try_from(sample.interval_us)
                    .ok()
                    .map(|us| Duration::from_nanos(us.saturating_mul(1_000))),
                prior_delivered: self.counters.delivered.near(sample.prior_delivered),
                prior_delivered_time: micros(sample.prior_mstamp),
                app_limited: sample.is_app_limited,
                retransmitted: sample.is_retrans,
                ..RateSample::NONE
            },
            // BBR reads none of these.
            newly_acked: 0,
            una_advanced: false,
            snd_una: 0,
            snd_nxt: 0,
            cwnd_limited: call.socket.is_cwnd_limited,
            max_packets_out: call.socket.max_packets_out,
            may_raise_cwnd: false,
            may_answer_probe: false,
        };
        self.bbr().on_ack(&ack);
        let mark = call.socket.delivered.wrapping_add(connection.in_flight).max(1);
        self.marked = self.bbr().limits().mark_app_limited.then_some((call.socket.delivered, mark));
    }

    fn on_state(&mut self, call: &Call) {
        let to = CaState::from_code(call.arguments[0]).expect("checked on entry");
        let reduce = core::mem::take(&mut self.reducing);
        let trigger = if to == CaState::Loss { Trigger::Timer } else { Trigger::Ack };
        let connection = self.counters.connection(call, draw(call));
        self.bbr().on_state(&StateChange { connection, to, reduce, proven: false, trigger });
    }

    /// A mark shows in the record because an undo is no longer possible.
    fn take_marks(&mut self, call: &Call) -> bool {
        let marked = call.socket.prior_ssthresh == 0 && self.state().prior_ssthresh != 0;
        if marked {
            self.bbr().on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
        }
        marked
    }

    /// Before the event: what the core changed since the last one.
    fn on_configuration(&mut self, call: &Call) -> bool {
        let changed = call.socket.mss_cache != self.mss;
        if changed {
            self.mss = call.socket.mss_cache;
            self.bbr().on_mss(call.socket.mss_cache);
        }
        changed
    }

    /// The sampler must be marked as our controller requested, unless the marked segments have been delivered since.
    fn check_mark(&self, call: &Call) -> Result<(), Unequal> {
        let Some((delivered, mark)) = self.marked else { return Ok(()) };
        let found = call.socket.app_limited;
        // An application may mark it again, further on, but not before the ACK's own mark.
        let kept = found != 0 && found.wrapping_sub(mark) as i32 >= 0;
        if kept || call.socket.delivered != delivered {
            return Ok(());
        }
        Err(Unequal { field: "app_limited", ours: mark as u64, kernel: found as u64 })
    }
}

/// What must have been drawn for ProbeBW to start in the phase where the record has it (Linux:
/// `bbr_reset_probe_bw_mode`). The phase after the draining one cannot be drawn; seven then is what reaches no phase.
fn draw(call: &Call) -> u32 {
    (8 - BBR[CYCLE_IDX].get(&call.private_after) as u32) & 7
}

impl Machine for BbrMachine {
    fn clear(&mut self, call: &Call) {
        self.counters = Counters::default();
        let mut bbr = self.fresh(call);
        bbr.restore(&State::default());
        self.bbr = Some(bbr);
        self.established = false;
    }

    fn init(&mut self, call: &Call) {
        let before = self.state();
        let mut bbr = self.fresh(call);
        // bbr_init sets everything but the gains, which an ACK of the SYN may have set.
        bbr.restore(&State { pacing_gain: before.pacing_gain, cwnd_gain: before.cwnd_gain, ..bbr.state() });
        self.bbr = Some(bbr);
        self.established = true;
    }

    fn before(&self, call: &Call) -> Result<(), Unequal> {
        let (state, socket) = (self.state(), &call.socket);
        self.check_mark(call)?;
        unequal(&[
            ("snd_ssthresh", state.snd_ssthresh as u64, socket.snd_ssthresh as u64),
            ("sk_pacing_rate", state.pacing_rate, socket.sk_pacing_rate),
            // Our controllers take it as constant.
            ("sk_max_pacing_rate", self.max_pacing_rate, socket.sk_max_pacing_rate),
        ])?;
        // A timeout's window is set before set_state is called; ours follows in the call.
        let timeout = call.hook == Hook::SetState && call.arguments[0] == CaState::Loss as i64;
        if !timeout {
            unequal(&[("snd_cwnd", state.snd_cwnd as u64, socket.snd_cwnd as u64)])?;
        }
        Ok(())
    }

    fn follow_socket(&mut self, call: &Call) {
        if self.reducing {
            return;
        }
        (self.max_pacing_rate, self.marked) = (call.socket.sk_max_pacing_rate, None);
        let state = State {
            snd_cwnd: call.socket.snd_cwnd,
            snd_ssthresh: call.socket.snd_ssthresh,
            pacing_rate: call.socket.sk_pacing_rate,
            prior_ssthresh: call.socket.prior_ssthresh,
            ..self.state()
        };
        self.bbr().restore(&state);
    }

    fn make(&mut self, call: &Call, coverage: &mut Coverage) {
        let before = self.state();
        let mut seen = Seen { hz: self.hz, established: self.established, ..Seen::default() };
        seen.mss_changed = self.on_configuration(call);
        match call.hook {
            Hook::Init => {}
            Hook::Main => self.on_ack(call),
            Hook::CwndEvent if call.arguments[0] == TX_START => {
                let connection = self.counters.connection(call, draw(call));
                let (last_sent, rto) = (Time::ZERO, Duration::ZERO);
                self.bbr().on_transmit_start(&TransmitStart { connection, last_sent, rto });
            }
            Hook::CwndEvent => {}
            Hook::Ssthresh => self.reducing = true,
            Hook::SetState => {
                seen.reduce = self.reducing;
                self.on_state(call);
            }
            Hook::Undo => {
                let connection = self.counters.connection(call, 0);
                self.bbr().on_undo(&Undo { connection });
            }
            Hook::CongAvoid | Hook::PktsAcked => unreachable!("checked on entry"),
        }
        // In a reduction the core notes the threshold to undo to first, ours last.
        seen.mark_forbids = self.is_settled() && self.take_marks(call);
        branches::note(call, &before, &self.state(), &seen, coverage);
    }

    fn is_settled(&self) -> bool {
        !self.reducing
    }

    fn fields(&self) -> Fields {
        fields(&self.state())
    }

    fn returned(&self, call: &Call) -> u32 {
        match call.hook {
            Hook::Ssthresh => self.state().snd_ssthresh,
            Hook::Undo => self.state().snd_cwnd,
            _ => 0,
        }
    }

    fn outcome(&self, call: &Call) -> [(&'static str, u64, u64); 4] {
        let (state, after) = (self.state(), &call.after);
        // The core raises the threshold after undo_cwnd has returned, ours within: the next call's entry shows it.
        let undo = call.hook == Hook::Undo;
        let snd_ssthresh = if undo { call.socket.snd_ssthresh } else { state.snd_ssthresh };
        [
            ("snd_cwnd", state.snd_cwnd as u64, after.snd_cwnd as u64),
            ("snd_ssthresh", snd_ssthresh as u64, after.snd_ssthresh as u64),
            ("sk_pacing_rate", state.pacing_rate, after.sk_pacing_rate),
            ("prior_ssthresh", state.prior_ssthresh as u64, call.socket.prior_ssthresh as u64),
        ]
    }
}

/// In the order of [`BBR`].
fn fields(state: &State) -> Fields {
    let [s0, s1, s2] = state.bw.candidates();
    let fields = [
        state.min_rtt_us as u64,
        state.min_rtt_stamp as u64,
        state.probe_rtt_done_stamp as u64,
        s0.time as u64,
        s0.value as u64,
        s1.time as u64,
        s1.value as u64,
        s2.time as u64,
        s2.value as u64,
        state.rtt_cnt as u64,
        state.next_rtt_delivered as u64,
        state.cycle_mstamp,
        state.mode as u64,
        state.prev_ca_state as u64,
        state.packet_conservation as u64,
        state.round_start as u64,
        state.idle_restart as u64,
        state.probe_rtt_round_done as u64,
        state.lt_is_sampling as u64,
        state.lt_rtt_cnt as u64,
        state.lt_use_bw as u64,
        state.lt_bw as u64,
        state.lt_last_delivered as u64,
        state.lt_last_stamp as u64,
        state.lt_last_lost as u64,
        state.pacing_gain as u64,
        state.cwnd_gain as u64,
        state.full_bw_reached as u64,
        state.full_bw_cnt as u64,
        state.cycle_idx as u64,
        state.has_seen_rtt as u64,
        state.prior_cwnd as u64,
        state.full_bw as u64,
        state.ack_epoch_mstamp,
        state.extra_acked[0] as u64,
        state.extra_acked[1] as u64,
        state.ack_epoch_acked as u64,
        state.extra_acked_win_rtts as u64,
        state.extra_acked_win_idx as u64,
    ];
    const { assert!(BBR.len() == MOST_FIELDS) }
    fields
}

/// The kernel's state, if our types can hold it; values outside the private state are zero.
pub(super) fn state(private: &Private) -> Option<State> {
    let mut fields = BBR.iter().map(|field| field.get(private));
    let mut next = || fields.next().expect("as many as BBR has");
    macro_rules! candidate {
        () => {
            Candidate { time: next() as u32, value: next() as u32 }
        };
    }
    // The fields are written in the order of the table, and evaluated in it.
    Some(State {
        min_rtt_us: next() as u32,
        min_rtt_stamp: next() as u32,
        probe_rtt_done_stamp: next() as u32,
        bw: WindowedMax::from_candidates([candidate!(), candidate!(), candidate!()]),
        rtt_cnt: next() as u32,
        next_rtt_delivered: next() as u32,
        cycle_mstamp: next(),
        mode: match next() {
            0 => Mode::Startup,
            1 => Mode::Drain,
            2 => Mode::ProbeBw,
            3 => Mode::ProbeRtt,
            _ => return None,
        },
        prev_ca_state: CaState::from_code(next() as i64)?,
        packet_conservation: next() != 0,
        round_start: next() != 0,
        idle_restart: next() != 0,
        probe_rtt_round_done: next() != 0,
        lt_is_sampling: next() != 0,
        lt_rtt_cnt: next() as u32,
        lt_use_bw: next() != 0,
        lt_bw: next() as u32,
        lt_last_delivered: next() as u32,
        lt_last_stamp: next() as u32,
        lt_last_lost: next() as u32,
        pacing_gain: next() as u32,
        cwnd_gain: next() as u32,
        full_bw_reached: next() != 0,
        full_bw_cnt: next() as u32,
        cycle_idx: next() as u32,
        has_seen_rtt: next() != 0,
        prior_cwnd: next() as u32,
        full_bw: next() as u32,
        ack_epoch_mstamp: next(),
        extra_acked: [next() as u16, next() as u16],
        ack_epoch_acked: next() as u32,
        extra_acked_win_rtts: next() as u32,
        extra_acked_win_idx: next() as u32,
        snd_cwnd: 0,
        snd_ssthresh: 0,
        pacing_rate: 0,
        prior_ssthresh: 0,
    })
}
