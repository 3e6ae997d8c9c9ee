//! A deterministic packet simulator of TCP.
//!
//! [`run`] takes a resolved scenario and a seed and returns the same kind of record as every world. The same scenario and
//! seed give the same record, on every machine and with any number of threads. Time is virtual; nothing here reads a clock.
//!
//! [`Simulation`] is a run as an object: it can be advanced, watched, changed and finished, and it takes controllers that are
//! not built in. [`run`] is a few lines over it.
//!
//! [`run_plainly`] computes that record, too, by the simplest means: tests compare the two.
//!
//! Read in this order: `simulation` (a run from outside), `world` (the main loop), `sender` and `receiver` (the two halves of
//! a connection, as in Linux), `media` (a flow without one), `agenda` (what happens next), `world::rounds` (many flows, one after the other), `ahead` (what the
//! next events need, fetched in time), `plug`
//! (controllers from outside), `said` (changes and errors in words), `tap` (what a log is told), `verify` (conservation, checked in every run).

mod agenda;
mod ahead;
mod application;
mod change_text;
mod clock;
mod error;
mod flow;
mod hosts;
#[cfg(test)]
mod marked;
mod media;
mod packet;
mod plug;
mod receiver;
mod running;
mod sender;
mod series;
mod simulation;
mod tap;
mod verify;
mod way;
mod workload;
mod world;

pub use change_text::{ChangeError, Mistake, TextChange};
pub use error::SimError;
pub use fullpipe_scenario::spec::Place;
pub use plug::{MakeController, OwnController};
pub use running::run_plainly;
pub use simulation::{FlowView, QueueNow, Simulation, Status, run};
pub use tap::log_header;
