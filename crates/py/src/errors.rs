//! Exceptions that Python sees, with their parts as attributes.
//!
//! A class of its own with fields would have to extend a built-in exception, which the stable ABI of Python 3.11 cannot;
//! so the parts are plain attributes, and the classes hold empty ones for instances that are made without.

use std::path::Path;

use fullpipe_capture::CaptureError;
use fullpipe_files::Kind;
use fullpipe_record::frames::FrameError;
use fullpipe_sim::{ChangeError, Mistake, SimError};
use fullpipe_units::Time;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    fullpipe._native,
    ScenarioError,
    PyValueError,
    "What a user said cannot be run. `str()` is one sentence: field, what was given, what is expected, how to fix it."
);
create_exception!(
    fullpipe._native,
    WorldError,
    PyRuntimeError,
    "A world could not run, e.g. no permission for the kernel world. `str()` says what was attempted and the fix."
);
create_exception!(
    fullpipe._native,
    RecordingError,
    PyValueError,
    "A file is no recording, packet capture or Parquet file that can be read. `str()` says what is wrong with it."
);
create_exception!(
    fullpipe._native,
    ControllerError,
    PyRuntimeError,
    "A controller of the user's own raised an exception, which is the `__cause__`. `str()` says which, where and when."
);
create_exception!(fullpipe._native, Cancelled, PyException, "The run was cancelled through its `Cancel`.");

/// Gives the classes their attributes, empty.
pub(crate) fn give_attributes(py: Python<'_>) -> PyResult<()> {
    for name in ["field", "given", "expected", "fix", "file"] {
        py.get_type::<ScenarioError>().setattr(name, "")?;
    }
    py.get_type::<ScenarioError>().setattr("line", py.None())?;
    for name in ["controller", "event"] {
        py.get_type::<ControllerError>().setattr(name, "")?;
    }
    py.get_type::<ControllerError>().setattr("flow", 0)?;
    py.get_type::<ControllerError>().setattr("time_s", 0.0)?;
    py.get_type::<WorldError>().setattr("fix", "")
}

/// The exception for a scenario that cannot be run.
pub(crate) fn scenario_error(py: Python<'_>, error: &fullpipe_scenario::ScenarioError) -> PyErr {
    let place = error.place.as_deref().cloned().unwrap_or_default();
    let parts = [
        ("field", error.field.as_str()),
        ("given", error.given.as_str()),
        ("expected", &error.expected),
        ("fix", &error.fix),
        ("file", place.file.as_deref().unwrap_or_default()),
    ];
    let raised = with_parts(py, ScenarioError::new_err(error.to_string()), &parts);
    match raised.value(py).setattr("line", place.line) {
        Ok(()) => raised,
        Err(unexpected) => unexpected,
    }
}

/// The exception for a document in a format that does not exist.
pub(crate) fn unknown_format(py: Python<'_>, given: &str) -> PyErr {
    let (field, expected, fix) = ("format", "toml or json", "write format=\"toml\"");
    let sentence = format!("{field}: {given:?} is not a format; expected {expected}; {fix}");
    let parts = [("field", field), ("given", given), ("expected", expected), ("fix", fix)];
    with_parts(py, ScenarioError::new_err(sentence), &parts)
}

/// The exception for a file that is no recording.
pub(crate) fn recording_error(error: &fullpipe_record::recording::RecordingError) -> PyErr {
    RecordingError::new_err(error.to_string())
}

/// The exception for a file that is no packet capture.
pub(crate) fn capture_error(path: &Path, error: &CaptureError) -> PyErr {
    RecordingError::new_err(named(path, error, Kind::Capture))
}

/// The exception for a Parquet file that cannot be read.
pub(crate) fn frame_error(path: &Path, error: &FrameError) -> PyErr {
    RecordingError::new_err(format!("{}: {error}", path.display()))
}

/// What is wrong with a file; if it is of another kind than `expected`, what it is and which command takes it.
fn named(path: &Path, error: &dyn std::fmt::Display, expected: Kind) -> String {
    let file = path.display();
    match Kind::of(path) {
        Some(kind) if kind != expected => {
            format!("{file} is {}; expected {}; {}", kind.name(), expected.name(), kind.fix())
        }
        _ => format!("{file}: {error}"),
    }
}

/// The exception for a world that could not run.
pub(crate) fn world_error(py: Python<'_>, error: &dyn std::fmt::Display, fix: &str) -> PyErr {
    with_parts(py, WorldError::new_err(format!("{error}; {fix}")), &[("fix", fix)])
}

/// The exception for a simulation that gave no record.
pub(crate) fn sim_error(py: Python<'_>, error: &SimError) -> PyErr {
    match error {
        SimError::Cancelled => Cancelled::new_err(error.to_string()),
        SimError::Refused { .. } | SimError::Path(_) => refused(py, &error.mistake()),
    }
}

/// The exception for a path that does not change as somebody said.
pub(crate) fn change_error(py: Python<'_>, error: &ChangeError) -> PyErr {
    match error {
        ChangeError::Unreadable(error) => scenario_error(py, error),
        ChangeError::Refused(mistake) => refused(py, mistake),
    }
}

fn refused(py: Python<'_>, mistake: &Mistake) -> PyErr {
    let Mistake { sentence, field, given, expected, fix } = mistake;
    let parts = [("field", field), ("given", given), ("expected", expected), ("fix", fix)];
    with_parts(py, ScenarioError::new_err(sentence.clone()), &parts.map(|(name, part)| (name, part.as_str())))
}

/// The exception for user code that raised one in a run.
pub(crate) fn controller_error(
    py: Python<'_>,
    controller: &str,
    event: &str,
    flow: usize,
    at: Time,
    cause: PyErr,
) -> PyErr {
    let time_s = at.as_nanos() as f64 / 1e9;
    let sentence =
        format!("{controller}: {event} raised {cause} (flows[{flow}], {time_s:.6} s of simulated time)");
    let raised =
        with_parts(py, ControllerError::new_err(sentence), &[("controller", controller), ("event", event)]);
    let value = raised.value(py);
    if let Err(unexpected) = value.setattr("flow", flow).and_then(|()| value.setattr("time_s", time_s)) {
        return unexpected;
    }
    raised.set_cause(py, Some(cause));
    raised
}

/// The exception for an attribute of a controller that is no limit.
pub(crate) fn bad_limit(name: &str, given: &Bound<'_, PyAny>, expected: &str) -> PyErr {
    let given = given.repr().map_or_else(|_| "not printable".to_string(), |text| text.to_string());
    PyValueError::new_err(format!("{name} is {given}; expected {expected}"))
}

pub(crate) fn with_parts(py: Python<'_>, error: PyErr, parts: &[(&str, &str)]) -> PyErr {
    for (name, part) in parts {
        if let Err(unexpected) = error.value(py).setattr(*name, *part) {
            return unexpected;
        }
    }
    error
}
