//! Changes of a path while packets cross it.
//!
//! A change has the effect that the same change in the element's [`Schedule`](crate::config::Schedule) would have had:
//! [`ElementConfig::change`] writes it there, and [`Chain::change`](crate::Chain::change) applies it to the packets that are
//! on their way. A rate holds from the very nanosecond; a delay or a loss for packets that come after it, because those
//! that came at that nanosecond have passed.

use crate::check::Check;
use crate::config::{ElementConfig, Probability};
use crate::error::ConfigError;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// What becomes of an element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Change {
    /// The rate of a link.
    Rate(Rate),
    /// The delay of a delay element.
    Delay(Duration),
    /// The probability of independent loss.
    Loss(Probability),
    /// How many bytes a queue takes, of any number of packets. What is in it stays. A schedule has no buffers, so only the chain changes.
    Buffer(Bytes),
}

impl Change {
    /// When a change made at `now` begins to hold. `passed`: what happens at `now` has happened.
    pub const fn from(&self, now: Time, passed: bool) -> Time {
        match self {
            Change::Delay(_) | Change::Loss(_) if passed => Time::from_nanos(now.as_nanos() + 1),
            _ => now,
        }
    }
}

impl ElementConfig {
    /// Writes a change that holds from `from` on into the schedule of this element, the one at `index` of its path.
    ///
    /// # Errors
    /// When this kind of element cannot change so, or not to this value; it is then as before.
    pub fn change(&mut self, index: usize, from: Time, change: Change) -> Result<(), ConfigError> {
        let check = Check { index, kind: self.kind() };
        match (self, change) {
            (ElementConfig::Link { rate_bps, .. }, Change::Rate(rate)) => {
                let mut changed = rate_bps.clone();
                changed.change(from, rate);
                check.link_rate(&changed)?;
                *rate_bps = changed;
                Ok(())
            }
            (ElementConfig::Delay { delay_ns }, Change::Delay(delay)) => {
                delay_ns.change(from, delay);
                Ok(())
            }
            (ElementConfig::Loss { probability, .. }, Change::Loss(loss)) => {
                check.probability("probability", loss)?;
                probability.change(from, loss);
                Ok(())
            }
            (
                ElementConfig::Link { .. }
                | ElementConfig::DeliveryTrace { .. }
                | ElementConfig::Cellular { .. }
                | ElementConfig::TokenBucket { .. },
                Change::Buffer(bytes),
            ) => check.that(bytes > Bytes::ZERO, "queue.bytes", bytes, "room for at least one packet"),
            (_, Change::Rate(rate)) => check.that(false, "rate_bps", rate, "a link, whose rate can change"),
            (_, Change::Delay(delay)) => {
                check.that(false, "delay_ns", delay, "a delay element, whose delay can change")
            }
            (_, Change::Loss(loss)) => check.that(
                false,
                "probability",
                loss.as_f64(),
                "a loss element, whose probability can change",
            ),
            (_, Change::Buffer(bytes)) => {
                check.that(false, "queue.bytes", bytes, "an element with a queue, whose size can change")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{QueueConfig, Schedule};

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_sec(rate * 1_000_000)
    }

    fn link() -> ElementConfig {
        let queue = QueueConfig::drop_tail(Bytes::new(3000), None);
        ElementConfig::Link { name: "l".into(), rate_bps: Schedule::constant(mbit(8)), queue }
    }

    #[test]
    fn an_element_says_what_it_cannot_change() {
        let delay = || ElementConfig::Delay { delay_ns: Schedule::constant(Duration::ZERO) };
        let loss = || ElementConfig::loss(Schedule::constant(Probability::ZERO));
        let queue = QueueConfig::drop_tail(Bytes::new(3000), None);
        let bucket = || ElementConfig::TokenBucket {
            name: "b".into(),
            rate_bps: mbit(8),
            burst_bytes: Bytes::new(3000),
            frame_bytes: 0,
            queue,
        };
        let table = [
            (
                delay(),
                Change::Rate(mbit(1)),
                "(delay): rate_bps is 1 Mbit/s, expected a link, whose rate can change",
            ),
            (
                bucket(),
                Change::Rate(mbit(1)),
                "(token_bucket): rate_bps is 1 Mbit/s, expected a link, whose rate can change",
            ),
            (
                link(),
                Change::Delay(Duration::from_millis(1)),
                "(link): delay_ns is 1 ms, expected a delay element, whose delay can change",
            ),
            (
                link(),
                Change::Loss(Probability::from_f64(0.5)),
                "(link): probability is 0.5, expected a loss element, whose probability can change",
            ),
            (
                loss(),
                Change::Buffer(Bytes::new(1)),
                "(loss): queue.bytes is 1 B, expected an element with a queue, whose size can change",
            ),
            (
                link(),
                Change::Buffer(Bytes::ZERO),
                "(link): queue.bytes is 0 B, expected room for at least one packet",
            ),
            (
                link(),
                Change::Rate(Rate::ZERO),
                "(link): rate_bps is 0 bit/s at all times, expected a rate above 0 at some time",
            ),
        ];
        for (element, change, message) in table {
            let mut changed = element.clone();
            let error = changed.change(2, Time::ZERO, change).unwrap_err();
            assert_eq!(error.to_string(), format!("element 2 {message}"));
            assert_eq!(changed, element);
        }
    }

    #[test]
    fn a_change_is_in_the_schedule_in_its_place() {
        let t = Time::from_nanos;
        let mut element = link();
        for (at, rate) in [(9, 1), (5, 2), (9, 3), (0, 4)] {
            element.change(0, t(at), Change::Rate(mbit(rate))).unwrap();
        }
        let ElementConfig::Link { rate_bps, .. } = element else { unreachable!() };
        assert_eq!(rate_bps, Schedule { initial: mbit(4), changes: vec![(t(5), mbit(2)), (t(9), mbit(3))] });
    }

    #[test]
    fn what_has_passed_at_that_nanosecond_is_not_changed() {
        let now = Time::from_nanos(7);
        let delay = Change::Delay(Duration::ZERO);
        assert_eq!((delay.from(now, false), delay.from(now, true)), (now, Time::from_nanos(8)));
        assert_eq!(Change::Rate(mbit(1)).from(now, true), now);
    }
}
