//! The interface of a path to its driver, however the path is computed.

use crate::config::ElementConfig;
use crate::counts::Counts;
use crate::error::ConfigError;
use crate::packet::{Packet, Tally};
use crate::queue::QueueView;
use fullpipe_units::{Duration, Time};

/// Carries the packets of one direction: [`Chain`](crate::Chain), or [`Hops`](crate::Hops), the slow one that tests
/// compare it with. With the same configuration, seed and arrivals, both give the same departures in the same order.
///
/// Times never go back, across all methods that take `now`; each panics if they do.
pub trait Carrier<P>: Sized {
    /// Builds the path. A packet of class `c` is delayed by a further `class_delays[c]` at the end; without
    /// classes, no packet is. Randomness depends on `seed` and each element's position, and on nothing else.
    ///
    /// # Errors
    /// When the numbers of an element are invalid.
    fn new(elements: &[ElementConfig], class_delays: &[Duration], seed: u64) -> Result<Self, ConfigError>;

    /// Offers a packet at `now`. Its fate shows in [`Carrier::counts`], and in the packets handed out.
    ///
    /// # Panics
    /// If the packet's length is not in 1..=[`Packet::MAX_BYTES`], or its class is unknown.
    fn push(&mut self, now: Time, packet: Packet, payload: P);

    /// Offers `count` packets of one length and class at `now`, which the host hands over together. `payload` is called for
    /// each in turn, from zero.
    ///
    /// # Panics
    /// As [`Carrier::push`] does.
    fn push_run(&mut self, now: Time, packet: Packet, count: u32, payload: impl FnMut(u32) -> P);

    /// When something happens next: a packet leaves, or moves on inside. [`Time::NEVER`] if nothing will happen.
    fn next(&self) -> Time;

    /// The next packet that is due at or before `now`, with its exact due time. Packets leave in order of due time. How
    /// often and how late this is called changes no due time and no drop.
    fn pop(&mut self, now: Time) -> Option<(Time, Packet, P)>;

    /// [`Carrier::pop`] without moving the packet: shows it to `take`, and then drops it.
    fn pop_with<T>(&mut self, now: Time, take: impl FnOnce(Packet, &P) -> T) -> Option<T>;

    /// After a [`Carrier::pop`] at `now`: whether another one would hand out a packet.
    fn is_due(&mut self, now: Time) -> bool;

    /// The packet that leaves after `places` others, where the path knows it; for hints about what is needed then.
    fn ahead(&self, places: usize) -> Option<(Packet, &P)>;

    /// A hint that [`Carrier::ahead`] will be asked for this place.
    fn prefetch(&self, places: usize);

    /// Brings everything inside up to `now` without handing out packets: queues may then be asked about `now`.
    fn settle(&mut self, now: Time);

    /// The fate of all packets so far. Iterates over the packets inside.
    fn counts(&self) -> Counts;

    /// Before when everything that leaves is known: no packet that is offered at `now` or later leaves earlier, and none of those
    /// inside whose departure is still to be decided, be it by a later packet. Everything inside has been brought up to `now`.
    /// `None` where nothing is known ahead.
    fn known_until(&self, _now: Time) -> Option<Time> {
        None
    }

    /// How many packets wait for a known departure.
    fn known(&self) -> usize {
        0
    }

    /// Shows the class of each packet that [`Carrier::take_known`] would hand out, in any order.
    fn look_at_known(&self, before: Time, _look: impl FnMut(u32)) {
        unreachable!("nothing is known before {before}");
    }

    /// Hands out all packets that are due before `before`, which is not after [`Carrier::known_until`]: ahead of time, so that
    /// packets may still be offered at earlier times.
    fn take_known(&mut self, before: Time, _take: impl FnMut(Time, Packet, &P)) {
        unreachable!("nothing is known before {before}");
    }

    /// How long each packet of a class takes, if the path is nothing but that delay: no packet meets another one.
    fn constant_delay(&self, _class: u32) -> Option<Duration> {
        None
    }

    /// Packets came and left that the driver carried by itself, because it knows their delay.
    fn note_carried(&mut self, carried: Tally) {
        unreachable!("{carried:?} without a constant delay");
    }

    /// The number of queues, one for each element that has one.
    fn queues(&self) -> usize;

    /// A queue, in order along the path.
    ///
    /// # Panics
    /// If no queue has this `index`.
    fn queue(&self, index: usize) -> QueueView<'_>;
}
