//! What the elements of a path need to know about the scenario: names in use, times of changes, sizes, files.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use fullpipe_files::Kind;
use fullpipe_path::deliveries::{DeliveriesError, parse_mahimahi};
use fullpipe_units::{Bytes, Duration, Rate, Time};

use super::files::{Files, read_file};
use super::values::{check_name, required};
use crate::bounds;
use crate::error::ScenarioError;
use crate::quantity::{Quantity, QuantityText};

/// What the elements need to know about the scenario.
pub(crate) struct Builder<'a> {
    pub(super) packet: Bytes,
    pub(super) rtt: Duration,
    pub(super) duration: Duration,
    pub(super) files: Files<'a>,
    /// Names in use, in both directions.
    pub(super) names: BTreeSet<String>,
    /// Of all delivery traces so far.
    pub(super) opportunities: u64,
}

impl Builder<'_> {
    /// The given name, or else the kind, with a number if that is taken.
    pub(crate) fn name(
        &mut self,
        field: &str,
        given: &Option<String>,
        kind: &str,
    ) -> Result<String, ScenarioError> {
        if let Some(name) = given {
            check_name(field, name)?;
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
        times: impl Iterator<Item = &'s Option<QuantityText<Duration>>>,
    ) -> Result<Vec<Time>, ScenarioError> {
        let mut previous = Duration::ZERO;
        let mut read = Vec::new();
        for (index, written) in times.enumerate() {
            let field = format!("{field}[{index}].at");
            let written = required(&field, written)?;
            let at = written.read(&field)?;
            let wrong = |problem: String, expected: String, fix: &str| {
                Err(written.error(&field, problem).expected(expected).fix(fix))
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
