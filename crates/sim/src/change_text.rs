//! Changes of a path in words with units, and errors as sentences: one place for everything that talks to people.

pub use fullpipe_scenario::change_text::{ChangeError, Mistake, TextChange};

use crate::error::SimError;
use crate::simulation::Simulation;

impl Simulation {
    /// Changes what is given: all of it, or nothing if some of it cannot be. See [`Simulation::change`].
    ///
    /// # Errors
    /// When an amount cannot be read, there is no such element, or it cannot change so.
    pub fn change_text(&mut self, message: &TextChange) -> Result<(), ChangeError> {
        let refused = |error: SimError| ChangeError::Refused(error.mistake());
        let changes = message.read(self.spec(), self.now())?;
        if !changes.is_empty() {
            self.check_changing().map_err(refused)?;
        }
        changes.into_iter().try_for_each(|(spot, change)| self.apply(spot, change).map_err(refused))
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
                Mistake {
                    sentence,
                    ..Mistake::new(field, given, expected, "see docs/tutorials/simulation.md")
                }
            }
            SimError::Path(path) => {
                let fix = "resolve the scenario again";
                let sentence = format!("{path}; {fix}");
                Mistake { sentence, ..Mistake::new(path.field, &path.given, path.expected, fix) }
            }
        }
    }
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

    fn change(words: &[(&str, &str)]) -> TextChange {
        let word =
            |key: &str| words.iter().find(|(name, _)| *name == key).map(|(_, text)| (*text).to_owned());
        TextChange {
            element: word("element"),
            rate: word("rate"),
            delay: word("delay"),
            rtt: word("rtt"),
            loss: word("loss"),
            buffer: word("buffer"),
        }
    }

    #[test]
    fn bdp_uses_changed_path() {
        let bytes = |words: &[(&str, &str)]| {
            let mut simulation = simulation();
            simulation.change_text(&change(words)).unwrap();
            simulation.advance(Time::from_micros(3_900_000)).unwrap();
            simulation.queues()[0].sample
        };
        // 5 Mbit/s in 20 ms are 12.5 KB, a quarter of what it was.
        let message = bytes(&[("rate", "5 Mbit/s"), ("rtt", "20 ms"), ("buffer", "1 bdp")]);
        assert_eq!(message, bytes(&[("rate", "5 Mbit/s"), ("rtt", "20 ms"), ("buffer", "12500")]));
        assert_ne!(message, bytes(&[("rate", "5 Mbit/s"), ("rtt", "20 ms"), ("buffer", "50 KB")]));
    }

    #[test]
    fn all_of_it_changes_or_nothing() {
        let mut simulation = simulation();
        let before = simulation.spec().clone();
        let error =
            simulation.change_text(&change(&[("rate", "1 Mbit/s"), ("delay", "1 ms"), ("element", "wifi")]));
        let Err(ChangeError::Refused(mistake)) = error else { panic!("{error:?}") };
        assert_eq!(mistake.field, "element");
        assert!(mistake.sentence.starts_with("element: wifi is not on the path; expected one of bottleneck"));
        assert_eq!(*simulation.spec(), before);
    }

    #[test]
    fn an_error_names_what_was_said() {
        let sentence = |words: &[(&str, &str)]| match simulation().change_text(&change(words)).unwrap_err() {
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
