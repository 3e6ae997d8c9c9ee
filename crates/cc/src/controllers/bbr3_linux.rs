//! BBR version 3 as Google's kernel has it, exact to its integers: `bbr3:profile=linux`. The IETF's draft is [`crate::controllers::bbr3`].
//!
//! Specification: [`SOURCE`]. How the two differ: docs/explanation/bbr3.md, "Google's kernel". Deviations: docs/reference/deviations.md#bbr3.
//!
//! This file has the order of events; each concept has its own file: [`params`], `max_bw` (the bandwidth filter), `full_pipe` (the
//! plateau), `signals` (the last round trip, and the lower bounds), `ecn` (the share of marks), `probe` (the upper bound, and when to
//! probe), `min_rtt` (ProbeRTT's clock), `pacing` (bursts). With BBRv1 it shares what [`crate::controllers::bbr`] has, and the four modes.
//!
//! Arithmetic is the kernel's: bandwidth in segments a microsecond times 2^24, gains in 1/256, stamps in microseconds or jiffies,
//! all in 32 bits that wrap. [`Bbr3Linux::state`] and [`Bbr3Linux::restore`] expose every field of the kernel's `struct bbr` under
//! its own name.
//!
//! Not here: protective load balancing (`bbr_plb`), which a kernel leaves off (`net.ipv4.tcp_plb_enabled`) and which changes a
//! packet's path, not its sending; and `fast_ack_mode`, which is the receiving half's.

mod ecn;
mod full_pipe;
mod max_bw;
mod min_rtt;
mod pacing;
pub mod params;
mod probe;
mod signals;
mod state;
#[cfg(test)]
mod tests;

use crate::controller;
use crate::controller::*;
use crate::controllers::bbr::Moment;
use crate::controllers::bbr::ack_aggregation::{AckAggregation, Delivery};
use crate::controllers::bbr::bandwidth::{self, NO_RTT};
use crate::controllers::bbr::rounds::Rounds;
pub use crate::controllers::bbr1::Mode;
pub(crate) use crate::controllers::profiles::BBR3_LINUX as INFO;
use crate::controllers::recovery::PriorThreshold;
use crate::gain::Gain;
use ecn::Ecn;
use full_pipe::FullPipe;
use fullpipe_units::{Duration, Rate};
use max_bw::MaxBw;
use min_rtt::MinRtt;
pub use params::{Params, SOURCE};
pub use probe::{AckPhase, Phase};
use probe::{Probe, Sample};
use signals::{Observed, Signals, UNSET};
pub use state::State;

/// What a loss may have to restore (Linux: `undo_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Undoable {
    bw_lo: u32,
    inflight_lo: u32,
    inflight_hi: u32,
}

/// Google's BBRv3.
#[derive(Clone, Copy, Debug)]
pub struct Bbr3Linux {
    params: Params,
    mss: u32,
    cwnd_clamp: u32,
    max_pacing_rate: u64,
    usecs_less_margin: u64,
    goal_max_bytes: u32,
    // What the kernel's socket holds.
    cwnd: u32,
    ssthresh: u32,
    prior_ssthresh: PriorThreshold,
    /// Bytes a second.
    pacing_rate: u64,
    /// Segments in a burst at that rate and the minimum RTT.
    burst_goal: u32,
    mark_app_limited: bool,
    /// The last draw, for a step without an event that has one.
    random: u32,
    // What the kernel's `struct bbr` holds.
    mode: Mode,
    pacing_gain: Gain,
    cwnd_gain: Gain,
    rounds: Rounds,
    prev_ca_state: CaState,
    /// The window to return to.
    prior_cwnd: u32,
    /// Seven bits.
    init_cwnd: u32,
    idle_restart: bool,
    has_seen_rtt: bool,
    try_fast_path: bool,
    /// ACKs of the round that showed losses; four bits.
    loss_events_in_round: u32,
    max_bw: MaxBw,
    full_pipe: FullPipe,
    signals: Signals,
    probe: Probe,
    ecn: Ecn,
    aggregation: AckAggregation,
    min_rtt: MinRtt,
    undoable: Undoable,
}

impl Bbr3Linux {
    /// A flow whose handshake is done (Linux: `bbr_init`).
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Bbr3Linux {
        let min_rtt_us = connection.min_rtt.as_micros().min(NO_RTT as u64) as u32;
        let cwnd = config.initial_cwnd.min(config.cwnd_clamp);
        let mut bbr = Bbr3Linux {
            params: *params,
            mss: config.mss,
            cwnd_clamp: config.cwnd_clamp,
            max_pacing_rate: config.max_pacing_rate.as_bytes_per_sec(),
            usecs_less_margin: bandwidth::usecs_less_margin(params.margin_percent),
            goal_max_bytes: pacing::goal_max_bytes(config),
            cwnd,
            ssthresh: Limits::INFINITE,
            prior_ssthresh: PriorThreshold::default(),
            pacing_rate: 0,
            burst_goal: 0,
            mark_app_limited: false,
            random: connection.random,
            mode: Mode::Startup,
            // The kernel leaves the gains at zero until the first ACK.
            pacing_gain: Gain::from_q8(0),
            cwnd_gain: Gain::from_q8(0),
            rounds: Rounds::new(connection.delivered),
            prev_ca_state: CaState::Open,
            prior_cwnd: 0,
            init_cwnd: cwnd.min(0x7f),
            idle_restart: false,
            has_seen_rtt: false,
            try_fast_path: false,
            loss_events_in_round: 0,
            max_bw: MaxBw::default(),
            full_pipe: FullPipe::default(),
            signals: Signals::new(connection.delivered),
            probe: Probe::new(),
            ecn: Ecn::new(params),
            aggregation: AckAggregation::default(),
            min_rtt: MinRtt::new(params, config.hz, min_rtt_us, connection.jiffies),
            undoable: Undoable::default(),
        };
        bbr.init_pacing_rate(connection.srtt);
        bbr.aggregation.restart(connection.now.as_micros());
        bbr
    }

    // ---- the model, in the order of an ACK ----

    /// Round, share of marks, and the round's deliveries. Returns the sample's bandwidth, zero without one, and whether the
    /// ACK has a rate sample.
    #[inline]
    fn observe(&mut self, ack: &Ack) -> (u32, bool) {
        let interval_us = ack.sample.interval.map_or(0, Duration::as_micros);
        self.rounds.round_start = false;
        if interval_us > 0 && self.rounds.on_sample(ack.sample.prior_delivered, ack.connection.delivered) {
            self.on_round(ack.connection.delivered);
        }
        self.signals.ecn_in_round |= self.ecn.ecn_eligible && self.ecn.is_ece;
        let delivered = ack.sample.delivered.unwrap_or(0);
        // Linux: bbr_calculate_bw_sample; up, so that it grows at low rates.
        let bw = match interval_us {
            0 => 0,
            _ => ((delivered as u64) << bandwidth::BW_SCALE).div_ceil(interval_us) as u32,
        };
        let has_sample = interval_us > 0 && ack.newly_delivered > 0;
        let (prior_delivered, total) = (ack.sample.prior_delivered, ack.connection.delivered);
        self.signals.observe(has_sample.then_some(&Observed { bw, delivered, prior_delivered, total }));
        (bw, has_sample)
    }

    fn on_round(&mut self, delivered: u64) {
        self.probe.rounds_since_probe = (self.probe.rounds_since_probe + 1).min(0xff);
        let share = self.ecn.on_round(&self.params, self.min_rtt.min_rtt_us, delivered);
        if let Some(share) = share
            && !self.full_pipe.full_bw_reached
            && self.ecn.ends_startup(&self.params, share)
        {
            self.handle_queue_too_high_in_startup();
        }
    }

    /// Linux: `bbr_handle_queue_too_high_in_startup`.
    fn handle_queue_too_high_in_startup(&mut self) {
        self.full_pipe.full_bw_reached = true;
        let bdp = self.inflight(self.max_bw.get(), Gain::ONE);
        self.probe.inflight_hi = bdp.max(self.signals.inflight_latest);
    }

    /// Whether nothing of an ACK remains to be done: the application is the limit, nothing was lost or marked, and neither RTT
    /// nor phase change (Linux: `bbr_run_fast_path`). The second value tells whether the model is still to be updated.
    #[inline]
    fn run_fast_path(&mut self, ack: &Ack, bw: u32) -> (bool, bool) {
        let may = self.params.fast_path
            && self.try_fast_path
            && ack.sample.app_limited
            && bw < self.max_bw.get()
            && !self.signals.loss_in_round
            && !self.signals.ecn_in_round;
        if !may {
            return (false, true);
        }
        let before = (self.mode, self.min_rtt.min_rtt_us);
        self.check_drain(&ack.connection);
        self.update_cycle_phase(ack, bw);
        self.update_min_rtt(ack);
        ((self.mode, self.min_rtt.min_rtt_us) == before && self.try_fast_path, false)
    }

    /// Linux: `bbr_update_model`.
    #[inline]
    fn update_model(&mut self, ack: &Ack, bw: u32, has_sample: bool) {
        if has_sample {
            self.update_congestion_signals(ack, bw);
        }
        self.update_ack_aggregation(ack);
        self.check_loss_too_high_in_startup(ack);
        if !ack.sample.app_limited {
            let Params { full_bw_thresh, full_bw_cnt, .. } = self.params;
            self.full_pipe.on_sample(full_bw_thresh, full_bw_cnt, bw, self.rounds.round_start);
        }
        self.check_drain(&ack.connection);
        self.update_cycle_phase(ack, bw);
        self.update_min_rtt(ack);
    }

    #[inline]
    fn update_congestion_signals(&mut self, ack: &Ack, bw: u32) {
        // The application's rate says nothing about the path, unless it is above what the path seemed capable of.
        if !ack.sample.app_limited || bw >= self.max_bw.get() {
            self.max_bw.take(bw);
        }
        self.signals.loss_in_round |= ack.newly_lost > 0;
        if !self.signals.loss_round_start {
            return;
        }
        if !self.is_probing_bandwidth() {
            let kept = self.ecn.kept(&self.params);
            self.signals.adapt_lower_bounds(&self.params, self.max_bw.get(), self.cwnd, kept);
        }
        (self.signals.loss_in_round, self.signals.ecn_in_round) = (false, false);
    }

    #[inline]
    fn update_ack_aggregation(&mut self, ack: &Ack) {
        let sampled =
            ack.sample.delivered.is_some() && ack.sample.interval.is_some_and(|it| it.as_micros() > 0);
        if !sampled || ack.newly_delivered == 0 || self.params.extra_acked_gain == Gain::from_q8(0) {
            return;
        }
        let full = self.full_pipe.full_bw_reached;
        let acked = Delivery {
            window_rounds: if full { self.params.extra_acked_win_rtts } else { 1 },
            segments: ack.newly_delivered,
            round_start: self.rounds.round_start,
            bw: self.bw(),
            delivered_us: ack.connection.delivered_time.as_micros(),
            cwnd: self.cwnd,
        };
        self.aggregation.on_ack(&acked);
    }

    /// Ends Startup at the end of a round of recovery that lost much on many ACKs.
    #[inline]
    fn check_loss_too_high_in_startup(&mut self, ack: &Ack) {
        if self.full_pipe.full_bw_reached {
            return;
        }
        if ack.newly_lost > 0 && self.loss_events_in_round < 0xf {
            self.loss_events_in_round += 1;
        }
        if !self.signals.loss_round_start {
            return;
        }
        if self.params.full_loss_cnt > 0
            && ack.connection.state == CaState::Recovery
            && self.loss_events_in_round >= self.params.full_loss_cnt
            && self.sample_of(ack).is_too_high(&self.params)
        {
            // The count stays.
            self.handle_queue_too_high_in_startup();
            return;
        }
        self.loss_events_in_round = 0;
    }

    /// Ends Startup when the pipe is full, and Drain when the queue is gone.
    #[inline]
    fn check_drain(&mut self, connection: &Connection) {
        if self.mode == Mode::Startup && self.full_pipe.full_bw_reached {
            self.enter(Mode::Drain);
            self.ssthresh = self.inflight(self.max_bw.get(), Gain::ONE);
            self.signals.reset();
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(connection.in_flight, connection)
                <= self.inflight(self.max_bw.get(), Gain::ONE)
        {
            self.enter(Mode::ProbeBw);
            self.start_probe_down(&Moment::of(connection));
        }
    }

    /// ProbeBW's phases, and the upper bound.
    #[inline]
    fn update_cycle_phase(&mut self, ack: &Ack, bw: u32) {
        if !self.full_pipe.full_bw_reached {
            return;
        }
        let moment = Moment::of(&ack.connection);
        if self.adapt_upper_bounds(ack, &moment) || self.mode != Mode::ProbeBw {
            return;
        }
        let in_flight = || self.in_network_at_departure(ack.prior_in_flight, &ack.connection);
        match self.probe.phase {
            Phase::Cruise => {
                self.check_time_to_probe(ack, &moment);
            }
            Phase::Refill => {
                if self.rounds.round_start {
                    self.probe.bw_probe_samples = true;
                    self.start_probe_up(bw, &moment);
                }
            }
            Phase::Up => {
                let inflight_hi = self.probe.inflight_hi;
                let risky = self.probe.prev_probe_too_high && in_flight() >= inflight_hi;
                let mut is_done = risky;
                if risky {
                    self.probe.stopped_risky_probe = true;
                } else if ack.cwnd_limited && self.cwnd >= inflight_hi {
                    // The bound limits the bandwidth, so that its plateau says nothing.
                    self.full_pipe.restart(bw);
                } else {
                    is_done = self.full_pipe.full_bw_now;
                }
                if is_done {
                    self.probe.prev_probe_too_high = false;
                    self.start_probe_down(&moment);
                }
            }
            Phase::Down => {
                let in_flight = in_flight();
                if !self.check_time_to_probe(ack, &moment) && self.is_time_to_cruise(in_flight) {
                    self.start_cruise();
                }
            }
        }
    }

    /// Moves the upper bound by what the samples of a probe say; returns whether it began the next probe.
    #[inline]
    fn adapt_upper_bounds(&mut self, ack: &Ack, moment: &Moment) -> bool {
        let in_probe_bw = self.mode == Mode::ProbeBw;
        if self.rounds.round_start && self.probe.ack_phase == AckPhase::Starting {
            self.probe.ack_phase = AckPhase::Feedback;
        }
        if self.rounds.round_start && self.probe.ack_phase == AckPhase::Stopping {
            self.probe.bw_probe_samples = false;
            self.probe.ack_phase = AckPhase::Init;
            if in_probe_bw && !ack.sample.app_limited {
                self.max_bw.advance();
            }
            // It stopped for caution, and nothing was lost: probe again, beyond.
            if in_probe_bw && self.probe.stopped_risky_probe && !self.probe.prev_probe_too_high {
                self.start_refill(moment, 0);
                return true;
            }
        }
        let sample = self.sample_of(ack);
        if sample.is_too_high(&self.params) {
            if self.probe.bw_probe_samples {
                self.handle_inflight_too_high(&sample, moment);
            }
        } else if self.probe.inflight_hi != UNSET {
            // Whatever the phase: a random loss must not bound the flight for good.
            self.probe.inflight_hi = self.probe.inflight_hi.max(sample.tx_in_flight);
            if in_probe_bw && self.probe.phase == Phase::Up {
                self.probe_upward(ack);
            }
        }
        false
    }

    /// Linux: `bbr_probe_inflight_hi_upward`.
    #[inline]
    fn probe_upward(&mut self, ack: &Ack) {
        if !ack.cwnd_limited || self.cwnd < self.probe.inflight_hi {
            return;
        }
        if self.probe.raise(ack.newly_delivered) {
            self.try_fast_path = false;
        }
        if self.rounds.round_start {
            self.probe.raise_slope(self.cwnd);
        }
    }

    /// Begins the next probe if it is time; returns whether it is.
    #[inline]
    fn check_time_to_probe(&mut self, ack: &Ack, moment: &Moment) -> bool {
        let marks_ceased = self.params.ecn_reprobe_gain > Gain::from_q8(0)
            && self.ecn.ecn_eligible
            && self.signals.ecn_in_cycle
            && !self.signals.loss_in_cycle
            && ack.connection.state == CaState::Open;
        if marks_ceased {
            self.start_refill(moment, self.probe.reprobe_rounds(&self.params));
            return true;
        }
        let due = self.probe.has_waited(moment.now_us) || self.is_reno_coexistence_probe_time();
        if due {
            self.start_refill(moment, 0);
        }
        due
    }

    #[inline]
    fn is_reno_coexistence_probe_time(&self) -> bool {
        self.probe.rounds_since_probe >= self.params.bw_probe_max_rounds.min(self.target_inflight())
    }

    /// Linux: `bbr_check_time_to_cruise`.
    #[inline]
    fn is_time_to_cruise(&self, in_flight: u32) -> bool {
        in_flight <= self.probe.with_headroom(&self.params)
            && in_flight <= self.inflight(self.max_bw.get(), Gain::ONE)
    }

    /// The minimum RTT, and ProbeRTT from its beginning to its end.
    #[inline]
    fn update_min_rtt(&mut self, ack: &Ack) {
        let connection = &ack.connection;
        let before = self.min_rtt.min_rtt_us;
        let rtt_us = ack.rtt.map(Duration::as_micros);
        let expired = self.min_rtt.on_rtt(connection.jiffies, rtt_us, ack.maybe_delayed);
        if self.min_rtt.min_rtt_us != before {
            self.plan_bursts();
        }
        if expired && self.params.probe_rtt_mode_ms > 0 && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.enter(Mode::ProbeRtt);
            self.save_cwnd();
            self.min_rtt.probe_rtt_done_stamp = 0;
            self.probe.ack_phase = AckPhase::Stopping;
            self.rounds.begin(connection.delivered);
        }
        // Low rates in this mode are our own doing, so every ACK marks the sampler.
        self.mark_app_limited = self.mode == Mode::ProbeRtt;
        if self.mode == Mode::ProbeRtt {
            if self.min_rtt.probe_rtt_done_stamp != 0 {
                self.min_rtt.probe_rtt_round_done |= self.rounds.round_start;
                if self.min_rtt.probe_rtt_round_done {
                    self.check_probe_rtt_done(connection);
                }
            } else if connection.in_flight <= self.probe_rtt_cwnd() {
                self.min_rtt.begin_dwell(connection.jiffies);
                self.rounds.begin(connection.delivered);
            }
        }
        if ack.sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, connection: &Connection) {
        if !self.min_rtt.is_done(connection.jiffies) {
            return;
        }
        self.min_rtt.probe_rtt_min_stamp = connection.jiffies;
        self.cwnd = self.cwnd.max(self.prior_cwnd);
        // Linux: bbr_exit_probe_rtt.
        self.signals.reset_lower_bounds();
        if self.full_pipe.full_bw_reached {
            self.enter(Mode::ProbeBw);
            self.start_probe_down(&Moment::of(connection));
            self.start_cruise();
        } else {
            self.enter(Mode::Startup);
        }
    }

    /// Linux: `bbr_update_gains`.
    #[inline]
    fn update_gains(&mut self) {
        let params = &self.params;
        (self.pacing_gain, self.cwnd_gain) = match (self.mode, self.probe.phase) {
            (Mode::Startup, _) => (params.startup_gain, params.startup_cwnd_gain),
            (Mode::Drain, _) => (params.drain_gain, params.startup_cwnd_gain),
            (Mode::ProbeBw, Phase::Up) => {
                let quarters = Gain::ONE.q8() * params.bw_probe_cwnd_gain / 4;
                (params.probe_up_gain, Gain::from_q8(params.probe_bw_cwnd_gain.q8() + quarters))
            }
            (Mode::ProbeBw, Phase::Down) => (params.probe_down_gain, params.probe_bw_cwnd_gain),
            (Mode::ProbeBw, Phase::Cruise | Phase::Refill) => (Gain::ONE, params.probe_bw_cwnd_gain),
            // The window has a cap of its own.
            (Mode::ProbeRtt, _) => (Gain::ONE, Gain::ONE),
        };
    }

    // ---- the steps from phase to phase ----

    /// Changes the mode; nothing else does, except a restored record.
    fn enter(&mut self, to: Mode) {
        // In release builds nothing here may panic (crates/cc/tests/bpf).
        debug_assert!(self.mode.may_become(to), "BBRv3 has no step from {:?} to {to:?}", self.mode);
        self.mode = to;
    }

    /// Linux: `bbr_set_cycle_idx`.
    fn set_phase(&mut self, phase: Phase) {
        self.probe.phase = phase;
        self.try_fast_path = false;
    }

    /// Linux: `bbr_start_bw_probe_refill`.
    fn start_refill(&mut self, moment: &Moment, probe_up_rounds: u32) {
        self.signals.reset_lower_bounds();
        self.probe.bw_probe_up_rounds = probe_up_rounds;
        self.probe.bw_probe_up_acks = 0;
        self.probe.stopped_risky_probe = false;
        self.probe.ack_phase = AckPhase::Refilling;
        self.rounds.begin(moment.delivered);
        self.set_phase(Phase::Refill);
    }

    /// Linux: `bbr_start_bw_probe_up`.
    fn start_probe_up(&mut self, bw: u32, moment: &Moment) {
        self.probe.ack_phase = AckPhase::Starting;
        self.rounds.begin(moment.delivered);
        self.probe.cycle_mstamp = moment.now_us;
        self.full_pipe.restart(bw);
        self.set_phase(Phase::Up);
        self.probe.raise_slope(self.cwnd);
    }

    /// Linux: `bbr_start_bw_probe_down`.
    fn start_probe_down(&mut self, moment: &Moment) {
        self.signals.reset();
        self.probe.bw_probe_up_cnt = UNSET;
        self.probe.pick_wait(&self.params, moment.random);
        self.probe.cycle_mstamp = moment.now_us;
        self.probe.ack_phase = AckPhase::Stopping;
        self.rounds.begin(moment.delivered);
        self.set_phase(Phase::Down);
    }

    /// Linux: `bbr_start_bw_probe_cruise`.
    fn start_cruise(&mut self) {
        if self.signals.inflight_lo != UNSET {
            self.signals.inflight_lo = self.signals.inflight_lo.min(self.probe.inflight_hi);
        }
        self.set_phase(Phase::Cruise);
    }

    /// Startup, or a probe: congestion is its own doing.
    #[inline]
    fn is_probing_bandwidth(&self) -> bool {
        match self.mode {
            Mode::Startup => true,
            Mode::ProbeBw => matches!(self.probe.phase, Phase::Refill | Phase::Up),
            Mode::Drain | Mode::ProbeRtt => false,
        }
    }

    // ---- losses ----

    /// What the ACK's sample says of loss and marks.
    #[inline]
    fn sample_of(&self, ack: &Ack) -> Sample {
        let sample = &ack.sample;
        Sample {
            tx_in_flight: sample.tx_in_flight,
            lost: sample.lost_since_sent,
            delivered: sample.delivered.map_or(-1, |delivered| delivered as i32),
            delivered_ce: if self.ecn.ecn_eligible { sample.marked_since_sent } else { 0 },
            app_limited: sample.app_limited,
        }
    }

    /// A probe lost too much, or met too many marks: cuts the upper bound, and ends the probe.
    fn handle_inflight_too_high(&mut self, sample: &Sample, moment: &Moment) {
        self.probe.prev_probe_too_high = true;
        // One reaction a probe.
        self.probe.bw_probe_samples = false;
        if !sample.app_limited {
            let kept = Gain::from_q8(Gain::ONE.q8() - self.params.loss_cut.q8());
            let least = kept.times(self.target_inflight() as u64) as u32;
            self.probe.inflight_hi = sample.tx_in_flight.max(least);
        }
        if self.mode == Mode::ProbeBw && self.probe.phase == Phase::Up {
            self.start_probe_down(moment);
        }
    }

    /// Linux: `bbr_save_cwnd`; a window that is already cut only counts if it is larger.
    fn save_cwnd(&mut self) {
        let good = self.prev_ca_state < CaState::Recovery && self.mode != Mode::ProbeRtt;
        self.prior_cwnd = if good { self.cwnd } else { self.prior_cwnd.max(self.cwnd) };
    }

    // ---- what follows from the model ----

    /// The bandwidth to work with (Linux: `bbr_bw`).
    #[inline]
    fn bw(&self) -> u32 {
        self.max_bw.get().min(self.signals.bw_lo)
    }

    #[inline]
    fn bdp(&self, bw: u32, gain: Gain) -> u32 {
        match self.min_rtt.min_rtt_us {
            NO_RTT => self.init_cwnd,
            min_rtt_us => bandwidth::bdp(bw, min_rtt_us, gain),
        }
    }

    /// Room for bursts at both ends (Linux: `bbr_quantization_budget`).
    #[inline]
    fn quantise(&self, cwnd: u32) -> u32 {
        let cwnd = cwnd.max(self.burst_goal.wrapping_mul(3)).max(self.params.cwnd_min_target);
        let probing = self.mode == Mode::ProbeBw && self.probe.phase == Phase::Up;
        if probing { cwnd.wrapping_add(2) } else { cwnd }
    }

    /// Segments in flight for a bandwidth and a gain (Linux: `bbr_inflight`).
    #[inline]
    fn inflight(&self, bw: u32, gain: Gain) -> u32 {
        self.quantise(self.bdp(bw, gain))
    }

    /// How much is wanted in flight (Linux: `bbr_target_inflight`).
    #[inline]
    fn target_inflight(&self) -> u32 {
        self.inflight(self.bw(), Gain::ONE).min(self.cwnd)
    }

    #[inline]
    fn probe_rtt_cwnd(&self) -> u32 {
        self.bdp(self.bw(), self.params.probe_rtt_gain).max(self.params.cwnd_min_target)
    }

    /// Segments in the network when the next burst departs: pacing has already scheduled some of what counts as in flight
    /// (Linux: `bbr_packets_in_net_at_edt`).
    #[inline]
    fn in_network_at_departure(&self, in_flight: u32, connection: &Connection) -> u32 {
        let wait_us = connection.departure.saturating_since(connection.now).as_micros();
        let delivered = ((self.bw() as u64).wrapping_mul(wait_us) >> bandwidth::BW_SCALE) as u32;
        let burst = if self.pacing_gain > Gain::ONE { self.burst_goal } else { 0 };
        in_flight.wrapping_add(burst).saturating_sub(delivered)
    }

    #[inline]
    fn pacing_rate_for(&self, bw: u32, gain: Gain) -> u64 {
        bandwidth::bytes_per_sec(bw as u64, gain, self.mss, self.usecs_less_margin)
            .max(1)
            .min(self.max_pacing_rate)
    }

    /// Sets the pacing rate; until the pipe was full it only rises, but for the first RTT (Linux: `bbr_set_pacing_rate`).
    #[inline]
    fn set_pacing_rate(&mut self, bw: u32, gain: Gain, srtt: Duration) {
        let rate = self.pacing_rate_for(bw, gain);
        if !self.has_seen_rtt && srtt != Duration::ZERO {
            self.init_pacing_rate(srtt);
        }
        if (self.full_pipe.full_bw_reached || rate > self.pacing_rate) && rate != self.pacing_rate {
            self.pacing_rate = rate;
            self.plan_bursts();
        }
    }

    /// The window over the RTT, times Startup's gain (Linux: `bbr_init_pacing_rate_from_rtt`).
    fn init_pacing_rate(&mut self, srtt: Duration) {
        self.has_seen_rtt = srtt != Duration::ZERO;
        let rtt_us =
            if self.has_seen_rtt { (srtt.as_micros() as u32).max(1) } else { bandwidth::NOMINAL_RTT_US };
        let bw = ((self.cwnd as u64) << bandwidth::BW_SCALE) / rtt_us as u64;
        self.pacing_rate = self.pacing_rate_for(bw as u32, self.params.startup_gain);
        self.plan_bursts();
    }

    /// Segments in a burst, as it plans (Linux: `bbr_tso_segs_goal`).
    pub const fn burst_goal(&self) -> u32 {
        self.burst_goal
    }

    #[inline]
    fn plan_bursts(&mut self) {
        let min_rtt_us = self.min_rtt.min_rtt_us;
        self.burst_goal =
            pacing::burst_goal(&self.params, self.pacing_rate, min_rtt_us, self.mss, self.goal_max_bytes);
    }

    /// Linux: `bbr_set_cwnd`.
    #[inline]
    fn set_cwnd(&mut self, acked: u32, bw: u32) {
        let mut cwnd = self.cwnd;
        if acked > 0 {
            let extra = if self.params.extra_acked_gain > Gain::from_q8(0) {
                self.aggregation.bonus(
                    self.params.extra_acked_gain,
                    self.params.extra_acked_max_ms,
                    self.bw(),
                )
            } else {
                0
            };
            let target = self.quantise(self.bdp(bw, self.cwnd_gain).wrapping_add(extra));
            self.try_fast_path = false;
            if self.full_pipe.full_bw_reached {
                cwnd = cwnd.wrapping_add(acked);
                if cwnd >= target {
                    cwnd = target;
                    self.try_fast_path = true;
                }
            } else if cwnd < target || cwnd < 2 * self.init_cwnd {
                cwnd = cwnd.wrapping_add(acked);
            } else {
                self.try_fast_path = true;
            }
            cwnd = cwnd.max(self.params.cwnd_min_target);
        }
        cwnd = cwnd.min(self.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(self.probe_rtt_cwnd());
        }
        self.cwnd = cwnd;
    }

    /// Linux: `bbr_bound_cwnd_for_inflight_model`.
    #[inline]
    fn bound_cwnd(&mut self) {
        let cap = match (self.mode, self.probe.phase) {
            (Mode::ProbeRtt, _) | (Mode::ProbeBw, Phase::Cruise) => self.probe.with_headroom(&self.params),
            (Mode::ProbeBw, _) => self.probe.inflight_hi,
            (Mode::Startup | Mode::Drain, _) => UNSET,
        };
        self.cwnd = self.cwnd.min(cap.min(self.signals.inflight_lo).max(self.params.cwnd_min_target));
    }
}

impl Params {
    /// The codepoint of the flow's packets if it negotiates ECN.
    pub(crate) fn codepoint(&self) -> Option<Ect> {
        self.ecn.then_some(Ect::Zero)
    }
}

impl Controller for Bbr3Linux {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        let connection = &start.connection;
        self.random = connection.random;
        self.mark_app_limited = false;
        if !connection.app_limited {
            return;
        }
        self.idle_restart = true;
        self.aggregation.restart(connection.now.as_micros());
        match self.mode {
            // No need to probe or drain with an empty pipe: restart at the estimated bandwidth.
            Mode::ProbeBw => self.set_pacing_rate(self.bw(), Gain::ONE, connection.srtt),
            Mode::ProbeRtt => self.check_probe_rtt_done(connection),
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Linux exempts controllers that set the window themselves from window validation.
    fn on_window_unused(&mut self, _: &WindowUnused) {}

    fn on_sent(&mut self, _: &Sent) {}

    /// BBR has no use for it: [`Ack::rtt`] is the same.
    #[inline]
    fn on_rtt(&mut self, _: &RttSample) {}

    fn on_ce(&mut self, marks: &CeMarks) {
        self.ecn.is_ece = marks.echoed;
        self.ecn.delivered_ce = self.ecn.delivered_ce.wrapping_add(marks.units);
        if marks.echoed {
            // The core no longer undoes the reduction that they prove.
            self.prior_ssthresh.forbid();
        }
    }

    /// Linux: `bbr_run_loss_probe_recovery`.
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        if !self.params.loss_probe_recovery {
            return;
        }
        self.signals.note_loss(repair.delivered);
        if !self.probe.bw_probe_samples {
            return;
        }
        // One segment, of as many as a round trip delivers at most.
        let sample = Sample {
            tx_in_flight: self.signals.inflight_latest.wrapping_add(1),
            lost: 1,
            app_limited: repair.app_limited,
            ..Sample::default()
        };
        if sample.is_too_high(&self.params) {
            let moment =
                Moment { now_us: repair.now.as_micros(), delivered: repair.delivered, random: self.random };
            self.handle_inflight_too_high(&sample, &moment);
        }
    }

    /// TCP discards nothing.
    fn on_discarded(&mut self, _: &Discarded) {}

    /// Linux: `bbr_skb_marked_lost`.
    fn on_lost(&mut self, lost: &Lost) {
        self.signals.note_loss(lost.delivered);
        if !self.probe.bw_probe_samples {
            return;
        }
        let sample = Sample {
            tx_in_flight: lost.tx_in_flight,
            lost: lost.lost.wrapping_sub(lost.tx_lost) as u32,
            app_limited: lost.app_limited,
            ..Sample::default()
        };
        if sample.is_too_high(&self.params) {
            let tx_in_flight = sample.inflight_at_loss(&self.params, lost.units);
            let moment =
                Moment { now_us: lost.now.as_micros(), delivered: lost.delivered, random: self.random };
            self.handle_inflight_too_high(&Sample { tx_in_flight, ..sample }, &moment);
        }
    }

    fn on_state(&mut self, change: &StateChange) {
        self.random = change.connection.random;
        self.prior_ssthresh.on_state(change, self.cwnd, self.ssthresh);
        if change.reduce {
            // Linux: bbr_ssthresh; the threshold itself stays.
            self.save_cwnd();
            self.undoable = Undoable {
                bw_lo: self.signals.bw_lo,
                inflight_lo: self.signals.inflight_lo,
                inflight_hi: self.probe.inflight_hi,
            };
        }
        if change.to == CaState::Loss {
            // The core's part of a timeout (tcp_enter_loss) ...
            self.cwnd = change.connection.in_flight + 1;
            // ... and BBR's (bbr_set_state).
            self.prev_ca_state = CaState::Loss;
            self.full_pipe.restart(0);
            if !self.is_probing_bandwidth() && self.signals.inflight_lo == UNSET {
                self.signals.inflight_lo = self.cwnd.max(self.prior_cwnd);
            }
        } else if self.prev_ca_state == CaState::Loss {
            // Linux: bbr_exit_loss_recovery.
            self.cwnd = self.cwnd.max(self.prior_cwnd);
            self.try_fast_path = false;
        }
    }

    /// Linux: `bbr_undo_cwnd`.
    fn on_undo(&mut self, _: &Undo) {
        let Some(prior_ssthresh) = self.prior_ssthresh.get() else { return };
        self.full_pipe.restart(0);
        self.signals.loss_in_round = false;
        self.signals.bw_lo = self.signals.bw_lo.max(self.undoable.bw_lo);
        self.signals.inflight_lo = self.signals.inflight_lo.max(self.undoable.inflight_lo);
        self.probe.inflight_hi = self.probe.inflight_hi.max(self.undoable.inflight_hi);
        self.try_fast_path = false;
        self.cwnd = self.prior_cwnd;
        self.ssthresh = self.ssthresh.max(prior_ssthresh);
    }

    /// Linux: `bbr_main`.
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let connection = &ack.connection;
        self.random = connection.random;
        let (bw, has_sample) = self.observe(ack);
        let (is_done, update_model) = self.run_fast_path(ack, bw);
        if !is_done {
            if update_model {
                self.update_model(ack, bw, has_sample);
            }
            self.update_gains();
            let bw = self.bw();
            self.set_pacing_rate(bw, self.pacing_gain, connection.srtt);
            self.set_cwnd(ack.newly_delivered, bw);
            self.bound_cwnd();
        }
        // Linux: bbr_advance_latest_delivery_signals. If a tail probe repaired a loss, what the round before it delivered counts.
        if self.signals.loss_round_start && !ack.may_answer_probe {
            self.signals.bw_latest = bw;
            self.signals.inflight_latest = ack.sample.delivered.unwrap_or(u32::MAX);
        }
        self.prev_ca_state = connection.state;
        self.signals.loss_in_cycle |= ack.sample.lost_since_sent as i32 > 0;
        self.signals.ecn_in_cycle |= ack.sample.marked_since_sent as i32 > 0;
        self.ecn.is_ece = false;
    }

    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
        self.plan_bursts();
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            cwnd: self.cwnd,
            ssthresh: self.ssthresh,
            pacing_rate: Rate::from_bytes_per_sec(self.pacing_rate),
            // The host adds what the rate and its own minimum RTT allow, as bbr_tso_segs does.
            min_burst: self.params.min_tso_segs,
            mark_app_limited: self.mark_app_limited,
            check_app_limited: true,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match (self.mode, self.probe.phase) {
            (Mode::Startup, _) => controller::Phase::Startup,
            (Mode::Drain, _) => controller::Phase::Drain,
            (Mode::ProbeBw, Phase::Up) => controller::Phase::ProbeBwUp,
            (Mode::ProbeBw, Phase::Down) => controller::Phase::ProbeBwDown,
            (Mode::ProbeBw, Phase::Cruise) => controller::Phase::ProbeBwCruise,
            (Mode::ProbeBw, Phase::Refill) => controller::Phase::ProbeBwRefill,
            (Mode::ProbeRtt, _) => controller::Phase::ProbeRtt,
        };
        let (bw, min_rtt_us) = (self.bw() as u64, self.min_rtt.min_rtt_us);
        Snapshot {
            phase,
            bandwidth: (bw > 0).then(|| {
                Rate::from_bytes_per_sec(bandwidth::bytes_per_sec(bw, Gain::ONE, self.mss, 1_000_000))
            }),
            min_rtt: (min_rtt_us != NO_RTT).then(|| Duration::from_micros(min_rtt_us as u64)),
        }
    }
}
