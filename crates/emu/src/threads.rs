//! The three threads of a run: two end hosts, each in a network namespace of its own, and the ferry between them.
//!
//! The caller defines what the hosts do. This module sets them up, starts them together and stops them. The calling
//! thread waits.

use std::net::Ipv4Addr;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver as Inbox, Sender as Outbox};
use std::thread;

use fullpipe_scenario::spec::{FlowSpec, Spec, Stream};
use fullpipe_units::{Duration, Rate, Time};

use crate::EmuError;
use crate::clock::Clock;
use crate::ferry::{Classes, DirectionPlan, Ferry, FerryReport};
use crate::host::{self, FIRST_PORT};
use crate::namespace::{enter_new_network, wait_for};
use crate::path_clock::Standstill;
use crate::sys;
use crate::tun::{Address, Tun, transmit_drops};

/// Time between the last preparation and the start of the run, so that every thread is ready.
const GET_READY: Duration = Duration::from_millis(5);
/// Up to this rate the end hosts have real-time priority, too. Faster ones need so much time that, together with the
/// ferry, they would run into the kernel's limit for real-time work (95 %), which then stops the ferry for 50 ms.
const REALTIME_HOSTS_UP_TO: Rate = Rate::from_bits_per_sec(200_000_000);

/// The results of a run.
pub(crate) struct Carried<S, R> {
    /// The result of the sending host.
    pub(crate) sent: S,
    /// The result of the receiving host.
    pub(crate) received: R,
    /// The sending host first.
    pub(crate) hosts: [HostReport; 2],
    pub(crate) ferried: FerryReport,
}

/// What a host reports about itself after a run.
pub(crate) struct HostReport {
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) untrustworthy: Vec<String>,
    /// Frames that the kernel dropped before the ferry saw them: losses that the path did not decide.
    pub(crate) dropped_frames: u64,
}

/// A host that is set up: the calling thread is in its namespace, and the path ends here.
pub(crate) struct Ready<'a> {
    tun: Arc<Tun>,
    up: Outbox<Arc<Tun>>,
    go: Inbox<Clock>,
    /// Set when the sending host is done: the receiving host may stop.
    pub(crate) stop: &'a AtomicBool,
}

impl Ready<'_> {
    /// To be called once everything else is prepared: waits until the other threads are ready as well. The clock that it
    /// returns begins shortly after.
    pub(crate) fn start(self) -> Result<Clock, EmuError> {
        let _ = self.up.send(self.tun);
        drop(self.up);
        self.go.recv().map_err(|_| EmuError::Stopped("preparation"))
    }
}

/// Runs `sending` and `receiving` on hosts with the path of `spec` between them, until `sending` returns. `seed` drives
/// the path's random elements; `standstill` decides whether the path's time stops while the ferry is stalled. `abort` is
/// set if the ferry fails; the sending host must check it. The process must have the rights already
/// ([`crate::namespace::become_capable`]).
pub(crate) fn carry<S: Send, R: Send>(
    spec: &Spec,
    seed: u64,
    standstill: Standstill,
    abort: &AtomicBool,
    sending: impl FnOnce(Ready<'_>) -> Result<S, EmuError> + Send,
    receiving: impl FnOnce(Ready<'_>) -> Result<R, EmuError> + Send,
) -> Result<Carried<S, R>, EmuError> {
    let (stop_ferry, done) = (event_fd()?, event_fd()?);
    let stage = Stage { spec, seed, standstill, abort, stop: AtomicBool::new(false), stop_ferry, done };
    let (sent, received, ferried) = thread::scope(|scope| {
        let (sender_up, sender_ready) = mpsc::channel();
        let (receiver_up, receiver_ready) = mpsc::channel();
        let (ferry_up, ferry_ready) = mpsc::channel();
        let (sender_go, sender_start) = mpsc::channel();
        let (receiver_go, receiver_start) = mpsc::channel();
        let (ferry_go, ferry_start) = mpsc::channel();
        let stage = &stage;
        let sender = scope.spawn(move || {
            let _signal = SignalOnDrop(&stage.done);
            stage.host("sender", host::SENDER, (sender_up, sender_start), sending)
        });
        let receiver = scope
            .spawn(move || stage.host("receiver", host::RECEIVER, (receiver_up, receiver_start), receiving));
        // A thread that fails to prepare drops its end of the channel; joining it returns the error.
        let (Ok(near), Ok(far)) = (sender_ready.recv(), receiver_ready.recv()) else {
            drop((sender_go, receiver_go));
            return (sender.join(), receiver.join(), Ok(Err(EmuError::Stopped("ferry"))));
        };
        let ferry = scope.spawn(move || stage.ferry((near, far), ferry_up, ferry_start));
        if ferry_ready.recv().is_ok() {
            let clock = Clock::start_in(GET_READY);
            // A thread that has ended by now returns an error.
            let _ = (ferry_go.send(clock), receiver_go.send(clock), sender_go.send(clock));
            wait_for(&stage.done).unwrap_or(());
        }
        drop((sender_go, receiver_go, ferry_go));
        let sent = sender.join();
        stage.stop.store(true, Ordering::Release);
        sys::signal_event(&stage.stop_ferry);
        (sent, receiver.join(), ferry.join())
    });
    let ferried = ferried.map_err(|_| EmuError::Stopped("ferry"))?;
    let (sent, near) = sent.map_err(|_| EmuError::Stopped("sending host"))??;
    let (received, far) = received.map_err(|_| EmuError::Stopped("receiving host"))??;
    Ok(Carried { sent, received, hosts: [near, far], ferried: ferried? })
}

fn event_fd() -> Result<OwnedFd, EmuError> {
    sys::event_fd().map_err(|error| EmuError::system("create an eventfd", error))
}

/// What the threads of a run share.
struct Stage<'a> {
    spec: &'a Spec,
    seed: u64,
    standstill: Standstill,
    /// The receiver may stop.
    stop: AtomicBool,
    /// The ferry failed, so the sender must stop.
    abort: &'a AtomicBool,
    stop_ferry: OwnedFd,
    /// Some thread has ended.
    done: OwnedFd,
}

impl Stage<'_> {
    /// The life of a host: its own namespace, its end of the path, its work.
    fn host<T>(
        &self,
        name: &str,
        address: Ipv4Addr,
        (up, go): (Outbox<Arc<Tun>>, Inbox<Clock>),
        work: impl FnOnce(Ready<'_>) -> Result<T, EmuError>,
    ) -> Result<(T, HostReport), EmuError> {
        let (tun, mut report) = self.prepare_host(name, address)?;
        let done = work(Ready { tun: Arc::clone(&tun), up, go, stop: &self.stop })?;
        report.note_drops(&tun, name);
        Ok((done, report))
    }

    /// Makes a namespace of the calling thread's own, sets it up, and connects it to the path.
    fn prepare_host(&self, name: &str, address: Ipv4Addr) -> Result<(Arc<Tun>, HostReport), EmuError> {
        enter_new_network()?;
        // If a priority is refused, it is refused to the ferry as well, which reports it.
        let _ = if fullpipe_path::highest_rate(&self.spec.forward) <= REALTIME_HOSTS_UP_TO {
            sys::become_realtime(sys::Realtime::Host)
        } else {
            sys::become_less_nice()
        };
        let untrustworthy = host::tune(&self.spec.hosts);
        let tun = Tun::create(Address { own: address, prefix: 30, mtu: self.spec.mtu_bytes })?;
        let settings = host::recorded_settings(name);
        Ok((Arc::new(tun), HostReport { settings, untrustworthy, dropped_frames: 0 }))
    }

    fn ferry(
        &self,
        ends: (Arc<Tun>, Arc<Tun>),
        ready: Outbox<()>,
        start: Inbox<Clock>,
    ) -> Result<FerryReport, EmuError> {
        let _signal = SignalOnDrop(&self.done);
        let spec = self.spec;
        let delays =
            |delay: fn(&FlowSpec) -> Duration| -> Vec<Duration> { spec.flows.iter().map(delay).collect() };
        let (forward, reverse) = (delays(|flow| flow.extra_forward_ns), delays(|flow| flow.extra_reverse_ns));
        let classes = Classes { first_port: FIRST_PORT, flows: spec.flows.len() as u32 };
        let plans = (
            DirectionPlan {
                elements: &spec.forward,
                class_delays: &forward,
                seed: Stream::Forward.seed(self.seed),
                gro: spec.hosts.gro_ns,
            },
            DirectionPlan {
                elements: &spec.reverse,
                class_delays: &reverse,
                seed: Stream::Reverse.seed(self.seed),
                gro: Duration::ZERO,
            },
        );
        let mut ferry = Ferry::new(ends, plans, classes)?;
        ferry.sample_every(spec.sample_interval_ns);
        let _ = ready.send(());
        drop(ready);
        let clock = start.recv().map_err(|_| EmuError::Stopped("preparation"))?;
        let end = Time::ZERO.saturating_add(spec.duration_ns);
        let outcome = ferry.run(clock, self.standstill, end, &self.stop_ferry);
        if outcome.is_err() {
            self.abort.store(true, Ordering::Release);
        }
        outcome
    }
}

impl HostReport {
    /// A frame that the kernel dropped before the ferry saw it was a loss that the path did not decide.
    fn note_drops(&mut self, tun: &Tun, host: &str) {
        let drops = transmit_drops(tun.name());
        self.dropped_frames = drops;
        if drops > 0 {
            self.untrustworthy.push(format!(
                "the {host}'s kernel dropped {drops} frames because the emulator did not read them in time"
            ));
        }
    }
}

/// Signals the waiting thread that this one has ended, also after a panic.
struct SignalOnDrop<'a>(&'a OwnedFd);

impl Drop for SignalOnDrop<'_> {
    fn drop(&mut self) {
        sys::signal_event(self.0);
    }
}
