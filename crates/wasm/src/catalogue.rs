//! What the engine knows.

use fullpipe_cc::parameter::Kind;
use fullpipe_cc::{CATALOGUE, CaState, ParameterInfo, Phase};
use fullpipe_path::{DISCIPLINES, SettingInfo};
use fullpipe_scenario::queue;
use serde::Serialize;

/// The scenarios that the package ships.
const SCENARIOS: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/scenarios.rs"));

#[derive(Serialize)]
pub(crate) struct Catalogue {
    version: &'static str,
    controllers: Vec<Named>,
    queues: Vec<Named>,
    /// The keys of a path that a visitor can set.
    options: serde_json::Value,
    scenarios: Vec<Scenario>,
    phases: [&'static str; Phase::ALL.len()],
    states: [&'static str; CaState::ALL.len()],
}

#[derive(Serialize)]
struct Named {
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct Parameter {
    name: &'static str,
    default: String,
    summary: &'static str,
}

#[derive(Serialize)]
struct Scenario {
    name: &'static str,
    text: &'static str,
}

impl Catalogue {
    pub(crate) fn new() -> Catalogue {
        let controllers = CATALOGUE.iter().map(|info| Named {
            name: info.name,
            summary: info.summary,
            source: info.source,
            parameters: info.parameters.iter().map(parameter).collect(),
        });
        let queues = DISCIPLINES.iter().map(|info| Named {
            name: info.name,
            summary: info.summary,
            source: info.source,
            parameters: info.settings.iter().map(setting).collect(),
        });
        // Resolving each would take longer than all the rest.
        let needs = ["deliveries = ", "client = "];
        let runnable = SCENARIOS.iter().filter(|(_, text)| !needs.iter().any(|key| text.contains(key)));
        Catalogue {
            version: env!("CARGO_PKG_VERSION"),
            controllers: controllers.collect(),
            queues: queues.collect(),
            options: fullpipe_scenario::path_options(),
            scenarios: runnable.map(|&(name, text)| Scenario { name, text }).collect(),
            phases: Phase::ALL.map(Phase::name),
            states: CaState::ALL.map(CaState::name),
        }
    }
}

fn parameter(info: &ParameterInfo) -> Parameter {
    let default = match info.kind {
        Kind::Choice(names) => names[info.default.as_f64() as usize].to_owned(),
        Kind::Whole | Kind::Switch | Kind::Fraction { .. } => info.default.to_string(),
    };
    Parameter { name: info.name, default, summary: info.summary }
}

fn setting(info: &SettingInfo) -> Parameter {
    Parameter { name: info.name, default: queue::value(info.unit, info.default), summary: info.summary }
}

#[cfg(test)]
mod tests {
    use fullpipe_scenario::Format;

    use super::*;
    use crate::limits;

    #[test]
    fn catalogue_lists_every_resolvable_scenario() {
        let listed: Vec<&str> = Catalogue::new().scenarios.iter().map(|scenario| scenario.name).collect();
        assert!(listed.len() > 10 && listed.len() < SCENARIOS.len());
        for (name, text) in SCENARIOS {
            let resolved = limits::resolve(text, Format::Toml);
            assert_eq!(listed.contains(name), resolved.is_ok(), "{name}: {:?}", resolved.err());
        }
    }
}
