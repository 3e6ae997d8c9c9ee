//! Steps that the table of differences does not have, by events made by hand. What every step comes to is compared with Google's
//! C code (docs/explanation/differential.md).

extern crate std;
mod differences;

use super::*;
use crate::testing::{CONFIG, Flow};
use std::format;
use std::string::String;

/// A flow in `phase` of ProbeBW that believes in 100 segments in 100 ms, with 150 in flight and a window of 200.
fn at(phase: Phase) -> (Flow, Bbr3Linux) {
    let mut flow = Flow::new();
    flow.connection.in_flight = 150;
    flow.connection.delivered = 1_000;
    let mut bbr = Bbr3Linux::new(&Params::default(), &CONFIG, &flow.connection);
    let bw = ((100u64 << 24) / 100_000) as u32;
    let state = State {
        mode: Mode::ProbeBw,
        cycle_idx: phase,
        pacing_gain: 256,
        cwnd_gain: 512,
        bw_hi: [0, bw],
        full_bw: bw,
        full_bw_reached: true,
        cycle_mstamp: flow.connection.now.as_micros(),
        probe_wait_us: 2_500_000,
        pacing_rate: 1_400_000,
        snd_cwnd: 200,
        ..bbr.state()
    };
    bbr.restore(&state);
    (flow, bbr)
}

/// An ACK of one segment at the believed rate; each begins a round.
fn ack(flow: &mut Flow) -> Ack {
    let mut ack = flow.ack(1);
    ack.sample.delivered = Some(100);
    ack.sample.tx_in_flight = 100;
    ack.cwnd_limited = false;
    ack
}

#[test]
fn recorded_state_survives_a_round_trip() {
    let (flow, bbr) = at(Phase::Refill);
    let mut other = Bbr3Linux::new(&Params::default(), &CONFIG, &flow.connection);
    other.restore(&bbr.state());
    assert_eq!(other.state(), bbr.state());
    assert_eq!(other.burst_goal(), bbr.burst_goal());
}

#[test]
fn fills_pipe_then_drains_cruises_probes() {
    let mut flow = Flow::new();
    let mut bbr = Bbr3Linux::new(&Params::default(), &CONFIG, &flow.connection);
    let mut table = String::from("round phase           cwnd KB/s\n");
    let mut before = String::new();
    for round in 1..=60 {
        flow.pass(Duration::from_millis(100));
        // What was sent a round ago arrives, as much as the pipe carries, a tenth at a time.
        let window = bbr.limits().cwnd;
        let sent_after = flow.connection.delivered;
        for _ in 0..10 {
            let mut ack = flow.ack(window.min(100) / 10);
            ack.sample.prior_delivered = sent_after;
            ack.sample.delivered = Some(window.min(100) / 10 * 10);
            ack.connection.in_flight = if bbr.mode == Mode::Drain { 90 } else { window };
            ack.prior_in_flight = if bbr.probe.phase == Phase::Down { 90 } else { window };
            bbr.on_ack(&ack);
        }
        let (limits, phase) = (bbr.limits(), bbr.snapshot().phase.name());
        let line =
            format!("{phase:15} {:4} {:4}", limits.cwnd, limits.pacing_rate.as_bytes_per_sec() / 1_000);
        if line != before {
            table += &format!("{round:5} {line}\n");
        }
        before = line;
    }
    let expected = "\
round phase           cwnd KB/s
    1 startup           20  397
    2 startup           40  795
    3 startup           80 1590
    4 startup          160 3180
    5 startup          260 3975
    6 startup          310 3975
    8 probe_bw_cruise  301 1433
   29 probe_bw_refill  301 1433
   30 probe_bw_up      328 1791
   33 probe_bw_cruise  301 1433
   51 probe_rtt         51 1433
   55 probe_bw_cruise  301 1433
";
    assert_eq!(table, expected, "\n{table}");
}

#[test]
fn app_limited_ack_takes_fast_path() {
    let (mut flow, mut bbr) = at(Phase::Cruise);
    flow.connection.in_flight = 50;
    bbr.on_ack(&Ack { prior_in_flight: 50, ..ack(&mut flow) });
    let reached = State { snd_cwnd: 100, try_fast_path: true, ..bbr.state() };
    let after = |fast_path: bool, newly_lost: u32| {
        let (mut bbr, mut flow) = (bbr, flow);
        bbr.restore(&reached);
        bbr.params.fast_path = fast_path;
        let mut ack = ack(&mut flow);
        ack.sample.app_limited = true;
        ack.sample.delivered = Some(10);
        ack.newly_lost = newly_lost;
        if newly_lost > 0 {
            bbr.signals.note_loss(flow.connection.delivered);
        }
        bbr.on_ack(&ack);
        (bbr.limits().cwnd, bbr.state().ack_epoch_acked - reached.ack_epoch_acked)
    };
    assert_eq!(after(true, 0), (100, 0), "neither window nor aggregation were looked at");
    assert_eq!(after(false, 0), (101, 1));
    assert_eq!(after(true, 1).1, 1, "a loss takes the slow path");
}

#[test]
fn cleared_marks_trigger_large_probe_immediately() {
    let (mut flow, mut bbr) = at(Phase::Cruise);
    let marked = State { ecn_eligible: true, ecn_in_cycle: true, inflight_hi: 160, ..bbr.state() };
    bbr.restore(&marked);
    flow.connection.state = CaState::Cwr;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state().cycle_idx, Phase::Cruise, "they have not ceased");
    flow.connection.state = CaState::Open;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.state().cycle_idx, bbr.state().bw_probe_up_rounds), (Phase::Refill, 6), "64 of 80");
    bbr.restore(&State { loss_in_cycle: true, ..marked });
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state().cycle_idx, Phase::Cruise, "a loss among them");
}

#[test]
fn tail_probe_ack_keeps_previous_delivery() {
    let latest = |may_answer_probe: bool| {
        let (mut flow, mut bbr) = at(Phase::Cruise);
        bbr.on_ack(&ack(&mut flow));
        let mut ack = ack(&mut flow);
        ack.sample.delivered = Some(3);
        bbr.on_ack(&Ack { may_answer_probe, ..ack });
        bbr.state().inflight_latest
    };
    assert_eq!([latest(false), latest(true)], [3, 100]);
}

#[test]
fn idle_restart_paces_without_probing_rtt() {
    let (mut flow, mut bbr) = at(Phase::Up);
    flow.pass(Duration::from_secs(6));
    flow.connection.app_limited = true;
    bbr.on_transmit_start(&TransmitStart {
        connection: flow.connection,
        last_sent: fullpipe_units::Time::ZERO,
        rto: Duration::from_millis(300),
    });
    assert!(bbr.state().idle_restart);
    assert_eq!(bbr.state().pacing_rate, 1_433_501, "the estimate itself, not 5/4 of it");
    bbr.on_ack(&ack(&mut flow));
    assert_ne!(bbr.state().mode, Mode::ProbeRtt);
    assert!(!bbr.state().idle_restart);
}
