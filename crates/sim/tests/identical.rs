//! Results do not change when the simulator gets faster: fingerprints of whole records, over a fixed set of random
//! scenarios.

mod random;

use std::fmt::Write as _;
use std::sync::atomic::AtomicBool;

use fullpipe_record::Run;
use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::{Format, resolve};

/// Scenarios in the golden table.
const GOLDEN: u64 = 400;

fn spec(number: u64) -> Spec {
    let document = random::scenario(number).to_string();
    resolve(&document, Format::Json, None).unwrap_or_else(|error| panic!("{error} in {document}"))
}

fn run(number: u64) -> Run {
    fullpipe_sim::run(&spec(number), number, &AtomicBool::new(false)).expect("nothing cancels it")
}

/// FNV-1a over the record as text: flows and links, totals and every point of every series.
fn fingerprint(run: &Run) -> u64 {
    let text = format!("{:?} {:?}", run.flows, run.links);
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ byte as u64).wrapping_mul(0x0000_0100_0000_01b3))
}

/// `UPDATE_GOLDEN=1 cargo test -p fullpipe-sim` writes the table anew; do so only when results were meant to change.
#[test]
fn records_are_those_of_the_golden_table() {
    let mut table = "number flows sent retransmits timeouts delivered_bytes fingerprint\n".to_string();
    for number in 0..GOLDEN {
        let run = run(number);
        let sum = |pick: fn(&fullpipe_record::FlowTotals) -> u64| -> u64 {
            run.flows.iter().map(|flow| pick(&flow.totals)).sum()
        };
        writeln!(
            table,
            "{number} {} {} {} {} {} {:016x}",
            run.flows.len(),
            sum(|totals| totals.segments_sent),
            sum(|totals| totals.retransmits),
            sum(|totals| totals.timeouts),
            sum(|totals| totals.delivered_bytes),
            fingerprint(&run)
        )
        .unwrap();
    }
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/random.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &table).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    for (was, is) in golden.lines().zip(table.lines()) {
        assert_eq!(
            was,
            is,
            "scenario: {}",
            random::scenario(is.split(' ').next().unwrap().parse().unwrap_or(0))
        );
    }
    assert_eq!(golden.lines().count(), table.lines().count());
}
