//! A world whose path may be of several kinds: what [`Simulation`](crate::Simulation) asks of it.

use std::fmt;
use std::sync::atomic::AtomicBool;

use fullpipe_path::{Carrier, Chain, Change, Hops, QueueView};
use fullpipe_record::{FlowSeries, LinkSeries, Run};
use fullpipe_scenario::spec::Spec;
use fullpipe_units::Time;

use crate::agenda::{Agenda, Plain};
use crate::error::SimError;
use crate::flow::Flow;
use crate::way::Way;
use crate::world::World;

/// Builds the [`Running`](crate::running::Running) world of a scenario, with chains of this kind: they carry segments one way
/// and acknowledgements the other, or both both ways where a flow goes the other way.
macro_rules! world_of {
    ($agenda:ident, $chain:ident, $spec:ident, $seed:ident, $forward:expr, $reverse:expr $(,)?) => {{
        use $crate::packet::{Acknowledgement, Either, Segment};
        use $crate::{running::Running, world::World};
        let world: Box<dyn Running + Send> = if $spec.has_reverse_flows() {
            let world: World<$agenda, $chain<Either>, $chain<Either>> =
                World::new($spec, $seed, $forward, $reverse)?;
            Box::new(world)
        } else {
            let world: World<$agenda, $chain<Segment>, $chain<Acknowledgement>> =
                World::new($spec, $seed, $forward, $reverse)?;
            Box::new(world)
        };
        world
    }};
}
pub(crate) use world_of;

/// The oracle of [`run`](crate::run): the same record by the simplest means, one event for each packet and hop, from one heap for each
/// direction and one for all timers. Tests compare the two; it is slower, and has no other use.
///
/// # Errors
/// When the run is cancelled, or the path cannot be built.
///
/// # Panics
/// As `run`, and when a controller is not built in: nobody can bring one here.
// Compiled only where it is called: a second caller of everything would change what is inlined into `run`.
#[inline]
pub fn run_plainly(spec: &Spec, seed: u64, cancel: &AtomicBool) -> Result<Run, SimError> {
    let mut world = world_of!(Plain, Hops, spec, seed, Hops::new, Hops::new);
    if !world.advance(Time::NEVER, cancel) {
        return Err(SimError::Cancelled);
    }
    Ok(world.into_run(spec, seed))
}

/// A path that may change.
pub(crate) trait Changing {
    /// Changes the element at `index` from `from` on; see [`Chain::change`].
    fn change(&mut self, now: Time, index: usize, from: Time, change: Change);
}

impl<P: Clone> Changing for Chain<P> {
    fn change(&mut self, now: Time, index: usize, from: Time, change: Change) {
        Chain::change(self, now, index, from, change);
    }
}

impl<P: Clone> Changing for Hops<P> {
    fn change(&mut self, _: Time, _: usize, _: Time, _: Change) {
        unreachable!("the oracle is built as fixed")
    }
}

/// A world, whatever carries its packets.
pub(crate) trait Running: fmt::Debug {
    /// See [`World::has_begun`].
    fn has_begun(&self) -> bool;
    /// See [`World::is_over`].
    fn is_over(&self) -> bool;
    /// See [`World::advance`].
    fn advance(&mut self, until: Time, cancel: &AtomicBool) -> bool;
    /// How far it has come.
    fn now(&self) -> Time;
    /// When it ends at the latest.
    fn end(&self) -> Time;
    /// Its flows.
    fn flows(&self) -> &[Flow];
    /// One of them.
    fn flow_mut(&mut self, index: usize) -> &mut Flow;
    /// The samples of one of them.
    fn flow_series(&self, flow: usize) -> &FlowSeries;
    /// The samples of the queues, forward and reverse.
    fn link_series(&self) -> [&[LinkSeries]; 2];
    /// The queues, those of the forward path first.
    fn queues(&self) -> Vec<QueueView<'_>>;
    /// Changes an element of the forward path, or of the reverse one.
    fn change(&mut self, forward: bool, index: usize, from: Time, change: Change);
    /// See [`World::into_run`].
    fn into_run(self: Box<Self>, spec: &Spec, seed: u64) -> Run;
}

impl<A, F, R> Running for World<A, F, R>
where
    A: Agenda + fmt::Debug,
    F: Way + Changing + fmt::Debug,
    R: Way + Changing + fmt::Debug,
{
    fn has_begun(&self) -> bool {
        World::has_begun(self)
    }

    fn is_over(&self) -> bool {
        World::is_over(self)
    }

    fn advance(&mut self, until: Time, cancel: &AtomicBool) -> bool {
        World::advance(self, until, cancel)
    }

    fn now(&self) -> Time {
        self.now
    }

    fn end(&self) -> Time {
        self.end
    }

    fn flows(&self) -> &[Flow] {
        &self.flows
    }

    fn flow_mut(&mut self, index: usize) -> &mut Flow {
        &mut self.flows[index]
    }

    fn flow_series(&self, flow: usize) -> &FlowSeries {
        World::flow_series(self, flow)
    }

    fn link_series(&self) -> [&[LinkSeries]; 2] {
        [&self.forward_series, &self.reverse_series]
    }

    fn queues(&self) -> Vec<QueueView<'_>> {
        let (forward, reverse) = (&self.forward.chain, &self.reverse.chain);
        let there = (0..forward.queues()).map(|index| forward.queue(index));
        there.chain((0..reverse.queues()).map(|index| reverse.queue(index))).collect()
    }

    fn change(&mut self, forward: bool, index: usize, from: Time, change: Change) {
        if forward {
            self.forward.chain.change(self.now, index, from, change);
        } else {
            self.reverse.chain.change(self.now, index, from, change);
        }
    }

    fn into_run(self: Box<Self>, spec: &Spec, seed: u64) -> Run {
        World::into_run(*self, spec, seed)
    }
}
