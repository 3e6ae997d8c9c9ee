//! Packets: data segments in one direction, acknowledgements in the other.
//!
//! Sequence numbers count segments, not bytes: every segment of a flow is full-sized except its last.

use fullpipe_scenario::Spec;
use fullpipe_units::Time;

/// A data segment, or a SYN. The packet that carries it names the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its number; unused in a SYN.
    pub(crate) seq: u64,
    /// When it left the sender: its TCP timestamp (RFC 7323), milliseconds as in Linux, wrapping.
    pub(crate) stamp_ms: u32,
    /// The stamp of the latest ACK that the sender has seen (RFC 7323 TSecr).
    pub(crate) echo_ms: u16,
    /// Payload bytes; zero marks a SYN, because no data segment is empty.
    pub(crate) payload: u16,
}

impl Segment {
    /// Whether it is a SYN.
    #[inline]
    pub(crate) fn is_syn(&self) -> bool {
        self.payload == 0
    }
}

/// The value of the timestamp clock at `now`.
#[inline]
pub(crate) fn stamp_ms(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// Blocks that an acknowledgement can carry together with timestamps (RFC 2018: 40 bytes of options).
pub(crate) const SACK_BLOCKS: usize = 3;

/// An acknowledgement, or the answer to a SYN. The packet that carries it names the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    /// When it left the receiver: the low bits of its timestamp, which are enough to time a round trip below 65 s.
    pub(crate) stamp_ms: u16,
    /// Timestamp of the segment that it answers (RFC 7323 TSecr).
    pub(crate) echo_ms: u32,
    /// The next segment that the receiver expects.
    pub(crate) ack: u64,
    /// The first byte past the receive window, counted from the start of the stream.
    pub(crate) window_edge: u64,
    /// Half-open ranges of segments, counted from `ack`; the first `blocks` count.
    sack: [(i32, i32); SACK_BLOCKS],
    blocks: u8,
    pub(crate) kind: AckKind,
}

/// The flags of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    Plain,
    /// The first block reports a duplicate (RFC 2883).
    Duplicate,
    /// It carries a request for the transfer that begins at `ack`.
    Request,
    /// The answer to a SYN.
    Syn,
}

impl Acknowledgement {
    /// One that reports nothing.
    pub(crate) const NONE: Acknowledgement = Acknowledgement::new(AckKind::Plain, 0, 0, 0);

    /// One without blocks; the sender of the ACK sets the stamp.
    pub(crate) const fn new(kind: AckKind, echo_ms: u32, ack: u64, window_edge: u64) -> Acknowledgement {
        Acknowledgement {
            stamp_ms: 0,
            echo_ms,
            ack,
            window_edge,
            sack: [(0, 0); SACK_BLOCKS],
            blocks: 0,
            kind,
        }
    }

    /// Reports another range, if there is room.
    #[inline]
    pub(crate) fn report(&mut self, (start, end): (u64, u64)) {
        if let Some(block) = self.sack.get_mut(self.blocks as usize) {
            let from_ack = |seq: u64| {
                let distance = seq.wrapping_sub(self.ack) as i64;
                debug_assert!(i32::try_from(distance).is_ok(), "a block {distance} segments away");
                distance as i32
            };
            *block = (from_ack(start), from_ack(end));
            self.blocks += 1;
        }
    }

    /// How many ranges it reports.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        self.blocks as usize
    }

    /// The ranges; those beyond [`Acknowledgement::blocks`] are empty.
    #[inline]
    pub(crate) fn sack(&self) -> [(u64, u64); SACK_BLOCKS] {
        let seq = |from_ack: i32| self.ack.wrapping_add_signed(from_ack as i64);
        self.sack.map(|(start, end)| (seq(start), seq(end)))
    }

    /// Length of the IP packet: headers with timestamps, 4 + 8 for each SACK block, and the one byte of a request.
    #[inline]
    pub(crate) fn wire_bytes(&self) -> u32 {
        let blocks = if self.blocks > 0 { 4 + 8 * self.blocks as u32 } else { 0 };
        Spec::HEADER_BYTES + blocks + (self.kind == AckKind::Request) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgement_reports_three_ranges_above_and_below_its_number() {
        let ack_number = 1 << 40;
        let mut ack = Acknowledgement::new(AckKind::Plain, 0, ack_number, 0);
        let ranges = [
            (ack_number - 7, ack_number - 5),
            (ack_number + 3, ack_number + 4),
            (ack_number + 9, ack_number + 70_000),
        ];
        ranges.iter().chain([&(1, 2)]).for_each(|range| ack.report(*range));
        assert_eq!((ack.sack(), ack.blocks(), ack.wire_bytes()), (ranges, 3, 80));
    }

    /// With a length, a class and a due time, two segments or one acknowledgement fill a line of the caches.
    #[test]
    fn packets_are_small() {
        assert_eq!((size_of::<Segment>(), size_of::<Acknowledgement>()), (16, 48));
    }
}
