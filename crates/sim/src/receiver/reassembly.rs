//! Data out of order: the ranges that wait for a hole to close, and the blocks that report them (RFC 2018; RFC 2883).

use fullpipe_path::prefetch::prefetch;
use fullpipe_scenario::spec::Lie;

use super::{Arrival, Receiver};

/// Blocks that Linux remembers (`TCP_NUM_SACKS`).
pub(super) const SACKS: usize = 4;
/// Blocks that Linux counts on fitting into an ACK (`TCP_SACK_BLOCKS_EXPECTED`).
const SACKS_EXPECTED: usize = 2;

impl Receiver {
    /// Segments waiting out of order, counted again from the ranges so that a check of the sum is meaningful.
    pub(crate) fn waiting_segments(&self) -> u64 {
        self.waiting.iter().map(|(start, end)| end - start).sum()
    }

    /// A hint: data will arrive soon.
    #[inline]
    pub(crate) fn prefetch_waiting(&self) {
        if let (Some(first), Some(last)) = (self.waiting.front(), self.waiting.back()) {
            prefetch(first);
            prefetch(last);
        }
    }

    #[inline]
    pub(super) fn waiting_bytes(&self) -> u64 {
        self.waiting_segments * self.mss as u64
    }

    /// Moves data that is now in order from the out-of-order ranges to the stream.
    pub(super) fn take_waiting(&mut self) {
        while let Some(&(start, end)) = self.waiting.front() {
            if start > self.next {
                break;
            }
            if start < self.next {
                self.note_duplicate(start, end.min(self.next));
            }
            if end > self.next {
                self.next_bytes += (end - self.next) * self.mss as u64;
                if let Some((seq, missing)) = self.short
                    && (self.next..end).contains(&seq)
                {
                    self.next_bytes -= missing;
                }
                self.next = end;
            }
            self.waiting_segments -= end - start;
            self.waiting.pop_front();
        }
        let (next, mut kept) = (self.next, 0);
        for index in 0..self.sack_count {
            if self.sacks[index].1 > next {
                self.sacks[kept] = self.sacks[index];
                kept += 1;
            }
        }
        self.sack_count = kept;
    }

    pub(super) fn note_duplicate(&mut self, start: u64, end: u64) {
        self.duplicate_segments += end - start;
        self.report_duplicate(start, end);
    }

    pub(super) fn report_duplicate(&mut self, start: u64, end: u64) {
        // Whoever hides losses does not tell of what came nevertheless.
        if self.lie != Some(Lie::HidesLoss) {
            self.duplicate = Some((start, end));
        }
    }

    #[inline(always)]
    pub(super) fn on_data_out_of_order(&mut self, arrival: &Arrival, end: u64) {
        let start = arrival.seq;
        let full = arrival.segments as u64 * self.mss as u64;
        if arrival.bytes < full {
            self.short = Some((end - 1, full - arrival.bytes));
        }
        let waiting = self.waiting_bytes();
        if self.window.on_data(arrival.bytes, waiting) {
            self.quick |= 1;
        }
        // The usual place is the end, or the first hole.
        let mut place = self.waiting.len();
        if self.waiting.back().is_some_and(|last| last.0 > start) {
            place = self.waiting.partition_point(|range| range.0 <= start);
        }
        if place > 0 && self.waiting[place - 1].1 >= start {
            place -= 1;
        } else {
            self.waiting.insert(place, (start, start));
        }
        // Grow the range at `place` over the new data and over the ranges that it now touches.
        let duplicates = self.duplicate_segments;
        let known = self.waiting[place].1.min(end);
        if known > start {
            self.note_duplicate(start, known);
        }
        self.waiting[place].1 = self.waiting[place].1.max(end);
        while place + 1 < self.waiting.len() && self.waiting[place + 1].0 <= self.waiting[place].1 {
            let (from, to) = self.waiting[place + 1];
            if from < end {
                self.note_duplicate(from, to.min(end));
            }
            self.waiting[place].1 = self.waiting[place].1.max(to);
            self.waiting.remove(place + 1);
        }
        self.waiting_segments += (end - start) - (self.duplicate_segments - duplicates);
        let (from, to) = self.waiting[place];
        self.report(from, to);
    }

    /// Puts the block that just changed in front (RFC 2018 section 4; Linux: `tcp_sack_new_ofo_skb`).
    #[inline(always)]
    fn report(&mut self, start: u64, end: u64) {
        let known = &self.sacks[..self.sack_count];
        let place =
            known.iter().position(|block| block.0 <= end && block.1 >= start).unwrap_or(self.sack_count);
        if place >= SACKS_EXPECTED && self.compressed > 0 {
            self.early = self.acknowledge();
            self.has_early = true;
        }
        // Usually the block on top has grown, and touches no other.
        let apart = |block: &(u64, u64)| block.0 > end || block.1 < start;
        if place == 0 && self.sacks[..self.sack_count].iter().skip(1).all(apart) {
            self.sacks[0] = (start, end);
            self.sack_count = self.sack_count.max(1);
            return;
        }
        let mut kept = 1;
        let mut fresh = [(start, end); SACKS];
        for block in &self.sacks[..self.sack_count] {
            if apart(block) && kept < SACKS {
                fresh[kept] = *block;
                kept += 1;
            }
        }
        self.sacks = fresh;
        self.sack_count = kept;
    }
}
