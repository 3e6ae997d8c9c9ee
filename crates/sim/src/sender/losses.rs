//! Losses, from their detection to the report to the controller.

use fullpipe_cc::delivery::TxState;
use fullpipe_cc::{Controller, Lost};
use fullpipe_units::Time;

use super::scoreboard::Scoreboard;
use super::{Sender, rack};
use crate::plug::Held;

impl Sender {
    /// Detects losses, counts them and reports them to the controller. Returns whether to look again, and when.
    pub(super) fn detect_losses(&mut self, now: Time) -> Option<u32> {
        let at = rack::Moment {
            now_us: now.as_micros() as u32,
            state: self.recovery.state,
            min_rtt_us: self.min_rtt.micros(),
            srtt_us: self.rtt.srtt_x8() >> 3,
        };
        let mut runs = LossRuns::new(&mut self.controller, self.lost, (now, self.sampler.delivered()));
        let detection = self.rack.detect(&mut self.board, at, |board, seq| runs.add(board, seq));
        let (lost, lowest) = runs.finish();
        self.lost = lost;
        self.output.retransmit_from = self.output.retransmit_from.min(lowest);
        detection.again_after_us
    }
}

/// Groups newly lost segments that left together into runs for the controller.
pub(super) struct LossRuns<'a> {
    controller: &'a mut Held,
    lost: u64,
    /// The time, and what was delivered by then.
    at: (Time, u64),
    run: Option<(Lost, TxState)>,
    previous: u64,
    lowest: u64,
}

impl LossRuns<'_> {
    pub(super) fn new(controller: &mut Held, lost: u64, at: (Time, u64)) -> LossRuns<'_> {
        LossRuns { controller, lost, at, run: None, previous: u64::MAX, lowest: u64::MAX }
    }

    pub(super) fn add(&mut self, board: &Scoreboard, seq: u64) {
        let tx = *board.tx(seq);
        self.lost += 1;
        let adjacent = self.previous != u64::MAX && seq == self.previous + 1;
        self.previous = seq;
        self.lowest = self.lowest.min(seq);
        if let Some((run, left)) = &mut self.run
            && adjacent
            && *left == tx
        {
            run.units += 1;
            run.lost = self.lost;
            return;
        }
        self.flush();
        let (now, delivered) = self.at;
        let run = Lost {
            now,
            delivered,
            units: 1,
            new_range: !adjacent,
            tx_in_flight: tx.in_flight(),
            // The segment keeps the low 32 bits of the counts.
            tx_delivered: delivered - (delivered as u32).wrapping_sub(tx.delivered) as u64,
            tx_lost: self.lost - (self.lost as u32).wrapping_sub(tx.lost) as u64,
            lost: self.lost,
            app_limited: tx.app_limited(),
        };
        self.run = Some((run, tx));
    }

    fn flush(&mut self) {
        if let Some((run, _)) = self.run.take() {
            self.controller.on_lost(&run);
        }
    }

    /// The count of lost segments, and the lowest just lost.
    pub(super) fn finish(mut self) -> (u64, u64) {
        self.flush();
        (self.lost, self.lowest)
    }
}
