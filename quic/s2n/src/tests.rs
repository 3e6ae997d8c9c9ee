//! The adapter by itself, called in the order in which s2n-quic-transport 0.91.0 calls it. `tests/connection` has it in real connections.

use super::*;
use fullpipe_cc::CaState;
use fullpipe_units::Duration;

fn sender(name: &str) -> Sender {
    let adapter = Factory::new(Params::by_name(name).unwrap()).seed(1).adapter(1200);
    lock(&adapter.sender).clone()
}

fn at(ms: u64) -> Time {
    Clock::START + Duration::from_millis(ms)
}

fn send(sender: &mut Sender, ms: u64, packets: usize) -> Vec<Note> {
    (0..packets).map(|_| sender.sent(at(ms), 1200, Some(false))).collect()
}

#[test]
fn losses_before_ack_belong_to_it() {
    let mut sender = sender("newreno");
    let notes = send(&mut sender, 0, 10);
    sender.lost(at(50), &notes[0], 1200, false);
    sender.lost(at(50), &notes[1], 1200, false);
    assert_eq!(sender.events.state(), CaState::Open, "they wait");
    sender.acked(at(50), &notes[9], 1200);
    assert_eq!((sender.events.state(), sender.limits().ssthresh), (CaState::Recovery, 6_000));
    assert_eq!((sender.events.counts().lost, sender.events.in_flight()), (2_400, 7 * 1200));
}

#[test]
fn losses_without_ack_act_as_timeout() {
    let mut sender = sender("newreno");
    let notes = send(&mut sender, 0, 10);
    sender.acked(at(50), &notes[2], 1200);
    sender.lost(at(60), &notes[0], 1200, false);
    // Half of eleven packets: the ACK let the window grow.
    assert_eq!(sender.limits().ssthresh, 6_600);
    // A later ACK, and a loss of the same round.
    sender.lost(at(70), &notes[1], 1200, false);
    sender.acked(at(71), &notes[3], 1200);
    assert_eq!((sender.limits().ssthresh, sender.events.counts().lost), (6_600, 2_400));
}

#[test]
fn ack_reports_bytes_and_newest_rtt() {
    let mut sender = sender("bbr3");
    let notes = send(&mut sender, 0, 2);
    let later = send(&mut sender, 10, 2);
    sender.acked(at(60), &later[1], 4 * 1200);
    assert_eq!(sender.events.counts().delivered, 4 * 1200);
    assert_eq!(sender.events.rtt().min(), Duration::from_millis(50));
    assert_eq!((sender.events.in_flight(), notes.len()), (0, 2));
}

#[test]
fn marks_reduce_and_persistent_congestion_collapses() {
    let mut sender = sender("newreno");
    let notes = send(&mut sender, 0, 10);
    sender.waiting_since = at(50);
    sender.marked = Some(1);
    sender.acked(at(50), &notes[0], 1200);
    assert_eq!((sender.events.state(), sender.limits().ssthresh), (CaState::Cwr, 6_000));
    let later = send(&mut sender, 900, 1);
    notes[1..].iter().for_each(|note| sender.lost(at(950), note, 1200, true));
    sender.acked(at(950), &later[0], 1200);
    assert_eq!(sender.events.state(), CaState::Loss);
}

/// s2n-quic may name a packet with nothing but an ACK as the newest that is acknowledged.
#[test]
fn empty_packet_counts_nothing_sets_rtt() {
    let mut sender = sender("bbr3");
    sender.sent(at(0), 0, None);
    assert_eq!((sender.events.in_flight(), sender.events.counts().sent), (0, 0));
    assert_eq!(sender.pacer.departure(), Time::ZERO);
    send(&mut sender, 1, 4);
    let newest = sender.sent(at(11), 0, None);
    sender.acked(at(61), &newest, 4 * 1200);
    assert_eq!((sender.events.in_flight(), sender.events.rtt().min()), (0, Duration::from_millis(50)));
}

#[test]
fn a_copy_goes_its_own_way() {
    let adapter = Factory::new(Params::by_name("bbr3").unwrap()).seed(1).adapter(1200);
    let copy = adapter.clone();
    lock(&adapter.sender).sent(at(0), 1200, None);
    assert_eq!((adapter.bytes_in_flight(), copy.bytes_in_flight()), (1200, 0));
    assert!(!adapter.is_congestion_limited());
    assert_eq!(adapter.congestion_window(), 12_000);
}
