//! What a document may ask for in a browser. A link may come from a stranger, so a run has bounds that the command line does
//! not need: on its memory, and on how long it computes. Whoever waits can end the worker besides.

use std::sync::atomic::AtomicBool;

use fullpipe_path::config::ElementConfig;
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
/// The most elements that duplicate packets: each doubles what an event may take, and no event can be stopped.
const MAX_DUPLICATES: u64 = 8;
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
    let resolved = Resolved::without_files(text, format)?;
    // A stranger's document must not run commands, wherever it is.
    resolved.alternatives.iter().try_for_each(|(_, spec)| spec.check_no_program("a browser"))?;
    let duplicates = resolved.alternatives.first().map_or(0, |(_, spec)| duplicates(spec));
    check(duplicates, MAX_DUPLICATES, "path", "elements that duplicate packets", "remove some")?;
    Ok(resolved)
}

/// How many elements of a path may make two packets of one.
fn duplicates(spec: &Spec) -> u64 {
    let elements = spec.forward.iter().chain(&spec.reverse);
    elements.filter(|element| matches!(element, ElementConfig::Duplicate(_))).count() as u64
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
    advance_within(simulation, until, MAX_PACKETS, MAX_SLICES)
}

fn advance_within(
    simulation: &mut Simulation,
    until: Time,
    most_packets: u64,
    most_slices: u64,
) -> Result<Status, Refusal> {
    let sent = |simulation: &Simulation| -> u64 {
        (0..simulation.flows()).map(|flow| simulation.flow(flow).segments_sent()).sum()
    };
    let spec = simulation.spec();
    let elements = (spec.forward.len() + spec.reverse.len()) as u64;
    let weight = (1 + elements / ELEMENTS_OF_A_PACKET) << duplicates(spec);
    let most = most_packets / weight;
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
            let packets = sent(simulation) - before;
            check(packets, most, "duration", &format!("packets by {now:.3} s"), FIX)?;
            check(slices, most_slices, "duration", &format!("times 16384 events by {now:.3} s"), FIX)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(refused: Refusal) -> String {
        match refused {
            Refusal::Mistake(mistake) => mistake.sentence,
            Refusal::Failure(failure) => panic!("{failure}"),
        }
    }

    fn refused(text: &str) -> String {
        sentence(resolve(text, Format::Toml).unwrap_err())
    }

    #[test]
    fn programs_are_refused() {
        for flows in [
            "[[flows]]\nclient = \"true\"\nserver = \"true\"",
            "[[flows]]\ncontroller = \"reno\"\n[[flows]]\nclient = \"true\"\nserver = \"true\"",
        ] {
            assert!(
                refused(&format!("{PATH}{flows}"))
                    .contains("\"true\" is a program, which a browser does not run")
            );
        }
        let compared = "compare = [\"reno\", { client = \"true\", server = \"true\" }]\n";
        assert!(refused(&format!("{compared}{PATH}")).contains("which a browser does not run"));
    }

    const PATH: &str = "[path]\nrate = \"100 Mbit/s\"\nrtt = \"40 ms\"\n";

    #[test]
    fn oversized_document_is_refused() {
        assert_eq!(
            refused(&"#".repeat(MAX_TEXT + 1)),
            "document: 1000001 bytes; expected at most 1000000 in a browser; make it shorter"
        );
        let controllers = (0..33).map(|gain| format!("\"bbr1:probe_gain=1.{gain:02}\"")).collect::<Vec<_>>();
        let compared = format!("compare = [{}]\n{PATH}", controllers.join(", "));
        assert!(refused(&compared).starts_with("compare: 33 controllers; expected at most 32"));
        let many =
            format!("{PATH}[[flows]]\ncontroller = \"reno\"\ncount = 2000\n[[flows]]\ncontroller = \"reno\"");
        assert!(refused(&many).starts_with("flows: 2001 flows; expected at most 2000 in a browser"));
        let both = format!("compare = [{}]\n{PATH}[[flows]]\ncount = 400", controllers[..26].join(", "));
        assert!(refused(&both).starts_with("flows: 10400 flows of all alternatives; expected at most 10000"));
    }

    #[test]
    fn unreadable_count_is_scenario_error() {
        let text = format!("{PATH}[[flows]]\ncontroller = \"reno\"\ncount = \"many\"");
        assert!(refused(&text).starts_with("flows[0].count: \"many\""), "{}", refused(&text));
    }

    #[test]
    fn file_reference_is_refused_anywhere() {
        for named in [
            "[path]\ndeliveries = \"/etc/passwd\"\nrtt = \"40 ms\"\n",
            "[path]\nrate = \"1 Mbit/s\"\nrtt = \"40 ms\"\nreverse = { deliveries = \"/etc/passwd\" }\n",
            "[path]\nrate = \"1 Mbit/s\"\nrtt = \"40 ms\"\nbefore = [{ kind = \"delivery_trace\", deliveries = \"/etc/passwd\" }]\n",
        ] {
            let text = format!("{named}[[flows]]\ncontroller = \"reno\"");
            let sentence = refused(&text);
            assert!(
                sentence.contains(": \"/etc/passwd\" is a file, and there are none here; expected"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn packets_do_not_multiply_without_end() {
        let twice = ["{ kind = \"duplicate\", probability = \"100 %\" }"; 9].join(", ");
        let text = format!("{PATH}after = [{twice}]\n[[flows]]\ncontroller = \"reno\"");
        assert!(refused(&text).starts_with("path: 9 elements that duplicate packets; expected at most 8"));
    }

    #[test]
    fn oversized_record_is_refused() {
        let rows = |duration: &str, flows: u32| {
            let text = format!(
                "duration = \"{duration}\"\nrecord.interval = \"10 ms\"\n{PATH}[[flows]]\ncontroller = \"reno\"\n\
                 count = {flows}"
            );
            check_rows(&resolve(&text, Format::Toml).unwrap().alternatives[0].1)
        };
        assert!(rows("20 s", 900).is_ok());
        let error = sentence(rows("20 s", 1000).unwrap_err());
        assert!(error.starts_with("record.interval: 2003001 samples; expected at most 2000000"), "{error}");
    }

    #[test]
    fn a_run_without_end_is_stopped() {
        let spec = |more: &str| {
            let text = format!("duration = \"1 h\"\n{PATH}{more}[[flows]]\ncontroller = \"reno\"");
            resolve(&text, Format::Toml).unwrap().alternatives.swap_remove(0).1
        };
        let stop = |more: &str, packets, slices| {
            let mut simulation = Simulation::fixed(&spec(more), 1).unwrap();
            sentence(advance_within(&mut simulation, Time::NEVER, packets, slices).unwrap_err())
        };
        let error = stop("", 400_000, u64::MAX);
        assert!(
            error.starts_with("duration: 4") && error.contains("expected at most 400000 in a browser"),
            "{error}"
        );
        // What a packet costs grows with the elements on its way.
        let delays = ["{ kind = \"delay\", delay = \"1 us\" }"; 38].join(", ");
        let error = stop(&format!("before = [{delays}]\n"), 400_000, u64::MAX);
        assert!(error.contains("expected at most 66666 in a browser"), "{error}");
        let twice = "after = [{ kind = \"duplicate\", probability = \"1 %\" }]\n";
        let error = stop(twice, 400_000, u64::MAX);
        assert!(error.contains("expected at most 200000 in a browser"), "{error}");
        let error = stop("", u64::MAX, 7);
        assert!(error.starts_with("duration: 8 times 16384 events by"), "{error}");
    }
}
