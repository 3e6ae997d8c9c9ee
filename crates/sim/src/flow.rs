//! One flow: handshake, sender, receiver, and the timers of both as one entry of the agenda.

mod connect;
mod settings;

use std::sync::Arc;

use fullpipe_path::Ecn;
use fullpipe_path::prefetch::{prefetch, prefetch_first};
use fullpipe_record::Metrics;
use fullpipe_units::{Duration, Time};

use crate::application::Application;
use crate::hosts::Late;
use crate::media::Media;
use crate::packet::{AckKind, Acknowledgement, Flags, Segment, stamp_ms};
use crate::plug::Maker;
use crate::receiver::{ARRIVING, Arrival, Mark, Receiver};
use crate::sender::{Counters, Sender, Wire, Written};
use crate::workload::ByteStream;
use connect::SYN_TIMEOUT;
pub(crate) use settings::{FlowConfig, Settings};

/// GRO merges at most this much payload (Linux: 64 KB less headers).
const GRO_MAX_BYTES: u64 = 65_160;

/// Where acknowledgements go.
pub(crate) trait ReturnWire {
    /// Hands an acknowledgement to the reverse path at `now`.
    fn send(&mut self, now: Time, flow: u32, ack: Acknowledgement);
}

/// Ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    Both,
    Receiver,
    Sender,
}

/// What a flow had done when its measures ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended {
    pub(crate) at: Time,
    pub(crate) completed: bool,
    pub(crate) delivered_bytes: u64,
    pub(crate) counters: Counters,
    pub(crate) written: Written,
}

/// What is known of a flow that has ended.
#[derive(Debug, Default)]
struct Past {
    ended: Option<Ended>,
    /// What the host knew when the connection had ended.
    left: Option<Metrics>,
}

/// What a flow of ideal hosts with a controller of ours does without.
#[derive(Debug)]
struct Rare {
    late: Option<Late>,
    /// Makes its controller when it connects, if that is not built in.
    own: Option<Maker>,
    /// Both its ends, if it is media and connects to nobody.
    media: Option<Media>,
}

/// A flow. Among thousands, its memory is in no fast cache when its turn comes, and each line of 64 bytes costs time: what
/// every event needs comes first, what an arrival needs next, then the sender, and at the end what is needed rarely.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct Flow {
    /// When the flow itself, its sender or its receiver has something to do: see [`Flow::next`].
    own_due: Time,
    sender_due: Time,
    receiver_due: Time,
    pub(crate) acks_arrived: u64,
    pub(crate) acks_sent: u64,
    /// Its number.
    index: u32,
    /// Set when it stops, or when the receiver has everything; then `ended` is, too.
    has_ended: bool,
    /// Its hosts take time, as Linux's do.
    is_linux: bool,
    /// Segments of the stream of `config`.
    segments: u64,
    /// For a flow that sends one transfer after another.
    application: Option<Box<Application>>,
    /// How long GRO holds data back, ...
    gro: Duration,
    /// ... what it holds, and until when.
    merging: Option<Arrival>,
    merge_due: Time,
    pub(crate) receiver: Option<Receiver>,
    // These fill what the sender's alignment would leave empty.
    syn_due: Time,
    syn_timeout: Duration,
    syn_sent: Time,
    pub(crate) syns_sent: u64,
    pub(crate) syns_arrived: u64,
    stop_due: Time,
    /// When the application writes next.
    write_due: Time,
    pub(crate) sender: Option<Sender>,
    /// When its client asks next, or again.
    ask_due: Time,
    pub(crate) start: Time,
    /// The whole stream that it will ever send.
    stream: ByteStream,
    pub(crate) settings: Arc<Settings>,
    rare: Option<Box<Rare>>,
    past: Option<Box<Past>>,
}

// A million flows have to fit into memory. Debug assertions add to a flow.
#[cfg(not(debug_assertions))]
const _: () = assert!(size_of::<Flow>() < 2_000);

/// Whether a segment of this sender carries PSH.
#[inline(never)]
fn carries_push(sender: Option<&Sender>, seq: u64) -> bool {
    sender.is_some_and(|sender| sender.carries_push(seq))
}

/// What most arrivals need of a [`Flow`], from `gro` on.
const RECEIVING: usize = std::mem::offset_of!(Flow, receiver) + ARRIVING - std::mem::offset_of!(Flow, gro);

impl Flow {
    pub(crate) fn new(
        config: FlowConfig,
        application: Option<Box<Application>>,
        media: Option<Media>,
    ) -> Flow {
        let (syn_due, write_due) =
            if media.is_some() { (Time::NEVER, config.start) } else { (config.start, Time::NEVER) };
        Flow {
            own_due: config.start.min(config.stop),
            sender_due: Time::NEVER,
            receiver_due: Time::NEVER,
            index: config.index,
            has_ended: false,
            is_linux: config.late.is_some(),
            gro: config.settings.gro,
            segments: config.stream.segments(),
            receiver: None,
            sender: None,
            syn_due,
            syn_timeout: SYN_TIMEOUT,
            syn_sent: Time::ZERO,
            syns_sent: 0,
            syns_arrived: 0,
            acks_sent: 0,
            acks_arrived: 0,
            stop_due: config.stop,
            write_due,
            merging: None,
            merge_due: Time::NEVER,
            application,
            ask_due: Time::NEVER,
            start: config.start,
            stream: config.stream,
            settings: config.settings,
            rare: (config.late.is_some() || media.is_some())
                .then(|| Box::new(Rare { late: config.late, own: None, media })),
            past: None,
        }
    }

    /// Whether its data go over the reverse path, and its ACKs over the forward one.
    pub(crate) fn is_reverse(&self) -> bool {
        self.settings.is_reverse
    }

    /// Its number.
    pub(crate) fn index(&self) -> u32 {
        self.index
    }

    /// Has its controller made when it connects; `paced`: it needs pacing.
    pub(crate) fn own_controller(&mut self, own: Maker, paced: bool) {
        let rare = self.rare.get_or_insert_with(|| Box::new(Rare { late: None, own: None, media: None }));
        rare.own = Some(own);
        if paced {
            Arc::make_mut(&mut self.settings).sender.controller.paced = true;
        }
    }

    /// Whether [`Flow::own_controller`] was called, and the flow has not connected.
    pub(crate) fn has_own_controller(&self) -> bool {
        self.rare.as_ref().is_some_and(|rare| rare.own.is_some())
    }

    /// Both its ends, if it is media.
    pub(crate) fn media(&self) -> Option<&Media> {
        self.rare.as_ref()?.media.as_ref()
    }

    fn late(&self) -> Option<Late> {
        self.rare.as_ref()?.late
    }

    /// What it had done when its measures ended, if they have.
    pub(crate) fn ended(&self) -> Option<Ended> {
        self.past.as_ref()?.ended
    }

    /// When the flow next has something to do by itself.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        debug_assert_eq!(self.sender_due, self.sender.as_ref().map_or(Time::NEVER, Sender::timer));
        debug_assert_eq!(self.receiver_due, self.receiver.as_ref().map_or(Time::NEVER, Receiver::timer));
        self.own_due.min(self.sender_due).min(self.receiver_due)
    }

    fn update_sender_due(&mut self) {
        self.sender_due = self.sender.as_ref().map_or(Time::NEVER, Sender::timer);
    }

    fn update_receiver_due(&mut self) {
        self.receiver_due = self.receiver.as_ref().map_or(Time::NEVER, Receiver::timer);
    }

    /// A hint: a segment will arrive.
    #[inline]
    pub(crate) fn prefetch_receiver(&self) {
        prefetch(&self.own_due);
        prefetch_first(&self.gro, RECEIVING);
    }

    /// A hint: a segment will arrive soon, and the receiver is in the caches.
    #[inline]
    pub(crate) fn prefetch_waiting(&self) {
        if let Some(receiver) = &self.receiver {
            receiver.prefetch_waiting();
        }
    }

    /// A hint: events of all kinds will follow.
    #[inline(always)]
    pub(crate) fn prefetch_events(&self) {
        prefetch_first(&self.own_due, std::mem::offset_of!(Flow, receiver) + ARRIVING);
        Sender::prefetch_events(&self.sender);
    }

    /// A hint: they will soon follow, and the flow is in the caches.
    #[inline(always)]
    pub(crate) fn prefetch_windows(&self) {
        self.prefetch_waiting();
        if let Some(sender) = &self.sender {
            sender.prefetch_windows();
        }
    }

    /// A hint: an acknowledgement will arrive.
    #[inline]
    pub(crate) fn prefetch_sender(&self) {
        prefetch(&self.own_due);
        prefetch(&self.sender);
    }

    /// A hint: a timer will be next.
    #[inline]
    pub(crate) fn prefetch_sending(&self) {
        prefetch(&self.own_due);
        Sender::prefetch_sending(&self.sender);
    }

    /// A hint: this acknowledgement will arrive soon, and the sender is in the caches.
    #[inline]
    pub(crate) fn prefetch_window(&self, ack: &Acknowledgement) {
        if let Some(sender) = &self.sender {
            sender.prefetch_window(ack);
        }
    }

    /// A hint: a timer is next, and the sender is in the caches.
    #[inline]
    pub(crate) fn prefetch_for_timer(&self) {
        if self.receiver_due < self.sender_due {
            prefetch(&self.receiver);
        } else if let Some(sender) = &self.sender {
            sender.prefetch_ends();
        }
    }

    /// Whether nothing but the path leads from it to other flows; what somebody brings may know anything.
    pub(crate) fn meets_in_the_path_only(&self) -> bool {
        self.settings.metrics.is_none() && !self.has_own_controller()
    }

    /// Whether its measures end at `end` at the earliest, if no segment arrives before `end` that has not left yet.
    pub(crate) fn goes_on_until(&self, end: Time) -> bool {
        let has_more = self.sender.as_ref().is_none_or(|sender| sender.board().next < self.segments);
        !self.has_ended && self.stop_due >= end && has_more
    }

    /// A time from [`Flow::next`] has come. Returns whether the flow's measures ended now, as the other events do.
    pub(crate) fn on_timer(&mut self, now: Time, out: &mut impl Wire, back: &mut impl ReturnWire) -> bool {
        let mut ended = false;
        if self.own_due <= now {
            ended = self.on_own_timer(now, out, back);
            self.update_sender_due();
            self.update_receiver_due();
        }
        self.on_receiver_timer(now, back);
        self.on_sender_timer(now, out);
        ended
    }

    #[inline(always)]
    fn on_receiver_timer(&mut self, now: Time, back: &mut impl ReturnWire) {
        if self.receiver_due <= now
            && let Some(receiver) = &mut self.receiver
        {
            if receiver.on_timer(now) {
                let ack = receiver.acknowledge();
                self.answer(now, ack, back);
            }
            self.update_receiver_due();
        }
    }

    #[inline(always)]
    fn on_sender_timer(&mut self, now: Time, out: &mut impl Wire) {
        if self.sender_due <= now
            && let Some(sender) = &mut self.sender
        {
            sender.on_timer(now, out);
            self.sender_due = sender.timer();
        }
    }

    /// Whether its two ends tell each other nothing before `end` but by packets: then all events of one end may come before all of
    /// the other. Its own timer is the receiver's, that of GRO.
    pub(crate) fn has_ends_apart(&self, end: Time) -> bool {
        self.segments == u64::MAX
            && self.application.is_none()
            && self.sender.is_some()
            && self.stop_due >= end
            && !self.is_linux
    }

    /// When the ends of a flow next have something to do, if those are asked for. With both, it is [`Flow::next`].
    #[inline(always)]
    pub(crate) fn next_of(&self, ends: Ends) -> Time {
        match ends {
            Ends::Both => self.next(),
            Ends::Receiver => self.own_due.min(self.receiver_due),
            Ends::Sender => self.sender_due,
        }
    }

    /// [`Flow::on_timer`] for a time from [`Flow::next_of`].
    #[inline(always)]
    pub(crate) fn on_timer_of(
        &mut self,
        ends: Ends,
        now: Time,
        out: &mut impl Wire,
        back: &mut impl ReturnWire,
    ) -> bool {
        match ends {
            Ends::Both => return self.on_timer(now, out, back),
            Ends::Receiver => {
                if self.own_due <= now {
                    self.on_own_timer(now, out, back);
                    self.update_receiver_due();
                }
                self.on_receiver_timer(now, back);
            }
            Ends::Sender => self.on_sender_timer(now, out),
        }
        false
    }

    fn on_own_timer(&mut self, now: Time, out: &mut impl Wire, back: &mut impl ReturnWire) -> bool {
        let mut ended = false;
        if self.syn_due <= now {
            self.send_syn(now, out);
        }
        if self.stop_due <= now {
            self.stop_due = Time::NEVER;
            self.syn_due = Time::NEVER;
            self.write_due = Time::NEVER;
            self.ask_due = Time::NEVER;
            ended |= self.end(now, false);
            if let Some(sender) = &mut self.sender {
                sender.stop();
            }
            // If nothing is outstanding, no ACK will come that closes it.
            self.close(now);
        }
        if self.merge_due <= now
            && let Some(arrival) = self.merging.take()
        {
            self.merge_due = Time::NEVER;
            ended |= self.receive_merged(now, &arrival, back);
        }
        if self.write_due <= now {
            if let (Some(application), Some(sender)) = (&mut self.application, &mut self.sender) {
                sender.on_written(now, application.server.take(now), out);
                self.write_due = application.server.due();
            } else if let Some(media) = self.rare.as_mut().and_then(|rare| rare.media.as_mut()) {
                self.write_due = media.send(now, self.index, out);
            }
        }
        if self.ask_due <= now {
            self.ask(now, back);
        }
        self.update_own_due();
        ended
    }

    fn update_own_due(&mut self) {
        let writes = self.write_due.min(self.ask_due);
        self.own_due = self.syn_due.min(self.stop_due).min(self.merge_due).min(writes);
    }

    /// A segment arrived at the receiver in a packet with this codepoint; `more` arrive at the same instant.
    #[inline]
    pub(crate) fn on_segment(
        &mut self,
        now: Time,
        segment: Segment,
        codepoint: Ecn,
        more: bool,
        back: &mut impl ReturnWire,
    ) -> bool {
        if segment.has_flags() {
            return self.on_flags(now, segment, codepoint, more, back);
        }
        self.on_data(now, Arrival::of(&segment, None), more, back)
    }

    /// A SYN, data of a connection that has negotiated ECN, or part of a frame.
    #[inline(never)]
    fn on_flags(
        &mut self,
        now: Time,
        segment: Segment,
        codepoint: Ecn,
        more: bool,
        back: &mut impl ReturnWire,
    ) -> bool {
        match segment.flags() {
            Flags::Syn { ecn } => {
                self.on_syn(now, &segment, ecn, back);
                self.update_receiver_due();
                false
            }
            Flags::Ecn { data, cwr } => {
                self.on_data(now, Arrival::of(&data, Some(Mark { codepoint, cwr })), more, back)
            }
            Flags::Datagram(datagram) => {
                let media = self.rare.as_mut().and_then(|rare| rare.media.as_mut());
                media.expect("a flow of media sent it").receive(now, datagram, !self.has_ended);
                false
            }
        }
    }

    #[inline(always)]
    fn on_data(&mut self, now: Time, arrival: Arrival, more: bool, back: &mut impl ReturnWire) -> bool {
        let ended = if self.merging.is_none() && !more && self.gro == Duration::ZERO {
            self.receive(now, &arrival, back)
        } else {
            self.merge(now, arrival, back)
        };
        self.update_receiver_due();
        ended
    }

    /// GRO: holds data back until data arrives that it cannot be merged with, or the time is up.
    fn merge(&mut self, now: Time, arrival: Arrival, back: &mut impl ReturnWire) -> bool {
        let mut ended = false;
        match &mut self.merging {
            Some(held)
                if held.seq + held.segments as u64 == arrival.seq
                    // Data that ends in a short segment is complete.
                    && held.bytes == held.segments as u64 * self.settings.sender.controller.mss as u64
                    && held.bytes + arrival.bytes <= GRO_MAX_BYTES
                    // Linux: tcp_gro_receive compares the options. Ideal hosts merge whatever is in order.
                    && (!self.is_linux || held.stamp_ms == arrival.stamp_ms)
                    // Whoever learns of marks and reductions must not miss one.
                    && Mark::can_be_merged(held.mark, arrival.mark) =>
            {
                held.segments += 1;
                held.bytes += arrival.bytes;
            }
            _ => {
                self.merge_due = now + self.gro;
                if let Some(held) = self.merging.replace(arrival) {
                    ended = self.receive_merged(now, &held, back);
                }
            }
        }
        // Nothing is merged behind the end of a burst (Linux: `tcp_gro_receive`).
        if self.is_linux
            && carries_push(self.sender.as_ref(), arrival.seq)
            && let Some(held) = self.merging.take()
        {
            self.merge_due = Time::NEVER;
            ended |= self.receive_merged(now, &held, back);
        }
        self.update_own_due();
        ended
    }

    #[inline]
    fn answer(&mut self, now: Time, mut ack: Acknowledgement, back: &mut impl ReturnWire) {
        self.acks_sent += 1;
        ack.stamp_ms = stamp_ms(now) as u16;
        back.send(now, self.index, ack);
    }

    #[inline(always)]
    fn receive(&mut self, now: Time, arrival: &Arrival, back: &mut impl ReturnWire) -> bool {
        let receiver = self.receiver.as_mut().expect("data follows the handshake");
        let mut answer = receiver.on_arrival(now, arrival);
        if self.is_linux && !answer && receiver.delays_ack() {
            // Linux reads a full segment that ends a burst, and acknowledges it, instead of waiting for another one (since 6.7:
            // `tcp_measure_rcv_mss`, `__tcp_cleanup_rbuf`).
            let full = arrival.bytes == self.settings.sender.controller.mss as u64;
            answer = full && carries_push(self.sender.as_ref(), arrival.seq);
        }
        let completed = receiver.delivered_segments() >= self.segments;
        let waits = self.application.is_some() && !self.has_ended;
        if answer {
            let early = receiver.take_early();
            let ack =
                if arrival.mark.is_none() { receiver.acknowledge_plainly() } else { receiver.acknowledge() };
            if let Some(early) = early {
                self.answer(now, early, back);
            }
            self.answer(now, ack, back);
        } else if let Some(early) = receiver.take_early() {
            self.answer(now, early, back);
        }
        if waits {
            self.on_delivered(now, back);
        }
        completed && self.end(now, true)
    }

    /// The client reads the data that has arrived, after TCP has answered it, and may request at once. If not, the ACK of a
    /// whole answer does not wait for more: its last segment is marked as the end of a write (PSH), and acknowledged when it
    /// is read (Linux: `tcp_measure_rcv_mss` and `tcp_cleanup_rbuf`, `ICSK_ACK_PUSHED`).
    #[inline(never)]
    fn on_delivered(&mut self, now: Time, back: &mut impl ReturnWire) {
        let (Some(application), Some(receiver)) = (&mut self.application, &mut self.receiver) else { return };
        application.on_delivered(now, receiver.delivered_bytes());
        self.ask_due = application.ask_due();
        if self.ask_due <= now {
            self.ask(now, back);
        } else if !application.waits() && receiver.delays_ack() {
            let ack = receiver.acknowledge();
            self.answer(now, ack, back);
        }
        self.update_own_due();
    }

    /// The client asks for the next transfer, for the first time or again.
    fn ask(&mut self, now: Time, back: &mut impl ReturnWire) {
        let (Some(application), Some(receiver)) = (&mut self.application, &mut self.receiver) else { return };
        application.ask(now, receiver.rtt());
        self.ask_due = application.ask_due();
        let mut request = receiver.acknowledge();
        if request.kind == AckKind::Duplicate {
            // That report leaves first, by itself.
            let report = std::mem::replace(&mut request, receiver.acknowledge());
            self.answer(now, report, back);
        }
        request.kind = AckKind::Request;
        self.answer(now, request, back);
    }

    #[inline(never)]
    fn receive_merged(&mut self, now: Time, arrival: &Arrival, back: &mut impl ReturnWire) -> bool {
        self.receive(now, arrival, back)
    }

    /// Ends the flow's measures, once; returns whether it did.
    fn end(&mut self, at: Time, completed: bool) -> bool {
        if self.has_ended {
            return false;
        }
        self.has_ended = true;
        let ended = self.measured(at, completed);
        self.past.get_or_insert_default().ended = Some(ended);
        true
    }

    /// What the flow has done by now.
    pub(crate) fn measured(&self, at: Time, completed: bool) -> Ended {
        let of_media = |media: &Media| Written { bytes: media.written_bytes(), all_at: None };
        let written = self.sender.as_ref().map(|sender| sender.written(self.segments));
        Ended {
            at,
            completed,
            delivered_bytes: self.delivered_bytes(),
            counters: self.counters(),
            written: written.or_else(|| self.media().map(of_media)).unwrap_or_default(),
        }
    }

    /// Payload bytes that the receiver's application has.
    pub(crate) fn delivered_bytes(&self) -> u64 {
        let of_media = || self.media().map_or(0, |media| media.delivered_bytes);
        self.receiver.as_ref().map_or_else(of_media, Receiver::delivered_bytes)
    }

    /// What it has sent.
    pub(crate) fn counters(&self) -> Counters {
        let of_media =
            |media: &Media| Counters { segments_sent: media.datagrams_sent(), ..Counters::default() };
        let counters = self.sender.as_ref().map(|sender| sender.counters);
        counters.or_else(|| self.media().map(of_media)).unwrap_or_default()
    }

    /// How long each transfer took, or each complete frame.
    pub(crate) fn transfers_ns(&self) -> Vec<u64> {
        let of_media = || self.media().map_or(Vec::new(), |media| media.delays_ns.clone());
        self.application.as_ref().map_or_else(of_media, |application| application.transfers_ns.clone())
    }

    /// How long playback had stalled by `at`, nanoseconds; `None` unless the flow is a video.
    pub(crate) fn rebuffered_ns(&self, at: Time) -> Option<u64> {
        Some(self.application.as_ref()?.rebuffered(at)?.as_nanos())
    }

    /// Segments that GRO holds back.
    pub(crate) fn merging_segments(&self) -> u64 {
        self.merging.map_or(0, |arrival| arrival.segments as u64)
    }

    /// An acknowledgement arrived at the sender.
    #[inline]
    pub(crate) fn on_acknowledgement(&mut self, now: Time, ack: &Acknowledgement, out: &mut impl Wire) {
        self.acks_arrived += 1;
        match &mut self.sender {
            Some(sender) => {
                let taken = ack.kind != AckKind::Syn && sender.on_ack(now, ack, out);
                if taken && ack.kind == AckKind::Request {
                    self.on_request(now, ack, out);
                }
            }
            None => self.on_syn_answered(now, ack, out),
        }
        if self.has_ended {
            self.close(now);
        }
        self.update_sender_due();
    }

    /// The connection ends when everything has been acknowledged: the last segment has the FIN, and the receiver closes, too. The
    /// FIN of a flow that stops while nothing is outstanding would take a round trip, which is left out.
    #[cold]
    fn close(&mut self, now: Time) {
        if self.past.as_ref().is_none_or(|past| past.left.is_none())
            && let (Some(metrics), Some(sender)) = (&self.settings.metrics, &self.sender)
            && sender.is_done(if self.stops_early() { 0 } else { self.segments })
        {
            let left = metrics.update(now, &sender.ends());
            self.past.get_or_insert_default().left = Some(left);
        }
    }

    /// Whether it was stopped before it had sent everything.
    fn stops_early(&self) -> bool {
        self.ended().is_some_and(|ended| !ended.completed)
    }

    /// What the sending host knew of the path when the flow's connection had ended; of one that goes on, what it would leave at
    /// `end`.
    pub(crate) fn left(&self, end: Time) -> Option<Metrics> {
        let (metrics, sender) = (self.settings.metrics.as_ref()?, self.sender.as_ref()?);
        let left = self.past.as_ref().and_then(|past| past.left);
        Some(left.unwrap_or_else(|| metrics.update(end, &sender.ends())))
    }

    /// A request arrived at the sender, unless it had arrived before, or the flow has stopped.
    #[inline(never)]
    fn on_request(&mut self, now: Time, request: &Acknowledgement, out: &mut impl Wire) {
        if let (Some(application), Some(sender)) = (&mut self.application, &mut self.sender)
            && request.ack == sender.stream().segments()
            && !self.has_ended
        {
            sender.on_written(now, application.server.on_request(), out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sender::SENDING;

    /// Lines of 64 bytes that events need of a flow, besides the windows it points to.
    #[test]
    fn flow_events_touch_few_cache_lines() {
        // The first line is what all events need; then what an arrival needs, and what a pacing timer needs.
        const { assert!(std::mem::offset_of!(Flow, gro) == 64) };
        const { assert!(RECEIVING <= 7 * 64) };
        const { assert!(std::mem::offset_of!(Flow, sender) % 64 == 0 && SENDING <= 9 * 64) };
    }
}
