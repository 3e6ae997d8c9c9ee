//! What there is to tell of QUIC (RFC 9000): packets with their own numbers and frames.
//!
//! A packet's [`payload`](Packet::payload) is what the wire carries, without its protection. [`frames`] reads it.

mod frames;

pub use frames::{Ack, Frame, Frames, frames};

use crate::codepoint::Codepoint;

/// A packet number space (RFC 9000 section 12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Space {
    /// Of Initial packets.
    Initial,
    /// Of Handshake packets.
    Handshake,
    /// Of application data: 1-RTT packets.
    Data,
}

impl Space {
    /// All of them.
    pub const ALL: [Space; 3] = [Space::Initial, Space::Handshake, Space::Data];

    /// The type of its packets in qlog.
    pub(crate) fn packet_type(self) -> &'static str {
        ["initial", "handshake", "1RTT"][self as usize]
    }
}

/// Something that happened to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// It left the sender.
    Sent(Packet<'a>),
    /// It arrived at the sender, which could read it.
    Received(Packet<'a>),
    /// The sender takes it for lost.
    Lost(Loss),
    /// It arrived at the receiver, which could read it.
    Arrived(Arrival),
    /// The path dropped it when it was offered.
    Dropped(Drop<'a>),
}

/// A packet at the sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Where its number counts.
    pub space: Space,
    /// Its number.
    pub number: u64,
    /// Its bytes, of which a datagram may have several packets.
    pub length: u32,
    /// Its frames, without protection.
    pub payload: &'a [u8],
    /// The round-trip time that it shows by what it acknowledges.
    pub rtt_ns: Option<u64>,
}

/// A packet that is taken for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Where its number counts.
    pub space: Space,
    /// Its number.
    pub number: u64,
    /// How it was found out.
    pub trigger: Trigger,
}

/// How a loss was found out (RFC 9002 section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A packet was acknowledged that was sent at least three packets later.
    Packets,
    /// It was sent long enough before one that was acknowledged.
    Time,
}

/// A packet that arrives at the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Where its number counts.
    pub space: Space,
    /// Its number.
    pub number: u64,
    /// The codepoint of its datagram, which queues may have changed.
    pub codepoint: Codepoint,
}

/// A packet that the path dropped, with the datagram in which it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop<'a> {
    /// Where its number counts.
    pub space: Space,
    /// Its number.
    pub number: u64,
    /// The receiver had sent it.
    pub to_sender: bool,
    /// The queue that dropped it, if one did.
    pub queue: Option<&'a str>,
    /// Why: see [`Drop::cause`](crate::Drop::cause).
    pub cause: &'static str,
}
