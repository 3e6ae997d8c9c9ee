//! Controllers that a program brings, and specs that nobody has checked.

mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use common::{assert_same, attempt, run, scenario};
use fullpipe_path::config::{ElementConfig, Schedule};
use fullpipe_quic::{Options, Own, QuicError, run_with};
use fullpipe_units::Rate;

const PATH: &str = r#"rate = "10 Mbit/s", rtt = "40 ms""#;

#[test]
fn custom_controller_matches_shipped_one() {
    let own = [
        Own::noq("mine", Arc::new(noq_proto::congestion::CubicConfig::default())),
        Own::quinn("mine", Arc::new(quinn_proto::congestion::CubicConfig::default())),
    ];
    for stack in ["noq", "quinn"] {
        let of = |name: &str| {
            scenario(
                4.0,
                PATH,
                &format!("{{ controller = \"{stack}:{name}\", label = \"one\", size = \"2 MB\" }}"),
            )
        };
        let mut mine = run_with(&of("mine"), 1, &AtomicBool::new(false), Options::default(), &own).unwrap();
        let shipped = run(&of("cubic"), 1);
        mine.provenance.spec_json.clone_from(&shipped.provenance.spec_json);
        mine.flows[0].controller.clone_from(&shipped.flows[0].controller);
        // One of a program's own may have a rate, which Quinn's pacer does not take.
        let reported = mine.provenance.unsupported.iter().any(|sentence| sentence.contains("takes no rate"));
        assert_eq!(reported, stack == "quinn");
        mine.provenance.unsupported.clone_from(&shipped.provenance.unsupported);
        assert_same(&mine, &shipped, stack);
        let sentence = attempt(&of("mine"), 1).unwrap_err().to_string();
        assert!(sentence.contains(&format!("{stack} has no controller mine")), "{sentence}");
    }
}

#[test]
fn an_impossible_path_is_an_error() {
    let mut spec = scenario(2.0, PATH, r#"{ controller = "noq:cubic" }"#);
    let ElementConfig::Link { rate_bps, .. } = &mut spec.forward[0] else { panic!("a link") };
    *rate_bps = Schedule::constant(Rate::ZERO);
    assert!(matches!(attempt(&spec, 1), Err(QuicError::Path(_))));
}

#[test]
fn dead_path_ends_with_scenario() {
    for controller in ["noq:bbr3", "quinn:cubic", "bbr3"] {
        let spec = scenario(
            120.0,
            r#"rate = "10 Mbit/s", rtt = "40 ms", loss = "100 %""#,
            &format!("{{ controller = \"{controller}\" }}"),
        );
        let totals = run(&spec, 1).flows[0].totals;
        assert_eq!((totals.delivered_bytes, totals.end_ns), (0, 120_000_000_000), "{controller}");
        assert!(totals.segments_sent >= 4, "{controller}: {totals:?}");
    }
}
