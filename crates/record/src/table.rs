//! The time series of a run as Arrow columns, one row for each flow (or link) and sample, flows in the order of the run.
//!
//! A column's name ends in its unit. Counts are signed, so that a difference of two samples does not wrap. Absent values
//! are null.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};

use fullpipe_cc::{CaState, Limits, Phase};

use crate::run::{Run, present};
use crate::seen::UNKNOWN;

/// Which table of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Samples of the flows.
    Flows,
    /// Samples of the links.
    Links,
}

impl Table {
    /// The name in files.
    pub const fn name(self) -> &'static str {
        match self {
            Table::Flows => "flows",
            Table::Links => "links",
        }
    }

    /// Names and types of the columns. That of links may have two more.
    pub fn schema(self) -> Arc<Schema> {
        let required = |name: &str, kind: &DataType| Field::new(name, kind.clone(), false);
        let nullable = |name: &str, kind: &DataType| Field::new(name, kind.clone(), true);
        let (count, real, text) = (&DataType::Int64, &DataType::Float64, &DataType::Utf8);
        let fields = match self {
            Table::Flows => vec![
                required("time_s", real),
                required("flow", text),
                required("controller", text),
                nullable("cwnd_segments", count),
                nullable("ssthresh_segments", count), // null while infinite
                nullable("pacing_bps", count),        // payload bits; null when unpaced
                nullable("inflight_segments", count),
                nullable("srtt_ms", real),
                nullable("min_rtt_ms", real),
                nullable("delivery_bps", count),
                nullable("bandwidth_bps", count), // null when the controller estimates none
                nullable("goodput_bps", real),    // since the flow's previous sample; null at its first
                required("delivered_bytes", count),
                required("retransmits", count),
                nullable("phase", text),
                nullable("ca_state", text),
            ],
            Table::Links => vec![
                required("time_s", real),
                required("link", text),
                required("queue_bytes", count),
                nullable("queue_delay_ms", real),
                required("dropped_packets", count),
            ],
        };
        Arc::new(Schema::new(fields))
    }

    /// The columns of the table of `run`. Where a queue discipline marked packets or dropped some early, that of links has two more
    /// behind the others; other files are as they were before there were disciplines. Where nobody can tell a flow's
    /// retransmissions, their column in that of flows may be null.
    fn schema_of(self, run: &Run) -> Arc<Schema> {
        if self == Table::Flows {
            let unknown = run.flows.iter().any(|flow| flow.series.retransmits.contains(&UNKNOWN));
            return if unknown { nullable(&self.schema(), "retransmits") } else { self.schema() };
        }
        if !run.links.iter().any(|link| link.totals.has_signals()) {
            return self.schema();
        }
        let signals = ["early_packets", "marked_packets"];
        let mut fields = self.schema().fields().to_vec();
        fields.extend(signals.map(|name| Arc::new(Field::new(name, DataType::Int64, false))));
        Arc::new(Schema::new(fields))
    }

    /// The table of `run`.
    ///
    /// # Panics
    /// If `run` is invalid: columns of different lengths, a counter that falls, a phase that does not exist.
    pub fn of(self, run: &Run) -> RecordBatch {
        let columns = match self {
            Table::Flows => flow_columns(run),
            Table::Links => link_columns(run),
        };
        let schema = self.schema_of(run);
        let columns = columns.into_iter().take(schema.fields().len()).collect();
        RecordBatch::try_new(schema, columns).expect("the columns are those of the schema")
    }
}

/// The schema with a column that may be null.
fn nullable(schema: &Schema, name: &str) -> Arc<Schema> {
    let fields = schema.fields().iter().map(|field| {
        if field.name() == name {
            Arc::new(field.as_ref().clone().with_nullable(true))
        } else {
            Arc::clone(field)
        }
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

fn flow_columns(run: &Run) -> Vec<ArrayRef> {
    let flows = || run.flows.iter();
    let series = || run.flows.iter().map(|flow| &flow.series);
    let phases = Phase::ALL.map(Phase::name);
    let states = CaState::ALL.map(CaState::name);
    vec![
        reals(series().flat_map(|s| s.time_ns.iter().map(|&t| Some(t as f64 / 1e9)))),
        texts(flows().flat_map(|f| vec![Some(f.label.as_str()); f.series.len()])),
        texts(flows().flat_map(|f| vec![Some(f.controller.as_str()); f.series.len()])),
        counts(series().flat_map(|s| s.cwnd.iter().map(|&v| present_u32(v)))),
        counts(series().flat_map(|s| s.ssthresh.iter().map(|&v| finite_ssthresh(v).map(u64::from)))),
        counts(series().flat_map(|s| s.pacing_bps.iter().map(|&v| present(v)))),
        counts(series().flat_map(|s| s.inflight.iter().map(|&v| present_u32(v)))),
        reals(series().flat_map(|s| s.srtt_ns.iter().map(|&v| millis(v)))),
        reals(series().flat_map(|s| s.min_rtt_ns.iter().map(|&v| millis(v)))),
        counts(series().flat_map(|s| s.delivery_bps.iter().map(|&v| present(v)))),
        counts(series().flat_map(|s| s.bandwidth_bps.iter().map(|&v| present(v)))),
        reals(series().flat_map(|s| s.goodputs_bps(0))),
        counts(series().flat_map(|s| s.delivered_bytes.iter().map(|&v| Some(v)))),
        counts(series().flat_map(|s| s.retransmits.iter().map(|&v| present(v)))),
        texts(series().flat_map(|s| s.phase.iter().map(|&code| named(&phases, code, "phase")))),
        texts(series().flat_map(|s| s.ca_state.iter().map(|&code| named(&states, code, "recovery state")))),
    ]
}

fn link_columns(run: &Run) -> Vec<ArrayRef> {
    let series = || run.links.iter().map(|link| &link.series);
    vec![
        reals(series().flat_map(|s| s.time_ns.iter().map(|&t| Some(t as f64 / 1e9)))),
        texts(run.links.iter().flat_map(|l| vec![Some(l.name.as_str()); l.series.len()])),
        counts(series().flat_map(|s| s.queue_bytes.iter().map(|&v| Some(v)))),
        reals(series().flat_map(|s| s.queue_delay_ns.iter().map(|&v| millis(v)))),
        counts(series().flat_map(|s| s.dropped_packets.iter().map(|&v| Some(v)))),
        counts(series().flat_map(|s| s.early_packets.iter().map(|&v| Some(v)))),
        counts(series().flat_map(|s| s.marked_packets.iter().map(|&v| Some(v)))),
    ]
}

fn counts(values: impl Iterator<Item = Option<u64>>) -> ArrayRef {
    let signed = values.map(|v| v.map(|v| i64::try_from(v).expect("counts and rates are below 2^63")));
    Arc::new(signed.collect::<Int64Array>())
}

fn reals(values: impl Iterator<Item = Option<f64>>) -> ArrayRef {
    Arc::new(values.collect::<Float64Array>())
}

fn texts<'a>(values: impl Iterator<Item = Option<&'a str>>) -> ArrayRef {
    Arc::new(values.collect::<StringArray>())
}

fn present_u32(value: u32) -> Option<u64> {
    (value != u32::MAX).then_some(u64::from(value))
}

fn millis(nanos: u64) -> Option<f64> {
    present(nanos).map(|nanos| nanos as f64 / 1e6)
}

fn named(names: &[&'static str], code: u8, what: &str) -> Option<&'static str> {
    (code != u8::MAX).then(|| {
        *names.get(usize::from(code)).unwrap_or_else(|| panic!("there is no {what} with code {code}"))
    })
}

/// A slow-start threshold in segments, or `None` while it is infinite.
fn finite_ssthresh(segments: u32) -> Option<u32> {
    (segments < Limits::INFINITE).then_some(segments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;
    use arrow_array::Array;
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};

    fn count_column(table: &RecordBatch, name: &str) -> Vec<Option<i64>> {
        table[name].as_primitive::<Int64Type>().iter().collect()
    }

    fn real_column(table: &RecordBatch, name: &str) -> Vec<Option<f64>> {
        table[name].as_primitive::<Float64Type>().iter().collect()
    }

    fn text_column(table: &RecordBatch, name: &str) -> Vec<Option<String>> {
        table[name].as_string::<i32>().iter().map(|text| text.map(String::from)).collect()
    }

    #[test]
    fn unknown_retransmissions_are_null() {
        let mut run = example();
        run.flows[1].series.retransmits[0] = UNKNOWN;
        let table = Table::Flows.of(&run);
        let column = table.column_by_name("retransmits").unwrap();
        assert_eq!((column.null_count(), column.len()), (1, 3));
    }

    #[test]
    fn flows_have_one_row_per_sample() {
        let table = Table::Flows.of(&example());
        assert_eq!(table.num_rows(), 3);
        assert_eq!(real_column(&table, "time_s"), [Some(0.0), Some(0.5), Some(0.5)]);
        assert_eq!(text_column(&table, "flow"), ["a", "a", "b"].map(|label| Some(label.into())));
        assert_eq!(
            text_column(&table, "phase"),
            [Some("startup"), Some("drain"), None].map(|p| p.map(String::from))
        );
        assert_eq!(text_column(&table, "ca_state")[1].as_deref(), Some("recovery"));
        assert_eq!(real_column(&table, "srtt_ms"), [None, Some(40.5), Some(50.0)]);
    }

    #[test]
    fn absent_and_infinite_values_are_null() {
        let table = Table::Flows.of(&example());
        assert_eq!(count_column(&table, "ssthresh_segments"), [None, Some(20), None]);
        assert_eq!(count_column(&table, "pacing_bps"), [Some(1_000_000), Some(2_000_000), None]);
        assert_eq!(count_column(&table, "bandwidth_bps")[2], None);
    }

    #[test]
    fn goodput_is_between_samples_of_flow() {
        let table = Table::Flows.of(&example());
        assert_eq!(real_column(&table, "goodput_bps"), [None, Some(800_000.0), None]);
    }

    #[test]
    fn links_become_one_row_a_sample() {
        let table = Table::Links.of(&example());
        assert_eq!(table.num_rows(), 2);
        assert_eq!(real_column(&table, "queue_delay_ms"), [Some(0.0), Some(1.2)]);
        assert_eq!(count_column(&table, "dropped_packets"), [Some(0), Some(3)]);
    }

    #[test]
    fn mark_and_drop_columns_are_optional() {
        let mut run = example();
        assert_eq!(Table::Links.of(&run).num_columns(), 5);
        run.links[0].totals.marked_packets = 7;
        run.links[0].series.marked_packets = vec![0, 7];
        run.links[0].series.early_packets = vec![1, 2];
        let table = Table::Links.of(&run);
        assert_eq!(count_column(&table, "marked_packets"), [Some(0), Some(7)]);
        assert_eq!(count_column(&table, "early_packets"), [Some(1), Some(2)]);
        assert_eq!(count_column(&table, "dropped_packets"), [Some(0), Some(3)]);
        assert_eq!(Table::Flows.of(&run), Table::Flows.of(&example()));
    }

    #[test]
    fn run_without_series_gives_empty_tables() {
        let run = Run { flows: Vec::new(), links: Vec::new(), ..example() };
        for table in [Table::Flows, Table::Links] {
            assert_eq!(table.of(&run).num_rows(), 0);
            assert_eq!(table.of(&run).num_columns(), table.schema().fields().len());
        }
    }

    #[test]
    #[should_panic(expected = "differ in length")]
    fn short_column_is_broken_record() {
        let mut run = example();
        run.flows[0].series.cwnd.pop();
        Table::Flows.of(&run);
    }

    #[test]
    fn required_columns_hold_no_null() {
        let table = Table::Flows.of(&example());
        for (field, column) in table.schema().fields().iter().zip(table.columns()) {
            assert!(field.is_nullable() || column.null_count() == 0, "{}", field.name());
        }
    }
}
