//! Each state, its entry and its exits, and the mistakes of other implementations, by events made by hand.

extern crate std;
mod changes;
mod requirements;

use super::*;
use crate::testing::{CONFIG, Flow};
use fullpipe_units::Time;
use std::format;
use std::string::String;
use std::vec::Vec;

const MSS: u64 = CONFIG.mss as u64;
/// 100 segments in the 100 ms of [`Flow`]'s RTT.
const BW: u64 = 100 * MSS * 10;

fn segments(count: u64) -> u64 {
    count * MSS
}

/// A flow in `state` that believes in 100 segments in 100 ms, with 150 in flight and a window of 200.
fn at(state: State) -> (Flow, Bbr3) {
    let mut flow = Flow::new();
    flow.connection.in_flight = 150;
    flow.connection.delivered = 1_000;
    let mut bbr = Bbr3::new(&Params::default(), &CONFIG, &flow.connection);
    bbr.max_bw.update(BW, false);
    bbr.bw = BW;
    bbr.cwnd = segments(200);
    bbr.state = state;
    bbr.full_pipe.full_bw_reached = state != State::Startup;
    bbr.full_pipe.full_bw = BW;
    bbr.probe.cycle_stamp = flow.connection.now.as_micros();
    bbr.probe.bw_probe_wait = 2_500_000;
    bbr.congestion.loss_round_delivered = flow.connection.delivered;
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

fn lost(flow: &mut Flow, segments: u32, tx_in_flight: u32) -> Lost {
    let tx_lost = flow.connection.lost;
    flow.connection.lost += segments as u64;
    Lost {
        now: flow.connection.now,
        delivered: flow.connection.delivered,
        units: segments,
        new_range: true,
        tx_in_flight,
        tx_delivered: flow.connection.delivered,
        tx_lost,
        lost: flow.connection.lost,
        app_limited: false,
    }
}

fn undo(flow: &Flow) -> Undo {
    Undo { connection: flow.connection }
}

// ---- the steps ----

#[test]
fn state_transitions_match_draft_exactly() {
    type Change = fn(&mut Flow, &mut Bbr3);
    let acked: Change = |flow, bbr| bbr.on_ack(&ack(flow));
    let expired: Change = |flow, bbr| {
        flow.pass(Duration::from_millis(5_001));
        bbr.probe.cycle_stamp = flow.connection.now.as_micros();
        bbr.on_ack(&ack(flow));
    };
    let undone: Change = |flow, bbr| {
        bbr.undo.is_allowed = true;
        bbr.undo.state = Some(State::Startup);
        bbr.on_undo(&undo(flow));
    };
    let plateau: Change = |flow, bbr| {
        bbr.full_pipe.full_bw_count = 2;
        bbr.on_ack(&ack(flow));
    };
    let waited: Change = |flow, bbr| {
        flow.pass(Duration::from_millis(2_501));
        bbr.on_ack(&ack(flow));
    };
    let dwelt: Change = |flow, bbr| {
        bbr.min_rtt.probe_rtt_done_stamp = flow.connection.now.as_micros() - 1;
        bbr.on_transmit_start(&TransmitStart {
            connection: Connection { app_limited: true, ..flow.connection },
            last_sent: Time::ZERO,
            rto: Duration::from_millis(300),
        });
    };
    let steps: [(State, Change); 21] = [
        (State::Startup, plateau),
        (State::Drain, |flow, bbr| {
            bbr.drain_start_round = bbr.rounds.rtt_cnt.wrapping_sub(3);
            bbr.on_ack(&ack(flow));
        }),
        (State::Down, |flow, bbr| {
            flow.connection.in_flight = 100;
            bbr.on_ack(&ack(flow));
        }),
        (State::Down, waited),
        (State::Cruise, waited),
        (State::Refill, acked),
        (State::Up, plateau),
        (State::Startup, expired),
        (State::Drain, expired),
        (State::Down, expired),
        (State::Cruise, expired),
        (State::Refill, |flow, bbr| {
            bbr.rounds.begin(1_000_000);
            flow.pass(Duration::from_millis(5_001));
            bbr.on_ack(&ack(flow));
        }),
        (State::Up, expired),
        // Down, and at once Cruise.
        (State::ProbeRtt, dwelt),
        (State::ProbeRtt, |flow, bbr| {
            bbr.full_pipe.full_bw_reached = false;
            bbr.min_rtt.probe_rtt_done_stamp = flow.connection.now.as_micros() - 1;
            bbr.min_rtt.probe_rtt_round_done = true;
            bbr.on_ack(&ack(flow));
        }),
        (State::Drain, undone),
        (State::Down, undone),
        (State::Cruise, undone),
        (State::Refill, undone),
        (State::Up, undone),
        (State::Refill, |flow, bbr| {
            bbr.undo.is_allowed = true;
            bbr.undo.state = Some(State::Up);
            bbr.on_undo(&undo(flow));
        }),
    ];
    for ((from, change), (listed, to, by)) in steps.into_iter().zip(state::STEPS) {
        let (mut flow, mut bbr) = at(from);
        change(&mut flow, &mut bbr);
        let seen =
            if (from, bbr.state) == (State::ProbeRtt, State::Cruise) { State::Down } else { bbr.state };
        assert_eq!((from, seen), (listed, to), "{by}");
    }
    let states =
        [State::Startup, State::Drain, State::Down, State::Cruise, State::Refill, State::Up, State::ProbeRtt];
    for (from, to) in states.into_iter().flat_map(|from| states.map(|to| (from, to))) {
        let step = std::panic::catch_unwind(|| at(from).1.enter(to));
        let listed = state::STEPS.iter().any(|&(a, b, _)| (a, b) == (from, to));
        assert_eq!(step.is_ok(), listed, "{from:?} to {to:?}");
    }
}

// draft 5.6.1: the columns "Pacing Gain" and "Cwnd Gain"
// draft 5.3.1.1: EnterStartup.{pacing_gain, cwnd_gain}
// draft 5.3.2: EnterDrain.{pacing_gain, cwnd_gain}
// draft 5.3.3.9: EnterProbeBW.cwnd_gain
// draft 5.3.4.3: EnterProbeRTT.{pacing_gain, cwnd_gain}
#[test]
fn gains_match_draft_table() {
    let gains = |state: State| {
        let (params, per_cent) = (Params::default(), Ratio::hundredths);
        (per_cent(state.pacing_gain(&params)), per_cent(state.cwnd_gain(&params)))
    };
    let states =
        [State::Startup, State::Drain, State::Down, State::Cruise, State::Refill, State::Up, State::ProbeRtt];
    let table = [(277, 200), (50, 200), (90, 200), (100, 200), (100, 200), (125, 225), (100, 50)];
    assert_eq!(states.map(gains), table);
}

// draft 5.6.4.1#8cf57b: ten segments, which the first round doubles
#[test]
fn fills_pipe_then_drains_cruises_probes() {
    let mut flow = Flow::new();
    let mut bbr = Bbr3::new(&Params::default(), &CONFIG, &flow.connection);
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
            ack.connection.in_flight = if bbr.state == State::Drain { 100 } else { window };
            ack.prior_in_flight = window;
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
    1 startup           20  401
    2 startup           40  794
    3 startup           80 1588
    4 startup          160 3176
    5 startup          260 3970
    6 startup          300 3970
    8 probe_bw_cruise  300 1433
   29 probe_bw_refill  300 1433
   30 probe_bw_up      327 1791
   33 probe_bw_down    300 1290
   51 probe_rtt         50 1433
   55 probe_bw_cruise  300 1433
";
    assert_eq!(table, expected, "\n{table}");
}

// ---- Startup ----

/// Startup at the end of a round of a recovery in which `ranges` ranges of `size` segments were lost, of 200 in flight.
fn startup_after_loss(ranges: u32, size: u32, rounds: u32) -> Bbr3 {
    let (mut flow, mut bbr) = at(State::Startup);
    bbr.on_ack(&ack(&mut flow));
    for _ in 0..ranges {
        bbr.on_lost(&lost(&mut flow, size, 200));
    }
    flow.change(&mut bbr, CaState::Recovery, true);
    for round in 0..=rounds {
        flow.connection.in_flight = 300;
        let mut ack = ack(&mut flow);
        ack.sample.tx_in_flight = 200;
        ack.sample.lost_since_sent = ranges * size;
        // Sent before the first loss, until a round has passed.
        ack.sample.prior_delivered -= (round < rounds) as u64 * 100;
        bbr.on_ack(&ack);
    }
    bbr
}

// draft 5.3.1.3: the criteria of CheckStartupHighLoss
#[test]
fn startup_ends_after_six_loss_ranges() {
    let ended = startup_after_loss(6, 1, 1);
    assert_eq!(ended.state, State::Drain);
    assert!(ended.full_pipe.full_bw_now && ended.full_pipe.full_bw_reached);
    assert_eq!(ended.probe.inflight_longterm, segments(100), "the product, or what a round delivered");
    assert_eq!(ended.undo.state, Some(State::Startup));
    assert_eq!(startup_after_loss(5, 40, 1).state, State::Startup, "five places");
    assert_eq!(startup_after_loss(6, 1, 0).state, State::Drain, "a segment sent after the loss");
}

/// quinn#2481: counting packets, one burst ended Startup.
#[test]
fn single_burst_loss_keeps_startup() {
    assert_eq!(startup_after_loss(1, 6, 1).state, State::Startup);
}

#[test]
fn startup_losses_need_recovery_and_threshold() {
    let state = |recovery: CaState, lost_since_sent: u32| {
        let (mut flow, mut bbr) = at(State::Startup);
        bbr.on_ack(&ack(&mut flow));
        for _ in 0..6 {
            bbr.on_lost(&lost(&mut flow, 1, 300));
        }
        if recovery != CaState::Open {
            flow.change(&mut bbr, recovery, true);
        }
        let mut ack = ack(&mut flow);
        ack.sample.tx_in_flight = 300;
        ack.sample.lost_since_sent = lost_since_sent;
        bbr.on_ack(&ack);
        bbr.state
    };
    assert_eq!(state(CaState::Recovery, 7), State::Drain);
    assert_eq!(state(CaState::Recovery, 6), State::Startup, "2 % is not more than 2 %");
    assert_eq!(state(CaState::Open, 7), State::Startup);
    assert_eq!(state(CaState::Loss, 7), State::Startup);
}

// RFC 9002 section 7.3.2: over QUIC, recovery ends with the first packet that left in it, so before the ACK that ends its round.
#[test]
fn startup_ends_on_recovery_ending_ack() {
    let state = |changes: &[CaState]| {
        let (mut flow, mut bbr) = at(State::Startup);
        bbr.on_ack(&ack(&mut flow));
        for _ in 0..6 {
            bbr.on_lost(&lost(&mut flow, 1, 300));
        }
        for &change in changes {
            flow.change(&mut bbr, change, change > CaState::Disorder);
        }
        let mut ack = ack(&mut flow);
        ack.sample.tx_in_flight = 300;
        ack.sample.lost_since_sent = 7;
        bbr.on_ack(&ack);
        assert_eq!(bbr.recovery_ended, None, "it is that of one ACK");
        bbr.state
    };
    use CaState::{Cwr, Loss, Open, Recovery};
    assert_eq!(state(&[Recovery, Open]), State::Drain);
    assert_eq!(
        state(&[Recovery, Open, Recovery]),
        State::Drain,
        "the ACK showed losses of the next flight, too"
    );
    assert_eq!(state(&[Cwr, Open]), State::Drain);
    assert_eq!(state(&[Open]), State::Startup);
    assert_eq!(state(&[Loss, Open]), State::Startup);
}

#[test]
fn spurious_losses_do_not_end_startup() {
    let (mut flow, mut bbr) = at(State::Startup);
    bbr.on_ack(&ack(&mut flow));
    for _ in 0..6 {
        bbr.on_lost(&lost(&mut flow, 1, 300));
    }
    flow.change(&mut bbr, CaState::Recovery, true);
    let mut ack = ack(&mut flow);
    ack.sample.tx_in_flight = 300;
    ack.sample.lost_since_sent = 7;
    bbr.on_undo(&undo(&flow));
    flow.change(&mut bbr, CaState::Open, false);
    bbr.on_ack(&ack);
    assert_eq!(bbr.state, State::Startup);
}

#[test]
fn app_limited_keeps_startup_and_probe() {
    for state in [State::Startup, State::Up] {
        let (mut flow, mut bbr) = at(state);
        for _ in 0..200 {
            let mut ack = ack(&mut flow);
            ack.sample.app_limited = true;
            bbr.on_ack(&ack);
            assert_eq!(bbr.state, state);
        }
        let mut rounds = 0;
        while bbr.state == state {
            bbr.on_ack(&ack(&mut flow));
            rounds += 1;
        }
        assert_eq!(rounds, 3, "and then it does");
    }
}

// ---- Drain, DOWN, CRUISE ----

#[test]
fn empty_queue_or_rounds_end_drain() {
    let after = |in_flight: u32, rounds: usize| {
        let (mut flow, mut bbr) = at(State::Drain);
        flow.connection.in_flight = in_flight;
        for _ in 0..rounds {
            bbr.on_ack(&ack(&mut flow));
        }
        bbr.state
    };
    assert_eq!(after(101, 3), State::Drain);
    assert_eq!(after(101, 4), State::Down);
    assert_eq!(after(100, 1), State::Cruise, "DOWN has nothing left to do");
}

// draft 5.3.3.9: IsTimeToCruise, StartProbeBW_CRUISE
#[test]
fn cruise_starts_with_headroom_without_queue() {
    let after = |in_flight: u32, longterm: u64| {
        let (mut flow, mut bbr) = at(State::Down);
        bbr.probe.inflight_longterm = longterm;
        flow.connection.in_flight = in_flight;
        bbr.on_ack(&ack(&mut flow));
        bbr.state
    };
    assert_eq!([100, 101].map(|flight| after(flight, INFINITY)), [State::Cruise, State::Down]);
    // tquic: 0.85 was subtracted, so that Cruise kept 15 %.
    assert_eq!([85, 86].map(|flight| after(flight, segments(100))), [State::Cruise, State::Down]);
}

// draft 5.3.2: CheckDrainDone
// draft 5.3.3.9: IsTimeToCruise
/// After losses the short-term bound halves `bw`, and so what Drain takes for one BDP; Down takes that of `max_bw`.
#[test]
fn drain_ends_by_bw_and_down_by_max_bw() {
    let after = |state, in_flight: u32| {
        let (mut flow, mut bbr) = at(state);
        (bbr.bw, bbr.congestion.bw_shortterm) = (BW / 2, BW / 2);
        flow.connection.in_flight = in_flight;
        bbr.on_ack(&ack(&mut flow));
        assert_eq!(bbr.bw, BW / 2);
        bbr.state
    };
    assert_eq!([50, 51].map(|flight| after(State::Drain, flight)), [State::Cruise, State::Drain]);
    assert_eq!([100, 101].map(|flight| after(State::Down, flight)), [State::Cruise, State::Down]);
}

#[test]
fn cruise_keeps_15_percent_headroom() {
    let cap = |state| {
        let (_, mut bbr) = at(state);
        bbr.probe.inflight_longterm = segments(100);
        bbr.model_cap() / MSS
    };
    let states = [State::Down, State::Cruise, State::Refill, State::Up, State::ProbeRtt];
    assert_eq!(states.map(cap), [100, 85, 100, 100, 85]);
    assert_eq!([State::Startup, State::Drain].map(cap), [INFINITY / MSS; 2]);
}

#[test]
fn probe_due_after_wait_or_rounds() {
    let rounds = |bw: u64, rtt_ms: u64| {
        let (mut flow, mut bbr) = at(State::Cruise);
        flow.connection.in_flight = 1;
        bbr.bw = bw;
        bbr.max_bw = MaxBw::default();
        bbr.max_bw.update(bw, false);
        let mut rounds = 0;
        while bbr.state == State::Cruise {
            flow.pass(Duration::from_millis(rtt_ms));
            let mut ack = ack(&mut flow);
            ack.sample.delivered = Some((bw / MSS / 10) as u32);
            bbr.on_ack(&ack);
            rounds += 1;
        }
        rounds
    };
    assert_eq!(rounds(BW, 100), 26, "strictly after 2.5 s");
    assert_eq!(rounds(BW / 5, 10), 20);
    assert_eq!(rounds(BW, 10), 63);
}

/// noq, picoquic, s2n#1698: the filter advanced every round, so that the pacing margin ate 1 % of the rate in each.
#[test]
fn cruise_keeps_bandwidth_for_60_rounds() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.full_pipe.full_bw_count = 2;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.state, bbr.probe.ack_phase), (State::Down, AckPhase::Stopping));
    flow.connection.in_flight = 80;
    let mut advanced = 0;
    for _ in 0..60 {
        let before = bbr.max_bw;
        let mut ack = ack(&mut flow);
        // What is sent at 99 % is delivered at 99 %.
        let sent = bbr.limits().pacing_rate.as_bytes_per_sec().min(BW);
        ack.sample.delivered = Some((sent / 10 / MSS) as u32);
        bbr.on_ack(&ack);
        let mut same = before;
        same.update(sent / 10 / MSS * MSS * 10, false);
        advanced += (same != bbr.max_bw) as u32;
        assert!(bbr.max_bw.get() * 100 >= BW * 99, "{} of {BW}", bbr.max_bw.get());
    }
    assert_eq!((bbr.state, advanced, bbr.probe.ack_phase), (State::Cruise, 1, AckPhase::Init));
}

// ---- REFILL and UP ----

#[test]
fn refill_lasts_round_resets_short_term() {
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.congestion.bw_shortterm = BW / 2;
    bbr.congestion.inflight_shortterm = segments(50);
    flow.pass(Duration::from_millis(2_501));
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.state, bbr.bw), (State::Refill, BW));
    assert_eq!(bbr.congestion.inflight_shortterm, INFINITY);
    let mut early = ack(&mut flow);
    early.sample.prior_delivered -= 1;
    bbr.on_ack(&early);
    assert_eq!(bbr.state, State::Refill, "sent before the round began");
    assert!(!bbr.probe.is_bw_probe_sample);
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.state, bbr.probe.ack_phase), (State::Up, AckPhase::Starting));
    assert!(bbr.probe.is_bw_probe_sample);
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.probe.ack_phase, AckPhase::Feedback);
}

#[test]
fn bound_limited_probe_restarts_plateau_search() {
    let state = |cwnd_limited| {
        let (mut flow, mut bbr) = at(State::Up);
        bbr.cwnd = segments(100);
        bbr.probe.inflight_longterm = segments(100);
        bbr.probe.raise_slope(bbr.cwnd, MSS);
        for _ in 0..5 {
            bbr.on_ack(&Ack { cwnd_limited, ..ack(&mut flow) });
        }
        bbr.state
    };
    assert_eq!(state(true), State::Up);
    assert_eq!(state(false), State::Down);
}

#[test]
fn lossless_ack_raises_bound_to_flight() {
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.probe.inflight_longterm = segments(90);
    let mut high = ack(&mut flow);
    high.sample.tx_in_flight = 120;
    bbr.on_ack(&high);
    assert_eq!(bbr.probe.inflight_longterm, segments(120));
    let mut lossy = ack(&mut flow);
    (lossy.sample.tx_in_flight, lossy.sample.lost_since_sent) = (150, 4);
    bbr.on_ack(&lossy);
    assert_eq!(bbr.probe.inflight_longterm, segments(120));
}

/// A probe whose flight was 200 segments when it lost, in a window of 200.
fn probe_that_lost(count: u32, app_limited: bool) -> (Flow, Bbr3) {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.is_bw_probe_sample = true;
    let run = lost(&mut flow, count, 200);
    bbr.on_lost(&Lost { app_limited, ..run });
    (flow, bbr)
}

#[test]
fn probe_loss_over_threshold_sets_bound() {
    let (_, bbr) = probe_that_lost(4, false);
    assert_eq!((bbr.state, bbr.probe.inflight_longterm), (State::Up, INFINITY), "4 of 200 are 2 %");
    let (_, bbr) = probe_that_lost(5, false);
    assert_eq!(bbr.state, State::Down);
    // 195 in flight before, and (0.02 * 195) / 0.98 of the five.
    let prefix = (2 * segments(195)) / 98;
    assert_eq!(bbr.probe.inflight_longterm, segments(195) + prefix);
    assert!(bbr.probe.prev_probe_too_high && !bbr.probe.is_bw_probe_sample);
    assert_eq!(bbr.undo.state, Some(State::Up));
}

#[test]
fn app_limited_probe_loss_keeps_bound() {
    let (_, bbr) = probe_that_lost(50, true);
    assert_eq!((bbr.state, bbr.probe.inflight_longterm), (State::Down, INFINITY));
}

#[test]
fn probe_lowers_bound_once_to_beta() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.is_bw_probe_sample = true;
    bbr.on_lost(&lost(&mut flow, 10, 20));
    assert_eq!(bbr.probe.inflight_longterm, segments(70), "0.7 of 100");
    let before = bbr.probe;
    bbr.on_lost(&lost(&mut flow, 50, 60));
    assert_eq!(bbr.probe, before);
}

// draft 5.3.3.9: IsTimeToGoDown, AdaptLongTermModel
/// The precaution needs the flight that the ACK found: what is left after it never reaches the bound that caps the window.
#[test]
fn precautionary_probe_stops_next_follows_immediately() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.prev_probe_too_high = true;
    bbr.probe.inflight_longterm = segments(120) + 500;
    let found = |flow: &mut Flow, prior_in_flight| Ack { prior_in_flight, ..ack(flow) };
    bbr.on_ack(&found(&mut flow, 119));
    assert_eq!(bbr.state, State::Up);
    bbr.on_ack(&found(&mut flow, 120));
    assert_eq!(bbr.state, State::Down);
    assert!(bbr.probe.prev_probe_precautionary && !bbr.probe.prev_probe_too_high);
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Refill, "a round of feedback without much loss");
    assert!(!bbr.probe.prev_probe_precautionary);
}

// draft 5.3.3.9: AdaptLongTermModel
/// The feedback's round may be over only in Cruise; the prose names Down alone (docs/explanation/bbr3.md, item 26).
#[test]
fn precautionary_probe_succeeds_in_cruise() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.prev_probe_too_high = true;
    bbr.probe.inflight_longterm = segments(120);
    bbr.on_ack(&Ack { prior_in_flight: 120, ..ack(&mut flow) });
    flow.connection.in_flight = 80;
    let mut within_the_round = ack(&mut flow);
    within_the_round.sample.prior_delivered -= 5;
    bbr.on_ack(&within_the_round);
    assert_eq!(bbr.state, State::Cruise);
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Refill);
}

#[test]
fn lossy_precautionary_probe_delays_next() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.is_bw_probe_sample = true;
    bbr.probe.prev_probe_too_high = true;
    bbr.probe.inflight_longterm = segments(120);
    bbr.on_ack(&Ack { prior_in_flight: 120, ..ack(&mut flow) });
    assert_eq!(bbr.state, State::Down);
    bbr.on_lost(&lost(&mut flow, 20, 120));
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Down);
}

// ---- the short-term model ----

#[test]
fn lossy_round_ends_at_delivered_rate() {
    let (mut flow, mut bbr) = at(State::Cruise);
    let delivers = |flow: &mut Flow, segments, late: u64| {
        let mut ack = ack(flow);
        ack.sample.delivered = Some(segments);
        ack.sample.prior_delivered -= late;
        ack
    };
    bbr.on_ack(&delivers(&mut flow, 90, 0));
    bbr.on_lost(&lost(&mut flow, 1, 100));
    bbr.on_ack(&delivers(&mut flow, 80, 5));
    assert_eq!(bbr.bw, BW, "not before the round is over");
    bbr.on_ack(&delivers(&mut flow, 85, 0));
    assert_eq!(bbr.bw, BW / 100 * 90, "the fastest of the round");
    assert_eq!(bbr.congestion.inflight_shortterm, segments(202) * 7 / 10);
    bbr.on_ack(&delivers(&mut flow, 10, 0));
    assert_eq!(bbr.bw, BW / 100 * 90, "a round without losses changes nothing");
}

#[test]
fn probe_losses_keep_short_term_model() {
    for state in [State::Startup, State::Refill, State::Up] {
        let (mut flow, mut bbr) = at(state);
        bbr.rounds.begin(1_000_000);
        for _ in 0..5 {
            bbr.on_lost(&lost(&mut flow, 1, 100));
            bbr.on_ack(&ack(&mut flow));
        }
        assert_eq!(bbr.congestion.bw_shortterm, INFINITY, "{state:?}");
    }
}

// ---- ProbeRTT ----

#[test]
fn probe_rtt_halves_flight_then_restores() {
    let (mut flow, mut bbr) = at(State::Cruise);
    flow.pass(Duration::from_millis(5_000));
    bbr.probe.cycle_stamp = flow.connection.now.as_micros();
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Cruise, "strictly after five seconds");
    flow.pass(Duration::from_micros(1));
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.state, bbr.limits().cwnd), (State::ProbeRtt, 50));
    assert!(bbr.limits().mark_app_limited);
    assert_eq!(bbr.min_rtt.probe_rtt_done_stamp, 0, "the flight is not small yet");
    flow.connection.in_flight = 50;
    bbr.on_ack(&ack(&mut flow));
    flow.pass(Duration::from_millis(200));
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::ProbeRtt, "200 ms strictly, though a round has passed");
    flow.pass(Duration::from_micros(1));
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Cruise);
    // The few ACKs of this test came in bursts of one.
    assert!((200..=203).contains(&bbr.limits().cwnd), "the gain is two again: {}", bbr.limits().cwnd);
    assert!(bbr.limits().mark_app_limited, "the ACK that ends it marks, too");
    bbr.on_ack(&ack(&mut flow));
    assert!(!bbr.limits().mark_app_limited, "and the next does not");
    flow.pass(Duration::from_millis(4_900));
    bbr.probe.cycle_stamp = flow.connection.now.as_micros();
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Cruise, "five seconds count from its end");
}

/// quiche#2698: half the product was below the window's floor, and the flight never became that small.
#[test]
fn probe_rtt_ends_despite_cwnd_floor() {
    let (mut flow, mut bbr) = at(State::ProbeRtt);
    let bw = 3 * MSS * 10;
    bbr.bw = bw;
    bbr.max_bw = MaxBw::default();
    flow.connection.in_flight = 4;
    for _ in 0..4 {
        flow.pass(Duration::from_millis(100));
        let mut ack = ack(&mut flow);
        ack.sample.delivered = Some(3);
        bbr.on_ack(&ack);
        assert!(bbr.limits().cwnd >= 4);
    }
    assert_eq!(bbr.state, State::Cruise);
}

// draft 5.3.1.2: CheckFullBWReached
/// What was sent before it counts (docs/explanation/bbr3.md, item 24).
#[test]
fn plateau_within_probe_rtt_ends_startup() {
    let (mut flow, mut bbr) = at(State::ProbeRtt);
    bbr.full_pipe.full_bw_reached = false;
    for _ in 0..3 {
        bbr.on_ack(&ack(&mut flow));
    }
    assert_eq!((bbr.state, bbr.full_pipe.full_bw_reached), (State::ProbeRtt, true));
    flow.connection.in_flight = 50;
    for _ in 0..3 {
        flow.pass(Duration::from_millis(101));
        bbr.on_ack(&ack(&mut flow));
    }
    assert_eq!(bbr.state, State::Cruise);
}

#[test]
fn probe_rtt_returns_to_startup() {
    let (mut flow, mut bbr) = at(State::Startup);
    flow.pass(Duration::from_millis(5_001));
    let limited = |flow: &mut Flow| {
        let mut ack = ack(flow);
        ack.sample.app_limited = true;
        ack
    };
    bbr.on_ack(&limited(&mut flow));
    assert_eq!(bbr.state, State::ProbeRtt);
    flow.connection.in_flight = 50;
    for _ in 0..3 {
        flow.pass(Duration::from_millis(101));
        bbr.on_ack(&limited(&mut flow));
    }
    assert_eq!((bbr.state, bbr.full_pipe.full_bw_reached), (State::Startup, false));
}

#[test]
fn idle_restart_paces_without_probing_rtt() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.on_ack(&ack(&mut flow));
    flow.pass(Duration::from_secs(6));
    flow.connection.in_flight = 0;
    let mut start =
        TransmitStart { connection: flow.connection, last_sent: Time::ZERO, rto: Duration::from_millis(300) };
    bbr.on_transmit_start(&start);
    assert!(!bbr.idle_restart, "a full flight was acknowledged at once");
    start.connection.app_limited = true;
    bbr.on_transmit_start(&start);
    assert_eq!(bbr.limits().pacing_rate.as_bytes_per_sec(), BW / 100 * 99, "not 5/4 of it");
    bbr.on_ack(&ack(&mut flow));
    assert_ne!(bbr.state, State::ProbeRtt);
    assert!(!bbr.idle_restart);
    assert_eq!(bbr.aggregation.extra_acked(), MSS, "what was counted before the pause is no burst after it");
}

// ---- recovery and undo ----

#[test]
fn timeout_keeps_one_then_restores_cwnd() {
    let (mut flow, mut bbr) = at(State::Cruise);
    flow.connection.in_flight = 0;
    bbr.on_lost(&lost(&mut flow, 150, 150));
    flow.change(&mut bbr, CaState::Loss, true);
    assert_eq!(bbr.limits().cwnd, 1);
    flow.change(&mut bbr, CaState::Loss, false);
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.limits().cwnd, 4, "the floor");
    flow.change(&mut bbr, CaState::Open, false);
    assert_eq!(bbr.limits().cwnd, 200);
}

#[test]
fn undo_restores_startup_and_bounds() {
    let mut ended = startup_after_loss(6, 1, 1);
    let mut flow = Flow::new();
    flow.connection.state = CaState::Recovery;
    ended.on_undo(&undo(&flow));
    assert_eq!((ended.state, ended.full_pipe.full_bw_reached), (State::Startup, false));
    assert_eq!(ended.probe.inflight_longterm, INFINITY);
}

/// noq: the snapshot was overwritten by each lost packet, so that a probe's bound and state were lost.
#[test]
fn undo_restores_ended_probe() {
    let (mut flow, mut bbr) = probe_that_lost(20, false);
    // More runs are found lost in the same pass, then the recovery begins.
    bbr.on_lost(&lost(&mut flow, 20, 200));
    flow.change(&mut bbr, CaState::Recovery, true);
    for _ in 0..3 {
        bbr.on_ack(&Ack { connection: flow.connection, ..ack(&mut flow) });
        bbr.on_lost(&lost(&mut flow, 1, 200));
    }
    assert!(bbr.probe.inflight_longterm < INFINITY && bbr.congestion.bw_shortterm < INFINITY);
    bbr.cwnd = segments(50);
    bbr.on_undo(&undo(&flow));
    assert_eq!((bbr.state, bbr.limits().cwnd), (State::Refill, 200));
    assert_eq!((bbr.probe.inflight_longterm, bbr.congestion.bw_shortterm), (INFINITY, INFINITY));
    bbr.on_undo(&undo(&flow));
    assert_eq!(bbr.state, State::Refill);
}

#[test]
fn each_recovery_has_own_snapshot() {
    let (mut flow, mut bbr) = probe_that_lost(20, false);
    flow.change(&mut bbr, CaState::Recovery, true);
    flow.change(&mut bbr, CaState::Open, false);
    bbr.on_ack(&ack(&mut flow));
    let bound = bbr.probe.inflight_longterm;
    bbr.on_lost(&lost(&mut flow, 1, 100));
    flow.change(&mut bbr, CaState::Recovery, true);
    bbr.on_undo(&undo(&flow));
    assert_eq!(bbr.probe.inflight_longterm, bound, "the probe's own loss was real");
    assert_ne!(bbr.state, State::Refill);
}

/// An ACK may end a recovery and show the losses of the next one.
#[test]
fn consecutive_recoveries_have_own_snapshots() {
    let (mut flow, mut bbr) = probe_that_lost(20, false);
    flow.change(&mut bbr, CaState::Recovery, true);
    bbr.on_ack(&Ack { connection: flow.connection, ..ack(&mut flow) });
    let bound = bbr.probe.inflight_longterm;
    assert!(bound < INFINITY);
    flow.change(&mut bbr, CaState::Open, false);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    flow.change(&mut bbr, CaState::Recovery, true);
    bbr.on_ack(&Ack { connection: flow.connection, ..ack(&mut flow) });
    bbr.on_undo(&undo(&flow));
    assert_eq!(bbr.probe.inflight_longterm, bound, "the probe's own loss was real");
    assert_ne!(bbr.state, State::Refill);
}

/// QUIC may find a packet lost that left before a recovery that is over: it begins none, and is a part of that one.
#[test]
fn loss_without_recovery_keeps_snapshot() {
    let (mut flow, mut bbr) = probe_that_lost(20, false);
    let tx_delivered = flow.connection.delivered - 1;
    flow.change(&mut bbr, CaState::Recovery, true);
    bbr.on_ack(&Ack { connection: flow.connection, ..ack(&mut flow) });
    flow.change(&mut bbr, CaState::Open, false);
    bbr.on_ack(&ack(&mut flow));
    assert!(bbr.probe.inflight_longterm < INFINITY);
    bbr.on_lost(&Lost { tx_delivered, ..lost(&mut flow, 1, 100) });
    bbr.on_ack(&ack(&mut flow));
    bbr.on_undo(&undo(&flow));
    assert_eq!((bbr.state, bbr.probe.inflight_longterm), (State::Refill, INFINITY));
}

// draft 3.7#36bcec: in every state
#[test]
fn mark_is_congestion_and_forbids_undo() {
    let marks = |flow: &Flow| CeMarks {
        echoed: true,
        units: 1,
        delivered: flow.connection.delivered + 1,
        ..CeMarks::default()
    };
    // Cruising, the round counts as one with losses.
    let (mut flow, mut bbr) = at(State::Cruise);
    for _ in 0..3 {
        bbr.on_ce(&marks(&flow));
        bbr.on_ack(&ack(&mut flow));
    }
    assert_eq!(bbr.congestion.inflight_shortterm, segments(201) * 7 / 10);
    // A probe ends at the flight of the ACK's segment.
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.is_bw_probe_sample = true;
    bbr.on_ce(&marks(&flow));
    let mut marked = ack(&mut flow);
    marked.sample.tx_in_flight = 170;
    bbr.on_ack(&marked);
    assert_eq!((bbr.state, bbr.probe.inflight_longterm), (State::Down, segments(170)));
    bbr.on_undo(&undo(&flow));
    assert_eq!(bbr.state, State::Down);
    // Without an echo nothing happens.
    let (flow, mut bbr) = at(State::Up);
    bbr.on_ce(&CeMarks { echoed: false, ..marks(&flow) });
    assert!(!bbr.congestion.is_loss_in_round && !bbr.is_marked);
}

#[test]
fn six_marked_acks_end_startup() {
    let (mut flow, mut bbr) = at(State::Startup);
    flow.change(&mut bbr, CaState::Cwr, true);
    flow.connection.in_flight = 300;
    for round in 0..6 {
        bbr.on_ce(&CeMarks { echoed: true, delivered: flow.connection.delivered + 1, ..CeMarks::default() });
        let mut ack = ack(&mut flow);
        ack.sample.prior_delivered = if round < 5 { 0 } else { ack.connection.delivered - 1 };
        bbr.congestion.loss_round_delivered = 1;
        bbr.on_ack(&ack);
    }
    assert_eq!(bbr.state, State::Drain);
}

// ---- control parameters ----

#[test]
fn startup_slows_only_at_first_rtt() {
    let mut flow = Flow::new();
    flow.connection.srtt = Duration::ZERO;
    let mut bbr = Bbr3::new(&Params::default(), &CONFIG, &flow.connection);
    let rate = |bbr: &Bbr3| bbr.limits().pacing_rate.as_bytes_per_sec();
    assert_eq!(rate(&bbr), 14_480_000 * 277 / 100, "ten segments a millisecond");
    flow.connection.srtt = Duration::from_millis(100);
    bbr.on_ack(&Ack { sample: RateSample::NONE, ..flow.ack(0) });
    assert_eq!(rate(&bbr), 144_800 * 277 / 100);
    flow.connection.srtt = Duration::from_millis(200);
    bbr.on_ack(&flow.ack(1));
    assert_eq!(rate(&bbr), 144_800 * 277 / 100);
}

#[test]
fn pacing_is_one_percent_below_bandwidth() {
    let rate = |state| {
        let (mut flow, mut bbr) = at(state);
        bbr.rounds.begin(1_000_000);
        bbr.on_ack(&ack(&mut flow));
        assert_eq!(bbr.state, state);
        bbr.limits().pacing_rate.as_bytes_per_sec()
    };
    assert_eq!(rate(State::Down), BW / 10 * 9 / 100 * 99);
    assert_eq!(rate(State::Up), BW / 4 * 5 / 100 * 99);
}

#[test]
fn quantum_is_millisecond_within_bounds() {
    let quantum = |pacing_rate| {
        let (_, mut bbr) = at(State::Cruise);
        bbr.pacing_rate = pacing_rate;
        bbr.set_send_quantum();
        bbr.send_quantum
    };
    assert_eq!([1, 5_000_000, u64::MAX].map(quantum), [2 * MSS, 5_000, 65_536]);
}

#[test]
fn cwnd_covers_bdp_bursts_and_aggregation() {
    let (_, mut bbr) = at(State::Up);
    assert_eq!(bbr.inflight(BW, Ratio::ONE), segments(102));
    bbr.state = State::Cruise;
    assert_eq!(bbr.inflight(BW, Ratio::ONE), segments(100));
    bbr.send_quantum = segments(40);
    assert_eq!(bbr.inflight(BW, Ratio::ONE), segments(120), "three quanta");
    assert_eq!(bbr.inflight(0, Ratio::ONE), segments(120));
    bbr.send_quantum = 0;
    assert_eq!(bbr.inflight(0, Ratio::ONE), segments(4), "four segments");
    bbr.min_rtt.min_rtt_us = NO_RTT;
    assert_eq!(bbr.inflight(BW, Ratio::ONE), segments(10), "the initial window without an RTT");
}

#[test]
fn the_window_follows_a_larger_segment() {
    let (_, mut bbr) = at(State::Cruise);
    bbr.on_mss(CONFIG.mss * 2);
    assert_eq!((bbr.limits().cwnd, bbr.send_quantum), (100, 4 * MSS));
    bbr.cwnd = 1;
    assert_eq!(bbr.limits().cwnd, 1, "never zero");
}

#[test]
fn clamp_scales_with_segment_size() {
    let (_, mut bbr) = at(State::Cruise);
    (bbr.cwnd_clamp, bbr.cwnd) = (segments(300), segments(200));
    bbr.on_mss(CONFIG.mss / 2);
    assert_eq!(bbr.limits().cwnd, 300);
    bbr.on_mss(CONFIG.mss);
    assert_eq!(bbr.cwnd_clamp, segments(300));
}

// ---- bytes ----

/// A flow that counts bytes, and believes what [`at`] does.
fn in_bytes(state: State) -> (Flow, Bbr3) {
    let (mut flow, segments) = at(state);
    flow.connection.in_flight = 150 * CONFIG.mss;
    flow.connection.delivered = 1_000 * MSS;
    let bytes = |segments: u32| segments.saturating_mul(CONFIG.mss).min(Config::MOST_IN_FLIGHT);
    let (initial_cwnd, cwnd_clamp) = (bytes(CONFIG.initial_cwnd), bytes(CONFIG.cwnd_clamp));
    let config = Config { unit: 1, initial_cwnd, cwnd_clamp, ..CONFIG };
    let bbr = Bbr3::new(&segments.params, &config, &flow.connection);
    let Bbr3 { unit, cwnd_clamp, initial_cwnd, delivered_at_start, recovery_delivered, rounds, .. } = bbr;
    let mut congestion = segments.congestion;
    congestion.loss_round_delivered = flow.connection.delivered;
    let bbr = Bbr3 {
        unit,
        cwnd_clamp,
        initial_cwnd,
        delivered_at_start,
        recovery_delivered,
        rounds,
        congestion,
        ..segments
    };
    (flow, bbr)
}

/// A packet of 37 bytes and one of 1,452 are 1,489 bytes, in the rate, the window and the filters.
#[test]
fn mixed_packet_sizes_count_their_bytes() {
    let (mut flow, mut bbr) = in_bytes(State::Cruise);
    bbr.cwnd = segments(100);
    let mut acked = flow.ack(37 + 1_452);
    acked.sample.delivered = Some(144_799);
    acked.sample.tx_in_flight = 150_001;
    bbr.probe.inflight_longterm = 150_000;
    bbr.on_ack(&acked);
    assert_eq!(bbr.congestion.bw_latest, 1_447_990, "144,799 bytes in 100 ms");
    assert_eq!(bbr.congestion.inflight_latest, 144_799);
    assert_eq!(bbr.probe.inflight_longterm, 150_001);
    assert_eq!(bbr.limits().cwnd as u64, (segments(100) + 1_489).min(150_001 - 22_500));
}

/// 60,000 bytes in flight when it left; 1,300 were lost with it and since: (0.02 * 58,800 - 100) / 0.98 of the packet fitted.
#[test]
fn byte_inflight_at_loss_within_packet() {
    let (flow, mut bbr) = in_bytes(State::Up);
    bbr.probe.is_bw_probe_sample = true;
    bbr.cwnd = 50_000;
    let lost = |units: u32, before: u64| Lost {
        now: flow.connection.now,
        delivered: flow.connection.delivered,
        units,
        new_range: true,
        tx_in_flight: 60_000,
        tx_delivered: 0,
        tx_lost: 0,
        lost: before + units as u64,
        app_limited: false,
    };
    bbr.on_lost(&lost(100, 0));
    assert_eq!(bbr.state, State::Up, "100 of 60,000 bytes");
    bbr.on_lost(&lost(1_200, 100));
    assert_eq!((bbr.state, bbr.probe.inflight_longterm), (State::Down, 58_800 + (1_176 - 100) * 100 / 98));
}

#[test]
fn floors_and_steps_are_full_packets() {
    let (mut flow, mut bbr) = in_bytes(State::Cruise);
    assert_eq!(bbr.limits().min_burst, 2 * CONFIG.mss);
    assert_eq!(bbr.min_pipe_cwnd(), segments(4));
    flow.connection.in_flight = 777;
    flow.change(&mut bbr, CaState::Loss, true);
    assert_eq!(bbr.limits().cwnd, 777 + CONFIG.mss);
    flow.connection.in_flight = 0;
    flow.change(&mut bbr, CaState::Loss, false);
    assert_eq!(bbr.limits().cwnd, CONFIG.mss);
    bbr.on_mss(9_000);
    assert_eq!((bbr.limits().cwnd, bbr.unit), (9_000, 1), "a full packet at least");
}

#[test]
fn the_state_is_small() {
    assert!(size_of::<Bbr3>() < 512, "{}", size_of::<Bbr3>());
}

/// Events in any order and of any size: no step that the draft does not have, and every bound holds.
#[test]
fn random_events_break_no_bound() {
    let mut seed = 1u64;
    let mut below = |bound: u64| {
        seed = seed.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (seed >> 33) % bound
    };
    let mut seen = Vec::new();
    for _ in 0..300 {
        let (mut flow, mut bbr) = at(State::Startup);
        flow.connection.delivered = u32::MAX as u64 - 500;
        bbr = Bbr3::new(&bbr.params, &CONFIG, &flow.connection);
        for _ in 0..1_000 {
            flow.pass(Duration::from_micros(below(20_000) * below(3)));
            flow.connection.in_flight = below(300) as u32;
            flow.connection.random = below(u32::MAX as u64) as u32;
            let (probe, was_full) = (bbr.probe, bbr.full_pipe.full_bw_reached);
            match below(40) {
                0..4 => {
                    let (count, flight) = (1 + below(9) as u32, 1 + below(300) as u32);
                    bbr.on_lost(&lost(&mut flow, count, flight));
                }
                4 => {
                    let to = CaState::ALL[below(5) as usize];
                    flow.change(&mut bbr, to, below(2) == 0);
                }
                5 => bbr.on_undo(&undo(&flow)),
                6 => bbr.on_ce(&CeMarks { echoed: below(2) == 0, ..CeMarks::default() }),
                7 => bbr.on_transmit_start(&TransmitStart {
                    connection: Connection { app_limited: below(2) == 0, ..flow.connection },
                    last_sent: Time::ZERO,
                    rto: Duration::ZERO,
                }),
                _ => {
                    let mut ack = flow.ack(below(30) as u32);
                    ack.sample.delivered = (below(9) > 0).then(|| below(200) as u32);
                    ack.sample.interval = (below(9) > 0).then(|| Duration::from_micros(below(200_000)));
                    ack.sample.prior_delivered -= below(100).min(ack.sample.prior_delivered);
                    ack.sample.app_limited = below(4) == 0;
                    ack.sample.tx_in_flight = below(300) as u32;
                    ack.sample.lost_since_sent = (below(3) * below(9)) as u32;
                    ack.rtt = (below(3) > 0).then(|| Duration::from_micros(90_000 + below(30_000)));
                    ack.cwnd_limited = below(2) == 0;
                    bbr.on_ack(&ack);
                    assert!(bbr.limits().cwnd >= 4);
                    assert!(bbr.bw <= bbr.max_bw.get());
                    assert!(bbr.cwnd <= bbr.model_cap());
                    assert!(bbr.state != State::ProbeRtt || bbr.cwnd <= bbr.probe_rtt_cwnd());
                }
            }
            // The long-term bound falls by the one answer to a probe, and by the loss that ends Startup.
            let answered = probe.is_bw_probe_sample && !bbr.probe.is_bw_probe_sample;
            let ended_startup = !was_full && bbr.full_pipe.full_bw_reached;
            let fell = bbr.probe.inflight_longterm < probe.inflight_longterm;
            assert!(!fell || answered || ended_startup, "{probe:?} to {:?}", bbr.probe);
            assert!(bbr.limits().cwnd >= 1 && bbr.limits().pacing_rate.as_bytes_per_sec() >= 1);
            if !seen.contains(&bbr.state) {
                seen.push(bbr.state);
            }
        }
    }
    assert_eq!(seen.len(), 7, "{seen:?}");
}
