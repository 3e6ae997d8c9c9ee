//! Packets that reach a host wait until it handles them, and those that gathered are handled together.
//!
//! A packet that arrives raises an interrupt; the host begins to handle it some time later, and takes with it whatever has arrived
//! by then (Linux: `napi_schedule`, `net_rx_action`). GRO merges neighbours of a flow among them (`napi_gro_receive`; the flow
//! does that, as for all packets that it gets at once). Then it is not interrupted for a while (interrupt moderation).

use fullpipe_path::Carrier;
use fullpipe_units::{Duration, Time};

use super::latency::{self, Draws};

/// From one handling to the next interrupt: what the emulator has, which is the network device of the hosts of the kernel world
/// (`emu/src/ferry.rs`, `GAP`). Interrupts of network cards are moderated alike (20 to 100 us by default).
const MODERATION: Duration = Duration::from_micros(30);

/// The packets that arrive at one host.
#[derive(Debug)]
pub(crate) struct Arrivals {
    draws: Draws,
    /// When the host handles what has arrived; never if nothing has.
    handling: Time,
    /// The next interrupt comes then at the earliest.
    not_before: Time,
}

impl Arrivals {
    pub(crate) fn new(seed: u64) -> Arrivals {
        Arrivals { draws: Draws::new(seed), handling: Time::NEVER, not_before: Time::ZERO }
    }

    /// When something happens next at the end of a path on which something happens at `path`.
    #[inline]
    pub(crate) fn next(&self, path: Time) -> Time {
        if self.handling == Time::NEVER { path } else { self.handling }
    }

    /// A time from [`Arrivals::next`] has come: whether the host handles what has arrived. `latest` is when either host last
    /// handled something.
    pub(crate) fn handles<P>(
        &mut self,
        now: Time,
        path: &mut impl Carrier<P>,
        latest: &mut Option<Time>,
    ) -> bool {
        if self.handling != Time::NEVER {
            self.handling = Time::NEVER;
            self.not_before = now + MODERATION;
            *latest = Some(now);
            return true;
        }
        path.settle(now);
        if path.is_due(now) {
            let silence = latest.map(|latest| now.saturating_since(latest));
            self.handling = now.max(self.not_before) + self.draws.draw(latency::arrival(silence));
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_path::config::{ElementConfig, Schedule};
    use fullpipe_path::{Chain, Packet};

    fn path() -> Chain<u32> {
        let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(1)) };
        Chain::new(&[delay], &[], 1).unwrap()
    }

    /// The times at which a host handles packets that enter the path at these, in microseconds, and how many each time.
    fn handled(seed: u64, sent_us: &[u64]) -> Vec<(Time, usize)> {
        let (mut path, mut arrivals, mut latest) = (path(), Arrivals::new(seed), None);
        for (index, &at) in sent_us.iter().enumerate() {
            path.push(Time::from_micros(at), Packet::new(1500, 0), index as u32);
        }
        let mut handled = Vec::new();
        loop {
            let now = arrivals.next(path.next());
            if now == Time::NEVER {
                return handled;
            }
            if arrivals.handles(now, &mut path, &mut latest) {
                let count = std::iter::from_fn(|| path.pop(now)).count();
                handled.push((now, count));
            }
        }
    }

    #[test]
    fn arrivals_before_wakeup_are_batched() {
        // 1 us apart: at least the first three come before the host, which takes 76 us or more.
        let handled = handled(1, &[0, 1, 2, 1000]);
        assert_eq!(handled.iter().map(|(_, count)| count).collect::<Vec<_>>(), [&3, &1]);
    }

    #[test]
    fn handling_delay_is_within_measured_range() {
        for seed in 0..500 {
            let (at, count) = handled(seed, &[0])[0];
            assert_eq!(count, 1);
            assert!(at >= Time::from_micros(1_076) && at <= Time::from_micros(1_328), "{at:?}");
        }
    }

    #[test]
    fn interrupts_keep_their_distance() {
        let sent: Vec<u64> = (0..90).map(|index| 10 * index).collect();
        let handled = handled(3, &sent);
        assert!(handled.windows(2).all(|two| two[1].0 >= two[0].0 + MODERATION + Duration::from_micros(3)));
        assert_eq!(handled.iter().map(|(_, count)| count).sum::<usize>(), 90);
    }

    #[test]
    fn seeds_vary_the_times() {
        assert_ne!(handled(1, &[0]), handled(2, &[0]));
        assert_eq!(handled(1, &[0]), handled(1, &[0]));
    }
}
