//! What BBRv3's draft requires of the transport under it, by what a run shows.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::Phase;
use fullpipe_record::Run;
use fullpipe_scenario::{Format, resolve};
use serde_json::{Value, json};

fn run(document: &Value) -> Run {
    let spec = resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error}"));
    fullpipe_sim::run(&spec, 1, &AtomicBool::new(false)).expect("nothing cancels it")
}

fn scenario(path: &Value, flow: &Value) -> Value {
    json!({ "name": "transport", "duration": "5 s", "path": path, "flows": [flow] })
}

// draft 4.2: steps.rtt
#[test]
fn rtt_spans_departure_to_ack() {
    let path = json!({ "rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp" });
    let run = run(&scenario(&path, &json!({ "controller": "fixed:cwnd=2" })));
    let series = &run.flows[0].series;
    // Two packets of 1,500 bytes take 0.24 ms to send.
    let rtt_ms = series.srtt_ns[series.len() - 1] as f64 / 1e6;
    assert!((40.1..40.5).contains(&rtt_ms), "{rtt_ms}");
}

// draft 4.2#c2a447: a retransmission's ACK may be for the first transmission, and never shows less than the path's delay
#[test]
fn retransmissions_never_lower_min_rtt() {
    let path = json!({
        "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp", "loss": "3 %", "jitter": "30 ms",
        "jitter_reorders": true,
    });
    let run = run(&scenario(&path, &json!({ "controller": "bbr3" })));
    assert!(run.flows[0].totals.retransmits > 100, "{:?}", run.flows[0].totals);
    let least = run.flows[0].series.min_rtt_ns.iter().min().expect("samples");
    assert!(*least >= 40_000_000, "{least}");
}

// draft 4.1.2.4: CheckIfApplicationLimited
#[test]
fn application_limited_flow_stays_in_startup() {
    let path = json!({ "rate": "50 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp" });
    let pauses: Vec<Value> = (0..60).map(|_| json!({ "size": "20 KB", "pause": "50 ms" })).collect();
    let last_phase = |flow: &Value| {
        let run = run(&scenario(&path, flow));
        let series = &run.flows[0].series;
        let code = series.phase[series.time_ns.partition_point(|at| *at < 2_500_000_000)];
        Phase::ALL.iter().find(|phase| **phase as u8 == code).copied()
    };
    let limited = last_phase(&json!({ "controller": "bbr3", "transfers": pauses }));
    assert_eq!(limited, Some(Phase::Startup), "25 rounds at the same rate");
    assert_ne!(last_phase(&json!({ "controller": "bbr3" })), Some(Phase::Startup));
}

// draft 5.6.2: steps.{next_send_time, send_time, pacing_delay, next_send_time.2}
#[test]
fn packets_are_paced_one_by_one() {
    let path = json!({ "rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp" });
    let run = run(&scenario(&path, &json!({ "controller": "fixed:rate=20" })));
    let series = &run.flows[0].series;
    let place = |ms: u64| series.time_ns.partition_point(|at| *at < ms * 1_000_000);
    // Twenty Mbit/s of payload, in each half second.
    for from_ms in (500..4_500).step_by(500) {
        let (from, to) = (place(from_ms), place(from_ms + 500));
        let bits = (series.delivered_bytes[to] - series.delivered_bytes[from]) as f64 * 8e3;
        let rate = bits / (series.time_ns[to] - series.time_ns[from]) as f64;
        assert!((19.6..20.4).contains(&rate), "{rate} Mbit/s from {from_ms} ms");
    }
    let most = run.links[0].series.queue_bytes.iter().max().expect("samples");
    assert!(*most < 8 * 1_500, "{most} bytes waited");
}
