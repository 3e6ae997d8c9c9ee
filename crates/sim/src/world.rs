//! The loop: whoever is next on the agenda acts.

use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_cc::Config;
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Chain, ConfigError, Packet, capacities};
use fullpipe_record::{
    FlowRecord, FlowSeries, FlowTotals, LinkRecord, LinkSeries, LinkTotals, Provenance, Run,
    World as RunWorld,
};
use fullpipe_scenario::spec::{FlowSpec, Spec, Stream};
use fullpipe_units::{Duration, Rate, Time};

use crate::agenda::Agenda;
use crate::clock::HZ;
use crate::flow::{Flow, FlowConfig, ReturnWire, SYN_BYTES};
use crate::packet::{Acknowledgement, Segment};
use crate::sender::{SenderConfig, Wire};
use crate::series;
use crate::verify::{self, Ends};

/// Linux `TCP_INIT_CWND` (RFC 6928).
const INITIAL_CWND: u32 = 10;
/// Linux `sk_gso_max_size`: 64 KB less the headers that a driver may add (`MAX_TCP_HEADER`, 320 in Debian's kernels).
const GSO_MAX: u32 = 65_536 - 1 - 320;
/// Events between two looks at the cancel flag.
const CANCEL_EVERY: u32 = 1 << 14;

/// Sources of the agenda: the two directions, the sampler, then the flows.
const FORWARD: usize = 0;
const REVERSE: usize = 1;
const SAMPLER: usize = 2;
const FLOWS: usize = 3;

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
    let mut world = World::new(spec, seed).map_err(SimError::Path)?;
    if !world.run(cancel) {
        return Err(SimError::Cancelled);
    }
    Ok(world.into_run(spec, seed))
}

/// The path to the receivers.
struct Forward {
    chain: Chain<Segment>,
    header: u32,
    ends: Ends,
}

impl Wire for Forward {
    #[inline]
    fn send(&mut self, now: Time, segment: Segment) {
        let bytes = if segment.syn { SYN_BYTES } else { segment.payload + self.header };
        self.ends.sent(bytes);
        self.chain.push(now, Packet { bytes, class: segment.flow }, segment);
    }
}

/// The path back.
struct Reverse {
    chain: Chain<Acknowledgement>,
    ends: Ends,
}

impl ReturnWire for Reverse {
    #[inline]
    fn send(&mut self, now: Time, ack: Acknowledgement) {
        let bytes = if ack.syn { SYN_BYTES } else { ack.wire_bytes() };
        self.ends.sent(bytes);
        self.chain.push(now, Packet { bytes, class: ack.flow }, ack);
    }
}

struct World {
    end: Time,
    agenda: Agenda,
    forward: Forward,
    reverse: Reverse,
    flows: Vec<Flow>,
    /// Flows whose measures have not ended.
    open: usize,
    sample_interval: Option<Duration>,
    next_sample: Time,
    flow_series: Vec<FlowSeries>,
    forward_series: Vec<LinkSeries>,
    reverse_series: Vec<LinkSeries>,
}

impl World {
    fn new(spec: &Spec, seed: u64) -> Result<World, ConfigError> {
        let mss = spec.mss();
        let delays =
            |pick: fn(&FlowSpec) -> Duration| -> Vec<Duration> { spec.flows.iter().map(pick).collect() };
        let forward =
            Chain::new(&spec.forward, &delays(|flow| flow.extra_forward_ns), Stream::Forward.seed(seed))?;
        let reverse =
            Chain::new(&spec.reverse, &delays(|flow| flow.extra_reverse_ns), Stream::Reverse.seed(seed))?;
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
                    gso_max: GSO_MAX,
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
                Flow::new(FlowConfig::new(
                    sender,
                    rmem,
                    spec.hosts.gro_ns,
                    flow,
                    flow.start_time(index, seed),
                ))
            })
            .collect();
        let mut agenda = Agenda::new(FLOWS + flows.len());
        for (index, flow) in flows.iter().enumerate() {
            agenda.set(FLOWS + index, flow.next());
        }
        let next_sample = if spec.sample_interval_ns.is_some() { Time::ZERO } else { Time::NEVER };
        agenda.set(SAMPLER, next_sample);
        Ok(World {
            end: Time::ZERO + spec.duration_ns,
            agenda,
            open: flows.len(),
            flow_series: vec![FlowSeries::default(); flows.len()],
            forward_series: vec![LinkSeries::default(); forward.queues()],
            reverse_series: vec![LinkSeries::default(); reverse.queues()],
            forward: Forward { chain: forward, header: Spec::HEADER_BYTES, ends: Ends::default() },
            reverse: Reverse { chain: reverse, ends: Ends::default() },
            flows,
            sample_interval: spec.sample_interval_ns,
            next_sample,
        })
    }

    /// Runs to the end; false when cancelled.
    fn run(&mut self, cancel: &AtomicBool) -> bool {
        let mut events = 0u32;
        loop {
            let (now, source) = self.agenda.next();
            if now > self.end {
                return true;
            }
            match source {
                FORWARD => self.deliver_forward(now),
                REVERSE => self.deliver_reverse(now),
                SAMPLER => self.sample(now),
                _ => {
                    let flow = source - FLOWS;
                    let was_open = self.flows[flow].ended.is_none();
                    self.flows[flow].on_timer(now, &mut self.forward, &mut self.reverse);
                    self.close(flow, was_open);
                    self.settle(flow);
                }
            }
            if self.open == 0 {
                // Nothing is left to measure; the kernel world ends here too.
                self.end = now;
                return true;
            }
            events = events.wrapping_add(1);
            if events.is_multiple_of(CANCEL_EVERY) && cancel.load(Ordering::Relaxed) {
                return false;
            }
        }
    }

    #[inline]
    fn deliver_forward(&mut self, now: Time) {
        while let Some((_, packet, segment)) = self.forward.chain.pop(now) {
            let flow = packet.class as usize;
            self.forward.ends.arrived(packet.bytes);
            let more = self.forward.chain.next() <= now;
            let was_open = self.flows[flow].ended.is_none();
            self.flows[flow].on_segment(now, &segment, more, &mut self.reverse);
            self.close(flow, was_open);
            self.agenda.set(FLOWS + flow, self.flows[flow].next());
        }
        self.agenda.set(FORWARD, self.forward.chain.next());
        self.agenda.set(REVERSE, self.reverse.chain.next());
    }

    #[inline]
    fn deliver_reverse(&mut self, now: Time) {
        while let Some((_, packet, ack)) = self.reverse.chain.pop(now) {
            let flow = packet.class as usize;
            self.reverse.ends.arrived(packet.bytes);
            self.flows[flow].on_acknowledgement(now, &ack, &mut self.forward);
            self.agenda.set(FLOWS + flow, self.flows[flow].next());
        }
        self.agenda.set(FORWARD, self.forward.chain.next());
        self.agenda.set(REVERSE, self.reverse.chain.next());
    }

    /// Counts a flow that has just ended.
    #[inline]
    fn close(&mut self, flow: usize, was_open: bool) {
        self.open -= (was_open && self.flows[flow].ended.is_some()) as usize;
    }

    /// Puts a flow and both directions back on the agenda.
    #[inline]
    fn settle(&mut self, flow: usize) {
        self.agenda.set(FLOWS + flow, self.flows[flow].next());
        self.agenda.set(FORWARD, self.forward.chain.next());
        self.agenda.set(REVERSE, self.reverse.chain.next());
    }

    fn sample(&mut self, now: Time) {
        for (series, flow) in self.flow_series.iter_mut().zip(&self.flows) {
            series::sample_flow(series, now, flow);
        }
        series::sample_links(&mut self.forward_series, now, &self.forward.chain);
        series::sample_links(&mut self.reverse_series, now, &self.reverse.chain);
        if let Some(interval) = self.sample_interval {
            self.next_sample += interval;
            self.agenda.set(SAMPLER, self.next_sample);
        }
    }

    fn into_run(self, spec: &Spec, seed: u64) -> Run {
        verify::flows(&self.flows, &self.forward.ends);
        verify::path("forward", self.forward.chain.counts(), &self.forward.ends);
        verify::path("reverse", self.reverse.chain.counts(), &self.reverse.ends);
        let mut links = link_records(&self.forward.chain, &spec.forward, self.forward_series, self.end);
        links.extend(link_records(&self.reverse.chain, &spec.reverse, self.reverse_series, self.end));
        let end = self.end;
        let flows = self
            .flows
            .iter()
            .zip(self.flow_series)
            .zip(&spec.flows)
            .map(|((flow, series), flow_spec)| FlowRecord {
                label: flow_spec.label.clone(),
                controller: flow_spec.controller.text().to_string(),
                totals: totals(flow, end),
                series,
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

fn link_records<P: Clone>(
    chain: &Chain<P>,
    elements: &[ElementConfig],
    series: Vec<LinkSeries>,
    end: Time,
) -> Vec<LinkRecord> {
    let capacities = capacities(elements, end);
    let queues = (0..chain.queues()).map(|index| chain.queue(index));
    queues
        .zip(series)
        .zip(capacities)
        .map(|((queue, series), capacity_bytes)| {
            let totals = queue.totals(end);
            LinkRecord {
                name: queue.name().to_string(),
                totals: LinkTotals {
                    arrived_packets: totals.arrived.packets,
                    dropped_packets: totals.dropped.packets,
                    accepted_bytes: totals.accepted.bytes.as_u64(),
                    departed_bytes: totals.accepted.bytes.saturating_sub(queue.backlog(end)).as_u64(),
                    capacity_bytes,
                },
                series,
            }
        })
        .collect()
}
