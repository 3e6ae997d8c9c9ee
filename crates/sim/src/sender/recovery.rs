//! The recovery state machine with undo (Linux 6.12: `tcp_fastretrans_alert` and around; RFC 6675, RFC 5682, RFC 4015).

use fullpipe_cc::{CaState, Controller, StateChange, Trigger, Undo};
use fullpipe_units::Time;

use super::Sender;
use super::flags::Flags;
use super::losses::LossRuns;
use crate::packet::Acknowledgement;

/// State of recovery.
#[derive(Debug)]
pub(crate) struct Recovery {
    pub(crate) state: CaState,
    /// Recovery ends when this is acknowledged (Linux: `high_seq`).
    pub(crate) high_seq: u64,
    /// `una` when the reduction began, if it may still be undone (Linux: `undo_marker`).
    pub(super) undo: Option<u64>,
    /// Retransmissions since then not reported as duplicates; -1 before the first (Linux: `undo_retrans`).
    pub(super) undo_retransmissions: i64,
    /// Timestamp of the first retransmission (Linux: `retrans_stamp`).
    pub(super) first_retransmission: Option<u32>,
    /// F-RTO is deciding whether the timeout was spurious.
    pub(super) frto: bool,
    /// Duplicates reported so far (Linux: `dsack_dups`).
    pub(super) duplicates: u64,
}

/// What to send after an ACK (Linux: `REXMIT_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retransmit {
    None,
    Lost,
    /// F-RTO: new data first.
    New,
}

impl Recovery {
    pub(super) fn new() -> Recovery {
        Recovery {
            state: CaState::Open,
            high_seq: 0,
            undo: None,
            undo_retransmissions: 0,
            first_retransmission: None,
            frto: false,
            duplicates: 0,
        }
    }

    pub(super) fn in_reduction(&self) -> bool {
        matches!(self.state, CaState::Cwr | CaState::Recovery)
    }
}

/// Whether an echoed timestamp is older than a send; timestamps count milliseconds (RFC 7323).
pub(super) fn echoes_before(echo_ms: u32, stamp_ms: u32) -> bool {
    (echo_ms.wrapping_sub(stamp_ms) as i32) < 0
}

impl Sender {
    /// Linux: `tcp_fastretrans_alert`.
    pub(super) fn recover(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        prior_una: u64,
        flags: &mut Flags,
    ) -> Retransmit {
        let duplicate =
            ack.ack >= prior_una && !flags.una_advanced && !flags.window_updated && !flags.duplicate_reported;
        if self.recovery.state == CaState::Open {
            self.recovery.first_retransmission = None;
        } else if self.board.una >= self.recovery.high_seq {
            match self.recovery.state {
                CaState::Cwr if self.board.una != self.recovery.high_seq => {
                    self.change_state(now, CaState::Open, false);
                }
                CaState::Recovery => self.finish_recovery(now, ack),
                _ => {}
            }
        }
        match self.recovery.state {
            CaState::Recovery => {
                if flags.una_advanced && self.undo_partial(now, ack, prior_una) {
                    return Retransmit::None;
                }
                if self.undo_after_duplicates(now) {
                    self.try_to_open(now, flags.echoed);
                }
                self.identify_losses(now, flags);
                if self.recovery.state != CaState::Recovery {
                    if self.board.lost_out == 0 {
                        return Retransmit::None;
                    }
                    self.enter_recovery(now, flags.echoed);
                }
                Retransmit::Lost
            }
            CaState::Loss => {
                let retransmit = self.process_loss(now, ack, flags, duplicate);
                self.identify_losses(now, flags);
                if self.recovery.state != CaState::Open && !flags.retransmission_lost {
                    return retransmit;
                }
                self.start_recovery_if_lost(now, retransmit, flags)
            }
            _ => {
                if self.recovery.state <= CaState::Disorder {
                    self.undo_after_duplicates(now);
                }
                self.identify_losses(now, flags);
                self.start_recovery_if_lost(now, Retransmit::None, flags)
            }
        }
    }

    fn start_recovery_if_lost(&mut self, now: Time, otherwise: Retransmit, flags: &Flags) -> Retransmit {
        if self.board.lost_out == 0 {
            self.try_to_open(now, flags.echoed);
            return otherwise;
        }
        self.enter_recovery(now, flags.echoed);
        Retransmit::Lost
    }

    /// Linux: `tcp_identify_packet_loss`.
    fn identify_losses(&mut self, now: Time, flags: &mut Flags) {
        if self.board.packets_out() == 0 || !self.rack.advanced {
            return;
        }
        self.rack.advanced = false;
        let retransmissions = self.board.retrans_out;
        if let Some(after_us) = self.detect_losses(now) {
            self.set_reordering_timer(now, after_us);
            flags.set_timer = false;
        }
        flags.retransmission_lost |= self.board.retrans_out < retransmissions;
    }

    /// Linux: `tcp_enter_recovery`. `proven`: the ACK echoes marks, too.
    pub(super) fn enter_recovery(&mut self, now: Time, proven: bool) {
        if !self.any_retransmission() {
            self.recovery.first_retransmission = None;
        }
        self.init_undo();
        let reduce = !self.recovery.in_reduction();
        if reduce {
            self.recovery.high_seq = self.board.next;
            self.timers.probe_end = None;
        }
        self.change_state_for(now, CaState::Recovery, reduce, proven);
    }

    /// Reduces the window for a mark, once in a window (Linux: `tcp_enter_cwr`).
    fn enter_cwr(&mut self, now: Time) {
        if self.recovery.state >= CaState::Cwr {
            return;
        }
        self.recovery.undo = None;
        self.recovery.high_seq = self.board.next;
        self.timers.probe_end = None;
        self.mark_reductions += 1;
        self.change_state_for(now, CaState::Cwr, true, true);
    }

    /// Linux: `tcp_init_undo`.
    pub(super) fn init_undo(&mut self) {
        self.recovery.undo = Some(self.board.una);
        self.recovery.undo_retransmissions = self.board.retrans_out as i64;
        if self.timers.probe_end.is_some() && self.timers.probe_retransmitted {
            self.recovery.undo_retransmissions += 1;
        }
        if self.recovery.undo_retransmissions == 0 {
            self.recovery.undo_retransmissions = -1;
        }
    }

    /// Reports the change to the controller and moves to `to`.
    pub(super) fn change_state(&mut self, now: Time, to: CaState, reduce: bool) {
        self.change_state_for(now, to, reduce, false);
    }

    /// The same, where marks may prove congestion.
    fn change_state_for(&mut self, now: Time, to: CaState, reduce: bool, proven: bool) {
        let trigger = if self.in_ack { Trigger::Ack } else { Trigger::Timer };
        let change = StateChange { connection: self.connection(now), to, reduce, proven, trigger };
        if reduce || to == CaState::Loss {
            // tcp_init_cwnd_reduction, tcp_enter_loss.
            self.marking.queue_cwr();
        }
        self.controller.on_state(&change);
        if to == CaState::Loss || self.recovery.in_reduction() {
            self.output.usage.stamp = now;
        }
        self.recovery.state = to;
        self.update_limits();
    }

    /// Everything up to `high_seq` is acknowledged (Linux: `tcp_try_undo_recovery`, `tcp_end_cwnd_reduction`).
    fn finish_recovery(&mut self, now: Time, ack: &Acknowledgement) {
        if self.may_undo(ack) {
            self.undo_reduction(now, false);
        } else {
            self.rack.reo_wnd_persist = self.rack.reo_wnd_persist.saturating_sub(1);
        }
        self.change_state(now, CaState::Open, false);
    }

    fn may_undo(&self, ack: &Acknowledgement) -> bool {
        self.recovery.undo.is_some()
            && (self.recovery.undo_retransmissions == 0 || self.original_was_delayed(ack))
    }

    /// Linux: `tcp_packet_delayed`.
    fn original_was_delayed(&self, ack: &Acknowledgement) -> bool {
        self.recovery.first_retransmission.is_none_or(|stamp| echoes_before(ack.echo_ms, stamp))
    }

    /// Linux: `tcp_undo_cwnd_reduction`.
    fn undo_reduction(&mut self, now: Time, unmark: bool) {
        if unmark {
            self.board.unmark_all_lost();
            self.rack.on_unmark(self.board.una);
        }
        let undo = Undo { connection: self.connection(now) };
        let ssthresh = self.limits.ssthresh;
        self.controller.on_undo(&undo);
        self.counters.undos += 1;
        self.output.usage.stamp = now;
        self.recovery.undo = None;
        self.rack.advanced = true;
        self.update_limits();
        if self.limits.ssthresh > ssthresh {
            self.marking.withdraw_cwr();
        }
    }

    /// Linux: `tcp_try_undo_partial`. True when retransmissions are out and new data shall clock out instead.
    fn undo_partial(&mut self, now: Time, ack: &Acknowledgement, prior_una: u64) -> bool {
        if self.recovery.undo.is_none() || !self.original_was_delayed(ack) {
            return false;
        }
        self.rack.on_reordering(prior_una, self.highest_sacked());
        if self.board.retrans_out > 0 {
            return true;
        }
        if !self.any_retransmission() {
            self.recovery.first_retransmission = None;
        }
        self.undo_reduction(now, true);
        self.try_keep_open(now);
        false
    }

    /// Linux: `tcp_try_undo_dsack`.
    fn undo_after_duplicates(&mut self, now: Time) -> bool {
        if self.recovery.undo.is_none() || self.recovery.undo_retransmissions != 0 {
            return false;
        }
        self.rack.reo_wnd_persist = 16.min(self.rack.reo_wnd_persist + 1);
        self.undo_reduction(now, false);
        true
    }

    /// Linux: `tcp_process_loss`, with F-RTO (RFC 5682 section 3.1).
    fn process_loss(
        &mut self,
        now: Time,
        ack: &Acknowledgement,
        flags: &Flags,
        duplicate: bool,
    ) -> Retransmit {
        let recovered = self.board.una >= self.recovery.high_seq;
        if flags.una_advanced && self.may_undo(ack) {
            self.undo_loss(now);
            return Retransmit::None;
        }
        if self.recovery.frto {
            if flags.original_delivered {
                self.undo_loss(now);
                return Retransmit::None;
            }
            if self.board.next > self.recovery.high_seq {
                if flags.data_sacked || duplicate {
                    self.recovery.frto = false;
                }
            } else if flags.una_advanced && !recovered {
                self.recovery.high_seq = self.board.next;
                if self.has_sendable() {
                    return Retransmit::New;
                }
                self.recovery.frto = false;
            }
        }
        if recovered {
            self.finish_recovery(now, ack);
            return Retransmit::None;
        }
        Retransmit::Lost
    }

    fn undo_loss(&mut self, now: Time) {
        self.undo_reduction(now, true);
        self.timers.retransmits = 0;
        self.change_state(now, CaState::Open, false);
    }

    fn try_to_open(&mut self, now: Time, echoed: bool) {
        if !self.any_retransmission() {
            self.recovery.first_retransmission = None;
        }
        if echoed {
            self.enter_cwr(now);
        }
        if self.recovery.state != CaState::Cwr {
            self.try_keep_open(now);
        }
    }

    /// Linux: `tcp_try_keep_open`.
    pub(super) fn try_keep_open(&mut self, now: Time) {
        let left_out = self.board.sacked_out + self.board.lost_out;
        let to = if left_out > 0 || self.any_retransmission() { CaState::Disorder } else { CaState::Open };
        if self.recovery.state != to {
            self.change_state(now, to, false);
            self.recovery.high_seq = self.board.next;
        }
    }

    /// Linux: `tcp_any_retrans_done`.
    fn any_retransmission(&self) -> bool {
        self.board.retrans_out > 0
            || (self.board.packets_out() > 0 && self.board.was_retransmitted(self.board.una))
    }

    /// Linux: `tcp_enter_loss`.
    pub(super) fn enter_loss(&mut self, now: Time) {
        let new_recovery = self.recovery.state < CaState::Recovery;
        self.mark_all_lost(now);
        let reduce = self.recovery.state <= CaState::Disorder
            || self.recovery.high_seq <= self.board.una
            || (self.recovery.state == CaState::Loss && self.timers.retransmits == 0);
        if reduce {
            self.init_undo();
        }
        if self.recovery.state <= CaState::Disorder && self.board.sacked_out >= super::rack::REORDERING {
            self.rack.reordering = self.rack.reordering.min(super::rack::REORDERING);
        }
        self.change_state(now, CaState::Loss, reduce);
        self.recovery.high_seq = self.board.next;
        self.timers.probe_end = None;
        self.recovery.frto = new_recovery || self.timers.retransmits > 0;
    }

    /// Linux: `tcp_timeout_mark_lost`.
    fn mark_all_lost(&mut self, now: Time) {
        let now_us = now.as_micros() as u32;
        let mut runs = LossRuns::new(&mut self.controller, self.lost, (now, self.sampler.delivered()));
        let head = self.board.una;
        // After an undo a retransmission may be out whose loss mark is gone: it is lost now, and the head goes again.
        self.board.expire_retransmission(head);
        let mut from = head;
        while let Some(seq) = self.board.next_unsacked(from, self.board.next) {
            from = seq + 1;
            let already = self.board.is_lost(seq) && !self.board.is_retransmitted(seq);
            if already || (seq != head && !self.rack.expired(&self.board, seq, now_us)) {
                continue;
            }
            self.board.mark_lost(seq);
            runs.add(&self.board, seq);
        }
        self.lost = runs.finish().0;
        self.output.retransmit_from = head;
    }
}
