//! Controllers that are not built in.
//!
//! The built-in ones are dispatched through an enum; a trait object costs only those flows that have one, because it shares
//! the tag of that enum.

use std::fmt;

use fullpipe_cc::*;

/// A controller of somebody's own.
pub type OwnController = Box<dyn Controller + Send>;

/// Makes the controller of a connection whose handshake is done, as `new` of the built-in ones does.
pub type MakeController = Box<dyn FnOnce(&Config, &Connection) -> OwnController + Send>;

/// What makes a flow's own controller when it connects.
pub(crate) struct Maker(pub(crate) MakeController);

impl fmt::Debug for Maker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Maker")
    }
}

/// A built-in controller, or one of somebody's own.
#[allow(clippy::large_enum_variant, reason = "one a flow, and the built-in ones are the common case")]
pub(crate) enum Plugged {
    BuiltIn(Any),
    Own(OwnController),
}

impl fmt::Debug for Plugged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plugged::BuiltIn(controller) => controller.fmt(f),
            Plugged::Own(_) => f.write_str("Own"),
        }
    }
}

/// A [`Plugged`]; where assertions are on, the order of its events is checked.
#[cfg(debug_assertions)]
pub(crate) type Held = Ordered<Plugged>;
#[cfg(not(debug_assertions))]
pub(crate) type Held = Plugged;

#[cfg(debug_assertions)]
pub(crate) fn hold(controller: Plugged) -> Held {
    Held::new(controller, CaState::Open)
}

#[cfg(not(debug_assertions))]
pub(crate) fn hold(controller: Plugged) -> Held {
    controller
}

/// Whether it is built in.
#[cfg(debug_assertions)]
pub(crate) fn is_built_in(held: &Held) -> bool {
    matches!(held.controller(), Plugged::BuiltIn(_))
}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn is_built_in(held: &Held) -> bool {
    matches!(held, Plugged::BuiltIn(_))
}

/// One that is built in, for the most frequent events: where any other call could follow, the sender's state and the event
/// would have to be in memory before it, and be read again after it, a twentieth of all instructions.
#[cfg(debug_assertions)]
pub(crate) fn built_in(held: &mut Held) -> &mut Held {
    held
}

#[cfg(not(debug_assertions))]
#[inline]
pub(crate) fn built_in(held: &mut Held) -> &mut Any {
    match held {
        Plugged::BuiltIn(controller) => controller,
        Plugged::Own(_) => unreachable!("see `is_built_in`"),
    }
}

/// Calls what is rarely called. Events are copied for it: if a reference to one reached a call that nobody can see through, every
/// ACK of a built-in controller would write its event to memory, a tenth of all instructions.
#[cold]
#[inline(never)]
fn apart<T>(call: impl FnOnce() -> T) -> T {
    call()
}

/// Tells the variant of an event.
macro_rules! report {
    ($self:ident, $method:ident, $event:ident) => {
        match $self {
            Plugged::BuiltIn(controller) => controller.$method($event),
            Plugged::Own(controller) => {
                let event = *$event;
                apart(move || controller.$method(&event))
            }
        }
    };
}

/// Asks the variant.
macro_rules! ask {
    ($self:ident, $method:ident) => {
        match $self {
            Plugged::BuiltIn(controller) => controller.$method(),
            Plugged::Own(controller) => apart(|| controller.$method()),
        }
    };
}

impl Controller for Plugged {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        report!(self, on_transmit_start, start)
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        report!(self, on_window_unused, unused)
    }
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        report!(self, on_sent, sent)
    }
    /// Inlined for the same reason as that of [`Any`].
    #[inline(always)]
    fn on_rtt(&mut self, sample: &RttSample) {
        report!(self, on_rtt, sample)
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        report!(self, on_ce, marks)
    }
    fn on_undo(&mut self, undo: &Undo) {
        report!(self, on_undo, undo)
    }
    #[inline]
    fn on_lost(&mut self, lost: &Lost) {
        report!(self, on_lost, lost)
    }
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        report!(self, on_tail_repair, repair)
    }
    fn on_discarded(&mut self, discarded: &Discarded) {
        report!(self, on_discarded, discarded)
    }
    fn on_state(&mut self, change: &StateChange) {
        report!(self, on_state, change)
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        report!(self, on_ack, ack)
    }
    fn on_mss(&mut self, mss: u32) {
        match self {
            Plugged::BuiltIn(controller) => controller.on_mss(mss),
            Plugged::Own(controller) => controller.on_mss(mss),
        }
    }
    #[inline]
    fn limits(&self) -> Limits {
        ask!(self, limits)
    }
    fn snapshot(&self) -> Snapshot {
        ask!(self, snapshot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No word more for every flow, and no second tag to look at.
    #[test]
    fn one_tag_tells_all_controllers_apart() {
        assert_eq!(size_of::<Plugged>(), size_of::<Any>());
    }
}
