//! Aggregation: packets are held and released together, at regular times.
//!
//! Radios and offloading hosts do this to ACKs: a station that gets the medium every few milliseconds sends all that has
//! accumulated. `queue16`, "Delayed and stretched ACKs", is about its effect: cellular, Wi-Fi and cable networks delay and
//! aggregate ACKs by up to a round trip. It never reorders.
//!
//! Release times are multiples of the interval, shifted by a phase that is drawn once from the element's own stream,
//! uniform below the interval, so that a flow's place in the interval depends on the seed. A packet that arrives at a
//! release time leaves at once. Reaching some number of packets never causes an early release: a packet's departure
//! would then depend on later packets, and be unknown when it arrives.

use crate::rng::Stream;
use fullpipe_units::{Duration, Time};

/// Releases packets at multiples of an interval.
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
        // A packet that never arrives, or arrives after the last representable release, never leaves.
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
