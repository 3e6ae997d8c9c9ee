//! Files that people name: regular ones only, and never more of them than a limit.
//!
//! A pipe could block for ever, a device could be endless, and a file of `/proc` says that it is empty and is not. So a
//! file is opened without waiting, examined once it is open, and read only as far as the length that it then has.
#![forbid(unsafe_code)]

mod kind;
mod text;

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Take};
use std::path::Path;

use thiserror::Error;

pub use kind::Kind;

/// Why a file cannot be read. Completes a sentence that begins with the file's name.
#[derive(Debug, Error)]
pub enum FileError {
    /// The operating system refused.
    #[error("cannot be read: {}", plain(.0))]
    Refused(#[from] io::Error),
    /// It is a folder, a pipe, a socket or a device.
    #[error("is not a regular file")]
    Irregular,
    /// It is longer than allowed.
    #[error("is too large ({size} bytes)")]
    TooLarge {
        /// What it has.
        size: u64,
        /// What it may have.
        most: u64,
    },
    /// It is neither UTF-8 nor UTF-16.
    #[error("cannot be read: it is not UTF-8 or UTF-16 text")]
    NotText,
}

/// Opens a regular file of at most `most` bytes for reading, up to the length that it has now.
///
/// # Errors
/// The file cannot be opened, is not regular or is too large.
pub fn open(path: &Path, most: u64) -> Result<Take<File>, FileError> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK | libc::O_NOCTTY);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(FileError::Irregular);
    }
    let size = metadata.len();
    if size > most {
        return Err(FileError::TooLarge { size, most });
    }
    Ok(file.take(size))
}

/// The text of a regular file of at most `most` bytes, in UTF-8 or UTF-16.
///
/// # Errors
/// The file cannot be read, is not regular, is too large or is not text.
pub fn read_text(path: &Path, most: u64) -> Result<String, FileError> {
    let mut bytes = Vec::new();
    open(path, most)?.read_to_end(&mut bytes)?;
    text::decode(bytes)
}

/// The operating system's sentence without its number.
pub fn plain(error: &io::Error) -> String {
    let sentence = error.to_string();
    sentence.split(" (os error").next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bounded_regular_files_are_read() {
        let path = std::env::temp_dir().join(format!("fullpipe-files-{}", std::process::id()));
        std::fs::write(&path, "1\n2\n").unwrap();
        assert_eq!(read_text(&path, 4).unwrap(), "1\n2\n");
        assert!(matches!(read_text(&path, 3), Err(FileError::TooLarge { size: 4, most: 3 })));
        std::fs::write(&path, b"\xff").unwrap();
        assert!(matches!(read_text(&path, 3), Err(FileError::NotText)));
        std::fs::remove_file(&path).unwrap();
        let missing = read_text(&path, 3).unwrap_err().to_string();
        assert_eq!(missing, "cannot be read: No such file or directory");
        for irregular in ["/", "/dev/zero"] {
            assert!(matches!(read_text(Path::new(irregular), 3), Err(FileError::Irregular)), "{irregular}");
        }
    }

    /// It has a length of zero and yet content.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_of_proc_is_empty() {
        assert_eq!(read_text(Path::new("/proc/self/status"), 1000).unwrap(), "");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_does_not_block() {
        let path = std::env::temp_dir().join(format!("fullpipe-files-{}.pipe", std::process::id()));
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        assert!(matches!(read_text(&path, 3), Err(FileError::Irregular)));
        std::fs::remove_file(&path).unwrap();
    }
}
