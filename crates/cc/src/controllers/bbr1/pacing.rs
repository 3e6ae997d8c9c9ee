//! The size of a burst, as BBRv1 plans it.

use super::Params;
use crate::controller::Config;
use crate::controllers::bbr::bandwidth::min_burst;

/// The most bytes in a burst, as BBR plans: the parameter, or without one what the host's largest packet holds, whatever
/// the device takes (Linux: `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`).
pub(crate) const fn goal_max_bytes(params: &Params, config: &Config) -> u32 {
    match params.tso_goal_max_bytes {
        0 => (Config::GSO_LEGACY_MAX_SIZE - 1).saturating_sub(config.max_tcp_header),
        bytes => bytes,
    }
}

/// Segments in a burst at this rate, as BBR plans (Linux: `bbr_tso_segs_goal`, which caps it at 127). `tso_goal_max_bytes`
/// has to be what [`goal_max_bytes`] returned.
#[inline]
pub(crate) fn burst_goal(params: &Params, bytes_per_sec: u64, mss: u32) -> u32 {
    let bytes = (bytes_per_sec >> params.pacing_shift).min(params.tso_goal_max_bytes as u64) as u32;
    (bytes / mss).max(min_burst(params.min_tso_rate_bps, bytes_per_sec)).min(0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CONFIG;

    #[test]
    fn bursts_range_from_segment_to_gso() {
        let params = on_host(192);
        for (bits_per_sec, segments) in
            [(1_199_992, 1), (1_200_000, 2), (100_000_000, 8), (10_000_000_000u64, 45)]
        {
            assert_eq!(burst_goal(&params, bits_per_sec / 8, 1448), segments, "{bits_per_sec}");
        }
        assert_eq!(burst_goal(&params, 10_000_000_000, 100), 127);
    }

    fn on_host(max_tcp_header: u32) -> Params {
        let config = Config { max_tcp_header, ..CONFIG };
        Params { tso_goal_max_bytes: goal_max_bytes(&Params::default(), &config), ..Params::default() }
    }

    #[test]
    fn burst_limit_follows_headers_unless_set() {
        // An MTU of 1,238 leaves 1,186 bytes: 65,343 of them are 55 segments and 65,215 are 54; of 1,448 both are 45.
        let goals = |header| [1_186, 1_448].map(|mss| burst_goal(&on_host(header), 10_000_000_000, mss));
        assert_eq!((goals(192), goals(320)), ([55, 45], [54, 45]));
        let set = Params { tso_goal_max_bytes: 14_480, ..Params::default() };
        let set = Params { tso_goal_max_bytes: goal_max_bytes(&set, &CONFIG), ..set };
        assert_eq!(burst_goal(&set, 10_000_000_000, 1_448), 10);
    }
}
