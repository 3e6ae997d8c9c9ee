//! Duplication: a packet sometimes becomes two, which leave at the same time.

use crate::config::Probability;
use crate::packet::Fate;
use crate::rng::Stream;
use fullpipe_units::Time;

/// Duplicates a packet with a probability. The copy directly follows it and passes the rest of the path independently.
#[derive(Debug)]
pub(crate) struct Duplicate {
    probability: Probability,
    random: Stream,
}

impl Duplicate {
    pub(crate) fn new(probability: Probability, random: Stream) -> Duplicate {
        Duplicate { probability, random }
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Fate {
        if self.probability.happens(self.random.next_u32()) { Fate::Twice(now) } else { Fate::Leaves(now) }
    }
}
