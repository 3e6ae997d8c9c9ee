//! Random loss in bursts (Gilbert and Elliott).

use crate::config::{AdmissionUnit, Probability};
use crate::element::{Setup, Transit, element};
use crate::packet::{BurstFate, Cause, Fate, Moment, Packet};
use crate::rng::Stream;

element! {
    /// Loss in bursts: a good and a bad state, each with its own loss (Gilbert-Elliott).
    "gilbert_elliott", shown as |this| "Gilbert-Elliott loss {} and {}, changing with {} and {}{}", this.loss_good,
        this.loss_bad, this.good_to_bad, this.bad_to_good, this.unit.in_words();
    /// Probability, at each packet, of going from good to bad.
    good_to_bad as "good_to_bad": Probability;
    /// Probability, at each packet, of going from bad to good.
    bad_to_good as "bad_to_good": Probability;
    /// Loss in the good state. Default: 0.
    loss_good as "loss_good": Probability = "0 %";
    /// Loss in the bad state. Default: 100 %.
    loss_bad as "loss_bad": Probability = "100 %";
    /// What is lost as one. Default: segment.
    #[serde(default, skip_serializing_if = "AdmissionUnit::is_segment")]
    unit as "unit": AdmissionUnit;
    prompt |_| "burst loss";
}

/// The two-state loss model of Gilbert (1960) and Elliott (1963), in the order of Linux `sch_netem.c`
/// (`loss_gilb_ell`): a packet is lost by the probability of the state it finds, and then the state may change. It starts in the
/// good state.
#[derive(Debug)]
pub(crate) struct GilbertElliott {
    /// The probabilities to leave the state, and to lose a packet in it: [good, bad].
    states: [State; 2],
    bad: bool,
    random: Stream,
}

/// The probabilities of one state.
#[derive(Clone, Copy, Debug)]
struct State {
    leave: Probability,
    lose: Probability,
}

impl Transit for GilbertElliott {
    type Config = Config;
    const TAKES_TIME: bool = false;

    fn new(config: &Config, Setup { random, .. }: Setup) -> GilbertElliott {
        let good = State { leave: config.good_to_bad, lose: config.loss_good };
        let bad = State { leave: config.bad_to_good, lose: config.loss_bad };
        GilbertElliott { states: [good, bad], bad: false, random }
    }

    #[inline]
    fn admit(&mut self, moment: Moment, _: &Packet) -> Fate {
        if self.loses() { Fate::Dropped(Cause::Lost) } else { Fate::Leaves(moment.arrival) }
    }

    fn admit_burst(&mut self, moment: Moment, _: &[Packet]) -> BurstFate {
        if self.loses() { BurstFate::Dropped(Cause::Lost) } else { BurstFate::Leaves(moment.arrival) }
    }
}

impl GilbertElliott {
    #[inline]
    fn loses(&mut self) -> bool {
        let state = self.states[self.bad as usize];
        let draw = self.random.next_u64();
        let lost = state.lose.happens((draw >> 32) as u32);
        self.bad ^= state.leave.happens(draw as u32);
        lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_match_stationary_loss_and_length() {
        // Gilbert's model: bad loses everything. P(bad) = 0.01 / (0.01 + 0.25) = 1/26; a run lasts 1 / 0.25 = 4 packets.
        let p = Probability::from_f64;
        let config = Config {
            good_to_bad: p(0.01),
            bad_to_good: p(0.25),
            loss_good: p(0.0),
            loss_bad: p(1.0),
            unit: AdmissionUnit::Segment,
        };
        let setup = Setup { random: Stream::new(7, 3), announced: false };
        let mut loss = GilbertElliott::new(&config, setup);
        let packets = 1_000_000;
        let (mut lost, mut runs, mut before) = (0, 0, false);
        for _ in 0..packets {
            let now = loss.loses();
            lost += now as u64;
            runs += (now && !before) as u64;
            before = now;
        }
        assert!((lost as f64 / packets as f64 - 1.0 / 26.0).abs() < 0.002, "{lost}");
        assert!((lost as f64 / runs as f64 - 4.0).abs() < 0.2, "{lost} in {runs} runs");
    }
}
