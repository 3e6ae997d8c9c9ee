//! CoDel: drops from the head of the queue once packets have waited longer than `target` for a whole `interval`, and then more
//! and more often, with `interval / sqrt(count)` between drops, until a packet has waited less.
//!
//! Specification: RFC 8289, section 5. Where Linux 6.12 (`include/net/codel_impl.h`, `sch_codel.c`) differs, this is Linux:
//! * Time is counted in ticks of 1024 ns, so the default target is 4.999 ms.
//! * `1 / sqrt(count)` is approximated in 16 bits, with one Newton step each time the count changes. The first gaps are
//!   thus 100, 50, 56 and 49 ms instead of 100, 71, 58 and 50 ms.
//! * A packet that is dropped must be later than the end of the first interval; in the RFC, at it suffices.
//! * With `ecn`, what can be marked is marked instead of dropped, and then sent: one mark for each packet that leaves.
//! * `ce_threshold` marks each packet that has waited longer, whatever CoDel decides.
//!
//! Deviations from Linux: time never wraps (Linux's does after 73 minutes); `ecn` is on by default (`tc`: off); lengths are
//! those of IP packets, so the MTU is 1500 where an Ethernet device counts 1514; the limit is that of the queue, in bytes and
//! packets (`tc`: 1000 packets). Not included: `ce_threshold_selector`.

use crate::discipline::{Discipline, Dropped, Line, Room, Setup, Waiting};
use crate::packet::Tally;
use crate::settings::{DisciplineInfo, settings};
use fullpipe_units::{Bytes, Time};

settings! {
    /// When CoDel signals congestion, and how.
    target_ns as "target": Time = 5_000_000, 1_000..=10_000_000_000,
        "how long packets may wait";
    interval_ns as "interval": Time = 100_000_000, 1_000..=10_000_000_000,
        "for how long they must have waited longer before it drops; about the longest round trip";
    ecn as "ecn": Switch = 1, 0..=1,
        "marks packets that are ECN-capable instead of dropping them";
    ce_threshold_ns as "ce_threshold": Time = 0, 0..=10_000_000_000,
        "marks every ECN-capable packet that has waited longer; 0 for none";
    mtu_bytes as "mtu": Bytes = 1_500, 68..=65_535,
        "drops nothing while no more than this waits behind a packet";
}

pub(crate) const INFO: DisciplineInfo = DisciplineInfo {
    name: "codel",
    summary: "drops or marks at the head, more and more often, while packets wait too long",
    source: "RFC 8289; Linux 6.12 net/sched/sch_codel.c",
    linux_name: Some("codel"),
    settings: Settings::INFO,
};

/// CoDel over one line of packets.
#[derive(Debug)]
pub(crate) struct Codel {
    limit: Room,
    rules: Rules,
    state: State,
    line: Line,
}

impl Codel {
    pub(crate) fn new(settings: &Settings, setup: Setup) -> Codel {
        Codel {
            limit: setup.limit,
            rules: Rules::new(settings),
            state: State::default(),
            line: Line::default(),
        }
    }
}

impl Discipline for Codel {
    fn enqueue(&mut self, _: Time, waiting: Waiting, dropped: &mut Dropped) {
        if self.limit.takes(self.line.backlog(), &waiting) {
            self.line.push(waiting);
        } else {
            dropped.overflow(waiting);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<Waiting> {
        let queue = Queue::new(&self.rules, &mut self.line, Bytes::ZERO, now);
        self.state.dequeue(queue, dropped)
    }

    fn backlog(&self) -> Tally {
        self.line.backlog()
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Room { bytes, packets: None };
    }
}

/// Linux's clock for CoDel: 1024 ns.
const fn ticks(time: Time) -> u64 {
    time.as_nanos() >> 10
}

/// The settings in ticks. FQ-CoDel has them for all of its queues.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules {
    target: u64,
    interval: u64,
    ce_threshold: Option<u64>,
    mtu: u64,
    ecn: bool,
}

impl Rules {
    pub(super) fn new(settings: &Settings) -> Rules {
        let threshold = Time::from_nanos(settings.ce_threshold_ns);
        Rules {
            target: ticks(Time::from_nanos(settings.target_ns)),
            interval: ticks(Time::from_nanos(settings.interval_ns)),
            ce_threshold: (threshold > Time::ZERO).then_some(ticks(threshold)),
            mtu: settings.mtu_bytes,
            ecn: settings.ecn == 1,
        }
    }
}

/// A line of packets, at the moment at which its head may leave.
pub(super) struct Queue<'a> {
    rules: &'a Rules,
    line: &'a mut Line,
    /// Bytes that wait for the same link in other lines.
    elsewhere: u64,
    now: u64,
}

impl<'a> Queue<'a> {
    pub(super) fn new(rules: &'a Rules, line: &'a mut Line, elsewhere: Bytes, now: Time) -> Queue<'a> {
        Queue { rules, line, elsewhere: elsewhere.as_u64(), now: ticks(now) }
    }
}

impl Queue<'_> {
    /// Ticks for which a packet has waited.
    fn waited(&self, packet: &Waiting) -> u64 {
        self.now - ticks(packet.arrived())
    }
}

/// What CoDel remembers of a line. The names are the RFC's.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct State {
    /// Drops and marks since dropping began.
    count: u32,
    /// The count with which dropping began.
    last_count: u32,
    dropping: bool,
    /// `1 / sqrt(count)`, in parts of 2^16.
    inverse_root: u16,
    /// When packets will have waited too long for an interval, if they go on to.
    first_above: Option<u64>,
    drop_next: u64,
}

/// A packet that was at the head of the line, and whether CoDel may drop it.
struct Head {
    packet: Option<Waiting>,
    late: bool,
}

impl State {
    /// Takes the packet that is sent next, after those that are dropped before it.
    pub(super) fn dequeue(&mut self, mut queue: Queue<'_>, dropped: &mut Dropped) -> Option<Waiting> {
        let mut head = self.take(&mut queue);
        if self.dropping {
            // A slow link may have let several drops become due.
            while head.late && queue.now >= self.drop_next {
                self.count_up(1);
                self.newton_step();
                let marked;
                (head, marked) = self.signal(head, &mut queue, dropped);
                if head.late {
                    self.drop_next += self.gap(queue.rules.interval);
                }
                if marked {
                    break;
                }
            }
            self.dropping = head.late;
        } else if head.late {
            (head, _) = self.signal(head, &mut queue, dropped);
            self.enter_dropping(&queue);
        }
        let mut packet = head.packet?;
        if queue.rules.ce_threshold.is_some_and(|threshold| queue.waited(&packet) > threshold) {
            packet.mark();
        }
        Some(packet)
    }

    /// Counts drops of this line that were not CoDel's.
    pub(super) fn count_up(&mut self, drops: u32) {
        // Linux lets it wrap, too: nothing divides by it.
        self.count = self.count.wrapping_add(drops);
    }

    /// Takes the packet at the head, which is late if packets have waited too long for an interval (`dodequeue` of the RFC).
    fn take(&mut self, queue: &mut Queue<'_>) -> Head {
        let packet = queue.line.pop();
        let waits_too_long = packet.as_ref().is_some_and(|packet| {
            let behind = queue.line.backlog().bytes.as_u64() + queue.elsewhere;
            queue.waited(packet) >= queue.rules.target && behind > queue.rules.mtu
        });
        let late = match self.first_above {
            _ if !waits_too_long => {
                self.first_above = None;
                false
            }
            None => {
                self.first_above = Some(queue.now + queue.rules.interval);
                false
            }
            Some(first_above) => queue.now > first_above,
        };
        Head { packet, late }
    }

    /// Marks the late packet at the head, or drops it and takes the next. Returns whether it was marked.
    fn signal(&mut self, head: Head, queue: &mut Queue<'_>, dropped: &mut Dropped) -> (Head, bool) {
        let mut packet = head.packet.expect("only a packet is late");
        if queue.rules.ecn && packet.mark() {
            return (Head { packet: Some(packet), late: true }, true);
        }
        dropped.early(packet);
        (self.take(queue), false)
    }

    /// Begins to drop: as often as the last time, if that was not long ago.
    fn enter_dropping(&mut self, queue: &Queue<'_>) {
        let interval = queue.rules.interval;
        let last_time = self.count.wrapping_sub(self.last_count);
        self.dropping = true;
        // It may have left before the next drop was due.
        if last_time > 1 && queue.now < self.drop_next + 16 * interval {
            self.count = last_time;
            self.newton_step();
        } else {
            self.count = 1;
            self.inverse_root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = queue.now + self.gap(interval);
    }

    /// `interval / sqrt(count)`, in ticks (`codel_control_law` of Linux).
    fn gap(&self, interval: u64) -> u64 {
        (interval * self.inverse_root as u64) >> 16
    }

    /// Improves `inverse_root` for a new count (`codel_Newton_step` of Linux): `x / 2 * (3 - count * x * x)`.
    ///
    /// It diverges after the count has grown by a lot, as it does when FQ-CoDel drops a batch, and what is left of Linux's
    /// unsigned integers then is the root: most often it is right again within 20 steps. After one such drop at a count of 1
    /// it stays at 2, a gap of 2 us: all that is late is dropped, until dropping begins with a count of 1 again.
    fn newton_step(&mut self) {
        let root = (self.inverse_root as u64) << 16;
        let square = (root * root) >> 32;
        let rest = (3u64 << 32).wrapping_sub(self.count as u64 * square);
        // Two bits less, so that the product fits unless it diverges.
        let next = (rest >> 2).wrapping_mul(root) >> 31;
        self.inverse_root = (next >> 16) as u16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disciplines::harness::{Link, Outcome, config, ect0, ms, setup};
    use crate::packet::{Cause, Packet};
    use fullpipe_units::{Duration, Rate};

    /// Takes 1 ms at the rate of [`setup`], 10 Mbit/s.
    const PACKET: Packet = Packet::new(1_250, 0);

    /// Twice of what the link carries, for a second: a queue that grows by 1 packet each ms.
    fn overload(settings: &[(&str, u64)], packet: Packet) -> Link {
        let mut link = Link::new(&config("codel", settings), setup());
        link.arrive_steadily(Time::ZERO, 2_000, Duration::from_micros(500), packet);
        link
    }

    fn millis(times: Vec<Time>) -> Vec<u64> {
        times.iter().map(|time| time.as_nanos() / 1_000_000).collect()
    }

    /// The packet that leaves at t ms has waited t/2. At 10 ms that reaches the target of 4.999 ms; the interval of
    /// 97,656 ticks then ends in the tick of 110 ms, so 111 ms is the first time after it. From then on:
    ///
    /// | count | 1/sqrt, of 65,536 | gap, ticks | due, ticks | due, ms | dropped, ms |
    /// |-------|-------------------|------------|------------|---------|-------------|
    /// |     1 |            65,535 |     97,654 |            |         |         111 |
    /// |     2 |            32,769 |     48,829 |    206,052 | 210.997 |         211 |
    /// |     3 |            36,864 |     54,931 |    254,881 | 260.998 |         261 |
    /// |     4 |            31,968 |     47,635 |    309,812 | 317.247 |         318 |
    /// |     5 |            28,935 |     43,116 |    357,447 | 366.026 |         367 |
    /// |     6 |            26,481 |     39,459 |    400,563 | 410.177 |         411 |
    /// |     7 |            24,588 |     36,638 |    440,022 | 450.583 |         451 |
    /// |     8 |                   |            |    476,660 | 488.100 |         489 |
    #[test]
    fn standing_queue_drops_accelerate() {
        let outcome = overload(&[], PACKET).finish();
        assert_eq!(millis(outcome.drop_times())[..8], [111, 211, 261, 318, 367, 411, 451, 489]);
        assert!(outcome.lost.iter().all(|lost| lost.cause == Cause::Early));
    }

    #[test]
    fn drop_gaps_follow_inverse_square_root() {
        let times = overload(&[], PACKET).finish().drop_times();
        assert!(times.len() > 50);
        let first = times[5].as_secs_f64();
        let mut law = first;
        for (index, time) in times.iter().enumerate().skip(6) {
            law += 0.1 / (index as f64).sqrt();
            // The next packet leaves up to 1 ms later, and Newton's steps are still 1 % off.
            assert!((time.as_secs_f64() - law).abs() < 0.001 + 0.01 * (law - first), "{index}: {time}");
        }
    }

    #[test]
    fn ecn_capable_packets_are_marked_instead() {
        let dropped = overload(&[], PACKET).finish();
        let marked = overload(&[], ect0(1_250, 0)).finish();
        // A packet that is marked takes its ms on the link, but changes no time at which the next is due.
        assert_eq!(marked.mark_times()[..30], dropped.drop_times()[..30]);
        assert_eq!(marked.lost, []);
        let without = overload(&[("ecn", 0)], ect0(1_250, 0)).finish();
        assert_eq!(without.drop_times(), dropped.drop_times());
        assert_eq!(without.mark_times(), []);
    }

    #[test]
    fn dropping_stops_below_target() {
        // A queue of 20 packets, in which each waits for 20 ms. From 71 to 86 ms none arrives; at 87 ms the missing do.
        let run = |pause: u64| {
            let mut link = Link::new(&config("codel", &[]), setup());
            link.arrive_steadily(Time::ZERO, 20, Duration::ZERO, PACKET);
            link.arrive_steadily(Time::ZERO, 71, Duration::from_millis(1), PACKET);
            link.arrive_steadily(ms(71 + pause), pause + 1, Duration::ZERO, PACKET);
            link.arrive_steadily(ms(72 + pause), 300, Duration::from_millis(1), PACKET);
            let outcome = link.finish();
            let least = outcome.sent[20..150].iter().map(|sent| sent.sojourn().as_millis()).min();
            (least.expect("many are sent"), millis(outcome.drop_times())[..2].to_vec())
        };
        // Late from 5 ms on, when the packet leaves that arrived at the start and has waited for 5 ms; or from 92 ms on.
        assert_eq!(run(15), (5, vec![105, 205]));
        assert_eq!(run(16), (4, vec![192, 292]));
    }

    #[test]
    fn one_mtu_backlog_prevents_drops() {
        // At 0.1 Mbit/s a packet takes 100 ms.
        let run = |at_first| {
            let rate = Rate::from_bits_per_sec(100_000);
            let mut link = Link::new(&config("codel", &[]), Setup { rate, ..setup() });
            link.arrive_steadily(Time::ZERO, at_first, Duration::ZERO, PACKET);
            link.arrive_steadily(ms(100), 50, Duration::from_millis(100), PACKET);
            link.finish()
        };
        let one_behind = run(3);
        assert_eq!(one_behind.lost, []);
        assert!(one_behind.sent[2..].iter().all(|sent| sent.sojourn() == Duration::from_millis(200)));
        // With two behind, one is dropped after more than an interval, and only one is behind again.
        assert_eq!(millis(run(4).drop_times()), [300]);
    }

    #[test]
    fn slow_link_drops_many_marks_one() {
        let run = |packet| {
            let rate = Rate::from_bits_per_sec(100_000);
            let mut link = Link::new(&config("codel", &[]), Setup { rate, ..setup() });
            link.arrive_steadily(Time::ZERO, 100, Duration::from_millis(20), packet);
            link.finish()
        };
        // Due at 300, 400, 450, 506, 555, 599, 640, 677, 713, 746 ms ...; each 100 ms the link asks.
        let dropped = millis(run(PACKET).drop_times());
        assert_eq!(dropped[..10], [300, 400, 500, 600, 600, 600, 700, 700, 800, 800]);
        let marked = millis(run(ect0(1_250, 0)).mark_times());
        assert_eq!(marked[..10], [300, 400, 500, 600, 700, 800, 900, 1_000, 1_100, 1_200]);
    }

    /// Overload for a second, a pause after the queue has drained, and overload again. Returns how many were dropped
    /// before, and the first two drop times after.
    fn twice(pause: Duration) -> (usize, Time, Time) {
        let mut link = overload(&[], PACKET);
        link.run_until(ms(3_000));
        assert_eq!(link.backlog(), Tally::default());
        let so_far = link.so_far();
        let before = so_far.lost.len();
        let drained = so_far.sent.last().expect("some are sent").at;
        let again = drained.saturating_add(pause).max(ms(3_000));
        link.arrive_steadily(again, 2_000, Duration::from_micros(500), PACKET);
        let times = link.finish().drop_times();
        (before, times[before], times[before + 1])
    }

    #[test]
    fn soon_resumed_dropping_keeps_count() {
        let (before, first, second) = twice(Duration::ZERO);
        let gap = second.saturating_since(first).as_secs_f64();
        let law = 0.1 / (before as f64 - 1.0).sqrt();
        assert!(before > 50 && (gap - law).abs() < 0.0011, "{gap} instead of {law}, after {before}");
        let (_, first, second) = twice(Duration::from_millis(3_000));
        assert_eq!(second.saturating_since(first), Duration::from_millis(100), "long after");
    }

    #[test]
    fn count_is_remembered_for_16_intervals() {
        let rules = Rules::new(&Settings::default());
        let enter = |count, later: u64| {
            let drop_next = 1_000_000;
            let mut state =
                State { count, last_count: 3, drop_next, inverse_root: 20_000, ..State::default() };
            let now = drop_next + later;
            let line = &mut Line::default();
            state.enter_dropping(&Queue { rules: &rules, line, elsewhere: 0, now });
            assert_eq!(state.last_count, state.count);
            state.count
        };
        assert_eq!(enter(13, 16 * rules.interval - 1), 10);
        assert_eq!(enter(13, 16 * rules.interval), 1);
        assert_eq!(enter(5, 0), 2);
        assert_eq!(enter(4, 0), 1, "one drop is no reason");
    }

    /// The law is exact to 0.1 % after few steps, and to 16 bits once the count is large.
    #[test]
    fn the_root_converges() {
        let mut state = State { count: 1, inverse_root: u16::MAX, ..State::default() };
        for _ in 2..2_000 {
            state.count_up(1);
            state.newton_step();
            let exact = 65_536.0 / (state.count as f64).sqrt();
            let off = (state.inverse_root as f64 / exact - 1.0).abs();
            assert!(state.count < 20 || off < 0.002, "{off} at {}", state.count);
        }
        // After a batch of 64 it is lost, and found again.
        let mut state = State { count: 65, inverse_root: u16::MAX, ..State::default() };
        let mut roots = (0..12).map(|_| {
            state.count_up(1);
            state.newton_step();
            state.inverse_root
        });
        assert_eq!(roots.next(), Some(32_865)); // Linux's remainder modulo 2^64
        assert_eq!(roots.last(), Some(7_468)); // 65,536 / sqrt(77) = 7,468.5
        // After one drop more at a count of 1, it is not.
        let mut state = State { count: 2, inverse_root: u16::MAX, ..State::default() };
        for _ in 0..100 {
            state.count_up(1);
            state.newton_step();
            assert_eq!(state.inverse_root, 2);
        }
    }

    #[test]
    fn ce_threshold_marks_longer_waits() {
        // A packet of 1280 bytes takes 1000 ticks, and two arrive in that time: each waits for 500 ticks more.
        let threshold = Duration::from_nanos(30_000 << 10);
        let settings = [("target", 10_000_000_000), ("ce_threshold", threshold.as_nanos())];
        let mut link = Link::new(&config("codel", &settings), setup());
        link.arrive_steadily(Time::ZERO, 200, Duration::from_nanos(500 << 10), ect0(1_280, 0));
        let outcome = link.finish();
        assert_eq!(outcome.sent.len(), 200);
        assert!(outcome.sent.iter().any(|sent| sent.sojourn() == threshold));
        for sent in &outcome.sent {
            assert_eq!(sent.is_marked(), sent.sojourn() > threshold, "{sent:?}");
        }
    }

    #[test]
    fn overflow_is_dropped_at_tail() {
        let run = |limit| {
            let mut link = Link::new(&config("codel", &[]), Setup { limit, ..setup() });
            link.arrive_steadily(Time::ZERO, 6, Duration::ZERO, PACKET);
            let Outcome { sent, lost } = link.finish();
            assert!(lost.iter().all(|lost| lost.cause == Cause::QueueFull));
            (sent.len(), lost.iter().map(|lost| lost.number).collect::<Vec<_>>())
        };
        // One is in transmission, and does not count.
        assert_eq!(run(Room { bytes: Bytes::MAX, packets: Some(3) }), (4, vec![4, 5]));
        assert_eq!(run(Room { bytes: Bytes::new(2_500), packets: None }), (3, vec![3, 4, 5]));
    }
}
