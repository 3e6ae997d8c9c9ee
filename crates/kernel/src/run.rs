//! One run of a scenario over the machine's own TCP.
//!
//! Both hosts are threads at the ends of an emulated path ([`fullpipe_emu::Path`]).

use std::sync::atomic::Ordering;

use fullpipe_emu::{EmuError, End, Path, watch};
use fullpipe_record::{Run, WorldName};
use fullpipe_scenario::spec::{FlowSpec, Spec};

use crate::KernelError;
use crate::bbr::{self, Machine, Shown};
use crate::congestion::{How, Ours};
use crate::host::receiver::Receiver;
use crate::host::sender::{Sender, set_algorithm};
use crate::host::{Host, Progress};
use crate::log::{Logged, Logs};
use crate::programs;
use crate::record::record;
use crate::recorder::Recorder;
use crate::refusal::{check, check_no_program, hosts_of, no_algorithm};
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

/// The same, with controllers of ours that are loaded already.
pub(crate) fn run_with(spec: &Spec, seed: u64, ours: &Ours) -> Result<Run, KernelError> {
    check(spec)?;
    run_loaded(spec, seed, path_of(spec, seed, false)?, (None, ours), || ()).map(|(run, ())| run)
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
    // In this namespace, where loading is permitted.
    let ours = Ours::of(spec, How::default())?;
    run_loaded(spec, seed, path, (recorder, &ours), beside)
}

/// The same, with the controllers of ours.
fn run_loaded<B: Send>(
    spec: &Spec,
    seed: u64,
    path: Path,
    (recorder, ours): (Option<&Recorder>, &Ours),
    beside: impl FnOnce() -> B + Send,
) -> Result<(Run, B), KernelError> {
    let hosts = hosts_of(spec)?;
    let (our_names, models) = (ours.names(spec), ours.models(spec));
    let progress = Progress::of(spec, seed);
    let sending = |end: End<'_>| {
        let host = Host::tune("sender", &hosts);
        if let Some(recorder) = recorder {
            recorder.is_here();
        }
        let names = algorithms_of(spec, recorder, &our_names, &Machine)?;
        check_algorithms(&names)?;
        let started = end.start()?;
        let is_over =
            || started.is_over() || recorder.is_some_and(|recorder| recorder.is_full.load(Ordering::Acquire));
        let sender = Sender::new(spec, seed, started.clock, &progress)?.with_algorithms(&names, &models);
        Ok::<_, KernelError>((sender.run(is_over)?, host))
    };
    let receiving = |end: End<'_>| {
        let host = Host::tune("receiver", &hosts);
        let receiver = Receiver::listen(spec)?;
        receiver.run(spec, end.start()?, &progress)?;
        Ok(host)
    };
    let (carried, beside) = path.carry_beside(sending, receiving, beside)?;
    let mut run = record(spec, seed, &path, carried);
    run.provenance.untrustworthy.extend(ours.fallen());
    Ok((run, beside))
}

/// The congestion control that each flow sets: of ours, if it is one. The scenario has been checked: some kernel has each other.
fn algorithms_of(
    spec: &Spec,
    recorder: Option<&Recorder>,
    ours: &[Option<String>],
    shown: &impl Shown,
) -> Result<Vec<String>, KernelError> {
    let name = |(flow, ours): (&FlowSpec, &Option<String>)| match (
        recorder.and_then(|recorder| recorder.name_for(flow)),
        ours,
    ) {
        (Some(recorded), _) => Ok(recorded.to_owned()),
        (None, Some(name)) => Ok(name.clone()),
        (None, None) => bbr::name_here(&flow.controller, shown),
    };
    spec.flows.iter().zip(ours).map(name).collect()
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
