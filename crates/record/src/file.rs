//! Reading files that a user names: regular files only, and none without bounds.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The largest file that is read, bytes.
pub const MOST_BYTES: u64 = 4_000_000_000;

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// The operating system refused.
    #[error("{}", fullpipe_files::plain(.0))]
    Refused(#[from] io::Error),
    /// It is a folder, a pipe or a device.
    #[error("it is not a regular file")]
    NotRegular,
    /// It is larger than [`MOST_BYTES`].
    #[error("it has {0} bytes, expected at most {MOST_BYTES}")]
    TooLarge(u64),
}

/// The content of a regular file.
///
/// # Errors
/// When it cannot be read, is not a regular file, or has more than [`MOST_BYTES`].
pub fn read(path: &Path) -> Result<Vec<u8>, Unreadable> {
    // Before it is opened: a pipe without a writer would block.
    let metadata = std::fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(Unreadable::NotRegular);
    }
    if metadata.len() > MOST_BYTES {
        return Err(Unreadable::TooLarge(metadata.len()));
    }
    // A file without a length is empty, or below /proc, where reading can block or never end.
    let mut content = Vec::with_capacity(metadata.len() as usize);
    if metadata.len() > 0 {
        File::open(path)?.take(metadata.len()).read_to_end(&mut content)?;
    }
    Ok(content)
}
