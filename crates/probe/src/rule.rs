//! When a sender stops before its schedule ends, by what the receiver reports.

use std::collections::VecDeque;

/// A report as the sender has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When it arrived here, in nanoseconds.
    pub at_ns: i64,
    /// How many packets have arrived there.
    pub count: u32,
    /// How many had been sent when the last of these was.
    pub sent: u32,
    /// By how many nanoseconds that one was later than the fastest before; any origin.
    pub late_ns: i64,
}

/// A reason to stop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rule {
    /// None but silence.
    Whole,
    /// The path is full: packets are late by more than this, or a fifth of the last ones is missing.
    Full {
        /// How late.
        late_ns: i64,
    },
    /// The queue overflows for a while: of the packets of the last 150 ms, more than this share is missing.
    Overflow {
        /// The share.
        share: f64,
        /// For how long.
        linger_ns: i64,
    },
    /// This many packets are missing.
    Missing {
        /// How many.
        packets: u32,
    },
}

/// A rule and what it has seen.
#[derive(Debug)]
pub struct Watch {
    rule: Rule,
    seen: VecDeque<Seen>,
    least_late_ns: i64,
    since_ns: Option<i64>,
}

/// How far back a share looks.
const WINDOW_NS: i64 = 150_000_000;
/// Fewer packets show no share.
const LEAST: u32 = 10;

impl Watch {
    /// Nothing has been seen.
    pub fn new(rule: Rule) -> Watch {
        Watch { rule, seen: VecDeque::new(), least_late_ns: i64::MAX, since_ns: None }
    }

    /// Takes a report; returns whether to stop.
    pub fn stops(&mut self, new: Seen) -> bool {
        while self.seen.len() > 2 && self.seen[1].at_ns < new.at_ns.saturating_sub(WINDOW_NS) {
            self.seen.pop_front();
        }
        self.seen.push_back(new);
        self.least_late_ns = self.least_late_ns.min(new.late_ns);
        let back = |reports: usize| self.seen[self.seen.len().saturating_sub(reports)];
        match self.rule {
            Rule::Whole => false,
            Rule::Full { late_ns } => {
                let (sent, missing) = apart(back(3), new);
                // Saturating, because the receiver may say anything.
                new.late_ns.saturating_sub(self.least_late_ns) > late_ns
                    || sent >= LEAST && missing * 5 > sent
            }
            Rule::Overflow { share, linger_ns } => {
                let (sent, missing) = apart(self.seen[0], new);
                let over = sent >= LEAST && f64::from(missing) > share * f64::from(sent);
                self.since_ns = over.then(|| self.since_ns.unwrap_or(new.at_ns));
                self.since_ns.is_some_and(|since| new.at_ns - since > linger_ns)
            }
            Rule::Missing { packets } => new.sent.saturating_sub(new.count) > packets,
        }
    }
}

/// How many packets were sent between two reports, and how many of these are missing.
fn apart(old: Seen, new: Seen) -> (u32, u32) {
    let (sent, came) = (new.sent.saturating_sub(old.sent), new.count.saturating_sub(old.count));
    (sent, sent.saturating_sub(came))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(ms: i64, count: u32, sent: u32, late_ms: i64) -> Seen {
        Seen { at_ns: ms * 1_000_000, count, sent, late_ns: late_ms * 1_000_000 }
    }

    #[test]
    fn a_full_path_is_late_or_loses() {
        let late = || Watch::new(Rule::Full { late_ns: 12_000_000 });
        let mut watch = late();
        assert!(!watch.stops(seen(0, 10, 10, 100)));
        assert!(!watch.stops(seen(10, 20, 20, 112)));
        assert!(watch.stops(seen(20, 30, 30, 113)));
        let mut watch = late();
        assert!(!watch.stops(seen(0, 10, 10, 0)));
        assert!(!watch.stops(seen(10, 20, 20, 0)));
        assert!(watch.stops(seen(20, 24, 30, 0)));
    }

    #[test]
    fn overflow_has_to_last() {
        let mut watch = Watch::new(Rule::Overflow { share: 0.25, linger_ns: 400_000_000 });
        let lossy = |n: i64| seen(n * 10, n as u32 * 6, n as u32 * 10, 0);
        let stopped = (1..100).position(|n| watch.stops(lossy(n)));
        assert_eq!(stopped, Some(42));
        let mut watch = Watch::new(Rule::Overflow { share: 0.25, linger_ns: 400_000_000 });
        assert!((1..100).all(|n| !watch.stops(seen(n * 10, n as u32 * 9, n as u32 * 10, 0))));
    }

    #[test]
    fn a_lying_receiver_does_no_harm() {
        for rule in [
            Rule::Full { late_ns: 1 },
            Rule::Overflow { share: 0.1, linger_ns: 1 },
            Rule::Missing { packets: 1 },
        ] {
            let mut watch = Watch::new(rule);
            for (count, late_ns) in [(u32::MAX, i64::MAX), (0, i64::MIN), (5, 0), (u32::MAX, i64::MIN)] {
                watch.stops(Seen { at_ns: 5, count, sent: 3, late_ns });
            }
        }
    }
}
