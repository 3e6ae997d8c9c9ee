//! What arrives: data in one piece, and what its headers say of congestion.

use fullpipe_path::Ecn;

use crate::packet::Segment;

/// Data that arrived in one piece: one segment, or several that GRO merged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) seq: u64,
    pub(crate) segments: u32,
    pub(crate) bytes: u64,
    /// Timestamp of the first segment.
    pub(crate) stamp_ms: u32,
    /// The timestamp that it echoes.
    pub(crate) echo_ms: u16,
    /// What it says of congestion, on a connection that has negotiated ECN.
    pub(crate) mark: Option<Mark>,
}

/// What the headers of data say of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The codepoint of each packet.
    pub(crate) codepoint: Ecn,
    /// The sender has reduced its window.
    pub(crate) cwr: bool,
}

impl Mark {
    /// Whether GRO may merge data with the second behind data with the first (Linux: `inet_gro_receive`, `tcp_gro_receive`).
    pub(crate) fn can_be_merged(held: Option<Mark>, next: Option<Mark>) -> bool {
        match (held, next) {
            (Some(held), Some(next)) => held.codepoint == next.codepoint && !next.cwr,
            (held, next) => held == next,
        }
    }
}

impl Arrival {
    /// One segment.
    #[inline(always)]
    pub(crate) fn of(segment: &Segment, mark: Option<Mark>) -> Arrival {
        Arrival {
            seq: segment.seq,
            segments: 1,
            bytes: segment.payload as u64,
            stamp_ms: segment.stamp_ms,
            echo_ms: segment.echo_ms,
            mark,
        }
    }
}
