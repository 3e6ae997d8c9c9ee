//! The chain: elements in order, and the packets between its two ends.
//!
//! Most elements are transit functions: given a packet's arrival they know its departure. A *stage* is a sequence of them,
//! composed when the packet is offered; the packet is then stored once, with the time it leaves the last of them. So a
//! hop costs no event, however many elements it has. A new stage begins behind an element that reorders, because an
//! element that keeps order must see arrivals in order; between stages a packet waits in a heap.

use crate::carrier::Carrier;
use crate::change::Change;
use crate::config::ElementConfig;
use crate::counts::Counts;
use crate::elements::Element;
use crate::error::ConfigError;
use crate::gate::{Departure, Gate, MakeDiscipline, not_managed};
use crate::hold::{Held, Hold};
use crate::packet::{Admission, BurstFate, Cause, Fate, Moment, Packet, Tally};
use crate::prefetch::prefetch;
use crate::queue::QueueView;
use fullpipe_units::{Duration, Time};
use std::collections::BTreeMap;

/// The path in one direction. `P` is the caller's own token for a packet, handed back when it leaves (and cloned if the
/// path duplicates it).
#[derive(Debug)]
pub struct Chain<P> {
    /// The stages before the last; most chains have none.
    inner: Vec<Stage<P>>,
    last: Stage<P>,
    shape: Shape,
    /// Whether packets move inside: there are several stages, or a gate.
    moves: bool,
    /// Whether any element takes bursts whole.
    bursts: bool,
    /// The burst that is on its way from one stage to another.
    burst: Vec<(Packet, P)>,
    /// The number of the latest.
    latest_burst: u16,
    /// When something happens next: the earliest head of any stage.
    next: Time,
    /// The latest time passed by the caller.
    clock: Time,
    counts: Counts,
    /// The places of the elements that are not a delay of the last holding queue: (stage, element).
    places: Vec<(usize, usize)>,
    /// Which of them are queues.
    queues: Vec<(usize, usize)>,
}

/// Shapes of a chain that are common, and that need fewer checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    /// Only a delay, the same for all packets: a FIFO.
    Delay,
    /// One link of constant rate whose limit counts bytes, perhaps random loss, and a FIFO.
    Link,
    /// Any other.
    Any,
}

impl<P: Clone> Chain<P> {
    /// Builds a chain. A packet of class `c` is delayed by a further `class_delays[c]` at the end; without
    /// classes, no packet is. Randomness depends on `seed` and each element's position, and on nothing else.
    ///
    /// # Errors
    /// When the numbers of an element are invalid.
    pub fn new(
        elements: &[ElementConfig],
        class_delays: &[Duration],
        seed: u64,
    ) -> Result<Chain<P>, ConfigError> {
        Chain::with_disciplines(elements, class_delays, seed, OwnDisciplines::new())
    }

    /// The same, with disciplines that are not built in: by the index of the element whose discipline each replaces.
    ///
    /// # Errors
    /// When the numbers of an element are invalid, or it has no queue that a discipline could manage.
    ///
    /// # Panics
    /// If there is no element of such an index.
    pub fn with_disciplines(
        elements: &[ElementConfig],
        class_delays: &[Duration],
        seed: u64,
        own: OwnDisciplines,
    ) -> Result<Chain<P>, ConfigError> {
        Chain::build(elements, 0, class_delays, seed, own)
    }

    /// Builds what stands behind the first `before` elements of a direction, which something else takes the place of: the random
    /// elements draw what they draw in the whole chain.
    ///
    /// # Errors
    /// As [`Chain::new`].
    pub fn behind(
        before: usize,
        elements: &[ElementConfig],
        class_delays: &[Duration],
        seed: u64,
    ) -> Result<Chain<P>, ConfigError> {
        Chain::build(elements, before, class_delays, seed, OwnDisciplines::new())
    }

    fn build(
        elements: &[ElementConfig],
        before: usize,
        class_delays: &[Duration],
        seed: u64,
        mut own: OwnDisciplines,
    ) -> Result<Chain<P>, ConfigError> {
        let all = elements;
        let (elements, extra) = split_constant_delays(elements);
        let class_delays: Vec<Duration> = match class_delays {
            [] => vec![extra],
            _ => class_delays
                .iter()
                .map(|delay| Duration::from_nanos(delay.as_nanos().saturating_add(extra.as_nanos())))
                .collect(),
        };
        let mut stages = Stages::default();
        for (index, config) in elements.iter().enumerate() {
            if stages.run.last().is_some_and(Element::reorders) {
                stages.close(true, false);
            }
            let place = before + index;
            if stages.add_gate(config, place, seed, false, own.remove(&index))? {
                continue;
            }
            stages.begin_whole(config);
            let announced = stages.gate.is_some() || stages.run.iter().any(Element::takes_time);
            stages.add(Element::new(config, place, seed, announced)?);
        }
        if let Some(&index) = own.keys().next() {
            return Err(not_managed(&all[index], index));
        }
        let reorders = stages.run.last().is_some_and(Element::reorders);
        Ok(stages.into_chain(Hold::last(reorders, &class_delays), false))
    }

    /// Builds the same chain so that [`Chain::change`] can change it. It is slower: what lies behind an element that takes time
    /// must not see a packet before it gets there, so that a new stage begins there.
    ///
    /// # Errors
    /// As [`Chain::new`].
    pub fn changing(
        elements: &[ElementConfig],
        class_delays: &[Duration],
        seed: u64,
    ) -> Result<Chain<P>, ConfigError> {
        Chain::changing_with_disciplines(elements, class_delays, seed, OwnDisciplines::new())
    }

    /// The same, with disciplines that are not built in.
    ///
    /// # Errors
    /// As [`Chain::with_disciplines`].
    ///
    /// # Panics
    /// If there is no element of such an index.
    pub fn changing_with_disciplines(
        elements: &[ElementConfig],
        class_delays: &[Duration],
        seed: u64,
        mut own: OwnDisciplines,
    ) -> Result<Chain<P>, ConfigError> {
        if let Some((&index, _)) = own.iter().find(|(index, _)| elements[**index].queue().is_none()) {
            return Err(not_managed(&elements[index], index));
        }
        let mut stages = Stages::default();
        // Whether the next packets come from an element that reorders, through nothing but constant delays. At equal times, they
        // are in the order in which that element saw them, even if classes differ in their delay; if they do not, the order in
        // which they come is the same.
        let differ = class_delays.iter().any(|&delay| delay != class_delays[0]);
        let mut numbered = false;
        for (index, config) in elements.iter().enumerate() {
            let is_constant =
                matches!(config, ElementConfig::Delay { delay_ns } if delay_ns.changes.is_empty());
            if stages.add_gate(config, index, seed, true, own.remove(&index))? {
                // As of a link: what is in transmission would be changed.
                numbered = false;
                stages.close(false, false);
                continue;
            }
            if stages.begin_whole(config) {
                numbered = false;
            }
            let element = Element::changing(config, index, seed)?;
            let (reorders, takes_time) = (element.reorders(), element.takes_time());
            if !is_constant {
                numbered = false;
            }
            stages.add(element);
            if index + 1 == elements.len() && !matches!(config, ElementConfig::Link { .. }) {
                // The last holding queue adds the classes' delays. Of a link, it would be changed.
                return Ok(stages.into_chain(Hold::last(reorders || numbered, class_delays), numbered));
            }
            if takes_time {
                stages.close(reorders || numbered, numbered);
                numbered |= reorders && differ;
            }
        }
        Ok(stages.into_chain(Hold::last(false, class_delays), false))
    }

    /// Changes the element at `index`, from `from` on, as [`ElementConfig::change`] has changed its configuration. Everything up
    /// to `now` has happened.
    ///
    /// # Panics
    /// If the configuration does not allow the change, or the chain was not built by [`Chain::changing`].
    pub fn change(&mut self, now: Time, index: usize, from: Time, change: Change) {
        Carrier::settle(self, now);
        let (stage, element) = self.places[index];
        let Stage { gate, elements, hold, .. } = self.inner.get_mut(stage).unwrap_or(&mut self.last);
        match (gate.as_mut().filter(|_| element == GATE), change) {
            (Some(gate), Change::Rate(rate)) => {
                let times = gate.change_rate(from, rate, &hold.lengths());
                hold.change(&times);
            }
            (Some(gate), Change::Buffer(bytes)) => gate.change_limit(bytes),
            (Some(gate), change) => unreachable!("{gate:?} cannot change so: {change:?}"),
            (None, change) => Self::change_element(&mut elements[element], hold, from, change),
        }
        self.look_inside();
    }

    fn change_element(element: &mut Element, hold: &mut Hold<P>, from: Time, change: Change) {
        match (element, change) {
            (Element::ScheduledLink(queue), Change::Rate(rate)) => {
                let times = queue.change_rate(from, rate, &hold.lengths());
                hold.change(&times);
            }
            (element, change) => element.change(from, change),
        }
    }

    /// Offers a packet at `now`. Times never go back, across `push` and `pop`.
    ///
    /// # Panics
    /// If `now` is before an earlier call's, the packet's length is not in 1..=[`Packet::MAX_BYTES`], or its class is unknown or
    /// not below [`Packet::CLASSES`].
    #[inline]
    pub fn push(&mut self, now: Time, packet: Packet, payload: P) -> Admission {
        check(&packet);
        self.advance(now);
        self.counts.entered.add(packet.bytes);
        if self.shape == Shape::Delay {
            let due = self.last.hold.push(now, packet, payload);
            self.next = self.next.min(due);
            return Admission::Queued;
        }
        self.pass(now, packet, payload)
    }

    /// The rest of [`Chain::push`].
    #[inline(never)]
    fn pass(&mut self, now: Time, packet: Packet, payload: P) -> Admission {
        if self.moves {
            return self.pass_moving(now, packet, payload);
        }
        let entry = Entry { from: 0, moment: Moment { arrival: now, clock: now }, packet };
        let (admission, due) = self.last.pass(&mut self.counts, entry, payload);
        self.next = self.next.min(due);
        admission
    }

    /// [`Chain::pass`] where packets move inside.
    fn pass_moving(&mut self, now: Time, packet: Packet, payload: P) -> Admission {
        let first = self.inner.first_mut().unwrap_or(&mut self.last);
        // What is due leaves before the packet comes.
        first.serve(now, &mut self.counts);
        let admission = first.enter(now, packet, payload, &mut self.counts);
        self.look_inside();
        admission
    }

    /// Offers `count` packets of one length and class at `now`, which the host hands over together: as so many calls of
    /// [`Chain::push`] would, but faster, and as one burst where an element takes bursts whole. `payload` is called for each
    /// in turn, from zero.
    ///
    /// # Panics
    /// As [`Chain::push`] does.
    #[inline(always)]
    pub fn push_run(&mut self, now: Time, packet: Packet, count: u32, mut payload: impl FnMut(u32) -> P) {
        if self.bursts {
            return self.push_burst(now, (0..count).map(|index| (packet, payload(index))));
        }
        if self.moves {
            return self.push_run_moving(now, packet, count, payload);
        }
        if self.shape != Shape::Link {
            for index in 0..count {
                self.push(now, packet, payload(index));
            }
            return;
        }
        check(&packet);
        self.advance(now);
        self.counts.entered.add_many(count, packet.bytes);
        let (dropped, lost, due) = self.last.pass_plain_run(now, packet, count, payload);
        self.counts.dropped[Cause::QueueFull as usize].add_many(dropped, packet.bytes);
        self.counts.dropped[Cause::Lost as usize].add_many(lost, packet.bytes);
        self.next = self.next.min(due);
    }

    /// [`Chain::push_run`] where packets move inside.
    #[inline(never)]
    fn push_run_moving(&mut self, now: Time, packet: Packet, count: u32, mut payload: impl FnMut(u32) -> P) {
        check(&packet);
        self.advance(now);
        self.counts.entered.add_many(count, packet.bytes);
        let first = self.inner.first_mut().unwrap_or(&mut self.last);
        for index in 0..count {
            // What is due leaves before the packet comes.
            first.serve(now, &mut self.counts);
            first.enter(now, packet, payload(index), &mut self.counts);
        }
        self.look_inside();
    }

    /// Offers packets of one flow at `now`, which the host hands over together: as so many calls of [`Chain::push`], but as one
    /// burst where an element takes bursts whole.
    ///
    /// # Panics
    /// As [`Chain::push`] does.
    #[inline(never)]
    pub fn push_burst(&mut self, now: Time, parts: impl IntoIterator<Item = (Packet, P)>) {
        self.advance(now);
        self.latest_burst = self.latest_burst % Packet::MAX_BURST + 1;
        for (packet, payload) in parts {
            check(&packet);
            self.counts.entered.add(packet.bytes);
            self.burst.push((Packet { burst: self.latest_burst, ..packet }, payload));
        }
        let first = self.inner.first_mut().unwrap_or(&mut self.last);
        first.serve(now, &mut self.counts);
        let equal = self.burst.windows(2).all(|pair| pair[0].0.is_with(&pair[1].0));
        if first.whole && equal {
            first.enter_burst(now, &mut self.burst, &mut self.counts);
        } else if first.whole {
            let mut parts = std::mem::take(&mut self.burst).into_iter().peekable();
            while let Some(part) = parts.next() {
                let with = part.0;
                self.burst.push(part);
                self.burst.extend(std::iter::from_fn(|| parts.next_if(|next| with.is_with(&next.0))));
                first.enter_burst(now, &mut self.burst, &mut self.counts);
            }
        } else {
            for (packet, payload) in self.burst.drain(..) {
                first.enter(now, packet, payload, &mut self.counts);
            }
        }
        self.look_inside();
    }

    /// When to call [`Chain::pop`] next: when the next packet leaves, or, in a chain with an element that reorders and
    /// further ones behind it, when one moves on inside. [`Time::NEVER`] if nothing will happen.
    #[inline]
    pub fn next(&self) -> Time {
        self.next
    }

    /// The next packet that is due at or before `now`, with its exact due time. Packets leave in order of due time,
    /// equal times in order of insertion. How often and how late this is called changes no due time and no drop.
    #[inline]
    pub fn pop(&mut self, now: Time) -> Option<(Time, Packet, P)> {
        self.advance(now);
        if now < self.next || self.next == Time::NEVER {
            return None;
        }
        if self.shape != Shape::Any
            && let Hold::Fifo { ring, .. } = &mut self.last.hold
        {
            let held = ring.pop()?;
            self.next = ring.front().map_or(Time::NEVER, |held| held.due);
            self.counts.left.add(held.packet().bytes);
            return Some((held.due, held.packet(), held.payload));
        }
        self.pop_any(now)
    }

    /// [`Chain::pop`] from a chain of any shape, once `next` is due.
    #[inline(never)]
    fn pop_any(&mut self, now: Time) -> Option<(Time, Packet, P)> {
        if self.moves && !self.move_on(now) {
            return None;
        }
        // The clock has reached `next`, and nothing inside is due before it: so a packet is.
        let held = self.last.hold.pop()?;
        if self.moves {
            self.look_inside();
        } else {
            self.next = self.last.hold.next();
        }
        self.counts.left.add(held.packet().bytes);
        Some((held.due, held.packet(), held.payload))
    }

    /// [`Chain::pop`] without moving the payload: shows it to `take`, and then drops it.
    #[inline]
    pub fn pop_with<R>(&mut self, now: Time, take: impl FnOnce(Packet, &P) -> R) -> Option<R> {
        if self.shape == Shape::Any {
            return self.pop(now).map(|(_, packet, payload)| take(packet, &payload));
        }
        self.advance(now);
        let Hold::Fifo { ring, .. } = &mut self.last.hold else {
            unreachable!("only the shape `Any` is no FIFO")
        };
        // A packet that is due at `NEVER` is never handed out, whatever the time.
        let first = ring.front().filter(|held| held.due <= now && held.due != Time::NEVER)?;
        self.counts.left.add(first.packet().bytes);
        let taken = take(first.packet(), &first.payload);
        ring.pop();
        self.next = ring.front().map_or(Time::NEVER, |held| held.due);
        Some(taken)
    }

    /// Moves what is due by `now` from stage to stage. Returns whether a packet is due at the end.
    #[inline(never)]
    fn move_on(&mut self, now: Time) -> bool {
        if let Some(first) = self.inner.first_mut() {
            first.serve(now, &mut self.counts);
        }
        for index in 0..self.inner.len() {
            let (before, after) = self.inner.split_at_mut(index + 1);
            let (from, to) = (&mut before[index].hold, after.first_mut().unwrap_or(&mut self.last));
            while from.next() <= now && from.next() != Time::NEVER {
                // What is due leaves before the next packet comes.
                to.serve(from.next(), &mut self.counts);
                if to.keeps_numbers {
                    to.pass_numbered(from.pop_numbered());
                } else if to.whole {
                    let now = from.next();
                    take_burst(from, &mut self.burst);
                    to.enter_burst(now, &mut self.burst, &mut self.counts);
                } else if let Some(held) = from.pop() {
                    to.enter(held.due, held.packet(), held.payload, &mut self.counts);
                }
            }
            to.serve(now, &mut self.counts);
        }
        self.last.serve(now, &mut self.counts);
        self.look_inside();
        self.last.hold.next() <= now && self.last.hold.next() != Time::NEVER
    }

    /// Finds out what happens next in any stage.
    #[inline(never)]
    fn look_inside(&mut self) {
        self.next = self.last.next();
        for stage in &self.inner {
            self.next = self.next.min(stage.next());
        }
    }

    fn stages(&self) -> impl Iterator<Item = &Stage<P>> {
        self.inner.iter().chain([&self.last])
    }

    #[inline]
    fn advance(&mut self, now: Time) {
        assert!(now >= self.clock, "time goes back from {} to {now}", self.clock);
        self.clock = now;
    }

    /// The fate of all packets so far. Iterates over the packets inside.
    pub fn counts(&self) -> Counts {
        let mut counts = self.counts;
        // Counted again, so that a check of the sum is meaningful.
        counts.inside = self.held();
        counts
    }

    /// The packets inside, counted one by one.
    fn held(&self) -> Tally {
        let mut held = Tally::default();
        self.stages().flat_map(Stage::packets).for_each(|packet| held.add(packet.bytes));
        held
    }

    /// The number of queues, one for each element that has one in the chain.
    pub fn queues(&self) -> usize {
        self.queues.len()
    }

    /// A queue, in order along the path.
    ///
    /// # Panics
    /// If no queue has this `index`.
    pub fn queue(&self, index: usize) -> QueueView<'_> {
        let (stage, element) = self.queues[index];
        let stage = self.inner.get(stage).unwrap_or(&self.last);
        if let Some(gate) = stage.gate.as_deref().filter(|_| element == GATE) {
            return QueueView::new(gate);
        }
        stage.elements[element].queue().expect("the list names queues only")
    }
}

impl<P: Clone> Carrier<P> for Chain<P> {
    fn new(
        elements: &[ElementConfig],
        class_delays: &[Duration],
        seed: u64,
    ) -> Result<Chain<P>, ConfigError> {
        Chain::new(elements, class_delays, seed)
    }

    #[inline]
    fn push(&mut self, now: Time, packet: Packet, payload: P) {
        Chain::push(self, now, packet, payload);
    }

    #[inline(always)]
    fn push_run(&mut self, now: Time, packet: Packet, count: u32, payload: impl FnMut(u32) -> P) {
        Chain::push_run(self, now, packet, count, payload);
    }

    #[inline]
    fn next(&self) -> Time {
        Chain::next(self)
    }

    #[inline]
    fn pop(&mut self, now: Time) -> Option<(Time, Packet, P)> {
        Chain::pop(self, now)
    }

    #[inline]
    fn pop_with<T>(&mut self, now: Time, take: impl FnOnce(Packet, &P) -> T) -> Option<T> {
        Chain::pop_with(self, now, take)
    }

    #[inline]
    fn is_due(&mut self, now: Time) -> bool {
        // `pop` has already moved the packets that are due between stages.
        self.next <= now
    }

    #[inline]
    fn ahead(&self, places: usize) -> Option<(Packet, &P)> {
        let Hold::Fifo { ring, .. } = &self.last.hold else { return None };
        ring.get(places).map(|held| (held.packet(), &held.payload))
    }

    #[inline]
    fn prefetch(&self, places: usize) {
        if let Hold::Fifo { ring, .. } = &self.last.hold {
            prefetch(ring.place_ahead(places));
        }
    }

    fn settle(&mut self, now: Time) {
        self.advance(now);
        // Inside a stage there is nothing to do but at its gate: other queues keep a history.
        if self.next <= now {
            self.move_on(now);
        }
    }

    fn counts(&self) -> Counts {
        Chain::counts(self)
    }

    // Whatever has not reached the last holding queue by `now` gets there at `now` or later, and then has its delay before it.
    fn known_until(&self, now: Time) -> Option<Time> {
        Some(self.last.hold.known_until(now))
    }

    fn known(&self) -> usize {
        self.last.hold.len()
    }

    fn look_at_known(&self, before: Time, look: impl FnMut(u32)) {
        self.last.hold.look(before, look);
    }

    #[inline]
    fn take_known(&mut self, before: Time, mut take: impl FnMut(Time, Packet, &P)) {
        let counts = &mut self.counts;
        self.last.hold.take_before(before, |held| {
            counts.left.add(held.packet().bytes);
            take(held.due, held.packet(), &held.payload);
        });
        self.look_inside();
    }

    fn constant_delay(&self, class: u32) -> Option<Duration> {
        if self.moves || self.bursts || !self.last.elements.is_empty() {
            return None;
        }
        self.last.hold.delay_of(class)
    }

    fn note_carried(&mut self, carried: Tally) {
        self.counts.entered = self.counts.entered + carried;
        self.counts.left = self.counts.left + carried;
    }

    fn queues(&self) -> usize {
        Chain::queues(self)
    }

    fn queue(&self, index: usize) -> QueueView<'_> {
        Chain::queue(self, index)
    }
}

/// Splits off the constant delays at the end, and adds them up: the holding queue applies them.
fn split_constant_delays(elements: &[ElementConfig]) -> (&[ElementConfig], Duration) {
    let mut extra = Duration::ZERO;
    let mut rest = elements;
    while let [before @ .., ElementConfig::Delay { delay_ns }] = rest
        && delay_ns.changes.is_empty()
    {
        extra = Duration::from_nanos(extra.as_nanos().saturating_add(delay_ns.initial.as_nanos()));
        rest = before;
    }
    (rest, extra)
}

/// Packets are of a length and a flow that the path has room for.
#[inline]
fn check(packet: &Packet) {
    assert!(packet.bytes.wrapping_sub(1) < Packet::MAX_BYTES, "a packet of {} bytes", packet.bytes);
    assert!(packet.class < Packet::CLASSES, "a packet of class {}", packet.class);
}

/// Takes the first packet, and those of its burst that are due with it.
fn take_burst<P>(from: &mut Hold<P>, burst: &mut Vec<(Packet, P)>) {
    let mut first = from.first();
    while let Some((due, packet)) = first
        && let Some(held) = from.pop()
    {
        burst.push((packet, held.payload));
        first = from.first().filter(|(next, other)| *next == due && packet.is_with(other));
    }
}

/// The length of a burst.
fn total<P>(burst: &[(Packet, P)]) -> u64 {
    burst.iter().map(|(packet, _)| packet.bytes as u64).sum()
}

/// Disciplines that are not built in, by the index of their element.
pub type OwnDisciplines = BTreeMap<usize, MakeDiscipline>;

/// The place of a gate among the elements of its stage.
const GATE: usize = usize::MAX;

/// A sequence of elements, and the packets that have passed it and wait for their time. A gate stands before the elements.
#[derive(Debug)]
struct Stage<P> {
    gate: Option<Box<Gate<P>>>,
    elements: Box<[Element]>,
    hold: Hold<P>,
    /// Whether its gate, or its first element, takes bursts whole.
    whole: bool,
    /// Whether a burst does not stay together on its way through it, unless it is taken whole.
    parts: bool,
    /// Whether packets keep the numbers by which the holding queue before this stage sorted them: it only delays them.
    keeps_numbers: bool,
}

/// A chain that is being built.
struct Stages<P> {
    closed: Vec<Stage<P>>,
    /// The gate and the elements of the stage that is still open.
    gate: Option<Box<Gate<P>>>,
    run: Vec<Element>,
    /// Whether its gate, or the first of them, takes bursts whole.
    whole: bool,
    places: Vec<(usize, usize)>,
    queues: Vec<(usize, usize)>,
}

impl<P> Default for Stages<P> {
    fn default() -> Stages<P> {
        Stages {
            closed: Vec::new(),
            gate: None,
            run: Vec::new(),
            whole: false,
            places: Vec::new(),
            queues: Vec::new(),
        }
    }
}

impl<P: Clone> Stages<P> {
    fn add(&mut self, element: Element) {
        let place = (self.closed.len(), self.run.len());
        self.places.push(place);
        if element.queue().is_some() {
            self.queues.push(place);
        }
        self.run.push(element);
    }

    /// Begins a stage with the gate of this element, if it needs one.
    fn add_gate(
        &mut self,
        config: &ElementConfig,
        index: usize,
        seed: u64,
        changing: bool,
        own: Option<MakeDiscipline>,
    ) -> Result<bool, ConfigError> {
        let Some(gate) = Gate::checked(config, index, seed, changing, own)? else { return Ok(false) };
        if self.gate.is_some() || !self.run.is_empty() {
            let reorders = self.run.last().is_some_and(Element::reorders);
            self.close(reorders, false);
        }
        self.whole = !config.unit().is_segment();
        let place = (self.closed.len(), GATE);
        self.places.push(place);
        self.queues.push(place);
        self.gate = Some(Box::new(gate));
        Ok(true)
    }

    /// Begins a stage with this element, if it takes bursts whole.
    fn begin_whole(&mut self, config: &ElementConfig) -> bool {
        if config.unit().is_segment() {
            return false;
        }
        if self.gate.is_some() || !self.run.is_empty() {
            let reorders = self.run.last().is_some_and(Element::reorders);
            self.close(reorders, false);
        }
        self.whole = true;
        true
    }

    /// Ends the open stage.
    fn close(&mut self, sorts: bool, keeps_numbers: bool) {
        let elements = std::mem::take(&mut self.run);
        let (gate, whole) = (self.gate.take(), std::mem::take(&mut self.whole));
        self.closed.push(Stage::new(gate, elements, Hold::inner(sorts), whole, keeps_numbers));
    }

    /// The chain whose last stage is the open one.
    fn into_chain(self, hold: Hold<P>, keeps_numbers: bool) -> Chain<P> {
        let Stages { closed: inner, gate, run, whole, places, queues } = self;
        let last = Stage::new(gate, run, hold, whole, keeps_numbers);
        let moves = !inner.is_empty() || last.gate.is_some();
        let bursts = whole || inner.iter().any(|stage| stage.whole);
        let shape = match (&*last.elements, &last.hold) {
            _ if moves || bursts => Shape::Any,
            ([], Hold::Fifo { .. }) => Shape::Delay,
            ([Element::Link(queue)] | [Element::Link(queue), Element::Loss(_)], Hold::Fifo { .. })
                if queue.is_plain() =>
            {
                Shape::Link
            }
            _ => Shape::Any,
        };
        Chain {
            inner,
            last,
            shape,
            moves,
            bursts,
            burst: Vec::new(),
            latest_burst: 0,
            next: Time::NEVER,
            clock: Time::ZERO,
            counts: Counts::default(),
            places,
            queues,
        }
    }
}

/// A packet that enters a stage at one of its elements.
#[derive(Clone, Copy)]
struct Entry {
    from: usize,
    moment: Moment,
    packet: Packet,
}

impl<P: Clone> Stage<P> {
    fn new(
        gate: Option<Box<Gate<P>>>,
        elements: Vec<Element>,
        hold: Hold<P>,
        whole: bool,
        keeps_numbers: bool,
    ) -> Stage<P> {
        let singly = elements.iter().skip((whole && gate.is_none()) as usize);
        let parts = singly.rev().take_while(|element| !element.merges()).any(Element::parts);
        Stage { gate, elements: elements.into(), hold, whole, parts, keeps_numbers }
    }

    /// Runs packets of one length through the stage of a chain of the shape [`Shape::Link`]. Returns how many found the queue
    /// full, how many were lost, and when the first of the others is due; [`Time::NEVER`] if there is none.
    #[inline]
    fn pass_plain_run(
        &mut self,
        now: Time,
        packet: Packet,
        count: u32,
        mut payload: impl FnMut(u32) -> P,
    ) -> (u32, u32, Time) {
        let ([Element::Link(queue), rest @ ..], Hold::Fifo { extra, latest, ring }) =
            (&mut *self.elements, &mut self.hold)
        else {
            unreachable!("not of the shape `Link`");
        };
        let mut loss = rest.first_mut();
        let (extra, mut first, mut lost) = (*extra, Time::NEVER, 0);
        ring.reserve(count as usize);
        let dropped = queue.admit_run(now, packet.bytes, count, |index, departure| {
            if let Some(Element::Loss(loss)) = &mut loss
                && loss.loses(departure)
            {
                lost += 1;
                return;
            }
            let due = departure.saturating_add(extra);
            debug_assert!(due >= *latest, "an element that must not reorder did");
            first = first.min(due);
            *latest = due;
            ring.push(Held::new(due, packet, payload(index)));
        });
        (dropped, lost, first)
    }

    /// When something happens in the stage next.
    fn next(&self) -> Time {
        let gate = self.gate.as_ref().map_or(Time::NEVER, |gate| gate.next());
        gate.min(self.hold.next())
    }

    /// Every packet inside, in no order.
    fn packets(&self) -> impl Iterator<Item = Packet> {
        self.gate.iter().flat_map(|gate| gate.packets()).chain(self.hold.packets())
    }

    /// A packet reaches the stage; what is due before it has been served.
    fn enter(&mut self, now: Time, packet: Packet, payload: P, counts: &mut Counts) -> Admission {
        let Some(gate) = &mut self.gate else {
            let entry = Entry { from: 0, moment: Moment { arrival: now, clock: now }, packet };
            return self.pass(counts, entry, payload).0;
        };
        let dropped = gate.arrive(now, [(packet, payload)], counts);
        self.serve(now, counts);
        dropped.map_or(Admission::Queued, Admission::Dropped)
    }

    /// A burst reaches the stage, which takes it whole if it can; what is due before it has been served.
    fn enter_burst(&mut self, now: Time, burst: &mut Vec<(Packet, P)>, counts: &mut Counts) {
        if burst.len() > 1
            && let Some(gate) = &mut self.gate
            && gate.takes(total(burst))
        {
            gate.arrive(now, burst.drain(..), counts);
            self.serve(now, counts);
            return;
        }
        if burst.len() > 1 && self.gate.is_none() {
            let packets: Vec<Packet> = burst.iter().map(|(packet, _)| *packet).collect();
            let moment = Moment { arrival: now, clock: now };
            match self.elements[0].admit_burst(moment, &packets) {
                BurstFate::Dropped(cause) => {
                    packets.iter().for_each(|packet| counts.drop(cause, packet));
                    burst.clear();
                }
                BurstFate::Leaves(arrival) => {
                    for (packet, payload) in burst.drain(..) {
                        let entry = Entry { from: 1, moment: Moment { arrival, clock: now }, packet };
                        self.pass(counts, entry, payload);
                    }
                }
                BurstFate::Apart(times) => {
                    for ((packet, payload), decided) in burst.drain(..).zip(times) {
                        match decided {
                            Ok(arrival) => {
                                let moment = Moment { arrival, clock: now };
                                self.pass(counts, Entry { from: 1, moment, packet: packet.alone() }, payload);
                            }
                            Err(cause) => counts.drop(cause, &packet),
                        }
                    }
                }
                BurstFate::Split => {}
            }
        }
        for (packet, payload) in burst.drain(..) {
            self.enter(now, packet.alone(), payload, counts);
        }
    }

    /// Lets through what is due at the gate by `now`.
    fn serve(&mut self, now: Time, counts: &mut Counts) {
        // Taken, so that what leaves it can pass the rest of the stage.
        let Some(mut gate) = self.gate.take() else { return };
        while gate.next() <= now && gate.next() != Time::NEVER {
            let clock = gate.next();
            gate.serve(counts, |counts, Departure { at, packet, payload }| {
                let entry = Entry { from: 0, moment: Moment { arrival: at, clock }, packet };
                self.pass(counts, entry, payload);
            });
        }
        self.gate = Some(gate);
    }

    /// Runs a packet through the stage. Returns its fate, and when it is due; [`Time::NEVER`] if dropped.
    #[inline]
    fn pass(&mut self, counts: &mut Counts, entry: Entry, payload: P) -> (Admission, Time) {
        let Entry { from, mut moment, mut packet } = entry;
        for (index, element) in self.elements.iter_mut().enumerate().skip(from) {
            match element.admit(moment, &packet) {
                Fate::Leaves(departure) => {
                    debug_assert!(departure >= moment.arrival, "a packet leaves before it comes");
                    moment.arrival = departure;
                }
                Fate::Remarked(departure, ecn) => {
                    moment.arrival = departure;
                    packet.ecn = ecn;
                }
                Fate::Merged(departure, burst) => {
                    moment.arrival = departure;
                    packet.burst = burst;
                }
                Fate::Twice(departure) => {
                    moment.arrival = departure;
                    return self.pass_twice(counts, Entry { from: index + 1, moment, packet }, payload);
                }
                Fate::Dropped(cause) => {
                    counts.drop(cause, &packet);
                    return (Admission::Dropped(cause), Time::NEVER);
                }
            }
        }
        let packet = if self.parts { packet.alone() } else { packet };
        (Admission::Queued, self.hold.push(moment.arrival, packet, payload))
    }

    /// Runs a packet through a stage that only delays it.
    fn pass_numbered(&mut self, taken: Option<(u64, Held<P>)>) {
        let Some((number, held)) = taken else { return };
        let (mut due, packet, payload) = (held.due, held.packet(), held.payload);
        for element in &mut self.elements {
            let Fate::Leaves(departure) = element.admit(Moment { arrival: due, clock: due }, &packet) else {
                unreachable!("a delay drops nothing")
            };
            due = departure;
        }
        self.hold.push_numbered(number, due, packet, payload);
    }

    /// Runs a packet and its copy through the rest of the stage. The packet counts as queued if either is.
    #[cold]
    #[inline(never)]
    fn pass_twice(&mut self, counts: &mut Counts, entry: Entry, payload: P) -> (Admission, Time) {
        counts.duplicated.add(entry.packet.bytes);
        let (first, due) = self.pass(counts, entry, payload.clone());
        let (second, copy_due) = self.pass(counts, entry, payload);
        let admission = if second == Admission::Queued { second } else { first };
        (admission, due.min(copy_due))
    }
}
