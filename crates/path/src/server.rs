//! What empties a queue: it knows when a packet leaves as soon as it is admitted.

use crate::packet::Cause;
use fullpipe_units::{Bytes, Time};
use std::fmt;

/// How a server sends a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bursts {
    /// Packet by packet.
    Apart,
    /// As one; one that can never pass is split into packets first.
    Split,
    /// As one; one that can never pass is dropped.
    Drop,
}

/// Empties a queue, first in, first out.
pub(crate) trait Server: fmt::Debug {
    /// What [`Server::unsent`] has to know about the state after an arrival.
    type Mark: Copy + fmt::Debug;

    /// Whether the byte limit counts a packet in full until it leaves; the queue then does the counting, and `offer`
    /// need not.
    const WHOLE_PACKETS: bool = false;

    /// Whether a burst leaves it as one, and what is too long for it is split into packets; else a burst leaves packet by
    /// packet.
    const WHOLE_BURSTS: Bursts = Bursts::Apart;

    /// How long a packet of this length is for this server and its queue.
    #[inline]
    fn framed(&self, bytes: u32) -> u32 {
        bytes
    }

    /// Whether a packet of this size can pass at all.
    fn can_pass(&self, bytes: u32) -> bool;

    /// Admits a packet and returns when it leaves (not before `now`, and not before its predecessor), or why it cannot be
    /// admitted.
    fn offer(&mut self, now: Time, bytes: u32, limit: Bytes) -> Result<Time, Cause>;

    /// The state after the latest arrival.
    fn mark(&self) -> Self::Mark;

    /// Bytes not yet sent at `now`, given the state after the latest arrival by then.
    fn unsent(&self, mark: Self::Mark, now: Time) -> Bytes;
}
