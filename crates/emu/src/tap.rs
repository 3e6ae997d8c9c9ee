//! Records what the kernel's own BBR or CUBIC is told and decides, call by call.
//!
//! `tap/tap.bpf.c` is a congestion control in BPF that does nothing but call the kernel's functions and write down what
//! went in and what came out. While a recording runs it is registered under a name of ours, and the scenario's flows
//! use it instead of the algorithm that it wraps. Nobody else is offered it.
//!
//! * `build`: from C source to the object file, with a cache.
//! * [`record()`]: loads it, runs the scenario, and drains the ring buffer meanwhile (`drain`).
//! * `record`: the record that both sides of the ring buffer agree on. `path`: a path in a line, for the trace.
//!
//! Nothing is left behind: programs, maps and the registration belong to descriptors of this process, and nothing is
//! pinned. However the process ends, the name is gone with it.

use std::ffi::CStr;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fullpipe_cc::replay::{Call, Ops};
use fullpipe_record::Run;
use fullpipe_scenario::spec::{FlowSpec, Spec};

use crate::EmuError;
use crate::host::sender::set_algorithm;
use crate::namespace::{ask_to_die_with_parent, effective_capabilities};
use crate::run::{check, run_tapped};
use crate::sys::libbpf::{Library, Object, Refused};
use crate::sys::{self, bpf::Ring};

mod build;
mod drain;
mod path;
mod record;

/// As `tap.bpf.c` says.
const RING_BYTES: usize = 16 << 20;
/// The first kernel whose `cong_control` is told of the ACK. Since 6.4 a registration can end with a descriptor.
const FIRST_KERNEL: (u32, u32) = (6, 10);
/// The kernel's description of its own types.
const TYPES: &str = "/sys/kernel/btf/vmlinux";

/// What an algorithm is called while it is recorded.
const fn recorded_name(ops: Ops) -> &'static CStr {
    match ops {
        Ops::Bbr => c"fp_bbr",
        Ops::Cubic => c"fp_cubic",
    }
}

/// A run and the calls of the flows that were recorded.
#[derive(Debug)]
pub struct Recording {
    /// The run, as the kernel world gives it.
    pub run: Run,
    /// Every call, in order.
    pub calls: Vec<Call>,
    /// For each flow of the trace, the number of that flow in the scenario.
    pub flows: Vec<usize>,
    /// The path, in a line.
    pub path: String,
    /// The kernel's `CONFIG_HZ`: how often jiffies tick in a second.
    pub hz: u32,
}

/// Runs `spec` over the kernel's TCP, like [`crate::run()`], and records every call of the flows that use `ops`.
/// Needs root and a process of its own.
pub fn record(spec: &Spec, seed: u64, ops: Ops) -> Result<Recording, EmuError> {
    check(spec)?;
    if !spec.flows.iter().any(|flow| flow.controller.linux_name() == Some(ops.name())) {
        return Err(EmuError::Unsupported {
            field: "flows".to_owned(),
            reason: format!("none uses {} of Linux, so there is nothing to record", ops.name()),
            mend: "give one of them that controller, or record another".to_owned(),
        });
    }
    ask_to_die_with_parent();
    let program = Program::load(ops)?;
    let tapped = Tapped::new(ops);
    let registration = program.register()?;
    let ring = program.ring()?;
    let (run, drained) = drain::during(ring, &tapped, || run_tapped(spec, seed, Some(&tapped)))?;
    drop(registration);
    let run = run?;
    if drained.overfull {
        return Err(EmuError::TooManyCalls { most: drain::MOST_CALLS });
    }
    match program.lost()? {
        0 => Ok(Recording {
            run,
            calls: drained.calls,
            flows: drained.flows,
            path: path::in_a_line(spec),
            hz: sys::ticks_per_second(),
        }),
        lost => Err(EmuError::LostCalls { lost, kept: drained.calls.len() }),
    }
}

/// Whether this machine can record an algorithm: prepares everything, and registers nothing.
pub(crate) fn try_out(ops: Ops) -> Result<(), EmuError> {
    Program::load(ops).map(drop)
}

/// What a run must know that is recorded.
#[derive(Debug)]
pub(crate) struct Tapped {
    ops: Ops,
    /// Inode number of the senders' network namespace; zero until it is known.
    network: AtomicU32,
    /// There is no room for more.
    pub(crate) abort: AtomicBool,
}

impl Tapped {
    fn new(ops: Ops) -> Tapped {
        Tapped { ops, network: AtomicU32::new(0), abort: AtomicBool::new(false) }
    }

    /// What a flow sets as its congestion control.
    pub(crate) fn name_for(&self, flow: &FlowSpec) -> Option<&'static str> {
        let name = flow.controller.linux_name()?;
        if name == self.ops.name() { recorded_name(self.ops).to_str().ok() } else { Some(name) }
    }

    /// The calling thread's network namespace is the one to record.
    pub(crate) fn is_here(&self) {
        let number = std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino());
        self.network.store(number as u32, Ordering::Release);
    }
}

/// The recorder in the kernel.
struct Program {
    ops: Ops,
    object: Object,
}

impl Program {
    /// Compiles it if need be, and loads it. Nobody can use it yet.
    fn load(ops: Ops) -> Result<Program, EmuError> {
        let mut missing = missing_in_kernel();
        let library = Library::open()
            .map_err(|error| Missing::package(format!("libbpf is not installed ({error})"), "libbpf1"));
        let compiled = build::object(ops);
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
    fn register(&self) -> Result<std::os::fd::OwnedFd, EmuError> {
        self.object.register(recorded_name(self.ops)).map_err(|refused| {
            if refused.error.raw_os_error() == Some(libc::EEXIST) {
                let name = recorded_name(self.ops).to_string_lossy();
                return EmuError::NoRecorder {
                    reason: format!("the congestion control {name} exists already"),
                    mend: "wait until the other recording on this machine has ended".to_owned(),
                };
            }
            not_loaded(&refused)
        })
    }

    fn ring(&self) -> Result<Ring, EmuError> {
        let map = self.object.map_fd(c"calls").map_err(|refused| not_loaded(&refused))?;
        Ring::map(map, RING_BYTES).map_err(|error| EmuError::system("map the recorder's memory", error))
    }

    /// How many calls found no room.
    fn lost(&self) -> Result<u64, EmuError> {
        let map = self.object.map_fd(c"lost").map_err(|refused| not_loaded(&refused))?;
        sys::bpf::array_element(map, 0)
            .map_err(|error| EmuError::system("read what the recorder lost", error))
    }
}

/// One thing that a recording needs and that is not there.
#[derive(Debug)]
struct Missing {
    reason: String,
    /// A package of Debian that has it.
    package: Option<&'static str>,
    mend: String,
}

impl Missing {
    fn package(reason: impl Into<String>, package: &'static str) -> Missing {
        Missing { reason: reason.into(), package: Some(package), mend: String::new() }
    }

    fn other(reason: impl Into<String>, mend: impl Into<String>) -> Missing {
        Missing { reason: reason.into(), package: None, mend: mend.into() }
    }

    /// Everything that is missing, in one sentence.
    fn all(missing: Vec<Missing>) -> EmuError {
        let reasons: Vec<&str> = missing.iter().map(|one| one.reason.as_str()).collect();
        let packages: Vec<&str> = missing.iter().filter_map(|one| one.package).collect();
        let others = missing.iter().map(|one| one.mend.clone()).filter(|mend| !mend.is_empty());
        let mut mends: Vec<String> = others.collect();
        if !packages.is_empty() {
            mends.push(format!(
                "install what is missing (Debian, Ubuntu: `apt install {}`)",
                packages.join(" ")
            ));
        }
        EmuError::NoRecorder { reason: reasons.join("; "), mend: mends.join("; ") }
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
fn make_available(ops: Ops) -> Result<(), EmuError> {
    let name = ops.name();
    let socket = sys::socket(libc::SOCK_STREAM).map_err(|error| EmuError::system("open a socket", error))?;
    set_algorithm(&socket, name).map_err(|error| crate::run::no_algorithm(name, error))
}

/// Why the kernel did not take the program, in a user's terms.
fn not_loaded(refused: &Refused) -> EmuError {
    let Refused { error, messages } = refused;
    if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EACCES)) && !messages.contains("PROG LOAD LOG")
    {
        let reason = format!("loading BPF programs is not permitted: {error}");
        return Missing::all(vec![Missing::other(reason, BECOME_ROOT)]);
    }
    if let Some(function) = missing_function(messages) {
        return EmuError::NoRecorder {
            reason: format!("this kernel does not offer {function} to BPF programs"),
            mend: "boot a kernel with CONFIG_TCP_CONG_BBR, CONFIG_TCP_CONG_CUBIC and CONFIG_DEBUG_INFO_BTF_MODULES, as \
                   distributions build them"
                .to_owned(),
        };
    }
    let said = messages.lines().map(|line| line.trim_start_matches("libbpf: ")).find(|line| !line.is_empty());
    EmuError::NoRecorder {
        reason: format!(
            "the kernel does not take the recorder: {error} ({})",
            said.unwrap_or("libbpf does not say why")
        ),
        mend: "please report it, with the kernel's version".to_owned(),
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

    fn refused(code: i32, messages: &str) -> Refused {
        Refused { error: std::io::Error::from_raw_os_error(code), messages: messages.to_owned() }
    }

    #[test]
    fn what_is_missing_is_named_with_its_packages() {
        let error = Missing::all(vec![
            Missing::package("clang is not installed", "clang"),
            Missing::package("libbpf is not installed", "libbpf1"),
        ]);
        let sentence = format!("{error}; {}", error.mend());
        assert!(sentence.contains("clang is not installed; libbpf is not installed"), "{sentence}");
        assert!(sentence.ends_with("(Debian, Ubuntu: `apt install clang libbpf1`)"), "{sentence}");
    }

    #[test]
    fn a_kernel_without_the_functions_is_told_by_their_name() {
        let unknown = "libbpf: extern (func ksym) 'bbr_main': not found in kernel or module BTFs\n";
        assert_eq!(missing_function(unknown), Some("bbr_main"));
        let forbidden = "calling kernel function cubictcp_init is not allowed\nprocessed 9 insns";
        assert_eq!(missing_function(forbidden), Some("cubictcp_init"));
        assert_eq!(missing_function("libbpf: something else"), None);
        assert!(not_loaded(&refused(libc::ESRCH, unknown)).to_string().contains("does not offer bbr_main"));
        assert!(not_loaded(&refused(libc::EPERM, "")).mend().contains("root"));
        let other = not_loaded(&refused(libc::EINVAL, "libbpf: failed to do x\nmore\n")).to_string();
        assert!(other.contains("(failed to do x)"), "{other}");
    }

    #[test]
    fn releases_are_compared_as_numbers() {
        assert_eq!(version("6.18.44-anything"), Some((6, 18)));
        assert_eq!(version("5.4-rc1"), Some((5, 4)));
        assert_eq!(version("unknown"), None);
        assert!(version("6.12").unwrap() > FIRST_KERNEL && version("6.9").unwrap() < FIRST_KERNEL);
    }
}
