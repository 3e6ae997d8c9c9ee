//! Packets, and what can happen to them.

use fullpipe_units::{Bytes, Time};

/// What the path needs to know about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Length in bytes, headers from IP upwards; 1 to [`Packet::MAX_BYTES`].
    pub bytes: u32,
    /// The flow it belongs to: an index into the `class_delays` that the chain was built with. If there are none, any number
    /// that packets of one flow share; disciplines that keep flows apart look at it. Below [`Packet::CLASSES`].
    pub class: u32,
    /// What its IP header says of congestion.
    pub ecn: Ecn,
    /// The burst in which the host handed it over; 0 if it came alone, or was parted from the others. Neighbours with the same
    /// number are one burst, which [some elements](crate::config::AdmissionUnit) take or drop as one. The path numbers bursts
    /// itself, if it has such an element.
    pub(crate) burst: u16,
}

impl Packet {
    /// How many flows a path can tell apart.
    pub const CLASSES: u32 = 1 << 20;

    /// The numbers of bursts: from 1 up to this one, and again.
    pub(crate) const MAX_BURST: u16 = (1 << 12) - 1;

    /// Whether both belong to one burst, if they are neighbours and at the same place at the same time.
    pub(crate) const fn is_with(&self, other: &Packet) -> bool {
        self.burst != 0
            && other.burst == self.burst
            && other.class == self.class
            // A queue marks a burst as one: packets whose codepoint was cleared on the way are parted from the others.
            && other.ecn as u8 == self.ecn as u8
    }

    /// The longest packet a path takes: far above any IP packet, and small enough that its length in billionths of a
    /// bit (the unit of work of `link.rs`) fits 64 bits, and that two bits of 32 are left over.
    pub const MAX_BYTES: u32 = (1 << 30) - 1;

    /// A packet whose transport does not understand marks.
    #[inline]
    pub const fn new(bytes: u32, class: u32) -> Packet {
        Packet { bytes, class, ecn: Ecn::NotEct, burst: 0 }
    }

    /// The same packet on its own.
    #[inline]
    pub(crate) const fn alone(self) -> Packet {
        Packet { burst: 0, ..self }
    }

    /// The same packet with this codepoint.
    #[inline]
    pub const fn with_ecn(self, ecn: Ecn) -> Packet {
        Packet { ecn, ..self }
    }
}

/// The ECN codepoint of an IP header (RFC 3168, section 5), with its bits as value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Ecn {
    /// The transport does not understand marks.
    #[default]
    NotEct = 0b00,
    /// ECN-capable; identifies the low-latency service (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable.
    Ect0 = 0b10,
    /// Congestion experienced: a queue has marked it.
    Ce = 0b11,
}

impl Ecn {
    /// The codepoint in the two lowest bits; the others are ignored.
    #[inline]
    pub const fn from_bits(bits: u8) -> Ecn {
        match bits & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// Whether a queue may mark it instead of dropping it. One that is marked already stays so.
    #[inline]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
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
    /// A queue discipline dropped it although there was room, to signal congestion.
    Early,
}

impl Cause {
    /// Every cause, in order of declaration.
    pub const ALL: [Cause; 5] =
        [Cause::QueueFull, Cause::Lost, Cause::Policed, Cause::Oversize, Cause::Early];
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

#[cfg(test)]
impl Moment {
    /// A packet arrives now.
    pub(crate) fn at(now: Time) -> Moment {
        Moment { arrival: now, clock: now }
    }
}

/// What an element does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves the element at this time.
    Leaves(Time),
    /// It leaves the element twice, both times now.
    Twice(Time),
    /// It leaves the element at this time, with this codepoint.
    Remarked(Time, Ecn),
    /// It leaves the element at this time, in the burst with this number.
    Merged(Time, u16),
    /// It is dropped.
    Dropped(Cause),
}

/// What an element does to a burst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum BurstFate {
    /// All its packets leave the element at this time.
    Leaves(Time),
    /// Each leaves at its time, one after the other, or is dropped.
    Apart(Vec<Result<Time, Cause>>),
    /// They are dropped.
    Dropped(Cause),
    /// It is too long to pass as one; the element takes or drops its packets one by one.
    Split,
}
