//! The files that a document names.

use std::path::Path;

use fullpipe_files::FileError;
use fullpipe_units::Bytes;

use crate::error::ScenarioError;
use crate::quantity::{Quantity, Size};

/// Where the files are that a document names.
#[derive(Clone, Copy)]
pub(crate) enum Files<'a> {
    /// In this folder, or else in the working directory.
    In(Option<&'a Path>),
    /// Nowhere.
    None,
}

impl<'a> Files<'a> {
    pub(super) fn folder(self) -> Option<&'a Path> {
        match self {
            Files::In(folder) => folder,
            Files::None => None,
        }
    }
}

/// The text of a file of at most `most` bytes; errors name `field`.
pub(super) fn read_file(
    field: &str,
    path: &Path,
    most: u64,
    expected: &str,
) -> Result<String, ScenarioError> {
    fullpipe_files::read_text(path, most).map_err(|error| {
        let fix = match &error {
            FileError::Refused(_) => "check the path and permissions".to_string(),
            // A pipe could block forever, and a device could be endless.
            FileError::Irregular => "give the path of a file".to_string(),
            FileError::TooLarge { most, .. } => {
                format!("keep it below {}", Size::Bytes(Bytes::new(*most)).text())
            }
            FileError::NotText => "save it as UTF-8".to_string(),
        };
        ScenarioError::new(field, &path.display().to_string(), error).expected(expected).fix(fix)
    })
}
