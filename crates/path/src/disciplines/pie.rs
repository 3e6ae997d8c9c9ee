//! PIE, Proportional Integral controller Enhanced: drops arrivals with a probability that grows with the queueing delay and
//! with its trend.
//!
//! Specification: RFC 8033. Where that leaves a choice or Linux does otherwise, this follows Linux 6.12
//! (`net/sched/sch_pie.c`, `include/net/pie.h`), so that the two can be compared:
//!
//! * The delay is what the last departure waited, or 0 if it left nothing behind (section 4.3 allows both this and an
//!   estimate from the departure rate, section 5.2, which is Linux's `dq_rate_estimator` and the setting of that name).
//! * The burst allowance of 150 ms (section 4.4) shrinks with the time between departures, not with each update, and is
//!   granted again after two updates with a delay below half the target and a probability of 0.
//! * Nothing is dropped early with less than two packets of 1500 bytes in the queue, or with a delay below half the target
//!   and a probability below 20 % (section 4.1); the delay is the current one, not the one before.
//! * The derandomization (section 5.4), the steps of at most 2 % (section 5.5) and the 2 % more above 250 ms, which the
//!   RFC does not have, are Linux's.
//!
//! Deviations from Linux:
//! * The probability ends at 1, as section 4.2 asks. Linux's overflows only at 256, from which it takes long to come down.
//! * The counter of the derandomization begins again with a mark, too, as in the RFC's pseudo-code. Linux forgets this if
//!   the counter has reached 8.5, and marks all that follows.
//! * Times are in nanoseconds and departure rates in bytes per second, where Linux counts 64 ns and rounds rates below 1
//!   Mbit/s badly; `tupdate` is exact where Linux rounds it up to its clock tick (16 ms at 250 Hz).
//! * Updates begin with the first packet ([`Updates`]); Linux's first one is 500 ms after the discipline is installed.
//! * Marking is on by default (`ecn`), as only those who ask for marks get any. In Linux it is off.

use super::updates::Updates;
use crate::discipline::{Discipline, Dropped, Line, Random, Room, Setup, Waiting};
use crate::packet::Tally;
use crate::settings::{DisciplineInfo, settings};
use fullpipe_units::{Bytes, Duration, Time};

settings! {
    /// The settings of PIE; alpha and beta are counted as `tc` counts them.
    target_ns as "target": Time = 15_000_000, 1_000..=10_000_000_000, "the queueing delay that it aims at";
    tupdate_ns as "tupdate": Time = 15_000_000, 1_000_000..=10_000_000_000, "time between updates of the drop probability";
    alpha as "alpha": Count = 2, 0..=32, "how fast the probability follows the delay above the target, in 1/16 per second";
    beta as "beta": Count = 20, 0..=32, "how fast the probability follows a growing delay, in 1/16 per second";
    ecn as "ecn": Switch = 1, 0..=1, "mark ECN-capable packets instead of dropping them";
    mark_ecnth as "mark_ecnth": Share = 100_000, 0..=1_000_000, "drop ECN-capable packets, too, above this probability";
    bytemode as "bytemode": Switch = 0, 0..=1, "drop short packets less often";
    dq_rate_estimator as "dq_rate_estimator": Switch = 0, 0..=1,
        "estimate the delay from the departure rate instead of measuring it";
}

pub(crate) const INFO: DisciplineInfo = DisciplineInfo {
    name: "pie",
    summary: "drops or marks at random, the more the longer and the faster growing the delay",
    source: "RFC 8033; Linux 6.12 net/sched/sch_pie.c",
    linux_name: Some("pie"),
    settings: Settings::INFO,
};

/// The probability 1. Its 8 spare bits hold sums of probabilities.
const ONE: u64 = 1 << 56;
/// A full-size packet (Linux: the device's MTU; RFC 8033: `MEAN_PKTSIZE`).
const MTU: u64 = 1_500;
/// How long a burst may last after a quiet time (section 4.4: `MAX_BURST`).
const BURST: Duration = Duration::from_millis(150);
/// Above this delay, the probability grows by 2 % more (Linux; not in the RFC).
const LONG_DELAY: Duration = Duration::from_millis(250);
/// The departure rate is measured over this many bytes (section 5.2: `DQ_THRESHOLD`).
const RATE_BYTES: u64 = 1 << 14;

/// PIE.
#[derive(Debug)]
pub(crate) struct Pie {
    limit: Room,
    line: Line,
    updates: Updates,
    control: Control,
    random: Random,
}

impl Pie {
    pub(crate) fn new(settings: &Settings, setup: Setup) -> Pie {
        Pie {
            limit: setup.limit,
            line: Line::default(),
            updates: Updates::new(Duration::from_nanos(settings.tupdate_ns)),
            control: Control::new(settings),
            random: setup.random,
        }
    }

    #[inline]
    fn update(&mut self, now: Time) {
        while self.updates.due(now).is_some() {
            let before = self.control.state;
            self.control.update(self.line.backlog().bytes);
            if self.control.state == before {
                self.updates.skip(now);
            }
        }
    }
}

impl Discipline for Pie {
    fn enqueue(&mut self, now: Time, mut waiting: Waiting, dropped: &mut Dropped) {
        self.update(now);
        let backlog = self.line.backlog();
        if !self.limit.takes(backlog, &waiting) {
            self.control.state.sum = 0;
            dropped.overflow(waiting);
        } else if self.control.signals(backlog.bytes, waiting.bytes(), &mut self.random) {
            self.control.state.sum = 0;
            if self.control.may_mark() && waiting.mark() {
                self.line.push(waiting);
            } else {
                dropped.early(waiting);
            }
        } else {
            self.line.push(waiting);
        }
    }

    fn dequeue(&mut self, now: Time, _: &mut Dropped) -> Option<Waiting> {
        self.update(now);
        let waiting = self.line.pop()?;
        self.control.on_departure(now, &waiting, self.line.backlog().bytes);
        Some(waiting)
    }

    fn backlog(&self) -> Tally {
        self.line.backlog()
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit = Room { bytes, packets: None };
    }
}

/// The controller of the drop probability: what PIE is besides a queue.
#[derive(Debug)]
struct Control {
    target: Duration,
    /// In 1/16 of a [`ONE`] per second.
    alpha: u64,
    beta: u64,
    ecn: bool,
    /// The highest probability with which a packet is marked.
    most_marked: u64,
    bytemode: bool,
    estimates_rate: bool,
    state: State,
}

/// What changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct State {
    /// Of dropping a packet, in 1/[`ONE`].
    probability: u64,
    /// The sum of probabilities since the last signal (section 5.4: `accu_prob`).
    sum: u64,
    delay: Duration,
    /// At the update before.
    delay_before: Duration,
    /// No signals while any of it is left.
    allowance: Duration,
    /// The last departure; with an estimator, the beginning of its measurement.
    since: Option<Time>,
    /// Bytes that departed in this measurement.
    departed: Option<u64>,
    /// The average departure rate, in bytes per second; 0 before there is one.
    rate: u64,
}

impl State {
    /// At the start, and after two updates with little delay and no probability.
    fn rest(self) -> State {
        State { sum: 0, allowance: BURST, since: None, departed: None, rate: 0, ..self }
    }

    /// Counts `bytes` that depart, if a measurement of the departure rate runs; returns its duration if it ends with them
    /// (section 5.2).
    fn measure(&mut self, now: Time, bytes: u32, backlog: Bytes) -> Duration {
        let (Some(departed), Some(since)) = (self.departed, self.since) else { return Duration::ZERO };
        let departed = departed + bytes as u64;
        let elapsed = now.saturating_since(since);
        if departed < RATE_BYTES || elapsed == Duration::ZERO {
            self.departed = Some(departed);
            return Duration::ZERO;
        }
        let rate = (departed as u128 * 1_000_000_000 / elapsed.as_nanos() as u128) as u64;
        self.rate = if self.rate == 0 { rate } else { self.rate - self.rate / 8 + rate / 8 };
        // A short queue says nothing of the rate: the last one holds.
        self.departed = (backlog.as_u64() >= RATE_BYTES).then_some(0);
        self.since = Some(now);
        elapsed
    }
}

impl Control {
    fn new(settings: &Settings) -> Control {
        let start = State {
            probability: 0,
            sum: 0,
            delay: Duration::ZERO,
            delay_before: Duration::ZERO,
            allowance: BURST,
            since: None,
            departed: None,
            rate: 0,
        };
        Control {
            target: Duration::from_nanos(settings.target_ns),
            alpha: settings.alpha,
            beta: settings.beta,
            ecn: settings.ecn == 1,
            most_marked: (ONE as u128 * settings.mark_ecnth as u128 / 1_000_000) as u64,
            bytemode: settings.bytemode == 1,
            estimates_rate: settings.dq_rate_estimator == 1,
            state: start,
        }
    }

    fn half_target(&self) -> Duration {
        Duration::from_nanos(self.target.as_nanos() / 2)
    }

    /// Whether a signal may be a mark.
    fn may_mark(&self) -> bool {
        self.ecn && self.state.probability <= self.most_marked
    }

    /// Whether a packet that arrives is to be dropped or marked, with this much waiting before it
    /// (section 4.1; Linux: `pie_drop_early`).
    #[inline]
    fn signals(&mut self, backlog: Bytes, bytes: u32, random: &mut Random) -> bool {
        let state = &self.state;
        if state.allowance > Duration::ZERO
            || (state.delay < self.half_target() && state.probability < ONE / 5)
            || backlog.as_u64() < 2 * MTU
        {
            return false;
        }
        let mut probability = state.probability;
        if self.bytemode && bytes as u64 <= MTU {
            probability = bytes as u64 * (probability / MTU);
        }
        let state = &mut self.state;
        state.sum = if probability == 0 { 0 } else { state.sum + probability };
        if state.sum < ONE / 100 * 85 {
            return false;
        }
        // At 8.5, a signal is overdue.
        state.sum >= ONE / 2 * 17 || random.next_u64() >> 8 < probability
    }

    /// A packet departs and leaves `backlog` behind (Linux: `pie_process_dequeue`).
    #[inline]
    fn on_departure(&mut self, now: Time, waiting: &Waiting, backlog: Bytes) {
        let state = &mut self.state;
        let elapsed = if self.estimates_rate {
            if backlog.as_u64() >= RATE_BYTES && state.departed.is_none() {
                state.since = Some(now);
                state.departed = Some(0);
            }
            state.measure(now, waiting.bytes(), backlog)
        } else {
            state.delay = Duration::ZERO;
            if backlog > Bytes::ZERO {
                state.delay = now.saturating_since(waiting.arrived());
            }
            state.since.replace(now).map_or(Duration::ZERO, |since| now.saturating_since(since))
        };
        state.allowance = state.allowance.saturating_sub(elapsed);
    }

    /// The update that is due each `tupdate` (section 4.2; Linux: `pie_calculate_probability`).
    fn update(&mut self, backlog: Bytes) {
        let backlog = backlog.as_u64();
        let mut state = self.state;
        if self.estimates_rate {
            state.delay_before = state.delay;
            let nanos = (backlog as u128 * 1_000_000_000).checked_div(state.rate as u128).unwrap_or(0);
            state.delay = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        let (delay, before) = (state.delay, state.delay_before);
        let difference = |than: Duration| delay.as_nanos() as i128 - than.as_nanos() as i128;
        let (alpha, beta) = (self.gain(self.alpha), self.gain(self.beta));
        let mut step = alpha * difference(self.target) + beta * difference(before);
        let two_percent = ONE as i128 / 50;
        if state.probability >= ONE / 10 {
            step = step.min(two_percent);
        }
        if delay > LONG_DELAY {
            step += two_percent;
        }
        state.probability = (state.probability as i128 + step).clamp(0, ONE as i128) as u64;
        if delay == Duration::ZERO && before == Duration::ZERO && backlog == 0 {
            state.probability -= state.probability / 64;
        }
        let quiet = delay < self.half_target() && before < self.half_target() && state.probability == 0;
        if quiet && (!self.estimates_rate || state.rate > 0) {
            state = state.rest();
        }
        state.delay_before = delay;
        self.state = state;
    }

    /// `sixteenths` of [`ONE`] per second as a step for each nanosecond, less the lower the probability is: the stability
    /// of the loop demands it (section 4.2; 1/2 below 10 %, 1/8 below 1 %, to 1/2048 below 0.0001 %).
    fn gain(&self, sixteenths: u64) -> i128 {
        let mut gain = (sixteenths * (ONE / 1_000_000_000)) >> 4;
        if self.state.probability < ONE / 10 {
            gain >>= 1;
            let mut part = 100;
            while part <= 1_000_000 && self.state.probability < ONE / part {
                gain >>= 2;
                part *= 10;
            }
        }
        gain as i128
    }
}

#[cfg(test)]
mod tests {
    use super::super::harness::{Link, Outcome, config, ect0, ms, setup};
    use super::*;
    use crate::packet::{Cause, Packet};

    const NO_DELAY: Duration = Duration::ZERO;

    fn control(change: impl FnOnce(&mut Settings)) -> Control {
        let mut settings = Settings::default();
        change(&mut settings);
        Control::new(&settings)
    }

    fn percent(probability: u64) -> f64 {
        probability as f64 / ONE as f64 * 100.0
    }

    /// A controller that drops with this probability.
    fn at(percent: u64, change: impl FnOnce(&mut Settings)) -> Control {
        let mut control = control(change);
        control.state.probability = (ONE * percent).div_ceil(100);
        control.state.delay = Duration::from_millis(20);
        control.state.delay_before = Duration::from_millis(20);
        control.state.allowance = NO_DELAY;
        control
    }

    /// The probability in percent after one more update at this delay.
    fn updated(control: &mut Control, delay_millis: u64) -> f64 {
        control.state.delay = Duration::from_millis(delay_millis);
        control.update(Bytes::new(100_000));
        percent(control.state.probability)
    }

    /// Packets of 1250 bytes at `load` percent of the 10 Mbit/s of the link, for `seconds`.
    fn run(settings: &[(&str, u64)], packet: Packet, load: u64, seconds: u64) -> Outcome {
        let mut link = Link::new(&config("pie", settings), setup());
        link.arrive_steadily(ms(0), seconds * 10 * load, Duration::from_nanos(100_000_000 / load), packet);
        link.finish()
    }

    /// Computed outside this crate in real numbers, from section 4.2: while the delay is 30 ms, 15 ms above the target, each
    /// update adds 0.125 Hz x 15 ms = 0.1875 %, scaled down by the table; the first also adds 1.25 Hz x 30 ms.
    #[test]
    fn gains_scale_with_probability() {
        let mut control = control(|_| ());
        let mut table = vec![(0, 0.0)];
        table.extend((1..=180).map(|number| (number, updated(&mut control, 30))));
        let mut lines = Vec::new();
        for number in [1, 2, 8, 24, 63, 159, 180] {
            let (before, after) = (table[number - 1].1, table[number].1);
            lines.push(format!("{number:>4} {:.5} {after:.5}", after - before));
        }
        assert_eq!(
            lines,
            [
                "   1 0.00192 0.00192",  // 1/2048 of 3.9375 %
                "   2 0.00146 0.00339",  // 1/128 of 0.1875 %
                "   8 0.00586 0.01657",  // 1/32
                "  24 0.02344 0.12790",  // 1/8, above 0.1 %
                "  63 0.09375 1.11227",  // 1/2, above 1 %
                " 159 0.18750 10.20602", // all, above 10 %
                " 180 0.18750 14.14352",
            ]
        );
    }

    #[test]
    fn smallest_probabilities_have_smallest_gains() {
        // 0.125 Hz x 15 ms at 0.00005 % and at 0.0005 %.
        for (start, divisor) in [(ONE / 2_000_000, 2_048.0), (ONE / 200_000, 512.0)] {
            let mut control = at(0, |_| ());
            control.state.probability = start;
            control.state.delay_before = Duration::from_millis(30);
            let step = updated(&mut control, 30) - percent(start);
            assert!((step * divisor - 0.1875).abs() < 1e-3, "{step} at {}", percent(start));
        }
    }

    #[test]
    fn upward_steps_are_capped() {
        let mut control = at(20, |_| ());
        assert!((updated(&mut control, 250) - 22.0).abs() < 1e-9);
        assert!((updated(&mut control, 500) - 26.0).abs() < 1e-9);
        let last = (0..40).map(|_| updated(&mut control, 10_000)).last();
        assert_eq!(last, Some(100.0));
        assert_eq!(control.state.probability, ONE, "no more than 1");
        assert!((updated(&mut at(10, |_| ()), 240) - 12.0).abs() < 1e-9);
        // Below 10 % a step is not bounded: half of 0.125 x 0.225 + 1.25 x 0.22.
        assert!((updated(&mut at(5, |_| ()), 240) - 5.0 - 15.15625).abs() < 1e-4);
    }

    #[test]
    fn without_delay_probability_decays_further() {
        let mut control = at(50, |_| ());
        (control.state.delay, control.state.delay_before) = (NO_DELAY, NO_DELAY);
        control.update(Bytes::ZERO);
        // 0.125 x 15 ms less, and 1/64 of what remains.
        assert!((percent(control.state.probability) - (50.0 - 0.1875) * 63.0 / 64.0).abs() < 1e-6);
        let mut waiting = at(50, |_| ());
        (waiting.state.delay, waiting.state.delay_before) = (NO_DELAY, NO_DELAY);
        waiting.update(Bytes::new(1));
        assert!((percent(waiting.state.probability) - (50.0 - 0.1875)).abs() < 1e-6);
    }

    #[test]
    fn quiet_time_restores_allowance() {
        let mut control = at(0, |_| ());
        updated(&mut control, 7);
        assert_eq!(control.state.allowance, NO_DELAY, "the delay was above half the target before");
        updated(&mut control, 7);
        assert_eq!(control.state.allowance, BURST);
        control.state.allowance = NO_DELAY;
        updated(&mut control, 8);
        assert_eq!(control.state.allowance, NO_DELAY);
    }

    #[test]
    fn a_quiet_time_ends_all_measurements() {
        let mut control = at(0, |s| s.dq_rate_estimator = 1);
        (control.state.delay, control.state.delay_before) = (NO_DELAY, NO_DELAY);
        (control.state.sum, control.state.since, control.state.departed) = (7, Some(ms(1)), Some(7));
        control.update(Bytes::ZERO);
        assert_eq!(control.state.sum, 7, "no rate was measured yet");
        control.state.rate = 1_250_000;
        control.update(Bytes::ZERO);
        assert_eq!(control.state, control.state.rest());
        assert_eq!((control.state.sum, control.state.since, control.state.departed), (0, None, None));
        assert_eq!((control.state.rate, control.state.allowance), (0, BURST));
    }

    #[test]
    fn burst_within_allowance_is_kept() {
        // Twice the link's rate: at 150 ms, 75 ms of queue.
        let outcome = run(&[], Packet::new(1_250, 0), 200, 1);
        let first = outcome.lost.first().expect("an overload is dropped").at;
        assert!((ms(151)..ms(300)).contains(&first), "{first}");
        // After 10 quiet seconds, the next burst has an allowance again.
        let mut link = Link::new(&config("pie", &[]), setup());
        for start in [0, 11_000] {
            link.arrive_steadily(ms(start), 2_000, Duration::from_micros(500), Packet::new(1_250, 0));
        }
        let drops = link.finish().drop_times();
        let (early, late): (Vec<Time>, Vec<Time>) = drops.into_iter().partition(|at| *at < ms(11_000));
        assert!(early.len() > 100 && late.len() > 100);
        assert!(late[0] >= ms(11_151), "{}", late[0]);
    }

    #[test]
    fn signal_spacing_is_bounded() {
        // At 10 %, the sum reaches 0.85 with the 9th packet, and 8.5 with the 85th; from the 9th on, each is dropped with 10 %:
        // 8 + 10 packets on average.
        let (mut control, mut random) = (at(10, |_| ()), setup().random);
        let mut distances = Vec::new();
        for _ in 0..20_000 {
            let mut distance = 1;
            while !control.signals(Bytes::new(100_000), 1_250, &mut random) {
                distance += 1;
            }
            control.state.sum = 0;
            distances.push(distance);
        }
        assert_eq!((distances.iter().min(), distances.iter().max()), (Some(&9), Some(&85)));
        let mean = distances.iter().sum::<i32>() as f64 / 20_000.0;
        assert!((17.7..18.3).contains(&mean), "{mean}, expected 18");
    }

    #[test]
    fn no_congestion_means_no_drops() {
        let mut random = setup().random;
        let mut signals = |control: &mut Control, backlog| {
            control.state.sum = ONE * 9;
            control.signals(Bytes::new(backlog), 1_250, &mut random)
        };
        assert!(signals(&mut at(100, |_| ()), 3_000));
        assert!(!signals(&mut at(100, |_| ()), 2_999), "less than two packets wait");
        let mut short = at(19, |_| ());
        short.state.delay = Duration::from_micros(7_499);
        assert!(!signals(&mut short, 100_000), "less than half the target and 20 %");
        short.state.probability = ONE / 5;
        assert!(signals(&mut short, 100_000));
        let mut burst = at(100, |_| ());
        burst.state.allowance = Duration::from_nanos(1);
        assert!(!signals(&mut burst, 100_000), "a burst is allowed");
    }

    #[test]
    fn byte_mode_discounts_short_packets() {
        let sum_after = |bytes, change: fn(&mut Settings)| {
            let mut control = at(50, change);
            control.signals(Bytes::new(100_000), bytes, &mut setup().random);
            percent(control.state.sum)
        };
        assert!((sum_after(300, |s| s.bytemode = 1) - 10.0).abs() < 1e-6);
        assert!((sum_after(1_500, |s| s.bytemode = 1) - 50.0).abs() < 1e-6);
        assert!((sum_after(9_000, |s| s.bytemode = 1) - 50.0).abs() < 1e-6, "longer ones do not count more");
        assert!((sum_after(300, |_| ()) - 50.0).abs() < 1e-6);
    }

    #[test]
    fn ecn_marks_up_to_10_percent() {
        let mut control = at(10, |_| ());
        control.state.probability = ONE / 10;
        assert!(control.may_mark());
        control.state.probability += 1;
        assert!(!control.may_mark());
        // A sixth must be dropped of this sender's packets, as marks do not slow it down.
        let outcome = run(&[], ect0(1_250, 0), 120, 20);
        let marked: Vec<_> = outcome.sent.iter().filter(|sent| sent.is_marked()).collect();
        let first_drop = outcome.lost.first().expect("above 10 %, packets are dropped");
        assert_eq!(first_drop.cause, Cause::Early);
        assert!(!marked.is_empty());
        assert!(marked.iter().all(|sent| sent.arrived < first_drop.at));
        let never = run(&[("ecn", 0)], ect0(1_250, 0), 120, 2);
        assert_eq!(never.mark_times(), []);
        assert!(!never.lost.is_empty());
        let always = run(&[("mark_ecnth", 1_000_000)], ect0(1_250, 0), 120, 2);
        assert_eq!(always.lost, []);
        assert!(!always.mark_times().is_empty());
    }

    #[test]
    fn the_delay_settles_at_the_target() {
        for settings in [&[][..], &[("dq_rate_estimator", 1)], &[("target", 40_000_000)]] {
            let outcome = run(settings, Packet::new(1_250, 0), 120, 60);
            let late: Vec<_> = outcome.sent.iter().filter(|sent| sent.at >= ms(20_000)).collect();
            let mean =
                late.iter().map(|sent| sent.sojourn().as_nanos()).sum::<u64>() as f64 / late.len() as f64;
            let target = settings
                .iter()
                .find(|setting| setting.0 == "target")
                .map_or(15e6, |setting| setting.1 as f64);
            assert!((mean / target - 1.0).abs() < 0.1, "{mean} ns with {settings:?}");
            let dropped = outcome.lost.iter().filter(|lost| lost.at >= ms(20_000)).count() as f64;
            assert!((dropped / late.len() as f64 - 0.2).abs() < 0.01, "a sixth of all is too much");
        }
    }

    #[test]
    fn departure_rate_spans_16_kib() {
        let mut control = control(|s| s.dq_rate_estimator = 1);
        let rates: Vec<_> = (0..43)
            .map(|number| {
                let waiting = Waiting::new(ms(0), Packet::new(1_250, 0), number);
                control.on_departure(ms(number as u64), &waiting, Bytes::new(20_000));
                control.state.rate
            })
            .collect();
        // 14 packets make 16 KiB. The first measurement also counts the packet at its beginning: 14 in 13 ms.
        assert_eq!([rates[12], rates[13], rates[26]], [0, 1_346_153, 1_346_153]);
        // Then 14 in 14 ms, with the weight 1/8.
        assert_eq!([rates[27], rates[41]], [1_346_153 - 168_269 + 156_250, 1_334_134 - 166_766 + 156_250]);
        control.update(Bytes::new(20_000));
        assert_eq!(control.state.delay.as_micros(), 15_110, "20 kB at that rate");
        // The allowance has shrunk by the three measurements.
        assert_eq!(control.state.allowance, Duration::from_millis(150 - 13 - 14 - 14));
    }

    #[test]
    fn short_queue_keeps_departure_rate() {
        let mut control = control(|s| s.dq_rate_estimator = 1);
        let mut depart = |at: u64, backlog| {
            let waiting = Waiting::new(ms(0), Packet::new(1_250, 0), 0);
            control.on_departure(ms(at), &waiting, Bytes::new(backlog));
            control.state.rate
        };
        assert!((0..13).all(|at| depart(at, 20_000) == 0));
        let rate = depart(13, 16_000);
        assert_eq!(rate, 1_346_153);
        assert!((14..100).all(|at| depart(at * 10, 16_000) == rate));
    }

    #[test]
    fn packet_without_room_is_overflow() {
        let limit = Room { bytes: Bytes::new(12_500), packets: None };
        let mut link = Link::new(&config("pie", &[]), Setup { limit, ..setup() });
        link.arrive_steadily(ms(0), 20, NO_DELAY, Packet::new(1_250, 0));
        assert_eq!(link.backlog().bytes, limit.bytes);
        let outcome = link.finish();
        assert_eq!((outcome.sent.len(), outcome.lost.len()), (11, 9), "10 wait, 1 is being sent");
        assert!(outcome.lost.iter().all(|lost| lost.cause == Cause::QueueFull));
    }

    #[test]
    fn an_overflow_is_a_signal_too() {
        let limit = Room { bytes: Bytes::new(1_000), packets: None };
        let mut pie = Pie::new(&Settings::default(), Setup { limit, ..setup() });
        pie.control.state.sum = ONE;
        pie.enqueue(ms(0), Waiting::new(ms(0), Packet::new(1_250, 0), 0), &mut Dropped::default());
        assert_eq!(pie.control.state.sum, 0);
    }

    /// However long nothing happens, the next event finds the state that a timer would have left.
    #[test]
    fn ineffective_updates_are_skipped() {
        let mut pie = Pie::new(&Settings::default(), setup());
        let mut dropped = Dropped::default();
        pie.dequeue(ms(0), &mut dropped);
        pie.control.state.probability = ONE / 2;
        let mut slow = at(50, |_| ());
        (slow.state.delay, slow.state.delay_before) = (NO_DELAY, NO_DELAY);
        let year = 365 * 86_400_000;
        pie.dequeue(ms(year), &mut dropped);
        (0..100_000).for_each(|_| slow.update(Bytes::ZERO));
        assert_eq!(pie.control.state, slow.state);
        assert_eq!(pie.updates.due(ms(year)), None);
    }
}
