//! The size of a burst, as BBRv3 plans it.

use super::Params;
use crate::controller::Config;

/// The most bytes in a burst, whatever the device takes (Linux: `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`).
pub(crate) const fn goal_max_bytes(config: &Config) -> u32 {
    (Config::GSO_LEGACY_MAX_SIZE - 1).saturating_sub(config.max_tcp_header)
}

/// Segments in a burst at this rate and minimum RTT (Linux: `bbr_tso_segs_goal`); at most `max_bytes`.
#[inline]
pub(crate) fn burst_goal(
    params: &Params,
    bytes_per_sec: u64,
    min_rtt_us: u32,
    mss: u32,
    max_bytes: u32,
) -> u32 {
    let mut bytes = bytes_per_sec >> params.pacing_shift;
    if params.tso_rtt_shift != 0 {
        let halvings = min_rtt_us >> params.tso_rtt_shift;
        bytes += (Config::GSO_LEGACY_MAX_SIZE as u64).checked_shr(halvings).unwrap_or(0);
    }
    // The kernel compares 32 bits of it.
    let bytes = (bytes as u32).min(max_bytes);
    (bytes / mss.max(1)).max(params.min_tso_segs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CONFIG;

    #[test]
    fn rate_and_short_rtt_enlarge_bursts() {
        let goal = |bits_per_sec: u64, min_rtt_us| {
            burst_goal(&Params::default(), bits_per_sec / 8, min_rtt_us, 1448, goal_max_bytes(&CONFIG))
        };
        assert_eq!([goal(1_000_000, 0), goal(1_000_000, 512), goal(1_000_000, 3_072)], [45, 22, 2]);
        assert_eq!([goal(100_000_000, 20_000), goal(10_000_000_000, 20_000)], [8, 45]);
        assert_eq!(goal(100_000, 100_000), 2, "never one, as slow as it may be");
        assert_eq!(goal(100_000_000, u32::MAX), 8, "no RTT yet");
    }
}
