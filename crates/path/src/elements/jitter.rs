//! Random extra delay, uniform from zero to an amplitude.

use crate::rng::Stream;
use fullpipe_units::{Duration, Time};

/// Adds a random delay; packets overtake each other, or wait for their predecessor.
#[derive(Debug)]
pub(crate) struct Jitter {
    amplitude: Duration,
    reorder: bool,
    /// When the latest packet leaves, if packets stay in order.
    latest: Time,
    random: Stream,
}

impl Jitter {
    pub(crate) fn new(amplitude: Duration, reorder: bool, random: Stream) -> Jitter {
        Jitter { amplitude, reorder, latest: Time::ZERO, random }
    }

    pub(crate) fn reorders(&self) -> bool {
        self.reorder
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Time {
        let due = now.saturating_add(Duration::from_nanos(self.random.up_to(self.amplitude.as_nanos())));
        if self.reorder {
            return due;
        }
        self.latest = self.latest.max(due);
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extra_delay_is_uniform_up_to_the_amplitude() {
        let mut jitter = Jitter::new(Duration::from_nanos(3), true, Stream::new(1, 0));
        let mut seen = [0u32; 4];
        for _ in 0..40_000 {
            seen[jitter.admit(Time::ZERO).as_nanos() as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times.abs_diff(10_000) < 500), "{seen:?}");
    }

    #[test]
    fn without_reordering_a_packet_waits_for_its_predecessor() {
        let mut jitter = Jitter::new(Duration::from_millis(1), false, Stream::new(1, 0));
        let mut before = Time::ZERO;
        for nanos in (0..10_000_000).step_by(1000) {
            let due = jitter.admit(Time::from_nanos(nanos));
            assert!(due >= before && due >= Time::from_nanos(nanos));
            before = due;
        }
    }
}
