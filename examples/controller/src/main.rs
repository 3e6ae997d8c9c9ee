//! A controller of your own beside BBRv1: AIMD that adds `gain` segments a round trip, run step by step in the simulator.

use fullpipe_cc::*;
use fullpipe_scenario::{Format, resolve};
use fullpipe_sim::Simulation;
use fullpipe_units::{Rate, Time};

struct Aimd {
    gain: f64,
    cwnd: f64,
    threshold: f64,
    /// Sizes bursts; a flow that is not paced sends as soon as the window allows.
    rate: Rate,
    mss: u32,
}

impl Controller for Aimd {
    fn on_state(&mut self, change: &StateChange) {
        if change.reduce {
            self.threshold = (self.cwnd / 2.0).max(2.0);
            self.cwnd = if change.to == CaState::Loss { 1.0 } else { self.threshold };
        }
    }
    fn on_ack(&mut self, ack: &Ack) {
        let Connection { srtt, state, .. } = ack.connection;
        if ack.may_raise_cwnd && ack.cwnd_limited && state <= CaState::Disorder || state == CaState::Loss {
            let step = if self.cwnd < self.threshold { 1.0 } else { self.gain / self.cwnd };
            self.cwnd += step * ack.newly_acked as f64;
        }
        let bits = 1.2 * self.cwnd * (self.mss * 8) as f64;
        self.rate = Rate::from_bits_per_sec((bits * 1e9 / srtt.as_nanos().max(1) as f64) as u64);
    }
    fn limits(&self) -> Limits {
        Limits {
            cwnd: self.cwnd as u32,
            ssthresh: self.threshold.min(f64::from(Limits::INFINITE)) as u32,
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
    fn on_mss(&mut self, mss: u32) {
        self.mss = mss;
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

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let document = r#"
        name = "my controller beside BBRv1"
        duration = "10 s"
        path = { rate = "50 Mbit/s", rtt = "20 ms", buffer = "2 bdp" }
        flows = [{ controller = "own:aimd" }, { controller = "bbr1" }]
    "#;
    let mut simulation = Simulation::new(&resolve(document, Format::Toml, None)?, 1)?;
    let make = |config: &Config, _: &Connection| -> Box<dyn Controller + Send> {
        let (cwnd, mss) = (f64::from(config.initial_cwnd), config.mss);
        Box::new(Aimd { gain: 4.0, cwnd, threshold: f64::INFINITY, rate: Rate::MAX, mss })
    };
    simulation.controller_from(0, false, Box::new(make))?;
    println!("{:>4}  {:<10} {:>5} {:>8} {:>10}", "s", "controller", "cwnd", "RTT, ms", "Mbit/s");
    let mut before = [0; 2];
    for second in 1..=10 {
        simulation.advance(Time::from_micros(second * 1_000_000))?;
        for (index, before) in before.iter_mut().enumerate() {
            let flow = simulation.flow(index);
            let sample = flow.sample().expect("it is connected");
            let mbit = (flow.delivered_bytes() - *before) as f64 * 8e-6;
            *before = flow.delivered_bytes();
            let rtt = sample.srtt_ns.unwrap_or(0) as f64 / 1e6;
            println!("{second:>4}  {:<10} {:>5} {rtt:>8.1} {mbit:>10.1}", flow.controller(), sample.cwnd);
        }
    }
    let run = simulation.finish();
    println!("dropped at the bottleneck: {} packets", run.links[0].totals.dropped_packets);
    Ok(())
}
