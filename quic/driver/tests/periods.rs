//! Recovery periods (RFC 9002 section 7.3.2), and the place of each event.

use fullpipe_cc::*;
use fullpipe_quic_driver::{Driver, InBytes, Start};
use fullpipe_units::{Duration, Time};
use std::cell::{Cell, RefCell};
use std::fmt::Write;
use std::rc::Rc;

const START: Start = Start { now: Time::from_micros(1_000_000), mtu: 1000, seed: 1 };

/// Writes down what it is told, and tells a controller.
#[derive(Clone)]
struct Recorder {
    controller: InBytes,
    log: Rc<RefCell<String>>,
    last_ack: Rc<RefCell<Option<Ack>>>,
    /// It holds the sender back itself.
    holds_back: Rc<Cell<bool>>,
}

impl Recorder {
    fn note(&self, event: std::fmt::Arguments<'_>) {
        writeln!(self.log.borrow_mut(), "{event}").unwrap();
    }
}

impl Controller for Recorder {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.controller.on_transmit_start(start);
        self.note(format_args!("start app_limited={}", start.connection.app_limited));
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        self.controller.on_window_unused(unused);
        self.note(format_args!("unused"));
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.controller.on_sent(sent);
        assert_eq!(sent.prior_packets_out, sent.prior_in_flight, "nothing else is out");
    }
    fn on_rtt(&mut self, sample: &RttSample) {
        self.controller.on_rtt(sample);
        self.note(format_args!("rtt {}", sample.rtt.as_millis()));
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        self.controller.on_ce(marks);
        self.note(format_args!("ce {} {}", marks.echoed, marks.units));
    }
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        self.controller.on_tail_repair(repair);
        self.note(format_args!("tail repair"));
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.controller.on_undo(undo);
        self.note(format_args!("undo"));
    }
    fn on_lost(&mut self, lost: &Lost) {
        self.controller.on_lost(lost);
        self.note(format_args!("lost {} range={} of {}", lost.units, lost.new_range, lost.tx_in_flight));
    }
    fn on_discarded(&mut self, discarded: &Discarded) {
        self.controller.on_discarded(discarded);
        self.note(format_args!("discarded {}", discarded.units));
    }
    fn on_state(&mut self, change: &StateChange) {
        self.controller.on_state(change);
        let StateChange { to, reduce, proven, trigger, .. } = change;
        self.note(format_args!("{} reduce={reduce} proven={proven} {trigger:?}", to.name()));
    }
    fn on_ack(&mut self, ack: &Ack) {
        self.controller.on_ack(ack);
        *self.last_ack.borrow_mut() = Some(*ack);
        let Ack { newly_delivered, newly_lost, prior_in_flight, connection, .. } = ack;
        self.note(format_args!(
            "ack {newly_delivered} lost {newly_lost} of {prior_in_flight} left {}",
            connection.in_flight
        ));
    }
    fn on_mss(&mut self, mss: u32) {
        self.controller.on_mss(mss);
        self.note(format_args!("mss {mss}"));
    }
    fn limits(&self) -> Limits {
        Limits { mark_app_limited: self.holds_back.get(), ..self.controller.limits() }
    }
    fn snapshot(&self) -> Snapshot {
        self.controller.snapshot()
    }
}

struct Bench {
    driver: Driver<Recorder>,
    log: Rc<RefCell<String>>,
    last_ack: Rc<RefCell<Option<Ack>>>,
    holds_back: Rc<Cell<bool>>,
}

impl Bench {
    /// After ten packets, 0 to 9, sent at the start.
    fn new() -> Bench {
        Bench::with("fixed")
    }

    fn with(controller: &str) -> Bench {
        let controller = InBytes::new(&Params::by_name(controller).unwrap(), &START);
        let log = Rc::new(RefCell::new(String::new()));
        let (last_ack, holds_back) = (Rc::<RefCell<Option<Ack>>>::default(), Rc::<Cell<bool>>::default());
        let recorder = Recorder {
            controller,
            log: log.clone(),
            last_ack: last_ack.clone(),
            holds_back: holds_back.clone(),
        };
        let mut bench = Bench { driver: Driver::new(recorder, &START), log, last_ack, holds_back };
        bench.send(0, 0..10);
        bench.reported();
        bench
    }

    fn at(ms: u64) -> Time {
        START.now + Duration::from_millis(ms)
    }

    fn send(&mut self, ms: u64, numbers: std::ops::Range<u64>) {
        numbers.for_each(|number| self.driver.sent(Bench::at(ms), number, 1000, None));
    }

    fn ack(&mut self, ms: u64, numbers: &[u64], lost: &[u64]) {
        for number in numbers {
            assert!(self.driver.acked(Bench::at(ms), *number, None, 1000, false));
        }
        self.driver.events_mut().end_acked();
        self.lose(ms, lost);
    }

    fn lose(&mut self, ms: u64, lost: &[u64]) {
        for number in lost {
            assert!(self.driver.lost(Bench::at(ms), *number, 1000));
        }
    }

    /// The last ACK as the controller got it.
    fn last_ack(&mut self) -> Ack {
        self.driver.events_mut().settle();
        self.last_ack.borrow().expect("an ACK came")
    }

    /// What the controller was told since the last time, a line each.
    fn reported(&mut self) -> Vec<String> {
        self.driver.events_mut().settle();
        self.log.take().lines().map(str::to_owned).collect()
    }
}

#[test]
fn ack_waits_for_losses_and_marks() {
    let mut bench = Bench::new();
    bench.ack(50, &[5, 6], &[0, 1, 3]);
    bench.driver.events_mut().marked(Bench::at(50), Some(1000));
    assert_eq!(
        bench.reported(),
        [
            "rtt 50",
            "ce true 1000",
            "lost 1000 range=true of 1000",
            "lost 1000 range=false of 2000",
            "lost 1000 range=true of 4000",
            "recovery reduce=true proven=true Ack",
            "ack 2000 lost 3000 of 10000 left 5000",
        ]
    );
}

#[test]
fn loss_range_continues_on_next_ack() {
    let mut bench = Bench::new();
    bench.ack(50, &[5], &[0, 1]);
    bench.ack(51, &[6], &[2]);
    let ranges = bench.reported().into_iter().filter(|line| line.starts_with("lost"));
    let new = ranges.map(|line| line.contains("range=true")).collect::<Vec<_>>();
    assert_eq!(new, [true, false, false]);
}

#[test]
fn old_losses_start_no_recovery_period() {
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.send(60, 10..14);
    bench.reported();
    // More losses of the same round, while the period lasts.
    bench.ack(61, &[5], &[1]);
    assert_eq!(
        bench.reported(),
        ["rtt 61", "lost 1000 range=false of 2000", "ack 1000 lost 1000 of 12000 left 10000"]
    );
    // What was sent in the period arrives, and shows that older packets are lost, too.
    bench.ack(110, &[10], &[2, 3, 6]);
    assert_eq!(
        bench.reported(),
        [
            "rtt 50",
            "open reduce=false proven=false Ack",
            "lost 1000 range=false of 3000",
            "lost 1000 range=false of 4000",
            "lost 1000 range=true of 7000",
            "ack 1000 lost 3000 of 10000 left 6000",
        ]
    );
    // The period is over, and old packets still begin no other, whether an ACK or a timer finds them.
    bench.ack(111, &[11], &[7]);
    bench.lose(112, &[8]);
    let reported = bench.reported();
    assert!(!reported.iter().any(|line| line.contains("reduce")), "{reported:?}");
    // A packet that was sent in it does.
    bench.lose(113, &[12]);
    assert_eq!(bench.reported()[1], "recovery reduce=true proven=false Timer");
}

#[test]
fn new_period_ends_previous_first() {
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.send(60, 10..20);
    bench.reported();
    bench.ack(110, &[14], &[10]);
    assert_eq!(
        bench.reported(),
        [
            "rtt 50",
            "open reduce=false proven=false Ack",
            "lost 1000 range=true of 9000",
            "recovery reduce=true proven=false Ack",
            "ack 1000 lost 1000 of 18000 left 16000",
        ]
    );
}

#[test]
fn marks_reduce_once_a_period() {
    let mut bench = Bench::new();
    for ms in [50, 51] {
        bench.ack(ms, &[ms - 50], &[]);
        bench.driver.events_mut().marked(Bench::at(ms), None);
    }
    assert_eq!(
        bench.reported(),
        [
            "rtt 50",
            "ce true 1000",
            "cwr reduce=true proven=true Ack",
            "ack 1000 lost 0 of 10000 left 9000",
            "rtt 51",
            "ce true 1000",
            "ack 1000 lost 0 of 9000 left 8000",
        ]
    );
}

#[test]
fn persistent_congestion_acts_as_timeout() {
    let mut bench = Bench::new();
    bench.send(900, 10..12);
    bench.ack(950, &[10], &[0, 1]);
    bench.driver.events_mut().persistent_congestion(Bench::at(950));
    assert_eq!(bench.reported()[3], "loss reduce=true proven=false Ack");
    bench.lose(951, &[2]);
    bench.driver.events_mut().persistent_congestion(Bench::at(951));
    assert_eq!(bench.reported()[1], "loss reduce=false proven=false Timer", "no progress since");
    bench.send(960, 12..13);
    bench.ack(1_000, &[12], &[]);
    assert_eq!(bench.reported()[1], "open reduce=false proven=false Ack");
}

#[test]
fn undo_happens_once_before_period_end() {
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.reported();
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.ack(55, &[5], &[]);
    assert_eq!(
        bench.reported(),
        ["undo", "open reduce=false proven=false Ack", "rtt 55", "ack 1000 lost 0 of 8000 left 7000"]
    );
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.ack(56, &[6], &[]);
    assert_eq!(bench.reported(), ["rtt 56", "ack 1000 lost 0 of 7000 left 6000"]);
}

#[test]
fn loss_after_undo_allows_second_undo() {
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.ack(55, &[6], &[]);
    bench.reported();
    // It was sent before the period that was undone.
    bench.ack(56, &[8], &[5]);
    assert_eq!(bench.reported()[2], "recovery reduce=true proven=false Ack");
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.ack(57, &[9], &[]);
    assert!(bench.reported().contains(&"undo".to_owned()));
}

/// The controllers that keep recovery periods themselves agree with the driver.
#[test]
fn loss_after_undo_reduces_window() {
    for controller in ["newreno", "cubic9438"] {
        let mut bench = Bench::with(controller);
        bench.ack(50, &[4], &[0]);
        let reduced = bench.driver.limits().ssthresh;
        bench.driver.events_mut().spurious(Time::ZERO);
        bench.ack(55, &[6], &[]);
        assert!(bench.driver.limits().ssthresh > reduced, "{controller}: undone");
        bench.ack(56, &[8], &[5]);
        assert!(bench.driver.limits().ssthresh <= reduced, "{controller}: {:?}", bench.driver.limits());
    }
}

/// RFC 9002 B.6: a mark answers for losses of its own recovery period, and for no others.
#[test]
fn loss_after_marked_period_reduces_window() {
    for controller in ["newreno", "cubic9438"] {
        let mut bench = Bench::with(controller);
        bench.ack(50, &[0, 1], &[]);
        bench.driver.events_mut().marked(Bench::at(50), None);
        let marked = bench.driver.limits().ssthresh;
        assert_ne!(marked, Limits::INFINITE, "{controller}");
        bench.send(60, 10..11);
        bench.ack(70, &[2, 3, 4, 5, 6, 7, 8, 9], &[]);
        bench.ack(110, &[10], &[]);
        bench.send(120, 11..15);
        bench.ack(170, &[12, 13, 14], &[11]);
        assert!(bench.driver.limits().ssthresh < marked, "{controller}");
    }
}

/// A late packet may be all that its ACK acknowledges, so that nothing of it is left to be reported.
#[test]
fn an_undo_waits_for_nothing() {
    let mut bench = Bench::with("newreno");
    let before = bench.driver.limits();
    bench.ack(50, &[1, 2, 3, 4, 5, 6, 7, 8, 9], &[0]);
    assert!(bench.driver.limits().cwnd < before.cwnd);
    bench.driver.events_mut().spurious(Time::ZERO);
    // Without a look, which would report what is open.
    assert_eq!(bench.driver.events().limits_before().cwnd, before.cwnd);
    let mut bench = Bench::new();
    bench.ack(50, &[1, 2, 3, 4, 5, 6, 7, 8, 9], &[0]);
    bench.reported();
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.send(60, 10..11);
    assert_eq!(bench.reported()[..2], ["undo", "open reduce=false proven=false Ack"]);
    // Once.
    bench.ack(110, &[10], &[]);
    assert!(!bench.reported().contains(&"undo".to_owned()));
}

/// What a timer finds lost after an undo is the timer's.
#[test]
fn timer_loss_after_undo_stays_timer() {
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.reported();
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.lose(90, &[5]);
    let reported = bench.reported();
    assert_eq!(reported[0], "undo");
    assert_eq!(reported.last().unwrap(), "recovery reduce=true proven=false Timer");
}

/// noq forgets lost packets: what it remembers may have arrived, and what the reduction was for not.
#[test]
fn forgotten_losses_remain_congestion() {
    let mut bench = Bench::with("newreno");
    bench.ack(50, &[4], &[0]);
    let reduced = bench.driver.limits().ssthresh;
    // It left before the period began, and begins none.
    bench.ack(70, &[5], &[3]);
    bench.driver.events_mut().spurious(Bench::at(1));
    assert_eq!(bench.driver.limits().ssthresh, reduced);
    bench.driver.events_mut().spurious(Bench::at(0));
    assert!(bench.driver.limits().ssthresh > reduced);
}

/// RFC 9002 B.8: persistent congestion leaves the threshold to the congestion event, which old losses are not.
#[test]
fn old_persistent_congestion_keeps_ssthresh() {
    let mut bench = Bench::with("newreno");
    bench.ack(50, &[4], &[0]);
    let reduced = bench.driver.limits().ssthresh;
    bench.ack(60, &[5], &[1, 2]);
    bench.driver.events_mut().persistent_congestion(Bench::at(60));
    let limits = bench.driver.limits();
    assert_eq!(limits.ssthresh, reduced);
    assert!(limits.cwnd < reduced);
}

/// Two ACKs may arrive at one instant, and packets leave at it.
#[test]
fn send_at_undo_instant_is_acked() {
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.send(50, 10..11);
    assert!(bench.driver.acked(Bench::at(100), 10, Some(Bench::at(50)), 1000, false));
    // Neither does a clock that went back make a packet unknown.
    bench.send(40, 11..12);
    assert!(bench.driver.acked(Bench::at(110), 11, Some(Bench::at(40)), 1000, false));
}

#[test]
fn marks_are_never_undone() {
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.driver.events_mut().marked(Bench::at(50), None);
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.ack(55, &[5], &[]);
    assert!(!bench.reported().contains(&"undo".to_owned()));
    // A mark that comes after the losses, in the same period, proves the congestion, too.
    let mut bench = Bench::new();
    bench.ack(50, &[4], &[0]);
    bench.ack(51, &[5], &[]);
    bench.driver.events_mut().marked(Bench::at(51), None);
    bench.driver.events_mut().spurious(Time::ZERO);
    bench.ack(55, &[6], &[]);
    assert!(!bench.reported().contains(&"undo".to_owned()));
}

#[test]
fn rate_sample_uses_newest_acked_packet() {
    let mut bench = Bench::new();
    bench.ack(50, &[9], &[]);
    let sample = bench.last_ack().sample;
    assert_eq!((sample.delivered, sample.interval), (Some(1000), Some(Duration::from_millis(50))));
    assert_eq!(sample.tx_in_flight, 10_000);
    bench.ack(51, &[0, 2, 1], &[3]);
    let Ack { sample, newly_delivered, newly_lost, .. } = bench.last_ack();
    assert_eq!((sample.tx_in_flight, sample.lost_since_sent), (3_000, 1_000), "of packet 2");
    assert_eq!((sample.delivered, newly_delivered, newly_lost), (Some(4_000), 3_000, 1_000));
}

#[test]
fn full_window_marks_next_ack_limited() {
    let mut bench = Bench::new();
    bench.ack(50, &[0], &[]);
    let ack = bench.last_ack();
    assert_eq!((ack.cwnd_limited, ack.max_packets_out), (false, 10_000));
    bench.driver.events_mut().cwnd_limited();
    bench.ack(51, &[1], &[]);
    assert!(bench.last_ack().cwnd_limited);
}

#[test]
fn application_limited_sends_mark_samples() {
    // The first packet of a connection follows a pause; what leaves after it was delivered does not.
    let sample = |app_limited: bool, holds_back: bool| {
        let mut bench = Bench::new();
        bench.ack(50, &[0, 1, 2], &[]);
        bench.driver.events_mut().settle();
        bench.holds_back.set(holds_back);
        assert!(bench.driver.acked(Bench::at(51), 3, None, 1000, app_limited));
        bench.driver.events_mut().end_acked();
        bench.send(52, 10..11);
        bench.ack(102, &[10], &[]);
        bench.last_ack().sample.app_limited
    };
    assert_eq!([sample(false, false), sample(true, false), sample(false, true)], [false, true, true]);
    // A stack that says so when it sends.
    let mut bench = Bench::new();
    bench.ack(50, &[0, 1, 2], &[]);
    bench.driver.events_mut().app_limited();
    bench.send(52, 10..11);
    bench.ack(102, &[10], &[]);
    assert!(bench.last_ack().sample.app_limited);
}

#[test]
fn simultaneous_acks_stay_separate() {
    let mut bench = Bench::new();
    bench.ack(50, &[0], &[]);
    bench.ack(50, &[1], &[]);
    assert_eq!(
        bench.reported(),
        ["rtt 50", "ack 1000 lost 0 of 10000 left 9000", "rtt 50", "ack 1000 lost 0 of 9000 left 8000"]
    );
}

#[test]
fn older_packet_ack_has_no_rtt() {
    let mut bench = Bench::new();
    bench.ack(50, &[3], &[]);
    bench.ack(55, &[1, 2], &[]);
    assert_eq!(
        bench.reported(),
        ["rtt 50", "ack 1000 lost 0 of 10000 left 9000", "ack 2000 lost 0 of 9000 left 7000"]
    );
}

#[test]
fn discards_and_mtu_follow_ack() {
    let mut bench = Bench::new();
    assert!(bench.driver.acked(Bench::at(50), 0, None, 1000, false));
    bench.driver.events_mut().mtu_changed(1400);
    assert!(bench.driver.acked(Bench::at(50), 1, None, 1000, false));
    bench.driver.events_mut().end_acked();
    bench.driver.reconcile(Bench::at(50), 6_000);
    assert_eq!(
        bench.reported(),
        ["rtt 50", "ack 2000 lost 0 of 10000 left 6000", "discarded 2000", "mss 1400"]
    );
}

/// The pacer of a fixed window lets packets leave at once: what leaves a millisecond after the flight emptied was not there before.
#[test]
fn send_after_pause_is_application_limited() {
    let empty = |bench: &mut Bench| {
        let all = (0..10).collect::<Vec<_>>();
        bench.ack(50, &all, &[]);
        bench.reported();
    };
    let mut bench = Bench::new();
    empty(&mut bench);
    bench.send(50, 10..11);
    assert_eq!(bench.reported(), ["start app_limited=false"], "the ACK opened the window");
    let mut bench = Bench::new();
    empty(&mut bench);
    bench.send(60, 10..11);
    assert_eq!(bench.reported(), ["start app_limited=true"]);
    // A stack that knows need not be guessed at.
    let mut bench = Bench::new();
    empty(&mut bench);
    bench.driver.sent(Bench::at(60), 10, 1000, Some(false));
    assert_eq!(bench.reported(), ["start app_limited=false"]);
}

#[test]
fn numbers_of_three_spaces_may_repeat() {
    let mut bench = Bench::new();
    // The same number, time and size: the older one counts.
    bench.send(0, 3..5);
    bench.send(7, 4..6);
    for sent in [7, 0, 0] {
        let sent = Some(Bench::at(sent));
        assert!(bench.driver.acked(Bench::at(50), 4, sent, 1000, false), "{sent:?}");
    }
    assert!(!bench.driver.acked(Bench::at(50), 4, None, 1000, false));
    assert!(!bench.driver.acked(Bench::at(50), 3, None, 999, false), "no packet of this size");
    assert_eq!(bench.driver.events().in_flight(), 11_000);
}

/// Whatever a stack reports, nothing overflows and no byte appears or disappears.
#[test]
fn nonsense_does_no_harm() {
    for info in CATALOGUE {
        let mut driver = Driver::new(InBytes::new(&Params::by_name(info.name).unwrap(), &START), &START);
        driver.sent(START.now, 0, 0, None);
        assert_eq!(driver.events().counts().sent, 0, "an empty packet is none");
        for number in 0..4 {
            driver.sent(START.now, number, u32::MAX, None);
        }
        assert_eq!(driver.events().in_flight(), Config::MOST_IN_FLIGHT);
        // Time goes back.
        driver.acked(Time::ZERO, 0, None, u32::MAX, true);
        driver.events_mut().marked(Time::ZERO, Some(u32::MAX));
        driver.events_mut().persistent_congestion(Time::ZERO);
        driver.lost(Time::ZERO, 1, u32::MAX);
        driver.events_mut().discarded(Bench::at(1), u32::MAX);
        driver.events_mut().mtu_changed(0);
        driver.events_mut().spurious(Time::ZERO);
        driver.events_mut().end_acked();
        driver.reconcile(Bench::at(2), u64::MAX);
        let limits = driver.limits();
        assert!(limits.cwnd > 0, "{}: {limits:?}", info.name);
        let counts = *driver.events().counts();
        let gone = counts.delivered + counts.lost + counts.discarded;
        assert_eq!(counts.sent, gone + driver.events().in_flight() as u64, "{}", info.name);
    }
}
