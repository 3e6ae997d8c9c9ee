//! Records the inputs and decisions of the kernel's own BBR or CUBIC, call by call.
//!
//! `recorder/recorder.bpf.c` is a congestion control in BPF that calls the kernel's functions and records their inputs and outputs.
//! While a recording runs it is registered under a name of ours, and the scenario's flows use it instead of the
//! algorithm that it wraps. No other process is offered it.
//!
//! * `build`: compiles the C source, with a cache.
//! * [`record()`]: loads the object, runs the scenario, and drains the ring buffer meanwhile (`drain`).
//! * `record`: the record that both sides of the ring buffer agree on. `path`: a path in a line, for the recording.
//!
//! Nothing is left behind: programs, maps and the registration belong to descriptors of this process, and nothing is
//! pinned. However the process ends, the name is gone with it.
//!
//! # Calls that the kernel skips
//!
//! TCP calls a BPF congestion control through a trampoline (`bpf_struct_ops_prepare_trampoline` in
//! `kernel/bpf/bpf_struct_ops.c`; on x86 `invoke_bpf_prog` in `arch/x86/net/bpf_jit_comp.c`). It asks
//! `__bpf_prog_enter` (`kernel/bpf/trampoline.c`) first, and if that returns 0 it jumps over the program *and* over the
//! instruction that stores the program's result. TCP then gets what was on the stack: a skipped `ssthresh` once set a
//! threshold of 668121856 segments, the low half of a pointer.
//!
//! | kernel | skips a program of ours |
//! |---|---|
//! | before 6.1 | while the same program runs on this CPU: a softirq that interrupts it, or another socket's call from within (`__bpf_prog_enter_recur`, `prog->active`). `bpf_prog_info.recursion_misses` counts it |
//! | 6.1 and newer | never: `bpf_prog_check_recur` (`include/linux/bpf_verifier.h`) exempts `struct_ops`, since 6.13 unless they ask for a private stack, which those of `net/ipv4/bpf_tcp_ca.c` do not |
//! | hardened builds of some hosts | as they please. A 6.18 that we disassembled makes `__bpf_prog_enter` return 0 for all programs that process 1 did not load, while `current` belongs to process 1. No counter counts it |
//!
//! The last one is what we met. TCP's timers (retransmission, TLP, RACK, pacing) run in softirqs, on top of whatever
//! process is current. If that is process 1, all calls of this timer are skipped: `ssthresh`, `cwnd_event` and `set_state`
//! of a timeout, for example. ACKs and transmissions of applications run on top of our own threads, so that `undo_cwnd`,
//! `sndbuf_expand`, `pkts_acked`, `cong_avoid` and almost every `cong_control` are safe. Migration is not a cause: the
//! trampoline disables it.
//!
//! A program cannot prevent that it is skipped, but the next call can see it. The socket's state differs from what the
//! last `set_state` was given, or the threshold in CWR, Recovery or Loss is not what `ssthresh` returned, or segments are
//! in flight after none were, without `CA_EVENT_TX_START`. `catch_up` in `missed.bpf.h` then runs the kernel's `ssthresh` and
//! `set_state` late, before the kernel uses the threshold: it is read in an ACK, after the ACK's first call. What
//! `min_tso_segs` returns when it is skipped cannot be repaired. It makes one burst of a flow larger, up to
//! `sk_gso_max_size`, and leaves no trace.
//!
//! [`Recording::missed_calls`] counts what was seen, or what the kernel itself counted if that is more. The recording keeps
//! the number, and a replay reports it as incomplete.

use std::ffi::CStr;
use std::path::Path;

use fullpipe_record::Run;
use fullpipe_replay::{Call, Ops};
use fullpipe_scenario::spec::Spec;

use fullpipe_emu::EmuError;
use fullpipe_emu::namespace::{ask_to_die_with_parent, effective_capabilities};

use crate::KernelError;
use crate::bbr;
use crate::host::sender::set_algorithm;
use crate::refusal::check;
use crate::run::run_recorded;
use crate::sys::libbpf::{Library, Object, Refused};
use crate::sys::{self, bpf::Ring};

pub(crate) use recorded::Recorder;
use recorded::recorded_name;

mod build;
#[cfg(test)]
#[path = "../examples/common/mod.rs"]
mod common;
mod drain;
mod path;
mod record;
mod recorded;

/// As `record.bpf.h` says.
const RING_BYTES: usize = 16 << 20;
/// The first kernel that passes the ACK to `cong_control`. Since 6.4 a registration can end with a descriptor.
const FIRST_KERNEL: (u32, u32) = (6, 10);
/// The kernel's description of its own types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// A run and the calls of the flows that were recorded.
#[derive(Debug)]
pub struct Recording {
    /// The run, as the kernel world gives it.
    pub run: Run,
    /// Every call, in order.
    pub calls: Vec<Call>,
    /// For each flow of the recording, the number of that flow in the scenario.
    pub flows: Vec<usize>,
    /// The path, in a line.
    pub path: String,
    /// The kernel's `CONFIG_HZ`: how often jiffies tick in a second.
    pub hz: u32,
    /// Calls that the kernel is known to have skipped. Above zero, the flows were not quite the kernel's own.
    pub missed_calls: u64,
}

/// Runs `spec` over the kernel's TCP, like [`crate::run()`], and records every call of the flows that use `ops`.
/// Needs root and a process of its own.
///
/// # Errors
/// As [`crate::run()`]; and when no flow uses `ops`, when something that recording needs is missing (root, clang, libbpf, parts
/// of the kernel), and when calls were lost.
pub fn record(spec: &Spec, seed: u64, ops: Ops) -> Result<Recording, KernelError> {
    record_with(spec, seed, ops, build::object)
}

/// [`record()`] with an object that `object` compiles.
fn record_with(
    spec: &Spec,
    seed: u64,
    ops: Ops,
    object: impl FnOnce(Ops) -> Result<Vec<u8>, Missing>,
) -> Result<Recording, KernelError> {
    check(spec)?;
    if !spec.flows.iter().any(|flow| flow.controller.linux_name() == Some(ops.name())) {
        return Err(EmuError::Unsupported {
            field: "flows".to_owned(),
            reason: format!("none uses {} of Linux, so there is nothing to record", ops.name()),
            fix: "give one of them that controller, or record another".to_owned(),
        }
        .into());
    }
    ask_to_die_with_parent();
    let program = Program::load(ops, object)?;
    let recorder = Recorder::new(ops);
    let registration = program.register()?;
    let ring = program.ring()?;
    let (run, drained) = drain::during(ring, &recorder, || run_recorded(spec, seed, Some(&recorder)))?;
    drop(registration);
    let run = run?;
    if drained.overfull {
        return Err(KernelError::TooManyCalls { most: drain::MOST_CALLS });
    }
    match program.lost()? {
        0 => Ok(Recording {
            run,
            calls: drained.calls,
            flows: drained.flows,
            path: path::in_a_line(spec),
            hz: sys::ticks_per_second(),
            missed_calls: program.missed()?,
        }),
        lost => Err(KernelError::LostCalls { lost, kept: drained.calls.len() }),
    }
}

/// Whether this machine can record an algorithm: prepares everything, and registers nothing.
pub(crate) fn try_out(ops: Ops) -> Result<(), KernelError> {
    Program::load(ops, build::object).map(drop)
}

/// The recorder in the kernel.
struct Program {
    ops: Ops,
    object: Object,
}

impl Program {
    /// Compiles it if need be, and loads it. Nobody can use it yet.
    fn load(ops: Ops, object: impl FnOnce(Ops) -> Result<Vec<u8>, Missing>) -> Result<Program, KernelError> {
        if ops == Ops::Bbr {
            bbr::check_recordable(&bbr::Machine)?;
        }
        let mut missing = missing_in_kernel();
        let library = Library::open()
            .map_err(|error| Missing::package(format!("libbpf is not installed ({error})"), "libbpf1"));
        let compiled = object(ops);
        let (library, compiled) = match (library, compiled) {
            (Ok(library), Ok(compiled)) if missing.is_empty() => (library, compiled),
            (library, compiled) => {
                missing.extend(library.err());
                missing.extend(compiled.err());
                return Err(Missing::all(missing));
            }
        };
        make_available(ops)?;
        let object = Object::load(library, &compiled, recorded_name(ops));
        Ok(Program { ops, object: object.map_err(|refused| not_loaded(&refused))? })
    }

    /// Gives it its name for as long as the descriptor is open.
    fn register(&self) -> Result<std::os::fd::OwnedFd, KernelError> {
        self.object.register(recorded_name(self.ops)).map_err(|refused| {
            if refused.error.raw_os_error() == Some(libc::EEXIST) {
                let name = recorded_name(self.ops).to_string_lossy();
                return KernelError::NoRecorder {
                    reason: format!("the congestion control {name} exists already"),
                    fix: "wait until the other recording on this machine has ended".to_owned(),
                };
            }
            not_loaded(&refused)
        })
    }

    fn ring(&self) -> Result<Ring, KernelError> {
        let map = self.object.map_fd(c"calls").map_err(|refused| not_loaded(&refused))?;
        Ring::map(map, RING_BYTES).map_err(|error| KernelError::system("map the recorder's memory", error))
    }

    /// How many calls found no room.
    fn lost(&self) -> Result<u64, KernelError> {
        self.counter(c"lost")
    }

    /// How many calls the kernel is known to have skipped.
    fn missed(&self) -> Result<u64, KernelError> {
        let mut counted = Vec::new();
        for program in self.object.program_fds() {
            let misses = sys::bpf::recursion_misses(program);
            counted.push(misses.map_err(|error| KernelError::system("read a program's counters", error))?);
        }
        Ok(missed_calls(self.counter(c"missed")?, &counted))
    }

    /// The number in a map of one element.
    fn counter(&self, name: &CStr) -> Result<u64, KernelError> {
        let map = self.object.map_fd(name).map_err(|refused| not_loaded(&refused))?;
        sys::bpf::array_element(map, 0)
            .map_err(|error| KernelError::system("read the recorder's counters", error))
    }
}

/// The larger of what the recorder saw and what the kernel counted for all programs: both may have seen the same calls.
fn missed_calls(seen: u64, counted: &[u64]) -> u64 {
    seen.max(counted.iter().sum())
}

/// One thing that a recording needs and that is missing.
#[derive(Debug)]
struct Missing {
    reason: String,
    /// A package of Debian that has it.
    package: Option<&'static str>,
    fix: String,
}

impl Missing {
    fn package(reason: impl Into<String>, package: &'static str) -> Missing {
        Missing { reason: reason.into(), package: Some(package), fix: String::new() }
    }

    fn other(reason: impl Into<String>, fix: impl Into<String>) -> Missing {
        Missing { reason: reason.into(), package: None, fix: fix.into() }
    }

    /// Everything that is missing, in one sentence.
    fn all(missing: Vec<Missing>) -> KernelError {
        let reasons: Vec<&str> = missing.iter().map(|one| one.reason.as_str()).collect();
        let packages: Vec<&str> = missing.iter().filter_map(|one| one.package).collect();
        let others = missing.iter().map(|one| one.fix.clone()).filter(|fix| !fix.is_empty());
        let mut fixes: Vec<String> = others.collect();
        if !packages.is_empty() {
            fixes.push(format!(
                "install what is missing (Debian, Ubuntu: `apt install {}`)",
                packages.join(" ")
            ));
        }
        KernelError::NoRecorder { reason: reasons.join("; "), fix: fixes.join("; ") }
    }
}

const BECOME_ROOT: &str =
    "run as root, outside of any user namespace (CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_SYS_ADMIN)";

/// What the kernel lacks, as far as it can be seen without trying.
fn missing_in_kernel() -> Vec<Missing> {
    const NET_ADMIN: u64 = 1 << 12;
    const SYS_ADMIN: u64 = 1 << 21; // Implies CAP_BPF and CAP_PERFMON, and namespaces need it anyway.
    let mut missing = Vec::new();
    if effective_capabilities() & (NET_ADMIN | SYS_ADMIN) != NET_ADMIN | SYS_ADMIN {
        missing.push(Missing::other("loading BPF programs is not permitted", BECOME_ROOT));
    }
    let release = sys::host_and_kernel().1;
    if version(&release).is_some_and(|version| version < FIRST_KERNEL) {
        let (major, minor) = FIRST_KERNEL;
        missing.push(Missing::other(
            format!("Linux {release} is too old"),
            format!("boot Linux {major}.{minor} or newer"),
        ));
    }
    if !Path::new(TYPES).exists() {
        missing.push(Missing::other(
            format!("{TYPES} is missing, so the kernel does not describe its types"),
            "boot a kernel with CONFIG_DEBUG_INFO_BTF=y, as distributions build them",
        ));
    }
    missing
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|letter: char| !letter.is_ascii_digit()).map(str::parse);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// Has the kernel load the algorithm's module, whose functions the program calls.
fn make_available(ops: Ops) -> Result<(), KernelError> {
    let name = ops.name();
    let socket =
        sys::socket(libc::SOCK_STREAM).map_err(|error| KernelError::system("open a socket", error))?;
    set_algorithm(&socket, name).map_err(|error| crate::refusal::no_algorithm(name, error))
}

/// Why the kernel did not take the program, in a user's terms.
fn not_loaded(refused: &Refused) -> KernelError {
    let Refused { error, messages } = refused;
    if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) && !messages.contains("PROG LOAD LOG")
    {
        let reason = format!("loading BPF programs is not permitted: {error}");
        return Missing::all(vec![Missing::other(reason, BECOME_ROOT)]);
    }
    if let Some(function) = missing_function(messages) {
        return KernelError::NoRecorder {
            reason: format!("this kernel does not offer {function} to BPF programs"),
            fix: "boot a kernel with CONFIG_TCP_CONG_BBR, CONFIG_TCP_CONG_CUBIC and CONFIG_DEBUG_INFO_BTF_MODULES, as \
                   distributions build them"
                .to_owned(),
        };
    }
    let first =
        messages.lines().map(|line| line.trim_start_matches("libbpf: ")).find(|line| !line.is_empty());
    KernelError::NoRecorder {
        reason: format!(
            "the kernel does not take the recorder: {error} ({})",
            first.unwrap_or("libbpf gives no reason")
        ),
        fix: "please report it, with the kernel's version".to_owned(),
    }
}

/// The kernel function that libbpf, or the verifier, did not find among those that a program may call.
fn missing_function(messages: &str) -> Option<&str> {
    let after = |phrase| messages.split_once(phrase).map(|(_, rest)| rest);
    if messages.contains("not found in kernel or module BTFs") {
        return after("extern (func ksym) '")?.split('\'').next();
    }
    let rest = after("calling kernel function ")?;
    rest.contains("is not allowed").then(|| rest.split(' ').next()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsRawFd;

    fn refused(code: i32, messages: &str) -> Refused {
        Refused { error: std::io::Error::from_raw_os_error(code), messages: messages.to_owned() }
    }

    #[test]
    fn missing_tools_are_named_with_packages() {
        let error = Missing::all(vec![
            Missing::package("clang is not installed", "clang"),
            Missing::package("libbpf is not installed", "libbpf1"),
        ]);
        let sentence = format!("{error}; {}", error.fix());
        assert!(sentence.contains("clang is not installed; libbpf is not installed"), "{sentence}");
        assert!(sentence.ends_with("(Debian, Ubuntu: `apt install clang libbpf1`)"), "{sentence}");
    }

    #[test]
    fn error_names_missing_kernel_function() {
        let unknown = "libbpf: extern (func ksym) 'bbr_main': not found in kernel or module BTFs\n";
        assert_eq!(missing_function(unknown), Some("bbr_main"));
        let forbidden = "calling kernel function cubictcp_init is not allowed\nprocessed 9 insns";
        assert_eq!(missing_function(forbidden), Some("cubictcp_init"));
        assert_eq!(missing_function("libbpf: something else"), None);
        assert!(not_loaded(&refused(libc::ESRCH, unknown)).to_string().contains("does not offer bbr_main"));
        assert!(not_loaded(&refused(libc::EPERM, "")).fix().contains("root"));
        let other = not_loaded(&refused(libc::EINVAL, "libbpf: failed to do x\nmore\n")).to_string();
        assert!(other.contains("(failed to do x)"), "{other}");
    }

    #[test]
    fn misses_on_both_sides_count_once() {
        assert_eq!(missed_calls(0, &[0, 0]), 0);
        assert_eq!(missed_calls(3, &[0, 0]), 3);
        assert_eq!(missed_calls(3, &[2, 2]), 4);
    }

    /// Twice as much as the path holds, as in a flow whose calls all run.
    const SANE_SEGMENTS: u32 = 1000;

    /// Makes other tests on this machine that record wait: the names of congestion controls are the machine's.
    fn alone() -> Option<std::fs::File> {
        let folder = std::fs::File::open("/sys/fs/bpf").ok()?;
        // SAFETY: no pointers.
        (unsafe { libc::flock(folder.as_raw_fd(), libc::LOCK_EX) } == 0).then_some(folder)
    }

    /// Records a flow with losses whose `ssthresh` returns garbage in every other recovery, as if skipped.
    fn record_with_skipped_calls(ops: Ops) {
        let _alone = alone();
        let arguments = [ops.name(), "20", "20", "50000", "0.01", "3"].map(str::to_owned);
        let (spec, seed) = common::spec_of(&arguments).unwrap();
        let skipping = |ops| build::compile(ops, &["-DSKIP_EPISODES"]);
        let recording = match record_with(&spec, seed, ops, skipping) {
            Ok(recording) => recording,
            Err(error) => return println!("skipped: {error}"),
        };
        let highest = |value: fn(&Call) -> u32| recording.calls.iter().map(value).max().unwrap();
        assert!(recording.missed_calls > 0, "no recovery was skipped in {} calls", recording.calls.len());
        assert!(highest(|call| call.socket.snd_cwnd) < SANE_SEGMENTS);
        let thresholds = recording.calls.iter().map(|call| call.after.snd_ssthresh);
        assert!(
            thresholds.into_iter().all(|segments| segments < SANE_SEGMENTS || segments == i32::MAX as u32)
        );
        println!("done: {} of {} calls missed", recording.missed_calls, recording.calls.len());
    }

    #[test]
    #[ignore = "needs a process of its own: skipped_calls_do_not_disturb_kernel runs it"]
    fn recording_with_skipped_calls_of_bbr() {
        record_with_skipped_calls(Ops::Bbr);
    }

    #[test]
    #[ignore = "needs a process of its own: skipped_calls_do_not_disturb_kernel runs it"]
    fn recording_with_skipped_calls_of_cubic() {
        record_with_skipped_calls(Ops::Cubic);
    }

    #[test]
    fn skipped_calls_do_not_disturb_kernel() {
        for name in ["bbr", "cubic"] {
            let test = format!("recorder::tests::recording_with_skipped_calls_of_{name}");
            let arguments = [test.as_str(), "--exact", "--ignored", "--nocapture", "--test-threads=1"];
            let this = std::env::current_exe().unwrap();
            let output = std::process::Command::new(this).args(arguments).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
            println!("{text}");
        }
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-anything"), Some((6, 18)));
        assert_eq!(version("5.4-rc1"), Some((5, 4)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.12").unwrap() > FIRST_KERNEL && version("6.9").unwrap() < FIRST_KERNEL);
    }
}
