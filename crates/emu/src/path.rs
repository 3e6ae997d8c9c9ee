//! A path between two hosts: what it is made of. `carry.rs` carries it.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use fullpipe_path::config::ElementConfig;
use fullpipe_scenario::spec::{FlowSpec, HostSpec, Randomness, Spec};
use fullpipe_units::{Duration, Rate, Time};

use crate::EmuError;
use crate::meter::Metering;
use crate::path_clock::Pause;
use crate::qdisc::LinuxQueue;
use crate::watch::Watcher;

/// Address of the near host, where the forward direction begins.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
/// Address of the far host.
pub const FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
/// Port of flow 0 of a scenario, at both ends; flow `i` uses `FIRST_PORT + i`.
pub const FIRST_PORT: u16 = 10_000;

/// A path, and how it is to be carried.
#[derive(Clone, Debug)]
pub struct Path {
    /// From the near host to the far host.
    pub forward: OneWay,
    /// The way back.
    pub reverse: OneWay,
    /// Which packets belong to which class.
    pub classes: Classes,
    /// The largest IP packet.
    pub mtu_bytes: u32,
    /// The ferry stops after this time even if the near host is not done.
    pub duration: Duration,
    /// How often the queues are sampled; `None`: never.
    pub sample_interval: Option<Duration>,
    /// What the path's time does while the ferry is stalled.
    pub pause: Pause,
    /// A queue of Linux before the forward direction, which the packets pass first.
    pub queue: Option<LinuxQueue>,
    /// The most segments that the near host's TCP hands over as one.
    pub gso_max_segs: u16,
    /// Receives the packets at the near host's device.
    pub watcher: Option<Watcher>,
    /// Receives what a meter needs of each packet.
    pub(crate) metering: Option<Metering>,
    /// Is told when nothing is on the path.
    pub(crate) quiet: Option<Quiet>,
}

/// When nothing was on the path, in either direction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Quiet(Arc<AtomicU64>);

impl Quiet {
    /// Since this time, by the machine's clock, nothing has entered, and nothing is on the path now; `None`: something is.
    pub(crate) fn note(&self, since: Option<Time>) {
        self.0.store(since.map_or(0, Time::as_nanos), Ordering::Release);
    }

    /// A time after which nothing had entered an empty path; `None` if something is there.
    pub(crate) fn last(&self) -> Option<Time> {
        Some(self.0.load(Ordering::Acquire))
            .filter(|ns| *ns > 0)
            .map(|ns| Time::ZERO + Duration::from_nanos(ns))
    }
}

/// One direction of a path.
#[derive(Clone, Debug)]
pub struct OneWay {
    /// What it is made of, in order.
    pub elements: Vec<ElementConfig>,
    /// How many elements before them Linux itself takes the place of.
    pub before: usize,
    /// Extra delay of each class; none for classes behind the last.
    pub class_delays: Vec<Duration>,
    /// Seed of its random elements.
    pub seed: u64,
    /// TCP segments of one flow that arrive within this time of the first are merged, as a network card would. Zero
    /// merges only those that leave together.
    pub gro: Duration,
}

/// Which packets belong to which class of the path.
#[derive(Clone, Copy, Debug, Default)]
pub enum Classes {
    /// All are in class 0.
    #[default]
    One,
    /// Those of a scenario's flows, by their port.
    Ports {
        /// Port of flow 0 on both ends; flow `i` uses `first + i`.
        first: u16,
        /// Number of flows. Packets of other ports are in class 0.
        flows: u32,
    },
    /// Those of a scenario's programs, by the ports of their servers. Within a program, the packets of one connection share a
    /// class, so that fair queueing keeps connections apart as a router would. See [`Classes::delays`].
    Programs {
        /// Port of program 0; program `i` uses `first + i`.
        first: u16,
        /// Number of programs. Packets of other ports count as those of program 0.
        flows: u32,
    },
    /// Those of one flow share a class, which is a hash of their addresses, protocol and ports.
    Flows,
}

impl Classes {
    /// Classes of one program. More than FQ-CoDel has queues (1024), so that they seldom add a collision to its own.
    pub(crate) const OF_A_PROGRAM: u32 = 4096;

    /// The extra delay of each class, from those of each flow: class `c` of programs is one of program `c % flows`.
    fn delays(self, of_flows: Vec<Duration>) -> Vec<Duration> {
        match self {
            Classes::Programs { .. } => of_flows.repeat(Classes::OF_A_PROGRAM as usize),
            _ => of_flows,
        }
    }
}

impl Path {
    /// A path for packets of up to 1500 bytes, without classes and samples, that is carried until the near host is done.
    pub fn new(forward: OneWay, reverse: OneWay) -> Path {
        Path {
            forward,
            reverse,
            classes: Classes::default(),
            mtu_bytes: 1500,
            duration: Duration::MAX,
            sample_interval: None,
            pause: Pause::Stops,
            queue: None,
            gso_max_segs: HostSpec::GSO_MAX_SEGS,
            watcher: None,
            metering: None,
            quiet: None,
        }
    }

    /// The same path, with a real router in place of the one that begins its forward direction, if one does.
    ///
    /// # Errors
    /// When something stands before the router.
    pub fn with_router(mut self) -> Result<Path, EmuError> {
        self.queue = LinuxQueue::of_router(&self.forward.elements)?;
        if self.queue.is_some() {
            self.forward.give_to_linux();
        }
        Ok(self)
    }

    /// The same path, with Linux's own queue instead of the first link, or router, of the forward direction.
    ///
    /// # Errors
    /// When Linux has no such queue.
    pub fn with_linux_queue(mut self) -> Result<Path, EmuError> {
        self.queue = Some(LinuxQueue::of(&self.forward.elements, self.mtu_bytes)?);
        self.forward.give_to_linux();
        Ok(self)
    }

    /// The highest rate at which packets can leave the near host's side.
    pub(crate) fn forward_rate(&self) -> Rate {
        let emulated = fullpipe_path::highest_rate(&self.forward.elements);
        self.queue.as_ref().map_or(emulated, |queue| queue.rate().min(emulated))
    }

    /// The path of a scenario. `seed` drives its random elements.
    pub fn of(spec: &Spec, seed: u64) -> Path {
        let (first, flows) = (FIRST_PORT, spec.flows.len() as u32);
        let classes = match spec.program_flow() {
            Some(_) => Classes::Programs { first, flows },
            None => Classes::Ports { first, flows },
        };
        let delays =
            |delay: fn(&FlowSpec) -> Duration| classes.delays(spec.flows.iter().map(delay).collect());
        let forward = OneWay {
            elements: spec.forward.clone(),
            before: 0,
            class_delays: delays(|flow| flow.extra_forward_ns),
            seed: Randomness::Forward.seed(seed),
            gro: spec.hosts.gro_ns,
        };
        let reverse = OneWay {
            elements: spec.reverse.clone(),
            before: 0,
            class_delays: delays(|flow| flow.extra_reverse_ns),
            seed: Randomness::Reverse.seed(seed),
            gro: Duration::ZERO,
        };
        Path {
            classes,
            mtu_bytes: spec.mtu_bytes,
            duration: spec.duration_ns,
            sample_interval: spec.sample_interval_ns,
            gso_max_segs: spec.hosts.gso_max_segs,
            ..Path::new(forward, reverse)
        }
    }

    /// Refuses what no device can carry.
    ///
    /// # Errors
    /// When the MTU is not one that an IPv4 device takes.
    pub fn check(&self) -> Result<(), EmuError> {
        if (68..=65_535).contains(&self.mtu_bytes) {
            return Ok(());
        }
        Err(EmuError::Unsupported {
            field: "mtu_bytes".to_owned(),
            reason: format!("an IPv4 device takes 68 to 65535, not {}", self.mtu_bytes),
            fix: "choose an MTU in that range".to_owned(),
        })
    }
}

impl OneWay {
    /// A direction without classes that merges only what leaves together.
    pub fn new(elements: Vec<ElementConfig>, seed: u64) -> OneWay {
        OneWay { elements, before: 0, class_delays: Vec::new(), seed, gro: Duration::ZERO }
    }

    /// The first element is not emulated. The others keep their random streams, which are those of the simulator.
    fn give_to_linux(&mut self) {
        self.elements.remove(0);
        self.before += 1;
    }
}
