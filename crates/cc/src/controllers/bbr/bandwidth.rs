//! What follows from a bandwidth: the pacing rate, the smallest burst, the bandwidth-delay product.

use crate::gain::Gain;

/// Bandwidth is kept in segments a microsecond, scaled by 2^24 (Linux: `BW_SCALE`).
pub(crate) const BW_SCALE: u32 = 24;

/// Without an RTT sample, pace as if it were this many microseconds (Linux: `bbr_init_pacing_rate_from_rtt`).
pub(crate) const NOMINAL_RTT_US: u32 = 1_000;

/// No RTT was measured yet (Linux: `~0U`).
pub(crate) const NO_RTT: u32 = u32::MAX;

/// The window without an RTT sample, and the segments until growth needs a reason (Linux: `TCP_INIT_CWND`; RFC 6928).
pub(crate) const INITIAL_CWND: u32 = 10;

/// Microseconds a second, less the pacing margin (Linux: `USEC_PER_SEC / 100 * (100 - bbr_pacing_margin_percent)`).
pub(crate) const fn usecs_less_margin(margin_percent: u32) -> u64 {
    10_000 * (100 - margin_percent as u64)
}

/// `bw` times `gain` in bytes a second, the margin taken off. The order of the shifts is part of the result.
#[inline]
pub(crate) const fn bytes_per_sec(bw: u64, gain: Gain, mss: u32, usecs_less_margin: u64) -> u64 {
    gain.times(bw.wrapping_mul(mss as u64)).wrapping_mul(usecs_less_margin) >> BW_SCALE
}

/// The fewest segments in a burst at this rate: one below `min_tso_rate_bps` (Linux: `bbr_min_tso_segs`).
#[inline]
pub(crate) const fn min_burst(min_tso_rate_bps: u32, bytes_per_sec: u64) -> u32 {
    if bytes_per_sec < (min_tso_rate_bps >> 3) as u64 { 1 } else { 2 }
}

/// Bandwidth times minimum RTT times gain in segments, rounded up (Linux: `bbr_bdp`).
#[inline]
pub(crate) const fn bdp(bw: u32, min_rtt_us: u32, gain: Gain) -> u32 {
    if min_rtt_us == NO_RTT {
        return INITIAL_CWND;
    }
    let scaled = gain.times(bw as u64 * min_rtt_us as u64);
    (scaled.wrapping_add((1 << BW_SCALE) - 1) >> BW_SCALE) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_round_as_in_kernel() {
        let margin = usecs_less_margin(1);
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
            assert_eq!(bytes_per_sec(bw, Gain::from_q8(gain), 1448, margin), expected, "{segments} {gain}");
        }
    }

    #[test]
    fn the_product_rounds_up() {
        // 1 segment a millisecond over 10.0005 ms.
        let bw = (1 << BW_SCALE) / 1_000;
        assert_eq!(bdp(bw, 10_000, Gain::ONE), 10, "the bandwidth rounded down, and the product up");
        assert_eq!(bdp(bw, 10_002, Gain::ONE), 11);
        assert_eq!(bdp(bw, NO_RTT, Gain::ONE), 10);
        assert_eq!(bdp(1 << 14, 1 << 10, Gain::ONE), 1, "nothing to round");
    }
}
