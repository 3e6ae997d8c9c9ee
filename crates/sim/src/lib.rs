//! A deterministic packet simulator of TCP.
//!
//! [`run`] takes a resolved scenario and a seed and gives the record that every world gives. Same scenario and seed: the
//! same record, on every machine and thread count. Time is virtual; nothing here reads a clock.
//!
//! [`run_plainly`] gives that record too, by the plainest means: tests compare the two.
//!
//! Read in this order: `world` (the loop: who acts next), `sender` and `receiver` (the two halves of a connection, as Linux
//! does them), `agenda` (what happens next), `verify` (conservation, checked in every run).

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
