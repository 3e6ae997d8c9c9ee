//! BBRv3's constants, as parameters.

use super::Ratio;
use crate::parameter::{ParameterInfo, Slot, parameters};

/// The text that is implemented: the algorithm of version 06 (2026-07-06), which the repository's head only declares normative.
pub const DRAFT: &str =
    "draft-ietf-ccwg-bbr-06, repository ietf-wg-ccwg/draft-ietf-ccwg-bbr at 4ce5e87d (2026-08-03)";

/// The most a gain may be.
const MAX_GAIN: u32 = 1_000;
/// One, times 100.
const ONE: u32 = Ratio::ONE.hundredths();

parameters! {
    /// The defaults are the draft's. Gains and shares are in 1/100.
    pub struct Params from DRAFT;
    /// Draft: `BBR.StartupPacingGain`, section 2.5.
    startup_pacing_gain: Ratio = fraction((100, 1), 277, ONE..=MAX_GAIN, ""), "pacing gain in Startup";
    /// Draft: `BBR.DrainPacingGain`, section 2.5.
    drain_pacing_gain: Ratio = fraction((100, 1), 50, 1..=ONE, ""), "pacing gain in Drain";
    /// Draft: section 5.3.3.1.
    probe_down_pacing_gain: Ratio = fraction((100, 1), 90, 1..=ONE, ""), "pacing gain in ProbeBW_DOWN";
    /// Draft: section 5.3.3.5.
    probe_up_pacing_gain: Ratio = fraction((100, 1), 125, ONE..=MAX_GAIN, ""), "pacing gain in ProbeBW_UP";
    /// Draft: `BBR.DefaultCwndGain`, section 2.6.
    cwnd_gain: Ratio = fraction((100, 1), 200, ONE..=MAX_GAIN, ""), "window gain but for ProbeBW_UP and ProbeRTT";
    /// Draft: section 5.3.3.5.
    probe_up_cwnd_gain: Ratio = fraction((100, 1), 225, ONE..=MAX_GAIN, ""), "window gain in ProbeBW_UP";
    /// Draft: `BBR.ProbeRTTCwndGain`, section 2.16.2.
    probe_rtt_cwnd_gain: Ratio = fraction((100, 1), 50, 1..=MAX_GAIN, ""), "window gain in ProbeRTT";
    /// Draft: `BBR.PacingMarginPercent`, section 2.5.
    pacing_margin_percent: u32 = whole(1, 0..=99, "%"),
        "the pacing rate stays this much below the estimate";
    /// Draft: `BBR.LossThresh`, section 2.8.
    loss_thresh: Ratio = fraction((100, 1), 2, 0..=ONE - 1, ""),
        "share of lost data in a round from which a probe went too high";
    /// Draft: `BBR.Beta`, section 2.8.
    beta: Ratio = fraction((100, 1), 70, 1..=ONE, ""), "the least that a round with loss leaves of a bound";
    /// Draft: `BBR.Headroom`, section 2.8.
    headroom: Ratio = fraction((100, 1), 15, 0..=ONE - 1, ""),
        "share of the long-term bound that is left to others while cruising";
    /// Draft: `BBR.MinPipeCwnd`, section 2.8.
    min_pipe_cwnd: u32 = whole(4, 1..=1_000, "segments"), "the window's floor";
    /// Draft: section 5.3.1.2.
    full_bw_growth: Ratio = fraction((100, 1), 125, ONE..=MAX_GAIN, ""),
        "growth over a round that shows that the pipe is not full";
    /// Draft: section 5.3.1.2.
    full_bw_rounds: u32 = whole(3, 1..=1_000, "rounds"),
        "rounds without growth that show that the pipe is full";
    /// Draft: `BBRStartupFullLossCnt`, section 5.3.1.3.
    full_loss_ranges: u32 = whole(6, 1..=1_000, "ranges"),
        "ranges lost in a round that may end Startup";
    /// Draft: section 5.3.2.
    drain_rounds: u32 = whole(3, 0..=1_000, "rounds"), "Drain ends after more rounds than these";
    /// Draft: `BBR.ExtraAckedFilterLen`, section 2.12.
    extra_acked_rounds: u32 = whole(10, 1..=1_000, "rounds"), "window of the aggregation filter";
    /// Draft: `BBR.MinRTTFilterLen`, section 2.16.1.
    min_rtt_window_s: u32 = whole(10, 1..=3_600, "s"), "lifetime of the minimum RTT";
    // draft 5.3.4.2#9dedfd: the default is the standard
    /// Draft: `BBR.ProbeRTTInterval`, section 2.16.2.
    probe_rtt_interval_s: u32 = whole(5, 1..=3_600, "s"), "least time between two ProbeRTT";
    /// Draft: `BBR.ProbeRTTDuration`, section 2.16.2.
    probe_rtt_ms: u32 = whole(200, 1..=60_000, "ms"), "time at ProbeRTT's window";
    /// Draft: `PickProbeWait`, section 5.3.3.8.3.
    probe_wait_ms: u32 = whole(2_000, 1..=60_000, "ms"), "least time between two probes for bandwidth";
    /// Draft: `PickProbeWait`, section 5.3.3.8.3.
    probe_wait_random_ms: u32 = whole(1_000, 0..=60_000, "ms"), "a random part of this is added to it";
    /// Draft: `IsRenoCoexistenceProbeTime`, section 5.3.3.8.3.
    probe_rounds: u32 = whole(63, 1..=1_000, "rounds"), "most rounds between two probes for bandwidth";
    /// Draft: section 5.5.8.1; one for QUIC, section 5.5.8.2.
    offload_quanta: u32 = whole(3, 1..=100, "quanta"), "the window holds at least so many quanta";
    /// Draft section 5.3.3.9 advances it a round later, in ProbeBW only, and not by a sample of the application's making.
    pr5_advance_on_down: bool = switch(false) from "pull request 5 of the draft's repository",
        "max_bw's cycle advances on entering ProbeBW_DOWN";
    /// Draft section 5.3.4.3 has a filter of five seconds that schedules ProbeRTT, and one of ten. Instead there is one, of
    /// `min_rtt_window_s`, and ProbeRTT's window follows from the minimum before it expired.
    issue109_one_min_rtt: bool = switch(false) from "issue 109 of the draft's repository, as we read it",
        "one filter of the minimum RTT, which schedules ProbeRTT, too, and whose last minimum sizes ProbeRTT's window";
    /// Draft section 5.3.4.3 forgets that the probe's feedback is still to come.
    cut_probe_advances: bool = switch(false) from "docs/reports/bbr3-rate-drop.md",
        "max_bw's cycle also advances when ProbeRTT interrupts a probe for bandwidth";
    /// Draft section 5.3.4.3: any lower RTT does.
    renewal_by_eighth: bool = switch(false) from "docs/reports/bbr3-rate-drop.md",
        "a lower RTT puts off ProbeRTT only if it is lower by an eighth";
    ..basis: Basis;
}

/// Which profile the parameters began with. It has no parameter of its own: `profile` chooses it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Basis {
    /// The draft's text.
    #[default]
    Draft,
    /// The draft's text with the changes that our measurements favour (docs/reports/bbr3-rate-drop.md).
    Repaired,
}

impl Basis {
    pub(crate) const PARAMETERS: &'static [ParameterInfo] = &[];

    pub(crate) fn slot(&mut self, _: &str) -> Option<Slot<'_>> {
        None
    }
}

impl Params {
    /// The defaults of the profile `repaired`.
    pub fn repaired() -> Params {
        Params {
            cut_probe_advances: true,
            renewal_by_eighth: true,
            basis: Basis::Repaired,
            ..Params::default()
        }
    }
}
