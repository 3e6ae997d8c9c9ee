//! Retransmission timeout, tail loss probe and reordering timer: one timer, as in Linux (`icsk_pending`; RFC 6298, RFC 8985).

use fullpipe_cc::{CaState, Controller, TailRepair};
use fullpipe_units::{Duration, Time};

use super::flags::Flags;
use super::transmit::Push;
use super::{Sender, Wire};
use crate::clock::Jiffies;

/// Linux `TCP_TIMEOUT_MIN_US`: 2 ms.
const TIMEOUT_MIN_US: u32 = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    None,
    Retransmission,
    Probe,
    Reordering,
}

/// Timer state.
#[derive(Debug)]
pub(super) struct Timers {
    kind: Kind,
    due: Time,
    /// Timeouts without progress (Linux: `icsk_retransmits`).
    pub(super) retransmits: u32,
    /// End of what was sent when a probe left; the probe is unanswered (Linux: `tlp_high_seq`).
    pub(super) probe_end: Option<u64>,
    /// That probe repeated a segment.
    pub(super) probe_retransmitted: bool,
    /// That segment first left while the application limited the sender (Linux v3: `tlp_orig_data_app_limited`).
    pub(super) probed_app_limited: bool,
}

impl Timers {
    pub(super) fn new() -> Timers {
        Timers {
            kind: Kind::None,
            due: Time::NEVER,
            retransmits: 0,
            probe_end: None,
            probe_retransmitted: false,
            probed_app_limited: false,
        }
    }

    /// When it fires.
    #[inline]
    pub(super) fn due(&self) -> Time {
        self.due
    }

    pub(super) fn is_probe(&self) -> bool {
        self.kind == Kind::Probe
    }

    pub(super) fn is_reordering(&self) -> bool {
        self.kind == Kind::Reordering
    }

    /// Linux timers fire at ticks.
    fn set(&mut self, kind: Kind, now: Time, after: Duration) {
        self.kind = kind;
        self.due = Jiffies::at(now).plus(after).start().max(now);
    }

    fn clear(&mut self) {
        self.kind = Kind::None;
        self.due = Time::NEVER;
    }
}

impl Sender {
    /// Linux: `tcp_set_xmit_timer`.
    #[inline]
    pub(super) fn set_timer(&mut self, now: Time) {
        if !self.schedule_probe(now, true) {
            self.rearm(now);
        }
    }

    /// Sets the retransmission timer a whole timeout from now.
    pub(super) fn set_rto(&mut self, now: Time) {
        let after = Duration::from_micros(self.rtt.rto_us as u64) + self.pacing_delay(now);
        self.timers.set(Kind::Retransmission, now, after);
    }

    pub(super) fn set_reordering_timer(&mut self, now: Time, after_us: u32) {
        let after = after_us.saturating_add(TIMEOUT_MIN_US).min(self.rtt.rto_us);
        self.timers.set(Kind::Reordering, now, Duration::from_micros(after as u64));
    }

    /// Linux: `tcp_schedule_loss_probe`. `advancing`: an ACK just restarted the timeout.
    #[inline]
    pub(super) fn schedule_probe(&mut self, now: Time, advancing: bool) -> bool {
        let packets_out = self.board.packets_out();
        if packets_out == 0 || !matches!(self.recovery.state, CaState::Open | CaState::Cwr) {
            return false;
        }
        let srtt_x8 = self.rtt.srtt_x8();
        let mut after_us = if srtt_x8 == 0 {
            super::rtt::RTO_INITIAL_US
        } else if packets_out == 1 {
            (srtt_x8 >> 2) + super::rtt::RTO_MIN_US
        } else {
            (srtt_x8 >> 2) + TIMEOUT_MIN_US
        };
        let rto_us = if advancing { self.rtt.rto_us as i64 } else { self.until_timeout(now) };
        if rto_us > 0 {
            after_us = after_us.min(rto_us as u32);
        }
        let after = Duration::from_micros(after_us as u64) + self.pacing_delay(now);
        self.timers.set(Kind::Probe, now, after);
        true
    }

    /// Linux: `tcp_rearm_rto`.
    pub(super) fn rearm(&mut self, now: Time) {
        if self.board.packets_out() == 0 {
            self.timers.clear();
            return;
        }
        let rto_us = match self.timers.kind {
            Kind::Probe | Kind::Reordering => self.until_timeout(now).max(1) as u64,
            _ => self.rtt.rto_us as u64,
        };
        let after = Duration::from_micros(rto_us) + self.pacing_delay(now);
        self.timers.set(Kind::Retransmission, now, after);
    }

    /// Microseconds until the head of the queue times out; negative when it has (Linux: `tcp_rto_delta_us`).
    fn until_timeout(&self, now: Time) -> i64 {
        let age = (now.as_micros() as u32).wrapping_sub(self.board.tx(self.board.una).sent_us);
        self.rtt.rto_us as i64 - age as i64
    }

    /// How long pacing holds back the next burst (Linux: `tcp_pacing_delay`).
    #[inline]
    fn pacing_delay(&self, now: Time) -> Duration {
        if self.output.paced { self.output.departure.saturating_since(now) } else { Duration::ZERO }
    }

    /// The timer fired (Linux: `tcp_write_timer_handler`).
    pub(super) fn on_timeout(&mut self, now: Time, wire: &mut impl Wire) {
        self.check_app_limited_if_asked();
        match self.timers.kind {
            Kind::None => self.timers.clear(),
            Kind::Reordering => self.on_reordering_timeout(now, wire),
            Kind::Probe => self.send_probe(now, wire),
            Kind::Retransmission => {
                self.timers.clear();
                self.on_retransmission_timeout(now, wire);
            }
        }
        debug_assert!(self.timers.due > now, "a timer that fires for ever: {:?}", self.timers);
    }

    /// Linux: `tcp_rack_reo_timeout`.
    fn on_reordering_timeout(&mut self, now: Time, wire: &mut impl Wire) {
        self.timers.due = Time::NEVER;
        let in_flight = self.board.in_flight();
        // Linux does not look again after this one: the next ACK or the timeout does.
        self.detect_losses(now);
        if self.board.in_flight() != in_flight {
            if self.recovery.state != CaState::Recovery {
                self.enter_recovery(now, false);
            }
            self.retransmit_lost(now, wire);
        }
        if self.timers.kind != Kind::Retransmission {
            self.rearm(now);
        }
    }

    /// Linux: `tcp_send_loss_probe`.
    fn send_probe(&mut self, now: Time, wire: &mut impl Wire) {
        self.timers.due = Time::NEVER;
        if self.timers.probe_end.is_none() && self.board.packets_out() > 0 {
            self.timers.probe_retransmitted = false;
            let before = self.board.next;
            let has_new = self.has_sendable();
            if has_new {
                self.write_rarely(now, Push::Probe, wire);
            } else {
                let last = self.board.next - 1;
                self.timers.probed_app_limited = self.board.tx(last).app_limited();
                self.probe(now, last, wire);
                self.timers.probe_retransmitted = true;
            }
            if self.board.next > before || self.timers.probe_retransmitted {
                self.timers.probe_end = Some(self.board.next);
                self.timers.kind = Kind::None;
            }
        }
        self.rearm(now);
    }

    /// Linux: `tcp_process_tlp_ack`. Returns whether the ACK may answer a segment that the probe repeated, or the probe itself
    /// (Linux v3: `is_acking_tlp_retrans_seq`).
    pub(super) fn on_probe_acknowledged(&mut self, now: Time, ack: u64, flags: &Flags) -> bool {
        let Some(end) = self.timers.probe_end else { return false };
        if ack < end {
            return false;
        }
        if !self.timers.probe_retransmitted || flags.duplicate_of_probe {
            self.timers.probe_end = None;
        } else if ack > end {
            // The probe repaired a loss: answer it as one.
            self.controller.on_tail_repair(&TailRepair {
                now,
                delivered: self.sampler.delivered(),
                units: 1,
                app_limited: self.timers.probed_app_limited,
            });
            self.recovery.high_seq = self.board.next;
            self.timers.probe_end = None;
            self.change_state(now, CaState::Cwr, true);
            self.try_keep_open(now);
        } else if !(flags.una_advanced || flags.data_acked || flags.window_updated || flags.data_sacked) {
            self.timers.probe_end = None;
        } else {
            return true;
        }
        false
    }

    /// Linux: `tcp_retransmit_timer`.
    fn on_retransmission_timeout(&mut self, now: Time, wire: &mut impl Wire) {
        if self.board.packets_out() == 0 {
            return;
        }
        self.counters.timeouts += 1;
        self.enter_loss(now);
        self.timers.retransmits += 1;
        let head = self.board.una;
        if !self.board.is_retransmitted(head) {
            self.retransmit(now, head, 1, wire);
        }
        self.rtt.back_off();
        self.set_rto(now);
    }
}
