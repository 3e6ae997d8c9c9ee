//! The world quic: real QUIC endpoints in virtual time over the simulator's path.
//!
//! The endpoints are those of `noq-proto` and `quinn-proto`: handshake, packets, acknowledgements, loss detection and pacer are
//! the stacks' own. They take time as an argument, and this crate gives them that of the run. The path is the simulator's, with
//! the same random streams for equal seeds.
//!
//! What stands for what of TCP in a record:
//!
//! * delivered bytes are payload of streams that has arrived: of a bulk flow all of it, of any other what is in order;
//! * segments are datagrams: those sent include acknowledgements of the sender's and the handshake;
//! * retransmissions are packets that the sender declared lost (QUIC sends frames again, not packets);
//! * timeouts are times of persistent congestion (RFC 9002, section 7.6);
//! * windows are counted in full datagrams of UDP payload, the MTU less 28 bytes;
//! * the delivery rate is what the receiver got since the sample before;
//! * rates are those of the streams' bytes in full datagrams, while the stacks and their controllers know rates of datagrams;
//! * the recovery state is RFC 9002's, from what the stack tells its controller (section 7.3.2);
//! * the windows of flow control, of the connection and of each stream, are what Linux offers of `hosts.tcp_rmem` (its maximum):
//!   160 bytes of payload for 256 of memory. `hosts.tcp_wmem` (its maximum) is the send window;
//! * packets carry ECN codepoints only with `hosts.ecn` or the flow's own `ecn`; the stacks then mark every packet ECT(0) as they do by default;
//! * pacing is the stack's, whether or not `hosts.pacing` is set.
//!
//! What a run does not support is in its record, in sentences (`src/unsupported.rs`).
//!
//! Streams are read out of order, because an ordered read ends a connection with "too many gaps in stream buffer" after many
//! losses. A bulk flow has no end and nobody waits for a part of it, so that what lies behind a hole counts. Of any other flow
//! what is in order counts: one with a hole that its stack never fills stands still in the record.
//! noq-proto 1.4.0 leaves such holes after thousands of losses: 60 MB by `noq:cubic` over 1 Gbit/s, 50 ms and 1 BDP (seed 1) stop
//! at byte 41,373,642 for want of 7 bytes, with 11,970 packets lost; `quinn:cubic` completes them. Over 150 Mbit/s (1,810
//! lost), `noq:cubic` completes them, too. `tests/noq_stream_hole.rs` has the cause.
//!
//! Start at [`run`]; `src/world.rs` is the loop, `src/endpoint.rs` what a stack has to do.

mod app;
mod cc;
mod change;
mod chunk;
mod endpoint;
mod error;
mod failure;
mod flow;
mod frames;
mod linked;
#[cfg(test)]
mod lock;
mod looks;
mod noq;
mod null;
mod options;
mod outside;
pub mod program;
mod qlog;
mod quinn;
mod random;
mod refusal;
mod run;
mod simulation;
mod stack;
mod tap;
mod tls;
mod unfilled;
mod unsupported;
mod watch;
mod wire;
mod world;

pub use cc::{NoqFactory, Own, QuinnFactory};
pub use change::{Mistake, Place, TextChange};
pub use error::QuicError;
pub use looks::{LookRequest, Looks, Stretch};
pub use options::{Crypto, Options, Stack, stacks};
pub use refusal::{refuses, refuses_with};
pub use run::{run, run_logged, run_telling, run_with};
pub use simulation::{FlowNow, QueueNow, Simulation, Status};
pub use stack::{Layer, OutsideStack, StackAbout};
pub use tap::log_header;
