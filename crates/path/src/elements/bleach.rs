//! Bleaching: a router or a carrier clears the ECN field of packets, and with it marks that queues before it have set.
//!
//! No router may do so (RFC 3168, section 12), but some do: "Measuring ECN++: Good News for ++, Bad News for ECN over Mobile" (IEEE
//! Communications Magazine, 2018) finds the field wiped at the first hop of more than half of the mobile carriers that it
//! measured, and "A Fresh Look at ECN Traversal in the Wild" (arXiv 2208.14523, 2022) on 4.17 % of all paths. What they find
//! clears the whole field, whatever it holds, and not CE alone: so does this element.

use crate::config::Probability;
use crate::element::{Setup, Transit, element};
use crate::packet::{Ecn, Fate, Moment, Packet};
use crate::rng::Stream;

element! {
    /// Clears the ECN field of packets, and with it the marks of queues before it, as some routers and carriers do.
    "bleach", shown as |this| "ECN cleared of {}", this.probability;
    /// Of each packet. Default: 100 %.
    probability as "probability": Probability = "100 %";
}

/// Clears the ECN field with a probability. It draws once for each packet, whatever its codepoint, so that runs with and without
/// ECN have the same random numbers.
#[derive(Debug)]
pub(crate) struct Bleach {
    probability: Probability,
    random: Stream,
}

impl Transit for Bleach {
    type Config = Config;
    const TAKES_TIME: bool = false;

    fn new(config: &Config, Setup { random, .. }: Setup) -> Bleach {
        Bleach { probability: config.probability, random }
    }

    #[inline]
    fn admit(&mut self, Moment { arrival: now, .. }: Moment, _: &Packet) -> Fate {
        if self.probability.happens(self.random.next_u32()) {
            Fate::Remarked(now, Ecn::NotEct)
        } else {
            Fate::Leaves(now)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Time;

    #[test]
    fn field_clearing_matches_probability() {
        let cleared = |share| {
            let setup = Setup { random: Stream::new(1, 0), announced: false };
            let mut bleach = Bleach::new(&Config { probability: Probability::from_f64(share) }, setup);
            let now = Time::from_nanos(5);
            let moment = Moment::at(now);
            let fates = (0..100_000).map(|_| bleach.admit(moment, &Packet::new(1500, 0)));
            fates.filter(|fate| *fate == Fate::Remarked(now, Ecn::NotEct)).count()
        };
        assert_eq!((cleared(0.0), cleared(1.0)), (0, 100_000));
        // Standard deviation: sqrt(0.3 * 0.7 * 100000) = 145.
        assert!(cleared(0.3).abs_diff(30_000) < 750, "{}", cleared(0.3));
    }
}
