//! The kernel world: the machine's own TCP over an emulated path.
//!
//! [`run()`] takes a resolved scenario and gives the record of one run. Both ends of the path
//! ([`fullpipe_emu::Path`]) are Linux; this crate opens its sockets, samples what they report, and records its decisions.
//!
//! In reading order:
//!
//! * [`run`](mod@run): one run from preparation to record; `refusal`: what cannot run; `record`: the threads' reports, put together.
//! * `host`: the traffic generator; `host/sender.rs` opens, writes and samples, `host/receiver.rs` discards and counts.
//! * `programs`: flows that are programs, seen from outside.
//! * [`tcp_info`]: what a kernel socket reports about itself. `bbr`: which version of BBR that is.
//! * [`recorder`]: records the inputs and decisions of the kernel's congestion control, call by call.
//! * [`congestion`]: our controllers as congestion controls of this kernel; `model`: what one believes; [`prove`](mod@prove): that it
//!   decides there as here.
//! * `missing`: what a BPF program needs. [`doctor`](mod@doctor): whether this machine can do all that.
//! * `sys`: thin wrappers around system calls.
//!
//! Nothing is left behind, however the process ends, except the compiled recorder, in the user's cache.
#![cfg(target_os = "linux")]

mod bbr;
pub mod congestion;
pub mod doctor;
mod error;
mod host;
mod log;
mod missing;
mod model;
mod programs;
pub mod prove;
mod record;
pub mod recorder;
mod refusal;
pub mod run;
mod sys;
pub mod tcp_info;
#[cfg(test)]
mod testing;

pub use doctor::doctor;
pub use error::KernelError;
pub use log::{Logged, Logs};
pub use prove::prove;
pub use recorder::record;
pub use run::{check_behind_qdisc, run, run_behind_qdisc, run_logged};
