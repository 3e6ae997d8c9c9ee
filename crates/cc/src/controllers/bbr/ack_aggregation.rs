//! How much more than expected ACKs deliver at once, so that the window can bridge the gaps between them.

use super::bandwidth::BW_SCALE;
use super::stamp_delta;
use crate::gain::Gain;

/// An epoch ends at this many segments (Linux: `bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_ACKED_RESET: u32 = 1 << 20;
/// The epoch's counter has twenty bits.
const EPOCH_ACKED_MAX: u32 = 0xf_ffff;
/// The age counter has five bits.
const WIN_RTTS_MAX: u32 = 0x1f;

/// The estimator (Linux: `bbr_update_ack_aggregation`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AckAggregation {
    /// When the epoch began, in microseconds.
    pub(crate) ack_epoch_mstamp: u64,
    /// The most excess of the present and of the previous window; sixteen bits each, as in Linux.
    pub(crate) extra_acked: [u16; 2],
    /// Segments delivered in the epoch.
    pub(crate) ack_epoch_acked: u32,
    /// Rounds that the present window has lasted.
    pub(crate) extra_acked_win_rtts: u32,
    /// Which of the two is the present one.
    pub(crate) extra_acked_win_idx: u32,
}

/// One ACK, as the estimator sees it.
pub(crate) struct Delivery {
    /// Half the window of the filter in rounds.
    pub(crate) window_rounds: u32,
    pub(crate) segments: u32,
    pub(crate) round_start: bool,
    /// The estimated bandwidth.
    pub(crate) bw: u32,
    pub(crate) delivered_us: u64,
    pub(crate) cwnd: u32,
}

impl AckAggregation {
    /// Takes in an ACK with a valid rate sample.
    #[inline]
    pub(crate) fn on_ack(&mut self, acked: &Delivery) {
        if acked.round_start {
            self.extra_acked_win_rtts = (self.extra_acked_win_rtts + 1).min(WIN_RTTS_MAX);
            if self.extra_acked_win_rtts >= acked.window_rounds {
                self.extra_acked_win_rtts = 0;
                self.extra_acked_win_idx ^= 1;
                self.extra_acked[self.extra_acked_win_idx as usize & 1] = 0;
            }
        }
        let epoch_us = stamp_delta(acked.delivered_us, self.ack_epoch_mstamp);
        let mut expected = ((acked.bw as u64 * epoch_us as u64) >> BW_SCALE) as u32;
        if self.ack_epoch_acked <= expected || self.ack_epoch_acked + acked.segments >= EPOCH_ACKED_RESET {
            self.restart(acked.delivered_us);
            expected = 0;
        }
        self.ack_epoch_acked = (self.ack_epoch_acked + acked.segments).min(EPOCH_ACKED_MAX);
        let extra = self.ack_epoch_acked.wrapping_sub(expected).min(acked.cwnd);
        let most = &mut self.extra_acked[self.extra_acked_win_idx as usize & 1];
        if extra > *most as u32 {
            *most = extra as u16;
        }
    }

    /// Begins an epoch.
    #[inline]
    pub(crate) fn restart(&mut self, now_us: u64) {
        self.ack_epoch_acked = 0;
        self.ack_epoch_mstamp = now_us;
    }

    /// Segments to add to the window: `gain` times the most excess, at most what `bw` delivers in `most_ms` (Linux:
    /// `bbr_ack_aggregation_cwnd`, once the pipe was full).
    #[inline]
    pub(crate) fn bonus(&self, gain: Gain, most_ms: u32, bw: u32) -> u32 {
        let most = ((bw as u64 * (most_ms as u64 * 1_000)) >> BW_SCALE) as u32;
        let extra = self.extra_acked[0].max(self.extra_acked[1]) as u32;
        (gain.times(extra as u64) as u32).min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_MS: u32 = (1 << BW_SCALE) / 1_000;

    fn acked(segments: u32, delivered_us: u64) -> Delivery {
        Delivery { window_rounds: 5, segments, round_start: false, bw: PER_MS, delivered_us, cwnd: u32::MAX }
    }

    #[test]
    fn ack_burst_after_silence_counts_excess() {
        let mut aggregation = AckAggregation::default();
        aggregation.on_ack(&acked(1, 1_000));
        aggregation.on_ack(&acked(40, 1_000));
        assert_eq!(aggregation.extra_acked[0], 41);
        // Ten milliseconds later ten were due, so fifty more leave 41 + 50 - 9 (the expectation rounds down).
        aggregation.on_ack(&acked(50, 11_000));
        assert_eq!(aggregation.extra_acked[0], 82);
        // The bonus is at most what 100 ms deliver.
        assert_eq!(aggregation.bonus(Gain::ONE, 100, PER_MS), 82);
        assert_eq!(aggregation.bonus(Gain::ONE, 100, PER_MS / 10), 9);
    }

    #[test]
    fn u16_maximum_wraps_u20_epoch_restarts() {
        let mut aggregation = AckAggregation::default();
        aggregation.on_ack(&acked(65_537, 1_000));
        assert_eq!(aggregation.extra_acked[0], 1, "65,537 does not fit in sixteen bits");
        aggregation.ack_epoch_acked = EPOCH_ACKED_RESET - 10;
        aggregation.on_ack(&acked(10, 2_000));
        assert_eq!(aggregation.ack_epoch_acked, 10);
    }

    #[test]
    fn maximum_lasts_five_to_ten_rounds() {
        let mut aggregation = AckAggregation::default();
        aggregation.on_ack(&acked(30, 0));
        let mut lived = 0;
        while aggregation.extra_acked.contains(&30) {
            // Far apart, so that each epoch starts anew and nothing is extra.
            lived += 1;
            aggregation.on_ack(&Delivery { round_start: true, ..acked(1, lived * 1_000_000) });
        }
        assert_eq!(lived, 10);
    }
}
