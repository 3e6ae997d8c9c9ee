//! Reordering: a packet is sometimes held back, so that later ones overtake it.

use crate::config::Probability;
use crate::element::{Setup, Transit, element};
use crate::packet::{Fate, Moment, Packet};
use crate::rng::Stream;
use fullpipe_units::Duration;

element! {
    /// Holds some packets back, so that later ones overtake them.
    "reorder", shown as |this| "{} held back by {}", this.probability, this.delay_ns;
    /// Of each packet.
    probability as "probability": Probability;
    /// How long it is held back.
    delay_ns as "delay": Duration;
    option "reorder" = ["probability", "delay"], After, "1 %, 5 ms",
        "Share of packets that are held back, and for how long";
}

/// Holds back a packet with a probability; the others pass at once.
#[derive(Debug)]
pub(crate) struct Reorder {
    probability: Probability,
    delay: Duration,
    random: Stream,
}

impl Transit for Reorder {
    type Config = Config;
    const TAKES_TIME: bool = true;

    fn new(config: &Config, Setup { random, .. }: Setup) -> Reorder {
        let &Config { probability, delay_ns } = config;
        Reorder { probability, delay: delay_ns, random }
    }

    fn reorders(&self) -> bool {
        true
    }

    #[inline]
    fn admit(&mut self, Moment { arrival, .. }: Moment, _: &Packet) -> Fate {
        let held = self.probability.happens(self.random.next_u32());
        Fate::Leaves(if held { arrival.saturating_add(self.delay) } else { arrival })
    }
}
