//! A run as an object for Python, and a whole run with controllers written in Python.
//!
//! No thread is started: the run goes on in slices of a few thousand events, and between them this one looks for signals and for
//! what user code has raised. Without user code, a slice runs without the GIL.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use fullpipe_record::Sample;
use fullpipe_scenario::quantity::{Quantity, QuantityText};
use fullpipe_scenario::spec::Spec;
use fullpipe_sim::{SimError, Simulation, Status, TextChange};
use fullpipe_units::{Duration, Time};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

use crate::controller::{Brought, Faults, plug};
use crate::errors::{change_error, scenario_error, sim_error};
use crate::logs::{LoggedSimulation, Logs};
use crate::{Answer, Cancel, PyAnswer, read_spec};

/// Runs a spec whose flows have controllers of the user's own, from start to end. With `logs`, its packets are logged.
#[pyfunction]
#[pyo3(signature = (spec_json, seed, controllers, cancel=None, logs=None))]
pub(crate) fn simulate_with<'py>(
    py: Python<'py>,
    spec_json: &str,
    seed: u64,
    controllers: Vec<Brought>,
    cancel: Option<Bound<'py, Cancel>>,
    logs: Option<Bound<'py, Logs>>,
) -> PyResult<PyAnswer<'py>> {
    let spec = read_spec(py, spec_json)?;
    let stop = cancel.as_ref().map(|cancel| &*cancel.get().flag);
    let Some(logs) = logs.as_ref().map(Bound::get) else {
        let made = Simulation::fixed(&spec, seed).map_err(|error| sim_error(py, &error))?;
        let mut driven = Driven::new(py, made, controllers)?;
        driven.advance(py, Time::NEVER, stop)?;
        let answer = py.detach(move || Answer::of(driven.simulation.finish(), &spec));
        return Ok(answer.into_python(py));
    };
    let LoggedSimulation { simulation, files } =
        LoggedSimulation::new(&spec, seed, logs).map_err(|error| error.into_python(py))?;
    let mut driven = Driven::new(py, simulation, controllers)?;
    driven.advance(py, Time::NEVER, stop)?;
    let logged = LoggedSimulation { simulation: driven.simulation, files };
    let run = py.detach(move || logged.finish(logs).map(|run| Answer::of(run, &spec)));
    Ok(run.map_err(|error| error.into_python(py))?.into_python(py))
}

/// A simulation and what its controllers raise.
struct Driven {
    simulation: Simulation,
    faults: Arc<Faults>,
    in_python: bool,
    /// User code has failed, so that the run means nothing any more.
    broken: bool,
}

impl Driven {
    fn new(py: Python<'_>, mut simulation: Simulation, controllers: Vec<Brought>) -> PyResult<Driven> {
        let faults = Arc::new(Faults::default());
        let in_python = !controllers.is_empty();
        plug(py, &mut simulation, controllers, &faults)?;
        Ok(Driven { simulation, faults, in_python, broken: false })
    }

    /// Advances to `until`, and stops at Ctrl-C, when `cancel` is set, and when user code raises.
    fn advance(&mut self, py: Python<'_>, until: Time, cancel: Option<&AtomicBool>) -> PyResult<Status> {
        // Set from the start, it ends every slice.
        let slice = AtomicBool::new(true);
        loop {
            let simulation = &mut self.simulation;
            let ended = if self.in_python {
                simulation.advance_unless(until, &slice)
            } else {
                py.detach(|| simulation.advance_unless(until, &slice))
            };
            self.faults.check(py).inspect_err(|_| self.broken = true)?;
            match ended {
                Ok(status) => return Ok(status),
                Err(SimError::Cancelled) => {
                    if cancel.is_some_and(|cancel| cancel.load(Ordering::Relaxed)) {
                        return Err(sim_error(py, &SimError::Cancelled));
                    }
                    py.check_signals()?;
                }
                Err(error) => return Err(sim_error(py, &error)),
            }
        }
    }

    /// Advances step by step until `most` looks are taken, one shows what is waited for, or it is over; whether it goes on. Without
    /// user code, all steps run without the GIL.
    fn look(
        &mut self,
        py: Python<'_>,
        step: Duration,
        most: usize,
        wait: Option<Wait<'_>>,
    ) -> PyResult<(Vec<Look>, bool)> {
        let slice = AtomicBool::new(true);
        let mut looks = Vec::new();
        let mut until = None;
        let mut status = self.simulation.status();
        let mut last = most == 0;
        while !last {
            let simulation = &mut self.simulation;
            let mut one = || -> Result<bool, SimError> {
                let target = *until.get_or_insert_with(|| simulation.now().saturating_add(step));
                status = simulation.advance_unless(target, &slice)?;
                until = None;
                let look = Look::of(simulation);
                let met = wait.is_some_and(|wait| look.meets(wait));
                looks.push(look);
                Ok(met || status != Status::Running || looks.len() >= most)
            };
            let ended = if self.in_python {
                one()
            } else {
                // The end of a slice is an error, so that signals are seen.
                py.detach(|| {
                    while !one()? {}
                    Ok(true)
                })
            };
            self.faults.check(py).inspect_err(|_| self.broken = true)?;
            match ended {
                Ok(is_last) => last = is_last,
                Err(SimError::Cancelled) => py.check_signals()?,
                Err(error) => return Err(sim_error(py, &error)),
            }
        }
        Ok((looks, status == Status::Running))
    }
}

/// What ends a row of steps early: the first flow is in a phase, or is not.
#[derive(Clone, Copy)]
struct Wait<'a> {
    phase: &'a str,
    is_in: bool,
}

/// The first flow and the queues behind one step.
struct Look {
    sample: Option<Sample>,
    delivered_segments: u64,
    delivered_bytes: u64,
    segments_sent: u64,
    lost: u64,
    timeouts: u64,
    queued_bytes: u64,
}

impl Look {
    fn of(simulation: &Simulation) -> Look {
        let flow = simulation.flow(0);
        Look {
            sample: flow.sample(),
            delivered_segments: flow.delivered_segments(),
            delivered_bytes: flow.delivered_bytes(),
            segments_sent: flow.segments_sent(),
            lost: flow.lost(),
            timeouts: flow.timeouts(),
            queued_bytes: simulation.queues().iter().map(|queue| queue.sample.backlog_bytes).sum(),
        }
    }

    fn meets(&self, wait: Wait<'_>) -> bool {
        (self.sample.as_ref().map(|sample| sample.phase.name()) == Some(wait.phase)) == wait.is_in
    }

    /// The fields of `Seen` in python/fullpipe/conformance/stage.py.
    fn into_python(self, py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
        let sample = self.sample.as_ref();
        PyTuple::new(
            py,
            [
                sample.is_some().into_bound_py_any(py)?,
                self.delivered_segments.into_bound_py_any(py)?,
                sample.map(|sample| PyString::intern(py, sample.phase.name())).into_bound_py_any(py)?,
                sample.map(|sample| PyString::intern(py, sample.ca_state.name())).into_bound_py_any(py)?,
                sample.map(|sample| sample.cwnd).into_bound_py_any(py)?,
                sample.map_or(0, |sample| sample.inflight).into_bound_py_any(py)?,
                sample.and_then(|sample| sample.pacing_bps).into_bound_py_any(py)?,
                sample.and_then(|sample| sample.bandwidth_bps).into_bound_py_any(py)?,
                sample.and_then(|sample| sample.srtt_ns).map(millis).into_bound_py_any(py)?,
                self.delivered_bytes.into_bound_py_any(py)?,
                self.segments_sent.into_bound_py_any(py)?,
                self.lost.into_bound_py_any(py)?,
                self.timeouts.into_bound_py_any(py)?,
                self.queued_bytes.into_bound_py_any(py)?,
            ],
        )
    }
}

/// A run that is advanced step by step.
#[pyclass(frozen, module = "fullpipe._native", name = "Simulation")]
pub(crate) struct PySimulation {
    driven: Mutex<Option<Driven>>,
}

#[pymethods]
impl PySimulation {
    #[new]
    fn new(py: Python<'_>, spec_json: &str, seed: u64, controllers: Vec<Brought>) -> PyResult<PySimulation> {
        let spec = read_spec(py, spec_json)?;
        let simulation = Simulation::new(&spec, seed).map_err(|error| sim_error(py, &error))?;
        Ok(PySimulation { driven: Mutex::new(Some(Driven::new(py, simulation, controllers)?)) })
    }

    /// Runs for a time, or until one; to the end without either. Returns whether it goes on.
    #[pyo3(signature = (duration, until))]
    fn advance(&self, py: Python<'_>, duration: Option<String>, until: Option<String>) -> PyResult<bool> {
        let mut held = self.held()?;
        let driven = running(&mut held)?;
        let until = match (duration, until) {
            (Some(text), _) => driven.simulation.now().saturating_add(message(py, "duration", text)?),
            (None, Some(text)) => Time::ZERO.saturating_add(message(py, "until", text)?),
            (None, None) => Time::NEVER,
        };
        Ok(driven.advance(py, until, None)? == Status::Running)
    }

    /// Runs step by step, `most` times at most, and tells of each what the first flow shows behind it; then whether it goes on. It
    /// ends early behind the first step that shows the flow in `phase`, or without `is_in` in another or none.
    #[pyo3(signature = (step_ns, most, phase=None, is_in=true))]
    fn looks<'py>(
        &self,
        py: Python<'py>,
        step_ns: u64,
        most: usize,
        phase: Option<&str>,
        is_in: bool,
    ) -> PyResult<(Vec<Bound<'py, PyTuple>>, bool)> {
        let mut held = self.held()?;
        let wait = phase.map(|phase| Wait { phase, is_in });
        let (looks, goes_on) = running(&mut held)?.look(py, Duration::from_nanos(step_ns), most, wait)?;
        Ok((looks.into_iter().map(|look| look.into_python(py)).collect::<PyResult<_>>()?, goes_on))
    }

    /// How far it has come, and when it ends at the latest; nanoseconds.
    fn times_ns(&self) -> PyResult<(u64, u64)> {
        self.look(|simulation| (simulation.now().as_nanos(), simulation.end().as_nanos()))
    }

    /// Whether it goes on.
    fn runs(&self) -> PyResult<bool> {
        self.look(|simulation| simulation.status() == Status::Running)
    }

    /// The number of its flows.
    fn flows(&self) -> PyResult<usize> {
        self.look(Simulation::flows)
    }

    /// A flow as it is now. `IndexError` where no flow has the number.
    fn flow(&self, index: usize) -> PyResult<FlowNow> {
        self.look(|simulation| {
            (index < simulation.flows())
                .then(|| FlowNow::of(simulation, index))
                .ok_or_else(|| no_flow(index, simulation.flows()))
        })?
    }

    /// The queues as they are now.
    fn queues(&self) -> PyResult<Vec<QueueNow>> {
        self.look(|simulation| simulation.queues().iter().map(QueueNow::of).collect())
    }

    /// Changes what is given: all of it, or nothing if some of it cannot be.
    #[pyo3(signature = (element, rate, delay, rtt, loss, buffer))]
    #[allow(clippy::too_many_arguments, reason = "one for each keyword of the method in Python")]
    fn change(
        &self,
        py: Python<'_>,
        element: Option<String>,
        rate: Option<String>,
        delay: Option<String>,
        rtt: Option<String>,
        loss: Option<String>,
        buffer: Option<String>,
    ) -> PyResult<()> {
        let mut held = self.held()?;
        let simulation = &mut running(&mut held)?.simulation;
        let message = TextChange { element, rate, delay, rtt, loss, buffer };
        simulation.change_text(&message).map_err(|error| change_error(py, &error))
    }

    /// Ends the run: summary JSON, flow series and link series as Parquet, and the spec with all changes as JSON.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<(PyAnswer<'py>, String)> {
        let mut held = self.held()?;
        running(&mut held)?;
        let Some(driven) = held.take() else { return Err(over()) };
        let spec: Spec = driven.simulation.spec().clone();
        let answer = py.detach(|| Answer::of(driven.simulation.finish(), &spec));
        Ok((answer.into_python(py), spec.to_json()))
    }
}

impl PySimulation {
    /// The simulation, unless a thread or a controller of its own is just using it.
    fn held(&self) -> PyResult<MutexGuard<'_, Option<Driven>>> {
        match self.driven.try_lock() {
            Ok(held) => Ok(held),
            Err(TryLockError::Poisoned(_)) => {
                Err(PyRuntimeError::new_err("the simulation has panicked, and cannot go on"))
            }
            Err(TryLockError::WouldBlock) => Err(PyRuntimeError::new_err(
                "the simulation is being advanced; ask it afterwards, not from a controller or another thread",
            )),
        }
    }

    fn look<T>(&self, see: impl FnOnce(&Simulation) -> T) -> PyResult<T> {
        let mut held = self.held()?;
        Ok(see(&running(&mut held)?.simulation))
    }
}

/// The error for a number that no flow has.
fn no_flow(index: usize, flows: usize) -> PyErr {
    PyIndexError::new_err(format!("flow {index} does not exist; expected a number below {flows}"))
}

fn running(held: &mut Option<Driven>) -> PyResult<&mut Driven> {
    match held {
        None => Err(over()),
        Some(Driven { broken: true, .. }) => Err(PyRuntimeError::new_err(
            "a controller of this simulation has failed, so that the run means nothing; make a new one",
        )),
        Some(driven) => Ok(driven),
    }
}

fn over() -> PyErr {
    PyRuntimeError::new_err("the simulation is finished; make a new one")
}

/// Reads a quantity; an error names the parameter.
fn message<T: Quantity>(py: Python<'_>, field: &str, text: String) -> PyResult<T> {
    QuantityText::<T>::new(text).read(field).map_err(|error| scenario_error(py, &error))
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// A flow as it was when it was asked for.
#[pyclass(frozen, get_all, module = "fullpipe._native")]
pub(crate) struct FlowNow {
    label: String,
    controller: String,
    connected: bool,
    phase: Option<&'static str>,
    state: Option<&'static str>,
    cwnd: Option<u32>,
    ssthresh: Option<u32>,
    pacing_rate_bps: Option<u64>,
    inflight: u32,
    rtt_ms: Option<f64>,
    min_rtt_ms: Option<f64>,
    delivery_rate_bps: Option<u64>,
    bandwidth_bps: Option<u64>,
    delivered_bytes: u64,
    delivered_segments: u64,
    segments_sent: u64,
    lost: u64,
    retransmits: u64,
    timeouts: u64,
    transfers_ms: Vec<f64>,
    ended_s: Option<f64>,
    completed: bool,
}

impl FlowNow {
    fn of(simulation: &Simulation, index: usize) -> FlowNow {
        let flow = simulation.flow(index);
        let sample = flow.sample();
        let sample = sample.as_ref();
        FlowNow {
            label: flow.label().to_owned(),
            controller: flow.controller().to_owned(),
            connected: sample.is_some(),
            phase: sample.map(|sample| sample.phase.name()),
            state: sample.map(|sample| sample.ca_state.name()),
            cwnd: sample.map(|sample| sample.cwnd),
            ssthresh: sample
                .map(|sample| sample.ssthresh)
                .filter(|&most| most < fullpipe_cc::Limits::INFINITE),
            pacing_rate_bps: sample.and_then(|sample| sample.pacing_bps),
            inflight: sample.map_or(0, |sample| sample.inflight),
            rtt_ms: sample.and_then(|sample| sample.srtt_ns).map(millis),
            min_rtt_ms: sample.and_then(|sample| sample.min_rtt_ns).map(millis),
            delivery_rate_bps: sample.map(|sample| sample.delivery_bps),
            bandwidth_bps: sample.and_then(|sample| sample.bandwidth_bps),
            delivered_bytes: flow.delivered_bytes(),
            delivered_segments: flow.delivered_segments(),
            segments_sent: flow.segments_sent(),
            lost: flow.lost(),
            retransmits: sample.map_or(0, |sample| sample.retransmits),
            timeouts: flow.timeouts(),
            transfers_ms: flow.transfers_ns().into_iter().map(millis).collect(),
            ended_s: flow.ended().map(|(at, _)| at.as_nanos() as f64 / 1e9),
            completed: flow.ended().is_some_and(|(_, completed)| completed),
        }
    }
}

/// A queue as it was when it was asked for.
#[pyclass(frozen, get_all, module = "fullpipe._native")]
pub(crate) struct QueueNow {
    name: String,
    backlog_bytes: u64,
    /// `None` while the link is down for good.
    delay_ms: Option<f64>,
    arrived_packets: u64,
    dropped_packets: u64,
    early_packets: u64,
    marked_packets: u64,
}

impl QueueNow {
    fn of(queue: &fullpipe_sim::QueueNow<'_>) -> QueueNow {
        let sample = &queue.sample;
        QueueNow {
            name: queue.name.to_owned(),
            backlog_bytes: sample.backlog_bytes,
            delay_ms: (sample.delay_ns != u64::MAX).then(|| millis(sample.delay_ns)),
            arrived_packets: sample.arrived_packets,
            dropped_packets: sample.dropped_packets,
            early_packets: sample.early_packets,
            marked_packets: sample.marked_packets,
        }
    }
}
