//! Reordering: a packet is sometimes held back, so that later ones overtake it.

use crate::config::Probability;
use crate::rng::Stream;
use fullpipe_units::{Duration, Time};

/// Holds back a packet with a probability; the others pass at once.
#[derive(Debug)]
pub(crate) struct Reorder {
    probability: Probability,
    delay: Duration,
    random: Stream,
}

impl Reorder {
    pub(crate) fn new(probability: Probability, delay: Duration, random: Stream) -> Reorder {
        Reorder { probability, delay, random }
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Time {
        if self.probability.happens(self.random.next_u32()) { now.saturating_add(self.delay) } else { now }
    }
}
