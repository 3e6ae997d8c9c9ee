//! What adapters share: the clock of a connection, seeds for its random numbers, and a look at its controller from outside.

use crate::driver::Driver;
use crate::events::{Counts, Events, Start};
use crate::in_bytes::InBytes;
use alloc::sync::{Arc, Weak};
use core::sync::atomic::{AtomicU64, Ordering};
use fullpipe_cc::{CaState, Config, Controller, Limits, Params, Snapshot};
use fullpipe_units::{Duration, Time};
use std::hash::{BuildHasher, Hasher};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Converts the times of a stack. A connection starts at one second, because zero means "never" to a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    start: Instant,
}

impl Clock {
    /// When a connection starts.
    pub const START: Time = Time::from_micros(1_000_000);

    /// The clock of a connection that starts now, at `start`.
    pub const fn new(start: Instant) -> Clock {
        Clock { start }
    }

    /// A time of the stack; what is before the start counts as the start.
    pub fn at(&self, instant: Instant) -> Time {
        Clock::after(instant.saturating_duration_since(self.start))
    }

    /// The time so long after the start.
    pub fn after(since: core::time::Duration) -> Time {
        let nanos = u64::try_from(since.as_nanos()).unwrap_or(u64::MAX);
        Clock::START.saturating_add(Duration::from_nanos(nanos))
    }
}

/// Gives each connection of a factory a seed of its own.
#[derive(Debug)]
pub struct Seeds {
    first: u64,
    given: AtomicU64,
}

impl Seeds {
    /// Seeds that follow from `seed` and from the number of the connection.
    pub const fn from_seed(seed: u64) -> Seeds {
        Seeds { first: seed, given: AtomicU64::new(0) }
    }

    /// Seeds that nobody can predict, from the operating system's random numbers.
    pub fn random() -> Seeds {
        Seeds::from_seed(std::hash::RandomState::new().build_hasher().finish())
    }

    /// The seed of the next connection.
    pub fn next(&self) -> u64 {
        let given = self.given.fetch_add(1, Ordering::Relaxed);
        self.first.wrapping_add(given.wrapping_mul(0xd1b5_4a32_d192_ed03))
    }
}

/// Makes the controllers of a factory, one for each connection.
#[derive(Debug)]
pub struct Making {
    params: Params,
    seeds: Seeds,
    /// The most that a window may be, bytes.
    max_window: u32,
    watch: Watch,
}

impl Making {
    /// Controllers that `params` names, with random numbers that nobody can predict.
    pub fn new(params: Params) -> Making {
        Making { params, seeds: Seeds::random(), max_window: Config::MOST_IN_FLIGHT, watch: Watch::new() }
    }

    /// The same, with random numbers that follow from `seed` and from the order in which the controllers are made.
    pub fn seed(self, seed: u64) -> Making {
        Making { seeds: Seeds::from_seed(seed), ..self }
    }

    /// The same, with windows of at most `bytes` ([`Config::cwnd_clamp`]).
    pub fn max_window(self, bytes: u64) -> Making {
        let max_window = u32::try_from(bytes).unwrap_or(u32::MAX).min(Config::MOST_IN_FLIGHT);
        Making { max_window, ..self }
    }

    /// Looks at the controller that the adapter has it follow.
    pub const fn watch(&self) -> &Watch {
        &self.watch
    }

    /// The next controller, for a connection that starts now ([`Clock::START`]) with packets of `mtu` bytes.
    pub fn events(&self, mtu: u16) -> Events<InBytes> {
        let start = Start { now: Clock::START, mtu, seed: self.seeds.next() };
        let config = Config { cwnd_clamp: self.max_window, ..InBytes::config(mtu) };
        let mut events = Events::new(InBytes::with_config(&self.params, &config, &start), &start);
        events.set_needs_ecn(self.params.ecn().is_some());
        events
    }
}

/// What a connection's controller allows and believes, and what became of its packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct View {
    /// What it allows.
    pub limits: Limits,
    /// What it believes.
    pub snapshot: Snapshot,
    /// The recovery state.
    pub state: CaState,
    /// Bytes in flight that the controller knows of.
    pub in_flight: u32,
    /// The smoothed RTT, zero before the first sample.
    pub smoothed_rtt: Duration,
    /// The smallest RTT, [`Duration::MAX`] before the first sample.
    pub min_rtt: Duration,
    /// What became of the bytes sent.
    pub counts: Counts,
    /// How often it has undone a reduction ([`Events::undone`]).
    pub undone: u64,
}

/// Something whose controller can be looked at.
pub trait Viewed {
    /// The controller as it is. An open ACK stays open, so that looking changes nothing.
    fn view(&self) -> View;
}

impl<C: Controller> Viewed for Events<C> {
    fn view(&self) -> View {
        View {
            limits: self.limits_before(),
            snapshot: self.snapshot(),
            state: self.state(),
            in_flight: self.in_flight(),
            smoothed_rtt: self.rtt().smoothed(),
            min_rtt: self.rtt().min(),
            counts: *self.counts(),
            undone: self.undone(),
        }
    }
}

impl<C: Controller> Viewed for Driver<C> {
    fn view(&self) -> View {
        self.events().view()
    }
}

/// Looks at the controller that a factory built last, from any thread, while its connection runs.
#[derive(Clone, Default)]
pub struct Watch {
    target: Arc<Mutex<Option<Target>>>,
}

type Target = Weak<Mutex<dyn Viewed + Send>>;

impl Watch {
    /// Nothing is built yet.
    pub fn new() -> Watch {
        Watch::default()
    }

    /// From now on, looks at this one.
    pub fn follow<V: Viewed + Send + 'static>(&self, viewed: &Arc<Mutex<V>>) {
        let viewed: Arc<Mutex<dyn Viewed + Send>> = viewed.clone();
        *lock(&self.target) = Some(Arc::downgrade(&viewed));
    }

    /// The controller as it is; `None` before the first connection, and after its end.
    pub fn view(&self) -> Option<View> {
        let viewed = lock(&self.target).as_ref()?.upgrade()?;
        let view = lock(&viewed).view();
        Some(view)
    }
}

impl core::fmt::Debug for Watch {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Watch").field("view", &self.view()).finish()
    }
}

/// Locks; what a thread left behind that panicked is used as it is.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_deterministic_and_distinct() {
        let seeds = |seed| {
            let seeds = Seeds::from_seed(seed);
            [seeds.next(), seeds.next(), seeds.next()]
        };
        assert_eq!(seeds(7), seeds(7));
        assert_ne!(seeds(7), seeds(8));
        assert!(seeds(7)[0] != seeds(7)[1] && seeds(7)[1] != seeds(7)[2]);
    }

    #[test]
    fn each_connection_gets_own_seed() {
        let making = |seed| Making::new(Params::by_name("bbr3").unwrap()).seed(seed);
        let debug = |events: Events<InBytes>| std::format!("{events:?}");
        let (one, other) = (making(7), making(7));
        let first = debug(one.events(1200));
        assert_eq!(first, debug(other.events(1200)));
        assert_ne!(first, debug(one.events(1200)), "the second connection");
        assert_ne!(first, debug(making(8).events(1200)));
    }

    #[test]
    fn a_window_may_be_bounded() {
        let cwnd = |name: &str, most| {
            let making = Making::new(Params::by_name(name).unwrap()).max_window(most);
            making.events(1200).limits().cwnd
        };
        for name in ["newreno", "cubic", "bbr3", "copa"] {
            assert_eq!([cwnd(name, 6_000), cwnd(name, u64::MAX)], [6_000, 12_000], "{name}");
        }
    }

    #[test]
    fn a_watch_follows_what_lives() {
        let watch = Watch::new();
        assert_eq!(watch.view(), None);
        let start = Start { now: Clock::START, mtu: 1200, seed: 1 };
        let events = Events::new(InBytes::new(&Params::by_name("newreno").unwrap(), &start), &start);
        let events = Arc::new(Mutex::new(events));
        watch.follow(&events);
        assert_eq!(watch.view().map(|view| (view.limits.cwnd, view.in_flight)), Some((12_000, 0)));
        lock(&events).sent(start.now, 1200, None);
        assert_eq!(watch.view().map(|view| view.in_flight), Some(1200));
        drop(events);
        assert_eq!(watch.view(), None);
    }
}
