//! RED, Random Early Detection: drops or marks arrivals at random while the average queue is between two thresholds, and
//! all of them above; also Adaptive RED, which keeps the average near the middle.
//!
//! Specification: Floyd and Jacobson, "Random Early Detection Gateways for Congestion Avoidance", IEEE/ACM ToN 1(4), 1993
//! (the average, and the method that spaces signals evenly). `gentle`: Floyd, "Recommendation on using the gentle variant of
//! RED", 2000. `adaptive`: Floyd, Gummadi and Shenker, "Adaptive RED", 2001. The arithmetic, the order of steps and the steps
//! of `adaptive` are those of Linux 6.12 (`net/sched/sch_red.c`, `include/net/red.h`).
//!
//! What a bare `red` means, by the rules of iproute2 (`tc/q_red.c`, after Floyd's "REDparameters"): `max` is a quarter of
//! the queue's limit, `min` a third of `max`, `burst` is (2 min + max) / (3 avpkt), and the weight of a packet in the
//! average is the largest 1/2^n with which a burst of so many packets leaves the average below `min` (as the
//! paper derives). The probability at `max` is 2 %. `tc` demands `avpkt`; 1000 bytes is what its manual calls a good
//! value. A limit in packets counts as that many packets of `avpkt` bytes. A change of the limit changes the thresholds
//! that follow from it.
//!
//! Deviations from Linux:
//! * While the queue is idle, the average decays as (1 - w)^m, where m is the number of packets of `avpkt` bytes that the
//!   link could have sent, at the rate that the discipline is built with (the highest, if it changes). Linux rounds the
//!   decay to powers of 2.
//! * The idle time begins when the queue becomes empty, as in the paper. Linux begins it when it is asked for a packet and
//!   has none; shapers (`tbf`, `htb`) never ask then, so that a RED below them never becomes idle.
//! * The probability is (average - min) max_p / (max - min) without Linux's rounding of max_p / (max - min).
//! * `gentle` does not exist in Linux; `nodrop` does not exist here.
//! * What `tc` refuses gets the nearest sense: a `max` that is not above `min` becomes `min` + 1; a burst shorter than
//!   `min` becomes 1 + `min` / `avpkt`, as `tc` suggests; with `min` up to `avpkt`, the weight is 1/2.
//! * `adaptive` does not choose `gentle`, the weight or the thresholds, which the paper does; neither does Linux.
//! * The 500 ms of `adaptive` begin with the first packet ([`Updates`]).
//! * Marking is on by default (`ecn`), as only those who ask for marks get any. In Linux it is off.

use super::updates::Updates;
use crate::discipline::{Discipline, Dropped, Line, Random, Room, Setup, Waiting};
use crate::packet::Tally;
use crate::settings::{DisciplineInfo, settings};
use fullpipe_units::{Bytes, Duration, Time};

settings! {
    /// The settings of RED. A threshold, burst or weight of 0 follows from the others.
    min as "min": Bytes = 0, 0..=MOST_BYTES, "average queue above which packets are dropped; 0 for a third of max";
    max as "max": Bytes = 0, 0..=MOST_BYTES,
        "average queue above which all packets are dropped; 0 for 3 min, or a quarter of the limit without min";
    avpkt as "avpkt": Bytes = 1_000, 1..=65_535, "average size of a packet";
    burst as "burst": Count = 0, 0..=1_000_000, "packets in a burst that has no drops; 0 for (2 min + max) / (3 avpkt)";
    ewma as "ewma": Count = 0, 0..=MOST_EWMA, "n, where a packet has the weight 1/2^n in the average; 0 to get it from burst";
    probability as "probability": Share = 20_000, 1..=1_000_000, "probability of a drop when the average is at max";
    ecn as "ecn": Switch = 1, 0..=1, "mark ECN-capable packets instead of dropping them";
    harddrop as "harddrop": Switch = 0, 0..=1, "drop ECN-capable packets, too, when the average is above max";
    adaptive as "adaptive": Switch = 0, 0..=1, "adapt the probability each 500 ms, to keep the average near the middle";
    gentle as "gentle": Switch = 0, 0..=1, "let the probability grow to 1 between max and 2 max, instead of at max";
}

pub(crate) const INFO: DisciplineInfo = DisciplineInfo {
    name: "red",
    summary: "drops or marks at random, the more the longer the queue is on average",
    source: "Floyd and Jacobson 1993; Linux 6.12 net/sched/sch_red.c",
    linux_name: Some("red"),
    settings: Settings::INFO,
};

/// The highest threshold: the average with its fraction fits 64 bits.
const MOST_BYTES: u64 = 1 << 32;
/// The smallest weight is 1/2^31, as in Linux.
const MOST_EWMA: u64 = 31;
/// The probability 1.
const ONE: u64 = 1 << 32;
/// Adaptive RED's interval.
const ADAPT_EVERY: Duration = Duration::from_millis(500);
/// Adaptive RED's bounds of the probability: it grows up to the one, and shrinks down to the other.
const MOST_ADAPTED: u64 = ONE.div_ceil(100) * 50;
const LEAST_ADAPTED: u64 = ONE.div_ceil(100);

/// RED.
#[derive(Debug)]
pub(crate) struct Red {
    settings: Settings,
    limit: Room,
    line: Line,
    thresholds: Thresholds,
    idle: IdleDecay,
    average: Average,
    /// The probability at the threshold `max`, in 1/[`ONE`].
    most: u64,
    /// Only Adaptive RED has any.
    updates: Option<Updates>,
    spacing: Spacing,
    random: Random,
}

impl Red {
    pub(crate) fn new(settings: &Settings, setup: Setup) -> Red {
        let thresholds = Thresholds::new(settings, setup.limit);
        Red {
            settings: *settings,
            limit: setup.limit,
            line: Line::default(),
            thresholds,
            idle: IdleDecay {
                packet_nanos: setup.rate.time_for(Bytes::new(settings.avpkt)).as_nanos().max(1),
            },
            average: Average { ewma: thresholds.ewma, scaled: 0, empty_since: None },
            most: ((ONE as u128 * settings.probability as u128) / 1_000_000) as u64,
            updates: (settings.adaptive == 1).then(|| Updates::new(ADAPT_EVERY)),
            spacing: Spacing::default(),
            random: setup.random,
        }
    }

    #[inline]
    fn update(&mut self, now: Time) {
        while let Some(at) = self.updates.as_mut().and_then(|updates| updates.due(now)) {
            let average = self.average.decayed(at, self.idle) >> self.average.ewma;
            self.most = adapted(self.most, average, self.thresholds);
        }
    }

    /// What is to become of a packet that arrives now (Linux: `red_action`).
    #[inline]
    fn verdict(&mut self) -> Verdict {
        let Thresholds { min, max, .. } = self.thresholds;
        let average = self.average.scaled >> self.average.ewma;
        let probability = if average < min {
            self.spacing.stop();
            return Verdict::Keep;
        } else if average < max {
            self.most * (average - min) / (max - min)
        } else if self.settings.gentle == 1 && average < 2 * max {
            self.most + ((ONE - self.most) as u128 * (average - max) as u128 / max as u128) as u64
        } else {
            self.spacing.stop();
            return Verdict::Full;
        };
        if self.spacing.signals(probability, &mut self.random) { Verdict::Signal } else { Verdict::Keep }
    }
}

/// What is to become of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Keep,
    Signal,
    /// The average is above `max`.
    Full,
}

impl Discipline for Red {
    fn enqueue(&mut self, now: Time, mut waiting: Waiting, dropped: &mut Dropped) {
        self.update(now);
        let backlog = self.line.backlog();
        self.average.on_arrival(now, backlog.bytes, self.idle);
        let drops = match self.verdict() {
            Verdict::Keep => false,
            Verdict::Signal => self.settings.ecn == 0 || !waiting.mark(),
            Verdict::Full => self.settings.harddrop == 1 || self.settings.ecn == 0 || !waiting.mark(),
        };
        let fits = self.limit.takes(backlog, &waiting);
        if drops {
            dropped.early(waiting);
        } else if fits {
            self.line.push(waiting);
        } else {
            dropped.overflow(waiting);
        }
        if self.line.is_empty() {
            self.average.on_empty(now);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut Dropped) -> Option<Waiting> {
        self.update(now);
        let waiting = self.line.pop();
        if self.line.is_empty() {
            self.average.on_empty(now);
        }
        waiting
    }

    fn backlog(&self) -> Tally {
        self.line.backlog()
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Room { bytes, packets: None };
        self.thresholds = Thresholds::new(&self.settings, self.limit);
        self.average.set_ewma(self.thresholds.ewma);
    }
}

impl Settings {
    /// Thresholds between which there is nothing.
    pub(crate) fn conflict(&self) -> Option<(&'static str, &'static str)> {
        let both = self.min > 0 && self.max > 0;
        (both && self.min >= self.max).then_some(("min", "min below max"))
    }
}

/// Where the average counts, and how it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thresholds {
    /// Bytes.
    min: u64,
    /// Bytes, above `min`.
    max: u64,
    /// A packet has the weight 1/2^`ewma` in the average.
    ewma: u32,
}

impl Thresholds {
    fn new(settings: &Settings, limit: Room) -> Thresholds {
        let packets = limit.packets.map_or(u64::MAX, |packets| packets as u64 * settings.avpkt);
        let limit = limit.bytes.as_u64().min(packets).min(MOST_BYTES);
        let max = match (settings.max, settings.min) {
            (0, 0) => limit / 4,
            (0, min) => (3 * min).min(MOST_BYTES),
            (max, _) => max,
        };
        let min = if settings.min == 0 { max / 3 } else { settings.min };
        let max = max.max(min + 1);
        let ewma = if settings.ewma == 0 { ewma_for(settings, min, max) } else { settings.ewma as u32 };
        Thresholds { min, max, ewma }
    }
}

/// The largest weight, as n of 1/2^n, with which a burst of `burst` packets that meets an empty queue leaves the average below
/// `min`: burst + 1 - min / avpkt <= (1 - (1 - w)^burst) / w (iproute2: `tc_red_eval_ewma`; the paper's equation 3 has the
/// exponent burst + 1).
fn ewma_for(settings: &Settings, min: u64, max: u64) -> u32 {
    let avpkt = settings.avpkt;
    let burst = if settings.burst == 0 { (2 * min + max) / (3 * avpkt) } else { settings.burst };
    let burst = if burst * avpkt < min { 1 + min / avpkt } else { burst };
    let excess = burst as f64 + 1.0 - min as f64 / avpkt as f64;
    let suffices = |n: &u32| {
        let weight = 1.0 / (1u64 << n) as f64;
        excess <= (1.0 - power(1.0 - weight, burst)) / weight
    };
    // One packet is a burst above a lower `min`, whatever its weight.
    if min <= avpkt { 1 } else { (1..MOST_EWMA as u32).find(suffices).unwrap_or(MOST_EWMA as u32) }
}

/// `base` to the power of `exponent`, by multiplications only, whose results are the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

/// How the average falls while nothing arrives at an empty queue.
#[derive(Clone, Copy, Debug)]
struct IdleDecay {
    /// How long the link needs for a packet of average size.
    packet_nanos: u64,
}

impl IdleDecay {
    /// What remains of the average: (1 - w)^m, with a straight line between whole numbers of packets.
    fn remainder(self, idle: Duration, ewma: u32) -> f64 {
        let weight = 1.0 / (1u64 << ewma) as f64;
        let (packets, rest) = (idle.as_nanos() / self.packet_nanos, idle.as_nanos() % self.packet_nanos);
        power(1.0 - weight, packets) * (1.0 - weight * (rest as f64 / self.packet_nanos as f64))
    }
}

/// The moving average of the queue in bytes, taken with each arrival.
#[derive(Debug)]
struct Average {
    ewma: u32,
    /// In 1/2^`ewma` bytes.
    scaled: u64,
    /// Since when nothing waits, if so.
    empty_since: Option<Time>,
}

impl Average {
    /// A packet arrives and finds `backlog`.
    #[inline]
    fn on_arrival(&mut self, now: Time, backlog: Bytes, idle: IdleDecay) {
        self.scaled = if self.empty_since.is_some() {
            self.decayed(now, idle)
        } else {
            self.scaled - (self.scaled >> self.ewma) + backlog.as_u64().min(MOST_BYTES)
        };
        self.empty_since = None;
    }

    /// Nothing waits.
    #[inline]
    fn on_empty(&mut self, now: Time) {
        self.empty_since.get_or_insert(now);
    }

    /// The average at a time when nothing arrives.
    fn decayed(&self, now: Time, idle: IdleDecay) -> u64 {
        self.empty_since.map_or(self.scaled, |since| {
            let remainder = idle.remainder(now.saturating_since(since), self.ewma);
            (self.scaled as f64 * remainder) as u64
        })
    }

    fn set_ewma(&mut self, ewma: u32) {
        self.scaled = self.scaled >> self.ewma << ewma;
        self.ewma = ewma;
    }
}

/// Spaces signals evenly: 1 to 1 / probability packets apart, each distance as likely as another (method 2 of the paper).
#[derive(Debug, Default)]
struct Spacing {
    /// Packets since the last signal, and the random number to reach: `None` while the average is outside the thresholds.
    run: Option<(u64, u64)>,
}

impl Spacing {
    #[inline]
    fn stop(&mut self) {
        self.run = None;
    }

    /// Whether this packet is to be dropped or marked.
    #[inline]
    fn signals(&mut self, probability: u64, random: &mut Random) -> bool {
        let mut draw = || random.next_u64() >> 32;
        match &mut self.run {
            None => {
                self.run = Some((0, draw()));
                false
            }
            Some((count, goal)) => {
                *count += 1;
                let signals = count.saturating_mul(probability) >= *goal;
                if signals {
                    (*count, *goal) = (0, draw());
                }
                signals
            }
        }
    }
}

/// The probability at `max`, adapted once to an `average` in bytes (Linux: `red_adaptative_algo`): up by at most 1 %, down
/// by a tenth.
fn adapted(most: u64, average: u64, thresholds: Thresholds) -> u64 {
    let fifth = (thresholds.max - thresholds.min) / 5;
    let (low, high) = (thresholds.min + 2 * fifth, thresholds.min + 3 * fifth);
    if average > high && most <= MOST_ADAPTED {
        most + (most / 4).min(LEAST_ADAPTED)
    } else if average < low && most >= LEAST_ADAPTED {
        most / 10 * 9
    } else {
        most
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::{Link, Outcome, config, ect0, ms, setup, us};
    use super::*;
    use crate::packet::{Cause, Ecn, Packet};

    fn with(change: impl FnOnce(&mut Settings)) -> Settings {
        let mut settings = Settings::default();
        change(&mut settings);
        settings
    }

    fn limited(bytes: u64) -> Setup {
        Setup { limit: Room { bytes: Bytes::new(bytes), packets: None }, ..setup() }
    }

    /// A RED with min 10 kB, max 20 kB and this average.
    fn at_average(bytes: u64, change: impl FnOnce(&mut Settings)) -> Red {
        let mut red = Red::new(&with(change), limited(80_000));
        (red.thresholds.min, red.thresholds.max) = (10_000, 20_000);
        red.average.scaled = bytes << red.average.ewma;
        red
    }

    /// Packets of 1250 bytes at `percent` of the 10 Mbit/s of the link, for `seconds`.
    fn load(settings: &[(&str, u64)], limit: u64, packet: Packet, percent: u64, seconds: u64) -> Outcome {
        let mut link = Link::new(&config("red", settings), limited(limit));
        let every = Duration::from_nanos(100_000_000 / percent);
        link.arrive_steadily(ms(0), seconds * 10 * percent, every, packet);
        link.finish()
    }

    fn thresholds(settings: Settings, bytes: u64, packets: Option<u32>) -> (u64, u64, u32) {
        let Thresholds { min, max, ewma } =
            Thresholds::new(&settings, Room { bytes: Bytes::new(bytes), packets });
        (min, max, ewma)
    }

    #[test]
    fn default_red_follows_from_limit() {
        // burst = (2 * 10 + 30) / 3 = 16: 16 + 1 - 10 = 7 <= (1 - (7/8)^16) * 8 = 7.06.
        assert_eq!(thresholds(with(|_| ()), 120_000, None), (10_000, 30_000, 3));
        assert_eq!(
            thresholds(with(|_| ()), 1 << 40, Some(120)),
            (10_000, 30_000, 3),
            "packets of 1000 bytes"
        );
        assert_eq!(thresholds(with(|s| s.max = 30_000), 1 << 40, None), (10_000, 30_000, 3));
        assert_eq!(thresholds(with(|s| s.min = 10_000), 1 << 40, None), (10_000, 30_000, 3));
        assert_eq!(thresholds(with(|s| s.ewma = 9), 120_000, None), (10_000, 30_000, 9));
        // 41 <= (1 - (127/128)^50) * 128 = 41.5, and not for 64.
        assert_eq!(thresholds(with(|s| s.burst = 50), 120_000, None), (10_000, 30_000, 7));
    }

    #[test]
    fn nonsensical_settings_become_nearest_valid() {
        assert_eq!(thresholds(with(|s| (s.min, s.max) = (9_000, 100)), 1 << 40, None), (9_000, 9_001, 1));
        assert_eq!(thresholds(with(|s| (s.min, s.burst) = (9_000, 1)), 1 << 40, None), (9_000, 27_000, 2));
        assert_eq!(thresholds(with(|s| (s.min, s.burst) = (9_000, 10)), 1 << 40, None), (9_000, 27_000, 2));
        assert_eq!(thresholds(with(|_| ()), 12_000, None), (1_000, 3_000, 1));
        assert_eq!(thresholds(with(|_| ()), 0, None), (0, 1, 1));
        let (min, max, _) = thresholds(with(|_| ()), u64::MAX, None);
        assert_eq!((min, max), (MOST_BYTES / 12, MOST_BYTES / 4));
    }

    /// iproute2's `tc_red_eval_ewma(32000, burst, 1000)`, computed outside this crate.
    #[test]
    fn longer_bursts_get_smaller_weights() {
        let n = |burst| ewma_for(&with(|s| s.burst = burst), 32_000, 96_000);
        let table = [32, 33, 35, 39, 46, 57, 75, 101, 135, 190].map(n);
        assert_eq!(table, [1, 2, 3, 4, 4, 5, 6, 7, 8, 10]);
    }

    #[test]
    fn average_weights_each_arrival() {
        let mut average = Average { ewma: 2, scaled: 0, empty_since: None };
        let idle = IdleDecay { packet_nanos: 1_000_000 };
        let quarters = [0, 1_000, 2_000, 3_000, 0].map(|backlog| {
            average.on_arrival(ms(1), Bytes::new(backlog), idle);
            average.scaled
        });
        // 0, 250, 687.5, 1265.75, 949.5; exactly, the fourth is 1265.625.
        assert_eq!(quarters, [0, 1_000, 2_750, 5_063, 3_798]);
    }

    #[test]
    fn idle_average_decays_by_small_packets() {
        let idle = IdleDecay { packet_nanos: 1_000_000 };
        let after = |micros: u64| {
            let mut average = Average { ewma: 2, scaled: 4 * 10_000, empty_since: Some(ms(5)) };
            average.on_arrival(us(5_000 + micros), Bytes::ZERO, idle);
            assert_eq!(average.empty_since, None);
            average.scaled / 4
        };
        // 3/4 for each packet of 1 ms; half a packet counts half.
        assert_eq!(
            [0, 500, 1_000, 2_000, 2_500, 3_000].map(after),
            [10_000, 8_750, 7_500, 5_625, 4_921, 4_218]
        );
        assert_eq!(after(1_000_000), 0);
    }

    #[test]
    fn idle_starts_when_queue_empties() {
        let mut red = Red::new(&with(|s| s.ewma = 2), limited(1_200_000));
        let packet = |number| Waiting::new(ms(0), Packet::new(1_250, 0), number);
        let mut dropped = Dropped::default();
        red.enqueue(ms(0), packet(0), &mut dropped);
        red.enqueue(ms(0), packet(1), &mut dropped);
        assert_eq!(red.average.empty_since, None);
        red.dequeue(ms(1), &mut dropped);
        assert_eq!(red.average.empty_since, None);
        red.dequeue(ms(2), &mut dropped);
        assert_eq!(red.dequeue(ms(3), &mut dropped), None);
        assert_eq!(red.average.empty_since, Some(ms(2)));
    }

    #[test]
    fn drop_from_empty_queue_stays_idle() {
        let mut red = at_average(30_000, |_| ());
        red.enqueue(ms(7), Waiting::new(ms(7), Packet::new(1_250, 0), 0), &mut Dropped::default());
        assert_eq!(red.average.empty_since, Some(ms(7)));
    }

    #[test]
    fn average_handles_longest_backlog() {
        let mut average = Average { ewma: MOST_EWMA as u32, scaled: 0, empty_since: None };
        let idle = IdleDecay { packet_nanos: 1 };
        average.scaled = (MOST_BYTES - 1) << average.ewma;
        (0..100).for_each(|_| average.on_arrival(ms(0), Bytes::MAX, idle));
        assert_eq!(average.scaled >> average.ewma, MOST_BYTES - 1);
    }

    #[test]
    fn outside_thresholds_spacing_restarts() {
        let mut red = at_average(15_000, |_| ());
        for outside in [9_999, 20_000] {
            red.average.scaled = 15_000 << red.average.ewma;
            red.verdict();
            assert!(red.spacing.run.is_some());
            red.average.scaled = outside << red.average.ewma;
            red.verdict();
            assert_eq!(red.spacing.run, None);
        }
    }

    /// How far apart signals are, with the average at a constant value.
    fn distances(red: &mut Red, signals: usize) -> Vec<u64> {
        let mut since = 0;
        let mut found = Vec::new();
        while found.len() <= signals {
            since += 1;
            if red.verdict() == Verdict::Signal {
                found.push(since);
                since = 0;
            }
        }
        found.split_off(1)
    }

    #[test]
    fn halfway_spacing_is_1_to_100() {
        // Half of the 2 % at max: any distance up to 100 is as likely as another.
        let mut red = at_average(15_000, |_| ());
        let distances = distances(&mut red, 20_000);
        assert_eq!((distances.iter().min(), distances.iter().max()), (Some(&1), Some(&100)));
        let mean = distances.iter().sum::<u64>() as f64 / 20_000.0;
        assert!((50.0..51.0).contains(&mean), "{mean}, expected 50.5");
        let mut tenths = [0; 10];
        distances.iter().for_each(|distance| tenths[(distance - 1) as usize / 10] += 1);
        assert!(
            tenths.iter().all(|&count| (1_850..2_150).contains(&count)),
            "{tenths:?}, expected 2000 each"
        );
    }

    #[test]
    fn probability_grows_linearly_to_max() {
        let longest =
            |average| *distances(&mut at_average(average, |_| ()), 5_000).iter().max().expect("some");
        assert_eq!([11_000, 12_500, 15_000, 17_500].map(longest), [500, 200, 100, 67]);
        let mut red = at_average(9_999, |_| ());
        assert!((0..100_000).all(|_| red.verdict() == Verdict::Keep));
    }

    #[test]
    fn above_max_every_packet_is_signalled() {
        let mut red = at_average(20_000, |_| ());
        assert!((0..1_000).all(|_| red.verdict() == Verdict::Full));
    }

    #[test]
    fn gentle_grows_to_one_beyond_max() {
        // 0.02 + 0.98 / 4 = 0.265, 0.02 + 0.98 / 2 = 0.51: at most 4 and 2 packets apart.
        let longest = |average| {
            *distances(&mut at_average(average, |s| s.gentle = 1), 5_000).iter().max().expect("some")
        };
        assert_eq!([20_000, 25_000, 30_000, 39_000].map(longest), [50, 4, 2, 2]);
        assert_eq!(at_average(40_000, |s| s.gentle = 1).verdict(), Verdict::Full);
    }

    fn fate_above_max(change: impl FnOnce(&mut Settings), packet: Packet) -> (Option<Ecn>, Option<Cause>) {
        let mut red = at_average(30_000, change);
        let mut dropped = Dropped::default();
        red.enqueue(ms(1), Waiting::new(ms(1), packet, 0), &mut dropped);
        (red.line.front().map(Waiting::ecn), dropped.0.first().map(|(_, cause)| *cause))
    }

    #[test]
    fn signal_marks_ecn_capable_packet() {
        let plain = Packet::new(1_250, 0);
        assert_eq!(fate_above_max(|_| (), ect0(1_250, 0)), (Some(Ecn::Ce), None));
        assert_eq!(fate_above_max(|_| (), plain), (None, Some(Cause::Early)));
        assert_eq!(fate_above_max(|s| s.ecn = 0, ect0(1_250, 0)), (None, Some(Cause::Early)));
        assert_eq!(fate_above_max(|s| s.harddrop = 1, ect0(1_250, 0)), (None, Some(Cause::Early)));
        // A mark makes no room.
        assert_eq!(fate_above_max(|_| (), ect0(90_000, 0)), (None, Some(Cause::QueueFull)));
    }

    #[test]
    fn harddrop_leaves_marks_between_the_thresholds() {
        let marked = |change: fn(&mut Settings)| {
            let mut red = at_average(15_000, change);
            (0..1_000)
                .filter(|_| {
                    red.average.scaled = 15_000 << red.average.ewma;
                    red.line = Line::default();
                    let mut dropped = Dropped::default();
                    red.enqueue(ms(1), Waiting::new(ms(1), ect0(1_250, 0), 0), &mut dropped);
                    assert_eq!(dropped.0, []);
                    red.line.front().is_some_and(|waiting| waiting.ecn() == Ecn::Ce)
                })
                .count()
        };
        let (with, without) = (marked(|s| s.harddrop = 1), marked(|_| ()));
        assert_eq!(with, without);
        assert!((10..30).contains(&with), "{with}, expected 20");
    }

    #[test]
    fn a_changed_limit_changes_the_thresholds() {
        let mut red = Red::new(&Settings::default(), limited(120_000));
        red.average.scaled = 8_000 << 3;
        red.set_limit(Bytes::new(1_200_000));
        assert_eq!((red.thresholds.min, red.thresholds.max), (100_000, 300_000));
        assert!(red.average.ewma > 3);
        assert_eq!(red.average.scaled >> red.average.ewma, 8_000, "the average is the same");
    }

    fn adapted_at(average: u64, times: usize) -> Vec<String> {
        let thresholds = Thresholds { min: 10_000, max: 20_000, ewma: 3 };
        let mut most = ONE / 50;
        let steps = (0..times).map(|_| {
            most = adapted(most, average, thresholds);
            format!("{:.3} %", most as f64 / ONE as f64 * 100.0)
        });
        steps.collect()
    }

    #[test]
    fn adaptive_red_adjusts_outside_middle_fifth() {
        let up = ["2.500 %", "3.125 %", "3.906 %", "4.883 %", "5.883 %", "6.883 %"];
        assert_eq!(adapted_at(16_001, 6), up);
        let down = ["1.800 %", "1.620 %", "1.458 %", "1.312 %", "1.181 %", "1.063 %", "0.957 %", "0.957 %"];
        assert_eq!(adapted_at(13_999, 8), down);
        assert_eq!(adapted_at(14_000, 1), ["2.000 %"]);
        assert_eq!(adapted_at(16_000, 1), ["2.000 %"]);
        assert_eq!(adapted_at(16_001, 100).last().map(String::as_str), Some("50.883 %"));
    }

    #[test]
    fn adaptive_red_adapts_while_idle_too() {
        let mut red = at_average(19_000, |s| s.adaptive = 1);
        let mut dropped = Dropped::default();
        red.enqueue(ms(0), Waiting::new(ms(0), Packet::new(1_250, 0), 0), &mut dropped);
        red.average.scaled = 19_000 << red.average.ewma;
        red.dequeue(ms(600), &mut dropped);
        // It was above the middle at 500 ms; at 1000 ms and later, it has decayed.
        assert_eq!(red.most, ONE / 50 + ONE / 200);
        red.dequeue(ms(1_100), &mut dropped);
        assert_eq!(red.most, (ONE / 50 + ONE / 200) / 10 * 9);
        red.dequeue(ms(60_000), &mut dropped);
        assert!((LEAST_ADAPTED / 10 * 9..LEAST_ADAPTED).contains(&red.most));
    }

    /// How many bytes waited before each of the packets that were sent after 30 s, on average.
    fn mean_backlog(outcome: &Outcome) -> f64 {
        let late = outcome.sent.iter().filter(|sent| sent.at >= ms(30_000));
        let (packets, waited) =
            late.fold((0, 0), |(packets, waited), sent| (packets + 1, waited + sent.sojourn().as_nanos()));
        waited as f64 / packets as f64 * 1.25e-3
    }

    #[test]
    fn adaptive_red_keeps_queue_within_thresholds() {
        // 10 % too much: the 2 % of RED do not suffice, and its queue stays at max.
        let red = load(&[], 120_000, Packet::new(1_250, 0), 110, 60);
        assert!((29_000.0..31_500.0).contains(&mean_backlog(&red)), "{}", mean_backlog(&red));
        let adaptive = load(&[("adaptive", 1)], 120_000, Packet::new(1_250, 0), 110, 60);
        // The middle fifth is from 18 to 22 kB.
        assert!((17_000.0..23_500.0).contains(&mean_backlog(&adaptive)), "{}", mean_backlog(&adaptive));
        assert!(adaptive.lost.iter().all(|lost| lost.cause == Cause::Early));
    }

    #[test]
    fn marks_do_not_slow_unresponsive_sender() {
        let outcome = load(&[], 120_000, ect0(1_250, 0), 110, 10);
        assert!(outcome.lost.iter().all(|lost| lost.cause == Cause::QueueFull));
        let late = outcome.sent.iter().filter(|sent| sent.arrived >= ms(5_000));
        assert!(late.clone().count() > 1_000 && late.clone().all(|sent| sent.is_marked()));
    }
}
