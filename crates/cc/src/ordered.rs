//! Checks whether a transport reports events in the order of [`controller`](crate::controller).

use crate::controller::*;
use core::fmt;
use fullpipe_units::Time;

/// A controller, and a check of the transport that drives it: of the order of an ACK's events, and of the recovery state,
/// which has to be the one that the last change led to. Each unit of [`Connection::lost`] has to be reported, and no unit twice.
///
/// Two ACKs at one instant, the first without [`Controller::on_ack`], look like one here, unless the transport says where one ends
/// ([`Ordered::ack_ends`]).
#[derive(Clone, Copy, Debug)]
pub struct Ordered<C> {
    controller: C,
    state: CaState,
    /// When an ACK last undid or changed something, if its `on_ack` has not come yet.
    changed: Option<Time>,
    /// When an ACK last left a recovery, likewise.
    left: Option<Time>,
    /// The ACK reported that a tail probe repaired a loss, and the change of state for it has not come yet.
    repaired: bool,
    /// [`Connection::lost`], once it is known.
    lost: Option<u64>,
    /// The RTT of the ACK whose `on_ack` has not come yet.
    rtt: Option<RttSample>,
    broken: Option<OutOfOrder>,
}

/// An event that came before another one that had to precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfOrder {
    /// When the event came.
    pub at: Time,
    /// The event that came.
    pub seen: AckEvent,
    /// The event that had to come before it.
    pub expected: AckEvent,
}

impl fmt::Display for OutOfOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: expected {:?} before it", self.seen, self.at, self.expected)
    }
}

impl core::error::Error for OutOfOrder {}

/// An event of an ACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum AckEvent {
    /// [`Controller::on_rtt`].
    Rtt = 1,
    /// [`Controller::on_ce`].
    Ce = 2,
    /// [`Controller::on_undo`].
    Undo = 3,
    /// [`Controller::on_state`].
    State = 4,
    /// [`Controller::on_ack`].
    Ack = 5,
    /// [`Controller::on_tail_repair`].
    TailRepair = 6,
    /// [`Controller::on_lost`].
    Lost = 7,
}

impl<C> Ordered<C> {
    /// Drives `controller`, whose connection is in `state`.
    pub const fn new(controller: C, state: CaState) -> Ordered<C> {
        Ordered {
            controller,
            state,
            changed: None,
            left: None,
            repaired: false,
            lost: None,
            rtt: None,
            broken: None,
        }
    }

    /// The controller.
    pub const fn controller(&self) -> &C {
        &self.controller
    }

    /// The first event that came out of order.
    ///
    /// # Errors
    /// When an event came out of order.
    pub const fn verdict(&self) -> Result<(), OutOfOrder> {
        match self.broken {
            Some(broken) => Err(broken),
            None => Ok(()),
        }
    }

    /// An ACK has been handled, whether or not it came to [`Controller::on_ack`]: what follows belongs to another one.
    pub fn ack_ends(&mut self) {
        (self.changed, self.left) = (None, None);
    }

    #[inline]
    fn expect(&mut self, holds: bool, at: Time, seen: AckEvent, expected: AckEvent) {
        if !holds && self.broken.is_none() {
            self.broken = Some(OutOfOrder { at, seen, expected });
        }
    }

    fn expect_state(&mut self, connection: &Connection, seen: AckEvent) {
        let lost = *self.lost.get_or_insert(connection.lost);
        self.expect(lost == connection.lost, connection.now, seen, AckEvent::Lost);
        self.expect(connection.state == self.state, connection.now, seen, AckEvent::State);
    }
}

impl<C: Controller> Controller for Ordered<C> {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.controller.on_transmit_start(start);
    }

    fn on_window_unused(&mut self, unused: &WindowUnused) {
        self.controller.on_window_unused(unused);
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        self.controller.on_sent(sent);
    }

    fn on_rtt(&mut self, sample: &RttSample) {
        let now = sample.now;
        self.expect(self.changed != Some(now), now, AckEvent::State, AckEvent::Rtt);
        self.expect(self.rtt.is_none(), now, AckEvent::Rtt, AckEvent::Ack);
        (self.rtt, self.changed, self.left) = (Some(*sample), None, None);
        self.controller.on_rtt(sample);
    }

    /// Without a time, so that nothing but an RTT of the same ACK orders it.
    fn on_ce(&mut self, marks: &CeMarks) {
        if let (Some(sample), Some(changed)) = (self.rtt, self.changed) {
            self.expect(sample.now != changed, changed, AckEvent::State, AckEvent::Ce);
        }
        self.controller.on_ce(marks);
    }

    fn on_tail_repair(&mut self, repair: &TailRepair) {
        self.expect(self.changed != Some(repair.now), repair.now, AckEvent::State, AckEvent::TailRepair);
        self.repaired = true;
        self.changed = Some(repair.now);
        self.controller.on_tail_repair(repair);
    }

    fn on_undo(&mut self, undo: &Undo) {
        let now = undo.connection.now;
        self.expect(!self.repaired, now, AckEvent::Undo, AckEvent::State);
        self.expect(self.left != Some(now), now, AckEvent::State, AckEvent::Undo);
        self.expect_state(&undo.connection, AckEvent::Undo);
        self.changed = Some(now);
        self.controller.on_undo(undo);
    }

    fn on_lost(&mut self, lost: &Lost) {
        self.expect(!self.repaired, lost.now, AckEvent::TailRepair, AckEvent::State);
        let before = lost.lost.wrapping_sub(lost.units as u64);
        self.expect(self.lost.is_none_or(|known| known == before), lost.now, AckEvent::Lost, AckEvent::Lost);
        self.lost = Some(lost.lost);
        self.controller.on_lost(lost);
    }

    fn on_discarded(&mut self, discarded: &Discarded) {
        self.controller.on_discarded(discarded);
    }

    fn on_state(&mut self, change: &StateChange) {
        let now = change.connection.now;
        self.expect_state(&change.connection, AckEvent::State);
        let repairs = change.to == CaState::Cwr && change.reduce && change.trigger == Trigger::Ack;
        self.expect(!self.repaired || repairs, now, AckEvent::TailRepair, AckEvent::State);
        self.repaired = false;
        if change.trigger == Trigger::Ack {
            self.changed = Some(now);
            // A tail probe's answer leaves CWR before an undo of what came before it (Linux: tcp_process_tlp_ack).
            if self.state >= CaState::Recovery && change.to <= CaState::Disorder {
                self.left = Some(now);
            }
        }
        self.state = change.to;
        self.controller.on_state(change);
    }

    fn on_ack(&mut self, ack: &Ack) {
        let now = ack.connection.now;
        self.expect(self.rtt == ack.rtt_sample(), now, AckEvent::Ack, AckEvent::Rtt);
        self.expect_state(&ack.connection, AckEvent::Ack);
        self.expect(!self.repaired, now, AckEvent::TailRepair, AckEvent::State);
        (self.rtt, self.changed, self.left) = (None, None, None);
        self.controller.on_ack(ack);
    }

    fn on_mss(&mut self, mss: u32) {
        self.controller.on_mss(mss);
    }

    #[inline]
    fn limits(&self) -> Limits {
        self.controller.limits()
    }

    fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controllers::reno::{Params, Reno};
    use crate::testing::{CONFIG, Flow, deliver};

    fn verdict(drive: impl Fn(&mut Flow, &mut Ordered<Reno>)) -> Option<(AckEvent, AckEvent)> {
        let mut flow = Flow::new();
        let reno = Reno::new(&Params::default(), &CONFIG, &flow.connection);
        let mut ordered = Ordered::new(reno, CaState::Open);
        flow.change(&mut ordered, CaState::Recovery, true);
        ordered.on_ack(&Ack { rtt: None, newly_lost: 1, ..flow.ack(1) });
        flow.pass(fullpipe_units::Duration::from_millis(1));
        drive(&mut flow, &mut ordered);
        ordered.verdict().err().map(|broken| (broken.seen, broken.expected))
    }

    fn undo(flow: &Flow, controller: &mut impl Controller) {
        controller.on_undo(&Undo { connection: flow.connection });
    }

    #[test]
    fn the_documented_order_is_accepted() {
        let right = verdict(|flow, ordered| {
            let ack = flow.ack(1);
            ordered.on_rtt(&ack.rtt_sample().unwrap());
            ordered.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
            undo(flow, ordered);
            flow.change(ordered, CaState::Open, false);
            ordered.on_ack(&Ack { connection: flow.connection, ..ack });
            flow.change(ordered, CaState::Loss, true);
            deliver(ordered, &flow.ack(1));
        });
        assert_eq!(right, None);
    }

    #[test]
    fn tail_repair_precedes_its_reduction() {
        let repair = |flow: &Flow, ordered: &mut Ordered<Reno>| {
            let Connection { now, delivered, .. } = flow.connection;
            ordered.on_tail_repair(&TailRepair { now, delivered, units: 1, app_limited: false });
        };
        let right = verdict(|flow, ordered| {
            flow.connection.state = CaState::Recovery;
            repair(flow, ordered);
            flow.change(ordered, CaState::Cwr, true);
            flow.change(ordered, CaState::Open, false);
            ordered.on_ack(&Ack { rtt: None, ..flow.ack(1) });
        });
        assert_eq!(right, None);
        let late = verdict(|flow, ordered| {
            flow.change(ordered, CaState::Cwr, true);
            repair(flow, ordered);
        });
        assert_eq!(late, Some((AckEvent::State, AckEvent::TailRepair)));
        let without = verdict(|flow, ordered| {
            repair(flow, ordered);
            ordered.on_ack(&Ack { rtt: None, ..flow.ack(1) });
        });
        assert_eq!(without, Some((AckEvent::TailRepair, AckEvent::State)));
        let other = verdict(|flow, ordered| {
            repair(flow, ordered);
            flow.change(ordered, CaState::Open, false);
        });
        assert_eq!(other, Some((AckEvent::TailRepair, AckEvent::State)));
    }

    #[test]
    fn every_loss_is_reported_once() {
        let lost = |flow: &Flow, lost| Lost {
            now: flow.connection.now,
            delivered: flow.connection.delivered,
            units: 2,
            new_range: true,
            tx_in_flight: 5,
            tx_delivered: 0,
            tx_lost: 0,
            lost,
            app_limited: false,
        };
        let reported = |totals: &'static [u64], in_the_end: u64| {
            verdict(|flow, ordered| {
                flow.connection.state = CaState::Recovery;
                totals.iter().for_each(|&total| ordered.on_lost(&lost(flow, total)));
                flow.connection.lost = in_the_end;
                ordered.on_ack(&Ack { rtt: None, ..flow.ack(1) });
            })
        };
        assert_eq!(reported(&[2, 4], 4), None);
        assert_eq!(reported(&[2, 6], 6), Some((AckEvent::Lost, AckEvent::Lost)), "one is missing");
        assert_eq!(reported(&[2, 2], 2), Some((AckEvent::Lost, AckEvent::Lost)), "one comes twice");
        assert_eq!(reported(&[2], 4), Some((AckEvent::Ack, AckEvent::Lost)), "the last is missing");
    }

    #[test]
    fn undo_after_state_change_is_rejected() {
        let late = verdict(|flow, ordered| {
            flow.change(ordered, CaState::Open, false);
            undo(flow, ordered);
        });
        assert_eq!(late, Some((AckEvent::State, AckEvent::Undo)));
    }

    #[test]
    fn rtt_of_next_ack_is_accepted() {
        let right = verdict(|flow, ordered| {
            flow.change(ordered, CaState::Open, false);
            ordered.ack_ends();
            deliver(ordered, &flow.ack(1));
        });
        assert_eq!(right, None);
    }

    #[test]
    fn invalid_rtt_or_state_is_rejected() {
        let late = verdict(|flow, ordered| {
            flow.change(ordered, CaState::Open, false);
            deliver(ordered, &flow.ack(1));
        });
        assert_eq!(late, Some((AckEvent::State, AckEvent::Rtt)));
        let missing = verdict(|flow, ordered| ordered.on_ack(&flow.ack(1)));
        assert_eq!(missing, Some((AckEvent::Ack, AckEvent::Rtt)));
        let unknown = verdict(|flow, ordered| {
            flow.connection.state = CaState::Open;
            deliver(ordered, &flow.ack(1));
        });
        assert_eq!(unknown, Some((AckEvent::Ack, AckEvent::State)));
    }
}
