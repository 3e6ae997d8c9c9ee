//! When an application that pauses writes, and how much: the same in every world.

use fullpipe_units::{Bytes, Duration, Time};

use crate::spec::Workload;

/// The writes of one flow.
#[derive(Clone, Copy, Debug)]
pub struct Bursts {
    size: Bytes,
    every: Duration,
    due: Time,
    /// Bytes in all that are due.
    end: Bytes,
}

impl Bursts {
    /// Of a flow that starts at `start`; `None` unless it sends in bursts.
    pub fn new(workload: &Workload, start: Time) -> Option<Bursts> {
        let Workload::Bursts { size_bytes, every_ns } = *workload else { return None };
        Some(Bursts { size: size_bytes, every: every_ns, due: start, end: size_bytes })
    }

    /// When the next is due.
    #[inline]
    pub fn due(&self) -> Time {
        self.due
    }

    /// `delivered` bytes have arrived by `now`: tells how long each burst took that is now whole, from when it was due, and
    /// goes on to the next.
    pub fn on_delivered(&mut self, delivered: Bytes, now: Time, mut took: impl FnMut(Duration)) {
        while delivered >= self.end {
            took(now.saturating_since(self.due));
            self.due = self.due.saturating_add(self.every);
            self.end = Bytes::new(self.end.as_u64().saturating_add(self.size.as_u64()));
        }
    }

    /// All that is due by `now`; goes on to the next.
    pub fn take(&mut self, now: Time) -> Bytes {
        if now < self.due {
            return Bytes::ZERO;
        }
        let writes = 1 + now.saturating_since(self.due).as_nanos() / self.every.as_nanos();
        self.due =
            self.due.saturating_add(Duration::from_nanos(writes.saturating_mul(self.every.as_nanos())));
        Bytes::new(writes.saturating_mul(self.size.as_u64()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_that_are_due_together_are_written_together() {
        let workload =
            Workload::Bursts { size_bytes: Bytes::new(3000), every_ns: Duration::from_millis(100) };
        let at = |millis: u64| Time::from_micros(millis * 1000);
        let mut bursts = Bursts::new(&workload, at(50)).unwrap();
        let taken = [49, 50, 51, 149, 150, 420, 449, 450].map(|millis| bursts.take(at(millis)).as_u64());
        assert_eq!(taken, [0, 3000, 0, 0, 3000, 6000, 0, 3000]);
        assert_eq!(bursts.due(), at(550));
    }

    #[test]
    fn each_burst_is_timed_from_when_it_was_due() {
        let workload =
            Workload::Bursts { size_bytes: Bytes::new(3000), every_ns: Duration::from_millis(100) };
        let at = |millis: u64| Time::from_micros(millis * 1000);
        let mut bursts = Bursts::new(&workload, at(50)).unwrap();
        let mut times = Vec::new();
        for (delivered, millis) in [(2999, 60), (3000, 70), (5999, 160), (9000, 400), (9001, 401)] {
            bursts.on_delivered(Bytes::new(delivered), at(millis), |took| times.push(took.as_millis()));
        }
        assert_eq!(times, [20, 250, 150]);
    }

    #[test]
    fn a_bulk_flow_has_none() {
        assert!(Bursts::new(&Workload::Bulk, Time::ZERO).is_none());
    }
}
