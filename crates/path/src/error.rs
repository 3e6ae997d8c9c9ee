//! The error of an invalid path configuration.

/// An element that cannot be built: which element and field, what was given and what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("element {index} ({kind}): {field} is {given}, expected {expected}")]
pub struct ConfigError {
    /// Position of the element in the chain, from 0.
    pub index: usize,
    /// Kind of the element, as in a scenario (`link`, `token_bucket`).
    pub kind: &'static str,
    /// The field, as in [`crate::config::ElementConfig`].
    pub field: &'static str,
    /// What it was.
    pub given: String,
    /// What it has to be.
    pub expected: &'static str,
}
