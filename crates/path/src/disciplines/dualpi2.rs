//! DualPI2: a queue for low-latency traffic (L) beside one for classic traffic (C), coupled so that a flow of either gets
//! the same share, and almost only C pays with delay.
//!
//! Specification: RFC 9332, appendix A. Where Linux 6.17 (`net/sched/sch_dualpi2.c`, the authors' own) differs from the
//! appendix, this follows Linux, so that the two can be compared:
//!
//! * ECT(1) and CE go to L, all else to C (section 2.3).
//! * Each `tupdate` (Linux: 16 ms; the appendix: 15 ms), a PI controller moves the base probability p' by alpha times the
//!   delay above the target and by beta times its growth. The delay is that of the packet at the front of either queue, the
//!   longer one. Packets of C are dropped or, if ECN-capable, marked with p'^2; those of L are marked with k p'. Both are
//!   decided at the departure, and neither while less than two packets of 1500 bytes are left behind.
//! * L's own marking is a step: a packet that waited longer than `step_thresh` is marked. The appendix has a ramp from 0.8
//!   to 1.2 ms in its place, and takes the larger of the two probabilities; in Linux, the step is applied after the coupled
//!   marking.
//! * The scheduler is weighted round robin by bytes, 10 % for C when both wait (section 4.2.2; appendix A.2 leaves the
//!   scheduler open, but recommends a weighted one with a small share for C, such as 1/16, over a time-shifted FIFO).
//! * Decisions are drawn independently of each other, where the appendix counts up (`recur`).
//! * Overload is k p' above 1: at p' = 0.5, that is 25 % in C and 100 % in L. Then C drops what is ECN-capable, too, and L
//!   drops with p'^2 and marks the rest (section 4.2.3). With `drop_on_overload=0`, p' ends at 1 / k, and nothing but the
//!   queue's limit drops from L.
//!
//! Deviations from Linux:
//! * A burst that arrives whole stays whole. Linux splits it unless told otherwise (`no_split_gso`).
//! * p' is computed from nanoseconds without the rounding of alpha and beta to steps of 64 ns.
//! * There are no classes by filter or priority, no `drop_enqueue`, no `any_ect`, no threshold in packets and no
//!   `min_qlen_step` (0 in Linux; 1 packet in the appendix). The limit is the queue's; Linux has one of 10000 packets and
//!   twice their bytes of memory.
//! * The scheduler begins anew when nothing waits; in Linux, only when it is asked for a packet and has none.
//! * Updates begin with the first packet ([`Updates`]).

use super::updates::Updates;
use crate::discipline::{Discipline, Dropped, Line, Random, Room, Setup, Waiting};
use crate::packet::{Ecn, Tally};
use crate::settings::{DisciplineInfo, settings};
use fullpipe_units::{Bytes, Duration, Time};

settings! {
    /// The settings of DualPI2; alpha and beta are counted as Linux counts them.
    target_ns as "target": Time = 15_000_000, 1_000..=4_000_000_000, "the delay of the classic queue that it aims at";
    tupdate_ns as "tupdate": Time = 16_000_000, 1_000_000..=4_000_000_000, "time between updates of the probability";
    alpha as "alpha": Count = 41, 1..=1_000_000, "how fast p' follows the delay above the target, in 1/256 per second";
    beta as "beta": Count = 819, 1..=1_000_000, "how fast p' follows a growing delay, in 1/256 per second";
    coupling as "coupling_factor": Count = 2, 1..=255, "k: the low-latency queue is marked with k p', the classic one with p'^2";
    step_thresh_ns as "step_thresh": Time = 1_000_000, 0..=4_000_000_000,
        "delay above which every packet of the low-latency queue is marked";
    classic_protection as "classic_protection": Share = 100_000, 0..=1_000_000,
        "share of the link that the classic queue gets at least";
    drop_on_overload as "drop_on_overload": Switch = 1, 0..=1, "drop low-latency packets when marks are not enough";
}

pub(crate) const INFO: DisciplineInfo = DisciplineInfo {
    name: "dualpi2",
    summary: "a low-latency queue that marks, coupled to a classic queue",
    source: "RFC 9332 appendix A; Linux 6.17 net/sched/sch_dualpi2.c",
    linux_name: Some("dualpi2"),
    settings: Settings::INFO,
};

/// The probability 1.
const ONE: u64 = 1 << 32;
/// A full-size packet (Linux: the device's MTU).
const MTU: u64 = 1_500;

/// DualPI2.
#[derive(Debug)]
pub(crate) struct Dualpi2 {
    settings: Settings,
    limit: Room,
    low: Line,
    classic: Line,
    turn: Turn,
    updates: Updates,
    base: Base,
    random: Random,
}

impl Dualpi2 {
    pub(crate) fn new(settings: &Settings, setup: Setup) -> Dualpi2 {
        Dualpi2 {
            settings: *settings,
            limit: setup.limit,
            low: Line::default(),
            classic: Line::default(),
            turn: Turn::new(settings.classic_protection as i64),
            updates: Updates::new(Duration::from_nanos(settings.tupdate_ns)),
            base: Base::new(settings),
            random: setup.random,
        }
    }
}

impl Dualpi2 {
    #[inline]
    fn update(&mut self, now: Time) {
        while let Some(at) = self.updates.due(now) {
            let waited = |line: &Line| line.front().map(|front| at.saturating_since(front.arrived()));
            let delay = waited(&self.low).max(waited(&self.classic)).unwrap_or_default();
            self.base.update(delay);
            if self.base.is_at_rest() {
                self.updates.skip(now);
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.low.is_empty() && self.classic.is_empty()
    }

    /// Whether a packet that is about to leave is dropped; it is marked if that is its signal (Linux: `must_drop`).
    #[inline]
    fn drops(&mut self, waiting: &mut Waiting, from_low: bool) -> bool {
        let base = self.base.probability;
        let coupled = base * self.settings.coupling;
        let overload = coupled > ONE;
        let random = &mut self.random;
        if from_low {
            if overload && self.settings.drop_on_overload == 1 && roll_squared(base, random) {
                return true;
            }
            if overload || roll(coupled, random) {
                waiting.mark();
            }
            false
        } else {
            roll_squared(base, random) && (overload || !waiting.mark())
        }
    }
}

/// True with this probability.
#[inline]
fn roll(probability: u64, random: &mut Random) -> bool {
    random.next_u64() >> 32 < probability
}

/// True with the square of this probability.
#[inline]
fn roll_squared(probability: u64, random: &mut Random) -> bool {
    roll(probability, random) && roll(probability, random)
}

impl Discipline for Dualpi2 {
    fn enqueue(&mut self, now: Time, waiting: Waiting, dropped: &mut Dropped) {
        self.update(now);
        if !self.limit.takes(self.backlog(), &waiting) {
            dropped.overflow(waiting);
        } else if matches!(waiting.ecn(), Ecn::Ect1 | Ecn::Ce) {
            self.low.push(waiting);
        } else {
            self.classic.push(waiting);
        }
    }

    fn dequeue(&mut self, now: Time, dropped: &mut Dropped) -> Option<Waiting> {
        self.update(now);
        loop {
            let both_wait = !self.low.is_empty() && !self.classic.is_empty();
            let from_low = if both_wait { self.turn.is_low() } else { !self.low.is_empty() };
            let line = if from_low { &mut self.low } else { &mut self.classic };
            let mut waiting = line.pop()?;
            if self.is_empty() {
                self.turn.restart();
            }
            if self.backlog().bytes.as_u64() >= 2 * MTU && self.drops(&mut waiting, from_low) {
                dropped.early(waiting);
                continue;
            }
            if from_low && now.saturating_since(waiting.arrived()).as_nanos() > self.settings.step_thresh_ns {
                waiting.mark();
            }
            if both_wait {
                self.turn.took(from_low, waiting.bytes());
            }
            return Some(waiting);
        }
    }

    fn backlog(&self) -> Tally {
        self.low.backlog() + self.classic.backlog()
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Room { bytes, packets: None };
    }
}

/// Whose turn it is while both queues wait: weighted round robin by bytes (Linux: `c_protection_credit`).
#[derive(Debug)]
struct Turn {
    /// What the classic queue is owed, in millionths of bytes: it is its turn above 0.
    credit: i64,
    /// Millionths.
    classic_share: i64,
    low_share: i64,
}

impl Turn {
    fn new(classic_share: i64) -> Turn {
        let mut turn = Turn { credit: 0, classic_share, low_share: 1_000_000 - classic_share };
        turn.restart();
        turn
    }

    /// The queue with the larger share begins.
    fn restart(&mut self) {
        self.credit = MTU as i64 * (self.classic_share - self.low_share);
    }

    fn is_low(&self) -> bool {
        self.credit <= 0
    }

    fn took(&mut self, from_low: bool, bytes: u32) {
        let bytes = bytes as i64;
        self.credit += if from_low { bytes * self.classic_share } else { -bytes * self.low_share };
    }
}

/// The base probability p' and its PI controller (Linux: `calculate_probability`).
#[derive(Debug)]
struct Base {
    target: Duration,
    /// In 1/256 per second.
    alpha: i128,
    beta: i128,
    /// The highest p'.
    most: u64,
    /// p', in 1/[`ONE`].
    probability: u64,
    /// At the update before.
    delay_before: Duration,
}

impl Base {
    fn new(settings: &Settings) -> Base {
        Base {
            target: Duration::from_nanos(settings.target_ns),
            alpha: settings.alpha as i128,
            beta: settings.beta as i128,
            most: if settings.drop_on_overload == 1 { ONE } else { ONE / settings.coupling },
            probability: 0,
            delay_before: Duration::ZERO,
        }
    }

    fn update(&mut self, delay: Duration) {
        let above = |other: Duration| delay.as_nanos() as i128 - other.as_nanos() as i128;
        let step = self.alpha * above(self.target) + self.beta * above(self.delay_before);
        let step = step * ONE as i128 / (256 * 1_000_000_000);
        self.probability = (self.probability as i128 + step).clamp(0, self.most as i128) as u64;
        self.delay_before = delay;
    }

    /// Whether the delay is 0, and updates change nothing as long as it is.
    fn is_at_rest(&self) -> bool {
        self.probability == 0 && self.delay_before == Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::{Link, Outcome, config, ect0, ms, setup, us};
    use super::*;
    use crate::packet::{Cause, Packet};
    use fullpipe_units::Rate;

    /// A packet of the low-latency service.
    const fn ect1(bytes: u32, flow: u32) -> Packet {
        Packet::new(bytes, flow).with_ecn(Ecn::Ect1)
    }

    /// A link of 100 Mbit/s, which sends 1250 bytes in 100 us.
    fn link(settings: &[(&str, u64)]) -> Link {
        let rate = Rate::from_bits_per_sec(100_000_000);
        Link::new(&config("dualpi2", settings), Setup { rate, ..setup() })
    }

    /// Each of these packets arrives steadily at this percentage of the link's rate, for `millis`.
    fn run(settings: &[(&str, u64)], loads: &[(Packet, u64)], millis: u64) -> Outcome {
        let mut arrivals: Vec<_> = loads
            .iter()
            .flat_map(|(packet, percent)| {
                (0..millis * percent / 10).map(move |number| (number * 10_000_000 / percent, *packet))
            })
            .collect();
        arrivals.sort_by_key(|(nanos, _)| *nanos);
        let mut link = link(settings);
        for (nanos, packet) in arrivals {
            link.arrive(Time::from_nanos(nanos), packet);
        }
        link.finish()
    }

    /// A DualPI2 whose base probability is this.
    fn at(percent: u64, settings: &[(&str, u64)]) -> Dualpi2 {
        let mut settings_of = Settings::default();
        for (name, value) in settings {
            *settings_of.value(name).expect("a setting") = *value;
        }
        let mut discipline = Dualpi2::new(&settings_of, setup());
        discipline.base.probability = ONE * percent / 100;
        discipline
    }

    /// The shares of packets that are dropped and marked.
    fn shares(discipline: &mut Dualpi2, packet: Packet) -> [f64; 2] {
        let (mut drops, mut marks) = (0.0, 0.0);
        for _ in 0..100_000 {
            let mut waiting = Waiting::new(ms(0), packet, 0);
            if discipline.drops(&mut waiting, packet.ecn == Ecn::Ect1) {
                drops += 1.0;
            } else if waiting.ecn() != packet.ecn {
                marks += 1.0;
            }
        }
        [drops / 1e5, marks / 1e5]
    }

    fn assert_near(found: [f64; 2], expected: [f64; 2]) {
        let near = found.iter().zip(expected).all(|(found, expected)| {
            // Five standard deviations of a share among 100000.
            (found - expected).abs() <= 5.0 * (expected * (1.0 - expected) / 1e5).sqrt()
        });
        assert!(near, "drops and marks {found:?}, expected {expected:?}");
    }

    /// Computed outside this crate in real numbers, from the appendix's `dualpi2_update` with alpha 41/256 and beta 819/256.
    #[test]
    fn base_probability_follows_delay_and_trend() {
        let mut base = Base::new(&Settings::default());
        let table: Vec<_> = [25, 25, 25, 25, 0, 0, 0]
            .map(|delay| {
                base.update(Duration::from_millis(delay));
                format!("{delay:>2} ms {:.4} %", base.probability as f64 / ONE as f64 * 100.0)
            })
            .into();
        assert_eq!(
            table,
            [
                "25 ms 8.1582 %", // 0.16 x 10 ms, and 3.2 x 25 ms
                "25 ms 8.3184 %",
                "25 ms 8.4785 %",
                "25 ms 8.6387 %",
                " 0 ms 0.4004 %", // 0.16 x 15 ms less, and 3.2 x 25 ms
                " 0 ms 0.1602 %",
                " 0 ms 0.0000 %",
            ]
        );
    }

    #[test]
    fn base_probability_stays_in_range() {
        let mut base = Base::new(&Settings::default());
        base.update(Duration::from_secs(4));
        assert_eq!(base.probability, ONE);
        base.update(Duration::ZERO);
        assert_eq!(base.probability, 0);
        let mut capped = at(0, &[("drop_on_overload", 0)]).base;
        capped.update(Duration::from_secs(4));
        assert_eq!(capped.probability, ONE / 2, "1 / k");
    }

    #[test]
    fn delay_is_maximum_of_both_queues() {
        for (low, classic) in [(1, 6), (6, 1)] {
            let mut discipline = at(0, &[("target", 1_000_000)]);
            let mut dropped = Dropped::default();
            discipline.dequeue(ms(0), &mut dropped);
            let mut arrive = |at, packet| {
                discipline.enqueue(ms(at), Waiting::new(ms(at), packet, 0), &mut dropped);
            };
            let both = [(low, ect1(1_250, 0)), (classic, ect0(1_250, 0))];
            both.iter().filter(|(at, _)| *at == 1).for_each(|(at, packet)| arrive(*at, *packet));
            both.iter().filter(|(at, _)| *at == 6).for_each(|(at, packet)| arrive(*at, *packet));
            // The update was due at 16 ms; the next one at 32 ms.
            discipline.update(ms(21));
            assert_eq!(discipline.base.delay_before, Duration::from_millis(15));
            discipline.update(ms(40));
            assert_eq!(discipline.base.delay_before, Duration::from_millis(31));
        }
    }

    #[test]
    fn classic_signals_square_half_l4s_marks() {
        for percent in [5, 10, 20, 40] {
            let mut discipline = at(percent, &[]);
            let base = percent as f64 / 100.0;
            assert_near(shares(&mut discipline, ect1(1_250, 0)), [0.0, 2.0 * base]);
            assert_near(shares(&mut discipline, ect0(1_250, 0)), [0.0, base * base]);
            assert_near(shares(&mut discipline, Packet::new(1_250, 0)), [base * base, 0.0]);
        }
        assert_near(shares(&mut at(20, &[("coupling_factor", 3)]), ect1(1_250, 0)), [0.0, 0.6]);
    }

    #[test]
    fn at_50_percent_classic_drops_quarter() {
        let mut limit = at(50, &[]);
        assert_near(shares(&mut limit, ect1(1_250, 0)), [0.0, 1.0]);
        assert_near(shares(&mut limit, ect0(1_250, 0)), [0.0, 0.25]);
        let mut overload = at(60, &[]);
        assert_near(shares(&mut overload, ect1(1_250, 0)), [0.36, 0.64]);
        assert_near(shares(&mut overload, ect0(1_250, 0)), [0.36, 0.0]);
        assert_near(shares(&mut overload, Packet::new(1_250, 0)), [0.36, 0.0]);
    }

    #[test]
    fn square_law_holds_under_load() {
        // The classic queue is 11 % too long and drops that much; the other marks as if it were the cause.
        let outcome = run(&[], &[(Packet::new(1_250, 0), 100), (ect1(1_250, 1), 10)], 20_000);
        let after = |at: Time| at >= ms(5_000);
        let dropped = outcome.lost.iter().filter(|lost| after(lost.at)).count() as f64;
        let sent = |flow| outcome.sent.iter().filter(move |sent| after(sent.at) && sent.packet.class == flow);
        let drops = dropped / (dropped + sent(0).count() as f64);
        let marks = sent(1).filter(|sent| sent.is_marked()).count() as f64 / sent(1).count() as f64;
        assert!((0.09..0.11).contains(&drops), "{drops}, expected 0.1");
        assert!((marks - 2.0 * drops.sqrt()).abs() < 0.02, "{marks} marked with {drops} dropped");
        assert!(outcome.lost.iter().all(|lost| lost.cause == Cause::Early && lost.packet.class == 0));
    }

    #[test]
    fn l4s_waits_little_under_classic_overload() {
        let outcome = run(&[], &[(Packet::new(1_250, 0), 120), (ect1(1_250, 1), 20)], 5_000);
        let sojourns = |flow| {
            outcome.sent.iter().filter(move |sent| sent.packet.class == flow).map(|sent| sent.sojourn())
        };
        // The packet that is being sent, and one that the classic queue is owed.
        let longest = sojourns(1).max().expect("some");
        assert!(longest <= Duration::from_micros(200), "{longest}");
        let classic = sojourns(0).skip(20_000);
        let (count, sum) =
            classic.fold((0, 0), |(count, sum), sojourn| (count + 1, sum + sojourn.as_micros()));
        assert!((10_000..20_000).contains(&(sum / count)), "{} us, expected 15 ms", sum / count);
    }

    #[test]
    fn classic_delay_settles_at_target() {
        for target in [15_000_000, 40_000_000] {
            let outcome = run(&[("target", target)], &[(Packet::new(1_250, 0), 110)], 20_000);
            let late: Vec<_> = outcome.sent.iter().filter(|sent| sent.at >= ms(5_000)).collect();
            let mean = late.iter().map(|sent| sent.sojourn().as_nanos()).sum::<u64>() / late.len() as u64;
            assert!((mean as f64 / target as f64 - 1.0).abs() < 0.1, "{mean} ns, expected {target}");
        }
    }

    #[test]
    fn neither_queue_starves() {
        let both = [(Packet::new(1_250, 0), 200), (ect1(1_250, 1), 200)];
        let share = |settings: &[(&str, u64)]| {
            let mut link = link(settings);
            // Both always wait; nothing is dropped: the target is never reached.
            for packet in [both[0].0, both[1].0] {
                link.arrive_steadily(ms(0), 10_000, Duration::ZERO, packet);
            }
            link.run_until(ms(500));
            let classic = link.so_far().bytes_of(0) as f64;
            classic / (classic + link.so_far().bytes_of(1) as f64)
        };
        let calm = ("target", 4_000_000_000);
        assert!((share(&[calm]) - 0.1).abs() < 0.002);
        assert!((share(&[calm, ("classic_protection", 500_000)]) - 0.5).abs() < 0.002);
        assert!((share(&[calm, ("classic_protection", 900_000)]) - 0.9).abs() < 0.002);
        // Also under an overload that no mark and no drop slows down.
        let outcome = run(&[], &both, 2_000);
        let (classic, low) = (outcome.bytes_of(0), outcome.bytes_of(1));
        assert!(classic * 10 >= low, "{classic} of {low}");
    }

    #[test]
    fn only_contended_packets_count_for_turn() {
        let mut link = link(&[]);
        link.arrive_steadily(us(0), 50, Duration::ZERO, ect1(1_250, 0));
        link.arrive(us(2_050), Packet::new(1_250, 1));
        // 21 were alone. The classic queue begins with 0.8 packets of 1500 bytes to wait for, and earns 0.1 of 1250 with each.
        let classic = link.finish().sent.iter().position(|sent| sent.packet.class == 1);
        assert_eq!(classic, Some(21 + 10));
    }

    #[test]
    fn idle_scheduler_resets_credit() {
        let mut discipline = at(0, &[]);
        let mut dropped = Dropped::default();
        let start = discipline.turn.credit;
        assert_eq!(start, -1_200_000_000);
        for packet in [ect1(1_250, 0), Packet::new(1_250, 1)] {
            discipline.enqueue(ms(0), Waiting::new(ms(0), packet, 0), &mut dropped);
        }
        discipline.dequeue(ms(0), &mut dropped);
        assert_eq!(discipline.turn.credit, start + 125_000_000);
        discipline.dequeue(ms(1), &mut dropped);
        assert_eq!(discipline.turn.credit, start);
    }

    #[test]
    fn step_marks_longer_waits() {
        let mut link = link(&[]);
        link.arrive_steadily(ms(0), 20, Duration::ZERO, ect1(1_250, 0));
        let marked: Vec<_> = link.finish().sent.iter().map(|sent| sent.is_marked()).collect();
        // The 11th waits for ten others, 1 ms.
        assert_eq!(marked, (0..20).map(|number| number > 10).collect::<Vec<_>>());
    }

    #[test]
    fn classic_packets_know_no_step() {
        let mut link = link(&[]);
        link.arrive_steadily(ms(0), 100, Duration::ZERO, ect0(1_250, 0));
        assert_eq!(link.finish().mark_times(), []);
    }

    #[test]
    fn ect1_and_ce_overtake_the_rest() {
        let mut link = link(&[]);
        let codepoints = [Ecn::NotEct, Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce];
        for ecn in codepoints {
            link.arrive(us(0), Packet::new(1_250, 0).with_ecn(ecn));
        }
        // The first was on the wire already.
        assert_eq!(link.finish().order(), [0, 3, 4, 1, 2]);
    }

    #[test]
    fn overload_drops_early_or_at_limit() {
        let limit = Room { bytes: Bytes::new(2_500_000), packets: None };
        let lost = |settings: &[(&str, u64)]| {
            let rate = Rate::from_bits_per_sec(100_000_000);
            let mut link = Link::new(&config("dualpi2", settings), Setup { limit, rate, ..setup() });
            link.arrive_steadily(ms(0), 40_000, Duration::from_micros(50), ect1(1_250, 0));
            let lost = link.finish().lost;
            let early = lost.iter().filter(|lost| lost.cause == Cause::Early).count();
            (early, lost.len() - early)
        };
        let (early, overflow) = lost(&[]);
        assert!(early > 15_000 && overflow < 1_000, "{early} early, {overflow} for want of room");
        let (early, overflow) = lost(&[("drop_on_overload", 0)]);
        assert!(early == 0 && overflow > 15_000, "{early} early, {overflow} for want of room");
    }

    #[test]
    fn under_two_packets_signals_nothing() {
        let mut discipline = at(100, &[]);
        let mut dropped = Dropped::default();
        let lengths = [1_500, 1_500, 1_500, 1_500];
        for (place, bytes) in lengths.into_iter().enumerate() {
            discipline.enqueue(ms(1), Waiting::new(ms(1), Packet::new(bytes, 0), place as u32), &mut dropped);
        }
        // The first two leave 4500 and 3000 bytes behind.
        let sent = discipline.dequeue(ms(2), &mut dropped).map(|waiting| waiting.place);
        assert_eq!((sent, dropped.0.len()), (Some(2), 2));
    }

    #[test]
    fn pause_equals_running_timer() {
        let mut discipline = at(90, &[]);
        let mut dropped = Dropped::default();
        discipline.dequeue(ms(0), &mut dropped);
        // 41/256 x 15 ms less with each of 10 updates.
        discipline.update(ms(175));
        let expected = 0.9 - 10.0 * 41.0 / 256.0 * 0.015;
        assert!((discipline.base.probability as f64 / ONE as f64 - expected).abs() < 1e-6);
        discipline.update(ms(365 * 86_400_000));
        assert!(discipline.base.is_at_rest());
        assert_eq!(discipline.updates.due(ms(365 * 86_400_000)), None);
    }
}
