//! The largest delivery rate of this bandwidth-probing cycle and the one before it.

/// The filter (draft section 5.5.5). It has a slot for each of the two cycles, all that `BBR.MaxBwFilterLen` of 2 needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaxBw {
    /// The largest rate of the cycle before this one, bytes a second.
    previous: u64,
    /// The largest rate of this cycle.
    current: u64,
    /// The estimate. It falls only with a sample, so that a cycle without any does not forget the path.
    max_bw: u64,
}

impl MaxBw {
    #[inline]
    pub(crate) const fn get(&self) -> u64 {
        self.max_bw
    }

    /// Takes in a delivery rate; zero is none.
    #[inline]
    pub(crate) fn update(&mut self, delivery_rate: u64, is_app_limited: bool) {
        // draft 5.5.5: UpdateMaxBw
        if delivery_rate > 0 && (delivery_rate >= self.max_bw || !is_app_limited) {
            self.current = self.current.max(delivery_rate);
            self.max_bw = self.previous.max(self.current);
        }
    }

    /// Begins a cycle.
    #[inline]
    pub(crate) fn advance(&mut self) {
        // draft 5.5.6: AdvanceMaxBwFilter, AdvanceMaxBwFilter.cycle_count
        (self.previous, self.current) = (self.current, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // draft 5.5.5: UpdateMaxBw, UpdateMaxBw.max_bw
    // draft 5.5.6: AdvanceMaxBwFilter
    #[test]
    fn rate_lasts_its_cycle_and_next() {
        let mut filter = MaxBw::default();
        filter.update(100, false);
        filter.advance();
        filter.update(60, false);
        assert_eq!(filter.get(), 100);
        filter.advance();
        assert_eq!(filter.get(), 100, "until there is a sample that says otherwise");
        filter.update(50, false);
        assert_eq!(filter.get(), 60);
    }

    // draft 5.5.5: UpdateMaxBw
    #[test]
    fn app_limited_rate_only_raises_maximum() {
        let mut filter = MaxBw::default();
        filter.update(100, false);
        filter.advance();
        filter.update(99, true);
        filter.advance();
        filter.update(0, false);
        assert_eq!(filter.get(), 100);
        filter.update(100, true);
        filter.advance();
        filter.update(40, false);
        assert_eq!(filter.get(), 100, "an equal rate renews it");
    }
}
