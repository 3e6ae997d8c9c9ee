//! The main loop: the next thing that is due happens.

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::BytesMut;
use fullpipe_export::Log;
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Carrier, Chain, Change, Counts};
use fullpipe_record::{
    FlowRecord, FlowSeries, FlowTotals, LinkRecord, LinkSeries, Provenance, QueueSample, Run, UNKNOWN,
    WorldName,
};
use fullpipe_scenario::spec::{FlowSpec, Randomness, Spec};
use fullpipe_units::{Bytes, Duration, Time};

use crate::cc::{self, Own};
use crate::error::QuicError;
use crate::flow::{Ends, Flow, max_window};
use crate::linked::Linked;
use crate::options::{Options, stacks, takes_bursts};
use crate::outside::{Outside, Tail, described};
use crate::refusal::refuses_with;
use crate::stack::OutsideStack;
use crate::tap::Tap;
use crate::unsupported::unsupported;
use crate::watch::{self, Beat};
use crate::wire::Wire;

/// Events between two checks of the cancel flag.
const CANCEL_EVERY: u32 = 1 << 10;
/// What the path may hold: its datagrams are in memory. The same as in the kernel world.
const MOST_HELD: Bytes = Bytes::new(2_000_000_000);
/// More events than this at one instant are a loop without end, in this world or in a stack.
const MOST_AT_ONCE: u32 = 10_000_000;

/// Everything in a run. It lives on the run's thread.
pub(crate) struct World {
    /// Who receives each event.
    watch: Option<&'static Beat>,
    pub(crate) now: Time,
    begun: bool,
    /// When the run ends: with the scenario, or with its last flow.
    pub(crate) end: Time,
    forward: Wire,
    reverse: Wire,
    pub(crate) flows: Vec<Box<dyn Flow>>,
    /// The delays at the end of each direction that flows do by themselves, because their stacks have processes of their own.
    tails: [Tail; 2],
    /// Those stacks, each once.
    outside: Vec<OutsideStack>,
    /// When each flow next has something to do by itself. All are looked at for each event: an event of a stack takes as long as
    /// hundreds of comparisons. With a tree, a run of 1000 flows takes as long, and one of 10,000 flows a tenth
    /// less.
    due: Vec<Time>,
    /// Flows of which datagrams arrived in this instant.
    touched: Vec<usize>,
    open: usize,
    sample_due: Time,
    sample_interval: Option<Duration>,
    sample_flows: bool,
    flow_series: Vec<FlowSeries>,
    forward_series: Vec<LinkSeries>,
    reverse_series: Vec<LinkSeries>,
    scratch: Vec<u8>,
    at_once: u32,
    most_held: Bytes,
}

impl World {
    /// The world before the run. A path that nobody changes may be `fixed`, which is faster. `log` receives the packets.
    pub(crate) fn new(
        spec: &Spec,
        seed: u64,
        options: Options,
        own: &[Own],
        fixed: bool,
        log: Option<Box<dyn Log + Send>>,
    ) -> Result<World, QuicError> {
        if let Some(refused) = refuses_with(spec, own) {
            return Err(QuicError::Refused(refused));
        }
        let chosen: Vec<cc::Chosen> = spec
            .flows
            .iter()
            .enumerate()
            .map(|(index, flow)| {
                let seed = Randomness::Controller(index).seed(seed);
                cc::choose(&flow.controller, own, seed, max_window(spec, flow)).ok_or_else(|| {
                    QuicError::Refused(format!("{} is not a controller of this world", flow.controller))
                })
            })
            .collect::<Result<_, QuicError>>()?;
        let outside: Vec<bool> = chosen.iter().map(|one| one.outside().is_some()).collect();
        if log.is_some() && outside.contains(&true) {
            return Err(QuicError::Refused(
                "qlog: a stack in a process of its own shows no frames; leave qlog out".to_owned(),
            ));
        }
        let mut stacks_outside: Vec<OutsideStack> = Vec::new();
        for choice in chosen.iter().filter_map(cc::Chosen::outside) {
            if stacks_outside.iter().all(|stack| stack.name != choice.stack.name) {
                stacks_outside.push((*choice.stack).clone());
            }
        }
        let tails = [&spec.forward, &spec.reverse].map(|elements| Tail::of(elements, &outside, fixed));
        let extras: [fn(&FlowSpec) -> Duration; 2] =
            [|flow| flow.extra_forward_ns, |flow| flow.extra_reverse_ns];
        let chain = |way: usize, elements: &[ElementConfig], stream: Randomness| {
            let build = if fixed { Chain::<BytesMut>::new } else { Chain::<BytesMut>::changing };
            let (tail, extra) = (&tails[way], extras[way]);
            let delay = |(flow, &outside): (&FlowSpec, &bool)| tail.in_chain(outside, extra(flow));
            let delays: Vec<Duration> = spec.flows.iter().zip(&outside).map(delay).collect();
            build(&elements[..tail.begins], &delays, stream.seed(seed))
        };
        let bursts = takes_bursts(spec);
        let forward = chain(0, &spec.forward, Randomness::Forward)?;
        let reverse = chain(1, &spec.reverse, Randomness::Reverse)?;
        let mut taps = log.map(|log| Tap::all(spec.flows.len(), log)).unwrap_or_default().into_iter();
        let flows: Vec<Box<dyn Flow>> = spec
            .flows
            .iter()
            .enumerate()
            .zip(chosen)
            .map(|((index, flow), chosen)| -> Result<Box<dyn Flow>, QuicError> {
                if let Some(stack) = chosen.outside() {
                    let delays = [0, 1].map(|way| tails[way].by_flow(extras[way](flow)));
                    let flow = Outside::start(index, spec, flow, seed, options, stack, delays)
                        .map_err(QuicError::Refused)?;
                    return Ok(Box::new(flow));
                }
                let mut flow = Linked::new(index, spec, flow, seed, options, chosen);
                flow.tap(taps.next());
                Ok(Box::new(flow))
            })
            .collect::<Result<_, QuicError>>()?;
        let watch = watch::beat();
        if let Some(beat) = watch {
            beat.name_flows(flows.iter().map(|flow| flow.label().to_owned()).collect());
        }
        Ok(World {
            watch,
            now: Time::ZERO,
            begun: false,
            end: Time::ZERO + spec.duration_ns,
            due: flows.iter().map(|flow| flow.next()).collect(),
            touched: Vec::new(),
            open: flows.len(),
            sample_due: spec.sample_interval_ns.map_or(Time::NEVER, |_| Time::ZERO),
            sample_interval: spec.sample_interval_ns,
            sample_flows: spec.sample_flows,
            flow_series: vec![FlowSeries::default(); flows.len()],
            forward_series: vec![LinkSeries::default(); forward.queues()],
            reverse_series: vec![LinkSeries::default(); reverse.queues()],
            forward: Wire::new(forward, bursts, false),
            reverse: Wire::new(reverse, bursts, true),
            flows,
            tails,
            outside: stacks_outside,
            scratch: Vec::with_capacity(64 << 10),
            at_once: 0,
            most_held: MOST_HELD,
        })
    }

    /// Whether nothing more will happen.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0 || (self.begun && self.now >= self.end)
    }

    /// Runs to `until`, what happens then included, or to the end.
    pub(crate) fn advance(&mut self, until: Time, cancel: &AtomicBool) -> Result<(), QuicError> {
        if cancel.load(Ordering::Relaxed) {
            return Err(QuicError::Cancelled);
        }
        let until = until.min(self.end);
        self.begun = true;
        let mut events = 0u32;
        while self.open > 0 {
            let arrivals = self.forward.chain.next().min(self.reverse.chain.next());
            let (timer, index) = self.first_timer();
            let now = arrivals.min(timer).min(self.sample_due);
            if now > until || now == Time::NEVER {
                break;
            }
            // A stack may name a time that is past.
            let now = now.max(self.now);
            self.at_once = if now == self.now { self.at_once + 1 } else { 0 };
            assert!(self.at_once < MOST_AT_ONCE, "nothing moves on at {now}");
            self.now = now;
            if let Some(beat) = self.watch {
                beat.begin(now);
            }
            // At equal times: what arrives, the sampler, and then timers.
            if arrivals <= now {
                self.deliver(now)?;
            } else if self.sample_due <= now {
                self.sample(now);
            } else {
                self.watch_flow(index);
                let flow = &mut self.flows[index];
                let was_open = flow.ended().is_none();
                let horizon = until.min(self.sample_due);
                flow.on_timer(now, horizon, &mut self.forward, &mut self.reverse, &mut self.scratch)
                    .map_err(|reason| lost(flow.label(), reason))?;
                self.open -= usize::from(was_open && flow.ended().is_some());
                self.due[index] = flow.next();
            }
            events = events.wrapping_add(1);
            if events.is_multiple_of(CANCEL_EVERY) {
                if cancel.load(Ordering::Relaxed) {
                    return Err(QuicError::Cancelled);
                }
                self.check_held()?;
            }
            if self.open == 0 {
                // Nothing is left to measure; the other worlds end here too.
                self.end = self.now;
            }
        }
        if let Some(beat) = self.watch {
            beat.pause();
        }
        self.now = self.now.max(until.min(self.end));
        self.settle();
        Ok(())
    }

    /// Refuses to hold more datagrams than there is memory for.
    fn check_held(&self) -> Result<(), QuicError> {
        let inside = |wire: &Wire| wire.chain.counts().inside.bytes;
        let held = inside(&self.forward) + inside(&self.reverse);
        if held <= self.most_held {
            return Ok(());
        }
        Err(QuicError::Refused(format!(
            "path.rate: after {} the path holds {held}, and the world quic keeps at most {} in memory (rate x (rtt + buffer)); \
             choose a lower path.rate, a shorter path.rtt or a smaller path.buffer, or the world sim",
            self.now, self.most_held
        )))
    }

    #[inline]
    fn watch_flow(&self, index: usize) {
        if let Some(beat) = self.watch {
            beat.of_flow(index);
        }
    }

    /// Asks a flow. Its controller and its stack are watched meanwhile, as in an event.
    pub(crate) fn ask<T>(&mut self, index: usize, question: impl FnOnce(&mut dyn Flow, Time) -> T) -> T {
        if let Some(beat) = self.watch {
            beat.begin(self.now);
            beat.of_flow(index);
        }
        let answer = question(&mut *self.flows[index], self.now);
        if let Some(beat) = self.watch {
            beat.pause();
        }
        answer
    }

    fn settle(&mut self) {
        self.forward.chain.settle(self.now);
        self.reverse.chain.settle(self.now);
    }

    #[inline]
    fn first_timer(&self) -> (Time, usize) {
        let mut first = (Time::NEVER, 0);
        for (index, &due) in self.due.iter().enumerate() {
            if due < first.0 {
                first = (due, index);
            }
        }
        first
    }

    /// Hands over all that arrives now, and lets those act that got something: receivers, then senders.
    fn deliver(&mut self, now: Time) -> Result<(), QuicError> {
        while let Some((_, packet, datagram)) = self.forward.chain.pop(now) {
            let index = packet.class as usize;
            self.watch_flow(index);
            let flow = &mut self.flows[index];
            flow.on_forward(now, packet.ecn, datagram, &mut self.reverse, &mut self.scratch);
            if self.touched.last() != Some(&index) {
                self.touched.push(index);
            }
        }
        while let Some(index) = self.touched.pop() {
            self.watch_flow(index);
            let flow = &mut self.flows[index];
            let was_open = flow.ended().is_none();
            flow.drive_receiver(now, &mut self.reverse, &mut self.scratch)
                .map_err(|reason| lost(flow.label(), reason))?;
            self.open -= usize::from(was_open && flow.ended().is_some());
            self.due[index] = flow.next();
        }
        while let Some((_, packet, datagram)) = self.reverse.chain.pop(now) {
            let index = packet.class as usize;
            self.watch_flow(index);
            let flow = &mut self.flows[index];
            flow.on_reverse(now, packet.ecn, datagram, &mut self.forward, &mut self.scratch);
            if self.touched.last() != Some(&index) {
                self.touched.push(index);
            }
        }
        while let Some(index) = self.touched.pop() {
            self.watch_flow(index);
            let flow = &mut self.flows[index];
            flow.drive_sender(now, &mut self.forward, &mut self.scratch)
                .map_err(|reason| lost(flow.label(), reason))?;
            self.due[index] = flow.next();
        }
        Ok(())
    }

    fn sample(&mut self, now: Time) {
        if self.sample_flows {
            for (index, (series, flow)) in self.flow_series.iter_mut().zip(&mut self.flows).enumerate() {
                if let Some(beat) = self.watch {
                    beat.of_flow(index);
                }
                if let Some(sample) = flow.sample(now) {
                    series.push(sample);
                    flow.on_sampled(now);
                }
            }
        }
        self.settle();
        sample_links(&mut self.forward_series, now, &self.forward.chain);
        sample_links(&mut self.reverse_series, now, &self.reverse.chain);
        self.sample_due = self.sample_interval.map_or(Time::NEVER, |interval| now + interval);
    }

    /// Changes an element of the forward path, or of the reverse one.
    pub(crate) fn change(&mut self, forward: bool, index: usize, from: Time, change: Change) {
        let tail = &mut self.tails[usize::from(!forward)];
        if let Some(by) = tail.change(index, change) {
            for flow in &mut self.flows {
                flow.set_delay(forward, by);
            }
            return;
        }
        let wire = if forward { &mut self.forward } else { &mut self.reverse };
        wire.chain.change(self.now, index, from, change);
    }

    /// The queues as they are now, those of the forward path first.
    pub(crate) fn queues(&self) -> Vec<(String, QueueSample)> {
        let of = |chain: &Chain<BytesMut>| -> Vec<(String, QueueSample)> {
            let queues = (0..chain.queues()).map(|index| chain.queue(index));
            queues.map(|queue| (queue.name().to_owned(), QueueSample::of(queue, self.now))).collect()
        };
        let mut queues = of(&self.forward.chain);
        queues.extend(of(&self.reverse.chain));
        queues
    }

    /// Bytes that wait in all queues now.
    pub(crate) fn backlog_bytes(&self) -> u64 {
        let of = |chain: &Chain<BytesMut>| -> u64 {
            let queues = (0..chain.queues()).map(|index| chain.queue(index));
            queues.map(|queue| QueueSample::of(queue, self.now).backlog_bytes).sum()
        };
        of(&self.forward.chain) + of(&self.reverse.chain)
    }

    /// What flows of stacks in processes of their own have sent, if they note it.
    pub(crate) fn trace(&self) -> Vec<u8> {
        self.flows.iter().flat_map(|flow| flow.trace()).copied().collect()
    }

    /// The record of the time until now. `spec` has what was changed meanwhile.
    ///
    /// The series are handed over: a second record would have none.
    pub(crate) fn record(&mut self, spec: &Spec, seed: u64, options: Options) -> Run {
        self.check();
        let (there, back) =
            (std::mem::take(&mut self.forward_series), std::mem::take(&mut self.reverse_series));
        let mut links = link_records(&self.forward.chain, &spec.forward, there, self.now);
        links.extend(link_records(&self.reverse.chain, &spec.reverse, back, self.now));
        let series = std::mem::take(&mut self.flow_series);
        let flows = spec.flows.iter().zip(series).enumerate();
        let flows = flows
            .map(|(index, (flow_spec, series))| {
                self.ask(index, |flow, end| {
                    let totals = totals(flow, end);
                    FlowRecord {
                        label: flow_spec.label.clone(),
                        controller: flow_spec.controller.text().to_string(),
                        transfers_ns: flow.transfers_ns().to_vec(),
                        rebuffered_ns: flow.rebuffered_ns(Time::from_nanos(totals.end_ns)),
                        totals,
                        series,
                    }
                })
            })
            .collect();
        Run {
            provenance: Provenance {
                world: WorldName::Quic,
                seed,
                spec_json: spec.to_json(),
                version: env!("CARGO_PKG_VERSION").to_string(),
                host: String::new(),
                kernel: stacks()
                    .iter()
                    .map(|stack| format!("{}-proto {}", stack.name, stack.version))
                    .chain(self.outside.iter().map(|stack| format!("{} {}", stack.name, stack.about.version)))
                    .collect::<Vec<_>>()
                    .join(", "),
                // Not in the scenario, but it decides results.
                sysctls: [("quic.batch".to_owned(), options.batch.to_string())]
                    .into_iter()
                    .chain(
                        self.outside.iter().map(|stack| (format!("stack.{}", stack.name), described(stack))),
                    )
                    .collect(),
                lateness: None,
                processor: None,
                untrustworthy: Vec::new(),
                unsupported: unsupported(spec, &self.outside),
            },
            flows,
            links,
        }
    }

    /// Datagrams and bytes are conserved: what was sent was delivered, dropped, or is in flight. It compares the path's account
    /// with that of the ends, and the sender's with its stack's.
    fn check(&mut self) {
        let mut ends = [Ends::default(); 2];
        for index in 0..self.flows.len() {
            let of_flow = self.ask(index, |flow, _| {
                flow.check();
                flow.ends()
            });
            for (sum, of_flow) in ends.iter_mut().zip(of_flow) {
                sum.sent += of_flow.sent;
                sum.arrived += of_flow.arrived;
            }
        }
        check_path("forward", self.forward.chain.counts(), ends[0]);
        check_path("reverse", self.reverse.chain.counts(), ends[1]);
    }
}

fn lost(label: &str, reason: String) -> QuicError {
    QuicError::Connection { flow: label.to_owned(), reason }
}

/// Panics when packets or bytes appeared or vanished on the path.
fn check_path(direction: &str, counts: Counts, ends: Ends) {
    assert_eq!(counts.entered.packets, ends.sent, "{direction}: not what was sent: {counts:?}");
    assert_eq!(counts.left.packets, ends.arrived, "{direction}: not what came: {counts:?}");
    let (came, gone) =
        (counts.entered + counts.duplicated, counts.left + counts.dropped_total() + counts.inside);
    assert_eq!(came, gone, "{direction}: packets or bytes appeared or vanished on the path: {counts:?}");
}

fn totals(flow: &mut dyn Flow, end: Time) -> FlowTotals {
    let ended = match flow.ended() {
        Some(ended) => ended,
        None => flow.measured(end, false),
    };
    let start_ns = flow.start().as_nanos();
    FlowTotals {
        reverse: false,
        start_ns,
        end_ns: ended.at.as_nanos().max(start_ns),
        completed: ended.completed,
        delivered_bytes: ended.delivered_bytes,
        segments_sent: ended.datagrams,
        retransmits: ended.lost.unwrap_or(UNKNOWN),
        timeouts: ended.collapses.unwrap_or(UNKNOWN),
        undos: ended.undone.unwrap_or(UNKNOWN),
        echoed_segments: None,
        written_bytes: Some(ended.written),
        written_ns: ended.written_at.map(Time::as_nanos),
        metrics: None,
        seen: None,
        frames: None,
    }
}

/// Appends the present state of a direction's queues.
fn sample_links(series: &mut [LinkSeries], now: Time, chain: &Chain<BytesMut>) {
    for (index, series) in series.iter_mut().enumerate() {
        series.sample(QueueSample::of(chain.queue(index), now));
    }
}

fn link_records(
    chain: &Chain<BytesMut>,
    elements: &[ElementConfig],
    series: Vec<LinkSeries>,
    end: Time,
) -> Vec<LinkRecord> {
    LinkRecord::of_path(elements, (0..chain.queues()).map(|index| chain.queue(index)), series, end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::{Format, resolve};

    #[test]
    fn memory_limit_ends_run_naming_keys() {
        let document = "duration = \"5 s\"\npath = { rate = \"100 Mbit/s\", rtt = \"400 ms\" }\nflows = [{ controller = \"noq:cubic\" }]";
        let spec = resolve(document, Format::Toml, None).unwrap();
        let run = |most_held: Bytes| {
            crate::run::begin(1).unwrap();
            let mut world = World::new(&spec, 1, Options::default(), &[], true, None).unwrap();
            world.most_held = most_held;
            world.advance(Time::NEVER, &AtomicBool::new(false)).map(|()| world.now)
        };
        // A bandwidth-delay product, the queue, and acknowledgements: below 11 MB.
        assert_eq!(run(Bytes::new(11_000_000)).unwrap(), Time::ZERO + spec.duration_ns);
        let error = run(Bytes::new(1_000_000)).unwrap_err().to_string();
        assert!(
            error.starts_with("path.rate: after ") && error.contains("keeps at most 1 MB in memory"),
            "{error}"
        );
        assert!(error.contains("a shorter path.rtt or a smaller path.buffer"), "{error}");
    }
}
