//! Batches that the ferry hands to another thread. It never waits: a batch is dropped, and what is in it counted, while too many
//! others wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};

/// The end that hands over.
#[derive(Clone, Debug)]
pub(crate) struct Giving<T> {
    to: SyncSender<Vec<T>>,
    missed: Arc<AtomicU64>,
}

/// The end that takes.
#[derive(Debug)]
pub(crate) struct Taking<T> {
    from: Receiver<Vec<T>>,
    missed: Arc<AtomicU64>,
}

/// Both ends; at most so many batches wait.
pub(crate) fn batches<T>(most_waiting: usize) -> (Giving<T>, Taking<T>) {
    let (to, from) = mpsc::sync_channel(most_waiting);
    let missed: Arc<AtomicU64> = Arc::default();
    (Giving { to, missed: Arc::clone(&missed) }, Taking { from, missed })
}

impl<T> Giving<T> {
    /// Hands over a batch of so many packets, and leaves an empty one with this capacity.
    pub(crate) fn hand_over(&self, batch: &mut Vec<T>, packets: u64, capacity: usize) {
        if batch.is_empty() {
            return;
        }
        let batch = std::mem::replace(batch, Vec::with_capacity(capacity));
        if self.to.try_send(batch).is_err() {
            self.missed.fetch_add(packets, Ordering::Relaxed);
        }
    }

    /// Ends what [`Taking::each`] gives.
    pub(crate) fn end(&self) {
        // Nobody may listen any more.
        let _ = self.to.send(Vec::new());
    }
}

impl<T> Taking<T> {
    /// The batches until the end, in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = Vec<T>> {
        self.from.iter().take_while(|batch| !batch.is_empty())
    }

    /// How many packets were dropped so far.
    pub(crate) fn missed(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_ordered_excess_is_counted() {
        let (giving, taking) = batches(3);
        let mut batch = Vec::new();
        giving.hand_over(&mut batch, 9, 4);
        for first in [1, 3, 5, 7, 9] {
            batch.extend([first, first + 1]);
            giving.hand_over(&mut batch, 2, 4);
            assert!(batch.is_empty());
        }
        assert_eq!(taking.missed(), 4, "three batches wait, and an empty one is none");
        let first: Vec<i32> = taking.each().next().unwrap();
        assert_eq!(first, [1, 2]);
        giving.end();
        assert_eq!(taking.each().collect::<Vec<_>>(), [[3, 4], [5, 6]]);
    }
}
