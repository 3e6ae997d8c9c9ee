//! Laws that every chain obeys, over random paths and arrivals.

use fullpipe_path::config::{
    AdmissionUnit, DisciplineConfig, ElementConfig, Probability, QueueConfig, Schedule,
};
use fullpipe_path::elements::{
    aggregate, bleach, duplicate, ecn_blackhole, gilbert_elliott, jitter, policer, reorder, wifi,
};
use fullpipe_path::{Admission, Carrier, Cause, Chain, Change, DISCIPLINES, Ecn, Hops, Packet, Tally};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;
use std::sync::Arc;

/// (gap to the packet before in nanoseconds, bytes).
type Arrivals = Vec<(u64, u32)>;

fn arrivals(most_gap: u64) -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![2 => Just(0), 1 => Just(1), 7 => 0..=most_gap];
    prop::collection::vec((gap, 1u32..2000), 1..120)
}

fn mbit(rate: u64) -> Rate {
    Rate::from_bits_per_sec(rate * 1_000_000)
}

fn nanos(nanos: u64) -> Time {
    Time::from_nanos(nanos)
}

fn limit() -> impl Strategy<Value = QueueConfig> {
    (1500u64..20_000, prop::option::of(1u32..20))
        .prop_map(|(bytes, packets)| QueueConfig::drop_tail(Bytes::new(bytes), packets))
}

/// Any discipline of the registry, with some of its settings anywhere within their ranges, or near their lower ends where more
/// happens in paths as small as these.
fn discipline() -> impl Strategy<Value = DisciplineConfig> {
    let value = (any::<u64>(), 0u8..3);
    (0..DISCIPLINES.len(), prop::collection::vec(value, 16)).prop_map(|(index, values)| {
        let info = &DISCIPLINES[index];
        let mut config = DisciplineConfig::by_name(info.name).expect("it is in the registry");
        for (setting, (value, kind)) in info.settings.iter().zip(values) {
            let (low, high) = (*setting.range.start(), *setting.range.end());
            let highest = if kind == 1 { high.min(low.saturating_add(1_000)) } else { high };
            if kind > 0 {
                let within = low + value % (highest - low).saturating_add(1);
                config.set(setting.name, within).expect("it is within its range");
            }
        }
        config
    })
}

/// A queue that any discipline manages; half of them are plain.
fn managed() -> impl Strategy<Value = QueueConfig> {
    (limit(), prop::option::of(discipline()))
        .prop_map(|(queue, discipline)| QueueConfig { discipline: discipline.unwrap_or_default(), ..queue })
}

/// The same elements with disciplines before their queues.
fn with_disciplines(
    elements: impl Strategy<Value = Vec<ElementConfig>>,
) -> impl Strategy<Value = Vec<ElementConfig>> {
    (elements, prop::collection::vec(managed(), 6)).prop_map(|(mut elements, queues)| {
        for (element, managed) in elements.iter_mut().zip(queues) {
            if let ElementConfig::Link { queue, .. }
            | ElementConfig::DeliveryTrace { queue, .. }
            | ElementConfig::TokenBucket { queue, .. } = element
            {
                queue.discipline = managed.discipline;
            }
            // The headers of frames count in front of a drop-tail queue only.
            if let ElementConfig::TokenBucket { frame_bytes, queue, .. } = element
                && !queue.discipline.is_fifo()
            {
                *frame_bytes = 0;
            }
        }
        elements
    })
}

/// Elements that keep order and codepoints, and one queue among them with any discipline.
fn with_one_discipline() -> impl Strategy<Value = Vec<ElementConfig>> {
    let plain = prop::collection::vec(keeps_order(), 0..4);
    (plain, link(), discipline(), any::<prop::sample::Index>()).prop_map(
        |(mut elements, mut link, managed, place)| {
            let ElementConfig::Link { queue, .. } = &mut link else { unreachable!("it is a link") };
            queue.discipline = managed;
            elements.retain(|element| !matches!(element, ElementConfig::Bleach(..)));
            elements.insert(place.index(elements.len() + 1), link);
            elements
        },
    )
}

/// A schedule with up to three changes in the first three milliseconds.
fn schedule<T: std::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = T> + Clone + 'static,
) -> impl Strategy<Value = Schedule<T>> {
    let changes = prop::collection::btree_map(0u64..3_000_000, value.clone(), 0..4);
    (value, changes).prop_map(|(initial, changes)| Schedule {
        initial,
        changes: changes.into_iter().map(|(time, value)| (nanos(time), value)).collect(),
    })
}

/// A link that goes on working in the end.
fn link() -> impl Strategy<Value = ElementConfig> {
    (schedule(prop_oneof![1 => Just(0), 6 => 1u64..200].prop_map(mbit)), limit(), any::<bool>()).prop_map(
        |(mut rate_bps, queue, constant)| {
            if constant {
                rate_bps = Schedule::constant(mbit(rate_bps.initial.as_bits_per_sec() / 1_000_000 + 1));
            } else {
                rate_bps.changes.push((nanos(3_000_000), mbit(50)));
            }
            ElementConfig::Link { name: "link".into(), rate_bps, queue }
        },
    )
}

fn probability() -> impl Strategy<Value = Probability> + Clone {
    (0.0..0.5).prop_map(Probability::from_f64)
}

/// Some so short that many things happen at once.
fn duration() -> impl Strategy<Value = Duration> + Clone {
    prop_oneof![3 => 0u64..1_000_000, 1 => 0u64..4].prop_map(Duration::from_nanos)
}

fn keeps_order() -> impl Strategy<Value = ElementConfig> {
    let bucket = (1u64..200, 500u64..4000);
    prop_oneof![
        3 => link(),
        2 => schedule(duration()).prop_map(|delay_ns| ElementConfig::Delay { delay_ns }),
        1 => schedule(probability()).prop_map(ElementConfig::loss),
        1 => (probability(), probability(), probability(), probability()).prop_map(
            |(good_to_bad, bad_to_good, loss_good, loss_bad)| ElementConfig::GilbertElliott(gilbert_elliott::Config {
                good_to_bad, bad_to_good, loss_good, loss_bad, unit: AdmissionUnit::Segment
            })
        ),
        1 => duration().prop_map(|amplitude_ns| ElementConfig::Jitter(jitter::Config { amplitude_ns, reorder: false })),
        1 => (
            prop::collection::btree_set(1u64..200, 1..5), 1u64..1_000_000, duration(), limit()
        ).prop_map(|(rates, review, demand_ns, queue)| ElementConfig::Cellular {
            name: "radio".into(),
            rates_bps: rates.into_iter().map(mbit).collect(),
            review_ns: Duration::from_nanos(review),
            demand_ns,
            queue,
        }),
        1 => (1u64..400_000, any::<bool>(), any::<bool>()).prop_map(|(every, short, merge)| ElementConfig::Aggregate(aggregate::Config {
            every_ns: Duration::from_nanos(if short { every % 4 + 1 } else { every }), merge
        })),
        1 => (bucket.clone(), limit()).prop_map(|((rate, burst), queue)| ElementConfig::TokenBucket {
            name: "bucket".into(), rate_bps: mbit(rate), burst_bytes: Bytes::new(burst), frame_bytes: (burst % 2) as u32 * 14, queue
        }),
        1 => probability().prop_map(|probability| ElementConfig::Bleach(bleach::Config { probability })),
        1 => probability().prop_map(|collisions| ElementConfig::Wifi(wifi::Config { collisions })),
        1 => Just(ElementConfig::EcnBlackhole(ecn_blackhole::Config {})),
        1 => bucket.prop_map(|(rate, burst)| ElementConfig::Policer(policer::Config {
            name: "policer".into(), rate_bps: mbit(rate), burst_bytes: Bytes::new(burst), unit: AdmissionUnit::Segment
        })),
        1 => (prop::collection::vec(0u64..5, 0..5), limit()).prop_map(|(mut times, queue)| {
            times.sort_unstable();
            times.push(5);
            ElementConfig::DeliveryTrace { name: "trace".into(), opportunities_ms: Arc::new(times), queue }
        }),
    ]
}

fn anything() -> impl Strategy<Value = ElementConfig> {
    prop_oneof![
        5 => keeps_order(),
        1 => duration().prop_map(|amplitude_ns| ElementConfig::Jitter(jitter::Config { amplitude_ns, reorder: true })),
        1 => probability().prop_map(|probability| ElementConfig::Duplicate(duplicate::Config { probability })),
        1 => (probability(), duration())
            .prop_map(|(probability, delay_ns)| ElementConfig::Reorder(reorder::Config { probability, delay_ns })),
    ]
}

/// Up to five elements of any kind, whose queues have any discipline.
fn path(least: usize) -> impl Strategy<Value = Vec<ElementConfig>> {
    with_disciplines(prop::collection::vec(anything(), least..6))
}

/// A packet of any codepoint, drawn from its number and not from the strategy, so that arrivals stay short.
fn packet(bytes: u32, class: u32, number: usize) -> Packet {
    let mut packet = Packet::new(bytes, class);
    packet.ecn = Ecn::from_bits((number * 7 / 3) as u8);
    packet
}

/// What came out: (due, bytes, class, number of the packet, codepoint).
type Output = Vec<(Time, u32, u32, usize, Ecn)>;

/// Offers all arrivals, calling `pop` as `poll` says between them, and collects everything.
fn run(
    chain: &mut Chain<usize>,
    arrivals: &Arrivals,
    classes: usize,
    poll: impl Fn(usize) -> Poll,
) -> (Output, Vec<Admission>) {
    let (mut output, mut admissions, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
        let before = now;
        now += Duration::from_nanos(gap);
        match poll(number) {
            Poll::Never => {}
            Poll::Late => collect(chain, now, &mut output),
            Poll::OnTime => {
                while chain.next() <= now {
                    let next = chain.next();
                    assert!(next >= before || output.is_empty() || next >= output[output.len() - 1].0);
                    collect(chain, next.max(before), &mut output);
                }
            }
        }
        let class = (number % classes.max(1)) as u32;
        admissions.push(chain.push(now, packet(bytes, class, number), number));
    }
    while chain.next() != Time::NEVER {
        collect(chain, chain.next().max(now), &mut output);
    }
    (output, admissions)
}

#[derive(Clone, Copy)]
enum Poll {
    Never,
    Late,
    OnTime,
}

fn collect(carrier: &mut impl Carrier<usize>, now: Time, output: &mut Output) {
    while let Some((due, packet, number)) = carrier.pop(now) {
        assert!(due <= now);
        output.push((due, packet.bytes, packet.class, number, packet.ecn));
        if !carrier.is_due(now) {
            break;
        }
        let due = carrier.next();
        assert!(due <= now);
        let taken =
            carrier.pop_with(now, |packet, &number| (due, packet.bytes, packet.class, number, packet.ecn));
        output.push(taken.expect("one is due"));
    }
    assert_eq!(carrier.pop(now), None);
}

/// What a driver does with one of two paths, between two arrivals.
#[derive(Clone, Copy, Debug)]
enum Ask {
    Nothing,
    Settle,
    Collect,
}

fn ask() -> impl Strategy<Value = Ask> {
    prop_oneof![Just(Ask::Nothing), Just(Ask::Settle), Just(Ask::Collect)]
}

impl Ask {
    fn of(self, carrier: &mut impl Carrier<usize>, now: Time, output: &mut Output) {
        match self {
            Ask::Nothing => {}
            Ask::Settle => carrier.settle(now),
            Ask::Collect => collect(carrier, now, output),
        }
    }
}

/// Brings both up to `now` and compares all queues.
fn queues_look_equal(
    one: &mut impl Carrier<usize>,
    other: &mut impl Carrier<usize>,
    now: Time,
) -> Result<(), TestCaseError> {
    one.settle(now);
    other.settle(now);
    prop_assert_eq!(one.queues(), other.queues());
    for index in 0..one.queues() {
        let (one, other) = (one.queue(index), other.queue(index));
        prop_assert_eq!(one.name(), other.name());
        prop_assert_eq!(one.totals(now), other.totals(now));
        prop_assert_eq!(one.backlog(now), other.backlog(now));
        prop_assert_eq!(one.delay(now), other.delay(now));
        prop_assert_eq!(one.packets(now), other.packets(now));
    }
    Ok(())
}

fn tally(of: impl Iterator<Item = u32>) -> Tally {
    of.fold(Tally::default(), |sum, bytes| sum + Tally { packets: 1, bytes: Bytes::new(bytes as u64) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn packets_are_conserved_and_ordered(
        elements in path(0),
        delays in prop::collection::vec(duration(), 0..12),
        arrivals in arrivals(300_000),
        seed: u64,
    ) {
        let mut chain = Chain::new(&elements, &delays, seed).unwrap();
        let (output, _) = run(&mut chain, &arrivals, delays.len(), |_| Poll::OnTime);
        let counts = chain.counts();
        prop_assert_eq!(counts.entered, tally(arrivals.iter().map(|arrival| arrival.1)));
        prop_assert_eq!(counts.left, tally(output.iter().map(|packet| packet.1)));
        prop_assert_eq!(counts.inside, Tally::default());
        prop_assert_eq!(counts.entered + counts.duplicated, counts.left + counts.dropped_total());
        prop_assert!(output.is_sorted_by_key(|packet| packet.0));
    }

    /// What is taken ahead of time is what would have left by then, and nothing that is offered later would have left earlier.
    #[test]
    fn departures_before_known_time_are_final(
        elements in path(0),
        delays in prop::collection::vec(duration(), 0..12),
        arrivals in arrivals(300_000),
        ask in prop::collection::vec(any::<bool>(), 120),
        changing: bool,
        seed: u64,
    ) {
        let build = if changing { Chain::changing } else { Chain::new };
        let (mut chain, mut ahead) =
            (build(&elements, &delays, seed).unwrap(), build(&elements, &delays, seed).unwrap());
        let (expected, _) = run(&mut chain, &arrivals, delays.len(), |_| Poll::Never);
        let (mut output, mut now) = (Output::new(), Time::ZERO);
        let mut take = |ahead: &mut Chain<usize>, now: Time, before: Option<Time>| {
            ahead.settle(now);
            let before = before.unwrap_or_else(|| ahead.known_until(now).unwrap());
            let (mut classes, known) = (Vec::new(), ahead.known());
            ahead.look_at_known(before, |class| classes.push(class));
            let start = output.len();
            ahead.take_known(before, |due, packet, &number| {
                assert!(due < before);
                output.push((due, packet.bytes, packet.class, number, packet.ecn));
            });
            let mut taken: Vec<u32> = output[start..].iter().map(|packet| packet.2).collect();
            classes.sort_unstable();
            taken.sort_unstable();
            assert_eq!((&classes, ahead.known()), (&taken, known - taken.len()));
        };
        for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
            now += Duration::from_nanos(gap);
            if ask[number] {
                take(&mut ahead, now, None);
            }
            let class = (number % delays.len().max(1)) as u32;
            ahead.push(now, packet(bytes, class, number), number);
        }
        while ahead.next() != Time::NEVER {
            now = now.max(ahead.next());
            take(&mut ahead, now, Some(now + Duration::from_nanos(1)));
        }
        prop_assert_eq!(output, expected);
        prop_assert_eq!(ahead.counts(), chain.counts());
    }

    #[test]
    fn polling_schedule_changes_nothing(
        elements in path(0),
        delays in prop::collection::vec(duration(), 0..12),
        arrivals in arrivals(300_000),
        polls in prop::collection::vec(0u8..3, 120),
        seed: u64,
    ) {
        let chain = || Chain::new(&elements, &delays, seed).unwrap();
        let outcome = |poll: &dyn Fn(usize) -> Poll| {
            let mut chain = chain();
            let (output, admissions) = run(&mut chain, &arrivals, delays.len(), poll);
            (output, admissions, chain.counts())
        };
        let never = outcome(&|_| Poll::Never);
        prop_assert_eq!(&outcome(&|_| Poll::OnTime), &never);
        prop_assert_eq!(&outcome(&|_| Poll::Late), &never);
        let mixed = |number: usize| [Poll::Never, Poll::Late, Poll::OnTime][polls[number] as usize];
        prop_assert_eq!(&outcome(&mixed), &never);
    }

    /// Within a flow and a codepoint, no discipline reorders; between them some do. A packet that was admitted may still be dropped.
    #[test]
    fn disciplines_keep_order_within_flows(
        elements in with_one_discipline(),
        arrivals in arrivals(300_000),
        seed: u64,
    ) {
        let mut chain = Chain::new(&elements, &[Duration::ZERO; 3], seed).unwrap();
        let (output, admissions) = run(&mut chain, &arrivals, 3, |_| Poll::Late);
        for kind in 0..12 {
            let (class, bits) = (kind % 3, (kind / 3) as u8);
            let sent = |number: usize| packet(1, 0, number).ecn == Ecn::from_bits(bits);
            let own = output.iter().filter(|out| out.2 == class && sent(out.3)).map(|out| out.3);
            prop_assert!(own.collect::<Vec<_>>().is_sorted());
        }
        let mut seen: Vec<usize> = output.iter().map(|out| out.3).collect();
        seen.sort_unstable();
        prop_assert!(seen.windows(2).all(|pair| pair[0] < pair[1]), "no packet comes twice");
        prop_assert!(seen.iter().all(|&number| admissions[number] == Admission::Queued));
    }

    /// Packets keep their codepoint, or lose it to a bleach, or get a mark from a queue if they can carry one; whatever an element
    /// does to the others.
    #[test]
    fn only_bleaches_and_queues_change_codepoints(
        elements in path(0),
        arrivals in arrivals(300_000),
        seed: u64,
    ) {
        let mut chain = Chain::new(&elements, &[], seed).unwrap();
        let (output, _) = run(&mut chain, &arrivals, 1, |_| Poll::OnTime);
        let has = |wanted: fn(&ElementConfig) -> bool| elements.iter().any(wanted);
        let bleached = has(|element| matches!(element, ElementConfig::Bleach(..)));
        let marked: u64 = (0..chain.queues())
            .map(|index| chain.queue(index).totals(nanos(u64::MAX - 1)).marked.packets)
            .sum();
        let mut newly = 0;
        for &(_, _, _, number, ecn) in &output {
            let before = packet(1, 0, number).ecn;
            newly += (ecn == Ecn::Ce && before != Ecn::Ce) as u64;
            let cleared = bleached && ecn == Ecn::NotEct;
            prop_assert!(ecn == before || cleared || (before.is_capable() && ecn == Ecn::Ce));
        }
        let copies = chain.counts().duplicated.packets;
        prop_assert!(newly <= marked + copies);
        if let Some(blackhole) =
            elements.iter().position(|element| matches!(element, ElementConfig::EcnBlackhole(..)))
        {
            let later = &elements[blackhole..];
            prop_assert!(later.is_empty() || output.iter().all(|out| !out.4.is_capable()));
        }
    }

    #[test]
    fn what_keeps_order_keeps_order(
        elements in prop::collection::vec(keeps_order(), 0..6),
        arrivals in arrivals(300_000),
        seed: u64,
    ) {
        let mut chain = Chain::new(&elements, &[], seed).unwrap();
        let (output, admissions) = run(&mut chain, &arrivals, 1, |_| Poll::Late);
        let numbers: Vec<usize> = output.iter().map(|packet| packet.3).collect();
        let queued: Vec<usize> =
            (0..arrivals.len()).filter(|&number| admissions[number] == Admission::Queued).collect();
        prop_assert_eq!(numbers, queued);
    }

    #[test]
    fn link_obeys_rate_limit_and_delay(
        rate in 1u64..20_000_000_000,
        queue in limit(),
        delay in duration(),
        arrivals in arrivals(50_000),
    ) {
        let rate = Rate::from_bits_per_sec(rate);
        let elements = [
            ElementConfig::Link { name: "link".into(), rate_bps: Schedule::constant(rate), queue },
            ElementConfig::Delay { delay_ns: Schedule::constant(delay) },
        ];
        let mut chain = Chain::new(&elements, &[], 1).unwrap();
        let (mut now, mut admitted) = (Time::ZERO, Vec::new());
        for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
            now += Duration::from_nanos(gap);
            let before = chain.queue(0).backlog(now).as_u64();
            let admission = chain.push(now, Packet::new(bytes, 0), number);
            let after = chain.queue(0).backlog(now);
            prop_assert!(after <= queue.bytes);
            if admission == Admission::Queued {
                prop_assert_eq!(after.as_u64(), before + bytes as u64);
                admitted.push((now, bytes));
            } else {
                prop_assert_eq!(admission, Admission::Dropped(Cause::QueueFull));
                let full = queue.packets.is_some_and(|most| chain.queue(0).packets(now) == Some(most as u64));
                prop_assert!(full || before + bytes as u64 > queue.bytes.as_u64());
            }
        }
        let mut output = Vec::new();
        while chain.next() != Time::NEVER {
            let due = chain.next().max(now);
            collect(&mut chain, due, &mut output);
        }
        prop_assert_eq!(output.len(), admitted.len());
        for (first, &(arrival, bytes)) in admitted.iter().enumerate() {
            let shortest = bytes as u128 * 8_000_000_000;
            let taken = (output[first].0 - delay).as_nanos() - arrival.as_nanos();
            prop_assert!(taken as u128 * rate.as_bits_per_sec() as u128 >= shortest);
            // Between two departures, everything behind the first was sent; each time is rounded up by below 1 ns.
            let mut sent = 0u128;
            for later in &output[first + 1..] {
                sent += later.1 as u128 * 8_000_000_000;
                let span = (later.0.as_nanos() - output[first].0.as_nanos() + 1) as u128;
                prop_assert!(sent < span * rate.as_bits_per_sec() as u128 + 1);
            }
        }
    }

    /// Fluid integration, nanosecond by nanosecond, of at most some thousand nanoseconds.
    #[test]
    fn rate_schedule_matches_brute_force(
        initial in 0u64..20_000_000_000,
        changes in prop::collection::btree_map(0u64..2000, prop_oneof![Just(0), 1u64..20_000_000_000], 1..6),
        arrivals in prop::collection::vec((0u64..150, 1u32..200), 1..40),
        limit in 1u64..600,
    ) {
        let mut rates: Vec<(u64, u64)> = changes.into_iter().collect();
        rates.push((2000, 1_000_000_000));
        let rate_at = |time: u64| {
            rates.iter().rev().find(|change| change.0 <= time).map_or(initial, |change| change.1) as u128
        };
        let to_change = |&(time, rate): &(u64, u64)| (nanos(time), Rate::from_bits_per_sec(rate));
        let rate_bps = Schedule {
            initial: Rate::from_bits_per_sec(initial),
            changes: rates.iter().map(to_change).collect(),
        };
        let queue = QueueConfig::drop_tail(Bytes::new(limit), None);
        let link = ElementConfig::Link { name: "link".into(), rate_bps, queue };
        let mut chain = Chain::new(&[link], &[], 1).unwrap();
        let (output, admissions) = run(&mut chain, &arrivals, 1, |_| Poll::Never);

        const BYTE: u128 = 8_000_000_000;
        let mut waiting = std::collections::VecDeque::new();
        let (mut time, mut expected, mut expected_admissions) = (0, Vec::new(), Vec::new());
        let mut step = |waiting: &mut std::collections::VecDeque<(usize, u128)>, time: &mut u64| {
            let mut work = rate_at(*time);
            *time += 1;
            while let Some((number, left)) = waiting.front_mut() {
                let sent = work.min(*left);
                (*left, work) = (*left - sent, work - sent);
                if *left > 0 { break; }
                expected.push((nanos(*time), arrivals[*number].1, 0, *number, packet(1, 0, *number).ecn));
                waiting.pop_front();
            }
        };
        let mut now = 0;
        for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
            now += gap;
            while time < now {
                step(&mut waiting, &mut time);
            }
            let unsent: u128 = waiting.iter().map(|packet| packet.1).sum();
            let fits = unsent + bytes as u128 * BYTE <= limit as u128 * BYTE;
            if fits {
                waiting.push_back((number, bytes as u128 * BYTE));
            }
            expected_admissions.push(if fits { Admission::Queued } else { Admission::Dropped(Cause::QueueFull) });
        }
        while !waiting.is_empty() {
            step(&mut waiting, &mut time);
        }
        prop_assert_eq!(admissions, expected_admissions);
        prop_assert_eq!(output, expected);
    }

    /// A queue behind a delay gets its packets early. Asked at any time, it must look like one that gets them in time.
    #[test]
    fn queue_behind_delay_looks_timely(
        queue in prop_oneof![
            link(),
            (1u64..200, 2000u64..4000, limit()).prop_map(|(rate, burst, queue)| ElementConfig::TokenBucket {
                name: "bucket".into(), rate_bps: mbit(rate), burst_bytes: Bytes::new(burst), frame_bytes: (burst % 2) as u32 * 14, queue
            }),
        ],
        delay in duration(),
        arrivals in arrivals(100_000),
        looks in prop::collection::vec(0u64..200_000, 120),
    ) {
        let delay_ns = Schedule::constant(delay);
        let mut early = Chain::new(&[ElementConfig::Delay { delay_ns }, queue.clone()], &[], 1).unwrap();
        let mut timely = Chain::new(&[queue], &[], 1).unwrap();
        let mut now = Time::ZERO;
        let mut pending: Vec<(Time, Packet)> = Vec::new();
        for (&(gap, bytes), look) in arrivals.iter().zip(looks) {
            now += Duration::from_nanos(gap);
            let packet = Packet::new(bytes, 0);
            early.push(now, packet, ());
            pending.push((now + delay, packet));
            now += Duration::from_nanos(look);
            pending.retain(|&(time, packet)| {
                if time <= now {
                    timely.push(time, packet, ());
                }
                time > now
            });
            while early.pop(now).is_some() {}
            let (a, b) = (early.queue(0), timely.queue(0));
            prop_assert_eq!(a.totals(now), b.totals(now));
            prop_assert_eq!(a.backlog(now), b.backlog(now));
            prop_assert_eq!(a.delay(now), b.delay(now));
            prop_assert_eq!(a.packets(now), b.packets(now));
        }
    }

    #[test]
    fn class_delays_agree_with_a_sort(
        delays in prop::collection::vec((0u64..40).prop_map(Duration::from_micros), 1..40),
        arrivals in arrivals(3_000),
        polls in prop::collection::vec(0u8..3, 120),
    ) {
        let mut chain = Chain::new(&[], &delays, 1).unwrap();
        let poll = |number: usize| [Poll::Never, Poll::Late, Poll::OnTime][polls[number] as usize];
        let (output, _) = run(&mut chain, &arrivals, delays.len(), poll);
        let mut now = Time::ZERO;
        let mut expected: Output = Vec::new();
        for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
            now += Duration::from_nanos(gap);
            let class = number % delays.len();
            expected.push((now + delays[class], bytes, class as u32, number, packet(bytes, 0, number).ecn));
        }
        expected.sort_by_key(|packet| (packet.0, packet.3));
        prop_assert_eq!(output, expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// Elements composed when a packet is offered, and elements asked when it gets there.
    #[test]
    fn a_chain_agrees_with_hops(
        elements in path(0),
        delays in prop::collection::vec(duration(), 0..12),
        arrivals in prop_oneof![arrivals(300_000), arrivals(3)],
        run_length in 1u32..5,
        asked in prop::collection::vec((ask(), ask(), 0u64..3, any::<bool>()), 120),
        seed: u64,
    ) {
        let chain = Chain::new(&elements, &delays, seed).unwrap();
        let hops = Hops::new(&elements, &delays, seed).unwrap();
        agree(chain, hops, delays.len(), &arrivals, run_length, &asked)?;
    }

    /// The same of a chain that can be changed, if nobody does.
    #[test]
    fn changeable_chain_agrees_with_hops(
        elements in path(0),
        delays in prop::collection::vec(duration(), 0..12),
        arrivals in prop_oneof![arrivals(300_000), arrivals(3)],
        run_length in 1u32..5,
        asked in prop::collection::vec((ask(), ask(), 0u64..3, any::<bool>()), 120),
        seed: u64,
    ) {
        let chain = Chain::changing(&elements, &delays, seed).unwrap();
        let hops = Hops::new(&elements, &delays, seed).unwrap();
        agree(chain, hops, delays.len(), &arrivals, run_length, &asked)?;
    }

    /// Changes made while packets are on their way, and the same changes known from the start.
    #[test]
    fn live_change_equals_scheduled_change(
        elements in path(1),
        delay in duration(),
        arrivals in prop_oneof![arrivals(300_000), arrivals(3)],
        changes in prop::collection::vec((0usize..120, 0usize..6, change()), 1..8),
        seed: u64,
    ) {
        let mut changed = elements.clone();
        let mut chain: Chain<usize> = Chain::changing(&elements, &[delay], seed).unwrap();
        let (mut now, mut output) = (Time::ZERO, Vec::new());
        for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
            now += Duration::from_nanos(gap);
            chain.push(now, packet(bytes, 0, number), number);
            for &(_, index, change) in changes.iter().filter(|change| change.0 == number) {
                let (index, from) = (index % elements.len(), change.from(now, true));
                let mut next = changed[index].clone();
                // RED goes by the highest rate that its link will have, which only a schedule knows from the start.
                let known = !(goes_by_rate(&next) && matches!(change, Change::Rate(_)));
                if known && next.change(index, from, change).is_ok() {
                    changed[index] = next;
                    chain.change(now, index, from, change);
                    let counts = chain.counts();
                    prop_assert_eq!(
                        counts.entered + counts.duplicated,
                        counts.left + counts.dropped_total() + counts.inside
                    );
                }
            }
            if number % 2 == 0 {
                collect(&mut chain, now, &mut output);
            }
        }
        while chain.next() != Time::NEVER {
            now = now.max(chain.next());
            collect(&mut chain, now, &mut output);
        }
        let mut scheduled: Hops<usize> = Hops::new(&changed, &[delay], seed).unwrap();
        let (mut at, mut expected) = (Time::ZERO, Vec::new());
        for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
            at += Duration::from_nanos(gap);
            scheduled.push(at, packet(bytes, 0, number), number);
        }
        while scheduled.next() != Time::NEVER {
            at = at.max(scheduled.next());
            collect(&mut scheduled, at, &mut expected);
        }
        now = now.max(at);
        prop_assert_eq!(output, expected);
        prop_assert_eq!(chain.counts(), scheduled.counts());
        queues_look_equal(&mut chain, &mut scheduled, now)?;
    }
}

fn goes_by_rate(element: &ElementConfig) -> bool {
    matches!(element, ElementConfig::Link { queue, .. } if queue.discipline.info().name == "red")
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => prop_oneof![1 => Just(0), 6 => 1u64..200].prop_map(|rate| Change::Rate(mbit(rate))),
        1 => duration().prop_map(Change::Delay),
        1 => probability().prop_map(Change::Loss),
    ]
}

/// Drives both with the same arrivals, asks them at different times, and compares all that can be seen.
fn agree(
    mut chain: Chain<usize>,
    mut hops: Hops<usize>,
    classes: usize,
    arrivals: &Arrivals,
    run_length: u32,
    asked: &[(Ask, Ask, u64, bool)],
) -> Result<(), TestCaseError> {
    let (mut composed, mut plainly, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
    for (number, &(gap, bytes)) in arrivals.iter().enumerate() {
        let (ask_chain, ask_hops, part, look) = asked[number];
        let between = now + Duration::from_nanos(gap * part / 2);
        now += Duration::from_nanos(gap);
        ask_chain.of(&mut chain, between, &mut composed);
        ask_hops.of(&mut hops, between, &mut plainly);
        let packet = packet(bytes, (number % classes.max(1)) as u32, number);
        let payload = |index: u32| number * 10 + index as usize;
        chain.push_run(now, packet, run_length, payload);
        Carrier::push_run(&mut hops, now, packet, run_length, payload);
        if look {
            queues_look_equal(&mut chain, &mut hops, now)?;
        }
    }
    for (number, extra) in [0, 1, 500_000].into_iter().enumerate() {
        now += Duration::from_nanos(extra);
        queues_look_equal(&mut chain, &mut hops, now)?;
        asked[number].0.of(&mut chain, now, &mut composed);
    }
    while chain.next() != Time::NEVER {
        now = now.max(chain.next());
        collect(&mut chain, now, &mut composed);
    }
    while hops.next() != Time::NEVER {
        let next = hops.next().max(now);
        collect(&mut hops, next, &mut plainly);
        now = now.max(next);
    }
    prop_assert_eq!(composed, plainly);
    prop_assert_eq!(chain.counts(), hops.counts());
    queues_look_equal(&mut chain, &mut hops, now)
}
