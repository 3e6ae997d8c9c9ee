//! A controller of your own in the Linux kernel: AIMD that reduces its window by a quarter, paced at 1.2 windows a round trip.
//!
//! Neither the standard library nor floating point exists there, no loop may be without a bound, and the state takes at most 768 bytes.
#![no_std]
#![feature(asm_experimental_arch)] // For the panic handler; build.py lets the stable compiler take it.

use fullpipe_cc::*;
use fullpipe_units::Rate;

struct Aimd {
    cwnd: u32,
    threshold: u32,
    /// Segments acknowledged since the window last grew.
    acked: u32,
    mss: u32,
    rate: Rate,
}

impl Aimd {
    fn new(_: &(), config: &Config, connection: &Connection) -> Aimd {
        let (cwnd, mss) = (config.initial_cwnd, config.mss);
        let mut made = Aimd { cwnd, threshold: u32::MAX, acked: 0, mss, rate: Rate::MAX };
        made.pace(connection);
        made
    }

    /// 1.2 windows a round trip.
    fn pace(&mut self, connection: &Connection) {
        let bits = u64::from(self.cwnd) * u64::from(self.mss) * 8 * 6 / 5;
        let srtt_us = connection.srtt.as_micros().max(1);
        self.rate = Rate::from_bits_per_sec(bits * 1_000_000 / srtt_us);
    }
}

impl Controller for Aimd {
    fn on_ack(&mut self, ack: &Ack) {
        if ack.may_raise_cwnd && ack.cwnd_limited {
            self.acked += ack.newly_acked;
            // A segment for each one acknowledged in slow start, for each window afterwards.
            let each = if self.cwnd < self.threshold { 1 } else { self.cwnd };
            if self.acked >= each {
                self.cwnd = self.cwnd.saturating_add(self.acked / each);
                self.acked %= each;
            }
        }
        self.pace(&ack.connection);
    }

    fn on_state(&mut self, change: &StateChange) {
        if change.reduce {
            self.threshold = (self.cwnd - self.cwnd / 4).max(2);
            self.cwnd = if change.to == CaState::Loss { 2 } else { self.threshold };
            self.acked = 0;
        }
    }

    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
    }

    fn limits(&self) -> Limits {
        Limits {
            cwnd: self.cwnd,
            ssthresh: self.threshold.min(Limits::INFINITE),
            pacing_rate: self.rate,
            min_burst: 2,
            mark_app_limited: false,
            check_app_limited: false,
        }
    }

    fn snapshot(&self) -> Snapshot {
        let slow_start = self.cwnd < self.threshold;
        let phase = if slow_start { Phase::SlowStart } else { Phase::CongestionAvoidance };
        Snapshot { phase, bandwidth: None, min_rtt: None }
    }

    fn on_transmit_start(&mut self, _: &TransmitStart) {}
    fn on_window_unused(&mut self, _: &WindowUnused) {}
    fn on_sent(&mut self, _: &Sent) {}
    fn on_rtt(&mut self, _: &RttSample) {}
    fn on_ce(&mut self, _: &CeMarks) {}
    fn on_undo(&mut self, _: &Undo) {}
    fn on_lost(&mut self, _: &Lost) {}
    fn on_tail_repair(&mut self, _: &TailRepair) {}
    fn on_discarded(&mut self, _: &Discarded) {}
}

fullpipe_bpf::program!(Aimd, (), Aimd::new);
