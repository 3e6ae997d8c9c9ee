//! The constants of Google's BBRv3 for Linux, as parameters.

use crate::gain::Gain;
use crate::parameter::parameters;

/// What is implemented.
pub const SOURCE: &str =
    "Google's BBRv3 for Linux, repository google/bbr, branch v3 at 001a430b, net/ipv4/tcp_bbr.c";

/// The most a gain may be: the kernel keeps gains in ten bits.
const MAX_GAIN: u32 = 1023;
/// The most of numbers that only have to fit.
const MOST: u32 = i32::MAX as u32;
/// One, times 256.
const ONE: u32 = Gain::ONE.q8();

parameters! {
    /// The defaults are the kernel's. Gains and shares are in 1/256. The kernel has no module parameters: there they are constants.
    pub struct Params from SOURCE;
    /// Linux: `bbr_can_use_ecn`; in the kernel the route has to say so (`ip route ... features ecn_low`).
    ecn: bool = switch(false), "negotiates ECN with ECT(0), and answers marks while the RTT is short";
    /// Linux: `bbr_fast_path`. It decides: what it leaves out would change the window and the aggregation filter.
    fast_path: bool = switch(true),
        "skips most of an ACK's work when the application is the limit and nothing was lost or marked";
    /// Linux: `bbr_loss_probe_recovery`.
    loss_probe_recovery: bool = switch(true), "a loss that a tail probe repaired counts as one lost segment";
    /// Linux: `bbr_startup_pacing_gain`.
    startup_gain: Gain = gain(Gain::from_q8(ONE * 277 / 100 + 1), ONE..=MAX_GAIN), "pacing gain in Startup";
    /// Linux: `bbr_startup_cwnd_gain`.
    startup_cwnd_gain: Gain = gain(Gain::from_q8(ONE * 2), ONE..=MAX_GAIN), "window gain in Startup and Drain";
    /// Linux: `bbr_drain_gain`.
    drain_gain: Gain = gain(Gain::from_q8(ONE * 1000 / 2885), 1..=ONE), "pacing gain in Drain";
    /// Linux: `bbr_pacing_gain[BBR_BW_PROBE_UP]`.
    probe_up_gain: Gain = gain(Gain::from_q8(ONE * 5 / 4), ONE..=MAX_GAIN), "pacing gain in ProbeBW_UP";
    /// Linux: `bbr_pacing_gain[BBR_BW_PROBE_DOWN]`.
    probe_down_gain: Gain = gain(Gain::from_q8(ONE * 91 / 100), 1..=ONE), "pacing gain in ProbeBW_DOWN";
    /// Linux: `bbr_cwnd_gain`.
    probe_bw_cwnd_gain: Gain = gain(Gain::from_q8(ONE * 2), ONE..=768), "window gain in ProbeBW";
    /// Linux: `bbr_bw_probe_cwnd_gain`.
    bw_probe_cwnd_gain: u32 = whole(1, 0..=3, "quarters"), "added to the window gain in ProbeBW_UP";
    /// Linux: `bbr_probe_rtt_cwnd_gain`.
    probe_rtt_gain: Gain = gain(Gain::from_q8(ONE / 2), 1..=MAX_GAIN),
        "ProbeRTT's window, as a share of the bandwidth-delay product";
    /// Linux: `bbr_pacing_margin_percent`.
    margin_percent: u32 = whole(1, 0..=99, "%"), "the pacing rate is so much below the estimate";
    /// Linux: `bbr_cwnd_min_target`.
    cwnd_min_target: u32 = whole(4, 1..=1000, "segments"), "the least the window is while nothing is lost";
    /// Linux: `bbr_loss_thresh`.
    loss_threshold: Gain = gain(Gain::from_q8(ONE * 2 / 100), 0..=ONE - 1),
        "share of lost segments in a round above which the flight is too large";
    /// Linux: `bbr_beta`.
    loss_cut: Gain = gain(Gain::from_q8(ONE * 30 / 100), 0..=ONE), "share that a round with loss takes off a bound";
    /// Linux: `bbr_inflight_headroom`.
    inflight_headroom: Gain = gain(Gain::from_q8(ONE * 15 / 100), 0..=ONE),
        "share of inflight_hi that is left to others while cruising";
    /// Linux: `bbr_full_bw_thresh`.
    full_bw_thresh: Gain = gain(Gain::from_q8(ONE * 5 / 4), ONE..=MAX_GAIN),
        "growth that shows that the pipe was not full";
    /// Linux: `bbr_full_bw_cnt`.
    full_bw_cnt: u32 = whole(3, 1..=3, "rounds"), "rounds without such growth until the pipe counts as full";
    /// Linux: `bbr_full_loss_cnt`.
    full_loss_cnt: u32 = whole(6, 0..=15, "ACKs"),
        "ACKs that show losses in a round that may end Startup; 0 for no end by loss";
    /// Linux: `bbr_full_ecn_cnt`.
    full_ecn_cnt: u32 = whole(2, 0..=3, "rounds"),
        "rounds with many marks that end Startup; 0 for no end by marks";
    /// Linux: `bbr_extra_acked_gain`.
    extra_acked_gain: Gain = gain(Gain::ONE, 0..=MAX_GAIN),
        "how much of what ACKs deliver beyond the expected is added to the window";
    /// Linux: `bbr_extra_acked_win_rtts`; one round until the pipe was full.
    extra_acked_win_rtts: u32 = whole(5, 1..=31, "rounds"), "half the window of the aggregation filter";
    /// Linux: `bbr_extra_acked_max_us`.
    extra_acked_max_ms: u32 = whole(100, 0..=60_000, "ms"), "the most time for which aggregation may be made up";
    /// Linux: `bbr_ecn_max_rtt_us`.
    ecn_max_rtt_us: u32 = whole(5_000, 0..=MOST, "us"), "the longest minimum RTT at which marks count; 0 for any";
    /// Linux: `bbr_ecn_alpha_gain`.
    ecn_alpha_gain: Gain = gain(Gain::from_q8(ONE / 16), 0..=ONE), "weight of a round in the share of marked segments";
    /// Linux: `bbr_ecn_alpha_init`.
    ecn_alpha_init: Gain = gain(Gain::ONE, 0..=ONE), "the share of marked segments before any was seen";
    /// Linux: `bbr_ecn_factor`.
    ecn_factor: Gain = gain(Gain::from_q8(ONE / 3), 0..=ONE),
        "times the share of marked segments: what a round with marks takes off inflight_lo";
    /// Linux: `bbr_ecn_thresh`.
    ecn_thresh: Gain = gain(Gain::from_q8(ONE / 2), 0..=ONE),
        "share of marked segments above which the flight is too large; 0 for none";
    /// Linux: `bbr_ecn_reprobe_gain`.
    ecn_reprobe_gain: Gain = gain(Gain::from_q8(ONE / 2), 0..=ONE),
        "share of inflight_hi by which the first probe after marks raises it; 0 for no such probe";
    /// Linux: `bbr_bw_probe_max_rounds`.
    bw_probe_max_rounds: u32 = whole(63, 0..=255, "rounds"), "the most rounds between two probes";
    /// Linux: `bbr_bw_probe_rand_rounds`.
    bw_probe_rand_rounds: u32 = whole(2, 1..=255, "rounds"), "these are shortened at random by fewer than so many";
    /// Linux: `bbr_bw_probe_base_us`.
    bw_probe_base_us: u32 = whole(2_000_000, 0..=MOST, "us"), "the least time between two probes";
    /// Linux: `bbr_bw_probe_rand_us`.
    bw_probe_rand_us: u32 = whole(1_000_000, 1..=MOST, "us"), "a random part of this is added";
    /// Linux: `bbr_min_rtt_win_sec`.
    min_rtt_win_sec: u32 = whole(10, 1..=3600, "s"), "how long a minimum RTT counts";
    /// Linux: `bbr_probe_rtt_win_ms`.
    probe_rtt_win_ms: u32 = whole(5_000, 1..=3_600_000, "ms"), "ProbeRTT follows so long after the lowest RTT";
    /// Linux: `bbr_probe_rtt_mode_ms`.
    probe_rtt_mode_ms: u32 = whole(200, 0..=60_000, "ms"), "the least time in ProbeRTT; 0 switches it off";
    /// Linux: `bbr_tso_rtt_shift`.
    tso_rtt_shift: u32 = whole(9, 0..=31, ""),
        "each 2^shift microseconds of RTT halve what a burst gets for it; 0 for nothing";
    /// Linux: `net.ipv4.tcp_min_tso_segs`.
    min_tso_segs: u32 = whole(2, 1..=1000, "segments"), "the fewest segments in a burst";
    /// Linux: `sk_pacing_shift`.
    pacing_shift: u32 = whole(10, 0..=31, ""), "a burst holds what the rate sends in 1/2^shift seconds, and more for the RTT";
}
