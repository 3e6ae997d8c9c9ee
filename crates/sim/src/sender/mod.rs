//! The sending half of a TCP connection, as Linux 6.12 does it (`net/ipv4/tcp_input.c`, `tcp_output.c`, `tcp_timer.c`).
//!
//! - here: the connection's state, the order of work on an ACK (`tcp_ack`), and what it tells the controller;
//! - [`scoreboard`]: what is out, with SACK tags; [`rack`]: which of it is lost; [`rtt`]: RTT and timeout;
//! - [`recovery`]: the recovery state machine with undo; [`transmit`]: bursts, pacing, retransmissions; [`timers`].
//!
//! PRR lives with the controllers (`fullpipe_cc`), because they own the window.

pub(crate) mod rack;
mod recovery;
pub(crate) mod rtt;
pub(crate) mod scoreboard;
mod timers;
mod transmit;

use fullpipe_cc::delivery::Sampler;
use fullpipe_cc::{
    Ack, Any, CaState, Config, Connection, Controller, Limits, Lost, Params, RateSample, Snapshot,
};
use fullpipe_units::{Duration, Rate, Time};

use crate::clock::Jiffies;
use crate::packet::{Acknowledgement, Segment};
use crate::workload::Stream;
use rack::Rack;
use recovery::Recovery;
use rtt::RttEstimator;
use scoreboard::Scoreboard;
use timers::Timers;
use transmit::Output;

/// Where a sender's segments go.
pub(crate) trait Wire {
    /// Hands a segment to the path at `now`.
    fn send(&mut self, now: Time, segment: Segment);
}

/// What a sender is set to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderConfig {
    pub(crate) flow: u32,
    pub(crate) controller: Config,
    pub(crate) params: Params,
    /// Linux `tcp_wmem` maximum, bytes of memory.
    pub(crate) send_buffer: u64,
}

/// What a sender counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    pub(crate) segments_sent: u64,
    pub(crate) retransmits: u64,
    pub(crate) timeouts: u64,
    pub(crate) undos: u64,
}

/// A sender with an established connection.
#[derive(Debug)]
pub(crate) struct Sender {
    flow: u32,
    config: Config,
    controller: Any,
    /// The controller's word after the last event.
    limits: Limits,
    board: Scoreboard,
    sampler: Sampler,
    rtt: RttEstimator,
    min_rtt: MinRtt,
    rack: Rack,
    recovery: Recovery,
    output: Output,
    timers: Timers,
    stream: Stream,
    /// First byte past the receiver's window.
    window_edge: u64,
    /// Segments marked lost so far, each time anew (Linux: `tp->lost`).
    lost: u64,
    /// End of the highest SACKed segment (Linux: `highest_sack`).
    highest_sacked: u64,
    last_rate: Rate,
    pub(crate) counters: Counters,
}

/// What an ACK did (Linux: `FLAG_*` in `tcp_input.c`).
#[derive(Clone, Copy, Debug, Default)]
struct Flags {
    una_advanced: bool,
    window_updated: bool,
    data_acked: bool,
    data_sacked: bool,
    retransmitted_acked: bool,
    original_delivered: bool,
    duplicate_reported: bool,
    duplicate_of_probe: bool,
    retransmission_lost: bool,
    maybe_delayed: bool,
    set_timer: bool,
}

/// RTT evidence in an ACK: send times of the first and last segment never retransmitted.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    acked: Option<(u32, u32)>,
    sacked: Option<(u32, u32)>,
}

fn widen(stamps: &mut Option<(u32, u32)>, sent_us: u32) {
    *stamps = Some((stamps.map_or(sent_us, |(first, _)| first), sent_us));
}

impl Sender {
    /// A connection whose SYN was answered after `rtt` (`None` if the SYN had to be repeated).
    pub(crate) fn establish(
        config: &SenderConfig,
        stream: Stream,
        now: Time,
        rtt: Option<Duration>,
        window_edge: u64,
    ) -> Sender {
        let mut estimator = RttEstimator::new();
        let mut min_rtt = MinRtt::new();
        if let Some(rtt) = rtt {
            let rtt_us = (rtt.as_micros() as u32).max(1);
            estimator.sample(rtt_us, 0, 0);
            min_rtt.sample(rtt_us, now);
        }
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
        let controller = Any::new(&config.params, &config.controller, &connection);
        let limits = controller.limits();
        let mut sender = Sender {
            flow: config.flow,
            config: config.controller,
            controller,
            limits,
            board: Scoreboard::new(),
            sampler,
            rtt: estimator,
            min_rtt,
            rack: Rack::new(),
            recovery: Recovery::new(),
            output: Output::new(now, config.send_buffer, &config.controller),
            timers: Timers::new(),
            stream,
            window_edge,
            lost: 0,
            highest_sacked: 0,
            last_rate: Rate::ZERO,
            counters: Counters::default(),
        };
        sender.update_limits();
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

    /// Recovery state.
    pub(crate) fn state(&self) -> CaState {
        self.recovery.state
    }

    /// Segments in flight.
    pub(crate) fn in_flight(&self) -> u32 {
        self.board.in_flight()
    }

    /// The last delivery-rate sample that Linux would show as `tcpi_delivery_rate`, payload.
    pub(crate) fn delivery_rate(&self) -> Rate {
        self.last_rate
    }

    /// Payload rate at which the sender may send, paced or not (Linux: `sk_pacing_rate`).
    pub(crate) fn pacing_rate(&self) -> Rate {
        self.output.rate
    }

    /// Whether segments leave paced.
    pub(crate) fn is_paced(&self) -> bool {
        self.output.paced
    }

    /// The stream ends with what was already sent.
    pub(crate) fn stop(&mut self) {
        self.stream.end_at(self.board.next);
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

    /// Sends what may be sent (first write, or more data from the application).
    pub(crate) fn push(&mut self, now: Time, wire: &mut impl Wire) {
        self.write(now, transmit::Push::Normal, wire);
    }

    /// An ACK arrived (Linux: `tcp_ack`, then `tcp_data_snd_check`).
    pub(crate) fn on_ack(&mut self, now: Time, ack: &Acknowledgement, random: u32, wire: &mut impl Wire) {
        debug_assert!(ack.ack <= self.board.next, "an ACK for what was never sent");
        let now_us = now.as_micros() as u32;
        let prior_una = self.board.una;
        let prior_in_flight = self.board.in_flight();
        let prior_packets = self.board.packets_out();
        let prior_delivered = self.sampler.delivered();
        let prior_lost = self.lost;
        let old = ack.ack < prior_una;

        let mut flags = Flags { una_advanced: ack.ack > prior_una, ..Flags::default() };
        if flags.una_advanced {
            self.timers.retransmits = 0;
        }
        if ack.window_edge > self.window_edge {
            self.window_edge = ack.window_edge;
            flags.window_updated = true;
        }
        let mut stamps = Stamps::default();
        let mut basis = None;
        let prior_highest = if self.board.sacked_out > 0 { self.highest_sacked } else { prior_una };
        let prior_sacked = self.board.sacked_out;
        self.sampler.begin_ack();
        if ack.blocks > 0 {
            self.take_sack_blocks(now, ack, prior_highest, &mut flags, &mut stamps, &mut basis);
        }
        let mut rtt = None;
        if !old && prior_packets > 0 {
            self.take_cumulative(now, ack, prior_highest, &mut flags, &mut stamps, &mut basis);
            let lone = self.board.una - prior_una == 1 && prior_sacked == 0 && !flags.data_sacked;
            flags.maybe_delayed = lone && self.stream.bytes_of(prior_una) < self.config.mss;
            rtt = self.take_rtt(now, ack, &mut flags, &stamps);
            self.rack.update_window(basis, self.sampler.delivered() as u32);
            self.on_probe_acknowledged(now, ack.ack, &flags);
        }

        let dubious = flags.data_sacked
            || flags.duplicate_reported
            || !(flags.data_acked || flags.window_updated)
            || self.recovery.state != CaState::Open;
        let mut retransmit = recovery::Retransmit::None;
        if dubious && (prior_packets > 0 || flags.duplicate_reported) {
            retransmit = self.recover(now, ack, prior_una, &mut flags);
        }
        if !old && prior_packets > 0 {
            if flags.set_timer {
                self.set_timer(now);
            }
            let newly_delivered = (self.sampler.delivered() - prior_delivered) as u32;
            let sample = self.sampler.end_ack(now, newly_delivered, self.min_rtt.get(), self.lost);
            self.note_rate(&sample);
            let event = Ack {
                connection: self.connection(now),
                prior_in_flight,
                newly_delivered,
                newly_lost: (self.lost - prior_lost) as u32,
                newly_acked: (self.board.una - prior_una) as u32,
                rtt,
                maybe_delayed: flags.maybe_delayed,
                una_advanced: flags.una_advanced,
                snd_una: self.board.una,
                snd_nxt: self.board.next,
                sample,
                cwnd_limited: self.output.usage.cwnd_limited,
                max_packets_out: self.output.usage.max_packets_out,
                may_raise_cwnd: if self.rack.reordering > rack::REORDERING {
                    flags.data_acked || flags.data_sacked
                } else {
                    flags.data_acked
                },
                newly_ce: 0,
                random,
            };
            self.controller.on_ack(&event);
            self.update_limits();
            if self.limits.mark_app_limited {
                self.sampler.mark_app_limited(self.board.in_flight());
            }
        }
        debug_assert!(now_us == now.as_micros() as u32);
        match retransmit {
            recovery::Retransmit::None => {}
            recovery::Retransmit::Lost => self.retransmit_lost(now, wire),
            recovery::Retransmit::New => {
                self.write(now, transmit::Push::Normal, wire);
                if self.board.next <= self.recovery.high_seq {
                    self.recovery.frto = false;
                    self.retransmit_lost(now, wire);
                }
            }
        }
        self.write(now, transmit::Push::Normal, wire);
    }

    /// Tags what the blocks report (Linux: `tcp_sacktag_write_queue`).
    fn take_sack_blocks(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        prior_highest: u64,
        flags: &mut Flags,
        stamps: &mut Stamps,
        basis: &mut Option<u32>,
    ) {
        let now_us = now.as_micros() as u32;
        if self.board.sacked_out == 0 {
            self.highest_sacked = self.board.una;
        }
        let mut reordered = u64::MAX;
        let mut newly = 0;
        for (index, &(start, end)) in ack.sack[..ack.blocks as usize].iter().enumerate() {
            if index == 0 && ack.dsack {
                self.on_duplicate_report(now, start, end, flags);
                continue;
            }
            let end = end.min(self.board.next);
            let mut from = start.max(self.board.una);
            while let Some(seq) = self.board.next_unsacked(from, end) {
                from = seq + 1;
                let tx = *self.board.tx(seq);
                let ever = self.board.ever_retransmitted.get(seq);
                self.rack.on_delivered(seq, tx.sent_us, now_us, ever, self.min_rtt.micros());
                if self.board.retransmitted.get(seq) {
                    if self.board.lost.get(seq) {
                        self.board.lost.clear(seq);
                        self.board.lost_out -= 1;
                        self.board.retransmitted.clear(seq);
                        self.board.retrans_out -= 1;
                    }
                } else {
                    if !ever {
                        if seq < prior_highest.max(self.highest_sacked) {
                            reordered = reordered.min(seq);
                        }
                        flags.original_delivered |= seq < self.recovery.high_seq;
                        widen(&mut stamps.sacked, tx.sent_us);
                    }
                    if self.board.lost.get(seq) {
                        self.board.lost.clear(seq);
                        self.board.lost_out -= 1;
                    }
                }
                self.board.sacked.set(seq);
                self.board.sacked_out += 1;
                newly += 1;
                self.highest_sacked = self.highest_sacked.max(seq + 1);
                flags.data_sacked = true;
                self.sampler.on_delivered(&tx, seq, ever);
                *basis = Some(tx.delivered);
            }
        }
        if newly > 0 {
            self.sampler.count_delivered(now, newly);
        }
        if reordered != u64::MAX && (self.recovery.state != CaState::Loss || self.recovery.undo.is_some()) {
            self.rack.on_reordering(reordered, self.highest_sacked);
        }
    }

    /// A block reported a segment that had arrived before (Linux: `tcp_check_dsack`).
    fn on_duplicate_report(&mut self, now: Time, start: u64, end: u64, flags: &mut Flags) {
        let segments = (end - start) as u32;
        self.recovery.duplicates += segments as u64;
        if self.recovery.duplicates > self.counters.retransmits {
            return;
        }
        if segments == 1 && self.timers.probe_end == Some(end) {
            flags.duplicate_of_probe = true;
        } else if self.rack.reordering_seen {
            self.rack.dsack_seen = true;
        }
        flags.duplicate_reported = true;
        self.sampler.count_delivered(now, segments);
        if let Some(marker) = self.recovery.undo
            && self.recovery.undo_retransmissions > 0
            && end > marker
        {
            self.recovery.undo_retransmissions =
                (self.recovery.undo_retransmissions - segments as i64).max(0);
        }
    }

    /// Takes everything below `ack` off the queue (Linux: `tcp_clean_rtx_queue`).
    #[inline]
    fn take_cumulative(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        prior_highest: u64,
        flags: &mut Flags,
        stamps: &mut Stamps,
        basis: &mut Option<u32>,
    ) {
        if ack.ack <= self.board.una {
            return;
        }
        flags.data_acked = true;
        flags.set_timer = true;
        let now_us = now.as_micros() as u32;
        if self.board.is_clean() {
            // Nothing was SACKed, lost or retransmitted: the last segment is the newest, and it alone matters.
            let (first, last) = (self.board.una, ack.ack - 1);
            let tx = *self.board.tx(last);
            stamps.acked = Some((self.board.tx(first).sent_us, tx.sent_us));
            flags.original_delivered |= first < self.recovery.high_seq;
            self.rack.on_delivered(last, tx.sent_us, now_us, false, self.min_rtt.micros());
            self.sampler.count_delivered(now, (ack.ack - first) as u32);
            self.sampler.on_delivered(&tx, last, false);
            *basis = Some(tx.delivered);
            self.board.una = ack.ack;
            return;
        }
        let mut reordered = u64::MAX;
        let mut newly = 0;
        while self.board.una < ack.ack {
            let seq = self.board.una;
            let tx = *self.board.tx(seq);
            let ever = self.board.ever_retransmitted.get(seq);
            if ever {
                flags.retransmitted_acked = true;
            } else if !self.board.sacked.get(seq) {
                widen(&mut stamps.acked, tx.sent_us);
                reordered = reordered.min(seq);
                flags.original_delivered |= seq < self.recovery.high_seq;
            }
            if !self.board.sacked.get(seq) {
                newly += 1;
                // An echo from before the retransmission: it was the original that arrived.
                let spurious = ever && recovery::echoes_before(ack.echo_us, tx.sent_us);
                if !spurious {
                    self.rack.on_delivered(seq, tx.sent_us, now_us, ever, self.min_rtt.micros());
                }
                self.sampler.on_delivered(&tx, seq, ever);
                *basis = Some(tx.delivered);
            }
            self.board.pop_tagged();
        }
        if newly > 0 {
            self.sampler.count_delivered(now, newly);
        }
        if reordered < prior_highest {
            self.rack.on_reordering(reordered, self.highest_sacked.max(prior_highest));
        }
    }

    /// Takes RTT samples; returns the controller's (Linux: `tcp_ack_update_rtt`).
    #[inline]
    fn take_rtt(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        flags: &mut Flags,
        stamps: &Stamps,
    ) -> Option<Duration> {
        let now_us = now.as_micros() as u32;
        let since = |stamp: u32| now_us.wrapping_sub(stamp);
        let (mut sequence, mut control) = (None, None);
        if let Some((first, last)) = stamps.acked
            && !flags.retransmitted_acked
        {
            sequence = Some(since(first));
            control = Some(since(last));
        }
        let mut sacked = None;
        if let Some((first, last)) = stamps.sacked {
            sacked = Some(since(first));
            control = Some(since(last));
        }
        sequence = sequence.or(sacked);
        if sequence.is_none() && flags.data_acked {
            // Timestamps count milliseconds (RFC 7323; Linux: `tcp_rtt_tsopt_us`).
            let millis = (now_us / 1000).wrapping_sub(ack.echo_us / 1000).max(1);
            sequence = Some(millis * 1000);
            control = sequence;
        }
        let sample = sequence?;
        if let Some(control) = control
            && !(flags.maybe_delayed && control > self.min_rtt.micros())
        {
            self.min_rtt.sample(control.max(1), now);
        }
        self.rtt.sample(sample, self.board.una, self.board.next);
        if !flags.data_acked
            && let Some(sacked) = sacked
            && self.board.packets_out() > 0
            && sacked > since(self.board.tx(self.board.una).sent_us)
        {
            // The head left before what was just SACKed: only then may the timer restart.
            flags.set_timer = true;
        }
        control.map(|micros| Duration::from_micros(micros as u64))
    }

    /// The state that the controller sees.
    #[inline]
    fn connection(&self, now: Time) -> Connection {
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
        }
    }

    /// Detects losses, counts them and reports them to the controller. Returns whether to look again, and when.
    fn detect_losses(&mut self, now: Time) -> Option<u32> {
        let at = rack::Moment {
            now_us: now.as_micros() as u32,
            state: self.recovery.state,
            min_rtt_us: self.min_rtt.micros(),
            srtt_us: self.rtt.srtt_x8() >> 3,
        };
        let mut runs = LossRuns::new(&mut self.controller, self.lost);
        let detection = self.rack.detect(&mut self.board, at, |board, seq| runs.add(board, seq));
        let (lost, lowest) = runs.finish();
        self.lost = lost;
        self.output.retransmit_from = self.output.retransmit_from.min(lowest);
        detection.again_after_us
    }

    #[inline]
    fn update_limits(&mut self) {
        self.limits = self.controller.limits();
        self.output.rate = self.limits.pacing_rate;
    }

    #[inline]
    fn note_rate(&mut self, sample: &RateSample) {
        // Linux keeps the last sample that was not application-limited or was higher; the flag matters only to people.
        if let (Some(delivered), Some(interval)) = (sample.delivered, sample.interval)
            && interval > Duration::ZERO
        {
            let bytes = delivered as u64 * self.config.mss as u64;
            self.last_rate = Rate::from_bits_per_sec(bytes * 8 * 1_000_000 / interval.as_micros().max(1));
        }
    }
}

/// Groups newly lost segments that left together into runs for the controller.
struct LossRuns<'a> {
    controller: &'a mut Any,
    lost: u64,
    run: Option<(Lost, u32)>,
    previous: u64,
    lowest: u64,
}

impl LossRuns<'_> {
    fn new(controller: &mut Any, lost: u64) -> LossRuns<'_> {
        LossRuns { controller, lost, run: None, previous: u64::MAX, lowest: u64::MAX }
    }

    fn add(&mut self, board: &Scoreboard, seq: u64) {
        let tx = board.tx(seq);
        self.lost += 1;
        let adjacent = self.previous != u64::MAX && seq == self.previous + 1;
        self.previous = seq;
        self.lowest = self.lowest.min(seq);
        if let Some((run, sent_us)) = &mut self.run
            && adjacent
            && *sent_us == tx.sent_us
        {
            run.segments += 1;
            run.lost = self.lost;
            return;
        }
        self.flush();
        let run = Lost {
            segments: 1,
            new_range: !adjacent,
            tx_in_flight: tx.in_flight_and_app_limited & 0x7fff_ffff,
            // The segment keeps the low 32 bits of the count.
            tx_lost: self.lost - (self.lost as u32).wrapping_sub(tx.lost) as u64,
            lost: self.lost,
            app_limited: tx.in_flight_and_app_limited >> 31 != 0,
        };
        self.run = Some((run, tx.sent_us));
    }

    fn flush(&mut self) {
        if let Some((run, _)) = self.run.take() {
            self.controller.on_lost(&run);
        }
    }

    /// The count of lost segments, and the lowest just lost.
    fn finish(mut self) -> (u64, u64) {
        self.flush();
        (self.lost, self.lowest)
    }
}

/// Minimum RTT over the last 300 s (Linux: `tcp_min_rtt`, `net.ipv4.tcp_min_rtt_wlen`).
#[derive(Debug)]
struct MinRtt {
    micros: u32,
    since: Time,
}

impl MinRtt {
    const WINDOW: Duration = Duration::from_secs(300);

    fn new() -> MinRtt {
        MinRtt { micros: u32::MAX, since: Time::ZERO }
    }

    #[inline]
    fn sample(&mut self, micros: u32, now: Time) {
        if micros <= self.micros || now.saturating_since(self.since) > Self::WINDOW {
            self.micros = micros;
            self.since = now;
        }
    }

    #[inline]
    fn micros(&self) -> u32 {
        self.micros
    }

    #[inline]
    fn get(&self) -> Duration {
        if self.micros == u32::MAX { Duration::MAX } else { Duration::from_micros(self.micros as u64) }
    }
}
