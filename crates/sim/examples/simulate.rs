//! Runs a scenario file and prints each flow's measures: `cargo run --release -p fullpipe-sim --example simulate -- FILE [SEEDS]`.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use fullpipe_record::measures::FlowMeasures;
use fullpipe_scenario::resolve_file;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seeds: u64 = arguments.get(1).map_or(3, |text| text.parse().expect("SEEDS is a number"));
    let alternatives = match resolve_file(Path::new(arguments.first().map_or("", String::as_str))) {
        Ok(alternatives) => alternatives,
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(2);
        }
    };
    for (label, spec) in alternatives {
        for seed in 1..=seeds {
            let run = fullpipe_sim::run(&spec, seed, &AtomicBool::new(false)).expect("nothing cancels it");
            for flow in &run.flows {
                let (measures, totals) = (FlowMeasures::of(flow), &flow.totals);
                let rtt = measures.rtt_ms.map_or(f64::NAN, |rtt| rtt.mean);
                println!(
                    "{label} seed {seed} {}: {:.2} Mbit/s, mean RTT {rtt:.1} ms, {} retransmissions, {} timeouts",
                    flow.label,
                    measures.goodput_bps / 1e6,
                    totals.retransmits,
                    totals.timeouts
                );
            }
        }
    }
}
