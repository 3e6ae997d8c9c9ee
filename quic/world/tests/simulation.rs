//! A run as an object.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};

use common::{assert_same, run, scenario};
use fullpipe_path::Change;
use fullpipe_path::config::Probability;
use fullpipe_quic::{Options, Place, QuicError, Simulation, Status, TextChange, run_with};
use fullpipe_scenario::spec::Spec;
use fullpipe_units::{Duration, Rate, Time};

fn spec() -> Spec {
    scenario(
        6.0,
        r#"rate = "10 Mbit/s", rtt = "40 ms", loss = "0 %""#,
        r#"{ controller = "noq:bbr3" }, { controller = "quinn:cubic", start = "1 s" }"#,
    )
}

fn at(millis: u64) -> Time {
    Time::from_micros(millis * 1000)
}

#[test]
fn steps_match_single_run() {
    let mut simulation = Simulation::new(&spec(), 1).unwrap();
    let mut millis = 0;
    while simulation.advance(at(millis)).unwrap() == Status::Running {
        // Looking changes nothing.
        simulation.flow(0).unwrap();
        simulation.queues().unwrap();
        millis += 37;
    }
    assert_same(&simulation.finish().unwrap(), &run(&spec(), 1), "the same run");
}

/// At a sample, and between two of them.
#[test]
fn sample_at_any_instant_has_rate() {
    let mut simulation = Simulation::new(&spec(), 1).unwrap();
    for micros in [3_000_000, 3_000_001, 3_004_999, 3_010_000] {
        simulation.advance(Time::from_micros(micros)).unwrap();
        let rate = simulation.flow(0).unwrap().sample.unwrap().delivery_bps;
        assert!((1_000_000..20_000_000).contains(&rate), "{micros} us: {rate}");
    }
}

#[test]
fn live_change_matches_changed_scenario() {
    type Changes = fn(&mut Simulation) -> Result<(), QuicError>;
    let changes: [(&str, Changes); 4] = [
        ("rate", |run| run.change(Place::Path, Change::Rate(Rate::from_bits_per_sec(4_000_000)))),
        ("loss", |run| run.change(Place::Path, Change::Loss(Probability::from_f64(0.02)))),
        ("longer", |run| run.change_rtt(Duration::from_millis(80))),
        ("shorter", |run| run.change_rtt(Duration::from_millis(20))),
    ];
    for (what, change) in changes {
        let mut simulation = Simulation::new(&spec(), 1).unwrap();
        // Not at a sample, which would be from before the change in one run and from behind it in the other.
        simulation.advance(at(2003)).unwrap();
        change(&mut simulation).unwrap();
        simulation.advance(Time::NEVER).unwrap();
        let planned = run(simulation.spec(), 1);
        // How long a queue takes depends on the rates to come, which only the planned run knows.
        let [simulation, planned] = [simulation.finish().unwrap(), planned].map(|mut run| {
            run.links.iter_mut().for_each(|link| link.series.queue_delay_ns.clear());
            run
        });
        assert_same(&simulation, &planned, what);
    }
}

#[test]
fn invalid_change_applies_nothing() {
    let mut simulation = Simulation::new(&spec(), 1).unwrap();
    let message =
        TextChange { rate: Some("1 Mbit/s".into()), delay: Some("nonsense".into()), ..TextChange::default() };
    let error = simulation.change_text(&message).unwrap_err();
    assert!(matches!(&error, QuicError::Scenario(error) if error.field == "delay"), "{error:?}");
    assert_eq!(*simulation.spec(), spec());
    let message =
        TextChange { rate: Some("5 Mbit/s".into()), buffer: Some("2 bdp".into()), ..TextChange::default() };
    simulation.change_text(&message).unwrap();
    assert_ne!(*simulation.spec(), spec());
    for (element, words) in
        [("wifi", "element: wifi is not on the path"), ("reverse[7]", "element: reverse[7] is not")]
    {
        let message =
            TextChange { element: Some(element.into()), loss: Some("1 %".into()), ..TextChange::default() };
        let sentence = simulation.change_text(&message).unwrap_err().to_string();
        assert!(sentence.starts_with(words), "{sentence}");
    }
    let message = TextChange {
        element: Some("bottleneck".into()),
        delay: Some("1 ms".into()),
        ..TextChange::default()
    };
    let sentence = simulation.change_text(&message).unwrap_err().to_string();
    assert!(sentence.contains("expected a delay element"), "{sentence}");
}

#[test]
fn view_shows_flow_state() {
    let mut simulation = Simulation::new(&spec(), 1).unwrap();
    simulation.advance(at(500)).unwrap();
    let (first, second) = (simulation.flow(0).unwrap(), simulation.flow(1).unwrap());
    assert_eq!((second.sample, second.segments_sent), (None, 0), "it has not started");
    let sample = first.sample.unwrap();
    assert!(sample.cwnd >= 10 && sample.srtt_ns.unwrap() >= 40_000_000, "{sample:?}");
    assert!(first.segments_sent >= first.delivered_segments + first.lost, "{first:?}");
    assert!(first.delivered_segments > 100 && first.delivered_bytes > 100_000, "{first:?}");
    assert_eq!(simulation.queues().unwrap()[0].name, "bottleneck");
    assert!(simulation.now() == at(500) && simulation.end() == at(6000));
}

#[test]
fn a_run_can_be_cancelled() {
    let cancelled = run_with(&spec(), 1, &AtomicBool::new(true), Options::default(), &[]);
    assert_eq!(cancelled.unwrap_err(), QuicError::Cancelled);
    // And one as an object goes on afterwards, as if nothing had happened.
    let mut simulation = Simulation::new(&spec(), 1).unwrap();
    simulation.cancel().store(true, Ordering::Relaxed);
    assert_eq!(simulation.advance(Time::NEVER).unwrap_err(), QuicError::Cancelled);
    assert!(simulation.now() < simulation.end());
    simulation.advance(Time::NEVER).unwrap();
    assert_same(&simulation.finish().unwrap(), &run(&spec(), 1), "the same run");
}

#[test]
fn one_that_is_left_alone_ends() {
    let mut simulation = Simulation::new(&spec(), 1).unwrap();
    simulation.advance(at(100)).unwrap();
    drop(simulation);
}

#[test]
fn versions_match_compiled_crates() {
    // What cargo says, which reads the lock file in its own way.
    for stack in fullpipe_quic::stacks() {
        let crate_name = format!("{}-proto", stack.name);
        let mut cargo = std::process::Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["pkgid", "--locked", "--offline", &crate_name]);
        let message = cargo.output().unwrap();
        let id = String::from_utf8(message.stdout).unwrap();
        let expected = format!("#{crate_name}@{}", stack.version);
        assert!(id.trim().ends_with(&expected), "{id} {}", String::from_utf8_lossy(&message.stderr));
    }
}
