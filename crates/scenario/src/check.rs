//! Checks of single numbers and names of a spec. Field names in errors are those of the spec.

use std::collections::BTreeSet;
use std::fmt::Display;

use fullpipe_path::config::{Probability, QueueConfig, Schedule};
use fullpipe_units::{Bytes, Duration, Rate};

use crate::bounds;
use crate::error::ScenarioError;
use crate::quantity::{Quantity, Size};

pub(crate) type Result = std::result::Result<(), ScenarioError>;

/// Why a name is invalid.
pub(crate) fn name_problem(name: &str) -> Option<String> {
    if name.trim().is_empty() {
        return Some("is empty".to_string());
    }
    if name.chars().count() > bounds::MAX_NAME {
        return Some(format!("is longer than {} characters", bounds::MAX_NAME));
    }
    name.chars().any(char::is_control).then(|| "contains control characters".to_string())
}

pub(crate) fn schedule<T: Copy>(
    field: &str,
    schedule: &Schedule<T>,
    check: impl Fn(&str, T) -> Result,
) -> Result {
    check(field, schedule.initial)?;
    let ordered = schedule.changes.is_sorted_by(|earlier, later| earlier.0 < later.0);
    let count = format!("a schedule of {} changes", schedule.changes.len());
    demand(ordered, field, count, "changes at increasing times")?;
    schedule.changes.iter().try_for_each(|(_, value)| check(field, *value))
}

pub(crate) fn unique<'a>(element: &'a str, names: &mut BTreeSet<&'a str>) -> Result {
    name("name", element)?;
    demand(names.insert(element), "name", element, "a unique name for each element")
}

pub(crate) fn name(field: &str, name: &str) -> Result {
    match name_problem(name) {
        None => Ok(()),
        Some(problem) => {
            Err(ScenarioError::new(field, name, problem).expected("a name").fix("choose a short name"))
        }
    }
}

pub(crate) fn rate(field: &str, rate: Rate) -> Result {
    within(field, rate, bounds::MIN_RATE, bounds::MAX_RATE)
}

pub(crate) fn delay(field: &str, delay: Duration) -> Result {
    within(field, delay, Duration::ZERO, bounds::MAX_DELAY)
}

pub(crate) fn probability(field: &str, probability: Probability) -> Result {
    demand(probability.as_f64() <= 1.0, field, probability.as_f64(), "at most 1 (2^32 parts)")
}

/// The queue of a link; `mtu` is the largest packet as it counts.
pub(crate) fn limit(queue: &QueueConfig, mtu: u32) -> Result {
    limit_within(queue, mtu, bounds::MAX_BUFFER)
}

/// The queue of a router.
pub(crate) fn router_limit(queue: &QueueConfig, frame: u32) -> Result {
    limit_within(queue, frame, bounds::MAX_BURST)
}

fn limit_within(queue: &QueueConfig, mtu: u32, most: Bytes) -> Result {
    buffer("queue.bytes", queue.bytes, mtu, most)?;
    demand(queue.packets != Some(0), "queue.packets", 0, "at least one packet")?;
    queue.discipline.settings().try_for_each(|(setting, value)| {
        let (low, high) = (setting.range.start(), setting.range.end());
        let field = format!("queue.discipline.{}", setting.name);
        demand(setting.range.contains(&value), &field, value, format!("{low} to {high}"))
    })
}

/// A radio sees demand in its queue, which must not be managed by anything else.
pub(crate) fn drop_tail(queue: &QueueConfig, expected: &str) -> Result {
    let right = queue.discipline.is_fifo();
    demand(right, "queue.discipline", queue.discipline, expected)
}

/// The depth of a bucket; `mtu` is the largest packet as it counts.
pub(crate) fn burst(bytes: Bytes, mtu: u32) -> Result {
    buffer("burst_bytes", bytes, mtu, bounds::MAX_BURST)
}

fn buffer(field: &str, bytes: Bytes, mtu: u32, most: Bytes) -> Result {
    let one_packet = Bytes::new(u64::from(mtu));
    let right = one_packet <= bytes && bytes <= most;
    let most = Size::Bytes(most).text();
    demand(right, field, bytes.as_u64(), format!("one packet ({mtu} B) to {most}"))
}

pub(crate) fn within<T: Quantity + PartialOrd>(field: &str, value: T, low: T, high: T) -> Result {
    let right = low <= value && value <= high;
    demand(right, field, value.text(), format!("{} from {} to {}", T::NOUN, low.text(), high.text()))
}

pub(crate) fn demand(right: bool, field: &str, given: impl Display, expected: impl Display) -> Result {
    if right {
        return Ok(());
    }
    let error = ScenarioError::new(field, &given.to_string(), "is out of its range");
    Err(error.expected(expected).fix("resolve the scenario again, or correct the field"))
}
