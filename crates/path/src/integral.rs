//! What leaves by a time: at a rate that changes, and by a list of opportunities.

use crate::config::Schedule;
use fullpipe_units::{Bytes, Rate, Time};

/// The number of opportunities up to a millisecond; the list repeats.
pub(crate) fn opportunities_by(opportunities_ms: &[u64], milli: u64) -> u64 {
    let period = opportunities_ms.last().copied().unwrap_or(1).max(1);
    let rest = opportunities_ms.partition_point(|at| *at <= milli % period) as u64;
    (milli / period).saturating_mul(opportunities_ms.len() as u64).saturating_add(rest)
}

/// The bytes that leave at a rate that changes, by `end`.
pub(crate) fn integral(rate: &Schedule<Rate>, end: Time) -> u64 {
    let (mut from, mut current, mut sum) = (Time::ZERO, rate.initial, Bytes::ZERO);
    for (at, next) in rate.changes.iter().filter(|(at, _)| *at < end) {
        sum += current.bytes_in(at.saturating_since(from));
        (from, current) = (*at, *next);
    }
    (sum + current.bytes_in(end.saturating_since(from))).as_u64()
}
