//! A run as an object: advanced step by step, watched, changed and finished.

use std::sync::atomic::AtomicBool;

use fullpipe_export::Log;
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Chain, Change, MakeDiscipline, OwnDisciplines};
use fullpipe_record::{FlowSeries, LinkSeries, QueueSample, Run, Sample};
use fullpipe_scenario::spec::{FlowSpec, Place, Spec, Spot};
use fullpipe_units::{Bytes, Duration, Rate, Time};

use crate::agenda::Winners;
use crate::error::SimError;
use crate::flow::Flow;
use crate::plug::{MakeController, Maker, OwnController};
use crate::running::{Running, world_of};
use crate::series;
use crate::tap::{Tap, Tapped};

/// Whether a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Advancing it changes something.
    Running,
    /// The time of the scenario is over, or every flow has ended.
    Over,
}

/// A run of a scenario.
///
/// ```
/// use fullpipe_path::Change;
/// use fullpipe_scenario::{Format, resolve};
/// use fullpipe_sim::{Place, Simulation, Status};
/// use fullpipe_units::{Rate, Time};
///
/// let document = r#"
///     name = "a rate that falls"
///     duration = "4 s"
///     path = { rate = "20 Mbit/s", rtt = "40 ms" }
///     flows = [{ controller = "bbr1" }]
/// "#;
/// let mut simulation = Simulation::new(&resolve(document, Format::Toml, None)?, 1)?;
/// assert_eq!(simulation.advance(Time::from_micros(2_000_000))?, Status::Running);
/// assert!(simulation.flow(0).sample().unwrap().cwnd > 66);
/// simulation.change(Place::Path, Change::Rate(Rate::from_bits_per_sec(5_000_000)))?;
/// assert_eq!(simulation.advance(Time::NEVER)?, Status::Over);
/// let run = simulation.finish();
/// assert_eq!(run.links[0].totals.capacity_bytes, Some(2 * (2_500_000 + 625_000)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Simulation {
    spec: Spec,
    seed: u64,
    world: Box<dyn Running + Send>,
    /// Whether the path can change.
    changing: bool,
}

impl Simulation {
    /// A run that has not begun. `seed` replaces the one in `spec`.
    ///
    /// # Errors
    /// When the path cannot be built (`scenario` resolves only paths that can).
    pub fn new(spec: &Spec, seed: u64) -> Result<Simulation, SimError> {
        let world = world_of!(Winners, Chain, spec, seed, Chain::changing, Chain::changing);
        Ok(Simulation { spec: spec.clone(), seed, world, changing: true })
    }

    /// The same run on a path that nobody will change, which is faster: what becomes of a packet can be computed when it is
    /// sent.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn fixed(spec: &Spec, seed: u64) -> Result<Simulation, SimError> {
        let world = world_of!(Winners, Chain, spec, seed, Chain::new, Chain::new);
        Ok(Simulation { spec: spec.clone(), seed, world, changing: false })
    }

    /// The same, and `log` is told what happens to each packet. The record is the same.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    // Compiled only where it is called: a second caller of everything would change what is inlined into the others.
    #[inline]
    pub fn logged(spec: &Spec, seed: u64, log: Box<dyn Log + Send>) -> Result<Simulation, SimError> {
        let tap = Tap::new(spec, log);
        let world = world_of!(
            Winners,
            Tapped,
            spec,
            seed,
            |elements, delays, seed| Tapped::new(&tap, elements, delays, seed),
            |elements, delays, seed| Tapped::new(&tap, elements, delays, seed),
        );
        Ok(Simulation { spec: spec.clone(), seed, world, changing: false })
    }

    /// A run in which queues have disciplines that are not built in: by the name of the queue in the scenario, in either
    /// direction. Each replaces the one that the scenario names.
    ///
    /// # Errors
    /// As [`Simulation::new`], and when there is no such queue or it takes no discipline.
    pub fn with_disciplines(
        spec: &Spec,
        seed: u64,
        own: impl IntoIterator<Item = (String, MakeDiscipline)>,
    ) -> Result<Simulation, SimError> {
        let (mut forward, mut reverse) = (OwnDisciplines::new(), OwnDisciplines::new());
        for (name, make) in own {
            let place =
                |elements: &[ElementConfig]| elements.iter().position(|one| one.name() == Some(&name));
            if let Some(index) = place(&spec.forward) {
                forward.insert(index, make);
            } else if let Some(index) = place(&spec.reverse) {
                reverse.insert(index, make);
            } else {
                let names = spec.forward.iter().chain(&spec.reverse).filter_map(ElementConfig::name);
                let expected = format!("one of {}", names.collect::<Vec<_>>().join(", "));
                return Err(SimError::refused("path.queue", format!("there is no queue {name}"), expected));
            }
        }
        let world = world_of!(
            Winners,
            Chain,
            spec,
            seed,
            |elements, delays, seed| Chain::changing_with_disciplines(elements, delays, seed, forward),
            |elements, delays, seed| Chain::changing_with_disciplines(elements, delays, seed, reverse),
        );
        Ok(Simulation { spec: spec.clone(), seed, world, changing: true })
    }

    /// Gives a flow, whose controller in the scenario is `own:NAME` or `FILE.py:CLASS`, that controller. The flow is paced if
    /// `paced`, or if the scenario says so.
    ///
    /// # Errors
    /// When there is no such flow, when the scenario gives it a built-in controller, or when the run has begun.
    pub fn controller(&mut self, flow: usize, paced: bool, own: OwnController) -> Result<(), SimError> {
        self.controller_from(flow, paced, Box::new(move |_, _| own))
    }

    /// The same of a controller that is made when the connection is established.
    ///
    /// # Errors
    /// As [`Simulation::controller`].
    pub fn controller_from(
        &mut self,
        flow: usize,
        paced: bool,
        make: MakeController,
    ) -> Result<(), SimError> {
        let field = format!("flows[{flow}].controller");
        let Some(spec) = self.spec.flows.get(flow) else {
            let expected = format!("one of the {} flows of the scenario", self.spec.flows.len());
            return Err(SimError::refused(field, "there is no such flow", expected));
        };
        if !spec.controller.is_own() {
            let given = format!("the scenario says {}", spec.controller);
            return Err(SimError::refused(field, given, "own:NAME in the scenario"));
        }
        if self.world.has_begun() {
            let given = "the run has begun";
            return Err(SimError::refused(field, given, "a controller before the first advance"));
        }
        let flow = self.world.flow_mut(flow);
        flow.own_controller(Maker(make), paced);
        Ok(())
    }

    /// Runs to `until`: all that happens until then, at that very nanosecond too, and nothing later. A time that is past changes
    /// nothing, and two steps are the same as one.
    ///
    /// # Errors
    /// When a flow has no controller.
    ///
    /// # Panics
    /// When an invariant of the simulator is broken.
    pub fn advance(&mut self, until: Time) -> Result<Status, SimError> {
        self.advance_unless(until, &AtomicBool::new(false))
    }

    /// The same; setting `cancel` ends it soon.
    ///
    /// # Errors
    /// As [`Simulation::advance`], and when it was cancelled.
    pub fn advance_unless(&mut self, until: Time, cancel: &AtomicBool) -> Result<Status, SimError> {
        if !self.world.has_begun() {
            self.check_controllers()?;
        }
        if !self.world.advance(until, cancel) {
            return Err(SimError::Cancelled);
        }
        Ok(self.status())
    }

    /// Every controller that is not built in has been given.
    fn check_controllers(&self) -> Result<(), SimError> {
        self.spec.check_no_program("the simulator").map_err(|error| {
            let given = format!("{} {}", error.given, error.problem);
            SimError::refused(error.field, given, "a controller, or the kernel world (--world kernel)")
        })?;
        if let Some(flow) = self.spec.flows.iter().position(|flow| flow.controller.stack().is_some()) {
            return Err(SimError::refused(
                format!("flows[{flow}].controller"),
                format!("only the world quic runs {}", self.spec.flows[flow].controller),
                "a controller of Fullpipe's or of your own, or the world quic (--world quic)",
            ));
        }
        let missing =
            |(flow, spec): (&Flow, &FlowSpec)| !flow.has_own_controller() && spec.controller.is_own();
        match self.world.flows().iter().zip(&self.spec.flows).position(missing) {
            None => Ok(()),
            Some(flow) => Err(SimError::refused(
                format!("flows[{flow}].controller"),
                format!("{} is not built in, and nobody has brought it", self.spec.flows[flow].controller),
                "that controller before the run begins",
            )),
        }
    }

    /// Whether it goes on.
    pub fn status(&self) -> Status {
        if self.world.is_over() { Status::Over } else { Status::Running }
    }

    /// How far it has come.
    pub fn now(&self) -> Time {
        self.world.now()
    }

    /// When it ends at the latest.
    pub fn end(&self) -> Time {
        self.world.end()
    }

    /// The scenario, with all changes so far. Run from its start, it gives the same record; only the size of a buffer has no
    /// schedule, and is that of the start.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// Changes the path now. A rate holds at once, for what waits too; a delay or a loss holds for packets that come later, as
    /// in a schedule; a change of the scenario's own that is still to come takes its place in time.
    ///
    /// # Errors
    /// When there is no such element, or it cannot change so; nothing has changed then.
    pub fn change(&mut self, place: Place<'_>, change: Change) -> Result<(), SimError> {
        self.check_changing()?;
        let spot = self.spec.spot(place, change)?;
        self.apply(spot, change)
    }

    /// Whether that change is possible now; changes nothing.
    ///
    /// # Errors
    /// As [`Simulation::change`].
    pub fn check(&self, place: Place<'_>, change: Change) -> Result<(), SimError> {
        self.check_changing()?;
        Ok(self.spec.check_change(self.spec.spot(place, change)?, self.now(), change)?)
    }

    /// Changes the round-trip time of the path, half of it on each way, like `path.rtt` in a scenario.
    ///
    /// # Errors
    /// When the path has no delay at the end of both ways.
    pub fn change_rtt(&mut self, rtt: Duration) -> Result<(), SimError> {
        self.check_changing()?;
        self.spec.rtt_changes(rtt)?.into_iter().try_for_each(|(spot, change)| self.apply(spot, change))
    }

    /// What the bottleneck's rate carries in a round trip without queues: one `bdp`. Both are as they are now, or as given, where
    /// they are about to change. `None` if the bottleneck is no link.
    pub fn bdp(&self, rate: Option<Rate>, rtt: Option<Duration>) -> Option<Bytes> {
        self.spec.bdp(self.now(), rate, rtt)
    }

    /// Whether the path can change at all.
    pub(crate) fn check_changing(&self) -> Result<(), SimError> {
        if self.changing {
            return Ok(());
        }
        Err(SimError::refused("path", "it was built as fixed", "a simulation made by Simulation::new"))
    }

    /// Changes an element of a path that can change.
    pub(crate) fn apply(&mut self, spot: Spot, change: Change) -> Result<(), SimError> {
        let from = change.from(self.now(), self.world.has_begun());
        self.spec.change(spot, from, change)?;
        self.world.change(spot.forward, spot.index, from, change);
        Ok(())
    }

    /// How many flows there are.
    pub fn flows(&self) -> usize {
        self.world.flows().len()
    }

    /// A flow as it is now.
    ///
    /// # Panics
    /// If no flow has this `index`.
    pub fn flow(&self, index: usize) -> FlowView<'_> {
        FlowView { flow: &self.world.flows()[index], spec: &self.spec.flows[index], now: self.world.now() }
    }

    /// The samples of a flow so far.
    ///
    /// # Panics
    /// If no flow has this `index`.
    pub fn flow_series(&self, index: usize) -> &FlowSeries {
        assert!(index < self.flows(), "flow {index} of {}", self.flows());
        self.world.flow_series(index)
    }

    /// The queues as they are now: those on the way to the receivers, then those on the way back.
    pub fn queues(&self) -> Vec<QueueNow<'_>> {
        let now = self.world.now();
        let queues = self.world.queues().into_iter();
        queues.map(|queue| QueueNow { name: queue.name(), sample: QueueSample::of(queue, now) }).collect()
    }

    /// The samples of the queues so far, in the order of [`Simulation::queues`].
    pub fn link_series(&self) -> impl Iterator<Item = &LinkSeries> {
        let [forward, reverse] = self.world.link_series();
        forward.iter().chain(reverse)
    }

    /// Ends the run where it is, and gives its record: of the whole scenario if it is over, or else of the time until now.
    ///
    /// # Panics
    /// When packets or bytes are not conserved: a defect of the simulator.
    pub fn finish(self) -> Run {
        self.world.into_run(&self.spec, self.seed)
    }
}

/// A flow as it is now.
#[derive(Clone, Copy, Debug)]
pub struct FlowView<'a> {
    flow: &'a Flow,
    spec: &'a FlowSpec,
    now: Time,
}

impl<'a> FlowView<'a> {
    /// Its name in records.
    pub fn label(&self) -> &'a str {
        &self.spec.label
    }

    /// Its controller, as the scenario says it.
    pub fn controller(&self) -> &'a str {
        self.spec.controller.text()
    }

    /// What a sample at this instant shows: window, pacing rate, RTT, phase and more. `None` until it is connected; media never is.
    pub fn sample(&self) -> Option<Sample> {
        series::sample(self.now, self.flow)
    }

    /// Segments marked lost so far, each time counted.
    pub fn lost(&self) -> u64 {
        self.flow.sender.as_ref().map_or(0, |sender| sender.lost())
    }

    /// Segments sent so far, those sent again counted too.
    pub fn segments_sent(&self) -> u64 {
        self.flow.counters().segments_sent
    }

    /// Segments that the sender knows to be delivered, each once: acknowledged or reported by SACK. The SYN counts as one.
    pub fn delivered_segments(&self) -> u64 {
        self.flow.sender.as_ref().map_or(0, |sender| sender.delivered_segments())
    }

    /// Retransmission timeouts so far.
    pub fn timeouts(&self) -> u64 {
        self.flow.sender.as_ref().map_or(0, |sender| sender.counters.timeouts)
    }

    /// Payload bytes that the receiver's application has.
    pub fn delivered_bytes(&self) -> u64 {
        self.flow.delivered_bytes()
    }

    /// How long each transfer of its application took that is complete, or each frame; empty for an application that has none.
    pub fn transfers_ns(&self) -> Vec<u64> {
        self.flow.transfers_ns()
    }

    /// When its measures ended, and whether it had sent everything; `None` while they go on.
    pub fn ended(&self) -> Option<(Time, bool)> {
        self.flow.ended().map(|ended| (ended.at, ended.completed))
    }
}

/// A queue as it is now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueNow<'a> {
    /// Its name in records.
    pub name: &'a str,
    /// What a sample at this instant shows.
    pub sample: QueueSample,
}

/// Runs a scenario from start to end. `seed` replaces the one in `spec`. Setting `cancel` ends the run soon.
///
/// # Errors
/// When the run is cancelled, when the path cannot be built (`scenario` resolves only paths that can), or when a controller is
/// not built in.
///
/// # Panics
/// When packets or bytes are not conserved: a defect of the simulator.
pub fn run(spec: &Spec, seed: u64, cancel: &AtomicBool) -> Result<Run, SimError> {
    let mut simulation = Simulation::fixed(spec, seed)?;
    simulation.advance_unless(Time::NEVER, cancel)?;
    Ok(simulation.finish())
}
