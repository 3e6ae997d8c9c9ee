//! The one definition of every measure, so that the simulator and the kernel are measured alike.
//!
//! * RTT is the transport's smoothed RTT as sampled in the time series (what `ss` shows), all samples with equal weights. Of a
//!   flow that is seen from outside, it is smoothed in the same way from what its packets show ([`crate::RttSource`]).
//! * Percentiles interpolate linearly between the two nearest ranks (type 7 of Hyndman and Fan, the default of NumPy,
//!   pandas and R).
//! * A flow's goodput is its bytes over its own lifetime. The total of several flows is all their bytes over the time from
//!   the first start to the last end. Goodputs over different lifetimes are never added: two flows that run one after the
//!   other at the link's rate have that rate in total, not twice.
//! * Flows of the two directions of a path share no capacity. What a run has in total, and Jain's index, are those of its forward
//!   flows, or of the others if all go the other way. A flow's share is its part of what the flows of its direction delivered.
//! * A measure that cannot be computed from the record, e.g. an RTT without a time series, is `None`, never zero.

use serde::Serialize;

use crate::run::{FlowRecord, FlowSeries, FlowTotals, LinkRecord, Run, present};

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
    /// Retransmissions as a fraction of the data segments sent; `None` if none was sent, or nobody can tell. Of a flow that is seen from outside,
    /// the packets that the path dropped as a fraction of those that entered it: nobody counts its retransmissions where they are
    /// encrypted. Of media, the packets that were missing in lost frames as a fraction of those sent.
    pub loss_ratio: Option<f64>,
    /// Smoothed RTT, over the samples between the flow's start and end that have one.
    pub rtt_ms: Option<DistributionMs>,
    /// From connect to delivery of the last byte; `None` unless the flow ends by itself, and has ended.
    pub completion_ms: Option<f64>,
    /// From connect to the write of the last byte, when an `iperf3 -n` ends; `None` unless all of it was written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_ms: Option<f64>,
    /// Application bits written into the send buffer per second between the flow's start and the write of the last byte or, if
    /// that is not known, the flow's end. iperf3 calls it the sender's rate; the receiver's is the goodput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_bps: Option<f64>,
    /// For each delivered transfer of a flow, the time from when it was requested or due to the delivery of its last byte;
    /// the first includes the handshake.
    pub transfers_ms: Vec<f64>,
    /// Completion times of the flow's transfers or, if it has none, of the flow itself; `None` if nothing completed.
    /// Transfers that had not completed by the end of the run are left out.
    pub fct_ms: Option<DistributionMs>,
    /// How long a video's playback stalled since it began; `None` for a flow without a video.
    pub rebuffer_ms: Option<f64>,
    /// Frames of media that were lost or late as a fraction of those that were in time, late or lost; `None` without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missed_frames: Option<f64>,
}

impl FlowMeasures {
    /// Measures `flow`.
    pub fn of(flow: &FlowRecord) -> FlowMeasures {
        let totals = &flow.totals;
        let lifetime_ns = totals.lifetime_ns();
        let lifetime = totals.start_ns..=totals.end_ns;
        let series = &flow.series;
        let srtt = series.time_ns.iter().zip(&series.srtt_ns).filter(|(time, _)| lifetime.contains(time));
        FlowMeasures {
            goodput_bps: bits_per_second(totals.delivered_bytes, lifetime_ns).unwrap_or(0.0),
            loss_ratio: match (&totals.seen, &totals.frames) {
                (Some(seen), _) => ratio(seen.lost_packets, seen.packets),
                (None, Some(frames)) => ratio(frames.lost_packets, totals.segments_sent),
                (None, None) => {
                    present(totals.retransmits).and_then(|again| ratio(again, totals.segments_sent))
                }
            },
            rtt_ms: DistributionMs::of_nanos(srtt.filter_map(|(_, &srtt)| present(srtt))),
            completion_ms: totals.completed.then_some(lifetime_ns as f64 / 1e6),
            write_ms: totals.written_ns.map(|_| totals.writing_ns() as f64 / 1e6),
            write_bps: totals.written_bytes.and_then(|bytes| bits_per_second(bytes, totals.writing_ns())),
            transfers_ms: flow.transfers_ns.iter().map(|nanos| *nanos as f64 / 1e6).collect(),
            fct_ms: DistributionMs::of_nanos(completions_ns(flow)),
            rebuffer_ms: flow.rebuffered_ns.map(|nanos| nanos as f64 / 1e6),
            missed_frames: totals.frames.and_then(|frames| {
                let missed = frames.late + frames.lost;
                ratio(missed, frames.in_time + missed)
            }),
        }
    }
}

/// How long each completed transfer of a flow took or, if the flow has no transfers, the flow itself.
fn completions_ns(flow: &FlowRecord) -> impl Iterator<Item = u64> {
    let itself = flow.totals.completed && flow.transfers_ns.is_empty();
    flow.transfers_ns.iter().copied().chain(itself.then_some(flow.totals.lifetime_ns()))
}

/// What all flows of a run achieved together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TotalMeasures {
    /// Application bits that the flows of one direction delivered in order, per second of the time from the first flow's start to
    /// the last flow's end: of the forward one, unless all go the other way. Flows that never ran do not extend that time. Zero if
    /// none ran.
    pub total_goodput_bps: f64,
    /// Completion times of the transfers of these flows (see [`FlowMeasures::fct_ms`]), with equal weights.
    pub fct_ms: Option<DistributionMs>,
}

impl TotalMeasures {
    /// Measures all flows of a run together.
    pub fn of(flows: &[FlowRecord]) -> TotalMeasures {
        let ran = || counted(flows).map(|flow| &flow.totals).filter(|totals| totals.lifetime_ns() > 0);
        let first_ns = ran().map(|totals| totals.start_ns).min().unwrap_or(0);
        let last_ns = ran().map(|totals| totals.end_ns).max().unwrap_or(0);
        let bytes = ran().map(|totals| totals.delivered_bytes).sum();
        TotalMeasures {
            total_goodput_bps: bits_per_second(bytes, last_ns - first_ns).unwrap_or(0.0),
            fct_ms: DistributionMs::of_nanos(counted(flows).flat_map(completions_ns)),
        }
    }
}

/// The flows that a run's totals are of: of one direction.
fn counted(flows: &[FlowRecord]) -> impl Iterator<Item = &FlowRecord> {
    let reverse = flows.iter().all(|flow| flow.totals.reverse);
    flows.iter().filter(move |flow| flow.totals.reverse == reverse)
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

/// How evenly the flows of a run shared the path.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fairness {
    /// Jain's index of the flows' goodputs, each over its own lifetime, so that a flow that starts late does not seem
    /// treated unfairly: 1 when all are equal, 1/n when one of n flows has everything. `None` when no flow has any, and
    /// when there is no time at which all flows ran: such flows did not share the path. Of the forward flows, if there are any.
    pub jain_index: Option<f64>,
    /// One for each flow, in the order of the run.
    pub shares: Vec<Share>,
}

/// One flow's part of what all flows of its direction delivered, and so of their total goodput.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The flow.
    pub label: String,
    /// Its part of the application bytes that all flows of its direction delivered, 0 to 1; `None` when they delivered nothing.
    pub share: Option<f64>,
}

impl Fairness {
    /// Fairness among the flows of `run`, including those that never started.
    pub fn of(run: &Run) -> Fairness {
        let totals = || counted(&run.flows).map(|flow| &flow.totals);
        let mut delivered = [0; 2];
        for FlowTotals { reverse, delivered_bytes, .. } in run.flows.iter().map(|flow| flow.totals) {
            delivered[reverse as usize] += delivered_bytes;
        }
        let shares = run.flows.iter().map(|flow| Share {
            label: flow.label.clone(),
            share: ratio(flow.totals.delivered_bytes, delivered[flow.totals.reverse as usize]),
        });
        // A flow that never started got no share from those that ran.
        let ran = || totals().filter(|totals| totals.lifetime_ns() > 0);
        let together = ran().map(|totals| totals.start_ns).max() < ran().map(|totals| totals.end_ns).min();
        let goodputs: Vec<f64> = counted(&run.flows).map(|flow| FlowMeasures::of(flow).goodput_bps).collect();
        Fairness { jain_index: together.then(|| jain_index(&goodputs)).flatten(), shares: shares.collect() }
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

impl FlowSeries {
    /// Of each sample from number `from` on, the bits delivered per second since the one before it; `None` at the very first and
    /// between samples of the same instant.
    ///
    /// # Panics
    /// If samples are not in order of time, or delivered bytes fall.
    pub fn goodputs_bps(&self, from: usize) -> impl Iterator<Item = Option<f64>> {
        (from..self.len()).map(|index| {
            let before = index.checked_sub(1)?;
            let (time, delivered) = (&self.time_ns[before..=index], &self.delivered_bytes[before..=index]);
            assert!(time[0] <= time[1], "samples are not in order of time");
            assert!(delivered[0] <= delivered[1], "delivered bytes fell between two samples");
            bits_per_second(delivered[1] - delivered[0], time[1] - time[0])
        })
    }
}

/// `bytes` in `nanos` nanoseconds as bits per second; `None` of no time.
fn bits_per_second(bytes: u64, nanos: u64) -> Option<f64> {
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
    use crate::seen::UNKNOWN;
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
    fn goodput_counts_from_flow_start() {
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
    fn written_rate_exceeds_delivered_rate() {
        let mut totals = FlowTotals {
            start_ns: 1_000_000_000,
            end_ns: 3_000_000_000,
            completed: true,
            delivered_bytes: 25_000_000,
            written_bytes: Some(25_000_000),
            written_ns: Some(2_000_000_000),
            ..FlowTotals::default()
        };
        let measures = FlowMeasures::of(&flow(totals, &[]));
        assert_eq!((measures.completion_ms, measures.write_ms), (Some(2_000.0), Some(1_000.0)));
        assert_eq!((measures.goodput_bps, measures.write_bps), (100e6, Some(200e6)));
        // A flow without end: what waits in the send buffer at the end counts as written.
        (totals.written_ns, totals.written_bytes) = (None, Some(30_000_000));
        let measures = FlowMeasures::of(&flow(totals, &[]));
        assert_eq!((measures.write_ms, measures.write_bps), (None, Some(120e6)));
        totals.written_bytes = None;
        assert_eq!(FlowMeasures::of(&flow(totals, &[])).write_bps, None);
    }

    #[test]
    fn media_misses_lost_and_late_frames() {
        let frames = crate::Frames { sent: 11, in_time: 6, late: 1, lost: 3, lost_packets: 4 };
        let mut totals = FlowTotals { segments_sent: 40, frames: Some(frames), ..FlowTotals::default() };
        let measures = FlowMeasures::of(&flow(totals, &[]));
        assert_eq!((measures.missed_frames, measures.loss_ratio), (Some(0.4), Some(0.1)));
        // One that is under way is neither in time nor missed.
        totals.frames = Some(crate::Frames { sent: 1, ..crate::Frames::default() });
        assert_eq!(FlowMeasures::of(&flow(totals, &[])).missed_frames, None);
        totals.frames = None;
        let measures = FlowMeasures::of(&flow(totals, &[]));
        assert_eq!((measures.missed_frames, measures.loss_ratio), (None, Some(0.0)));
    }

    /// A flow that delivers at `bps` from `start_s` to `end_s`.
    fn steady(start_s: u64, end_s: u64, bps: u64) -> FlowRecord {
        let second = 1_000_000_000;
        let delivered_bytes = (end_s - start_s) * bps / 8;
        flow(
            FlowTotals {
                start_ns: start_s * second,
                end_ns: end_s * second,
                delivered_bytes,
                ..FlowTotals::default()
            },
            &[],
        )
    }

    #[test]
    fn successive_flows_do_not_double_rate() {
        let flows = vec![steady(0, 10, 10_000_000), steady(10, 20, 10_000_000)];
        assert_eq!(TotalMeasures::of(&flows).total_goodput_bps, 10e6);
        let fairness = Fairness::of(&Run { flows, ..crate::run::example() });
        assert_eq!(fairness.jain_index, None, "they never shared the path");
        assert_eq!(fairness.shares[0].share, Some(0.5));
    }

    #[test]
    fn staggered_flows_total_link_rate() {
        // Each second is divided by those that run in it: 0-4 s one flow, 4-8 s two.
        let late = steady(4, 8, 50_000_000);
        let mut first = steady(0, 8, 0);
        first.totals.delivered_bytes = (4 * 100_000_000 + 4 * 50_000_000) / 8;
        let flows = vec![first, late];
        assert_eq!(TotalMeasures::of(&flows).total_goodput_bps, 100e6);
        let fairness = Fairness::of(&Run { flows, ..crate::run::example() });
        assert_eq!(fairness.shares.iter().map(|one| one.share.unwrap()).collect::<Vec<_>>(), [0.75, 0.25]);
        assert!(fairness.jain_index.is_some());
    }

    #[test]
    fn never_run_flow_adds_nothing() {
        let flows = [steady(2, 4, 8_000_000), steady(20, 20, 0)];
        assert_eq!(TotalMeasures::of(&flows).total_goodput_bps, 8e6);
        assert_eq!(TotalMeasures::of(&flows[1..]).total_goodput_bps, 0.0);
        assert_eq!(TotalMeasures::of(&[]).total_goodput_bps, 0.0);
    }

    #[test]
    fn completion_is_per_transfer_or_flow() {
        let mut finite = steady(1, 3, 8_000_000);
        finite.totals.completed = true;
        let asking = finite.clone();
        finite.transfers_ns.clear();
        let mut bulk = steady(0, 5, 8_000_000);
        bulk.transfers_ns.clear();
        assert_eq!(FlowMeasures::of(&finite).fct_ms.unwrap().p50, 2_000.0);
        assert_eq!(FlowMeasures::of(&asking).fct_ms.unwrap().max, 2.0, "not that of the flow");
        assert_eq!(FlowMeasures::of(&bulk).fct_ms, None);
        let together = TotalMeasures::of(&[finite, asking, bulk]).fct_ms.unwrap();
        assert_eq!((together.min, together.p50, together.max), (30e-6, 2.0, 2_000.0));
    }

    #[test]
    fn unstarted_flow_has_zero_goodput() {
        let totals = FlowTotals { start_ns: 9, end_ns: 9, ..FlowTotals::default() };
        let measures = FlowMeasures::of(&flow(totals, &[]));
        assert_eq!(measures.goodput_bps, 0.0);
        assert_eq!(measures.loss_ratio, None);
    }

    #[test]
    fn unknown_retransmissions_are_no_loss_ratio() {
        let totals = FlowTotals { segments_sent: 100, retransmits: UNKNOWN, ..FlowTotals::default() };
        assert_eq!(FlowMeasures::of(&flow(totals, &[])).loss_ratio, None);
    }

    #[test]
    fn rtt_ignores_absent_and_outside_samples() {
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
    fn link_without_capacity_has_no_utilisation() {
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
                ..LinkSeries::default()
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
        fn percentiles_are_monotonic_within_samples(
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
        fn distribution_ignores_sample_order(
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
        fn jain_index_is_bounded_scale_invariant(
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
        fn total_never_exceeds_link_capacity(
            // How a full link of 80 Mbit/s is divided, second by second: bytes of each flow, none while it does not run.
            lives in prop::collection::vec((0..20_u64, 1..20_u64), 1..8),
        ) {
            const SECOND: u64 = 1_000_000_000;
            const BYTES: u64 = 10_000_000;
            let mut delivered = vec![0; lives.len()];
            let runs = |life: &(u64, u64), second| (life.0..life.0 + life.1).contains(&second);
            for second in 0..40 {
                let running: Vec<usize> = (0..lives.len()).filter(|&one| runs(&lives[one], second)).collect();
                for &one in &running {
                    delivered[one] += BYTES / running.len() as u64;
                }
            }
            let flows: Vec<FlowRecord> = lives.iter().zip(&delivered).map(|(&(start, length), &delivered_bytes)| {
                let (start_ns, end_ns) = (start * SECOND, (start + length) * SECOND);
                flow(FlowTotals { start_ns, end_ns, delivered_bytes, ..FlowTotals::default() }, &[])
            }).collect();
            let total = TotalMeasures::of(&flows).total_goodput_bps;
            prop_assert!(total <= 8.0 * BYTES as f64, "{total}");
            let slowest = flows.iter().map(|flow| FlowMeasures::of(flow).goodput_bps).fold(f64::MAX, f64::min);
            let idle = (0..40).any(|second| {
                second >= lives.iter().map(|life| life.0).min().unwrap()
                    && second < lives.iter().map(|life| life.0 + life.1).max().unwrap()
                    && !lives.iter().any(|life| runs(life, second))
            });
            prop_assert!(idle || total >= slowest * (1.0 - 1e-9), "{total} of flows from {slowest}");
        }

        #[test]
        fn equal_lifetimes_total_is_sum(delivered in prop::collection::vec(0..1_000_000_000_u64, 1..8)) {
            let flows: Vec<FlowRecord> = delivered.iter().map(|&delivered_bytes| {
                let totals = FlowTotals { start_ns: 5, end_ns: 2_000_000_005, delivered_bytes, ..FlowTotals::default() };
                flow(totals, &[])
            }).collect();
            let sum: f64 = flows.iter().map(|flow| FlowMeasures::of(flow).goodput_bps).sum();
            let total = TotalMeasures::of(&flows).total_goodput_bps;
            prop_assert!((total - sum).abs() <= 1e-9 * sum, "{total} {sum}");
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
