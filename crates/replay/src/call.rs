//! The inputs and decisions of a real kernel's congestion control, call by call.
//!
//! Every number has the kernel's value, name and unit (Linux 6.18, `include/linux/tcp.h`,
//! `include/net/tcp.h`, `net/ipv4/tcp_bbr.c`, `tcp_cubic.c`).

use fullpipe_cc::controller::Config;

/// A function of `struct tcp_congestion_ops`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Hook {
    /// `init`: the connection is established, or switches to this congestion control.
    #[default]
    Init = 0,
    /// `cong_control` (BBR): an ACK was processed.
    Main = 1,
    /// `cwnd_event`.
    CwndEvent = 2,
    /// `set_state`: the recovery state is about to become another.
    SetState = 3,
    /// `ssthresh`: a reduction begins.
    Ssthresh = 4,
    /// `undo_cwnd`: a reduction proved spurious.
    Undo = 5,
    /// `cong_avoid` (loss-based): the window may grow.
    CongAvoid = 6,
    /// `pkts_acked` (loss-based): an ACK brought an RTT.
    PktsAcked = 7,
}

impl Hook {
    /// Every hook, in the order of its code.
    pub const ALL: [Hook; 8] = [
        Hook::Init,
        Hook::Main,
        Hook::CwndEvent,
        Hook::SetState,
        Hook::Ssthresh,
        Hook::Undo,
        Hook::CongAvoid,
        Hook::PktsAcked,
    ];

    /// The name that recordings use: that of the member of `struct tcp_congestion_ops`.
    pub const fn name(self) -> &'static str {
        match self {
            Hook::Init => "init",
            Hook::Main => "cong_control",
            Hook::CwndEvent => "cwnd_event",
            Hook::SetState => "set_state",
            Hook::Ssthresh => "ssthresh",
            Hook::Undo => "undo_cwnd",
            Hook::CongAvoid => "cong_avoid",
            Hook::PktsAcked => "pkts_acked",
        }
    }
}

/// One call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Number of the socket in the recording, from zero in order of first call.
    pub flow: u32,
    /// The time: `CLOCK_MONOTONIC`, nanoseconds.
    pub ktime_ns: u64,
    /// The function.
    pub hook: Hook,
    /// The arguments. [`Hook::Main`]: ack, flag. [`Hook::CwndEvent`]: the event. [`Hook::SetState`]: the new state.
    /// [`Hook::CongAvoid`]: ack, acked. [`Hook::PktsAcked`]: pkts_acked, in_flight, rtt_us.
    pub arguments: [i64; 3],
    /// What it returned ([`Hook::Ssthresh`], [`Hook::Undo`]); zero elsewhere.
    pub returned: u32,
    /// The rate sample of [`Hook::Main`]; zeros elsewhere.
    pub rate_sample: KernelSample,
    /// The socket before the call.
    pub socket: Socket,
    /// The socket after the call.
    pub after: Outcome,
    /// `icsk_ca_priv` before the call.
    pub private_before: [u64; 13],
    /// `icsk_ca_priv` after the call.
    pub private_after: [u64; 13],
}

/// `struct rate_sample`, as far as it affects decisions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names and meanings are those of struct rate_sample")]
pub struct KernelSample {
    pub prior_mstamp: u64,
    pub prior_delivered: u32,
    pub delivered: i32,
    pub interval_us: i64,
    pub snd_interval_us: u32,
    pub rcv_interval_us: u32,
    pub rtt_us: i64,
    pub losses: i32,
    pub acked_sacked: u32,
    pub prior_in_flight: u32,
    pub last_end_seq: u32,
    pub is_app_limited: bool,
    pub is_retrans: bool,
    pub is_ack_delayed: bool,
}

/// What congestion controls read of `struct tcp_sock` and the structures below it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names and meanings are those of struct tcp_sock and struct sock")]
pub struct Socket {
    pub ca_state: u8,
    pub jiffies32: u32,
    /// Nanoseconds.
    pub tcp_clock_cache: u64,
    /// Microseconds.
    pub tcp_mstamp: u64,
    pub delivered_mstamp: u64,
    pub first_tx_mstamp: u64,
    pub tcp_wstamp_ns: u64,
    pub delivered: u32,
    pub lost: u32,
    pub app_limited: u32,
    pub packets_out: u32,
    pub sacked_out: u32,
    pub lost_out: u32,
    pub retrans_out: u32,
    /// In eighths of a microsecond, as the kernel keeps it.
    pub srtt_us: u32,
    /// `tcp_min_rtt()`, microseconds.
    pub min_rtt_us: u32,
    pub mss_cache: u32,
    pub snd_una: u32,
    pub snd_nxt: u32,
    pub snd_cwnd: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd_clamp: u32,
    pub snd_cwnd_cnt: u32,
    pub prior_cwnd: u32,
    pub prior_ssthresh: u32,
    pub max_packets_out: u32,
    pub total_retrans: u32,
    pub is_cwnd_limited: bool,
    /// Bytes a second.
    pub sk_pacing_rate: u64,
    pub sk_max_pacing_rate: u64,
    /// 0 none, 1 needed, 2 by fq.
    pub sk_pacing_status: u32,
    pub sk_gso_max_size: u32,
}

impl Socket {
    /// The recording host's `MAX_TCP_HEADER`. A device that takes an uncommon number of bytes hides it; then it is taken to
    /// be [`Config::MAX_TCP_HEADER`].
    pub fn max_tcp_header(&self) -> u32 {
        Config::max_tcp_header_of(self.sk_gso_max_size).unwrap_or(Config::MAX_TCP_HEADER)
    }
}

/// What a call may change outside the private state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names and meanings are those of struct tcp_sock and struct sock")]
pub struct Outcome {
    pub sk_pacing_rate: u64,
    pub snd_cwnd: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd_cnt: u32,
    pub prior_cwnd: u32,
}
