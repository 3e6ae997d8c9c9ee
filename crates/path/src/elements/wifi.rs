//! Wi-Fi's jitter, whose tail is heavy: collisions with stations that do not hear each other, and retransmissions of frames.
//!
//! Source: draft-huitema-ccwg-c4-test, "Handling of High Jitter Environments", a model fitted to bad networks. A packet waits N1
//! times 1 ms, less a random part of the first, and a share of packets another N2 times 7.5 ms; N1 is Poisson distributed with
//! mean 1, N2 with mean 12. Packets stay in order, as Wi-Fi delivers them, so that a late one holds up those behind it. The
//! draft's average jitter of J is a share of (J - 1 ms) / 90 ms.

use crate::config::Probability;
use crate::element::{Setup, Transit, element};
use crate::packet::{Fate, Moment, Packet};
use crate::rng::Stream;
use fullpipe_units::{Duration, Time};

element! {
    /// Heavy-tailed delay of a crowded Wi-Fi network, without overtaking (draft-huitema-ccwg-c4-test).
    "wifi", shown as |this| "Wi-Fi jitter with {} collisions", this.collisions;
    /// Share of packets that collide and are sent again, which takes 90 ms on average.
    collisions as "collisions": Probability;
}

/// What a deferral takes, ...
const DEFERRAL_NS: u64 = 1_000_000;
/// ... how many Poisson has: e^-1 times 2^64, and their mean.
const DEFERRALS: [u64; 24] = poisson(6_786_177_901_268_885_274, 1);
/// What a retransmission takes, ...
const RETRANSMISSION_NS: u64 = 7_500_000;
/// ... how many there are: e^-12 times 2^64, and their mean.
const RETRANSMISSIONS: [u64; 64] = poisson(113_340_712_816_370, 12);

/// The probability of at most 0, 1, ... events, times 2^64, of a Poisson distribution of this mean; `none` is that of no event.
const fn poisson<const N: usize>(none: u64, mean: u64) -> [u64; N] {
    let (mut table, mut exactly, mut count) = ([none; N], none as u128, 1);
    while count < N {
        exactly = exactly * mean as u128 / count as u128;
        table[count] = table[count - 1].saturating_add(exactly as u64);
        count += 1;
    }
    table
}

/// Adds the delay; packets wait for their predecessor.
#[derive(Debug)]
pub(crate) struct Wifi {
    collisions: Probability,
    /// When the latest packet leaves.
    latest: Time,
    random: Stream,
}

impl Transit for Wifi {
    type Config = Config;
    const TAKES_TIME: bool = true;

    fn new(config: &Config, Setup { random, .. }: Setup) -> Wifi {
        Wifi { collisions: config.collisions, latest: Time::ZERO, random }
    }

    #[inline]
    fn admit(&mut self, moment: Moment, _: &Packet) -> Fate {
        self.latest = self.latest.max(moment.arrival.saturating_add(self.delay()));
        Fate::Leaves(self.latest)
    }
}

impl Wifi {
    fn delay(&mut self) -> Duration {
        let mut nanos = self.events(&DEFERRALS) * DEFERRAL_NS;
        if nanos > 0 {
            nanos -= self.random.up_to(DEFERRAL_NS);
        }
        if self.collisions.happens(self.random.next_u32()) {
            nanos += self.events(&RETRANSMISSIONS) * RETRANSMISSION_NS;
        }
        Duration::from_nanos(nanos)
    }

    fn events(&mut self, at_most: &[u64]) -> u64 {
        let draw = self.random.next_u64();
        at_most.iter().take_while(|at_most| draw >= **at_most).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wifi(ppm: u64) -> Wifi {
        let collisions = Probability::from_f64(ppm as f64 / 1e6);
        Wifi::new(&Config { collisions }, Setup { random: Stream::new(1, 0), announced: false })
    }

    /// The delays of so many packets that never meet, in order of size, in microseconds.
    fn delays(ppm: u64, count: usize) -> Vec<u64> {
        let mut wifi = wifi(ppm);
        let mut delays: Vec<u64> = (0..count).map(|_| wifi.delay().as_micros()).collect();
        delays.sort_unstable();
        delays
    }

    fn mean(delays: &[u64]) -> f64 {
        delays.iter().sum::<u64>() as f64 / delays.len() as f64
    }

    #[test]
    fn numbers_of_events_are_poisson_distributed() {
        let chances = |table: &[u64], count: usize| (table[count] - table[count - 1]) as f64 / 2f64.powi(64);
        // e^-1 / 2! and e^-12 12^12 / 12!.
        assert!((chances(&DEFERRALS, 2) - 0.183_939_72).abs() < 1e-8);
        assert!((chances(&RETRANSMISSIONS, 12) - 0.114_367_92).abs() < 1e-8);
        // Hardly a draw is above the last: one in 2^44.
        assert!(u64::MAX - DEFERRALS[23] < 1 << 20 && u64::MAX - RETRANSMISSIONS[63] < 1 << 20);
    }

    #[test]
    fn tail_grows_with_collisions() {
        // Without: e^-1 wait not at all, the others a mean of 1 ms less half of one: 1 - 0.5 (1 - e^-1).
        let calm = delays(0, 100_000);
        assert!((mean(&calm) - 684.0).abs() < 10.0, "{}", mean(&calm));
        let none = calm.iter().filter(|delay| **delay == 0).count();
        assert!(none.abs_diff(36_788) < 600 && calm[99_900] < 7_000, "{none} {}", calm[99_900]);
        // The draft's bad Wi-Fi, 7 ms: (7 - 1) / 90, and each has 90 ms more on average.
        let bad = delays(66_667, 100_000);
        assert!((mean(&bad) - 684.0 - 6_000.0).abs() < 200.0, "{}", mean(&bad));
        assert!(bad[90_000] < 5_000 && bad[99_000] > 100_000, "{} {}", bad[90_000], bad[99_000]);
    }

    #[test]
    fn late_packet_holds_up_later_ones() {
        let mut wifi = wifi(100_000);
        let mut before = Time::ZERO;
        let mut held = 0;
        for nanos in (0..1_000_000_000).step_by(1_000_000) {
            let now = Time::from_nanos(nanos);
            let Fate::Leaves(at) = wifi.admit(Moment::at(now), &Packet::new(1500, 0)) else {
                panic!("a loss")
            };
            assert!(at >= before && at >= now);
            held += (at == before) as u32;
            before = at;
        }
        assert!(held > 500, "{held} of 1000");
    }
}
