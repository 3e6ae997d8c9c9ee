//! Real packets over an emulated path.
//!
//! Two network namespaces are the hosts. The packets between them pass a TUN device on either side, and a ferry carries
//! each through the very path elements that the simulator uses, driven by the monotonic clock. What sends is the caller's
//! affair: [`Path::carry`] runs two closures, one on each host, and returns what they and the ferry report.
//! `fullpipe-kernel` runs Linux TCP there; [`probe()`] numbered datagrams, to check the path itself. [`shell()`] runs any
//! command behind a path, and [`doctor()`] reports what this machine can do.
//!
//! In reading order:
//!
//! * [`path`]: what a path is made of. [`carry`]: its two hosts and its ferry, started and stopped together. [`namespace`]: rights,
//!   network namespaces that belong to threads, dying with the parent. [`settings`] of a namespace, and [`sysctl`], which reads them.
//! * [`tun`]: the devices. `frame` splits GSO frames into packets, `merge` puts them together again; `flow` tells flows apart.
//! * [`ferry`]: carries packets from one device through the path to the other and records how late it was. `path_clock`:
//!   the path's time, which stops while the machine does. `load`: what the hosts got of the processors. `trust`: what makes a run
//!   untrustworthy.
//! * `watch`: packets at the near device, copied for a log. `meter`: flows measured by their packets. `batches`: how both get
//!   theirs without the ferry waiting.
//! * `router`: a host behind a queue of Linux instead of an emulated one; [`qdisc`]: that queue in the words of `tc`.
//! * [`probe`](mod@probe): checks the emulator's accuracy by numbered datagrams with time stamps.
//! * [`program`]: clients and servers of any kind as the flows of a path.
//! * [`shell`](mod@shell): any command behind a path; `address` chooses addresses. [`doctor`](mod@doctor).
//! * [`histogram`]: arithmetic. [`clock`]: the only clock of the workspace. [`sys`]: thin wrappers around system calls.
//!
//! Nothing is left behind, however the process ends: namespaces have no names and belong to threads, devices belong to
//! descriptors, and nothing is written to disk.
#![cfg(target_os = "linux")]

mod address;
mod batches;
pub mod carry;
pub mod clock;
pub mod doctor;
mod error;
pub mod ferry;
mod flow;
mod frame;
pub mod histogram;
mod load;
mod merge;
mod meter;
pub mod namespace;
pub mod path;
mod path_clock;
pub mod probe;
pub mod program;
pub mod qdisc;
mod router;
pub mod settings;
pub mod shell;
pub mod sys;
pub mod sysctl;
mod trust;
pub mod tun;
mod watch;

pub use carry::{Carried, End, Started};
pub use doctor::{Check, doctor, linux_queues};
pub use error::{EmuError, ProgramFailure};
pub use ferry::FerryReport;
pub use meter::Metered;
pub use namespace::die_with_parent;
pub use path::{Classes, FAR, FIRST_PORT, NEAR, OneWay, Path};
pub use path_clock::{Pause, Paused, Stall};
pub use probe::probe;
pub use qdisc::LinuxQueue;
pub use shell::shell;
pub use watch::{Seen, Watched, Watcher, watch};
