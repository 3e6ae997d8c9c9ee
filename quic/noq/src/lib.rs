//! The congestion controllers of fullpipe-cc for noq.
//!
//! A [`Factory`] goes into `noq_proto::TransportConfig` (noq re-exports it), and every connection runs the controller that it names:
//!
//! ```
//! use fullpipe_cc::Params;
//! use std::sync::Arc;
//!
//! let bbr3 = fullpipe_noq::Factory::new(Params::by_name("bbr3").unwrap());
//! let mut transport = noq_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(bbr3));
//! ```
//!
//! # How the adapter works
//!
//! It is for noq-proto 1.4, and hands everything to a [`Driver`]. What needs care:
//!
//! - **Losses and marks come after the end of an ACK** (`inner_on_ack_received` in `connection/mod.rs`). The ACK stays open until
//!   noq sends something, asks for the window, or time passes; see the documentation of `fullpipe_quic_driver`.
//! - **The RTT handed to `on_ack` is from before the ACK.** The adapter takes `now - sent` of the newest packet.
//! - **Callbacks name no packet number space**, so numbers repeat during the handshake. The adapter tells packets apart by their
//!   number, the time when they were sent, and their size ([`Flight`](fullpipe_quic_driver::Flight)). Losses come without that time:
//!   of two packets with one number and one size the older one counts as lost. Only packets of a handshake can be mixed up so.
//! - **noq forgets packets without a word**: those of a discarded space, lost probes of the path's MTU, and those of the path before
//!   a migration. At the end of each ACK the adapter compares its flight with noq's, and discards what is too much, without any
//!   reaction: packets above the MTU first, then the oldest.
//! - `metrics().pacing_rate` drives noq's pacer, and `metrics().send_quantum` bounds how many datagrams leave at once.
//!
//! [`unsupported`] lists what a controller does not get from noq.

#![forbid(unsafe_code)]

pub use fullpipe_cc::{Decimal, Limits, ParamError, Params, Snapshot};
pub use fullpipe_quic_driver::shared::{View, Watch};

use fullpipe_quic_driver::shared::{Clock, Making, Viewed, lock};
use fullpipe_quic_driver::{Driver, InBytes, pacing};
use fullpipe_units::{Duration, Rate, Time};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// What a controller of fullpipe-cc does not get from noq-proto 1.4, one sentence each.
pub const fn unsupported() -> &'static [&'static str] {
    &[
        "noq does not say how many packets were marked (ECN-CE): all that an ACK with new marks acknowledges counts as marked.",
        "noq's pacer lets bursts of 2 ms to 10 ms through, at least one packet and at most 256: a controller cannot make them smaller.",
        "noq does not report bytes that arrive after they were declared lost: they count as lost, also after an undo.",
        "noq forgets a lost packet two probe timeouts after it left: a reduction for an older loss is never undone.",
        "noq does not tell the delay that the peer reports before its ACKs: it is part of every RTT.",
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

    /// The controllers keep their windows at or below `bytes`, and know of it: a reduction begins from there.
    pub fn max_window(self, bytes: u64) -> Factory {
        Factory { making: self.making.max_window(bytes) }
    }

    /// A look at the controller that this factory built last, from any thread. It does not follow a connection that migrates to
    /// another path.
    pub fn watch(&self) -> Watch {
        self.making.watch().clone()
    }

    /// A controller for a connection that starts now, at `now`, with packets of `mtu` bytes.
    fn adapter(&self, now: Instant, mtu: u16) -> Adapter {
        let mut driver = Driver::from(self.making.events(mtu));
        let initial_window = driver.limits().cwnd as u64;
        let driver = Arc::new(Mutex::new(driver));
        self.making.watch().follow(&driver);
        let clock = Clock::new(now);
        Adapter { driver, clock, initial_window, reported: clock.at(now), remembers: Duration::ZERO }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(self.adapter(now, current_mtu))
    }
}

/// A controller of fullpipe-cc in a connection of noq.
#[derive(Debug)]
pub struct Adapter {
    /// noq asks for the window through a shared reference, and the answer may settle an ACK.
    driver: Arc<Mutex<Driver<InBytes>>>,
    clock: Clock,
    initial_window: u64,
    /// When noq last told something: it forgets lost packets whenever it handles an ACK.
    reported: Time,
    /// For how long after a packet left noq knows that it is lost, at least.
    remembers: Duration,
}

impl Adapter {
    /// What the controller allows now.
    pub fn limits(&self) -> Limits {
        lock(&self.driver).limits()
    }

    /// What the controller believes now.
    pub fn snapshot(&self) -> Snapshot {
        self.view().snapshot
    }

    /// A time of noq's as the driver's.
    fn report(&mut self, now: Instant) -> Time {
        self.reported = self.reported.max(self.clock.at(now));
        self.clock.at(now)
    }

    /// noq surely remembers the lost packets that left at this time or later.
    fn since(&self) -> Time {
        Time::from_nanos(self.reported.as_nanos().saturating_sub(self.remembers.as_nanos()))
    }

    /// Both, and what became of the packets.
    pub fn view(&self) -> View {
        let mut driver = lock(&self.driver);
        driver.events_mut().settle();
        driver.view()
    }
}

impl Controller for Adapter {
    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        lock(&self.driver).sent(self.clock.at(now), pn, bytes as u32, None);
    }

    fn on_cwnd_limited(&mut self) {
        lock(&self.driver).events_mut().cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        // `drain_lost_packets`: two probe timeouts, of which the estimator tells the smoothed RTT and not its variation.
        let two = 2 * (rtt.get() + GRANULARITY);
        self.remembers = Duration::from_nanos(u64::try_from(two.as_nanos()).unwrap_or(u64::MAX));
        let (now, sent) = (self.report(now), self.clock.at(sent));
        lock(&self.driver).acked(now, pn, Some(sent), saturate(bytes), app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _app_limited: bool, _largest: Option<u64>) {
        let now = self.report(now);
        let mut driver = lock(&self.driver);
        driver.events_mut().end_acked();
        driver.reconcile(now, in_flight);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        _sent: Instant,
        is_persistent_congestion: bool,
        is_ecn: bool,
        _lost_bytes: u64,
        _largest_lost_pn: u64,
    ) {
        let mut driver = lock(&self.driver);
        let now = self.clock.at(now);
        if is_ecn {
            driver.events_mut().marked(now, None);
        } else if is_persistent_congestion {
            driver.events_mut().persistent_congestion(now);
        }
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        let now = self.report(now);
        lock(&self.driver).lost(now, pn, lost_bytes as u32);
    }

    /// noq calls this first when an ACK arrives, without a time.
    fn on_spurious_congestion_event(&mut self) {
        lock(&self.driver).events_mut().spurious(self.since());
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        lock(&self.driver).events_mut().mtu_changed(new_mtu);
    }

    fn window(&self) -> u64 {
        self.limits().cwnd as u64
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut driver = lock(&self.driver);
        let limits = driver.limits();
        let rate = pacing::pacing_rate(&limits);
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = limits.cwnd as u64;
        metrics.ssthresh = pacing::ssthresh(&limits);
        metrics.pacing_rate = rate.map(|rate| rate.as_bytes_per_sec().max(1));
        metrics.send_quantum = rate.map(|_| pacing::quantum(&limits));
        metrics.bandwidth_estimate = driver.events().snapshot().bandwidth.map(Rate::as_bits_per_sec);
        metrics
    }

    /// For a connection that migrates. The copy does not share the state.
    fn clone_box(&self) -> Box<dyn Controller> {
        let driver = Arc::new(Mutex::new(lock(&self.driver).clone()));
        Box::new(Adapter { driver, ..*self })
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// RFC 9002 section 6.1.2: `kGranularity`, the least that noq takes for four variations of the RTT.
const GRANULARITY: std::time::Duration = std::time::Duration::from_millis(1);

fn saturate(bytes: u64) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
