//! Round-trip times (RFC 9002 section 5).

use fullpipe_units::Duration;

/// The estimator of RFC 9002 section 5.3. Samples include the delay before the peer acknowledged, unless the stack subtracts it
/// before it reports: most stacks do not tell a controller that delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rtt {
    smoothed_ns: u64,
    variation_ns: u64,
    min_ns: u64,
}

impl Rtt {
    /// RFC 9002 section 6.2.2: `kInitialRtt`, 333 ms.
    const INITIAL: Duration = Duration::from_millis(333);
    /// RFC 9002 section 6.1.2: `kGranularity`, 1 ms.
    const GRANULARITY: Duration = Duration::from_millis(1);
    /// RFC 9000 section 18.2: the default of `max_ack_delay`, 25 ms.
    const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

    /// Before the first sample.
    pub const fn new() -> Rtt {
        Rtt { smoothed_ns: 0, variation_ns: 0, min_ns: u64::MAX }
    }

    /// Takes a sample.
    pub fn sample(&mut self, rtt: Duration) {
        let rtt_ns = rtt.as_nanos().max(1);
        self.min_ns = self.min_ns.min(rtt_ns);
        if self.smoothed_ns == 0 {
            (self.smoothed_ns, self.variation_ns) = (rtt_ns, rtt_ns / 2);
            return;
        }
        let eighths = |old: u64, new: u64, new_weight: u64| {
            (old as u128 * (8 - new_weight) as u128 + new as u128 * new_weight as u128) / 8
        };
        self.variation_ns = eighths(self.variation_ns, self.smoothed_ns.abs_diff(rtt_ns), 2) as u64;
        self.smoothed_ns = eighths(self.smoothed_ns, rtt_ns, 1) as u64;
    }

    /// The smoothed RTT, zero before the first sample.
    pub const fn smoothed(&self) -> Duration {
        Duration::from_nanos(self.smoothed_ns)
    }

    /// The smallest sample of the connection, [`Duration::MAX`] before the first.
    pub const fn min(&self) -> Duration {
        Duration::from_nanos(self.min_ns)
    }

    /// The probe timeout without back-off (RFC 9002 section 6.2.1), with the default maximum ACK delay.
    pub fn probe_timeout(&self) -> Duration {
        let (smoothed, variation) = match self.smoothed_ns {
            0 => (Rtt::INITIAL, Duration::from_nanos(Rtt::INITIAL.as_nanos() / 2)),
            _ => (self.smoothed(), Duration::from_nanos(self.variation_ns)),
        };
        smoothed + variation.saturating_mul(4).max(Rtt::GRANULARITY) + Rtt::MAX_ACK_DELAY
    }
}

impl Default for Rtt {
    fn default() -> Rtt {
        Rtt::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rtt_smoothing_follows_rfc_9002() {
        let mut rtt = Rtt::new();
        assert_eq!((rtt.smoothed(), rtt.min()), (Duration::ZERO, Duration::MAX));
        assert_eq!(rtt.probe_timeout(), Duration::from_millis(333 + 666 + 25));
        rtt.sample(Duration::from_millis(80));
        assert_eq!(rtt.probe_timeout(), Duration::from_millis(80 + 4 * 40 + 25));
        rtt.sample(Duration::from_millis(160));
        assert_eq!((rtt.smoothed(), rtt.min()), (Duration::from_millis(90), Duration::from_millis(80)));
        assert_eq!(rtt.probe_timeout(), Duration::from_millis(90 + 4 * 50 + 25));
    }
}
