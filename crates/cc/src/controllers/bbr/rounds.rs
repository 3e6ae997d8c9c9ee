//! Packet-timed rounds: one ends when a segment is delivered that was sent after the round began.

use super::after;

/// The round and its number. Counters wrap at 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rounds {
    /// Segments delivered when the round began; a segment that was sent later ends it.
    pub(crate) next_rtt_delivered: u32,
    /// Rounds so far.
    pub(crate) rtt_cnt: u32,
    /// The present ACK began a round.
    pub(crate) round_start: bool,
}

impl Rounds {
    /// A connection that has delivered this many segments.
    pub(crate) const fn new(delivered: u64) -> Rounds {
        Rounds { next_rtt_delivered: delivered as u32, rtt_cnt: 0, round_start: false }
    }

    /// Takes in an ACK with a valid rate sample, whose segment left when `prior_delivered` had been delivered. Returns
    /// whether a round begins.
    #[inline]
    pub(crate) fn on_sample(&mut self, prior_delivered: u64, delivered: u64) -> bool {
        self.round_start = !after(self.next_rtt_delivered, prior_delivered as u32);
        if self.round_start {
            self.begin(delivered);
            self.rtt_cnt = self.rtt_cnt.wrapping_add(1);
        }
        self.round_start
    }

    /// Begins a round that counts as none: what is sent from now on ends it.
    // draft 5.5.1: StartRound, StartRound.next_round_delivered
    #[inline]
    pub(crate) fn begin(&mut self, delivered: u64) {
        self.next_rtt_delivered = delivered as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_segment_ends_round_across_wrap() {
        let start = u32::MAX as u64 - 4;
        let mut rounds = Rounds::new(start);
        assert!(rounds.on_sample(start, start + 10));
        assert!(!rounds.on_sample(start + 9, start + 20), "sent one delivery too early");
        assert!(!rounds.round_start);
        assert!(rounds.on_sample(start + 10, start + 21));
        assert_eq!((rounds.rtt_cnt, rounds.next_rtt_delivered), (2, 16));
    }

    #[test]
    fn manually_started_round_is_not_counted() {
        let mut rounds = Rounds::new(0);
        rounds.begin(7);
        assert!(!rounds.on_sample(6, 8));
        assert!(rounds.on_sample(7, 9));
        assert_eq!(rounds.rtt_cnt, 1);
    }
}
