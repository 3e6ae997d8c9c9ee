//! Why a run cannot go on, in a sentence.

use fullpipe_path::ConfigError;
use fullpipe_scenario::spec::NoSpot;

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SimError {
    /// It was cancelled. It may still be advanced, and finished.
    Cancelled,
    /// The path cannot be built, or an element cannot change so.
    Path(ConfigError),
    /// What was asked for does not fit the scenario, or comes too late.
    Refused {
        /// The field of the scenario, or what was to be changed.
        field: String,
        /// What was given.
        given: String,
        /// What is expected instead.
        expected: String,
    },
}

impl SimError {
    pub(crate) fn refused(
        field: impl Into<String>,
        given: impl Into<String>,
        expected: impl Into<String>,
    ) -> SimError {
        SimError::Refused { field: field.into(), given: given.into(), expected: expected.into() }
    }
}

impl std::fmt::Display for SimError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            SimError::Cancelled => write!(f, "the run was cancelled"),
            SimError::Path(error) => write!(f, "{error}"),
            SimError::Refused { field, given, expected } => {
                write!(f, "{field}: {given}; expected {expected}")
            }
        }
    }
}

impl std::error::Error for SimError {}

impl From<ConfigError> for SimError {
    fn from(error: ConfigError) -> SimError {
        SimError::Path(error)
    }
}

impl From<NoSpot> for SimError {
    fn from(NoSpot { field, given, expected, .. }: NoSpot) -> SimError {
        SimError::refused(field, given, expected)
    }
}
