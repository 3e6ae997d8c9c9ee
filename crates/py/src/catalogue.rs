//! Lists and measures that Python shows, as JSON.

use fullpipe_capture::{Capture, Transfer};
use fullpipe_cc::parameter::Kind;
use fullpipe_cc::{CATALOGUE, ControllerInfo, ParameterInfo};
use fullpipe_path::{DISCIPLINES, DisciplineInfo, SettingInfo, Unit};
use fullpipe_scenario::queue;
use serde_json::{Value, json};

/// The controllers: name, summary, source, kernel (name in Linux or null) and parameters of each. The profile of a parameter is that
/// of the controller to which it belongs, or null.
pub(crate) fn controllers_json() -> String {
    Value::from_iter(CATALOGUE.iter().map(controller)).to_string()
}

/// The queue disciplines: name, summary, source, kernel (name in Linux or null) and settings of each.
pub(crate) fn queues_json() -> String {
    Value::from_iter(DISCIPLINES.iter().map(discipline)).to_string()
}

/// What a capture holds, besides its transfers.
pub(crate) fn capture_json(capture: &Capture) -> String {
    let Capture { transfers: _, packets, segments, duration_ns, skipped, cut_off, notes } = capture;
    json!({
        "packets": packets,
        "segments": segments,
        "duration_ns": duration_ns,
        "skipped": skipped,
        "cut_off": cut_off,
        "notes": notes,
    })
    .to_string()
}

/// Flow, start, pause and bytes of each transfer.
pub(crate) fn transfer_columns(transfers: &[Transfer]) -> Vec<u8> {
    let numbers = |transfer: &Transfer| [transfer.flow, transfer.start_ns, transfer.pause_ns, transfer.bytes];
    transfers.iter().flat_map(numbers).flat_map(u64::to_ne_bytes).collect()
}

fn controller(info: &ControllerInfo) -> Value {
    json!({
        "name": info.name,
        "summary": info.summary,
        "source": info.source,
        "kernel": info.linux_name,
        "parameters": Value::from_iter(info.parameters.iter().map(parameter)),
    })
}

fn parameter(info: &ParameterInfo) -> Value {
    let kind = match info.kind {
        Kind::Whole => "whole",
        Kind::Switch => "switch",
        Kind::Fraction { .. } => "fraction",
        Kind::Choice(names) => return choice(info, names),
    };
    json!({
        "name": info.name,
        "summary": info.summary,
        "kind": kind,
        "default": info.default.as_f64(),
        "min": info.min.as_f64(),
        "max": info.max.as_f64(),
        "unit": info.unit,
        "source": info.source,
        "profile": info.profile,
    })
}

/// One that takes a name: it has `choices` instead of a range.
fn choice(info: &ParameterInfo, names: &[&str]) -> Value {
    json!({
        "name": info.name,
        "summary": info.summary,
        "kind": "choice",
        "default": names[info.default.as_f64() as usize],
        "choices": names,
        "unit": info.unit,
        "source": info.source,
        "profile": info.profile,
    })
}

fn discipline(info: &DisciplineInfo) -> Value {
    json!({
        "name": info.name,
        "summary": info.summary,
        "source": info.source,
        "kernel": info.linux_name,
        "settings": Value::from_iter(info.settings.iter().map(setting)),
    })
}

/// Values are texts, as scenarios have them.
fn setting(info: &SettingInfo) -> Value {
    let kind = match info.unit {
        Unit::Time => "time",
        Unit::Bytes => "bytes",
        Unit::Count => "count",
        Unit::Share => "share",
        Unit::Switch => "switch",
    };
    json!({
        "name": info.name,
        "summary": info.summary,
        "kind": kind,
        "default": queue::value(info.unit, info.default),
        "min": queue::value(info.unit, *info.range.start()),
        "max": queue::value(info.unit, *info.range.end()),
    })
}
