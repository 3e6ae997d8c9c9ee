//! The link types of captures (<https://www.tcpdump.org/linktypes.html>).

/// What a packet begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Link {
    /// Ethernet.
    Ethernet,
    /// IPv4 or IPv6.
    Ip,
    /// An address family of four bytes, then IP: `NULL` and `LOOP`.
    Family,
    /// Linux's cooked header, version 1 (`tcpdump -i any`).
    Cooked,
    /// Linux's cooked header, version 2.
    Cooked2,
    /// PPP, also in HDLC's or Cisco's framing.
    Ppp,
    /// A session header of PPPoE.
    PppoeSession,
    /// MPLS labels.
    Mpls,
}

impl Link {
    /// From the number in the file; `None` for those that are not read.
    pub(crate) fn of(number: i32) -> Option<Link> {
        Some(match number {
            0 | 108 => Link::Family,
            1 => Link::Ethernet,
            9 | 50 | 104 => Link::Ppp,
            // `DLT_RAW` of most systems and of OpenBSD, which some files have; LINKTYPE_RAW, IPV4 and IPV6.
            12 | 14 | 101 | 228 | 229 => Link::Ip,
            51 => Link::PppoeSession,
            113 => Link::Cooked,
            219 => Link::Mpls,
            276 => Link::Cooked2,
            _ => return None,
        })
    }

    /// The name of a link type that is not read, e.g. "IEEE 802.11".
    pub(crate) fn name(number: i32) -> String {
        let name = match number {
            6 => "IEEE 802.5 Token Ring",
            7 => "ARCNET",
            8 => "SLIP",
            10 => "FDDI",
            100 => "LLC/SNAP over ATM",
            105 => "IEEE 802.11",
            107 => "Frame Relay",
            109 => "OpenBSD enc",
            117 => "OpenBSD pflog",
            119 => "IEEE 802.11 with a Prism header",
            122 => "IP over Fibre Channel",
            127 => "IEEE 802.11 with a radiotap header",
            129 => "ARCNET",
            138 => "IP over IEEE 1394",
            143 => "DOCSIS",
            147..=162 => "a private link type",
            163 => "IEEE 802.11 with an AVS header",
            187 | 201 | 251 | 254 | 255 | 256 | 272 => "Bluetooth",
            189 | 220 | 249 | 266 => "USB",
            192 => "PPI",
            195 | 215 | 230 | 283 => "IEEE 802.15.4",
            197 => "ERF",
            204 => "PPP with a direction",
            227 => "CAN",
            239 => "Linux NFLOG",
            242 => "IP over InfiniBand",
            247 => "InfiniBand",
            252 => "Wireshark's exported PDUs",
            253 => "Linux netlink",
            271 => "Linux vsock",
            289 => "Windows ETW",
            _ => return format!("link type {number}"),
        };
        format!("{name}, link type {number}")
    }

    /// How to get a capture that can be read instead of one of that link type.
    pub(crate) fn way_out(number: i32) -> &'static str {
        match number {
            105 | 119 | 127 | 163 | 192 => {
                "capture without monitor mode (without `-I`), so that packets have Ethernet headers"
            }
            _ => "capture on an Ethernet or IP interface, e.g. `tcpdump -i eth0 -w FILE.pcap`",
        }
    }
}
