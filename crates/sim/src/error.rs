//! Why a run cannot go on, in a sentence.

use fullpipe_path::ConfigError;
use fullpipe_scenario::spec::NoSpot;

/// Why a run cannot go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// It was cancelled. It may still be advanced, and finished.
    #[error("the run was cancelled")]
    Cancelled,
    /// The path cannot be built, or an element cannot change so.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// What was asked for does not fit the scenario, or comes too late.
    #[error("{field}: {given}; expected {expected}")]
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

impl From<NoSpot> for SimError {
    fn from(NoSpot { field, given, expected, .. }: NoSpot) -> SimError {
        SimError::refused(field, given, expected)
    }
}
