//! A deterministic packet simulator of TCP.
//!
//! [`run`] takes a resolved scenario and a seed and returns the same kind of record as every world. The same scenario and
//! seed give the same record, on every machine and with any number of threads. Time is virtual; nothing here reads a clock.
//!
//! [`run_plainly`] computes that record, too, by the simplest means: tests compare the two.
//!
//! Read in this order: `world` (the main loop), `sender` and `receiver` (the two halves of a connection, as in Linux),
//! `agenda` (what happens next), `verify` (conservation, checked in every run).

mod agenda;
mod application;
mod clock;
mod flow;
mod packet;
mod receiver;
mod sender;
mod series;
mod verify;
mod workload;
mod world;

pub use world::{SimError, run, run_plainly};
