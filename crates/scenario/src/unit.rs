//! What an element takes or drops as one.

use fullpipe_path::config::AdmissionUnit;
use schemars::JsonSchema;
use serde::Deserialize;

/// What an element takes or drops as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Each packet.
    Segment,
    /// All packets that the host hands over together (up to 64 KB: TSO and GSO), if nothing on their way has parted them. A
    /// limit in packets counts a burst as one.
    Burst,
}

impl Unit {
    pub(crate) fn config(written: Option<Unit>) -> AdmissionUnit {
        match written {
            None | Some(Unit::Segment) => AdmissionUnit::Segment,
            Some(Unit::Burst) => AdmissionUnit::Burst,
        }
    }
}
