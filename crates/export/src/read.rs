//! Real packets at the sender's side, read back as events.
//!
//! What only the sender knows is not in them: a segment that is sent again is told as lost just before, because nothing says when
//! it was taken for lost, or whether it was only a probe. Packets of the sender without data are left out.

use fullpipe_units::Time;

use crate::codepoint::Codepoint;
use crate::event::{Acknowledgement, Event, Log, Loss, SACK_BLOCKS, Sent, Why};
use crate::window::Window;

const IP_BYTES: usize = 20;
const TCP_BYTES: usize = 20;
const TCP: u8 = 6;
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
const ECE: u8 = 0x40;
const CWR: u8 = 0x80;

/// Reads the packets of a run's flows.
#[derive(Debug)]
pub struct Reader {
    /// The port of flow 0; flow `i` has `first_port + i`, at both ends.
    first_port: u16,
    flows: Vec<Stream>,
}

/// What a flow has shown so far.
#[derive(Debug, Default)]
struct Stream {
    /// The initial sequence numbers of sender and receiver.
    near: Option<u32>,
    far: Option<u32>,
    scale: u8,
    syns: u64,
    sent: u64,
    answers: u64,
    acks: u64,
    /// The end of what was sent, what was acknowledged, and of what the receiver has sent.
    end: u64,
    acked: u64,
    far_end: u64,
    window: Window,
}

/// The parts of a TCP segment that matter here.
struct Segment<'a> {
    port: u16,
    sequence: u32,
    acknowledgement: u32,
    flags: u8,
    window: u16,
    options: &'a [u8],
    payload: u32,
    length: u32,
    codepoint: Codepoint,
}

impl<'a> Segment<'a> {
    /// Reads the headers of an IPv4 packet that is `length` bytes long. `None` if it is not TCP over IPv4, or cut short.
    fn parse(ip: &'a [u8], length: u32) -> Option<Segment<'a>> {
        let header = usize::from(ip.first()? & 0x0f) * 4;
        if ip[0] >> 4 != 4 || header < IP_BYTES || *ip.get(9)? != TCP {
            return None;
        }
        let tcp = ip.get(header..).filter(|tcp| tcp.len() >= TCP_BYTES)?;
        let tcp_header = usize::from(tcp[12] >> 4) * 4;
        let word = |at: usize| u32::from_be_bytes([tcp[at], tcp[at + 1], tcp[at + 2], tcp[at + 3]]);
        Some(Segment {
            port: u16::from_be_bytes([tcp[2], tcp[3]]),
            sequence: word(4),
            acknowledgement: word(8),
            flags: tcp[13],
            window: u16::from_be_bytes([tcp[14], tcp[15]]),
            options: tcp.get(TCP_BYTES..tcp_header)?,
            payload: length.checked_sub((header + tcp_header) as u32)?,
            length,
            codepoint: Codepoint(ip[1] & 3),
        })
    }

    fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Kind and value of each option.
    fn options(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        let mut rest = self.options;
        std::iter::from_fn(move || {
            while let [1, after @ ..] = rest {
                rest = after;
            }
            let (&kind, &length) = (rest.first()?, rest.get(1)?);
            let value = rest.get(2..length as usize)?;
            rest = &rest[length as usize..];
            (kind != 0).then_some((kind, value))
        })
    }

    /// TSval and TSecr.
    fn stamps(&self) -> (u32, u32) {
        let words = |value: &[u8]| Some((be32(value, 0)?, be32(value, 4)?));
        self.options().find(|(kind, _)| *kind == 8).and_then(|(_, value)| words(value)).unwrap_or_default()
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// The byte of a stream that a sequence number stands for: the one that is closest to byte `near`.
fn unwrapped(sequence: u32, initial: u32, near: u64) -> u64 {
    let number = sequence.wrapping_sub(initial).wrapping_sub(1);
    near.saturating_add_signed(number.wrapping_sub(near as u32) as i32 as i64)
}

impl Reader {
    /// Of so many flows.
    pub fn new(first_port: u16, flows: usize) -> Reader {
        Reader { first_port, flows: std::iter::repeat_with(Stream::default).take(flows).collect() }
    }

    /// A packet of `length` bytes, of which `ip` begins with all headers, left the sender, or arrived there if `inbound`.
    pub fn packet(&mut self, at: Time, inbound: bool, ip: &[u8], length: u32, log: &mut dyn Log) {
        let Some(segment) = Segment::parse(ip, length) else { return };
        let flow = segment.port.wrapping_sub(self.first_port);
        let Some(stream) = self.flows.get_mut(flow as usize) else { return };
        if inbound {
            stream.arrived(at, flow as u32, &segment, log);
        } else {
            stream.left(at, flow as u32, &segment, log);
        }
    }
}

impl Stream {
    fn left(&mut self, at: Time, flow: u32, segment: &Segment<'_>, log: &mut dyn Log) {
        let (stamp, echo) = segment.stamps();
        let sent = Sent {
            length: segment.length,
            codepoint: segment.codepoint,
            ece: segment.has(ECE),
            cwr: segment.has(CWR),
            stamp,
            echo,
            requests: self.far_end,
            ..Sent::default()
        };
        if segment.has(SYN) {
            self.near = Some(segment.sequence);
            let sent = Sent { number: self.syns, syn: true, ..sent };
            self.syns += 1;
            return log.take(at, flow, &Event::Sent(&sent));
        }
        let Some(near) = self.near.filter(|_| segment.payload > 0) else { return };
        let start = unwrapped(segment.sequence, near, self.end);
        let again = start < self.end;
        if again && let Some(number) = self.window.number(start) {
            let loss = Loss { number, start, payload: segment.payload, trigger: None };
            log.take(at, flow, &Event::Lost(&loss));
        }
        let sent = Sent {
            number: self.sent,
            start,
            payload: segment.payload,
            again: again.then_some(Why::Unknown),
            ..sent
        };
        self.sent += 1;
        self.end = self.end.max(start + segment.payload as u64);
        self.window.sent(at, &sent);
        log.take(at, flow, &Event::Sent(&sent));
    }

    fn arrived(&mut self, at: Time, flow: u32, segment: &Segment<'_>, log: &mut dyn Log) {
        let Some(near) = self.near.filter(|_| segment.has(ACK)) else { return };
        let (stamp, echo) = segment.stamps();
        let ack = Acknowledgement {
            ece: segment.has(ECE),
            codepoint: segment.codepoint,
            payload: segment.payload,
            length: segment.length,
            stamp,
            echo,
            ..Acknowledgement::default()
        };
        if segment.has(SYN) {
            self.far = Some(segment.sequence);
            let scale = segment.options().find(|(kind, _)| *kind == 3);
            self.scale = scale.and_then(|(_, value)| value.first().copied()).unwrap_or(0).min(14);
            let ack = Acknowledgement { number: self.answers, syn: true, edge: segment.window as u64, ..ack };
            self.answers += 1;
            return log.take(at, flow, &Event::Acknowledged(&ack));
        }
        let Some(far) = self.far else { return };
        let acked = unwrapped(segment.acknowledgement, near, self.acked);
        self.acked = self.acked.max(acked);
        let start = unwrapped(segment.sequence, far, self.far_end);
        self.far_end = self.far_end.max(start + segment.payload as u64);
        let mut ack = Acknowledgement {
            number: self.acks,
            ack: acked,
            edge: acked + ((segment.window as u64) << self.scale),
            start,
            ..ack
        };
        self.acks += 1;
        let sack = segment.options().find(|(kind, _)| *kind == 5).map_or(&[][..], |(_, value)| value);
        for (block, pair) in ack.sack.iter_mut().zip(sack.chunks_exact(8)) {
            let edge = |place| be32(pair, place).map_or(0, |edge| unwrapped(edge, near, acked));
            *block = (edge(0), edge(4));
        }
        ack.blocks = (sack.len() / 8).min(SACK_BLOCKS) as u8;
        // RFC 2883 section 4: below what is acknowledged, or within the block that follows.
        let [(start, end), (next_start, next_end), ..] = ack.sack;
        let within = ack.blocks > 1 && next_start <= start && end <= next_end;
        ack.duplicate = ack.blocks > 0 && (start < acked || within);
        self.window.acknowledged(at, &ack);
        log.take(at, flow, &Event::Acknowledged(&ack));
    }
}
