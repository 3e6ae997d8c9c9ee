//! Queue disciplines in scenarios. What each text means is tested in `queue.rs`.

use fullpipe_path::config::DisciplineConfig;
use fullpipe_path::{DISCIPLINES, DisciplineInfo, SettingInfo};

use super::*;

/// Where a scenario may name a discipline, with the field of an error, around a text `QUEUE`.
const PLACES: &[(&str, &str)] = &[
    ("queue = \"QUEUE\"", "path.queue"),
    ("burst = \"10 KB\"\nqueue = \"QUEUE\"", "path.queue"),
    ("[path.reverse]\nrate = \"5 Mbit/s\"\nqueue = \"QUEUE\"", "path.reverse.queue"),
    (
        "[[path.before]]\nkind = \"link\"\nrate = \"9 Mbit/s\"\nbuffer = \"50 KB\"\nqueue = \"QUEUE\"",
        "path.before[0].queue",
    ),
    (
        "[[path.after]]\nkind = \"token_bucket\"\nrate = \"9 Mbit/s\"\nburst = \"9 KB\"\nbuffer = \"50 KB\"\n\
         queue = \"QUEUE\"",
        "path.after[0].queue",
    ),
    (
        "[[path.reverse.before]]\nkind = \"link\"\nrate = \"9 Mbit/s\"\nbuffer = \"50 KB\"\nqueue = \"QUEUE\"",
        "path.reverse.before[0].queue",
    ),
];

fn scenario(lines: &str) -> String {
    format!("{PATH}{lines}\n{FLOW}")
}

fn disciplines(spec: &Spec) -> Vec<DisciplineConfig> {
    let elements = spec.forward.iter().chain(&spec.reverse);
    let queues = elements.filter_map(|element| match element {
        ElementConfig::Link { queue, .. }
        | ElementConfig::DeliveryTrace { queue, .. }
        | ElementConfig::TokenBucket { queue, .. } => Some(queue.discipline),
        _ => None,
    });
    queues.filter(|discipline| !discipline.is_fifo()).collect()
}

fn managed() -> impl Iterator<Item = &'static DisciplineInfo> {
    DISCIPLINES.iter().filter(|info| info.name != "fifo")
}

#[test]
fn every_queue_accepts_every_discipline() {
    for (lines, _) in PLACES {
        let plain = toml(&scenario(&lines.replace("QUEUE", "fifo")));
        let without: Vec<&str> = lines.lines().filter(|line| !line.starts_with("queue")).collect();
        assert_eq!(plain.to_json(), toml(&scenario(&without.join("\n"))).to_json(), "{lines}");
        for info in managed() {
            let spec = toml(&scenario(&lines.replace("QUEUE", info.name)));
            assert_eq!(disciplines(&spec), [DisciplineConfig::by_name(info.name).unwrap()], "{lines}");
            assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec);
            let mut back = spec.clone();
            for element in back.forward.iter_mut().chain(&mut back.reverse) {
                if let ElementConfig::Link { queue, .. }
                | ElementConfig::DeliveryTrace { queue, .. }
                | ElementConfig::TokenBucket { queue, .. } = element
                {
                    queue.discipline = DisciplineConfig::FIFO;
                }
            }
            assert_eq!(back, plain, "{lines}");
        }
    }
}

#[test]
fn unknown_discipline_error_names_field() {
    for (lines, field) in PLACES {
        let error = error(&scenario(&lines.replace("QUEUE", "fifoo:target=5 ms"))).to_string();
        let start = format!("{field}: \"fifoo\" is not a queue discipline; expected one of fifo");
        assert!(error.starts_with(&start) && error.ends_with("did you mean fifo?"), "{error}");
    }
}

#[test]
fn drop_tail_is_omitted_from_spec() {
    let json = toml(&scenario("queue = \"fifo\"")).to_json();
    assert!(json.contains("\"queue\":{\"bytes\":500000}"), "{json}");
}

#[test]
fn reverse_queue_requires_rate() {
    let error = error(&scenario("[path.reverse]\nqueue = \"fifo\"")).to_string();
    assert_all(&error, &["path.reverse.rate: nothing is given", "because there is a buffer, a queue"]);
}

#[test]
fn a_queue_is_a_text() {
    for wrong in ["5", "true", "[\"fifo\"]", "{ kind = \"fifo\" }"] {
        let error = error(&scenario(&format!("queue = {wrong}"))).to_string();
        assert!(error.starts_with("path.queue: "), "{error}");
    }
}

#[test]
fn cellular_radio_refuses_queue_management() {
    let radio = "[[path.before]]\nkind = \"cellular\"\nrates = [\"5 Mbit/s\", \"9 Mbit/s\"]\nreview = \"5 ms\"\n\
                 demand = \"5 ms\"\nbuffer = \"100 KB\"\n";
    assert_eq!(toml(&scenario(radio)), toml(&scenario(&format!("{radio}queue = \"fifo\""))));
    for info in managed() {
        let error = error(&scenario(&format!("{radio}queue = \"{}\"", info.name))).to_string();
        let parts =
            ["path.before[0].queue: ", "cannot manage the queue of a cellular radio", "expected fifo"];
        assert_all(&error, &parts);
        let mut spec = toml(&scenario(radio));
        let Some(ElementConfig::Cellular { queue, .. }) = spec.forward.first_mut() else {
            panic!("{spec:?}")
        };
        queue.discipline = DisciplineConfig::by_name(info.name).unwrap();
        let error = spec.validate().unwrap_err().to_string();
        assert_all(&error, &["forward[0].queue.discipline", "fifo, as of every cellular radio"]);
    }
}

#[test]
fn out_of_range_setting_is_refused() {
    for info in managed() {
        let spec = toml(&scenario(&format!("queue = \"{}\"", info.name)));
        for setting in info.settings.iter().filter(|setting| *setting.range.end() < u64::MAX) {
            let mut json: serde_json::Value = serde_json::from_str(&spec.to_json()).unwrap();
            let discipline = json["forward"][0]["queue"]["discipline"].as_object_mut().unwrap();
            let key = key_of(info, setting);
            assert_eq!(discipline[&key], setting.default);
            discipline[&key] = (setting.range.end() + 1).into();
            let error = Spec::from_json(&json.to_string()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("forward[0].queue.discipline.{}: ", setting.name)), "{error}");
        }
    }
}

/// The key of a setting in the JSON of its discipline: the one that changes with it.
fn key_of(info: &DisciplineInfo, setting: &SettingInfo) -> String {
    let json = |config| serde_json::to_value(config).unwrap();
    let mut config = DisciplineConfig::by_name(info.name).unwrap();
    let before = json(config);
    let (low, high) = (*setting.range.start(), *setting.range.end());
    config.set(setting.name, if setting.default == low { high } else { low }).unwrap();
    let after = json(config);
    let changed = before.as_object().unwrap().iter().find(|(key, value)| after[key.as_str()] != **value);
    changed.unwrap_or_else(|| panic!("{} of {}", setting.name, info.name)).0.clone()
}
