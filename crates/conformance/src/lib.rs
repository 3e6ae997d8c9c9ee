//! The laws that every congestion controller obeys, and a bottleneck to test them.
//!
//! [`check_all`] runs any controller over a small deterministic path with the real events in their real order
//! (see [`controller`](fullpipe_cc::controller)) and returns the first law that it broke. The path allocates nothing, so the
//! check runs wherever the controller does. It is a test, not a simulator: one flow, one drop-tail queue, an ACK for each packet
//! or for some, losses found by three later deliveries or by a timeout, recoveries undone if every retransmission was spurious.
//! Its transport counts segments, or bytes with packets of one size or of many ([`Path::in_bytes`]).
//! A controller that reports that it reacts to nothing ([`Phase::Fixed`]) is exempt from the laws that require a
//! reaction ([`Law::binds`]); all others apply to it, too.
//!
//! The controllers of `fullpipe-cc` are held against the same laws, and so can yours: implement
//! [`Controller`] and pass its constructor. [`fullpipe_cc::Ordered`] checks the other side, whether a
//! transport reports the events in their order; here it checks this path.
//!
//! The crate needs neither `std` nor `alloc`; `crates/cc/tests/no_std` proves it.
//!
//! ```
//! use fullpipe_cc::{Any, Params};
//! use fullpipe_conformance::{check_all, Path};
//!
//! let params = Params::by_name("cubic").unwrap();
//! check_all(&Path::default(), |config, connection| Any::new(&params, config, connection)).unwrap();
//! ```
#![no_std]
#![forbid(unsafe_code)]

mod bench;
mod ledger;
#[cfg(test)]
mod tests;

use bench::Bench;
use core::fmt;
use fullpipe_cc::controller::*;
use fullpipe_cc::{Ordered, OutOfOrder};
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// A law, and how it was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Which law.
    pub law: Law,
    /// When, on the path's clock.
    pub at: Time,
    /// The observed value.
    pub seen: u64,
    /// What the law allows.
    pub bound: u64,
}

macro_rules! laws {
    ($($(#[$documentation:meta])+ $law:ident,)+) => {
        /// The laws: from BBR, from RFC 5681, and from mistakes of other implementations.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Law {
            $($(#[$documentation])+ $law,)+
        }

        impl Law {
            /// Every law.
            pub const ALL: &[Law] = &[$(Law::$law,)+];
        }
    };
}

laws! {
    /// The window is always at least one segment: a sender that may not send cannot learn when it may.
    WindowIsPositive,
    /// The window never exceeds [`Config::cwnd_clamp`].
    WindowIsClamped,
    /// The pacing rate is positive and never exceeds [`Config::max_pacing_rate`].
    RateIsPositiveAndCapped,
    /// A burst is at least one segment.
    BurstIsPositive,
    /// [`Controller::limits`] and [`Controller::snapshot`] are pure: a second call returns the same.
    AskingChangesNothing,
    /// A timeout leaves a window of one segment above the flight at most (RFC 5681 section 3.1; Linux `tcp_enter_loss`), or
    /// QUIC's minimum of two (RFC 9002 section 7.6.2).
    TimeoutCollapsesTheWindow,
    /// While the controller reports that it measures the RTT, the window is at most a few segments.
    ProbeRttIsSmall,
    /// ProbeRTT ends within two seconds, eight round trips and eight retransmission timeouts.
    ProbeRttEnds,
    /// In ProbeRTT every ACK marks the sampler application-limited: its low rates are the controller's own doing.
    ProbeRttMarksItsSamples,
    /// The bandwidth estimate never exceeds the fastest rate at which the path can deliver by more than its rounding.
    EstimateIsAtMostThePath,
    /// The minimum RTT never falls below the path's.
    MinRttIsAtLeastThePath,
    /// Everything is delivered in the end: the flow does not stall.
    DeliversEverything,
    /// At least half the path's rate is used if nothing is lost and the queue holds a bandwidth-delay product.
    FillsTheLosslessPipe,
    /// The same events give the same answers, whenever the connection began (except for the coarse clock's ticks).
    StartTimeDoesNotMatter,
    /// An idle application does not grow the window: a flow that used a few segments of it is left with no more than three times
    /// its initial window (of at least eight).
    IdleDoesNotGrow,
    /// Application-limited samples do not show that the pipe is full: Startup lasts (draft-ietf-ccwg-bbr, full-pipe estimator).
    IdleDoesNotEndStartup,
    /// RTTs that vary by less than four milliseconds do not end slow start (RFC 9406 section 4.2, `MIN_RTT_THRESH`).
    JitterDoesNotEndSlowStart,
    /// An undone reduction leaves neither the slow-start threshold below what it was before, nor the window of a controller
    /// without a bandwidth estimate (RFC 4015 section 3.2; Linux `tcp_undo_cwnd_reduction`).
    UndoRestores,
    /// Marks reduce the window through [`CaState::Cwr`], once a window: what an ACK says of marks changes no limit by itself,
    /// whether it echoes any or none.
    MarksReduceOnceAWindow,
    /// What marks prove is not undone: an undo after them raises neither window nor threshold (Linux `tcp_enter_cwr`).
    MarksAreFinal,
    /// A loss that a tail probe repaired is a loss: its report enlarges neither window nor rate, nor does the reduction for it.
    TailRepairIsALoss,
    /// Packets that are discarded say nothing about congestion: no limit changes (RFC 9002 section 6.4).
    DiscardsAreNoSignal,
    /// The connection's totals may wrap at 32 bits: a run that begins just below is the same as one that begins far from it. Linux's
    /// BBRv1, and so ours, breaks it if they wrap in Startup: it takes the next ten segments for the connection's first
    /// (`bbr_set_cwnd`).
    TotalsMayWrap,
    /// Full packets give the same run, whether the transport counts segments or bytes.
    UnitsDoNotMatter,
    /// The transport reports an ACK's events in the documented order. It judges the transport, not the controller:
    /// [`Broken::seen`] and [`Broken::bound`] are the numbers of an [`AckEvent`](fullpipe_cc::AckEvent).
    EventsComeInOrder,
    /// A packet's loss is reported with what was noted when it left: the flight with it, the losses before it, whether the
    /// application was the limit. It judges the transport.
    LossesKeepTheirState,
    /// The delivery-rate samples are those of the definition, packets of any size included. It judges [`fullpipe_cc::Sampler`], not the controller.
    SampleFollowsItsDefinition,
}

impl Law {
    /// Whether a controller in this phase has to obey. One that reports that it reacts to nothing need not react to the
    /// path.
    pub fn binds(self, phase: Phase) -> bool {
        let asks_for_an_answer = matches!(self, Law::TimeoutCollapsesTheWindow | Law::FillsTheLosslessPipe);
        phase != Phase::Fixed || !asks_for_an_answer
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} at {}: {} where the bound is {}", self.law, self.at, self.seen, self.bound)
    }
}

impl core::error::Error for Broken {}

impl From<OutOfOrder> for Broken {
    fn from(OutOfOrder { at, seen, expected }: OutOfOrder) -> Broken {
        Broken { law: Law::EventsComeInOrder, at, seen: seen as u64, bound: expected as u64 }
    }
}

/// The path of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Its rate, of payload.
    pub rate: Rate,
    /// Its round trip without a queue.
    pub rtt: Duration,
    /// Full packets that its queue holds besides the one in service; at most [`Path::MAX_QUEUE`].
    pub queue: u32,
    /// Packets lost at random, of a thousand.
    pub loss_per_mille: u32,
    /// Packets held back by a quarter of [`Path::rtt`] at random, of a thousand: they arrive out of order, and what is then
    /// retransmitted was not lost.
    pub late_per_mille: u32,
    /// The seed of the losses and of the controller's draws.
    pub seed: u64,
    /// Packets to deliver.
    pub segments: u32,
    /// Their sizes.
    pub sizes: Sizes,
    /// Packets that the application writes at once; the next it writes a round trip after they all arrived. Zero: it writes
    /// everything at the start.
    pub write: u32,
    /// Packets that the receiver acknowledges at once, or after 25 ms; at most [`Path::MAX_ACK_EVERY`].
    pub ack_every: u32,
    /// The packets in flight that are discarded a while after the beginning ([`Controller::on_discarded`]); TCP has none.
    pub discards: u32,
    /// Whether the connection's totals begin just below the wrap of 32 bits, or far from it.
    pub wraps: bool,
    /// When the connection begins; also where its counters and coarse clock begin to count.
    pub start: Time,
    /// The controller's configuration.
    pub config: Config,
    /// The controller's [`ControllerInfo::answers_delay`](fullpipe_cc::ControllerInfo::answers_delay); if true,
    /// [`Law::JitterDoesNotEndSlowStart`] does not bind it.
    pub answers_delay: bool,
}

impl Path {
    /// The most a queue holds.
    pub const MAX_QUEUE: u32 = 1024;
    /// The most packets in an ACK.
    pub const MAX_ACK_EVERY: u32 = 64;

    /// The same path under a transport that counts bytes, as QUIC does, with packets of these sizes.
    pub fn in_bytes(self, sizes: Sizes) -> Path {
        let Config { mss, unit, initial_cwnd, cwnd_clamp, .. } = self.config;
        let bytes = |units: u32| units.saturating_mul(unit).min(Config::MOST_IN_FLIGHT);
        let (initial_cwnd, cwnd_clamp) = (bytes(initial_cwnd), bytes(cwnd_clamp));
        Path { sizes, config: Config { mss, unit: 1, initial_cwnd, cwnd_clamp, ..self.config }, ..self }
    }

    /// Payload bytes of a packet.
    fn size_of(&self, sequence: u64) -> u32 {
        match self.sizes {
            Sizes::Full => self.config.mss,
            Sizes::Mixed => MIX[(sequence % MIX.len() as u64) as usize].min(self.config.mss),
        }
    }

    /// Payload bytes of all packets.
    fn bytes(&self) -> Bytes {
        let round: u64 = (0..MIX.len() as u64).map(|sequence| self.size_of(sequence) as u64).sum();
        let (rounds, rest) =
            (self.segments as u64 / MIX.len() as u64, self.segments as u64 % MIX.len() as u64);
        Bytes::new(rounds * round + (0..rest).map(|sequence| self.size_of(sequence) as u64).sum::<u64>())
    }

    /// Units of a full packet.
    fn full(&self) -> u32 {
        self.config.mss.div_ceil(self.config.unit)
    }
}

/// The sizes of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sizes {
    /// All of [`Config::mss`].
    #[default]
    Full,
    /// What a QUIC endpoint sends: full ones, frames that fill none, and probes for the path's MTU.
    Mixed,
}

/// A round of mixed sizes, of which none exceeds the mss.
const MIX: [u32; 11] = [1_200, 1_200, 37, 700, 1_452, 1_200, 1_200, 1, 1_199, 1_200, 411];

impl Default for Path {
    /// 20 Mbit/s, 40 ms, and a queue of one bandwidth-delay product.
    fn default() -> Path {
        Path {
            rate: Rate::from_bits_per_sec(20_000_000),
            rtt: Duration::from_millis(40),
            queue: 70,
            loss_per_mille: 0,
            late_per_mille: 0,
            seed: 1,
            segments: 20_000,
            sizes: Sizes::Full,
            write: 0,
            ack_every: 1,
            discards: 0,
            wraps: true,
            start: Time::from_micros(1_000_000),
            config: Config {
                mss: 1448,
                unit: 1448,
                initial_cwnd: 10,
                cwnd_clamp: 10_000,
                max_pacing_rate: Rate::from_bits_per_sec(1_000_000_000),
                gso_max: Config::GSO_MAX,
                max_tcp_header: Config::MAX_TCP_HEADER,
                paced: true,
                hz: 1000,
                ssthresh: Limits::INFINITE,
            },
            answers_delay: false,
        }
    }
}

/// The result of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// How long it took.
    pub took: Duration,
    /// Transmissions, retransmissions included.
    pub sent: u64,
    /// Units marked lost.
    pub lost: u64,
    /// A hash of every answer of the controller.
    pub fingerprint: u64,
}

/// Runs every check over `path`; `new` makes a controller.
///
/// # Errors
/// When a law is broken: the first one.
pub fn check_all<C: Controller>(path: &Path, new: impl Fn(&Config, &Connection) -> C) -> Result<(), Broken> {
    check_run(path, &new)?;
    check_start_time(path, &new)?;
    check_reordering(path, &new)?;
    check_full_pipe(path, &new)?;
    check_timeout(path, &new)?;
    check_marks(path, &new)?;
    check_tail_repair(path, &new)?;
    check_discards(path, &new)?;
    check_wrap(path, &new)?;
    check_stretched_acks(path, &new)?;
    check_pauses(path, &new)?;
    check_jitter(path, &new)?;
    check_idle(path, &new)
}

/// Delivers [`Path::segments`] under the laws that hold at every moment.
///
/// # Errors
/// When a law is broken: the first one.
#[inline(never)] // A bench is large: checks that run several need room on the stack for one.
pub fn check_run<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<Outcome, Broken> {
    Bench::new(path, new).run()
}

/// Runs once now and once two hours later, when 32-bit microseconds have wrapped; both runs must be the same.
///
/// # Errors
/// When one run breaks a law, or the two differ ([`Law::StartTimeDoesNotMatter`]).
pub fn check_start_time<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let now = check_run(path, &new)?;
    let start = path.start + Duration::from_secs(7_200);
    let later = check_run(&Path { start, ..*path }, &new)?;
    broken_unless(
        now.fingerprint == later.fingerprint,
        Law::StartTimeDoesNotMatter,
        start,
        later.fingerprint,
        now.fingerprint,
    )
}

/// Holds segments back, so that some retransmissions are spurious and their samples short.
///
/// # Errors
/// When a law is broken: the first one, often [`Law::UndoRestores`].
pub fn check_reordering<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let segments = path.segments.min(5_000);
    check_run(&Path { late_per_mille: path.late_per_mille.max(20), segments, ..*path }, new).map(|_| ())
}

/// Without loss and with a queue of a bandwidth-delay product, half the path must be used.
///
/// # Errors
/// When the run breaks a law, or takes too long ([`Law::FillsTheLosslessPipe`]).
pub fn check_full_pipe<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let bdp = path.rate.bytes_in(path.rtt).as_u64() / path.config.mss as u64 + 1;
    let queue = (bdp as u32).clamp(16, Path::MAX_QUEUE);
    let path = Path {
        loss_per_mille: 0,
        late_per_mille: 0,
        queue,
        segments: path.segments.max(bdp as u32 * 60),
        write: 0,
        ..*path
    };
    let outcome = check_run(&path, &new)?;
    let law = Law::FillsTheLosslessPipe;
    let binds = law.binds(new(&path.config, &at_start(&path)).snapshot().phase);
    let least = path.rate.time_for(path.bytes());
    let most = least.saturating_mul(2);
    broken_unless(outcome.took <= most || !binds, law, path.start, outcome.took.as_micros(), most.as_micros())
}

/// The most units that a timeout with `flight` of them in the network may leave as the window; `full` are those of a segment.
pub(crate) fn collapsed(flight: u32, full: u32) -> u32 {
    (flight + full).max(2 * full)
}

/// A timeout collapses the window.
///
/// # Errors
/// When the window is larger ([`Law::TimeoutCollapsesTheWindow`]).
pub fn check_timeout<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let full = path.full();
    for flight in [0, full, 5 * full] {
        let connection = Connection { in_flight: flight, packets_out: 10 * full, ..at_start(path) };
        let mut controller = new(&path.config, &at_start(path));
        let trigger = Trigger::Timer;
        controller.on_state(&StateChange {
            connection,
            to: CaState::Loss,
            reduce: true,
            proven: false,
            trigger,
        });
        let cwnd = controller.limits().cwnd;
        let law = Law::TimeoutCollapsesTheWindow;
        let most = collapsed(flight, full);
        let right = cwnd <= most || !law.binds(controller.snapshot().phase);
        broken_unless(right, law, connection.now, cwnd as u64, most as u64)?;
    }
    Ok(())
}

/// ACKs without marks change nothing, the first mark in a window reduces, the others change nothing more, and an undo nothing back.
///
/// # Errors
/// The first law that was broken.
pub fn check_marks<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let full = path.full();
    let mut connection = Connection { in_flight: 10 * full, packets_out: 10 * full, ..at_start(path) };
    let mut controller = new(&path.config, &at_start(path));
    let mut acked = 0;
    let mut notify = |controller: &mut C, echoed: bool| {
        let before = controller.limits();
        acked += full as u64;
        controller.on_ce(&CeMarks {
            echoed,
            units: echoed as u32 * full,
            delivered: at_start(path).delivered + acked,
            snd_una: acked,
            snd_nxt: acked + 10 * full as u64,
        });
        let (after, law) = (controller.limits(), Law::MarksReduceOnceAWindow);
        broken_unless(before == after, law, path.start, after.cwnd as u64, before.cwnd as u64)
    };
    for echoed in [false, false, true] {
        notify(&mut controller, echoed)?;
    }
    let before = controller.limits();
    let (to, trigger) = (CaState::Cwr, Trigger::Ack);
    controller.on_state(&StateChange { connection, to, reduce: true, proven: true, trigger });
    connection.state = to;
    let reduced = controller.limits();
    let law = Law::MarksReduceOnceAWindow;
    broken_unless(reduced.cwnd <= before.cwnd, law, path.start, reduced.cwnd as u64, before.cwnd as u64)?;
    for echoed in [true, false, true] {
        notify(&mut controller, echoed)?;
    }
    controller.on_undo(&Undo { connection });
    let undone = controller.limits();
    let law = Law::MarksAreFinal;
    broken_unless(undone.cwnd <= reduced.cwnd, law, path.start, undone.cwnd as u64, reduced.cwnd as u64)?;
    let (seen, bound) = (undone.ssthresh as u64, reduced.ssthresh as u64);
    broken_unless(seen <= bound, law, path.start, seen, bound)
}

/// A tail probe's repair, and the reduction for it, leave no more than there was.
///
/// # Errors
/// When something grows ([`Law::TailRepairIsALoss`]).
pub fn check_tail_repair<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let full = path.full();
    let start = Connection { in_flight: 3 * full, packets_out: 3 * full, ..at_start(path) };
    let mut controller = Ordered::new(new(&path.config, &at_start(path)), start.state);
    let before = controller.limits();
    let judge = |controller: &Ordered<C>| {
        let (limits, law) = (controller.limits(), Law::TailRepairIsALoss);
        broken_unless(limits.cwnd <= before.cwnd, law, path.start, limits.cwnd as u64, before.cwnd as u64)?;
        let rates = [limits, before].map(|limits| limits.pacing_rate.as_bits_per_sec());
        broken_unless(rates[0] <= rates[1], law, path.start, rates[0], rates[1])
    };
    let Connection { now, delivered, .. } = start;
    controller.on_tail_repair(&TailRepair { now, delivered, units: full, app_limited: false });
    judge(&controller)?;
    for (from, to) in [(CaState::Open, CaState::Cwr), (CaState::Cwr, CaState::Open)] {
        let (connection, reduce) = (Connection { state: from, ..start }, to == CaState::Cwr);
        controller.on_state(&StateChange { connection, to, reduce, proven: false, trigger: Trigger::Ack });
        judge(&controller)?;
    }
    controller.verdict().map_err(Broken::from)
}

/// Discards half of the first flight.
///
/// # Errors
/// When a law is broken: the first one, often [`Law::DiscardsAreNoSignal`].
pub fn check_discards<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    check_run(&Path { discards: 5, segments: path.segments.min(2_000), ..*path }, new).map(|_| ())
}

/// Runs with totals that begin just below the wrap of 32 bits, and far from it; both runs must be the same.
///
/// # Errors
/// When one run breaks a law, or the two differ ([`Law::TotalsMayWrap`]).
pub fn check_wrap<C: Controller>(path: &Path, new: impl Fn(&Config, &Connection) -> C) -> Result<(), Broken> {
    let path = Path { loss_per_mille: path.loss_per_mille.max(2), ..*path };
    let [wraps, does_not] = [true, false].map(|wraps| check_run(&Path { wraps, ..path }, &new));
    let (wraps, does_not) = (wraps?.fingerprint, does_not?.fingerprint);
    broken_unless(wraps == does_not, Law::TotalsMayWrap, path.start, wraps, does_not)
}

/// Acknowledges 2, 10 and 64 packets at once.
///
/// # Errors
/// When a law is broken: the first one.
pub fn check_stretched_acks<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let segments = path.segments.min(5_000);
    for ack_every in [2, 10, 64] {
        check_run(&Path { ack_every, segments, ..*path }, &new)?;
    }
    Ok(())
}

/// Lets the application write 5 and 50 packets at a time, and pause.
///
/// # Errors
/// When a law is broken: the first one.
pub fn check_pauses<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    for write in [5, 50] {
        check_run(&Path { write, segments: path.segments.min(40 * write), ..*path }, &new)?;
    }
    Ok(())
}

/// Runs with a transport that counts segments, and with one that counts bytes; the packets are full, and both runs must be the
/// same. A controller that counts segments comes in bytes through [`fullpipe_cc::Segments`].
///
/// # Errors
/// When one run breaks a law, or the two differ ([`Law::UnitsDoNotMatter`]).
pub fn check_units<C: Controller, D: Controller>(
    path: &Path,
    in_segments: impl Fn(&Config, &Connection) -> C,
    in_bytes: impl Fn(&Config, &Connection) -> D,
) -> Result<(), Broken> {
    // The totals wrap elsewhere in bytes.
    let path = Path { sizes: Sizes::Full, wraps: false, ..*path };
    let segments = check_run(&path, in_segments)?;
    let bytes = check_run(&path.in_bytes(Sizes::Full), in_bytes)?;
    let law = Law::UnitsDoNotMatter;
    broken_unless(
        bytes.fingerprint == segments.fingerprint,
        law,
        path.start,
        bytes.fingerprint,
        segments.fingerprint,
    )
}

/// A flow that keeps four segments in flight and reports it must not end with a large window, nor mistake its own rate for
/// the path's.
///
/// # Errors
/// When the window grows ([`Law::IdleDoesNotGrow`]) or Startup ends ([`Law::IdleDoesNotEndStartup`]).
pub fn check_idle<C: Controller>(path: &Path, new: impl Fn(&Config, &Connection) -> C) -> Result<(), Broken> {
    let mut controller = new(&path.config, &at_start(path));
    let mut connection = at_start(path);
    let (full, four) = (path.full(), 4 * path.full());
    let (initial, initial_phase) = (controller.limits().cwnd, controller.snapshot().phase);
    for round in 1..200u64 {
        connection.now += path.rtt;
        connection.jiffies = jiffies(path, connection.now);
        connection.delivered += four as u64;
        connection.delivered_time = connection.now;
        connection.srtt = path.rtt;
        connection.min_rtt = path.rtt;
        let ack = Ack {
            connection,
            prior_in_flight: four,
            newly_delivered: four,
            newly_lost: 0,
            newly_acked: four,
            rtt: Some(path.rtt),
            maybe_delayed: false,
            una_advanced: true,
            snd_una: round * four as u64,
            snd_nxt: round * four as u64,
            sample: RateSample {
                delivered: Some(four),
                interval: Some(path.rtt),
                prior_delivered: connection.delivered - four as u64,
                prior_delivered_time: connection.now - path.rtt,
                app_limited: true,
                tx_in_flight: four,
                ..RateSample::NONE
            },
            cwnd_limited: false,
            max_packets_out: four,
            may_raise_cwnd: true,
            may_answer_probe: false,
        };
        report(&mut controller, &ack);
        let phase = controller.snapshot().phase;
        let ended = initial_phase == Phase::Startup && !matches!(phase, Phase::Startup | Phase::ProbeRtt);
        let law = Law::IdleDoesNotEndStartup;
        broken_unless(!ended, law, connection.now, phase as u64, Phase::Startup as u64)?;
    }
    // Startup's gain of 2.89 on four segments, and bursts.
    let (cwnd, bound) = (controller.limits().cwnd, initial.max(8 * full) * 3);
    broken_unless(cwnd <= bound, Law::IdleDoesNotGrow, connection.now, cwnd as u64, bound as u64)
}

/// A flow in slow start whose RTT rises from 20 ms by a bit less than four stays in it.
///
/// # Errors
/// When slow start ends ([`Law::JitterDoesNotEndSlowStart`]).
pub fn check_jitter<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let least = Duration::from_millis(20);
    let mut connection = Connection { srtt: least, min_rtt: least, ..at_start(path) };
    let (mut controller, full) = (new(&path.config, &connection), path.full());
    if path.answers_delay || controller.snapshot().phase != Phase::SlowStart {
        return Ok(());
    }
    for acked in 1..200u64 {
        // Further apart than a train's ACKs.
        connection.now += Duration::from_millis(3);
        connection.jiffies = jiffies(path, connection.now);
        connection.delivered += full as u64;
        connection.delivered_time = connection.now;
        let jitter = if acked > 50 { Duration::from_micros(3_900) } else { Duration::ZERO };
        let ack = Ack {
            connection,
            prior_in_flight: 20 * full,
            newly_delivered: full,
            newly_lost: 0,
            newly_acked: full,
            rtt: Some(least + jitter),
            maybe_delayed: false,
            una_advanced: true,
            snd_una: acked * full as u64,
            snd_nxt: (acked + 20) * full as u64,
            sample: RateSample::NONE,
            cwnd_limited: true,
            max_packets_out: 20 * full,
            may_raise_cwnd: true,
            may_answer_probe: false,
        };
        report(&mut controller, &ack);
        let limits = controller.limits();
        let (law, bound) = (Law::JitterDoesNotEndSlowStart, Limits::INFINITE as u64);
        broken_unless(
            limits.ssthresh == Limits::INFINITE,
            law,
            connection.now,
            limits.ssthresh as u64,
            bound,
        )?;
    }
    Ok(())
}

/// An ACK that changes no recovery state.
fn report(controller: &mut impl Controller, ack: &Ack) {
    if let Some(sample) = ack.rtt_sample() {
        controller.on_rtt(&sample);
    }
    controller.on_ack(ack);
}

fn broken_unless(holds: bool, law: Law, at: Time, seen: u64, bound: u64) -> Result<(), Broken> {
    if holds { Ok(()) } else { Err(Broken { law, at, seen, bound }) }
}

/// The coarse clock. It begins just below its wrap wherever the connection begins.
fn jiffies(path: &Path, now: Time) -> u32 {
    let ticks = now.saturating_since(path.start).as_nanos() as u128 * path.config.hz as u128 / 1_000_000_000;
    (u32::MAX - 500).wrapping_add(ticks as u32)
}

fn at_start(path: &Path) -> Connection {
    Connection {
        now: path.start,
        jiffies: jiffies(path, path.start),
        delivered: if path.wraps { u32::MAX as u64 - 1_000 } else { 1_000_000 },
        delivered_time: path.start,
        lost: if path.wraps { u32::MAX as u64 - 20 } else { 1_000_000 },
        srtt: path.rtt,
        min_rtt: path.rtt,
        departure: path.start,
        ..Connection::default()
    }
}
