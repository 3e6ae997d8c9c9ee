//! Packets of every link type and tunnel, built byte by byte.

use super::*;
use etherparse::{PacketBuilder, PacketBuilderStep, TcpHeader};
use std::net::Ipv4Addr;

const PAYLOAD: usize = 1400;

fn bytes(step: PacketBuilderStep<TcpHeader>) -> Vec<u8> {
    let mut bytes = Vec::new();
    step.write(&mut bytes, &[0; PAYLOAD]).expect("a packet");
    bytes
}

fn ipv4() -> PacketBuilderStep<etherparse::IpHeaders> {
    PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64)
}

/// A TCP segment over IPv4.
fn tcp4() -> Vec<u8> {
    bytes(ipv4().tcp(1000, 443, 77, 65_535))
}

/// A TCP segment over IPv6.
fn tcp6() -> Vec<u8> {
    bytes(PacketBuilder::ipv6([1; 16], [2; 16], 64).tcp(1000, 443, 77, 65_535))
}

/// An Ethernet header with this EtherType or length, and what follows.
fn ethernet(number: u16, rest: &[u8]) -> Vec<u8> {
    [&[2; 12], &number.to_be_bytes()[..], rest].concat()
}

/// An IPv4 header with this protocol, and what follows.
fn over4(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let length = (20 + rest.len()) as u16;
    let [high, low] = length.to_be_bytes();
    let header = [0x45, 0, high, low, 0, 7, 0, 0, 64, protocol, 0, 0, 192, 0, 2, 1, 192, 0, 2, 2];
    [&header, rest].concat()
}

/// An IPv6 header with this protocol, and what follows.
fn over6(protocol: u8, rest: &[u8]) -> Vec<u8> {
    let [high, low] = (rest.len() as u16).to_be_bytes();
    [&[0x60, 0, 0, 0, high, low, protocol, 64], &[1; 32][..], rest].concat()
}

fn udp(from: u16, to: u16, rest: &[u8]) -> Vec<u8> {
    let length = (8 + rest.len()) as u16;
    over4(
        17,
        &[from.to_be_bytes(), to.to_be_bytes(), length.to_be_bytes(), [0; 2]]
            .concat()
            .into_iter()
            .chain(rest.iter().copied())
            .collect::<Vec<_>>(),
    )
}

fn find(link: Link, packet: &[u8]) -> Result<Option<Segment>, Skip> {
    Segments::default().find(link, packet, packet.len())
}

/// The payload of the segment in a packet.
fn payload(link: Link, packet: &[u8]) -> u32 {
    find(link, packet).expect("a readable packet").expect("a segment").payload
}

#[test]
fn truncated_packet_keeps_original_length() {
    let whole = tcp4();
    for kept in [40, 66, 96, whole.len()] {
        let found = Segments::default().find(Link::Ip, &whole[..kept], whole.len());
        let found = found.expect("a readable packet").expect("a segment");
        assert_eq!((found.payload, found.sequence, found.syn), (1400, 77, false));
        assert_eq!(found.direction.from, (Ipv4Addr::new(10, 0, 0, 1).into(), 1000));
        assert_eq!(found.direction.to, (Ipv4Addr::new(10, 0, 0, 2).into(), 443));
    }
    assert_eq!(find(Link::Ip, &whole[..39]), Err(Skip::Short));
}

#[test]
fn truncated_options_are_not_payload() {
    let options = [etherparse::TcpOptionElement::Timestamp(1, 2)];
    let whole = bytes(ipv4().tcp(1, 2, 3, 4).options(&options).expect("room for a timestamp"));
    assert_eq!(payload(Link::Ip, &whole[..40]), 1400);
}

#[test]
fn an_ethernet_trailer_is_not_payload() {
    let mut frame = ethernet(0x0800, &over4(6, &[&[0; 12][..], &[0x50, 0], &[0; 6]].concat()));
    frame.resize(60, 0);
    assert_eq!(payload(Link::Ethernet, &frame), 0);
}

#[test]
fn zero_ip_length_means_frame_length() {
    let mut long = tcp4();
    long[2..4].fill(0);
    let frame = ethernet(0x0800, &long);
    // Of a segment of 604,000 bytes, 96 bytes are kept.
    let found = Segments::default().find(Link::Ethernet, &frame[..96], 14 + 40 + 604_000);
    assert_eq!(found.expect("readable").expect("a segment").payload, 604_000);

    let mut long = tcp6();
    long[4..6].fill(0);
    assert_eq!(payload(Link::Ip, &long), 1400);
    // With the option of a jumbogram (RFC 2675).
    let jumbo = [&[6, 0, 0xc2, 4, 0, 0, 0x05, 0x8c], &tcp6()[40..]].concat();
    let mut long = over6(0, &jumbo);
    long[4..6].fill(0);
    assert_eq!(payload(Link::Ip, &long), 1400);

    // Within a tunnel, too.
    let mut long = tcp4();
    long[2..4].fill(0);
    let mut outer = udp(50_000, 4789, &[&[8, 0, 0, 0, 0, 0, 5, 0], &ethernet(0x0800, &long)[..]].concat());
    assert_eq!(payload(Link::Ip, &outer), 1400);
    outer[2..4].fill(0);
    assert_eq!(payload(Link::Ip, &outer), 1400);
}

/// A segment behind the header of each link type.
fn links() -> Vec<(u16, Vec<u8>)> {
    let cooked = |device: u16, protocol: u16| {
        [&[0, 0], &device.to_be_bytes()[..], &[0; 10], &protocol.to_be_bytes(), &tcp4()].concat()
    };
    let cooked2 = |device: u16, protocol: u16| {
        [&protocol.to_be_bytes()[..], &[0; 6], &device.to_be_bytes(), &[0; 10], &tcp4()].concat()
    };
    let family = |number: [u8; 4], packet: Vec<u8>| [&number[..], &packet].concat();
    let snap = [&[0xaa, 0xaa, 3, 0, 0, 0, 8, 0][..], &tcp4()].concat();
    let pppoe = |number: [u8; 2]| [&[0x11, 0, 0, 1, 5, 0xa2][..], &number, &tcp4()].concat();
    vec![
        (0, family(2u32.to_le_bytes(), tcp4())),
        (0, family(2u32.to_be_bytes(), tcp4())),
        (0, family(30u32.to_le_bytes(), tcp6())),
        (0, family(24u32.to_be_bytes(), tcp6())),
        (108, family(2u32.to_be_bytes(), tcp4())),
        (108, family(2u32.to_le_bytes(), tcp4())),
        (1, ethernet(0x0800, &tcp4())),
        (1, ethernet(0x86dd, &tcp6())),
        (1, ethernet(1448, &snap)),
        (1, ethernet(0x8864, &pppoe([0, 0x21]))),
        (1, ethernet(0x8100, &[&[0, 7, 0x88, 0x64][..], &pppoe([0, 0x21])].concat())),
        (9, [&[0, 0x21][..], &tcp4()].concat()),
        (9, [&[0x57][..], &tcp6()].concat()),
        (9, [&[0xff, 3, 0, 0x57][..], &tcp6()].concat()),
        (50, [&[0xff, 3, 0, 0x21][..], &tcp4()].concat()),
        (50, [&[0x0f, 0, 8, 0][..], &tcp4()].concat()),
        (104, [&[0x0f, 0, 8, 0][..], &tcp4()].concat()),
        (51, pppoe([0, 0x21])),
        (12, tcp4()),
        (14, tcp6()),
        (101, tcp4()),
        (228, tcp4()),
        (229, tcp6()),
        (113, cooked(1, 0x0800)),
        (113, cooked(772, 0x0800)),
        (219, [&[0, 0, 0x11, 64][..], &tcp4()].concat()),
        (276, cooked2(1, 0x0800)),
        (276, cooked2(65_534, 0x0800)),
    ]
}

#[test]
fn every_link_header_is_skipped() {
    for (number, packet) in links() {
        let link = Link::of(number.into()).expect("a known link type");
        assert_eq!(payload(link, &packet), 1400, "{number} {:02x?}", &packet[..24]);
    }
}

/// Ethernet frames with a segment in each tag and tunnel.
fn tunnels() -> Vec<Vec<u8>> {
    let frame = ethernet(0x0800, &tcp4());
    let gre = |header: &[u8], inside: &[u8]| over4(47, &[header, inside].concat());
    vec![
        // Tags: 802.1Q, 802.1ad with 802.1Q, and the older number.
        ethernet(0x8100, &[&[0, 7, 8, 0][..], &tcp4()].concat()),
        ethernet(0x88a8, &[&[0, 7, 0x81, 0, 0, 8, 0x86, 0xdd][..], &tcp6()].concat()),
        ethernet(0x9100, &[&[0, 7, 0x81, 0, 0, 8, 8, 0][..], &tcp4()].concat()),
        // Two labels; then pseudowires with and without a control word.
        ethernet(0x8847, &[&[0, 0, 0x10, 64, 0, 0, 0x21, 64][..], &tcp4()].concat()),
        ethernet(0x8847, &[&[0, 0, 0x21, 64][..], &tcp6()].concat()),
        ethernet(0x8847, &[&[0, 0, 0x21, 64, 0, 0, 0, 9][..], &frame].concat()),
        ethernet(0x8847, &[&[0, 0, 0x21, 64][..], &frame].concat()),
        ethernet(0x8848, &[&[0, 0, 0x21, 64][..], &tcp4()].concat()),
        // GRE: bare; checksum, key and sequence number; bridged; labels; PPTP.
        ethernet(0x0800, &gre(&[0, 0, 8, 0], &tcp4())),
        ethernet(0x0800, &gre(&[0xb0, 0, 0x86, 0xdd, 1, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1], &tcp6())),
        ethernet(0x0800, &gre(&[0x20, 0, 0x65, 0x58, 0, 0, 0, 9], &frame)),
        ethernet(0x0800, &gre(&[0, 0, 0x88, 0x47, 0, 0, 0x21, 64], &tcp4())),
        ethernet(
            0x0800,
            &gre(&[0x30, 0x81, 0x88, 0x0b, 5, 0xa2, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0x21], &tcp4()),
        ),
        ethernet(0x86dd, &over6(47, &[&[0, 0, 8, 0][..], &tcp4()].concat())),
        // IP in IP, all four ways.
        ethernet(0x0800, &over4(4, &tcp4())),
        ethernet(0x0800, &over4(41, &tcp6())),
        ethernet(0x86dd, &over6(4, &tcp4())),
        ethernet(0x86dd, &over6(41, &tcp6())),
        // VXLAN, also with a group policy; Geneve with an option of four bytes, bridged and not.
        ethernet(0x0800, &udp(50_000, 4789, &[&[8, 0, 0, 0, 0, 0, 5, 0][..], &frame].concat())),
        ethernet(0x0800, &udp(50_000, 8472, &[&[0x88, 0, 0, 3, 0, 0, 5, 0][..], &frame].concat())),
        ethernet(
            0x0800,
            &udp(50_000, 6081, &[&[1, 0, 0x65, 0x58, 0, 0, 5, 0, 9, 9, 9, 0][..], &frame].concat()),
        ),
        ethernet(0x0800, &udp(50_000, 6081, &[&[0, 0, 8, 0, 0, 0, 5, 0][..], &tcp4()].concat())),
        // Extension headers: hop by hop, destination options, routing, and authentication in both versions.
        ethernet(
            0x86dd,
            &over6(
                0,
                &[
                    &[60, 0, 1, 4, 0, 0, 0, 0, 43, 0, 1, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0][..],
                    &tcp6()[40..],
                ]
                .concat(),
            ),
        ),
        ethernet(0x86dd, &over6(51, &[&[6, 4][..], &[0; 22], &tcp6()[40..]].concat())),
        ethernet(0x0800, &over4(51, &[&[6, 4][..], &[0; 22], &tcp4()[20..]].concat())),
    ]
}

/// A packet of every kind that is read, with its link type.
pub(crate) fn samples() -> Vec<(u16, Vec<u8>)> {
    let fragment = fragment6(&tcp6(), 0, 800);
    let mut samples = links();
    samples.extend(tunnels().into_iter().map(|packet| (1, packet)));
    samples.extend([
        (101, fragment4(&tcp4(), 0, 800)),
        (101, fragment4(&tcp4(), 800, 1420)),
        (101, fragment),
    ]);
    // The segments' own bytes matter to no header.
    samples.iter_mut().for_each(|(_, packet)| packet.truncate(160));
    samples
}

#[test]
fn every_tag_and_tunnel_is_skipped() {
    for packet in tunnels() {
        assert_eq!(payload(Link::Ethernet, &packet), 1400, "{:02x?}", &packet[12..48]);
        // A capture of headers only gives the same.
        let kept = &packet[..packet.len() - PAYLOAD];
        let found = Segments::default().find(Link::Ethernet, kept, packet.len());
        assert_eq!(found.map(|one| one.map(|one| one.payload)), Ok(Some(1400)), "{:02x?}", &packet[12..48]);
    }
}

#[test]
fn what_is_not_read_is_named() {
    let name = |link, packet: &[u8]| find(link, packet).expect_err("no segment").to_string();
    let frame = |number| name(Link::Ethernet, &ethernet(number, &[0; 60]));
    assert_eq!(frame(0x0806), "ARP");
    assert_eq!(frame(0x88cc), "of EtherType 0x88cc (LLDP)");
    assert_eq!(frame(0x88e5), "of EtherType 0x88e5 (MACsec)");
    assert_eq!(frame(0x1234), "of EtherType 0x1234");
    assert_eq!(frame(60), "IEEE 802.2 LLC without IP");
    let labelled = ethernet(0x8847, &[&[0, 0, 0x21, 64][..], &[0; 60]].concat());
    assert_eq!(name(Link::Ethernet, &labelled), "MPLS without IP or Ethernet");
    for (protocol, expected) in [
        (1, "ICMP"),
        (50, "ESP (encrypted)"),
        (58, "IPv6-ICMP"),
        (97, "ETHERIP"),
        (132, "SCTP"),
        (200, "of IP protocol 200"),
    ] {
        assert_eq!(name(Link::Ip, &over4(protocol, &[0; 60])), expected);
    }
    for (port, expected) in [
        (53, "UDP"),
        (443, "UDP on the port of QUIC"),
        (2152, "UDP on the port of GTP-U"),
        (51820, "UDP on the port of WireGuard"),
        (4789, "UDP"),
        (6081, "UDP"),
    ] {
        assert_eq!(name(Link::Ip, &udp(5000, port, &[0; 60])), expected);
        assert_eq!(name(Link::Ip, &udp(port, 5000, &[0; 60])), expected);
    }
    assert_eq!(name(Link::Ip, &over4(47, &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0, 0, 0, 0])), "ERSPAN");
    assert_eq!(name(Link::Ip, &over4(47, &[0; 60])), "GRE of a version or with a payload that is not read");
    assert_eq!(
        name(Link::Ip, &over4(47, &[0x40, 0, 8, 0, 0, 0, 0, 0])),
        "GRE of a version or with a payload that is not read"
    );
    assert_eq!(name(Link::Ppp, &[0xc0, 0x21, 1, 1]), "of PPP protocol 0xc021 (control)");
    assert_eq!(name(Link::Ppp, &[0, 0xfd, 1, 1]), "of PPP protocol 0x00fd (compressed or encrypted)");
    assert_eq!(name(Link::Family, &[7, 0, 0, 0, 1]), "of address family 7");
    assert_eq!(name(Link::Cooked, &[&[0, 4, 3, 35][..], &[0; 12]].concat()), "IEEE 802.11");
    assert_eq!(name(Link::Cooked2, &[&[0, 0, 0, 0, 0, 0, 0, 1, 3, 56][..], &[0; 10]].concat()), "netlink");
    assert_eq!(name(Link::Cooked, &[0; 16]), "of Linux's protocol 0x0000");
    let nested = (0..100).fold(tcp4(), |inside, _| over4(4, &inside));
    assert_eq!(name(Link::Ip, &nested), "with too many nested headers");
}

#[test]
fn headers_that_contradict_themselves_are_damage() {
    let mut short = tcp4();
    short[32] = 0x10; // A data offset of 4 bytes.
    assert_eq!(find(Link::Ip, &short), Err(Skip::Damaged));
    let mut short = tcp4();
    short[2..4].copy_from_slice(&[0, 30]); // A length within TCP's header.
    assert_eq!(find(Link::Ip, &short), Err(Skip::Damaged));
    short[2..4].copy_from_slice(&[0, 19]);
    assert_eq!(find(Link::Ip, &short), Err(Skip::Damaged));
    assert_eq!(find(Link::Ip, &[0x55; 60]), Err(Skip::Damaged));
    for link in [Link::Ip, Link::Ethernet, Link::Cooked, Link::Cooked2, Link::Family, Link::Ppp, Link::Mpls] {
        assert_eq!(find(link, &[]), Err(Skip::Short), "{link:?}");
    }
}

/// A fragment of a datagram: bytes `from..to` of what is behind the header of IPv4.
fn fragment4(whole: &[u8], from: usize, to: usize) -> Vec<u8> {
    let mut part = over4(whole[9], &whole[20..][from..to]);
    let more = if to < whole.len() - 20 { 0x2000 } else { 0 };
    part[6..8].copy_from_slice(&(more | (from / 8) as u16).to_be_bytes());
    part
}

/// The same of IPv6.
fn fragment6(whole: &[u8], from: usize, to: usize) -> Vec<u8> {
    let more = u16::from(to < whole.len() - 40);
    let [high, low] = ((from / 8 * 8) as u16 | more).to_be_bytes();
    over6(44, &[&[whole[6], 0, high, low, 0, 0, 0, 5], &whole[40..][from..to]].concat())
}

#[test]
fn fragments_carry_payload_of_segment() {
    type Cut = fn(&[u8], usize, usize) -> Vec<u8>;
    for (whole, cut) in [(tcp4(), fragment4 as Cut), (tcp6(), fragment6 as Cut)] {
        let mut segments = Segments::default();
        let mut find = |part: &[u8]| segments.find(Link::Ip, part, part.len());
        assert_eq!(find(&cut(&whole, 800, 1420)), Err(Skip::Fragment));
        let first = find(&cut(&whole, 0, 800)).expect("readable").expect("a segment");
        assert_eq!((first.sequence, first.payload), (77, 780));
        let second = find(&cut(&whole, 800, 1420)).expect("readable").expect("a fragment");
        assert_eq!((second.sequence, second.payload), (77 + 780, 620));
        assert_eq!(second.direction, first.direction);
    }
}

#[test]
fn tunnel_fragments_count_once() {
    let tunnel = over4(47, &[&[0, 0, 8, 0][..], &tcp4()].concat());
    let mut segments = Segments::default();
    let mut find = |part: &[u8]| segments.find(Link::Ip, part, part.len());
    let first = find(&fragment4(&tunnel, 0, 800)).expect("readable").expect("a segment");
    assert_eq!(first.payload, 1400);
    assert_eq!(find(&fragment4(&tunnel, 800, 1444)), Ok(None));
}

#[test]
fn the_memory_of_fragments_is_bounded() {
    let mut segments = Segments::default();
    let mut part = fragment4(&tcp4(), 0, 800);
    for number in 0..1000u16 {
        part[4..6].copy_from_slice(&number.to_be_bytes());
        assert!(segments.find(Link::Ip, &part, part.len()).is_ok());
    }
    assert_eq!(segments.datagrams.len(), MOST_DATAGRAMS);
}
