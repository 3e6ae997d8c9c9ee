//! The four changes to the draft that a falling rate asks for, each alone, and the profile `repaired`.

use super::{BW, ack, at, segments};
use crate::controllers::bbr3::*;

fn with(state: State, change: fn(&mut Params)) -> (crate::testing::Flow, Bbr3) {
    let (flow, mut bbr) = at(state);
    change(&mut bbr.params);
    (flow, bbr)
}

/// Whether the estimate falls with two samples of a tenth, of which a probe that ends begins the second cycle.
fn falls_over_probe_rtts(change: fn(&mut Params)) -> bool {
    let (mut flow, mut bbr) = with(State::Up, change);
    for _ in 0..2 {
        bbr.probe.ack_phase = AckPhase::Feedback;
        flow.pass(Duration::from_millis(5_001));
        bbr.probe.cycle_stamp = flow.connection.now.as_micros();
        // ProbeRTT begins, and ends; what follows is the application's, until the next probe.
        let mut slow = ack(&mut flow);
        slow.sample.delivered = Some(10);
        slow.sample.app_limited = true;
        bbr.on_ack(&slow);
        assert_eq!(bbr.state, State::ProbeRtt);
        bbr.min_rtt.probe_rtt_done_stamp = flow.connection.now.as_micros() - 1;
        bbr.min_rtt.probe_rtt_round_done = true;
        for _ in 0..2 {
            flow.connection.delivered += 1;
            slow.sample.prior_delivered = flow.connection.delivered;
            bbr.on_ack(&Ack { connection: flow.connection, ..slow });
        }
        assert_eq!((bbr.state, bbr.probe.ack_phase), (State::Cruise, AckPhase::Init));
        bbr.enter(State::Refill);
        bbr.enter(State::Up);
        slow.sample.app_limited = false;
        bbr.on_ack(&Ack { connection: flow.connection, ..slow });
    }
    bbr.max_bw.get() < BW
}

#[test]
fn the_draft_keeps_an_estimate_whose_probes_probe_rtt_cuts_and_two_changes_do_not() {
    assert!(!falls_over_probe_rtts(|_| ()));
    assert!(!falls_over_probe_rtts(|params| params.renewal_by_eighth = true));
    assert!(falls_over_probe_rtts(|params| params.pr5_advance_on_down = true));
    assert!(falls_over_probe_rtts(|params| params.cut_probe_advances = true));
}

/// With pull request 5 the cycle advances once per probe, too: by entering Down, and not again a round later.
#[test]
fn a_cycle_that_advances_on_down_does_not_advance_a_round_later() {
    let (mut flow, mut bbr) = with(State::Up, |params| params.pr5_advance_on_down = true);
    bbr.start_probe_bw_down(&Moment::of(&flow.connection));
    bbr.probe.ack_phase = AckPhase::Stopping;
    let mut slow = ack(&mut flow);
    slow.sample.delivered = Some(10);
    bbr.on_ack(&slow);
    bbr.on_ack(&Ack { connection: flow.connection, ..slow });
    assert_eq!(bbr.max_bw.get(), BW, "the cycle before still counts");
}

#[test]
fn only_an_rtt_lower_by_an_eighth_puts_off_probe_rtt() {
    for one_filter in [false, true] {
        let params =
            Params { renewal_by_eighth: true, issue109_one_min_rtt: one_filter, ..Params::default() };
        let stamp =
            |filter: &MinRtt| if one_filter { filter.min_rtt_stamp } else { filter.probe_rtt_min_stamp };
        let mut filter = MinRtt::new(80_000, 0);
        filter.on_ack(&params, 1_000_000, Some(70_001));
        assert_eq!((filter.min_rtt_us, stamp(&filter)), (70_001, 0), "taken, and too near");
        filter.on_ack(&params, 2_000_000, Some(61_251));
        assert_eq!((filter.min_rtt_us, stamp(&filter)), (61_251, 2_000_000));
        // A filter that expired takes any.
        filter.on_ack(&params, 13_000_000, Some(200_000));
        assert_eq!(stamp(&filter), 13_000_000);
    }
}

#[test]
fn with_one_filter_probe_rtt_comes_after_ten_seconds_and_its_window_is_half_of_the_old_product() {
    let (mut flow, mut bbr) = with(State::Cruise, |params| params.issue109_one_min_rtt = true);
    bbr.probe.bw_probe_wait = u32::MAX;
    flow.pass(Duration::from_secs(10));
    let mut late = ack(&mut flow);
    late.rtt = Some(Duration::from_millis(400));
    bbr.rounds.begin(u64::MAX);
    bbr.on_ack(&late);
    assert_eq!((bbr.state, bbr.min_rtt.min_rtt_us), (State::Cruise, 100_000));
    flow.pass(Duration::from_micros(1));
    bbr.on_ack(&Ack { connection: flow.connection, ..late });
    assert_eq!((bbr.state, bbr.min_rtt.min_rtt_us), (State::ProbeRtt, 400_000));
    assert_eq!(bbr.probe_rtt_cwnd(), segments(50), "by 100 ms, not 400");
    // The dwell's end is the clock's beginning.
    flow.pass(Duration::from_millis(500));
    bbr.min_rtt.probe_rtt_done_stamp = flow.connection.now.as_micros() - 1;
    bbr.check_probe_rtt_done(&Moment::of(&flow.connection));
    assert_eq!(bbr.min_rtt.min_rtt_stamp, flow.connection.now.as_micros());
}

#[test]
fn the_profile_is_the_draft_but_for_its_changes() {
    let repaired = Params::repaired();
    let changed = Params { cut_probe_advances: true, renewal_by_eighth: true, ..Params::default() };
    assert_eq!(Params { basis: Basis::Draft, ..repaired }, changed);
}
