//! The queue at the end of a stage, in which packets wait for their known departure.

use crate::packet::{Ecn, Packet};
use crate::ring::Ring;
use fullpipe_units::{Duration, Time};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};
use std::num::NonZeroU32;

const ECN_SHIFT: u32 = 30;
const BURST_SHIFT: u32 = 20;
const _: () = assert!(Packet::MAX_BYTES == (1 << ECN_SHIFT) - 1);
const _: () =
    assert!(Packet::CLASSES == 1 << BURST_SHIFT && Packet::MAX_BURST as u32 == u32::MAX >> BURST_SHIFT);

/// A packet that waits for its time.
#[derive(Clone, Debug)]
pub(crate) struct Held<P> {
    pub(crate) due: Time,
    /// The packet's length, and in the two highest bits its ECN codepoint. A length is never zero, so that an empty place of a
    /// ring needs no mark of its own.
    bytes_and_ecn: NonZeroU32,
    /// The flow, and in the highest bits the number of the burst.
    class_and_burst: u32,
    pub(crate) payload: P,
}

impl<P> Held<P> {
    #[inline]
    pub(crate) fn new(due: Time, packet: Packet, payload: P) -> Held<P> {
        let bytes_and_ecn = NonZeroU32::new(packet.bytes | (packet.ecn as u32) << ECN_SHIFT)
            .expect("a chain takes no packets without bytes");
        let class_and_burst = packet.class | (packet.burst as u32) << BURST_SHIFT;
        Held { due, bytes_and_ecn, class_and_burst, payload }
    }

    #[inline]
    pub(crate) fn packet(&self) -> Packet {
        let both = self.bytes_and_ecn.get();
        let ecn = Ecn::from_bits((both >> ECN_SHIFT) as u8);
        let (class, burst) = (self.class_and_burst % Packet::CLASSES, self.class_and_burst >> BURST_SHIFT);
        Packet { bytes: both & Packet::MAX_BYTES, class, ecn, burst: burst as u16 }
    }
}

/// A holding queue. Packets leave in order of (due time, insertion).
#[derive(Debug)]
pub(crate) enum Hold<P> {
    /// Packets arrive in order of time, and all get the same extra delay.
    Fifo { extra: Duration, latest: Time, ring: Ring<Held<P>> },
    /// Packets arrive in order of time; classes get different extra delays.
    Lanes(Lanes<P>),
    /// Packets arrive in any order. `extra` for all, and by class; empty for none.
    Heap { extra: Duration, extra_of_class: Box<[Duration]>, inserted: u64, heap: BinaryHeap<Numbered<P>> },
}

impl<P> Hold<P> {
    /// A holding queue inside a chain.
    pub(crate) fn inner(reorders: bool) -> Hold<P> {
        Hold::last(reorders, &[])
    }

    /// The holding queue at the end of a chain, which adds each class's delay. No class means one without delay.
    pub(crate) fn last(reorders: bool, class_delays: &[Duration]) -> Hold<P> {
        let first = class_delays.first().copied().unwrap_or(Duration::ZERO);
        let same = class_delays.iter().all(|&delay| delay == first);
        if reorders {
            let (extra, extra_of_class) =
                if same { (first, [].into()) } else { (Duration::ZERO, class_delays.into()) };
            Hold::Heap { extra, extra_of_class, inserted: 0, heap: BinaryHeap::new() }
        } else if same {
            Hold::Fifo { extra: first, latest: Time::ZERO, ring: Ring::new() }
        } else {
            Hold::Lanes(Lanes::new(class_delays))
        }
    }

    /// Takes a packet that leaves its stage at `due`, and returns when it leaves the holding queue.
    #[inline]
    pub(crate) fn push(&mut self, due: Time, packet: Packet, payload: P) -> Time {
        match self {
            Hold::Fifo { extra, latest, ring } => {
                let due = due.saturating_add(*extra);
                assert!(due >= *latest, "an element that must not reorder did");
                *latest = due;
                ring.push(Held::new(due, packet, payload));
                due
            }
            _ => self.push_sorted(due, packet, payload),
        }
    }

    #[inline(never)]
    fn push_sorted(&mut self, due: Time, packet: Packet, payload: P) -> Time {
        match self {
            Hold::Fifo { .. } => unreachable!("see `push`"),
            Hold::Lanes(lanes) => lanes.push(due, packet, payload),
            Hold::Heap { extra, extra_of_class, inserted, heap } => {
                let mut due = due.saturating_add(*extra);
                if !extra_of_class.is_empty() {
                    due = due.saturating_add(extra_of_class[packet.class as usize]);
                }
                *inserted += 1;
                heap.push(Numbered { number: *inserted, held: Held::new(due, packet, payload) });
                due
            }
        }
    }

    /// When the first packet is due; [`Time::NEVER`] if there is none.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        match self {
            Hold::Fifo { ring, .. } => ring.front().map_or(Time::NEVER, |held| held.due),
            Hold::Lanes(lanes) => lanes.next(),
            Hold::Heap { heap, .. } => heap.peek().map_or(Time::NEVER, |numbered| numbered.held.due),
        }
    }

    /// The earliest time at which a packet can be due that enters at `now` or later.
    pub(crate) fn known_until(&self, now: Time) -> Time {
        match self {
            Hold::Fifo { extra, latest, .. } => now.saturating_add(*extra).max(*latest),
            Hold::Lanes(lanes) => lanes.known_until(now),
            Hold::Heap { extra, extra_of_class, .. } => {
                let least = extra_of_class.iter().min().copied().unwrap_or(Duration::ZERO);
                now.saturating_add(*extra).saturating_add(least)
            }
        }
    }

    /// How many packets wait.
    pub(crate) fn len(&self) -> usize {
        match self {
            Hold::Fifo { ring, .. } => ring.len(),
            Hold::Lanes(lanes) => lanes.held,
            Hold::Heap { heap, .. } => heap.len(),
        }
    }

    /// Shows the classes of all packets that are due before `before`, in no order.
    pub(crate) fn look(&self, before: Time, mut look: impl FnMut(u32)) {
        let mut look = |held: &Held<P>| look(held.packet().class);
        match self {
            Hold::Fifo { ring, .. } => ring.iter().take_while(|held| held.due < before).for_each(look),
            Hold::Lanes(lanes) => {
                for lane in &lanes.lanes {
                    let held = lane.ring.iter().map(|one| &one.held);
                    held.take_while(|held| held.due < before).for_each(&mut look);
                }
            }
            Hold::Heap { heap, .. } => {
                heap.iter().map(|one| &one.held).filter(|held| held.due < before).for_each(look);
            }
        }
    }

    /// Takes out all packets that are due before `before`, in order.
    #[inline]
    pub(crate) fn take_before(&mut self, before: Time, mut take: impl FnMut(&Held<P>)) {
        if let Hold::Fifo { ring, .. } = self {
            while let Some(held) = ring.front().filter(|held| held.due < before) {
                take(held);
                ring.drop_front();
            }
            return;
        }
        while self.next() < before
            && let Some(held) = self.pop()
        {
            take(&held);
        }
    }

    /// The delay of a class, in a queue that keeps the order of each.
    pub(crate) fn delay_of(&self, class: u32) -> Option<Duration> {
        match self {
            Hold::Fifo { extra, .. } => Some(*extra),
            Hold::Lanes(lanes) => Some(lanes.lanes[lanes.lane_of_class[class as usize] as usize].extra),
            Hold::Heap { .. } => None,
        }
    }

    /// The first packet and when it is due.
    pub(crate) fn first(&self) -> Option<(Time, Packet)> {
        let held = match self {
            Hold::Fifo { ring, .. } => ring.front()?,
            Hold::Heap { heap, .. } => &heap.peek()?.held,
            Hold::Lanes(_) => unreachable!("only the last holding queue has lanes, and nobody looks into it"),
        };
        Some((held.due, held.packet()))
    }

    /// Takes out the first packet.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Held<P>> {
        match self {
            Hold::Fifo { ring, .. } => ring.pop(),
            _ => self.pop_sorted(),
        }
    }

    #[inline(never)]
    fn pop_sorted(&mut self) -> Option<Held<P>> {
        match self {
            Hold::Fifo { .. } => unreachable!("see `pop`"),
            Hold::Lanes(lanes) => lanes.pop(),
            Hold::Heap { heap, .. } => heap.pop().map(|numbered| numbered.held),
        }
    }

    /// Takes out the first packet of a queue that sorts, with its number.
    pub(crate) fn pop_numbered(&mut self) -> Option<(u64, Held<P>)> {
        match self {
            Hold::Heap { heap, .. } => heap.pop().map(|Numbered { number, held }| (number, held)),
            _ => unreachable!("only packets that overtake have numbers"),
        }
    }

    /// [`Hold::push`] to a queue that sorts, of a packet that keeps its number.
    pub(crate) fn push_numbered(&mut self, number: u64, due: Time, packet: Packet, payload: P) -> Time {
        let Hold::Heap { extra, extra_of_class, heap, .. } = self else {
            unreachable!("only packets that overtake have numbers")
        };
        let of_class = extra_of_class.get(packet.class as usize).copied().unwrap_or(Duration::ZERO);
        let due = due.saturating_add(*extra).saturating_add(of_class);
        heap.push(Numbered { number, held: Held::new(due, packet, payload) });
        due
    }

    /// The lengths of the packets of a first-in, first-out queue, in order.
    pub(crate) fn lengths(&self) -> Vec<u32> {
        match self {
            Hold::Fifo { ring, .. } => ring.iter().map(|held| held.packet().bytes).collect(),
            _ => unreachable!("a link keeps the order"),
        }
    }

    /// Its packets are due at other times, which do not change their order.
    pub(crate) fn change(&mut self, times: &[Time]) {
        let Hold::Fifo { latest, ring, .. } = self else { unreachable!("a link keeps the order") };
        debug_assert_eq!(ring.len(), times.len());
        let mut times = times.iter().copied();
        *latest = Time::ZERO;
        ring.for_each(|held| {
            held.due = times.next().expect("a time for each");
            *latest = held.due;
        });
    }

    /// Every packet, in no order.
    pub(crate) fn packets(&self) -> Box<dyn Iterator<Item = Packet> + '_> {
        match self {
            Hold::Fifo { ring, .. } => Box::new(ring.iter().map(Held::packet)),
            Hold::Lanes(lanes) => {
                Box::new(lanes.lanes.iter().flat_map(|lane| lane.ring.iter().map(|one| one.held.packet())))
            }
            Hold::Heap { heap, .. } => Box::new(heap.iter().map(|numbered| numbered.held.packet())),
        }
    }
}

/// A packet and its insertion number. The greatest is the one that leaves first, as `BinaryHeap` requires.
#[derive(Clone, Debug)]
pub(crate) struct Numbered<P> {
    number: u64,
    held: Held<P>,
}

impl<P> Ord for Numbered<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.held.due, other.number).cmp(&(self.held.due, self.number))
    }
}

impl<P> PartialOrd for Numbered<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Numbered<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for Numbered<P> {}

/// One FIFO for each distinct extra delay. Within it packets stay in order, so only the heads compete.
#[derive(Debug)]
pub(crate) struct Lanes<P> {
    lane_of_class: Box<[u32]>,
    lanes: Box<[Lane<P>]>,
    inserted: u64,
    /// How many packets wait.
    held: usize,
    /// When the latest packet came.
    latest: Time,
    heads: Heads,
}

#[derive(Debug)]
struct Lane<P> {
    extra: Duration,
    latest: Time,
    ring: VecDeque<Numbered<P>>,
}

/// The first packet of a lane: (due, insertion, lane).
type Head = (Time, u64, u32);

/// A lane without packets.
const NO_HEAD: Head = (Time::NEVER, u64::MAX, u32::MAX);

/// How to find the first head.
#[derive(Debug)]
enum Heads {
    /// Few lanes: a scan. The first head of all, and each lane's.
    Scanned { first: Head, all: Box<[Head]> },
    /// Many lanes: a heap of the heads of lanes that are not empty.
    Sorted(BinaryHeap<std::cmp::Reverse<Head>>),
}

/// Up to this many lanes are scanned.
const SCANNED: usize = 8;

impl<P> Lanes<P> {
    fn new(class_delays: &[Duration]) -> Lanes<P> {
        let mut distinct = class_delays.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let lane_of = |delay| distinct.partition_point(|&other| other < delay) as u32;
        let lane = |&extra| Lane { extra, latest: Time::ZERO, ring: VecDeque::new() };
        let heads = if distinct.len() <= SCANNED {
            Heads::Scanned { first: NO_HEAD, all: vec![NO_HEAD; distinct.len()].into() }
        } else {
            Heads::Sorted(BinaryHeap::with_capacity(distinct.len()))
        };
        Lanes {
            lane_of_class: class_delays.iter().map(|&delay| lane_of(delay)).collect(),
            lanes: distinct.iter().map(lane).collect(),
            inserted: 0,
            held: 0,
            latest: Time::ZERO,
            heads,
        }
    }

    fn push(&mut self, due: Time, packet: Packet, payload: P) -> Time {
        self.latest = due;
        self.held += 1;
        let index = self.lane_of_class[packet.class as usize];
        let lane = &mut self.lanes[index as usize];
        let due = due.saturating_add(lane.extra);
        assert!(due >= lane.latest, "an element that must not reorder did");
        lane.latest = due;
        self.inserted += 1;
        if lane.ring.is_empty() {
            self.heads.put((due, self.inserted, index));
        }
        lane.ring.push_back(Numbered { number: self.inserted, held: Held::new(due, packet, payload) });
        due
    }

    fn known_until(&self, now: Time) -> Time {
        // Packets come in order of time; the first lane has the least delay.
        self.latest.max(now).saturating_add(self.lanes[0].extra)
    }

    fn next(&self) -> Time {
        match &self.heads {
            Heads::Scanned { first, .. } => first.0,
            Heads::Sorted(heap) => heap.peek().map_or(Time::NEVER, |head| head.0.0),
        }
    }

    fn pop(&mut self) -> Option<Held<P>> {
        let index = self.heads.take()?;
        let ring = &mut self.lanes[index as usize].ring;
        let taken = ring.pop_front();
        self.held -= 1;
        if let Some(head) = ring.front() {
            self.heads.put((head.held.due, head.number, index));
        }
        taken.map(|numbered| numbered.held)
    }
}

impl Heads {
    fn put(&mut self, head: Head) {
        match self {
            Heads::Scanned { first, all } => {
                all[head.2 as usize] = head;
                *first = head.min(*first);
            }
            Heads::Sorted(heap) => heap.push(std::cmp::Reverse(head)),
        }
    }

    /// Takes out the first head and names its lane.
    fn take(&mut self) -> Option<u32> {
        match self {
            Heads::Scanned { first, all } => {
                let lane = first.2;
                *all.get_mut(lane as usize)? = NO_HEAD;
                *first = all.iter().copied().fold(NO_HEAD, Head::min);
                Some(lane)
            }
            Heads::Sorted(heap) => heap.pop().map(|head| head.0.2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_place_needs_no_mark() {
        assert_eq!(size_of::<Option<Held<u64>>>(), 24);
    }
}
