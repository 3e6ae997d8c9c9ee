//! Changes of elements, written into their schedules.

use crate::change::Change;
use crate::check::Check;
use crate::config::ElementConfig;
use crate::error::ConfigError;
use fullpipe_units::{Bytes, Time};

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
    use crate::config::{Probability, QueueConfig, Schedule};
    use fullpipe_units::{Duration, Rate};

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_sec(rate * 1_000_000)
    }

    fn link() -> ElementConfig {
        let queue = QueueConfig::drop_tail(Bytes::new(3000), None);
        ElementConfig::Link { name: "l".into(), rate_bps: Schedule::constant(mbit(8)), queue }
    }

    #[test]
    fn element_reports_unsupported_changes() {
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
    fn schedule_inserts_change_in_order() {
        let t = Time::from_nanos;
        let mut element = link();
        for (at, rate) in [(9, 1), (5, 2), (9, 3), (0, 4)] {
            element.change(0, t(at), Change::Rate(mbit(rate))).unwrap();
        }
        let ElementConfig::Link { rate_bps, .. } = element else { unreachable!() };
        assert_eq!(rate_bps, Schedule { initial: mbit(4), changes: vec![(t(5), mbit(2)), (t(9), mbit(3))] });
    }
}
