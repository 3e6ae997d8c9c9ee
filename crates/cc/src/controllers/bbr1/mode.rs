//! What the flow is doing, and the steps from one mode to the next.

/// What the flow is doing (Linux: `enum bbr_mode`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Mode {
    /// Searching for the bandwidth.
    #[default]
    Startup = 0,
    /// Emptying the queue that Startup built.
    Drain = 1,
    /// Cycling gains around the estimate.
    ProbeBw = 2,
    /// Measuring the minimum RTT.
    ProbeRtt = 3,
}

/// The steps that `tcp_bbr.c` takes, and the function that takes each.
pub(crate) const STEPS: [(Mode, Mode, &str); 8] = [
    (Mode::Startup, Mode::Drain, "bbr_check_drain"),
    (Mode::Drain, Mode::ProbeBw, "bbr_check_drain"),
    // A policer's rate has expired: the cycle begins anew.
    (Mode::ProbeBw, Mode::ProbeBw, "bbr_lt_bw_sampling"),
    (Mode::Startup, Mode::ProbeRtt, "bbr_update_min_rtt"),
    (Mode::Drain, Mode::ProbeRtt, "bbr_update_min_rtt"),
    (Mode::ProbeBw, Mode::ProbeRtt, "bbr_update_min_rtt"),
    // The pipe was never full: the search goes on.
    (Mode::ProbeRtt, Mode::Startup, "bbr_check_probe_rtt_done"),
    (Mode::ProbeRtt, Mode::ProbeBw, "bbr_check_probe_rtt_done"),
];

impl Mode {
    /// Whether [`STEPS`] has the step from this mode to that one.
    pub(crate) fn may_become(self, to: Mode) -> bool {
        STEPS.iter().any(|&(from, next, _)| (from, next) == (self, to))
    }
}
