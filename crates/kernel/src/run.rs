//! One run of a scenario over the machine's own TCP.
//!
//! Both hosts are threads at the ends of an emulated path ([`fullpipe_emu::Path`]).

use std::io;
use std::sync::atomic::Ordering;

use fullpipe_emu::sysctl::sysctl;
use fullpipe_emu::{Carried, EmuError, End, Path, Stall, watch};
use fullpipe_record::{FlowRecord, Lateness, ProcessorTime, Provenance, Run, WorldName};
use fullpipe_scenario::spec::{FlowSpec, HostSpec, Spec};
use fullpipe_units::Duration;

use crate::KernelError;
use crate::bbr::{self, Machine, Shown};
use crate::host::receiver::Receiver;
use crate::host::sender::{Sender, SenderReport, set_algorithm};
use crate::host::{Host, MAX_FLOWS, Progress};
use crate::log::{Logged, Logs};
use crate::programs;
use crate::recorder::Recorder;
use crate::sys;

/// Runs `spec` over the kernel's TCP. Call it in a process of its own that has only one thread: without root it
/// enters a user namespace, which the kernel refuses to several threads.
///
/// `seed` drives the path's random elements and the flows' start jitter. Takes the scenario's duration, less if all
/// flows end earlier.
///
/// # Errors
/// When the kernel cannot do what `spec` asks for or has no such congestion control, when the path cannot be carried
/// ([`fullpipe_emu::Path::carry`]), and when a socket cannot be set up.
pub fn run(spec: &Spec, seed: u64) -> Result<Run, KernelError> {
    if spec.program_flow().is_some() {
        return programs::run(spec, seed);
    }
    run_over(spec, seed, path_of(spec, seed, false)?, None)
}

/// [`run`], or [`run_behind_qdisc`], and its packets are logged.
///
/// # Errors
/// As these, and when a file cannot be written.
pub fn run_logged(
    spec: &Spec,
    seed: u64,
    behind_qdisc: bool,
    logs: Logs,
) -> Result<(Run, Logged), KernelError> {
    check_no_program(spec, "a run with logs (qlog, pcap)")?;
    let mut path = path_of(spec, seed, behind_qdisc)?;
    let (watcher, watched) = watch();
    path.watcher = Some(watcher);
    let (mut run, collected) = run_beside(spec, seed, path, None, move || logs.collect(watched))?;
    if behind_qdisc {
        run.provenance.world = WorldName::Qdisc;
    }
    let logged = collected.and_then(|collected| collected.finish(&run.flows)).map_err(KernelError::Log)?;
    Ok((run, logged))
}

/// [`run`] behind a router with Linux's own queue in place of the path's first link ([`fullpipe_emu::LinuxQueue`]). The
/// emulator carries the rest of the path.
///
/// # Errors
/// As [`run`], and when Linux has no such queue.
pub fn run_behind_qdisc(spec: &Spec, seed: u64) -> Result<Run, KernelError> {
    check_no_program(spec, "the qdisc world")?;
    let path = path_of(spec, seed, true)?;
    let mut run = run_over(spec, seed, path, None)?;
    run.provenance.world = WorldName::Qdisc;
    Ok(run)
}

/// Why [`run_behind_qdisc`] cannot run a scenario, whatever qdiscs there are.
///
/// # Errors
/// The reason, by field.
pub fn check_behind_qdisc(spec: &Spec) -> Result<(), KernelError> {
    check_no_program(spec, "the qdisc world")?;
    check(spec)?;
    path_of(spec, spec.seed, true)?;
    Ok(())
}

/// The path of a scenario: behind a real router if it has one, or behind Linux's own queue in any case.
fn path_of(spec: &Spec, seed: u64, behind_qdisc: bool) -> Result<Path, EmuError> {
    let path = Path::of(spec, seed);
    if behind_qdisc { path.with_linux_queue() } else { path.with_router() }
}

/// The same, with flows that are recorded.
pub(crate) fn run_recorded(spec: &Spec, seed: u64, recorder: Option<&Recorder>) -> Result<Run, KernelError> {
    run_over(spec, seed, path_of(spec, seed, false)?, recorder)
}

fn run_over(spec: &Spec, seed: u64, path: Path, recorder: Option<&Recorder>) -> Result<Run, KernelError> {
    run_beside(spec, seed, path, recorder, || ()).map(|(run, ())| run)
}

/// The same, with `beside` on a thread of its own; see [`Path::carry_beside`].
fn run_beside<B: Send>(
    spec: &Spec,
    seed: u64,
    path: Path,
    recorder: Option<&Recorder>,
    beside: impl FnOnce() -> B + Send,
) -> Result<(Run, B), KernelError> {
    check(spec)?;
    let hosts = hosts_of(spec)?;
    let progress = Progress::of(spec, seed);
    let sending = |end: End<'_>| {
        let host = Host::tune("sender", &hosts);
        if let Some(recorder) = recorder {
            recorder.is_here();
        }
        let names = algorithms_of(spec, recorder, &Machine)?;
        check_algorithms(&names)?;
        let started = end.start()?;
        let is_over =
            || started.is_over() || recorder.is_some_and(|recorder| recorder.is_full.load(Ordering::Acquire));
        let sender = Sender::new(spec, seed, started.clock, &progress)?.with_algorithms(&names);
        Ok::<_, KernelError>((sender.run(is_over)?, host))
    };
    let receiving = |end: End<'_>| {
        let host = Host::tune("receiver", &hosts);
        let receiver = Receiver::listen(spec)?;
        receiver.run(spec, end.start()?, &progress)?;
        Ok(host)
    };
    let (carried, beside) = path.carry_beside(sending, receiving, beside)?;
    Ok((record(spec, seed, &path, carried), beside))
}

/// The settings of the hosts, which all connections share.
///
/// # Errors
/// When some flows are to negotiate ECN and others are not.
pub(crate) fn hosts_of(spec: &Spec) -> Result<HostSpec, KernelError> {
    match spec.shared_ecn() {
        Ok(ecn) => Ok(HostSpec { ecn, ..spec.hosts.clone() }),
        Err(number) => Err(KernelError::from(EmuError::Unsupported {
            field: format!("flows[{number}].ecn"),
            reason: "Linux negotiates ECN for all connections of a host, or for none".to_owned(),
            fix: "give all flows the same ecn, or use the simulator (--world sim)".to_owned(),
        })),
    }
}

/// The congestion control that each flow sets. The scenario has been checked: some kernel has each.
fn algorithms_of(
    spec: &Spec,
    recorder: Option<&Recorder>,
    shown: &impl Shown,
) -> Result<Vec<String>, KernelError> {
    let name = |flow: &FlowSpec| match recorder.and_then(|recorder| recorder.name_for(flow)) {
        Some(recorded) => Ok(recorded.to_owned()),
        None => bbr::name_here(&flow.controller, shown),
    };
    spec.flows.iter().map(name).collect()
}

/// Refuses programs where they do not run.
fn check_no_program(spec: &Spec, place: &str) -> Result<(), KernelError> {
    spec.check_no_program(place).map_err(|error| {
        let reason = format!("{} {}", error.given, error.problem);
        EmuError::Unsupported { field: error.field, reason, fix: error.fix.into() }.into()
    })
}

/// Refuses scenarios that the kernel world cannot run, before anything is set up.
pub(crate) fn check(spec: &Spec) -> Result<(), KernelError> {
    check_no_program(spec, "the recorder")?;
    let unsupported = |field: String, reason: String, fix: &str| {
        Err(EmuError::Unsupported { field, reason, fix: fix.to_owned() }.into())
    };
    if spec.flows.is_empty() || spec.flows.len() > MAX_FLOWS {
        return unsupported(
            "flows".to_owned(),
            format!("the kernel world runs 1 to {MAX_FLOWS} flows, the scenario has {}", spec.flows.len()),
            "change the number of flows",
        );
    }
    if spec.hosts.metrics.as_ref().is_some_and(|metrics| !metrics.is_empty()) {
        return unsupported(
            "hosts.metrics".to_owned(),
            "Linux does not let anybody write its metrics".to_owned(),
            "begin with an earlier flow that leaves them, or use the simulator (--world sim)",
        );
    }
    hosts_of(spec)?;
    Path::of(spec, spec.seed).with_router()?.check()?;
    for (number, flow) in spec.flows.iter().enumerate() {
        if flow.controller.stack().is_some() {
            return unsupported(
                format!("flows[{number}].controller"),
                format!("only the world quic runs {}", flow.controller),
                "use a controller of Linux (`fullpipe controllers` lists them), or the world quic (--world quic)",
            );
        }
        if !bbr::is_in_a_kernel(&flow.controller) {
            return unsupported(
                format!("flows[{number}].controller"),
                format!("Linux has no {:?}", flow.controller.text()),
                "use a controller of Linux without changed parameters (`fullpipe controllers` lists them), or the \
                 simulator (--world sim)",
            );
        }
        if flow.max_cwnd.is_some() {
            return unsupported(
                format!("flows[{number}].max_cwnd"),
                "the kernel world cannot cap cwnd".to_owned(),
                "leave max_cwnd out, limit the window by tcp_wmem or tcp_rmem, or use the simulator (--world sim)",
            );
        }
    }
    Ok(())
}

/// Checks that the kernel has every algorithm in the calling thread's namespace. As root, the check loads the module.
fn check_algorithms(names: &[String]) -> Result<(), KernelError> {
    let socket =
        sys::socket(libc::SOCK_STREAM).map_err(|error| KernelError::system("open a socket", error))?;
    let mut names = names.to_vec();
    names.sort_unstable();
    names.dedup();
    for name in &names {
        set_algorithm(&socket, name).map_err(|error| no_algorithm(name, error))?;
    }
    Ok(())
}

/// Why a socket does not take an algorithm.
pub(crate) fn no_algorithm(name: &str, error: io::Error) -> KernelError {
    if error.raw_os_error() != Some(libc::ENOENT) {
        return KernelError::system(format!("use congestion control {name}"), error);
    }
    let available = sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    KernelError::NoAlgorithm {
        name: name.to_owned(),
        available: available.split_whitespace().map(str::to_owned).collect(),
    }
}

/// Puts the threads' reports together.
fn record(spec: &Spec, seed: u64, path: &Path, carried: Carried<(SenderReport, Host), Host>) -> Run {
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
    untrustworthy.extend(spoiled_slow_starts(spec, path.base_rtt(), &sent.flows, &carried.ferried.stalls));
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
        not_honoured: Vec::new(),
    }
}

/// For how long the path stood before a time of the machine.
pub(crate) fn stood_before(stalls: &[Stall], machine_ns: u64) -> u64 {
    let stood = stalls.iter().map(|stall| {
        let began = stall.ended.as_nanos() - stall.lasted.as_nanos();
        machine_ns.saturating_sub(began).min(stall.lasted.as_nanos())
    });
    stood.sum()
}

/// Gives the moments of a flow, and the round trips in its samples, in the path's time, which stops while the machine stalls: the
/// queues' are, too. By the machine's clock, a goodput would be less by the share of the run that nothing could be sent in, and each
/// round trip that a stall fell into longer by the stall. How long transfers took stays by that clock.
fn in_path_time(flow: &mut FlowRecord, stalls: &[Stall]) {
    let stood = |machine_ns: u64| stood_before(stalls, machine_ns);
    let at = |machine_ns: u64| machine_ns - stood(machine_ns);
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
            of_stalls = stood(*time) - stood(time.saturating_sub(*srtt));
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
fn spoiled_slow_starts(
    spec: &Spec,
    base_rtt: Duration,
    flows: &[FlowRecord],
    stalls: &[Stall],
) -> Vec<String> {
    let grown = Duration::from_nanos(base_rtt.as_nanos() / 8)
        .clamp(Duration::from_millis(4), Duration::from_millis(16));
    let spoiled = |(flow, spec): (&FlowRecord, &FlowSpec)| {
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
    flows.iter().zip(&spec.flows).filter_map(spoiled).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_emu::FerryReport;
    use fullpipe_path::config::{ElementConfig, QueueConfig, Schedule};
    use fullpipe_record::{FlowSeries, FlowTotals};
    use fullpipe_scenario::controller::ControllerChoice;
    use fullpipe_scenario::spec::{HostModel, Workload};
    use fullpipe_units::{Bytes, Rate, Time};

    fn spec(buffer_bytes: u64) -> Spec {
        let delay =
            |millis| ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(millis)) };
        let link = ElementConfig::Link {
            name: "bottleneck".to_owned(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
            queue: QueueConfig::drop_tail(Bytes::new(buffer_bytes), None),
        };
        let flow = FlowSpec {
            label: "a".to_owned(),
            controller: ControllerChoice::parse("reno").unwrap(),
            start_ns: Time::ZERO,
            start_jitter_ns: Duration::ZERO,
            stop_ns: None,
            workload: Workload::Bulk,
            extra_forward_ns: Duration::from_millis(5),
            extra_reverse_ns: Duration::ZERO,
            max_cwnd: None,
            ecn: None,
            program: None,
        };
        Spec {
            name: "test".to_owned(),
            duration_ns: Duration::from_secs(1),
            mtu_bytes: 1500,
            forward: vec![link, delay(20)],
            reverse: vec![delay(15)],
            hosts: HostSpec {
                model: HostModel::Ideal,
                tcp_rmem_bytes: [4096, 131_072, 6_291_456].map(Bytes::new),
                tcp_wmem_bytes: [4096, 16_384, 4_194_304].map(Bytes::new),
                pacing: false,
                gro_ns: Duration::ZERO,
                gso_max_segs: HostSpec::GSO_MAX_SEGS,
                ecn: false,
                metrics: None,
            },
            flows: vec![flow],
            sample_interval_ns: None,
            sample_flows: true,
            keep_series: true,
            seed: 1,
        }
    }

    #[test]
    fn what_the_kernel_cannot_do_is_refused_by_field() {
        assert!(check(&spec(100_000)).is_ok());
        let mut capped = spec(100_000);
        capped.flows[0].max_cwnd = Some(10);
        let error = check(&capped).unwrap_err();
        assert_eq!(error.to_string(), "flows[0].max_cwnd: the kernel world cannot cap cwnd");
        assert!(error.fix().contains("--world sim"));
        // What is wrong with the hosts comes before what is wrong with a flow of theirs.
        capped.hosts.metrics =
            Some(fullpipe_scenario::metrics::MetricsSpec { cwnd: 10, ..Default::default() });
        assert!(check(&capped).unwrap_err().to_string().starts_with("hosts.metrics: "));
        let mut of_a_stack = spec(100_000);
        of_a_stack.flows[0].controller = ControllerChoice::parse("quinn:bbr").unwrap();
        let error = check(&of_a_stack).unwrap_err();
        assert_eq!(error.to_string(), "flows[0].controller: only the world quic runs quinn:bbr");
        assert!(error.fix().contains("--world quic"));
        let mut none = spec(100_000);
        none.flows.clear();
        assert!(check(&none).unwrap_err().to_string().starts_with("flows: "));
    }

    #[test]
    fn what_spoils_a_host_a_flow_or_the_path_spoils_the_run() {
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
    fn moments_are_in_the_time_of_the_path() {
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
    fn a_stall_in_the_slow_start_of_cubic_spoils_the_run() {
        let mut spec = spec(100_000);
        let ms = |ms: u64| Time::ZERO + Duration::from_millis(ms);
        let series = FlowSeries {
            time_ns: [10, 20, 30].map(|at| ms(at).as_nanos()).to_vec(),
            ssthresh: vec![u32::MAX, u32::MAX, 30],
            ..FlowSeries::default()
        };
        let spoiled = |spec: &Spec, ended: u64, lasted: u64, series: &FlowSeries| {
            let flow = FlowRecord {
                label: "a".to_owned(),
                controller: spec.flows[0].controller.text().to_owned(),
                totals: FlowTotals { end_ns: ms(1000).as_nanos(), ..FlowTotals::default() },
                transfers_ns: vec![],
                rebuffered_ns: None,
                series: series.clone(),
            };
            let stall = Stall { ended: ms(ended), lasted: Duration::from_millis(lasted) };
            spoiled_slow_starts(spec, Duration::from_millis(40), &[flow], &[stall]).len()
        };
        // Reno has no HyStart.
        assert_eq!(spoiled(&spec, 25, 5, &series), 0);
        spec.flows[0].controller = ControllerChoice::parse("cubic").unwrap();
        assert_eq!(spoiled(&spec, 25, 5, &series), 1);
        // Shorter than an eighth of 40 ms; after slow start; and where nothing is known of it.
        assert_eq!(spoiled(&spec, 25, 4, &series), 0);
        assert_eq!(spoiled(&spec, 31, 5, &series), 0);
        assert_eq!(spoiled(&spec, 25, 5, &FlowSeries::default()), 0);
    }
}
