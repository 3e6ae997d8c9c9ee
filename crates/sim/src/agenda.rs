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
use std::hint::select_unpredictable;

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

    /// The sources that are probably first and second; for hints only.
    fn likely(&self) -> [usize; 2];

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

/// A source and the time under which it is filed.
#[derive(Clone, Copy, Debug)]
struct Filed {
    time: u64,
    source: u64,
}

impl Filed {
    #[inline]
    fn new(time: Time, source: usize) -> Filed {
        Filed { time: time.as_nanos(), source: source as u64 }
    }

    /// The one that comes first. Without a branch: half of the guesses would be wrong, and each costs more than a match.
    #[inline]
    fn first_of(self, other: Filed) -> Filed {
        let order = |one: Filed| (one.time as u128) << 64 | one.source as u128;
        let wins = order(other) < order(self);
        Filed {
            time: select_unpredictable(wins, other.time, self.time),
            source: select_unpredictable(wins, other.source, self.source),
        }
    }
}

/// Four that play against each other, in one line of the caches.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Four([Filed; 4]);

/// The agenda of every run except an oracle's.
#[derive(Debug)]
pub(crate) struct Winners {
    entries: Vec<Entry>,
    /// Winner tree over what is filed. The nodes are numbered level by level, the root is 0, the children of node `n` are
    /// `4 n + 1` to `4 n + 4`, the leaves are the sources. `tree[n]` has the winners of the children of `n`, unless those are
    /// leaves; the root's own is `first`. Winners are copied with their times, so that a match reads one place. Empty if a
    /// scan is enough.
    tree: Vec<Four>,
    /// The number of the first leaf.
    leaves: usize,
    /// The source that is filed first, and under which time.
    first: (Time, usize),
    /// The winner of those that did not meet the first before the last match.
    second: usize,
}

impl Winners {
    /// Files a source that is not filed under its time.
    #[inline(never)]
    fn file(&mut self, source: usize) {
        let entry = &mut self.entries[source];
        let time = entry.due;
        entry.filed = time;
        if !self.tree.is_empty() {
            self.climb(source, time);
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

    /// Plays a source's matches from its leaf to the root. All of them: where a source stops winning cannot be predicted.
    fn climb(&mut self, source: usize, time: Time) {
        let rival = |step: usize| Filed::new(self.entries[source ^ step].filed, source ^ step);
        let mut winner = Filed::new(time, source).first_of(rival(1).first_of(rival(2)).first_of(rival(3)));
        let mut beaten = winner;
        let mut node = (self.leaves + source - 1) / 4;
        while node > 0 {
            let (parent, place) = ((node - 1) / 4, node - 1);
            let four = &mut self.tree[parent].0;
            let rival = |step: usize| four[(place ^ step) % 4];
            let rivals = rival(1).first_of(rival(2)).first_of(rival(3));
            four[place % 4] = winner;
            (winner, beaten) = (winner.first_of(rivals), rivals);
            node = parent;
        }
        self.second = beaten.source as usize;
        self.first = (Time::from_nanos(winner.time), winner.source as usize);
    }
}

impl Agenda for Winners {
    fn new(sources: usize) -> Winners {
        let nothing = Entry { due: Time::NEVER, filed: Time::NEVER };
        let (mut tree, mut leaves, mut width) = (Vec::new(), 0, sources);
        if sources > SCAN {
            width = 1;
            while width < sources {
                leaves += width;
                width *= 4;
            }
            // Nothing is filed, so that each node's lowest source wins.
            let lowest = |mut node: usize| {
                while node < leaves {
                    node = 4 * node + 1;
                }
                Filed::new(Time::NEVER, node - leaves)
            };
            let children = |node: usize| Four(std::array::from_fn(|child| lowest(4 * node + 1 + child)));
            tree = (0..leaves - width / 4).map(children).collect();
        }
        Winners { entries: vec![nothing; width], tree, leaves, first: (Time::NEVER, 0), second: 0 }
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
    fn likely(&self) -> [usize; 2] {
        [self.first.1, self.second]
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

    fn likely(&self) -> [usize; 2] {
        [self.heap.peek().map_or(0, |first| first.0.1); 2]
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
            sources in prop_oneof![1usize..40, 40usize..600],
            changes in prop::collection::vec((0usize..600, 0u64..50, any::<bool>()), 1..200),
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
