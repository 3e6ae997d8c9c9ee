//! Detecting a token-bucket policer: heavy loss at a constant delivery rate, twice in a row.
//!
//! Specification: Linux `bbr_lt_bw_sampling`. A sampling interval begins and ends with a loss (tokens are exhausted
//! then), and two intervals that agree make their mean the bandwidth for 48 rounds. "lt" stands for long-term.

use super::Params;
use crate::controllers::bbr::bandwidth::{BW_SCALE, bytes_per_sec, usecs_less_margin};
use crate::gain::Gain;

/// The detector. Counters and stamps wrap at 32 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Policer {
    /// An interval is under way.
    pub(crate) lt_is_sampling: bool,
    /// The verdict: `lt_bw` is the bandwidth.
    pub(crate) lt_use_bw: bool,
    /// Rounds in this interval, or for which the verdict has held.
    pub(crate) lt_rtt_cnt: u32,
    /// Rate of the last interval, or of the policer.
    pub(crate) lt_bw: u32,
    /// Delivered when the interval began.
    pub(crate) lt_last_delivered: u32,
    /// Milliseconds when it began.
    pub(crate) lt_last_stamp: u32,
    /// Lost when it began.
    pub(crate) lt_last_lost: u32,
}

/// One ACK, or a timeout, as the detector sees it.
pub(crate) struct Observation {
    pub(crate) delivered: u32,
    pub(crate) lost: u32,
    pub(crate) delivered_us: u64,
    pub(crate) newly_lost: bool,
    pub(crate) app_limited: bool,
    pub(crate) round_start: bool,
    pub(crate) in_probe_bw: bool,
    pub(crate) mss: u32,
}

impl Observation {
    fn delivered_ms(&self) -> u32 {
        (self.delivered_us / 1_000) as u32
    }
}

/// What the caller has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Nothing,
    /// A policer was found: pace at its rate.
    Found,
    /// The policer's rate has expired: probe again.
    Released,
}

impl Policer {
    /// Forgets everything (Linux: `bbr_reset_lt_bw_sampling`).
    pub(crate) fn reset(&mut self, delivered: u32, lost: u32, delivered_us: u64) {
        *self = Policer {
            lt_last_delivered: delivered,
            lt_last_stamp: (delivered_us / 1_000) as u32,
            lt_last_lost: lost,
            ..Policer::default()
        };
    }

    #[inline]
    pub(crate) fn observe(&mut self, params: &Params, seen: &Observation) -> Verdict {
        if self.lt_use_bw {
            if seen.in_probe_bw && seen.round_start {
                self.lt_rtt_cnt += 1;
                if self.lt_rtt_cnt >= params.lt_bw_max_rtts {
                    self.reset(seen.delivered, seen.lost, seen.delivered_us);
                    return Verdict::Released;
                }
            }
            return Verdict::Nothing;
        }
        if !self.lt_is_sampling && !seen.newly_lost {
            return Verdict::Nothing;
        }
        self.sample(params, seen)
    }

    fn sample(&mut self, params: &Params, seen: &Observation) -> Verdict {
        if !self.lt_is_sampling {
            self.begin_interval(seen);
            self.lt_is_sampling = true;
        }
        // The rate of an idle application is not the policer's.
        if seen.app_limited {
            self.reset(seen.delivered, seen.lost, seen.delivered_us);
            return Verdict::Nothing;
        }
        self.lt_rtt_cnt += seen.round_start as u32;
        if self.lt_rtt_cnt < params.lt_intvl_min_rtts {
            return Verdict::Nothing;
        }
        if self.lt_rtt_cnt > 4 * params.lt_intvl_min_rtts {
            self.reset(seen.delivered, seen.lost, seen.delivered_us);
            return Verdict::Nothing;
        }
        if !seen.newly_lost {
            return Verdict::Nothing;
        }
        let lost = seen.lost.wrapping_sub(self.lt_last_lost);
        let delivered = seen.delivered.wrapping_sub(self.lt_last_delivered);
        if delivered == 0 || (lost << 8) < params.lt_loss_thresh.q8().wrapping_mul(delivered) {
            return Verdict::Nothing;
        }
        let interval_ms = seen.delivered_ms().wrapping_sub(self.lt_last_stamp);
        if (interval_ms as i32) < 1 {
            return Verdict::Nothing;
        }
        if interval_ms >= u32::MAX / 1_000 {
            self.reset(seen.delivered, seen.lost, seen.delivered_us);
            return Verdict::Nothing;
        }
        let bw = (((delivered as u64) << BW_SCALE) / (interval_ms as u64 * 1_000)) as u32;
        self.end_interval(params, seen, bw)
    }

    fn begin_interval(&mut self, seen: &Observation) {
        self.lt_last_stamp = seen.delivered_ms();
        self.lt_last_delivered = seen.delivered;
        self.lt_last_lost = seen.lost;
        self.lt_rtt_cnt = 0;
    }

    /// Compares the interval with the one before it (Linux: `bbr_lt_bw_interval_done`). The products wrap as there.
    fn end_interval(&mut self, params: &Params, seen: &Observation, bw: u32) -> Verdict {
        if self.lt_bw != 0 {
            let difference = (bw.wrapping_sub(self.lt_bw) as i32).unsigned_abs();
            let close =
                difference.wrapping_mul(Gain::ONE.q8()) <= params.lt_bw_ratio.q8().wrapping_mul(self.lt_bw);
            let bytes = || {
                bytes_per_sec(
                    difference as u64,
                    Gain::ONE,
                    seen.mss,
                    usecs_less_margin(params.pacing_margin_percent),
                )
            };
            if close || bytes() <= params.lt_bw_diff as u64 {
                self.lt_bw = bw.wrapping_add(self.lt_bw) >> 1;
                self.lt_use_bw = true;
                self.lt_rtt_cnt = 0;
                return Verdict::Found;
            }
        }
        self.lt_bw = bw;
        self.begin_interval(seen);
        Verdict::Nothing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path that delivers 100 segments and loses `lost` in each round of 100 ms.
    struct Path {
        policer: Policer,
        seen: Observation,
    }

    impl Path {
        fn new() -> Path {
            let seen = Observation {
                delivered: u32::MAX - 500,
                lost: u32::MAX - 50,
                delivered_us: 1_000_000,
                newly_lost: false,
                app_limited: false,
                round_start: true,
                in_probe_bw: true,
                mss: 1448,
            };
            Path { policer: Policer::default(), seen }
        }

        fn round(&mut self, delivered: u32, lost: u32) -> Verdict {
            self.seen.delivered = self.seen.delivered.wrapping_add(delivered);
            self.seen.lost = self.seen.lost.wrapping_add(lost);
            self.seen.delivered_us += 100_000;
            self.seen.newly_lost = lost > 0;
            self.policer.observe(&Params::default(), &self.seen)
        }
    }

    #[test]
    fn two_equal_lossy_intervals_detect_policer() {
        let mut path = Path::new();
        // The first ACK with loss begins an interval and is its first round; three more end it, four the second.
        let verdicts: [Verdict; 8] = core::array::from_fn(|_| path.round(100, 25));
        assert_eq!(verdicts[..7], [Verdict::Nothing; 7]);
        assert_eq!(verdicts[7], Verdict::Found);
        assert!(path.policer.lt_use_bw);
        // 100 segments in 100 ms: 2^24 / 1,000 (counters wrapped on the way).
        assert_eq!(path.policer.lt_bw, (1 << 24) / 1_000);
        for round in 1..48 {
            assert_eq!(path.round(100, 0), Verdict::Nothing, "round {round}");
        }
        assert_eq!(path.round(100, 0), Verdict::Released);
        assert!(!path.policer.lt_use_bw);
    }

    #[test]
    fn light_loss_is_not_a_policer() {
        let mut path = Path::new();
        for _ in 0..100 {
            assert_eq!(path.round(100, 19), Verdict::Nothing, "19 % is below 50/256");
        }
    }

    #[test]
    fn differing_rates_are_not_a_policer() {
        let mut path = Path::new();
        for interval in 0..20 {
            for _ in 0..4 {
                let delivered = if interval % 2 == 0 { 100 } else { 130 };
                assert_eq!(path.round(delivered, 40), Verdict::Nothing);
            }
        }
    }

    #[test]
    fn an_application_limited_sample_starts_over() {
        let mut path = Path::new();
        for _ in 0..6 {
            path.round(100, 25);
        }
        assert_ne!(path.policer.lt_bw, 0);
        path.seen.app_limited = true;
        path.round(100, 25);
        assert_eq!(path.policer.lt_bw, 0);
        assert!(!path.policer.lt_is_sampling);
    }
}
