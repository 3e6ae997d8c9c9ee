//! The retransmission queue: segments that are sent and not yet cumulatively acknowledged.
//!
//! One ring, indexed by sequence number, in struct-of-arrays form: the transmit state of each segment and four bits that
//! mirror Linux's `TCPCB_*` tags. Tags of segments outside `una..next` are always clear. Operations on many segments (a
//! SACK block, a cumulative ACK) handle 64 at a time.

use fullpipe_cc::delivery::TxState;
use fullpipe_path::prefetch::{prefetch, prefetch_element};

/// The tags of 64 segments, one bit for each segment.
#[derive(Clone, Copy, Debug, Default)]
struct Tags {
    /// SACKed (`TCPCB_SACKED_ACKED`).
    sacked: u64,
    /// Marked lost (`TCPCB_LOST`).
    lost: u64,
    /// A retransmission is out (`TCPCB_SACKED_RETRANS`).
    retransmitted: u64,
    /// Was ever retransmitted (`TCPCB_EVER_RETRANS`).
    ever_retransmitted: u64,
}

#[inline]
fn bit(seq: u64) -> u64 {
    1 << (seq % 64)
}

/// The ring. Counts are Linux's (`packets_out` and so on), in segments.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    /// First segment not cumulatively acknowledged (`SND.UNA`).
    pub(crate) una: u64,
    /// Next segment to send for the first time (`SND.NXT`).
    pub(crate) next: u64,
    /// Segments with the bit `sacked`.
    pub(crate) sacked_out: u32,
    /// Segments with the bit `lost`.
    pub(crate) lost_out: u32,
    /// Segments with the bit `retransmitted`.
    pub(crate) retrans_out: u32,
    /// Segments in `una..next` that were ever retransmitted; while zero, an ACK need not examine single segments.
    pub(crate) ever_out: u32,
    tags: Vec<Tags>,
    /// The transmit states, one after the other and around; that of `una` is at `head`. Not a power of two of them, because
    /// they are most of a window's memory.
    tx: Vec<TxState>,
    head: usize,
}

impl Scoreboard {
    /// Segments that the rings hold at first, and at least.
    const INITIAL: usize = 16;
    /// Segments of a window that is worth fetching as a whole.
    const SMALL: u64 = 64;
    /// They shrink when they are this many times larger than needed, to stay in the CPU caches.
    const SHRINK_AT: usize = 8;

    pub(crate) fn new() -> Scoreboard {
        Scoreboard {
            una: 0,
            next: 0,
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            ever_out: 0,
            tags: vec![Tags::default(); 1],
            tx: vec![TxState::default(); Self::INITIAL],
            head: 0,
        }
    }

    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub(crate) fn packets_out(&self) -> u32 {
        (self.next - self.una) as u32
    }

    // draft 2.2#2d7be0: the queue has data only
    /// Segments believed in the network (Linux: `tcp_packets_in_flight`).
    #[inline]
    pub(crate) fn in_flight(&self) -> u32 {
        self.packets_out() + self.retrans_out - self.sacked_out - self.lost_out
    }

    /// True when no segment out carries any tag, so that an ACK only moves `una`.
    #[inline]
    pub(crate) fn is_clean(&self) -> bool {
        self.sacked_out | self.lost_out | self.retrans_out | self.ever_out == 0
    }

    /// The place of the transmit state of `seq`, one of `una..=next`.
    #[inline]
    fn place(&self, seq: u64) -> usize {
        let place = self.head + (seq - self.una) as usize;
        if place >= self.tx.len() { place - self.tx.len() } else { place }
    }

    /// The transmit state of the last transmission of `seq`.
    #[inline]
    pub(crate) fn tx(&self, seq: u64) -> &TxState {
        &self.tx[self.place(seq)]
    }

    /// A hint: the ends of the window will soon be looked at.
    #[inline]
    pub(crate) fn prefetch_ends(&self) {
        prefetch_element(&self.tx, self.head);
        self.prefetch(self.next);
        prefetch(self.tags(self.una));
        prefetch(self.tags(self.next));
    }

    /// A hint: the whole window, if it is small, will soon be looked at.
    #[inline(always)]
    pub(crate) fn prefetch_window(&self) {
        prefetch(self.tags(self.una));
        let mut seq = self.una;
        let end = self.next.min(self.una + Self::SMALL) + 4;
        while seq < end {
            self.prefetch(seq);
            seq += 2;
        }
    }

    /// A hint: the transmit state of `seq`, any number, will soon be looked at.
    #[inline]
    pub(crate) fn prefetch(&self, seq: u64) {
        let place = self.head.wrapping_add(seq.wrapping_sub(self.una) as usize);
        let around = if place >= self.tx.len() { self.tx.len() } else { 0 };
        prefetch_element(&self.tx, place.wrapping_sub(around));
    }

    /// Notes that `segments` new segments left with the state `tx`.
    #[inline]
    pub(crate) fn push(&mut self, segments: u32, tx: TxState) {
        let needed = self.packets_out() as usize + segments as usize;
        if needed > self.tx.len() || needed * Self::SHRINK_AT < self.tx.len() {
            self.resize(needed);
        }
        let place = self.place(self.next);
        let (around, here) = self.tx.split_at_mut(place);
        let here_count = here.len().min(segments as usize);
        here[..here_count].fill(tx);
        around[..segments as usize - here_count].fill(tx);
        self.next += segments as u64;
    }

    #[inline]
    fn tags(&self, seq: u64) -> &Tags {
        &self.tags[(seq / 64) as usize & (self.tags.len() - 1)]
    }

    #[inline]
    fn tags_mut(&mut self, seq: u64) -> &mut Tags {
        let mask = self.tags.len() - 1;
        &mut self.tags[(seq / 64) as usize & mask]
    }

    /// Whether `seq` is SACKed.
    #[inline]
    pub(crate) fn is_sacked(&self, seq: u64) -> bool {
        self.tags(seq).sacked & bit(seq) != 0
    }

    /// Whether `seq` is marked lost.
    #[inline]
    pub(crate) fn is_lost(&self, seq: u64) -> bool {
        self.tags(seq).lost & bit(seq) != 0
    }

    /// Whether a retransmission of `seq` is out.
    #[inline]
    pub(crate) fn is_retransmitted(&self, seq: u64) -> bool {
        self.tags(seq).retransmitted & bit(seq) != 0
    }

    /// Whether `seq` was ever retransmitted.
    #[inline]
    pub(crate) fn was_retransmitted(&self, seq: u64) -> bool {
        self.tags(seq).ever_retransmitted & bit(seq) != 0
    }

    /// Notes that `seq`, which is marked lost, was retransmitted with the state `tx`.
    #[inline]
    pub(crate) fn retransmit(&mut self, seq: u64, tx: TxState) {
        debug_assert!(self.is_lost(seq) && !self.is_retransmitted(seq));
        self.tags_mut(seq).retransmitted |= bit(seq);
        self.retrans_out += 1;
        self.probe(seq, tx);
    }

    /// Notes that `seq` was repeated as a tail loss probe, which Linux does not count as out a second time.
    #[inline]
    pub(crate) fn probe(&mut self, seq: u64, tx: TxState) {
        let place = self.place(seq);
        self.tx[place] = tx;
        self.ever_out += !self.was_retransmitted(seq) as u32;
        self.tags_mut(seq).ever_retransmitted |= bit(seq);
    }

    /// Marks `seq` lost; if it was lost already, its retransmission is lost now (Linux: `tcp_mark_skb_lost`).
    pub(crate) fn mark_lost(&mut self, seq: u64) {
        if !self.is_lost(seq) {
            self.tags_mut(seq).lost |= bit(seq);
            self.lost_out += 1;
        } else {
            self.expire_retransmission(seq);
        }
    }

    /// Notes that a retransmission of `seq`, if one is out, no longer is.
    pub(crate) fn expire_retransmission(&mut self, seq: u64) {
        self.retrans_out -= self.is_retransmitted(seq) as u32;
        self.tags_mut(seq).retransmitted &= !bit(seq);
    }

    /// Marks `count` segments from `seq` on SACKed: they are neither lost nor out as retransmissions any more (Linux:
    /// `tcp_sacktag_one`). None of them was.
    #[inline]
    pub(crate) fn mark_sacked(&mut self, seq: u64, count: u64) {
        let (mut lost, mut retransmitted) = (0, 0);
        self.each_word(seq, count, |tags, bits| {
            debug_assert!(tags.sacked & bits == 0);
            lost += (tags.lost & bits).count_ones();
            retransmitted += (tags.retransmitted & bits).count_ones();
            tags.sacked |= bits;
            tags.lost &= !bits;
            tags.retransmitted &= !bits;
        });
        self.sacked_out += count as u32;
        self.lost_out -= lost;
        self.retrans_out -= retransmitted;
    }

    /// Takes the mark of loss from every segment out (Linux: `tcp_undo_cwnd_reduction` with `unmark_loss`).
    pub(crate) fn unmark_all_lost(&mut self) {
        if self.lost_out > 0 {
            self.tags.iter_mut().for_each(|tags| tags.lost = 0);
            self.lost_out = 0;
        }
    }

    /// Moves `una` past `count` segments and clears their tags.
    #[inline]
    pub(crate) fn pop(&mut self, count: u64) {
        let (mut sacked, mut lost, mut retransmitted, mut ever) = (0, 0, 0, 0);
        self.each_word(self.una, count, |tags, bits| {
            sacked += (tags.sacked & bits).count_ones();
            lost += (tags.lost & bits).count_ones();
            retransmitted += (tags.retransmitted & bits).count_ones();
            ever += (tags.ever_retransmitted & bits).count_ones();
            tags.sacked &= !bits;
            tags.lost &= !bits;
            tags.retransmitted &= !bits;
            tags.ever_retransmitted &= !bits;
        });
        self.sacked_out -= sacked;
        self.lost_out -= lost;
        self.retrans_out -= retransmitted;
        self.ever_out -= ever;
        self.advance(count);
    }

    /// Moves `una` past `count` segments that carry no tag.
    #[inline]
    pub(crate) fn advance(&mut self, count: u64) {
        self.head = self.place(self.una + count);
        self.una += count;
    }

    /// Calls `change` for each word of tags that holds some of the `count` segments from `seq` on, with a mask of their bits.
    #[inline]
    fn each_word(&mut self, seq: u64, count: u64, mut change: impl FnMut(&mut Tags, u64)) {
        let (mut seq, end) = (seq, seq + count);
        while seq < end {
            let here = (64 - seq % 64).min(end - seq);
            change(self.tags_mut(seq), u64::MAX >> (64 - here) << (seq % 64));
            seq += here;
        }
    }

    /// The first segment at or after `from` that is marked lost and has no retransmission out; `None` before `next`.
    pub(crate) fn next_to_retransmit(&self, from: u64) -> Option<u64> {
        let found = self.find(from, self.next, |tags| tags.lost & !tags.retransmitted & !tags.sacked);
        (found < self.next).then_some(found)
    }

    /// The first segment in `from..to` that is not SACKed.
    #[inline]
    pub(crate) fn next_unsacked(&self, from: u64, to: u64) -> Option<u64> {
        let found = self.find(from, to, |tags| !tags.sacked);
        (found < to).then_some(found)
    }

    /// The end, at most `to`, of the run from `from` on of segments that are SACKed and were sent once.
    #[inline]
    pub(crate) fn end_of_sacked(&self, from: u64, to: u64) -> u64 {
        self.find(from, to, |tags| !tags.sacked | tags.ever_retransmitted)
    }

    /// The end, at most `to`, of the run from `from` on of segments that are not SACKed and were sent once.
    #[inline]
    pub(crate) fn end_of_sent_once(&self, from: u64, to: u64) -> u64 {
        self.find(from, to, |tags| tags.sacked | tags.ever_retransmitted)
    }

    /// The first segment in `from..to` whose bit is set in `word`; `to` (or `from`, if that is later) when there is none.
    #[inline]
    fn find(&self, from: u64, to: u64, word: impl Fn(&Tags) -> u64) -> u64 {
        let mut seq = from;
        while seq < to {
            let bits = word(self.tags(seq)) >> (seq % 64);
            if bits != 0 {
                return (seq + bits.trailing_zeros() as u64).min(to);
            }
            seq = (seq / 64 + 1) * 64;
        }
        to.max(from)
    }

    /// Gives the rings the size for `needed` segments and some more.
    #[cold]
    fn resize(&mut self, needed: usize) {
        let more = if needed > self.tx.len() { (self.tx.len() / 4).max(needed - self.tx.len()) } else { 0 };
        let size = if more > 0 { self.tx.len() + more } else { (2 * needed).max(Self::INITIAL) };
        if size == self.tx.len() {
            return;
        }
        let mut tx = Vec::with_capacity(size);
        tx.extend((self.una..self.next).map(|seq| *self.tx(seq)));
        tx.resize(size, TxState::default());
        (self.tx, self.head) = (tx, 0);
        // Positions that share a word share a place, so that a window needs a word more than it fills.
        let words = (size.div_ceil(64) + 1).next_power_of_two();
        if words != self.tags.len() {
            self.resize_tags(words);
        }
    }

    fn resize_tags(&mut self, words: usize) {
        let old = self.tags.len();
        let before = std::mem::replace(&mut self.tags, vec![Tags::default(); words]);
        // The first and the last word may share a place in the old ring, so each takes only its own bits.
        let mut word = self.una / 64;
        self.each_word(self.una, self.next - self.una, |tags, bits| {
            let was = before[word as usize & (old - 1)];
            tags.sacked |= was.sacked & bits;
            tags.lost |= was.lost & bits;
            tags.retransmitted |= was.retransmitted & bits;
            tags.ever_retransmitted |= was.ever_retransmitted & bits;
            word += 1;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(segments: u32) -> Scoreboard {
        let mut board = Scoreboard::new();
        board.push(segments, TxState::default());
        board
    }

    // draft 2.2#2d7be0: only data is pushed
    #[test]
    fn in_flight_excludes_sacked_and_lost() {
        let mut board = board(10);
        board.mark_sacked(5, 1);
        board.mark_lost(0);
        board.mark_lost(1);
        assert_eq!(board.in_flight(), 7);
        board.retransmit(0, TxState::default());
        assert_eq!(board.in_flight(), 8);
    }

    #[test]
    fn a_lost_retransmission_is_lost_once() {
        let mut board = board(3);
        board.mark_lost(0);
        board.retransmit(0, TxState::default());
        board.mark_lost(0);
        assert_eq!((board.lost_out, board.retrans_out, board.in_flight()), (1, 0, 2));
        assert_eq!(board.next_to_retransmit(0), Some(0));
    }

    #[test]
    fn the_ring_grows_with_its_tags() {
        let mut board = board(60);
        board.mark_lost(3);
        board.mark_lost(59);
        board.push(500, TxState { sent_us: 7, ..TxState::default() });
        assert_eq!(board.next_to_retransmit(4), Some(59));
        assert_eq!(board.next_to_retransmit(60), None);
        assert_eq!((board.tx(59).sent_us, board.tx(60).sent_us), (0, 7));
    }

    #[test]
    fn wrapped_ring_growth_preserves_tags() {
        let mut board = board(60);
        board.pop(50);
        board.push(50, TxState::default());
        // Segments 50 to 63 and 64 to 109 shared the only words.
        board.mark_sacked(52, 3);
        board.mark_sacked(100, 2);
        board.push(200, TxState::default());
        assert_eq!((board.end_of_sacked(52, 310), board.end_of_sacked(100, 310)), (55, 102));
        board.pop(260);
        assert_eq!((board.sacked_out, board.packets_out()), (0, 0));
    }

    #[test]
    fn search_stops_at_last_sent() {
        let mut board = board(70);
        assert_eq!(board.next_unsacked(0, 70), Some(0));
        board.mark_sacked(0, 70);
        assert_eq!(board.next_unsacked(0, 70), None);
        board.pop(64);
        assert_eq!((board.next_unsacked(64, 70), board.sacked_out), (None, 6));
    }
}
