//! A policer: a token bucket without a queue. A packet that finds no tokens is dropped and takes none.
//!
//! The bucket is full at the start, as in Linux `net/sched/act_police.c` and as operators' policers behave ("An
//! Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016). A packet above the burst is [`Cause::Oversize`].

use super::token_bucket::Bucket;
use crate::packet::Cause;
use crate::server::{Bursts, Server};
use fullpipe_units::{Bytes, Rate, Time};

/// The tokens of a policer.
#[derive(Debug)]
pub(crate) struct Policer(Bucket);

impl Policer {
    pub(crate) fn new(rate: Rate, burst: Bytes) -> Policer {
        Policer(Bucket::new(rate, burst))
    }
}

impl Server for Policer {
    type Mark = ();
    const WHOLE_BURSTS: Bursts = Bursts::Drop;

    #[inline]
    fn can_pass(&self, bytes: u32) -> bool {
        self.0.can_hold(bytes)
    }

    #[inline]
    fn offer(&mut self, now: Time, bytes: u32, _: Bytes) -> Result<Time, Cause> {
        if self.0.take(now, bytes) { Ok(now) } else { Err(Cause::Policed) }
    }

    fn mark(&self) {}

    fn unsent(&self, (): (), _: Time) -> Bytes {
        Bytes::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_burst_passes_and_then_the_rate() {
        // 8 Mbit/s is a byte a microsecond; the bucket holds two packets of 1000 bytes.
        let mut policer = Policer::new(Rate::from_bits_per_sec(8_000_000), Bytes::new(2000));
        let mut passes = |micros, bytes| policer.offer(Time::from_micros(micros), bytes, Bytes::MAX).is_ok();
        assert!(passes(0, 1000));
        assert!(passes(0, 1000));
        assert!(!passes(0, 1000));
        assert!(!passes(999, 1000)); // 999 tokens: what was refused took none
        assert!(passes(999, 999));
        assert!(!passes(1_998, 1000));
        assert!(passes(1_999, 1000));
        assert!(passes(1_000_000, 2000)); // full again, and no more than full
        assert!(!passes(1_000_000, 1));
        assert!(policer.can_pass(2000) && !policer.can_pass(2001));
    }
}
