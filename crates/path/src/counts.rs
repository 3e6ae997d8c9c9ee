//! How many packets and bytes entered a path, left it or were dropped.

use crate::packet::{Cause, Packet, Tally};

/// Packets and bytes, by their fate. Always `entered + duplicated == left + dropped_total() + inside`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Offered by the caller.
    pub entered: Tally,
    /// Copies made on the way.
    pub duplicated: Tally,
    /// Handed back to the caller.
    pub left: Tally,
    /// Neither dropped nor handed back yet.
    pub inside: Tally,
    pub(crate) dropped: [Tally; Cause::ALL.len()],
}

impl Counts {
    /// Dropped for this cause.
    pub fn dropped(&self, cause: Cause) -> Tally {
        self.dropped[cause as usize]
    }

    #[inline]
    pub(crate) fn drop(&mut self, cause: Cause, packet: &Packet) {
        self.dropped[cause as usize].add(packet.bytes);
    }

    /// Dropped for any cause.
    pub fn dropped_total(&self) -> Tally {
        self.dropped.iter().fold(Tally::default(), |sum, &tally| sum + tally)
    }
}
