//! A loss that a tail probe repairs is reported: nothing else shows it.

use std::sync::{Arc, Mutex};

use fullpipe_cc::*;
use fullpipe_scenario::{Format, resolve};
use fullpipe_sim::Simulation;
use fullpipe_units::Time;
use serde_json::json;

/// What a controller was told, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Sent { new: bool },
    MayAnswerProbe,
    Repaired(TailRepair),
    State { to: CaState, reduce: bool },
}

/// Reno, and a list of what it was told.
struct Listening(Any, Arc<Mutex<Vec<Told>>>);

impl Listening {
    fn note(&self, told: Told) {
        self.1.lock().unwrap().push(told);
    }
}

impl Controller for Listening {
    fn on_sent(&mut self, sent: &Sent) {
        self.note(Told::Sent { new: !sent.retransmission });
        self.0.on_sent(sent)
    }
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        self.note(Told::Repaired(*repair));
        self.0.on_tail_repair(repair)
    }
    fn on_state(&mut self, change: &StateChange) {
        self.note(Told::State { to: change.to, reduce: change.reduce });
        self.0.on_state(change)
    }
    fn on_ack(&mut self, ack: &Ack) {
        if ack.may_answer_probe {
            self.note(Told::MayAnswerProbe);
        }
        self.0.on_ack(ack)
    }
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.0.on_transmit_start(start)
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        self.0.on_window_unused(unused)
    }
    fn on_rtt(&mut self, sample: &RttSample) {
        self.0.on_rtt(sample)
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        self.0.on_ce(marks)
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.0.on_undo(undo)
    }
    fn on_lost(&mut self, lost: &Lost) {
        self.0.on_lost(lost)
    }
    fn on_discarded(&mut self, _: &Discarded) {
        unreachable!("TCP discards nothing")
    }
    fn on_mss(&mut self, mss: u32) {
        self.0.on_mss(mss)
    }
    fn limits(&self) -> Limits {
        self.0.limits()
    }
    fn snapshot(&self) -> Snapshot {
        self.0.snapshot()
    }
}

/// Ten segments a second for two minutes, of which the path loses `loss`: a probe leaves before the next ten do.
fn told(loss: &str) -> Vec<Told> {
    let document = json!({
        "name": "bursts", "duration": "120 s",
        "path": { "rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "2 bdp", "loss": loss },
        "flows": [{ "controller": "own:reno", "bursts": { "size": "14480 B", "every": "1 s" } }],
    });
    let mut simulation =
        Simulation::new(&resolve(&document.to_string(), Format::Json, None).unwrap(), 1).unwrap();
    let told = Arc::new(Mutex::new(Vec::new()));
    let list = Arc::clone(&told);
    let reno = Params::by_name("reno").unwrap();
    let make = move |config: &Config, connection: &Connection| -> Box<dyn Controller + Send> {
        Box::new(Listening(Any::new(&reno, config, connection), list))
    };
    simulation.controller_from(0, false, Box::new(make)).unwrap();
    simulation.advance(Time::NEVER).unwrap();
    drop(simulation);
    Arc::into_inner(told).unwrap().into_inner().unwrap()
}

#[test]
fn a_repaired_tail_is_reported_between_the_doubt_and_the_reduction() {
    let told = told("5 %");
    let repairs: Vec<usize> = (0..told.len()).filter(|&at| matches!(told[at], Told::Repaired(_))).collect();
    // One burst of twenty loses its last segment, some of them others, too, and 120 leave.
    assert!((2..10).contains(&repairs.len()), "{} repairs", repairs.len());
    let mut app_limited = 0;
    for at in repairs {
        let Told::Repaired(repair) = told[at] else { unreachable!() };
        assert_eq!(repair.units, 1);
        app_limited += repair.app_limited as u32;
        assert_eq!(told[at + 1], Told::State { to: CaState::Cwr, reduce: true });
        // First an ACK leaves open whether the segment or its probe arrived; the ACK of data sent since decides.
        let doubt = told[..at].iter().rposition(|told| *told == Told::MayAnswerProbe).expect("a doubt");
        let between = &told[doubt + 1..at];
        assert!(
            !between.is_empty() && between.iter().all(|told| *told == Told::Sent { new: true }),
            "{between:?}"
        );
    }
    assert!(app_limited > 0, "some bursts fit into the window");
}

#[test]
fn without_loss_nothing_is_repaired() {
    let told = told("0 %");
    assert!(told.iter().all(|told| matches!(told, Told::Sent { new: true })), "{told:?}");
}
