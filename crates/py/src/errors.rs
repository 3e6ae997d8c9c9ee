//! Exceptions that Python sees, with their parts as attributes.
//!
//! A class of its own with fields would have to extend a built-in exception, which the stable ABI of Python 3.11 cannot;
//! so the parts are plain attributes, and the classes hold empty ones for instances that are made without.

use std::path::Path;

use fullpipe_capture::CaptureError;
use fullpipe_emu::EmuError;
use fullpipe_sim::SimError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    fullpipe._native,
    ScenarioError,
    PyValueError,
    "What a user said cannot be run. `str()` is one sentence: field, what was given, what is expected, how to mend it."
);
create_exception!(
    fullpipe._native,
    WorldError,
    PyRuntimeError,
    "A world could not run, e.g. no permission for the kernel world. `str()` says what was attempted and the mend."
);
create_exception!(
    fullpipe._native,
    TraceError,
    PyValueError,
    "A file is no trace that can be replayed, or no packet capture. `str()` says which, what was found and what is expected."
);
create_exception!(fullpipe._native, Cancelled, PyException, "The run was cancelled through its `Cancel`.");

/// Gives the classes their attributes, empty.
pub(crate) fn give_attributes(py: Python<'_>) -> PyResult<()> {
    for name in ["field", "given", "expected", "mend"] {
        py.get_type::<ScenarioError>().setattr(name, "")?;
    }
    py.get_type::<WorldError>().setattr("mend", "")
}

/// The exception for a scenario that cannot be run.
pub(crate) fn scenario_error(py: Python<'_>, error: &fullpipe_scenario::ScenarioError) -> PyErr {
    let parts = [
        ("field", error.field.as_str()),
        ("given", error.given.as_str()),
        ("expected", error.expected.as_str()),
        ("mend", error.mend.as_str()),
    ];
    with_parts(py, ScenarioError::new_err(error.to_string()), &parts)
}

/// The exception for a document in a format that does not exist.
pub(crate) fn unknown_format(py: Python<'_>, given: &str) -> PyErr {
    let (field, expected, mend) = ("format", "toml or json", "write format=\"toml\"");
    let sentence = format!("{field}: {given:?} is not a format; expected {expected}; {mend}");
    let parts = [("field", field), ("given", given), ("expected", expected), ("mend", mend)];
    with_parts(py, ScenarioError::new_err(sentence), &parts)
}

/// The exception for an algorithm whose calls cannot be recorded.
pub(crate) fn unknown_algorithm(py: Python<'_>, given: &str) -> PyErr {
    let (field, expected, mend) = ("cc", "bbr or cubic", "those two can be recorded");
    let sentence = format!("{field}: {given:?} cannot be recorded; expected {expected}; {mend}");
    let parts = [("field", field), ("given", given), ("expected", expected), ("mend", mend)];
    with_parts(py, ScenarioError::new_err(sentence), &parts)
}

/// The exception for a file that is no trace.
pub(crate) fn trace_error(error: &fullpipe_record::trace::TraceError) -> PyErr {
    TraceError::new_err(error.to_string())
}

/// The exception for a file that is no packet capture.
pub(crate) fn capture_error(path: &Path, error: &CaptureError) -> PyErr {
    TraceError::new_err(format!("{}: {error}", path.display()))
}

/// The exception for a world that could not run.
pub(crate) fn world_error(py: Python<'_>, error: &EmuError) -> PyErr {
    let mend = error.mend();
    with_parts(py, WorldError::new_err(format!("{error}; {mend}")), &[("mend", &mend)])
}

/// The exception for a simulation that gave no record.
pub(crate) fn sim_error(py: Python<'_>, error: &SimError) -> PyErr {
    match error {
        SimError::Cancelled => Cancelled::new_err(error.to_string()),
        SimError::Path(path) => {
            let mend = "resolve the scenario again";
            let parts =
                [("field", path.field), ("given", &path.given), ("expected", path.expected), ("mend", mend)];
            with_parts(py, ScenarioError::new_err(format!("{path}; {mend}")), &parts)
        }
    }
}

fn with_parts(py: Python<'_>, error: PyErr, parts: &[(&str, &str)]) -> PyErr {
    for (name, part) in parts {
        if let Err(unexpected) = error.value(py).setattr(*name, *part) {
            return unexpected;
        }
    }
    error
}
