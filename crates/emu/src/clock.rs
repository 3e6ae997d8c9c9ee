//! The only clock of the workspace: the monotonic clock, as [`Time`] since the start of a run.

use fullpipe_units::{Duration, Time};

use crate::sys::{self, datagram::realtime_offset_ns};

/// Time since an origin. Copies share the origin, so that all threads of a run agree.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Clock {
        Clock { origin_ns: sys::monotonic_ns() }
    }

    /// A clock that will read zero `ahead` from now; until then it reads zero as well.
    pub fn start_in(ahead: Duration) -> Clock {
        Clock { origin_ns: sys::monotonic_ns() + ahead.as_nanos() }
    }

    /// Time since the start.
    pub fn now(&self) -> Time {
        Time::from_nanos(sys::monotonic_ns().saturating_sub(self.origin_ns))
    }

    /// How long until `time`; zero if it has passed.
    pub fn until(&self, time: Time) -> Duration {
        time.saturating_since(self.now())
    }

    /// Sleeps until `time`; returns at once if it has passed.
    pub fn sleep_until(&self, time: Time) {
        sys::sleep_until_ns(self.origin_ns.saturating_add(time.as_nanos()));
    }
}

/// Converts the kernel's stamps, which use CLOCK_REALTIME, into times of a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StampClock {
    offset_ns: i64,
    within_ns: u64,
}

impl StampClock {
    /// Measures the offset between the two clocks.
    pub(crate) fn now() -> StampClock {
        let (offset_ns, within_ns) = realtime_offset_ns();
        StampClock { offset_ns, within_ns }
    }

    /// The time of a stamp; zero if it was before the start.
    pub(crate) fn since_start(self, stamp_ns: u64, clock: Clock) -> Time {
        let monotonic = stamp_ns.saturating_add_signed(-self.offset_ns);
        Time::from_nanos(monotonic.saturating_sub(clock.origin_ns))
    }

    /// The error of the times: the time to read the clocks, and how far they have moved apart since.
    pub(crate) fn error_ns(self) -> u64 {
        let (offset_ns, within_ns) = realtime_offset_ns();
        self.within_ns + within_ns + offset_ns.abs_diff(self.offset_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clock_advances_and_sleeps_long_enough() {
        let clock = Clock::start();
        let wake = Time::from_micros(2_000);
        clock.sleep_until(wake);
        assert!(clock.now() >= wake);
        assert_eq!(clock.until(Time::ZERO), Duration::ZERO);
    }

    #[test]
    fn before_its_start_it_reads_zero() {
        assert_eq!(Clock::start_in(Duration::from_secs(3600)).now(), Time::ZERO);
    }
}
