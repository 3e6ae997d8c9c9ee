//! The path: both directions as lists of elements.

use std::collections::BTreeSet;

use fullpipe_path::config::{ElementConfig, Probability, Schedule};
use fullpipe_path::element::Side;
use fullpipe_units::{Bytes, Duration, Rate, Time};

mod router;
mod sizes;

use super::builder::Builder;
use super::files::Files;
use super::values::{default, delay, probability, rate};
use crate::bounds;
use crate::declared::{Options, WithOptions};
use crate::document::{PathDocument, ReverseDocument};
use crate::elements::Element;
use crate::error::ScenarioError;
use crate::quantity::QuantityText;
use crate::unit::Unit;

/// A path in numbers.
pub(super) struct ResolvedPath {
    /// From senders to receivers.
    pub(super) forward: Vec<ElementConfig>,
    /// And back.
    pub(super) reverse: Vec<ElementConfig>,
    /// Round-trip time at the start.
    pub(super) rtt: Duration,
    /// Rate of the bottleneck at the start; a delivery trace's mean.
    pub(super) rate: Rate,
}

/// Resolves the path for packets of up to `packet` bytes and a run of `duration`.
pub(super) fn resolve(
    document: &WithOptions<PathDocument>,
    packet: Bytes,
    duration: Duration,
    files: Files<'_>,
) -> Result<ResolvedPath, ScenarioError> {
    let rtt = delay("path.rtt", &document.rtt)?;
    let mut builder = Builder { packet, rtt, duration, files, names: BTreeSet::new(), opportunities: 0 };
    // Reserved first, so that other elements cannot get them.
    builder.names.extend(["bottleneck".to_string(), "reverse".to_string()]);

    let times = builder.times("path.changes", document.changes.iter().map(|change| &change.at))?;
    let mut rtts = Vec::new();
    let mut rates = Vec::new();
    let mut losses = Vec::new();
    for (index, (change, time)) in document.changes.iter().zip(times).enumerate() {
        let field = format!("path.changes[{index}]");
        if change.rate.is_none() && change.rtt.is_none() && change.loss.is_none() {
            return Err(ScenarioError::missing(&field)
                .expected("rate, rtt or loss together with at")
                .fix("add what changes, or remove the change"));
        }
        read_change(&mut rates, time, &change.rate, |written| rate(&format!("{field}.rate"), written))?;
        read_change(&mut rtts, time, &change.rtt, |written| delay(&format!("{field}.rtt"), written))?;
        read_change(&mut losses, time, &change.loss, |written| {
            probability(&format!("{field}.loss"), written)
        })?;
    }

    let (bottleneck, bottleneck_rate) = builder.bottleneck(document, rates)?;
    let forward = Direction {
        field: "path",
        before: &document.before,
        link: Some(bottleneck),
        unit: router::unit(document),
        loss: (&document.loss, losses),
        options: &document.options,
        after: &document.after,
        delay: halves(rtt, &rtts, |rtt| Duration::from_nanos(rtt.as_nanos() / 2)),
    };
    let forward = builder.direction(forward)?;
    let half_back = halves(rtt, &rtts, |rtt| Duration::from_nanos(rtt.as_nanos().div_ceil(2)));
    let reverse = builder.reverse(&document.reverse, half_back)?;
    Ok(ResolvedPath { forward, reverse, rtt, rate: bottleneck_rate })
}

/// The part of one direction that differs between the two.
struct Direction<'a> {
    /// Its place in the document.
    field: &'static str,
    before: &'a [Element],
    link: Option<ElementConfig>,
    unit: Option<Unit>,
    /// The loss at the start, and its changes.
    loss: (&'a Option<QuantityText<Probability>>, Vec<(Time, Probability)>),
    options: &'a Options,
    after: &'a [Element],
    delay: Schedule<Duration>,
}

impl Builder<'_> {
    fn bottleneck(
        &mut self,
        document: &PathDocument,
        changes: Vec<(Time, Rate)>,
    ) -> Result<(ElementConfig, Rate), ScenarioError> {
        let name = "bottleneck".to_string();
        let fixed = |what: &str, with: &str| fixed_rate("path.changes", what, "rtt and loss", with);
        let at = |key: &str| format!("path.{key}");
        let sizes = self.counting(router::counted(document));
        let (buffer, unit) = (document.buffer.as_ref(), router::unit(document));
        let queue = |rate| sizes.queue(&at, buffer, &document.queue, unit, rate);
        let deliveries = document.deliveries.as_deref().map(|file| (at("deliveries"), file));
        if let Some(router) = document.router {
            router::check(router, document)?;
        }
        let (rate, burst) = match (&document.rate, deliveries, &document.burst) {
            (Some(_), Some((field, file)), _) => {
                return Err(with_a_rate(&field, file));
            }
            (None, Some((field, file)), None) => {
                let (opportunities_ms, rate) = self.deliveries(&field, file)?;
                if !changes.is_empty() {
                    return Err(fixed("a delivery trace", "deliveries"));
                }
                return Ok((
                    ElementConfig::DeliveryTrace { name, opportunities_ms, queue: queue(rate)? },
                    rate,
                ));
            }
            (None, Some(_), Some(burst)) => {
                return Err(burst
                    .error("path.burst", "is given together with deliveries")
                    .expected("burst together with rate")
                    .fix("remove burst"));
            }
            (written, None, burst) => (rate("path.rate", written)?, burst),
        };
        match burst {
            None => {
                let rate_bps = Schedule { initial: rate, changes };
                Ok((ElementConfig::Link { name, rate_bps, queue: queue(rate)? }, rate))
            }
            Some(_) if !changes.is_empty() => Err(match document.router {
                Some(_) => fixed("a router", "router"),
                None => fixed("a token bucket", "burst"),
            }),
            Some(burst) => {
                let burst_bytes = sizes.burst("path.burst", burst, rate)?;
                let frame_bytes = sizes.header_bytes();
                let queue = queue(rate)?;
                Ok((
                    ElementConfig::TokenBucket { name, rate_bps: rate, burst_bytes, frame_bytes, queue },
                    rate,
                ))
            }
        }
    }

    fn reverse(
        &mut self,
        document: &WithOptions<ReverseDocument>,
        delay: Schedule<Duration>,
    ) -> Result<Vec<ElementConfig>, ScenarioError> {
        const FIELD: &str = "path.reverse";
        let times = self.times("path.reverse.changes", document.changes.iter().map(|change| &change.at))?;
        let mut rates = Vec::new();
        let mut losses = Vec::new();
        for (index, (change, time)) in document.changes.iter().zip(times).enumerate() {
            let field = format!("path.reverse.changes[{index}]");
            if change.rate.is_none() && change.loss.is_none() {
                return Err(ScenarioError::missing(&field)
                    .expected("rate or loss together with at")
                    .fix("add what changes, or remove the change"));
            }
            read_change(&mut rates, time, &change.rate, |written| rate(&format!("{field}.rate"), written))?;
            read_change(&mut losses, time, &change.loss, |written| {
                probability(&format!("{field}.loss"), written)
            })?;
        }
        let link = self.reverse_link(document, rates)?;
        if document.unit.is_some() && link.is_none() && document.loss.is_none() && losses.is_empty() {
            return Err(ScenarioError::new("path.reverse.unit", "unit", "has nothing to apply to")
                .expected("a rate or a loss on the way back")
                .fix("remove unit"));
        }
        self.direction(Direction {
            field: FIELD,
            before: &document.before,
            link,
            unit: document.unit,
            loss: (&document.loss, losses),
            options: &document.options,
            after: &document.after,
            delay,
        })
    }

    fn reverse_link(
        &mut self,
        document: &ReverseDocument,
        changes: Vec<(Time, Rate)>,
    ) -> Result<Option<ElementConfig>, ScenarioError> {
        let name = "reverse".to_string();
        let buffer = default(&document.buffer, "1000 packets");
        let at = |key: &str| format!("path.reverse.{key}");
        let queue = |builder: &Self, rate| {
            builder.sizes().queue(&at, Some(&buffer), &document.queue, document.unit, rate)
        };
        match (&document.rate, document.deliveries.as_deref()) {
            (Some(_), Some(file)) => Err(with_a_rate(&at("deliveries"), file)),
            (Some(_), None) => {
                let initial = rate("path.reverse.rate", &document.rate)?;
                let rate_bps = Schedule { initial, changes };
                Ok(Some(ElementConfig::Link { name, rate_bps, queue: queue(self, initial)? }))
            }
            (None, Some(_)) if !changes.is_empty() => {
                Err(fixed_rate("path.reverse.changes", "a delivery trace", "loss", "deliveries"))
            }
            (None, Some(file)) => {
                let (opportunities_ms, mean) = self.deliveries(&at("deliveries"), file)?;
                Ok(Some(ElementConfig::DeliveryTrace { name, opportunities_ms, queue: queue(self, mean)? }))
            }
            (None, None) if document.buffer.is_some() || document.queue.is_some() || !changes.is_empty() => {
                Err(ScenarioError::missing("path.reverse.rate")
                    .expected("a rate, because there is a buffer, a queue or a change of rate")
                    .write("\"10 Mbit/s\""))
            }
            (None, None) => Ok(None),
        }
    }

    /// The order in which a packet passes a direction.
    fn direction(&mut self, direction: Direction<'_>) -> Result<Vec<ElementConfig>, ScenarioError> {
        let Direction { field, before, link, unit, loss, options, after, delay } = direction;
        let mut elements = self.elements(&format!("{field}.before"), before)?;
        elements.extend(options.resolve(field, Side::Before, self)?);
        let (initial, changes) = loss;
        let loss = if initial.is_some() || !changes.is_empty() {
            let initial = default(initial, "0").read(&format!("{field}.loss"))?;
            let probability = Schedule { initial, changes };
            Some(ElementConfig::Loss { probability, unit: Unit::config(unit) })
        } else {
            None
        };
        // A link sends the packets of a burst one after the other: behind it, no burst could be lost as one.
        let parts = link.as_ref().is_some_and(|link| !link.leaves_together(true));
        let loss_first = parts && unit == Some(Unit::Burst);
        elements.extend(if loss_first { [loss, link] } else { [link, loss] }.into_iter().flatten());
        elements.extend(options.resolve(field, Side::After, self)?);
        elements.extend(self.elements(&format!("{field}.after"), after)?);
        if delay != Schedule::constant(Duration::ZERO) {
            elements.push(ElementConfig::Delay { delay_ns: delay });
        }
        Ok(elements)
    }

    fn elements(&mut self, field: &str, elements: &[Element]) -> Result<Vec<ElementConfig>, ScenarioError> {
        if elements.len() > bounds::MAX_ELEMENTS {
            let given = format!("{} elements", elements.len());
            return Err(ScenarioError::new(field, &given, "are too many")
                .expected(format!("at most {}", bounds::MAX_ELEMENTS))
                .fix("remove some"));
        }
        elements
            .iter()
            .enumerate()
            .map(|(index, element)| element.resolve(&format!("{field}[{index}]"), self))
            .collect()
    }
}

/// A link has a rate or follows a delivery trace.
fn with_a_rate(field: &str, file: &str) -> ScenarioError {
    ScenarioError::new(field, file, "is given together with a rate")
        .expected("either rate or deliveries")
        .fix("remove one of the two")
}

/// The error for a change of a rate that is fixed.
fn fixed_rate(field: &str, what: &str, changeable: &str, with: &str) -> ScenarioError {
    ScenarioError::new(field, "rate", format!("cannot change {what}"))
        .expected(format!("changes of {changeable} only, together with {with}"))
        .fix("remove the changes of rate")
}

/// Reads one value of a change, if it is given.
fn read_change<T: Clone>(
    changes: &mut Vec<(Time, T)>,
    time: Time,
    written: &Option<QuantityText<T>>,
    read: impl Fn(&Option<QuantityText<T>>) -> Result<T, ScenarioError>,
) -> Result<(), ScenarioError> {
    if written.is_some() {
        changes.push((time, read(written)?));
    }
    Ok(())
}

/// The share of the round-trip time that one direction has, now and after each change.
fn halves(
    rtt: Duration,
    changes: &[(Time, Duration)],
    half: impl Fn(Duration) -> Duration,
) -> Schedule<Duration> {
    Schedule { initial: half(rtt), changes: changes.iter().map(|(time, rtt)| (*time, half(*rtt))).collect() }
}
