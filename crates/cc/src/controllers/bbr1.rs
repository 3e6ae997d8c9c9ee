//! BBR version 1, exactly as Linux has it: pace at the bottleneck's bandwidth, keep about two bandwidth-delay products
//! in flight, and once in ten seconds empty the queue to see the minimum RTT.
//!
//! Specification: Linux 6.12 `net/ipv4/tcp_bbr.c`; Cardwell et al., ACM Queue 14(5), 2016. Deviations:
//! docs/reference/deviations.md#bbr1.
//!
//! This file has the order of events; each concept of the specification has its own file:
//! [`params`], `mode` (the modes, and the steps between them), `full_pipe` (the plateau that ends Startup), `policer` (long-term
//! bandwidth), `cycle` (gains of ProbeBW), `probe_rtt` (minimum RTT), `pacing` (bursts), `cwnd` (window and recovery). What it
//! shares with BBRv3 is in [`crate::controllers::bbr`].
//!
//! Arithmetic is the kernel's: bandwidth in segments a microsecond times 2^24, gains in 1/256, stamps in microseconds or
//! jiffies, all in 32 bits that wrap. [`Bbr1::state`] and [`Bbr1::restore`] expose every field of the kernel's `struct bbr`
//! under its own name, to replay recorded calls.

mod cwnd;
mod cycle;
mod full_pipe;
mod mode;
mod pacing;
pub mod params;
mod policer;
mod probe_rtt;
mod state;

use crate::controller::*;
use crate::controllers::bbr::ack_aggregation::{AckAggregation, Delivery};
use crate::controllers::bbr::bandwidth::{self, NO_RTT};
use crate::controllers::bbr::rounds::Rounds;
use crate::controllers::recovery::PriorThreshold;
use crate::gain::Gain;
use crate::windowed::WindowedMax;
use cycle::Cycle;
use full_pipe::FullPipe;
use fullpipe_units::{Duration, Rate};
pub use mode::Mode;
pub(crate) use params::INFO;
pub use params::Params;
use policer::{Policer, Verdict};
use probe_rtt::ProbeRtt;
pub use state::State;

/// BBRv1.
#[derive(Clone, Copy, Debug)]
pub struct Bbr1 {
    params: Params,
    mss: u32,
    cwnd_clamp: u32,
    max_pacing_rate: u64,
    usecs_less_margin: u64,
    // What the kernel's socket holds.
    cwnd: u32,
    ssthresh: u32,
    prior_ssthresh: PriorThreshold,
    /// Bytes a second.
    pacing_rate: u64,
    /// Segments in a burst at that rate.
    burst_goal: u32,
    mark_app_limited: bool,
    /// The last draw, for a phase that starts without an ACK.
    random: u32,
    // What the kernel's `struct bbr` holds.
    mode: Mode,
    pacing_gain: Gain,
    cwnd_gain: Gain,
    rounds: Rounds,
    idle_restart: bool,
    has_seen_rtt: bool,
    max_bw: WindowedMax,
    policer: Policer,
    aggregation: AckAggregation,
    full_pipe: FullPipe,
    probe_rtt: ProbeRtt,
    cycle: Cycle,
    recovery: cwnd::Recovery,
}

impl Bbr1 {
    /// A flow whose handshake is done (Linux: `bbr_init`).
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Bbr1 {
        let min_rtt_us = connection.min_rtt.as_micros().min(NO_RTT as u64) as u32;
        let mut bbr = Bbr1 {
            params: Params { tso_goal_max_bytes: pacing::goal_max_bytes(params, config), ..*params },
            mss: config.mss,
            cwnd_clamp: config.cwnd_clamp,
            max_pacing_rate: config.max_pacing_rate.as_bytes_per_sec(),
            usecs_less_margin: bandwidth::usecs_less_margin(params.pacing_margin_percent),
            cwnd: config.initial_cwnd.min(config.cwnd_clamp),
            ssthresh: Limits::INFINITE,
            prior_ssthresh: PriorThreshold::default(),
            pacing_rate: 0,
            burst_goal: 0,
            mark_app_limited: false,
            random: 0,
            mode: Mode::Startup,
            // Linux leaves the gains at zero until the first ACK.
            pacing_gain: Gain::from_q8(0),
            cwnd_gain: Gain::from_q8(0),
            rounds: Rounds::new(connection.delivered),
            idle_restart: false,
            has_seen_rtt: false,
            max_bw: WindowedMax::new(0, 0),
            policer: Policer::default(),
            aggregation: AckAggregation::default(),
            full_pipe: FullPipe::default(),
            probe_rtt: ProbeRtt::new(params, config.hz, min_rtt_us, connection.jiffies),
            cycle: Cycle::default(),
            recovery: cwnd::Recovery::default(),
        };
        bbr.init_pacing_rate(connection.srtt);
        bbr.reset_policer(connection);
        bbr.aggregation.restart(connection.now.as_micros());
        bbr
    }

    // ---- the model, in the order of an ACK ----

    /// Round, policer and bandwidth (Linux: `bbr_update_bw`). Returns whether the ACK carries a valid rate sample.
    #[inline]
    fn update_bw(&mut self, ack: &Ack) -> bool {
        self.rounds.round_start = false;
        let Some((delivered, interval_us)) = valid(&ack.sample) else { return false };
        if self.rounds.on_sample(ack.sample.prior_delivered, ack.connection.delivered) {
            self.recovery.packet_conservation = false;
        }
        self.update_policer(&ack.connection, ack.newly_lost > 0, ack.sample.app_limited);
        let bw = ((delivered as u64) << bandwidth::BW_SCALE) / interval_us;
        // The application's rate says nothing about the path, unless it is above what the path seemed capable of.
        if !ack.sample.app_limited || bw >= self.max_bw.get() as u64 {
            self.max_bw.update(self.params.bw_window_rounds, self.rounds.rtt_cnt, bw as u32);
        }
        true
    }

    #[inline]
    fn update_policer(&mut self, connection: &Connection, newly_lost: bool, app_limited: bool) {
        // Almost every call ends here.
        let idle = !self.policer.lt_use_bw && !self.policer.lt_is_sampling && !newly_lost;
        if idle || !self.params.lt_bw {
            return;
        }
        let delivered_us = connection.delivered_time.as_micros();
        let verdict = self.policer.observe(
            &self.params,
            &policer::Observation {
                delivered: connection.delivered as u32,
                lost: connection.lost as u32,
                delivered_us,
                newly_lost,
                app_limited,
                round_start: self.rounds.round_start,
                in_probe_bw: self.mode == Mode::ProbeBw,
                mss: self.rate_bytes(),
            },
        );
        match verdict {
            Verdict::Nothing => {}
            Verdict::Found => self.pacing_gain = Gain::ONE,
            Verdict::Released => self.enter_probe_bw(delivered_us),
        }
    }

    /// Whether ProbeBW's phase is over (Linux: `bbr_is_next_cycle_phase`). The gain is still that of the last ACK.
    #[inline]
    fn is_phase_over(&self, ack: &Ack, delivered_us: u64) -> bool {
        let full_length = self.cycle.is_full_length(delivered_us, self.probe_rtt.min_rtt_us);
        let gain = self.pacing_gain;
        if gain == Gain::ONE {
            return full_length;
        }
        let in_net = || self.in_network_at_departure(ack.prior_in_flight, &ack.connection);
        if gain > Gain::ONE {
            full_length && (ack.newly_lost > 0 || in_net() >= self.inflight(self.max_bw.get(), gain))
        } else {
            full_length || in_net() <= self.inflight(self.max_bw.get(), Gain::ONE)
        }
    }

    /// Ends Startup when the pipe is full, and Drain when the queue is gone (Linux: `bbr_check_drain`).
    #[inline]
    fn check_drain(&mut self, connection: &Connection, delivered_us: u64) {
        if self.mode == Mode::Startup && self.full_pipe.full_bw_reached {
            self.enter(Mode::Drain);
            self.ssthresh = self.inflight(self.max_bw.get(), Gain::ONE);
        }
        if self.mode == Mode::Drain
            && self.in_network_at_departure(connection.in_flight, connection)
                <= self.inflight(self.max_bw.get(), Gain::ONE)
        {
            self.enter_probe_bw(delivered_us);
        }
    }

    /// The minimum RTT, and ProbeRTT from its beginning to its end (Linux: `bbr_update_min_rtt`).
    #[inline]
    fn update_min_rtt(&mut self, ack: &Ack) {
        let connection = &ack.connection;
        let rtt_us = ack.rtt.map(Duration::as_micros);
        let expired = self.probe_rtt.on_rtt(connection.jiffies, rtt_us, ack.maybe_delayed);
        if expired && self.params.probe_rtt_ms > 0 && !self.idle_restart && self.mode != Mode::ProbeRtt {
            self.enter(Mode::ProbeRtt);
            self.recovery.save(self.cwnd, true);
            self.probe_rtt.probe_rtt_done_stamp = 0;
        }
        // Low rates in this mode are our own doing, so every ACK marks the sampler.
        self.mark_app_limited = self.mode == Mode::ProbeRtt;
        if self.mode == Mode::ProbeRtt {
            if self.probe_rtt.probe_rtt_done_stamp != 0 {
                self.probe_rtt.probe_rtt_round_done |= self.rounds.round_start;
                if self.probe_rtt.probe_rtt_round_done {
                    self.check_probe_rtt_done(connection.jiffies, connection.delivered_time.as_micros());
                }
            } else if connection.in_flight <= self.params.cwnd_min_target {
                self.probe_rtt.begin_dwell(connection.jiffies);
                self.rounds.begin(connection.delivered);
            }
        }
        if ack.sample.delivered.is_some_and(|delivered| delivered > 0) {
            self.idle_restart = false;
        }
    }

    fn check_probe_rtt_done(&mut self, jiffies: u32, delivered_us: u64) {
        if !self.probe_rtt.is_done(jiffies) {
            return;
        }
        self.probe_rtt.min_rtt_stamp = jiffies;
        self.cwnd = self.cwnd.max(self.recovery.prior_cwnd);
        if self.full_pipe.full_bw_reached {
            self.enter_probe_bw(delivered_us);
        } else {
            self.enter(Mode::Startup);
        }
    }

    /// Changes the mode; nothing else does, except a restored record.
    fn enter(&mut self, to: Mode) {
        assert!(self.mode.may_become(to), "BBRv1 has no step from {:?} to {to:?}", self.mode);
        self.mode = to;
    }

    fn enter_probe_bw(&mut self, delivered_us: u64) {
        self.enter(Mode::ProbeBw);
        self.cycle.restart(&self.params, self.random, delivered_us);
    }

    /// Linux: `bbr_update_gains`.
    #[inline]
    fn update_gains(&mut self) {
        (self.pacing_gain, self.cwnd_gain) = match self.mode {
            Mode::Startup => (self.params.high_gain, self.params.high_gain),
            Mode::Drain => (self.params.drain_gain, self.params.high_gain),
            Mode::ProbeBw if self.policer.lt_use_bw => (Gain::ONE, self.params.cwnd_gain),
            Mode::ProbeBw => (self.cycle.pacing_gain(&self.params), self.params.cwnd_gain),
            Mode::ProbeRtt => (Gain::ONE, Gain::ONE),
        };
    }

    // ---- what follows from the model ----

    /// The bandwidth to work with: the policer's, or the filter's maximum.
    #[inline]
    fn bw(&self) -> u32 {
        if self.policer.lt_use_bw { self.policer.lt_bw } else { self.max_bw.get() }
    }

    /// Segments in flight for a bandwidth and a gain (Linux: `bbr_inflight`).
    #[inline]
    fn inflight(&self, bw: u32, gain: Gain) -> u32 {
        self.quantise(bandwidth::bdp(bw, self.probe_rtt.min_rtt_us, gain))
    }

    #[inline]
    fn quantise(&self, cwnd: u32) -> u32 {
        let probing = self.mode == Mode::ProbeBw && self.cycle.cycle_idx == 0;
        cwnd::quantise(cwnd, self.burst_goal, probing)
    }

    /// Segments in the network when the next burst departs: pacing has already scheduled some of what counts as in
    /// flight (Linux: `bbr_packets_in_net_at_edt`).
    #[inline]
    fn in_network_at_departure(&self, in_flight: u32, connection: &Connection) -> u32 {
        let wait_us = connection.departure.saturating_since(connection.now).as_micros();
        let delivered = ((self.bw() as u64).wrapping_mul(wait_us) >> bandwidth::BW_SCALE) as u32;
        let at_departure = in_flight + if self.pacing_gain > Gain::ONE { self.burst_goal } else { 0 };
        at_departure.saturating_sub(delivered)
    }

    /// The bytes of a segment that count in a rate (Linux: `mss_cache`; before 4.20 the packet that carries it).
    #[inline]
    fn rate_bytes(&self) -> u32 {
        self.mss + self.params.unpaced_header_bytes
    }

    #[inline]
    fn pacing_rate_for(&self, bw: u32, gain: Gain) -> u64 {
        bandwidth::bytes_per_sec(bw as u64, gain, self.rate_bytes(), self.usecs_less_margin)
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

    /// The window over the RTT, times the high gain (Linux: `bbr_init_pacing_rate_from_rtt`).
    fn init_pacing_rate(&mut self, srtt: Duration) {
        let rtt_us = if srtt == Duration::ZERO {
            bandwidth::NOMINAL_RTT_US
        } else {
            self.has_seen_rtt = true;
            (srtt.as_micros() as u32).max(1)
        };
        let bw = ((self.cwnd as u64) << bandwidth::BW_SCALE) / rtt_us as u64;
        self.pacing_rate = self.pacing_rate_for(bw as u32, self.params.high_gain);
        self.plan_bursts();
    }

    #[inline]
    fn plan_bursts(&mut self) {
        self.burst_goal = pacing::burst_goal(&self.params, self.pacing_rate, self.mss);
    }

    /// Linux: `bbr_set_cwnd`.
    #[inline]
    fn set_cwnd(&mut self, ack: &Ack, bw: u32) {
        let mut cwnd = self.cwnd;
        if ack.newly_delivered > 0 {
            let recovered = self.recovery.on_ack(
                cwnd,
                &cwnd::Progress {
                    state: ack.connection.state,
                    newly_delivered: ack.newly_delivered,
                    newly_lost: ack.newly_lost,
                    in_flight: ack.connection.in_flight,
                },
            );
            cwnd = recovered.cwnd;
            if recovered.round_begins {
                self.rounds.begin(ack.connection.delivered);
            }
            if !recovered.conserved {
                let full = self.full_pipe.full_bw_reached;
                let bonus = if full {
                    self.aggregation.bonus(self.params.extra_acked_gain, self.params.extra_acked_max_ms, bw)
                } else {
                    0
                };
                let target =
                    bandwidth::bdp(bw, self.probe_rtt.min_rtt_us, self.cwnd_gain).wrapping_add(bonus);
                let target = self.quantise(target);
                cwnd = cwnd::approach(
                    &self.params,
                    cwnd,
                    target,
                    ack.newly_delivered,
                    full,
                    ack.connection.delivered as u32,
                );
            }
        }
        cwnd = cwnd.min(self.cwnd_clamp);
        if self.mode == Mode::ProbeRtt {
            cwnd = cwnd.min(self.params.cwnd_min_target);
        }
        self.cwnd = cwnd;
    }

    fn reset_policer(&mut self, connection: &Connection) {
        let delivered_us = connection.delivered_time.as_micros();
        self.policer.reset(connection.delivered as u32, connection.lost as u32, delivered_us);
    }
}

/// Delivered and a positive interval in microseconds, if the sample has both.
#[inline]
fn valid(sample: &RateSample) -> Option<(u32, u64)> {
    let interval_us = sample.interval?.as_micros();
    if interval_us == 0 { None } else { Some((sample.delivered?, interval_us)) }
}

impl Controller for Bbr1 {
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
            Mode::ProbeRtt => {
                self.check_probe_rtt_done(connection.jiffies, connection.delivered_time.as_micros());
            }
            Mode::Startup | Mode::Drain => {}
        }
    }

    /// Linux exempts controllers that set the window themselves from window validation.
    fn on_window_unused(&mut self, _: &WindowUnused) {}

    fn on_sent(&mut self, _: &Sent) {}

    /// BBR has no use for it: [`Ack::rtt`] is the same.
    #[inline]
    fn on_rtt(&mut self, _: &RttSample) {}

    /// Losses count once an ACK, in [`Ack::newly_lost`].
    fn on_lost(&mut self, _: &Lost) {}

    /// BBRv1 knows only losses that are marked.
    fn on_tail_repair(&mut self, _: &TailRepair) {}

    /// A discarded packet says nothing about congestion.
    fn on_discarded(&mut self, _: &Discarded) {}

    /// BBRv1 ignores marks, but the core no longer undoes the reduction that they prove.
    fn on_ce(&mut self, marks: &CeMarks) {
        if marks.echoed {
            self.prior_ssthresh.forbid();
        }
    }

    fn on_state(&mut self, change: &StateChange) {
        self.random = change.connection.random;
        self.prior_ssthresh.on_state(change, self.cwnd, self.ssthresh);
        if change.reduce {
            // Linux: bbr_ssthresh; the threshold itself stays.
            self.recovery.save(self.cwnd, self.mode == Mode::ProbeRtt);
        }
        if change.to == CaState::Loss {
            // The core's part of a timeout (tcp_enter_loss) ...
            self.cwnd = change.connection.in_flight + 1;
            // ... and BBR's (bbr_set_state): it ends the round, and counts as a loss for the policer.
            self.recovery.prev_ca_state = CaState::Loss;
            self.full_pipe.full_bw = 0;
            self.rounds.round_start = true;
            self.update_policer(&change.connection, true, false);
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        let Some(prior_ssthresh) = self.prior_ssthresh.get() else { return };
        self.full_pipe.full_bw = 0;
        self.full_pipe.full_bw_cnt = 0;
        self.reset_policer(&undo.connection);
        self.ssthresh = self.ssthresh.max(prior_ssthresh);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let connection = &ack.connection;
        let delivered_us = connection.delivered_time.as_micros();
        self.random = connection.random;
        let sampled = self.update_bw(ack);
        if sampled && ack.newly_delivered > 0 && self.params.extra_acked_gain > Gain::from_q8(0) {
            let acked = Delivery {
                window_rounds: self.params.extra_acked_win_rtts,
                segments: ack.newly_delivered,
                round_start: self.rounds.round_start,
                bw: self.bw(),
                delivered_us,
                cwnd: self.cwnd,
            };
            self.aggregation.on_ack(&acked);
        }
        if self.mode == Mode::ProbeBw && self.is_phase_over(ack, delivered_us) {
            self.cycle.advance(delivered_us);
        }
        if self.rounds.round_start && !self.full_pipe.full_bw_reached && !ack.sample.app_limited {
            self.full_pipe.on_round(self.params.full_bw_thresh, self.params.full_bw_cnt, self.max_bw.get());
        }
        self.check_drain(connection, delivered_us);
        self.update_min_rtt(ack);
        self.update_gains();
        let bw = self.bw();
        self.set_pacing_rate(bw, self.pacing_gain, connection.srtt);
        self.set_cwnd(ack, bw);
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
            min_burst: bandwidth::min_burst(self.params.min_tso_rate_bps, self.pacing_rate),
            mark_app_limited: self.mark_app_limited,
            check_app_limited: false,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match self.mode {
            Mode::Startup => Phase::Startup,
            Mode::Drain => Phase::Drain,
            Mode::ProbeBw if self.pacing_gain > Gain::ONE => Phase::ProbeBwUp,
            Mode::ProbeBw if self.pacing_gain < Gain::ONE => Phase::ProbeBwDown,
            Mode::ProbeBw => Phase::ProbeBwCruise,
            Mode::ProbeRtt => Phase::ProbeRtt,
        };
        let bw = self.bw() as u64;
        let min_rtt_us = self.probe_rtt.min_rtt_us;
        Snapshot {
            phase,
            // Linux: bbr_get_info.
            bandwidth: (bw > 0).then(|| {
                Rate::from_bytes_per_sec(
                    bw.wrapping_mul(self.mss as u64).wrapping_mul(1_000_000) >> bandwidth::BW_SCALE,
                )
            }),
            min_rtt: (min_rtt_us != NO_RTT).then(|| Duration::from_micros(min_rtt_us as u64)),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::phase::stock;
    use crate::testing::{CONFIG, Flow};
    use crate::windowed::WindowedMax;
    use fullpipe_units::Time;
    use std::format;
    use std::string::String;

    /// A gain of one, as the kernel keeps it.
    const ONE: u32 = Gain::ONE.q8();

    #[test]
    fn default_gains_match_stock_kernels() {
        let Params { high_gain, drain_gain, probe_gain, probe_drain_gain, .. } = Params::default();
        let gains = [high_gain, drain_gain, probe_gain, probe_drain_gain, Gain::ONE].map(Gain::q8);
        assert_eq!(gains, [stock::HIGH, stock::DRAIN, stock::PROBE, stock::PROBE_DRAIN, stock::ONE]);
    }

    /// A flow in ProbeBW that believes in 100 segments in 100 ms.
    fn in_probe_bw(flow: &Flow, cycle_idx: u32, pacing_gain: u32) -> Bbr1 {
        let mut bbr = Bbr1::new(&Params::default(), &CONFIG, &flow.connection);
        let bw = WindowedMax::new(0, ((100u64 << 24) / 100_000) as u32);
        let state = State {
            mode: Mode::ProbeBw,
            cycle_idx,
            pacing_gain,
            cwnd_gain: 512,
            bw,
            full_bw: bw.get(),
            full_bw_reached: true,
            // The last phase began an RTT and a bit ago.
            cycle_mstamp: flow.connection.now.as_micros() - 100_001,
            pacing_rate: 1_400_000,
            snd_cwnd: 212,
            ..bbr.state()
        };
        bbr.restore(&state);
        bbr
    }

    /// The state after one ACK, for a flow with 150 segments in flight where the pipe holds 100.
    fn after_an_ack_in(from: Mode, change: impl Fn(&mut Flow, &mut State)) -> State {
        let mut flow = Flow::new();
        let mut bbr = in_probe_bw(&flow, 3, ONE);
        let mut state = State { mode: from, ..bbr.state() };
        flow.connection.in_flight = 150;
        change(&mut flow, &mut state);
        bbr.restore(&state);
        bbr.on_ack(&flow.ack(1));
        bbr.state()
    }

    #[test]
    fn mode_transitions_match_linux_exactly() {
        let expire = |flow: &mut Flow| flow.pass(Duration::from_millis(10_001));
        let dwelt = |flow: &Flow, state: &mut State| {
            state.probe_rtt_done_stamp = flow.connection.jiffies - 1;
            state.probe_rtt_round_done = true;
        };
        let released = after_an_ack_in(Mode::ProbeBw, |_, state| {
            (state.lt_use_bw, state.lt_bw, state.lt_rtt_cnt) = (true, 1 << 14, 47);
        });
        assert!(!released.lt_use_bw, "the policer's rate has expired, and ProbeBW begins anew");
        let taken = [
            (Mode::Startup, after_an_ack_in(Mode::Startup, |_, _| {}).mode),
            (Mode::Drain, after_an_ack_in(Mode::Drain, |flow, _| flow.connection.in_flight = 90).mode),
            (Mode::ProbeBw, released.mode),
            (
                Mode::Startup,
                after_an_ack_in(Mode::Startup, |flow, state| {
                    expire(flow);
                    state.full_bw_reached = false;
                })
                .mode,
            ),
            (Mode::Drain, after_an_ack_in(Mode::Drain, |flow, _| expire(flow)).mode),
            (Mode::ProbeBw, after_an_ack_in(Mode::ProbeBw, |flow, _| expire(flow)).mode),
            (
                Mode::ProbeRtt,
                after_an_ack_in(Mode::ProbeRtt, |flow, state| {
                    dwelt(flow, state);
                    state.full_bw_reached = false;
                })
                .mode,
            ),
            (Mode::ProbeRtt, after_an_ack_in(Mode::ProbeRtt, |flow, state| dwelt(flow, state)).mode),
        ];
        assert_eq!(taken, mode::STEPS.map(|(from, to, _)| (from, to)));
        let modes = [Mode::Startup, Mode::Drain, Mode::ProbeBw, Mode::ProbeRtt];
        for (from, to) in modes.into_iter().flat_map(|from| modes.map(|to| (from, to))) {
            let step = std::panic::catch_unwind(|| {
                let mut bbr = in_probe_bw(&Flow::new(), 3, ONE);
                bbr.mode = from;
                bbr.enter(to);
            });
            assert_eq!(step.is_ok(), taken.contains(&(from, to)), "{from:?} to {to:?}");
        }
    }

    #[test]
    fn unpaced_headers_raise_rate_above_estimate() {
        let flow = Flow::new();
        let bw = ((100u64 << 24) / 100_000) as u32;
        let rate =
            |params: Params| Bbr1::new(&params, &CONFIG, &flow.connection).pacing_rate_for(bw, Gain::ONE);
        let exact = Params { pacing_margin_percent: 0, ..Params::default() };
        let headers = CONFIG.mss / 25;
        let faster = Params { unpaced_header_bytes: headers, ..exact };
        // Both are cut to whole bytes a second; so are the bandwidth's 2^-24 segments a microsecond.
        assert_eq!(rate(faster), rate(exact) * (CONFIG.mss + headers) as u64 / CONFIG.mss as u64);
        assert!(rate(faster) > rate(exact) && rate(exact) > rate(Params::default()));
    }

    #[test]
    fn fills_pipe_then_drains_and_cruises() {
        let mut flow = Flow::new();
        let mut bbr = Bbr1::new(&Params::default(), &CONFIG, &flow.connection);
        let mut table = String::from("round delivered phase            cwnd KB/s\n");
        for round in 1..=19 {
            flow.pass(Duration::from_millis(100));
            // What was sent a round ago arrives, as much as the pipe carries; Drain finds its queue gone. One ACK a round is
            // aggregation at its worst, hence a window of three products; and a phase, longer than an RTT, lasts two.
            let delivered = bbr.limits().cwnd.min(100);
            flow.connection.in_flight =
                if bbr.snapshot().phase == Phase::Drain { 90 } else { bbr.limits().cwnd };
            flow.connection.random = 3;
            bbr.on_ack(&flow.ack(delivered));
            let (limits, phase) = (bbr.limits(), bbr.snapshot().phase.name());
            let rate = limits.pacing_rate.as_bytes_per_sec() / 1_000;
            table += &format!("{round:5} {delivered:9} {phase:16} {:4} {rate:4}\n", limits.cwnd);
        }
        let expected = "\
round delivered phase            cwnd KB/s
    1        10 startup            20  413
    2        20 startup            40  827
    3        40 startup            80 1655
    4        80 startup           160 3310
    5       100 startup           260 4138
    6       100 startup           360 4138
    7       100 startup           360 4138
    8       100 drain             394  492
    9       100 probe_bw_cruise   306 1433
   10       100 probe_bw_cruise   306 1433
   11       100 probe_bw_cruise   306 1433
   12       100 probe_bw_cruise   306 1433
   13       100 probe_bw_cruise   306 1433
   14       100 probe_bw_cruise   306 1433
   15       100 probe_bw_up       308 1791
   16       100 probe_bw_up       308 1791
   17       100 probe_bw_down     306 1075
   18       100 probe_bw_down     306 1075
   19       100 probe_bw_cruise   306 1433
";
        assert_eq!(table, expected, "\n{table}");
    }

    #[test]
    fn startup_slows_only_at_first_rtt() {
        let mut flow = Flow::new();
        flow.connection.srtt = Duration::ZERO;
        let mut bbr = Bbr1::new(&Params::default(), &CONFIG, &flow.connection);
        let nominal = bbr.state().pacing_rate;
        flow.connection.srtt = Duration::from_millis(100);
        flow.pass(Duration::from_millis(100));
        bbr.on_ack(&Ack { sample: RateSample::NONE, ..flow.ack(0) });
        let measured = bbr.state().pacing_rate;
        assert_eq!(nominal / measured, 100, "1 ms was assumed, 100 ms measured");
        flow.connection.srtt = Duration::from_millis(200);
        bbr.on_ack(&flow.ack(1));
        assert_eq!(bbr.state().pacing_rate, measured);
    }

    #[test]
    fn phase_uses_gain_of_previous_ack() {
        let mut flow = Flow::new();
        // The index says "probe", whose phase would last until more is in flight; but the last ACK paced at one.
        let mut bbr = in_probe_bw(&flow, 0, ONE);
        bbr.on_ack(&Ack { prior_in_flight: 10, ..flow.ack(1) });
        assert_eq!(bbr.state().cycle_idx, 1);
        assert_eq!(bbr.state().pacing_gain, 192);
    }

    #[test]
    fn large_flight_or_loss_ends_probing() {
        let phase_after = |prior_in_flight, newly_lost| {
            let mut flow = Flow::new();
            let mut bbr = in_probe_bw(&flow, 0, 320);
            flow.connection.in_flight = 100;
            bbr.on_ack(&Ack { prior_in_flight, newly_lost, ..flow.ack(1) });
            bbr.state().cycle_idx
        };
        assert_eq!(phase_after(110, 0), 0);
        assert_eq!(phase_after(140, 0), 1);
        assert_eq!(phase_after(110, 1), 1);
    }

    #[test]
    fn scheduled_segments_are_not_in_network() {
        let mode_after = |departure| {
            let mut flow = Flow::new();
            let mut bbr = in_probe_bw(&flow, 0, 88);
            bbr.restore(&State { mode: Mode::Drain, ..bbr.state() });
            flow.connection.in_flight = 150;
            flow.connection.departure = flow.connection.now + departure;
            bbr.on_ack(&flow.ack(1));
            bbr.state().mode
        };
        assert_eq!(mode_after(Duration::ZERO), Mode::Drain);
        // Fifty more will have left by then.
        assert_eq!(mode_after(Duration::from_millis(50)), Mode::ProbeBw);
    }

    #[test]
    fn app_limited_rate_only_raises_maximum() {
        let mut flow = Flow::new();
        let mut bbr = in_probe_bw(&flow, 3, ONE);
        let before = bbr.state().bw.get();
        let mut ack = flow.ack(90);
        ack.sample.app_limited = true;
        for round in 0..20 {
            ack.sample.prior_delivered = ack.connection.delivered + round;
            bbr.on_ack(&ack);
        }
        assert_eq!(bbr.state().bw.get(), before, "ten rounds have passed, and the maximum has not aged");
        ack.sample.delivered = Some(110);
        bbr.on_ack(&ack);
        assert!(bbr.state().bw.get() > before);
    }

    #[test]
    fn probe_rtt_lasts_round_and_200ms() {
        let mut flow = Flow::new();
        let mut bbr = in_probe_bw(&flow, 3, ONE);
        flow.connection.in_flight = 100;
        flow.connection.srtt = Duration::from_millis(110);
        flow.pass(Duration::from_millis(10_001));
        bbr.on_ack(&flow.ack(1));
        assert_eq!(bbr.snapshot().phase, Phase::ProbeRtt);
        assert_eq!(bbr.limits().cwnd, 4);
        assert!(bbr.limits().mark_app_limited);
        let saved = bbr.state().prior_cwnd;
        assert_eq!(saved, 212);
        // Something made the window larger; an ACK that delivers nothing still cuts it.
        bbr.restore(&State { snd_cwnd: 50, ..bbr.state() });
        bbr.on_ack(&Ack { sample: RateSample::NONE, ..flow.ack(0) });
        assert_eq!(bbr.limits().cwnd, 4);
        assert_eq!(bbr.state().probe_rtt_done_stamp, 0, "the flight is not small yet");
        flow.connection.in_flight = 4;
        bbr.on_ack(&flow.ack(1));
        let done = flow.connection.jiffies + 200;
        assert_eq!(bbr.state().probe_rtt_done_stamp, done);
        flow.pass(Duration::from_millis(200));
        bbr.on_ack(&flow.ack(1));
        assert_eq!(bbr.snapshot().phase, Phase::ProbeRtt, "a round has passed, but 200 ms strictly not");
        flow.pass(Duration::from_millis(1));
        bbr.on_ack(&flow.ack(1));
        assert_eq!(bbr.state().mode, Mode::ProbeBw);
        assert_eq!(bbr.limits().cwnd, saved + 1);
        assert!(bbr.limits().mark_app_limited, "the ACK that ends ProbeRTT still marks");
        bbr.on_ack(&flow.ack(1));
        assert!(!bbr.limits().mark_app_limited);
    }

    #[test]
    fn idle_restart_does_not_probe_rtt() {
        let mut flow = Flow::new();
        let mut bbr = in_probe_bw(&flow, 0, 320);
        flow.pass(Duration::from_secs(11));
        flow.connection.app_limited = true;
        bbr.on_transmit_start(&TransmitStart {
            connection: flow.connection,
            last_sent: Time::ZERO,
            rto: Duration::from_millis(300),
        });
        assert!(bbr.state().idle_restart);
        assert_eq!(bbr.state().pacing_rate, 1_433_501, "the estimate itself, not 5/4 of it");
        bbr.on_ack(&flow.ack(1));
        assert_ne!(bbr.snapshot().phase, Phase::ProbeRtt);
        assert!(!bbr.state().idle_restart);
    }

    #[test]
    fn timeout_ends_round_recovery_restores_cwnd() {
        let mut flow = Flow::new();
        let mut bbr = in_probe_bw(&flow, 3, ONE);
        flow.connection.in_flight = 2;
        flow.change(&mut bbr, CaState::Loss, true);
        assert_eq!(bbr.limits().cwnd, 3);
        assert!(bbr.state().round_start);
        assert_eq!(bbr.state().full_bw, 0);
        flow.change(&mut bbr, CaState::Open, false);
        bbr.on_ack(&flow.ack(2));
        // The saved window, cut to the target: 200, two extra, three bursts of two.
        assert_eq!(bbr.limits().cwnd, 208);
    }

    #[test]
    fn first_recovery_round_conserves_below_floor() {
        let mut flow = Flow::new();
        let mut bbr = in_probe_bw(&flow, 3, ONE);
        flow.connection.in_flight = 1;
        flow.change(&mut bbr, CaState::Recovery, true);
        // It does not end a round, so conservation lasts.
        let old = |ack: Ack| Ack { newly_lost: 5, sample: RateSample::NONE, ..ack };
        bbr.on_ack(&old(flow.ack(1)));
        assert_eq!(bbr.limits().cwnd, 2);
        bbr.on_ack(&old(flow.ack(1)));
        assert_eq!(bbr.limits().cwnd, 2);
        // The end of the round ends it.
        bbr.on_ack(&flow.ack(1));
        assert_eq!(bbr.limits().cwnd, 4);
    }

    #[test]
    fn undo_resets_plateau_unless_marked() {
        let mut flow = Flow::new();
        for (echoed, full_bw) in [(false, 0), (true, 5)] {
            let mut bbr = Bbr1::new(&Params::default(), &CONFIG, &flow.connection);
            bbr.restore(&State { full_bw: 5, ..bbr.state() });
            flow.connection.state = CaState::Open;
            flow.change(&mut bbr, CaState::Recovery, true);
            bbr.on_ce(&CeMarks { echoed, ..CeMarks::default() });
            bbr.on_undo(&Undo { connection: flow.connection });
            assert_eq!(bbr.state().full_bw, full_bw);
        }
    }

    #[test]
    fn tail_probe_repair_keeps_earlier_undo() {
        let mut flow = Flow::new();
        let mut bbr = Bbr1::new(&Params::default(), &CONFIG, &flow.connection);
        bbr.restore(&State { snd_cwnd: 40, ..bbr.state() });
        flow.change(&mut bbr, CaState::Recovery, true);
        flow.change(&mut bbr, CaState::Open, false);
        let prior_ssthresh = bbr.state().prior_ssthresh;
        assert_ne!(prior_ssthresh, 0);
        // tcp_process_tlp_ack: the state of a congestion mark, without one.
        flow.change(&mut bbr, CaState::Cwr, true);
        assert_eq!(bbr.state().prior_ssthresh, prior_ssthresh);
        bbr.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
        assert_eq!(bbr.state().prior_ssthresh, 0);
    }

    #[test]
    fn recorded_state_survives_a_round_trip() {
        let flow = Flow::new();
        let state = in_probe_bw(&flow, 5, ONE).state();
        let mut other = Bbr1::new(&Params::default(), &CONFIG, &flow.connection);
        other.restore(&state);
        assert_eq!(other.state(), state);
    }
}
