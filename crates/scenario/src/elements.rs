//! The further elements of a path: the words for each, their resolution into numbers, and the bounds of these.
//!
//! A new kind of element is a variant here and its lines in the two functions below; what it does is in `fullpipe-path`.

use std::collections::BTreeSet;

use fullpipe_path::ETHERNET_HEADER_BYTES;
use fullpipe_path::config::{ElementConfig, Probability, Schedule};
use fullpipe_units::{Duration, Rate, Time};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::bounds;
use crate::check;
use crate::error::ScenarioError;
use crate::quantity::{Said, Size};
use crate::resolve::builder::Builder;
use crate::resolve::values as read;
use crate::unit::Unit;

/// A further element of the path, chosen by `kind`.
// Externally tagged for serde, because `reader` takes the variant from `kind` itself and so keeps the path of errors.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(tag = "kind")]
pub enum Element {
    /// A further link behind its own queue: a chain of bottlenecks.
    Link {
        /// Name in records. Default: the kind, numbered.
        name: Option<String>,
        /// Its rate.
        #[schemars(required)]
        rate: Option<Said<Rate>>,
        /// What fits into its queue; a "bdp" is this `rate` times the path's `rtt`.
        #[schemars(required)]
        buffer: Option<Said<Size>>,
        /// What that queue does with packets. Default: fifo.
        queue: Option<String>,
        /// What it takes or drops as one. Default: segment.
        unit: Option<Unit>,
        /// Its rate from given times on.
        #[serde(default)]
        changes: Vec<RateChange>,
    },
    /// A further link that follows a Mahimahi delivery trace.
    DeliveryTrace {
        /// Name in records. Default: the kind, numbered.
        name: Option<String>,
        /// The file, relative to the scenario's folder.
        #[schemars(required)]
        deliveries: Option<String>,
        /// What fits into its queue; a "bdp" is the file's mean rate times the path's `rtt`.
        #[schemars(required)]
        buffer: Option<Said<Size>>,
        /// What that queue does with packets. Default: fifo.
        queue: Option<String>,
        /// What it takes or drops as one. Default: segment.
        unit: Option<Unit>,
    },
    /// A cellular radio whose rate follows the demand that it sees: every `review`, it goes to the next of its `rates` if a
    /// packet had to wait longer than `demand`, and back if the link was idle for more than half of the time.
    Cellular {
        /// Name in records. Default: the kind, numbered.
        name: Option<String>,
        /// The rates that it grants, rising; the first is granted at the start.
        #[schemars(required, extend("examples" = [["5 Mbit/s", "10 Mbit/s", "20 Mbit/s"]]))]
        rates: Option<Vec<Said<Rate>>>,
        /// From one review of the grant to the next, at least 1 ms.
        #[schemars(required)]
        review: Option<Said<Duration>>,
        /// The wait above which there is demand for a higher rate.
        #[schemars(required)]
        demand: Option<Said<Duration>>,
        /// What fits into its queue; a "bdp" is the highest of `rates` times the path's `rtt`.
        #[schemars(required)]
        buffer: Option<Said<Size>>,
        /// Fifo: the demand that a radio sees is the queue itself.
        queue: Option<String>,
        /// What it takes or drops as one. Default: segment.
        unit: Option<Unit>,
    },
    /// A token bucket as tc-tbf: packets wait for tokens.
    TokenBucket {
        /// Name in records. Default: the kind, numbered.
        name: Option<String>,
        /// Token rate.
        #[schemars(required)]
        rate: Option<Said<Rate>>,
        /// Depth of the bucket, at least one packet.
        #[schemars(required)]
        burst: Option<Said<Size>>,
        /// What fits into its queue (`limit` of tc-tbf).
        #[schemars(required)]
        buffer: Option<Said<Size>>,
        /// What that queue does with packets. Default: fifo.
        queue: Option<String>,
        /// What it takes or drops as one. Default: segment.
        unit: Option<Unit>,
    },
    /// A policer: packets that find no tokens are dropped.
    Policer {
        /// Name in records. Default: the kind, numbered.
        name: Option<String>,
        /// Token rate.
        #[schemars(required)]
        rate: Option<Said<Rate>>,
        /// Depth of the bucket, at least one packet; full at the start.
        #[schemars(required)]
        burst: Option<Said<Size>>,
        /// What it takes or drops as one. Default: segment.
        unit: Option<Unit>,
    },
    /// A one-way delay, on top of the path's round-trip time.
    Delay {
        /// The delay.
        #[schemars(required)]
        delay: Option<Said<Duration>>,
        /// The delay from given times on.
        #[serde(default)]
        changes: Vec<DelayChange>,
    },
    /// Independent random loss.
    Loss {
        /// Of each packet, or of each burst.
        #[schemars(required)]
        probability: Option<Said<Probability>>,
        /// What is lost as one. Default: segment.
        unit: Option<Unit>,
        /// The loss from given times on.
        #[serde(default)]
        changes: Vec<LossChange>,
    },
    /// Loss in bursts: a good and a bad state, each with its own loss (Gilbert-Elliott).
    GilbertElliott {
        /// Probability, at each packet, of going from good to bad.
        #[schemars(required)]
        good_to_bad: Option<Said<Probability>>,
        /// Probability, at each packet, of going from bad to good.
        #[schemars(required)]
        bad_to_good: Option<Said<Probability>>,
        /// Loss in the good state. Default: 0.
        loss_good: Option<Said<Probability>>,
        /// Loss in the bad state. Default: 100 %.
        loss_bad: Option<Said<Probability>>,
        /// What is lost as one. Default: segment.
        unit: Option<Unit>,
    },
    /// Random extra delay, uniform between zero and `amplitude`.
    Jitter {
        /// The largest extra delay.
        #[schemars(required)]
        amplitude: Option<Said<Duration>>,
        /// Whether packets may overtake each other. Default: false.
        reorders: Option<bool>,
    },
    /// Holds packets and releases them together at regular times, as radios and offloading hosts do, mainly with ACKs.
    /// The phase of these times is random.
    Aggregate {
        /// From one release to the next: the longest that a packet is held.
        #[schemars(required)]
        every: Option<Said<Duration>>,
        /// Whether what is released together is a burst from then on, one of each flow, as receive offload (GRO) makes it of
        /// what one interrupt delivers. Default: false.
        merge: Option<bool>,
    },
    /// Delivers some packets twice.
    Duplicate {
        /// Of each packet.
        #[schemars(required)]
        probability: Option<Said<Probability>>,
    },
    /// Holds some packets back, so that later ones overtake them.
    Reorder {
        /// Of each packet.
        #[schemars(required)]
        probability: Option<Said<Probability>>,
        /// How long it is held back.
        #[schemars(required)]
        delay: Option<Said<Duration>>,
    },
    /// Clears the ECN field of packets, and with it the marks of queues before it, as some routers and carriers do.
    Bleach {
        /// Of each packet. Default: 100 %.
        probability: Option<Said<Probability>>,
    },
    /// Drops ECN-capable packets, as some middleboxes do. A SYN that asks for ECN is not itself capable and passes.
    EcnBlackhole {},
}

impl Element {
    /// What fits into its queue, as it is given.
    pub(crate) fn buffer(&self) -> Option<&Said<Size>> {
        match self {
            Element::Link { buffer, .. }
            | Element::DeliveryTrace { buffer, .. }
            | Element::Cellular { buffer, .. }
            | Element::TokenBucket { buffer, .. } => buffer.as_ref(),
            _ => None,
        }
    }

    /// The element in numbers. `field` is its place in the document.
    pub(crate) fn resolve(
        &self,
        field: &str,
        builder: &mut Builder<'_>,
    ) -> Result<ElementConfig, ScenarioError> {
        let at = |key: &str| format!("{field}.{key}");
        Ok(match self {
            Element::Link { name, rate: said, buffer, queue, unit, changes } => {
                let initial = read::rate(&at("rate"), said)?;
                let times = builder.times(&at("changes"), changes.iter().map(|change| &change.at))?;
                let read = |(index, time)| {
                    let change: &RateChange = &changes[index];
                    Ok((time, read::rate(&at(&format!("changes[{index}].rate")), &change.rate)?))
                };
                let changes = times.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
                ElementConfig::Link {
                    name: builder.name(&at("name"), name, "link")?,
                    queue: builder.sizes().queue(
                        &at,
                        Some(read::required(&at("buffer"), buffer)?),
                        queue,
                        *unit,
                        initial,
                    )?,
                    rate_bps: Schedule { initial, changes },
                }
            }
            Element::DeliveryTrace { name, deliveries: file, buffer, queue, unit } => {
                let field = at("deliveries");
                let Some(file) = file else {
                    let error = ScenarioError::missing(&field);
                    return Err(error.expected("a file").write("\"my.deliveries\""));
                };
                let (opportunities_ms, rate) = builder.deliveries(&field, file)?;
                ElementConfig::DeliveryTrace {
                    name: builder.name(&at("name"), name, "delivery_trace")?,
                    opportunities_ms,
                    queue: builder.sizes().queue(
                        &at,
                        Some(read::required(&at("buffer"), buffer)?),
                        queue,
                        *unit,
                        rate,
                    )?,
                }
            }
            Element::Cellular { name, rates, review, demand, buffer, queue, unit } => {
                let rates_bps = read::radio_rates(&at("rates"), rates)?;
                read::radio_queue(&at("queue"), queue)?;
                let highest = rates_bps.last().copied().unwrap_or_default();
                let field = at("review");
                let review_ns = read::required(&field, review)?
                    .read_within(&field, bounds::MIN_REVIEW..=bounds::MAX_DELAY)?;
                ElementConfig::Cellular {
                    name: builder.name(&at("name"), name, "cellular")?,
                    rates_bps,
                    review_ns,
                    demand_ns: read::delay(&at("demand"), demand)?,
                    queue: builder.sizes().queue(
                        &at,
                        Some(read::required(&at("buffer"), buffer)?),
                        queue,
                        *unit,
                        highest,
                    )?,
                }
            }
            Element::TokenBucket { name, rate: said, burst, buffer, queue, unit } => {
                let rate_bps = read::rate(&at("rate"), said)?;
                ElementConfig::TokenBucket {
                    name: builder.name(&at("name"), name, "token_bucket")?,
                    rate_bps,
                    burst_bytes: builder.sizes().burst(
                        &at("burst"),
                        read::required(&at("burst"), burst)?,
                        rate_bps,
                    )?,
                    frame_bytes: 0,
                    queue: builder.sizes().queue(
                        &at,
                        Some(read::required(&at("buffer"), buffer)?),
                        queue,
                        *unit,
                        rate_bps,
                    )?,
                }
            }
            Element::Policer { name, rate: said, burst, unit } => {
                let rate_bps = read::rate(&at("rate"), said)?;
                ElementConfig::Policer {
                    name: builder.name(&at("name"), name, "policer")?,
                    rate_bps,
                    burst_bytes: builder.sizes().burst(
                        &at("burst"),
                        read::required(&at("burst"), burst)?,
                        rate_bps,
                    )?,
                    unit: Unit::config(*unit),
                }
            }
            Element::Delay { delay: said, changes } => {
                let initial = read::delay(&at("delay"), said)?;
                let times = builder.times(&at("changes"), changes.iter().map(|change| &change.at))?;
                let read = |(index, time): (usize, Time)| {
                    Ok((time, read::delay(&at(&format!("changes[{index}].delay")), &changes[index].delay)?))
                };
                let changes = times.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
                ElementConfig::Delay { delay_ns: Schedule { initial, changes } }
            }
            Element::Loss { probability: said, unit, changes } => {
                let initial = read::probability(&at("probability"), said)?;
                let times = builder.times(&at("changes"), changes.iter().map(|change| &change.at))?;
                let read = |(index, time): (usize, Time)| {
                    let field = at(&format!("changes[{index}].probability"));
                    Ok((time, read::probability(&field, &changes[index].probability)?))
                };
                let changes = times.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
                ElementConfig::Loss { probability: Schedule { initial, changes }, unit: Unit::config(*unit) }
            }
            Element::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, unit } => {
                ElementConfig::GilbertElliott {
                    good_to_bad: read::probability(&at("good_to_bad"), good_to_bad)?,
                    bad_to_good: read::probability(&at("bad_to_good"), bad_to_good)?,
                    loss_good: read::default(loss_good, "0 %").read(&at("loss_good"))?,
                    loss_bad: read::default(loss_bad, "100 %").read(&at("loss_bad"))?,
                    unit: Unit::config(*unit),
                }
            }
            Element::Jitter { amplitude, reorders } => ElementConfig::Jitter {
                amplitude_ns: read::delay(&at("amplitude"), amplitude)?,
                reorder: reorders.unwrap_or(false),
            },
            Element::Aggregate { every, merge } => {
                let field = at("every");
                let said = read::required(&field, every)?;
                let every_ns = said.read_within(&field, bounds::MIN_INTERVAL..=bounds::MAX_DELAY)?;
                ElementConfig::Aggregate { every_ns, merge: merge.unwrap_or(false) }
            }
            Element::Duplicate { probability: said } => {
                ElementConfig::Duplicate { probability: read::probability(&at("probability"), said)? }
            }
            Element::Reorder { probability: said, delay: held } => ElementConfig::Reorder {
                probability: read::probability(&at("probability"), said)?,
                delay_ns: read::delay(&at("delay"), held)?,
            },
            Element::Bleach { probability: said } => {
                ElementConfig::Bleach { probability: read::default(said, "100 %").read(&at("probability"))? }
            }
            Element::EcnBlackhole {} => ElementConfig::EcnBlackhole {},
        })
    }
}

/// Whether every world can run an element with these numbers.
pub(crate) fn check<'a>(
    config: &'a ElementConfig,
    mtu: u32,
    names: &mut BTreeSet<&'a str>,
) -> Result<(), ScenarioError> {
    match config {
        ElementConfig::Link { name, rate_bps, queue } => {
            check::unique(name, names)?;
            check::schedule("rate_bps", rate_bps, check::rate)?;
            check::limit(queue, mtu)
        }
        ElementConfig::DeliveryTrace { name, opportunities_ms, queue } => {
            check::unique(name, names)?;
            let ordered = opportunities_ms.is_sorted();
            let lasts = opportunities_ms.last().is_some_and(|last| *last > 0);
            let count = format!("a list of {}", opportunities_ms.len());
            let expected = "milliseconds that do not decrease, the last above zero";
            check::demand(ordered && lasts, "opportunities_ms", count, expected)?;
            check::limit(queue, mtu)
        }
        ElementConfig::Cellular { name, rates_bps, review_ns, demand_ns, queue } => {
            check::unique(name, names)?;
            let rising = rates_bps.is_sorted_by(|lower, higher| lower < higher) && !rates_bps.is_empty();
            check::demand(rising, "rates_bps", format!("a list of {}", rates_bps.len()), "rates that rise")?;
            rates_bps.iter().try_for_each(|granted| check::rate("rates_bps", *granted))?;
            check::within("review_ns", *review_ns, bounds::MIN_REVIEW, bounds::MAX_DELAY)?;
            check::delay("demand_ns", *demand_ns)?;
            check::drop_tail(queue, "fifo, as of every cellular radio")?;
            check::limit(queue, mtu)
        }
        ElementConfig::TokenBucket { name, rate_bps, burst_bytes, frame_bytes, queue } => {
            check::unique(name, names)?;
            check::rate("rate_bps", *rate_bps)?;
            let known = [0, ETHERNET_HEADER_BYTES].contains(frame_bytes);
            check::demand(known, "frame_bytes", *frame_bytes, "0, or 14 on an Ethernet interface")?;
            let frame = mtu + frame_bytes;
            check::burst(*burst_bytes, frame)?;
            if *frame_bytes == 0 {
                return check::limit(queue, frame);
            }
            check::drop_tail(queue, "fifo, which tc-tbf has by itself")?;
            check::router_limit(queue, frame)
        }
        ElementConfig::Policer { name, rate_bps, burst_bytes, .. } => {
            check::unique(name, names)?;
            check::rate("rate_bps", *rate_bps)?;
            check::burst(*burst_bytes, mtu)
        }
        ElementConfig::Delay { delay_ns } => check::schedule("delay_ns", delay_ns, check::delay),
        ElementConfig::Loss { probability: loss, .. } => {
            check::schedule("probability", loss, check::probability)
        }
        ElementConfig::GilbertElliott { good_to_bad, bad_to_good, loss_good, loss_bad, .. } => {
            check::probability("good_to_bad", *good_to_bad)?;
            check::probability("bad_to_good", *bad_to_good)?;
            check::probability("loss_good", *loss_good)?;
            check::probability("loss_bad", *loss_bad)
        }
        ElementConfig::Jitter { amplitude_ns, reorder: _ } => check::delay("amplitude_ns", *amplitude_ns),
        ElementConfig::Aggregate { every_ns, merge: _ } => {
            check::within("every_ns", *every_ns, bounds::MIN_INTERVAL, bounds::MAX_DELAY)
        }
        ElementConfig::Duplicate { probability: share } | ElementConfig::Bleach { probability: share } => {
            check::probability("probability", *share)
        }
        ElementConfig::EcnBlackhole {} => Ok(()),
        ElementConfig::Reorder { probability: share, delay_ns } => {
            check::probability("probability", *share)?;
            check::delay("delay_ns", *delay_ns)
        }
    }
}

/// A link's rate from one time on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<Said<Duration>>,
    /// The rate from then on.
    #[schemars(required)]
    pub rate: Option<Said<Rate>>,
}

/// A delay from one time on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<Said<Duration>>,
    /// The delay from then on.
    #[schemars(required)]
    pub delay: Option<Said<Duration>>,
}

/// Random loss from one time on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<Said<Duration>>,
    /// The loss from then on.
    #[schemars(required)]
    pub probability: Option<Said<Probability>>,
}
