//! Reno: doubles each round until loss; then grows one segment a round, and halves on loss.
//!
//! Specification: RFC 5681 section 3.1-3.2, as Linux 6.12 `net/ipv4/tcp_cong.c` implements it. Deviations:
//! docs/reference/deviations.md#loss-based.

use crate::controller::{CaState, CeMarks, Config, Connection, Limits};
use crate::controllers::segment_window::{Acked, Algorithm, Clocks, CoreParams, LossBased, Sampled, Window};
use crate::parameter::{ControllerInfo, parameters};

parameters! {
    /// Reno's parameters: those of the core, because it has none of its own.
    pub struct Params from "";
    ..core: CoreParams;
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "reno",
    summary: "grows by one segment a round, halves its window on loss",
    source: "RFC 5681; Linux 6.12 net/ipv4/tcp_cong.c",
    linux_name: Some("reno"),
    answers_delay: false,
    parameters: Params::PARAMETERS,
};

/// The increase algorithm.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RenoIncrease;

impl Algorithm for RenoIncrease {
    /// Linux's Reno has no such hook.
    fn pkts_acked(&mut self, _: &mut Window, _: Clocks, _: &Sampled) {}

    #[inline]
    fn cong_avoid(&mut self, window: &mut Window, _: Clocks, acked: Acked) {
        window.reno(acked.segments);
    }

    fn ssthresh(&mut self, window: &Window) -> u32 {
        window.half()
    }

    /// A loss is answered as a mark is.
    fn loss_ssthresh(&mut self, _: &Window) -> Option<u32> {
        None
    }

    /// How many segments are marked makes no difference.
    fn on_marks(&mut self, _: &CeMarks) {}

    /// Linux's Reno keeps no state to reset.
    fn on_state(&mut self, _: CaState, _: Clocks, _: u64) {}

    /// Nor any that idleness would shift.
    fn on_transmit_start(&mut self, _: Clocks, _: u32, _: u64) {}

    fn min_rtt_us(&self) -> Option<u32> {
        None
    }
}

/// A Reno connection.
pub type Reno = LossBased<RenoIncrease>;

impl Reno {
    /// A connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Reno {
        LossBased::with_algorithm(RenoIncrease, Limits::INFINITE, &params.core, config, connection)
    }
}
