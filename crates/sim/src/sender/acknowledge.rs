//! An ACK, step by step (Linux 6.12 `tcp_ack` in `net/ipv4/tcp_input.c`): what it SACKs, what it acknowledges, the RTT and the
//! delivery rate it measures, the losses it reveals, the controller's reaction, and what may then be sent.

use fullpipe_cc::{Ack, CaState, CeMarks, Controller, RateSample, RttSample};
use fullpipe_units::{Duration, Time};

use super::flags::Flags;
use super::recovery::Retransmit;
use super::transmit::Push;
use super::{Sender, Wire, rack, recovery};
use crate::clock::Jiffies;
use crate::packet::{AckKind, Acknowledgement, PAWS_WINDOW_MS, SACK_BLOCKS, stamp_ms, widened};
use crate::plug;

/// RTT evidence in an ACK: send times of the first and last segment never retransmitted.
#[derive(Clone, Copy, Debug, Default)]
struct Stamps {
    acked: Option<(u32, u32)>,
    sacked: Option<(u32, u32)>,
}

/// The timestamp of what left at `sent_us`, wrapping microseconds.
fn stamp_of(now: Time, sent_us: u32) -> u32 {
    let age = (now.as_micros() as u32).wrapping_sub(sent_us);
    stamp_ms(now - Duration::from_micros(age as u64))
}

fn widen(stamps: &mut Option<(u32, u32)>, first_us: u32, last_us: u32) {
    *stamps = Some((stamps.map_or(first_us, |(first, _)| first), last_us));
}

/// Sorts up to three blocks, which do not overlap.
#[inline]
fn sort(blocks: &mut [(u64, u64)]) {
    let order = |blocks: &mut [(u64, u64)], low: usize, high: usize| {
        let (one, other) = (blocks[low], blocks[high]);
        let swap = other.0 < one.0;
        blocks[low] = if swap { other } else { one };
        blocks[high] = if swap { one } else { other };
    };
    if blocks.len() == SACK_BLOCKS {
        order(blocks, 1, 2);
    }
    if blocks.len() >= 2 {
        order(blocks, 0, 1);
    }
    if blocks.len() == SACK_BLOCKS {
        order(blocks, 1, 2);
    }
}

impl Sender {
    /// An ACK arrived (Linux: `tcp_ack`, then `tcp_data_snd_check`). Returns whether it was taken.
    #[inline]
    pub(crate) fn on_ack(&mut self, now: Time, ack: &Acknowledgement, wire: &mut impl Wire) -> bool {
        debug_assert!(ack.ack <= self.board.next, "an ACK for what was never sent");
        // Of ACKs for the same, others may have overtaken this one (Linux: `tcp_replace_ts_recent`).
        let stamp_ms = widened(now, ack.stamp_ms);
        let ahead_ms = stamp_ms.wrapping_sub(self.peer_stamp_ms) as i32;
        if ack.ack > self.board.una || (ack.ack == self.board.una && ahead_ms > 0) {
            self.peer_stamp_ms = stamp_ms;
        } else if self.checks_stamps && ahead_ms < -PAWS_WINDOW_MS && !self.is_disordered(ack, -ahead_ms) {
            return false;
        }
        self.check_app_limited_if_asked();
        let plain = ack.is_plain()
            && ack.ack > self.board.una
            && self.board.is_clean()
            && self.recovery.state == CaState::Open
            && self.timers.probe_end.is_none()
            && plug::is_built_in(&self.controller);
        if plain {
            self.on_plain_ack(now, ack);
            if self.write(now, Push::Normal, wire) == 0 {
                self.set_timer(now);
            }
        } else {
            self.on_any_ack(now, ack, wire);
        }
        if self.board.una >= self.output.resumes_at {
            self.refill(now, wire);
        }
        true
    }

    /// Whether an ACK that is `age_ms` older than the latest is taken nevertheless: it repeats the last number, has no data and
    /// changes nothing, and is not much older than a timeout (Linux: `tcp_disordered_ack`). Linux answers others with an ACK, in
    /// vain: their sender has long known that.
    #[cold]
    fn is_disordered(&self, ack: &Acknowledgement, age_ms: i32) -> bool {
        let replay_ms = self.rtt.rto_us as u64 * 1200 / 1_000_000;
        ack.ack == self.board.una
            && ack.kind != AckKind::Request
            && ack.window_edge <= self.window_edge
            && age_ms as u64 <= replay_ms
    }

    /// [`Sender::on_any_ack`] up to where data is sent, for an ACK that only acknowledges in order, in the open state,
    /// with nothing SACKed, lost, retransmitted or marked, as for most ACKs of a flow with a built-in controller. The caller sets
    /// the timer, because sending sets it again.
    // Always, because it is called for each kind of wire.
    #[inline(always)]
    fn on_plain_ack(&mut self, now: Time, ack: &Acknowledgement) {
        self.timers.retransmits = 0;
        self.take_window(ack);
        let (first, last) = (self.board.una, ack.ack - 1);
        let (first_sent_us, tx) = (self.board.tx(first).sent_us, *self.board.tx(last));
        let prior_in_flight = self.board.packets_out();
        let segments = (ack.ack - first) as u32;
        self.board.advance(segments as u64);

        let now_us = now.as_micros() as u32;
        self.rack.on_delivered(last, tx.sent_us, now_us, false, self.min_rtt.micros());
        let maybe_delayed = segments == 1 && self.stream.bytes_of(first) < self.mss;
        let rtt_us = now_us.wrapping_sub(tx.sent_us);
        if !(maybe_delayed && rtt_us > self.min_rtt.micros()) {
            self.min_rtt.sample(rtt_us.max(1), now);
        }
        self.rtt.sample(now_us.wrapping_sub(first_sent_us), self.board.una, self.board.next);
        let sample = self.sampler.take_in_order(now, segments, &tx, self.min_rtt.get(), self.lost);
        self.rack.update_window(Some(tx.delivered), self.sampler.delivered() as u32);
        self.note_rate(&sample);
        self.output.usage.stamp = now;
        let event = Ack {
            connection: self.connection(now),
            prior_in_flight,
            newly_delivered: segments,
            newly_lost: 0,
            newly_acked: segments,
            rtt: Some(Duration::from_micros(rtt_us as u64)),
            maybe_delayed,
            una_advanced: true,
            snd_una: self.board.una,
            snd_nxt: self.board.next,
            sample,
            cwnd_limited: self.output.usage.cwnd_limited,
            max_packets_out: self.output.usage.max_packets_out,
            may_raise_cwnd: true,
            may_answer_probe: false,
        };
        let controller = plug::built_in(&mut self.controller);
        if let Some(sample) = event.rtt_sample() {
            controller.on_rtt(&sample);
        }
        controller.on_ack(&event);
        let limits = controller.limits();
        self.take_limits(limits);
        if self.limits.mark_app_limited {
            self.sampler.mark_app_limited(self.board.in_flight());
        }
    }

    /// Takes over the receiver's window; returns whether it moved.
    #[inline]
    fn take_window(&mut self, ack: &Acknowledgement) -> bool {
        let moved = ack.window_edge > self.window_edge;
        if moved {
            self.window_edge = ack.window_edge;
            self.window_end = self.stream.full_before(ack.window_edge);
        }
        moved
    }

    #[inline(never)]
    fn on_any_ack(&mut self, now: Time, ack: &Acknowledgement, wire: &mut impl Wire) {
        self.in_ack = true;
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
        flags.window_updated = self.take_window(ack);
        flags.echoed = !old && ack.echoes() && self.marking.is_on();
        let mut stamps = Stamps::default();
        let mut basis = None;
        let prior_highest = self.highest_sacked();
        let prior_sacked = self.board.sacked_out;
        self.sampler.begin_ack();
        if ack.blocks() > 0 {
            self.take_sack_blocks(now, ack, prior_highest, &mut flags, &mut stamps, &mut basis);
        }
        let mut rtt = None;
        if !old && prior_packets > 0 {
            self.take_cumulative(now, ack, prior_highest, &mut flags, &mut stamps, &mut basis);
            let lone = self.board.una - prior_una == 1 && prior_sacked == 0 && !flags.data_sacked;
            flags.maybe_delayed = lone && self.stream.bytes_of(prior_una) < self.mss;
            rtt = self.take_rtt(now, ack, &mut flags, &stamps);
            if let Some(rtt) = rtt {
                let jiffies = Jiffies::at(now).as_u32();
                let (snd_una, snd_nxt) = (self.board.una, self.board.next);
                self.controller.on_rtt(&RttSample { now, jiffies, rtt, snd_una, snd_nxt });
            }
            self.rack.update_window(basis, self.sampler.delivered() as u32);
        }
        let mut may_answer_probe = false;
        if !old {
            if flags.echoed || self.marking.is_exact() {
                self.report_marks(&flags, prior_packets, prior_delivered);
            }
            may_answer_probe = self.on_probe_acknowledged(now, ack.ack, &flags);
        }

        let dubious = flags.data_sacked
            || flags.duplicate_reported
            || flags.echoed
            || !(flags.data_acked || flags.window_updated)
            || self.recovery.state != CaState::Open;
        let mut retransmit = Retransmit::None;
        let counts = if old { ack.blocks() > 0 } else { prior_packets > 0 || flags.duplicate_reported };
        if dubious && counts {
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
                may_answer_probe,
            };
            if event.may_raise_cwnd && !self.recovery.in_reduction() {
                self.output.usage.stamp = now;
            }
            self.controller.on_ack(&event);
            self.update_limits();
            if self.limits.mark_app_limited {
                self.sampler.mark_app_limited(self.board.in_flight());
            }
        }
        #[cfg(debug_assertions)]
        self.controller.ack_ends();
        self.in_ack = false;
        match retransmit {
            Retransmit::None => {}
            Retransmit::Lost => self.retransmit_lost(now, wire),
            Retransmit::New => {
                self.write_rarely(now, Push::Normal, wire);
                if self.board.next <= self.recovery.high_seq {
                    self.recovery.frto = false;
                    self.retransmit_lost(now, wire);
                }
            }
        }
        self.write_rarely(now, Push::Normal, wire);
    }

    /// Tells the controller what the ACK says of marks (Linux: `tcp_in_ack_event`, and step A of `tcp_fastretrans_alert`, which
    /// sees an ACK for nothing only if that reports a duplicate).
    fn report_marks(&mut self, flags: &Flags, prior_packets: u32, prior_delivered: u64) {
        let delivered = self.sampler.delivered();
        let units = if flags.echoed { (delivered - prior_delivered) as u32 } else { 0 };
        self.sampler.count_marked(units);
        self.controller.on_ce(&CeMarks {
            echoed: flags.echoed && (prior_packets > 0 || flags.duplicate_reported),
            units,
            delivered,
            snd_una: self.board.una,
            snd_nxt: self.board.next,
        });
    }

    /// Tags the segments that the blocks report (Linux: `tcp_sacktag_write_queue`).
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
        // In order of sequence, so that only segments really below one delivered earlier count as reordered.
        let mut blocks = ack.sack();
        let blocks = &mut blocks[..ack.blocks()];
        let (duplicate, blocks) = blocks.split_at_mut((ack.kind == AckKind::Duplicate) as usize);
        if let [(start, end)] = *duplicate {
            self.on_duplicate_report(start, end, flags);
        }
        sort(blocks);
        for &mut (start, end) in &mut *blocks {
            let end = end.min(self.board.next);
            let mut from = self.end_of_known(start.max(self.board.una));
            while let Some(seq) = self.board.next_unsacked(from, end) {
                // Segments that were sent once left in order, so the last of a run of them stands for all.
                let run = self.board.end_of_sent_once(seq, end) - seq;
                let ever = run == 0;
                let (count, last) = (run.max(1), seq + run.max(1) - 1);
                from = last + 1;
                let tx = *self.board.tx(last);
                self.rack.on_delivered(last, tx.sent_us, now_us, ever, self.min_rtt.micros());
                if !ever {
                    if seq < prior_highest.max(self.highest_sacked) {
                        reordered = reordered.min(seq);
                    }
                    flags.original_delivered |= seq < self.recovery.high_seq;
                    widen(&mut stamps.sacked, self.board.tx(seq).sent_us, tx.sent_us);
                }
                self.board.mark_sacked(seq, count);
                newly += count as u32;
                self.highest_sacked = self.highest_sacked.max(last + 1);
                flags.data_sacked = true;
                self.sampler.on_delivered(&tx, last, ever);
                *basis = Some(tx.delivered);
            }
        }
        self.known_blocks = [(0, 0); SACK_BLOCKS];
        for (known, &mut (start, end)) in self.known_blocks.iter_mut().zip(blocks) {
            *known = (start, end.min(self.board.next));
        }
        if newly > 0 {
            self.sampler.count_delivered(newly);
        }
        if reordered != u64::MAX && (self.recovery.state != CaState::Loss || self.recovery.undo.is_some()) {
            self.rack.on_reordering(reordered, self.highest_sacked);
        }
    }

    /// The end of the known block that holds `seq`; `seq` itself if none does.
    #[inline]
    fn end_of_known(&self, seq: u64) -> u64 {
        let end_in = |block: (u64, u64)| if block.0 <= seq && seq < block.1 { block.1 } else { seq };
        self.known_blocks.iter().fold(seq, |end, block| end.max(end_in(*block)))
    }

    /// A block reported a segment that had arrived before (Linux: `tcp_check_dsack`).
    fn on_duplicate_report(&mut self, start: u64, end: u64, flags: &mut Flags) {
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
        // draft 2.2#0728c2: a spurious retransmission counts when it is reported as delivered
        self.sampler.count_delivered(segments);
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
            self.sampler.count_delivered((ack.ack - first) as u32);
            self.sampler.on_delivered(&tx, last, false);
            *basis = Some(tx.delivered);
            self.board.advance(ack.ack - first);
            return;
        }
        let mut reordered = u64::MAX;
        let mut newly = 0;
        while self.board.una < ack.ack {
            let seq = self.board.una;
            // Segments that were SACKed before give no new information.
            let sacked = self.board.end_of_sacked(seq, ack.ack) - seq;
            if sacked > 0 {
                self.board.pop(sacked);
                continue;
            }
            // Segments that were sent once left in order, so the last of a run of them stands for all.
            let run = self.board.end_of_sent_once(seq, ack.ack) - seq;
            let ever = run == 0;
            let (count, last) = (run.max(1), seq + run.max(1) - 1);
            let tx = *self.board.tx(last);
            if ever {
                flags.retransmitted_acked = true;
            } else {
                widen(&mut stamps.acked, self.board.tx(seq).sent_us, tx.sent_us);
                reordered = reordered.min(seq);
                flags.original_delivered |= seq < self.recovery.high_seq;
            }
            if !self.board.is_sacked(seq) {
                newly += count as u32;
                // An echo from before the retransmission: it was the original that arrived.
                let spurious = ever && recovery::echoes_before(ack.echo_ms, stamp_of(now, tx.sent_us));
                if !spurious {
                    self.rack.on_delivered(last, tx.sent_us, now_us, ever, self.min_rtt.micros());
                }
                self.sampler.on_delivered(&tx, last, ever);
                *basis = Some(tx.delivered);
            }
            self.board.pop(count);
        }
        if newly > 0 {
            self.sampler.count_delivered(newly);
        }
        if reordered < prior_highest {
            self.rack.on_reordering(reordered, self.highest_sacked().max(prior_highest));
        }
    }

    // draft 4.2: steps.rtt
    // draft 4.2#c2a447: a segment that was retransmitted gives none; timestamps tell which transmission arrived
    // draft 4.1.2.3: InitRateSample.rtt
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
            let millis = stamp_ms(now).wrapping_sub(ack.echo_ms).max(1);
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
            // The SACKed segment left before the head last did; otherwise the timeout would keep moving in recovery.
            flags.set_timer = true;
        }
        control.map(|micros| Duration::from_micros(micros as u64))
    }

    #[inline]
    fn note_rate(&mut self, sample: &RateSample) {
        // Linux keeps the last sample that was not application-limited or was higher; the flag is only for display.
        if let (Some(delivered), Some(interval)) = (sample.delivered, sample.interval)
            && interval > Duration::ZERO
        {
            self.last_sample = (delivered, interval.as_micros() as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Segment;
    use crate::sender::metrics::Beginning;
    use crate::sender::{MarkableRun, SenderConfig};
    use crate::workload::ByteStream;
    use fullpipe_cc::{Config, Params};
    use fullpipe_path::Ecn;
    use fullpipe_scenario::spec::{EcnUse, Workload};
    use fullpipe_units::Rate;

    /// The segments that left.
    #[derive(Default)]
    struct Sent(Vec<Segment>);

    impl Wire for Sent {
        fn send(&mut self, _: Time, _: u32, segment: Segment, _: Ecn) {
            self.0.push(segment);
        }

        fn send_run(&mut self, _: Time, _: u32, first: Segment, count: u32) {
            self.0.extend((0..count as u64).map(|more| Segment { seq: first.seq + more, ..first }));
        }

        fn send_markable_run(&mut self, _: Time, _: u32, run: MarkableRun) {
            unreachable!("{run:?} without ECN");
        }
    }

    const EDGE: u64 = 1 << 20;

    /// A bulk flow of Reno whose SYN was answered at 1 s after 20 ms, and what it has sent since.
    fn established(checks_stamps: bool) -> (Sender, Sent) {
        let controller = Config {
            mss: 1448,
            unit: 1448,
            initial_cwnd: 10,
            cwnd_clamp: u32::MAX,
            max_pacing_rate: Rate::MAX,
            gso_max: Config::GSO_MAX,
            max_tcp_header: Config::MAX_TCP_HEADER,
            paced: false,
            hz: 250,
            ssthresh: fullpipe_cc::Limits::INFINITE,
        };
        let config = SenderConfig {
            flow: 0,
            controller,
            params: Params::by_name("reno"),
            ecn: EcnUse::None,
            gso_max_segs: u16::MAX,
            full_piece: None,
            send_buffer: 4 << 20,
            growth: None,
            checks_stamps,
            random_seed: 1,
            pacing_timer: None,
            beginning: Beginning::default(),
        };
        let mut answer = Acknowledgement::new(AckKind::Syn, 980, 0, EDGE);
        answer.stamp_ms = 990;
        let (now, rtt) = (Time::from_micros(1_000_000), Duration::from_millis(20));
        let mut sender =
            Sender::establish(&config, None, ByteStream::new(&Workload::Bulk, 1448), now, rtt, &answer);
        let mut sent = Sent::default();
        sender.push(now, &mut sent);
        (sender, sent)
    }

    /// An ACK that left at `stamp_ms` and reports `block` arrives 10 ms later, or when told.
    fn ack(stamp_ms: u32, ack: u64, block: Option<(u64, u64)>) -> Acknowledgement {
        let mut one = Acknowledgement::new(AckKind::Plain, 1_000, ack, EDGE);
        one.stamp_ms = stamp_ms as u16;
        block.into_iter().for_each(|block| one.report(block));
        one
    }

    fn at_ms(millis: u64) -> Time {
        Time::from_micros(millis * 1_000)
    }

    #[test]
    fn echoed_timestamp_never_decreases() {
        let (mut sender, mut sent) = established(false);
        let mut echo = |at, one: Acknowledgement| {
            sender.on_ack(at_ms(at), &one, &mut sent);
            sender.peer_stamp_ms as u16
        };
        // Of two ACKs for the same, the second overtook the first; an old one was overtaken by both.
        assert_eq!(echo(1_020, ack(1_010, 2, None)), 1_010);
        assert_eq!(echo(1_024, ack(1_014, 2, Some((4, 5)))), 1_014);
        assert_eq!(echo(1_025, ack(1_012, 2, Some((3, 4)))), 1_014);
        assert_eq!(echo(1_026, ack(1_009, 1, None)), 1_014);
        // Its low bits are smaller, half of their range later and a little more than all of it later.
        assert_eq!(echo(40_020, ack(40_010, 2, None)), 40_010);
        assert_eq!(echo(105_600, ack(105_550, 2, None)) as u32, 105_550 - 65_536);
    }

    #[test]
    fn linux_ignores_overtaken_acks_except_duplicates() {
        for checks in [false, true] {
            let (mut sender, mut sent) = established(checks);
            // Whether it is taken, and what is SACKed then.
            let mut take = |at, one: Acknowledgement| {
                let taken = sender.on_ack(at_ms(at), &one, &mut sent);
                (taken, sender.board.sacked_out)
            };
            assert_eq!(take(1_020, ack(1_010, 3, None)), (true, 0));
            // Sent 1 ms before the latest, then 2 ms before it.
            assert_eq!(take(1_021, ack(1_009, 2, Some((4, 5)))), (true, 1));
            assert_eq!(take(1_022, ack(1_008, 2, Some((5, 6)))), (!checks, if checks { 1 } else { 2 }));
            // Of the same number, older than a timeout of 220 ms and a fifth of it, and not as old.
            assert!(take(1_300, ack(1_290, 3, None)).0);
            assert_eq!(take(1_301, ack(1_290 - 275, 3, Some((6, 7)))).0, !checks);
            assert!(take(1_302, ack(1_290 - 260, 3, Some((7, 8)))).0);
            // One with data is not taken however little it changes; a new number always is.
            let mut request = ack(1_285, 3, None);
            request.kind = AckKind::Request;
            assert_eq!(take(1_303, request).0, !checks);
            assert!(take(1_304, ack(1_280, 4, None)).0);
        }
    }
}
