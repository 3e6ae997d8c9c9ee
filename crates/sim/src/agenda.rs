//! What happens next: one entry for each flow or clock, not one for each packet.
//!
//! Every source of events has exactly one time here. Most changes postpone a time (a retransmission timer moves with
//! every ACK), and those are cheap: the time is noted, and filed only when the old one is reached. Up to [`SCAN`]
//! sources, a linear scan finds the earliest; beyond, a winner tree, in which filing costs at most one path from leaf to
//! root. Of equal times, the lower source is first.
//!
//! [`Plain`] has a heap instead, for the run that others are compared with.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use fullpipe_units::Time;

/// Most sources for which a scan beats the tree.
const SCAN: usize = 12;

/// Keeps one time for each source, and finds the earliest.
pub(crate) trait Agenda {
    /// An agenda of `sources` sources with nothing to do. Sources are numbered from zero.
    fn new(sources: usize) -> Self;

    /// Source `source` next has something to do at `time`.
    fn set(&mut self, source: usize, time: Time);

    /// A time at or before the earliest.
    fn bound(&self) -> Time;

    /// The earliest time and its source.
    fn first(&mut self) -> (Time, usize);
}

/// A source's two times.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// When it has something to do.
    due: Time,
    /// The time under which it is filed; at or before `due`.
    filed: Time,
}

/// The agenda of every run except an oracle's.
#[derive(Debug)]
pub(crate) struct Winners {
    entries: Vec<Entry>,
    /// Winner tree over what is filed: `tree[1]` is the earliest source, `tree[i]` the earlier of its two children. Empty
    /// if a scan is enough.
    tree: Vec<u32>,
    /// The source that is filed first, and under which time.
    first: (Time, usize),
}

impl Winners {
    /// Files a source that is not filed under its time.
    #[inline(never)]
    fn file(&mut self, source: usize) {
        let time = self.entries[source].due;
        self.entries[source].filed = time;
        if !self.tree.is_empty() {
            self.climb(source);
        } else if source != self.first.1 {
            self.first = self.first.min((time, source));
        } else {
            self.scan();
        }
    }

    fn scan(&mut self) {
        let mut first = (self.entries[0].filed, 0);
        for (source, entry) in self.entries.iter().enumerate().skip(1) {
            if entry.filed < first.0 {
                first = (entry.filed, source);
            }
        }
        self.first = first;
    }

    /// Plays the matches from a source's leaf to the root; those above one that it neither won nor wins stand.
    fn climb(&mut self, source: usize) {
        let mut node = (self.entries.len() + source) / 2;
        while node > 0 {
            let (left, right) = (self.tree[2 * node], self.tree[2 * node + 1]);
            let right_wins = self.entries[right as usize].filed < self.entries[left as usize].filed;
            let winner = if right_wins { right } else { left };
            let stands = self.tree[node] == winner && winner as usize != source;
            self.tree[node] = winner;
            if stands {
                return;
            }
            node /= 2;
        }
        let first = self.tree[1] as usize;
        self.first = (self.entries[first].filed, first);
    }
}

impl Agenda for Winners {
    fn new(sources: usize) -> Winners {
        let leaves = if sources > SCAN { sources.next_power_of_two() } else { sources };
        let mut tree = Vec::new();
        if sources > SCAN {
            tree = vec![0; 2 * leaves];
            for leaf in 0..leaves {
                tree[leaves + leaf] = leaf as u32;
            }
            for node in (1..leaves).rev() {
                tree[node] = tree[2 * node];
            }
        }
        let nothing = Entry { due: Time::NEVER, filed: Time::NEVER };
        Winners { entries: vec![nothing; leaves], tree, first: (Time::NEVER, 0) }
    }

    #[inline]
    fn set(&mut self, source: usize, time: Time) {
        let entry = &mut self.entries[source];
        entry.due = time;
        if time < entry.filed {
            self.file(source);
        }
    }

    #[inline]
    fn bound(&self) -> Time {
        self.first.0
    }

    #[inline]
    fn first(&mut self) -> (Time, usize) {
        while self.entries[self.first.1].due != self.first.0 {
            self.file(self.first.1);
        }
        self.first
    }
}

/// The agenda of an oracle: every change goes into a heap, and outdated entries are skipped.
#[derive(Debug)]
pub(crate) struct Plain {
    due: Vec<Time>,
    /// Times and their sources. One entry of each source that has something to do is current; all others are outdated.
    heap: BinaryHeap<Reverse<(Time, usize)>>,
}

impl Agenda for Plain {
    fn new(sources: usize) -> Plain {
        Plain { due: vec![Time::NEVER; sources], heap: BinaryHeap::new() }
    }

    fn set(&mut self, source: usize, time: Time) {
        if self.due[source] != time {
            self.due[source] = time;
            if time != Time::NEVER {
                self.heap.push(Reverse((time, source)));
            }
        }
    }

    fn bound(&self) -> Time {
        self.heap.peek().map_or(Time::NEVER, |first| first.0.0)
    }

    fn first(&mut self) -> (Time, usize) {
        while let Some(&Reverse((time, source))) = self.heap.peek() {
            if self.due[source] == time {
                return (time, source);
            }
            self.heap.pop();
        }
        (Time::NEVER, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_earliest_and_lowest_source_is_first(
            sources in 1usize..40,
            changes in prop::collection::vec((0usize..40, 0u64..50, any::<bool>()), 1..200),
        ) {
            the_first_is_right::<Winners>(sources, &changes)?;
            the_first_is_right::<Plain>(sources, &changes)?;
        }
    }

    /// Compares an agenda with a scan of all times. A change: (source, time or zero for never, whether to ask now).
    fn the_first_is_right<A: Agenda>(
        sources: usize,
        changes: &[(usize, u64, bool)],
    ) -> Result<(), TestCaseError> {
        let mut agenda = A::new(sources);
        let mut times = vec![Time::NEVER; sources];
        for &(source, time, look) in changes {
            let source = source % sources;
            let time = if time == 0 { Time::NEVER } else { Time::from_nanos(time) };
            agenda.set(source, time);
            times[source] = time;
            let first = (0..sources).min_by_key(|i| (times[*i], *i)).unwrap();
            prop_assert!(agenda.bound() <= times[first]);
            if look {
                prop_assert_eq!(agenda.first(), (times[first], first));
            }
        }
        Ok(())
    }

    #[test]
    fn equal_times_go_to_the_lower_source() {
        fn first<A: Agenda>() -> (Time, usize) {
            let mut agenda = A::new(3);
            agenda.set(2, Time::from_nanos(5));
            agenda.set(1, Time::from_nanos(5));
            agenda.first()
        }
        assert_eq!(first::<Winners>(), (Time::from_nanos(5), 1));
        assert_eq!(first::<Plain>(), (Time::from_nanos(5), 1));
    }
}
