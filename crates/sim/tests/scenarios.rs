//! Whole simulations: what physics demands of them, that they repeat, and golden tables.

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use fullpipe_record::Run;
use fullpipe_record::measures::{FlowMeasures, LinkMeasures};
use fullpipe_scenario::{Format, resolve};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Payload bytes in a full packet of 1500.
const PAYLOAD: f64 = 1448.0 / 1500.0;

fn run(document: &Value, seed: u64) -> Run {
    let spec = resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error}"));
    fullpipe_sim::run(&spec, seed, &AtomicBool::new(false)).expect("nothing cancels it")
}

fn alone(controller: &str, path: Value, duration: &str) -> Value {
    json!({ "name": "test", "duration": duration, "path": path, "flows": [{ "controller": controller }] })
}

fn goodput(run: &Run, flow: usize) -> f64 {
    FlowMeasures::of(&run.flows[flow]).goodput_bps
}

#[test]
fn capped_window_sends_window_per_rtt() {
    // 100 segments of 1448 bytes each 40 ms: 28.96 Mbit/s. The harness is right before a controller is blamed.
    let mut document =
        alone("reno", json!({ "rate": "1 Gbit/s", "rtt": "40 ms", "buffer": "1 bdp" }), "20 s");
    document["flows"][0]["max_cwnd"] = json!("100 packets");
    let run = run(&document, 1);
    let expected = 100.0 * 1448.0 * 8.0 / 0.040;
    let series = &run.flows[0].series;
    let (first, last) = (1000, series.len() - 1);
    let bytes = series.delivered_bytes[last] - series.delivered_bytes[first];
    let seconds = (series.time_ns[last] - series.time_ns[first]) as f64 / 1e9;
    let measured = bytes as f64 * 8.0 / seconds;
    assert!((measured / expected - 1.0).abs() < 0.005, "{measured} instead of {expected}");
    assert_eq!(run.flows[0].totals.retransmits, 0);
}

#[test]
fn queue_samples_match_without_flow_samples() {
    let path = json!({ "rate": "10 Mbit/s", "rtt": "20 ms", "buffer": "2 bdp" });
    let mut document = alone("cubic", path, "2 s");
    let both = run(&document, 1);
    document["record"] = json!({ "flows": false });
    let queues = run(&document, 1);
    assert!(queues.flows[0].series.is_empty() && !both.flows[0].series.is_empty());
    assert_eq!(queues.links, both.links);
    assert_eq!(queues.flows[0].totals, both.flows[0].totals);
}

#[test]
fn fixed_window_knee_is_at_bdp() {
    // 100 Mbit/s and 40 ms hold 333 packets of 1500 bytes; the queue holds half as many again. Up to the knee the rate grows
    // with the window and the RTT stays; behind it the RTT grows and the rate stays; beyond 833 packets there is loss.
    let measured = |cwnd: u32| {
        let path = json!({ "rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "1.5 bdp" });
        let run = run(&alone(&format!("fixed:cwnd={cwnd}"), path, "20 s"), 1);
        assert!(run.flows[0].series.cwnd.iter().all(|&seen| seen == cwnd));
        assert_eq!(run.flows[0].totals.retransmits > 0, cwnd > 833);
        (goodput(&run, 0) / (100e6 * PAYLOAD), FlowMeasures::of(&run.flows[0]).rtt_ms.unwrap().p50)
    };
    // The start, and the bursts that a window leaves in, cost a little.
    let close = |seen: f64, expected: f64| (seen / expected - 1.0).abs() < 0.03;
    for (cwnd, share, rtt_ms) in [(50, 0.15, 40.0), (200, 0.6, 40.0), (500, 1.0, 60.0), (800, 1.0, 96.0)] {
        let seen = measured(cwnd);
        assert!(close(seen.0, share) && close(seen.1, rtt_ms), "{cwnd}: {seen:?}");
    }
    measured(900);
}

#[test]
fn fixed_window_retransmits_and_stays_fixed() {
    let path = json!({ "rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "1.5 bdp", "loss": "1 %" });
    let run = run(&alone("fixed:cwnd=800", path, "10 s"), 1);
    assert!(run.flows[0].series.cwnd.iter().all(|&seen| seen == 800));
    assert!(run.flows[0].totals.retransmits > 500);
    assert!(goodput(&run, 0) > 0.95 * 100e6 * PAYLOAD, "{}", goodput(&run, 0));
}

#[test]
fn fixed_rate_arrives_without_queue() {
    // The harness is right before a controller is blamed. 90 % of the link's payload rate.
    let path = json!({ "rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp" });
    let run = run(&alone("fixed:rate=86.88", path, "20 s"), 1);
    let series = &run.flows[0].series;
    let (first, last) = (1000, series.len() - 1);
    let bytes = series.delivered_bytes[last] - series.delivered_bytes[first];
    let rate = bytes as f64 * 8e9 / (series.time_ns[last] - series.time_ns[first]) as f64;
    assert!((rate / 86.88e6 - 1.0).abs() < 0.002, "{rate}");
    assert!(LinkMeasures::of(&run.links[0]).queue_delay_ms.unwrap().max < 2.0);
}

#[test]
fn receive_window_caps_long_path() {
    // 8 MB of receive memory hold 5 MB of payload here: 40 Mbit a round trip of 200 ms.
    let mut document =
        alone("cubic", json!({ "rate": "1 Gbit/s", "rtt": "200 ms", "buffer": "2 bdp" }), "30 s");
    document["hosts"] = json!({ "tcp_rmem": ["4096", "131072", "8 MB"] });
    let run = run(&document, 1);
    let cap = 8e6 * 160.0 / 256.0 * 8.0 / 0.2;
    let rate = goodput(&run, 0);
    assert!(rate < cap && rate > 0.9 * cap, "{rate} against a cap of {cap}");
}

/// What iperf3 calls the end of a transfer is the write of its last byte. What the send buffer holds is then still to be sent.
#[test]
fn last_write_precedes_last_send() {
    let mut document = alone("cubic", json!({ "rate": "10 Mbit/s", "rtt": "40 ms" }), "20 s");
    document["hosts"] = json!({ "tcp_wmem": ["4096", "16384", "300 KB"] });
    document["flows"][0]["size"] = json!("4 MB");
    let totals = run(&document, 1).flows[0].totals;
    assert!(totals.completed && totals.written_bytes == Some(4_000_000));
    // The writer comes back when a third of the buffer is free: two thirds to all of it remain, at 1448 of 1500 bytes.
    let left = (totals.end_ns - totals.written_ns.expect("all is written")) as f64 / 1e9;
    let whole = 300e3 * 8.0 / 10e6 * 1500.0 / 1448.0;
    assert!((0.6 * whole..whole + 0.04).contains(&left), "{left} of {whole} s");
    // The largest buffer takes everything at once.
    document["hosts"] = json!({});
    let totals = run(&document, 1).flows[0].totals;
    assert!(totals.written_ns.expect("all is written") < totals.start_ns + 100_000_000);
    // A flow without end has written all that it delivered, and a buffer.
    document["hosts"] = json!({ "tcp_wmem": ["4096", "16384", "300 KB"] });
    document["flows"][0].as_object_mut().unwrap().remove("size");
    let totals = run(&document, 1).flows[0].totals;
    let ahead = totals.written_bytes.unwrap() - totals.delivered_bytes;
    assert!(totals.written_ns.is_none() && (150_000..300_000).contains(&ahead), "{ahead}");
}

/// Two equal flows, the second after the first has ended, over hosts with these metrics.
fn one_after_the_other(controller: &str, metrics: Value) -> Run {
    let mut document =
        alone(controller, json!({ "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "50 KB" }), "30 s");
    document["hosts"] = json!({ "metrics": metrics });
    document["flows"] = json!([
        { "controller": controller, "size": "5 MB", "start_jitter": "0", "label": "first" },
        { "controller": controller, "size": "5 MB", "start": "10 s", "start_jitter": "0", "label": "second" },
    ]);
    run(&document, 1)
}

/// `ss -tmin` showed as much in a socket of Linux 6.18 on this path: 46336 bytes in the buffer before the first ACK, 31856 after
/// ten more segments had been acknowledged.
#[test]
fn linux_send_buffer_grows_with_window() {
    let mut document =
        alone("cubic", json!({ "rate": "100 Mbit/s", "rtt": "200 ms", "buffer": "1 bdp" }), "20 s");
    document["hosts"] = json!({ "model": "linux", "tcp_memory": "linux" });
    document["flows"][0]["start_jitter"] = json!("0");
    let at = |millis: u32| {
        let mut document = document.clone();
        document["duration"] = json!(format!("{millis} ms"));
        let totals = run(&document, 1).flows[0].totals;
        totals.written_bytes.unwrap() - totals.delivered_bytes
    };
    assert_eq!([300, 500].map(at), [46_336, 31_856]);
}

/// What `ss` showed, too: with a limit of 4194304, up to 4874720 bytes of payload were in flight. A piece of which a part has left is
/// filled up without a look at the limit.
#[test]
fn linux_flight_may_exceed_buffer_limit() {
    let mut document =
        alone("cubic", json!({ "rate": "100 Mbit/s", "rtt": "200 ms", "buffer": "2 bdp" }), "20 s");
    let most = |document: &Value| {
        let run = run(document, 1);
        *run.flows[0].series.inflight.iter().filter(|most| **most != u32::MAX).max().unwrap() as u64 * 1448
    };
    document["hosts"] = json!({ "tcp_memory": "linux" });
    assert!(most(&document) <= 4 << 20);
    document["hosts"]["model"] = json!("linux");
    assert!(most(&document) > (4 << 20) + 65_536);
}

#[test]
fn connection_starts_with_saved_ssthresh() {
    let kept = one_after_the_other("cubic", json!({ "save_ssthresh": true }));
    let left = kept.flows[0].totals.metrics.expect("it has ended");
    assert!(left.ssthresh > 30 && left.cwnd > 0 && left.rtt_ns > 40_000_000, "{left:?}");
    assert!(left.at_ns < 10_000_000_000, "it ended before the second began: {left:?}");
    let second = &kept.flows[1].series;
    let begun = second.time_ns.iter().position(|at| *at >= 10_060_000_000).unwrap();
    assert_eq!(second.ssthresh[begun], left.ssthresh);
    assert_ne!(kept.flows[1].totals.metrics, Some(left));
    // The same entry from the scenario begins the same connection.
    let mut document =
        alone("cubic", json!({ "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "50 KB" }), "30 s");
    let nanos = |nanos: u64| format!("{nanos} ns");
    document["hosts"] = json!({ "metrics": {
        "save_ssthresh": true, "ssthresh": left.ssthresh, "cwnd": left.cwnd, "reordering": left.reordering,
        "rtt": nanos(left.rtt_ns), "rttvar": nanos(left.rttvar_ns),
    }});
    document["flows"] =
        json!([{ "controller": "cubic", "size": "5 MB", "start": "10 s", "start_jitter": "0" }]);
    let again = run(&document, 1);
    assert_eq!(again.flows[0].totals, kept.flows[1].totals);
    // Since Linux 5.6 the threshold is not kept: then both begin alike.
    let unkept = one_after_the_other("cubic", json!({}));
    let metrics = unkept.flows[0].totals.metrics.expect("it has ended");
    assert_eq!((metrics.ssthresh, metrics.rtt_ns), (0, left.rtt_ns));
    let times = unkept.flows.iter().map(|flow| flow.totals.lifetime_ns()).collect::<Vec<_>>();
    assert!(times[0] == times[1] && kept.flows[1].totals.lifetime_ns() != times[0], "{times:?}");
    // BBR begins without a threshold, whatever is kept.
    let bbr = one_after_the_other("bbr1", json!({ "save_ssthresh": true }));
    let ssthresh = &bbr.flows[1].series.ssthresh;
    assert!(
        bbr.flows[0].totals.metrics.unwrap().ssthresh > 0 && ssthresh[begun] == u32::MAX,
        "{}",
        ssthresh[begun]
    );
    assert!(
        run(&alone("cubic", json!({ "rate": "20 Mbit/s", "rtt": "40 ms" }), "1 s"), 1).flows[0]
            .totals
            .metrics
            .is_none()
    );
}

#[test]
fn stopped_idle_connection_saves_metrics_immediately() {
    let mut document =
        alone("cubic", json!({ "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "50 KB" }), "30 s");
    document["hosts"] = json!({ "metrics": { "save_ssthresh": true } });
    document["flows"] = json!([
        // 5 MB take 2.1 s. Nothing is outstanding at 8 s.
        { "controller": "cubic", "bursts": { "size": "5 MB", "every": "20 s" }, "stop": "8 s", "start_jitter": "0", "label": "first" },
        { "controller": "cubic", "size": "5 MB", "start": "10 s", "start_jitter": "0", "label": "second" },
    ]);
    let run = run(&document, 1);
    let left = run.flows[0].totals.metrics.expect("it has ended");
    assert_eq!(left.at_ns, 8_000_000_000);
    let second = &run.flows[1].series;
    let begun = second.time_ns.iter().position(|at| *at >= 10_060_000_000).unwrap();
    assert!(left.ssthresh > 30, "{left:?}");
    assert_eq!(second.ssthresh[begun], left.ssthresh);
}

#[test]
fn a_locked_window_caps_every_connection() {
    let run = one_after_the_other("cubic", json!({ "cwnd": 12, "locked": ["cwnd"] }));
    for flow in &run.flows {
        assert_eq!(flow.totals.metrics.expect("it is kept").cwnd, 12);
        assert_eq!(
            flow.series.cwnd.iter().filter(|cwnd| **cwnd != u32::MAX).max(),
            Some(&12),
            "{}",
            flow.label
        );
    }
}

/// The writer of a full send buffer comes back when a third of it is free, so that what is in flight swings between two
/// thirds of it and all.
#[test]
fn send_buffer_caps_long_path() {
    for controller in ["cubic", "bbr1"] {
        let mut document =
            alone(controller, json!({ "rate": "1 Gbit/s", "rtt": "200 ms", "buffer": "2 bdp" }), "20 s");
        document["hosts"] = json!({ "tcp_wmem": ["4096", "16384", "6 MB"] });
        let run = run(&document, 1);
        let in_flight = &run.flows[0].series.inflight;
        let after_start = in_flight.len() / 2;
        let most = *in_flight[after_start..].iter().max().expect("samples") as f64 * 1448.0;
        let mean = in_flight[after_start..].iter().map(|segments| *segments as f64).sum::<f64>() * 1448.0
            / (in_flight.len() - after_start) as f64;
        assert!((0.8e6 * 6.0..1e6 * 6.0).contains(&most), "{controller}: {most}");
        assert!(mean < 0.95 * most && mean > 0.6 * 6e6, "{controller}: {mean} of {most}");
    }
}

#[test]
fn finite_flow_delivers_all_and_ends() {
    for (size, path) in [
        (1, json!({ "rate": "10 Mbit/s", "rtt": "20 ms" })),
        (1448, json!({ "rate": "10 Mbit/s", "rtt": "20 ms" })),
        (1_000_000, json!({ "rate": "10 Mbit/s", "rtt": "20 ms", "loss": "2 %" })),
        (5_000_001, json!({ "rate": "100 Mbit/s", "rtt": "20 ms", "buffer": "20 KB" })),
    ] {
        for controller in ["reno", "cubic", "bbr1", "bbr3", "vegas", "copa", "newreno", "cubic9438"] {
            let mut document = alone(controller, path.clone(), "60 s");
            document["flows"][0]["size"] = json!(format!("{size} B"));
            let run = run(&document, 7);
            let totals = &run.flows[0].totals;
            assert!(totals.completed, "{controller}, {size} bytes: {totals:?}");
            assert_eq!(totals.delivered_bytes, size, "{controller}");
        }
    }
}

/// Flows that pause, with the samples of their controllers' window at the times asked for.
fn pausing(controller: &str, bursts: serde_json::Value) -> fullpipe_record::Run {
    let mut document =
        alone(controller, json!({ "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp" }), "10 s");
    document["flows"][0]["bursts"] = bursts;
    document["flows"][0]["start_jitter"] = json!(0);
    run(&document, 1)
}

#[test]
fn bursty_flow_delivers_exactly_its_bursts() {
    for controller in ["reno", "cubic", "bbr1", "bbr3", "vegas", "copa", "newreno", "cubic9438"] {
        let run = pausing(controller, json!({ "size": "100 KB", "every": "1 s" }));
        // Ten writes of 70 whole segments: at 0 s (once connected), 1 s, ... 9 s.
        assert_eq!(run.flows[0].totals.delivered_bytes, 10 * 70 * 1448, "{controller}");
        assert!(!run.flows[0].totals.completed);
        // 70 segments of 1500 bytes take 42 ms on the link; later ones find the window or the rate that they need.
        let took: Vec<u64> = run.flows[0].transfers_ns.iter().map(|nanos| nanos / 1_000_000).collect();
        assert_eq!(took.len(), 10);
        assert!(took[0] > 100, "the handshake and slow start: {took:?}");
        assert!(took.iter().all(|millis| (62..250).contains(millis)), "{controller}: {took:?}");
    }
}

/// A flow alone on 20 Mbit/s and 40 ms whose application is as `key` says.
fn asking(controller: &str, key: &str, application: serde_json::Value) -> fullpipe_record::FlowRecord {
    let mut document =
        alone(controller, json!({ "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp" }), "10 s");
    document["flows"][0][key] = application;
    document["flows"][0]["start_jitter"] = json!(0);
    run(&document, 1).flows.remove(0)
}

#[test]
fn request_and_answer_take_one_rtt() {
    for pause in [0, 110] {
        let flow = asking("reno", "requests", json!({ "size": "1 B", "pause": format!("{pause} ms") }));
        let millis: Vec<u64> = flow.transfers_ns.iter().map(|nanos| nanos / 1_000_000).collect();
        // The first waits for the handshake and then only for the way there. No delayed ACK is waited for.
        assert_eq!(millis[0], 60);
        assert!(millis[1..].iter().all(|took| *took == 40), "{millis:?}");
        assert_eq!(millis.len() as u64, 1 + (10_000 - 60) / (40 + pause));
        assert_eq!((flow.totals.completed, flow.rebuffered_ns), (false, None));
    }
}

/// The last segment of an answer is acknowledged when it is read; the 40 ms of the delayed-ACK timer never show.
#[test]
fn answer_end_is_acked_without_delay() {
    // Three segments, the last short or full.
    for size in ["4 KB", "4344 B"] {
        for pause in ["100 ms", "0 s"] {
            let flow = asking("reno", "requests", json!({ "size": size, "pause": pause }));
            let samples = flow.series.time_ns.iter().zip(&flow.series.srtt_ns);
            let after_start =
                samples.filter(|(at, _)| **at > 3_000_000_000).map(|(_, srtt)| srtt / 1_000_000);
            let longest = after_start.max().expect("samples");
            assert!(longest < 43, "{longest} ms with {size}, {pause}");
        }
    }
}

#[test]
fn a_lost_request_is_repeated() {
    let path = json!({
        "rate": "20 Mbit/s", "rtt": "40 ms",
        "reverse": { "before": [{ "kind": "loss", "probability": "30 %" }] },
    });
    let mut document = alone("cubic", path, "60 s");
    document["flows"][0]["requests"] = json!({ "size": "1448 B" });
    let flow = run(&document, 3).flows.remove(0);
    let repeated = |low: u64, high: u64| {
        flow.transfers_ns[1..].iter().filter(|nanos| (low..high).contains(&(*nanos / 1_000_000))).count()
            as f64
    };
    // Lost once: 40 ms, 200 ms more, and the round trip. Lost twice: twice that wait more.
    let (once, twice, thrice) = (repeated(39, 45), repeated(270, 295), repeated(750, 775));
    let all = (flow.transfers_ns.len() - 1) as f64;
    for (share, expected) in [(once / all, 0.7), (twice / all, 0.21), (thrice / all, 0.063)] {
        assert!((share / expected - 1.0).abs() < 0.4, "{share} instead of {expected} of {all}");
    }
}

#[test]
fn script_delivers_all_and_ends() {
    for controller in ["reno", "cubic", "bbr1", "bbr3", "vegas", "copa", "newreno", "cubic9438"] {
        let script = json!([
            { "size": "1 B" }, { "size": "100001 B", "pause": "300 ms" }, { "size": "1448 B" }, { "size": "1449 B" },
        ]);
        let flow = asking(controller, "transfers", script);
        assert!(flow.totals.completed);
        assert_eq!(flow.totals.delivered_bytes, 1 + 100_001 + 1448 + 1449);
        assert_eq!(
            (flow.transfers_ns.len(), flow.totals.segments_sent, flow.totals.retransmits),
            (4, 1 + 70 + 1 + 2, 0)
        );
        // The end is the last byte's arrival; the rest of the time is what the transfers took, and the pause.
        let busy: u64 = flow.transfers_ns.iter().sum();
        assert_eq!(flow.totals.end_ns - flow.totals.start_ns, busy + 300_000_000, "{controller}");
    }
}

/// A receive window of 60 KB, moved by 10 000 short segments in a row: their missing bytes must not close it.
#[test]
fn short_segments_keep_receive_window_open() {
    let mut document = alone("reno", json!({ "rate": "100 Mbit/s", "rtt": "1 ms" }), "20 s");
    document["hosts"] = json!({ "tcp_rmem": ["4096", "60000", "60000"] });
    document["flows"][0]["requests"] = json!({ "size": "1 B" });
    let flow = run(&document, 1).flows.remove(0);
    assert!(flow.totals.delivered_bytes > 15_000, "{:?}", flow.totals);
}

#[test]
fn video_prefetches_then_follows_playback() {
    let video =
        |rate: &str| asking("cubic", "video", json!({ "rate": rate, "chunk": "500 ms", "buffer": "3 s" }));
    let flow = video("4 Mbit/s");
    assert_eq!(flow.rebuffered_ns, Some(0));
    // Six chunks at once, then one every 500 ms; 0.25 MB each.
    let chunks = flow.transfers_ns.len();
    assert!((24..=26).contains(&chunks), "{chunks}");
    assert_eq!(flow.totals.delivered_bytes, chunks as u64 * 250_000);
    // Twice what the link carries: half of the time playback stands still.
    let flow = video("40 Mbit/s");
    let stalled = flow.rebuffered_ns.expect("a video") as f64 / 1e9;
    assert!((4.2..6.0).contains(&stalled), "{stalled}");
    assert!(flow.totals.delivered_bytes as f64 * 8.0 > 0.8 * 10.0 * 20e6 * PAYLOAD, "{:?}", flow.totals);
}

/// What fits the buffer goes into it at once, whatever was sent before.
#[test]
fn burst_sized_buffer_matches_larger_one() {
    let with_buffer = |wmem: &str| {
        let mut document = alone("bbr1", json!({ "rate": "100 Mbit/s", "rtt": "20 ms" }), "3 s");
        document["flows"][0]["bursts"] = json!({ "size": "130 KB", "every": "100 ms" });
        document["hosts"] = json!({ "tcp_wmem": ["4096", "16384", wmem] });
        // Slow start over: each burst is acknowledged before the next is written.
        run(&document, 1).flows[0].transfers_ns[5..].to_vec()
    };
    assert_eq!(with_buffer("147 KB"), with_buffer("600 KB"), "90 segments in a buffer of 100 and of 408");
}

#[test]
fn bursts_above_link_rate_fill_link() {
    for controller in ["reno", "cubic", "bbr1"] {
        let run = pausing(controller, json!({ "size": "1 MB", "every": "100 ms" }));
        let rate = goodput(&run, 0);
        assert!(rate > 0.9 * 20e6 * PAYLOAD, "{controller}: {rate}");
    }
}

/// RFC 2861, as Linux has it: a window that was not used for longer than a timeout is halved for each, down to the initial
/// one. BBR paces instead and keeps its window.
#[test]
fn a_window_restarts_after_idleness() {
    let window_after_pause = |controller: &str| {
        let run = pausing(controller, json!({ "size": "600 KB", "every": "4 s" }));
        let series = &run.flows[0].series;
        let just_after = series.time_ns.iter().position(|at| *at > 4_015_000_000).expect("samples");
        series.cwnd[just_after]
    };
    assert_eq!(window_after_pause("cubic"), 10);
    assert_eq!(window_after_pause("reno"), 10);
    assert!(window_after_pause("bbr1") > 50);
}

/// A sender that always waits for its application must not take its own low rate for the path's.
#[test]
fn bbr_bandwidth_survives_application_limited_phases() {
    let run = pausing("bbr1", json!({ "size": "250 KB", "every": "500 ms" }));
    let series = &run.flows[0].series;
    let believed = *series.bandwidth_bps.last().expect("samples") as f64;
    assert!((0.8..1.1).contains(&(believed / (20e6 * PAYLOAD))), "{believed}");
    assert!(goodput(&run, 0) < 0.25 * 20e6, "the application gives a fifth of the link");
}

#[test]
fn equal_seeds_repeat_others_differ() {
    for controller in ["reno", "cubic", "bbr1"] {
        let document = alone(
            controller,
            json!({ "rate": "20 Mbit/s", "rtt": "30 ms", "buffer": "0.5 bdp", "loss": "0.1 %" }),
            "5 s",
        );
        assert_eq!(run(&document, 3), run(&document, 3), "{controller}");
        assert_ne!(run(&document, 3).flows, run(&document, 4).flows, "{controller}");
    }
}

#[test]
fn seeds_differ_without_random_elements() {
    for controller in ["reno", "cubic", "bbr1"] {
        let document =
            alone(controller, json!({ "rate": "20 Mbit/s", "rtt": "30 ms", "buffer": "1 bdp" }), "5 s");
        assert_ne!(run(&document, 1).flows[0].totals, run(&document, 2).flows[0].totals, "{controller}");
    }
}

#[test]
fn flow_stopped_while_connecting_sends_nothing() {
    let mut document = alone("cubic", json!({ "rate": "10 Mbit/s", "rtt": "200 ms" }), "10 s");
    document["flows"] = json!([
        { "controller": "cubic", "stop": "100 ms", "start_jitter": "0 s" },
        { "controller": "cubic", "start": "2 s" },
    ]);
    let run = run(&document, 1);
    assert_eq!((run.flows[0].totals.segments_sent, run.flows[0].totals.delivered_bytes), (0, 0));
    assert!(
        goodput(&run, 1) > 0.8 * 10e6 * PAYLOAD,
        "the other has the link for itself: {}",
        goodput(&run, 1)
    );
}

#[test]
fn timer_wraparound_changes_no_result() {
    // Microseconds in 32 bits wrap after 71.6 minutes, and half of that is where signed differences turn.
    let path = json!({ "rate": "10 Mbit/s", "rtt": "40 ms", "loss": "2 %", "jitter": "3 ms", "jitter_reorders": true });
    for controller in ["reno", "cubic", "bbr1", "bbr3", "vegas", "copa", "newreno", "cubic9438"] {
        let run_from = |start_s: u64| {
            let mut document = alone(controller, path.clone(), &format!("{} s", start_s + 10));
            document["record"] = json!({ "series": false });
            document["flows"][0]["start"] = json!(format!("{start_s} s"));
            run(&document, 1).flows[0].totals
        };
        let early = run_from(0);
        for start_s in [2_144, 2_400, 4_290] {
            let late = run_from(start_s);
            assert_eq!(
                (late.delivered_bytes, late.segments_sent, late.retransmits, late.undos),
                (early.delivered_bytes, early.segments_sent, early.retransmits, early.undos),
                "{controller} from {start_s} s"
            );
        }
    }
}

#[test]
fn window_limited_flow_keeps_cwnd() {
    let mut document = alone("reno", json!({ "rate": "100 Mbit/s", "rtt": "50 ms" }), "20 s");
    document["hosts"] = json!({ "tcp_rmem": ["4096", "131072", "400 KB"] });
    let run = run(&document, 1);
    let cwnd = &run.flows[0].series.cwnd;
    assert!(cwnd.windows(2).all(|pair| pair[1] >= pair[0]), "nothing was lost and the writer never paused");
    let cap = 400e3 * 160.0 / 256.0 * 8.0 / 0.05;
    assert!(goodput(&run, 0) > 0.9 * cap, "{} of {cap}", goodput(&run, 0));
}

#[test]
fn a_cancelled_run_gives_no_record() {
    let document = alone("cubic", json!({ "rate": "1 Gbit/s", "rtt": "10 ms" }), "60 s");
    let spec = resolve(&document.to_string(), Format::Json, None).unwrap();
    assert!(fullpipe_sim::run(&spec, 1, &AtomicBool::new(true)).is_err());
}

#[test]
fn pure_reordering_keeps_link_busy() {
    // Everything arrives, a little out of order: spurious retransmissions are undone and the link stays busy.
    let path = json!({ "rate": "20 Mbit/s", "rtt": "40 ms", "jitter": "2 ms", "jitter_reorders": true, "buffer": "2 bdp" });
    for controller in ["reno", "cubic", "bbr1"] {
        let run = run(&alone(controller, path.clone(), "20 s"), 1);
        let share = goodput(&run, 0) / (20e6 * PAYLOAD);
        assert!(share > 0.7, "{controller} used {share:.3} of the link: {:?}", run.flows[0].totals);
    }
}

#[test]
fn a_rate_change_is_followed() {
    let path = json!({
        "rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "4 bdp",
        "changes": [{ "at": "10 s", "rate": "20 Mbit/s" }],
    });
    let run = run(&alone("bbr1", path, "20 s"), 1);
    let series = &run.flows[0].series;
    let at = |seconds: u64| series.time_ns.iter().position(|time| *time >= seconds * 1_000_000_000).unwrap();
    let rate = |from: u64, to: u64| {
        (series.delivered_bytes[at(to)] - series.delivered_bytes[at(from)]) as f64 * 8.0 / (to - from) as f64
    };
    assert!(rate(5, 10) > 0.93 * 10e6 * PAYLOAD && rate(5, 10) < 10.01e6 * PAYLOAD);
    assert!(rate(14, 19) > 0.93 * 20e6 * PAYLOAD && rate(14, 19) < 20.01e6 * PAYLOAD);
}

#[test]
fn bbr_survives_random_loss_unlike_cubic() {
    // The claim of the BBR paper's figure 8, in shape: 1 % loss, 100 ms.
    let path = json!({ "rate": "100 Mbit/s", "rtt": "100 ms", "buffer": "10 MB", "loss": "1 %" });
    let bbr = goodput(&run(&alone("bbr1", path.clone(), "20 s"), 1), 0);
    let cubic = goodput(&run(&alone("cubic", path, "20 s"), 1), 0);
    assert!(bbr > 70e6 && cubic < 5e6, "BBR {bbr}, CUBIC {cubic}");
}

/// A row a scenario, controller and seed; exact, so that any change of behaviour shows in review.
#[test]
fn vegas_queues_two_to_four_segments() {
    // 1.2 ms each at 10 Mbit/s; a burst of two and the rounding of a segment's share come on top.
    let run =
        run(&alone("vegas", json!({ "rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp" }), "30 s"), 1);
    let queue_ms = LinkMeasures::of(&run.links[0]).queue_delay_ms.unwrap().p50;
    assert!((2.0 * 1.2..6.0 * 1.2).contains(&queue_ms), "{queue_ms} ms");
    assert!(goodput(&run, 0) > 0.98 * 10e6 * PAYLOAD);
}

/// `queue16`, delayed and stretched ACKs: with one bandwidth-delay product in flight the sender runs dry while ACKs gather
/// for up to a round trip; with two it does not. That was before BBR measured the aggregation and added it to its window.
#[test]
fn bbr_needs_two_bdp_under_aggregation() {
    let share = |controller: &str| {
        let path = json!({
            "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp",
            "reverse": { "after": [{ "kind": "aggregate", "every": "40 ms" }] },
        });
        goodput(&run(&alone(controller, path, "20 s"), 1), 0) / (20e6 * PAYLOAD)
    };
    let one = share("bbr1:cwnd_gain=1,extra_acked_gain=0");
    let two = share("bbr1:cwnd_gain=2,extra_acked_gain=0");
    assert!(one < 0.3 && two > 0.95, "{one} with one, {two} with two");
    assert!(share("bbr1:cwnd_gain=1") > 0.95, "what is measured makes up for it");
}

/// `queue16`, mobile cellular adaptive bandwidth: as scenarios/queue16-cellular.toml.
#[test]
fn only_queueing_probe_gains_cellular_rate() {
    let path = json!({
        "rate": "1 Gbit/s", "rtt": "60 ms",
        "before": [{
            "kind": "cellular", "review": "1 s", "demand": "12 ms", "buffer": "3 bdp",
            "rates": ["10 Mbit/s", "15 Mbit/s", "22 Mbit/s", "33 Mbit/s", "50 Mbit/s"],
        }],
    });
    for seed in 1..4 {
        let share = |gain: &str| {
            let run = run(&alone(&format!("bbr1:probe_gain={gain}"), path.clone(), "40 s"), seed);
            let series = &run.flows[0].series;
            let (from, to) = (series.len() / 2, series.len() - 1);
            let bytes = series.delivered_bytes[to] - series.delivered_bytes[from];
            bytes as f64 * 8e9 / (series.time_ns[to] - series.time_ns[from]) as f64 / (50e6 * PAYLOAD)
        };
        let (timid, bold) = (share("1.1"), share("1.25"));
        assert!(timid < 0.5 && bold > 0.9, "{timid} with 1.1, {bold} with 1.25, seed {seed}");
    }
}

fn golden_table() -> String {
    let paths = [
        ("10M 40ms 1bdp", json!({ "rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp" })),
        ("100M 40ms 100KB", json!({ "rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "100 KB" })),
        ("100M 40ms 10MB", json!({ "rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "10 MB" })),
        (
            "50M 100ms 1% loss",
            json!({ "rate": "50 Mbit/s", "rtt": "100 ms", "buffer": "1 bdp", "loss": "1 %" }),
        ),
        (
            "50M 20ms 5% loss",
            json!({ "rate": "50 Mbit/s", "rtt": "20 ms", "buffer": "1 bdp", "loss": "5 %" }),
        ),
        (
            "20M 40ms reordering",
            json!({ "rate": "20 Mbit/s", "rtt": "40 ms", "jitter": "2 ms", "jitter_reorders": true }),
        ),
    ];
    let mut table = format!(
        "{:<20} {:<6} {:>12} {:>9} {:>7} {:>8} {:>5} {:>9} {:>9}\n",
        "path, 10 s", "cc", "bytes", "sent", "resent", "timeouts", "undos", "RTT ms", "queue ms"
    );
    for (name, path) in paths {
        for controller in ["reno", "cubic", "bbr1", "vegas"] {
            let run = run(&alone(controller, path.clone(), "10 s"), 1);
            let (flow, link) = (&run.flows[0], &run.links[0]);
            let rtt = FlowMeasures::of(flow).rtt_ms.map_or(0.0, |rtt| rtt.mean);
            let queue = LinkMeasures::of(link).queue_delay_ms.map_or(0.0, |delay| delay.mean);
            let totals = &flow.totals;
            writeln!(
                table,
                "{name:<20} {controller:<6} {:>12} {:>9} {:>7} {:>8} {:>5} {rtt:>9.3} {queue:>9.3}",
                totals.delivered_bytes,
                totals.segments_sent,
                totals.retransmits,
                totals.timeouts,
                totals.undos
            )
            .unwrap();
        }
    }
    table
}

/// To accept a change of behaviour: `UPDATE_GOLDEN=1 cargo test -p fullpipe-sim`, then read the difference.
#[test]
fn the_golden_table_holds() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/alone.txt");
    let table = golden_table();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    assert!(table == golden, "results changed; now:\n{table}\nbefore:\n{golden}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Whatever the path does, nothing panics (so packets are conserved), no link exceeds its rate and no RTT undercuts
    /// the path's.
    #[test]
    fn physics_holds_on_any_path(
        seed in any::<u64>(),
        megabits in 1u32..200,
        rtt_ms in 1u32..120,
        packets in 2u32..400,
        loss in prop_oneof![Just(0.0), 0.0..0.3f64],
        jitter_ms in 0u32..5,
        reorders in any::<bool>(),
        duplicate in prop_oneof![Just(0.0), 0.0..0.05f64],
        gro_us in prop_oneof![Just(0u32), 1u32..300],
        flows in prop::collection::vec((0usize..9, 0u32..1500, prop_oneof![Just(0u32), 1u32..3_000_000]), 1..5),
    ) {
        let names = ["reno", "cubic", "bbr1", "vegas", "fixed:cwnd=60", "copa", "bbr3", "newreno", "cubic9438"];
        let flows: Vec<Value> = flows
            .iter()
            .map(|(controller, start_ms, size)| {
                let mut flow = json!({ "controller": names[*controller], "start": format!("{start_ms} ms") });
                if *size > 0 {
                    flow["size"] = json!(format!("{size} B"));
                }
                flow
            })
            .collect();
        let document = json!({
            "name": "any",
            "duration": "3 s",
            "path": {
                "rate": format!("{megabits} Mbit/s"),
                "rtt": format!("{rtt_ms} ms"),
                "buffer": format!("{packets} packets"),
                "loss": format!("{:.4} %", loss * 100.0),
                "jitter": format!("{jitter_ms} ms"),
                "jitter_reorders": reorders,
                "after": [{ "kind": "duplicate", "probability": format!("{:.4} %", duplicate * 100.0) }],
            },
            "hosts": { "gro": format!("{gro_us} us") },
            "flows": flows,
        });
        let run = run(&document, seed);
        let mut delivered = 0;
        for flow in &run.flows {
            delivered += flow.totals.delivered_bytes;
            prop_assert!(flow.totals.retransmits <= flow.totals.segments_sent);
            if let Some(rtt) = FlowMeasures::of(flow).rtt_ms {
                prop_assert!(rtt.min >= rtt_ms as f64 - 0.001, "RTT {} under {rtt_ms} ms", rtt.min);
            }
        }
        let most = megabits as f64 * 1e6 / 8.0 * 3.0 * PAYLOAD;
        prop_assert!(delivered as f64 <= most, "{delivered} bytes in 3 s at {megabits} Mbit/s");
    }
}
