//! Changes of a path in words with units, and errors as sentences: one place for everything that talks to people.

use fullpipe_path::config::Probability;
use fullpipe_path::{Change, ConfigError};
use fullpipe_scenario::ScenarioError;
use fullpipe_scenario::quantity::{Quantity, Said, Size};
use fullpipe_units::{Bytes, Duration, Rate};

use crate::simulation::{Place, SimError, Simulation};

/// A change of the path as somebody writes it, each amount as in a scenario. What is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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

/// What is wrong with something that somebody asked of a run: a sentence, and its parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// All of it in a sentence.
    pub sentence: String,
    /// Where.
    pub field: String,
    /// What was given.
    pub given: String,
    /// What was expected.
    pub expected: String,
    /// How to fix it.
    pub fix: String,
}

/// Why a run does not change as somebody said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// An amount cannot be read.
    Unreadable(ScenarioError),
    /// What it asks for cannot be.
    Refused(Mistake),
}

impl Simulation {
    /// Changes what is given: all of it, or nothing if some of it cannot be. See [`Simulation::change`].
    ///
    /// # Errors
    /// When an amount cannot be read, there is no such element, or it cannot change so.
    pub fn change_said(&mut self, said: &SaidChange) -> Result<(), ChangeError> {
        let SaidChange { element, rate, delay, rtt, loss, buffer } = said;
        if let (Some(_), Some(text)) = (element, rtt) {
            let (expected, fix) = ("a delay, because an element has no round trip", "give delay");
            return Err(ChangeError::Refused(Mistake::new("rtt", &format!("{text:?}"), expected, fix)));
        }
        let rtt = rtt.as_deref().map(|text| read::<Duration>("rtt", text)).transpose()?;
        let mut changes = Vec::new();
        let mut new_rate = None;
        if let Some(text) = rate {
            let rate = read::<Rate>("rate", text)?;
            new_rate = Some(rate);
            changes.push(("rate", text, Change::Rate(rate)));
        }
        if let Some(text) = delay {
            changes.push(("delay", text, Change::Delay(read::<Duration>("delay", text)?)));
        }
        if let Some(text) = loss {
            changes.push(("loss", text, Change::Loss(read::<Probability>("loss", text)?)));
        }
        if let Some(text) = buffer {
            // Bandwidth-delay products are those of the path as this change makes it.
            let packet = Bytes::new(u64::from(self.spec().mtu_bytes));
            let size = Said::<Size>::new(text.as_str());
            let bytes = size.read_buffer("buffer", packet, self.bdp(new_rate, rtt));
            changes.push(("buffer", text, Change::Buffer(bytes.map_err(ChangeError::Unreadable)?)));
        }
        let place = match element.as_deref() {
            None => Place::Path,
            Some(name) => Place::at_position(name).unwrap_or(Place::Named(name)),
        };
        for (name, text, change) in &changes {
            let refused = |error: SimError| ChangeError::Refused(error.of_change(name, text));
            self.check(place, *change).map_err(refused)?;
        }
        let refused = |error: SimError| ChangeError::Refused(error.mistake());
        if let Some(rtt) = rtt {
            self.change_rtt(rtt).map_err(refused)?;
        }
        changes.into_iter().try_for_each(|(_, _, change)| self.change(place, change).map_err(refused))
    }
}

impl Place<'_> {
    /// `forward[2]` or `reverse[0]`.
    fn at_position(name: &str) -> Option<Place<'static>> {
        let (way, rest) = name.split_once('[')?;
        let index = rest.strip_suffix(']')?.parse().ok()?;
        match way {
            "forward" => Some(Place::Forward(index)),
            "reverse" => Some(Place::Reverse(index)),
            _ => None,
        }
    }
}

impl Mistake {
    /// One whose sentence has the parts in this order.
    pub fn new(field: &str, given: &str, expected: &str, fix: &str) -> Mistake {
        let sentence = format!("{field}: {given}; expected {expected}; {fix}");
        let [field, given, expected, fix] = [field, given, expected, fix].map(str::to_owned);
        Mistake { sentence, field, given, expected, fix }
    }
}

impl SimError {
    /// The error for people.
    pub fn mistake(&self) -> Mistake {
        match self {
            SimError::Cancelled => Mistake {
                sentence: self.to_string(),
                field: String::new(),
                given: String::new(),
                expected: String::new(),
                fix: String::new(),
            },
            SimError::Refused { field, given, expected } => {
                let sentence = self.to_string();
                Mistake { sentence, ..Mistake::new(field, given, expected, "see docs/simulation.md") }
            }
            SimError::Path(path) => {
                let fix = "resolve the scenario again";
                let sentence = format!("{path}; {fix}");
                Mistake { sentence, ..Mistake::new(path.field, &path.given, path.expected, fix) }
            }
        }
    }

    /// The same, of an element that cannot change as `name` asks, for which somebody gave `text`.
    fn of_change(&self, name: &str, text: &str) -> Mistake {
        let SimError::Path(ConfigError { index, kind, expected, .. }) = self else {
            return self.mistake();
        };
        let fix = "choose another element";
        let sentence =
            format!("{name}: {text:?} is not for element {index} ({kind}); expected {expected}; {fix}");
        Mistake { sentence, ..Mistake::new(name, text, expected, fix) }
    }
}

/// Reads an amount; an error names the field.
fn read<T: Quantity>(field: &str, text: &str) -> Result<T, ChangeError> {
    Said::<T>::new(text).read(field).map_err(ChangeError::Unreadable)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::{Format, resolve};
    use fullpipe_units::Time;

    const DOCUMENT: &str = r#"
        duration = "4 s"
        path = { rate = "10 Mbit/s", rtt = "40 ms", loss = "0 %" }
        flows = [{ controller = "cubic" }]
    "#;

    fn simulation() -> Simulation {
        let mut simulation = Simulation::new(&resolve(DOCUMENT, Format::Toml, None).unwrap(), 1).unwrap();
        simulation.advance(Time::from_micros(1_000_000)).unwrap();
        simulation
    }

    fn change(words: &[(&str, &str)]) -> SaidChange {
        let word =
            |key: &str| words.iter().find(|(name, _)| *name == key).map(|(_, text)| (*text).to_owned());
        SaidChange {
            element: word("element"),
            rate: word("rate"),
            delay: word("delay"),
            rtt: word("rtt"),
            loss: word("loss"),
            buffer: word("buffer"),
        }
    }

    #[test]
    fn a_bdp_is_that_of_the_path_that_the_change_makes() {
        let bytes = |words: &[(&str, &str)]| {
            let mut simulation = simulation();
            simulation.change_said(&change(words)).unwrap();
            simulation.advance(Time::from_micros(3_900_000)).unwrap();
            simulation.queues()[0].sample
        };
        // 5 Mbit/s in 20 ms are 12.5 KB, a quarter of what it was.
        let said = bytes(&[("rate", "5 Mbit/s"), ("rtt", "20 ms"), ("buffer", "1 bdp")]);
        assert_eq!(said, bytes(&[("rate", "5 Mbit/s"), ("rtt", "20 ms"), ("buffer", "12500")]));
        assert_ne!(said, bytes(&[("rate", "5 Mbit/s"), ("rtt", "20 ms"), ("buffer", "50 KB")]));
    }

    #[test]
    fn all_of_it_changes_or_nothing() {
        let mut simulation = simulation();
        let before = simulation.spec().clone();
        let error =
            simulation.change_said(&change(&[("rate", "1 Mbit/s"), ("delay", "1 ms"), ("element", "wifi")]));
        let Err(ChangeError::Refused(mistake)) = error else { panic!("{error:?}") };
        assert_eq!(mistake.field, "element");
        assert!(mistake.sentence.starts_with("element: wifi is not on the path; expected one of bottleneck"));
        assert_eq!(*simulation.spec(), before);
    }

    #[test]
    fn an_error_names_what_was_said() {
        let sentence = |words: &[(&str, &str)]| match simulation().change_said(&change(words)).unwrap_err() {
            ChangeError::Unreadable(error) => error.to_string(),
            ChangeError::Refused(mistake) => mistake.sentence,
        };
        assert!(sentence(&[("rate", "fast")]).starts_with("rate: \"fast\" "));
        assert!(sentence(&[("buffer", "1 B")]).starts_with("buffer: \"1 B\" is below one packet"));
        assert_eq!(
            sentence(&[("element", "forward[0]"), ("delay", "1 ms")]),
            "delay: \"1 ms\" is not for element 0 (link); expected a delay element, whose delay can change; \
             choose another element"
        );
        assert_eq!(
            sentence(&[("element", "bottleneck"), ("rtt", "1 ms")]),
            "rtt: \"1 ms\"; expected a delay, because an element has no round trip; give delay"
        );
    }
}
