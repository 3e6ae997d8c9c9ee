//! The branches of CUBIC and HyStart, as the state before and after a call shows them.

use crate::coverage::{Coverage, branches};
use crate::{Call, Hook};
use fullpipe_cc::controller::CaState;
use fullpipe_cc::controllers::cubic::CubicIncrease;
use fullpipe_cc::controllers::segment_window::{Pacing, Window};

branches!(CubicBranch {
    BeforeInit "before_init" "a call while the handshake lasts";
    Init "init" "init";
    // RTTs.
    NoRtt "no_rtt" "an ACK without an RTT";
    RttDiscarded "rtt_discarded" "an RTT within a second of the epoch's start";
    DelayMinFalls "delay_min_falls" "a new minimum RTT";
    // HyStart.
    HystartRound "hystart_round" "a round begins";
    HystartSmall "hystart_small" "it does nothing, because the window is below 16";
    HystartTrain "hystart_train" "an ACK continues the train";
    HystartGap "hystart_gap" "an ACK too late for the train";
    HystartSamples "hystart_samples" "a sample beyond the eighth of a round";
    HystartTrainEnds "hystart_train_ends" "the train's length ends slow start";
    HystartDelayEnds "hystart_delay_ends" "the RTT's rise ends slow start";
    HystartBothEnd "hystart_both_end" "both at once";
    HystartPaced "hystart_paced" "it looks at a paced flow";
    HystartUnpaced "hystart_unpaced" "it looks at an unpaced flow";
    HystartFound "hystart_found" "slow start continues, but its end was found before";
    // Growth.
    NotLimited "not_limited" "the window was not the limit";
    SlowStart "slow_start" "slow start takes all that was acknowledged";
    SlowStartEnds "slow_start_ends" "it reaches the threshold with some left";
    Unchanged "unchanged" "the window is as at the last evaluation, 1/32 s ago at most";
    SameJiffy "same_jiffy" "the curve was evaluated in this jiffy";
    Evaluated "evaluated" "the curve is evaluated";
    EpochBelowOrigin "epoch_below_origin" "an epoch begins below the last maximum";
    EpochAtOrigin "epoch_at_origin" "an epoch begins at the last maximum or above";
    CurveBelow "curve_below" "before the curve's flat part";
    CurveAbove "curve_above" "after it";
    TargetNotAbove "target_not_above" "the target is not above the window: one segment in 100 windows";
    NoMaximum "no_maximum" "no loss yet: 5 % a round";
    RenoGrows "reno_grows" "Reno's window grows";
    RenoFaster "reno_faster" "Reno would be faster, so its increase counts";
    HalfAtMost "half_at_most" "the increase is limited to one segment for two";
    CreditSpent "credit_spent" "credit from when an increase needed more";
    Increased "increased" "the window grows above the threshold";
    Clamped "clamped" "it is at snd_cwnd_clamp";
    // Reductions.
    FastConvergence "fast_convergence" "a loss below the last maximum";
    Maximum "maximum" "a loss at it or above";
    TwoSegments "two_segments" "the threshold's floor";
    ToOpen "to_open" "set_state Open";
    ToDisorder "to_disorder" "set_state Disorder";
    ToCwr "to_cwr" "set_state CWR";
    ToRecovery "to_recovery" "set_state Recovery";
    Timeout "timeout" "set_state Loss";
    UndoRaises "undo_raises" "an undo restores the larger window";
    UndoKeeps "undo_keeps" "an undo keeps the window";
    // Idleness.
    TransmitStart "transmit_start" "sending restarts outside an epoch, or within a jiffy";
    IdleShifts "idle_shifts" "sending restarts, and the epoch is shifted";
    IdleShiftsToNow "idle_shifts_to_now" "the same, but not into the future";
    OtherEvent "other_event" "an event that CUBIC ignores";
});

pub(super) const COVERAGE: Coverage = Coverage::of(CubicBranch::TABLE);

/// What the states do not show.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    pub(super) hz: u32,
    pub(super) established: bool,
    pub(super) limited: bool,
}

type State = (CubicIncrease, Window);

/// A call took our algorithm from one state to another.
pub(super) fn note(call: &Call, before: State, after: State, seen: &Seen, coverage: &mut Coverage) {
    let mut note = |branch: CubicBranch, reached: bool| coverage.note(branch as usize, reached);
    if !seen.established && call.hook != Hook::Init {
        // Before the state is initialised, its branches are meaningless.
        return note(CubicBranch::BeforeInit, true);
    }
    match call.hook {
        Hook::Init => note(CubicBranch::Init, true),
        Hook::PktsAcked => rtt(call, before, after, seen, &mut note),
        Hook::CongAvoid => growth(call, before, after, seen, &mut note),
        Hook::Ssthresh => {
            let (window, maximum) = (before.1.cwnd, before.0.curve().last_max_cwnd);
            note(CubicBranch::FastConvergence, window < maximum);
            note(CubicBranch::Maximum, window >= maximum);
            note(CubicBranch::TwoSegments, call.returned == 2);
        }
        Hook::SetState => state_change(call, &mut note),
        Hook::Undo => {
            let raises = before.1.prior_cwnd > before.1.cwnd;
            note(if raises { CubicBranch::UndoRaises } else { CubicBranch::UndoKeeps }, true);
        }
        Hook::CwndEvent if call.arguments[0] == super::TX_START => {
            let (from, to) = (before.0.curve().epoch_start, after.0.curve().epoch_start);
            let now = call.socket.jiffies32;
            note(CubicBranch::TransmitStart, from == to);
            note(CubicBranch::IdleShifts, from != to && to != now);
            note(CubicBranch::IdleShiftsToNow, from != to && to == now);
        }
        Hook::CwndEvent => note(CubicBranch::OtherEvent, true),
        Hook::Main => {}
    }
}

fn rtt(call: &Call, before: State, after: State, seen: &Seen, note: &mut impl FnMut(CubicBranch, bool)) {
    let (was, is) = (before.0.hystart().round(), after.0.hystart().round());
    let (old, new) = (before.0.curve(), after.0.curve());
    let now = call.socket.jiffies32;
    let none = call.arguments[2] < 0;
    let early = old.epoch_start != 0 && (now.wrapping_sub(old.epoch_start) as i32) < seen.hz as i32;
    note(CubicBranch::NoRtt, none);
    note(CubicBranch::RttDiscarded, !none && early);
    note(CubicBranch::DelayMinFalls, old.delay_min != new.delay_min);
    if none || early || !before.1.in_slow_start() {
        return;
    }
    note(CubicBranch::HystartFound, was.found);
    if was.found {
        return;
    }
    let began = was.end_seq != is.end_seq;
    note(CubicBranch::HystartRound, began);
    note(CubicBranch::HystartSmall, before.1.cwnd < 16);
    if before.1.cwnd < 16 {
        return;
    }
    let now_us = call.socket.tcp_mstamp as u32;
    let paced = super::is_paced(call);
    note(CubicBranch::HystartPaced, paced);
    note(CubicBranch::HystartUnpaced, !paced);
    note(CubicBranch::HystartTrain, is.last_ack == now_us);
    note(CubicBranch::HystartGap, is.last_ack != now_us);
    let judged = !began && was.sample_cnt == is.sample_cnt;
    note(CubicBranch::HystartSamples, judged);
    // A second call with the same arguments changes nothing.
    let pacing = Pacing::from_bytes_per_sec(call.socket.sk_pacing_rate);
    let mut again = *after.0.hystart();
    let long = is.last_ack == now_us && again.is_train_long(new.delay_min, now_us, &pacing);
    let high = judged && is.is_delay_high(new.delay_min);
    note(CubicBranch::HystartTrainEnds, long && !high);
    note(CubicBranch::HystartDelayEnds, high && !long);
    note(CubicBranch::HystartBothEnd, long && high);
}

fn growth(call: &Call, before: State, after: State, seen: &Seen, note: &mut impl FnMut(CubicBranch, bool)) {
    note(CubicBranch::NotLimited, !seen.limited);
    if !seen.limited {
        return;
    }
    let (old, new) = (before.0.curve(), after.0.curve());
    let acked = call.arguments[1] as u32;
    let started = before.1.in_slow_start();
    let room = before.1.ssthresh.saturating_sub(before.1.cwnd);
    note(CubicBranch::SlowStart, started && acked <= room);
    note(CubicBranch::SlowStartEnds, started && acked > room);
    note(CubicBranch::Clamped, after.1.cwnd == after.1.clamp);
    if started && acked <= room {
        return;
    }
    let cwnd = if started { before.1.ssthresh.min(before.1.clamp) } else { before.1.cwnd };
    let now = call.socket.jiffies32;
    let recent = now.wrapping_sub(old.last_time) as i32 <= (seen.hz / 32) as i32;
    let unchanged = old.last_cwnd == cwnd && recent;
    let same_jiffy = !unchanged && old.epoch_start != 0 && old.last_time == now;
    let evaluated = !unchanged && !same_jiffy;
    note(CubicBranch::Unchanged, unchanged);
    note(CubicBranch::SameJiffy, same_jiffy);
    note(CubicBranch::Evaluated, evaluated);
    let began = evaluated && old.epoch_start == 0;
    note(CubicBranch::EpochBelowOrigin, began && new.last_max_cwnd > cwnd);
    note(CubicBranch::EpochAtOrigin, began && new.last_max_cwnd <= cwnd);
    let below = new.time(now, seen.hz) < new.bic_k as u64;
    note(CubicBranch::CurveBelow, evaluated && below);
    note(CubicBranch::CurveAbove, evaluated && !below);
    note(CubicBranch::TargetNotAbove, evaluated && new.cnt == cwnd.wrapping_mul(100));
    note(CubicBranch::NoMaximum, evaluated && new.last_max_cwnd == 0);
    let fresh = if began { cwnd } else { old.tcp_cwnd };
    note(CubicBranch::RenoGrows, !unchanged && new.tcp_cwnd != fresh);
    let faster = new.tcp_cwnd > cwnd && new.cnt == cwnd / (new.tcp_cwnd - cwnd).max(1);
    note(CubicBranch::RenoFaster, !unchanged && faster);
    note(CubicBranch::HalfAtMost, !unchanged && new.cnt == 2);
    note(CubicBranch::CreditSpent, before.1.cwnd_cnt >= new.cnt);
    note(CubicBranch::Increased, after.1.cwnd > cwnd);
}

fn state_change(call: &Call, note: &mut impl FnMut(CubicBranch, bool)) {
    let to = |state: CaState| call.arguments[0] == state as i64;
    note(CubicBranch::ToOpen, to(CaState::Open));
    note(CubicBranch::ToDisorder, to(CaState::Disorder));
    note(CubicBranch::ToCwr, to(CaState::Cwr));
    note(CubicBranch::ToRecovery, to(CaState::Recovery));
    note(CubicBranch::Timeout, to(CaState::Loss));
}
