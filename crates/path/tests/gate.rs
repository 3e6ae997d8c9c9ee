//! Laws of queues with a discipline: the gate, its transmitter, and disciplines that are not built in.

use std::collections::BTreeMap;
use std::sync::Arc;

use fullpipe_path::config::{ElementConfig, Probability, QueueConfig, Schedule};
use fullpipe_path::{
    Admission, Cause, Chain, Discipline, Dropped, Ecn, Line, MakeDiscipline, OwnDisciplines, Packet, Setup,
    Tally, Waiting,
};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

/// First in, first out. Marks every `mark_every`-th packet and drops every `drop_every`-th when they leave; zero for none.
#[derive(Debug)]
struct Plain {
    line: Line,
    setup: Setup,
    mark_every: u64,
    drop_every: u64,
    seen: u64,
}

impl Discipline for Plain {
    fn enqueue(&mut self, _: Time, waiting: Waiting, dropped: &mut Dropped) {
        if self.setup.limit.takes(self.line.backlog(), &waiting) {
            self.line.push(waiting);
        } else {
            dropped.overflow(waiting);
        }
    }

    fn dequeue(&mut self, _: Time, dropped: &mut Dropped) -> Option<Waiting> {
        while let Some(mut waiting) = self.line.pop() {
            self.seen += 1;
            if self.drop_every > 0 && self.seen.is_multiple_of(self.drop_every) {
                dropped.early(waiting);
                continue;
            }
            if self.mark_every > 0 && self.seen.is_multiple_of(self.mark_every) {
                waiting.mark();
            }
            return Some(waiting);
        }
        None
    }

    fn backlog(&self) -> Tally {
        self.line.backlog()
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.setup.limit.bytes = bytes;
    }
}

fn plain(mark_every: u64, drop_every: u64) -> MakeDiscipline {
    Box::new(move |setup| Box::new(Plain { line: Line::default(), setup, mark_every, drop_every, seen: 0 }))
}

fn own(index: usize, make: MakeDiscipline) -> OwnDisciplines {
    BTreeMap::from([(index, make)])
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_sec(rate * 1_000_000)
}

fn micros(micros: u64) -> Time {
    Time::from_micros(micros)
}

/// A byte a microsecond.
fn link(queue_bytes: u64) -> ElementConfig {
    ElementConfig::Link {
        name: "link".into(),
        rate_bps: Schedule::constant(mbit(8)),
        queue: QueueConfig::drop_tail(Bytes::new(queue_bytes), None),
    }
}

/// A queue that takes everything, at any kind of transmitter.
fn endless() -> impl Strategy<Value = ElementConfig> {
    let queue = QueueConfig::drop_tail(Bytes::new(1 << 40), None);
    let rates = prop::collection::btree_map(0u64..3_000_000, 0u64..20_000_000_000, 0..4);
    prop_oneof![
        (1u64..20_000_000_000).prop_map(move |rate| ElementConfig::Link {
            name: "link".into(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(rate)),
            queue,
        }),
        (1u64..20_000_000_000, rates).prop_map(move |(initial, changes)| {
            let change = |(time, rate)| (Time::from_nanos(time), Rate::from_bits_per_sec(rate));
            let mut changes: Vec<_> = changes.into_iter().map(change).collect();
            changes.push((Time::from_nanos(3_000_000), mbit(50)));
            let rate_bps = Schedule { initial: Rate::from_bits_per_sec(initial), changes };
            ElementConfig::Link { name: "link".into(), rate_bps, queue }
        }),
        (1u64..200, 2000u64..9000).prop_map(move |(rate, burst)| ElementConfig::TokenBucket {
            name: "bucket".into(),
            rate_bps: mbit(rate),
            burst_bytes: Bytes::new(burst),
            queue,
        }),
        prop::collection::vec(0u64..5, 0..5).prop_map(move |mut times| {
            times.sort_unstable();
            times.push(5);
            ElementConfig::DeliveryTrace { name: "trace".into(), opportunities_ms: Arc::new(times), queue }
        }),
    ]
}

/// What came out: (due, packet, number).
fn collect(chain: &mut Chain<usize>, now: Time) -> Vec<(Time, Packet, usize)> {
    std::iter::from_fn(|| chain.pop(now)).collect()
}

fn drain(chain: &mut Chain<usize>, mut now: Time) -> Vec<(Time, Packet, usize)> {
    let mut output = Vec::new();
    while chain.next() != Time::NEVER {
        now = now.max(chain.next());
        output.extend(collect(chain, now));
    }
    output
}

proptest! {
    /// First in, first out behind a gate gives the departures that a transit function computes at once, to the nanosecond.
    #[test]
    fn a_gate_keeps_the_times_of_a_plain_queue(
        queue in endless(),
        jitter in 0u64..50_000,
        behind in 0u64..200_000,
        arrivals in prop::collection::vec((prop_oneof![Just(0), Just(1), 0u64..200_000], 1u32..2000, 0u32..2), 1..120),
        polls in prop::collection::vec(any::<bool>(), 120),
    ) {
        let elements = [
            ElementConfig::Jitter { amplitude_ns: Duration::from_nanos(jitter), reorder: false },
            queue,
            ElementConfig::Jitter { amplitude_ns: Duration::from_nanos(behind), reorder: false },
            ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_micros(10)) },
        ];
        let delays = [Duration::ZERO, Duration::from_micros(30)];
        let mut gated = Chain::with_disciplines(&elements, &delays, 7, own(1, plain(0, 0))).unwrap();
        let mut direct = Chain::new(&elements, &delays, 7).unwrap();
        let (mut now, mut from_gated, mut from_direct) = (Time::ZERO, Vec::new(), Vec::new());
        for (number, (&(gap, bytes, class), poll)) in arrivals.iter().zip(polls).enumerate() {
            now += Duration::from_nanos(gap);
            gated.push(now, Packet::new(bytes, class), number);
            direct.push(now, Packet::new(bytes, class), number);
            if poll {
                from_gated.extend(collect(&mut gated, now));
                from_direct.extend(collect(&mut direct, now));
                let (one, other) = (gated.queue(0), direct.queue(0));
                prop_assert_eq!(one.totals(now), other.totals(now));
                prop_assert_eq!(one.backlog(now), other.backlog(now));
            }
        }
        from_gated.extend(drain(&mut gated, now));
        from_direct.extend(drain(&mut direct, now));
        prop_assert_eq!(from_gated, from_direct);
    }

    /// Packets, bytes and marks add up, whatever a discipline does with packets of whatever codepoint.
    #[test]
    fn what_is_marked_and_dropped_adds_up(
        queue in endless(),
        mark_every in 0u64..4,
        drop_every in 0u64..4,
        loss in 0.0..0.3f64,
        arrivals in prop::collection::vec((0u64..200_000, 1u32..2000, 0u8..8), 1..120),
    ) {
        let loss = ElementConfig::Loss { probability: Schedule::constant(Probability::from_f64(loss)) };
        let elements = [queue, loss];
        let mut chain =
            Chain::with_disciplines(&elements, &[], 3, own(0, plain(mark_every, drop_every))).unwrap();
        let (mut now, mut offered, mut output) = (Time::ZERO, Vec::new(), Vec::new());
        for (number, &(gap, bytes, bits)) in arrivals.iter().enumerate() {
            now += Duration::from_nanos(gap);
            output.extend(collect(&mut chain, now));
            let packet = Packet { ecn: Ecn::from_bits(bits), ..Packet::new(bytes, 0) };
            offered.push(packet);
            chain.push(now, packet, number);
            let counts = chain.counts();
            prop_assert_eq!(counts.entered, counts.left + counts.dropped_total() + counts.inside);
        }
        output.extend(drain(&mut chain, now));
        let totals = chain.queue(0).totals(Time::from_nanos(u64::MAX - 1));
        let counts = chain.counts();
        prop_assert_eq!(counts.inside, Tally::default());
        prop_assert_eq!(totals.dropped, counts.dropped(Cause::Early));
        prop_assert_eq!(totals.arrived, totals.accepted + totals.dropped);
        prop_assert_eq!(counts.left.packets as usize, output.len());
        for (_, packet, number) in &output {
            let before = offered[*number];
            prop_assert_eq!((packet.bytes, packet.class), (before.bytes, before.class));
            // Marks never vanish, only capable packets get one, and nothing else changes.
            let marked = packet.ecn == Ecn::Ce && before.ecn.is_capable();
            prop_assert!(packet.ecn == before.ecn || marked);
        }
        let newly = output.iter().filter(|(_, packet, number)| packet.ecn != offered[*number].ecn).count();
        prop_assert!(newly as u64 <= totals.marked.packets);
        prop_assert!(newly as u64 + counts.dropped(Cause::Lost).packets >= totals.marked.packets);
    }
}

#[test]
fn what_is_in_transmission_has_left_the_queue() {
    let mut chain = Chain::with_disciplines(&[link(3000)], &[], 1, own(0, plain(0, 0))).unwrap();
    let admissions: Vec<Admission> =
        (0..4).map(|number| chain.push(Time::ZERO, Packet::new(1500, 0), number)).collect();
    let full = Admission::Dropped(Cause::QueueFull);
    assert_eq!(admissions, [Admission::Queued, Admission::Queued, Admission::Queued, full]);
    assert_eq!(chain.queue(0).backlog(Time::ZERO), Bytes::new(4500));
    assert_eq!(chain.queue(0).backlog(micros(500)), Bytes::new(4000));
    assert_eq!(chain.queue(0).delay(micros(500)), Duration::from_micros(4000));
    assert_eq!(chain.queue(0).packets(micros(500)), Some(3));
    assert_eq!(
        drain(&mut chain, Time::ZERO).iter().map(|out| out.0).collect::<Vec<_>>(),
        [micros(1500), micros(3000), micros(4500)]
    );
}

#[test]
fn a_packet_that_is_dropped_as_it_leaves_costs_the_link_no_time() {
    let mut chain = Chain::with_disciplines(&[link(30_000)], &[], 1, own(0, plain(0, 2))).unwrap();
    (0..6).for_each(|number| {
        assert_eq!(chain.push(Time::ZERO, Packet::new(1000, 0), number), Admission::Queued)
    });
    let output: Vec<_> = drain(&mut chain, Time::ZERO).iter().map(|out| (out.0, out.2)).collect();
    assert_eq!(output, [(micros(1000), 0), (micros(2000), 2), (micros(3000), 4)]);
    assert_eq!(chain.counts().dropped(Cause::Early).packets, 3);
}

#[test]
fn a_mark_is_seen_where_the_packet_leaves() {
    let mut chain = Chain::with_disciplines(&[link(30_000)], &[], 1, own(0, plain(2, 0))).unwrap();
    for bits in 0..8 {
        let packet = Packet { ecn: Ecn::from_bits(bits / 2), ..Packet::new(1000, 0) };
        chain.push(Time::ZERO, packet, 0);
    }
    let seen: Vec<Ecn> = drain(&mut chain, Time::ZERO).iter().map(|out| out.1.ecn).collect();
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    assert_eq!(seen, [NotEct, NotEct, Ect1, Ce, Ect0, Ce, Ce, Ce]);
    assert_eq!(chain.queue(0).totals(micros(9000)).marked.packets, 2);
}

#[test]
fn a_packet_larger_than_the_bucket_behind_the_gate_is_dropped() {
    let bucket = ElementConfig::TokenBucket {
        name: "bucket".into(),
        rate_bps: mbit(8),
        burst_bytes: Bytes::new(3000),
        queue: QueueConfig::drop_tail(Bytes::new(30_000), None),
    };
    let mut chain = Chain::with_disciplines(&[bucket], &[], 1, own(0, plain(0, 0))).unwrap();
    assert_eq!(chain.push(Time::ZERO, Packet::new(3001, 0), 0), Admission::Dropped(Cause::Oversize));
    assert_eq!(chain.push(Time::ZERO, Packet::new(3000, 0), 1), Admission::Queued);
    assert_eq!(chain.pop(Time::ZERO).map(|out| out.2), Some(1));
}

#[test]
fn only_what_has_a_queue_takes_a_discipline() {
    let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(1)) };
    let error = Chain::<()>::with_disciplines(&[delay], &[], 1, own(0, plain(0, 0))).unwrap_err();
    assert_eq!((error.kind, error.field), ("delay", "queue.discipline"));
}
