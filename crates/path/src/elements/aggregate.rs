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
//! delivers (Linux 6.12 `tcp_gro_receive` in `net/ipv4/tcp_offload.c`, `skb_gro_receive` in `net/core/gro.c`): neighbours of one
//! flow that carry data, none longer than the first. A shorter one is the last. The headers of the first and all payloads together
//! are shorter than the device's `gro_max_size`. The next queue takes or drops it as one if it counts bursts.
//!
//! Deviations: Linux also merges packets of a flow between which others came. It ends a burst at a segment with PSH and where
//! bytes are missing, which a path does not see.

use crate::element::{Setup, Transit, element};
use crate::packet::{Fate, Moment, Packet};
use fullpipe_units::{Duration, Time};

element! {
    /// Holds packets and releases them together at regular times, as radios and offloading hosts do, mainly with ACKs.
    /// The phase of these times is random.
    "aggregate", shown as |this| "{} every {}", if this.merge { "merged" } else { "aggregated" }, this.every_ns;
    /// From one release to the next: the longest that a packet is held.
    every_ns as "every": Duration, least 1_000;
    /// Whether what is released together is a burst from then on, one of each flow, as receive offload (GRO) makes it of
    /// what one interrupt delivers. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    merge as "merge": bool;
}

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
    /// Of the first packet.
    first: u32,
    /// Of all, with the headers of the first.
    bytes: u32,
    /// Nothing is added any more.
    full: bool,
    number: u16,
}

/// A burst is shorter than this (Linux: `GRO_LEGACY_MAX_SIZE`, the default of `gro_max_size`).
const GRO_MAX_SIZE: u32 = 65_536;
/// The headers of a segment with data: IPv4, TCP and timestamps.
const HEADERS: u32 = 20 + 20 + 12;
/// The longest headers of IPv4 without and TCP with options. What is not longer carries no data, and is not merged: an ACK.
const LONGEST_HEADERS: u32 = 20 + 60;

impl Transit for Aggregate {
    type Config = Config;
    const TAKES_TIME: bool = true;

    fn new(config: &Config, Setup { mut random, .. }: Setup) -> Aggregate {
        let every = config.every_ns.as_nanos();
        Aggregate { every, phase: random.up_to(every - 1), merge: config.merge.then(Merge::default) }
    }

    #[inline]
    fn admit(&mut self, moment: Moment, packet: &Packet) -> Fate {
        let release = self.release(moment.arrival);
        match &mut self.merge {
            None => Fate::Leaves(release),
            Some(merge) => Fate::Merged(release, merge.add(release, packet)),
        }
    }
}

impl Aggregate {
    /// Whether it decides what is a burst behind it.
    pub(crate) fn merges(&self) -> bool {
        self.merge.is_some()
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
        let carries_data = packet.bytes > LONGEST_HEADERS;
        let longer = self.bytes.saturating_add(packet.bytes.saturating_sub(HEADERS));
        let joins = self.number > 0
            && !self.full
            && (release, packet.class) == (self.release, self.class)
            && carries_data
            && packet.bytes <= self.first
            && longer < GRO_MAX_SIZE;
        if joins {
            self.bytes = longer;
            self.full = packet.bytes < self.first;
        } else {
            let number = self.number % Packet::MAX_BURST + 1;
            let Packet { class, bytes, .. } = *packet;
            *self = Merge { release, class, first: bytes, bytes, full: !carries_data, number };
        }
        self.number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::Stream;

    #[test]
    fn arrivals_leave_at_next_release() {
        let aggregate = Aggregate { every: 10, phase: 3, merge: None };
        let departures = [0, 3, 4, 13, 14, 99].map(|now| aggregate.release(Time::from_nanos(now)).as_nanos());
        assert_eq!(departures, [3, 3, 13, 13, 23, 103]);
        assert_eq!(aggregate.release(Time::NEVER), Time::NEVER);
    }

    /// The bursts of packets of one release, (class, bytes) each.
    fn bursts(packets: &[(u32, u32)]) -> Vec<u16> {
        let mut aggregate = Aggregate { every: 1000, phase: 0, merge: Some(Merge::default()) };
        let mut number = |&(class, bytes): &(u32, u32)| match aggregate
            .admit(Moment::at(Time::from_nanos(1)), &Packet::new(bytes, class))
        {
            Fate::Merged(_, number) => number,
            other => panic!("{other:?}"),
        };
        packets.iter().map(&mut number).collect()
    }

    #[test]
    fn bursts_merge_within_flow_and_release() {
        assert_eq!(bursts(&[(7, 1500), (7, 1500), (8, 1500), (7, 1500)]), [1, 1, 2, 3]);
        let mut aggregate = Aggregate { every: 1000, phase: 0, merge: Some(Merge::default()) };
        let released = |aggregate: &mut Aggregate, now| match aggregate
            .admit(Moment::at(Time::from_nanos(now)), &Packet::new(1500, 7))
        {
            Fate::Merged(_, number) => number,
            other => panic!("{other:?}"),
        };
        assert_eq!([1, 1000, 1001].map(|now| released(&mut aggregate, now)), [1, 1, 2]);
        // What does not merge leaves bursts to others.
        let mut plain = Aggregate { every: 1000, phase: 0, merge: None };
        assert_eq!(plain.admit(Moment::at(Time::ZERO), &Packet::new(1500, 0)), Fate::Leaves(Time::ZERO));
    }

    #[test]
    fn short_segment_ends_merged_burst() {
        assert_eq!(bursts(&[(7, 1500), (7, 1500), (7, 700), (7, 1500), (7, 1500)]), [1, 1, 1, 2, 2]);
        assert_eq!(bursts(&[(7, 700), (7, 1500), (7, 1500)]), [1, 2, 2]);
    }

    #[test]
    fn acks_are_never_merged() {
        assert_eq!(bursts(&[(7, 52), (7, 52), (7, 80)]), [1, 2, 3]);
        assert_eq!(bursts(&[(7, 1500), (7, 52), (7, 1500), (7, 1500)]), [1, 2, 3, 3]);
    }

    /// 52 + 45 * 1448 = 65,212 bytes, and another segment would be 66,660.
    #[test]
    fn merged_burst_respects_device_limit() {
        let of_1500 = bursts(&[(7, 1500); 100]);
        assert_eq!(of_1500.iter().filter(|&&burst| burst == 1).count(), 45);
        assert_eq!((of_1500[44], of_1500[45], of_1500[89], of_1500[90]), (1, 2, 2, 3));
    }

    #[test]
    fn phase_is_sampled_from_own_stream() {
        let phase_of = |every_ns, seed, index| {
            let setup = Setup { random: Stream::new(seed, index), announced: false };
            Aggregate::new(&Config { every_ns, merge: false }, setup).phase
        };
        let phase = |seed, index| phase_of(Duration::from_millis(10), seed, index);
        assert_eq!(phase(1, 0), phase(1, 0));
        assert_ne!(phase(1, 0), phase(2, 0));
        assert_ne!(phase(1, 0), phase(1, 1));
        assert!((0..1000).all(|seed| phase(seed, 0) < 10_000_000));
        assert_eq!(phase_of(Duration::from_nanos(1), 1, 0), 0);
    }
}
