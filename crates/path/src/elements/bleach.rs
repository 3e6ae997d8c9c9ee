//! Bleaching: a router or a carrier clears the ECN field of packets, and with it marks that queues before it have set.
//!
//! No router may do so (RFC 3168, section 12), but some do: "Measuring ECN++: Good News for ++, Bad News for ECN over Mobile" (IEEE
//! Communications Magazine, 2018) finds the field wiped at the first hop of more than half of the mobile carriers that it
//! measured, and "A Fresh Look at ECN Traversal in the Wild" (arXiv 2208.14523, 2022) on 4.17 % of all paths. What they find
//! clears the whole field, whatever it holds, and not CE alone: so does this element.

use crate::config::Probability;
use crate::packet::{Ecn, Fate};
use crate::rng::Stream;
use fullpipe_units::Time;

/// Clears the ECN field with a probability. It draws once for each packet, whatever its codepoint, so that runs with and without
/// ECN have the same random numbers.
#[derive(Debug)]
pub(crate) struct Bleach {
    probability: Probability,
    random: Stream,
}

impl Bleach {
    pub(crate) fn new(probability: Probability, random: Stream) -> Bleach {
        Bleach { probability, random }
    }

    #[inline]
    pub(crate) fn admit(&mut self, now: Time) -> Fate {
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

    #[test]
    fn the_field_is_cleared_as_often_as_the_probability_says() {
        let cleared = |share| {
            let mut bleach = Bleach::new(Probability::from_f64(share), Stream::new(1, 0));
            let now = Time::from_nanos(5);
            let fates = (0..100_000).map(|_| bleach.admit(now));
            fates.filter(|fate| *fate == Fate::Remarked(now, Ecn::NotEct)).count()
        };
        assert_eq!((cleared(0.0), cleared(1.0)), (0, 100_000));
        // Standard deviation: sqrt(0.3 * 0.7 * 100000) = 145.
        assert!(cleared(0.3).abs_diff(30_000) < 750, "{}", cleared(0.3));
    }
}
