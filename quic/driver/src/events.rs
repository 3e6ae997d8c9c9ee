//! What happened to packets, as events for a controller.

use crate::rtt::Rtt;
use crate::usage::Usage;
use alloc::vec::Vec;
use fullpipe_cc::*;
use fullpipe_units::{Bytes, Duration, Time};

/// Ticks a second of the coarse clock.
pub(crate) const HZ: u32 = 1_000;

/// The coarse clock.
pub(crate) const fn jiffies(now: Time) -> u32 {
    (now.as_micros() / (1_000_000 / HZ as u64)) as u32
}

/// The start of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The time. Not zero: controllers use zero for "never".
    pub now: Time,
    /// Bytes of a full packet, without UDP's header.
    pub mtu: u16,
    /// Seed of the random numbers that the controller draws. Equal seeds and equal reports give equal decisions.
    pub seed: u64,
}

/// What a sender notes when a packet leaves. The stack gives it back when the packet is acknowledged or lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    tx: TxState,
    index: u64,
    sent: Time,
}

impl Note {
    /// When the packet left.
    pub const fn sent(&self) -> Time {
        self.sent
    }

    /// Its place among the packets sent.
    pub const fn index(&self) -> u64 {
        self.index
    }
}

/// Bytes of packets: those sent are delivered, lost, discarded, or still in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Sent.
    pub sent: u64,
    /// Acknowledged.
    pub delivered: u64,
    /// Declared lost.
    pub lost: u64,
    /// Neither: forgotten by the stack.
    pub discarded: u64,
}

/// What happened at one instant and is not reported to the controller yet: an ACK, or losses that a timer found.
#[derive(Clone, Copy, Debug)]
struct Open {
    now: Time,
    prior_in_flight: u32,
    delivered: u32,
    packets: u32,
    /// The newest packet acknowledged.
    newest: Option<Note>,
    /// All acknowledged packets are known.
    is_ended: bool,
    is_persistent: bool,
    is_resized: bool,
    /// The bytes that the ACK shows marked.
    marked: Option<u32>,
    discarded: u32,
}

/// A loss that is not reported yet.
#[derive(Clone, Copy, Debug)]
struct Loss {
    note: Note,
    bytes: u32,
}

/// Turns reports about packets into a controller's events, in the order that [`fullpipe_cc::controller`] demands. See the
/// documentation of the crate.
#[derive(Clone, Debug)]
pub struct Events<C> {
    controller: C,
    sampler: Sampler,
    rtt: Rtt,
    usage: Usage,
    needs_ecn: bool,
    now: Time,
    mtu: u32,
    in_flight: u32,
    counts: Counts,
    /// Losses that the controller knows.
    reported_lost: u64,
    next_index: u64,
    /// The newest packet that was ever acknowledged.
    newest_acked: Option<u64>,
    /// The last packet reported lost.
    last_lost: Option<u64>,
    state: CaState,
    /// The first packet of the latest recovery period, or later than all if none was sent in it yet.
    period: Option<u64>,
    /// The last reduction was for losses alone, and was not undone.
    may_undo: bool,
    /// When the oldest packet left of those lost since the last reduction, and for it.
    oldest_lost: Time,
    /// Undos that changed what the controller allows or believes.
    undone: u64,
    /// When a packet last left.
    last_sent: Time,
    /// When the flight became empty.
    emptied: Time,
    open: Option<Open>,
    losses: Vec<Loss>,
    random: u64,
}

impl<C: Controller> Events<C> {
    /// Drives `controller` from the start of a connection.
    pub fn new(controller: C, start: &Start) -> Events<C> {
        Events {
            controller,
            sampler: Sampler::new(start.now),
            rtt: Rtt::new(),
            usage: Usage::default(),
            needs_ecn: false,
            now: start.now,
            mtu: start.mtu as u32,
            in_flight: 0,
            counts: Counts::default(),
            reported_lost: 0,
            next_index: 0,
            newest_acked: None,
            last_lost: None,
            state: CaState::Open,
            period: None,
            may_undo: false,
            oldest_lost: Time::NEVER,
            undone: 0,
            last_sent: start.now,
            emptied: start.now,
            open: None,
            losses: Vec::new(),
            random: start.seed,
        }
    }

    /// Reports ACKs without marks to the controller, too, which one needs that answers the share of marks
    /// ([`Params::ecn`](fullpipe_cc::Params::ecn)).
    pub const fn set_needs_ecn(&mut self, needs_ecn: bool) {
        self.needs_ecn = needs_ecn;
    }

    /// The controller.
    pub const fn controller(&self) -> &C {
        &self.controller
    }

    /// The controller, for a harness around it: `Ordered` has to know where an ACK ends that showed an undo
    /// ([`Ordered::ack_ends`](fullpipe_cc::Ordered::ack_ends)).
    pub const fn controller_mut(&mut self) -> &mut C {
        &mut self.controller
    }

    /// Bytes in flight.
    pub const fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// What became of the bytes sent.
    pub const fn counts(&self) -> &Counts {
        &self.counts
    }

    /// How often the controller has undone a reduction: it was told that the losses were spurious, and allows or believes something
    /// else since.
    pub const fn undone(&self) -> u64 {
        self.undone
    }

    /// Bytes of a full packet.
    pub const fn mtu(&self) -> u32 {
        self.mtu
    }

    /// The round-trip times.
    pub const fn rtt(&self) -> &Rtt {
        &self.rtt
    }

    /// The recovery state; an open ACK does not show in it yet.
    pub const fn state(&self) -> CaState {
        self.state
    }

    /// Settles an open ACK, and returns what the controller allows.
    #[inline]
    pub fn limits(&mut self) -> Limits {
        self.settle();
        self.controller.limits()
    }

    /// What the controller allowed before an open ACK.
    #[inline]
    pub fn limits_before(&self) -> Limits {
        self.controller.limits()
    }

    /// What the controller believes; an open ACK does not show in it yet.
    pub fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }

    // ---- reports of the stack ----

    /// A packet of `bytes` left that counts for congestion control. Packets that elicit no ACK are not reported.
    ///
    /// `app_limited` says whether the application, and not the window or the pacer, held it back until now; `None` if the stack does
    /// not know. Then a packet that follows an empty flight after more than a pause of the pacer counts as held back.
    pub fn sent(&mut self, now: Time, bytes: u32, app_limited: Option<bool>) -> Note {
        self.settle();
        let message = now;
        let now = self.advance(now);
        let prior = self.in_flight;
        if app_limited.unwrap_or(prior == 0 && self.was_idle(now)) {
            self.sampler.mark_app_limited(prior);
        }
        if prior == 0 {
            let (connection, last_sent, rto) = (self.connection(), self.last_sent, self.rtt.probe_timeout());
            self.controller.on_transmit_start(&TransmitStart { connection, last_sent, rto });
        }
        // The stack decides what it sends. The sampler cannot count more than this.
        self.in_flight = prior.saturating_add(bytes).min(Config::MOST_IN_FLIGHT);
        let bytes = self.in_flight - prior;
        let tx = self.sampler.on_sent(now, prior, self.in_flight, self.reported_lost);
        // The stack names the packet by its own time, even if that was before another one that it told.
        let note = Note { tx, index: self.next_index, sent: message };
        self.next_index += 1;
        self.counts.sent += bytes as u64;
        self.last_sent = now;
        self.note_usage(false);
        self.controller.on_sent(&Sent {
            departure: now,
            units: bytes,
            prior_in_flight: prior,
            prior_packets_out: prior,
            retransmission: false,
        });
        note
    }

    /// A packet left that does not count for congestion control, such as one with nothing but an ACK. Only for stacks that may name it
    /// later as the newest packet that an ACK acknowledges; the controller hears nothing of it.
    pub fn sent_uncounted(&mut self, now: Time) -> Note {
        self.settle();
        let sent = self.advance(now);
        let tx = self.sampler.on_sent(sent, self.in_flight, self.in_flight, self.reported_lost);
        Note { tx, index: self.next_index.saturating_sub(1), sent }
    }

    /// The application has nothing more to send, and neither window nor pacer holds anything back: for stacks that say so when
    /// they send, and not when an ACK arrives.
    pub fn app_limited(&mut self) {
        self.settle();
        self.sampler.mark_app_limited(self.in_flight);
    }

    /// The window held back a packet that was ready.
    pub fn cwnd_limited(&mut self) {
        self.settle();
        self.note_usage(true);
    }

    /// For stacks that do not say so, after each packet: a flight that leaves no room for a full one counts as held back by the
    /// window. Returns what the controller allows.
    pub fn cwnd_limited_if_full(&mut self) -> Limits {
        let limits = self.limits();
        if self.in_flight as u64 + self.mtu as u64 > limits.cwnd as u64 {
            self.cwnd_limited();
        }
        limits
    }

    /// An ACK at `now` newly acknowledged `bytes` of a packet, or of the packets that left together and share a note. `app_limited`
    /// says whether the application had nothing to send when the ACK arrived, and neither window nor pacer held anything back.
    pub fn acked(&mut self, now: Time, note: &Note, bytes: u32, app_limited: bool) {
        let bytes = bytes.min(self.in_flight);
        if self.open.is_some_and(|open| open.is_ended) || !self.losses.is_empty() {
            self.settle();
        }
        let begins = self.open(now).packets == 0;
        if begins {
            if app_limited {
                self.sampler.mark_app_limited(self.in_flight);
            }
            self.sampler.begin_ack();
        }
        self.sampler.on_delivered(&note.tx, note.index, false);
        self.sampler.count_delivered(bytes);
        self.leave_flight(bytes);
        self.counts.delivered += bytes as u64;
        let open = self.open(now);
        open.delivered += bytes;
        open.packets += 1;
        if open.newest.is_none_or(|newest| newest.index < note.index) {
            open.newest = Some(*note);
        }
    }

    /// All packets that the ACK acknowledged are reported. Losses and marks that it shows may still follow, at the same instant.
    pub fn end_acked(&mut self) {
        if let Some(open) = &mut self.open {
            open.is_ended = true;
        }
    }

    /// `bytes` of a packet, or of the packets that share a note, were declared lost: by the ACK at this instant, or by a timer. The
    /// lost packets of one ACK are reported in the order in which they were sent.
    pub fn lost(&mut self, now: Time, note: &Note, bytes: u32) {
        let bytes = bytes.min(self.in_flight);
        self.open(now);
        self.leave_flight(bytes);
        self.counts.lost += bytes as u64;
        self.losses.push(Loss { note: *note, bytes });
    }

    /// The losses at this instant are persistent congestion (RFC 9002 section 7.6).
    pub fn persistent_congestion(&mut self, now: Time) {
        self.open(now).is_persistent = true;
    }

    /// The ACK at this instant shows that the count of ECN-CE marks grew, by `bytes` of what it acknowledged; `None` if the stack
    /// does not know how many: then all that it acknowledged counts, as with a receiver that only echoes.
    pub fn marked(&mut self, now: Time, bytes: Option<u32>) {
        let open = self.open(now);
        open.marked = Some(bytes.unwrap_or(open.delivered).min(open.delivered));
    }

    /// Every packet that was declared lost, and that the stack remembers, arrived after all. Before the packets of the ACK that shows it.
    /// The controller hears of it at once, as if an ACK of its own had shown it at the last instant that was reported: the late packet is
    /// often all that its ACK acknowledges, and has left the flight.
    ///
    /// The stack remembers the lost packets that left at `since` or later; [`Time::ZERO`] if it forgets none. If it may have forgotten
    /// one of those that the last reduction was for, or that were lost since, the reduction stands.
    pub fn spurious(&mut self, since: Time) {
        self.settle();
        if self.oldest_lost < since || !core::mem::take(&mut self.may_undo) {
            return;
        }
        let connection = self.connection();
        let before = (self.controller.limits(), self.controller.snapshot());
        self.controller.on_undo(&Undo { connection });
        self.undone += u64::from(before != (self.controller.limits(), self.controller.snapshot()));
        // There was no congestion that further losses could be a part of.
        self.period = None;
        if self.state > CaState::Disorder {
            self.change(CaState::Open, false, false, Trigger::Ack);
        }
    }

    /// `bytes` left the flight that are neither acknowledged nor lost, such as those of a discarded packet number space (RFC 9002
    /// section 6.4).
    pub fn discarded(&mut self, now: Time, bytes: u32) {
        let bytes = bytes.min(self.in_flight);
        self.counts.discarded += bytes as u64;
        match &mut self.open {
            // Its own event comes after the ACK.
            Some(open) => {
                open.discarded += bytes;
                self.leave_flight(bytes);
            }
            None => {
                self.advance(now);
                self.leave_flight(bytes);
                self.report_discarded(bytes);
            }
        }
    }

    /// Bytes of a full packet changed. While an ACK is open, the controller hears of it after the ACK.
    pub fn mtu_changed(&mut self, mtu: u16) {
        self.mtu = (mtu as u32).max(1);
        match &mut self.open {
            Some(open) => open.is_resized = true,
            None => self.controller.on_mss(self.mtu),
        }
    }

    /// Reports an open ACK to the controller.
    #[inline]
    pub fn settle(&mut self) {
        if let Some(open) = self.open.take() {
            self.report(&open);
        }
    }

    // ---- what they mean ----

    fn advance(&mut self, now: Time) -> Time {
        self.now = self.now.max(now);
        self.now
    }

    /// What happens at this instant; what happened at another one is settled.
    fn open(&mut self, now: Time) -> &mut Open {
        let now = now.max(self.now);
        if self.open.is_some_and(|open| open.now != now) {
            self.settle();
        }
        self.now = now;
        let prior_in_flight = self.in_flight;
        if let Some(ref mut open) = self.open {
            return open;
        }
        self.open.insert(Open {
            now,
            prior_in_flight,
            delivered: 0,
            packets: 0,
            newest: None,
            is_ended: false,
            is_persistent: false,
            is_resized: false,
            marked: None,
            discarded: 0,
        })
    }

    fn leave_flight(&mut self, bytes: u32) {
        self.in_flight -= bytes;
        if self.in_flight == 0 && bytes > 0 {
            self.emptied = self.now;
        }
    }

    /// Whether a send after an empty flight comes later than the pacer would have let it leave.
    fn was_idle(&self, now: Time) -> bool {
        let pause = self.controller.limits().pacing_rate.time_for(Bytes::new(2 * self.mtu as u64));
        // RFC 9002 section 6.1.2: timers are not finer than a millisecond.
        now.saturating_since(self.emptied) > pause.max(Duration::from_millis(1)) || self.next_index == 0
    }

    fn una(&self) -> u64 {
        self.counts.sent - self.in_flight as u64
    }

    fn note_usage(&mut self, is_limited: bool) {
        self.usage.note(is_limited, self.in_flight, self.una(), self.counts.sent);
    }

    /// splitmix64.
    fn draw(&mut self) -> u32 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut word = self.random;
        word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((word ^ (word >> 31)) >> 32) as u32
    }

    fn connection(&mut self) -> Connection {
        Connection {
            now: self.now,
            jiffies: jiffies(self.now),
            delivered: self.sampler.delivered(),
            delivered_time: self.sampler.delivered_time(),
            lost: self.reported_lost,
            packets_out: self.in_flight,
            in_flight: self.in_flight,
            srtt: self.rtt.smoothed(),
            min_rtt: self.rtt.min(),
            departure: self.now,
            state: self.state,
            app_limited: self.sampler.app_limited(),
            random: self.draw(),
        }
    }

    /// The events of an ACK, or of a timer that found losses.
    fn report(&mut self, open: &Open) {
        let now = open.now;
        let trigger = if open.packets > 0 { Trigger::Ack } else { Trigger::Timer };
        let rtt = self.sample_rtt(open);
        let (snd_una, snd_nxt) = (self.una(), self.counts.sent);
        if let Some(rtt) = rtt {
            self.controller.on_rtt(&RttSample { now, jiffies: jiffies(now), rtt, snd_una, snd_nxt });
        }
        self.report_marks(open, snd_una, snd_nxt);
        // RFC 9002 section 7.3.2: what was sent before the period began is part of what began it.
        let period = self.period;
        let is_new = |index: u64| period.is_none_or(|period| index >= period);
        let newest_is_new = open.newest.is_some_and(|newest| is_new(newest.index));
        let is_lost = self.losses.iter().any(|loss| is_new(loss.note.index));
        let is_marked = open.marked.is_some() && newest_is_new;
        if self.state > CaState::Disorder && (newest_is_new || is_lost) {
            self.change(CaState::Open, false, false, trigger);
        }
        let lost = self.losses.iter().filter(|loss| loss.bytes > 0);
        let oldest = lost.map(|loss| loss.note.sent).min().unwrap_or(Time::NEVER);
        let begins = open.is_persistent || is_lost || is_marked;
        self.oldest_lost = if begins { oldest } else { self.oldest_lost.min(oldest) };
        let newly_lost = self.report_losses(now);
        if open.is_persistent {
            // RFC 9002 B.8: the threshold is set by the congestion event, which losses of packets from before the period are not.
            let reduce = self.state != CaState::Loss && is_lost;
            self.begin_period(CaState::Loss, reduce, open.marked.is_some(), trigger);
        } else if is_lost {
            self.begin_period(CaState::Recovery, true, open.marked.is_some(), trigger);
        } else if is_marked {
            self.begin_period(CaState::Cwr, true, true, trigger);
        }
        if open.packets > 0 {
            self.report_ack(open, rtt, newly_lost);
        }
        if open.discarded > 0 {
            self.report_discarded(open.discarded);
        }
        if open.is_resized {
            self.controller.on_mss(self.mtu);
        }
    }

    /// RFC 9002 section 5.1: an RTT is that of the newest packet, if none newer was acknowledged before.
    fn sample_rtt(&mut self, open: &Open) -> Option<Duration> {
        let newest = open.newest.filter(|note| self.newest_acked.is_none_or(|acked| acked < note.index))?;
        self.newest_acked = Some(newest.index);
        let rtt = open.now.saturating_since(newest.sent);
        self.rtt.sample(rtt);
        Some(rtt)
    }

    fn report_marks(&mut self, open: &Open, snd_una: u64, snd_nxt: u64) {
        if open.packets == 0 {
            return;
        }
        let (echoed, units) = (open.marked.is_some(), open.marked.unwrap_or(0));
        self.sampler.count_marked(units);
        self.may_undo &= !echoed;
        let delivered = self.sampler.delivered();
        if echoed || self.needs_ecn {
            self.controller.on_ce(&CeMarks { echoed, units, delivered, snd_una, snd_nxt });
        }
    }

    fn report_losses(&mut self, now: Time) -> u32 {
        let (before, delivered) = (self.reported_lost, self.sampler.delivered());
        let mut losses = core::mem::take(&mut self.losses);
        for Loss { note: Note { tx, index, .. }, bytes } in losses.drain(..) {
            self.reported_lost += bytes as u64;
            let touches = self.last_lost.is_some_and(|last| last == index || last + 1 == index);
            self.last_lost = Some(index);
            self.controller.on_lost(&Lost {
                now,
                delivered,
                units: bytes,
                new_range: !touches,
                tx_in_flight: tx.in_flight(),
                tx_delivered: delivered - (delivered as u32).wrapping_sub(tx.delivered) as u64,
                tx_lost: self.reported_lost - (self.reported_lost as u32).wrapping_sub(tx.lost) as u64,
                lost: self.reported_lost,
                app_limited: tx.app_limited(),
            });
        }
        self.losses = losses;
        (self.reported_lost - before) as u32
    }

    fn begin_period(&mut self, to: CaState, reduce: bool, proven: bool, trigger: Trigger) {
        self.period = Some(self.next_index);
        self.may_undo = !proven && to == CaState::Recovery;
        self.change(to, reduce, proven, trigger);
    }

    fn change(&mut self, to: CaState, reduce: bool, proven: bool, trigger: Trigger) {
        let connection = self.connection();
        self.controller.on_state(&StateChange { connection, to, reduce, proven, trigger });
        self.state = to;
    }

    fn report_ack(&mut self, open: &Open, rtt: Option<Duration>, newly_lost: u32) {
        let Open { now, prior_in_flight, delivered, packets, .. } = *open;
        let sample = self.sampler.end_ack(now, delivered, self.rtt.min(), self.reported_lost);
        let ack = Ack {
            connection: self.connection(),
            prior_in_flight,
            newly_delivered: delivered,
            newly_lost,
            newly_acked: delivered,
            rtt,
            maybe_delayed: packets == 1 && delivered < self.mtu,
            una_advanced: true,
            snd_una: self.una(),
            snd_nxt: self.counts.sent,
            sample,
            cwnd_limited: self.usage.is_limited,
            max_packets_out: self.usage.most,
            may_raise_cwnd: true,
            may_answer_probe: false,
        };
        self.controller.on_ack(&ack);
        if self.controller.limits().mark_app_limited {
            self.sampler.mark_app_limited(self.in_flight);
        }
    }

    fn report_discarded(&mut self, units: u32) {
        self.sampler.on_discarded(self.in_flight);
        let (now, in_flight) = (self.now, self.in_flight);
        self.controller.on_discarded(&Discarded { now, units, in_flight });
    }
}
