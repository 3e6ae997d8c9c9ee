//! What comes out of a TUN device: a virtio header and an IP packet, which may be a GSO frame of many segments.
//!
//! [`Frame::parse`] reads one; [`units`] splits it into the packets that would be on a wire. A [`Unit`] refers to its
//! frame and copies nothing. [`crate::merge`] puts units that leave together back into one frame.
//!
//! Anything that is not plain TCP over IPv4 (other protocols, IPv6, fragments, malformed or hostile frames) is one
//! unit that passes unchanged but for its ECN codepoint. Header layout: virtio 1.2 section 5.1.6, RFC 791, RFC 8200,
//! RFC 9293.
//!
//! The path may change the ECN codepoint of any IP packet (RFC 3168 section 5): [`Unit::ecn`] is what it says, and what is
//! written says the same. IPv4's header checksum follows incrementally (RFC 1624) where the rest of the header stays.

use std::io::IoSlice;
use std::rc::Rc;

use fullpipe_path::Ecn;
use fullpipe_units::Time;

use crate::flow::{TCP, UDP};

/// Size of the virtio header in front of every frame (the legacy form, without `num_buffers`).
pub(crate) const VNET_BYTES: usize = 10;
/// The largest frame: an IPv4 packet.
pub(crate) const MAX_FRAME_BYTES: usize = 65_535;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM: the checksum field holds only the sum of the pseudo header.
const NEEDS_CHECKSUM: u8 = 1;
/// VIRTIO_NET_HDR_GSO_NONE.
const GSO_NONE: u8 = 0;
/// VIRTIO_NET_HDR_GSO_TCPV4.
const GSO_TCPV4: u8 = 1;
/// VIRTIO_NET_HDR_GSO_ECN: CWR is set, on the first segment only.
const GSO_ECN: u8 = 0x80;

/// Offset of the checksum in a TCP header.
const TCP_CHECKSUM: usize = 16;
/// The largest IPv4 and TCP header together.
pub(crate) const MAX_HEADER_BYTES: usize = 120;

/// TCP flags.
pub(crate) mod flag {
    pub(crate) const FIN: u8 = 0x01;
    pub(crate) const SYN: u8 = 0x02;
    pub(crate) const RST: u8 = 0x04;
    pub(crate) const PSH: u8 = 0x08;
    pub(crate) const URG: u8 = 0x20;
    pub(crate) const CWR: u8 = 0x80;
}

/// One frame as read from a TUN device.
#[derive(Debug)]
pub(crate) struct Frame {
    /// The virtio header and the packet.
    bytes: Box<[u8]>,
    /// Set if it can be split and merged.
    tcp: Option<TcpFrame>,
    /// Source and destination port of TCP and UDP.
    pub(crate) ports: Option<(u16, u16)>,
    /// Where its ECN codepoint is.
    codepoint: Codepoint,
    /// When it entered the path, by the path's time.
    pub(crate) entered: Time,
}

/// Where the ECN codepoint of an IP packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Codepoint {
    /// It is no IP packet, or its header is cut short.
    Nowhere,
    /// In the second byte, behind a checksum's back.
    V4,
    /// In the second byte, four bits up.
    V6,
}

impl Codepoint {
    /// Size of an IPv6 header.
    const V6_BYTES: usize = 40;
    /// Offset and size of the part of a header in which it and the checksum over it are.
    const CHECKSUM: usize = 10;
    const V4_PART: usize = 12;
    const V6_PART: usize = 2;

    fn of(ip: &[u8], ipv4: Option<&Ipv4>) -> Codepoint {
        match (ipv4, ip[0] >> 4) {
            (Some(_), _) => Codepoint::V4,
            (None, 6) if ip.len() >= Codepoint::V6_BYTES => Codepoint::V6,
            _ => Codepoint::Nowhere,
        }
    }

    fn read(self, ip: &[u8]) -> Ecn {
        match self {
            Codepoint::Nowhere => Ecn::NotEct,
            Codepoint::V4 => Ecn::from_bits(ip[1]),
            Codepoint::V6 => Ecn::from_bits(ip[1] >> 4),
        }
    }

    /// The start of the header with another codepoint, and how long that start is.
    fn changed(self, ip: &[u8], ecn: Ecn) -> ([u8; Codepoint::V4_PART], usize) {
        let mut part = [0; Codepoint::V4_PART];
        match self {
            Codepoint::Nowhere => (part, 0),
            Codepoint::V4 => {
                part.copy_from_slice(&ip[..Codepoint::V4_PART]);
                let before = be16(&part, 0);
                part[1] = with_bits(part[1], ecn, 0);
                let checksum = updated(be16(&part, Codepoint::CHECKSUM), before, be16(&part, 0));
                put16(&mut part, Codepoint::CHECKSUM, checksum);
                (part, Codepoint::V4_PART)
            }
            Codepoint::V6 => {
                part[..Codepoint::V6_PART].copy_from_slice(&ip[..Codepoint::V6_PART]);
                part[1] = with_bits(part[1], ecn, 4);
                (part, Codepoint::V6_PART)
            }
        }
    }
}

/// A byte with the codepoint in the two bits from `shift` up.
fn with_bits(byte: u8, ecn: Ecn, shift: u8) -> u8 {
    byte & !(0b11 << shift) | (ecn as u8) << shift
}

/// A checksum after one of the words that it covers has changed (RFC 1624, equation 3). A wrong one stays wrong.
fn updated(checksum: u16, before: u16, after: u16) -> u16 {
    !fold(u32::from(!checksum) + u32::from(!before) + u32::from(after))
}

/// Where things are in a splittable frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TcpFrame {
    ip_header: usize,
    /// IP and TCP header.
    header: usize,
    sequence: u32,
    flags: u8,
    /// Payload bytes of a segment.
    segment: usize,
}

impl Frame {
    /// Reads a frame. `None` if it is too short.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Frame> {
        let ip = bytes.get(VNET_BYTES..).filter(|ip| !ip.is_empty())?;
        let ipv4 = Ipv4::parse(ip);
        let codepoint = Codepoint::of(ip, ipv4.as_ref());
        let (tcp, ports) = match ipv4 {
            Some(ipv4) => (TcpFrame::parse(bytes, ip, &ipv4), ipv4.ports(ip)),
            None => (None, None),
        };
        Some(Frame { bytes: bytes.into(), tcp, ports, codepoint, entered: Time::ZERO })
    }

    /// What identifies its flow where ports do not: see [`crate::flow`].
    pub(crate) fn flow(&self) -> u32 {
        crate::flow::hash(self.ip())
    }

    /// The IP packet.
    fn ip(&self) -> &[u8] {
        &self.bytes[VNET_BYTES..]
    }
}

/// The part of an IPv4 header that matters here, checked against the length of the frame.
struct Ipv4 {
    header: usize,
    protocol: u8,
    fragment: bool,
    /// The frame is exactly as long as the header says.
    exact: bool,
}

impl Ipv4 {
    fn parse(ip: &[u8]) -> Option<Ipv4> {
        let header = usize::from(ip[0] & 0x0f) * 4;
        if ip[0] >> 4 != 4 || header < 20 || ip.len() < header {
            return None;
        }
        let more_fragments_or_offset = be16(ip, 6) & 0x3fff;
        Some(Ipv4 {
            header,
            protocol: ip[9],
            fragment: more_fragments_or_offset != 0,
            exact: usize::from(be16(ip, 2)) == ip.len(),
        })
    }

    fn ports(&self, ip: &[u8]) -> Option<(u16, u16)> {
        let has_ports = matches!(self.protocol, TCP | UDP) && !self.fragment && ip.len() >= self.header + 4;
        has_ports.then(|| (be16(ip, self.header), be16(ip, self.header + 2)))
    }
}

impl TcpFrame {
    fn parse(bytes: &[u8], ip: &[u8], ipv4: &Ipv4) -> Option<TcpFrame> {
        let vnet_flags = bytes[0];
        // What the flag says of CWR is what a split does anyway.
        let gso_type = if bytes[1] == GSO_TCPV4 | GSO_ECN { GSO_TCPV4 } else { bytes[1] };
        let gso_size = usize::from(u16::from_ne_bytes([bytes[4], bytes[5]]));
        // Without NEEDS_CSUM the checksum is the sender's own, and must arrive as it is, right or wrong.
        let plain = vnet_flags & NEEDS_CHECKSUM != 0 && matches!(gso_type, GSO_NONE | GSO_TCPV4);
        if !plain || !ipv4.exact || ipv4.protocol != TCP || ipv4.fragment || ip.len() < ipv4.header + 20 {
            return None;
        }
        let tcp = &ip[ipv4.header..];
        let tcp_header = usize::from(tcp[12] >> 4) * 4;
        let header = ipv4.header + tcp_header;
        if tcp_header < 20 || ip.len() < header {
            return None;
        }
        let payload = ip.len() - header;
        let segment = if gso_type == GSO_TCPV4 { gso_size } else { payload };
        if gso_type == GSO_TCPV4 && gso_size == 0 {
            return None;
        }
        Some(TcpFrame {
            ip_header: ipv4.header,
            header,
            sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
            flags: tcp[13],
            segment,
        })
    }
}

/// One packet as it would be on a wire: a range of a frame's payload, or the whole frame.
#[derive(Clone, Debug)]
pub(crate) struct Unit {
    frame: Rc<Frame>,
    /// Range of the payload; of the packet if it is not splittable.
    start: u32,
    end: u32,
    ecn: Ecn,
}

/// The packets of a frame in order.
pub(crate) fn units(frame: Rc<Frame>) -> impl Iterator<Item = Unit> {
    let (length, step) = match &frame.tcp {
        Some(tcp) => (frame.ip().len() - tcp.header, tcp.segment.max(1)),
        None => (frame.ip().len(), frame.ip().len()),
    };
    let count = length.div_ceil(step).max(1);
    let ecn = frame.codepoint.read(frame.ip());
    (0..count).map(move |index| Unit {
        frame: Rc::clone(&frame),
        start: (index * step) as u32,
        end: ((index + 1) * step).min(length) as u32,
        ecn,
    })
}

impl Unit {
    /// What its IP header says of congestion; of what is no IP, that its transport does not understand marks.
    pub(crate) fn ecn(&self) -> Ecn {
        self.ecn
    }

    /// The same unit with another codepoint. What is no IP packet has none.
    pub(crate) fn with_ecn(self, ecn: Ecn) -> Unit {
        let has_one = self.frame.codepoint != Codepoint::Nowhere;
        Unit { ecn: if has_one { ecn } else { self.ecn }, ..self }
    }

    /// Bytes of the IP packet.
    pub(crate) fn ip_bytes(&self) -> u32 {
        self.end - self.start + self.frame.tcp.map_or(0, |tcp| tcp.header as u32)
    }

    /// Bytes of payload, if it is TCP that can be merged.
    pub(crate) fn payload_bytes(&self) -> Option<usize> {
        self.frame.tcp.map(|_| (self.end - self.start) as usize)
    }

    /// Payload bytes of a full segment of its frame; 0 if it cannot be merged.
    pub(crate) fn segment_bytes(&self) -> usize {
        self.frame.tcp.map_or(0, |tcp| tcp.segment)
    }

    /// Bytes of the IP and TCP headers; 0 if it cannot be merged.
    pub(crate) fn header_bytes(&self) -> usize {
        self.frame.tcp.map_or(0, |tcp| tcp.header)
    }

    /// First sequence number; 0 if it cannot be merged.
    pub(crate) fn sequence(&self) -> u32 {
        self.frame.tcp.map_or(0, |tcp| tcp.sequence.wrapping_add(self.start))
    }

    /// TCP flags of this segment: as the kernel splits a frame, CWR is on the first segment only, FIN and PSH on the
    /// last only.
    pub(crate) fn flags(&self) -> u8 {
        let Some(tcp) = self.frame.tcp else { return 0 };
        let last = self.end as usize == self.frame.ip().len() - tcp.header;
        let mut flags = tcp.flags;
        if !last {
            flags &= !(flag::FIN | flag::PSH);
        }
        if self.start != 0 {
            flags &= !flag::CWR;
        }
        flags
    }

    /// Whether the headers of both are equal, except for sequence number, flags, lengths, checksums and the
    /// identification (which means nothing on a packet that must not be fragmented). The codepoint counts as it leaves.
    pub(crate) fn same_headers(&self, other: &Unit) -> bool {
        if self.ecn != other.ecn {
            return false;
        }
        if Rc::ptr_eq(&self.frame, &other.frame) {
            return true;
        }
        let (Some(a), Some(b)) = (&self.frame.tcp, &other.frame.tcp) else { return false };
        if a.ip_header != b.ip_header || a.header != b.header {
            return false;
        }
        let (ip_a, ip_b) = (self.frame.ip(), other.frame.ip());
        let (tcp_a, tcp_b) = (&ip_a[a.ip_header..a.header], &ip_b[a.ip_header..a.header]);
        ip_a[0] == ip_b[0]
            && with_bits(ip_a[1], self.ecn, 0) == with_bits(ip_b[1], other.ecn, 0)
            && ip_a[6..10] == ip_b[6..10]
            && ip_a[12..a.ip_header] == ip_b[12..a.ip_header]
            && tcp_a[..4] == tcp_b[..4]
            && tcp_a[8..13] == tcp_b[8..13]
            && tcp_a[14..16] == tcp_b[14..16]
            && tcp_a[18..] == tcp_b[18..]
    }

    /// The range of the frame's payload, to be written out.
    pub(crate) fn payload(&self) -> &[u8] {
        let header = self.header_bytes();
        &self.frame.ip()[header + self.start as usize..header + self.end as usize]
    }

    /// `Some` payload of both, if `next` follows this one in the same frame.
    pub(crate) fn joined_payload(&self, next_end: &Unit) -> Option<&[u8]> {
        let header = self.header_bytes();
        Rc::ptr_eq(&self.frame, &next_end.frame)
            .then(|| &self.frame.ip()[header + self.start as usize..header + next_end.end as usize])
    }

    /// The IP packet of its frame, which may have more segments. The headers of a segment are those of the frame, apart from
    /// what [`Unit::sequence`] and [`Unit::flags`] tell, lengths and checksums.
    pub(crate) fn start_of_frame(&self) -> &[u8] {
        self.frame.ip()
    }

    /// When its frame entered the path, by the path's time.
    pub(crate) fn entered(&self) -> Time {
        self.frame.entered
    }

    /// Whether it is not splittable.
    pub(crate) fn is_opaque(&self) -> bool {
        self.frame.tcp.is_none()
    }

    /// Hands the pieces of its frame to `write`: as it was read, but for the codepoint.
    pub(crate) fn write_whole<R>(&self, write: impl FnOnce(&[IoSlice<'_>]) -> R) -> R {
        let Frame { bytes, codepoint, .. } = &*self.frame;
        if self.ecn == codepoint.read(self.frame.ip()) {
            return write(&[IoSlice::new(bytes)]);
        }
        let (start, length) = codepoint.changed(self.frame.ip(), self.ecn);
        let (vnet, ip) = bytes.split_at(VNET_BYTES);
        write(&[IoSlice::new(vnet), IoSlice::new(&start[..length]), IoSlice::new(&ip[length..])])
    }
}

/// The virtio, IP and TCP headers of a frame that is to be written.
pub(crate) struct Header {
    bytes: [u8; VNET_BYTES + MAX_HEADER_BYTES],
    length: usize,
}

impl Header {
    /// Headers for `payload` bytes from `first` on, ending with `last`. Both must be mergeable.
    pub(crate) fn merged(first: &Unit, last: &Unit, payload: usize) -> Header {
        let tcp = first.frame.tcp.expect("only TCP is merged");
        let mut bytes = [0; VNET_BYTES + MAX_HEADER_BYTES];
        let length = VNET_BYTES + tcp.header;
        let (vnet, packet) = bytes.split_at_mut(VNET_BYTES);
        let packet = &mut packet[..tcp.header];
        packet.copy_from_slice(&first.frame.ip()[..tcp.header]);
        packet[1] = with_bits(packet[1], first.ecn, 0);

        let gso = payload > tcp.segment;
        vnet[0] = NEEDS_CHECKSUM;
        vnet[1] = if gso { GSO_TCPV4 } else { GSO_NONE };
        vnet[2..4].copy_from_slice(&(tcp.header as u16).to_ne_bytes());
        vnet[4..6].copy_from_slice(&(if gso { tcp.segment as u16 } else { 0 }).to_ne_bytes());
        vnet[6..8].copy_from_slice(&(tcp.ip_header as u16).to_ne_bytes());
        vnet[8..10].copy_from_slice(&(TCP_CHECKSUM as u16).to_ne_bytes());

        let index = first.start as usize / tcp.segment.max(1);
        let identification = be16(packet, 4).wrapping_add(index as u16);
        put16(packet, 2, (tcp.header + payload) as u16);
        put16(packet, 4, identification);
        put16(packet, 10, 0);
        let ip_checksum = !fold(sum(&packet[..tcp.ip_header]));
        put16(packet, 10, ip_checksum);

        // The pseudo header: addresses, protocol, length (RFC 9293 section 3.1). The kernel adds the rest.
        let tcp_bytes = (tcp.header - tcp.ip_header + payload) as u32;
        let pseudo = fold(sum(&packet[12..20]) + u32::from(TCP) + tcp_bytes);
        let segment = &mut packet[tcp.ip_header..];
        segment[4..8].copy_from_slice(&first.sequence().to_be_bytes());
        segment[13] = first.flags() | last.flags() & (flag::FIN | flag::PSH);
        put16(segment, TCP_CHECKSUM, pseudo);
        Header { bytes, length }
    }

    /// The bytes to write in front of the payload.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn put16(bytes: &mut [u8], at: usize, value: u16) {
    bytes[at..at + 2].copy_from_slice(&value.to_be_bytes());
}

/// Sum of 16-bit words (RFC 1071). At most 120 bytes are summed, so it cannot overflow.
fn sum(bytes: &[u8]) -> u32 {
    bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0))).sum()
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

#[cfg(test)]
pub(crate) mod testing {
    //! Frames to test with, and a checksum that shares no code with the one above.

    use super::*;

    /// What a test frame says.
    #[derive(Clone, Copy)]
    pub(crate) struct Sample {
        pub(crate) sequence: u32,
        pub(crate) flags: u8,
        pub(crate) payload: usize,
        pub(crate) gso: u16,
        pub(crate) timestamp: u32,
    }

    impl Sample {
        /// A frame of `payload` bytes in segments of 1448.
        pub(crate) fn data(sequence: u32, payload: usize) -> Sample {
            Sample { sequence, flags: 0x10, payload, gso: 1448, timestamp: 7 }
        }

        /// The bytes as a TUN device gives them. Payload byte `i` of the stream is `i % 251`.
        pub(crate) fn bytes(self) -> Vec<u8> {
            let mut bytes = vec![0; VNET_BYTES];
            bytes[0] = NEEDS_CHECKSUM;
            bytes[1] = if self.payload > self.gso.into() { GSO_TCPV4 } else { GSO_NONE };
            bytes[4..6].copy_from_slice(&self.gso.to_ne_bytes());
            let total = (52 + self.payload) as u16;
            let mut ip =
                vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, TCP, 0, 0, 100, 64, 0, 1, 100, 64, 0, 2];
            ip[2..4].copy_from_slice(&total.to_be_bytes());
            bytes.extend(ip);
            bytes.extend([0x27, 0x10, 0x27, 0x11]);
            bytes.extend(self.sequence.to_be_bytes());
            bytes.extend([0, 0, 0, 9, 0x80, self.flags, 1, 0, 0xde, 0xad, 0, 0, 1, 1, 8, 10]);
            bytes.extend(self.timestamp.to_be_bytes());
            bytes.extend([0, 0, 0, 3]);
            bytes.extend((0..self.payload).map(|i| ((self.sequence as usize + i) % 251) as u8));
            bytes
        }

        pub(crate) fn units(self) -> Vec<Unit> {
            units(Rc::new(Frame::parse(&self.bytes()).unwrap())).collect()
        }
    }

    /// RFC 1071 in its plainest form: end-around carry, one word at a time.
    pub(crate) fn plain_checksum(bytes: &[u8]) -> u16 {
        let mut sum: u16 = 0;
        for at in (0..bytes.len()).step_by(2) {
            let low = if at + 1 < bytes.len() { bytes[at + 1] } else { 0 };
            let (added, carry) = sum.overflowing_add(u16::from_be_bytes([bytes[at], low]));
            sum = added + u16::from(carry);
        }
        !sum
    }

    /// Does what the kernel does with a frame that needs its checksum, and checks both checksums of the result.
    pub(crate) fn assert_checksums(frame: &[u8]) {
        let ip = &frame[VNET_BYTES..];
        assert_eq!(plain_checksum(&ip[..20]), 0, "IP header checksum");
        let start = u16::from_ne_bytes([frame[6], frame[7]]) as usize;
        let offset = u16::from_ne_bytes([frame[8], frame[9]]) as usize;
        assert_eq!((frame[0], start, offset), (1, 20, 16));
        let mut segment = ip[start..].to_vec();
        let checksum = plain_checksum(&segment);
        segment[offset..offset + 2].copy_from_slice(&checksum.to_be_bytes());
        // The receiver's check: pseudo header and segment sum up to all ones.
        let mut covered = ip[12..20].to_vec();
        covered.extend([0, TCP]);
        covered.extend((segment.len() as u16).to_be_bytes());
        covered.extend(segment);
        assert_eq!(plain_checksum(&covered), 0, "TCP checksum");
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{Sample, plain_checksum};
    use super::*;

    fn written(unit: &Unit) -> Vec<u8> {
        unit.write_whole(|slices| slices.iter().flat_map(|slice| slice.to_vec()).collect())
    }

    fn one_unit(bytes: &[u8]) -> Unit {
        let mut units = units(Rc::new(Frame::parse(bytes).unwrap()));
        let unit = units.next().unwrap();
        assert!(units.next().is_none());
        unit
    }

    /// A UDP datagram in IPv4 with this byte for DSCP and ECN, and with options.
    fn datagram(tos: u8, options: usize) -> Vec<u8> {
        let mut bytes = vec![0; VNET_BYTES];
        let mut ip = vec![
            0x45 + options as u8,
            tos,
            0,
            0,
            0x12,
            0x34,
            0x40,
            0,
            64,
            UDP,
            0,
            0,
            10,
            0,
            0,
            1,
            10,
            0,
            0,
            2,
        ];
        ip.extend(vec![1; options * 4]);
        let total = (ip.len() + 12) as u16;
        ip[2..4].copy_from_slice(&total.to_be_bytes());
        let checksum = plain_checksum(&ip);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        bytes.extend(ip);
        bytes.extend([0x27, 0x10, 0x27, 0x11, 0, 12, 0, 0, 1, 2, 3, 4]);
        bytes
    }

    const ALL: [Ecn; 4] = [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce];

    #[test]
    fn changing_codepoint_changes_nothing_else() {
        for (tos, options) in (0..=u8::MAX).zip([0, 1, 10].into_iter().cycle()) {
            let bytes = datagram(tos, options);
            assert_eq!(one_unit(&bytes).ecn(), Ecn::from_bits(tos));
            for ecn in ALL {
                let changed = written(&one_unit(&bytes).with_ecn(ecn));
                assert_eq!(changed[VNET_BYTES + 1], tos & 0xfc | ecn as u8);
                let header = VNET_BYTES..VNET_BYTES + 20 + 4 * options;
                assert_eq!(plain_checksum(&changed[header]), 0, "{tos:#x} {ecn:?}");
                let rest = |bytes: &[u8]| {
                    let mut bytes = bytes.to_vec();
                    bytes[VNET_BYTES + 1] = 0;
                    bytes[VNET_BYTES + 10..VNET_BYTES + 12].fill(0);
                    bytes
                };
                assert_eq!(rest(&changed), rest(&bytes));
            }
        }
    }

    /// Every checksum that a header can have; 0 and all ones are the same number.
    #[test]
    fn incremental_checksum_matches_computed() {
        for identification in 0..=u16::MAX {
            let mut header = [0x45, 0x01, 0, 40, 0, 0, 0x40, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
            put16(&mut header, 4, identification);
            let checksum = plain_checksum(&header);
            put16(&mut header, 10, checksum);
            let (part, length) = Codepoint::V4.changed(&header, Ecn::Ce);
            header[..length].copy_from_slice(&part);
            assert_eq!((header[1], plain_checksum(&header)), (0x03, 0));
        }
    }

    #[test]
    fn a_wrong_checksum_stays_wrong() {
        let mut bytes = datagram(0x02, 0);
        bytes[VNET_BYTES + 11] ^= 1;
        let changed = written(&one_unit(&bytes).with_ecn(Ecn::Ce));
        assert_ne!(plain_checksum(&changed[VNET_BYTES..VNET_BYTES + 20]), 0);
    }

    #[test]
    fn ipv6_codepoint_keeps_class_and_label() {
        for class in 0..=u8::MAX {
            let mut bytes = vec![0; VNET_BYTES];
            bytes.extend([0x60 | class >> 4, class << 4 | 0x0f, 0xab, 0xcd, 0, 0, 59, 64]);
            bytes.extend([7; 32]);
            assert_eq!(one_unit(&bytes).ecn(), Ecn::from_bits(class));
            for ecn in ALL {
                let changed = written(&one_unit(&bytes).with_ecn(ecn));
                let read = changed[VNET_BYTES] << 4 | changed[VNET_BYTES + 1] >> 4;
                assert_eq!(read, class & 0xfc | ecn as u8);
                assert_eq!(changed[VNET_BYTES + 1] & 0x0f, 0x0f);
                assert_eq!(changed[VNET_BYTES + 2..], bytes[VNET_BYTES + 2..]);
            }
        }
    }

    #[test]
    fn fragments_are_marked_truncated_headers_not() {
        let datagram = datagram(0x02, 0);
        for (at, value) in [(6, 0x20), (7, 0x01)] {
            let mut fragment = datagram.clone();
            fragment[VNET_BYTES + at] = value;
            let changed = written(&one_unit(&fragment).with_ecn(Ecn::Ce));
            assert_eq!(changed[VNET_BYTES + 1], 0x03);
        }
        let mut none = vec![
            datagram[..VNET_BYTES + 19].to_vec(), // cut short
            datagram[..VNET_BYTES + 1].to_vec(),
        ];
        for first in [0x44, 0x46 + 2, 0x4f, 0x05, 0x65, 0xff] {
            // Header shorter than 20 bytes, longer than the packet, IPv6 cut short, or no IP.
            let mut bytes = datagram.clone();
            bytes[VNET_BYTES] = first;
            bytes.truncate(VNET_BYTES + 31);
            none.push(bytes);
        }
        for bytes in none {
            let unit = one_unit(&bytes);
            assert_eq!(unit.ecn(), Ecn::NotEct, "{bytes:?}");
            assert_eq!(written(&unit.with_ecn(Ecn::Ce)), bytes);
        }
    }

    #[test]
    fn gso_frame_with_cwr_splits() {
        let mut bytes = Sample { flags: 0x10 | flag::CWR, ..Sample::data(1000, 3000) }.bytes();
        bytes[1] |= GSO_ECN;
        let units: Vec<Unit> = units(Rc::new(Frame::parse(&bytes).unwrap())).collect();
        let flags: Vec<u8> = units.iter().map(Unit::flags).collect();
        assert_eq!(flags, [0x10 | flag::CWR, 0x10, 0x10]);
    }

    #[test]
    fn gso_frame_splits_like_kernel() {
        let flags = 0x10 | flag::PSH | flag::CWR;
        let units = Sample { flags, ..Sample::data(1000, 3000) }.units();
        let seen: Vec<_> =
            units.iter().map(|unit| (unit.sequence(), unit.ip_bytes(), unit.flags())).collect();
        assert_eq!(
            seen,
            [(1000, 1500, 0x10 | flag::CWR), (2448, 1500, 0x10), (3896, 52 + 104, 0x10 | flag::PSH)]
        );
    }

    #[test]
    fn a_bare_ack_is_one_unit() {
        let units = Sample::data(5, 0).units();
        assert_eq!(units.len(), 1);
        assert_eq!((units[0].ip_bytes(), units[0].payload_bytes()), (52, Some(0)));
    }

    /// Everything odd passes as it is, in one piece.
    #[test]
    fn hostile_frames_pass_or_are_ignored() {
        assert!(Frame::parse(&[]).is_none());
        assert!(Frame::parse(&[0; VNET_BYTES]).is_none());
        let good = Sample::data(1, 3000).bytes();
        let with = |at: usize, value: u8| {
            let mut bytes = good.clone();
            bytes[VNET_BYTES + at] = value;
            bytes
        };
        let mut not_offloaded = good.clone();
        not_offloaded[0] = 0;
        let mut no_size = good.clone();
        no_size[4..6].fill(0);
        let mut unknown_gso = good.clone();
        unknown_gso[1] = 3;
        let odd = [
            with(0, 0x65),       // IPv6
            with(0, 0x05),       // no version
            with(0, 0x44),       // header too short
            with(0, 0x4f),       // header longer than it is; what is taken for TCP is not
            with(2, 0x01),       // total length wrong
            with(6, 0x20),       // more fragments
            with(7, 0x01),       // a later fragment
            with(9, 17),         // UDP
            with(9, 1),          // ICMP
            with(20 + 12, 0x40), // TCP header too short
            good[..VNET_BYTES + 1].to_vec(),
            good[..VNET_BYTES + 19].to_vec(),
            good[..VNET_BYTES + 30].to_vec(),
            not_offloaded,
            no_size,
            unknown_gso,
        ];
        for (number, bytes) in odd.iter().enumerate() {
            let units: Vec<Unit> = units(Rc::new(Frame::parse(bytes).unwrap())).collect();
            assert_eq!(units.len(), 1, "case {number}");
            assert!(units[0].is_opaque(), "case {number}");
            assert_eq!(written(&units[0]), *bytes, "case {number}");
            assert_eq!(units[0].ip_bytes() as usize, bytes.len() - VNET_BYTES, "case {number}");
        }
    }

    #[test]
    fn random_bytes_never_panic() {
        let mut state = 1;
        for length in 0..400 {
            let bytes: Vec<u8> = (0..length)
                .map(|at| {
                    state = fullpipe_path::mix(state);
                    // Often enough something like IPv4, TCP, with offload.
                    match (at, state % 4) {
                        (0 | 1, 1..) => 1,
                        (VNET_BYTES, 1..) => 0x45,
                        (19, 1..) => TCP,
                        _ => (state >> 32) as u8,
                    }
                })
                .collect();
            if let Some(frame) = Frame::parse(&bytes) {
                let _ = frame.flow();
                let units: Vec<Unit> = units(Rc::new(frame)).collect();
                let total: u32 = units.iter().map(|unit| unit.ip_bytes()).sum();
                assert!(total as usize >= length - VNET_BYTES);
                for unit in units.into_iter().filter(Unit::is_opaque) {
                    assert_eq!(written(&unit.with_ecn(Ecn::Ce)).len(), length);
                }
            }
        }
    }

    #[test]
    fn only_tcp_and_udp_have_ports() {
        let bytes = Sample::data(1, 10).bytes();
        assert_eq!(Frame::parse(&bytes).unwrap().ports, Some((10_000, 10_001)));
        let mut icmp = bytes.clone();
        icmp[VNET_BYTES + 9] = 1;
        assert_eq!(Frame::parse(&icmp).unwrap().ports, None);
    }
}
