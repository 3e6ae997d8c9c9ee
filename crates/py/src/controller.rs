//! Controllers written in Python: each event becomes an object and a call, and the limits are read from attributes.
//!
//! What user code raises ends the run that it belongs to. It cannot pass through the simulator, so it is kept here as a
//! [`Fault`], the controller goes on with its last limits, and whoever drives the simulator looks for faults.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use fullpipe_cc::*;
use fullpipe_sim::{OwnController, Simulation};
use fullpipe_units::{Duration, Rate, Time};
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::errors::{self, sim_error};

/// What Python hands over for a flow: its number, the name of the controller, whether it is paced, the object, and the
/// methods that it has of its own, by name.
pub(crate) type Brought = (usize, String, bool, Py<PyAny>, HashMap<String, Py<PyAny>>);

/// The first exception of user code in a run.
#[derive(Default)]
pub(crate) struct Faults(Mutex<Option<Fault>>);

struct Fault {
    controller: String,
    event: &'static str,
    flow: usize,
    at: Time,
    error: PyErr,
}

impl Faults {
    fn note(&self, fault: Fault) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(fault);
    }

    /// Raises what user code raised, in words that say where; Ctrl-C in user code is Ctrl-C.
    pub(crate) fn check(&self, py: Python<'_>) -> PyResult<()> {
        let fault = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(Fault { controller, event, flow, at, error }) = fault else { return Ok(()) };
        if error.is_instance_of::<PyKeyboardInterrupt>(py) {
            return Err(error);
        }
        Err(errors::controller_error(py, &controller, event, flow, at, error))
    }
}

/// Gives each of these flows its controller.
pub(crate) fn plug(
    py: Python<'_>,
    simulation: &mut Simulation,
    brought: Vec<Brought>,
    faults: &Arc<Faults>,
) -> PyResult<()> {
    for (flow, name, paced, object, own) in brought {
        let faults = Arc::clone(faults);
        let make = move |config: &Config, connection: &Connection| -> OwnController {
            Box::new(InPython::new(Part { flow, name, object, own, faults }, config, connection))
        };
        simulation.controller_from(flow, paced, Box::new(make)).map_err(|error| sim_error(py, &error))?;
    }
    Ok(())
}

/// What belongs to one flow.
struct Part {
    flow: usize,
    name: String,
    object: Py<PyAny>,
    own: HashMap<String, Py<PyAny>>,
    faults: Arc<Faults>,
}

/// The methods that the class has of its own.
#[derive(Default)]
struct Handlers {
    transmit_start: Option<Py<PyAny>>,
    window_unused: Option<Py<PyAny>>,
    sent: Option<Py<PyAny>>,
    rtt: Option<Py<PyAny>>,
    ce: Option<Py<PyAny>>,
    undo: Option<Py<PyAny>>,
    lost: Option<Py<PyAny>>,
    tail_repair: Option<Py<PyAny>>,
    state: Option<Py<PyAny>>,
    ack: Option<Py<PyAny>>,
    mss: Option<Py<PyAny>>,
    limits: Option<Py<PyAny>>,
}

/// A controller written in Python.
pub(crate) struct InPython {
    part: Part,
    handlers: Handlers,
    config: Config,
    /// The time of the last event that had one, and the connection's state then.
    at: Time,
    srtt: Duration,
    state: CaState,
    failed: Cell<bool>,
    /// The limits after the last event, if nothing has happened since.
    limits: Cell<Limits>,
    known: Cell<bool>,
}

/// Linux sizes bursts by twice the window's rate in slow start (`tcp_pacing_ss_ratio`), and else by 1.2 times
/// (`tcp_pacing_ca_ratio`).
const SLOW_START_RATIO: f64 = 2.0;
const RATIO: f64 = 1.2;

impl InPython {
    /// A controller that is not a flow's; without one it keeps the first limits.
    pub(crate) fn of(
        brought: Option<Brought>,
        faults: Arc<Faults>,
        config: &Config,
        connection: &Connection,
    ) -> InPython {
        let is_missing = brought.is_none();
        let (flow, name, _, object, own) = brought
            .unwrap_or_else(|| (0, String::new(), false, Python::attach(|py| py.None()), HashMap::new()));
        let controller = InPython::new(Part { flow, name, object, own, faults }, config, connection);
        controller.failed.set(is_missing || controller.failed.get());
        controller
    }

    fn new(mut part: Part, config: &Config, connection: &Connection) -> InPython {
        let mut take = |name: &str| part.own.remove(name);
        let handlers = Handlers {
            transmit_start: take("on_transmit_start"),
            window_unused: take("on_window_unused"),
            sent: take("on_sent"),
            rtt: take("on_rtt"),
            ce: take("on_ce"),
            undo: take("on_undo"),
            lost: take("on_lost"),
            tail_repair: take("on_tail_repair"),
            state: take("on_state"),
            ack: take("on_ack"),
            mss: take("on_mss"),
            limits: take("limits"),
        };
        let start = take("start");
        // It is the same for the whole connection, so that it need not be read at each event.
        let asks = |py: Python<'_>| part.object.bind(py).getattr("check_app_limited")?.extract::<bool>();
        let check_app_limited = Python::attach(asks).unwrap_or(false);
        let limits = Limits {
            cwnd: config.initial_cwnd,
            ssthresh: Limits::INFINITE,
            pacing_rate: config.max_pacing_rate,
            min_burst: MIN_BURST,
            mark_app_limited: false,
            check_app_limited,
        };
        let controller = InPython {
            part,
            handlers,
            config: *config,
            at: connection.now,
            srtt: connection.srtt,
            state: connection.state,
            failed: Cell::new(false),
            limits: Cell::new(limits),
            known: Cell::new(false),
        };
        if let Some(start) = start {
            controller.guard("start", |py| {
                start.call1(py, (PyConfig(*config), PyConnection(*connection))).map(drop)
            });
        }
        controller
    }

    /// Runs user code, unless some has failed.
    fn guard(&self, event: &'static str, work: impl FnOnce(Python<'_>) -> PyResult<()>) {
        if self.failed.get() {
            return;
        }
        Python::attach(|py| {
            if let Err(error) = work(py) {
                self.failed.set(true);
                let Part { flow, ref name, ref faults, .. } = self.part;
                faults.note(Fault { controller: name.clone(), event, flow, at: self.at, error });
            }
        });
    }

    /// Tells an event to the method that handles it, if there is one.
    fn report<E: pyo3::PyClass + Into<PyClassInitializer<E>>>(
        &self,
        event: &'static str,
        handler: &Option<Py<PyAny>>,
        seen: E,
    ) {
        if let Some(handler) = handler {
            self.known.set(false);
            self.guard(event, |py| handler.call1(py, (Py::new(py, seen)?,)).map(drop));
        }
    }

    fn saw(&mut self, connection: &Connection) {
        self.at = connection.now;
        self.srtt = connection.srtt;
        self.state = connection.state;
    }

    /// The limits as the attributes say.
    fn read(&self, py: Python<'_>) -> PyResult<Limits> {
        let source = match &self.handlers.limits {
            Some(limits) => limits.call0(py)?,
            None => self.part.object.clone_ref(py),
        };
        let source = source.bind(py);
        let cwnd = number(source.getattr(intern!(py, "cwnd"))?, "cwnd", "a number of segments from 0")?;
        let cwnd = (cwnd as u32).clamp(1, self.config.cwnd_clamp);
        let optional = |name: &Bound<'_, PyString>, expected| -> PyResult<Option<f64>> {
            let value = source.getattr(name)?;
            if value.is_none() { Ok(None) } else { number(value, name.to_str()?, expected).map(Some) }
        };
        let ssthresh = optional(intern!(py, "ssthresh"), "a number of segments from 0, or None")?;
        let ssthresh = ssthresh.map_or(Limits::INFINITE, |segments| (segments as u32).min(Limits::INFINITE));
        let pacing = optional(intern!(py, "pacing_rate_bps"), "a rate in bit/s from 0, or None")?;
        let pacing_rate = match pacing {
            // A rate of zero would never send.
            Some(bps) => Rate::from_bits_per_sec((bps as u64).max(1)).min(self.config.max_pacing_rate),
            None => self.sizing(cwnd, ssthresh),
        };
        let min_burst =
            number(source.getattr(intern!(py, "min_burst"))?, "min_burst", "a number of segments from 1")?;
        // A burst of none would be sent again and again, and time would stand still.
        let min_burst = (min_burst as u32).clamp(1, MOST_IN_BURST);
        let mark_app_limited = source.getattr(intern!(py, "mark_app_limited"))?.extract()?;
        let check_app_limited = self.limits.get().check_app_limited;
        Ok(Limits { cwnd, ssthresh, pacing_rate, min_burst, mark_app_limited, check_app_limited })
    }

    /// The rate by which Linux sizes the bursts of a controller that has none (`tcp_update_pacing_rate`).
    fn sizing(&self, cwnd: u32, ssthresh: u32) -> Rate {
        if self.srtt == Duration::ZERO {
            return self.config.max_pacing_rate;
        }
        let ratio = if cwnd < ssthresh / 2 { SLOW_START_RATIO } else { RATIO };
        let bits = ratio * f64::from(cwnd) * f64::from(self.config.mss) * 8.0;
        Rate::from_bits_per_sec(((bits * 1e9 / self.srtt.as_nanos() as f64) as u64).max(1))
    }
}

/// No burst is larger anyway (`Config::gso_max`).
const MOST_IN_BURST: u32 = 65_536;

/// Linux: `tcp_min_tso_segs`.
const MIN_BURST: u32 = 2;

/// A number that is neither negative nor NaN; infinity is the most that there is.
fn number(value: Bound<'_, PyAny>, name: &str, expected: &str) -> PyResult<f64> {
    match value.extract::<f64>() {
        Ok(number) if number >= 0.0 => Ok(number),
        _ => Err(errors::bad_limit(name, &value, expected)),
    }
}

impl Controller for InPython {
    fn on_transmit_start(&mut self, start: &TransmitStart) {
        self.saw(&start.connection);
        self.report("on_transmit_start", &self.handlers.transmit_start, PyTransmitStart(*start));
    }
    fn on_window_unused(&mut self, unused: &WindowUnused) {
        self.saw(&unused.connection);
        self.report("on_window_unused", &self.handlers.window_unused, PyWindowUnused(*unused));
    }
    fn on_sent(&mut self, sent: &Sent) {
        self.report("on_sent", &self.handlers.sent, PySent(*sent));
    }
    fn on_rtt(&mut self, sample: &RttSample) {
        self.at = sample.now;
        self.report("on_rtt", &self.handlers.rtt, PyRttSample(*sample));
    }
    fn on_ce(&mut self, marks: &CeMarks) {
        self.report("on_ce", &self.handlers.ce, PyCeMarks(*marks));
    }
    fn on_undo(&mut self, undo: &Undo) {
        self.saw(&undo.connection);
        self.report("on_undo", &self.handlers.undo, PyUndo(*undo));
    }
    fn on_lost(&mut self, lost: &Lost) {
        self.report("on_lost", &self.handlers.lost, PyLost(*lost));
    }
    fn on_tail_repair(&mut self, repair: &TailRepair) {
        self.at = repair.now;
        self.report("on_tail_repair", &self.handlers.tail_repair, PyTailRepair(*repair));
    }
    /// The simulator's transport is TCP, which discards nothing.
    fn on_discarded(&mut self, _: &Discarded) {}
    fn on_state(&mut self, change: &StateChange) {
        self.saw(&change.connection);
        self.state = change.to;
        self.report("on_state", &self.handlers.state, PyStateChange(*change));
    }
    fn on_ack(&mut self, ack: &Ack) {
        self.saw(&ack.connection);
        self.report("on_ack", &self.handlers.ack, PyAck(*ack));
    }
    fn on_mss(&mut self, mss: u32) {
        self.config.mss = mss;
        if let Some(handler) = &self.handlers.mss {
            self.known.set(false);
            self.guard("on_mss", |py| handler.call1(py, (mss,)).map(drop));
        }
    }

    fn limits(&self) -> Limits {
        if !self.known.replace(true) {
            self.guard("limits", |py| self.read(py).map(|limits| self.limits.set(limits)));
        }
        self.limits.get()
    }

    fn snapshot(&self) -> Snapshot {
        let limits = self.limits.get();
        let mut snapshot = Snapshot {
            phase: phase::loss_based(self.state, limits.cwnd, limits.ssthresh),
            bandwidth: None,
            min_rtt: None,
        };
        self.guard("phase", |py| {
            let object = self.part.object.bind(py);
            let message = object.getattr(intern!(py, "phase"))?;
            if !message.is_none() {
                let known = message.extract::<&str>().ok();
                let known = Phase::ALL.into_iter().find(|phase| Some(phase.name()) == known);
                snapshot.phase = known.ok_or_else(|| {
                    let names: Vec<&str> = Phase::ALL.iter().map(|phase| phase.name()).collect();
                    errors::bad_limit("phase", &message, &format!("None or one of {}", names.join(", ")))
                })?;
            }
            let bandwidth = object.getattr(intern!(py, "bandwidth_bps"))?;
            if !bandwidth.is_none() {
                let bps = number(bandwidth, "bandwidth_bps", "a rate in bit/s from 0, or None")?;
                snapshot.bandwidth = Some(Rate::from_bits_per_sec(bps as u64));
            }
            Ok(())
        });
        snapshot
    }
}

fn seconds(time: Time) -> f64 {
    time.as_nanos() as f64 / 1e9
}

/// A duration in seconds; `None` if it is not known.
fn known(duration: Duration, unknown: Duration) -> Option<f64> {
    (duration != unknown).then(|| duration.as_nanos() as f64 / 1e9)
}

/// An event as a frozen class, whose attributes are computed when they are asked for.
macro_rules! event {
    ($(#[$doc:meta])* $class:ident($name:literal, $of:ty) { $($(#[$field_doc:meta])* $field:ident: $result:ty = |$this:ident| $value:expr;)* }) => {
        $(#[$doc])*
        #[pyclass(frozen, module = "fullpipe._native", name = $name)]
        pub(crate) struct $class($of);

        #[pymethods]
        impl $class {
            $(
                $(#[$field_doc])*
                #[getter]
                fn $field(&self) -> $result {
                    let $this = &self.0;
                    $value
                }
            )*

            fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
                let mut parts: Vec<String> = Vec::new();
                $(parts.push(format!("{}={}", stringify!($field), slf.getattr(stringify!($field))?.repr()?));)*
                Ok(format!("{}({})", $name, parts.join(", ")))
            }
        }
    };
}

event! {
    /// What does not change during a connection.
    PyConfig("Config", Config) {
        mss: u32 = |it| it.mss;
        initial_cwnd: u32 = |it| it.initial_cwnd;
        paced: bool = |it| it.paced;
    }
}

event! {
    /// The connection's counters after the event's bookkeeping.
    PyConnection("Connection", Connection) {
        now_s: f64 = |it| seconds(it.now);
        delivered: u64 = |it| it.delivered;
        delivered_time_s: f64 = |it| seconds(it.delivered_time);
        lost: u64 = |it| it.lost;
        packets_out: u32 = |it| it.packets_out;
        in_flight: u32 = |it| it.in_flight;
        srtt_s: Option<f64> = |it| known(it.srtt, Duration::ZERO);
        min_rtt_s: Option<f64> = |it| known(it.min_rtt, Duration::MAX);
        departure_s: f64 = |it| seconds(it.departure);
        state: &'static str = |it| it.state.name();
        app_limited: bool = |it| it.app_limited;
        random: u32 = |it| it.random;
    }
}

event! {
    /// Data is about to leave and nothing is in flight.
    PyTransmitStart("TransmitStart", TransmitStart) {
        connection: PyConnection = |it| PyConnection(it.connection);
        last_sent_s: f64 = |it| seconds(it.last_sent);
        rto_s: f64 = |it| it.rto.as_nanos() as f64 / 1e9;
    }
}

event! {
    /// The application left the window unfilled.
    PyWindowUnused("WindowUnused", WindowUnused) {
        connection: PyConnection = |it| PyConnection(it.connection);
        used: u32 = |it| it.used;
    }
}

event! {
    /// A burst left.
    PySent("Sent", Sent) {
        departure_s: f64 = |it| seconds(it.departure);
        segments: u32 = |it| it.units;
        prior_in_flight: u32 = |it| it.prior_in_flight;
        prior_packets_out: u32 = |it| it.prior_packets_out;
        retransmission: bool = |it| it.retransmission;
    }
}

event! {
    /// An ACK brought an RTT.
    PyRttSample("RttSample", RttSample) {
        now_s: f64 = |it| seconds(it.now);
        rtt_s: f64 = |it| it.rtt.as_nanos() as f64 / 1e9;
        snd_una: u64 = |it| it.snd_una;
        snd_nxt: u64 = |it| it.snd_nxt;
    }
}

event! {
    /// The delivery-rate sample of an ACK.
    PyRateSample("RateSample", RateSample) {
        delivered: Option<u32> = |it| it.delivered;
        interval_s: Option<f64> = |it| it.interval.map(|interval| interval.as_nanos() as f64 / 1e9);
        prior_delivered: u64 = |it| it.prior_delivered;
        prior_delivered_time_s: f64 = |it| seconds(it.prior_delivered_time);
        app_limited: bool = |it| it.app_limited;
        retransmitted: bool = |it| it.retransmitted;
        tx_in_flight: u32 = |it| it.tx_in_flight;
        lost_since_sent: u32 = |it| it.lost_since_sent;
    }
}

event! {
    /// An ACK was processed.
    PyAck("Ack", Ack) {
        now_s: f64 = |it| seconds(it.connection.now);
        connection: PyConnection = |it| PyConnection(it.connection);
        prior_in_flight: u32 = |it| it.prior_in_flight;
        newly_delivered: u32 = |it| it.newly_delivered;
        newly_lost: u32 = |it| it.newly_lost;
        newly_acked: u32 = |it| it.newly_acked;
        rtt_s: Option<f64> = |it| it.rtt.map(|rtt| rtt.as_nanos() as f64 / 1e9);
        maybe_delayed: bool = |it| it.maybe_delayed;
        una_advanced: bool = |it| it.una_advanced;
        snd_una: u64 = |it| it.snd_una;
        snd_nxt: u64 = |it| it.snd_nxt;
        sample: PyRateSample = |it| PyRateSample(it.sample);
        cwnd_limited: bool = |it| it.cwnd_limited;
        max_packets_out: u32 = |it| it.max_packets_out;
        may_raise_cwnd: bool = |it| it.may_raise_cwnd;
        may_answer_probe: bool = |it| it.may_answer_probe;
    }
}

event! {
    /// A run of segments that left together was marked lost.
    PyLost("Lost", Lost) {
        segments: u32 = |it| it.units;
        new_range: bool = |it| it.new_range;
        tx_in_flight: u32 = |it| it.tx_in_flight;
        tx_delivered: u64 = |it| it.tx_delivered;
        tx_lost: u64 = |it| it.tx_lost;
        lost: u64 = |it| it.lost;
        app_limited: bool = |it| it.app_limited;
    }
}

event! {
    /// A tail probe repaired a loss.
    PyTailRepair("TailRepair", TailRepair) {
        now_s: f64 = |it| seconds(it.now);
        delivered: u64 = |it| it.delivered;
        segments: u32 = |it| it.units;
        app_limited: bool = |it| it.app_limited;
    }
}

event! {
    /// What an ACK says of congestion marks.
    PyCeMarks("CeMarks", CeMarks) {
        echoed: bool = |it| it.echoed;
        segments: u32 = |it| it.units;
        delivered: u64 = |it| it.delivered;
        snd_una: u64 = |it| it.snd_una;
        snd_nxt: u64 = |it| it.snd_nxt;
    }
}

event! {
    /// The recovery state changed.
    PyStateChange("StateChange", StateChange) {
        connection: PyConnection = |it| PyConnection(it.connection);
        to: &'static str = |it| it.to.name();
        reduce: bool = |it| it.reduce;
        proven: bool = |it| it.proven;
        trigger: &'static str = |it| match it.trigger { Trigger::Ack => "ack", Trigger::Timer => "timer" };
    }
}

event! {
    /// The reduction last begun was spurious.
    PyUndo("Undo", Undo) {
        connection: PyConnection = |it| PyConnection(it.connection);
    }
}
