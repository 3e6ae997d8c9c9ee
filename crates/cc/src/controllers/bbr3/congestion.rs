//! What the path delivered in the last round, and the bounds that follow when that round lost data: the short-term model.

use super::{INFINITY, Params, Sample};

/// The latest signals and the short-term bounds (draft section 5.5.10.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Congestion {
    /// The largest delivery rate of the round, bytes a second.
    pub(crate) bw_latest: u64,
    /// The most delivered over a round trip in the round, bytes.
    pub(crate) inflight_latest: u64,
    /// Bytes a second, or [`INFINITY`].
    pub(crate) bw_shortterm: u64,
    /// Bytes, or [`INFINITY`].
    pub(crate) inflight_shortterm: u64,
    /// Units delivered when the round of losses began; one that was sent later ends it.
    pub(crate) loss_round_delivered: u64,
    /// The present ACK ended a round of losses.
    pub(crate) loss_round_start: bool,
    /// Something was lost in the round.
    pub(crate) is_loss_in_round: bool,
}

impl Congestion {
    /// A connection that has delivered this many units. The draft leaves the round unset (docs/explanation/bbr3.md, defect 6).
    pub(crate) const fn new(delivered: u64) -> Congestion {
        Congestion {
            bw_latest: 0,
            inflight_latest: 0,
            bw_shortterm: INFINITY,
            inflight_shortterm: INFINITY,
            loss_round_delivered: delivered,
            loss_round_start: false,
            is_loss_in_round: false,
        }
    }

    /// Takes in an ACK; `delivered` counts the connection's units after it.
    #[inline]
    pub(crate) fn on_sample(&mut self, sample: &Sample, delivered: u64) {
        // draft 5.5.10.3: UpdateLatestDeliverySignals, UpdateLatestDeliverySignals.loss_round_start.2
        self.loss_round_start = false;
        self.bw_latest = self.bw_latest.max(sample.delivery_rate);
        self.inflight_latest = self.inflight_latest.max(sample.delivered);
        if sample.has_data && sample.prior_delivered >= self.loss_round_delivered {
            self.loss_round_delivered = delivered;
            self.loss_round_start = true;
        }
    }

    /// The ACK is over.
    #[inline]
    pub(crate) fn advance(&mut self, sample: &Sample) {
        // draft 5.5.10.3: AdvanceLatestDeliverySignals
        if self.loss_round_start {
            self.bw_latest = sample.delivery_rate;
            self.inflight_latest = sample.delivered;
        }
    }

    /// Forgets the round.
    pub(crate) fn reset(&mut self) {
        // draft 5.5.10.3: ResetCongestionSignals
        self.is_loss_in_round = false;
        self.bw_latest = 0;
        self.inflight_latest = 0;
    }

    /// Something was lost when this many units had been delivered.
    pub(crate) fn note_loss(&mut self, delivered: u64) {
        // draft 5.5.10.2: NoteLoss
        if !self.is_loss_in_round {
            self.loss_round_delivered = delivered;
        }
        self.is_loss_in_round = true;
    }

    /// Adapts the bounds once a round, at the end of one with losses.
    pub(crate) fn adapt_lower_bounds(&mut self, params: &Params, max_bw: u64, cwnd: u64) {
        // draft 5.5.10.3: InitLowerBounds
        if self.bw_shortterm == INFINITY {
            self.bw_shortterm = max_bw;
        }
        if self.inflight_shortterm == INFINITY {
            self.inflight_shortterm = cwnd;
        }
        // draft 5.5.10.3: LossLowerBounds, steps.{bw_shortterm, inflight_shortterm}
        self.bw_shortterm = self.bw_latest.max(params.beta.of(self.bw_shortterm));
        self.inflight_shortterm = self.inflight_latest.max(params.beta.of(self.inflight_shortterm));
    }

    pub(crate) fn reset_short_term_model(&mut self) {
        // draft 5.5.10.3: ResetShortTermModel
        self.bw_shortterm = INFINITY;
        self.inflight_shortterm = INFINITY;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(prior_delivered: u64, delivery_rate: u64) -> Sample {
        Sample { has_data: true, prior_delivered, delivery_rate, delivered: 1_000, ..Sample::default() }
    }

    // draft 5.5.10.3: UpdateLatestDeliverySignals, UpdateLatestDeliverySignals.{loss_round_delivered, loss_round_start.2}
    #[test]
    fn loss_round_ends_with_later_segment() {
        let mut signals = Congestion::new(0);
        signals.on_sample(&sample(0, 500), 10);
        assert!(signals.loss_round_start);
        signals.note_loss(15);
        signals.note_loss(18);
        let ends = [14, 15, 16].map(|prior| {
            signals.on_sample(&sample(prior, 500), 30);
            signals.loss_round_start
        });
        assert_eq!(ends, [false, true, false], "the second loss does not move the round");
        signals.on_sample(&Sample::default(), 30);
        assert!(!signals.loss_round_start, "an ACK without news begins none");
    }

    // draft 5.5.10.3: UpdateLatestDeliverySignals, AdvanceLatestDeliverySignals
    #[test]
    fn latest_signals_are_round_maximum() {
        let mut signals = Congestion::new(100);
        for (prior, rate, latest) in [(10, 500, 500), (11, 400, 500), (100, 300, 300), (101, 450, 450)] {
            signals.on_sample(&sample(prior, rate), 200);
            signals.advance(&sample(prior, rate));
            assert_eq!(signals.bw_latest, latest);
        }
    }

    // draft 5.5.10.3: InitLowerBounds, LossLowerBounds, steps.{bw_shortterm, inflight_shortterm}
    #[test]
    fn loss_cuts_to_delivered_or_beta() {
        let mut signals = Congestion { bw_latest: 900, inflight_latest: 50, ..Congestion::new(0) };
        signals.adapt_lower_bounds(&Params::default(), 1_000, 200);
        assert_eq!((signals.bw_shortterm, signals.inflight_shortterm), (900, 140));
        signals.bw_latest = 0;
        signals.adapt_lower_bounds(&Params::default(), 1_000, 200);
        assert_eq!((signals.bw_shortterm, signals.inflight_shortterm), (630, 98));
    }
}
