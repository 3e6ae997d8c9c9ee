//! The adapter by itself; `tests/` has it in real connections.

use super::*;
use fullpipe_cc::CaState;
use fullpipe_units::Duration;

/// quinn's estimator cannot be built outside of quinn, and its value is not used: these tests go around [`Controller::on_ack`].
fn sender(name: &str) -> Sender {
    #[allow(clippy::disallowed_methods, reason = "the start of a count, whatever it is")]
    let start = Instant::now();
    let adapter = Factory::new(Params::by_name(name).unwrap()).seed(1).adapter(start, 1200);
    lock(&adapter.sender).clone()
}

fn at(ms: u64) -> Time {
    Clock::START + Duration::from_millis(ms)
}

#[test]
fn burst_packets_are_acked_individually() {
    let mut sender = sender("newreno");
    sender.sent(at(0), 3 * 1200);
    sender.sent(at(0), 500);
    sender.sent(at(1), 1200);
    sender.acked(at(50), at(0), 1200, false);
    sender.acked(at(50), at(0), 500, false);
    sender.acked(at(50), at(7), 1200, false);
    assert_eq!(sender.events.counts().delivered, 1700, "nothing left at 7 ms");
    assert_eq!(sender.events.in_flight(), 2 * 1200 + 500 + 1200 - 500);
}

#[test]
fn loss_sum_covers_oldest_bytes() {
    let mut sender = sender("newreno");
    (0..8).for_each(|ms| sender.sent(at(ms), 1200));
    sender.acked(at(50), at(5), 1200, false);
    sender.events.end_acked();
    sender.reconcile(at(50), 7 * 1200);
    sender.lost(at(50), at(2), 3 * 1200);
    assert_eq!(sender.events.limits().ssthresh, 6_000);
    assert_eq!((sender.events.state(), sender.events.counts().lost), (CaState::Recovery, 3 * 1200));
    // What left later than the newest lost packet was not lost, whatever the sum.
    sender.lost(at(51), at(3), 5 * 1200);
    assert_eq!(sender.events.counts().lost, 4 * 1200);
    assert_eq!(sender.events.limits().ssthresh, 6_000, "of the same round");
}

#[test]
fn non_ack_eliciting_packets_leave_flight() {
    let mut sender = sender("bbr3");
    sender.sent(at(0), 40);
    sender.sent(at(1), 1200);
    sender.acked(at(50), at(1), 1200, false);
    sender.events.end_acked();
    sender.reconcile(at(50), 0);
    assert_eq!((sender.events.in_flight(), sender.events.counts().discarded), (0, 40));
    // An endpoint that only receives.
    (0..100_000).for_each(|ms| sender.sent(at(100 + ms), 40));
    assert!((sender.events.in_flight() as u64) <= 2 * sender.largest_window + Sender::SLACK);
}

/// A few bytes that never were in flight cost a few bytes, and no packet.
#[test]
fn discarded_bytes_hide_no_packet() {
    let mut sender = sender("bbr3");
    (0..4).for_each(|ms| sender.sent(at(ms), 1200));
    sender.sent(at(4), 40);
    sender.acked(at(50), at(1), 1200, false);
    sender.events.end_acked();
    sender.reconcile(at(50), 3 * 1200);
    for ms in [0, 2, 3] {
        sender.acked(at(51 + ms), at(ms), 1200, false);
    }
    sender.events.end_acked();
    sender.reconcile(at(60), 0);
    let counts = *sender.events.counts();
    assert_eq!((counts.delivered, counts.discarded), (4 * 1200 - 40, 80));
}

#[test]
fn mtu_probe_is_not_burst_packet() {
    let mut sender = sender("newreno");
    sender.sent(at(0), 2 * 1452);
    sender.probed = Some(1452);
    sender.acked(at(50), at(0), 1452, false);
    assert_eq!(sender.events.counts().delivered, 0);
    sender.acked(at(50), at(0), 1452, false);
    assert_eq!(sender.events.counts().delivered, 1452);
}

#[test]
fn full_flight_is_window_limited() {
    let mut sender = sender("newreno");
    // Slow start grows only if the window is used.
    sender.sent(at(0), 4 * 1200);
    sender.acked(at(50), at(0), 1200, false);
    assert_eq!(sender.events.limits().cwnd, 12_000);
    sender.sent(at(51), 7 * 1200);
    sender.acked(at(101), at(51), 1200, false);
    assert_eq!(sender.events.limits().cwnd, 13_200);
}

#[test]
fn the_metrics_are_quinn_s_units() {
    #[allow(clippy::disallowed_methods, reason = "the start of a count, whatever it is")]
    let start = Instant::now();
    let adapter = Factory::new(Params::by_name("bbr3").unwrap()).seed(1).adapter(start, 1200);
    lock(&adapter.sender).sent(at(0), 1200);
    lock(&adapter.sender).acked(at(100), at(0), 1200, false);
    let metrics = adapter.metrics();
    // draft-ietf-ccwg-bbr-06 section 5.6.2: 2.77 times the initial window of ten packets, in the first RTT of 100 ms; bits a second.
    assert_eq!(metrics.pacing_rate.map(|rate| rate / 8_000), Some(332));
    assert_eq!(adapter.window(), metrics.congestion_window + 1);
    let copy = adapter.clone_box().into_any().downcast::<Adapter>().unwrap();
    assert_eq!(copy.view(), adapter.view());
}
