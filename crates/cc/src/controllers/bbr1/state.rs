//! Every field of the kernel's `struct bbr`, and the fields of its socket that BBR writes, with the kernel's names and units.

use super::{Bbr1, Mode};
use crate::controller::CaState;
use crate::controllers::bbr::state;
use crate::windowed::WindowedMax;

state! {
    /// A view of a [`Bbr1`] for replaying recorded kernel state. Bandwidths are in segments a microsecond times 2^24.
    pub struct State of Bbr1;
    min_rtt_us: u32 = probe_rtt.min_rtt_us,
    min_rtt_stamp: u32 = probe_rtt.min_rtt_stamp,
    probe_rtt_done_stamp: u32 = probe_rtt.probe_rtt_done_stamp,
    bw: WindowedMax = max_bw,
    rtt_cnt: u32 = rounds.rtt_cnt,
    next_rtt_delivered: u32 = rounds.next_rtt_delivered,
    cycle_mstamp: u64 = cycle.cycle_mstamp,
    mode: Mode = mode,
    prev_ca_state: CaState = recovery.prev_ca_state,
    packet_conservation: bool = recovery.packet_conservation,
    round_start: bool = rounds.round_start,
    idle_restart: bool = idle_restart,
    probe_rtt_round_done: bool = probe_rtt.probe_rtt_round_done,
    lt_is_sampling: bool = policer.lt_is_sampling,
    lt_rtt_cnt: u32 = policer.lt_rtt_cnt,
    lt_use_bw: bool = policer.lt_use_bw,
    lt_bw: u32 = policer.lt_bw,
    lt_last_delivered: u32 = policer.lt_last_delivered,
    lt_last_stamp: u32 = policer.lt_last_stamp,
    lt_last_lost: u32 = policer.lt_last_lost,
    pacing_gain: u32 = pacing_gain,
    cwnd_gain: u32 = cwnd_gain,
    full_bw_reached: bool = full_pipe.full_bw_reached,
    full_bw_cnt: u32 = full_pipe.full_bw_cnt,
    cycle_idx: u32 = cycle.cycle_idx,
    has_seen_rtt: bool = has_seen_rtt,
    prior_cwnd: u32 = recovery.prior_cwnd,
    full_bw: u32 = full_pipe.full_bw,
    ack_epoch_mstamp: u64 = aggregation.ack_epoch_mstamp,
    extra_acked: [u16; 2] = aggregation.extra_acked,
    ack_epoch_acked: u32 = aggregation.ack_epoch_acked,
    extra_acked_win_rtts: u32 = aggregation.extra_acked_win_rtts,
    extra_acked_win_idx: u32 = aggregation.extra_acked_win_idx,
}
