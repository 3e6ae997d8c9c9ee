//! How much more than expected ACKs deliver at once, so that the window can bridge the gaps between them.

use super::Params;
use super::ratio::times;
use crate::windowed::WindowedMax;

/// The estimator (draft section 5.5.9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Aggregation {
    /// When the interval began, in microseconds.
    interval_start: u64,
    /// Bytes delivered since.
    delivered: u64,
    /// The most excess, by rounds.
    filter: WindowedMax,
}

/// One ACK, as the estimator sees it.
pub(crate) struct Delivery {
    pub(crate) now_us: u64,
    pub(crate) newly_acked: u64,
    /// The estimated bandwidth, bytes a second.
    pub(crate) bw: u64,
    pub(crate) cwnd: u64,
    pub(crate) round_count: u32,
    pub(crate) full_bw_reached: bool,
}

impl Aggregation {
    pub(crate) const fn new(now_us: u64) -> Aggregation {
        Aggregation { interval_start: now_us, delivered: 0, filter: WindowedMax::new(0, 0) }
    }

    /// The estimate in bytes (draft: `BBR.extra_acked`).
    #[inline]
    pub(crate) const fn extra_acked(&self) -> u64 {
        self.filter.get() as u64
    }

    /// Begins an interval.
    #[inline]
    pub(crate) fn restart(&mut self, now_us: u64) {
        self.delivered = 0;
        self.interval_start = now_us;
    }

    // draft 5.5.9: UpdateACKAggregation, UpdateACKAggregation.{interval, extra_acked_delivered}
    // draft 5.5.9: UpdateACKAggregation.{extra_acked_interval_start, expected_delivered.2, extra_acked_delivered.2}
    // draft 5.5.9: UpdateACKAggregation.{extra.2, filter_len.2, extra_acked}
    #[inline]
    pub(crate) fn on_ack(&mut self, params: &Params, acked: &Delivery) {
        // At most 71 minutes, in which some ACK begins an interval.
        let interval_us = acked.now_us.saturating_sub(self.interval_start).min(u32::MAX as u64) as u32;
        let mut expected_delivered = times(acked.bw, interval_us) / 1_000_000;
        if self.delivered <= expected_delivered {
            self.restart(acked.now_us);
            expected_delivered = 0;
        }
        self.delivered += acked.newly_acked;
        let extra = (self.delivered - expected_delivered).min(acked.cwnd);
        let filter_len = if acked.full_bw_reached { params.extra_acked_rounds } else { 1 };
        // The filter's window is an age: a window of n rounds holds ages 0 to n - 1.
        let value = extra.min(u32::MAX as u64) as u32;
        self.filter.update(filter_len - 1, acked.round_count, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn acked(newly_acked: u64, now_us: u64) -> Delivery {
        Delivery { now_us, newly_acked, bw: 1_000_000, cwnd: u64::MAX, round_count: 0, full_bw_reached: true }
    }

    fn estimate_after(acks: &[Delivery]) -> u64 {
        let mut aggregation = Aggregation::new(0);
        for ack in acks {
            aggregation.on_ack(&Params::default(), ack);
        }
        aggregation.extra_acked()
    }

    // draft 5.5.9: UpdateACKAggregation, UpdateACKAggregation.{interval, expected_delivered, extra_acked_delivered}
    // draft 5.5.9: UpdateACKAggregation.{extra_acked_interval_start, expected_delivered.2, extra_acked_delivered.2}
    // draft 5.5.9: UpdateACKAggregation.{extra, extra.2}
    #[test]
    fn ack_burst_after_silence_counts_excess() {
        // One byte a microsecond: after 10 ms of silence 10,000 bytes were due.
        assert_eq!(estimate_after(&[acked(1_000, 1_000), acked(40_000, 1_000)]), 41_000);
        let later = [acked(1_000, 1_000), acked(40_000, 1_000), acked(50_000, 11_000)];
        assert_eq!(estimate_after(&later), 81_000);
        assert_eq!(estimate_after(&[Delivery { cwnd: 500, ..acked(1_000, 1_000) }]), 500);
    }

    // draft 5.5.9: UpdateACKAggregation.{filter_len, filter_len.2, extra_acked}
    #[test]
    fn maximum_lasts_ten_rounds_startup_one() {
        for (full_bw_reached, expected) in [(true, 10), (false, 1)] {
            let mut aggregation = Aggregation::new(0);
            let mut lived = 0;
            for round_count in 0..20 {
                // Far apart, so that each interval starts anew.
                let newly_acked = if round_count == 0 { 9_000 } else { 1 };
                let now_us = 1_000_000 * (round_count as u64 + 1);
                let ack = Delivery { round_count, full_bw_reached, ..acked(newly_acked, now_us) };
                aggregation.on_ack(&Params::default(), &ack);
                lived += (aggregation.extra_acked() == 9_000) as u32;
            }
            assert_eq!(lived, expected);
        }
    }
}
