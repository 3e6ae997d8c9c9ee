//! The state that Linux's core keeps to undo a window reduction (`net/ipv4/tcp_input.c`), for every controller.

use crate::controller::{CaState, StateChange};

/// Whether the core shrinks the window in this state (Linux: `tcp_in_cwnd_reduction`).
#[inline]
pub(crate) const fn in_reduction(state: CaState) -> bool {
    matches!(state, CaState::Cwr | CaState::Recovery)
}

/// The threshold as it stands, but at least 3/4 of a window that outgrew it (Linux: `tcp_current_ssthresh`).
#[inline]
pub(crate) const fn current_ssthresh(cwnd: u32, ssthresh: u32, state: CaState) -> u32 {
    let near_cwnd = (cwnd >> 1) + (cwnd >> 2);
    if in_reduction(state) || ssthresh > near_cwnd { ssthresh } else { near_cwnd }
}

/// The threshold to return to if the reduction proves spurious; zero forbids that (Linux: `tp->prior_ssthresh`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PriorThreshold(u32);

impl PriorThreshold {
    /// A recorded threshold.
    pub(crate) const fn restored(prior_ssthresh: u32) -> PriorThreshold {
        PriorThreshold(prior_ssthresh)
    }

    /// Notes the threshold that a reduction is about to replace. `cwnd` and `ssthresh` are those before it.
    #[inline]
    pub(crate) fn on_state(&mut self, change: &StateChange, cwnd: u32, ssthresh: u32) {
        let current = current_ssthresh(cwnd, ssthresh, change.connection.state);
        match change.to {
            // tcp_enter_loss
            CaState::Loss if change.reduce => self.0 = current,
            // tcp_enter_recovery: from CWR, whose cause is proven, an undo is impossible.
            CaState::Recovery => self.0 = if change.reduce && !change.proven { current } else { 0 },
            // tcp_enter_cwr.
            CaState::Cwr if change.proven => self.0 = 0,
            // After a loss that a tail probe repaired, an undo stays possible (tcp_process_tlp_ack).
            CaState::Loss | CaState::Cwr | CaState::Open | CaState::Disorder => {}
        }
    }

    /// A congestion mark proves that the reduction was due (Linux: `tcp_fastretrans_alert`, step A).
    #[inline]
    pub(crate) fn forbid(&mut self) {
        self.0 = 0;
    }

    /// The threshold to restore, if undoing is allowed.
    #[inline]
    pub(crate) const fn get(self) -> Option<u32> {
        if self.0 == 0 { None } else { Some(self.0) }
    }
}
