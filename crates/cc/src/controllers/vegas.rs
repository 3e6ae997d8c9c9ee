//! Vegas: keeps two to four segments in the queue, estimated by how far the round's RTT is above the smallest ever.
//!
//! Specification: Linux 6.12 `net/ipv4/tcp_vegas.c`, after Brakmo and Peterson, "TCP Vegas: End to End Congestion
//! Avoidance on a Global Internet", IEEE JSAC 13(8), 1995. Deviations: docs/reference/deviations.md#vegas.
//!
//! Once a round trip, with the least RTT of the round and the least of all (`baseRTT`): the window minus what the path
//! alone would hold at this rate, `cwnd (rtt - baseRTT) / baseRTT`, is what waits in the queue. Below `alpha` the window
//! grows by one, above `beta` it shrinks by one; in slow start, which doubles every round, `gamma` ends it. A round with
//! fewer than three RTTs is too little evidence, and recovery is none: there, Vegas behaves like Reno.

use crate::controller::{CaState, CeMarks, Config, Connection, Limits};
use crate::controllers::recovery::current_ssthresh;
use crate::controllers::segment_window::{Acked, Algorithm, Clocks, CoreParams, LossBased, Sampled, Window};
use crate::parameter::{ControllerInfo, parameters};

/// An RTT that was not measured yet, in microseconds.
const UNKNOWN_US: u32 = 0x7fff_ffff;

/// With this many RTTs a round or fewer, they may all be of delayed ACKs.
const TOO_FEW_RTTS: u32 = 2;

parameters! {
    /// Vegas's parameters; the defaults are Linux's module parameters.
    pub struct Params from "Linux 6.12 net/ipv4/tcp_vegas.c";
    alpha: u32 = whole(2, 0..=1_000_000, "segments"), "grow with fewer segments than this in the queue";
    beta: u32 = whole(4, 0..=1_000_000, "segments"), "shrink with more segments than this in the queue";
    gamma: u32 = whole(1, 0..=1_000_000, "segments"), "end slow start with more segments than this in the queue";
    ..core: CoreParams;
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "vegas",
    summary: "keeps a few segments in the queue, by how far the RTT is above the smallest seen",
    source: "Linux 6.12 net/ipv4/tcp_vegas.c; Brakmo and Peterson 1995",
    linux_name: Some("vegas"),
    answers_delay: true,
    parameters: Params::PARAMETERS,
};

/// The increase algorithm; the fields are those of the kernel's `struct vegas`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VegasIncrease {
    alpha: u32,
    beta: u32,
    gamma: u32,
    /// The round ends when `SND.UNA` passes this (`beg_snd_nxt`).
    round_end: u64,
    /// Not in recovery (`doing_vegas_now`).
    enabled: bool,
    /// RTTs in this round (`cntRTT`).
    rtts: u32,
    /// The least of them, in microseconds (`minRTT`).
    round_rtt_us: u32,
    /// The least of all (`baseRTT`).
    base_rtt_us: u32,
}

impl VegasIncrease {
    fn new(params: &Params, snd_nxt: u64) -> VegasIncrease {
        VegasIncrease {
            alpha: params.alpha,
            beta: params.beta,
            gamma: params.gamma,
            round_end: snd_nxt,
            enabled: true,
            rtts: 0,
            round_rtt_us: UNKNOWN_US,
            base_rtt_us: UNKNOWN_US,
        }
    }

    /// The measurements are stale; a round of fresh data begins (Linux: `vegas_enable`).
    fn enable(&mut self, snd_nxt: u64) {
        self.enabled = true;
        self.begin_round(snd_nxt);
    }

    fn begin_round(&mut self, snd_nxt: u64) {
        self.round_end = snd_nxt;
        self.rtts = 0;
        self.round_rtt_us = UNKNOWN_US;
    }

    /// The decision of a round. Products wrap at 32 bits where the kernel's do.
    fn decide(&self, window: &mut Window, acked: u32) {
        let (rtt, base) = (self.round_rtt_us, self.base_rtt_us);
        let queued = window.cwnd.wrapping_mul(rtt.wrapping_sub(base)) / base;
        if !window.in_slow_start() {
            if queued > self.beta {
                window.cwnd = window.cwnd.saturating_sub(1);
                window.ssthresh = window.ssthresh.min(window.cwnd);
            } else if queued < self.alpha {
                window.cwnd += 1;
            }
        } else if queued > self.gamma {
            // The rate at which ACKs return, over the empty path, and one for what division dropped.
            let target = (window.cwnd as u64 * base as u64 / rtt as u64) as u32;
            window.cwnd = window.cwnd.min(target.wrapping_add(1));
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else {
            window.slow_start(acked);
        }
        window.cwnd = if window.cwnd < 2 { 2 } else { window.cwnd.min(window.clamp) };
        // Never called in a reduction, which alone would leave the threshold alone.
        window.ssthresh = current_ssthresh(window.cwnd, window.ssthresh, CaState::Open);
    }
}

impl Algorithm for VegasIncrease {
    /// Linux: `tcp_vegas_pkts_acked`.
    #[inline]
    fn pkts_acked(&mut self, _: &mut Window, _: Clocks, sampled: &Sampled) {
        // One more, so that no RTT is zero.
        let rtt = sampled.rtt_us.wrapping_add(1);
        self.base_rtt_us = self.base_rtt_us.min(rtt);
        self.round_rtt_us = self.round_rtt_us.min(rtt);
        self.rtts += 1;
    }

    /// Linux: `tcp_vegas_cong_avoid`.
    #[inline]
    fn cong_avoid(&mut self, window: &mut Window, _: Clocks, acked: Acked) {
        if !self.enabled {
            window.reno(acked.segments);
        } else if acked.snd_una > self.round_end {
            if self.rtts <= TOO_FEW_RTTS {
                window.reno(acked.segments);
            } else {
                self.decide(window, acked.segments);
            }
            self.begin_round(acked.snd_nxt);
        } else if window.in_slow_start() {
            window.slow_start(acked.segments);
        }
    }

    /// Reno's.
    fn ssthresh(&mut self, window: &Window) -> u32 {
        window.half()
    }

    /// A loss is answered as a mark is.
    fn loss_ssthresh(&mut self, _: &Window) -> Option<u32> {
        None
    }

    /// How many segments are marked makes no difference.
    fn on_marks(&mut self, _: &CeMarks) {}

    /// Linux: `tcp_vegas_state`.
    fn on_state(&mut self, to: CaState, _: Clocks, snd_nxt: u64) {
        if to == CaState::Open {
            self.enable(snd_nxt);
        } else {
            self.enabled = false;
        }
    }

    /// With nothing in flight, all measurements are stale, including the path's RTT (Linux: `tcp_vegas_cwnd_event`).
    fn on_transmit_start(&mut self, _: Clocks, _: u32, snd_nxt: u64) {
        self.base_rtt_us = UNKNOWN_US;
        self.enable(snd_nxt);
    }

    fn min_rtt_us(&self) -> Option<u32> {
        (self.base_rtt_us != UNKNOWN_US).then(|| self.base_rtt_us - 1)
    }
}

/// A Vegas connection.
pub type Vegas = LossBased<VegasIncrease>;

impl Vegas {
    /// A connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Vegas {
        let algorithm = VegasIncrease::new(params, connection.packets_out as u64);
        LossBased::with_algorithm(algorithm, Limits::INFINITE, &params.core, config, connection)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::controller::{Ack, Controller, TransmitStart};
    use crate::testing::{CONFIG, Flow, deliver};
    use fullpipe_units::{Duration, Time};

    fn vegas(flow: &Flow) -> Vegas {
        Vegas::new(&Params::default(), &CONFIG, &flow.connection)
    }

    /// Four ACKs of one segment each: the first ends the round before, the others are one of which the last decides.
    fn round(flow: &mut Flow, vegas: &mut Vegas, rtt_us: [u64; 4]) -> u32 {
        flow.snd_nxt = flow.snd_una + 3;
        for rtt_us in rtt_us {
            deliver(vegas, &acked(flow, rtt_us));
        }
        vegas.limits().cwnd
    }

    fn acked(flow: &mut Flow, rtt_us: u64) -> Ack {
        let snd_nxt = flow.snd_nxt;
        let ack = Ack { rtt: Some(Duration::from_micros(rtt_us)), ..flow.ack(1) };
        flow.snd_nxt = snd_nxt.max(flow.snd_una);
        Ack { snd_nxt: flow.snd_nxt, ..ack }
    }

    /// In congestion avoidance with a window of 20, a base RTT of 100 ms (99,999 us and one) and a round under way.
    fn steady(flow: &mut Flow) -> Vegas {
        let mut vegas = vegas(flow);
        vegas.set_cwnd_for_test(20);
        vegas.set_ssthresh_for_test(15);
        // The first ACK is past the round that the connection began with, and alone: Reno, which counts one of twenty.
        flow.snd_nxt = 1;
        deliver(&mut vegas, &acked(flow, 99_999));
        assert_eq!((vegas.window().cwnd, vegas.window().cwnd_cnt), (20, 1));
        vegas
    }

    #[test]
    fn window_follows_queue_once_per_round() {
        // 20 segments: 10 ms of 100 are two segments, 20 are four, and rounded down.
        for (rtt_us, cwnd) in [
            (99_999, 21),  // 0 < alpha
            (109_998, 21), // 20 * 9,999 / 100,000 = 1.99...: 1 < alpha
            (109_999, 20), // 2
            (124_998, 20), // 4.99...: 4
            (124_999, 19), // 5 > beta
        ] {
            let mut flow = Flow::new();
            let mut vegas = steady(&mut flow);
            assert_eq!(round(&mut flow, &mut vegas, [rtt_us + 30_000, rtt_us, rtt_us + 5, rtt_us + 9]), cwnd);
        }
    }

    #[test]
    fn minimum_rtt_counts_for_one_round() {
        let mut flow = Flow::new();
        let mut vegas = steady(&mut flow);
        assert_eq!(round(&mut flow, &mut vegas, [200_000, 99_999, 200_000, 200_000]), 21);
        assert_eq!(round(&mut flow, &mut vegas, [200_000, 200_000, 200_000, 150_000]), 20);
    }

    #[test]
    fn growth_raises_threshold_shrinking_lowers_it() {
        let mut flow = Flow::new();
        let mut vegas = steady(&mut flow);
        vegas.set_ssthresh_for_test(5);
        round(&mut flow, &mut vegas, [99_999; 4]);
        // 21 / 2 + 21 / 4.
        assert_eq!((vegas.window().cwnd, vegas.window().ssthresh), (21, 15));
        vegas.set_ssthresh_for_test(21);
        round(&mut flow, &mut vegas, [200_000; 4]);
        assert_eq!((vegas.window().cwnd, vegas.window().ssthresh), (20, 20));
    }

    #[test]
    fn slow_start_ends_above_gamma_queue() {
        let window_and_threshold = |rtt_us| {
            let mut flow = Flow::new();
            let mut vegas = steady(&mut flow);
            vegas.set_cwnd_for_test(80);
            vegas.set_ssthresh_for_test(Limits::INFINITE);
            // Three ACKs take it to 83, of which the fourth decides.
            round(&mut flow, &mut vegas, [rtt_us; 4]);
            (vegas.window().cwnd, vegas.window().ssthresh)
        };
        // 83 * 2,409 / 100,000 = 1.99..., not above 1.
        assert_eq!(window_and_threshold(102_408), (84, Limits::INFINITE));
        // 83 * 2,410 / 100,000 = 2.0003: 83 * 100,000 / 102,410 = 81.04, and one.
        assert_eq!(window_and_threshold(102_409), (82, 82));
        // 83 * 100,000 / 200,000 = 41.5, and one.
        assert_eq!(window_and_threshold(199_999), (42, 42));
    }

    #[test]
    fn fewer_than_three_rtts_use_reno() {
        let mut flow = Flow::new();
        let mut vegas = steady(&mut flow);
        // Two ACKs of ten segments a round, and a queue that would have shrunk the window. Those that end a round count
        // for Reno: ten, beside the one before, and ten.
        for expected in [(20, 11), (20, 11), (21, 1)] {
            flow.snd_nxt = flow.snd_una + 20;
            let rtt = Some(Duration::from_millis(300));
            deliver(&mut vegas, &Ack { rtt, ..flow.ack(10) });
            assert_eq!((vegas.window().cwnd, vegas.window().cwnd_cnt), expected);
        }
    }

    #[test]
    fn recovery_is_reno_then_fresh_round() {
        let mut flow = Flow::new();
        let mut vegas = steady(&mut flow);
        flow.connection.in_flight = 18;
        flow.change(&mut vegas, CaState::Recovery, true);
        deliver(&mut vegas, &acked(&mut flow, 300_000));
        assert_eq!((vegas.limits().ssthresh, vegas.algorithm().enabled), (10, false));
        flow.snd_nxt = flow.snd_una + 10;
        flow.change(&mut vegas, CaState::Open, false);
        deliver(&mut vegas, &Ack { snd_nxt: flow.snd_nxt, ..acked(&mut flow, 300_000) });
        // The RTT of the ACK that ended it is not of the new round.
        let algorithm = vegas.algorithm();
        assert_eq!((algorithm.enabled, algorithm.rtts, algorithm.round_end), (true, 0, flow.snd_nxt));
        assert_eq!(algorithm.base_rtt_us, 100_000, "the path is the same");
        assert_eq!(vegas.limits().cwnd, 10);
    }

    #[test]
    fn disorder_suspends_vegas_and_reno_grows() {
        let mut flow = Flow::new();
        let mut vegas = steady(&mut flow);
        flow.change(&mut vegas, CaState::Disorder, false);
        deliver(&mut vegas, &flow.ack(20));
        assert_eq!((vegas.window().cwnd, vegas.window().cwnd_cnt), (21, 1));
    }

    #[test]
    fn sending_from_idle_forgets_the_path() {
        let mut flow = Flow::new();
        let mut vegas = steady(&mut flow);
        flow.change(&mut vegas, CaState::Loss, true);
        assert!(!vegas.algorithm().enabled);
        let start = TransmitStart {
            connection: flow.connection,
            last_sent: Time::ZERO,
            rto: Duration::from_secs(60),
        };
        vegas.on_transmit_start(&start);
        assert!(vegas.algorithm().enabled, "as in Linux, even before recovery is over");
        assert_eq!(vegas.snapshot().min_rtt, None);
    }

    #[test]
    fn the_window_is_never_below_two() {
        let mut flow = Flow::new();
        let mut vegas = steady(&mut flow);
        vegas.set_cwnd_for_test(2);
        vegas.set_ssthresh_for_test(2);
        // 2 * 300 % = 6 > beta.
        assert_eq!(round(&mut flow, &mut vegas, [399_999; 4]), 2);
    }
}
