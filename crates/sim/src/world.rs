//! The main loop: the next source on the agenda acts.

mod rounds;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_cc::{Config, Limits};
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Carrier, ConfigError, Ecn, Packet};
use fullpipe_record::{
    FlowRecord, FlowSeries, FlowTotals, LinkRecord, LinkSeries, Provenance, QueueSample, Run, WorldName,
};
use fullpipe_scenario::spec::{FlowSpec, Randomness, Spec};
use fullpipe_units::{Duration, Rate, Time};

use crate::agenda::Agenda;
use crate::ahead::Lookahead;
use crate::application::Application;
use crate::clock::HZ;
use crate::flow::{Flow, FlowConfig, ReturnWire, Settings};
use crate::hosts::{self, Hosts};
use crate::media::Media;
use crate::packet::{Acknowledgement, Load, Segment};
use crate::sender::metrics::{Beginning, Shared};
use crate::sender::send_buffer::Growth;
use crate::sender::{MarkableRun, SenderConfig, Wire};
use crate::series;
use crate::verify;
use crate::way::Way;

use self::rounds::Rounds;

/// Linux `TCP_INIT_CWND` (RFC 6928).
const INITIAL_CWND: u32 = 10;
/// Events between two checks of the cancel flag.
const CANCEL_EVERY: u32 = 1 << 14;

/// Sources of the agenda: the sampler, then the flows. The two directions are queried directly; at equal times they come
/// first, forward before reverse.
pub(crate) const SAMPLER: usize = 0;
pub(crate) const FLOWS: usize = 1;

/// One direction of the path.
#[derive(Debug)]
pub(crate) struct Direction<C> {
    pub(crate) chain: C,
    header: u32,
}

impl<C: Way> Wire for Direction<C> {
    #[inline]
    fn send(&mut self, now: Time, flow: u32, segment: Segment, ecn: Ecn) {
        let packet = Packet::new(segment.wire_bytes(), flow).with_ecn(ecn);
        self.chain.push(now, packet, C::Load::of_segment(segment));
    }

    #[inline(never)]
    fn send_run(&mut self, now: Time, flow: u32, first: Segment, count: u32) {
        let packet = Packet::new(first.payload as u32 + self.header, flow);
        let segment = |index| Segment { seq: first.seq + index as u64, ..first };
        self.chain.push_run(now, packet, count, |index| C::Load::of_segment(segment(index)));
    }

    fn send_markable_run(&mut self, now: Time, flow: u32, run: MarkableRun) {
        let MarkableRun { first, count, cwr, codepoint } = run;
        let packet = Packet::new(first.payload as u32 + self.header, flow).with_ecn(codepoint);
        let segment = |index| Segment { seq: first.seq + index as u64, ..first }.with_ecn(cwr && index == 0);
        self.chain.push_run(now, packet, count, |index| C::Load::of_segment(segment(index)));
    }
}

impl<C: Way> ReturnWire for Direction<C> {
    #[inline]
    fn send(&mut self, now: Time, flow: u32, ack: Acknowledgement) {
        if ack.is_plain() {
            let packet = Packet::new(ack.wire_bytes(), flow);
            return self.chain.push(now, packet, C::Load::of_acknowledgement(ack));
        }
        self.send_any(now, flow, &ack);
    }
}

impl<C: Way> Direction<C> {
    /// [`ReturnWire::send`] of an acknowledgement that says more.
    #[inline(never)]
    fn send_any(&mut self, now: Time, flow: u32, ack: &Acknowledgement) {
        let packet = Packet::new(ack.wire_bytes(), flow).with_ecn(ack.codepoint());
        self.chain.push(now, packet, C::Load::of_acknowledgement(*ack));
    }
}

/// Everything in a run: `A` knows what is next; `F` carries packets to the receivers, `R` those back. Flows of the direction
/// `reverse` have their senders where the others have their receivers.
#[derive(Debug)]
pub(crate) struct World<A, F, R> {
    /// Everything until then has happened, if it has begun.
    pub(crate) now: Time,
    begun: bool,
    /// When the run ends: with the scenario, or with its last flow.
    pub(crate) end: Time,
    pub(crate) agenda: A,
    ahead: Lookahead,
    pub(crate) forward: Direction<F>,
    pub(crate) reverse: Direction<R>,
    pub(crate) flows: Vec<Flow>,
    /// `None` for ideal ones.
    pub(crate) hosts: Option<Box<Hosts>>,
    /// Flows whose measures have not ended.
    pub(crate) open: usize,
    pub(crate) sample_interval: Option<Duration>,
    pub(crate) samples_flows: bool,
    /// Of every flow, if flows are sampled; none take memory if not.
    pub(crate) flow_series: Vec<FlowSeries>,
    no_series: FlowSeries,
    pub(crate) forward_series: Vec<LinkSeries>,
    pub(crate) reverse_series: Vec<LinkSeries>,
    /// `None` where all events are handled one at a time.
    pub(crate) rounds: Option<Box<Rounds>>,
    /// A run of fewer flows has none.
    pub(crate) least_flows: usize,
    /// What its rounds break, so that a test can catch it.
    #[cfg(test)]
    pub(crate) breach: Option<crate::world::rounds::tests::Breach>,
}

impl<A: Agenda, F: Way, R: Way> World<A, F, R> {
    /// The world before the run; `forward` and `reverse` build the path.
    pub(crate) fn new(
        spec: &Spec,
        seed: u64,
        forward: impl FnOnce(&[ElementConfig], &[Duration], u64) -> Result<F, ConfigError>,
        reverse: impl FnOnce(&[ElementConfig], &[Duration], u64) -> Result<R, ConfigError>,
    ) -> Result<World<A, F, R>, ConfigError> {
        let mss = spec.mss();
        let delays =
            |pick: fn(&FlowSpec) -> Duration| -> Vec<Duration> { spec.flows.iter().map(pick).collect() };
        let forward =
            forward(&spec.forward, &delays(|flow| flow.extra_forward_ns), Randomness::Forward.seed(seed))?;
        let reverse =
            reverse(&spec.reverse, &delays(|flow| flow.extra_reverse_ns), Randomness::Reverse.seed(seed))?;
        // Of the senders' host, and of the other one, where flows of the reverse direction begin.
        let kept = || spec.hosts.metrics.as_ref().map(Shared::new);
        let metrics = [kept(), kept()];
        let mut kind: Option<Arc<Settings>> = None;
        let flows: Vec<Flow> = spec
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| {
                let params = flow.controller.params().copied();
                let controller = Config {
                    mss,
                    unit: mss,
                    initial_cwnd: INITIAL_CWND,
                    cwnd_clamp: flow.max_cwnd.unwrap_or(u32::MAX),
                    max_pacing_rate: Rate::MAX,
                    gso_max: Config::GSO_MAX,
                    max_tcp_header: Config::MAX_TCP_HEADER,
                    paced: flow.is_paced(&spec.hosts),
                    hz: HZ,
                    ssthresh: Limits::INFINITE,
                };
                let sender = SenderConfig {
                    flow: 0,
                    controller,
                    params,
                    ecn: flow.ecn(&spec.hosts),
                    gso_max_segs: spec.hosts.gso_max_segs,
                    full_piece: hosts::full_piece(spec, &flow.workload),
                    send_buffer: spec.hosts.tcp_wmem_bytes[2].as_u64(),
                    growth: (!spec.hosts.model.is_ideal()).then(|| Growth {
                        first: spec.hosts.tcp_wmem_bytes[1].as_u64(),
                        most: spec.hosts.tcp_wmem_bytes[2].as_u64(),
                    }),
                    checks_stamps: !spec.hosts.model.is_ideal(),
                    random_seed: 0,
                    pacing_timer: None,
                    beginning: Beginning::default(),
                };
                let start = flow.start_time(index, seed);
                let application = Application::new(&flow.workload, start);
                let settings = match &kind {
                    Some(known) if known.are_for(&sender, flow) => Arc::clone(known),
                    _ => {
                        let metrics = metrics[flow.is_reverse() as usize].clone();
                        Arc::new(Settings::new(sender, flow, &spec.hosts, metrics, seed))
                    }
                };
                kind = Some(Arc::clone(&settings));
                let late = hosts::late(spec, index, seed);
                let config = FlowConfig::new(settings, index, late, flow, start);
                Flow::new(config, application, Media::new(&flow.workload, mss, start))
            })
            .collect();
        let mut agenda = A::new(FLOWS + flows.len());
        for (index, flow) in flows.iter().enumerate() {
            agenda.set(FLOWS + index, flow.next());
        }
        if spec.sample_interval_ns.is_some() {
            agenda.set(SAMPLER, Time::ZERO);
        }
        let samples_flows = spec.sample_flows && spec.sample_interval_ns.is_some();
        Ok(World {
            now: Time::ZERO,
            begun: false,
            end: Time::ZERO + spec.duration_ns,
            agenda,
            ahead: Lookahead::new(flows.len()),
            open: flows.len(),
            flow_series: vec![FlowSeries::default(); if samples_flows { flows.len() } else { 0 }],
            no_series: FlowSeries::default(),
            forward_series: vec![LinkSeries::default(); forward.queues()],
            reverse_series: vec![LinkSeries::default(); reverse.queues()],
            forward: Direction { chain: forward, header: Spec::HEADER_BYTES },
            reverse: Direction { chain: reverse, header: Spec::HEADER_BYTES },
            flows,
            hosts: Hosts::new(spec, seed),
            sample_interval: spec.sample_interval_ns,
            samples_flows,
            rounds: None,
            least_flows: rounds::LEAST_FLOWS,
            #[cfg(test)]
            breach: None,
        })
    }

    /// The samples of a flow so far.
    pub(crate) fn flow_series(&self, flow: usize) -> &FlowSeries {
        self.flow_series.get(flow).unwrap_or(&self.no_series)
    }

    /// Whether anything can have happened.
    pub(crate) fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether nothing more will happen.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0 || (self.begun && self.now >= self.end)
    }

    /// Runs to `until`, what happens then included, or to the end; false when cancelled.
    pub(crate) fn advance(&mut self, until: Time, cancel: &AtomicBool) -> bool {
        if !self.begun {
            self.begun = true;
            self.rounds = self.rounds();
        }
        let until = until.min(self.end);
        let done = match self.rounds.take() {
            Some(mut rounds) if !F::Load::MIXED => {
                let done = self.advance_in_rounds(&mut rounds, until, cancel);
                self.rounds = Some(rounds);
                done
            }
            _ => self.advance_by_events(until, cancel),
        };
        if done {
            self.reach(until.min(self.end));
        }
        done
    }

    /// Whether every flow's measures have ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.open == 0
    }

    /// [`World::advance`], an event at a time.
    pub(crate) fn advance_by_events(&mut self, until: Time, cancel: &AtomicBool) -> bool {
        let mut events = 0u32;
        let ahead = self.ahead.is_on();
        while self.open > 0 {
            let (mut forward, mut reverse) = (self.forward.chain.next(), self.reverse.chain.next());
            if let Some(hosts) = &self.hosts {
                forward = hosts.receivers.next(forward);
                reverse = hosts.senders.next(reverse);
            }
            let mut now = forward.min(reverse);
            let mut source = None;
            if self.agenda.bound() < now {
                let first = self.agenda.first();
                if first.0 < now {
                    now = first.0;
                    source = Some(first.1);
                }
            }
            if now > until {
                break;
            }
            match source {
                None if forward == now => self.deliver_forward(now),
                None => self.deliver_reverse(now),
                Some(SAMPLER) => self.sample(now),
                Some(source) => self.wake(source - FLOWS, now),
            }
            if ahead {
                let next = self.agenda.likely().map(|source| source.wrapping_sub(FLOWS));
                self.ahead.at_timers(next, &self.flows);
            }
            events = events.wrapping_add(1);
            if events.is_multiple_of(CANCEL_EVERY) && cancel.load(Ordering::Relaxed) {
                self.reach(now);
                return false;
            }
            if self.open == 0 {
                // Nothing is left to measure; the kernel world ends here too.
                self.end = now;
            }
        }
        true
    }

    /// Notes that everything until `now` has happened, and lets the path know.
    pub(crate) fn reach(&mut self, now: Time) {
        self.now = self.now.max(now);
        self.settle(self.now);
    }

    /// Brings the path up to `now`.
    pub(crate) fn settle(&mut self, now: Time) {
        self.forward.chain.settle(now);
        self.reverse.chain.settle(now);
    }

    /// Hands the receivers all packets that arrive now.
    #[inline]
    fn deliver_forward(&mut self, now: Time) {
        if let Some(hosts) = &mut self.hosts
            && !hosts.receivers.handles(now, &mut self.forward.chain, &mut hosts.latest)
        {
            return;
        }
        loop {
            if self.ahead.is_on() {
                Lookahead::at_segment(&self.forward.chain, &self.flows);
            }
            // Returned in one piece, they would go through memory, and be read before they are there.
            let (mut index, mut codepoint, mut segment) = (0, Ecn::NotEct, Segment::syn(0, false));
            let mut ack = None;
            let taken = self.forward.chain.pop_with(now, |packet, load| {
                (index, codepoint) = (packet.class as usize, packet.ecn);
                if let Some(found) = load.segment() {
                    segment = *found;
                } else if F::Load::MIXED {
                    ack = load.acknowledgement().copied();
                }
            });
            let Some(()) = taken else { return };
            let more = self.forward.chain.is_due(now);
            let flow = &mut self.flows[index];
            let ended = if F::Load::MIXED
                && let Some(ack) = &ack
            {
                flow.on_acknowledgement(now, ack, &mut self.reverse);
                false
            } else {
                flow.on_segment(now, segment, codepoint, more, &mut self.reverse)
            };
            self.forward.chain.after_event(now, flow);
            self.agenda.set(FLOWS + index, flow.next());
            self.open -= ended as usize;
            if !more {
                return;
            }
        }
    }

    /// Hands the senders all packets that arrive now.
    fn deliver_reverse(&mut self, now: Time) {
        if let Some(hosts) = &mut self.hosts
            && !hosts.senders.handles(now, &mut self.reverse.chain, &mut hosts.latest)
        {
            return;
        }
        while self.reverse.chain.next() <= now {
            if self.ahead.is_on() {
                Lookahead::at_acknowledgement(&self.reverse.chain, &self.flows);
            }
            let mut data = None;
            self.reverse.chain.pop_with(now, |packet, load| {
                let Some(ack) = load.acknowledgement() else {
                    data = load.segment().map(|segment| (packet, *segment));
                    return;
                };
                let flow = &mut self.flows[packet.class as usize];
                flow.on_acknowledgement(now, ack, &mut self.forward);
                self.forward.chain.after_event(now, flow);
                self.agenda.set(FLOWS + packet.class as usize, flow.next());
            });
            if R::Load::MIXED
                && let Some((packet, segment)) = data
            {
                self.deliver_data_back(now, packet, segment);
            }
        }
    }

    /// Hands its receiver a segment of a flow in the reverse direction.
    fn deliver_data_back(&mut self, now: Time, packet: Packet, segment: Segment) {
        let more = self.reverse.chain.is_due(now);
        let flow = &mut self.flows[packet.class as usize];
        let ended = flow.on_segment(now, segment, packet.ecn, more, &mut self.forward);
        self.forward.chain.after_event(now, flow);
        self.agenda.set(FLOWS + packet.class as usize, flow.next());
        self.open -= ended as usize;
    }

    /// A flow has something to do by itself.
    #[inline]
    fn wake(&mut self, index: usize, now: Time) {
        let flow = &mut self.flows[index];
        let ended = if F::Load::MIXED && flow.is_reverse() {
            flow.on_timer(now, &mut self.reverse, &mut self.forward)
        } else {
            flow.on_timer(now, &mut self.forward, &mut self.reverse)
        };
        self.forward.chain.after_event(now, flow);
        self.agenda.set(FLOWS + index, flow.next());
        self.open -= ended as usize;
    }

    fn sample(&mut self, now: Time) {
        if self.samples_flows {
            for (series, flow) in self.flow_series.iter_mut().zip(&self.flows) {
                series::push(now, flow, series);
            }
        }
        self.forward.chain.settle(now);
        self.reverse.chain.settle(now);
        sample_links(&mut self.forward_series, now, &self.forward.chain);
        sample_links(&mut self.reverse_series, now, &self.reverse.chain);
        if let Some(interval) = self.sample_interval {
            self.agenda.set(SAMPLER, now + interval);
        }
    }

    /// The record of the time until now. `spec` has what was changed meanwhile.
    pub(crate) fn into_run(self, spec: &Spec, seed: u64) -> Run {
        let books = verify::Books::of(&self.flows);
        verify::path("forward", self.forward.chain.counts(), books.forward);
        verify::path("reverse", self.reverse.chain.counts(), books.reverse);
        let mut links = link_records(&self.forward.chain, &spec.forward, self.forward_series, self.now);
        links.extend(link_records(&self.reverse.chain, &spec.reverse, self.reverse_series, self.now));
        let end = self.now;
        // First what a record needs of them, because thousands of flows take more memory than all else.
        let done: Vec<_> = self.flows.into_iter().map(|flow| Done::of(&flow, end)).collect();
        let mut all_series = self.flow_series.into_iter();
        let flows = done
            .into_iter()
            .zip(&spec.flows)
            .map(|(Done { totals, transfers_ns, rebuffered_ns }, flow)| FlowRecord {
                label: flow.label.clone(),
                controller: flow.controller.text().to_string(),
                transfers_ns,
                rebuffered_ns,
                totals,
                series: all_series.next().unwrap_or_default(),
            })
            .collect();
        Run {
            provenance: Provenance {
                world: WorldName::Sim,
                seed,
                spec_json: spec.to_json(),
                version: env!("CARGO_PKG_VERSION").to_string(),
                host: String::new(),
                kernel: String::new(),
                sysctls: Vec::new(),
                lateness: None,
                processor: None,
                untrustworthy: Vec::new(),
                unsupported: Vec::new(),
            },
            flows,
            links,
        }
    }
}

/// What a flow has done, for its record.
struct Done {
    totals: FlowTotals,
    transfers_ns: Vec<u64>,
    rebuffered_ns: Option<u64>,
}

impl Done {
    fn of(flow: &Flow, end: Time) -> Done {
        let totals = totals(flow, end);
        let rebuffered_ns = flow.rebuffered_ns(Time::from_nanos(totals.end_ns));
        Done { transfers_ns: flow.transfers_ns(), rebuffered_ns, totals }
    }
}

fn totals(flow: &Flow, end: Time) -> FlowTotals {
    let ended = flow.ended().unwrap_or_else(|| flow.measured(end, false));
    let start_ns = flow.start.as_nanos();
    FlowTotals {
        reverse: flow.is_reverse(),
        start_ns,
        end_ns: ended.at.as_nanos().max(start_ns),
        completed: ended.completed,
        delivered_bytes: ended.delivered_bytes,
        segments_sent: ended.counters.segments_sent,
        retransmits: ended.counters.retransmits,
        timeouts: ended.counters.timeouts,
        undos: ended.counters.undos,
        echoed_segments: None,
        written_bytes: Some(ended.written.bytes),
        written_ns: ended.written.all_at.map(Time::as_nanos),
        metrics: flow.left(end),
        seen: None,
        frames: flow.media().map(|media| media.frames(ended.at)),
    }
}

/// Appends the present state of a direction's queues.
pub(crate) fn sample_links<P>(series: &mut [LinkSeries], now: Time, chain: &impl Carrier<P>) {
    for (index, series) in series.iter_mut().enumerate() {
        series.sample(QueueSample::of(chain.queue(index), now));
    }
}

fn link_records<P>(
    chain: &impl Carrier<P>,
    elements: &[ElementConfig],
    series: Vec<LinkSeries>,
    end: Time,
) -> Vec<LinkRecord> {
    LinkRecord::of_path(elements, (0..chain.queues()).map(|index| chain.queue(index)), series, end)
}
