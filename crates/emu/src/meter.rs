//! A passive meter: what packets tell of flows whose hosts say nothing.
//!
//! The ferry hands over the headers of each packet as it enters and leaves the path, in batches, and never waits: a batch is
//! dropped, and counted, while [`MOST_WAITING`] others wait. All else happens on the meter's own thread. Times are the path's.
//!
//! * [`packet`]: a glimpse of a packet, and what its headers say. Packets are whatever a program sends: nothing in them is believed.
//! * [`tcp`]: bytes delivered, retransmissions and round-trip times by sequence numbers.
//! * [`quic`]: round-trip times by the spin bit (RFC 9000 section 17.4).
//! * [`flow`]: all connections of one flow.

use fullpipe_record::{FlowSeries, Seen};
use fullpipe_units::{Duration, Time};

use self::flow::{FlowMeter, MOST_CONNECTIONS};
pub(crate) use self::packet::{PacketHeader, Stage, Way};
use crate::batches::{Giving, Taking, batches};
use crate::flow::flow_of_ports;
use crate::frame::Unit;

mod flow;
mod packet;
mod quic;
mod tcp;

/// Glimpses that are handed over at once.
const BATCH: usize = 512;
/// Batches that may wait: 20 MB.
const MOST_WAITING: usize = 256;
/// One part in so many of what was sent may be left out without a word.
const MOST_UNCOUNTED: u64 = 100;

/// Lets the ferry tell a [`Meter`] of packets.
#[derive(Clone, Debug)]
pub(crate) struct Metering {
    batches: Giving<PacketHeader>,
}

/// Measures flows by their packets.
#[derive(Debug)]
pub(crate) struct Meter {
    batches: Taking<PacketHeader>,
    flows: Flows,
}

/// What was measured of one flow.
#[derive(Clone, Debug, PartialEq)]
pub struct Metered {
    /// When its first packet entered the path; `None` if it sent none.
    pub began: Option<Time>,
    /// When the last of its payload was delivered.
    pub last_payload: Time,
    /// Payload that was delivered forward; which: [`Seen::payload`].
    pub delivered_bytes: u64,
    /// Packets with payload that entered the forward path.
    pub segments: u64,
    /// Of these, retransmissions; `None` where nobody can tell.
    pub retransmits: Option<u64>,
    /// Payload that was sent forward and not delivered at the end of the path, of connections that were not reset.
    pub on_its_way: u64,
    /// What else it sent.
    pub uncounted: Uncounted,
    /// The rest.
    pub seen: Seen,
    /// Samples over time.
    pub series: FlowSeries,
}

/// Payload that entered the forward path and is in no other measure of its flow, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncounted {
    /// Of connections behind the first [`MOST_CONNECTIONS`].
    pub beyond: u64,
    /// In fragments of IP packets, with their UDP headers.
    pub fragments: u64,
    /// Of the kinds of payload that are not the flow's.
    pub of_other_kinds: u64,
}

impl Metered {
    /// Why its numbers leave out more than a hundredth of what it sent; empty when they do not.
    pub(crate) fn doubts(&self, label: &str) -> Vec<String> {
        let Uncounted { beyond, fragments, of_other_kinds } = self.uncounted;
        let all = self.seen.sent_bytes + beyond + fragments + of_other_kinds;
        let reasons = [
            (beyond, format!("they are of connections behind the first {MOST_CONNECTIONS}")),
            (
                fragments,
                "they are in fragments of IP packets; let it send datagrams below the MTU".to_owned(),
            ),
            (of_other_kinds, "they are of another protocol than most of its payload".to_owned()),
        ];
        let reported = reasons.into_iter().filter(|(bytes, _)| is_much(*bytes, all));
        reported
            .map(|(bytes, why)| format!("{label}: {bytes} bytes that it sent are not counted: {why}"))
            .collect()
    }
}

/// Whether so many bytes of all are more than may be left out.
fn is_much(bytes: u64, all: u64) -> bool {
    bytes.saturating_mul(MOST_UNCOUNTED) > all
}

/// What all packets told, before its end is known.
#[derive(Debug)]
pub(crate) struct Watched {
    flows: Flows,
    missed: u64,
}

/// What was measured of all flows.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    pub(crate) flows: Vec<Metered>,
    /// Packets that were not looked at, because too many waited.
    pub(crate) missed: u64,
    /// Payload of packets that entered the forward path and have no flow's port.
    pub(crate) stray_bytes: u64,
}

impl Measured {
    /// Why the flows are not all that the path carried; empty when they are.
    pub(crate) fn doubts(&self) -> Vec<String> {
        let mut doubts = Vec::new();
        let sent: u64 = self.flows.iter().map(|flow| flow.seen.sent_bytes).sum();
        if is_much(self.stray_bytes, sent + self.stray_bytes) {
            doubts.push(format!(
                "{} bytes that were sent are of no flow, because they are not from or to the port of one; let each program use \
                 only {{port}}",
                self.stray_bytes
            ));
        }
        if self.missed > 0 {
            doubts.push(format!(
                "{} packets were not looked at, because the programs sent more than the meter could take",
                self.missed
            ));
        }
        doubts
    }
}

/// A meter of `flows` flows, and what tells it. One flow has all packets; of several, each has those from or to its port.
/// `interval` is the time between two samples; `None`: no series.
pub(crate) fn meter(flows: usize, first_port: u16, interval: Option<Duration>) -> (Metering, Meter) {
    let (giving, taking) = batches(MOST_WAITING);
    let flows = Flows {
        each: (0..flows).map(|_| FlowMeter::default()).collect(),
        first_port,
        interval,
        next_sample: interval.map_or(Time::NEVER, |interval| Time::ZERO + interval),
        stray_bytes: 0,
    };
    (Metering { batches: giving }, Meter { batches: taking, flows })
}

impl Metering {
    /// Ends what the meter reads.
    pub(crate) fn end(&self) {
        self.batches.end();
    }
}

impl Meter {
    /// Measures until the path is over.
    pub(crate) fn run(mut self) -> Watched {
        for batch in self.batches.each() {
            batch.iter().for_each(|packet_header| self.flows.see(packet_header));
        }
        Watched { flows: self.flows, missed: self.batches.missed() }
    }
}

impl Watched {
    /// What was measured, when the path ended at `end`.
    pub(crate) fn until(self, end: Time) -> Measured {
        let stray_bytes = self.flows.stray_bytes;
        Measured { flows: self.flows.finish(end), missed: self.missed, stray_bytes }
    }
}

/// All flows, and when they are sampled next.
#[derive(Debug)]
struct Flows {
    each: Vec<FlowMeter>,
    first_port: u16,
    interval: Option<Duration>,
    next_sample: Time,
    stray_bytes: u64,
}

impl Flows {
    /// Takes the samples that are due by `now`.
    fn sample(&mut self, now: Time) {
        while let Some(interval) = self.interval
            && self.next_sample <= now
        {
            let at = self.next_sample;
            self.each.iter_mut().for_each(|flow| flow.sample(at));
            self.next_sample = at + interval;
        }
    }

    /// What was measured until `end`.
    fn finish(mut self, end: Time) -> Vec<Metered> {
        self.sample(end);
        if let Some(interval) = self.interval {
            self.each.iter_mut().for_each(|flow| flow.sample_last(end, interval));
        }
        self.each.into_iter().map(FlowMeter::finish).collect()
    }

    fn see(&mut self, packet_header: &PacketHeader) {
        self.sample(packet_header.at);
        let packet = packet_header.packet();
        let index = match (self.each.len(), packet.ports) {
            (1, _) => Some(0),
            (flows, Some(ports)) => {
                flow_of_ports(ports, self.first_port, flows as u32).map(|flow| flow as usize)
            }
            (_, None) => None,
        };
        if let Some(index) = index {
            self.each[index].see(packet_header, &packet);
        } else if (packet_header.way, packet_header.stage) == (Way::Forward, Stage::Entered) {
            self.stray_bytes += packet.payload();
        }
    }
}

/// The ferry's end of a [`Metering`].
#[derive(Debug)]
pub(crate) struct Tap {
    metering: Metering,
    batch: Vec<PacketHeader>,
}

impl Tap {
    pub(crate) fn new(metering: &Metering) -> Tap {
        Tap { metering: metering.clone(), batch: Vec::with_capacity(BATCH) }
    }

    /// Hands over a packet at `at`, which entered the path `delay` before.
    pub(crate) fn see(&mut self, (way, stage): (Way, Stage), at: Time, delay: Duration, unit: &Unit) {
        self.batch.push(PacketHeader::of(way, stage, at, delay, unit));
        if self.batch.len() >= BATCH {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let packets = self.batch.len() as u64;
        self.metering.batches.hand_over(&mut self.batch, packets, BATCH);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.hand_over();
        self.metering.end();
    }
}

#[cfg(test)]
mod tests;
