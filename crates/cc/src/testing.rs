//! Shorthands for tests: a connection that the test moves by hand.

use crate::controller::*;
use fullpipe_units::{Duration, Rate, Time};

pub(crate) const CONFIG: Config = Config {
    mss: 1448,
    unit: 1448,
    initial_cwnd: 10,
    cwnd_clamp: u32::MAX,
    max_pacing_rate: Rate::MAX,
    gso_max: Config::GSO_MAX,
    max_tcp_header: Config::MAX_TCP_HEADER,
    paced: false,
    hz: 1000,
    ssthresh: Limits::INFINITE,
};

/// Reports an ACK that changes nothing but its RTT.
pub(crate) fn deliver(controller: &mut impl Controller, ack: &Ack) {
    if let Some(sample) = ack.rtt_sample() {
        controller.on_rtt(&sample);
    }
    controller.on_ack(ack);
}

/// A connection and the ACKs that it brings.
#[derive(Clone, Copy)]
pub(crate) struct Flow {
    pub(crate) connection: Connection,
    pub(crate) snd_una: u64,
    pub(crate) snd_nxt: u64,
    /// The most that was out; by default, more than any window of the tests.
    pub(crate) max_packets_out: u32,
}

impl Flow {
    /// At ten seconds, with an RTT of 100 ms that was measured.
    pub(crate) fn new() -> Flow {
        let now = Time::from_micros(10_000_000);
        let rtt = Duration::from_millis(100);
        let connection = Connection {
            now,
            jiffies: 10_000,
            delivered_time: now,
            srtt: rtt,
            min_rtt: rtt,
            departure: now,
            ..Connection::default()
        };
        Flow { connection, snd_una: 0, snd_nxt: 0, max_packets_out: 1 << 20 }
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.connection.now += duration;
        self.connection.jiffies = self.connection.now.as_micros().wrapping_div(1_000) as u32;
    }

    /// An ACK of `newly_delivered` segments, sampled over the minimum RTT; in order, and of a window that was the limit.
    pub(crate) fn ack(&mut self, newly_delivered: u32) -> Ack {
        let prior_delivered = self.connection.delivered;
        self.connection.delivered += newly_delivered as u64;
        self.connection.delivered_time = self.connection.now;
        self.snd_una += newly_delivered as u64;
        self.snd_nxt = self.snd_nxt.max(self.snd_una);
        Ack {
            connection: self.connection,
            prior_in_flight: self.connection.in_flight + newly_delivered,
            newly_delivered,
            newly_lost: 0,
            newly_acked: newly_delivered,
            rtt: Some(self.connection.srtt),
            maybe_delayed: false,
            una_advanced: true,
            snd_una: self.snd_una,
            snd_nxt: self.snd_nxt,
            sample: RateSample {
                delivered: Some(newly_delivered),
                interval: Some(self.connection.srtt),
                prior_delivered,
                ..RateSample::NONE
            },
            cwnd_limited: true,
            max_packets_out: self.max_packets_out,
            may_raise_cwnd: true,
            may_answer_probe: false,
        }
    }

    pub(crate) fn change(&mut self, controller: &mut impl Controller, to: CaState, reduce: bool) {
        let trigger = if to == CaState::Loss { Trigger::Timer } else { Trigger::Ack };
        self.change_by(controller, to, reduce, trigger);
    }

    pub(crate) fn change_by(
        &mut self,
        controller: &mut impl Controller,
        to: CaState,
        reduce: bool,
        trigger: Trigger,
    ) {
        controller.on_state(&StateChange { connection: self.connection, to, reduce, proven: false, trigger });
        self.connection.state = to;
    }

    pub(crate) fn send(&self, controller: &mut impl Controller, segments: u32, retransmission: bool) {
        controller.on_sent(&Sent {
            departure: self.connection.now,
            units: segments,
            prior_in_flight: self.connection.in_flight,
            prior_packets_out: self.connection.packets_out,
            retransmission,
        });
    }
}
