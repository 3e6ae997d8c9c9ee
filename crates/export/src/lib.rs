//! What happened to the packets of a run, in the formats of other tools: qlog and pcapng.
//!
//! A world tells a [`Log`] each [`Event`] of its flows, seen from the sender, in the order of their times. [`Files`] is the log
//! that writes them. Nothing here opens a file or decides anything: the writers take any [`std::io::Write`], and a run gives the
//! same record whether it is logged or not.
//!
//! Read in this order: `event` (what there is to tell), `quic` (what there is to tell of QUIC), `files` (the log that writes), `tcp`
//! (events as TCP segments), `pcapng` and `qlog` (the formats), `read` (real packets as events), `window` (which transmissions an acknowledgement is for).

mod codepoint;
mod event;
mod files;
pub mod pcapng;
pub mod qlog;
pub mod quic;
mod read;
pub mod tcp;
mod window;

pub use codepoint::Codepoint;
pub use event::{
    Acknowledgement, Arrival, Drop, Event, Flow, Header, Log, Loss, Protocol, Sent, State, Trigger, Why,
};
pub use files::{Files, Written, full_note};
pub use read::Reader;
