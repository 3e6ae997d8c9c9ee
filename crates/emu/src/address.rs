//! Addresses of emulated paths: free blocks of 100.64.0.0/10 (RFC 6598), nested like the shells that use them.
//!
//! The outermost shell takes a /16, a shell inside it a /20 of that, and so on by four bits to a /28. So the outer ends
//! can route to everything inside them without translating addresses.

use std::net::Ipv4Addr;

use crate::EmuError;
use crate::sys::process;
use crate::tun::DEVICE_PREFIX;

const ALL: Block = Block { base: u32::from_be_bytes([100, 64, 0, 0]), prefix: 10 };
const OUTERMOST_PREFIX: u32 = 16;
const BITS_A_LEVEL: u32 = 4;
const INNERMOST_PREFIX: u32 = 28;

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

fn mask(prefix: u32) -> u32 {
    u32::MAX.checked_shl(32 - prefix).unwrap_or(0)
}

/// A block that no interface of the calling thread's network namespace uses.
pub(crate) fn free_block() -> Result<Block, EmuError> {
    let interfaces = process::interfaces().map_err(|error| EmuError::system("list the interfaces", error))?;
    choose(&interfaces).ok_or_else(|| EmuError::Unsupported {
        field: "shell".to_owned(),
        reason: "every block of 100.64.0.0/10 is in use, or shells are nested more than four deep".to_owned(),
        fix: "close other shells".to_owned(),
    })
}

fn choose(interfaces: &[(String, Ipv4Addr, u32)]) -> Option<Block> {
    // Inside a shell: its inner end is the device that the block's second address is on.
    let around = interfaces.iter().find_map(|(name, address, prefix)| {
        let block = Block::of(*address, *prefix);
        let is_inner = name.starts_with(DEVICE_PREFIX) && ALL.contains(*address) && block.inner() == *address;
        is_inner.then_some(block)
    });
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
    fn the_first_shell_takes_the_first_block_and_its_sibling_the_next() {
        let lan = interface("eth0", [192, 168, 1, 5], 24);
        let first = choose(std::slice::from_ref(&lan)).unwrap();
        assert_eq!((first.outer(), first.inner()), ([100, 64, 0, 1].into(), [100, 64, 0, 2].into()));
        assert_eq!(first.level(), 0);
        let outer_end = interface("fullpipe0", [100, 64, 0, 1], 16);
        assert_eq!(choose(&[lan, outer_end]).unwrap().outer(), Ipv4Addr::from([100, 65, 0, 1]));
    }

    #[test]
    fn a_nested_shell_takes_a_part_of_the_block_around_it() {
        let inner_end = interface("fullpipe0", [100, 64, 0, 2], 16);
        let nested = choose(std::slice::from_ref(&inner_end)).unwrap();
        assert_eq!((nested.outer(), nested.prefix(), nested.level()), ([100, 64, 16, 1].into(), 20, 1));
        let sibling = interface("fullpipe1", [100, 64, 16, 1], 20);
        assert_eq!(choose(&[inner_end, sibling]).unwrap().outer(), Ipv4Addr::from([100, 64, 32, 1]));
        assert_eq!(choose(&[interface("fullpipe0", [100, 64, 17, 18], 28)]), None);
    }

    #[test]
    fn a_network_that_uses_the_whole_range_leaves_no_block() {
        assert_eq!(choose(&[interface("wg0", [100, 70, 3, 9], 10)]), None);
    }
}
