//! The states, the steps from one to the next, and the gains of each.

use super::{Params, Ratio};
use crate::controller::Phase;

/// What the flow is doing (draft: `BBR.state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum State {
    /// Searching for the bandwidth.
    #[default]
    Startup,
    /// Emptying the queue that Startup built.
    Drain,
    /// ProbeBW_DOWN: slower than the path delivers.
    Down,
    /// ProbeBW_CRUISE: as fast as it delivers, with headroom.
    Cruise,
    /// ProbeBW_REFILL: as fast as it delivers, without.
    Refill,
    /// ProbeBW_UP: faster.
    Up,
    /// Measuring the minimum RTT.
    ProbeRtt,
}

/// The steps that the draft takes, and the function of its pseudocode that takes each.
pub(crate) const STEPS: [(State, State, &str); 21] = [
    (State::Startup, State::Drain, "CheckStartupDone"),
    (State::Drain, State::Down, "CheckDrainDone"),
    (State::Down, State::Cruise, "IsTimeToCruise"),
    // AdaptLongTermModel, too: the probe before was stopped for caution only.
    (State::Down, State::Refill, "IsTimeToProbeBW"),
    (State::Cruise, State::Refill, "IsTimeToProbeBW"),
    (State::Refill, State::Up, "UpdateProbeBWCyclePhase"),
    // HandleInflightTooHigh, too.
    (State::Up, State::Down, "IsTimeToGoDown"),
    (State::Startup, State::ProbeRtt, "CheckProbeRTT"),
    (State::Drain, State::ProbeRtt, "CheckProbeRTT"),
    (State::Down, State::ProbeRtt, "CheckProbeRTT"),
    (State::Cruise, State::ProbeRtt, "CheckProbeRTT"),
    (State::Refill, State::ProbeRtt, "CheckProbeRTT"),
    (State::Up, State::ProbeRtt, "CheckProbeRTT"),
    (State::ProbeRtt, State::Down, "ExitProbeRTT"),
    (State::ProbeRtt, State::Startup, "ExitProbeRTT"),
    // The loss that ended Startup was none.
    (State::Drain, State::Startup, "HandleSpuriousLossDetection"),
    (State::Down, State::Startup, "HandleSpuriousLossDetection"),
    (State::Cruise, State::Startup, "HandleSpuriousLossDetection"),
    (State::Refill, State::Startup, "HandleSpuriousLossDetection"),
    (State::Up, State::Startup, "HandleSpuriousLossDetection"),
    // Nor the one that ended the probe: REFILL begins anew.
    (State::Refill, State::Refill, "HandleSpuriousLossDetection"),
];

impl State {
    /// Whether [`STEPS`] has the step from this state to that one.
    pub(crate) fn may_become(self, to: State) -> bool {
        STEPS.iter().any(|&(from, next, _)| (from, next) == (self, to))
    }

    // draft 5.3.3.9: IsInAProbeBWState
    #[inline]
    pub(crate) const fn is_probe_bw(self) -> bool {
        matches!(self, State::Down | State::Cruise | State::Refill | State::Up)
    }

    // draft 5.3.3.9: IsProbingBW
    #[inline]
    pub(crate) const fn is_probing_bw(self) -> bool {
        matches!(self, State::Startup | State::Refill | State::Up)
    }

    // draft 5.6.1: the column "Pacing Gain"
    // draft 5.3.1.1: EnterStartup.pacing_gain
    // draft 5.3.2: EnterDrain.pacing_gain
    // draft 5.3.4.3: EnterProbeRTT.pacing_gain
    #[inline]
    pub(crate) const fn pacing_gain(self, params: &Params) -> Ratio {
        match self {
            State::Startup => params.startup_pacing_gain,
            State::Drain => params.drain_pacing_gain,
            State::Down => params.probe_down_pacing_gain,
            State::Up => params.probe_up_pacing_gain,
            State::Cruise | State::Refill | State::ProbeRtt => Ratio::ONE,
        }
    }

    // draft 5.6.1: the column "Cwnd Gain"
    // draft 5.3.1.1: EnterStartup.cwnd_gain
    // draft 5.3.2: EnterDrain.cwnd_gain
    // draft 5.3.3.9: EnterProbeBW.cwnd_gain
    // draft 5.3.4.3: EnterProbeRTT.cwnd_gain
    #[inline]
    pub(crate) const fn cwnd_gain(self, params: &Params) -> Ratio {
        match self {
            State::Up => params.probe_up_cwnd_gain,
            State::ProbeRtt => params.probe_rtt_cwnd_gain,
            State::Startup | State::Drain | State::Down | State::Cruise | State::Refill => params.cwnd_gain,
        }
    }

    /// The state in the terms of all controllers.
    pub(crate) const fn phase(self) -> Phase {
        match self {
            State::Startup => Phase::Startup,
            State::Drain => Phase::Drain,
            State::Down => Phase::ProbeBwDown,
            State::Cruise => Phase::ProbeBwCruise,
            State::Refill => Phase::ProbeBwRefill,
            State::Up => Phase::ProbeBwUp,
            State::ProbeRtt => Phase::ProbeRtt,
        }
    }
}
