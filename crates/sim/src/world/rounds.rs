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
//!    its elements decide, or by what: every loss, mark, drop and random number is the same, also where a queue knows flows. A
//!    discipline, a policer or a change of the path only moves the place behind which a packet's time is known, and so the window's end.
//! 4. No event before the window's end ends the run, because some flow goes on until then ([`Flow::goes_on_until`]).
//!
//! The events of one flow are in order, and so are those of both its ends together, unless the ends tell each other nothing but by
//! packets ([`Flow::has_ends_apart`]).
//!
//! After a round, the world is as if its events had happened one at a time. So each window is decided anew: one that is too
//! short to be worth it, or of which one of these does not hold, is left to the events. Some runs have no rounds at all, because their
//! flows meet elsewhere, too: in hosts that take time or keep metrics, in a log, or in controllers that somebody brings; or because
//! some go the other way.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_path::{Carrier, Ecn, Tally};
use fullpipe_record::{FlowSeries, LinkSeries};
use fullpipe_units::{Bytes, Duration, Time};

use crate::agenda::Agenda;
use crate::flow::{Ends, Flow, ReturnWire};
use crate::packet::{Acknowledgement, Load, Segment};
use crate::sender::{MarkableRun, Wire};
use crate::series;
use crate::way::Way;
use crate::world::{FLOWS, SAMPLER, World, sample_links};

/// Fewer flows than these are as fast event by event: their memory is in the caches. A paced flow counts as [`PACED`], because its
/// packets lie among those of the others one by one.
pub(crate) const LEAST_FLOWS: usize = 128;
const PACED: usize = 4;
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
    /// Of equal times, what arrives comes first. Packets that arrive on the same way are in the order in which they were offered to
    /// it; never, for timers.
    offered: Time,
    /// Of those offered at the same time: see [`Place::of_arrival`] and [`Place::of_timer`].
    number: u32,
}

/// Set in the number of a timer's event, which has that of its flow otherwise.
const TIMER: u32 = 1 << 31;

impl Place {
    /// Of a packet that was in the path when the window began: the `number`th that leaves it.
    fn of_arrival(at: Time, number: u32) -> Place {
        debug_assert!(number < TIMER, "{number} packets in a window");
        Place { at, offered: Time::ZERO, number }
    }

    fn of_timer(at: Time, flow: u32) -> Place {
        Place { at, offered: Time::NEVER, number: TIMER | flow }
    }

    /// Whether it comes after the sample at `time`: arrivals come before a sample, timers after it.
    fn is_after_sample(&self, time: Time) -> bool {
        self.at > time || (self.at == time && self.offered == Time::NEVER)
    }
}

/// A packet that arrives within the window.
#[derive(Clone, Copy, Debug)]
struct Arrival<P> {
    at: Time,
    payload: P,
    /// How many arrive before it.
    number: u32,
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
    /// In an empty place.
    nothing: P,
}

impl<P: Copy> Inbox<P> {
    fn new(flows: usize, nothing: P) -> Inbox<P> {
        Inbox { ends: vec![0; flows], arrivals: Vec::new(), nothing }
    }

    /// Takes what leaves the path before `before`.
    fn fill<W: Way>(&mut self, path: &mut W, before: Time, of: impl Fn(&W::Load) -> Option<&P>) {
        let Inbox { ends, arrivals, nothing } = self;
        ends.fill(0);
        let mut sum = 0;
        path.look_at_known(before, |flow| {
            ends[flow as usize] += 1;
            sum += 1;
        });
        if arrivals.len() < sum {
            let (payload, codepoint) = (*nothing, Ecn::NotEct);
            arrivals.resize(sum, Arrival { at: Time::NEVER, payload, number: 0, codepoint, more: false });
        }
        let mut begin = 0;
        for end in &mut *ends {
            (*end, begin) = (begin, begin + *end);
        }
        let (mut number, mut last) = (0, (Time::NEVER, 0));
        path.take_known(before, |at, packet, load| {
            let payload = *of(load).expect("runs with flows in both directions have no rounds");
            let end = &mut ends[packet.class as usize];
            if last.0 == at {
                arrivals[last.1].more = true;
            }
            last = (at, *end as usize);
            arrivals[*end as usize] = Arrival { at, payload, number, codepoint: packet.ecn, more: false };
            *end += 1;
            number += 1;
        });
    }
}

/// An acknowledgement on a way back that knows no other flow.
#[derive(Clone, Copy, Debug)]
struct Answer {
    /// Where it arrives.
    place: Place,
    flow: u32,
    ack: Acknowledgement,
}

/// What an event offers to the path.
#[derive(Clone, Copy, Debug)]
struct Offer<T> {
    at: Time,
    offered: Time,
    number: u32,
    flow: u32,
    what: T,
}

impl<T> Offer<T> {
    fn new(place: Place, flow: u32, what: T) -> Offer<T> {
        let Place { at, offered, number } = place;
        Offer { at, offered, number, flow, what }
    }

    /// The place of the event.
    fn place(&self) -> Place {
        Place { at: self.at, offered: self.offered, number: self.number }
    }
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
        let bucket = |offer: &Offer<T>| (offer.at.saturating_since(from).as_nanos() >> shift) as usize;
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
        while place > 0 && offers[place - 1].place() > offer.place() {
            offers[place] = offers[place - 1];
            place -= 1;
        }
        offers[place] = offer;
        moves = moves.saturating_sub(index - place);
        if moves == 0 {
            return offers.sort_by_key(Offer::place);
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
        self.offers.push(Offer::new(self.place, flow, what));
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
    /// How long they take to the sender, if they meet no others.
    delay: Option<Duration>,
    /// Those that take so long.
    answers: &'a mut Vec<Answer>,
    offers: &'a mut Vec<Offer<Acknowledgement>>,
}

impl ReturnWire for Answered<'_> {
    #[inline]
    fn send(&mut self, now: Time, flow: u32, ack: Acknowledgement) {
        match self.delay {
            Some(delay) => {
                let place = Place { at: now.saturating_add(delay), offered: now, number: self.place.number };
                self.answers.push(Answer { place, flow, ack });
            }
            None => self.offers.push(Offer::new(self.place, flow, ack)),
        }
    }
}

/// A flow to which something happens within the window, and the places of its packets in the inboxes.
#[derive(Clone, Debug)]
struct Awake {
    flow: u32,
    segments: Range<u32>,
    acks: Range<u32>,
    answers: Range<u32>,
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
    /// The acknowledgements on their way to one flow.
    answers: Vec<Answer>,
    /// Those that arrive after the window, flow by flow; the path knows nothing of them. And those of the window before.
    on_their_way: Vec<Answer>,
    were_on_their_way: Vec<Answer>,
}

impl Rounds {
    fn new(flows: usize) -> Rounds {
        Rounds {
            from: Time::ZERO,
            count: 0,
            going_on: 0,
            segments: Inbox::new(flows, Segment::syn(0, false)),
            acks: Inbox::new(flows, Acknowledgement::NONE),
            awake: Vec::new(),
            sent: Outbox::new(),
            answered: Outbox::new(),
            answers: Vec::new(),
            on_their_way: Vec::new(),
            were_on_their_way: Vec::new(),
        }
    }

    /// Finds out which flows are awake: packets arrive, or `wakes` says so. The others are left alone.
    fn wake(&mut self, wakes: impl Fn(usize) -> bool) {
        self.awake.clear();
        let (mut segments, mut acks, mut answers) = (0..0, 0..0, 0..0);
        for (flow, ends) in self.segments.ends.iter().zip(&self.acks.ends).enumerate() {
            segments = segments.end..*ends.0;
            acks = acks.end..*ends.1;
            answers.start = answers.end;
            while self.were_on_their_way.get(answers.end as usize).is_some_and(|one| one.flow == flow as u32)
            {
                answers.end += 1;
            }
            if !(segments.is_empty() && acks.is_empty() && answers.is_empty()) || wakes(flow) {
                let (flow, segments, acks, answers) =
                    (flow as u32, segments.clone(), acks.clone(), answers.clone());
                self.awake.push(Awake { flow, segments, acks, answers });
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;

impl<A: Agenda, F: Way, R: Way> World<A, F, R> {
    /// What rounds need, if this run may have some.
    pub(crate) fn rounds(&self) -> Option<Box<Rounds>> {
        let known = |time: Option<Time>| time.is_some();
        let count = |flow: &Flow| if flow.settings.sender.controller.paced { PACED } else { 1 };
        let fits = !F::Load::MIXED
            && self.flows.iter().map(count).sum::<usize>() >= self.least_flows
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
            self.settle_what_is_shared(from);
            let known = self.known_until(from);
            let window = self.window(known.min(after(until)));
            if self.is_worth_it(rounds, window.end, known)
                && self.goes_on_until(window.end, &mut rounds.going_on)
            {
                self.round(rounds, &window);
                rounds.count += 1;
                rounds.from = window.end;
                if cancel.load(Ordering::Relaxed) {
                    self.hand_back(rounds);
                    self.reach(before(window.end));
                    return false;
                }
            } else {
                self.hand_back(rounds);
                let last = before(window.end.max(from.saturating_add(PAUSE))).min(until);
                let done = self.advance_by_events(last, cancel);
                rounds.from = if done { after(last) } else { self.now };
                if !done {
                    return false;
                }
            }
        }
        self.hand_back(rounds);
        true
    }

    /// Brings up to `now` what flows meet in.
    fn settle_what_is_shared(&mut self, now: Time) {
        self.forward.chain.settle(now);
        if self.reverse.chain.constant_delay(0).is_none() {
            self.reverse.chain.settle(now);
        }
    }

    /// Offers the path the acknowledgements that are on their way without it, so that it can hand them out.
    fn hand_back(&mut self, rounds: &mut Rounds) {
        let Rounds { on_their_way, .. } = rounds;
        // Those of one event stay in order.
        on_their_way.sort_by_key(|answer| (answer.place.offered, answer.place.number));
        for Answer { place, flow, ack } in on_their_way.drain(..) {
            ReturnWire::send(&mut self.reverse, place.offered, flow, ack);
        }
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
    fn is_worth_it(&self, rounds: &Rounds, end: Time, known: Time) -> bool {
        let from = rounds.from;
        let span = |end: Time| end.saturating_since(from).as_nanos() as u128;
        let acks = self.reverse.chain.known() + rounds.on_their_way.len();
        let packets = (self.forward.chain.known() + acks) as u128;
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

    /// Everything that happens before the window's end.
    #[inline(never)]
    fn round(&mut self, rounds: &mut Rounds, window: &Window) {
        rounds.segments.fill(&mut self.forward.chain, window.end, F::Load::segment);
        rounds.acks.fill(&mut self.reverse.chain, window.end, R::Load::acknowledgement);
        std::mem::swap(&mut rounds.on_their_way, &mut rounds.were_on_their_way);
        rounds.on_their_way.clear();
        let samples = self.samples_flows && window.sample < window.end;
        let agenda = &self.agenda;
        rounds.wake(|flow| samples || agenda.due(FLOWS + flow) < window.end);
        let mut sent = Sent { place: Place::of_timer(rounds.from, 0), offers: &mut rounds.sent.offers };
        let mut answered = Answered {
            place: sent.place,
            delay: None,
            answers: &mut rounds.answers,
            offers: &mut rounds.answered.offers,
        };
        let mut carried = Tally::default();
        for (place, awake) in rounds.awake.iter().enumerate() {
            if let Some(later) = rounds.awake.get(place + 3) {
                self.flows[later.flow as usize].prefetch_events();
            }
            if let Some(soon) = rounds.awake.get(place + 1) {
                self.flows[soon.flow as usize].prefetch_windows();
            }
            let index = awake.flow as usize;
            answered.delay = self.reverse.chain.constant_delay(awake.flow);
            answered.answers.clear();
            let acks = rounds.acks.arrivals[range(&awake.acks)].iter();
            answered.answers.extend(acks.map(|ack| Answer {
                place: Place::of_arrival(ack.at, ack.number),
                flow: awake.flow,
                ack: ack.payload,
            }));
            let from_path = answered.answers.len();
            answered.answers.extend_from_slice(&rounds.were_on_their_way[range(&awake.answers)]);
            let segments = &rounds.segments.arrivals[range(&awake.segments)];
            let flow = &mut self.flows[index];
            let arrived = if samples || !flow.has_ends_apart(window.end) {
                let series = samples.then(|| &mut self.flow_series[index]);
                serve(
                    Ends::Both,
                    flow,
                    awake.flow,
                    segments,
                    window,
                    series,
                    &mut sent,
                    &mut answered,
                    &mut self.open,
                )
            } else {
                serve(
                    Ends::Receiver,
                    flow,
                    awake.flow,
                    segments,
                    window,
                    None,
                    &mut sent,
                    &mut answered,
                    &mut self.open,
                );
                serve(
                    Ends::Sender,
                    flow,
                    awake.flow,
                    &[],
                    window,
                    None,
                    &mut sent,
                    &mut answered,
                    &mut self.open,
                )
            };
            for answer in &answered.answers[from_path..arrived] {
                carried.packets += 1;
                carried.bytes += Bytes::new(answer.ack.wire_bytes() as u64);
            }
            rounds.on_their_way.extend_from_slice(&answered.answers[arrived..]);
            self.agenda.set(FLOWS + index, flow.next());
        }
        if carried.packets > 0 {
            self.reverse.chain.note_carried(carried);
        }
        self.offer(rounds, window);
        let mut sample = window.sample;
        while sample < window.end {
            sample = window.next_sample(sample);
            self.agenda.set(SAMPLER, sample);
        }
    }

    /// The third law: hands the path what was offered, in the order of the events, and samples it in between.
    fn offer(&mut self, rounds: &mut Rounds, window: &Window) {
        #[cfg(test)]
        if let Some(tests::Breach::FlowByFlow) = self.breach {
            rounds.sent.offers.iter_mut().for_each(|offer| (offer.offered, offer.number) = (Time::ZERO, 0));
        }
        let mut sample = window.sample;
        for offer in rounds.sent.sort(rounds.from, window.end) {
            let (now, flow) = (offer.at, offer.flow);
            let place = Some(offer.place());
            sample_before(place, &mut self.forward_series, &mut self.forward.chain, window, &mut sample);
            let Burst { first, count, codepoint, kind } = offer.what;
            match kind {
                Kind::One => Wire::send(&mut self.forward, now, flow, first, codepoint),
                Kind::Run => self.forward.send_run(now, flow, first, count),
                Kind::Markable { cwr } => {
                    self.forward.send_markable_run(now, flow, MarkableRun { first, count, cwr, codepoint });
                }
            }
        }
        sample_before(None, &mut self.forward_series, &mut self.forward.chain, window, &mut sample);
        let mut sample = window.sample;
        for offer in rounds.answered.sort(rounds.from, window.end) {
            let place = Some(offer.place());
            sample_before(place, &mut self.reverse_series, &mut self.reverse.chain, window, &mut sample);
            ReturnWire::send(&mut self.reverse, offer.at, offer.flow, offer.what);
        }
        sample_before(None, &mut self.reverse_series, &mut self.reverse.chain, window, &mut sample);
    }
}

/// Samples the queues of a direction where that comes before what happens at `place`; all samples of the window, if nothing
/// does.
#[inline(always)]
fn sample_before<P>(
    place: Option<Place>,
    series: &mut [LinkSeries],
    chain: &mut impl Carrier<P>,
    window: &Window,
    sample: &mut Time,
) {
    while *sample < window.end
        && !series.is_empty()
        && place.is_none_or(|place| place.is_after_sample(*sample))
    {
        chain.settle(*sample);
        sample_links(series, *sample, chain);
        *sample = window.next_sample(*sample);
    }
}

fn range(places: &Range<u32>) -> Range<usize> {
    places.start as usize..places.end as usize
}

/// The time right after `time`.
fn after(time: Time) -> Time {
    time.saturating_add(Duration::from_nanos(1))
}

/// The time right before one that is not zero.
fn before(time: Time) -> Time {
    Time::from_nanos(time.as_nanos() - 1)
}

/// Everything that happens to the ends of one flow within the window, in order. Returns how many of the answers have arrived.
#[expect(clippy::too_many_arguments, reason = "all that is at hand in a round")]
#[inline(always)]
fn serve(
    ends: Ends,
    flow: &mut Flow,
    index: u32,
    segments: &[Arrival<Segment>],
    window: &Window,
    mut series: Option<&mut FlowSeries>,
    sent: &mut Sent,
    answered: &mut Answered,
    open: &mut usize,
) -> usize {
    let (mut segments, mut arrived, mut sample) = (segments.iter(), 0, window.sample);
    let mut segment = segments.next();
    loop {
        let there = segment.map_or(Time::NEVER, |arrival| arrival.at);
        let answer = answered.answers.get(arrived).filter(|_| ends != Ends::Receiver);
        let back = answer.map_or(Time::NEVER, |answer| answer.place.at);
        let arrival = there.min(back);
        let now = arrival.min(flow.next_of(ends));
        if let Some(series) = &mut series {
            while sample < window.end && (sample < now || (sample == now && arrival != now)) {
                series::push(sample, flow, series);
                sample = window.next_sample(sample);
            }
        }
        if now >= window.end {
            return arrived;
        }
        let ended = if there == now
            && let Some(Arrival { payload, number, codepoint, more, .. }) = segment
        {
            answered.place = Place::of_arrival(now, *number);
            segment = segments.next();
            flow.on_segment(now, *payload, *codepoint, *more, answered)
        } else if back == now {
            let Answer { place, ack, .. } = answered.answers[arrived];
            sent.place = place;
            arrived += 1;
            flow.on_acknowledgement(now, &ack, sent);
            false
        } else {
            sent.place = Place::of_timer(now, index);
            answered.place = sent.place;
            flow.on_timer_of(ends, now, sent, answered)
        };
        *open -= ended as usize;
    }
}
