//! The long-term model: how much may be in flight by what earlier probes for bandwidth lost, and when to probe again.

use super::ratio::times;
use super::{INFINITY, Params, Sample};

/// What the ACKs say about a probe (draft: `BBR.ack_phase`, section 2.14).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AckPhase {
    /// `ACKS_INIT`: nothing.
    #[default]
    Init,
    /// `ACKS_REFILLING`: nothing yet, the pipe is being filled.
    Refilling,
    /// `ACKS_PROBE_STARTING`: nothing yet, the probe's data is on its way.
    Starting,
    /// `ACKS_PROBE_FEEDBACK`: how the probe fares.
    Feedback,
    /// `ACKS_PROBE_STOPPING`: how the probe fared that is over.
    Stopping,
}

/// The model and the probe's clock. Volumes are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProbeBw {
    /// The most that earlier probes found safe, or [`INFINITY`].
    pub(crate) inflight_longterm: u64,
    /// Acknowledged since the bound last grew.
    pub(crate) bw_probe_up_acked: u64,
    /// To be acknowledged before the bound grows by a segment, or [`INFINITY`].
    pub(crate) probe_up_acked_per_inc: u64,
    /// When the cycle began, in microseconds.
    pub(crate) cycle_stamp: u64,
    /// How long to wait before the next probe, in microseconds.
    pub(crate) bw_probe_wait: u32,
    /// Rounds in which the bound grew in this probe.
    pub(crate) bw_probe_up_rounds: u32,
    /// Rounds since the last probe, and a random one.
    pub(crate) rounds_since_probe_up: u32,
    pub(crate) ack_phase: AckPhase,
    /// ACKs are of data sent by a probe, and it has not been answered.
    pub(crate) is_bw_probe_sample: bool,
    /// The last probe lost too much.
    pub(crate) prev_probe_too_high: bool,
    /// The last probe was stopped for caution only.
    pub(crate) prev_probe_precautionary: bool,
}

impl ProbeBw {
    pub(crate) const fn new() -> ProbeBw {
        // draft 5.2.1: OnInit
        ProbeBw {
            inflight_longterm: INFINITY,
            bw_probe_up_acked: 0,
            probe_up_acked_per_inc: INFINITY,
            cycle_stamp: 0,
            bw_probe_wait: 0,
            bw_probe_up_rounds: 0,
            rounds_since_probe_up: 0,
            ack_phase: AckPhase::Init,
            is_bw_probe_sample: false,
            prev_probe_too_high: false,
            prev_probe_precautionary: false,
        }
    }

    /// Waits for 2 to 3 s from now, and counts rounds from 0 or 1.
    pub(crate) fn pick_probe_wait(&mut self, params: &Params, random: u32) {
        // draft 5.3.3.8.3: PickProbeWait
        self.rounds_since_probe_up = random & 1;
        let most_us = params.probe_wait_random_ms as u64 * 1_000;
        let part_us = ((random >> 1) as u64 * most_us) >> 31;
        self.bw_probe_wait = params.probe_wait_ms * 1_000 + part_us as u32;
    }

    // draft 5.3.3.9: HasElapsedInPhase
    #[inline]
    pub(crate) const fn has_waited(&self, now_us: u64) -> bool {
        now_us > self.cycle_stamp + self.bw_probe_wait as u64
    }

    /// Whether Reno would have grown its window by `target_inflight` bytes since the last probe.
    #[inline]
    pub(crate) fn is_reno_coexistence_probe_time(
        &self,
        params: &Params,
        target_inflight: u64,
        smss: u64,
    ) -> bool {
        // draft 5.3.3.8.3: IsRenoCoexistenceProbeTime. The volume counts segments (docs/explanation/bbr3.md, defect 1).
        let reno_rounds = target_inflight / smss.max(1);
        let rounds = reno_rounds.min(params.probe_rounds as u64);
        self.rounds_since_probe_up as u64 >= rounds
    }

    /// The bound less what is left to others.
    #[inline]
    pub(crate) fn inflight_with_headroom(&self, params: &Params, smss: u64) -> u64 {
        // draft 5.3.3.9: InflightWithHeadroom
        if self.inflight_longterm == INFINITY {
            return INFINITY;
        }
        let headroom = smss.max(params.headroom.of(self.inflight_longterm));
        self.inflight_longterm.saturating_sub(headroom).max(params.min_pipe_cwnd as u64 * smss)
    }

    /// Doubles the growth of the bound.
    pub(crate) fn raise_slope(&mut self, cwnd: u64, smss: u64) {
        // draft 5.3.3.9: RaiseInflightLongtermSlope
        let growth_this_round = 1u64 << self.bw_probe_up_rounds;
        self.bw_probe_up_rounds = (self.bw_probe_up_rounds + 1).min(30);
        self.probe_up_acked_per_inc = (cwnd / growth_this_round).max(smss);
    }

    /// Grows the bound while it limits a probe.
    pub(crate) fn probe_upward(&mut self, acked: &Probed) {
        // draft 5.3.3.9: ProbeInflightLongtermUpward, ProbeInflightLongtermUpward.bw_probe_up_acked.2
        if !acked.is_cwnd_limited || acked.cwnd < self.inflight_longterm {
            return;
        }
        self.bw_probe_up_acked += acked.newly_acked;
        if self.bw_probe_up_acked >= self.probe_up_acked_per_inc {
            let delta = self.bw_probe_up_acked / self.probe_up_acked_per_inc.max(1);
            self.bw_probe_up_acked -= delta * self.probe_up_acked_per_inc;
            self.inflight_longterm += delta * acked.smss;
        }
        if acked.round_start {
            self.raise_slope(acked.cwnd, acked.smss);
        }
    }

    /// A probe lost too much.
    pub(crate) fn on_too_high(&mut self, params: &Params, sample: &Sample, target_inflight: u64) {
        // draft 5.5.10.2: HandleInflightTooHigh
        self.prev_probe_too_high = true;
        self.is_bw_probe_sample = false;
        if !sample.is_app_limited {
            self.inflight_longterm = sample.tx_in_flight.max(params.beta.of(target_inflight));
        }
    }
}

/// One ACK, as a growing bound sees it.
pub(crate) struct Probed {
    pub(crate) newly_acked: u64,
    pub(crate) cwnd: u64,
    pub(crate) smss: u64,
    pub(crate) is_cwnd_limited: bool,
    pub(crate) round_start: bool,
}

/// Whether losses suggest that the flight was too large.
#[inline]
pub(crate) fn is_inflight_too_high(params: &Params, sample: &Sample) -> bool {
    // draft 5.5.10.2: IsInflightTooHigh. Every transport of this interface acknowledges selectively.
    params.loss_thresh.is_exceeded_by(sample.lost, sample.tx_in_flight)
}

/// The flight at which losses crossed the threshold, within a packet of `size` bytes.
pub(crate) fn inflight_at_loss(params: &Params, sample: &Sample, size: u64) -> u64 {
    // draft 5.5.10.2: InflightAtLoss, InflightAtLoss.{lost_prefix, inflight_at_loss}. The prefix may be negative.
    let inflight_prev = sample.tx_in_flight.saturating_sub(size);
    let lost_prev = sample.lost.saturating_sub(size);
    let thresh = params.loss_thresh.hundredths().min(99);
    let (allowed, lost) = (times(inflight_prev, thresh), times(lost_prev, 100));
    let rest = 100 - thresh as u64;
    // BPF has no signed division.
    if allowed >= lost {
        inflight_prev.saturating_add((allowed - lost) / rest)
    } else {
        inflight_prev.saturating_sub((lost - allowed) / rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMSS: u64 = 1_000;

    fn probe(inflight_longterm: u64) -> ProbeBw {
        ProbeBw { inflight_longterm, ..ProbeBw::new() }
    }

    // draft 5.3.3.8.3: PickProbeWait
    // draft 5.3.3.9: HasElapsedInPhase
    #[test]
    fn probe_wait_is_2_to_3s() {
        let mut probe = probe(INFINITY);
        for (random, wait, round) in
            [(0, 2_000_000, 0), (1, 2_000_000, 1), (1 << 31, 2_500_000, 0), (u32::MAX, 2_999_999, 1)]
        {
            probe.pick_probe_wait(&Params::default(), random);
            assert_eq!((probe.bw_probe_wait, probe.rounds_since_probe_up), (wait, round));
        }
        assert!(!probe.has_waited(2_999_999));
        assert!(probe.has_waited(3_000_000));
    }

    // draft 5.3.3.8.3: IsRenoCoexistenceProbeTime, IsRenoCoexistenceProbeTime.{reno_rounds, rounds}
    #[test]
    fn reno_timescale_caps_at_63_rounds() {
        let params = Params::default();
        let is_time = |rounds_since_probe_up, target| {
            ProbeBw { rounds_since_probe_up, ..ProbeBw::new() }
                .is_reno_coexistence_probe_time(&params, target, SMSS)
        };
        assert_eq!([9, 10].map(|rounds| is_time(rounds, 10_999)), [false, true]);
        assert_eq!([62, 63].map(|rounds| is_time(rounds, 5_000_000)), [false, true]);
    }

    // draft 5.3.3.9: InflightWithHeadroom, InflightWithHeadroom.headroom
    #[test]
    fn headroom_is_15_percent_within_limits() {
        let with = |bound| probe(bound).inflight_with_headroom(&Params::default(), SMSS);
        assert_eq!([100_000, 6_000, 4_500].map(with), [85_000, 5_000, 4_000]);
        assert_eq!(with(INFINITY), INFINITY);
    }

    // draft 5.3.3.9: RaiseInflightLongtermSlope, RaiseInflightLongtermSlope.{growth_this_round, probe_up_acked_per_inc}
    // draft 5.3.3.9: ProbeInflightLongtermUpward, ProbeInflightLongtermUpward.{bw_probe_up_acked, delta}
    // draft 5.3.3.9: ProbeInflightLongtermUpward.{bw_probe_up_acked.2, inflight_longterm}
    #[test]
    fn bound_doubles_growth_each_round() {
        let mut probe = probe(64_000);
        probe.raise_slope(64_000, SMSS);
        let grown: [u64; 5] = core::array::from_fn(|_| {
            let before = probe.inflight_longterm;
            let cwnd = before;
            // A round of a window, whose last ACK begins the next.
            for acked in 1..=64 {
                let round_start = acked == 64;
                probe.probe_upward(&Probed {
                    newly_acked: cwnd / 64,
                    cwnd: probe.inflight_longterm,
                    smss: SMSS,
                    is_cwnd_limited: true,
                    round_start,
                });
            }
            (probe.inflight_longterm - before) / SMSS
        });
        assert_eq!(grown, [1, 2, 4, 8, 16]);
    }

    // draft 5.3.3.9: ProbeInflightLongtermUpward
    #[test]
    fn non_limiting_bound_does_not_grow() {
        let mut probe = probe(64_000);
        probe.raise_slope(64_000, SMSS);
        let before = probe;
        let acked = Probed {
            newly_acked: 640_000,
            cwnd: 64_000,
            smss: SMSS,
            is_cwnd_limited: true,
            round_start: true,
        };
        probe.probe_upward(&Probed { cwnd: 63_999, ..acked });
        probe.probe_upward(&Probed { is_cwnd_limited: false, ..acked });
        assert_eq!(probe, before);
    }

    // draft 5.5.10.2: InflightAtLoss, InflightAtLoss.{size, inflight_prev, lost_prev, lost_prefix, inflight_at_loss}
    #[test]
    fn inflight_at_loss_solves_within_packet() {
        let at = |tx_in_flight, lost, size| {
            inflight_at_loss(&Params::default(), &Sample { tx_in_flight, lost, ..Sample::default() }, size)
        };
        // 90,000 before a packet of 10,000, all of it lost: (1,800 - 0) / 0.98 of it fit.
        assert_eq!(at(100_000, 10_000, 10_000), 91_836);
        // More was lost before it than the threshold: the prefix is negative.
        assert_eq!(at(100_000, 20_000, 10_000), 90_000 - 8_367);
        assert_eq!(at(1_000, 5_000, 1_000), 0, "no underflow");
        assert_eq!(at(0, 0, 1_000), 0);
    }
}
