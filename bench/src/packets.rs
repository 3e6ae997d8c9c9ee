//! One bulk flow: nanoseconds a packet, without loss and with.

use crate::case::{Case, nanos_a_packet, run, sent, thread_nanos};
use crate::measure::{interleaved, report};

const ROUNDS: usize = 9;
/// Enough for set-up and start-up not to count.
const PACKETS: u64 = 600_000;

const PATHS: [(&str, &str); 3] = [("100 Mbit/s", "40 ms"), ("1 Gbit/s", "20 ms"), ("10 Gbit/s", "10 ms")];
const LOSSES: [Option<&str>; 3] = [None, Some("1 %"), Some("5 %")];
const CONTROLLERS: [&str; 3] = ["bbr1", "cubic", "reno"];

pub(crate) fn table() {
    println!("One bulk flow, buffer 1 bdp, no series; median and least of {ROUNDS} runs.");
    println!("\"to 0 %\": against the same controller on the same path without loss, run in turn.");
    println!();
    println!(
        "{:<6} {:<11} {:>6} {:>5} {:>10} {:>9} {:>10} {:>6} {:>12} {:>7}",
        "cc", "rate", "rtt", "loss", "simulated", "packets", "ns/packet", "min", "Mpackets/s", "to 0 %"
    );
    for (rate, rtt) in PATHS {
        for controller in CONTROLLERS {
            three_losses(controller, rate, rtt);
        }
    }
}

fn three_losses(controller: &str, rate: &str, rtt: &str) {
    let mut specs =
        LOSSES.map(|loss| Case { loss, ..Case::bulk(controller, rate, rtt) }.spec_with_packets(PACKETS));
    let samples = interleaved(ROUNDS, &mut specs, |spec| nanos_a_packet(spec));
    for ((loss, spec), nanos) in LOSSES.iter().zip(&specs).zip(&samples) {
        println!(
            "{:<6} {:<11} {:>6} {:>5} {:>8.1} s {:>9} {:>10.1} {:>6.1} {:>12.1} {:>7.2}",
            controller,
            rate,
            rtt,
            loss.unwrap_or("0 %"),
            spec.duration_ns.as_nanos() as f64 / 1e9,
            sent(&run(spec, 1)),
            nanos.median(),
            nanos.min(),
            1e3 / nanos.median(),
            nanos.ratio_to(&samples[0]),
        );
        let case = format!("{controller}, {rate}, {rtt}, {}", loss.unwrap_or("0 %"));
        report("packets", &case, "ns/packet", nanos, Some(nanos.ratio_to(&samples[0])));
    }
}

/// One run: its packets, for counting instructions, and what they cost, for comparing two builds.
pub(crate) fn once(case: &Case) {
    let spec = case.spec();
    let start = thread_nanos();
    let run = run(&spec, 1);
    let nanos = thread_nanos() - start;
    let resent: u64 = run.flows.iter().map(|flow| flow.totals.retransmits).sum();
    println!("{} packets", sent(&run));
    println!("{resent} resent, {:.1} ns a packet", nanos as f64 / sent(&run) as f64);
}
