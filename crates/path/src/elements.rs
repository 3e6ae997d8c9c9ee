//! The closed set of elements: what each is called, what it has to know, how it is built, and what it does.
//!
//! An element is a file of its own in `elements/`, which declares it, and its lines in this one; `README.md` of this crate shows
//! the whole way. Six are written out here instead: they have a queue with words of its own, or a schedule, or other elements
//! treat them in a way of their own.

pub mod aggregate;
pub mod bleach;
mod cellular;
mod delay;
pub(crate) mod delivery_trace;
pub mod duplicate;
pub mod ecn_blackhole;
pub mod gilbert_elliott;
pub mod jitter;
pub(crate) mod link;
mod loss;
pub mod policer;
pub mod reorder;
pub(crate) mod token_bucket;
pub mod wifi;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::cellular::Grants;
use self::delay::Delay;
use self::delivery_trace::Opportunities;
use self::link::{ConstantRate, ScheduledRate};
use self::loss::Loss;
use self::token_bucket::Tokens;
use crate::change::Change;
use crate::check::Check;
use crate::config::{AdmissionUnit, Probability, QueueConfig, Schedule};
use crate::element::{self, Declared, ElementInfo, Setup, Transit, Value};
use crate::error::ConfigError;
use crate::integral::{integral, opportunities_by};
use crate::packet::{BurstFate, Fate, Moment, Packet};
use crate::queue::{Queue, QueueView};
use crate::rng::Stream;
use fullpipe_units::{Bytes, Duration, Rate, Time};

pub use self::delivery_trace::OPPORTUNITY_BYTES;

/// The header of an Ethernet frame, as Linux counts it (`ETH_HLEN`).
pub const ETHERNET_HEADER_BYTES: u32 = 14;

fn is_zero(bytes: &u32) -> bool {
    *bytes == 0
}

/// Builds the set of elements from those that are written out and a line for each that is declared, `Type in module;`. The module
/// has the type, which is a [`Transit`], and its `Config` by `element!`.
macro_rules! elements {
    (
        { $($written:tt)* }
        { $($built:tt)* }
        $($Type:ident in $module:ident;)+
    ) => {
        /// The elements that are declared, in the order in which they should be listed.
        pub const ELEMENTS: &[ElementInfo] = &[$($module::Config::INFO),+];

        /// One element of a path. Packets pass the elements of a direction in order.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind", rename_all = "snake_case")]
        pub enum ElementConfig {
            $($written)*
            $(#[doc = concat!("What [`", stringify!($module), "`] declares.")] $Type($module::Config),)+
        }

        impl ElementConfig {
            /// The declared element of this kind with these values, in the order of its descriptions.
            ///
            /// # Panics
            /// If there is no such element, or they are not the values of its fields.
            pub fn of(kind: &str, values: Vec<Value>) -> ElementConfig {
                $(if $module::Config::INFO.kind == kind {
                    return ElementConfig::$Type($module::Config::of(values.into_iter()));
                })+
                panic!("no element {kind} is declared")
            }

            /// Its configuration, if it is declared.
            pub fn declared(&self) -> Option<&dyn Declared> {
                match self {
                    $(ElementConfig::$Type(config) => Some(config),)+
                    _ => None,
                }
            }

            /// Whether packets may leave it later than they arrive.
            fn takes_time(&self) -> bool {
                match self {
                    $(ElementConfig::$Type(_) => $module::$Type::TAKES_TIME,)+
                    ElementConfig::Loss { .. } => false,
                    _ => true,
                }
            }

            fn build(&self, setup: Setup) -> Element {
                match self {
                    $(ElementConfig::$Type(config) => Element::$Type(Transit::new(config, setup)),)+
                    _ => unreachable!("{self:?} is not declared"),
                }
            }
        }

        /// One element of a path: a transit function from arrival to departure.
        #[derive(Debug)]
        pub(crate) enum Element {
            $($built)*
            $($Type($module::$Type),)+
        }

        impl Element {
            /// The less common elements, separate from the common ones.
            #[inline(never)]
            fn admit_to_others(&mut self, moment: Moment, packet: &Packet) -> Fate {
                match self {
                    Element::Link(_) | Element::Delay(_) | Element::Loss(_) => unreachable!("see `admit`"),
                    Element::ScheduledLink(queue) => queue.admit(moment, packet),
                    Element::DeliveryTrace(queue) => queue.admit(moment, packet),
                    Element::Cellular(queue) => queue.admit(moment, packet),
                    Element::TokenBucket(queue) => queue.admit(moment, packet),
                    $(Element::$Type(element) => Transit::admit(element, moment, packet),)+
                }
            }

            fn admit_burst_to_others(&mut self, moment: Moment, burst: &[Packet]) -> BurstFate {
                match self {
                    $(Element::$Type(element) => Transit::admit_burst(element, moment, burst),)+
                    _ => unreachable!("{self:?} takes single packets"),
                }
            }

            /// Whether a packet may leave before an earlier one.
            pub(crate) fn reorders(&self) -> bool {
                match self {
                    $(Element::$Type(element) => element.reorders(),)+
                    _ => false,
                }
            }

            /// Whether a packet may leave later than it arrives.
            pub(crate) fn takes_time(&self) -> bool {
                match self {
                    $(Element::$Type(_) => $module::$Type::TAKES_TIME,)+
                    Element::Loss(_) => false,
                    _ => true,
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
                    Element::Delay(_) | Element::Loss(_) => None,
                    $(Element::$Type(element) => Transit::queue(element),)+
                }
            }
        }
    };
}

elements! {
    {
        /// A link of (piecewise) constant rate behind a drop-tail queue.
        Link {
            /// Name in records and reports.
            name: String,
            /// Bits per second, headers from IP upwards counted.
            rate_bps: Schedule<Rate>,
            /// The queue in front of it.
            queue: QueueConfig,
        },
        /// A link that follows a Mahimahi delivery trace: one opportunity of 1500 bytes at each listed millisecond; the
        /// trace repeats after its last entry. Shared by reference count because traces can be long.
        DeliveryTrace {
            /// Name in records and reports.
            name: String,
            /// Times of the opportunities in whole milliseconds, not decreasing, the last above zero.
            opportunities_ms: std::sync::Arc<Vec<u64>>,
            /// The queue in front of it.
            queue: QueueConfig,
        },
        /// A cellular radio whose rate follows the demand that it sees: from one of `rates_bps` to the next when a packet of
        /// the last interval found more than `demand_ns` of work in front of it, and back when the link was mostly idle.
        Cellular {
            /// Name in records and reports.
            name: String,
            /// The rates that it grants, rising; the first is granted at the start.
            rates_bps: Vec<Rate>,
            /// From one review of the grant to the next; above zero.
            review_ns: Duration,
            /// The wait above which there is demand for more.
            demand_ns: Duration,
            /// The queue in front of it; packets count in full until they leave.
            queue: QueueConfig,
        },
        /// Linux `tc-tbf`: packets wait for tokens; drop-tail in bytes.
        TokenBucket {
            /// Name in records and reports.
            name: String,
            /// Token rate.
            rate_bps: Rate,
            /// Bucket depth.
            burst_bytes: Bytes,
            /// What each packet is longer by on its interface: the header of its link layer, which tokens and the queue count
            /// too ([`ETHERNET_HEADER_BYTES`]). Zero counts from IP upwards. Needs a drop-tail queue.
            #[serde(default, skip_serializing_if = "is_zero")]
            frame_bytes: u32,
            /// The queue (`limit` of tc-tbf).
            queue: QueueConfig,
        },
        /// A one-way delay. A delay that shrinks does not reorder: a packet never leaves before its predecessor.
        Delay {
            /// The delay.
            delay_ns: Schedule<Duration>,
        },
        /// Independent random loss.
        Loss {
            /// Probability a packet, or a burst.
            probability: Schedule<Probability>,
            /// What is lost as one.
            #[serde(default, skip_serializing_if = "AdmissionUnit::is_segment")]
            unit: AdmissionUnit,
        },
    }
    {
        Link(Queue<ConstantRate>),
        ScheduledLink(Queue<ScheduledRate>),
        DeliveryTrace(Queue<Opportunities>),
        Cellular(Queue<Grants>),
        TokenBucket(Queue<Tokens>),
        Delay(Delay),
        Loss(Loss),
    }
    Policer in policer;
    GilbertElliott in gilbert_elliott;
    Jitter in jitter;
    Wifi in wifi;
    Aggregate in aggregate;
    Duplicate in duplicate;
    Reorder in reorder;
    Bleach in bleach;
    EcnBlackhole in ecn_blackhole;
}

/// The values of a declared element, if it is one.
fn values(config: &ElementConfig) -> impl Iterator<Item = Value> {
    config.declared().map(Declared::values).unwrap_or_default().into_iter()
}

impl ElementConfig {
    /// Its name in records and reports; `None` for an element without a queue.
    pub fn name(&self) -> Option<&str> {
        match self {
            ElementConfig::Link { name, .. }
            | ElementConfig::DeliveryTrace { name, .. }
            | ElementConfig::Cellular { name, .. }
            | ElementConfig::TokenBucket { name, .. } => Some(name),
            _ => self.declared()?.name(),
        }
    }

    /// Its kind as a scenario spells it.
    pub fn kind(&self) -> &'static str {
        match self {
            ElementConfig::Link { .. } => "link",
            ElementConfig::DeliveryTrace { .. } => "delivery_trace",
            ElementConfig::Cellular { .. } => "cellular",
            ElementConfig::TokenBucket { .. } => "token_bucket",
            ElementConfig::Delay { .. } => "delay",
            ElementConfig::Loss { .. } => "loss",
            _ => self.declared().map_or("", |config| config.info().kind),
        }
    }

    /// Independent loss of single packets.
    pub const fn loss(probability: Schedule<Probability>) -> ElementConfig {
        ElementConfig::Loss { probability, unit: AdmissionUnit::Segment }
    }

    /// What it takes or drops as one.
    pub fn unit(&self) -> AdmissionUnit {
        if let ElementConfig::Loss { unit, .. } = self {
            return *unit;
        }
        let declared = values(self).find_map(|value| match value {
            Value::Unit(unit) => Some(unit),
            _ => None,
        });
        declared.unwrap_or_else(|| self.queue().map_or(AdmissionUnit::Segment, |queue| queue.unit))
    }

    /// Whether packets that are one burst in front of it, as `together` says, can be one burst behind it.
    pub fn leaves_together(&self, together: bool) -> bool {
        match self {
            ElementConfig::Delay { .. } => together,
            // What its tokens suffice for leaves at once.
            ElementConfig::TokenBucket { queue, .. } => together && queue.unit == AdmissionUnit::Burst,
            ElementConfig::Aggregate(config) => config.merge,
            _ => together && !self.takes_time(),
        }
    }

    /// The highest rate at which packets can leave it; `None` if it limits no rate.
    pub(crate) fn highest_rate(&self) -> Option<Rate> {
        match self {
            ElementConfig::Link { rate_bps, .. } => {
                Some(rate_bps.changes.iter().map(|(_, rate)| *rate).fold(rate_bps.initial, Rate::max))
            }
            ElementConfig::TokenBucket { rate_bps, .. } => Some(*rate_bps),
            ElementConfig::Cellular { rates_bps, .. } => rates_bps.last().copied(),
            ElementConfig::DeliveryTrace { opportunities_ms, .. } => {
                let bits = opportunities_ms.len() as u64 * OPPORTUNITY_BYTES * 8;
                let period_ms = opportunities_ms.last().copied().unwrap_or(1).max(1);
                Some(Rate::from_bits_per_sec(bits.saturating_mul(1000) / period_ms))
            }
            _ => values(self).find_map(|value| match value {
                Value::Rate(rate) => Some(rate),
                _ => None,
            }),
        }
    }

    /// The queue in front of it, if packets wait there.
    pub fn queue(&self) -> Option<&QueueConfig> {
        match self {
            ElementConfig::Link { queue, .. }
            | ElementConfig::DeliveryTrace { queue, .. }
            | ElementConfig::Cellular { queue, .. }
            | ElementConfig::TokenBucket { queue, .. } => Some(queue),
            _ => None,
        }
    }

    /// If it has a queue that is recorded: the bytes that could have left it by `end`, or `None` if that has no meaning.
    pub(crate) fn capacity(&self, end: Time) -> Option<Option<u64>> {
        match self {
            ElementConfig::Link { rate_bps, .. } => Some(Some(integral(rate_bps, end))),
            ElementConfig::TokenBucket { rate_bps, .. } => {
                Some(Some(rate_bps.bytes_in(end.saturating_since(Time::ZERO)).as_u64()))
            }
            ElementConfig::DeliveryTrace { opportunities_ms, .. } => {
                let end_ms = Duration::from_nanos(end.as_nanos()).as_millis();
                Some(Some(opportunities_by(opportunities_ms, end_ms).saturating_mul(OPPORTUNITY_BYTES)))
            }
            // What a radio could carry depends on the demand, and what a policer lets pass on the tokens.
            _ => self.name().map(|_| None),
        }
    }

    /// Whether the values of a declared element fit together: the field that does not, its value, and what is expected.
    pub fn conflict(&self) -> Option<(&'static str, String, &'static str)> {
        self.declared()?.conflict()
    }
}

/// In a few words, with every number.
impl fmt::Display for ElementConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ElementConfig::Link { rate_bps, queue, .. } => write!(f, "{rate_bps}, {queue}"),
            ElementConfig::DeliveryTrace { name, queue, .. } => write!(f, "delivery trace {name}, {queue}"),
            ElementConfig::Cellular { rates_bps, review_ns, demand_ns, queue, .. } => {
                let rates: Vec<String> = rates_bps.iter().map(Rate::to_string).collect();
                write!(f, "cellular {} by {demand_ns} reviewed every {review_ns}, {queue}", rates.join("/"))
            }
            ElementConfig::TokenBucket { rate_bps, burst_bytes, frame_bytes, queue, .. } => {
                write!(f, "token bucket {rate_bps} burst {burst_bytes}, {queue}")?;
                match frame_bytes {
                    0 => Ok(()),
                    bytes => write!(f, ", {bytes} bytes more a packet"),
                }
            }
            ElementConfig::Delay { delay_ns } => write!(f, "delay {delay_ns}"),
            ElementConfig::Loss { probability, unit } => write!(f, "loss {probability}{}", unit.in_words()),
            _ => self.declared().map_or(Ok(()), |config| config.fmt(f)),
        }
    }
}

impl Element {
    /// Builds the element at `index`. `announced`: an element before it in its stage takes time, so packets are
    /// announced before they arrive.
    pub(crate) fn new(
        config: &ElementConfig,
        index: usize,
        seed: u64,
        announced: bool,
    ) -> Result<Element, ConfigError> {
        let check = Check { index, kind: config.kind() };
        let random = Stream::new(seed, index);
        Ok(match config {
            ElementConfig::Link { name, rate_bps, queue } => {
                check.queue(queue)?;
                check.link_rate(rate_bps)?;
                if rate_bps.changes.is_empty() {
                    let server = ConstantRate::new(rate_bps.initial, queue.bytes);
                    Element::Link(Queue::new(name, *queue, server, announced))
                } else {
                    let server = ScheduledRate::new(rate_bps);
                    Element::ScheduledLink(Queue::new(name, *queue, server, announced))
                }
            }
            ElementConfig::DeliveryTrace { name, opportunities_ms, queue } => {
                check.queue(queue)?;
                check.trace(opportunities_ms)?;
                let server = Opportunities::new(opportunities_ms.clone());
                Element::DeliveryTrace(Queue::new(name, *queue, server, announced))
            }
            ElementConfig::Cellular { name, rates_bps, review_ns, demand_ns, queue } => {
                check.queue(queue)?;
                let expected = "drop-tail: the demand that a radio sees is the queue itself";
                check.that(queue.discipline.is_fifo(), "queue.discipline", queue.discipline, expected)?;
                check.radio(rates_bps, *review_ns)?;
                let server = Grants::new(rates_bps, *review_ns, *demand_ns);
                Element::Cellular(Queue::new(name, *queue, server, announced))
            }
            ElementConfig::TokenBucket { name, rate_bps, burst_bytes, frame_bytes, queue } => {
                check.queue(queue)?;
                check.tokens(*rate_bps, *burst_bytes)?;
                check.frame(*frame_bytes, queue)?;
                let server = Tokens::new(*rate_bps, *burst_bytes, *frame_bytes);
                Element::TokenBucket(Queue::new(name, *queue, server, announced))
            }
            ElementConfig::Delay { delay_ns } => {
                check.increasing("delay_ns", delay_ns)?;
                Element::Delay(Delay::new(delay_ns))
            }
            ElementConfig::Loss { probability, .. } => {
                check.increasing("probability", probability)?;
                check.probability("probability", probability.initial)?;
                for change in &probability.changes {
                    check.probability("probability", change.1)?;
                }
                Element::Loss(Loss::new(probability, random))
            }
            _ => {
                if let Some(config) = config.declared() {
                    element::check(config, &check)?;
                }
                config.build(Setup { random, announced })
            }
        })
    }

    /// The same, so that it can [change](Element::change): a link has a schedule, even if an empty one. Nothing before it in its
    /// stage takes time.
    pub(crate) fn changing(config: &ElementConfig, index: usize, seed: u64) -> Result<Element, ConfigError> {
        let element = Element::new(config, index, seed, false)?;
        Ok(match (element, config) {
            (Element::Link(_), ElementConfig::Link { name, rate_bps, queue }) => {
                Element::ScheduledLink(Queue::new(name, *queue, ScheduledRate::new(rate_bps), false))
            }
            (element, _) => element,
        })
    }

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

    /// Decides the fate of a burst, which an element takes or drops as one if it [counts so](ElementConfig::unit).
    pub(crate) fn admit_burst(&mut self, moment: Moment, burst: &[Packet]) -> BurstFate {
        let fate = match self {
            Element::Link(queue) => return queue.admit_burst(moment, burst),
            Element::ScheduledLink(queue) => return queue.admit_burst(moment, burst),
            Element::DeliveryTrace(queue) => return queue.admit_burst(moment, burst),
            Element::Cellular(queue) => return queue.admit_burst(moment, burst),
            Element::TokenBucket(queue) => return queue.admit_burst(moment, burst),
            Element::Loss(loss) => loss.admit(moment.arrival),
            _ => return self.admit_burst_to_others(moment, burst),
        };
        match fate {
            Fate::Leaves(departure) => BurstFate::Leaves(departure),
            Fate::Dropped(cause) => BurstFate::Dropped(cause),
            Fate::Twice(_) | Fate::Remarked(..) | Fate::Merged(..) => {
                unreachable!("losses make no copies, no marks and no bursts")
            }
        }
    }

    /// Whether packets that arrive together, and are not taken as a burst, leave one after the other or as others come.
    pub(crate) fn parts(&self) -> bool {
        self.takes_time() && !matches!(self, Element::Delay(_))
    }

    /// Whether it decides what is a burst behind it, whatever came.
    pub(crate) fn merges(&self) -> bool {
        matches!(self, Element::Aggregate(aggregate) if aggregate.merges())
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_described_in_scenario_terms() {
        let queue = QueueConfig::drop_tail(Bytes::new(50_000), Some(30));
        let slower = (Time::ZERO.saturating_add(Duration::from_secs(2)), Rate::from_bits_per_sec(10_000_000));
        let rate_bps = Schedule { initial: Rate::from_bits_per_sec(20_000_000), changes: vec![slower] };
        let link = ElementConfig::Link { name: "x".to_owned(), rate_bps, queue };
        assert_eq!(link.to_string(), "20 Mbit/s, 10 Mbit/s from 2 s, queue 50 KB or 30 packets");
        let probability = Schedule::constant(Probability::from_f64(0.001));
        assert_eq!(ElementConfig::loss(probability).to_string(), "loss 0.1 %");
        let delay_ns = Schedule::constant(Duration::from_millis(20));
        assert_eq!(ElementConfig::Delay { delay_ns }.to_string(), "delay 20 ms");
    }
}
