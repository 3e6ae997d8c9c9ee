//! A failure as an answer of the program.

use serde_json::{Value, json};

pub(crate) fn failure(kind: &str, message: &str) -> Value {
    json!({"ok": false, "kind": kind, "message": message})
}
