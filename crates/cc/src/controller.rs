//! The events that a transport reports to a congestion controller, and the limits that it asks for.
//!
//! A controller is a pure state machine: it takes events and returns [`Limits`]. It reads no clock, sets no timer,
//! allocates nothing and draws no random numbers: the events carry time and randomness.
//!
//! **Counts are in segments**, as in Linux, where one unit is one packet of [`Config::mss`] payload bytes. A transport
//! that counts bytes (QUIC) converts at its boundary.
//!
//! Order of events, which is Linux's (`tcp_ack()` in `net/ipv4/tcp_input.c`):
//!
//! 1. [`Controller::on_transmit_start`] when data leaves and nothing was in flight, before the send itself.
//! 2. [`Controller::on_sent`] once a burst, after it left.
//! 3. For an arriving ACK:
//!    1. [`Controller::on_rtt`] if it brought an RTT: before the recovery state reacts to the ACK;
//!    2. [`Controller::on_ce`] if it echoed congestion marks; for a controller that needs ECN
//!       ([`Params::ecn`](crate::Params::ecn)), without an echo, too. **Before a tail probe's answer and before any change of
//!       state**, so that a threshold computed for this ACK knows its marks (Linux: `in_ack_event`). Not for an ACK that others
//!       overtook;
//!    3. as they happen, [`Controller::on_undo`] if a reduction proved spurious, [`Controller::on_lost`] for each run of
//!       segments newly marked lost, and [`Controller::on_state`] for each change of the recovery state. **The undo comes
//!       before the change that leaves the recovery, the losses before the change that they cause**;
//!    4. last [`Controller::on_ack`], once. An ACK that arrives when nothing is out, or after ACKs that were sent later,
//!       may cause the events of step 3 but no `on_ack`.
//! 4. A timer (retransmission timeout, reordering timer): [`Controller::on_lost`], then [`Controller::on_state`].
//!
//! [`Ordered`](crate::Ordered) wraps a controller and checks that a transport keeps this order.
//!
//! No method has an empty default: a controller that ignores an event does so in its own code.

use fullpipe_units::{Duration, Rate, Time};

/// Values that do not change during a connection, or change only by a separate event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Payload bytes of a full-sized segment (Linux: `mss_cache`).
    pub mss: u32,
    /// Initial window in segments (Linux: `TCP_INIT_CWND`, 10; RFC 6928).
    pub initial_cwnd: u32,
    /// The window never exceeds this many segments (Linux: `snd_cwnd_clamp`).
    pub cwnd_clamp: u32,
    /// The pacing rate never exceeds this (Linux: `sk_max_pacing_rate`).
    pub max_pacing_rate: Rate,
    /// The most payload bytes that the sender hands to the network at once (Linux: `sk_gso_max_size`).
    pub gso_max: u32,
    /// Bytes that the host keeps free for headers before the payload of a packet (Linux: `MAX_TCP_HEADER`, which depends on
    /// how the kernel was configured). BBR's burst goal depends on it, whatever `gso_max` is.
    pub max_tcp_header: u32,
    /// Whether the transport paces. BBR needs it; the loss-based algorithms are unpaced in Linux unless the host asks.
    pub paced: bool,
    /// Ticks a second of the coarse clock [`Connection::jiffies`] (Linux: `CONFIG_HZ`).
    pub hz: u32,
}

impl Config {
    /// [`Config::max_tcp_header`] of a kernel on x86-64 without wireless meshes and without tunnels, such as the Linux 6.18
    /// that our recordings come from. Debian's kernels have 320.
    pub const MAX_TCP_HEADER: u32 = 192;
    /// The most bytes in a packet that a host segments late, headers included (Linux: `GSO_LEGACY_MAX_SIZE`).
    pub const GSO_LEGACY_MAX_SIZE: u32 = 65_536;
    /// [`Config::gso_max`] of such a kernel on a device that takes packets of [`Config::GSO_LEGACY_MAX_SIZE`].
    pub const GSO_MAX: u32 = Config::GSO_LEGACY_MAX_SIZE - 1 - Config::MAX_TCP_HEADER;

    /// The host's `MAX_TCP_HEADER`, as `sk_gso_max_size` of one of its sockets shows it: that is what the device takes, a
    /// multiple of 1,024 bytes, less one byte and this header (Linux: `sk_dst_gso_max_size`). `None` if the device takes
    /// another number of bytes, which allows no conclusion.
    pub const fn max_tcp_header_of(sk_gso_max_size: u32) -> Option<u32> {
        let header = sk_gso_max_size.wrapping_add(1).wrapping_neg() % 1_024;
        // L1_CACHE_ALIGN(128 + MAX_HEADER), for MAX_HEADER of 32, 96 or 128, or 48 more with tunnels.
        if matches!(header, 192 | 256 | 320 | 384) { Some(header) } else { None }
    }
}

/// The sender's recovery state (Linux: `enum tcp_ca_state`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum CaState {
    /// Nothing suspicious.
    #[default]
    Open = 0,
    /// SACKs or duplicate ACKs arrived; nothing is marked lost yet.
    Disorder = 1,
    /// The window is being reduced for a congestion mark, or for a loss that a tail probe repaired.
    Cwr = 2,
    /// Fast recovery: lost segments are being retransmitted.
    Recovery = 3,
    /// A retransmission timeout happened.
    Loss = 4,
}

impl CaState {
    /// Every state, in the order of its code.
    pub const ALL: [CaState; 5] =
        [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss];

    /// The state with Linux's code for it.
    pub const fn from_code(code: i64) -> Option<CaState> {
        if 0 <= code && code < CaState::ALL.len() as i64 { Some(CaState::ALL[code as usize]) } else { None }
    }

    /// The name that records and figures use.
    pub const fn name(self) -> &'static str {
        match self {
            CaState::Open => "open",
            CaState::Disorder => "disorder",
            CaState::Cwr => "cwr",
            CaState::Recovery => "recovery",
            CaState::Loss => "loss",
        }
    }
}

/// The state the controller reads besides the event itself: the connection's counters after the event's bookkeeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    /// The time of the event.
    pub now: Time,
    /// The coarse clock, in ticks of 1/[`Config::hz`] s; wraps (Linux: `tcp_jiffies32`).
    pub jiffies: u32,
    /// Segments delivered so far, each counted once (Linux: `tp->delivered`).
    pub delivered: u64,
    /// When `delivered` last grew (Linux: `tp->delivered_mstamp`).
    pub delivered_time: Time,
    /// Segments marked lost so far (Linux: `tp->lost`).
    pub lost: u64,
    /// Segments sent and not cumulatively acknowledged, `SND.NXT - SND.UNA` (Linux: `tp->packets_out`).
    pub packets_out: u32,
    /// Segments believed in the network: out, less SACKed and lost, plus retransmitted (Linux: `tcp_packets_in_flight`).
    pub in_flight: u32,
    /// Smoothed RTT, zero before the first sample (Linux: `tp->srtt_us >> 3`).
    pub srtt: Duration,
    /// Windowed minimum RTT of the transport (Linux: `tcp_min_rtt`), [`Duration::MAX`] before the first sample.
    pub min_rtt: Duration,
    /// Earliest departure time of the next paced burst (Linux: `tp->tcp_wstamp_ns`).
    pub departure: Time,
    /// Current recovery state.
    pub state: CaState,
    /// The connection's delivery-rate sampler is marked application-limited (Linux: `tp->app_limited != 0`).
    pub app_limited: bool,
    /// A fresh random number, from the transport's own stream.
    pub random: u32,
}

/// Data is about to leave and nothing is in flight (Linux: `CA_EVENT_TX_START`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TransmitStart {
    /// The connection before the send.
    pub connection: Connection,
    /// When data last left (Linux: `tp->lsndtime`); its distance from now is how long the connection was idle.
    pub last_sent: Time,
    /// The retransmission timeout (Linux: `icsk_rto`); a loss-based window restarts after an idle time above it.
    pub rto: Duration,
}

/// The application has left the window unfilled for a retransmission timeout (Linux: `tcp_cwnd_application_limited`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WindowUnused {
    /// The connection.
    pub connection: Connection,
    /// The most segments that were out in that time (Linux: `snd_cwnd_used`).
    pub used: u32,
}

/// A burst left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Departure time of the burst.
    pub departure: Time,
    /// Segments in it.
    pub segments: u32,
    /// Segments in flight before it.
    pub prior_in_flight: u32,
    /// Segments not cumulatively acknowledged before it. Zero means that the sender restarts from idle.
    pub prior_packets_out: u32,
    /// Whether it is a retransmission.
    pub retransmission: bool,
}

/// An ACK brought an RTT (Linux: the `pkts_acked` hook, for an ACK with an RTT).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RttSample {
    /// The time of the event.
    pub now: Time,
    /// The coarse clock ([`Connection::jiffies`]).
    pub jiffies: u32,
    /// The RTT; [`Ack::rtt`] of the same ACK repeats it.
    pub rtt: Duration,
    /// `SND.UNA` after this ACK, in segments.
    pub snd_una: u64,
    /// `SND.NXT`, in segments.
    pub snd_nxt: u64,
}

/// The delivery-rate sample at the end of an ACK (Linux: `struct rate_sample`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Segments delivered over the sampling interval; `None` when no segment was newly delivered (Linux: -1).
    pub delivered: Option<u32>,
    /// Length of the interval; `None` when there is no sample or it is shorter than the minimum RTT (Linux: -1).
    pub interval: Option<Duration>,
    /// [`Connection::delivered`] when the sampled segment was sent.
    pub prior_delivered: u64,
    /// [`Connection::delivered_time`] when the sampled segment was sent.
    pub prior_delivered_time: Time,
    /// The sampled segment was sent while the application limited the sender.
    pub app_limited: bool,
    /// The sampled segment was a retransmission.
    pub retransmitted: bool,
    /// Segments in flight when the sampled segment was sent, itself included (for BBRv3).
    pub tx_in_flight: u32,
    /// Segments marked lost since the sampled segment was sent (for BBRv3).
    pub lost_since_sent: u32,
}

impl RateSample {
    /// No sample at all.
    pub const NONE: RateSample = RateSample {
        delivered: None,
        interval: None,
        prior_delivered: 0,
        prior_delivered_time: Time::ZERO,
        app_limited: false,
        retransmitted: false,
        tx_in_flight: 0,
        lost_since_sent: 0,
    };
}

/// An ACK was processed. The counters in `connection` are those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The connection after the ACK.
    pub connection: Connection,
    /// Segments in flight before the ACK was processed (Linux: `rs->prior_in_flight`).
    pub prior_in_flight: u32,
    /// Segments newly acknowledged or SACKed (Linux: `rs->acked_sacked`).
    pub newly_delivered: u32,
    /// Segments newly marked lost by this ACK (Linux: `rs->losses`).
    pub newly_lost: u32,
    /// Segments newly acknowledged cumulatively (Linux: `pkts_acked` of the `pkts_acked` hook).
    pub newly_acked: u32,
    /// RTT of the last newly (S)ACKed segment that was never retransmitted; `None` if ambiguous (Linux: `rs->rtt_us`).
    pub rtt: Option<Duration>,
    /// The ACK is a lone one of less than two segments and may have been delayed (Linux: `rs->is_ack_delayed`).
    pub maybe_delayed: bool,
    /// `SND.UNA` advanced.
    pub una_advanced: bool,
    /// `SND.UNA` after this ACK, in segments. HyStart's rounds end when it passes the `snd_nxt` they began with.
    pub snd_una: u64,
    /// `SND.NXT`, in segments.
    pub snd_nxt: u64,
    /// The delivery-rate sample.
    pub sample: RateSample,
    /// The window limited the sender in the last round (Linux: `tp->is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// The most segments out since the last round began (Linux: `tp->max_packets_out`).
    pub max_packets_out: u32,
    /// Whether the window may grow on this ACK: it brought new data, and if segments arrive out of order, it advanced
    /// (Linux: `tcp_may_raise_cwnd`).
    pub may_raise_cwnd: bool,
}

impl Ack {
    /// The event that precedes this one, if the ACK changes nothing else; `None` if it brought no RTT.
    #[inline]
    pub fn rtt_sample(&self) -> Option<RttSample> {
        let &Ack { snd_una, snd_nxt, .. } = self;
        let Connection { now, jiffies, .. } = self.connection;
        self.rtt.map(|rtt| RttSample { now, jiffies, rtt, snd_una, snd_nxt })
    }
}

/// A run of segments that left together was marked lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The time of the event.
    pub now: Time,
    /// [`Connection::delivered`]; what the ACK that shows the loss delivered is counted.
    pub delivered: u64,
    /// Segments in the run.
    pub segments: u32,
    /// The run does not touch the one marked before it: a new hole in the sequence space.
    pub new_range: bool,
    /// Segments in flight when the run was sent, itself included.
    pub tx_in_flight: u32,
    /// [`Connection::lost`] when the run was sent.
    pub tx_lost: u64,
    /// [`Connection::lost`] with this run counted.
    pub lost: u64,
    /// The run was sent while the application limited the sender.
    pub app_limited: bool,
}

/// What an ACK says of congestion marks (RFC 3168 section 6.1; Linux: `FLAG_ECE`, `tp->delivered_ce`).
///
/// A receiver in the classic way echoes from the first mark until it hears of a reduction: its counts are far too high. One that
/// is DCTCP's (RFC 8257 section 3.2) tells marked segments from others, exactly, with delayed ACKs, too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CeMarks {
    /// The ACK echoes marks (ECE). The transport answers the first echo in a window with [`CaState::Cwr`]; no reduction before
    /// it can be undone any more.
    pub echoed: bool,
    /// Segments that the ACK newly acknowledged or SACKed, if it echoes marks; else zero (Linux: the growth of
    /// `delivered_ce`).
    pub segments: u32,
    /// [`Connection::delivered`], this ACK's segments included.
    pub delivered: u64,
    /// `SND.UNA` after this ACK, in segments.
    pub snd_una: u64,
    /// `SND.NXT`, in segments.
    pub snd_nxt: u64,
}

/// The recovery state changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateChange {
    /// The connection; `connection.state` is the state before the change.
    pub connection: Connection,
    /// The state after it.
    pub to: CaState,
    /// A new reduction begins: compute the slow-start threshold (Linux: the core calls `ssthresh()`). False when a
    /// timeout follows another one without progress, and when leaving a state.
    pub reduce: bool,
    /// Congestion is proven, so that the reduction cannot be undone: the ACK echoes congestion marks, or the host's own
    /// queue overflowed (Linux: `ece_ack` of `tcp_enter_recovery`; `tcp_enter_cwr`). False for a loss.
    pub proven: bool,
    /// What caused it.
    pub trigger: Trigger,
}

/// The cause of a change of the recovery state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// An ACK; [`Controller::on_ack`] follows.
    Ack,
    /// A timer: a retransmission timeout, or RACK's reordering timer. No `on_ack` follows.
    Timer,
}

/// The reduction last begun was spurious: nothing was lost (Linux: `tcp_undo_cwnd_reduction`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Undo {
    /// The connection.
    pub connection: Connection,
}

/// The limits that the controller sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Segments that may be in flight.
    pub cwnd: u32,
    /// The slow-start threshold in segments, [`Limits::INFINITE`] before the first reduction.
    pub ssthresh: u32,
    /// Payload rate by which a host sizes its bursts and, where it paces ([`Config::paced`]), spaces them (Linux:
    /// `sk_pacing_rate`). [`Rate::MAX`] before a window-based controller has seen an RTT.
    pub pacing_rate: Rate,
    /// The fewest segments a burst should hold (Linux: `min_tso_segs`).
    pub min_burst: u32,
    /// The transport must mark its delivery-rate sampler application-limited, because the controller itself holds the
    /// sender back (BBR in ProbeRTT).
    pub mark_app_limited: bool,
}

impl Limits {
    /// The slow-start threshold before it is known (Linux: `TCP_INFINITE_SSTHRESH`).
    pub const INFINITE: u32 = 0x7fff_ffff;
}

/// What a controller is doing, in the usual terms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Phase {
    /// Loss-based: window below the threshold.
    #[default]
    SlowStart = 0,
    /// Loss-based: window above the threshold.
    CongestionAvoidance = 1,
    /// Loss-based: fast recovery or CWR.
    Recovery = 2,
    /// Loss-based: after a timeout.
    Loss = 3,
    /// BBR: searching for the bandwidth.
    Startup = 4,
    /// BBR: emptying the queue that Startup built.
    Drain = 5,
    /// BBR: ProbeBW, gain above one.
    ProbeBwUp = 6,
    /// BBR: ProbeBW, gain below one.
    ProbeBwDown = 7,
    /// BBR: ProbeBW, gain one.
    ProbeBwCruise = 8,
    /// BBR: measuring the minimum RTT.
    ProbeRtt = 9,
    /// BBRv3 ProbeBW_REFILL.
    ProbeBwRefill = 10,
    /// Not a congestion control: window and rate are given, and it reacts to nothing.
    Fixed = 11,
}

impl Phase {
    /// Every phase, in the order of its code.
    pub const ALL: [Phase; 12] = [
        Phase::SlowStart,
        Phase::CongestionAvoidance,
        Phase::Recovery,
        Phase::Loss,
        Phase::Startup,
        Phase::Drain,
        Phase::ProbeBwUp,
        Phase::ProbeBwDown,
        Phase::ProbeBwCruise,
        Phase::ProbeRtt,
        Phase::ProbeBwRefill,
        Phase::Fixed,
    ];

    /// The name that records and figures use.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::SlowStart => "slow_start",
            Phase::CongestionAvoidance => "congestion_avoidance",
            Phase::Recovery => "recovery",
            Phase::Loss => "loss",
            Phase::Startup => "startup",
            Phase::Drain => "drain",
            Phase::ProbeBwUp => "probe_bw_up",
            Phase::ProbeBwDown => "probe_bw_down",
            Phase::ProbeBwCruise => "probe_bw_cruise",
            Phase::ProbeRtt => "probe_rtt",
            Phase::ProbeBwRefill => "probe_bw_refill",
            Phase::Fixed => "fixed",
        }
    }
}

/// What a controller believes, for records and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snapshot {
    /// What it is doing.
    pub phase: Phase,
    /// Its bandwidth estimate, if it has one (payload).
    pub bandwidth: Option<Rate>,
    /// Its minimum-RTT estimate, if it has one.
    pub min_rtt: Option<Duration>,
}

/// A congestion controller. See the module documentation for the order of events.
pub trait Controller {
    /// Data is about to leave and nothing is in flight.
    fn on_transmit_start(&mut self, start: &TransmitStart);
    /// The application left the window unfilled.
    fn on_window_unused(&mut self, unused: &WindowUnused);
    /// A burst left.
    fn on_sent(&mut self, sent: &Sent);
    /// An ACK brought an RTT. First of an ACK's events.
    fn on_rtt(&mut self, sample: &RttSample);
    /// An ACK echoed congestion marks, or the controller needs to know that it did not. Before an undo and before any change of
    /// state.
    fn on_ce(&mut self, marks: &CeMarks);
    /// The last reduction proved spurious. Before the change of state that leaves the recovery.
    fn on_undo(&mut self, undo: &Undo);
    /// A run of segments was marked lost. Before the change of state that it causes.
    fn on_lost(&mut self, lost: &Lost);
    /// The recovery state changes.
    fn on_state(&mut self, change: &StateChange);
    /// An ACK was processed. Last of an ACK's events.
    fn on_ack(&mut self, ack: &Ack);
    /// The segment size changed (path MTU discovery).
    fn on_mss(&mut self, mss: u32);
    /// What it allows now; pure.
    fn limits(&self) -> Limits;
    /// What it believes now; pure.
    fn snapshot(&self) -> Snapshot;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recovery_state_has_linux_s_code() {
        let codes = [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss];
        assert_eq!([0, 1, 2, 3, 4].map(CaState::from_code), codes.map(Some));
        assert_eq!([-1, 5, i64::MIN, i64::MAX].map(CaState::from_code), [None; 4]);
    }

    #[test]
    fn a_socket_s_largest_packet_shows_what_its_host_keeps_free_for_headers() {
        let shown = |taken: u32, header: u32| Config::max_tcp_header_of(taken - 1 - header);
        for header in [192, 256, 320, 384] {
            // What most devices take, what some take, and with "BIG TCP".
            for taken in [65_536, 16_384, 262_144] {
                assert_eq!(shown(taken, header), Some(header), "{taken}");
            }
        }
        assert_eq!(shown(65_000, 192), None, "a device that takes an uncommon number of bytes");
        assert_eq!(Config::max_tcp_header_of(Config::GSO_MAX), Some(Config::MAX_TCP_HEADER));
    }
}
