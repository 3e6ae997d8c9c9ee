//! Our controllers and those of quinn-proto on one stream of ACKs, in one run.

// A benchmark is the one place besides the emulator that may read a clock.
#![allow(clippy::disallowed_methods)]

#[path = "../../src/controllers.rs"]
mod controllers;
#[path = "../../src/measure.rs"]
mod measure;
mod quinn;
mod rtt;

use controllers::BBR_WITH_SAMPLER;
use measure::{Samples, report};

fn main() {
    match std::env::args().skip(1).collect::<Vec<_>>().as_slice() {
        [] => {}
        [one] if one == "--json" => measure::JSON.store(true, std::sync::atomic::Ordering::Relaxed),
        _ => {
            eprintln!("usage: fullpipe-bench-peers [--json]");
            std::process::exit(2);
        }
    }
    let mut subjects = controllers::ours();
    subjects.extend(quinn::all());
    let samples = controllers::table(&mut subjects);
    println!();
    println!("Times of ours, in the same rounds:");
    for (theirs, ours) in [(quinn::BBR, BBR_WITH_SAMPLER), (quinn::CUBIC, "cubic")] {
        let of = |name: &str| -> &Samples {
            let index = subjects.iter().position(|subject| subject.name() == name);
            &samples[index.expect("measured above")]
        };
        let ratio = of(theirs).ratio_to(of(ours));
        println!("{:<28} {:>6.2} of \"{ours}\"", theirs, ratio);
        // Once more, now with the ratio: the last line of a case counts.
        report("controllers", theirs, "ns/ACK", of(theirs), Some(ratio));
    }
}
