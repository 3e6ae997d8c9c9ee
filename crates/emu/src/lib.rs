//! Real Linux TCP over an emulated path.
//!
//! [`run()`] takes a resolved scenario and gives the record of one run. Two network namespaces are the end hosts; the
//! packets between them pass a TUN device on either side, and a ferry carries each through the very path elements that
//! the simulator uses, driven by the monotonic clock. [`shell()`] runs any command behind such a path, [`doctor()`] reports
//! what this machine can do.
//!
//! In reading order:
//!
//! * [`run`](mod@run): one run from preparation to record, and what makes it untrustworthy. `threads`: the hosts' and the
//!   ferry's, started and stopped together.
//! * [`namespace`]: rights, network namespaces that belong to threads, settings, dying with the parent.
//! * [`tun`]: the devices. `frame` splits GSO frames into packets, `merge` puts them together again.
//! * `ferry`: carries packets from one device through the path to the other and records how late it was.
//! * [`host`]: the traffic generator; `host/sender.rs` opens, writes and samples, `host/receiver.rs` discards and counts.
//! * [`tcp_info`]: what a kernel socket reports about itself.
//! * [`probe`](mod@probe): checks the emulator's accuracy by numbered datagrams with time stamps.
//! * [`tap`]: records the inputs and decisions of the kernel's congestion control, call by call.
//! * [`shell`](mod@shell): any command behind a path; `address` chooses addresses. [`doctor`](mod@doctor).
//! * `histogram` and `rates`: arithmetic.
//! * [`clock`]: the only clock of the workspace. `sys`: thin wrappers around system calls.
//!
//! Nothing is left behind, however the process ends: namespaces have no names and belong to threads, devices belong to
//! descriptors, and nothing is written to disk except the compiled recorder, in the user's cache.
#![cfg(target_os = "linux")]

mod address;
pub mod clock;
pub mod doctor;
mod error;
mod ferry;
mod frame;
pub mod histogram;
pub mod host;
mod merge;
pub mod namespace;
mod path_clock;
pub mod probe;
pub mod run;
pub mod shell;
mod sys;
pub mod tap;
pub mod tcp_info;
mod threads;
pub mod tun;

pub use doctor::{Check, doctor};
pub use error::EmuError;
pub use namespace::die_with_parent;
pub use probe::probe;
pub use run::run;
pub use shell::shell;
pub use tap::record;
