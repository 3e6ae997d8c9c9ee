//! The path: both directions as lists of elements.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fullpipe_files::Kind;
use fullpipe_path::config::{ElementConfig, Probability, Schedule};
use fullpipe_path::deliveries::{DeliveriesError, parse_mahimahi};
use fullpipe_units::{Bytes, Duration, Rate, Time};

mod router;
mod sizes;

use super::{Files, read_file};
pub(crate) use super::{default, required};
use crate::bounds;
use crate::document::{PathDocument, ReverseDocument};
use crate::elements::{Element, Unit};
use crate::error::ScenarioError;
use crate::quantity::{Quantity, Said};
use crate::queue;

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
    document: &PathDocument,
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
        read_change(&mut rates, time, &change.rate, |said| rate(&format!("{field}.rate"), said))?;
        read_change(&mut rtts, time, &change.rtt, |said| delay(&format!("{field}.rtt"), said))?;
        read_change(&mut losses, time, &change.loss, |said| probability(&format!("{field}.loss"), said))?;
    }

    let (bottleneck, bottleneck_rate) = builder.bottleneck(document, rates)?;
    let forward = Direction {
        field: "path",
        before: &document.before,
        link: Some(bottleneck),
        unit: router::unit(document),
        loss: (&document.loss, losses),
        jitter: (&document.jitter, document.jitter_reorders),
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
    loss: (&'a Option<Said<Probability>>, Vec<(Time, Probability)>),
    /// The amplitude, and whether it reorders.
    jitter: (&'a Option<Said<Duration>>, Option<bool>),
    after: &'a [Element],
    delay: Schedule<Duration>,
}

/// What the elements need to know about the scenario.
pub(crate) struct Builder<'a> {
    packet: Bytes,
    rtt: Duration,
    duration: Duration,
    files: Files<'a>,
    /// Names in use, in both directions.
    names: BTreeSet<String>,
    /// Of all delivery traces so far.
    opportunities: u64,
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
            (said, None, burst) => (rate("path.rate", said)?, burst),
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
        document: &ReverseDocument,
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
            read_change(&mut rates, time, &change.rate, |said| rate(&format!("{field}.rate"), said))?;
            read_change(&mut losses, time, &change.loss, |said| probability(&format!("{field}.loss"), said))?;
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
            jitter: (&document.jitter, document.jitter_reorders),
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
        let Direction { field, before, link, unit, loss, jitter, after, delay } = direction;
        let mut elements = self.elements(&format!("{field}.before"), before)?;
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
        match jitter {
            (Some(said), reorder) => elements.push(ElementConfig::Jitter {
                amplitude_ns: said
                    .read_within(&format!("{field}.jitter"), Duration::ZERO..=bounds::MAX_DELAY)?,
                reorder: reorder.unwrap_or(false),
            }),
            (None, Some(_)) => {
                return Err(ScenarioError::missing(&format!("{field}.jitter"))
                    .expected("a jitter, because jitter_reorders is given")
                    .write("\"2 ms\""));
            }
            (None, None) => {}
        }
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

    /// The given name, or else the kind, with a number if that is taken.
    pub(crate) fn name(
        &mut self,
        field: &str,
        given: &Option<String>,
        kind: &str,
    ) -> Result<String, ScenarioError> {
        if let Some(name) = given {
            super::check_name(field, name)?;
            if !self.names.insert(name.clone()) {
                return Err(ScenarioError::new(field, name, "is the name of another element")
                    .expected("a unique name for each element")
                    .fix("choose another name, or leave it out"));
            }
            return Ok(name.clone());
        }
        let mut name = kind.to_string();
        let mut number = 2;
        while !self.names.insert(name.clone()) {
            name = format!("{kind}-{number}");
            number += 1;
        }
        Ok(name)
    }

    /// Times of changes: in order, after the start, before the end.
    pub(crate) fn times<'s>(
        &self,
        field: &str,
        times: impl Iterator<Item = &'s Option<Said<Duration>>>,
    ) -> Result<Vec<Time>, ScenarioError> {
        let mut previous = Duration::ZERO;
        let mut read = Vec::new();
        for (index, said) in times.enumerate() {
            let field = format!("{field}[{index}].at");
            let said = required(&field, said)?;
            let at = said.read(&field)?;
            let wrong = |problem: String, expected: String, fix: &str| {
                Err(said.error(&field, problem).expected(expected).fix(fix))
            };
            if at <= previous {
                let expected = format!("a time after {}", previous.text());
                let problem = if index == 0 { "is the start" } else { "is not after the change before it" };
                return wrong(problem.to_string(), expected, "list the changes in the order of their times");
            }
            if at >= self.duration {
                let end = self.duration.text();
                return wrong(
                    format!("is not before the end ({end})"),
                    format!("a time before {end}"),
                    "remove the change, or make duration longer",
                );
            }
            previous = at;
            read.push(Time::ZERO + at);
        }
        Ok(read)
    }

    /// Whether a file is below the scenario's folder after links are resolved.
    fn is_own(&self, file: &Path) -> bool {
        let folder = self.files.folder().filter(|folder| !folder.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        match (file.canonicalize(), folder.canonicalize()) {
            (Ok(file), Ok(folder)) => file.starts_with(folder),
            _ => false,
        }
    }

    /// A delivery trace's opportunities and its mean rate.
    pub(crate) fn deliveries(
        &mut self,
        field: &str,
        file: &str,
    ) -> Result<(Arc<Vec<u64>>, Rate), ScenarioError> {
        const EXPECTED: &str = "a Mahimahi delivery trace: one whole millisecond a line, not decreasing";
        if let Files::None = self.files {
            return Err(ScenarioError::new(field, file, "is a file, and there are none here")
                .expected("a rate, or the rates themselves")
                .fix("write rate = \"10 Mbit/s\", or run it with `fullpipe run`"));
        }
        let path = self.files.folder().map_or_else(|| file.into(), |dir| dir.join(file));
        let shown = path.display().to_string();
        if let Some(kind) = Kind::of(&path).filter(|kind| *kind != Kind::Deliveries) {
            return Err(ScenarioError::new(field, &shown, format!("is {}", kind.name()))
                .expected(EXPECTED)
                .fix(kind.fix()));
        }
        let text = read_file(field, &path, bounds::MAX_TRACE_FILE, EXPECTED)?;
        let opportunities = parse_mahimahi(&text).map_err(|error| {
            // An untrusted scenario may name any file, so its contents must not end up in a message.
            let problem = if self.is_own(&path) { error.to_string() } else { without_content(&error) };
            let error = ScenarioError::new(field, &shown, format!("is not a delivery trace: {problem}"));
            error.expected(EXPECTED).fix("fix the file")
        })?;
        self.opportunities += opportunities.len() as u64;
        if self.opportunities > bounds::MAX_OPPORTUNITIES {
            let problem = format!("makes {} opportunities of all traces together", self.opportunities);
            return Err(ScenarioError::new(field, &shown, problem)
                .expected(format!("at most {}", bounds::MAX_OPPORTUNITIES))
                .fix("use fewer or shorter traces"));
        }
        let last_ms = opportunities.last().copied().filter(|last| *last > 0);
        let Some(last_ms) = last_ms else {
            let error = ScenarioError::new(field, &shown, "takes no time");
            return Err(error.expected(EXPECTED).fix("make the last time greater than zero"));
        };
        let rate = mean_rate(opportunities.len(), last_ms);
        Ok((Arc::new(opportunities), rate))
    }
}

/// The mean rate of a delivery trace with so many opportunities, the last at `last_ms`.
pub(super) fn mean_rate(opportunities: usize, last_ms: u64) -> Rate {
    let bits = opportunities as u128 * u128::from(fullpipe_path::OPPORTUNITY_BYTES) * 8;
    let bps = bits * 1000 / u128::from(last_ms.max(1));
    Rate::from_bits_per_sec(u64::try_from(bps).unwrap_or(u64::MAX))
}

/// What is wrong with a delivery trace: the line and the kind of problem, without the contents of the line.
fn without_content(error: &DeliveriesError) -> String {
    match error {
        DeliveriesError::Line { line, .. } => format!("line {line} is not a time in whole milliseconds"),
        DeliveriesError::Decreasing { line, .. } => {
            format!("line {line} has an earlier time than the line before")
        }
        other => other.to_string(),
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
    said: &Option<Said<T>>,
    read: impl Fn(&Option<Said<T>>) -> Result<T, ScenarioError>,
) -> Result<(), ScenarioError> {
    if said.is_some() {
        changes.push((time, read(said)?));
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

pub(crate) fn rate(field: &str, said: &Option<Said<Rate>>) -> Result<Rate, ScenarioError> {
    required(field, said)?.read_within(field, bounds::MIN_RATE..=bounds::MAX_RATE)
}

/// Rates in rising order.
pub(crate) fn radio_rates(field: &str, said: &Option<Vec<Said<Rate>>>) -> Result<Vec<Rate>, ScenarioError> {
    const EXPECTED: &str = "rates that rise, the first granted at the start";
    const EXAMPLE: &str = "[\"5 Mbit/s\", \"10 Mbit/s\", \"20 Mbit/s\"]";
    let said = said.as_deref().unwrap_or_default();
    if said.is_empty() {
        return Err(ScenarioError::missing(field).expected(EXPECTED).write(EXAMPLE));
    }
    let mut rates: Vec<Rate> = Vec::new();
    for (index, said) in said.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let rate = said.read_within(&field, bounds::MIN_RATE..=bounds::MAX_RATE)?;
        if rates.last().is_some_and(|&before| rate <= before) {
            return Err(said
                .error(&field, "is not above the one before it")
                .expected(EXPECTED)
                .fix("list the rates in rising order"));
        }
        rates.push(rate);
    }
    Ok(rates)
}

/// The queue of a radio: drop-tail only.
pub(crate) fn radio_queue(field: &str, said: &Option<String>) -> Result<(), ScenarioError> {
    let discipline = queue::read(field, said)?;
    if discipline.is_fifo() {
        return Ok(());
    }
    let given = queue::text(&discipline);
    Err(ScenarioError::new(field, &given, "cannot manage the queue of a cellular radio")
        .expected("fifo: the demand that a radio sees is the queue itself")
        .fix("remove queue, or use a link"))
}

pub(crate) fn delay(field: &str, said: &Option<Said<Duration>>) -> Result<Duration, ScenarioError> {
    required(field, said)?.read_within(field, Duration::ZERO..=bounds::MAX_DELAY)
}

pub(crate) fn probability(
    field: &str,
    said: &Option<Said<Probability>>,
) -> Result<Probability, ScenarioError> {
    required(field, said)?.read(field)
}
