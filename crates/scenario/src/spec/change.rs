//! Where a change of the path goes while a run goes on: the same in every world whose runs can change.

use fullpipe_path::config::{AdmissionUnit, ElementConfig};
use fullpipe_path::{Change, ConfigError, rates};
use fullpipe_units::{Bytes, Duration, Rate, Time};

use super::Spec;
use crate::key::shortened;

/// Which element a change is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place<'a> {
    /// The one that a scenario's own `path.rate`, `path.buffer`, `path.loss` and `path.rtt` are about: the bottleneck, the first
    /// loss behind it (or that of whole bursts right in front of it), and the delay at the end of the way to the receivers.
    Path,
    /// The queue of this name, in either direction.
    Named(&'a str),
    /// The element at this position of the way to the receivers.
    Forward(usize),
    /// The element at this position of the way back.
    Reverse(usize),
}

/// An element of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    /// Whether it is on the way to the receivers.
    pub forward: bool,
    /// Its position there.
    pub index: usize,
}

/// A change that has no element on the path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoSpot {
    /// What was to change.
    pub field: &'static str,
    /// What was given.
    pub given: String,
    /// What is expected instead.
    pub expected: String,
    /// How to fix it.
    pub fix: &'static str,
}

impl Spec {
    /// The element that a change is for.
    ///
    /// # Errors
    /// When there is none.
    pub fn spot(&self, place: Place<'_>, change: Change) -> Result<Spot, NoSpot> {
        let Spec { forward, reverse, .. } = self;
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
            (Place::Path, Change::Delay(_)) => last_delay(forward).map(|index| Spot { forward: true, index }),
            (Place::Path, Change::Loss(_)) => {
                let behind = forward.iter().position(|one| one.name() == Some(Spec::BOTTLENECK)).unwrap_or(0);
                let is_loss = |one: &ElementConfig| matches!(one, ElementConfig::Loss { .. });
                let of_bursts = |one: &ElementConfig| is_loss(one) && one.unit() == AdmissionUnit::Burst;
                let parts =
                    |link: &ElementConfig| link.unit() == AdmissionUnit::Burst && !link.leaves_together(true);
                let first = forward.get(behind).is_some_and(parts);
                let in_front = behind.checked_sub(1).filter(|&index| first && of_bursts(&forward[index]));
                let behind = || forward[behind..].iter().position(is_loss).map(|index| behind + index);
                let index = in_front.or_else(behind);
                index.map(|index| Spot { forward: true, index })
            }
        };
        spot.ok_or_else(|| self.no_spot(place, change))
    }

    fn no_spot(&self, place: Place<'_>, change: Change) -> NoSpot {
        let lacking = |field, what: &str, expected: &str| NoSpot {
            field,
            given: format!("the path has no {what} that could change"),
            expected: expected.to_owned(),
            fix: "give it one",
        };
        let given = match (place, change) {
            (Place::Path, Change::Loss(_)) => {
                return lacking("loss", "loss", "path.loss in the scenario, if only \"0 %\"");
            }
            (Place::Path, Change::Delay(_)) => {
                return lacking("delay", "delay", "path.rtt above 0 in the scenario");
            }
            (Place::Path, _) => Spec::BOTTLENECK.to_owned(),
            (Place::Named(name), _) => shortened(name),
            (Place::Forward(index), _) => format!("forward[{index}]"),
            (Place::Reverse(index), _) => format!("reverse[{index}]"),
        };
        let Spec { forward, reverse, .. } = self;
        let names: Vec<&str> = forward.iter().chain(reverse).filter_map(ElementConfig::name).collect();
        let (names, there, back) = (names.join(", "), forward.len(), reverse.len());
        NoSpot {
            field: "element",
            given: format!("{given} is not on the path"),
            expected: format!("one of {names}, forward[0..{there}] or reverse[0..{back}]"),
            fix: "choose one of these",
        }
    }

    /// The changes that make this the round-trip time of the path, half of it on each way, like `path.rtt` in a scenario.
    ///
    /// # Errors
    /// When the path has no delay at the end of both ways.
    pub fn rtt_changes(&self, rtt: Duration) -> Result<[(Spot, Change); 2], NoSpot> {
        let (Some(forward), Some(reverse)) = (last_delay(&self.forward), last_delay(&self.reverse)) else {
            let (given, expected) = ("the path has none", "path.rtt above 0 in the scenario");
            let (given, expected) = (given.to_owned(), expected.to_owned());
            return Err(NoSpot { field: "rtt", given, expected, fix: "give it one" });
        };
        let half = |nanos| Change::Delay(Duration::from_nanos(nanos));
        Ok([
            (Spot { forward: true, index: forward }, half(rtt.as_nanos() / 2)),
            (Spot { forward: false, index: reverse }, half(rtt.as_nanos().div_ceil(2))),
        ])
    }

    /// What the bottleneck's rate carries in a round trip without queues: one `bdp`. Both are as they are at `now`, or as given,
    /// where they are about to change. `None` if the bottleneck is no link.
    pub fn bdp(&self, now: Time, rate: Option<Rate>, rtt: Option<Duration>) -> Option<Bytes> {
        let ElementConfig::Link { rate_bps, .. } = self.bottleneck()? else { return None };
        // A delay that was changed now holds for packets that come later (`Change::from`).
        let next = now + Duration::from_nanos(1);
        let empty = || rates::delay(&self.forward).at(next) + rates::delay(&self.reverse).at(next);
        Some(rate.unwrap_or_else(|| rate_bps.at(now)).bytes_in(rtt.unwrap_or_else(empty)))
    }

    /// Whether that element can change so at `now`.
    ///
    /// # Errors
    /// When it cannot.
    ///
    /// # Panics
    /// If no element is there.
    pub fn check_change(&self, spot: Spot, now: Time, change: Change) -> Result<(), ConfigError> {
        let elements = if spot.forward { &self.forward } else { &self.reverse };
        elements[spot.index].clone().change(spot.index, now, change)
    }

    /// Writes a change that holds from `from` on into the schedule of that element.
    ///
    /// # Errors
    /// When it cannot change so; nothing has changed then.
    ///
    /// # Panics
    /// If no element is there.
    pub fn change(&mut self, spot: Spot, from: Time, change: Change) -> Result<(), ConfigError> {
        let elements = if spot.forward { &mut self.forward } else { &mut self.reverse };
        elements[spot.index].change(spot.index, from, change)
    }
}

/// The delay at the end of a way.
fn last_delay(elements: &[ElementConfig]) -> Option<usize> {
    match elements {
        [.., ElementConfig::Delay { .. }] => Some(elements.len() - 1),
        _ => None,
    }
}
