//! When the next packet may leave: s2n-quic asks the controller.

use fullpipe_cc::Limits;
use fullpipe_quic_driver::pacing::quantum;
use fullpipe_units::{Bytes, Duration, Time};

/// A pacer that wakes up late makes up for at least so much. s2n-quic's timers are as fine as a millisecond.
const LEAST_CREDIT: Duration = Duration::from_millis(2);

/// Sends bursts of a quantum, spaced by the pacing rate.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pacer {
    /// When the present burst may leave.
    departure: Time,
    /// Its bytes that have left.
    left: u64,
}

impl Pacer {
    /// When the next packet may leave.
    pub(crate) const fn departure(&self) -> Time {
        self.departure
    }

    /// A packet left.
    pub(crate) fn on_sent(&mut self, now: Time, bytes: u32, limits: &Limits) {
        self.left += bytes as u64;
        if self.left < quantum(limits) {
            return;
        }
        let interval = limits.pacing_rate.time_for(Bytes::new(core::mem::take(&mut self.left)));
        let credit = interval.max(LEAST_CREDIT);
        let late = Time::ZERO + now.saturating_since(Time::ZERO + credit);
        self.departure = self.departure.max(late).saturating_add(interval);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Rate;

    const LIMITS: Limits = Limits {
        cwnd: 1_000_000,
        ssthresh: Limits::INFINITE,
        pacing_rate: Rate::from_bytes_per_sec(1_000_000),
        min_burst: 2_000,
        mark_app_limited: false,
        check_app_limited: false,
    };

    /// Sends packets of 1,000 bytes as soon as each may leave, but wakes up only at multiples of `tick`, for a second.
    fn sent_in_a_second(tick: Duration) -> u64 {
        let (start, mut pacer, mut sent) = (Time::from_micros(1_000_000), Pacer::default(), 0);
        let mut now = start;
        while now < start + Duration::from_secs(1) {
            if pacer.departure() <= now {
                pacer.on_sent(now, 1_000, &LIMITS);
                sent += 1_000;
            } else {
                now += tick;
            }
        }
        sent
    }

    #[test]
    fn pacing_rate_survives_late_wakeups() {
        for tick_us in [1, 100, 1_000, 1_900] {
            let sent = sent_in_a_second(Duration::from_micros(tick_us));
            assert!((990_000..=1_008_000).contains(&sent), "{sent} bytes with a tick of {tick_us} us");
        }
    }

    #[test]
    fn idle_credit_is_at_most_burst() {
        let mut pacer = Pacer::default();
        let now = Time::from_micros(9_000_000);
        let mut sent = 0;
        while pacer.departure() <= now {
            pacer.on_sent(now, 1_000, &LIMITS);
            sent += 1_000;
        }
        assert_eq!(sent, 4_000, "two milliseconds, and the burst under way");
    }
}
