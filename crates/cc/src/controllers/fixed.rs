//! Fixed: a window and a rate that never change. It is not a congestion control but an instrument.
//!
//! It is for the figure on which all others rest, delivery rate and round-trip time against data in flight (`queue16`,
//! figure 1), and for testing a path, a host or a recorder with a sender of known behaviour.
//!
//! It does not react to loss, marks or timeouts, as its phase says ([`Phase::Fixed`]): lost segments are sent again as
//! soon as the loss is known, within the same window. Its pacing rate is the given one. Without one it is unpaced, and
//! reports the rate by which Linux sizes the bursts of a window that does not grow, so that its bursts are those that a
//! controller at this window would send.

use crate::controller::*;
use crate::parameter::{ControllerInfo, parameters};
use fullpipe_units::Rate;

/// The window if neither window nor rate was given (Linux: `TCP_INIT_CWND`; RFC 6928).
const DEFAULT_CWND: u32 = 10;

/// Linux's rate for a window that does not grow, in percent of a window per RTT (`tcp_pacing_ca_ratio`).
const SIZING_PERCENT: u64 = 120;

parameters! {
    /// The window and the rate.
    pub struct Params from "Fullpipe's own";
    cwnd: u32 = whole(0, 0..=100_000_000, "segments"),
        "segments in flight; 0 means limited by the rate alone, or 10 without a rate";
    /// In kbit/s.
    rate_kbps as "rate": u32 = fraction((1000, 1), 0, 0..=4_000_000_000, "Mbit/s"),
        "pacing rate of payload; 0 for no pacing";
}

impl Params {
    /// Whether the host has to pace.
    pub const fn is_paced(&self) -> bool {
        self.rate_kbps > 0
    }
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "fixed",
    summary: "keeps its window or rate constant: an instrument, not a congestion control",
    source: "Fullpipe's own",
    linux_name: None,
    answers_delay: false,
    parameters: Params::PARAMETERS,
};

/// A window and a rate.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    cwnd: u32,
    /// The rate that was given.
    rate: Option<Rate>,
    /// Without it, the rate that determines the size of bursts.
    sizing: Rate,
    mss: u32,
    most: Rate,
}

impl Fixed {
    /// A connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Fixed {
        let rate = params.is_paced().then(|| Rate::from_bits_per_sec(params.rate_kbps as u64 * 1_000));
        let cwnd = match (params.cwnd, rate) {
            (0, Some(_)) => u32::MAX,
            (0, None) => DEFAULT_CWND,
            (cwnd, _) => cwnd,
        };
        let mut fixed = Fixed {
            cwnd: cwnd.min(config.cwnd_clamp),
            rate,
            sizing: config.max_pacing_rate,
            mss: config.mss,
            most: config.max_pacing_rate,
        };
        fixed.size_bursts(connection);
        fixed
    }

    /// Linux: `tcp_update_pacing_rate`.
    fn size_bursts(&mut self, connection: &Connection) {
        let rtt_us = connection.srtt.as_micros();
        if rtt_us > 0 {
            let bytes = self.cwnd as u64 * self.mss as u64;
            let a_second = bytes as u128 * (SIZING_PERCENT as u128 * 10_000) / rtt_us as u128;
            // A rate of zero would never send; one above 64 bits is no limit.
            self.sizing = Rate::from_bytes_per_sec(u64::try_from(a_second).unwrap_or(u64::MAX).max(1));
        }
    }
}

impl Controller for Fixed {
    fn on_transmit_start(&mut self, _: &TransmitStart) {}
    fn on_window_unused(&mut self, _: &WindowUnused) {}
    fn on_sent(&mut self, _: &Sent) {}
    fn on_rtt(&mut self, _: &RttSample) {}
    fn on_lost(&mut self, _: &Lost) {}
    fn on_tail_repair(&mut self, _: &TailRepair) {}
    fn on_discarded(&mut self, _: &Discarded) {}
    fn on_ce(&mut self, _: &CeMarks) {}
    fn on_state(&mut self, _: &StateChange) {}
    fn on_undo(&mut self, _: &Undo) {}

    fn on_ack(&mut self, ack: &Ack) {
        self.size_bursts(&ack.connection);
    }

    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
    }

    fn limits(&self) -> Limits {
        Limits {
            cwnd: self.cwnd,
            ssthresh: Limits::INFINITE,
            pacing_rate: self.rate.unwrap_or(self.sizing).min(self.most),
            // A paced sender is known by its spacing: as little at once as the rate allows.
            min_burst: if self.rate.is_some() { 1 } else { 2 },
            mark_app_limited: false,
            check_app_limited: false,
        }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot { phase: Phase::Fixed, bandwidth: None, min_rtt: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CONFIG, Flow};

    #[test]
    fn nothing_changes_the_window() {
        let mut flow = Flow::new();
        let mut fixed = Fixed::new(&Params { cwnd: 50, rate_kbps: 0 }, &CONFIG, &flow.connection);
        let before = (fixed.limits(), fixed.snapshot());
        fixed.on_ack(&flow.ack(50));
        flow.change(&mut fixed, CaState::Recovery, true);
        fixed.on_ack(&Ack { newly_lost: 10, ..flow.ack(1) });
        flow.change(&mut fixed, CaState::Loss, true);
        fixed.on_undo(&Undo { connection: flow.connection });
        fixed.on_ce(&CeMarks { echoed: true, units: 3, ..CeMarks::default() });
        fixed.on_window_unused(&WindowUnused { connection: flow.connection, used: 1 });
        assert_eq!((fixed.limits(), fixed.snapshot()), before);
        // 50 segments of 1,448 bytes in 100 ms, and a fifth more: 868,800 bytes a second.
        assert_eq!(before.0.pacing_rate, Rate::from_bytes_per_sec(868_800));
    }

    #[test]
    fn rate_alone_opens_window_default_ten() {
        let limits = |cwnd, rate_kbps| {
            let connection = Flow::new().connection;
            Fixed::new(&Params { cwnd, rate_kbps }, &Config { cwnd_clamp: 777, ..CONFIG }, &connection)
                .limits()
        };
        assert_eq!((limits(0, 5_000).cwnd, limits(0, 0).cwnd, limits(20, 5_000).cwnd), (777, 10, 20));
        assert_eq!(limits(0, 5_000).pacing_rate, Rate::from_bits_per_sec(5_000_000));
    }
}
