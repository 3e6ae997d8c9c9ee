//! Every built-in controller behind one type, without dynamic dispatch.

use crate::bbr1::Bbr1;
use crate::controller::*;
use crate::cubic::Cubic;
use crate::fixed::Fixed;
use crate::params::Params;
use crate::reno::Reno;
use crate::vegas::Vegas;

/// One of the built-in controllers.
#[derive(Clone, Copy, Debug)]
#[repr(u8)] // A separate tag is faster to read than one hidden in a variant's bool.
#[allow(clippy::large_enum_variant, reason = "one a flow; a box would need an allocator")]
pub enum Any {
    /// Reno.
    Reno(Reno),
    /// CUBIC.
    Cubic(Cubic),
    /// BBR version 1.
    Bbr1(Bbr1),
    /// Vegas.
    Vegas(Vegas),
    /// A fixed window or rate.
    Fixed(Fixed),
}

impl Any {
    /// The controller that `params` names, for a connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Any {
        match params {
            Params::Reno(params) => Any::Reno(Reno::new(params, config, connection)),
            Params::Cubic(params) => Any::Cubic(Cubic::new(params, config, connection)),
            Params::Bbr1(params) => Any::Bbr1(Bbr1::new(params, config, connection)),
            Params::Vegas(params) => Any::Vegas(Vegas::new(params, config, connection)),
            Params::Fixed(params) => Any::Fixed(Fixed::new(params, config, connection)),
        }
    }
}

/// Calls a method of the variant.
macro_rules! each {
    ($self:ident, $controller:ident => $call:expr) => {
        match $self {
            Any::Reno($controller) => $call,
            Any::Cubic($controller) => $call,
            Any::Bbr1($controller) => $call,
            Any::Vegas($controller) => $call,
            Any::Fixed($controller) => $call,
        }
    };
}

impl Controller for Any {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        each!(self, controller => controller.on_transmit_start(start))
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        each!(self, controller => controller.on_window_unused(unused))
    }
    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        each!(self, controller => controller.on_sent(sent))
    }
    /// Called once per ACK, and half of them do nothing: inlined, it costs those no call.
    #[inline(always)]
    fn on_rtt(&mut self, sample: &RttSample) {
        each!(self, controller => controller.on_rtt(sample))
    }
    #[inline]
    fn on_lost(&mut self, lost: &Lost) {
        each!(self, controller => controller.on_lost(lost))
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        each!(self, controller => controller.on_ce(marks))
    }
    fn on_state(&mut self, change: &StateChange) {
        each!(self, controller => controller.on_state(change))
    }
    fn on_undo(&mut self, undo: &Undo) {
        each!(self, controller => controller.on_undo(undo))
    }
    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        each!(self, controller => controller.on_ack(ack))
    }
    fn on_mss(&mut self, mss: u32) {
        each!(self, controller => controller.on_mss(mss))
    }
    #[inline]
    fn limits(&self) -> Limits {
        each!(self, controller => controller.limits())
    }
    fn snapshot(&self) -> Snapshot {
        each!(self, controller => controller.snapshot())
    }
}
