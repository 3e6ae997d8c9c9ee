//! Tests of ECN from end to end: flows over queues that mark, and paths that meddle with marks.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::Any;
use fullpipe_path::config::{AdmissionUnit, ElementConfig, Probability, Schedule};
use fullpipe_path::{
    Carrier, Chain, ConfigError, Counts, Discipline, DisciplineConfig, Dropped, Ecn, Line, Packet, QueueView,
    Setup, Tally, Waiting,
};
use fullpipe_scenario::{Format, Spec, resolve};
use fullpipe_units::{Bytes, Duration, Time};
use serde_json::{Value, json};

use crate::agenda::Winners;
use crate::packet::{Acknowledgement, Load, Segment};
use crate::plug::Plugged;
use crate::way::Way;
use crate::world::World;

/// A path that meddles with the codepoints of packets, when they enter and when they leave.
#[derive(Debug)]
struct Meddling<P> {
    chain: Chain<P>,
    on_entry: fn(Ecn) -> Ecn,
    on_exit: fn(Ecn) -> Ecn,
}

impl<L: Load> Way for Meddling<L> {
    type Load = L;
}

impl<P: Clone> Carrier<P> for Meddling<P> {
    fn new(elements: &[ElementConfig], delays: &[Duration], seed: u64) -> Result<Meddling<P>, ConfigError> {
        let chain = Chain::new(elements, delays, seed)?;
        Ok(Meddling { chain, on_entry: |codepoint| codepoint, on_exit: |codepoint| codepoint })
    }

    fn push(&mut self, now: Time, packet: Packet, payload: P) {
        self.chain.push(now, packet.with_ecn((self.on_entry)(packet.ecn)), payload);
    }

    fn push_run(&mut self, now: Time, packet: Packet, count: u32, payload: impl FnMut(u32) -> P) {
        self.chain.push_run(now, packet.with_ecn((self.on_entry)(packet.ecn)), count, payload);
    }

    fn next(&self) -> Time {
        self.chain.next()
    }

    fn pop(&mut self, now: Time) -> Option<(Time, Packet, P)> {
        let (due, packet, payload) = self.chain.pop(now)?;
        Some((due, packet.with_ecn((self.on_exit)(packet.ecn)), payload))
    }

    fn pop_with<T>(&mut self, now: Time, take: impl FnOnce(Packet, &P) -> T) -> Option<T> {
        self.pop(now).map(|(_, packet, payload)| take(packet, &payload))
    }

    fn is_due(&mut self, now: Time) -> bool {
        Carrier::is_due(&mut self.chain, now)
    }

    fn ahead(&self, _: usize) -> Option<(Packet, &P)> {
        None
    }

    fn prefetch(&self, _: usize) {}

    fn settle(&mut self, now: Time) {
        Carrier::settle(&mut self.chain, now);
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

/// First in, first out; marks packets of these numbers, as they arrive.
#[derive(Debug)]
struct MarksThese {
    line: Line,
    numbers: Vec<u64>,
    arrived: u64,
}

impl Discipline for MarksThese {
    fn enqueue(&mut self, _: Time, mut waiting: Waiting, _: &mut Dropped) {
        if self.numbers.contains(&self.arrived) {
            assert!(waiting.mark(), "number {} cannot be marked", self.arrived);
        }
        self.arrived += 1;
        self.line.push(waiting);
    }

    fn dequeue(&mut self, _: Time, _: &mut Dropped) -> Option<Waiting> {
        self.line.pop()
    }

    fn backlog(&self) -> Tally {
        self.line.backlog()
    }

    fn set_limit(&mut self, _: Bytes) {}
}

type Tested = World<Winners, Meddling<Segment>, Meddling<Acknowledgement>>;

fn spec(document: &Value) -> Spec {
    resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error} in {document}"))
}

/// One flow over 100 Mbit/s and 10 ms, 83 packets.
fn document(controller: &str, ecn: bool) -> Value {
    json!({
        "duration": "10 s",
        "path": { "rate": "100 Mbit/s", "rtt": "10 ms", "buffer": "1000 packets" },
        "flows": [{ "controller": controller, "start_jitter": "0 s" }],
        "hosts": { "ecn": ecn },
    })
}

/// The same over a queue of this discipline.
fn alone(controller: &str, ecn: bool, discipline: &str, threshold: u64) -> Spec {
    let mut spec = spec(&document(controller, ecn));
    manage(&mut spec.forward, discipline, threshold);
    spec
}

fn manage(elements: &mut [ElementConfig], discipline: &str, threshold: u64) {
    let mut managed = DisciplineConfig::by_name(discipline).unwrap();
    if discipline == "step" {
        managed.set("threshold", threshold).unwrap();
    }
    for element in elements {
        if let ElementConfig::Link { queue, .. } = element {
            queue.discipline = managed;
        }
    }
}

/// Random loss on top of what the elements do.
fn lose(elements: &mut Vec<ElementConfig>, share: f64) {
    elements.push(ElementConfig::Loss {
        probability: Schedule::constant(Probability::from_f64(share)),
        unit: AdmissionUnit::Segment,
    });
}

fn world(spec: &Spec, seed: u64) -> Tested {
    World::new(spec, seed, Meddling::new, Meddling::new).unwrap()
}

/// A world whose bottleneck marks the packets of these numbers; the SYN is number 0.
fn marking(spec: &Spec, numbers: &[u64]) -> Tested {
    let numbers = numbers.to_vec();
    let link = spec.forward.iter().position(|element| matches!(element, ElementConfig::Link { .. })).unwrap();
    let make = move |_: Setup| -> Box<dyn Discipline> {
        Box::new(MarksThese { line: Line::default(), numbers, arrived: 0 })
    };
    let forward = |elements: &[ElementConfig], delays: &[Duration], seed| {
        let chain = Chain::with_disciplines(elements, delays, seed, [(link, Box::new(make) as _)].into())?;
        Ok(Meddling { chain, on_entry: |codepoint| codepoint, on_exit: |codepoint| codepoint })
    };
    World::new(spec, 1, forward, Meddling::new).unwrap()
}

fn until(world: &mut Tested, millis: u64) {
    assert!(world.advance(Time::from_micros(millis * 1_000), &AtomicBool::new(false)));
}

/// Marked segments that arrived, reductions for them, and retransmissions.
fn seen(world: &Tested) -> (u64, u64, u64) {
    let flow = &world.flows[0];
    let marked = flow.receiver.as_ref().map_or(0, |receiver| receiver.marked_segments);
    let sender = flow.sender.as_ref();
    (
        marked,
        sender.map_or(0, |sender| sender.mark_reductions),
        sender.map_or(0, |sender| sender.counters.retransmits),
    )
}

fn delivered(world: &Tested) -> u64 {
    world.flows[0].receiver.as_ref().unwrap().delivered_bytes()
}

fn cwnd(world: &Tested) -> u32 {
    world.flows[0].sender.as_ref().map_or(10, |sender| sender.limits().cwnd)
}

/// DCTCP's share of marked segments, of one.
fn alpha(world: &Tested) -> f64 {
    match world.flows[0].sender.as_ref().unwrap().controller() {
        Plugged::BuiltIn(Any::Dctcp(dctcp)) => f64::from(dctcp.algorithm().alpha()) / 1024.0,
        other => panic!("{other:?}"),
    }
}

/// What one flow of 1448 of 1500 bytes delivers of 100 Mbit/s.
fn utilisation(bytes: u64, seconds: f64) -> f64 {
    bytes as f64 * 8.0 / seconds / (100e6 * 1448.0 / 1500.0)
}

#[test]
fn marking_link_is_filled_without_loss() {
    for controller in ["cubic", "reno", "vegas"] {
        let mut world = world(&alone(controller, true, "step", 120), 1);
        until(&mut world, 2_000);
        let before = delivered(&world);
        until(&mut world, 10_000);
        let (marked, reductions, retransmits) = seen(&world);
        let share = utilisation(delivered(&world) - before, 8.0);
        assert!(share > 0.98, "{controller}: {share}");
        assert_eq!(retransmits, 0, "{controller}");
        // One a window: it takes Reno a second to grow by 100 segments.
        assert!(
            controller == "vegas" || (reductions >= 3 && reductions * 2 < marked),
            "{controller}: {reductions} for {marked}"
        );
        assert!(reductions < 10_000 / 10, "{controller}: more than one a round trip");
    }
}

#[test]
fn without_ecn_a_step_marks_nothing() {
    let mut world = world(&alone("cubic", false, "step", 20), 1);
    until(&mut world, 5_000);
    assert_eq!(seen(&world).0, 0);
    assert_eq!(world.forward.chain.queue(0).totals(world.now).marked.packets, 0);
}

#[test]
fn bbr_ignores_marks_core_reports_reductions() {
    let totals = |ecn| {
        let mut world = world(&alone("bbr1", ecn, "step", 30), 1);
        until(&mut world, 10_000);
        (seen(&world), delivered(&world))
    };
    let ((marked, reductions, _), with) = totals(true);
    let ((unmarked, none, _), without) = totals(false);
    assert!(marked > 100 && reductions > 3, "{marked} {reductions}");
    assert_eq!((unmarked, none), (0, 0));
    assert!((with as f64 / without as f64 - 1.0).abs() < 0.02, "{with} and {without} bytes");
}

/// Alizadeh et al., SIGCOMM 2010, sections 3.3 and 3.4: alpha is about sqrt(2/(C*RTT + K)), and the queue falls from K by half of
/// alpha times the window. Bursts, which the model does not have, are of two segments here.
#[test]
fn dctcp_queue_stays_near_threshold() {
    for threshold in [20, 40, 65] {
        let mut document = document("dctcp", false);
        document["path"]["rate"] = json!("10 Mbit/s");
        document["path"]["rtt"] = json!("100 ms");
        document["duration"] = json!("200 s");
        let mut spec = spec(&document);
        manage(&mut spec.forward, "step", threshold);
        let mut world = world(&spec, 1);
        until(&mut world, 40_000);
        let before = delivered(&world);
        let (mut queue, mut alphas) = (Vec::new(), Vec::new());
        for millis in (40_000..200_000).step_by(17) {
            until(&mut world, millis);
            queue.push(world.forward.chain.queue(0).packets(world.now).unwrap());
            alphas.push(alpha(&world));
        }
        until(&mut world, 200_000);
        let share = utilisation(delivered(&world) - before, 16.0);
        let mean = alphas.iter().sum::<f64>() / alphas.len() as f64;
        let expected = (2.0 / (83.3 + threshold as f64)).sqrt();
        queue.sort_unstable();
        let (least, median, most) = (queue[queue.len() / 50], queue[queue.len() / 2], queue[queue.len() - 1]);
        assert!(share > 0.99, "K {threshold}: {share} of the link");
        assert_eq!(seen(&world).2, 0);
        // Less, because Linux does not grow for a round after a reduction, and rounds shares down.
        assert!((0.6..1.0).contains(&(mean / expected)), "K {threshold}: alpha {mean}, expected {expected}");
        let amplitude = (expected / 2.0 * (83.3 + threshold as f64)) as u64;
        assert!(least + amplitude + 6 >= threshold, "K {threshold}: down to {least} packets");
        assert!(
            median <= threshold && most <= threshold + 6,
            "K {threshold}: {median} and up to {most} packets"
        );
    }
}

#[test]
fn marks_reduce_once_per_window() {
    for (controller, share) in [("cubic", 0.7), ("reno", 0.5)] {
        let spec = alone(controller, true, "fifo", 0);
        let mut unmarked = marking(&spec, &[]);
        let mut world = marking(&spec, &[60, 61, 70]);
        let before = (0..).map(|millis| {
            until(&mut world, millis);
            (seen(&world).1, cwnd(&world))
        });
        let mut at_reduction = 10;
        for (reductions, cwnd) in before.take_while(|seen| seen.0 == 0) {
            assert_eq!(reductions, 0);
            at_reduction = cwnd;
        }
        until(&mut world, 1_000);
        until(&mut unmarked, 1_000);
        assert_eq!((seen(&world), seen(&unmarked).1), ((3, 1, 0), 0), "{controller}");
        let threshold = world.flows[0].sender.as_ref().unwrap().limits().ssthresh;
        let cut = f64::from(threshold) / f64::from(at_reduction);
        // In slow start the window has grown a little since the millisecond before.
        assert!(
            (share - 0.02..=share * 1.2).contains(&cut),
            "{controller}: from {at_reduction} to {threshold}"
        );
    }
}

#[test]
fn lost_echo_repeats_until_received() {
    for seed in 1..20 {
        let mut spec = alone("cubic", true, "fifo", 0);
        lose(&mut spec.reverse, 0.5);
        let mut world = marking(&spec, &[40 + seed]);
        until(&mut world, 3_000);
        let (marked, reductions, _) = seen(&world);
        assert_eq!((marked, reductions), (1, 1), "seed {seed}");
    }
}

#[test]
fn bleached_packets_bring_no_reduction() {
    let run = |on_entry: fn(Ecn) -> Ecn, on_exit: fn(Ecn) -> Ecn| {
        let mut world = world(&alone("cubic", true, "step", 30), 1);
        (world.forward.chain.on_entry, world.forward.chain.on_exit) = (on_entry, on_exit);
        until(&mut world, 3_000);
        let marks = world.forward.chain.queue(0).totals(world.now).marked.packets;
        (marks, seen(&world))
    };
    let same: fn(Ecn) -> Ecn = |codepoint| codepoint;
    let (marks, (arrived, reductions, _)) = run(same, same);
    assert!(marks > 100 && arrived > 100 && reductions > 3, "{marks} {arrived} {reductions}");
    // Before the queue: it cannot mark.
    let (marks, (arrived, reductions, _)) = run(|_| Ecn::NotEct, same);
    assert_eq!((marks, arrived, reductions), (0, 0, 0));
    // Behind the queue: its marks are lost.
    for bleached in [|_| Ecn::NotEct, |_| Ecn::Ect0] as [fn(Ecn) -> Ecn; 2] {
        let (marks, (arrived, reductions, _)) = run(same, bleached);
        assert!(marks > 100);
        assert_eq!((arrived, reductions), (0, 0));
    }
}

#[test]
fn packets_carry_linux_ecn_codepoints() {
    /// Panics at what must not leave.
    fn only_data_is_capable(codepoint: Ecn) -> Ecn {
        assert!(matches!(codepoint, Ecn::NotEct | Ecn::Ect0));
        codepoint
    }
    fn none_is(codepoint: Ecn) -> Ecn {
        assert_eq!(codepoint, Ecn::NotEct);
        codepoint
    }
    fn all_are(codepoint: Ecn) -> Ecn {
        assert_eq!(codepoint, Ecn::Ect0);
        codepoint
    }
    fn all_are_low_latency(codepoint: Ecn) -> Ecn {
        assert_eq!(codepoint, Ecn::Ect1);
        codepoint
    }
    type Rule = fn(Ecn) -> Ecn;
    let rules: [(&str, bool, Rule, Rule); 5] = [
        ("cubic", true, only_data_is_capable, none_is),
        ("cubic", false, none_is, none_is),
        ("dctcp", false, all_are, all_are),
        ("dctcp", true, all_are, all_are),
        ("dctcp:ect1=1", false, all_are_low_latency, all_are_low_latency),
    ];
    for (controller, ecn, forward, back) in rules {
        let mut spec = alone(controller, ecn, "fifo", 0);
        // Losses, so that segments are repeated.
        lose(&mut spec.forward, 0.01);
        let mut world = world(&spec, 1);
        world.forward.chain.on_entry = forward;
        world.reverse.chain.on_entry = back;
        until(&mut world, 2_000);
        assert!(seen(&world).2 > 0, "{controller}");
    }
}

/// The first SYN is lost, the second one does not offer ECN (RFC 3168 section 6.1.1.1), and DCTCP becomes Reno.
#[test]
fn retransmitted_syn_omits_ecn() {
    for (controller, ecn) in [("cubic", true), ("dctcp", false)] {
        let mut document = document(controller, ecn);
        document["path"]["loss"] = json!("100 %");
        document["path"]["changes"] = json!([{ "at": "500 ms", "loss": "0 %" }]);
        let mut spec = spec(&document);
        manage(&mut spec.forward, "step", 20);
        let mut world = world(&spec, 1);
        until(&mut world, 5_000);
        assert_eq!((world.flows[0].syns_sent, seen(&world).0), (2, 0), "{controller}");
        let sender = world.flows[0].sender.as_ref().unwrap();
        let reno = matches!(sender.controller(), Plugged::BuiltIn(Any::Reno(_)));
        assert_eq!(reno, controller == "dctcp");
        assert!(delivered(&world) > 30_000_000);
    }
}
