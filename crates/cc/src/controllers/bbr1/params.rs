//! BBRv1's constants, as parameters.

use crate::gain::Gain;
use crate::parameter::{ControllerInfo, parameters};

/// The most a gain may be: Linux keeps gains in ten bits.
const MAX_GAIN: u32 = 1023;
/// The most of numbers that only have to fit.
const MOST: u32 = i32::MAX as u32;
/// One, times 256.
const ONE: u32 = Gain::ONE.q8();

parameters! {
    /// The defaults are Linux's. Gains are in 1/256.
    pub struct Params from "Linux 6.12 net/ipv4/tcp_bbr.c";
    /// Linux: `bbr_high_gain`.
    high_gain: Gain = gain(Gain::from_q8(ONE * 2885 / 1000 + 1), ONE..=MAX_GAIN),
        "pacing and window gain in Startup";
    /// Linux: `bbr_drain_gain`.
    drain_gain: Gain = gain(Gain::from_q8(ONE * 1000 / 2885), 1..=ONE), "pacing gain in Drain";
    /// Linux: `bbr_cwnd_gain`.
    cwnd_gain: Gain = gain(Gain::from_q8(ONE * 2), ONE..=MAX_GAIN), "window gain in ProbeBW";
    /// Linux: `bbr_pacing_gain[0]`.
    probe_gain: Gain = gain(Gain::from_q8(ONE * 5 / 4), ONE..=MAX_GAIN),
        "pacing gain of ProbeBW's probing phase";
    /// Linux: `bbr_pacing_gain[1]`.
    probe_drain_gain: Gain = gain(Gain::from_q8(ONE * 3 / 4), 1..=ONE),
        "pacing gain of ProbeBW's draining phase";
    /// Linux: `bbr_cycle_rand`.
    cycle_rand: u32 = whole(7, 1..=8, ""), "ProbeBW starts at random among this many phases";
    /// Linux: `bbr_bw_rtts`.
    bw_window_rounds: u32 = whole(10, 1..=1000, "rounds"), "window of the bandwidth filter";
    /// Linux: `bbr_min_rtt_win_sec`.
    min_rtt_window_s: u32 = whole(10, 1..=3600, "s"), "lifetime of the minimum RTT";
    /// Linux: `bbr_probe_rtt_mode_ms`.
    probe_rtt_ms: u32 = whole(200, 0..=60_000, "ms"),
        "time at the minimal window; 0 switches ProbeRTT off";
    /// Linux: `bbr_cwnd_min_target`.
    cwnd_min_target: u32 = whole(4, 1..=1000, "segments"), "the window's floor, and ProbeRTT's window";
    /// Linux: `bbr_full_bw_thresh`.
    full_bw_thresh: Gain = gain(Gain::from_q8(ONE * 5 / 4), ONE..=MAX_GAIN),
        "growth over a round that shows that the pipe is not full";
    /// Linux: `bbr_full_bw_cnt`.
    full_bw_cnt: u32 = whole(3, 1..=1000, "rounds"),
        "rounds without growth that show that the pipe is full";
    /// Linux: `bbr_pacing_margin_percent`.
    pacing_margin_percent: u32 = whole(1, 0..=99, "%"),
        "the pacing rate stays this much below the estimate";
    /// Before 4.20 Linux computed the rate of whole packets (`tcp_mss_to_mtu` in `bbr_rate_bytes_per_sec`) and, without fq,
    /// timed their payload by it (`tcp_internal_pacing`): with 52 bytes of headers and no margin, 3.6 % faster than the
    /// estimate.
    unpaced_header_bytes: u32 = whole(0, 0..=256, "bytes") from "Linux 4.15 net/ipv4/tcp_bbr.c, tcp_output.c",
        "headers that the rate counts and pacing does not";
    /// Linux: `bbr_min_tso_rate`.
    min_tso_rate_bps: u32 = whole(1_200_000, 0..=MOST, "bit/s"), "below this rate a burst is one segment";
    /// Linux: `sk_pacing_shift`.
    pacing_shift: u32 = whole(10, 0..=31, ""), "a burst holds the data of 1/2^shift seconds";
    /// Linux: `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`.
    tso_goal_max_bytes: u32 = whole(0, 0..=MOST, "bytes")
        from "Linux 6.12 include/net/tcp.h, include/linux/netdevice.h",
        "the largest burst, as BBR plans; 0 for the host's largest packet";
    /// Linux: the `lt_bw` code, which has no switch there.
    lt_bw: bool = switch(true), "detect policers and hold their rate";
    /// Four times that is the most (Linux: `bbr_lt_intvl_min_rtts`).
    lt_intvl_min_rtts: u32 = whole(4, 1..=31, "rounds"), "least length of a policer sampling interval";
    /// Linux: `bbr_lt_loss_thresh`.
    lt_loss_thresh: Gain = gain(Gain::from_q8(50), 0..=ONE),
        "ratio of lost to delivered from which an interval is lossy";
    /// Linux: `bbr_lt_bw_ratio`.
    lt_bw_ratio: Gain = gain(Gain::from_q8(ONE / 8), 0..=ONE),
        "two intervals agree if their rates differ by at most this share";
    /// Linux: `bbr_lt_bw_diff`.
    lt_bw_diff: u32 = whole(4_000 / 8, 0..=MOST, "byte/s"), "or by at most this";
    /// Linux: `bbr_lt_bw_max_rtts`.
    lt_bw_max_rtts: u32 = whole(48, 1..=127, "rounds"), "how long the policed rate is held";
    /// Linux: `bbr_extra_acked_gain`.
    extra_acked_gain: Gain = gain(Gain::ONE, 0..=MAX_GAIN),
        "share of the measured ACK aggregation added to the window";
    /// Linux: `bbr_extra_acked_win_rtts`.
    extra_acked_win_rtts: u32 = whole(5, 1..=31, "rounds"), "half the window of the aggregation filter";
    /// Linux: `bbr_extra_acked_max_us`.
    extra_acked_max_ms: u32 = whole(100, 0..=10_000, "ms"), "the addition is at most the data of this time";
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "bbr1",
    summary: "paces at the measured bandwidth and keeps about two bandwidth-delay products in flight",
    source: "Linux 6.12 net/ipv4/tcp_bbr.c; Cardwell et al., ACM Queue 14(5), 2016",
    linux_name: Some("bbr"),
    answers_delay: false,
    parameters: Params::PARAMETERS,
};
