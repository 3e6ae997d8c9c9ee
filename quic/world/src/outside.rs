//! A flow whose stack is in a process of its own, behind the protocol of `quic/adapters/PROTOCOL.md`.
//!
//! The process has both ends of the connection and both applications. It is asked by turns. A turn covers the time from now to just
//! before the earliest arrival of anything that leaves now: nothing that leaves in it can arrive in it, so that all that arrives in
//! it is known when it begins. For that, the delays at the end of the path, which are the same for every packet, are not the
//! chain's but this file's ([`Tail`]): what comes out of the chain arrives so much later. A run by turns of an instant each gives
//! the same packets (`Options::instants`).

mod process;
mod protocol;

use std::collections::{BTreeMap, VecDeque};

use bytes::BytesMut;
use fullpipe_cc::{CaState, Limits};
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Change, Ecn, Packet};
use fullpipe_record::{Sample, UNKNOWN};
use fullpipe_scenario::spec::{EcnUse, FlowSpec, Randomness, Spec, Workload};
use fullpipe_units::{Duration, Time};
use serde_json::json;

use self::process::Process;
use self::protocol::{Arrival, Event, Reported, TELLS, Turn};
use crate::cc::phase_by_threshold;
use crate::flow::{Ended, Ends, Flow, Sampled, payload};
use crate::linked::receive_window;
use crate::options::{HEADER_BYTES, Options};
use crate::stack::{Choice, Layer, OutsideStack, StackAbout};
use crate::wire::Wire;

/// The bytes that IP and TCP put around a segment of a stack that hands over whole IP packets.
const IP_TCP_BYTES: u64 = 40;
/// What a QUIC packet has around a stream's bytes (`linked.rs`).
const AROUND_STREAM: u64 = 34;
/// The most bytes of datagrams that wait for the times at which they leave.
const MOST_WAITING: usize = 256 << 20;
/// The most turns in a row in which nothing arrives and nothing leaves, within [`IDLE`]. Timers of a stack are milliseconds apart.
const MOST_IDLE: u32 = 1000;
const IDLE: Duration = Duration::from_millis(1);

/// The end of a direction, behind which there is nothing but constant delays.
#[derive(Clone, Debug)]
pub(crate) struct Tail {
    /// The index of its first element; as many as there are elements if the chain does all of them.
    pub(crate) begins: usize,
    delays: Vec<Duration>,
}

impl Tail {
    /// The tail of a direction whose flows are outside, or are not. A path that is not `fixed` can change: then the flows that the
    /// chain serves need the delay to be in the chain.
    pub(crate) fn of(elements: &[ElementConfig], outside: &[bool], fixed: bool) -> Tail {
        let takes = outside.contains(&true) && (fixed || !outside.contains(&false));
        let constant = |element: &ElementConfig| match element {
            ElementConfig::Delay { delay_ns } if delay_ns.changes.is_empty() => Some(delay_ns.initial),
            _ => None,
        };
        let mut delays: Vec<Duration> = elements.iter().rev().map_while(constant).filter(|_| takes).collect();
        delays.reverse();
        Tail { begins: elements.len() - delays.len(), delays }
    }

    fn sum(&self) -> Duration {
        let nanos = self.delays.iter().fold(0u64, |sum, delay| sum.saturating_add(delay.as_nanos()));
        Duration::from_nanos(nanos)
    }

    /// What the chain adds at its end for a flow that has so much of its own.
    pub(crate) fn in_chain(&self, outside: bool, extra: Duration) -> Duration {
        if outside { Duration::ZERO } else { self.by_flow(extra) }
    }

    /// What such a flow does by itself if it is outside.
    pub(crate) fn by_flow(&self, extra: Duration) -> Duration {
        Duration::from_nanos(self.sum().as_nanos().saturating_add(extra.as_nanos()))
    }

    /// Takes a change of one of its elements; returns what they come to. `None` if it is another's.
    pub(crate) fn change(&mut self, index: usize, change: Change) -> Option<Duration> {
        let delay = self.delays.get_mut(index.checked_sub(self.begins)?)?;
        if let Change::Delay(to) = change {
            *delay = to;
        }
        Some(self.sum())
    }
}

/// A direction behind the chain.
#[derive(Debug)]
struct Behind {
    /// The flow's own delay.
    extra: Duration,
    delay: Duration,
    /// What is on its way, in order.
    arriving: VecDeque<Arrival>,
    latest: Time,
}

impl Behind {
    fn new(delay: Duration, extra: Duration) -> Behind {
        Behind { extra, delay, arriving: VecDeque::new(), latest: Time::ZERO }
    }

    fn push(&mut self, now: Time, end: u8, ecn: Ecn, datagram: BytesMut) {
        // As the chain's own delay does: when it shrinks, a packet waits for its predecessor.
        self.latest = self.latest.max(now.saturating_add(self.delay));
        self.arriving.push_back(Arrival { at: self.latest, end, ecn, datagram });
    }

    fn next(&self) -> Time {
        self.arriving.front().map_or(Time::NEVER, |one| one.at)
    }
}

/// A flow in an adapter.
#[derive(Debug)]
pub(crate) struct Outside {
    index: u32,
    label: String,
    /// In errors: the stack and its command.
    named: String,
    process: Process,
    start: Time,
    stop: Time,
    total: Option<u64>,
    /// Bytes of a full datagram, and of these, the application's.
    unit: u64,
    datagram: u64,
    share: u64,
    /// Of a packet besides its datagram.
    headers: u32,
    most: usize,
    ecn: bool,
    /// Turns of an instant each.
    instants: bool,
    behind: [Behind; 2],
    departures: BTreeMap<(Time, u64), Leaving>,
    waiting: usize,
    numbered: u64,
    /// When the stack wants a turn by itself.
    timer: Time,
    events: Vec<Event>,
    /// The end of the latest turn; `None` before the first.
    turned: Option<Time>,
    /// Turns in which nothing happened, and when the first of them began.
    idle: (u32, Time),
    reported: Reported,
    completes: Time,
    ended: Option<Ended>,
    ends: [Ends; 2],
    sampled: Sampled,
    trace: Option<Vec<u8>>,
    frame: Vec<u8>,
}

#[derive(Debug)]
struct Leaving {
    end: u8,
    ecn: Ecn,
    datagram: BytesMut,
}

impl Outside {
    /// Starts the adapter of a flow. `delays` are those behind the chain: there and back.
    pub(crate) fn start(
        index: usize,
        spec: &Spec,
        flow: &FlowSpec,
        seed: u64,
        options: Options,
        choice: &Choice,
        delays: [Duration; 2],
    ) -> Result<Outside, String> {
        let Choice { stack, controller } = choice;
        let named = format!("stack {} ({})", stack.name, stack.command.join(" "));
        let in_words = |problem: String| format!("{named} {problem}");
        let udp = stack.about.layer == Layer::Udp;
        let (full, headers) =
            if udp { (payload(spec), HEADER_BYTES) } else { (u64::from(spec.mtu_bytes), 0) };
        let datagram = stack.about.most_datagram.map_or(full, |most| full.min(u64::from(most)));
        let share = datagram.saturating_sub(if udp { AROUND_STREAM } else { IP_TCP_BYTES });
        let mut process = Process::start(&stack.command).map_err(in_words)?;
        let hello = json!({"protocol": protocol::VERSION}).to_string();
        let about = process.ask(hello.as_bytes()).map_err(in_words)?;
        let about: StackAbout = serde_json::from_slice(&about)
            .map_err(|error| in_words(format!("does not say what it is: {error}")))?;
        if about.protocol != protocol::VERSION {
            return Err(in_words(format!(
                "speaks protocol {}; this world speaks {}",
                about.protocol,
                protocol::VERSION
            )));
        }
        let of_host = fullpipe_path::mix(Randomness::Host(0).seed(seed).wrapping_add(index as u64));
        let ecn = flow.ecn(&spec.hosts) != EcnUse::None;
        let setup = json!({
            "seed": of_host, "controller": controller, "mtu": datagram, "ecn": ecn,
            "receive_window": receive_window(spec.hosts.tcp_rmem_bytes[2]),
            "send_window": spec.hosts.tcp_wmem_bytes[2].as_u64(),
            "roles": ["client", "server"],
        });
        let answer = process.ask(setup.to_string().as_bytes()).map_err(in_words)?;
        let answer: serde_json::Value = serde_json::from_slice(&answer)
            .map_err(|error| in_words(format!("answers its setup with something else than JSON: {error}")))?;
        if answer["ok"] != true {
            let why = answer["message"].as_str().unwrap_or("it does not say why").chars().take(300);
            return Err(in_words(format!("refuses its setup: {}", why.collect::<String>())));
        }
        let start = flow.start_time(index, seed);
        let total = flow.workload.total_bytes().map(fullpipe_units::Bytes::as_u64);
        let extras = [flow.extra_forward_ns, flow.extra_reverse_ns];
        Ok(Outside {
            index: index as u32,
            label: flow.label.clone(),
            named,
            process,
            start,
            stop: flow.stop_ns.unwrap_or(Time::NEVER),
            total,
            unit: if udp { datagram } else { share },
            datagram,
            share,
            headers,
            most: full as usize,
            ecn,
            instants: options.instants,
            behind: [Behind::new(delays[0], extras[0]), Behind::new(delays[1], extras[1])],
            departures: BTreeMap::new(),
            waiting: 0,
            numbered: 0,
            timer: start,
            events: vec![Event::Send { at: start, bytes: total.unwrap_or(u64::MAX) }],
            turned: None,
            idle: (0, Time::ZERO),
            reported: Reported::default(),
            completes: Time::NEVER,
            ended: None,
            ends: [Ends::default(); 2],
            sampled: Sampled::new(start),
            trace: options.trace.then(Vec::new),
            frame: Vec::new(),
        })
    }

    /// When the next turn begins.
    fn turn_due(&self) -> Time {
        self.timer.min(self.behind[0].next()).min(self.behind[1].next())
    }

    /// How long a turn may be.
    fn window(&self) -> u64 {
        if self.instants {
            return 0;
        }
        self.behind[0].delay.min(self.behind[1].delay).as_nanos().saturating_sub(1)
    }

    fn turn(&mut self, now: Time, horizon: Time) -> Result<(), String> {
        let until = now
            .saturating_add(Duration::from_nanos(self.window()))
            .min(horizon.max(now))
            .min(self.stop.max(now));
        let mut turn = Turn { now, until, arrivals: Vec::new(), events: Vec::new() };
        // By time; at equal times, what comes to the server first.
        loop {
            let way = usize::from(self.behind[1].next() < self.behind[0].next());
            if self.behind[way].next() > until {
                break;
            }
            turn.arrivals.extend(self.behind[way].arriving.pop_front());
        }
        self.events.retain(|event| {
            let (Event::Send { at, .. } | Event::Stop { at }) = *event;
            if at <= until {
                turn.events.push(*event);
            }
            at > until
        });
        turn.write(&mut self.frame);
        let frame = self.process.ask(&self.frame)?;
        let answer = protocol::read(&frame, &turn, &self.reported, self.most)?;
        if answer.reported.failed {
            return Err(format!("ends its connection{}", self.process.last_words()));
        }
        let nothing = turn.arrivals.is_empty() && answer.departures.is_empty();
        if !nothing || now.saturating_since(self.idle.1) > IDLE {
            self.idle = (0, now);
        }
        self.idle.0 += 1;
        if self.idle.0 > MOST_IDLE {
            return Err(format!("asks to be called again {MOST_IDLE} times within {IDLE}, and does nothing"));
        }
        for departure in answer.departures {
            if let Some(trace) = &mut self.trace {
                trace.extend(departure.at.as_nanos().to_le_bytes());
                trace.extend([departure.end, departure.ecn as u8, 0, 0]);
                trace.extend((departure.datagram.len() as u32).to_le_bytes());
            }
            let datagram = BytesMut::from(&frame[departure.datagram]);
            self.waiting += datagram.len();
            self.numbered += 1;
            let leaving = Leaving { end: departure.end, ecn: departure.ecn, datagram };
            self.departures.insert((departure.at, self.numbered), leaving);
        }
        if self.waiting > MOST_WAITING {
            return Err(format!(
                "wants to send {} MB later; the world holds at most {} MB for it",
                self.waiting / 1_000_000,
                MOST_WAITING / 1_000_000
            ));
        }
        self.reported = answer.reported;
        self.turned = Some(until);
        // What was due is done; an instant later at the earliest.
        self.timer = answer.next.max(Time::from_nanos(until.as_nanos().saturating_add(1)));
        if self.ended.is_none() && self.total.is_some_and(|total| self.reported.delivered >= total) {
            self.completes = self.reported.delivered_at.unwrap_or(until).max(now);
        }
        Ok(())
    }

    /// Hands over what leaves by now.
    fn send(&mut self, now: Time, forward: &mut Wire, reverse: &mut Wire) {
        while let Some(first) = self.departures.first_entry()
            && first.key().0 <= now
        {
            let Leaving { end, ecn, datagram } = first.remove();
            self.waiting -= datagram.len();
            let ecn = if self.ecn { ecn } else { Ecn::NotEct };
            let packet = Packet::new(datagram.len() as u32 + self.headers, self.index).with_ecn(ecn);
            let wire = if end == 0 { &mut *forward } else { &mut *reverse };
            wire.send_packet(now, packet, datagram);
            self.ends[usize::from(end)].sent += 1;
        }
    }

    fn end(&mut self, at: Time, completed: bool) {
        if self.ended.is_none() {
            self.ended = Some(self.measured(at, completed));
        }
    }

    /// A volume in full datagrams; 0 if it is not known.
    fn segments(&self, bytes: Option<u64>) -> u32 {
        u32::try_from(bytes.unwrap_or(0) / self.unit.max(1)).unwrap_or(u32::MAX)
    }

    /// A rate of datagrams as one of the application's bytes in full datagrams.
    fn of_application(&self, rate: u64) -> u64 {
        u64::try_from(u128::from(rate) * u128::from(self.share) / u128::from(self.datagram.max(1)))
            .unwrap_or(u64::MAX)
    }
}

impl Flow for Outside {
    fn label(&self) -> &str {
        &self.label
    }

    fn start(&self) -> Time {
        self.start
    }

    fn ended(&self) -> Option<Ended> {
        self.ended
    }

    fn next(&self) -> Time {
        let departure = self.departures.first_key_value().map_or(Time::NEVER, |((at, _), _)| *at);
        self.turn_due().min(departure).min(self.stop).min(self.completes)
    }

    fn on_timer(
        &mut self,
        now: Time,
        horizon: Time,
        forward: &mut Wire,
        reverse: &mut Wire,
        _scratch: &mut Vec<u8>,
    ) -> Result<(), String> {
        if self.completes <= now {
            self.completes = Time::NEVER;
            self.end(now, true);
        }
        if self.stop <= now {
            self.stop = Time::NEVER;
            self.end(now, false);
            // One that has not begun never does.
            match self.turned {
                Some(_) => {
                    self.events.push(Event::Stop { at: now });
                    self.timer = now;
                }
                None => {
                    self.events.clear();
                    self.timer = Time::NEVER;
                }
            }
        }
        if self.turn_due() <= now {
            self.turn(now, horizon).map_err(|problem| format!("{} {problem}", self.named))?;
        }
        self.send(now, forward, reverse);
        Ok(())
    }

    fn on_forward(&mut self, now: Time, ecn: Ecn, datagram: BytesMut, _: &mut Wire, _: &mut Vec<u8>) {
        self.ends[0].arrived += 1;
        self.behind[0].push(now, 1, ecn, datagram);
    }

    fn on_reverse(&mut self, now: Time, ecn: Ecn, datagram: BytesMut, _: &mut Wire, _: &mut Vec<u8>) {
        self.ends[1].arrived += 1;
        self.behind[1].push(now, 0, ecn, datagram);
    }

    fn drive_sender(&mut self, _: Time, _: &mut Wire, _: &mut Vec<u8>) -> Result<(), String> {
        Ok(())
    }

    fn drive_receiver(&mut self, _: Time, _: &mut Wire, _: &mut Vec<u8>) -> Result<(), String> {
        Ok(())
    }

    /// What it cannot tell is 0, or unknown where a record has that. Its phase then follows from its threshold, if it tells one.
    fn sample(&mut self, now: Time) -> Option<Sample> {
        if !self.reported.connected {
            return None;
        }
        let reported = self.reported;
        let rate = |bps: Option<u64>| bps.map(|bps| self.of_application(bps));
        Some(Sample {
            time_ns: now.as_nanos(),
            cwnd: self.segments(reported.window),
            ssthresh: reported.ssthresh.map_or(Limits::INFINITE, |bytes| self.segments(Some(bytes))),
            pacing_bps: rate(reported.pacing_bps),
            inflight: self.segments(reported.in_flight),
            srtt_ns: reported.srtt_ns,
            min_rtt_ns: reported.min_rtt_ns,
            delivery_bps: self.sampled.delivery_bps(reported.delivered, now),
            bandwidth_bps: rate(reported.bandwidth_bps),
            delivered_bytes: reported.delivered,
            retransmits: reported.lost.unwrap_or(UNKNOWN),
            phase: reported
                .phase
                .unwrap_or_else(|| phase_by_threshold(reported.window.unwrap_or(0), reported.ssthresh)),
            ca_state: CaState::Open,
        })
    }

    fn on_sampled(&mut self, now: Time) {
        self.sampled.on_sampled(self.reported.delivered, now);
    }

    fn measured(&mut self, at: Time, completed: bool) -> Ended {
        Ended {
            at,
            completed,
            delivered_bytes: self.reported.delivered,
            datagrams: self.ends[0].sent,
            lost: self.reported.lost,
            collapses: self.reported.timeouts,
            undone: None,
            // What it has taken besides is not told.
            written: self.reported.delivered,
            written_at: None,
        }
    }

    fn acked(&self) -> u64 {
        // Rounds of cases end when what was in flight is acknowledged: full datagrams of the stream stand for packets.
        self.reported.acked.unwrap_or(self.reported.delivered / self.share.max(1))
    }

    fn transfers_ns(&self) -> &[u64] {
        &[]
    }

    fn rebuffered_ns(&self, _: Time) -> Option<u64> {
        None
    }

    fn ends(&self) -> [Ends; 2] {
        self.ends
    }

    fn check(&mut self) {
        if let Some(total) = self.total {
            assert!(self.reported.delivered <= total, "{} delivered more than was written", self.named);
        }
    }

    fn set_delay(&mut self, forward: bool, delay: Duration) {
        let behind = &mut self.behind[usize::from(!forward)];
        behind.delay = Duration::from_nanos(delay.as_nanos().saturating_add(behind.extra.as_nanos()));
    }

    fn trace(&self) -> &[u8] {
        self.trace.as_deref().unwrap_or_default()
    }
}

/// Why a flow cannot run in such a stack.
pub(crate) fn refuses(stack: &OutsideStack, workload: &Workload) -> Option<String> {
    match workload {
        Workload::Bulk | Workload::Finite { .. } => None,
        _ => Some(format!(
            "an adapter sends one stream (bulk, or a size), and {} is one; choose a controller that is linked in for transfers",
            stack.name
        )),
    }
}

/// What a record of a run with it says: numbers that it does not tell.
pub(crate) fn not_told(stack: &OutsideStack) -> Option<String> {
    let missing: Vec<&str> = TELLS
        .iter()
        .copied()
        .filter(|name| !stack.about.tells.iter().any(|reported| reported == name))
        .collect();
    (!missing.is_empty()).then(|| {
        format!("{} does not tell {}: they are 0 or missing in the record.", stack.name, missing.join(", "))
    })
}

/// The stack of an adapter in a record: version, licence, command and calling policy.
pub(crate) fn described(stack: &OutsideStack) -> String {
    let StackAbout { name, version, licence, policy, .. } = &stack.about;
    let licence = if licence.is_empty() { "licence not said" } else { licence };
    format!("{name} {version} ({licence}), {}: {policy}", stack.command.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::{Format, resolve};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn path(more: &str) -> Spec {
        let document = format!(
            "duration = \"1 s\"\npath = {{ rate = \"10 Mbit/s\", rtt = \"40 ms\" {more} }}\nflows = [{{ controller = \"mine:cubic\" }}]"
        );
        resolve(&document, Format::Toml, None).unwrap()
    }

    #[test]
    fn the_delay_at_the_end_is_the_flows_if_nobody_else_needs_it_in_the_chain() {
        let spec = path("");
        let of = |outside: &[bool], fixed| Tail::of(&spec.forward, outside, fixed);
        let whole = spec.forward.len();
        assert_eq!((of(&[false], true).begins, of(&[false, true], false).begins), (whole, whole));
        for tail in [of(&[true], true), of(&[true], false), of(&[false, true], true)] {
            assert_eq!((tail.begins, tail.by_flow(ms(3))), (whole - 1, ms(23)));
            assert_eq!((tail.in_chain(true, ms(3)), tail.in_chain(false, ms(3))), (Duration::ZERO, ms(23)));
        }
    }

    #[test]
    fn a_change_of_that_delay_is_the_flows_and_any_other_is_not() {
        let spec = path("");
        let mut tail = Tail::of(&spec.forward, &[true], false);
        let last = spec.forward.len() - 1;
        assert_eq!(tail.change(last, Change::Delay(ms(7))), Some(ms(7)));
        assert_eq!(tail.change(0, Change::Delay(ms(9))), None);
        assert_eq!(tail.by_flow(Duration::ZERO), ms(7));
    }

    #[test]
    fn what_comes_behind_a_delay_that_shrinks_waits_for_its_predecessor() {
        let mut behind = Behind::new(ms(50), Duration::ZERO);
        let at = |millis: u64| Time::from_micros(millis * 1000);
        behind.push(at(99), 1, Ecn::NotEct, BytesMut::new());
        behind.delay = ms(10);
        behind.push(at(100), 1, Ecn::NotEct, BytesMut::new());
        behind.push(at(140), 1, Ecn::NotEct, BytesMut::new());
        let times: Vec<Time> = behind.arriving.iter().map(|one| one.at).collect();
        assert_eq!(times, [at(149), at(149), at(150)]);
    }

    #[test]
    fn a_record_says_what_an_adapter_does_not_tell() {
        let about = serde_json::json!({
            "protocol": 1, "name": "x", "version": "2", "controllers": ["cubic"], "policy": "paced",
            "tells": ["window", "ssthresh", "in_flight", "srtt", "min_rtt", "pacing_rate", "bandwidth", "lost"],
        });
        let stack = OutsideStack {
            name: "mine".to_owned(),
            command: vec!["./x".to_owned()],
            about: serde_json::from_value(about).unwrap(),
        };
        let message = not_told(&stack).unwrap();
        assert_eq!(
            message,
            "mine does not tell acked, timeouts, phase: they are 0 or missing in the record."
        );
        assert_eq!(described(&stack), "x 2 (licence not said), ./x: paced");
    }
}
