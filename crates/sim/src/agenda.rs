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

    /// The source that is probably first; for hints only.
    fn likely(&self) -> usize;

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
    time: Time,
    source: u32,
}

/// The agenda of every run except an oracle's.
#[derive(Debug)]
pub(crate) struct Winners {
    entries: Vec<Entry>,
    /// Winner tree over what is filed: `tree[1]` is the earliest, `tree[i]` the earlier of its two children, whose leaves are
    /// the entries. Winners are copied with their times, so that a match reads one place and not three. Empty if a scan is
    /// enough.
    tree: Vec<Filed>,
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
            self.climb(Filed { time, source: source as u32 });
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

    /// Plays a source's matches from its leaf to the root. All of them: where a source stops winning cannot be predicted,
    /// and a wrong guess costs more than the matches that could be left out.
    fn climb(&mut self, filed: Filed) {
        let source = filed.source as usize;
        let rival = Filed { time: self.entries[source ^ 1].filed, source: filed.source ^ 1 };
        let mut winner = filed.against(rival, source % 2 == 1);
        let mut node = (self.entries.len() + source) / 2;
        self.tree[node] = winner;
        while node > 1 {
            winner = winner.against(self.tree[node ^ 1], node % 2 == 1);
            node /= 2;
            self.tree[node] = winner;
        }
        self.first = (winner.time, winner.source as usize);
    }
}

impl Filed {
    /// The earlier of two. Of equal times it is the left one, whose source is lower.
    #[inline]
    fn against(self, rival: Filed, rival_is_left: bool) -> Filed {
        let rival_wins = (rival.time < self.time) | ((rival.time == self.time) & rival_is_left);
        select_unpredictable(rival_wins, rival, self)
    }
}

impl Agenda for Winners {
    fn new(sources: usize) -> Winners {
        let leaves = if sources > SCAN { sources.next_power_of_two() } else { sources };
        let mut tree = Vec::new();
        if sources > SCAN {
            // A node's lowest source wins while nothing is filed.
            let lowest = |node: usize| (node << (leaves.ilog2() - node.max(1).ilog2())) % leaves;
            let nothing = |node| Filed { time: Time::NEVER, source: lowest(node) as u32 };
            tree = (0..leaves).map(nothing).collect();
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
    fn likely(&self) -> usize {
        self.first.1
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

    fn likely(&self) -> usize {
        self.heap.peek().map_or(0, |first| first.0.1)
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
