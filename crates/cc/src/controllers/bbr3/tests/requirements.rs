//! What the functions of the draft's pseudocode assign, one by one and in the draft's order. Situations are in the file above; the
//! parts that have files of their own are tested there, too.

use super::{BW, MSS, ack, at, lost, segments, undo};
use crate::controllers::bbr3::*;
use crate::testing::{CONFIG, Flow};
use fullpipe_units::Time;

/// A sample that delivered something at this rate.
fn sampled(delivery_rate: u64) -> Sample {
    Sample {
        has_data: true,
        delivered: segments(100),
        delivery_rate,
        tx_in_flight: segments(100),
        ..Sample::default()
    }
}

fn moment(flow: &Flow, random: u32) -> Moment {
    Moment { random, ..Moment::of(&flow.connection) }
}

// draft 4.1.2.3: GenerateRateSample
// draft 5.5.10.3: UpdateLatestDeliverySignals, AdvanceLatestDeliverySignals
#[test]
fn largest_delivery_rate_of_round_counts() {
    let (flow, mut bbr) = at(State::Cruise);
    let of = |delivered: u32, interval_ms: Option<u64>| {
        let mut ack = ack(&mut flow.clone());
        ack.sample.delivered = Some(delivered);
        ack.sample.interval = interval_ms.map(Duration::from_millis);
        Sample::of(&ack, MSS)
    };
    let delivery_rate = [of(100, Some(100)), of(50, Some(200)), of(50, None)].map(|one| one.delivery_rate);
    assert_eq!(delivery_rate, [BW, BW / 4, 0]);
    let delivered = flow.connection.delivered;
    let within = |one: Sample| Sample { prior_delivered: delivered - 1, ..one };
    let after = |one: Sample| Sample { prior_delivered: delivered, ..one };
    for (sample, inflight_latest, next) in [
        (within(of(80, Some(100))), 80, 80),
        (within(of(50, Some(100))), 80, 80),
        (after(of(60, Some(100))), 80, 60),
    ] {
        bbr.congestion.on_sample(&sample, delivered);
        assert_eq!(bbr.congestion.inflight_latest, segments(inflight_latest));
        bbr.congestion.advance(&sample);
        assert_eq!(bbr.congestion.inflight_latest, segments(next));
        assert_eq!(bbr.congestion.bw_latest, segments(next) * 10);
    }
}

// draft 4.1.2.3: InitRateSample.rtt
#[test]
fn ack_without_rtt_keeps_minimum() {
    let (mut flow, mut bbr) = at(State::Cruise);
    flow.pass(Duration::from_secs(4));
    let before = bbr.min_rtt;
    bbr.on_ack(&Ack { rtt: None, ..ack(&mut flow) });
    assert_eq!(bbr.min_rtt, before);
}

// draft 5.2.1: OnInit, OnInit.{extra_acked_interval_start, extra_acked_delivered, undo_state, undo_bw_shortterm}
// draft 5.2.1: OnInit.{undo_inflight_shortterm, undo_inflight_longterm, min_rtt}
// draft 5.5.1: InitRoundCounting, InitRoundCounting.{next_round_delivered, round_count}
#[test]
fn new_flow_has_initial_values() {
    let mut flow = Flow::new();
    flow.connection.delivered = 1;
    let bbr = Bbr3::new(&Params::default(), &CONFIG, &flow.connection);
    let now_us = flow.connection.now.as_micros();
    assert_eq!((bbr.limits().cwnd, bbr.max_bw.get(), bbr.bw), (CONFIG.initial_cwnd, 0, 0));
    assert_eq!((bbr.min_rtt.min_rtt_us, bbr.min_rtt.min_rtt_stamp), (100_000, now_us));
    assert_eq!((bbr.min_rtt.probe_rtt_done_stamp, bbr.min_rtt.probe_rtt_round_done), (0, false));
    assert_eq!((bbr.min_rtt.probe_rtt_min_us, bbr.min_rtt.probe_rtt_min_stamp), (100_000, now_us));
    assert_eq!((bbr.undo.prior_cwnd, bbr.undo.state, bbr.undo.bw_shortterm), (0, None, 0));
    assert_eq!((bbr.undo.inflight_shortterm, bbr.undo.inflight_longterm), (0, 0));
    assert!(!bbr.idle_restart && !bbr.full_pipe.full_bw_reached);
    assert_eq!(bbr.aggregation, Aggregation::new(now_us));
    assert_eq!((bbr.probe.inflight_longterm, bbr.probe.probe_up_acked_per_inc), (INFINITY, INFINITY));
    assert_eq!((bbr.probe.bw_probe_up_acked, bbr.probe.bw_probe_up_rounds), (0, 0));
    assert_eq!(bbr.probe.rounds_since_probe_up, 0);
    assert!(!bbr.probe.is_bw_probe_sample && !bbr.probe.prev_probe_too_high);
    assert!(!bbr.probe.prev_probe_precautionary);
    assert_eq!(bbr.probe.ack_phase, AckPhase::Init);
    assert_eq!((bbr.probe.cycle_stamp, bbr.probe.bw_probe_wait), (0, 0));
    assert_eq!((bbr.congestion.bw_shortterm, bbr.congestion.inflight_shortterm), (INFINITY, INFINITY));
    // What was delivered before, the handshake, begins the first round.
    assert_eq!(bbr.rounds, Rounds::new(flow.connection.delivered));
    assert!(!bbr.rounds.round_start);
    assert_eq!((bbr.rounds.rtt_cnt, bbr.state), (0, State::Startup));
    flow.connection.srtt = Duration::ZERO;
    let unmeasured = Bbr3::new(&Params::default(), &CONFIG, &flow.connection);
    assert_eq!(unmeasured.min_rtt.min_rtt_us, NO_RTT);
}

// draft 5.2.3: UpdateOnACK, UpdateModelAndState, UpdateControlParameters
// draft 5.5.10.3: BoundBWForModel
// draft 5.6.2: SetPacingRate
#[test]
fn faster_ack_updates_model_and_limits() {
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.max_bw = MaxBw::default();
    bbr.max_bw.update(BW / 2, false);
    bbr.bw = BW / 2;
    let mut fast = ack(&mut flow);
    fast.sample.interval = Some(Duration::from_millis(20));
    bbr.on_ack(&fast);
    assert_eq!((bbr.max_bw.get(), bbr.bw, bbr.congestion.bw_latest), (5 * BW, 5 * BW, 5 * BW));
    assert_eq!(bbr.pacing_rate, 5 * BW / 100 * 99, "of this ACK's estimate");
    assert_eq!(bbr.send_quantum, bbr.pacing_rate / 1_000, "of this ACK's rate");
    assert_eq!(bbr.cwnd, segments(201), "and the window");
    // Bounded by the short-term model.
    bbr.congestion.bw_shortterm = BW / 4;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.max_bw.get(), bbr.bw), (5 * BW, BW / 4));
}

// draft 5.3.1.1: EnterStartup, CheckStartupDone
// draft 5.3.2: EnterDrain
#[test]
fn full_pipe_starts_drain_recording_round() {
    let (mut flow, mut bbr) = at(State::Startup);
    bbr.rounds.rtt_cnt = 7;
    bbr.check_startup_done(&sampled(BW));
    assert_eq!(bbr.state, State::Startup);
    bbr.full_pipe.full_bw_reached = true;
    bbr.check_startup_done(&sampled(BW));
    assert_eq!((bbr.state, bbr.drain_start_round), (State::Drain, 7));
    bbr.state = State::Cruise;
    bbr.check_startup_done(&sampled(BW));
    assert_eq!(bbr.state, State::Cruise, "only from Startup");
    flow.connection.in_flight = 0;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.drain_start_round, 7, "and once");
}

// draft 5.3.2: CheckDrainDone
// draft 5.3.3.9: EnterProbeBW
#[test]
fn drain_becomes_down_at_bdp() {
    let (flow, mut bbr) = at(State::Drain);
    bbr.check_drain_done(segments(100) + 1, &moment(&flow, 0));
    assert_eq!(bbr.state, State::Drain);
    bbr.check_drain_done(segments(100), &moment(&flow, 0));
    assert_eq!(bbr.state, State::Down);
}

// draft 5.3.3.9: StartProbeBW_DOWN
// draft 5.3.3.8.3: PickProbeWait
// draft 5.5.10.3: ResetCongestionSignals
// draft 5.5.1: StartRound, StartRound.next_round_delivered
#[test]
fn down_starts_cycle_round_and_clocks() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.probe_up_acked_per_inc = 5;
    bbr.congestion.note_loss(flow.connection.delivered);
    (bbr.congestion.bw_latest, bbr.congestion.inflight_latest) = (BW, segments(9));
    bbr.congestion.bw_shortterm = BW;
    bbr.rounds.begin(0);
    flow.pass(Duration::from_millis(7));
    bbr.start_probe_bw_down(&moment(&flow, 1 << 31 | 1));
    assert_eq!(bbr.probe.probe_up_acked_per_inc, INFINITY);
    assert_eq!(bbr.probe.cycle_stamp, flow.connection.now.as_micros());
    assert_eq!(bbr.probe.ack_phase, AckPhase::Stopping);
    assert_eq!((bbr.probe.bw_probe_wait, bbr.probe.rounds_since_probe_up), (2_500_000, 1));
    assert!(!bbr.congestion.is_loss_in_round);
    assert_eq!((bbr.congestion.bw_latest, bbr.congestion.inflight_latest), (0, 0));
    assert_eq!(bbr.congestion.bw_shortterm, BW, "the bounds stay");
    let mut begun = bbr.rounds;
    begun.begin(flow.connection.delivered);
    assert_eq!((bbr.rounds, bbr.state), (begun, State::Down));
}

// draft 5.3.3.9: StartProbeBW_REFILL
// draft 5.5.10.3: ResetShortTermModel
#[test]
fn refill_resets_probe_and_short_term() {
    let (flow, mut bbr) = at(State::Cruise);
    (bbr.congestion.bw_shortterm, bbr.congestion.inflight_shortterm) = (1, 2);
    (bbr.probe.bw_probe_up_rounds, bbr.probe.bw_probe_up_acked) = (3, 4);
    bbr.probe.prev_probe_precautionary = true;
    bbr.probe.prev_probe_too_high = true;
    bbr.start_probe_bw_refill(flow.connection.delivered + 9);
    assert_eq!((bbr.congestion.bw_shortterm, bbr.congestion.inflight_shortterm), (INFINITY, INFINITY));
    assert_eq!((bbr.probe.bw_probe_up_rounds, bbr.probe.bw_probe_up_acked), (0, 0));
    assert!(!bbr.probe.prev_probe_precautionary && bbr.probe.prev_probe_too_high);
    assert_eq!(bbr.probe.ack_phase, AckPhase::Refilling);
    let mut begun = bbr.rounds;
    begun.begin(flow.connection.delivered + 9);
    assert_eq!((bbr.rounds, bbr.state), (begun, State::Refill));
}

// draft 5.3.3.9: StartProbeBW_UP, UpdateProbeBWCyclePhase, RaiseInflightLongtermSlope
// draft 5.3.1.2: ResetFullBW
#[test]
fn up_starts_search_and_slope() {
    let (mut flow, mut bbr) = at(State::Refill);
    (bbr.full_pipe.full_bw_count, bbr.full_pipe.full_bw_now) = (2, true);
    bbr.probe.is_bw_probe_sample = false;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.probe.ack_phase, bbr.state), (AckPhase::Starting, State::Up));
    assert!(bbr.probe.is_bw_probe_sample);
    assert_eq!((bbr.full_pipe.full_bw, bbr.full_pipe.full_bw_count), (BW, 0));
    assert!(!bbr.full_pipe.full_bw_now);
    assert_eq!((bbr.probe.bw_probe_up_rounds, bbr.probe.probe_up_acked_per_inc), (1, segments(200)));
    let mut begun = bbr.rounds;
    begun.begin(flow.connection.delivered);
    assert_eq!(bbr.rounds, begun);
}

// draft 5.3.3.9: UpdateProbeBWCyclePhase, IsTimeToGoDown, IsTimeToGoDown.full_bw
#[test]
fn full_pipe_ends_probe_without_overshoot() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.prev_probe_too_high = true;
    bbr.full_pipe.full_bw_now = true;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Down);
    assert!(!bbr.probe.prev_probe_too_high && !bbr.probe.prev_probe_precautionary);
    // While the bound is the limit, the pipe is not known to be full.
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.inflight_longterm = segments(200);
    (bbr.full_pipe.full_bw_now, bbr.full_pipe.full_bw_count) = (true, 3);
    bbr.on_ack(&Ack { cwnd_limited: true, ..ack(&mut flow) });
    assert_eq!((bbr.state, bbr.full_pipe.full_bw), (State::Up, BW));
    assert!(!bbr.full_pipe.full_bw_now && bbr.full_pipe.full_bw_count == 0);
}

// draft 5.3.3.9: AdaptLongTermModel, AdaptLongTermModel.ack_phase.2
// draft 5.5.6: AdvanceMaxBwFilter, AdvanceMaxBwFilter.cycle_count
#[test]
fn probe_feedback_ends_then_filter_advances() {
    let (mut flow, mut bbr) = at(State::Down);
    bbr.probe.ack_phase = AckPhase::Stopping;
    bbr.probe.is_bw_probe_sample = true;
    let mut early = ack(&mut flow);
    bbr.rounds.begin(early.connection.delivered);
    early.sample.prior_delivered = 0;
    bbr.on_ack(&early);
    assert_eq!(bbr.probe.ack_phase, AckPhase::Stopping);
    assert!(bbr.probe.is_bw_probe_sample, "the round is not over");
    let mut advanced = bbr.max_bw;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.probe.ack_phase, AckPhase::Init);
    assert!(!bbr.probe.is_bw_probe_sample);
    advanced.advance();
    assert_eq!(bbr.max_bw, advanced);
    // Not if the application was the limit, nor in ProbeRTT.
    for (state, app_limited) in [(State::Down, true), (State::ProbeRtt, false)] {
        let (mut flow, mut bbr) = at(state);
        bbr.probe.ack_phase = AckPhase::Stopping;
        let before = bbr.max_bw;
        let mut limited = ack(&mut flow);
        limited.sample.app_limited = app_limited;
        bbr.on_ack(&limited);
        assert_eq!((bbr.max_bw, bbr.probe.ack_phase), (before, AckPhase::Init), "{state:?}");
    }
    // A probe's first round brings no feedback, its second does.
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.ack_phase = AckPhase::Starting;
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.probe.ack_phase, AckPhase::Feedback);
}

// draft 5.3.3.9: AdaptLongTermModel
#[test]
fn bound_rises_with_flight_never_falls() {
    let (mut flow, mut bbr) = at(State::Cruise);
    let mut flight = |segments_in_flight, bound| {
        bbr.probe.inflight_longterm = bound;
        let mut ack = ack(&mut flow);
        ack.sample.tx_in_flight = segments_in_flight;
        bbr.on_ack(&ack);
        bbr.probe.inflight_longterm
    };
    let inflight_longterm = [flight(120, segments(90)), flight(80, segments(90)), flight(80, INFINITY)];
    assert_eq!(inflight_longterm, [segments(120), segments(90), INFINITY]);
}

// draft 5.3.3.8.3: IsTimeToProbeBW, TargetInflight
#[test]
fn target_is_bdp_or_reduced_cwnd() {
    let (flow, mut bbr) = at(State::Cruise);
    assert_eq!(bbr.target_inflight(), segments(100));
    bbr.cwnd = segments(60);
    assert_eq!(bbr.target_inflight(), segments(60));
    bbr.probe.rounds_since_probe_up = 59;
    assert!(!bbr.check_time_to_probe_bw(&moment(&flow, 0)));
    bbr.probe.rounds_since_probe_up = 60;
    assert!(bbr.check_time_to_probe_bw(&moment(&flow, 0)));
    assert_eq!(bbr.state, State::Refill);
}

// draft 5.3.3.9: IsInAProbeBWState, IsInAProbeBWState.state, IsProbingBW
#[test]
fn probe_bw_and_probing_states_differ() {
    use State::*;
    let all = [Startup, Drain, Down, Cruise, Refill, Up, ProbeRtt];
    let of = |is: fn(State) -> bool| all.map(is);
    assert_eq!(of(State::is_probe_bw), [false, false, true, true, true, true, false]);
    assert_eq!(of(State::is_probing_bw), [true, false, false, false, true, true, false]);
}

// draft 5.3.4.2#9dedfd: five seconds
#[test]
fn probe_rtt_interval_is_standard() {
    assert_eq!(Params::default().probe_rtt_interval_s, 5);
}

// draft 5.3.4.3: CheckProbeRTT, EnterProbeRTT, EnterProbeRTT.{state, pacing_gain, cwnd_gain}
#[test]
fn probe_rtt_saves_cwnd_starts_round() {
    let (mut flow, mut bbr) = at(State::Up);
    bbr.probe.ack_phase = AckPhase::Feedback;
    bbr.min_rtt.probe_rtt_done_stamp = 9;
    bbr.rounds.begin(0);
    flow.pass(Duration::from_micros(5_000_001));
    bbr.idle_restart = true;
    bbr.on_ack(&Ack { sample: RateSample::NONE, ..flow.ack(0) });
    assert_ne!(bbr.state, State::ProbeRtt, "not right after idleness");
    assert!(bbr.idle_restart, "which lasts until something is delivered");
    flow.pass(Duration::from_micros(5_000_001));
    bbr.idle_restart = false;
    let probing = ack(&mut flow);
    bbr.on_ack(&probing);
    assert_eq!((bbr.state, bbr.probe.ack_phase), (State::ProbeRtt, AckPhase::Stopping));
    assert_eq!(bbr.undo.prior_cwnd, segments(200), "as it was when ProbeRTT began");
    assert_eq!(bbr.min_rtt.probe_rtt_done_stamp, 0);
    assert_eq!(bbr.cwnd, segments(50), "the window's gain");
    assert_eq!(bbr.pacing_rate, BW / 100 * 99, "the rate's gain");
    let mut begun = bbr.rounds;
    begun.begin(probing.connection.delivered);
    assert_eq!(bbr.rounds, begun);
    assert!(!bbr.idle_restart);
}

// draft 5.3.4.3: HandleProbeRTT, HandleProbeRTT.probe_rtt_round_done.2, CheckProbeRTTDone
// draft 5.3.4.4: ExitProbeRTT
// draft 4.1.2.4: MarkConnectionAppLimited
#[test]
fn dwell_needs_small_flight_and_round() {
    let (mut flow, mut bbr) = at(State::ProbeRtt);
    bbr.handle_probe_rtt(segments(50) + 1, &moment(&flow, 0));
    assert_eq!(bbr.min_rtt.probe_rtt_done_stamp, 0, "too much is in flight");
    bbr.min_rtt.probe_rtt_round_done = true;
    bbr.rounds.begin(0);
    bbr.handle_probe_rtt(segments(50), &moment(&flow, 0));
    let done = flow.connection.now.as_micros() + 200_000;
    assert_eq!(bbr.min_rtt.probe_rtt_done_stamp, done);
    assert!(!bbr.min_rtt.probe_rtt_round_done);
    let mut begun = bbr.rounds;
    begun.begin(flow.connection.delivered);
    assert_eq!(bbr.rounds, begun, "a round begins with it");
    flow.pass(Duration::from_micros(200_001));
    bbr.rounds.round_start = false;
    bbr.handle_probe_rtt(segments(50), &moment(&flow, 0));
    assert_eq!(bbr.state, State::ProbeRtt, "the time is over and the round is not");
    bbr.rounds.round_start = true;
    bbr.min_rtt.probe_rtt_done_stamp = flow.connection.now.as_micros();
    bbr.handle_probe_rtt(segments(50), &moment(&flow, 0));
    assert!(bbr.min_rtt.probe_rtt_round_done);
    assert_eq!(bbr.state, State::ProbeRtt, "the round is over and the time is not");
    flow.pass(Duration::from_micros(1));
    bbr.rounds.round_start = false;
    bbr.undo.prior_cwnd = segments(180);
    bbr.cwnd = segments(50);
    bbr.congestion.bw_shortterm = BW / 2;
    bbr.probe.cycle_stamp = 0;
    bbr.handle_probe_rtt(segments(50), &moment(&flow, 0));
    let now_us = flow.connection.now.as_micros();
    assert_eq!((bbr.state, bbr.cwnd), (State::Cruise, segments(180)));
    assert_eq!((bbr.congestion.bw_shortterm, bbr.probe.cycle_stamp), (INFINITY, now_us));
    assert_eq!(bbr.min_rtt.probe_rtt_min_stamp, now_us);
}

// draft 5.2.2: OnTransmit
// draft 5.4.1: HandleRestartFromIdle, HandleRestartFromIdle.extra_acked_interval_start
#[test]
fn idle_restart_resets_aggregation_interval() {
    let (mut flow, mut bbr) = at(State::Drain);
    flow.pass(Duration::from_secs(1));
    flow.connection.in_flight = 0;
    flow.connection.app_limited = true;
    bbr.pacing_rate = 7;
    let start =
        TransmitStart { connection: flow.connection, last_sent: Time::ZERO, rto: Duration::from_millis(300) };
    bbr.on_transmit_start(&start);
    assert!(bbr.idle_restart);
    assert_eq!(bbr.aggregation, Aggregation::new(flow.connection.now.as_micros()));
    assert_eq!((bbr.pacing_rate, bbr.state), (7, State::Drain), "the rate is ProbeBW's only");
}

// draft 5.5.1: UpdateRound, UpdateRound.{round_count, round_start.2}
#[test]
fn segment_of_last_round_starts_next() {
    let (flow, mut bbr) = at(State::Cruise);
    let delivered = flow.connection.delivered;
    bbr.rounds.begin(delivered);
    let (count, since) = (bbr.rounds.rtt_cnt, bbr.probe.rounds_since_probe_up);
    bbr.update_round(&Sample { prior_delivered: delivered, ..sampled(BW) }, delivered + 5);
    assert!(bbr.rounds.round_start);
    assert_eq!((bbr.rounds.rtt_cnt, bbr.probe.rounds_since_probe_up), (count + 1, since + 1));
    bbr.update_round(&Sample { prior_delivered: delivered + 4, ..sampled(BW) }, delivered + 6);
    assert!(!bbr.rounds.round_start, "sent before the round began");
    bbr.rounds.round_start = true;
    bbr.update_round(&Sample::default(), delivered + 6);
    assert!(!bbr.rounds.round_start, "nothing was delivered");
    assert_eq!((bbr.rounds.rtt_cnt, bbr.probe.rounds_since_probe_up), (count + 1, since + 1));
}

// draft 5.5.8.1: UpdateOffloadBudget, UpdateOffloadBudget.offload_budget
// draft 5.5.8.2: UpdateOffloadBudget, UpdateOffloadBudget.offload_budget
// draft 5.6.4.2: QuantizationBudget, QuantizationBudget.{inflight_cap, inflight_cap.2, inflight_cap.3}
#[test]
fn cwnd_floor_covers_quanta_and_probe() {
    let (_, mut bbr) = at(State::Cruise);
    bbr.send_quantum = segments(40);
    assert_eq!(bbr.quantise(0), segments(120));
    bbr.params.offload_quanta = 1;
    assert_eq!(bbr.quantise(0), segments(40));
    bbr.send_quantum = segments(2);
    assert_eq!([0, segments(90)].map(|cap| bbr.quantise(cap)), [segments(4), segments(90)]);
    bbr.state = State::Up;
    assert_eq!([0, segments(90)].map(|cap| bbr.quantise(cap)), [segments(6), segments(92)]);
}

// draft 5.5.10.2: IsInflightTooHigh
#[test]
fn loss_over_two_percent_is_excessive() {
    let too_high = |lost| {
        let sample = Sample { lost, tx_in_flight: 10_000, ..Sample::default() };
        is_inflight_too_high(&Params::default(), &sample)
    };
    assert_eq!([0, 200, 201].map(too_high), [false, false, true]);
}

// draft 5.5.10.2: HandleInflightTooHigh, HandleInflightTooHigh.undo_state
#[test]
fn excessive_flight_sets_bound_ends_probe() {
    let (flow, mut bbr) = at(State::Up);
    bbr.probe.is_bw_probe_sample = true;
    let sample = Sample { tx_in_flight: segments(150), ..Sample::default() };
    bbr.handle_inflight_too_high(&sample, &moment(&flow, 0));
    assert!(bbr.probe.prev_probe_too_high && !bbr.probe.is_bw_probe_sample);
    assert_eq!(bbr.probe.inflight_longterm, segments(150));
    assert_eq!((bbr.state, bbr.undo.state), (State::Down, Some(State::Up)));
    // Not below seven tenths of the target; and in Refill no probe runs that could end.
    let (flow, mut bbr) = at(State::Refill);
    let sample = Sample { tx_in_flight: segments(10), ..Sample::default() };
    bbr.handle_inflight_too_high(&sample, &moment(&flow, 0));
    assert_eq!((bbr.probe.inflight_longterm, bbr.state), (segments(70), State::Refill));
    assert_eq!(bbr.undo.state, None);
    // Nor does an application's flight tell anything.
    bbr.probe.inflight_longterm = INFINITY;
    bbr.handle_inflight_too_high(&Sample { is_app_limited: true, ..sample }, &moment(&flow, 0));
    assert_eq!(bbr.probe.inflight_longterm, INFINITY);
}

// draft 5.5.10.2: NoteLoss, HandleLostPacket, HandleLostPacket.{tx_in_flight, lost, is_app_limited, tx_in_flight.2}
#[test]
fn lost_run_uses_its_send_state() {
    let ends = |tx_lost: u64, is_bw_probe_sample: bool, app_limited: bool| {
        let (mut flow, mut bbr) = at(State::Up);
        bbr.probe.is_bw_probe_sample = is_bw_probe_sample;
        flow.connection.lost = 3;
        let run = Lost { tx_lost, app_limited, ..lost(&mut flow, 1, 150) };
        bbr.on_lost(&run);
        assert_eq!(bbr.congestion.is_loss_in_round, bbr.state == State::Up, "a new cycle forgets it");
        assert_eq!(bbr.congestion.loss_round_delivered, flow.connection.delivered);
        (bbr.state, bbr.probe.inflight_longterm)
    };
    // Four of 150 since it left, of which three before it: 2 % of 149 less than three, so it was too high before it.
    let bound = segments(149) - (segments(3) * 100 - 2 * segments(149)) / 98;
    assert_eq!(ends(0, true, false), (State::Down, bound));
    assert_eq!(ends(1, true, false), (State::Up, INFINITY), "three are two percent");
    assert_eq!(ends(0, false, false), (State::Up, INFINITY), "not sent by a probe");
    assert_eq!(ends(0, true, true), (State::Down, INFINITY), "the application's flight is no bound");
}

// draft 5.5.10.2: NoteLoss
#[test]
fn first_loss_sets_end_of_round() {
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    let first = flow.connection.delivered;
    flow.connection.delivered += 7;
    bbr.on_lost(&lost(&mut flow, 1, 100));
    assert_eq!(bbr.congestion.loss_round_delivered, first);
    assert!(bbr.congestion.is_loss_in_round);
}

// draft 5.5.10.3: UpdateCongestionSignals, AdaptLowerBoundsFromCongestion
#[test]
fn bounds_adapt_once_except_while_probing() {
    for (state, adapts) in [(State::Cruise, true), (State::ProbeRtt, true), (State::Up, false)] {
        let (flow, mut bbr) = at(state);
        bbr.congestion.is_loss_in_round = true;
        bbr.update_congestion_signals(&sampled(BW), flow.connection.delivered);
        assert_eq!(bbr.congestion.bw_shortterm, INFINITY, "the round is not over");
        assert!(bbr.congestion.is_loss_in_round);
        bbr.congestion.loss_round_start = true;
        bbr.update_congestion_signals(&sampled(BW), flow.connection.delivered);
        assert_eq!(bbr.congestion.bw_shortterm < INFINITY, adapts, "{state:?}");
        assert!(!bbr.congestion.is_loss_in_round);
    }
}

// draft 5.5.11.1: SaveStateUponLoss, SaveStateUponLoss.{undo_bw_shortterm, undo_inflight_shortterm}
// draft 5.5.11.1: SaveStateUponLoss.{undo_inflight_longterm, undo_state}
#[test]
fn first_loss_saves_undo_state() {
    let (mut flow, mut bbr) = at(State::Cruise);
    (bbr.congestion.bw_shortterm, bbr.congestion.inflight_shortterm) = (1, 2);
    bbr.probe.inflight_longterm = 3;
    bbr.undo.state = Some(State::Up);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    let saved = (bbr.undo.bw_shortterm, bbr.undo.inflight_shortterm, bbr.undo.inflight_longterm);
    assert_eq!((saved, bbr.undo.state, bbr.undo.prior_cwnd), ((1, 2, 3), None, segments(200)));
    bbr.congestion.bw_shortterm = 0;
    bbr.on_lost(&lost(&mut flow, 1, 100));
    assert_eq!(bbr.undo.bw_shortterm, 1, "once an episode");
}

// draft 5.5.11.2: HandleSpuriousLossDetection, HandleSpuriousLossDetection.undo_state
#[test]
fn undo_restores_bounds_and_restarts_search() {
    let (mut flow, mut bbr) = at(State::Cruise);
    (bbr.congestion.bw_shortterm, bbr.congestion.inflight_shortterm) = (BW, segments(80));
    bbr.probe.inflight_longterm = segments(90);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    let halve = |bbr: &mut Bbr3| {
        (bbr.congestion.bw_shortterm, bbr.congestion.inflight_shortterm) = (BW / 2, segments(40));
        bbr.probe.inflight_longterm = segments(45);
    };
    halve(&mut bbr);
    bbr.cwnd = segments(30);
    (bbr.full_pipe.full_bw_now, bbr.full_pipe.full_bw_count) = (true, 3);
    bbr.undo.state = Some(State::Startup);
    bbr.on_undo(&undo(&flow));
    assert!(!bbr.congestion.is_loss_in_round && !bbr.full_pipe.full_bw_now);
    assert_eq!((bbr.full_pipe.full_bw, bbr.full_pipe.full_bw_count, bbr.cwnd), (0, 0, segments(200)));
    assert_eq!((bbr.congestion.bw_shortterm, bbr.congestion.inflight_shortterm), (BW, segments(80)));
    assert_eq!(bbr.probe.inflight_longterm, segments(90));
    assert!(!bbr.full_pipe.full_bw_reached);
    assert_eq!((bbr.state, bbr.undo.state), (State::Startup, None));
    // What grew since stays.
    let (mut flow, mut bbr) = at(State::Cruise);
    halve(&mut bbr);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    bbr.probe.inflight_longterm = segments(99);
    bbr.on_undo(&undo(&flow));
    assert_eq!((bbr.probe.inflight_longterm, bbr.state), (segments(99), State::Cruise));
    // ProbeRTT goes on; its end leads to Startup.
    let (mut flow, mut bbr) = at(State::ProbeRtt);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    for (undo_state, full_bw_reached) in [(State::Up, true), (State::Startup, false)] {
        bbr.undo.state = Some(undo_state);
        bbr.on_undo(&undo(&flow));
        assert_eq!((bbr.state, bbr.full_pipe.full_bw_reached), (State::ProbeRtt, full_bw_reached));
    }
}

// draft 5.6.2: InitPacingRate, InitPacingRate.nominal_bandwidth
#[test]
fn first_rate_uses_initial_window() {
    let mut flow = Flow::new();
    let pacing_rate = |flow: &Flow| Bbr3::new(&Params::default(), &CONFIG, &flow.connection).pacing_rate;
    assert_eq!(pacing_rate(&flow), segments(10) * 10 * 277 / 100, "over the RTT of 100 ms");
    flow.connection.srtt = Duration::ZERO;
    assert_eq!(pacing_rate(&flow), segments(10) * 1_000 * 277 / 100, "over a millisecond");
}

// draft 5.6.2: SetPacingRateWithGain, SetPacingRateWithGain.rate
#[test]
fn rate_falls_only_after_full_pipe() {
    let (flow, mut bbr) = at(State::Startup);
    let mut rate_from = |pacing_rate, full_bw_reached| {
        bbr.pacing_rate = pacing_rate;
        bbr.full_pipe.full_bw_reached = full_bw_reached;
        bbr.set_pacing_rate_with_gain(Ratio::ONE, flow.connection.srtt);
        bbr.pacing_rate
    };
    let rate = BW / 100 * 99;
    let pacing_rate = [rate_from(1, false), rate_from(BW * 2, false), rate_from(BW * 2, true)];
    assert_eq!(pacing_rate, [rate, BW * 2, rate]);
}

// draft 5.6.3: SetSendQuantum, SetSendQuantum.{send_quantum.2, send_quantum.3}
// draft 5.6.3#51c879: two segments at low rates
#[test]
fn quantum_lasts_millisecond_within_bounds() {
    let (_, mut bbr) = at(State::Cruise);
    for (pacing_rate, send_quantum) in [(5_000_000, 5_000), (100_000_000, 65_536), (1_000, 2 * MSS)] {
        bbr.pacing_rate = pacing_rate;
        bbr.set_send_quantum();
        assert_eq!(bbr.send_quantum, send_quantum);
    }
}

// draft 5.6.4.2: BDPMultiple, BDPMultiple.bdp, Inflight, Inflight.inflight_cap
#[test]
fn bdp_is_bandwidth_times_rtt_gain() {
    let (_, mut bbr) = at(State::Cruise);
    assert_eq!(bbr.bdp(BW, Ratio::from_hundredths(225)), segments(225));
    assert_eq!(bbr.bdp(BW / 2, Ratio::ONE), segments(50), "of the bandwidth that is given");
    assert_eq!(bbr.inflight(BW / 100, Ratio::ONE), segments(4).max(3 * bbr.send_quantum));
    bbr.min_rtt.min_rtt_us = NO_RTT;
    assert_eq!(bbr.bdp(BW, Ratio::ONE), segments(10));
}

// draft 5.6.4.2: UpdateMaxInflight, UpdateMaxInflight.{inflight_cap, inflight_cap.2, max_inflight}
// draft 5.6.4.6: SetCwnd, SetCwnd.{cwnd, cwnd.2, cwnd.3}
// draft 2.2#2406cd #1514ae: a window of so many payloads
// draft 2#808e42: in bytes
#[test]
fn cwnd_grows_to_bdp_plus_aggregation() {
    let (flow, mut bbr) = at(State::Cruise);
    let delivered = flow.connection.delivered;
    bbr.cwnd = segments(190);
    bbr.set_cwnd(segments(3), delivered);
    assert_eq!(bbr.cwnd, segments(193));
    bbr.set_cwnd(segments(30), delivered);
    assert_eq!((bbr.cwnd, bbr.limits().cwnd), (segments(200), 200), "two products");
    let burst = Delivery {
        now_us: flow.connection.now.as_micros(),
        newly_acked: segments(7),
        bw: BW,
        cwnd: bbr.cwnd,
        round_count: 0,
        full_bw_reached: true,
    };
    bbr.aggregation.on_ack(&Params::default(), &burst);
    bbr.set_cwnd(segments(30), delivered);
    assert_eq!(bbr.cwnd, segments(207));
    // Before the pipe was full it only grows: below the product's double, or until an initial window was delivered.
    bbr.full_pipe.full_bw_reached = false;
    bbr.state = State::Startup;
    bbr.delivered_at_start = 0;
    bbr.cwnd = segments(300);
    bbr.set_cwnd(segments(5), delivered);
    assert_eq!(bbr.cwnd, segments(300));
    bbr.delivered_at_start = delivered;
    bbr.set_cwnd(segments(5), delivered);
    assert_eq!(bbr.cwnd, segments(305));
    bbr.delivered_at_start = 0;
    bbr.cwnd = segments(206);
    bbr.set_cwnd(segments(5), delivered);
    assert_eq!(bbr.cwnd, segments(211));
    bbr.cwnd = 0;
    bbr.set_cwnd(0, delivered);
    assert_eq!(bbr.cwnd, segments(4));
}

// draft 5.6.4.4: OnEnterRTO, OnEnterRTO.cwnd, OnEnterFastRecovery
#[test]
fn timeout_and_recovery_save_state() {
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.probe.inflight_longterm = segments(90);
    flow.connection.in_flight = 5;
    flow.change(&mut bbr, CaState::Loss, true);
    assert_eq!((bbr.cwnd, bbr.undo.prior_cwnd), (segments(6), segments(200)));
    assert_eq!(bbr.undo.inflight_longterm, segments(90));
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.probe.inflight_longterm = segments(90);
    flow.change(&mut bbr, CaState::Recovery, true);
    assert_eq!((bbr.cwnd, bbr.undo.prior_cwnd), (segments(200), segments(200)));
    assert_eq!(bbr.undo.inflight_longterm, segments(90));
}

// draft 5.6.4.4: SaveCwnd, SaveCwnd.prior_cwnd.2, RestoreCwnd
#[test]
fn saved_cwnd_is_last_or_largest() {
    let saved = |cwnd: u64, ca_state: CaState, state: State| {
        let (_, mut bbr) = at(state);
        bbr.undo.prior_cwnd = segments(100);
        (bbr.cwnd, bbr.ca_state) = (segments(cwnd), ca_state);
        bbr.save_cwnd();
        bbr.undo.prior_cwnd / MSS
    };
    let prior_cwnd = [
        saved(80, CaState::Open, State::Cruise),
        saved(80, CaState::Recovery, State::Cruise),
        saved(80, CaState::Loss, State::Cruise),
        saved(80, CaState::Open, State::ProbeRtt),
        saved(120, CaState::Recovery, State::Cruise),
    ];
    assert_eq!(prior_cwnd, [80, 100, 100, 100, 120]);
    let (_, mut bbr) = at(State::Cruise);
    for (prior_cwnd, cwnd) in [(150, 200), (250, 250)] {
        bbr.undo.prior_cwnd = segments(prior_cwnd);
        bbr.restore_cwnd();
        assert_eq!(bbr.cwnd, segments(cwnd));
    }
}

// draft 5.6.4.5: ProbeRTTCwnd, ProbeRTTCwnd.{probe_rtt_cwnd.2}, BoundCwndForProbeRTT
#[test]
fn probe_rtt_cwnd_is_half_bdp() {
    let (flow, mut bbr) = at(State::ProbeRtt);
    let probe_rtt_cwnd = bbr.probe_rtt_cwnd();
    assert_eq!(probe_rtt_cwnd, segments(50));
    bbr.set_cwnd(0, flow.connection.delivered);
    assert_eq!(bbr.cwnd, segments(50));
    bbr.bw = BW / 50;
    assert_eq!(bbr.probe_rtt_cwnd(), segments(4));
}

// draft 5.6.4.7: BoundCwndForModel, BoundCwndForModel.{cap, cap.2, cap.3, cap.4, cap.5}
#[test]
fn each_state_has_own_cap() {
    use State::*;
    let caps = |inflight_shortterm| {
        [Startup, Drain, Down, Cruise, Refill, Up, ProbeRtt].map(|state| {
            let (_, mut bbr) = at(state);
            bbr.probe.inflight_longterm = segments(100);
            bbr.congestion.inflight_shortterm = inflight_shortterm;
            bbr.model_cap()
        })
    };
    let [bound, headroom] = [100, 85].map(segments);
    let capped = [INFINITY, INFINITY, bound, headroom, bound, bound, headroom];
    assert_eq!(caps(INFINITY), capped);
    assert_eq!(caps(segments(60)), [segments(60); 7]);
    assert_eq!(caps(segments(1)), [segments(4); 7], "but never below four segments");
    let (flow, mut bbr) = at(Cruise);
    bbr.probe.inflight_longterm = segments(100);
    bbr.set_cwnd(0, flow.connection.delivered);
    assert_eq!(bbr.cwnd, headroom);
}

// draft 5.3.1.3: ranges of one round, in a recovery that the ACK's packet was sent in
#[test]
fn loss_ranges_count_per_recovery_round() {
    let state = |first: u32, second: u32, before_recovery: bool| {
        let (mut flow, mut bbr) = at(State::Startup);
        for _ in 0..first {
            bbr.on_lost(&lost(&mut flow, 1, 100));
        }
        bbr.on_ack(&ack(&mut flow));
        for _ in 0..second {
            bbr.on_lost(&lost(&mut flow, 1, 100));
        }
        flow.connection.delivered += before_recovery as u64;
        flow.change(&mut bbr, CaState::Recovery, true);
        let mut last = ack(&mut flow);
        last.sample.prior_delivered -= before_recovery as u64;
        last.sample.lost_since_sent = 10;
        bbr.on_ack(&last);
        bbr.state
    };
    assert_eq!(state(0, 6, false), State::Drain);
    assert_eq!(state(3, 3, false), State::Startup, "three in each round");
    assert_eq!(state(0, 6, true), State::Startup, "sent before recovery began");
}

#[test]
fn mark_counts_only_in_its_round() {
    let (mut flow, mut bbr) = at(State::Startup);
    flow.change(&mut bbr, CaState::Cwr, true);
    bbr.on_ce(&CeMarks { echoed: true, delivered: flow.connection.delivered, ..CeMarks::default() });
    bbr.on_ack(&ack(&mut flow));
    for _ in 0..6 {
        bbr.on_lost(&lost(&mut flow, 1, 1_000));
    }
    bbr.on_ack(&ack(&mut flow));
    assert_eq!(bbr.state, State::Startup, "six ranges, but no more than two percent");
}

// draft 5.3.4.3: CheckProbeRTT
#[test]
fn probe_rtt_restarts_round_midway() {
    let (mut flow, mut bbr) = at(State::Cruise);
    flow.pass(Duration::from_micros(5_000_001));
    bbr.probe.cycle_stamp = flow.connection.now.as_micros();
    bbr.rounds.begin(flow.connection.delivered + 5);
    let early = ack(&mut flow);
    let mut begun = bbr.rounds;
    begun.begin(early.connection.delivered);
    bbr.on_ack(&early);
    assert_eq!((bbr.state, bbr.rounds), (State::ProbeRtt, begun));
}

#[test]
fn loss_ended_probe_uses_last_random() {
    type Event = fn(&mut Flow, &mut Bbr3);
    let events: [Event; 3] = [
        |flow, bbr| bbr.on_ack(&ack(flow)),
        |flow, bbr| flow.change(bbr, CaState::Disorder, false),
        |flow, bbr| {
            let start = TransmitStart {
                connection: flow.connection,
                last_sent: Time::ZERO,
                rto: Duration::from_millis(300),
            };
            bbr.on_transmit_start(&start);
        },
    ];
    for event in events {
        let (mut flow, mut bbr) = at(State::Up);
        flow.connection.random = 1 << 31;
        event(&mut flow, &mut bbr);
        bbr.probe.is_bw_probe_sample = true;
        bbr.on_lost(&lost(&mut flow, 10, 100));
        assert_eq!((bbr.state, bbr.probe.bw_probe_wait), (State::Down, 2_500_000));
    }
}

#[test]
fn idle_restart_clears_probe_rtt_mark() {
    let (flow, mut bbr) = at(State::Cruise);
    bbr.mark_app_limited = true;
    let start =
        TransmitStart { connection: flow.connection, last_sent: Time::ZERO, rto: Duration::from_millis(300) };
    bbr.on_transmit_start(&start);
    assert!(!bbr.limits().mark_app_limited);
}

// draft 3.7#36bcec: what marks prove is not undone
#[test]
fn marks_and_proven_recovery_forbid_undo() {
    for by_mark in [true, false] {
        let (mut flow, mut bbr) = at(State::Cruise);
        bbr.on_lost(&lost(&mut flow, 1, 100));
        if by_mark {
            bbr.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
        } else {
            bbr.on_state(&StateChange {
                connection: flow.connection,
                to: CaState::Recovery,
                reduce: true,
                proven: true,
                trigger: Trigger::Ack,
            });
        }
        bbr.cwnd = segments(50);
        bbr.on_undo(&undo(&flow));
        assert_eq!(bbr.cwnd, segments(50));
    }
}

// draft 5.6.4.4: OnEnterRTO
#[test]
fn timeout_in_recovery_saves_grown_cwnd() {
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    flow.change(&mut bbr, CaState::Recovery, true);
    bbr.cwnd = segments(250);
    flow.change(&mut bbr, CaState::Loss, true);
    assert_eq!(bbr.undo.prior_cwnd, segments(250));
}

// draft 5.5.11.1: SaveStateUponLoss
#[test]
fn loss_after_undo_starts_episode() {
    let (mut flow, mut bbr) = at(State::Cruise);
    bbr.on_lost(&lost(&mut flow, 1, 100));
    bbr.on_undo(&undo(&flow));
    bbr.congestion.bw_shortterm = 7;
    bbr.on_lost(&lost(&mut flow, 1, 100));
    assert_eq!(bbr.undo.bw_shortterm, 7);
}

// draft 5.2.3: UpdateModelAndState
// draft 5.5.10.3: AdvanceLatestDeliverySignals
#[test]
fn loss_round_end_resets_latest_signals() {
    let (mut flow, mut bbr) = at(State::Cruise);
    (bbr.congestion.bw_latest, bbr.congestion.inflight_latest) = (9 * BW, segments(900));
    bbr.on_ack(&ack(&mut flow));
    assert_eq!((bbr.congestion.bw_latest, bbr.congestion.inflight_latest), (BW, segments(100)));
}
