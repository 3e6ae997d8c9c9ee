//! A run as an object: however it is advanced, and whatever is changed meanwhile.

mod random;

use std::sync::atomic::AtomicBool;

use fullpipe_cc::{Any, Params};
use fullpipe_path::Change;
use fullpipe_path::config::Probability;
use fullpipe_record::Run;
use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::{Format, resolve};
use fullpipe_sim::{Place, SimError, Simulation, Status, run};
use fullpipe_units::{Bytes, Duration, Rate, Time};
use proptest::prelude::*;
use serde_json::{Value, json};

fn spec(document: &Value) -> Spec {
    resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error} in {document}"))
}

fn whole(spec: &Spec, seed: u64) -> Run {
    run(spec, seed, &AtomicBool::new(false)).expect("nothing cancels it")
}

/// Where two texts part.
fn first_difference(one: &str, other: &str) -> String {
    let at = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    let around = |text: &str| text[at.saturating_sub(200)..(at + 100).min(text.len())].to_owned();
    format!("{}\n{}", around(one), around(other))
}

/// All that a run leaves, as text: a `Run` has no equality.
fn text(run: &Run) -> String {
    format!("{run:?}")
}

/// Both runs as text, the second of which knew the changes at `times` from the start. Nothing differs but a queue's delay as
/// sampled before a change: if something will wait beyond the change, only the schedule knows how long.
fn texts(mut one: Run, mut other: Run, times: &[Time]) -> (String, String) {
    for (one, other) in one.links.iter_mut().zip(&mut other.links) {
        let (one, other) = (&mut one.series, &mut other.series);
        for (index, &at) in one.time_ns.iter().enumerate() {
            let delays = (&mut one.queue_delay_ns[index], &mut other.queue_delay_ns[index]);
            let clear = at.saturating_add(*delays.0.max(&mut *delays.1));
            if times.iter().any(|time| (at..=clear).contains(&time.as_nanos())) {
                (*delays.0, *delays.1) = (0, 0);
            }
        }
    }
    (text(&one), text(&other))
}

fn millis(millis: u64) -> Time {
    Time::from_micros(millis * 1000)
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bits_per_sec(mbit * 1_000_000)
}

fn small() -> Value {
    json!({
        "name": "small",
        "duration": "3 s",
        "path": { "rate": "10 Mbit/s", "rtt": "40 ms", "loss": "0 %" },
        "flows": [{ "controller": "cubic" }],
    })
}

fn of_own() -> Value {
    let mut document = small();
    document["flows"] = json!([{ "controller": "own:mine" }]);
    document
}

/// Random scenarios of all kinds.
fn scenario() -> impl Strategy<Value = (u64, Value)> {
    (any::<u64>(), 0..3u8).prop_map(|(number, kind)| {
        let document = match kind {
            0 => random::scenario(number),
            1 => random::scenario_with_a_longer_way_back(number),
            _ => random::scenario_of_transfers(number),
        };
        (number, document)
    })
}

/// Times before, in and behind the 2.5 s of the scenarios, some of them the same.
fn cuts() -> impl Strategy<Value = Vec<Time>> {
    let cut = prop_oneof![
        3 => 0u64..2_600_000_000,
        1 => (0u64..26).prop_map(|tenths| tenths * 100_000_000),
        1 => Just(0),
    ];
    prop::collection::vec(cut, 0..12).prop_map(|mut nanos| {
        nanos.sort_unstable();
        nanos.into_iter().map(Time::from_nanos).collect()
    })
}

/// A change of what most paths have: a name of a queue, or a position on one of the ways.
fn change() -> impl Strategy<Value = (Option<usize>, Change)> {
    let change = prop_oneof![
        4 => prop_oneof![1 => Just(0u64), 6 => 1u64..50].prop_map(|rate| Change::Rate(mbit(rate))),
        1 => (0u64..60_000).prop_map(|micros| Change::Delay(Duration::from_micros(micros))),
        1 => (0.0..0.2).prop_map(|share| Change::Loss(Probability::from_f64(share))),
    ];
    (prop::option::of(0usize..12), change)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn stepwise_advance_matches_single_run((seed, document) in scenario(), cuts in cuts()) {
        let spec = spec(&document);
        let expected = text(&whole(&spec, seed));
        for mut simulation in [Simulation::new(&spec, seed).unwrap(), Simulation::fixed(&spec, seed).unwrap()] {
            for &cut in &cuts {
                let status = simulation.advance(cut).unwrap();
                prop_assert!(simulation.now() == cut || status == Status::Over);
                // What can be seen can be asked at any time, and asking changes nothing.
                for index in 0..simulation.flows() {
                    let _ = (simulation.flow(index).sample(), simulation.flow(index).lost());
                }
                let _ = simulation.queues();
            }
            prop_assert_eq!(simulation.advance(Time::NEVER), Ok(Status::Over));
            prop_assert!(text(&simulation.finish()) == expected, "advanced to {cuts:?}: {document}");
        }
    }

    /// Conservation is checked by `finish`.
    #[test]
    fn live_change_matches_scenario_change(
        (seed, document) in scenario(),
        cuts in cuts(),
        changes in prop::collection::vec(change(), 12),
    ) {
        let spec = spec(&document);
        let mut simulation = Simulation::new(&spec, seed).unwrap();
        let mut times = Vec::new();
        for (&cut, &(index, change)) in cuts.iter().zip(&changes) {
            // Before the first advance, too.
            let place = match index {
                None => Place::Path,
                Some(index) if index % 2 == 0 => Place::Forward(index / 2),
                Some(index) => Place::Reverse(index / 2),
            };
            let before = simulation.spec().clone();
            // A delay that never changed keeps another order at equal times than one that does; only packets that overtake, of
            // flows with delays of their own, can show it.
            let exotic = matches!(change, Change::Delay(_)) && document.to_string().contains("reorder");
            if exotic || simulation.change(place, change).is_err() {
                prop_assert_eq!(&before, simulation.spec());
            }
            times.push(simulation.now());
            simulation.advance(cut).unwrap();
        }
        simulation.advance(Time::NEVER).unwrap();
        let changed = simulation.spec().clone();
        let (ours, scheduled) = texts(simulation.finish(), whole(&changed, seed), &times);
        prop_assert!(ours == scheduled, "{changed:?}\n{}", first_difference(&ours, &scheduled));
    }
}

#[test]
fn live_rate_change_matches_schedule() {
    let mut scheduled = small();
    scheduled["path"]["changes"] =
        json!([{ "at": "1 s", "rate": "5 Mbit/s" }, { "at": "2 s", "rate": "20 Mbit/s" }]);
    let mut simulation = Simulation::new(&spec(&small()), 7).unwrap();
    for (at, rate) in [(1000, 5), (2000, 20)] {
        simulation.advance(millis(at)).unwrap();
        simulation.change(Place::Path, Change::Rate(mbit(rate))).unwrap();
    }
    simulation.advance(Time::NEVER).unwrap();
    let (ours, scheduled) =
        texts(simulation.finish(), whole(&spec(&scheduled), 7), &[millis(1000), millis(2000)]);
    assert_eq!(ours, scheduled);
}

#[test]
fn live_delay_loss_buffer_changes_apply() {
    let mut simulation = Simulation::new(&spec(&small()), 1).unwrap();
    simulation.advance(millis(1500)).unwrap();
    let srtt_ms = |simulation: &Simulation| simulation.flow(0).sample().unwrap().srtt_ns.unwrap() / 1_000_000;
    assert!(srtt_ms(&simulation) < 90, "{}", srtt_ms(&simulation));
    assert_eq!(simulation.bdp(None, None), Some(Bytes::new(50_000)));
    let (rate, rtt) = (Rate::from_bits_per_sec(1_000_000), Duration::from_millis(80));
    assert_eq!(simulation.bdp(Some(rate), Some(rtt)), Some(Bytes::new(10_000)));
    simulation.change_rtt(Duration::from_millis(150)).unwrap();
    simulation.advance(millis(2000)).unwrap();
    assert!(srtt_ms(&simulation) >= 150, "{}", srtt_ms(&simulation));
    let lost = simulation.flow(0).lost();
    simulation.change(Place::Path, Change::Loss(Probability::from_f64(0.5))).unwrap();
    simulation.advance(millis(2500)).unwrap();
    assert!(simulation.flow(0).lost() > lost + 5);
    simulation.change(Place::Named("bottleneck"), Change::Buffer(Bytes::new(1500))).unwrap();
    simulation.advance(millis(3000)).unwrap();
    assert!(simulation.queues()[0].sample.backlog_bytes <= 1500);
    assert!(simulation.queues()[0].sample.dropped_packets > 0);
    simulation.finish();
}

#[test]
fn unsupported_change_errors_and_changes_nothing() {
    let mut document = small();
    document["path"] = json!({ "rate": "10 Mbit/s", "rtt": "0 s", "burst": "20 KB", "buffer": "100 KB" });
    let spec = spec(&document);
    let mut simulation = Simulation::new(&spec, 1).unwrap();
    let mut message = |place, change| simulation.change(place, change).unwrap_err().to_string();
    assert_eq!(
        message(Place::Path, Change::Rate(mbit(1))),
        "element 0 (token_bucket): rate_bps is 1 Mbit/s, expected a link, whose rate can change"
    );
    assert_eq!(
        message(Place::Path, Change::Loss(Probability::ZERO)),
        "loss: the path has no loss that could change; expected path.loss in the scenario, if only \"0 %\""
    );
    assert_eq!(
        message(Place::Path, Change::Delay(Duration::ZERO)),
        "delay: the path has no delay that could change; expected path.rtt above 0 in the scenario"
    );
    assert_eq!(
        message(Place::Named("wifi"), Change::Rate(mbit(1))),
        "element: wifi is not on the path; expected one of bottleneck, forward[0..1] or reverse[0..0]"
    );
    assert!(
        simulation.change_rtt(Duration::ZERO).unwrap_err().to_string().starts_with("rtt: the path has none")
    );
    assert_eq!((simulation.spec(), simulation.bdp(None, None)), (&spec, None));
    let mut fixed = Simulation::fixed(&spec, 1).unwrap();
    assert!(matches!(fixed.change(Place::Path, Change::Rate(mbit(1))), Err(SimError::Refused { .. })));
}

#[test]
fn early_finish_returns_partial_record() {
    let mut simulation = Simulation::new(&spec(&small()), 1).unwrap();
    simulation.advance(millis(1000)).unwrap();
    let delivered = simulation.flow(0).delivered_bytes();
    let seen = simulation.flow_series(0).len();
    let run = simulation.finish();
    assert_eq!((run.flows[0].totals.end_ns, run.flows[0].totals.delivered_bytes), (1_000_000_000, delivered));
    assert_eq!(run.flows[0].series.len(), seen);
    assert_eq!(run.links[0].totals.capacity_bytes, Some(1_250_000));
    assert_eq!(Simulation::new(&spec(&small()), 1).unwrap().finish().flows[0].totals.delivered_bytes, 0);
}

#[test]
fn cancelled_run_resumes() {
    let mut simulation = Simulation::new(&spec(&small()), 1).unwrap();
    let cancel = AtomicBool::new(true);
    while simulation.advance_unless(Time::NEVER, &cancel) == Err(SimError::Cancelled) {
        assert_eq!(simulation.status(), Status::Running);
    }
    assert_eq!(text(&simulation.finish()), text(&whole(&spec(&small()), 1)));
}

#[test]
fn boxed_controller_matches_builtin() {
    // ACKs that report nothing take a shorter way to a built-in one: alone, between losses, and with an application that pauses.
    let flows = [
        ("0 %", json!({})),
        ("0.5 %", json!({})),
        ("0 %", json!({ "requests": { "size": "200 kB", "pause": "100 ms" } })),
    ];
    for (name, (loss, flow)) in
        ["bbr1", "cubic"].into_iter().flat_map(|name| flows.clone().map(|one| (name, one)))
    {
        let document = |controller: &str| {
            let mut document = small();
            document["path"]["loss"] = json!(loss);
            document["flows"][0] = flow.clone();
            document["flows"][0]["controller"] = json!(controller);
            document["flows"][0]["label"] = json!("flow");
            document
        };
        let (built_in, own) = (document(name), document("own:mine"));
        let mut simulation = Simulation::fixed(&spec(&own), 3).unwrap();
        let params = Params::by_name(name).unwrap();
        simulation
            .controller_from(
                0,
                params.needs_pacing(),
                Box::new(move |config, connection| Box::new(Any::new(&params, config, connection))),
            )
            .unwrap();
        simulation.advance(Time::NEVER).unwrap();
        let (own, built_in) = (simulation.finish(), whole(&spec(&built_in), 3));
        assert_eq!(own.flows[0].controller, "own:mine");
        assert_eq!(own.flows[0].totals, built_in.flows[0].totals);
        assert_eq!(own.flows[0].series, built_in.flows[0].series);
        assert_eq!(own.links, built_in.links);
    }
}

#[test]
fn misplaced_or_late_controller_is_refused() {
    let any = || {
        let config = fullpipe_cc::Config {
            mss: 1448,
            unit: 1448,
            initial_cwnd: 10,
            cwnd_clamp: u32::MAX,
            max_pacing_rate: Rate::MAX,
            gso_max: fullpipe_cc::Config::GSO_MAX,
            max_tcp_header: fullpipe_cc::Config::MAX_TCP_HEADER,
            paced: false,
            hz: 1000,
            ssthresh: fullpipe_cc::Limits::INFINITE,
        };
        Box::new(Any::new(&Params::by_name("reno").unwrap(), &config, &fullpipe_cc::Connection::default()))
    };
    let message = |result: Result<_, SimError>| result.map(|_: Status| ()).unwrap_err().to_string();
    let placed = |simulation: &mut Simulation, flow| {
        simulation.controller(flow, false, any()).map(|()| Status::Running)
    };
    let mut simulation = Simulation::new(&spec(&of_own()), 1).unwrap();
    assert_eq!(
        message(simulation.advance(millis(1))),
        "flows[0].controller: own:mine is not built in, and nobody has brought it; expected that controller before the \
         run begins"
    );
    assert!(
        message(placed(&mut simulation, 1))
            .starts_with("flows[1].controller: there is no such flow; expected one of the 1")
    );
    placed(&mut simulation, 0).unwrap();
    simulation.advance(Time::ZERO).unwrap();
    assert!(message(placed(&mut simulation, 0)).contains("the run has begun"));
    let mut built_in = Simulation::new(&spec(&small()), 1).unwrap();
    assert!(message(placed(&mut built_in, 0)).contains("the scenario says cubic; expected own:NAME"));
    let refused = run(&spec(&of_own()), 1, &AtomicBool::new(false)).map(|_| Status::Over);
    assert!(message(refused).contains("nobody has brought it"));
    let mut document = small();
    document["flows"] = json!([{ "controller": "cubic" }, { "controller": "noq:bbr3" }]);
    let refused = "flows[1].controller: only the world quic runs noq:bbr3; expected a controller of Fullpipe's or of your \
                   own, or the world quic (--world quic)";
    assert_eq!(message(run(&spec(&document), 1, &AtomicBool::new(false)).map(|_| Status::Over)), refused);
    let mut of_a_stack = Simulation::new(&spec(&document), 1).unwrap();
    assert_eq!(message(of_a_stack.advance(millis(1))), refused);
    assert!(message(placed(&mut of_a_stack, 1)).contains("the scenario says noq:bbr3; expected own:NAME"));
}
