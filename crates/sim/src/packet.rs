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
    /// Half-open ranges of segments; the first `blocks` count.
    pub(crate) sack: [(u64, u64); SACK_BLOCKS],
    pub(crate) blocks: u8,
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
    pub(crate) const NONE: Acknowledgement = Acknowledgement {
        stamp_ms: 0,
        echo_ms: 0,
        ack: 0,
        window_edge: 0,
        sack: [(0, 0); SACK_BLOCKS],
        blocks: 0,
        kind: AckKind::Plain,
    };

    /// Length of the IP packet: headers with timestamps, 4 + 8 for each SACK block, and the one byte of a request.
    #[inline]
    pub(crate) fn wire_bytes(&self) -> u32 {
        let blocks = if self.blocks > 0 { 4 + 8 * self.blocks as u32 } else { 0 };
        Spec::HEADER_BYTES + blocks + (self.kind == AckKind::Request) as u32
    }
}
