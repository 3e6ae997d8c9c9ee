//! The send buffer of a Linux host, and the application that fills it (Linux 6.12: `tcp_sendmsg_locked` in `tcp.c`;
//! `tcp_sndbuf_expand` and `tcp_check_space` in `tcp_input.c`).
//!
//! The buffer counts memory: payload, and an `sk_buff` for each piece of it. It grows with the window. Its limit is tested only
//! where a piece begins. A full piece of which a part has left has room again, and is filled up without a test: once an
//! application is woken, it writes on as long as the window takes a burst of each piece. So more than the limit may be in flight.
//!
//! Where pieces end is told twice, and not alike. Here are their real sizes, for memory and for when the writer comes back: the first ones
//! are half of a window, and a short end shifts those after it. Whether a burst waits for more window is decided as if all pieces of the
//! stream were full, from its first segment on (`left_of_piece`), and for flows that write bit by bit as if there were one. A burst may
//! span two pieces; it counts as one of them.
//!
//! Segments stay whole in the simulator. Where Linux would send the short end of a write, it counts as sent here (`short_end`), and
//! leaves with what follows it.

use std::collections::VecDeque;

use fullpipe_cc::{Config, Params};
use fullpipe_units::Time;

use super::transmit::Push;
use super::{Sender, Wire};

/// What an application writes at once: iperf3's default, and the kernel world's.
const WRITE_BYTES: u64 = 128 * 1024;
/// Linux: `TCP_INIT_CWND`.
const INITIAL_WINDOW: u64 = 10;
/// Memory of the structures of a packet (64-bit Linux, in cache lines): `struct skb_shared_info`, `struct sk_buff`.
const SHARED_INFO: u64 = 320;
const SK_BUFF: u64 = 256;
/// What a packet's head has more room for than `MAX_TCP_HEADER` (Linux: `GRO_MAX_HEAD_PAD`, since 6.3).
const HEAD_PAD: u64 = 64;
/// IP and TCP headers without options: what the peer's announced segment size leaves out.
const PLAIN_HEADERS: u64 = 40;
/// IP and TCP headers with timestamps.
const HEADERS: u64 = 52;

/// What decides how a buffer grows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Growth {
    /// Linux `tcp_wmem`: default and maximum.
    pub(crate) first: u64,
    pub(crate) most: u64,
}

/// The state of a buffer and its writer.
#[derive(Debug)]
pub(super) struct SendBuffer {
    /// Memory that it may hold (Linux: `sk_sndbuf`), and the most that may ever be.
    limit: u64,
    most: u64,
    /// How many windows it is to hold, and the memory of a segment in each (Linux: `sndbuf_expand`, `per_mss`).
    windows: u64,
    per_segment: u64,
    /// Memory of a piece besides its payload.
    overhead: u64,
    /// Full pieces hold this much (Linux: `size_goal`).
    piece: u64,
    largest_piece: u64,
    /// The largest window that the receiver has offered (Linux: `max_window`).
    largest_window: u64,
    /// Bytes of the stream that were written; what of them had to leave at once (Linux: `write_seq`, `pushed_seq`).
    bytes: u64,
    pushed: u64,
    /// Of the last piece, what has not left.
    tail: u64,
    /// The pieces in flight: each ends before this segment.
    sent: VecDeque<u64>,
    /// The segments in flight that carry PSH: the last ones of bursts of two or more (Linux: `__tcp_transmit_skb`).
    pushes: VecDeque<u64>,
    /// A short segment is outstanding until this one is acknowledged (Linux: `snd_sml`).
    short_end: u64,
    /// The writer waits for room (Linux: `SOCK_NOSPACE`).
    pub(super) waits: bool,
}

impl SendBuffer {
    pub(super) fn new(growth: &Growth, config: &Config, params: Option<&Params>) -> SendBuffer {
        let mss = config.mss as u64;
        let head = config.max_tcp_header as u64 + SHARED_INFO;
        let windows = params.map_or(2, Params::send_windows);
        let per_segment = (mss + HEADERS - PLAIN_HEADERS + head).next_power_of_two() + SK_BUFF;
        let mut buffer = SendBuffer {
            limit: growth.first,
            most: growth.most,
            windows,
            per_segment,
            overhead: head + HEAD_PAD + SK_BUFF,
            piece: mss,
            largest_piece: config.gso_max as u64,
            largest_window: 0,
            bytes: 0,
            pushed: 0,
            tail: 0,
            sent: VecDeque::new(),
            pushes: VecDeque::new(),
            short_end: 0,
            waits: false,
        };
        buffer.expand(0, 0);
        buffer
    }

    /// Bytes written so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Nothing beyond `bytes` is sent.
    pub(super) fn stop(&mut self, bytes: u64) {
        (self.bytes, self.tail, self.waits) = (bytes, 0, false);
    }

    /// Linux: `tcp_sndbuf_expand`.
    fn expand(&mut self, cwnd: u32, reordering: u32) {
        let segments = INITIAL_WINDOW.max(cwnd as u64).max(reordering as u64 + 1);
        let wanted = self.windows * segments * self.per_segment;
        if self.limit < wanted {
            self.limit = wanted.min(self.most);
        }
    }

    /// Memory in use (Linux: `sk_wmem_queued`), with `held` bytes of payload, of which `unsent` have not left.
    fn memory(&self, held: u64, unsent: u64) -> u64 {
        let waiting = match unsent {
            0 => 0,
            unsent if unsent <= self.tail => 1,
            unsent => 1 + (unsent - self.tail).div_ceil(self.piece),
        };
        held + (self.sent.len() as u64 + waiting) * self.overhead
    }

    /// Linux: `sk_stream_is_writeable`.
    fn is_writeable(&self, memory: u64) -> bool {
        memory < self.limit && self.limit - memory >= memory / 2
    }

    /// A piece of so many segments has left, up to segment `end`.
    pub(super) fn on_sent(&mut self, segments: u32, end: u64) {
        self.sent.push_back(end);
        if segments > 1 {
            self.pushes.push_back(end - 1);
        }
    }

    /// Pieces before `una` are free.
    fn on_acknowledged(&mut self, una: u64) {
        while self.sent.front().is_some_and(|end| *end <= una) {
            self.sent.pop_front();
        }
        while self.pushes.front().is_some_and(|seq| *seq < una) {
            self.pushes.pop_front();
        }
    }

    /// Whether a segment in flight carries PSH.
    fn pushes(&self, seq: u64) -> bool {
        self.pushes.binary_search(&seq).is_ok()
    }

    /// The window has become known (Linux: `tcp_xmit_size_goal`, `tcp_bound_to_half_wnd`).
    fn set_piece(&mut self, mss: u64, most_segments: u64, window: u64) {
        self.largest_window = self.largest_window.max(window);
        let most = self.largest_piece.min(self.largest_window / 2);
        self.piece = (most / mss).clamp(1, most_segments.max(1)) * mss;
    }

    /// Whether data must leave at once however little the window is used (Linux: `forced_push`).
    fn is_pushed(&self) -> bool {
        self.bytes > self.pushed + self.largest_window / 2
    }
}

impl Sender {
    /// Whether a segment carries PSH. Who pays attention to it asks here, because segments have no room for it.
    pub(crate) fn carries_push(&self, seq: u64) -> bool {
        self.send_buffer.as_ref().is_some_and(|buffer| buffer.pushes(seq))
    }

    /// Linux: `tcp_check_space`, after an ACK or while data leaves. The writer itself is woken after an ACK only.
    pub(super) fn check_space(&mut self, now: Time) {
        let (in_flight, limits, reordering) = (self.board.in_flight(), &self.limits, self.rack.reordering);
        if let Some(buffer) = &mut self.send_buffer
            && buffer.waits
            && in_flight < limits.cwnd
        {
            buffer.expand(limits.cwnd, reordering);
            self.output.usage.stamp = now;
        }
    }

    /// An ACK was taken: what it frees may wake the writer.
    pub(super) fn on_space(&mut self, now: Time, wire: &mut impl Wire) {
        self.check_space(now);
        let una = self.board.una;
        let Some(buffer) = &mut self.send_buffer else { return };
        buffer.on_acknowledged(una);
        if buffer.waits {
            self.write_while_writeable(now, wire);
        }
    }

    /// The application writes until nothing is left, or there is no room.
    pub(super) fn write_while_writeable(&mut self, now: Time, wire: &mut impl Wire) {
        while self.is_writeable() && self.left_to_write() > 0 {
            self.write_pieces(now, wire);
        }
        // A writer that finds no room waits for it (Linux: `tcp_poll` sets `SOCK_NOSPACE`).
        let waits = self.left_to_write() > 0;
        self.with_buffer(|buffer| buffer.waits = waits);
        self.note_written(now);
    }

    fn is_writeable(&self) -> bool {
        self.send_buffer.as_ref().is_some_and(|buffer| buffer.is_writeable(self.memory()))
    }

    fn left_to_write(&self) -> u64 {
        self.send_buffer.as_ref().map_or(0, |buffer| self.stream.bytes().saturating_sub(buffer.bytes))
    }

    /// Bytes that were written and have not left.
    fn unsent(&self) -> u64 {
        let sent = self.stream.start_of(self.board.next);
        self.send_buffer.as_ref().map_or(0, |buffer| buffer.bytes.saturating_sub(sent))
    }

    fn memory(&self) -> u64 {
        let acknowledged = self.stream.start_of(self.board.una);
        self.send_buffer
            .as_ref()
            .map_or(0, |buffer| buffer.memory(buffer.bytes.saturating_sub(acknowledged), self.unsent()))
    }

    /// One write after another, until one finds no room for a single byte or nothing is left (Linux: `tcp_sendmsg_locked`).
    fn write_pieces(&mut self, now: Time, wire: &mut impl Wire) {
        let window = self.window_edge.saturating_sub(self.stream.start_of(self.board.una));
        let (mss, most) = (self.mss as u64, self.gso_max_segs as u64);
        self.with_buffer(|buffer| {
            buffer.set_piece(mss, most, window);
            buffer.waits = false;
        });
        loop {
            let mut left = self.left_to_write().min(WRITE_BYTES);
            if left == 0 {
                return;
            }
            self.check_app_limited(self.output.written());
            let before = self.bytes_written();
            let mut full = false;
            while left > 0 && !full {
                full = !self.append(&mut left, now, wire);
            }
            let wrote = self.bytes_written() > before;
            self.with_buffer(|buffer| buffer.waits = full);
            if wrote {
                self.push_end(now, full, wire);
            } else if full {
                return;
            }
        }
    }

    /// Adds to the last piece, or begins one. Returns whether there was room.
    fn append(&mut self, left: &mut u64, now: Time, wire: &mut impl Wire) -> bool {
        let memory = self.memory();
        let Some(buffer) = &mut self.send_buffer else { return false };
        if buffer.tail == 0 || buffer.tail >= buffer.piece {
            // Only here: a piece that has room is filled up however full the buffer is.
            if memory >= buffer.limit {
                return false;
            }
            buffer.tail = 0;
        }
        let more = (*left).min(buffer.piece - buffer.tail);
        buffer.tail += more;
        buffer.bytes += more;
        *left -= more;
        let (tail, is_full, is_pushed) = (buffer.tail, buffer.tail >= buffer.piece, buffer.is_pushed());
        self.admit_written();
        if is_full {
            if is_pushed {
                self.with_buffer(|buffer| buffer.pushed = buffer.bytes);
                self.write_rarely(now, Push::Normal, wire);
            } else if tail >= self.unsent() {
                self.write_rarely(now, Push::One, wire);
            }
            self.note_left();
        }
        true
    }

    /// The end of a write: everything that may leaves (Linux: `tcp_push`). Nagle holds its short end back while another one is
    /// outstanding, unless there was no room.
    fn push_end(&mut self, now: Time, full: bool, wire: &mut impl Wire) {
        self.with_buffer(|buffer| buffer.pushed = buffer.bytes);
        self.write_rarely(now, Push::Normal, wire);
        self.note_left();
        let (una, next, unsent) = (self.board.una, self.board.next, self.unsent());
        let may_leave = self.board.in_flight() < self.limits.cwnd && !self.is_paced_out(now);
        let mss = self.mss as u64;
        self.with_buffer(|buffer| {
            if (1..mss).contains(&unsent) && may_leave && (full || una >= buffer.short_end) {
                (buffer.short_end, buffer.tail) = (next, 0);
            }
        });
    }

    /// Of the last piece, no more is left than of everything.
    fn note_left(&mut self) {
        let unsent = self.unsent();
        self.with_buffer(|buffer| buffer.tail = buffer.tail.min(unsent));
    }

    /// Lets the segments leave that were written whole.
    fn admit_written(&mut self) {
        let bytes = self.bytes_written();
        let whole = bytes >= self.stream.bytes();
        self.output.admit(if whole { self.stream.segments() } else { self.stream.full_before(bytes) });
    }

    fn bytes_written(&self) -> u64 {
        self.send_buffer.as_ref().map_or(0, |buffer| buffer.bytes)
    }

    fn with_buffer(&mut self, change: impl FnOnce(&mut SendBuffer)) {
        if let Some(buffer) = &mut self.send_buffer {
            change(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const CONFIG: Config = Config {
        mss: 1448,
        unit: 1448,
        initial_cwnd: 10,
        cwnd_clamp: u32::MAX,
        max_pacing_rate: fullpipe_units::Rate::MAX,
        gso_max: Config::GSO_MAX,
        max_tcp_header: Config::MAX_TCP_HEADER,
        paced: false,
        hz: 250,
        ssthresh: fullpipe_cc::Limits::INFINITE,
    };
    const LINUX: Growth = Growth { first: 16_384, most: 4 << 20 };

    fn buffer(controller: &str) -> SendBuffer {
        SendBuffer::new(&LINUX, &CONFIG, Params::by_name(controller).as_ref())
    }

    /// `ss -tmin` showed these in a socket of Linux 6.18 whose `MAX_TCP_HEADER` is 192: tb46080 at first, tb737280 at a window of
    /// 160, tb1474560 at 320, and tb4194304 in the end.
    #[test]
    fn send_buffer_limit_is_two_windows() {
        let mut buffer = buffer("cubic");
        assert_eq!((buffer.limit, buffer.per_segment), (46_080, 2_304));
        let limits = [5, 160, 320, 100, 5_000].map(|cwnd| {
            buffer.expand(cwnd, 3);
            buffer.limit
        });
        assert_eq!(limits, [46_080, 737_280, 1_474_560, 1_474_560, 4_194_304]);
        // Three windows of BBR; and reordering counts as a window.
        assert_eq!(self::buffer("bbr1").limit, 69_120);
        let mut reordered = self::buffer("reno");
        reordered.expand(10, 299);
        assert_eq!(reordered.limit, 2 * 300 * 2_304);
    }

    /// Other kernels leave more room for headers: `ss` shows tb87040 at first with 320 bytes, as a distribution's with WLAN has.
    #[test]
    fn larger_headers_double_packet_memory() {
        let config = Config { max_tcp_header: 320, ..CONFIG };
        assert_eq!(SendBuffer::new(&LINUX, &config, None).limit, 87_040);
    }

    /// The same socket: skmem w51328 with 10 segments in flight in 5 pieces, and 31856 bytes that had not left; w1294880 with 320 in
    /// flight and 689248 left.
    #[test]
    fn piece_overhead_is_832_bytes() {
        let mut buffer = buffer("cubic");
        buffer.set_piece(1448, 65_535, 64_240);
        assert_eq!(buffer.piece, 22 * 1448, "half of the largest window");
        (1..=5).for_each(|piece| buffer.on_sent(2, 2 * piece));
        buffer.tail = 31_856;
        assert_eq!(buffer.memory(46_336, 31_856), 51_328);
        buffer.on_acknowledged(7);
        assert_eq!(buffer.memory(46_336, 31_856), 51_328 - 3 * 832);
        assert_eq!((buffer.memory(0, 0), buffer.sent.len()), (2 * 832, 2));
    }

    #[test]
    fn multi_segment_bursts_end_with_push() {
        let mut buffer = buffer("cubic");
        [(2, 2), (1, 3), (3, 6)].into_iter().for_each(|(segments, end)| buffer.on_sent(segments, end));
        let pushes = |buffer: &SendBuffer| (0..8).filter(|seq| buffer.pushes(*seq)).collect::<Vec<_>>();
        assert_eq!(pushes(&buffer), [1, 5]);
        buffer.on_acknowledged(2);
        assert_eq!(pushes(&buffer), [5]);
    }

    #[test]
    fn writer_wakes_at_one_third_free() {
        let buffer = buffer("cubic");
        assert_eq!([30_720, 30_721, 46_080].map(|memory| buffer.is_writeable(memory)), [true, false, false]);
    }

    proptest! {
        /// A buffer only grows, to its maximum at most, and a larger one is never less writeable.
        #[test]
        fn limits_grow_up_to_the_maximum(
            first in 1u64..1 << 31,
            more in 0u64..1 << 31,
            windows in prop::collection::vec((0u32..1 << 30, 0u32..=300), 1..20),
            memory in 0u64..1 << 32,
        ) {
            let growth = Growth { first, most: first + more };
            let mut buffer = SendBuffer::new(&growth, &CONFIG, None);
            let mut before = (buffer.limit, buffer.is_writeable(memory));
            for (cwnd, reordering) in windows {
                buffer.expand(cwnd, reordering);
                prop_assert!(buffer.limit >= before.0 && buffer.limit <= growth.most);
                prop_assert!(!before.1 || buffer.is_writeable(memory));
                before = (buffer.limit, buffer.is_writeable(memory));
            }
        }
    }
}
