//! BBR version 3, as the IETF's draft has it: pace at the path's bandwidth, keep about two bandwidth-delay products in flight
//! but no more than earlier probes found safe, probe for bandwidth every two to three seconds, and every five for the RTT.
//!
//! Specification: [`DRAFT`]. Each comment `// draft N: Name` cites a section and a function of its pseudocode where that is
//! implemented. How defects of the text are settled: docs/explanation/bbr3.md. Deviations: docs/reference/deviations.md#bbr3.
//!
//! This file has the order of events; each concept of the specification has its own file:
//! [`params`], `state` (the states, the steps between them, their gains), `max_bw` (the bandwidth filter), `full_pipe` (the
//! plateau), `congestion` (short-term model), `probe_bw` (long-term model, when to probe), `min_rtt` (ProbeRTT's clock),
//! `aggregation`, `undo`. With BBRv1 it shares the count of rounds ([`crate::controllers::bbr`]; `StartRound` is `Rounds::begin`). Section 4.1.2 is
//! the transport's: [`crate::delivery`].
//!
//! Volumes are in bytes, rates in bytes a second, times in microseconds. The interface counts units of [`Config::unit`] bytes:
//! they become bytes where events come in, and the window becomes whole units where limits go out. With units of one byte all of
//! it is exact, whatever the sizes of packets; `C.SMSS` is [`Config::mss`] in any case.

mod aggregation;
mod congestion;
mod full_pipe;
mod max_bw;
mod min_rtt;
pub mod params;
mod probe_bw;
mod ratio;
mod state;
#[cfg(test)]
mod tests;
mod undo;

use crate::controller::*;
use crate::controllers::bbr::Moment;
use crate::controllers::bbr::rounds::Rounds;
pub(crate) use crate::controllers::profiles::BBR3 as INFO;
use aggregation::{Aggregation, Delivery};
use congestion::Congestion;
use full_pipe::FullPipe;
use fullpipe_units::{Duration, Rate};
use max_bw::MaxBw;
use min_rtt::{MinRtt, NO_RTT};
pub use params::{Basis, DRAFT, Params};
use probe_bw::{AckPhase, ProbeBw, Probed, inflight_at_loss, is_inflight_too_high};
pub use ratio::Ratio;
use ratio::times;
pub use state::State;
use undo::{Episode, Undo as Saved};

/// No bound (draft: Infinity).
const INFINITY: u64 = u64::MAX;
/// The RTT that the first pacing rate assumes where none was measured (draft section 5.6.2).
const NOMINAL_RTT_US: u64 = 1_000;
/// The most bytes in a quantum (draft section 5.6.3).
const MAX_QUANTUM: u64 = 64 * 1_024;

// draft 2#808e42: bytes, and bytes a second
/// The rate sample of an ACK in bytes (draft: `RS`, sections 2.3 and 4.1.2.1.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sample {
    /// The ACK delivered something.
    has_data: bool,
    is_app_limited: bool,
    delivered: u64,
    /// Bytes a second; zero if there is no reliable rate.
    delivery_rate: u64,
    /// Units that the connection had delivered when the sampled packet was sent.
    prior_delivered: u64,
    newly_acked: u64,
    tx_in_flight: u64,
    lost: u64,
}

impl Sample {
    #[inline]
    fn of(ack: &Ack, unit: u64) -> Sample {
        let sample = &ack.sample;
        let newly_acked = ack.newly_delivered as u64 * unit;
        let Some(units) = sample.delivered else { return Sample { newly_acked, ..Sample::default() } };
        let delivered = units as u64 * unit;
        // draft 4.1.2.3: GenerateRateSample. The transport leaves out an interval below its minimum RTT.
        let delivery_rate = match sample.interval.map_or(0, Duration::as_micros) {
            0 => 0,
            interval_us => times(delivered, 1_000_000) / interval_us,
        };
        Sample {
            has_data: true,
            is_app_limited: sample.app_limited,
            delivered,
            delivery_rate,
            prior_delivered: sample.prior_delivered,
            newly_acked,
            tx_in_flight: sample.tx_in_flight as u64 * unit,
            lost: sample.lost_since_sent as u64 * unit,
        }
    }
}

/// Fast recovery, or the reduction for marks, which counts as one.
#[inline]
const fn is_recovery(state: CaState) -> bool {
    matches!(state, CaState::Recovery | CaState::Cwr)
}

/// BBRv3.
#[derive(Clone, Copy, Debug)]
pub struct Bbr3 {
    params: Params,
    mss: u32,
    /// Bytes in one unit of the transport's counts.
    unit: u32,
    /// Bytes that the window never exceeds.
    cwnd_clamp: u64,
    max_pacing_rate: u64,
    /// Draft: `C.InitialCwnd`.
    initial_cwnd: u64,
    /// Units that count as delivered when the connection began.
    delivered_at_start: u64,
    // What the draft calls C.
    cwnd: u64,
    pacing_rate: u64,
    send_quantum: u64,
    ca_state: CaState,
    mark_app_limited: bool,
    /// The last draw, for a step without an event that has one.
    random: u32,
    // What the draft calls BBR.
    state: State,
    idle_restart: bool,
    has_seen_rtt: bool,
    /// The present ACK echoed congestion marks.
    is_marked: bool,
    /// Some ACK of the round did.
    is_mark_in_round: bool,
    /// Ranges lost in the round.
    loss_ranges: u32,
    /// Units delivered when the last recovery began.
    recovery_delivered: u64,
    /// The same of a recovery that ended since the ACK before. A QUIC sender's recovery ends with the first packet that left in it
    /// (RFC 9002 section 7.3.2), and so does the round that decides whether Startup lost too much.
    recovery_ended: Option<u64>,
    drain_start_round: u32,
    bw: u64,
    rounds: Rounds,
    max_bw: MaxBw,
    full_pipe: FullPipe,
    congestion: Congestion,
    probe: ProbeBw,
    aggregation: Aggregation,
    min_rtt: MinRtt,
    undo: Saved,
}

impl Bbr3 {
    /// A flow whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Bbr3 {
        let unit = config.unit as u64;
        let now_us = connection.now.as_micros();
        let srtt_us = connection.srtt.as_micros().min(NO_RTT as u64) as u32;
        // draft 5.2.1: OnInit
        let mut bbr = Bbr3 {
            params: *params,
            mss: config.mss,
            unit: config.unit,
            cwnd_clamp: config.cwnd_clamp as u64 * unit,
            max_pacing_rate: config.max_pacing_rate.as_bytes_per_sec(),
            initial_cwnd: config.initial_cwnd as u64 * unit,
            delivered_at_start: connection.delivered,
            // draft 5.6.4.1#8cf57b: the transport's initial window
            cwnd: config.initial_cwnd.min(config.cwnd_clamp) as u64 * unit,
            pacing_rate: 0,
            send_quantum: 0,
            ca_state: connection.state,
            mark_app_limited: false,
            random: connection.random,
            // draft 5.3.1.1: EnterStartup
            state: State::Startup,
            idle_restart: false,
            has_seen_rtt: false,
            is_marked: false,
            is_mark_in_round: false,
            loss_ranges: 0,
            recovery_delivered: connection.delivered,
            recovery_ended: None,
            drain_start_round: 0,
            bw: 0,
            // draft 5.5.1: InitRoundCounting, InitRoundCounting.{next_round_delivered, round_start, round_count}
            rounds: Rounds::new(connection.delivered),
            max_bw: MaxBw::default(),
            // draft 5.2.1: OnInit.full_bw_reached
            full_pipe: FullPipe::default(),
            congestion: Congestion::new(connection.delivered),
            probe: ProbeBw::new(),
            // draft 5.2.1: OnInit.{extra_acked_interval_start, extra_acked_delivered}
            aggregation: Aggregation::new(now_us),
            min_rtt: MinRtt::new(if srtt_us == 0 { NO_RTT } else { srtt_us }, now_us),
            // draft 5.2.1: OnInit.{prior_cwnd, undo_state, undo_bw_shortterm, undo_inflight_shortterm}
            // draft 5.2.1: OnInit.undo_inflight_longterm
            undo: Saved::default(),
        };
        bbr.init_pacing_rate(connection.srtt);
        bbr.set_send_quantum();
        bbr
    }

    // ---- the model, in the order of an ACK (draft 5.2.3: UpdateModelAndState) ----

    #[inline]
    fn update_congestion_signals(&mut self, sample: &Sample, delivered: u64) {
        // draft 5.5.5: UpdateMaxBw
        self.update_round(sample, delivered);
        self.max_bw.update(sample.delivery_rate, sample.is_app_limited);
        // draft 5.5.10.3: UpdateCongestionSignals
        if !self.congestion.loss_round_start {
            return;
        }
        // draft 5.5.10.3: AdaptLowerBoundsFromCongestion
        if !self.state.is_probing_bw() && self.congestion.is_loss_in_round {
            self.congestion.adapt_lower_bounds(&self.params, self.max_bw.get(), self.cwnd);
        }
        self.congestion.is_loss_in_round = false;
    }

    #[inline]
    fn update_round(&mut self, sample: &Sample, delivered: u64) {
        // draft 5.5.1: UpdateRound, UpdateRound.{round_count, round_start.2}
        self.rounds.round_start = false;
        if sample.has_data && self.rounds.on_sample(sample.prior_delivered, delivered) {
            self.probe.rounds_since_probe_up = self.probe.rounds_since_probe_up.saturating_add(1);
        }
    }

    #[inline]
    fn check_startup_done(&mut self, sample: &Sample) {
        // draft 5.3.1.1: CheckStartupDone
        self.check_startup_high_loss(sample);
        if self.state == State::Startup && self.full_pipe.full_bw_reached {
            // draft 5.3.2: EnterDrain
            self.enter(State::Drain);
            self.drain_start_round = self.rounds.rtt_cnt;
        }
    }

    /// Ends Startup at the end of a round of a recovery that lost too much in too many places.
    #[inline]
    fn check_startup_high_loss(&mut self, sample: &Sample) {
        if !self.congestion.loss_round_start {
            return;
        }
        // draft 5.3.1.3: the criteria of CheckStartupHighLoss. A mark counts as a lost range (docs/explanation/bbr3.md, marks).
        let began = self.recovery_ended.or(is_recovery(self.ca_state).then_some(self.recovery_delivered));
        let in_recovery = began.is_some_and(|delivered| sample.prior_delivered >= delivered);
        let too_high = is_inflight_too_high(&self.params, sample) || self.is_mark_in_round;
        let ranges = self.loss_ranges;
        self.loss_ranges = 0;
        self.is_mark_in_round = false;
        if self.state == State::Startup && in_recovery && too_high && ranges >= self.params.full_loss_ranges {
            self.undo.state = Some(State::Startup);
            self.full_pipe.full_bw_reached = true;
            self.full_pipe.full_bw_now = true;
            self.probe.inflight_longterm = self.bdp(self.bw, Ratio::ONE).max(self.congestion.inflight_latest);
        }
    }

    #[inline]
    fn check_drain_done(&mut self, in_flight: u64, moment: &Moment) {
        // draft 5.3.2: CheckDrainDone
        if self.state == State::Drain
            && (in_flight <= self.inflight(self.bw, Ratio::ONE)
                || self.rounds.rtt_cnt.wrapping_sub(self.drain_start_round) > self.params.drain_rounds)
        {
            // draft 5.3.3.9: EnterProbeBW
            self.start_probe_bw_down(moment);
        }
    }

    #[inline]
    fn update_probe_bw_cycle_phase(&mut self, ack: &Ack, sample: &Sample, moment: &Moment) {
        // draft 5.3.3.9: UpdateProbeBWCyclePhase
        if !self.full_pipe.full_bw_reached || self.adapt_long_term_model(ack, sample, moment) {
            return;
        }
        let in_flight = self.bytes(ack.connection.in_flight);
        match self.state {
            State::Down => {
                if !self.check_time_to_probe_bw(moment) && self.is_time_to_cruise(in_flight) {
                    // draft 5.3.3.9: StartProbeBW_CRUISE
                    self.enter(State::Cruise);
                }
            }
            State::Cruise => {
                self.check_time_to_probe_bw(moment);
            }
            State::Refill => {
                if self.rounds.round_start {
                    self.probe.is_bw_probe_sample = true;
                    self.start_probe_bw_up(sample, moment);
                }
            }
            State::Up => {
                if self.is_time_to_go_down(ack, sample) {
                    self.probe.prev_probe_too_high = false;
                    self.start_probe_bw_down(moment);
                }
            }
            State::Startup | State::Drain | State::ProbeRtt => {}
        }
    }

    /// Tracks what the ACKs say of a probe, and raises the long-term bound. Returns whether it began another probe.
    #[inline]
    fn adapt_long_term_model(&mut self, ack: &Ack, sample: &Sample, moment: &Moment) -> bool {
        // draft 5.3.3.9: AdaptLongTermModel, AdaptLongTermModel.ack_phase.2
        let round_start = self.rounds.round_start;
        if self.probe.ack_phase == AckPhase::Starting && round_start {
            self.probe.ack_phase = AckPhase::Feedback;
        }
        if self.probe.ack_phase == AckPhase::Stopping && round_start {
            self.probe.is_bw_probe_sample = false;
            self.probe.ack_phase = AckPhase::Init;
            if self.state.is_probe_bw() && !sample.is_app_limited && !self.params.pr5_advance_on_down {
                self.max_bw.advance();
            }
            if self.state.is_probe_bw()
                && self.probe.prev_probe_precautionary
                && !self.probe.prev_probe_too_high
            {
                self.start_probe_bw_refill(moment.delivered);
                return true;
            }
        }
        if is_inflight_too_high(&self.params, sample) || self.probe.inflight_longterm == INFINITY {
            return false;
        }
        self.probe.inflight_longterm = self.probe.inflight_longterm.max(sample.tx_in_flight);
        if self.state == State::Up {
            self.probe.probe_upward(&Probed {
                newly_acked: sample.newly_acked,
                cwnd: self.cwnd,
                smss: self.smss(),
                is_cwnd_limited: ack.cwnd_limited,
                round_start,
            });
        }
        false
    }

    /// Begins a probe if it is time; returns whether it did.
    #[inline]
    fn check_time_to_probe_bw(&mut self, moment: &Moment) -> bool {
        // draft 5.3.3.8.3: IsTimeToProbeBW
        let due = self.probe.has_waited(moment.now_us)
            || self.probe.is_reno_coexistence_probe_time(&self.params, self.target_inflight(), self.smss());
        if due {
            self.start_probe_bw_refill(moment.delivered);
        }
        due
    }

    #[inline]
    fn is_time_to_cruise(&self, in_flight: u64) -> bool {
        // draft 5.3.3.9: IsTimeToCruise
        in_flight <= self.inflight_with_headroom()
            && in_flight <= self.inflight(self.max_bw.get(), Ratio::ONE)
    }

    #[inline]
    fn is_time_to_go_down(&mut self, ack: &Ack, sample: &Sample) -> bool {
        // draft 5.3.3.9: IsTimeToGoDown, IsTimeToGoDown.full_bw
        // The flight that the ACK found, and whether another segment fits: what is left after it, and the part of a segment that
        // does not fit, never reach a bound that caps the window (docs/explanation/bbr3.md, defect 16).
        let reached = self.bytes(ack.prior_in_flight) + self.smss() > self.probe.inflight_longterm;
        if self.probe.prev_probe_too_high && reached {
            self.probe.prev_probe_precautionary = true;
            return true;
        }
        if ack.cwnd_limited && self.cwnd >= self.probe.inflight_longterm {
            self.full_pipe.reset_to(sample.delivery_rate);
            return false;
        }
        self.full_pipe.full_bw_now
    }

    /// ProbeRTT from its beginning to its end.
    #[inline]
    fn check_probe_rtt(&mut self, ack: &Ack, sample: &Sample, moment: &Moment) {
        // draft 5.3.4.3: CheckProbeRTT
        if self.state != State::ProbeRtt && self.min_rtt.probe_rtt_expired && !self.idle_restart {
            // draft 5.3.4.3: EnterProbeRTT
            self.enter(State::ProbeRtt);
            self.save_cwnd();
            self.min_rtt.probe_rtt_done_stamp = 0;
            if self.params.cut_probe_advances && self.probe.ack_phase != AckPhase::Init {
                self.max_bw.advance();
            }
            self.probe.ack_phase = AckPhase::Stopping;
            self.rounds.begin(moment.delivered);
        }
        // draft 4.1.2.4: MarkConnectionAppLimited, which HandleProbeRTT calls; the host carries it out
        self.mark_app_limited = self.state == State::ProbeRtt;
        if self.state == State::ProbeRtt {
            self.handle_probe_rtt(self.bytes(ack.connection.in_flight), moment);
        }
        if sample.delivered > 0 {
            self.idle_restart = false;
        }
    }

    fn handle_probe_rtt(&mut self, in_flight: u64, moment: &Moment) {
        // draft 5.3.4.3: HandleProbeRTT, HandleProbeRTT.probe_rtt_round_done.2
        if self.min_rtt.probe_rtt_done_stamp != 0 {
            self.min_rtt.probe_rtt_round_done |= self.rounds.round_start;
            if self.min_rtt.probe_rtt_round_done {
                self.check_probe_rtt_done(moment);
            }
        } else if in_flight <= self.probe_rtt_cwnd() {
            self.min_rtt.begin_dwell(&self.params, moment.now_us);
            self.rounds.begin(moment.delivered);
        }
    }

    fn check_probe_rtt_done(&mut self, moment: &Moment) {
        // draft 5.3.4.3: CheckProbeRTTDone
        if !self.min_rtt.is_done(&self.params, moment.now_us) {
            return;
        }
        self.restore_cwnd();
        // draft 5.3.4.4: ExitProbeRTT
        self.congestion.reset_short_term_model();
        if self.full_pipe.full_bw_reached {
            self.start_probe_bw_down(moment);
            self.enter(State::Cruise);
        } else {
            self.enter(State::Startup);
        }
    }

    // ---- the steps from state to state ----

    /// Changes the state; nothing else does. The gains follow from it.
    fn enter(&mut self, to: State) {
        // In release builds nothing here may panic (crates/cc/tests/bpf).
        debug_assert!(self.state.may_become(to), "BBRv3 has no step from {:?} to {to:?}", self.state);
        self.state = to;
    }

    fn start_probe_bw_down(&mut self, moment: &Moment) {
        // draft 5.3.3.9: StartProbeBW_DOWN
        self.congestion.reset();
        self.probe.probe_up_acked_per_inc = INFINITY;
        self.probe.pick_probe_wait(&self.params, moment.random);
        self.probe.cycle_stamp = moment.now_us;
        self.probe.ack_phase = AckPhase::Stopping;
        self.rounds.begin(moment.delivered);
        if self.params.pr5_advance_on_down {
            self.max_bw.advance();
        }
        self.enter(State::Down);
    }

    fn start_probe_bw_refill(&mut self, delivered: u64) {
        // draft 5.3.3.9: StartProbeBW_REFILL
        self.congestion.reset_short_term_model();
        self.probe.bw_probe_up_rounds = 0;
        self.probe.bw_probe_up_acked = 0;
        self.probe.prev_probe_precautionary = false;
        self.probe.ack_phase = AckPhase::Refilling;
        self.rounds.begin(delivered);
        self.enter(State::Refill);
    }

    fn start_probe_bw_up(&mut self, sample: &Sample, moment: &Moment) {
        // draft 5.3.3.9: StartProbeBW_UP, StartProbeBW_UP.full_bw
        self.probe.ack_phase = AckPhase::Starting;
        self.rounds.begin(moment.delivered);
        self.full_pipe.reset_to(sample.delivery_rate);
        self.enter(State::Up);
        self.probe.raise_slope(self.cwnd, self.smss());
    }

    // ---- losses ----

    /// A probe lost too much, or met a mark: reduces the long-term bound and ends it.
    fn handle_inflight_too_high(&mut self, sample: &Sample, moment: &Moment) {
        // draft 5.5.10.2: HandleInflightTooHigh, HandleInflightTooHigh.undo_state
        let target = self.target_inflight();
        self.probe.on_too_high(&self.params, sample, target);
        if self.state == State::Up {
            self.undo.state = Some(State::Up);
            self.start_probe_bw_down(moment);
        }
    }

    fn save_state_upon_loss(&mut self) {
        // draft 5.5.11.1: SaveStateUponLoss, SaveStateUponLoss.{undo_state, undo_bw_shortterm}
        // draft 5.5.11.1: SaveStateUponLoss.{undo_inflight_shortterm, undo_inflight_longterm}
        // Once an episode (docs/explanation/bbr3.md, defect 10).
        if self.undo.episode == Episode::Present {
            return;
        }
        self.save_cwnd();
        self.undo = Saved {
            prior_cwnd: self.undo.prior_cwnd,
            bw_shortterm: self.congestion.bw_shortterm,
            inflight_shortterm: self.congestion.inflight_shortterm,
            inflight_longterm: self.probe.inflight_longterm,
            state: None,
            episode: Episode::Present,
            is_allowed: true,
        };
    }

    fn save_cwnd(&mut self) {
        // draft 5.6.4.4: SaveCwnd, SaveCwnd.prior_cwnd.2
        let modulated = self.ca_state >= CaState::Recovery || self.state == State::ProbeRtt;
        let least = if modulated { self.undo.prior_cwnd } else { 0 };
        self.undo.prior_cwnd = self.cwnd.max(least);
    }

    fn restore_cwnd(&mut self) {
        // draft 5.6.4.4: RestoreCwnd
        self.cwnd = self.cwnd.max(self.undo.prior_cwnd);
    }

    // ---- what follows from the model (draft 5.2.3: UpdateControlParameters) ----

    // draft 2.2#2406cd #1514ae: the payload of a full segment
    #[inline]
    fn smss(&self) -> u64 {
        self.mss as u64
    }

    #[inline]
    fn bytes(&self, units: u32) -> u64 {
        units as u64 * self.unit as u64
    }

    #[inline]
    fn min_pipe_cwnd(&self) -> u64 {
        self.params.min_pipe_cwnd as u64 * self.smss()
    }

    #[inline]
    fn bdp(&self, bw: u64, gain: Ratio) -> u64 {
        self.bdp_of(bw, self.min_rtt.min_rtt_us, gain)
    }

    #[inline]
    fn bdp_of(&self, bw: u64, rtt_us: u32, gain: Ratio) -> u64 {
        // draft 5.6.4.2: BDPMultiple, BDPMultiple.bdp
        if rtt_us == NO_RTT {
            return self.initial_cwnd;
        }
        gain.of(times(bw, rtt_us) / 1_000_000)
    }

    #[inline]
    fn quantise(&self, inflight_cap: u64) -> u64 {
        // draft 5.5.8.1: UpdateOffloadBudget
        // draft 5.5.8.2: UpdateOffloadBudget, UpdateOffloadBudget.offload_budget: with one quantum
        let offload_budget = self.params.offload_quanta as u64 * self.send_quantum;
        // draft 5.6.4.2: QuantizationBudget, QuantizationBudget.{inflight_cap, inflight_cap.2, inflight_cap.3}
        let probing = if self.state == State::Up { 2 * self.smss() } else { 0 };
        inflight_cap.max(offload_budget).max(self.min_pipe_cwnd()) + probing
    }

    #[inline]
    fn inflight(&self, bw: u64, gain: Ratio) -> u64 {
        // draft 5.6.4.2: Inflight, Inflight.inflight_cap
        self.quantise(self.bdp(bw, gain))
    }

    /// How much data is wanted in flight.
    #[inline]
    fn target_inflight(&self) -> u64 {
        // draft 5.3.3.8.3: TargetInflight
        self.bdp(self.bw, Ratio::ONE).min(self.cwnd)
    }

    #[inline]
    fn inflight_with_headroom(&self) -> u64 {
        self.probe.inflight_with_headroom(&self.params, self.smss())
    }

    #[inline]
    fn probe_rtt_cwnd(&self) -> u64 {
        // draft 5.6.4.5: ProbeRTTCwnd, ProbeRTTCwnd.{probe_rtt_cwnd, probe_rtt_cwnd.2}
        let one = self.params.issue109_one_min_rtt;
        let rtt_us = if one { self.min_rtt.expired_min_rtt_us } else { self.min_rtt.min_rtt_us };
        self.bdp_of(self.bw, rtt_us, self.params.probe_rtt_cwnd_gain).max(self.min_pipe_cwnd())
    }

    /// The initial window over the RTT, times Startup's gain.
    fn init_pacing_rate(&mut self, srtt: Duration) {
        // draft 5.6.2: InitPacingRate
        self.has_seen_rtt = srtt != Duration::ZERO;
        let rtt_us = if self.has_seen_rtt { srtt.as_micros().max(1) } else { NOMINAL_RTT_US };
        let nominal_bandwidth = self.initial_cwnd * 1_000_000 / rtt_us;
        self.pacing_rate = self.transport_rate(self.params.startup_pacing_gain.of(nominal_bandwidth));
    }

    #[inline]
    fn transport_rate(&self, rate: u64) -> u64 {
        rate.min(self.max_pacing_rate).max(1)
    }

    #[inline]
    fn set_pacing_rate_with_gain(&mut self, pacing_gain: Ratio, srtt: Duration) {
        if !self.has_seen_rtt && srtt != Duration::ZERO {
            self.init_pacing_rate(srtt);
        }
        // draft 5.6.2: SetPacingRateWithGain
        let less_margin = 100 - self.params.pacing_margin_percent;
        let rate = times(pacing_gain.of(self.bw), less_margin) / 100;
        let rate = self.transport_rate(rate);
        if self.full_pipe.full_bw_reached || rate > self.pacing_rate {
            self.pacing_rate = rate;
        }
    }

    #[inline]
    fn set_send_quantum(&mut self) {
        // draft 5.6.3: SetSendQuantum, SetSendQuantum.{send_quantum.2, send_quantum.3}
        // draft 5.6.3#51c879: no larger than the pseudocode's
        self.send_quantum = (self.pacing_rate / 1_000).min(MAX_QUANTUM).max(2 * self.smss());
    }

    #[inline]
    fn set_cwnd(&mut self, newly_acked: u64, delivered: u64) {
        // draft 5.6.4.2: UpdateMaxInflight, UpdateMaxInflight.inflight_cap.2
        let inflight_cap =
            self.bdp(self.bw, self.state.cwnd_gain(&self.params)) + self.aggregation.extra_acked();
        let max_inflight = self.quantise(inflight_cap);
        // draft 5.6.4.6: SetCwnd, SetCwnd.{cwnd.2, cwnd.3}
        let mut cwnd = self.cwnd;
        if self.full_pipe.full_bw_reached {
            cwnd = (cwnd + newly_acked).min(max_inflight);
        } else if cwnd < max_inflight
            || delivered.saturating_sub(self.delivered_at_start) * (self.unit as u64) < self.initial_cwnd
        {
            cwnd += newly_acked;
        }
        cwnd = cwnd.max(self.min_pipe_cwnd());
        if self.state == State::ProbeRtt {
            // draft 5.6.4.5: BoundCwndForProbeRTT
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        // draft 5.6.4.7: BoundCwndForModel.cwnd
        self.cwnd = cwnd.min(self.model_cap()).min(self.cwnd_clamp);
    }

    #[inline]
    fn model_cap(&self) -> u64 {
        // draft 5.6.4.7: BoundCwndForModel, BoundCwndForModel.{cap.2, cap.3, cap.4, cap.5}
        let cap = match self.state {
            State::Down | State::Refill | State::Up => self.probe.inflight_longterm,
            State::ProbeRtt | State::Cruise => self.inflight_with_headroom(),
            State::Startup | State::Drain => INFINITY,
        };
        cap.min(self.congestion.inflight_shortterm).max(self.min_pipe_cwnd())
    }
}

impl Controller for Bbr3 {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        let connection = &start.connection;
        self.random = connection.random;
        self.mark_app_limited = false;
        // draft 5.2.2: OnTransmit
        // draft 5.4.1: HandleRestartFromIdle, HandleRestartFromIdle.extra_acked_interval_start
        // Nothing is in flight.
        if !connection.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(connection.now.as_micros());
        if self.state.is_probe_bw() {
            self.set_pacing_rate_with_gain(Ratio::ONE, connection.srtt);
        } else if self.state == State::ProbeRtt {
            self.check_probe_rtt_done(&Moment::of(connection));
        }
    }

    /// The draft leaves window validation out: the window follows from the path's model.
    fn on_window_unused(&mut self, _: &WindowUnused) {}

    fn on_sent(&mut self, _: &Sent) {}

    /// BBR has no use for it: [`Ack::rtt`] is the same.
    #[inline]
    fn on_rtt(&mut self, _: &RttSample) {}

    /// The draft knows only losses that are marked.
    fn on_tail_repair(&mut self, _: &TailRepair) {}

    /// A discarded packet says nothing about congestion.
    fn on_discarded(&mut self, _: &Discarded) {}

    /// A mark is congestion: it counts as a loss, without a volume that was lost.
    fn on_ce(&mut self, marks: &CeMarks) {
        // draft 3.7#36bcec: any mark is congestion
        if !marks.echoed {
            return;
        }
        self.congestion.note_loss(marks.delivered);
        self.loss_ranges = self.loss_ranges.saturating_add(1);
        self.is_marked = true;
        self.is_mark_in_round = true;
        self.undo.is_allowed = false;
    }

    fn on_lost(&mut self, lost: &Lost) {
        // A packet that left before the last recovery began is a part of its episode.
        let is_old = self.undo.episode == Episode::Over && lost.tx_delivered < self.recovery_delivered;
        // draft 5.5.10.2: NoteLoss
        if !is_old {
            self.save_state_upon_loss();
        }
        self.congestion.note_loss(lost.delivered);
        self.loss_ranges = self.loss_ranges.saturating_add(lost.new_range as u32);
        // draft 5.5.10.2: HandleLostPacket, HandleLostPacket.tx_in_flight.2
        if !self.probe.is_bw_probe_sample {
            return;
        }
        let mut sample = Sample {
            tx_in_flight: self.bytes(lost.tx_in_flight),
            lost: lost.lost.saturating_sub(lost.tx_lost) * self.unit as u64,
            is_app_limited: lost.app_limited,
            ..Sample::default()
        };
        if is_inflight_too_high(&self.params, &sample) {
            sample.tx_in_flight = inflight_at_loss(&self.params, &sample, self.bytes(lost.units));
            let moment =
                Moment { now_us: lost.now.as_micros(), delivered: lost.delivered, random: self.random };
            self.handle_inflight_too_high(&sample, &moment);
        }
    }

    fn on_state(&mut self, change: &StateChange) {
        let StateChange { connection, to, .. } = change;
        self.random = connection.random;
        self.ca_state = connection.state;
        if is_recovery(connection.state) && *to < CaState::Cwr {
            self.recovery_ended = Some(self.recovery_delivered);
        }
        if *to >= CaState::Cwr && connection.state < CaState::Cwr {
            self.recovery_delivered = connection.delivered;
        }
        match *to {
            CaState::Recovery => {
                // draft 5.6.4.4: OnEnterFastRecovery
                self.save_state_upon_loss();
                self.undo.is_allowed &= !change.proven;
            }
            CaState::Loss => {
                // draft 5.6.4.4: OnEnterRTO
                self.save_cwnd();
                self.save_state_upon_loss();
                self.cwnd = self.bytes(connection.in_flight) + self.smss();
            }
            // draft 5.6.4.4: upon exiting loss recovery
            _ if connection.state >= CaState::Recovery => {
                self.restore_cwnd();
                self.undo.episode = Episode::Over;
            }
            CaState::Cwr => self.undo.is_allowed &= !change.proven,
            CaState::Open | CaState::Disorder => {}
        }
        self.ca_state = *to;
    }

    fn on_undo(&mut self, undo: &Undo) {
        if !self.undo.is_allowed {
            return;
        }
        // draft 5.5.11.2: HandleSpuriousLossDetection, HandleSpuriousLossDetection.undo_state
        self.restore_cwnd();
        // Losses that were none end no Startup: no round of this recovery is complete.
        self.recovery_delivered = undo.connection.delivered;
        self.congestion.is_loss_in_round = false;
        self.full_pipe.reset();
        let saved = self.undo;
        self.congestion.bw_shortterm = self.congestion.bw_shortterm.max(saved.bw_shortterm);
        self.congestion.inflight_shortterm = self.congestion.inflight_shortterm.max(saved.inflight_shortterm);
        self.probe.inflight_longterm = self.probe.inflight_longterm.max(saved.inflight_longterm);
        match saved.state {
            Some(State::Startup) if self.state != State::Startup => {
                self.full_pipe.full_bw_reached = false;
                if self.state != State::ProbeRtt {
                    self.enter(State::Startup);
                }
            }
            Some(State::Up) if !matches!(self.state, State::Up | State::ProbeRtt) => {
                self.start_probe_bw_refill(undo.connection.delivered);
            }
            _ => {}
        }
        self.undo.state = None;
        self.undo.episode = Episode::None;
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let connection = &ack.connection;
        self.random = connection.random;
        self.ca_state = connection.state;
        // draft 5.2.3: UpdateOnACK
        let sample = Sample::of(ack, self.unit as u64);
        let moment = Moment::of(connection);
        if core::mem::take(&mut self.is_marked) && self.probe.is_bw_probe_sample {
            self.handle_inflight_too_high(&sample, &moment);
        }
        // draft 5.2.3: UpdateModelAndState
        self.congestion.on_sample(&sample, moment.delivered);
        self.update_congestion_signals(&sample, moment.delivered);
        self.aggregation.on_ack(
            &self.params,
            &Delivery {
                now_us: moment.now_us,
                newly_acked: sample.newly_acked,
                bw: self.bw,
                cwnd: self.cwnd,
                round_count: self.rounds.rtt_cnt,
                full_bw_reached: self.full_pipe.full_bw_reached,
            },
        );
        self.full_pipe.on_ack(&self.params, self.rounds.round_start, &sample);
        self.check_startup_done(&sample);
        self.check_drain_done(self.bytes(connection.in_flight), &moment);
        if sample.newly_acked > 0 {
            self.update_probe_bw_cycle_phase(ack, &sample, &moment);
        }
        let rtt_us = ack.rtt.map(|rtt| rtt.as_micros().min(NO_RTT as u64 - 1) as u32);
        self.min_rtt.on_ack(&self.params, moment.now_us, rtt_us);
        self.check_probe_rtt(ack, &sample, &moment);
        self.congestion.advance(&sample);
        // draft 5.5.10.3: BoundBWForModel
        self.bw = self.max_bw.get().min(self.congestion.bw_shortterm);
        // draft 5.2.3: UpdateControlParameters
        // draft 5.6.2: SetPacingRate
        self.set_pacing_rate_with_gain(self.state.pacing_gain(&self.params), connection.srtt);
        self.set_send_quantum();
        self.set_cwnd(sample.newly_acked, moment.delivered);
        if self.undo.episode == Episode::Present && connection.state < CaState::Recovery {
            self.undo.episode = Episode::None;
        }
        self.recovery_ended = None;
    }

    fn on_mss(&mut self, mss: u32) {
        if self.unit == self.mss {
            // The clamp stays the same number of segments.
            self.cwnd_clamp = self.cwnd_clamp / self.unit.max(1) as u64 * mss as u64;
            self.cwnd = self.cwnd.min(self.cwnd_clamp);
            self.unit = mss;
        }
        self.mss = mss;
        self.set_send_quantum();
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            cwnd: (self.cwnd.max(self.smss()) / self.unit.max(1) as u64).min(u32::MAX as u64) as u32,
            ssthresh: Limits::INFINITE,
            pacing_rate: Rate::from_bytes_per_sec(self.pacing_rate),
            // The least that a quantum holds; the host sizes larger bursts by the rate, as the draft does.
            min_burst: (2 * self.mss).div_ceil(self.unit.max(1)),
            mark_app_limited: self.mark_app_limited,
            // draft 4.1.2.4: also at the beginning of ACK and timer processing
            check_app_limited: true,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let min_rtt_us = self.min_rtt.min_rtt_us;
        Snapshot {
            phase: self.state.phase(),
            bandwidth: (self.bw > 0).then(|| Rate::from_bytes_per_sec(self.bw)),
            min_rtt: (min_rtt_us != NO_RTT).then(|| Duration::from_micros(min_rtt_us as u64)),
        }
    }
}
