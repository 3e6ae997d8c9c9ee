//! The only clock of the workspace: the monotonic clock, as [`Time`] since the start of a run.

use fullpipe_units::{Duration, Time};

use crate::sys;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_forward_and_sleeps_long_enough() {
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
