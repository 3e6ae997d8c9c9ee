//! Queue disciplines: what decides which packet leaves a queue next, and which one is marked or dropped instead.
//!
//! A [`Discipline`] holds what waits, packet by packet, and is asked at both ends: when a packet arrives and when the link is
//! free for the next one. It never reads a clock and knows nothing of payloads; a `Gate` (`gate.rs`) keeps those, drives the
//! link and counts. Drop-tail, which needs no such care, stays a transit function (`queue.rs`).
//!
//! Each discipline is a file in `disciplines/` with its source, and a line in `disciplines.rs`. A discipline of your own is
//! the trait, too: see [`Chain::with_disciplines`](crate::Chain::with_disciplines).

use std::collections::VecDeque;
use std::fmt;

use crate::packet::{Cause, Ecn, Packet, Tally};
use crate::rng::Stream;
use fullpipe_units::{Bytes, Rate, Time};

/// A packet that waits in a discipline, or a burst that the host handed over whole and that is taken, marked and dropped
/// as one.
///
/// It can neither be made nor copied outside this crate: a discipline returns or drops each exactly once.
#[derive(Debug, PartialEq, Eq)]
pub struct Waiting {
    /// Its length and flow, and what its header says of congestion.
    packet: Packet,
    arrived: Time,
    /// Where the gate keeps its payload.
    pub(crate) place: u32,
}

impl Waiting {
    /// `packet` has the length of the whole burst.
    pub(crate) fn new(arrived: Time, packet: Packet, place: u32) -> Waiting {
        Waiting { packet, arrived, place }
    }

    /// Its length in bytes, headers from IP upwards; of a burst, of all its packets.
    #[inline]
    pub const fn bytes(&self) -> u32 {
        self.packet.bytes
    }

    /// The flow it belongs to ([`Packet::class`]).
    #[inline]
    pub const fn flow(&self) -> u32 {
        self.packet.class
    }

    /// Its ECN codepoint.
    #[inline]
    pub const fn ecn(&self) -> Ecn {
        self.packet.ecn
    }

    /// When it arrived.
    #[inline]
    pub const fn arrived(&self) -> Time {
        self.arrived
    }

    /// Marks it as having experienced congestion. Returns false, and changes nothing, if its transport does not understand
    /// marks.
    #[inline]
    pub fn mark(&mut self) -> bool {
        let capable = self.packet.ecn.is_capable();
        if capable {
            self.packet.ecn = Ecn::Ce;
        }
        capable
    }
}

/// Takes what a discipline drops.
#[derive(Debug, Default)]
pub struct Dropped(pub(crate) Vec<(Waiting, Cause)>);

impl Dropped {
    /// Drops a packet for which there is no room.
    pub fn overflow(&mut self, waiting: Waiting) {
        self.0.push((waiting, Cause::QueueFull));
    }

    /// Drops a packet to signal congestion.
    pub fn early(&mut self, waiting: Waiting) {
        self.0.push((waiting, Cause::Early));
    }
}

/// A queue discipline. Times never go back from one call to the next.
///
/// Every packet that is enqueued is dequeued or dropped once. A discipline with a [`Discipline::backlog`] hands out a packet, or
/// drops all that it has: a link is never idle while something waits.
pub trait Discipline: fmt::Debug + Send {
    /// A packet arrives. It is kept or dropped, and others may be dropped for it.
    fn enqueue(&mut self, now: Time, waiting: Waiting, dropped: &mut Dropped);

    /// The link is free: hands out what it sends next. What is dropped before that is not returned.
    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<Waiting>;

    /// What waits: packets, of which a burst counts as one, and bytes.
    fn backlog(&self) -> Tally;

    /// This many bytes may wait from now on, of any number of packets; what waits stays.
    fn set_limit(&mut self, bytes: Bytes);
}

/// What a discipline is built with.
#[derive(Debug)]
pub struct Setup {
    /// The most that may wait.
    pub limit: Room,
    /// The highest rate that the link behind it is known to have.
    pub rate: Rate,
    /// Randomness of its own.
    pub random: Random,
}

/// How much may wait: what is in transmission does not count.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    /// Bytes.
    pub bytes: Bytes,
    /// Packets, of which a burst counts as one; `None` for any number.
    pub packets: Option<u32>,
}

impl Room {
    /// Whether there is room for one more beside what waits already.
    #[inline]
    pub fn takes(&self, backlog: Tally, more: &Waiting) -> bool {
        backlog.bytes.as_u64() + more.bytes() as u64 <= self.bytes.as_u64()
            && self.packets.is_none_or(|most| backlog.packets < most as u64)
    }
}

/// The random numbers of one discipline. Equal seeds of a run give equal numbers.
#[derive(Clone, Debug)]
pub struct Random(pub(crate) Stream);

impl Random {
    /// 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Packets in order of arrival, counted. Most disciplines are made of one or several.
#[derive(Debug, Default)]
pub struct Line {
    waiting: VecDeque<Waiting>,
    tally: Tally,
}

impl Line {
    /// Adds a packet at the end.
    #[inline]
    pub fn push(&mut self, waiting: Waiting) {
        self.tally.add(waiting.bytes());
        self.waiting.push_back(waiting);
    }

    /// Takes the packet at the front.
    #[inline]
    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.tally.packets -= 1;
        self.tally.bytes -= Bytes::new(waiting.bytes() as u64);
        Some(waiting)
    }

    /// The packet at the front.
    #[inline]
    pub fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    /// What waits in it.
    #[inline]
    pub const fn backlog(&self) -> Tally {
        self.tally
    }

    /// Whether nothing waits.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
