//! The TCP header of a captured packet, and how much payload the packet had when it was whole.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{IpNumber, LaxNetSlice, LaxSlicedPacket};

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Ethernet, with any VLAN tags.
    Ethernet,
    /// IPv4 or IPv6.
    Ip,
}

impl Link {
    /// From the number in the file (<https://www.tcpdump.org/linktypes.html>).
    pub(crate) fn of(number: i32) -> Option<Link> {
        match number {
            1 => Some(Link::Ethernet),
            // LINKTYPE_RAW, LINKTYPE_IPV4, LINKTYPE_IPV6.
            101 | 228 | 229 => Some(Link::Ip),
            _ => None,
        }
    }
}

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Direction {
    pub(crate) from: (IpAddr, u16),
    pub(crate) to: (IpAddr, u16),
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) direction: Direction,
    pub(crate) sequence: u32,
    /// Bytes that the packet carried, not those that the capture kept.
    pub(crate) payload: u32,
    pub(crate) syn: bool,
}

/// The segment in a captured packet; `None` if it is anything else, a fragment, or cut off within TCP's first 20 bytes.
pub(crate) fn segment(link: Link, bytes: &[u8]) -> Option<Segment> {
    let packet = match link {
        Link::Ethernet => LaxSlicedPacket::from_ethernet(bytes).ok()?,
        Link::Ip => LaxSlicedPacket::from_ip(bytes).ok()?,
    };
    // Lengths come from IP's header, because a capture of headers does not have the payload.
    let (from, to, transport_bytes, ip): (IpAddr, IpAddr, usize, _) = match packet.net? {
        LaxNetSlice::Ipv4(ip) => {
            let header = ip.header();
            let before = header.slice().len() + ip.extensions().auth.map_or(0, |auth| auth.slice().len());
            let after = usize::from(header.total_len()).checked_sub(before)?;
            (
                Ipv4Addr::from(header.source()).into(),
                Ipv4Addr::from(header.destination()).into(),
                after,
                ip.payload().clone(),
            )
        }
        LaxNetSlice::Ipv6(ip) => {
            let header = ip.header();
            let after = usize::from(header.payload_length()).checked_sub(ip.extensions().slice().len())?;
            (
                Ipv6Addr::from(header.source()).into(),
                Ipv6Addr::from(header.destination()).into(),
                after,
                ip.payload().clone(),
            )
        }
        LaxNetSlice::Arp(_) => return None,
    };
    if ip.ip_number != IpNumber::TCP || ip.fragmented {
        return None;
    }
    // TCP's first 20 bytes (RFC 9293 section 3.1), read here because its options may have been cut off.
    let tcp: &[u8; 20] = ip.payload.first_chunk()?;
    let header_bytes = usize::from(tcp[12] >> 4) * 4;
    let payload = transport_bytes.checked_sub(header_bytes).filter(|_| header_bytes >= tcp.len())?;
    Some(Segment {
        direction: Direction {
            from: (from, u16::from_be_bytes([tcp[0], tcp[1]])),
            to: (to, u16::from_be_bytes([tcp[2], tcp[3]])),
        },
        sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
        payload: payload as u32,
        syn: tcp[13] & 0x02 != 0,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, PacketBuilderStep, TcpHeader, VlanId};

    const PAYLOAD: [u8; 1400] = [0; 1400];

    fn bytes(step: PacketBuilderStep<TcpHeader>, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        step.write(&mut bytes, payload).expect("a packet");
        bytes
    }

    fn ipv4() -> PacketBuilderStep<etherparse::IpHeaders> {
        PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
    }

    #[test]
    fn payload_is_that_of_the_whole_packet_however_little_was_kept() {
        let whole = bytes(ipv4().tcp(1000, 443, 77, 65_535), &PAYLOAD);
        for kept in [40, 66, 96, whole.len()] {
            let found = segment(Link::Ip, &whole[..kept]).expect("a segment");
            assert_eq!((found.payload, found.sequence, found.syn), (1400, 77, false));
            assert_eq!(found.direction.from, (Ipv4Addr::new(10, 0, 0, 1).into(), 1000));
            assert_eq!(found.direction.to, (Ipv4Addr::new(10, 0, 0, 2).into(), 443));
        }
        assert_eq!(segment(Link::Ip, &whole[..39]), None);
    }

    #[test]
    fn options_that_were_cut_off_are_not_payload() {
        let stamped = ipv4()
            .tcp(1, 2, 3, 4)
            .options(&[etherparse::TcpOptionElement::Timestamp(1, 2)])
            .expect("room for a timestamp");
        let whole = bytes(stamped, &PAYLOAD);
        assert_eq!(segment(Link::Ip, &whole[..40]).expect("a segment").payload, 1400);
    }

    #[test]
    fn vlan_tags_and_ipv6_within_96_bytes() {
        let tagged = PacketBuilder::ethernet2([1; 6], [2; 6])
            .single_vlan(VlanId::try_new(100).expect("a VLAN"))
            .ipv6([1; 16], [2; 16], 64)
            .tcp(1, 2, 3, 4)
            .syn();
        let whole = bytes(tagged, &PAYLOAD);
        let found = segment(Link::Ethernet, &whole[..96]).expect("a segment");
        assert_eq!((found.payload, found.syn), (1400, true));
        assert_eq!(found.direction.from.0, IpAddr::from([1; 16]));
    }

    #[test]
    fn what_is_not_tcp_is_left_out() {
        let mut udp = Vec::new();
        ipv4().udp(1, 2).write(&mut udp, &PAYLOAD).expect("a packet");
        assert_eq!(segment(Link::Ip, &udp), None);
        assert_eq!(segment(Link::Ip, &[]), None);
        assert_eq!(segment(Link::Ethernet, &[0; 14]), None);
        let mut fragment = bytes(ipv4().tcp(1, 2, 3, 4), &PAYLOAD);
        fragment[6] = 0x20; // More fragments.
        assert_eq!(segment(Link::Ip, &fragment), None);
        let mut short = bytes(ipv4().tcp(1, 2, 3, 4), &PAYLOAD);
        short[32] = 0x10; // A data offset of 4 bytes.
        assert_eq!(segment(Link::Ip, &short), None);
    }
}
