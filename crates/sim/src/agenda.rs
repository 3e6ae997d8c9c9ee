//! What happens next: one entry a link, flow or clock, not one a packet.
//!
//! Every source of events keeps exactly one time here. Up to [`SCAN`] sources a linear scan finds the earliest; beyond,
//! a winner tree, in which changing one time costs one path from leaf to root. Equal times go to the lower source.

use fullpipe_units::Time;

/// Most sources for which a scan beats the tree.
const SCAN: usize = 12;

/// The agenda of a simulation. Sources are numbered from zero.
#[derive(Debug)]
pub(crate) struct Agenda {
    times: Vec<Time>,
    /// Winner tree over `times`: `winners[1]` is the earliest source, `winners[i]` the earlier of its two children.
    winners: Vec<u32>,
    leaves: usize,
}

impl Agenda {
    /// An agenda of `sources` sources with nothing to do.
    pub(crate) fn new(sources: usize) -> Agenda {
        let leaves = sources.next_power_of_two();
        let mut times = vec![Time::NEVER; leaves];
        times.shrink_to_fit();
        let mut winners = Vec::new();
        if sources > SCAN {
            winners = vec![0; 2 * leaves];
            for leaf in 0..leaves {
                winners[leaves + leaf] = leaf as u32;
            }
            for node in (1..leaves).rev() {
                winners[node] = winners[2 * node];
            }
        } else {
            times.truncate(sources);
        }
        Agenda { times, winners, leaves }
    }

    /// Source `source` next has something to do at `time`.
    #[inline]
    pub(crate) fn set(&mut self, source: usize, time: Time) {
        if self.times[source] == time {
            return;
        }
        self.times[source] = time;
        if self.winners.is_empty() {
            return;
        }
        let mut node = (self.leaves + source) / 2;
        while node > 0 {
            let (left, right) = (self.winners[2 * node], self.winners[2 * node + 1]);
            self.winners[node] =
                if self.times[right as usize] < self.times[left as usize] { right } else { left };
            node /= 2;
        }
    }

    /// The earliest time and its source.
    #[inline]
    pub(crate) fn next(&self) -> (Time, usize) {
        if self.winners.is_empty() {
            let mut first = 0;
            for source in 1..self.times.len() {
                if self.times[source] < self.times[first] {
                    first = source;
                }
            }
            return (self.times[first], first);
        }
        let first = self.winners[1] as usize;
        (self.times[first], first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tree_and_scan_agree(
            changes in prop::collection::vec((0usize..40, 0u64..50), 1..200)
        ) {
            let mut tree = Agenda::new(40);
            let mut plain = vec![Time::NEVER; 40];
            for (source, time) in changes {
                tree.set(source, Time::from_nanos(time));
                plain[source] = Time::from_nanos(time);
                let first = (0..40).min_by_key(|i| (plain[*i], *i)).unwrap();
                prop_assert_eq!(tree.next(), (plain[first], first));
            }
        }
    }

    #[test]
    fn equal_times_go_to_the_lower_source() {
        let mut agenda = Agenda::new(3);
        agenda.set(2, Time::from_nanos(5));
        agenda.set(1, Time::from_nanos(5));
        assert_eq!(agenda.next(), (Time::from_nanos(5), 1));
    }
}
