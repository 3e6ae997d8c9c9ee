//! The windowed maximum that Linux uses for BBR's bandwidth, and its mirror image: three candidates instead of a queue of
//! samples.
//!
//! Specification: Linux `lib/win_minmax.c` (Kathleen Nichols' algorithm). It costs constant space and time and is an
//! approximation: a sample that an exact sliding maximum would return may have been forgotten, so an exact filter gives
//! other results than the kernel. Time is whatever counter the caller advances (BBR: rounds); it may wrap.

/// A candidate: a measured value, and its time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candidate {
    /// When it was measured.
    pub time: u32,
    /// What was measured.
    pub value: u32,
}

/// The largest value of about the last `window` ticks. The candidates are ordered: the first is the largest, and each
/// following one is no older than the one before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowedMax {
    candidates: [Candidate; 3],
}

impl WindowedMax {
    /// A filter that has seen only `value`.
    pub const fn new(time: u32, value: u32) -> WindowedMax {
        WindowedMax { candidates: [Candidate { time, value }; 3] }
    }

    /// A filter with these candidates, best first (for replaying recorded state).
    pub const fn from_candidates(candidates: [Candidate; 3]) -> WindowedMax {
        WindowedMax { candidates }
    }

    /// The candidates, best first.
    pub const fn candidates(&self) -> [Candidate; 3] {
        self.candidates
    }

    /// The maximum.
    #[inline]
    pub const fn get(&self) -> u32 {
        self.candidates[0].value
    }

    /// Takes in one sample; `window` is how many ticks a maximum may live.
    #[inline]
    pub fn update(&mut self, window: u32, time: u32, value: u32) {
        let new = Candidate { time, value };
        let [best, second, third] = self.candidates;
        if value >= best.value || time.wrapping_sub(third.time) > window {
            self.candidates = [new; 3];
            return;
        }
        if value >= second.value {
            self.candidates = [best, new, new];
        } else if value >= third.value {
            self.candidates[2] = new;
        }
        self.age(window, new);
    }

    /// Drops a best that is too old, and keeps the runners-up spread over the window: one from its second quarter and
    /// one from its second half, so that a good successor is at hand when the best expires.
    #[inline]
    fn age(&mut self, window: u32, new: Candidate) {
        let [best, second, third] = self.candidates;
        let age = new.time.wrapping_sub(best.time);
        if age > window {
            self.candidates = [second, third, new];
            if new.time.wrapping_sub(second.time) > window {
                self.candidates = [third, new, new];
            }
        } else if second.time == best.time && age > window / 4 {
            self.candidates = [best, new, new];
        } else if third.time == second.time && age > window / 2 {
            self.candidates[2] = new;
        }
    }
}

/// The smallest value of about the last `window` ticks: a [`WindowedMax`] of complements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowedMin(WindowedMax);

impl WindowedMin {
    /// A filter that has seen only `value`.
    pub const fn new(time: u32, value: u32) -> WindowedMin {
        WindowedMin(WindowedMax::new(time, !value))
    }

    /// The minimum.
    #[inline]
    pub const fn get(&self) -> u32 {
        !self.0.get()
    }

    /// Takes in one sample; `window` is how many ticks a minimum may live.
    #[inline]
    pub fn update(&mut self, window: u32, time: u32, value: u32) {
        self.0.update(window, time, !value);
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    fn run(samples: &[(u32, u32)]) -> Vec<u32> {
        let mut filter = WindowedMax::new(samples[0].0, 0);
        samples
            .iter()
            .map(|&(time, value)| {
                filter.update(10, time, value);
                filter.get()
            })
            .collect()
    }

    #[test]
    fn a_new_maximum_forgets_everything_older() {
        let mut filter = WindowedMax::new(0, 5);
        filter.update(10, 3, 9);
        assert_eq!(filter.candidates(), [Candidate { time: 3, value: 9 }; 3]);
    }

    #[test]
    fn maximum_lasts_exactly_one_window() {
        let mut filter = WindowedMax::new(0, 100);
        for round in 1..=10 {
            filter.update(10, round, 50);
            assert_eq!(filter.get(), 100, "round {round}");
        }
        filter.update(10, 11, 50);
        assert_eq!(filter.get(), 50);
    }

    fn after(candidates: [(u32, u32); 3], time: u32, value: u32) -> [(u32, u32); 3] {
        after_in(10, candidates, time, value)
    }

    fn after_in(window: u32, candidates: [(u32, u32); 3], time: u32, value: u32) -> [(u32, u32); 3] {
        let mut filter =
            WindowedMax::from_candidates(candidates.map(|(time, value)| Candidate { time, value }));
        filter.update(window, time, value);
        filter.candidates().map(|sample| (sample.time, sample.value))
    }

    #[test]
    fn runners_up_at_quarter_and_half() {
        // Of a window of twelve.
        let old = [(0, 100), (0, 90), (0, 80)];
        assert_eq!(after_in(12, old, 3, 50), old);
        assert_eq!(after_in(12, old, 4, 50), [(0, 100), (4, 50), (4, 50)]);
        let old = [(0, 100), (2, 90), (2, 80)];
        assert_eq!(after_in(12, old, 6, 50), old);
        assert_eq!(after_in(12, old, 7, 50), [(0, 100), (2, 90), (7, 50)]);
        let old = [(0, 100), (2, 90), (4, 80)];
        assert_eq!(after_in(12, old, 9, 50), old);
    }

    #[test]
    fn silent_window_forgets_everything() {
        let old = [(0, 100), (0, 90), (0, 80)];
        assert_eq!(after(old, 10, 50), [(0, 100), (10, 50), (10, 50)]);
        assert_eq!(after(old, 11, 50), [(11, 50); 3]);
    }

    #[test]
    fn expired_successor_is_skipped() {
        let old = [(0, 100), (1, 90), (5, 80)];
        assert_eq!(after(old, 11, 50), [(1, 90), (5, 80), (11, 50)]);
        assert_eq!(after(old, 12, 50), [(5, 80), (12, 50), (12, 50)]);
    }

    #[test]
    fn approximation_differs_from_exact_maximum() {
        // 70 at round 2 falls in the first quarter of the window, where no runner-up is taken; the 65 after it is. When the
        // window has passed, 65 succeeds 100 although 70 is still young, and later 9 succeeds 65 where 64 is due.
        let samples =
            [(0, 100), (1, 60), (2, 70), (3, 65), (4, 64), (11, 10), (12, 9), (13, 8), (14, 7), (15, 6)];
        let exact: Vec<u32> = (0..samples.len())
            .map(|last| {
                let now = samples[last].0;
                samples[..=last]
                    .iter()
                    .filter(|(time, _)| now - time <= 10)
                    .map(|&(_, value)| value)
                    .max()
                    .unwrap()
            })
            .collect();
        assert_eq!(exact, [100, 100, 100, 100, 100, 70, 70, 65, 64, 10]);
        assert_eq!(run(&samples), [100, 100, 100, 100, 100, 65, 65, 65, 9, 9]);
    }

    #[test]
    fn minimum_lasts_exactly_one_window() {
        let mut filter = WindowedMin::new(0, u32::MAX);
        filter.update(10, 1, 40);
        for time in 2..=11 {
            filter.update(10, time, 60);
            assert_eq!(filter.get(), 40, "time {time}");
        }
        filter.update(10, 12, 60);
        assert_eq!(filter.get(), 60);
        filter.update(10, 13, 50);
        assert_eq!(filter.get(), 50, "a new minimum counts at once");
    }

    #[test]
    fn the_round_counter_wraps() {
        let start = u32::MAX - 3;
        let mut filter = WindowedMax::new(start, 100);
        for round in 1..=10u32 {
            filter.update(10, start.wrapping_add(round), 50);
            assert_eq!(filter.get(), 100, "round {round}");
        }
        filter.update(10, start.wrapping_add(11), 50);
        assert_eq!(filter.get(), 50);
    }
}
