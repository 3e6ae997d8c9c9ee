//! Single situations, with their arithmetic.

use fullpipe_path::config::{AdmissionUnit, ElementConfig, Probability, QueueConfig, Schedule};
use fullpipe_path::elements::{aggregate, duplicate, reorder};
use fullpipe_path::{Admission, Carrier, Cause, Chain, Change, Packet};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use std::fmt::Write;

const FULL: Packet = Packet::new(1500, 0);

fn link(mbit: u64, bytes: u64, packets: Option<u32>) -> ElementConfig {
    ElementConfig::Link {
        name: "link".into(),
        rate_bps: Schedule::constant(Rate::from_bits_per_sec(mbit * 1_000_000)),
        queue: QueueConfig::drop_tail(Bytes::new(bytes), packets),
    }
}

fn delay(millis: u64) -> ElementConfig {
    ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(millis)) }
}

/// 12 Mbit/s: 1500 bytes take 1 ms, 300 bytes 200 us. Room for 4500 bytes. 10 ms of delay follow.
#[test]
fn a_burst_through_a_link() {
    let mut chain = Chain::new(&[link(12, 4500, None), delay(10)], &[], 1).unwrap();
    let burst =
        [(0, 1500), (0, 1500), (0, 1500), (0, 300), (500, 300), (1_000, 1500), (1_000, 300), (9_000, 300)];
    let mut rows = Vec::new();
    for (number, (micros, bytes)) in burst.into_iter().enumerate() {
        let now = Time::from_micros(micros);
        let (backlog, wait) = (chain.queue(0).backlog(now).as_u64(), chain.queue(0).delay(now).as_micros());
        let fate = match chain.push(now, Packet::new(bytes, 0), number) {
            Admission::Queued => String::new(),
            Admission::Dropped(cause) => format!("{cause:?}"),
        };
        rows.push((format!("{micros:5}  {bytes:5}  {backlog:7}  {wait:7}"), fate));
    }
    while let Some((due, _, number)) = chain.pop(Time::from_micros(50_000)) {
        rows[number].1 = due.as_micros().to_string();
    }
    let mut table = String::from("at us  bytes  backlog  wait us  leaves us\n");
    rows.iter().for_each(|(row, fate)| writeln!(table, "{row}  {fate:>9}").unwrap());
    let golden = "\
at us  bytes  backlog  wait us  leaves us
    0   1500        0        0      11000
    0   1500     1500     1000      12000
    0   1500     3000     2000      13000
    0    300     4500     3000  QueueFull
  500    300     3750     2500      13200
 1000   1500     3300     2200  QueueFull
 1000    300     3300     2200      13400
 9000    300        0        0      19200
";
    assert_eq!(table, golden);
}

#[test]
fn packet_limit_counts_unsent_packets() {
    let mut chain = Chain::new(&[link(12, 1_000_000, Some(2))], &[], 1).unwrap();
    let mut push = |micros| chain.push(Time::from_micros(micros), FULL, ()) == Admission::Queued;
    assert_eq!(
        [push(0), push(0), push(0), push(999), push(1000), push(1000)],
        [true, true, false, false, true, false]
    );
    assert_eq!(chain.queue(0).packets(Time::from_micros(1000)), Some(2));
    assert_eq!(chain.queue(0).packets(Time::from_micros(2000)), Some(1));
}

/// What stands behind a first element draws the same, whether something else takes that one's place or not.
#[test]
fn later_elements_keep_random_streams() {
    let loss = ElementConfig::Loss {
        probability: Schedule::constant(Probability::from_f64(0.3)),
        unit: AdmissionUnit::Segment,
    };
    let lost = |mut chain: Chain<()>| {
        let times = (0..200).map(|index| Time::from_micros(1_000 * index));
        times.map(|now| chain.push(now, FULL, ()) != Admission::Queued).collect::<Vec<bool>>()
    };
    let whole = lost(Chain::new(&[link(12, 1 << 30, None), loss.clone()], &[], 7).unwrap());
    assert!(whole.contains(&true));
    assert_eq!(lost(Chain::behind(1, std::slice::from_ref(&loss), &[], 7).unwrap()), whole);
    assert_ne!(lost(Chain::new(&[loss], &[], 7).unwrap()), whole);
}

/// Both rates of two hops act on one packet that is stored once: 1 ms + 10 ms + 2 ms + 20 ms.
#[test]
fn two_hops_are_one_event() {
    let hops = [link(12, 9000, None), delay(10), link(6, 3000, None), delay(20)];
    let mut chain = Chain::new(&hops, &[], 1).unwrap();
    (0..4).for_each(|number| _ = chain.push(Time::ZERO, FULL, number));
    assert_eq!(chain.next(), Time::from_micros(33_000));
    // It drains 750 bytes a millisecond; the fourth packet, at 14 ms, finds 2250 bytes and no room.
    let second = chain.queue(1);
    let backlog = [10_999, 11_000, 12_000, 13_000, 14_000]
        .map(|micros| second.backlog(Time::from_micros(micros)).as_u64());
    assert_eq!(backlog, [0, 1500, 2250, 3000, 2250]);
    assert_eq!(second.totals(Time::from_micros(12_500)).arrived.packets, 2);
    assert_eq!(second.totals(Time::from_micros(14_000)).dropped.packets, 1);
    let due: Vec<u64> =
        std::iter::from_fn(|| chain.pop(Time::from_micros(99_000))).map(|out| out.0.as_micros()).collect();
    assert_eq!(due, [33_000, 35_000, 37_000]);
}

/// Packets a millisecond apart, let go every 5 ms: at the same five phases for all of them, at most 5 ms late, in order.
#[test]
fn aggregate_releases_all_at_once() {
    let every_ns = Duration::from_millis(5);
    let mut chain = Chain::new(
        &[ElementConfig::Aggregate(aggregate::Config { every_ns, merge: false }), delay(10)],
        &[],
        7,
    )
    .unwrap();
    for number in 0..100u64 {
        chain.push(Time::from_micros(number * 1000), FULL, number);
    }
    let out: Vec<_> = std::iter::from_fn(|| chain.pop(Time::from_micros(999_000))).collect();
    let numbers: Vec<u64> = out.iter().map(|packet| packet.2).collect();
    assert_eq!(numbers, (0..100).collect::<Vec<_>>());
    let first = out[0].0;
    for &(due, _, number) in &out {
        let held = due.as_nanos() - 10_000_000 - number * 1_000_000;
        assert!(held < every_ns.as_nanos());
        assert_eq!((due.as_nanos() - first.as_nanos()) % every_ns.as_nanos(), 0);
    }
    let mut times: Vec<Time> = out.iter().map(|packet| packet.0).collect();
    times.dedup();
    assert!(times.len() <= 21, "{} releases", times.len());
}

#[test]
fn token_bucket_drops_oversized_packets() {
    let bucket = ElementConfig::TokenBucket {
        name: "tbf".into(),
        rate_bps: Rate::from_bits_per_sec(12_000_000),
        burst_bytes: Bytes::new(3000),
        frame_bytes: 0,
        queue: QueueConfig::drop_tail(Bytes::new(3000), None),
    };
    let mut chain = Chain::new(&[bucket], &[], 1).unwrap();
    let admissions: Vec<Admission> = (0..5).map(|number| chain.push(Time::ZERO, FULL, number)).collect();
    assert_eq!(admissions[..4], [Admission::Queued; 4]); // two on the burst, two that wait
    assert_eq!(admissions[4], Admission::Dropped(Cause::QueueFull));
    let large = Packet::new(3001, 0);
    assert_eq!(chain.push(Time::ZERO, large, 9), Admission::Dropped(Cause::Oversize));
    assert_eq!(chain.queue(0).backlog(Time::from_micros(999)), Bytes::new(3000)); // whole until it leaves
    assert_eq!(chain.queue(0).backlog(Time::from_micros(1000)), Bytes::new(1500));
    let due: Vec<u64> =
        std::iter::from_fn(|| chain.pop(Time::from_micros(9_000))).map(|out| out.0.as_micros()).collect();
    assert_eq!(due, [0, 0, 1000, 2000]);
}

#[test]
fn copy_follows_packet_through_path() {
    let always = ElementConfig::Duplicate(duplicate::Config { probability: Probability::from_f64(1.0) });
    let mut chain = Chain::new(&[always.clone(), always, link(12, 4500, None)], &[], 1).unwrap();
    assert_eq!(chain.push(Time::ZERO, FULL, 7), Admission::Queued); // four, one of which finds no room
    let due: Vec<_> = std::iter::from_fn(|| chain.pop(Time::from_micros(9_000)))
        .map(|out| (out.0.as_micros(), out.2))
        .collect();
    assert_eq!(due, [(1000, 7), (2000, 7), (3000, 7)]);
    let counts = chain.counts();
    assert_eq!((counts.duplicated.packets, counts.dropped(Cause::QueueFull).packets), (3, 1));
}

#[test]
fn ordered_path_knows_packets_ahead() {
    let mut chain = Chain::new(&[link(12, 9000, None), delay(10)], &[], 1).unwrap();
    (0..3).for_each(|number| _ = chain.push(Time::ZERO, FULL, number));
    let ahead = |chain: &Chain<i32>| -> Vec<i32> {
        (0..9).map_while(|places| chain.ahead(places)).map(|(_, &number)| number).collect()
    };
    assert_eq!(ahead(&chain), [0, 1, 2]);
    chain.pop(Time::from_micros(11_000)).unwrap();
    assert_eq!(ahead(&chain), [1, 2]);
}

#[test]
fn a_packet_held_back_is_overtaken() {
    let half = ElementConfig::Reorder(reorder::Config {
        probability: Probability::from_f64(0.5),
        delay_ns: Duration::from_millis(1),
    });
    let mut chain = Chain::new(&[half], &[], 3).unwrap();
    (0..20).for_each(|number| _ = chain.push(Time::from_nanos(number), FULL, number));
    let order: Vec<u64> =
        std::iter::from_fn(|| chain.pop(Time::from_micros(2_000))).map(|out| out.2).collect();
    let held = order.windows(2).position(|pair| pair[1] < pair[0]).unwrap() + 1;
    assert!(order[..held].is_sorted() && order[held..].is_sorted() && order.len() == 20, "{order:?}");
}

#[test]
fn packet_behind_dead_link_stays_inside() {
    let down = ElementConfig::Link {
        name: "link".into(),
        rate_bps: Schedule {
            initial: Rate::from_bits_per_sec(8),
            changes: vec![(Time::from_nanos(1), Rate::ZERO)],
        },
        queue: QueueConfig::drop_tail(Bytes::new(9000), None),
    };
    let mut chain = Chain::new(&[down, delay(1)], &[], 3).unwrap();
    assert_eq!(chain.push(Time::ZERO, FULL, ()), Admission::Queued);
    assert_eq!((chain.next(), chain.pop(Time::NEVER)), (Time::NEVER, None));
    assert_eq!(chain.counts().inside.packets, 1);
    assert_eq!(chain.queue(0).delay(Time::ZERO), Duration::MAX);
}

#[test]
#[should_panic(expected = "time goes back from 5 ns to 4 ns")]
fn time_must_not_go_back() {
    let mut chain = Chain::new(&[], &[], 1).unwrap();
    chain.push(Time::from_nanos(5), FULL, ());
    chain.push(Time::from_nanos(4), FULL, ());
}

#[test]
fn shrunk_buffer_keeps_packets_refuses_more() {
    let at = Time::from_micros;
    // A byte a microsecond.
    let mut chain = Chain::changing(&[link(8, 6000, None)], &[], 1).unwrap();
    for number in 0..3 {
        assert_eq!(chain.push(at(0), FULL, number), Admission::Queued);
    }
    chain.change(at(1), 0, at(1), Change::Buffer(Bytes::new(3000)));
    assert_eq!(chain.push(at(1), FULL, 3), Admission::Dropped(Cause::QueueFull));
    assert_eq!(chain.queue(0).backlog(at(1)), Bytes::new(4499));
    assert_eq!(chain.pop(at(1500)), Some((at(1500), FULL, 0)));
    assert_eq!(chain.pop(at(3000)), Some((at(3000), FULL, 1)));
    assert_eq!(chain.push(at(3000), FULL, 4), Admission::Queued);
}

#[test]
fn buffer_change_clears_packet_limit() {
    let at = Time::from_micros;
    let mut chain = Chain::changing(&[link(8, 60_000, Some(2))], &[], 1).unwrap();
    let mut taken = |bytes| {
        if let Some(bytes) = bytes {
            chain.change(at(0), 0, at(0), Change::Buffer(Bytes::new(bytes)));
        }
        (0..20).filter(|_| chain.push(at(0), FULL, ()) == Admission::Queued).count()
    };
    assert_eq!(taken(None), 2);
    assert_eq!(taken(Some(15_000)), 8);
}

#[test]
fn waiting_packets_use_new_rate() {
    let at = Time::from_micros;
    let mbit = |rate: u64| Rate::from_bits_per_sec(rate * 1_000_000);
    // A byte a microsecond.
    let mut chain = Chain::changing(&[link(8, 6000, Some(3))], &[], 1).unwrap();
    for number in 0..3 {
        assert_eq!(chain.push(at(0), FULL, number), Admission::Queued);
    }
    // 500 bytes are sent; the rest goes at half the rate, and from 2500 us on not at all.
    chain.change(at(500), 0, at(500), Change::Rate(mbit(4)));
    assert_eq!((chain.next(), chain.queue(0).delay(at(500))), (at(2500), Duration::from_micros(8000)));
    assert_eq!(chain.pop(at(2500)), Some((at(2500), FULL, 0)));
    chain.change(at(2500), 0, at(2500), Change::Rate(Rate::ZERO));
    assert_eq!((chain.next(), chain.queue(0).delay(at(2500))), (Time::NEVER, Duration::MAX));
    assert_eq!(chain.queue(0).packets(at(9000)), Some(2));
    chain.change(at(9000), 0, at(9000), Change::Rate(mbit(12)));
    assert_eq!(chain.pop(at(10_000)), Some((at(10_000), FULL, 1)));
    assert_eq!(chain.pop(at(11_000)), Some((at(11_000), FULL, 2)));
    assert_eq!(chain.queue(0).packets(at(11_000)), Some(0));
}
