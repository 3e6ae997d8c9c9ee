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

//!
//! One that merges makes a burst of what it releases together, as generic receive offload does with what one interrupt
//! delivers: neighbours of one flow, up to the length of an IP packet (Linux 6.12 `net/core/gro.c`, `gso_max_size` of 65536,
//! less a header). The next queue takes or drops it as one if it counts bursts. Deviation: Linux also merges packets of a flow
//! between which others came.

use crate::packet::{Fate, Packet};
use crate::rng::Stream;
use fullpipe_units::{Duration, Time};

/// Releases packets at multiples of an interval.
#[derive(Debug)]
pub(crate) struct Aggregate {
    every: u64,
    phase: u64,
    merge: Option<Merge>,
}

/// The burst to which packets are added.
#[derive(Debug, Default)]
struct Merge {
    release: Time,
    class: u32,
    bytes: u32,
    number: u16,
}

/// The longest burst, in bytes from the IP header of each packet on.
const LONGEST: u32 = 65_535;

impl Aggregate {
    /// `every` must not be zero.
    pub(crate) fn new(every: Duration, merge: bool, mut random: Stream) -> Aggregate {
        let every = every.as_nanos();
        assert!(every > 0, "an interval of zero");
        Aggregate { every, phase: random.up_to(every - 1), merge: merge.then(Merge::default) }
    }

    /// Whether it decides what is a burst behind it.
    pub(crate) fn merges(&self) -> bool {
        self.merge.is_some()
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time, packet: &Packet) -> Fate {
        let release = self.release(now);
        match &mut self.merge {
            None => Fate::Leaves(release),
            Some(merge) => Fate::Merged(release, merge.add(release, packet)),
        }
    }

    fn release(&self, now: Time) -> Time {
        let releases = now.as_nanos().saturating_sub(self.phase).div_ceil(self.every);
        // A packet that never arrives, or arrives after the last representable release, never leaves.
        Time::from_nanos(releases.saturating_mul(self.every).saturating_add(self.phase))
    }
}

impl Merge {
    /// The number of the burst that the packet is part of.
    fn add(&mut self, release: Time, packet: &Packet) -> u16 {
        let longer = self.bytes.saturating_add(packet.bytes);
        if self.number > 0 && release == self.release && packet.class == self.class && longer <= LONGEST {
            self.bytes = longer;
        } else {
            let number = self.number % Packet::MAX_BURST + 1;
            *self = Merge { release, class: packet.class, bytes: packet.bytes, number };
        }
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_came_since_the_last_release_leaves_at_the_next() {
        let aggregate = Aggregate { every: 10, phase: 3, merge: None };
        let departures = [0, 3, 4, 13, 14, 99].map(|now| aggregate.release(Time::from_nanos(now)).as_nanos());
        assert_eq!(departures, [3, 3, 13, 13, 23, 103]);
        assert_eq!(aggregate.release(Time::NEVER), Time::NEVER);
    }

    #[test]
    fn a_merged_burst_is_of_one_flow_one_release_and_the_length_of_a_packet() {
        let mut aggregate = Aggregate { every: 1000, phase: 0, merge: Some(Merge::default()) };
        let mut number =
            |now, class, bytes| match aggregate.admit(Time::from_nanos(now), &Packet::new(bytes, class)) {
                Fate::Merged(_, number) => number,
                other => panic!("{other:?}"),
            };
        assert_eq!([number(1, 7, 1500), number(2, 7, 1500), number(1000, 7, 40)], [1, 1, 1]);
        assert_eq!([number(1001, 7, 1500), number(1002, 8, 1500), number(1003, 7, 1500)], [2, 3, 4]);
        let of_1500: Vec<u16> = (0..50).map(|_| number(2001, 7, 1500)).collect();
        assert_eq!((of_1500[42], of_1500[43], of_1500[49]), (5, 6, 6));
        // What does not merge leaves bursts to others.
        let mut plain = Aggregate { every: 1000, phase: 0, merge: None };
        assert_eq!(plain.admit(Time::ZERO, &Packet::new(1500, 0)), Fate::Leaves(Time::ZERO));
    }

    #[test]
    fn the_phase_is_drawn_from_the_element_s_own_stream() {
        let phase =
            |seed, index| Aggregate::new(Duration::from_millis(10), false, Stream::new(seed, index)).phase;
        assert_eq!(phase(1, 0), phase(1, 0));
        assert_ne!(phase(1, 0), phase(2, 0));
        assert_ne!(phase(1, 0), phase(1, 1));
        assert!((0..1000).all(|seed| phase(seed, 0) < 10_000_000));
        assert_eq!(Aggregate::new(Duration::from_nanos(1), false, Stream::new(1, 0)).phase, 0);
    }
}
