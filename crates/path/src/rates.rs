//! What a path could carry, to know how fast an emulator has to be, and how well a link was used.

use crate::config::{ElementConfig, Schedule};
use crate::elements::OPPORTUNITY_BYTES;
use crate::integral::opportunities_by;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// The highest rate at which packets can leave the path; [`Rate::MAX`] if nothing limits it.
pub fn highest_rate(elements: &[ElementConfig]) -> Rate {
    elements.iter().filter_map(ElementConfig::highest_rate).min().unwrap_or(Rate::MAX)
}

/// The lowest rate at which packets may have to leave the path; [`Rate::MAX`] if nothing limits it. A delivery trace counts
/// with its mean: its slow periods are too short to contain a burst.
pub fn lowest_rate(elements: &[ElementConfig]) -> Rate {
    let lowest = |element: &ElementConfig| match element {
        ElementConfig::Link { rate_bps, .. } => values(rate_bps).min(),
        ElementConfig::Cellular { rates_bps, .. } => rates_bps.first().copied(),
        other => other.highest_rate(),
    };
    elements.iter().filter_map(lowest).min().unwrap_or(Rate::MAX)
}

/// How long the slowest link takes for a packet of `bytes` at its highest rate; zero if there is no link.
pub fn longest_transmission(elements: &[ElementConfig], bytes: Bytes) -> Duration {
    let links = elements.iter().filter(|element| matches!(element, ElementConfig::Link { .. }));
    let times = links.filter_map(|link| Some(link.highest_rate()?.time_for(bytes)));
    times.max().unwrap_or(Duration::ZERO)
}

/// The longest list of rates that stands for a delivery trace.
const MOST_WINDOWS: u64 = 600;
/// The shortest time over which a delivery trace has a rate: a shorter time shows the spacing of single packets.
const SHORTEST_WINDOW: Duration = Duration::from_millis(500);

/// The highest rate at which packets can leave the path over time, until `end`; `None` if nothing limits it. A radio that
/// grants rates counts with its highest. A delivery trace counts with its mean over windows of half a second, or of a 600th
/// of the time where that is longer.
pub fn ceiling(elements: &[ElementConfig], end: Time) -> Option<Schedule<Rate>> {
    let of_each = elements.iter().filter_map(|element| match element {
        ElementConfig::Link { rate_bps, .. } => Some(rate_bps.clone()),
        ElementConfig::DeliveryTrace { opportunities_ms, .. } => Some(offered(opportunities_ms, end)),
        other => other.highest_rate().map(Schedule::constant),
    });
    of_each.reduce(|one, other| combined(&one, &other, Rate::min))
}

/// The delay of all delay elements together over time.
pub fn delay(elements: &[ElementConfig]) -> Schedule<Duration> {
    let of_each = elements.iter().filter_map(|element| match element {
        ElementConfig::Delay { delay_ns } => Some(delay_ns.clone()),
        _ => None,
    });
    of_each.fold(Schedule::constant(Duration::ZERO), |one, other| combined(&one, &other, |a, b| a + b))
}

/// The delay of all delay elements together, each at its shortest.
pub fn shortest_delay(elements: &[ElementConfig]) -> Duration {
    let shortest = elements.iter().filter_map(|element| match element {
        ElementConfig::Delay { delay_ns } => values(delay_ns).min(),
        _ => None,
    });
    shortest.fold(Duration::ZERO, |sum, delay| sum + delay)
}

/// Every value that it ever has.
fn values<T: Copy>(schedule: &Schedule<T>) -> impl Iterator<Item = T> {
    std::iter::once(schedule.initial).chain(schedule.changes.iter().map(|change| change.1))
}

/// Both schedules in one, which changes whenever one of them does.
pub fn combined<A: Copy, B: Copy, C: Copy + PartialEq>(
    one: &Schedule<A>,
    other: &Schedule<B>,
    combine: impl Fn(A, B) -> C,
) -> Schedule<C> {
    let mut times: Vec<Time> = one.changes.iter().map(|change| change.0).collect();
    times.extend(other.changes.iter().map(|change| change.0));
    times.sort_unstable();
    times.dedup();
    let mut all = Schedule::constant(combine(one.initial, other.initial));
    let mut current = all.initial;
    for at in times {
        let value = combine(one.at(at), other.at(at));
        if value != current {
            all.changes.push((at, value));
            current = value;
        }
    }
    all
}

/// What a delivery trace offers, window by window.
fn offered(opportunities_ms: &[u64], end: Time) -> Schedule<Rate> {
    let end_ms = Duration::from_nanos(end.as_nanos()).as_millis();
    let window_ms = SHORTEST_WINDOW.as_millis().max(end_ms.div_ceil(MOST_WINDOWS));
    let rate = |from_ms: u64| {
        let offered = opportunities_by(opportunities_ms, from_ms + window_ms)
            - opportunities_by(opportunities_ms, from_ms);
        Rate::from_bits_per_sec(offered.saturating_mul(OPPORTUNITY_BYTES * 8 * 1000) / window_ms)
    };
    let mut all = Schedule::constant(rate(0));
    let mut current = all.initial;
    for window in 1..end_ms.div_ceil(window_ms) {
        let next = rate(window * window_ms);
        if next != current {
            all.changes.push((Time::ZERO + Duration::from_millis(window * window_ms), next));
            current = next;
        }
    }
    all
}

/// The shortest time in which a buffer of the path drains; [`Duration::MAX`] if there is none.
pub fn shortest_buffer(elements: &[ElementConfig]) -> Duration {
    let drain = |element: &ElementConfig| Some(element.highest_rate()?.time_for(element.queue()?.bytes));
    elements.iter().filter_map(drain).min().unwrap_or(Duration::MAX)
}

/// For every queue of a path in order: the bytes that could have left it by `end`.
pub fn capacities(elements: &[ElementConfig], end: Time) -> Vec<Option<u64>> {
    elements.iter().filter_map(|element| element.capacity(end)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::QueueConfig;

    fn link(rate_bps: Schedule<Rate>) -> ElementConfig {
        ElementConfig::Link {
            name: "link".to_owned(),
            rate_bps,
            queue: QueueConfig::drop_tail(Bytes::new(3000), None),
        }
    }

    #[test]
    fn ceiling_follows_links_radios_and_traces() {
        let mbit = |mbit: u64| Rate::from_bits_per_sec(mbit * 1_000_000);
        let at = |ms: u64| Time::from_nanos(ms * 1_000_000);
        let queue = QueueConfig::drop_tail(Bytes::new(3000), None);
        let changing =
            link(Schedule { initial: mbit(80), changes: vec![(at(700), mbit(20)), (at(900), mbit(80))] });
        let radio = ElementConfig::Cellular {
            name: "radio".to_owned(),
            rates_bps: vec![mbit(10), mbit(50)],
            review_ns: Duration::from_millis(100),
            demand_ns: Duration::from_millis(10),
            queue,
        };
        let path = [link(Schedule::constant(mbit(1000))), radio, changing.clone()];
        let expected =
            Schedule { initial: mbit(50), changes: vec![(at(700), mbit(20)), (at(900), mbit(50))] };
        assert_eq!(ceiling(&path, at(2000)), Some(expected));
        // 500 opportunities in the first half second, none in the second one, 6 Mbit in half a second.
        let trace = ElementConfig::DeliveryTrace {
            name: "trace".to_owned(),
            opportunities_ms: std::sync::Arc::new((1..=500).chain([1000]).collect()),
            queue,
        };
        let found = ceiling(&[trace], at(1500)).unwrap();
        assert_eq!(found.initial, mbit(12));
        assert_eq!(found.changes, [(at(500), Rate::from_bits_per_sec(24_000)), (at(1000), mbit(12))]);
        assert_eq!(ceiling(&[], at(1)), None);
    }

    #[test]
    fn delays_add_up_over_time() {
        let ms = Duration::from_millis;
        let changing = Schedule { initial: ms(10), changes: vec![(Time::ZERO + ms(5), ms(20))] };
        let path =
            [changing.clone(), Schedule::constant(ms(1))].map(|delay_ns| ElementConfig::Delay { delay_ns });
        assert_eq!(delay(&path), Schedule { initial: ms(11), changes: vec![(Time::ZERO + ms(5), ms(21))] });
        assert_eq!(delay(&[]), Schedule::constant(Duration::ZERO));
        let shorter = Schedule { initial: ms(10), changes: vec![(Time::ZERO + ms(5), ms(7))] };
        let path = [changing, shorter].map(|delay_ns| ElementConfig::Delay { delay_ns });
        assert_eq!((shortest_delay(&path), shortest_delay(&[])), (ms(17), Duration::ZERO));
    }

    #[test]
    fn slowest_element_at_fastest_time_counts() {
        let mbit = |mbit: u64| Rate::from_bits_per_sec(mbit * 1_000_000);
        let changing =
            Schedule { initial: mbit(8), changes: vec![(Time::from_nanos(500_000_000), mbit(16))] };
        let path = [link(changing), link(Schedule::constant(mbit(100)))];
        assert_eq!((highest_rate(&path), lowest_rate(&path)), (mbit(16), mbit(8)));
        assert_eq!((highest_rate(&[]), lowest_rate(&[])), (Rate::MAX, Rate::MAX));
        // 1000 bytes at 16 Mbit/s.
        assert_eq!(longest_transmission(&path, Bytes::new(1000)), Duration::from_micros(500));
        assert_eq!(longest_transmission(&[], Bytes::new(1000)), Duration::ZERO);
        // 3000 bytes at 100 Mbit/s.
        assert_eq!(shortest_buffer(&path), Duration::from_micros(240));
        assert_eq!(shortest_buffer(&[]), Duration::MAX);
        // Half a second at 1 MB/s and half at 2 MB/s.
        assert_eq!(capacities(&path, Time::from_nanos(1_000_000_000)), [Some(1_500_000), Some(12_500_000)]);
    }
}
