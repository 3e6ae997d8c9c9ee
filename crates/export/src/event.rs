//! What there is to tell of a flow's packets.

use fullpipe_units::Time;

use crate::codepoint::Codepoint;
use crate::quic;

/// Takes what happens, in the order of times.
pub trait Log {
    /// Something happened to flow number `flow`.
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>);
}

/// What the reader of a log must know of the run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// What ran: the scenario's name, or the alternative's.
    pub title: String,
    /// The name of its world.
    pub world: String,
    /// Its seed.
    pub seed: u64,
    /// Which clock the times are of, as qlog's `clock_type`: they count from the beginning of the run.
    pub clock: &'static str,
    /// What the flows speak.
    pub protocol: Protocol,
    /// The flows, in the order of their numbers.
    pub flows: Vec<Flow>,
}

/// A transport protocol. The flows of a run all speak one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// QUIC.
    Quic,
}

impl Protocol {
    /// Its name in qlog.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Tcp => "TCP",
            Protocol::Quic => "QUIC",
        }
    }
}

/// What is constant for a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Its name in records.
    pub label: String,
    /// Its controller, as the scenario says it.
    pub controller: String,
    /// Payload bytes of a full-sized segment; with QUIC, of a full datagram.
    pub mss: u32,
    /// The receiver's window scale (RFC 7323).
    pub window_scale: u8,
}

impl Flow {
    /// The window scale of a receiver whose buffer grows up to so many bytes (Linux: `tcp_select_initial_window`).
    pub fn window_scale_of(buffer: u64) -> u8 {
        buffer.max(1).ilog2().saturating_sub(15).min(14) as u8
    }
}

/// Something that happened to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// A segment left the sender.
    Sent(&'a Sent),
    /// The path dropped a packet when it was offered.
    Dropped(&'a Drop<'a>),
    /// A segment arrived at the receiver.
    Arrived(&'a Arrival),
    /// An acknowledgement arrived at the sender.
    Acknowledged(&'a Acknowledgement),
    /// The sender took a segment for lost.
    Lost(&'a Loss),
    /// What sender and controller believe has changed.
    State(&'a State),
    /// Something happened to a packet of QUIC.
    Quic(&'a quic::Event<'a>),
}

/// A segment that leaves the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Segments with data that the flow sent before it, those sent again counted too; of a SYN, the SYNs before it.
    pub number: u64,
    /// It is a SYN.
    pub syn: bool,
    /// Its first byte, counted from the start of the stream.
    pub start: u64,
    /// Payload bytes.
    pub payload: u32,
    /// Length of the IP packet.
    pub length: u32,
    /// Why it is sent again, if it was sent before.
    pub again: Option<Why>,
    /// The codepoint of its packet.
    pub codepoint: Codepoint,
    /// It carries ECE: a SYN that offers ECN carries CWR, too.
    pub ece: bool,
    /// It tells the receiver that the window was reduced.
    pub cwr: bool,
    /// TSval (RFC 7323), milliseconds.
    pub stamp: u32,
    /// TSecr.
    pub echo: u32,
    /// Bytes of the receiver's own stream, its requests, that it acknowledges.
    pub requests: u64,
}

/// Why a segment is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was taken for lost before a timeout.
    Lost,
    /// After a retransmission timeout.
    TimedOut,
    /// As a tail loss probe; nothing is known to be lost.
    Probe,
    /// Packets alone do not say.
    Unknown,
}

/// A packet that the path dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drop<'a> {
    /// [`Sent::number`] of a segment, or how many acknowledgements the receiver sent before it.
    pub number: u64,
    /// It was an acknowledgement.
    pub acknowledgement: bool,
    /// It was a SYN, or the answer to one.
    pub syn: bool,
    /// The queue that dropped it, if one did.
    pub queue: Option<&'a str>,
    /// Why: `queue_full`, `lost`, `policed`, `oversize` or `early`.
    pub cause: &'static str,
}

/// A segment that arrives at the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// [`Sent::number`].
    pub number: u64,
    /// It is a SYN.
    pub syn: bool,
    /// Its codepoint, which queues may have changed.
    pub codepoint: Codepoint,
}

/// Blocks that an acknowledgement can carry: four of eight bytes in 40 bytes of options (RFC 2018).
pub(crate) const SACK_BLOCKS: usize = 4;

/// An acknowledgement that arrives at the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Acknowledgement {
    /// How many arrived before it; of the answer to a SYN, how many such answers.
    pub number: u64,
    /// It answers a SYN.
    pub syn: bool,
    /// The next byte of the stream that the receiver expects.
    pub ack: u64,
    /// The first byte past the receive window.
    pub edge: u64,
    /// Half-open ranges of bytes that it reports (SACK); the first [`Acknowledgement::blocks`] count.
    pub sack: [(u64, u64); SACK_BLOCKS],
    /// How many ranges there are.
    pub blocks: u8,
    /// The first range reports a duplicate (RFC 2883).
    pub duplicate: bool,
    /// It echoes congestion marks.
    pub ece: bool,
    /// The codepoint of its packet.
    pub codepoint: Codepoint,
    /// The first byte of the receiver's own stream in it.
    pub start: u64,
    /// Payload bytes: a request.
    pub payload: u32,
    /// Length of the IP packet.
    pub length: u32,
    /// TSval (RFC 7323), milliseconds.
    pub stamp: u32,
    /// TSecr.
    pub echo: u32,
}

impl Acknowledgement {
    /// The ranges of bytes that it reports as received beyond `ack`.
    pub fn received(&self) -> &[(u64, u64)] {
        let first = self.duplicate as usize;
        &self.sack[first..(self.blocks as usize).max(first)]
    }
}

/// A segment that the sender takes for lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loss {
    /// [`Sent::number`] of the transmission that is lost.
    pub number: u64,
    /// Its first byte.
    pub start: u64,
    /// Payload bytes.
    pub payload: u32,
    /// How it was found out, if that is known.
    pub trigger: Option<Trigger>,
}

/// How a loss was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// Later segments arrived, and the time that reordering may take is over (RFC 8985).
    Reordering,
    /// A retransmission timeout (RFC 6298).
    Timeout,
}

/// What sender and controller believe; `None` is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// The congestion window, bytes.
    pub cwnd: Option<u64>,
    /// The slow start threshold, bytes; `None` also while it is infinite.
    pub ssthresh: Option<u64>,
    /// The rate at which a paced flow sends, bit/s.
    pub pacing_bps: Option<u64>,
    /// Payload bytes that are neither acknowledged nor taken for lost.
    pub in_flight: Option<u64>,
    /// The same in segments.
    pub segments_in_flight: Option<u64>,
    /// The smoothed round-trip time.
    pub srtt_ns: Option<u64>,
    /// The lowest round-trip time, as the connection believes.
    pub min_rtt_ns: Option<u64>,
    /// The controller's phase.
    pub phase: Option<&'static str>,
    /// The connection's recovery state.
    pub recovery: Option<&'static str>,
}
