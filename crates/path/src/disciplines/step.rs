//! A step: marks every packet that finds more than a threshold waiting, and no other. DCTCP is made for it.
//!
//! Specification: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, and RFC 8257, section 3.1: the queue as it is, not
//! an average of it, and the packet that arrives, not the one that leaves. `time` is a step as of L4S instead (RFC 9332,
//! appendix A.1, with a ramp of no width): the time that a packet has waited when it leaves. Of the thresholds that are set,
//! any marks.
//!
//! What is in transmission does not count as waiting, nor does the packet that arrives.
//!
//! A packet that cannot be marked is dropped only if the queue is full, as by Linux's `red` with `ecn nodrop`. A switch whose
//! marks come from WRED, and Linux's `red` with `ecn` alone, drop it where they would have marked it; connections may then fail
//! to open beside DCTCP's (Judd, "Attaining the Promise and Avoiding the Pitfalls of TCP in the Datacenter", NSDI 2015). With
//! `drop`, this does the same.

use crate::discipline::{Discipline, Dropped, Line, Room, Setup, Waiting};
use crate::packet::Tally;
use crate::settings::{DisciplineInfo, settings};
use fullpipe_units::{Bytes, Duration, Time};

/// The threshold if none is set: the paper's for 1 Gbit/s.
const PACKETS: u64 = 20;

settings! {
    /// Thresholds, of which those above 0 are set.
    packets as "threshold": Count = 0, 0..=1_000_000,
        "marks what arrives while more packets wait; 0 for none, or for 20 if nothing else is set";
    bytes as "bytes": Bytes = 0, 0..=1_000_000_000_000,
        "marks what arrives while more bytes wait; 0 for none";
    time_ns as "time": Time = 0, 0..=10_000_000_000,
        "marks what has waited longer when it leaves; 0 for none";
    drop as "drop": Switch = 0, 0..=1,
        "drops what would be marked but is not ECN-capable";
}

pub(crate) const INFO: DisciplineInfo = DisciplineInfo {
    name: "step",
    summary: "marks every packet while more than a threshold waits",
    source: "DCTCP (SIGCOMM 2010), section 3.1; RFC 8257, section 3.1",
    linux_name: None,
    settings: Settings::INFO,
};

/// A FIFO that marks.
#[derive(Debug)]
pub(crate) struct Step {
    limit: Room,
    /// Thresholds; what is not set is never exceeded.
    packets: u64,
    bytes: Bytes,
    time: Duration,
    drop: bool,
    line: Line,
}

impl Step {
    pub(crate) fn new(settings: &Settings, setup: Setup) -> Step {
        let is_set = settings.packets + settings.bytes + settings.time_ns > 0;
        let threshold = |value: u64| if value == 0 { u64::MAX } else { value };
        Step {
            limit: setup.limit,
            packets: if is_set { threshold(settings.packets) } else { PACKETS },
            bytes: Bytes::new(threshold(settings.bytes)),
            time: Duration::from_nanos(threshold(settings.time_ns)),
            drop: settings.drop == 1,
            line: Line::default(),
        }
    }

    /// Marks a packet, or returns it to be dropped.
    fn signal(&self, mut waiting: Waiting) -> Result<Waiting, Waiting> {
        if waiting.mark() || !self.drop { Ok(waiting) } else { Err(waiting) }
    }
}

impl Discipline for Step {
    fn enqueue(&mut self, _: Time, waiting: Waiting, dropped: &mut Dropped) {
        let backlog = self.line.backlog();
        if !self.limit.takes(backlog, &waiting) {
            return dropped.overflow(waiting);
        }
        let is_above = backlog.packets > self.packets || backlog.bytes > self.bytes;
        match if is_above { self.signal(waiting) } else { Ok(waiting) } {
            Ok(waiting) => self.line.push(waiting),
            Err(waiting) => dropped.early(waiting),
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<Waiting> {
        while let Some(waiting) = self.line.pop() {
            let is_late = now.saturating_since(waiting.arrived()) > self.time;
            match if is_late { self.signal(waiting) } else { Ok(waiting) } {
                Ok(waiting) => return Some(waiting),
                Err(waiting) => dropped.early(waiting),
            }
        }
        None
    }

    fn backlog(&self) -> Tally {
        self.line.backlog()
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Room { bytes, packets: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disciplines::harness::{Link, Outcome, config, ect0, ms, setup};
    use crate::packet::{Cause, Packet};

    /// Takes 1 ms at the rate of [`setup`], 10 Mbit/s.
    const BYTES: u32 = 1_250;

    /// 40 at once: the first is sent, the packet with number `n` finds `n - 1` waiting and waits for n ms.
    fn burst(settings: &[(&str, u64)], packet: Packet) -> Outcome {
        let mut link = Link::new(&config("step", settings), setup());
        link.arrive_steadily(Time::ZERO, 40, Duration::ZERO, packet);
        link.finish()
    }

    /// The numbers of the packets that were marked.
    fn marked(outcome: &Outcome) -> Vec<u32> {
        outcome.sent.iter().filter(|sent| sent.is_marked()).map(|sent| sent.number).collect()
    }

    fn range(from: u32, to: u32) -> Vec<u32> {
        (from..to).collect()
    }

    #[test]
    fn only_packets_above_threshold_are_marked() {
        let outcome = burst(&[("threshold", 30)], ect0(BYTES, 0));
        assert_eq!(marked(&outcome), range(32, 40), "number 32 finds 31");
        assert_eq!(outcome.lost, []);
        assert_eq!(marked(&burst(&[("bytes", 30 * BYTES as u64)], ect0(BYTES, 0))), range(32, 40));
        assert_eq!(marked(&burst(&[("bytes", 30 * BYTES as u64 - 1)], ect0(BYTES, 0))), range(31, 40));
        assert_eq!(marked(&burst(&[("time", 30_000_000)], ect0(BYTES, 0))), range(31, 40), "it waits 31 ms");
    }

    #[test]
    fn any_threshold_that_is_set_marks() {
        let outcome = burst(&[("threshold", 38), ("bytes", 20 * BYTES as u64)], ect0(BYTES, 0));
        assert_eq!(marked(&outcome), range(22, 40));
        let outcome = burst(&[("threshold", 10), ("time", 38_000_000)], ect0(BYTES, 0));
        assert_eq!(marked(&outcome), range(12, 40));
        assert_eq!(marked(&burst(&[], ect0(BYTES, 0))), range(22, 40), "none is set: 20 packets");
    }

    /// An average would go on to mark after the burst has drained, and would not mark a short one at all.
    #[test]
    fn instantaneous_queue_length_decides() {
        let mut link = Link::new(&config("step", &[("threshold", 5)]), setup());
        link.arrive_steadily(Time::ZERO, 8, Duration::ZERO, ect0(BYTES, 0));
        link.arrive(ms(2), ect0(BYTES, 0)); // finds 5
        link.arrive(ms(2), ect0(BYTES, 0)); // finds 6
        assert_eq!(marked(&link.finish()), [7, 9]);
    }

    #[test]
    fn unmarkable_packets_drop_only_when_full() {
        let packet = Packet::new(BYTES, 0);
        assert_eq!(burst(&[("threshold", 1)], packet).sent.len(), 40);
        let limit = Room { bytes: Bytes::MAX, packets: Some(10) };
        let mut link = Link::new(&config("step", &[("threshold", 1)]), Setup { limit, ..setup() });
        link.arrive_steadily(Time::ZERO, 40, Duration::ZERO, packet);
        let lost = link.finish().lost;
        assert!(lost.len() == 29 && lost.iter().all(|lost| lost.cause == Cause::QueueFull));
    }

    #[test]
    fn drop_option_drops_unmarkable_packets_early() {
        let lost = |settings: &[(&str, u64)], packet| {
            let outcome = burst(settings, packet);
            assert!(outcome.lost.iter().all(|lost| lost.cause == Cause::Early));
            outcome.lost.len()
        };
        assert_eq!(lost(&[("threshold", 30), ("drop", 1)], Packet::new(BYTES, 0)), 8);
        assert_eq!(lost(&[("threshold", 30), ("drop", 1)], ect0(BYTES, 0)), 0);
        // Number 31 would leave after 31 ms, and so would the next, since nothing left before it.
        assert_eq!(lost(&[("time", 30_000_000), ("drop", 1)], Packet::new(BYTES, 0)), 9);
    }
}
