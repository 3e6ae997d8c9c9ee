//! Recordings of a kernel's congestion control ([`fullpipe_replay`]) as Parquet files, one row a call.
//!
//! docs/reference/recording-format.md lists the columns and their units, and says which files are accepted. The metadata key
//! `fullpipe.trace` holds [`Meta`] as JSON; it is older than the term "recording". Equal recordings give equal bytes.
//!
//! ```
//! use fullpipe_replay::{Call, Hook, Ops};
//! use fullpipe_record::recording::{self, Meta, Recorded};
//!
//! let meta = Meta {
//!     cc: Ops::Bbr,
//!     kernel: "6.18.44".to_owned(),
//!     hz: 250,
//!     recorded: Recorded { scenario: "random-loss".to_owned(), path: "20 Mbit/s, 40 ms, loss 1 %".to_owned() },
//!     lost_records: 0,
//!     missed_calls: 0,
//!     flows: 1,
//! };
//! let calls = [Call { hook: Hook::Init, ..Call::default() }];
//! let bytes = recording::to_bytes(&meta, &calls).unwrap();
//! assert_eq!(recording::from_bytes(bytes).unwrap(), (meta, calls.to_vec()));
//! ```

mod columns;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::parquet::arrow::ArrowWriter;
use ::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use ::parquet::arrow::arrow_writer::ArrowWriterOptions;
use ::parquet::basic::{Compression, Encoding, ZstdLevel};
use ::parquet::file::metadata::{FileMetaData, KeyValue, ParquetMetaData};
use ::parquet::file::properties::{EnabledStatistics, WriterProperties};
use ::parquet::schema::types::ColumnPath;
use arrow_array::RecordBatch;
use arrow_schema::Schema;
use bytes::Bytes;
use fullpipe_replay::{Call, Hook, Ops, Private};
use serde::{Deserialize, Serialize};

use fullpipe_files::Kind;

use crate::contain::contained;
use crate::file::{self, Unreadable};
use columns::{Before, Column, Storage, columns};

/// Version of the layout that this code writes and reads.
pub const VERSION: u32 = 1;

/// The most calls of a recording: with run lengths, even a small file can declare any number.
pub const MOST_CALLS: u64 = 20_000_000;

const KEY: &str = "fullpipe.trace";
/// Rows that are turned into columns at a time.
const BATCH: usize = 1 << 15;
const ZSTD_LEVEL: i32 = 9;
/// Tick rates that Linux has been built with (`CONFIG_HZ`, from 24 on some boards to 1200).
const HZ: std::ops::RangeInclusive<u32> = 24..=1200;

/// The metadata of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meta {
    /// The congestion control whose calls it holds.
    pub cc: Ops,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
    /// The kernel's `CONFIG_HZ`: jiffies in a second.
    pub hz: u32,
    /// What was recorded.
    pub recorded: Recorded,
    /// Calls that the recorder had no room for.
    pub lost_records: u64,
    /// Calls that the kernel is known to have skipped; zero in files without that entry.
    pub missed_calls: u64,
    /// Flows in it; they are numbered from zero.
    pub flows: u32,
}

/// What was recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recorded {
    /// Name of the scenario.
    pub scenario: String,
    /// Its path in a line.
    pub path: String,
}

/// [`Meta`] as it is in the file.
#[derive(Serialize, Deserialize)]
struct MetaFile {
    version: u32,
    cc: String,
    kernel: String,
    hz: u32,
    recorded: Recorded,
    lost_records: u64,
    #[serde(default)]
    missed_calls: u64,
    flows: u32,
}

/// The one entry that files of every version have.
#[derive(Deserialize)]
struct VersionOnly {
    version: u32,
}

/// Why a recording could not be written or read.
#[derive(Debug)]
pub struct RecordingError {
    /// The file, if it is one.
    pub file: Option<PathBuf>,
    /// What is wrong with it.
    pub problem: Problem,
}

/// What is wrong with a recording.
#[derive(Debug)]
#[non_exhaustive]
pub enum Problem {
    /// It cannot be read at all.
    Unreadable(Unreadable),
    /// It is a file of another kind.
    Kind(Kind),
    /// It does not begin as a Parquet file does.
    NotParquet,
    /// It is not Parquet, or it is damaged: the library's message.
    Damaged(String),
    /// It is Parquet, but not a recording: what is missing.
    Foreign(String),
    /// It is a recording of another version.
    Version(u32),
    /// It has more calls than [`MOST_CALLS`].
    Calls(u64),
    /// A column is compressed in an unsupported way.
    Compression {
        /// Its name.
        column: String,
        /// How it is compressed.
        found: String,
    },
    /// A column is missing, has another type, or is not part of the format.
    Column {
        /// Its name.
        name: String,
        /// What was found.
        found: String,
        /// What is expected.
        expected: String,
    },
    /// An impossible value.
    Value {
        /// Position of the call in the recording.
        call: u64,
        /// The column.
        column: String,
        /// What was found.
        found: String,
        /// What is expected.
        expected: String,
    },
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.as_ref().map_or("the recording".to_owned(), |file| file.display().to_string());
        match &self.problem {
            Problem::Unreadable(found) => write!(f, "{file} cannot be read: {found}"),
            Problem::Kind(kind) => write!(
                f,
                "{file} is {}; expected a recording of kernel decisions; {}",
                kind.name(),
                kind.fix()
            ),
            Problem::Calls(found) => write!(f, "{file} has {found} calls, expected at most {MOST_CALLS}"),
            Problem::Compression { column, found } => write!(
                f,
                "{file}: column {column} is compressed with {found}, expected ZSTD, SNAPPY, GZIP, LZ4_RAW or UNCOMPRESSED"
            ),
            Problem::NotParquet => write!(f, "{file} is not a recording: it is not a Parquet file"),
            Problem::Damaged(found) => {
                write!(f, "{file} is not a readable Parquet file, it may be truncated or damaged: {found}")
            }
            Problem::Foreign(found) => {
                write!(
                    f,
                    "{file} is Parquet, but no recording of Fullpipe: {found}; expected the metadata key {KEY}"
                )
            }
            Problem::Version(found) => write!(
                f,
                "{file} is a recording of version {found}, expected version {VERSION}; read it with the version of Fullpipe that wrote it"
            ),
            Problem::Column { name, found, expected } => {
                write!(f, "{file}: column {name} is {found}, expected {expected}")
            }
            Problem::Value { call, column, found, expected } => {
                write!(f, "{file}: call {call} has {found} for {column}, expected {expected}")
            }
        }
    }
}

impl std::error::Error for RecordingError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.problem {
            Problem::Unreadable(source) => Some(source),
            _ => None,
        }
    }
}

impl From<Problem> for RecordingError {
    fn from(problem: Problem) -> RecordingError {
        RecordingError { file: None, problem }
    }
}

/// Reads a recording. For a file of another kind, the error says what it is and which command takes it.
///
/// # Errors
/// When it cannot be read or is not a regular file, and as [`from_bytes`].
pub fn read(path: &Path) -> Result<(Meta, Vec<Call>), RecordingError> {
    let named = |problem| RecordingError { file: Some(path.to_owned()), problem };
    let bytes = file::read(path).map_err(|error| named(Problem::Unreadable(error)))?;
    let kind = Kind::of_bytes(&bytes).filter(|kind| *kind != Kind::Recording);
    let parquet = bytes.starts_with(b"PAR1");
    from_bytes(bytes).map_err(|error| match (error.problem, kind) {
        (Problem::Damaged(_) | Problem::Foreign(_), Some(kind)) => named(Problem::Kind(kind)),
        (Problem::Damaged(_), None) if !parquet => named(Problem::NotParquet),
        (problem, _) => named(problem),
    })
}

/// A recording as the bytes of a file.
///
/// # Errors
/// When a call does not fit `meta`: it is of a flow that `meta` does not count, or has private state outside the fields of
/// its control.
pub fn to_bytes(meta: &Meta, calls: &[Call]) -> Result<Vec<u8>, RecordingError> {
    Ok(encode(meta, calls)?)
}

/// Reads a recording from the bytes of a file.
///
/// # Errors
/// When they are no recording, are damaged, are of another version, or hold a value that no recording has.
pub fn from_bytes(bytes: Vec<u8>) -> Result<(Meta, Vec<Call>), RecordingError> {
    let read = contained(move || decode(bytes));
    Ok(read.unwrap_or_else(|| Err(Problem::Damaged("its pages contradict each other".to_owned())))?)
}

// ---- writing ----

fn encode(meta: &Meta, calls: &[Call]) -> Result<Vec<u8>, Problem> {
    for (position, call) in calls.iter().enumerate() {
        check(meta, position as u64, call)?;
    }
    let columns = columns(meta.cc);
    let rows = by_flow(calls);
    let befores = befores(calls, &rows);
    let options =
        ArrowWriterOptions::new().with_properties(properties(meta, &columns)).with_skip_arrow_metadata(true);
    let never_fails = "writing flat columns to memory does not fail";
    let schema = Arc::new(schema(&columns));
    let mut writer =
        ArrowWriter::try_new_with_options(Vec::new(), schema.clone(), options).expect(never_fails);
    for (rows, befores) in rows.chunks(BATCH).zip(befores.chunks(BATCH)) {
        let arrays = columns.iter().map(|column| column.array(calls, rows, befores)).collect();
        let batch =
            RecordBatch::try_new(schema.clone(), arrays).expect("the columns are those of the schema");
        writer.write(&batch).expect(never_fails);
    }
    Ok(writer.into_inner().expect(never_fails))
}

fn check(meta: &Meta, position: u64, call: &Call) -> Result<(), Problem> {
    let wrong = |column: &str, found: String, expected: String| {
        Err(Problem::Value { call: position, column: column.to_owned(), found, expected })
    };
    if call.flow >= meta.flows {
        return wrong("flow", call.flow.to_string(), format!("a number below {}", meta.flows));
    }
    for private in [&call.private_before, &call.private_after] {
        if !meta.cc.owns(private) {
            let expected = format!("none outside the fields of {}'s private state", meta.cc.name());
            return wrong("icsk_ca_priv", "bits".to_owned(), expected);
        }
    }
    Ok(())
}

/// Positions of the calls, one flow after the other, so that neighbours are similar and compress well.
fn by_flow(calls: &[Call]) -> Vec<usize> {
    let mut rows: Vec<usize> = (0..calls.len()).collect();
    rows.sort_by_key(|&row| calls[row].flow);
    rows
}

/// The private state before each of `rows`, if it is not what the flow's previous call left (zeros, at its first).
fn befores(calls: &[Call], rows: &[usize]) -> Vec<Before> {
    let mut last: Option<&Call> = None;
    rows.iter()
        .map(|&row| {
            let call = &calls[row];
            let expected = match last {
                Some(last) if last.flow == call.flow => last.private_after,
                _ => [0; 13],
            };
            last = Some(call);
            (call.private_before != expected).then_some(call.private_before)
        })
        .collect()
}

fn schema(columns: &[Column]) -> Schema {
    Schema::new(columns.iter().map(Column::field).collect::<Vec<_>>())
}

fn properties(meta: &Meta, columns: &[Column]) -> WriterProperties {
    let file = MetaFile {
        version: VERSION,
        cc: meta.cc.name().to_owned(),
        kernel: meta.kernel.clone(),
        hz: meta.hz,
        recorded: meta.recorded.clone(),
        lost_records: meta.lost_records,
        missed_calls: meta.missed_calls,
        flows: meta.flows,
    };
    let json = serde_json::to_string(&file).expect("metadata is plain data");
    let level = ZstdLevel::try_new(ZSTD_LEVEL).expect("zstd has this level");
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(level))
        // No reader of recordings uses the least and largest values of columns, and there are a hundred columns.
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        // Not the library's own version, which would change the bytes of an equal recording.
        .set_created_by(concat!("fullpipe version ", env!("CARGO_PKG_VERSION")).to_owned())
        .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), json)]));
    for column in columns {
        let path = ColumnPath::from(column.name());
        let delta = column.storage() == Storage::Delta;
        properties = properties.set_column_dictionary_enabled(path.clone(), !delta);
        if delta {
            properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
        }
    }
    properties.build()
}

// ---- reading ----

fn decode(bytes: Vec<u8>) -> Result<(Meta, Vec<Call>), Problem> {
    let damaged = |error: &dyn fmt::Display| Problem::Damaged(error.to_string());
    // The Arrow schema of another program is ignored: it does not determine the types of the columns.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(Bytes::from(bytes), options)
        .map_err(|e| damaged(&e))?;
    let meta = identify(builder.metadata().file_metadata())?;
    check_size(builder.metadata())?;
    check_compression(builder.metadata())?;
    let columns = columns(meta.cc);
    check_columns(&columns, builder.schema())?;
    let mut rows = Vec::new();
    let mut last = None;
    for batch in builder.with_batch_size(BATCH).build().map_err(|e| damaged(&e))? {
        let batch = batch.map_err(|e| damaged(&e))?;
        // Row groups may hold more rows than the file declares in total.
        check_calls((rows.len() + batch.num_rows()) as u64)?;
        read_batch(&meta, &columns, &batch, &mut last, &mut rows)?;
    }
    let calls = in_order(rows)?;
    check_flows(&meta, &calls)?;
    Ok((meta, calls))
}

/// Checks that every flow has calls, so that the work of a replay grows with the contents of the file, not with a number
/// in it.
fn check_flows(meta: &Meta, calls: &[Call]) -> Result<(), Problem> {
    let foreign = |what: String| Err(Problem::Foreign(what));
    if !HZ.contains(&meta.hz) {
        return foreign(format!(
            "its kernel's tick rate is {} Hz, not {} to {}",
            meta.hz,
            HZ.start(),
            HZ.end()
        ));
    }
    let mut seen = vec![false; calls.len()];
    for call in calls {
        if let Some(seen) = seen.get_mut(call.flow as usize) {
            *seen = true;
        }
    }
    let found = seen.iter().take_while(|seen| **seen).count();
    if found as u64 != meta.flows as u64 {
        return foreign(format!("it names {} flows and has calls of {found}", meta.flows));
    }
    Ok(())
}

fn check_size(metadata: &ParquetMetaData) -> Result<(), Problem> {
    let rows = metadata.file_metadata().num_rows();
    let rows = u64::try_from(rows).map_err(|_| Problem::Damaged(format!("it names {rows} rows")))?;
    check_calls(rows)
}

fn check_calls(calls: u64) -> Result<(), Problem> {
    if calls > MOST_CALLS { Err(Problem::Calls(calls)) } else { Ok(()) }
}

fn check_compression(metadata: &ParquetMetaData) -> Result<(), Problem> {
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        match column.compression() {
            Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::LZ4_RAW
            | Compression::ZSTD(_) => {}
            other => {
                return Err(Problem::Compression {
                    column: column.column_path().string(),
                    found: compression_name(other),
                });
            }
        }
    }
    Ok(())
}

/// Its name in Parquet's specification.
fn compression_name(compression: Compression) -> String {
    let text = compression.to_string();
    text.split('(').next().unwrap_or(&text).to_owned()
}

fn identify(metadata: &FileMetaData) -> Result<Meta, Problem> {
    let pairs = metadata.key_value_metadata().map(Vec::as_slice).unwrap_or_default();
    let json = pairs.iter().find(|pair| pair.key == KEY).and_then(|pair| pair.value.as_deref());
    let json = json.ok_or_else(|| Problem::Foreign("it has no such key".to_owned()))?;
    let unreadable =
        |error: serde_json::Error| Problem::Foreign(format!("its metadata cannot be read: {error}"));
    let VersionOnly { version } = serde_json::from_str(json).map_err(unreadable)?;
    if version != VERSION {
        return Err(Problem::Version(version));
    }
    let file: MetaFile = serde_json::from_str(json).map_err(unreadable)?;
    let cc = Ops::by_name(&file.cc).ok_or_else(|| {
        let known = Ops::ALL.map(Ops::name).join(" or ");
        Problem::Foreign(format!("its congestion control is {:?}, not {known}", file.cc))
    })?;
    let MetaFile { kernel, hz, recorded, lost_records, missed_calls, flows, .. } = file;
    Ok(Meta { cc, kernel, hz, recorded, lost_records, missed_calls, flows })
}

fn check_columns(columns: &[Column], found: &Schema) -> Result<(), Problem> {
    // Whether a column is nullable does not matter, because many writers make every column so. It must not hold nulls.
    let kind = |field: &arrow_schema::Field| field.data_type().to_string();
    for column in columns {
        let expected = column.field();
        let problem =
            |found| Problem::Column { name: column.name().to_owned(), found, expected: kind(&expected) };
        match found.field_with_name(column.name()) {
            Err(_) => return Err(problem("missing".to_owned())),
            Ok(field) if field.data_type() != expected.data_type() => return Err(problem(kind(field))),
            Ok(_) => {}
        }
    }
    match found.fields().iter().find(|field| columns.iter().all(|column| column.name() != field.name())) {
        None => Ok(()),
        Some(field) => Err(Problem::Column {
            name: field.name().clone(),
            found: kind(field),
            expected: format!("no such column in version {VERSION}"),
        }),
    }
}

fn read_batch(
    meta: &Meta,
    columns: &[Column],
    batch: &RecordBatch,
    last: &mut Option<Last>,
    rows: &mut Vec<(u64, Call)>,
) -> Result<(), Problem> {
    let first = rows.len();
    let mut befores = vec![None; batch.num_rows()];
    rows.resize(first + batch.num_rows(), (0, Call::default()));
    for column in columns {
        // Presence and type were checked on the schema.
        let array = batch.column_by_name(column.name()).expect("the schema has it");
        column.read(array, &mut rows[first..], &mut befores)?;
    }
    for ((position, call), before) in rows[first..].iter_mut().zip(befores) {
        check_order(last, *position, call)?;
        let continues = match last {
            Some(last) if last.flow == call.flow => last.after,
            _ => [0; 13],
        };
        call.private_before = before.unwrap_or(continues);
        *last = Some(Last { flow: call.flow, position: *position, after: call.private_after });
        check(meta, *position, call)?;
    }
    Ok(())
}

/// The state after the previous row.
struct Last {
    flow: u32,
    position: u64,
    after: Private,
}

/// A row continues the state of the previous one, so their order matters.
fn check_order(last: &Option<Last>, position: u64, call: &Call) -> Result<(), Problem> {
    let wrong = |column: &str, found: u64, before: u64| {
        Err(Problem::Value {
            call: position,
            column: column.to_owned(),
            found: found.to_string(),
            expected: format!("rows ordered by flow and then by call; the row before has {before}"),
        })
    };
    match last {
        Some(last) if call.flow < last.flow => wrong("flow", call.flow.into(), last.flow.into()),
        Some(last) if call.flow == last.flow && position < last.position => {
            wrong("call", position, last.position)
        }
        _ => Ok(()),
    }
}

/// The calls by position. Each position must occur once.
fn in_order(mut rows: Vec<(u64, Call)>) -> Result<Vec<Call>, Problem> {
    rows.sort_by_key(|&(position, _)| position);
    for (expected, &(position, _)) in rows.iter().enumerate() {
        if position != expected as u64 {
            return Err(Problem::Value {
                call: expected as u64,
                column: "call".to_owned(),
                found: position.to_string(),
                expected: "each position once".to_owned(),
            });
        }
    }
    Ok(rows.into_iter().map(|(_, call)| call).collect())
}

/// The hook with this code.
fn hook(position: u64, code: u64) -> Result<Hook, Problem> {
    Hook::ALL.get(code as usize).copied().ok_or_else(|| Problem::Value {
        call: position,
        column: "hook".to_owned(),
        found: code.to_string(),
        expected: format!("a number below {}", Hook::ALL.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{ArrayRef, Int32Array, UInt8Array, UInt64Array};
    use proptest::prelude::*;
    use std::process;
    use std::sync::LazyLock;

    fn meta(cc: Ops, flows: u32) -> Meta {
        let recorded = Recorded { scenario: "loss".to_owned(), path: "20 Mbit/s, \"1 %\" loss".to_owned() };
        Meta { cc, kernel: "6.18.44".to_owned(), hz: 250, recorded, lost_records: 3, missed_calls: 4, flows }
    }

    /// A number that fits anything.
    fn number(seed: u64) -> u64 {
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31)
    }

    /// A call whose every field depends on `seed`, with private state of `cc`.
    fn call(cc: Ops, flow: u32, seed: u64) -> Call {
        let mut call = Call { flow, hook: Hook::ALL[(seed % 8) as usize], ..Call::default() };
        let mut row = (0, call);
        let mut before = None;
        for (index, column) in columns(cc).iter().enumerate() {
            // All but which call it is, and what the columns of the private state say.
            if !matches!(column.name(), "call" | "flow" | "hook") && !column.is_private() {
                column.set(Some(number(seed + index as u64)), &mut row, &mut before).unwrap();
            }
        }
        call = row.1;
        for (index, field) in cc.fields().iter().enumerate() {
            field.set(&mut call.private_before, number(seed ^ index as u64));
            field.set(&mut call.private_after, number(!seed ^ index as u64));
        }
        call
    }

    /// The private state of a recording that was recorded without gaps.
    fn connect(calls: &mut [Call]) {
        let mut last = std::collections::BTreeMap::new();
        for call in calls {
            call.private_before = last.insert(call.flow, call.private_after).unwrap_or_default();
        }
    }

    fn round_trip(meta: &Meta, calls: &[Call]) {
        let read = from_bytes(to_bytes(meta, calls).unwrap()).unwrap();
        assert_eq!(read.0, *meta);
        assert_eq!(read.1.len(), calls.len());
        for (position, (read, call)) in read.1.iter().zip(calls).enumerate() {
            assert_eq!(read, call, "call {position}");
        }
    }

    /// A file with the columns of a good one, changed.
    fn forged(cc: Ops, json: Option<&str>, change: impl FnOnce(&mut Vec<(String, ArrayRef)>)) -> Vec<u8> {
        let calls = [call(cc, 0, 1), call(cc, 0, 2)];
        let rows = [0, 1];
        let befores = befores(&calls, &rows);
        let columns = columns(cc);
        let mut arrays: Vec<_> = columns
            .iter()
            .map(|column| (column.name().to_owned(), column.array(&calls, &rows, &befores)))
            .collect();
        change(&mut arrays);
        let fields = arrays.iter().map(|(name, array)| {
            let nullable = name.starts_with("before_") || array.null_count() > 0;
            arrow_schema::Field::new(name, array.data_type().clone(), nullable)
        });
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let batch =
            RecordBatch::try_new(schema.clone(), arrays.into_iter().map(|(_, array)| array).collect())
                .unwrap();
        let mut writer = ArrowWriter::try_new(Vec::new(), schema, None).unwrap();
        writer.write(&batch).unwrap();
        if let Some(json) = json {
            writer.append_key_value_metadata(KeyValue::new(KEY.to_owned(), json.to_owned()));
        }
        writer.into_inner().unwrap()
    }

    const JSON: &str = r#"{"version":1,"cc":"bbr","kernel":"6.18.44","hz":250,
        "recorded":{"scenario":"loss","path":"20 Mbit/s"},"lost_records":0,"flows":1}"#;

    fn message(bytes: Vec<u8>) -> String {
        from_bytes(bytes).unwrap_err().to_string()
    }

    #[test]
    fn recording_reads_back_unchanged() {
        for cc in Ops::ALL {
            // Interleaved flows, states that continue and states that do not.
            let mut calls: Vec<Call> = (0..200).map(|seed| call(cc, (seed * 7 % 5) as u32, seed)).collect();
            round_trip(&meta(cc, 5), &calls);
            connect(&mut calls);
            round_trip(&meta(cc, 5), &calls);
            let gap = &mut calls[150].private_before;
            cc.fields()[0].set(gap, !cc.fields()[0].get(gap));
            round_trip(&meta(cc, 5), &calls);
        }
    }

    #[test]
    fn an_empty_recording_is_a_recording() {
        round_trip(&meta(Ops::Cubic, 0), &[]);
    }

    #[test]
    fn rows_beyond_one_batch_read_back() {
        let calls: Vec<Call> =
            (0..BATCH as u64 + 10).map(|seed| call(Ops::Cubic, seed as u32 & 1, seed)).collect();
        round_trip(&meta(Ops::Cubic, 2), &calls);
    }

    #[test]
    fn equal_recordings_give_equal_bytes() {
        let calls: Vec<Call> = (0..50).map(|seed| call(Ops::Bbr, 0, seed)).collect();
        let bytes = to_bytes(&meta(Ops::Bbr, 1), &calls).unwrap();
        assert_eq!(bytes, to_bytes(&meta(Ops::Bbr, 1), &calls).unwrap());
        let library = b"parquet-rs";
        assert!(!bytes.windows(library.len()).any(|window| window == library));
    }

    #[test]
    fn files_round_trip_errors_name_them() {
        let path = std::env::temp_dir().join(format!("fullpipe-{}.recording", process::id()));
        let calls = [call(Ops::Bbr, 0, 1)];
        std::fs::write(&path, to_bytes(&meta(Ops::Bbr, 1), &calls).unwrap()).unwrap();
        assert_eq!(read(&path).unwrap().1, calls);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let text = read(&path).unwrap_err().to_string();
        assert!(text.starts_with(&format!("{} is not a readable Parquet file", path.display())), "{text}");
        std::fs::write(&path, b"1\n2\n3\n").unwrap();
        let text = read(&path).unwrap_err().to_string();
        let what = "is a delivery trace in Mahimahi's format; expected a recording of kernel decisions";
        assert!(text.contains(what) && text.ends_with("path.deliveries"), "{text}");
        std::fs::write(&path, b"no Parquet\n").unwrap();
        let text = read(&path).unwrap_err().to_string();
        assert_eq!(text, format!("{} is not a recording: it is not a Parquet file", path.display()));
        std::fs::remove_file(&path).unwrap();
        let text = read(&path).unwrap_err().to_string();
        assert_eq!(text, format!("{} cannot be read: No such file or directory", path.display()));
    }

    #[test]
    fn foreign_calls_are_not_written() {
        let text = to_bytes(&meta(Ops::Bbr, 1), &[call(Ops::Bbr, 1, 1)]).unwrap_err().to_string();
        assert_eq!(text, "the recording: call 0 has 1 for flow, expected a number below 1");
        let mut foreign = call(Ops::Cubic, 0, 1);
        foreign.private_after[12] = 1;
        let text =
            to_bytes(&meta(Ops::Cubic, 1), &[call(Ops::Cubic, 0, 1), foreign]).unwrap_err().to_string();
        assert_eq!(
            text,
            "the recording: call 1 has bits for icsk_ca_priv, expected none outside the fields of cubic's private state"
        );
    }

    #[test]
    fn every_truncation_is_an_error() {
        let whole = to_bytes(&meta(Ops::Cubic, 1), &[call(Ops::Cubic, 0, 1)]).unwrap();
        for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
            let text = message(whole[..length].to_vec());
            assert!(text.contains("not a readable Parquet file"), "cut to {length} bytes: {text}");
        }
    }

    #[test]
    fn other_parquet_and_versions_are_refused() {
        let text = message(forged(Ops::Bbr, None, |_| {}));
        assert!(text.contains(
            "no recording of Fullpipe: it has no such key; expected the metadata key fullpipe.trace"
        ));
        let text = message(forged(Ops::Bbr, Some(r#"{"version":2,"anything":"else"}"#), |_| {}));
        assert!(text.contains("is a recording of version 2, expected version 1"), "{text}");
        let text = message(forged(Ops::Bbr, Some(r#"{"version":1}"#), |_| {}));
        assert!(text.contains("its metadata cannot be read: missing field `cc`"), "{text}");
        let text = message(forged(Ops::Bbr, Some(&JSON.replace("bbr", "vegas")), |_| {}));
        assert!(text.contains("its congestion control is \"vegas\", not bbr or cubic"), "{text}");
    }

    /// A number in the metadata must not decide how much work a replay is.
    #[test]
    fn impossible_flows_and_ticks_are_refused() {
        let with = |from: &str, to: &str| message(forged(Ops::Bbr, Some(&JSON.replace(from, to)), |_| {}));
        let text = with("\"flows\":1", "\"flows\":4000000000");
        assert!(text.contains("it names 4000000000 flows and has calls of 1"), "{text}");
        for hz in ["0", "4000000000"] {
            let text = with("\"hz\":250", &format!("\"hz\":{hz}"));
            assert!(text.contains(&format!("its kernel's tick rate is {hz} Hz, not 24 to 1200")), "{text}");
        }
    }

    #[test]
    fn absent_missed_calls_entry_means_zero() {
        let read = |json: &str| from_bytes(forged(Ops::Bbr, Some(json), |_| {})).unwrap().0.missed_calls;
        assert_eq!(read(JSON), 0);
        assert_eq!(read(&JSON.replace("\"flows\"", "\"missed_calls\":7,\"flows\"")), 7);
    }

    #[test]
    fn columns_must_match_version() {
        assert!(from_bytes(forged(Ops::Bbr, Some(JSON), |_| {})).is_ok());
        let text =
            message(forged(Ops::Bbr, Some(JSON), |arrays| arrays.retain(|(name, _)| name != "rs_delivered")));
        assert_eq!(text, "the recording: column rs_delivered is missing, expected Int32");
        let text = message(forged(Ops::Bbr, Some(JSON), |arrays| {
            let column = arrays.iter_mut().find(|(name, _)| name == "tcp_mstamp").unwrap();
            column.1 = Arc::new(Int32Array::from(vec![1, 2]));
        }));
        assert_eq!(text, "the recording: column tcp_mstamp is Int32, expected UInt64");
        let text = message(forged(Ops::Bbr, Some(JSON), |arrays| {
            let column = arrays.iter_mut().find(|(name, _)| name == "tcp_mstamp").unwrap();
            column.1 = Arc::new(UInt64Array::from(vec![Some(1), None]));
        }));
        assert_eq!(text, "the recording: call 1 has null for tcp_mstamp, expected a value");
        let text = message(forged(Ops::Bbr, Some(JSON), |arrays| {
            arrays.push(("colour".to_owned(), Arc::new(Int32Array::from(vec![1, 2]))));
        }));
        assert_eq!(text, "the recording: column colour is Int32, expected no such column in version 1");
        let text = message(forged(Ops::Cubic, Some(JSON), |_| {}));
        assert!(text.contains("column bbr_min_rtt_us is missing"), "{text}");
    }

    /// What other programs write of the same table: every column nullable, and compressed as they like.
    #[test]
    fn nullable_and_compressed_columns_are_read() {
        let calls = [call(Ops::Bbr, 0, 1), call(Ops::Bbr, 0, 2)];
        let rows = [0, 1];
        let befores = befores(&calls, &rows);
        let columns = columns(Ops::Bbr);
        let fields: Vec<_> = columns.iter().map(|column| column.field().with_nullable(true)).collect();
        let schema = Arc::new(Schema::new(fields));
        let arrays = columns.iter().map(|column| column.array(&calls, &rows, &befores)).collect();
        let batch = RecordBatch::try_new(schema.clone(), arrays).unwrap();
        for compression in [
            Compression::UNCOMPRESSED,
            Compression::SNAPPY,
            Compression::GZIP(Default::default()),
            Compression::LZ4_RAW,
            Compression::ZSTD(ZstdLevel::default()),
        ] {
            let properties = WriterProperties::builder()
                .set_compression(compression)
                .set_key_value_metadata(Some(vec![KeyValue::new(KEY.to_owned(), JSON.to_owned())]))
                .build();
            let mut writer = ArrowWriter::try_new(Vec::new(), schema.clone(), Some(properties)).unwrap();
            writer.write(&batch).unwrap();
            let read = from_bytes(writer.into_inner().unwrap());
            assert_eq!(read.unwrap_or_else(|error| panic!("{compression}: {error}")).1, calls);
        }
    }

    #[test]
    fn other_compressions_are_named() {
        assert_eq!(compression_name(Compression::BROTLI(Default::default())), "BROTLI");
        let problem = Problem::Compression { column: "hook".to_owned(), found: "BROTLI".to_owned() };
        let text = RecordingError::from(problem).to_string();
        assert!(
            text.starts_with("the recording: column hook is compressed with BROTLI, expected ZSTD"),
            "{text}"
        );
    }

    #[test]
    fn rows_out_of_order_are_refused() {
        let text = message(forged(Ops::Bbr, Some(JSON), |arrays| {
            arrays.iter_mut().find(|(column, _)| column == "call").unwrap().1 =
                Arc::new(UInt64Array::from(vec![1, 0]));
        }));
        assert!(
            text.contains("call 0 has 0 for call, expected rows ordered by flow and then by call"),
            "{text}"
        );
    }

    #[test]
    fn impossible_values_name_their_call() {
        let with = |name: &str, array: ArrayRef| {
            message(forged(Ops::Bbr, Some(JSON), |arrays| {
                arrays.iter_mut().find(|(column, _)| column == name).unwrap().1 = array;
            }))
        };
        let text = with("hook", Arc::new(UInt8Array::from(vec![1, 8])));
        assert_eq!(text, "the recording: call 1 has 8 for hook, expected a number below 8");
        let text = with("flow", Arc::new(arrow_array::UInt32Array::from(vec![0, 9])));
        assert_eq!(text, "the recording: call 1 has 9 for flow, expected a number below 1");
        let text = with("bbr_mode", Arc::new(UInt8Array::from(vec![0, 9])));
        assert_eq!(text, "the recording: call 1 has 9 for bbr_mode, expected a number of 3 bits");
        let text = with("call", Arc::new(UInt64Array::from(vec![0, 0])));
        assert_eq!(text, "the recording: call 1 has 0 for call, expected each position once");
        let text = with("call", Arc::new(UInt64Array::from(vec![0, u64::MAX])));
        assert!(text.contains("expected each position once"), "{text}");
        let text = with("before_bbr_mode", Arc::new(UInt8Array::from(vec![Some(0), None])));
        assert_eq!(text, "the recording: call 1 has null for before_bbr_mode, expected a value");
        let text = with("state_continues", Arc::new(arrow_array::BooleanArray::from(vec![false, true])));
        assert!(text.contains("call 1") && text.contains("expected null, for the state continues"), "{text}");
    }

    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let calls: Vec<Call> = (0..20).map(|seed| call(Ops::Cubic, 0, seed)).collect();
        to_bytes(&meta(Ops::Cubic, 1), &calls).unwrap()
    });

    proptest! {
        #[test]
        fn whatever_was_recorded_reads_back(
            bbr in any::<bool>(),
            gaps in any::<bool>(),
            seeds in prop::collection::vec((0..4u32, any::<u64>()), 0..60),
        ) {
            let cc = if bbr { Ops::Bbr } else { Ops::Cubic };
            // Numbered as they come, as the recorder does.
            let mut known = Vec::new();
            let mut number = |flow| {
                known.iter().position(|one| *one == flow).unwrap_or_else(|| {
                    known.push(flow);
                    known.len() - 1
                }) as u32
            };
            let mut calls: Vec<Call> =
                seeds.into_iter().map(|(flow, seed)| call(cc, number(flow), seed >> 8)).collect();
            if !gaps {
                connect(&mut calls);
            }
            round_trip(&meta(cc, known.len() as u32), &calls);
        }

        #[test]
        fn noise_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(from_bytes(bytes).is_err());
        }

        // A flipped bit may leave a readable file, but never a crash.
        #[test]
        fn damaged_file_never_crashes_reader(position in any::<prop::sample::Index>(), bit in 0..8_u32) {
            let mut bytes = WHOLE.clone();
            let position = position.index(bytes.len());
            bytes[position] ^= 1 << bit;
            let _ = from_bytes(bytes);
        }
    }
}
