//! Segments put together to flows, each a list of transfers with pauses between them.
//!
//! A flow is one direction of one connection, from its first payload in the capture on. Its bytes are those by which its
//! sequence numbers advance: what was sent again counts once, and what the capture missed (because it is sampled, or lost
//! packets) counts too. Where no payload was sent for over 100 ms, a new transfer begins; a silence that ends with a
//! retransmission is the network's and not the application's, and does not count as one.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::error::CaptureError;
use crate::segment::{Direction, Segment};

/// The shortest silence that is a pause, nanoseconds: 100 ms (`ccwg25`, "Replay considers pauses >100ms").
pub const PAUSE_NS: u64 = 100_000_000;
/// The most transfers that are held, 320 MB of them; MAWI's 15 minutes have some 900 000 flows.
pub const MAX_TRANSFERS: usize = 10_000_000;
/// The most by which a segment is ahead of those before it, bytes: the largest window (RFC 7323 section 2.3).
const MOST_AHEAD: u32 = 1 << 30;

/// What a flow sent without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// The flow, numbered in the order of their first payloads.
    pub flow: u64,
    /// When its first byte was seen, from the first packet of the capture.
    pub start_ns: u64,
    /// How long the flow had been silent before it; zero for its first.
    pub pause_ns: u64,
    /// Payload.
    pub bytes: u64,
}

/// A flow that may go on.
struct Open {
    number: u64,
    /// The sequence number after the highest seen.
    next: u32,
    /// When it last sent payload.
    last_ns: u64,
    /// Place of its latest transfer.
    transfer: usize,
}

#[derive(Default)]
pub(crate) struct Flows {
    open: HashMap<Direction, Open>,
    transfers: Vec<Transfer>,
    count: u64,
}

impl Flows {
    /// Takes the next segment of the capture, seen at `now_ns`.
    pub(crate) fn take(&mut self, now_ns: u64, segment: &Segment) -> Result<(), CaptureError> {
        if segment.syn {
            // A new connection between the same ports.
            self.open.remove(&segment.direction);
        }
        if segment.payload == 0 {
            return Ok(());
        }
        // A SYN takes a sequence number before its payload (RFC 9293 section 3.4).
        let first = segment.sequence.wrapping_add(segment.syn.into());
        let end = first.wrapping_add(segment.payload);
        let full = self.transfers.len() == MAX_TRANSFERS;
        let begin = |flow, pause_ns, bytes| Transfer { flow, start_ns: now_ns, pause_ns, bytes };
        match self.open.entry(segment.direction) {
            Entry::Vacant(vacant) => {
                if full {
                    return Err(CaptureError::TooMany { most: MAX_TRANSFERS });
                }
                let transfer = self.transfers.len();
                vacant.insert(Open { number: self.count, next: end, last_ns: now_ns, transfer });
                self.transfers.push(begin(self.count, 0, segment.payload.into()));
                self.count += 1;
            }
            Entry::Occupied(mut occupied) => {
                let flow = occupied.get_mut();
                let ahead = end.wrapping_sub(flow.next);
                let pause_ns = now_ns.saturating_sub(flow.last_ns);
                flow.last_ns = flow.last_ns.max(now_ns);
                // In the half of the sequence space behind what was seen: sent again, or overtaken.
                if ahead == 0 || ahead > u32::MAX / 2 {
                    return Ok(());
                }
                // Too far ahead for this connection: one whose SYN was missed.
                let bytes = if ahead > MOST_AHEAD { segment.payload } else { ahead };
                flow.next = end;
                if pause_ns > PAUSE_NS {
                    if full {
                        return Err(CaptureError::TooMany { most: MAX_TRANSFERS });
                    }
                    flow.transfer = self.transfers.len();
                    self.transfers.push(begin(flow.number, pause_ns, bytes.into()));
                } else {
                    self.transfers[flow.transfer].bytes += u64::from(bytes);
                }
            }
        }
        Ok(())
    }

    /// Every transfer, in the order in which they began.
    pub(crate) fn transfers(self) -> Vec<Transfer> {
        self.transfers
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    const MS: u64 = 1_000_000;

    fn segment(port: u16, sequence: u32, payload: u32) -> Segment {
        let host = Ipv4Addr::LOCALHOST.into();
        Segment { direction: Direction { from: (host, port), to: (host, 80) }, sequence, payload, syn: false }
    }

    /// (flow, start, pause, bytes) of what these segments make, times in ms.
    fn made(segments: &[(u64, Segment)]) -> Vec<(u64, u64, u64, u64)> {
        let mut flows = Flows::default();
        for (now, segment) in segments {
            flows.take(now * MS, segment).expect("few flows");
        }
        flows.transfers().iter().map(|t| (t.flow, t.start_ns / MS, t.pause_ns / MS, t.bytes)).collect()
    }

    #[test]
    fn pause_over_100_ms_starts_transfer() {
        let list = [(5, segment(1, 0, 100)), (105, segment(1, 100, 100)), (206, segment(1, 200, 50))];
        assert_eq!(made(&list), [(0, 5, 0, 200), (0, 206, 101, 50)]);
    }

    #[test]
    fn retransmission_counts_once_without_pause() {
        let list = [
            (0, segment(1, 0, 1000)),
            (1, segment(1, 1000, 1000)),
            (300, segment(1, 0, 1000)),
            (350, segment(1, 2000, 1000)),
        ];
        assert_eq!(made(&list), [(0, 0, 0, 3000)]);
    }

    #[test]
    fn missed_bytes_count_across_sequence_wrap() {
        let list = [(0, segment(1, u32::MAX - 999, 500)), (1, segment(1, 9_500, 500))];
        assert_eq!(made(&list), [(0, 0, 0, 11_000)]);
    }

    #[test]
    fn out_of_window_sequence_counts_payload() {
        let list =
            [(0, segment(1, 0, 100)), (1, segment(1, 1_500_000_000, 100)), (2, segment(1, 1_500_000_100, 7))];
        assert_eq!(made(&list), [(0, 0, 0, 207)]);
    }

    #[test]
    fn syn_with_payload_starts_flow() {
        let syn = Segment { syn: true, ..segment(1, 50, 10) };
        let list = [(0, segment(1, 0, 100)), (1, syn), (2, segment(1, 61, 10))];
        assert_eq!(made(&list), [(0, 0, 0, 100), (1, 1, 0, 20)]);
    }

    #[test]
    fn flow_per_direction_ignores_bare_acks() {
        let list =
            [(0, segment(1, 0, 0)), (1, segment(2, 0, 10)), (2, segment(3, 0, 20)), (3, segment(2, 10, 5))];
        assert_eq!(made(&list), [(0, 1, 0, 15), (1, 2, 0, 20)]);
    }

    #[test]
    fn time_going_backwards_is_no_pause() {
        let list = [(500, segment(1, 0, 10)), (100, segment(1, 10, 10)), (550, segment(1, 20, 10))];
        assert_eq!(made(&list), [(0, 500, 0, 30)]);
    }
}
