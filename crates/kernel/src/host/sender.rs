//! The sending host: opens each flow at its time, writes zeros, at once or on request, and samples what the kernel reports
//! about its sockets.

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use fullpipe_cc::Params;
use fullpipe_emu::clock::Clock;
use fullpipe_emu::{FAR, NEAR};
use fullpipe_record::{FlowRecord, FlowSeries, FlowTotals, Sample};
use fullpipe_scenario::spec::{EcnUse, FlowSpec, Spec, Workload};
use fullpipe_scenario::transfers::Server;
use fullpipe_units::{Bytes, Duration, Time};

use super::{Progress, failed, metrics, port};
use crate::KernelError;
use crate::model::{Model, model};
use crate::sys::{self, Epoll};
use crate::tcp_info::{BbrInfo, TcpInfo};

/// The maximum number of bytes written at once; the same as iperf3's.
const WRITE_BYTES: usize = 128 * 1024;
/// How often completion of finite flows is checked, at least.
const LOOK_AROUND: Duration = Duration::from_millis(20);
/// How long the end of a connection is waited for after the last byte has arrived.
const LEAVE: Duration = Duration::from_secs(2);
/// Linux reports an unlimited delivery rate or minimum RTT as all ones.
const UNKNOWN_US: u32 = u32::MAX;

/// Everything the sending host does in a run.
pub(crate) struct Sender<'a> {
    clock: Clock,
    epoll: Epoll,
    flows: Vec<Flow<'a>>,
    sampling: Option<Duration>,
    zeros: Vec<u8>,
    end: Time,
}

/// The results of the flows.
pub(crate) struct SenderReport {
    pub(crate) flows: Vec<FlowRecord>,
    /// Errors of single flows.
    pub(crate) failures: Vec<String>,
}

/// One flow.
struct Flow<'a> {
    spec: &'a FlowSpec,
    number: usize,
    name: String,
    progress: &'a Progress,
    start: Time,
    paced: bool,
    uses_ecn: bool,
    is_bbr: bool,
    /// Where the model of a controller of ours is.
    models: Option<RawFd>,
    state: State,
    socket: Option<OwnedFd>,
    /// Bytes that the application has still to write; `None` for no end.
    unwritten: Option<u64>,
    /// Bytes that it has written, and all that it will, if it ends by itself.
    written: u64,
    all: Option<u64>,
    /// When it has more; `None` unless it sends one transfer after another.
    server: Option<Server>,
    /// Until when its connection's end is waited for, which leaves metrics; `None` if it leaves none, or has.
    leaves: Option<Time>,
    totals: FlowTotals,
    series: FlowSeries,
    failure: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Not yet started.
    Waiting,
    /// Connecting or writing; in the epoll set.
    Writing,
    /// Connected, with nothing to write until the next transfer; in the epoll set, for requests.
    Pausing,
    /// Everything is written.
    Written,
    /// Its measured interval is over.
    Over,
}

impl<'a> Sender<'a> {
    /// Prepares the flows. `spec` has been checked: every controller has a name in Linux.
    pub(crate) fn new(
        spec: &'a Spec,
        seed: u64,
        clock: Clock,
        progress: &'a [Progress],
    ) -> Result<Sender<'a>, KernelError> {
        let epoll = Epoll::new().map_err(failed("create an epoll set"))?;
        let end = Time::ZERO.saturating_add(spec.duration_ns);
        let flow = |(number, flow): (usize, &'a FlowSpec)| {
            let name = flow.controller.linux_name().unwrap_or_default().to_owned();
            let is_bbr = matches!(flow.controller.params(), Some(Params::Bbr1(_) | Params::Bbr3Linux(_)));
            let start = flow.start_time(number, seed);
            Flow {
                spec: flow,
                number,
                progress: &progress[number],
                start,
                paced: flow.is_paced(&spec.hosts),
                uses_ecn: flow.ecn(&spec.hosts) != EcnUse::None,
                is_bbr,
                models: None,
                name,
                state: State::Waiting,
                socket: None,
                unwritten: match flow.workload {
                    Workload::Bulk => None,
                    Workload::Finite { size_bytes } => Some(size_bytes.as_u64()),
                    Workload::Bursts { .. }
                    | Workload::Requests { .. }
                    | Workload::Video { .. }
                    | Workload::Media { .. }
                    | Workload::Script { .. } => Some(0),
                },
                written: 0,
                all: flow.workload.total_bytes().map(Bytes::as_u64),
                server: Server::new(&flow.workload, start),
                leaves: spec.hosts.metrics.is_some().then_some(Time::NEVER),
                totals: FlowTotals::default(),
                series: FlowSeries::default(),
                failure: None,
            }
        };
        let flows = spec.flows.iter().enumerate().map(flow).collect();
        Ok(Sender {
            clock,
            epoll,
            flows,
            sampling: spec.sample_interval_ns.filter(|_| spec.sample_flows),
            zeros: vec![0; WRITE_BYTES],
            end,
        })
    }

    /// Makes the flows use these algorithms of the kernel, in their order, whose models are in these maps if they are ours.
    pub(crate) fn with_algorithms(mut self, names: &[String], models: &[Option<RawFd>]) -> Sender<'a> {
        for ((flow, name), models) in self.flows.iter_mut().zip(names).zip(models) {
            flow.name.clone_from(name);
            flow.models = *models;
        }
        self
    }

    /// Sends until the end of the run, until every flow is over, or until `is_over`.
    pub(crate) fn run(mut self, is_over: impl Fn() -> bool) -> Result<SenderReport, KernelError> {
        let mut ready = Vec::new();
        let mut next_sample = if self.sampling.is_some() { Time::ZERO } else { Time::NEVER };
        loop {
            let now = self.clock.now();
            for flow in &mut self.flows {
                flow.advance(now, self.end, &self.epoll)?;
            }
            if now >= next_sample {
                let interval = self.sampling.unwrap_or(Duration::MAX);
                while next_sample <= now {
                    next_sample += interval;
                }
                for flow in &mut self.flows {
                    flow.sample(now);
                }
            }
            let over = self.flows.iter().all(|flow| flow.state == State::Over && flow.leaves.is_none());
            if over || is_over() {
                break;
            }
            let events = self.flows.iter().filter_map(|flow| flow.next_event());
            let wake = events.fold(next_sample.min(self.end).min(now + LOOK_AROUND), Time::min);
            self.write_until(wake, &mut ready)?;
        }
        if let [flow] = &mut self.flows[..] {
            // Linux counts these per host, not per socket.
            flow.totals.undos = super::undone_reductions();
        }
        let failures = self.flows.iter_mut().filter_map(|flow| flow.failure.take()).collect();
        Ok(SenderReport { flows: self.flows.into_iter().map(Flow::into_record).collect(), failures })
    }

    /// Writes to every socket that has room, until `wake`.
    fn write_until(&mut self, wake: Time, ready: &mut Vec<(u64, u32)>) -> Result<(), KernelError> {
        loop {
            let now = self.clock.now();
            self.epoll.wait(ready, wake.saturating_since(now)).map_err(failed("wait for room to write"))?;
            for (number, _) in ready.iter() {
                let flow = &mut self.flows[*number as usize];
                flow.take_requests(&self.epoll)?;
                flow.write(&self.zeros, self.clock, &self.epoll)?;
            }
            if now >= wake {
                return Ok(());
            }
        }
    }
}

impl Flow<'_> {
    /// When it must be checked next, apart from the regular times.
    fn next_event(&self) -> Option<Time> {
        match self.state {
            State::Waiting => Some(self.start),
            State::Writing | State::Pausing | State::Written => {
                let due = self.server.as_ref().map_or(Time::NEVER, Server::due);
                Some(due.min(self.spec.stop_ns.unwrap_or(Time::NEVER)))
            }
            State::Over => None,
        }
    }

    /// Starts, stops or completes it if the time has come.
    fn advance(&mut self, now: Time, end: Time, epoll: &Epoll) -> Result<(), KernelError> {
        let stop = self.spec.stop_ns.map_or(end, |stop| stop.min(end));
        match self.state {
            State::Waiting if now >= stop => {
                self.totals.start_ns = stop.as_nanos();
                self.finish(stop, epoll)
            }
            State::Waiting if now >= self.start => self.start(now, epoll),
            State::Writing | State::Pausing | State::Written => match self.progress.completed() {
                Some(at) => {
                    self.totals.completed = true;
                    self.finish(at, epoll)
                }
                None if now >= stop => self.finish(now, epoll),
                None => self.take_due(now, epoll),
            },
            State::Over => {
                self.take_metrics(now);
                Ok(())
            }
            State::Waiting => Ok(()),
        }
    }

    /// Asks what the connection has left, once it has ended. One that does not end soon leaves nothing.
    fn take_metrics(&mut self, now: Time) {
        let Some(until) = self.leaves else { return };
        let ended = match &self.socket {
            Some(socket) => TcpInfo::of(socket).is_ok_and(|info| info.is_closed()),
            None => true,
        };
        if ended {
            self.totals.metrics = self.socket.as_ref().and_then(|_| metrics::entry(FAR, now));
        }
        self.leaves = (!ended && now < until).then_some(until);
    }

    /// Begins to connect. The algorithm is set first: a socket stays paced once it has used bbr.
    fn start(&mut self, now: Time, epoll: &Epoll) -> Result<(), KernelError> {
        let label = &self.spec.label;
        let from = SocketAddrV4::new(NEAR, port(self.number));
        let to = SocketAddrV4::new(FAR, port(self.number));
        let socket = sys::socket(libc::SOCK_STREAM).map_err(failed(format!("open a socket for {label}")))?;
        set_algorithm(&socket, &self.name)
            .map_err(failed(format!("set the congestion control of {label} to {}", self.name)))?;
        if self.paced && !self.is_bbr {
            enable_pacing(&socket).map_err(failed(format!("enable pacing of {label}")))?;
        }
        vanish_when_closed(&socket).map_err(failed(format!("prepare the end of {label}")))?;
        sys::bind(&socket, from).map_err(failed(format!("bind {label} to {from}")))?;
        sys::connect(&socket, to).map_err(failed(format!("connect {label} to {to}")))?;
        watch(epoll, &socket, libc::EPOLLOUT, self.number, label)?;
        self.totals.start_ns = now.as_nanos();
        self.socket = Some(socket);
        self.state = State::Writing;
        self.take_due(now, epoll)
    }

    /// Gives the application more to write if the time has come.
    fn take_due(&mut self, now: Time, epoll: &Epoll) -> Result<(), KernelError> {
        match self.server.as_mut().filter(|server| server.due() <= now) {
            Some(server) => {
                let more = server.take(now);
                self.take(more, epoll)
            }
            None => Ok(()),
        }
    }

    /// Gives the application more to write if there is a request.
    fn take_requests(&mut self, epoll: &Epoll) -> Result<(), KernelError> {
        while let Some(socket) = self.socket.as_ref().filter(|_| self.state == State::Pausing) {
            // A request is a byte, and there is at most one at a time.
            match (sys::discard(socket, &mut [0]), &mut self.server) {
                (Ok(None), _) => return Ok(()),
                (Ok(Some(1..)), Some(server)) => {
                    let more = server.on_request();
                    self.take(more, epoll)?;
                }
                (Ok(_), _) => self.end_writing(epoll)?,
                (Err(error), _) => self.fail(error, epoll)?,
            }
        }
        Ok(())
    }

    /// Adds `more` bytes to write.
    fn take(&mut self, more: Bytes, epoll: &Epoll) -> Result<(), KernelError> {
        self.unwritten = self.unwritten.map(|left| left + more.as_u64());
        if self.state == State::Pausing {
            self.state = State::Writing;
            self.watch_for(libc::EPOLLOUT, epoll)?;
        }
        Ok(())
    }

    fn write(&mut self, zeros: &[u8], clock: Clock, epoll: &Epoll) -> Result<(), KernelError> {
        // Until the buffer is full, as an application that blocks does. The kernel asks for more when a third is free.
        while let Some(socket) = self.socket.as_ref().filter(|_| self.state == State::Writing) {
            let most = self.unwritten.map_or(zeros.len(), |left| zeros.len().min(left as usize));
            match sys::send(socket, &zeros[..most]) {
                Ok(None) => return Ok(()),
                Ok(Some(sent)) => {
                    self.unwritten = self.unwritten.map(|left| left - sent as u64);
                    self.written += sent as u64;
                    if self.all == Some(self.written) {
                        self.totals.written_ns = Some(clock.now().as_nanos());
                    }
                    if self.unwritten == Some(0) {
                        match self.server {
                            Some(_) => self.pause(epoll)?,
                            None => self.end_writing(epoll)?,
                        }
                    }
                }
                Err(error) => self.fail(error, epoll)?,
            }
        }
        Ok(())
    }

    /// The connection is gone.
    fn fail(&mut self, error: std::io::Error, epoll: &Epoll) -> Result<(), KernelError> {
        let socket_error = self.socket.as_ref().and_then(|socket| sys::socket_error(socket).ok().flatten());
        self.failure = Some(format!("flow {}: {}", self.spec.label, socket_error.unwrap_or(error)));
        self.end_writing(epoll)
    }

    /// Nothing to write for now.
    fn pause(&mut self, epoll: &Epoll) -> Result<(), KernelError> {
        self.state = State::Pausing;
        self.watch_for(libc::EPOLLIN, epoll)
    }

    /// Changes the events for which the socket is watched.
    fn watch_for(&self, events: libc::c_int, epoll: &Epoll) -> Result<(), KernelError> {
        let Some(socket) = &self.socket else { return Ok(()) };
        epoll.remove(socket).map_err(failed("stop watching a socket"))?;
        watch(epoll, socket, events, self.number, &self.spec.label)
    }

    fn end_writing(&mut self, epoll: &Epoll) -> Result<(), KernelError> {
        let open = matches!(self.state, State::Writing | State::Pausing);
        if let Some(socket) = self.socket.as_ref().filter(|_| open) {
            epoll.remove(socket).map_err(failed("stop watching a socket"))?;
            // Fails if the connection is gone, which has been noted.
            let _ = sys::shutdown_write(socket);
            self.state = State::Written;
        }
        Ok(())
    }

    /// Ends the measured interval and takes the totals.
    fn finish(&mut self, at: Time, epoll: &Epoll) -> Result<(), KernelError> {
        self.totals.end_ns = at.as_nanos();
        self.totals.delivered_bytes = self.progress.bytes();
        self.totals.written_bytes = Some(self.written);
        if let Some(socket) = &self.socket {
            let info = TcpInfo::of(socket).map_err(failed("read TCP_INFO"))?;
            self.totals.segments_sent = u64::from(info.data_segs_out);
            self.totals.retransmits = u64::from(info.total_retrans);
            self.totals.timeouts = u64::from(info.total_rto);
            self.totals.echoed_segments = self.uses_ecn.then(|| u64::from(info.delivered_ce));
        }
        self.end_writing(epoll)?;
        self.leaves = self.leaves.map(|_| at + LEAVE);
        self.state = State::Over;
        Ok(())
    }

    fn sample(&mut self, now: Time) {
        let Some(socket) = self.socket.as_ref().filter(|_| self.state != State::Over) else { return };
        let Ok(info) = TcpInfo::of(socket) else { return };
        if !info.is_connected() {
            return;
        }
        let believed = match self.models {
            Some(models) => model(models, socket.as_raw_fd()),
            None if self.is_bbr => BbrInfo::of(socket).ok().flatten().map(|bbr| Model {
                phase: bbr.phase(),
                bandwidth_bps: Some(bbr.bandwidth.saturating_mul(8)),
            }),
            None => None,
        };
        let micros = |us: u32| (us != UNKNOWN_US && us != 0).then(|| u64::from(us) * 1_000);
        let bits = |bytes: u64| bytes.saturating_mul(8);
        self.series.push(Sample {
            time_ns: now.as_nanos(),
            cwnd: info.snd_cwnd,
            ssthresh: info.snd_ssthresh,
            pacing_bps: self.paced.then(|| bits(info.pacing_rate)),
            inflight: info.in_flight(),
            srtt_ns: micros(info.rtt_us),
            min_rtt_ns: micros(info.min_rtt_us),
            delivery_bps: bits(info.delivery_rate),
            bandwidth_bps: believed.and_then(|model| model.bandwidth_bps),
            delivered_bytes: self.progress.bytes(),
            retransmits: u64::from(info.total_retrans),
            phase: believed.map_or(info.loss_based_phase(), |model| model.phase),
            ca_state: info.ca_state,
        });
    }

    fn into_record(self) -> FlowRecord {
        FlowRecord {
            label: self.spec.label.clone(),
            controller: self.spec.controller.text().to_owned(),
            transfers_ns: self.progress.transfers_ns(),
            rebuffered_ns: self.progress.rebuffered_ns(Time::from_nanos(self.totals.end_ns)),
            totals: self.totals,
            series: self.series,
        }
    }
}

/// Watches a flow's socket for `events`.
fn watch(
    epoll: &Epoll,
    socket: &OwnedFd,
    events: libc::c_int,
    number: usize,
    label: &str,
) -> Result<(), KernelError> {
    epoll.add(socket, events, number as u64).map_err(failed(format!("watch the socket of {label}")))
}

/// Sets a socket's congestion control.
pub(crate) fn set_algorithm(socket: &OwnedFd, name: &str) -> std::io::Result<()> {
    sys::set_option(socket, libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_bytes())
}

/// Makes the socket end with its descriptor. Otherwise TCP would keep it, and with it the namespace and the congestion
/// control, for minutes, while it tries to deliver the rest over a path that no longer exists.
fn vanish_when_closed(socket: &OwnedFd) -> std::io::Result<()> {
    let at_once = [1i32, 0].map(i32::to_ne_bytes).concat(); // struct linger: on, no time
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_LINGER, &at_once)
}

/// Makes TCP pace a socket whose algorithm does not ask for it. The limit itself is out of reach; the largest value
/// of all would mean "no pacing" (Linux `sk_setsockopt`, SO_MAX_PACING_RATE).
fn enable_pacing(socket: &OwnedFd) -> std::io::Result<()> {
    let rate = u64::MAX - 1;
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &rate.to_ne_bytes())
}
