//! A link: a server of known rate behind a drop-tail queue.
//!
//! Both servers here are virtual-time servers: they know until when they are busy, so a packet's departure is known when
//! it is let in, and neither a late caller nor a timer changes the rate or a drop. Work is counted in billionths of a
//! bit, of which a rate of `r` bit/s does exactly `r` per nanosecond: all sums are exact integers, and the part of a
//! nanosecond that a packet does not use is carried over to the next packet. A packet departs at the first whole nanosecond
//! at which its last bit has been sent.

use crate::config::Schedule;
use crate::packet::{Cause, Packet};
use crate::server::Server;
use fullpipe_units::{Bytes, Rate, Time};

/// Billionths of a bit in a byte. A packet of [`Packet::MAX_BYTES`] is 2^63 of them at most, so it fits 64 bits.
pub(crate) const WORK_PER_BYTE: u64 = 8_000_000_000;
const _: () = assert!(Packet::MAX_BYTES as u128 * (WORK_PER_BYTE as u128) < 1 << 63);

/// Rates above this (4.6 exabit a second) count as this: unlimited.
pub(crate) const MAX_RATE_BPS: u64 = 1 << 62;

/// A rate as work per nanosecond.
pub(crate) fn work_per_nano(rate: Rate) -> u64 {
    rate.as_bits_per_sec().min(MAX_RATE_BPS)
}

fn bytes_of(work: u128) -> Bytes {
    Bytes::new(u64::try_from(work.div_ceil(WORK_PER_BYTE as u128)).unwrap_or(u64::MAX))
}

/// A server of constant rate.
#[derive(Clone, Debug)]
pub(crate) struct ConstantRate {
    rate: u64,
    limit: Bytes,
    busy: Busy,
    /// The two latest sizes: most traffic has few, and a division costs more than everything else.
    known: [Transmission; 2],
}

/// Until when a server is busy: a whole nanosecond, and the work still to do in the one that follows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Busy {
    nanos: u64,
    part: u64,
}

/// What a link needs to know about packets of `bytes`.
#[derive(Clone, Copy, Debug)]
struct Transmission {
    bytes: u32,
    /// Whether it fits into an empty queue.
    fits: bool,
    /// How long it takes: whole nanoseconds, and part of the next one's work.
    nanos: u64,
    part: u64,
    /// The most whole nanoseconds of pending work with which it may still fit: below this it fits, above it does not, and
    /// at this value the fraction decides.
    slack_nanos: u64,
    /// That fraction, as work: the most that fits.
    slack_part: u64,
}

impl ConstantRate {
    /// `rate` must not be zero.
    pub(crate) fn new(rate: Rate, limit: Bytes) -> ConstantRate {
        let rate = work_per_nano(rate);
        assert!(rate > 0, "a link of constant rate zero");
        // Packets without bytes are never offered, so this is never found.
        let nothing =
            Transmission { bytes: 0, fits: false, nanos: 0, part: 0, slack_nanos: 0, slack_part: 0 };
        ConstantRate { rate, limit, busy: Busy { nanos: 0, part: 0 }, known: [nothing; 2] }
    }

    /// The values for packets of `bytes`, cached or computed.
    #[inline]
    fn transmission(&mut self, bytes: u32) -> Transmission {
        let mut place = (self.known[0].bytes != bytes) as usize;
        if self.known[place].bytes != bytes {
            self.learn(bytes);
            place = 0;
        }
        self.known[place]
    }

    /// Admits packets of one length at `now`, like [`Server::offer`] for each. Calls `accepted` with the index and
    /// departure of those that fit, and returns how many did.
    #[inline]
    pub(crate) fn offer_run(
        &mut self,
        now: Time,
        bytes: u32,
        count: u32,
        mut accepted: impl FnMut(u32, Time),
    ) -> u32 {
        let one = self.transmission(bytes);
        let (now, rate) = (now.as_nanos(), self.rate);
        let (mut busy, mut let_in) = (self.busy, 0);
        for index in 0..count {
            if let Some(departure) = one.admit(&mut busy, now, rate) {
                let_in += 1;
                accepted(index, departure);
            }
        }
        self.busy = busy;
        let_in
    }

    #[inline(never)]
    fn learn(&mut self, bytes: u32) {
        let work = bytes as u64 * WORK_PER_BYTE;
        let rate = self.rate as u128;
        // unsent + work <= limit, with unsent = lead_nanos * rate + part and part < rate, holds exactly if
        // (lead_nanos, part) is at most the quotient and remainder of (limit - work) / rate, compared in that order.
        let slack =
            self.limit.saturating_sub(Bytes::new(bytes as u64)).as_u64() as u128 * WORK_PER_BYTE as u128;
        let new = Transmission {
            bytes,
            fits: bytes as u64 <= self.limit.as_u64(),
            nanos: work / self.rate,
            part: work % self.rate,
            slack_nanos: u64::try_from(slack / rate).unwrap_or(u64::MAX),
            slack_part: (slack % rate) as u64,
        };
        self.known = [new, self.known[0]];
    }
}

impl Transmission {
    /// Adds this packet to the server's work, if it fits, and returns when it departs.
    #[inline]
    fn admit(&self, server: &mut Busy, now: u64, rate: u64) -> Option<Time> {
        let busy = if now > server.nanos { Busy { nanos: now, part: 0 } } else { *server };
        let lead = busy.nanos - now;
        if !self.fits || lead > self.slack_nanos || (lead == self.slack_nanos && busy.part > self.slack_part)
        {
            return None;
        }
        let part = busy.part + self.part;
        let carry = part >= rate;
        let part = if carry { part - rate } else { part };
        let nanos = busy.nanos.saturating_add(self.nanos + carry as u64);
        *server = Busy { nanos, part };
        Some(Time::from_nanos(nanos.saturating_add((part > 0) as u64)))
    }
}

impl Server for ConstantRate {
    type Mark = Busy;

    #[inline]
    fn can_pass(&self, _: u32) -> bool {
        true
    }

    #[inline]
    fn offer(&mut self, now: Time, bytes: u32, _: Bytes) -> Result<Time, Cause> {
        let one = self.transmission(bytes);
        one.admit(&mut self.busy, now.as_nanos(), self.rate).ok_or(Cause::QueueFull)
    }

    fn mark(&self) -> Busy {
        self.busy
    }

    fn unsent(&self, busy: Busy, now: Time) -> Bytes {
        match busy.nanos.checked_sub(now.as_nanos()) {
            None => Bytes::ZERO,
            Some(lead) => bytes_of(lead as u128 * self.rate as u128 + busy.part as u128),
        }
    }
}

/// A server whose rate changes at known times. A packet in transmission over a change is sent partly at each rate; at
/// rate zero everything waits.
#[derive(Clone, Debug)]
pub(crate) struct ScheduledRate {
    /// (start time, rate), in order of time; the first from the start of the run.
    segments: Vec<(u64, u64)>,
    /// The work that had arrived and not been sent at the latest arrival.
    backlog: Backlog,
    /// Until when that keeps the server busy; only meaningful while there is work.
    busy: Busy,
    /// The segment of `busy`.
    busy_segment: usize,
}

/// Unsent work at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Backlog {
    nanos: u64,
    work: u128,
    segment: usize,
}

impl ScheduledRate {
    pub(crate) fn new(schedule: &Schedule<Rate>) -> ScheduledRate {
        let mut segments = vec![(0, work_per_nano(schedule.initial))];
        segments.extend(schedule.changes.iter().map(|&(time, rate)| (time.as_nanos(), work_per_nano(rate))));
        ScheduledRate {
            segments,
            backlog: Backlog { nanos: 0, work: 0, segment: 0 },
            busy: Busy { nanos: 0, part: 0 },
            busy_segment: 0,
        }
    }

    /// When a segment ends; `u64::MAX` for the last.
    fn end(&self, segment: usize) -> u64 {
        self.segments.get(segment + 1).map_or(u64::MAX, |next| next.0)
    }

    /// The backlog brought up to `now`.
    fn drained(&self, mut backlog: Backlog, now: u64) -> Backlog {
        while backlog.nanos < now {
            let end = self.end(backlog.segment);
            let until = end.min(now);
            let sent = (until - backlog.nanos) as u128 * self.segments[backlog.segment].1 as u128;
            backlog.work = backlog.work.saturating_sub(sent);
            backlog.nanos = until;
            if until == end && end != u64::MAX {
                backlog.segment += 1;
            }
        }
        backlog
    }

    fn rise(&mut self, now: Time) {
        self.backlog = self.drained(self.backlog, now.as_nanos());
        // A change at time zero takes effect before the first packet.
        while self.end(self.backlog.segment) <= now.as_nanos() && self.end(self.backlog.segment) != u64::MAX {
            self.backlog.segment += 1;
        }
    }

    /// Does more work, after all that was there before, and returns when it is done.
    fn serve(&mut self, work: u128) -> Time {
        // The work left in this segment, counted from the whole nanosecond in which the server becomes free.
        let mut work = work + self.busy.part as u128;
        loop {
            let rate = self.segments[self.busy_segment].1 as u128;
            let end = self.end(self.busy_segment);
            let room = (end - self.busy.nanos) as u128 * rate;
            if work <= room && end != u64::MAX || work < room {
                // Below `end - busy.nanos`, so it fits.
                self.busy.nanos += (work / rate) as u64;
                self.busy.part = (work % rate) as u64;
                return Time::from_nanos(self.busy.nanos.saturating_add((self.busy.part > 0) as u64));
            }
            if end == u64::MAX {
                self.busy = Busy { nanos: u64::MAX, part: 0 };
                return Time::NEVER;
            }
            work -= room;
            self.busy = Busy { nanos: end, part: 0 };
            self.busy_segment += 1;
        }
    }

    /// Changes the rate from `now` on, until the next change of the schedule. `waiting` are the lengths of the packets that
    /// have not left by `now`, in order; returns when each leaves instead.
    pub(crate) fn change(&mut self, now: Time, rate: Rate, waiting: &[u32]) -> Vec<Time> {
        self.rise(now);
        let (at, rate) = (now.as_nanos(), work_per_nano(rate));
        let current = &mut self.segments[self.backlog.segment];
        if current.0 == at {
            current.1 = rate;
        } else {
            self.backlog.segment += 1;
            self.segments.insert(self.backlog.segment, (at, rate));
        }
        self.busy = Busy { nanos: at, part: 0 };
        self.busy_segment = self.backlog.segment;
        let whole = |bytes: u32| bytes as u128 * WORK_PER_BYTE as u128;
        let behind: u128 = waiting.iter().skip(1).map(|&bytes| whole(bytes)).sum();
        // A part of the first packet has been sent.
        let rest = self.backlog.work - behind;
        let mut departures = Vec::with_capacity(waiting.len());
        for (index, &bytes) in waiting.iter().enumerate() {
            departures.push(self.serve(if index == 0 { rest } else { whole(bytes) }));
        }
        departures
    }
}

impl Server for ScheduledRate {
    type Mark = Backlog;

    fn can_pass(&self, _: u32) -> bool {
        true
    }

    fn offer(&mut self, now: Time, bytes: u32, limit: Bytes) -> Result<Time, Cause> {
        self.rise(now);
        let work = bytes as u128 * WORK_PER_BYTE as u128;
        if self.backlog.work + work > limit.as_u64() as u128 * WORK_PER_BYTE as u128 {
            return Err(Cause::QueueFull);
        }
        if self.backlog.work == 0 {
            self.busy = Busy { nanos: now.as_nanos(), part: 0 };
            self.busy_segment = self.backlog.segment;
        }
        self.backlog.work += work;
        Ok(self.serve(work))
    }

    fn mark(&self) -> Backlog {
        self.backlog
    }

    fn unsent(&self, backlog: Backlog, now: Time) -> Bytes {
        bytes_of(self.drained(backlog, now.as_nanos()).work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mbit(rate: u64) -> Rate {
        Rate::from_bits_per_sec(rate * 1_000_000)
    }

    fn micros(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn fractions_of_a_nanosecond_are_carried() {
        // 1 byte at 3 Gbit/s takes 2 2/3 ns; departures are rounded up, the server is not.
        let mut link = ConstantRate::new(mbit(3000), Bytes::MAX);
        let departures: Vec<u64> =
            (0..6).map(|_| link.offer(Time::ZERO, 1, Bytes::MAX).unwrap().as_nanos()).collect();
        assert_eq!(departures, [3, 6, 8, 11, 14, 16]); // 2.67, 5.33, 8, 10.67, 13.33, 16
    }

    #[test]
    fn million_packets_lose_no_time() {
        // A rate with no neat packet time: 1e6 packets of 1500 bytes at 99,999,999 bit/s take 120.0000012 s.
        let rate = Rate::from_bits_per_sec(99_999_999);
        let mut link = ConstantRate::new(rate, Bytes::MAX);
        let mut last = Time::ZERO;
        for _ in 0..1_000_000 {
            last = link.offer(Time::ZERO, 1500, Bytes::MAX).unwrap();
        }
        assert_eq!(last.as_nanos() as u128, (12_000_000_000u128 * 1_000_000_000).div_ceil(99_999_999));
    }

    #[test]
    fn limit_counts_unsent_bytes() {
        // 8 Mbit/s is a byte a microsecond. Room for 3000 bytes.
        let limit = Bytes::new(3000);
        let mut link = ConstantRate::new(mbit(8), limit);
        assert!(link.offer(micros(0), 1500, limit).is_ok());
        assert!(link.offer(micros(0), 1500, limit).is_ok());
        assert!(link.offer(micros(0), 1, limit).is_err());
        assert_eq!(link.unsent(link.mark(), micros(700)), Bytes::new(2300));
        assert_eq!(link.offer(Time::from_nanos(699_999), 700, limit), Err(Cause::QueueFull));
        assert!(link.offer(micros(700), 701, limit).is_err());
        assert_eq!(link.offer(micros(700), 700, limit), Ok(micros(3700)));
        assert!(link.offer(micros(1_000_000), 3001, limit).is_err()); // larger than the queue
        assert!(link.offer(micros(1_000_000), 3000, limit).is_ok());
    }

    #[test]
    fn transmission_spans_rates_and_outages() {
        // A byte a microsecond; nothing from 1000 us; two bytes a microsecond from 5000 us.
        let changes = vec![(micros(1000), Rate::ZERO), (micros(5000), mbit(16))];
        let mut link = ScheduledRate::new(&Schedule { initial: mbit(8), changes });
        let limit = Bytes::new(3000);
        // 1000 bytes before the outage, 500 at double rate after it.
        assert_eq!(link.offer(micros(0), 1500, limit), Ok(micros(5250)));
        assert_eq!(link.offer(micros(0), 1500, limit), Ok(micros(6000)));
        assert_eq!(link.unsent(link.mark(), micros(999)), Bytes::new(2001));
        assert_eq!(link.unsent(link.mark(), micros(3000)), Bytes::new(2000));
        assert_eq!(link.unsent(link.mark(), micros(5500)), Bytes::new(1000));
        assert_eq!(link.offer(micros(3000), 1001, limit), Err(Cause::QueueFull));
        assert_eq!(link.offer(micros(3000), 1000, limit), Ok(micros(6500)));
        assert_eq!(link.offer(micros(8000), 1000, limit), Ok(micros(8500)));
    }

    #[test]
    fn permanently_down_link_keeps_packets() {
        let mut link =
            ScheduledRate::new(&Schedule { initial: mbit(8), changes: vec![(micros(10), Rate::ZERO)] });
        assert_eq!(link.offer(micros(0), 10, Bytes::MAX), Ok(micros(10)));
        assert_eq!(link.offer(micros(0), 1, Bytes::MAX), Ok(Time::NEVER));
        assert_eq!(link.offer(micros(50), 1, Bytes::MAX), Ok(Time::NEVER));
        assert_eq!(link.unsent(link.mark(), micros(1_000_000)), Bytes::new(2));
    }

    #[test]
    fn an_unlimited_rate_takes_no_time() {
        let mut link = ConstantRate::new(Rate::MAX, Bytes::MAX);
        assert_eq!(link.offer(micros(5), 1500, Bytes::MAX), Ok(Time::from_nanos(5001)));
        assert_eq!(link.offer(micros(6), Packet::MAX_BYTES, Bytes::MAX), Ok(Time::from_nanos(6002)));
    }
}
