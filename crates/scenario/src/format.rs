//! The formats of documents.

use std::path::Path;

/// The format of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.0.
    Toml,
    /// JSON of the same shape; `null` is an absent key.
    Json,
}

impl Format {
    /// By the file's extension: `.json` is JSON, everything else TOML.
    pub fn of(path: &Path) -> Format {
        let json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if json { Format::Json } else { Format::Toml }
    }
}
