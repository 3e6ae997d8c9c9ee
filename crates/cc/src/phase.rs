//! The phase of a flow from what a kernel reports of it, for hosts whose controller is not ours.

use crate::controller::{CaState, Phase};

/// The gains of a stock kernel's BBRv1, times 256.
pub(crate) mod stock {
    /// Linux: `bbr_high_gain`.
    pub(crate) const HIGH: u32 = 739;
    /// Linux: `bbr_drain_gain`.
    pub(crate) const DRAIN: u32 = 88;
    /// Linux: the first of `bbr_pacing_gain`.
    pub(crate) const PROBE: u32 = 320;
    /// Linux: the second of `bbr_pacing_gain`.
    pub(crate) const PROBE_DRAIN: u32 = 192;
    /// Linux: `BBR_UNIT`.
    pub(crate) const ONE: u32 = 256;
}

/// What a loss-based controller does in this recovery state, with this window and threshold in segments.
pub const fn loss_based(state: CaState, cwnd: u32, ssthresh: u32) -> Phase {
    match state {
        CaState::Loss => Phase::Loss,
        CaState::Recovery | CaState::Cwr => Phase::Recovery,
        CaState::Open | CaState::Disorder if cwnd < ssthresh => Phase::SlowStart,
        CaState::Open | CaState::Disorder => Phase::CongestionAvoidance,
    }
}

/// The phase that follows from a stock kernel's gains, times 256 as `TCP_CC_INFO` reports them (Linux: `bbr_update_gains`). A
/// policer's rate in force reads as cruising.
pub fn of_gains(pacing_gain: u32, cwnd_gain: u32) -> Phase {
    match (pacing_gain, cwnd_gain) {
        (stock::HIGH, _) => Phase::Startup,
        (stock::DRAIN, _) => Phase::Drain,
        (stock::ONE, stock::ONE) => Phase::ProbeRtt,
        (stock::PROBE, _) => Phase::ProbeBwUp,
        (stock::PROBE_DRAIN, _) => Phase::ProbeBwDown,
        _ => Phase::ProbeBwCruise,
    }
}
