//! A path between two hosts: two threads, each in a network namespace of its own, and the ferry between them.
//!
//! The caller says what the hosts do, and may send what it likes with ordinary sockets: a socket belongs to the namespace
//! of the thread that opened it. This module sets the hosts up, starts them together and stops them. The calling thread
//! waits.
//!
//! ```no_run
//! # use fullpipe_emu::{EmuError, End, OneWay, Path, FAR};
//! # use std::net::UdpSocket;
//! # fn example(forward: OneWay, reverse: OneWay) -> Result<(), EmuError> {
//! let failed = |error| EmuError::system("send a datagram", error);
//! let near = |end: End<'_>| {
//!     let started = end.start()?;
//!     let socket = UdpSocket::bind("0.0.0.0:0").map_err(failed)?;
//!     socket.send_to(b"hello", (FAR, 4433)).map_err(failed)?;
//!     started.wait_until(started.clock.now() + fullpipe_units::Duration::from_millis(100));
//!     Ok(())
//! };
//! let far = |end: End<'_>| {
//!     let socket = UdpSocket::bind((FAR, 4433)).map_err(failed)?;
//!     end.start()?;
//!     socket.recv(&mut [0; 1500]).map_err(failed)
//! };
//! let path = Path::new(forward, reverse);
//! let carried = path.carry(near, far)?;
//! println!("{} bytes; half left less than {:?} ns late", carried.far, carried.ferried.lateness.lateness().p50_ns);
//! # Ok::<(), EmuError>(())
//! # }
//! ```

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver as Inbox, Sender as Outbox};
use std::thread;

use fullpipe_path::config::ElementConfig;
use fullpipe_record::{ProcessorTime, QueueSample};
use fullpipe_scenario::spec::{FlowSpec, HostSpec, Randomness, Spec};
use fullpipe_units::{Duration, Rate, Time};

use crate::EmuError;
use crate::clock::Clock;
use crate::ferry::{Ferry, FerryReport};
use crate::load::{Machine, TaskTime};
use crate::meter::Metering;
use crate::namespace::{ask_to_die_with_parent, become_capable, enter_new_network, wait_for};
use crate::path_clock::Standstill;
use crate::qdisc::LinuxQueue;
use crate::router::{Between, Router};
use crate::sys;
use crate::trust;
use crate::tun::{Address, Tun, limit_gso_segments, transmit_drops};
use crate::watch::Watcher;

/// Address of the near host, where the forward direction begins.
pub const NEAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
/// Address of the far host.
pub const FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
/// Port of flow 0 of a scenario, at both ends; flow `i` uses `FIRST_PORT + i`.
pub const FIRST_PORT: u16 = 10_000;

/// Time between the last preparation and the start of the run, so that every thread is ready.
const GET_READY: Duration = Duration::from_millis(5);
/// How often a waiting host checks whether it is to stop.
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// Up to this rate the hosts have real-time priority, too. Faster ones need so much time that, together with the
/// ferry, they would run into the kernel's limit for real-time work (95 %), which then stops the ferry for 50 ms.
const REALTIME_HOSTS_UP_TO: Rate = Rate::from_bits_per_sec(200_000_000);

/// A path, and how it is carried.
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
    pub standstill: Standstill,
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

/// The number of the flow, below `flows`, that packets of these ports belong to, source and destination. Our own flows have the
/// same port at both ends; a program has one at its server's.
pub(crate) fn flow_of_ports((source, destination): (u16, u16), first: u16, flows: u32) -> Option<u32> {
    let number = |port: u16| u32::from(port.wrapping_sub(first));
    [destination, source].map(number).into_iter().find(|flow| *flow < flows)
}

/// The results of a run.
#[derive(Debug)]
pub struct Carried<N, F> {
    /// The result of the near host.
    pub near: N,
    /// The result of the far host.
    pub far: F,
    /// Frames that the kernels of the near and of the far host dropped before the ferry saw them: losses that the path
    /// did not decide.
    pub dropped_frames: [u64; 2],
    /// What the ferry recorded.
    pub ferried: FerryReport,
    /// What the hosts got of the machine's processors.
    pub processor: ProcessorTime,
}

/// A host that is set up: the calling thread is in its namespace, and the path ends here.
#[derive(Debug)]
pub struct End<'a> {
    tun: Arc<Tun>,
    up: Outbox<Arc<Tun>>,
    go: Inbox<Clock>,
    over: &'a AtomicBool,
}

/// A host while packets are carried.
#[derive(Clone, Copy, Debug)]
pub struct Started<'a> {
    /// Starts at zero when the path begins to carry packets; the same at both ends and for the path.
    pub clock: Clock,
    over: &'a AtomicBool,
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
            standstill: Standstill::Stops,
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
    fn forward_rate(&self) -> Rate {
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

    /// Runs `near` and `far` on two hosts with this path between them, until `near` returns; `far` is then to stop.
    ///
    /// Call it in a process of its own that has only one thread: without root it enters a user namespace, which the
    /// kernel refuses to several threads. Everything belongs to the process, so however it ends, nothing remains.
    ///
    /// # Errors
    /// When the path cannot be set up ([`Path::check`], [`become_capable`], no TUN device, invalid numbers of an element), when
    /// the ferry fails, and when `near` or `far` returns an error.
    pub fn carry<N: Send, F: Send, E: From<EmuError> + Send>(
        &self,
        near: impl FnOnce(End<'_>) -> Result<N, E> + Send,
        far: impl FnOnce(End<'_>) -> Result<F, E> + Send,
    ) -> Result<Carried<N, F>, E> {
        self.carry_beside(near, far, || ()).map(|(carried, ())| carried)
    }

    /// The same, with `beside` on a thread of its own from before the first packet; it must end when the [`Watcher`] ends what
    /// it is told.
    ///
    /// # Errors
    /// As [`Path::carry`].
    pub fn carry_beside<N: Send, F: Send, B: Send, E: From<EmuError> + Send>(
        &self,
        near: impl FnOnce(End<'_>) -> Result<N, E> + Send,
        far: impl FnOnce(End<'_>) -> Result<F, E> + Send,
        beside: impl FnOnce() -> B + Send,
    ) -> Result<(Carried<N, F>, B), E> {
        self.check()?;
        become_capable()?;
        ask_to_die_with_parent();
        let (stop_ferry, done) = (event_fd()?, event_fd()?);
        let machine = Machine::now();
        let stage = Stage {
            path: self,
            near_over: AtomicBool::new(false),
            far_over: AtomicBool::new(false),
            stop_ferry,
            done,
        };
        let (near, far, ferried, beside) = thread::scope(|scope| {
            let beside = scope.spawn(beside);
            let end_beside = || {
                if let Some(watcher) = &self.watcher {
                    watcher.end();
                }
                beside.join()
            };
            let (near_up, near_ready) = mpsc::channel();
            let (far_up, far_ready) = mpsc::channel();
            let (ferry_up, ferry_ready) = mpsc::channel();
            let (near_go, near_start) = mpsc::channel();
            let (far_go, far_start) = mpsc::channel();
            let (ferry_go, ferry_start) = mpsc::channel();
            let stage = &stage;
            let near = scope.spawn(move || {
                let _signal = SignalOnDrop(&stage.done);
                stage.near_host((near_up, near_start), near)
            });
            let far = scope.spawn(move || stage.host(FAR, (far_up, far_start), &stage.far_over, far));
            // A thread that fails to prepare drops its end of the channel; joining it returns the error.
            let (Ok(near_tun), Ok(far_tun)) = (near_ready.recv(), far_ready.recv()) else {
                drop((near_go, far_go));
                return (near.join(), far.join(), Ok(Err(EmuError::Stopped("ferry"))), end_beside());
            };
            let ferry = scope.spawn(move || stage.ferry((near_tun, far_tun), ferry_up, ferry_start));
            if ferry_ready.recv().is_ok() {
                let clock = Clock::start_in(GET_READY);
                // A thread that has ended by now returns an error.
                let _ = (ferry_go.send(clock), far_go.send(clock), near_go.send(clock));
                wait_for(&stage.done).unwrap_or(());
            }
            drop((near_go, far_go, ferry_go));
            let near = near.join();
            stage.far_over.store(true, Ordering::Release);
            sys::signal_event(&stage.stop_ferry);
            (near, far.join(), ferry.join(), end_beside())
        });
        let beside = beside.map_err(|_| EmuError::Stopped("log"));
        let ferried = ferried.map_err(|_| EmuError::Stopped("ferry"))?;
        let (near, first) = near.map_err(|_| EmuError::Stopped("sending host"))??;
        let far = far.map_err(|_| EmuError::Stopped("receiving host"))??;
        let processor = machine.until_now([near.time, far.time]);
        let mut ferried = ferried?;
        if let (Some(queue), Some(end)) = (&self.queue, first) {
            ferried.links.insert(0, queue.record(end, ferried.carried));
        }
        let dropped_frames = [near.dropped, far.dropped];
        Ok((Carried { near: near.done, far: far.done, dropped_frames, ferried, processor }, beside?))
    }

    /// The RTT of the empty path for the class with the lowest.
    pub fn base_rtt(&self) -> Duration {
        trust::base_rtt(self)
    }

    /// Why a run over this path cannot be trusted, as the ferry recorded it; empty when it can.
    pub fn doubts(&self, ferried: &FerryReport) -> Vec<String> {
        trust::doubts(self, ferried)
    }

    /// The same for a run whose hosts got this much of the machine's processors.
    pub fn doubts_of_hosts(ferried: &FerryReport, processor: &ProcessorTime) -> Vec<String> {
        trust::starved(processor, ferried.carried)
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

impl<N, F> Carried<N, F> {
    /// Why a run over `path` cannot be trusted; empty when it can.
    pub fn doubts(&self, path: &Path) -> Vec<String> {
        let mut doubts: Vec<String> = ["sender", "receiver"]
            .iter()
            .zip(self.dropped_frames)
            .filter(|(_, drops)| *drops > 0)
            .map(|(host, drops)| {
                format!(
                    "the {host}'s kernel dropped {drops} frames because the emulator did not read them in time"
                )
            })
            .collect();
        doubts.extend(path.doubts(&self.ferried));
        doubts.extend(Path::doubts_of_hosts(&self.ferried, &self.processor));
        doubts
    }
}

impl<'a> End<'a> {
    /// To be called once everything else is prepared: waits until the other threads are ready as well.
    ///
    /// # Errors
    /// When the path failed before it began.
    pub fn start(self) -> Result<Started<'a>, EmuError> {
        let _ = self.up.send(self.tun);
        drop(self.up);
        let clock = self.go.recv().map_err(|_| EmuError::Stopped("preparation"))?;
        Ok(Started { clock, over: self.over })
    }
}

impl Started<'_> {
    /// Whether this host is to stop: the far one because the near one is done, the near one because the path has failed.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits until `time` or until this host is to stop. Packets on the path arrive only while the near host exists.
    pub fn wait_until(&self, time: Time) {
        while self.clock.now() < time && !self.is_over() {
            self.clock.sleep_until(time.min(self.clock.now() + LOOK_AROUND));
        }
    }
}

fn event_fd() -> Result<OwnedFd, EmuError> {
    sys::event_fd().map_err(|error| EmuError::system("create an eventfd", error))
}

/// What a host has done.
struct Lived<T> {
    done: T,
    /// Frames that its kernel dropped.
    dropped: u64,
    /// How long its thread ran and waited; `None` where the kernel does not count it.
    time: Option<TaskTime>,
}

/// What the threads of a run share.
struct Stage<'a> {
    path: &'a Path,
    /// The near host is to stop: the ferry failed.
    near_over: AtomicBool,
    /// The far host is to stop.
    far_over: AtomicBool,
    stop_ferry: OwnedFd,
    /// Some thread has ended.
    done: OwnedFd,
}

impl Stage<'_> {
    /// The life of the near host, behind a router if the path has one; returns what the router's queue counted as well.
    fn near_host<'a, T, E: From<EmuError>>(
        &'a self,
        (up, go): (Outbox<Arc<Tun>>, Inbox<Clock>),
        work: impl FnOnce(End<'a>) -> Result<T, E>,
    ) -> Result<(Lived<T>, Option<QueueSample>), E> {
        let over = &self.near_over;
        let Some(queue) = &self.path.queue else {
            return Ok((self.host(NEAR, (up, go), over, work)?, None));
        };
        let router = Router::create(
            queue,
            Between {
                near: NEAR,
                prefix: 32,
                far: FAR,
                mtu: self.path.mtu_bytes,
                gso_max_segs: self.path.gso_max_segs,
            },
        )?;
        self.take_priority();
        let before = TaskTime::of_this_thread();
        let done = work(End { tun: router.tun(), up, go, over })?;
        let time = TaskTime::since(before);
        let (end, dropped) = router.finish()?;
        Ok((Lived { done, dropped, time }, Some(end)))
    }

    /// The life of a host: its own namespace, its end of the path, its work.
    fn host<'a, T, E: From<EmuError>>(
        &self,
        address: Ipv4Addr,
        (up, go): (Outbox<Arc<Tun>>, Inbox<Clock>),
        over: &'a AtomicBool,
        work: impl FnOnce(End<'a>) -> Result<T, E>,
    ) -> Result<Lived<T>, E> {
        let tun = Arc::new(self.connect(address)?);
        let before = TaskTime::of_this_thread();
        let done = work(End { tun: Arc::clone(&tun), up, go, over })?;
        let time = TaskTime::since(before);
        Ok(Lived { done, dropped: transmit_drops(tun.name()), time })
    }

    /// Makes a namespace of the calling thread's own and connects it to the path.
    fn connect(&self, address: Ipv4Addr) -> Result<Tun, EmuError> {
        enter_new_network()?;
        self.take_priority();
        let tun = Tun::create(Address { own: address, prefix: 30, mtu: self.path.mtu_bytes })?;
        limit_gso_segments(tun.name(), self.path.gso_max_segs)?;
        Ok(tun)
    }

    fn take_priority(&self) {
        // If a priority is refused, it is refused to the ferry as well, which reports it.
        let _ = if self.path.forward_rate() <= REALTIME_HOSTS_UP_TO {
            sys::become_realtime(sys::Realtime::Host)
        } else {
            sys::become_less_nice()
        };
    }

    fn ferry(
        &self,
        ends: (Arc<Tun>, Arc<Tun>),
        ready: Outbox<()>,
        start: Inbox<Clock>,
    ) -> Result<FerryReport, EmuError> {
        let _signal = SignalOnDrop(&self.done);
        let ferry = Ferry::new(ends, self.path)?;
        let _ = ready.send(());
        drop(ready);
        let clock = start.recv().map_err(|_| EmuError::Stopped("preparation"))?;
        let outcome = ferry.run(clock, &self.stop_ferry);
        if outcome.is_err() {
            self.near_over.store(true, Ordering::Release);
        }
        outcome
    }
}

/// Signals the waiting thread that this one has ended, also after a panic.
struct SignalOnDrop<'a>(&'a OwnedFd);

impl Drop for SignalOnDrop<'_> {
    fn drop(&mut self) {
        sys::signal_event(self.0);
    }
}
