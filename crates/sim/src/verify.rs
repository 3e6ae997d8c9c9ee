//! Conservation: what was sent was delivered, dropped, or is in flight. Checked at the end of every run, in every build.
//!
//! Three books are held against each other that share no counter: what the ends of a direction handed over and got
//! ([`Ends`]), what the path counted on its way with what it still holds, and what senders and receivers say they did.

use fullpipe_path::Counts;
use fullpipe_units::Bytes;

use crate::flow::Flow;

/// What the two ends of a direction handed to the path and got from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    sent_packets: u64,
    sent_bytes: u64,
    arrived_packets: u64,
    arrived_bytes: u64,
}

impl Ends {
    #[inline]
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.sent_packets += 1;
        self.sent_bytes += bytes as u64;
    }

    #[inline]
    pub(crate) fn arrived(&mut self, bytes: u32) {
        self.arrived_packets += 1;
        self.arrived_bytes += bytes as u64;
    }
}

/// Panics when packets or bytes appeared or vanished on the path.
pub(crate) fn path(direction: &str, counts: Counts, ends: &Ends) {
    let entered = (counts.entered.packets, counts.entered.bytes);
    assert_eq!(
        entered,
        (ends.sent_packets, Bytes::new(ends.sent_bytes)),
        "{direction}: not what was sent: {counts:?}"
    );
    let left = (counts.left.packets, counts.left.bytes);
    assert_eq!(
        left,
        (ends.arrived_packets, Bytes::new(ends.arrived_bytes)),
        "{direction}: not what came: {counts:?}"
    );
    let (came, gone) =
        (counts.entered + counts.duplicated, counts.left + counts.dropped_total() + counts.inside);
    assert_eq!(came, gone, "{direction}: packets or bytes appeared or vanished on the path: {counts:?}");
}

/// Panics when a sender or receiver says something else than the path saw, or a receiver lost something.
pub(crate) fn flows(flows: &[Flow], forward: &Ends) {
    let (mut sent, mut arrived) = (0, 0);
    for flow in flows {
        sent += flow.syns_sent + flow.sender.as_ref().map_or(0, |sender| sender.counters.segments_sent);
        arrived += flow.syns_arrived;
        let Some(receiver) = &flow.receiver else { continue };
        arrived += receiver.arrived_segments + flow.merging_segments();
        // Every segment that arrived is delivered, waits for a hole, or was there before.
        let kept = receiver.delivered_segments() + receiver.waiting_segments() + receiver.duplicate_segments;
        assert_eq!(receiver.arrived_segments, kept, "segments vanished in the receiver: {receiver:?}");
        assert!(receiver.delivered_bytes() <= flow.config.stream.bytes(), "more delivered than was written");
    }
    assert_eq!(
        (sent, arrived),
        (forward.sent_packets, forward.arrived_packets),
        "the flows count other segments"
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_path::config::{ElementConfig, Schedule};
    use fullpipe_path::{Chain, Packet};
    use fullpipe_units::{Duration, Time};

    fn chain_with_one_packet() -> (Chain<()>, Ends) {
        let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(1)) };
        let mut chain = Chain::new(&[delay], &[], 1).unwrap();
        let mut ends = Ends::default();
        chain.push(Time::ZERO, Packet { bytes: 1500, class: 0 }, ());
        ends.sent(1500);
        (chain, ends)
    }

    #[test]
    fn a_packet_in_flight_is_accounted_for() {
        let (chain, ends) = chain_with_one_packet();
        path("forward", chain.counts(), &ends);
    }

    #[test]
    #[should_panic(expected = "not what was sent")]
    fn a_lost_byte_is_noticed() {
        let (chain, mut ends) = chain_with_one_packet();
        ends.sent_bytes -= 1;
        path("forward", chain.counts(), &ends);
    }

    #[test]
    #[should_panic(expected = "appeared or vanished")]
    fn a_vanished_packet_is_noticed() {
        let (chain, ends) = chain_with_one_packet();
        let mut counts = chain.counts();
        counts.inside = fullpipe_path::Tally::default();
        path("forward", counts, &ends);
    }
}
