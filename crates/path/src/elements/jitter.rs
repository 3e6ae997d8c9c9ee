//! Random extra delay, uniform from zero to an amplitude.

use crate::element::{Setup, Transit, element};
use crate::packet::{Fate, Moment, Packet};
use crate::rng::Stream;
use fullpipe_units::{Duration, Time};

element! {
    /// Random extra delay, uniform between zero and `amplitude`.
    "jitter", shown as |this| "jitter {}{}", this.amplitude_ns, if this.reorder { " with reordering" } else { "" };
    /// The largest extra delay.
    amplitude_ns as "amplitude": Duration;
    /// Whether packets may overtake each other. Default: false.
    reorder as "reorders": bool;
    prompt |this| "{} jitter", this.amplitude_ns;
    option "jitter" = ["amplitude"], After, "2 ms", "Random extra delay, from zero to this", over "1..5ms";
    option "jitter_reorders" = ["reorders"], After, "true", "Packets may overtake each other by jitter";
}

/// Adds a random delay; packets overtake each other, or wait for their predecessor.
#[derive(Debug)]
pub(crate) struct Jitter {
    amplitude: Duration,
    reorder: bool,
    /// When the latest packet leaves, if packets stay in order.
    latest: Time,
    random: Stream,
}

impl Transit for Jitter {
    type Config = Config;
    const TAKES_TIME: bool = true;

    fn new(config: &Config, Setup { random, .. }: Setup) -> Jitter {
        let &Config { amplitude_ns, reorder } = config;
        Jitter { amplitude: amplitude_ns, reorder, latest: Time::ZERO, random }
    }

    fn reorders(&self) -> bool {
        self.reorder
    }

    #[inline]
    fn admit(&mut self, moment: Moment, _: &Packet) -> Fate {
        Fate::Leaves(self.due(moment.arrival))
    }
}

impl Jitter {
    #[inline]
    fn due(&mut self, now: Time) -> Time {
        let due = now.saturating_add(Duration::from_nanos(self.random.up_to(self.amplitude.as_nanos())));
        if self.reorder {
            return due;
        }
        self.latest = self.latest.max(due);
        self.latest
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jitter(amplitude_ns: Duration, reorder: bool) -> Jitter {
        let setup = Setup { random: Stream::new(1, 0), announced: false };
        Jitter::new(&Config { amplitude_ns, reorder }, setup)
    }

    #[test]
    fn extra_delay_is_uniform() {
        let mut jitter = jitter(Duration::from_nanos(3), true);
        let mut seen = [0u32; 4];
        for _ in 0..40_000 {
            seen[jitter.due(Time::ZERO).as_nanos() as usize] += 1;
        }
        assert!(seen.iter().all(|&times| times.abs_diff(10_000) < 500), "{seen:?}");
    }

    #[test]
    fn without_reordering_packets_await_predecessors() {
        let mut jitter = jitter(Duration::from_millis(1), false);
        let mut before = Time::ZERO;
        for nanos in (0..10_000_000).step_by(1000) {
            let due = jitter.due(Time::from_nanos(nanos));
            assert!(due >= before && due >= Time::from_nanos(nanos));
            before = due;
        }
    }
}
