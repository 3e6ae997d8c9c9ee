//! The retransmission queue: what is sent and not yet cumulatively acknowledged.
//!
//! One ring, indexed by sequence number, in struct-of-arrays form: the transmit state of each segment and four bits that
//! mirror Linux's `TCPCB_*` tags. Bits of segments outside `una..next` are always clear.

use fullpipe_cc::delivery::TxState;

/// A ring of bits, one a segment.
#[derive(Debug, Default)]
pub(crate) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    fn with_capacity(segments: usize) -> Bits {
        Bits { words: vec![0; segments / 64] }
    }

    #[inline]
    fn place(&self, seq: u64) -> (usize, u64) {
        let word = (seq / 64) as usize & (self.words.len() - 1);
        (word, 1 << (seq % 64))
    }

    /// Whether the bit of `seq` is set.
    #[inline]
    pub(crate) fn get(&self, seq: u64) -> bool {
        let (word, bit) = self.place(seq);
        self.words[word] & bit != 0
    }

    /// Sets the bit of `seq`.
    #[inline]
    pub(crate) fn set(&mut self, seq: u64) {
        let (word, bit) = self.place(seq);
        self.words[word] |= bit;
    }

    /// Clears the bit of `seq`.
    #[inline]
    pub(crate) fn clear(&mut self, seq: u64) {
        let (word, bit) = self.place(seq);
        self.words[word] &= !bit;
    }

    /// The bits of the 64 segments that share a word with `seq`.
    #[inline]
    fn word(&self, seq: u64) -> u64 {
        self.words[(seq / 64) as usize & (self.words.len() - 1)]
    }
}

/// The ring. Counts are Linux's (`packets_out` and so on), in segments.
#[derive(Debug)]
pub(crate) struct Scoreboard {
    /// First segment not cumulatively acknowledged (`SND.UNA`).
    pub(crate) una: u64,
    /// Next segment to send for the first time (`SND.NXT`).
    pub(crate) next: u64,
    /// SACKed (`TCPCB_SACKED_ACKED`).
    pub(crate) sacked: Bits,
    /// Marked lost (`TCPCB_LOST`).
    pub(crate) lost: Bits,
    /// A retransmission is out (`TCPCB_SACKED_RETRANS`).
    pub(crate) retransmitted: Bits,
    /// Was ever retransmitted (`TCPCB_EVER_RETRANS`).
    pub(crate) ever_retransmitted: Bits,
    /// Segments with the bit `sacked`.
    pub(crate) sacked_out: u32,
    /// Segments with the bit `lost`.
    pub(crate) lost_out: u32,
    /// Segments with the bit `retransmitted`.
    pub(crate) retrans_out: u32,
    /// Segments in `una..next` that were ever retransmitted; while zero an ACK needs no look at single segments.
    pub(crate) ever_out: u32,
    tx: Vec<TxState>,
}

impl Scoreboard {
    const INITIAL: usize = 64;

    pub(crate) fn new() -> Scoreboard {
        Scoreboard {
            una: 0,
            next: 0,
            sacked: Bits::with_capacity(Self::INITIAL),
            lost: Bits::with_capacity(Self::INITIAL),
            retransmitted: Bits::with_capacity(Self::INITIAL),
            ever_retransmitted: Bits::with_capacity(Self::INITIAL),
            sacked_out: 0,
            lost_out: 0,
            retrans_out: 0,
            ever_out: 0,
            tx: vec![TxState::default(); Self::INITIAL],
        }
    }

    /// Segments sent and not cumulatively acknowledged.
    #[inline]
    pub(crate) fn packets_out(&self) -> u32 {
        (self.next - self.una) as u32
    }

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

    /// The transmit state of the last transmission of `seq`.
    #[inline]
    pub(crate) fn tx(&self, seq: u64) -> &TxState {
        &self.tx[seq as usize & (self.tx.len() - 1)]
    }

    /// Notes that `segments` new segments left with the state `tx`.
    #[inline]
    pub(crate) fn push(&mut self, segments: u32, tx: TxState) {
        while self.packets_out() as usize + segments as usize > self.tx.len() {
            self.grow();
        }
        let mask = self.tx.len() - 1;
        for seq in self.next..self.next + segments as u64 {
            self.tx[seq as usize & mask] = tx;
        }
        self.next += segments as u64;
    }

    /// Notes that `seq`, which is marked lost, was retransmitted with the state `tx`.
    #[inline]
    pub(crate) fn retransmit(&mut self, seq: u64, tx: TxState) {
        debug_assert!(self.lost.get(seq) && !self.retransmitted.get(seq));
        self.retransmitted.set(seq);
        self.retrans_out += 1;
        self.probe(seq, tx);
    }

    /// Notes that `seq` was repeated as a tail loss probe, which Linux does not count as out a second time.
    #[inline]
    pub(crate) fn probe(&mut self, seq: u64, tx: TxState) {
        let mask = self.tx.len() - 1;
        self.tx[seq as usize & mask] = tx;
        if !self.ever_retransmitted.get(seq) {
            self.ever_retransmitted.set(seq);
            self.ever_out += 1;
        }
    }

    /// Marks `seq` lost; if it was lost already, its retransmission is lost now (Linux: `tcp_mark_skb_lost`).
    pub(crate) fn mark_lost(&mut self, seq: u64) {
        if !self.lost.get(seq) {
            self.lost.set(seq);
            self.lost_out += 1;
        } else if self.retransmitted.get(seq) {
            self.retransmitted.clear(seq);
            self.retrans_out -= 1;
        }
    }

    /// A retransmission of `seq`, if one is out, is not any more.
    pub(crate) fn expire_retransmission(&mut self, seq: u64) {
        if self.retransmitted.get(seq) {
            self.retransmitted.clear(seq);
            self.retrans_out -= 1;
        }
    }

    /// Marks `seq` SACKed: it is neither lost nor out as a retransmission any more (Linux: `tcp_sacktag_one`).
    #[inline]
    pub(crate) fn mark_sacked(&mut self, seq: u64) {
        debug_assert!(!self.sacked.get(seq));
        self.clear_lost_and_retransmitted(seq);
        self.sacked.set(seq);
        self.sacked_out += 1;
    }

    #[inline]
    fn clear_lost_and_retransmitted(&mut self, seq: u64) {
        if self.lost.get(seq) {
            self.lost.clear(seq);
            self.lost_out -= 1;
        }
        if self.retransmitted.get(seq) {
            self.retransmitted.clear(seq);
            self.retrans_out -= 1;
        }
    }

    /// Takes the mark of loss from every segment out (Linux: `tcp_undo_cwnd_reduction` with `unmark_loss`).
    pub(crate) fn unmark_all_lost(&mut self) {
        if self.lost_out > 0 {
            self.lost.words.fill(0);
            self.lost_out = 0;
        }
    }

    /// Moves `una` past one tagged segment and clears its tags.
    #[inline]
    pub(crate) fn pop_tagged(&mut self) {
        let seq = self.una;
        if self.sacked.get(seq) {
            self.sacked.clear(seq);
            self.sacked_out -= 1;
        }
        self.clear_lost_and_retransmitted(seq);
        if self.ever_retransmitted.get(seq) {
            self.ever_retransmitted.clear(seq);
            self.ever_out -= 1;
        }
        self.una += 1;
    }

    /// The first segment at or after `from` that is marked lost and has no retransmission out; `None` before `next`.
    pub(crate) fn next_to_retransmit(&self, from: u64) -> Option<u64> {
        self.find(from, |seq| self.lost.word(seq) & !self.retransmitted.word(seq) & !self.sacked.word(seq))
    }

    /// The first segment in `from..to` that is not SACKed.
    pub(crate) fn next_unsacked(&self, from: u64, to: u64) -> Option<u64> {
        self.find(from, |seq| !self.sacked.word(seq)).filter(|seq| *seq < to)
    }

    /// The first segment at or after `from` and before `next` whose bit is set in `word(seq)`.
    #[inline]
    fn find(&self, from: u64, word: impl Fn(u64) -> u64) -> Option<u64> {
        let mut seq = from;
        while seq < self.next {
            let bits = word(seq) >> (seq % 64);
            if bits != 0 {
                let found = seq + bits.trailing_zeros() as u64;
                return (found < self.next).then_some(found);
            }
            seq = (seq / 64 + 1) * 64;
        }
        None
    }

    /// Doubles the ring.
    #[cold]
    fn grow(&mut self) {
        let (old, new) = (self.tx.len(), self.tx.len() * 2);
        let mut tx = vec![TxState::default(); new];
        for seq in self.una..self.next {
            tx[seq as usize & (new - 1)] = self.tx[seq as usize & (old - 1)];
        }
        self.tx = tx;
        for bits in [&mut self.sacked, &mut self.lost, &mut self.retransmitted, &mut self.ever_retransmitted]
        {
            let mut wide = Bits::with_capacity(new);
            for seq in self.una..self.next {
                if bits.get(seq) {
                    wide.set(seq);
                }
            }
            *bits = wide;
        }
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

    #[test]
    fn in_flight_is_out_less_sacked_and_lost_plus_retransmitted() {
        let mut board = board(10);
        board.mark_sacked(5);
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
    fn a_search_stops_at_the_end_of_what_was_sent() {
        let mut board = board(70);
        assert_eq!(board.next_unsacked(0, 70), Some(0));
        for seq in 0..70 {
            board.sacked.set(seq);
        }
        assert_eq!(board.next_unsacked(0, 70), None);
        board.una = 64;
        assert_eq!(board.next_unsacked(64, 70), None);
    }
}
