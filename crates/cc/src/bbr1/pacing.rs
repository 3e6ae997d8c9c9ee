//! From bandwidth to pacing rate and burst size.

use super::Params;
use super::params::UNIT;
use crate::controller::Config;

/// Bandwidth is kept in segments a microsecond, scaled by 2^24 (Linux: `BW_SCALE`).
pub(crate) const BW_SCALE: u32 = 24;

/// Without an RTT sample, pace as if it were this many microseconds (Linux: `bbr_init_pacing_rate_from_rtt`).
pub(crate) const NOMINAL_RTT_US: u32 = 1_000;

/// Microseconds a second, less the pacing margin (Linux: `USEC_PER_SEC / 100 * (100 - bbr_pacing_margin_percent)`).
pub(crate) const fn usecs_less_margin(params: &Params) -> u64 {
    10_000 * (100 - params.pacing_margin_percent as u64)
}

/// `bw` times `gain` in bytes a second, the margin taken off. The order of the shifts is part of the result.
#[inline]
pub(crate) const fn bytes_per_sec(bw: u64, gain: u32, mss: u32, usecs_less_margin: u64) -> u64 {
    let rate = bw.wrapping_mul(mss as u64).wrapping_mul(gain as u64) >> UNIT.trailing_zeros();
    rate.wrapping_mul(usecs_less_margin) >> BW_SCALE
}

/// The fewest segments in a burst at this rate (Linux: `bbr_min_tso_segs`).
#[inline]
pub(crate) const fn min_burst(params: &Params, bytes_per_sec: u64) -> u32 {
    if bytes_per_sec < (params.min_tso_rate_bps >> 3) as u64 { 1 } else { 2 }
}

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
    (bytes / mss).max(min_burst(params, bytes_per_sec)).min(0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::CONFIG;

    #[test]
    fn a_table_of_rates_in_the_kernels_own_rounding() {
        let params = Params::default();
        let margin = usecs_less_margin(&params);
        // (segments in 10 ms, gain, bytes a second) at 1,448 bytes a segment.
        for (segments, gain, expected) in [
            (10u64, 256, 1_433_501),
            (10, 739, 4_138_115),
            (10, 88, 492_766),
            (100, 320, 17_918_982),
            (100, 192, 10_751_389),
            (1, 256, 143_290),
        ] {
            let bw = (segments << BW_SCALE) / 10_000;
            assert_eq!(bytes_per_sec(bw, gain, 1448, margin), expected, "{segments} {gain}");
        }
    }

    #[test]
    fn bursts_are_one_segment_at_low_rates_and_at_most_a_gso_packet() {
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
    fn the_largest_burst_depends_on_the_headers_of_the_host_unless_a_parameter_sets_it() {
        // An MTU of 1,238 leaves 1,186 bytes: 65,343 of them are 55 segments and 65,215 are 54; of 1,448 both are 45.
        let goals = |header| [1_186, 1_448].map(|mss| burst_goal(&on_host(header), 10_000_000_000, mss));
        assert_eq!((goals(192), goals(320)), ([55, 45], [54, 45]));
        let set = Params { tso_goal_max_bytes: 14_480, ..Params::default() };
        let set = Params { tso_goal_max_bytes: goal_max_bytes(&set, &CONFIG), ..set };
        assert_eq!(burst_goal(&set, 10_000_000_000, 1_448), 10);
    }
}
