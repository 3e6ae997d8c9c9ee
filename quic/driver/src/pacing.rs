//! What a stack's pacer needs of a controller's limits.

use fullpipe_cc::Limits;
use fullpipe_units::Rate;

/// The most bytes of a burst (draft-ietf-ccwg-bbr-06 section 5.6.3).
const MAX_QUANTUM: u64 = 64 * 1_024;

/// The bytes of a burst: what takes a millisecond, at most 64 KiB and at least what the controller asks for.
pub fn quantum(limits: &Limits) -> u64 {
    (limits.pacing_rate.as_bytes_per_sec() / 1_000).min(MAX_QUANTUM).max(limits.min_burst as u64)
}

/// The pacing rate; `None` of a window-based controller before it has seen an RTT: its stack paces by window and RTT then.
pub fn pacing_rate(limits: &Limits) -> Option<Rate> {
    let rate = limits.pacing_rate;
    (rate.as_bytes_per_sec() < Rate::MAX.as_bytes_per_sec()).then_some(rate)
}

/// The slow-start threshold, bytes; `None` if there is none yet.
pub fn ssthresh(limits: &Limits) -> Option<u64> {
    (limits.ssthresh != Limits::INFINITE).then_some(limits.ssthresh as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        cwnd: 1_000_000,
        ssthresh: Limits::INFINITE,
        pacing_rate: Rate::MAX,
        min_burst: 2_000,
        mark_app_limited: false,
        check_app_limited: false,
    };

    #[test]
    fn quantum_is_one_millisecond_within_bounds() {
        let of = |rate: u64| quantum(&Limits { pacing_rate: Rate::from_bytes_per_sec(rate), ..LIMITS });
        assert_eq!(
            [0, 1_999_999, 2_001_000, 65_535_000, 65_537_000, 1 << 40].map(of),
            [2_000, 2_000, 2_001, 65_535, 65_536, 65_536]
        );
        assert_eq!(quantum(&LIMITS), 65_536, "no rate yet");
    }

    #[test]
    fn unknown_limits_are_none() {
        assert_eq!((pacing_rate(&LIMITS), ssthresh(&LIMITS)), (None, None));
        let rate = Rate::from_bits_per_sec(5_000_000);
        let limits = Limits { pacing_rate: rate, ssthresh: 12_000, ..LIMITS };
        assert_eq!((pacing_rate(&limits), ssthresh(&limits)), (Some(rate), Some(12_000)));
    }
}
