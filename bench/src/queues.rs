//! Queue disciplines: nanoseconds a packet of one bulk flow, beside drop-tail.

use fullpipe_path::DISCIPLINES;

use crate::case::{Case, nanos_a_packet, run, sent};
use crate::measure::{interleaved, report};

const ROUNDS: usize = 9;
/// Enough for set-up and start-up not to count.
const PACKETS: u64 = 600_000;
const CONTROLLERS: [&str; 2] = ["cubic", "bbr1"];

pub(crate) fn table() {
    println!("One bulk flow, 100 Mbit/s, 40 ms, buffer 1 bdp, no series; median and least of {ROUNDS} runs.");
    println!(
        "\"more\": against drop-tail, run in turn; disciplines that lose more also cost the sender more."
    );
    println!();
    println!(
        "{:<6} {:<9} {:>9} {:>7} {:>10} {:>6} {:>9}",
        "cc", "queue", "packets", "resent", "ns/packet", "min", "more, ns"
    );
    for controller in CONTROLLERS {
        let names: Vec<&str> = DISCIPLINES.iter().map(|info| info.name).collect();
        let spec = |queue: &&'static str| {
            Case { queue, ..Case::bulk(controller, "100 Mbit/s", "40 ms") }.spec_with_packets(PACKETS)
        };
        let mut specs: Vec<_> = names.iter().map(spec).collect();
        let samples = interleaved(ROUNDS, &mut specs, |spec| nanos_a_packet(spec));
        for ((name, spec), nanos) in names.iter().zip(&specs).zip(&samples) {
            let run = run(spec, 1);
            let resent: u64 = run.flows.iter().map(|flow| flow.totals.retransmits).sum();
            println!(
                "{:<6} {:<9} {:>9} {:>7} {:>10.1} {:>6.1} {:>9.1}",
                controller,
                name,
                sent(&run),
                resent,
                nanos.median(),
                nanos.min(),
                (nanos.ratio_to(&samples[0]) - 1.0) * samples[0].median(),
            );
            let case = format!("{controller}, {name}");
            report("queues", &case, "ns/packet", nanos, Some(nanos.ratio_to(&samples[0])));
        }
    }
}
