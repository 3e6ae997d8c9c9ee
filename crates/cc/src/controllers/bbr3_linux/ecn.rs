//! The share of marked segments, and what follows from it (Linux: `bbr_update_ecn_alpha`).

use super::Params;
use crate::gain::Gain;

/// The estimator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ecn {
    /// Marks count: the RTT was short enough once, and ECN was negotiated.
    pub(crate) ecn_eligible: bool,
    /// The share of marked segments, an average over rounds.
    pub(crate) ecn_alpha: Gain,
    /// Segments delivered, and marked ones of them, when the average last took a round in.
    pub(crate) alpha_last_delivered: u32,
    pub(crate) alpha_last_delivered_ce: u32,
    /// Rounds of Startup, in a row, with a share above the threshold.
    pub(crate) startup_ecn_rounds: u32,
    /// Marked segments so far (Linux: `tp->delivered_ce`).
    pub(crate) delivered_ce: u32,
    /// The present ACK echoes marks (Linux: `rs->is_ece`).
    pub(crate) is_ece: bool,
}

impl Ecn {
    pub(crate) fn new(params: &Params) -> Ecn {
        Ecn {
            ecn_eligible: false,
            ecn_alpha: params.ecn_alpha_init,
            alpha_last_delivered: 0,
            alpha_last_delivered_ce: 0,
            startup_ecn_rounds: 0,
            delivered_ce: 0,
            is_ece: false,
        }
    }

    /// A round ends. Returns the share of its segments that were marked, if marks count.
    pub(crate) fn on_round(&mut self, params: &Params, min_rtt_us: u32, delivered: u64) -> Option<Gain> {
        let short = params.ecn_max_rtt_us == 0 || min_rtt_us <= params.ecn_max_rtt_us;
        self.ecn_eligible |= params.ecn && params.ecn_factor > Gain::from_q8(0) && short;
        if !self.ecn_eligible {
            return None;
        }
        let newly = (delivered as u32).wrapping_sub(self.alpha_last_delivered) as i32;
        let marked = self.delivered_ce.wrapping_sub(self.alpha_last_delivered_ce) as i32;
        if newly <= 0 || marked < 0 {
            return None;
        }
        let share = ((marked as u64) << 8) / newly as u64;
        let gain = params.ecn_alpha_gain.q8();
        let old = ((Gain::ONE.q8() - gain) * self.ecn_alpha.q8()) >> 8;
        let alpha = old as u64 + ((gain as u64 * share) >> 8);
        self.ecn_alpha = Gain::from_q8((alpha as u32).min(Gain::ONE.q8()));
        self.alpha_last_delivered = delivered as u32;
        self.alpha_last_delivered_ce = self.delivered_ce;
        Some(Gain::from_q8(share as u32))
    }

    /// Counts rounds of Startup with this share of marks; returns whether they are enough to end it (Linux:
    /// `bbr_check_ecn_too_high_in_startup`).
    pub(crate) fn ends_startup(&mut self, params: &Params, share: Gain) -> bool {
        if params.full_ecn_cnt == 0 || params.ecn_thresh == Gain::from_q8(0) {
            return false;
        }
        // Two bits.
        self.startup_ecn_rounds =
            if share >= params.ecn_thresh { (self.startup_ecn_rounds + 1) & 3 } else { 0 };
        self.startup_ecn_rounds >= params.full_ecn_cnt
    }

    /// What a round with marks leaves of `inflight_lo` (Linux: `bbr_ecn_cut`).
    pub(crate) fn kept(&self, params: &Params) -> Gain {
        Gain::from_q8(Gain::ONE.q8() - ((self.ecn_alpha.q8() * params.ecn_factor.q8()) >> 8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_rtt_enables_averaging_of_marks() {
        let params = Params { ecn: true, ..Params::default() };
        let mut ecn = Ecn { ecn_alpha: Gain::from_q8(0), ..Ecn::new(&params) };
        assert_eq!(ecn.on_round(&params, 5_001, 100), None);
        assert!(!ecn.ecn_eligible);
        ecn.delivered_ce = 50;
        assert_eq!(ecn.on_round(&params, 5_000, 100), Some(Gain::from_q8(128)));
        assert_eq!(ecn.ecn_alpha, Gain::from_q8(8), "a sixteenth of a half");
        assert_eq!(
            ecn.on_round(&params, 90_000, 300),
            Some(Gain::from_q8(0)),
            "a longer RTT changes nothing any more"
        );
        assert_eq!(ecn.ecn_alpha, Gain::from_q8(7));
        assert_eq!(ecn.on_round(&params, 5_000, 300), None, "nothing was delivered");
    }

    #[test]
    fn without_ecn_no_round_counts() {
        let mut ecn = Ecn::new(&Params::default());
        ecn.delivered_ce = 50;
        assert_eq!(ecn.on_round(&Params::default(), 100, 100), None);
        assert_eq!(ecn.ecn_alpha, Gain::ONE);
    }

    #[test]
    fn all_marked_takes_a_third_off() {
        let params = Params::default();
        assert_eq!(Ecn::new(&params).kept(&params), Gain::from_q8(171));
    }

    #[test]
    fn two_half_marked_rounds_end_startup() {
        let params = Params { ecn: true, ..Params::default() };
        let mut ecn = Ecn::new(&params);
        let mut after = |q8| ecn.ends_startup(&params, Gain::from_q8(q8));
        assert_eq!([after(128), after(127), after(128), after(200)], [false, false, false, true]);
    }
}
