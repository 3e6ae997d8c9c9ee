//! A run as one process tells it to another, as JSON: the world `quic` runs in a program of its own, which has no Parquet.

use fullpipe_cc::{CaState, Phase};

use crate::run::{FlowSeries, LinkSeries, Run};

/// Counts and rates from here on are no 64-bit integers of Parquet. `u64::MAX` is an absent one.
const MOST: u64 = i64::MAX as u64;

impl Run {
    /// The run with its time series, for [`Run::told`].
    #[expect(clippy::missing_panics_doc, reason = "a run holds nothing that JSON cannot say")]
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("a run is plain data")
    }

    /// What another process has told by [`Run::to_json`]. The run is valid: its tables can be made.
    ///
    /// # Errors
    /// Says what is wrong, if it is no run, or if its time series are none: columns of different lengths, time that goes back, a
    /// phase that does not exist, a count beyond 2^63.
    pub fn told(json: &[u8]) -> Result<Run, String> {
        let run: Run = serde_json::from_slice(json).map_err(|error| error.to_string())?;
        let flows = run.flows.iter().map(|flow| (&flow.label, of_flow(&flow.series)));
        let links = run.links.iter().map(|link| (&link.name, of_link(&link.series)));
        match flows.chain(links).find_map(|(name, wrong)| Some((name, wrong?))) {
            Some((name, wrong)) => Err(format!("the series of {name:?}: {wrong}")),
            None if longest_column(&run) > i32::MAX as usize => Err("its names are too long".to_owned()),
            None => Ok(run),
        }
    }
}

/// Bytes of the longest column of names, which stand in each row: Arrow counts them in 31 bits.
fn longest_column(run: &Run) -> usize {
    let mut columns = [0_usize; 3];
    let mut add = |column: usize, name: &str, rows: usize| {
        columns[column] = columns[column].saturating_add(name.len().saturating_mul(rows));
    };
    for flow in &run.flows {
        add(0, &flow.label, flow.series.time_ns.len());
        add(1, &flow.controller, flow.series.time_ns.len());
    }
    run.links.iter().for_each(|link| add(2, &link.name, link.series.time_ns.len()));
    columns.into_iter().max().unwrap_or(0)
}

/// What is wrong with a flow's series.
fn of_flow(series: &FlowSeries) -> Option<&'static str> {
    let FlowSeries { time_ns, pacing_bps, delivery_bps, bandwidth_bps, delivered_bytes, retransmits, .. } =
        series;
    if !series.is_even() {
        return Some("its columns differ in length");
    }
    if !time_ns.is_sorted() || !delivered_bytes.is_sorted() {
        return Some("time or delivered bytes go back");
    }
    let may_be_absent = [pacing_bps, delivery_bps, bandwidth_bps, retransmits];
    if may_be_absent.iter().any(|column| column.iter().any(|&value| value > MOST && value != u64::MAX))
        || delivered_bytes.iter().any(|&value| value > MOST)
    {
        return Some("a value is beyond 2^63");
    }
    let exists =
        |codes: &[u8], known: usize| codes.iter().all(|&code| code == u8::MAX || usize::from(code) < known);
    if !exists(&series.phase, Phase::ALL.len()) || !exists(&series.ca_state, CaState::ALL.len()) {
        return Some("there is no such phase or recovery state");
    }
    None
}

/// What is wrong with a link's series.
fn of_link(series: &LinkSeries) -> Option<&'static str> {
    let LinkSeries { queue_bytes, dropped_packets, early_packets, marked_packets, .. } = series;
    if !series.is_even() {
        return Some("its columns differ in length");
    }
    let counts = [queue_bytes, dropped_packets, early_packets, marked_packets];
    counts.iter().any(|column| column.iter().any(|&value| value > MOST)).then_some("a value is beyond 2^63")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::example;
    use serde_json::{Value, json};

    #[test]
    fn a_run_is_told_whole() {
        let run = example();
        assert_eq!(Run::told(&run.to_json()), Ok(run));
    }

    /// Puts a value into an entry of the example's JSON, and asks what is wrong with that.
    fn with(place: &str, value: Value) -> String {
        let mut json: Value = serde_json::from_slice(&example().to_json()).unwrap();
        *json.pointer_mut(place).expect(place) = value;
        Run::told(json.to_string().as_bytes()).unwrap_err()
    }

    #[test]
    fn what_makes_no_table_is_refused() {
        let beyond = json!(1_u64 << 63);
        for (place, value, said) in [
            ("/flows/0/series/cwnd", json!([]), "its columns differ in length"),
            ("/links/0/series/time_ns", json!([]), "its columns differ in length"),
            ("/flows/0/series/time_ns/0", json!(u64::MAX), "time or delivered bytes go back"),
            ("/flows/0/series/delivered_bytes/0", json!(u64::MAX), "time or delivered bytes go back"),
            ("/flows/0/series/pacing_bps/0", beyond.clone(), "a value is beyond 2^63"),
            ("/flows/0/series/retransmits/0", beyond.clone(), "a value is beyond 2^63"),
            ("/links/0/series/queue_bytes/0", beyond, "a value is beyond 2^63"),
            ("/flows/0/series/phase/0", json!(254), "there is no such phase or recovery state"),
            ("/flows/0/series/ca_state/0", json!(254), "there is no such phase or recovery state"),
            ("/flows/0/series/phase/0", json!(256), "expected u8"),
            ("/flows", json!("none"), "expected a sequence"),
        ] {
            let message = with(place, value);
            assert!(message.contains(said), "{place}: {message}");
        }
    }

    #[test]
    fn names_that_fill_no_column_are_refused() {
        let mut run = example();
        run.links[0].series = Default::default();
        let rows = 1 << 16;
        run.links[0].name = "x".repeat((i32::MAX as usize >> 16) + 1);
        let series = &mut run.links[0].series;
        for column in [
            &mut series.time_ns,
            &mut series.queue_bytes,
            &mut series.queue_delay_ns,
            &mut series.dropped_packets,
            &mut series.early_packets,
            &mut series.marked_packets,
        ] {
            *column = vec![0; rows];
        }
        assert_eq!(Run::told(&run.to_json()), Err("its names are too long".to_owned()));
    }

    #[test]
    fn tables_are_made_of_any_run_that_is_told() {
        let mut run = example();
        run.flows[0].series.retransmits[0] = u64::MAX;
        run.links[0].totals.early_packets = u64::MAX;
        run.links[0].totals.marked_packets = u64::MAX;
        let run = Run::told(&run.to_json()).unwrap();
        #[cfg(feature = "parquet")]
        for table in [crate::table::Table::Flows, crate::table::Table::Links] {
            assert!(!crate::parquet::to_bytes(&run, table).is_empty());
        }
        assert_eq!(run.flows[0].series.retransmits[0], u64::MAX);
    }
}
