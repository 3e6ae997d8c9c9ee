//! How many bytes may leave, and how fast: one account for everything that an end sends.

use crate::schedule::MOST_BYTES;

/// What a pause may be caught up with at once: this time at the highest rate.
const SLACK_NS: f64 = 2e6;
/// Of all bytes, one in so many is left for the lines of the control connection.
const LINES: u64 = 16;

/// Why bytes may not leave now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// The bytes are used up.
    Bytes,
    /// The rate allows it in as many nanoseconds.
    Wait(i64),
}

/// The bytes that are left, and a token bucket.
#[derive(Debug)]
pub struct Budget {
    left: u64,
    lines: u64,
    rate_bps: f64,
    slack_ns: f64,
    /// When the bucket is full again, in nanoseconds after the start.
    full_ns: f64,
    begun_ns: i64,
}

impl Budget {
    /// So many bytes of IP packets, at no more than a rate in bits a second.
    pub fn new(bytes: u64, rate_bps: f64, now_ns: i64) -> Budget {
        // Two packets, so that a slow rate lets one pass while another one is due.
        let slack_ns = SLACK_NS.max(2.0 * f64::from(MOST_BYTES) * 8e9 / rate_bps);
        Budget { left: bytes, lines: bytes / LINES, rate_bps, slack_ns, full_ns: 0.0, begun_ns: now_ns }
    }

    /// Takes bytes; `line`: for a line of the control connection.
    ///
    /// # Errors
    /// The bytes are not there, or not yet.
    pub fn take(&mut self, bytes: u64, line: bool, now_ns: i64) -> Result<(), Short> {
        let kept = if line { 0 } else { self.lines };
        if self.left < bytes.saturating_add(kept) {
            return Err(Short::Bytes);
        }
        let now_ns = now_ns.saturating_sub(self.begun_ns) as f64;
        let ahead_ns = self.full_ns - now_ns;
        if ahead_ns > self.slack_ns {
            return Err(Short::Wait((ahead_ns - self.slack_ns) as i64 + 1));
        }
        self.full_ns = self.full_ns.max(now_ns) + bytes as f64 * 8e9 / self.rate_bps;
        self.left -= bytes;
        if line {
            self.lines = self.lines.saturating_sub(bytes);
        }
        Ok(())
    }

    /// Bytes that are left, without those of lines.
    pub fn left(&self) -> u64 {
        self.left.saturating_sub(self.lines)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks for packets every 10 us for a second; the rate of what it gets, in bits a second.
    fn flood(rate_bps: f64) -> f64 {
        let mut budget = Budget::new(1 << 40, rate_bps, 5);
        let bytes: u64 =
            (0..100_000).map(|at| u64::from(budget.take(1000, false, 5 + at * 10_000).is_ok()) * 1000).sum();
        bytes as f64 * 8.0
    }

    #[test]
    fn a_flood_gets_the_rate_and_no_more() {
        assert!((4e6..4.05e6).contains(&flood(4e6)));
        // The control: here the flood itself is slower.
        assert_eq!(flood(1e12), 8e8);
    }

    #[test]
    fn a_pause_is_not_caught_up_at_once() {
        let mut budget = Budget::new(1 << 40, 8e6, 0);
        let burst = (0..1000).take_while(|_| budget.take(1000, false, 1_000_000_000).is_ok()).count();
        assert!(burst <= 6, "{burst} packets");
        assert_eq!(
            budget.take(1000, false, 1_000_000_000),
            Err(Short::Wait(burst as i64 * 1_000_000 - 3_999_999))
        );
    }

    #[test]
    fn the_bytes_end_and_lines_have_their_own() {
        let mut budget = Budget::new(1600, 1e9, 0);
        assert_eq!(budget.take(1501, false, 0), Err(Short::Bytes));
        assert_eq!(budget.take(1500, false, 0), Ok(()));
        assert_eq!(budget.take(1, false, 0), Err(Short::Bytes));
        assert_eq!(budget.take(100, true, 0), Ok(()));
        assert_eq!(budget.take(1, true, 0), Err(Short::Bytes));
        assert_eq!(budget.take(u64::MAX, false, 0), Err(Short::Bytes));
    }
}
