//! FQ-CoDel: a line for each flow, served in turn by bytes, each with a CoDel of its own. Flows that have just begun to send go
//! first.
//!
//! Specification: RFC 8290. Where Linux 6.12 (`sch_fq_codel.c`) differs, this is Linux:
//! * CoDel drops nothing while no more than one MTU waits in all lines together (RFC 8289: in this one).
//! * On overflow, the line with the most bytes loses packets at its head until half of its bytes or `drop_batch` packets are
//!   gone. Its CoDel counts them as its own drops.
//! * CoDel as in `codel.rs`, which both share.
//!
//! Flows are hashed into `flows` lines with a random perturbation, so two may share one: of 10 flows in 1024 lines, some do in
//! 4 % of the runs.
//!
//! Deviations from Linux: lengths are those of IP packets, so quantum and MTU are 1500 where an Ethernet device has 1514; the
//! limit is that of the queue (`tc`: 10240 packets and 32 MB), its bytes are those of packets (Linux: of the memory that
//! holds them), and batches are dropped until it is kept (Linux: one). Not included: external classifiers,
//! `ce_threshold_selector`.

use std::cmp::Reverse;
use std::collections::VecDeque;

use super::codel::{self, Queue, Rules, State};
use crate::discipline::{Discipline, Dropped, Line, Room, Setup, Waiting};
use crate::packet::Tally;
use crate::rng::mix;
use crate::settings::{DisciplineInfo, settings};
use fullpipe_units::{Bytes, Time};

settings! {
    /// How lines are served, and when CoDel signals congestion.
    target_ns as "target": Time = 5_000_000, 1_000..=10_000_000_000,
        "how long packets may wait";
    interval_ns as "interval": Time = 100_000_000, 1_000..=10_000_000_000,
        "for how long they must have waited longer before it drops; about the longest round trip";
    ecn as "ecn": Switch = 1, 0..=1,
        "marks packets that are ECN-capable instead of dropping them";
    ce_threshold_ns as "ce_threshold": Time = 0, 0..=10_000_000_000,
        "marks every ECN-capable packet that has waited longer; 0 for none";
    mtu_bytes as "mtu": Bytes = 1_500, 68..=65_535,
        "drops nothing early while no more than this waits behind a packet";
    flows as "flows": Count = 1_024, 1..=65_536,
        "lines into which flows are hashed";
    quantum_bytes as "quantum": Bytes = 1_500, 256..=1_048_576,
        "what a line may send in one turn";
    drop_batch as "drop_batch": Count = 64, 1..=65_536,
        "the most packets that are dropped at once when the queue is full";
}

pub(crate) const INFO: DisciplineInfo = DisciplineInfo {
    name: "fq_codel",
    summary: "serves flows in turn, new ones first, and drops or marks in each as CoDel does",
    source: "RFC 8290; Linux 6.12 net/sched/sch_fq_codel.c",
    linux_name: Some("fq_codel"),
    settings: Settings::INFO,
};

/// FQ-CoDel. The names are the RFC's.
#[derive(Debug)]
pub(crate) struct FqCodel {
    limit: Room,
    rules: Rules,
    quantum: i64,
    drop_batch: u32,
    perturbation: u64,
    flows: Vec<Flow>,
    /// Flows that have begun to send, and have not had their quantum yet.
    new: VecDeque<u32>,
    /// The other flows with a turn. Each flow that waits is in one of the two lists; some in them have run empty.
    old: VecDeque<u32>,
    backlog: Tally,
}

/// A line, and those flows that are hashed to it.
#[derive(Debug, Default)]
struct Flow {
    line: Line,
    codel: State,
    /// Bytes that it may still send in this turn.
    deficit: i64,
    /// Whether it is in one of the lists.
    listed: bool,
}

impl FqCodel {
    pub(crate) fn new(settings: &Settings, mut setup: Setup) -> FqCodel {
        FqCodel {
            limit: setup.limit,
            rules: Rules::new(&codel::Settings {
                target_ns: settings.target_ns,
                interval_ns: settings.interval_ns,
                ecn: settings.ecn,
                ce_threshold_ns: settings.ce_threshold_ns,
                mtu_bytes: settings.mtu_bytes,
            }),
            quantum: settings.quantum_bytes as i64,
            drop_batch: settings.drop_batch as u32,
            perturbation: setup.random.next_u64(),
            flows: (0..settings.flows).map(|_| Flow::default()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            backlog: Tally::default(),
        }
    }

    fn index_of(&self, flow: u32) -> u32 {
        let hash = mix(self.perturbation ^ flow as u64) >> 32;
        ((hash * self.flows.len() as u64) >> 32) as u32
    }

    fn is_over_limit(&self) -> bool {
        self.backlog.bytes > self.limit.bytes
            || self.limit.packets.is_some_and(|most| self.backlog.packets > most as u64)
    }

    /// Drops a batch from the flow with the most bytes: its oldest packets, whose loss is noticed first.
    fn drop_batch(&mut self, dropped: &mut Dropped) {
        let listed = self.new.iter().chain(&self.old).copied();
        let bytes_of = |index: u32| self.flows[index as usize].line.backlog().bytes;
        let fattest = listed.max_by_key(|&index| (bytes_of(index), Reverse(index)));
        let flow = &mut self.flows[fattest.expect("what waits is listed") as usize];
        let before = flow.line.backlog();
        let half = before.bytes.as_u64() / 2;
        let mut drops = 0;
        while let Some(waiting) = flow.line.pop() {
            dropped.overflow(waiting);
            drops += 1;
            let gone = before.bytes - flow.line.backlog().bytes;
            if drops == self.drop_batch || gone.as_u64() >= half {
                break;
            }
        }
        flow.codel.count_up(drops);
        self.backlog = self.backlog - (before - flow.line.backlog());
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, _: Time, waiting: Waiting, dropped: &mut Dropped) {
        let index = self.index_of(waiting.flow());
        let flow = &mut self.flows[index as usize];
        let before = flow.line.backlog();
        flow.line.push(waiting);
        self.backlog = self.backlog + (flow.line.backlog() - before);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(index);
        }
        while self.is_over_limit() {
            self.drop_batch(dropped);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<Waiting> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let before = flow.line.backlog();
            let elsewhere = self.backlog.bytes - before.bytes;
            let queue = Queue::new(&self.rules, &mut flow.line, elsewhere, now);
            let packet = flow.codel.dequeue(queue, dropped);
            self.backlog = self.backlog - (before - flow.line.backlog());
            if let Some(packet) = packet {
                flow.deficit -= packet.bytes() as i64;
                return Some(packet);
            }
            list.pop_front();
            if is_new && !self.old.is_empty() {
                // Else a flow that sends one packet at a time would always go first (RFC 8290, section 4.2).
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn backlog(&self) -> Tally {
        self.backlog
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Room { bytes, packets: None };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::Random;
    use crate::disciplines::harness::{Link, Outcome, config, ect0, ms, setup, us};
    use crate::packet::{Cause, Packet};
    use crate::rng::Stream;
    use fullpipe_units::{Duration, Rate};

    /// 1 ms at the rate of [`setup`], 10 Mbit/s.
    const BYTES: u32 = 1_250;

    fn packet(bytes: u32, flow: u32) -> Packet {
        Packet::new(bytes, flow)
    }

    fn link(settings: &[(&str, u64)]) -> Link {
        Link::new(&config("fq_codel", settings), setup())
    }

    fn flows(outcome: &Outcome) -> String {
        outcome.sent.iter().map(|sent| char::from(b'a' + sent.packet.class as u8)).collect()
    }

    /// Packets of all flows at once, as a string of letters.
    fn at_once(link: &mut Link, at: Time, bytes: u32, letters: &str) {
        for letter in letters.bytes() {
            link.arrive(at, packet(bytes, (letter - b'a') as u32));
        }
    }

    fn built(settings: &[(&str, u64)], seed: u64) -> FqCodel {
        let mut values = Settings::default();
        for (name, value) in settings {
            *values.value(name).expect("it is a setting") = *value;
        }
        FqCodel::new(&values, Setup { random: Random(Stream::new(seed, 0)), ..setup() })
    }

    #[test]
    fn lines_take_turns_of_one_quantum() {
        let order = |quantum, bytes| {
            let mut link = link(&[("quantum", quantum)]);
            at_once(&mut link, Time::ZERO, bytes, "aaaaaaaabbbbbbbb");
            flows(&link.finish())
        };
        // A turn ends when nothing is left of the quantum, so it may exceed it by a packet.
        assert_eq!(order(1_500, 1_500), "abababababababab");
        assert_eq!(
            order(1_501, 1_500),
            "aabbababababababab"[..16].to_owned(),
            "one byte is left of the first turns"
        );
        assert_eq!(order(3_000, 1_500), "aabbaabbaabbaabb");
        assert_eq!(order(256, 64), "aaaabbbbaaaabbbb");
    }

    #[test]
    fn flows_share_by_bytes() {
        let mut link = link(&[("target", 10_000_000_000)]);
        for (flow, bytes) in [(0, 1_500), (1, 500), (2, 100)] {
            link.arrive_steadily(Time::ZERO, 150_000 / bytes as u64, Duration::ZERO, packet(bytes, flow));
        }
        // While all three have packets.
        for until in (10..350).step_by(10) {
            link.run_until(ms(until));
            let sent = [0, 1, 2].map(|flow| link.so_far().bytes_of(flow));
            let (least, most) = (sent.iter().min().unwrap(), sent.iter().max().unwrap());
            assert!(most - least <= 1_500 + 1_500, "{sent:?}");
        }
    }

    #[test]
    fn sparse_flow_goes_first() {
        let mut link = link(&[]);
        at_once(&mut link, Time::ZERO, BYTES, &"ab".repeat(50));
        for at in [10, 20, 30] {
            link.arrive(us(at * 1_000 + 500), packet(100, 2));
        }
        let outcome = link.finish();
        let waited = outcome.sent.iter().filter(|sent| sent.packet.class == 2).map(|sent| sent.sojourn());
        // What is on the link is sent first. The small packets delay the others by 80 us each.
        let left = [500, 580, 660].map(Duration::from_micros);
        assert_eq!(waited.collect::<Vec<_>>(), left);
    }

    #[test]
    fn continuing_new_flow_becomes_old() {
        let mut link = link(&[]);
        at_once(&mut link, Time::ZERO, 1_500, "aaaabbbb");
        at_once(&mut link, us(1_000), 1_500, "cccc");
        // c comes while the first of a is sent: b is new, too, and came before.
        assert_eq!(flows(&link.finish()), "abcabcabcabc");
    }

    /// As a new flow each time it would have every second turn.
    #[test]
    fn emptied_flow_waits_for_others() {
        let mut link = link(&[("target", 10_000_000_000)]);
        at_once(&mut link, Time::ZERO, 1_500, &"abcde".repeat(40));
        link.run_until(ms(30));
        let before: u64 = (0..5).map(|flow| link.so_far().bytes_of(flow)).sum();
        // All five are old now. 1500 and 700 bytes take 1.76 ms: the small one comes again while the next large one is sent.
        link.arrive_steadily(us(30_600), 100, Duration::from_micros(1_760), packet(700, 5));
        let sent = link.so_far();
        let all = (0..6).map(|flow| sent.bytes_of(flow)).sum::<u64>() - before;
        assert!(sent.bytes_of(5) <= all / 6 + 1_500, "{} of {all}", sent.bytes_of(5));
        assert!(sent.bytes_of(5) + 1_500 >= all / 6, "{} of {all}", sent.bytes_of(5));
    }

    #[test]
    fn each_queue_has_own_codel() {
        // a sends twice of what the link carries, b a tenth.
        let mut link = link(&[]);
        for at in 0..2_000u64 {
            link.arrive(us(at * 500), ect0(BYTES, 0));
            if at.is_multiple_of(20) {
                link.arrive(us(at * 500), ect0(BYTES, 1));
            }
        }
        let outcome = link.finish();
        assert_eq!(outcome.lost, []);
        assert!(outcome.mark_times().len() > 50);
        for sent in outcome.sent.iter().filter(|sent| sent.packet.class == 1) {
            assert!(!sent.is_marked() && sent.sojourn() <= Duration::from_millis(2), "{sent:?}");
        }
    }

    /// As in Linux, and other than in RFC 8289.
    #[test]
    fn mtu_backlog_counts_all_queues() {
        // At 0.1 Mbit/s a packet takes 100 ms. Each flow has three at first and sends as much as it gets, so that one waits
        // behind each that leaves.
        let run = |flows: u64| {
            let rate = Rate::from_bits_per_sec(100_000);
            let mut link = Link::new(&config("fq_codel", &[]), Setup { rate, ..setup() });
            for turn in 0..20 {
                for flow in 0..flows {
                    let count = if turn == 0 { 3 } else { 1 };
                    let at = ms(100 * flows * turn);
                    link.arrive_steadily(at, count, Duration::ZERO, packet(BYTES, flow as u32));
                }
            }
            link.finish().lost.len()
        };
        assert_eq!(run(1), 0);
        assert!(run(2) > 0);
    }

    #[test]
    fn overflow_halves_fattest_queue_from_head() {
        let limit = Room { bytes: Bytes::MAX, packets: Some(20) };
        let lost = |batch| {
            let mut link =
                Link::new(&config("fq_codel", &[("drop_batch", batch)]), Setup { limit, ..setup() });
            // The first of a is on the link: 12 of a (numbers 1 to 12) and 8 of b wait, and then one of c.
            at_once(&mut link, Time::ZERO, BYTES, "aaaaaaaaaaaaabbbbbbbbc");
            let lost = &link.so_far().lost;
            assert!(lost.iter().all(|lost| lost.cause == Cause::QueueFull));
            lost.iter().map(|lost| lost.number).collect::<Vec<_>>()
        };
        assert_eq!(lost(64), [1, 2, 3, 4, 5, 6]);
        assert_eq!(lost(4), [1, 2, 3, 4]);
        assert_eq!(lost(1), [1]);
    }

    #[test]
    fn fattest_queue_has_most_bytes() {
        let limit = Room { bytes: Bytes::new(15_000), packets: None };
        let mut link = Link::new(&config("fq_codel", &[("drop_batch", 1)]), Setup { limit, ..setup() });
        at_once(&mut link, Time::ZERO, 1_500, "aaaaaaa"); // 9,000 wait
        at_once(&mut link, Time::ZERO, 100, &"b".repeat(61)); // 6,000, and one too many
        let lost = &link.so_far().lost;
        assert_eq!((lost.len(), lost[0].number), (1, 1));
    }

    #[test]
    fn batches_drop_until_below_limit() {
        let limit = Room { bytes: Bytes::new(100_000), packets: None };
        let mut link = Link::new(&config("fq_codel", &[]), Setup { limit, ..setup() });
        at_once(&mut link, Time::ZERO, 1_000, &"ab".repeat(51));
        link.set_limit(10_000);
        let before = link.so_far().lost.len();
        assert!(link.backlog().bytes > Bytes::new(50_000), "what waits stays until one arrives");
        link.arrive(Time::ZERO, packet(1_000, 0));
        assert!(link.backlog().bytes <= Bytes::new(10_000));
        assert!(link.so_far().lost.len() > before + 2);
    }

    #[test]
    fn overflow_counts_as_codel_drops() {
        let mut queue = built(&[("flows", 1)], 1);
        queue.limit.packets = Some(100);
        let mut dropped = Dropped::default();
        for place in 0..101 {
            queue.enqueue(Time::ZERO, Waiting::new(Time::ZERO, packet(100, 0), place), &mut dropped);
        }
        assert_eq!(dropped.0.len(), 51, "half of 10,100 bytes");
        let mut expected = State::default();
        expected.count_up(51);
        assert_eq!(format!("{:?}", queue.flows[0].codel), format!("{expected:?}"));
    }

    #[test]
    fn colliding_flows_share_one_turn() {
        // Of three flows in two lines, two share one.
        let queue = built(&[("flows", 2)], 1);
        let lines = [0, 1, 2].map(|flow| queue.index_of(flow));
        let alone = lines.iter().position(|line| lines.iter().filter(|other| *other == line).count() == 1);
        let alone = alone.expect("this seed parts the three") as u32;
        let mut link = link(&[("flows", 2), ("target", 10_000_000_000)]);
        at_once(&mut link, Time::ZERO, BYTES, &"abc".repeat(100));
        link.run_until(ms(150));
        for flow in 0..3 {
            let share = link.so_far().bytes_of(flow) as f64 / (150.0 * BYTES as f64);
            let fair = if flow == alone { 0.5 } else { 0.25 };
            assert!((share - fair).abs() < 0.02, "{flow} of {lines:?}: {share}");
        }
    }

    #[test]
    fn one_line_is_codel() {
        let run = |name, settings| {
            let mut link = Link::new(&config(name, settings), setup());
            for at in 0..2_000 {
                link.arrive(us(at * 500), Packet::new(BYTES, at as u32 % 10));
            }
            link.finish()
        };
        let one = run("fq_codel", &[("flows", 1)]);
        assert_eq!(one, run("codel", &[]));
        assert!(one.order().is_sorted());
    }

    #[test]
    fn collisions_are_random_and_rare() {
        // 10 flows in 1024 lines: 4.3 % of the seeds.
        let collides = |seed| {
            let queue = built(&[], seed);
            let mut lines: Vec<u32> = (0..10).map(|flow| queue.index_of(flow)).collect();
            lines.sort_unstable();
            lines.windows(2).any(|pair| pair[0] == pair[1])
        };
        let collisions = (0..5_000).filter(|&seed| collides(seed)).count();
        assert!((170..260).contains(&collisions), "{collisions} of 5000");
    }

    #[test]
    fn every_line_is_used() {
        let queue = built(&[("flows", 100)], 7);
        let mut uses = [0; 100];
        (0..100_000).for_each(|flow| uses[queue.index_of(flow) as usize] += 1);
        assert!(uses.iter().all(|uses| (850..1_150).contains(uses)), "{uses:?}");
    }
}
