//! Our controllers as congestion controls of this kernel (`crates/bpf`).
//!
//! * [`Ours`]: those that the flows of a run use. They belong to the process: however it ends, they are gone.
//! * [`load()`], [`unload`], [`status`]: those that stay, in `pins` a folder each of the BPF file system.
//!
//! What a program costs and why the kernel may skip one is in [`crate::recorder`].

use std::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use fullpipe_bpf::objects::{MOST_NAME_BYTES, Object as File, Options};
use fullpipe_cc::Params;
use fullpipe_scenario::ControllerChoice;
use fullpipe_scenario::spec::Spec;

use crate::KernelError;
use crate::bbr;
use crate::missing::{self, Missing};
use crate::sys;
use crate::sys::bpf::{self, Figures};
use crate::sys::libbpf::{Library, Object, Refused};

pub use pins::{load, load_own, unload};
pub use status::status;

#[cfg(test)]
mod faults;
mod pins;
mod place;
pub(crate) mod status;

/// The shim's name of the map that registers.
const OPERATIONS: &CStr = c"congestion";
/// Bytes of the ring buffer while every call is recorded: at 1 Gbit/s, a second.
pub(crate) const RING_BYTES: u32 = 64 << 20;

/// A congestion control in the kernel, under a name. It goes when its descriptors do.
pub(crate) struct Loaded {
    object: Object,
    link: OwnedFd,
}

/// How it is loaded.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct How {
    /// Every call is written to the ring buffer.
    pub(crate) recording: bool,
    /// The time of each ACK is counted.
    pub(crate) timing: bool,
}

impl Loaded {
    /// Registers the controller with these parameters.
    pub(crate) fn new(params: &Params, name: &str, how: How) -> Result<Loaded, KernelError> {
        let Some(file) = File::of(params) else {
            return Err(not_loaded(vec![Missing::other(
                format!("{} has no object for the kernel", params.name()),
                format!("choose one of {}", loadable().join(", ")),
            )]));
        };
        let options = Options { hz: sys::ticks_per_second(), recording: how.recording, timing: how.timing };
        Loaded::from_file(&file.file(name, params, options), name, how)
    }

    /// The same from the bytes of an object.
    fn from_file(file: &[u8], name: &str, how: How) -> Result<Loaded, KernelError> {
        let mut missing = missing::in_kernel();
        let library = Library::open()
            .map_err(|error| Missing::package(format!("libbpf is not installed ({error})"), "libbpf1"));
        let library = match library {
            Ok(library) if missing.is_empty() => library,
            library => {
                missing.extend(library.err());
                return Err(not_loaded(missing));
            }
        };
        let ring = how.recording.then_some((c"calls", RING_BYTES));
        let object =
            Object::load_with(library, file, OPERATIONS, ring).map_err(|error| refused(&error, name))?;
        let link = object.register(OPERATIONS).map_err(|error| refused(&error, name))?;
        Ok(Loaded { object, link })
    }

    pub(crate) fn map(&self, name: &CStr) -> Result<RawFd, KernelError> {
        self.object.map_fd(name).map_err(|error| refused(&error, ""))
    }

    /// What the kernel knows of each program.
    pub(crate) fn figures(&self) -> Result<Vec<Figures>, KernelError> {
        let figures = self.object.program_fds().into_iter().map(bpf::figures);
        figures
            .collect::<Result<_, _>>()
            .map_err(|error| KernelError::system("read a program's figures", error))
    }
}

/// Those, with their default parameters.
fn each() -> Vec<(Params, &'static str)> {
    let of = |file: &File| Some((fullpipe_bpf::objects::controller(file.controller)?, file.controller));
    File::ALL.iter().filter_map(of).collect()
}

/// The controllers that have an object, as a scenario chooses them.
pub fn loadable() -> Vec<&'static str> {
    // The last one has the first one's object.
    File::ALL.iter().map(|file| file.controller).chain(["bbr3:profile=repaired"]).collect()
}

fn not_loaded(missing: Vec<Missing>) -> KernelError {
    let (reason, fix) = Missing::all(&missing);
    KernelError::NotLoaded { reason, fix }
}

/// Why the kernel did not take it, in a user's terms.
fn refused(refused: &Refused, name: &str) -> KernelError {
    let Refused { error, messages } = refused;
    let one = match error.raw_os_error() {
        Some(libc::EEXIST) => Missing::other(
            format!("this kernel has a congestion control {name} already"),
            format!("give it another name (--as), or remove that one (`fullpipe kernel unload {name}`)"),
        ),
        Some(libc::EPERM | libc::EACCES) if !messages.contains("PROG LOAD LOG") => {
            Missing::other(format!("loading BPF programs is not permitted: {error}"), missing::BECOME_ROOT)
        }
        _ => {
            let reason = refused.verifier_reason().or_else(|| refused.first_line());
            Missing::other(
                format!(
                    "the kernel does not take it: {error} ({})",
                    reason.unwrap_or("libbpf gives no reason")
                ),
                "please report it, with the kernel's version",
            )
        }
    };
    not_loaded(vec![one])
}

/// Whether this machine can do it: loads and registers one, and removes it.
pub(crate) fn try_out() -> Result<(), KernelError> {
    let [(params, _), ..] = &each()[..] else { return Ok(()) };
    Loaded::new(params, &name_of_a_run(99), How::default()).map(drop)
}

/// A name that no other process has.
fn name_of_a_run(number: usize) -> String {
    let name = format!("fp{:x}_{number}", std::process::id());
    debug_assert!(
        name.len() <= MOST_NAME_BYTES,
        "a process has a number below 2^22, a run at most 99 controllers"
    );
    name
}

/// Whether a flow that chose this runs with a controller of ours, and no kernel that we know has it.
pub(crate) fn is_ours(choice: &ControllerChoice) -> bool {
    choice.linux_name().is_none() && choice.params().is_some_and(|params| File::of(params).is_some())
}

/// The controllers of a run that are ours and not the kernel's, loaded.
pub(crate) struct Ours {
    pub(crate) loaded: Vec<(Params, String, Loaded)>,
}

impl Ours {
    /// Loads what the flows of `spec` need, each once.
    pub(crate) fn of(spec: &Spec, how: How) -> Result<Ours, KernelError> {
        let mut ours = Ours { loaded: Vec::new() };
        for flow in &spec.flows {
            let has_it = || bbr::name_here(&flow.controller, &bbr::Machine).is_ok();
            let Some(params) = flow.controller.params().filter(|_| is_ours(&flow.controller)) else {
                continue;
            };
            if ours.loaded.iter().any(|(known, ..)| known == params)
                || (bbr::is_in_a_kernel(&flow.controller) && has_it())
            {
                continue;
            }
            let name = name_of_a_run(ours.loaded.len());
            let loaded = Loaded::new(params, &name, how)?;
            ours.loaded.push((*params, name, loaded));
        }
        Ok(ours)
    }

    /// What each flow of `spec` sets as its congestion control; `None` for one of the kernel's.
    pub(crate) fn names(&self, spec: &Spec) -> Vec<Option<String>> {
        let of = |choice: &ControllerChoice| {
            let params = choice.params()?;
            self.loaded.iter().find(|(known, ..)| known == params).map(|(_, name, _)| name.clone())
        };
        spec.flows.iter().map(|flow| of(&flow.controller)).collect()
    }

    /// Of each flow of `spec` where its socket's model is, for [`crate::model`].
    pub(crate) fn models(&self, spec: &Spec) -> Vec<Option<RawFd>> {
        let of = |choice: &ControllerChoice| {
            let params = choice.params()?;
            let (_, _, loaded) = self.loaded.iter().find(|(known, ..)| known == params)?;
            loaded.map(c"flows").ok()
        };
        spec.flows.iter().map(|flow| of(&flow.controller)).collect()
    }

    /// In sentences, connections that no longer trusted their controller.
    pub(crate) fn fallen(&self) -> Vec<String> {
        let of = |(params, _, loaded): &(Params, String, Loaded)| {
            let counters = status::counters(loaded.map(c"counters").ok()?).ok()?;
            let fallen =
                counters.fallen().map(|(cause, count)| format!("{count} by {cause}")).collect::<Vec<_>>();
            (!fallen.is_empty()).then(|| {
                format!(
                    "connections of {} went on with the kernel's Reno: {}",
                    params.name(),
                    fallen.join(", ")
                )
            })
        };
        self.loaded.iter().filter_map(of).collect()
    }
}

impl Loaded {
    /// What iterates over its connections.
    fn list(&self) -> Result<OwnedFd, KernelError> {
        let programs = self.object.program_fds();
        let list = programs
            .into_iter()
            .find(|fd| bpf::figures(*fd).is_ok_and(|figures| figures.name == "list_flows"));
        let program = list.ok_or_else(|| {
            not_loaded(vec![Missing::other("it has no program list_flows", "please report it")])
        })?;
        bpf::iterate(program, self.map(c"flows")?)
            .map_err(|error| KernelError::system("attach the iterator over connections", error))
    }

    fn link(&self) -> RawFd {
        self.link.as_raw_fd()
    }
}
