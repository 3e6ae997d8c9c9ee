//! A link that follows a recorded list of delivery opportunities, as Mahimahi's `mm-link`.
//!
//! Source: Mahimahi `src/frontend/link_queue.cc` (`LinkQueue::rationalize`). At each listed millisecond the link may
//! send 1500 bytes: the rest of the packet in transmission first, then further packets that were queued *before* that
//! instant. Unused capacity is lost. After its last entry the trace starts again, shifted by the last entry's time.
//!
//! This is a virtual-time server in which opportunities take the place of time. Number the bytes that all opportunities
//! offer, from the start. A packet takes the next `bytes` numbers after its predecessor's, or after those that have
//! passed when it arrives; it leaves at the opportunity with its last number.
//!
//! Deviations: lengths are IP lengths (Mahimahi counts 4 more bytes a packet and offers 1504); times are nanoseconds
//! (Mahimahi rounds an arrival down to its millisecond, which decides alike); the queue limit counts the unsent part of
//! the packet in transmission, as in every queue here; packets above 1500 bytes are carried.

use crate::packet::Cause;
use crate::server::Server;
use fullpipe_units::{Bytes, Time};
use std::sync::Arc;

/// What one opportunity carries, in bytes (Mahimahi `PACKET_SIZE`, less its 4 bytes of framing).
pub const OPPORTUNITY_BYTES: u64 = 1500;

const NANOS_PER_MILLI: u64 = 1_000_000;

/// The opportunities of a trace that repeats forever.
#[derive(Clone, Debug)]
pub(crate) struct Opportunities {
    millis: Arc<Vec<u64>>,
    /// Bytes of opportunities reserved, used or passed: the earliest start of the next packet.
    taken: u64,
    /// The latest answer of `gone_by`: (millisecond, opportunities).
    latest: (u64, u64),
}

impl Opportunities {
    /// The entries must not decrease, and the last must be above zero.
    pub(crate) fn new(millis: Arc<Vec<u64>>) -> Opportunities {
        assert!(millis.last().is_some_and(|&last| last > 0) && millis.is_sorted(), "not a delivery trace");
        let mut trace = Opportunities { millis, taken: 0, latest: (0, 0) };
        trace.latest.1 = trace.count(0);
        trace
    }

    /// How long the trace is before it repeats, in milliseconds.
    fn period(&self) -> u64 {
        self.millis[self.millis.len() - 1]
    }

    /// The number of opportunities at or before a millisecond.
    fn count(&self, milli: u64) -> u64 {
        let (rounds, rest) = (milli / self.period(), milli % self.period());
        rounds.saturating_mul(self.millis.len() as u64)
            + self.millis.partition_point(|&entry| entry <= rest) as u64
    }

    /// The same, cached by millisecond, because many packets arrive in one.
    #[inline]
    fn gone_by(&mut self, now: Time) -> u64 {
        let milli = now.as_nanos() / NANOS_PER_MILLI;
        if milli != self.latest.0 {
            self.latest = (milli, self.count(milli));
        }
        self.latest.1
    }

    /// When opportunity `number` (from 0) comes.
    fn time(&self, number: u64) -> Time {
        let length = self.millis.len() as u64;
        let milli = (number / length).saturating_mul(self.period());
        let milli = milli.saturating_add(self.millis[(number % length) as usize]);
        Time::from_nanos(milli.saturating_mul(NANOS_PER_MILLI))
    }
}

impl Server for Opportunities {
    /// `taken` after the arrival.
    type Mark = u64;

    fn can_pass(&self, _: u32) -> bool {
        true
    }

    fn offer(&mut self, now: Time, bytes: u32, limit: Bytes) -> Result<Time, Cause> {
        // An opportunity at `now` itself has passed: LinkQueue uses it up before it looks at the arrival.
        let gone = self.gone_by(now).saturating_mul(OPPORTUNITY_BYTES);
        let unsent = self.taken.saturating_sub(gone);
        if unsent + bytes as u64 > limit.as_u64() {
            return Err(Cause::QueueFull);
        }
        self.taken = (gone + unsent).saturating_add(bytes as u64);
        Ok(self.time(self.taken.div_ceil(OPPORTUNITY_BYTES) - 1))
    }

    fn mark(&self) -> u64 {
        self.taken
    }

    fn unsent(&self, taken: u64, now: Time) -> Bytes {
        let gone = self.count(now.as_nanos() / NANOS_PER_MILLI).saturating_mul(OPPORTUNITY_BYTES);
        Bytes::new(taken.saturating_sub(gone))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    fn offer(trace: &mut Opportunities, nanos: u64, bytes: u32) -> u64 {
        let due = trace.offer(Time::from_nanos(nanos), bytes, Bytes::MAX).unwrap().as_nanos();
        assert_eq!(due % NANOS_PER_MILLI, 0);
        due / NANOS_PER_MILLI
    }

    const MS: u64 = NANOS_PER_MILLI;

    #[test]
    fn queued_packets_share_opportunities() {
        let mut trace = Opportunities::new(Arc::new(vec![5, 10]));
        assert_eq!(offer(&mut trace, 0, 700), 5);
        assert_eq!(offer(&mut trace, 4 * MS, 700), 5);
        assert_eq!(offer(&mut trace, 5 * MS - 1, 700), 10); // 100 bytes at 5 ms, the rest at 10 ms
        assert_eq!(offer(&mut trace, 5 * MS, 900), 10); // 600 of the 1500 bytes at 10 ms were taken
        assert_eq!(offer(&mut trace, 5 * MS, 1), 15); // the trace starts again
    }

    #[test]
    fn unused_opportunities_are_lost() {
        let mut trace = Opportunities::new(Arc::new(vec![0, 2, 2, 3]));
        assert_eq!(offer(&mut trace, 2 * MS, 1500), 3);
        assert_eq!(offer(&mut trace, 7 * MS, 4500), 9); // 8, 8, 9: the round that starts at 6
        assert_eq!(offer(&mut trace, 8 * MS, 1500), 9); // entry 0 of the round that starts at 9
    }

    /// Mahimahi's LinkQueue as it is written: it walks every opportunity up to a time.
    struct Reference {
        millis: Vec<u64>,
        next: usize,
        base: u64,
        queue: VecDeque<(usize, u64)>,
        departures: Vec<u64>,
    }

    impl Reference {
        fn rationalize(&mut self, now: u64) {
            while self.base + self.millis[self.next] <= now {
                let this = self.base + self.millis[self.next];
                self.next = (self.next + 1) % self.millis.len();
                if self.next == 0 {
                    self.base += self.millis[self.millis.len() - 1];
                }
                let mut left = OPPORTUNITY_BYTES;
                while left > 0
                    && let Some((packet, bytes)) = self.queue.front_mut()
                {
                    let sent = left.min(*bytes);
                    *bytes -= sent;
                    left -= sent;
                    if *bytes == 0 {
                        self.departures[*packet] = this;
                        self.queue.pop_front();
                    }
                }
            }
        }
    }

    proptest! {
        #[test]
        fn agrees_with_mahimahi(
            gaps in prop::collection::vec(0u64..4, 1..12),
            last in 1u64..5,
            offered in prop::collection::vec((0u64..6_000_000, 1u32..4000), 1..60),
            limit in 1500u64..20_000,
        ) {
            let mut millis: Vec<u64> = gaps.iter().scan(0, |sum, gap| { *sum += gap; Some(*sum) }).collect();
            millis.push(millis[millis.len() - 1] + last);
            let mut trace = Opportunities::new(Arc::new(millis.clone()));
            let mut reference =
                Reference { millis, next: 0, base: 0, queue: VecDeque::new(), departures: Vec::new() };
            let mut now = 0;
            let mut departures = Vec::new();
            for (gap, bytes) in offered {
                now += gap;
                reference.rationalize(now / MS);
                let unsent: u64 = reference.queue.iter().map(|packet| packet.1).sum();
                prop_assert_eq!(trace.unsent(trace.mark(), Time::from_nanos(now)), Bytes::new(unsent));
                let decided = trace.offer(Time::from_nanos(now), bytes, Bytes::new(limit));
                prop_assert_eq!(decided.is_ok(), unsent + bytes as u64 <= limit);
                if let Ok(due) = decided {
                    reference.queue.push_back((departures.len(), bytes as u64));
                    reference.departures.push(0);
                    departures.push(due.as_nanos() / MS);
                }
            }
            reference.rationalize(now / MS + 1000);
            prop_assert_eq!(reference.departures, departures);
        }
    }
}
