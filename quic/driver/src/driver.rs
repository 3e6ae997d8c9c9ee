//! A driver for stacks that name packets by their numbers.

use crate::events::{Events, Start};
use crate::flight::{Flight, Which};
use fullpipe_cc::{Controller, Limits};
use fullpipe_units::Time;

/// [`Events`], and the notes of the packets in flight.
#[derive(Clone, Debug)]
pub struct Driver<C> {
    events: Events<C>,
    flight: Flight,
}

impl<C> From<Events<C>> for Driver<C> {
    /// At the start of a connection, before any packet.
    fn from(events: Events<C>) -> Driver<C> {
        Driver { events, flight: Flight::new() }
    }
}

impl<C: Controller> Driver<C> {
    /// Drives `controller` from the start of a connection.
    pub fn new(controller: C, start: &Start) -> Driver<C> {
        Events::new(controller, start).into()
    }

    /// The events, for what concerns no single packet.
    pub const fn events(&self) -> &Events<C> {
        &self.events
    }

    /// The same, to report to.
    pub const fn events_mut(&mut self) -> &mut Events<C> {
        &mut self.events
    }

    /// Settles an open ACK, and returns what the controller allows.
    pub fn limits(&mut self) -> Limits {
        self.events.limits()
    }

    /// A packet left that counts for congestion control: an ack-eliciting one of `bytes`. Packets that elicit no ACK are not
    /// reported. `app_limited`: see [`Events::sent`].
    pub fn sent(&mut self, now: Time, number: u64, bytes: u32, app_limited: Option<bool>) {
        if bytes == 0 {
            return;
        }
        let note = self.events.sent(now, bytes, app_limited);
        self.flight.insert(number, bytes, note);
    }

    /// A packet was acknowledged, sent at `sent` if the stack says so. Returns whether it was in flight; nothing happens if not.
    /// `app_limited`: see [`Events::acked`].
    pub fn acked(
        &mut self,
        now: Time,
        number: u64,
        sent: Option<Time>,
        bytes: u32,
        app_limited: bool,
    ) -> bool {
        let Some((bytes, note)) = self.flight.take(&Which { number, sent, bytes: Some(bytes) }) else {
            return false;
        };
        self.events.acked(now, &note, bytes, app_limited);
        true
    }

    /// A packet was declared lost. Returns whether it was in flight; nothing happens if not.
    pub fn lost(&mut self, now: Time, number: u64, bytes: u32) -> bool {
        let Some((bytes, note)) = self.flight.take(&Which { number, sent: None, bytes: Some(bytes) }) else {
            return false;
        };
        self.events.lost(now, &note, bytes);
        true
    }

    /// Brings the flight down to what the stack believes, `in_flight` bytes, for stacks that do not report every packet that they
    /// forget: those of discarded packet number spaces, and lost probes of the path's MTU. Packets above the MTU go first, then the
    /// oldest; a packet larger than the difference stays.
    pub fn reconcile(&mut self, now: Time, in_flight: u64) {
        let mut surplus = (self.events.in_flight() as u64).saturating_sub(in_flight);
        let mtu = self.events.mtu();
        while surplus > 0 {
            let fits = |bytes: u32| bytes as u64 <= surplus;
            let probe = self.flight.take_oldest(|bytes| bytes > mtu && fits(bytes));
            let Some((bytes, _)) = probe.or_else(|| self.flight.take_oldest(fits)) else { return };
            surplus -= bytes as u64;
            self.events.discarded(now, bytes);
        }
    }
}
