//! Random scenarios in rounds, compared with the plain simulator.

#[path = "../../../tests/random/mod.rs"]
mod random;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicBool;

use fullpipe_cc::{Config, Connection};
use fullpipe_path::config::{ElementConfig, Schedule};
use fullpipe_path::{Chain, DisciplineConfig};
use fullpipe_record::Run;
use fullpipe_scenario::{Format, Spec, resolve};
use fullpipe_units::{Duration, Time};
use random::Draws;
use serde_json::{Value, json};

use crate::agenda::Winners;
use crate::packet::{Acknowledgement, Segment};
use crate::plug::{Maker, OwnController};
use crate::run_plainly;
use crate::world::World;

type OfChains = World<Winners, Chain<Segment>, Chain<Acknowledgement>>;

/// A law that rounds break on purpose.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Breach {
    /// The window is longer than what is known.
    Longer(Duration),
    /// The run may end within a window.
    Ends,
    /// Packets get to the path flow by flow.
    FlowByFlow,
}

/// How a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Steps {
    One,
    /// So long a time at once, on a path that can change.
    Many(Duration),
    /// Cancelled as soon as possible, and continued.
    Cancelled,
}

/// Scenarios of an ordinary test; more with the environment's `FULLPIPE_ROUNDS`, best in a release build.
const SCENARIOS: u64 = 240;

/// What a scenario did.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    scenarios: u64,
    in_rounds: u64,
    rounds: u64,
    packets: u64,
}

fn in_rounds(spec: &Spec, seed: u64, steps: Steps, breach: Option<Breach>) -> (Run, u64) {
    let build = if let Steps::Many(_) = steps { Chain::changing } else { Chain::new };
    let back = if let Steps::Many(_) = steps { Chain::changing } else { Chain::new };
    let mut world: OfChains = World::new(spec, seed, build, back).expect("a path");
    (world.least_flows, world.breach) = (1, breach);
    let mut next = Time::ZERO;
    while !world.is_over() {
        let cancel = AtomicBool::new(steps == Steps::Cancelled);
        if let Steps::Many(step) = steps {
            next += step;
            world.advance(next, &cancel);
        } else {
            world.advance(Time::NEVER, &cancel);
        }
    }
    let rounds = world.rounds.as_ref().map_or(0, |rounds| rounds.count);
    (world.into_run(spec, seed), rounds)
}

/// Scenario number `number`, and how it is run: 1 to 300 flows over all that a path can have.
fn scenario(number: u64) -> (Value, Steps) {
    let mut draws = Draws(number.wrapping_mul(0x9e6c_63d0_876a_68df));
    let kinds = [random::scenario, random::scenario, random::scenario_with_a_longer_way_back];
    let kind = if draws.one_in(5) { random::scenario_of_transfers } else { kinds[draws.below(3) as usize] };
    let mut document = kind(number);
    document["duration"] = json!(draws.pick(&["500 ms", "800 ms", "1600 ms", "2500 ms"]));
    if let Some(changes) = document["path"].get_mut("changes") {
        (changes[0]["at"], changes[1]["at"]) = (json!("200 ms"), json!("420 ms"));
    }
    if draws.one_in(3) {
        document["path"]["loss"] = Value::Null;
    }
    if draws.one_in(2) {
        for place in ["before", "after"] {
            document["path"][place] = json!([]);
        }
    }
    if draws.one_in(8) {
        document["path"]["rate"] = json!("400 Mbit/s");
        document["duration"] = json!("500 ms");
    }
    let disciplines = [
        "fifo",
        "fifo",
        "step:threshold=7",
        "codel",
        "fq_codel",
        "red",
        "pie",
        "dualpi2",
        "fq_codel:flows=3",
    ];
    if draws.one_in(2) {
        document["path"]["queue"] = json!(draws.pick(&disciplines));
    }
    if draws.one_in(12) {
        document["path"]["unit"] = json!("burst");
    }
    let controllers = [
        "reno",
        "cubic",
        "newreno",
        "cubic9438",
        "bbr1",
        "bbr1",
        "bbr3",
        "bbr3",
        "bbr3:profile=linux",
        "vegas",
        "copa",
        "dctcp",
        "fixed:cwnd=20",
        "fixed:rate=1",
    ];
    let most = [1, 3, 12, 40, 100][draws.below(5) as usize];
    let all_end = draws.one_in(6);
    for flow in document["flows"].as_array_mut().expect("a list of flows") {
        if all_end {
            let flow = flow.as_object_mut().expect("a table");
            ["bursts", "requests", "video", "transfers"].iter().for_each(|key| drop(flow.remove(*key)));
            flow.insert("size".into(), json!(draws.pick(&["1 B", "30 KB", "99999 B"])));
        }
        flow["controller"] = json!(draws.pick(&controllers));
        flow["count"] = json!(1 + draws.below(most));
        if flow.get("stop").is_some() {
            flow["stop"] = json!(draws.pick(&["250 ms", "450 ms"]));
        }
        if draws.one_in(4) {
            flow["stagger"] = json!(draws.pick(&["1 us", "0.7 ms", "9 ms"]));
        }
        if draws.one_in(3) {
            flow["start_jitter"] = json!("0 s");
        }
        if draws.one_in(6) {
            flow["rtt"] = json!(draws.pick(&["101 ms", "140 ms"]));
        }
        if draws.one_in(6) {
            flow["receiver"] = json!(draws.pick(&["splits_acks", "hides_ce", "hides_loss"]));
        }
        if draws.one_in(12) {
            let flow = flow.as_object_mut().expect("a table");
            flow.retain(|key, _| {
                ["count", "start", "stop", "stagger", "start_jitter", "rtt"].contains(&key.as_str())
            });
            let every = draws.pick(&["1 ms", "3.3 ms", "20 ms"]);
            flow.insert(
                "media".into(),
                json!({ "frame": draws.pick(&["1 B", "1449 B", "9 kB"]), "every": every }),
            );
        }
    }
    let hosts = &mut document["hosts"];
    hosts["ecn"] = json!(draws.one_in(3));
    if draws.one_in(12) {
        hosts["model"] = json!("linux");
    }
    if draws.one_in(15) {
        hosts["metrics"] = json!({ "save_ssthresh": true });
    }
    document["record"] = json!({ "flows": !draws.one_in(5) });
    if draws.one_in(2) {
        document["record"]["interval"] = json!(draws.pick(&["1 ms", "3.3 ms", "70 ms"]));
    }
    let steps = match draws.below(6) {
        0 => Steps::Many(Duration::from_micros([700, 5_000, 123_457][draws.below(3) as usize])),
        1 => Steps::Cancelled,
        _ => Steps::One,
    };
    (document, steps)
}

fn without_nulls(document: &mut Value) {
    if let Some(table) = document.as_object_mut() {
        table.retain(|_, value| !value.is_null());
        table.values_mut().for_each(without_nulls);
    }
}

/// The scenario in numbers. What cannot be had together is left out.
fn spec(document: &mut Value) -> Spec {
    without_nulls(document);
    for key in ["", "receiver", "stop", "stagger", "start", "rtt", "unit", "queue"] {
        let flows = document["flows"].as_array_mut().expect("a list of flows").iter_mut();
        flows.for_each(|flow| drop(flow.as_object_mut().map(|flow| flow.remove(key))));
        if ["unit", "queue"].contains(&key) {
            document["path"].as_object_mut().expect("a table").remove(key);
        }
        if let Ok(mut spec) = resolve(&document.to_string(), Format::Json, None) {
            if document["record"]["interval"] == "70 ms" {
                spec.sample_interval_ns = None;
            }
            return spec;
        }
    }
    let error = resolve(&document.to_string(), Format::Json, None).unwrap_err();
    panic!("{error} in {document}")
}

/// Forty flows over a path; the keys of `changes` replace those of the scenario, of its path, hosts or first flow.
fn forty(changes: &Value) -> Spec {
    let mut document = json!({
        "duration": "700 ms",
        "path": { "rate": "40 Mbit/s", "rtt": "20 ms", "buffer": "60 packets" },
        "flows": [{ "controller": "cubic", "count": 39, "start_jitter": "5 ms" }, { "controller": "bbr1" }],
        "hosts": {},
    });
    for (place, keys) in changes.as_object().expect("a table") {
        let table = if place == "flow" { &mut document["flows"][0] } else { &mut document[place] };
        keys.as_object().expect("a table").iter().for_each(|(key, value)| table[key] = value.clone());
    }
    spec(&mut document)
}

/// The rounds of a run that equals the plain simulator's.
fn rounds_of(spec: &Spec, steps: Steps) -> u64 {
    let plain = run_plainly(spec, 1, &AtomicBool::new(false)).expect("nothing cancels it");
    let (run, rounds) = in_rounds(spec, 1, steps, None);
    assert!(run.flows == plain.flows && run.links == plain.links, "{steps:?}: {}", spec.to_json());
    rounds
}

#[test]
fn path_limited_flows_use_rounds() {
    for changes in [
        json!({}),
        json!({ "path": { "queue": "fq_codel" } }),
        json!({ "path": { "queue": "pie" }, "hosts": { "ecn": true } }),
        json!({ "path": { "queue": "red" } }),
        json!({ "path": { "queue": "step:threshold=5" }, "flow": { "controller": "dctcp" } }),
        json!({ "path": { "queue": "dualpi2" }, "hosts": { "ecn": true } }),
        json!({ "path": { "loss": "1 %" } }),
        json!({ "path": { "jitter": "2 ms", "jitter_reorders": true } }),
        json!({ "path": { "after": [{ "kind": "policer", "rate": "20 Mbit/s", "burst": "60 KB" }] } }),
        json!({ "path": { "after": [{ "kind": "duplicate", "probability": "2 %" }] } }),
        json!({ "path": { "after": [{ "kind": "wifi", "collisions": "0.1 %" }] } }),
        json!({ "path": { "changes": [{ "at": "300 ms", "rate": "9 Mbit/s", "rtt": "30 ms" }] } }),
        json!({ "path": { "burst": "20 KB" } }),
        json!({ "path": { "reverse": { "rate": "1 Mbit/s" } } }),
        json!({ "path": { "reverse": { "loss": "5 %" } } }),
        json!({ "flow": { "rtt": "33 ms" } }),
        json!({ "flow": { "receiver": "hides_loss" } }),
        json!({ "flow": { "receiver": "splits_acks" } }),
        json!({ "path": { "queue": "codel" }, "hosts": { "ecn": true }, "flow": { "receiver": "hides_ce" } }),
        json!({ "flow": { "size": "70 KB" } }),
        json!({ "flow": { "stop": "333 ms" } }),
        json!({ "flow": { "requests": { "size": "20 KB", "pause": "3 ms" } } }),
        json!({ "flow": { "video": { "rate": "1 Mbit/s", "chunk": "90 ms" } } }),
        json!({ "flow": { "start_jitter": "0 s" } }),
        json!({ "hosts": { "gro": "1 ms" } }),
        json!({ "hosts": { "pacing": true } }),
    ] {
        let spec = forty(&changes);
        for steps in [Steps::One, Steps::Many(Duration::from_micros(3_300)), Steps::Cancelled] {
            assert!(rounds_of(&spec, steps) > 15, "{steps:?}: {changes}");
        }
    }
}

/// Their frames are further apart than steps of 3 ms, in which few flows have anything to do.
#[test]
fn flows_of_media_use_rounds() {
    let spec =
        forty(&json!({ "flow": { "controller": null, "media": { "frame": "3 kB", "every": "20 ms" } } }));
    assert!(rounds_of(&spec, Steps::One) > 15);
    for steps in [Steps::Many(Duration::from_micros(3_300)), Steps::Cancelled] {
        rounds_of(&spec, steps);
    }
}

/// Their flows meet outside the path.
#[test]
fn flows_sharing_hosts_use_no_rounds() {
    assert_eq!(rounds_of(&forty(&json!({ "hosts": { "model": "linux" } })), Steps::One), 0);
    assert_eq!(
        rounds_of(&forty(&json!({ "hosts": { "metrics": { "save_ssthresh": true } } })), Steps::One),
        0
    );
}

#[test]
fn custom_controller_uses_no_rounds() {
    let spec = forty(&json!({ "hosts": { "pacing": true } }));
    let mut world: OfChains = World::new(&spec, 1, Chain::new, Chain::new).expect("a path");
    assert!(world.rounds().is_some());
    let make = |_: &Config, _: &Connection| -> OwnController { unreachable!("it never connects") };
    world.flows[7].own_controller(Maker(Box::new(make)), false);
    assert!(world.rounds().is_none());
}

/// Nothing is known ahead where a packet arrives as soon as the queue lets it go: events alone.
#[test]
fn zero_delay_path_uses_no_rounds() {
    let mut spec = forty(&json!({}));
    for elements in [&mut spec.forward, &mut spec.reverse] {
        elements.retain(|element| !matches!(element, ElementConfig::Delay { .. }));
    }
    spec.forward.insert(0, ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(9)) });
    spec.forward.iter_mut().for_each(|element| {
        if let ElementConfig::Link { queue, .. } = element {
            queue.discipline = DisciplineConfig::by_name("codel").expect("it is built in");
        }
    });
    assert_eq!(rounds_of(&spec, Steps::One), 0);
}

/// All flows end within milliseconds: the last of them ends the run, at the same instant as an event at a time.
#[test]
fn last_window_runs_as_events() {
    let mut spec = forty(&json!({ "flow": { "size": "30 KB" }, "path": { "buffer": "900 packets" } }));
    spec.flows.truncate(39);
    let (run, rounds) = in_rounds(&spec, 1, Steps::One, None);
    assert!(run.flows.iter().all(|flow| flow.totals.completed));
    assert!(rounds > 0 && rounds_of(&spec, Steps::One) == rounds);
}

#[test]
fn few_flows_have_no_rounds() {
    let rounds = |count: u64, controller: &str| {
        let spec = forty(&json!({ "flow": { "count": count, "controller": controller } }));
        let mut world: OfChains = World::new(&spec, 1, Chain::new, Chain::new).expect("a path");
        world.advance(Time::NEVER, &AtomicBool::new(false));
        world.rounds.is_some()
    };
    assert_eq!([rounds(30, "bbr1"), rounds(31, "bbr1")], [false, true]);
    assert_eq!([rounds(123, "cubic"), rounds(124, "cubic")], [false, true]);
}

/// Runs a scenario both ways; how they differ, if they do.
fn compare(number: u64, breach: Option<Breach>, counts: &mut Counts) -> Result<(), String> {
    let (mut document, steps) = scenario(number);
    let spec = spec(&mut document);
    let plain = run_plainly(&spec, number, &AtomicBool::new(false)).expect("nothing cancels it");
    let run = catch_unwind(AssertUnwindSafe(|| in_rounds(&spec, number, steps, breach)));
    let Ok((fast, rounds)) = run else {
        return Err(format!("number {number} panics, {steps:?}: {document}"));
    };
    counts.scenarios += 1;
    counts.in_rounds += (rounds > 0) as u64;
    counts.rounds += rounds;
    counts.packets += fast.flows.iter().map(|flow| flow.totals.segments_sent).sum::<u64>();
    if fast.flows == plain.flows && fast.links == plain.links {
        return Ok(());
    }
    let flow = fast.flows.iter().zip(&plain.flows).position(|(fast, plain)| fast != plain);
    let link = fast.links.iter().zip(&plain.links).position(|(fast, plain)| fast != plain);
    Err(format!(
        "number {number}, {steps:?}: flow {flow:?} or link {link:?} differs after {rounds} rounds: {document}"
    ))
}

#[test]
fn rounds_match_plain_simulator_exactly() {
    let scenarios =
        std::env::var("FULLPIPE_ROUNDS").map_or(SCENARIOS, |count| count.parse().expect("a count"));
    let mut counts = Counts::default();
    let differ: Vec<String> =
        (0..scenarios).filter_map(|number| compare(number, None, &mut counts).err()).collect();
    differ.iter().for_each(|one| println!("{one}"));
    assert!(differ.is_empty(), "{} of {scenarios} differ, the first: {}", differ.len(), differ[0]);
    println!("{counts:?}");
    assert!(counts.in_rounds * 2 > scenarios && counts.rounds > 20 * scenarios, "{counts:?}");
}

/// The control of the comparison: each broken law is seen.
#[test]
fn a_broken_law_is_seen() {
    for breach in [Breach::Longer(Duration::from_micros(100)), Breach::Ends, Breach::FlowByFlow] {
        let seen = (0..40).any(|number| compare(number, Some(breach), &mut Counts::default()).is_err());
        assert!(seen, "{breach:?}");
    }
}
