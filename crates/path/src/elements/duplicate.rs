//! Duplication: a packet sometimes becomes two, which leave at the same time.

use crate::config::Probability;
use crate::element::{Setup, Transit, element};
use crate::packet::{Fate, Moment, Packet};
use crate::rng::Stream;

element! {
    /// Delivers some packets twice.
    "duplicate", shown as |this| "duplicates {}", this.probability;
    /// Of each packet.
    probability as "probability": Probability;
}

/// Duplicates a packet with a probability. The copy directly follows it and passes the rest of the path independently.
#[derive(Debug)]
pub(crate) struct Duplicate {
    probability: Probability,
    random: Stream,
}

impl Transit for Duplicate {
    type Config = Config;
    const TAKES_TIME: bool = false;

    fn new(config: &Config, Setup { random, .. }: Setup) -> Duplicate {
        Duplicate { probability: config.probability, random }
    }

    #[inline]
    fn admit(&mut self, Moment { arrival: now, .. }: Moment, _: &Packet) -> Fate {
        if self.probability.happens(self.random.next_u32()) { Fate::Twice(now) } else { Fate::Leaves(now) }
    }
}
