//! What Python calls of the kernel world and of Linux's own queues. Only Linux has them; `no_kernel.rs` stands in elsewhere.

use std::fs::File;

use fullpipe_emu::Check;
use fullpipe_emu::probe::{Measured, Trip};
use fullpipe_export::Header;
use fullpipe_kernel::recorder::Recording;
use fullpipe_kernel::{KernelError, Logs as KernelLogs};
use fullpipe_record::WorldName;
use fullpipe_record::recording::{self, Meta, Recorded, RecordingError};
use fullpipe_replay::Ops;
use fullpipe_scenario::{ControllerChoice, Spec};
use fullpipe_sim::log_header;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::{Value, json};

use crate::errors::{ScenarioError, recording_error, scenario_error, with_parts};
use crate::logs::{Logged, Logs, os_error};
use crate::{Answer, PyAnswer, read_spec};

/// Runs a spec over Linux TCP. Only in a fresh single-threaded process of its own: it enters namespaces. With `logs`, its packets
/// are logged.
#[pyfunction]
#[pyo3(signature = (spec_json, seed, logs=None))]
pub(crate) fn kernel_run<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    logs: Option<Bound<'py, Logs>>,
) -> PyResult<PyAnswer<'py>> {
    over_linux(py, spec_json, seed, WorldName::Kernel, logs)
}

/// The same with Linux's own queue in place of the path's first link.
#[pyfunction]
#[pyo3(signature = (spec_json, seed, logs=None))]
pub(crate) fn qdisc_run<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    logs: Option<Bound<'py, Logs>>,
) -> PyResult<PyAnswer<'py>> {
    over_linux(py, spec_json, seed, WorldName::Qdisc, logs)
}

fn over_linux<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    world: WorldName,
    logs: Option<Bound<'py, Logs>>,
) -> PyResult<PyAnswer<'py>> {
    fullpipe_emu::die_with_parent();
    let spec = read_spec(py, spec_json)?;
    let behind_qdisc = world == WorldName::Qdisc;
    let files = logs.as_ref().map(|logs| files_of(logs.get(), &spec, seed, world)).transpose()?;
    let answer = py.detach(move || {
        let (run, logged) = match files {
            Some(files) => fullpipe_kernel::run_logged(&spec, seed, behind_qdisc, files)?,
            None if behind_qdisc => (fullpipe_kernel::run_behind_qdisc(&spec, seed)?, Default::default()),
            None => (fullpipe_kernel::run(&spec, seed)?, Default::default()),
        };
        Ok((Answer::of(run, &spec), logged))
    });
    let (answer, logged) = answer.map_err(|error: KernelError| match &error {
        KernelError::Log(error) => os_error(error),
        _ => world_error(py, &error),
    })?;
    if let Some(logs) = logs {
        logs.get().note(Logged { full_at: logged.full_at, missed: logged.missed });
    }
    Ok(answer.into_python(py))
}

/// Why Linux's own queue cannot take the place of a spec's first link, whatever this machine has.
#[pyfunction]
pub(crate) fn qdisc_refuses(py: Python<'_>, spec_json: &str) -> PyResult<Option<String>> {
    let spec = read_spec(py, spec_json)?;
    let refused = fullpipe_kernel::check_behind_qdisc(&spec).err();
    Ok(refused.map(|error| format!("{error}; {}", error.fix())))
}

/// Runs a spec over Linux TCP and records the calls of an algorithm: summary JSON and the recording. Only in a fresh
/// single-threaded process of its own, as root.
#[pyfunction]
pub(crate) fn kernel_record<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    algorithm: &str,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    fullpipe_emu::die_with_parent();
    let spec = read_spec(py, spec_json)?;
    let ops = Ops::by_name(algorithm).ok_or_else(|| unknown_algorithm(py, algorithm))?;
    let recording = py.detach(|| fullpipe_kernel::record(&spec, seed, ops));
    let recording = recording.map_err(|error| world_error(py, &error))?;
    let encoded = py.detach(|| encode(&recording, &spec.name, ops));
    let (summary, file) = encoded.map_err(|error| recording_error(&error))?;
    Ok((summary, PyBytes::new(py, &file)))
}

/// Sends numbered datagrams over a spec's forward path and measures what became of them: the measures as JSON, and of each
/// datagram four 64-bit integers in this machine's order. Only in a fresh single-threaded process of its own.
#[pyfunction]
pub(crate) fn kernel_probe<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    probe_json: &str,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    fullpipe_emu::die_with_parent();
    let spec = read_spec(py, spec_json)?;
    let probe =
        serde_json::from_str(probe_json).map_err(|error| PyValueError::new_err(format!("probe: {error}")))?;
    let outcome = py.detach(|| fullpipe_emu::probe(&spec, seed, &probe));
    let (measured, trips) = outcome.map_err(|error| world_error(py, &error.into()))?;
    Ok((measured_json(&measured), PyBytes::new(py, &trip_columns(&trips))))
}

/// Runs a spec whose flows have one controller of ours over Linux TCP, and repeats each of its calls: what came of it, as JSON.
/// Only in a fresh single-threaded process of its own, as root.
#[pyfunction]
pub(crate) fn kernel_prove(py: Python<'_>, spec_json: &str, seed: u64) -> PyResult<String> {
    fullpipe_emu::die_with_parent();
    let spec = read_spec(py, spec_json)?;
    let proof = py.detach(|| fullpipe_kernel::prove(&spec, seed));
    proof.map(|(_, proof)| proof.to_json()).map_err(|error| world_error(py, &error))
}

/// Registers a controller of ours with this kernel, to stay: what it is, as JSON.
#[pyfunction]
pub(crate) fn kernel_load(
    py: Python<'_>,
    controller: &str,
    name: &str,
    as_default: bool,
) -> PyResult<String> {
    let choice = ControllerChoice::parse(controller).map_err(|error| scenario_error(py, &error))?;
    let loaded = py.detach(|| fullpipe_kernel::congestion::load(&choice, name, as_default));
    loaded.map_err(|error| world_error(py, &error))
}

/// The same for a controller of the user's own: its object, that file's name and digest.
#[pyfunction]
pub(crate) fn kernel_load_own(
    py: Python<'_>,
    object: &[u8],
    file_name: &str,
    sha256: &str,
    name: &str,
    as_default: bool,
) -> PyResult<String> {
    // Without its parameters, which only `kernel_load` writes, ours would run with zeros.
    if let Some(ours) = fullpipe_bpf::objects::Object::ALL.iter().find(|one| one.sha256 == sha256) {
        let name = ours.controller;
        let message = format!("{file_name} is Fullpipe's own object of {name}; load {name} instead");
        return Err(crate::errors::WorldError::new_err(message));
    }
    let loaded =
        py.detach(|| fullpipe_kernel::congestion::load_own(object, file_name, sha256, name, as_default));
    loaded.map_err(|error| world_error(py, &error))
}

/// Removes what `kernel_load` registered: JSON with the connections that still have it, and the default that was put back.
#[pyfunction]
pub(crate) fn kernel_unload(py: Python<'_>, name: &str) -> PyResult<String> {
    py.detach(|| fullpipe_kernel::congestion::unload(name)).map_err(|error| world_error(py, &error))
}

/// JSON list of what is registered, or of one name: counters, and the model of each connection.
#[pyfunction]
#[pyo3(signature = (name=None))]
pub(crate) fn kernel_status(py: Python<'_>, name: Option<&str>) -> PyResult<String> {
    py.detach(|| fullpipe_kernel::congestion::status(name)).map_err(|error| world_error(py, &error))
}

/// The controllers that can be registered with a kernel, as a scenario chooses them.
#[pyfunction]
pub(crate) fn kernel_loadable() -> Vec<&'static str> {
    fullpipe_kernel::congestion::loadable()
}

/// JSON list of what the kernel world needs: name, ok, found, fix.
#[pyfunction]
pub(crate) fn kernel_doctor(py: Python<'_>) -> String {
    checks_json(&py.detach(fullpipe_kernel::doctor))
}

/// JSON list of what the world behind Linux's own queues needs besides.
#[pyfunction]
pub(crate) fn qdisc_doctor(py: Python<'_>) -> String {
    checks_json(&py.detach(|| vec![fullpipe_emu::linux_queues()]))
}

/// Runs a command behind the spec's path; returns its exit code. Only in a process of its own.
#[pyfunction]
pub(crate) fn shell(
    py: Python<'_>,
    spec_json: &str,
    command: Vec<String>,
    server: Option<Vec<String>>,
) -> PyResult<i32> {
    let spec = read_spec(py, spec_json)?;
    let code = py.detach(move || fullpipe_emu::shell(&spec, &command, server.as_deref()));
    code.map_err(|error| world_error(py, &error.into()))
}

/// The exception for a kernel world that could not run.
fn world_error(py: Python<'_>, error: &KernelError) -> PyErr {
    crate::errors::world_error(py, error, &error.fix())
}

/// What the kernel world needs: name, ok, found and fix of each check.
fn checks_json(checks: &[Check]) -> String {
    Value::from_iter(checks.iter().map(check)).to_string()
}

/// What a probe measured; names are those of the Rust type.
fn measured_json(measured: &Measured) -> String {
    serde_json::to_string(measured).expect("measures are plain data")
}

/// Of each datagram in order: when it was sent, when it arrived, when it should have, and 1 if it should have at all, else 0.
/// Times are nanoseconds since the start, -1 where there is none.
fn trip_columns(trips: &[Trip]) -> Vec<u8> {
    let time = |time: Option<u64>| time.map_or(-1, |time| time as i64);
    let numbers =
        |trip: &Trip| [trip.sent_ns as i64, time(trip.received_ns), time(trip.due_ns), trip.expected.into()];
    trips.iter().flat_map(numbers).flat_map(i64::to_ne_bytes).collect()
}

/// The files of a run of the kernel world.
fn files_of(logs: &Logs, spec: &Spec, seed: u64, world: WorldName) -> PyResult<KernelLogs> {
    let again = |file: &File| file.try_clone().map_err(|error| os_error(&error));
    let qlog = match (&logs.qlog, &logs.spool) {
        (Some((one, other)), Some(spool)) => Some([again(one)?, again(other)?, again(spool)?]),
        (Some(_), None) => return Err(PyValueError::new_err("a qlog of the kernel world needs a spool")),
        (None, _) => None,
    };
    Ok(KernelLogs {
        header: Header {
            world: if world == WorldName::Qdisc { "qdisc" } else { "kernel" }.to_owned(),
            clock: "monotonic",
            ..log_header(&logs.title, spec, seed)
        },
        qlog,
        pcap: logs.pcap.as_ref().map(again).transpose()?,
        snaplen: logs.snaplen,
        most: logs.most,
    })
}

/// A summary as JSON, and the file.
fn encode(recorded: &Recording, scenario: &str, ops: Ops) -> Result<(String, Vec<u8>), RecordingError> {
    let meta = Meta {
        cc: ops,
        kernel: recorded.run.provenance.kernel.clone(),
        hz: recorded.hz,
        recorded: Recorded { scenario: scenario.to_owned(), path: recorded.path.clone() },
        lost_records: 0,
        missed_calls: recorded.missed_calls,
        flows: recorded.flows.len() as u32,
    };
    let file = recording::to_bytes(&meta, &recorded.calls)?;
    let mut calls = vec![0u64; recorded.flows.len()];
    for call in &recorded.calls {
        calls[call.flow as usize] += 1;
    }
    let flows = recorded.flows.iter().zip(calls).map(|(number, calls)| {
        let flow = &recorded.run.flows[*number];
        json!({"label": flow.label, "controller": flow.controller, "calls": calls})
    });
    let summary = json!({
        "cc": ops.name(),
        "calls": recorded.calls.len(),
        "lost": meta.lost_records,
        "missed_calls": meta.missed_calls,
        "flows": Value::from_iter(flows),
    });
    Ok((summary.to_string(), file))
}

/// The exception for an algorithm whose calls cannot be recorded.
fn unknown_algorithm(py: Python<'_>, given: &str) -> PyErr {
    let (field, expected, fix) = ("cc", "bbr or cubic", "those two can be recorded");
    let sentence = format!("{field}: {given:?} cannot be recorded; expected {expected}; {fix}");
    let parts = [("field", field), ("given", given), ("expected", expected), ("fix", fix)];
    with_parts(py, ScenarioError::new_err(sentence), &parts)
}

fn check(check: &Check) -> Value {
    json!({"name": check.name, "ok": check.ok, "found": check.found, "fix": check.fix})
}
