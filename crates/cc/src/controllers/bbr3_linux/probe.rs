//! The upper bound of the flight, and the probes that move it: when to probe, how fast to raise the bound, and what loss makes of it.

use super::Params;
use super::signals::UNSET;
use crate::controllers::bbr::stamp_delta;
use crate::gain::Gain;

/// The phase of ProbeBW (Linux: `enum bbr_pacing_gain_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Phase {
    /// Faster than the path delivers.
    #[default]
    Up = 0,
    /// Slower than the path delivers, to drain the queue.
    Down = 1,
    /// As fast as it delivers, with headroom in flight.
    Cruise = 2,
    /// As fast as it delivers, without headroom.
    Refill = 3,
}

/// What the ACKs that arrive say of the last probe (Linux: `enum bbr_ack_phase`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AckPhase {
    /// Nothing.
    #[default]
    Init = 0,
    /// The pipe is filled; still nothing.
    Refilling = 1,
    /// A probe has begun; ACKs are of what was sent before.
    Starting = 2,
    /// They are of the probe.
    Feedback = 3,
    /// The probe is over, and they still are.
    Stopping = 4,
}

/// The bound and the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Probe {
    /// Where the flow is in the cycle.
    pub(crate) phase: Phase,
    /// When the wall clock of the cycle began, in microseconds.
    pub(crate) cycle_mstamp: u64,
    /// The bound.
    pub(crate) inflight_hi: u32,
    /// Segments delivered for each by which a probe raises it, and those delivered since it last did.
    pub(crate) bw_probe_up_cnt: u32,
    pub(crate) bw_probe_up_acks: u32,
    /// Rounds for which it was raised; five bits.
    pub(crate) bw_probe_up_rounds: u32,
    /// The time to the next probe, and the rounds since the last (eight bits).
    pub(crate) probe_wait_us: u32,
    pub(crate) rounds_since_probe: u32,
    pub(crate) ack_phase: AckPhase,
    /// Samples are of a probe.
    pub(crate) bw_probe_samples: bool,
    /// The last probe lost too much.
    pub(crate) prev_probe_too_high: bool,
    /// The last probe ended where the one before it had lost too much.
    pub(crate) stopped_risky_probe: bool,
}

impl Probe {
    pub(crate) fn new() -> Probe {
        Probe {
            phase: Phase::Up,
            cycle_mstamp: 0,
            inflight_hi: UNSET,
            bw_probe_up_cnt: UNSET,
            bw_probe_up_acks: 0,
            bw_probe_up_rounds: 0,
            probe_wait_us: 0,
            rounds_since_probe: 0,
            ack_phase: AckPhase::Init,
            bw_probe_samples: false,
            prev_probe_too_high: false,
            stopped_risky_probe: false,
        }
    }

    /// Draws when to probe next (Linux: `bbr_pick_probe_wait`, two draws; here both are of one number).
    pub(crate) fn pick_wait(&mut self, params: &Params, random: u32) {
        self.rounds_since_probe = random % params.bw_probe_rand_rounds.max(1);
        self.probe_wait_us = params.bw_probe_base_us.wrapping_add(random % params.bw_probe_rand_us.max(1));
    }

    /// Whether the time to the next probe has passed (Linux: `bbr_has_elapsed_in_phase`).
    #[inline]
    pub(crate) fn has_waited(&self, now_us: u64) -> bool {
        stamp_delta(now_us, self.cycle_mstamp.wrapping_add(self.probe_wait_us as u64)) > 0
    }

    /// Doubles what the next round of a probe adds (Linux: `bbr_raise_inflight_hi_slope`).
    pub(crate) fn raise_slope(&mut self, cwnd: u32) {
        let growth = 1u32 << (self.bw_probe_up_rounds & 31);
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.bw_probe_up_cnt = (cwnd / growth).max(1);
    }

    /// Raises the bound for what was delivered; returns whether it did.
    pub(crate) fn raise(&mut self, newly_delivered: u32) -> bool {
        self.bw_probe_up_acks = self.bw_probe_up_acks.wrapping_add(newly_delivered);
        if self.bw_probe_up_acks < self.bw_probe_up_cnt {
            return false;
        }
        let delta = self.bw_probe_up_acks / self.bw_probe_up_cnt.max(1);
        self.bw_probe_up_acks -= delta * self.bw_probe_up_cnt;
        self.inflight_hi = self.inflight_hi.wrapping_add(delta);
        true
    }

    /// The bound less what is left to others (Linux: `bbr_inflight_with_headroom`).
    #[inline]
    pub(crate) fn with_headroom(&self, params: &Params) -> u32 {
        if self.inflight_hi == UNSET {
            return UNSET;
        }
        let headroom = (params.inflight_headroom.times(self.inflight_hi as u64) as u32).max(1);
        (self.inflight_hi.wrapping_sub(headroom) as i32).max(params.cwnd_min_target as i32) as u32
    }

    /// The binary logarithm of what the first probe after marks adds at once (Linux: `bbr_check_time_to_probe_bw`).
    pub(crate) fn reprobe_rounds(&self, params: &Params) -> u32 {
        let volume = params.ecn_reprobe_gain.times(self.inflight_hi as u64);
        // Of nothing the kernel takes -1, of which the field keeps five bits.
        volume.checked_ilog2().unwrap_or(31) & 31
    }
}

/// What a sample says of loss and marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) tx_in_flight: u32,
    pub(crate) lost: u32,
    /// Delivered over the interval; not positive without one.
    pub(crate) delivered: i32,
    /// Of those, marked; zero if marks do not count.
    pub(crate) delivered_ce: u32,
    pub(crate) app_limited: bool,
}

impl Sample {
    /// Whether its loss or marks show that the flight was too large (Linux: `bbr_is_inflight_too_high`).
    #[inline]
    pub(crate) fn is_too_high(&self, params: &Params) -> bool {
        let lost = self.lost as i32 > 0
            && self.tx_in_flight > 0
            && self.lost > params.loss_threshold.times(self.tx_in_flight as u64) as u32;
        let marked = self.delivered_ce as i32 > 0
            && self.delivered > 0
            && params.ecn_thresh > Gain::from_q8(0)
            && self.delivered_ce > params.ecn_thresh.times(self.delivered as u64) as u32;
        lost || marked
    }

    /// The flight at which the loss rate crossed the threshold, within the last run of `segments` (Linux:
    /// `bbr_inflight_hi_from_lost_skb`).
    pub(crate) fn inflight_at_loss(&self, params: &Params, segments: u32) -> u32 {
        let inflight_prev = self.tx_in_flight.wrapping_sub(segments) as i32;
        let lost_prev = self.lost.wrapping_sub(segments) as i32;
        if inflight_prev < 0 || lost_prev < 0 {
            return UNSET;
        }
        let threshold = params.loss_threshold.q8();
        let budget = (inflight_prev as u64 * threshold as u64 + 255) >> 8;
        let left = budget.saturating_sub(lost_prev as u64);
        let prefix = (left << 8) / Gain::ONE.q8().saturating_sub(threshold).max(1) as u64;
        (inflight_prev as u64).wrapping_add(prefix) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probe_doubles_growth_each_round() {
        let mut probe = Probe { inflight_hi: 100, ..Probe::new() };
        let mut added = [0; 4];
        for added in &mut added {
            probe.raise_slope(100);
            let before = probe.inflight_hi;
            for _ in 0..100 {
                probe.raise(1);
            }
            *added = probe.inflight_hi - before;
        }
        assert_eq!(added, [1, 2, 4, 8]);
    }

    #[test]
    fn headroom_is_38_of_256() {
        let left = |inflight_hi| Probe { inflight_hi, ..Probe::new() }.with_headroom(&Params::default());
        assert_eq!([left(1_000), left(100), left(6), left(4)], [852, 86, 5, 4]);
        assert_eq!(left(UNSET), UNSET);
        assert_eq!(left(1 << 31), 1_828_716_544);
        assert_eq!(left(u32::MAX - 1), 4, "the kernel's comparison is signed");
    }

    #[test]
    fn lost_prefix_is_clamped_and_rounded() {
        let params = Params::default();
        let at = |tx_in_flight, lost, segments| {
            Sample { tx_in_flight, lost, ..Sample::default() }.inflight_at_loss(&params, segments)
        };
        // Of 90 before it: a budget of 1.76, hence two; one was lost before: the rest of the budget over 251/256.
        assert_eq!(at(100, 11, 10), 91);
        assert_eq!(at(100, 13, 10), 90, "what was lost before had crossed the threshold");
        assert_eq!([at(5, 10, 10), at(100, 5, 10)], [UNSET; 2], "nonsense of the transport");
    }

    #[test]
    fn too_many_losses_or_marks_overshoot() {
        let params = Params::default();
        let lost =
            |lost, tx_in_flight| Sample { lost, tx_in_flight, ..Sample::default() }.is_too_high(&params);
        assert_eq!([lost(2, 103), lost(2, 102), lost(1, 51), lost(1, 52)], [false, true, true, false]);
        assert!(!lost(1, 0));
        let marked =
            |delivered_ce| Sample { delivered_ce, delivered: 100, ..Sample::default() }.is_too_high(&params);
        assert_eq!([marked(50), marked(51)], [false, true]);
    }

    #[test]
    fn first_probe_after_marks_adds_half() {
        let rounds = |inflight_hi| Probe { inflight_hi, ..Probe::new() }.reprobe_rounds(&Params::default());
        assert_eq!([rounds(100), rounds(2), rounds(1), rounds(UNSET)], [5, 0, 31, 30]);
    }
}
