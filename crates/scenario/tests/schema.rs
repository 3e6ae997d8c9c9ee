//! The printed JSON Schema says the same as the parser: it accepts every shipped scenario and refuses what is refused.

use std::fs;
use std::path::Path;

use serde_json::Value;

/// Whether `value` fits `schema`: the part of JSON Schema that our schema uses, and a panic at anything else.
fn fits(value: &Value, schema: &Value, root: &Value) -> Result<(), String> {
    let rules = match schema {
        Value::Bool(true) => return Ok(()),
        Value::Object(rules) => rules,
        other => panic!("not a schema: {other}"),
    };
    let fits_in = |value: &Value, schema: &Value| fits(value, schema, root);
    let fitting =
        |schemas: &Value| schemas.as_array().unwrap().iter().filter(|s| fits(value, s, root).is_ok()).count();
    for (rule, argument) in rules {
        let right = match rule.as_str() {
            "$schema" | "$defs" | "title" | "description" | "deprecated" | "examples" | "default" => true,
            "$ref" => {
                let pointer = argument.as_str().unwrap().strip_prefix('#').unwrap();
                fits_in(value, root.pointer(pointer).unwrap())?;
                true
            }
            "type" => match argument {
                Value::Array(types) => types.iter().any(|kind| is_a(value, kind)),
                kind => is_a(value, kind),
            },
            "const" => value == argument,
            "enum" => argument.as_array().unwrap().contains(value),
            "anyOf" => fitting(argument) > 0,
            "oneOf" => fitting(argument) == 1,
            "not" => fits_in(value, argument).is_err(),
            "required" => {
                argument.as_array().unwrap().iter().all(|key| value.get(key.as_str().unwrap()).is_some())
            }
            "properties" => {
                let properties = argument.as_object().unwrap();
                for (key, item) in value.as_object().into_iter().flatten() {
                    match properties.get(key) {
                        Some(schema) => fits_in(item, schema).map_err(|error| format!("{key}: {error}"))?,
                        None => {
                            assert_eq!(rules["additionalProperties"], false, "unknown keys pass beside {key}")
                        }
                    }
                }
                true
            }
            "additionalProperties" => {
                let properties = rules["properties"].as_object().unwrap();
                value.as_object().into_iter().flatten().all(|(key, _)| properties.contains_key(key))
            }
            "items" => {
                value.as_array().into_iter().flatten().try_for_each(|item| fits_in(item, argument))?;
                true
            }
            other => panic!("the checker does not know the rule {other}"),
        };
        if !right {
            return Err(format!("{rule} {argument} refuses {value}"));
        }
    }
    Ok(())
}

fn is_a(value: &Value, kind: &Value) -> bool {
    match kind.as_str().unwrap() {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "string" => value.is_string(),
        "number" => value.is_number(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("the checker does not know the type {other}"),
    }
}

fn schema() -> Value {
    serde_json::from_str(&fullpipe_scenario::schema()).unwrap()
}

fn check(toml: &str) -> Result<(), String> {
    let document: toml::Table = toml.parse().unwrap();
    let schema = schema();
    fits(&serde_json::to_value(document).unwrap(), &schema, &schema)
}

#[test]
fn the_schema_accepts_every_shipped_scenario() {
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            check(&fs::read_to_string(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
    }
}

#[test]
fn schema_checks_elements_by_kind() {
    let path = "[path]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[path.before]]\n";
    check(&format!("{path}kind = \"policer\"\nrate = \"1 Mbit/s\"\nburst = 3000\n")).unwrap();
    check(&format!("{path}kind = \"gilbert_elliott\"\ngood_to_bad = 0.1\nbad_to_good = \"1 %\"\n")).unwrap();
    check(&format!("{path}kind = \"polizer\"\nrate = \"1 Mbit/s\"\nburst = 3000\n")).unwrap_err();
    check(&format!("{path}kind = \"policer\"\nburst = 3000\n")).unwrap_err();
    check(&format!("{path}kind = \"policer\"\nrate = \"1 Mbit/s\"\nburst = 3000\nbuffer = 3000\n"))
        .unwrap_err();
}

#[test]
fn schema_checks_application_fields() {
    let flow =
        |line: &str| check(&format!("[path]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[[flows]]\n{line}\n"));
    flow("requests = { size = \"64 KB\" }").unwrap();
    flow("video = { rate = \"5 Mbit/s\", buffer = \"10 s\" }").unwrap();
    flow("transfers = [{ size = \"12 KB\", pause = \"300 ms\" }, { size = 3000 }]").unwrap();
    flow("requests = { pause = \"1 s\" }").unwrap_err();
    flow("video = { rate = \"5 Mbit/s\", buffers = \"10 s\" }").unwrap_err();
    flow("transfers = { size = \"12 KB\" }").unwrap_err();
    flow("transfers = [{ pause = \"300 ms\" }]").unwrap_err();
}

#[test]
fn schema_refuses_bad_keys_and_types() {
    check("").unwrap_err();
    check("[path]\nrtt = \"1 ms\"\n").unwrap_err();
    check("[path]\nrate = \"1 Mbit/s\"\n").unwrap_err();
    check("[path]\ndeliveries = \"a\"\nrtt = \"1 ms\"\n").unwrap();
    check("[path]\nrate = \"1 Mbit/s\"\ndeliveries = \"a\"\nrtt = \"1 ms\"\n").unwrap_err();
    let reverse =
        |lines: &str| check(&format!("[path]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[path.reverse]\n{lines}"));
    reverse("rate = \"1 Mbit/s\"\n").unwrap();
    reverse("deliveries = \"a\"\n").unwrap();
    reverse("rate = \"1 Mbit/s\"\ndeliveries = \"a\"\n").unwrap_err();
    check("[path]\nrate = 100\nrtt = \"1 ms\"\n").unwrap_err();
    check("zebra = 1\n[path]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n").unwrap_err();
    check("[path]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n[hosts]\ntcp_memory = \"huge\"\n").unwrap_err();
}

#[test]
fn schema_fields_have_descriptions_and_examples() {
    let schema = schema();
    for (name, definition) in
        schema["$defs"].as_object().unwrap().iter().chain([(&"scenario".to_string(), &schema)])
    {
        assert!(definition["description"].is_string(), "{name}");
        for (key, field) in definition["properties"].as_object().into_iter().flatten() {
            assert!(field["description"].is_string(), "{name}.{key}");
        }
    }
    for quantity in ["Rate", "Duration", "Size", "Probability", "Count"] {
        assert!(schema["$defs"][quantity]["examples"].is_array(), "{quantity}");
    }
}
