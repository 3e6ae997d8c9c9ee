//! A policer: a token bucket without a queue. A packet that finds no tokens is dropped and takes none.
//!
//! The bucket is full at the start, as in Linux `net/sched/act_police.c` and as operators' policers behave ("An
//! Internet-Wide Analysis of Traffic Policing", SIGCOMM 2016). A packet above the burst is [`Cause::Oversize`].

use super::token_bucket::Bucket;
use crate::config::{AdmissionUnit, QueueConfig};
use crate::element::{Setup, Transit, element};
use crate::packet::{BurstFate, Cause, Fate, Moment, Packet};
use crate::queue::{Queue, QueueView};
use crate::server::{Bursts, Server};
use fullpipe_units::{Bytes, Rate, Time};

element! {
    /// A policer: packets that find no tokens are dropped.
    "policer", shown as |this| "policer {} burst {}{}", this.rate_bps, this.burst_bytes, this.unit.in_words();
    /// Name in records. Default: the kind, numbered.
    name as "name": String;
    /// Token rate.
    rate_bps as "rate": Rate;
    /// Depth of the bucket, at least one packet; full at the start.
    burst_bytes as "burst": Bytes;
    /// What it takes or drops as one. Default: segment.
    #[serde(default, skip_serializing_if = "AdmissionUnit::is_segment")]
    unit as "unit": AdmissionUnit;
    prompt |this| "{}", this.rate_bps;
    option "policer" = ["rate", "burst" = "100 KB"], Before, "20 Mbit/s, 500 KB",
        "Rate, and depth of the bucket, of a policer: what finds no tokens is dropped";
}

/// Packets pass at once, if at all: its queue is empty, and counts.
pub(crate) type Policer = Queue<Policing>;

impl Transit for Policer {
    type Config = Config;
    const TAKES_TIME: bool = false;

    fn new(config: &Config, Setup { announced, .. }: Setup) -> Policer {
        let unlimited = QueueConfig::drop_tail(Bytes::MAX, None);
        Queue::new(&config.name, unlimited, Policing::new(config.rate_bps, config.burst_bytes), announced)
    }

    fn admit(&mut self, moment: Moment, packet: &Packet) -> Fate {
        Queue::admit(self, moment, packet)
    }

    fn admit_burst(&mut self, moment: Moment, burst: &[Packet]) -> BurstFate {
        Queue::admit_burst(self, moment, burst)
    }

    fn queue(&self) -> Option<QueueView<'_>> {
        Some(QueueView::new(self))
    }
}

/// The tokens of a policer.
#[derive(Debug)]
pub(crate) struct Policing(Bucket);

impl Policing {
    fn new(rate: Rate, burst: Bytes) -> Policing {
        Policing(Bucket::new(rate, burst))
    }
}

impl Server for Policing {
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
    fn burst_passes_then_rate_applies() {
        // 8 Mbit/s is a byte a microsecond; the bucket holds two packets of 1000 bytes.
        let mut policer = Policing::new(Rate::from_bits_per_sec(8_000_000), Bytes::new(2000));
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
