//! The gate: a queue whose discipline decides which packet leaves it, and the transmitter that it feeds.
//!
//! A queue like this is no transit function: when a packet arrives, nobody can say when it will leave, or whether it will. So
//! a gate stands at the beginning of a stage and has events of its own: whenever the transmitter is free and something waits,
//! the discipline is asked for the next packet, and from then on its departure is known.
//!
//! What is in transmission has left the queue, as a packet in a network card has left Linux's. A link that follows a delivery
//! trace and a token bucket hold that one packet until its time comes, as Linux's `tbf` holds the packet that it has taken
//! from an inner discipline (`qdisc_peek_dequeued`).

use std::fmt;

use crate::config::ElementConfig;
use crate::counts::Counts;
use crate::discipline::{Discipline, Dropped, Random, Room, Setup, Waiting};
use crate::elements::Element;
use crate::elements::delivery_trace::Opportunities;
use crate::elements::link::{ConstantRate, ScheduledRate};
use crate::elements::token_bucket::Tokens;
use crate::error::ConfigError;
use crate::packet::{Cause, Ecn, Packet, Tally};
use crate::queue::{Observable, Totals};
use crate::rng::Stream;
use crate::server::Server;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// Makes a discipline that is not built in.
pub type MakeDiscipline = Box<dyn FnOnce(Setup) -> Box<dyn Discipline>>;

/// What a gate lets through: a packet, and when it has left the transmitter.
#[derive(Debug)]
pub(crate) struct Departure<P> {
    pub(crate) at: Time,
    pub(crate) packet: Packet,
    pub(crate) payload: P,
}

/// A packet that waits, with its payload.
#[derive(Debug)]
struct Part<P> {
    packet: Packet,
    payload: P,
    /// The place of the next packet of its burst.
    next: Option<u32>,
}

/// A queue with a discipline, its transmitter, and the payloads of what waits.
pub(crate) struct Gate<P> {
    name: String,
    discipline: Box<dyn Discipline>,
    transmitter: Transmitter,
    waiting: Places<Part<P>>,
    /// When the discipline is asked next; [`Time::NEVER`] if nothing waits.
    due: Time,
    /// When the transmitter is free.
    free: Time,
    /// The length of what the transmitter has.
    sending: Bytes,
    arrived: Tally,
    dropped: Tally,
    early: Tally,
    marked: Tally,
    /// What the discipline drops in one call.
    drops: Dropped,
}

impl<P> Gate<P> {
    /// The gate of the element at `index`; `None` if it needs none. `own` replaces its discipline.
    pub(crate) fn checked(
        config: &ElementConfig,
        index: usize,
        seed: u64,
        changing: bool,
        own: Option<MakeDiscipline>,
    ) -> Result<Option<Gate<P>>, ConfigError> {
        let managed = config.queue().filter(|queue| own.is_some() || !queue.discipline.is_fifo());
        let Some(queue) = managed else {
            return if own.is_none() { Ok(None) } else { Err(not_managed(config, index)) };
        };
        // Checks the numbers.
        Element::new(config, index, seed, false)?;
        let transmitter = Transmitter::new(config, changing).ok_or_else(|| not_managed(config, index))?;
        let setup = Setup {
            limit: Room { bytes: queue.bytes, packets: queue.packets },
            rate: config.highest_rate().unwrap_or(Rate::MAX),
            random: Random(Stream::new(seed, index)),
        };
        let discipline = match own {
            Some(make) => make(setup),
            None => queue.discipline.build(setup),
        };
        Ok(Some(Gate {
            name: config.name().unwrap_or_default().to_owned(),
            discipline,
            transmitter,
            waiting: Places::default(),
            due: Time::NEVER,
            free: Time::ZERO,
            sending: Bytes::ZERO,
            arrived: Tally::default(),
            dropped: Tally::default(),
            early: Tally::default(),
            marked: Tally::default(),
            drops: Dropped::default(),
        }))
    }

    /// When to call [`Gate::serve`] next.
    #[inline]
    pub(crate) fn next(&self) -> Time {
        self.due
    }

    /// A packet arrives at `now`, or several as one burst; everything due by then has been served. If the transmitter is free, it
    /// is due at once. Returns why it was dropped, if it was.
    pub(crate) fn arrive(
        &mut self,
        now: Time,
        burst: impl IntoIterator<Item = (Packet, P)>,
        counts: &mut Counts,
    ) -> Option<Cause> {
        let mut burst = burst.into_iter();
        let (mut whole, payload) = burst.next().expect("a burst has packets");
        let place = self.waiting.put(Part { packet: whole, payload, next: None });
        self.arrived.add(whole.bytes);
        let mut last = place;
        for (packet, payload) in burst {
            let next = self.waiting.put(Part { packet, payload, next: None });
            self.waiting.get(last).next = Some(next);
            self.arrived.add(packet.bytes);
            whole.bytes += packet.bytes;
            last = next;
        }
        let waiting = Waiting::new(now, whole, place);
        if self.takes(whole.bytes as u64) {
            self.discipline.enqueue(now, waiting, &mut self.drops);
        } else {
            self.drops.0.push((waiting, Cause::Oversize));
        }
        let own = self.drops.0.iter().find(|(waiting, _)| waiting.place == place).map(|(_, cause)| *cause);
        self.drop_all(counts);
        if self.due == Time::NEVER && self.waits() {
            self.due = self.free.max(now);
        }
        own
    }

    /// Whether a packet or a burst of this length can pass as one.
    pub(crate) fn takes(&self, bytes: u64) -> bool {
        bytes <= self.transmitter.longest() as u64
    }

    /// Asks the discipline for what is [due](Gate::next), and hands it to the transmitter: `leaves` is called for each packet.
    #[inline]
    pub(crate) fn serve(&mut self, counts: &mut Counts, mut leaves: impl FnMut(&mut Counts, Departure<P>)) {
        let now = self.due;
        let served = self.discipline.dequeue(now, &mut self.drops);
        let any = served.is_some();
        if let Some(waiting) = served {
            // It has waited for the transmitter if it was there before that became free: then no fraction of a nanosecond
            // passes between the two.
            let since = if waiting.arrived() < self.free { before(self.free) } else { now };
            let together = self.transmitter.sends_together();
            if together {
                self.free = self.transmitter.offer(since, waiting.bytes());
            }
            self.sending = Bytes::new(waiting.bytes() as u64);
            let is_single = self.waiting.get(waiting.place).next.is_none();
            let mut next = Some(waiting.place);
            while let Some(place) = next {
                let Part { mut packet, payload, next: behind } = self.waiting.take(place);
                next = behind;
                if waiting.ecn() == Ecn::Ce && packet.ecn != Ecn::Ce {
                    packet.ecn = Ecn::Ce;
                    self.marked.add(packet.bytes);
                }
                if !together {
                    self.free = self.transmitter.offer(since, packet.bytes);
                }
                if !together || is_single {
                    packet = packet.alone();
                }
                leaves(counts, Departure { at: self.free, packet, payload });
            }
            debug_assert!(self.free >= now, "a packet leaves before it comes");
        }
        self.drop_all(counts);
        self.due = if self.waits() { self.free.max(now) } else { Time::NEVER };
        assert!(any || self.due == Time::NEVER, "{} keeps packets back", self.name);
    }

    fn waits(&self) -> bool {
        self.discipline.backlog().packets > 0
    }

    /// Forgets what the discipline has dropped.
    #[inline]
    fn drop_all(&mut self, counts: &mut Counts) {
        if !self.drops.0.is_empty() {
            self.drop_some(counts);
        }
    }

    #[inline(never)]
    fn drop_some(&mut self, counts: &mut Counts) {
        for (waiting, cause) in self.drops.0.drain(..) {
            let mut next = Some(waiting.place);
            while let Some(place) = next {
                let part = self.waiting.take(place);
                next = part.next;
                self.dropped.add(part.packet.bytes);
                if cause == Cause::Early {
                    self.early.add(part.packet.bytes);
                }
                counts.drop(cause, &part.packet);
            }
        }
    }

    /// Everything that waits, in no order.
    pub(crate) fn packets(&self) -> impl Iterator<Item = Packet> {
        self.waiting.iter().map(|part| part.packet)
    }

    /// Changes how many bytes may wait. What waits stays.
    pub(crate) fn change_limit(&mut self, bytes: Bytes) {
        self.discipline.set_limit(bytes);
    }

    /// Changes the rate of a link from `now` on. `leaving` are the lengths of the packets in transmission; returns when they
    /// leave instead.
    pub(crate) fn change_rate(&mut self, now: Time, rate: Rate, leaving: &[u32]) -> Vec<Time> {
        let Transmitter::Scheduled(link) = &mut self.transmitter else {
            unreachable!("only the rate of a link that can change does")
        };
        let times = link.change(now, rate, leaving);
        if let Some(&last) = times.last() {
            self.free = last;
            // Also if it was due never, behind a link that was down for good.
            if self.waits() {
                self.due = last;
            }
        }
        times
    }
}

/// An element that has no queue, or one that no discipline could manage.
pub(crate) fn not_managed(config: &ElementConfig, index: usize) -> ConfigError {
    ConfigError {
        index,
        kind: config.kind(),
        field: "queue.discipline",
        given: "a discipline of your own".to_owned(),
        expected: "one for a link, a delivery trace or a token bucket",
    }
}

/// The last nanosecond before `time`.
fn before(time: Time) -> Time {
    Time::from_nanos(time.as_nanos().saturating_sub(1))
}

/// Without payloads, which need not have a description.
impl<P> fmt::Debug for Gate<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gate { name, discipline, transmitter, due, free, .. } = self;
        let mut shown = f.debug_struct("Gate");
        shown.field("name", name).field("discipline", discipline).field("transmitter", transmitter);
        shown.field("due", due).field("free", free).finish_non_exhaustive()
    }
}

impl<P> Observable for Gate<P> {
    fn name(&self) -> &str {
        &self.name
    }

    fn totals(&self, _: Time) -> Totals {
        let accepted = self.arrived - self.dropped;
        let Gate { arrived, dropped, early, marked, .. } = *self;
        Totals { arrived, accepted, dropped, early, marked }
    }

    fn backlog(&self, now: Time) -> Bytes {
        let sending = if self.free > now { self.transmitter.unsent(now, self.sending) } else { Bytes::ZERO };
        self.discipline.backlog().bytes + sending
    }

    fn delay(&self, now: Time) -> Duration {
        let mut bytes = self.discipline.backlog().bytes.as_u64();
        let mut transmitter = self.transmitter.clone();
        // As the transmitter gets what has waited for it.
        let (mut free, most) = (self.free, transmitter.longest());
        while bytes > 0 && free != Time::NEVER {
            let next = bytes.min(most as u64);
            free = transmitter.offer(before(free), next as u32);
            bytes -= next;
        }
        if free == Time::NEVER { Duration::MAX } else { free.saturating_since(now) }
    }

    fn packets(&self, now: Time) -> Option<u64> {
        Some(self.discipline.backlog().packets + (self.free > now) as u64)
    }
}

/// What sends the packets that a gate lets through.
#[derive(Clone, Debug)]
enum Transmitter {
    Constant(ConstantRate),
    Scheduled(ScheduledRate),
    Trace(Opportunities),
    /// With the depth of the bucket.
    Tokens(Tokens, Bytes),
}

impl Transmitter {
    fn new(config: &ElementConfig, changing: bool) -> Option<Transmitter> {
        Some(match config {
            ElementConfig::Link { rate_bps, .. } if rate_bps.changes.is_empty() && !changing => {
                Transmitter::Constant(ConstantRate::new(rate_bps.initial, Bytes::MAX))
            }
            ElementConfig::Link { rate_bps, .. } => Transmitter::Scheduled(ScheduledRate::new(rate_bps)),
            ElementConfig::DeliveryTrace { opportunities_ms, .. } => {
                Transmitter::Trace(Opportunities::new(opportunities_ms.clone()))
            }
            ElementConfig::TokenBucket { rate_bps, burst_bytes, .. } => {
                Transmitter::Tokens(Tokens::new(*rate_bps, *burst_bytes, 0), *burst_bytes)
            }
            _ => return None,
        })
    }

    /// Whether a burst leaves it as one.
    fn sends_together(&self) -> bool {
        match self {
            Transmitter::Constant(_) | Transmitter::Scheduled(_) | Transmitter::Trace(_) => false,
            Transmitter::Tokens(..) => true,
        }
    }

    /// The longest packet that it sends.
    fn longest(&self) -> u32 {
        match self {
            Transmitter::Tokens(_, burst) => {
                u32::try_from(burst.as_u64()).unwrap_or(u32::MAX).min(Packet::MAX_BYTES)
            }
            _ => Packet::MAX_BYTES,
        }
    }

    /// When a packet that it gets at `now` has left.
    fn offer(&mut self, now: Time, bytes: u32) -> Time {
        let offered = match self {
            Transmitter::Constant(link) => link.offer(now, bytes, Bytes::MAX),
            Transmitter::Scheduled(link) => link.offer(now, bytes, Bytes::MAX),
            Transmitter::Trace(link) => link.offer(now, bytes, Bytes::MAX),
            Transmitter::Tokens(tokens, _) => tokens.offer(now, bytes, Bytes::MAX),
        };
        offered.expect("it takes what it has room for, and nothing waits in it")
    }

    /// How much of a packet of this length has not left at `now`.
    fn unsent(&self, now: Time, sending: Bytes) -> Bytes {
        match self {
            Transmitter::Constant(link) => link.unsent(link.mark(), now),
            Transmitter::Scheduled(link) => link.unsent(link.mark(), now),
            Transmitter::Trace(link) => link.unsent(link.mark(), now),
            Transmitter::Tokens(..) => sending,
        }
    }
}

/// Places for values, taken and given back in any order.
#[derive(Debug)]
struct Places<T> {
    all: Vec<Option<T>>,
    empty: Vec<u32>,
}

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places { all: Vec::new(), empty: Vec::new() }
    }
}

impl<T> Places<T> {
    fn put(&mut self, value: T) -> u32 {
        if let Some(place) = self.empty.pop() {
            self.all[place as usize] = Some(value);
            return place;
        }
        self.all.push(Some(value));
        u32::try_from(self.all.len() - 1).expect("fewer than 2^32 packets wait")
    }

    fn get(&mut self, place: u32) -> &mut T {
        self.all[place as usize].as_mut().expect("it is there")
    }

    fn take(&mut self, place: u32) -> T {
        self.empty.push(place);
        self.all[place as usize].take().expect("a discipline hands out each packet once")
    }

    fn iter(&self) -> impl Iterator<Item = &T> {
        self.all.iter().flatten()
    }
}
