//! One flow of a recording, from its `init` to its end or to the first difference.

use super::bbr::BbrMachine;
use super::coverage::Coverage;
use super::cubic::CubicMachine;
use super::difference::{Difference, Moment};
use super::layout::{Ops, Private, PrivateField};
use super::machine::Machine;
use super::plausible::{self, Unequal, unequal};
use super::tiers::{filter_step, sampler_step};
use super::{Call, Hook};
use fullpipe_cc::controller::CaState;

/// One field of both states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The kernel's name for it.
    pub field: &'static str,
    /// The value of our controller.
    pub ours: u64,
    /// The value of the kernel.
    pub kernel: u64,
}

/// Linux: `CA_EVENT_LOSS`.
const LOSS: i64 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No call of the flow was seen.
    New,
    /// The handshake is not done. Linux already calls a control then, with its memory cleared: an active opener calls it
    /// for the SYN's ACK, and for the SYN's timeouts.
    Handshake,
    /// After `init`.
    Running,
    /// A difference was found.
    Lost,
}

#[derive(Clone, Copy, Debug)]
struct Flow<M> {
    stage: Stage,
    machine: M,
    /// The kernel's private state after the last call.
    last: Private,
    /// The recovery state that the last call left.
    ca_state: i64,
    /// The window that it left; none if the core changes that one itself.
    cwnd: Option<u32>,
    /// The core has called `ssthresh`, and not `set_state` yet.
    reducing: bool,
}

impl<M: Machine> Flow<M> {
    fn new(machine: M) -> Flow<M> {
        Flow { stage: Stage::New, machine, last: [0; 13], ca_state: 0, cwnd: None, reducing: false }
    }

    /// Replays a call. Returns whether the jiffies ticked in it.
    fn step(&mut self, ops: Ops, call: &Call, coverage: &mut Coverage) -> Result<bool, (Moment, Unequal)> {
        plausible::check(ops, call).map_err(|unequal| (Moment::Record, unequal))?;
        let cleared = call.private_before == [0; 13];
        if cleared && (self.stage == Stage::New || call.hook == Hook::Init) {
            self.machine.clear(call);
            self.stage = Stage::Handshake;
        } else {
            self.check_continuity(ops, call).map_err(|unequal| (Moment::Gap, unequal))?;
        }
        if self.stage == Stage::Running && call.hook != Hook::Init {
            self.machine.before(call).map_err(|unequal| (Moment::Before, unequal))?;
        } else {
            self.machine.follow_socket(call);
        }
        if call.hook == Hook::Init {
            self.machine.init(call);
            self.stage = Stage::Running;
        }
        let saved = (self.machine, *coverage);
        self.machine.make(call, coverage);
        let mut late = false;
        if let Err(unequal) = self.compare(ops, call) {
            let now = (self.machine, *coverage);
            (self.machine, *coverage) = saved;
            late = self.is_made_a_jiffy_later(ops, call, coverage);
            if !late {
                (self.machine, *coverage) = now;
                return Err((Moment::After, unequal));
            }
        }
        self.note(call);
        Ok(late)
    }

    fn note(&mut self, call: &Call) {
        self.last = call.private_after;
        self.ca_state = call.socket.ca_state as i64;
        self.cwnd = (call.hook != Hook::Undo).then_some(call.after.snd_cwnd);
        match call.hook {
            Hook::SetState => (self.ca_state, self.reducing) = (call.arguments[0], false),
            Hook::Ssthresh => self.reducing = true,
            Hook::Init => self.reducing = false,
            _ => {}
        }
    }

    /// A recorder notes the jiffies before the call, and the kernel reads them in it: they may tick in between. Makes
    /// the call as if they had, and returns whether the kernel did the same.
    fn is_made_a_jiffy_later(&mut self, ops: Ops, call: &Call, coverage: &mut Coverage) -> bool {
        let mut later = *call;
        later.socket.jiffies32 = call.socket.jiffies32.wrapping_add(1);
        self.machine.make(&later, coverage);
        self.compare(ops, &later).is_ok()
    }

    /// Whether the kernel can have called nothing since the last call.
    fn check_continuity(&self, ops: Ops, call: &Call) -> Result<(), Unequal> {
        if self.last != call.private_before {
            for field in ops.fields() {
                unequal(&[(field.name, field.get(&self.last), field.get(&call.private_before))])?;
            }
        }
        if self.stage != Stage::Running || call.hook == Hook::Init {
            return Ok(());
        }
        // Nothing else writes it (tcp_set_ca_state).
        unequal(&[("ca_state", self.ca_state as u64, call.socket.ca_state as u64)])?;
        // After a timeout only another one does so between two calls (tcp_enter_loss), and it calls set_state.
        let timeout = call.hook == Hook::SetState || self.reducing;
        if let (Some(cwnd), false) = (self.cwnd, timeout)
            && self.ca_state == CaState::Loss as i64
        {
            unequal(&[("snd_cwnd", cwnd as u64, call.socket.snd_cwnd as u64)])?;
        }
        let (recovery, cwr) = (CaState::Recovery as i64, CaState::Cwr as i64);
        let reduced = [recovery, cwr].contains(&self.ca_state);
        let to = call.arguments[0];
        let expected = match call.hook {
            // Each reduction begins with ssthresh (tcp_init_cwnd_reduction, tcp_enter_loss) ...
            Hook::SetState if !self.reducing && (to == cwr || to == recovery && !reduced) => Hook::Ssthresh,
            // ... continues with set_state, and only the event of a timeout comes between.
            Hook::SetState => Hook::SetState,
            Hook::CwndEvent if to == LOSS => Hook::CwndEvent,
            _ if self.reducing => Hook::SetState,
            hook => hook,
        };
        unequal(&[("hook", expected as u64, call.hook as u64)])
    }

    fn compare(&self, ops: Ops, call: &Call) -> Result<(), Unequal> {
        unequal(&[("returned", self.machine.returned(call) as u64, call.returned as u64)])?;
        if !self.machine.is_settled() {
            return Ok(());
        }
        let ours = self.machine.fields();
        for (field, ours) in ops.fields().iter().zip(ours) {
            let kernel = field.get(&call.private_after);
            if ours != kernel {
                return Err(Unequal { field: field.name, ours, kernel });
            }
        }
        unequal(&self.machine.outcome(call))
    }
}

/// One flow of a recording, replayed call by call.
#[derive(Clone, Copy, Debug)]
pub struct Replay {
    ops: Ops,
    flow: Either,
    coverage: Coverage,
    replayed: u64,
    late: u64,
    skipped: u64,
}

#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "one a replay; a box would need an allocator")]
enum Either {
    Bbr(Flow<BbrMachine>),
    Cubic(Flow<CubicMachine>),
}

/// Calls a method of the variant.
macro_rules! each {
    ($either:expr, $flow:ident => $call:expr) => {
        match $either {
            Either::Bbr($flow) => $call,
            Either::Cubic($flow) => $call,
        }
    };
}

impl Replay {
    /// A flow that uses `ops`, of which no call was seen yet. `hz` is the kernel's `CONFIG_HZ`.
    pub fn new(ops: Ops, hz: u32) -> Replay {
        let hz = hz.clamp(1, 1_000_000);
        let flow = match ops {
            Ops::Bbr => Either::Bbr(Flow::new(BbrMachine::new(hz))),
            Ops::Cubic => Either::Cubic(Flow::new(CubicMachine::new(hz))),
        };
        let coverage = match ops {
            Ops::Bbr => BbrMachine::coverage(),
            Ops::Cubic => CubicMachine::coverage(),
        };
        Replay { ops, flow, coverage, replayed: 0, late: 0, skipped: 0 }
    }

    /// Replays one call; `index` is its position in the recording. All calls must be of one flow, in order.
    ///
    /// After a difference, calls are skipped up to the next `init`.
    ///
    /// # Errors
    /// When our controller and the kernel differ, or the kernel cannot have made this call here.
    pub fn step(&mut self, index: u64, call: &Call) -> Result<(), Difference> {
        let lost = each!(&self.flow, flow => flow.stage == Stage::Lost);
        if lost && call.hook != Hook::Init {
            self.skipped += 1;
            return Ok(());
        }
        self.replayed += 1;
        let (ops, coverage) = (self.ops, &mut self.coverage);
        let result = each!(&mut self.flow, flow => flow.step(ops, call, coverage).inspect_err(|_| flow.stage = Stage::Lost));
        result.map(|late| self.late += late as u64).map_err(|(moment, Unequal { field, ours, kernel })| {
            Difference { call: index, flow: call.flow, hook: call.hook, moment, field, ours, kernel }
        })
    }

    /// Our private state and what the kernel had after `call`, field by field, then what the call left of the socket. Made
    /// for printing the two side by side after a difference.
    pub fn side_by_side(&self, call: &Call) -> impl Iterator<Item = Row> + use<> {
        let (ours, outcome) = each!(&self.flow, flow => (flow.machine.fields(), flow.machine.outcome(call)));
        let private = call.private_after;
        let private_state =
            self.ops.fields().iter().zip(ours).map(move |(field, ours): (&PrivateField, u64)| Row {
                field: field.name,
                ours,
                kernel: field.get(&private),
            });
        private_state.chain(outcome.into_iter().map(|(field, ours, kernel)| Row { field, ours, kernel }))
    }
}

/// One of the tiers in which each call is checked alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tier {
    /// Calls that had what the check needs.
    pub steps: u64,
    /// Calls that differed.
    pub differences: u64,
    /// The first of them.
    pub first: Option<Difference>,
}

impl Tier {
    fn take(&mut self, index: u64, call: &Call, step: Result<bool, Difference>) {
        match step {
            Ok(checked) => self.steps += checked as u64,
            Err(difference) => {
                self.steps += 1;
                self.differences += 1;
                let there = Difference { call: index, flow: call.flow, ..difference };
                self.first.get_or_insert(there);
            }
        }
    }

    fn add(&mut self, flow: &Tier) {
        self.steps += flow.steps;
        self.differences += flow.differences;
        self.first = first(self.first, flow.first);
    }
}

/// The result of replaying a flow, or all flows of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Replayed {
    /// Calls replayed and compared.
    pub replayed: u64,
    /// Those of them in which the jiffies ticked: they agree if the kernel read the clock after the recorder did.
    pub late: u64,
    /// Calls after the first difference of their flow.
    pub skipped: u64,
    /// The first difference, by the order of calls.
    pub difference: Option<Difference>,
    /// The windowed maximum (BBR).
    pub filter: Tier,
    /// The delivery-rate sample (BBR).
    pub sampler: Tier,
    /// The branches reached.
    pub coverage: Coverage,
}

impl Replayed {
    /// Adds another flow of the same recording.
    pub(super) fn add(&mut self, flow: &Replayed) {
        self.replayed += flow.replayed;
        self.late += flow.late;
        self.skipped += flow.skipped;
        self.difference = first(self.difference, flow.difference);
        self.filter.add(&flow.filter);
        self.sampler.add(&flow.sampler);
        self.coverage.add(&flow.coverage);
    }
}

fn first(one: Option<Difference>, other: Option<Difference>) -> Option<Difference> {
    one.into_iter().chain(other).min_by_key(|found| found.call)
}

/// Replays the calls of one flow in a recording of `ops`, up to its first difference. `calls` are those of the flow alone,
/// in order, each with its position in the recording. `hz` is the kernel's `CONFIG_HZ`.
pub fn replay_flow<'a>(ops: Ops, hz: u32, calls: impl IntoIterator<Item = (u64, &'a Call)>) -> Replayed {
    let mut replay = Replay::new(ops, hz);
    let (mut difference, mut filter, mut sampler) = (None, Tier::default(), Tier::default());
    for (index, call) in calls {
        if let Err(found) = replay.step(index, call) {
            difference.get_or_insert(found);
        }
        filter.take(index, call, filter_step(ops, call));
        sampler.take(index, call, sampler_step(ops, call));
    }
    Replayed {
        replayed: replay.replayed,
        late: replay.late,
        skipped: replay.skipped,
        difference,
        filter,
        sampler,
        coverage: replay.coverage,
    }
}
