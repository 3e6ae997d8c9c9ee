//! The drop-tail queue in front of a server: what it admits and counts, and its state at any time that can still be
//! queried.
//!
//! A [`Server`] knows when a packet leaves as soon as it is admitted, so no packet waits here: the packet itself is in the
//! holding queue at the end of its stage. A discipline that decides which packet leaves next (CoDel, PIE) cannot be computed
//! so; it has a gate of its own (`gate.rs`).
//!
//! Packets are announced to a queue behind an element that takes time before they reach it. The queue keeps one
//! [`Snapshot`] per arrival until the clock has passed the next, and answers queries from the snapshot of their time.

use crate::config::QueueConfig;
use crate::elements::link::{ConstantRate, ScheduledRate};
use crate::packet::{BurstFate, Cause, Fate, Moment, Packet, Tally};
use crate::server::{Bursts, Server};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use std::collections::VecDeque;
use std::fmt;

/// What a queue has seen so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Packets that arrived: `accepted` and `dropped`.
    pub arrived: Tally,
    /// Packets admitted.
    pub accepted: Tally,
    /// Packets rejected, or dropped later.
    pub dropped: Tally,
    /// Of these, packets that a discipline dropped although there was room, to signal congestion.
    pub early: Tally,
    /// Packets marked.
    pub marked: Tally,
}

/// A queue and its server.
#[derive(Debug)]
pub(crate) struct Queue<S: Server> {
    name: String,
    limit: QueueConfig,
    server: S,
    accepted: Tally,
    dropped: Tally,
    /// Packets of accepted bursts, and of dropped ones, but for the first of each: above, a burst counts as one.
    more: [u64; 2],
    /// When the latest packet leaves.
    clear: Time,
    /// Only kept if waiting packets have to be counted.
    departures: Option<Departures>,
    /// Only kept if packets are announced before they arrive. Never empty.
    history: Option<VecDeque<Snapshot<S::Mark>>>,
}

impl Queue<ConstantRate> {
    /// [`Queue::admit`] for `count` packets of one length at `now`, in a queue that [is plain](Queue::is_plain). Calls
    /// `accepted` with those admitted and when they leave; returns how many were not.
    #[inline]
    pub(crate) fn admit_run(
        &mut self,
        now: Time,
        bytes: u32,
        count: u32,
        mut accepted: impl FnMut(u32, Time),
    ) -> u32 {
        debug_assert!(self.is_plain());
        let clear = &mut self.clear;
        let let_in = self.server.offer_run(now, bytes, count, |index, departure| {
            *clear = departure;
            accepted(index, departure);
        });
        self.accepted.add_many(let_in, bytes);
        self.dropped.add_many(count - let_in, bytes);
        count - let_in
    }
}

impl Queue<ScheduledRate> {
    /// Changes the rate from `now` on. `waiting` are the lengths of the packets that have not left; returns when they do.
    pub(crate) fn change_rate(&mut self, now: Time, rate: Rate, waiting: &[u32]) -> Vec<Time> {
        debug_assert!(
            self.history.is_none(),
            "packets that are announced cannot be told from those that wait"
        );
        let leaving = self.server.change(now, rate, waiting);
        if let Some(&last) = leaving.last() {
            self.clear = last;
        }
        if let Some(departures) = &mut self.departures {
            departures.change(now, &leaving);
        }
        leaving
    }
}

/// A queue right after an arrival.
#[derive(Clone, Copy, Debug)]
struct Snapshot<M> {
    at: Time,
    accepted: Tally,
    dropped: Tally,
    clear: Time,
    mark: M,
}

impl<S: Server> Queue<S> {
    /// A queue in front of `server`. `announced`: packets are announced before they arrive.
    pub(crate) fn new(name: &str, limit: QueueConfig, server: S, announced: bool) -> Queue<S> {
        let departures = S::WHOLE_PACKETS || limit.packets.is_some();
        let mut queue = Queue {
            name: name.to_owned(),
            limit,
            server,
            accepted: Tally::default(),
            dropped: Tally::default(),
            more: [0, 0],
            clear: Time::ZERO,
            departures: departures.then(Departures::default),
            history: None,
        };
        queue.history = announced.then(|| VecDeque::from([queue.snapshot(Time::ZERO)]));
        queue
    }

    #[inline]
    pub(crate) fn admit(&mut self, moment: Moment, packet: &Packet) -> Fate {
        self.admit_frame(moment, self.server.framed(packet.bytes))
    }

    /// Takes or drops so many bytes as one.
    #[inline]
    fn admit_frame(&mut self, moment: Moment, bytes: u32) -> Fate {
        let now = moment.arrival;
        let decided = match self.refuses(moment, bytes) {
            Some(cause) => Err(cause),
            None => self.server.offer(now, bytes, self.limit.bytes),
        };
        let fate = match decided {
            Err(cause) => {
                self.dropped.add(bytes);
                Fate::Dropped(cause)
            }
            Ok(departure) => {
                debug_assert!(departure >= now && departure >= self.clear, "a queue reorders");
                self.clear = departure;
                self.accepted.add(bytes);
                if let Some(departures) = &mut self.departures {
                    departures.push(departure, bytes);
                }
                Fate::Leaves(departure)
            }
        };
        if self.history.is_some() {
            self.remember(moment);
        }
        fate
    }

    /// Takes or drops a burst as one.
    pub(crate) fn admit_burst(&mut self, moment: Moment, burst: &[Packet]) -> BurstFate {
        debug_assert!(self.history.is_none(), "bursts are not announced");
        let now = moment.arrival;
        let total: u64 = burst.iter().map(|packet| self.server.framed(packet.bytes) as u64).sum();
        let Some(total) = u32::try_from(total).ok().filter(|total| *total <= Packet::MAX_BYTES) else {
            // Longer than anything that a host hands over.
            return BurstFate::Split;
        };
        if S::WHOLE_BURSTS == Bursts::Split && !self.server.can_pass(total) {
            return BurstFate::Apart(self.admit_split(moment, burst));
        }
        let fate = if S::WHOLE_BURSTS != Bursts::Apart {
            match self.admit_frame(moment, total) {
                Fate::Leaves(departure) => BurstFate::Leaves(departure),
                Fate::Dropped(cause) => BurstFate::Dropped(cause),
                Fate::Twice(_) | Fate::Remarked(..) | Fate::Merged(..) => {
                    unreachable!("queues make no copies and no bursts, and gates mark")
                }
            }
        } else if let Some(cause) = self
            .refuses(moment, total)
            .or_else(|| if S::WHOLE_PACKETS { None } else { self.has_no_room(now, total) })
        {
            self.dropped.add(total);
            BurstFate::Dropped(cause)
        } else {
            let mut offer = |packet: &Packet| self.server.offer(now, packet.bytes, Bytes::MAX);
            let times: Vec<Result<Time, Cause>> = burst.iter().map(&mut offer).collect();
            let last = times.last().copied().unwrap_or(Ok(self.clear));
            self.clear = last.expect("there is room for all of it");
            self.accepted.add(total);
            if let Some(departures) = &mut self.departures {
                departures.push(self.clear, total);
            }
            BurstFate::Apart(times)
        };
        self.more[matches!(fate, BurstFate::Dropped(_)) as usize] += burst.len() as u64 - 1;
        fate
    }

    /// Takes or drops each packet of a burst. What there are tokens for leaves at once, but only after room has been found for
    /// all that find some (`tbf_segment`).
    fn admit_split(&mut self, moment: Moment, burst: &[Packet]) -> Vec<Result<Time, Cause>> {
        let left = self.left(moment);
        let one = |packet: &Packet| {
            let bytes = self.server.framed(packet.bytes);
            let refused =
                if self.server.can_pass(bytes) { self.shortfall(left, bytes) } else { Some(Cause::Oversize) };
            let decided = refused.map_or_else(|| self.server.offer(moment.arrival, bytes, Bytes::MAX), Err);
            match decided {
                Err(_) => self.dropped.add(bytes),
                Ok(departure) => {
                    self.clear = departure;
                    self.accepted.add(bytes);
                    if let Some(departures) = &mut self.departures {
                        departures.push(departure, bytes);
                    }
                }
            }
            decided
        };
        burst.iter().map(one).collect()
    }

    /// Whether a burst is too long for what is unsent, where the server counts that.
    fn has_no_room(&self, now: Time, bytes: u32) -> Option<Cause> {
        let unsent = self.server.unsent(self.server.mark(), now);
        (unsent + Bytes::new(bytes as u64) > self.limit.bytes).then_some(Cause::QueueFull)
    }

    /// Whether the server alone decides, and there are no queries about the past.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.departures.is_none() && self.history.is_none()
    }

    /// Changes how many bytes it takes, of any number of packets. What is in it stays.
    pub(crate) fn change_limit(&mut self, bytes: Bytes) {
        (self.limit.bytes, self.limit.packets) = (bytes, None);
    }

    /// Why a packet is rejected before the server decides.
    #[inline]
    fn refuses(&mut self, moment: Moment, bytes: u32) -> Option<Cause> {
        if !self.server.can_pass(bytes) {
            return Some(Cause::Oversize);
        }
        if self.departures.is_some() { self.overflows(moment, bytes) } else { None }
    }

    /// Checks the limits that need a count of the packets that have not left.
    #[inline(never)]
    fn overflows(&mut self, moment: Moment, bytes: u32) -> Option<Cause> {
        let left = self.left(moment);
        self.shortfall(left, bytes)
    }

    /// What has left by an arrival, if packets are counted.
    fn left(&mut self, moment: Moment) -> Tally {
        let Some(departures) = &mut self.departures else { return self.accepted };
        departures.forget(moment.clock);
        departures.at_arrival(moment.arrival)
    }

    /// Why there is no room for so many bytes, when so much has left.
    #[inline]
    fn shortfall(&self, left: Tally, bytes: u32) -> Option<Cause> {
        let waiting = self.accepted - left;
        let too_many = self.limit.packets.is_some_and(|most| waiting.packets >= most as u64);
        let too_large = S::WHOLE_PACKETS && waiting.bytes.as_u64() + bytes as u64 > self.limit.bytes.as_u64();
        (too_many || too_large).then_some(Cause::QueueFull)
    }

    fn snapshot(&self, at: Time) -> Snapshot<S::Mark> {
        let Queue { accepted, dropped, clear, .. } = *self;
        Snapshot { at, accepted, dropped, clear, mark: self.server.mark() }
    }

    #[inline(never)]
    fn remember(&mut self, moment: Moment) {
        let latest = self.snapshot(moment.arrival);
        if let Some(history) = &mut self.history {
            history.push_back(latest);
            while history.len() > 1 && history[1].at <= moment.clock {
                history.pop_front();
            }
        }
    }

    /// The state after the latest arrival at or before `now`.
    fn as_of(&self, now: Time) -> Snapshot<S::Mark> {
        match &self.history {
            None => self.snapshot(now),
            Some(history) => {
                history[history.partition_point(|snapshot| snapshot.at <= now).saturating_sub(1)]
            }
        }
    }
}

/// A queue seen from outside. Queries must be about times from the chain's latest `push` or `pop` on. In a chain that
/// reorders, first `pop` until nothing more is due, or [`Carrier::settle`](crate::Carrier::settle).
#[derive(Clone, Copy, Debug)]
pub struct QueueView<'a>(&'a dyn Observable);

impl<'a> QueueView<'a> {
    pub(crate) fn new(queue: &'a dyn Observable) -> QueueView<'a> {
        QueueView(queue)
    }

    /// Its name in records and reports.
    pub fn name(&self) -> &'a str {
        self.0.name()
    }

    /// What it has seen by `now`.
    pub fn totals(&self, now: Time) -> Totals {
        self.0.totals(now)
    }

    /// Bytes in it at `now`: not yet on the wire, with the unsent part of the packet in transmission (rounded up to
    /// whole bytes). A token bucket counts a packet in full until it leaves, as Linux does.
    pub fn backlog(&self, now: Time) -> Bytes {
        self.0.backlog(now)
    }

    /// How long everything in it at `now` takes to leave: the time that a packet arriving now would wait.
    /// [`Duration::MAX`] if the link is down for good.
    pub fn delay(&self, now: Time) -> Duration {
        self.0.delay(now)
    }

    /// Packets in it at `now`, including the one in transmission; where bursts are taken whole, each counts as one. `None` unless they are counted, which they are under a
    /// packet limit and in token buckets.
    pub fn packets(&self, now: Time) -> Option<u64> {
        self.0.packets(now)
    }
}

/// The queries of a [`QueueView`], as a trait so that callers need not name the server.
pub(crate) trait Observable: fmt::Debug {
    fn name(&self) -> &str;
    fn totals(&self, now: Time) -> Totals;
    fn backlog(&self, now: Time) -> Bytes;
    fn delay(&self, now: Time) -> Duration;
    fn packets(&self, now: Time) -> Option<u64>;
}

impl<S: Server> Observable for Queue<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn totals(&self, now: Time) -> Totals {
        let Snapshot { mut accepted, mut dropped, .. } = self.as_of(now);
        accepted.packets += self.more[0];
        dropped.packets += self.more[1];
        Totals { arrived: accepted + dropped, accepted, dropped, ..Totals::default() }
    }

    fn backlog(&self, now: Time) -> Bytes {
        let state = self.as_of(now);
        match &self.departures {
            Some(departures) if S::WHOLE_PACKETS => (state.accepted - departures.by(now)).bytes,
            _ => self.server.unsent(state.mark, now),
        }
    }

    fn delay(&self, now: Time) -> Duration {
        match self.as_of(now).clear {
            Time::NEVER => Duration::MAX,
            clear => clear.saturating_since(now),
        }
    }

    fn packets(&self, now: Time) -> Option<u64> {
        let departures = self.departures.as_ref()?;
        Some((self.as_of(now).accepted - departures.by(now)).packets)
    }
}

/// When packets leave, in order, as far back as queries may go.
#[derive(Debug, Default)]
struct Departures {
    /// (time, packets and bytes that have left by then).
    ring: VecDeque<(Time, Tally)>,
    /// What left before the first entry.
    before: Tally,
    /// How many entries have left by the latest arrival.
    passed: usize,
}

impl Departures {
    #[inline(never)]
    fn push(&mut self, departure: Time, bytes: u32) {
        let mut left = self.ring.back().map_or(self.before, |last| last.1);
        left.add(bytes);
        self.ring.push_back((departure, left));
    }

    /// Packets that have not left by `now` leave at other times.
    fn change(&mut self, now: Time, leaving: &[Time]) {
        let first = self.ring.partition_point(|entry| entry.0 <= now);
        for (entry, &departure) in self.ring.range_mut(first..).zip(leaving) {
            entry.0 = departure;
        }
    }

    /// What has left by the time of an arrival. Arrivals do not go back.
    fn at_arrival(&mut self, arrival: Time) -> Tally {
        while self.passed < self.ring.len() && self.ring[self.passed].0 <= arrival {
            self.passed += 1;
        }
        self.through(self.passed)
    }

    /// What has left by `now`.
    fn by(&self, now: Time) -> Tally {
        self.through(self.ring.partition_point(|entry| entry.0 <= now))
    }

    fn through(&self, entries: usize) -> Tally {
        if entries == 0 { self.before } else { self.ring[entries - 1].1 }
    }

    /// Drops entries that are too old for any query.
    fn forget(&mut self, clock: Time) {
        while let Some(&(departure, left)) = self.ring.front()
            && departure <= clock
        {
            self.ring.pop_front();
            self.before = left;
            self.passed = self.passed.saturating_sub(1);
        }
    }
}
