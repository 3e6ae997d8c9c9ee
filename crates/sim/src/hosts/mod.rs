//! Hosts that take time, as Linux's do (`[hosts] model = "linux"`): what arrives waits until the host handles it, and timers fire
//! late. Ideal hosts have none of this. docs/explanation/hosts.md has the sources and the measurements.
//!
//! * `arrivals.rs`: packets that arrive wait for an interrupt, and are handled together;
//! * `latency.rs`: how long a host takes to begin, as measured.

mod arrivals;
mod latency;

use std::num::NonZeroU16;

use fullpipe_cc::Config;
use fullpipe_scenario::spec::{Randomness, Spec, Workload};
use fullpipe_units::Time;

pub(crate) use arrivals::Arrivals;
pub(crate) use latency::Latency;
use latency::TIMER;

/// The two hosts, at the ends of the path.
#[derive(Debug)]
pub(crate) struct Hosts {
    pub(crate) senders: Arrivals,
    pub(crate) receivers: Arrivals,
    /// When one of the two last handled something: a host that has slept for longer takes longer to begin.
    pub(crate) latest: Option<Time>,
}

impl Hosts {
    /// The hosts of a run; none if they are ideal.
    pub(crate) fn new(spec: &Spec, seed: u64) -> Option<Box<Hosts>> {
        if spec.hosts.model.is_ideal() {
            return None;
        }
        let host = |index| Arrivals::new(Randomness::Host(index).seed(seed));
        Some(Box::new(Hosts { senders: host(0), receivers: host(1), latest: None }))
    }
}

/// Segments of a full piece (`sk_buff`) of what a flow has written, whose rest does not wait for a larger window; `None` for ideal
/// hosts. What is written bit by bit waits in other pieces, whose ends make no difference here.
pub(crate) fn full_piece(spec: &Spec, workload: &Workload) -> Option<NonZeroU16> {
    let whole = matches!(workload, Workload::Bulk | Workload::Finite { .. });
    let segments = (Config::GSO_MAX / spec.mss()).clamp(1, spec.hosts.gso_max_segs.into());
    NonZeroU16::new(segments as u16).filter(|_| whole && !spec.hosts.model.is_ideal())
}

/// What makes the timers of a flow late: that for compressed ACKs, and that of pacing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Late {
    pub(crate) ack_timer: Latency,
    pub(crate) pacing_timer: Latency,
}

/// What makes the timers of a flow late; nothing if hosts are ideal.
pub(crate) fn late(spec: &Spec, flow: usize, seed: u64) -> Option<Late> {
    (!spec.hosts.model.is_ideal()).then(|| Late {
        ack_timer: Latency::ack_timer(Randomness::AckTimer(flow).seed(seed)),
        pacing_timer: Latency::new(&TIMER, Randomness::Timer(flow).seed(seed)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::{Format, resolve};

    fn piece(hosts: &str, flow: &str) -> Option<u16> {
        let path = "[path]\nrate = \"10 Mbit/s\"\nrtt = \"10 ms\"";
        let text = format!("{path}\n[hosts]\n{hosts}\n[[flows]]\ncontroller = \"reno\"\n{flow}");
        let spec = resolve(&text, Format::Toml, None).unwrap();
        full_piece(&spec, &spec.flows[0].workload).map(NonZeroU16::get)
    }

    #[test]
    fn linux_hosts_buffer_64_kb_pieces() {
        assert_eq!(piece("", ""), None);
        assert_eq!(piece("model = \"linux\"", ""), Some(45));
        assert_eq!(piece("model = \"linux\"\nmtu = 9000", "size = \"9 MB\""), Some(7));
        assert_eq!(piece("model = \"linux\"\ngso_max_segs = 1", ""), Some(1));
        assert_eq!(piece("model = \"linux\"", "requests = { size = \"64 KB\" }"), None);
    }
}
