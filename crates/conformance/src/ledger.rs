//! The delivery-rate sample by its definition, to test [`fullpipe_cc::Sampler`]: in full width, and written from the
//! specification rather than from that code.
//!
//! Specification: draft-ietf-ccwg-bbr, "Delivery Rate Samples". Counts are in units; packets have any size.

use fullpipe_cc::controller::{Connection, Lost, RateSample};
use fullpipe_units::{Duration, Time};

/// The values noted when a packet leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Noted {
    sent: Time,
    first_sent: Time,
    delivered: u64,
    delivered_time: Time,
    lost: u64,
    in_flight: u32,
    app_limited: bool,
}

impl Noted {
    /// The connection's losses when the packet left.
    pub(super) fn lost_before(&self) -> u64 {
        self.lost
    }

    /// The same packet as the report of its loss has it.
    pub(super) fn as_seen_in(&self, lost: &Lost) -> Noted {
        let Lost { tx_delivered: delivered, tx_lost, tx_in_flight: in_flight, app_limited, .. } = *lost;
        Noted { delivered, lost: tx_lost, in_flight, app_limited, ..*self }
    }
}

/// The connection's side.
pub(super) struct Ledger {
    delivered: u64,
    delivered_time: Time,
    first_sent: Time,
    /// Samples are application-limited until more than this is delivered.
    limited_until: Option<u64>,
    /// Of the packets that this ACK delivered, the one that left last, and its place in the stream.
    newest: Option<(Noted, u64, bool)>,
}

impl Ledger {
    pub(super) fn new(now: Time, delivered: u64) -> Ledger {
        Ledger { delivered, delivered_time: now, first_sent: now, limited_until: None, newest: None }
    }

    pub(super) fn is_app_limited(&self) -> bool {
        self.limited_until.is_some()
    }

    pub(super) fn on_sent(&mut self, now: Time, packets_out: u32, in_flight: u32, lost: u64) -> Noted {
        // Only a truly idle connection restarts the clocks: a flight that seems empty because all of it is marked lost may
        // still be delivering.
        if packets_out == 0 {
            (self.first_sent, self.delivered_time) = (now, now);
        }
        Noted {
            sent: now,
            first_sent: self.first_sent,
            delivered: self.delivered,
            delivered_time: self.delivered_time,
            lost,
            in_flight,
            app_limited: self.is_app_limited(),
        }
    }

    pub(super) fn begin_ack(&mut self) {
        self.newest = None;
    }

    /// The ACK delivers a packet of `units`.
    pub(super) fn on_delivered(&mut self, noted: &Noted, sequence: u64, retransmitted: bool, units: u32) {
        self.delivered += units as u64;
        // Linux's clock has microseconds; of packets that left in one, the highest in the stream is the newest.
        let age = |noted: &Noted, place: u64| (noted.sent.as_micros(), place);
        let older = |(other, place, _): &(Noted, u64, bool)| age(other, *place) < age(noted, sequence);
        if self.newest.as_ref().is_none_or(older) {
            self.newest = Some((*noted, sequence, retransmitted));
        }
    }

    /// The sample of an ACK that delivers something.
    pub(super) fn on_ack(&mut self, connection: &Connection) -> RateSample {
        let now = connection.now;
        let Some((noted, _, retransmitted)) = self.newest else { return RateSample::NONE };
        self.limited_until = self.limited_until.filter(|&until| self.delivered <= until);
        (self.first_sent, self.delivered_time) = (noted.sent, now);
        let us = |from: Time, to: Time| to.as_micros().saturating_sub(from.as_micros());
        // ACKs that were held back and arrive together would show a rate that the path never had.
        let interval_us = us(noted.first_sent, noted.sent).max(us(noted.delivered_time, now));
        let interval = Duration::from_micros(interval_us);
        RateSample {
            delivered: Some((self.delivered - noted.delivered) as u32),
            interval: (interval_us >= connection.min_rtt.as_micros()).then_some(interval),
            prior_delivered: noted.delivered,
            prior_delivered_time: Time::from_micros(noted.delivered_time.as_micros()),
            app_limited: noted.app_limited,
            retransmitted,
            tx_in_flight: noted.in_flight,
            lost_since_sent: (connection.lost - noted.lost) as u32,
            marked_since_sent: 0,
        }
    }

    /// Packets are gone for good that the mark would wait for.
    pub(super) fn on_discarded(&mut self, in_flight: u32) {
        self.limited_until = self.limited_until.map(|until| until.min(self.delivered + in_flight as u64));
    }

    pub(super) fn mark_app_limited(&mut self, in_flight: u32) {
        self.limited_until = Some((self.delivered + in_flight as u64).max(1));
    }
}
