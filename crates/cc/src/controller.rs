//! The events that a transport reports to a congestion controller, and the limits that it asks for.
//!
//! A controller is a pure state machine: it takes events and returns [`Limits`]. It reads no clock, sets no timer,
//! allocates nothing and draws no random numbers: the events carry time and randomness.
//!
//! **Counts are in units** of [`Config::unit`] bytes: everything that is sent, delivered, lost or in flight, `SND.UNA` and
//! `SND.NXT`, and the limits. A transport that counts segments (TCP, as in Linux) has units of [`Config::mss`]: one unit is one
//! segment, and one that is not full counts as one. A transport whose packets have any size (QUIC) has units of one byte. A
//! controller that computes in segments needs [`Segments`](crate::Segments) there.
//!
//! At most [`Config::MOST_IN_FLIGHT`] units are in flight. Counts of what is in flight, and of what one event delivers or
//! loses, thus fit into 32 bits; totals have 64.
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
//!    3. [`Controller::on_tail_repair`] if it shows that only a tail probe brought the last segment. The change to
//!       [`CaState::Cwr`] that reduces for it follows;
//!    4. as they happen, [`Controller::on_undo`] if a reduction proved spurious, [`Controller::on_lost`] for each run of
//!       packets newly marked lost, and [`Controller::on_state`] for each change of the recovery state. **The undo comes
//!       before the change that leaves the recovery, the losses before the change that they cause**;
//!    5. last [`Controller::on_ack`], once. An ACK that arrives when nothing is out, or after ACKs that were sent later,
//!       may cause the events of steps 3 and 4 but no `on_ack`.
//! 4. A timer (retransmission timeout, reordering timer): [`Controller::on_lost`], then [`Controller::on_state`].
//! 5. [`Controller::on_discarded`] when packets leave the flight that are neither delivered nor lost.
//!
//! The sampler's application-limited mark is checked before data is written and, if [`Limits::check_app_limited`] asks for it,
//! when an ACK or a timer begins, too.
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
    /// Bytes in one unit, in which the transport counts: [`Config::mss`] if it counts segments, 1 if it counts bytes.
    pub unit: u32,
    /// Initial window in units (Linux: `TCP_INIT_CWND`, 10; RFC 6928).
    pub initial_cwnd: u32,
    /// The window never exceeds this many units (Linux: `snd_cwnd_clamp`).
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
    /// The slow-start threshold in units that earlier connections to the same host left, [`Limits::INFINITE`](crate::Limits) if
    /// none did (Linux: `tcp_init_metrics`, before the `init` of the algorithm). Those of Linux's algorithms whose `init` sets a
    /// threshold of their own, such as BBR, and those that are none of Linux's begin without it.
    pub ssthresh: u32,
}

impl Config {
    /// The most units in flight: 2^31 - 1, because [`TxState`](crate::TxState) keeps a flag in the top bit of the count.
    pub const MOST_IN_FLIGHT: u32 = u32::MAX >> 1;
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
    /// Units delivered so far, each counted once (Linux: `tp->delivered`).
    pub delivered: u64,
    /// When `delivered` last grew (Linux: `tp->delivered_mstamp`).
    pub delivered_time: Time,
    /// Units marked lost so far (Linux: `tp->lost`).
    pub lost: u64,
    /// Units sent and not cumulatively acknowledged, `SND.NXT - SND.UNA` (Linux: `tp->packets_out`).
    pub packets_out: u32,
    /// Units believed in the network: out, less SACKed and lost, plus retransmitted (Linux: `tcp_packets_in_flight`).
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
    /// The most units that were out in that time (Linux: `snd_cwnd_used`).
    pub used: u32,
}

/// A burst left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Departure time of the burst.
    pub departure: Time,
    /// Units in it.
    pub units: u32,
    /// Units in flight before it.
    pub prior_in_flight: u32,
    /// Units not cumulatively acknowledged before it. Zero means that the sender restarts from idle.
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
    /// `SND.UNA` after this ACK, in units.
    pub snd_una: u64,
    /// `SND.NXT`, in units.
    pub snd_nxt: u64,
}

/// The delivery-rate sample at the end of an ACK (Linux: `struct rate_sample`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateSample {
    /// Units delivered over the sampling interval; `None` when nothing was newly delivered (Linux: -1).
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
    /// Units in flight when the sampled segment was sent, itself included (for BBRv3).
    pub tx_in_flight: u32,
    /// Units marked lost since the sampled segment was sent (for BBRv3).
    pub lost_since_sent: u32,
    /// Units delivered with a mark since the sampled segment was sent, as far as [`CeMarks::units`] reports them (for Google's BBRv3:
    /// `rs->delivered_ce`).
    pub marked_since_sent: u32,
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
        marked_since_sent: 0,
    };
}

/// An ACK was processed. The counters in `connection` are those after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack {
    /// The connection after the ACK.
    pub connection: Connection,
    /// Units in flight before the ACK was processed (Linux: `rs->prior_in_flight`).
    pub prior_in_flight: u32,
    /// Units newly acknowledged or SACKed (Linux: `rs->acked_sacked`).
    pub newly_delivered: u32,
    /// Units newly marked lost by this ACK (Linux: `rs->losses`).
    pub newly_lost: u32,
    /// Units newly acknowledged cumulatively (Linux: `pkts_acked` of the `pkts_acked` hook).
    pub newly_acked: u32,
    /// RTT of the last newly (S)ACKed segment that was never retransmitted; `None` if ambiguous (Linux: `rs->rtt_us`).
    pub rtt: Option<Duration>,
    /// The ACK is a lone one of less than two segments and may have been delayed (Linux: `rs->is_ack_delayed`).
    pub maybe_delayed: bool,
    /// `SND.UNA` advanced.
    pub una_advanced: bool,
    /// `SND.UNA` after this ACK, in units. HyStart's rounds end when it passes the `snd_nxt` they began with.
    pub snd_una: u64,
    /// `SND.NXT`, in units.
    pub snd_nxt: u64,
    /// The delivery-rate sample.
    pub sample: RateSample,
    /// The window limited the sender in the last round (Linux: `tp->is_cwnd_limited`).
    pub cwnd_limited: bool,
    /// The most units out since the last round began (Linux: `tp->max_packets_out`).
    pub max_packets_out: u32,
    /// Whether the window may grow on this ACK: it brought new data, and if segments arrive out of order, it advanced
    /// (Linux: `tcp_may_raise_cwnd`).
    pub may_raise_cwnd: bool,
    /// The ACK reaches the end of what was out when a tail probe repeated the last segment, and no more: whether it answers
    /// that segment or the probe, a later ACK will show (Linux v3: `rs->is_acking_tlp_retrans_seq`). If it answers the probe,
    /// [`Controller::on_tail_repair`] will tell. Never so where a probe has a number of its own, as in QUIC.
    pub may_answer_probe: bool,
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

/// A run of packets that left together was marked lost. A transport that counts bytes reports each packet by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// The time of the event.
    pub now: Time,
    /// [`Connection::delivered`]; what the ACK that shows the loss delivered is counted.
    pub delivered: u64,
    /// Units in the run.
    pub units: u32,
    /// The run does not touch the one marked before it: a new hole in the sequence space.
    pub new_range: bool,
    /// Units in flight when the run was sent, itself included.
    pub tx_in_flight: u32,
    /// [`Connection::delivered`] when the run was sent.
    pub tx_delivered: u64,
    /// [`Connection::lost`] when the run was sent.
    pub tx_lost: u64,
    /// [`Connection::lost`] with this run counted.
    pub lost: u64,
    /// The run was sent while the application limited the sender.
    pub app_limited: bool,
}

/// A tail probe repaired a loss: the ACK of data sent after the probe shows no second arrival of the segment that the probe
/// repeated, so that the first was lost (Linux v3: `CA_EVENT_TLP_RECOVERY`; RFC 8985 section 7.4.2). That segment is never marked
/// lost, and does not count in [`Connection::lost`]. The transport answers with [`CaState::Cwr`], which reduces.
///
/// QUIC's probes have packet numbers of their own: there the segment is marked lost as any other is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TailRepair {
    /// The time of the event.
    pub now: Time,
    /// [`Connection::delivered`]; what this ACK delivered is counted.
    pub delivered: u64,
    /// Units in the repaired segment.
    pub units: u32,
    /// The segment was first sent while the application limited the sender (Linux v3: `tp->tlp_orig_data_app_limited`).
    pub app_limited: bool,
}

/// Packets left the flight that are neither delivered nor lost: a QUIC endpoint discarded the keys of their packet number space
/// (RFC 9002 section 6.4). They say nothing about congestion. TCP never reports it.
///
/// The transport tells its [`Sampler`](crate::Sampler), too. They count as acknowledged in `SND.UNA`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Discarded {
    /// The time of the event.
    pub now: Time,
    /// Units in the packets.
    pub units: u32,
    /// Units in flight after it.
    pub in_flight: u32,
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
    /// Units that the ACK newly acknowledged or SACKed, if it echoes marks; else zero (Linux: the growth of
    /// `delivered_ce`). A QUIC endpoint reports packets that it marked as bytes: of those newly acknowledged, the share that
    /// the growth of the ECN-CE count has in the number of packets (RFC 9000 section 13.4.2).
    pub units: u32,
    /// [`Connection::delivered`], what this ACK delivered included.
    pub delivered: u64,
    /// `SND.UNA` after this ACK, in units.
    pub snd_una: u64,
    /// `SND.NXT`, in units.
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
    /// An ACK; [`Controller::on_ack`] follows, if the ACK delivers something.
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
    /// Units that may be in flight.
    pub cwnd: u32,
    /// The slow-start threshold in units, [`Limits::INFINITE`] before the first reduction.
    pub ssthresh: u32,
    /// Payload rate by which a host sizes its bursts and, where it paces ([`Config::paced`]), spaces them (Linux:
    /// `sk_pacing_rate`). [`Rate::MAX`] before a window-based controller has seen an RTT.
    pub pacing_rate: Rate,
    /// The fewest units a burst should hold (Linux: `min_tso_segs`).
    pub min_burst: u32,
    /// The transport must mark its delivery-rate sampler application-limited, because the controller itself holds the
    /// sender back (BBR in ProbeRTT).
    pub mark_app_limited: bool,
    /// The transport must check whether the application limits the sender when an ACK or a timer begins, too, and not only
    /// before data is written, as Linux does (draft-ietf-ccwg-bbr section 4.1.2.4). It is the same for the whole connection.
    pub check_app_limited: bool,
}

impl Limits {
    /// The slow-start threshold before it is known (Linux: `TCP_INFINITE_SSTHRESH`).
    pub const INFINITE: u32 = 0x7fff_ffff;
}

/// A codepoint of packets whose transport understands marks (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ect {
    /// ECT(0).
    Zero,
    /// ECT(1), which names the low-latency service of RFC 9331.
    One,
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
    /// Copa's competitive mode: others fill the buffer, and it is as aggressive as they are.
    Competing = 12,
}

impl Phase {
    /// Every phase, in the order of its code.
    pub const ALL: [Phase; 13] = [
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
        Phase::Competing,
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
            Phase::Competing => "competing",
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
    /// A tail probe repaired a loss. Before the change of state that reduces for it.
    fn on_tail_repair(&mut self, repair: &TailRepair);
    /// The last reduction proved spurious. Before the change of state that leaves the recovery.
    fn on_undo(&mut self, undo: &Undo);
    /// A run of packets was marked lost. Before the change of state that it causes.
    fn on_lost(&mut self, lost: &Lost);
    /// Packets left the flight that are neither delivered nor lost.
    fn on_discarded(&mut self, discarded: &Discarded);
    /// The recovery state changes.
    fn on_state(&mut self, change: &StateChange);
    /// An ACK was processed. Last of an ACK's events.
    fn on_ack(&mut self, ack: &Ack);
    /// The segment size changed (path MTU discovery); if the unit is a segment, that of the unit, too.
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
    fn recovery_state_has_linux_code() {
        let codes = [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss];
        assert_eq!([0, 1, 2, 3, 4].map(CaState::from_code), codes.map(Some));
        assert_eq!([-1, 5, i64::MIN, i64::MAX].map(CaState::from_code), [None; 4]);
    }

    #[test]
    fn largest_packet_reveals_header_reserve() {
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
