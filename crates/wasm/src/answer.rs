//! What the page gets: JSON, columns of numbers beside it, and at times a long text.

use fullpipe_scenario::ScenarioError;
use fullpipe_sim::{ChangeError, Mistake, SimError};
use serde::{Serialize, Serializer};

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// `{"ok": ...}`, `{"mistake": ...}` or `{"failure": ...}`.
    pub json: String,
    /// The columns of all its tables, one behind another.
    pub columns: Vec<f64>,
    /// A text that is too long for JSON, in UTF-8; empty if there is none.
    pub text: Vec<u8>,
}

/// Where a table is in the columns of its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct TableAt {
    pub(crate) rows: usize,
    /// The name of each column, and the number of its first value.
    pub(crate) columns: Vec<(&'static str, usize)>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// Somebody made a mistake in a scenario.
    Mistake(Box<Mistake>),
    /// The page did.
    Failure(String),
}

impl Answer {
    /// Appends a column, and returns where it begins.
    pub(crate) fn column(&mut self, values: impl IntoIterator<Item = f64>) -> usize {
        let from = self.columns.len();
        self.columns.extend(values);
        from
    }

    /// Completes an answer whose columns are there.
    pub(crate) fn ok(mut self, value: &impl Serialize) -> Answer {
        self.json = object("ok", value);
        self
    }

    /// That there is none.
    pub(crate) fn refusal(refusal: &Refusal) -> Answer {
        let json = match refusal {
            Refusal::Failure(sentence) => object("failure", sentence),
            Refusal::Mistake(mistake) => {
                let Mistake { sentence, field, given, expected, fix } = &**mistake;
                let known = |part: &str| (!part.is_empty()).then(|| part.to_owned());
                let [field, given, expected, fix] = [field, given, expected, fix].map(|part| known(part));
                object("mistake", &MistakeParts { message: sentence, field, given, expected, fix })
            }
        };
        Answer { json, ..Answer::default() }
    }
}

#[derive(Serialize)]
struct MistakeParts<'a> {
    message: &'a str,
    field: Option<String>,
    given: Option<String>,
    expected: Option<String>,
    fix: Option<String>,
}

fn object(key: &'static str, value: &impl Serialize) -> String {
    struct Object<'a, T>(&'static str, &'a T);

    impl<T: Serialize> Serialize for Object<'_, T> {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            serializer.collect_map([(self.0, self.1)])
        }
    }

    serde_json::to_string(&Object(key, value)).expect("answers are plain data")
}

impl From<Mistake> for Refusal {
    fn from(mistake: Mistake) -> Refusal {
        Refusal::Mistake(Box::new(mistake))
    }
}

impl From<SimError> for Refusal {
    fn from(error: SimError) -> Refusal {
        error.mistake().into()
    }
}

impl From<ScenarioError> for Refusal {
    fn from(error: ScenarioError) -> Refusal {
        let sentence = error.to_string();
        let ScenarioError { field, given, expected, fix, .. } = error;
        Mistake { sentence, field, given, expected: expected.into(), fix: fix.into() }.into()
    }
}

impl From<ChangeError> for Refusal {
    fn from(error: ChangeError) -> Refusal {
        match error {
            ChangeError::Unreadable(error) => error.into(),
            ChangeError::Refused(mistake) => mistake.into(),
        }
    }
}
