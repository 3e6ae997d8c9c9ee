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

use fullpipe_record::Run;
use fullpipe_replay::{Call, Ops};
use fullpipe_scenario::spec::Spec;

use fullpipe_emu::EmuError;
use fullpipe_emu::namespace::ask_to_die_with_parent;

use crate::KernelError;
use crate::bbr;
use crate::host::sender::set_algorithm;
use crate::missing::{self, Missing};
use crate::refusal::check;
use crate::run::run_recorded;
use crate::sys::libbpf::{Library, Object, Refused};
use crate::sys::{self, bpf::Ring};

pub(crate) use recorded::Recorder;
use recorded::recorded_name;

mod build;
#[cfg(test)]
#[path = "../examples/common/mod.rs"]
pub(crate) mod common;
mod drain;
mod path;
mod record;
mod recorded;

/// As `record.bpf.h` says.
const RING_BYTES: usize = 16 << 20;

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
        let mut missing = missing::in_kernel();
        let library = Library::open()
            .map_err(|error| Missing::package(format!("libbpf is not installed ({error})"), "libbpf1"));
        let compiled = object(ops);
        let (library, compiled) = match (library, compiled) {
            (Ok(library), Ok(compiled)) if missing.is_empty() => (library, compiled),
            (library, compiled) => {
                missing.extend(library.err());
                missing.extend(compiled.err());
                return Err(no_recorder(missing));
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
            let figures = sys::bpf::figures(program);
            counted.push(
                figures.map_err(|error| KernelError::system("read a program's counters", error))?.misses,
            );
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

/// That all this is missing.
fn no_recorder(missing: Vec<Missing>) -> KernelError {
    let (reason, fix) = Missing::all(&missing);
    KernelError::NoRecorder { reason, fix }
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
        return no_recorder(vec![Missing::other(reason, missing::BECOME_ROOT)]);
    }
    if let Some(function) = missing_function(messages) {
        return KernelError::NoRecorder {
            reason: format!("this kernel does not offer {function} to BPF programs"),
            fix: "boot a kernel with CONFIG_TCP_CONG_BBR, CONFIG_TCP_CONG_CUBIC and CONFIG_DEBUG_INFO_BTF_MODULES, as \
                   distributions build them"
                .to_owned(),
        };
    }
    KernelError::NoRecorder {
        reason: format!(
            "the kernel does not take the recorder: {error} ({})",
            refused.first_line().unwrap_or("libbpf gives no reason")
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
        let error = no_recorder(vec![
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
}
