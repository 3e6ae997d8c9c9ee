//! The error type of this crate: which field, what was given, what was expected, and how to fix it.

use std::fmt::{self, Display};
use std::path::Path;

use serde::de;

use crate::key::{key, quoted, shortened};

/// An invalid scenario, described in one sentence.
///
/// ```text
/// path.rate: "100 parsecs" is not a rate: unknown unit "parsecs"; expected a number with a unit such as
/// "100 Mbit/s"; write rate = "100 Mbit/s"
/// ```
///
/// In a file, the file and the line come first: `five-bbr.toml:7: path.rtt: ...`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScenarioError {
    /// Where: the dotted path of the field (`flows[0].rtt`), or the line and column of a syntax error.
    pub field: String,
    /// What was given, quoted and shortened; `nothing` for a missing field.
    pub given: String,
    /// What is wrong with it; completes the sentence that `given` begins.
    pub problem: String,
    /// What was expected.
    pub expected: Box<str>,
    /// How to fix it.
    pub fix: Box<str>,
    /// The place in a file, as far as it is known.
    pub place: Option<Box<Place>>,
}

/// A place in a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The file as it was named; `None` for a document that is not a file.
    pub file: Option<String>,
    /// The line, from 1; `None` if the document does not have the field.
    pub line: Option<usize>,
    /// The column of a syntax error, from 1.
    pub column: Option<usize>,
}

impl Display for ScenarioError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ScenarioError { field, given, problem, expected, fix, place } = self;
        let place = place.as_deref();
        if let Some(file) = place.and_then(|place| place.file.as_ref()) {
            write!(f, "{file}")?;
            let numbers = place.into_iter().flat_map(|place| [place.line, place.column]);
            numbers.flatten().try_for_each(|number| write!(f, ":{number}"))?;
            f.write_str(": ")?;
        }
        // The field of a syntax error is its line and column.
        if place.is_none_or(|place| place.file.is_none() || place.column.is_none()) {
            write!(f, "{field}: ")?;
        }
        write!(f, "{given} {problem}; expected {expected}; {fix}")
    }
}

impl std::error::Error for ScenarioError {}

impl ScenarioError {
    /// An error at `field`, where the text `given` has a `problem`.
    pub(crate) fn new(field: &str, given: &str, problem: impl Display) -> ScenarioError {
        ScenarioError {
            field: field.to_string(),
            given: quoted(given),
            problem: problem.to_string(),
            expected: Box::default(),
            fix: Box::default(),
            place: None,
        }
    }

    /// An error at `field`, where nothing was given.
    pub(crate) fn missing(field: &str) -> ScenarioError {
        let error = ScenarioError::new(field, "", "is given");
        ScenarioError { given: "nothing".to_string(), ..error }
    }

    /// Sets what was expected.
    pub(crate) fn expected(self, expected: impl Display) -> ScenarioError {
        ScenarioError { expected: expected.to_string().into(), ..self }
    }

    /// Sets the fix.
    pub(crate) fn fix(self, fix: impl Display) -> ScenarioError {
        ScenarioError { fix: fix.to_string().into(), ..self }
    }

    /// Sets as the fix what to write for the field: `write rate = "100 Mbit/s"`. `value` is TOML.
    pub(crate) fn write(self, value: impl Display) -> ScenarioError {
        let key = self.field.rsplit('.').next().unwrap_or_default();
        // An item of a list has no key of its own to write.
        let fix = match key.split_once('[') {
            None => format!("write {key} = {value}"),
            Some((list, _)) => format!("write {value} in {list}"),
        };
        self.fix(fix)
    }

    /// The same error one level further out: `rate` inside `path` is `path.rate`.
    pub(crate) fn inside(mut self, parent: &str) -> ScenarioError {
        let joint = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{parent}{joint}{}", self.field);
        self
    }

    /// The error in this file.
    pub(crate) fn of_file(self, file: &Path) -> ScenarioError {
        let place = self.place.as_deref().cloned().unwrap_or_default();
        self.placed(Place { file: Some(file.display().to_string()), ..place })
    }

    /// The error at this place.
    pub(crate) fn placed(self, place: Place) -> ScenarioError {
        ScenarioError { place: Some(Box::new(place)), ..self }
    }

    /// Suggests the name in `names` closest to what was given; if none is close, the fix is `otherwise`.
    pub(crate) fn nearest(self, given: &str, names: &[&str], otherwise: &str) -> ScenarioError {
        match nearest(given, names) {
            Some(name) => self.fix(format!("did you mean {name}?")),
            None => self.fix(otherwise),
        }
    }
}

/// serde's own errors in the form of ours. `reader` adds the paths.
impl de::Error for ScenarioError {
    fn custom<T: Display>(message: T) -> ScenarioError {
        ScenarioError::new("", "", message)
            .with_given("this")
            .expected("a value as in the schema")
            .fix("see `fullpipe schema`")
    }

    fn invalid_type(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> ScenarioError {
        let given = match unexpected {
            de::Unexpected::Seq => "a list".to_string(),
            de::Unexpected::Map => "a table".to_string(),
            other => shortened(&other.to_string()),
        };
        ScenarioError::new("", "", "does not belong here")
            .with_given(&given)
            .expected(expected)
            .fix("replace it")
    }

    fn invalid_value(unexpected: de::Unexpected<'_>, expected: &dyn de::Expected) -> ScenarioError {
        <ScenarioError as de::Error>::invalid_type(unexpected, expected)
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> ScenarioError {
        let error = ScenarioError::new("", variant, "is not known").expected(one_of(expected));
        error.nearest(variant, expected, "write one of these")
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> ScenarioError {
        let error = ScenarioError::new(&key(field), field, "is not a known key").expected(one_of(expected));
        error.nearest(field, expected, "remove it, or see `fullpipe schema`")
    }

    fn missing_field(field: &'static str) -> ScenarioError {
        ScenarioError::missing(field).expected(format!("the key {field}")).fix(format!("add {field}"))
    }

    fn duplicate_field(field: &'static str) -> ScenarioError {
        ScenarioError::new(field, field, "is given twice")
            .expected("each key once")
            .fix("remove one of the two")
    }
}

impl ScenarioError {
    fn with_given(self, given: &str) -> ScenarioError {
        ScenarioError { given: given.to_string(), ..self }
    }
}

/// `one of a, b, c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    if names.is_empty() { "no more keys".to_owned() } else { format!("one of {}", names.join(", ")) }
}

/// The name of which `given` seems to be a misspelling, if one is close.
pub(crate) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    // Longer words are not misspellings, and the distance takes time in proportion to the length.
    let given: String = given.chars().take(40).flat_map(char::to_lowercase).collect();
    let distance = |name: &str| strsim::damerau_levenshtein(&given, &name.to_lowercase());
    let best = names.iter().copied().min_by_key(|name| distance(name))?;
    // Up to a third of the word may be wrong; beyond that it is another word.
    (distance(best) <= best.chars().count().max(3) / 3).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_field_value_expected_fix() {
        let error = ScenarioError::new("path.rate", "100 parsecs", "is not a rate")
            .expected("a number with a unit such as \"100 Mbit/s\"")
            .write("\"100 Mbit/s\"");
        assert_eq!(
            error.to_string(),
            "path.rate: \"100 parsecs\" is not a rate; expected a number with a unit such as \"100 Mbit/s\"; \
             write rate = \"100 Mbit/s\""
        );
    }

    #[test]
    fn long_input_is_shortened_and_escaped() {
        let error = ScenarioError::new("name", &"x\n".repeat(1000), "is long");
        assert!(error.given.chars().count() < 120, "{}", error.given);
        assert!(!error.given.contains('\n'));
    }

    #[test]
    fn typo_suggests_name_other_word_none() {
        assert_eq!(nearest("bufer", &["rate", "buffer"]), Some("buffer"));
        assert_eq!(nearest("BBR1", &["bbr1", "reno"]), Some("bbr1"));
        assert_eq!(nearest("elephant", &["rate", "buffer"]), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
