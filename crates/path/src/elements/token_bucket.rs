//! A token bucket in which packets wait for tokens, as Linux `tc-tbf` without peak rate.
//!
//! Source: Linux 6.12 `net/sched/sch_tbf.c`. `tbf_dequeue`: tokens are time at the token rate, at most `burst`; the bucket is
//! full at the start; what is at the head leaves as soon as there are tokens for all of it, a burst as one. `tbf_enqueue`: a
//! burst longer than the bucket is split (`tbf_segment`), and each of its packets is taken or dropped alone. The queue is
//! `bfifo` (`sch_fifo.c`, `bfifo_enqueue`): what it takes, as one, counts in full until it leaves. Lengths are those of
//! `qdisc_pkt_len` (`net/core/dev.c`, `qdisc_pkt_len_init`): a burst has the headers of all its packets, that of the link layer
//! included. Deviations: token arithmetic is exact (Linux rounds each packet's time to a nanosecond), timers are never late, and
//! a packet above `burst` is counted as [`Cause::Oversize`], not as a queue drop.

use super::link::{WORK_PER_BYTE, work_per_nano};
use crate::packet::Cause;
use crate::server::{Bursts, Server};
use fullpipe_units::{Bytes, Rate, Time};

/// The tokens of a bucket, in billionths of a bit: `rate` of them arrive per nanosecond.
#[derive(Clone, Debug)]
pub(crate) struct Bucket {
    rate: u64,
    depth: u128,
    tokens: u128,
    /// The time to which `tokens` refers.
    at: Time,
}

impl Bucket {
    /// A full bucket. Neither may be zero.
    pub(crate) fn new(rate: Rate, burst: Bytes) -> Bucket {
        assert!(rate > Rate::ZERO && burst > Bytes::ZERO, "a bucket without tokens");
        let depth = burst.as_u64() as u128 * WORK_PER_BYTE as u128;
        Bucket { rate: work_per_nano(rate), depth, tokens: depth, at: Time::ZERO }
    }

    /// Whether a packet could ever pass.
    #[inline]
    pub(crate) fn can_hold(&self, bytes: u32) -> bool {
        cost(bytes) <= self.depth
    }

    /// Brings the tokens up to `now`.
    #[inline]
    fn fill(&mut self, now: Time) {
        let come = now.saturating_since(self.at).as_nanos() as u128 * self.rate as u128;
        self.tokens = (self.tokens + come).min(self.depth);
        self.at = self.at.max(now);
    }

    /// Takes tokens for a packet if there are enough at `now`.
    #[inline]
    pub(crate) fn take(&mut self, now: Time, bytes: u32) -> bool {
        self.fill(now);
        let enough = self.tokens >= cost(bytes);
        if enough {
            self.tokens -= cost(bytes);
        }
        enough
    }

    /// Takes the tokens for a packet at the first whole nanosecond from `now` on at which there are enough, and returns
    /// that time. Times never go back: packets leave in order.
    #[inline]
    pub(crate) fn wait(&mut self, now: Time, bytes: u32) -> Time {
        debug_assert!(self.can_hold(bytes));
        self.fill(now);
        let missing = cost(bytes).saturating_sub(self.tokens);
        if missing > 0 {
            // Up to a nanosecond's tokens are left over and kept.
            let nanos = missing.div_ceil(self.rate as u128);
            self.tokens += nanos * self.rate as u128;
            let at = self.at.as_nanos() as u128 + nanos;
            self.at = u64::try_from(at).map_or(Time::NEVER, Time::from_nanos);
        }
        self.tokens -= cost(bytes);
        self.at
    }
}

#[inline]
fn cost(bytes: u32) -> u128 {
    bytes as u128 * WORK_PER_BYTE as u128
}

/// The server of a token bucket.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    bucket: Bucket,
    /// The header of the link layer, which each packet has.
    header: u32,
}

impl Tokens {
    pub(crate) fn new(rate: Rate, burst: Bytes, header: u32) -> Tokens {
        Tokens { bucket: Bucket::new(rate, burst), header }
    }
}

impl Server for Tokens {
    type Mark = ();
    const WHOLE_PACKETS: bool = true;
    const WHOLE_BURSTS: Bursts = Bursts::Split;

    #[inline]
    fn framed(&self, bytes: u32) -> u32 {
        bytes + self.header
    }

    fn can_pass(&self, bytes: u32) -> bool {
        self.bucket.can_hold(bytes)
    }

    fn offer(&mut self, now: Time, bytes: u32, _: Bytes) -> Result<Time, Cause> {
        Ok(self.bucket.wait(now, bytes))
    }

    fn mark(&self) {}

    fn unsent(&self, (): (), _: Time) -> Bytes {
        unreachable!("a token bucket counts whole packets")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn burst_passes_then_rest_at_rate() {
        // 8 Mbit/s is a byte a microsecond; the bucket holds 3000.
        let mut bucket = Bucket::new(Rate::from_bits_per_sec(8_000_000), Bytes::new(3000));
        let departures = [0, 0, 0, 0, 9_000, 9_000, 9_000]
            .map(|micros| bucket.wait(Time::from_micros(micros), 1500).as_micros());
        assert_eq!(departures, [0, 0, 1500, 3000, 9_000, 9_000, 10_500]);
    }

    #[test]
    fn rounding_waits_loses_no_tokens() {
        // 3 Gbit/s: a byte in 2 2/3 ns. The long-run rate is exact.
        let mut bucket = Bucket::new(Rate::from_bits_per_sec(3_000_000_000), Bytes::new(1));
        let departures: Vec<u64> = (0..7).map(|_| bucket.wait(Time::ZERO, 1).as_nanos()).collect();
        assert_eq!(departures, [0, 3, 6, 8, 11, 14, 16]);
    }
}
