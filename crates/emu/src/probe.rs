//! Checks the accuracy of the emulator by measurements from outside.
//!
//! [`probe`] puts a sender without congestion control and a receiver at the ends of the very path that runs use, with the
//! same threads, namespaces, devices and ferry. Every datagram is numbered, and stamped at both ends: by the sender with
//! CLOCK_MONOTONIC right before its system call, by the receiving kernel where it enters the network stack. The expected
//! result is computed from the sender's stamps and the requested numbers. The ferry's own record is not used, only returned
//! for comparison.
//!
//! Reading order: `sender`, `receiver`, `expected`, `statistics`. The caller decides which deviations it tolerates.

mod expected;
mod receiver;
mod sender;
mod statistics;

use fullpipe_record::ProcessorTime;
use fullpipe_scenario::spec::{Randomness, Spec};
use fullpipe_units::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::EmuError;
use crate::carry::{Carried, End};
use crate::clock::StampClock;
use crate::path::Path;
use crate::path_clock::Pause;
use crate::sys::datagram::HEAD_BYTES;
use crate::trust::LATENESS_LIMIT;
use expected::{Fate, Pipe};
use receiver::{Arrival, Received};
use sender::Sent;
pub use statistics::{Decisions, Share, Spread};

/// The interval between values of a rate over time, about.
const PIECE: Duration = Duration::from_millis(100);
/// The maximum number of datagrams; a record of each stays in memory.
const MAX_DATAGRAMS: u64 = 20_000_000;

/// What is sent, and the requested path. The request is repeated here, apart from the path's own description, so that a
/// path that differs from the request is detected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// Length of each IP packet.
    pub datagram_bytes: u32,
    /// The rate of sending, in bits per second of IP packets.
    pub offered_bps: u64,
    /// The duration of sending.
    pub sending_ns: Duration,
    /// The requested rate of the path.
    pub rate_bps: u64,
    /// The requested one-way delay.
    pub delay_ns: Duration,
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Measured {
    /// Datagrams that were sent.
    pub sent: u64,
    /// Bits per second that were actually sent.
    pub sent_bps: Option<f64>,
    /// Datagrams that arrived, each counted once.
    pub received: u64,
    /// Datagrams that arrived again.
    pub duplicated: u64,
    /// Datagrams that arrived after one that was sent later.
    pub reordered: u64,
    /// Datagrams whose length, number or stamp differs from the one sent.
    pub damaged: u64,
    /// How much later datagrams arrived than over a link of the requested rate and delay, computed from the times at which
    /// they were sent.
    pub late: Option<Spread>,
    /// The error of that, nanoseconds.
    pub stamp_error_ns: u64,
    /// Which datagrams did not arrive, compared with the decisions of the path model for the sender's stamps.
    pub decisions: Decisions,
    /// Random losses among the datagrams that the queue accepted.
    pub lost: Option<Share>,
    /// Bits per second that arrived, from the first to the last datagram.
    pub received_bps: Option<f64>,
    /// Bits per second expected: less than the requested rate if the sender left the link idle.
    pub expected_bps: Option<f64>,
    /// (nanoseconds since the start, bits per second until then).
    pub received_over_time: Vec<(u64, f64)>,
    /// From the first datagram that the queue dropped.
    pub full: Option<WhenFull>,
    /// Losses outside the path.
    pub outside: Outside,
    /// A run is untrustworthy by its own record if 1 % of packets are later than this, nanoseconds.
    pub lateness_limit_ns: u64,
    /// The ferry's own record: 99 % of packets left no later than this, nanoseconds.
    pub own_p99_ns: u64,
    /// The maximum in the ferry's own record, nanoseconds.
    pub own_max_ns: u64,
    /// Why a run like this would be marked untrustworthy.
    pub own_doubts: Vec<String>,
}

/// Measures while the queue is full.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WhenFull {
    /// Number of the first datagram that was dropped.
    pub first: u64,
    /// Bits per second that were sent from then on.
    pub sent_bps: Option<f64>,
    /// Datagrams dropped among those sent from then on.
    pub dropped: u64,
    /// Drops expected among them.
    pub expected: u64,
    /// Datagrams sent from then on.
    pub sent: u64,
    /// Time in the queue and on the wire of those that arrived: the measured delay minus the requested delay.
    pub queueing: Option<Spread>,
    /// The same for those that were expected to arrive: shorter than the buffer if the sender paused and the queue shrank.
    pub expected_queueing: Option<Spread>,
}

/// Datagrams that were lost before or after the path: limits of the machine, not errors of the emulator.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Outside {
    /// The sending kernel refused them.
    pub refused: u64,
    /// The kernel dropped them before the ferry read them.
    pub before: u64,
    /// The kernel refused them from the ferry.
    pub after: u64,
    /// The receiver's socket had no room for them.
    pub receiver: u64,
    /// They arrived without the kernel's stamp.
    pub unstamped: u64,
}

/// A datagram of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trip {
    /// When it was sent, nanoseconds since the start.
    pub sent_ns: u64,
    /// When it arrived.
    pub received_ns: Option<u64>,
    /// When it was expected; `None` if the queue dropped it.
    pub due_ns: Option<u64>,
    /// Whether it was expected to arrive at all.
    pub expected: bool,
}

/// Sends over the forward path of `spec` and returns the measures, and a record of every datagram. `seed` drives the path's
/// random elements. Takes the scenario's duration, which must be long enough for all datagrams to arrive.
///
/// Call it in a process of its own that has only one thread, as [`Path::carry`].
///
/// # Errors
/// When the probe does not fit the path, or the path cannot be carried ([`Path::carry`]).
pub fn probe(spec: &Spec, seed: u64, probe: &Probe) -> Result<(Measured, Vec<Trip>), EmuError> {
    check_probe(spec, probe)?;
    let end = Time::ZERO.saturating_add(spec.duration_ns);
    let sending = |host: End<'_>| {
        let socket = sender::socket()?;
        let started = host.start()?;
        let sent = sender::send(&socket, probe, started)?;
        started.wait_until(end);
        Ok(sent)
    };
    let receiving = |host: End<'_>| {
        let socket = receiver::socket()?;
        let stamps = StampClock::now();
        receiver::receive(&socket, host.start()?, stamps)
    };
    let path = Path { pause: Pause::GoesOn, ..Path::of(spec, seed) };
    let carried = path.carry(sending, receiving)?;
    evaluate(spec, seed, probe, &path, carried)
}

fn check_probe(spec: &Spec, probe: &Probe) -> Result<(), EmuError> {
    let unsupported = |field: &str, reason: String| {
        let fix = "choose another".to_owned();
        Err(EmuError::Unsupported { field: format!("probe.{field}"), reason, fix })
    };
    let least = sender::HEADER_BYTES + HEAD_BYTES as u32;
    if !(least..=spec.mtu_bytes).contains(&probe.datagram_bytes) {
        let reason = format!("{} bytes are not in {least} to {}", probe.datagram_bytes, spec.mtu_bytes);
        return unsupported("datagram_bytes", reason);
    }
    for (field, bps) in [("offered_bps", probe.offered_bps), ("rate_bps", probe.rate_bps)] {
        if bps == 0 {
            return unsupported(field, "is 0 bit/s; expected a rate above 0".to_owned());
        }
    }
    let count = sender::count(probe);
    if !(2..=MAX_DATAGRAMS).contains(&count) {
        return unsupported("sending_ns", format!("{count} datagrams are not in 2 to {MAX_DATAGRAMS}"));
    }
    Ok(())
}

fn evaluate(
    spec: &Spec,
    seed: u64,
    probe: &Probe,
    path: &Path,
    carried: Carried<Sent, Received>,
) -> Result<(Measured, Vec<Trip>), EmuError> {
    // A sender of numbered datagrams that waits for a processor sends them later, which is in their time stamps.
    let carried = Carried { processor: ProcessorTime::default(), ..carried };
    let own_doubts = carried.doubts(path);
    let Carried { near: sent, far: received, dropped_frames, ferried, .. } = carried;
    let outside = Outside {
        refused: sent.refused,
        before: dropped_frames[0],
        after: ferried.failed_writes,
        receiver: received.dropped,
        unstamped: received.unstamped,
    };
    let own = ferried.lateness.lateness();
    let fates =
        expected::fates(&spec.forward, Randomness::Forward.seed(seed), probe.datagram_bytes, &sent.at_ns)?;
    let (order, trips) = compare(probe, &sent.at_ns, &received, &fates);
    let late = trips.iter().filter_map(|trip| Some(trip.received_ns? as i64 - trip.due_ns? as i64)).collect();
    let arrived_ns: Vec<u64> = trips.iter().filter_map(|trip| trip.received_ns).collect();
    let dropped_by_queue = fates.iter().filter(|fate| **fate == Fate::QueueFull).count() as u64;
    let model = expected_trips(probe, &sent.at_ns, &fates);
    let model_arrived_ns: Vec<u64> = model.iter().filter_map(|trip| trip.received_ns).collect();
    let missing = (trips.len() - arrived_ns.len()) as u64;
    let let_in = trips.len() as u64 - dropped_by_queue;
    let measured = Measured {
        sent: trips.len() as u64,
        sent_bps: statistics::rate_bps(&sent.at_ns, probe.datagram_bytes),
        received: arrived_ns.len() as u64,
        duplicated: order.duplicated,
        reordered: order.reordered,
        damaged: order.damaged,
        late: Spread::of(late),
        stamp_error_ns: received.stamp_error_ns,
        decisions: Decisions::of(trips.iter().map(|trip| (trip.received_ns.is_some(), trip.expected))),
        lost: Share::of(missing.saturating_sub(dropped_by_queue), let_in),
        received_bps: statistics::rate_bps(&arrived_ns, probe.datagram_bytes),
        expected_bps: statistics::rate_bps(&model_arrived_ns, probe.datagram_bytes),
        received_over_time: statistics::rate_over_time(&arrived_ns, probe.datagram_bytes, PIECE.as_nanos()),
        full: when_full(probe, &trips, &model),
        outside,
        lateness_limit_ns: LATENESS_LIMIT.as_nanos(),
        own_p99_ns: own.p99_ns,
        own_max_ns: own.max_ns,
        own_doubts,
    };
    Ok((measured, trips))
}

/// How datagrams arrived, apart from when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Order {
    duplicated: u64,
    reordered: u64,
    damaged: u64,
}

/// Matches the records of both ends.
fn compare(probe: &Probe, sent_ns: &[u64], received: &Received, fates: &[Fate]) -> (Order, Vec<Trip>) {
    let mut order = Order::default();
    let mut received_ns: Vec<Option<u64>> = vec![None; sent_ns.len()];
    let mut latest = 0;
    for arrival in &received.arrivals {
        let number = arrival.number as usize;
        if sent_ns.get(number) != Some(&arrival.sent_ns) || arrival.bytes != probe.datagram_bytes {
            order.damaged += 1;
            continue;
        }
        order.reordered += u64::from(arrival.number < latest);
        latest = latest.max(arrival.number);
        if received_ns[number].is_some() {
            order.duplicated += 1;
        } else {
            received_ns[number] = Some(arrival.at_ns);
        }
    }
    // The link carried the datagrams that arrived and those that were lost behind it. Drops of the queue are taken from the
    // arrivals, so that one different decision does not move all later times.
    let on_link: Vec<bool> = received_ns
        .iter()
        .zip(fates)
        .map(|(received, fate)| received.is_some() || *fate == Fate::Lost)
        .collect();
    let pipe = Pipe { rate_bps: probe.rate_bps, delay_ns: probe.delay_ns.as_nanos() };
    let entered = sent_ns.iter().zip(&on_link).filter(|(_, on_link)| **on_link).map(|(sent, _)| *sent);
    let mut due = pipe.arrivals(probe.datagram_bytes, entered).into_iter();
    let trips = (0..sent_ns.len()).map(|number| Trip {
        sent_ns: sent_ns[number],
        received_ns: received_ns[number],
        due_ns: if on_link[number] { due.next() } else { None },
        expected: fates[number] == Fate::Arrives,
    });
    (order, trips.collect())
}

/// The trips through a perfect emulator: decisions of the path model, and every datagram on time.
fn expected_trips(probe: &Probe, sent_ns: &[u64], fates: &[Fate]) -> Vec<Trip> {
    let perfect = |(number, fate): (usize, &Fate)| {
        (*fate == Fate::Arrives).then_some(Arrival {
            number: number as u64,
            sent_ns: sent_ns[number],
            at_ns: 0,
            bytes: probe.datagram_bytes,
        })
    };
    let arrivals = fates.iter().enumerate().filter_map(perfect).collect();
    let (_, mut trips) = compare(probe, sent_ns, &Received { arrivals, ..Received::default() }, fates);
    for trip in &mut trips {
        trip.received_ns = trip.received_ns.and(trip.due_ns);
    }
    trips
}

fn when_full(probe: &Probe, trips: &[Trip], model: &[Trip]) -> Option<WhenFull> {
    let first = trips.iter().position(|trip| trip.due_ns.is_none())?;
    let sent_ns: Vec<u64> = trips[first..].iter().map(|trip| trip.sent_ns).collect();
    let dropped = |trips: &[Trip]| trips.iter().filter(|trip| trip.received_ns.is_none()).count() as u64;
    let queueing = |trips: &[Trip]| {
        let one = |trip: &Trip| {
            Some(trip.received_ns? as i64 - trip.sent_ns as i64 - probe.delay_ns.as_nanos() as i64)
        };
        Spread::of(trips.iter().filter_map(one).collect())
    };
    Some(WhenFull {
        first: first as u64,
        sent_bps: statistics::rate_bps(&sent_ns, probe.datagram_bytes),
        dropped: dropped(&trips[first..]),
        expected: dropped(&model[first..]),
        sent: sent_ns.len() as u64,
        queueing: queueing(&trips[first..]),
        expected_queueing: queueing(&model[first..]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ferry::FerryReport;

    /// 1000 bytes at 8 Mbit/s: a millisecond each; 20 ms of delay.
    const PROBE: Probe = Probe {
        datagram_bytes: 1000,
        offered_bps: 1_600_000,
        sending_ns: Duration::from_secs(1),
        rate_bps: 8_000_000,
        delay_ns: Duration::from_millis(20),
    };

    fn spec(loss: f64) -> Spec {
        let document = format!(
            r#"{{"path": {{"rate": "8 Mbit/s", "rtt": "40 ms", "buffer": "2.5 KB", "loss": {loss}}},
                "flows": [{{"controller": "reno"}}], "duration": "2 s"}}"#
        );
        let mut all =
            fullpipe_scenario::resolve_all(&document, fullpipe_scenario::Format::Json, None).unwrap();
        all.remove(0).1
    }

    /// A run in which every packet arrived `late_ns` behind its time, as if a perfect emulator had carried it.
    fn carried(spec: &Spec, seed: u64, sent_ns: Vec<u64>, late_ns: u64) -> Carried<Sent, Received> {
        let fates = expected::fates(&spec.forward, Randomness::Forward.seed(seed), 1000, &sent_ns).unwrap();
        let on_link = |number: &usize| fates[*number] != Fate::QueueFull;
        let numbers: Vec<usize> = (0..sent_ns.len()).filter(on_link).collect();
        let pipe = Pipe { rate_bps: 8_000_000, delay_ns: 20_000_000 };
        let due = pipe.arrivals(1000, numbers.iter().map(|number| sent_ns[*number]));
        let arrivals = numbers.iter().zip(due).filter(|(number, _)| fates[**number] == Fate::Arrives);
        let arrivals = arrivals.map(|(number, due)| Arrival {
            number: *number as u64,
            sent_ns: sent_ns[*number],
            at_ns: due + late_ns,
            bytes: 1000,
        });
        Carried {
            far: Received { arrivals: arrivals.collect(), ..Received::default() },
            near: Sent { at_ns: sent_ns, refused: 0 },
            dropped_frames: [0, 0],
            ferried: FerryReport { passes: 1, ..FerryReport::default() },
            processor: ProcessorTime::default(),
        }
    }

    fn evaluated(
        spec: &Spec,
        seed: u64,
        probe: &Probe,
        run: Carried<Sent, Received>,
    ) -> (Measured, Vec<Trip>) {
        evaluate(spec, seed, probe, &Path::of(spec, seed), run).unwrap()
    }

    fn every(gap_ns: u64) -> Vec<u64> {
        (0..3000).map(|number| 1_000_000 + number * gap_ns).collect()
    }

    #[test]
    fn perfect_emulator_shows_no_error() {
        let spec = spec(0.01);
        let run = carried(&spec, 3, every(5_000_000), 70_000);
        let (measured, trips) = evaluated(&spec, 3, &PROBE, run);
        assert_eq!(
            measured.late,
            Some(Spread { min_ns: 70_000, p50_ns: 70_000, p99_ns: 70_000, max_ns: 70_000 })
        );
        let Decisions { dropped, expected, differently, .. } = measured.decisions;
        assert!(dropped > 10 && (dropped, differently) == (expected, 0), "{:?}", measured.decisions);
        assert_eq!(measured.lost.map(|share| (share.packets, share.of)), Some((dropped, 3000)));
        assert_eq!((measured.reordered, measured.duplicated, measured.damaged), (0, 0, 0));
        assert_eq!((trips.len(), measured.full), (3000, None));
    }

    #[test]
    fn full_queue_shows_rate_length_drops() {
        let spec = spec(0.0);
        // 1.5 times the rate; room for 2.5 packets.
        let run = carried(&spec, 1, every(666_667), 0);
        let (measured, _) = evaluated(&spec, 1, &PROBE, run);
        assert!((measured.received_bps.unwrap() - 8e6).abs() < 1.0, "{measured:?}");
        let full = measured.full.unwrap();
        assert_eq!(full.first, 5);
        assert_eq!(full.sent, 2995);
        assert!(full.dropped.abs_diff(2995 / 3) <= 1, "{full:?}");
        // On arrival there are 1 and 4/3 of a packet in front of those that are let in.
        let queueing = full.queueing.unwrap();
        assert!((1_999_000..2_334_000).contains(&queueing.p50_ns), "{queueing:?}");
        assert!(queueing.max_ns <= 2_500_000, "{queueing:?}");
        assert_eq!(measured.decisions.differently, 0);
        assert_eq!((full.expected, full.expected_queueing), (full.dropped, full.queueing));
        assert_eq!(measured.expected_bps, measured.received_bps);
    }

    /// Half a second in which nothing is sent is not the emulator's fault: 2500 packets of a millisecond take 3 s.
    #[test]
    fn sender_pause_is_accounted_for() {
        let spec = spec(0.0);
        let paused: Vec<u64> =
            every(666_667).iter().map(|at| at + at / 1_000_000_000 * 500_000_000).collect();
        let (measured, _) = evaluated(&spec, 1, &PROBE, carried(&spec, 1, paused, 0));
        assert!(measured.expected_bps.unwrap() < 7.3e6, "{measured:?}");
        assert_eq!(measured.expected_bps, measured.received_bps);
        assert_eq!(measured.late.unwrap().max_ns, 0);
    }

    #[test]
    fn wrong_drops_order_and_bytes_detected() {
        let spec = spec(0.01);
        let sent = every(5_000_000);
        let of = |spoil: &dyn Fn(&mut Vec<Arrival>)| {
            let mut run = carried(&spec, 3, sent.clone(), 0);
            spoil(&mut run.far.arrivals);
            evaluated(&spec, 3, &PROBE, run).0
        };
        let dropped = of(&|arrivals| {
            arrivals.remove(100);
        });
        assert_eq!((dropped.decisions.differently, dropped.decisions.furthest_apart), (1, 1));
        let swapped = of(&|arrivals| arrivals.swap(10, 11));
        assert_eq!((swapped.reordered, swapped.decisions.differently), (1, 0));
        let twice = of(&|arrivals| arrivals.insert(10, arrivals[10]));
        assert_eq!((twice.duplicated, twice.reordered), (1, 0));
        let damaged = of(&|arrivals| arrivals[10].bytes -= 1);
        assert_eq!((damaged.damaged, damaged.decisions.differently), (1, 1));
        let unknown = of(&|arrivals| arrivals[10].number = u64::MAX);
        assert_eq!(unknown.damaged, 1);
    }

    #[test]
    fn path_differing_from_request_is_detected() {
        let spec = spec(0.01);
        let sent = every(5_000_000);
        // Another seed loses others.
        let other_seed = evaluated(&spec, 4, &PROBE, carried(&spec, 3, sent.clone(), 0)).0;
        assert!(other_seed.decisions.differently > 10);
        // The request is 21 ms: everything is a millisecond early.
        let asked = Probe { delay_ns: Duration::from_millis(21), ..PROBE };
        let early = evaluated(&spec, 3, &asked, carried(&spec, 3, sent, 0)).0;
        assert_eq!(early.late.unwrap().p50_ns, -1_000_000);
    }

    #[test]
    fn unsendable_probe_is_refused_before_setup() {
        let spec = spec(0.0);
        let refused = |probe: Probe| check_probe(&spec, &probe).unwrap_err().to_string();
        assert!(refused(Probe { datagram_bytes: 1501, ..PROBE }).starts_with("probe.datagram_bytes: 1501"));
        assert!(refused(Probe { datagram_bytes: 43, ..PROBE }).starts_with("probe.datagram_bytes: 43"));
        assert!(refused(Probe { offered_bps: 0, ..PROBE }).starts_with("probe.offered_bps"));
        assert!(refused(Probe { rate_bps: 0, ..PROBE }).starts_with("probe.rate_bps"));
        assert!(refused(Probe { sending_ns: Duration::ZERO, ..PROBE }).starts_with("probe.sending_ns: 0"));
        assert!(check_probe(&spec, &PROBE).is_ok());
    }
}
