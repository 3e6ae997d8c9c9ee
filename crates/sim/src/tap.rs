//! What a log is told: a path that notes each packet that enters and leaves it, and what the sender made of each event.
//!
//! Only a run that is logged has such a path ([`Simulation::logged`](crate::Simulation::logged)). It carries packets exactly as
//! the other one does. The simulator counts segments; the log counts bytes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullpipe_cc::{CaState, Limits};
use fullpipe_export as export;
use fullpipe_export::{Codepoint, Event, Log, Sent, Trigger, Why};
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Admission, Carrier, Cause, Chain, Change, ConfigError, Counts, Ecn, Packet, QueueView};
use fullpipe_scenario::spec::{FlowSpec, Spec};
use fullpipe_units::{Duration, Rate, Time};

use crate::flow::Flow;
use crate::packet::{AckKind, Acknowledgement, Either, Flags, Load, Segment, widened};
use crate::running::Changing;
use crate::series;
use crate::way::Way;

/// Short segments that a flow remembers: a transfer has one, and only the latest of them matter.
const SHORT: usize = 64;

/// Both ways of a path tell it what they see.
#[derive(Clone)]
pub(crate) struct Tap(Arc<Mutex<Recorder>>);

impl Tap {
    pub(crate) fn new(spec: &Spec, log: Box<dyn Log + Send>) -> Tap {
        let mss = spec.mss();
        let flows = spec.flows.iter().map(|_| FlowTap { mss, ..FlowTap::default() }).collect();
        Tap(Arc::new(Mutex::new(Recorder { log, flows })))
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tap")
    }
}

/// What the reader of a simulation's log must know.
pub fn log_header(title: &str, spec: &Spec, seed: u64) -> export::Header {
    let window_scale = export::Flow::window_scale_of(spec.hosts.tcp_rmem_bytes[2].as_u64());
    let flow = |flow: &FlowSpec| export::Flow {
        label: flow.label.clone(),
        controller: flow.controller.text().to_owned(),
        mss: spec.mss(),
        window_scale,
    };
    export::Header {
        title: title.to_owned(),
        world: "sim".to_owned(),
        seed,
        clock: "virtual",
        protocol: export::Protocol::Tcp,
        flows: spec.flows.iter().map(flow).collect(),
    }
}

/// A packet with its number among those of its flow.
#[derive(Clone, Debug)]
struct Numbered<P> {
    payload: P,
    number: u64,
}

/// What a path can carry and a log can contain.
pub(crate) trait Payload: Clone {
    /// It is offered to the path; returns its number.
    fn offered(&self, recorder: &mut Recorder, now: Time, packet: &Packet) -> u64;
    /// The path dropped it at once.
    fn dropped(&self, recorder: &mut Recorder, now: Time, flow: u32, drop: Dropped<'_>);
    /// It leaves the path.
    fn left(&self, recorder: &mut Recorder, now: Time, packet: &Packet, number: u64);
}

/// A packet that was dropped: its number, why, and by which queue.
#[derive(Clone, Copy)]
pub(crate) struct Dropped<'a> {
    number: u64,
    cause: Cause,
    queue: Option<&'a str>,
}

/// A path with a tap.
#[derive(Debug)]
pub(crate) struct Tapped<P: Clone> {
    chain: Chain<Numbered<P>>,
    tap: Tap,
    /// Whether an element takes bursts whole: then they are handed on whole, and it is not known which of them are dropped.
    whole: bool,
    /// What each queue had dropped before the packet that is offered.
    dropped: Vec<u64>,
}

impl<P: Payload> Tapped<P> {
    pub(crate) fn new(
        tap: &Tap,
        elements: &[ElementConfig],
        class_delays: &[Duration],
        seed: u64,
    ) -> Result<Tapped<P>, ConfigError> {
        let chain = Chain::new(elements, class_delays, seed)?;
        let whole = elements.iter().any(|element| !element.unit().is_segment());
        Ok(Tapped { dropped: vec![0; chain.queues()], chain, tap: tap.clone(), whole })
    }

    /// Offers a packet, and tells if it is dropped at once.
    fn offer(&mut self, now: Time, packet: Packet, payload: P) {
        let number = payload.offered(&mut self.tap.recorder(), now, &packet);
        for (index, dropped) in self.dropped.iter_mut().enumerate() {
            *dropped = self.chain.queue(index).totals(now).dropped.packets;
        }
        let numbered = Numbered { payload: payload.clone(), number };
        if let Admission::Dropped(cause) = self.chain.push(now, packet, numbered) {
            let counts = (0..self.chain.queues()).map(|index| self.chain.queue(index));
            let mut queues = counts.zip(&self.dropped);
            let queue = queues.find(|(queue, before)| queue.totals(now).dropped.packets > **before);
            let dropped = Dropped { number, cause, queue: queue.map(|(queue, _)| queue.name()) };
            payload.dropped(&mut self.tap.recorder(), now, packet.class, dropped);
        }
    }
}

impl<P: Payload> Carrier<P> for Tapped<P> {
    fn new(_: &[ElementConfig], _: &[Duration], _: u64) -> Result<Tapped<P>, ConfigError> {
        unreachable!("a tapped path is built with its tap")
    }

    fn push(&mut self, now: Time, packet: Packet, payload: P) {
        self.offer(now, packet, payload);
    }

    fn push_run(&mut self, now: Time, packet: Packet, count: u32, mut payload: impl FnMut(u32) -> P) {
        if !self.whole {
            return (0..count).for_each(|index| self.offer(now, packet, payload(index)));
        }
        let tap = &self.tap;
        self.chain.push_run(now, packet, count, |index| {
            let payload = payload(index);
            let number = payload.offered(&mut tap.recorder(), now, &packet);
            Numbered { payload, number }
        });
    }

    fn next(&self) -> Time {
        self.chain.next()
    }

    fn pop(&mut self, now: Time) -> Option<(Time, Packet, P)> {
        let (due, packet, Numbered { payload, number }) = self.chain.pop(now)?;
        payload.left(&mut self.tap.recorder(), now, &packet, number);
        Some((due, packet, payload))
    }

    fn pop_with<T>(&mut self, now: Time, take: impl FnOnce(Packet, &P) -> T) -> Option<T> {
        self.pop(now).map(|(_, packet, payload)| take(packet, &payload))
    }

    fn is_due(&mut self, now: Time) -> bool {
        self.chain.is_due(now)
    }

    fn ahead(&self, places: usize) -> Option<(Packet, &P)> {
        self.chain.ahead(places).map(|(packet, numbered)| (packet, &numbered.payload))
    }

    fn prefetch(&self, places: usize) {
        self.chain.prefetch(places);
    }

    fn settle(&mut self, now: Time) {
        self.chain.settle(now);
    }

    fn counts(&self) -> Counts {
        self.chain.counts()
    }

    fn queues(&self) -> usize {
        self.chain.queues()
    }

    fn queue(&self, index: usize) -> QueueView<'_> {
        self.chain.queue(index)
    }
}

impl<P: Clone> Changing for Tapped<P> {
    fn change(&mut self, _: Time, _: usize, _: Time, _: Change) {
        unreachable!("a logged path is built as fixed")
    }
}

impl<L: Load + Payload> Way for Tapped<L> {
    type Load = L;

    fn after_event(&mut self, now: Time, flow: &Flow) {
        self.tap.recorder().after_event(now, flow);
    }
}

impl Payload for Segment {
    fn offered(&self, recorder: &mut Recorder, now: Time, packet: &Packet) -> u64 {
        if is_datagram(self) {
            return 0;
        }
        recorder.flows[packet.class as usize].segment_offered(now, self, packet)
    }

    fn dropped(&self, recorder: &mut Recorder, _: Time, flow: u32, drop: Dropped<'_>) {
        if is_datagram(self) {
            return;
        }
        let Dropped { number, cause, queue } = drop;
        let queue = queue.map(str::to_owned);
        let syn = is_syn(self);
        // It is told after the packet itself, at the end of the event.
        recorder.flows[flow as usize].waiting.push(Waiting::Drop { number, syn, cause, queue });
    }

    fn left(&self, recorder: &mut Recorder, now: Time, packet: &Packet, number: u64) {
        if is_datagram(self) {
            return;
        }
        let arrival = export::Arrival { number, syn: is_syn(self), codepoint: codepoint(packet.ecn) };
        recorder.log.take(now, packet.class, &Event::Arrived(&arrival));
    }
}

impl Payload for Acknowledgement {
    fn offered(&self, recorder: &mut Recorder, _: Time, packet: &Packet) -> u64 {
        let flow = &mut recorder.flows[packet.class as usize];
        let counter = if self.kind == AckKind::Syn { &mut flow.answers_sent } else { &mut flow.acks_sent };
        *counter += 1;
        *counter - 1
    }

    fn dropped(&self, recorder: &mut Recorder, now: Time, flow: u32, drop: Dropped<'_>) {
        let syn = self.kind == AckKind::Syn;
        let Dropped { number, cause, queue } = drop;
        let drop = export::Drop { number, acknowledgement: true, syn, queue, cause: cause_name(cause) };
        recorder.log.take(now, flow, &Event::Dropped(&drop));
    }

    fn left(&self, recorder: &mut Recorder, now: Time, packet: &Packet, number: u64) {
        let Recorder { log, flows } = recorder;
        let ack = flows[packet.class as usize].acknowledged(now, self, packet, number);
        log.take(now, packet.class, &Event::Acknowledged(&ack));
    }
}

impl Payload for Either {
    fn offered(&self, recorder: &mut Recorder, now: Time, packet: &Packet) -> u64 {
        match self {
            Either::Segment(segment) => segment.offered(recorder, now, packet),
            Either::Acknowledgement(ack) => ack.offered(recorder, now, packet),
        }
    }

    fn dropped(&self, recorder: &mut Recorder, now: Time, flow: u32, drop: Dropped<'_>) {
        match self {
            Either::Segment(segment) => segment.dropped(recorder, now, flow, drop),
            Either::Acknowledgement(ack) => ack.dropped(recorder, now, flow, drop),
        }
    }

    fn left(&self, recorder: &mut Recorder, now: Time, packet: &Packet, number: u64) {
        match self {
            Either::Segment(segment) => segment.left(recorder, now, packet, number),
            Either::Acknowledgement(ack) => ack.left(recorder, now, packet, number),
        }
    }
}

/// Tells the log.
pub(crate) struct Recorder {
    log: Box<dyn Log + Send>,
    flows: Vec<FlowTap>,
}

/// What a flow has shown so far.
#[derive(Debug, Default)]
struct FlowTap {
    mss: u32,
    syns_sent: u64,
    /// Data segments sent, those sent again counted too.
    sent: u64,
    answers_sent: u64,
    acks_sent: u64,
    /// The next segment to be sent for the first time.
    next: u64,
    /// Segments from `una` to `next`.
    una: u64,
    out: VecDeque<Out>,
    /// Short segments: the number of the next one, and by how many bytes all before it are short of full ones.
    short: VecDeque<(u64, u64)>,
    /// Requests that have arrived, and the number that the last of them acknowledged.
    requests: u64,
    last_request: Option<u64>,
    /// What left during the present event, in order.
    waiting: Vec<Waiting>,
    /// The sender's counts after the last event.
    lost: u64,
    timeouts: u64,
    state: export::State,
}

/// A segment that is out.
#[derive(Clone, Copy, Debug)]
struct Out {
    /// The number of its last transmission.
    number: u64,
    /// That one was taken for lost.
    lost: bool,
}

/// What is told at the end of an event.
#[derive(Debug)]
enum Waiting {
    /// A segment with this number left; if it was sent before, with what was known of that transmission.
    Sent {
        sent: Sent,
        seq: u64,
        before: Option<Out>,
    },
    Drop {
        number: u64,
        syn: bool,
        cause: Cause,
        queue: Option<String>,
    },
}

impl FlowTap {
    /// The first byte of a segment.
    fn offset(&self, seq: u64) -> u64 {
        let short = self.short.iter().rev().find(|(next, _)| *next <= seq);
        seq * self.mss as u64 - short.map_or(0, |(_, missing)| *missing).min(seq * self.mss as u64)
    }

    /// A segment is sent; returns its number.
    fn segment_offered(&mut self, now: Time, segment: &Segment, packet: &Packet) -> u64 {
        let flags = segment.has_flags().then(|| segment.flags());
        let sent = Sent {
            codepoint: codepoint(packet.ecn),
            length: packet.bytes,
            stamp: segment.stamp_ms,
            ..Sent::default()
        };
        if let Some(Flags::Syn { ecn }) = flags {
            let sent = Sent { number: self.syns_sent, syn: true, ece: ecn, cwr: ecn, ..sent };
            self.syns_sent += 1;
            self.waiting.push(Waiting::Sent { sent, seq: 0, before: None });
            return sent.number;
        }
        let (data, cwr) = match flags {
            Some(Flags::Ecn { data, cwr }) => (data, cwr),
            _ => (*segment, false),
        };
        let number = self.sent;
        self.sent += 1;
        let out = Out { number, lost: false };
        let before = if data.seq < self.next {
            let place = data.seq.checked_sub(self.una).map(|place| place as usize);
            place.and_then(|place| self.out.get_mut(place)).map(|place| std::mem::replace(place, out))
        } else {
            self.out.push_back(out);
            self.next = data.seq + 1;
            if (data.payload as u32) < self.mss {
                let missing = self.short.back().map_or(0, |(_, missing)| *missing);
                self.short.push_back((self.next, missing + (self.mss - data.payload as u32) as u64));
                if self.short.len() > SHORT {
                    self.short.pop_front();
                }
            }
            None
        };
        let sent = Sent {
            number,
            start: self.offset(data.seq),
            payload: data.payload as u32,
            cwr,
            echo: widened(now, data.echo_ms),
            requests: self.requests,
            ..sent
        };
        self.waiting.push(Waiting::Sent { sent, seq: data.seq, before });
        number
    }

    /// An acknowledgement arrives at the sender.
    fn acknowledged(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        packet: &Packet,
        number: u64,
    ) -> export::Acknowledgement {
        let mut sack = [(0, 0); 4];
        for (bytes, (start, end)) in sack.iter_mut().zip(ack.sack()).take(ack.blocks()) {
            *bytes = (self.offset(start), self.offset(end));
        }
        let request = ack.kind == AckKind::Request;
        let repeated = request && self.last_request == Some(ack.ack);
        let reported = export::Acknowledgement {
            number,
            syn: ack.kind == AckKind::Syn,
            ack: self.offset(ack.ack),
            edge: ack.window_edge,
            sack,
            blocks: ack.blocks() as u8,
            duplicate: ack.kind == AckKind::Duplicate,
            ece: ack.echoes(),
            codepoint: codepoint(packet.ecn),
            start: self.requests - repeated as u64,
            payload: request as u32,
            length: packet.bytes,
            stamp: widened(now, ack.stamp_ms),
            echo: ack.echo_ms,
        };
        if request && !repeated {
            self.last_request = Some(ack.ack);
            self.requests += 1;
        }
        while self.una < ack.ack && self.out.pop_front().is_some() {
            self.una += 1;
        }
        reported
    }
}

impl Recorder {
    /// Tells what the sender made of an event: what it takes for lost, what it sent, and what it believes.
    fn after_event(&mut self, now: Time, flow: &Flow) {
        let index = flow.index();
        let Recorder { log, flows } = self;
        let tap = &mut flows[index as usize];
        if let Some(sender) = &flow.sender {
            let board = sender.board();
            let timed_out =
                sender.counters.timeouts > std::mem::replace(&mut tap.timeouts, sender.counters.timeouts);
            let trigger = Some(if timed_out { Trigger::Timeout } else { Trigger::Reordering });
            // A timeout takes the last transmission of the first segment for lost, too, if that is marked already.
            if sender.lost() != std::mem::replace(&mut tap.lost, sender.lost()) || timed_out {
                let mut lost = Vec::new();
                // Lost and sent again in one event.
                for waiting in &mut tap.waiting {
                    if let Waiting::Sent { seq, before: Some(out), .. } = waiting
                        && !out.lost
                        && *seq >= board.una
                        && board.is_lost(*seq)
                    {
                        out.lost = true;
                        lost.push((*seq, out.number));
                    }
                }
                for (place, out) in tap.out.iter_mut().enumerate() {
                    let seq = tap.una + place as u64;
                    if !out.lost && seq >= board.una && board.is_lost(seq) && !board.is_retransmitted(seq) {
                        out.lost = true;
                        lost.push((seq, out.number));
                    }
                }
                lost.sort_unstable();
                for (seq, number) in lost {
                    let start = tap.offset(seq);
                    let payload = (tap.offset(seq + 1) - start) as u32;
                    let loss = export::Loss { number, start, payload, trigger };
                    log.take(now, index, &Event::Lost(&loss));
                }
            }
        }
        let timed_out = flow.sender.as_ref().is_some_and(|sender| sender.state() == CaState::Loss);
        for waiting in tap.waiting.drain(..) {
            match waiting {
                Waiting::Sent { mut sent, before, .. } => {
                    sent.again = before.map(|out| match out.lost {
                        false => Why::Probe,
                        true if timed_out => Why::TimedOut,
                        true => Why::Lost,
                    });
                    log.take(now, index, &Event::Sent(&sent));
                }
                Waiting::Drop { number, syn, cause, queue } => {
                    let (queue, cause) = (queue.as_deref(), cause_name(cause));
                    let drop = export::Drop { number, acknowledgement: false, syn, queue, cause };
                    log.take(now, index, &Event::Dropped(&drop));
                }
            }
        }
        if let Some(state) = state(now, flow, tap.mss)
            && state != tap.state
        {
            tap.state = state;
            log.take(now, index, &Event::State(&state));
        }
    }
}

/// What sender and controller believe.
fn state(now: Time, flow: &Flow, mss: u32) -> Option<export::State> {
    let sample = series::sample(now, flow)?;
    let bytes = |segments: u32| segments as u64 * mss as u64;
    Some(export::State {
        cwnd: Some(bytes(sample.cwnd)),
        ssthresh: (sample.ssthresh < Limits::INFINITE).then(|| bytes(sample.ssthresh)),
        pacing_bps: sample.pacing_bps.filter(|bps| *bps < Rate::MAX.as_bits_per_sec()),
        in_flight: Some(bytes(sample.inflight)),
        segments_in_flight: Some(sample.inflight as u64),
        srtt_ns: sample.srtt_ns,
        min_rtt_ns: sample.min_rtt_ns,
        phase: Some(sample.phase.name()),
        recovery: Some(sample.ca_state.name()),
    })
}

fn is_syn(segment: &Segment) -> bool {
    segment.has_flags() && matches!(segment.flags(), Flags::Syn { .. })
}

/// Whether it is of media, whose packets are in no log: the formats have one protocol for all flows.
fn is_datagram(segment: &Segment) -> bool {
    segment.has_flags() && matches!(segment.flags(), Flags::Datagram(_))
}

fn codepoint(ecn: Ecn) -> Codepoint {
    Codepoint(ecn as u8)
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::QueueFull => "queue_full",
        Cause::Lost => "lost",
        Cause::Policed => "policed",
        Cause::Oversize => "oversize",
        Cause::Early => "early",
    }
}
