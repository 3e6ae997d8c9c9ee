//! Controllers: those that the stacks ship, ours, and those that a program brings.

use std::sync::Arc;

use fullpipe_cc::{Params, Phase};
use fullpipe_noq::Watch;
use fullpipe_scenario::ControllerChoice;

use crate::endpoint::{phase_in, values_in};
use crate::stack::{Choice, OutsideStack};
use crate::unfilled;

/// A factory of controllers for noq.
pub type NoqFactory = Arc<dyn noq_proto::congestion::ControllerFactory + Send + Sync>;
/// A factory of controllers for quinn.
pub type QuinnFactory = Arc<dyn quinn_proto::congestion::ControllerFactory + Send + Sync>;

/// A controller that a program brings: scenarios name it `noq:NAME` or `quinn:NAME`.
#[derive(Clone)]
pub struct Own {
    name: String,
    factory: Factory,
}

/// Makes a flow's controller.
#[derive(Clone)]
pub(crate) enum Factory {
    Noq(NoqFactory),
    Quinn(QuinnFactory),
    Outside(Choice),
}

impl Own {
    /// Those of a stack in a process of its own.
    pub fn outside(stack: OutsideStack) -> Vec<Own> {
        let stack = Arc::new(stack);
        let one = |controller: &String| Own {
            name: controller.clone(),
            factory: Factory::Outside(Choice { stack: stack.clone(), controller: controller.clone() }),
        };
        stack.about.controllers.iter().map(one).collect()
    }

    /// One for noq.
    pub fn noq(name: impl Into<String>, factory: NoqFactory) -> Own {
        Own { name: name.into(), factory: Factory::Noq(factory) }
    }

    /// One for quinn.
    pub fn quinn(name: impl Into<String>, factory: QuinnFactory) -> Own {
        Own { name: name.into(), factory: Factory::Quinn(factory) }
    }

    /// Its name, without the stack's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The stack that it is for.
    pub fn stack(&self) -> &str {
        match &self.factory {
            Factory::Noq(_) => "noq",
            Factory::Quinn(_) => "quinn",
            Factory::Outside(choice) => &choice.stack.name,
        }
    }

    /// The stack in a process of its own that it is in, if it is in one.
    pub(crate) fn in_outside(&self) -> Option<&OutsideStack> {
        match &self.factory {
            Factory::Outside(choice) => Some(&choice.stack),
            Factory::Noq(_) | Factory::Quinn(_) => None,
        }
    }
}

impl std::fmt::Debug for Own {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.stack(), self.name)
    }
}

/// The controller of a flow.
#[derive(Clone)]
pub(crate) struct Chosen {
    pub(crate) factory: Factory,
    /// Looks into one of ours.
    pub(crate) watch: Option<Watch>,
    /// The most bytes of its window, where the controller does not keep to it by itself.
    pub(crate) max_window: Option<u64>,
}

impl Chosen {
    /// The stack in a process of its own, and its controller.
    pub(crate) fn outside(&self) -> Option<&Choice> {
        match &self.factory {
            Factory::Outside(choice) => Some(choice),
            Factory::Noq(_) | Factory::Quinn(_) => None,
        }
    }
}

/// The controller of a flow, whose window may have `max_window` bytes; `None` if this world has none of that name. `seed` is for
/// what one of ours draws.
pub(crate) fn choose(
    choice: &ControllerChoice,
    own: &[Own],
    seed: u64,
    max_window: Option<u64>,
) -> Option<Chosen> {
    if let Some(params) = choice.params() {
        let ours = fullpipe_noq::Factory::new(*params).seed(seed);
        let ours = match max_window {
            Some(bytes) => ours.max_window(bytes),
            None => ours,
        };
        let watch = Some(ours.watch());
        return Some(Chosen { factory: Factory::Noq(Arc::new(ours)), watch, max_window: None });
    }
    let (stack, name) = choice.stack()?;
    let brought = own.iter().find(|one| one.stack() == stack && one.name == name);
    let factory = match brought {
        Some(brought) => brought.factory.clone(),
        None => shipped(stack, name, max_window)?,
    };
    Some(Chosen { factory, watch: None, max_window })
}

fn shipped(stack: &str, name: &str, max_window: Option<u64>) -> Option<Factory> {
    use {noq_proto::congestion as noq, quinn_proto::congestion as quinn};
    /// What reduces its window begins within the limit: otherwise the first losses would reduce a window that is above it.
    macro_rules! bounded {
        ($config:ty, $unfilled:expr) => {{
            let mut config = <$config>::default();
            if let Some(most) = max_window.filter(|most| *most < INITIAL_WINDOW) {
                config.initial_window(most + $unfilled);
            }
            Arc::new(config)
        }};
    }
    Some(match (stack, name) {
        ("noq", "bbr3") => Factory::Noq(Arc::new(noq::Bbr3Config::default())),
        ("noq", "cubic") => Factory::Noq(bounded!(noq::CubicConfig, unfilled::NOQ)),
        ("noq", "newreno") => Factory::Noq(bounded!(noq::NewRenoConfig, unfilled::NOQ)),
        ("quinn", "bbr") => Factory::Quinn(Arc::new(quinn::BbrConfig::default())),
        ("quinn", "cubic") => Factory::Quinn(bounded!(quinn::CubicConfig, unfilled::QUINN)),
        ("quinn", "newreno") => Factory::Quinn(bounded!(quinn::NewRenoConfig, unfilled::QUINN)),
        _ => return None,
    })
}

/// The initial window of both stacks, in bytes (RFC 9002 section 7.2).
const INITIAL_WINDOW: u64 = 12_000;

/// Why one of ours cannot run here.
pub(crate) fn refuses(params: &Params) -> Option<String> {
    // Such a controller counts marks; noq only tells that there were some.
    params.ecn().map(|_| {
        format!(
            "{} needs to know how many packets were marked (ECN), which noq-proto does not tell controllers; choose --world sim",
            params.name()
        )
    })
}

/// The phase of noq's BBRv3, which tells it only in its text for developers.
pub(crate) fn phase_of_noq(bbr: &dyn std::fmt::Debug) -> Phase {
    const NAMES: [(&str, Phase); 7] = [
        ("Startup", Phase::Startup),
        ("Drain", Phase::Drain),
        ("ProbeBw(Down)", Phase::ProbeBwDown),
        ("ProbeBw(Cruise)", Phase::ProbeBwCruise),
        ("ProbeBw(Refill)", Phase::ProbeBwRefill),
        ("ProbeBw(Up)", Phase::ProbeBwUp),
        ("ProbeRtt", Phase::ProbeRtt),
    ];
    phase_in(bbr, " state:", &NAMES)
}

/// What a reduction takes away from noq's BBRv3 and an undo gives back (draft-ietf-ccwg-bbr-06, section 5.5.11): its state and its
/// bounds.
pub(crate) fn undoable_of_noq(bbr: &dyn std::fmt::Debug) -> [String; 4] {
    values_in(bbr, [" state:", " bw_shortterm:", " inflight_longterm:", " inflight_shortterm:"])
}

/// The phase of quinn's BBR, told in the same way. It does not tell the parts of ProbeBW apart.
pub(crate) fn phase_of_quinn(bbr: &quinn_proto::congestion::Bbr) -> Phase {
    const NAMES: [(&str, Phase); 4] = [
        ("Startup", Phase::Startup),
        ("Drain", Phase::Drain),
        ("ProbeBw", Phase::ProbeBwCruise),
        ("ProbeRtt", Phase::ProbeRtt),
    ];
    phase_in(bbr, " mode:", &NAMES)
}

/// The phase of a controller that reacts to losses.
pub(crate) fn phase_by_threshold(window: u64, ssthresh: Option<u64>) -> Phase {
    match ssthresh {
        Some(ssthresh) if window >= ssthresh => Phase::CongestionAvoidance,
        _ => Phase::SlowStart,
    }
}
