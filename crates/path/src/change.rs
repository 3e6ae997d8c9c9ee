//! Changes of a path while packets cross it.
//!
//! A change has the effect that the same change in the element's [`Schedule`](crate::config::Schedule) would have had:
//! [`ElementConfig::change`](crate::config::ElementConfig::change) writes it there, and [`Chain::change`](crate::Chain::change) applies it to the packets that are
//! on their way. A rate holds from the very nanosecond; a delay or a loss for packets that come after it, because those
//! that came at that nanosecond have passed.

use crate::config::Probability;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// What becomes of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The rate of a link.
    Rate(Rate),
    /// The delay of a delay element.
    Delay(Duration),
    /// The probability of independent loss.
    Loss(Probability),
    /// How many bytes a queue takes, of any number of packets. What is in it stays. A schedule has no buffers, so only the chain changes.
    Buffer(Bytes),
}

impl Change {
    /// When a change made at `now` begins to hold. `passed`: what happens at `now` has happened.
    pub const fn from(&self, now: Time, passed: bool) -> Time {
        match self {
            Change::Delay(_) | Change::Loss(_) if passed => Time::from_nanos(now.as_nanos() + 1),
            _ => now,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_sec(rate * 1_000_000)
    }

    #[test]
    fn change_spares_packets_already_passed() {
        let now = Time::from_nanos(7);
        let delay = Change::Delay(Duration::ZERO);
        assert_eq!((delay.from(now, false), delay.from(now, true)), (now, Time::from_nanos(8)));
        assert_eq!(Change::Rate(mbit(1)).from(now, true), now);
    }
}
