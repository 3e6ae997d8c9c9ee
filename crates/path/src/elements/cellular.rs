//! A cellular radio: a link whose rate follows the demand that it sees.
//!
//! `queue16`, "Mobile cellular adaptive bandwidth": cellular systems adapt a subscriber's bandwidth partly to an estimate
//! of demand that uses the queue of packets destined for the subscriber, so a sender with a very small queue gets stuck at
//! a low rate. The paper gives no algorithm; this is the simplest one with that property:
//!
//! * The base station grants one of a few rates, at first the lowest.
//! * Every review interval, counted from time zero, it looks back. If a packet found more than `demand` of work in front
//!   of it, in time, the grant goes one step up; else, if the link was idle for more than half of the interval, one down.
//! * A grant applies to later packets: a packet is sent at the rate that was granted when it arrived.
//!
//! With the last rule, the departure is known on arrival, and exact: no review changes it afterwards. The price is that a
//! grant does not speed up the queue that earned it; a real one is late too, by the time that reports and schedules take.
//!
//! A packet that finds no room is not demand, because the radio does not see it. Nothing is random.

use super::link::{WORK_PER_BYTE, work_per_nano};
use crate::packet::Cause;
use crate::server::Server;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// What a base station grants and observes. Times are nanoseconds.
#[derive(Debug)]
pub(crate) struct Grants {
    /// Work per nanosecond, rising.
    rates: Box<[u64]>,
    granted: usize,
    review: u64,
    demand: u64,
    next_review: u64,
    /// Since the last review: whether a packet found more than `demand` in front of it, and how long the link was idle
    /// before the latest packet.
    wanted: bool,
    idle: u64,
    /// Until when the link is busy: a whole nanosecond, and the work left in the next one at the granted rate.
    busy: u64,
    part: u64,
}

impl Grants {
    /// `rates` must rise from above zero, and `review` must not be zero.
    pub(crate) fn new(rates: &[Rate], review: Duration, demand: Duration) -> Grants {
        let rates: Box<[u64]> = rates.iter().copied().map(work_per_nano).collect();
        assert!(rates.first().is_some_and(|&rate| rate > 0) && rates.is_sorted(), "not the rates of a radio");
        assert!(review > Duration::ZERO, "a review interval of zero");
        Grants {
            rates,
            granted: 0,
            review: review.as_nanos(),
            demand: demand.as_nanos(),
            next_review: review.as_nanos(),
            wanted: false,
            idle: 0,
            busy: 0,
            part: 0,
        }
    }

    /// Does the reviews that are due by `now`.
    fn review_until(&mut self, now: u64) {
        while self.next_review <= now {
            self.look_back();
            // Until a packet arrives, a busy link and one that has the lowest grant keep it.
            let unchanged = if self.granted == 0 { now } else { self.busy.min(now) };
            let skipped = unchanged.saturating_sub(self.next_review) / self.review;
            self.next_review = self.next_review.saturating_add(skipped * self.review);
        }
    }

    fn look_back(&mut self) {
        let idle = self.idle + self.next_review - self.busy.max(self.start()).min(self.next_review);
        if self.wanted {
            self.grant((self.granted + 1).min(self.rates.len() - 1));
        } else if idle > self.review / 2 {
            self.grant(self.granted.saturating_sub(1));
        }
        self.wanted = false;
        self.idle = 0;
        self.next_review = self.next_review.saturating_add(self.review);
    }

    /// When the interval under review began.
    fn start(&self) -> u64 {
        self.next_review - self.review
    }

    fn grant(&mut self, granted: usize) {
        if granted != self.granted {
            self.granted = granted;
            // A fraction of a nanosecond has no meaning at another rate.
            self.busy = self.busy.saturating_add((self.part > 0) as u64);
            self.part = 0;
        }
    }
}

impl Server for Grants {
    type Mark = ();
    const WHOLE_PACKETS: bool = true;

    fn can_pass(&self, _: u32) -> bool {
        true
    }

    fn offer(&mut self, now: Time, bytes: u32, _: Bytes) -> Result<Time, Cause> {
        if now == Time::NEVER {
            return Ok(Time::NEVER);
        }
        let now = now.as_nanos();
        self.review_until(now);
        if now > self.busy {
            self.idle += now - self.busy.max(self.start());
            (self.busy, self.part) = (now, 0);
        }
        self.wanted |= self.busy - now > self.demand;
        let (work, rate) = (self.part + bytes as u64 * WORK_PER_BYTE, self.rates[self.granted]);
        self.busy = self.busy.saturating_add(work / rate);
        self.part = work % rate;
        Ok(Time::from_nanos(self.busy.saturating_add((self.part > 0) as u64)))
    }

    fn mark(&self) {}

    fn unsent(&self, (): (), _: Time) -> Bytes {
        unreachable!("a radio counts whole packets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: Bytes = Bytes::MAX;

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_sec(rate * 1_000_000)
    }

    /// A byte a microsecond, or two, or four; reviewed every 10 ms; 3 ms of waiting are demand.
    fn radio() -> Grants {
        let rates = [mbit(8), mbit(16), mbit(32)];
        Grants::new(&rates, Duration::from_millis(10), Duration::from_millis(3))
    }

    fn offer(radio: &mut Grants, micros: u64, bytes: u32) -> u64 {
        radio.offer(Time::from_micros(micros), bytes, LIMIT).unwrap().as_micros()
    }

    #[test]
    fn queue_above_demand_raises_later_grant() {
        let mut radio = radio();
        assert_eq!([0; 3].map(|at| offer(&mut radio, at, 1500)), [1500, 3000, 4500]);
        // The first of these finds 3 ms, which is not above; the second 4.5 ms, which is.
        assert_eq!(offer(&mut radio, 1_500, 1500), 6_000);
        assert_eq!(offer(&mut radio, 1_500, 6_000), 12_000);
        assert_eq!(offer(&mut radio, 9_999, 1_500), 13_500);
        // The review at 10 ms: two bytes a microsecond, behind what was let in before.
        assert_eq!(offer(&mut radio, 10_000, 1_500), 14_250);
    }

    #[test]
    fn queue_at_demand_keeps_grant() {
        let mut radio = radio();
        assert_eq!([0; 2].map(|at| offer(&mut radio, at, 1500)), [1500, 3000]);
        for number in 0..1_000 {
            // Each finds exactly 3 ms.
            assert_eq!(offer(&mut radio, number * 1_500, 1500), number * 1_500 + 4_500);
        }
    }

    #[test]
    fn mostly_idle_link_falls_one_step() {
        let grants = |at| {
            let mut radio = radio();
            radio.granted = 2;
            // Busy for 5 ms of the first interval at four bytes a microsecond.
            offer(&mut radio, 2_000, 20_000 + (at > 100_000) as u32);
            offer(&mut radio, at, 1);
            radio.granted
        };
        assert_eq!(grants(10_000), 2, "half is not more than half");
        assert_eq!(grants(20_000), 1);
        assert_eq!(grants(29_999), 1);
        assert_eq!(grants(30_000), 0);
        assert_eq!(grants(1_000_000_000), 0);
    }

    #[test]
    fn what_never_comes_changes_nothing() {
        let mut radio = radio();
        radio.granted = 1;
        assert_eq!(radio.offer(Time::NEVER, 1500, LIMIT), Ok(Time::NEVER));
        assert_eq!((radio.granted, offer(&mut radio, 0, 1500)), (1, 750));
    }

    /// The rule as it is written: every review is held, and idleness is counted nanosecond by nanosecond.
    struct Plainly {
        rates: Vec<u128>,
        granted: usize,
        review: u64,
        demand: u64,
        /// Departures of all packets let in, as (whole nanosecond, from when).
        served: Vec<(u64, u64)>,
        arrivals_wanted: Vec<u64>,
        reviewed: u64,
    }

    impl Plainly {
        fn hold(&mut self, now: u64) {
            while self.reviewed + self.review <= now {
                let (from, to) = (self.reviewed, self.reviewed + self.review);
                let busy = |nano: u64| self.served.iter().any(|&(start, end)| start <= nano && nano < end);
                let idle = (from..to).filter(|&nano| !busy(nano)).count() as u64;
                if self.arrivals_wanted.iter().any(|&at| from <= at && at < to) {
                    self.granted = (self.granted + 1).min(self.rates.len() - 1);
                } else if idle > self.review / 2 {
                    self.granted = self.granted.saturating_sub(1);
                }
                self.reviewed = to;
            }
        }
    }

    proptest! {
        /// At rates of whole bytes a nanosecond, where nothing is rounded.
        #[test]
        fn skipping_idle_reviews_changes_nothing(
            rates in prop::collection::btree_set(1u64..5, 1..4),
            review in 1u64..40,
            demand in 0u64..40,
            arrivals in prop::collection::vec((prop_oneof![4 => 0u64..20, 1 => 0u64..300], 1u32..60), 1..40),
        ) {
            let bps: Vec<Rate> = rates.iter().map(|rate| mbit(rate * 8_000)).collect();
            let mut radio = Grants::new(&bps, Duration::from_nanos(review), Duration::from_nanos(demand));
            let rates = rates.into_iter().map(u128::from).collect();
            let mut plainly = Plainly {
                rates, granted: 0, review, demand, served: Vec::new(), arrivals_wanted: Vec::new(), reviewed: 0,
            };
            let (mut now, mut free) = (0, 0);
            for (gap, pieces) in arrivals {
                now += gap;
                plainly.hold(now);
                // A multiple of all the rates, so that every packet takes whole nanoseconds.
                let bytes = pieces * 12;
                let start = now.max(free);
                if start - now > plainly.demand {
                    plainly.arrivals_wanted.push(now);
                }
                free = start + (bytes as u128 / plainly.rates[plainly.granted]) as u64;
                plainly.served.push((start, free));
                let departure = radio.offer(Time::from_nanos(now), bytes, LIMIT).unwrap();
                prop_assert_eq!(departure, Time::from_nanos(free));
                prop_assert_eq!(radio.granted, plainly.granted);
            }
        }
    }
}
