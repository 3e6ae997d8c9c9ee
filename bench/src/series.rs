//! What time series cost.

use crate::case::{Case, nanos_a_packet, run, sent};
use crate::measure::interleaved;

const ROUNDS: usize = 21;
const INTERVAL: &str = "10 ms";
/// Controller, flows, rate, RTT, duration. Series hold 20 000 samples of a flow at most: 200 s at this interval.
const CASES: [(&str, u32, &str, &str, &str); 8] = [
    ("bbr1", 1, "10 Mbit/s", "40 ms", "200 s"),
    ("cubic", 1, "10 Mbit/s", "40 ms", "200 s"),
    ("bbr1", 1, "100 Mbit/s", "40 ms", "60 s"),
    ("cubic", 1, "100 Mbit/s", "40 ms", "60 s"),
    ("bbr1", 1, "1 Gbit/s", "20 ms", "10 s"),
    ("cubic", 1, "1 Gbit/s", "20 ms", "10 s"),
    ("bbr1", 10, "100 Mbit/s", "40 ms", "60 s"),
    ("cubic", 10, "100 Mbit/s", "40 ms", "60 s"),
];

pub(crate) fn table() {
    println!(
        "The same run without series and with full series every {INTERVAL}, in turn; ns a packet, median and least of"
    );
    println!(
        "{ROUNDS} runs, and how much more with series. Recorded in memory; writing Parquet is not part of it."
    );
    println!();
    println!(
        "{:<6} {:>5} {:<11} {:>6} {:>9} {:>9} {:>9} {:>6} {:>7} {:>6} {:>8} {:>7}",
        "cc", "flows", "rate", "rtt", "packets", "a sample", "without", "min", "with", "min", "more", "min"
    );
    for (controller, flows, rate, rtt, duration) in CASES {
        let without = Case { flows, duration: duration.into(), ..Case::bulk(controller, rate, rtt) };
        let with = Case { interval: Some(INTERVAL.into()), ..without.clone() };
        let mut specs = [without.spec(), with.spec()];
        let samples = interleaved(ROUNDS, &mut specs, |spec| nanos_a_packet(spec));
        let [without, with] = [&samples[0], &samples[1]];
        let run = run(&specs[1], 1);
        let rows: usize = run.flows.iter().map(|flow| flow.series.len()).sum();
        println!(
            "{:<6} {:>5} {:<11} {:>6} {:>9} {:>9.1} {:>9.1} {:>6.1} {:>7.1} {:>6.1} {:>6.1} % {:>5.1} %",
            controller,
            flows,
            rate,
            rtt,
            sent(&run),
            sent(&run) as f64 / rows as f64,
            without.median(),
            without.min(),
            with.median(),
            with.min(),
            (with.ratio_to(without) - 1.0) * 100.0,
            (with.min() / without.min() - 1.0) * 100.0,
        );
    }
}
