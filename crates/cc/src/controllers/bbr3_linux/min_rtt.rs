//! The minimum RTT, and when to drain the queue to measure it again.

use super::Params;
use crate::controllers::bbr::after;

/// Two filters, one within the other, and ProbeRTT's clock. Stamps are in jiffies, so they are coarse and wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinRtt {
    /// The minimum in microseconds, or [`NO_RTT`](crate::controllers::bbr::bandwidth::NO_RTT).
    pub(crate) min_rtt_us: u32,
    /// When it was measured.
    pub(crate) min_rtt_stamp: u32,
    /// The minimum of the shorter window, whose end is when to probe.
    pub(crate) probe_rtt_min_us: u32,
    /// When that was measured.
    pub(crate) probe_rtt_min_stamp: u32,
    /// When ProbeRTT may end; zero until the flight is small.
    pub(crate) probe_rtt_done_stamp: u32,
    /// A round passed since the flight is small.
    pub(crate) probe_rtt_round_done: bool,
    /// The windows and ProbeRTT's length in jiffies.
    window: u32,
    probe_window: u32,
    dwell: u32,
}

impl MinRtt {
    pub(crate) fn new(params: &Params, hz: u32, min_rtt_us: u32, jiffies: u32) -> MinRtt {
        // msecs_to_jiffies rounds up.
        let jiffies_of = |ms: u32| (ms as u64 * hz as u64).div_ceil(1_000) as u32;
        MinRtt {
            min_rtt_us,
            min_rtt_stamp: jiffies,
            probe_rtt_min_us: min_rtt_us,
            probe_rtt_min_stamp: jiffies,
            probe_rtt_done_stamp: 0,
            probe_rtt_round_done: false,
            window: params.min_rtt_win_sec.wrapping_mul(hz),
            probe_window: jiffies_of(params.probe_rtt_win_ms),
            dwell: jiffies_of(params.probe_rtt_mode_ms),
        }
    }

    /// Takes in an RTT; returns whether it is time for ProbeRTT. An expired filter accepts a larger RTT, unless the receiver
    /// may have delayed the ACK; and an equal one renews the longer window.
    #[inline]
    pub(crate) fn on_rtt(&mut self, jiffies: u32, rtt_us: Option<u64>, maybe_delayed: bool) -> bool {
        let expired = after(jiffies, self.probe_rtt_min_stamp.wrapping_add(self.probe_window));
        if let Some(rtt_us) = rtt_us
            && (rtt_us < self.probe_rtt_min_us as u64 || (expired && !maybe_delayed))
        {
            self.probe_rtt_min_us = rtt_us as u32;
            self.probe_rtt_min_stamp = jiffies;
        }
        let min_expired = after(jiffies, self.min_rtt_stamp.wrapping_add(self.window));
        if self.probe_rtt_min_us <= self.min_rtt_us || min_expired {
            self.min_rtt_us = self.probe_rtt_min_us;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
        expired
    }

    /// The flight is small: dwell from now on.
    pub(crate) fn begin_dwell(&mut self, jiffies: u32) {
        self.probe_rtt_done_stamp = jiffies.wrapping_add(self.dwell);
        self.probe_rtt_round_done = false;
    }

    /// Whether the dwell is over.
    #[inline]
    pub(crate) fn is_done(&self, jiffies: u32) -> bool {
        self.probe_rtt_done_stamp != 0 && after(jiffies, self.probe_rtt_done_stamp)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_filter_triggers_probe_feeds_long() {
        let start = u32::MAX - 100;
        let mut filter = MinRtt::new(&Params::default(), 250, 20_000, start);
        let at = |ms: u32| start.wrapping_add(ms / 4);
        assert!(!filter.on_rtt(at(5_000), Some(30_000), false));
        assert!(filter.on_rtt(at(5_004), Some(30_000), true), "expired, but the ACK may be delayed");
        assert_eq!((filter.probe_rtt_min_us, filter.min_rtt_us), (20_000, 20_000));
        assert!(filter.on_rtt(at(5_008), Some(30_000), false));
        assert_eq!((filter.probe_rtt_min_us, filter.min_rtt_us), (30_000, 20_000));
        assert!(!filter.on_rtt(at(10_000), Some(40_000), false));
        assert_eq!(filter.min_rtt_us, 20_000);
        assert!(filter.on_rtt(at(10_012), Some(40_000), false));
        assert_eq!(filter.min_rtt_us, 40_000, "both windows have passed");
    }

    #[test]
    fn equal_rtt_renews_minimum() {
        let mut filter = MinRtt::new(&Params::default(), 1000, 20_000, 0);
        filter.on_rtt(5_001, Some(20_000), false);
        assert_eq!(filter.min_rtt_stamp, 5_001);
        filter.on_rtt(6_000, Some(20_000), false);
        assert_eq!(filter.min_rtt_stamp, 5_001, "but not before the short window has passed");
    }
}
