//! Hosts that take time (`hosts.model = "linux"`): what holds for all of them, and what each mechanism changes. Random
//! scenarios of theirs are in `identical.rs`.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use fullpipe_export::{Event, Log};
use fullpipe_record::Run;
use fullpipe_record::measures::FlowMeasures;
use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::{Format, resolve};
use fullpipe_sim::Simulation;
use fullpipe_units::Time;
use serde_json::{Value, json};

fn spec(document: &Value) -> Spec {
    resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error} in {document}"))
}

fn run(document: &Value, seed: u64) -> Run {
    fullpipe_sim::run(&spec(document), seed, &AtomicBool::new(false)).expect("nothing cancels it")
}

fn on_linux(document: &Value) -> Value {
    let mut document = document.clone();
    document["hosts"]["model"] = json!("linux");
    document
}

fn alone(controller: &str, path: &Value, duration: &str) -> Value {
    json!({
        "name": "test",
        "duration": duration,
        "path": path,
        "hosts": { "tcp_memory": "max" },
        "flows": [{ "controller": controller, "start_jitter": "0 ms" }],
    })
}

#[test]
fn equal_seeds_repeat_others_differ() {
    let path = json!({ "rate": "100 Mbit/s", "rtt": "20 ms", "buffer": "1 bdp" });
    let ideal = alone("bbr1", &path, "2 s");
    let linux = on_linux(&ideal);
    assert_eq!(run(&linux, 1).flows, run(&linux, 1).flows);
    let rtts = |document: &Value| {
        [2, 3].map(|seed| FlowMeasures::of(&run(document, seed).flows[0]).rtt_ms.unwrap().mean)
    };
    let [one, other] = rtts(&linux);
    assert!((one - other).abs() > 1e-6, "{one} and {other}");
}

#[test]
fn hosts_add_small_delay_to_rtt() {
    for controller in ["bbr1", "cubic"] {
        let path = json!({ "rate": "1 Gbit/s", "rtt": "10 ms", "buffer": "4 bdp" });
        let least = |document: &Value| {
            let run = run(document, 1);
            run.flows[0].series.srtt_ns.iter().filter(|srtt| **srtt > 0).min().copied().unwrap() / 1000
        };
        let ideal = alone(controller, &path, "1 s");
        let (with_none, with_linux) = (least(&ideal), least(&on_linux(&ideal)));
        assert!(with_none >= 10_000, "{with_none}");
        // Two arrivals of at least 3 us, and below 0.2 ms together nearly always.
        assert!(with_linux >= with_none + 6 && with_linux < with_none + 400, "{with_linux} and {with_none}");
    }
}

#[test]
fn host_latency_inflates_bbr_queue() {
    // A maximum over noisy samples is too high, and aggregated ACKs give the window an allowance. The path lets a BBR alone
    // keep its queue short; ideal hosts give it nothing to be misled by.
    let path = json!({ "rate": "100 Mbit/s", "rtt": "5 ms", "buffer": "4 bdp" });
    let ideal = alone("bbr1", &path, "8 s");
    let rtt = |document: &Value, seed| FlowMeasures::of(&run(document, seed).flows[0]).rtt_ms.unwrap().mean;
    for seed in 1..4 {
        let (with_none, with_linux) = (rtt(&ideal, seed), rtt(&on_linux(&ideal), seed));
        assert!(with_linux > with_none + 0.1, "{with_linux} and {with_none}");
    }
}

#[test]
fn delayed_burst_overflows_shallow_buffer_again() {
    // 100 KB at 500 Mbit/s are 1.6 ms. Once slow start has overflowed it, ideal hosts repair the loss in one recovery. Hosts
    // whose ACKs come together answer with retransmissions and new data together, which overflow it again.
    let path = json!({ "rate": "500 Mbit/s", "rtt": "20 ms", "buffer": "100 KB" });
    let ideal = alone("cubic", &path, "1 s");
    let reductions = |document: &Value, seed| {
        let mut thresholds = run(document, seed).flows[0].series.ssthresh.clone();
        thresholds.dedup();
        thresholds.len() - 1
    };
    assert_eq!(reductions(&ideal, 1), 1);
    let linux = on_linux(&ideal);
    let most = (1..9).filter(|seed| reductions(&linux, *seed) >= 2).count();
    assert!(most >= 4, "{most} of 8");
}

/// Seven segments never fit into 10 KB. If the rest of each piece of 45 left as a burst of three, it would arrive, and BBR would
/// measure 40 Mbit/s and more. A real host has 21 to 22 (docs/explanation/hosts.md).
#[test]
fn burst_fills_from_next_piece() {
    let path = json!({
        "rate": "100 Mbit/s", "rtt": "10 ms", "buffer": "10 KB", "router": "tbf", "burst": "256 KB",
    });
    for seed in 1..4 {
        let run = run(&on_linux(&alone("bbr1", &path, "4 s")), seed);
        let goodput_mbps = FlowMeasures::of(&run.flows[0]).goodput_bps / 1e6;
        assert!((15.0..30.0).contains(&goodput_mbps), "{goodput_mbps}");
    }
}

/// The first packet of a run wakes hosts that have slept; later ones find them awake (docs/explanation/hosts.md).
#[test]
fn handshake_rtt_exceeds_minimum() {
    let path = json!({ "rate": "100 Mbit/s", "rtt": "100 ms", "buffer": "1 bdp" });
    for seed in 1..4 {
        let run = run(&on_linux(&alone("bbr1", &path, "1 s")), seed);
        let least: BTreeSet<u64> =
            run.flows[0].series.min_rtt_ns.iter().copied().filter(|ns| *ns > 0).collect();
        let (last, first) = (*least.first().unwrap(), *least.last().unwrap());
        assert!(first > last + 20_000, "{first} and {last} ns");
    }
}

#[test]
fn blocked_writer_wakes_on_ack() {
    // The connection stands at 0.1 s. Bursts of 28 segments come then and at 0.25 s, while 18 of the first are in flight and
    // leave too little of a buffer of 46 KB. They are acknowledged at 0.3 s, before the third burst.
    let path = json!({ "rate": "100 Mbit/s", "rtt": "100 ms", "buffer": "1 bdp" });
    let mut document = alone("cubic", &path, "490 ms");
    document["hosts"] = json!({ "tcp_memory": "linux" });
    document["flows"][0]["bursts"] = json!({ "size": "40 KB", "every": "250 ms" });
    let written = |document: &Value| run(document, 1).flows[0].totals.written_bytes;
    assert_eq!(written(&document), Some(2 * 28 * 1448));
    assert_eq!(written(&on_linux(&document)), Some(2 * 28 * 1448));
}

/// The ends of the pairs of segments that a flow sends, and the acknowledgement numbers that come back.
#[derive(Default)]
struct Acks {
    burst: Option<(Time, u64, u32)>,
    ends: BTreeSet<u64>,
    acks: BTreeSet<u64>,
}

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Acks>>);

impl Log for Shared {
    fn take(&mut self, at: Time, _flow: u32, event: &Event<'_>) {
        let mut reported = self.0.lock().unwrap();
        match event {
            Event::Sent(sent) if !sent.syn => {
                assert_eq!(sent.again, None, "the path loses nothing");
                let segments = match reported.burst {
                    Some((when, _, segments)) if when == at => segments + 1,
                    // Three are a pair and one more.
                    Some((_, end, 2)) => {
                        reported.ends.insert(end);
                        1
                    }
                    _ => 1,
                };
                reported.burst = Some((at, sent.start + u64::from(sent.payload), segments));
            }
            Event::Acknowledged(ack) => drop(reported.acks.insert(ack.ack)),
            _ => {}
        }
    }
}

#[test]
fn burst_end_is_acked_at_once() {
    // Slow enough that nothing is merged. A window that grows by one now and then puts bursts and pairs out of step.
    let path = json!({ "rate": "2 Mbit/s", "rtt": "60 ms", "buffer": "300 packets" });
    let ideal = alone("vegas", &path, "20 s");
    let missed = |document: &Value| {
        let shared = Shared::default();
        let mut run = Simulation::logged(&spec(document), 1, Box::new(shared.clone())).unwrap();
        run.advance(Time::NEVER).unwrap();
        drop(run);
        let Acks { ends, acks, .. } = &*shared.0.lock().unwrap();
        let last = acks.last().copied().unwrap_or(0);
        let ends: Vec<u64> = ends.range(..last).copied().collect();
        assert!(ends.len() > 300, "{}", ends.len());
        ends.iter().filter(|end| !acks.contains(end)).count()
    };
    let (with_linux, with_ideal) = (missed(&on_linux(&ideal)), missed(&ideal));
    // Two segments that leave together may be two bursts.
    assert!(with_linux * 50 < with_ideal, "{with_linux} and {with_ideal}");
}

/// How many segments left together, each time that some did.
#[derive(Clone, Default)]
struct Bursts(Arc<Mutex<Vec<(Time, u32)>>>);

impl Log for Bursts {
    fn take(&mut self, at: Time, _flow: u32, event: &Event<'_>) {
        let Event::Sent(sent) = event else { return };
        let mut bursts = self.0.lock().unwrap();
        match bursts.last_mut() {
            _ if sent.syn => {}
            Some((when, segments)) if *when == at => *segments += 1,
            _ => bursts.push((at, 1)),
        }
    }
}

/// Of 100 bursts on this path, 9 of the kernel's are lone segments. Without the wait it would be 30 and more: each shifts the bursts
/// behind it, whose ends are then acknowledged for themselves, and each ACK for one segment lets one leave.
#[test]
fn single_segment_window_waits_for_ack() {
    let path = json!({
        "rate": "30 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp", "reverse": { "rate": "600 kbit/s" },
    });
    for seed in 1..4 {
        let shared = Bursts::default();
        let document = on_linux(&alone("cubic", &path, "12 s"));
        let mut run = Simulation::logged(&spec(&document), seed, Box::new(shared.clone())).unwrap();
        run.advance(Time::NEVER).unwrap();
        drop(run);
        let bursts = shared.0.lock().unwrap();
        let alone = bursts.iter().filter(|(_, segments)| *segments == 1).count();
        assert!(alone * 8 < bursts.len(), "{alone} of {}", bursts.len());
    }
}
