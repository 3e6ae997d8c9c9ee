//! What a result says of what was not supported.

mod common;

use common::{run, with_hosts};
use serde_json::Value;

const PATH: &str = r#"rate = "5 Mbit/s", rtt = "20 ms""#;
const QUINNS_PACER: &str =
    "quinn's pacer takes no rate: it paces by 1.25 windows a smoothed RTT, in bursts of 10 to 256 packets.";
const PACING: &str = "hosts.pacing is ignored: the stack paces every flow.";

/// The sentences in the summary of a short run, as a reader finds them; none if the list is left out.
fn sentences(flows: &str, hosts: &str) -> Vec<String> {
    let record = run(&with_hosts(0.2, PATH, flows, hosts), 1);
    let summary: Value = serde_json::from_str(&record.summary_json()).unwrap();
    let provenance = &summary["provenance"];
    assert_eq!(provenance["sysctls"], serde_json::json!([["quic.batch", "10"]]), "{flows}");
    let listed = provenance.get("unsupported").map(|listed| listed.as_array().unwrap().as_slice());
    listed.unwrap_or_default().iter().map(|one| one.as_str().unwrap().to_owned()).collect()
}

fn flow(controller: &str) -> String {
    format!("{{ controller = \"{controller}\" }}")
}

#[test]
fn only_quinn_bbr_pacing_is_unsupported() {
    assert_eq!(sentences(&flow("quinn:bbr"), ""), [QUINNS_PACER]);
    for controller in ["quinn:cubic", "quinn:newreno"] {
        assert_eq!(sentences(&flow(controller), ""), [""; 0], "{controller}");
    }
}

#[test]
fn builtin_controllers_report_adapter_limits() {
    assert_eq!(sentences(&flow("bbr3"), ""), fullpipe_noq::unsupported());
    for controller in ["noq:bbr3", "noq:cubic", "noq:newreno"] {
        assert_eq!(sentences(&flow(controller), ""), [""; 0], "{controller}");
    }
}

#[test]
fn ignored_non_default_settings_are_named() {
    assert_eq!(sentences(&flow("noq:cubic"), "pacing = true"), [PACING]);
    assert_eq!(sentences(&flow("noq:cubic"), r#"pacing = false, model = "ideal""#), [""; 0]);
    let both = sentences(&flow("quinn:cubic"), r#"pacing = true, model = "linux""#);
    assert_eq!(both[0], PACING);
    assert!(both[1].starts_with("hosts.model is ignored") && both.len() == 2, "{both:?}");
}

#[test]
fn only_noq_transfers_warn_of_hole() {
    let finite =
        |controller: &str| sentences(&format!("{{ controller = \"{controller}\", size = \"10 kB\" }}"), "");
    let noq = finite("noq:cubic");
    assert!(noq.len() == 1 && noq[0].starts_with("noq can lose bytes of a stream"), "{noq:?}");
    assert_eq!(finite("bbr3"), [fullpipe_noq::unsupported(), &[noq[0].as_str()]].concat());
    assert_eq!(finite("quinn:cubic"), [""; 0]);
}

#[test]
fn several_flows_repeat_no_warning() {
    let flows = ["bbr3", "quinn:bbr", "cubic", "quinn:bbr"].map(flow).join(", ");
    let expected = [fullpipe_noq::unsupported(), &[QUINNS_PACER, PACING]].concat();
    assert_eq!(sentences(&flows, "pacing = true"), expected);
}
