//! The bandwidth filter: the maximum of the present cycle of probes and of the one before it.

/// The filter (Linux: `bw_hi[2]`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaxBw {
    /// The maximum of the cycle before, and of the present one.
    pub(crate) hi: [u32; 2],
}

impl MaxBw {
    /// The maximum (Linux: `bbr_max_bw`).
    #[inline]
    pub(crate) fn get(&self) -> u32 {
        self.hi[0].max(self.hi[1])
    }

    /// Takes in a sample (Linux: `bbr_take_max_bw_sample`).
    #[inline]
    pub(crate) fn take(&mut self, bw: u32) {
        self.hi[1] = self.hi[1].max(bw);
    }

    /// Begins a cycle, unless the present one has no sample yet (Linux: `bbr_advance_max_bw_filter`).
    pub(crate) fn advance(&mut self) {
        if self.hi[1] != 0 {
            self.hi = [self.hi[1], 0];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cycle_without_samples_forgets_nothing() {
        let mut max = MaxBw::default();
        max.take(30);
        max.take(20);
        max.advance();
        assert_eq!((max.get(), max.hi), (30, [30, 0]));
        max.advance();
        assert_eq!(max.get(), 30, "nothing was sampled in between");
        max.take(10);
        assert_eq!(max.get(), 30);
        max.advance();
        assert_eq!(max.get(), 10);
    }
}
