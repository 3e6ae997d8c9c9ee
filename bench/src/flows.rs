//! Many flows on one link: nanoseconds a packet against one flow.

use crate::case::{Case, nanos_a_packet, run, sent};
use crate::measure::{interleaved, report, report_one};

const ROUNDS: usize = 5;
const FLOWS: [u32; 6] = [1, 2, 10, 100, 1_000, 10_000];
const CONTROLLERS: [&str; 2] = ["bbr1", "cubic"];
const RATE: &str = "10 Gbit/s";
const RTT: &str = "20 ms";
/// 250 round trips; start-up takes a dozen.
const DURATION: &str = "5 s";

pub(crate) fn table() {
    println!(
        "Bulk flows on one link of {RATE}, {RTT}, buffer 1 bdp, for {DURATION}, no series; median and least of"
    );
    println!("{ROUNDS} runs. \"to 1 flow\": against one flow of the same controller, run in turn.");
    println!();
    println!(
        "{:<6} {:>6} {:>9} {:>8} {:>10} {:>6} {:>10}",
        "cc", "flows", "packets", "resent", "ns/packet", "min", "to 1 flow"
    );
    for controller in CONTROLLERS {
        let mut specs = FLOWS.map(|flows| {
            Case { flows, duration: DURATION.into(), ..Case::bulk(controller, RATE, RTT) }.spec()
        });
        let samples = interleaved(ROUNDS, &mut specs, |spec| nanos_a_packet(spec));
        for ((flows, spec), nanos) in FLOWS.iter().zip(&specs).zip(&samples) {
            let run = run(spec, 1);
            let resent: u64 = run.flows.iter().map(|flow| flow.totals.retransmits).sum();
            println!(
                "{:<6} {:>6} {:>9} {:>6.1} % {:>10.1} {:>6.1} {:>10.2}",
                controller,
                flows,
                sent(&run),
                resent as f64 * 100.0 / sent(&run) as f64,
                nanos.median(),
                nanos.min(),
                nanos.ratio_to(&samples[0]),
            );
            let case = format!("{controller}, {flows}");
            report("flows", &case, "ns/packet", nanos, Some(nanos.ratio_to(&samples[0])));
            report_one("resent", &case, "%", resent as f64 * 100.0 / sent(&run) as f64);
        }
    }
}
