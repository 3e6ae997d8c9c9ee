//! DCTCP: gives up as much of its window as segments are marked; grows as Reno does.
//!
//! Specification: Linux 6.12 `net/ipv4/tcp_dctcp.c`; RFC 8257; Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010.
//! Deviations: docs/reference/deviations.md#dctcp.
//!
//! Its receiver tells the sender of every segment whether it was marked; the transport does that
//! ([`Params::ecn`](crate::Params::ecn)). Once a round, the share of marked segments moves `alpha`, and the first mark in a
//! window cuts that by half of `alpha`. Losses halve the window. Where ECN is not negotiated, Reno runs instead
//! ([`Params::without_ecn`](crate::Params::without_ecn)).

use crate::controller::{CaState, CeMarks, Config, Connection, Ect, Limits};
use crate::controllers::segment_window::{Acked, Algorithm, Clocks, CoreParams, LossBased, Sampled, Window};
use crate::parameter::{ControllerInfo, parameters};

/// Scale of `alpha` (Linux: `DCTCP_MAX_ALPHA`).
const SHIFT: u32 = 10;
const ALL: u32 = 1 << SHIFT;

parameters! {
    /// DCTCP's parameters; the defaults are Linux's module parameters.
    pub struct Params from "Linux 6.12 net/ipv4/tcp_dctcp.c; RFC 8257 section 4.2";
    /// Linux: `dctcp_shift_g`.
    shift_g: u32 = whole(4, 0..=SHIFT, ""),
        "the last round's weight in alpha, as a negative power of two";
    /// In 1/1,024 (Linux: `dctcp_alpha_on_init`).
    alpha_on_init: u32 = fraction((ALL, 1), ALL, 0..=ALL, ""),
        "the marked share to assume at the start";
    ect1: bool = switch(false) from "RFC 9331 section 2",
        "send with ECT(1), which queues with a low-latency service look for";
    ..core: CoreParams;
}

impl Params {
    /// The codepoint of every packet.
    pub(crate) const fn codepoint(&self) -> Ect {
        if self.ect1 { Ect::One } else { Ect::Zero }
    }
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "dctcp",
    summary: "cuts its window by half the share of segments that were marked; needs ECN",
    source: "Linux 6.12 net/ipv4/tcp_dctcp.c; RFC 8257",
    linux_name: Some("dctcp"),
    answers_delay: false,
    parameters: Params::PARAMETERS,
};

/// The answer to marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DctcpDecrease {
    /// The smoothed share of marked segments, in 1/1,024 (Linux: `dctcp_alpha`).
    alpha: u32,
    shift_g: u32,
    round: Round,
}

/// A round, over which marks are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// It ends when this is acknowledged (Linux: `next_seq`).
    pub end: u64,
    /// [`Connection::delivered`] when it began, low bits (Linux: `old_delivered`).
    pub delivered: u32,
    /// Marked segments since (Linux: `delivered_ce - old_delivered_ce`).
    pub marked: u32,
}

impl DctcpDecrease {
    /// The smoothed share of marked segments, in 1/1,024.
    pub const fn alpha(&self) -> u32 {
        self.alpha
    }

    /// The round.
    pub const fn round(&self) -> &Round {
        &self.round
    }

    /// Moves `alpha` by the round that ends (Linux: `dctcp_update_alpha`).
    fn end_round(&mut self, delivered: u32) {
        let decay = self.alpha >> self.shift_g;
        // What is too little to decay by a share is forgotten at once.
        self.alpha -= if decay == 0 { self.alpha } else { decay };
        if self.round.marked > 0 {
            let delivered = delivered.wrapping_sub(self.round.delivered);
            let share = (self.round.marked << (SHIFT - self.shift_g)) / delivered.max(1);
            self.alpha = self.alpha.wrapping_add(share).min(ALL);
        }
    }
}

impl Algorithm for DctcpDecrease {
    fn pkts_acked(&mut self, _: &mut Window, _: Clocks, _: &Sampled) {}

    #[inline]
    fn cong_avoid(&mut self, window: &mut Window, _: Clocks, acked: Acked) {
        window.reno(acked.segments);
    }

    /// Linux: `dctcp_ssthresh`.
    fn ssthresh(&mut self, window: &Window) -> u32 {
        (window.cwnd - (window.cwnd.wrapping_mul(self.alpha) >> (SHIFT + 1))).max(2)
    }

    /// Linux: `dctcp_react_to_loss`.
    fn loss_ssthresh(&mut self, window: &Window) -> Option<u32> {
        Some(window.half())
    }

    /// Linux: `dctcp_update_alpha`.
    fn on_marks(&mut self, marks: &CeMarks) {
        self.round.marked = self.round.marked.wrapping_add(marks.units);
        if marks.snd_una >= self.round.end {
            self.end_round(marks.delivered as u32);
            self.round = Round { end: marks.snd_nxt, delivered: marks.delivered as u32, marked: 0 };
        }
    }

    /// Only a loss matters: [`Algorithm::loss_ssthresh`].
    fn on_state(&mut self, _: CaState, _: Clocks, _: u64) {}

    fn on_transmit_start(&mut self, _: Clocks, _: u32, _: u64) {}

    fn min_rtt_us(&self) -> Option<u32> {
        None
    }
}

/// A DCTCP connection.
pub type Dctcp = LossBased<DctcpDecrease>;

impl Dctcp {
    /// A connection whose handshake is done, and negotiated ECN.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> Dctcp {
        let algorithm = DctcpDecrease {
            alpha: params.alpha_on_init.min(ALL),
            shift_g: params.shift_g,
            round: Round {
                end: connection.packets_out as u64,
                delivered: connection.delivered as u32,
                marked: 0,
            },
        };
        LossBased::with_algorithm(algorithm, Limits::INFINITE, &params.core, config, connection)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::controller::{Controller, StateChange, Trigger, Undo};
    use crate::testing::{CONFIG, Flow};
    use proptest::prelude::*;
    use std::vec::Vec;

    fn dctcp(params: &Params) -> Dctcp {
        Dctcp::new(params, &CONFIG, &Flow::new().connection)
    }

    fn alpha(dctcp: &Dctcp) -> u32 {
        dctcp.algorithm().alpha()
    }

    /// One round in one report: of so many delivered segments, this many were marked.
    fn round(flow: &mut Flow, dctcp: &mut Dctcp, marked: u32, delivered: u32) {
        flow.snd_una += 1;
        flow.connection.delivered += delivered as u64;
        report(flow, dctcp, marked, flow.snd_una);
    }

    fn report(flow: &Flow, dctcp: &mut Dctcp, marked: u32, snd_nxt: u64) {
        let delivered = flow.connection.delivered;
        dctcp.on_ce(&CeMarks {
            echoed: marked > 0,
            units: marked,
            delivered,
            snd_una: flow.snd_una,
            snd_nxt,
        });
    }

    fn enter(flow: &mut Flow, dctcp: &mut Dctcp, to: CaState, reduce: bool, proven: bool) {
        let connection = flow.connection;
        let trigger = if to == CaState::Loss { Trigger::Timer } else { Trigger::Ack };
        dctcp.on_state(&StateChange { connection, to, reduce, proven, trigger });
        flow.connection.state = to;
    }

    /// With this window and this share of marks.
    fn settled(flow: &mut Flow, cwnd: u32, alpha_on_init: u32) -> Dctcp {
        flow.connection.in_flight = cwnd;
        let mut dctcp = dctcp(&Params { alpha_on_init, ..Params::default() });
        dctcp.set_cwnd_for_test(cwnd);
        dctcp.set_ssthresh_for_test(cwnd);
        dctcp
    }

    #[test]
    fn alpha_follows_hand_computed_shares() {
        // 1024 - 1024/16; 960 - 60 + 64; 964 - 60 + 5*64/10; 936 - 58 + 64/7; 887 - 55; 832 - 52 + 64; 844 - 52 + 3*64/1, which
        // an echo without new data can bring about.
        let rounds = [(0, 10), (10, 10), (5, 10), (1, 7), (0, 100), (100, 100), (3, 1)];
        let (mut flow, mut dctcp) = (Flow::new(), dctcp(&Params::default()));
        let alphas: Vec<u32> = rounds
            .map(|(marked, delivered)| {
                round(&mut flow, &mut dctcp, marked, delivered);
                alpha(&dctcp)
            })
            .into();
        assert_eq!(alphas, [960, 964, 936, 887, 832, 844, 984]);
    }

    #[test]
    fn gain_is_power_of_two() {
        for (shift_g, expected) in
            [(0, [0, 512, 1024, 341]), (1, [512, 512, 768, 554]), (10, [1023, 0, 1, 0])]
        {
            let (mut flow, mut dctcp) = (Flow::new(), dctcp(&Params { shift_g, ..Params::default() }));
            let alphas = [(0, 10), (5, 10), (10, 10), (1, 3)].map(|(marked, delivered)| {
                round(&mut flow, &mut dctcp, marked, delivered);
                alpha(&dctcp)
            });
            assert_eq!(alphas, expected, "{shift_g}");
        }
    }

    #[test]
    fn alpha_below_sixteenth_decays_to_zero() {
        let (mut flow, mut dctcp) = (Flow::new(), dctcp(&Params { alpha_on_init: 18, ..Params::default() }));
        let alphas = [0; 5].map(|marked| {
            round(&mut flow, &mut dctcp, marked, 5);
            alpha(&dctcp)
        });
        assert_eq!(alphas, [17, 16, 15, 0, 0]);
    }

    #[test]
    fn round_ends_when_window_is_acked() {
        let (mut flow, mut dctcp) = (Flow::new(), dctcp(&Params { alpha_on_init: 0, ..Params::default() }));
        // The first ACK ends the round of the handshake; ten segments are out.
        report(&flow, &mut dctcp, 0, 10);
        for _ in 0..9 {
            flow.ack(1);
            report(&flow, &mut dctcp, 1, 20);
            assert_eq!(alpha(&dctcp), 0);
        }
        flow.ack(1);
        report(&flow, &mut dctcp, 1, 20);
        assert_eq!(alpha(&dctcp), 64, "all ten of ten were marked");
        report(&flow, &mut dctcp, 1, 20);
        assert_eq!(alpha(&dctcp), 64);
    }

    #[test]
    fn mark_cuts_half_alpha_loss_half() {
        for (alpha, expected) in [(0, 100), (1, 100), (21, 99), (512, 75), (1024, 50)] {
            let mut flow = Flow::new();
            let mut dctcp = settled(&mut flow, 100, alpha);
            enter(&mut flow, &mut dctcp, CaState::Cwr, true, true);
            assert_eq!(dctcp.limits().ssthresh, expected, "{alpha}");
            // A loss in the same window.
            enter(&mut flow, &mut dctcp, CaState::Recovery, false, false);
            assert_eq!(dctcp.limits().ssthresh, 50, "{alpha}");
        }
        for to in [CaState::Recovery, CaState::Loss] {
            let mut flow = Flow::new();
            let mut dctcp = settled(&mut flow, 100, 1);
            enter(&mut flow, &mut dctcp, to, true, false);
            assert_eq!(dctcp.limits().ssthresh, 50, "{to:?}");
        }
    }

    #[test]
    fn second_timeout_reduces_nothing_more() {
        let mut flow = Flow::new();
        let mut dctcp = settled(&mut flow, 100, 512);
        enter(&mut flow, &mut dctcp, CaState::Loss, true, false);
        enter(&mut flow, &mut dctcp, CaState::Loss, false, false);
        assert_eq!(dctcp.limits().ssthresh, 50);
    }

    #[test]
    fn undo_restores_unless_marks_prove_congestion() {
        for (echoed, cwnd) in [(false, 100), (true, 50)] {
            let mut flow = Flow::new();
            let mut dctcp = settled(&mut flow, 100, 512);
            enter(&mut flow, &mut dctcp, CaState::Recovery, true, false);
            dctcp.on_ce(&CeMarks { echoed, ..CeMarks::default() });
            dctcp.on_undo(&Undo { connection: flow.connection });
            assert_eq!(dctcp.limits().ssthresh, cwnd);
        }
    }

    #[test]
    fn window_never_falls_below_two() {
        for cwnd in 1..8 {
            let mut flow = Flow::new();
            let mut dctcp = settled(&mut flow, cwnd, 1024);
            enter(&mut flow, &mut dctcp, CaState::Cwr, true, true);
            assert_eq!(dctcp.limits().ssthresh, (cwnd - cwnd / 2).max(2));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Alpha is the average of `(1 - g) alpha + g F` to a rounding; all marked raises it, none lowers it, and it stays a share.
        #[test]
        fn alpha_is_weighted_average_of_marks(
            shift_g in 0u32..=10,
            start in 0u32..=1024,
            rounds in prop::collection::vec((0u32..=1000, 1u32..=1000), 1..40),
        ) {
            let mut flow = Flow::new();
            let mut dctcp = dctcp(&Params { shift_g, alpha_on_init: start, ..Params::default() });
            for (marked, delivered) in rounds {
                let marked = marked.min(delivered);
                let before = alpha(&dctcp);
                round(&mut flow, &mut dctcp, marked, delivered);
                let (now, g) = (alpha(&dctcp), 1.0 / f64::from(1 << shift_g));
                let exact = (1.0 - g) * f64::from(before) + g * 1024.0 * f64::from(marked) / f64::from(delivered);
                prop_assert!(now <= 1024);
                // Below 1/g what is left decays at once.
                let slack = if before >> shift_g == 0 { f64::from(before) + 1.0 } else { 1.0 };
                prop_assert!((f64::from(now) - exact).abs() <= slack, "{before} to {now}, exactly {exact}");
                if marked == 0 {
                    prop_assert!(now < before || before == 0);
                }
                if marked == delivered && before >> shift_g != 0 {
                    prop_assert!(now >= before);
                }
            }
        }

        /// Between half and all of the window is left after a mark, more marks leave less, and never less than a loss does.
        #[test]
        fn marks_take_up_to_half(cwnd in 2u32..1_000_000, alpha in 0u32..=1024, less in 0u32..=1024) {
            let left = |alpha| {
                let mut flow = Flow::new();
                let mut dctcp = settled(&mut flow, cwnd, alpha);
                enter(&mut flow, &mut dctcp, CaState::Cwr, true, true);
                dctcp.limits().ssthresh
            };
            prop_assert!(left(alpha) >= (cwnd / 2).max(2) && left(alpha) <= cwnd);
            prop_assert!(left(alpha) <= left(alpha.min(less)));
            prop_assert_eq!(left(0), cwnd);
        }
    }
}
