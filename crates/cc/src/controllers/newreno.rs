//! NewReno by QUIC's rules: doubles each round until loss; then grows one packet a window, and halves once a recovery period.
//!
//! Specification: RFC 9002 section 7 and appendix B. [`byte_window`](crate::controllers::byte_window) has the window, its recovery periods
//! and slow start; here is what RFC 9002 adds in congestion avoidance and takes away on loss. Deviations:
//! docs/reference/deviations.md#newreno.

use crate::controller::{Config, Connection};
use crate::controllers::byte_window::{Acknowledged, ByteWindow, Bytewise, Cause, CoreParams, Increase};
use crate::parameter::{ControllerInfo, parameters};

parameters! {
    /// NewReno's parameters.
    pub struct Params from "RFC 9002 appendix B.1";
    /// RFC 9002: `kLossReductionFactor`, in 1/1,000.
    loss_reduction: u32 = fraction((1000, 1), 500, 100..=990, ""),
        "the window after a loss, as a share of that before it";
    hystartpp: bool = switch(false) from "RFC 9406", "slow start is HyStart++";
    ..core: CoreParams;
}

impl Params {
    /// Whether the host has to pace.
    pub const fn is_paced(&self) -> bool {
        self.core.pace
    }
}

pub(crate) const INFO: ControllerInfo = ControllerInfo {
    name: "newreno",
    summary: "Reno by QUIC's rules: in bytes, paced, and with a recovery of one round trip",
    source: "RFC 9002 sections 7.2 to 7.8 and appendix B; RFC 9406",
    linux_name: None,
    answers_delay: false,
    parameters: Params::PARAMETERS,
};

/// The increase algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewRenoIncrease {
    /// Bytes acknowledged towards the next increase.
    acked: u64,
    loss_reduction: u64,
    hystart: bool,
}

impl Increase for NewRenoIncrease {
    #[inline]
    fn grow(&mut self, window: &mut ByteWindow, acked: &Acknowledged) {
        // RFC 9002 7.3.3: at most one packet for each window that is acknowledged, counted as RFC 3465 2.1 does.
        self.acked += acked.bytes;
        if self.acked >= window.cwnd {
            let windows = self.acked / window.cwnd;
            self.acked -= windows * window.cwnd;
            window.cwnd += windows * window.mss;
        }
    }

    /// Only CUBIC's curve runs with time.
    fn pause(&mut self, _: u64) {}

    fn reduce(&mut self, window: &mut ByteWindow, _: Cause, _: u64) {
        // RFC 9002 B.6: OnCongestionEvent
        window.ssthresh = window.cwnd * self.loss_reduction / 1_000;
        window.cwnd = window.ssthresh.max(window.minimum());
        self.acked = 0;
    }

    fn collapse(&mut self, window: &mut ByteWindow, flight: u64, again: bool) {
        if !again {
            self.reduce(window, Cause::Loss, flight);
        }
        // RFC 9002 7.6.2: persistent congestion reduces the window to the minimum.
        window.cwnd = window.minimum();
        self.acked = 0;
    }

    /// The threshold says everything.
    fn leave_slow_start(&mut self, _: &ByteWindow) {}

    fn has_hystart(&self) -> bool {
        self.hystart
    }
}

/// A NewReno connection.
pub type NewReno = Bytewise<NewRenoIncrease>;

impl NewReno {
    /// A connection whose handshake is done.
    pub fn new(params: &Params, config: &Config, connection: &Connection) -> NewReno {
        let increase = NewRenoIncrease {
            acked: 0,
            loss_reduction: params.loss_reduction as u64,
            hystart: params.hystartpp,
        };
        Bytewise::with_increase(increase, &params.core, config, connection)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::controller::{CaState, Controller};
    use crate::testing::{CONFIG, Flow};
    use std::vec::Vec;

    /// RFC 9002 7.3.1 to 7.3.3 in a table: the window at the end of each round, in segments, with losses in rounds 5 and 10.
    #[test]
    fn window_doubles_halves_then_grows_linearly() {
        let mut flow = Flow::new();
        let mut newreno = NewReno::new(&Params::default(), &CONFIG, &flow.connection);
        let windows: Vec<u32> = (1..=14)
            .map(|round| {
                if round == 5 || round == 10 {
                    flow.change(&mut newreno, CaState::Recovery, true);
                    flow.send(&mut newreno, 1, true);
                    flow.change(&mut newreno, CaState::Open, false);
                } else {
                    let cwnd = newreno.limits().cwnd;
                    newreno.on_ack(&flow.ack(cwnd));
                }
                newreno.limits().cwnd
            })
            .collect();
        assert_eq!(windows, [20, 40, 80, 160, 80, 81, 82, 83, 84, 42, 43, 44, 45, 46]);
    }

    /// RFC 9002 7.3.3: at most one packet for each window acknowledged, however ACKs and packets are cut.
    #[test]
    fn acked_window_adds_one_packet() {
        let grown = |sizes: &[u64]| {
            let increase = NewRenoIncrease { acked: 0, loss_reduction: 500, hystart: false };
            let (mut increase, mut window) =
                (increase, ByteWindow { cwnd: 12_000, ssthresh: 12_000, mss: 1_200 });
            let (mut left, mut windows) = (36_000, Vec::new());
            for &bytes in sizes.iter().cycle() {
                if bytes > left {
                    break;
                }
                left -= bytes;
                increase.grow(&mut window, &Acknowledged { bytes, now_us: 0, srtt_us: 100_000 });
                if windows.last() != Some(&window.cwnd) {
                    windows.push(window.cwnd);
                }
            }
            windows
        };
        // 12,000 bytes for the first, and 13,200 for the second; 14,400 would be the third's.
        assert_eq!(grown(&[1_200]), [12_000, 13_200, 14_400]);
        assert_eq!(grown(&[40, 1_200, 733, 2_400]), [12_000, 13_200, 14_400]);
        assert_eq!(grown(&[1]), [12_000, 13_200, 14_400]);
        assert_eq!(grown(&[12_000]), [13_200, 14_400]);
    }

    /// RFC 9002 7.2: 2 * max_datagram_size is the least.
    #[test]
    fn losses_reduce_to_two_packet_minimum() {
        let mut flow = Flow::new();
        let mut newreno = NewReno::new(&Params::default(), &CONFIG, &flow.connection);
        let windows = [5, 2, 2, 2].map(|_| {
            flow.change(&mut newreno, CaState::Recovery, true);
            flow.change(&mut newreno, CaState::Open, false);
            (newreno.window().cwnd, newreno.window().ssthresh)
        });
        // B.6 bounds the window and not the threshold.
        assert_eq!(windows, [(7_240, 7_240), (3_620, 3_620), (2_896, 1_810), (2_896, 1_448)]);
    }
}
