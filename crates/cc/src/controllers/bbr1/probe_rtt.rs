//! The minimum RTT, and when to empty the queue to measure it again.

use super::Params;
use crate::controllers::bbr::after;

/// The filter and ProbeRTT's clock. Stamps are in jiffies, so they are coarse and wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeRtt {
    /// The minimum in microseconds, or [`NO_RTT`](crate::controllers::bbr::bandwidth::NO_RTT).
    pub(crate) min_rtt_us: u32,
    /// When it was accepted.
    pub(crate) min_rtt_stamp: u32,
    /// When ProbeRTT may end; zero until the flight is small.
    pub(crate) probe_rtt_done_stamp: u32,
    /// A round passed since then.
    pub(crate) probe_rtt_round_done: bool,
    /// The filter's window and ProbeRTT's length in jiffies.
    pub(crate) window: u32,
    pub(crate) dwell: u32,
}

impl ProbeRtt {
    pub(crate) fn new(params: &Params, hz: u32, min_rtt_us: u32, jiffies: u32) -> ProbeRtt {
        ProbeRtt {
            min_rtt_us,
            min_rtt_stamp: jiffies,
            probe_rtt_done_stamp: 0,
            probe_rtt_round_done: false,
            window: params.min_rtt_window_s.wrapping_mul(hz),
            // msecs_to_jiffies rounds up.
            dwell: (params.probe_rtt_ms as u64 * hz as u64).div_ceil(1_000) as u32,
        }
    }

    /// Takes in an RTT; returns whether the filter had expired before it. An expired filter accepts a larger RTT, unless
    /// the receiver may have delayed the ACK.
    #[inline]
    pub(crate) fn on_rtt(&mut self, jiffies: u32, rtt_us: Option<u64>, maybe_delayed: bool) -> bool {
        let expired = after(jiffies, self.min_rtt_stamp.wrapping_add(self.window));
        if let Some(rtt_us) = rtt_us
            && (rtt_us < self.min_rtt_us as u64 || (expired && !maybe_delayed))
        {
            self.min_rtt_us = rtt_us as u32;
            self.min_rtt_stamp = jiffies;
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
    use crate::controllers::bbr::bandwidth::NO_RTT;

    #[test]
    fn filter_expires_after_10s_across_wrap() {
        let start = u32::MAX - 100;
        let mut filter = ProbeRtt::new(&Params::default(), 250, 20_000, start);
        assert!(!filter.on_rtt(start.wrapping_add(2_500), Some(30_000), false));
        assert_eq!(filter.min_rtt_us, 20_000);
        assert!(
            filter.on_rtt(start.wrapping_add(2_501), Some(30_000), true),
            "expired, but the ACK may be delayed"
        );
        assert_eq!(filter.min_rtt_us, 20_000);
        assert!(filter.on_rtt(start.wrapping_add(2_501), Some(30_000), false));
        assert_eq!(filter.min_rtt_us, 30_000);
    }

    #[test]
    fn equal_rtt_does_not_renew_filter() {
        let mut filter = ProbeRtt::new(&Params::default(), 1000, 20_000, 0);
        filter.on_rtt(5_000, Some(20_000), false);
        assert_eq!(filter.min_rtt_stamp, 0);
    }

    #[test]
    fn the_dwell_rounds_up_to_jiffies() {
        let params = Params { probe_rtt_ms: 201, ..Params::default() };
        let mut filter = ProbeRtt::new(&params, 100, NO_RTT, 0);
        filter.begin_dwell(1_000);
        assert!(!filter.is_done(1_021));
        assert!(filter.is_done(1_022));
    }
}
