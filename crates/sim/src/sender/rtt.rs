//! Smoothed RTT, its variance and the retransmission timeout (Linux: `tcp_rtt_estimator`, `tcp_set_rto`; RFC 6298); the
//! minimum RTT.

use fullpipe_units::{Duration, Time};

/// Linux `TCP_RTO_MIN`: 200 ms.
pub(crate) const RTO_MIN_US: u32 = 200_000;
/// Linux `TCP_RTO_MAX`: 120 s.
pub(crate) const RTO_MAX_US: u32 = 120_000_000;
/// Linux `TCP_TIMEOUT_INIT`: 1 s (RFC 6298 section 2.1).
pub(crate) const RTO_INITIAL_US: u32 = 1_000_000;

/// The estimator. All in microseconds; `srtt_x8` and `mdev_x4` are scaled as in Linux.
#[derive(Debug)]
pub(crate) struct RttEstimator {
    srtt_x8: u32,
    mdev_x4: u32,
    mdev_max: u32,
    rttvar: u32,
    /// The variance may shrink when `una` passes this.
    round_end: u64,
    /// Timeout with back-off.
    pub(crate) rto_us: u32,
}

impl RttEstimator {
    pub(crate) fn new() -> RttEstimator {
        RttEstimator { srtt_x8: 0, mdev_x4: 0, mdev_max: 0, rttvar: 0, round_end: 0, rto_us: RTO_INITIAL_US }
    }

    /// Takes a sample. Resets back-off, as Linux does on any valid sample.
    #[inline]
    pub(crate) fn sample(&mut self, rtt_us: u32, una: u64, next: u64) {
        let mut error = rtt_us as i64;
        if self.srtt_x8 == 0 {
            self.srtt_x8 = rtt_us << 3;
            self.mdev_x4 = rtt_us << 1;
            self.rttvar = self.mdev_x4.max(RTO_MIN_US);
            self.mdev_max = self.rttvar;
            self.round_end = next;
        } else {
            error -= (self.srtt_x8 >> 3) as i64;
            self.srtt_x8 = (self.srtt_x8 as i64 + error) as u32;
            let mut change;
            if error < 0 {
                // A falling RTT is no variance: a slower gain keeps the timeout from growing (Linux, after Eifel).
                change = -error - (self.mdev_x4 >> 2) as i64;
                if change > 0 {
                    change >>= 3;
                }
            } else {
                change = error - (self.mdev_x4 >> 2) as i64;
            }
            self.mdev_x4 = (self.mdev_x4 as i64 + change) as u32;
            if self.mdev_x4 > self.mdev_max {
                self.mdev_max = self.mdev_x4;
                self.rttvar = self.rttvar.max(self.mdev_max);
            }
            if una > self.round_end {
                if self.mdev_max < self.rttvar {
                    self.rttvar -= (self.rttvar - self.mdev_max) >> 2;
                }
                self.round_end = next;
                self.mdev_max = RTO_MIN_US;
            }
        }
        self.srtt_x8 = self.srtt_x8.max(1);
        self.rto_us = ((self.srtt_x8 >> 3) + self.rttvar).min(RTO_MAX_US);
    }

    /// Doubles the timeout (RFC 6298 section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.rto_us = (self.rto_us * 2).min(RTO_MAX_US);
    }

    /// Smoothed RTT in microseconds times eight (Linux: `srtt_us`); zero before the first sample.
    #[inline]
    pub(crate) fn srtt_x8(&self) -> u32 {
        self.srtt_x8
    }

    /// Mean deviation in microseconds times four (Linux: `mdev_us`).
    pub(crate) fn mdev_x4(&self) -> u32 {
        self.mdev_x4
    }

    /// Smoothed RTT in eighths of a microsecond; zero before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Duration {
        Duration::from_nanos(self.srtt_x8 as u64 * 125)
    }
}

/// Minimum RTT over the last 300 s (Linux: `tcp_min_rtt`, `net.ipv4.tcp_min_rtt_wlen`).
#[derive(Debug)]
pub(super) struct MinRtt {
    micros: u32,
    since: Time,
}

impl MinRtt {
    const WINDOW: Duration = Duration::from_secs(300);

    pub(super) fn new() -> MinRtt {
        MinRtt { micros: u32::MAX, since: Time::ZERO }
    }

    #[inline]
    pub(super) fn sample(&mut self, micros: u32, now: Time) {
        if micros <= self.micros || now.saturating_since(self.since) > Self::WINDOW {
            self.micros = micros;
            self.since = now;
        }
    }

    #[inline]
    pub(super) fn micros(&self) -> u32 {
        self.micros
    }

    #[inline]
    pub(super) fn get(&self) -> Duration {
        if self.micros == u32::MAX { Duration::MAX } else { Duration::from_micros(self.micros as u64) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steady_rtt_adds_minimum_rto() {
        let mut estimator = RttEstimator::new();
        for round in 0..200 {
            estimator.sample(40_000, round * 10, round * 10 + 5);
        }
        assert_eq!(estimator.srtt(), Duration::from_millis(40));
        // The variance decays towards the 200 ms floor, and not below (Linux folds the minimum into the variance).
        assert_eq!(estimator.rto_us, 240_000);
    }

    #[test]
    fn the_first_sample_counts_whole() {
        let mut estimator = RttEstimator::new();
        estimator.sample(100_000, 0, 1);
        assert_eq!(estimator.srtt(), Duration::from_millis(100));
        assert_eq!(estimator.rto_us, 300_000);
        estimator.back_off();
        assert_eq!(estimator.rto_us, 600_000);
    }
}
