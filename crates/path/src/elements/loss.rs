//! Independent random loss.

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

#[cfg(test)]
mod tests {
    use super::*;

    fn share_lost(packets: u64, mut admit: impl FnMut(Time) -> Fate) -> f64 {
        let lost = (0..packets).filter(|&nanos| admit(Time::from_nanos(nanos)) == Fate::Dropped(Cause::Lost));
        lost.count() as f64 / packets as f64
    }

    #[test]
    fn loss_follows_probability_and_schedule() {
        let changes = vec![(Time::from_nanos(100_000), Probability::from_f64(1.0))];
        let schedule = Schedule { initial: Probability::from_f64(0.02), changes };
        let mut loss = Loss::new(&schedule, Stream::new(1, 0));
        // Standard deviation: sqrt(0.02 * 0.98 / 100000) = 0.00044.
        assert!((share_lost(100_000, |now| loss.admit(now)) - 0.02).abs() < 0.002);
        assert_eq!(loss.admit(Time::from_nanos(100_000)), Fate::Dropped(Cause::Lost));
        let mut never = Loss::new(&Schedule::constant(Probability::ZERO), Stream::new(1, 0));
        assert_eq!(share_lost(100_000, |now| never.admit(now)), 0.0);
    }
}
