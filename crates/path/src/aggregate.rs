//! Aggregation: packets are held and let go together, at regular times.
//!
//! What radios and offloading hosts do to ACKs: a station that gets the medium every few milliseconds sends all that has
//! gathered. `queue16`, "Delayed and stretched ACKs", is about its effect: cellular, Wi-Fi and cable networks delay and
//! aggregate ACKs by up to a round trip. It never reorders.
//!
//! Times of release are multiples of the interval, shifted by a phase that is drawn once from the element's own stream,
//! uniform below the interval, so that seeds differ in where a flow falls. A packet that comes at such a time leaves at
//! once. There is no release before its time, once some number wait: when a packet leaves would then depend on those
//! that come after it, and be unknown when it arrives.

use crate::rng::Stream;
use fullpipe_units::{Duration, Time};

/// Lets packets go at multiples of an interval.
#[derive(Debug)]
pub(crate) struct Aggregate {
    every: u64,
    phase: u64,
}

impl Aggregate {
    /// `every` must not be zero.
    pub(crate) fn new(every: Duration, mut random: Stream) -> Aggregate {
        let every = every.as_nanos();
        assert!(every > 0, "an interval of zero");
        Aggregate { every, phase: random.up_to(every - 1) }
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Time {
        let releases = now.as_nanos().saturating_sub(self.phase).div_ceil(self.every);
        // What comes never, or after the last time there is, stays.
        Time::from_nanos(releases.saturating_mul(self.every).saturating_add(self.phase))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_came_since_the_last_release_leaves_at_the_next() {
        let mut aggregate = Aggregate { every: 10, phase: 3 };
        let departures = [0, 3, 4, 13, 14, 99].map(|now| aggregate.admit(Time::from_nanos(now)).as_nanos());
        assert_eq!(departures, [3, 3, 13, 13, 23, 103]);
        assert_eq!(aggregate.admit(Time::NEVER), Time::NEVER);
    }

    #[test]
    fn the_phase_is_drawn_from_the_element_s_own_stream() {
        let phase = |seed, index| Aggregate::new(Duration::from_millis(10), Stream::new(seed, index)).phase;
        assert_eq!(phase(1, 0), phase(1, 0));
        assert_ne!(phase(1, 0), phase(2, 0));
        assert_ne!(phase(1, 0), phase(1, 1));
        assert!((0..1000).all(|seed| phase(seed, 0) < 10_000_000));
        assert_eq!(Aggregate::new(Duration::from_nanos(1), Stream::new(1, 0)).phase, 0);
    }
}
