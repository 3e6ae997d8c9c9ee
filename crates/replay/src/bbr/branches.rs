//! The branches of BBRv1, as the state before and after a call shows them.

use crate::coverage::{Coverage, branches};
use crate::{Call, Hook, KernelSample, Socket};
use fullpipe_cc::controller::CaState;
use fullpipe_cc::controllers::bbr1::{Mode, Params, State};

branches!(BbrBranch {
    BeforeInit "before_init" "a call while the handshake lasts";
    Init "init" "init";
    // Modes.
    InStartup "in_startup" "an ACK that leaves the flow in Startup";
    InDrain "in_drain" "an ACK that leaves it in Drain";
    InProbeBw "in_probe_bw" "an ACK that leaves it in ProbeBW";
    InProbeRtt "in_probe_rtt" "an ACK that leaves it in ProbeRTT";
    StartupToDrain "startup_to_drain" "Startup ends, and a queue is left";
    StartupToProbeBw "startup_to_probe_bw" "Startup and Drain end with one ACK";
    DrainToProbeBw "drain_to_probe_bw" "Drain ends";
    StartupToProbeRtt "startup_to_probe_rtt" "ProbeRTT interrupts Startup";
    DrainToProbeRtt "drain_to_probe_rtt" "ProbeRTT interrupts Drain";
    ProbeBwToProbeRtt "probe_bw_to_probe_rtt" "ProbeRTT interrupts ProbeBW";
    ProbeRttDwells "probe_rtt_dwells" "the flight is small, so the 200 ms begin";
    ProbeRttRound "probe_rtt_round" "a round passed within them";
    ProbeRttToStartup "probe_rtt_to_startup" "ProbeRTT ends before the pipe was full";
    ProbeRttToProbeBw "probe_rtt_to_probe_bw" "ProbeRTT ends";
    ProbeRttEndsAtRestart "probe_rtt_ends_at_restart" "ProbeRTT ends as sending restarts from idle";
    // Phases of ProbeBW.
    UpEndsByLoss "up_ends_by_loss" "the probing phase ends, because the ACK saw loss";
    UpEndsByFlight "up_ends_by_flight" "the probing phase ends, because enough is in flight";
    UpWaits "up_waits" "the probing phase lasts longer than the minimum RTT";
    DownEndsByTime "down_ends_by_time" "the draining phase ends after the minimum RTT";
    DownEndsByFlight "down_ends_by_flight" "the draining phase ends early, because the queue is gone";
    CruiseEnds "cruise_ends" "a cruising phase ends";
    // Samples and rounds.
    SampleNone "sample_none" "an ACK delivers nothing that was sampled";
    SampleShort "sample_short" "a sample's interval is below the minimum RTT";
    SampleAppLimitedIgnored "sample_app_limited_ignored" "an application-limited sample below the maximum";
    SampleAppLimitedTaken "sample_app_limited_taken" "an application-limited sample at or above the maximum";
    SampleTaken "sample_taken" "any other sample";
    Round "round" "a round begins";
    MaximumRises "maximum_rises" "the bandwidth rises";
    MaximumAges "maximum_ages" "the bandwidth falls, because the maximum expired";
    // Full pipe.
    PipeGrows "pipe_grows" "a round with enough growth";
    PipePlateau "pipe_plateau" "a round without it";
    PipeFull "pipe_full" "the third such round";
    // Policer.
    PolicerSamples "policer_samples" "a first sampling interval begins with a loss";
    PolicerFirstInterval "policer_first_interval" "the first interval ends";
    PolicerDisagrees "policer_disagrees" "a further one ends, at another rate";
    PolicerTooFewLosses "policer_too_few_losses" "a loss in an interval long enough, but without enough losses";
    PolicerAppLimited "policer_app_limited" "the application ends an interval";
    PolicerTooLong "policer_too_long" "an interval ends after too many rounds";
    PolicerFound "policer_found" "two intervals agree: a policer";
    PolicerFoundAtTimeout "policer_found_at_timeout" "the same at a timeout";
    PolicerInForce "policer_in_force" "an ACK under a policer's rate";
    PolicerReleased "policer_released" "its 48 rounds are over";
    // ACK aggregation.
    EpochRestarts "epoch_restarts" "the epoch restarts, because no more than expected was delivered";
    EpochFull "epoch_full" "the epoch restarts at 2^20 segments";
    ExtraRises "extra_rises" "the excess over the expected delivery is the largest in the window";
    ExtraRotates "extra_rotates" "the halves of the filter's window rotate";
    ExtraInWindow "extra_in_window" "a window includes an allowance for aggregation";
    ExtraCapped "extra_capped" "the allowance is capped at 100 ms";
    // Minimum RTT.
    FirstRtt "first_rtt" "the pacing rate starts over from the first RTT";
    MinRttFalls "min_rtt_falls" "a new minimum";
    MinRttExpires "min_rtt_expires" "the minimum is older than ten seconds";
    MinRttRenewed "min_rtt_renewed" "an expired minimum is replaced by an RTT that is not smaller";
    MinRttDelayedRefused "min_rtt_delayed_refused" "the same, rejected because the ACK may be delayed";
    MinRttExpiresIdle "min_rtt_expires_idle" "an expired minimum starts no ProbeRTT after idleness";
    // Recovery.
    ToOpen "to_open" "set_state Open";
    ToDisorder "to_disorder" "set_state Disorder";
    ToCwr "to_cwr" "set_state CWR";
    ToRecovery "to_recovery" "set_state Recovery, with a reduction";
    ToRecoveryAgain "to_recovery_again" "set_state Recovery without one";
    Timeout "timeout" "a timeout, with a reduction";
    TimeoutAgain "timeout_again" "a timeout without one";
    SaveLarger "save_larger" "a reduction keeps the larger window that was saved before";
    LossesTaken "losses_taken" "losses are subtracted from the window";
    ConservationBegins "conservation_begins" "packet conservation begins";
    ConservationEndsByRound "conservation_ends_by_round" "the round's end ends it";
    ConservationEndsByExit "conservation_ends_by_exit" "recovery's end ends it";
    WindowRestored "window_restored" "recovery's end restores the saved window";
    Undo "undo" "a reduction is undone";
    MarkForbidsUndo "mark_forbids_undo" "a congestion mark forbids undoing one";
    // Idleness.
    TransmitStart "transmit_start" "sending restarts, not application-limited";
    IdleRestart "idle_restart" "sending restarts from idle, in Startup or Drain";
    IdleRestartProbeBw "idle_restart_probe_bw" "the same in ProbeBW: pacing at the estimate";
    IdleRestartProbeRtt "idle_restart_probe_rtt" "the same in ProbeRTT";
    IdleRestartEnds "idle_restart_ends" "the first delivery after it";
    // Window and pacing.
    NothingDelivered "nothing_delivered" "an ACK delivers nothing: only caps apply";
    FirstTenSegments "first_ten_segments" "an ACK among the first ten segments";
    WindowGrows "window_grows" "the window grows";
    WindowHeld "window_held" "an ACK leaves it unchanged";
    WindowCut "window_cut" "it is cut without loss, except in ProbeRTT";
    WindowAtFloor "window_at_floor" "four segments, except in ProbeRTT";
    WindowBelowFloor "window_below_floor" "fewer than four segments";
    WindowClamped "window_clamped" "it is at snd_cwnd_clamp";
    PacingCapped "pacing_capped" "the pacing rate is at sk_max_pacing_rate";
    PacingHeld "pacing_held" "an ACK in Startup leaves the pacing rate unchanged";
    SmallBursts "small_bursts" "below 1.2 Mbit/s, where a burst is one segment";
    DepartureAhead "departure_ahead" "the next departure is later than the ACK";
    SegmentSize "segment_size" "mss_cache changed";
});

pub(super) const COVERAGE: Coverage = Coverage::of(BbrBranch::TABLE);

/// What the states do not show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    pub(super) hz: u32,
    pub(super) established: bool,
    pub(super) mss_changed: bool,
    pub(super) mark_forbids: bool,
    pub(super) reduce: bool,
}

/// A call took our controller from one state to another.
pub(super) fn note(call: &Call, before: &State, after: &State, seen: &Seen, coverage: &mut Coverage) {
    let mut note = |branch: BbrBranch, reached: bool| coverage.note(branch as usize, reached);
    if !seen.established && call.hook != Hook::Init {
        // Before the state is initialised, its branches are meaningless.
        return note(BbrBranch::BeforeInit, true);
    }
    note(BbrBranch::SegmentSize, seen.mss_changed);
    note(BbrBranch::MarkForbidsUndo, seen.mark_forbids);
    match call.hook {
        Hook::Init => note(BbrBranch::Init, true),
        Hook::Main => {
            modes(before, after, &mut note);
            phases(call, before, after, &mut note);
            samples(&call.rate_sample, before, after, &mut note);
            policer(&call.rate_sample, before, after, &mut note);
            aggregation(&call.rate_sample, before, after, &mut note);
            min_rtt(call, before, after, seen, &mut note);
            recovery(&call.rate_sample, before, after, &mut note);
            window(&call.socket, &call.rate_sample, before, after, &mut note);
        }
        Hook::SetState => state_change(call, before, after, seen.reduce, &mut note),
        Hook::CwndEvent if call.arguments[0] == super::TX_START => restart(call, before, after, &mut note),
        Hook::Undo => note(BbrBranch::Undo, true),
        _ => {}
    }
}

fn modes(before: &State, after: &State, note: &mut impl FnMut(BbrBranch, bool)) {
    note(
        match after.mode {
            Mode::Startup => BbrBranch::InStartup,
            Mode::Drain => BbrBranch::InDrain,
            Mode::ProbeBw => BbrBranch::InProbeBw,
            Mode::ProbeRtt => BbrBranch::InProbeRtt,
        },
        true,
    );
    let transition = match (before.mode, after.mode) {
        (Mode::Startup, Mode::Drain) => Some(BbrBranch::StartupToDrain),
        (Mode::Startup, Mode::ProbeBw) => Some(BbrBranch::StartupToProbeBw),
        (Mode::Drain, Mode::ProbeBw) => Some(BbrBranch::DrainToProbeBw),
        (Mode::Startup, Mode::ProbeRtt) => Some(BbrBranch::StartupToProbeRtt),
        (Mode::Drain, Mode::ProbeRtt) => Some(BbrBranch::DrainToProbeRtt),
        (Mode::ProbeBw, Mode::ProbeRtt) => Some(BbrBranch::ProbeBwToProbeRtt),
        (Mode::ProbeRtt, Mode::Startup) => Some(BbrBranch::ProbeRttToStartup),
        (Mode::ProbeRtt, Mode::ProbeBw) => Some(BbrBranch::ProbeRttToProbeBw),
        _ => None,
    };
    if let Some(transition) = transition {
        note(transition, true);
    }
    note(BbrBranch::ProbeRttDwells, before.probe_rtt_done_stamp == 0 && after.probe_rtt_done_stamp != 0);
    note(BbrBranch::ProbeRttRound, !before.probe_rtt_round_done && after.probe_rtt_round_done);
}

fn phases(call: &Call, before: &State, after: &State, note: &mut impl FnMut(BbrBranch, bool)) {
    if before.mode != Mode::ProbeBw || (before.lt_use_bw && !after.lt_use_bw) {
        return;
    }
    let ended = (before.cycle_idx, before.cycle_mstamp) != (after.cycle_idx, after.cycle_mstamp);
    let lasted = call.socket.delivered_mstamp.saturating_sub(before.cycle_mstamp);
    let long = lasted > before.min_rtt_us as u64;
    let unit = fullpipe_cc::gain::Gain::ONE.q8();
    let (up, down) = (before.pacing_gain > unit, before.pacing_gain < unit);
    let loss = call.rate_sample.losses > 0;
    note(BbrBranch::UpEndsByLoss, ended && up && loss);
    note(BbrBranch::UpEndsByFlight, ended && up && !loss);
    note(BbrBranch::UpWaits, !ended && up && long);
    note(BbrBranch::DownEndsByTime, ended && down && long);
    note(BbrBranch::DownEndsByFlight, ended && down && !long);
    note(BbrBranch::CruiseEnds, ended && !up && !down);
}

fn is_valid(sample: &KernelSample) -> bool {
    sample.delivered >= 0 && sample.interval_us > 0
}

fn samples(sample: &KernelSample, before: &State, after: &State, note: &mut impl FnMut(BbrBranch, bool)) {
    let valid = is_valid(sample);
    note(BbrBranch::SampleNone, sample.delivered < 0);
    note(BbrBranch::SampleShort, sample.delivered >= 0 && !valid);
    if valid {
        let bw = ((sample.delivered as u64) << 24) / sample.interval_us as u64;
        let taken = bw >= before.bw.get() as u64;
        note(BbrBranch::SampleAppLimitedIgnored, sample.is_app_limited && !taken);
        note(BbrBranch::SampleAppLimitedTaken, sample.is_app_limited && taken);
        note(BbrBranch::SampleTaken, !sample.is_app_limited);
    }
    note(BbrBranch::Round, after.round_start);
    note(BbrBranch::MaximumRises, after.bw.get() > before.bw.get());
    note(BbrBranch::MaximumAges, after.bw.get() < before.bw.get());
    let judged = after.round_start && !before.full_bw_reached && !sample.is_app_limited;
    note(BbrBranch::PipeGrows, judged && after.full_bw_cnt == 0);
    note(BbrBranch::PipePlateau, judged && after.full_bw_cnt > 0 && !after.full_bw_reached);
    note(BbrBranch::PipeFull, judged && after.full_bw_reached);
}

fn policer(sample: &KernelSample, before: &State, after: &State, note: &mut impl FnMut(BbrBranch, bool)) {
    let params = Params::default();
    let (began, ended) = (
        !before.lt_is_sampling && after.lt_is_sampling,
        before.lt_is_sampling && !after.lt_is_sampling && !before.lt_use_bw,
    );
    note(BbrBranch::PolicerSamples, began);
    note(BbrBranch::PolicerAppLimited, ended && sample.is_app_limited);
    note(BbrBranch::PolicerTooLong, ended && !sample.is_app_limited);
    let found = !before.lt_use_bw && after.lt_use_bw;
    note(BbrBranch::PolicerFound, found);
    note(BbrBranch::PolicerInForce, before.lt_use_bw && after.lt_use_bw);
    note(BbrBranch::PolicerReleased, before.lt_use_bw && !after.lt_use_bw);
    let measured = after.lt_bw != before.lt_bw && after.lt_bw != 0 && !found;
    note(BbrBranch::PolicerFirstInterval, measured && before.lt_bw == 0);
    note(BbrBranch::PolicerDisagrees, measured && before.lt_bw != 0);
    let long = after.lt_rtt_cnt >= params.lt_intvl_min_rtts;
    let goes_on = before.lt_is_sampling && after.lt_is_sampling && !after.lt_use_bw && !measured;
    note(BbrBranch::PolicerTooFewLosses, goes_on && long && sample.losses > 0);
}

fn aggregation(sample: &KernelSample, before: &State, after: &State, note: &mut impl FnMut(BbrBranch, bool)) {
    if is_valid(sample) && sample.acked_sacked > 0 {
        let restarted = after.ack_epoch_acked == sample.acked_sacked;
        let full = before.ack_epoch_acked + sample.acked_sacked >= 1 << 20;
        note(BbrBranch::EpochRestarts, restarted && !full);
        note(BbrBranch::EpochFull, full);
        let rotated = before.extra_acked_win_idx != after.extra_acked_win_idx;
        let now = after.extra_acked_win_idx as usize & 1;
        note(BbrBranch::ExtraRotates, rotated);
        note(BbrBranch::ExtraRises, !rotated && after.extra_acked[now] > before.extra_acked[now]);
    }
    let bw = if after.lt_use_bw { after.lt_bw } else { after.bw.get() };
    let cap = (bw as u64 * 100_000) >> 24;
    let extra = after.extra_acked[0].max(after.extra_acked[1]) as u64;
    let used = sample.acked_sacked > 0 && after.full_bw_reached && !after.packet_conservation;
    note(BbrBranch::ExtraInWindow, used && extra.min(cap) > 0);
    note(BbrBranch::ExtraCapped, used && extra > cap);
}

fn min_rtt(call: &Call, before: &State, after: &State, seen: &Seen, note: &mut impl FnMut(BbrBranch, bool)) {
    let sample = &call.rate_sample;
    let window = Params::default().min_rtt_window_s.wrapping_mul(seen.hz);
    let age = call.socket.jiffies32.wrapping_sub(before.min_rtt_stamp.wrapping_add(window));
    let expired = age as i32 > 0;
    let larger = expired && sample.rtt_us >= before.min_rtt_us as i64;
    let probes = before.mode != Mode::ProbeRtt && after.mode == Mode::ProbeRtt;
    note(BbrBranch::FirstRtt, !before.has_seen_rtt && after.has_seen_rtt);
    note(BbrBranch::MinRttFalls, after.min_rtt_us < before.min_rtt_us);
    note(BbrBranch::MinRttExpires, expired);
    note(BbrBranch::MinRttRenewed, larger && !sample.is_ack_delayed);
    note(BbrBranch::MinRttDelayedRefused, larger && sample.is_ack_delayed);
    note(BbrBranch::MinRttExpiresIdle, expired && before.idle_restart && !probes);
}

fn recovery(sample: &KernelSample, before: &State, after: &State, note: &mut impl FnMut(BbrBranch, bool)) {
    note(BbrBranch::LossesTaken, sample.losses > 0 && sample.acked_sacked > 0);
    note(BbrBranch::ConservationBegins, !before.packet_conservation && after.packet_conservation);
    let ends = before.packet_conservation && !after.packet_conservation;
    note(BbrBranch::ConservationEndsByRound, ends && after.round_start);
    note(BbrBranch::ConservationEndsByExit, ends && !after.round_start);
    let left = before.prev_ca_state >= CaState::Recovery && after.prev_ca_state < CaState::Recovery;
    note(BbrBranch::WindowRestored, left && before.prior_cwnd > before.snd_cwnd);
}

fn window(
    socket: &Socket,
    sample: &KernelSample,
    before: &State,
    after: &State,
    note: &mut impl FnMut(BbrBranch, bool),
) {
    let probing = after.mode == Mode::ProbeRtt;
    let acked = sample.acked_sacked > 0;
    note(BbrBranch::NothingDelivered, !acked);
    note(BbrBranch::FirstTenSegments, acked && !after.full_bw_reached && socket.delivered < 10);
    note(BbrBranch::WindowGrows, after.snd_cwnd > before.snd_cwnd);
    note(BbrBranch::WindowHeld, acked && after.snd_cwnd == before.snd_cwnd);
    note(BbrBranch::WindowCut, after.snd_cwnd < before.snd_cwnd && sample.losses <= 0 && !probing);
    note(BbrBranch::WindowAtFloor, after.snd_cwnd == 4 && !probing);
    note(BbrBranch::WindowBelowFloor, after.snd_cwnd < 4);
    note(BbrBranch::WindowClamped, after.snd_cwnd == socket.snd_cwnd_clamp);
    note(BbrBranch::PacingCapped, after.pacing_rate == socket.sk_max_pacing_rate);
    let startup = after.mode == Mode::Startup;
    note(BbrBranch::PacingHeld, startup && acked && after.pacing_rate == before.pacing_rate);
    note(BbrBranch::SmallBursts, after.pacing_rate < 150_000);
    note(BbrBranch::DepartureAhead, socket.tcp_wstamp_ns > socket.tcp_clock_cache);
    note(BbrBranch::IdleRestartEnds, before.idle_restart && !after.idle_restart);
}

fn state_change(
    call: &Call,
    before: &State,
    after: &State,
    reduce: bool,
    note: &mut impl FnMut(BbrBranch, bool),
) {
    let to = match (call.arguments[0], reduce) {
        (0, _) => BbrBranch::ToOpen,
        (1, _) => BbrBranch::ToDisorder,
        (2, _) => BbrBranch::ToCwr,
        (3, true) => BbrBranch::ToRecovery,
        (3, false) => BbrBranch::ToRecoveryAgain,
        (_, true) => BbrBranch::Timeout,
        (_, false) => BbrBranch::TimeoutAgain,
    };
    note(to, true);
    note(BbrBranch::SaveLarger, reduce && after.prior_cwnd > before.snd_cwnd);
    note(BbrBranch::PolicerFoundAtTimeout, !before.lt_use_bw && after.lt_use_bw);
}

fn restart(call: &Call, before: &State, after: &State, note: &mut impl FnMut(BbrBranch, bool)) {
    let idle = call.socket.app_limited != 0;
    note(BbrBranch::TransmitStart, !idle);
    note(BbrBranch::IdleRestart, idle && matches!(before.mode, Mode::Startup | Mode::Drain));
    note(BbrBranch::IdleRestartProbeBw, idle && before.mode == Mode::ProbeBw);
    note(BbrBranch::IdleRestartProbeRtt, idle && before.mode == Mode::ProbeRtt);
    note(BbrBranch::ProbeRttEndsAtRestart, before.mode == Mode::ProbeRtt && after.mode != Mode::ProbeRtt);
}
