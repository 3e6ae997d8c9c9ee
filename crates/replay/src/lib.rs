//! Recorded decisions of a real kernel, and whether our controllers (`fullpipe-cc`) make the same ones.
//!
//! A recording holds each call that a Linux kernel made to a flow's congestion control, with its inputs and the state
//! after it ([`Call`]). A [`Replay`] feeds one flow's calls to our controller and compares, after every call, each field
//! of the private state and each output. The controller starts at the recorded `init` and is never set to the kernel's
//! state: after a million calls, its state is still its own.
//!
//! In reading order:
//!
//! 1. [`Call`], the record; [`Ops`], the two controls that can be replayed and the layout of their private state.
//! 2. [`Replay`], one flow step by step; [`replay_flow`], a flow as a whole; [`replay_all`], all flows of a recording. A
//!    [`Difference`] is where the two diverge.
//! 3. [`Coverage`]: which branches of the controller the calls reached. Agreement proves nothing about the others.
//! 4. [`filter_step`], [`sampler_step`]: the windowed maximum and the delivery-rate sample, for each call alone.
//!
//! | what | how |
//! |---|---|
//! | BBRv1 | [`fullpipe_cc::controllers::bbr1::Bbr1`] through the [`fullpipe_cc::Controller`] trait; private state, window, threshold, pacing rate and the threshold to undo to, all continuous. What the core does between calls (the window after a timeout, the threshold after an undo) is compared at the next call's entry |
//! | CUBIC with HyStart | [`fullpipe_cc::controllers::cubic::CubicIncrease`] as [`fullpipe_cc::controllers::segment_window::Algorithm`]; the private state is continuous, window and threshold are taken from the record before each call, for the core (PRR, undo, idle restarts) changes them too |
//!
//! Three inputs are not in a record and are inferred from its result: the random phase in which BBR's ProbeBW starts (from
//! `cycle_idx`), how long a CUBIC flow was idle (from `epoch_start`), and that a congestion mark forbade an undo (from
//! `prior_ssthresh`). The result then cannot contradict them; each must still be one that the controller can reach.
//!
//! A recorder may note the jiffies just before they tick, and the kernel read them just after: a call that differs is
//! repeated a jiffy later ([`Replayed::late`]). Calls that are missing from a record are distinguished from differences
//! ([`Moment::Gap`]), as far as the record shows it.
//!
//! The kernel's constants and module parameters are taken to be the defaults of [`fullpipe_cc::controllers::bbr1::Params`] and
//! [`fullpipe_cc::controllers::cubic::Params`].
//!
//! No record makes a replay panic: numbers that no kernel has are a [`Difference`] too.
//!
//! The crate needs no `std`, reads no file and knows no file format: `fullpipe-record` stores the calls.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod bbr;
mod call;
mod coverage;
mod cubic;
mod difference;
mod flow;
mod layout;
mod machine;
mod plausible;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
mod tiers;
mod unwrapped;
mod whole;

pub use call::{Call, Hook, KernelSample, Outcome, Socket};
pub use coverage::{Branch, Coverage};
pub use difference::{Difference, Moment};
pub use flow::{Replay, Replayed, Row, Tier, replay_flow};
pub use layout::{Ops, Private, PrivateField};
pub use tiers::{filter_step, sampler_step};
pub use whole::replay_all;
