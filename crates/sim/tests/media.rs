//! Flows of real-time media: what is counted of their frames, beside nothing and beside what fills the queue.

#[expect(dead_code, reason = "other tests take other scenarios")]
mod random;

use std::sync::atomic::AtomicBool;

use fullpipe_export::{Event, Log};
use fullpipe_record::measures::FlowMeasures;
use fullpipe_record::{FlowRecord, Frames, Run};
use fullpipe_scenario::{Format, Spec, resolve};
use fullpipe_sim::Simulation;
use fullpipe_units::Time;
use serde_json::{Value, json};

fn spec(document: &Value) -> Spec {
    resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error} in {document}"))
}

/// A run, which is that of the plain simulator.
fn run(spec: &Spec, seed: u64) -> Run {
    let never = AtomicBool::new(false);
    let fast = fullpipe_sim::run(spec, seed, &never).expect("nothing cancels it");
    let plain = fullpipe_sim::run_plainly(spec, seed, &never).expect("nothing cancels it");
    assert!(fast.flows == plain.flows && fast.links == plain.links, "{}", spec.to_json());
    fast
}

/// 10 Mbit/s and 20 ms for 2 s, with further keys of the path.
fn over(path: &Value, flows: &[Value]) -> Run {
    let mut document = json!({
        "duration": "2 s",
        "path": { "rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "20 packets" },
        "flows": flows,
    });
    path.as_object().unwrap().iter().for_each(|(key, value)| document["path"][key] = value.clone());
    run(&spec(&document), 1)
}

/// Frames of nine packets: 12 468 B on the wire, which take 9.9744 ms at 10 Mbit/s.
fn media(deadline: &str) -> Value {
    let media = json!({ "frame": "12 kB", "every": "33 ms", "deadline": deadline });
    json!({ "media": media, "start_jitter": 0 })
}

fn frames(flow: &FlowRecord) -> Frames {
    let found = flow.totals.frames.expect("it is media");
    assert!(found.in_time + found.late >= flow.transfers_ns.len() as u64, "each complete frame has a delay");
    assert!(found.in_time + found.late + found.lost <= found.sent, "{found:?}");
    assert!(flow.totals.delivered_bytes <= flow.totals.written_bytes.unwrap());
    found
}

#[test]
fn frames_on_an_empty_path_take_its_delay_and_their_own_time() {
    let run = over(&json!({}), &[media("100 ms")]);
    let flow = &run.flows[0];
    assert_eq!((flow.label.as_str(), flow.controller.as_str()), ("media", "media"));
    // At 0, 33, ... 1980 ms; the last of them is under way when the run ends, and in time.
    assert_eq!(frames(flow), Frames { sent: 61, in_time: 61, ..Frames::default() });
    assert_eq!(flow.transfers_ns, [19_974_400; 61]);
    let totals = &flow.totals;
    assert_eq!((totals.segments_sent, totals.retransmits), (61 * 9, 0));
    assert_eq!((totals.delivered_bytes, totals.written_bytes), (61 * 12_000, Some(61 * 12_000)));
    assert_eq!((totals.start_ns, totals.end_ns, totals.completed), (0, 2_000_000_000, false));
    assert_eq!(run.links[0].totals.accepted_bytes, 61 * 12_468);
    let measures = FlowMeasures::of(flow);
    assert_eq!((measures.missed_frames, measures.loss_ratio, measures.rtt_ms), (Some(0.0), Some(0.0), None));
    // Its series has what arrived; nobody has a window.
    let series = &flow.series;
    assert_eq!((series.delivered_bytes[0], series.delivered_bytes.last()), (0, Some(&(61 * 12_000))));
    assert!(series.cwnd.iter().all(|cwnd| *cwnd == u32::MAX) && series.retransmits.iter().all(|n| *n == 0));
}

#[test]
fn deadline_divides_frames_that_arrive() {
    let found = |deadline| frames(&over(&json!({}), &[media(deadline)]).flows[0]);
    assert_eq!(found("19974400 ns"), Frames { sent: 61, in_time: 61, ..Frames::default() });
    assert_eq!(found("19974399 ns"), Frames { sent: 61, late: 61, ..Frames::default() });
    // A queue of 405 packets makes them late that a short one would lose.
    let bulk = json!({ "controller": "fixed:cwnd=300" });
    let crowded = |buffer: &str| {
        let path = json!({ "buffer": buffer });
        frames(&over(&path, &[media("100 ms"), bulk.clone()]).flows[0])
    };
    let (short, long) = (crowded("20 packets"), crowded("600 packets"));
    assert!(short.lost > 20 && short.late == 0, "{short:?}");
    assert!(long.lost == 0 && long.late > 40, "{long:?}");
}

#[test]
fn frames_of_the_reverse_direction_take_that_way() {
    let mut back = media("100 ms");
    back["direction"] = json!("reverse");
    let slow = json!({ "reverse": { "rate": "5 Mbit/s" } });
    let run = over(&slow, &[back, media("100 ms")]);
    let [back, forward] = &run.flows[..] else { panic!("two flows") };
    // A frame takes twice as long at half of the rate.
    assert_eq!((back.transfers_ns[0], forward.transfers_ns[0]), (10_000_000 + 2 * 9_974_400, 19_974_400));
    assert_eq!((frames(back).in_time, frames(forward).in_time), (60, 61));
}

#[test]
fn lost_packets_are_not_sent_again() {
    let run = over(&json!({ "loss": "5 %" }), &[media("100 ms")]);
    let (flow, found) = (&run.flows[0], frames(&run.flows[0]));
    assert_eq!((flow.totals.segments_sent, found.sent), (61 * 9, 61));
    // 5 % of 549 packets are 27; a frame of nine is whole with 63 %.
    assert!((10..50).contains(&found.lost_packets) && (10..36).contains(&found.lost), "{found:?}");
    // The last frame is under way.
    assert!(
        found.lost <= found.lost_packets && (60..=61).contains(&(found.in_time + found.lost)),
        "{found:?}"
    );
    let measures = FlowMeasures::of(flow);
    assert_eq!(measures.loss_ratio, Some(found.lost_packets as f64 / 549.0));
    assert_eq!(measures.missed_frames, Some(found.lost as f64 / (found.in_time + found.lost) as f64));
    assert_eq!(frames(&over(&json!({}), &[media("100 ms")]).flows[0]).lost_packets, 0);
}

#[test]
fn packet_that_arrives_twice_counts_once() {
    let twice = json!({ "after": [{ "kind": "duplicate", "probability": "100 %" }] });
    let run = over(&twice, &[media("100 ms")]);
    assert_eq!(frames(&run.flows[0]), Frames { sent: 61, in_time: 61, ..Frames::default() });
    assert_eq!(run.flows[0].totals.delivered_bytes, 61 * 12_000);
}

#[test]
fn frames_end_with_stop_or_run() {
    let mut stopped = media("100 ms");
    (stopped["start"], stopped["stop"]) = (json!("100 ms"), json!("298 ms"));
    let flow = &over(&json!({}), &[stopped]).flows[0];
    // At 100, 133, ... 265 ms. At 298 ms the next one is due, and stays.
    assert_eq!(frames(flow), Frames { sent: 6, in_time: 6, ..Frames::default() });
    assert_eq!((flow.totals.start_ns, flow.totals.end_ns), (100_000_000, 298_000_000));
    // What may still come in time when the measures end is neither in time nor missed.
    let mut cut = media("100 ms");
    (cut["start"], cut["stop"]) = (json!("100 ms"), json!("270 ms"));
    let flow = &over(&json!({}), &[cut]).flows[0];
    assert_eq!(frames(flow), Frames { sent: 6, in_time: 5, ..Frames::default() });
    let late = over(&json!({ "rtt": "1 s" }), &[media("100 ms")]);
    // One way takes 500 ms: those of the first 1490 ms arrive late. Those that follow by 1900 ms are late, too, and under way.
    assert_eq!(frames(&late.flows[0]), Frames { sent: 61, late: 58, ..Frames::default() });
    assert_eq!(late.flows[0].transfers_ns.len(), 46);
}

#[test]
fn record_keeps_order_of_flows() {
    let flows = [media("100 ms"), json!({ "controller": "reno" }), media("100 ms")];
    let run = over(&json!({ "queue": "fq_codel" }), &flows);
    let labels: Vec<&str> = run.flows.iter().map(|flow| flow.label.as_str()).collect();
    assert_eq!(labels, ["media-1", "reno", "media-2"]);
    let media: Vec<bool> = run.flows.iter().map(|flow| flow.totals.frames.is_some()).collect();
    assert_eq!(media, [true, false, true]);
    assert!(run.flows.iter().all(|flow| flow.totals.delivered_bytes > 300_000));
}

/// Half of the flows of random scenarios are media; each run checks that packets and bytes are conserved.
#[test]
fn random_media_match_plain_simulator() {
    let (mut found, mut hosts) = (Frames::default(), 0);
    for number in 0..150 {
        let mut draws = random::Draws(number);
        let mut document = random::scenario(number);
        for flow in document["flows"].as_array_mut().unwrap() {
            if draws.one_in(2) {
                let size = draws.pick(&["1 B", "1448 B", "1449 B", "12 kB", "90 kB"]);
                let every = draws.pick(&["1 ms", "7 ms", "33 ms", "400 ms"]);
                let deadline = draws.pick(&["5 ms", "50 ms", "1 s"]);
                *flow = json!({ "media": { "frame": size, "every": every, "deadline": deadline } });
                flow["count"] = json!(1 + draws.below(3));
                if draws.one_in(3) {
                    flow["stop"] = json!("290 ms");
                    flow["start_jitter"] = json!("20 ms");
                }
            }
        }
        if draws.one_in(3) {
            document["hosts"]["model"] = json!("linux");
            hosts += 1;
        }
        for flow in run(&spec(&document), number).flows.iter().filter(|flow| flow.totals.frames.is_some()) {
            let one = frames(flow);
            found.sent += one.sent;
            found.in_time += one.in_time;
            found.late += one.late;
            found.lost += one.lost;
        }
    }
    assert!(found.in_time > 5_000 && found.late > 500 && found.lost > 500 && hosts > 30, "{found:?} {hosts}");
}

#[test]
fn logged_run_is_the_same_without_packets_of_media() {
    struct OfFlow(Vec<u64>);
    impl Log for OfFlow {
        fn take(&mut self, _: Time, flow: u32, _: &Event<'_>) {
            self.0[flow as usize] += 1;
            assert_ne!(flow, 0, "no format has media");
        }
    }
    let document = json!({
        "duration": "1 s",
        "path": { "rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "20 packets" },
        "flows": [media("100 ms"), { "controller": "cubic" }],
    });
    let spec = spec(&document);
    let mut simulation = Simulation::logged(&spec, 1, Box::new(OfFlow(vec![0; 2]))).unwrap();
    simulation.advance(Time::NEVER).unwrap();
    let (view, of_log) = (simulation.flow(0), simulation.flow(0).segments_sent());
    assert!(view.sample().is_none() && view.delivered_bytes() > 0 && !view.transfers_ns().is_empty());
    let (logged, plain) = (simulation.finish(), run(&spec, 1));
    assert!(logged.flows == plain.flows && logged.links == plain.links);
    assert_eq!(of_log, plain.flows[0].totals.segments_sent);
}

#[test]
fn media_takes_no_controller() {
    let spec = spec(&json!({
        "path": { "rate": "10 Mbit/s", "rtt": "20 ms" },
        "flows": [media("100 ms"), { "controller": "own:Mine" }],
    }));
    let mut simulation = Simulation::new(&spec, 1).unwrap();
    let error = simulation.advance(Time::NEVER).unwrap_err().to_string();
    assert!(error.starts_with("flows[1].controller: own:Mine is not built in"), "{error}");
    let give = |simulation: &mut Simulation, flow| {
        simulation.controller_from(flow, false, Box::new(|_, _| unreachable!("nobody connects")))
    };
    let error = give(&mut simulation, 0).unwrap_err().to_string();
    assert!(error.starts_with("flows[0].controller: the scenario says media"), "{error}");
    assert_eq!(give(&mut simulation, 1), Ok(()));
}
