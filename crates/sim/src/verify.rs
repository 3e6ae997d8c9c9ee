//! Conservation: what was sent was delivered, dropped, or is in flight. Checked at the end of every run, in every build.
//!
//! It compares two accounts that share no counter: the packets and bytes that the path counted, with those still inside,
//! and the numbers that senders and receivers report as sent and received ([`Books`]).

use fullpipe_path::Counts;

use crate::flow::Flow;

/// Packets that the ends of a direction report as handed to the path and received from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ends {
    pub(crate) sent: u64,
    pub(crate) arrived: u64,
}

/// The accounts of all flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Books {
    pub(crate) forward: Ends,
    pub(crate) reverse: Ends,
}

impl Books {
    /// Adds up the flows' books. Panics when a receiver lost something.
    pub(crate) fn of(flows: &[Flow]) -> Books {
        let mut books = Books::default();
        for flow in flows {
            let segments = flow.sender.as_ref().map_or(0, |sender| sender.counters.segments_sent);
            let Books { forward, reverse } = &mut books;
            let (data, acks) = if flow.is_reverse() { (reverse, forward) } else { (forward, reverse) };
            data.sent += flow.syns_sent + segments;
            if let Some(media) = flow.media() {
                data.sent += media.datagrams_sent();
                data.arrived += media.arrived;
                assert!(
                    media.delivered_bytes <= media.written_bytes(),
                    "more delivered than was sent: {media:?}"
                );
            }
            data.arrived += flow.syns_arrived;
            acks.sent += flow.acks_sent;
            acks.arrived += flow.acks_arrived;
            let Some(receiver) = &flow.receiver else { continue };
            data.arrived += receiver.arrived_segments + flow.merging_segments();
            // Every segment that arrived is delivered, waits for a hole, had arrived before, or was too old.
            let kept = receiver.delivered_segments() - receiver.hidden_segments as u64
                + receiver.waiting_segments()
                + receiver.duplicate_segments
                + receiver.discarded_segments;
            assert_eq!(receiver.arrived_segments, kept, "segments vanished in the receiver: {receiver:?}");
            // Nothing is marked without ECN, and nothing reduced without a mark; by more than the marks it may be, because a
            // CWR that is lost lets the receiver echo on.
            let marked = receiver.marked_segments;
            assert!(
                marked <= if receiver.uses_ecn() { receiver.arrived_segments } else { 0 },
                "marks from nowhere"
            );
            let reductions = flow.sender.as_ref().map_or(0, |sender| sender.mark_reductions);
            assert!(reductions == 0 || marked > 0, "{reductions} reductions without a mark");
            let written = flow.sender.as_ref().map_or(0, |sender| sender.stream().bytes());
            assert!(receiver.delivered_bytes() <= written, "more delivered than was written");
        }
        books
    }
}

/// Panics when packets or bytes appeared or vanished on the path.
pub(crate) fn path(direction: &str, counts: Counts, ends: Ends) {
    assert_eq!(counts.entered.packets, ends.sent, "{direction}: not what was sent: {counts:?}");
    assert_eq!(counts.left.packets, ends.arrived, "{direction}: not what came: {counts:?}");
    let (came, gone) =
        (counts.entered + counts.duplicated, counts.left + counts.dropped_total() + counts.inside);
    assert_eq!(came, gone, "{direction}: packets or bytes appeared or vanished on the path: {counts:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_path::config::{ElementConfig, Schedule};
    use fullpipe_path::{Chain, Packet};
    use fullpipe_units::{Bytes, Duration, Time};

    fn chain_with_one_packet() -> (Chain<()>, Ends) {
        let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(1)) };
        let mut chain = Chain::new(&[delay], &[], 1).unwrap();
        chain.push(Time::ZERO, Packet::new(1500, 0), ());
        (chain, Ends { sent: 1, arrived: 0 })
    }

    #[test]
    fn in_flight_packet_is_accounted_for() {
        let (chain, ends) = chain_with_one_packet();
        path("forward", chain.counts(), ends);
    }

    #[test]
    #[should_panic(expected = "not what was sent")]
    fn unsent_packet_is_detected() {
        let (chain, mut ends) = chain_with_one_packet();
        ends.sent -= 1;
        path("forward", chain.counts(), ends);
    }

    #[test]
    #[should_panic(expected = "appeared or vanished")]
    fn a_lost_byte_is_noticed() {
        let (chain, ends) = chain_with_one_packet();
        let mut counts = chain.counts();
        counts.entered.bytes += Bytes::new(1);
        path("forward", counts, ends);
    }

    #[test]
    #[should_panic(expected = "appeared or vanished")]
    fn a_vanished_packet_is_noticed() {
        let (chain, ends) = chain_with_one_packet();
        let mut counts = chain.counts();
        counts.inside = fullpipe_path::Tally::default();
        path("forward", counts, ends);
    }
}
