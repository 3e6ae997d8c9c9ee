//! The laws of `fullpipe-conformance`, for a controller of a spec's first flow: built in, or written in Python.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fullpipe_cc::{Any, Config, Connection, Controller, Segments};
use fullpipe_conformance::{
    Broken, Path, Sizes, check_discards, check_full_pipe, check_idle, check_jitter, check_marks,
    check_pauses, check_reordering, check_run, check_start_time, check_stretched_acks, check_tail_repair,
    check_timeout, check_units, check_wrap,
};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::controller::{Brought, Faults, InPython};
use crate::read_spec;

/// Segments that one of them is held to in Python, where an event takes a hundred times as long.
const FEW: u32 = 5_000;

/// The names of the laws, in the order of [`check`].
const NAMES: [&str; 16] = [
    "run",
    "losses",
    "start-time",
    "wrap",
    "stretched-acks",
    "units",
    "mixed-sizes",
    "reordering",
    "tail-repair",
    "discards",
    "pauses",
    "full-pipe",
    "timeout",
    "marks",
    "jitter",
    "idle",
];

/// The names that `law` takes.
#[pyfunction]
pub(crate) fn laws() -> Vec<&'static str> {
    NAMES.to_vec()
}

/// Checks a law: how the controller of the spec's first flow broke it, or `None`.
///
/// `brings` makes a controller in Python for each connection of the check, as a flow of a simulation takes it.
#[pyfunction]
#[pyo3(signature = (name, spec_json, brings=None))]
pub(crate) fn law(
    py: Python<'_>,
    name: &str,
    spec_json: &str,
    brings: Option<Py<PyAny>>,
) -> PyResult<Option<String>> {
    if !NAMES.contains(&name) {
        return Err(PyValueError::new_err(format!(
            "{name:?} is no law; expected one of {}",
            NAMES.join(", ")
        )));
    }
    let spec = read_spec(py, spec_json)?;
    let flow = spec.flows.first().ok_or_else(|| PyValueError::new_err("the spec has no flow"))?;
    let mut path = Path::default();
    path.config.paced = spec.hosts.pacing;
    let broken = match (flow.controller.params().copied(), brings) {
        (Some(params), _) => {
            path.config.paced |= params.needs_pacing();
            path.answers_delay = params.info().answers_delay;
            let new = |config: &Config, connection: &Connection| Any::new(&params, config, connection);
            py.detach(|| check(name, &path, params.counts_bytes(), new))
        }
        (None, Some(brings)) => in_python(py, name, path, &brings)?,
        (None, None) => return Err(PyValueError::new_err("a controller in Python needs what brings it")),
    };
    Ok(broken.err().map(|broken| broken.to_string()))
}

/// The same for a controller in Python, whose first object says whether it is paced.
fn in_python(py: Python<'_>, name: &str, mut path: Path, brings: &Py<PyAny>) -> PyResult<Result<(), Broken>> {
    let faults = Arc::new(Faults::default());
    let bring = |py: Python<'_>| -> PyResult<Brought> { brings.call0(py)?.extract(py) };
    path.config.paced |= bring(py)?.2;
    path.segments = path.segments.min(FEW);
    let failed = AtomicBool::new(false);
    let result = check(name, &path, false, |config: &Config, connection: &Connection| {
        let brought = Python::attach(|py| bring(py).ok());
        if brought.is_none() {
            failed.store(true, Ordering::Relaxed);
        }
        InPython::of(brought, Arc::clone(&faults), config, connection)
    });
    faults.check(py)?;
    if failed.load(Ordering::Relaxed) {
        // It was brought once, and not again: what it raises then says why.
        bring(py)?;
    }
    Ok(result)
}

/// A controller that counts segments comes in bytes through [`Segments`].
fn check<C: Controller>(
    name: &str,
    path: &Path,
    counts_bytes: bool,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let adapted = |config: &Config, connection: &Connection| Segments::new(config, connection, &new);
    match name {
        "run" => check_run(path, new).map(drop),
        "losses" => check_run(&lossy(path), new).map(drop),
        "start-time" => check_start_time(path, new),
        "wrap" => check_wrap(path, new),
        "stretched-acks" => check_stretched_acks(path, new),
        "units" if counts_bytes => check_units(path, &new, &new),
        "units" => check_units(path, &new, adapted),
        "mixed-sizes" if counts_bytes => check_mixed_sizes(path, new),
        "mixed-sizes" => check_mixed_sizes(path, adapted),
        "reordering" => check_reordering(path, new),
        "tail-repair" => check_tail_repair(path, new),
        "discards" => check_discards(path, new),
        "pauses" => check_pauses(path, new),
        "full-pipe" => check_full_pipe(path, new),
        "timeout" => check_timeout(path, new),
        "marks" => check_marks(path, new),
        "jitter" => check_jitter(path, new),
        "idle" => check_idle(path, new),
        _ => unreachable!("the name was looked up"),
    }
}

fn lossy(path: &Path) -> Path {
    Path { loss_per_mille: 20, ..*path }
}

/// A transport that counts bytes, with packets of different sizes: without loss, with loss, with stretched ACKs.
fn check_mixed_sizes<C: Controller>(
    path: &Path,
    new: impl Fn(&Config, &Connection) -> C,
) -> Result<(), Broken> {
    let path = path.in_bytes(Sizes::Mixed);
    check_run(&path, &new)?;
    check_run(&lossy(&path), &new)?;
    check_stretched_acks(&path, &new)
}
