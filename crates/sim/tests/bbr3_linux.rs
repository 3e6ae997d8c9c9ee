//! Google's BBRv3 in whole simulations: what it makes of a path, beside the draft's.

use std::sync::atomic::AtomicBool;

use fullpipe_record::measures::LinkMeasures;
use fullpipe_record::{FlowRecord, Run};
use fullpipe_scenario::{Format, resolve};
use serde_json::{Value, json};

/// Payload bytes in a full packet of 1500.
const PAYLOAD: f64 = 1448.0 / 1500.0;

fn run(path: &Value, duration: &str, flows: Value, seed: u64) -> Run {
    let document = json!({ "name": "test", "duration": duration, "path": path, "flows": flows });
    let spec = resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error}"));
    fullpipe_sim::run(&spec, seed, &AtomicBool::new(false)).expect("nothing cancels it")
}

fn alone(controller: &str, path: &Value, duration: &str, seed: u64) -> Run {
    run(path, duration, json!([{ "controller": controller }]), seed)
}

/// A flow's goodput between two times, as a share of a link's payload rate in Mbit/s.
fn share(flow: &FlowRecord, link: f64, from_s: u64, to_s: u64) -> f64 {
    let series = &flow.series;
    let place = |seconds: u64| {
        series.time_ns.partition_point(|at| *at < seconds * 1_000_000_000).min(series.len() - 1)
    };
    let (from, to) = (place(from_s), place(to_s));
    let bytes = series.delivered_bytes[to] - series.delivered_bytes[from];
    bytes as f64 * 8e3 / (series.time_ns[to] - series.time_ns[from]) as f64 / (link * PAYLOAD)
}

fn fifty(buffer: &str) -> Value {
    json!({ "rate": "50 Mbit/s", "rtt": "40 ms", "buffer": buffer })
}

const GOOGLE: &str = "bbr3:profile=linux";

#[test]
fn link_fills_and_queue_stays_short() {
    for seed in 1..4 {
        let run = alone(GOOGLE, &fifty("1 bdp"), "30 s", seed);
        let late = share(&run.flows[0], 50.0, 10, 30);
        assert!(late > 0.95, "{late} after ten seconds");
        let queue = LinkMeasures::of(&run.links[0]).queue_delay_ms.expect("samples");
        assert!(queue.p50 < 2.0 && queue.mean < 5.0, "{} ms, mean {}", queue.p50, queue.mean);
    }
}

#[test]
fn shallow_buffer_keeps_throughput_few_retransmissions() {
    let path = fifty("0.2 bdp");
    let (google, linux) = (alone(GOOGLE, &path, "30 s", 1), alone("bbr1", &path, "30 s", 1));
    assert!(share(&google.flows[0], 50.0, 10, 30) > 0.95);
    let (bbr3, bbr1) = (google.flows[0].totals.retransmits, linux.flows[0].totals.retransmits);
    assert!(bbr3 * 4 < bbr1, "{bbr3} against {bbr1}");
}

#[test]
fn shares_link_with_itself_and_cubic() {
    for (second, least_share) in [(GOOGLE, 0.3), ("cubic", 0.2)] {
        for seed in 1..4 {
            let flows = json!([{ "controller": GOOGLE }, { "controller": second }]);
            let run = run(&fifty("2 bdp"), "60 s", flows, seed);
            let shares = [0, 1].map(|flow: usize| share(&run.flows[flow], 50.0, 10, 60));
            let all = shares[0] + shares[1];
            assert!(all > 0.95, "{shares:?} beside {second}, {seed}");
            assert!(shares[0].min(shares[1]) > least_share * all, "{shares:?} beside {second}, {seed}");
        }
    }
}

/// A lower RTT than since the last one puts it off.
#[test]
fn rtt_probe_needs_5s_without_minimum() {
    let run = alone(GOOGLE, &fifty("1 bdp"), "30 s", 1);
    let series = &run.flows[0].series;
    let small: Vec<u64> = (0..series.len())
        .filter(|at| series.time_ns[*at] > 2_000_000_000 && series.cwnd[*at] < 90)
        .map(|at| series.time_ns[at] / 1_000_000)
        .collect();
    let begins: Vec<u64> = small
        .iter()
        .enumerate()
        .filter(|(at, ms)| *at == 0 || **ms > small[at - 1] + 1_000)
        .map(|(_, ms)| *ms)
        .collect();
    assert!((3..=6).contains(&begins.len()), "{begins:?}");
    assert!(begins.windows(2).all(|pair| (5_000..10_000).contains(&(pair[1] - pair[0]))), "{begins:?}");
}

/// A data centre's link that marks above a millisecond of queue. At an RTT below 5 ms the flow answers the share of marks, and
/// probes again as soon as they cease: its queue stays at the threshold. Without ECN it probes every two to three seconds.
#[test]
fn ecn_queue_stays_at_marking_threshold() {
    let queue = |controller: &str, rtt: &str| {
        let path = json!({ "rate": "1 Gbit/s", "rtt": rtt, "buffer": "2 MB", "queue": "step:time=1 ms" });
        let run = alone(controller, &path, "10 s", 1);
        assert!(share(&run.flows[0], 1_000.0, 2, 10) > 0.95, "{controller}, {rtt}");
        LinkMeasures::of(&run.links[0]).queue_delay_ms.expect("samples").mean
    };
    let with = queue("bbr3:profile=linux,ecn=1", "2 ms");
    assert!((0.8..1.2).contains(&with), "{with} ms");
    assert!(queue(GOOGLE, "2 ms") < 0.6, "{} ms", queue(GOOGLE, "2 ms"));
    // Above it, only the receiver does something else: it acknowledges at once where marks begin and end.
    let long = ["bbr3:profile=linux,ecn=1", GOOGLE].map(|controller| queue(controller, "10 ms"));
    assert!((long[0] / long[1] - 1.0).abs() < 0.2, "{long:?} ms");
}
