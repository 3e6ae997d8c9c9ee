//! The further elements of a path: the words for each, their resolution into numbers, and the bounds of these.
//!
//! Those with a queue or a schedule have words of their own here. All others are as `fullpipe-path` declares them.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::LazyLock;

use fullpipe_path::config::{ElementConfig, Probability, Schedule};
use fullpipe_path::{ELEMENTS, ETHERNET_HEADER_BYTES};
use fullpipe_units::{Duration, Rate, Time};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::value::EnumAccessDeserializer;
use serde::de::{DeserializeSeed, EnumAccess, Error as _, IntoDeserializer, VariantAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::bounds;
use crate::check;
use crate::declared::{self, Declared, Fields};
use crate::error::ScenarioError;
use crate::quantity::{QuantityText, Size};
use crate::resolve::builder::Builder;
use crate::resolve::values as read;
use crate::unit::Unit;

/// One that is written out here, chosen by `kind`.
// Externally tagged for serde, because `reader` takes the variant from `kind` itself and so keeps the path of errors.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
#[schemars(tag = "kind")]
enum Written {
    /// A further link behind its own queue: a chain of bottlenecks.
    Link {
        /// Name in records. Default: the kind, numbered.
        name: Option<String>,
        /// Its rate.
        #[schemars(required)]
        rate: Option<QuantityText<Rate>>,
        /// What fits into its queue; a "bdp" is this `rate` times the path's `rtt`.
        #[schemars(required)]
        buffer: Option<QuantityText<Size>>,
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
        buffer: Option<QuantityText<Size>>,
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
        rates: Option<Vec<QuantityText<Rate>>>,
        /// From one review of the grant to the next, at least 1 ms.
        #[schemars(required)]
        review: Option<QuantityText<Duration>>,
        /// The wait above which there is demand for a higher rate.
        #[schemars(required)]
        demand: Option<QuantityText<Duration>>,
        /// What fits into its queue; a "bdp" is the highest of `rates` times the path's `rtt`.
        #[schemars(required)]
        buffer: Option<QuantityText<Size>>,
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
        rate: Option<QuantityText<Rate>>,
        /// Depth of the bucket, at least one packet.
        #[schemars(required)]
        burst: Option<QuantityText<Size>>,
        /// What fits into its queue (`limit` of tc-tbf).
        #[schemars(required)]
        buffer: Option<QuantityText<Size>>,
        /// What that queue does with packets. Default: fifo.
        queue: Option<String>,
        /// What it takes or drops as one. Default: segment.
        unit: Option<Unit>,
    },
    /// A one-way delay, on top of the path's round-trip time.
    Delay {
        /// The delay.
        #[schemars(required)]
        delay: Option<QuantityText<Duration>>,
        /// The delay from given times on.
        #[serde(default)]
        changes: Vec<DelayChange>,
    },
    /// Independent random loss.
    Loss {
        /// Of each packet, or of each burst.
        #[schemars(required)]
        probability: Option<QuantityText<Probability>>,
        /// What is lost as one. Default: segment.
        unit: Option<Unit>,
        /// The loss from given times on.
        #[serde(default)]
        changes: Vec<LossChange>,
    },
}

/// A further element of the path, chosen by `kind`.
#[derive(Clone, Debug)]
pub struct Element(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Written(Written),
    Declared(Declared),
}

/// The kinds that are written out here, then those that are declared.
static KINDS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    let written = ["link", "delivery_trace", "cellular", "token_bucket", "delay", "loss"];
    written.into_iter().chain(ELEMENTS.iter().map(|info| info.kind)).collect()
});

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(node: D) -> Result<Element, D::Error> {
        node.deserialize_enum("Element", &KINDS, Tables)
    }
}

/// Reads a table by its kind.
struct Tables;

impl<'de> Visitor<'de> for Tables {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table")
    }

    fn visit_enum<A: EnumAccess<'de>>(self, access: A) -> Result<Element, A::Error> {
        let (kind, table) = access.variant_seed(Tables)?;
        Ok(Element(match ELEMENTS.iter().find(|info| info.kind == kind) {
            Some(info) => Kind::Declared(table.struct_variant(&[], Fields(info))?),
            None => {
                let again = EnumAccessDeserializer::new(Again(kind, table));
                Kind::Written(Written::deserialize(again)?)
            }
        }))
    }
}

/// Reads the kind.
impl<'de> DeserializeSeed<'de> for Tables {
    type Value = &'static str;

    fn deserialize<D: Deserializer<'de>>(self, node: D) -> Result<&'static str, D::Error> {
        let given = String::deserialize(node)?;
        let known = KINDS.iter().find(|kind| **kind == given);
        known.copied().ok_or_else(|| D::Error::unknown_variant(&given, &KINDS))
    }
}

/// A table whose kind has been read, to read it again.
struct Again<T>(&'static str, T);

impl<'de, T: VariantAccess<'de>> EnumAccess<'de> for Again<T> {
    type Error = T::Error;
    type Variant = T;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, T), T::Error> {
        Ok((seed.deserialize(self.0.into_deserializer())?, self.1))
    }
}

impl JsonSchema for Element {
    fn schema_name() -> Cow<'static, str> {
        "Element".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = Written::json_schema(generator);
        let declared = ELEMENTS.iter().map(|info| Declared::schema(info, generator).to_value());
        if let Some(kinds) = schema.get_mut("oneOf").and_then(|one| one.as_array_mut()) {
            kinds.extend(declared);
        }
        schema.insert("description".into(), "A further element of the path, chosen by `kind`.".into());
        schema
    }
}

impl Element {
    /// What fits into its queue, as it is given.
    pub(crate) fn buffer(&self) -> Option<&QuantityText<Size>> {
        let Kind::Written(written) = &self.0 else { return None };
        match written {
            Written::Link { buffer, .. }
            | Written::DeliveryTrace { buffer, .. }
            | Written::Cellular { buffer, .. }
            | Written::TokenBucket { buffer, .. } => buffer.as_ref(),
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
        let written = match &self.0 {
            Kind::Declared(declared) => return declared.resolve(&at, builder),
            Kind::Written(written) => written,
        };
        Ok(match written {
            Written::Link { name, rate: message, buffer, queue, unit, changes } => {
                let initial = read::rate(&at("rate"), message)?;
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
            Written::DeliveryTrace { name, deliveries: file, buffer, queue, unit } => {
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
            Written::Cellular { name, rates, review, demand, buffer, queue, unit } => {
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
            Written::TokenBucket { name, rate: message, burst, buffer, queue, unit } => {
                let rate_bps = read::rate(&at("rate"), message)?;
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
            Written::Delay { delay: message, changes } => {
                let initial = read::delay(&at("delay"), message)?;
                let times = builder.times(&at("changes"), changes.iter().map(|change| &change.at))?;
                let read = |(index, time): (usize, Time)| {
                    Ok((time, read::delay(&at(&format!("changes[{index}].delay")), &changes[index].delay)?))
                };
                let changes = times.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
                ElementConfig::Delay { delay_ns: Schedule { initial, changes } }
            }
            Written::Loss { probability: message, unit, changes } => {
                let initial = read::probability(&at("probability"), message)?;
                let times = builder.times(&at("changes"), changes.iter().map(|change| &change.at))?;
                let read = |(index, time): (usize, Time)| {
                    let field = at(&format!("changes[{index}].probability"));
                    Ok((time, read::probability(&field, &changes[index].probability)?))
                };
                let changes = times.into_iter().enumerate().map(read).collect::<Result<_, _>>()?;
                ElementConfig::Loss { probability: Schedule { initial, changes }, unit: Unit::config(*unit) }
            }
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
        ElementConfig::Delay { delay_ns } => check::schedule("delay_ns", delay_ns, check::delay),
        ElementConfig::Loss { probability: loss, .. } => {
            check::schedule("probability", loss, check::probability)
        }
        _ => config.declared().map_or(Ok(()), |one| declared::check(one, mtu, names)),
    }
}

/// A link's rate from one time on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RateChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<QuantityText<Duration>>,
    /// The rate from then on.
    #[schemars(required)]
    pub rate: Option<QuantityText<Rate>>,
}

/// A delay from one time on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<QuantityText<Duration>>,
    /// The delay from then on.
    #[schemars(required)]
    pub delay: Option<QuantityText<Duration>>,
}

/// Random loss from one time on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LossChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<QuantityText<Duration>>,
    /// The loss from then on.
    #[schemars(required)]
    pub probability: Option<QuantityText<Probability>>,
}
