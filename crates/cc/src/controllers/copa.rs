//! Copa: steer the window towards the rate 1/(delta * queueing delay), and be as aggressive as TCP where others fill the
//! buffer.
//!
//! Specification: Arun and Balakrishnan, "Copa: Practical Delay-Based Congestion Control for the Internet", NSDI 2018,
//! sections 2.1 (the rate update) and 2.2 (competing with schemes that fill buffers). Where sources differ, the paper
//! decides, but for three rules whose parameters restore it: `turn_resets`, `empty_segments` and `overshoot_waits`. Where it is
//! silent, the authors' code does (`venkatarun95/genericCC`, `markoviancc.cc` and `rtt-window.cc`), and then Facebook's
//! (`facebook/mvfst`, `quic/congestion_control/Copa.cpp`). Deviations: docs/reference/deviations.md#copa.
//!
//! An ACK with an RTT updates, in this order: the RTT filters (`Delays`), the mode, the velocity if a round ended
//! (`Velocity`), the window by one comparison of rates, the pacing rate.
//!
//! Its known weakness is delay that is no queue: Arun, Alizadeh and Balakrishnan, "Starvation in End-to-End Congestion
//! Control", SIGCOMM 2022; `crates/sim/tests/copa.rs` measures it.
//!
//! Windows and 1/delta are kept in 1/65536 of a segment, RTTs in microseconds of 32 bits.

use core::cmp::Ordering;

use crate::controller::*;
use crate::controllers::bbr::rounds::Rounds;
use crate::parameter::{ControllerInfo, parameters};
use crate::windowed::{WindowedMax, WindowedMin};
use fullpipe_units::{Duration, Rate, Time};

/// One segment, in the unit of windows and of 1/delta.
const SEGMENT: u64 = 1 << 16;
/// The least window, in segments (genericCC: `max(2.0, _the_window)`).
const MIN_CWND: u64 = 2;
/// Windows in which the direction stays the same before the velocity doubles (section 2.1, step 4).
const SAME_DIRECTION_ROUNDS: u32 = 3;
/// Round trips over which the largest RTT counts (section 2.2).
const MAX_RTT_ROUNDS: u32 = 4;
/// An RTT before the first sample.
const NO_RTT: u32 = u32::MAX;

parameters! {
    /// Copa's parameters.
    pub struct Params from "NSDI 2018, section 2";
    /// In 1/1000. Section 2.2: 0.5 in the default mode.
    delta_milli as "delta": u32 = fraction((1000, 1), 500, 4..=16_000, ""),
        "weight of delay against throughput in the default mode: alone, a flow keeps about 1/delta segments queued";
    mode_switching: bool = switch(true), "compete like TCP where the queue never empties";
    /// Section 2.1: `RTTmin`.
    min_rtt_window_s: u32 = whole(10, 1..=300, "s"), "lifetime of the minimum RTT";
    /// Section 2.2.
    empty_rounds: u32 = whole(5, 1..=1000, "rounds"),
        "the default mode needs a nearly empty queue once in this time";
    /// Section 2.2.
    empty_percent: u32 = whole(10, 0..=100, "%"),
        "the queue counts as nearly empty below this share of its largest recent delay";
    /// A segment waits for the one in service even where nothing is queued, and the last of those that one ACK acknowledges
    /// for the others. 0 is the paper's rule.
    empty_segments: u32 = whole(2, 0..=100, "segments") from "Fullpipe's own",
        "how many segments of one ACK count as none in the queue";
    /// The paper counts all round trips.
    overshoot_waits: bool = switch(true) from "Fullpipe's own",
        "a window that falls from where slow start or velocity carried it does not count the round trips";
    /// The paper waits for the end of the round.
    turn_resets: bool = switch(true) from "facebook/mvfst quic/congestion_control/Copa.cpp",
        "the velocity is 1 as soon as the window turns";
    /// Section 2.1: twice the window per `RTTstanding`.
    pacing_percent: u32 = whole(200, 100..=1000, "%"), "pacing rate, of a window per standing RTT";
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "copa",
    summary: "steers towards a rate inversely proportional to the queueing delay; competes with TCP where it must",
    source: "Arun and Balakrishnan, NSDI 2018",
    linux_name: None,
    answers_delay: true,
    parameters: Params::PARAMETERS,
};

/// How Copa chooses delta (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Delta is fixed: the queue is short, and all others keep it so.
    Default,
    /// 1/delta follows AIMD: others fill the buffer.
    Competitive,
}

/// The RTT filters.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// `RTTmin`: the path's propagation delay, as far as is known.
    min: WindowedMin,
    /// `RTTstanding`: the least of the last half round trip, which jitter and delayed ACKs do not raise.
    standing: WindowedMin,
    /// The largest of the last round trips.
    max: WindowedMax,
}

impl Delays {
    const fn new(now_us: u32) -> Delays {
        Delays {
            min: WindowedMin::new(now_us, NO_RTT),
            standing: WindowedMin::new(now_us, NO_RTT),
            max: WindowedMax::new(now_us, 0),
        }
    }

    fn update(&mut self, min_window_us: u32, now_us: u32, srtt_us: u32, rtt_us: u32) {
        self.min.update(min_window_us, now_us, rtt_us);
        self.standing.update(srtt_us / 2, now_us, rtt_us);
        self.max.update(srtt_us.saturating_mul(MAX_RTT_ROUNDS), now_us, rtt_us);
    }

    /// The delay that the queue adds, in microseconds.
    fn queueing_us(&self) -> u32 {
        self.standing.get().saturating_sub(self.min.get())
    }

    /// The largest queueing delay of the last round trips, in microseconds.
    fn largest_us(&self) -> u32 {
        self.max.get().saturating_sub(self.min.get())
    }
}

/// The factor that speeds up a window that moves in one direction (section 2.1, step 4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Velocity {
    value: u64,
    /// Where the window went in the last round; equal if nowhere, or if that is not known.
    direction: Ordering,
    /// Rounds that repeated the direction.
    same: u32,
    /// The window when the round began.
    round_cwnd: u64,
}

impl Velocity {
    /// At a window from which no direction is known.
    const fn resting(cwnd: u64) -> Velocity {
        Velocity { value: 1, direction: Ordering::Equal, same: 0, round_cwnd: cwnd }
    }

    /// A round ended at this window.
    fn on_round(&mut self, cwnd: u64) {
        let direction = cwnd.cmp(&self.round_cwnd);
        if direction != self.direction || direction == Ordering::Equal {
            *self = Velocity { direction, ..Velocity::resting(cwnd) };
            return;
        }
        self.round_cwnd = cwnd;
        self.same += 1;
        if self.same >= SAME_DIRECTION_ROUNDS {
            self.value = self.value.saturating_mul(2);
        }
    }

    /// The window is about to move in this direction: a velocity gained in another is not meant for it.
    fn turn(&mut self, cwnd: u64, direction: Ordering) {
        if self.value > 1 && direction != self.direction {
            *self = Velocity { direction, ..Velocity::resting(cwnd) };
        }
    }

    /// No more than a window that doubles in a round (genericCC: `update_amt > _the_window * delta`).
    fn limit(&mut self, cwnd: u64, inverse_delta: u64) {
        self.value = self.value.min(cwnd / inverse_delta).max(1);
    }
}

/// What an undo restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Prior {
    cwnd: u64,
    inverse_delta: u64,
    slow_start: bool,
}

/// A Copa connection.
#[derive(Clone, Copy, Debug)]
pub struct Copa {
    params: Params,
    mss: u32,
    /// The most `cwnd` may be, in its unit.
    clamp: u64,
    max_pacing_rate: u64,
    /// In 1/65536 of a segment.
    cwnd: u64,
    slow_start: bool,
    mode: Mode,
    /// 1/delta, in 1/65536 of a segment.
    inverse_delta: u64,
    /// The window falls from where slow start or a velocity above 1 carried it.
    overshot: bool,
    /// How long no packet has found the queue nearly empty, without the time in which it was `overshot`.
    full_for: Duration,
    /// When the last RTT came.
    last_rtt: Time,
    delays: Delays,
    /// The time in which the path delivers a segment at the best rate of the last [`Params::min_rtt_window_s`], in nanoseconds.
    service: WindowedMin,
    velocity: Velocity,
    rounds: Rounds,
    prior: Option<Prior>,
    /// Bytes a second.
    pacing_rate: u64,
}

impl Copa {
    /// A connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Copa {
        // A window and 1/delta have at most 47 bits, so that 16 more fit (`steer`).
        let clamp = config.cwnd_clamp.min(Limits::INFINITE) as u64 * SEGMENT;
        let cwnd = (config.initial_cwnd as u64 * SEGMENT).min(clamp);
        let mut copa = Copa {
            params: *params,
            mss: config.mss,
            clamp,
            max_pacing_rate: config.max_pacing_rate.as_bytes_per_sec(),
            cwnd,
            slow_start: true,
            mode: Mode::Default,
            inverse_delta: default_inverse_delta(params),
            overshot: false,
            full_for: Duration::ZERO,
            last_rtt: connection.now,
            delays: Delays::new(connection.now.as_micros() as u32),
            service: WindowedMin::new(connection.now.as_micros() as u32, NO_RTT),
            velocity: Velocity::resting(cwnd),
            rounds: Rounds::new(connection.delivered),
            prior: None,
            pacing_rate: 0,
        };
        copa.set_pacing_rate(connection.srtt);
        copa
    }

    /// How it chooses delta at present.
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the queue was nearly empty lately, and so whether delay is a signal (section 2.2).
    ///
    /// The five round trips are those of a window that swings at velocity 1 (section 3). One that slow start or a velocity
    /// carried further falls for longer, and cannot know yet what else is in the queue.
    fn update_mode(&mut self, now: Time, srtt: Duration, rtt_us: u32, segments: u32) {
        if self.is_nearly_empty(rtt_us, segments) {
            self.full_for = Duration::ZERO;
        } else if !self.overshot {
            self.full_for += now.saturating_since(self.last_rtt);
        }
        self.last_rtt = now;
        let patience = srtt.saturating_mul(self.params.empty_rounds as u64);
        if self.full_for > patience && self.params.mode_switching {
            self.mode = Mode::Competitive;
        } else {
            self.mode = Mode::Default;
            self.inverse_delta = default_inverse_delta(&self.params);
        }
    }

    /// Whether an ACK for so many segments shows a nearly empty queue (section 2.2), or one in which nothing but these was
    /// served.
    fn is_nearly_empty(&self, rtt_us: u32, segments: u32) -> bool {
        let queued_us = rtt_us.saturating_sub(self.delays.min.get()) as u64;
        let share = self.delays.largest_us() as u64 * self.params.empty_percent as u64 * 10;
        let served_ns = match self.service.get() {
            NO_RTT => 0,
            segment_ns => segments.min(self.params.empty_segments) as u64 * segment_ns as u64,
        };
        queued_us * 1_000 <= share + served_ns
    }

    /// The velocity, and in the competitive mode the additive increase of 1/delta.
    fn on_round(&mut self, state: CaState) {
        self.velocity.on_round(self.cwnd);
        if self.mode == Mode::Competitive && state < CaState::Cwr {
            self.inverse_delta = (self.inverse_delta + SEGMENT).min(self.clamp.max(SEGMENT));
        }
    }

    /// Whether the rate, a window per standing RTT, is at most the target, 1/(delta * queueing delay) (section 2.1, step 3).
    fn is_below_target(&self) -> bool {
        let standing_us = self.delays.standing.get() as u128;
        self.cwnd as u128 * self.delays.queueing_us() as u128 <= standing_us * self.inverse_delta as u128
    }

    /// One step of the window: velocity / (delta * window) for each segment (section 2.1, step 3).
    fn steer(&mut self, segments: u32, may_grow: bool) {
        let below_target = self.is_below_target();
        if below_target {
            self.overshot = false;
        } else if self.velocity.value > 1 && self.velocity.direction == Ordering::Greater {
            self.overshot = self.params.overshoot_waits;
        }
        if self.params.turn_resets {
            self.velocity.turn(self.cwnd, if below_target { Ordering::Greater } else { Ordering::Less });
        }
        self.velocity.limit(self.cwnd, self.inverse_delta);
        let a_segment = (self.velocity.value * self.inverse_delta * SEGMENT) / self.cwnd;
        let step = a_segment.saturating_mul(segments as u64);
        if !below_target {
            self.cwnd = self.cwnd.saturating_sub(step).max(MIN_CWND * SEGMENT);
        } else if may_grow {
            self.cwnd = self.cwnd.saturating_add(step);
        }
    }

    fn grow_in_slow_start(&mut self, segments: u32, may_grow: bool) {
        if may_grow {
            self.cwnd += segments as u64 * SEGMENT;
        }
        self.velocity = Velocity::resting(self.cwnd);
    }

    /// Twice the window per standing RTT, so that it is the window that limits the sender (section 2.1).
    fn set_pacing_rate(&mut self, srtt: Duration) {
        let standing_us = match self.delays.standing.get() {
            NO_RTT => srtt.as_micros(),
            standing_us => standing_us as u64,
        };
        self.pacing_rate = self.max_pacing_rate;
        if standing_us > 0 {
            let bytes = self.cwnd as u128 * self.mss as u128 * self.params.pacing_percent as u128;
            let rate = bytes * (1_000_000 / 100) / (standing_us as u128 * SEGMENT as u128);
            self.pacing_rate = self.max_pacing_rate.min(rate.max(1) as u64);
        }
    }
}

/// 1/delta of the default mode.
const fn default_inverse_delta(params: &Params) -> u64 {
    1_000 * SEGMENT / params.delta_milli as u64
}

impl Controller for Copa {
    /// Nothing of ours is in the queue, and what we knew of it is old.
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.full_for = Duration::ZERO;
        self.last_rtt = start.connection.now;
        self.velocity = Velocity::resting(self.cwnd);
    }

    /// An unfilled window does not grow, and pacing spreads what it allows.
    fn on_window_unused(&mut self, _: &WindowUnused) {}

    fn on_sent(&mut self, _: &Sent) {}

    /// [`Ack::rtt`] is the same.
    fn on_rtt(&mut self, _: &RttSample) {}

    /// Loss counts once a recovery, in `on_state`.
    fn on_lost(&mut self, _: &Lost) {}

    /// The reduction for it counts, in `on_state`.
    fn on_tail_repair(&mut self, _: &TailRepair) {}

    /// A discarded packet says nothing about congestion.
    fn on_discarded(&mut self, _: &Discarded) {}

    /// Marks prove that a reduction was due.
    fn on_ce(&mut self, marks: &CeMarks) {
        if marks.echoed {
            self.prior = None;
        }
    }

    /// In the default mode loss is no signal; in the competitive mode it halves 1/delta. A timeout restarts the window.
    fn on_state(&mut self, change: &StateChange) {
        if change.reduce {
            let Copa { cwnd, inverse_delta, slow_start, .. } = *self;
            self.prior = (!change.proven).then_some(Prior { cwnd, inverse_delta, slow_start });
            if self.mode == Mode::Competitive {
                self.inverse_delta = (inverse_delta / 2).max(default_inverse_delta(&self.params));
            }
        }
        if change.to == CaState::Loss {
            self.cwnd = ((change.connection.in_flight as u64 + 1) * SEGMENT).min(self.clamp);
            self.slow_start = true;
            self.velocity = Velocity::resting(self.cwnd);
            self.set_pacing_rate(change.connection.srtt);
        }
    }

    fn on_undo(&mut self, undo: &Undo) {
        let Some(prior) = self.prior.take() else { return };
        self.cwnd = self.cwnd.max(prior.cwnd);
        self.slow_start = prior.slow_start;
        if self.mode == Mode::Competitive {
            self.inverse_delta = self.inverse_delta.max(prior.inverse_delta);
        }
        self.velocity = Velocity::resting(self.cwnd);
        self.set_pacing_rate(undo.connection.srtt);
    }

    fn on_ack(&mut self, ack: &Ack) {
        let connection = &ack.connection;
        if let Some(rtt) = ack.rtt {
            let (now_us, srtt_us) = (connection.now.as_micros() as u32, micros(connection.srtt));
            let rtt_us = micros(rtt);
            let window_us = self.params.min_rtt_window_s * 1_000_000;
            self.delays.update(window_us, now_us, srtt_us, rtt_us);
            if let Some(segment_ns) = service_ns(&ack.sample) {
                self.service.update(window_us, now_us, segment_ns);
            }
            self.update_mode(connection.now, connection.srtt, rtt_us, ack.newly_delivered);
        }
        if ack.sample.delivered.is_some()
            && self.rounds.on_sample(ack.sample.prior_delivered, connection.delivered)
        {
            self.on_round(connection.state);
        }
        let segments = ack.newly_delivered;
        if self.slow_start && (ack.rtt.is_none() || self.is_below_target()) {
            let half_used = self.cwnd < 2 * ack.max_packets_out as u64 * SEGMENT;
            self.grow_in_slow_start(segments, ack.cwnd_limited || half_used);
        } else if ack.rtt.is_some() {
            if self.slow_start {
                self.overshot = self.params.overshoot_waits;
            }
            self.slow_start = false;
            self.steer(segments, ack.cwnd_limited);
        }
        self.cwnd = self.cwnd.min(self.clamp);
        self.set_pacing_rate(connection.srtt);
    }

    fn on_mss(&mut self, mss: u32) {
        self.pacing_rate = (self.pacing_rate as u128 * mss as u128 / self.mss.max(1) as u128)
            .clamp(1, self.max_pacing_rate as u128) as u64;
        self.mss = mss;
    }

    fn limits(&self) -> Limits {
        Limits {
            cwnd: (self.cwnd / SEGMENT) as u32,
            ssthresh: Limits::INFINITE,
            pacing_rate: Rate::from_bytes_per_sec(self.pacing_rate),
            // A queue of a few segments is the signal; a burst would be as large.
            min_burst: 1,
            mark_app_limited: false,
            check_app_limited: false,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let min_us = self.delays.min.get();
        Snapshot {
            phase: match self.mode {
                _ if self.slow_start => Phase::SlowStart,
                Mode::Default => Phase::CongestionAvoidance,
                Mode::Competitive => Phase::Competing,
            },
            bandwidth: None,
            min_rtt: (min_us != NO_RTT).then(|| Duration::from_micros(min_us as u64)),
        }
    }
}

/// An RTT of a microsecond at least, and below [`NO_RTT`].
fn micros(rtt: Duration) -> u32 {
    rtt.as_micros().clamp(1, NO_RTT as u64 - 1) as u32
}

/// In how many nanoseconds the path delivered a segment, where the sample shows it.
fn service_ns(sample: &RateSample) -> Option<u32> {
    let (delivered, interval) = (sample.delivered?, sample.interval?);
    (delivered > 0).then(|| (interval.as_nanos() / delivered as u64).min(NO_RTT as u64 - 1) as u32)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::testing::{CONFIG, Flow, deliver};
    use std::vec::Vec;

    fn copa(params: &Params) -> (Flow, Copa) {
        let flow = Flow::new();
        (flow, Copa::new(params, &CONFIG, &flow.connection))
    }

    /// An ACK with this RTT, a millisecond after the one before, of a path that delivers a segment in a millisecond.
    fn acked(flow: &mut Flow, copa: &mut Copa, segments: u32, rtt_us: u64) {
        flow.pass(Duration::from_millis(1));
        let ack = flow.ack(segments);
        let sample = RateSample { delivered: Some(100), ..ack.sample };
        deliver(copa, &Ack { rtt: Some(Duration::from_micros(rtt_us)), sample, ..ack });
    }

    /// Past slow start on a path of 100 ms, with this window and 1/delta = 2.
    fn steady(flow: &mut Flow, copa: &mut Copa, cwnd: u64) {
        acked(flow, copa, 1, 100_000);
        copa.slow_start = false;
        copa.cwnd = cwnd * SEGMENT;
        copa.velocity = Velocity::resting(copa.cwnd);
    }

    /// By how much an ACK for `segments` moves a window of 100, in 1/65536 of a segment, if its RTT is the standing one.
    fn step(velocity: u64, direction: Ordering, segments: u32, rtt_us: u64) -> i64 {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 100);
        // Longer than half the smoothed RTT of 100 ms, so that it alone is the standing RTT.
        flow.pass(Duration::from_millis(60));
        copa.velocity = Velocity { value: velocity, direction, ..copa.velocity };
        let ack = flow.ack(segments);
        let sample = RateSample::NONE;
        deliver(&mut copa, &Ack { rtt: Some(Duration::from_micros(rtt_us)), sample, ..ack });
        copa.cwnd as i64 - (100 * SEGMENT) as i64
    }

    #[test]
    fn cwnd_moves_by_velocity_over_delta() {
        use Ordering::{Greater, Less};
        // A window of 100 in 100 ms and delta 0.5. The rate 100 / RTT is the target 2 / queueing delay where 100 q = 2 (100 + q),
        // with q in ms: at 2.0408 ms of queue, 980 segments a second. A step is velocity * 2 / 100 of 65,536.
        let by_hand: [(u64, Ordering, u32, u64, i64); 9] = [
            (1, Greater, 1, 100_000, 1_310),   // no queue: the target is infinite
            (1, Greater, 1, 102_000, 1_310),   // 980.4 / s, target 1,000 / s
            (1, Greater, 1, 102_040, 1_310),   // 980.00 / s, target 980.39 / s
            (1, Less, 1, 102_041, -1_310),     // 979.99 / s, target 979.91 / s
            (1, Less, 2, 110_000, -2_620),     // two segments, two steps
            (4, Greater, 1, 100_000, 5_242),   // 0.08 segments
            (8, Less, 3, 150_000, -31_455),    // 3 * 0.16 segments
            (50, Greater, 1, 100_000, 65_536), // the window doubles in a round
            (64, Greater, 1, 100_000, 65_536), // and no more
        ];
        for (velocity, direction, segments, rtt_us, expected) in by_hand {
            let seen = step(velocity, direction, segments, rtt_us);
            assert_eq!(seen, expected, "velocity {velocity}, {segments} segments, {rtt_us} us");
        }
    }

    #[test]
    fn velocity_doubles_in_fourth_round() {
        let mut velocity = Velocity::resting(100);
        let windows = [101, 102, 103, 104, 105, 107, 106, 105, 104, 103, 102, 102, 101];
        let seen: Vec<u64> = windows
            .map(|cwnd| {
                velocity.on_round(cwnd);
                velocity.value
            })
            .into();
        assert_eq!(seen, [1, 1, 1, 2, 4, 8, 1, 1, 1, 2, 4, 1, 1]);
    }

    #[test]
    fn turn_within_round_uses_velocity_one() {
        use Ordering::Greater;
        // 0.02 segments down instead of 16 times that; in the paper the round has to end first.
        assert_eq!(step(16, Greater, 1, 150_000), -1_310);
        let (mut flow, mut copa) = copa(&Params { turn_resets: false, ..Params::default() });
        steady(&mut flow, &mut copa, 100);
        flow.pass(Duration::from_millis(60));
        copa.velocity = Velocity { value: 16, direction: Greater, ..copa.velocity };
        let ack = Ack { sample: RateSample::NONE, ..flow.ack(1) };
        deliver(&mut copa, &Ack { rtt: Some(Duration::from_millis(150)), ..ack });
        assert_eq!(copa.cwnd, 100 * SEGMENT - 20_971);
        // The round ends, and the window is smaller than at its start.
        copa.on_round(CaState::Open);
        assert_eq!(copa.velocity.value, 1);
    }

    #[test]
    fn slow_start_doubles_to_target_rate() {
        let (mut flow, mut copa) = copa(&Params::default());
        acked(&mut flow, &mut copa, 10, 100_000);
        assert_eq!((copa.limits().cwnd, copa.snapshot().phase), (20, Phase::SlowStart));
        // A window of 20: 20 q = 2 (100 + q), at 11.1 ms.
        flow.pass(Duration::from_millis(60));
        acked(&mut flow, &mut copa, 1, 111_000);
        assert_eq!((copa.limits().cwnd, copa.snapshot().phase), (21, Phase::SlowStart));
        flow.pass(Duration::from_millis(60));
        acked(&mut flow, &mut copa, 1, 111_000);
        assert_eq!(copa.snapshot().phase, Phase::CongestionAvoidance);
        assert_eq!(copa.cwnd, 21 * SEGMENT - 2 * SEGMENT / 21);
    }

    #[test]
    fn underused_window_shrinks_but_never_grows() {
        let (mut flow, mut copa) = copa(&Params::default());
        let ack = Ack { cwnd_limited: false, max_packets_out: 5, ..flow.ack(5) };
        deliver(&mut copa, &ack);
        assert_eq!(copa.limits().cwnd, 10);
        deliver(&mut copa, &Ack { max_packets_out: 6, ..ack });
        assert_eq!(copa.limits().cwnd, 15, "in slow start, more than half is enough");
        steady(&mut flow, &mut copa, 50);
        deliver(&mut copa, &Ack { cwnd_limited: false, ..flow.ack(10) });
        assert_eq!(copa.cwnd, 50 * SEGMENT);
        flow.pass(Duration::from_millis(60));
        let rtt = Some(Duration::from_millis(200));
        deliver(&mut copa, &Ack { cwnd_limited: false, rtt, ..flow.ack(10) });
        assert!(copa.cwnd < 50 * SEGMENT);
    }

    #[test]
    fn standing_rtt_is_half_round_minimum() {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 50);
        flow.pass(Duration::from_millis(20));
        for rtt_us in [180_000, 104_000, 170_000] {
            acked(&mut flow, &mut copa, 1, rtt_us);
        }
        assert_eq!(copa.delays.queueing_us(), 0, "the first RTT is 23 ms old");
        flow.pass(Duration::from_millis(29));
        acked(&mut flow, &mut copa, 1, 160_000);
        assert_eq!(copa.delays.queueing_us(), 4_000, "and now 53");
    }

    #[test]
    fn min_rtt_expires_after_ten_seconds() {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 50);
        for (after_ms, expected_ms) in [(9_000, 100), (900, 100), (200, 120)] {
            flow.pass(Duration::from_millis(after_ms));
            acked(&mut flow, &mut copa, 1, 120_000);
            assert_eq!(copa.snapshot().min_rtt, Some(Duration::from_millis(expected_ms)));
        }
    }

    #[test]
    fn max_rtt_expires_after_four_rtts() {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 50);
        acked(&mut flow, &mut copa, 1, 300_000);
        for (after_ms, expected_us) in [(199, 200_000), (199, 200_000), (1, 15_000)] {
            flow.pass(Duration::from_millis(after_ms));
            acked(&mut flow, &mut copa, 1, 115_000);
            assert_eq!(copa.delays.largest_us(), expected_us);
        }
    }

    /// A round of ten ACKs over 100 ms, with RTTs that swing by 20 ms above this, at a window that stays.
    fn round(flow: &mut Flow, copa: &mut Copa, least_us: u64) {
        let cwnd = copa.cwnd;
        for step in 0..10 {
            flow.pass(Duration::from_millis(9));
            acked(flow, copa, 1, least_us + step * 2_000);
            copa.cwnd = cwnd;
            copa.velocity = Velocity::resting(cwnd);
        }
    }

    #[test]
    fn never_empty_queue_means_competition() {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 100);
        for _ in 0..8 {
            round(&mut flow, &mut copa, 100_000);
            assert_eq!(copa.mode(), Mode::Default);
        }
        for _ in 0..4 {
            round(&mut flow, &mut copa, 110_000);
            assert_eq!(copa.mode(), Mode::Default);
        }
        round(&mut flow, &mut copa, 110_000);
        round(&mut flow, &mut copa, 110_000);
        assert_eq!(copa.mode(), Mode::Competitive);
        assert_eq!(copa.snapshot().phase, Phase::Competing);
        // A tenth of the largest queueing delay of 28 ms, and a segment's millisecond.
        acked(&mut flow, &mut copa, 1, 103_801);
        assert_eq!(copa.mode(), Mode::Competitive);
        acked(&mut flow, &mut copa, 1, 103_800);
        assert_eq!((copa.mode(), copa.inverse_delta), (Mode::Default, 2 * SEGMENT));
        assert_eq!(copa.snapshot().phase, Phase::CongestionAvoidance);
    }

    #[test]
    fn segments_in_service_are_no_queue() {
        // RTTs of 100 ms and these, without a swing whose tenth would count; a segment takes a millisecond.
        let mode = |empty_segments, segments, queued_us: u64| {
            let (mut flow, mut copa) =
                copa(&Params { empty_segments, empty_percent: 0, ..Params::default() });
            steady(&mut flow, &mut copa, 100);
            for _ in 0..60 {
                flow.pass(Duration::from_millis(9));
                acked(&mut flow, &mut copa, segments, 100_000 + queued_us);
            }
            copa.mode()
        };
        use Mode::{Competitive, Default};
        assert_eq!([mode(2, 1, 1_000), mode(2, 1, 1_001)], [Default, Competitive], "the one in service");
        assert_eq!(
            [mode(2, 2, 2_000), mode(2, 2, 2_001)],
            [Default, Competitive],
            "and the other of a delayed ACK"
        );
        assert_eq!([mode(2, 9, 2_000), mode(2, 9, 2_001)], [Default, Competitive], "no more, however many");
        assert_eq!([mode(0, 2, 0), mode(0, 2, 1)], [Default, Competitive], "the paper's rule");
    }

    #[test]
    fn small_window_is_not_small_queue() {
        // Two segments in 150 ms are 75 ms each at the flow's own rate, and a third of the RTT would be their queue.
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 2);
        for _ in 0..10 {
            round(&mut flow, &mut copa, 150_000);
        }
        assert_eq!(copa.mode(), Mode::Competitive);
    }

    /// In which round of a window that falls, from where it got like this, it takes others for competitors, if in the first 30.
    fn competes_in_round(overshoot_waits: bool, prepare: fn(&mut Copa)) -> Option<u32> {
        let (mut flow, mut copa) = copa(&Params { overshoot_waits, ..Params::default() });
        steady(&mut flow, &mut copa, 1_000);
        flow.pass(Duration::from_millis(60));
        prepare(&mut copa);
        (1..=30).find(|_| {
            round(&mut flow, &mut copa, 150_000);
            copa.mode() == Mode::Competitive
        })
    }

    #[test]
    fn falling_after_overshoot_is_not_competition() {
        assert_eq!(competes_in_round(true, |_| ()), Some(5));
        let slow_start = |copa: &mut Copa| copa.slow_start = true;
        assert_eq!(competes_in_round(true, slow_start), None);
        assert_eq!(competes_in_round(false, slow_start), Some(5), "the paper's rule");
        let velocity = |copa: &mut Copa| {
            copa.velocity = Velocity { value: 16, direction: Ordering::Greater, same: 6, round_cwnd: 0 };
        };
        assert_eq!(competes_in_round(true, velocity), None);
        assert_eq!(competes_in_round(false, velocity), Some(5));
    }

    #[test]
    fn rising_window_expects_empty_queue() {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 100);
        flow.pass(Duration::from_millis(60));
        copa.slow_start = true;
        for _ in 0..10 {
            round(&mut flow, &mut copa, 150_000);
        }
        assert_eq!(copa.mode(), Mode::Default);
        // At four segments in 150 ms, a third of which is queue, the flow has found its target.
        copa.cwnd = 4 * SEGMENT;
        for _ in 0..7 {
            round(&mut flow, &mut copa, 150_000);
        }
        assert_eq!(copa.mode(), Mode::Competitive);
    }

    fn competing() -> (Flow, Copa) {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 100);
        copa.mode = Mode::Competitive;
        (flow, copa)
    }

    #[test]
    fn inverse_delta_is_aimd_when_competing() {
        let (mut flow, mut copa) = competing();
        for inverse_delta in 3..=9 {
            copa.on_round(CaState::Open);
            assert_eq!(copa.inverse_delta, inverse_delta * SEGMENT);
        }
        flow.change(&mut copa, CaState::Recovery, true);
        assert_eq!(copa.inverse_delta, 9 * SEGMENT / 2);
        copa.on_round(CaState::Recovery);
        assert_eq!(copa.inverse_delta, 9 * SEGMENT / 2, "not while it recovers");
        for _ in 0..3 {
            flow.change(&mut copa, CaState::Recovery, true);
        }
        assert_eq!(copa.inverse_delta, 2 * SEGMENT, "delta is at most that of the default mode");
        assert_eq!(copa.cwnd, 100 * SEGMENT, "the window follows by the rate update alone");
    }

    #[test]
    fn without_mode_switching_delta_stays() {
        let (mut flow, mut copa) =
            copa(&Params { mode_switching: false, delta_milli: 250, ..Params::default() });
        steady(&mut flow, &mut copa, 100);
        for _ in 0..20 {
            round(&mut flow, &mut copa, 150_000);
        }
        flow.change(&mut copa, CaState::Recovery, true);
        assert_eq!((copa.mode(), copa.inverse_delta), (Mode::Default, 4 * SEGMENT));
    }

    #[test]
    fn default_mode_ignores_loss_not_timeout() {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 100);
        flow.change(&mut copa, CaState::Recovery, true);
        assert_eq!((copa.limits().cwnd, copa.inverse_delta), (100, 2 * SEGMENT));
        flow.connection.in_flight = 3;
        flow.change(&mut copa, CaState::Loss, true);
        assert_eq!((copa.limits().cwnd, copa.snapshot().phase), (4, Phase::SlowStart));
        // Retransmissions bring no RTT, and must not stop it.
        deliver(&mut copa, &Ack { rtt: None, ..flow.ack(4) });
        assert_eq!(copa.limits().cwnd, 8);
        copa.on_undo(&Undo { connection: flow.connection });
        assert_eq!((copa.limits().cwnd, copa.snapshot().phase), (100, Phase::CongestionAvoidance));
    }

    #[test]
    fn undo_restores_delta_unless_marked() {
        for (echoed, inverse_delta) in [(false, 8), (true, 4)] {
            let (mut flow, mut copa) = competing();
            copa.inverse_delta = 8 * SEGMENT;
            flow.change(&mut copa, CaState::Recovery, true);
            copa.on_ce(&CeMarks { echoed, ..CeMarks::default() });
            copa.on_undo(&Undo { connection: flow.connection });
            assert_eq!(copa.inverse_delta, inverse_delta * SEGMENT);
        }
    }

    #[test]
    fn window_never_falls_below_two() {
        let (mut flow, mut copa) =
            copa(&Params { delta_milli: 16_000, mode_switching: false, ..Params::default() });
        steady(&mut flow, &mut copa, 3);
        for _ in 0..40 {
            flow.pass(Duration::from_millis(60));
            acked(&mut flow, &mut copa, 3, 900_000);
        }
        assert_eq!(copa.limits().cwnd, 2);
    }

    #[test]
    fn pacing_is_two_windows_per_rtt() {
        let (mut flow, mut copa) = copa(&Params::default());
        // 10 segments of 1,448 bytes in the handshake's 100 ms.
        assert_eq!(copa.limits().pacing_rate, Rate::from_bytes_per_sec(289_600));
        steady(&mut flow, &mut copa, 50);
        let ack = Ack { cwnd_limited: false, ..flow.ack(1) };
        deliver(&mut copa, &Ack { rtt: Some(Duration::from_millis(50)), ..ack });
        assert_eq!(copa.limits().pacing_rate, Rate::from_bytes_per_sec(2_896_000));
        copa.on_mss(724);
        assert_eq!(copa.limits().pacing_rate, Rate::from_bytes_per_sec(1_448_000));
    }

    #[test]
    fn idleness_resets_queue_knowledge() {
        let (mut flow, mut copa) = copa(&Params::default());
        steady(&mut flow, &mut copa, 100);
        copa.velocity.value = 16;
        flow.pass(Duration::from_secs(5));
        let (connection, last_sent) = (flow.connection, Time::ZERO);
        copa.on_transmit_start(&TransmitStart { connection, last_sent, rto: Duration::from_secs(1) });
        acked(&mut flow, &mut copa, 1, 140_000);
        assert_eq!((copa.mode(), copa.velocity.value), (Mode::Default, 1));
    }
}
