//! The closed set of elements: what each is called, what it has to know, how it is built, and what it does.
//!
//! An element is a file of its own in `elements/`, and its lines in this one. The compiler names each place that a new
//! variant of [`ElementConfig`] and of [`Element`] needs; `README.md` of this crate shows the whole way.

mod aggregate;
mod bleach;
mod cellular;
mod delay;
pub(crate) mod delivery_trace;
mod duplicate;
mod ecn_blackhole;
mod jitter;
pub(crate) mod link;
mod loss;
mod policer;
mod reorder;
pub(crate) mod token_bucket;

use std::fmt;

use serde::{Deserialize, Serialize};

use self::aggregate::Aggregate;
use self::bleach::Bleach;
use self::cellular::Grants;
use self::delay::Delay;
use self::delivery_trace::Opportunities;
use self::duplicate::Duplicate;
use self::jitter::Jitter;
use self::link::{ConstantRate, ScheduledRate};
use self::loss::{GilbertElliott, Loss, State};
use self::policer::Policer;
use self::reorder::Reorder;
use self::token_bucket::Tokens;
use crate::change::Change;
use crate::check::Check;
use crate::config::{AdmissionUnit, Probability, QueueConfig, Schedule};
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

/// One element of a path. Packets pass the elements of a direction in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ElementConfig {
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
    /// A policer: packets that find no tokens are dropped; packets never wait.
    Policer {
        /// Name in records and reports.
        name: String,
        /// Token rate.
        rate_bps: Rate,
        /// Bucket depth; full at the start.
        burst_bytes: Bytes,
        /// What it lets pass or drops as one.
        #[serde(default, skip_serializing_if = "AdmissionUnit::is_segment")]
        unit: AdmissionUnit,
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
    /// Gilbert-Elliott loss: two states with their own loss probability.
    GilbertElliott {
        /// Probability of going from good to bad, a packet.
        good_to_bad: Probability,
        /// Probability of going from bad to good, a packet.
        bad_to_good: Probability,
        /// Loss probability in the good state.
        loss_good: Probability,
        /// Loss probability in the bad state.
        loss_bad: Probability,
        /// What is lost as one, and counts as one for changes of state.
        #[serde(default, skip_serializing_if = "AdmissionUnit::is_segment")]
        unit: AdmissionUnit,
    },
    /// Random extra delay, uniform in 0..=`amplitude_ns`.
    Jitter {
        /// The largest extra delay.
        amplitude_ns: Duration,
        /// Whether packets may overtake each other. If not, a packet waits for its predecessor.
        reorder: bool,
    },
    /// Holds packets and releases all that have arrived at once: at multiples of an interval, shifted by a phase drawn
    /// from the element's own random stream.
    Aggregate {
        /// From one release to the next; above zero.
        every_ns: Duration,
        /// Whether neighbours of one flow that are released together are a burst from then on, as after receive offload.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        merge: bool,
    },
    /// Delivers a packet twice with this probability.
    Duplicate {
        /// Probability a packet.
        probability: Probability,
    },
    /// Holds back a packet by `delay_ns` with this probability, so that later ones overtake it.
    Reorder {
        /// Probability a packet.
        probability: Probability,
        /// How long it is held back.
        delay_ns: Duration,
    },
    /// Clears the ECN field of a packet with this probability.
    Bleach {
        /// Probability a packet.
        probability: Probability,
    },
    /// Drops ECN-capable packets.
    EcnBlackhole {},
}

impl ElementConfig {
    /// Its name in records and reports; `None` for an element without a queue.
    pub fn name(&self) -> Option<&str> {
        match self {
            ElementConfig::Link { name, .. }
            | ElementConfig::DeliveryTrace { name, .. }
            | ElementConfig::Cellular { name, .. }
            | ElementConfig::TokenBucket { name, .. }
            | ElementConfig::Policer { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Its kind as a scenario spells it.
    pub const fn kind(&self) -> &'static str {
        match self {
            ElementConfig::Link { .. } => "link",
            ElementConfig::DeliveryTrace { .. } => "delivery_trace",
            ElementConfig::Cellular { .. } => "cellular",
            ElementConfig::TokenBucket { .. } => "token_bucket",
            ElementConfig::Policer { .. } => "policer",
            ElementConfig::Delay { .. } => "delay",
            ElementConfig::Loss { .. } => "loss",
            ElementConfig::GilbertElliott { .. } => "gilbert_elliott",
            ElementConfig::Jitter { .. } => "jitter",
            ElementConfig::Aggregate { .. } => "aggregate",
            ElementConfig::Duplicate { .. } => "duplicate",
            ElementConfig::Reorder { .. } => "reorder",
            ElementConfig::Bleach { .. } => "bleach",
            ElementConfig::EcnBlackhole {} => "ecn_blackhole",
        }
    }

    /// Independent loss of single packets.
    pub const fn loss(probability: Schedule<Probability>) -> ElementConfig {
        ElementConfig::Loss { probability, unit: AdmissionUnit::Segment }
    }

    /// What it takes or drops as one.
    pub fn unit(&self) -> AdmissionUnit {
        match self {
            ElementConfig::Policer { unit, .. }
            | ElementConfig::Loss { unit, .. }
            | ElementConfig::GilbertElliott { unit, .. } => *unit,
            _ => self.queue().map_or(AdmissionUnit::Segment, |queue| queue.unit),
        }
    }

    /// Whether packets that are one burst in front of it, as `together` says, can be one burst behind it.
    pub fn leaves_together(&self, together: bool) -> bool {
        match self {
            ElementConfig::Link { .. }
            | ElementConfig::DeliveryTrace { .. }
            | ElementConfig::Cellular { .. }
            | ElementConfig::Jitter { .. }
            | ElementConfig::Reorder { .. } => false,
            // What its tokens suffice for leaves at once.
            ElementConfig::TokenBucket { queue, .. } => together && queue.unit == AdmissionUnit::Burst,
            ElementConfig::Aggregate { merge, .. } => *merge,
            _ => together,
        }
    }

    /// The highest rate at which packets can leave it; `None` if it limits no rate.
    pub(crate) fn highest_rate(&self) -> Option<Rate> {
        match self {
            ElementConfig::Link { rate_bps, .. } => {
                Some(rate_bps.changes.iter().map(|(_, rate)| *rate).fold(rate_bps.initial, Rate::max))
            }
            ElementConfig::TokenBucket { rate_bps, .. } | ElementConfig::Policer { rate_bps, .. } => {
                Some(*rate_bps)
            }
            ElementConfig::Cellular { rates_bps, .. } => rates_bps.last().copied(),
            ElementConfig::DeliveryTrace { opportunities_ms, .. } => {
                let bits = opportunities_ms.len() as u64 * OPPORTUNITY_BYTES * 8;
                let period_ms = opportunities_ms.last().copied().unwrap_or(1).max(1);
                Some(Rate::from_bits_per_sec(bits.saturating_mul(1000) / period_ms))
            }
            _ => None,
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
            // What a radio could carry depends on the demand.
            ElementConfig::Policer { .. } | ElementConfig::Cellular { .. } => Some(None),
            _ => None,
        }
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
            ElementConfig::Policer { rate_bps, burst_bytes, unit, .. } => {
                write!(f, "policer {rate_bps} burst {burst_bytes}{}", of_unit(*unit))
            }
            ElementConfig::Delay { delay_ns } => write!(f, "delay {delay_ns}"),
            ElementConfig::Loss { probability, unit } => write!(f, "loss {probability}{}", of_unit(*unit)),
            ElementConfig::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, unit } => write!(
                f,
                "Gilbert-Elliott loss {loss_good} and {loss_bad}, changing with {good_to_bad} and {bad_to_good}{}",
                of_unit(*unit)
            ),
            ElementConfig::Jitter { amplitude_ns, reorder } => {
                write!(f, "jitter {amplitude_ns}{}", if *reorder { " with reordering" } else { "" })
            }
            ElementConfig::Aggregate { every_ns, merge } => {
                write!(f, "{} every {every_ns}", if *merge { "merged" } else { "aggregated" })
            }
            ElementConfig::Duplicate { probability } => write!(f, "duplicates {probability}"),
            ElementConfig::Reorder { probability, delay_ns } => {
                write!(f, "{probability} held back by {delay_ns}")
            }
            ElementConfig::Bleach { probability } => write!(f, "ECN cleared of {probability}"),
            ElementConfig::EcnBlackhole {} => write!(f, "ECN black hole"),
        }
    }
}

const fn of_unit(unit: AdmissionUnit) -> &'static str {
    match unit {
        AdmissionUnit::Segment => "",
        AdmissionUnit::Burst => " of whole bursts",
    }
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
    Bleach(Bleach),
    EcnBlackhole,
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
            ElementConfig::Policer { name, rate_bps, burst_bytes, .. } => {
                check.tokens(*rate_bps, *burst_bytes)?;
                let unlimited = QueueConfig::drop_tail(Bytes::MAX, None);
                let server = Policer::new(*rate_bps, *burst_bytes);
                Element::Policer(Queue::new(name, unlimited, server, announced))
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
            &ElementConfig::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, .. } => {
                check.probability("good_to_bad", good_to_bad)?;
                check.probability("bad_to_good", bad_to_good)?;
                check.probability("loss_good", loss_good)?;
                check.probability("loss_bad", loss_bad)?;
                let good = State { leave: good_to_bad, lose: loss_good };
                let bad = State { leave: bad_to_good, lose: loss_bad };
                Element::GilbertElliott(GilbertElliott::new(good, bad, random))
            }
            &ElementConfig::Jitter { amplitude_ns, reorder } => {
                Element::Jitter(Jitter::new(amplitude_ns, reorder, random))
            }
            &ElementConfig::Aggregate { every_ns, merge } => {
                check.that(every_ns > Duration::ZERO, "every_ns", every_ns, "an interval above 0")?;
                Element::Aggregate(Aggregate::new(every_ns, merge, random))
            }
            &ElementConfig::Duplicate { probability } => {
                check.probability("probability", probability)?;
                Element::Duplicate(Duplicate::new(probability, random))
            }
            &ElementConfig::Reorder { probability, delay_ns } => {
                check.probability("probability", probability)?;
                Element::Reorder(Reorder::new(probability, delay_ns, random))
            }
            &ElementConfig::Bleach { probability } => {
                check.probability("probability", probability)?;
                Element::Bleach(Bleach::new(probability, random))
            }
            ElementConfig::EcnBlackhole {} => Element::EcnBlackhole,
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
            Element::Aggregate(aggregate) => aggregate.admit(now, packet),
            Element::Duplicate(duplicate) => duplicate.admit(now),
            Element::Reorder(reorder) => Fate::Leaves(reorder.admit(now)),
            Element::Bleach(bleach) => bleach.admit(now),
            Element::EcnBlackhole => ecn_blackhole::admit(now, packet.ecn),
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
            Element::Policer(queue) => return queue.admit_burst(moment, burst),
            Element::Loss(loss) => loss.admit(moment.arrival),
            Element::GilbertElliott(loss) => loss.admit(moment.arrival),
            _ => unreachable!("{self:?} takes single packets"),
        };
        match fate {
            Fate::Leaves(departure) => BurstFate::Leaves(departure),
            Fate::Dropped(cause) => BurstFate::Dropped(cause),
            Fate::Twice(_) | Fate::Remarked(..) | Fate::Merged(..) => {
                unreachable!("losses make no copies, no marks and no bursts")
            }
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

    /// Whether packets that arrive together, and are not taken as a burst, leave one after the other or as others come.
    pub(crate) fn parts(&self) -> bool {
        self.takes_time() && !matches!(self, Element::Delay(_))
    }

    /// Whether it decides what is a burst behind it, whatever came.
    pub(crate) fn merges(&self) -> bool {
        matches!(self, Element::Aggregate(aggregate) if aggregate.merges())
    }

    /// Whether a packet may leave later than it arrives.
    pub(crate) fn takes_time(&self) -> bool {
        !matches!(
            self,
            Element::Policer(_)
                | Element::Loss(_)
                | Element::GilbertElliott(_)
                | Element::Duplicate(_)
                | Element::Bleach(_)
                | Element::EcnBlackhole
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_described_in_the_words_of_a_scenario() {
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
