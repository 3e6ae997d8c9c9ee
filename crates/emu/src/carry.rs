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
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver as Inbox, Sender as Outbox};
use std::thread;

use fullpipe_record::{ProcessorTime, QueueSample};
use fullpipe_units::{Duration, Rate, Time};

use crate::EmuError;
use crate::clock::Clock;
use crate::ferry::{Ferry, FerryReport};
use crate::load::{Machine, TaskTime};
use crate::namespace::{ask_to_die_with_parent, become_capable, enter_new_network, wait_for};
use crate::path::{FAR, NEAR, Path};
use crate::router::{Between, Router};
use crate::sys;
use crate::tun::{Address, Tun, limit_gso_segments, transmit_drops};

/// Time between the last preparation and the start of the run, so that every thread is ready.
const GET_READY: Duration = Duration::from_millis(5);
/// How often a waiting host checks whether it is to stop.
const LOOK_AROUND: Duration = Duration::from_millis(50);
/// Up to this rate the hosts have real-time priority, too. Faster ones need so much time that, together with the
/// ferry, they would run into the kernel's limit for real-time work (95 %), which then stops the ferry for 50 ms.
const REALTIME_HOSTS_UP_TO: Rate = Rate::from_bits_per_sec(200_000_000);

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
                return (near.join(), far.join(), Ok(Err(EmuError::stopped("ferry"))), end_beside());
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
        let beside = beside.map_err(EmuError::panicked("log"));
        let ferried = ferried.map_err(EmuError::panicked("ferry"))?;
        let (near, first) = near.map_err(EmuError::panicked("sending host"))??;
        let far = far.map_err(EmuError::panicked("receiving host"))??;
        let processor = machine.until_now([near.time, far.time]);
        let mut ferried = ferried?;
        if let (Some(queue), Some(end)) = (&self.queue, first) {
            ferried.links.insert(0, queue.record(end, ferried.carried));
        }
        let dropped_frames = [near.dropped, far.dropped];
        Ok((Carried { near: near.done, far: far.done, dropped_frames, ferried, processor }, beside?))
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
        let clock = self.go.recv().map_err(|_| EmuError::stopped("preparation"))?;
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
        let clock = start.recv().map_err(|_| EmuError::stopped("preparation"))?;
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
