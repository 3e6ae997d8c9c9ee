//! Detects a full pipe, in Startup and in each probe: three rounds without much growth.

use super::{Params, Sample};

/// The plateau detector (draft section 5.3.1.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FullPipe {
    /// The rate that the next must exceed by a quarter, bytes a second.
    pub(crate) full_bw: u64,
    /// Rounds in which it did not.
    pub(crate) full_bw_count: u32,
    /// The pipe is full, as far as this search tells.
    pub(crate) full_bw_now: bool,
    /// It was, in some search.
    pub(crate) full_bw_reached: bool,
}

impl FullPipe {
    /// Begins a search.
    #[inline]
    pub(crate) fn reset(&mut self) {
        // draft 5.3.1.2: ResetFullBW
        self.full_bw = 0;
        self.full_bw_count = 0;
        self.full_bw_now = false;
    }

    /// Begins a search from this rate.
    #[inline]
    pub(crate) fn reset_to(&mut self, delivery_rate: u64) {
        self.reset();
        self.full_bw = delivery_rate;
    }

    /// Judges an ACK.
    #[inline]
    pub(crate) fn on_ack(&mut self, params: &Params, round_start: bool, sample: &Sample) {
        // draft 5.3.1.2: CheckFullBWReached
        if self.full_bw_now || !round_start || sample.is_app_limited {
            return;
        }
        // No reliable rate is no evidence of a plateau (docs/explanation/bbr3.md, defect 15).
        if sample.delivery_rate == 0 {
            return;
        }
        if sample.delivery_rate >= params.full_bw_growth.of(self.full_bw) {
            self.reset_to(sample.delivery_rate);
            return;
        }
        self.full_bw_count += 1;
        self.full_bw_now = self.full_bw_count >= params.full_bw_rounds;
        if self.full_bw_now {
            self.full_bw_reached = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(rates: &[u64], round_start: bool, is_app_limited: bool) -> FullPipe {
        let mut pipe = FullPipe::default();
        for &delivery_rate in rates {
            let sample = Sample { delivery_rate, is_app_limited, ..Sample::default() };
            pipe.on_ack(&Params::default(), round_start, &sample);
        }
        pipe
    }

    // draft 5.3.1.2: CheckFullBWReached
    #[test]
    fn three_flat_rounds_mean_full_pipe() {
        assert!(!after(&[100, 124, 124, 125, 156, 195, 195], true, false).full_bw_now);
        let full = after(&[100, 124, 124, 124], true, false);
        assert!(full.full_bw_now && full.full_bw_reached);
        assert_eq!(full.full_bw, 100, "the baseline stays");
    }

    // draft 5.3.1.2: CheckFullBWReached
    #[test]
    fn only_path_limited_round_starts_count() {
        assert_eq!(after(&[100; 9], false, false), FullPipe::default());
        assert_eq!(after(&[100; 9], true, true), FullPipe::default());
        assert_eq!(after(&[100, 0, 0, 0, 0], true, false).full_bw_count, 0);
    }
}
