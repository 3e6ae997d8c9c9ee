//! The sending half of a TCP connection, as in Linux 6.12 (`net/ipv4/tcp_input.c`, `tcp_output.c`, `tcp_timer.c`).
//!
//! - here: the connection's state, and what is reported to the controller; [`acknowledge`]: an ACK, step by step;
//! - [`scoreboard`]: outstanding segments, with SACK tags; [`rack`]: which are lost; [`losses`]: what the controller
//!   receives them; [`rtt`]: RTT and timeout;
//! - [`marking`]: ECN; [`recovery`]: the recovery state machine with undo;
//! - [`transmit`]: bursts, pacing, retransmissions; [`timers`]; [`send_buffer`]: that of Linux hosts, and its writer;
//! - [`metrics`]: what connections leave for the next.
//!
//! PRR lives with the controllers (`fullpipe_cc`), because they own the window.

mod acknowledge;
mod flags;
mod losses;
mod marking;
pub(crate) mod metrics;
pub(crate) mod rack;
mod recovery;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
pub(crate) mod send_buffer;
mod timers;
mod transmit;

use std::num::NonZeroU16;

use fullpipe_cc::delivery::Sampler;
use fullpipe_cc::{Any, CaState, Config, Connection, Controller, Limits, Params, Snapshot};
use fullpipe_path::Ecn;
use fullpipe_path::prefetch::prefetch_first;
use fullpipe_scenario::spec::EcnUse;
use fullpipe_units::{Bytes, Duration, Rate, Time};

use crate::clock::Jiffies;
use crate::hosts::Latency;
use crate::packet::{Acknowledgement, SACK_BLOCKS, Segment, widened};
use crate::plug::{Held, Maker, Plugged, hold};
use crate::workload::ByteStream;
use marking::Marking;
use metrics::Beginning;
use rack::Rack;
use recovery::Recovery;
use rtt::{MinRtt, RttEstimator};
use scoreboard::Scoreboard;
use send_buffer::{Growth, SendBuffer};
use timers::Timers;
use transmit::Output;

/// Where a sender's segments go.
pub(crate) trait Wire {
    /// Hands a segment to the path at `now`, in a packet with this codepoint.
    fn send(&mut self, now: Time, flow: u32, segment: Segment, codepoint: Ecn);

    /// Hands over `count` segments with as much payload each, `first` and those after it.
    fn send_run(&mut self, now: Time, flow: u32, first: Segment, count: u32);

    /// The same over a connection that has negotiated ECN.
    fn send_markable_run(&mut self, now: Time, flow: u32, run: MarkableRun);
}

/// Segments with as much payload each over a connection that has negotiated ECN.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MarkableRun {
    pub(crate) first: Segment,
    pub(crate) count: u32,
    /// The first tells the receiver that the window was reduced.
    pub(crate) cwr: bool,
    /// The codepoint of all of them.
    pub(crate) codepoint: Ecn,
}

/// The settings of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SenderConfig {
    pub(crate) flow: u32,
    pub(crate) controller: Config,
    /// What the built-in controller runs with; `None` for one that somebody brings.
    pub(crate) params: Option<Params>,
    /// What the connection does if its handshake negotiates ECN.
    pub(crate) ecn: EcnUse,
    /// The most segments of a burst (Linux: `sk_gso_max_segs`).
    pub(crate) gso_max_segs: u16,
    /// Segments of a full piece of the send queue, whose rest does not wait for a larger window; none if there is one piece.
    pub(crate) full_piece: Option<NonZeroU16>,
    /// Linux `tcp_wmem` maximum, bytes of memory.
    pub(crate) send_buffer: u64,
    /// How it grows; `None` if it has its full size from the start.
    pub(crate) growth: Option<Growth>,
    /// Whether it discards ACKs with old timestamps.
    pub(crate) checks_stamps: bool,
    /// Seed of the random numbers that the controller is given.
    pub(crate) random_seed: u64,
    /// What makes its pacing timer late, if anything does.
    pub(crate) pacing_timer: Option<Latency>,
    /// What earlier connections left.
    pub(crate) beginning: Beginning,
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) segments_sent: u64,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) undos: u64,
}

/// A sender with an established connection. Its fields are in the order in which events need them, see
/// [`Flow`](crate::flow::Flow): first what sending needs, then what an ACK needs too.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Sender {
    // draft 4.1.2.1.1#669e72: nothing waits below the sender; `board` has the counts of lost and retransmitted segments
    board: Scoreboard,
    output: Output,
    /// The controller's limits after the last event.
    limits: Limits,
    timers: Timers,
    rtt: RttEstimator,
    min_rtt: MinRtt,
    stream: ByteStream,
    /// First byte past the receiver's window, and the first segment that is not completely within it.
    window_edge: u64,
    window_end: u64,
    /// Segments marked lost so far, counted each time (Linux: `tp->lost`).
    lost: u64,
    pub(crate) counters: Counters,
    flow: u32,
    mss: u32,
    gso_max: u32,
    gso_max_segs: u16,
    full_piece: Option<NonZeroU16>,
    /// Latest stamp of the receiver, to be echoed (Linux: `ts_recent`).
    peer_stamp_ms: u32,
    /// An ACK is being processed, not a timer.
    in_ack: bool,
    checks_stamps: bool,
    marking: Marking,
    sampler: Sampler,
    recovery: Recovery,
    /// Sending needs its tag, which comes first.
    controller: Held,
    rack: Rack,
    /// The flow's own random stream.
    random: RandomStream,
    /// The last valid delivery-rate sample: segments, and microseconds.
    last_sample: (u32, u32),
    /// End of the highest SACKed segment (Linux: `highest_sack`).
    highest_sacked: u64,
    /// The blocks that the last SACK reported: everything in them is SACKed, and need not be examined again (Linux:
    /// `recv_sack_cache`).
    known_blocks: [(u64, u64); SACK_BLOCKS],
    /// How often marks reduced the window.
    pub(crate) mark_reductions: u64,
    /// That of Linux hosts; an ideal one's size never changes ([`Output`]).
    send_buffer: Option<Box<SendBuffer>>,
    /// Since when everything that the application has so far is in the send buffer; never while it waits for room.
    all_written: Time,
}

/// What an application has written into its send buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Written {
    pub(crate) bytes: u64,
    /// When it wrote the last byte of all that it ever sends.
    pub(crate) all_at: Option<Time>,
}

/// The part of a [`Sender`] that a pacing timer needs.
pub(crate) const SENDING: usize = std::mem::offset_of!(Sender, controller) + 1;

impl Sender {
    /// A connection whose SYN was answered after `rtt`. Without ECN where the answer does not agree to it.
    pub(crate) fn establish(
        config: &SenderConfig,
        own: Option<Maker>,
        stream: ByteStream,
        now: Time,
        rtt: Duration,
        answer: &Acknowledgement,
    ) -> Sender {
        let mut estimator = RttEstimator::new();
        let mut min_rtt = MinRtt::new();
        let rtt_us = (rtt.as_micros() as u32).max(1);
        estimator.sample(rtt_us, 0, 0);
        min_rtt.sample(rtt_us, now);
        // The SYN counts as delivered, and the first write finds nothing queued, so Linux marks it application-limited.
        let mut sampler = Sampler::resume(now, 1);
        sampler.mark_app_limited(0);
        let connection = Connection {
            now,
            jiffies: Jiffies::at(now).as_u32(),
            delivered: sampler.delivered(),
            delivered_time: now,
            srtt: estimator.srtt(),
            min_rtt: min_rtt.get(),
            departure: now,
            app_limited: true,
            ..Connection::default()
        };
        let ecn = if answer.echoes() { config.ecn } else { EcnUse::None };
        let params =
            config.params.map(|params| if ecn == EcnUse::None { params.without_ecn() } else { params });
        let controller = hold(match (own, &params) {
            (Some(Maker(make)), _) => Plugged::Own(make(&config.controller, &connection)),
            (None, Some(params)) => Plugged::BuiltIn(Any::new(params, &config.controller, &connection)),
            (None, None) => unreachable!("a run does not begin without its controllers"),
        });
        let limits = controller.limits();
        let mut sender = Sender {
            flow: config.flow,
            mss: config.controller.mss,
            gso_max: config.controller.gso_max,
            gso_max_segs: config.gso_max_segs,
            full_piece: config.full_piece,
            controller,
            limits,
            board: Scoreboard::new(),
            sampler,
            rtt: estimator,
            min_rtt,
            rack: Rack::new(now.as_micros() as u32),
            recovery: Recovery::new(),
            output: Output::new(now, config),
            timers: Timers::new(),
            stream,
            window_edge: answer.window_edge,
            window_end: stream.full_before(answer.window_edge),
            peer_stamp_ms: widened(now, answer.stamp_ms),
            lost: 0,
            highest_sacked: 0,
            known_blocks: [(0, 0); SACK_BLOCKS],
            in_ack: false,
            checks_stamps: config.checks_stamps,
            marking: Marking::new(ecn),
            mark_reductions: 0,
            random: RandomStream(config.random_seed),
            last_sample: (0, 0),
            counters: Counters::default(),
            send_buffer: None,
            all_written: Time::NEVER,
        };
        if let Some(growth) = &config.growth {
            let buffer = SendBuffer::new(growth, &config.controller, config.params.as_ref());
            sender.send_buffer = Some(Box::new(buffer));
            sender.output.grows = true;
            sender.output.admit(0);
        }
        sender.rtt.rto_us = config.beginning.rto_us.unwrap_or(sender.rtt.rto_us);
        sender.rack.reordering = config.beginning.reordering.unwrap_or(sender.rack.reordering);
        sender.update_limits();
        sender.note_written(now);
        sender
    }

    /// Smoothed RTT; zero before the first sample.
    #[inline]
    pub(crate) fn srtt(&self) -> Duration {
        self.rtt.srtt()
    }

    /// Windowed minimum RTT; [`Duration::MAX`] before the first sample.
    pub(crate) fn min_rtt(&self) -> Duration {
        self.min_rtt.get()
    }

    /// The controller's limits.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The controller's beliefs.
    pub(crate) fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }

    /// The controller itself.
    #[cfg(test)]
    pub(crate) fn controller(&self) -> &Plugged {
        #[cfg(debug_assertions)]
        return self.controller.controller();
        #[cfg(not(debug_assertions))]
        &self.controller
    }

    /// Recovery state.
    pub(crate) fn state(&self) -> CaState {
        self.recovery.state
    }

    /// Segments known to be delivered so far; the SYN counts as one.
    pub(crate) fn delivered_segments(&self) -> u64 {
        self.sampler.delivered()
    }

    /// Segments marked lost so far, counted each time.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// The segments that are out.
    pub(crate) fn board(&self) -> &Scoreboard {
        &self.board
    }

    /// Segments in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// The last delivery-rate sample that Linux would show as `tcpi_delivery_rate`, payload.
    pub(crate) fn delivery_rate(&self) -> Rate {
        let (segments, micros) = self.last_sample;
        let bytes = segments as u64 * self.mss as u64;
        Rate::from_bits_per_sec(bytes * 8 * 1_000_000 / micros.max(1) as u64)
    }

    /// Payload rate at which the sender may send, paced or not (Linux: `sk_pacing_rate`).
    pub(crate) fn pacing_rate(&self) -> Rate {
        self.output.rate
    }

    /// Whether segments leave paced.
    pub(crate) fn is_paced(&self) -> bool {
        self.output.paced
    }

    /// The stream ends with the data already sent.
    pub(crate) fn stop(&mut self) {
        self.stream.end_at(self.board.next);
        let bytes = self.stream.bytes();
        if let Some(buffer) = &mut self.send_buffer {
            buffer.stop(bytes);
        }
    }

    /// A hint: this ACK will arrive soon.
    #[inline]
    pub(crate) fn prefetch_window(&self, ack: &Acknowledgement) {
        self.board.prefetch_ends();
        if ack.blocks() == 0 {
            self.board.prefetch(ack.ack);
        } else {
            // The first block is the one that changed last; behind the highest, losses are searched for.
            let sack = ack.sack();
            self.board.prefetch(sack[0].1 - 1);
            sack.iter().for_each(|block| self.board.prefetch(block.1));
            self.rack.prefetch(&self.board);
        }
    }

    /// A hint: the sender will send before long.
    #[inline]
    pub(crate) fn prefetch_sending(sender: &Option<Sender>) {
        prefetch_first(sender, SENDING);
    }

    /// A hint: it will do so soon, and has been fetched.
    #[inline]
    pub(crate) fn prefetch_ends(&self) {
        self.board.prefetch_ends();
    }

    /// A hint: events of all kinds will follow. Not every controller is as large as the largest.
    #[inline(always)]
    pub(crate) fn prefetch_events(sender: &Option<Sender>) {
        const CONTROLLER: usize = std::mem::offset_of!(Sender, controller);
        prefetch_first(sender, CONTROLLER + 128);
    }

    /// A hint: events of all kinds will follow.
    #[inline(always)]
    pub(crate) fn prefetch_windows(&self) {
        self.board.prefetch_window();
        self.rack.prefetch(&self.board);
    }

    /// When the sender next has something to do by itself.
    #[inline]
    pub(crate) fn timer(&self) -> Time {
        self.timers.due().min(self.output.wake)
    }

    /// A time from [`Sender::timer`] has come.
    pub(crate) fn on_timer(&mut self, now: Time, wire: &mut impl Wire) {
        if self.output.wake <= now {
            self.output.wake = Time::NEVER;
            self.on_pacing_timer(now, wire);
        }
        if self.timers.due() <= now {
            self.on_timeout(now, wire);
        }
    }

    /// The stream that the application has written, as far as known.
    pub(crate) fn stream(&self) -> &ByteStream {
        &self.stream
    }

    /// Whether everything that the application will ever send has been acknowledged; `segments` is how long its stream will have
    /// become.
    pub(crate) fn is_done(&self, segments: u64) -> bool {
        self.board.una >= self.stream.segments() && self.stream.segments() >= segments
    }

    /// What the connection leaves if it ends now.
    pub(crate) fn ends(&self) -> metrics::Ended {
        metrics::Ended {
            backed_off: self.timers.retransmits > 0,
            srtt_x8: self.rtt.srtt_x8(),
            mdev_x4: self.rtt.mdev_x4(),
            cwnd: self.limits.cwnd,
            ssthresh: self.limits.ssthresh,
            state: self.recovery.state,
            reordering: self.rack.reordering,
        }
    }

    /// What the application has written; `segments` is how long its stream will have become.
    pub(crate) fn written(&self, segments: u64) -> Written {
        let whole = self.is_all_written();
        Written {
            bytes: match &self.send_buffer {
                Some(buffer) => buffer.bytes(),
                None if whole => self.stream.bytes(),
                None => self.stream.start_of(self.output.written()),
            },
            all_at: (whole && self.stream.segments() >= segments).then_some(self.all_written),
        }
    }

    fn is_all_written(&self) -> bool {
        match &self.send_buffer {
            Some(buffer) => buffer.bytes() >= self.stream.bytes(),
            None => self.stream.segments() <= self.output.written(),
        }
    }

    /// Notes when the application has no longer anything to write.
    fn note_written(&mut self, now: Time) {
        let whole = self.is_all_written();
        self.all_written = if whole { self.all_written.min(now) } else { Time::NEVER };
    }

    /// The application has more to send.
    pub(crate) fn on_written(&mut self, now: Time, bytes: Bytes, wire: &mut impl Wire) {
        if self.output.grows {
            return self.write_more(now, bytes, wire);
        }
        let before = self.stream.segments().min(self.output.written());
        if self.stream.segments() <= self.output.written() {
            // It was not waiting for room: the space of data acknowledged meanwhile is free.
            self.output.fill(self.board.una);
        }
        self.stream.extend(bytes);
        self.all_written = Time::NEVER;
        self.note_written(now);
        self.window_end = self.stream.full_before(self.window_edge);
        self.send_written(now, before, wire);
    }

    /// The same of a buffer that grows: the application writes as far as there is room.
    fn write_more(&mut self, now: Time, bytes: Bytes, wire: &mut impl Wire) {
        self.stream.extend(bytes);
        self.window_end = self.stream.full_before(self.window_edge);
        self.all_written = Time::NEVER;
        self.write_while_writeable(now, wire);
    }

    /// Sends all data that may be sent.
    pub(crate) fn push(&mut self, now: Time, wire: &mut impl Wire) {
        if self.output.grows {
            return self.write_while_writeable(now, wire);
        }
        self.write_rarely(now, transmit::Push::Normal, wire);
    }

    /// End of the highest SACKed segment, `una` when none is (Linux: `tcp_highest_sack_seq`).
    #[inline]
    fn highest_sacked(&self) -> u64 {
        if self.board.sacked_out > 0 { self.highest_sacked } else { self.board.una }
    }

    /// The state that the controller sees.
    #[inline]
    fn connection(&mut self, now: Time) -> Connection {
        Connection {
            now,
            jiffies: Jiffies::at(now).as_u32(),
            delivered: self.sampler.delivered(),
            delivered_time: self.sampler.delivered_time(),
            lost: self.lost,
            packets_out: self.board.packets_out(),
            in_flight: self.board.in_flight(),
            srtt: self.rtt.srtt(),
            min_rtt: self.min_rtt.get(),
            departure: self.output.departure,
            state: self.recovery.state,
            app_limited: self.sampler.app_limited(),
            random: self.random.draw(),
        }
    }

    #[inline]
    fn update_limits(&mut self) {
        self.take_limits(self.controller.limits());
    }

    #[inline]
    fn take_limits(&mut self, limits: Limits) {
        #[cfg(debug_assertions)]
        self.controller.verdict().expect("the sender reports events in the documented order");
        self.limits = limits;
        self.output.rate = limits.pacing_rate;
    }
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
#[derive(Debug)]
struct RandomStream(u64);

impl RandomStream {
    #[inline]
    fn draw(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (fullpipe_path::mix(self.0) >> 32) as u32
    }
}
