//! In place of `kernel.rs` where there is no Linux: each call says why it cannot be answered.

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::errors::world_error;

fn refused(py: Python<'_>) -> PyErr {
    let why =
        "the kernel world runs Linux's own TCP between namespaces of Linux, and this system has neither";
    world_error(py, &why, "use the worlds sim and quic here, or Linux, e.g. in a virtual machine")
}

macro_rules! refuse {
    ($($name:ident),*) => {$(
        /// Needs Linux.
        #[pyfunction]
        #[pyo3(signature = (*_arguments))]
        pub(crate) fn $name(py: Python<'_>, _arguments: &Bound<'_, PyTuple>) -> PyResult<()> {
            Err(refused(py))
        }
    )*};
}

refuse!(
    kernel_load,
    kernel_load_own,
    kernel_probe,
    kernel_prove,
    kernel_record,
    kernel_run,
    kernel_status,
    kernel_unload,
    qdisc_refuses,
    qdisc_run,
    shell
);

/// The controllers that can be registered with this kernel: none.
#[pyfunction]
pub(crate) fn kernel_loadable() -> Vec<&'static str> {
    Vec::new()
}

/// JSON list of what the kernel world needs, in the form of `kernel.rs`.
#[pyfunction]
pub(crate) fn kernel_doctor(py: Python<'_>) -> String {
    let found = refused(py).to_string();
    serde_json::json!([{"name": "Linux", "ok": false, "found": found, "fix": "use Linux"}]).to_string()
}

/// The same of Linux's own queues.
#[pyfunction]
pub(crate) fn qdisc_doctor(py: Python<'_>) -> String {
    kernel_doctor(py)
}
