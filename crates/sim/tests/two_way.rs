//! Flows in the reverse direction: alone they are as fast as others, and between flows of both directions ACKs wait behind data
//! (Zhang, Shenker and Clark, SIGCOMM 1991).

use std::sync::atomic::AtomicBool;

use fullpipe_path::Change;
use fullpipe_record::Run;
use fullpipe_record::measures::{Fairness, FlowMeasures, LinkMeasures, TotalMeasures};
use fullpipe_scenario::{Format, Spec, resolve};
use fullpipe_sim::{Place, Simulation};
use fullpipe_units::{Rate, Time};
use serde_json::{Value, json};

/// These flows over 20 Mbit/s and 40 ms, with `back` Mbit/s on the way back. Nothing is random.
fn spec(back: f64, flows: &[Value]) -> Spec {
    let flows: Vec<Value> = flows
        .iter()
        .map(|flow| {
            let mut flow = flow.clone();
            flow["start_jitter"] = json!("0 s");
            flow
        })
        .collect();
    let document = json!({
        "duration": "20 s",
        "path": {
            "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "100 KB",
            "reverse": { "rate": format!("{back} Mbit/s"), "buffer": "100 KB" },
        },
        "flows": flows,
    });
    resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error}"))
}

fn run(back: f64, flows: &[Value]) -> Run {
    fullpipe_sim::run(&spec(back, flows), 1, &AtomicBool::new(false)).expect("nothing cancels it")
}

fn forward(controller: &str) -> Value {
    json!({ "controller": controller, "label": "forward" })
}

fn reverse(controller: &str) -> Value {
    json!({ "controller": controller, "label": "reverse", "direction": "reverse" })
}

fn goodput(run: &Run, flow: usize) -> f64 {
    FlowMeasures::of(&run.flows[flow]).goodput_bps / 1e6
}

#[test]
fn lone_reverse_flow_equals_forward_flow_on_symmetric_path() {
    for controller in ["reno", "cubic", "bbr1", "bbr3", "vegas"] {
        for more in
            [json!({}), json!({ "size": "3 MB" }), json!({ "rtt": "90 ms" }), json!({ "max_cwnd": "1 bdp" })]
        {
            let with = |mut flow: Value| {
                more.as_object().unwrap().iter().for_each(|(key, value)| flow[key] = value.clone());
                flow
            };
            let there = run(20.0, &[with(forward(controller))]);
            let back = run(20.0, &[with(reverse(controller))]);
            assert_eq!(there.flows[0].series, back.flows[0].series, "{controller} {more}");
            assert_eq!(there.flows[0].totals.delivered_bytes, back.flows[0].totals.delivered_bytes);
            let queues = |run: &Run| [0, 1].map(|link: usize| run.links[link].totals);
            let [one, other] = queues(&there);
            assert_eq!([other, one], queues(&back), "{controller} {more}");
        }
        // The control: the same flow over a slower way back.
        assert!(goodput(&run(10.0, &[reverse(controller)]), 0) < 10.0);
    }
}

#[test]
fn two_way_traffic_is_symmetric_on_symmetric_path() {
    for controller in ["reno", "cubic", "bbr1"] {
        let both = run(20.0, &[forward(controller), reverse(controller)]);
        let ratio = goodput(&both, 0) / goodput(&both, 1);
        assert!((0.9..1.1).contains(&ratio), "{controller}: {ratio}");
        // The control: two flows of one direction share it.
        let shared = run(20.0, &[forward(controller), forward_as("other", controller)]);
        assert!(goodput(&both, 0) > 1.4 * goodput(&shared, 0).min(goodput(&shared, 1)), "{controller}");
    }
}

fn forward_as(label: &str, controller: &str) -> Value {
    json!({ "controller": controller, "label": label })
}

#[test]
fn acks_wait_behind_reverse_data() {
    let alone = run(1.0, &[forward("cubic")]);
    let both = run(1.0, &[forward("cubic"), reverse("cubic")]);
    // 1 Mbit/s carries the ACKs of 20 Mbit/s, one for two segments, as long as they are alone.
    assert!(goodput(&alone, 0) > 18.0, "{}", goodput(&alone, 0));
    assert!(goodput(&both, 0) < 0.8 * goodput(&alone, 0), "{} of {}", goodput(&both, 0), goodput(&alone, 0));
    assert!(goodput(&both, 1) < 1.0, "{}", goodput(&both, 1));
    // What they wait for is the queue on the way back.
    let rtt = |run: &Run| FlowMeasures::of(&run.flows[0]).rtt_ms.unwrap().p50;
    let wait = |run: &Run| LinkMeasures::of(&run.links[1]).queue_delay_ms.unwrap().p50;
    assert!(wait(&alone) < 5.0 && wait(&both) > 100.0, "{} {}", wait(&alone), wait(&both));
    assert!(rtt(&both) > rtt(&alone) + 100.0, "{} {}", rtt(&both), rtt(&alone));
}

#[test]
fn path_of_both_directions_can_change() {
    let spec = spec(10.0, &[forward("cubic"), reverse("bbr1")]);
    let stepped = |change: bool| {
        let mut simulation = Simulation::new(&spec, 1).unwrap();
        for second in 0..20 {
            simulation.advance(Time::from_micros(1_000_000 * second)).unwrap();
            if change && second == 10 {
                let slower = Change::Rate(Rate::from_bits_per_sec(1_000_000));
                simulation.change(Place::Named("reverse"), slower).unwrap();
            }
        }
        simulation.advance(Time::NEVER).unwrap();
        simulation.finish()
    };
    let (whole, steps, slowed) =
        (run(10.0, &[forward("cubic"), reverse("bbr1")]), stepped(false), stepped(true));
    assert!(whole.flows == steps.flows && whole.links == steps.links);
    assert!(goodput(&slowed, 1) < 0.7 * goodput(&whole, 1), "{}", goodput(&slowed, 1));
}

#[test]
fn totals_do_not_add_directions() {
    let both = run(20.0, &[forward("cubic"), reverse("cubic"), reverse("reno")]);
    let total = TotalMeasures::of(&both.flows).total_goodput_bps / 1e6;
    assert!((total / goodput(&both, 0) - 1.0).abs() < 1e-9, "{total} of {}", goodput(&both, 0));
    let fairness = Fairness::of(&both);
    assert_eq!(fairness.jain_index, Some(1.0), "one flow has the forward path");
    let shares: Vec<f64> = fairness.shares.iter().map(|one| one.share.unwrap()).collect();
    assert_eq!(shares[0], 1.0);
    assert!((shares[1] + shares[2] - 1.0).abs() < 1e-9 && shares[1] < 1.0, "{shares:?}");
    // Without forward flows, they are those of the others.
    let back = run(20.0, &[reverse("cubic"), reverse("reno")]);
    let total = TotalMeasures::of(&back.flows).total_goodput_bps / 1e6;
    assert!(total > 15.0 && Fairness::of(&back).jain_index.unwrap() < 1.0, "{total}");
}
