//! A log-linear histogram of nanoseconds: fixed memory, quantiles to within 1/32, for the lateness record.

use fullpipe_record::Lateness;
use fullpipe_units::Duration;

/// Bits of a value that a bucket keeps below its leading one.
const PRECISION_BITS: u32 = 5;
const LINEAR: u64 = 1 << PRECISION_BITS;
const BUCKETS: usize = ((64 - PRECISION_BITS as usize) + 1) << PRECISION_BITS;

/// Counts of values by size.
#[derive(Clone, Debug)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { counts: vec![0; BUCKETS], total: 0, max: 0 }
    }
}

impl Histogram {
    /// Counts one value.
    pub fn record(&mut self, value: Duration) {
        let value = value.as_nanos();
        self.counts[bucket(value)] += 1;
        self.total += 1;
        self.max = self.max.max(value);
    }

    /// Adds the counts of another.
    pub fn merge(&mut self, other: &Histogram) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.total += other.total;
        self.max = self.max.max(other.max);
    }

    /// The smallest value, rounded up to its bucket, that at least `per_mille` of a thousand values do not exceed;
    /// 0 if there are none.
    pub fn quantile(&self, per_mille: u64) -> u64 {
        let rank = (self.total * per_mille).div_ceil(1000).max(1);
        let mut seen = 0;
        for (index, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(index).min(self.max);
            }
        }
        0
    }

    /// The record of a run.
    pub fn lateness(&self) -> Lateness {
        Lateness {
            packets: self.total,
            p50_ns: self.quantile(500),
            p99_ns: self.quantile(990),
            p999_ns: self.quantile(999),
            max_ns: self.max,
        }
    }
}

fn bucket(value: u64) -> usize {
    if value < LINEAR {
        return value as usize;
    }
    let shift = value.ilog2() - PRECISION_BITS;
    // The leading one is implied by the row, so that a row has LINEAR buckets.
    ((u64::from(shift + 1) << PRECISION_BITS) + (value >> shift) - LINEAR) as usize
}

/// The largest value of a bucket.
fn upper_bound(index: usize) -> u64 {
    let (row, column) = (index as u64 >> PRECISION_BITS, index as u64 & (LINEAR - 1));
    match row {
        0 => column,
        row => (((LINEAR + column) as u128 + 1) << (row - 1)).saturating_sub(1).min(u64::MAX as u128) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fit_narrow_buckets() {
        let mut value = 0u64;
        while value < u64::MAX / 4 {
            for value in [value, value + 1, value.saturating_mul(2).saturating_sub(1)] {
                let index = bucket(value);
                assert!(index < BUCKETS);
                assert!(value <= upper_bound(index), "{value}");
                assert!(index == 0 || value > upper_bound(index - 1), "{value}");
                assert!(upper_bound(index) - value <= value / LINEAR, "{value}");
            }
            value = value * 3 / 2 + 1;
        }
        assert_eq!(upper_bound(bucket(u64::MAX)), u64::MAX);
    }

    #[test]
    fn quantiles_of_a_known_distribution() {
        let mut histogram = Histogram::default();
        for micros in 1..=1000 {
            histogram.record(Duration::from_micros(micros));
        }
        let near = |found: u64, expected: u64| found >= expected && found - expected <= expected / 32;
        assert!(near(histogram.quantile(500), 500_000));
        assert!(near(histogram.quantile(990), 990_000));
        assert_eq!(histogram.lateness().max_ns, 1_000_000);
        assert_eq!(histogram.lateness().packets, 1000);
    }

    #[test]
    fn an_empty_histogram_is_all_zero() {
        let none = Histogram::default().lateness();
        assert_eq!((none.packets, none.p50_ns, none.p999_ns, none.max_ns), (0, 0, 0, 0));
    }
}
