//! The test bench: a sender, a bottleneck and the checks of the laws that hold at every moment.

use super::ledger::{self, Ledger};
use super::{Broken, Law, Outcome, Path, at_start, broken_unless, collapsed, jiffies};
use fullpipe_cc::controller::*;
use fullpipe_cc::{Ordered, Sampler, TxState};
use fullpipe_units::{Bytes, Duration, Time};

/// Packets that may be out.
const WINDOW: usize = 4096;
/// How long the receiver waits for as many packets as it acknowledges at once.
const ACK_DELAY: Duration = Duration::from_millis(25);
/// Packets later than a missing one that make it lost (RFC 5681: three duplicate ACKs).
const REORDERING: u64 = 3;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Fate {
    /// Not sent, or cumulatively acknowledged.
    #[default]
    Free,
    Out,
    Sacked,
    Lost,
}

/// A packet; its number is its place in the stream.
#[derive(Clone, Copy, Debug, Default)]
struct Segment {
    fate: Fate,
    tx: TxState,
    retransmitted: bool,
    /// Order of its last transmission.
    order: u64,
    /// Marked lost, and not yet reported to the controller.
    unreported: bool,
    noted: ledger::Noted,
}

/// A delivery on its way back to the sender.
#[derive(Clone, Copy, Debug, Default)]
struct Delivery {
    at: Time,
    sequence: u64,
    order: u64,
}

/// A reduction that may prove spurious.
#[derive(Clone, Copy, Debug)]
struct Reduction {
    before: Limits,
    /// Retransmissions since, less those that proved spurious.
    retransmissions: u32,
}

/// The sender, the path and the checks.
pub(super) struct Bench<'a, C> {
    path: &'a Path,
    controller: Ordered<C>,
    pub(super) sampler: Sampler,
    ledger: Ledger,
    pub(super) connection: Connection,
    segments: [Segment; WINDOW],
    una: u64,
    nxt: u64,
    /// The packets below these, in units.
    una_units: u64,
    nxt_units: u64,
    /// The packets of all transmissions that may still be found lost, in their order, as a ring.
    transmissions: [u64; 2 * WINDOW],
    first_transmission: u64,
    /// Packets marked lost and not sent again.
    waiting: u32,
    /// Packets that are still to be discarded.
    discards: u32,
    /// Packets that the application has written.
    written: u64,
    next_order: u64,
    /// The receiver has everything below this.
    high_seq: u64,
    /// Deliveries that the receiver has not acknowledged yet, and when it does at the latest.
    held: [Delivery; Path::MAX_ACK_EVERY as usize],
    held_len: usize,
    ack_due: Time,
    /// Deliveries in order of time, a ring.
    deliveries: [Delivery; WINDOW],
    first_delivery: usize,
    deliveries_len: usize,
    /// When the link has served everything it holds.
    link_free: Time,
    random: u64,
    sent: u64,
    max_packets_out: u32,
    cwnd_limited: bool,
    usage_end: u64,
    last_sent: Time,
    last_progress: Time,
    backoff: u32,
    /// The reduction that may still be undone.
    reduction: Option<Reduction>,
    probe_rtt_since: Option<Time>,
    fingerprint: u64,
}

impl<'a, C: Controller> Bench<'a, C> {
    pub(super) fn new(path: &'a Path, new: impl Fn(&Config, &Connection) -> C) -> Bench<'a, C> {
        let connection = at_start(path);
        Bench {
            path,
            controller: Ordered::new(new(&path.config, &connection), connection.state),
            sampler: Sampler::resume(path.start, connection.delivered),
            ledger: Ledger::new(path.start, connection.delivered),
            connection,
            segments: [Segment::default(); WINDOW],
            una: 0,
            nxt: 0,
            una_units: 0,
            nxt_units: 0,
            transmissions: [0; 2 * WINDOW],
            first_transmission: 0,
            waiting: 0,
            discards: path.discards,
            written: 0,
            next_order: 0,
            high_seq: 0,
            held: [Delivery::default(); Path::MAX_ACK_EVERY as usize],
            held_len: 0,
            ack_due: Time::NEVER,
            deliveries: [Delivery::default(); WINDOW],
            first_delivery: 0,
            deliveries_len: 0,
            link_free: path.start,
            random: path.seed | 1,
            sent: 0,
            max_packets_out: 0,
            cwnd_limited: false,
            usage_end: 0,
            last_sent: path.start,
            last_progress: path.start,
            backoff: 0,
            reduction: None,
            probe_rtt_since: None,
            fingerprint: 0,
        }
    }

    pub(super) fn run(&mut self) -> Result<Outcome, Broken> {
        let deadline = self.deadline();
        if self.path.write == 0 {
            self.written = self.path.segments as u64;
        }
        while self.una < self.path.segments as u64 {
            let now = self.connection.now;
            broken_unless(now < deadline, Law::DeliversEverything, now, self.una, self.path.segments as u64)?;
            self.send()?;
            match self.next_event() {
                Event::Send(at) => self.advance(at),
                Event::Delivery => self.receive()?,
                Event::Ack(at) => {
                    self.advance(at);
                    self.acknowledge()?;
                }
                Event::Timeout(at) => {
                    self.advance(at);
                    self.check_app_limited_if_asked();
                    self.time_out()?;
                }
                Event::Write(at) => self.write(at),
            }
        }
        Ok(Outcome {
            took: self.connection.now.saturating_since(self.path.start),
            sent: self.sent,
            lost: self.connection.lost - at_start(self.path).lost,
            fingerprint: self.fingerprint,
        })
    }

    /// Ten minutes, a thousand times what the path needs, and a round trip for each packet.
    fn deadline(&self) -> Time {
        let bytes = self.path.bytes();
        let round_trip = if self.path.ack_every > 1 { self.path.rtt + ACK_DELAY } else { self.path.rtt };
        let rounds = round_trip.saturating_mul(self.path.segments as u64);
        self.path.start
            + Duration::from_secs(600)
            + self.path.rate.time_for(bytes).saturating_mul(1_000)
            + rounds
    }

    fn random(&mut self) -> u32 {
        // xorshift64*
        self.random ^= self.random >> 12;
        self.random ^= self.random << 25;
        self.random ^= self.random >> 27;
        (self.random.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) as u32
    }

    fn advance(&mut self, to: Time) {
        self.connection.now = self.connection.now.max(to);
        self.connection.jiffies = jiffies(self.path, self.connection.now);
    }

    fn segment(&mut self, sequence: u64) -> &mut Segment {
        &mut self.segments[sequence as usize % WINDOW]
    }

    /// Payload bytes of a packet.
    fn size(&self, sequence: u64) -> Bytes {
        Bytes::new(self.path.size_of(sequence) as u64)
    }

    fn units(&self, sequence: u64) -> u32 {
        self.path.size_of(sequence).div_ceil(self.path.config.unit)
    }

    /// The application writes the next packets.
    fn write(&mut self, at: Time) {
        self.advance(at);
        self.check_app_limited();
        self.written = (self.written + self.path.write as u64).min(self.path.segments as u64);
    }

    /// Linux: `tcp_rate_check_app_limited`.
    fn check_app_limited(&mut self) {
        // Room for less than a packet is none, or the unit would matter.
        let unfilled = self.fits(self.controller.limits().cwnd);
        if self.nxt >= self.written && unfilled && self.waiting == 0 {
            self.mark_app_limited();
        }
    }

    fn check_app_limited_if_asked(&mut self) {
        if self.controller.limits().check_app_limited {
            self.check_app_limited();
        }
    }

    fn mark_app_limited(&mut self) {
        self.sampler.mark_app_limited(self.connection.in_flight);
        self.ledger.mark_app_limited(self.connection.in_flight);
        self.connection.app_limited = self.sampler.app_limited();
    }

    fn rto(&self) -> Duration {
        let srtt = self.connection.srtt;
        (srtt.saturating_mul(2) + Duration::from_millis(200)).saturating_mul(1 << self.backoff.min(6))
    }

    fn next_event(&self) -> Event {
        let timeout = self.last_progress.max(self.last_sent) + self.rto();
        let send =
            self.has_something_to_send().then_some(self.connection.departure).filter(|_| self.has_room());
        let delivery = (self.deliveries_len > 0).then(|| self.deliveries[self.first_delivery].at);
        let soonest = send.into_iter().chain(delivery).min();
        if self.held_len > 0
            && self.ack_due <= timeout
            && soonest.is_none_or(|soonest| self.ack_due < soonest)
        {
            return Event::Ack(self.ack_due);
        }
        if self.una == self.nxt && self.written < self.path.segments as u64 && self.nxt == self.written {
            // Everything arrived a round trip ago.
            return Event::Write(self.last_progress + self.path.rtt);
        }
        match (send, delivery) {
            (Some(send), delivery) if delivery.is_none_or(|delivery| send <= delivery) && send < timeout => {
                Event::Send(send)
            }
            (_, Some(delivery)) if delivery <= timeout => Event::Delivery,
            _ => Event::Timeout(timeout),
        }
    }

    fn has_room(&self) -> bool {
        self.fits(self.controller.limits().cwnd)
    }

    /// Whether the next packet fits into a window.
    fn fits(&self, cwnd: u32) -> bool {
        let next = self.first_lost().unwrap_or(self.nxt);
        self.connection.in_flight.saturating_add(self.units(next)) <= cwnd
    }

    fn first_lost(&self) -> Option<u64> {
        let is_lost = |sequence: &u64| self.segments[*sequence as usize % WINDOW].fate == Fate::Lost;
        if self.waiting == 0 { None } else { (self.una..self.nxt).find(is_lost) }
    }

    fn has_something_to_send(&self) -> bool {
        let new = self.nxt < self.written && self.nxt - self.una < WINDOW as u64 - 1;
        new || self.waiting > 0
    }

    /// Sends what the window allows, each burst at its departure time.
    fn send(&mut self) -> Result<(), Broken> {
        loop {
            let limits = self.judge()?;
            let now = self.connection.now;
            let fits = self.fits(limits.cwnd);
            self.note_usage(!fits);
            if !fits || self.connection.departure > now || !self.has_something_to_send() {
                return Ok(());
            }
            let lost = self.first_lost();
            let sequence = lost.unwrap_or(self.nxt);
            if self.connection.in_flight == 0 {
                let (connection, last_sent, rto) = (self.connection, self.last_sent, self.rto());
                self.controller.on_transmit_start(&TransmitStart { connection, last_sent, rto });
            }
            self.transmit(sequence, lost.is_some());
            if self.path.config.paced {
                let gap = limits.pacing_rate.time_for(self.size(sequence));
                self.connection.departure = self.connection.departure.max(now).saturating_add(gap);
            }
        }
    }

    /// Linux: `tcp_cwnd_validate`.
    fn note_usage(&mut self, limited: bool) {
        let out = self.connection.packets_out;
        if self.una >= self.usage_end || limited || (!self.cwnd_limited && out > self.max_packets_out) {
            self.cwnd_limited = limited;
            self.max_packets_out = out;
            self.usage_end = self.nxt;
        }
    }

    fn transmit(&mut self, sequence: u64, retransmission: bool) {
        let now = self.connection.now;
        let (prior_in_flight, prior_packets_out) = (self.connection.in_flight, self.connection.packets_out);
        let units = self.units(sequence);
        let in_flight = prior_in_flight + units;
        let tx = self.sampler.on_sent(now, prior_packets_out, in_flight, self.connection.lost);
        let noted = self.ledger.on_sent(now, prior_packets_out, in_flight, self.connection.lost);
        let order = self.next_order;
        self.next_order += 1;
        assert!(order - self.first_transmission < 2 * WINDOW as u64, "the ring holds what may still be lost");
        self.transmissions[order as usize % (2 * WINDOW)] = sequence;
        self.waiting -= (self.segment(sequence).fate == Fate::Lost) as u32;
        *self.segment(sequence) =
            Segment { fate: Fate::Out, tx, retransmitted: retransmission, order, unreported: false, noted };
        self.connection.in_flight = in_flight;
        if !retransmission {
            self.nxt += 1;
            self.nxt_units += units as u64;
            self.connection.packets_out += units;
        }
        self.sent += 1;
        self.last_sent = now;
        self.connection.delivered_time = self.sampler.delivered_time();
        if let Some(reduction) = &mut self.reduction {
            reduction.retransmissions += retransmission as u32;
        }
        self.controller.on_sent(&Sent {
            departure: now,
            units,
            prior_in_flight,
            prior_packets_out,
            retransmission,
        });
        // The link.
        let service = self.path.rate.time_for(Bytes::new(self.path.config.mss as u64));
        let waiting = self.link_free.saturating_since(now).as_nanos() / service.as_nanos().max(1);
        let unlucky = self.random() % 1_000 < self.path.loss_per_mille;
        if waiting > self.path.queue as u64 || unlucky {
            return;
        }
        self.link_free = self.link_free.max(now) + self.path.rate.time_for(self.size(sequence));
        let late = self.path.late_per_mille > 0 && self.random() % 1_000 < self.path.late_per_mille;
        let behind = Duration::from_nanos(late as u64 * self.path.rtt.as_nanos() / 4);
        self.deliver(Delivery { at: self.link_free + self.path.rtt + behind, sequence, order });
    }

    /// Keeps the deliveries in order of time.
    fn deliver(&mut self, delivery: Delivery) {
        assert!(self.deliveries_len < WINDOW, "a queue of at most {} segments", Path::MAX_QUEUE);
        let first = self.first_delivery;
        let slot = |place: usize| (first + place) % WINDOW;
        let mut place = self.deliveries_len;
        while place > 0 && self.deliveries[slot(place - 1)].at > delivery.at {
            self.deliveries[slot(place)] = self.deliveries[slot(place - 1)];
            place -= 1;
        }
        self.deliveries[slot(place)] = delivery;
        self.deliveries_len += 1;
    }

    /// A packet arrives; the receiver acknowledges as many at once as the path says.
    fn receive(&mut self) -> Result<(), Broken> {
        let delivery = self.deliveries[self.first_delivery];
        self.first_delivery = (self.first_delivery + 1) % WINDOW;
        self.deliveries_len -= 1;
        self.advance(delivery.at);
        if self.held_len == 0 {
            self.ack_due = delivery.at + ACK_DELAY;
        }
        self.held[self.held_len] = delivery;
        self.held_len += 1;
        if self.held_len >= self.path.ack_every.clamp(1, Path::MAX_ACK_EVERY) as usize {
            self.acknowledge()?;
        }
        Ok(())
    }

    /// Processes the ACK of the packets that the receiver holds.
    fn acknowledge(&mut self) -> Result<(), Broken> {
        let (held, held_len) = (self.held, core::mem::take(&mut self.held_len));
        self.check_app_limited_if_asked();
        let now = self.connection.now;
        let (prior_in_flight, prior_una, prior_una_units) =
            (self.connection.in_flight, self.una, self.una_units);
        let prior_delivered = self.sampler.delivered();
        self.sampler.begin_ack();
        self.ledger.begin_ack();
        let (mut rtt, mut newest, mut spurious) = (None, None, 0);
        for &Delivery { sequence, order, .. } in &held[..held_len] {
            let segment = *self.segment(sequence);
            if sequence < self.una || matches!(segment.fate, Fate::Free | Fate::Sacked) {
                continue;
            }
            let units = self.units(sequence);
            self.sampler.on_delivered(&segment.tx, sequence + 1, segment.retransmitted);
            self.sampler.count_delivered(units);
            self.ledger.on_delivered(&segment.noted, sequence, segment.retransmitted, units);
            if segment.fate == Fate::Out {
                self.connection.in_flight -= units;
            }
            self.waiting -= (segment.fate == Fate::Lost) as u32;
            self.segment(sequence).fate = Fate::Sacked;
            newest = newest.max(Some(order));
            spurious += (order < segment.order) as u32;
            if !segment.retransmitted {
                let sent = (now.as_micros() as u32).wrapping_sub(segment.tx.sent_us);
                rtt = Some(Duration::from_micros(sent as u64));
            }
        }
        let Some(newest) = newest else { return Ok(()) };
        let newly_delivered = (self.sampler.delivered() - prior_delivered) as u32;
        self.advance_una();
        self.last_progress = now;
        self.backoff = 0;
        if let Some(rtt) = rtt {
            let eighth = Duration::from_nanos((self.connection.srtt.as_nanos() * 7 + rtt.as_nanos()) / 8);
            self.connection.srtt = eighth;
            self.connection.min_rtt = self.connection.min_rtt.min(rtt);
            let (jiffies, snd_una, snd_nxt) = (self.connection.jiffies, self.una_units, self.nxt_units);
            self.controller.on_rtt(&RttSample { now, jiffies, rtt, snd_una, snd_nxt });
        }
        // Linux: tcp_fastretrans_alert. A retransmitted segment whose original arrives was not lost.
        if let Some(reduction) = &mut self.reduction {
            reduction.retransmissions -= spurious;
        }
        self.undo_if_spurious()?;
        let newly_lost = self.mark_lost(newest);
        self.report_lost(newly_lost)?;
        self.change_state(newly_lost);
        let sample =
            self.sampler.end_ack(now, newly_delivered, self.connection.min_rtt, self.connection.lost);
        let due = self.ledger.on_ack(&self.connection);
        let mark = (self.sampler.app_limited(), self.ledger.is_app_limited());
        let differs = sample != due || mark.0 != mark.1;
        let rate = |sample: &RateSample| {
            let interval_us = sample.interval.map_or(0, Duration::as_micros);
            sample.delivered.unwrap_or(0) as u64 * 1_000_000 / interval_us.max(1)
        };
        broken_unless(!differs, Law::SampleFollowsItsDefinition, now, rate(&sample), rate(&due))?;
        self.connection.delivered = self.sampler.delivered();
        self.connection.delivered_time = self.sampler.delivered_time();
        self.connection.app_limited = self.sampler.app_limited();
        self.connection.random = self.random();
        self.controller.on_ack(&Ack {
            connection: self.connection,
            prior_in_flight,
            newly_delivered,
            newly_lost,
            newly_acked: (self.una_units - prior_una_units) as u32,
            rtt,
            maybe_delayed: false,
            una_advanced: self.una > prior_una,
            snd_una: self.una_units,
            snd_nxt: self.nxt_units,
            sample,
            cwnd_limited: self.cwnd_limited,
            max_packets_out: self.max_packets_out,
            may_raise_cwnd: self.una > prior_una,
            may_answer_probe: false,
        });
        self.controller.verdict()?;
        let (limits, phase) = (self.controller.limits(), self.controller.snapshot().phase);
        let marks = limits.mark_app_limited || phase != Phase::ProbeRtt;
        broken_unless(marks, Law::ProbeRttMarksItsSamples, now, 0, 1)?;
        if limits.mark_app_limited {
            self.mark_app_limited();
        }
        if self.discards > 0 && self.una > 0 {
            self.discard()?;
        }
        Ok(())
    }

    /// Discards the oldest packets in flight: they count as acknowledged, and nothing else.
    fn discard(&mut self) -> Result<(), Broken> {
        let (mut discarded, before) = (0, self.controller.limits());
        for sequence in self.una..self.nxt {
            if self.discards > 0 && self.segment(sequence).fate == Fate::Out {
                self.discards -= 1;
                discarded += self.units(sequence);
                self.segment(sequence).fate = Fate::Sacked;
            }
        }
        self.connection.in_flight -= discarded;
        self.advance_una();
        let (now, in_flight) = (self.connection.now, self.connection.in_flight);
        self.sampler.on_discarded(in_flight);
        self.ledger.on_discarded(in_flight);
        self.controller.on_discarded(&Discarded { now, units: discarded, in_flight });
        let (after, law) = (self.controller.limits(), Law::DiscardsAreNoSignal);
        broken_unless(after == before, law, now, after.cwnd as u64, before.cwnd as u64)
    }

    fn advance_una(&mut self) {
        while self.una < self.nxt && self.segment(self.una).fate == Fate::Sacked {
            let una = self.una;
            self.segment(una).fate = Fate::Free;
            self.una += 1;
            self.una_units += self.units(una) as u64;
            self.connection.packets_out -= self.units(una);
        }
    }

    /// Marks packets that were sent three transmissions before a delivered one, and are still out. Returns their units.
    fn mark_lost(&mut self, delivered: u64) -> u32 {
        let mut marked = 0;
        while self.first_transmission + REORDERING <= delivered {
            let order = self.first_transmission;
            let sequence = self.transmissions[order as usize % (2 * WINDOW)];
            self.first_transmission += 1;
            if sequence >= self.una && is_out(self.segment(sequence), order) {
                self.mark(sequence);
                marked += self.units(sequence);
            }
        }
        marked
    }

    fn mark(&mut self, sequence: u64) {
        let units = self.units(sequence);
        let segment = self.segment(sequence);
        segment.fate = Fate::Lost;
        segment.unreported = true;
        self.waiting += 1;
        self.connection.in_flight -= units;
        self.connection.lost += units as u64;
    }

    /// Undoes the reduction if nothing is lost any more and every retransmission was spurious (Linux: `tcp_may_undo`).
    fn undo_if_spurious(&mut self) -> Result<(), Broken> {
        let none_lost = self.waiting == 0;
        let Some(reduction) = self.reduction.filter(|reduction| reduction.retransmissions == 0 && none_lost)
        else {
            return Ok(());
        };
        self.reduction = None;
        self.controller.on_undo(&Undo { connection: self.connection });
        if self.connection.state != CaState::Open {
            self.change(CaState::Open, false);
        }
        let (limits, now) = (self.controller.limits(), self.connection.now);
        let estimates = self.controller.snapshot().bandwidth.is_some();
        let (threshold, cwnd) = (reduction.before.ssthresh, reduction.before.cwnd);
        let law = Law::UndoRestores;
        broken_unless(limits.ssthresh >= threshold, law, now, limits.ssthresh as u64, threshold as u64)?;
        broken_unless(limits.cwnd >= cwnd || estimates, law, now, limits.cwnd as u64, cwnd as u64)
    }

    /// Reports the marked packets, each by itself.
    fn report_lost(&mut self, newly_lost: u32) -> Result<(), Broken> {
        if newly_lost == 0 {
            return Ok(());
        }
        let mut lost = self.connection.lost - newly_lost as u64;
        let delivered = self.sampler.delivered();
        let mut previous = None;
        for sequence in self.una..self.nxt {
            if lost == self.connection.lost {
                break;
            }
            let segment = *self.segment(sequence);
            if !segment.unreported {
                continue;
            }
            self.segment(sequence).unreported = false;
            let units = self.units(sequence);
            lost += units as u64;
            let event = Lost {
                now: self.connection.now,
                delivered,
                units,
                new_range: previous.is_none_or(|previous| previous + 1 != sequence),
                tx_in_flight: segment.tx.in_flight(),
                tx_delivered: delivered - (delivered as u32).wrapping_sub(segment.tx.delivered) as u64,
                tx_lost: lost - (lost as u32).wrapping_sub(segment.tx.lost) as u64,
                lost,
                app_limited: segment.tx.app_limited(),
            };
            let (seen, due) = (segment.noted.as_seen_in(&event), segment.noted);
            let law = Law::LossesKeepTheirState;
            broken_unless(seen == due, law, event.now, event.tx_lost, due.lost_before())?;
            self.controller.on_lost(&event);
            previous = Some(sequence);
        }
        self.controller.verdict().map_err(Broken::from)
    }

    /// Enters recovery on loss and leaves it when the segments that were out then are acknowledged.
    fn change_state(&mut self, newly_lost: u32) {
        let from = self.connection.state;
        if from >= CaState::Recovery && self.una >= self.high_seq {
            self.change(CaState::Open, false);
        }
        if newly_lost > 0 && self.connection.state < CaState::Recovery {
            self.high_seq = self.nxt;
            self.change(CaState::Recovery, true);
        }
    }

    fn change(&mut self, to: CaState, reduce: bool) {
        if reduce {
            let before = self.controller.limits();
            // A timeout is not undone here: the head's retransmission is the first news after it.
            let retransmissions = self.retransmissions();
            self.reduction = (to == CaState::Recovery).then_some(Reduction { before, retransmissions });
        }
        let trigger = if to == CaState::Loss { Trigger::Timer } else { Trigger::Ack };
        let connection = self.connection;
        self.controller.on_state(&StateChange { connection, to, reduce, proven: false, trigger });
        self.connection.state = to;
    }

    /// Segments that were sent again and have not arrived.
    fn retransmissions(&self) -> u32 {
        let again = |sequence: &u64| {
            let segment = &self.segments[*sequence as usize % WINDOW];
            segment.retransmitted && matches!(segment.fate, Fate::Out | Fate::Lost)
        };
        (self.una..self.nxt).filter(again).count() as u32
    }

    fn time_out(&mut self) -> Result<(), Broken> {
        let lost_before = self.connection.lost;
        for sequence in self.una..self.nxt {
            if self.segment(sequence).fate == Fate::Out {
                self.mark(sequence);
            }
        }
        self.high_seq = self.nxt;
        let reduce = self.connection.state != CaState::Loss || self.backoff == 0;
        self.report_lost((self.connection.lost - lost_before) as u32)?;
        self.change(CaState::Loss, reduce);
        self.backoff += 1;
        self.last_progress = self.connection.now;
        self.connection.departure = self.connection.now;
        let cwnd = self.controller.limits().cwnd;
        let law = Law::TimeoutCollapsesTheWindow;
        let most = collapsed(0, self.path.full());
        let right = cwnd <= most || !law.binds(self.controller.snapshot().phase);
        broken_unless(right, law, self.connection.now, cwnd as u64, most as u64)
    }

    /// The laws that hold at every moment.
    fn judge(&mut self) -> Result<Limits, Broken> {
        let (limits, snapshot) = (self.controller.limits(), self.controller.snapshot());
        let (now, config) = (self.connection.now, &self.path.config);
        let law = |holds, law, seen: u64, bound: u64| broken_unless(holds, law, now, seen, bound);
        let same = limits == self.controller.limits() && snapshot == self.controller.snapshot();
        law(same, Law::AskingChangesNothing, 0, 0)?;
        let full = self.path.full();
        law(limits.cwnd >= full, Law::WindowIsPositive, limits.cwnd as u64, full as u64)?;
        law(
            limits.cwnd <= config.cwnd_clamp,
            Law::WindowIsClamped,
            limits.cwnd as u64,
            config.cwnd_clamp as u64,
        )?;
        law(limits.min_burst >= full, Law::BurstIsPositive, limits.min_burst as u64, full as u64)?;
        let (rate, most) = (limits.pacing_rate.as_bits_per_sec(), config.max_pacing_rate.as_bits_per_sec());
        law(rate > 0 && rate <= most, Law::RateIsPositiveAndCapped, rate, most)?;
        // Segments held back arrive together with others, so that the path is briefly faster than its rate.
        if let Some(bandwidth) = snapshot.bandwidth.filter(|_| self.path.late_per_mille == 0) {
            // A sample's interval may be short by a microsecond at both ends, of an RTT at least.
            let rtt_us = self.path.rtt.as_micros().max(3);
            let most = self.path.rate.as_bits_per_sec() * rtt_us / (rtt_us - 2) + 1_000;
            let service = self.path.rate.time_for(Bytes::new(config.mss as u64)).as_micros();
            // One segment more than the path's rate fits an interval that begins with a delivery.
            let most = most + most * (service + 2) / rtt_us;
            let seen = bandwidth.as_bits_per_sec();
            law(seen <= most, Law::EstimateIsAtMostThePath, seen, most)?;
        }
        if let Some(min_rtt) = snapshot.min_rtt {
            let (seen, least) = (min_rtt.as_micros() + 1, self.path.rtt.as_micros());
            law(seen >= least, Law::MinRttIsAtLeastThePath, seen, least)?;
        }
        if snapshot.phase == Phase::ProbeRtt {
            let since = *self.probe_rtt_since.get_or_insert(now);
            // Half a bandwidth-delay product, or the four segments of BBRv1. Where the receiver waits before it acknowledges, that
            // is part of every RTT.
            let waits = snapshot.min_rtt.filter(|_| self.path.ack_every > 1);
            let rtt = self.path.rtt.max(waits.unwrap_or(Duration::ZERO));
            let (bdp, full) = (self.path.rate.bytes_in(rtt).as_u64() / config.mss as u64, full as u64);
            let most = ((bdp / 2).max(4) + 4) * full;
            law(limits.cwnd as u64 <= most, Law::ProbeRttIsSmall, limits.cwnd as u64, most)?;
            let (spent, most) = (
                now.saturating_since(since),
                Duration::from_secs(2) + self.connection.srtt.saturating_mul(8),
            );
            // Under heavy loss its one round may take several timeouts, each twice as long as the last.
            let most = most + self.rto().saturating_mul(8);
            law(spent <= most, Law::ProbeRttEnds, spent.as_micros(), most.as_micros())?;
        } else {
            self.probe_rtt_since = None;
        }
        // In whole segments, so that it does not depend on the unit.
        let ssthresh =
            if limits.ssthresh == Limits::INFINITE { Limits::INFINITE } else { limits.ssthresh / full };
        for word in [(limits.cwnd / full) as u64, ssthresh as u64, rate, snapshot.phase as u64] {
            self.fingerprint = (self.fingerprint.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
        }
        Ok(limits)
    }
}

/// Whether a transmission is the packet's last and may still arrive.
fn is_out(segment: &Segment, order: u64) -> bool {
    segment.fate == Fate::Out && segment.order == order
}

/// The next event on the bench.
enum Event {
    Send(Time),
    Delivery,
    Ack(Time),
    Write(Time),
    Timeout(Time),
}
