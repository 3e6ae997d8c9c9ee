//! The one definition of every measure, so that the simulator and the kernel are compared on the same thing.
//!
//! * RTT is the transport's smoothed RTT as sampled in the time series (what `ss` shows), each sample weighing the same.
//! * Percentiles interpolate linearly between the two nearest ranks (type 7 of Hyndman and Fan, the default of NumPy,
//!   pandas and R).
//! * A measure that its record cannot answer, e.g. an RTT without a time series, is `None`, never zero.

use serde::Serialize;

use crate::run::{FlowRecord, LinkRecord, Run, present};

/// How a quantity is spread over its samples, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DistributionMs {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 95th percentile.
    pub p95: f64,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
}

impl DistributionMs {
    /// The distribution of durations in nanoseconds; `None` of no samples.
    pub fn of_nanos(samples: impl IntoIterator<Item = u64>) -> Option<DistributionMs> {
        let mut sorted: Vec<u64> = samples.into_iter().collect();
        sorted.sort_unstable();
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        // Summed as integers: exact, and independent of the order of the samples.
        let sum: u128 = sorted.iter().map(|&nanos| u128::from(nanos)).sum();
        Some(DistributionMs {
            mean: sum as f64 / sorted.len() as f64 / 1e6,
            p50: percentile(&sorted, 0.50)? / 1e6,
            p95: percentile(&sorted, 0.95)? / 1e6,
            min: min as f64 / 1e6,
            max: max as f64 / 1e6,
        })
    }
}

/// What one flow achieved.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FlowMeasures {
    /// Application bits delivered in order per second between the flow's start and end; zero if it never started.
    pub goodput_bps: f64,
    /// Retransmissions as a fraction of the data segments sent; `None` if none was sent.
    pub loss_ratio: Option<f64>,
    /// Smoothed RTT, over the samples between the flow's start and end that have one.
    pub rtt_ms: Option<DistributionMs>,
    /// From connect to delivery of the last byte; `None` unless the flow ends by itself, and did.
    pub completion_ms: Option<f64>,
    /// From when each of a flow's transfers was asked for or due to delivery of its last byte, as far as they were; the first
    /// includes the handshake.
    pub transfers_ms: Vec<f64>,
    /// How long a video's playback stood still since it began; `None` of a flow that plays none.
    pub rebuffer_ms: Option<f64>,
}

impl FlowMeasures {
    /// Measures `flow`.
    pub fn of(flow: &FlowRecord) -> FlowMeasures {
        let totals = &flow.totals;
        let lifetime_ns = totals.end_ns.saturating_sub(totals.start_ns);
        let lifetime = totals.start_ns..=totals.end_ns;
        let series = &flow.series;
        let srtt = series.time_ns.iter().zip(&series.srtt_ns).filter(|(time, _)| lifetime.contains(time));
        FlowMeasures {
            goodput_bps: bits_per_second(totals.delivered_bytes, lifetime_ns).unwrap_or(0.0),
            loss_ratio: ratio(totals.retransmits, totals.segments_sent),
            rtt_ms: DistributionMs::of_nanos(srtt.filter_map(|(_, &srtt)| present(srtt))),
            completion_ms: totals.completed.then_some(lifetime_ns as f64 / 1e6),
            transfers_ms: flow.transfers_ns.iter().map(|nanos| *nanos as f64 / 1e6).collect(),
            rebuffer_ms: flow.rebuffered_ns.map(|nanos| nanos as f64 / 1e6),
        }
    }
}

/// What one queue of the path did to the traffic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LinkMeasures {
    /// How long a packet that arrived at a sample's time would have waited, over all samples.
    pub queue_delay_ms: Option<DistributionMs>,
    /// Bytes that left as a fraction of those that could have; `None` without a capacity.
    pub utilisation: Option<f64>,
    /// Dropped packets as a fraction of those that arrived; `None` if none arrived.
    pub drop_ratio: Option<f64>,
}

impl LinkMeasures {
    /// Measures `link`.
    pub fn of(link: &LinkRecord) -> LinkMeasures {
        let totals = &link.totals;
        let delays = link.series.queue_delay_ns.iter().copied();
        LinkMeasures {
            queue_delay_ms: DistributionMs::of_nanos(delays.filter_map(present)),
            utilisation: totals.capacity_bytes.and_then(|capacity| ratio(totals.departed_bytes, capacity)),
            drop_ratio: ratio(totals.dropped_packets, totals.arrived_packets),
        }
    }
}

/// How evenly the flows of a run shared the path, by their goodputs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index: 1 when all goodputs are equal, 1/n when one of n flows has everything; `None` when no flow has any.
    pub jain_index: Option<f64>,
    /// One a flow, in the order of the run.
    pub shares: Vec<Share>,
}

/// One flow's part of the sum of all goodputs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The flow.
    pub label: String,
    /// The part, 0 to 1; `None` when no flow delivered anything.
    pub share: Option<f64>,
}

impl Fairness {
    /// Fairness among the flows of `run`, those that never started included.
    pub fn of(run: &Run) -> Fairness {
        let goodputs: Vec<f64> = run.flows.iter().map(|flow| FlowMeasures::of(flow).goodput_bps).collect();
        let sum: f64 = goodputs.iter().sum();
        let shares = run.flows.iter().zip(&goodputs).map(|(flow, goodput)| Share {
            label: flow.label.clone(),
            share: (sum > 0.0).then_some(goodput / sum),
        });
        Fairness { jain_index: jain_index(&goodputs), shares: shares.collect() }
    }
}

/// Jain's fairness index `(sum x)^2 / (n sum x^2)` of non-negative amounts (Jain, Chiu, Hawe 1984); `None` when all are
/// zero or there are none.
pub fn jain_index(amounts: &[f64]) -> Option<f64> {
    let sum: f64 = amounts.iter().sum();
    let squares: f64 = amounts.iter().map(|x| x * x).sum();
    (squares > 0.0).then(|| sum * sum / (amounts.len() as f64 * squares))
}

/// The `fraction` percentile (0 to 1) of samples in ascending order, linearly interpolated between ranks; `None` of no
/// samples.
///
/// # Panics
/// If `fraction` is outside 0..=1.
pub fn percentile(sorted: &[u64], fraction: f64) -> Option<f64> {
    assert!((0.0..=1.0).contains(&fraction), "percentile {fraction} is outside 0..=1");
    let last = sorted.len().checked_sub(1)?;
    let rank = fraction * last as f64;
    let below = (rank as usize).min(last);
    let above = (below + 1).min(last);
    let (low, step) = (sorted[below] as f64, (sorted[above] - sorted[below]) as f64);
    // Rounding must not carry the result past its upper neighbour.
    Some((low + step * (rank - below as f64)).min(sorted[above] as f64))
}

/// `bytes` in `nanos` nanoseconds as bits per second; `None` of no time.
pub(crate) fn bits_per_second(bytes: u64, nanos: u64) -> Option<f64> {
    (nanos > 0).then(|| bytes as f64 * 8e9 / nanos as f64)
}

/// `part / whole`; `None` of nothing.
fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{FlowSeries, FlowTotals, LinkSeries, LinkTotals};
    use proptest::prelude::*;

    fn flow(totals: FlowTotals, samples: &[(u64, u64)]) -> FlowRecord {
        let series = FlowSeries {
            time_ns: samples.iter().map(|s| s.0).collect(),
            srtt_ns: samples.iter().map(|s| s.1).collect(),
            ..FlowSeries::default()
        };
        FlowRecord {
            label: "a".into(),
            controller: "reno".into(),
            totals,
            transfers_ns: vec![30, 2_000_000],
            rebuffered_ns: Some(500_000),
            series,
        }
    }

    #[test]
    fn goodput_counts_from_the_flows_own_start() {
        let totals = FlowTotals {
            start_ns: 1_000_000_000,
            end_ns: 3_000_000_000,
            delivered_bytes: 25_000_000,
            segments_sent: 20_000,
            retransmits: 100,
            ..FlowTotals::default()
        };
        let measures = FlowMeasures::of(&flow(totals, &[]));
        assert_eq!(measures.goodput_bps, 100e6);
        assert_eq!(measures.loss_ratio, Some(0.005));
        assert_eq!(measures.rtt_ms, None);
        assert_eq!(measures.completion_ms, None);
    }

    #[test]
    fn a_flow_that_never_started_has_no_goodput_and_no_loss_ratio() {
        let totals = FlowTotals { start_ns: 9, end_ns: 9, ..FlowTotals::default() };
        let measures = FlowMeasures::of(&flow(totals, &[]));
        assert_eq!(measures.goodput_bps, 0.0);
        assert_eq!(measures.loss_ratio, None);
    }

    #[test]
    fn rtt_ignores_absent_samples_and_those_outside_the_flow() {
        let totals = FlowTotals { start_ns: 10, end_ns: 40, completed: true, ..FlowTotals::default() };
        let ms = 1_000_000;
        let samples = [(5, 900 * ms), (10, u64::MAX), (20, 40 * ms), (40, 60 * ms), (41, 900 * ms)];
        let measures = FlowMeasures::of(&flow(totals, &samples));
        let rtt = measures.rtt_ms.unwrap();
        assert_eq!((rtt.mean, rtt.p50, rtt.min, rtt.max), (50.0, 50.0, 40.0, 60.0));
        assert_eq!(rtt.p95, 59.0);
        assert_eq!(measures.completion_ms, Some(30e-6));
        assert_eq!(measures.transfers_ms, [30e-6, 2.0]);
        assert_eq!(measures.rebuffer_ms, Some(0.5));
    }

    #[test]
    fn a_link_without_capacity_has_no_utilisation() {
        let mut link = LinkRecord {
            name: "bottleneck".into(),
            totals: LinkTotals {
                arrived_packets: 10,
                dropped_packets: 1,
                departed_bytes: 9_000,
                capacity_bytes: Some(12_000),
                ..LinkTotals::default()
            },
            series: LinkSeries {
                time_ns: vec![0, 1],
                queue_bytes: vec![0, 1],
                queue_delay_ns: vec![0, 2_000_000],
                dropped_packets: vec![0, 1],
            },
        };
        let measures = LinkMeasures::of(&link);
        assert_eq!((measures.utilisation, measures.drop_ratio), (Some(0.75), Some(0.1)));
        assert_eq!(measures.queue_delay_ms.unwrap().mean, 1.0);
        link.totals.capacity_bytes = None;
        assert_eq!(LinkMeasures::of(&link).utilisation, None);
    }

    #[test]
    fn percentiles_agree_with_numpy() {
        // numpy.percentile([1, 2, 3, 4], [50, 95]) = [2.5, 3.85]
        assert_eq!(percentile(&[1, 2, 3, 4], 0.50), Some(2.5));
        assert!((percentile(&[1, 2, 3, 4], 0.95).unwrap() - 3.85).abs() < 1e-12);
        assert_eq!(percentile(&[], 0.5), None);
        assert_eq!(percentile(&[7], 0.95), Some(7.0));
    }

    #[test]
    fn jain_index_of_known_shares() {
        assert_eq!(jain_index(&[]), None);
        assert_eq!(jain_index(&[0.0, 0.0]), None);
        assert_eq!(jain_index(&[5.0, 5.0, 5.0]), Some(1.0));
        assert_eq!(jain_index(&[1.0, 0.0, 0.0, 0.0]), Some(0.25));
        assert_eq!(jain_index(&[3.0, 1.0]), Some(0.8));
    }

    proptest! {
        #[test]
        fn percentiles_lie_within_the_samples_and_never_fall(
            mut samples in prop::collection::vec(any::<u64>(), 1..50),
            a in 0.0..=1.0_f64,
            b in 0.0..=1.0_f64,
        ) {
            samples.sort_unstable();
            let (first, last) = (samples[0] as f64, samples[samples.len() - 1] as f64);
            let low = percentile(&samples, a.min(b)).unwrap();
            let high = percentile(&samples, a.max(b)).unwrap();
            prop_assert!(first <= low && low <= high && high <= last);
            prop_assert_eq!(percentile(&samples, 0.0), Some(first));
            prop_assert_eq!(percentile(&samples, 1.0), Some(last));
        }

        #[test]
        fn a_distribution_is_ordered_and_ignores_the_order_of_samples(
            samples in prop::collection::vec(0..10_000_000_000_u64, 1..50),
        ) {
            let forward = DistributionMs::of_nanos(samples.iter().copied()).unwrap();
            let backward = DistributionMs::of_nanos(samples.iter().rev().copied()).unwrap();
            prop_assert_eq!(forward, backward);
            prop_assert!(forward.min <= forward.p50 && forward.p50 <= forward.p95 && forward.p95 <= forward.max);
            let slack = forward.max * 1e-12;
            prop_assert!(forward.min <= forward.mean + slack && forward.mean <= forward.max + slack);
        }

        #[test]
        fn jain_index_lies_between_one_nth_and_one_and_ignores_scale(
            amounts in prop::collection::vec(0.0..1e12_f64, 1..20),
            scale in 1e-3..1e3_f64,
        ) {
            let scaled: Vec<f64> = amounts.iter().map(|x| x * scale).collect();
            match (jain_index(&amounts), jain_index(&scaled)) {
                (Some(index), Some(same)) => {
                    let floor = 1.0 / amounts.len() as f64;
                    prop_assert!(floor - 1e-9 <= index && index <= 1.0 + 1e-9);
                    prop_assert!((index - same).abs() < 1e-9);
                }
                (None, None) => prop_assert!(amounts.iter().all(|&x| x == 0.0)),
                (index, same) => prop_assert!(false, "{index:?} but scaled {same:?}"),
            }
        }

        #[test]
        fn shares_sum_to_one(delivered in prop::collection::vec(1..1_000_000_000_u64, 1..8)) {
            let flows = delivered.iter().map(|&delivered_bytes| {
                flow(FlowTotals { end_ns: 1_000_000_000, delivered_bytes, ..FlowTotals::default() }, &[])
            });
            let run = Run { flows: flows.collect(), ..crate::run::example() };
            let sum: f64 = Fairness::of(&run).shares.iter().map(|share| share.share.unwrap()).sum();
            prop_assert!((sum - 1.0).abs() < 1e-9);
        }
    }
}
