//! Packets, and what can happen to them.

use fullpipe_units::{Bytes, Time};

/// What the path needs to know about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Length in bytes, headers from IP upwards; 1 to [`Packet::MAX_BYTES`].
    pub bytes: u32,
    /// Index into the `class_delays` the chain was built with.
    pub class: u32,
}

impl Packet {
    /// The longest packet a path takes: far above any IP packet, and small enough that its length in billionths of a
    /// bit (the unit of work of `link.rs`) fits 64 bits.
    pub const MAX_BYTES: u32 = 1 << 30;
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It did not fit into a queue.
    QueueFull,
    /// Random loss.
    Lost,
    /// A policer had no tokens for it.
    Policed,
    /// It is larger than a token bucket, so it could never pass.
    Oversize,
}

impl Cause {
    /// Every cause, in order of declaration.
    pub const ALL: [Cause; 4] = [Cause::QueueFull, Cause::Lost, Cause::Policed, Cause::Oversize];
}

/// What is known about a packet right after it was offered to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is inside. (An element behind one that reorders may still drop it.)
    Queued,
    /// It was dropped, with its payload.
    Dropped(Cause),
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += Bytes::new(bytes as u64);
    }

    #[inline]
    pub(crate) fn add_many(&mut self, packets: u32, bytes_each: u32) {
        self.packets += packets as u64;
        self.bytes += Bytes::new(packets as u64 * bytes_each as u64);
    }
}

impl std::ops::Add for Tally {
    type Output = Tally;
    fn add(self, other: Tally) -> Tally {
        Tally { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl std::ops::Sub for Tally {
    type Output = Tally;
    fn sub(self, other: Tally) -> Tally {
        Tally { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

/// The two times that are passed to an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// When the packet reaches the element. Never goes back from one packet to the next.
    pub(crate) arrival: Time,
    /// The caller's time, at or before `arrival`: no later query is about an earlier time.
    pub(crate) clock: Time,
}

/// What an element does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves the element at this time.
    Leaves(Time),
    /// It leaves the element twice, both times now.
    Twice(Time),
    /// It is dropped.
    Dropped(Cause),
}
