//! The Python module `fullpipe._native`: what Python calls, and nothing that decides anything.
//!
//! `python/fullpipe/_native.pyi` is the interface, and `make lint` holds this module to it. Structured values cross as
//! JSON and Parquet, so that Python, files and other programs read the same bytes.

mod catalogue;
mod controller;
mod errors;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(not(target_os = "linux"))]
#[path = "no_kernel.rs"]
mod kernel;
mod laws;
mod logs;
#[cfg(target_os = "linux")]
mod probe;
#[cfg(not(target_os = "linux"))]
#[path = "no_probe.rs"]
mod probe;
mod recordings;
mod simulation;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use std::{panic, thread};

use fullpipe_files::Kind;
use fullpipe_record::{Run, frames, parquet, table::Table};
use fullpipe_scenario::document::Document;
use fullpipe_scenario::{Format, Resolved, Spec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::scenario_error;
use crate::logs::{LogError, LoggedSimulation, Logs};

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
    fn of(mut run: Run, spec: &Spec) -> Answer {
        let summary_json = run.summary_json();
        if !spec.keep_series {
            run.drop_series();
        }
        let (flows_parquet, links_parquet) = Answer::tables(&run);
        Answer { summary_json, flows_parquet, links_parquet }
    }

    /// Of a run whose summary and series are known.
    fn tables(run: &Run) -> (Vec<u8>, Vec<u8>) {
        (parquet::to_bytes(run, Table::Flows), parquet::to_bytes(run, Table::Links))
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

/// The keys of a path that are options and arguments, as JSON.
#[pyfunction]
fn path_options() -> String {
    fullpipe_scenario::path_options().to_string()
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

/// JSON list of queue disciplines: name, summary, source, kernel (name in Linux or null), settings.
#[pyfunction]
fn queues() -> String {
    catalogue::queues_json()
}

/// The document in JSON, and label and resolved spec in JSON of each of its alternatives, in order.
type PyResolved = (String, Vec<(String, String)>);

/// Resolves a scenario document: itself in JSON, and label and resolved spec in JSON of each alternative, in order.
#[pyfunction]
fn resolve(
    py: Python<'_>,
    document: String,
    format: &str,
    base_dir: Option<PathBuf>,
) -> PyResult<PyResolved> {
    let format = match format {
        "toml" => Format::Toml,
        "json" => Format::Json,
        other => return Err(errors::unknown_format(py, other)),
    };
    let resolved =
        interruptible(py, move |_| Resolved::of_text(&document, format, base_dir.as_deref()).map(in_json))?;
    resolved.map_err(|error| scenario_error(py, &error))
}

/// The same of a scenario file; traces are looked for beside it.
#[pyfunction]
fn resolve_file(py: Python<'_>, path: PathBuf) -> PyResult<PyResolved> {
    let resolved = interruptible(py, move |_| Resolved::of_file(&path).map(in_json))?;
    resolved.map_err(|error| scenario_error(py, &error))
}

fn in_json(resolved: Resolved) -> PyResolved {
    let Resolved { document, alternatives } = resolved;
    (document, alternatives.into_iter().map(|(label, spec)| (label, spec.to_json())).collect())
}

/// Reads a document of any shape: its text, and itself in JSON. An error names `field` and what is `expected`.
#[pyfunction]
fn read_document(
    py: Python<'_>,
    path: PathBuf,
    field: String,
    expected: String,
) -> PyResult<(String, String)> {
    let read = interruptible(py, move |_| fullpipe_scenario::read_any(&field, &path, &expected))?;
    read.map_err(|error| scenario_error(py, &error))
}

/// The line of a field in the text of a document that was read from `path`.
#[pyfunction]
fn line_of(text: &str, path: PathBuf, field: &str) -> Option<usize> {
    fullpipe_scenario::line_of(text, Format::of(&path), field)
}

/// Runs a spec in the simulator without the GIL: summary JSON, flow series and link series as Parquet. With `logs`, its packets
/// are logged; a file that cannot be written is an `OSError`.
#[pyfunction]
#[pyo3(signature = (spec_json, seed, cancel=None, logs=None))]
fn simulate<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    cancel: Option<Bound<'py, Cancel>>,
    logs: Option<Py<Logs>>,
) -> PyResult<PyAnswer<'py>> {
    // Reading it takes as long as a short run, so that it is also done without the GIL.
    let read = py.detach(|| Spec::from_json(spec_json));
    let spec = read.map_err(|error| scenario_error(py, &error))?;
    let run = move |flag: &AtomicBool| {
        let run = match logs.as_ref().map(Py::get) {
            Some(logs) => LoggedSimulation::new(&spec, seed, logs)?.run(flag, logs)?,
            None => fullpipe_sim::run(&spec, seed, flag).map_err(LogError::Sim)?,
        };
        Ok(Answer::of(run, &spec))
    };
    let answer = match cancel {
        Some(cancel) => {
            let flag = Arc::clone(&cancel.get().flag);
            py.detach(move || run(&flag))
        }
        None => interruptible(py, run)?,
    };
    Ok(answer.map_err(|error: LogError| error.into_python(py))?.into_python(py))
}

/// Replays a recording without the GIL: JSON with calls, the first difference and the branches reached.
#[pyfunction]
fn replay(py: Python<'_>, path: PathBuf) -> PyResult<String> {
    interruptible(py, move |_| recordings::replay_json(&path))?
        .map_err(|error| errors::recording_error(&error))
}

/// Reads a packet capture without the GIL: what it holds as JSON, and of each transfer flow, start, pause (nanoseconds) and
/// bytes as four 64-bit integers in this machine's order.
#[pyfunction]
fn read_capture(py: Python<'_>, path: PathBuf) -> PyResult<(String, Bound<'_, PyBytes>)> {
    let file = path.clone();
    let read = interruptible(py, move |stop| fullpipe_capture::read_file(&file, stop))?;
    let capture = read.map_err(|error| errors::capture_error(&path, &error))?;
    Ok((
        catalogue::capture_json(&capture),
        PyBytes::new(py, &catalogue::transfer_columns(&capture.transfers)),
    ))
}

/// Which kind of file a file is, by its content, and which command takes it; `None` if the kind is not known.
#[pyfunction]
fn file_kind(path: PathBuf) -> Option<(String, String, String)> {
    Kind::of(&path).map(|kind| (format!("{kind:?}"), kind.name().to_owned(), kind.fix().to_owned()))
}

/// Reads a Parquet file without the GIL, as an Arrow IPC stream. Damage is an error here, where it crashes other readers.
#[pyfunction]
fn read_parquet(py: Python<'_>, path: PathBuf) -> PyResult<Bound<'_, PyBytes>> {
    let read = py.detach(|| frames::read(&path));
    Ok(PyBytes::new(py, &read.map_err(|error| errors::frame_error(&path, &error))?))
}

/// The flow series and link series, as Parquet, of a run that another process has told as JSON.
#[pyfunction]
fn tables<'py>(py: Python<'py>, run_json: &[u8]) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
    let (flows, links) =
        py.detach(|| Run::told(run_json).map(|run| Answer::tables(&run))).map_err(PyValueError::new_err)?;
    Ok((PyBytes::new(py, &flows), PyBytes::new(py, &links)))
}

/// What the path of a spec allows, as JSON: see `PathFacts` in the crate fullpipe-scenario.
#[pyfunction]
fn path_facts(py: Python<'_>, spec_json: &str) -> PyResult<String> {
    Ok(read_spec(py, spec_json)?.path_facts().to_json())
}

/// What to know about a document in JSON and the specs of its alternatives: sentences for whoever reads its results.
#[pyfunction]
fn scenario_notes(py: Python<'_>, document: &str, specs_json: Vec<String>) -> PyResult<Vec<String>> {
    let document = Document::read(document, Format::Json).map_err(|error| scenario_error(py, &error))?;
    let specs: Vec<Spec> = specs_json.iter().map(|json| read_spec(py, json)).collect::<PyResult<_>>()?;
    Ok(fullpipe_scenario::resolve::notes(&document, &specs))
}

/// How often a call that takes long looks whether the user wants it to end.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Does the work without the GIL, on a thread of its own, while this one handles signals. Ctrl-C raises KeyboardInterrupt
/// here at once and sets the flag that the work has; work that does not look at it ends unheard.
fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> T + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&stop);
    let (sender, mut receiver) = mpsc::sync_channel(1);
    let worker = thread::Builder::new().name("fullpipe-native".to_string()).spawn(move || {
        // Nobody listens any more after Ctrl-C.
        let _ = sender.send(work(&seen));
    })?;
    loop {
        let received;
        (received, receiver) = py.detach(move || (receiver.recv_timeout(LOOK_EVERY), receiver));
        match received {
            Ok(answer) => return Ok(answer),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| stop.store(true, Ordering::Relaxed))?;
            }
            Err(RecvTimeoutError::Disconnected) => match worker.join() {
                Err(panic) => panic::resume_unwind(panic),
                Ok(()) => unreachable!("the worker sends before it ends"),
            },
        }
    }
}

fn read_spec(py: Python<'_>, spec_json: &str) -> PyResult<Spec> {
    Spec::from_json(spec_json).map_err(|error| scenario_error(py, &error))
}

/// The native half of Fullpipe. Private: use the names in `fullpipe`.
#[pymodule]
mod _native {
    #[pymodule_export]
    use super::{
        Cancel, build, controllers, file_kind, line_of, path_facts, path_options, queues, read_capture,
        read_document, read_parquet, replay, resolve, resolve_file, scenario_notes, schema, simulate, tables,
        version,
    };
    #[pymodule_export]
    use crate::controller::{
        PyAck, PyCeMarks, PyConfig, PyConnection, PyLost, PyRateSample, PyRttSample, PySent, PyStateChange,
        PyTailRepair, PyTransmitStart, PyUndo, PyWindowUnused,
    };
    #[pymodule_export]
    use crate::errors::{Cancelled, ControllerError, RecordingError, ScenarioError, WorldError};
    #[pymodule_export]
    use crate::kernel::{
        kernel_doctor, kernel_load, kernel_load_own, kernel_loadable, kernel_probe, kernel_prove,
        kernel_record, kernel_run, kernel_status, kernel_unload, qdisc_doctor, qdisc_refuses, qdisc_run,
        shell,
    };
    #[pymodule_export]
    use crate::laws::{law, laws};
    #[pymodule_export]
    use crate::logs::Logs;
    #[pymodule_export]
    use crate::probe::PyPlane;
    #[pymodule_export]
    use crate::simulation::{FlowNow, PySimulation, QueueNow, simulate_with};

    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        crate::errors::give_attributes(module.py())
    }
}
