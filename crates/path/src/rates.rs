//! What a path could carry: for how fast an emulator has to be, and for how well a link was used.

use crate::config::{ElementConfig, Schedule};
use crate::delivery_trace::OPPORTUNITY_BYTES;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// The highest rate at which packets can leave the path; [`Rate::MAX`] if nothing limits it.
pub fn highest_rate(elements: &[ElementConfig]) -> Rate {
    elements.iter().filter_map(highest_of).min().unwrap_or(Rate::MAX)
}

fn highest_of(element: &ElementConfig) -> Option<Rate> {
    match element {
        ElementConfig::Link { rate_bps, .. } => {
            Some(rate_bps.changes.iter().map(|(_, rate)| *rate).fold(rate_bps.initial, Rate::max))
        }
        ElementConfig::TokenBucket { rate_bps, .. } | ElementConfig::Policer { rate_bps, .. } => {
            Some(*rate_bps)
        }
        ElementConfig::Cellular { rates_bps, .. } => rates_bps.last().copied(),
        ElementConfig::DeliveryTrace { opportunities_ms, .. } => {
            let bits = opportunities_ms.len() as u64 * OPPORTUNITY_BYTES * 8;
            let period_ms = opportunities_ms.last().copied().unwrap_or(1).max(1);
            Some(Rate::from_bits_per_sec(bits.saturating_mul(1000) / period_ms))
        }
        _ => None,
    }
}

/// How long the buffer takes to drain that drains soonest; [`Duration::MAX`] if there is none.
pub fn shortest_buffer(elements: &[ElementConfig]) -> Duration {
    let drain = |element: &ElementConfig| match element {
        ElementConfig::Link { queue, .. }
        | ElementConfig::DeliveryTrace { queue, .. }
        | ElementConfig::Cellular { queue, .. }
        | ElementConfig::TokenBucket { queue, .. } => Some(highest_of(element)?.time_for(queue.bytes)),
        _ => None,
    };
    elements.iter().filter_map(drain).min().unwrap_or(Duration::MAX)
}

/// For every queue of a path in order: the bytes that could have left it by `end`.
pub fn capacities(elements: &[ElementConfig], end: Time) -> Vec<Option<u64>> {
    let capacity = |element: &ElementConfig| match element {
        ElementConfig::Link { rate_bps, .. } => Some(Some(integral(rate_bps, end))),
        ElementConfig::TokenBucket { rate_bps, .. } => {
            Some(Some(rate_bps.bytes_in(end.saturating_since(Time::ZERO)).as_u64()))
        }
        ElementConfig::DeliveryTrace { opportunities_ms, .. } => {
            let period = opportunities_ms.last().copied().unwrap_or(1).max(1);
            let end_ms = Duration::from_nanos(end.as_nanos()).as_millis();
            let rest = opportunities_ms.partition_point(|at| *at <= end_ms % period) as u64;
            let opportunities = end_ms / period * opportunities_ms.len() as u64 + rest;
            Some(Some(opportunities * OPPORTUNITY_BYTES))
        }
        // What a radio could carry depends on what it was asked for.
        ElementConfig::Policer { .. } | ElementConfig::Cellular { .. } => Some(None),
        _ => None,
    };
    elements.iter().filter_map(capacity).collect()
}

fn integral(rate: &Schedule<Rate>, end: Time) -> u64 {
    let (mut from, mut current, mut sum) = (Time::ZERO, rate.initial, Bytes::ZERO);
    for (at, next) in rate.changes.iter().filter(|(at, _)| *at < end) {
        sum += current.bytes_in(at.saturating_since(from));
        (from, current) = (*at, *next);
    }
    (sum + current.bytes_in(end.saturating_since(from))).as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::QueueLimit;

    fn link(rate_bps: Schedule<Rate>) -> ElementConfig {
        ElementConfig::Link {
            name: "link".to_owned(),
            rate_bps,
            queue: QueueLimit { bytes: Bytes::new(3000), packets: None },
        }
    }

    #[test]
    fn the_slowest_element_decides_and_its_fastest_time_counts() {
        let mbit = |mbit: u64| Rate::from_bits_per_sec(mbit * 1_000_000);
        let changing =
            Schedule { initial: mbit(8), changes: vec![(Time::from_nanos(500_000_000), mbit(16))] };
        let path = [link(changing), link(Schedule::constant(mbit(100)))];
        assert_eq!(highest_rate(&path), mbit(16));
        assert_eq!(highest_rate(&[]), Rate::MAX);
        // 3000 bytes at 100 Mbit/s.
        assert_eq!(shortest_buffer(&path), Duration::from_micros(240));
        assert_eq!(shortest_buffer(&[]), Duration::MAX);
        // Half a second at 1 MB/s and half at 2 MB/s.
        assert_eq!(capacities(&path, Time::from_nanos(1_000_000_000)), [Some(1_500_000), Some(12_500_000)]);
    }
}
