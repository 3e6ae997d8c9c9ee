//! The one error of this crate: which field, what was given, what was expected, and how to mend it.

use std::fmt::Display;

use serde::de;

/// A scenario that makes no sense, in one sentence.
///
/// ```text
/// path.rate: "100 parsecs" is not a rate: unknown unit "parsecs"; expected a number with a unit such as
/// "100 Mbit/s"; write rate = "100 Mbit/s"
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {given} {problem}; expected {expected}; {mend}")]
pub struct ScenarioError {
    /// Where: the dotted path of the field (`flows[0].rtt`), or the line and column of a syntax error.
    pub field: String,
    /// What was given, quoted and shortened; `nothing` for a missing field.
    pub given: String,
    /// What is wrong with it; completes the sentence that `given` begins.
    pub problem: String,
    /// What would have been right.
    pub expected: String,
    /// What to do about it.
    pub mend: String,
}

impl ScenarioError {
    /// An error at `field`, where the text `given` has a `problem`.
    pub(crate) fn new(field: &str, given: &str, problem: impl Display) -> ScenarioError {
        ScenarioError {
            field: field.to_string(),
            given: quoted(given),
            problem: problem.to_string(),
            expected: String::new(),
            mend: String::new(),
        }
    }

    /// An error at `field`, where nothing was given.
    pub(crate) fn missing(field: &str) -> ScenarioError {
        let error = ScenarioError::new(field, "", "is given");
        ScenarioError { given: "nothing".to_string(), ..error }
    }

    /// Says what would have been right.
    pub(crate) fn expected(self, expected: impl Display) -> ScenarioError {
        ScenarioError { expected: expected.to_string(), ..self }
    }

    /// Says what to do.
    pub(crate) fn mend(self, mend: impl Display) -> ScenarioError {
        ScenarioError { mend: mend.to_string(), ..self }
    }

    /// Says what to write for the field: `write rate = "100 Mbit/s"`. `value` is TOML.
    pub(crate) fn write(self, value: impl Display) -> ScenarioError {
        let key = self.field.rsplit('.').next().unwrap_or_default();
        // An item of a list has no key of its own to write.
        let mend = match key.split_once('[') {
            None => format!("write {key} = {value}"),
            Some((list, _)) => format!("write {value} in {list}"),
        };
        self.mend(mend)
    }

    /// The same error one level further out: `rate` inside `path` is `path.rate`.
    pub(crate) fn inside(mut self, parent: &str) -> ScenarioError {
        let joint = if self.field.is_empty() || self.field.starts_with('[') { "" } else { "." };
        self.field = format!("{parent}{joint}{}", self.field);
        self
    }

    /// Names the nearest of `names` to what was given, if one is near, and says `otherwise` if none is.
    pub(crate) fn nearest(self, given: &str, names: &[&str], otherwise: &str) -> ScenarioError {
        match nearest(given, names) {
            Some(name) => self.mend(format!("did you mean {name}?")),
            None => self.mend(otherwise),
        }
    }
}

/// serde's own complaints, put into our sentence. Paths are added by `reader`.
impl de::Error for ScenarioError {
    fn custom<T: Display>(message: T) -> ScenarioError {
        ScenarioError::new("", "", message)
            .with_given("this")
            .expected("a value of the documented shape")
            .mend("see `fullpipe schema`")
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
            .mend("replace it")
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
        ScenarioError::missing(field).expected(format!("the key {field}")).mend(format!("add {field}"))
    }

    fn duplicate_field(field: &'static str) -> ScenarioError {
        ScenarioError::new(field, field, "is given twice")
            .expected("each key once")
            .mend("remove one of the two")
    }
}

impl ScenarioError {
    fn with_given(self, given: &str) -> ScenarioError {
        ScenarioError { given: given.to_string(), ..self }
    }
}

/// A key as it would be written in a dotted path: quoted if it holds anything unusual.
pub(crate) fn key(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if plain && key.len() <= 40 { key.to_string() } else { quoted(key) }
}

/// `one of a, b, c`.
pub(crate) fn one_of(names: &[&str]) -> String {
    format!("one of {}", names.join(", "))
}

/// The name that a slip of the finger turned into `given`, if one is near.
pub(crate) fn nearest<'a>(given: &str, names: &[&'a str]) -> Option<&'a str> {
    // Longer words are no slip, and the distance takes time in proportion to the length.
    let given: String = given.chars().take(40).flat_map(char::to_lowercase).collect();
    let distance = |name: &str| strsim::damerau_levenshtein(&given, &name.to_lowercase());
    let best = names.iter().copied().min_by_key(|name| distance(name))?;
    // A third of the word wrong is a slip; more is another word.
    (distance(best) <= best.chars().count().max(3) / 3).then_some(best)
}

/// The text in quotes, with unprintable characters escaped.
fn quoted(text: &str) -> String {
    format!("{:?}", shortened(text))
}

/// The text without what a person would not read anyway.
fn shortened(text: &str) -> String {
    const LONGEST: usize = 60;
    let mut short: String = text.chars().take(LONGEST).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sentence_names_field_given_expected_and_mend() {
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
    fn long_input_is_shortened_and_control_characters_escaped() {
        let error = ScenarioError::new("name", &"x\n".repeat(1000), "is long");
        assert!(error.given.chars().count() < 120, "{}", error.given);
        assert!(!error.given.contains('\n'));
    }

    #[test]
    fn a_slip_finds_its_name_and_another_word_does_not() {
        assert_eq!(nearest("bufer", &["rate", "buffer"]), Some("buffer"));
        assert_eq!(nearest("BBR1", &["bbr1", "reno"]), Some("bbr1"));
        assert_eq!(nearest("elephant", &["rate", "buffer"]), None);
        assert_eq!(nearest("x", &[]), None);
    }
}
