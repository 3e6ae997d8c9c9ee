//! A queue discipline chosen by name, with settings overridden by name: `codel:target=1 ms,ecn=off`.
//!
//! Names, settings and ranges are those of [`DISCIPLINES`]; Linux's own names are understood too. The canonical text
//! ([`text`]) has our name and the settings that differ from their defaults.

use fullpipe_path::config::{DisciplineConfig, Probability};
use fullpipe_path::{DISCIPLINES, DisciplineInfo, SettingInfo, Unit};
use fullpipe_units::{Bytes, Duration};

use crate::decimal::{Decimal, Problem};
use crate::error::{ScenarioError, one_of};
use crate::key::shortened;
use crate::quantity::{Count, Quantity, Size};

/// The names of all disciplines, in the order in which they should be listed.
pub(crate) fn names() -> Vec<&'static str> {
    DISCIPLINES.iter().map(|info| info.name).collect()
}

/// Reads `name` or `name:setting=value,...`. Errors name `field`.
///
/// # Errors
/// When there is no such discipline or setting, or a value does not fit its setting.
pub fn parse(field: &str, text: &str) -> Result<DisciplineConfig, ScenarioError> {
    let (name, overrides) = match text.split_once(':') {
        None => (text, None),
        Some((name, overrides)) => (name, Some(overrides)),
    };
    let mut discipline = by_name(field, name)?;
    let mut seen: Vec<&str> = Vec::new();
    for assignment in overrides.into_iter().flat_map(|overrides| overrides.split(',')) {
        let name = assign(field, text, &mut discipline, assignment)?;
        if seen.contains(&name) {
            return Err(ScenarioError::new(field, text, format!("sets {name} twice"))
                .expected("each setting once")
                .fix("remove one of the two"));
        }
        seen.push(name);
    }
    match discipline.conflict() {
        None => Ok(discipline),
        Some((setting, expected)) => {
            Err(ScenarioError::new(field, text, format!("sets a {setting} that does not fit the others"))
                .expected(expected)
                .fix(format!("change {setting}, or leave it out")))
        }
    }
}

/// The discipline in a document; drop-tail where none is given.
pub(crate) fn read(field: &str, wording: &Option<String>) -> Result<DisciplineConfig, ScenarioError> {
    wording.as_deref().map_or(Ok(DisciplineConfig::FIFO), |text| parse(field, text))
}

/// The discipline of this name, ours or Linux's, with its defaults.
fn by_name(field: &str, given: &str) -> Result<DisciplineConfig, ScenarioError> {
    let name = given.trim().to_ascii_lowercase();
    let linux = || DISCIPLINES.iter().find(|info| info.linux_name == Some(name.as_str()));
    let found = DisciplineConfig::by_name(&name)
        .or_else(|| linux().and_then(|info| DisciplineConfig::by_name(info.name)));
    found.ok_or_else(|| {
        let names = names();
        let error = ScenarioError::new(field, given, "is not a queue discipline").expected(one_of(&names));
        error.nearest(&name, &names, "choose one of these (`fullpipe queues` describes them)")
    })
}

/// Sets one setting and returns its name.
fn assign(
    field: &str,
    text: &str,
    discipline: &mut DisciplineConfig,
    assignment: &str,
) -> Result<&'static str, ScenarioError> {
    let info = discipline.info();
    let Some((setting, value)) = assignment.split_once('=') else {
        let problem = format!("sets something without a value ({:?})", shortened(assignment));
        return Err(ScenarioError::new(field, text, problem)
            .expected("name:setting=value,setting=value")
            .fix(match info.settings.first() {
                Some(first) => format!("write for example \"{}\"", example(info, first)),
                None => format!("write \"{}\", which has no settings", info.name),
            }));
    };
    let (setting, value) = (setting.trim(), value.trim());
    let lower = setting.to_ascii_lowercase();
    let Some(known) = info.settings.iter().find(|known| known.name == lower) else {
        return Err(unknown_setting(field, info, setting));
    };
    let written = format!("{setting}={value}");
    let wrong = |problem: Problem| {
        let error = ScenarioError::new(field, &written, problem).expected(range(known));
        error.fix(format!("write for example \"{}\"", example(info, known)))
    };
    let number = number(known.unit, value).map_err(wrong)?;
    discipline.set(known.name, number).map_err(|_| wrong("is out of range".to_owned()))?;
    Ok(known.name)
}

fn unknown_setting(field: &str, info: &DisciplineInfo, setting: &str) -> ScenarioError {
    let names: Vec<&str> = info.settings.iter().map(|known| known.name).collect();
    let error = ScenarioError::new(field, setting, format!("is not a setting of {}", info.name));
    if names.is_empty() {
        return error.expected("no settings, because it has none").fix("remove it");
    }
    error.expected(one_of(&names)).nearest(setting, &names, "choose one of these, or remove it")
}

/// A value as people write it, in whole numbers of its unit. The error completes a sentence that begins with the value.
fn number(unit: Unit, text: &str) -> Result<u64, Problem> {
    match unit {
        Unit::Time => Duration::parse(text).map(Duration::as_nanos),
        Unit::Bytes => match Size::parse(text)? {
            Size::Bytes(bytes) => Ok(bytes.as_u64()),
            Size::Packets(_) | Size::Bdp(_) => Err("is not a number of bytes".to_owned()),
        },
        Unit::Count => Count::parse(text).map(|Count(count)| count),
        Unit::Share => share(text),
        Unit::Switch => match text.to_ascii_lowercase().as_str() {
            "1" | "on" | "true" | "yes" => Ok(1),
            "0" | "off" | "false" | "no" => Ok(0),
            _ => Err("is neither on nor off".to_owned()),
        },
    }
}

/// A share in millionths, written as a probability is.
fn share(text: &str) -> Result<u64, Problem> {
    // Its units, and what it refuses.
    Probability::parse(text)?;
    let (number, unit) = Decimal::split(text)?;
    let factor = if unit.is_empty() { 1_000_000 } else { 10_000 };
    number.times_exactly(factor).ok_or_else(|| "is no whole number of millionths".to_owned())
}

/// The values of a setting: `a duration from 1 us to 10 s`.
fn range(setting: &SettingInfo) -> String {
    let (low, high) =
        (value(setting.unit, *setting.range.start()), value(setting.unit, *setting.range.end()));
    let what = match setting.unit {
        Unit::Time => "a duration",
        Unit::Bytes => "a number of bytes",
        Unit::Count => "a whole number",
        Unit::Share => "a percentage",
        Unit::Switch => return "on or off".to_owned(),
    };
    format!("{what} from {low} to {high}")
}

/// `codel:target=5 ms`
fn example(info: &DisciplineInfo, setting: &SettingInfo) -> String {
    format!("{}:{}={}", info.name, setting.name, value(setting.unit, setting.default))
}

/// The canonical text of a discipline: its name, and the settings that differ from their defaults, exactly.
pub fn text(discipline: &DisciplineConfig) -> String {
    let changed = discipline.settings().filter(|(setting, given)| setting.default != *given);
    let assignments: Vec<String> =
        changed.map(|(setting, given)| format!("{}={}", setting.name, value(setting.unit, given))).collect();
    let separator = if assignments.is_empty() { "" } else { ":" };
    format!("{}{separator}{}", discipline.info().name, assignments.join(","))
}

/// A value of this unit as people write it.
pub fn value(unit: Unit, value: u64) -> String {
    match unit {
        Unit::Time => Duration::from_nanos(value).text(),
        Unit::Bytes => Size::Bytes(Bytes::new(value)).text(),
        Unit::Count => value.to_string(),
        Unit::Share => format!("{} %", value as f64 / 1e4),
        Unit::Switch => if value == 0 { "off" } else { "on" }.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(text: &str) -> String {
        parse("path.queue", text).unwrap_err().to_string()
    }

    #[test]
    fn inconsistent_red_thresholds_are_refused() {
        for text in ["red:min=50KB,max=10KB", "red:max=1KB,min=1KB"] {
            let error = parse("path.queue", text).unwrap_err();
            assert!(error.to_string().contains("min below max"), "{error}");
        }
        assert!(parse("path.queue", "red:min=10KB,max=50KB").is_ok());
        assert!(parse("path.queue", "red:max=10KB").is_ok());
    }

    #[test]
    fn discipline_name_alone_parses_as_default() {
        for info in DISCIPLINES {
            let expected = DisciplineConfig::by_name(info.name).unwrap();
            for text in [info.name.to_owned(), format!(" {} ", info.name.to_uppercase())] {
                assert_eq!(parse("path.queue", &text).unwrap(), expected);
            }
            let linux = info.linux_name.map(|name| parse("path.queue", name).unwrap());
            assert!(linux.is_none_or(|found| found.info().linux_name == info.linux_name));
        }
        assert_eq!(parse("path.queue", "bfifo").unwrap(), DisciplineConfig::FIFO);
    }

    #[test]
    fn unknown_discipline_suggests_nearest_name() {
        let error = message("fif0");
        assert!(error.starts_with("path.queue: \"fif0\" is not a queue discipline; expected one of fifo"));
        assert!(error.ends_with("did you mean fifo?"), "{error}");
        for text in ["elephant", "", ":", "=", "fi\u{0}fo elephant"] {
            assert!(message(text).contains("`fullpipe queues` describes them"), "{}", message(text));
        }
    }

    #[test]
    fn what_has_no_settings_takes_none() {
        let error = message("fifo:limit=5");
        assert!(error.contains("\"limit\" is not a setting of fifo; expected no settings"), "{error}");
        for text in ["fifo:", "fifo:5"] {
            let error = message(text);
            assert!(error.contains("without a value") && error.contains("which has no settings"), "{error}");
        }
    }

    #[test]
    fn values_are_read_by_their_unit() {
        for (unit, text, expected) in [
            (Unit::Time, "5 ms", 5_000_000),
            (Unit::Time, "1.5us", 1_500),
            (Unit::Bytes, "30 KB", 30_000),
            (Unit::Bytes, "1 KiB", 1_024),
            (Unit::Count, "1024", 1_024),
            (Unit::Share, "10 %", 100_000),
            (Unit::Share, "12.5%", 125_000),
            (Unit::Share, "0.0001", 100),
            (Unit::Share, "100 %", 1_000_000),
            (Unit::Share, "2 percent", 20_000),
            (Unit::Switch, "on", 1),
            (Unit::Switch, "OFF", 0),
            (Unit::Switch, "1", 1),
            (Unit::Switch, "0", 0),
        ] {
            assert_eq!(number(unit, text).as_ref(), Ok(&expected), "{text}");
            assert_eq!(number(unit, &value(unit, expected)), Ok(expected), "{text}");
        }
    }

    #[test]
    fn value_with_wrong_unit_is_refused() {
        for (unit, text, problem) in [
            (Unit::Time, "5", "the unit is missing"),
            (Unit::Time, "5 KB", "unknown unit"),
            (Unit::Time, "-5 ms", "is negative"),
            (Unit::Bytes, "20 packets", "is not a number of bytes"),
            (Unit::Bytes, "1 bdp", "is not a number of bytes"),
            (Unit::Bytes, "5 ms", "unknown unit"),
            (Unit::Count, "1.5", "is not whole"),
            (Unit::Count, "5 ms", "unknown unit"),
            (Unit::Count, "1e30", "is too large"),
            (Unit::Share, "150 %", "is above 100 %"),
            (Unit::Share, "1", "could be 1 % or 100 %"),
            (Unit::Share, "0.00001 %", "is no whole number of millionths"),
            (Unit::Share, "5 ms", "unknown unit"),
            (Unit::Switch, "perhaps", "is neither on nor off"),
            (Unit::Switch, "2", "is neither on nor off"),
            (Unit::Switch, "", "is neither on nor off"),
        ] {
            let found = number(unit, text).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
    }

    /// Every setting of every discipline: its text reads back, and what is next to its range does not.
    #[test]
    fn setting_accepts_exactly_its_range() {
        for info in DISCIPLINES {
            for setting in info.settings {
                for given in [*setting.range.start(), setting.default, *setting.range.end()] {
                    let text = format!("{}:{}={}", info.name, setting.name, value(setting.unit, given));
                    let read = parse("path.queue", &text).unwrap();
                    let found = read.settings().find(|(known, _)| known.name == setting.name).unwrap().1;
                    assert_eq!(found, given, "{text}");
                    assert_eq!(parse("path.queue", &super::text(&read)), Ok(read), "{read}");
                }
                let past = match setting.unit {
                    Unit::Switch => Some("2".to_owned()),
                    unit => setting.range.end().checked_add(1).map(|past| value(unit, past)),
                };
                for wrong in
                    past.into_iter().chain(["elephant".to_owned(), String::new(), "1 mile".to_owned()])
                {
                    let error = message(&format!("{}:{}={wrong}", info.name, setting.name));
                    assert!(error.starts_with("path.queue: ") && error.contains(&range(setting)), "{error}");
                }
                let twice = format!("{}={}", setting.name, value(setting.unit, setting.default));
                let error = message(&format!("{}:{twice},{twice}", info.name));
                assert!(error.contains(&format!("sets {} twice", setting.name)), "{error}");
            }
            if let Some(first) = info.settings.first() {
                let error = message(&format!("{}:{}x=1", info.name, first.name));
                assert!(error.contains(&format!("is not a setting of {}", info.name)), "{error}");
            }
        }
    }

    #[test]
    fn long_texts_give_short_errors() {
        let long = "x".repeat(1_000_000);
        for info in DISCIPLINES {
            let name = info.name;
            let mut texts = vec![long.clone(), format!("{name}:{long}"), format!("{name}:{long}={long}")];
            texts.extend(info.settings.iter().map(|known| format!("{name}:{}={long}", known.name)));
            texts.extend(
                info.settings.iter().map(|known| format!("{name}:{}={}", known.name, "9".repeat(1_000_000))),
            );
            for text in texts {
                assert!(message(&text).len() < 1_000, "{}", message(&text));
            }
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(text in any::<String>(), tail in "[a-z_=,.:0-9 %-]{0,40}", index in any::<prop::sample::Index>()) {
            let _ = parse("path.queue", &text);
            let _ = parse("path.queue", &format!("{}:{tail}", index.get(DISCIPLINES).name));
        }

        /// The canonical text says exactly what runs.
        #[test]
        fn the_canonical_text_reads_back(index in any::<prop::sample::Index>(), values in prop::collection::vec(any::<u64>(), 32)) {
            let info = index.get(DISCIPLINES);
            let mut config = DisciplineConfig::by_name(info.name).unwrap();
            for (setting, value) in info.settings.iter().zip(values) {
                let (low, high) = (*setting.range.start(), *setting.range.end());
                let within = low + (u128::from(value) % u128::from((high - low).max(1))) as u64;
                prop_assert!(config.set(setting.name, within).is_ok());
            }
            prop_assume!(config.conflict().is_none());
            prop_assert_eq!(parse("path.queue", &super::text(&config)), Ok(config), "{}", config);
        }
    }
}
