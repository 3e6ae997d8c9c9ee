//! The record of a run: the reports of its threads, put together.

use fullpipe_emu::{Carried, Path, Stall};
use fullpipe_record::{FlowRecord, Lateness, ProcessorTime, Provenance, Run, WorldName};
use fullpipe_scenario::spec::{FlowSpec, Spec};
use fullpipe_units::Duration;

use crate::host::Host;
use crate::host::sender::SenderReport;
use crate::sys;

/// Puts the threads' reports together.
pub(crate) fn record(
    spec: &Spec,
    seed: u64,
    path: &Path,
    carried: Carried<(SenderReport, Host), Host>,
) -> Run {
    let lateness = carried.ferried.lateness();
    let processor = carried.processor;
    let doubts = carried.doubts(path);
    let (sent, sender) = carried.near;
    let mut untrustworthy = sent.failures;
    let mut sysctls = Vec::new();
    for host in [sender, carried.far] {
        untrustworthy.extend(host.untrustworthy);
        sysctls.extend(host.settings);
    }
    untrustworthy.extend(doubts);
    untrustworthy.extend(invalidated_slow_starts(
        spec,
        path.base_rtt(),
        &sent.flows,
        &carried.ferried.stalls,
    ));
    let mut flows = sent.flows;
    // Linux's own queue goes by the clock of the machine.
    if path.queue.is_none() {
        flows.iter_mut().for_each(|flow| in_path_time(flow, &carried.ferried.stalls));
    }
    Run {
        provenance: provenance(spec, seed, sysctls, (lateness, processor), untrustworthy),
        flows,
        links: carried.ferried.links,
    }
}

/// Where a run of this machine is from.
pub(crate) fn provenance(
    spec: &Spec,
    seed: u64,
    sysctls: Vec<(String, String)>,
    (lateness, processor): (Lateness, ProcessorTime),
    untrustworthy: Vec<String>,
) -> Provenance {
    let (host, kernel) = sys::host_and_kernel();
    Provenance {
        world: WorldName::Kernel,
        seed,
        spec_json: serde_json::to_string(spec).expect("a spec is plain data"),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        host,
        kernel,
        sysctls,
        lateness: Some(lateness),
        processor: Some(processor),
        untrustworthy,
        unsupported: Vec::new(),
    }
}

/// For how long the path stood before a time of the machine.
pub(crate) fn paused_before(stalls: &[Stall], machine_ns: u64) -> u64 {
    let paused = stalls.iter().map(|stall| {
        let began = stall.ended.as_nanos() - stall.lasted.as_nanos();
        machine_ns.saturating_sub(began).min(stall.lasted.as_nanos())
    });
    paused.sum()
}

/// Gives the moments of a flow, and the round trips in its samples, in the path's time, which stops while the machine stalls: the
/// queues' are, too. By the machine's clock, a goodput would be less by the share of the run that nothing could be sent in, and each
/// round trip that a stall fell into longer by the stall. How long transfers took stays by that clock.
fn in_path_time(flow: &mut FlowRecord, stalls: &[Stall]) {
    let paused = |machine_ns: u64| paused_before(stalls, machine_ns);
    let at = |machine_ns: u64| machine_ns - paused(machine_ns);
    let totals = &mut flow.totals;
    for moment in [&mut totals.start_ns, &mut totals.end_ns].into_iter().chain(&mut totals.written_ns) {
        *moment = at(*moment);
    }
    let series = &mut flow.series;
    // The last round trip that was measured, and what of it the path stood. An estimate that has not changed is still that one.
    let (mut before, mut of_stalls) = (u64::MAX, 0);
    for ((time, srtt), least) in series.time_ns.iter().zip(&mut series.srtt_ns).zip(&series.min_rtt_ns) {
        // There is none yet.
        if *srtt == u64::MAX {
            continue;
        }
        if *srtt != before {
            before = *srtt;
            of_stalls = paused(*time) - paused(time.saturating_sub(*srtt));
        }
        // The estimate is a mean, and takes some ACKs to show a stall.
        *srtt = srtt.saturating_sub(of_stalls).max((*srtt).min(*least));
    }
    // Samples of one stall, in which the ferry delivered nothing, stay in order.
    let mut next = 0;
    for time in &mut series.time_ns {
        *time = at(*time).max(next);
        next = *time + 1;
    }
}

/// HyStart, with which CUBIC leaves slow start when the RTT has grown, takes a stall for a queue: both make a round trip
/// longer by the clock of the hosts. Linux `tcp_cubic.c`: `HYSTART_DELAY_THRESH`, an eighth of the RTT from 4 to 16 ms.
fn invalidated_slow_starts(
    spec: &Spec,
    base_rtt: Duration,
    flows: &[FlowRecord],
    stalls: &[Stall],
) -> Vec<String> {
    let grown = Duration::from_nanos(base_rtt.as_nanos() / 8)
        .clamp(Duration::from_millis(4), Duration::from_millis(16));
    let invalidated = |(flow, spec): (&FlowRecord, &FlowSpec)| {
        let series = &flow.series;
        if spec.controller.linux_name() != Some("cubic") || series.ssthresh.is_empty() {
            return None;
        }
        let left = series.ssthresh.iter().position(|ssthresh| *ssthresh != u32::MAX);
        let left_ns = left.map_or(flow.totals.end_ns, |sample| series.time_ns[sample]);
        let during = flow.totals.start_ns..=left_ns;
        let worst = stalls.iter().filter(|stall| during.contains(&stall.ended.as_nanos()));
        let worst = worst.map(|stall| stall.lasted).max().filter(|lasted| *lasted >= grown)?;
        Some(format!(
            "the host stalled for {worst} while flow {} was in slow start, which CUBIC leaves when the RTT has grown by \
             {grown}",
            flow.label
        ))
    };
    flows.iter().zip(&spec.flows).filter_map(invalidated).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::spec;
    use fullpipe_emu::FerryReport;
    use fullpipe_record::{FlowSeries, FlowTotals};
    use fullpipe_scenario::controller::ControllerChoice;
    use fullpipe_units::Time;

    #[test]
    fn host_flow_or_path_spoils_run() {
        let spec = spec(100_000);
        let host = |why: &str| Host { settings: vec![], untrustworthy: vec![why.to_owned()] };
        let sent = SenderReport { flows: vec![], failures: vec!["flow a: reset".to_owned()] };
        let carried = Carried {
            near: (sent, host("sender")),
            far: host("receiver"),
            dropped_frames: [0, 3],
            ferried: FerryReport {
                failed_writes: 1,
                passes: 1,
                carried: Duration::from_secs(1),
                ..FerryReport::default()
            },
            processor: ProcessorTime { waited_ns: Some([0, 20_000_000]), ..ProcessorTime::default() },
        };
        let reasons = record(&spec, 1, &Path::of(&spec, 1), carried).provenance.untrustworthy;
        let expected = [
            "flow a",
            "sender",
            "receiver",
            "the receiver's kernel dropped 3",
            "the kernel refused 1 frames",
            "the receiver waited for a processor for 20 ms",
        ];
        assert_eq!(reasons.len(), expected.len(), "{reasons:?}");
        assert!(reasons.iter().zip(expected).all(|(found, start)| found.starts_with(start)), "{reasons:?}");
    }

    #[test]
    fn times_are_in_path_time() {
        let ms = |millis: u64| millis * 1_000_000;
        let stall = |ended, lasted| Stall {
            ended: Time::from_nanos(ms(ended)),
            lasted: Duration::from_millis(lasted),
        };
        let totals = FlowTotals {
            start_ns: ms(5),
            end_ns: ms(100),
            written_ns: Some(ms(22)),
            ..FlowTotals::default()
        };
        // The estimate after the first stall is the one before it; then come round trips with all of it, and with so much of it
        // that the least would be undercut.
        let series = FlowSeries {
            time_ns: [5, 10, 15, 20, 30, 41, 100].map(ms).to_vec(),
            srtt_ns: vec![u64::MAX, ms(8), ms(8), ms(8), ms(22), ms(24), ms(12)],
            min_rtt_ns: vec![u64::MAX, ms(8), ms(8), ms(8), ms(8), ms(21), ms(8)],
            ..FlowSeries::default()
        };
        let (label, controller) = ("a".to_owned(), "bbr".to_owned());
        let mut flow =
            FlowRecord { label, controller, totals, transfers_ns: vec![], rebuffered_ns: None, series };
        in_path_time(&mut flow, &[stall(20, 10), stall(43, 4)]);
        let totals = &flow.totals;
        assert_eq!((totals.start_ns, totals.end_ns, totals.written_ns), (ms(5), ms(86), Some(ms(12))));
        let times = [(5, 0), (10, 0), (10, 1), (10, 2), (20, 0), (29, 0), (86, 0)];
        assert_eq!(flow.series.time_ns, times.map(|(millis, nanos)| ms(millis) + nanos));
        assert_eq!(flow.series.srtt_ns, [u64::MAX, ms(8), ms(8), ms(8), ms(12), ms(21), ms(12)]);
    }

    #[test]
    fn cubic_slow_start_stall_spoils_run() {
        let mut spec = spec(100_000);
        let ms = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let series = FlowSeries {
            time_ns: [10, 20, 30].map(|at| ms(at).as_nanos()).to_vec(),
            ssthresh: vec![u32::MAX, u32::MAX, 30],
            ..FlowSeries::default()
        };
        let invalidated = |spec: &Spec, ended: u64, lasted: u64, series: &FlowSeries| {
            let flow = FlowRecord {
                label: "a".to_owned(),
                controller: spec.flows[0].controller.text().to_owned(),
                totals: FlowTotals { end_ns: ms(1000).as_nanos(), ..FlowTotals::default() },
                transfers_ns: vec![],
                rebuffered_ns: None,
                series: series.clone(),
            };
            let stall = Stall { ended: ms(ended), lasted: Duration::from_millis(lasted) };
            invalidated_slow_starts(spec, Duration::from_millis(40), &[flow], &[stall]).len()
        };
        // Reno has no HyStart.
        assert_eq!(invalidated(&spec, 25, 5, &series), 0);
        spec.flows[0].controller = ControllerChoice::parse("cubic").unwrap();
        assert_eq!(invalidated(&spec, 25, 5, &series), 1);
        // Shorter than an eighth of 40 ms; after slow start; and where nothing is known of it.
        assert_eq!(invalidated(&spec, 25, 4, &series), 0);
        assert_eq!(invalidated(&spec, 31, 5, &series), 0);
        assert_eq!(invalidated(&spec, 25, 5, &FlowSeries::default()), 0);
    }
}
