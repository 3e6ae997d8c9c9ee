//! The congestion controllers of fullpipe-cc for s2n-quic.
//!
//! A [`Factory`] is an [`Endpoint`] of controllers, which s2n-quic takes as a provider:
//!
//! ```ignore
//! let bbr3 = fullpipe_s2n_quic::Factory::new(Params::by_name("bbr3").unwrap());
//! let server = s2n_quic::Server::builder().with_congestion_controller(bbr3)?;
//! ```
//!
//! # One version
//!
//! The trait [`CongestionController`] is unstable: it needs the feature `unstable-congestion-controller`, and may change with every
//! release. This adapter fits s2n-quic-core 0.91.0 (s2n-quic 1.91.0) and no other version. It needs Rust 1.95, as they do.
//!
//! # How the adapter works
//!
//! - **s2n-quic keeps a value for each packet**, the driver's [`Note`]: nothing is searched for.
//! - **An ACK names its newest packet only**, and the sum of the bytes that it acknowledges. That is enough for the delivery rate,
//!   and for recovery, which ends with a packet sent in it.
//! - **The losses of an ACK come before it**, at the same time (`process_new_acked_packets` in `recovery/manager.rs` of
//!   s2n-quic-transport). They wait for it; when time passes or s2n-quic asks for the window, they were a timer's.
//! - **The controller paces** by [`CongestionController::earliest_departure_time`], in bursts of about a millisecond.
//!
//! [`unsupported`] lists what a controller does not get from s2n-quic.

#![forbid(unsafe_code)]

mod pacer;

pub use fullpipe_cc::{Decimal, Limits, ParamError, Params, Snapshot};
pub use fullpipe_quic_driver::shared::{View, Watch};

use fullpipe_quic_driver::pacing::quantum;
use fullpipe_quic_driver::shared::{Clock, Making, Viewed, lock};
use fullpipe_quic_driver::{Events, InBytes, Note};
use fullpipe_units::Time;
use pacer::Pacer;
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo, Publisher};
use s2n_quic_core::recovery::{CongestionController, RttEstimator};
use s2n_quic_core::time::Timestamp;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What a controller of fullpipe-cc does not get from s2n-quic 1.91.0, one sentence each.
pub const fn unsupported() -> &'static [&'static str] {
    &[
        "s2n-quic names only the newest packet that an ACK acknowledges: a rate sample is from that one.",
        "s2n-quic does not say that the window held a packet back: a flight that leaves no room for a packet counts as limited by it.",
        "s2n-quic counts marked packets (ECN-CE), not their bytes: each counts as a full one.",
        "s2n-quic does not report spurious losses: no reduction is undone.",
        "s2n-quic's timers are as fine as a millisecond: shorter pauses of the pacer become bursts.",
    ]
}

/// Builds a controller for each path of each connection.
#[derive(Debug)]
pub struct Factory {
    making: Making,
}

impl Factory {
    /// Connections run the controller that `params` names, with random numbers that nobody can predict.
    pub fn new(params: Params) -> Factory {
        Factory { making: Making::new(params) }
    }

    /// The random numbers of the controllers follow from `seed` and from the order in which they are built, so that a run can be
    /// repeated.
    pub fn seed(self, seed: u64) -> Factory {
        Factory { making: self.making.seed(seed) }
    }

    /// A look at the newest controller of this factory that has sent a packet, from any thread.
    pub fn watch(&self) -> Watch {
        self.making.watch().clone()
    }

    /// A controller for a path whose packets have `mtu` bytes.
    fn adapter(&self, mtu: u16) -> Adapter {
        let sender = Sender {
            events: self.making.events(mtu),
            start: None,
            pacer: Pacer::default(),
            waiting: Vec::new(),
            waiting_since: Time::ZERO,
            is_persistent: false,
            marked: None,
            is_dry: false,
        };
        Adapter { sender: Arc::new(Mutex::new(sender)), watch: self.watch() }
    }
}

impl Endpoint for Factory {
    type CongestionController = Adapter;

    fn new_congestion_controller(&mut self, path_info: PathInfo<'_>) -> Adapter {
        self.adapter(path_info.max_datagram_size)
    }
}

/// A path as its controller sees it.
#[derive(Clone, Debug)]
struct Sender {
    events: Events<InBytes>,
    /// The first time that s2n-quic gave.
    start: Option<Timestamp>,
    pacer: Pacer,
    /// Losses that may belong to an ACK.
    waiting: Vec<(Note, u32)>,
    waiting_since: Time,
    is_persistent: bool,
    /// Packets that the coming ACK shows marked.
    marked: Option<u64>,
    /// The application had nothing more to send when the last packet left.
    is_dry: bool,
}

impl Sender {
    fn at(&mut self, timestamp: Timestamp) -> Time {
        let start = *self.start.get_or_insert(timestamp);
        Clock::after(timestamp.saturating_duration_since(start))
    }

    fn sent(&mut self, now: Time, bytes: usize, app_limited: Option<bool>) -> Note {
        self.settle();
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if bytes == 0 {
            return self.events.sent_uncounted(now);
        }
        let note = self.events.sent(now, bytes, None);
        self.is_dry = app_limited == Some(true);
        if self.is_dry {
            self.events.app_limited();
        }
        let limits = self.events.cwnd_limited_if_full();
        self.pacer.on_sent(now, bytes, &limits);
        note
    }

    fn acked(&mut self, now: Time, note: &Note, bytes: usize) {
        if self.waiting_since != now {
            self.settle();
        }
        self.events.acked(now, note, u32::try_from(bytes).unwrap_or(u32::MAX), self.is_dry);
        self.events.end_acked();
        if let Some(packets) = self.marked.take() {
            let bytes = packets.saturating_mul(self.events.mtu() as u64);
            self.events.marked(now, Some(u32::try_from(bytes).unwrap_or(u32::MAX)));
        }
        self.report_waiting(now);
        self.events.settle();
    }

    fn lost(&mut self, now: Time, note: &Note, bytes: u32, is_persistent: bool) {
        if self.waiting_since != now {
            self.settle();
        }
        self.waiting_since = now;
        self.is_persistent |= is_persistent;
        self.waiting.push((*note, bytes));
    }

    fn report_waiting(&mut self, now: Time) {
        for (note, bytes) in self.waiting.drain(..) {
            self.events.lost(now, &note, bytes);
        }
        if std::mem::take(&mut self.is_persistent) {
            self.events.persistent_congestion(now);
        }
    }

    /// Losses whose ACK did not come are those of a timer.
    fn settle(&mut self) {
        self.report_waiting(self.waiting_since);
        self.events.settle();
        self.marked = None;
    }

    fn limits(&mut self) -> Limits {
        self.settle();
        self.events.limits()
    }
}

impl Viewed for Sender {
    fn view(&self) -> View {
        self.events.view()
    }
}

/// A controller of fullpipe-cc on a path of s2n-quic.
#[derive(Debug)]
pub struct Adapter {
    /// s2n-quic asks for the window through a shared reference, and the answer may settle losses.
    sender: Arc<Mutex<Sender>>,
    watch: Watch,
}

/// The copy does not share the state.
impl Clone for Adapter {
    fn clone(&self) -> Adapter {
        Adapter { sender: Arc::new(Mutex::new(lock(&self.sender).clone())), watch: self.watch.clone() }
    }
}

impl Adapter {
    /// What the controller allows now.
    pub fn limits(&self) -> Limits {
        lock(&self.sender).limits()
    }

    /// What the controller believes now.
    pub fn snapshot(&self) -> Snapshot {
        self.view().snapshot
    }

    /// Both, and what became of the packets.
    pub fn view(&self) -> View {
        let mut sender = lock(&self.sender);
        sender.settle();
        sender.view()
    }
}

impl CongestionController for Adapter {
    type PacketInfo = Note;

    fn congestion_window(&self) -> u32 {
        self.limits().cwnd
    }

    fn bytes_in_flight(&self) -> u32 {
        self.view().in_flight
    }

    fn is_congestion_limited(&self) -> bool {
        let mut sender = lock(&self.sender);
        let cwnd = sender.limits().cwnd;
        cwnd.saturating_sub(sender.events.in_flight()) < sender.events.mtu()
    }

    /// The window of a controller that allows a packet more at the beginning of a recovery (RFC 9002 section 7.3.2) has room for it.
    fn requires_fast_retransmission(&self) -> bool {
        false
    }

    fn on_packet_sent<Pub: Publisher>(
        &mut self,
        time_sent: Timestamp,
        sent_bytes: usize,
        app_limited: Option<bool>,
        _: &RttEstimator,
        _: &mut Pub,
    ) -> Note {
        let mut sender = lock(&self.sender);
        // s2n-quic copies a controller before it uses it, so that only now it is known which copy runs.
        if sender.start.is_none() {
            self.watch.follow(&self.sender);
        }
        let now = sender.at(time_sent);
        sender.sent(now, sent_bytes, app_limited)
    }

    /// The driver takes RTTs with their ACKs.
    fn on_rtt_update<Pub: Publisher>(&mut self, _: Timestamp, _: Timestamp, _: &RttEstimator, _: &mut Pub) {}

    fn on_ack<Pub: Publisher>(
        &mut self,
        _: Timestamp,
        bytes_acknowledged: usize,
        newest_acked_packet_info: Note,
        _: &RttEstimator,
        _: &mut dyn Generator,
        ack_receive_time: Timestamp,
        _: &mut Pub,
    ) {
        let mut sender = lock(&self.sender);
        let now = sender.at(ack_receive_time);
        sender.acked(now, &newest_acked_packet_info, bytes_acknowledged);
    }

    fn on_packet_lost<Pub: Publisher>(
        &mut self,
        lost_bytes: u32,
        packet_info: Note,
        persistent_congestion: bool,
        _new_loss_burst: bool,
        _: &mut dyn Generator,
        timestamp: Timestamp,
        _: &mut Pub,
    ) {
        let mut sender = lock(&self.sender);
        let now = sender.at(timestamp);
        sender.lost(now, &packet_info, lost_bytes, persistent_congestion);
    }

    fn on_explicit_congestion<Pub: Publisher>(&mut self, ce_count: u64, event_time: Timestamp, _: &mut Pub) {
        let mut sender = lock(&self.sender);
        let now = sender.at(event_time);
        if sender.waiting_since != now {
            sender.settle();
            sender.waiting_since = now;
        }
        sender.marked = Some(ce_count);
    }

    fn on_mtu_update<Pub: Publisher>(&mut self, max_data_size: u16, _: &mut Pub) {
        lock(&self.sender).events.mtu_changed(max_data_size);
    }

    fn on_packet_discarded<Pub: Publisher>(&mut self, bytes_sent: usize, _: &mut Pub) {
        let mut sender = lock(&self.sender);
        let now = sender.waiting_since;
        sender.events.discarded(now, u32::try_from(bytes_sent).unwrap_or(u32::MAX));
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        let sender = lock(&self.sender);
        let since = sender.pacer.departure().saturating_since(Clock::START).as_nanos();
        sender.start?.checked_add(Duration::from_nanos(since))
    }

    fn send_quantum(&self) -> Option<usize> {
        usize::try_from(quantum(&self.limits())).ok()
    }
}

#[cfg(test)]
mod tests;
