//! What the last round trip delivered and lost, and the bounds that follow from it until the next probe.

use super::Params;
use crate::controllers::bbr::after;
use crate::gain::Gain;

/// No bound (Linux: `~0U`).
pub(crate) const UNSET: u32 = u32::MAX;

/// The signals of congestion, and the lower bounds (Linux: `loss_round_*`, `*_latest`, `*_lo`, `*_in_round`, `*_in_cycle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Signals {
    /// Segments delivered when the round of losses began.
    pub(crate) loss_round_delivered: u32,
    /// The present ACK begins one.
    pub(crate) loss_round_start: bool,
    /// Losses and marks in the round, and since the last probe.
    pub(crate) loss_in_round: bool,
    pub(crate) ecn_in_round: bool,
    pub(crate) loss_in_cycle: bool,
    pub(crate) ecn_in_cycle: bool,
    /// The most bandwidth and volume that the round delivered.
    pub(crate) bw_latest: u32,
    pub(crate) inflight_latest: u32,
    /// The bounds.
    pub(crate) bw_lo: u32,
    pub(crate) inflight_lo: u32,
}

/// An ACK's sample with a positive interval that delivered something.
pub(crate) struct Observed {
    pub(crate) bw: u32,
    pub(crate) delivered: u32,
    pub(crate) prior_delivered: u64,
    /// Of the connection.
    pub(crate) total: u64,
}

impl Signals {
    /// Of a connection that has delivered this many segments.
    pub(crate) fn new(delivered: u64) -> Signals {
        Signals {
            loss_round_delivered: (delivered as u32).wrapping_add(1),
            loss_round_start: false,
            loss_in_round: false,
            ecn_in_round: false,
            loss_in_cycle: false,
            ecn_in_cycle: false,
            bw_latest: 0,
            inflight_latest: 0,
            bw_lo: UNSET,
            inflight_lo: UNSET,
        }
    }

    /// Linux: `bbr_update_latest_delivery_signals`.
    #[inline]
    pub(crate) fn observe(&mut self, observed: Option<&Observed>) {
        self.loss_round_start = false;
        let Some(observed) = observed else { return };
        self.bw_latest = self.bw_latest.max(observed.bw);
        self.inflight_latest = self.inflight_latest.max(observed.delivered);
        if !after(self.loss_round_delivered, observed.prior_delivered as u32) {
            self.loss_round_delivered = observed.total as u32;
            self.loss_round_start = true;
        }
    }

    /// The first loss of a round begins the round (Linux: `bbr_note_loss`).
    pub(crate) fn note_loss(&mut self, delivered: u64) {
        if !self.loss_in_round {
            self.loss_round_delivered = delivered as u32;
        }
        self.loss_in_round = true;
        self.loss_in_cycle = true;
    }

    /// Cuts the bounds for the round's losses and marks (Linux: `bbr_adapt_lower_bounds`). `kept_after_marks` is what marks leave of
    /// `inflight_lo`.
    pub(crate) fn adapt_lower_bounds(
        &mut self,
        params: &Params,
        max_bw: u32,
        cwnd: u32,
        kept_after_marks: Gain,
    ) {
        let mut marked = UNSET;
        if self.ecn_in_round && params.ecn_factor > Gain::from_q8(0) {
            self.begin_inflight_lo(cwnd);
            marked = kept_after_marks.times(self.inflight_lo as u64) as u32;
        }
        if self.loss_in_round {
            if self.bw_lo == UNSET {
                self.bw_lo = max_bw;
            }
            self.begin_inflight_lo(cwnd);
            let kept = Gain::from_q8(Gain::ONE.q8() - params.loss_cut.q8());
            self.bw_lo = self.bw_latest.max(kept.times(self.bw_lo as u64) as u32);
            self.inflight_lo = self.inflight_latest.max(kept.times(self.inflight_lo as u64) as u32);
        }
        self.inflight_lo = self.inflight_lo.min(marked);
        self.bw_lo = self.bw_lo.max(1);
    }

    fn begin_inflight_lo(&mut self, cwnd: u32) {
        if self.inflight_lo == UNSET {
            self.inflight_lo = cwnd;
        }
    }

    /// Linux: `bbr_reset_lower_bounds`.
    pub(crate) fn reset_lower_bounds(&mut self) {
        (self.bw_lo, self.inflight_lo) = (UNSET, UNSET);
    }

    /// Linux: `bbr_reset_congestion_signals`.
    pub(crate) fn reset(&mut self) {
        (self.loss_in_round, self.ecn_in_round) = (false, false);
        (self.loss_in_cycle, self.ecn_in_cycle) = (false, false);
        (self.bw_latest, self.inflight_latest) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(loss: bool, marks: bool) -> Signals {
        Signals { loss_in_round: loss, ecn_in_round: marks, ..Signals::new(0) }
    }

    #[test]
    fn lossy_round_keeps_180_of_256() {
        let params = Params::default();
        let mut signals = seen(true, false);
        signals.adapt_lower_bounds(&params, 1_000, 100, Gain::ONE);
        assert_eq!((signals.bw_lo, signals.inflight_lo), (703, 70));
        (signals.bw_latest, signals.inflight_latest) = (650, 60);
        signals.adapt_lower_bounds(&params, 1_000, 100, Gain::ONE);
        assert_eq!((signals.bw_lo, signals.inflight_lo), (650, 60));
    }

    #[test]
    fn marks_cut_flight_below_delivered() {
        let mut signals = Signals { inflight_latest: 95, ..seen(false, true) };
        signals.adapt_lower_bounds(&Params::default(), 1_000, 100, Gain::from_q8(171));
        assert_eq!((signals.bw_lo, signals.inflight_lo), (UNSET, 66));
        let mut both = Signals { inflight_latest: 95, ..seen(true, true) };
        both.adapt_lower_bounds(&Params::default(), 1_000, 100, Gain::from_q8(171));
        assert_eq!(both.inflight_lo, 66, "the lower of the two");
    }

    #[test]
    fn a_loss_begins_its_round_once() {
        let mut signals = Signals::new(5);
        signals.note_loss(100);
        signals.note_loss(110);
        assert_eq!(signals.loss_round_delivered, 100);
        let observed = |prior_delivered| Observed { bw: 1, delivered: 1, prior_delivered, total: 120 };
        signals.observe(Some(&observed(99)));
        assert!(!signals.loss_round_start);
        signals.observe(Some(&observed(100)));
        assert!(signals.loss_round_start);
        signals.observe(None);
        assert!(!signals.loss_round_start);
    }
}
