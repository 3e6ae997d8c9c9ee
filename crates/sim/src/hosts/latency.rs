//! How long a host takes to begin: random times from measured distributions.

use fullpipe_units::Duration;

/// A distribution as some of its quantiles: (per 100 000, microseconds), straight lines between them.
type Quantiles = [(u32, u32); 14];

/// From the time at which a packet is due until the host that it is for begins to handle it. Measured between
/// `net_dev_start_xmit` of an acknowledgement at one host and `netif_receive_skb` at the other, less the delay of the path:
/// 81 641 of them (bench/host_latency.py, docs/hosts.md#how-long-a-host-takes-to-begin).
pub(crate) const ARRIVAL: Quantiles = [
    (0, 3),
    (1_000, 11),
    (5_000, 19),
    (10_000, 20),
    (25_000, 25),
    (50_000, 30),
    (75_000, 37),
    (90_000, 48),
    (95_000, 58),
    (98_000, 71),
    (99_000, 82),
    (99_500, 92),
    (99_900, 139),
    (100_000, 866),
];

/// From the time for which the pacing timer is set (`tcp_pace_kick`) until it fires: between `hrtimer_start` and
/// `hrtimer_expire_entry`, 25 724 times; measured in the same runs.
pub(crate) const TIMER: Quantiles = [
    (0, 5),
    (1_000, 9),
    (5_000, 12),
    (10_000, 13),
    (25_000, 15),
    (50_000, 16),
    (75_000, 24),
    (90_000, 34),
    (95_000, 42),
    (98_000, 47),
    (99_000, 58),
    (99_500, 72),
    (99_900, 688),
    (100_000, 996),
];

/// The same of the timer for compressed ACKs (`tcp_compressed_ack_kick`), 3 692 times. It may fire 100 us late
/// (`net.ipv4.tcp_comp_sack_slack_ns`), and does so unless another timer fires meanwhile.
const ACK_TIMER: Quantiles = [
    (0, 0),
    (1_000, 9),
    (5_000, 54),
    (10_000, 98),
    (25_000, 111),
    (50_000, 112),
    (75_000, 113),
    (90_000, 116),
    (95_000, 119),
    (98_000, 129),
    (99_000, 135),
    (99_500, 151),
    (99_900, 313),
    (100_000, 960),
];

/// Draws from a distribution, with a stream of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency {
    quantiles: &'static Quantiles,
    /// State of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    state: u64,
}

impl Latency {
    pub(crate) fn new(quantiles: &'static Quantiles, seed: u64) -> Latency {
        Latency { quantiles, state: seed }
    }

    /// That of a timer for compressed ACKs.
    pub(crate) fn ack_timer(seed: u64) -> Latency {
        Latency::new(&ACK_TIMER, seed)
    }

    pub(crate) fn draw(&mut self) -> Duration {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let random = fullpipe_path::mix(self.state) >> 32;
        at(self.quantiles, random)
    }
}

/// The quantile of `part` / 2^32, to the nanosecond.
fn at(quantiles: &Quantiles, part: u64) -> Duration {
    // In units of 1 / (100 000 * 2^32), so that no draw is rounded.
    let wanted = part * 100_000;
    let scaled = |(per, micros): (u32, u32)| (u64::from(per) << 32, u64::from(micros) * 1000);
    let above = quantiles.iter().position(|point| scaled(*point).0 > wanted).unwrap_or(quantiles.len() - 1);
    let ((from, low), (to, high)) = (scaled(quantiles[above - 1]), scaled(quantiles[above]));
    let along = u128::from(wanted - from) * u128::from(high - low) / u128::from(to - from);
    Duration::from_nanos(low + along as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_measured_distribution() {
        for (quantiles, median) in [(&ARRIVAL, 30), (&TIMER, 16), (&ACK_TIMER, 112)] {
            let mut latency = Latency::new(quantiles, 7);
            let mut drawn: Vec<u64> = (0..100_000).map(|_| latency.draw().as_nanos()).collect();
            drawn.sort_unstable();
            let near = |part: usize, micros: u64| drawn[part].abs_diff(micros * 1000) < 1_000;
            assert!(near(50_000, median), "{}", drawn[50_000]);
            assert!(drawn[0] >= u64::from(quantiles[0].1) * 1000);
            assert!(drawn[99_999] <= u64::from(quantiles[13].1) * 1000);
        }
    }

    #[test]
    fn quantiles_are_met_exactly_and_lines_join_them() {
        assert_eq!(at(&ARRIVAL, 0), Duration::from_micros(3));
        assert_eq!(at(&ARRIVAL, 1 << 31), Duration::from_micros(30));
        // An eighth lies a sixth of the way from a tenth to a quarter: 20 + 5 / 6.
        assert_eq!(at(&ARRIVAL, 1 << 29), Duration::from_nanos(20_833));
        assert!(at(&ARRIVAL, u64::from(u32::MAX)) < Duration::from_micros(866));
    }

    #[test]
    fn streams_of_equal_seeds_are_equal() {
        let draws = |seed| {
            let mut latency = Latency::new(&TIMER, seed);
            [0; 5].map(|_: u8| latency.draw())
        };
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }
}
