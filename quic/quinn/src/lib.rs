//! The congestion controllers of fullpipe-cc for quinn.
//!
//! A [`Factory`] goes into `quinn_proto::TransportConfig` (quinn re-exports it), and every connection runs the controller that it
//! names:
//!
//! ```
//! use fullpipe_cc::Params;
//! use std::sync::Arc;
//!
//! let cubic = fullpipe_quinn::Factory::new(Params::by_name("cubic9438").unwrap());
//! let mut transport = quinn_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(cubic));
//! ```
//!
//! # What quinn cannot support
//!
//! The adapter is for quinn-proto 0.11.19. **Its pacer takes no rate** (`connection/pacing.rs`): it paces by 1.25 windows a
//! smoothed RTT, whatever the controller says. A BBR keeps a window of about two bandwidth-delay products, so quinn sends up to 2.5
//! times as fast as BBR asks for until the window is full, and BBR's phases that slow down or speed up by the rate alone have no
//! effect. Window-based controllers (`newreno`, `cubic9438`, ...) lose nothing but their own factor. [`unsupported`] lists this
//! and the rest. For BBR, use noq and its adapter `fullpipe-noq`.
//!
//! # How the adapter works
//!
//! - **Packets have no numbers in quinn's callbacks.** What one transmit sends is one burst with one time. An acknowledged packet is
//!   found by that time. Losses are reported as one sum: they are the oldest bytes in flight, because quinn declares everything
//!   lost that is older than a lost packet. Only during a handshake, with its several packet number spaces, can that be wrong.
//! - **Transmits may hold packets that elicit no ACK**, which quinn does not count as in flight. At the end of each ACK the adapter
//!   compares its flight with quinn's, and discards the oldest bytes that are too much.
//! - **quinn sends a packet only if the flight stays below the window**, where RFC 9002 section 7 allows the flight to reach it. The
//!   adapter adds a byte to the window.
//! - Losses and marks come after the end of an ACK, and the RTT handed to `on_ack` is from before it; both are handled as in
//!   `fullpipe_quic_driver`.

#![forbid(unsafe_code)]

mod bursts;

pub use fullpipe_cc::{Decimal, Limits, ParamError, Params, Snapshot};
pub use fullpipe_quic_driver::shared::{View, Watch};

use bursts::Bursts;
use fullpipe_quic_driver::shared::{Clock, Making, Viewed, lock};
use fullpipe_quic_driver::{Events, InBytes, pacing};
use fullpipe_units::{Rate, Time};
use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What quinn-proto 0.11.19 does not support of any controller that has a rate.
pub const PACER_TAKES_NO_RATE: &str =
    "quinn's pacer takes no rate: it paces by 1.25 windows a smoothed RTT, in bursts of 10 to 256 packets.";

/// What a controller of fullpipe-cc does not get from quinn-proto 0.11.19, one sentence each.
pub const fn unsupported() -> &'static [&'static str] {
    &[
        PACER_TAKES_NO_RATE,
        "quinn's pacer lets no controller size its bursts.",
        "quinn does not say which packets were lost: the oldest bytes in flight count as lost.",
        "quinn does not say that the window held a packet back: a flight that leaves no room for a packet counts as limited by it.",
        "quinn does not say how many packets were marked (ECN-CE): all that an ACK with new marks acknowledges counts as marked.",
        "quinn does not report spurious losses: no reduction is undone.",
        "quinn does not tell the delay that the peer reports before its ACKs: it is part of every RTT.",
    ]
}

/// Builds a controller for each connection.
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

    /// A look at the controller that this factory built last, from any thread. It does not follow a connection that migrates to
    /// another path.
    pub fn watch(&self) -> Watch {
        self.making.watch().clone()
    }

    /// A controller for a connection that starts now, at `now`, with packets of `mtu` bytes.
    fn adapter(&self, now: Instant, mtu: u16) -> Adapter {
        let mut events = self.making.events(mtu);
        let initial_window = events.limits().cwnd as u64;
        let sender =
            Sender { events, bursts: Bursts::default(), largest_window: initial_window, probed: None };
        let sender = Arc::new(Mutex::new(sender));
        self.making.watch().follow(&sender);
        Adapter { sender, clock: Clock::new(now), initial_window }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.adapter(now, current_mtu))
    }
}

/// A connection as its controller sees it.
#[derive(Clone, Debug)]
struct Sender {
    events: Events<InBytes>,
    bursts: Bursts,
    /// The largest window so far.
    largest_window: u64,
    /// The size of a probe of the path's MTU that this ACK acknowledges: its acknowledgement comes next.
    probed: Option<u64>,
}

impl Sender {
    /// Bytes in flight beyond the window that quinn may have sent, as probes and before the window shrank.
    const SLACK: u64 = 128 * 1_024;

    fn sent(&mut self, now: Time, bytes: u32) {
        if bytes == 0 {
            return;
        }
        let note = self.events.sent(now, bytes, None);
        self.bursts.push(note, bytes);
        let window = self.events.cwnd_limited_if_full().cwnd as u64;
        self.largest_window = self.largest_window.max(window);
        // What is more is no flight: packets without an ACK, of an endpoint that only receives.
        self.reconcile(now, 2 * self.largest_window + Sender::SLACK);
    }

    fn acked(&mut self, now: Time, sent: Time, bytes: u64, app_limited: bool) {
        // Probes of the MTU are not reported as sent.
        if self.probed.take() == Some(bytes) {
            return;
        }
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        if let Some((note, taken)) = self.bursts.take(sent, bytes) {
            self.events.acked(now, &note, taken, app_limited);
        }
    }

    fn lost(&mut self, now: Time, sent: Time, mut bytes: u64) {
        while let Some((note, taken)) = self.bursts.take_oldest(bytes, sent) {
            self.events.lost(now, &note, taken);
            bytes -= taken as u64;
        }
    }

    fn reconcile(&mut self, now: Time, in_flight: u64) {
        let mut surplus = (self.events.in_flight() as u64).saturating_sub(in_flight);
        while let Some((_, taken)) = self.bursts.take_oldest(surplus, Time::NEVER) {
            self.events.discarded(now, taken);
            surplus -= taken as u64;
        }
    }
}

impl Viewed for Sender {
    fn view(&self) -> View {
        self.events.view()
    }
}

/// A controller of fullpipe-cc in a connection of quinn.
#[derive(Debug)]
pub struct Adapter {
    /// quinn asks for the window through a shared reference, and the answer may settle an ACK.
    sender: Arc<Mutex<Sender>>,
    clock: Clock,
    initial_window: u64,
}

impl Adapter {
    /// What the controller allows now.
    pub fn limits(&self) -> Limits {
        lock(&self.sender).events.limits()
    }

    /// What the controller believes now.
    pub fn snapshot(&self) -> Snapshot {
        self.view().snapshot
    }

    /// Both, and what became of the packets.
    pub fn view(&self) -> View {
        let mut sender = lock(&self.sender);
        sender.events.settle();
        sender.view()
    }
}

impl Controller for Adapter {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        lock(&self.sender).sent(self.clock.at(now), u32::try_from(bytes).unwrap_or(u32::MAX));
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, _: &RttEstimator) {
        lock(&self.sender).acked(self.clock.at(now), self.clock.at(sent), bytes, app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        let mut sender = lock(&self.sender);
        sender.probed = None;
        sender.events.end_acked();
        sender.reconcile(self.clock.at(now), in_flight);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut sender = lock(&self.sender);
        let now = self.clock.at(now);
        if lost_bytes == 0 {
            return sender.events.marked(now, None);
        }
        sender.lost(now, self.clock.at(sent), lost_bytes);
        if is_persistent_congestion {
            sender.events.persistent_congestion(now);
        }
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        let mut sender = lock(&self.sender);
        // A larger one is due to a probe that was acknowledged; a smaller one is due to losses.
        sender.probed = (new_mtu as u32 > sender.events.mtu()).then_some(new_mtu as u64);
        sender.events.mtu_changed(new_mtu);
    }

    fn window(&self) -> u64 {
        self.limits().cwnd as u64 + 1
    }

    fn metrics(&self) -> ControllerMetrics {
        let limits = self.limits();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = limits.cwnd as u64;
        metrics.ssthresh = pacing::ssthresh(&limits);
        metrics.pacing_rate = pacing::pacing_rate(&limits).map(Rate::as_bits_per_sec);
        metrics
    }

    /// For a connection that migrates. The copy does not share the state.
    fn clone_box(&self) -> Box<dyn Controller> {
        let sender = Arc::new(Mutex::new(lock(&self.sender).clone()));
        Box::new(Adapter { sender, clock: self.clock, initial_window: self.initial_window })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
