//! A one-way delay, constant or on a schedule. It never reorders: when the delay shrinks, a packet waits for its
//! predecessor.

use crate::config::Schedule;
use crate::schedule::Cursor;
use fullpipe_units::{Duration, Time};

/// Adds the delay in force when a packet arrives.
#[derive(Debug)]
pub(crate) struct Delay {
    delay: Cursor<Duration>,
    /// When the latest packet leaves.
    latest: Time,
}

impl Delay {
    pub(crate) fn new(delay: &Schedule<Duration>) -> Delay {
        Delay { delay: Cursor::new(delay), latest: Time::ZERO }
    }

    /// The delay of packets that arrive from `from` on, until the schedule's next change.
    pub(crate) fn change(&mut self, from: Time, delay: Duration) {
        self.delay.change(from, delay);
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Time {
        self.latest = self.latest.max(now.saturating_add(self.delay.at(now)));
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_delay_does_not_reorder() {
        let ms = |millis: u64| Time::from_micros(millis * 1000);
        let changes = vec![(ms(100), Duration::from_millis(10))];
        let mut delay = Delay::new(&Schedule { initial: Duration::from_millis(50), changes });
        let departures = [0, 99, 100, 139, 140].map(|millis| delay.admit(ms(millis)));
        assert_eq!(departures, [ms(50), ms(149), ms(149), ms(149), ms(150)]);
    }
}
