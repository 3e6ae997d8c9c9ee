//! CUBIC: after a loss, grow along a cubic curve of time that flattens where the loss was.
//!
//! Specification: Linux 6.12 `net/ipv4/tcp_cubic.c` (RFC 9438 in substance). Slow start ends by HyStart
//! ([`hystart`]) or loss. Deviations: docs/reference/deviations.md#cubic.
//!
//! Integer arithmetic and wrapping are the kernel's: the curve is evaluated at most once a jiffy, in 1/1,024 s.

use crate::controller::{CaState, CeMarks, Config, Connection, Limits};
use crate::controllers::hystart::{self, HyStart};
use crate::controllers::segment_window::{Acked, Algorithm, Clocks, CoreParams, LossBased, Sampled, Window};
use crate::parameter::{ControllerInfo, parameters};

/// Scale of `beta` and of the curve's clock (Linux: `BICTCP_BETA_SCALE`, `1 << BICTCP_HZ`).
const SCALE_SHIFT: u32 = 10;
const SCALE: u32 = 1 << SCALE_SHIFT;
/// Scale of the curve: 2^10 for its factor and 2^30 for the clock's cube.
const CURVE_SHIFT: u32 = 40;

parameters! {
    /// CUBIC's parameters; the defaults are Linux's module parameters.
    pub struct Params from "Linux 6.12 net/ipv4/tcp_cubic.c";
    /// In 1/1,024 (Linux: `beta`; RFC 9438: 0.7).
    beta: u32 = fraction((SCALE, 1), 717, 205..=1013, ""),
        "the window after a loss, as a share of that before it";
    /// C in 10/1,024 segments/s^3 (Linux: `bic_scale`; RFC 9438: C = 0.4).
    bic_scale as "c": u32 = fraction((SCALE, 10), 41, 1..=1024, "segments/s^3"), "the curve's steepness";
    fast_convergence: bool = switch(true), "give way to new flows by aiming below the last maximum";
    tcp_friendliness: bool = switch(true), "never be slower than Reno would be";
    initial_ssthresh: u32 = whole(0, 0..=1_000_000, "segments"),
        "the threshold to start with if hystart is 0; 0 for none";
    ..hystart: hystart::Params;
    ..core: CoreParams;
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "cubic",
    summary: "grows along a cubic curve of time around the window of the last loss",
    source: "Linux 6.12 net/ipv4/tcp_cubic.c; RFC 9438",
    linux_name: Some("cubic"),
    answers_delay: false,
    parameters: Params::PARAMETERS,
};

/// The curve's state: every field of the kernel's `struct bictcp`, with its name (HyStart's are in [`HyStart`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// Segments to acknowledge for an increase by one.
    pub cnt: u32,
    /// The window of the last loss.
    pub last_max_cwnd: u32,
    /// The window at the last evaluation.
    pub last_cwnd: u32,
    /// Jiffies of that.
    pub last_time: u32,
    /// The window where the curve is flat.
    pub bic_origin_point: u32,
    /// Time from the epoch's start to there, in 1/1,024 s.
    pub bic_k: u32,
    /// The minimum RTT in microseconds, zero if unknown.
    pub delay_min: u32,
    /// Jiffies when the epoch began; zero outside one.
    pub epoch_start: u32,
    /// Segments acknowledged towards Reno's next increase.
    pub ack_cnt: u32,
    /// Reno's window.
    pub tcp_cwnd: u32,
}

impl Curve {
    /// Time on the curve one RTT from now, in 1/1,024 s since the epoch's start.
    #[inline]
    pub fn time(&self, jiffies: u32, hz: u32) -> u64 {
        let elapsed = jiffies.wrapping_sub(self.epoch_start) as i32 as u64;
        let ahead = (self.delay_min as u64 * hz as u64).div_ceil(1_000_000);
        (elapsed.wrapping_add(ahead) << SCALE_SHIFT) / hz as u64
    }
}

/// The increase algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CubicIncrease {
    curve: Curve,
    hystart: HyStart,
    beta: u32,
    fast_convergence: bool,
    tcp_friendliness: bool,
    /// 1,024 C / 1 RTT (Linux: `cube_rtt_scale`).
    curve_factor: u32,
    /// Its inverse times 2^40 (Linux: `cube_factor`).
    cube_factor: u64,
    /// Segments that Reno with CUBIC's beta acknowledges for an increase by one, times 8 / cwnd (Linux: `beta_scale`).
    beta_scale: u32,
    hz: u32,
}

impl CubicIncrease {
    /// Linux: `cubictcp_init`. `now_us` is the fine clock in wrapping microseconds, `snd_nxt` is in segments.
    pub fn new(params: &Params, config: &Config, now_us: u32, snd_nxt: u64) -> CubicIncrease {
        let curve_factor = params.bic_scale * 10;
        CubicIncrease {
            curve: Curve::default(),
            hystart: HyStart::new(&params.hystart, config, now_us, snd_nxt),
            beta: params.beta,
            fast_convergence: params.fast_convergence,
            tcp_friendliness: params.tcp_friendliness,
            curve_factor,
            cube_factor: (1 << CURVE_SHIFT) / curve_factor as u64,
            beta_scale: 8 * (SCALE + params.beta) / 3 / (SCALE - params.beta),
            hz: config.hz,
        }
    }

    /// The curve's state.
    pub const fn curve(&self) -> &Curve {
        &self.curve
    }

    /// HyStart's state.
    pub const fn hystart(&self) -> &HyStart {
        &self.hystart
    }

    /// The host's bursts ([`Config::gso_max`]) and pacing ([`Config::paced`]), which may change while a connection lives.
    pub fn set_host(&mut self, gso_max: u32, paced: bool) {
        self.hystart.set_host(gso_max, paced);
    }

    /// Takes over recorded state.
    pub fn restore(&mut self, curve: Curve, hystart: hystart::Round) {
        self.curve = curve;
        self.hystart.round = hystart;
    }

    /// Brings `cnt` up to date (Linux: `bictcp_update`).
    #[inline]
    fn update(&mut self, cwnd: u32, acked: u32, jiffies: u32) {
        let curve = &mut self.curve;
        curve.ack_cnt = curve.ack_cnt.wrapping_add(acked);
        if curve.last_cwnd == cwnd && (jiffies.wrapping_sub(curve.last_time) as i32) <= (self.hz / 32) as i32
        {
            return;
        }
        // Once a jiffy at most; the end of an epoch forces it.
        if curve.epoch_start == 0 || jiffies != curve.last_time {
            self.evaluate(cwnd, acked, jiffies);
        }
        let curve = &mut self.curve;
        if self.tcp_friendliness {
            let per_segment = (cwnd.wrapping_mul(self.beta_scale) >> 3).max(1);
            while curve.ack_cnt > per_segment {
                curve.ack_cnt -= per_segment;
                curve.tcp_cwnd = curve.tcp_cwnd.wrapping_add(1);
            }
            if curve.tcp_cwnd > cwnd {
                curve.cnt = curve.cnt.min(cwnd / (curve.tcp_cwnd - cwnd));
            }
        }
        // At most half a segment for each acknowledged one: the window grows by half in a round.
        curve.cnt = curve.cnt.max(2);
    }

    fn evaluate(&mut self, cwnd: u32, acked: u32, jiffies: u32) {
        let curve = &mut self.curve;
        curve.last_cwnd = cwnd;
        curve.last_time = jiffies;
        if curve.epoch_start == 0 {
            curve.epoch_start = jiffies;
            curve.ack_cnt = acked;
            curve.tcp_cwnd = cwnd;
            if curve.last_max_cwnd <= cwnd {
                curve.bic_k = 0;
                curve.bic_origin_point = cwnd;
            } else {
                curve.bic_k = cubic_root(self.cube_factor.wrapping_mul((curve.last_max_cwnd - cwnd) as u64));
                curve.bic_origin_point = curve.last_max_cwnd;
            }
        }
        // Where the curve will be one RTT from now.
        let time = curve.time(jiffies, self.hz);
        let before_origin = time < curve.bic_k as u64;
        let offset = if before_origin { curve.bic_k as u64 - time } else { time - curve.bic_k as u64 };
        let cube = (self.curve_factor as u64).wrapping_mul(offset).wrapping_mul(offset).wrapping_mul(offset);
        let delta = (cube >> CURVE_SHIFT) as u32;
        let target = if before_origin {
            curve.bic_origin_point.wrapping_sub(delta)
        } else {
            curve.bic_origin_point.wrapping_add(delta)
        };
        curve.cnt = if target > cwnd { cwnd / (target - cwnd) } else { cwnd.wrapping_mul(100) };
        // Before the first loss nothing is known: grow by at least 5 % a round.
        if curve.last_max_cwnd == 0 {
            curve.cnt = curve.cnt.min(20);
        }
    }
}

impl Algorithm for CubicIncrease {
    /// Linux: `cubictcp_acked`.
    #[inline]
    fn pkts_acked(&mut self, window: &mut Window, clocks: Clocks, sampled: &Sampled) {
        let curve = &mut self.curve;
        // RTTs right after a reduction are not the path's.
        if curve.epoch_start != 0 && (clocks.jiffies.wrapping_sub(curve.epoch_start) as i32) < self.hz as i32
        {
            return;
        }
        let delay = sampled.rtt_us.max(1);
        if curve.delay_min == 0 || curve.delay_min > delay {
            curve.delay_min = delay;
        }
        if window.in_slow_start() && self.hystart.is_searching() {
            let delay_min = self.curve.delay_min;
            if self.hystart.on_rtt(window.cwnd, delay, delay_min, clocks.now_us, sampled) {
                window.ssthresh = window.cwnd;
            }
        }
    }

    /// Linux: `cubictcp_cong_avoid`.
    #[inline]
    fn cong_avoid(&mut self, window: &mut Window, clocks: Clocks, acked: Acked) {
        let mut acked = acked.segments;
        if window.in_slow_start() {
            acked = window.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.update(window.cwnd, acked, clocks.jiffies);
        window.additive_increase(self.curve.cnt, acked);
    }

    /// Linux: `cubictcp_recalc_ssthresh`.
    fn ssthresh(&mut self, window: &Window) -> u32 {
        let curve = &mut self.curve;
        curve.epoch_start = 0;
        curve.last_max_cwnd = if window.cwnd < curve.last_max_cwnd && self.fast_convergence {
            window.cwnd.wrapping_mul(SCALE + self.beta) / (2 * SCALE)
        } else {
            window.cwnd
        };
        (window.cwnd.wrapping_mul(self.beta) / SCALE).max(2)
    }

    /// A loss is answered as a mark is.
    fn loss_ssthresh(&mut self, _: &Window) -> Option<u32> {
        None
    }

    /// How many segments are marked makes no difference.
    fn on_marks(&mut self, _: &CeMarks) {}

    /// A timeout resets everything (Linux: `cubictcp_state`).
    fn on_state(&mut self, to: CaState, clocks: Clocks, snd_nxt: u64) {
        if to == CaState::Loss {
            self.curve = Curve::default();
            self.hystart.reset(clocks.now_us, snd_nxt);
        }
    }

    /// Idle time is no time on the curve (Linux: `cubictcp_cwnd_event`).
    fn on_transmit_start(&mut self, clocks: Clocks, idle: u32, _: u64) {
        let curve = &mut self.curve;
        if curve.epoch_start != 0 && idle as i32 > 0 {
            curve.epoch_start = curve.epoch_start.wrapping_add(idle);
            if (clocks.jiffies.wrapping_sub(curve.epoch_start) as i32) < 0 {
                curve.epoch_start = clocks.jiffies;
            }
        }
    }

    fn min_rtt_us(&self) -> Option<u32> {
        (self.curve.delay_min != 0).then_some(self.curve.delay_min)
    }
}

/// Cube roots of 0 to 63 in 1/64, rounded by hand (Linux: `cubic_root`; the numbers are part of the algorithm).
const CUBE_ROOTS: [u8; 64] = [
    0, 54, 54, 54, 118, 118, 118, 118, 123, 129, 134, 138, 143, 147, 151, 156, 157, 161, 164, 168, 170, 173,
    176, 179, 181, 185, 187, 190, 192, 194, 197, 199, 200, 202, 204, 206, 209, 211, 213, 215, 217, 219, 221,
    222, 224, 225, 227, 229, 231, 232, 234, 236, 237, 239, 240, 242, 244, 245, 246, 248, 250, 251, 252, 254,
];

/// The cube root by a table for the top six bits and one step of Newton's method; off by 0.2 % on average.
pub fn cubic_root(a: u64) -> u32 {
    let bits = 64 - a.leading_zeros();
    if bits < 7 {
        return (CUBE_ROOTS[a as usize] as u32 + 35) >> 6;
    }
    // A third of the bits, less one.
    let third = ((bits * 84) >> 8) - 1;
    let top = (a >> (third * 3)) as usize;
    let x = ((CUBE_ROOTS[top] as u32 + 10) << third) >> 6;
    let x = 2 * x + (a / (x as u64 * (x - 1) as u64)) as u32;
    // 341/1,024 is a third.
    ((x as u64 * 341) >> 10) as u32
}

/// A CUBIC connection.
pub type Cubic = LossBased<CubicIncrease>;

impl Cubic {
    /// A connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Cubic {
        let ssthresh = match params.initial_ssthresh {
            0 => Limits::INFINITE,
            threshold if !params.hystart.enabled => threshold,
            _ => Limits::INFINITE,
        };
        let (now_us, snd_nxt) = (connection.now.as_micros() as u32, connection.packets_out as u64);
        let algorithm = CubicIncrease::new(params, config, now_us, snd_nxt);
        LossBased::with_algorithm(algorithm, ssthresh, &params.core, config, connection)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::controller::{Controller, TransmitStart};
    use crate::testing::{CONFIG, Flow, deliver};
    use fullpipe_units::{Duration, Time};
    use std::vec::Vec;

    /// A flow that lost at a window of 1,000 and has left recovery.
    fn after_loss(flow: &mut Flow, params: &Params) -> Cubic {
        let mut cubic = Cubic::new(params, &CONFIG, &flow.connection);
        deliver(&mut cubic, &flow.ack(990));
        flow.connection.in_flight = 900;
        flow.change(&mut cubic, CaState::Recovery, true);
        flow.change(&mut cubic, CaState::Open, false);
        cubic
    }

    /// The window each second, with ACKs every 10 ms of a tenth of it.
    fn seconds(cubic: &mut Cubic, flow: &mut Flow, count: usize) -> Vec<u32> {
        let mut windows = Vec::new();
        for _ in 0..count {
            for _ in 0..100 {
                flow.pass(Duration::from_millis(10));
                let acked = cubic.limits().cwnd / 10;
                deliver(cubic, &flow.ack(acked));
            }
            windows.push(cubic.limits().cwnd);
        }
        windows
    }

    #[test]
    fn window_returns_to_maximum_in_k() {
        let mut flow = Flow::new();
        let params = Params { tcp_friendliness: false, ..Params::default() };
        let mut cubic = after_loss(&mut flow, &params);
        assert_eq!(cubic.limits().cwnd, 700);
        // K = cbrt(300 / 0.4) = 9.09 s: steep, flat around the ninth second, steep again.
        let windows = seconds(&mut cubic, &mut flow, 14);
        assert_eq!(cubic.algorithm().curve().bic_k, 9_294);
        assert_eq!(windows, [789, 858, 910, 948, 973, 989, 997, 1000, 1000, 1000, 1003, 1010, 1024, 1047]);
    }

    #[test]
    fn large_cube_roots_within_one_percent() {
        assert_eq!([0, 1, 8, 27, 64, 125, 1_000].map(cubic_root), [0, 1, 2, 3, 4, 5, 10]);
        let (mut sum, mut count) = (0.0, 0.0);
        let mut a = 1_000u64;
        while a < 1 << 60 {
            let exact = (a as f64).cbrt();
            let error = (cubic_root(a) as f64 - exact).abs() / exact;
            assert!(error < 0.1, "{a}: {error}");
            if a > 1_000_000_000 {
                assert!(error < 0.01, "{a}: {error}");
                sum += error;
                count += 1.0;
            }
            a += a / 97;
        }
        assert!(sum / count < 0.002, "{}", sum / count);
    }

    #[test]
    fn loss_below_maximum_aims_lower() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &Params::default());
        assert_eq!(cubic.algorithm().curve().last_max_cwnd, 1_000);
        flow.change(&mut cubic, CaState::Recovery, true);
        // 700 * (1024 + 717) / 2048.
        assert_eq!(cubic.algorithm().curve().last_max_cwnd, 595);
        assert_eq!(cubic.limits().ssthresh, 490);
    }

    #[test]
    fn curve_is_evaluated_once_per_jiffy() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &Params::default());
        flow.pass(Duration::from_millis(1));
        deliver(&mut cubic, &flow.ack(100));
        let evaluated = cubic.algorithm().curve().last_time;
        cubic.set_cwnd_for_test(800);
        deliver(&mut cubic, &flow.ack(1));
        assert_eq!(cubic.algorithm().curve().last_cwnd, 700);
        flow.pass(Duration::from_millis(1));
        deliver(&mut cubic, &flow.ack(1));
        assert_eq!(cubic.algorithm().curve().last_time, evaluated + 1);
    }

    #[test]
    fn small_windows_grow_like_reno() {
        let mut flow = Flow::new();
        let mut cubic = Cubic::new(&Params::default(), &CONFIG, &flow.connection);
        flow.connection.in_flight = 5;
        flow.change(&mut cubic, CaState::Recovery, true);
        flow.change(&mut cubic, CaState::Open, false);
        assert_eq!(cubic.limits().cwnd, 7);
        // About half a segment a round: 3 (1 - 0.7) / (1 + 0.7) = 0.53 (RFC 9438 section 4.3).
        let windows: Vec<u32> = (0..10)
            .map(|_| {
                flow.pass(Duration::from_millis(40));
                let cwnd = cubic.limits().cwnd;
                deliver(&mut cubic, &flow.ack(cwnd));
                cubic.limits().cwnd
            })
            .collect();
        assert_eq!(windows, [8, 8, 8, 10, 10, 10, 10, 12, 12, 12]);
    }

    #[test]
    fn idle_time_pauses_curve() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &Params::default());
        flow.pass(Duration::from_millis(10));
        deliver(&mut cubic, &flow.ack(1));
        let epoch = cubic.algorithm().curve().epoch_start;
        let last_sent = flow.connection.now;
        flow.pass(Duration::from_millis(5_000));
        // Something is still out, so the window does not restart.
        flow.connection.packets_out = 1;
        let rto = Duration::from_millis(300);
        cubic.on_transmit_start(&TransmitStart { connection: flow.connection, last_sent, rto });
        assert_eq!(cubic.algorithm().curve().epoch_start, epoch + 5_000);
        cubic.on_transmit_start(&TransmitStart { connection: flow.connection, last_sent: Time::ZERO, rto });
        assert_eq!(cubic.algorithm().curve().epoch_start, flow.connection.jiffies, "never in the future");
    }

    #[test]
    fn timeout_resets_curve_and_hystart() {
        let mut flow = Flow::new();
        let mut cubic = after_loss(&mut flow, &Params::default());
        flow.connection.in_flight = 0;
        flow.send(&mut cubic, 7, false);
        flow.change(&mut cubic, CaState::Loss, true);
        assert_eq!(*cubic.algorithm().curve(), Curve::default());
        assert!(!cubic.algorithm().hystart().round().found);
        assert_eq!(cubic.algorithm().hystart().round().end_seq, 997);
    }
}
