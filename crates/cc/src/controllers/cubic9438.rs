//! CUBIC by its RFC: in bytes, with the RFC's own curve, Reno-friendly region and slow start.
//!
//! Specification: RFC 9438 sections 4 and 5; each comment `// RFC 9438 4.2` cites a section where it is implemented.
//! [`byte_window`](crate::controllers::byte_window) has the window, its recovery periods and slow start, which is HyStart++ (RFC 9438 4.10).
//! Linux's CUBIC, which differs in many details, is [`cubic`](crate::controllers::cubic). Deviations: docs/reference/deviations.md#cubic9438.
//!
//! **Arithmetic**: integers of 64 bits. Time on the curve is in ticks of 1/8,192 s, and at most [`MOST_TICKS`] of them (256 s)
//! before and after the plateau. K is a cube root that is exact to a tick; [`cube_root`] rounds down, and never by more than one.
//! The curve is off by at most a byte and what a tick is worth there, `3 C (t - K)^2 / 8,192` segments: a tenth of a packet 15
//! seconds from the plateau.

use crate::controller::{Config, Connection};
use crate::controllers::byte_window::{Acknowledged, ByteWindow, Bytewise, Cause, CoreParams, Increase};
use crate::parameter::{ControllerInfo, parameters};

/// Ticks of the curve's clock in a second, as a power of two.
const TICK_SHIFT: u32 = 13;
/// The furthest from the plateau that the curve is evaluated, so that a cube of ticks fits into 63 bits.
pub const MOST_TICKS: u64 = (1 << 21) - 1;
/// Bits of a cube of ticks that are dropped: what is left is in 2^-14 s^3.
const CUBE_SHIFT: u32 = 25;

parameters! {
    /// The RFC's constants and choices.
    pub struct Params from "RFC 9438 section 4";
    /// In 1/1,000 (RFC 9438: `beta_cubic`).
    beta: u32 = fraction((1000, 1), 700, 200..=990, "") from "RFC 9438 section 4.6",
        "the window after a loss, as a share of that before it";
    /// In 1/1,000 segments/s^3 (RFC 9438: C).
    c: u32 = fraction((1000, 1), 400, 1..=10_000, "segments/s^3") from "RFC 9438 section 5.1",
        "the curve's steepness";
    fast_convergence: bool = switch(true) from "RFC 9438 section 4.7",
        "give way to new flows by aiming below the last maximum";
    flight_size: bool = switch(false) from "RFC 9438 section 4.6",
        "a loss reduces what is outstanding, not the window";
    hystartpp: bool = switch(true) from "RFC 9438 section 4.10; RFC 9406", "slow start is HyStart++";
    ..core: CoreParams;
}

impl Params {
    /// Whether the host has to pace.
    pub const fn is_paced(&self) -> bool {
        self.core.pace
    }
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "cubic9438",
    summary: "CUBIC as its RFC has it: in bytes, with HyStart++, paced, and with QUIC's recovery",
    source: "RFC 9438 sections 4 and 5; RFC 9406; RFC 9002 section 7",
    linux_name: None,
    answers_delay: false,
    parameters: Params::PARAMETERS,
};

/// A congestion avoidance stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Epoch {
    /// When it began, in microseconds; later by what does not count (RFC 9438: `t_epoch`).
    start_us: u64,
    /// When time was last counted.
    last_us: u64,
    /// Ticks from the start to the plateau (RFC 9438: K).
    k: u64,
    /// What Reno's window would be, in bytes (RFC 9438: `W_est`).
    w_est: u64,
    /// What it did not yet grow by, in shares of a window's bytes.
    w_est_credit: u64,
    /// What the window did not yet grow by, in bytes times bytes.
    credit: u64,
}

impl Epoch {
    /// Ticks from the start to the plateau.
    pub const fn k(&self) -> u64 {
        self.k
    }

    /// What Reno's window would be.
    pub const fn w_est(&self) -> u64 {
        self.w_est
    }
}

/// The increase algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicIncrease {
    /// The window where the curve is flat, in bytes; zero before the first loss (RFC 9438: `W_max`).
    w_max: u64,
    /// The window when the threshold was last set, in bytes (RFC 9438: `cwnd_prior`).
    cwnd_prior: u64,
    epoch: Option<Epoch>,
    /// The next stage begins at the plateau.
    is_flat: bool,
    beta: u64,
    c: u64,
    fast_convergence: bool,
    flight_size: bool,
    hystart: bool,
}

impl CubicIncrease {
    fn new(params: &Params) -> CubicIncrease {
        CubicIncrease {
            w_max: 0,
            cwnd_prior: 0,
            epoch: None,
            is_flat: true,
            beta: params.beta as u64,
            c: params.c as u64,
            fast_convergence: params.fast_convergence,
            flight_size: params.flight_size,
            hystart: params.hystartpp,
        }
    }

    /// The present stage.
    pub const fn epoch(&self) -> Option<&Epoch> {
        self.epoch.as_ref()
    }

    /// The window where the curve is flat.
    pub const fn w_max(&self) -> u64 {
        self.w_max
    }

    fn begin(&mut self, window: &ByteWindow, now_us: u64) -> Epoch {
        // RFC 9438 4.8: after a timeout, and 4.10: after HyStart++, K is 0 and W_max the window at the beginning.
        if self.is_flat || self.w_max <= window.cwnd {
            self.w_max = window.cwnd;
        }
        self.is_flat = false;
        Epoch {
            start_us: now_us,
            last_us: now_us,
            k: plateau(self.w_max - window.cwnd, self.c * window.mss),
            // RFC 9438 4.3: W_est is cwnd_epoch at the beginning.
            w_est: window.cwnd,
            w_est_credit: 0,
            credit: 0,
        }
    }

    /// The curve at this many ticks.
    #[inline]
    fn w_cubic(&self, k: u64, ticks: u64, mss: u64) -> u64 {
        // RFC 9438 4.2: W_cubic(t) = C * (t - K)^3 + W_max
        let climb = climb(ticks.abs_diff(k), self.c * mss);
        if ticks < k { self.w_max.saturating_sub(climb) } else { self.w_max.saturating_add(climb) }
    }

    /// The threshold after a reduction, before it is bounded.
    fn threshold(&self, window: &ByteWindow, flight: u64) -> u64 {
        // RFC 9438 4.6: flight_size * beta, or cwnd * beta if, as here, an unfilled window does not grow.
        let reduced = if self.flight_size { flight.min(window.cwnd) } else { window.cwnd };
        reduced * self.beta / 1_000
    }
}

impl Increase for CubicIncrease {
    #[inline]
    fn grow(&mut self, window: &mut ByteWindow, acked: &Acknowledged) {
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin(window, acked.now_us),
        };
        let ByteWindow { cwnd, mss, .. } = *window;
        epoch.last_us = acked.now_us;
        let elapsed_us = acked.now_us - epoch.start_us;
        // RFC 9438 4.3: W_est grows by alpha * segments_acked / cwnd, with the alpha of AIMD(1, 0.5) from cwnd_prior on.
        let (alpha, per) = match epoch.w_est >= self.cwnd_prior {
            true => (1, 1),
            false => (3 * (1_000 - self.beta), 1_000 + self.beta),
        };
        let share = cwnd * per;
        epoch.w_est_credit += alpha * mss * acked.bytes;
        epoch.w_est += epoch.w_est_credit / share;
        epoch.w_est_credit %= share;
        if self.w_cubic(epoch.k, ticks(elapsed_us), mss) < epoch.w_est {
            // RFC 9438 4.3: the Reno-friendly region
            window.cwnd = cwnd.max(epoch.w_est);
            epoch.credit = 0;
        } else {
            // RFC 9438 4.2: target, between cwnd and 1.5 * cwnd
            let target = self.w_cubic(epoch.k, ticks(elapsed_us + acked.srtt_us), mss);
            let target = target.clamp(cwnd, cwnd + cwnd / 2);
            // RFC 9438 4.4 and 4.5: (target - cwnd) / cwnd for each segment, here for each byte
            epoch.credit = epoch.credit.saturating_add((target - cwnd).saturating_mul(acked.bytes));
            window.cwnd += epoch.credit / cwnd;
            epoch.credit %= cwnd;
        }
        self.epoch = Some(epoch);
    }

    #[inline]
    fn pause(&mut self, now_us: u64) {
        // RFC 9438 4.2 and 5.8: t leaves out the time in which the application limited the sender.
        if let Some(epoch) = &mut self.epoch {
            epoch.start_us += now_us - epoch.last_us;
            epoch.last_us = now_us;
        }
    }

    fn reduce(&mut self, window: &mut ByteWindow, cause: Cause, flight: u64) {
        let ByteWindow { cwnd, mss, .. } = *window;
        // RFC 9438 4.7: fast convergence
        let converges = cwnd < self.w_max && self.fast_convergence;
        self.w_max = if converges { cwnd * (1_000 + self.beta) / 2_000 } else { cwnd };
        // RFC 9438 4.6: on a mark, the window may become one segment.
        let threshold = self.threshold(window, flight);
        let least = if cause == Cause::Mark { mss } else { window.minimum() };
        self.cwnd_prior = cwnd;
        window.cwnd = threshold.max(least);
        window.ssthresh = threshold.max(window.minimum());
        self.epoch = None;
        self.is_flat = false;
    }

    fn collapse(&mut self, window: &mut ByteWindow, flight: u64, again: bool) {
        // RFC 9438 4.8: as Reno (RFC 5681 3.1, the loss window of one segment), with a threshold of beta.
        if !again {
            self.cwnd_prior = window.cwnd;
            window.ssthresh = self.threshold(window, flight).max(window.minimum());
        }
        window.cwnd = window.mss;
        self.epoch = None;
        self.is_flat = true;
    }

    fn leave_slow_start(&mut self, window: &ByteWindow) {
        // RFC 9438 4.10: no loss, so that W_max is undefined
        self.cwnd_prior = window.cwnd;
        self.is_flat = true;
    }

    fn has_hystart(&self) -> bool {
        self.hystart
    }
}

/// Microseconds in ticks of 1/8,192 s, rounded down.
#[inline]
const fn ticks(us: u64) -> u64 {
    // 2^13 / 10^6 = 2^7 / 5^6
    us * 128 / 15_625
}

/// How far the curve is from the plateau, in bytes, at this distance; `steepness` is 1,000 C times the segment.
#[inline]
fn climb(ticks: u64, steepness: u64) -> u64 {
    let ticks = if ticks < MOST_TICKS { ticks } else { MOST_TICKS };
    let cube = (ticks * ticks * ticks) >> CUBE_SHIFT;
    (cube.saturating_mul(steepness) / 1_000) >> (3 * TICK_SHIFT - CUBE_SHIFT)
}

/// RFC 9438 4.2: K = cbrt((W_max - cwnd_epoch) / C), in ticks, for a difference in bytes.
fn plateau(difference: u64, steepness: u64) -> u64 {
    let scaled = difference.saturating_mul(1_000);
    let (seconds, rest) = (scaled / steepness, scaled % steepness);
    // More than 256 s away.
    if seconds >= 1 << (63 - 3 * TICK_SHIFT) {
        return MOST_TICKS;
    }
    // The fraction to 2^-34: steepness has 30 bits at most.
    let fraction = (rest << 34) / steepness;
    cube_root((seconds << (3 * TICK_SHIFT)) + (fraction << (3 * TICK_SHIFT - 34)))
}

/// The largest number whose cube is at most `a`, which has 63 bits at most: digit by digit.
pub fn cube_root(a: u64) -> u64 {
    let (mut rest, mut root) = (a, 0u64);
    let mut shift = 60;
    // Twenty-one digits of a bit each.
    for _ in 0..21 {
        root *= 2;
        let step = 3 * root * (root + 1) + 1;
        if rest >> shift >= step {
            rest -= step << shift;
            root += 1;
        }
        shift -= 3;
    }
    root
}

/// A CUBIC connection.
pub type Cubic9438 = Bytewise<CubicIncrease>;

impl Cubic9438 {
    /// A connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Cubic9438 {
        Bytewise::with_increase(CubicIncrease::new(params), &params.core, config, connection)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::controller::{
        Ack, CaState, CeMarks, Controller, Limits, StateChange, TransmitStart, Trigger, Undo,
    };
    use crate::testing::{CONFIG, Flow};
    use fullpipe_units::{Duration, Time};
    use std::vec::Vec;

    const MSS: u64 = CONFIG.mss as u64;

    fn steady() -> Params {
        Params { hystartpp: false, ..Params::default() }
    }

    /// A flow that lost at this window in segments, and whose recovery period is over.
    fn after_loss(flow: &mut Flow, params: &Params, segments: u32) -> Cubic9438 {
        let mut cubic = Cubic9438::new(params, &CONFIG, &flow.connection);
        cubic.on_ack(&flow.ack(segments - 10));
        assert_eq!(cubic.limits().cwnd, segments);
        flow.change(&mut cubic, CaState::Recovery, true);
        flow.send(&mut cubic, 1, true);
        flow.change(&mut cubic, CaState::Open, false);
        cubic
    }

    /// The window after each second in whole segments, with an ACK every 10 ms of a tenth of it, which is an RTT of 100 ms.
    fn seconds(cubic: &mut Cubic9438, flow: &mut Flow, count: usize) -> Vec<u32> {
        (0..count)
            .map(|_| {
                for _ in 0..100 {
                    flow.pass(Duration::from_millis(10));
                    let acked = cubic.limits().cwnd / 10;
                    cubic.on_ack(&flow.ack(acked));
                }
                cubic.limits().cwnd
            })
            .collect()
    }

    /// RFC 9438 4.2 to 4.5 written down in floating point, for the same ACKs.
    fn by_formula(w_max: f64, count: usize) -> Vec<f64> {
        let (c, beta, rtt) = (0.4, 0.7, 0.1);
        let mut cwnd = w_max * beta;
        let k = ((w_max - cwnd) / c).cbrt();
        let w_cubic = |t: f64| c * (t - k).powi(3) + w_max;
        let mut w_est = cwnd;
        let mut windows = Vec::new();
        for ack in 0..count * 100 {
            let t = ack as f64 / 100.0;
            let acked = (cwnd.floor() / 10.0).floor();
            let alpha = if w_est >= w_max { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
            w_est += alpha * acked / cwnd;
            if w_cubic(t) < w_est {
                cwnd = w_est.max(cwnd);
            } else {
                cwnd += (w_cubic(t + rtt).clamp(cwnd, 1.5 * cwnd) - cwnd) / cwnd * acked;
            }
            if (ack + 1) % 100 == 0 {
                windows.push(cwnd);
            }
        }
        windows
    }

    /// RFC 9438 4.2: after a loss at 1,000 segments, K = cbrt(300 / 0.4) = 9.086 s; concave until then, convex after it.
    #[test]
    fn window_follows_curve_beyond_loss_point() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &steady(), 1_000);
        let windows = seconds(&mut cubic, &mut flow, 16);
        // C (t - K)^3 + W_max at t = 1 ... 16 s, in Python:
        //   789, 857, 909, 947, 972, 988, 996, 999, 999.9998, 1000.3, 1002.8, 1009.9, 1024.0, 1047.4, 1082.7, 1132.2
        assert_eq!(
            windows,
            [788, 857, 909, 947, 972, 988, 996, 999, 999, 1000, 1002, 1009, 1024, 1047, 1082, 1132]
        );
        assert_eq!(cubic.increase().epoch().unwrap().k(), 74_429, "9.0857 s in 1/8,192 s");
        for (window, exact) in windows.iter().zip(by_formula(1_000.0, 16)) {
            let difference = exact - *window as f64;
            assert!((-0.05..1.05).contains(&difference), "{window} for {exact}");
        }
    }

    /// RFC 9438 4.3: with a small window Reno's is larger: alpha = 9/17 up to cwnd_prior, and then 1.
    #[test]
    fn small_window_grows_with_reno_alpha() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &steady(), 20);
        let prior = 20 * MSS;
        assert_eq!(cubic.window().cwnd, 14 * MSS);
        let mut table = Vec::new();
        for _ in 0..16 {
            // A round trip of 10 ms: too short for the curve.
            let before = cubic.window().cwnd;
            for _ in 0..before / MSS {
                flow.pass(Duration::from_micros(700));
                flow.connection.srtt = Duration::from_millis(10);
                cubic.on_ack(&flow.ack(1));
            }
            let growth = (cubic.window().cwnd - before) as f64 / MSS as f64;
            let whole = (before / MSS) as f64 / (before as f64 / MSS as f64);
            table.push((before, growth / whole));
        }
        for (before, growth) in table {
            let due = if before >= prior { 1.0 } else { 9.0 / 17.0 };
            // The divisor grows within the round.
            let crosses = before < prior && before + MSS > prior;
            assert!(crosses || (due * 0.94..due * 1.01).contains(&growth), "{before}: {growth}, not {due}");
        }
        assert!(cubic.window().cwnd > 23 * MSS);
    }

    fn event(cwnd: u64, w_max: u64, params: &Params) -> (CubicIncrease, ByteWindow) {
        let mut increase = CubicIncrease { w_max, is_flat: false, ..CubicIncrease::new(params) };
        let mut window = ByteWindow { cwnd, ssthresh: ByteWindow::INFINITE, mss: 1_000 };
        increase.reduce(&mut window, Cause::Loss, 600_000);
        (increase, window)
    }

    /// RFC 9438 4.7.
    #[test]
    fn fast_convergence_lowers_target_after_loss() {
        let w_max = |cwnd, params: &Params| event(cwnd, 1_000_000, params).0.w_max();
        assert_eq!(w_max(800_000, &steady()), 680_000);
        assert_eq!(w_max(1_000_000, &steady()), 1_000_000);
        assert_eq!(w_max(1_200_000, &steady()), 1_200_000);
        assert_eq!(w_max(800_000, &Params { fast_convergence: false, ..steady() }), 800_000);
    }

    /// RFC 9438 4.6: beta of the window, or of the flight.
    #[test]
    fn loss_reduces_to_seven_tenths() {
        let reduced = |cwnd, params: &Params| {
            let (increase, window) = event(cwnd, 0, params);
            (window.cwnd, window.ssthresh, increase.cwnd_prior)
        };
        assert_eq!(reduced(1_000_000, &steady()), (700_000, 700_000, 1_000_000));
        let flight = Params { flight_size: true, ..steady() };
        assert_eq!(reduced(1_000_000, &flight), (420_000, 420_000, 1_000_000));
        assert_eq!(reduced(500_000, &flight), (350_000, 350_000, 500_000), "never more than the window's");
        assert_eq!(reduced(2_100, &steady()), (2_000, 2_000, 2_100));
    }

    /// RFC 9438 4.6: marks reduce the window to one segment, the threshold to two.
    #[test]
    fn marks_reduce_further_than_losses_can() {
        let mut flow = Flow::new();
        let mut cubic = Cubic9438::new(&steady(), &CONFIG, &flow.connection);
        let mut windows = Vec::new();
        for _ in 0..8 {
            cubic.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
            let (to, trigger) = (CaState::Cwr, Trigger::Ack);
            let connection = flow.connection;
            cubic.on_state(&StateChange { connection, to, reduce: true, proven: true, trigger });
            flow.connection.state = to;
            flow.change(&mut cubic, CaState::Open, false);
            windows.push((cubic.limits().cwnd, cubic.limits().ssthresh));
        }
        assert_eq!(windows, [(7, 7), (4, 4), (3, 3), (2, 2), (1, 2), (1, 2), (1, 2), (1, 2)]);
    }

    /// RFC 9438 4.6: a tail probe that repaired a loss shows no mark: two segments remain.
    #[test]
    fn tail_probe_repair_is_loss() {
        let mut flow = Flow::new();
        let mut cubic = Cubic9438::new(&steady(), &CONFIG, &flow.connection);
        for _ in 0..8 {
            flow.change(&mut cubic, CaState::Cwr, true);
            flow.change(&mut cubic, CaState::Open, false);
        }
        assert_eq!((cubic.limits().cwnd, cubic.limits().ssthresh), (2, 2));
    }

    /// RFC 9438 4.6: flight_size is what is outstanding, lost and SACKed segments included.
    #[test]
    fn flight_size_is_unacknowledged_data() {
        let mut flow = Flow::new();
        let mut cubic = Cubic9438::new(&Params { flight_size: true, ..steady() }, &CONFIG, &flow.connection);
        cubic.on_ack(&flow.ack(90));
        (flow.connection.packets_out, flow.connection.in_flight) = (60, 40);
        flow.change(&mut cubic, CaState::Recovery, true);
        flow.send(&mut cubic, 1, true);
        assert_eq!((cubic.limits().cwnd, cubic.limits().ssthresh), (42, 42));
    }

    /// RFC 9438 4.2 and 4.7: each loss begins a curve of its own, here to 0.85 of the window of the second one.
    #[test]
    fn a_second_loss_begins_another_stage() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &steady(), 1_000);
        seconds(&mut cubic, &mut flow, 3);
        let lost_at = cubic.window().cwnd;
        flow.change(&mut cubic, CaState::Recovery, true);
        flow.send(&mut cubic, 1, true);
        flow.change(&mut cubic, CaState::Open, false);
        assert_eq!(cubic.window().cwnd, lost_at * 7 / 10);
        let windows = seconds(&mut cubic, &mut flow, 3);
        let (cwnd, w_max) = (lost_at as f64 * 0.7 / MSS as f64, lost_at as f64 * 0.85 / MSS as f64);
        let k = ((w_max - cwnd) / 0.4).cbrt();
        for (second, window) in windows.iter().enumerate() {
            // The target is a round trip ahead, and reached at its end.
            let exact = 0.4 * (second as f64 + 1.0 - k).powi(3) + w_max;
            assert!((exact - *window as f64).abs() < 1.5, "{window} for {exact}");
        }
    }

    /// RFC 9438 4.8: a timeout ends the stage, and its window is that from which Reno's pace is Reno's again (4.3).
    #[test]
    fn timeout_ends_current_stage() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &steady(), 1_000);
        seconds(&mut cubic, &mut flow, 2);
        let before = cubic.window().cwnd;
        flow.change(&mut cubic, CaState::Loss, true);
        assert_eq!((cubic.increase().epoch(), cubic.increase().cwnd_prior), (None, before));
    }

    /// RFC 9438 4.8: one segment, a threshold of beta, and then a stage that begins at its plateau.
    #[test]
    fn after_timeout_curve_starts_at_threshold() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &steady(), 1_000);
        flow.change(&mut cubic, CaState::Loss, true);
        assert_eq!((cubic.limits().cwnd, cubic.limits().ssthresh), (1, 490));
        flow.change(&mut cubic, CaState::Loss, false);
        assert_eq!((cubic.limits().cwnd, cubic.limits().ssthresh), (1, 490));
        flow.change(&mut cubic, CaState::Open, false);
        cubic.on_ack(&flow.ack(489));
        assert_eq!((cubic.limits().cwnd, cubic.increase().epoch()), (490, None), "slow start ends here");
        // 0.4 t^3 is less than Reno's 9/17 a round: 490 + 0.529 * 10 a second.
        assert_eq!(seconds(&mut cubic, &mut flow, 2), [495, 500]);
        assert_eq!((cubic.increase().w_max(), cubic.increase().epoch().unwrap().k()), (490 * MSS, 0));
    }

    /// RFC 9438 4.9.2: window, threshold, cwnd_prior, W_max, K, t_epoch and W_est return.
    #[test]
    fn undo_restores_curve() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &steady(), 1_000);
        seconds(&mut cubic, &mut flow, 3);
        let before = (*cubic.increase(), *cubic.window());
        flow.change(&mut cubic, CaState::Recovery, true);
        assert_ne!(before, (*cubic.increase(), *cubic.window()));
        cubic.on_undo(&Undo { connection: flow.connection });
        flow.change(&mut cubic, CaState::Open, false);
        assert_eq!(before, (*cubic.increase(), *cubic.window()));
    }

    /// RFC 9438 4.2 and 5.8: unused time, and idleness, is no time on the curve.
    #[test]
    fn app_limited_time_pauses_curve() {
        let run = |pause: fn(&mut Cubic9438, &mut Flow)| {
            let mut flow = Flow::new();
            let mut cubic = after_loss(&mut flow, &steady(), 1_000);
            seconds(&mut cubic, &mut flow, 2);
            pause(&mut cubic, &mut flow);
            seconds(&mut cubic, &mut flow, 3)
        };
        let unused = run(|cubic, flow| {
            for _ in 0..500 {
                flow.pass(Duration::from_millis(10));
                cubic.on_ack(&Ack { cwnd_limited: false, ..flow.ack(1) });
            }
        });
        let idle = run(|cubic, flow| {
            let last_sent = flow.connection.now;
            flow.pass(Duration::from_secs(5));
            let rto = Duration::from_millis(300);
            cubic.on_transmit_start(&TransmitStart { connection: flow.connection, last_sent, rto });
        });
        assert_eq!(run(|_, _| ()), [909, 947, 972]);
        assert_eq!(unused, [909, 947, 972]);
        assert_eq!(idle, [909, 947, 972]);
    }

    /// RFC 9438 4.2: target is between cwnd and 1.5 cwnd.
    #[test]
    fn round_growth_clamped_to_half_window() {
        let grown = |w_max: u64, now_us: u64| {
            let mut increase = CubicIncrease { w_max, is_flat: false, ..CubicIncrease::new(&steady()) };
            let mut window = ByteWindow { cwnd: 100_000, ssthresh: 100_000, mss: 1_000 };
            for (bytes, now_us) in [(0, 0), (100_000, now_us)] {
                increase.grow(&mut window, &Acknowledged { bytes, now_us, srtt_us: 100_000 });
            }
            window.cwnd
        };
        assert_eq!(grown(10_000_000, 40_000_000), 150_000);
        // K = cbrt(900 / 0.4) = 13.1 s; at 0.1 s the curve is at 111 segments, and at 0.2 s at 140.584, which a tick changes by 0.025.
        assert_eq!(grown(1_000_000, 100_000), 140_589);
        // A window that is above the curve stays: Reno's is 100 and 9/17.
        let mut increase =
            CubicIncrease { w_max: 1_000_000, is_flat: false, ..CubicIncrease::new(&steady()) };
        let mut window = ByteWindow { cwnd: 100_000, ssthresh: 100_000, mss: 1_000 };
        increase.grow(&mut window, &Acknowledged { bytes: 0, now_us: 0, srtt_us: 100_000 });
        window.cwnd = 500_000;
        increase.grow(&mut window, &Acknowledged { bytes: 100_000, now_us: 100_000, srtt_us: 100_000 });
        assert_eq!(window.cwnd, 500_000);
        // So does one above Reno's, where that is above the curve.
        let mut increase = CubicIncrease::new(&steady());
        let mut window = ByteWindow { cwnd: 100_000, ssthresh: 100_000, mss: 1_000 };
        increase.grow(&mut window, &Acknowledged { bytes: 0, now_us: 0, srtt_us: 100_000 });
        window.cwnd = 500_000;
        increase.grow(&mut window, &Acknowledged { bytes: 100_000, now_us: 100_000, srtt_us: 100_000 });
        assert_eq!(window.cwnd, 500_000);
    }

    /// Fractions of a byte are carried, so that ACKs of a byte each grow the window, on the curve and beside Reno.
    #[test]
    fn nothing_is_lost_to_rounding() {
        let grown = |w_max: u64, bytes: u64| {
            let mut increase = CubicIncrease { w_max, is_flat: false, ..CubicIncrease::new(&steady()) };
            let mut window = ByteWindow { cwnd: 70_000, ssthresh: 70_000, mss: 1_000 };
            for _ in 0..70_000 / bytes {
                increase.grow(&mut window, &Acknowledged { bytes, now_us: 0, srtt_us: 100_000 });
            }
            window.cwnd - 70_000
        };
        // K = cbrt(30 / 0.4) = 4.2 s: the curve climbs by about two segments in 100 ms, Reno by one in a window.
        for w_max in [100_000, 70_000] {
            let (one, all) = (grown(w_max, 1), grown(w_max, 1_000));
            assert!(all > 900 && one.abs_diff(all) < 20, "{one} and {all}");
        }
    }

    /// RFC 9438 4.10: after HyStart++, K is 0 and W_max the window.
    #[test]
    fn hystart_exit_starts_flat_curve() {
        let mut flow = Flow::new();
        let mut cubic = Cubic9438::new(&Params::default(), &CONFIG, &flow.connection);
        for round in 0..8u64 {
            for _ in 0..10 {
                flow.snd_nxt = flow.snd_una + 10;
                flow.pass(Duration::from_millis(10));
                let rtt = Some(Duration::from_millis(if round < 2 { 100 } else { 120 }));
                cubic.on_ack(&Ack { rtt, ..flow.ack(1) });
            }
        }
        let threshold = cubic.limits().ssthresh;
        assert!(threshold < Limits::INFINITE);
        let increase = cubic.increase();
        assert_eq!(increase.w_max() / MSS, threshold as u64);
        assert_eq!((increase.cwnd_prior, increase.epoch().unwrap().k()), (increase.w_max(), 0));
    }

    /// ACKs of any size grow the window by the same, to a few bytes.
    #[test]
    fn packet_and_ack_sizes_are_irrelevant() {
        let grown = |sizes: &[u64]| {
            let params = steady();
            let mut increase =
                CubicIncrease { w_max: 1_000_000, is_flat: false, ..CubicIncrease::new(&params) };
            let mut window = ByteWindow { cwnd: 700_000, ssthresh: 700_000, mss: 1_000 };
            let (mut now_us, mut sizes) = (0, sizes.iter().cycle());
            while now_us < 5_000_000 {
                let bytes = *sizes.next().unwrap();
                // A window in 100 ms.
                now_us += bytes / 7;
                increase.grow(&mut window, &Acknowledged { bytes, now_us, srtt_us: 100_000 });
            }
            window.cwnd
        };
        let whole = grown(&[1_000]);
        assert!((970_000..975_000).contains(&whole), "{whole}");
        for sizes in [&[2_000][..], &[500], &[100, 1_000, 733, 40_000], &[1_200, 80]] {
            let difference = grown(sizes).abs_diff(whole);
            assert!(difference < 1_000, "{sizes:?}: {difference}");
        }
    }

    /// The cube root is exact: rounded down, so that it is less than one below the real one.
    #[test]
    fn cube_root_is_exact_floor() {
        for root in (0..2_000).chain((2_000..MOST_TICKS).step_by(997)).chain([MOST_TICKS - 1, MOST_TICKS]) {
            let cube = root * root * root;
            assert_eq!(cube_root(cube), root);
            assert_eq!(cube_root(cube + 3 * root * (root + 1)), root, "the last one below the next cube");
            if root > 0 {
                assert_eq!(cube_root(cube - 1), root - 1);
            }
        }
        assert_eq!(cube_root((1 << 63) - 1), MOST_TICKS);
    }

    /// K is within a tick of the exact one, and the curve within a byte and what its rounding of a cube is worth.
    #[test]
    fn plateau_and_curve_match_formula() {
        for (mss, c) in [(1_200, 400), (1_448, 400), (8_948, 400), (1_448, 1), (65_535, 1_000)] {
            let steepness = c * mss;
            let per_second_cubed = steepness as f64 / 1_000.0;
            for difference in [0, 1, 999, 14_480, 300_000, 4_344_000, 100_000_000, 3_000_000_000] {
                let exact = (difference as f64 / per_second_cubed).cbrt() * 8_192.0;
                let k = plateau(difference, steepness) as f64;
                if exact < MOST_TICKS as f64 {
                    assert!((-1e-6..1.0).contains(&(exact - k)), "{difference}, {mss}: {k} for {exact}");
                } else {
                    assert_eq!(k, MOST_TICKS as f64);
                }
            }
            for ticks in [0, 1, 100, 8_192, 81_920, 819_200, MOST_TICKS] {
                let exact = per_second_cubed * (ticks as f64 / 8_192.0).powi(3);
                let bound = 1.0 + per_second_cubed / 16_384.0 + exact * 1e-9;
                let seen = climb(ticks, steepness) as f64;
                assert!(
                    (0.0..bound).contains(&(exact - seen)) || exact > 1e15,
                    "{ticks}, {mss}: {seen} for {exact}"
                );
            }
        }
        assert_eq!(climb(MOST_TICKS + 1, 400_000), climb(MOST_TICKS, 400_000));
        assert!(climb(MOST_TICKS, 655_350_000) > 1_000_000_000_000, "saturated, and still beyond any window");
        assert_eq!([0, 122, 123, 1_000_000, 3_600_000_000].map(ticks), [0, 0, 1, 8_192, 29_491_200]);
    }

    /// A clock that began long ago makes no difference.
    #[test]
    fn clock_origin_does_not_matter() {
        let run = |start: Time| {
            let mut flow = Flow::new();
            flow.connection.now = start;
            let mut cubic = after_loss(&mut flow, &steady(), 300);
            seconds(&mut cubic, &mut flow, 8)
        };
        assert_eq!(run(Time::from_micros(1)), run(Time::from_micros(1 << 43)));
    }
}
