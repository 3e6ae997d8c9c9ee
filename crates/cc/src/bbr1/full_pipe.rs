//! Detects a full pipe: three rounds without much growth.

use super::Params;
use super::params::UNIT;

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
    /// Judges a round that the application did not limit.
    #[inline]
    pub(crate) fn on_round(&mut self, params: &Params, max_bw: u32) {
        let threshold =
            ((self.full_bw as u64 * params.full_bw_thresh as u64) >> UNIT.trailing_zeros()) as u32;
        if max_bw >= threshold {
            self.full_bw = max_bw;
            self.full_bw_cnt = 0;
            return;
        }
        self.full_bw_cnt += 1;
        self.full_bw_reached = self.full_bw_cnt >= params.full_bw_cnt;
    }
}
