//! The window: a multiple of the bandwidth-delay product, the effect of loss recovery, and the caps.

use super::Params;
use crate::controller::CaState;
use crate::controllers::bbr::bandwidth::INITIAL_CWND;

/// Room for bursts at both ends, an even number, and in the probing phase two more (Linux: `bbr_quantization_budget`).
#[inline]
pub(crate) const fn quantise(cwnd: u32, burst_goal: u32, probing: bool) -> u32 {
    let even = cwnd.wrapping_add(3 * burst_goal + 1) & !1;
    if probing { even.wrapping_add(2) } else { even }
}

/// The state of loss recovery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// The window to return to.
    pub(crate) prior_cwnd: u32,
    /// The recovery state at the last ACK that delivered something, or at a timeout.
    pub(crate) prev_ca_state: CaState,
    /// The first round of recovery: send as much as is delivered.
    pub(crate) packet_conservation: bool,
}

/// One ACK, as recovery sees it.
pub(crate) struct Progress {
    pub(crate) state: CaState,
    pub(crate) newly_delivered: u32,
    pub(crate) newly_lost: u32,
    pub(crate) in_flight: u32,
}

/// The effect of recovery on the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    pub(crate) cwnd: u32,
    /// Conservation sets the window, whatever the target.
    pub(crate) conserved: bool,
    /// Recovery began, and a round with it.
    pub(crate) round_begins: bool,
}

impl Recovery {
    /// Notes the window to return to (Linux: `bbr_save_cwnd`); one that is already cut only counts if it is larger.
    #[inline]
    pub(crate) fn save(&mut self, cwnd: u32, in_probe_rtt: bool) {
        let good = self.prev_ca_state < CaState::Recovery && !in_probe_rtt;
        self.prior_cwnd = if good { cwnd } else { self.prior_cwnd.max(cwnd) };
    }

    /// Takes losses off the window, and begins or ends recovery (Linux: `bbr_set_cwnd_to_recover_or_restore`).
    #[inline]
    pub(crate) fn on_ack(&mut self, cwnd: u32, acked: &Progress) -> Recovered {
        let mut cwnd = cwnd;
        if acked.newly_lost > 0 {
            cwnd = (cwnd as i32).wrapping_sub(acked.newly_lost as i32).max(1) as u32;
        }
        let (before, now) = (self.prev_ca_state, acked.state);
        let round_begins = now == CaState::Recovery && before != CaState::Recovery;
        if round_begins {
            self.packet_conservation = true;
            cwnd = acked.in_flight + acked.newly_delivered;
        } else if before >= CaState::Recovery && now < CaState::Recovery {
            self.packet_conservation = false;
            cwnd = cwnd.max(self.prior_cwnd);
        }
        self.prev_ca_state = now;
        if self.packet_conservation {
            cwnd = cwnd.max(acked.in_flight + acked.newly_delivered);
        }
        Recovered { cwnd, conserved: self.packet_conservation, round_begins }
    }
}

/// Grows the window towards its target, and cuts it to the target once the pipe was full (Linux: `bbr_set_cwnd`).
/// `delivered` wraps, as there.
#[inline]
pub(crate) fn approach(
    params: &Params,
    cwnd: u32,
    target: u32,
    acked: u32,
    full: bool,
    delivered: u32,
) -> u32 {
    let cwnd = if full {
        (cwnd + acked).min(target)
    } else if cwnd < target || delivered < INITIAL_CWND {
        cwnd + acked
    } else {
        cwnd
    };
    cwnd.max(params.cwnd_min_target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cwnd_is_even_with_burst_room() {
        for (cwnd, burst, probing, expected) in
            [(10, 1, false, 14), (11, 1, false, 14), (11, 1, true, 16), (10, 2, false, 16)]
        {
            assert_eq!(quantise(cwnd, burst, probing), expected, "{cwnd} {burst} {probing}");
        }
    }

    #[test]
    fn recovery_conserves_then_restores_cwnd() {
        let mut recovery = Recovery::default();
        recovery.save(100, false);
        let acked = Progress { state: CaState::Recovery, newly_delivered: 2, newly_lost: 10, in_flight: 1 };
        // Three segments: below the floor of four, which conservation skips.
        assert_eq!(recovery.on_ack(100, &acked), Recovered { cwnd: 3, conserved: true, round_begins: true });
        assert_eq!(recovery.on_ack(3, &Progress { in_flight: 7, newly_lost: 0, ..acked }).cwnd, 9);
        let open = Progress { state: CaState::Open, newly_lost: 0, ..acked };
        assert_eq!(recovery.on_ack(9, &open), Recovered { cwnd: 100, conserved: false, round_begins: false });
    }

    #[test]
    fn reduced_cwnd_saves_only_if_larger() {
        let saved = |prev_ca_state, in_probe_rtt| {
            let mut recovery = Recovery { prior_cwnd: 100, prev_ca_state, ..Recovery::default() };
            recovery.save(50, in_probe_rtt);
            recovery.prior_cwnd
        };
        assert_eq!(saved(CaState::Recovery, false), 100);
        assert_eq!(saved(CaState::Open, true), 100);
        assert_eq!(saved(CaState::Disorder, false), 50);
    }

    #[test]
    fn losses_reduce_cwnd_but_keep_one() {
        let mut recovery = Recovery { prev_ca_state: CaState::Recovery, ..Recovery::default() };
        let acked = Progress { state: CaState::Recovery, newly_delivered: 1, newly_lost: 3, in_flight: 0 };
        assert_eq!(recovery.on_ack(10, &acked).cwnd, 7);
        assert_eq!(recovery.on_ack(2, &acked).cwnd, 1);
    }

    #[test]
    fn startup_exceeds_target_for_ten_segments() {
        let params = Params::default();
        assert_eq!(approach(&params, 10, 8, 2, false, 9), 12);
        assert_eq!(approach(&params, 10, 8, 2, false, 10), 10);
        assert_eq!(approach(&params, 10, 8, 2, true, 10), 8);
        assert_eq!(approach(&params, 2, 3, 1, true, 10), 4);
    }
}
