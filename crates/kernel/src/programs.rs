//! Flows that are programs: their commands run on the hosts of the path, and their packets are all that is measured.
//!
//! The hosts have the settings of the scenario; their default congestion control is this machine's, and a program may choose
//! another.

use fullpipe_emu::program::{self, Ended, Launch, MOST_PROGRAMS, Ran};
use fullpipe_emu::{EmuError, Path, Stall};
use fullpipe_record::{FlowRecord, FlowSeries, FlowTotals, Run, UNKNOWN};
use fullpipe_scenario::spec::{FlowSpec, Spec};
use fullpipe_units::Time;

use crate::KernelError;
use crate::host::Host;
use crate::record::{paused_before, provenance};
use crate::refusal::hosts_of;

/// Runs a scenario whose flows are programs. As [`crate::run()`], which calls it for such scenarios.
pub(crate) fn run(spec: &Spec, seed: u64) -> Result<Run, KernelError> {
    let launches = launches(spec, seed)?;
    let path = Path::of(spec, seed);
    let hosts = hosts_of(spec)?;
    let ran = program::run(path, &launches, |name| Host::tune_without_default(name, &hosts))?;
    Ok(record(spec, seed, ran))
}

/// The programs of a scenario, if it can run.
fn launches(spec: &Spec, seed: u64) -> Result<Vec<Launch>, KernelError> {
    let unsupported = |field: String, reason: String, fix: &str| {
        KernelError::from(EmuError::Unsupported { field, reason, fix: fix.to_owned() })
    };
    let count = spec.flows.len();
    if count > MOST_PROGRAMS {
        let reason =
            format!("at most {MOST_PROGRAMS} programs run at a time, the scenario has {count} flows");
        return Err(unsupported(
            "flows".to_owned(),
            reason,
            "use fewer flows, or connections in one program",
        ));
    }
    if Path::of(spec, seed).with_router()?.queue.is_some() {
        let reason = "programs do not run behind a router of Linux's own".to_owned();
        return Err(unsupported("path.router".to_owned(), reason, "leave router out"));
    }
    let launch = |(index, flow): (usize, &FlowSpec)| {
        let Some(program) = &flow.program else {
            let reason =
                "shares its path with a program; programs share a path with programs only".to_owned();
            let fix = "replace it by a program such as iperf3, which can choose a congestion control (-C)";
            return Err(unsupported(format!("flows[{index}].controller"), reason, fix));
        };
        if count > 1 && !program.has_own_port() {
            let reason = format!("is one of {count} flows, whose packets are told apart by the port of each");
            let fix = "write {port} in client and server where their port is";
            return Err(unsupported(format!("flows[{index}].client"), reason, fix));
        }
        Ok(Launch {
            label: flow.label.clone(),
            program: program.clone(),
            start: flow.start_time(index, seed),
            stop: flow.stop_ns,
        })
    };
    spec.flows.iter().enumerate().map(launch).collect()
}

fn record(spec: &Spec, seed: u64, ran: Ran<Host>) -> Run {
    let lateness = ran.ferried.lateness();
    let mut untrustworthy = Vec::new();
    let mut sysctls = Vec::new();
    for host in ran.hosts {
        untrustworthy.extend(host.untrustworthy);
        sysctls.extend(host.settings);
    }
    untrustworthy.extend(ran.doubts);
    let flows = spec.flows.iter().zip(ran.flows);
    let stalls = &ran.ferried.stalls;
    Run {
        provenance: provenance(spec, seed, sysctls, (lateness, ran.processor), untrustworthy),
        flows: flows.map(|(spec, ended)| flow(spec, ended, stalls)).collect(),
        links: ran.ferried.links,
    }
}

/// A flow begins with its first packet. One that ended by itself ends with its last payload: its command may wait for a while.
fn flow(spec: &FlowSpec, ended: Ended, stalls: &[Stall]) -> FlowRecord {
    let Ended { metered, client, completed } = ended;
    let path_time = |time: Time| time.as_nanos() - paused_before(stalls, time.as_nanos());
    let start_ns = metered.began.map_or(path_time(client[0]), Time::as_nanos);
    let end = if completed { metered.last_payload.as_nanos() } else { path_time(client[1]) };
    let end_ns = end.max(metered.last_payload.as_nanos()).max(start_ns);
    let totals = FlowTotals {
        start_ns,
        end_ns,
        completed,
        delivered_bytes: metered.delivered_bytes,
        segments_sent: metered.segments,
        retransmits: metered.retransmits.unwrap_or(UNKNOWN),
        timeouts: UNKNOWN,
        undos: UNKNOWN,
        seen: Some(metered.seen),
        ..FlowTotals::default()
    };
    let name = spec.program.as_ref().map_or("program", |program| program.name());
    FlowRecord {
        label: spec.label.clone(),
        controller: name.to_owned(),
        totals,
        transfers_ns: Vec::new(),
        rebuffered_ns: None,
        series: until(metered.series, end_ns),
    }
}

/// The samples before the flow's end, and the first at or after it. That one has all bytes of the flow.
fn until(mut series: FlowSeries, end_ns: u64) -> FlowSeries {
    let before = series.time_ns.partition_point(|time| *time < end_ns);
    series.truncate(before + 1);
    series
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_record::SeenSample;
    use fullpipe_scenario::{Format, resolve};

    fn spec(flows: &str) -> Spec {
        let path = "path = { rate = \"10 Mbit/s\", rtt = \"20 ms\" }";
        resolve(&format!("{path}\n{flows}"), Format::Toml, None).unwrap()
    }

    fn refused(spec: &Spec) -> String {
        launches(spec, 1).unwrap_err().to_string()
    }

    #[test]
    fn flow_series_has_all_delivered_bytes() {
        let series = |end_ns: u64| {
            let mut series = FlowSeries::default();
            for (time_ns, delivered_bytes) in [(100, 1000), (200, 2000), (300, 2500), (400, 2500)] {
                let (srtt_ns, min_rtt_ns, retransmits) = (None, None, None);
                series.push_seen(SeenSample { time_ns, srtt_ns, min_rtt_ns, delivered_bytes, retransmits });
            }
            let kept = until(series, end_ns);
            (kept.len(), kept.delivered_bytes.last().copied())
        };
        // The last payload came after 200, or with it.
        assert_eq!(series(201), (3, Some(2500)));
        assert_eq!(series(200), (2, Some(2000)));
        assert_eq!(series(900), (4, Some(2500)));
        assert_eq!(until(FlowSeries::default(), 5).len(), 0);
    }

    const PROGRAM: &str = "[[flows]]\nclient = \"a {server}\"\nserver = \"b\"\n";

    #[test]
    fn single_program_needs_no_port() {
        let spec = spec(&format!("{PROGRAM}start = \"1 s\"\nstart_jitter = 0\nstop = \"5 s\""));
        let launches = launches(&spec, 1).unwrap();
        assert_eq!((launches[0].label.as_str(), launches[0].start), ("a", Time::from_micros(1_000_000)));
        assert_eq!(launches[0].stop, Some(Time::from_micros(5_000_000)));
    }

    #[test]
    fn indistinguishable_or_unsupported_programs_are_refused() {
        assert!(
            refused(&spec(&format!("{PROGRAM}count = 2"))).starts_with("flows[0].client: is one of 2 flows")
        );
        let port = PROGRAM.replace("server}", "server}:{port}").replace("\"b\"", "\"b {port}\"");
        assert_eq!(launches(&spec(&format!("{port}count = 2")), 1).unwrap().len(), 2);
        assert!(refused(&spec(&format!("{port}count = 33"))).starts_with("flows: at most 32"));
        let beside = format!("{port}[[flows]]\ncontroller = \"cubic\"");
        assert!(refused(&spec(&beside)).starts_with("flows[1].controller: shares its path with a program"));
        let router = "path = { rate = \"10 Mbit/s\", rtt = \"20 ms\", buffer = \"100 KB\", burst = \"20 KB\", router = \"tbf\" }";
        let spec = resolve(&format!("{router}\n{PROGRAM}"), Format::Toml, None).unwrap();
        assert!(refused(&spec).starts_with("path.router: "));
    }
}
