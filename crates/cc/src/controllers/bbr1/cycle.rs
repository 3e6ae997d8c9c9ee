//! ProbeBW's cycle of eight pacing gains: one phase probes, one drains, six cruise.

use super::Params;
use crate::controllers::bbr::stamp_delta;
use crate::gain::Gain;

/// Phases in a cycle (Linux: `CYCLE_LEN`).
pub(crate) const CYCLE_LEN: u32 = 8;

/// The flow's position in the cycle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Cycle {
    /// The phase.
    pub(crate) cycle_idx: u32,
    /// When it began, in microseconds.
    pub(crate) cycle_mstamp: u64,
}

impl Cycle {
    /// The pacing gain of the present phase (Linux: `bbr_pacing_gain[]`).
    #[inline]
    pub(crate) const fn pacing_gain(&self, params: &Params) -> Gain {
        match self.cycle_idx {
            0 => params.probe_gain,
            1 => params.probe_drain_gain,
            _ => Gain::ONE,
        }
    }

    /// Begins a cycle at a random phase except the draining one, because there is no queue to drain yet. Linux draws uniformly
    /// below seven; here `random` is reduced modulo seven, so a replay passes the recorded draw itself.
    pub(crate) fn restart(&mut self, params: &Params, random: u32, delivered_us: u64) {
        self.cycle_idx = CYCLE_LEN - 1 - random % params.cycle_rand;
        self.advance(delivered_us);
    }

    /// Enters the next phase.
    #[inline]
    pub(crate) fn advance(&mut self, delivered_us: u64) {
        self.cycle_idx = (self.cycle_idx + 1) & (CYCLE_LEN - 1);
        self.cycle_mstamp = delivered_us;
    }

    /// Whether the phase has lasted longer than the minimum RTT.
    #[inline]
    pub(crate) fn is_full_length(&self, delivered_us: u64, min_rtt_us: u32) -> bool {
        stamp_delta(delivered_us, self.cycle_mstamp) > min_rtt_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cycle_starts_outside_draining_phase() {
        let params = Params::default();
        let starts: [u32; 7] = core::array::from_fn(|random| {
            let mut cycle = Cycle::default();
            cycle.restart(&params, random as u32, 0);
            cycle.cycle_idx
        });
        assert_eq!(starts, [0, 7, 6, 5, 4, 3, 2]);
    }
}
