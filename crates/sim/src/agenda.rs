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

    /// When a source next has something to do.
    fn due(&self, source: usize) -> Time;

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

/// The one of two keys that comes first. Without a branch: half of the guesses would be wrong, and each costs more than a match.
#[inline]
fn first_of(one: u64, other: u64) -> u64 {
    select_unpredictable(other < one, other, one)
}

/// How a time and its source are one number, so that a match is one comparison.
#[derive(Clone, Copy, Debug)]
struct Keys {
    /// The lowest bits of a key are the source, ...
    source_bits: u32,
    /// ... the others are nanoseconds since this time. Those that do not fit are all the same: [`Keys::far`].
    base: u64,
}

impl Keys {
    /// The nanoseconds of times that are too far away to be told apart.
    #[inline]
    fn far(self) -> u64 {
        u64::MAX >> self.source_bits
    }

    /// The time of such a key.
    fn horizon(self) -> Time {
        Time::from_nanos(self.base.saturating_add(self.far()))
    }

    #[inline]
    fn of(self, time: Time, source: usize) -> u64 {
        let since = time.as_nanos().saturating_sub(self.base).min(self.far());
        since << self.source_bits | source as u64
    }

    #[inline]
    fn source(self, key: u64) -> usize {
        (key & !(u64::MAX << self.source_bits)) as usize
    }

    /// The key's time, or one that is not after it.
    #[inline]
    fn time(self, key: u64) -> Time {
        Time::from_nanos(self.base.saturating_add(key >> self.source_bits))
    }
}

/// The keys of four that play against each other.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Four([u64; 4]);

/// The agenda of every run except an oracle's.
#[derive(Debug)]
pub(crate) struct Winners {
    entries: Vec<Entry>,
    /// Winner tree over what is filed. The nodes are numbered level by level, the root is 0, the children of node `n` are
    /// `4 n + 1` to `4 n + 4`, the leaves are the sources. `tree[n]` has the winners of the children of `n`; the root's own is
    /// `first`. Winners are copied with their times, so that a match reads one place. Empty if a scan is enough.
    tree: Vec<Four>,
    keys: Keys,
    /// Only what is filed before it is in order.
    horizon: Time,
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
            if time.as_nanos() >= self.keys.base {
                self.climb(source, time);
            } else {
                self.count_anew();
            }
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
        let mut winner = self.keys.of(time, source);
        let mut beaten = winner;
        let mut node = self.leaves + source;
        while node > 0 {
            let (parent, place) = ((node - 1) / 4, node - 1);
            let four = &mut self.tree[parent].0;
            let rival = |step: usize| four[(place ^ step) % 4];
            beaten = first_of(rival(1), first_of(rival(2), rival(3)));
            four[place % 4] = winner;
            winner = first_of(winner, beaten);
            node = parent;
        }
        self.second = self.keys.source(beaten);
        self.first = (self.keys.time(winner), self.keys.source(winner));
    }

    /// Counts from the earliest time on, because it is far from where it was counted from, or before it. Returns whether there is
    /// anything to do.
    #[cold]
    fn count_anew(&mut self) -> bool {
        let earliest = self.entries.iter().fold(Time::NEVER, |earliest, entry| earliest.min(entry.due));
        if earliest == Time::NEVER {
            return false;
        }
        self.keys.base = earliest.as_nanos();
        self.build();
        true
    }

    /// Files every source anew.
    fn build(&mut self) {
        for entry in &mut self.entries {
            entry.filed = entry.due;
        }
        let keys = self.keys;
        self.horizon = keys.horizon();
        for node in (0..self.leaves).rev() {
            let winner = |child: usize| match child.checked_sub(self.leaves) {
                None => self.tree[child].0.into_iter().fold(u64::MAX, first_of),
                Some(source) => keys.of(self.entries[source].filed, source),
            };
            self.tree[node] = Four(std::array::from_fn(|child| winner(4 * node + 1 + child)));
        }
        let winner = self.tree[0].0.into_iter().fold(u64::MAX, first_of);
        self.first = (keys.time(winner), keys.source(winner));
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
            tree = vec![Four([0; 4]); leaves];
        }
        let keys = Keys { source_bits: width.next_power_of_two().trailing_zeros(), base: 0 };
        let entries = vec![nothing; width];
        let first = (Time::NEVER, 0);
        let mut agenda = Winners { entries, tree, keys, horizon: Time::NEVER, leaves, first, second: 0 };
        if !agenda.tree.is_empty() {
            agenda.build();
        }
        agenda
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
    fn due(&self, source: usize) -> Time {
        self.entries[source].due
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
            if self.first.0 < self.horizon {
                self.file(self.first.1);
            } else if !self.count_anew() {
                return (Time::NEVER, 0);
            }
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

    fn due(&self, source: usize) -> Time {
        self.due[source]
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
        fn earliest_lowest_source_is_first(
            sources in prop_oneof![1usize..40, 40usize..600],
            changes in prop::collection::vec((0usize..600, 0u64..50, any::<bool>()), 1..200),
            // Nanoseconds, or years: more than a key can hold.
            unit in prop_oneof![Just(1), Just(1 << 54), Just(u64::MAX / 50)],
        ) {
            let changes: Vec<(usize, u64, bool)> =
                changes.iter().map(|&(source, time, look)| (source, time * unit, look)).collect();
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
    fn equal_times_prefer_lower_source() {
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
