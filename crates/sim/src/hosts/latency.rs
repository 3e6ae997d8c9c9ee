//! How long a host takes to begin: random times from measured distributions.

use fullpipe_units::Duration;

/// A distribution as some of its quantiles: (per 100 000, microseconds), straight lines between them.
pub(crate) type Quantiles = [(u32, u32); 14];

/// From the time at which a packet is due until the host that it is for begins to handle it, where a packet reached one of the
/// two hosts less than 30 us before: 17 975 acknowledgements, from `net_dev_start_xmit` at one host to `netif_receive_skb` at
/// the other, less the delay of the path (bench/host_latency.py, docs/explanation/hosts.md#how-long-a-host-takes-to-begin).
const AWAKE: Quantiles = [
    (0, 3),
    (1_000, 6),
    (5_000, 15),
    (10_000, 21),
    (25_000, 30),
    (50_000, 38),
    (75_000, 47),
    (90_000, 59),
    (95_000, 69),
    (98_000, 83),
    (99_000, 94),
    (99_500, 105),
    (99_900, 138),
    (100_000, 331),
];

/// The same after a silence of less than 1.5 ms, 97 846 times.
const DOZING: Quantiles = [
    (0, 3),
    (1_000, 13),
    (5_000, 19),
    (10_000, 20),
    (25_000, 22),
    (50_000, 29),
    (75_000, 40),
    (90_000, 56),
    (95_000, 65),
    (98_000, 78),
    (99_000, 89),
    (99_500, 102),
    (99_900, 154),
    (100_000, 882),
];

/// The same after a silence of less than 100 ms, 1 422 times.
const ASLEEP: Quantiles = [
    (0, 27),
    (1_000, 33),
    (5_000, 43),
    (10_000, 51),
    (25_000, 63),
    (50_000, 78),
    (75_000, 105),
    (90_000, 167),
    (95_000, 196),
    (98_000, 218),
    (99_000, 233),
    (99_500, 258),
    (99_900, 518),
    (100_000, 586),
];

/// The same of the first packets of 39 runs.
const FIRST: Quantiles = [
    (0, 76),
    (1_000, 76),
    (5_000, 78),
    (10_000, 86),
    (25_000, 107),
    (50_000, 147),
    (75_000, 168),
    (90_000, 271),
    (95_000, 284),
    (98_000, 328),
    (99_000, 328),
    (99_500, 328),
    (99_900, 328),
    (100_000, 328),
];

/// How long a host takes to begin to handle a packet, by the time since one reached either host; `None` if none has. The
/// processors sleep the more deeply the longer nothing happens.
pub(crate) fn arrival(silence: Option<Duration>) -> &'static Quantiles {
    match silence.map(Duration::as_micros) {
        Some(0..30) => &AWAKE,
        Some(30..1_500) => &DOZING,
        Some(1_500..100_000) => &ASLEEP,
        _ => &FIRST,
    }
}

/// From the time for which the pacing timer is set (`tcp_pace_kick`) until it fires: between `hrtimer_start` and
/// `hrtimer_expire_entry`, 25 724 times; measured in earlier runs (docs/explanation/hosts.md).
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

/// A stream of draws.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Draws {
    /// State of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
    state: u64,
}

impl Draws {
    pub(crate) fn new(seed: u64) -> Draws {
        Draws { state: seed }
    }

    pub(crate) fn draw(&mut self, quantiles: &Quantiles) -> Duration {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let random = fullpipe_path::mix(self.state) >> 32;
        at(quantiles, random)
    }
}

/// Draws from one distribution, with a stream of its own.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latency {
    quantiles: &'static Quantiles,
    draws: Draws,
}

impl Latency {
    pub(crate) fn new(quantiles: &'static Quantiles, seed: u64) -> Latency {
        Latency { quantiles, draws: Draws::new(seed) }
    }

    /// That of a timer for compressed ACKs.
    pub(crate) fn ack_timer(seed: u64) -> Latency {
        Latency::new(&ACK_TIMER, seed)
    }

    pub(crate) fn draw(&mut self) -> Duration {
        self.draws.draw(self.quantiles)
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
        for (quantiles, median) in [(&AWAKE, 38), (&ASLEEP, 78), (&TIMER, 16), (&ACK_TIMER, 112)] {
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
    fn quantiles_are_exact_and_interpolated() {
        assert_eq!(at(&AWAKE, 0), Duration::from_micros(3));
        assert_eq!(at(&AWAKE, 1 << 31), Duration::from_micros(38));
        // An eighth lies a sixth of the way from a tenth to a quarter: 21 + 9 / 6.
        assert_eq!(at(&AWAKE, 1 << 29), Duration::from_nanos(22_500));
        assert!(at(&AWAKE, u64::from(u32::MAX)) < Duration::from_micros(331));
    }

    #[test]
    fn longer_idle_deepens_processor_sleep() {
        let silences = [0, 29, 30, 1_499, 1_500, 99_999, 100_000].map(|us| Some(Duration::from_micros(us)));
        let found = silences.map(|silence| arrival(silence)[5].1);
        assert_eq!(found, [38, 38, 29, 29, 78, 78, 147]);
        assert_eq!(arrival(None), &FIRST);
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
