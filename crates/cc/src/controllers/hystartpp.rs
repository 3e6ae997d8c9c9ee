//! HyStart++: slow start that slows down, four times, when the RTT of a round rises, and ends if it stays high.
//!
//! Specification: RFC 9406. Unlike the HyStart of Linux's CUBIC ([`hystart`](crate::controllers::hystart)) it does not end slow start at
//! the first sign: in conservative slow start (CSS) the window goes on to grow at a quarter of the pace, and if the RTT falls
//! again, slow start resumes. Deviations: docs/reference/deviations.md#hystart.

/// RTTs of a round before its minimum counts.
const N_RTT_SAMPLE: u32 = 8;
/// The rise that counts is an eighth of the last round's minimum, within these bounds.
const MIN_RTT_DIVISOR: u32 = 8;
const MIN_RTT_THRESH_US: u32 = 4_000;
const MAX_RTT_THRESH_US: u32 = 16_000;
/// CSS grows at this fraction of slow start's pace, for this many rounds at most.
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Segments by which an ACK may grow the window of a host that does not pace (RFC 9406: L).
const UNPACED_LIMIT: u64 = 8;
/// An RTT that is not known.
const INFINITY_US: u32 = u32::MAX;

/// The detector, for the initial slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyStartPlusPlus {
    /// The round ends when this is acknowledged (`windowEnd`).
    window_end: u64,
    /// `lastRoundMinRTT`.
    last_round_min_us: u32,
    /// `currentRoundMinRTT`.
    current_round_min_us: u32,
    /// `rttSampleCount`.
    samples: u32,
    /// `cssBaselineMinRtt`; [`INFINITY_US`] outside CSS.
    css_baseline_us: u32,
    /// Rounds of CSS that ended.
    css_rounds: u32,
    paced: bool,
}

impl HyStartPlusPlus {
    /// At the beginning of a connection whose next new data is `snd_nxt`.
    pub fn new(snd_nxt: u64, paced: bool) -> HyStartPlusPlus {
        // RFC 9406 4.2: windowEnd is SND.NXT at first; nothing is known of any RTT.
        HyStartPlusPlus {
            window_end: snd_nxt,
            last_round_min_us: INFINITY_US,
            current_round_min_us: INFINITY_US,
            samples: 0,
            css_baseline_us: INFINITY_US,
            css_rounds: 0,
            paced,
        }
    }

    /// Whether it is in conservative slow start.
    #[inline]
    pub const fn is_conservative(&self) -> bool {
        self.css_baseline_us != INFINITY_US
    }

    /// The bytes by which an ACK of `acked` bytes lets the window grow.
    #[inline]
    pub fn growth(&self, acked: u64, mss: u64) -> u64 {
        // RFC 9406 4.2: min(N, L * SMSS). RFC 9406 4.3: L is infinite where the host paces, and else 8.
        let most = if self.paced { acked } else { acked.min(UNPACED_LIMIT * mss) };
        if self.is_conservative() { most / CSS_GROWTH_DIVISOR } else { most }
    }

    /// Takes in an ACK, with its RTT if it brought one; returns whether slow start is over.
    #[inline]
    pub fn on_ack(&mut self, rtt_us: Option<u32>, snd_una: u64, snd_nxt: u64) -> bool {
        // RFC 9406 4.2: the round ends when windowEnd is acknowledged, which is the first data of the next one.
        if snd_una > self.window_end {
            self.window_end = snd_nxt;
            self.last_round_min_us = self.current_round_min_us;
            self.current_round_min_us = INFINITY_US;
            self.samples = 0;
            if self.is_conservative() {
                // RFC 9406 4.2: the round in which CSS began counts, too.
                self.css_rounds += 1;
                if self.css_rounds >= CSS_ROUNDS {
                    return true;
                }
            }
        }
        if let Some(rtt_us) = rtt_us {
            self.current_round_min_us = self.current_round_min_us.min(rtt_us);
            self.samples += 1;
            self.check();
        }
        false
    }

    fn check(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        if self.is_conservative() {
            // RFC 9406 4.2: the RTT fell below what it was when CSS began, so that slow start was left too early.
            if self.current_round_min_us < self.css_baseline_us {
                self.css_baseline_us = INFINITY_US;
                self.css_rounds = 0;
            }
        } else if self.last_round_min_us != INFINITY_US {
            // RFC 9406 4.2: RttThresh
            let rise = (self.last_round_min_us / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH_US, MAX_RTT_THRESH_US);
            if self.current_round_min_us >= self.last_round_min_us.saturating_add(rise) {
                self.css_baseline_us = self.current_round_min_us;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use std::vec::Vec;

    const MSS: u64 = 1_200;

    /// A detector and the sequence numbers of ACKs: each round is of ten segments.
    struct Rounds {
        hystart: HyStartPlusPlus,
        una: u64,
        over: bool,
    }

    impl Rounds {
        fn new(paced: bool) -> Rounds {
            Rounds { hystart: HyStartPlusPlus::new(10, paced), una: 0, over: false }
        }

        /// ACKs of one segment each with these RTTs. The next round ends ten segments after the first of them.
        fn acks(&mut self, count: u64, rtt_us: u32) -> &mut Rounds {
            for _ in 0..count {
                self.una += 1;
                self.over |= self.hystart.on_ack(Some(rtt_us), self.una, self.una + 9);
            }
            self
        }

        /// The first round, which ends only after eleven ACKs, and one with the RTT to compare with.
        fn with_last_round(rtt_us: u32) -> Rounds {
            let mut rounds = Rounds::new(true);
            rounds.acks(10, rtt_us).acks(10, rtt_us);
            assert!(!rounds.hystart.is_conservative());
            rounds
        }
    }

    /// RFC 9406 4.2: RttThresh is an eighth of the last round's minimum, at least 4 ms and at most 16 ms.
    #[test]
    fn rtt_rise_starts_conservative_slow_start() {
        for (last_us, rise_us) in
            [(10_000, 4_000), (32_000, 4_000), (64_000, 8_000), (128_000, 16_000), (800_000, 16_000)]
        {
            let enters = |rise_us| {
                Rounds::with_last_round(last_us).acks(10, last_us + rise_us).hystart.is_conservative()
            };
            assert!(enters(rise_us), "{last_us} + {rise_us}");
            assert!(!enters(rise_us - 1), "{last_us} + {rise_us}");
        }
    }

    /// RFC 9406 4.3: N_RTT_SAMPLE is 8.
    #[test]
    fn eighth_sample_decides_by_minimum_rtt() {
        let mut rounds = Rounds::with_last_round(50_000);
        assert!(!rounds.acks(7, 80_000).hystart.is_conservative());
        assert!(rounds.acks(1, 80_000).hystart.is_conservative());
        let mut jittery = Rounds::with_last_round(50_000);
        jittery.acks(3, 80_000).acks(1, 50_000).acks(6, 80_000);
        assert!(!jittery.hystart.is_conservative(), "one ACK shows that the queue is empty");
    }

    /// RFC 9406 4.2: `lastRoundMinRTT` is not valid in the first round.
    #[test]
    fn first_round_has_no_baseline() {
        let mut rounds = Rounds::new(true);
        assert!(!rounds.acks(5, 10_000).acks(5, 500_000).hystart.is_conservative());
    }

    /// RFC 9406 4.2: ACKs without an RTT end rounds and are no samples.
    #[test]
    fn ack_without_rtt_is_no_sample() {
        let mut rounds = Rounds::with_last_round(50_000);
        for _ in 0..8 {
            rounds.una += 1;
            rounds.hystart.on_ack(None, rounds.una, rounds.una + 9);
        }
        assert!(!rounds.acks(1, 80_000).hystart.is_conservative());
    }

    /// RFC 9406 4.2 and 4.3: min(N, L * SMSS), a quarter of it in CSS; L is 8 unless the host paces.
    #[test]
    fn growth_is_limited_without_pacing() {
        let mut table = Vec::new();
        for paced in [true, false] {
            let mut rounds = Rounds::new(paced);
            rounds.acks(20, 50_000);
            for css in [false, true] {
                if css {
                    rounds.acks(10, 80_000);
                }
                let growth = [1, 8, 9, 20].map(|segments| rounds.hystart.growth(segments * MSS, MSS));
                table.push((paced, rounds.hystart.is_conservative(), growth));
            }
        }
        assert_eq!(
            table,
            [
                (true, false, [1_200, 9_600, 10_800, 24_000]),
                (true, true, [300, 2_400, 2_700, 6_000]),
                (false, false, [1_200, 9_600, 9_600, 9_600]),
                (false, true, [300, 2_400, 2_400, 2_400]),
            ]
        );
    }

    /// RFC 9406 4.2: CSS lasts at most CSS_ROUNDS rounds, the partial one in which it began included.
    #[test]
    fn five_css_rounds_end_slow_start() {
        let mut rounds = Rounds::with_last_round(50_000);
        rounds.acks(10, 80_000);
        for round in 1..=5 {
            assert!(!rounds.over, "round {round}");
            rounds.acks(10, 80_000 + round);
        }
        assert!(rounds.over);
    }

    /// RFC 9406 4.2: a minimum below the baseline shows that slow start was left too early.
    #[test]
    fn slow_start_resumes_when_rtt_falls() {
        let mut rounds = Rounds::with_last_round(50_000);
        rounds.acks(10, 80_000).acks(10, 80_000);
        assert!(rounds.hystart.is_conservative(), "an RTT as at the baseline is not below it");
        rounds.acks(7, 79_999);
        assert!(rounds.hystart.is_conservative(), "seven samples are too few");
        rounds.acks(3, 79_999);
        assert!(!rounds.hystart.is_conservative());
        // Back in slow start, another rise begins CSS again, for five rounds again.
        rounds.acks(10, 95_000);
        assert!(rounds.hystart.is_conservative());
        rounds.acks(40, 95_000);
        assert!(!rounds.over);
        rounds.acks(10, 95_000);
        assert!(rounds.over);
    }
}
