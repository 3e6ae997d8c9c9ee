//! The TCP segment in a captured packet, also inside tags and tunnels.
//!
//! `etherparse` reads the headers of IP. It knows no tunnels, so their headers, of fixed or stated length, are skipped here.

use std::collections::VecDeque;
use std::net::IpAddr;

use etherparse::{
    IpNumber, Ipv4ExtensionsSlice, Ipv4HeaderSlice, Ipv6ExtensionSlice, Ipv6ExtensionsSlice, Ipv6HeaderSlice,
    err::{ipv4, ipv6},
};

use crate::link::Link;
use crate::skip::Skip;

/// The most headers that one packet may nest: VXLAN over PPPoE over two VLAN tags has 9.
const MOST_LAYERS: usize = 24;
/// Datagrams whose first fragment was seen and whose others may follow.
const MOST_DATAGRAMS: usize = 256;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Direction {
    pub(crate) from: (IpAddr, u16),
    pub(crate) to: (IpAddr, u16),
}

/// A TCP segment, or a fragment of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    pub(crate) direction: Direction,
    pub(crate) sequence: u32,
    /// Bytes that the packet carried, not those that the capture kept.
    pub(crate) payload: u32,
    pub(crate) syn: bool,
}

/// What the next bytes of a packet are.
#[derive(Clone, Copy, Debug)]
enum Layer {
    Ethernet,
    /// What an EtherType names.
    Ether(u16),
    /// IEEE 802.2 LLC.
    Llc,
    Ppp,
    PppoeSession,
    Mpls,
    Ip,
    /// What a protocol number of IP names.
    Protocol(IpNumber),
}

/// The unread part of a packet.
struct Rest<'a> {
    /// What the capture kept of it.
    kept: &'a [u8],
    /// Its length when it was whole.
    whole: usize,
}

impl<'a> Rest<'a> {
    /// Removes the next `N` bytes.
    fn take<const N: usize>(&mut self) -> Result<&'a [u8; N], Skip> {
        let taken = self.kept.first_chunk().ok_or(Skip::Short)?;
        self.skip(N)?;
        Ok(taken)
    }

    fn skip(&mut self, bytes: usize) -> Result<(), Skip> {
        self.kept = self.kept.get(bytes..).ok_or(Skip::Short)?;
        self.whole = self.whole.saturating_sub(bytes);
        Ok(())
    }

    fn take_u16(&mut self) -> Result<u16, Skip> {
        Ok(u16::from_be_bytes(*self.take()?))
    }
}

/// A datagram of IP that travels in fragments.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Datagram {
    from: IpAddr,
    to: IpAddr,
    identification: u32,
    protocol: IpNumber,
}

/// Where a fragment belongs.
#[derive(Clone, Copy)]
struct Fragment {
    datagram: Datagram,
    /// Bytes of the datagram's payload before it.
    offset: u32,
}

/// A stream of bytes in the datagram: its direction, and the sequence number that its first payload byte would have.
type Stream = Option<(Direction, u32)>;

/// Finds segments. It remembers the latest fragmented datagrams, because only the first fragment has TCP's header.
#[derive(Default)]
pub(crate) struct Segments {
    datagrams: VecDeque<(Datagram, Stream)>,
}

impl Segments {
    /// The segment in a packet of which `kept` was captured, `whole` bytes long; `None` for a fragment whose payload counts
    /// already.
    pub(crate) fn find(&mut self, link: Link, kept: &[u8], whole: usize) -> Result<Option<Segment>, Skip> {
        let mut rest = Rest { kept, whole: whole.max(kept.len()) };
        let mut layer = begin(link, &mut rest)?;
        let mut ends = None;
        let mut fragment: Option<Fragment> = None;
        for _ in 0..MOST_LAYERS {
            layer = match layer {
                Layer::Ethernet => {
                    rest.skip(12)?;
                    type_or_length(rest.take_u16()?)
                }
                Layer::Ether(number) => ether(number, &mut rest)?,
                Layer::Llc => llc(&mut rest)?,
                Layer::Ppp => ppp(&mut rest)?,
                Layer::PppoeSession => {
                    rest.skip(6)?;
                    Layer::Ppp
                }
                Layer::Mpls => mpls(&mut rest)?,
                Layer::Ip => {
                    // Headers inside a first fragment state the length of the whole datagram.
                    if let Some(outer) = fragment.take() {
                        self.remember(outer.datagram, None);
                    }
                    let ip = ip(&mut rest)?;
                    if let Some(part) = ip.fragment {
                        if part.offset > 0 {
                            return self.later(part, rest.whole);
                        }
                        fragment = Some(part);
                    }
                    ends = Some((ip.from, ip.to));
                    Layer::Protocol(ip.protocol)
                }
                Layer::Protocol(IpNumber::TCP) => {
                    let segment = tcp(ends.expect("IP comes before TCP"), &rest)?;
                    if let Some(Fragment { datagram, .. }) = fragment {
                        let before = u32::from(rest.kept[12] >> 4) * 4;
                        let first = segment.sequence.wrapping_add(segment.syn.into()).wrapping_sub(before);
                        self.remember(datagram, Some((segment.direction, first)));
                    }
                    return Ok(Some(segment));
                }
                Layer::Protocol(number) => inside(number, &mut rest)?,
            };
        }
        Err(Skip::Nested)
    }

    fn remember(&mut self, datagram: Datagram, stream: Stream) {
        self.datagrams.retain(|(known, _)| *known != datagram);
        self.datagrams.truncate(MOST_DATAGRAMS - 1);
        self.datagrams.push_front((datagram, stream));
    }

    /// A fragment that is not the first: `payload` bytes of a stream.
    fn later(&self, part: Fragment, payload: usize) -> Result<Option<Segment>, Skip> {
        let known = self.datagrams.iter().find(|(datagram, _)| *datagram == part.datagram);
        let Some((_, stream)) = known else { return Err(Skip::Fragment) };
        Ok(stream.map(|(direction, first)| Segment {
            direction,
            sequence: first.wrapping_add(part.offset),
            payload: payload as u32,
            syn: false,
        }))
    }
}

/// Skips the header of the link itself (<https://www.tcpdump.org/linktypes.html>).
fn begin(link: Link, rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    Ok(match link {
        Link::Ethernet => Layer::Ethernet,
        Link::Ip => Layer::Ip,
        Link::Ppp => Layer::Ppp,
        Link::PppoeSession => Layer::PppoeSession,
        Link::Mpls => Layer::Mpls,
        Link::Family => {
            // In the byte order of the machine that captured: small numbers tell which (LINKTYPE_NULL).
            let family = u32::from_le_bytes(*rest.take()?);
            let family = if family > 0xffff { family.swap_bytes() } else { family };
            match family {
                // AF_INET; AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, and Darwin.
                2 | 10 | 23 | 24 | 28 | 30 => Layer::Ip,
                _ => return Err(Skip::Family(family)),
            }
        }
        Link::Cooked => {
            let header: &[u8; 16] = rest.take()?;
            cooked(u16::from_be_bytes([header[2], header[3]]), u16::from_be_bytes([header[14], header[15]]))?
        }
        Link::Cooked2 => {
            let header: &[u8; 20] = rest.take()?;
            cooked(u16::from_be_bytes([header[8], header[9]]), u16::from_be_bytes([header[0], header[1]]))?
        }
    })
}

/// What follows a cooked header of Linux: from the device's type (`ARPHRD_*`) and the protocol (`ETH_P_*`).
fn cooked(device: u16, protocol: u16) -> Result<Layer, Skip> {
    match (device, protocol) {
        (801..=803, _) => Err(Skip::Wireless),
        (824, _) => Err(Skip::Netlink),
        (_, 4) => Ok(Layer::Llc),
        (_, 0x600..) => Ok(Layer::Ether(protocol)),
        _ => Err(Skip::Cooked(protocol)),
    }
}

/// The field before a frame's payload (IEEE 802.3 section 3.2.6).
fn type_or_length(number: u16) -> Layer {
    if number <= 1500 { Layer::Llc } else { Layer::Ether(number) }
}

fn ether(number: u16, rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    Ok(match number {
        0x0800 | 0x86dd => Layer::Ip,
        // IEEE 802.1Q, 802.1ad, and what came before that.
        0x8100 | 0x88a8 | 0x9100 | 0x9200 => {
            rest.skip(2)?;
            type_or_length(rest.take_u16()?)
        }
        0x8847 | 0x8848 => Layer::Mpls,
        0x8864 => Layer::PppoeSession,
        0x880b => Layer::Ppp,
        // Transparent Ethernet bridging (RFC 1701).
        0x6558 => Layer::Ethernet,
        _ => return Err(Skip::EtherType(number)),
    })
}

/// SNAP (RFC 1042); other LLC carries no IP.
fn llc(rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 6] = rest.kept.first_chunk().ok_or(Skip::Short)?;
    match header {
        [0xaa, 0xaa, 3, 0, 0, 0 | 0xf8] => {
            rest.skip(6)?;
            Ok(Layer::Ether(rest.take_u16()?))
        }
        _ => Err(Skip::Llc),
    }
}

/// PPP (RFC 1661), also with the address of HDLC (RFC 1662) or in Cisco's framing.
fn ppp(rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    match rest.kept {
        [0xff, 3, ..] => rest.skip(2)?,
        [0x0f | 0x8f, 0, ..] => {
            rest.skip(2)?;
            return Ok(Layer::Ether(rest.take_u16()?));
        }
        _ => {}
    }
    // An odd first byte is all of the number (RFC 1661 section 6.5).
    let first = rest.kept.first().copied().ok_or(Skip::Short)?;
    let number = if first % 2 == 1 { u16::from(rest.take::<1>()?[0]) } else { rest.take_u16()? };
    match number {
        0x0021 | 0x0057 => Ok(Layer::Ip),
        0x0281 | 0x0283 => Ok(Layer::Mpls),
        _ => Err(Skip::Ppp(number)),
    }
}

/// A stack of labels (RFC 3032). What is below them is not stated: IP, or Ethernet with or without a control word (RFC 4448).
fn mpls(rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    while rest.take::<4>()?[2] & 1 == 0 {}
    let frame_at = |start: usize| {
        let number = rest.kept.get(start + 12..start + 14).map(|two| u16::from_be_bytes([two[0], two[1]]));
        matches!(number, Some(0x0800 | 0x86dd | 0x8100 | 0x88a8 | 0x8864 | 0x8847))
    };
    match rest.kept.first().ok_or(Skip::Short)? >> 4 {
        4 | 6 if !frame_at(0) => Ok(Layer::Ip),
        0 if !frame_at(0) && frame_at(4) => {
            rest.skip(4)?;
            Ok(Layer::Ethernet)
        }
        _ if frame_at(0) => Ok(Layer::Ethernet),
        _ => Err(Skip::Mpls),
    }
}

/// What a header of IP says.
struct Ip {
    from: IpAddr,
    to: IpAddr,
    protocol: IpNumber,
    fragment: Option<Fragment>,
}

/// Reads the header of IP and its extensions. After it, `rest` ends where the packet does, and not with its frame.
fn ip(rest: &mut Rest<'_>) -> Result<Ip, Skip> {
    match rest.kept.first().ok_or(Skip::Short)? >> 4 {
        4 => ipv4(rest),
        6 => ipv6(rest),
        _ => Err(Skip::Damaged),
    }
}

fn ipv4(rest: &mut Rest<'_>) -> Result<Ip, Skip> {
    let header = Ipv4HeaderSlice::from_slice(rest.kept).map_err(|error| match error {
        ipv4::HeaderSliceError::Len(_) => Skip::Short,
        ipv4::HeaderSliceError::Content(_) => Skip::Damaged,
    })?;
    // A segment that the device is to split may be too long for the field, and has zero in it (Windows; Linux: BIG TCP).
    let length = match usize::from(header.total_len()) {
        0 => rest.whole,
        length => length,
    };
    let (kept, whole) = bounded(rest, header.slice().len(), length)?;
    *rest = Rest { kept, whole };
    let (from, to) = (header.source_addr().into(), header.destination_addr().into());
    let protocol = header.protocol();
    let fragment = header.is_fragmenting_payload().then(|| Fragment {
        datagram: Datagram { from, to, identification: header.identification().into(), protocol },
        offset: u32::from(header.fragments_offset().value()) * 8,
    });
    if fragment.is_some_and(|part| part.offset > 0) {
        return Ok(Ip { from, to, protocol, fragment });
    }
    let (extensions, protocol, kept, wrong) = Ipv4ExtensionsSlice::from_slice_lax(protocol, kept);
    if wrong.is_some() {
        return Err(Skip::Short);
    }
    let before = extensions.auth.map_or(0, |auth| auth.slice().len());
    *rest = Rest { kept, whole: whole.checked_sub(before).ok_or(Skip::Damaged)? };
    Ok(Ip { from, to, protocol, fragment })
}

fn ipv6(rest: &mut Rest<'_>) -> Result<Ip, Skip> {
    let header = Ipv6HeaderSlice::from_slice(rest.kept).map_err(|error| match error {
        ipv6::HeaderSliceError::Len(_) => Skip::Short,
        ipv6::HeaderSliceError::Content(_) => Skip::Damaged,
    })?;
    let before = header.slice().len();
    // Zero in a jumbogram (RFC 2675), and in a long segment that the device is to split.
    let length = match usize::from(header.payload_length()) {
        0 => rest.whole,
        length => before + length,
    };
    let (kept, whole) = bounded(rest, before, length)?;
    let (extensions, protocol, kept, wrong) = Ipv6ExtensionsSlice::from_slice_lax(header.next_header(), kept);
    if wrong.is_some() {
        return Err(Skip::Short);
    }
    *rest = Rest { kept, whole: whole.checked_sub(extensions.slice().len()).ok_or(Skip::Damaged)? };
    let (from, to) = (header.source_addr().into(), header.destination_addr().into());
    let fragment = extensions.is_fragmenting_payload().then(|| {
        extensions.into_iter().find_map(|extension| match extension {
            Ipv6ExtensionSlice::Fragment(part) if part.is_fragmenting_payload() => Some(Fragment {
                datagram: Datagram {
                    from,
                    to,
                    identification: part.identification(),
                    protocol: part.next_header(),
                },
                offset: u32::from(part.fragment_offset().value()) * 8,
            }),
            _ => None,
        })
    });
    Ok(Ip { from, to, protocol, fragment: fragment.flatten() })
}

/// What was kept and what there was behind `header` bytes of a packet that is `length` bytes long.
fn bounded<'a>(rest: &Rest<'a>, header: usize, length: usize) -> Result<(&'a [u8], usize), Skip> {
    let whole = length.checked_sub(header).ok_or(Skip::Damaged)?;
    let kept = &rest.kept[header..];
    Ok((&kept[..kept.len().min(whole)], whole))
}

/// TCP's first 20 bytes (RFC 9293 section 3.1), read here because its options may have been cut off.
fn tcp((from, to): (IpAddr, IpAddr), rest: &Rest<'_>) -> Result<Segment, Skip> {
    let tcp: &[u8; 20] =
        rest.kept.first_chunk().ok_or(if rest.whole < 20 { Skip::Damaged } else { Skip::Short })?;
    let header_bytes = usize::from(tcp[12] >> 4) * 4;
    let payload = rest.whole.checked_sub(header_bytes).filter(|_| header_bytes >= tcp.len());
    Ok(Segment {
        direction: Direction {
            from: (from, u16::from_be_bytes([tcp[0], tcp[1]])),
            to: (to, u16::from_be_bytes([tcp[2], tcp[3]])),
        },
        sequence: u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]),
        payload: payload.ok_or(Skip::Damaged)? as u32,
        syn: tcp[13] & 0x02 != 0,
    })
}

/// What is inside another protocol of IP.
fn inside(number: IpNumber, rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    match number {
        IpNumber::IPV4 | IpNumber::IPV6 => Ok(Layer::Ip),
        IpNumber::GRE => gre(rest),
        IpNumber::UDP => udp(rest),
        _ => Err(Skip::Protocol(number.0)),
    }
}

/// GRE (RFC 2784, 2890), that of PPTP (RFC 2637), and ERSPAN in it.
fn gre(rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    let flags = rest.take_u16()?;
    let number = rest.take_u16()?;
    let present = |flag: u16| usize::from(flags & flag != 0);
    match (flags & 7, number) {
        (0, 0x88be | 0x22eb) => return Err(Skip::Erspan),
        // Keepalives, and what RFC 1701 numbers otherwise than Ethernet.
        (0, ..0x600) => return Err(Skip::Gre),
        // Checksum, key and sequence number; with routing (RFC 1701), its length is not known.
        (0, _) if flags & 0x4000 == 0 => {
            rest.skip(4 * (present(0x8000) + present(0x2000) + present(0x1000)))?;
        }
        // Payload length and call, then sequence and acknowledgement numbers.
        (1, 0x880b) => rest.skip(4 + 4 * (present(0x1000) + present(0x0080)))?,
        _ => return Err(Skip::Gre),
    }
    Ok(Layer::Ether(number))
}

/// Tunnels over UDP: VXLAN (RFC 7348; 8472 is Linux's older port) and Geneve (RFC 8926).
fn udp(rest: &mut Rest<'_>) -> Result<Layer, Skip> {
    let header: &[u8; 8] = rest.take()?;
    let port = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let (from, to) = (port(0), port(2));
    match (to, rest.kept) {
        (4789 | 8472, [flags, ..]) if flags & 0x08 != 0 => {
            rest.skip(8)?;
            Ok(Layer::Ethernet)
        }
        (6081, [first, _, high, low, ..]) if first >> 6 == 0 && *high >= 6 => {
            let (options, number) = (usize::from(first & 0x3f) * 4, u16::from_be_bytes([*high, *low]));
            rest.skip(8 + options)?;
            Ok(Layer::Ether(number))
        }
        _ => Err(Skip::udp(from, to)),
    }
}

#[cfg(test)]
pub(crate) mod tests;
