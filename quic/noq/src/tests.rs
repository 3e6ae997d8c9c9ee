//! The adapter by itself; `tests/` has it in real connections.

use super::*;
use std::time::Duration;

/// noq's estimator cannot be built outside of noq, and its value is not used: these tests go around [`Controller::on_ack`].
struct Connection {
    adapter: Adapter,
    start: Instant,
}

impl Connection {
    fn new(name: &str) -> Connection {
        // The one moment of these tests; all others are counted from it.
        #[allow(clippy::disallowed_methods, reason = "the start of a count, whatever it is")]
        let start = Instant::now();
        let factory = Factory::new(Params::by_name(name).unwrap()).seed(1);
        Connection { adapter: factory.adapter(start, 1200), start }
    }

    fn at(&self, ms: u64) -> Instant {
        self.start + Duration::from_millis(ms)
    }

    fn sent(&mut self, ms: u64, pn: u64, bytes: u16) {
        let now = self.at(ms);
        self.adapter.on_packet_sent(now, bytes, pn);
    }

    fn acked(&mut self, ms: u64, sent_ms: u64, pn: u64, bytes: u32) -> bool {
        let clock = self.adapter.clock;
        let (now, sent) = (clock.at(self.at(ms)), clock.at(self.at(sent_ms)));
        lock(&self.adapter.driver).acked(now, pn, Some(sent), bytes, false)
    }

    fn end_acks(&mut self, ms: u64, in_flight: u64) {
        let now = self.at(ms);
        self.adapter.on_end_acks(now, in_flight, false, None);
    }

    fn lost(&mut self, ms: u64, pn: u64, bytes: u16) {
        let now = self.at(ms);
        self.adapter.on_packet_lost(bytes, pn, now);
    }

    fn congestion(&mut self, ms: u64, persistent: bool, ecn: bool) {
        let now = self.at(ms);
        self.adapter.on_congestion_event(now, now, persistent, ecn, 1200, 0);
    }
}

#[test]
fn packet_number_spaces_are_distinguished() {
    let mut connection = Connection::new("newreno");
    // One datagram with an Initial and a Handshake packet of the same number, at the same time; then 1-RTT data.
    connection.sent(0, 0, 300);
    connection.sent(0, 0, 900);
    connection.sent(1, 0, 1200);
    connection.sent(1, 1, 1200);
    assert!(connection.acked(50, 0, 0, 900));
    assert_eq!(connection.adapter.view().in_flight, 300 + 2 * 1200);
    assert!(connection.acked(51, 1, 0, 1200));
    assert!(connection.acked(52, 0, 0, 300));
    assert!(!connection.acked(53, 0, 0, 300), "it was acknowledged before");
    assert_eq!(connection.adapter.view().in_flight, 1200);
    assert_eq!(connection.adapter.view().counts.delivered, 300 + 900 + 1200);
}

#[test]
fn losses_after_ack_end_join_it() {
    let mut connection = Connection::new("newreno");
    (0..10).for_each(|pn| connection.sent(0, pn, 1200));
    assert!(connection.acked(50, 0, 9, 1200));
    connection.end_acks(50, 9 * 1200);
    connection.lost(50, 0, 1200);
    connection.congestion(50, false, false);
    let view = connection.adapter.view();
    assert_eq!(
        (view.state, view.counts.lost, view.in_flight),
        (fullpipe_cc::CaState::Recovery, 1200, 8 * 1200)
    );
    // Half of the window of ten packets, and RFC 9002 section 7.3.2 lets one packet more leave than is in flight.
    assert_eq!((view.limits.ssthresh, view.limits.cwnd), (6_000, 9 * 1200));
}

#[test]
fn losses_before_reduction_trigger_no_other() {
    let mut connection = Connection::new("newreno");
    (0..20).for_each(|pn| connection.sent(0, pn, 1200));
    assert!(connection.acked(50, 0, 5, 1200));
    connection.end_acks(50, 19 * 1200);
    connection.lost(50, 0, 1200);
    connection.congestion(50, false, false);
    let threshold = connection.adapter.limits().ssthresh;
    connection.sent(51, 20, 1200);
    // The period ends with what was sent in it, and then older packets turn out to be lost.
    assert!(connection.acked(100, 51, 20, 1200));
    connection.end_acks(100, 18 * 1200);
    (6..12).for_each(|pn| connection.lost(100, pn, 1200));
    connection.congestion(100, false, false);
    let view = connection.adapter.view();
    assert_eq!((view.state, view.limits.ssthresh), (fullpipe_cc::CaState::Open, threshold));
}

#[test]
fn marks_reduce_once_persistent_congestion_collapses() {
    let mut connection = Connection::new("newreno");
    (0..10).for_each(|pn| connection.sent(0, pn, 1200));
    for (ms, pn) in [(50, 0), (51, 1)] {
        assert!(connection.acked(ms, 0, pn, 1200));
        connection.end_acks(ms, (9 - pn) * 1200);
        connection.congestion(ms, false, true);
    }
    assert_eq!(connection.adapter.limits().ssthresh, 6_000, "once for both");
    connection.sent(60, 10, 1200);
    assert!(connection.acked(2_000, 60, 10, 1200));
    connection.end_acks(2_000, 8 * 1200);
    (2..10).for_each(|pn| connection.lost(2_000, pn, 1200));
    connection.congestion(2_000, true, false);
    let view = connection.adapter.view();
    assert_eq!(view.state, fullpipe_cc::CaState::Loss);
    // RFC 9002 sections A.7 and B.8: the window collapses to two packets, and then what the ACK acknowledges lets it grow. The
    // threshold stays: what is lost left before the marks' period began, and is no congestion event of its own.
    let limits = connection.adapter.limits();
    assert_eq!((limits.ssthresh, limits.cwnd), (6_000, 3_600));
}

/// noq keeps no packet for longer than two probe timeouts among those that it declared lost.
#[test]
fn late_spurious_report_keeps_reduction() {
    let mut connection = Connection::new("newreno");
    (0..20).for_each(|pn| connection.sent(0, pn, 1200));
    assert!(connection.acked(50, 0, 5, 1200));
    connection.end_acks(50, 19 * 1200);
    connection.lost(50, 0, 1200);
    connection.congestion(50, false, false);
    connection.sent(51, 20, 1200);
    assert!(connection.acked(100, 51, 20, 1200));
    connection.end_acks(100, 18 * 1200);
    assert_eq!(connection.adapter.limits().ssthresh, 6_000);
    // Much later an ACK alone is overtaken, declared lost, and acknowledged.
    connection.lost(10_000, 50, 0);
    connection.adapter.on_spurious_congestion_event();
    assert_eq!(connection.adapter.limits().ssthresh, 6_000);
}

#[test]
fn pacer_gets_rate_in_bytes() {
    let mut connection = Connection::new("bbr3");
    connection.sent(0, 0, 1200);
    assert!(connection.acked(100, 0, 0, 1200));
    connection.end_acks(100, 0);
    let (metrics, limits) = (connection.adapter.metrics(), connection.adapter.limits());
    // draft-ietf-ccwg-bbr-06 section 5.6.2: 2.77 times the initial window of ten packets, in the first RTT of 100 ms.
    assert_eq!(metrics.pacing_rate.map(|rate| rate / 1_000), Some(332));
    assert_eq!(metrics.pacing_rate, Some(limits.pacing_rate.as_bytes_per_sec()));
    assert_eq!((metrics.send_quantum, metrics.congestion_window), (Some(2_400), limits.cwnd as u64));
}

#[test]
fn window_without_rate_leaves_pacing_unset() {
    let connection = Connection::new("newreno");
    assert_eq!(connection.adapter.metrics().pacing_rate, None);
    assert_eq!((connection.adapter.initial_window(), connection.adapter.window()), (12_000, 12_000));
}

#[test]
fn clone_is_independent_and_keeps_type() {
    let mut connection = Connection::new("bbr3");
    connection.sent(0, 0, 1200);
    let copy = connection.adapter.clone_box().into_any().downcast::<Adapter>().unwrap();
    connection.sent(1, 1, 1200);
    assert_eq!((copy.view().in_flight, connection.adapter.view().in_flight), (1200, 2400));
}

#[test]
fn looking_from_outside_changes_nothing() {
    #[allow(clippy::disallowed_methods, reason = "the start of a count, whatever it is")]
    let start = Instant::now();
    let factory = Factory::new(Params::by_name("newreno").unwrap()).seed(1);
    let watch = factory.watch();
    let adapter = factory.adapter(start, 1200);
    let mut connection = Connection { adapter, start };
    connection.sent(0, 0, 1200);
    assert!(connection.acked(50, 0, 0, 1200));
    connection.end_acks(50, 0);
    let seen = watch.view().unwrap();
    assert_eq!((seen.limits.cwnd, seen.counts.delivered), (12_000, 1200), "the ACK is still open");
    assert_eq!(seen.smoothed_rtt, fullpipe_units::Duration::ZERO);
    assert_eq!(connection.adapter.view().smoothed_rtt, fullpipe_units::Duration::from_millis(50));
    assert_eq!(watch.view(), Some(connection.adapter.view()));
}
