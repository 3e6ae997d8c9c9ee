//! The window of the RFCs' algorithms, in bytes, with QUIC's recovery periods: [`newreno`](crate::controllers::newreno) and
//! [`cubic9438`](crate::controllers::cubic9438) are its increase algorithms.
//!
//! Specification: RFC 9002 section 7 and appendix B, and RFC 9406 for slow start ([`HyStartPlusPlus`]). Each comment
//! `// RFC 9002 7.3.2` cites a section where it is implemented. Deviations: docs/reference/deviations.md#newreno.
//!
//! The interface counts units, which become bytes where events come in; the window becomes whole units where limits go out.
//!
//! RFC 9002 compares the times at which packets were sent with the beginning of the recovery period. Events carry no such
//! time, but counters that order packets in the same way:
//!
//! - A lost packet was sent in the period if the connection's counts of losses and of deliveries were then at least those at its
//!   beginning ([`Lost::tx_lost`], [`Lost::tx_delivered`]): the loss that begins a period is counted in the first one, and what the
//!   ACK delivers that begins one by a mark in the second.
//! - A delivered packet was sent in the period if its counts were ([`RateSample::prior_delivered`],
//!   [`RateSample::lost_since_sent`]).

use crate::controller::*;
use crate::controllers::hystartpp::HyStartPlusPlus;
use crate::parameter::parameters;
use fullpipe_units::Rate;

parameters! {
    /// Parameters of the window, whatever its increase algorithm.
    pub struct CoreParams from "RFC 9002 section 7";
    pace: bool = switch(true) from "RFC 9002 section 7.7",
        "space packets; if 0, the host decides";
    /// N of RFC 9002 section 7.7, in 1/1,000.
    pacing_gain: u32 = fraction((1000, 1), 1250, 1000..=4000, "") from "RFC 9002 section 7.7",
        "pacing rate, of a window an RTT";
    initial_limit: u32 = whole(14_720, 0..=100_000_000, "bytes") from "RFC 9002 section 7.2",
        "the most that the host's initial window counts for, or two packets if these are more; 0 for no limit";
}

/// The window as an increase algorithm sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteWindow {
    /// Bytes that may be in flight (RFC 9002: `congestion_window`).
    pub cwnd: u64,
    /// The slow-start threshold in bytes, [`ByteWindow::INFINITE`] before the first reduction.
    pub ssthresh: u64,
    /// Payload bytes of a full packet (RFC 9002: `max_datagram_size`; RFC 9438: SMSS).
    pub mss: u64,
}

impl ByteWindow {
    /// The slow-start threshold before it is known.
    pub const INFINITE: u64 = u64::MAX;

    /// RFC 9002: `kMinimumWindow`.
    #[inline]
    pub const fn minimum(&self) -> u64 {
        // RFC 9002 7.2: 2 * max_datagram_size is recommended.
        2 * self.mss
    }
}

/// An ACK by which the window may grow in congestion avoidance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Acknowledged {
    /// Bytes newly acknowledged, less those that slow start used.
    pub bytes: u64,
    /// The time of the ACK in microseconds.
    pub now_us: u64,
    /// The smoothed RTT in microseconds.
    pub srtt_us: u64,
}

/// What a congestion event showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A lost packet.
    Loss,
    /// A congestion mark.
    Mark,
}

/// What an algorithm in bytes decides; [`Bytewise`] does the rest.
pub trait Increase: Copy {
    /// Grows the window in congestion avoidance.
    fn grow(&mut self, window: &mut ByteWindow, acked: &Acknowledged);
    /// An ACK at `now_us` let nothing grow because the window was not used, or sending begins after idleness.
    fn pause(&mut self, now_us: u64);
    /// A congestion event reduces window and threshold. `flight` is the bytes outstanding.
    fn reduce(&mut self, window: &mut ByteWindow, cause: Cause, flight: u64);
    /// A timeout collapses the window; `again` if it follows another one without progress, which leaves the threshold alone.
    fn collapse(&mut self, window: &mut ByteWindow, flight: u64, again: bool);
    /// HyStart++ ends slow start at this window.
    fn leave_slow_start(&mut self, window: &ByteWindow);
    /// Whether slow start is HyStart++.
    fn has_hystart(&self) -> bool;
}

/// A recovery period (RFC 9002 section 7.3.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Period {
    /// It has not ended.
    is_active: bool,
    /// What the connection had counted when it began.
    began: Counts,
}

/// Units delivered and lost up to some instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counts {
    delivered: u64,
    lost: u64,
}

impl Counts {
    /// When a lost packet left.
    fn of_lost(lost: &Lost) -> Counts {
        Counts { delivered: lost.tx_delivered, lost: lost.tx_lost }
    }

    /// When the newest packet left that an ACK delivered.
    fn of_delivered(ack: &Ack) -> Counts {
        let lost = ack.connection.lost.saturating_sub(ack.sample.lost_since_sent as u64);
        Counts { delivered: ack.sample.prior_delivered, lost }
    }

    /// Whether the instant is before another one, of which one count or the other tells.
    fn is_before(self, other: Counts) -> bool {
        self.delivered < other.delivered || self.lost < other.lost
    }

    fn later(self, other: Counts) -> Counts {
        Counts { delivered: self.delivered.max(other.delivered), lost: self.lost.max(other.lost) }
    }
}

/// What an undo restores (RFC 9438 section 4.9.2).
#[derive(Clone, Copy, Debug)]
struct Saved<A> {
    is_allowed: bool,
    cwnd: u64,
    ssthresh: u64,
    increase: A,
}

/// A controller whose window is in bytes and follows RFC 9002.
#[derive(Clone, Copy, Debug)]
pub struct Bytewise<A> {
    window: ByteWindow,
    increase: A,
    hystart: HyStartPlusPlus,
    period: Period,
    saved: Saved<A>,
    state: CaState,
    /// When the newest packet left of those that were ever marked lost.
    newest_lost: Option<Counts>,
    /// A packet may leave whatever the window is; with it, no more than this is in flight.
    spare: Option<u64>,
    /// The largest flight since the window was last reduced (draft-ietf-ccwg-ratelimited-increase: `maxFS`), in bytes.
    max_flight: u64,
    in_flight: u64,
    flight: u64,
    srtt_us: u64,
    has_delivered: bool,
    paced: bool,
    pacing_gain: u64,
    max_pacing_rate: u64,
    initial_cwnd: u64,
    initial_limit: u64,
    clamp: u64,
    unit: u64,
}

impl<A: Increase> Bytewise<A> {
    /// A connection whose handshake is done, with this increase algorithm.
    pub fn with_increase(
        increase: A,
        params: &CoreParams,
        config: &Config,
        connection: &Connection,
    ) -> Bytewise<A> {
        let unit = config.unit as u64;
        let mut window = ByteWindow { cwnd: 0, ssthresh: ByteWindow::INFINITE, mss: config.mss as u64 };
        let initial_cwnd = config.initial_cwnd as u64 * unit;
        window.cwnd = initial_window(initial_cwnd, params.initial_limit as u64, &window);
        let mut controller = Bytewise {
            window,
            increase,
            hystart: HyStartPlusPlus::new(connection.packets_out as u64, config.paced),
            period: Period::default(),
            saved: Saved { is_allowed: false, cwnd: window.cwnd, ssthresh: window.ssthresh, increase },
            state: connection.state,
            newest_lost: None,
            spare: None,
            max_flight: window.cwnd,
            in_flight: connection.in_flight as u64 * unit,
            flight: connection.packets_out as u64 * unit,
            srtt_us: connection.srtt.as_micros(),
            has_delivered: false,
            paced: config.paced,
            pacing_gain: params.pacing_gain as u64,
            max_pacing_rate: config.max_pacing_rate.as_bytes_per_sec(),
            initial_cwnd,
            initial_limit: params.initial_limit as u64,
            clamp: config.cwnd_clamp as u64 * unit,
            unit,
        };
        controller.bound();
        controller
    }

    /// The window.
    pub const fn window(&self) -> &ByteWindow {
        &self.window
    }

    /// The increase algorithm.
    pub const fn increase(&self) -> &A {
        &self.increase
    }

    /// Whether a recovery period is under way.
    pub const fn is_recovering(&self) -> bool {
        self.period.is_active
    }

    /// Whether slow start is the conservative one of HyStart++.
    pub fn is_conservative(&self) -> bool {
        self.is_searching() && self.hystart.is_conservative()
    }

    /// Grown in slow start, or put there.
    #[cfg(test)]
    pub(crate) fn set_window_for_test(&mut self, cwnd: u64, ssthresh: u64) {
        (self.window.cwnd, self.window.ssthresh) = (cwnd, ssthresh);
    }

    /// Whether HyStart++ still looks for the end of slow start.
    #[inline]
    fn is_searching(&self) -> bool {
        // RFC 9406 4.3: only the initial slow start, whose threshold is still arbitrarily high.
        self.window.ssthresh == ByteWindow::INFINITE && self.increase.has_hystart()
    }

    fn bound(&mut self) {
        self.window.cwnd = self.window.cwnd.min(self.clamp);
    }

    /// A congestion event by a loss begins this period.
    fn on_loss(&mut self, period: Period) {
        // RFC 9002 B.6: OnCongestionEvent
        let before = self.window.cwnd;
        self.period = period;
        self.increase.reduce(&mut self.window, Cause::Loss, self.flight);
        self.max_flight = 0;
        // RFC 9002 7.3.2: a single packet can be sent prior to the reduction, so that the retransmission leaves at once.
        self.spare = Some(before);
    }

    /// Whether a loss in sight is one of packets that were all sent before the last period began.
    fn is_old_loss(&self) -> bool {
        self.newest_lost.is_some_and(|sent| sent.is_before(self.period.began))
    }

    fn save(&mut self, is_allowed: bool) {
        let ByteWindow { cwnd, ssthresh, .. } = self.window;
        self.saved = Saved { is_allowed, cwnd, ssthresh, increase: self.increase };
    }

    /// The most that the window may become for this flight.
    #[inline]
    fn limit(&self, flight: u64) -> u64 {
        // draft-ietf-ccwg-ratelimited-increase 3: what the acknowledgements of one such flight would make of it.
        if self.window.cwnd < self.window.ssthresh { 2 * flight } else { flight + self.window.mss }
    }

    /// Whether the window was the limit.
    #[inline]
    fn is_used(&self, ack: &Ack) -> bool {
        // RFC 9002 7.8: no growth while the flight is smaller than the window, unless pacing alone kept it small.
        ack.cwnd_limited
            || (self.paced
                && !ack.sample.app_limited
                && self.window.cwnd < self.limit(ack.max_packets_out as u64 * self.unit))
    }

    /// Remembers the largest flight.
    #[inline]
    fn note_flight(&mut self, ack: &Ack) {
        let flight = ack.max_packets_out.max(ack.prior_in_flight) as u64 * self.unit;
        self.max_flight = self.max_flight.max(flight);
    }

    #[inline]
    fn grow(&mut self, ack: &Ack, bytes: u64) {
        let ByteWindow { cwnd, ssthresh, mss } = self.window;
        let mut left = bytes;
        if cwnd < ssthresh {
            // RFC 9002 7.3.1: slow start grows by the bytes acknowledged.
            // draft-ietf-ccwg-ratelimited-increase 3: the transport says for a whole round that the window was the limit, but the
            // window may be twice as large by then.
            let most = ssthresh.min(self.limit(self.max_flight)).saturating_sub(cwnd);
            let growth = if self.is_searching() { self.hystart.growth(bytes, mss) } else { bytes }.min(most);
            self.window.cwnd += growth;
            left = if self.window.cwnd < ssthresh { 0 } else { bytes - growth };
        }
        if left > 0 {
            let acked =
                Acknowledged { bytes: left, now_us: ack.connection.now.as_micros(), srtt_us: self.srtt_us };
            self.increase.grow(&mut self.window, &acked);
        }
        self.bound();
    }

    #[inline]
    fn note(&mut self, connection: &Connection) {
        self.in_flight = connection.in_flight as u64 * self.unit;
        self.flight = connection.packets_out as u64 * self.unit;
        self.srtt_us = connection.srtt.as_micros();
    }

    #[inline]
    fn pacing_rate(&self) -> Rate {
        if self.srtt_us == 0 {
            return Rate::from_bytes_per_sec(self.max_pacing_rate);
        }
        // RFC 9002 7.7: rate = N * congestion_window / smoothed_rtt
        let scaled = self.window.cwnd * self.pacing_gain / 1_000;
        let rate = scaled.saturating_mul(1_000_000) / self.srtt_us;
        Rate::from_bytes_per_sec(rate.clamp(1, self.max_pacing_rate))
    }
}

/// RFC 9002 section 7.2.
fn initial_window(host: u64, limit: u64, window: &ByteWindow) -> u64 {
    // RFC 9002 7.2: ten packets, which the host says, but no more than the larger of 14,720 bytes and two packets.
    if limit == 0 { host } else { host.min(limit.max(window.minimum())) }
}

impl<A: Increase> Controller for Bytewise<A> {
    /// RFC 9002 7.8 leaves the window alone after idleness; pacing spreads it.
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.increase.pause(start.connection.now.as_micros());
    }

    /// RFC 9002 7.8 demands no more than that it does not grow.
    fn on_window_unused(&mut self, _: &WindowUnused) {}

    #[inline]
    fn on_sent(&mut self, _: &Sent) {
        self.spare = None;
    }

    /// HyStart++ takes RTTs with their ACKs.
    fn on_rtt(&mut self, _: &RttSample) {}

    /// The transport answers marks with [`CaState::Cwr`]; here the reduction only becomes final.
    fn on_ce(&mut self, marks: &CeMarks) {
        self.saved.is_allowed &= !marks.echoed;
    }

    /// The change of state that follows reduces.
    fn on_tail_repair(&mut self, _: &TailRepair) {}

    /// It is no signal (RFC 9002 B.9); the flight is that of the next ACK.
    fn on_discarded(&mut self, _: &Discarded) {}

    fn on_undo(&mut self, _: &Undo) {
        let Saved { is_allowed, cwnd, ssthresh, increase } = self.saved;
        if !is_allowed {
            return;
        }
        // There was no congestion that further losses could be a part of.
        self.period = Period::default();
        self.spare = None;
        // RFC 9438 4.9.2: only if the window is below what it was. The threshold returns in any case.
        if self.window.cwnd < cwnd {
            self.window.cwnd = cwnd;
            self.increase = increase;
        }
        self.window.ssthresh = self.window.ssthresh.max(ssthresh);
        self.bound();
    }

    fn on_lost(&mut self, lost: &Lost) {
        let sent = Counts::of_lost(lost);
        self.newest_lost = Some(self.newest_lost.map_or(sent, |newest| newest.later(sent)));
        // RFC 9002 B.8: a packet sent in the period, which for the transport is one more loss in the same recovery.
        let in_reduction = matches!(self.state, CaState::Recovery | CaState::Cwr);
        if in_reduction && !sent.is_before(self.period.began) {
            let began = Counts { delivered: lost.delivered, lost: lost.lost };
            self.on_loss(Period { is_active: true, began });
        }
    }

    fn on_state(&mut self, change: &StateChange) {
        let connection = &change.connection;
        self.note(connection);
        let began = Counts { delivered: connection.delivered, lost: connection.lost };
        let period = Period { is_active: true, began };
        match change.to {
            CaState::Loss => {
                if change.reduce {
                    self.save(true);
                }
                self.increase.collapse(&mut self.window, self.flight, !change.reduce);
                self.max_flight = 0;
                // RFC 9002 B.8: the period is over. What was sent before counts as one loss with it.
                self.period = Period { is_active: false, ..period };
                // RFC 9002 7.5: the congestion controller does not block probes. A transport that counts bytes sends them by itself; TCP
                // asks for the window.
                self.spare = (self.unit == self.window.mss).then_some(self.clamp);
            }
            CaState::Recovery => {
                if change.reduce {
                    self.save(true);
                    if !self.is_old_loss() {
                        self.on_loss(period);
                    }
                }
                self.saved.is_allowed = change.reduce && !change.proven;
            }
            CaState::Cwr => {
                if change.reduce {
                    self.save(true);
                    // A tail probe that repaired a loss shows one, too, but leaves nothing to be retransmitted.
                    let cause = if change.proven { Cause::Mark } else { Cause::Loss };
                    self.period = period;
                    // RFC 9002 B.7: ProcessECN
                    self.increase.reduce(&mut self.window, cause, self.flight);
                    self.max_flight = 0;
                }
                self.saved.is_allowed &= !change.proven;
            }
            // Nothing is left to be retransmitted.
            CaState::Open | CaState::Disorder => self.spare = None,
        }
        self.bound();
        self.state = change.to;
    }

    #[inline]
    fn on_ack(&mut self, ack: &Ack) {
        self.note(&ack.connection);
        self.note_flight(ack);
        let bytes = ack.newly_delivered as u64 * self.unit;
        if bytes == 0 {
            return;
        }
        self.has_delivered = true;
        // RFC 9002 7.3.2: the period ends when a packet sent in it is acknowledged.
        if self.period.is_active && ack.sample.delivered.is_some() {
            self.period.is_active = Counts::of_delivered(ack).is_before(self.period.began);
        }
        // RFC 9002 B.5: no growth in a recovery period
        if self.period.is_active {
            return;
        }
        // RFC 9406 4.2: first the window grows, then the RTT is judged.
        let is_searching = self.is_searching();
        if self.is_used(ack) {
            self.grow(ack, bytes);
        } else {
            self.increase.pause(ack.connection.now.as_micros());
        }
        if is_searching {
            let rtt_us = ack.rtt.map(|rtt| rtt.as_micros().min(u32::MAX as u64 - 1) as u32);
            if self.hystart.on_ack(rtt_us, ack.snd_una, ack.snd_nxt) {
                // RFC 9406 4.2: after CSS_ROUNDS, congestion avoidance begins at the present window.
                self.window.ssthresh = self.window.cwnd;
                self.increase.leave_slow_start(&self.window);
            }
        }
    }

    fn on_mss(&mut self, mss: u32) {
        let before = self.window.mss;
        if self.unit == before {
            // The clamp stays the same number of segments.
            self.clamp = self.clamp / before * mss as u64;
            self.unit = mss as u64;
        }
        self.window.mss = mss as u64;
        // RFC 9002 7.2: the initial window follows the size of packets, as long as it is that.
        if !self.has_delivered {
            self.initial_cwnd = self.initial_cwnd * self.window.mss / before;
            self.window.cwnd = initial_window(self.initial_cwnd, self.initial_limit, &self.window);
        }
        self.window.cwnd = self.window.cwnd.max(self.window.minimum());
        self.bound();
    }

    #[inline]
    fn limits(&self) -> Limits {
        let ByteWindow { cwnd, ssthresh, mss } = self.window;
        let spare = self.spare.map_or(0, |most| (self.in_flight + mss).min(most));
        let units = cwnd.max(spare) / self.unit;
        let threshold = (ssthresh / self.unit).min(Limits::INFINITE as u64) as u32;
        Limits {
            cwnd: units.clamp(1, u32::MAX as u64) as u32,
            ssthresh: if ssthresh == ByteWindow::INFINITE { Limits::INFINITE } else { threshold },
            pacing_rate: self.pacing_rate(),
            min_burst: (2 * mss).div_ceil(self.unit) as u32,
            mark_app_limited: false,
            check_app_limited: false,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let phase = match self.state {
            CaState::Loss => Phase::Loss,
            _ if self.period.is_active => Phase::Recovery,
            _ if self.window.cwnd < self.window.ssthresh => Phase::SlowStart,
            _ => Phase::CongestionAvoidance,
        };
        Snapshot { phase, bandwidth: None, min_rtt: None }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::controllers::newreno::{NewReno, Params};
    use crate::testing::{CONFIG, Flow};
    use fullpipe_units::Duration;
    use std::vec::Vec;

    const MSS: u64 = CONFIG.mss as u64;

    fn newreno(flow: &Flow) -> NewReno {
        NewReno::new(&Params::default(), &CONFIG, &flow.connection)
    }

    /// In slow start with this window in segments.
    fn grown(flow: &mut Flow, segments: u32) -> NewReno {
        let mut controller = newreno(flow);
        controller.on_ack(&flow.ack(segments - 10));
        assert_eq!(controller.limits().cwnd, segments);
        controller
    }

    /// An ACK of `segments` whose newest packet left when `prior_delivered` were delivered.
    fn ack_of(flow: &mut Flow, segments: u32, prior_delivered: u64) -> Ack {
        let ack = flow.ack(segments);
        Ack { sample: RateSample { prior_delivered, ..ack.sample }, ..ack }
    }

    /// One packet is found lost that left when `tx_lost` were; a recovery begins if none is under way.
    fn lose(flow: &mut Flow, controller: &mut NewReno, tx_lost: u64) {
        flow.connection.lost += 1;
        controller.on_lost(&Lost {
            now: flow.connection.now,
            delivered: flow.connection.delivered,
            units: 1,
            new_range: true,
            tx_in_flight: 10,
            tx_delivered: flow.connection.delivered,
            tx_lost,
            lost: flow.connection.lost,
            app_limited: false,
        });
        if flow.connection.state < CaState::Recovery {
            flow.change(controller, CaState::Recovery, true);
        }
    }

    /// RFC 9002 7.2: min(10 packets, max(14,720 bytes, 2 packets)).
    #[test]
    fn initial_window_follows_rfc_9002() {
        let window = |mss, initial_limit| {
            let mut params = Params::default();
            params.core.initial_limit = initial_limit;
            let config = Config { mss, unit: mss, ..CONFIG };
            NewReno::new(&params, &config, &Flow::new().connection).window().cwnd
        };
        let sizes = [1_200, 1_448, 1_472, 1_500, 9_000];
        assert_eq!(sizes.map(|mss| window(mss, 14_720)), [12_000, 14_480, 14_720, 14_720, 18_000]);
        assert_eq!(sizes.map(|mss| window(mss, 0)), [12_000, 14_480, 14_720, 15_000, 90_000]);
    }

    /// RFC 9002 7.2: it follows the packets' size until something is delivered; the minimum follows it always.
    #[test]
    fn early_packet_size_rescales_initial_window() {
        let mut flow = Flow::new();
        let mut fresh = newreno(&flow);
        fresh.on_mss(1_200);
        assert_eq!(fresh.window().cwnd, 12_000);
        let mut used = newreno(&flow);
        used.on_ack(&flow.ack(1));
        used.on_mss(1_200);
        assert_eq!(used.window().cwnd, 11 * MSS);
        used.on_mss(8_948);
        assert_eq!((used.window().cwnd, used.limits().cwnd), (17_896, 2));
    }

    #[test]
    fn clamp_scales_with_segment_size() {
        let mut flow = Flow::new();
        let config = Config { cwnd_clamp: 10, ..CONFIG };
        let mut controller = NewReno::new(&Params::default(), &config, &flow.connection);
        controller.on_ack(&flow.ack(1));
        for mss in [724, 4_000] {
            controller.set_window_for_test(1_000 * MSS, 10 * MSS);
            controller.on_mss(mss);
            assert_eq!(controller.limits().cwnd, 10, "{mss}");
        }
    }

    /// RFC 9002 7.3.1: by the bytes acknowledged, so that the window doubles in each round.
    #[test]
    fn slow_start_grows_by_acked_bytes() {
        let mut flow = Flow::new();
        let mut controller = newreno(&flow);
        let windows = [1, 2, 7, 20].map(|segments| {
            controller.on_ack(&flow.ack(segments));
            controller.limits().cwnd
        });
        assert_eq!(windows, [11, 13, 20, 40]);
        assert_eq!(controller.snapshot().phase, Phase::SlowStart);
    }

    /// RFC 9002 7.3.2: one reduction in a period, whatever more was sent before it and is lost.
    #[test]
    fn losses_before_period_reduce_once() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        lose(&mut flow, &mut controller, 0);
        assert_eq!((controller.window().cwnd, controller.window().ssthresh), (50 * MSS, 50 * MSS));
        assert_eq!(controller.snapshot().phase, Phase::Recovery);
        for _ in 0..5 {
            lose(&mut flow, &mut controller, 0);
        }
        assert_eq!(controller.window().cwnd, 50 * MSS);
    }

    /// RFC 9002 7.3.2 and B.8: a packet sent after the period began, such as a retransmission, begins another if it is lost.
    #[test]
    fn loss_sent_in_period_reduces_again() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        lose(&mut flow, &mut controller, 0);
        let sent_when = flow.connection.lost;
        lose(&mut flow, &mut controller, sent_when);
        assert_eq!(controller.window().cwnd, 25 * MSS);
        lose(&mut flow, &mut controller, sent_when);
        assert_eq!(controller.window().cwnd, 25 * MSS, "and that began a period, too");
    }

    /// RFC 9002 7.3.2: the transport's recovery may end while the period, which began later, goes on.
    #[test]
    fn new_recovery_ignores_packets_before_period() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        lose(&mut flow, &mut controller, 0);
        let sent_when = flow.connection.lost;
        lose(&mut flow, &mut controller, sent_when);
        flow.change(&mut controller, CaState::Open, false);
        lose(&mut flow, &mut controller, sent_when);
        assert_eq!((flow.connection.state, controller.window().cwnd), (CaState::Recovery, 25 * MSS));
        flow.change(&mut controller, CaState::Open, false);
        // Of several losses, one sent after the period began is enough, whichever is reported first.
        let sent_when = flow.connection.lost;
        flow.connection.lost += 1;
        let lost = flow.connection.lost;
        let (now, delivered) = (flow.connection.now, flow.connection.delivered);
        let (units, new_range, tx_in_flight, app_limited) = (1, true, 10, false);
        let tx_lost = sent_when;
        controller.on_lost(&Lost {
            now,
            delivered,
            units,
            new_range,
            tx_in_flight,
            tx_delivered: delivered,
            tx_lost,
            lost,
            app_limited,
        });
        lose(&mut flow, &mut controller, 0);
        assert_eq!(controller.window().cwnd, 12 * MSS + MSS / 2);
    }

    /// RFC 9002 7.3.2: it ends when a packet sent in it is acknowledged, although TCP's recovery lasts longer. B.5: what was
    /// sent before does not let the window grow.
    #[test]
    fn period_ends_with_its_first_packet() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        flow.connection.delivered += 3;
        let sent_before = flow.connection.delivered - 1;
        lose(&mut flow, &mut controller, 0);
        let sent_in = flow.connection.delivered;
        for _ in 0..40 {
            controller.on_ack(&ack_of(&mut flow, 1, sent_before));
        }
        assert!(controller.is_recovering());
        assert_eq!(controller.window().cwnd, 50 * MSS);
        controller.on_ack(&ack_of(&mut flow, 50, sent_in));
        assert!(!controller.is_recovering());
        assert_eq!(flow.connection.state, CaState::Recovery, "for TCP");
        assert_eq!(controller.window().cwnd, 51 * MSS);
    }

    /// A timer's period: packets that left before it and in it saw the same count delivered.
    #[test]
    fn timer_period_ends_after_its_losses() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        let delivered = flow.connection.delivered;
        flow.connection.state = CaState::Recovery;
        lose(&mut flow, &mut controller, 0);
        flow.change_by(&mut controller, CaState::Recovery, true, Trigger::Timer);
        let ack = ack_of(&mut flow, 1, delivered);
        controller.on_ack(&Ack { sample: RateSample { lost_since_sent: 1, ..ack.sample }, ..ack });
        assert!(controller.is_recovering());
        controller.on_ack(&ack);
        assert!(!controller.is_recovering());
    }

    /// TCP may begin another recovery with what is still to be retransmitted of the last one, without a new loss.
    #[test]
    fn recovery_without_loss_reduces_nothing() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        lose(&mut flow, &mut controller, 0);
        let sent_in = flow.connection.lost;
        lose(&mut flow, &mut controller, sent_in);
        assert_eq!(controller.limits().ssthresh, 25);
        flow.change(&mut controller, CaState::Open, false);
        flow.change(&mut controller, CaState::Recovery, true);
        assert_eq!(controller.limits().ssthresh, 25);
    }

    /// RFC 9002 7.3.2: a single packet can be sent prior to the reduction.
    #[test]
    fn retransmission_is_immediate_despite_reduction() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        flow.connection.in_flight = 96;
        lose(&mut flow, &mut controller, 0);
        assert_eq!(controller.limits().cwnd, 97);
        flow.send(&mut controller, 1, true);
        assert_eq!(controller.limits().cwnd, 50);
    }

    /// RFC 9002 B.6: the period of a mark answers for what was sent before it, as long as it lasts, and for nothing later.
    #[test]
    fn mark_period_excludes_later_losses() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        flow.change(&mut controller, CaState::Cwr, true);
        let sent_in = flow.connection.delivered;
        assert_eq!(controller.limits().ssthresh, 50);
        controller.on_ack(&ack_of(&mut flow, 1, sent_in));
        assert!(!controller.is_recovering());
        flow.change(&mut controller, CaState::Open, false);
        let sent_when = flow.connection.lost;
        lose(&mut flow, &mut controller, sent_when);
        assert_eq!(controller.limits().ssthresh, 25);
    }

    /// RFC 9002 B.6: a packet that left before the mark became known is a part of what it showed, however late its loss is found.
    #[test]
    fn packet_before_mark_never_reduces() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        let sent_before = flow.connection.delivered;
        flow.connection.delivered += 2;
        flow.change(&mut controller, CaState::Cwr, true);
        let sent_in = flow.connection.delivered;
        controller.on_ack(&ack_of(&mut flow, 1, sent_in));
        assert!(!controller.is_recovering());
        let tx_lost = flow.connection.lost;
        flow.connection.lost += 1;
        let loss = Lost {
            now: flow.connection.now,
            delivered: flow.connection.delivered,
            units: 1,
            new_range: true,
            tx_in_flight: 10,
            tx_delivered: sent_before,
            tx_lost,
            lost: flow.connection.lost,
            app_limited: false,
        };
        controller.on_lost(&loss);
        assert_eq!((controller.state, controller.limits().ssthresh), (CaState::Cwr, 50));
        // The next one left in the period.
        controller.on_lost(&Lost {
            tx_delivered: sent_in,
            tx_lost: tx_lost + 1,
            lost: loss.lost + 1,
            ..loss
        });
        assert_eq!(controller.limits().ssthresh, 25);
    }

    /// What an undone reduction was for was no congestion: the loss of a packet that left before it is a new event.
    #[test]
    fn undo_ends_period_for_older_packets() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        lose(&mut flow, &mut controller, 0);
        controller.on_undo(&Undo { connection: flow.connection });
        flow.change(&mut controller, CaState::Open, false);
        assert_eq!(controller.limits().ssthresh, Limits::INFINITE);
        lose(&mut flow, &mut controller, 0);
        assert_eq!(controller.limits().ssthresh, 50);
    }

    /// RFC 9002 7.1 and B.7: a mark reduces as a loss does, and no packet that left before.
    #[test]
    fn a_mark_is_a_congestion_event() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        flow.connection.in_flight = 96;
        controller.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
        controller.on_state(&StateChange {
            connection: flow.connection,
            to: CaState::Cwr,
            reduce: true,
            proven: true,
            trigger: Trigger::Ack,
        });
        flow.connection.state = CaState::Cwr;
        assert_eq!(controller.limits().cwnd, 50, "nothing is to be retransmitted");
        // Lost, and sent before the mark was known: TCP begins no other reduction, and neither does QUIC.
        flow.connection.lost += 1;
        let lost = flow.connection.lost;
        controller.on_lost(&Lost {
            now: flow.connection.now,
            delivered: flow.connection.delivered,
            units: 1,
            new_range: true,
            tx_in_flight: 10,
            tx_delivered: flow.connection.delivered - 1,
            tx_lost: lost - 1,
            lost,
            app_limited: false,
        });
        flow.change(&mut controller, CaState::Recovery, false);
        assert_eq!(controller.window().cwnd, 50 * MSS);
        controller.on_undo(&Undo { connection: flow.connection });
        assert_eq!(controller.window().cwnd, 50 * MSS, "the mark proved congestion");
    }

    /// RFC 9002 7.6.2 and B.8: the minimum window; the threshold is half the window, once.
    #[test]
    fn timeout_collapses_cwnd_to_two() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        flow.change(&mut controller, CaState::Loss, true);
        assert_eq!((controller.limits().cwnd, controller.limits().ssthresh), (2, 50));
        flow.change(&mut controller, CaState::Loss, false);
        assert_eq!((controller.limits().cwnd, controller.limits().ssthresh), (2, 50));
        // B.8: the recovery period is over, so that slow start goes on with the first ACK.
        controller.on_ack(&ack_of(&mut flow, 2, 0));
        assert_eq!(controller.limits().cwnd, 4);
        controller.on_ack(&flow.ack(100));
        assert_eq!((controller.window().cwnd, controller.window().ssthresh), (51 * MSS, 50 * MSS));
    }

    /// RFC 9002 B.8: a timeout ends the period. What was sent before it, and is found lost after it, is the same congestion.
    #[test]
    fn timeout_ends_period_covers_older_packets() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        lose(&mut flow, &mut controller, 0);
        let sent_before = flow.connection.lost;
        flow.connection.lost += 40;
        flow.change(&mut controller, CaState::Loss, true);
        assert_eq!((controller.limits().cwnd, controller.limits().ssthresh), (2, 25));
        assert!(!controller.is_recovering());
        controller.on_ack(&ack_of(&mut flow, 8, 0));
        flow.change(&mut controller, CaState::Open, false);
        lose(&mut flow, &mut controller, sent_before);
        assert_eq!((controller.limits().cwnd, controller.limits().ssthresh), (10, 25));
    }

    /// RFC 9002 7.5: congestion control does not block a probe.
    #[test]
    fn timeout_allows_packet_beyond_cwnd() {
        let mut flow = Flow::new();
        let mut controller = grown(&mut flow, 100);
        flow.connection.in_flight = 5;
        flow.change(&mut controller, CaState::Loss, true);
        assert_eq!(controller.limits().cwnd, 6);
        flow.send(&mut controller, 1, true);
        assert_eq!(controller.limits().cwnd, 2);
    }

    /// RFC 9002 7.8: no growth while the window is not used, except where pacing keeps the flight small.
    #[test]
    fn unfilled_window_grows_only_if_paced() {
        let grows = |paced: bool, app_limited: bool, max_packets_out: u32| {
            let mut flow = Flow::new();
            let config = Config { paced, ..CONFIG };
            let mut controller = NewReno::new(&Params::default(), &config, &flow.connection);
            let ack = flow.ack(5);
            let sample = RateSample { app_limited, ..ack.sample };
            controller.on_ack(&Ack { cwnd_limited: false, max_packets_out, sample, ..ack });
            controller.limits().cwnd > 10
        };
        assert!(grows(true, false, 9));
        assert!(!grows(true, true, 9), "the application");
        assert!(!grows(true, false, 5), "or flow control");
        assert!(!grows(false, false, 9), "without pacing, the window would be full");
    }

    /// draft-ietf-ccwg-ratelimited-increase 3.1: ten packets, a pause, four packets. Without the limit, the window is 24.
    #[test]
    fn slow_start_limited_to_twice_flight() {
        for paced in [false, true] {
            let mut flow = Flow { max_packets_out: 10, ..Flow::new() };
            let mut controller =
                NewReno::new(&Params::default(), &Config { paced, ..CONFIG }, &flow.connection);
            let mut windows = Vec::new();
            for packets in [10, 4, 4] {
                controller.on_ack(&flow.ack(packets));
                windows.push(controller.limits().cwnd);
            }
            assert_eq!(windows, [20, 20, 20], "paced: {paced}");
            flow.max_packets_out = 28;
            (0..100).for_each(|_| controller.on_ack(&flow.ack(1)));
            assert_eq!(controller.limits().cwnd, 56, "28 in flight, paced: {paced}");
        }
    }

    /// draft-ietf-ccwg-ratelimited-increase 3: a flight of before the reduction allows nothing after it.
    #[test]
    fn a_reduction_forgets_the_largest_flight() {
        let mut flow = Flow { max_packets_out: 100, ..Flow::new() };
        let mut controller = grown(&mut flow, 100);
        flow.change(&mut controller, CaState::Loss, true);
        flow.change(&mut controller, CaState::Open, false);
        flow.max_packets_out = 4;
        (0..100).for_each(|_| controller.on_ack(&flow.ack(1)));
        assert_eq!(controller.limits().cwnd, 8);
    }

    /// draft-ietf-ccwg-ratelimited-increase 3: a packet more than the flight, where the receiver's window is the limit.
    #[test]
    fn avoidance_limited_to_flight_plus_one() {
        let grown_to = |max_packets_out, cwnd_limited, app_limited| {
            let mut flow = Flow { max_packets_out, ..Flow::new() };
            let config = Config { paced: true, ..CONFIG };
            let mut controller = NewReno::new(&Params::default(), &config, &flow.connection);
            controller.set_window_for_test(50 * MSS, 50 * MSS);
            for _ in 0..200 {
                let ack = flow.ack(25);
                let sample = RateSample { app_limited, ..ack.sample };
                controller.on_ack(&Ack { cwnd_limited, sample, ..ack });
            }
            controller.limits().cwnd
        };
        assert_eq!(grown_to(50, false, false), 51);
        assert_eq!(grown_to(30, false, false), 50);
        assert_eq!(grown_to(50, false, true), 50, "the application");
        assert!(grown_to(50, true, false) > 100, "the window");
    }

    /// RFC 9002 7.8: what is paced uses its window, if it has data to send.
    #[test]
    fn paced_window_doubles_in_slow_start() {
        let mut flow = Flow::new();
        let config = Config { paced: true, ..CONFIG };
        let mut controller = NewReno::new(&Params::default(), &config, &flow.connection);
        for round in 1..5 {
            let cwnd = controller.limits().cwnd;
            // At 5/4 of a window a round trip, nine tenths of a window are in flight.
            flow.max_packets_out = cwnd * 9 / 10;
            controller.on_ack(&Ack { cwnd_limited: false, ..flow.ack(cwnd) });
            assert!(controller.limits().cwnd * 10 >= cwnd * 18, "round {round}");
        }
    }

    /// RFC 9002 7.7: N * cwnd / srtt with N = 1.25.
    #[test]
    fn pacing_is_125_percent_of_window() {
        let mut flow = Flow::new();
        let rate = |controller: &NewReno| controller.limits().pacing_rate.as_bytes_per_sec();
        let mut controller = newreno(&flow);
        assert_eq!(rate(&controller), 10 * MSS * 10 * 5 / 4);
        flow.connection.srtt = Duration::from_millis(50);
        controller.on_ack(&flow.ack(10));
        assert_eq!(rate(&controller), 20 * MSS * 20 * 5 / 4);
        let unmeasured = Connection { srtt: Duration::ZERO, ..flow.connection };
        let config = Config { max_pacing_rate: Rate::from_bytes_per_sec(1_000_000), ..CONFIG };
        let controller = NewReno::new(&Params::default(), &config, &unmeasured);
        assert_eq!(rate(&controller), 1_000_000, "the host's, before the RTT is known");
    }

    /// RFC 9438 4.9.2, and RFC 4015 3.2 for the threshold.
    #[test]
    fn undo_restores_unless_window_outgrew() {
        let undone = |regrown: u64| {
            let mut flow = Flow::new();
            let mut controller = grown(&mut flow, 100);
            lose(&mut flow, &mut controller, 0);
            let cwnd = controller.window().cwnd;
            controller.set_window_for_test(cwnd + regrown * MSS, cwnd);
            controller.on_undo(&Undo { connection: flow.connection });
            flow.change(&mut controller, CaState::Open, false);
            (controller.limits().cwnd, controller.limits().ssthresh)
        };
        assert_eq!(undone(0), (100, Limits::INFINITE));
        assert_eq!(undone(49), (100, Limits::INFINITE));
        assert_eq!(undone(60), (110, Limits::INFINITE));
    }

    /// RFC 9002 7.1: a mark is congestion, whether the ACK that shows it begins a reduction or not, and so is a full queue of the
    /// host's own, which no mark shows.
    #[test]
    fn what_proves_congestion_forbids_the_undo() {
        let mut flow = Flow::new();
        let mut marked = grown(&mut flow, 100);
        lose(&mut flow, &mut marked, 0);
        marked.on_ce(&CeMarks { echoed: true, ..CeMarks::default() });
        marked.on_undo(&Undo { connection: flow.connection });
        assert_eq!((marked.limits().cwnd, marked.limits().ssthresh), (50, 50));
        let mut flow = Flow::new();
        let proven = |controller: &mut NewReno, flow: &mut Flow, to| {
            let connection = flow.connection;
            let trigger = Trigger::Ack;
            controller.on_state(&StateChange { connection, to, reduce: true, proven: true, trigger });
            controller.on_undo(&Undo { connection });
            (controller.limits().cwnd, controller.limits().ssthresh)
        };
        for to in [CaState::Cwr, CaState::Recovery] {
            assert_eq!(proven(&mut grown(&mut flow, 100), &mut flow, to), (50, 50));
        }
    }

    /// RFC 9406 4.3: HyStart++ is of the initial slow start. 4.2: a loss ends it, here with RFC 9002's reduction.
    #[test]
    fn hystart_ends_only_first_slow_start() {
        let mut flow = Flow::new();
        let params = Params { hystartpp: true, ..Params::default() };
        let config = Config { paced: true, ..CONFIG };
        let mut controller = NewReno::new(&params, &config, &flow.connection);
        let mut round = |controller: &mut NewReno, rtt_ms: u64| {
            for _ in 0..10 {
                flow.snd_nxt = flow.snd_una + 10;
                let rtt = Some(Duration::from_millis(rtt_ms));
                controller.on_ack(&Ack { rtt, ..flow.ack(1) });
            }
            (controller.limits().cwnd, controller.is_conservative())
        };
        assert_eq!([100, 100].map(|rtt| round(&mut controller, rtt)), [(20, false), (30, false)]);
        // The eighth sample begins CSS: eight segments, and a quarter of two.
        assert_eq!(round(&mut controller, 120), (38, true));
        for (rtt, cwnd) in [(121, 41), (122, 43), (123, 46), (124, 48)] {
            assert_eq!(round(&mut controller, rtt), (cwnd, true));
        }
        assert_eq!(controller.limits().ssthresh, Limits::INFINITE);
        round(&mut controller, 125);
        assert_eq!((controller.limits().cwnd, controller.limits().ssthresh), (48, 48));
        // After a timeout, slow start is the ordinary one.
        controller.set_window_for_test(2 * MSS, 40 * MSS);
        assert_eq!([200, 400].map(|rtt| round(&mut controller, rtt)), [(12, false), (22, false)]);
    }
}
