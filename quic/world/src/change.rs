//! Changes of a path while a run goes on mean here what they mean in every world: `fullpipe_scenario` reads them. This file has
//! only what becomes of its errors.

use fullpipe_scenario::ScenarioError;
use fullpipe_scenario::change_text::ChangeError;
pub use fullpipe_scenario::change_text::{Mistake, TextChange};
use fullpipe_scenario::spec::NoSpot;
pub use fullpipe_scenario::spec::Place;

use crate::error::QuicError;

impl From<ScenarioError> for QuicError {
    fn from(error: ScenarioError) -> QuicError {
        QuicError::Scenario(Box::new(error))
    }
}

impl From<NoSpot> for QuicError {
    fn from(error: NoSpot) -> QuicError {
        QuicError::Mistake(Box::new(error.into()))
    }
}

impl From<ChangeError> for QuicError {
    fn from(error: ChangeError) -> QuicError {
        match error {
            ChangeError::Unreadable(error) => error.into(),
            ChangeError::Refused(mistake) => QuicError::Mistake(Box::new(mistake)),
        }
    }
}
