//! Lists that Python shows, as JSON.

use fullpipe_cc::params::{CATALOGUE, ControllerInfo, Kind, ParameterInfo};
use fullpipe_emu::Check;
use serde_json::{Value, json};

/// The controllers: name, summary, source, kernel (name in Linux or null) and parameters of each.
pub(crate) fn controllers_json() -> String {
    Value::from_iter(CATALOGUE.iter().map(controller)).to_string()
}

/// What the kernel world needs: name, ok, found and mend of each check.
pub(crate) fn checks_json(checks: &[Check]) -> String {
    Value::from_iter(checks.iter().map(check)).to_string()
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
    })
}

fn check(check: &Check) -> Value {
    json!({"name": check.name, "ok": check.ok, "found": check.found, "mend": check.mend})
}
