//! What a run needs of a QUIC stack: one connection at one end of the path.
//!
//! Each flow has two of these, and each is an endpoint of the stack with a single connection. The sender of the data is the
//! QUIC client. Times are those of the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use bytes::BytesMut;
use fullpipe_cc::{CaState, Phase};
use fullpipe_path::Ecn;
use fullpipe_units::{Duration, Time};

use crate::options::Crypto;
use crate::tap::Tap;

/// A stream, by its number on the wire (RFC 9000, section 2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stream(pub(crate) u64);

impl Stream {
    /// Whether the server of the connection opened it, which receives the data.
    pub(crate) fn is_of_server(self) -> bool {
        self.0 & 1 != 0
    }

    /// Whether data flows in one direction only.
    pub(crate) fn is_uni(self) -> bool {
        self.0 & 2 != 0
    }

    /// Its number among those of its kind.
    pub(crate) fn index(self) -> u64 {
        self.0 >> 2
    }
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The handshake is complete; data may be sent.
    Connected,
    /// The peer has opened streams.
    Opened { uni: bool },
    /// There is something to read.
    Readable(Stream),
    /// A write that did not fit may be tried again.
    Writable,
    /// More streams may be opened.
    MoreStreams,
    /// It has ended, for this reason.
    Lost(String),
}

/// Datagrams that were written into a buffer one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Transmit {
    /// Bytes of all.
    pub(crate) bytes: usize,
    /// Bytes of each but the last, which may be shorter.
    pub(crate) each: usize,
    pub(crate) ecn: Ecn,
}

/// Some bytes of a stream: where they begin, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
}

/// How a read of a stream ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadEnd {
    /// More will come.
    Open,
    /// The whole stream has been read.
    Finished,
    /// The sender has abandoned it.
    Reset,
}

/// What a connection says of itself, in its own units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State {
    /// Congestion window, bytes of UDP payload.
    pub(crate) window: u64,
    /// Slow-start threshold, the same.
    pub(crate) ssthresh: Option<u64>,
    /// Pacing rate, bytes of UDP payload a second.
    pub(crate) pacing: Option<u64>,
    /// The controller's estimate of the bandwidth, bits a second.
    pub(crate) bandwidth_bps: Option<u64>,
    /// Smoothed round-trip time.
    pub(crate) srtt: Duration,
}

/// A threshold, which the stacks give as the greatest number as long as there is none.
pub(crate) fn finite(ssthresh: Option<u64>) -> Option<u64> {
    ssthresh.filter(|most| *most < u64::MAX)
}

/// What a connection has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Packets declared lost.
    pub(crate) lost_packets: u64,
    /// Datagrams that the stack counts as sent.
    pub(crate) datagrams: u64,
}

/// One end of a connection.
pub(crate) trait Endpoint {
    /// Begins to connect; of a client only.
    fn connect(&mut self, now: Time) -> Result<(), String>;

    /// A datagram has arrived. Returns how many bytes of an answer it has put into `answer`, which the endpoint gives without
    /// its connection.
    fn receive(&mut self, now: Time, ecn: Ecn, datagram: BytesMut, answer: &mut Vec<u8>) -> Option<usize>;

    /// The next event.
    fn poll(&mut self) -> Option<Event>;

    /// Writes what is to be sent now into `out`, which is empty: at most `most` datagrams.
    fn transmit(&mut self, now: Time, most: usize, out: &mut Vec<u8>) -> Option<Transmit>;

    /// Lets connection and endpoint tell each other what they have to. Returns whether they had to.
    fn exchange(&mut self) -> bool;

    /// When [`Endpoint::on_timeout`] is to be called.
    fn timeout(&mut self) -> Time;

    /// That time has come.
    fn on_timeout(&mut self, now: Time);

    /// Opens a stream, if the peer allows one more.
    fn open(&mut self, uni: bool) -> Option<Stream>;

    /// The next stream that the peer has opened.
    fn accept(&mut self, uni: bool) -> Option<Stream>;

    /// Writes up to `bytes` of nothing in particular; returns how many were taken. An [`Event::Writable`] follows a write that
    /// was not taken whole.
    fn write(&mut self, stream: Stream, bytes: u64) -> Result<u64, String>;

    /// Nothing more will be written.
    fn finish(&mut self, stream: Stream);

    /// Abandons what has not been delivered.
    fn reset(&mut self, stream: Stream);

    /// Reads what has arrived, in the order in which it came.
    ///
    /// Reads in order would end the connection with "too many gaps in stream buffer" after many losses.
    fn read(&mut self, stream: Stream, each: &mut dyn FnMut(Piece)) -> ReadEnd;

    /// What it says of itself. That costs the same whatever is in flight.
    fn state(&mut self) -> State;

    /// What it has counted.
    fn counted(&mut self) -> Counted;

    /// What its controller is doing, if that is a BBR of the stack's.
    fn phase_of_bbr(&mut self) -> Option<Phase>;
}

/// What is seen of a controller while its connection calls it. The stacks do not tell it otherwise.
#[derive(Debug)]
pub(crate) struct Tally {
    /// Bytes in flight, of packets that elicit acknowledgements.
    in_flight: AtomicU64,
    /// Packets that were acknowledged.
    acked: AtomicU64,
    /// The smallest round-trip time, nanoseconds; `u64::MAX` while unknown.
    min_rtt: AtomicU64,
    /// How often the path was found in persistent congestion (RFC 9002, section 7.6), QUIC's retransmission timeout.
    collapses: AtomicU64,
    /// Reductions that the controller has undone.
    undone: AtomicU64,
    /// Whether the controller is a BBR of the stack's, which tells its phase by other means than a threshold.
    is_bbr: AtomicBool,
    /// The code of [`Tally::state`].
    state: AtomicU32,
}

impl Tally {
    pub(crate) fn new() -> Arc<Tally> {
        Arc::new(Tally {
            in_flight: AtomicU64::new(0),
            acked: AtomicU64::new(0),
            min_rtt: AtomicU64::new(u64::MAX),
            collapses: AtomicU64::new(0),
            undone: AtomicU64::new(0),
            is_bbr: AtomicBool::new(false),
            state: AtomicU32::new(CaState::Open as u32),
        })
    }

    pub(crate) fn on_sent(&self, bytes: u64) {
        self.in_flight.store(self.in_flight() + bytes, Relaxed);
    }

    pub(crate) fn on_lost(&self, bytes: u64) {
        self.in_flight.store(self.in_flight().saturating_sub(bytes), Relaxed);
    }

    pub(crate) fn on_in_flight(&self, bytes: u64) {
        self.in_flight.store(bytes, Relaxed);
    }

    /// A packet was acknowledged, so long after it left. The stack's own minimum is from before the ACK, and 333 ms at first.
    pub(crate) fn on_acked(&self, after: std::time::Duration) {
        self.acked.store(self.acked() + 1, Relaxed);
        let nanos = u64::try_from(after.as_nanos()).unwrap_or(u64::MAX);
        self.min_rtt.store(nanos.min(self.min_rtt.load(Relaxed)), Relaxed);
    }

    /// The recovery state of the connection.
    fn enter(&self, state: CaState) {
        self.state.store(state as u32, Relaxed);
    }

    pub(crate) fn on_collapse(&self) {
        self.collapses.store(self.collapses() + 1, Relaxed);
    }

    /// The controller has undone a reduction.
    pub(crate) fn on_undone(&self) {
        self.undone.store(self.undone() + 1, Relaxed);
    }

    /// A controller is made.
    pub(crate) fn on_made(&self, is_bbr: bool) {
        self.is_bbr.store(is_bbr, Relaxed);
    }

    pub(crate) fn in_flight(&self) -> u64 {
        self.in_flight.load(Relaxed)
    }

    pub(crate) fn acked(&self) -> u64 {
        self.acked.load(Relaxed)
    }

    pub(crate) fn min_rtt(&self) -> Option<Duration> {
        let nanos = self.min_rtt.load(Relaxed);
        (nanos != u64::MAX).then(|| Duration::from_nanos(nanos))
    }

    pub(crate) fn collapses(&self) -> u64 {
        self.collapses.load(Relaxed)
    }

    pub(crate) fn undone(&self) -> u64 {
        self.undone.load(Relaxed)
    }

    pub(crate) fn is_bbr(&self) -> bool {
        self.is_bbr.load(Relaxed)
    }

    /// The recovery state, as RFC 9002 has it: [`CaState::Cwr`] is a recovery for marks, [`CaState::Loss`] follows persistent congestion.
    pub(crate) fn state(&self) -> CaState {
        CaState::from_code(self.state.load(Relaxed).into()).unwrap_or(CaState::Open)
    }
}

/// The recovery period of a connection (RFC 9002 section 7.3.2), of which the stacks tell nothing. It follows from what they tell a
/// controller.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Recovery {
    /// When the last period began.
    began: Option<Instant>,
    /// It has not ended.
    is_active: bool,
}

impl Recovery {
    /// Losses or marks of packets the newest of which left at `sent`.
    pub(crate) fn on_congestion(&mut self, now: Instant, sent: Instant, to: CaState, tally: &Tally) {
        // RFC 9002 B.6: what left before the period began is a part of it. B.8: persistent congestion ends a period.
        if to == CaState::Loss || self.began.is_none_or(|began| sent > began) {
            *self = Recovery { began: Some(now), is_active: true };
            tally.enter(to);
        }
    }

    /// A packet was acknowledged that left at `sent`.
    pub(crate) fn on_acked(&mut self, sent: Instant, tally: &Tally) {
        if self.is_active && self.began.is_some_and(|began| sent > began) {
            self.end(tally);
        }
    }

    /// The controller has undone what the period was for.
    pub(crate) fn on_undone(&mut self, tally: &Tally) {
        if self.is_active {
            self.end(tally);
        }
        self.began = None;
    }

    fn end(&mut self, tally: &Tally) {
        self.is_active = false;
        tally.enter(CaState::Open);
    }
}

/// What both ends of a connection are made from.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    /// The seeds of client and server.
    pub(crate) seeds: [u64; 2],
    /// The most bytes in a datagram.
    pub(crate) payload: u16,
    /// The most bytes that wait for their acknowledgement.
    pub(crate) send_window: u64,
    /// The most bytes that the receiver allows to be under way.
    pub(crate) receive_window: u64,
    pub(crate) crypto: Crypto,
    /// The most bytes of the sender's window, where its controller does not know of the limit. It is then told that the
    /// application is what limits it.
    pub(crate) max_window: Option<u64>,
    pub(crate) tally: Arc<Tally>,
    /// Tells the log of a run that is logged.
    pub(crate) tap: Option<Tap>,
}

impl Setup {
    /// 32 bytes of that end's seed.
    pub(crate) fn seed_bytes(&self, end: usize) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (index, piece) in bytes.chunks_mut(8).enumerate() {
            piece.copy_from_slice(
                &fullpipe_path::mix(self.seeds[end].wrapping_add(index as u64)).to_le_bytes(),
            );
        }
        bytes
    }

    /// The connection id with this number of that end.
    pub(crate) fn cid(&self, end: usize, number: u64) -> [u8; 8] {
        fullpipe_path::mix(fullpipe_path::mix(self.seeds[end]).wrapping_add(number)).to_le_bytes()
    }
}

/// Finds the phase in the text that a stack's BBR writes of itself (`{:?}`): the first of the names that comes first.
pub(crate) fn phase_in(debug: &dyn std::fmt::Debug, field: &str, names: &[(&str, Phase)]) -> Phase {
    let begin = Begin::of(debug, field);
    let value = begin.value.map_or("", |at| begin.text[at..].trim_start());
    let found = names.iter().find(|(name, _)| value.starts_with(name));
    found.map_or(Phase::default(), |(_, phase)| *phase)
}

/// The values of fields in such a text, in which the last of the fields comes last.
pub(crate) fn values_in<const N: usize>(debug: &dyn std::fmt::Debug, fields: [&str; N]) -> [String; N] {
    let begin = Begin::of(debug, fields.last().unwrap_or(&""));
    fields.map(|field| {
        let value = begin.text.split_once(field).and_then(|(_, behind)| behind.split(", ").next());
        value.unwrap_or_default().trim_start().to_owned()
    })
}

/// Takes text until a field is complete.
struct Begin<'a> {
    text: String,
    field: &'a str,
    /// Where its value begins.
    value: Option<usize>,
}

impl Begin<'_> {
    /// The text of `debug` until `field` is complete.
    fn of<'a>(debug: &dyn std::fmt::Debug, field: &'a str) -> Begin<'a> {
        let mut begin = Begin { text: String::new(), field, value: None };
        // It stops with an error as soon as the field is complete: what is in flight is written behind it.
        let _ = std::fmt::write(&mut begin, format_args!("{debug:?}"));
        begin
    }
}

impl std::fmt::Write for Begin<'_> {
    fn write_str(&mut self, piece: &str) -> std::fmt::Result {
        // The field may begin in what was written before.
        let mut from = self.text.len().saturating_sub(self.field.len());
        while !self.text.is_char_boundary(from) {
            from -= 1;
        }
        self.text.push_str(piece);
        if self.value.is_none() {
            // A few bytes at a time: to prepare a search of text takes longer than this one.
            let field = self.field.as_bytes();
            let mut places = self.text.as_bytes()[from..].windows(field.len().max(1));
            self.value = places.position(|place| place == field).map(|at| from + at + field.len());
        }
        match self.value {
            // No name is as long as this.
            Some(at) if self.text.len() > at + 32 => Err(std::fmt::Error),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    #[expect(dead_code, reason = "only written")]
    struct Bbr {
        gain: u32,
        state: State,
        rest: Vec<u32>,
    }

    #[derive(Debug)]
    enum State {
        ProbeBw(Sub),
        ProbeRtt,
    }

    #[derive(Debug)]
    enum Sub {
        Up,
    }

    #[test]
    fn phase_is_parsed_from_debug_text() {
        let names = [("ProbeBw(Up)", Phase::ProbeBwUp), ("ProbeRtt", Phase::ProbeRtt)];
        let bbr = |state| Bbr { gain: 1, state, rest: vec![7; 10_000] };
        assert_eq!(phase_in(&bbr(State::ProbeBw(Sub::Up)), " state:", &names), Phase::ProbeBwUp);
        assert_eq!(phase_in(&bbr(State::ProbeRtt), " state:", &names), Phase::ProbeRtt);
        assert_eq!(phase_in(&"no state", " state:", &names), Phase::default());
        let values = values_in(&bbr(State::ProbeBw(Sub::Up)), [" gain:", " nothing:", " state:"]);
        assert_eq!(values, ["1", "", "ProbeBw(Up)"]);
    }

    #[test]
    fn in_flight_excludes_acked_and_lost() {
        let tally = Tally::new();
        tally.on_sent(3000);
        tally.on_lost(1000);
        assert_eq!(tally.in_flight(), 2000);
        tally.on_in_flight(500);
        tally.on_lost(501);
        assert_eq!(tally.in_flight(), 0);
        assert_eq!(tally.min_rtt(), None);
        for millis in [5, 3, 4] {
            tally.on_acked(std::time::Duration::from_millis(millis));
        }
        assert_eq!(tally.min_rtt(), Some(Duration::from_millis(3)));
    }

    /// RFC 9002 section 7.3.2.
    #[test]
    fn recovery_ends_with_packet_sent_within() {
        let (tally, mut recovery) = (Tally::new(), Recovery::default());
        let origin = crate::chunk::epoch();
        let at = |millis| origin + std::time::Duration::from_millis(millis);
        recovery.on_congestion(at(50), at(0), CaState::Recovery, &tally);
        assert_eq!(tally.state(), CaState::Recovery);
        // Both left before it began.
        recovery.on_congestion(at(60), at(40), CaState::Recovery, &tally);
        recovery.on_acked(at(49), &tally);
        assert_eq!(tally.state(), CaState::Recovery);
        recovery.on_acked(at(51), &tally);
        assert_eq!(tally.state(), CaState::Open);
        recovery.on_congestion(at(110), at(45), CaState::Recovery, &tally);
        assert_eq!(tally.state(), CaState::Open);
        recovery.on_congestion(at(120), at(70), CaState::Cwr, &tally);
        assert_eq!(tally.state(), CaState::Cwr);
        recovery.on_undone(&tally);
        recovery.on_congestion(at(130), at(70), CaState::Recovery, &tally);
        assert_eq!(tally.state(), CaState::Recovery);
        recovery.on_congestion(at(140), at(71), CaState::Loss, &tally);
        assert_eq!(tally.state(), CaState::Loss);
    }
}
