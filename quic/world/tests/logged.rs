//! Runs that are logged: the record stays the same, and the log is true.

mod common;

use std::any::Any;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use common::{SHIPPED, assert_same, run, scenario};
use fullpipe_export::quic::{Event as Quic, Frame, Space, frames};
use fullpipe_export::{Event, Log};
use fullpipe_quic::{Crypto, Options, Own, run_logged};
use fullpipe_record::Run;
use fullpipe_scenario::spec::Spec;
use fullpipe_units::Time;
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, NewRenoConfig};

/// What was told, as text; and the numbers of the first flow's packets.
#[derive(Default)]
struct Reported {
    text: Vec<String>,
    sent: BTreeSet<(Space, u64)>,
    arrived: BTreeSet<(Space, u64)>,
    dropped: BTreeSet<(Space, u64)>,
    lost: BTreeSet<(Space, u64)>,
    acked: BTreeSet<(Space, u64)>,
    windows: usize,
    phases: BTreeSet<&'static str>,
    thresholds: BTreeSet<u64>,
}

struct Shared(Arc<Mutex<Reported>>);

impl Log for Shared {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        let reported = &mut *self.0.lock().unwrap();
        reported.text.push(match event {
            // Names and keys are random and of constant length; frames are not told with them.
            Event::Quic(Quic::Sent(one)) => {
                format!("{at} {flow} sent {:?} {} {}", one.space, one.number, one.length)
            }
            Event::Quic(Quic::Received(one)) => {
                format!("{at} {flow} received {:?} {} {} {:?}", one.space, one.number, one.length, one.rtt_ns)
            }
            _ => format!("{at} {flow} {event:?}"),
        });
        if flow > 0 {
            return;
        }
        match event {
            Event::Quic(Quic::Sent(one)) => {
                assert!(reported.sent.insert((one.space, one.number)), "{one:?} twice");
                assert!(frames(one.payload).all(|frame| !matches!(frame, Frame::Unknown(_))), "{one:?}");
            }
            Event::Quic(Quic::Arrived(one)) => drop(reported.arrived.insert((one.space, one.number))),
            Event::Quic(Quic::Dropped(one)) if one.to_sender => {}
            Event::Quic(Quic::Dropped(one)) => drop(reported.dropped.insert((one.space, one.number))),
            Event::Quic(Quic::Lost(one)) => {
                assert!(!reported.acked.contains(&(one.space, one.number)), "{one:?} was acknowledged");
                assert!(reported.lost.insert((one.space, one.number)), "{one:?} twice");
            }
            Event::Quic(Quic::Received(one)) => {
                for frame in frames(one.payload) {
                    assert!(!matches!(frame, Frame::Unknown(_)), "{one:?}");
                    let Frame::Ack(ack) = frame else { continue };
                    let numbers = ack.ranges().flat_map(|(low, high)| low..=high);
                    reported.acked.extend(numbers.map(|number| (one.space, number)));
                }
            }
            Event::State(state) => {
                reported.windows += usize::from(state.cwnd.is_some());
                reported.phases.extend(state.phase);
                reported.thresholds.extend(state.ssthresh);
            }
            _ => panic!("{event:?} is not of QUIC"),
        }
    }
}

fn logged(spec: &Spec, seed: u64, crypto: Crypto) -> (Run, Reported) {
    let reported = Arc::new(Mutex::new(Reported::default()));
    let log = Box::new(Shared(reported.clone()));
    let options = Options { crypto, ..Options::default() };
    let run = run_logged(spec, seed, &AtomicBool::new(false), options, &[], &mut |_| (), log).unwrap();
    (run, Arc::into_inner(reported).unwrap().into_inner().unwrap())
}

/// A path that drops at random, in its queue, and during the handshake.
fn random_path(controller: &str) -> Spec {
    scenario(
        4.0,
        r#"rate = "10 Mbit/s", rtt = "40 ms", buffer = "0.5 bdp", loss = "2 %""#,
        &format!(r#"{{ controller = "{controller}" }}, {{ controller = "{controller}", start = "1 s" }}"#),
    )
}

#[test]
fn logs_repeat_and_preserve_record() {
    for controller in SHIPPED.into_iter().chain(["bbr3"]) {
        let spec = random_path(controller);
        let (record, reported) = logged(&spec, 5, Crypto::Null);
        assert_same(&record, &run(&spec, 5), controller);
        assert!(reported.text == logged(&spec, 5, Crypto::Null).1.text, "{controller}: two logs of one seed");
        assert!(reported.text == logged(&spec, 5, Crypto::Real).1.text, "{controller}: real keys");
        assert!(reported.text != logged(&spec, 6, Crypto::Null).1.text, "{controller}: another seed");
    }
}

#[test]
fn log_covers_every_packet_outcome() {
    for controller in SHIPPED.into_iter().chain(["bbr3"]) {
        let (record, reported) = logged(&random_path(controller), 7, Crypto::Null);
        let totals = record.flows[0].totals;
        assert!(
            reported.thresholds.iter().all(|most| *most < 1 << 40),
            "{controller}: {:?}",
            reported.thresholds
        );
        // Datagrams have one packet each but for some of the handshake.
        let sent = reported.sent.len() as u64;
        assert!(
            (totals.segments_sent..totals.segments_sent + 8).contains(&sent),
            "{controller}: {sent}, {totals:?}"
        );
        assert_eq!(reported.lost.len() as u64, totals.retransmits, "{controller}");
        assert!(totals.retransmits > 10, "{controller}: {totals:?}");
        assert!(reported.arrived.is_disjoint(&reported.dropped), "{controller}");
        assert!(reported.acked.is_subset(&reported.arrived), "{controller}");
        let known: BTreeSet<_> = reported.arrived.union(&reported.dropped).copied().collect();
        assert!(known.is_subset(&reported.sent), "{controller}");
        // What is neither is under way at the end: the latest packets.
        let under_way: Vec<_> = reported.sent.difference(&known).collect();
        assert!(under_way.len() < 60, "{controller}: {under_way:?}");
        // Nothing is reordered here: what is taken for lost was dropped.
        assert!(reported.lost.is_subset(&reported.dropped), "{controller}");
        assert!(reported.windows > 10 && !reported.phases.is_empty(), "{controller}");
    }
}

/// The longest packet of the first flow's from some time on.
struct Longest {
    from: Time,
    bytes: Arc<AtomicUsize>,
}

impl Log for Longest {
    fn take(&mut self, at: Time, _: u32, event: &Event<'_>) {
        if let Event::Quic(Quic::Sent(one)) = event
            && at >= self.from
        {
            self.bytes.fetch_max(one.length as usize, Ordering::Relaxed);
        }
    }
}

#[test]
fn loss_never_shrinks_packets_permanently() {
    for controller in ["noq:newreno", "quinn:newreno"] {
        let spec = scenario(
            30.0,
            r#"rate = "5 Mbit/s", rtt = "40 ms", loss = "50 %", changes = [{ at = "20 s", loss = "0 %" }]"#,
            &format!(
                r#"{{ controller = "{controller}", requests = {{ size = "3 KB", pause = "100 ms" }} }}"#
            ),
        );
        for seed in 1..=4 {
            let bytes = Arc::new(AtomicUsize::new(0));
            let log = Box::new(Longest { from: Time::from_micros(25_000_000), bytes: bytes.clone() });
            let cancel = AtomicBool::new(false);
            run_logged(&spec, seed, &cancel, Options::default(), &[], &mut |_| (), log).unwrap();
            // All that a packet of 1500 bytes leaves to UDP.
            assert_eq!(bytes.load(Ordering::Relaxed), 1472, "{controller}, seed {seed}");
        }
    }
}

/// A controller that counts how often it is copied.
#[derive(Debug)]
struct Copied(Box<dyn Controller>);

static COPIES: AtomicUsize = AtomicUsize::new(0);

struct CopiedFactory;

impl ControllerFactory for CopiedFactory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Copied(Arc::new(NewRenoConfig::default()).build(now, mtu)))
    }
}

impl Controller for Copied {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        limited: bool,
        rtt: &RttEstimator,
    ) {
        self.0.on_ack(now, sent, bytes, pn, limited, rtt);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        bytes: u64,
        pn: u64,
    ) {
        self.0.on_congestion_event(now, sent, persistent, ecn, bytes, pn);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.0.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.0.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        COPIES.fetch_add(1, Ordering::Relaxed);
        Box::new(Copied(self.0.clone_box()))
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// A copy may have all that is in flight in it.
#[test]
fn logging_copies_no_controller_per_packet() {
    let spec = scenario(4.0, r#"rate = "10 Mbit/s", rtt = "40 ms""#, r#"{ controller = "noq:copied" }"#);
    let own = [Own::noq("copied", Arc::new(CopiedFactory))];
    let reported = Arc::new(Mutex::new(Reported::default()));
    let log = Box::new(Shared(reported.clone()));
    run_logged(&spec, 1, &AtomicBool::new(false), Options::default(), &own, &mut |_| (), log).unwrap();
    assert!(reported.lock().unwrap().windows > 100);
    // To see once what it is.
    assert_eq!(COPIES.load(Ordering::Relaxed), 1);
}

#[test]
fn log_reports_stack_controller_phases() {
    let spec = scenario(4.0, r#"rate = "10 Mbit/s", rtt = "40 ms""#, r#"{ controller = "noq:bbr3" }"#);
    let (_, reported) = logged(&spec, 1, Crypto::Null);
    assert!(
        reported.phases.contains("startup") && reported.phases.contains("drain"),
        "{:?}",
        reported.phases
    );
}
