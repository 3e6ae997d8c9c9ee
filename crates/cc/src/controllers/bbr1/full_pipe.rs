//! Detects a full pipe: three rounds without much growth.

use crate::gain::Gain;

/// The plateau detector that ends Startup (Linux: `bbr_check_full_bw_reached`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FullPipe {
    /// The bandwidth that the next must exceed by a quarter.
    pub(crate) full_bw: u32,
    /// Rounds in which it did not.
    pub(crate) full_bw_cnt: u32,
    /// The verdict, which is final.
    pub(crate) full_bw_reached: bool,
}

impl FullPipe {
    /// Judges a round that the application did not limit: in `rounds` of them in a row the bandwidth has to grow less than
    /// by `growth`.
    #[inline]
    pub(crate) fn on_round(&mut self, growth: Gain, rounds: u32, max_bw: u32) {
        let threshold = growth.times(self.full_bw as u64) as u32;
        if max_bw >= threshold {
            self.full_bw = max_bw;
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= rounds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_flat_rounds_mean_full_pipe() {
        let growth = Gain::from_q8(320);
        let mut pipe = FullPipe::default();
        let mut reached = |bw| {
            pipe.on_round(growth, 3, bw);
            pipe.full_bw_reached
        };
        // 125 is a quarter above 100 and counts as growth; 156 is just less than a quarter above 125.
        assert_eq!([100, 124, 124, 125, 155, 155].map(&mut reached), [false; 6]);
        assert!(reached(155));
    }
}
