//! A path in a line, so that a recording states on what path it was recorded.

use fullpipe_path::config::ElementConfig;
use fullpipe_scenario::spec::Spec;

/// Both directions, their elements in order.
pub(super) fn in_a_line(spec: &Spec) -> String {
    let direction = |elements: &[ElementConfig]| {
        elements.iter().map(ElementConfig::to_string).collect::<Vec<_>>().join(", ")
    };
    format!("{}; back: {}", direction(&spec.forward), direction(&spec.reverse))
}
