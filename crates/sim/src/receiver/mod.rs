//! The receiver: reassembly, SACK blocks, and when to acknowledge (Linux 6.18, `tcp_input.c`).
//!
//! - In order: the first 16 segments are acknowledged one by one (quick ACKs), and any while the window is still growing;
//!   then one ACK for more than one segment, or after the delayed-ACK timer of 40 ms.
//! - Out of order: three duplicate ACKs at once, then one for all data that arrives within min(1 ms, 5 % of the RTT) (SACK
//!   compression, `tcp_comp_sack_delay_ns`); at once when a hole closes, and before a third block displaces one that was not
//!   reported yet.

mod arrival;
mod marks;
mod reassembly;
mod round_trip;
mod window;

use std::collections::VecDeque;

use fullpipe_path::Ecn;
use fullpipe_scenario::spec::{EcnUse, Lie};
use fullpipe_units::{Duration, Time};

use crate::clock::Jiffies;
use crate::hosts::Latency;
use crate::packet::{AckKind, Acknowledgement, PAWS_WINDOW_MS};
pub(crate) use arrival::{Arrival, Mark};
use marks::{Answer, Marks};
use reassembly::SACKS;
use round_trip::RoundTrip;
use window::ReceiveWindow;

/// Linux `TCP_MAX_QUICKACKS`.
const MAX_QUICK_ACKS: u32 = 16;
/// Linux `TCP_ATO_MIN` and `TCP_DELACK_MIN`: 40 ms.
const ATO_MIN: Duration = Duration::from_millis(40);
/// Linux `TCP_ATO_MIN / 2`: arrivals at most this far apart bring the delayed-ACK time to twice this, [`ATO_MIN`].
const STEADY_GAP: Duration = Duration::from_millis(20);
/// Linux `TCP_DELACK_MAX`: 200 ms.
const ATO_MAX: Duration = Duration::from_millis(200);
/// Linux `net.ipv4.tcp_comp_sack_nr`.
const COMPRESSED_MAX: u32 = 44;
/// Linux `net.ipv4.tcp_comp_sack_delay_ns`: 1 ms.
const COMPRESSED_DELAY: Duration = Duration::from_millis(1);
/// The receiving half of a flow. Its fields are in the order in which events need them, see [`Flow`](crate::flow::Flow).
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Receiver {
    /// Next segment expected (Linux: `rcv_nxt`), and the bytes before it.
    next: u64,
    next_bytes: u64,
    /// `next_bytes` when the last ACK left (Linux: `rcv_wup`), and the segment.
    acked_bytes: u64,
    acked: u64,
    mss: u32,
    echo_ms: u32,
    quick: u32,
    compressed: u32,
    ato: Duration,
    last_arrival: Time,
    delayed_ack: Time,
    compressed_timer: Time,
    /// Segments that arrived, duplicates included.
    pub(crate) arrived_segments: u64,
    round_trip: RoundTrip,
    window: ReceiveWindow,
    /// Ranges waiting out of order, in order and apart.
    waiting: VecDeque<(u64, u64)>,
    /// Segments in them.
    waiting_segments: u64,
    sack_count: usize,
    /// Duplicate ACKs sent at once for this `next` (Linux: `dup_ack_counter`).
    duplicates: u32,
    /// Segments below `next` that had not arrived when it acknowledged them, all of them full: their loss is hidden.
    pub(crate) hidden_segments: u32,
    duplicates_for: u64,
    duplicate: Option<(u64, u64)>,
    seen_data: bool,
    /// Whether it discards segments with old timestamps.
    checks_stamps: bool,
    /// An ACK has to leave before the one for the present arrival: `early`.
    has_early: bool,
    /// How it lies, if it does.
    lie: Option<Lie>,
    marks: Marks,
    // draft 4.1.3.5.1#6b5bed: every connection has both
    /// Blocks to report, latest first (Linux: `selective_acks`).
    sacks: [(u64, u64); SACKS],
    /// Segments that had arrived before.
    pub(crate) duplicate_segments: u64,
    /// A short segment that waits, and by how many bytes it is short: the last of its stream.
    short: Option<(u64, u64)>,
    early: Acknowledgement,
    /// `next` after the last packet that may be marked, for a receiver that tells them apart (Linux: `prior_rcv_nxt`).
    next_before: u64,
    /// Segments that arrived marked.
    pub(crate) marked_segments: u64,
    /// Segments that it discarded because their timestamps were old.
    pub(crate) discarded_segments: u64,
    /// What makes its timer for compressed ACKs late.
    ack_timer: Option<Latency>,
}

/// The part of a [`Receiver`] that most arrivals need.
pub(crate) const ARRIVING: usize = std::mem::offset_of!(Receiver, duplicate_segments);

impl Receiver {
    pub(crate) fn new(mss: u32, rmem: [u64; 3], ecn: EcnUse, lie: Option<Lie>, now: Time) -> Receiver {
        Receiver {
            mss,
            next: 0,
            next_bytes: 0,
            acked_bytes: 0,
            acked: 0,
            window: ReceiveWindow::new(mss, rmem, now),
            round_trip: RoundTrip::new(),
            waiting: VecDeque::new(),
            waiting_segments: 0,
            short: None,
            sacks: [(0, 0); SACKS],
            sack_count: 0,
            duplicate: None,
            echo_ms: 0,
            quick: if lie == Some(Lie::SplitsAcks) { 2 } else { 0 },
            ato: ATO_MIN,
            last_arrival: now,
            seen_data: false,
            delayed_ack: Time::NEVER,
            compressed: 0,
            compressed_timer: Time::NEVER,
            has_early: false,
            lie,
            marks: Marks::new(ecn),
            early: Acknowledgement::NONE,
            next_before: 0,
            marked_segments: 0,
            checks_stamps: false,
            discarded_segments: 0,
            hidden_segments: 0,
            ack_timer: None,
            duplicates: 0,
            duplicates_for: 0,
            arrived_segments: 0,
            duplicate_segments: 0,
        }
    }

    /// The handshake is over and took `rtt`.
    pub(crate) fn on_established(&mut self, rtt: Duration) {
        self.round_trip.on_established(rtt);
        if self.checks_stamps {
            self.window.on_established(rtt);
        }
    }

    /// Lets it discard segments with old timestamps, and its timer for compressed ACKs fire late.
    pub(crate) fn behave_as_linux(&mut self, ack_timer: Latency) {
        self.checks_stamps = true;
        self.ack_timer = Some(ack_timer);
    }

    /// Whether it has agreed to use ECN.
    pub(crate) fn uses_ecn(&self) -> bool {
        self.marks.is_on()
    }

    /// Whether data waits for the delayed-ACK timer to be acknowledged.
    pub(crate) fn delays_ack(&self) -> bool {
        self.delayed_ack != Time::NEVER
    }

    /// Its estimate of the round trip; zero if it has none.
    pub(crate) fn rtt(&self) -> Duration {
        self.round_trip.handshake().max(self.round_trip.smoothed())
    }

    /// Bytes delivered to the application.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        self.next_bytes - self.hidden_segments as u64 * self.mss as u64
    }

    /// Segments delivered to the application, and those whose loss it hides.
    pub(crate) fn delivered_segments(&self) -> u64 {
        self.next
    }

    /// When a timer of the receiver is due.
    #[inline]
    pub(crate) fn timer(&self) -> Time {
        self.delayed_ack.min(self.compressed_timer)
    }

    /// Data arrived. Returns whether an ACK must leave now.
    #[inline(always)]
    pub(crate) fn on_arrival(&mut self, now: Time, arrival: &Arrival) -> bool {
        self.arrived_segments += arrival.segments as u64;
        if self.checks_stamps && self.is_old(arrival) {
            return self.discard(arrival);
        }
        // Never an older one (Linux: `tcp_replace_ts_recent`).
        if arrival.seq <= self.acked && self.age_ms(arrival) <= 0 {
            self.echo_ms = arrival.stamp_ms;
        }
        self.round_trip.on_echo(now, arrival.echo_ms, arrival.bytes >= self.mss as u64);
        // The most common case: the next data in order, none waiting, no quick ACKs left, no ECN, the delayed-ACK time at its
        // value for steady arrivals, and a window that cannot grow. It needs little work.
        let steady = arrival.seq == self.next
            && self.waiting.is_empty()
            && self.quick == 0
            && arrival.mark.is_none()
            && self.ato == ATO_MIN
            && self.window.is_fully_offered()
            && now <= self.last_arrival + STEADY_GAP;
        if !steady {
            return match arrival.mark {
                None => self.on_any_arrival::<false>(now, arrival),
                Some(_) => self.on_any_arrival::<true>(now, arrival),
            };
        }
        self.last_arrival = now;
        self.next += arrival.segments as u64;
        self.next_bytes += arrival.bytes;
        self.on_in_order(now, 0);
        self.next_bytes - self.acked_bytes > self.mss as u64 || self.delay_ack(now)
    }

    /// Whether a segment was sent before one that moved the timestamp to echo: protection against wrapped sequences (RFC 7323
    /// section 5; Linux: `tcp_paws_discard`, with `TCP_PAWS_WINDOW`). If a retransmission overtakes what was sent before it
    /// and closes the first hole, all of that is old.
    fn is_old(&self, arrival: &Arrival) -> bool {
        self.age_ms(arrival) > PAWS_WINDOW_MS
    }

    /// By how much a segment's timestamp is older than the one to echo.
    #[inline]
    fn age_ms(&self, arrival: &Arrival) -> i32 {
        self.echo_ms.wrapping_sub(arrival.stamp_ms) as i32
    }

    /// Acknowledges a segment at once that is not taken (Linux: `tcp_validate_incoming`, `tcp_send_dupack`).
    #[cold]
    fn discard(&mut self, arrival: &Arrival) -> bool {
        self.discarded_segments += arrival.segments as u64;
        if arrival.seq < self.next {
            let end = arrival.seq + arrival.segments as u64;
            self.report_duplicate(arrival.seq, end.min(self.next));
            self.quick_acks(MAX_QUICK_ACKS);
            self.ato = ATO_MIN;
        }
        true
    }

    /// The rest of [`Receiver::on_arrival`], for the less common cases; `ECN` if the arrival has a mark.
    #[inline(never)]
    fn on_any_arrival<const ECN: bool>(&mut self, now: Time, arrival: &Arrival) -> bool {
        let mark = if ECN { arrival.mark } else { None };
        let end = arrival.seq + arrival.segments as u64;
        let mut answer_now = mark.is_some_and(|mark| self.on_headers(arrival.segments, mark));
        if arrival.seq > self.next && self.lie == Some(Lie::HidesLoss) {
            self.hide_loss(arrival.seq);
        }
        if arrival.seq > self.next {
            answer_now |= self.check_mark(mark, self.next);
            self.on_data_out_of_order(arrival, end);
            return self.check_ack(now, answer_now);
        }
        let mut bytes = arrival.bytes;
        if arrival.seq < self.next {
            // Some of it had arrived before: answer at once and report it (RFC 2883).
            let known = end.min(self.next) - arrival.seq;
            self.note_duplicate(arrival.seq, arrival.seq + known);
            self.quick_acks(MAX_QUICK_ACKS);
            self.ato = ATO_MIN;
            if end <= self.next {
                return true;
            }
            bytes -= known * self.mss as u64;
            answer_now = true;
        }
        answer_now |= self.on_data(now, bytes, mark, end);
        self.next = end;
        self.next_bytes += bytes;
        if !self.waiting.is_empty() {
            self.take_waiting();
            answer_now |= self.waiting.is_empty();
        }
        let beyond = self.waiting.back().map_or(0, |last| (last.1 - self.next) * self.mss as u64);
        self.on_in_order(now, beyond);
        if self.lie == Some(Lie::SplitsAcks) {
            self.split_ack();
        }
        self.check_ack(now, answer_now)
    }

    /// Behaves as if everything before segment `seq` had arrived.
    #[cold]
    fn hide_loss(&mut self, seq: u64) {
        let hidden = seq - self.next;
        self.hidden_segments += hidden as u32; // The books of a run notice an overflow.
        self.next_bytes += hidden * self.mss as u64;
        self.next = seq;
    }

    /// An ACK leaves before the one for what arrived, now: such a receiver is always in quick-ACK mode. Numbers count segments, so
    /// that it, for half a segment, repeats the last number and acknowledges nothing.
    #[cold]
    fn split_ack(&mut self) {
        self.quick = self.quick.max(2);
        if !self.has_early {
            let mut half = Acknowledgement::new(AckKind::Plain, self.echo_ms, self.acked, self.window.edge());
            self.sacks[..self.sack_count].iter().for_each(|block| half.report(*block));
            self.early = half.with_echo(self.marks.echo());
            self.has_early = true;
        }
    }

    /// Counts marks, and takes note of the sender's reduction (Linux: `tcp_ecn_accept_cwr`). Returns whether an ACK must leave
    /// now: a sender that has reduced its window may have little in flight.
    #[inline(never)]
    fn on_headers(&mut self, segments: u32, mark: Mark) -> bool {
        if mark.codepoint == Ecn::Ce {
            self.marked_segments += segments as u64;
        }
        if mark.cwr {
            self.marks.stop_echo();
        }
        mark.cwr
    }

    /// An ACK that must leave before the answer to the last arrival.
    #[inline]
    pub(crate) fn take_early(&mut self) -> Option<Acknowledgement> {
        if !self.has_early {
            return None;
        }
        self.has_early = false;
        Some(self.early)
    }

    /// A timer is due. Returns whether an ACK must leave now.
    pub(crate) fn on_timer(&mut self, now: Time) -> bool {
        if self.compressed_timer <= now {
            self.compressed_timer = Time::NEVER;
            return self.compressed > 0;
        }
        if self.delayed_ack <= now {
            self.delayed_ack = Time::NEVER;
            // A delayed ACK that had to wait for its timer inflates the timer (`tcp_delack_timer_handler`).
            self.ato = Duration::from_nanos(self.ato.as_nanos() * 2).min(ATO_MAX);
            return true;
        }
        false
    }

    /// Builds the ACK that reports the present state.
    #[inline]
    pub(crate) fn acknowledge(&mut self) -> Acknowledgement {
        self.acknowledge_plainly().with_echo(self.marks.echo())
    }

    /// The same without ECN.
    #[inline(always)]
    pub(crate) fn acknowledge_plainly(&mut self) -> Acknowledgement {
        let waiting = self.waiting_bytes();
        let edge = self.window.announce(self.next_bytes, waiting);
        let mut ack = Acknowledgement::new(AckKind::Plain, self.echo_ms, self.next, edge);
        if let Some(range) = self.duplicate.take() {
            ack.report(range);
            ack.kind = AckKind::Duplicate;
        }
        self.sacks[..self.sack_count].iter().for_each(|block| ack.report(*block));
        self.acked_bytes = self.next_bytes;
        self.acked = self.next;
        if self.quick > 0 {
            // Leaving quick-ACK mode deflates the delay (Linux: `tcp_dec_quickack_mode`).
            self.quick -= 1;
            if self.quick == 0 {
                self.ato = ATO_MIN;
            }
        }
        self.delayed_ack = Time::NEVER;
        self.compressed = 0;
        self.compressed_timer = Time::NEVER;
        ack
    }

    /// Bookkeeping of data that is delivered in order, up to segment `end` (Linux: `tcp_event_data_recv`). Returns whether an ACK
    /// must leave now.
    #[inline]
    fn on_data(&mut self, now: Time, bytes: u64, mark: Option<Mark>, end: u64) -> bool {
        if !self.seen_data {
            self.seen_data = true;
            self.quick_acks(MAX_QUICK_ACKS);
            self.ato = ATO_MIN;
        } else {
            let gap = now.saturating_since(self.last_arrival);
            let half = Duration::from_nanos(self.ato.as_nanos() / 2);
            if gap <= STEADY_GAP {
                self.ato = half + STEADY_GAP;
            } else if gap < self.ato {
                self.ato = (half + gap).min(ATO_MAX);
            } else if gap > Duration::from_millis(200) {
                // Too long a gap: the sender may have restarted its window (`icsk_rto`, at least 200 ms).
                self.quick_acks(MAX_QUICK_ACKS);
            }
        }
        self.last_arrival = now;
        let answer_now = self.check_mark(mark, end);
        let waiting = self.waiting_bytes();
        if self.window.on_data(bytes, waiting) {
            self.quick |= 1;
        }
        answer_now
    }

    /// Takes note of a packet's mark, or that it has none (Linux: `tcp_ecn_check_ce`); `next` is what is expected after it.
    /// Returns whether an ACK must leave now.
    #[inline]
    fn check_mark(&mut self, mark: Option<Mark>, next: u64) -> bool {
        mark.is_some_and(|mark| self.check_codepoint(mark.codepoint, next))
    }

    #[inline(never)]
    fn check_codepoint(&mut self, codepoint: Ecn, next: u64) -> bool {
        let hidden = codepoint == Ecn::Ce && self.lie == Some(Lie::HidesCe);
        let answer = self.marks.on_packet(if hidden { Ecn::Ect0 } else { codepoint });
        match answer {
            Answer::None => {}
            Answer::Quickly => {
                self.quick_acks(2);
                self.ato = ATO_MIN;
            }
            // What waits for an ACK was marked otherwise (RFC 8257 section 3.2; Linux: `dctcp_ece_ack_update`).
            Answer::Now(before) => {
                if self.delays_ack() {
                    let edge = self.window.edge();
                    let mut early =
                        Acknowledgement::new(AckKind::Plain, self.echo_ms, self.next_before, edge);
                    self.sacks[..self.sack_count].iter().for_each(|block| early.report(*block));
                    self.early = early.with_echo(before);
                    self.has_early = true;
                    self.compressed = 0;
                    self.compressed_timer = Time::NEVER;
                }
            }
        }
        if codepoint.is_capable() {
            self.next_before = next;
        }
        matches!(answer, Answer::Now(_))
    }

    /// Data up to `next` has been read by the application, and data waits up to `beyond` bytes further.
    #[inline]
    fn on_in_order(&mut self, now: Time, beyond: u64) {
        let window = self.window.edge() - self.acked_bytes;
        self.round_trip.on_in_order(now, self.next_bytes, window);
        self.window.on_read(now, self.next_bytes, beyond, self.round_trip.smoothed());
    }

    /// Linux: `tcp_incr_quickack`.
    fn quick_acks(&mut self, most: u32) {
        let window = self.window.size(self.next_bytes);
        let quick = (window / (2 * self.mss as u64)).clamp(2, most as u64) as u32;
        self.quick = self.quick.max(quick);
    }

    /// Linux: `__tcp_ack_snd_check`.
    #[inline]
    fn check_ack(&mut self, now: Time, hole_closed: bool) -> bool {
        if self.next_bytes - self.acked_bytes > self.mss as u64 || self.quick > 0 || hole_closed {
            return true;
        }
        if self.waiting.is_empty() {
            return self.delay_ack(now);
        }
        if self.compressed >= COMPRESSED_MAX {
            return true;
        }
        if self.duplicates_for != self.next {
            self.duplicates_for = self.next;
            self.duplicates = 0;
        }
        if self.duplicates < 3 {
            self.duplicates += 1;
            return true;
        }
        self.compressed += 1;
        if self.compressed_timer == Time::NEVER {
            let late = self.ack_timer.as_mut().map_or(Duration::ZERO, Latency::draw);
            self.compressed_timer = now
                + COMPRESSED_DELAY.min(Duration::from_nanos(self.round_trip.least().as_nanos() / 20))
                + late;
        }
        false
    }

    /// Sets the delayed-ACK timer, at most an RTT away where that is over 40 ms (Linux: `tcp_send_delayed_ack`). Returns
    /// whether the ACK must leave now instead, because the timer is about to fire anyway.
    #[inline]
    fn delay_ack(&mut self, now: Time) -> bool {
        let rtt = self.round_trip.handshake();
        let delay = if rtt == Duration::ZERO || self.ato == ATO_MIN {
            self.ato
        } else {
            self.ato.min(rtt.max(ATO_MIN))
        };
        let jiffies = Jiffies::at(now);
        let soon = jiffies.plus(Duration::from_nanos(delay.as_nanos() / 4)).start();
        if self.delayed_ack != Time::NEVER && self.delayed_ack <= soon {
            return true;
        }
        self.delayed_ack = self.delayed_ack.min(jiffies.plus(delay).start());
        false
    }

    /// The first byte past the window announced so far.
    pub(crate) fn window_edge(&self) -> u64 {
        self.window.edge()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What an arrival is unless a test says otherwise.
    const MERE: Arrival = Arrival { seq: 0, segments: 1, bytes: 1000, stamp_ms: 0, echo_ms: 0, mark: None };

    fn receiver() -> Receiver {
        with_ecn(EcnUse::None)
    }

    fn with_ecn(ecn: EcnUse) -> Receiver {
        Receiver::new(1000, [4096, 131_072, 1 << 31], ecn, None, Time::ZERO)
    }

    fn arrive(receiver: &mut Receiver, at_us: u64, seq: u64) -> bool {
        let echo = ((at_us / 1000) as u16).wrapping_sub(40);
        let arrival =
            Arrival { seq, segments: 1, bytes: 1000, stamp_ms: at_us as u32, echo_ms: echo, ..MERE };
        let now = receiver.on_arrival(Time::from_micros(at_us), &arrival);
        if now {
            receiver.acknowledge();
        }
        now
    }

    #[test]
    fn early_segments_are_acked_at_once() {
        let mut receiver = receiver();
        // A window that cannot grow any more, so that only the count of quick ACKs decides.
        receiver.window = ReceiveWindow::new(1000, [4096, 60_000, 60_000], Time::ZERO);
        let sent: Vec<bool> = (0..40).map(|seq| arrive(&mut receiver, 1000 + seq * 100, seq)).collect();
        assert!(sent[..14].iter().all(|now| *now), "{sent:?}");
        assert_eq!(sent[30..40].iter().filter(|now| **now).count(), 5, "{sent:?}");
    }

    #[test]
    fn late_timer_delays_compressed_acks() {
        let due = |linux: bool| {
            let mut receiver = receiver();
            receiver.on_established(Duration::from_millis(100));
            if linux {
                receiver.behave_as_linux(Latency::ack_timer(1));
            }
            // Three duplicate ACKs leave at once, and quick ACKs before them; then the timer runs.
            let mut seq = 10;
            while receiver.compressed_timer == Time::NEVER {
                let (stamp_ms, echo_ms) = (1, 0);
                if receiver.on_arrival(Time::from_micros(500), &Arrival { seq, stamp_ms, echo_ms, ..MERE }) {
                    receiver.acknowledge();
                }
                seq += 1;
            }
            receiver.timer()
        };
        let (on_time, late) = (due(false), due(true));
        assert!(late > on_time && late <= on_time + Duration::from_micros(960), "{on_time:?} {late:?}");
    }

    #[test]
    fn segment_overtaken_by_retransmission_is_old() {
        for (checks, taken) in [(false, 5), (true, 3)] {
            let mut receiver = receiver();
            if checks {
                receiver.behave_as_linux(Latency::ack_timer(1));
            }
            let mut arrive = |seq, stamp_ms| {
                let answer =
                    receiver.on_arrival(Time::from_micros(1_000), &Arrival { seq, stamp_ms, ..MERE });
                let ack = receiver.acknowledge();
                (answer, ack.ack, receiver.discarded_segments)
            };
            arrive(0, 10);
            arrive(2, 10);
            // The retransmission of segment 1 closes the hole, and its timestamp is echoed from now on.
            assert_eq!(arrive(1, 100), (true, 3, 0));
            // Sent 3 ms earlier, it arrives later; what was sent 1 ms earlier is within the tolerance.
            assert_eq!(arrive(3, 97), (true, if checks { 3 } else { 4 }, checks as u64));
            arrive(4, 99);
            let kept = receiver.delivered_segments() + receiver.waiting_segments();
            assert_eq!((receiver.delivered_segments(), kept), (taken, if checks { 4 } else { 5 }));
            assert_eq!(receiver.arrived_segments, kept + receiver.discarded_segments);
        }
    }

    #[test]
    fn the_echoed_timestamp_never_goes_back() {
        for linux in [false, true] {
            let mut receiver = receiver();
            if linux {
                receiver.behave_as_linux(Latency::ack_timer(1));
            }
            let mut echo = |seq, stamp_ms| {
                receiver.on_arrival(Time::ZERO, &Arrival { seq, stamp_ms, ..MERE });
                receiver.acknowledge().echo_ms
            };
            // What overtook the second segment left 1 ms later. Then old copies, the second within the tolerance of Linux.
            let echoes = [(0, 100), (1, 99), (0, 99), (0, 98), (2, 101)].map(|(seq, stamp)| echo(seq, stamp));
            assert_eq!(echoes, [100, 100, 100, 100, 101]);
            assert_eq!(receiver.discarded_segments, linux as u64);
        }
    }

    #[test]
    fn old_received_segment_reports_duplicate() {
        let mut receiver = receiver();
        receiver.behave_as_linux(Latency::ack_timer(1));
        for seq in 0..3 {
            receiver.on_arrival(Time::ZERO, &Arrival { seq, stamp_ms: 50, ..MERE });
            receiver.acknowledge();
        }
        assert!(receiver.on_arrival(Time::ZERO, &Arrival { seq: 1, stamp_ms: 10, ..MERE }));
        let ack = receiver.acknowledge();
        assert_eq!((ack.kind, ack.ack, ack.sack()[0]), (AckKind::Duplicate, 3, (1, 2)));
        assert_eq!((receiver.duplicate_segments, receiver.discarded_segments), (0, 1));
    }

    #[test]
    fn lone_segment_waits_for_delayed_ack() {
        let mut receiver = receiver();
        receiver.window = ReceiveWindow::new(1000, [4096, 60_000, 60_000], Time::ZERO);
        let mut seq = 0;
        while arrive(&mut receiver, 1_000, seq) {
            seq += 1;
        }
        let due = receiver.timer();
        assert_eq!(due, Time::from_micros(40_000), "ten jiffies of 4 ms after the one that holds 1 ms");
        assert!(receiver.on_timer(due));
        assert_eq!(receiver.timer(), Time::NEVER);
    }

    #[test]
    fn delayed_ack_timeout_lengthens_next_delay() {
        let mut receiver = receiver();
        receiver.window = ReceiveWindow::new(1000, [4096, 60_000, 60_000], Time::ZERO);
        receiver.on_established(Duration::from_millis(150));
        let (mut seq, mut waits) = (0, Vec::new());
        while arrive(&mut receiver, 1_000, seq) {
            seq += 1;
        }
        for round in 1..3u64 {
            let due = receiver.timer();
            assert!(receiver.on_timer(due));
            receiver.acknowledge();
            seq += 1;
            let at = Time::from_micros(round * 200_000);
            let arrival = Arrival { seq, segments: 1, bytes: 1000, stamp_ms: 0, echo_ms: 0, ..MERE };
            receiver.last_arrival = at;
            receiver.on_arrival(at, &arrival);
            waits.push(receiver.timer().saturating_since(at).as_millis());
        }
        assert_eq!(waits, [60, 80], "half of twice 40 ms and 20 ms more; then half of twice 60");
    }

    #[test]
    fn duplicate_acks_are_compressed_after_three() {
        let mut receiver = receiver();
        for seq in 0..60 {
            arrive(&mut receiver, seq, seq);
        }
        receiver.quick = 0;
        receiver.on_established(Duration::from_millis(40));
        let sent: Vec<bool> = (61..71).map(|seq| arrive(&mut receiver, 100_000 + seq, seq)).collect();
        assert_eq!(sent, [true, true, true, false, false, false, false, false, false, false]);
        assert_eq!(receiver.timer(), Time::from_micros(100_064) + COMPRESSED_DELAY);
        assert!(arrive(&mut receiver, 100_900, 60), "a closed hole is acknowledged at once");
        assert_eq!((receiver.next, receiver.sack_count), (71, 0));
    }

    #[test]
    fn sack_block_is_reported_before_eviction() {
        let mut receiver = receiver();
        for seq in 0..60 {
            arrive(&mut receiver, seq, seq);
        }
        receiver.quick = 0;
        // Every other segment is lost, so each arrival is a block of its own; the fourth answer is held back.
        let mut reported = Vec::new();
        for seq in (61..81).step_by(2) {
            let arrival = Arrival { seq, segments: 1, bytes: 1000, stamp_ms: 0, echo_ms: 0, ..MERE };
            let now = receiver.on_arrival(Time::from_micros(100_000 + seq), &arrival);
            let early = receiver.take_early();
            let late = now.then(|| receiver.acknowledge());
            for ack in early.into_iter().chain(late) {
                reported.extend(ack.sack()[..ack.blocks()].iter().map(|block| block.0));
            }
        }
        reported.sort_unstable();
        reported.dedup();
        assert_eq!(reported, [61, 63, 65, 67, 69, 71, 73, 75, 77], "only the last still waits for the timer");
    }

    #[test]
    fn blocks_are_reported_latest_first() {
        let mut receiver = receiver();
        for seq in [2, 4, 6, 8, 5] {
            arrive(&mut receiver, seq, seq);
        }
        receiver.next = 0;
        let ack = receiver.acknowledge();
        assert_eq!(&ack.sack()[..ack.blocks()], &[(4, 7), (8, 9), (2, 3)]);
        assert_eq!(ack.wire_bytes(), 80);
    }

    #[test]
    fn early_short_tail_counts_own_bytes() {
        let mut receiver = receiver();
        arrive(&mut receiver, 1, 0);
        let tail = Arrival { seq: 2, segments: 1, bytes: 300, stamp_ms: 2, echo_ms: 0, ..MERE };
        receiver.on_arrival(Time::from_micros(2), &tail);
        arrive(&mut receiver, 3, 1);
        assert_eq!((receiver.delivered_segments(), receiver.delivered_bytes()), (3, 2300));
    }

    #[test]
    fn partly_known_merge_delivers_remainder_once() {
        let mut receiver = receiver();
        for seq in [0, 1, 3, 6] {
            arrive(&mut receiver, seq, seq);
        }
        // Holds 1 (delivered), 2 (the hole), 3 (waiting) and 4.
        let merged = Arrival { seq: 1, segments: 4, bytes: 4000, stamp_ms: 9, echo_ms: 0, ..MERE };
        assert!(receiver.on_arrival(Time::from_micros(9), &merged));
        assert_eq!((receiver.delivered_segments(), receiver.delivered_bytes()), (5, 5000));
        // Holds 5 (the hole), 6 (waiting) and 7; then 9..12 twice over.
        let merged = Arrival { seq: 5, segments: 3, bytes: 3000, stamp_ms: 9, echo_ms: 0, ..MERE };
        receiver.on_arrival(Time::from_micros(9), &merged);
        assert_eq!(receiver.delivered_bytes(), 8000);
        for (seq, segments) in [(10, 1), (9, 3), (9, 3)] {
            let merged =
                Arrival { seq, segments, bytes: segments as u64 * 1000, stamp_ms: 9, echo_ms: 0, ..MERE };
            receiver.on_arrival(Time::from_micros(9), &merged);
        }
        assert_eq!((receiver.waiting_segments(), receiver.duplicate_segments), (3, 7));
        let kept = receiver.delivered_segments() + receiver.waiting_segments() + receiver.duplicate_segments;
        assert_eq!(receiver.arrived_segments, kept);
    }

    #[test]
    fn a_duplicate_is_reported_as_dsack() {
        let mut receiver = receiver();
        for seq in 0..4 {
            arrive(&mut receiver, seq, seq);
        }
        let arrival = Arrival { seq: 1, segments: 1, bytes: 1000, stamp_ms: 9, echo_ms: 0, ..MERE };
        assert!(receiver.on_arrival(Time::from_micros(9), &arrival));
        let ack = receiver.acknowledge();
        assert_eq!(ack.kind, AckKind::Duplicate);
        assert_eq!((ack.sack()[0], ack.ack), ((1, 2), 4));
    }

    fn arrive_marked(
        receiver: &mut Receiver,
        at_us: u64,
        seq: u64,
        codepoint: Ecn,
        cwr: bool,
    ) -> Vec<Acknowledgement> {
        let mark = Some(Mark { codepoint, cwr });
        let arrival = Arrival { seq, stamp_ms: at_us as u32, mark, ..MERE };
        let now = receiver.on_arrival(Time::from_micros(at_us), &arrival);
        let early = receiver.take_early();
        early.into_iter().chain(now.then(|| receiver.acknowledge())).collect()
    }

    /// One that acknowledges every other segment, with this use of ECN.
    fn steady(ecn: EcnUse) -> (Receiver, u64) {
        let mut receiver = with_ecn(ecn);
        receiver.window = ReceiveWindow::new(1000, [4096, 60_000, 60_000], Time::ZERO);
        let codepoint = if ecn == EcnUse::None { Ecn::NotEct } else { Ecn::Ect0 };
        let mut seq = 0;
        // Until one has to wait; then its successor answers both.
        while !arrive_marked(&mut receiver, 1_000, seq, codepoint, false).is_empty() {
            seq += 1;
        }
        arrive_marked(&mut receiver, 1_000, seq + 1, codepoint, false);
        (receiver, seq + 2)
    }

    fn numbers_and_echoes(acks: &[Acknowledgement]) -> Vec<(u64, bool)> {
        acks.iter().map(|ack| (ack.ack, ack.echoes())).collect()
    }

    #[test]
    fn mark_is_echoed_until_cwr() {
        let (mut receiver, first) = steady(EcnUse::Classic);
        let mut seen = Vec::new();
        let mut next = first;
        let mut arrive = |codepoint, cwr| {
            seen.push(numbers_and_echoes(&arrive_marked(&mut receiver, 1_000, next, codepoint, cwr)));
            next += 1;
        };
        for (codepoint, cwr) in [
            (Ecn::Ce, false),
            (Ecn::Ect0, false),
            (Ecn::Ce, false),
            (Ecn::Ect0, false),
            (Ecn::Ect0, true),
            (Ecn::Ect0, false),
            (Ecn::Ce, true),
        ] {
            arrive(codepoint, cwr);
        }
        let acks: Vec<Vec<(u64, bool)>> = seen
            .iter()
            .map(|acks| acks.iter().map(|&(ack, echoes)| (ack - first, echoes)).collect())
            .collect();
        let expected = [
            // Two at once, then one of two; all echo.
            vec![(1, true)],
            vec![(2, true)],
            vec![],
            vec![(4, true)],
            // CWR is acknowledged at once, too, ...
            vec![(5, false)],
            vec![],
            // ... and a mark on a packet with CWR is a new one.
            vec![(7, true)],
        ];
        assert_eq!(acks, expected);
        assert_eq!(receiver.marked_segments, 3);
    }

    #[test]
    fn not_ect_after_ect_is_retransmission() {
        let (mut receiver, first) = steady(EcnUse::Classic);
        assert_eq!(arrive_marked(&mut receiver, 1_000, first, Ecn::NotEct, false).len(), 1);
        assert_eq!(arrive_marked(&mut receiver, 1_000, first + 1, Ecn::Ect0, false).len(), 1);
        assert_eq!(arrive_marked(&mut receiver, 1_000, first + 2, Ecn::Ect0, false).len(), 0);
    }

    /// RFC 8257 section 3.2, with delayed ACKs: each ACK is of segments that were marked alike.
    #[test]
    fn exact_receiver_distinguishes_marked_segments() {
        let (mut receiver, first) = steady(EcnUse::Exact(Ecn::Ect0));
        let (mut counted, mut acked) = (0, first);
        let marks = [0, 0, 1, 1, 1, 0, 1, 0, 0, 0, 0, 1, 1, 0, 1, 1, 1, 1, 0, 0];
        let mut acks = 0;
        for (seq, marked) in (first..).zip(marks) {
            let codepoint = if marked == 1 { Ecn::Ce } else { Ecn::Ect0 };
            for ack in arrive_marked(&mut receiver, 1_000, seq, codepoint, false) {
                counted += if ack.echoes() { ack.ack - acked } else { 0 };
                (acked, acks) = (ack.ack, acks + 1);
                assert_eq!(ack.codepoint(), Ecn::Ect0);
            }
        }
        // The last one waits.
        assert_eq!((counted, acked), (marks.iter().sum(), first + 19));
        assert!(acks < 20, "{acks} ACKs");
    }

    #[test]
    fn mark_start_flushes_pending_ack() {
        let (mut receiver, first) = steady(EcnUse::Exact(Ecn::Ect0));
        assert_eq!(arrive_marked(&mut receiver, 1_000, first, Ecn::Ect0, false), []);
        let acks = arrive_marked(&mut receiver, 1_000, first + 1, Ecn::Ce, false);
        assert_eq!(numbers_and_echoes(&acks), [(first + 1, false), (first + 2, true)]);
        // Out of order, and nothing waits: one ACK.
        let acks = arrive_marked(&mut receiver, 1_000, first + 3, Ecn::Ect0, false);
        assert_eq!(numbers_and_echoes(&acks), [(first + 2, false)]);
        // The sender's CWR does not stop an exact echo.
        let acks = arrive_marked(&mut receiver, 1_000, first + 2, Ecn::Ce, true);
        assert_eq!(numbers_and_echoes(&acks), [(first + 4, true)]);
    }

    #[test]
    fn gro_separates_differing_marks() {
        let mark = |codepoint, cwr| Some(Mark { codepoint, cwr });
        assert!(Mark::can_be_merged(None, None));
        assert!(Mark::can_be_merged(mark(Ecn::Ect0, true), mark(Ecn::Ect0, false)));
        assert!(!Mark::can_be_merged(mark(Ecn::Ect0, false), mark(Ecn::Ect0, true)));
        assert!(!Mark::can_be_merged(mark(Ecn::Ect0, false), mark(Ecn::Ce, false)));
        assert!(!Mark::can_be_merged(mark(Ecn::Ect0, false), None));
    }
}
