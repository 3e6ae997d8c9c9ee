//! BBRv1's constants, as parameters.

use crate::params::{ControllerInfo, Decimal, Kind, ParameterInfo, Slot};

/// One in Q8, the scale of gains (Linux: `BBR_UNIT`).
pub const UNIT: u32 = 1 << 8;

/// The defaults are Linux's (`net/ipv4/tcp_bbr.c`, 6.12). Gains are in Q8: 256 is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// Pacing and window gain in Startup (Linux: `bbr_high_gain`).
    pub high_gain: u32,
    /// Pacing gain in Drain (Linux: `bbr_drain_gain`).
    pub drain_gain: u32,
    /// Window gain in ProbeBW (Linux: `bbr_cwnd_gain`).
    pub cwnd_gain: u32,
    /// Pacing gain of ProbeBW's probing phase (Linux: `bbr_pacing_gain[0]`).
    pub probe_gain: u32,
    /// Pacing gain of ProbeBW's draining phase (Linux: `bbr_pacing_gain[1]`).
    pub probe_drain_gain: u32,
    /// ProbeBW starts at random among this many phases (Linux: `bbr_cycle_rand`).
    pub cycle_rand: u32,
    /// Window of the bandwidth filter in rounds (Linux: `bbr_bw_rtts`).
    pub bw_window_rounds: u32,
    /// Lifetime of the minimum RTT in seconds (Linux: `bbr_min_rtt_win_sec`).
    pub min_rtt_window_s: u32,
    /// Time at the minimal window in milliseconds; zero switches ProbeRTT off (Linux: `bbr_probe_rtt_mode_ms`).
    pub probe_rtt_ms: u32,
    /// The window's floor and ProbeRTT's window in segments (Linux: `bbr_cwnd_min_target`).
    pub cwnd_min_target: u32,
    /// Growth over a round that shows that the pipe is not full, Q8 (Linux: `bbr_full_bw_thresh`).
    pub full_bw_thresh: u32,
    /// Rounds without such growth that show that it is (Linux: `bbr_full_bw_cnt`).
    pub full_bw_cnt: u32,
    /// The pacing rate stays this much below the estimate (Linux: `bbr_pacing_margin_percent`).
    pub pacing_margin_percent: u32,
    /// Headers of a segment that the rate counts and pacing does not. Before 4.20 Linux computed the rate of whole packets
    /// (`tcp_mss_to_mtu` in `bbr_rate_bytes_per_sec`) and, without fq, timed their payload by it
    /// (`tcp_internal_pacing`): with 52 bytes of headers and no margin, 3.6 % faster than the estimate.
    pub unpaced_header_bytes: u32,
    /// Below this rate a burst is one segment, bit/s (Linux: `bbr_min_tso_rate`).
    pub min_tso_rate_bps: u32,
    /// A burst holds the data of 1/2^shift seconds (Linux: `sk_pacing_shift`).
    pub pacing_shift: u32,
    /// The most bytes in a burst, as BBR plans; zero leaves it to the host (Linux: `GSO_LEGACY_MAX_SIZE - 1 -
    /// MAX_TCP_HEADER`).
    pub tso_goal_max_bytes: u32,
    /// Detect policers and hold their rate (Linux: the `lt_bw` code; it has no switch there).
    pub lt_bw: bool,
    /// Least rounds of a policer sampling interval; four times that is the most (Linux: `bbr_lt_intvl_min_rtts`).
    pub lt_intvl_min_rtts: u32,
    /// Lost per delivered that makes an interval lossy, Q8 (Linux: `bbr_lt_loss_thresh`).
    pub lt_loss_thresh: u32,
    /// Two intervals agree if their rates differ by less than this part, Q8 (Linux: `bbr_lt_bw_ratio`).
    pub lt_bw_ratio: u32,
    /// Or by less than this, byte/s (Linux: `bbr_lt_bw_diff`).
    pub lt_bw_diff: u32,
    /// Rounds to hold the policed rate (Linux: `bbr_lt_bw_max_rtts`).
    pub lt_bw_max_rtts: u32,
    /// Share of the measured aggregation that is added to the window, Q8 (Linux: `bbr_extra_acked_gain`).
    pub extra_acked_gain: u32,
    /// Half the window of the aggregation filter in rounds (Linux: `bbr_extra_acked_win_rtts`).
    pub extra_acked_win_rtts: u32,
    /// The addition never exceeds what the estimated bandwidth delivers in this time (Linux: `bbr_extra_acked_max_us`).
    pub extra_acked_max_ms: u32,
}

impl Default for Params {
    fn default() -> Params {
        Params {
            high_gain: UNIT * 2885 / 1000 + 1,
            drain_gain: UNIT * 1000 / 2885,
            cwnd_gain: UNIT * 2,
            probe_gain: UNIT * 5 / 4,
            probe_drain_gain: UNIT * 3 / 4,
            cycle_rand: 7,
            bw_window_rounds: 10,
            min_rtt_window_s: 10,
            probe_rtt_ms: 200,
            cwnd_min_target: 4,
            full_bw_thresh: UNIT * 5 / 4,
            full_bw_cnt: 3,
            pacing_margin_percent: 1,
            unpaced_header_bytes: 0,
            min_tso_rate_bps: 1_200_000,
            pacing_shift: 10,
            tso_goal_max_bytes: 0,
            lt_bw: true,
            lt_intvl_min_rtts: 4,
            lt_loss_thresh: 50,
            lt_bw_ratio: UNIT / 8,
            lt_bw_diff: 4_000 / 8,
            lt_bw_max_rtts: 48,
            extra_acked_gain: UNIT,
            extra_acked_win_rtts: 5,
            extra_acked_max_ms: 100,
        }
    }
}

impl Params {
    #[rustfmt::skip]
    pub(crate) fn slot(&mut self, name: &str) -> Option<Slot<'_>> {
        Some(match name {
            "high_gain" => Slot::Number(&mut self.high_gain),
            "drain_gain" => Slot::Number(&mut self.drain_gain),
            "cwnd_gain" => Slot::Number(&mut self.cwnd_gain),
            "probe_gain" => Slot::Number(&mut self.probe_gain),
            "probe_drain_gain" => Slot::Number(&mut self.probe_drain_gain),
            "cycle_rand" => Slot::Number(&mut self.cycle_rand),
            "bw_window_rounds" => Slot::Number(&mut self.bw_window_rounds),
            "min_rtt_window_s" => Slot::Number(&mut self.min_rtt_window_s),
            "probe_rtt_ms" => Slot::Number(&mut self.probe_rtt_ms),
            "cwnd_min_target" => Slot::Number(&mut self.cwnd_min_target),
            "full_bw_thresh" => Slot::Number(&mut self.full_bw_thresh),
            "full_bw_cnt" => Slot::Number(&mut self.full_bw_cnt),
            "pacing_margin_percent" => Slot::Number(&mut self.pacing_margin_percent),
            "unpaced_header_bytes" => Slot::Number(&mut self.unpaced_header_bytes),
            "min_tso_rate_bps" => Slot::Number(&mut self.min_tso_rate_bps),
            "pacing_shift" => Slot::Number(&mut self.pacing_shift),
            "tso_goal_max_bytes" => Slot::Number(&mut self.tso_goal_max_bytes),
            "lt_bw" => Slot::Switch(&mut self.lt_bw),
            "lt_intvl_min_rtts" => Slot::Number(&mut self.lt_intvl_min_rtts),
            "lt_loss_thresh" => Slot::Number(&mut self.lt_loss_thresh),
            "lt_bw_ratio" => Slot::Number(&mut self.lt_bw_ratio),
            "lt_bw_diff" => Slot::Number(&mut self.lt_bw_diff),
            "lt_bw_max_rtts" => Slot::Number(&mut self.lt_bw_max_rtts),
            "extra_acked_gain" => Slot::Number(&mut self.extra_acked_gain),
            "extra_acked_win_rtts" => Slot::Number(&mut self.extra_acked_win_rtts),
            "extra_acked_max_ms" => Slot::Number(&mut self.extra_acked_max_ms),
            _ => return None,
        })
    }
}

const SOURCE: &str = "Linux 6.12 net/ipv4/tcp_bbr.c";

const fn gain(name: &'static str, summary: &'static str, default: u32, range: (u32, u32)) -> ParameterInfo {
    ParameterInfo {
        name,
        summary,
        default: Decimal::from_ratio(default, UNIT),
        min: Decimal::from_ratio(range.0, UNIT),
        max: Decimal::from_ratio(range.1, UNIT),
        unit: "",
        source: SOURCE,
        kind: Kind::Q8,
    }
}

const fn count(
    name: &'static str,
    unit: &'static str,
    summary: &'static str,
    default: i32,
    range: (i32, i32),
) -> ParameterInfo {
    ParameterInfo {
        name,
        summary,
        default: Decimal::from_integer(default),
        min: Decimal::from_integer(range.0),
        max: Decimal::from_integer(range.1),
        unit,
        source: SOURCE,
        kind: Kind::Whole,
    }
}

/// The most a gain may be: Linux keeps gains in ten bits.
const MAX_GAIN: u32 = 1023;

const PARAMETERS: &[ParameterInfo] = &[
    gain("high_gain", "pacing and window gain in Startup", 739, (UNIT, MAX_GAIN)),
    gain("drain_gain", "pacing gain in Drain", 88, (1, UNIT)),
    gain("cwnd_gain", "window gain in ProbeBW", 512, (UNIT, MAX_GAIN)),
    gain("probe_gain", "pacing gain of ProbeBW's probing phase", 320, (UNIT, MAX_GAIN)),
    gain("probe_drain_gain", "pacing gain of ProbeBW's draining phase", 192, (1, UNIT)),
    count("cycle_rand", "", "ProbeBW starts at random among this many phases", 7, (1, 8)),
    count("bw_window_rounds", "rounds", "window of the bandwidth filter", 10, (1, 1000)),
    count("min_rtt_window_s", "s", "lifetime of the minimum RTT", 10, (1, 3600)),
    count("probe_rtt_ms", "ms", "time at the minimal window; 0 switches ProbeRTT off", 200, (0, 60_000)),
    count("cwnd_min_target", "segments", "the window's floor, and ProbeRTT's window", 4, (1, 1000)),
    gain("full_bw_thresh", "growth over a round that shows that the pipe is not full", 320, (UNIT, MAX_GAIN)),
    count("full_bw_cnt", "rounds", "rounds without growth that show that the pipe is full", 3, (1, 1000)),
    count("pacing_margin_percent", "%", "the pacing rate stays this much below the estimate", 1, (0, 99)),
    ParameterInfo {
        source: "Linux 4.15 net/ipv4/tcp_bbr.c, tcp_output.c",
        ..count(
            "unpaced_header_bytes",
            "bytes",
            "headers that the rate counts and pacing does not",
            0,
            (0, 256),
        )
    },
    count("min_tso_rate_bps", "bit/s", "below this rate a burst is one segment", 1_200_000, (0, i32::MAX)),
    count("pacing_shift", "", "a burst holds the data of 1/2^shift seconds", 10, (0, 31)),
    ParameterInfo {
        source: "Linux 6.12 include/net/tcp.h, include/linux/netdevice.h",
        ..count(
            "tso_goal_max_bytes",
            "bytes",
            "the largest burst, as BBR plans; 0 for the host's largest packet",
            0,
            (0, i32::MAX),
        )
    },
    ParameterInfo {
        kind: Kind::Switch,
        ..count("lt_bw", "", "detect policers and hold their rate", 1, (0, 1))
    },
    count("lt_intvl_min_rtts", "rounds", "least length of a policer sampling interval", 4, (1, 31)),
    gain("lt_loss_thresh", "ratio of lost to delivered from which an interval is lossy", 50, (0, UNIT)),
    gain("lt_bw_ratio", "two intervals agree if their rates differ by at most this share", 32, (0, UNIT)),
    count("lt_bw_diff", "byte/s", "or by at most this", 500, (0, i32::MAX)),
    count("lt_bw_max_rtts", "rounds", "how long the policed rate is held", 48, (1, 127)),
    gain("extra_acked_gain", "share of the measured ACK aggregation added to the window", 256, (0, MAX_GAIN)),
    count("extra_acked_win_rtts", "rounds", "half the window of the aggregation filter", 5, (1, 31)),
    count("extra_acked_max_ms", "ms", "the addition is at most the data of this time", 100, (0, 10_000)),
];

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "bbr1",
    summary: "paces at the measured bandwidth and keeps about two bandwidth-delay products in flight",
    source: "Linux 6.12 net/ipv4/tcp_bbr.c; Cardwell et al., ACM Queue 14(5), 2016",
    linux_name: Some("bbr"),
    answers_delay: false,
    parameters: PARAMETERS,
};
