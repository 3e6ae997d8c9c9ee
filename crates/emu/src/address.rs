//! Addresses of emulated paths: free blocks of 100.64.0.0/10 (RFC 6598), nested like the shells that use them.
//!
//! The outermost shell takes a /16, a shell inside it a /20 of that, and so on by four bits to a /28. So the outer ends
//! can route to everything inside them without translating addresses. Each has the same block of IPv6 behind a unique local prefix
//! (RFC 4193).

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::EmuError;
use crate::sys::process;
use crate::tun::DEVICE_PREFIX;

const ALL: Block = Block { base: u32::from_be_bytes([100, 64, 0, 0]), prefix: 10 };
const OUTERMOST_PREFIX: u32 = 16;
const BITS_A_LEVEL: u32 = 4;
const INNERMOST_PREFIX: u32 = 28;
/// The first 96 bits of our IPv6 addresses; an IPv4 address is the rest. The 40 bits after fd are random (RFC 4193 section 3.2).
const UNIQUE_LOCAL: u128 = 0xfd3f_9c1d_7a42_0000_0000_0000_0000_0000;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    base: u32,
    prefix: u32,
}

impl Block {
    fn of(address: Ipv4Addr, prefix: u32) -> Block {
        Block { base: u32::from(address) & mask(prefix), prefix }
    }

    /// Address of the end outside the shell.
    pub(crate) fn outer(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 1)
    }

    /// Address of the end inside the shell.
    pub(crate) fn inner(self) -> Ipv4Addr {
        Ipv4Addr::from(self.base + 2)
    }

    /// The IPv6 address of the end outside the shell.
    pub(crate) fn outer6(self) -> Ipv6Addr {
        unique_local(self.outer())
    }

    /// The IPv6 address of the end inside the shell.
    pub(crate) fn inner6(self) -> Ipv6Addr {
        unique_local(self.inner())
    }

    /// Length of the IPv6 prefix in bits.
    pub(crate) fn prefix6(self) -> u8 {
        96 + self.prefix()
    }

    /// Length of the prefix in bits.
    pub(crate) fn prefix(self) -> u8 {
        self.prefix as u8
    }

    /// How many shells are around the one that this block belongs to.
    pub(crate) fn level(self) -> u32 {
        (self.prefix - OUTERMOST_PREFIX) / BITS_A_LEVEL
    }

    fn contains(self, address: Ipv4Addr) -> bool {
        u32::from(address) & mask(self.prefix) == self.base
    }

    fn overlaps(self, other: Block) -> bool {
        let shorter = mask(self.prefix.min(other.prefix));
        self.base & shorter == other.base & shorter
    }
}

fn unique_local(address: Ipv4Addr) -> Ipv6Addr {
    Ipv6Addr::from(UNIQUE_LOCAL | u128::from(u32::from(address)))
}

fn mask(prefix: u32) -> u32 {
    u32::MAX.checked_shl(32 - prefix).unwrap_or(0)
}

/// Where the outer end of a shell is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    /// In the calling thread's network namespace, beside its interfaces.
    Caller,
    /// In a network namespace of its own, which has no other interface.
    Own,
}

/// A block that no interface beside the outer end uses. The calling thread is in the network namespace that the shell is started in.
pub(crate) fn free_block(outside: Outside) -> Result<Block, EmuError> {
    let interfaces = process::interfaces().map_err(|error| EmuError::system("list the interfaces", error))?;
    choose(&interfaces, outside).ok_or_else(|| EmuError::Unsupported {
        field: "shell".to_owned(),
        reason: "every block of 100.64.0.0/10 is in use, or shells are nested more than four deep".to_owned(),
        fix: "close other shells".to_owned(),
    })
}

fn choose(interfaces: &[(String, Ipv4Addr, u32)], outside: Outside) -> Option<Block> {
    // Inside a shell: its inner end is the device that the block's second address is on.
    let around = interfaces.iter().find_map(|(name, address, prefix)| {
        let block = Block::of(*address, *prefix);
        let is_inner = name.starts_with(DEVICE_PREFIX) && ALL.contains(*address) && block.inner() == *address;
        is_inner.then_some(block)
    });
    if outside == Outside::Own {
        let prefix = around.map_or(OUTERMOST_PREFIX, |block| block.prefix + BITS_A_LEVEL);
        return (prefix <= INNERMOST_PREFIX).then_some(Block { base: ALL.base, prefix });
    }
    let (parent, prefix) = match around {
        Some(block) => (block, block.prefix + BITS_A_LEVEL),
        None => (ALL, OUTERMOST_PREFIX),
    };
    if prefix > INNERMOST_PREFIX {
        return None;
    }
    // The first block of a parent holds the parent's own two addresses.
    let first = u32::from(around.is_some());
    let free = |candidate: &Block| {
        interfaces.iter().all(|(_, address, prefix)| {
            let used = Block::of(*address, *prefix);
            Some(used) == around || !candidate.overlaps(used)
        })
    };
    let count = 1u32 << (prefix - parent.prefix);
    (first..count).map(|index| Block { base: parent.base + (index << (32 - prefix)), prefix }).find(free)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(name: &str, address: [u8; 4], prefix: u32) -> (String, Ipv4Addr, u32) {
        (name.to_owned(), Ipv4Addr::from(address), prefix)
    }

    #[test]
    fn sibling_shells_take_successive_blocks() {
        let lan = interface("eth0", [192, 168, 1, 5], 24);
        let first = choose(std::slice::from_ref(&lan), Outside::Caller).unwrap();
        assert_eq!((first.outer(), first.inner()), ([100, 64, 0, 1].into(), [100, 64, 0, 2].into()));
        assert_eq!(first.level(), 0);
        let outer_end = interface("fullpipe0", [100, 64, 0, 1], 16);
        assert_eq!(
            choose(&[lan, outer_end], Outside::Caller).unwrap().outer(),
            Ipv4Addr::from([100, 65, 0, 1])
        );
    }

    #[test]
    fn nested_shell_subdivides_outer_block() {
        let inner_end = interface("fullpipe0", [100, 64, 0, 2], 16);
        let nested = choose(std::slice::from_ref(&inner_end), Outside::Caller).unwrap();
        assert_eq!((nested.outer(), nested.prefix(), nested.level()), ([100, 64, 16, 1].into(), 20, 1));
        let sibling = interface("fullpipe1", [100, 64, 16, 1], 20);
        assert_eq!(
            choose(&[inner_end, sibling], Outside::Caller).unwrap().outer(),
            Ipv4Addr::from([100, 64, 32, 1])
        );
        for outside in [Outside::Caller, Outside::Own] {
            assert_eq!(choose(&[interface("fullpipe0", [100, 64, 17, 18], 28)], outside), None);
        }
    }

    #[test]
    fn fully_used_range_has_no_block() {
        assert_eq!(choose(&[interface("wg0", [100, 70, 3, 9], 10)], Outside::Caller), None);
    }

    #[test]
    fn own_outer_end_takes_first_block() {
        let alone = choose(&[interface("wg0", [100, 70, 3, 9], 10)], Outside::Own).unwrap();
        assert_eq!((alone.outer(), alone.level()), ([100, 64, 0, 1].into(), 0));
        let inside = choose(&[interface("fullpipe0", [100, 64, 0, 2], 16)], Outside::Own).unwrap();
        assert_eq!((inside.outer(), inside.prefix(), inside.level()), ([100, 64, 0, 1].into(), 20, 1));
    }

    #[test]
    fn ipv6_blocks_nest_like_ipv4() {
        let block = Block::of([100, 64, 16, 1].into(), 20);
        let addresses = [block.outer6(), block.inner6()].map(|address| address.to_string());
        assert_eq!(addresses, ["fd3f:9c1d:7a42::6440:1001", "fd3f:9c1d:7a42::6440:1002"]);
        assert_eq!(block.prefix6(), 116);
        assert!(block.outer6().is_unique_local());
    }
}
