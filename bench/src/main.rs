//! Benchmarks, run by hand. One file a subcommand; README.md says what each table means.

// A benchmark is the one place besides the emulator that may read a clock.
#![allow(clippy::disallowed_methods)]

mod case;
mod controllers;
mod flows;
mod grid;
mod measure;
mod memory;
mod packets;
mod queues;
mod scale;
mod series;
mod short;
mod sweep;

use case::Case;

const USAGE: &str = "\
usage: fullpipe-bench [packets | flows | queues | series | scale | sweep | controllers] [--json]
       fullpipe-bench grid [--paths N] [--repetitions N]
       fullpipe-bench short [FLOWS]
       fullpipe-bench --once CC RATE RTT BUFFER LOSS DURATION [FLOWS [INTERVAL]]";

fn main() {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.last().is_some_and(|last| last == "--json") {
        arguments.pop();
        measure::JSON.store(true, std::sync::atomic::Ordering::Relaxed);
    }
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        [] | ["packets"] => packets::table(),
        ["flows"] => flows::table(),
        ["queues"] => queues::table(),
        ["series"] => series::table(),
        ["scale"] => scale::table(),
        ["sweep"] => sweep::table(),
        ["controllers"] => {
            controllers::table(&mut controllers::ours());
        }
        ["grid", options @ ..] => match grid::Options::read(options) {
            Some(options) => grid::table(&options),
            None => misused(),
        },
        ["short", flows @ ..] if flows.len() < 2 => {
            let flows = flows.first().map_or(Ok(1_000_000), |flows| flows.parse());
            let Ok(flows @ 1..) = flows else { misused() };
            short::table(flows);
        }
        ["--once", controller, rate, rtt, buffer, loss, duration, more @ ..] if more.len() < 3 => {
            let flows = more.first().map_or(Ok(1), |flows| flows.parse());
            let interval = more.get(1).map(|&interval| interval.to_owned());
            let Ok(flows) = flows else { misused() };
            let loss = (*loss != "0 %").then_some(*loss);
            let duration = (*duration).to_owned();
            let path = Case::bulk(controller, rate, rtt);
            packets::once(&Case { flows, buffer, loss, duration, interval, ..path });
        }
        _ => misused(),
    }
}

fn misused() -> ! {
    eprintln!("{USAGE}");
    std::process::exit(2);
}
