//! The arithmetic of a measurement.

use serde::Serialize;

/// A distribution in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// The minimum.
    pub min_ns: i64,
    /// The median.
    pub p50_ns: i64,
    /// 99 % are not above it.
    pub p99_ns: i64,
    /// The maximum.
    pub max_ns: i64,
}

impl Spread {
    /// Of these values; `None` if there are none.
    pub(super) fn of(mut values: Vec<i64>) -> Option<Spread> {
        values.sort_unstable();
        let (min_ns, max_ns) = (*values.first()?, *values.last()?);
        Some(Spread { min_ns, p50_ns: quantile(&values, 50), p99_ns: quantile(&values, 99), max_ns })
    }
}

/// The smallest of the sorted values that at least `percent` of them do not exceed.
fn quantile(sorted: &[i64], percent: usize) -> i64 {
    sorted[(sorted.len() * percent).div_ceil(100).max(1) - 1]
}

/// How a share of packets was measured.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Share {
    /// Packets that were affected.
    pub packets: u64,
    /// Packets in total.
    pub of: u64,
    /// Lower end of Wilson's interval for the probability, with [`Share::CONFIDENCE`].
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

impl Share {
    /// Two-sided. At 95 %, one machine in twenty would be found inaccurate by chance.
    pub const CONFIDENCE: f64 = 0.999;
    /// The standard normal quantile of (1 + [`Share::CONFIDENCE`]) / 2.
    const Z: f64 = 3.290_527;

    /// Of `packets` out of `of`; `None` out of none.
    pub(super) fn of(packets: u64, of: u64) -> Option<Share> {
        if of == 0 {
            return None;
        }
        let (n, z2) = (of as f64, Self::Z * Self::Z);
        let share = packets as f64 / n;
        let middle = (share + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = Self::Z / (1.0 + z2 / n) * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
        Some(Share { packets, of, low: (middle - half).max(0.0), high: (middle + half).min(1.0) })
    }
}

/// Decisions of the measured path, compared with the expected ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Decisions {
    /// Packets that did not arrive.
    pub dropped: u64,
    /// Packets that were not expected to arrive.
    pub expected: u64,
    /// Packets whose decision differs from the expected one.
    pub differently: u64,
    /// The number of the first of them.
    pub first: Option<u64>,
    /// The maximum difference between the counts of drops at any time, in packets.
    pub furthest_apart: u64,
}

impl Decisions {
    /// From (arrived, expected) of each packet in order.
    pub(super) fn of(packets: impl IntoIterator<Item = (bool, bool)>) -> Decisions {
        let mut found = Decisions::default();
        for (number, (arrived, should)) in packets.into_iter().enumerate() {
            found.dropped += u64::from(!arrived);
            found.expected += u64::from(!should);
            if arrived != should {
                found.differently += 1;
                found.first.get_or_insert(number as u64);
            }
            found.furthest_apart = found.furthest_apart.max(found.dropped.abs_diff(found.expected));
        }
        found
    }
}

/// Bits per second of packets of `bytes` that arrived at these times, counted from the first to the last; `None` if they
/// arrived at one time.
pub(super) fn rate_bps(arrived_ns: &[u64], bytes: u32) -> Option<f64> {
    let (first, last) = (arrived_ns.first()?, arrived_ns.last()?);
    let bits = (arrived_ns.len() - 1) as f64 * f64::from(bytes) * 8.0;
    (last > first).then(|| bits * 1e9 / (last - first) as f64)
}

/// The same piece by piece: (when a piece ended, its rate). Pieces have about this many nanoseconds, and whole packets, so
/// that no piece gains what its neighbour loses.
pub(super) fn rate_over_time(arrived_ns: &[u64], bytes: u32, piece_ns: u64) -> Vec<(u64, f64)> {
    let Some(whole) = rate_bps(arrived_ns, bytes) else { return Vec::new() };
    let packets = (whole * piece_ns as f64 / 1e9 / (f64::from(bytes) * 8.0)).round().max(1.0) as usize;
    let ends = (packets..arrived_ns.len()).step_by(packets);
    ends.filter_map(|end| {
        let piece = &arrived_ns[end - packets..=end];
        rate_bps(piece, bytes).map(|rate| (arrived_ns[end], rate))
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_values_that_were_measured() {
        let spread = Spread::of((1..=200).rev().collect()).unwrap();
        assert_eq!(spread, Spread { min_ns: 1, p50_ns: 100, p99_ns: 198, max_ns: 200 });
        assert_eq!(Spread::of(vec![-5]).unwrap(), Spread { min_ns: -5, p50_ns: -5, p99_ns: -5, max_ns: -5 });
        assert_eq!(Spread::of(vec![]), None);
    }

    #[test]
    fn the_interval_is_wilsons() {
        // By hand, z^2 = 10.827568: n = 1000, p = 0.01: centre (0.01 + 0.005413784) / 1.010827568 = 0.01524868;
        // half width 3.290527 / 1.010827568 * sqrt(0.0000099 + 0.000002706892) = 0.01155826.
        let share = Share::of(10, 1000).unwrap();
        assert!((share.low - 0.003_690_42).abs() < 1e-7, "{share:?}");
        assert!((share.high - 0.026_806_94).abs() < 1e-7, "{share:?}");
        let none = Share::of(0, 50).unwrap();
        assert!(none.low < 1e-12 && (none.high - 10.827_568 / 60.827_568).abs() < 1e-6, "{none:?}");
        assert_eq!(Share::of(0, 0), None);
    }

    #[test]
    fn decisions_are_compared_packet_by_packet() {
        let arrived = [true, false, true, false, false, true];
        let should = [true, true, false, false, false, true];
        let found = Decisions::of(arrived.into_iter().zip(should));
        let expected =
            Decisions { dropped: 3, expected: 3, differently: 2, first: Some(1), furthest_apart: 1 };
        assert_eq!(found, expected);
        assert_eq!(Decisions::of(arrived.into_iter().zip(arrived)).differently, 0);
    }

    #[test]
    fn rate_spans_first_to_last_packet() {
        // 1250 bytes every millisecond: 10 Mbit/s.
        let arrived: Vec<u64> = (0..=1000).map(|number| 5_000_000 + number * 1_000_000).collect();
        assert_eq!(rate_bps(&arrived, 1250), Some(10_000_000.0));
        let pieces = rate_over_time(&arrived, 1250, 100_000_000);
        assert_eq!(pieces.len(), 10);
        assert!(pieces.iter().all(|(_, rate)| (rate - 1e7).abs() < 1.0));
        assert_eq!(pieces[0].0, 105_000_000);
        assert_eq!(rate_bps(&arrived[..1], 1250), None);
        assert_eq!(rate_bps(&[], 1250), None);
    }
}
