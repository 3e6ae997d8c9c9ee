//! The shape of a scenario as JSON Schema, for editors and for other programs.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use serde_json::Value;

use crate::document::Document;

/// JSON Schema (draft 2020-12) of a scenario, with descriptions and examples. It describes the shape; whether a text
/// is a rate or a duration is checked when it is resolved.
#[expect(clippy::missing_panics_doc, reason = "a schema is plain JSON")]
pub fn schema() -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(join_lines));
    let schema = settings.into_generator().into_root_schema_for::<Document>();
    serde_json::to_string_pretty(&schema).expect("a schema is plain JSON")
}

/// Removes line breaks: descriptions come from comments that are wrapped in the source.
fn join_lines(schema: &mut Schema) {
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
}
