//! Detects a full pipe: rounds without much growth, of any sample.

use crate::gain::Gain;

/// The plateau detector of Startup and of a probe (Linux: `bbr_check_full_bw_reached`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FullPipe {
    /// The bandwidth that the next must exceed by a quarter.
    pub(crate) full_bw: u32,
    /// Rounds since a sample did.
    pub(crate) full_bw_cnt: u32,
    /// The present plateau is one.
    pub(crate) full_bw_now: bool,
    /// Some was; ends Startup for good.
    pub(crate) full_bw_reached: bool,
}

impl FullPipe {
    /// Judges an ACK's sample, which the application did not limit: each may show growth, and only rounds count.
    #[inline]
    pub(crate) fn on_sample(&mut self, growth: Gain, rounds: u32, sample_bw: u32, round_start: bool) {
        if self.full_bw_now {
            return;
        }
        if sample_bw >= growth.times(self.full_bw as u64) as u32 {
            self.restart(sample_bw);
            return;
        }
        if !round_start {
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_now = self.full_bw_cnt >= rounds;
        self.full_bw_reached |= self.full_bw_now;
    }

    /// Looks for a plateau anew, from this bandwidth (Linux: `bbr_reset_full_bw`).
    pub(crate) fn restart(&mut self, full_bw: u32) {
        (self.full_bw, self.full_bw_cnt, self.full_bw_now) = (full_bw, 0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_counts_anytime_plateau_per_round() {
        let mut pipe = FullPipe::default();
        let mut on = |bw, round_start| {
            pipe.on_sample(Gain::from_q8(320), 3, bw, round_start);
            (pipe.full_bw_cnt, pipe.full_bw_now)
        };
        assert_eq!(on(100, true), (0, false));
        assert_eq!([on(124, false), on(124, true), on(124, true)], [(0, false), (1, false), (2, false)]);
        assert_eq!(on(125, false), (0, false), "a quarter more, in the middle of a round");
        assert_eq!([on(0, true), on(0, true), on(0, true)], [(1, false), (2, false), (3, true)]);
        pipe.restart(7);
        assert!(pipe.full_bw_reached, "Startup stays over");
    }
}
