//! Hosts that take time, as Linux's do (`[hosts] model = "linux"`): what arrives waits until the host handles it, and timers fire
//! late. Ideal hosts have none of this. docs/hosts.md has the sources and the measurements.
//!
//! * `arrivals.rs`: packets that arrive wait for an interrupt, and are handled together;
//! * `latency.rs`: how long a host takes to begin, as measured.

mod arrivals;
mod latency;

use fullpipe_scenario::spec::{Randomness, Spec};

pub(crate) use arrivals::Arrivals;
pub(crate) use latency::{Latency, TIMER};

/// The two hosts, at the ends of the path.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) senders: Arrivals,
    pub(crate) receivers: Arrivals,
}

impl Hosts {
    /// The hosts of a run; none if they are ideal.
    pub(crate) fn new(spec: &Spec, seed: u64) -> Option<Box<Hosts>> {
        if spec.hosts.model.is_ideal() {
            return None;
        }
        let host = |index| Arrivals::new(Randomness::Host(index).seed(seed));
        Some(Box::new(Hosts { senders: host(0), receivers: host(1) }))
    }
}

/// What makes the pacing timers of a flow late; nothing if hosts are ideal.
pub(crate) fn pacing_timer(spec: &Spec, flow: usize, seed: u64) -> Option<Latency> {
    let late = !spec.hosts.model.is_ideal();
    late.then(|| Latency::new(&TIMER, Randomness::Timer(flow).seed(seed)))
}
