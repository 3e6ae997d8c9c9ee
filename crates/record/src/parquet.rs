//! A run's tables as Parquet, with the provenance in the file's key-value metadata.
//!
//! Equal runs give equal bytes: the file names this project's version as its creator, carries no time and no name of the
//! machine beyond what the provenance holds.
//!
//! | key | value |
//! |---|---|
//! | `fullpipe.format` | version of this layout, [`FORMAT`] |
//! | `fullpipe.table` | `flows` or `links` |
//! | `fullpipe.system.provenance` | [`Provenance`] as JSON |

use std::path::{Path, PathBuf};

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::errors::ParquetError;
use ::parquet::file::metadata::{FileMetaData, KeyValue};
use ::parquet::file::properties::WriterProperties;
use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Schema};
use bytes::Bytes;
use thiserror::Error;

use crate::contain::contained;
use crate::run::{Provenance, Run};
use crate::table::Table;

/// Version of the layout that this code writes and reads.
pub const FORMAT: &str = "1";

/// Rows from which dictionaries and compression are worth their set-up. It takes a millisecond a file, several times as long
/// as a run of a few packets, and saves some kilobytes in shorter files.
const WORTH_COMPRESSING: usize = 64;

const FORMAT_KEY: &str = "fullpipe.format";
const TABLE_KEY: &str = "fullpipe.table";
const PROVENANCE_KEY: &str = "fullpipe.system.provenance";

/// A table read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Which table.
    pub table: Table,
    /// Where its run came from.
    pub provenance: Provenance,
    /// Its rows, in order.
    pub batches: Vec<RecordBatch>,
}

/// Why a file could not be written or read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The operating system refused.
    #[error("cannot {attempt} {path}: {source}")]
    File {
        /// What was attempted: `read` or `write`.
        attempt: &'static str,
        /// The file.
        path: PathBuf,
        /// The operating system's message.
        source: std::io::Error,
    },
    /// It is not Parquet, or it is damaged.
    #[error("not a readable Parquet file, it may be truncated or damaged: {0}")]
    Damaged(String),
    /// It is Parquet, but not a table of Fullpipe.
    #[error("not a table of Fullpipe: {0}; give a file that `fullpipe run --out` wrote")]
    Foreign(String),
    /// It was written in another layout.
    #[error(
        "layout {found} of the file is not layout {FORMAT}; read it with the version of Fullpipe that wrote it"
    )]
    Format {
        /// The layout of the file.
        found: String,
    },
}

/// `table` of `run` as a Parquet file.
///
/// # Panics
/// Where [`Table::of`] does.
pub fn to_bytes(run: &Run, table: Table) -> Vec<u8> {
    let rows = table.of(run);
    let provenance = serde_json::to_string(&run.provenance).expect("provenance is plain data");
    let metadata =
        [(FORMAT_KEY, FORMAT.to_owned()), (TABLE_KEY, table.name().to_owned()), (PROVENANCE_KEY, provenance)];
    let small = rows.num_rows() < WORTH_COMPRESSING;
    let properties = WriterProperties::builder()
        .set_compression(if small {
            Compression::UNCOMPRESSED
        } else {
            Compression::ZSTD(ZstdLevel::default())
        })
        .set_dictionary_enabled(!small)
        // Not the library's own version, which would change the bytes of an equal run.
        .set_created_by(format!("fullpipe version {}", run.provenance.version))
        .set_key_value_metadata(Some(
            metadata.into_iter().map(|(key, value)| KeyValue::new(key.to_owned(), value)).collect(),
        ))
        .build();
    // Every type here is one of Parquet's own, so a copy of the Arrow schema would add nothing.
    let options = ArrowWriterOptions::new().with_properties(properties).with_skip_arrow_metadata(true);
    let never_fails = "writing flat columns to memory does not fail";
    let mut writer =
        ArrowWriter::try_new_with_options(Vec::new(), rows.schema(), options).expect(never_fails);
    writer.write(&rows).expect(never_fails);
    writer.into_inner().expect(never_fails)
}

/// Writes `table` of `run` to a Parquet file, replacing an existing one.
pub fn write(run: &Run, table: Table, path: &Path) -> Result<(), StoreError> {
    let failed = |source| StoreError::File { attempt: "write", path: path.to_owned(), source };
    std::fs::write(path, to_bytes(run, table)).map_err(failed)
}

/// Reads a table from the bytes of a Parquet file.
pub fn from_bytes(bytes: Vec<u8>) -> Result<Stored, StoreError> {
    // The library panics on some damaged files, e.g. on a page that names a missing dictionary.
    let read = contained(move || decode(bytes));
    read.unwrap_or_else(|| Err(StoreError::Damaged("its pages contradict each other".to_owned())))
}

fn decode(bytes: Vec<u8>) -> Result<Stored, StoreError> {
    let builder = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes))?;
    let (table, provenance) = identify(builder.metadata().file_metadata())?;
    check_columns(table, builder.schema())?;
    let batches = builder.build()?.collect::<Result<Vec<_>, _>>()?;
    Ok(Stored { table, provenance, batches })
}

/// Reads a table from a Parquet file.
pub fn read(path: &Path) -> Result<Stored, StoreError> {
    let failed = |source| StoreError::File { attempt: "read", path: path.to_owned(), source };
    from_bytes(std::fs::read(path).map_err(failed)?)
}

/// Which table it is, and of which run.
fn identify(metadata: &FileMetaData) -> Result<(Table, Provenance), StoreError> {
    let format = value_of(metadata, FORMAT_KEY)?;
    if format != FORMAT {
        return Err(StoreError::Format { found: format.to_owned() });
    }
    let table = match value_of(metadata, TABLE_KEY)? {
        "flows" => Table::Flows,
        "links" => Table::Links,
        other => return Err(StoreError::Foreign(format!("there is no table \"{other}\""))),
    };
    let provenance = serde_json::from_str(value_of(metadata, PROVENANCE_KEY)?)
        .map_err(|error| StoreError::Foreign(format!("its provenance cannot be read: {error}")))?;
    Ok((table, provenance))
}

fn value_of<'a>(metadata: &'a FileMetaData, key: &str) -> Result<&'a str, StoreError> {
    let pairs = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let pair = pairs.iter().find(|pair| pair.key == key);
    pair.and_then(|pair| pair.value.as_deref())
        .ok_or_else(|| StoreError::Foreign(format!("its metadata has no {key}")))
}

fn check_columns(table: Table, found: &Schema) -> Result<(), StoreError> {
    let expected = table.schema();
    if found.fields() == expected.fields() {
        return Ok(());
    }
    let missing = expected.fields().iter().find(|&field| !found.fields().iter().any(|other| other == field));
    Err(StoreError::Foreign(match missing {
        Some(field) => format!("it has no column {} of type {}", field.name(), field.data_type()),
        None => "it has columns that do not belong or are out of order".to_owned(),
    }))
}

impl From<ParquetError> for StoreError {
    fn from(error: ParquetError) -> StoreError {
        StoreError::Damaged(error.to_string())
    }
}

impl From<ArrowError> for StoreError {
    fn from(error: ArrowError) -> StoreError {
        StoreError::Damaged(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;
    use proptest::prelude::*;

    #[test]
    fn a_table_reads_back_as_it_was_written() {
        let run = example();
        for table in [Table::Flows, Table::Links] {
            let stored = from_bytes(to_bytes(&run, table)).unwrap();
            assert_eq!(stored.table, table);
            assert_eq!(stored.provenance, run.provenance);
            assert_eq!(stored.batches, [table.of(&run)]);
        }
    }

    /// The example with so many flows that compression is worth it.
    fn long() -> Run {
        let run = example();
        let flows = run.flows.iter().cycle().take(WORTH_COMPRESSING).cloned().collect();
        Run { flows, ..run }
    }

    #[test]
    fn only_long_tables_are_compressed_and_both_read_back() {
        for (run, compression) in [(example(), "UNCOMPRESSED"), (long(), "ZSTD")] {
            let bytes = to_bytes(&run, Table::Flows);
            assert_eq!(from_bytes(bytes.clone()).unwrap().batches, [Table::Flows.of(&run)]);
            let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
            let found = format!("{:?}", file.metadata().row_group(0).column(0).compression());
            assert!(found.starts_with(compression), "{found}");
        }
    }

    #[test]
    fn equal_runs_give_equal_bytes() {
        for table in [Table::Flows, Table::Links] {
            let first = to_bytes(&example(), table);
            let elsewhere = std::thread::spawn(move || to_bytes(&example(), table)).join().unwrap();
            assert_eq!(first, elsewhere);
            let library = b"parquet-rs";
            assert!(!first.windows(library.len()).any(|window| window == library));
        }
    }

    #[test]
    fn a_run_without_samples_reads_back_empty() {
        let run = Run { flows: Vec::new(), links: Vec::new(), ..example() };
        let stored = from_bytes(to_bytes(&run, Table::Flows)).unwrap();
        assert_eq!(stored.batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }

    #[test]
    fn files_round_trip_and_a_missing_file_is_named() {
        let path = std::env::temp_dir().join(format!("fullpipe-record-{}.parquet", std::process::id()));
        write(&example(), Table::Links, &path).unwrap();
        assert_eq!(read(&path).unwrap().batches, [Table::Links.of(&example())]);
        std::fs::remove_file(&path).unwrap();
        let message = read(&path).unwrap_err().to_string();
        assert!(message.starts_with("cannot read ") && message.contains("fullpipe-record-"), "{message}");
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = to_bytes(&example(), Table::Flows);
        for length in 0..whole.len() {
            assert!(from_bytes(whole[..length].to_vec()).is_err(), "cut to {length} bytes");
        }
    }

    #[test]
    fn parquet_from_elsewhere_is_refused_with_a_reason() {
        let rows = Table::Links.of(&example());
        let mut writer = ArrowWriter::try_new(Vec::new(), rows.schema(), None).unwrap();
        writer.write(&rows).unwrap();
        let message = from_bytes(writer.into_inner().unwrap()).unwrap_err().to_string();
        assert!(message.contains("its metadata has no fullpipe.format"), "{message}");
        let message = from_bytes(b"time_s,flow\n0.0,a\n".to_vec()).unwrap_err().to_string();
        assert!(message.starts_with("not a readable Parquet file"), "{message}");
    }

    proptest! {
        #[test]
        fn noise_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(from_bytes(bytes).is_err());
        }

        // A flipped bit may leave a readable file, but never a crash.
        #[test]
        fn a_damaged_file_never_crashes_the_reader(
            compressed in any::<bool>(),
            position in any::<prop::sample::Index>(),
            bit in 0..8_u32,
        ) {
            let mut bytes = to_bytes(&if compressed { long() } else { example() }, Table::Flows);
            let position = position.index(bytes.len());
            bytes[position] ^= 1 << bit;
            let _ = from_bytes(bytes);
        }
    }
}
