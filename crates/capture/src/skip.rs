//! The packets of a capture that no flow has, counted by kind.

use std::collections::BTreeMap;
use std::fmt;

use etherparse::IpNumber;

use crate::link::Link;

/// The most kinds that are counted one by one: random bytes have many.
const MOST_KINDS: usize = 1000;
/// The most kinds in a sentence.
const NAMED: usize = 5;

/// Why a packet is not read as a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Skip {
    /// It is of this interface, whose link type is not read.
    Interface(u32, i32),
    /// A record without a time stamp (pcapng's simple packet block).
    Untimed,
    /// A record in the form that pcapng had before 2009 (packet block).
    Obsolete,
    /// Its payload has another EtherType.
    EtherType(u16),
    /// IEEE 802.2 LLC without IP.
    Llc,
    /// Another address family.
    Family(u32),
    /// Another protocol behind Linux's cooked header.
    Cooked(u16),
    /// Seen by Linux's `any` device on a wireless one in monitor mode.
    Wireless,
    /// A message of netlink.
    Netlink,
    /// Another protocol of PPP.
    Ppp(u16),
    /// Labels before something that is not IP.
    Mpls,
    /// GRE that is not read.
    Gre,
    /// ERSPAN: mirrored frames.
    Erspan,
    /// Another protocol of IP.
    Protocol(u8),
    /// UDP, and the known protocol on its port.
    Udp(&'static str),
    /// A fragment whose first one is missing.
    Fragment,
    /// The capture kept too little of it.
    Short,
    /// Its headers contradict themselves.
    Damaged,
    /// Too many headers in each other.
    Nested,
    /// All kinds beyond the most.
    Other,
}

impl Skip {
    /// A UDP packet between these ports.
    pub(crate) fn udp(from: u16, to: u16) -> Skip {
        let named = |port| {
            Some(match port {
                443 => "QUIC",
                500 | 4500 => "IPsec",
                1194 => "OpenVPN",
                1701 => "L2TP",
                2152 => "GTP-U",
                3544 => "Teredo",
                4790 => "VXLAN-GPE",
                51820 => "WireGuard",
                _ => return None,
            })
        };
        Skip::Udp(named(to).or(named(from)).unwrap_or_default())
    }

    /// What somebody can do to have such packets read.
    fn advice(self) -> Option<&'static str> {
        match self {
            Skip::Interface(_, link) => Some(Link::way_out(link)),
            Skip::Wireless => Some(Link::way_out(127)),
            Skip::Short => Some("keep at least 128 bytes of each packet: `tcpdump -s 128`"),
            Skip::Untimed | Skip::Obsolete => Some("rewrite the file: `editcap -F pcap IN OUT`"),
            Skip::Erspan => Some(
                "remove what is before the mirrored frames: `editcap -C 50 IN OUT` for type II over IPv4",
            ),
            Skip::Protocol(50) | Skip::Udp("IPsec" | "OpenVPN" | "WireGuard") => {
                Some("capture on the tunnel's own interface, where packets are not encrypted")
            }
            Skip::Udp("L2TP" | "GTP-U" | "Teredo" | "VXLAN-GPE") => {
                Some("capture on the tunnel's own interface, where packets have no tunnel header")
            }
            _ => None,
        }
    }
}

/// Continues "3 packets were skipped: 3 ...".
impl fmt::Display for Skip {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match *self {
            Skip::Interface(number, link) => {
                return write!(out, "of interface {number} ({})", Link::name(link));
            }
            Skip::Untimed => "without a time stamp",
            Skip::Obsolete => "in pcapng's obsolete form",
            Skip::EtherType(0x0806) => "ARP",
            Skip::EtherType(number) => {
                let name = match number {
                    0x22f3 => "TRILL",
                    0x8809 => "LACP",
                    0x8863 => "PPPoE discovery",
                    0x888e => "IEEE 802.1X",
                    0x88cc => "LLDP",
                    0x88e5 => "MACsec",
                    0x88e7 => "IEEE 802.1ah",
                    0x88f7 => "PTP",
                    0x8906 => "FCoE",
                    0x8915 => "RoCE",
                    0x894f => "NSH",
                    0x9000 => "loopback test",
                    _ => return write!(out, "of EtherType 0x{number:04x}"),
                };
                return write!(out, "of EtherType 0x{number:04x} ({name})");
            }
            Skip::Llc => "IEEE 802.2 LLC without IP",
            Skip::Family(number) => return write!(out, "of address family {number}"),
            Skip::Cooked(number) => return write!(out, "of Linux's protocol 0x{number:04x}"),
            Skip::Wireless => "IEEE 802.11",
            Skip::Netlink => "netlink",
            Skip::Ppp(number @ (0x00fb | 0x00fd)) => {
                return write!(out, "of PPP protocol 0x{number:04x} (compressed or encrypted)");
            }
            Skip::Ppp(number @ 0x8000..) => return write!(out, "of PPP protocol 0x{number:04x} (control)"),
            Skip::Ppp(number) => return write!(out, "of PPP protocol 0x{number:04x}"),
            Skip::Mpls => "MPLS without IP or Ethernet",
            Skip::Gre => "GRE of a version or with a payload that is not read",
            Skip::Erspan => "ERSPAN",
            Skip::Protocol(50) => "ESP (encrypted)",
            Skip::Protocol(number) => match IpNumber(number).keyword_str() {
                Some(name) => name,
                None => return write!(out, "of IP protocol {number}"),
            },
            Skip::Udp("") => "UDP",
            Skip::Udp(name) => return write!(out, "UDP on the port of {name}"),
            Skip::Fragment => "IP fragments without their first one",
            Skip::Short => "cut off within their headers",
            Skip::Damaged => "with damaged headers",
            Skip::Nested => "with too many nested headers",
            Skip::Other => "of other kinds",
        };
        out.write_str(text)
    }
}

/// How many packets were skipped for each reason.
#[derive(Default)]
pub(crate) struct Skipped(BTreeMap<Skip, u64>);

impl Skipped {
    pub(crate) fn count(&mut self, why: Skip) {
        let known = self.0.len() < MOST_KINDS || self.0.contains_key(&why);
        *self.0.entry(if known { why } else { Skip::Other }).or_default() += 1;
    }

    /// Kinds and their packets, most packets first.
    pub(crate) fn kinds(&self) -> Vec<(String, u64)> {
        self.sorted().into_iter().map(|(why, packets)| (why.to_string(), packets)).collect()
    }

    /// A link type, if the packets were skipped for nothing but that it is not read.
    pub(crate) fn only_link(&self) -> Option<i32> {
        let mut links = self.0.keys().map(|why| match why {
            Skip::Interface(_, link) => Some(*link),
            _ => None,
        });
        let first = links.next()??;
        links.all(|link| link.is_some()).then_some(first)
    }

    fn sorted(&self) -> Vec<(Skip, u64)> {
        let mut kinds: Vec<_> = self.0.iter().map(|(why, packets)| (*why, *packets)).collect();
        // Stable: equal numbers stay in the order of the kinds.
        kinds.sort_by_key(|(_, packets)| std::cmp::Reverse(*packets));
        kinds
    }

    /// One sentence with the most frequent kinds, and one for each piece of advice.
    pub(crate) fn notes(&self) -> Vec<String> {
        let kinds = self.sorted();
        let total: u64 = kinds.iter().map(|(_, packets)| packets).sum();
        if total == 0 {
            return Vec::new();
        }
        let mut named: Vec<String> =
            kinds.iter().take(NAMED).map(|(why, packets)| format!("{packets} {why}")).collect();
        let others: u64 = kinds.iter().skip(NAMED).map(|(_, packets)| packets).sum();
        if others > 0 {
            named.push(format!("{others} others"));
        }
        let verb = if total == 1 { "packet was" } else { "packets were" };
        let mut notes = vec![format!("{total} {verb} skipped: {}", named.join(", "))];
        let mut given = Vec::new();
        for (why, packets) in kinds {
            if let Some(advice) = why.advice().filter(|advice| given.len() < NAMED && !given.contains(advice))
            {
                notes.push(format!("to read the {packets} {why}: {advice}"));
                given.push(advice);
            }
        }
        notes
    }
}
