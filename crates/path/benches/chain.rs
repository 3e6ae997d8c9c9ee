//! What a packet costs: one push and one pop, with a standing queue.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use fullpipe_path::config::{ElementConfig, Probability, QueueConfig, Schedule};
use fullpipe_path::elements::jitter;
use fullpipe_path::{Chain, Packet};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use std::hint::black_box;
use std::sync::Arc;

const PACKETS: u64 = 10_000;

fn link(changes: Vec<(Time, Rate)>, packets: Option<u32>) -> ElementConfig {
    ElementConfig::Link {
        name: "link".into(),
        rate_bps: Schedule { initial: Rate::from_bits_per_sec(99_999_999), changes },
        queue: QueueConfig::drop_tail(Bytes::new(150_000), packets),
    }
}

fn delay() -> ElementConfig {
    ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(20)) }
}

fn loss() -> ElementConfig {
    ElementConfig::loss(Schedule::constant(Probability::from_f64(0.001)))
}

fn chains() -> Vec<(&'static str, Vec<ElementConfig>, Vec<Duration>)> {
    let millis = |count: u64| (0..count).map(Duration::from_millis).collect();
    let change = vec![(Time::from_nanos(1), Rate::from_bits_per_sec(99_999_999))];
    let jitter =
        |reorder| ElementConfig::Jitter(jitter::Config { amplitude_ns: Duration::from_millis(1), reorder });
    let trace = ElementConfig::DeliveryTrace {
        name: "trace".into(),
        opportunities_ms: Arc::new((0..96_000).map(|number| number / 8).collect()),
        queue: QueueConfig::drop_tail(Bytes::new(150_000), None),
    };
    let bucket = ElementConfig::TokenBucket {
        name: "tbf".into(),
        rate_bps: Rate::from_bits_per_sec(99_999_999),
        burst_bytes: Bytes::new(15_000),
        frame_bytes: 0,
        queue: QueueConfig::drop_tail(Bytes::new(150_000), None),
    };
    vec![
        ("nothing", vec![], vec![]),
        ("delay", vec![delay()], vec![]),
        ("link, delay", vec![link(vec![], None), delay()], vec![]),
        ("link with packet limit, delay", vec![link(vec![], Some(1000)), delay()], vec![]),
        ("link with schedule, delay", vec![link(change, None), delay()], vec![]),
        ("loss, link, delay", vec![loss(), link(vec![], None), delay()], vec![]),
        ("link, delay, twice", vec![link(vec![], None), delay(), link(vec![], None), delay()], vec![]),
        ("link, delay, 4 class delays", vec![link(vec![], None), delay()], millis(4)),
        ("link, delay, 1000 class delays", vec![link(vec![], None), delay()], millis(1000)),
        ("link, jitter", vec![link(vec![], None), jitter(false)], vec![]),
        ("link, reordering jitter", vec![link(vec![], None), jitter(true)], vec![]),
        ("reordering jitter, link", vec![jitter(true), link(vec![], None)], vec![]),
        ("delivery trace, delay", vec![trace, delay()], vec![]),
        ("token bucket, delay", vec![bucket, delay()], vec![]),
    ]
}

fn bench(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("push and pop");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, elements, delays) in chains() {
        let mut chain: Chain<u64> = Chain::new(&elements, &delays, 1).expect("a valid chain");
        let classes = delays.len().max(1) as u32;
        let mut now = Time::ZERO;
        let mut class = 0;
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                for number in 0..PACKETS {
                    // A little slower than the link, with acknowledgement-sized packets between.
                    now += Duration::from_nanos(121_000);
                    class = if class + 1 == classes { 0 } else { class + 1 };
                    let bytes = if number % 4 == 0 { 52 } else { 1500 };
                    black_box(chain.push(now, Packet::new(bytes, class), number));
                    while let Some(packet) = chain.pop(now) {
                        black_box(packet);
                    }
                }
            });
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
