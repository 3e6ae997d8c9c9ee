//! Recordings of kernel decisions: the result of a replay as JSON.

use std::path::Path;

use fullpipe_record::recording::{self, Meta, RecordingError};
use fullpipe_replay::{Branch, Call, Coverage, Difference, Moment, Replay, Tier, replay_all};
use serde_json::{Value, json};

/// Replays every flow of a recording: its metadata, how many calls were replayed and how many of them agree only a
/// jiffy later, the first difference with both states, and the branches reached.
pub(crate) fn replay_json(path: &Path) -> Result<String, RecordingError> {
    let (meta, calls) = recording::read(path)?;
    let all = replay_all(meta.cc, meta.hz, meta.flows, &calls);
    let alone = all.filter.differences + all.sampler.differences;
    let whole = meta.lost_records == 0 && meta.missed_calls == 0;
    let report = json!({
        "recording": path.display().to_string(),
        "cc": meta.cc.name(),
        "kernel": meta.kernel,
        "hz": meta.hz,
        "scenario": meta.recorded.scenario,
        "path": meta.recorded.path,
        "flows": meta.flows,
        "calls": calls.len(),
        "lost": meta.lost_records,
        "missed_calls": meta.missed_calls,
        "whole": whole,
        "replayed": all.replayed,
        "late": all.late,
        "skipped": all.skipped,
        "agrees": whole && all.difference.is_none() && alone == 0,
        // What follows a missing call differs because of it, which says nothing about the controller.
        "difference": all.difference.filter(|_| whole).map(|found| self::difference(&meta, &calls, &found)),
        "filter": tier_json(&all.filter),
        "sampler": tier_json(&all.sampler),
        "coverage": coverage_json(&all.coverage),
    });
    Ok(report.to_string())
}

/// The difference with our state and the kernel's after that call.
fn difference(meta: &Meta, calls: &[Call], found: &Difference) -> Value {
    let mut replay = Replay::new(meta.cc, meta.hz);
    let of_flow = calls.iter().enumerate().filter(|(_, call)| call.flow == found.flow);
    let parted = of_flow
        .map(|(index, call)| (index as u64, call))
        .find(|(index, call)| replay.step(*index, call).is_err());
    let state = parted.into_iter().flat_map(|(_, call)| replay.side_by_side(call));
    json!({
        "call": found.call,
        "flow": found.flow,
        "hook": found.hook.name(),
        "moment": match found.moment {
            Moment::Gap => "gap",
            Moment::Before => "before",
            Moment::After => "after",
            Moment::Record => "record",
        },
        "field": found.field,
        "ours": found.ours,
        "kernel": found.kernel,
        "sentence": found.to_string(),
        "state": Value::from_iter(
            state.map(|row| json!({"field": row.field, "ours": row.ours, "kernel": row.kernel})),
        ),
    })
}

fn tier_json(tier: &Tier) -> Value {
    json!({
        "steps": tier.steps,
        "differences": tier.differences,
        "first": tier.first.map(|found| found.to_string()),
    })
}

fn coverage_json(coverage: &Coverage) -> Value {
    let rows = coverage.iter().map(|(branch, calls)| {
        let Branch { name, summary } = branch;
        json!({"branch": name, "summary": summary, "calls": calls})
    });
    Value::from_iter(rows)
}
