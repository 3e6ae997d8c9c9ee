//! Conservation: what was sent was delivered, dropped, or is in flight. Checked at the end of every run, in every build.
//!
//! The check shares no counter with the path: the path counts packets by their way through it, this counts what the two
//! ends of each flow put in and took out.

use fullpipe_path::{Chain, Counts};

use crate::flow::Flow;
use crate::packet::{Acknowledgement, Segment};

/// What the ends of all flows counted.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    pub(crate) acks_sent: u64,
    pub(crate) acks_arrived: u64,
}

/// Panics when packets or bytes appeared or vanished.
pub(crate) fn check(flows: &[Flow], forward: &Chain<Segment>, back: &Chain<Acknowledgement>, ends: Ends) {
    let mut sent = 0;
    let mut arrived = 0;
    for flow in flows {
        let segments_sent = flow.sender.as_ref().map_or(0, |sender| sender.counters.segments_sent);
        sent += segments_sent + flow.syns_sent;
        arrived += flow.syns_arrived;
        let Some(receiver) = &flow.receiver else { continue };
        arrived += receiver.arrived_segments + flow.merging_segments();
        // Every segment that arrived is delivered, waits for a hole, or was there before.
        let kept = receiver.delivered_segments() + receiver.waiting_segments() + receiver.duplicate_segments;
        assert_eq!(receiver.arrived_segments, kept, "segments vanished in the receiver: {receiver:?}");
        assert!(receiver.delivered_bytes() <= flow.config.stream.bytes(), "more delivered than was written");
    }
    conserved("forward", forward.counts(), sent, arrived);
    conserved("reverse", back.counts(), ends.acks_sent, ends.acks_arrived);
}

fn conserved(direction: &str, counts: Counts, sent: u64, arrived: u64) {
    assert_eq!(
        counts.entered.packets, sent,
        "{direction}: the path saw other packets than were sent: {counts:?}"
    );
    assert_eq!(
        counts.left.packets, arrived,
        "{direction}: other packets arrived than left the path: {counts:?}"
    );
    let (came, gone) =
        (counts.entered + counts.duplicated, counts.left + counts.dropped_total() + counts.inside);
    assert_eq!(came, gone, "{direction}: packets or bytes appeared or vanished on the path: {counts:?}");
}
