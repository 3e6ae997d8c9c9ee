//! The minimum RTT, and when to reduce the flight to measure it again.

use super::Params;

/// No RTT was measured yet.
pub(crate) const NO_RTT: u32 = u32::MAX;

/// The two filters and ProbeRTT's clock (draft section 5.3.4.3). Times are in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MinRtt {
    /// The minimum of the last ten seconds, or [`NO_RTT`].
    pub(crate) min_rtt_us: u32,
    /// When it was measured.
    pub(crate) min_rtt_stamp: u64,
    /// The minimum of the last five seconds, or [`NO_RTT`].
    pub(crate) probe_rtt_min_us: u32,
    /// When it was measured, or ProbeRTT ended.
    pub(crate) probe_rtt_min_stamp: u64,
    /// It is due for a refresh.
    pub(crate) probe_rtt_expired: bool,
    /// When ProbeRTT may end; zero until the flight is small.
    pub(crate) probe_rtt_done_stamp: u64,
    /// A round passed since then.
    pub(crate) probe_rtt_round_done: bool,
}

impl MinRtt {
    pub(crate) const fn new(rtt_us: u32, now_us: u64) -> MinRtt {
        MinRtt {
            // draft 5.2.1: OnInit
            min_rtt_us: rtt_us,
            min_rtt_stamp: now_us,
            // Unset in the draft (docs/explanation/bbr3.md, defect 6).
            probe_rtt_min_us: rtt_us,
            probe_rtt_min_stamp: now_us,
            probe_rtt_expired: false,
            probe_rtt_done_stamp: 0,
            probe_rtt_round_done: false,
        }
    }

    // draft 5.3.4.3: UpdateMinRTT, UpdateMinRTT.{probe_rtt_min_delay, min_rtt}
    #[inline]
    pub(crate) fn on_ack(&mut self, params: &Params, now_us: u64, rtt_us: Option<u32>) {
        let seconds = |s: u32| s as u64 * 1_000_000;
        self.probe_rtt_expired = now_us > self.probe_rtt_min_stamp + seconds(params.probe_rtt_interval_s);
        if let Some(rtt_us) = rtt_us
            && (rtt_us < self.probe_rtt_min_us || self.probe_rtt_expired)
        {
            self.probe_rtt_min_us = rtt_us;
            self.probe_rtt_min_stamp = now_us;
        }
        let min_rtt_expired = now_us > self.min_rtt_stamp + seconds(params.min_rtt_window_s);
        if self.probe_rtt_min_us < self.min_rtt_us || min_rtt_expired {
            self.min_rtt_us = self.probe_rtt_min_us;
            self.min_rtt_stamp = self.probe_rtt_min_stamp;
        }
    }

    // draft 5.3.4.3: HandleProbeRTT
    /// The flight is small: dwell from now on.
    pub(crate) fn begin_dwell(&mut self, params: &Params, now_us: u64) {
        self.probe_rtt_done_stamp = now_us + params.probe_rtt_ms as u64 * 1_000;
        self.probe_rtt_round_done = false;
    }

    // draft 5.3.4.3: CheckProbeRTTDone
    /// Whether the dwell is over; if so, the next ProbeRTT is scheduled.
    pub(crate) fn is_done(&mut self, now_us: u64) -> bool {
        let done = self.probe_rtt_done_stamp != 0 && now_us > self.probe_rtt_done_stamp;
        if done {
            self.probe_rtt_min_stamp = now_us;
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000;

    // draft 5.3.4.3: UpdateMinRTT
    #[test]
    fn only_lower_rtt_renews_both_filters() {
        let mut filter = MinRtt::new(20_000, 0);
        filter.on_ack(&Params::default(), S, Some(20_000));
        assert_eq!((filter.min_rtt_stamp, filter.probe_rtt_min_stamp), (0, 0));
        filter.on_ack(&Params::default(), 2 * S, Some(19_999));
        assert_eq!(
            (filter.min_rtt_us, filter.min_rtt_stamp, filter.probe_rtt_min_stamp),
            (19_999, 2 * S, 2 * S)
        );
    }

    // draft 5.3.4.3: UpdateMinRTT, UpdateMinRTT.{probe_rtt_min_delay, min_rtt_expired, min_rtt}
    #[test]
    fn filters_expire_after_5s_and_10s() {
        let mut filter = MinRtt::new(20_000, 0);
        filter.on_ack(&Params::default(), 5 * S, Some(30_000));
        assert!(!filter.probe_rtt_expired);
        filter.on_ack(&Params::default(), 5 * S + 1, Some(30_000));
        assert!(filter.probe_rtt_expired);
        assert_eq!(
            (filter.probe_rtt_min_us, filter.min_rtt_us),
            (30_000, 20_000),
            "the minimum is remembered"
        );
        filter.on_ack(&Params::default(), 10 * S, Some(31_000));
        assert_eq!(filter.min_rtt_us, 20_000);
        filter.on_ack(&Params::default(), 10 * S + 1, Some(31_000));
        assert_eq!((filter.min_rtt_us, filter.min_rtt_stamp), (30_000, 5 * S + 1));
    }
}
