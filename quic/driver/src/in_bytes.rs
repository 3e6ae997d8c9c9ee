//! Built-in controllers for a transport that counts bytes.

use crate::events::Start;
use fullpipe_cc::*;
use fullpipe_units::{Duration, Rate};

/// Any built-in controller, in units of one byte: by itself if it counts bytes ([`Params::counts_bytes`]), else within
/// [`Segments`].
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "one a connection; both are large")]
pub enum InBytes {
    /// It counts bytes.
    Bytes(Any),
    /// It counts segments.
    Segments(Segments<Any>),
}

impl InBytes {
    /// The controller that `params` names, at the start of a connection.
    pub fn new(params: &Params, start: &Start) -> InBytes {
        InBytes::with_config(params, &InBytes::config(start.mtu), start)
    }

    /// The same with another configuration, such as one with a smaller [`Config::cwnd_clamp`].
    pub fn with_config(params: &Params, config: &Config, start: &Start) -> InBytes {
        let connection = InBytes::connection(start);
        if params.counts_bytes() {
            return InBytes::Bytes(Any::new(params, config, &connection));
        }
        InBytes::Segments(Segments::new(config, &connection, |config, connection| {
            Any::new(params, config, connection)
        }))
    }

    /// The configuration of a QUIC sender whose packets have at most `mtu` bytes: the initial window is ten packets (RFC 9002
    /// section 7.2; controllers that follow it apply its limit of 14,720 bytes themselves), and the stack paces.
    pub const fn config(mtu: u16) -> Config {
        let mtu = if mtu == 0 { 1 } else { mtu as u32 };
        Config {
            mss: mtu,
            unit: 1,
            initial_cwnd: 10 * mtu,
            cwnd_clamp: Config::MOST_IN_FLIGHT,
            max_pacing_rate: Rate::MAX,
            gso_max: Config::GSO_MAX,
            max_tcp_header: Config::MAX_TCP_HEADER,
            paced: true,
            hz: crate::events::HZ,
            ssthresh: Limits::INFINITE,
        }
    }

    /// A connection at its start, before any packet.
    pub fn connection(start: &Start) -> Connection {
        Connection {
            now: start.now,
            jiffies: crate::events::jiffies(start.now),
            delivered_time: start.now,
            min_rtt: Duration::MAX,
            departure: start.now,
            random: start.seed as u32,
            ..Connection::default()
        }
    }
}

/// Calls a method of either.
macro_rules! either {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            InBytes::Bytes($controller) => $call,
            InBytes::Segments($controller) => $call,
        }
    };
}

impl Controller for InBytes {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        either!(self, controller => controller.on_transmit_start(start))
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        either!(self, controller => controller.on_window_unused(unused))
    }
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        either!(self, controller => controller.on_sent(sent))
    }
    fn on_rtt(&mut self, sample: &RttSample) {
        either!(self, controller => controller.on_rtt(sample))
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        either!(self, controller => controller.on_ce(marks))
    }
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        either!(self, controller => controller.on_tail_repair(repair))
    }
    fn on_undo(&mut self, undo: &Undo) {
        either!(self, controller => controller.on_undo(undo))
    }
    fn on_lost(&mut self, lost: &Lost) {
        either!(self, controller => controller.on_lost(lost))
    }
    fn on_discarded(&mut self, discarded: &Discarded) {
        either!(self, controller => controller.on_discarded(discarded))
    }
    fn on_state(&mut self, change: &StateChange) {
        either!(self, controller => controller.on_state(change))
    }
    fn on_ack(&mut self, ack: &Ack) {
        either!(self, controller => controller.on_ack(ack))
    }
    fn on_mss(&mut self, mss: u32) {
        either!(self, controller => controller.on_mss(mss))
    }
    #[inline]
    fn limits(&self) -> Limits {
        either!(self, controller => controller.limits())
    }
    fn snapshot(&self) -> Snapshot {
        either!(self, controller => controller.snapshot())
    }
}
