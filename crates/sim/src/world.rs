//! The main loop: the next source on the agenda acts.

use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_cc::Config;
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Carrier, Chain, ConfigError, Hops, Packet, capacities};
use fullpipe_record::{
    FlowRecord, FlowSeries, FlowTotals, LinkRecord, LinkSeries, Provenance, Run, World as RunWorld,
};
use fullpipe_scenario::spec::{FlowSpec, Spec, Stream};
use fullpipe_units::{Duration, Rate, Time};

use crate::agenda::{Agenda, Plain, Winners};
use crate::application::Application;
use crate::clock::HZ;
use crate::flow::{Flow, FlowConfig, ReturnWire, SYN_BYTES};
use crate::packet::{AckKind, Acknowledgement, Segment};
use crate::sender::{SenderConfig, Wire};
use crate::series;
use crate::verify;

/// Linux `TCP_INIT_CWND` (RFC 6928).
const INITIAL_CWND: u32 = 10;
/// Events between two checks of the cancel flag.
const CANCEL_EVERY: u32 = 1 << 14;

/// Sources of the agenda: the sampler, then the flows. The two directions are queried directly; at equal times they come
/// first, forward before reverse.
const SAMPLER: usize = 0;
const FLOWS: usize = 1;

/// Why a run gave no record.
#[derive(Debug)]
pub enum SimError {
    /// It was cancelled.
    Cancelled,
    /// The path cannot be built.
    Path(ConfigError),
}

impl std::fmt::Display for SimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SimError::Cancelled => write!(f, "the run was cancelled"),
            SimError::Path(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for SimError {}

/// Runs a scenario. `seed` replaces the one in `spec`. Setting `cancel` ends the run soon.
///
/// # Errors
/// When the run is cancelled, or when the path cannot be built (`scenario` resolves only paths that can).
///
/// # Panics
/// When packets or bytes are not conserved: a defect of the simulator.
pub fn run(spec: &Spec, seed: u64, cancel: &AtomicBool) -> Result<Run, SimError> {
    World::<Winners, Chain<Segment>, Chain<Acknowledgement>>::record(spec, seed, cancel)
}

/// The oracle of [`run`]: the same record by the simplest means, one event for each packet and hop, from one heap for each
/// direction and one for all timers. Tests compare [`run`] with it; it is slower, and has no other use.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`].
// Compiled only where it is called: a second caller of everything would change what is inlined into `run`.
#[inline]
pub fn run_plainly(spec: &Spec, seed: u64, cancel: &AtomicBool) -> Result<Run, SimError> {
    World::<Plain, Hops<Segment>, Hops<Acknowledgement>>::record(spec, seed, cancel)
}

/// The path to the receivers.
struct Forward<F> {
    chain: F,
    header: u32,
}

impl<F: Carrier<Segment>> Wire for Forward<F> {
    #[inline]
    fn send(&mut self, now: Time, flow: u32, segment: Segment) {
        let bytes = if segment.is_syn() { SYN_BYTES } else { segment.payload as u32 + self.header };
        self.chain.push(now, Packet { bytes, class: flow }, segment);
    }

    #[inline]
    fn send_run(&mut self, now: Time, flow: u32, first: Segment, count: u32) {
        let packet = Packet { bytes: first.payload as u32 + self.header, class: flow };
        self.chain.push_run(now, packet, count, |index| Segment { seq: first.seq + index as u64, ..first });
    }
}

/// The path back.
struct Reverse<R> {
    chain: R,
}

impl<R: Carrier<Acknowledgement>> ReturnWire for Reverse<R> {
    #[inline]
    fn send(&mut self, now: Time, flow: u32, ack: Acknowledgement) {
        let bytes = if ack.kind == AckKind::Syn { SYN_BYTES } else { ack.wire_bytes() };
        self.chain.push(now, Packet { bytes, class: flow }, ack);
    }
}

/// Everything in a run: `A` knows what is next; `F` carries the senders' packets, `R` the receivers'.
struct World<A, F, R> {
    end: Time,
    agenda: A,
    forward: Forward<F>,
    reverse: Reverse<R>,
    flows: Vec<Flow>,
    /// Flows whose measures have not ended.
    open: usize,
    sample_interval: Option<Duration>,
    sample_flows: bool,
    flow_series: Vec<FlowSeries>,
    forward_series: Vec<LinkSeries>,
    reverse_series: Vec<LinkSeries>,
}

impl<A: Agenda, F: Carrier<Segment>, R: Carrier<Acknowledgement>> World<A, F, R> {
    /// Runs a scenario from start to end.
    fn record(spec: &Spec, seed: u64, cancel: &AtomicBool) -> Result<Run, SimError> {
        let mut world: World<A, F, R> = World::new(spec, seed).map_err(SimError::Path)?;
        if !world.run(cancel) {
            return Err(SimError::Cancelled);
        }
        Ok(world.into_run(spec, seed))
    }

    fn new(spec: &Spec, seed: u64) -> Result<World<A, F, R>, ConfigError> {
        let mss = spec.mss();
        let delays =
            |pick: fn(&FlowSpec) -> Duration| -> Vec<Duration> { spec.flows.iter().map(pick).collect() };
        let forward =
            F::new(&spec.forward, &delays(|flow| flow.extra_forward_ns), Stream::Forward.seed(seed))?;
        let reverse =
            R::new(&spec.reverse, &delays(|flow| flow.extra_reverse_ns), Stream::Reverse.seed(seed))?;
        let flows: Vec<Flow> = spec
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| {
                let params = *flow.controller.params();
                let controller = Config {
                    mss,
                    initial_cwnd: INITIAL_CWND,
                    cwnd_clamp: flow.max_cwnd.unwrap_or(u32::MAX),
                    max_pacing_rate: Rate::MAX,
                    gso_max: Config::GSO_MAX,
                    max_tcp_header: Config::MAX_TCP_HEADER,
                    paced: flow.is_paced(&spec.hosts),
                    hz: HZ,
                };
                let sender = SenderConfig {
                    flow: index as u32,
                    controller,
                    params,
                    send_buffer: spec.hosts.tcp_wmem_bytes[2].as_u64(),
                    random_seed: Stream::Controller(index).seed(seed),
                };
                let rmem = spec.hosts.tcp_rmem_bytes.map(|bytes| bytes.as_u64());
                let start = flow.start_time(index, seed);
                let application = Application::new(&flow.workload, start);
                Flow::new(FlowConfig::new(sender, rmem, spec.hosts.gro_ns, flow, start), application)
            })
            .collect();
        let mut agenda = A::new(FLOWS + flows.len());
        for (index, flow) in flows.iter().enumerate() {
            agenda.set(FLOWS + index, flow.next());
        }
        if spec.sample_interval_ns.is_some() {
            agenda.set(SAMPLER, Time::ZERO);
        }
        Ok(World {
            end: Time::ZERO + spec.duration_ns,
            agenda,
            open: flows.len(),
            flow_series: vec![FlowSeries::default(); flows.len()],
            forward_series: vec![LinkSeries::default(); forward.queues()],
            reverse_series: vec![LinkSeries::default(); reverse.queues()],
            forward: Forward { chain: forward, header: Spec::HEADER_BYTES },
            reverse: Reverse { chain: reverse },
            flows,
            sample_interval: spec.sample_interval_ns,
            sample_flows: spec.sample_flows,
        })
    }

    /// Runs to the end; false when cancelled.
    fn run(&mut self, cancel: &AtomicBool) -> bool {
        let mut events = 0u32;
        while self.open > 0 {
            let (forward, reverse) = (self.forward.chain.next(), self.reverse.chain.next());
            let mut now = forward.min(reverse);
            let mut source = None;
            if self.agenda.bound() < now {
                let first = self.agenda.first();
                if first.0 < now {
                    now = first.0;
                    source = Some(first.1);
                }
            }
            if now > self.end {
                return true;
            }
            match source {
                None if forward == now => self.deliver_forward(now),
                None => self.deliver_reverse(now),
                Some(SAMPLER) => self.sample(now),
                Some(source) => self.wake(source - FLOWS, now),
            }
            events = events.wrapping_add(1);
            if events.is_multiple_of(CANCEL_EVERY) && cancel.load(Ordering::Relaxed) {
                return false;
            }
            if self.open == 0 {
                // Nothing is left to measure; the kernel world ends here too.
                self.end = now;
            }
        }
        true
    }

    /// Hands the receivers all packets that arrive now.
    #[inline]
    fn deliver_forward(&mut self, now: Time) {
        while let Some((_, packet, segment)) = self.forward.chain.pop(now) {
            let more = self.forward.chain.is_due(now);
            let flow = &mut self.flows[packet.class as usize];
            let ended = flow.on_segment(now, &segment, more, &mut self.reverse);
            self.agenda.set(FLOWS + packet.class as usize, flow.next());
            self.open -= ended as usize;
            if !more {
                return;
            }
        }
    }

    /// Hands the senders all packets that arrive now.
    fn deliver_reverse(&mut self, now: Time) {
        while self.reverse.chain.next() <= now {
            self.reverse.chain.pop_with(now, |packet, ack| {
                let flow = &mut self.flows[packet.class as usize];
                flow.on_acknowledgement(now, ack, &mut self.forward);
                self.agenda.set(FLOWS + packet.class as usize, flow.next());
            });
        }
    }

    /// A flow has something to do by itself.
    #[inline]
    fn wake(&mut self, index: usize, now: Time) {
        let flow = &mut self.flows[index];
        let ended = flow.on_timer(now, &mut self.forward, &mut self.reverse);
        self.agenda.set(FLOWS + index, flow.next());
        self.open -= ended as usize;
    }

    fn sample(&mut self, now: Time) {
        if self.sample_flows {
            for (series, flow) in self.flow_series.iter_mut().zip(&self.flows) {
                if let Some(sample) = series::sample(now, flow) {
                    series.push(sample);
                }
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

    fn into_run(mut self, spec: &Spec, seed: u64) -> Run {
        let books = verify::Books::of(&self.flows);
        verify::path("forward", self.forward.chain.counts(), books.forward);
        verify::path("reverse", self.reverse.chain.counts(), books.reverse);
        // The last flow may have ended before all events of that instant.
        self.forward.chain.settle(self.end);
        self.reverse.chain.settle(self.end);
        let mut links = link_records(&self.forward.chain, &spec.forward, self.forward_series, self.end);
        links.extend(link_records(&self.reverse.chain, &spec.reverse, self.reverse_series, self.end));
        let end = self.end;
        let flows = self
            .flows
            .iter()
            .zip(self.flow_series)
            .zip(&spec.flows)
            .map(|((flow, series), flow_spec)| {
                let totals = totals(flow, end);
                FlowRecord {
                    label: flow_spec.label.clone(),
                    controller: flow_spec.controller.text().to_string(),
                    transfers_ns: flow.transfers_ns(),
                    rebuffered_ns: flow.rebuffered_ns(Time::from_nanos(totals.end_ns)),
                    totals,
                    series,
                }
            })
            .collect();
        Run {
            provenance: Provenance {
                world: RunWorld::Sim,
                seed,
                spec_json: spec.to_json(),
                version: env!("CARGO_PKG_VERSION").to_string(),
                host: String::new(),
                kernel: String::new(),
                sysctls: Vec::new(),
                lateness: None,
                untrustworthy: Vec::new(),
            },
            flows,
            links,
        }
    }
}

fn totals(flow: &Flow, end: Time) -> FlowTotals {
    let ended = flow.ended.unwrap_or_else(|| flow.measured(end, false));
    let start_ns = flow.config.start.as_nanos();
    FlowTotals {
        start_ns,
        end_ns: ended.at.as_nanos().max(start_ns),
        completed: ended.completed,
        delivered_bytes: ended.delivered_bytes,
        segments_sent: ended.counters.segments_sent,
        retransmits: ended.counters.retransmits,
        timeouts: ended.counters.timeouts,
        undos: ended.counters.undos,
    }
}

/// Appends the present state of a direction's queues.
fn sample_links<P>(series: &mut [LinkSeries], now: Time, chain: &impl Carrier<P>) {
    for (index, series) in series.iter_mut().enumerate() {
        series.sample(series::sample_queue(now, chain.queue(index)));
    }
}

fn link_records<P>(
    chain: &impl Carrier<P>,
    elements: &[ElementConfig],
    series: Vec<LinkSeries>,
    end: Time,
) -> Vec<LinkRecord> {
    let queues = (0..chain.queues()).map(|index| chain.queue(index));
    let each = queues.zip(series).zip(capacities(elements, end));
    each.map(|((queue, series), capacity_bytes)| {
        LinkRecord::new(queue.name(), series::sample_queue(end, queue), capacity_bytes, series)
    })
    .collect()
}
