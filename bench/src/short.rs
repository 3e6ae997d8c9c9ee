//! Many short flows: 10 KB each, which arrive over a minute. How much memory a run of them takes, and how long.

use std::time::Instant;

use fullpipe_scenario::spec::FlowSpec;
use fullpipe_units::{Duration, Time};

use crate::case::{Case, run, sent};
use crate::memory;

const OVER: Duration = Duration::from_millis(60_000);

pub(crate) fn table(flows: u64) {
    let one =
        Case { size: Some("10 KB"), duration: "62 s".into(), ..Case::bulk("cubic", "10 Gbit/s", "20 ms") };
    let mut spec = one.spec();
    let only = spec.flows.remove(0);
    // Not by the scenario's `count`, which is limited.
    spec.flows = (0..flows)
        .map(|index| {
            let start_ns = Time::from_nanos(OVER.as_nanos() * index / flows);
            FlowSpec { label: format!("cubic {index}"), start_ns, ..only.clone() }
        })
        .collect();
    let begin = Instant::now();
    let (run, taken) = memory::count(|| run(&spec, 1));
    let completed = run.flows.iter().filter(|flow| flow.totals.completed).count();
    println!("{flows} flows of 10 KB over {OVER}, cubic, 10 Gbit/s, 20 ms: {completed} completed");
    println!("{} packets in {:.1} s of wall time", sent(&run), begin.elapsed().as_secs_f64());
    let (mega, each) = (taken.peak as f64 / 1e6, taken.peak as f64 / flows as f64);
    println!(
        "allocated at most {mega:.0} MB, {each:.0} B a flow, of which the result keeps {:.0} MB",
        taken.kept as f64 / 1e6
    );
    println!("the process, with the scenario: {} at most", peak());
}

/// The most memory that the process had, by Linux.
fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.map_or("unknown".into(), |text| text.trim().to_owned())
}
