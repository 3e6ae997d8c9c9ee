//! Reads single values of a document.

use fullpipe_path::config::Probability;
use fullpipe_units::{Duration, Rate};

use crate::bounds;
use crate::check;
use crate::error::ScenarioError;
use crate::quantity::{Quantity, QuantityText};
use crate::queue;

/// The given value, or else the default.
pub(crate) fn default<T: Clone>(written: &Option<QuantityText<T>>, text: &str) -> QuantityText<T> {
    written.clone().unwrap_or_else(|| QuantityText::new(text))
}

/// The given value, or an error.
pub(crate) fn required<'a, T: Quantity>(
    field: &str,
    written: &'a Option<QuantityText<T>>,
) -> Result<&'a QuantityText<T>, ScenarioError> {
    written.as_ref().ok_or_else(|| {
        ScenarioError::missing(field).expected(T::EXPECTED).write(format!("\"{}\"", T::EXAMPLES[0]))
    })
}

/// A name that fits in a table, a file name and a figure.
pub(crate) fn check_name(field: &str, name: &str) -> Result<(), ScenarioError> {
    match check::name_problem(name) {
        None => Ok(()),
        Some(problem) => {
            let error = ScenarioError::new(field, name, problem);
            Err(error.expected("a short name in printable characters").write("\"my-name\""))
        }
    }
}

pub(crate) fn rate(field: &str, written: &Option<QuantityText<Rate>>) -> Result<Rate, ScenarioError> {
    required(field, written)?.read_within(field, bounds::MIN_RATE..=bounds::MAX_RATE)
}

/// Rates in rising order.
pub(crate) fn radio_rates(
    field: &str,
    written: &Option<Vec<QuantityText<Rate>>>,
) -> Result<Vec<Rate>, ScenarioError> {
    const EXPECTED: &str = "rates that rise, the first granted at the start";
    const EXAMPLE: &str = "[\"5 Mbit/s\", \"10 Mbit/s\", \"20 Mbit/s\"]";
    let written = written.as_deref().unwrap_or_default();
    if written.is_empty() {
        return Err(ScenarioError::missing(field).expected(EXPECTED).write(EXAMPLE));
    }
    let mut rates: Vec<Rate> = Vec::new();
    for (index, written) in written.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let rate = written.read_within(&field, bounds::MIN_RATE..=bounds::MAX_RATE)?;
        if rates.last().is_some_and(|&before| rate <= before) {
            return Err(written
                .error(&field, "is not above the one before it")
                .expected(EXPECTED)
                .fix("list the rates in rising order"));
        }
        rates.push(rate);
    }
    Ok(rates)
}

/// The queue of a radio: drop-tail only.
pub(crate) fn radio_queue(field: &str, written: &Option<String>) -> Result<(), ScenarioError> {
    let discipline = queue::read(field, written)?;
    if discipline.is_fifo() {
        return Ok(());
    }
    let given = queue::text(&discipline);
    Err(ScenarioError::new(field, &given, "cannot manage the queue of a cellular radio")
        .expected("fifo: the demand that a radio sees is the queue itself")
        .fix("remove queue, or use a link"))
}

pub(crate) fn delay(
    field: &str,
    written: &Option<QuantityText<Duration>>,
) -> Result<Duration, ScenarioError> {
    required(field, written)?.read_within(field, Duration::ZERO..=bounds::MAX_DELAY)
}

pub(crate) fn probability(
    field: &str,
    written: &Option<QuantityText<Probability>>,
) -> Result<Probability, ScenarioError> {
    required(field, written)?.read(field)
}
