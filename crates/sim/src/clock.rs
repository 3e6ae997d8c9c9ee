//! The coarse clock of the simulated hosts.

use fullpipe_units::{Duration, Time};

/// Ticks per second of a Debian or Ubuntu kernel (`CONFIG_HZ`).
pub(crate) const HZ: u32 = 250;
const NANOS_PER_JIFFY: u64 = 1_000_000_000 / HZ as u64;

/// A count of ticks since the start of the run (Linux: `jiffies`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Jiffies(u64);

impl Jiffies {
    /// The tick that holds `now`.
    #[inline]
    pub(crate) fn at(now: Time) -> Jiffies {
        Jiffies(now.as_nanos() / NANOS_PER_JIFFY)
    }

    /// `duration` later, rounded up to whole ticks as `usecs_to_jiffies` does. Timers fire at ticks.
    #[inline]
    pub(crate) fn plus(self, duration: Duration) -> Jiffies {
        Jiffies(self.0 + duration.as_nanos().div_ceil(NANOS_PER_JIFFY))
    }

    /// When the tick begins.
    #[inline]
    pub(crate) fn start(self) -> Time {
        Time::from_nanos(self.0 * NANOS_PER_JIFFY)
    }

    /// The lower 32 bits (Linux: `tcp_jiffies32`).
    #[inline]
    pub(crate) fn as_u32(self) -> u32 {
        self.0 as u32
    }
}
