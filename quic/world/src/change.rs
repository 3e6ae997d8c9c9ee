//! Changes of a path while a run goes on, from numbers or in words with units.
//!
//! Words and places mean what they mean for the simulator's `Simulation`.

use fullpipe_path::config::{ElementConfig, Probability};
use fullpipe_path::{Change, ConfigError, rates};
use fullpipe_scenario::ScenarioError;
use fullpipe_scenario::quantity::{Quantity, Said, Size};
use fullpipe_scenario::spec::Spec;
use fullpipe_units::{Bytes, Duration, Rate, Time};
use serde::Deserialize;

use crate::options::QuicError;

/// A change as somebody writes it, each amount as in a scenario. What is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidChange {
    /// The name of a queue, or a position such as `forward[2]`; without it, the path's own.
    pub element: Option<String>,
    /// The rate.
    pub rate: Option<String>,
    /// The one-way delay.
    pub delay: Option<String>,
    /// The round-trip time of the path, half of it on each way.
    pub rtt: Option<String>,
    /// The probability of loss.
    pub loss: Option<String>,
    /// What the queue takes; a `bdp` is that of the path as this very change makes it.
    pub buffer: Option<String>,
}

/// Which element a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The one that a scenario's own `path.rate`, `path.buffer`, `path.loss` and `path.rtt` are about.
    Path,
    /// The queue of this name, in either direction.
    Named(&'a str),
    /// The element at this position of the way to the receivers.
    Forward(usize),
    /// The element at this position of the way back.
    Reverse(usize),
}

/// What is wrong with something that somebody asked of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub field: String,
    /// What was given.
    pub given: String,
    /// What was expected.
    pub expected: String,
    /// How to fix it.
    pub fix: String,
}

impl std::fmt::Display for Mistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}; expected {}; {}", self.field, self.given, self.expected, self.fix)
    }
}

impl From<ScenarioError> for QuicError {
    fn from(error: ScenarioError) -> QuicError {
        QuicError::Scenario(Box::new(error))
    }
}

fn mistake(field: &str, given: &str, expected: &str, fix: &str) -> QuicError {
    let [field, given, expected, fix] = [field, given, expected, fix].map(str::to_owned);
    QuicError::Mistake(Box::new(Mistake { field, given, expected, fix }))
}

/// An element of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spot {
    pub(crate) forward: bool,
    pub(crate) index: usize,
}

impl<'a> Place<'a> {
    /// The place of this name: a queue's, or `forward[2]` or `reverse[0]`.
    fn of(name: &'a str) -> Place<'a> {
        let position = || {
            let (way, rest) = name.split_once('[')?;
            let index = rest.strip_suffix(']')?.parse().ok()?;
            match way {
                "forward" => Some(Place::Forward(index)),
                "reverse" => Some(Place::Reverse(index)),
                _ => None,
            }
        };
        position().unwrap_or(Place::Named(name))
    }
}

/// Reads the changes that are said, for the path of `spec` at `now`.
pub(crate) fn read(spec: &Spec, now: Time, said: &SaidChange) -> Result<Vec<(Spot, Change)>, QuicError> {
    let SaidChange { element, rate, delay, rtt, loss, buffer } = said;
    if let (Some(_), Some(text)) = (element, rtt) {
        let expected = "a delay, because an element has no round trip";
        return Err(mistake("rtt", &format!("{text:?}"), expected, "give delay"));
    }
    fn of<T: Quantity>(field: &str, text: &str) -> Result<T, ScenarioError> {
        Said::<T>::new(text).read(field)
    }
    let new_rate = rate.as_deref().map(|text| of::<Rate>("rate", text)).transpose()?;
    let new_rtt = rtt.as_deref().map(|text| of::<Duration>("rtt", text)).transpose()?;
    let place = element.as_deref().map_or(Place::Path, Place::of);
    let mut wanted: Vec<(&str, &str, Change)> = Vec::new();
    if let (Some(text), Some(rate)) = (rate, new_rate) {
        wanted.push(("rate", text, Change::Rate(rate)));
    }
    if let Some(text) = delay {
        wanted.push(("delay", text, Change::Delay(of("delay", text)?)));
    }
    if let Some(text) = loss {
        wanted.push(("loss", text, Change::Loss(of::<Probability>("loss", text)?)));
    }
    if let Some(text) = buffer {
        let packet = Bytes::new(u64::from(spec.mtu_bytes));
        let bytes = Said::<Size>::new(text.as_str()).read_buffer(
            "buffer",
            packet,
            bdp(spec, now, new_rate, new_rtt),
        )?;
        wanted.push(("buffer", text, Change::Buffer(bytes)));
    }
    let mut changes = match new_rtt {
        Some(rtt) => of_rtt(spec, rtt)?.to_vec(),
        None => Vec::new(),
    };
    for (field, text, change) in wanted {
        let spot = find(spec, place, change)?;
        check(spec, now, spot, change).map_err(|ConfigError { index, kind, expected, .. }| {
            let given = format!("{text:?} is not for element {index} ({kind})");
            mistake(field, &given, expected, "choose another element")
        })?;
        changes.push((spot, change));
    }
    Ok(changes)
}

/// Whether that change is possible.
pub(crate) fn check(spec: &Spec, now: Time, spot: Spot, change: Change) -> Result<(), ConfigError> {
    let elements = if spot.forward { &spec.forward } else { &spec.reverse };
    elements[spot.index].clone().change(spot.index, now, change)
}

/// The changes that make this the path's round-trip time.
pub(crate) fn of_rtt(spec: &Spec, rtt: Duration) -> Result<[(Spot, Change); 2], QuicError> {
    let last = |elements: &[ElementConfig]| match elements {
        [.., ElementConfig::Delay { .. }] => Some(elements.len() - 1),
        _ => None,
    };
    let (Some(forward), Some(reverse)) = (last(&spec.forward), last(&spec.reverse)) else {
        return Err(mistake("rtt", "the path has none", "path.rtt above 0 in the scenario", "give it one"));
    };
    let half = |nanos| Change::Delay(Duration::from_nanos(nanos));
    Ok([
        (Spot { forward: true, index: forward }, half(rtt.as_nanos() / 2)),
        (Spot { forward: false, index: reverse }, half(rtt.as_nanos().div_ceil(2))),
    ])
}

/// What the bottleneck's rate carries in a round trip without queues; `None` if the bottleneck is no link.
fn bdp(spec: &Spec, now: Time, rate: Option<Rate>, rtt: Option<Duration>) -> Option<Bytes> {
    let present = match spec.bottleneck()? {
        ElementConfig::Link { rate_bps, .. } => rate_bps.at(now),
        _ => return None,
    };
    let next = now + Duration::from_nanos(1);
    let empty = || rates::delay(&spec.forward).at(next) + rates::delay(&spec.reverse).at(next);
    Some(rate.unwrap_or(present).bytes_in(rtt.unwrap_or_else(empty)))
}

/// The element that a change is for.
pub(crate) fn find(spec: &Spec, place: Place<'_>, change: Change) -> Result<Spot, QuicError> {
    let Spec { forward, reverse, .. } = spec;
    let named = |name: &str| {
        let at = |elements: &[ElementConfig]| elements.iter().position(|one| one.name() == Some(name));
        let spot = |forward| move |index| Spot { forward, index };
        at(forward).map(spot(true)).or_else(|| at(reverse).map(spot(false)))
    };
    let spot = match (place, change) {
        (Place::Named(name), _) => named(name),
        (Place::Forward(index), _) => (index < forward.len()).then_some(Spot { forward: true, index }),
        (Place::Reverse(index), _) => (index < reverse.len()).then_some(Spot { forward: false, index }),
        (Place::Path, Change::Rate(_) | Change::Buffer(_)) => named(Spec::BOTTLENECK),
        (Place::Path, Change::Delay(_)) => match &**forward {
            [.., ElementConfig::Delay { .. }] => Some(Spot { forward: true, index: forward.len() - 1 }),
            _ => None,
        },
        (Place::Path, Change::Loss(_)) => {
            let behind = forward.iter().position(|one| one.name() == Some(Spec::BOTTLENECK)).unwrap_or(0);
            let is_loss = |one: &ElementConfig| matches!(one, ElementConfig::Loss { .. });
            let index = forward[behind..].iter().position(is_loss).map(|index| behind + index);
            index.map(|index| Spot { forward: true, index })
        }
    };
    spot.ok_or_else(|| match (place, change) {
        (Place::Path, Change::Loss(_)) => {
            let given = "the path has no loss that could change";
            mistake("loss", given, "path.loss in the scenario, if only \"0 %\"", "give it one")
        }
        (Place::Path, Change::Delay(_)) => {
            let given = "the path has no delay that could change";
            mistake("delay", given, "path.rtt above 0 in the scenario", "give it one")
        }
        _ => {
            let names = forward.iter().chain(reverse).filter_map(|one| one.name());
            let names = names.map(str::to_owned).collect::<Vec<String>>().join(", ");
            let (there, back) = (forward.len(), reverse.len());
            let expected = format!("one of {names}, forward[0..{there}] or reverse[0..{back}]");
            let given = match place {
                Place::Named(name) => name.to_owned(),
                Place::Forward(index) => format!("forward[{index}]"),
                Place::Reverse(index) => format!("reverse[{index}]"),
                Place::Path => Spec::BOTTLENECK.to_owned(),
            };
            mistake("element", &format!("{given} is not on the path"), &expected, "choose one of these")
        }
    })
}
