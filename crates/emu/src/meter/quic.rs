//! QUIC by its spin bit.
//!
//! RFC 9000 section 17.4: a client inverts the bit once a round trip, a server reflects it, so that it changes once a round trip
//! in either direction. Endpoints need not do so: the bit may be constant, or random. Section 17.2 and RFC 8999 section 5: the
//! long header, with which a connection begins.

use fullpipe_units::{Duration, Time};

const LONG_HEADER: u8 = 0x80;
const FIXED_BIT: u8 = 0x40;
const SPIN_BIT: u8 = 0x20;
/// A client's first datagram has at least these bytes (RFC 9000 section 14.1).
const INITIAL_BYTES: u32 = 1200;
/// The longest connection identifier (RFC 9000 section 17.2).
const MAX_ID: u8 = 20;
/// The bit does not spin if more than one of so many round trips is shorter than the path.
const IMPOSSIBLE_SHARE: u64 = 10;

/// Whether a datagram is how a QUIC connection begins.
pub(super) fn begins(payload: u32, start: &[u8]) -> bool {
    let [first, version @ .., id] = start.first_chunk::<6>().copied().unwrap_or_default();
    payload >= INITIAL_BYTES
        && first & (LONG_HEADER | FIXED_BIT) == LONG_HEADER | FIXED_BIT
        && version != [0; 4]
        && id <= MAX_ID
}

/// The bit of the packets of one connection that enter the path.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spin {
    bit: Option<bool>,
    changed: Option<Time>,
}

impl Spin {
    /// A datagram enters the path; returns the time since the last change if it changes.
    pub(super) fn on_sent(&mut self, start: &[u8], at: Time) -> Option<Duration> {
        let first = *start.first()?;
        if first & LONG_HEADER != 0 {
            return None;
        }
        let bit = first & SPIN_BIT != 0;
        // What it is first says nothing about when it became that.
        if self.bit.replace(bit).is_none_or(|before| before == bit) {
            return None;
        }
        self.changed.replace(at).map(|before| at.saturating_since(before))
    }
}

/// Whether a bit spins, by its round trips: all, and those shorter than the path.
pub(super) fn spins(samples: u64, impossible: u64) -> bool {
    samples > 0 && impossible.saturating_mul(IMPOSSIBLE_SHARE) <= samples + impossible
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(given: u64) -> Time {
        Time::ZERO + Duration::from_millis(given)
    }

    #[test]
    fn spin_change_gives_elapsed_time() {
        let mut spin = Spin::default();
        let reported = |spin: &mut Spin, byte: u8, at| spin.on_sent(&[byte], ms(at)).map(Duration::as_millis);
        // Long headers have no such bit.
        assert_eq!(reported(&mut spin, 0xe0, 0), None);
        assert_eq!(reported(&mut spin, 0x40, 1), None);
        assert_eq!(reported(&mut spin, 0x60, 5), None, "nobody knows when it became 0");
        assert_eq!(reported(&mut spin, 0x60, 9), None);
        assert_eq!(reported(&mut spin, 0x40, 25), Some(20));
        assert_eq!(reported(&mut spin, 0x60, 46), Some(21));
        assert_eq!(spin.on_sent(&[], ms(50)), None);
    }

    #[test]
    fn random_or_constant_bit_never_spins() {
        assert!(spins(100, 3) && spins(1, 0));
        assert!(!spins(0, 0) && !spins(50, 50) && !spins(0, 3));
    }

    #[test]
    fn connection_starts_with_long_header() {
        let initial = [0xc3, 0, 0, 0, 1, 8, 0];
        assert!(begins(1200, &initial));
        assert!(!begins(1199, &initial));
        for (at, value) in [(0, 0x43), (0, 0x83), (4, 0), (5, 21)] {
            let mut other = initial;
            other[at] = value;
            assert!(!begins(1200, &other), "byte {at}");
        }
        assert!(!begins(1200, &initial[..5]) && !begins(1200, &[]));
    }
}
