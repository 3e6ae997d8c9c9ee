//! Which flow a packet belongs to, where no scenario says so: a hash of addresses, protocol and ports.
//!
//! All fragments of a datagram share one, because only the first has ports; so do packets of protocols without ports. Header
//! layout: RFC 791, RFC 8200 section 4.

use fullpipe_path::{Packet, mix};

/// Protocol numbers of IP.
pub(crate) const TCP: u8 = 6;
pub(crate) const UDP: u8 = 17;

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const DESTINATION: u8 = 60;
/// IPv6 headers that are looked through at most: more is no traffic but an attempt to be slow.
const MOST_HEADERS: usize = 8;

/// The class of an IP packet: below [`Packet::CLASSES`], the same for all packets of a flow in one direction. 0 for what is no IP
/// packet.
pub(crate) fn hash(ip: &[u8]) -> u32 {
    let found = match ip.first().map(|first| first >> 4) {
        Some(4) => ipv4(ip),
        Some(6) => ipv6(ip),
        _ => None,
    };
    let Some((addresses, protocol, ports)) = found else { return 0 };
    let words = addresses.chunks_exact(4).chain(ports);
    let hash = words.fold(mix(u64::from(protocol)), |hash, word| {
        mix(hash ^ u64::from(u32::from_be_bytes([word[0], word[1], word[2], word[3]])))
    });
    (hash % u64::from(Packet::CLASSES)) as u32
}

/// Both addresses, the protocol, and both ports if there are any.
type Tuple<'a> = (&'a [u8], u8, Option<&'a [u8]>);

fn ipv4(ip: &[u8]) -> Option<Tuple<'_>> {
    let addresses = ip.get(12..20)?;
    let header = usize::from(ip[0] & 0x0f) * 4;
    // More fragments follow, or this is not the first.
    let fragment = ip[6] & 0x3f != 0 || ip[7] != 0;
    let ports = if fragment || header < 20 { None } else { ports(ip, ip[9], header) };
    Some((addresses, ip[9], ports))
}

fn ipv6(ip: &[u8]) -> Option<Tuple<'_>> {
    let addresses = ip.get(8..40)?;
    let (mut next, mut at) = (ip[6], 40);
    for _ in 0..MOST_HEADERS {
        if !matches!(next, HOP_BY_HOP | ROUTING | DESTINATION) {
            break;
        }
        let Some(header) = ip.get(at..at + 2) else { return Some((addresses, next, None)) };
        (next, at) = (header[0], at + 8 + 8 * usize::from(header[1]));
    }
    if next == FRAGMENT {
        // Every fragment names the protocol of the first's next header.
        let protocol = ip.get(at).copied().unwrap_or(next);
        return Some((addresses, protocol, None));
    }
    Some((addresses, next, ports(ip, next, at)))
}

fn ports(ip: &[u8], protocol: u8, at: usize) -> Option<&[u8]> {
    if matches!(protocol, TCP | UDP) { ip.get(at..at + 4) } else { None }
}

/// The number of the flow, below `flows`, that packets of these ports belong to, source and destination. Our own flows have the
/// same port at both ends; a program has one at its server's.
pub(crate) fn flow_of_ports((source, destination): (u16, u16), first: u16, flows: u32) -> Option<u32> {
    let number = |port: u16| u32::from(port.wrapping_sub(first));
    [destination, source].map(number).into_iter().find(|flow| *flow < flows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn v4(protocol: u8, ports: [u16; 2]) -> Vec<u8> {
        let mut ip = vec![0x45, 0, 0, 28, 0, 0, 0, 0, 64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        ip.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
        ip.extend([0; 4]);
        ip
    }

    fn v6(next: u8, rest: &[u8]) -> Vec<u8> {
        let mut ip = vec![0x60, 0, 0, 0, 0, 0, next, 64];
        ip.extend([1; 16]);
        ip.extend([2; 16]);
        ip.extend(rest);
        ip
    }

    #[test]
    fn flows_differ_by_five_tuple() {
        let base = v4(TCP, [1000, 443]);
        assert_eq!(hash(&base), hash(&base));
        assert!(hash(&base) < Packet::CLASSES);
        let mut other = base.clone();
        other[15] = 9;
        for differing in [v4(TCP, [1001, 443]), v4(TCP, [1000, 80]), v4(UDP, [1000, 443]), other] {
            assert_ne!(hash(&base), hash(&differing));
        }
    }

    #[test]
    fn changes_within_flow_keep_hash() {
        let base = v4(UDP, [1000, 443]);
        for at in [1, 3, 4, 5, 8, 10, 11, 24] {
            let mut changed = base.clone();
            changed[at] ^= 0x5a;
            assert_eq!(hash(&base), hash(&changed), "byte {at}");
        }
        // Options move the ports.
        let mut options = base.clone();
        options[0] = 0x46;
        options.splice(20..20, [1; 4]);
        assert_eq!(hash(&base), hash(&options));
    }

    #[test]
    fn fragments_share_one_class() {
        let fragment = |at: usize, value: u8, ports| {
            let mut ip = v4(UDP, ports);
            ip[at] = value;
            hash(&ip)
        };
        let first = fragment(6, 0x20, [1, 2]);
        assert_eq!([fragment(7, 5, [9, 9]), fragment(6, 0x01, [8, 1])], [first; 2]);
        // Do-not-fragment is no fragment.
        assert_ne!(fragment(6, 0x40, [1, 2]), first);
        let v6_fragment = |offset: u8, rest: [u8; 4]| {
            let mut header = vec![UDP, 0, 0, offset, 0, 0, 0, 1];
            header.extend(rest);
            hash(&v6(FRAGMENT, &header))
        };
        assert_eq!(v6_fragment(1, [0, 1, 0, 2]), v6_fragment(8, [9; 4]));
    }

    #[test]
    fn icmp_between_hosts_is_one_flow() {
        assert_eq!(hash(&v4(1, [0x0800, 7])), hash(&v4(1, [0, 9])));
        assert_eq!(hash(&v6(58, &[128, 0, 1, 2])), hash(&v6(58, &[129, 0, 3, 4])));
    }

    #[test]
    fn ports_follow_ipv6_extension_headers() {
        let plain = hash(&v6(TCP, &[3, 232, 1, 187]));
        let mut options = vec![ROUTING, 0, 0, 0, 0, 0, 0, 0, TCP, 1];
        options.extend([0; 14]);
        options.extend([3, 232, 1, 187]);
        assert_eq!(hash(&v6(HOP_BY_HOP, &options)), plain);
        assert_ne!(hash(&v6(TCP, &[3, 232, 1, 188])), plain);
    }

    #[test]
    fn truncated_or_endless_packets_are_hashed() {
        let whole = v4(TCP, [1, 2]);
        for length in 0..whole.len() {
            assert!(hash(&whole[..length]) < Packet::CLASSES);
        }
        assert_eq!([hash(&[]), hash(&[0x45; 5]), hash(&[0x60; 39]), hash(&[0xff; 60])], [0; 4]);
        // A header of extensions that refers to itself.
        let endless = [HOP_BY_HOP, 0, 0, 0, 0, 0, 0, 0].repeat(100);
        assert!(hash(&v6(HOP_BY_HOP, &endless)) < Packet::CLASSES);
        assert!(hash(&v6(HOP_BY_HOP, &[HOP_BY_HOP, 255])) < Packet::CLASSES);
    }
}
