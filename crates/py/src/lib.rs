//! The Python module `fullpipe._native`: what Python calls, and nothing that decides anything.
//!
//! `python/fullpipe/_native.pyi` is the interface, and `make lint` holds this module to it. Structured values cross as
//! JSON and Parquet, so that Python, files and other programs read the same bytes.

mod catalogue;
mod errors;
mod traces;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_cc::replay::Ops;
use fullpipe_record::{Run, parquet, table::Table};
use fullpipe_scenario::{Format, Spec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{scenario_error, sim_error, world_error};

/// Stops runs that were given it, soon after `set()`.
#[pyclass(frozen, module = "fullpipe._native")]
struct Cancel {
    flag: Arc<AtomicBool>,
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Cancel {
        Cancel { flag: Arc::new(AtomicBool::new(false)) }
    }

    /// Stops the runs.
    fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
    }
}

/// What a run leaves: summary as JSON, flow series and link series as Parquet.
struct Answer {
    summary_json: String,
    flows_parquet: Vec<u8>,
    links_parquet: Vec<u8>,
}

/// The same to Python.
type PyAnswer<'py> = (String, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

impl Answer {
    fn of(run: &Run) -> Answer {
        Answer {
            summary_json: run.summary_json(),
            flows_parquet: parquet::to_bytes(run, Table::Flows),
            links_parquet: parquet::to_bytes(run, Table::Links),
        }
    }

    fn into_python(self, py: Python<'_>) -> PyAnswer<'_> {
        (self.summary_json, PyBytes::new(py, &self.flows_parquet), PyBytes::new(py, &self.links_parquet))
    }
}

/// Version of Fullpipe.
#[pyfunction]
fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// What decides the runs of "sim" or "kernel": a fingerprint of the sources of that world.
#[pyfunction]
fn build(world: &str) -> PyResult<&'static str> {
    match world {
        "sim" => Ok(env!("FULLPIPE_SIM_BUILD")),
        "kernel" => Ok(env!("FULLPIPE_KERNEL_BUILD")),
        _ => Err(PyValueError::new_err(format!("{world:?} is no world; expected \"sim\" or \"kernel\""))),
    }
}

/// JSON Schema of a scenario document.
#[pyfunction]
fn schema() -> String {
    fullpipe_scenario::schema()
}

/// JSON list of controllers: name, summary, source, kernel (name in Linux or null), parameters.
#[pyfunction]
fn controllers() -> String {
    catalogue::controllers_json()
}

/// The alternatives of a scenario document: label and resolved spec in JSON of each, in order.
#[pyfunction]
fn resolve(
    py: Python<'_>,
    document: &str,
    format: &str,
    base_dir: Option<&str>,
) -> PyResult<Vec<(String, String)>> {
    let format = match format {
        "toml" => Format::Toml,
        "json" => Format::Json,
        other => return Err(errors::unknown_format(py, other)),
    };
    let alternatives = fullpipe_scenario::resolve_all(document, format, base_dir.map(Path::new))
        .map_err(|error| scenario_error(py, &error))?;
    Ok(alternatives.into_iter().map(|(label, spec)| (label, spec.to_json())).collect())
}

/// Runs a spec in the simulator without the GIL: summary JSON, flow series and link series as Parquet.
#[pyfunction]
#[pyo3(signature = (spec_json, seed, cancel=None))]
fn simulate<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    cancel: Option<Bound<'py, Cancel>>,
) -> PyResult<PyAnswer<'py>> {
    let spec = read_spec(py, spec_json)?;
    let flag = cancel.map_or_else(Arc::default, |cancel| Arc::clone(&cancel.get().flag));
    let answer = py.detach(move || fullpipe_sim::run(&spec, seed, &flag).map(|run| Answer::of(&run)));
    Ok(answer.map_err(|error| sim_error(py, &error))?.into_python(py))
}

/// Runs a spec over Linux TCP. Only in a fresh single-threaded process of its own: it enters namespaces.
#[pyfunction]
fn kernel_run<'py>(py: Python<'py>, spec_json: &str, seed: u64) -> PyResult<PyAnswer<'py>> {
    fullpipe_emu::die_with_parent();
    let spec = read_spec(py, spec_json)?;
    let answer = py.detach(move || fullpipe_emu::run(&spec, seed).map(|run| Answer::of(&run)));
    Ok(answer.map_err(|error| world_error(py, &error))?.into_python(py))
}

/// Runs a spec over Linux TCP and records the calls of an algorithm: summary JSON and the trace. Only in a fresh
/// single-threaded process of its own, as root.
#[pyfunction]
fn kernel_record<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    algorithm: &str,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    fullpipe_emu::die_with_parent();
    let spec = read_spec(py, spec_json)?;
    let ops = Ops::by_name(algorithm).ok_or_else(|| errors::unknown_algorithm(py, algorithm))?;
    let recording = py.detach(|| fullpipe_emu::record(&spec, seed, ops));
    let recording = recording.map_err(|error| world_error(py, &error))?;
    let encoded = py.detach(|| traces::encode(&recording, &spec.name, ops));
    let (summary, file) = encoded.map_err(|error| errors::trace_error(&error))?;
    Ok((summary, PyBytes::new(py, &file)))
}

/// Sends numbered datagrams over a spec's forward path and measures what became of them: the measures as JSON, and of each
/// datagram four 64-bit integers in this machine's order. Only in a fresh single-threaded process of its own.
#[pyfunction]
fn kernel_probe<'py>(
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
    let (measured, trips) = outcome.map_err(|error| world_error(py, &error))?;
    Ok((catalogue::measured_json(&measured), PyBytes::new(py, &catalogue::trip_columns(&trips))))
}

/// Replays a trace without the GIL: JSON with calls, the first difference and the branches reached.
#[pyfunction]
fn replay(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    py.detach(|| traces::replay_json(&path)).map_err(|error| errors::trace_error(&error))
}

/// Reads a packet capture without the GIL: what it holds as JSON, and of each transfer flow, start, pause (nanoseconds) and
/// bytes as four 64-bit integers in this machine's order.
#[pyfunction]
fn read_capture(py: Python<'_>, path: PathBuf) -> PyResult<(String, Bound<'_, PyBytes>)> {
    let read = py.detach(|| fullpipe_capture::read_file(&path));
    let capture = read.map_err(|error| errors::capture_error(&path, &error))?;
    Ok((
        catalogue::capture_json(&capture),
        PyBytes::new(py, &catalogue::transfer_columns(&capture.transfers)),
    ))
}

/// JSON list of what the kernel world needs: name, ok, found, mend.
#[pyfunction]
fn kernel_doctor(py: Python<'_>) -> String {
    catalogue::checks_json(&py.detach(fullpipe_emu::doctor))
}

/// Runs a command behind the spec's path; returns its exit code. Only in a process of its own.
#[pyfunction]
fn shell(
    py: Python<'_>,
    spec_json: &str,
    command: Vec<String>,
    server: Option<Vec<String>>,
) -> PyResult<i32> {
    let spec = read_spec(py, spec_json)?;
    let code = py.detach(move || fullpipe_emu::shell(&spec, &command, server.as_deref()));
    code.map_err(|error| world_error(py, &error))
}

fn read_spec(py: Python<'_>, spec_json: &str) -> PyResult<Spec> {
    Spec::from_json(spec_json).map_err(|error| scenario_error(py, &error))
}

/// The native half of Fullpipe. Private: use the names in `fullpipe`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        Cancel, build, controllers, kernel_doctor, kernel_probe, kernel_record, kernel_run, read_capture,
        replay, resolve, schema, shell, simulate, version,
    };
    #[pymodule_export]
    use crate::errors::{Cancelled, ScenarioError, TraceError, WorldError};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::errors::give_attributes(module.py())
    }
}
