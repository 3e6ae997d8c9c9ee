//! The time of the path.
//!
//! A virtual machine can stall: its host runs something else for some milliseconds. The TCP of the end hosts stalls with
//! it. If the path's time continued, its queue would drain while nobody fills it, and all packets that became due would
//! leave at once. So the path's time stops for as long as the ferry was away. Packets on the path arrive later by that time.
//! To TCP, the round trip took a little longer.
//!
//! If only the ferry was away and the end hosts kept running, the packets that they sent wait for the ferry and reach the
//! path in one burst. The ferry measures that burst.

use std::cell::{Cell, RefCell};

use fullpipe_units::{Duration, Time};

use crate::clock::Clock;

/// A shorter absence of the ferry counts as lateness; the path's time does not stop.
pub(crate) const OVERRUN: Duration = Duration::from_millis(1);

/// What the path's time does while the ferry is stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// It stops: for end hosts that stall as well.
    Stops,
    /// It continues: for a comparison of the path with a clock.
    GoesOn,
}

/// How long the path's time stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Paused {
    /// In total.
    pub total: Duration,
    /// At once.
    pub longest: Duration,
    /// The longest burst that gathered during a stall, as its time on the slowest link; at most as long as the stall.
    pub burst: Duration,
}

/// A stall during which the path's time stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When it ended, by the machine's clock.
    pub ended: Time,
    /// How long it lasted.
    pub lasted: Duration,
}

/// The path's clock, used by the ferry's thread only.
#[derive(Debug)]
pub(crate) struct PathClock {
    clock: Clock,
    pause: Pause,
    /// When the ferry should look again, by `clock`: at once unless it sleeps.
    back_by: Cell<Time>,
    paused: Cell<Paused>,
    stalls: RefCell<Vec<Stall>>,
    overruns: Cell<u64>,
    /// Duration of stalls since [`PathClock::gathered`] was last called.
    unsettled: Cell<Duration>,
}

impl PathClock {
    pub(crate) fn new(clock: Clock, pause: Pause) -> PathClock {
        PathClock {
            clock,
            pause,
            back_by: Cell::new(clock.now()),
            paused: Cell::default(),
            stalls: RefCell::default(),
            overruns: Cell::default(),
            unsettled: Cell::default(),
        }
    }

    /// The machine's time, which does not stop.
    pub(crate) fn machine(&self) -> Time {
        self.clock.now()
    }

    /// The path's time.
    pub(crate) fn now(&self) -> Time {
        self.look(self.clock.now())
    }

    /// `now` is the time of `clock`.
    fn look(&self, now: Time) -> Time {
        let away = now.saturating_since(self.back_by.replace(now));
        let mut paused = self.paused.get();
        if away > OVERRUN {
            self.overruns.set(self.overruns.get() + 1);
            if self.pause == Pause::Stops {
                paused.total += away;
                paused.longest = paused.longest.max(away);
                self.paused.set(paused);
                self.stalls.borrow_mut().push(Stall { ended: now, lasted: away });
                self.unsettled.set(self.unsettled.get() + away);
            }
        }
        Time::from_nanos(now.as_nanos().saturating_sub(paused.total.as_nanos()))
    }

    /// The ferry plans to look again at `time` of the path, or earlier.
    pub(crate) fn back_by(&self, time: Time) {
        self.back_by.set(time.saturating_add(self.paused.get().total));
    }

    /// Whether there was a stall since [`PathClock::gathered`] was last called.
    pub(crate) fn has_paused(&self) -> bool {
        self.unsettled.get() > Duration::ZERO
    }

    /// Everything that waited has been read; `fetched` is how long it keeps the slowest link busy.
    pub(crate) fn gathered(&self, fetched: Duration) {
        let away = self.unsettled.take();
        let mut paused = self.paused.get();
        paused.burst = paused.burst.max(fetched.min(away));
        self.paused.set(paused);
    }

    pub(crate) fn paused(&self) -> Paused {
        self.paused.get()
    }

    /// Every stall in which the path's time stopped.
    pub(crate) fn stalls(&self) -> Vec<Stall> {
        self.stalls.borrow().clone()
    }

    /// How often the ferry was away for longer than planned by more than [`OVERRUN`].
    pub(crate) fn overruns(&self) -> u64 {
        self.overruns.get()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(given: u64) -> Duration {
        Duration::from_millis(given)
    }

    fn at(given: u64) -> Time {
        Time::ZERO + ms(given)
    }

    fn clock(pause: Pause) -> PathClock {
        // Far ahead, so that the real clock reads zero and the test's times count.
        PathClock::new(Clock::start_in(Duration::from_secs(3600)), pause)
    }

    #[test]
    fn time_stops_while_ferry_is_away() {
        let clock = clock(Pause::Stops);
        assert_eq!(clock.look(at(1)), at(1));
        clock.back_by(at(10));
        assert_eq!(clock.look(at(30)), at(10));
        // In the middle of a pass, too.
        assert_eq!(clock.look(at(35)), at(10));
        assert_eq!(clock.paused(), Paused { total: ms(25), longest: ms(20), burst: Duration::ZERO });
        assert_eq!(clock.overruns(), 2);
        // Sleeping as long as planned is not a stall.
        clock.back_by(at(60));
        assert_eq!(clock.look(at(85)), at(60));
        assert_eq!(clock.overruns(), 2);
    }

    #[test]
    fn a_little_late_is_late() {
        let clock = clock(Pause::Stops);
        clock.back_by(at(10));
        assert_eq!(clock.look(at(11)), at(11));
        assert_eq!((clock.paused(), clock.overruns()), (Paused::default(), 0));
    }

    #[test]
    fn early_wakeup_is_not_stall() {
        let clock = clock(Pause::Stops);
        clock.back_by(at(100));
        assert_eq!(clock.look(at(3)), at(3));
        assert_eq!(clock.look(at(4)), at(4));
        assert_eq!(clock.look(at(40)), at(4));
    }

    #[test]
    fn burst_is_bounded_by_prior_stall() {
        let clock = clock(Pause::Stops);
        clock.gathered(ms(50));
        assert_eq!(clock.paused().burst, Duration::ZERO);
        clock.look(at(20));
        assert!(clock.has_paused());
        clock.gathered(ms(2));
        assert!(!clock.has_paused());
        assert_eq!(clock.paused().burst, ms(2));
        clock.look(at(30));
        clock.gathered(ms(50));
        assert_eq!(clock.paused().burst, ms(10));
        clock.gathered(ms(50));
        assert_eq!(clock.paused().burst, ms(10));
    }

    #[test]
    fn time_continues_in_clock_comparison() {
        let clock = clock(Pause::GoesOn);
        assert_eq!(clock.look(at(20)), at(20));
        clock.gathered(ms(50));
        assert_eq!((clock.paused(), clock.overruns()), (Paused::default(), 1));
    }
}
