//! Nanoseconds a simulated packet: one bulk flow, no time series, median of repeated runs.
//!
//! `cargo run --release -p fullpipe-bench` prints the table. `-- --once CC RATE RTT BUFFER LOSS DURATION` runs one
//! simulation and prints its packet count, for counting instructions (see bench/README.md).

// A benchmark is the one place besides the emulator that may read a clock.
#![allow(clippy::disallowed_methods)]

use std::sync::atomic::AtomicBool;
use std::time::Instant;

use fullpipe_scenario::{Format, resolve};

const RUNS: usize = 5;

/// What is run.
struct Case {
    controller: &'static str,
    rate: &'static str,
    rtt: &'static str,
    buffer: &'static str,
    loss: &'static str,
    duration: String,
}

/// Rate, RTT, buffer, and how long a run takes that keeps the link busy.
const PATHS: [(&str, &str, &str, u32); 2] =
    [("100 Mbit/s", "40 ms", "1 bdp", 100), ("1 Gbit/s", "20 ms", "1 bdp", 20)];
const LOSSES: [&str; 3] = ["0 %", "1 %", "5 %"];
const CONTROLLERS: [&str; 3] = ["bbr1", "cubic", "reno"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] => table(),
        ["--once", controller, rate, rtt, buffer, loss, duration] => {
            println!("{} packets", packets(controller, rate, rtt, buffer, loss, duration));
        }
        _ => {
            eprintln!("usage: fullpipe-bench [--once CC RATE RTT BUFFER LOSS DURATION]");
            std::process::exit(2);
        }
    }
}

fn table() {
    println!("one bulk flow, data segments sent per second of one core, median of {RUNS} runs (min .. max)");
    println!(
        "{:<6} {:<11} {:>6} {:>5} {:>11} {:>9} {:>20}",
        "cc", "rate", "rtt", "loss", "packets", "ns/packet", "million packets/s"
    );
    for (rate, rtt, buffer, seconds) in PATHS {
        for loss in LOSSES {
            for controller in CONTROLLERS {
                // Random loss leaves CUBIC and Reno a trickle: run longer, so that set-up does not count.
                let stretch = if loss != "0 %" && controller != "bbr1" { 20 } else { 1 };
                let duration = format!("{} s", seconds * stretch);
                measure(&Case { controller, rate, rtt, buffer, loss, duration });
            }
        }
    }
}

fn measure(case: &Case) {
    let Case { controller, rate, rtt, buffer, loss, duration } = case;
    let mut nanos = Vec::new();
    let mut sent = 0;
    for run in 0..=RUNS {
        let start = Instant::now();
        sent = packets(controller, rate, rtt, buffer, loss, duration);
        if run > 0 {
            nanos.push(start.elapsed().as_nanos() as f64 / sent as f64);
        }
    }
    nanos.sort_by(f64::total_cmp);
    let median = nanos[RUNS / 2];
    let (low, high) = (1e3 / nanos[RUNS - 1], 1e3 / nanos[0]);
    println!(
        "{controller:<6} {rate:<11} {rtt:>6} {loss:>5} {sent:>11} {median:>9.1} {:>7.1} ({low:.1} .. {high:.1})",
        1e3 / median
    );
}

/// Data segments that one run sends.
fn packets(controller: &str, rate: &str, rtt: &str, buffer: &str, loss: &str, duration: &str) -> u64 {
    let mut document = serde_json::json!({
        "name": "bench",
        "duration": duration,
        "path": { "rate": rate, "rtt": rtt, "buffer": buffer },
        "record": { "series": false },
        "flows": [{ "controller": controller }],
    });
    if loss != "0 %" {
        document["path"]["loss"] = serde_json::json!(loss);
    }
    let spec = match resolve(&document.to_string(), Format::Json, None) {
        Ok(spec) => spec,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    let run = fullpipe_sim::run(&spec, 1, &AtomicBool::new(false)).expect("nothing cancels it");
    run.flows.iter().map(|flow| flow.totals.segments_sent).sum()
}
