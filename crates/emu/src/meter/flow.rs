//! One flow: all its connections, its counts, and its samples over time.

use std::collections::HashMap;

use fullpipe_record::{Delay, FlowSeries, Payload, RttSource, Seen, SeenSample};
use fullpipe_units::{Duration, Time};

use super::packet::{Kind, Packet, PacketHeader, Segment, Stage, Way};
use super::quic::{self, Spin};
use super::tcp::{Sent, Stream};
use super::{Metered, Uncounted};
use crate::frame::flag;
use crate::histogram::Histogram;

/// Connections of a flow that are told apart. Packets of further ones are counted, and their payload is [`Uncounted`].
pub(super) const MOST_CONNECTIONS: usize = 4096;
/// RFC 6298 section 2: the smoothed round-trip time moves by one part in this many.
const SMOOTHING: u64 = 8;

/// Kinds of payload.
const KINDS: [Payload; 3] = [Payload::Tcp, Payload::QuicUdp, Payload::Udp];
/// Their numbers.
const TCP: usize = 0;
const QUIC: usize = 1;
const OTHER_UDP: usize = 2;

/// What is known of a flow so far.
#[derive(Debug, Default)]
pub(super) struct FlowMeter {
    /// By whether it is TCP, and the ports at the near and at the far end.
    connections: HashMap<(bool, u16, u16), Connection>,
    /// Forward and back.
    ways: [Passed; 2],
    /// In the order of [`KINDS`].
    kinds: [Amounts; 3],
    /// Of each kind.
    rtts: [Rtt; 3],
    began: Option<Time>,
    /// Payload of connections that are too many, and in fragments.
    beyond_bytes: u64,
    fragment_bytes: u64,
    samples: Vec<Sampled>,
}

#[derive(Debug)]
enum Connection {
    /// Forward and back.
    Tcp(Box<[Stream; 2]>),
    Udp {
        is_quic: bool,
        spin: Spin,
    },
}

/// Packets of one direction.
#[derive(Debug, Default)]
struct Passed {
    entered: u64,
    left: u64,
    remained: u64,
    delays: Histogram,
    least: Option<Duration>,
    most: Duration,
    sum_ns: u128,
}

/// Payload of one kind.
#[derive(Clone, Copy, Debug, Default)]
struct Amounts {
    segments: u64,
    retransmits: u64,
    sent_bytes: u64,
    delivered_bytes: u64,
    returned_bytes: u64,
    /// In datagrams on the forward path at its end.
    remained_bytes: u64,
    last: Time,
}

#[derive(Clone, Copy, Debug, Default)]
struct Rtt {
    samples: u64,
    /// Further ones that are shorter than the path.
    impossible: u64,
    smoothed_ns: Option<u64>,
    least_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Sampled {
    at: Time,
    rtts: [Rtt; 3],
    delivered_bytes: [u64; 3],
    retransmits: u64,
}

impl FlowMeter {
    /// Takes note of one of its packets.
    pub(super) fn see(&mut self, packet_header: &PacketHeader, packet: &Packet<'_>) {
        let PacketHeader { at, way, stage, .. } = *packet_header;
        self.began.get_or_insert(at);
        self.ways[way as usize].see(stage, packet_header.delay);
        let enters = (way, stage) == (Way::Forward, Stage::Entered);
        if enters && matches!(packet.kind, Kind::Fragment { .. }) {
            self.fragment_bytes += packet.payload();
        }
        let Some((from, to)) = packet.ports else { return };
        let (near, far) = if way == Way::Forward { (from, to) } else { (to, from) };
        match packet.kind {
            Kind::Tcp(segment) => {
                let new = || Connection::Tcp(Box::default());
                let Some(Connection::Tcp(streams)) =
                    connection(&mut self.connections, (true, near, far), new)
                else {
                    self.beyond_bytes += if enters { packet.payload() } else { 0 };
                    return;
                };
                let rtt = see_segment(streams, &mut self.kinds[TCP], &segment, packet_header);
                rtt.into_iter().for_each(|rtt| self.rtts[TCP].take(rtt));
            }
            Kind::Udp { payload, start } => {
                let new = || Connection::Udp { is_quic: quic::begins(payload, start), spin: Spin::default() };
                let Some(Connection::Udp { is_quic, spin }) =
                    connection(&mut self.connections, (false, near, far), new)
                else {
                    self.beyond_bytes += if enters { packet.payload() } else { 0 };
                    return;
                };
                let amounts = &mut self.kinds[if *is_quic { QUIC } else { OTHER_UDP }];
                amounts.see_datagram(payload, packet_header);
                if *is_quic && enters {
                    let round = spin.on_sent(start, at);
                    let floor = self.ways.iter().map(|passed| passed.least.unwrap_or(Duration::ZERO));
                    let floor = floor.fold(Duration::ZERO, |sum, least| sum + least);
                    match round {
                        Some(round) if round < floor => self.rtts[QUIC].impossible += 1,
                        Some(round) => self.rtts[QUIC].take(round),
                        None => {}
                    }
                }
            }
            Kind::Fragment { .. } | Kind::Other => {}
        }
    }

    /// Takes a sample of a flow that has begun.
    pub(super) fn sample(&mut self, at: Time) {
        if self.began.is_none() {
            return;
        }
        let delivered_bytes = self.kinds.map(|amounts| amounts.delivered_bytes);
        self.samples.push(Sampled {
            at,
            rtts: self.rtts,
            delivered_bytes,
            retransmits: self.kinds[TCP].retransmits,
        });
    }

    /// Takes the last sample, so that all that was delivered by `end` is in one. It replaces the sample before it if that is less
    /// than half an interval old: one packet in a very short time would look like a very high rate.
    pub(super) fn sample_last(&mut self, end: Time, interval: Duration) {
        let after = self.samples.last().map(|last| end.saturating_since(last.at));
        match after {
            Some(Duration::ZERO) => return,
            Some(after) if after.as_nanos() < interval.as_nanos() / 2 => drop(self.samples.pop()),
            _ => {}
        }
        self.sample(end);
    }

    /// What was measured.
    pub(super) fn finish(self) -> Metered {
        let moved = |amounts: &Amounts| amounts.sent_bytes + amounts.delivered_bytes + amounts.returned_bytes;
        // Of equals, the first: a flow without payload is TCP if it is anything.
        let main = (0..KINDS.len()).rev().max_by_key(|kind| moved(&self.kinds[*kind])).unwrap_or_default();
        let (kind, amounts, rtt) = (KINDS[main], self.kinds[main], self.rtts[main]);
        let rtt_source = match kind {
            Payload::Tcp if rtt.samples > 0 => RttSource::SequenceNumbers,
            Payload::QuicUdp if quic::spins(rtt.samples, rtt.impossible) => RttSource::SpinBit,
            _ => RttSource::None,
        };
        let knows_rtt = rtt_source != RttSource::None;
        let retransmits = |count| (kind == Payload::Tcp).then_some(count);
        let mut series = FlowSeries::default();
        for sampled in &self.samples {
            series.push_seen(SeenSample {
                time_ns: sampled.at.as_nanos(),
                srtt_ns: sampled.rtts[main].smoothed_ns.filter(|_| knows_rtt),
                min_rtt_ns: sampled.rtts[main].least_ns.filter(|_| knows_rtt),
                delivered_bytes: sampled.delivered_bytes[main],
                retransmits: retransmits(sampled.retransmits),
            });
        }
        let unacknowledged = self.connections.values().map(|connection| match connection {
            Connection::Tcp(streams) => streams[Way::Forward as usize].on_its_way(),
            Connection::Udp { .. } => 0,
        });
        let remained = self.kinds.iter().map(|amounts| amounts.remained_bytes);
        let [forward, back] = &self.ways;
        Metered {
            began: self.began,
            last_payload: amounts.last,
            delivered_bytes: amounts.delivered_bytes,
            segments: amounts.segments,
            retransmits: retransmits(amounts.retransmits),
            uncounted: Uncounted {
                beyond: self.beyond_bytes,
                fragments: self.fragment_bytes,
                of_other_kinds: self.kinds.iter().map(|kind| kind.sent_bytes).sum::<u64>()
                    - amounts.sent_bytes,
            },
            on_its_way: unacknowledged.chain(remained).sum(),
            seen: Seen {
                payload: kind,
                rtt_source,
                rtt_samples: if knows_rtt { rtt.samples } else { 0 },
                connections: self.connections.len() as u64,
                packets: forward.entered,
                lost_packets: forward.lost(),
                returned_packets: back.entered,
                returned_lost_packets: back.lost(),
                sent_bytes: amounts.sent_bytes,
                returned_bytes: amounts.returned_bytes,
                delay: forward.delay(),
                returned_delay: back.delay(),
            },
            series,
        }
    }
}

/// The connection of that key, new if need be; `None` if there are too many.
fn connection(
    connections: &mut HashMap<(bool, u16, u16), Connection>,
    key: (bool, u16, u16),
    new: impl FnOnce() -> Connection,
) -> Option<&mut Connection> {
    if connections.len() >= MOST_CONNECTIONS && !connections.contains_key(&key) {
        return None;
    }
    Some(connections.entry(key).or_insert_with(new))
}

/// A TCP segment at one place; returns the round-trip time of the forward stream, if it tells one.
fn see_segment(
    [forward, back]: &mut [Stream; 2],
    amounts: &mut Amounts,
    segment: &Segment,
    packet_header: &PacketHeader,
) -> Option<Duration> {
    let PacketHeader { at, way, stage, .. } = *packet_header;
    if segment.flags & flag::RST != 0 {
        forward.on_reset();
        back.on_reset();
    }
    match (way, stage) {
        (Way::Forward, Stage::Entered) => {
            let sent = forward.on_sent(segment, at);
            if sent != Sent::Nothing {
                amounts.segments += 1;
                amounts.sent_bytes += u64::from(segment.payload);
                amounts.retransmits += u64::from(sent == Sent::Again);
            }
            // The near host is the receiver of the other stream.
            amounts.returned_bytes += segment.ack.map_or(0, |ack| back.on_acknowledged(ack));
        }
        (Way::Back, Stage::Entered) => {
            back.on_sent(segment, at);
            let more = segment.ack.map_or(0, |ack| forward.on_acknowledged(ack));
            if more > 0 {
                amounts.delivered_bytes += more;
                amounts.last = at;
            }
        }
        (Way::Back, Stage::Left) => return forward.on_ack_arrived(segment, at),
        _ => {}
    }
    None
}

impl Amounts {
    /// A datagram at one place.
    fn see_datagram(&mut self, payload: u32, packet_header: &PacketHeader) {
        let bytes = u64::from(payload);
        match (packet_header.way, packet_header.stage) {
            (Way::Forward, Stage::Entered) => {
                self.segments += 1;
                self.sent_bytes += bytes;
            }
            (Way::Forward, Stage::Left) => {
                self.delivered_bytes += bytes;
                self.last = packet_header.at;
            }
            (Way::Forward, Stage::Remained) => self.remained_bytes += bytes,
            (Way::Back, Stage::Left) => self.returned_bytes += bytes,
            _ => {}
        }
    }
}

impl Passed {
    fn see(&mut self, stage: Stage, delay: Duration) {
        match stage {
            Stage::Entered => self.entered += 1,
            Stage::Left => {
                self.left += 1;
                self.delays.record(delay);
                self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
                self.most = self.most.max(delay);
                self.sum_ns += u128::from(delay.as_nanos());
            }
            Stage::Remained => self.remained += 1,
        }
    }

    /// Packets that the path dropped. A path that duplicates packets may have more come out than went in.
    fn lost(&self) -> u64 {
        self.entered.saturating_sub(self.left + self.remained)
    }

    fn delay(&self) -> Option<Delay> {
        Some(Delay {
            min_ns: self.least?.as_nanos(),
            mean_ns: (self.sum_ns / u128::from(self.left.max(1))) as u64,
            p50_ns: self.delays.quantile(500),
            p95_ns: self.delays.quantile(950),
            max_ns: self.most.as_nanos(),
        })
    }
}

impl Rtt {
    fn take(&mut self, rtt: Duration) {
        let rtt = rtt.as_nanos();
        self.samples += 1;
        self.least_ns = Some(self.least_ns.map_or(rtt, |least| least.min(rtt)));
        self.smoothed_ns = Some(match self.smoothed_ns {
            None => rtt,
            Some(before) => before - before / SMOOTHING + rtt / SMOOTHING,
        });
    }
}
