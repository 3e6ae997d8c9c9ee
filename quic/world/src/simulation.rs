//! A run as an object: advanced step by step, watched, changed and finished.
//!
//! Its endpoints live on a thread of their own, because the stacks' randomness belongs to a thread; every method asks that thread
//! and waits for its answer. So the object can be used from any thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use fullpipe_path::Change;
use fullpipe_record::{QueueSample, Run, Sample};
use fullpipe_scenario::spec::{Spec, Spot};
use fullpipe_units::{Duration, Time};

use crate::cc::Own;
use crate::change::{Place, TextChange};
use crate::error::QuicError;
use crate::looks::{self, LookRequest, Looks};
use crate::options::Options;
use crate::run::{begin, caught};
use crate::world::World;

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Advancing it changes something.
    Running,
    /// The time of the scenario is over, or every flow has ended.
    Over,
}

/// A flow as it was when it was asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowNow {
    /// Its name in records.
    pub label: String,
    /// Its controller, as the scenario says it.
    pub controller: String,
    /// What a sample at this instant shows; `None` until it is connected.
    pub sample: Option<Sample>,
    /// Datagrams that the sender has sent.
    pub segments_sent: u64,
    /// Packets of the sender's that were acknowledged.
    pub delivered_segments: u64,
    /// Packets that the sender declared lost; 0 if its stack does not tell.
    pub lost: u64,
    /// How often the sender found the path in persistent congestion; 0 if its stack does not tell.
    pub timeouts: u64,
    /// Payload bytes that the receiver's application has: in order, or in any order for a bulk flow.
    pub delivered_bytes: u64,
    /// How long each transfer of its application took that is complete.
    pub transfers_ns: Vec<u64>,
    /// When its measures ended, and whether it had sent everything; `None` while they go on.
    pub ended: Option<(Time, bool)>,
}

/// A queue as it was when it was asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueNow {
    /// Its name in records.
    pub name: String,
    /// What a sample at this instant shows.
    pub sample: QueueSample,
}

type Work = Box<dyn FnOnce(&mut World) + Send>;

/// A run of a scenario.
///
/// ```
/// use fullpipe_path::Change;
/// use fullpipe_quic::{Place, Simulation, Status};
/// use fullpipe_scenario::{Format, resolve};
/// use fullpipe_units::{Rate, Time};
///
/// let document = r#"
///     name = "a rate that falls"
///     duration = "4 s"
///     path = { rate = "20 Mbit/s", rtt = "40 ms" }
///     flows = [{ controller = "noq:cubic" }]
/// "#;
/// let mut simulation = Simulation::new(&resolve(document, Format::Toml, None)?, 1)?;
/// assert_eq!(simulation.advance(Time::from_micros(2_000_000))?, Status::Running);
/// assert!(simulation.flow(0)?.sample.unwrap().cwnd > 40);
/// simulation.change(Place::Path, Change::Rate(Rate::from_bits_per_sec(5_000_000)))?;
/// assert_eq!(simulation.advance(Time::NEVER)?, Status::Over);
/// let run = simulation.finish()?;
/// assert_eq!(run.links[0].totals.capacity_bytes, Some(2 * (2_500_000 + 625_000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    spec: Spec,
    seed: u64,
    options: Options,
    work: Option<SyncSender<Work>>,
    thread: Option<JoinHandle<Result<(), QuicError>>>,
    cancel: Arc<AtomicBool>,
    now: Time,
    end: Time,
    begun: bool,
    over: bool,
    /// Why it cannot go on.
    broken: Option<QuicError>,
}

impl Simulation {
    /// A run that has not begun. `seed` replaces the one in `spec`.
    ///
    /// # Errors
    /// As [`run`](crate::run).
    pub fn new(spec: &Spec, seed: u64) -> Result<Simulation, QuicError> {
        Simulation::with(spec, seed, Options::default(), Vec::new())
    }

    /// The same with other options, and with controllers that the program brings.
    ///
    /// # Errors
    /// As [`run`](crate::run).
    pub fn with(spec: &Spec, seed: u64, options: Options, own: Vec<Own>) -> Result<Simulation, QuicError> {
        let (work, works) = sync_channel::<Work>(1);
        let (made, is_made) = sync_channel(1);
        let of_thread = spec.clone();
        let thread = std::thread::Builder::new().name("quic run".to_owned());
        let thread = thread
            .spawn(move || {
                caught(|| {
                    let made_world =
                        begin(seed).and_then(|()| World::new(&of_thread, seed, options, &own, false, None));
                    let mut world = match made_world {
                        Ok(world) => {
                            let _ = made.send(Ok(world.end));
                            world
                        }
                        Err(error) => {
                            let _ = made.send(Err(error));
                            return Ok(());
                        }
                    };
                    serve(&mut world, &works);
                    Ok(())
                })
            })
            .map_err(|error| QuicError::Panicked(format!("no thread could be started: {error}")))?;
        // A thread that ends without an answer panicked.
        let Ok(end) = is_made.recv() else { return Err(of_ended(Some(thread))) };
        let end = end?;
        Ok(Simulation {
            spec: spec.clone(),
            seed,
            options,
            work: Some(work),
            thread: Some(thread),
            cancel: Arc::new(AtomicBool::new(false)),
            now: Time::ZERO,
            end,
            begun: false,
            over: false,
            broken: None,
        })
    }

    /// Has the run's thread do something.
    fn ask<T: Send + 'static>(
        &mut self,
        work: impl FnOnce(&mut World) -> T + Send + 'static,
    ) -> Result<T, QuicError> {
        if let Some(error) = &self.broken {
            return Err(error.clone());
        }
        let (answer, answers) = sync_channel(1);
        let work: Work = Box::new(move |world| {
            let _ = answer.send(work(world));
        });
        let asked = self.work.as_ref().is_some_and(|thread| thread.send(work).is_ok());
        if asked && let Ok(answer) = answers.recv() {
            return Ok(answer);
        }
        // The thread has ended: by a panic, because nothing else ends it.
        let error = of_ended(self.thread.take());
        self.broken = Some(error.clone());
        Err(error)
    }

    /// Runs to `until`: all that happens until then, at that very nanosecond too, and nothing later. Two steps are the same as
    /// one.
    ///
    /// # Errors
    /// When it was cancelled, or a connection broke: then it cannot go on.
    pub fn advance(&mut self, until: Time) -> Result<Status, QuicError> {
        self.begun = true;
        let cancel = self.cancel.clone();
        let (done, now, end, over) = self.ask(move |world| {
            let done = world.advance(until, &cancel);
            (done, world.now, world.end, world.is_over())
        })?;
        (self.now, self.end, self.over) = (now, end, over);
        self.went(done).map(|()| self.status())
    }

    /// Advances step by step, and looks at the first flow behind each step. What the run comes to is the same as with
    /// [`Simulation::advance`].
    ///
    /// # Errors
    /// As [`Simulation::advance`].
    pub fn look(&mut self, request: &LookRequest) -> Result<Looks, QuicError> {
        self.begun = true;
        let (request, cancel) = (request.clone(), self.cancel.clone());
        let (looks, done, now, end, over) = self.ask(move |world| {
            let (looks, done) = looks::look(world, &request, &cancel);
            (looks, done, world.now, world.end, world.is_over())
        })?;
        (self.now, self.end, self.over) = (now, end, over);
        self.went(done).map(|()| looks)
    }

    /// What becomes of it if it could not be advanced.
    fn went(&mut self, done: Result<(), QuicError>) -> Result<(), QuicError> {
        match &done {
            Ok(()) => {}
            Err(QuicError::Cancelled) => self.cancel.store(false, Ordering::Relaxed),
            Err(error) => self.broken = Some(error.clone()),
        }
        done
    }

    /// Setting this ends an [`advance`](Simulation::advance) soon; the run may then be advanced again.
    pub fn cancel(&self) -> Arc<AtomicBool> {
        self.cancel.clone()
    }

    /// Whether it goes on.
    pub fn status(&self) -> Status {
        if self.over { Status::Over } else { Status::Running }
    }

    /// How far it has come.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When it ends at the latest.
    pub fn end(&self) -> Time {
        self.end
    }

    /// The scenario, with all changes so far.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Changes the path now, as the simulator's `Simulation::change` does.
    ///
    /// # Errors
    /// When there is no such element, or it cannot change so; nothing has changed then.
    pub fn change(&mut self, place: Place<'_>, change: Change) -> Result<(), QuicError> {
        let spot = self.spec.spot(place, change)?;
        self.spec.check_change(spot, self.now, change)?;
        self.apply(&[(spot, change)])
    }

    /// Changes the round-trip time of the path, half of it on each way, like `path.rtt` in a scenario.
    ///
    /// # Errors
    /// When the path has no delay at the end of both ways.
    pub fn change_rtt(&mut self, rtt: Duration) -> Result<(), QuicError> {
        let changes = self.spec.rtt_changes(rtt)?;
        self.apply(&changes)
    }

    /// Changes what is said: all of it, or nothing if some of it cannot be.
    ///
    /// # Errors
    /// When an amount cannot be read, there is no such element, or it cannot change so.
    pub fn change_text(&mut self, message: &TextChange) -> Result<(), QuicError> {
        let changes = message.read(&self.spec, self.now)?;
        self.apply(&changes)
    }

    fn apply(&mut self, changes: &[(Spot, Change)]) -> Result<(), QuicError> {
        for &(spot, change) in changes {
            let from = change.from(self.now, self.begun);
            self.spec.change(spot, from, change)?;
            self.ask(move |world| world.change(spot.forward, spot.index, from, change))?;
        }
        Ok(())
    }

    /// How many flows there are.
    pub fn flows(&self) -> usize {
        self.spec.flows.len()
    }

    /// A flow as it is now.
    ///
    /// # Errors
    /// When the run cannot go on.
    ///
    /// # Panics
    /// If no flow has this `index`.
    pub fn flow(&mut self, index: usize) -> Result<FlowNow, QuicError> {
        let spec = &self.spec.flows[index];
        let (label, controller) = (spec.label.clone(), spec.controller.text().to_owned());
        self.ask(move |world| {
            world.ask(index, |flow, now| {
                let measured = flow.measured(now, false);
                FlowNow {
                    label,
                    controller,
                    sample: flow.sample(now),
                    segments_sent: measured.datagrams,
                    delivered_segments: flow.acked(),
                    lost: measured.lost.unwrap_or(0),
                    timeouts: measured.collapses.unwrap_or(0),
                    delivered_bytes: measured.delivered_bytes,
                    transfers_ns: flow.transfers_ns().to_vec(),
                    ended: flow.ended().map(|ended| (ended.at, ended.completed)),
                }
            })
        })
    }

    /// The queues as they are now: those on the way to the receivers, then those on the way back.
    ///
    /// # Errors
    /// When the run cannot go on.
    pub fn queues(&mut self) -> Result<Vec<QueueNow>, QuicError> {
        let queues = self.ask(|world| world.queues())?;
        Ok(queues.into_iter().map(|(name, sample)| QueueNow { name, sample }).collect())
    }

    /// What flows of stacks in processes of their own have sent so far, in the order of the flows: 16 bytes a datagram, as a
    /// departure of the protocol without its bytes. Empty without [`Options::trace`].
    ///
    /// # Errors
    /// When the run cannot go on.
    pub fn trace(&mut self) -> Result<Vec<u8>, QuicError> {
        self.ask(|world| world.trace())
    }

    /// Ends the run where it is, and gives its record: of the whole scenario if it is over, or else of the time until now.
    ///
    /// # Errors
    /// When the run cannot go on.
    pub fn finish(mut self) -> Result<Run, QuicError> {
        let (spec, seed, options) = (self.spec.clone(), self.seed, self.options);
        self.ask(move |world| world.record(&spec, seed, options))
    }
}

/// Why a run's thread has ended.
fn of_ended(thread: Option<JoinHandle<Result<(), QuicError>>>) -> QuicError {
    match thread.map(JoinHandle::join) {
        Some(Ok(Err(error))) => error,
        _ => QuicError::Panicked("the run's thread has ended".to_owned()),
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        self.cancel.store(true, Ordering::Relaxed);
        // The thread ends when nobody can ask it any more.
        drop(self.work.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Does what is asked for until nobody asks.
fn serve(world: &mut World, works: &Receiver<Work>) {
    while let Ok(work) = works.recv() {
        work(world);
    }
}
