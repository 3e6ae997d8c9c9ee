//! The datagrams of an active path measurement: paced sending, kernel receive stamps, echoes, and bounded records.
//!
//! It decides nothing about the path. Who may speak, and what is estimated, is Python's (`python/fullpipe/probe`).
//!
//! * [`wire`]: a datagram's head.
//! * [`schedule`]: when each packet of a stage is due.
//! * [`rule`]: when a sender stops early.
//! * [`budget`]: how much may leave, and how fast.
//! * `plane`: all of these on real sockets, with the limits that nothing exceeds (Linux only).

pub mod budget;
pub mod rule;
pub mod schedule;
pub mod wire;

#[cfg(target_os = "linux")]
pub mod plane;
#[cfg(target_os = "linux")]
mod sys;
