//! RACK loss detection (RFC 8985; Linux 6.12 `net/ipv4/tcp_recovery.c`): a segment is lost when one sent later was
//! delivered and the reordering window has passed.
//!
//! Nothing is scanned twice except after an undo. Segments sent once left in order of sequence, so a pointer that only
//! moves up finds the lost ones among them; retransmissions wait in a queue in the order in which they left.

use std::collections::VecDeque;

use fullpipe_cc::CaState;
use fullpipe_path::prefetch::prefetch;

use super::scoreboard::Scoreboard;

/// Linux `TCP_RACK_RECOVERY_THRESH`.
const REO_WND_PERSIST: u32 = 16;
/// Linux `net.ipv4.tcp_reordering`.
pub(crate) const REORDERING: u32 = 3;
/// Linux `net.ipv4.tcp_max_reordering`.
const REORDERING_MAX: u32 = 300;

/// Detector state. Times are wrapping microseconds.
#[derive(Debug)]
pub(crate) struct Rack {
    /// Send time and number of the segment sent last among those delivered.
    newest_us: u32,
    newest_seq: u64,
    /// Its RTT.
    rtt_us: u32,
    /// Something was delivered since the last detection.
    pub(crate) advanced: bool,
    reo_wnd_steps: u32,
    /// Recoveries for which a widened window stays.
    pub(crate) reo_wnd_persist: u32,
    last_delivered: u32,
    pub(crate) dsack_seen: bool,
    /// Reordering was ever seen.
    pub(crate) reordering_seen: bool,
    /// Degree of reordering, segments (Linux: `tp->reordering`).
    pub(crate) reordering: u32,
    /// All segments below it that were sent once are delivered or marked lost.
    first_original: u64,
    /// Those below `searched` left before the newest delivered one, and `latest` is the last of them that may be lost, or was.
    searched: u64,
    latest: u64,
    /// (segment, when it left), in the order they left. Entries of delivered or again retransmitted segments are stale.
    retransmissions: VecDeque<(u64, u32)>,
}

/// The result of a detection pass, besides the marks on the scoreboard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Detection {
    /// Some segments may still be lost: look again after this many microseconds.
    pub(crate) again_after_us: Option<u32>,
}

#[inline]
fn after(a: u32, b: u32) -> bool {
    (a.wrapping_sub(b) as i32) > 0
}

impl Rack {
    /// A detector of a connection established at `now_us`.
    pub(crate) fn new(now_us: u32) -> Rack {
        Rack {
            newest_us: now_us,
            newest_seq: 0,
            rtt_us: 0,
            advanced: false,
            reo_wnd_steps: 1,
            reo_wnd_persist: 0,
            last_delivered: 0,
            dsack_seen: false,
            reordering_seen: false,
            reordering: REORDERING,
            first_original: 0,
            searched: 0,
            latest: 0,
            retransmissions: VecDeque::new(),
        }
    }

    /// `seq`, which last left at `sent_us`, was delivered (Linux: `tcp_rack_advance`).
    #[inline]
    pub(crate) fn on_delivered(
        &mut self,
        seq: u64,
        sent_us: u32,
        now_us: u32,
        retransmitted: bool,
        min_rtt_us: u32,
    ) {
        let rtt_us = now_us.wrapping_sub(sent_us);
        if retransmitted && rtt_us < min_rtt_us {
            // Too early for the retransmission: the original arrived after all.
            return;
        }
        self.advanced = true;
        self.rtt_us = rtt_us;
        if self.is_newest(seq, sent_us) {
            self.newest_us = sent_us;
            self.newest_seq = seq;
        }
    }

    /// A hint: losses will soon be searched for.
    #[inline]
    pub(crate) fn prefetch(&self, board: &Scoreboard) {
        board.prefetch(self.first_original);
        if let Some(first) = self.retransmissions.front() {
            prefetch(first);
        }
    }

    /// Whether a segment left after the newest delivered one; equal times are ordered by sequence.
    #[inline]
    fn is_newest(&self, seq: u64, sent_us: u32) -> bool {
        after(sent_us, self.newest_us) || (sent_us == self.newest_us && seq > self.newest_seq)
    }

    /// Whether a segment left before the newest delivered one, so that it should have been delivered too.
    #[inline]
    fn left_before_newest(&self, seq: u64, sent_us: u32) -> bool {
        !self.is_newest(seq, sent_us) && (sent_us, seq) != (self.newest_us, self.newest_seq)
    }

    /// `seq` was retransmitted at `sent_us`.
    pub(crate) fn on_retransmit(&mut self, seq: u64, sent_us: u32) {
        self.retransmissions.push_back((seq, sent_us));
    }

    /// A segment never retransmitted was delivered below one delivered before it (Linux: `tcp_check_sack_reordering`).
    pub(crate) fn on_reordering(&mut self, seq: u64, highest_delivered: u64) {
        if seq >= highest_delivered {
            return;
        }
        let distance = (highest_delivered - seq).min(REORDERING_MAX as u64) as u32;
        self.reordering = self.reordering.max(distance);
        self.reordering_seen = true;
    }

    /// Widens the window when duplicates were reported (Linux: `tcp_rack_update_reo_wnd`). `basis` is the sampled segment's
    /// count of delivered segments when it left, `delivered` the count now.
    pub(crate) fn update_window(&mut self, basis: Option<u32>, delivered: u32) {
        let Some(basis) = basis else { return };
        if after(self.last_delivered, basis) {
            self.dsack_seen = false;
        }
        if self.dsack_seen {
            self.reo_wnd_steps = (self.reo_wnd_steps + 1).min(255);
            self.dsack_seen = false;
            self.last_delivered = delivered;
            self.reo_wnd_persist = REO_WND_PERSIST;
        } else if self.reo_wnd_persist == 0 {
            self.reo_wnd_steps = 1;
        }
    }

    fn window_us(&self, board: &Scoreboard, state: CaState, min_rtt_us: u32, srtt_us: u32) -> u32 {
        let evident = state >= CaState::Recovery || board.sacked_out >= self.reordering;
        if !self.reordering_seen && evident {
            return 0;
        }
        (min_rtt_us >> 2).saturating_mul(self.reo_wnd_steps).min(srtt_us)
    }

    /// Marks lost segments and calls `on_lost` for each, in the order found (Linux: `tcp_rack_detect_loss`).
    pub(crate) fn detect(
        &mut self,
        board: &mut Scoreboard,
        at: Moment,
        mut on_lost: impl FnMut(&Scoreboard, u64),
    ) -> Detection {
        let window_us = self.window_us(board, at.state, at.min_rtt_us, at.srtt_us);
        let deadline_us = self.rtt_us.wrapping_add(window_us);
        let mut waiting = None;

        self.first_original = self.first_original.max(board.una);
        while let Some(seq) = board.next_unsacked(self.first_original, board.next) {
            self.first_original = seq;
            if board.was_retransmitted(seq) || board.is_lost(seq) {
                self.first_original += 1;
                continue;
            }
            let sent_us = board.tx(seq).sent_us;
            if !self.left_before_newest(seq, sent_us) {
                break;
            }
            if at.now_us.wrapping_sub(sent_us) < deadline_us {
                waiting = Some(self.latest_original(board));
                break;
            }
            board.mark_lost(seq);
            on_lost(board, seq);
            self.first_original += 1;
        }

        while let Some(&(seq, sent_us)) = self.retransmissions.front() {
            // The rest left even later, so that it does not matter which of them are stale. Those acknowledged go at once:
            // the clock wraps.
            if seq >= board.una && after(sent_us, self.newest_us) {
                break;
            }
            if !is_stale(board, seq, sent_us) {
                if !self.left_before_newest(seq, sent_us) {
                    break;
                }
                if at.now_us.wrapping_sub(sent_us) < deadline_us {
                    let last = self.latest_retransmission(board);
                    waiting =
                        Some(waiting.map_or(last, |other| if after(last, other) { last } else { other }));
                    break;
                }
                board.mark_lost(seq);
                on_lost(board, seq);
            }
            self.retransmissions.pop_front();
        }

        // Linux looks again when the one that left last is overdue.
        let again_after_us =
            waiting.map(|sent_us| deadline_us.wrapping_sub(at.now_us.wrapping_sub(sent_us)).max(1));
        Detection { again_after_us }
    }

    /// When the last of those segments left that were sent once and should have been delivered but were not. The first of
    /// them is `first_original`.
    fn latest_original(&mut self, board: &Scoreboard) -> u32 {
        let may_be_lost = |seq| !board.is_sacked(seq) && !board.was_retransmitted(seq) && !board.is_lost(seq);
        self.searched = self.searched.max(self.first_original);
        self.latest = self.latest.max(self.first_original);
        while let Some(seq) = board.next_unsacked(self.searched, board.next) {
            if may_be_lost(seq) {
                if !self.left_before_newest(seq, board.tx(seq).sent_us) {
                    break;
                }
                self.latest = seq;
            }
            self.searched = seq + 1;
        }
        while !may_be_lost(self.latest) {
            self.latest -= 1;
        }
        board.tx(self.latest).sent_us
    }

    /// The same for retransmissions; the first of them is at the front of the queue.
    fn latest_retransmission(&self, board: &Scoreboard) -> u32 {
        let before =
            self.retransmissions.partition_point(|&(seq, sent_us)| self.left_before_newest(seq, sent_us));
        let waiting = self.retransmissions.range(..before).rev();
        let mut left = waiting.filter(|&&(seq, sent_us)| !is_stale(board, seq, sent_us));
        left.next().expect("the front waits").1
    }

    /// Whether `seq` would count as lost at a timeout: it left at least an RTT ago (Linux: `tcp_timeout_mark_lost`).
    pub(crate) fn expired(&self, board: &Scoreboard, seq: u64, now_us: u32) -> bool {
        now_us.wrapping_sub(board.tx(seq).sent_us) >= self.rtt_us
    }

    /// After an undo took back the marks, the segments are candidates again.
    pub(crate) fn on_unmark(&mut self, una: u64) {
        self.first_original = una;
        self.searched = una;
        self.latest = una;
        self.advanced = true;
    }
}

/// Whether an entry of the queue of retransmissions is stale. A tail loss probe repeats a segment without counting it as
/// retransmitted, so that bit does not decide.
fn is_stale(board: &Scoreboard, seq: u64, sent_us: u32) -> bool {
    seq < board.una
        || board.is_sacked(seq)
        || board.tx(seq).sent_us != sent_us
        || (board.is_lost(seq) && !board.is_retransmitted(seq))
}

/// When and in which state a detection happens.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub(crate) now_us: u32,
    pub(crate) state: CaState,
    pub(crate) min_rtt_us: u32,
    pub(crate) srtt_us: u32,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_cc::delivery::TxState;

    fn sent_each_millisecond(segments: u32) -> Scoreboard {
        let mut board = Scoreboard::new();
        for n in 0..segments {
            board.push(1, TxState { sent_us: n * 1000, ..TxState::default() });
        }
        board
    }

    fn sack(board: &mut Scoreboard, rack: &mut Rack, seq: u64, now_us: u32) {
        board.mark_sacked(seq, 1);
        rack.on_delivered(seq, board.tx(seq).sent_us, now_us, false, 40_000);
    }

    fn detect(
        rack: &mut Rack,
        board: &mut Scoreboard,
        now_us: u32,
        state: CaState,
    ) -> (Vec<u64>, Option<u32>) {
        let mut lost = Vec::new();
        let at = Moment { now_us, state, min_rtt_us: 40_000, srtt_us: 40_000 };
        let detection = rack.detect(board, at, |_, seq| lost.push(seq));
        (lost, detection.again_after_us)
    }

    #[test]
    fn one_sack_waits_three_detect_loss() {
        let (mut board, mut rack) = (sent_each_millisecond(10), Rack::new(0));
        sack(&mut board, &mut rack, 1, 41_000);
        assert_eq!(detect(&mut rack, &mut board, 41_000, CaState::Open), (vec![], Some(9_000)));
        sack(&mut board, &mut rack, 2, 42_000);
        sack(&mut board, &mut rack, 3, 43_000);
        assert_eq!(detect(&mut rack, &mut board, 43_000, CaState::Open), (vec![0], None));
    }

    /// Compared with a full search like Linux's.
    #[test]
    fn last_hole_sets_reordering_timeout() {
        let (mut board, mut rack) = (sent_each_millisecond(30), Rack::new(0));
        // Something was delivered out of order before, so that the reordering window counts whatever is SACKed.
        rack.on_reordering(0, 2);
        for (seq, last_hole) in [(1, 0), (2, 0), (6, 5), (4, 5), (5, 3), (9, 8), (8, 7), (7, 3), (3, 0)] {
            let now_us = 41_000 + seq as u32 * 1000;
            sack(&mut board, &mut rack, seq, now_us);
            let holes = (0..10).filter(|hole| *hole < rack.newest_seq && !board.is_sacked(*hole));
            assert_eq!(holes.max(), Some(last_hole), "after {seq}");
            let overdue = last_hole as u32 * 1000 + rack.rtt_us + 10_000 - now_us;
            assert_eq!(
                detect(&mut rack, &mut board, now_us, CaState::Open),
                (vec![], Some(overdue)),
                "{seq}"
            );
        }
    }

    #[test]
    fn last_retransmission_sets_reordering_timeout() {
        let (mut board, mut rack) = (sent_each_millisecond(10), Rack::new(0));
        rack.on_reordering(0, 2);
        for seq in 0..3 {
            board.mark_lost(seq);
            let sent_us = 45_000 + seq as u32 * 1000;
            board.retransmit(seq, TxState { sent_us, ..TxState::default() });
            rack.on_retransmit(seq, sent_us);
        }
        board.mark_sacked(2, 1);
        rack.on_delivered(2, 47_000, 88_000, true, 40_000);
        // 3..10 left long before and are lost; of the retransmissions the one at 46 ms waits longest.
        let (lost, again) = detect(&mut rack, &mut board, 88_000, CaState::Recovery);
        assert_eq!((lost, again), (vec![3, 4, 5, 6, 7, 8, 9], Some(46_000 + 41_000 + 10_000 - 88_000)));
    }

    #[test]
    fn later_delivery_marks_retransmission_lost() {
        let (mut board, mut rack) = (sent_each_millisecond(10), Rack::new(0));
        for seq in 1..4 {
            sack(&mut board, &mut rack, seq, 40_000 + seq as u32 * 1000);
        }
        assert_eq!(detect(&mut rack, &mut board, 43_000, CaState::Open).0, [0]);
        board.retransmit(0, TxState { sent_us: 43_000, ..TxState::default() });
        rack.on_retransmit(0, 43_000);
        assert_eq!(detect(&mut rack, &mut board, 50_000, CaState::Recovery).0, [0; 0]);
        board.push(1, TxState { sent_us: 44_000, ..TxState::default() });
        sack(&mut board, &mut rack, 10, 85_000);
        // 4..10 left before it too and were not delivered.
        assert_eq!(detect(&mut rack, &mut board, 85_000, CaState::Recovery).0, [4, 5, 6, 7, 8, 9, 0]);
        assert_eq!((board.lost_out, board.retrans_out), (7, 0));
    }

    #[test]
    fn stale_retransmission_hides_no_later() {
        let (mut board, mut rack) = (sent_each_millisecond(10), Rack::new(0));
        for (seq, sent_us) in [(0, 45_000), (1, 46_000)] {
            board.mark_lost(seq);
            board.retransmit(seq, TxState { sent_us, ..TxState::default() });
            rack.on_retransmit(seq, sent_us);
        }
        // The original of the first arrives after all, before anything sent later does.
        board.pop(1);
        assert_eq!(detect(&mut rack, &mut board, 60_000, CaState::Recovery), (vec![], None));
        board.push(1, TxState { sent_us: 47_000, ..TxState::default() });
        sack(&mut board, &mut rack, 10, 88_000);
        let (lost, _) = detect(&mut rack, &mut board, 88_000, CaState::Recovery);
        assert_eq!(lost, [2, 3, 4, 5, 6, 7, 8, 9, 1]);
    }

    #[test]
    fn same_burst_orders_by_sequence() {
        let mut board = Scoreboard::new();
        board.push(4, TxState::default());
        let mut rack = Rack::new(0);
        board.mark_sacked(2, 1);
        rack.on_delivered(2, 0, 50_000, false, 40_000);
        assert_eq!(detect(&mut rack, &mut board, 50_000, CaState::Recovery).0, [0, 1]);
    }
}
