//! Receivers that lie: what each lie does to a sender that believes it, and what it does not do.

use std::sync::atomic::AtomicBool;

use fullpipe_record::Run;
use fullpipe_record::measures::FlowMeasures;
use fullpipe_scenario::{Format, resolve};
use serde_json::{Value, json};

/// A flow over 20 Mbit/s and 40 ms; `path` has further keys.
fn run(flow: &Value, path: &Value) -> Run {
    let mut document = json!({
        "duration": "20 s",
        "path": { "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "1 bdp", "reverse": { "rate": "100 Mbit/s" } },
        "flows": [flow],
    });
    path.as_object().unwrap().iter().for_each(|(key, value)| document["path"][key] = value.clone());
    let spec = resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error}"));
    let run = || fullpipe_sim::run(&spec, 1, &AtomicBool::new(false)).expect("nothing cancels it");
    let (one, other) = (run(), run());
    assert!(one.flows == other.flows && one.links == other.links, "a run repeats");
    one
}

fn goodput(run: &Run) -> f64 {
    FlowMeasures::of(&run.flows[0]).goodput_bps / 1e6
}

/// Its acknowledgements.
fn acks(run: &Run) -> u64 {
    run.links.last().expect("the link on the way back").totals.arrived_packets
}

fn flow(controller: &str, receiver: Option<&str>) -> Value {
    let mut flow = json!({ "controller": controller });
    receiver.into_iter().for_each(|lie| flow["receiver"] = json!(lie));
    flow
}

#[test]
fn hidden_loss_is_neither_repaired_nor_delivered() {
    let path = json!({ "loss": "1 %" });
    let honest = run(&flow("reno", None), &path);
    let lying = run(&flow("reno", Some("hides_loss")), &path);
    assert!(honest.flows[0].totals.retransmits > 50, "{:?}", honest.flows[0].totals);
    let totals = &lying.flows[0].totals;
    assert_eq!((totals.retransmits, totals.timeouts), (0, 0));
    // It fills the path with what a window limits no more. Not all that was sent arrives.
    assert!(goodput(&honest) < 8.0 && goodput(&lying) > 15.0, "{} {}", goodput(&honest), goodput(&lying));
    let sent = totals.segments_sent * 1448;
    let arrived = totals.delivered_bytes as f64 / sent as f64;
    assert!(arrived < 0.98, "{arrived} of {sent} B: more than the queue holds was lost");
}

#[test]
fn receiver_without_loss_has_nothing_to_hide() {
    let path = json!({ "buffer": "10 bdp" });
    let (honest, lying) = (flow("vegas", None), flow("vegas", Some("hides_loss")));
    assert_eq!(run(&honest, &path).flows, run(&lying, &path).flows);
}

#[test]
fn reordered_data_is_late_for_receiver_that_hides_loss() {
    let path = json!({ "jitter": "5 ms", "jitter_reorders": true });
    let lying = run(&flow("fixed:rate=10", Some("hides_loss")), &path);
    let totals = &lying.flows[0].totals;
    assert_eq!(totals.retransmits, 0);
    assert!(totals.delivered_bytes < totals.segments_sent * 1448 * 9 / 10, "{totals:?}");
}

#[test]
fn hidden_marks_slow_nobody() {
    for controller in ["cubic", "dctcp"] {
        let path = json!({ "queue": "step:threshold=20", "buffer": "4 bdp" });
        let marked = |receiver, ecn: bool| {
            let mut flow = flow(controller, receiver);
            flow["ecn"] = json!(ecn);
            let run = run(&flow, &path);
            let bottleneck = &run.links[0].totals;
            (bottleneck.marked_packets as f64 / bottleneck.arrived_packets as f64, run)
        };
        let (honest, _) = marked(None, true);
        let (lying, of_liar) = marked(Some("hides_ce"), true);
        assert!(honest < 0.5 && lying > 0.8, "{controller}: {honest} {lying}");
        // It is not deaf to drops.
        assert!(of_liar.flows[0].totals.retransmits > 0);
        // Without ECN there is nothing to hide.
        if controller == "cubic" {
            assert_eq!(marked(None, false).1.flows, marked(Some("hides_ce"), false).1.flows);
        }
    }
}

#[test]
fn sender_that_counts_segments_gains_nothing_from_split_acks() {
    for controller in ["reno", "cubic", "bbr1", "bbr3"] {
        let honest = run(&flow(controller, None), &json!({}));
        let lying = run(&flow(controller, Some("splits_acks")), &json!({}));
        let per_segment = |run: &Run| acks(run) as f64 / run.flows[0].totals.segments_sent as f64;
        assert!((1.9..2.01).contains(&per_segment(&lying)), "{controller}: {}", per_segment(&lying));
        assert!(per_segment(&honest) < 1.0, "{controller}: {}", per_segment(&honest));
        let gain = goodput(&lying) / goodput(&honest);
        assert!((0.9..1.1).contains(&gain), "{controller}: {gain}");
    }
}
