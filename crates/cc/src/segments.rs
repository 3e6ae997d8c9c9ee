//! A controller that computes in segments, behind a transport that counts bytes.
//!
//! Linux's algorithms count segments, and their arithmetic stays as it is. [`Segments`] converts what the transport reports from
//! units of one byte into units of [`Config::mss`] bytes, and the limits back. Which controllers need it:
//! [`Params::counts_bytes`](crate::Params::counts_bytes) and the table in `docs/how-to/controllers.md`.
//!
//! **What accumulates is exact.** A count is the whole segments in the connection's total, rounded down, so that what an event
//! brings is the difference of two totals: no byte is lost or counted twice, and what does not fill a segment is carried to the
//! next event. Losses alone are rounded up: none is seen late. What is in flight accumulates nowhere and is rounded up: zero means
//! nothing. A rate sample keeps its rate: its bytes become whole segments, at least one, and its interval changes in proportion, to ten seconds at most.
//!
//! If the segment size changes, counts go on from where they are; values noted before the change are converted by the new size.

use crate::controller::*;
use fullpipe_units::Duration;

/// The interval of a sample is at most this where it is not longer by itself: Linux's BBRv1 makes a rate of zero of one segment in
/// 17 s, and then paces at zero.
const LONGEST: Duration = Duration::from_secs(10);

/// How a part of a segment counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    /// When it is whole.
    Down,
    /// At once.
    Up,
}

/// A total of bytes as a total of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Total {
    round: Round,
    mss: u32,
    /// This many bytes are [`Total::segments`].
    bytes: u64,
    segments: u64,
    /// The latest total; from it on, a new segment size applies.
    latest: u64,
    /// Segments that a smaller segment size completed, and that no event has brought yet.
    owed: u32,
}

impl Total {
    /// A total that begins anywhere, such as below the wrap of 32 bits.
    const fn new(round: Round, bytes: u64, mss: u32) -> Total {
        Total { round, mss, bytes, segments: bytes / mss as u64, latest: bytes, owed: 0 }
    }

    /// The segments in a total.
    fn of(&self, bytes: u64) -> u64 {
        let bytes = match self.round {
            Round::Down => bytes,
            Round::Up => bytes.saturating_add(self.mss as u64 - 1),
        };
        let segments = (bytes.wrapping_sub(self.bytes) as i64).div_euclid(self.mss as i64);
        self.segments.saturating_add_signed(segments)
    }

    /// The same of the latest total.
    fn now(&mut self, bytes: u64) -> u64 {
        self.latest = self.latest.max(bytes);
        self.of(bytes)
    }

    /// The segments that the last `newly` bytes of a total brought.
    fn since(&self, total: u64, newly: u32) -> u32 {
        (self.of(total) - self.of(total.saturating_sub(newly as u64))) as u32
    }

    /// The same of an event that happens once for each of them.
    fn grown(&mut self, total: u64, newly: u32) -> u32 {
        self.since(total, newly) + core::mem::take(&mut self.owed)
    }

    /// The segment size changes: what was counted stays, and what did not fill a segment, too.
    fn change(&mut self, mss: u32) {
        let before = self.of(self.latest);
        let age = self.latest.wrapping_sub(self.bytes) as i64;
        self.segments = self.segments.saturating_add_signed(age.div_euclid(self.mss as i64));
        self.bytes = self.latest.wrapping_sub(age.rem_euclid(self.mss as i64) as u64);
        self.mss = mss;
        self.owed += (self.of(self.latest) - before) as u32;
    }
}

/// Bytes of events that have no total of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Carry(u64);

impl Carry {
    fn take(&mut self, bytes: u32, mss: u32) -> u32 {
        self.0 += bytes as u64;
        let segments = self.0 / mss as u64;
        self.0 -= segments * mss as u64;
        segments as u32
    }
}

/// A controller that computes in segments, driven by a transport that counts bytes.
///
/// ```
/// use fullpipe_cc::{Any, Config, Connection, Controller, Limits, Params, Segments};
/// use fullpipe_units::{Duration, Rate};
///
/// let config = Config {
///     mss: 1200,
///     unit: 1,
///     initial_cwnd: 12_000,
///     cwnd_clamp: Config::MOST_IN_FLIGHT,
///     max_pacing_rate: Rate::MAX,
///     gso_max: Config::GSO_MAX,
///     max_tcp_header: Config::MAX_TCP_HEADER,
///     paced: true,
///     hz: 1000,
///     ssthresh: Limits::INFINITE,
/// };
/// let connection = Connection { srtt: Duration::from_millis(20), ..Connection::default() };
/// let cubic = Params::by_name("cubic").unwrap();
/// assert!(!cubic.counts_bytes());
/// let controller = Segments::new(&config, &connection, |config, connection| Any::new(&cubic, config, connection));
/// assert_eq!(controller.limits().cwnd, 12_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Segments<C> {
    controller: C,
    mss: u32,
    cwnd_clamp: u32,
    delivered: Total,
    lost: Total,
    una: Total,
    sent: Carry,
    sent_again: Carry,
    marked: Carry,
    repaired: Carry,
    discarded: Carry,
}

impl<C: Controller> Segments<C> {
    /// Makes a controller of a connection whose handshake is done, by `new`, with the configuration of the transport: its units are
    /// bytes.
    pub fn new(
        config: &Config,
        connection: &Connection,
        new: impl FnOnce(&Config, &Connection) -> C,
    ) -> Segments<C> {
        let mss = config.mss.max(1);
        let (delivered, lost) =
            (Total::new(Round::Down, connection.delivered, mss), Total::new(Round::Up, connection.lost, mss));
        let inner = Config {
            mss,
            unit: mss,
            initial_cwnd: (config.initial_cwnd / mss).max(1),
            cwnd_clamp: (config.cwnd_clamp / mss).max(1),
            ssthresh: match config.ssthresh {
                Limits::INFINITE => Limits::INFINITE,
                bytes => bytes / mss,
            },
            ..*config
        };
        let connection = connection_in_segments(connection, &delivered, &lost);
        Segments {
            controller: new(&inner, &connection),
            mss,
            cwnd_clamp: config.cwnd_clamp,
            delivered,
            lost,
            una: Total::new(Round::Down, 0, mss),
            sent: Carry::default(),
            sent_again: Carry::default(),
            marked: Carry::default(),
            repaired: Carry::default(),
            discarded: Carry::default(),
        }
    }

    /// The controller.
    pub const fn controller(&self) -> &C {
        &self.controller
    }

    fn level(&self, bytes: u32) -> u32 {
        bytes.div_ceil(self.mss)
    }

    fn connection(&mut self, connection: &Connection) -> Connection {
        self.delivered.now(connection.delivered);
        self.lost.now(connection.lost);
        connection_in_segments(connection, &self.delivered, &self.lost)
    }

    fn sample(&self, ack: &Ack) -> RateSample {
        let (sample, mss) = (&ack.sample, self.mss);
        let delivered = sample.delivered.map(|bytes| (bytes / mss).max(1));
        let interval = match (sample.interval, sample.delivered, delivered) {
            (Some(interval), Some(bytes), Some(segments)) if bytes > 0 => {
                let nanos =
                    (interval.as_nanos() as u128 * segments as u128 * mss as u128).div_ceil(bytes as u128);
                Some(
                    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)).min(interval.max(LONGEST)),
                )
            }
            (interval, ..) => interval,
        };
        RateSample {
            delivered,
            interval,
            prior_delivered: self.delivered.of(sample.prior_delivered),
            tx_in_flight: self.level(sample.tx_in_flight),
            lost_since_sent: self.lost.since(ack.connection.lost, sample.lost_since_sent),
            ..*sample
        }
    }

    fn in_bytes(&self, segments: u32) -> u32 {
        segments.saturating_mul(self.mss)
    }
}

fn connection_in_segments(connection: &Connection, delivered: &Total, lost: &Total) -> Connection {
    Connection {
        delivered: delivered.of(connection.delivered),
        lost: lost.of(connection.lost),
        packets_out: connection.packets_out.div_ceil(delivered.mss),
        in_flight: connection.in_flight.div_ceil(delivered.mss),
        ..*connection
    }
}

impl<C: Controller> Controller for Segments<C> {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        let connection = self.connection(&start.connection);
        self.controller.on_transmit_start(&TransmitStart { connection, ..*start });
    }

    fn on_window_unused(&mut self, unused: &WindowUnused) {
        let connection = self.connection(&unused.connection);
        self.controller.on_window_unused(&WindowUnused { connection, used: self.level(unused.used) });
    }

    fn on_sent(&mut self, sent: &Sent) {
        let carry = if sent.retransmission { &mut self.sent_again } else { &mut self.sent };
        let units = carry.take(sent.units, self.mss);
        let (prior_in_flight, prior_packets_out) =
            (self.level(sent.prior_in_flight), self.level(sent.prior_packets_out));
        self.controller.on_sent(&Sent { units, prior_in_flight, prior_packets_out, ..*sent });
    }

    fn on_rtt(&mut self, sample: &RttSample) {
        let (snd_una, snd_nxt) = (self.una.now(sample.snd_una), self.una.of(sample.snd_nxt));
        self.controller.on_rtt(&RttSample { snd_una, snd_nxt, ..*sample });
    }

    fn on_ce(&mut self, marks: &CeMarks) {
        self.controller.on_ce(&CeMarks {
            echoed: marks.echoed,
            units: self.marked.take(marks.units, self.mss),
            delivered: self.delivered.now(marks.delivered),
            snd_una: self.una.now(marks.snd_una),
            snd_nxt: self.una.of(marks.snd_nxt),
        });
    }

    fn on_tail_repair(&mut self, repair: &TailRepair) {
        let delivered = self.delivered.now(repair.delivered);
        let units = self.repaired.take(repair.units, self.mss);
        self.controller.on_tail_repair(&TailRepair { delivered, units, ..*repair });
    }

    fn on_undo(&mut self, undo: &Undo) {
        let connection = self.connection(&undo.connection);
        self.controller.on_undo(&Undo { connection });
    }

    fn on_lost(&mut self, lost: &Lost) {
        let lost = Lost {
            delivered: self.delivered.now(lost.delivered),
            units: self.lost.since(lost.lost, lost.units),
            tx_in_flight: self.level(lost.tx_in_flight),
            tx_delivered: self.delivered.of(lost.tx_delivered),
            tx_lost: self.lost.of(lost.tx_lost),
            lost: self.lost.now(lost.lost),
            ..*lost
        };
        self.controller.on_lost(&lost);
    }

    fn on_discarded(&mut self, discarded: &Discarded) {
        let units = self.discarded.take(discarded.units, self.mss);
        let in_flight = self.level(discarded.in_flight);
        self.controller.on_discarded(&Discarded { units, in_flight, ..*discarded });
    }

    fn on_state(&mut self, change: &StateChange) {
        let connection = self.connection(&change.connection);
        self.controller.on_state(&StateChange { connection, ..*change });
    }

    fn on_ack(&mut self, ack: &Ack) {
        let connection = self.connection(&ack.connection);
        let event = Ack {
            connection,
            prior_in_flight: self.level(ack.prior_in_flight),
            newly_delivered: self.delivered.grown(ack.connection.delivered, ack.newly_delivered),
            newly_lost: self.lost.grown(ack.connection.lost, ack.newly_lost),
            newly_acked: self.una.grown(ack.snd_una, ack.newly_acked),
            snd_una: self.una.now(ack.snd_una),
            snd_nxt: self.una.of(ack.snd_nxt),
            sample: self.sample(ack),
            max_packets_out: self.level(ack.max_packets_out),
            ..*ack
        };
        self.controller.on_ack(&event);
    }

    fn on_mss(&mut self, mss: u32) {
        let mss = mss.max(1);
        for total in [&mut self.delivered, &mut self.lost, &mut self.una] {
            total.change(mss);
        }
        self.mss = mss;
        self.controller.on_mss(mss);
    }

    fn limits(&self) -> Limits {
        let limits = self.controller.limits();
        Limits {
            cwnd: self.in_bytes(limits.cwnd).min(self.cwnd_clamp),
            ssthresh: self.in_bytes(limits.ssthresh).min(Limits::INFINITE),
            min_burst: self.in_bytes(limits.min_burst),
            ..limits
        }
    }

    fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Any, CATALOGUE, Params};
    use crate::testing::CONFIG;
    use fullpipe_units::Time;

    /// A controller that adds up what it hears.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    struct Sums {
        config: Option<Config>,
        sent: u64,
        delivered: u64,
        lost: u64,
        ranges_lost: u64,
        acked: u64,
        marked: u64,
        /// The newest sample's rate in segments a second.
        last: Option<Ack>,
    }

    impl Controller for Sums {
        fn on_transmit_start(&mut self, _: &TransmitStart) {}
        fn on_window_unused(&mut self, _: &WindowUnused) {}
        fn on_sent(&mut self, sent: &Sent) {
            self.sent += sent.units as u64;
        }
        fn on_rtt(&mut self, _: &RttSample) {}
        fn on_ce(&mut self, marks: &CeMarks) {
            self.marked += marks.units as u64;
        }
        fn on_tail_repair(&mut self, _: &TailRepair) {}
        fn on_undo(&mut self, _: &Undo) {}
        fn on_lost(&mut self, lost: &Lost) {
            self.ranges_lost += lost.units as u64;
        }
        fn on_discarded(&mut self, _: &Discarded) {}
        fn on_state(&mut self, _: &StateChange) {}
        fn on_ack(&mut self, ack: &Ack) {
            self.delivered += ack.newly_delivered as u64;
            self.lost += ack.newly_lost as u64;
            self.acked += ack.newly_acked as u64;
            self.last = Some(*ack);
        }
        fn on_mss(&mut self, _: u32) {}
        fn limits(&self) -> Limits {
            Limits {
                cwnd: 10,
                ssthresh: Limits::INFINITE,
                pacing_rate: fullpipe_units::Rate::MAX,
                min_burst: 2,
                mark_app_limited: false,
                check_app_limited: false,
            }
        }
        fn snapshot(&self) -> Snapshot {
            Snapshot { phase: Phase::Fixed, bandwidth: None, min_rtt: None }
        }
    }

    const IN_BYTES: Config =
        Config { mss: 1_200, unit: 1, initial_cwnd: 12_000, cwnd_clamp: 6_000_000, ..CONFIG };

    fn at(delivered: u64, lost: u64) -> Connection {
        Connection { delivered, lost, ..Connection::default() }
    }

    fn sums(delivered: u64, lost: u64) -> Segments<Sums> {
        Segments::new(&IN_BYTES, &at(delivered, lost), |config, _| Sums {
            config: Some(*config),
            ..Sums::default()
        })
    }

    /// An ACK of a connection that delivered and lost this much, all of it now.
    fn ack(delivered: u64, lost: u64, snd_una: u64, newly: (u32, u32, u32)) -> Ack {
        Ack {
            connection: at(delivered, lost),
            prior_in_flight: 0,
            newly_delivered: newly.0,
            newly_lost: newly.1,
            newly_acked: newly.2,
            rtt: None,
            maybe_delayed: false,
            una_advanced: newly.2 > 0,
            snd_una,
            snd_nxt: snd_una + 5_000,
            sample: RateSample::NONE,
            cwnd_limited: false,
            max_packets_out: 0,
            may_raise_cwnd: true,
            may_answer_probe: false,
        }
    }

    /// Bytes are neither lost nor counted twice: after any events, the segments are those of the totals.
    #[test]
    fn accumulated_segments_are_exact() {
        let mut seed = 7u64;
        let mut below = |bound: u32| {
            seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            ((seed >> 33) % bound as u64) as u32
        };
        let start = (u32::MAX as u64 - 100_000, u32::MAX as u64 - 3_000);
        let mut adapter = sums(start.0, start.1);
        let (mut sent, mut delivered, mut lost, mut una, mut marked) = (0u64, 0u64, 0u64, 0u64, 0u64);
        for _ in 0..200_000 {
            let size = 1 + below(1_500);
            adapter.on_sent(&Sent {
                departure: Time::ZERO,
                units: size,
                prior_in_flight: 0,
                prior_packets_out: 0,
                retransmission: false,
            });
            sent += size as u64;
            let newly_lost = if below(10) == 0 { 1 + below(3_000) } else { 0 };
            if newly_lost > 0 {
                adapter.on_lost(&Lost {
                    now: Time::ZERO,
                    delivered: start.0 + delivered,
                    units: newly_lost,
                    new_range: true,
                    tx_in_flight: 5_000,
                    tx_delivered: start.0 + delivered,
                    tx_lost: start.1 + lost,
                    lost: start.1 + lost + newly_lost as u64,
                    app_limited: false,
                });
            }
            let newly = (below(4_000), newly_lost, below(4_000));
            (delivered, lost, una) =
                (delivered + newly.0 as u64, lost + newly.1 as u64, una + newly.2 as u64);
            let echoed = below(3) == 0;
            let units = if echoed { newly.0 } else { 0 };
            marked += units as u64;
            // It sees this ACK's total before the ACK itself does.
            let (delivered, lost) = (start.0 + delivered, start.1 + lost);
            adapter.on_ce(&CeMarks { echoed, units, delivered, snd_una: una, snd_nxt: una + 5_000 });
            adapter.on_ack(&ack(delivered, lost, una, newly));
        }
        let (seen, mss) = (adapter.controller, 1_200);
        assert_eq!((seen.sent, seen.acked, seen.marked), (sent / mss, una / mss, marked / mss));
        // Totals that began anywhere: from the segments of the first to those of the last.
        let whole = |from: u64, by: u64| (from + by) / mss - from / mss;
        assert_eq!(seen.delivered, whole(start.0, delivered));
        let begun = (start.1 + lost).div_ceil(mss) - start.1.div_ceil(mss);
        assert_eq!((seen.lost, seen.ranges_lost), (begun, begun));
    }

    #[test]
    fn segment_size_change_loses_nothing() {
        let (mut adapter, mut bytes, mut counted) = (sums(0, 0), 0, 0u64);
        let mut mss = 1_200;
        for step in 0..10_000u64 {
            let newly = (step * 7_919 % 2_000) as u32;
            bytes += newly as u64;
            let before = adapter.controller.delivered;
            adapter.on_ack(&ack(bytes, 0, bytes, (newly, 0, newly)));
            counted += (adapter.controller.delivered - before) * mss as u64;
            // What is not counted yet is less than one segment, of whatever size.
            assert!(bytes - counted < mss as u64, "step {step}: {bytes} against {counted}");
            if step % 10 == 9 {
                mss = [1_200, 900, 1_452, 300][(step / 10 % 4) as usize];
                adapter.on_mss(mss);
            }
        }
        assert_eq!(adapter.controller.acked, adapter.controller.delivered);
    }

    #[test]
    fn loss_never_late_flight_never_empty() {
        let mut adapter = sums(0, 0);
        adapter.on_ack(&ack(1_199, 1, 0, (1_199, 1, 0)));
        assert_eq!((adapter.controller.delivered, adapter.controller.lost), (0, 1));
        adapter.on_ack(&Ack { prior_in_flight: 1, ..ack(1_200, 1_200, 0, (1, 1_199, 0)) });
        assert_eq!((adapter.controller.delivered, adapter.controller.lost), (1, 1));
        assert_eq!(adapter.controller.last.unwrap().prior_in_flight, 1);
    }

    #[test]
    fn a_sample_keeps_its_rate() {
        let mut adapter = sums(0, 0);
        let longest = 10_000_000_000.0;
        for (bytes, segments) in [(1_200, 1), (3_000, 2), (37, 1), (1, 1), (6_000_001, 5_000)] {
            let interval = Duration::from_micros(40_000);
            let sample = RateSample { delivered: Some(bytes), interval: Some(interval), ..RateSample::NONE };
            adapter.on_ack(&Ack { sample, ..ack(1_000_000, 0, 0, (0, 0, 0)) });
            let seen = adapter.controller.last.unwrap().sample;
            assert_eq!(seen.delivered, Some(segments));
            let due = (interval.as_nanos() as f64 * segments as f64 * 1_200.0 / bytes as f64).min(longest);
            assert!((seen.interval.unwrap().as_nanos() as f64 - due).abs() <= 1.0, "{seen:?}");
        }
    }

    #[test]
    fn limits_are_segments_below_clamp() {
        for info in CATALOGUE {
            let params = Params::by_name(info.name).unwrap();
            let controller = Segments::new(&IN_BYTES, &at(0, 0), |config, connection| {
                assert_eq!((config.mss, config.unit, config.initial_cwnd), (1_200, 1_200, 10));
                assert_eq!(config.cwnd_clamp, 5_000);
                Any::new(&params, config, connection)
            });
            let limits = controller.limits();
            assert_eq!((limits.cwnd, limits.ssthresh), (12_000, Limits::INFINITE), "{}", info.name);
            assert!(limits.min_burst.is_multiple_of(1_200) && limits.min_burst > 0);
        }
        let clamped = Segments { cwnd_clamp: 7_000, ..sums(0, 0) };
        assert_eq!((clamped.limits().cwnd, clamped.controller().config.unwrap().unit), (7_000, 1_200));
    }
}
