//! Results do not change when the simulator gets faster: fingerprints of whole records, over a fixed set of random
//! scenarios, and the records of the plain simulator.

mod random;

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use fullpipe_path::DisciplineConfig;
use fullpipe_path::config::ElementConfig;
use fullpipe_record::{FlowRecord, Run};
use fullpipe_scenario::spec::{Lie, Spec};
use fullpipe_scenario::{Format, resolve};
use serde_json::{Value, json};

/// Scenarios in the golden table.
const GOLDEN: u64 = 400;
/// Scenarios that are run both ways: those of the table, more of their kind, and each again with more on the way back.
const BOTH_WAYS: u64 = 500;

fn spec(document: &Value) -> Spec {
    resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error} in {document}"))
}

fn run(spec: &Spec, seed: u64) -> Run {
    fullpipe_sim::run(spec, seed, &AtomicBool::new(false)).expect("nothing cancels it")
}

fn run_plainly(spec: &Spec, seed: u64) -> Run {
    fullpipe_sim::run_plainly(spec, seed, &AtomicBool::new(false)).expect("nothing cancels it")
}

/// FNV-1a over the record as text: flows and links, totals and every point of every series. Counts that are newer than the
/// table are left out where nothing was counted.
fn fingerprint(run: &Run) -> u64 {
    let mut run = run.clone();
    for flow in &mut run.flows {
        // What was written was not counted then. It follows from when the send buffer has room, and the tests of it are below.
        (flow.totals.written_bytes, flow.totals.written_ns) = (None, None);
    }
    let newer = ", echoed_segments: None, written_bytes: None, written_ns: None, metrics: None, seen: None, \
                 frames: None";
    let mut text =
        format!("{:?} {:?}", run.flows, run.links).replace(newer, "").replace("reverse: false, ", "");
    for name in ["early_packets", "marked_packets"] {
        text = text.replace(&format!(", {name}: 0"), "");
        let mut rest = std::mem::take(&mut text);
        while let Some((before, series)) = rest.split_once(&format!(", {name}: [")) {
            let (counts, after) = series.split_once(']').expect("a series ends");
            assert!(counts.chars().all(|one| "0, ".contains(one)), "{name} of a plain queue: {counts}");
            text.push_str(before);
            rest = after.to_owned();
        }
        text.push_str(&rest);
    }
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3))
}

// draft 2.2#0728c2: spurious retransmissions are among what they count
/// `UPDATE_GOLDEN=1 cargo test -p fullpipe-sim` writes the table anew; do so only when results were meant to change.
#[test]
fn records_match_golden_table() {
    let mut table = "number flows sent retransmits timeouts delivered_bytes fingerprint\n".to_string();
    for number in 0..GOLDEN {
        let run = run(&spec(&random::scenario(number)), number);
        let sum = |pick: fn(&fullpipe_record::FlowTotals) -> u64| -> u64 {
            run.flows.iter().map(|flow| pick(&flow.totals)).sum()
        };
        writeln!(
            table,
            "{number} {} {} {} {} {} {:016x}",
            run.flows.len(),
            sum(|totals| totals.segments_sent),
            sum(|totals| totals.retransmits),
            sum(|totals| totals.timeouts),
            sum(|totals| totals.delivered_bytes),
            fingerprint(&run)
        )
        .unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/random.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (was, is) in golden.lines().zip(table.lines()) {
        assert_eq!(
            was,
            is,
            "scenario: {}",
            random::scenario(is.split(' ').next().unwrap().parse().unwrap_or(0))
        );
    }
    assert_eq!(golden.lines().count(), table.lines().count());
}

/// The simulator composes a path's elements and files timers late; the plain one takes every hop as an event.
#[test]
fn records_match_plain_simulator() {
    for number in 0..BOTH_WAYS {
        for document in [random::scenario(number), random::scenario_with_a_longer_way_back(number)] {
            let spec = spec(&document);
            let (fast, plain) = (run(&spec, number), run_plainly(&spec, number));
            let same = fast.flows == plain.flows && fast.links == plain.links;
            assert!(same, "number {number}: {}\n{document}", difference(&fast, &plain));
            fast.flows.iter().for_each(check_written);
        }
    }
}

/// What was delivered had been written before.
fn check_written(flow: &FlowRecord) {
    let totals = &flow.totals;
    assert!(totals.written_bytes >= Some(totals.delivered_bytes), "{totals:?}");
    assert!(totals.written_ns.is_none_or(|at| (totals.start_ns..=totals.end_ns).contains(&at)), "{totals:?}");
    assert!(!totals.completed || totals.written_ns.is_some(), "{totals:?}");
    assert!(!totals.completed || totals.written_bytes == Some(totals.delivered_bytes), "{totals:?}");
}

/// Transfers that wait for each other came after the golden table. Each run checks that no byte is lost between them.
#[test]
fn sequential_transfers_match_plain_simulator() {
    let (mut transfers, mut scripts, mut stalls) = (0, 0, 0);
    for number in 0..BOTH_WAYS / 2 {
        let document = random::scenario_of_transfers(number);
        let spec = spec(&document);
        let (fast, plain) = (run(&spec, number), run_plainly(&spec, number));
        let same = fast.flows == plain.flows && fast.links == plain.links;
        assert!(same, "number {number}: {}\n{document}", difference(&fast, &plain));
        for (flow, flow_spec) in fast.flows.iter().zip(&spec.flows) {
            check_written(flow);
            transfers += flow.transfers_ns.len();
            stalls += flow.rebuffered_ns.is_some_and(|nanos| nanos > 0) as usize;
            if let Some(bytes) = flow_spec.workload.total_bytes()
                && flow.totals.completed
            {
                scripts += 1;
                assert_eq!(flow.totals.delivered_bytes, bytes.as_u64(), "number {number}: {}", flow.label);
            }
        }
    }
    assert!(transfers > 10_000 && scripts > 100 && stalls > 30, "{transfers}, {scripts}, {stalls}");
}

/// Hosts that take time, and whose buffers grow, came after the golden table. Each run checks itself: what was sent was delivered,
/// dropped, is in flight, or was too old.
#[test]
fn linux_hosts_match_plain_simulator() {
    let mut full = 0;
    for number in 0..BOTH_WAYS / 2 {
        let kinds =
            [random::scenario, random::scenario_with_a_longer_way_back, random::scenario_of_transfers];
        for kind in kinds {
            let mut document = kind(number);
            document["hosts"]["model"] = json!("linux");
            let spec = spec(&document);
            let (fast, plain) = (run(&spec, number), run_plainly(&spec, number));
            let same = fast.flows == plain.flows && fast.links == plain.links;
            assert!(same, "number {number}: {}\n{document}", difference(&fast, &plain));
            let sizes = spec.hosts.tcp_wmem_bytes.map(|bytes| bytes.as_u64());
            let text = document.to_string();
            let reorders = [r#"reorders":true"#, r#""kind":"reorder""#].iter().any(|one| text.contains(one));
            // A degree of reordering counts as a window; the most that Linux takes is 300 (`tcp_max_reordering`).
            let least = if reorders { 301 } else { 10 };
            for flow in &fast.flows {
                check_written(flow);
                full += check_buffer(flow, sizes, least) as usize;
            }
        }
    }
    assert!(full > 100, "{full}");
}

/// A buffer holds at most three of the largest window, which is `least` segments or more, each with its memory, up to its maximum;
/// and the piece that overfills it. Returns whether it was more than half full in the end.
fn check_buffer(flow: &FlowRecord, [_, first, most]: [u64; 3], least: u64) -> bool {
    let window =
        flow.series.cwnd.iter().filter(|cwnd| **cwnd != u32::MAX).max().map_or(0, |most| *most as u64);
    let limit = first.max(3 * window.max(least) * 2_304).min(most);
    let ahead = flow.totals.written_bytes.unwrap() - flow.totals.delivered_bytes;
    assert!(ahead <= limit + 65_536, "{}: {ahead} of {limit}", flow.label);
    2 * ahead > limit
}

/// Elements that came after the golden table, whose scenarios are drawn without them.
#[test]
fn radio_and_ack_aggregation_match_plain() {
    for (number, controller) in
        ["bbr1", "cubic", "vegas", "fixed:cwnd=200", "fixed:rate=12"].iter().enumerate()
    {
        let document = json!({
            "duration": "5 s",
            "path": {
                "rate": "100 Mbit/s", "rtt": "30 ms", "jitter": "2 ms", "jitter_reorders": number % 2 == 0,
                "after": [
                    { "kind": "cellular", "rates": ["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"], "review": "50 ms",
                      "demand": "5 ms", "buffer": "2 bdp" },
                    { "kind": "wifi", "collisions": "7 %" },
                ],
                "reverse": { "before": [{ "kind": "aggregate", "every": "7 ms" }], "rate": "1 Mbit/s" },
            },
            "flows": [{ "controller": controller, "count": 2, "rtt": "45 ms" }, { "controller": "reno" }],
        });
        let spec = spec(&document);
        let (fast, plain) = (run(&spec, 1), run_plainly(&spec, 1));
        assert!(
            fast.flows == plain.flows && fast.links == plain.links,
            "{controller}: {}",
            difference(&fast, &plain)
        );
        assert!(fast.flows.iter().all(|flow| flow.totals.delivered_bytes > 100_000), "{controller}");
    }
}

/// The same scenarios with ECN, DCTCP among the flows, and queues that mark. Every run checks the laws of `verify`: nothing is marked
/// without ECN, or reduced without marks.
fn spec_with_marks(number: u64) -> Spec {
    let mut document = random::scenario(number);
    document["hosts"]["ecn"] = json!(!number.is_multiple_of(4));
    if number.is_multiple_of(3) {
        let exact = if number.is_multiple_of(2) { "dctcp" } else { "dctcp:ect1=1" };
        document["flows"][0]["controller"] = json!(exact);
    }
    let mut spec = spec(&document);
    let disciplines = ["step", "codel", "step", "fq_codel", "step", "red", "step", "pie"];
    let names: Vec<&str> =
        disciplines.into_iter().filter(|name| DisciplineConfig::by_name(name).is_some()).collect();
    for (index, element) in spec.forward.iter_mut().chain(&mut spec.reverse).enumerate() {
        if let ElementConfig::Link { queue, .. } = element {
            let mut managed =
                DisciplineConfig::by_name(names[(number as usize + index) % names.len()]).unwrap();
            if managed.info().name == "step" {
                managed.set("threshold", 1 + number % 7).unwrap();
            }
            queue.discipline = managed;
        }
    }
    spec
}

#[test]
fn marked_flows_match_plain_simulator() {
    let mut marked = 0;
    for number in 0..BOTH_WAYS / 2 {
        let spec = spec_with_marks(number);
        let (fast, plain) = (run(&spec, number), run_plainly(&spec, number));
        let same = fast.flows == plain.flows && fast.links == plain.links;
        assert!(same, "number {number}: {}", difference(&fast, &plain));
        // Marks change what a flow does.
        let mut unmarked = spec.clone();
        unmarked.hosts.ecn = false;
        marked += (spec.hosts.ecn && run(&unmarked, number).flows != fast.flows) as u32;
    }
    assert!(marked > BOTH_WAYS as u32 / 5, "{marked} scenarios");
}

/// Receivers that lie; those of flows whose transfers end do not hide losses.
#[test]
fn lying_receivers_match_plain_simulator() {
    let mut lies = 0;
    for number in 0..BOTH_WAYS / 2 {
        let mut spec = spec_with_marks(number);
        let honest = run(&spec, number);
        for (index, flow) in spec.flows.iter_mut().enumerate() {
            let choice = (number as usize + index) % 3;
            flow.receiver = Some([Lie::HidesLoss, Lie::SplitsAcks, Lie::HidesCe][choice])
                .filter(|lie| lie.suits(&flow.workload));
        }
        let (fast, plain) = (run(&spec, number), run_plainly(&spec, number));
        let same = fast.flows == plain.flows && fast.links == plain.links;
        assert!(same, "number {number}: {}", difference(&fast, &plain));
        lies += (fast.flows != honest.flows) as u64;
    }
    assert!(lies > BOTH_WAYS / 3, "{lies} scenarios");
}

/// Flows of both directions, so that data and acknowledgements share each queue.
#[test]
fn two_way_flows_match_plain_simulator() {
    let (mut runs, mut changed, mut lost) = (0, 0, 0);
    for number in 0..BOTH_WAYS / 2 {
        let kinds =
            [random::scenario, random::scenario_with_a_longer_way_back, random::scenario_of_transfers];
        for (index, kind) in kinds.into_iter().enumerate() {
            let mut document = kind(number);
            let choice = number as usize + index;
            let rate = ["2 Mbit/s", "10 Mbit/s", "30 Mbit/s"][choice % 3];
            let queue = ["fifo", "fq_codel", "step:threshold=5"][choice / 3 % 3];
            document["path"]["reverse"]["rate"] = json!(rate);
            document["path"]["reverse"]["queue"] = json!(queue);
            document["hosts"]["model"] = json!(["ideal", "linux"][choice / 9 % 2]);
            document["hosts"]["ecn"] = json!(queue != "fifo");
            let one_way = run(&spec(&document), number);
            let flows = document["flows"].as_array_mut().expect("a list of flows");
            for (place, flow) in flows.iter_mut().enumerate() {
                if place == 0 || (choice >> place).is_multiple_of(2) {
                    flow["direction"] = json!("reverse");
                }
            }
            let spec = spec(&document);
            let (fast, plain) = (run(&spec, number), run_plainly(&spec, number));
            let same = fast.flows == plain.flows && fast.links == plain.links;
            assert!(same, "number {number}: {}\n{document}", difference(&fast, &plain));
            fast.flows.iter().for_each(check_written);
            runs += 1;
            changed += (fast.flows != one_way.flows) as u64;
            let back = fast.links.iter().find(|link| link.name == "reverse").expect("it has a rate");
            lost += (back.totals.dropped_packets + back.totals.marked_packets > 0) as u64;
        }
    }
    assert!(changed > runs * 9 / 10 && lost > runs / 4, "{changed} and {lost} of {runs}");
}

/// The first flow or link in which two records differ; the series alone do where totals are equal.
fn difference(fast: &Run, plain: &Run) -> String {
    let mut flows = fast.flows.iter().zip(&plain.flows);
    if let Some((fast, plain)) = flows.find(|(fast, plain)| fast != plain) {
        return format!("{}: {:?}, but plainly {:?}", fast.label, fast.totals, plain.totals);
    }
    let mut links = fast.links.iter().zip(&plain.links);
    if let Some((fast, plain)) = links.find(|(fast, plain)| fast != plain) {
        return format!("{}: {:?}, but plainly {:?}", fast.name, fast.totals, plain.totals);
    }
    format!(
        "{} and {} flows, {} and {} links",
        fast.flows.len(),
        plain.flows.len(),
        fast.links.len(),
        plain.links.len()
    )
}

/// The receiver answers the last segment and the run is over, at the same instant as the answer gets past an element that
/// reorders and into a queue.
#[test]
fn final_instant_counts_in_full() {
    let document = json!({
        "name": "one segment",
        "duration": "1 s",
        "path": {
            "rate": "10 Mbit/s",
            "rtt": "20 ms",
            "reverse": {
                "before": [{ "kind": "reorder", "probability": "0 %", "delay": "1 ms" }],
                "rate": "1 Mbit/s",
            },
        },
        "flows": [{ "controller": "reno", "size": "1 B" }],
    });
    let spec = spec(&document);
    for run in [run(&spec, 1), run_plainly(&spec, 1)] {
        assert!(run.flows[0].totals.completed);
        let back = run.links.last().expect("the link on the way back");
        // The answers to the SYN and to the segment.
        assert_eq!((back.totals.arrived_packets, back.totals.accepted_bytes), (2, 60 + 52));
    }
}
