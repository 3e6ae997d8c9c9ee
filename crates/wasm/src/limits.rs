//! What a document may ask for in a browser. A link may come from a stranger, so a run has bounds that the command line does
//! not need: on its memory, and on how long it computes. Whoever waits can end the worker besides.

use std::sync::atomic::AtomicBool;

use fullpipe_scenario::document::Document;
use fullpipe_scenario::{Format, Resolved, Spec};
use fullpipe_sim::{Mistake, SimError, Simulation, Status};
use fullpipe_units::Time;

use crate::answer::Refusal;

/// The longest document, bytes.
pub(crate) const MAX_TEXT: usize = 1_000_000;
/// The most controllers under `compare`.
pub(crate) const MAX_ALTERNATIVES: usize = 32;
/// The most flows of a run.
pub(crate) const MAX_FLOWS: u64 = 2_000;
/// The most flows of all alternatives together.
pub(crate) const MAX_ALL_FLOWS: u64 = 10_000;
/// The most samples of the time series of a run: 90 bytes each, and 110 more on the way to the page.
pub(crate) const MAX_ROWS: u64 = 2_000_000;
/// The most data packets of a run, or of a step of a live one: about ten seconds.
pub(crate) const MAX_PACKETS: u64 = 100_000_000;
/// The most events of the same. A packet has two or three, so that this is for runs without packets.
const MAX_SLICES: u64 = (4 * MAX_PACKETS) >> 14;
/// Elements of a path that cost as much as the rest of a packet's way.
const ELEMENTS_OF_A_PACKET: u64 = 8;
/// Slices between two counts of the packets.
const COUNT_EVERY: u64 = 8;

const FIX: &str = "run it with `fullpipe run`, which has no such limit";

/// Resolves a document within these limits. It may not name files.
pub(crate) fn resolve(text: &str, format: Format) -> Result<Resolved, Refusal> {
    check(text.len() as u64, MAX_TEXT as u64, "document", "bytes", "make it shorter")?;
    let document = Document::read(text, format)?;
    let alternatives = document.compare.as_ref().map_or(1, Vec::len);
    check(alternatives as u64, MAX_ALTERNATIVES as u64, "compare", "controllers", "compare fewer at a time")?;
    // What cannot be read is an error of the scenario itself.
    let counts = document.flows.iter().map(|flow| flow.count.as_ref().map(|count| count.read("count")));
    let flows = counts.map(|count| count.map_or(1, |count| count.map_or(0, |count| count.0)));
    let flows = flows.fold(0, u64::saturating_add);
    check(flows, MAX_FLOWS, "flows", "flows", FIX)?;
    check(flows * alternatives as u64, MAX_ALL_FLOWS, "flows", "flows of all alternatives", FIX)?;
    Ok(Resolved::without_files(text, format)?)
}

/// Whether the record of a run fits.
pub(crate) fn check_rows(spec: &Spec) -> Result<(), Refusal> {
    let Some(interval) = spec.sample_interval_ns else { return Ok(()) };
    let each = spec.duration_ns.as_nanos() / interval.as_nanos().max(1) + 1;
    let flows = if spec.sample_flows { spec.flows.len() } else { 0 };
    let queues = spec.forward.iter().chain(&spec.reverse).filter(|element| element.name().is_some()).count();
    check(
        each.saturating_mul((flows + queues) as u64),
        MAX_ROWS,
        "record.interval",
        "samples",
        "write a longer record.interval, a shorter duration or fewer flows",
    )
}

/// Runs to `until`, as far as the limits allow.
pub(crate) fn advance(simulation: &mut Simulation, until: Time) -> Result<Status, Refusal> {
    let sent = |simulation: &Simulation| -> u64 {
        (0..simulation.flows()).map(|flow| simulation.flow(flow).segments_sent()).sum()
    };
    let spec = simulation.spec();
    let elements = (spec.forward.len() + spec.reverse.len()) as u64;
    let most = MAX_PACKETS / (1 + elements / ELEMENTS_OF_A_PACKET);
    let before = sent(simulation);
    // Set from the start, it ends every slice.
    let slice = AtomicBool::new(true);
    let mut slices = 0;
    loop {
        match simulation.advance_unless(until, &slice) {
            Err(SimError::Cancelled) => slices += 1,
            Err(error) => return Err(error.into()),
            Ok(status) => return Ok(status),
        }
        if slices % COUNT_EVERY == 0 {
            let now = simulation.now().as_secs_f64();
            let problem = |what: &str| format!("{what} by {now:.3} s");
            check_said(sent(simulation) - before, most, "duration", &problem("packets"))?;
            check_said(slices, MAX_SLICES, "duration", &problem("times 16384 events"))?;
        }
    }
}

fn check(given: u64, most: u64, field: &str, what: &str, fix: &str) -> Result<(), Refusal> {
    if given <= most {
        return Ok(());
    }
    let (given, expected) = (format!("{given} {what}"), format!("at most {most} in a browser"));
    Err(Mistake::new(field, &given, &expected, fix).into())
}

fn check_said(given: u64, most: u64, field: &str, what: &str) -> Result<(), Refusal> {
    check(given, most, field, what, FIX)
}
