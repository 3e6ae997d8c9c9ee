//! Updates at equal intervals, as a timer would run them, without a timer.
//!
//! A discipline asks before each event for the updates that were due since the last one, and runs them with the state that
//! it has: nothing has changed it in between. The intervals begin with the first event. Linux's timers begin when the
//! discipline is installed, of which a path knows nothing.

use fullpipe_units::{Duration, Time};

/// When the next update is due.
#[derive(Debug)]
pub(super) struct Updates {
    every: Duration,
    /// `None` before the first event.
    next: Option<Time>,
}

impl Updates {
    /// One update each `every`, which is not 0.
    pub(super) fn new(every: Duration) -> Updates {
        assert!(every > Duration::ZERO, "updates without an interval");
        Updates { every, next: None }
    }

    /// The time of the next update, if it is due by `now`: at the time of an event, the update comes first.
    #[inline]
    pub(super) fn due(&mut self, now: Time) -> Option<Time> {
        let next = *self.next.get_or_insert(now.saturating_add(self.every));
        if now < next {
            return None;
        }
        self.next = Some(next.saturating_add(self.every));
        Some(next)
    }

    /// Leaves out the updates that are due by `now`: those that would change nothing.
    pub(super) fn skip(&mut self, now: Time) {
        if let Some(next) = self.next.filter(|next| *next <= now) {
            let every = self.every.as_nanos();
            let left_out = now.saturating_since(next).as_nanos() / every + 1;
            self.next = Some(next.saturating_add(self.every.saturating_mul(left_out)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(updates: &mut Updates, now: u64) -> Vec<u64> {
        let now = Time::from_nanos(now);
        std::iter::from_fn(|| updates.due(now)).map(Time::as_nanos).collect()
    }

    #[test]
    fn each_interval_has_one_update() {
        let mut updates = Updates::new(Duration::from_nanos(10));
        assert_eq!(due(&mut updates, 7), []);
        assert_eq!(due(&mut updates, 16), []);
        assert_eq!(due(&mut updates, 17), [17]);
        assert_eq!(due(&mut updates, 17), []);
        assert_eq!(due(&mut updates, 50), [27, 37, 47]);
    }

    #[test]
    fn skipped_updates_do_not_shift_later() {
        for now in 0..40 {
            let (mut one, mut other) =
                (Updates::new(Duration::from_nanos(10)), Updates::new(Duration::from_nanos(10)));
            due(&mut one, 3);
            due(&mut other, 3);
            due(&mut one, 3 + now);
            other.skip(Time::from_nanos(3 + now));
            assert_eq!(due(&mut one, 100), due(&mut other, 100), "left out by {now}");
        }
    }
}
