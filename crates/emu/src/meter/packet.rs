//! A glimpse of a packet: when it was where, and its headers.
//!
//! Header layout: RFC 791, RFC 9293, RFC 2018 (SACK), RFC 768. Anything but whole TCP segments and UDP datagrams over IPv4 is a
//! packet without payload: IPv6, headers that are cut short or lie about their length. Of a fragment, only its length is known.

use fullpipe_units::{Duration, Time};

use crate::flow::{TCP, UDP};
use crate::frame::{MAX_HEADER_BYTES, Unit};

const UDP_HEADER: usize = 8;
/// TCP options: end of the list, no operation, SACK.
const END: u8 = 0;
const NOP: u8 = 1;
const SACK: u8 = 5;

/// A direction of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Back,
}

/// Where a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// It enters the path.
    Entered,
    /// It leaves the path.
    Left,
    /// It is on the path when the run ends.
    Remained,
}

/// A packet at one place.
#[derive(Clone, Debug)]
pub(crate) struct PacketHeader {
    /// When, by the path's time.
    pub(crate) at: Time,
    /// How long ago it entered the path.
    pub(crate) delay: Duration,
    pub(crate) way: Way,
    pub(crate) stage: Stage,
    /// Bytes of the IP packet.
    bytes: u32,
    /// Of a segment of a frame of many, its sequence number and flags: the headers are those of the frame.
    segment: Option<(u32, u8)>,
    length: u8,
    /// The headers, and what of the payload is in reach.
    head: [u8; MAX_HEADER_BYTES],
}

/// What the headers of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    /// Source and destination port.
    pub(crate) ports: Option<(u16, u16)>,
    pub(crate) kind: Kind<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind<'a> {
    Tcp(Segment),
    Udp {
        /// Bytes of payload.
        payload: u32,
        /// The first of them.
        start: &'a [u8],
    },
    /// Of a datagram or segment.
    Fragment {
        /// Bytes behind its IP header.
        body: u32,
    },
    Other,
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) sequence: u32,
    pub(crate) flags: u8,
    /// The acknowledgement number, if it has one.
    pub(crate) ack: Option<u32>,
    /// Bytes of payload.
    pub(crate) payload: u32,
    /// The first block that it selectively acknowledges, which is the newest (RFC 2018 section 4).
    pub(crate) sacked: Option<(u32, u32)>,
}

impl Segment {
    const ACK: u8 = 0x10;
}

impl PacketHeader {
    pub(crate) fn of(way: Way, stage: Stage, at: Time, delay: Duration, unit: &Unit) -> PacketHeader {
        let start = unit.start_of_frame();
        let length = start.len().min(MAX_HEADER_BYTES);
        let mut head = [0; MAX_HEADER_BYTES];
        head[..length].copy_from_slice(&start[..length]);
        let segment = (!unit.is_opaque()).then(|| (unit.sequence(), unit.flags()));
        PacketHeader { at, delay, way, stage, bytes: unit.ip_bytes(), segment, length: length as u8, head }
    }

    /// What its headers say.
    pub(crate) fn packet(&self) -> Packet<'_> {
        let head = &self.head[..usize::from(self.length)];
        let mut packet = parse(head, self.bytes, self.segment.is_some()).unwrap_or(Packet::OTHER);
        if let (Kind::Tcp(segment), Some((sequence, flags))) = (&mut packet.kind, self.segment) {
            (segment.sequence, segment.flags) = (sequence, flags);
        }
        packet
    }
}

impl Packet<'_> {
    const OTHER: Packet<'static> = Packet { ports: None, kind: Kind::Other };

    /// Bytes of payload, as far as it is known.
    pub(crate) fn payload(&self) -> u64 {
        match self.kind {
            Kind::Tcp(Segment { payload, .. }) | Kind::Udp { payload, .. } => u64::from(payload),
            Kind::Fragment { body } => u64::from(body),
            Kind::Other => 0,
        }
    }
}

/// Reads the headers of an IP packet of `bytes` bytes; `split`: it is one of several of a frame, whose headers these are.
fn parse(head: &[u8], bytes: u32, split: bool) -> Option<Packet<'_>> {
    let first = *head.first()?;
    let ip_header = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || ip_header < 20 || head.len() < ip_header {
        return None;
    }
    let message = u32::from(be16(head, 2)?);
    // What comes behind the packet is padding; a packet that says it is longer lies.
    let length = if split { bytes } else { message };
    let body = length.checked_sub(ip_header as u32).filter(|_| length <= bytes)?;
    // More fragments follow, or this is not the first.
    if be16(head, 6)? & 0x3fff != 0 {
        return Some(Packet { ports: None, kind: Kind::Fragment { body } });
    }
    let rest = &head[ip_header..];
    let rest = &rest[..rest.len().min(body as usize)];
    match head[9] {
        TCP => {
            let header = usize::from(*rest.get(12)? >> 4) * 4;
            if header < 20 || rest.len() < header {
                return None;
            }
            let ports = Some((be16(rest, 0)?, be16(rest, 2)?));
            let flags = rest[13];
            let segment = Segment {
                sequence: be32(rest, 4)?,
                flags,
                ack: if flags & Segment::ACK != 0 { be32(rest, 8) } else { None },
                payload: body - header as u32,
                sacked: first_sacked(&rest[20..header]),
            };
            Some(Packet { ports, kind: Kind::Tcp(segment) })
        }
        UDP => {
            let payload = u32::from(be16(rest, 4)?).checked_sub(UDP_HEADER as u32)?;
            if rest.len() < UDP_HEADER || payload > body - UDP_HEADER as u32 {
                return None;
            }
            let ports = Some((be16(rest, 0)?, be16(rest, 2)?));
            let start = &rest[UDP_HEADER..];
            let start = &start[..start.len().min(payload as usize)];
            Some(Packet { ports, kind: Kind::Udp { payload, start } })
        }
        _ => None,
    }
}

/// The first SACK block in TCP's options.
fn first_sacked(mut options: &[u8]) -> Option<(u32, u32)> {
    loop {
        match *options.first()? {
            END => return None,
            NOP => options = &options[1..],
            kind => {
                let length = usize::from(*options.get(1)?);
                let option = options.get(..length).filter(|_| length >= 2)?;
                if kind == SACK {
                    return Some((be32(option, 2)?, be32(option, 6)?));
                }
                options = &options[length..];
            }
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|two| u16::from_be_bytes([two[0], two[1]]))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
}

#[cfg(test)]
pub(crate) mod testing {
    //! Packets to test with.

    use super::*;

    /// A TCP segment from port 1 to port 2.
    pub(crate) fn tcp(segment: Segment) -> Vec<u8> {
        let mut options = Vec::new();
        if let Some((left, right)) = segment.sacked {
            options.extend([NOP, NOP, SACK, 10]);
            options.extend([left, right].iter().flat_map(|edge| edge.to_be_bytes()));
        }
        let header = 20 + options.len();
        let mut rest = vec![0, 1, 0, 2];
        rest.extend(segment.sequence.to_be_bytes());
        rest.extend(segment.ack.unwrap_or(0).to_be_bytes());
        let ack = if segment.ack.is_some() { Segment::ACK } else { 0 };
        rest.extend([(header as u8 / 4) << 4, segment.flags | ack, 0, 0, 0, 0, 0, 0]);
        rest.extend(options);
        rest.extend(vec![0; segment.payload as usize]);
        ip(TCP, &rest)
    }

    /// A UDP datagram from port 1 to port 2.
    pub(crate) fn udp(payload: &[u8]) -> Vec<u8> {
        let mut rest = vec![0, 1, 0, 2];
        rest.extend((8 + payload.len() as u16).to_be_bytes());
        rest.extend([0, 0]);
        rest.extend(payload);
        ip(UDP, &rest)
    }

    pub(crate) fn ip(protocol: u8, rest: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0, 100, 64, 0, 1, 100, 64, 0, 2];
        ip.extend(rest);
        let length = (ip.len() as u16).to_be_bytes();
        ip[2..4].copy_from_slice(&length);
        ip
    }

    /// A packet at a place.
    pub(crate) fn packet_header(
        ip: &[u8],
        way: Way,
        stage: Stage,
        at: Time,
        delay: Duration,
    ) -> PacketHeader {
        let length = ip.len().min(MAX_HEADER_BYTES);
        let mut head = [0; MAX_HEADER_BYTES];
        head[..length].copy_from_slice(&ip[..length]);
        let bytes = ip.len() as u32;
        PacketHeader { at, delay, way, stage, bytes, segment: None, length: length as u8, head }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{ip, tcp, udp};
    use super::*;

    fn read(packet: &[u8]) -> Option<Packet<'_>> {
        parse(&packet[..packet.len().min(MAX_HEADER_BYTES)], packet.len() as u32, false)
    }

    #[test]
    fn segment_is_read_with_options() {
        let segment = Segment {
            sequence: 7,
            flags: Segment::ACK,
            ack: Some(9),
            payload: 1000,
            sacked: Some((100, 200)),
        };
        let packet = tcp(segment);
        assert_eq!(read(&packet).unwrap(), Packet { ports: Some((1, 2)), kind: Kind::Tcp(segment) });
    }

    #[test]
    fn datagram_is_read_with_first_bytes() {
        let packet = udp(&[7; 300]);
        let Kind::Udp { payload, start } = read(&packet).unwrap().kind else { panic!("it is UDP") };
        assert_eq!((payload, start.len(), start[0]), (300, MAX_HEADER_BYTES - 28, 7));
    }

    #[test]
    fn inconsistent_length_yields_nothing() {
        for (at, value) in [(2, 0xff), (3, 3), (24, 0xff)] {
            let mut packet = udp(&[0; 20]);
            packet[at] = value;
            assert_eq!(read(&packet), None, "byte {at}");
        }
        let mut packet = tcp(Segment::default());
        packet[32] = 0x10;
        assert_eq!(read(&packet), None);
        packet[32] = 0xf0;
        assert_eq!(read(&packet), None);
        // An IP header of more words than there are, and one of too few.
        for first in [0x4f, 0x41, 0x60, 0x00] {
            let mut packet = udp(&[0; 2]);
            packet[0] = first;
            assert_eq!(read(&packet), None, "{first:x}");
        }
    }

    #[test]
    fn fragments_have_lengths_other_protocols_nothing() {
        let mut packet = udp(&[0; 20]);
        let fragment = Some(Packet { ports: None, kind: Kind::Fragment { body: 28 } });
        packet[6] = 0x20;
        assert_eq!(read(&packet), fragment);
        packet[6..8].copy_from_slice(&[0, 5]);
        assert_eq!(read(&packet), fragment);
        assert_eq!(read(&ip(1, &[8, 0, 0, 0])), None);
        assert_eq!(read(&[0x60; 80]), None);
    }

    #[test]
    fn truncated_or_mutated_packets_are_harmless() {
        let whole = [
            tcp(Segment { sacked: Some((1, 2)), ack: Some(3), payload: 40, ..Segment::default() }),
            udp(&[0xc0; 90]),
        ];
        for packet in whole {
            for length in 0..packet.len() {
                let _ = parse(&packet[..length], packet.len() as u32, false);
                let _ = parse(&packet[..length], length as u32, true);
            }
            for at in 0..packet.len().min(MAX_HEADER_BYTES) {
                for value in 0..=255 {
                    let mut changed = packet.clone();
                    changed[at] = value;
                    let _ = read(&changed);
                    let _ = parse(&changed, packet.len() as u32, true);
                }
            }
        }
    }

    #[test]
    fn options_end_where_they_are_wrong() {
        for options in
            [&[SACK][..], &[SACK, 0], &[SACK, 1], &[SACK, 9, 0], &[8, 10, 0], &[NOP, NOP], &[END, SACK]]
        {
            assert_eq!(first_sacked(options), None, "{options:?}");
        }
        // A timestamp before it.
        let mut options = vec![NOP, NOP, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0, NOP, NOP, SACK, 10];
        options.extend([0, 0, 0, 5, 0, 0, 0, 6]);
        assert_eq!(first_sacked(&options), Some((5, 6)));
    }
}
