//! What a sender reports besides ACKs, and what it does if the controller asks: a loss that a tail probe repaired, which nothing
//! else shows; the application's limit, at ACKs and timers, too.

use std::sync::{Arc, Mutex};

use fullpipe_cc::*;
use fullpipe_scenario::{Format, resolve};
use fullpipe_sim::Simulation;
use fullpipe_units::Time;
use serde_json::json;

/// What a controller was told, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reported {
    Sent { new: bool },
    MayAnswerProbe,
    Repaired(TailRepair),
    State { to: CaState, reduce: bool },
    Acked { app_limited: bool },
}

/// Reno, and a list of what it was told.
struct Listening {
    reno: Any,
    reported: Arc<Mutex<Vec<Reported>>>,
    check_app_limited: bool,
}

impl Listening {
    fn note(&self, reported: Reported) {
        self.reported.lock().unwrap().push(reported);
    }
}

impl Controller for Listening {
    fn on_sent(&mut self, sent: &Sent) {
        self.note(Reported::Sent { new: !sent.retransmission });
        self.reno.on_sent(sent)
    }
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        self.note(Reported::Repaired(*repair));
        self.reno.on_tail_repair(repair)
    }
    fn on_state(&mut self, change: &StateChange) {
        self.note(Reported::State { to: change.to, reduce: change.reduce });
        self.reno.on_state(change)
    }
    fn on_ack(&mut self, ack: &Ack) {
        if ack.may_answer_probe {
            self.note(Reported::MayAnswerProbe);
        }
        self.note(Reported::Acked { app_limited: ack.connection.app_limited });
        self.reno.on_ack(ack)
    }
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.reno.on_transmit_start(start)
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        self.reno.on_window_unused(unused)
    }
    fn on_rtt(&mut self, sample: &RttSample) {
        self.reno.on_rtt(sample)
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        self.reno.on_ce(marks)
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.reno.on_undo(undo)
    }
    fn on_lost(&mut self, lost: &Lost) {
        self.reno.on_lost(lost)
    }
    fn on_discarded(&mut self, _: &Discarded) {
        unreachable!("TCP discards nothing")
    }
    fn on_mss(&mut self, mss: u32) {
        self.reno.on_mss(mss)
    }
    fn limits(&self) -> Limits {
        Limits { check_app_limited: self.check_app_limited, ..self.reno.limits() }
    }
    fn snapshot(&self) -> Snapshot {
        self.reno.snapshot()
    }
}

/// Ten segments a second for two minutes, of which the path loses `loss`: a probe leaves before the next ten do.
fn bursts(loss: &str) -> Vec<Reported> {
    reported(json!({ "bursts": { "size": "14480 B", "every": "1 s" } }), loss, false)
        .into_iter()
        .filter(|reported| !matches!(reported, Reported::Acked { .. }))
        .collect()
}

/// What a flow like this hears in two minutes.
fn reported(mut flow: serde_json::Value, loss: &str, check_app_limited: bool) -> Vec<Reported> {
    flow["controller"] = json!("own:reno");
    let document = json!({
        "name": "reports", "duration": "120 s",
        "path": { "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp", "loss": loss },
        "flows": [flow],
    });
    let mut simulation =
        Simulation::new(&resolve(&document.to_string(), Format::Json, None).unwrap(), 1).unwrap();
    let reported = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&reported);
    let reno = Params::by_name("reno").unwrap();
    let make = move |config: &Config, connection: &Connection| -> Box<dyn Controller + Send> {
        Box::new(Listening { reno: Any::new(&reno, config, connection), reported: list, check_app_limited })
    };
    simulation.controller_from(0, false, Box::new(make)).unwrap();
    simulation.advance(Time::NEVER).unwrap();
    drop(simulation);
    Arc::into_inner(reported).unwrap().into_inner().unwrap()
}

/// Whoever counted ACKs instead of what they acknowledge would believe a receiver that splits them.
#[test]
fn controller_hears_every_part_of_split_ack() {
    let heard = |flow| {
        let reported = reported(flow, "0 %", false);
        reported.iter().filter(|one| matches!(one, Reported::Acked { .. })).count() as f64
    };
    let times =
        heard(json!({ "size": "3 MB", "receiver": "splits_acks" })) / heard(json!({ "size": "3 MB" }));
    assert!((1.8..2.1).contains(&times), "{times} times as many ACKs");
}

#[test]
fn tail_repair_precedes_window_reduction() {
    let reported = bursts("5 %");
    let repairs: Vec<usize> =
        (0..reported.len()).filter(|&at| matches!(reported[at], Reported::Repaired(_))).collect();
    // One burst of twenty loses its last segment, some of them others, too, and 120 leave.
    assert!((2..10).contains(&repairs.len()), "{} repairs", repairs.len());
    let mut app_limited = 0;
    for at in repairs {
        let Reported::Repaired(repair) = reported[at] else { unreachable!() };
        assert_eq!(repair.units, 1);
        app_limited += repair.app_limited as u32;
        assert_eq!(reported[at + 1], Reported::State { to: CaState::Cwr, reduce: true });
        // First an ACK leaves open whether the segment or its probe arrived; the ACK of data sent since decides.
        let doubt = reported[..at]
            .iter()
            .rposition(|reported| *reported == Reported::MayAnswerProbe)
            .expect("a doubt");
        let between = &reported[doubt + 1..at];
        assert!(
            !between.is_empty() && between.iter().all(|reported| *reported == Reported::Sent { new: true }),
            "{between:?}"
        );
    }
    assert!(app_limited > 0, "some bursts fit into the window");
}

#[test]
fn without_loss_nothing_is_repaired() {
    let reported = bursts("0 %");
    assert!(reported.iter().all(|reported| matches!(reported, Reported::Sent { new: true })), "{reported:?}");
}

/// A write always finds data waiting here, so that Linux's check never finds the application to be the limit. The draft's does, once
/// the last byte has left.
#[test]
fn data_end_limits_rate_if_checked() {
    for (check_app_limited, expected) in [(false, false), (true, true)] {
        let reported = reported(json!({ "size": "10 MB" }), "0 %", check_app_limited);
        let acked: Vec<bool> = reported
            .iter()
            .filter_map(|reported| {
                if let Reported::Acked { app_limited } = reported { Some(*app_limited) } else { None }
            })
            .collect();
        let limited = acked.iter().filter(|limited| **limited).count();
        assert!(limited * 10 < acked.len(), "{limited} of {}", acked.len());
        assert_eq!(acked.last(), Some(&expected));
    }
}
