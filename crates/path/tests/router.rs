//! A token bucket that takes bursts whole, against `sch_tbf` and `bfifo` written down step by step as Linux 6.12 has them:
//! buffers in a list, a clock of whole nanoseconds, a timer.

use fullpipe_path::elements::aggregate;
use std::collections::VecDeque;

use fullpipe_path::config::{AdmissionUnit, ElementConfig, QueueConfig, Schedule};
use fullpipe_path::{Chain, ETHERNET_HEADER_BYTES, Packet};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;

/// A buffer (`sk_buff`): the numbers of its packets, and its length (`qdisc_pkt_len`).
#[derive(Debug)]
struct Buffer {
    packets: Vec<u32>,
    bytes: u64,
}

/// `struct tbf_sched_data` and its child. Times are in nanoseconds; at the rates of these tests, a byte takes a whole number.
struct Tbf {
    byte_ns: i64,
    limit: u64,
    max_size: u64,
    tokens: i64,
    t_c: i64,
    backlog: u64,
    queue: VecDeque<Buffer>,
    watchdog: Option<i64>,
    sent: Vec<(u64, u32)>,
    dropped: Vec<u32>,
}

impl Tbf {
    fn new(byte_ns: i64, limit: u64, max_size: u64) -> Tbf {
        let tokens = max_size as i64 * byte_ns;
        let (queue, sent, dropped) = Default::default();
        Tbf { byte_ns, limit, max_size, tokens, t_c: 0, backlog: 0, queue, watchdog: None, sent, dropped }
    }

    /// `tbf_enqueue`; `tbf_segment` where the buffer is longer than the bucket.
    fn enqueue(&mut self, packets: &[(u32, u64)]) {
        let bytes = packets.iter().map(|packet| packet.1).sum();
        if bytes <= self.max_size {
            return self
                .bfifo_enqueue(Buffer { packets: packets.iter().map(|packet| packet.0).collect(), bytes });
        }
        for &(number, bytes) in packets {
            if bytes > self.max_size {
                self.dropped.push(number);
            } else {
                self.bfifo_enqueue(Buffer { packets: vec![number], bytes });
            }
        }
    }

    fn bfifo_enqueue(&mut self, buffer: Buffer) {
        if self.backlog + buffer.bytes <= self.limit {
            self.backlog += buffer.bytes;
            self.queue.push_back(buffer);
        } else {
            self.dropped.extend(buffer.packets);
        }
    }

    /// `tbf_dequeue`, until it has nothing to give.
    fn run(&mut self, now: i64) {
        self.watchdog = None;
        while let Some(head) = self.queue.front() {
            let depth = self.max_size as i64 * self.byte_ns;
            let mut toks = (now - self.t_c).min(depth) + self.tokens;
            toks = toks.min(depth) - head.bytes as i64 * self.byte_ns;
            if toks < 0 {
                self.watchdog = Some(now - toks);
                return;
            }
            (self.t_c, self.tokens) = (now, toks);
            self.backlog -= head.bytes;
            let head = self.queue.pop_front().unwrap();
            self.sent.extend(head.packets.iter().map(|&number| (now as u64, number)));
        }
    }

    /// Lets the timer fire up to `now`.
    fn until(&mut self, now: i64) {
        while let Some(at) = self.watchdog.filter(|&at| at <= now) {
            self.run(at);
        }
    }
}

proptest! {
    #[test]
    fn router_admits_and_sends_like_linux(
        byte_ns in prop::sample::select(vec![1i64, 2, 4, 5, 8, 10, 16, 20, 32, 40, 64, 80, 100, 128, 160, 200, 800]),
        limit in 1514u64..120_000,
        max_size in 1514u64..120_000,
        bursts in prop::collection::vec((0u64..400_000, 1u32..46, 40u32..1501), 1..60),
    ) {
        let header = ETHERNET_HEADER_BYTES;
        let queue = QueueConfig { unit: AdmissionUnit::Burst, ..QueueConfig::drop_tail(Bytes::new(limit), None) };
        let rate_bps = Rate::from_bits_per_sec(8_000_000_000 / byte_ns as u64);
        let bucket = ElementConfig::TokenBucket {
            name: "tbf".into(), rate_bps, burst_bytes: Bytes::new(max_size), frame_bytes: header, queue,
        };
        let mut chain = Chain::new(&[bucket], &[], 1).unwrap();
        let mut tbf = Tbf::new(byte_ns, limit, max_size);
        let (mut now, mut number, mut sent) = (0, 0, Vec::new());
        for (pause, count, bytes) in bursts {
            now += pause;
            while let Some((at, _, number)) = chain.pop(Time::from_nanos(now)) {
                sent.push((at.as_nanos(), number));
            }
            tbf.until(now as i64);
            prop_assert_eq!(chain.queue(0).backlog(Time::from_nanos(now)).as_u64(), tbf.backlog);
            chain.push_run(Time::from_nanos(now), Packet::new(bytes, 0), count, |index| number + index);
            let packets: Vec<_> = (number..number + count).map(|number| (number, (bytes + header) as u64)).collect();
            tbf.enqueue(&packets);
            tbf.run(now as i64);
            number += count;
        }
        while let Some((at, _, number)) = chain.pop(Time::from_nanos(u64::MAX / 4)) {
            sent.push((at.as_nanos(), number));
        }
        tbf.until(i64::MAX / 4);
        prop_assert_eq!(&sent, &tbf.sent);
        let totals = chain.queue(0).totals(Time::from_nanos(u64::MAX / 4));
        prop_assert_eq!(totals.dropped.packets, tbf.dropped.len() as u64);
        prop_assert_eq!(totals.accepted.packets, sent.len() as u64);
    }
}

/// Bursts of ten full segments: 15140 bytes with the headers of their frames.
fn dropped(limit: u64, depth: u64, bursts: u32) -> u64 {
    let queue = QueueConfig { unit: AdmissionUnit::Burst, ..QueueConfig::drop_tail(Bytes::new(limit), None) };
    let bucket = ElementConfig::TokenBucket {
        name: "tbf".into(),
        rate_bps: Rate::from_bits_per_sec(8_000_000),
        burst_bytes: Bytes::new(depth),
        frame_bytes: ETHERNET_HEADER_BYTES,
        queue,
    };
    let mut chain = Chain::new(&[bucket], &[], 1).unwrap();
    (0..bursts).for_each(|_| chain.push_run(Time::ZERO, Packet::new(1500, 0), 10, |index| index));
    chain.queue(0).totals(Time::ZERO).dropped.packets
}

#[test]
fn burst_without_room_is_dropped_entirely() {
    // The first leaves on the bucket; the second waits, and of the third nothing fits in 20 KB.
    assert_eq!(dropped(20_000, 15_140, 3), 10);
}

#[test]
fn burst_above_bucket_splits_to_fit() {
    // Nine packets leave on the bucket; thirteen fit in 20 KB.
    assert_eq!(dropped(20_000, 15_139, 3), 30 - 9 - 13);
}

#[test]
fn burst_above_limit_drops_despite_tokens() {
    assert_eq!(dropped(15_139, 100_000, 3), 30);
    assert_eq!(dropped(15_140, 100_000, 3), 0);
}

/// Behind an interface of 1 Gbit/s, bursts of ten arrive segment by segment; with receive offload every 100 us in pieces of eight.
#[test]
fn remerged_burst_is_dropped_entirely() {
    let dropped = |merge| {
        let link = ElementConfig::Link {
            name: "interface".into(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(1_000_000_000)),
            queue: QueueConfig::drop_tail(Bytes::new(2_000_000), None),
        };
        let merged =
            ElementConfig::Aggregate(aggregate::Config { every_ns: Duration::from_micros(100), merge });
        let queue =
            QueueConfig { unit: AdmissionUnit::Burst, ..QueueConfig::drop_tail(Bytes::new(5_000), None) };
        let bucket = ElementConfig::TokenBucket {
            name: "tbf".into(),
            rate_bps: Rate::from_bits_per_sec(2_000_000_000),
            burst_bytes: Bytes::new(1_000_000),
            frame_bytes: ETHERNET_HEADER_BYTES,
            queue,
        };
        let mut chain = Chain::new(&[link, merged, bucket], &[], 1).unwrap();
        (0..10).for_each(|_| chain.push_run(Time::ZERO, Packet::new(1500, 0), 10, |index| index));
        while chain.pop(Time::from_micros(10_000)).is_some() {}
        chain.queue(1).totals(Time::from_micros(10_000)).dropped.packets
    };
    // There are tokens for all of it, and 5 KB of room for three packets.
    assert_eq!(dropped(false), 0);
    assert!(dropped(true) > 80);
}
