//! Sending: how much, in what bursts, and when (Linux 6.12 `tcp_output.c`).

use fullpipe_cc::{CaState, Controller, Sent, TransmitStart, WindowUnused};
use fullpipe_path::Ecn;
use fullpipe_units::{Bytes, Duration, Rate, Time};

use super::scoreboard::Scoreboard;
use super::{MarkableRun, Sender, SenderConfig, Wire};
use crate::hosts::Latency;
use crate::packet::{Segment, stamp_ms};
use fullpipe_cc::delivery::TxState;

/// A burst carries what the rate moves in 2^-10 s (Linux: `sk_pacing_shift`).
const PACING_SHIFT: u32 = 10;
/// ... and more on short paths (Linux: `net.ipv4.tcp_tso_rtt_log`).
const TSO_RTT_LOG: u32 = 9;
/// Linux: segments at the start of a connection that are not paced.
const UNPACED_SEGMENTS: u64 = 10;
/// A partial window may wait for more if a third of the window is not free (Linux: `net.ipv4.tcp_tso_win_divisor`).
const TSO_WIN_DIVISOR: u32 = 3;
/// Bursts may wait for the next ACK only this long (Linux: `tcp_tso_should_defer`).
const DEFER_MAX: Duration = Duration::from_millis(1);
/// Memory that a queued segment takes for each 1448 bytes of payload, in a socket whose application writes in large
/// pieces: pages of payload and one `sk_buff` of 768 bytes for each 64 KB (`skb->truesize`).
const SEND_MEMORY_PER_64K: u64 = 65_536 + 768;

/// How the window was used (Linux: `tcp_cwnd_validate`).
#[derive(Debug)]
pub(super) struct Usage {
    pub(super) cwnd_limited: bool,
    pub(super) max_packets_out: u32,
    round_end: u64,
    used: u32,
    /// When the window was last used up, grew or was cut (Linux: `snd_cwnd_stamp`).
    pub(super) stamp: Time,
}

/// Output state.
#[derive(Debug)]
pub(super) struct Output {
    pub(super) paced: bool,
    /// Linux: `sk_pacing_rate`; sizes bursts even when nothing is paced.
    pub(super) rate: Rate,
    /// Earliest departure of the next burst (Linux: `tcp_wstamp_ns`).
    pub(super) departure: Time,
    /// When the pacing timer fires.
    pub(super) wake: Time,
    /// How much later than `departure`.
    late: Duration,
    pub(super) usage: Usage,
    /// Nothing before it waits for retransmission (Linux: `retransmit_skb_hint`); losses below move it back.
    pub(super) retransmit_from: u64,
    /// Data segments sent (Linux: `data_segs_out`).
    segments: u64,
    last_sent: Time,
    /// Full segments that the send buffer holds.
    buffer: u64,
    /// The application has filled it up to this segment, as far as the stream goes, and waits for room until that one is
    /// acknowledged.
    written: u64,
    pub(super) resumes_at: u64,
    timer: Option<Latency>,
    /// The buffer grows with the window, as Linux's: see [`super::send_buffer`].
    pub(super) grows: bool,
}

impl Output {
    pub(super) fn new(now: Time, config: &SenderConfig) -> Output {
        let SenderConfig { send_buffer, controller: config, pacing_timer, .. } = config;
        let buffer = (*send_buffer as u128 * 65_536 / SEND_MEMORY_PER_64K as u128) as u64 / config.mss as u64;
        Output {
            paced: config.paced,
            // Linux starts with an unlimited rate; the first ACK sets it.
            rate: Rate::MAX,
            departure: now,
            wake: Time::NEVER,
            late: Duration::ZERO,
            timer: *pacing_timer,
            usage: Usage { cwnd_limited: false, max_packets_out: 0, round_end: 0, used: 0, stamp: now },
            retransmit_from: 0,
            segments: 0,
            last_sent: now,
            buffer,
            written: buffer,
            resumes_at: buffer.div_ceil(3),
            grows: false,
        }
    }

    /// The application fills the buffer, whose first segment is now `una`. It is asked for more when a third is free
    /// (Linux: `sk_stream_is_writeable`).
    pub(super) fn fill(&mut self, una: u64) {
        self.written = una + self.buffer;
        self.resumes_at = una + self.buffer.div_ceil(3);
    }

    /// Of a buffer that grows: what was written ends before this segment, and every ACK looks at the buffer.
    pub(super) fn admit(&mut self, segment: u64) {
        (self.written, self.resumes_at) = (segment, 0);
    }

    /// How far the application has filled the send buffer.
    pub(super) fn written(&self) -> u64 {
        self.written
    }
}

/// Why data is being pushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Push {
    Normal,
    /// One burst, which does not wait to become larger (Linux: `tcp_push_one`).
    One,
    /// A tail loss probe: one segment, whatever the window says.
    Probe,
}

impl Sender {
    /// Segments in a burst (Linux: `tcp_tso_segs`).
    #[inline]
    fn burst_segments(&self) -> u32 {
        let gso_max = self.gso_max as u64;
        let mut bytes = self.output.rate.as_bytes_per_sec() >> PACING_SHIFT;
        let halvings = self.min_rtt.micros() >> TSO_RTT_LOG;
        if halvings < u32::BITS {
            bytes = bytes.saturating_add(gso_max >> halvings);
        }
        let segments = if bytes >= gso_max { gso_max as u32 / self.mss } else { bytes as u32 / self.mss };
        segments.max(self.limits.min_burst).min(self.gso_max_segs as u32)
    }

    /// Segments of the next piece of the send queue that have not been sent. Data waits in pieces (`sk_buff`) of as many segments as
    /// a burst may have at most (Linux: `tcp_send_mss`, `tcp_sendmsg_locked`). A burst that takes the rest of one is filled up from
    /// the next (`tcp_grow_skb`, since 6.10), and does not wait for a window that takes more. Here all pieces are full, see
    /// [`super::send_buffer`].
    #[inline]
    fn left_of_piece(&self) -> u32 {
        self.full_piece.map_or(u32::MAX, |segments| {
            segments.get() as u32 - (self.board.next % segments.get() as u64) as u32
        })
    }

    /// Whether pacing forbids sending now.
    pub(super) fn is_paced_out(&self, now: Time) -> bool {
        self.output.paced && self.output.departure > now
    }

    /// Whether pacing forbids sending now; if so the pacing timer is set.
    #[inline]
    fn paced_out(&mut self, now: Time) -> bool {
        if !self.output.paced || self.output.departure <= now {
            return false;
        }
        self.output.wake = self.output.departure + self.output.late;
        true
    }

    /// Whether there is new data that the receiver's window admits.
    pub(super) fn has_sendable(&self) -> bool {
        self.sendable() > 0
    }

    /// New segments that the stream, the receiver's window and the send buffer admit.
    #[inline]
    fn sendable(&self) -> u64 {
        let next = self.board.next;
        let end = self.stream.segments().min(self.window_end).min(self.output.written);
        if end > next {
            return end - next;
        }
        self.last_fits() as u64
    }

    /// The application fills the send buffer again (Linux: `tcp_check_space`).
    #[cold]
    pub(super) fn refill(&mut self, now: Time, wire: &mut impl Wire) {
        if self.output.grows {
            return self.on_space(now, wire);
        }
        let before = self.stream.segments().min(self.output.written);
        self.output.fill(self.board.una);
        self.note_written(now);
        if self.stream.segments() > before {
            self.send_written(now, before, wire);
        }
    }

    /// Sends what the application has written beyond segment `before` (Linux: `tcp_sendmsg_locked`).
    pub(super) fn send_written(&mut self, now: Time, before: u64, wire: &mut impl Wire) {
        self.check_app_limited(before);
        self.push(now, wire);
    }

    /// A burst of new data is a piece of the send buffer, of hosts whose buffers grow.
    #[cold]
    fn note_piece(&mut self, now: Time, segments: u32) {
        let end = self.board.next;
        if let Some(buffer) = &mut self.send_buffer {
            buffer.on_sent(segments, end);
        }
        self.check_space(now);
    }

    /// Marks the sampler if no data waited beyond segment `written` although the window had room, and no loss had to be repaired:
    /// the application limits the rate (Linux: `tcp_rate_check_app_limited`).
    pub(super) fn check_app_limited(&mut self, written: u64) {
        // draft 4.1.2.4: CheckIfApplicationLimited
        if self.board.next >= written
            && self.board.in_flight() < self.limits.cwnd
            && self.board.lost_out <= self.board.retrans_out
        {
            self.sampler.mark_app_limited(self.board.in_flight());
        }
    }

    /// The same when an ACK or a timer begins, if the controller asks for it (draft-ietf-ccwg-bbr section 4.1.2.4).
    #[inline]
    pub(super) fn check_app_limited_if_asked(&mut self) {
        if self.limits.check_app_limited {
            self.check_app_limited(self.stream.segments().min(self.output.written));
        }
    }

    /// Whether only the last segment is left, which is short, and fits where a full one would not.
    fn last_fits(&self) -> bool {
        let next = self.board.next;
        let edge = self.stream.start_of(next) + self.stream.bytes_of(next) as u64;
        next.wrapping_add(1) == self.stream.segments() && self.window_edge >= edge
    }

    /// The pacing timer fired (Linux: `tcp_pace_kick`, then `tcp_tsq_write`).
    #[inline]
    pub(super) fn on_pacing_timer(&mut self, now: Time, wire: &mut impl Wire) {
        if self.board.lost_out > self.board.retrans_out && self.limits.cwnd > self.board.in_flight() {
            self.retransmit_lost(now, wire);
        }
        self.write(now, Push::Normal, wire);
    }

    /// Sends new data (Linux: `tcp_write_xmit`); returns how many segments. If it sends, it sets the timer.
    #[inline(always)]
    pub(super) fn write(&mut self, now: Time, push: Push, wire: &mut impl Wire) -> u32 {
        let mut cwnd_limited = false;
        let mut sent = 0;
        let mut max_segments = 0;
        loop {
            let sendable = self.sendable();
            if sendable == 0 || self.paced_out(now) {
                break;
            }
            let in_flight = self.board.in_flight();
            let cwnd = self.limits.cwnd;
            let mut quota = if in_flight >= cwnd { 0 } else { (cwnd / 2).max(1).min(cwnd - in_flight) };
            if quota == 0 {
                if push != Push::Probe {
                    break;
                }
                quota = 1;
            }
            let available = sendable.min(u32::MAX as u64) as u32;
            if max_segments == 0 {
                max_segments = self.burst_segments();
            }
            // A window of one segment waits, too, unless that is the rest of a piece (Linux: `tso_segs` counts the piece, not the
            // window). Ideal hosts send it.
            if push == Push::Normal
                && (self.output.grows || quota.min(max_segments).min(available) > 1)
                && self.should_defer(now, max_segments, available, &mut cwnd_limited)
            {
                break;
            }
            let segments = if push == Push::Probe { 1 } else { quota.min(max_segments).min(available) };
            self.send_new(now, segments, push, wire);
            sent += segments;
            if push != Push::Normal {
                break;
            }
        }
        cwnd_limited |= self.board.in_flight() >= self.limits.cwnd;
        if sent > 0 || cwnd_limited {
            self.validate_window(now, cwnd_limited);
        }
        if sent > 0 && push != Push::Probe {
            self.schedule_probe(now, false);
        }
        sent
    }

    /// [`Sender::write`] for callers that are not hot.
    #[inline(never)]
    pub(super) fn write_rarely(&mut self, now: Time, push: Push, wire: &mut impl Wire) {
        self.write(now, push, wire);
    }

    /// Whether a partial burst should wait for the next ACK to become a full one (Linux: `tcp_tso_should_defer`).
    #[inline]
    fn should_defer(&self, now: Time, max_segments: u32, available: u32, cwnd_limited: &mut bool) -> bool {
        if self.recovery.state >= CaState::Recovery || now > self.output.departure + DEFER_MAX {
            return false;
        }
        let in_stream = self.stream.segments() - self.board.next;
        let window = self.limits.cwnd - self.board.in_flight();
        let limit = window.min(available);
        if limit >= max_segments || limit >= self.left_of_piece() || limit as u64 >= in_stream {
            return false;
        }
        let receive_window = self.window_end.saturating_sub(self.board.una);
        let chunk = (self.limits.cwnd as u64).min(receive_window) / TSO_WIN_DIVISOR as u64;
        if limit as u64 >= chunk || self.board.packets_out() == 0 {
            return false;
        }
        let srtt = Duration::from_nanos(self.rtt.srtt_x8() as u64 * 125);
        let head_us = self.board.tx(self.board.una).sent_us;
        let age = Duration::from_micros((now.as_micros() as u32).wrapping_sub(head_us) as u64);
        let threshold = Duration::from_nanos(srtt.as_nanos() / 2).min(DEFER_MAX);
        if srtt.saturating_sub(age) > threshold {
            return false;
        }
        if window < available {
            *cwnd_limited = true;
        }
        true
    }

    /// Sends the next `segments` new segments as one burst.
    #[inline(always)]
    fn send_new(&mut self, now: Time, segments: u32, push: Push, wire: &mut impl Wire) {
        self.begin_burst(now);
        let first = self.board.next;
        let packets_out = self.board.packets_out();
        let in_flight = self.board.in_flight();
        let tx = self.sampler.on_sent(now, packets_out, in_flight + segments, self.lost);
        self.board.push(segments, tx);
        let bytes = self.put_on_wire(now, first, segments, false, wire);
        self.end_burst(now, segments, bytes);
        if self.output.grows {
            self.note_piece(now, segments);
        }
        self.controller.on_sent(&Sent {
            departure: now,
            units: segments,
            prior_in_flight: in_flight,
            prior_packets_out: packets_out,
            retransmission: false,
        });
        // If a probe will be scheduled after the last burst, the timer is set then.
        let probe_follows =
            push != Push::Probe && matches!(self.recovery.state, CaState::Open | CaState::Cwr);
        if !probe_follows && (packets_out == 0 || self.timers.is_probe()) {
            self.rearm(now);
        }
    }

    #[inline]
    fn segment(&self, now: Time, seq: u64) -> Segment {
        let payload = self.stream.bytes_of(seq) as u16;
        Segment { stamp_ms: stamp_ms(now), echo_ms: self.peer_stamp_ms as u16, seq, payload }
    }

    /// Hands segments to the path; returns their payload in bytes.
    #[inline]
    fn put_on_wire(
        &mut self,
        now: Time,
        first: u64,
        segments: u32,
        repeated: bool,
        wire: &mut impl Wire,
    ) -> u64 {
        let last = first + segments as u64 - 1;
        let tail = self.segment(now, last);
        // Only the last of a stream may be short.
        let parts = segments > 1 && tail.payload as u32 != self.mss;
        if self.marking.is_on() {
            self.put_on_wire_with_ecn(now, first, segments - parts as u32, repeated, wire);
            if parts {
                self.put_on_wire_with_ecn(now, last, 1, repeated, wire);
            }
        } else if parts {
            wire.send_run(now, self.flow, self.segment(now, first), segments - 1);
            wire.send(now, self.flow, tail, Ecn::NotEct);
        } else {
            wire.send_run(now, self.flow, self.segment(now, first), segments);
        }
        (segments - 1) as u64 * self.mss as u64 + tail.payload as u64
    }

    /// Hands equal segments to the path, over a connection that has negotiated ECN. The first new data after a reduction has CWR
    /// (Linux: `tcp_ecn_send`; of a burst its first segment, `SKB_GSO_TCP_ECN`).
    #[inline(never)]
    fn put_on_wire_with_ecn(
        &mut self,
        now: Time,
        first: u64,
        count: u32,
        repeated: bool,
        wire: &mut impl Wire,
    ) {
        let (codepoint, cwr) = if repeated {
            (self.marking.of_repeated(), false)
        } else {
            (self.marking.of_new(), self.marking.take_cwr())
        };
        let first = self.segment(now, first);
        wire.send_markable_run(now, self.flow, MarkableRun { first, count, cwr, codepoint });
    }

    /// Retransmits lost segments, as far as window and pacing allow (Linux: `tcp_xmit_retransmit_queue`).
    pub(super) fn retransmit_lost(&mut self, now: Time, wire: &mut impl Wire) {
        if self.board.packets_out() == 0 {
            return;
        }
        let max_segments = self.burst_segments();
        let mut from = self.output.retransmit_from.max(self.board.una);
        let mut head_sent = false;
        while self.board.lost_out > self.board.retrans_out {
            if self.paced_out(now) {
                break;
            }
            let in_flight = self.board.in_flight();
            if in_flight >= self.limits.cwnd {
                break;
            }
            let Some(seq) = self.board.next_to_retransmit(from) else { break };
            self.output.retransmit_from = seq;
            let most = max_segments.min(self.limits.cwnd - in_flight);
            let segments = self.lost_run(seq, most);
            head_sent |= seq == self.board.una;
            self.retransmit(now, seq, segments, wire);
            from = seq + segments as u64;
        }
        if head_sent && !self.timers.is_reordering() {
            self.set_rto(now);
        }
    }

    /// How many segments from `seq` on left in one burst and wait for retransmission, up to `most`.
    fn lost_run(&self, seq: u64, most: u32) -> u32 {
        let sent_us = self.board.tx(seq).sent_us;
        let mut segments = 1;
        while segments < most {
            let next = seq + segments as u64;
            let same = next < self.board.next
                && self.board.is_lost(next)
                && !self.board.is_retransmitted(next)
                && !self.board.is_sacked(next)
                && self.board.tx(next).sent_us == sent_us;
            if !same {
                break;
            }
            segments += 1;
        }
        segments
    }

    /// Retransmits `segments` lost segments from `first` on as one burst (Linux: `tcp_retransmit_skb`).
    pub(super) fn retransmit(&mut self, now: Time, first: u64, segments: u32, wire: &mut impl Wire) {
        self.repeat(now, first, segments, Scoreboard::retransmit, wire);
        self.recovery.first_retransmission.get_or_insert(stamp_ms(now));
        self.recovery.undo_retransmissions = self.recovery.undo_retransmissions.max(0) + segments as i64;
    }

    /// Repeats the last segment as a tail loss probe (Linux: `__tcp_retransmit_skb`).
    pub(super) fn probe(&mut self, now: Time, seq: u64, wire: &mut impl Wire) {
        self.repeat(now, seq, 1, Scoreboard::probe, wire);
    }

    /// Sends segments again as one burst; `note` enters each on the scoreboard.
    fn repeat(
        &mut self,
        now: Time,
        first: u64,
        segments: u32,
        note: fn(&mut Scoreboard, u64, TxState),
        wire: &mut impl Wire,
    ) {
        self.begin_burst(now);
        let packets_out = self.board.packets_out();
        let in_flight = self.board.in_flight();
        let tx = self.sampler.on_sent(now, packets_out, in_flight + segments, self.lost);
        for seq in first..first + segments as u64 {
            note(&mut self.board, seq, tx);
            self.rack.on_retransmit(seq, tx.sent_us);
        }
        let bytes = self.put_on_wire(now, first, segments, true, wire);
        self.end_burst(now, segments, bytes);
        self.counters.retransmits += segments as u64;
        self.controller.on_sent(&Sent {
            departure: now,
            units: segments,
            prior_in_flight: in_flight,
            prior_packets_out: packets_out,
            retransmission: true,
        });
    }

    #[inline]
    fn begin_burst(&mut self, now: Time) {
        if self.board.in_flight() == 0 {
            self.start_from_idle(now);
        }
        self.output.last_sent = now;
    }

    /// Reports to the controller that data leaves an idle connection (Linux: `tcp_event_data_sent`).
    #[cold]
    fn start_from_idle(&mut self, now: Time) {
        let start = TransmitStart {
            connection: self.connection(now),
            last_sent: self.output.last_sent,
            rto: Duration::from_micros(self.rtt.rto_us as u64),
        };
        self.controller.on_transmit_start(&start);
        self.update_limits();
    }

    // draft 5.6.2: steps.{next_send_time, send_time, pacing_delay, next_send_time.2}
    /// Counts a burst and moves the earliest departure of the next (Linux: `tcp_update_skb_after_send`).
    #[inline]
    fn end_burst(&mut self, now: Time, segments: u32, bytes: u64) {
        let prior = self.output.departure;
        self.output.departure = self.output.departure.max(now);
        self.output.segments += segments as u64;
        self.counters.segments_sent += segments as u64;
        if self.output.paced && self.output.segments >= UNPACED_SEGMENTS && self.output.rate < Rate::MAX {
            let length = self.output.rate.time_for(Bytes::new(bytes));
            // A burst that left late gives back up to half of its own length.
            let credit = self.output.departure.saturating_since(prior);
            self.output.departure += length - credit.min(Duration::from_nanos(length.as_nanos() / 2));
            if let Some(timer) = &mut self.output.timer {
                self.output.late = timer.draw();
            }
        }
    }

    /// Linux: `tcp_cwnd_validate`.
    #[inline]
    fn validate_window(&mut self, now: Time, cwnd_limited: bool) {
        let packets_out = self.board.packets_out();
        let usage = &mut self.output.usage;
        if self.board.una >= usage.round_end
            || cwnd_limited
            || (!usage.cwnd_limited && packets_out > usage.max_packets_out)
        {
            usage.cwnd_limited = cwnd_limited;
            usage.max_packets_out = packets_out;
            usage.round_end = self.board.next;
        }
        let slow_start = self.limits.cwnd < self.limits.ssthresh;
        if usage.cwnd_limited || (slow_start && self.limits.cwnd < 2 * usage.max_packets_out) {
            usage.used = 0;
            usage.stamp = now;
            return;
        }
        usage.used = usage.used.max(packets_out);
        if now.saturating_since(usage.stamp) >= Duration::from_micros(self.rtt.rto_us as u64) {
            usage.stamp = now;
            // An application that waits for room in the send buffer does not limit the window (`SOCK_NOSPACE`).
            if self.output.written < self.stream.segments() {
                return;
            }
            let used = std::mem::take(&mut self.output.usage.used);
            let unused = WindowUnused { connection: self.connection(now), used };
            self.controller.on_window_unused(&unused);
            self.update_limits();
        }
    }
}
