//! Finds the line of a field in a document, for errors.
//!
//! Only errors need it, so the text is parsed again when there is one, and documents do not carry positions.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Place, ScenarioError};
use crate::format::Format;
use crate::key;

impl ScenarioError {
    /// The error in a document with this text, with the line of its field.
    pub(crate) fn within(self, text: &str, format: Format) -> ScenarioError {
        if self.place.is_some() {
            return self;
        }
        let line = line_of(text, format, &self.field);
        self.placed(Place { line, ..Place::default() })
    }
}

/// The line of a field such as `flows[0].rtt`, from 1: of the field itself, or of the table that lacks it. `None` if the
/// document has neither, or cannot be parsed.
pub fn line_of(text: &str, format: Format, field: &str) -> Option<usize> {
    let byte = match format {
        Format::Toml => in_toml(text, field),
        Format::Json => in_json(text, field),
    }?;
    Some(position(text, byte).0)
}

/// Line and column of a byte of `text`, both from one.
pub(crate) fn position(text: &str, byte: usize) -> (usize, usize) {
    let before = &text.as_bytes()[..byte.min(text.len())];
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let column = text.get(line_start..byte).map_or(1, |line| line.chars().count() + 1);
    (line, column)
}

/// A step on the way to a field.
enum Step<'a> {
    /// A key as errors show it.
    Key(&'a str),
    Index(usize),
}

/// The steps to `field`; a key may be quoted.
fn steps(field: &str) -> impl Iterator<Item = Step<'_>> {
    let mut rest = field;
    std::iter::from_fn(move || {
        rest = rest.strip_prefix('.').unwrap_or(rest);
        if let Some(inner) = rest.strip_prefix('[') {
            let (index, after) = inner.split_once(']')?;
            rest = after;
            return index.parse().ok().map(Step::Index);
        }
        let end = if rest.starts_with('"') { quoted_end(rest) } else { rest.find(['.', '[']) };
        let (key, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        (!key.is_empty()).then_some(Step::Key(key))
    })
}

/// The end of a quoted key.
fn quoted_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    let closing = text.char_indices().skip(1).find(|(_, letter)| {
        let closes = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        closes
    });
    closing.map(|(index, _)| index + 1)
}

fn in_toml(text: &str, field: &str) -> Option<usize> {
    let document = DeTable::parse(text).ok()?;
    let root = Spanned::new(document.span(), DeValue::Table(document.into_inner()));
    let mut at = &root;
    let mut found = None;
    for step in steps(field) {
        let (next, start) = match (step, at.get_ref()) {
            (Step::Key(name), DeValue::Table(table)) => {
                let mut entries = table.iter();
                let Some((key, value)) = entries.find(|(key, _)| key::key(key.get_ref()) == name) else {
                    break;
                };
                (value, key.span().start)
            }
            (Step::Index(index), DeValue::Array(items)) => {
                let Some(item) = items.get(index) else { break };
                (item, item.span().start)
            }
            _ => break,
        };
        (at, found) = (next, Some(start));
    }
    found
}

fn in_json(text: &str, field: &str) -> Option<usize> {
    let mut at: &RawValue = serde_json::from_str(text).ok()?;
    let mut found = None;
    for step in steps(field) {
        let next = match step {
            Step::Key(name) => {
                let table: BTreeMap<String, &RawValue> = serde_json::from_str(at.get()).unwrap_or_default();
                table.into_iter().find(|(key, _)| key::key(key) == name).map(|(_, value)| value)
            }
            Step::Index(index) => {
                let items: Vec<&RawValue> = serde_json::from_str(at.get()).unwrap_or_default();
                items.get(index).copied()
            }
        };
        let Some(next) = next else { break };
        // A raw value is a part of the text.
        (at, found) = (next, Some(next.get().as_ptr() as usize - text.as_ptr() as usize));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOML: &str = "name = 1\n\n[path]\nrate = 2\nbefore = [\n  { kind = 3 },\n  { kind = 4 },\n]\n\n[[flows]]\n[[flows]]\n\"a.b\" = 1\nrtt.x = 1\n";

    #[test]
    fn toml_field_maps_to_its_line() {
        for (field, line) in [
            ("name", Some(1)),
            ("path", Some(3)),
            ("path.rate", Some(4)),
            ("path.rtt", Some(3)),
            ("path.before[1].kind", Some(7)),
            ("path.before[1].rate", Some(7)),
            ("path.before[2]", Some(5)),
            ("flows[0].size", Some(10)),
            ("flows[1]", Some(11)),
            ("flows[1].\"a.b\"", Some(12)),
            ("flows[1].rtt.x", Some(13)),
            ("hosts.mtu", None),
            ("", None),
            ("path[", Some(3)),
            ("path.\"", Some(3)),
        ] {
            assert_eq!(line_of(TOML, Format::Toml, field), line, "{field}");
        }
    }

    #[test]
    fn json_field_maps_to_its_line() {
        let json = "{\n\"path\": {\n\"rate\": 1,\n\"before\": [\n1,\n{\"k\": 2}]}}";
        for (field, line) in [
            ("path", Some(2)),
            ("path.rate", Some(3)),
            ("path.before[1].k", Some(6)),
            ("path.x", Some(2)),
            ("x", None),
        ] {
            assert_eq!(line_of(json, Format::Json, field), line, "{field}");
        }
    }

    #[test]
    fn positions_count_from_one() {
        assert_eq!(position("a\n\u{e4}b", 4), (2, 2));
        assert_eq!(position("", 0), (1, 1));
        assert_eq!(position("a", 9), (1, 1));
    }
}
