//! The path computed the simple way: one event for each packet and hop.
//!
//! An oracle for [`Chain`](crate::Chain), which composes elements when a packet is offered. Here a packet is at one place
//! at a time, and an element handles it when it arrives there, so nothing is known before it happens: no element needs a
//! history, no stage has to begin behind an element that reorders, and constant delays are elements like all others.
//! If the two disagree, one of them is wrong.

use crate::carrier::Carrier;
use crate::config::ElementConfig;
use crate::counts::Counts;
use crate::elements::Element;
use crate::error::ConfigError;
use crate::gate::{Departure, Gate};
use crate::packet::{BurstFate, Fate, Moment, Packet, Tally};
use crate::queue::QueueView;
use fullpipe_units::{Duration, Time};
use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

/// The path in one direction, one hop at a time. Slow; it gives the results of [`Chain`](crate::Chain), but some later: a
/// packet that will be dropped counts as inside until it reaches the element that drops it.
#[derive(Debug)]
pub struct Hops<P> {
    stations: Box<[Station<P>]>,
    /// By class; empty for none.
    class_delays: Box<[Duration]>,
    /// Packets on their way, by when they reach the next place.
    travelling: BinaryHeap<Hop<P>>,
    /// Packets that have reached the end and wait to be handed out, in order.
    arrived: VecDeque<(Time, Packet, P)>,
    /// How many numbers were assigned.
    numbers: u64,
    /// The number of the latest burst.
    latest_burst: u16,
    /// The latest time passed by the caller.
    clock: Time,
    counts: Counts,
    /// Which stations are queues.
    queues: Vec<usize>,
}

/// An element, or its gate.
#[derive(Debug)]
struct Station<P> {
    kind: Kind<P>,
    /// Whether it takes bursts whole.
    whole: bool,
}

#[derive(Debug)]
enum Kind<P> {
    Element {
        element: Element,
        /// Whether it always delays all packets alike.
        is_constant: bool,
    },
    Gate(Gate<P>),
}

/// A place that a packet reaches.
#[derive(Clone, Copy, Debug)]
enum Place {
    Station(usize),
    /// Behind the last element, before the delay of its class.
    ClassDelay,
    End,
}

/// A packet that reaches a place at a time. The greatest is the first by (time, number), as `BinaryHeap` requires.
///
/// The number orders packets with equal times: the one whose departure from the previous element was computed first goes
/// first. Constant delays do not change the number. That matters if packets overtake and classes differ in their delay:
/// two that arrive at the end together leave in the order in which the last element saw them, as in
/// [`Chain`](crate::Chain), which adds up all constant delays.
#[derive(Debug)]
struct Hop<P> {
    at: Time,
    number: u64,
    place: Place,
    packet: Packet,
    payload: P,
}

impl<P: Clone> Hops<P> {
    fn advance(&mut self, now: Time) {
        assert!(now >= self.clock, "time goes back from {} to {now}", self.clock);
        self.clock = now;
    }

    fn new_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    /// The place behind this many stations.
    fn place_behind(&self, stations: usize) -> Place {
        if stations < self.stations.len() { Place::Station(stations) } else { Place::ClassDelay }
    }

    /// A packet reaches a place, whose element decides where it goes next.
    fn arrive(&mut self, hop: Hop<P>) {
        match hop.place {
            Place::Station(station) if self.stations[station].whole => self.pass_burst(station, hop),
            Place::Station(station) => self.pass(station, hop),
            Place::ClassDelay => {
                let delay =
                    self.class_delays.get(hop.packet.class as usize).copied().unwrap_or(Duration::ZERO);
                let at = hop.at.saturating_add(delay);
                self.travelling.push(Hop { at, place: Place::End, ..hop });
            }
            Place::End => self.arrived.push_back((hop.at, hop.packet, hop.payload)),
        }
    }

    /// The gate that serves next, and when.
    fn next_service(&self) -> Option<(Time, usize)> {
        let gates = self.stations.iter().enumerate().filter_map(|(station, one)| match &one.kind {
            Kind::Gate(gate) => Some((gate.next(), station)),
            Kind::Element { .. } => None,
        });
        gates.min().filter(|(at, _)| *at != Time::NEVER)
    }

    /// A gate lets through a packet.
    fn serve(&mut self, station: usize) {
        let place = self.place_behind(station + 1);
        let Kind::Gate(gate) = &mut self.stations[station].kind else { unreachable!("only gates serve") };
        let mut served = Vec::new();
        gate.serve(&mut self.counts, |_, departure| served.push(departure));
        for Departure { at, packet, payload } in served {
            let number = self.new_number();
            self.travelling.push(Hop { at, number, place, packet, payload });
        }
    }

    /// A burst reaches an element that takes it whole: a packet, and those that follow it at the same time.
    fn pass_burst(&mut self, station: usize, first: Hop<P>) {
        let mut burst = vec![first];
        while let Some(next) = self.travelling.peek()
            && let Some(last) = burst.last()
            && next.at == last.at
            && matches!(next.place, Place::Station(place) if place == station)
            && last.packet.is_with(&next.packet)
        {
            burst.extend(self.travelling.pop());
        }
        let (at, packets) = (burst[0].at, burst.iter().map(|hop| hop.packet).collect::<Vec<_>>());
        let counts = &mut self.counts;
        let times = match &mut self.stations[station].kind {
            _ if burst.len() == 1 => None,
            Kind::Gate(gate) if gate.takes(packets.iter().map(|packet| packet.bytes as u64).sum()) => {
                let parts = burst.into_iter().map(|hop| (hop.packet, hop.payload));
                gate.arrive(at, parts, counts);
                return;
            }
            Kind::Gate(_) => None,
            Kind::Element { element, .. } => {
                match element.admit_burst(Moment { arrival: at, clock: at }, &packets) {
                    BurstFate::Dropped(cause) => {
                        return packets.iter().for_each(|packet| counts.drop(cause, packet));
                    }
                    BurstFate::Leaves(departure) => Some((vec![Ok(departure); packets.len()], true)),
                    BurstFate::Apart(times) => Some((times, false)),
                    BurstFate::Split => None,
                }
            }
        };
        let Some((times, together)) = times else {
            for hop in burst {
                self.pass(station, Hop { packet: hop.packet.alone(), ..hop });
                // What is due leaves before the next packet comes.
                while matches!(&self.stations[station].kind, Kind::Gate(gate) if gate.next() <= at) {
                    self.serve(station);
                }
            }
            return;
        };
        let place = self.place_behind(station + 1);
        for (hop, decided) in burst.into_iter().zip(times) {
            let at = match decided {
                Ok(at) => at,
                Err(cause) => {
                    self.counts.drop(cause, &hop.packet);
                    continue;
                }
            };
            let number = self.new_number();
            let packet = if together { hop.packet } else { hop.packet.alone() };
            self.travelling.push(Hop { at, number, place, packet, ..hop });
        }
    }

    /// A packet reaches an element.
    fn pass(&mut self, station: usize, hop: Hop<P>) {
        let Hop { at, packet, payload, .. } = hop;
        let place = self.place_behind(station + 1);
        let Station { kind, whole } = &mut self.stations[station];
        let (element, is_constant) = match kind {
            Kind::Element { element, is_constant } => (element, is_constant),
            Kind::Gate(gate) => {
                gate.arrive(at, [(packet, payload)], &mut self.counts);
                return;
            }
        };
        let fate = element.admit(Moment { arrival: at, clock: at }, &packet);
        let packet = if element.parts() && !*whole { packet.alone() } else { packet };
        match fate {
            Fate::Leaves(departure) => {
                assert!(departure >= at, "a packet leaves before it comes");
                let number = if *is_constant { hop.number } else { self.new_number() };
                self.travelling.push(Hop { at: departure, number, place, packet, payload });
            }
            Fate::Merged(departure, burst) => {
                let (number, packet) = (self.new_number(), Packet { burst, ..packet });
                self.travelling.push(Hop { at: departure, number, place, packet, payload });
            }
            Fate::Remarked(departure, ecn) => {
                let (number, packet) = (self.new_number(), Packet { ecn, ..packet });
                self.travelling.push(Hop { at: departure, number, place, packet, payload });
            }
            Fate::Twice(departure) => {
                self.counts.duplicated.add(packet.bytes);
                for payload in [payload.clone(), payload] {
                    let number = self.new_number();
                    self.travelling.push(Hop { at: departure, number, place, packet, payload });
                }
            }
            Fate::Dropped(cause) => self.counts.drop(cause, &packet),
        }
    }
}

impl<P: Clone> Carrier<P> for Hops<P> {
    fn new(elements: &[ElementConfig], class_delays: &[Duration], seed: u64) -> Result<Hops<P>, ConfigError> {
        let station = |(index, config): (usize, &ElementConfig)| {
            let is_constant =
                matches!(config, ElementConfig::Delay { delay_ns } if delay_ns.changes.is_empty());
            let kind = match Gate::checked(config, index, seed, false, None)? {
                Some(gate) => Kind::Gate(gate),
                None => Kind::Element { element: Element::new(config, index, seed, false)?, is_constant },
            };
            Ok(Station { kind, whole: !config.unit().is_segment() })
        };
        let stations: Box<[Station<P>]> =
            elements.iter().enumerate().map(station).collect::<Result<_, _>>()?;
        let queues = (0..stations.len()).filter(|&index| stations[index].queue().is_some()).collect();
        Ok(Hops {
            stations,
            class_delays: class_delays.into(),
            travelling: BinaryHeap::new(),
            arrived: VecDeque::new(),
            numbers: 0,
            latest_burst: 0,
            clock: Time::ZERO,
            counts: Counts::default(),
            queues,
        })
    }

    /// The packet reaches the first element now; the element handles it at the caller's next query.
    fn push(&mut self, now: Time, packet: Packet, payload: P) {
        assert!((1..=Packet::MAX_BYTES).contains(&packet.bytes), "a packet of {} bytes", packet.bytes);
        let classes = self.class_delays.len();
        assert!(classes == 0 || (packet.class as usize) < classes, "a packet of class {}", packet.class);
        self.advance(now);
        self.counts.entered.add(packet.bytes);
        let (number, place) = (self.new_number(), self.place_behind(0));
        self.travelling.push(Hop { at: now, number, place, packet, payload });
    }

    fn push_run(&mut self, now: Time, packet: Packet, count: u32, mut payload: impl FnMut(u32) -> P) {
        self.latest_burst = self.latest_burst % Packet::MAX_BURST + 1;
        let packet = Packet { burst: self.latest_burst, ..packet };
        (0..count).for_each(|index| self.push(now, packet, payload(index)));
    }

    /// When the next packet reaches its next place, or the due time of one that waits to be handed out.
    fn next(&self) -> Time {
        // Packets that have arrived were due before all that have not.
        match self.arrived.front() {
            Some(&(due, ..)) => due,
            None => {
                let service = self.next_service().map_or(Time::NEVER, |(at, _)| at);
                self.travelling.peek().map_or(service, |hop| hop.at.min(service))
            }
        }
    }

    /// Moves all hops that are due, then hands out the first packet that is.
    fn pop(&mut self, now: Time) -> Option<(Time, Packet, P)> {
        self.settle(now);
        let (due, packet, payload) = self.arrived.pop_front()?;
        self.counts.left.add(packet.bytes);
        Some((due, packet, payload))
    }

    fn pop_with<T>(&mut self, now: Time, take: impl FnOnce(Packet, &P) -> T) -> Option<T> {
        self.pop(now).map(|(_, packet, payload)| take(packet, &payload))
    }

    fn ahead(&self, _: usize) -> Option<(Packet, &P)> {
        None
    }

    fn prefetch(&self, _: usize) {}

    fn is_due(&mut self, now: Time) -> bool {
        self.settle(now);
        !self.arrived.is_empty()
    }

    fn settle(&mut self, now: Time) {
        self.advance(now);
        // A packet that is due at `NEVER` is never handed out, whatever the time.
        loop {
            let next = self.travelling.peek().map_or(Time::NEVER, |hop| hop.at);
            match self.next_service() {
                // What is due leaves before the next packet comes.
                Some((at, station)) if at <= next && at <= now => self.serve(station),
                _ if next <= now && next != Time::NEVER => {
                    let hop = self.travelling.pop().expect("it was seen");
                    self.arrive(hop);
                }
                _ => return,
            }
        }
    }

    fn counts(&self) -> Counts {
        let travelling = self.travelling.iter().map(|hop| hop.packet);
        let arrived = self.arrived.iter().map(|&(_, packet, _)| packet);
        let gated = self.stations.iter().flat_map(|station| match &station.kind {
            Kind::Gate(gate) => Some(gate.packets()),
            Kind::Element { .. } => None,
        });
        let mut inside = Tally::default();
        travelling.chain(arrived).chain(gated.flatten()).for_each(|packet| inside.add(packet.bytes));
        Counts { inside, ..self.counts }
    }

    fn queues(&self) -> usize {
        self.queues.len()
    }

    /// The state after all packets that have reached it; [`Carrier::settle`] moves on those that are due.
    fn queue(&self, index: usize) -> QueueView<'_> {
        self.stations[self.queues[index]].queue().expect("the list names queues only")
    }
}

impl<P> Station<P> {
    fn queue(&self) -> Option<QueueView<'_>> {
        match &self.kind {
            Kind::Element { element, .. } => element.queue(),
            Kind::Gate(gate) => Some(QueueView::new(gate)),
        }
    }
}

impl<P> Ord for Hop<P> {
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.number).cmp(&(self.at, self.number))
    }
}

impl<P> PartialOrd for Hop<P> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<P> PartialEq for Hop<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<P> Eq for Hop<P> {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chain::Chain;
    use crate::config::{Probability, QueueConfig, Schedule};
    use crate::elements::reorder;
    use crate::packet::Cause;
    use fullpipe_units::{Bytes, Rate};

    const FULL: Packet = Packet::new(1500, 0);

    fn micros(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    /// A byte a microsecond, and room for one full packet.
    fn link() -> ElementConfig {
        ElementConfig::Link {
            name: "link".into(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(8_000_000)),
            queue: QueueConfig::drop_tail(Bytes::new(1500), None),
        }
    }

    fn delay(micros: u64) -> ElementConfig {
        ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_micros(micros)) }
    }

    fn hops<P: Clone>(elements: &[ElementConfig], class_delays: &[Duration]) -> Hops<P> {
        Hops::new(elements, class_delays, 1).unwrap()
    }

    #[test]
    fn every_hop_is_an_event() {
        let mut hops = hops(&[delay(10), link(), delay(20)], &[Duration::from_micros(5)]);
        hops.push(micros(0), FULL, 'a');
        for event in [0, 10, 1510, 1530] {
            assert_eq!(hops.next(), micros(event));
            assert_eq!(hops.pop(micros(event)), None);
        }
        assert_eq!(hops.next(), micros(1535));
        assert_eq!(hops.pop(micros(1535)), Some((micros(1535), FULL, 'a')));
        assert_eq!(hops.next(), Time::NEVER);
    }

    #[test]
    fn element_observes_packet_on_arrival() {
        let mut hops = hops(&[delay(10), link()], &[]);
        hops.push(micros(0), FULL, 'a');
        hops.push(micros(0), FULL, 'b');
        hops.settle(micros(9));
        assert_eq!(hops.queue(0).totals(micros(9)).arrived.packets, 0);
        assert_eq!(hops.counts().inside.packets, 2);
        hops.settle(micros(10));
        let totals = hops.queue(0).totals(micros(10));
        assert_eq!((totals.accepted.packets, totals.dropped.packets), (1, 1));
        assert_eq!((hops.counts().inside.packets, hops.counts().dropped(Cause::QueueFull).packets), (1, 1));
    }

    #[test]
    fn settled_packets_keep_own_times() {
        let mut hops = hops(&[delay(10)], &[]);
        hops.push(micros(0), FULL, 'a');
        hops.push(micros(1), FULL, 'b');
        hops.push(micros(5), FULL, 'c');
        hops.settle(micros(12));
        assert_eq!((hops.next(), hops.counts().inside.packets), (micros(10), 3));
        hops.push(micros(12), FULL, 'd');
        assert_eq!(hops.pop(micros(12)), Some((micros(10), FULL, 'a')));
        assert!(hops.is_due(micros(12)));
        assert_eq!(hops.pop(micros(13)), Some((micros(11), FULL, 'b')));
        assert!(!hops.is_due(micros(13)));
        assert_eq!(hops.next(), micros(15));
        assert_eq!(hops.pop(micros(30)), Some((micros(15), FULL, 'c')));
        assert_eq!(hops.pop(micros(30)), Some((micros(22), FULL, 'd')));
        assert_eq!(hops.pop(micros(30)), None);
    }

    #[test]
    fn hop_is_not_due_packet() {
        let mut hops = hops(&[delay(0), delay(5)], &[]);
        hops.push(micros(0), FULL, 'a');
        assert!(hops.next() <= micros(0) && !hops.is_due(micros(0)));
        assert!(hops.is_due(micros(5)));
    }

    /// Both leave after a millisecond: packets of class 0 that were held back, and those of class 1 that were not and got
    /// to the end before them.
    #[test]
    fn ties_keep_order_before_constant_delays() {
        let held = ElementConfig::Reorder(reorder::Config {
            probability: Probability::from_f64(0.5),
            delay_ns: Duration::from_millis(1),
        });
        let elements = [held, delay(7)];
        let class_delays = [Duration::ZERO, Duration::from_millis(1)];
        let mut hops = hops(&elements, &class_delays);
        let mut chain = Chain::new(&elements, &class_delays, 1).unwrap();
        for number in 0..40 {
            let packet = Packet::new(1500, number % 2);
            hops.push(micros(0), packet, number);
            chain.push(micros(0), packet, number);
        }
        let plainly: Vec<_> = std::iter::from_fn(|| hops.pop(micros(9000))).collect();
        let composed: Vec<_> = std::iter::from_fn(|| chain.pop(micros(9000))).collect();
        assert_eq!(plainly, composed);
        let together: Vec<u32> =
            plainly.iter().filter(|out| out.0 == micros(1007)).map(|out| out.2).collect();
        assert!(together.is_sorted() && together.iter().any(|number| number % 2 == 0), "{together:?}");
        assert!(together.iter().any(|number| number % 2 == 1), "{together:?}");
    }

    #[test]
    fn packet_behind_dead_link_stays_inside() {
        let down = ElementConfig::Link {
            name: "link".into(),
            rate_bps: Schedule {
                initial: Rate::from_bits_per_sec(8),
                changes: vec![(micros(1), Rate::ZERO)],
            },
            queue: QueueConfig::drop_tail(Bytes::new(1500), None),
        };
        let mut hops = hops(&[down], &[]);
        hops.push(micros(0), FULL, ());
        hops.settle(micros(0));
        assert_eq!((hops.next(), hops.pop(Time::NEVER)), (Time::NEVER, None));
        assert_eq!(hops.counts().inside.packets, 1);
    }

    #[test]
    #[should_panic(expected = "time goes back from 5 us to 4 us")]
    fn time_must_not_go_back() {
        let mut hops: Hops<()> = hops(&[], &[]);
        hops.settle(micros(5));
        hops.push(micros(4), FULL, ());
    }

    #[test]
    #[should_panic(expected = "a packet of class 2")]
    fn a_class_must_be_known() {
        hops(&[], &[Duration::ZERO; 2]).push(micros(0), Packet::new(1, 2), ());
    }

    #[test]
    #[should_panic(expected = "a packet of 0 bytes")]
    fn a_packet_must_have_a_length() {
        hops(&[], &[]).push(micros(0), Packet::new(0, 0), ());
    }
}
