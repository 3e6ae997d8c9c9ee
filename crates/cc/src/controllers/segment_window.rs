//! The window of Linux's algorithms that have no rate of their own: the core's part, with the increase algorithm as a
//! parameter.
//!
//! Specification: Linux 6.12 `net/ipv4/tcp_input.c`, `tcp_cong.c`, `tcp_output.c`, `include/net/tcp.h`; PRR is RFC 6937
//! as there. Deviations: docs/reference/deviations.md#loss-based.
//!
//! [`LossBased`] turns the events into the calls that Linux makes to an algorithm ([`Algorithm`]), and keeps the window
//! ([`Window`]) through recovery, timeouts, undo, idleness and marks. [`LossBased::with_algorithm`] takes
//! your own algorithm.

use crate::controller::*;
use crate::controllers::recovery::{PriorThreshold, current_ssthresh, in_reduction};
use crate::parameter::parameters;
use crate::phase;
use fullpipe_units::{Duration, Rate, Time};

parameters! {
    /// Parameters of the core, in Linux sysctls.
    pub struct CoreParams from "Linux 6.12 net/ipv4/tcp_input.c";
    pacing_ss_ratio: u32 = whole(200, 1..=1000, "%") from "Linux net.ipv4.tcp_pacing_ss_ratio",
        "pacing rate below half the slow-start threshold, of a window an RTT; if the host paces";
    pacing_ca_ratio: u32 = whole(120, 1..=1000, "%") from "Linux net.ipv4.tcp_pacing_ca_ratio",
        "pacing rate otherwise";
    slow_start_after_idle: bool = switch(true) from "Linux net.ipv4.tcp_slow_start_after_idle; RFC 2861",
        "shrink the window when it was idle or unfilled for a retransmission timeout";
}

/// The window as an algorithm sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Segments that may be in flight (Linux: `snd_cwnd`).
    pub cwnd: u32,
    /// The slow-start threshold (Linux: `snd_ssthresh`).
    pub ssthresh: u32,
    /// Segments acknowledged towards the next increase (Linux: `snd_cwnd_cnt`).
    pub cwnd_cnt: u32,
    /// The most `cwnd` may be (Linux: `snd_cwnd_clamp`).
    pub clamp: u32,
    /// The window when the last reduction began (Linux: `prior_cwnd`).
    pub prior_cwnd: u32,
}

impl Window {
    /// Linux: `tcp_in_slow_start`.
    #[inline]
    pub const fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Whether it was the limit, so that it may grow: it was filled, or half filled in slow start (Linux:
    /// `tcp_is_cwnd_limited`). `filled` is whether the sender ran into it in the last round, `max_packets_out` the most
    /// segments that were out.
    #[inline]
    pub const fn is_limit(&self, filled: bool, max_packets_out: u32) -> bool {
        filled || (self.in_slow_start() && self.cwnd < 2 * max_packets_out)
    }

    /// The window if the last reduction proved spurious (Linux: `tcp_reno_undo_cwnd`).
    pub const fn undone(&self) -> u32 {
        if self.cwnd > self.prior_cwnd { self.cwnd } else { self.prior_cwnd }
    }

    /// Grows by what was acknowledged, up to the threshold; returns what is left (Linux: `tcp_slow_start`).
    #[inline]
    pub fn slow_start(&mut self, acked: u32) -> u32 {
        let cwnd = (self.cwnd + acked).min(self.ssthresh);
        let left = acked - (cwnd - self.cwnd);
        self.cwnd = cwnd.min(self.clamp);
        left
    }

    /// Grows as Reno does (Linux: `tcp_reno_cong_avoid`).
    #[inline]
    pub fn reno(&mut self, acked: u32) {
        let mut acked = acked;
        if self.in_slow_start() {
            acked = self.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        self.additive_increase(self.cwnd, acked);
    }

    /// Half the window, at least two segments (RFC 5681 section 3.1, equation 4; from the window, not the flight. Linux:
    /// `tcp_reno_ssthresh`).
    pub const fn half(&self) -> u32 {
        if self.cwnd >> 1 > 2 { self.cwnd >> 1 } else { 2 }
    }

    /// Grows by one segment for each `per_segment` acknowledged (Linux: `tcp_cong_avoid_ai`).
    #[inline]
    pub fn additive_increase(&mut self, per_segment: u32, acked: u32) {
        // Credit from when an increase needed more is worth one segment at most.
        if self.cwnd_cnt >= per_segment {
            self.cwnd_cnt = 0;
            self.cwnd += 1;
        }
        self.cwnd_cnt += acked;
        if self.cwnd_cnt >= per_segment {
            let increase = self.cwnd_cnt / per_segment;
            self.cwnd_cnt -= increase * per_segment;
            self.cwnd += increase;
        }
        self.cwnd = self.cwnd.min(self.clamp);
    }
}

/// The clocks an algorithm reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The coarse clock (Linux: `tcp_jiffies32`).
    pub jiffies: u32,
    /// The fine clock in microseconds, wrapping (Linux: `tp->tcp_mstamp`).
    pub now_us: u32,
}

/// An ACK as `pkts_acked` sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sampled {
    /// The RTT in microseconds (Linux: `sample->rtt_us`; the hook ignores ACKs without one).
    pub rtt_us: u32,
    /// `SND.UNA` in segments.
    pub snd_una: u64,
    /// `SND.NXT` in segments.
    pub snd_nxt: u64,
    /// The pacing rate in force.
    pub pacing: Pacing,
}

/// An ACK that lets the window grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acked {
    /// Segments newly acknowledged or SACKed (Linux: `acked` of `cong_avoid`).
    pub segments: u32,
    /// `SND.UNA` in segments.
    pub snd_una: u64,
    /// `SND.NXT` in segments.
    pub snd_nxt: u64,
}

/// What a loss-based algorithm decides: Linux's `struct tcp_congestion_ops`, as far as these algorithms use it.
/// [`LossBased`] makes the calls in Linux's order; a replay of recorded kernel calls makes them one by one.
pub trait Algorithm {
    /// `pkts_acked`: an RTT was measured.
    fn pkts_acked(&mut self, window: &mut Window, clocks: Clocks, sampled: &Sampled);
    /// `cong_avoid`: grow, the window having limited the sender.
    fn cong_avoid(&mut self, window: &mut Window, clocks: Clocks, acked: Acked);
    /// `ssthresh`: a reduction begins; returns the threshold.
    fn ssthresh(&mut self, window: &Window) -> u32;
    /// A loss begins a recovery, or a timeout a reduction (`set_state` with `TCP_CA_Recovery`, `cwnd_event` with
    /// `CA_EVENT_LOSS`): the threshold instead of the one in force, for an algorithm that answers marks otherwise than losses.
    fn loss_ssthresh(&mut self, window: &Window) -> Option<u32>;
    /// `in_ack_event`: what an ACK says of congestion marks, see [`Controller::on_ce`].
    fn on_marks(&mut self, marks: &CeMarks);
    /// `set_state`: the recovery state changed, or timed out again. `snd_nxt` is in segments.
    fn on_state(&mut self, to: CaState, clocks: Clocks, snd_nxt: u64);
    /// `cwnd_event` with `CA_EVENT_TX_START`: sending restarts after `idle` jiffies. `snd_nxt` is in segments.
    fn on_transmit_start(&mut self, clocks: Clocks, idle: u32, snd_nxt: u64);
    /// `min_rtt` to report, if it keeps one.
    fn min_rtt_us(&self) -> Option<u32>;
}

/// The rate at which the core paces (Linux: `tcp_update_pacing_rate`), computed only when it is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pacing {
    /// Bytes times 10,000 % of a second, before the division by the RTT.
    scaled_bytes: u64,
    /// Eight times the smoothed RTT in microseconds, zero before the first sample (Linux: `srtt_us`).
    srtt_us8: u32,
    max: u64,
}

impl Pacing {
    /// A rate given directly, for replaying recorded calls.
    pub const fn from_bytes_per_sec(rate: u64) -> Pacing {
        Pacing { scaled_bytes: rate, srtt_us8: 0, max: u64::MAX }
    }

    /// The rate.
    #[inline]
    pub fn bytes_per_sec(&self) -> u64 {
        let rate =
            if self.srtt_us8 == 0 { self.scaled_bytes } else { self.scaled_bytes / self.srtt_us8 as u64 };
        rate.min(self.max)
    }
}

/// A loss-based controller.
#[derive(Clone, Copy, Debug)]
pub struct LossBased<A> {
    window: Window,
    algorithm: A,
    params: CoreParams,
    state: CaState,
    prior_ssthresh: PriorThreshold,
    /// A recovery is in progress that was not undone (Linux: `undo_marker != 0`).
    undo_marker: bool,
    prr_delivered: u32,
    prr_out: u32,
    snd_nxt: u64,
    pacing: Pacing,
    max_pacing_rate: u64,
    mss: u32,
    initial_cwnd: u32,
    hz: u32,
}

impl<A: Algorithm> LossBased<A> {
    /// A connection whose handshake is done, with this algorithm and its own slow-start threshold; [`Limits::INFINITE`] for that
    /// of earlier connections ([`Config::ssthresh`]).
    pub fn with_algorithm(
        algorithm: A,
        ssthresh: u32,
        params: &CoreParams,
        config: &Config,
        connection: &Connection,
    ) -> Self {
        // Linux: tcp_init_metrics, before the init of the algorithm.
        let ssthresh = match (ssthresh, config.ssthresh) {
            (Limits::INFINITE, Limits::INFINITE) => Limits::INFINITE,
            (Limits::INFINITE, earlier) => earlier.min(config.cwnd_clamp),
            (own, _) => own,
        };
        let mut controller = LossBased {
            window: Window {
                cwnd: config.initial_cwnd.min(config.cwnd_clamp),
                ssthresh,
                cwnd_cnt: 0,
                clamp: config.cwnd_clamp,
                prior_cwnd: 0,
            },
            algorithm,
            params: *params,
            state: connection.state,
            prior_ssthresh: PriorThreshold::default(),
            undo_marker: false,
            prr_delivered: 0,
            prr_out: 0,
            snd_nxt: connection.packets_out as u64,
            pacing: Pacing::from_bytes_per_sec(u64::MAX),
            max_pacing_rate: config.max_pacing_rate.as_bytes_per_sec(),
            mss: config.mss,
            initial_cwnd: config.initial_cwnd,
            hz: config.hz,
        };
        controller.update_pacing(connection);
        controller
    }

    /// The window.
    pub const fn window(&self) -> &Window {
        &self.window
    }

    /// The increase algorithm.
    pub const fn algorithm(&self) -> &A {
        &self.algorithm
    }

    /// The threshold to return to if the last reduction proves spurious; `None` if it cannot be undone (Linux:
    /// `tp->prior_ssthresh`, where that is zero).
    pub const fn prior_ssthresh(&self) -> Option<u32> {
        self.prior_ssthresh.get()
    }

    /// Segments delivered and sent since the last reduction began (Linux: `prr_delivered`, `prr_out`).
    pub const fn reduction(&self) -> (u32, u32) {
        (self.prr_delivered, self.prr_out)
    }

    #[cfg(test)]
    pub(crate) fn set_cwnd_for_test(&mut self, cwnd: u32) {
        self.window.cwnd = cwnd;
    }

    #[cfg(test)]
    pub(crate) fn set_ssthresh_for_test(&mut self, ssthresh: u32) {
        self.window.ssthresh = ssthresh;
    }

    /// Linux: `tcp_init_cwnd_reduction`.
    fn begin_reduction(&mut self) {
        self.window.cwnd_cnt = 0;
        self.window.prior_cwnd = self.window.cwnd;
        self.prr_delivered = 0;
        self.prr_out = 0;
        self.window.ssthresh = self.algorithm.ssthresh(&self.window);
    }

    /// Proportional rate reduction (Linux: `tcp_cwnd_reduction`; RFC 6937 with the slow-start reduction bound).
    #[inline]
    fn reduce(&mut self, in_flight: u32, newly_delivered: u32, may_slow_start: bool) {
        if newly_delivered == 0 || self.window.prior_cwnd == 0 {
            return;
        }
        self.prr_delivered += newly_delivered;
        let room = self.window.ssthresh as i32 - in_flight as i32;
        let mut send = if room < 0 {
            let share = self.window.ssthresh as u64 * self.prr_delivered as u64;
            share.div_ceil(self.window.prior_cwnd as u64) as i32 - self.prr_out as i32
        } else {
            let conserved = (self.prr_delivered as i32 - self.prr_out as i32).max(newly_delivered as i32);
            room.min(conserved + may_slow_start as i32)
        };
        // The first retransmission leaves whatever the sums are.
        send = send.max((self.prr_out == 0) as i32);
        self.window.cwnd = (in_flight as i32 + send) as u32;
    }

    /// Linux: `tcp_enter_loss`.
    fn enter_loss(&mut self, change: &StateChange) {
        if change.reduce {
            self.window.prior_cwnd = self.window.cwnd;
            self.window.ssthresh = self.algorithm.ssthresh(&self.window);
            self.answer_loss();
            self.undo_marker = true;
        }
        self.window.cwnd = change.connection.in_flight + 1;
        self.window.cwnd_cnt = 0;
    }

    /// Lets the algorithm replace the threshold for a loss.
    fn answer_loss(&mut self) {
        if let Some(ssthresh) = self.algorithm.loss_ssthresh(&self.window) {
            self.window.ssthresh = ssthresh;
        }
    }

    /// Linux: `tcp_enter_recovery`.
    fn enter_recovery(&mut self, change: &StateChange) {
        self.undo_marker = true;
        if change.reduce {
            self.begin_reduction();
        }
        if change.connection.state != CaState::Recovery {
            self.answer_loss();
        }
    }

    /// The window after a reduction is the threshold, unless it was undone (Linux: `tcp_end_cwnd_reduction`).
    fn end_reduction(&mut self, from: CaState) {
        if self.window.ssthresh < Limits::INFINITE && (from == CaState::Cwr || self.undo_marker) {
            self.window.cwnd = self.window.ssthresh;
        }
    }

    /// Linux: `tcp_update_pacing_rate`.
    #[inline]
    fn update_pacing(&mut self, connection: &Connection) {
        let in_slow_start = self.window.cwnd < self.window.ssthresh / 2;
        let percent = if in_slow_start { self.params.pacing_ss_ratio } else { self.params.pacing_ca_ratio };
        let segments = self.window.cwnd.max(connection.packets_out) as u64;
        self.pacing = Pacing {
            scaled_bytes: (self.mss as u64 * 80_000).wrapping_mul(percent as u64).wrapping_mul(segments),
            srtt_us8: eighths(connection.srtt),
            max: self.max_pacing_rate,
        };
    }

    /// Whole ticks between two times, the ticks falling on multiples of 1/hz (Linux: a difference of jiffies).
    fn ticks_between(&self, earlier: Time, later: Time) -> u32 {
        let ticks = |time: Time| (time.as_nanos() as u128 * self.hz as u128 / 1_000_000_000) as u64;
        ticks(later).saturating_sub(ticks(earlier)) as u32
    }

    /// Halves the window for each timeout spent idle, down to the initial one (Linux: `tcp_cwnd_restart`).
    fn restart_after_idle(&mut self, idle: u32, rto: u32) {
        self.window.ssthresh = current_ssthresh(self.window.cwnd, self.window.ssthresh, self.state);
        let least = self.initial_cwnd.min(self.window.cwnd);
        let mut idle = idle as i64 - rto as i64;
        while idle > 0 && self.window.cwnd > least {
            self.window.cwnd >>= 1;
            idle -= rto as i64;
        }
        self.window.cwnd = self.window.cwnd.max(least);
    }
}

/// Eight times the smoothed RTT in microseconds, exact if the transport keeps eighths.
#[inline]
fn eighths(srtt: Duration) -> u32 {
    (srtt.as_nanos() / 125) as u32
}

#[inline]
fn clocks(connection: &Connection) -> Clocks {
    Clocks { jiffies: connection.jiffies, now_us: connection.now.as_micros() as u32 }
}

impl<A: Algorithm> Controller for LossBased<A> {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        let idle = self.ticks_between(start.last_sent, start.connection.now);
        let rto = (start.rto.as_nanos() as u128 * self.hz as u128).div_ceil(1_000_000_000) as u32;
        if self.params.slow_start_after_idle && start.connection.packets_out == 0 && idle > rto.max(1) {
            self.restart_after_idle(idle, rto.max(1));
        }
        self.algorithm.on_transmit_start(clocks(&start.connection), idle, self.snd_nxt);
    }

    /// Linux: `tcp_cwnd_application_limited`.
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        if !self.params.slow_start_after_idle || unused.connection.state != CaState::Open {
            return;
        }
        let used = unused.used.max(self.initial_cwnd);
        if used < self.window.cwnd {
            self.window.ssthresh = current_ssthresh(self.window.cwnd, self.window.ssthresh, CaState::Open);
            self.window.cwnd = (self.window.cwnd + used) >> 1;
        }
    }

    #[inline]
    fn on_sent(&mut self, sent: &Sent) {
        if in_reduction(self.state) {
            self.prr_out += sent.units;
        }
        if !sent.retransmission {
            self.snd_nxt += sent.units as u64;
        }
    }

    #[inline]
    fn on_rtt(&mut self, sample: &RttSample) {
        let sampled = Sampled {
            rtt_us: sample.rtt.as_micros() as u32,
            snd_una: sample.snd_una,
            snd_nxt: sample.snd_nxt,
            pacing: self.pacing,
        };
        let clocks = Clocks { jiffies: sample.jiffies, now_us: sample.now.as_micros() as u32 };
        self.algorithm.pkts_acked(&mut self.window, clocks, &sampled);
    }

    /// Losses matter through the recovery state, and to PRR through [`Ack::newly_lost`].
    fn on_lost(&mut self, _: &Lost) {}

    /// The reduction for it follows, in `on_state`.
    fn on_tail_repair(&mut self, _: &TailRepair) {}

    /// A discarded packet says nothing about congestion.
    fn on_discarded(&mut self, _: &Discarded) {}

    /// The transport answers marks with [`CaState::Cwr`]; here the reduction only becomes final.
    fn on_ce(&mut self, marks: &CeMarks) {
        if marks.echoed {
            self.prior_ssthresh.forbid();
        }
        self.algorithm.on_marks(marks);
    }

    fn on_state(&mut self, change: &StateChange) {
        let from = change.connection.state;
        self.prior_ssthresh.on_state(change, self.window.cwnd, self.window.ssthresh);
        match change.to {
            CaState::Loss => self.enter_loss(change),
            CaState::Recovery => self.enter_recovery(change),
            CaState::Cwr => {
                // A tail probe's reduction leaves it alone (tcp_process_tlp_ack).
                self.undo_marker &= !change.proven;
                if change.reduce {
                    self.begin_reduction();
                }
            }
            CaState::Open | CaState::Disorder if in_reduction(from) => self.end_reduction(from),
            CaState::Open | CaState::Disorder => {}
        }
        self.state = change.to;
        // Linux: tcp_set_ca_state.
        self.algorithm.on_state(change.to, clocks(&change.connection), self.snd_nxt);
        if change.to == CaState::Recovery && change.trigger == Trigger::Timer {
            // No ACK follows to make room for the retransmission, so Linux counts one segment as delivered, even if the
            // window was being reduced before (tcp_rack_reo_timeout).
            self.reduce(change.connection.in_flight, 1, false);
        }
    }

    /// Linux: `tcp_undo_cwnd_reduction` with `tcp_reno_undo_cwnd`, which CUBIC uses as well.
    fn on_undo(&mut self, _: &Undo) {
        self.undo_marker = false;
        let Some(prior_ssthresh) = self.prior_ssthresh.get() else { return };
        self.window.cwnd = self.window.undone();
        self.window.ssthresh = self.window.ssthresh.max(prior_ssthresh);
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        let connection = &ack.connection;
        self.snd_nxt = ack.snd_nxt;
        if in_reduction(connection.state) {
            self.reduce(connection.in_flight, ack.newly_delivered, ack.una_advanced && ack.newly_lost == 0);
        } else if ack.may_raise_cwnd && self.window.is_limit(ack.cwnd_limited, ack.max_packets_out) {
            let Ack { newly_delivered: segments, snd_una, snd_nxt, .. } = *ack;
            let acked = Acked { segments, snd_una, snd_nxt };
            self.algorithm.cong_avoid(&mut self.window, clocks(connection), acked);
        }
        self.update_pacing(connection);
    }

    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
    }

    #[inline]
    fn limits(&self) -> Limits {
        Limits {
            cwnd: self.window.cwnd,
            ssthresh: self.window.ssthresh,
            pacing_rate: Rate::from_bytes_per_sec(self.pacing.bytes_per_sec()),
            // Linux: tcp_min_tso_segs.
            min_burst: 2,
            mark_app_limited: false,
            check_app_limited: false,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let phase = phase::loss_based(self.state, self.window.cwnd, self.window.ssthresh);
        let min_rtt = self.algorithm.min_rtt_us().map(|us| Duration::from_micros(us as u64));
        Snapshot { phase, bandwidth: None, min_rtt }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::controllers::cubic::{self, Cubic};
    use crate::controllers::reno::{Params, Reno};
    use crate::testing::{CONFIG, Flow};
    use std::vec::Vec;

    fn reno(flow: &Flow) -> Reno {
        Reno::new(&Params::default(), &CONFIG, &flow.connection)
    }

    /// Grown to `cwnd` in slow start.
    fn grown(flow: &mut Flow, cwnd: u32) -> Reno {
        let mut reno = reno(flow);
        reno.on_ack(&flow.ack(cwnd - 10));
        assert_eq!(reno.limits().cwnd, cwnd);
        reno
    }

    #[test]
    fn slow_start_doubles_avoidance_adds_one() {
        let mut flow = Flow::new();
        let mut reno = reno(&flow);
        reno.window.ssthresh = 40;
        let windows: Vec<u32> = (0..6)
            .map(|_| {
                let cwnd = reno.limits().cwnd;
                reno.on_ack(&flow.ack(cwnd));
                reno.limits().cwnd
            })
            .collect();
        assert_eq!(windows, [20, 40, 41, 42, 43, 44]);
    }

    #[test]
    fn ack_across_threshold_continues_in_avoidance() {
        let mut flow = Flow::new();
        let mut reno = reno(&flow);
        reno.window.ssthresh = 12;
        // Two grow the window to the threshold, twelve of the other fifteen add one, three are kept.
        reno.on_ack(&flow.ack(17));
        assert_eq!((reno.window.cwnd, reno.window.cwnd_cnt), (13, 3));
    }

    #[test]
    fn only_slow_start_grows_unfilled_window() {
        let mut flow = Flow::new();
        let mut reno = reno(&flow);
        reno.on_ack(&Ack { cwnd_limited: false, max_packets_out: 5, ..flow.ack(5) });
        assert_eq!(reno.limits().cwnd, 10);
        reno.on_ack(&Ack { cwnd_limited: false, max_packets_out: 6, ..flow.ack(5) });
        assert_eq!(reno.limits().cwnd, 15);
        reno.window.ssthresh = 10;
        reno.on_ack(&Ack { cwnd_limited: false, max_packets_out: 14, ..flow.ack(15) });
        assert_eq!((reno.window.cwnd, reno.window.cwnd_cnt), (15, 0));
        reno.on_ack(&Ack { may_raise_cwnd: false, ..flow.ack(15) });
        assert_eq!((reno.window.cwnd, reno.window.cwnd_cnt), (15, 0));
    }

    #[test]
    fn prr_halves_window_over_one_round() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 20);
        // One of twenty is lost, and found when three more are delivered: sixteen are in flight.
        flow.connection.in_flight = 16;
        flow.change(&mut reno, CaState::Recovery, true);
        let mut sent = Vec::new();
        for ack in 0..16 {
            let newly_lost = (ack == 0) as u32;
            reno.on_ack(&Ack { newly_lost, una_advanced: false, may_raise_cwnd: false, ..flow.ack(1) });
            let send = reno.limits().cwnd - flow.connection.in_flight;
            flow.send(&mut reno, send, ack == 0);
            sent.push(send);
            flow.connection.in_flight += send;
            flow.connection.in_flight -= 1;
        }
        // The retransmission at once, then every other ACK sends one until ten are in flight, and then each.
        assert_eq!(sent, [1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 0, 1, 1, 1]);
        assert_eq!(reno.limits().ssthresh, 10);
        flow.change(&mut reno, CaState::Open, false);
        assert_eq!(reno.limits().cwnd, 10);
    }

    #[test]
    fn prr_slow_starts_only_without_loss() {
        let window = |una_advanced, newly_lost| {
            let mut flow = Flow::new();
            let mut reno = grown(&mut flow, 100);
            flow.connection.in_flight = 20;
            flow.change(&mut reno, CaState::Recovery, true);
            reno.on_ack(&Ack { una_advanced, newly_lost, ..flow.ack(3) });
            reno.limits().cwnd
        };
        assert_eq!([window(false, 0), window(true, 0), window(true, 1)], [23, 24, 23]);
    }

    #[test]
    fn first_retransmission_leaves_at_threshold() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 20);
        flow.connection.in_flight = 10;
        flow.change(&mut reno, CaState::Recovery, true);
        let ack = |flow: &mut Flow| Ack { newly_lost: 1, una_advanced: false, ..flow.ack(1) };
        reno.on_ack(&ack(&mut flow));
        assert_eq!(reno.limits().cwnd, 11);
        flow.send(&mut reno, 1, true);
        reno.on_ack(&ack(&mut flow));
        assert_eq!(reno.limits().cwnd, 10);
    }

    #[test]
    fn timer_recovery_allows_retransmission() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 20);
        flow.connection.in_flight = 15;
        flow.change_by(&mut reno, CaState::Recovery, true, Trigger::Timer);
        assert_eq!(reno.limits().cwnd, 16);
        flow.send(&mut reno, 1, true);
        assert_eq!((reno.prr_delivered, reno.prr_out), (1, 1));
        // If an ACK began it, that ACK makes the room.
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 20);
        flow.connection.in_flight = 15;
        flow.change(&mut reno, CaState::Recovery, true);
        reno.on_ack(&Ack { una_advanced: false, newly_lost: 1, ..flow.ack(1) });
        assert_eq!((reno.prr_delivered, reno.prr_out), (1, 0));
    }

    #[test]
    fn timer_recovery_in_cwr_allows_retransmission() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 20);
        flow.connection.in_flight = 19;
        flow.change(&mut reno, CaState::Cwr, true);
        reno.on_ack(&Ack { una_advanced: false, ..flow.ack(1) });
        assert_eq!((reno.limits().cwnd, reno.prr_delivered), (20, 1));
        // The timer marks eleven lost: eight are in flight, two below the threshold.
        flow.connection.in_flight = 8;
        flow.change_by(&mut reno, CaState::Recovery, false, Trigger::Timer);
        assert_eq!((reno.limits().cwnd, reno.limits().ssthresh, reno.prr_delivered), (10, 10, 2));
    }

    /// Cubic in slow start with a window of 40, and the RTT of an ACK by which HyStart would end it.
    fn at_the_end_of_slow_start(flow: &mut Flow) -> (crate::controllers::cubic::Cubic, Ack) {
        let mut cubic = crate::controllers::cubic::Cubic::new(
            &crate::controllers::cubic::Params::default(),
            &CONFIG,
            &flow.connection,
        );
        flow.snd_nxt = 1_000;
        crate::testing::deliver(&mut cubic, &flow.ack(30));
        for _ in 0..9 {
            flow.pass(Duration::from_millis(3));
            let ack = Ack { cwnd_limited: false, ..flow.ack(1) };
            crate::testing::deliver(&mut cubic, &ack);
        }
        assert_eq!((cubic.limits().cwnd, cubic.limits().ssthresh), (40, Limits::INFINITE));
        flow.pass(Duration::from_millis(3));
        flow.connection.srtt = Duration::from_millis(200);
        // A round begins, whose first eight RTTs do not count yet.
        flow.snd_una = 2_000;
        flow.snd_nxt = 3_000;
        for _ in 0..8 {
            flow.pass(Duration::from_millis(3));
            let ack = Ack { cwnd_limited: false, ..flow.ack(1) };
            crate::testing::deliver(&mut cubic, &ack);
        }
        flow.pass(Duration::from_millis(3));
        (cubic, flow.ack(1))
    }

    #[test]
    fn rtt_ends_slow_start_before_recovery() {
        let mut flow = Flow { max_packets_out: 0, ..Flow::new() };
        let (mut cubic, ack) = at_the_end_of_slow_start(&mut flow);
        cubic.on_rtt(&ack.rtt_sample().unwrap());
        assert_eq!(cubic.limits().ssthresh, 40, "HyStart ends slow start");
        flow.change(&mut cubic, CaState::Recovery, true);
        assert_eq!(cubic.prior_ssthresh(), Some(40), "to which an undo returns");
    }

    #[test]
    fn undo_stays_in_slow_start() {
        let mut flow = Flow { max_packets_out: 0, ..Flow::new() };
        let (mut cubic, ack) = at_the_end_of_slow_start(&mut flow);
        flow.change(&mut cubic, CaState::Recovery, true);
        // In recovery the window is at the threshold or above, where HyStart has nothing to end.
        cubic.window.cwnd = cubic.window.ssthresh;
        cubic.on_rtt(&ack.rtt_sample().unwrap());
        cubic.on_undo(&Undo { connection: flow.connection });
        flow.change(&mut cubic, CaState::Open, false);
        cubic.on_ack(&Ack { connection: flow.connection, ..ack });
        assert_eq!(cubic.limits().ssthresh, Limits::INFINITE);
        assert!(cubic.limits().cwnd >= 40);
    }

    #[test]
    fn marked_recovery_ack_forbids_undo() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 20);
        let connection = flow.connection;
        let change = StateChange {
            connection,
            to: CaState::Recovery,
            reduce: true,
            proven: true,
            trigger: Trigger::Ack,
        };
        reno.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
        reno.on_state(&change);
        assert_eq!((reno.limits().ssthresh, reno.prior_ssthresh()), (10, None));
    }

    #[test]
    fn second_loss_does_not_reduce_again() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 100);
        flow.connection.in_flight = 90;
        reno.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
        flow.change(&mut reno, CaState::Cwr, true);
        assert_eq!(reno.limits().ssthresh, 50);
        flow.change(&mut reno, CaState::Recovery, false);
        assert_eq!(reno.limits().ssthresh, 50);
        reno.on_undo(&Undo { connection: flow.connection });
        assert_eq!(reno.limits().ssthresh, 50, "the mark proved congestion");
    }

    #[test]
    fn undo_restores_window_and_threshold() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 100);
        flow.connection.in_flight = 90;
        flow.change(&mut reno, CaState::Recovery, true);
        reno.on_ack(&Ack { newly_lost: 1, ..flow.ack(1) });
        reno.on_undo(&Undo { connection: flow.connection });
        flow.change(&mut reno, CaState::Open, false);
        assert_eq!((reno.limits().cwnd, reno.limits().ssthresh), (100, Limits::INFINITE));
    }

    #[test]
    fn second_timeout_does_not_halve_again() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 100);
        flow.connection.in_flight = 0;
        flow.change(&mut reno, CaState::Loss, true);
        assert_eq!((reno.limits().cwnd, reno.limits().ssthresh), (1, 50));
        flow.change(&mut reno, CaState::Loss, false);
        assert_eq!((reno.limits().cwnd, reno.limits().ssthresh), (1, 50));
        flow.change(&mut reno, CaState::Open, false);
        assert_eq!(reno.limits().cwnd, 1, "leaving Loss is no end of a reduction: slow start goes on");
    }

    #[test]
    fn idle_timeouts_halve_window_to_initial() {
        let window_after = |idle_ms| {
            let mut flow = Flow::new();
            let mut reno = grown(&mut flow, 100);
            let last_sent = flow.connection.now;
            flow.pass(Duration::from_millis(idle_ms));
            let rto = Duration::from_millis(300);
            reno.on_transmit_start(&TransmitStart { connection: flow.connection, last_sent, rto });
            (reno.limits().cwnd, reno.limits().ssthresh)
        };
        assert_eq!(window_after(300), (100, Limits::INFINITE));
        assert_eq!(window_after(301), (50, Limits::INFINITE));
        assert_eq!(window_after(901), (12, Limits::INFINITE));
        assert_eq!(window_after(60_000), (10, Limits::INFINITE));
    }

    #[test]
    fn unfilled_window_falls_halfway_to_use() {
        let mut flow = Flow::new();
        let mut reno = grown(&mut flow, 100);
        reno.window.ssthresh = 20;
        reno.on_window_unused(&WindowUnused { connection: flow.connection, used: 4 });
        assert_eq!((reno.limits().cwnd, reno.limits().ssthresh), (55, 75));
    }

    /// Linux: `tcp_init_metrics` first, then the `init` of the algorithm.
    #[test]
    fn cached_threshold_applies_unless_explicit() {
        let flow = Flow::new();
        let begins = |own: Option<u32>, ssthresh, cwnd_clamp| {
            let config = Config { ssthresh, cwnd_clamp, ..CONFIG };
            let own_params = cubic::Params {
                initial_ssthresh: own.unwrap_or(0),
                hystart: crate::controllers::hystart::Params { enabled: own.is_none(), ..Default::default() },
                ..cubic::Params::default()
            };
            Cubic::new(&own_params, &config, &flow.connection).limits().ssthresh
        };
        assert_eq!(begins(None, 30, u32::MAX), 30);
        assert_eq!(begins(None, 30, 20), 20);
        assert_eq!(begins(None, Limits::INFINITE, 20), Limits::INFINITE);
        assert_eq!(begins(Some(50), 30, u32::MAX), 50);
    }

    #[test]
    fn pacing_is_200_or_120_percent() {
        let mut flow = Flow { max_packets_out: 0, ..Flow::new() };
        let config = Config { paced: true, ..CONFIG };
        let mut reno = Reno::new(&Params::default(), &config, &flow.connection);
        // 10 segments of 1,448 bytes in 100 ms.
        assert_eq!(reno.limits().pacing_rate, Rate::from_bytes_per_sec(2 * 144_800));
        reno.window.ssthresh = 20;
        reno.on_ack(&Ack { cwnd_limited: false, ..flow.ack(1) });
        assert_eq!(reno.limits().pacing_rate, Rate::from_bytes_per_sec(173_760));
    }
}
