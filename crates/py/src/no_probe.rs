//! In place of `probe.rs` where there is no Linux.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::errors::world_error;

/// Needs Linux.
#[pyclass(frozen, name = "ProbePlane", module = "fullpipe._native")]
pub(crate) struct PyPlane;

#[pymethods]
impl PyPlane {
    /// Says why it cannot be made.
    #[new]
    #[pyo3(signature = (*_arguments, **_named))]
    fn new(
        py: Python<'_>,
        _arguments: &Bound<'_, PyTuple>,
        _named: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPlane> {
        let why = "fullpipe probe needs Linux's stamps of arriving packets, and this system has none";
        Err(world_error(py, &why, "use Linux at both ends, e.g. in a virtual machine"))
    }
}
