//! A queue discipline of your own in the simulator: the newest packet leaves first.

use fullpipe_path::{Discipline, Dropped, MakeDiscipline, Room, Tally, Waiting};
use fullpipe_scenario::{Format, resolve};
use fullpipe_sim::Simulation;
use fullpipe_units::{Bytes, Time};

/// Last in, first out; what does not fit is dropped.
#[derive(Debug)]
struct Stack {
    limit: Room,
    waiting: Vec<Waiting>,
}

impl Discipline for Stack {
    fn enqueue(&mut self, _now: Time, waiting: Waiting, dropped: &mut Dropped) {
        if self.limit.takes(self.backlog(), &waiting) {
            self.waiting.push(waiting);
        } else {
            dropped.overflow(waiting);
        }
    }

    fn dequeue(&mut self, _now: Time, _dropped: &mut Dropped) -> Option<Waiting> {
        self.waiting.pop()
    }

    fn backlog(&self) -> Tally {
        let bytes = self.waiting.iter().map(|waiting| waiting.bytes() as u64).sum();
        Tally { packets: self.waiting.len() as u64, bytes: Bytes::new(bytes) }
    }

    fn set_limit(&mut self, bytes: Bytes) {
        self.limit.bytes = bytes;
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scenario = r#"
        name = "the newest first"
        duration = "10 s"
        path = { rate = "20 Mbit/s", rtt = "40 ms" }
        flows = [{ controller = "cubic" }]
    "#;
    let spec = resolve(scenario, Format::Toml, None)?;
    let make: MakeDiscipline = Box::new(|setup| Box::new(Stack { limit: setup.limit, waiting: Vec::new() }));
    let mut run = Simulation::with_disciplines(&spec, 1, [("bottleneck".to_owned(), make)])?;
    run.advance(Time::NEVER)?;
    let run = run.finish();
    let mbit = run.flows[0].totals.delivered_bytes as f64 * 8.0 / 10.0 / 1e6;
    println!("cubic behind a stack: {mbit:.1} Mbit/s, {} retransmissions", run.flows[0].totals.retransmits);
    Ok(())
}
