//! Recorded decisions of the kernel: how they become a file, and what replaying one tells, as JSON.

use std::path::Path;

use fullpipe_cc::replay::{Call, Coverage, Difference, FlowReport, Moment, Ops, Replay, Tier, replay_flow};
use fullpipe_emu::tap::Recording;
use fullpipe_record::trace::{self, Meta, Recorded, TraceError};
use serde_json::{Value, json};

/// A summary as JSON, and the file.
pub(crate) fn encode(
    recording: &Recording,
    scenario: &str,
    ops: Ops,
) -> Result<(String, Vec<u8>), TraceError> {
    let meta = Meta {
        cc: ops,
        kernel: recording.run.provenance.kernel.clone(),
        hz: recording.hz,
        recorded: Recorded { scenario: scenario.to_owned(), path: recording.path.clone() },
        lost_records: 0,
        flows: recording.flows.len() as u32,
    };
    let file = trace::to_bytes(&meta, &recording.calls)?;
    let mut calls = vec![0u64; recording.flows.len()];
    for call in &recording.calls {
        calls[call.flow as usize] += 1;
    }
    let flows = recording.flows.iter().zip(calls).map(|(number, calls)| {
        let flow = &recording.run.flows[*number];
        json!({"label": flow.label, "controller": flow.controller, "calls": calls})
    });
    let summary = json!({
        "cc": ops.name(),
        "calls": recording.calls.len(),
        "lost": meta.lost_records,
        "flows": Value::from_iter(flows),
    });
    Ok((summary.to_string(), file))
}

/// Replays every flow of a trace: what it is, how much was replayed, the first difference with both states, the branches
/// reached.
pub(crate) fn replay_json(path: &Path) -> Result<String, TraceError> {
    let (meta, calls) = trace::read(path)?;
    let reports: Vec<FlowReport> =
        (0..meta.flows).map(|flow| replay_flow(meta.cc, meta.hz, &calls, flow)).collect();
    let difference = reports.iter().filter_map(|report| report.difference).min_by_key(|found| found.call);
    let tiers = |tier: fn(&FlowReport) -> &Tier| reports.iter().map(tier).collect::<Vec<_>>();
    let (filter, sampler) = (tiers(|report| &report.filter), tiers(|report| &report.sampler));
    let alone = filter.iter().chain(&sampler).map(|tier| tier.differences).sum::<u64>();
    let sum = |of: fn(&FlowReport) -> u64| reports.iter().map(of).sum::<u64>();
    let mut coverage = *Replay::new(meta.cc, meta.hz).coverage();
    reports.iter().for_each(|report| coverage.add(&report.coverage));
    let told = json!({
        "trace": path.display().to_string(),
        "cc": meta.cc.name(),
        "kernel": meta.kernel,
        "hz": meta.hz,
        "scenario": meta.recorded.scenario,
        "path": meta.recorded.path,
        "flows": meta.flows,
        "calls": calls.len(),
        "lost": meta.lost_records,
        "replayed": sum(|report| report.replayed),
        "skipped": sum(|report| report.skipped),
        "agrees": difference.is_none() && alone == 0 && meta.lost_records == 0,
        "difference": difference.map(|found| self::difference(&meta, &calls, &found)),
        "filter": tier_json(&filter),
        "sampler": tier_json(&sampler),
        "coverage": coverage_json(&coverage),
    });
    Ok(told.to_string())
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

fn tier_json(flows: &[&Tier]) -> Value {
    let first = flows.iter().filter_map(|tier| tier.first).min_by_key(|found| found.call);
    json!({
        "steps": flows.iter().map(|tier| tier.steps).sum::<u64>(),
        "differences": flows.iter().map(|tier| tier.differences).sum::<u64>(),
        "first": first.map(|found| found.to_string()),
    })
}

fn coverage_json(coverage: &Coverage) -> Value {
    let branch = |(branch, calls): (&fullpipe_cc::replay::Branch, u64)| json!({"branch": branch.name, "summary": branch.summary, "calls": calls});
    Value::from_iter(coverage.iter().map(branch))
}
