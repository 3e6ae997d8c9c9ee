//! Any Parquet file as an Arrow IPC stream, for readers in other languages that a damaged file would crash.
//!
//! A Parquet file has no checksums: one flipped bit can make it contradict itself. Here that is an error. The stream holds
//! the columns with the types that Parquet gives them.

use std::fmt;
use std::path::Path;

use ::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use arrow_ipc::writer::StreamWriter;
use bytes::Bytes;

use crate::contain::contained;
use crate::file::{self, Unreadable};

/// The most rows of a file: with run lengths, even a small file can declare any number.
pub const MOST_ROWS: i64 = 100_000_000;
/// Rows that are read at a time.
const BATCH: usize = 1 << 16;

/// Why a file could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The file cannot be read at all.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    /// It is not Parquet, or it is damaged: the library's message.
    #[error("it is not a readable Parquet file, it may be truncated or damaged: {0}")]
    Damaged(String),
    /// It has more rows than [`MOST_ROWS`].
    #[error("it has {0} rows, expected at most {MOST_ROWS}")]
    Rows(i64),
}

/// Reads a Parquet file into the bytes of an Arrow IPC stream.
///
/// # Errors
/// When it cannot be read or is not a regular file, and as [`from_bytes`].
pub fn read(path: &Path) -> Result<Vec<u8>, FrameError> {
    from_bytes(file::read(path)?)
}

/// The same for the bytes of a file.
///
/// # Errors
/// When they are not Parquet, are damaged, or hold more than [`MOST_ROWS`].
pub fn from_bytes(bytes: Vec<u8>) -> Result<Vec<u8>, FrameError> {
    contained(move || decode(bytes))
        .unwrap_or_else(|| Err(FrameError::Damaged("its pages contradict each other".to_owned())))
}

fn decode(bytes: Vec<u8>) -> Result<Vec<u8>, FrameError> {
    let damaged = |error: &dyn fmt::Display| FrameError::Damaged(error.to_string());
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(bytes), options)
        .map_err(|error| damaged(&error))?;
    let rows = builder.metadata().file_metadata().num_rows();
    if !(0..=MOST_ROWS).contains(&rows) {
        return Err(FrameError::Rows(rows));
    }
    let mut stream = StreamWriter::try_new(Vec::new(), builder.schema()).map_err(|error| damaged(&error))?;
    let mut left = rows as usize;
    for batch in builder.with_batch_size(BATCH).build().map_err(|error| damaged(&error))? {
        let batch = batch.map_err(|error| damaged(&error))?;
        // Row groups may hold more rows than the file declares in total.
        left = left
            .checked_sub(batch.num_rows())
            .ok_or_else(|| FrameError::Damaged("it has more rows than it names".to_owned()))?;
        stream.write(&batch).map_err(|error| damaged(&error))?;
    }
    stream.into_inner().map_err(|error| damaged(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet::to_bytes;
    use crate::run::{Run, example};
    use crate::table::Table;
    use arrow_ipc::reader::StreamReader;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// The example, and one with so many flows that its columns are compressed.
    static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
        let short = example();
        let flows = short.flows.iter().cycle().take(64).cloned().collect();
        [to_bytes(&short, Table::Flows), to_bytes(&Run { flows, ..short }, Table::Flows)]
    });

    #[test]
    fn stream_matches_rows_of_file() {
        let rows = Table::Flows.of(&example());
        let stream = from_bytes(FILES[0].clone()).unwrap();
        let batches: Vec<_> =
            StreamReader::try_new(&stream[..], None).unwrap().collect::<Result<_, _>>().unwrap();
        assert_eq!(batches, [rows]);
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = &FILES[0];
        for length in 0..whole.len() {
            assert!(from_bytes(whole[..length].to_vec()).is_err(), "cut to {length} bytes");
        }
    }

    #[test]
    fn other_files_are_refused_with_reason() {
        let message = from_bytes(b"time_s,flow\n0.0,a\n".to_vec()).unwrap_err().to_string();
        assert!(message.starts_with("it is not a readable Parquet file"), "{message}");
    }

    proptest! {
        #[test]
        fn noise_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(from_bytes(bytes).is_err());
        }

        // A flipped bit may leave a readable file, but never a crash.
        #[test]
        fn damaged_file_never_crashes_reader(
            file in 0..2_usize,
            position in any::<prop::sample::Index>(),
            bit in 0..8_u32,
        ) {
            let mut bytes = FILES[file].clone();
            let position = position.index(bytes.len());
            bytes[position] ^= 1 << bit;
            let _ = from_bytes(bytes);
        }
    }
}
