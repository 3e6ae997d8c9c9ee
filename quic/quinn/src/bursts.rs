//! The flight of a stack that names no packets: what left together, by the time when it left.

use fullpipe_quic_driver::Note;
use fullpipe_units::Time;
use std::collections::VecDeque;

/// What left together.
#[derive(Clone, Copy, Debug)]
struct Burst {
    note: Note,
    /// Bytes still in flight.
    bytes: u32,
}

/// The bursts in flight, in the order in which they left.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bursts {
    bursts: VecDeque<Burst>,
}

impl Bursts {
    /// A burst of `bytes` left, after all others or at the same time as the last.
    pub(crate) fn push(&mut self, note: Note, bytes: u32) {
        self.bursts.push_back(Burst { note, bytes });
    }

    /// Takes a packet of `bytes` out that left at `sent`. If several bursts left then, the first that has as many bytes is meant.
    pub(crate) fn take(&mut self, sent: Time, bytes: u32) -> Option<Note> {
        let first = self.bursts.partition_point(|burst| burst.note.sent() < sent);
        let same = self.bursts.iter_mut().skip(first).take_while(|burst| burst.note.sent() == sent);
        let burst = same.into_iter().find(|burst| burst.bytes >= bytes)?;
        burst.bytes -= bytes;
        let note = burst.note;
        self.forget_empty();
        Some(note)
    }

    /// Takes up to `bytes` out of the oldest burst, if it did not leave after `until`. Returns how many.
    pub(crate) fn take_oldest(&mut self, bytes: u64, until: Time) -> Option<(Note, u32)> {
        self.forget_empty();
        let oldest = self.bursts.front_mut().filter(|burst| burst.note.sent() <= until)?;
        let taken = oldest.bytes.min(u32::try_from(bytes).unwrap_or(u32::MAX));
        oldest.bytes -= taken;
        let note = oldest.note;
        self.forget_empty();
        (taken > 0).then_some((note, taken))
    }

    fn forget_empty(&mut self) {
        while self.bursts.front().is_some_and(|burst| burst.bytes == 0) {
            self.bursts.pop_front();
        }
    }
}
