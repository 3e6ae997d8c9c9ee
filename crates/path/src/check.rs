//! Checks every number of a configuration on its own.

use crate::config::{Probability, QueueConfig, Schedule};
use crate::error::ConfigError;
use fullpipe_units::{Bytes, Duration, Rate};
use std::fmt::Display;

/// More than any link layer that carries IP adds.
const MAX_FRAME_BYTES: u32 = 64;

/// Checks the fields of one element.
pub(crate) struct Check {
    pub(crate) index: usize,
    pub(crate) kind: &'static str,
}

impl Check {
    pub(crate) fn that(
        &self,
        right: bool,
        field: &'static str,
        given: impl Display,
        expected: &'static str,
    ) -> Result<(), ConfigError> {
        if right {
            return Ok(());
        }
        Err(ConfigError { index: self.index, kind: self.kind, field, given: given.to_string(), expected })
    }

    pub(crate) fn queue(&self, limit: &QueueConfig) -> Result<(), ConfigError> {
        self.that(limit.bytes > Bytes::ZERO, "queue.bytes", limit.bytes, "room for at least one packet")?;
        self.that(limit.packets != Some(0), "queue.packets", 0, "at least 1, or no packet limit")
    }

    pub(crate) fn link_rate(&self, rate: &Schedule<Rate>) -> Result<(), ConfigError> {
        self.increasing("rate_bps", rate)?;
        let moves = rate.initial > Rate::ZERO || rate.changes.iter().any(|change| change.1 > Rate::ZERO);
        self.that(moves, "rate_bps", "0 bit/s at all times", "a rate above 0 at some time")
    }

    pub(crate) fn tokens(&self, rate: Rate, burst: Bytes) -> Result<(), ConfigError> {
        self.that(rate > Rate::ZERO, "rate_bps", rate, "a rate above 0")?;
        self.that(burst > Bytes::ZERO, "burst_bytes", burst, "room for at least one packet")
    }

    pub(crate) fn frame(&self, bytes: u32, queue: &QueueConfig) -> Result<(), ConfigError> {
        let header = "the header of a link layer, at most 64 bytes";
        self.that(bytes <= MAX_FRAME_BYTES, "frame_bytes", bytes, header)?;
        let expected = "drop-tail, where the headers of frames count";
        self.that(bytes == 0 || queue.discipline.is_fifo(), "queue.discipline", queue.discipline, expected)
    }

    pub(crate) fn radio(&self, rates: &[Rate], review: Duration) -> Result<(), ConfigError> {
        let lowest = rates.first().copied().unwrap_or(Rate::ZERO);
        self.that(lowest > Rate::ZERO, "rates_bps", lowest, "at least one rate, the lowest above 0")?;
        for pair in rates.windows(2) {
            let (before, now) = (pair[0], pair[1]);
            self.that(before < now, "rates_bps", format_args!("{now} after {before}"), "rates that rise")?;
        }
        self.that(review > Duration::ZERO, "review_ns", review, "an interval above 0")
    }

    pub(crate) fn trace(&self, millis: &[u64]) -> Result<(), ConfigError> {
        let field = "opportunities_ms";
        self.that(!millis.is_empty(), field, "empty", "at least one time")?;
        for pair in millis.windows(2) {
            let (before, now) = (pair[0], pair[1]);
            self.that(
                before <= now,
                field,
                format_args!("{now} after {before}"),
                "times that do not decrease",
            )?;
        }
        self.that(millis.last() != Some(&0), field, "0 ms long", "a last time above 0")
    }

    pub(crate) fn increasing<T>(
        &self,
        field: &'static str,
        schedule: &Schedule<T>,
    ) -> Result<(), ConfigError> {
        for pair in schedule.changes.windows(2) {
            let (before, now) = (pair[0].0, pair[1].0);
            let expected = "changes at strictly increasing times";
            self.that(before < now, field, format_args!("changed at {now} after {before}"), expected)?;
        }
        Ok(())
    }

    pub(crate) fn probability(
        &self,
        field: &'static str,
        probability: Probability,
    ) -> Result<(), ConfigError> {
        // A probability that was parsed, not computed, may be out of range.
        self.that(probability.as_f64() <= 1.0, field, probability.as_f64(), "a probability from 0 to 1")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;
    use crate::config::AdmissionUnit;
    use crate::config::{DisciplineConfig, ElementConfig};
    use crate::elements::{aggregate, duplicate, policer};
    use fullpipe_units::Time;
    use std::sync::Arc;

    const QUEUE: QueueConfig = QueueConfig::drop_tail(Bytes::new(3000), None);

    fn link(rate_bps: Schedule<Rate>, queue: QueueConfig) -> ElementConfig {
        ElementConfig::Link { name: "l".into(), rate_bps, queue }
    }

    fn trace(times: &[u64]) -> ElementConfig {
        let opportunities_ms = Arc::new(times.to_vec());
        ElementConfig::DeliveryTrace { name: "t".into(), opportunities_ms, queue: QUEUE }
    }

    fn probability(json: &str) -> Probability {
        // As serde reads it: parts of 2^32.
        let deserializer =
            serde::de::value::U64Deserializer::<serde::de::value::Error>::new(json.parse().unwrap());
        serde::Deserialize::deserialize(deserializer).unwrap()
    }

    #[test]
    fn errors_name_element_field_value_expectation() {
        let rate = Rate::from_bits_per_sec(8_000_000);
        let t = Time::from_micros;
        let zero = Schedule { initial: Rate::ZERO, changes: vec![(t(1), Rate::ZERO)] };
        let back = Schedule { initial: rate, changes: vec![(t(2), rate), (t(2), rate)] };
        let no_bytes = QueueConfig::drop_tail(Bytes::ZERO, None);
        let no_packets = QueueConfig::drop_tail(Bytes::new(1), Some(0));
        let burst = |rate_bps, burst_bytes| {
            ElementConfig::Policer(policer::Config {
                name: "p".into(),
                rate_bps,
                burst_bytes,
                unit: AdmissionUnit::Segment,
            })
        };
        let one = Bytes::new(1);
        let codel = DisciplineConfig::by_name("codel").unwrap();
        let bucket = |frame_bytes, discipline| ElementConfig::TokenBucket {
            name: "b".into(),
            rate_bps: rate,
            burst_bytes: one,
            frame_bytes,
            queue: QueueConfig { discipline, ..QUEUE },
        };
        let radio = |rates_bps, review| ElementConfig::Cellular {
            name: "c".into(),
            rates_bps,
            review_ns: Duration::from_nanos(review),
            demand_ns: Duration::ZERO,
            queue: QUEUE,
        };
        let table = [
            (
                link(Schedule::constant(Rate::ZERO), QUEUE),
                "(link): rate_bps is 0 bit/s at all times, expected a rate above 0 at some time",
            ),
            (
                link(zero, QUEUE),
                "(link): rate_bps is 0 bit/s at all times, expected a rate above 0 at some time",
            ),
            (
                link(back, QUEUE),
                "(link): rate_bps is changed at 2 us after 2 us, expected changes at strictly increasing times",
            ),
            (
                link(Schedule::constant(rate), no_bytes),
                "(link): queue.bytes is 0 B, expected room for at least one packet",
            ),
            (
                link(Schedule::constant(rate), no_packets),
                "(link): queue.packets is 0, expected at least 1, or no packet limit",
            ),
            (burst(Rate::ZERO, one), "(policer): rate_bps is 0 bit/s, expected a rate above 0"),
            (
                burst(rate, Bytes::ZERO),
                "(policer): burst_bytes is 0 B, expected room for at least one packet",
            ),
            (
                bucket(65, DisciplineConfig::FIFO),
                "(token_bucket): frame_bytes is 65, expected the header of a link layer, at most 64 bytes",
            ),
            (
                bucket(14, codel),
                "(token_bucket): queue.discipline is codel, expected drop-tail, where the headers of frames count",
            ),
            (trace(&[]), "(delivery_trace): opportunities_ms is empty, expected at least one time"),
            (trace(&[0, 0]), "(delivery_trace): opportunities_ms is 0 ms long, expected a last time above 0"),
            (
                trace(&[3, 2]),
                "(delivery_trace): opportunities_ms is 2 after 3, expected times that do not decrease",
            ),
            (
                radio(vec![], 1),
                "(cellular): rates_bps is 0 bit/s, expected at least one rate, the lowest above 0",
            ),
            (
                radio(vec![rate, rate], 1),
                "(cellular): rates_bps is 8 Mbit/s after 8 Mbit/s, expected rates that rise",
            ),
            (radio(vec![rate], 0), "(cellular): review_ns is 0 ns, expected an interval above 0"),
            (
                ElementConfig::Aggregate(aggregate::Config { every_ns: Duration::ZERO, merge: false }),
                "(aggregate): every_ns is 0 ns, expected an interval above 0",
            ),
            (
                ElementConfig::Duplicate(duplicate::Config { probability: probability("6442450944") }),
                "(duplicate): probability is 1.5, expected a probability from 0 to 1",
            ),
        ];
        let fine = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::ZERO) };
        for (wrong, message) in table {
            let error = Chain::<()>::new(&[fine.clone(), wrong], &[], 0).unwrap_err();
            assert_eq!(error.to_string(), format!("element 1 {message}"));
        }
    }
}
