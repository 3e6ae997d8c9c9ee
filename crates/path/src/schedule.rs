//! Reads a schedule of changes in order of time, in O(1) for each read.

use crate::config::Schedule;
use fullpipe_units::Time;

/// A schedule and a position in it that only moves forward.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<T> {
    value: T,
    /// When `value` ends.
    until: Time,
    /// The changes still to come, the next one last.
    coming: Vec<(Time, T)>,
}

impl<T: Copy> Cursor<T> {
    pub(crate) fn new(schedule: &Schedule<T>) -> Cursor<T> {
        let mut coming = schedule.changes.clone();
        coming.reverse();
        let until = coming.last().map_or(Time::NEVER, |change| change.0);
        Cursor { value: schedule.initial, until, coming }
    }

    /// The value at `now`. Times must not go back.
    #[inline]
    pub(crate) fn at(&mut self, now: Time) -> T {
        if now >= self.until {
            self.advance(now);
        }
        self.value
    }

    /// Changes the value from `from` on, until the next change of the schedule. Nobody has asked about `from` or later.
    pub(crate) fn change(&mut self, from: Time, value: T) {
        let later = self.coming.partition_point(|&(time, _)| time > from);
        match self.coming.get_mut(later) {
            Some(same) if same.0 == from => same.1 = value,
            _ => self.coming.insert(later, (from, value)),
        }
        self.until = self.coming.last().map_or(Time::NEVER, |change| change.0);
    }

    #[cold]
    fn advance(&mut self, now: Time) {
        while let Some(&(time, value)) = self.coming.last()
            && time <= now
        {
            self.value = value;
            self.coming.pop();
        }
        self.until = self.coming.last().map_or(Time::NEVER, |change| change.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn change_applies_from_its_nanosecond() {
        let t = Time::from_nanos;
        let mut cursor =
            Cursor::new(&Schedule { initial: 'a', changes: vec![(t(5), 'b'), (t(7), 'c'), (t(9), 'd')] });
        assert_eq!(
            [0, 4, 5, 6, 8, 9, 100].map(|nanos| cursor.at(t(nanos))),
            ['a', 'a', 'b', 'b', 'c', 'd', 'd']
        );
        assert_eq!(cursor.at(Time::NEVER), 'd');
    }

    #[test]
    fn interim_change_lasts_until_next_scheduled() {
        let t = Time::from_nanos;
        let mut cursor = Cursor::new(&Schedule { initial: 'a', changes: vec![(t(5), 'b'), (t(9), 'd')] });
        assert_eq!(cursor.at(t(3)), 'a');
        cursor.change(t(4), 'x');
        cursor.change(t(9), 'z');
        cursor.change(t(20), 'e');
        assert_eq!(
            [3, 4, 5, 8, 9, 19, 20].map(|nanos| cursor.at(t(nanos))),
            ['a', 'x', 'b', 'b', 'z', 'z', 'e']
        );
    }
}
