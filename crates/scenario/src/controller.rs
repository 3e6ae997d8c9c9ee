//! A controller chosen by name, with parameters overridden by name: `bbr1:probe_gain=1.5`.

use serde::{Deserialize, Serialize};

/// A controller and its parameters. Serialises as the text that chose it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ControllerChoice {
    text: String,
}
