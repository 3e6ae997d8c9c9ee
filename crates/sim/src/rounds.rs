//! Many flows, served flow by flow instead of event by event.
//!
//! With many paced flows each event touches another flow, whose memory is in no fast cache. Within a *window* no flow can
//! influence another one; so a *round* does everything that happens in it to one flow, then to the next one, and in the end
//! offers the packets of all of them to the path in the order in which the events would have offered them.
//!
//! # The law of the window
//!
//! No event of one flow before the window's end can change another flow's input, because flows meet in the path only, and:
//!
//! 1. What a flow gets from the path before the window's end is known when it begins: no packet that is offered in it can leave
//!    the path before its end, nor change when, or whether, another one does ([`Carrier::known_until`]). That is how long a packet
//!    takes behind the last element that decides anything, or longer: until the last packet leaves that waits at the end of a FIFO.
//! 2. A way back that is only a delay knows no other flow, so that an ACK may leave and arrive within the window
//!    ([`Carrier::constant_delay`]); any other way back is treated like the way there.
//! 3. The path sees all packets at the same times and in the same order, and the sampler sees it in between. So it does not matter what
//!    its elements decide, or by what: every loss, mark, drop and random number is the same.
//! 4. No event before the window's end ends the run, because some flow goes on until then ([`Flow::goes_on_until`]).
//!
//! After a round, the world is as if its events had happened one at a time. So each window is decided anew: one that is too
//! short to be worth it, or of which one of these does not hold, is left to the events. Some runs have no rounds at all, because their
//! flows meet elsewhere, too: in hosts that take time or keep metrics, in a log, or in controllers that somebody brings.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_path::{Carrier, Ecn, Tally};
use fullpipe_record::FlowSeries;
use fullpipe_units::{Bytes, Duration, Time};

use crate::agenda::Agenda;
use crate::flow::{Flow, ReturnWire};
use crate::packet::{Acknowledgement, Segment};
use crate::sender::{MarkableRun, Wire};
use crate::series;
use crate::world::{FLOWS, Observer, SAMPLER, World, sample_links};

/// Fewer flows than these are as fast event by event: their memory is in the caches.
pub(crate) const LEAST_FLOWS: usize = 32;
/// A round looks at every flow, so it must have a packet for one in so many.
const FLOWS_A_PACKET: usize = 16;
/// How long the events go on where nothing is known ahead.
const PAUSE: Duration = Duration::from_millis(1);

/// The time until which the flows do not meet, and the samples in it.
#[derive(Clone, Copy, Debug)]
struct Window {
    /// What happens then is no part of it.
    end: Time,
    /// The first sample, and the time from one to the next; never, if it has none.
    sample: Time,
    interval: Duration,
}

impl Window {
    /// The sample after the one at `time`.
    fn next_sample(&self, time: Time) -> Time {
        time.saturating_add(self.interval)
    }
}

/// The place of an event in the order of all events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    at: Time,
    /// Of equal times, what arrives comes first. Packets that arrive on the same way are in the order in which they were offered to it; never,
    /// for timers.
    offered: Time,
    /// Of those offered at the same time: see [`Place::of_arrival`] and [`Place::of_timer`].
    number: u64,
}

/// Set in the number of a timer's event.
const TIMER: u64 = 1 << 63;

impl Place {
    /// Of a packet that was in the path when the window began: the `number`th that leaves it.
    fn of_arrival(at: Time, number: u32) -> Place {
        Place { at, offered: Time::ZERO, number: number as u64 }
    }

    fn of_timer(at: Time, flow: u32) -> Place {
        Place { at, offered: Time::NEVER, number: TIMER | flow as u64 }
    }

    /// Of an ACK that was offered by the event at this place, and takes so long.
    fn of_answer(self, delay: Duration) -> Place {
        Place { at: self.at.saturating_add(delay), offered: self.at, number: self.number }
    }

    /// Whether it comes after the sample at `time`: arrivals come before a sample, timers after it.
    fn is_after_sample(&self, time: Time) -> bool {
        (self.at, self.offered) > (time, Time::from_nanos(u64::MAX - 1))
    }
}

/// A packet that arrives within the window.
#[derive(Clone, Copy, Debug)]
struct Arrival<P> {
    place: Place,
    payload: P,
    codepoint: Ecn,
    /// Another one arrives at the same instant after it.
    more: bool,
}

/// The packets that arrive within the window, flow by flow.
#[derive(Debug)]
struct Inbox<P> {
    /// Where the packets of a flow end.
    ends: Vec<u32>,
    arrivals: Vec<Arrival<P>>,
    /// All of them in order of time, and their flows.
    taken: Vec<(u32, Arrival<P>)>,
}

impl<P: Copy> Inbox<P> {
    fn new(flows: usize) -> Inbox<P> {
        Inbox { ends: vec![0; flows], arrivals: Vec::new(), taken: Vec::new() }
    }

    fn fill(&mut self, path: &mut impl Carrier<P>, before: Time) {
        let Inbox { ends, arrivals, taken } = self;
        taken.clear();
        ends.fill(0);
        path.take_known(before, |due, packet, &payload| {
            ends[packet.class as usize] += 1;
            if let Some((_, last)) = taken.last_mut() {
                last.more = last.place.at == due;
            }
            let place = Place::of_arrival(due, taken.len() as u32);
            taken.push((packet.class, Arrival { place, payload, codepoint: packet.ecn, more: false }));
        });
        let mut sum = 0;
        for end in &mut *ends {
            (*end, sum) = (sum, sum + *end);
        }
        arrivals.clear();
        if let Some((_, any)) = taken.first() {
            arrivals.resize(taken.len(), *any);
        }
        for (flow, arrival) in taken {
            let end = &mut ends[*flow as usize];
            arrivals[*end as usize] = *arrival;
            *end += 1;
        }
    }
}

/// What an event offers to the path.
#[derive(Clone, Copy, Debug)]
struct Offer<T> {
    place: Place,
    flow: u32,
    what: T,
}

/// What all events of a window offer to one direction, to be sorted.
#[derive(Debug)]
struct Outbox<T> {
    offers: Vec<Offer<T>>,
    sorted: Vec<Offer<T>>,
    buckets: Vec<u32>,
}

impl<T: Copy> Outbox<T> {
    fn new() -> Outbox<T> {
        Outbox { offers: Vec::new(), sorted: Vec::new(), buckets: Vec::new() }
    }

    /// Sorts what was offered from `from` on and before `end`. Offers of one event keep their order.
    fn sort(&mut self, from: Time, end: Time) -> &[Offer<T>] {
        let Outbox { offers, sorted, buckets } = self;
        sorted.clear();
        let Some(&any) = offers.first() else { return sorted };
        // Into about as many buckets as there are offers, each as long a time; then within them.
        let span = end.saturating_since(from).as_nanos();
        let shift = (span / offers.len() as u64).max(1).ilog2();
        buckets.clear();
        buckets.resize((span >> shift) as usize + 2, 0);
        let bucket = |offer: &Offer<T>| (offer.place.at.saturating_since(from).as_nanos() >> shift) as usize;
        for offer in &*offers {
            buckets[bucket(offer) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut *buckets {
            sum += *start;
            *start = sum;
        }
        sorted.resize(offers.len(), any);
        for offer in offers.drain(..) {
            let place = &mut buckets[bucket(&offer)];
            sorted[*place as usize] = offer;
            *place += 1;
        }
        insert_in_order(sorted);
        sorted
    }
}

/// Sorts what is almost in order, and stays fast if it is not.
fn insert_in_order<T: Copy>(offers: &mut [Offer<T>]) {
    let mut moves = 8 * offers.len();
    for index in 1..offers.len() {
        let offer = offers[index];
        let mut place = index;
        while place > 0 && offers[place - 1].place > offer.place {
            offers[place] = offers[place - 1];
            place -= 1;
        }
        offers[place] = offer;
        moves = moves.saturating_sub(index - place);
        if moves == 0 {
            return offers.sort_by_key(|offer| offer.place);
        }
    }
}

/// Segments that a sender hands over together.
#[derive(Clone, Copy, Debug)]
struct Burst {
    first: Segment,
    count: u32,
    codepoint: Ecn,
    kind: Kind,
}

/// The method of a [`Wire`] that they went through.
#[derive(Clone, Copy, Debug)]
enum Kind {
    One,
    Run,
    Markable { cwr: bool },
}

/// Where the senders' segments go in a round.
struct Sent<'a> {
    place: Place,
    offers: &'a mut Vec<Offer<Burst>>,
}

impl Sent<'_> {
    #[inline(always)]
    fn offer(&mut self, flow: u32, what: Burst) {
        self.offers.push(Offer { place: self.place, flow, what });
    }
}

impl Wire for Sent<'_> {
    #[inline]
    fn send(&mut self, _: Time, flow: u32, first: Segment, codepoint: Ecn) {
        self.offer(flow, Burst { first, count: 1, codepoint, kind: Kind::One });
    }

    #[inline]
    fn send_run(&mut self, _: Time, flow: u32, first: Segment, count: u32) {
        self.offer(flow, Burst { first, count, codepoint: Ecn::NotEct, kind: Kind::Run });
    }

    fn send_markable_run(&mut self, _: Time, flow: u32, run: MarkableRun) {
        let MarkableRun { first, count, cwr, codepoint } = run;
        self.offer(flow, Burst { first, count, codepoint, kind: Kind::Markable { cwr } });
    }
}

/// Where the receivers' acknowledgements go in a round.
struct Answered<'a> {
    place: Place,
    /// How long they take to the sender, if they meet no others; those that arrive before this time go there at once.
    delay: Option<Duration>,
    end: Time,
    arriving: &'a mut Vec<Arrival<Acknowledgement>>,
    carried: Tally,
    offers: &'a mut Vec<Offer<Acknowledgement>>,
}

impl ReturnWire for Answered<'_> {
    #[inline]
    fn send(&mut self, _: Time, flow: u32, ack: Acknowledgement) {
        if let Some(delay) = self.delay {
            let place = self.place.of_answer(delay);
            if place.at < self.end {
                self.carried.packets += 1;
                self.carried.bytes += Bytes::new(ack.wire_bytes() as u64);
                let arrival = Arrival { place, payload: ack, codepoint: ack.codepoint(), more: false };
                return self.arriving.push(arrival);
            }
        }
        self.offers.push(Offer { place: self.place, flow, what: ack });
    }
}

/// A flow to which something happens within the window, and the places of its packets in the inboxes.
#[derive(Clone, Debug)]
struct Awake {
    flow: u32,
    segments: Range<u32>,
    acks: Range<u32>,
}

/// What rounds need besides the world.
#[derive(Debug)]
pub(crate) struct Rounds {
    /// Everything before has happened.
    from: Time,
    /// How many there were.
    pub(crate) count: u64,
    /// A flow that goes on, the last time that one was looked for.
    going_on: usize,
    segments: Inbox<Segment>,
    acks: Inbox<Acknowledgement>,
    awake: Vec<Awake>,
    sent: Outbox<Burst>,
    answered: Outbox<Acknowledgement>,
    /// The acknowledgements that arrive at one flow.
    arriving: Vec<Arrival<Acknowledgement>>,
}

impl Rounds {
    fn new(flows: usize) -> Rounds {
        Rounds {
            from: Time::ZERO,
            count: 0,
            going_on: 0,
            segments: Inbox::new(flows),
            acks: Inbox::new(flows),
            awake: Vec::new(),
            sent: Outbox::new(),
            answered: Outbox::new(),
            arriving: Vec::new(),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

impl<A: Agenda, F: Carrier<Segment> + Observer, R: Carrier<Acknowledgement>> World<A, F, R> {
    /// What rounds need, if this run may have some.
    pub(crate) fn rounds(&self) -> Option<Box<Rounds>> {
        let known = |time: Option<Time>| time.is_some();
        let fits = self.flows.len() >= self.least_flows
            && self.hosts.is_none()
            && self.flows.iter().all(Flow::meets_in_the_path_only)
            && known(self.forward.chain.known_until(Time::ZERO))
            && known(self.reverse.chain.known_until(Time::ZERO));
        fits.then(|| Box::new(Rounds::new(self.flows.len())))
    }

    /// [`World::advance`] in rounds, where that is possible and worth it.
    pub(crate) fn advance_in_rounds(
        &mut self,
        rounds: &mut Rounds,
        until: Time,
        cancel: &AtomicBool,
    ) -> bool {
        while !self.has_ended() && rounds.from <= until {
            let from = rounds.from;
            self.settle(from);
            let known = self.known_until(from);
            let window = self.window(known.min(until.saturating_add(Duration::from_nanos(1))));
            if self.is_worth_it(from, window.end, known)
                && self.goes_on_until(window.end, &mut rounds.going_on)
            {
                self.round(rounds, from, &window);
                rounds.count += 1;
                rounds.from = window.end;
                if cancel.load(Ordering::Relaxed) {
                    self.reach(Time::from_nanos(window.end.as_nanos() - 1));
                    return false;
                }
            } else {
                let end = window.end.max(from.saturating_add(PAUSE));
                let last = Time::from_nanos(end.as_nanos() - 1).min(until);
                let done = self.advance_by_events(last, cancel);
                rounds.from = if done { last.saturating_add(Duration::from_nanos(1)) } else { self.now };
                if !done {
                    return false;
                }
            }
        }
        true
    }

    /// The first law: when a packet may arrive that is not known at `from`.
    fn known_until(&self, from: Time) -> Time {
        let nothing = "rounds are for paths that know ahead";
        let there = self.forward.chain.known_until(from).expect(nothing);
        #[cfg(test)]
        let there =
            if let Some(tests::Breach::Longer(by)) = self.breach { there.saturating_add(by) } else { there };
        // Either all flows have a delay, or none.
        match self.reverse.chain.constant_delay(0) {
            Some(_) => there,
            None => there.min(self.reverse.chain.known_until(from).expect(nothing)),
        }
    }

    fn window(&mut self, end: Time) -> Window {
        let due = self.agenda.due(SAMPLER);
        let sample = if due < end { due } else { Time::NEVER };
        Window { end, sample, interval: self.sample_interval.unwrap_or(Duration::MAX) }
    }

    /// Whether enough packets are about to arrive before `end`; before `known`, those do that are known.
    fn is_worth_it(&self, from: Time, end: Time, known: Time) -> bool {
        let span = |end: Time| end.saturating_since(from).as_nanos() as u128;
        let packets = (self.forward.chain.known() + self.reverse.chain.known()) as u128;
        let least = (self.flows.len() / FLOWS_A_PACKET).max(1) as u128;
        packets * span(end) >= least * span(known) && from < end
    }

    /// The fourth law. `flow` is one that goes on, if there is one.
    fn goes_on_until(&self, end: Time, flow: &mut usize) -> bool {
        #[cfg(test)]
        if let Some(tests::Breach::Ends) = self.breach {
            return true;
        }
        if self.flows[*flow].goes_on_until(end) {
            return true;
        }
        let other = self.flows.iter().position(|other| other.goes_on_until(end));
        *flow = other.unwrap_or(*flow);
        other.is_some()
    }

    /// Everything that happens from `from` on and before the window's end.
    fn round(&mut self, rounds: &mut Rounds, from: Time, window: &Window) {
        rounds.segments.fill(&mut self.forward.chain, window.end);
        rounds.acks.fill(&mut self.reverse.chain, window.end);
        let mut sent = Sent { place: Place::of_timer(from, 0), offers: &mut rounds.sent.offers };
        let mut answered = Answered {
            place: sent.place,
            delay: None,
            end: window.end,
            arriving: &mut rounds.arriving,
            carried: Tally::default(),
            offers: &mut rounds.answered.offers,
        };
        let samples_flows = self.sample_flows && window.sample < window.end;
        // Those to which nothing happens are left alone.
        rounds.awake.clear();
        let mut begin = (0, 0);
        for index in 0..self.flows.len() {
            let end = (rounds.segments.ends[index], rounds.acks.ends[index]);
            if end != begin || samples_flows || self.agenda.due(FLOWS + index) < window.end {
                rounds.awake.push(Awake {
                    flow: index as u32,
                    segments: begin.0..end.0,
                    acks: begin.1..end.1,
                });
            }
            begin = end;
        }
        for (place, awake) in rounds.awake.iter().enumerate() {
            if let Some(later) = rounds.awake.get(place + 3) {
                self.flows[later.flow as usize].prefetch_events();
            }
            if let Some(soon) = rounds.awake.get(place + 1) {
                self.flows[soon.flow as usize].prefetch_windows();
            }
            let index = awake.flow as usize;
            let segments =
                &rounds.segments.arrivals[awake.segments.start as usize..awake.segments.end as usize];
            let acks = &rounds.acks.arrivals[awake.acks.start as usize..awake.acks.end as usize];
            answered.delay = self.reverse.chain.constant_delay(awake.flow);
            answered.arriving.clear();
            answered.arriving.extend_from_slice(acks);
            let flow = &mut self.flows[index];
            let series = samples_flows.then(|| &mut self.flow_series[index]);
            let ended = serve(awake.flow, flow, segments, window, series, &mut sent, &mut answered);
            self.open -= ended as usize;
            self.agenda.set(FLOWS + index, flow.next());
        }
        self.reverse.chain.note_carried(answered.carried);
        self.offer(rounds, from, window);
        let mut sample = window.sample;
        while sample < window.end {
            sample = window.next_sample(sample);
            self.agenda.set(SAMPLER, sample);
        }
    }

    /// The third law: hands the path what was offered, in the order of the events, and samples it in between.
    fn offer(&mut self, rounds: &mut Rounds, from: Time, window: &Window) {
        let mut sample = window.sample;
        #[cfg(test)]
        if let Some(tests::Breach::FlowByFlow) = self.breach {
            rounds.sent.offers.iter_mut().for_each(|offer| offer.place.offered = Time::ZERO);
            rounds.sent.offers.iter_mut().for_each(|offer| offer.place.number = 0);
        }
        for Offer { place, flow, what } in rounds.sent.sort(from, window.end) {
            while sample < window.end && place.is_after_sample(sample) {
                self.forward.chain.settle(sample);
                sample_links(&mut self.forward_series, sample, &self.forward.chain);
                sample = window.next_sample(sample);
            }
            let (now, Burst { first, count, codepoint, kind }) = (place.at, *what);
            match kind {
                Kind::One => self.forward.send(now, *flow, first, codepoint),
                Kind::Run => self.forward.send_run(now, *flow, first, count),
                Kind::Markable { cwr } => {
                    self.forward.send_markable_run(now, *flow, MarkableRun { first, count, cwr, codepoint });
                }
            }
        }
        while sample < window.end {
            self.forward.chain.settle(sample);
            sample_links(&mut self.forward_series, sample, &self.forward.chain);
            sample = window.next_sample(sample);
        }
        let mut sample = window.sample;
        for Offer { place, flow, what } in rounds.answered.sort(from, window.end) {
            while sample < window.end && place.is_after_sample(sample) {
                self.reverse.chain.settle(sample);
                sample_links(&mut self.reverse_series, sample, &self.reverse.chain);
                sample = window.next_sample(sample);
            }
            self.reverse.send(place.at, *flow, *what);
        }
        while sample < window.end {
            self.reverse.chain.settle(sample);
            sample_links(&mut self.reverse_series, sample, &self.reverse.chain);
            sample = window.next_sample(sample);
        }
    }
}

/// Everything that happens to one flow within the window, in order. Returns whether its measures ended.
#[inline(always)]
fn serve(
    index: u32,
    flow: &mut Flow,
    segments: &[Arrival<Segment>],
    window: &Window,
    mut series: Option<&mut FlowSeries>,
    sent: &mut Sent,
    answered: &mut Answered,
) -> bool {
    let (mut segments, mut acks, mut ended, mut sample) = (segments.iter(), 0, false, window.sample);
    let mut segment = segments.next();
    loop {
        let there = segment.map_or(Time::NEVER, |arrival| arrival.place.at);
        let back = answered.arriving.get(acks).map_or(Time::NEVER, |arrival| arrival.place.at);
        let arrival = there.min(back);
        let timer = flow.next();
        let now = arrival.min(timer);
        if let Some(series) = &mut series {
            while sample < window.end && (sample < now || (sample == now && arrival != now)) {
                if let Some(seen) = series::sample(sample, flow) {
                    series.push(seen);
                }
                sample = window.next_sample(sample);
            }
        }
        if now >= window.end {
            return ended;
        }
        if there == now
            && let Some(Arrival { place, payload, codepoint, more }) = segment
        {
            answered.place = *place;
            ended |= flow.on_segment(now, *payload, *codepoint, *more, answered);
            segment = segments.next();
        } else if back == now {
            let Arrival { place, payload, .. } = answered.arriving[acks];
            sent.place = place;
            flow.on_acknowledgement(now, &payload, sent);
            acks += 1;
        } else {
            sent.place = Place::of_timer(now, index);
            answered.place = sent.place;
            ended |= flow.on_timer(now, sent, answered);
        }
    }
}
