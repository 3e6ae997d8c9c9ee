//! Random loss: independent, or in bursts (Gilbert and Elliott).

use crate::config::{Probability, Schedule};
use crate::packet::{Cause, Fate};
use crate::rng::Stream;
use crate::schedule::Cursor;
use fullpipe_units::Time;

/// Independent loss. It draws once for each packet, whatever the probability, so that runs with other probabilities
/// differ only where they must.
#[derive(Debug)]
pub(crate) struct Loss {
    probability: Cursor<Probability>,
    random: Stream,
}

impl Loss {
    pub(crate) fn new(probability: &Schedule<Probability>, random: Stream) -> Loss {
        Loss { probability: Cursor::new(probability), random }
    }

    /// The probability for packets that arrive from `from` on, until the schedule's next change.
    pub(crate) fn change(&mut self, from: Time, probability: Probability) {
        self.probability.change(from, probability);
    }

    #[inline]
    pub(crate) fn loses(&mut self, now: Time) -> bool {
        self.probability.at(now).happens(self.random.next_u32())
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Fate {
        if self.loses(now) { Fate::Dropped(Cause::Lost) } else { Fate::Leaves(now) }
    }
}

/// The two-state loss model of Gilbert (1960) and Elliott (1963), in the order of Linux `sch_netem.c`
/// (`loss_gilb_ell`): a packet is lost by the probability of the state it finds, and then the state may change.
#[derive(Debug)]
pub(crate) struct GilbertElliott {
    /// The probabilities to leave the state, and to lose a packet in it: [good, bad].
    states: [State; 2],
    bad: bool,
    random: Stream,
}

/// The probabilities of one state.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) leave: Probability,
    pub(crate) lose: Probability,
}

impl GilbertElliott {
    /// Starts in the good state.
    pub(crate) fn new(good: State, bad: State, random: Stream) -> GilbertElliott {
        GilbertElliott { states: [good, bad], bad: false, random }
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Fate {
        let state = self.states[self.bad as usize];
        let draw = self.random.next_u64();
        let lost = state.lose.happens((draw >> 32) as u32);
        self.bad ^= state.leave.happens(draw as u32);
        if lost { Fate::Dropped(Cause::Lost) } else { Fate::Leaves(now) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share_lost(packets: u64, mut admit: impl FnMut(Time) -> Fate) -> f64 {
        let lost = (0..packets).filter(|&nanos| admit(Time::from_nanos(nanos)) == Fate::Dropped(Cause::Lost));
        lost.count() as f64 / packets as f64
    }

    #[test]
    fn loss_keeps_its_probability_and_its_schedule() {
        let changes = vec![(Time::from_nanos(100_000), Probability::from_f64(1.0))];
        let schedule = Schedule { initial: Probability::from_f64(0.02), changes };
        let mut loss = Loss::new(&schedule, Stream::new(1, 0));
        // Standard deviation: sqrt(0.02 * 0.98 / 100000) = 0.00044.
        assert!((share_lost(100_000, |now| loss.admit(now)) - 0.02).abs() < 0.002);
        assert_eq!(loss.admit(Time::from_nanos(100_000)), Fate::Dropped(Cause::Lost));
        let mut never = Loss::new(&Schedule::constant(Probability::ZERO), Stream::new(1, 0));
        assert_eq!(share_lost(100_000, |now| never.admit(now)), 0.0);
    }

    #[test]
    fn bursts_lose_the_stationary_share_in_runs_of_the_right_length() {
        // Gilbert's model: bad loses everything. P(bad) = 0.01 / (0.01 + 0.25) = 1/26; a run lasts 1 / 0.25 = 4 packets.
        let p = Probability::from_f64;
        let good = State { leave: p(0.01), lose: p(0.0) };
        let bad = State { leave: p(0.25), lose: p(1.0) };
        let mut loss = GilbertElliott::new(good, bad, Stream::new(7, 3));
        let packets = 1_000_000;
        let (mut lost, mut runs, mut before) = (0, 0, false);
        for nanos in 0..packets {
            let now = loss.admit(Time::from_nanos(nanos)) == Fate::Dropped(Cause::Lost);
            lost += now as u64;
            runs += (now && !before) as u64;
            before = now;
        }
        assert!((lost as f64 / packets as f64 - 1.0 / 26.0).abs() < 0.002, "{lost}");
        assert!((lost as f64 / runs as f64 - 4.0).abs() < 0.2, "{lost} in {runs} runs");
    }
}
