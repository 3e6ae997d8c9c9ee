//! BBRv3 in whole simulations: what its draft expects of a path, and what it costs.

use std::sync::atomic::AtomicBool;

use fullpipe_record::measures::{FlowMeasures, LinkMeasures};
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

fn alone(path: &Value, duration: &str, seed: u64) -> Run {
    run(path, duration, json!([{ "controller": "bbr3" }]), seed)
}

/// A flow's goodput between two times, Mbit/s.
fn megabits(flow: &FlowRecord, from_s: u64, to_s: u64) -> f64 {
    let series = &flow.series;
    let place = |seconds: u64| {
        series.time_ns.partition_point(|at| *at < seconds * 1_000_000_000).min(series.len() - 1)
    };
    let (from, to) = (place(from_s), place(to_s));
    let bytes = series.delivered_bytes[to] - series.delivered_bytes[from];
    bytes as f64 * 8e3 / (series.time_ns[to] - series.time_ns[from]) as f64
}

fn fifty(buffer: &str) -> Value {
    json!({ "rate": "50 Mbit/s", "rtt": "40 ms", "buffer": buffer })
}

#[test]
fn link_fills_and_queue_stays_short() {
    for seed in 1..4 {
        let run = alone(&fifty("1 bdp"), "30 s", seed);
        let whole = FlowMeasures::of(&run.flows[0]).goodput_bps / 1e6 / (50.0 * PAYLOAD);
        let late = megabits(&run.flows[0], 10, 30) / (50.0 * PAYLOAD);
        assert!(whole > 0.92 && late > 0.95, "{whole}, {late} after ten seconds");
        let queue = LinkMeasures::of(&run.links[0]).queue_delay_ms.expect("samples");
        // Probes raise it for three round trips every two to three seconds.
        assert!(queue.p50 < 2.0 && queue.mean < 5.0, "{} ms, mean {}", queue.p50, queue.mean);
    }
}

/// Section 3.1 of the draft: shallow buffers must not cost throughput. The bound of earlier probes keeps the losses few.
#[test]
fn shallow_buffer_keeps_throughput_few_retransmissions() {
    let path = fifty("0.2 bdp");
    let run = alone(&path, "30 s", 1);
    let other = self::run(&path, "30 s", json!([{ "controller": "bbr1" }]), 1);
    assert!(megabits(&run.flows[0], 10, 30) > 0.95 * 50.0 * PAYLOAD);
    let (bbr3, bbr1) = (run.flows[0].totals.retransmits, other.flows[0].totals.retransmits);
    assert!(bbr3 * 4 < bbr1, "{bbr3} against {bbr1}");
}

/// Each round with losses slows a cruising flow down to what that round delivered: less by the losses, and by the pacing margin.
/// Section 5.3.3.8.3 of the draft computes with the losses only. Without the margin it is 85 % instead of 81.
#[test]
fn one_percent_loss_costs_a_fifth() {
    let share = |controller: &str| {
        let path = json!({ "rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp", "loss": "1 %" });
        let runs = (1..9).map(|seed| run(&path, "30 s", json!([{ "controller": controller }]), seed));
        runs.map(|run| FlowMeasures::of(&run.flows[0]).goodput_bps).sum::<f64>() / 8.0 / 50e6 / PAYLOAD
    };
    let (with, without) = (share("bbr3"), share("bbr3:pacing_margin_percent=0"));
    assert!((0.77..0.86).contains(&with) && without > with + 0.02, "{with}, {without} without a margin");
    assert!(share("cubic") < 0.1);
}

#[test]
fn two_flows_share_the_link() {
    for buffer in ["1 bdp", "2 bdp"] {
        for seed in 1..7 {
            let run = run(&fifty(buffer), "60 s", json!([{ "controller": "bbr3", "count": 2 }]), seed);
            let rates = [0, 1].map(|flow: usize| megabits(&run.flows[flow], 10, 60));
            let (all, least) = (rates[0] + rates[1], rates[0].min(rates[1]));
            assert!(all > 0.95 * 50.0 * PAYLOAD && least > 0.3 * all, "{rates:?} with {buffer}, {seed}");
        }
    }
}

#[test]
fn beside_cubic_both_work() {
    for (buffer, fairest) in [("1 bdp", 0.25), ("2 bdp", 0.4)] {
        for seed in 1..5 {
            let flows = json!([{ "controller": "bbr3" }, { "controller": "cubic" }]);
            let run = run(&fifty(buffer), "60 s", flows, seed);
            let rates = [0, 1].map(|flow: usize| megabits(&run.flows[flow], 10, 60));
            let (all, least) = (rates[0] + rates[1], rates[0].min(rates[1]));
            assert!(all > 0.95 * 50.0 * PAYLOAD && least > fairest * all, "{rates:?} with {buffer}, {seed}");
        }
    }
}

/// Appendix A.10: every five seconds the flight is halved for 200 ms and a round trip.
#[test]
fn rtt_probe_halves_flight_every_5s() {
    let run = alone(&fifty("1 bdp"), "30 s", 1);
    let series = &run.flows[0].series;
    // The product is 166 segments, and the time of a sample is when it was taken.
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
    assert!((4..=6).contains(&begins.len()), "{begins:?}");
    assert!(begins.windows(2).all(|pair| (5_000..6_500).contains(&(pair[1] - pair[0]))), "{begins:?}");
}

/// A path whose rate changes after ten seconds.
fn changing(from: &str, to: &str) -> Value {
    json!({ "rate": from, "rtt": "40 ms", "buffer": "200 KB", "changes": [{ "at": "10 s", "rate": to }] })
}

/// Appendix A.15 and A.16: the rate is found when it is ten times as high, and when it is a tenth.
#[test]
fn tenfold_rate_changes_are_tracked() {
    let up = alone(&changing("10 Mbit/s", "100 Mbit/s"), "30 s", 1);
    assert!(megabits(&up.flows[0], 20, 30) > 0.9 * 100.0 * PAYLOAD, "{}", megabits(&up.flows[0], 20, 30));
    let down = alone(&changing("100 Mbit/s", "10 Mbit/s"), "30 s", 1);
    assert!(megabits(&down.flows[0], 20, 30) > 0.9 * 10.0 * PAYLOAD, "{}", megabits(&down.flows[0], 20, 30));
    let series = &down.links[0].series;
    let late = series.time_ns.partition_point(|at| *at < 20_000_000_000);
    let queue: Vec<f64> =
        series.queue_bytes[late..].iter().map(|bytes| *bytes as f64 * 8.0 / 10e6 * 1e3).collect();
    let mean = queue.iter().sum::<f64>() / queue.len() as f64;
    assert!(mean < 30.0, "{mean} ms of queue: the old rate is forgotten");
}

/// ngtcp2#2217, lsquic#544: application-limited for good, or not at all, a flow collapsed or stayed in Startup.
#[test]
fn link_fills_after_application_limited_phase() {
    let mut flow = json!({ "controller": "bbr3" });
    let script: Vec<Value> = (0..20)
        .map(|_| json!({ "size": "20 KB", "pause": "300 ms" }))
        .chain([json!({ "size": "150 MB" })])
        .collect();
    flow["transfers"] = json!(script);
    let run = run(&fifty("1 bdp"), "30 s", json!([flow]), 1);
    let rate = megabits(&run.flows[0], 15, 30);
    assert!(rate > 0.95 * 50.0 * PAYLOAD, "{rate}");
}

/// Appendix A.14: four segments keep a path busy that holds less than one.
#[test]
fn path_below_one_segment_is_filled() {
    let path = json!({ "rate": "1 Mbit/s", "rtt": "5 ms", "buffer": "20 packets" });
    let run = alone(&path, "30 s", 1);
    assert!(megabits(&run.flows[0], 10, 30) > 0.98 * PAYLOAD);
}

#[test]
fn reordering_keeps_most_throughput() {
    let path = json!({
        "rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp", "jitter": "6 ms", "jitter_reorders": true,
    });
    let run = alone(&path, "30 s", 1);
    let rate = megabits(&run.flows[0], 10, 30);
    assert!(rate > 0.85 * 50.0 * PAYLOAD, "{rate}, {:?}", run.flows[0].totals);
}
