//! Laws of queues with a discipline: the gate, its transmitter, and disciplines that are not built in.

use fullpipe_path::elements::{bleach, duplicate, gilbert_elliott, jitter, policer};
use std::collections::BTreeMap;
use std::sync::Arc;

use fullpipe_path::config::{
    AdmissionUnit, DisciplineConfig, ElementConfig, Probability, QueueConfig, Schedule,
};
use fullpipe_path::{
    Admission, Carrier, Cause, Chain, DISCIPLINES, Discipline, Dropped, Ecn, Hops, Line, MakeDiscipline,
    OwnDisciplines, Packet, Setup, Tally, Waiting,
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
            frame_bytes: 0,
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
    fn gate_matches_plain_queue_times(
        queue in endless(),
        jitter in 0u64..50_000,
        behind in 0u64..200_000,
        arrivals in prop::collection::vec((prop_oneof![Just(0), Just(1), 0u64..200_000], 1u32..2000, 0u32..2), 1..120),
        polls in prop::collection::vec(any::<bool>(), 120),
    ) {
        let elements = [
            ElementConfig::Jitter(jitter::Config { amplitude_ns: Duration::from_nanos(jitter), reorder: false }),
            queue,
            ElementConfig::Jitter(jitter::Config { amplitude_ns: Duration::from_nanos(behind), reorder: false }),
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
                prop_assert_eq!(one.delay(now), other.delay(now));
            }
        }
        from_gated.extend(drain(&mut gated, now));
        from_direct.extend(drain(&mut direct, now));
        prop_assert_eq!(from_gated, from_direct);
    }

    /// Packets, bytes and marks add up, whatever a discipline does with packets of whatever codepoint.
    #[test]
    fn marks_and_drops_add_up(
        queue in endless(),
        mark_every in 0u64..4,
        drop_every in 0u64..4,
        loss in 0.0..0.3f64,
        arrivals in prop::collection::vec((0u64..200_000, 1u32..2000, 0u8..8), 1..120),
    ) {
        let loss = ElementConfig::loss(Schedule::constant(Probability::from_f64(loss)));
        let elements = [queue, loss];
        let mut chain =
            Chain::with_disciplines(&elements, &[], 3, own(0, plain(mark_every, drop_every))).unwrap();
        let (mut now, mut offered, mut output) = (Time::ZERO, Vec::new(), Vec::new());
        for (number, &(gap, bytes, bits)) in arrivals.iter().enumerate() {
            now += Duration::from_nanos(gap);
            output.extend(collect(&mut chain, now));
            let packet = Packet::new(bytes, 0).with_ecn(Ecn::from_bits(bits));
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
fn packet_in_transmission_is_not_queued() {
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
fn drop_at_departure_costs_no_time() {
    let mut chain = Chain::with_disciplines(&[link(30_000)], &[], 1, own(0, plain(0, 2))).unwrap();
    (0..6).for_each(|number| {
        assert_eq!(chain.push(Time::ZERO, Packet::new(1000, 0), number), Admission::Queued)
    });
    let output: Vec<_> = drain(&mut chain, Time::ZERO).iter().map(|out| (out.0, out.2)).collect();
    assert_eq!(output, [(micros(1000), 0), (micros(2000), 2), (micros(3000), 4)]);
    assert_eq!(chain.counts().dropped(Cause::Early).packets, 3);
}

#[test]
fn mark_is_visible_at_exit() {
    let mut chain = Chain::with_disciplines(&[link(30_000)], &[], 1, own(0, plain(2, 0))).unwrap();
    for bits in 0..8 {
        let packet = Packet::new(1000, 0).with_ecn(Ecn::from_bits(bits / 2));
        chain.push(Time::ZERO, packet, 0);
    }
    let seen: Vec<Ecn> = drain(&mut chain, Time::ZERO).iter().map(|out| out.1.ecn).collect();
    use Ecn::{Ce, Ect0, Ect1, NotEct};
    assert_eq!(seen, [NotEct, NotEct, Ect1, Ce, Ect0, Ce, Ce, Ce]);
    assert_eq!(chain.queue(0).totals(micros(9000)).marked.packets, 2);
}

#[test]
fn packet_larger_than_bucket_is_dropped() {
    let bucket = ElementConfig::TokenBucket {
        name: "bucket".into(),
        rate_bps: mbit(8),
        burst_bytes: Bytes::new(3000),
        frame_bytes: 0,
        queue: QueueConfig::drop_tail(Bytes::new(30_000), None),
    };
    let mut chain = Chain::with_disciplines(&[bucket], &[], 1, own(0, plain(0, 0))).unwrap();
    assert_eq!(chain.push(Time::ZERO, Packet::new(3001, 0), 0), Admission::Dropped(Cause::Oversize));
    assert_eq!(chain.push(Time::ZERO, Packet::new(3000, 0), 1), Admission::Queued);
    assert_eq!(chain.pop(Time::ZERO).map(|out| out.2), Some(1));
}

#[test]
fn only_queues_accept_disciplines() {
    let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(1)) };
    let error = Chain::<()>::with_disciplines(&[delay], &[], 1, own(0, plain(0, 0))).unwrap_err();
    assert_eq!((error.kind, error.field), ("delay", "queue.discipline"));
}

/// Any element, some with a discipline and some that take bursts whole.
fn element() -> impl Strategy<Value = ElementConfig> {
    let unit = prop_oneof![Just(AdmissionUnit::Segment), Just(AdmissionUnit::Burst)];
    let queue = (2000u64..40_000, prop::option::of(1u32..20), discipline(), unit.clone());
    let queue = queue
        .prop_map(|(bytes, packets, discipline, unit)| QueueConfig {
            bytes: Bytes::new(bytes),
            packets,
            discipline,
            unit,
        })
        .boxed();
    let probability = || (0.0..0.4).prop_map(Probability::from_f64);
    let bucket = (1u64..200, 1500u64..9000);
    prop_oneof![
        6 => (endless(), queue.clone()).prop_map(|(mut element, new)| {
            match &mut element {
                ElementConfig::Link { queue, .. }
                | ElementConfig::DeliveryTrace { queue, .. }
                | ElementConfig::TokenBucket { queue, .. } => *queue = new,
                _ => unreachable!("these three are drawn"),
            }
            element
        }),
        1 => (queue, 1u64..200).prop_map(|(queue, rate)| ElementConfig::Cellular {
            name: "radio".into(),
            rates_bps: vec![mbit(rate), mbit(rate + 10)],
            review_ns: Duration::from_micros(200),
            demand_ns: Duration::from_micros(300),
            queue: QueueConfig { discipline: DisciplineConfig::FIFO, ..queue },
        }),
        1 => (probability(), unit.clone())
            .prop_map(|(p, unit)| ElementConfig::Loss { probability: Schedule::constant(p), unit }),
        1 => (probability(), probability(), unit.clone()).prop_map(|(p, q, unit)| ElementConfig::GilbertElliott(gilbert_elliott::Config {
            good_to_bad: p, bad_to_good: q, loss_good: Probability::ZERO, loss_bad: q, unit
        })),
        1 => (bucket, unit).prop_map(|((rate, burst), unit)| ElementConfig::Policer(policer::Config {
            name: "policer".into(), rate_bps: mbit(rate), burst_bytes: Bytes::new(burst), unit
        })),
        1 => (0u64..100_000, any::<bool>()).prop_map(|(nanos, reorder)| ElementConfig::Jitter(jitter::Config {
            amplitude_ns: Duration::from_nanos(nanos), reorder
        })),
        1 => (0u64..100_000).prop_map(|nanos| ElementConfig::Delay {
            delay_ns: Schedule::constant(Duration::from_nanos(nanos))
        }),
        1 => probability().prop_map(|probability| ElementConfig::Bleach(bleach::Config { probability })),
        1 => probability().prop_map(|probability| ElementConfig::Duplicate(duplicate::Config { probability })),
    ]
}

fn discipline() -> impl Strategy<Value = DisciplineConfig> {
    prop::sample::select(DISCIPLINES)
        .prop_map(|info| DisciplineConfig::by_name(info.name).expect("it is in the list"))
}

/// A few packets that the host hands over together: (gap to the burst before in nanoseconds, length, packets, class, codepoint).
type Burst = (u64, u32, u32, u32, u8);

fn bursts() -> impl Strategy<Value = Vec<Burst>> {
    let gap = prop_oneof![Just(0), Just(1), 0u64..400_000];
    prop::collection::vec((gap, 1u32..2000, 1u32..8, 0u32..3, 0u8..4), 1..80)
}

fn packet(burst: &Burst) -> Packet {
    Packet::new(burst.1, burst.3).with_ecn(Ecn::from_bits(burst.4))
}

/// Offers all bursts, looks when `polls` says so, and lets everything out.
fn drive<C: Carrier<usize>>(
    mut path: C,
    bursts: &[Burst],
    polls: &[bool],
) -> (Vec<(Time, Packet, usize)>, C) {
    let (mut now, mut output, mut number) = (Time::ZERO, Vec::new(), 0);
    for (burst, &poll) in bursts.iter().zip(polls) {
        now += Duration::from_nanos(burst.0);
        path.push_run(now, packet(burst), burst.2, |index| number + index as usize);
        number += burst.2 as usize;
        if poll {
            output.extend(std::iter::from_fn(|| path.pop(now)));
        }
        let counts = path.counts();
        let known = counts.left + counts.dropped_total() + counts.inside;
        assert_eq!((counts.entered + counts.duplicated), known);
    }
    while path.next() != Time::NEVER {
        now = now.max(path.next());
        output.extend(std::iter::from_fn(|| path.pop(now)));
    }
    assert_eq!(path.counts().inside, Tally::default());
    // Without the number of the burst, which only some paths keep.
    let plain = |packet: Packet| Packet::new(packet.bytes, packet.class).with_ecn(packet.ecn);
    (output.into_iter().map(|(due, packet, number)| (due, plain(packet), number)).collect(), path)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// A chain composes and skips; hop by hop comes the same, and the same is dropped and marked.
    #[test]
    fn bursts_and_disciplines_agree_with_hops(
        elements in prop::collection::vec(element(), 1..5),
        delays in prop::collection::vec((0u64..50_000).prop_map(Duration::from_nanos), 3),
        bursts in bursts(),
        polls in prop::collection::vec(any::<bool>(), 80),
        seed in any::<u64>(),
    ) {
        let (plainly, hops) = drive(Hops::new(&elements, &delays, seed).unwrap(), &bursts, &polls);
        let (composed, chain) = drive(Chain::new(&elements, &delays, seed).unwrap(), &bursts, &polls);
        prop_assert_eq!(&plainly, &composed);
        prop_assert_eq!(hops.counts(), chain.counts());
        let (changing, _) = drive(Chain::changing(&elements, &delays, seed).unwrap(), &bursts, &polls);
        prop_assert_eq!(&plainly, &changing);
        let late = Time::from_nanos(u64::MAX - 1);
        for queue in 0..hops.queues() {
            let (one, other) = (hops.queue(queue), chain.queue(queue));
            prop_assert_eq!(one.totals(late), other.totals(late));
            prop_assert_eq!(one.totals(late).arrived, one.totals(late).accepted + one.totals(late).dropped);
        }
        // How often somebody looks changes nothing.
        let never = vec![false; polls.len()];
        prop_assert_eq!(drive(Chain::new(&elements, &delays, seed).unwrap(), &bursts, &never).0, composed);
    }
}

/// Three bursts of four packets meet a queue with room for one and a half.
fn dropped_of(queue: QueueConfig) -> (Vec<usize>, u64) {
    let link = ElementConfig::Link { name: "link".into(), rate_bps: Schedule::constant(mbit(8)), queue };
    let bursts = [(0, 1000, 4, 0, 0), (0, 1000, 4, 0, 0), (4_000_000, 1000, 4, 0, 0)];
    let (output, chain) = drive(Chain::new(&[link], &[], 1).unwrap(), &bursts, &[false; 3]);
    (output.iter().map(|out| out.2).collect(), chain.queue(0).totals(micros(99_999)).dropped.packets)
}

#[test]
fn burst_is_admitted_or_dropped_entirely() {
    let segments = QueueConfig::drop_tail(Bytes::new(6000), None);
    let bursts = QueueConfig { unit: AdmissionUnit::Burst, ..segments };
    assert_eq!(dropped_of(segments), (vec![0, 1, 2, 3, 4, 5, 8, 9, 10, 11], 2));
    assert_eq!(dropped_of(bursts), (vec![0, 1, 2, 3, 8, 9, 10, 11], 4));
    // A limit in packets counts a burst as one, as netem's does.
    let two = QueueConfig { bytes: Bytes::new(60_000), packets: Some(2), ..bursts };
    assert_eq!(dropped_of(two).1, 0);
    assert_eq!(dropped_of(QueueConfig { unit: AdmissionUnit::Segment, ..two }).1, 8);
}

#[test]
fn mixed_codepoints_split_burst() {
    let queue =
        QueueConfig { unit: AdmissionUnit::Burst, ..QueueConfig::drop_tail(Bytes::new(90_000), None) };
    let link = ElementConfig::Link { name: "link".into(), rate_bps: Schedule::constant(mbit(8)), queue };
    let mut chain = Chain::with_disciplines(&[link], &[], 1, own(0, plain(1, 0))).unwrap();
    let seen = [Ecn::NotEct, Ecn::Ect0, Ecn::Ect0, Ecn::Ce, Ecn::NotEct];
    chain.push_burst(Time::ZERO, seen.map(|ecn| (Packet::new(1000, 0).with_ecn(ecn), 0)));
    let left: Vec<Ecn> = drain(&mut chain, Time::ZERO).iter().map(|out| out.1.ecn).collect();
    // Every packet was to be marked; only those that are capable were.
    assert_eq!(left, [Ecn::NotEct, Ecn::Ce, Ecn::Ce, Ecn::Ce, Ecn::NotEct]);
    assert_eq!(chain.queue(0).totals(micros(9000)).marked.packets, 2);
}

#[test]
fn token_bucket_splits_only_excess() {
    let leaves = |burst_bytes, unit| {
        let queue = QueueConfig { unit, ..QueueConfig::drop_tail(Bytes::new(5000), None) };
        let burst_bytes = Bytes::new(burst_bytes);
        let bucket = ElementConfig::TokenBucket {
            name: "bucket".into(),
            rate_bps: mbit(8),
            burst_bytes,
            frame_bytes: 0,
            queue,
        };
        let bursts = [(0, 1000, 4, 0, 0), (0, 1000, 4, 0, 0)];
        let (output, _) = drive(Chain::new(&[bucket], &[], 1).unwrap(), &bursts, &[false; 2]);
        output.iter().map(|out| out.0.as_micros()).collect::<Vec<_>>()
    };
    // Four packets fit into the bucket: the second burst leaves whole when it is full again.
    assert_eq!(leaves(4000, AdmissionUnit::Burst), [0, 0, 0, 0, 4000, 4000, 4000, 4000]);
    assert_eq!(leaves(4000, AdmissionUnit::Segment), [0, 0, 0, 0, 1000, 2000, 3000, 4000]);
    // They do not: both are split, and of the second one only what fits is taken.
    assert_eq!(leaves(3000, AdmissionUnit::Burst), leaves(3000, AdmissionUnit::Segment));
    assert_eq!(leaves(3000, AdmissionUnit::Segment), [0, 0, 0, 1000, 2000, 3000, 4000, 5000]);
}
