//! A run's tables as Parquet, with the provenance in the file's key-value metadata.
//!
//! Equal runs give equal bytes: the file names this project's version as its creator, carries no time and no name of the
//! machine beyond what the provenance holds.
//!
//! | key | value |
//! |---|---|
//! | `fullpipe.format` | version of this layout, [`FORMAT`] |
//! | `fullpipe.table` | `flows` or `links` |
//! | `fullpipe.provenance` | [`Provenance`] as JSON |

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::basic::{Compression, ZstdLevel};
use ::parquet::file::metadata::KeyValue;
use ::parquet::file::properties::WriterProperties;

use crate::run::Run;
use crate::table::Table;

/// Version of the layout.
pub const FORMAT: &str = "1";

/// Rows from which dictionaries and compression are worth their set-up. It takes a millisecond a file, several times as long
/// as a run of a few packets, and saves some kilobytes in shorter files.
const WORTH_COMPRESSING: usize = 64;

const FORMAT_KEY: &str = "fullpipe.format";
const TABLE_KEY: &str = "fullpipe.table";
const PROVENANCE_KEY: &str = "fullpipe.provenance";

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{Provenance, example};
    use ::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
    use arrow_array::RecordBatch;
    use bytes::Bytes;
    use std::collections::BTreeMap;

    /// What any reader of Parquet finds in a file: the metadata, how the columns are compressed, the rows.
    fn read(bytes: Vec<u8>) -> (BTreeMap<String, String>, String, Vec<RecordBatch>) {
        let file = ParquetRecordBatchReaderBuilder::try_new(Bytes::from(bytes)).unwrap();
        let pairs = file.metadata().file_metadata().key_value_metadata().unwrap();
        let pairs = pairs.iter().map(|pair| (pair.key.clone(), pair.value.clone().unwrap())).collect();
        let groups = file.metadata().row_groups();
        let compression = groups.iter().map(|group| format!("{:?}", group.column(0).compression())).collect();
        let batches = file.build().unwrap().collect::<Result<_, _>>().unwrap();
        (pairs, compression, batches)
    }

    #[test]
    fn file_holds_table_and_provenance() {
        let run = example();
        for (table, name) in [(Table::Flows, "flows"), (Table::Links, "links")] {
            let (metadata, _, batches) = read(to_bytes(&run, table));
            assert_eq!(batches, [table.of(&run)]);
            assert_eq!(metadata["fullpipe.format"], "1");
            assert_eq!(metadata["fullpipe.table"], name);
            let provenance: Provenance = serde_json::from_str(&metadata["fullpipe.provenance"]).unwrap();
            assert_eq!(provenance, run.provenance);
            assert_eq!(metadata.len(), 3);
        }
    }

    #[test]
    fn a_table_with_marks_reads_back() {
        let mut run = example();
        run.links[0].totals.early_packets = 2;
        run.links[0].series.early_packets = vec![0, 2];
        let (_, _, batches) = read(to_bytes(&run, Table::Links));
        assert_eq!(batches, [Table::Links.of(&run)]);
        assert_eq!(batches[0].num_columns(), 7);
    }

    /// The example with so many flows that compression is worth it.
    fn long() -> Run {
        let run = example();
        let flows = run.flows.iter().cycle().take(WORTH_COMPRESSING).cloned().collect();
        Run { flows, ..run }
    }

    #[test]
    fn only_long_tables_are_compressed() {
        for (run, expected) in [(example(), "UNCOMPRESSED"), (long(), "ZSTD")] {
            let (_, compression, batches) = read(to_bytes(&run, Table::Flows));
            assert_eq!(batches, [Table::Flows.of(&run)]);
            assert!(compression.starts_with(expected), "{compression}");
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
    fn run_without_samples_reads_back_empty() {
        let run = Run { flows: Vec::new(), links: Vec::new(), ..example() };
        let (_, _, batches) = read(to_bytes(&run, Table::Flows));
        assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 0);
    }
}
