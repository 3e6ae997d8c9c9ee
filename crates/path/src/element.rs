//! Packets, what can happen to them, and the closed set of elements.

use crate::aggregate::Aggregate;
use crate::cellular::Grants;
use crate::change::Change;
use crate::delay::Delay;
use crate::delivery_trace::Opportunities;
use crate::duplicate::Duplicate;
use crate::jitter::Jitter;
use crate::link::{ConstantRate, ScheduledRate};
use crate::loss::{GilbertElliott, Loss};
use crate::policer::Policer;
use crate::queue::{Queue, QueueView};
use crate::reorder::Reorder;
use crate::token_bucket::Tokens;
use fullpipe_units::{Bytes, Time};

/// What the path needs to know about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Length in bytes, headers from IP upwards; 1 to [`Packet::MAX_BYTES`].
    pub bytes: u32,
    /// Index into the `class_delays` the chain was built with.
    pub class: u32,
}

impl Packet {
    /// The longest packet a path takes: far above any IP packet, and small enough that its length in billionths of a
    /// bit (the unit of work of `link.rs`) fits 64 bits.
    pub const MAX_BYTES: u32 = 1 << 30;
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It did not fit into a queue.
    QueueFull,
    /// Random loss.
    Lost,
    /// A policer had no tokens for it.
    Policed,
    /// It is larger than a token bucket, so it could never pass.
    Oversize,
}

impl Cause {
    /// Every cause, in order of declaration.
    pub const ALL: [Cause; 4] = [Cause::QueueFull, Cause::Lost, Cause::Policed, Cause::Oversize];
}

/// What is known about a packet right after it was offered to a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is inside. (An element behind one that reorders may still drop it.)
    Queued,
    /// It was dropped, with its payload.
    Dropped(Cause),
}

/// A number of packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// How many packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: Bytes,
}

impl Tally {
    #[inline]
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += Bytes::new(bytes as u64);
    }

    #[inline]
    pub(crate) fn add_many(&mut self, packets: u32, bytes_each: u32) {
        self.packets += packets as u64;
        self.bytes += Bytes::new(packets as u64 * bytes_each as u64);
    }
}

impl std::ops::Add for Tally {
    type Output = Tally;
    fn add(self, other: Tally) -> Tally {
        Tally { packets: self.packets + other.packets, bytes: self.bytes + other.bytes }
    }
}

impl std::ops::Sub for Tally {
    type Output = Tally;
    fn sub(self, other: Tally) -> Tally {
        Tally { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

/// The two times that are passed to an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// When the packet reaches the element. Never goes back from one packet to the next.
    pub(crate) arrival: Time,
    /// The caller's time, at or before `arrival`: no later query is about an earlier time.
    pub(crate) clock: Time,
}

/// What an element does to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// It leaves the element at this time.
    Leaves(Time),
    /// It leaves the element twice, both times now.
    Twice(Time),
    /// It is dropped.
    Dropped(Cause),
}

/// One element of a path: a transit function from arrival to departure.
#[derive(Debug)]
pub(crate) enum Element {
    Link(Queue<ConstantRate>),
    ScheduledLink(Queue<ScheduledRate>),
    DeliveryTrace(Queue<Opportunities>),
    Cellular(Queue<Grants>),
    TokenBucket(Queue<Tokens>),
    Policer(Queue<Policer>),
    Delay(Delay),
    Loss(Loss),
    GilbertElliott(GilbertElliott),
    Jitter(Jitter),
    Aggregate(Aggregate),
    Duplicate(Duplicate),
    Reorder(Reorder),
}

impl Element {
    /// Decides the fate of a packet. Elements that do not reorder return times that never go back.
    #[inline]
    pub(crate) fn admit(&mut self, moment: Moment, packet: &Packet) -> Fate {
        let now = moment.arrival;
        match self {
            Element::Link(queue) => queue.admit(moment, packet),
            Element::Delay(delay) => Fate::Leaves(delay.admit(now)),
            Element::Loss(loss) => loss.admit(now),
            _ => self.admit_to_others(moment, packet),
        }
    }

    /// The less common elements, separate from the common ones.
    #[inline(never)]
    fn admit_to_others(&mut self, moment: Moment, packet: &Packet) -> Fate {
        let now = moment.arrival;
        match self {
            Element::Link(_) | Element::Delay(_) | Element::Loss(_) => unreachable!("see `admit`"),
            Element::ScheduledLink(queue) => queue.admit(moment, packet),
            Element::DeliveryTrace(queue) => queue.admit(moment, packet),
            Element::Cellular(queue) => queue.admit(moment, packet),
            Element::TokenBucket(queue) => queue.admit(moment, packet),
            Element::Policer(queue) => queue.admit(moment, packet),
            Element::GilbertElliott(loss) => loss.admit(now),
            Element::Jitter(jitter) => Fate::Leaves(jitter.admit(now)),
            Element::Aggregate(aggregate) => Fate::Leaves(aggregate.admit(now)),
            Element::Duplicate(duplicate) => duplicate.admit(now),
            Element::Reorder(reorder) => Fate::Leaves(reorder.admit(now)),
        }
    }

    /// Whether a packet may leave before an earlier one.
    pub(crate) fn reorders(&self) -> bool {
        match self {
            Element::Jitter(jitter) => jitter.reorders(),
            Element::Reorder(_) => true,
            _ => false,
        }
    }

    /// Whether a packet may leave later than it arrives.
    pub(crate) fn takes_time(&self) -> bool {
        !matches!(
            self,
            Element::Policer(_) | Element::Loss(_) | Element::GilbertElliott(_) | Element::Duplicate(_)
        )
    }

    /// Applies a change other than of a rate, from `from` on, to an element whose configuration allows it.
    pub(crate) fn change(&mut self, from: Time, change: Change) {
        match (self, change) {
            (Element::Delay(element), Change::Delay(delay)) => element.change(from, delay),
            (Element::Loss(element), Change::Loss(probability)) => element.change(from, probability),
            (Element::ScheduledLink(queue), Change::Buffer(bytes)) => queue.change_limit(bytes),
            (Element::DeliveryTrace(queue), Change::Buffer(bytes)) => queue.change_limit(bytes),
            (Element::Cellular(queue), Change::Buffer(bytes)) => queue.change_limit(bytes),
            (Element::TokenBucket(queue), Change::Buffer(bytes)) => queue.change_limit(bytes),
            (element, change) => unreachable!("{element:?} cannot change so: {change:?}"),
        }
    }

    /// The queue in it, if it has one.
    pub(crate) fn queue(&self) -> Option<QueueView<'_>> {
        match self {
            Element::Link(queue) => Some(QueueView::new(queue)),
            Element::ScheduledLink(queue) => Some(QueueView::new(queue)),
            Element::DeliveryTrace(queue) => Some(QueueView::new(queue)),
            Element::Cellular(queue) => Some(QueueView::new(queue)),
            Element::TokenBucket(queue) => Some(QueueView::new(queue)),
            Element::Policer(queue) => Some(QueueView::new(queue)),
            _ => None,
        }
    }
}
