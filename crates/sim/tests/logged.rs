//! A run that is logged gives the same record, and its log agrees with the record.

mod random;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use fullpipe_export::{Event, Log, Sent, Trigger, Why};
use fullpipe_record::Run;
use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::{Format, resolve};
use fullpipe_sim::{Simulation, Status};
use fullpipe_units::Time;
use serde_json::{Value, json};

/// Scenarios of each kind.
const SCENARIOS: u64 = 150;

/// What a flow's log says, checked as it comes.
#[derive(Debug, Default)]
struct Reported {
    /// The range of each transmission, by its number.
    sent: BTreeMap<u64, (u64, u64)>,
    syns: u64,
    again: u64,
    /// The end of what was sent.
    end: u64,
    lost: BTreeMap<u64, Option<Trigger>>,
    probes: u64,
    arrived: u64,
    dropped: u64,
    acks: u64,
    acked: u64,
    marks: u64,
    states: u64,
}

#[derive(Debug, Default)]
struct Notes {
    flows: Vec<Reported>,
    latest: Time,
}

#[derive(Clone)]
struct Shared(Arc<Mutex<Notes>>);

impl Log for Shared {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        let Notes { flows, latest } = &mut *self.0.lock().unwrap();
        assert!(at >= *latest, "{at} after {latest}");
        *latest = at;
        let reported = &mut flows[flow as usize];
        match event {
            Event::Sent(sent) => reported.sent(sent),
            Event::Dropped(drop) => reported.dropped += (!drop.acknowledgement && !drop.syn) as u64,
            Event::Arrived(arrival) => {
                reported.marks += (arrival.codepoint.name() == "CE") as u64;
                assert!(arrival.syn || reported.sent.contains_key(&arrival.number), "{arrival:?}");
                reported.arrived += !arrival.syn as u64;
            }
            Event::Acknowledged(ack) => {
                reported.acks += !ack.syn as u64;
                assert!(ack.ack <= reported.end && ack.edge >= ack.ack, "{ack:?} of {}", reported.end);
                reported.acked = reported.acked.max(ack.ack);
                for (start, end) in ack.received() {
                    assert!(
                        ack.ack < *start && start < end && *end <= reported.end,
                        "{ack:?} of {}",
                        reported.end
                    );
                }
                assert!(ack.length >= 52 && ack.blocks <= 3);
            }
            Event::Lost(loss) => {
                let range = (loss.start, loss.start + loss.payload as u64);
                assert_eq!(reported.sent.get(&loss.number), Some(&range), "{loss:?}");
                assert_eq!(reported.lost.insert(loss.number, loss.trigger), None, "lost twice: {loss:?}");
            }
            Event::State(state) => {
                reported.states += 1;
                assert!(state.cwnd.unwrap() > 0 && state.phase.is_some(), "{state:?}");
            }
            Event::Quic(event) => panic!("no event of TCP: {event:?}"),
        }
    }
}

impl Reported {
    fn sent(&mut self, sent: &Sent) {
        if sent.syn {
            assert_eq!((sent.number, sent.payload, sent.length), (self.syns, 0, 60));
            self.syns += 1;
            return;
        }
        let range = (sent.start, sent.start + sent.payload as u64);
        assert_eq!(sent.number, self.sent.len() as u64);
        assert_eq!(sent.length, sent.payload + 52);
        if sent.start < self.end {
            assert!(range.1 <= self.end, "{sent:?}");
            self.again += 1;
            // The one before it with these bytes was taken for lost, unless this is a probe.
            let (before, _) = self.sent.iter().rev().find(|(_, other)| **other == range).unwrap();
            match sent.again.unwrap() {
                Why::Probe => self.probes += 1,
                Why::Lost | Why::TimedOut => assert!(self.lost.contains_key(before), "{sent:?}"),
                Why::Unknown => panic!("the simulator knows why: {sent:?}"),
            }
        } else {
            assert_eq!((sent.start, sent.again), (self.end, None), "{sent:?}");
            self.end = range.1;
        }
        self.sent.insert(sent.number, range);
    }
}

fn spec(document: &Value) -> Spec {
    resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| panic!("{error} in {document}"))
}

fn run(spec: &Spec, seed: u64) -> Run {
    fullpipe_sim::run(spec, seed, &AtomicBool::new(false)).expect("nothing cancels it")
}

/// The record of a logged run, what its log says, and how many losses and timeouts each flow counted.
fn logged(spec: &Spec, seed: u64) -> (Run, Notes, Vec<(u64, u64)>) {
    let flows = spec.flows.iter().map(|_| Reported::default()).collect();
    let shared = Shared(Arc::new(Mutex::new(Notes { flows, latest: Time::ZERO })));
    let mut simulation = Simulation::logged(spec, seed, Box::new(shared.clone())).unwrap();
    assert_eq!(simulation.advance(Time::NEVER), Ok(Status::Over));
    let counts = |flow| (simulation.flow(flow).lost(), simulation.flow(flow).timeouts());
    let lost = (0..simulation.flows()).map(counts).collect();
    let run = simulation.finish();
    (run, Arc::into_inner(shared.0).unwrap().into_inner().unwrap(), lost)
}

/// Checks one scenario; returns what was told in all.
fn check(document: &Value, number: u64, spec: &Spec) -> Reported {
    let mut all = Reported::default();
    let plain = run(spec, number);
    let (record, notes, lost) = logged(spec, number);
    assert!(plain.flows == record.flows && plain.links == record.links, "number {number}: {document}");
    for ((reported, record), (lost, timeouts)) in notes.flows.iter().zip(&record.flows).zip(lost) {
        let totals = &record.totals;
        // A flow that has ended still repeats what is out, which its record does not count.
        assert!(reported.sent.len() as u64 >= totals.segments_sent, "number {number}: {document}");
        assert!(reported.again >= totals.retransmits, "number {number}: {document}");
        if totals.end_ns == spec.duration_ns.as_nanos() {
            assert_eq!(reported.sent.len() as u64, totals.segments_sent, "number {number}: {document}");
            assert_eq!(reported.again, totals.retransmits, "number {number}: {document}");
        }
        // Marks that an undo took back may be given again; the transmission is told as lost once. A timeout takes a repeated
        // head of the queue for lost without counting it.
        let (least, most) = (if totals.undos == 0 { lost } else { 0 }, lost + timeouts);
        let reported_lost = reported.lost.len() as u64;
        assert!(
            (least..=most).contains(&reported_lost),
            "{reported_lost} of {lost}, number {number}: {document}"
        );
        assert!(reported.acked <= reported.end);
        all.again += reported.again;
        all.probes += reported.probes;
        all.dropped += reported.dropped;
        all.arrived += reported.arrived;
        all.acks += reported.acks;
        all.marks += reported.marks;
        all.states += reported.states;
        all.syns += reported.syns;
        all.lost.extend(reported.lost.values().enumerate().map(|(place, trigger)| (place as u64, *trigger)));
    }
    all
}

#[test]
fn logging_preserves_and_matches_record() {
    let mut all = Reported::default();
    for number in 0..SCENARIOS {
        let longer = random::scenario_with_a_longer_way_back(number);
        for document in [random::scenario(number), longer, random::scenario_of_transfers(number)] {
            let reported = check(&document, number, &spec(&document));
            all.again += reported.again;
            all.probes += reported.probes;
            all.dropped += reported.dropped;
            all.acks += reported.acks;
        }
    }
    assert!(all.again > 10_000 && all.probes > 100 && all.dropped > 10_000 && all.acks > 100_000, "{all:?}");
}

#[test]
fn marks_are_told() {
    let document = json!({
        "duration": "3 s",
        "path": { "rate": "20 Mbit/s", "rtt": "20 ms", "buffer": "2 bdp", "queue": "codel" },
        "hosts": { "ecn": true },
        "flows": [{ "controller": "cubic" }, { "controller": "dctcp" }],
    });
    let reported = check(&document, 1, &spec(&document));
    assert!(reported.marks > 50 && reported.states > 1_000, "{reported:?}");
}

#[test]
fn flows_of_both_directions_are_told() {
    let told = |direction: &str| {
        let document = json!({
            "duration": "3 s",
            "path": { "rate": "20 Mbit/s", "rtt": "20 ms", "buffer": "1 bdp", "reverse": { "rate": "5 Mbit/s", "buffer": "20 packets" } },
            "flows": [{ "controller": "cubic" }, { "controller": "bbr1", "direction": direction }],
        });
        check(&document, 1, &spec(&document))
    };
    let (both, one) = (told("reverse"), told("forward"));
    assert!(both.dropped > 50 && both.again > 50 && both.arrived < one.arrived, "{both:?}");
}

#[test]
fn drop_names_queue_and_excludes_probes() {
    let document = json!({
        "duration": "2 s",
        "path": { "rate": "10 Mbit/s", "rtt": "40 ms", "buffer": "0.3 bdp" },
        "flows": [{ "controller": "cubic" }],
    });
    struct Drops(Arc<Mutex<Vec<String>>>);
    impl Log for Drops {
        fn take(&mut self, _: Time, _: u32, event: &Event<'_>) {
            if let Event::Dropped(drop) = event {
                self.0.lock().unwrap().push(format!("{:?} {}", drop.queue, drop.cause));
            }
        }
    }
    let drops = Arc::new(Mutex::new(Vec::new()));
    let mut simulation =
        Simulation::logged(&spec(&document), 1, Box::new(Drops(Arc::clone(&drops)))).unwrap();
    simulation.advance(Time::NEVER).unwrap();
    let record = simulation.finish();
    let drops = drops.lock().unwrap();
    assert_eq!(drops.len() as u64, record.links[0].totals.dropped_packets, "{drops:?}");
    assert!(drops.iter().all(|drop| drop == "Some(\"bottleneck\") queue_full"), "{drops:?}");
}
