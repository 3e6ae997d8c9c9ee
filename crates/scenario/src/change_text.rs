//! Changes of a path in words with units, for every world whose runs can change.

use std::fmt::{self, Display};

use fullpipe_path::config::Probability;
use fullpipe_path::{Change, ConfigError};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use serde::Deserialize;

use crate::error::ScenarioError;
use crate::quantity::{Quantity, QuantityText, Size};
use crate::spec::{NoSpot, Place, Spec, Spot};

/// A change of the path as somebody writes it, each amount as in a scenario. What is not given stays as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextChange {
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

impl TextChange {
    /// Reads it for the path of `spec` at `now`. Every change in the list is possible; they are made in this order.
    ///
    /// # Errors
    /// When an amount cannot be read, there is no such element, or it cannot change so.
    pub fn read(&self, spec: &Spec, now: Time) -> Result<Vec<(Spot, Change)>, ChangeError> {
        let TextChange { element, rate, delay, rtt, loss, buffer } = self;
        if let (Some(_), Some(text)) = (element, rtt) {
            let (expected, fix) = ("a delay, because an element has no round trip", "give delay");
            return Err(ChangeError::Refused(Mistake::new("rtt", &format!("{text:?}"), expected, fix)));
        }
        let new_rtt = rtt.as_deref().map(|text| read::<Duration>("rtt", text)).transpose()?;
        let mut wanted = Vec::new();
        let mut new_rate = None;
        if let Some(text) = rate {
            let rate = read::<Rate>("rate", text)?;
            new_rate = Some(rate);
            wanted.push(("rate", text, Change::Rate(rate)));
        }
        if let Some(text) = delay {
            wanted.push(("delay", text, Change::Delay(read::<Duration>("delay", text)?)));
        }
        if let Some(text) = loss {
            wanted.push(("loss", text, Change::Loss(read::<Probability>("loss", text)?)));
        }
        if let Some(text) = buffer {
            // Bandwidth-delay products are those of the path as this change makes it.
            let packet = Bytes::new(u64::from(spec.mtu_bytes));
            let size = QuantityText::<Size>::new(text.as_str());
            let bytes = size.read_buffer("buffer", packet, spec.bdp(now, new_rate, new_rtt));
            wanted.push(("buffer", text, Change::Buffer(bytes.map_err(ChangeError::Unreadable)?)));
        }
        let place = element.as_deref().map_or(Place::Path, Place::of);
        let refused = |error: NoSpot| ChangeError::Refused(error.into());
        let mut changes = Vec::new();
        for (field, text, change) in wanted {
            let spot = spec.spot(place, change).map_err(refused)?;
            let unusable = |error| ChangeError::Refused(Mistake::of_element(field, text, &error));
            spec.check_change(spot, now, change).map_err(unusable)?;
            changes.push((spot, change));
        }
        // First, so that a delay that is given as well has the last word.
        if let Some(rtt) = new_rtt {
            changes.splice(0..0, spec.rtt_changes(rtt).map_err(refused)?);
        }
        Ok(changes)
    }
}

/// Reads an amount; an error names the field.
fn read<T: Quantity>(field: &str, text: &str) -> Result<T, ChangeError> {
    QuantityText::<T>::new(text).read(field).map_err(ChangeError::Unreadable)
}

impl<'a> Place<'a> {
    /// The place of this name: a queue's, or `forward[2]` or `reverse[0]`.
    fn of(name: &'a str) -> Place<'a> {
        let position = || {
            let (way, rest) = name.split_once('[')?;
            let index = rest.strip_suffix(']')?.parse().ok()?;
            match way {
                "forward" => Some(Place::Forward(index)),
                "reverse" => Some(Place::Reverse(index)),
                _ => None,
            }
        };
        position().unwrap_or(Place::Named(name))
    }
}

impl Mistake {
    /// One whose sentence has the parts in this order.
    pub fn new(field: &str, given: &str, expected: &str, fix: &str) -> Mistake {
        let sentence = format!("{field}: {given}; expected {expected}; {fix}");
        let [field, given, expected, fix] = [field, given, expected, fix].map(str::to_owned);
        Mistake { sentence, field, given, expected, fix }
    }

    /// That an element cannot change as `field` asks, for which somebody gave `text`.
    fn of_element(field: &str, text: &str, error: &ConfigError) -> Mistake {
        let ConfigError { index, kind, expected, .. } = error;
        let fix = "choose another element";
        let sentence =
            format!("{field}: {text:?} is not for element {index} ({kind}); expected {expected}; {fix}");
        Mistake { sentence, ..Mistake::new(field, text, expected, fix) }
    }
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<NoSpot> for Mistake {
    fn from(error: NoSpot) -> Mistake {
        let NoSpot { field, given, expected, fix } = error;
        Mistake::new(field, &given, &expected, fix)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Format, resolve};

    const DOCUMENT: &str = r#"
        duration = "4 s"
        path = { rate = "10 Mbit/s", rtt = "40 ms", loss = "0 %" }
        flows = [{ controller = "cubic" }]
    "#;

    fn changes(text: &str) -> Result<Vec<(Spot, Change)>, ChangeError> {
        let written: TextChange = toml::from_str(text).unwrap();
        let spec = resolve(DOCUMENT, Format::Toml, None).unwrap();
        written.read(&spec, Time::from_micros(1_000_000))
    }

    fn sentence(text: &str) -> String {
        match changes(text).unwrap_err() {
            ChangeError::Unreadable(error) => error.to_string(),
            ChangeError::Refused(mistake) => mistake.to_string(),
        }
    }

    #[test]
    fn change_parses_to_element_changes() {
        let spot = |forward, index| Spot { forward, index };
        let delay = |millis| Change::Delay(Duration::from_millis(millis));
        // The path is a link, a loss and a delay, and a delay back.
        assert_eq!(changes("").unwrap(), []);
        assert_eq!(
            changes("rtt = '30 ms'\nrate = '5 Mbit/s'\nloss = '50 %'\nbuffer = '1 bdp'").unwrap(),
            [
                (spot(true, 2), delay(15)),
                (spot(false, 0), delay(15)),
                (spot(true, 0), Change::Rate(Rate::from_bits_per_sec(5_000_000))),
                (spot(true, 1), Change::Loss(Probability::from_f64(0.5))),
                // 5 Mbit/s in 30 ms.
                (spot(true, 0), Change::Buffer(Bytes::new(18_750))),
            ]
        );
        assert_eq!(changes("element = 'reverse[0]'\ndelay = '7 ms'").unwrap(), [(spot(false, 0), delay(7))]);
        // 10 Mbit/s in 40 ms, as the path is.
        let buffer = changes("element = 'bottleneck'\nbuffer = '2 bdp'").unwrap();
        assert_eq!(buffer, [(spot(true, 0), Change::Buffer(Bytes::new(100_000)))]);
    }

    #[test]
    fn loss_change_targets_burst_loss_element() {
        let written: TextChange = toml::from_str("loss = '50 %'").unwrap();
        let spot = |document: &str| {
            written.read(&resolve(document, Format::Toml, None).unwrap(), Time::ZERO).unwrap()[0].0
        };
        let bursts = DOCUMENT.replace("loss = ", "unit = \"burst\", loss = ");
        assert_eq!(spot(&bursts), Spot { forward: true, index: 0 });
        // The path's own, not one that is further on.
        let after = bursts.replace("loss = ", "after = [{ kind = \"loss\", probability = 0 }], loss = ");
        assert_eq!(spot(&after), Spot { forward: true, index: 0 });
        assert_eq!(spot(DOCUMENT), Spot { forward: true, index: 1 });
    }

    #[test]
    fn slow_path_buffer_becomes_ten_packets() {
        let buffer = |text: &str| changes(text).unwrap().last().unwrap().1;
        assert_eq!(buffer("rate = '100 kbit/s'\nbuffer = '1 bdp'"), Change::Buffer(Bytes::new(15_000)));
        assert!(sentence("rate = '100 kbit/s'\nbuffer = '0.5 bdp'").contains("is below one packet"));
    }

    #[test]
    fn error_quotes_input_and_suggests_fix() {
        assert_eq!(
            sentence("rate = '1 Mbit/s'\nelement = 'wifi'"),
            "element: wifi is not on the path; expected one of bottleneck, forward[0..3] or reverse[0..1]; choose one of these"
        );
        assert!(
            sentence("loss = '1 %'\nelement = 'reverse[1]'").starts_with("element: reverse[1] is not on")
        );
        for odd in ["forward[]", "forward[-1]", "forward[99999999999999999999]", "forward[0", "[0]", ""] {
            let words = sentence(&format!("rate = '1 Mbit/s'\nelement = '{odd}'"));
            assert!(words.starts_with(&format!("element: {odd} is not on the path")), "{words}");
        }
        assert_eq!(
            sentence("element = 'forward[0]'\ndelay = '1 ms'"),
            "delay: \"1 ms\" is not for element 0 (link); expected a delay element, whose delay can change; \
             choose another element"
        );
        assert_eq!(
            sentence("element = 'bottleneck'\nrtt = '1 ms'"),
            "rtt: \"1 ms\"; expected a delay, because an element has no round trip; give delay"
        );
        assert!(sentence("rate = 'fast'").starts_with("rate: \"fast\" "));
        assert!(sentence("buffer = '1 B'").starts_with("buffer: \"1 B\" is below one packet"));
        assert!(toml::from_str::<TextChange>("speed = '1 Mbit/s'").is_err());
    }

    #[test]
    fn missing_delay_or_loss_suggests_addition() {
        let document =
            DOCUMENT.replace("rtt = \"40 ms\", loss = \"0 %\"", "rtt = \"0 s\", buffer = \"30 KB\"");
        let spec = resolve(&document, Format::Toml, None).unwrap();
        for (field, expected) in [
            ("rtt", "the path has none; expected path.rtt above 0 in the scenario; give it one"),
            (
                "delay",
                "the path has no delay that could change; expected path.rtt above 0 in the scenario; give it one",
            ),
            (
                "loss",
                "the path has no loss that could change; expected path.loss in the scenario, if only \"0 %\"; give it one",
            ),
        ] {
            let amount = if field == "loss" { "1 %" } else { "1 ms" };
            let written: TextChange = toml::from_str(&format!("{field} = '{amount}'")).unwrap();
            let error = written.read(&spec, Time::ZERO).unwrap_err();
            let ChangeError::Refused(mistake) = error else { panic!("{error:?}") };
            assert_eq!(mistake.sentence, format!("{field}: {expected}"));
        }
    }
}
