//! The record of one run. `sim` and `kernel` fill it; measures are computed here, once, for all of them.

use fullpipe_cc::{CaState, Limits, Phase};
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{QueueView, capacities};
use fullpipe_units::Time;
use serde::{Deserialize, Serialize};

use crate::seen::{Seen, UNKNOWN, or_null};

/// Which world ran a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorldName {
    /// The simulator.
    Sim,
    /// Linux TCP over the emulated path.
    Kernel,
    /// The same behind a queue of Linux itself.
    Qdisc,
    /// Endpoints of QUIC stacks in virtual time.
    Quic,
}

/// One run: a scenario, a seed, a world.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Where it came from.
    pub provenance: Provenance,
    /// One for each flow, in the scenario's order.
    pub flows: Vec<FlowRecord>,
    /// One for each queue of the path (links, token buckets, delivery traces, policers), forward direction first.
    pub links: Vec<LinkRecord>,
}

/// The data needed to repeat a run and to judge whether it can be trusted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The world.
    pub world: WorldName,
    /// The seed (kernel: of the path's random elements; repetition number otherwise).
    pub seed: u64,
    /// The resolved scenario as JSON.
    pub spec_json: String,
    /// Version of Fullpipe.
    pub version: String,
    /// Host name, empty in the simulator so that its bytes do not depend on the machine.
    pub host: String,
    /// `uname -r`, empty in the simulator; in the world quic the stacks with their versions.
    pub kernel: String,
    /// Settings in force in the sender's and receiver's namespaces, name and value.
    pub sysctls: Vec<(String, String)>,
    /// How late the emulator was, kernel world only.
    pub lateness: Option<Lateness>,
    /// What the hosts got of the machine's processors, kernel world only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<ProcessorTime>,
    /// Why this run cannot be trusted; empty when it can.
    pub untrustworthy: Vec<String>,
    /// What was asked for that the world did not do, or that a controller did not get from its transport, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unsupported: Vec<String>,
}

/// How late the emulator released packets, in nanoseconds after they were due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// Packets released.
    pub packets: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// The worst.
    pub max_ns: u64,
}

/// What the hosts of a run got of the machine's processors, in nanoseconds; `None` where the kernel does not count it. Pairs are of
/// the sender's and the receiver's host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorTime {
    /// How long the hosts ran (Linux: `/proc/PID/schedstat`).
    pub ran_ns: Option<[u64; 2]>,
    /// How long they were ready to run and waited for a processor.
    pub waited_ns: Option<[u64; 2]>,
    /// How long the kernel's own threads for packets (`ksoftirqd`) waited, whomever the packets belonged to.
    pub softirq_waited_ns: Option<u64>,
    /// Time of all processors together that the machine's own host took from it (`steal` in `/proc/stat`), in steps of 10 ms.
    pub stolen_ns: u64,
    /// Time in which some task of the machine waited (`/proc/pressure/cpu`).
    pub pressure_ns: Option<u64>,
    /// Processors of the machine.
    pub processors: u64,
}

/// What one flow did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowRecord {
    /// Its label in the scenario.
    pub label: String,
    /// The controller as the scenario names it.
    pub controller: String,
    /// Totals.
    pub totals: FlowTotals,
    /// For a flow that sends one transfer after another: how long each delivered transfer took, in order, from when it was
    /// requested or due until its last byte was delivered. The first includes the handshake. For media: how long each complete
    /// frame took, from when it was sent until its last packet arrived, in the order of their completion.
    pub transfers_ns: Vec<u64>,
    /// For a flow that plays a video: how long playback stalled since it began; `None` for any other.
    pub rebuffered_ns: Option<u64>,
    /// Samples over time; empty when the scenario records none.
    pub series: FlowSeries,
}

/// Totals of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowTotals {
    /// Whether its data went over the path back, and its ACKs over the path.
    #[serde(default, skip_serializing_if = "is_no")]
    pub reverse: bool,
    /// When the application began to connect, including jitter.
    pub start_ns: u64,
    /// End of the measured interval: completion of a flow that ends by itself, its stop, or the end of the run.
    pub end_ns: u64,
    /// Whether a flow that ends by itself, a finite one or a script, delivered everything before the end of the run.
    pub completed: bool,
    /// Application bytes that the receiver delivered by `end_ns`: in order, but those of media, and those of a bulk flow in the
    /// world `quic`, in any order, as its streams are read.
    pub delivered_bytes: u64,
    /// Data segments sent, retransmissions included.
    pub segments_sent: u64,
    /// Of these, retransmissions; [`UNKNOWN`] where nobody can tell.
    #[serde(with = "or_null")]
    pub retransmits: u64,
    /// Retransmission timeouts; [`UNKNOWN`] where nobody can tell.
    #[serde(with = "or_null")]
    pub timeouts: u64,
    /// Reductions that were undone as spurious; [`UNKNOWN`] where nobody can tell. In the world `quic`, those after which the
    /// controller allowed or believed something else: not every stack's controller undoes what its stack finds to be spurious.
    #[serde(with = "or_null")]
    pub undos: u64,
    /// Data segments that were delivered by ACKs that echo marks (Linux `tcpi_delivered_ce`); `None` where the flow uses no ECN or
    /// the world does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub echoed_segments: Option<u64>,
    /// Application bytes that were written into the send buffer by `end_ns`; `None` where the world does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_bytes: Option<u64>,
    /// When the application had written all that a flow sends that ends by itself, not later than `end_ns`: an `iperf3 -n` ends
    /// then. `None` if it had not, or if the flow never ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_ns: Option<u64>,
    /// What the sending host knows of the path once the flow's connection has ended; `None` where it keeps nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<Metrics>,
    /// What was seen of the flow from outside, if nothing else is known of it: it is a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen: Option<Seen>,
    /// What became of the frames of a flow of media; `None` for any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frames: Option<Frames>,
}

/// What became of the frames of a flow of media by the end of its measured interval. Those that are under way then, and not yet
/// late, are in `sent` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frames {
    /// Frames sent.
    pub sent: u64,
    /// Those that were complete by their deadline.
    pub in_time: u64,
    /// Those that were complete after their deadline, or still under way then.
    pub late: u64,
    /// Those of which a packet was missing when one of a later frame had arrived (RFC 3550 appendix A.3).
    pub lost: u64,
    /// Packets that were missing in these.
    pub lost_packets: u64,
}

/// What a host keeps of its connections to another (Linux `tcp_metrics`), after one of them has ended. Zeros are unknown. A
/// scenario's `hosts.metrics` begins with such an entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Metrics {
    /// When: at the end of the run for a connection that had not ended.
    pub at_ns: u64,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Degree of reordering, segments.
    pub reordering: u32,
    /// Smoothed round-trip time.
    pub rtt_ns: u64,
    /// Its variation.
    pub rttvar_ns: u64,
}

impl FlowTotals {
    /// How long the flow's measured interval is; zero if it never started.
    pub fn lifetime_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.start_ns)
    }

    /// How long the application wrote; zero if it never started.
    pub fn writing_ns(&self) -> u64 {
        self.written_ns.unwrap_or(self.end_ns).saturating_sub(self.start_ns)
    }
}

/// Samples of a flow over time, in columns of equal length. Absent values are `u64::MAX`, `u32::MAX` or `u8::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSeries {
    /// When.
    pub time_ns: Vec<u64>,
    /// Congestion window, segments.
    pub cwnd: Vec<u32>,
    /// Slow-start threshold, segments; [`fullpipe_cc::Limits::INFINITE`] or anything above it while infinite.
    pub ssthresh: Vec<u32>,
    /// Pacing rate, payload bits per second; `u64::MAX` when unpaced.
    pub pacing_bps: Vec<u64>,
    /// Segments in flight.
    pub inflight: Vec<u32>,
    /// Smoothed RTT; `u64::MAX` before the first sample.
    pub srtt_ns: Vec<u64>,
    /// Windowed minimum RTT of the transport.
    pub min_rtt_ns: Vec<u64>,
    /// Last delivery-rate sample (Linux: `tcpi_delivery_rate`), payload bits per second.
    pub delivery_bps: Vec<u64>,
    /// The controller's bandwidth estimate; `u64::MAX` when it has none.
    pub bandwidth_bps: Vec<u64>,
    /// Application bytes delivered in order so far.
    pub delivered_bytes: Vec<u64>,
    /// Retransmissions so far.
    pub retransmits: Vec<u64>,
    /// Code of the controller's [`Phase`].
    pub phase: Vec<u8>,
    /// Code of the recovery state (`fullpipe_cc::CaState`).
    pub ca_state: Vec<u8>,
}

/// A flow at one time, as the world that runs it sees it. What it does not know is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub time_ns: u64,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; [`Limits::INFINITE`] or anything above it while infinite.
    pub ssthresh: u32,
    /// Pacing rate, payload bits per second; `None` when unpaced.
    pub pacing_bps: Option<u64>,
    /// Segments in flight.
    pub inflight: u32,
    /// Smoothed RTT.
    pub srtt_ns: Option<u64>,
    /// Windowed minimum RTT of the transport.
    pub min_rtt_ns: Option<u64>,
    /// Last delivery-rate sample, payload bits per second.
    pub delivery_bps: u64,
    /// The controller's bandwidth estimate; `None` when it has none.
    pub bandwidth_bps: Option<u64>,
    /// Application bytes delivered so far: in order, but of a bulk flow over QUIC in any order.
    pub delivered_bytes: u64,
    /// Retransmissions so far; [`UNKNOWN`] where nobody can tell.
    pub retransmits: u64,
    /// What the controller is doing.
    pub phase: Phase,
    /// What loss recovery is doing.
    pub ca_state: CaState,
}

/// A flow at one time, as its packets show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenSample {
    /// When.
    pub time_ns: u64,
    /// Smoothed RTT (RFC 6298 section 2).
    pub srtt_ns: Option<u64>,
    /// The lowest RTT so far.
    pub min_rtt_ns: Option<u64>,
    /// Payload bytes delivered so far.
    pub delivered_bytes: u64,
    /// Retransmissions so far; `None` where nobody can tell.
    pub retransmits: Option<u64>,
}

/// What one queue of the path did.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// Its name in the scenario.
    pub name: String,
    /// Packets and bytes through it.
    pub totals: LinkTotals,
    /// Samples over time; empty when the scenario records none.
    pub series: LinkSeries,
}

/// Totals of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTotals {
    /// Packets that arrived.
    pub arrived_packets: u64,
    /// Packets dropped because the queue was full (or no tokens were left).
    pub dropped_packets: u64,
    /// IP bytes that left or wait to leave.
    pub accepted_bytes: u64,
    /// IP bytes that left by the end of the run.
    pub departed_bytes: u64,
    /// IP bytes that could have left in the run at the link's rate; `None` if that has no meaning (a policer) or is
    /// unknown.
    pub capacity_bytes: Option<u64>,
    /// Of the dropped packets, those that a queue discipline dropped although there was room, to signal congestion.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub early_packets: u64,
    /// Packets that a queue discipline marked instead of dropping them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub marked_packets: u64,
}

/// Samples of a link over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSeries {
    /// When.
    pub time_ns: Vec<u64>,
    /// Bytes waiting.
    pub queue_bytes: Vec<u64>,
    /// How long a packet that arrived now would wait.
    pub queue_delay_ns: Vec<u64>,
    /// Drops so far.
    pub dropped_packets: Vec<u64>,
    /// Of these, early ones.
    pub early_packets: Vec<u64>,
    /// Marks so far.
    pub marked_packets: Vec<u64>,
}

/// A queue at one time, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueSample {
    /// When.
    pub time_ns: u64,
    /// Bytes waiting.
    pub backlog_bytes: u64,
    /// How long a packet that arrived now would wait.
    pub delay_ns: u64,
    /// Packets that arrived so far.
    pub arrived_packets: u64,
    /// Of these, packets that were dropped.
    pub dropped_packets: u64,
    /// Of these, packets that a discipline dropped although there was room.
    pub early_packets: u64,
    /// Packets that a discipline marked so far.
    pub marked_packets: u64,
    /// IP bytes admitted so far, those that wait included.
    pub accepted_bytes: u64,
}

impl Run {
    /// Leaves out the time series. The measures of the summary are computed from them, so take [`Run::summary`] first.
    pub fn drop_series(&mut self) {
        self.flows.iter_mut().for_each(|flow| flow.series = FlowSeries::default());
        self.links.iter_mut().for_each(|link| link.series = LinkSeries::default());
    }
}

impl FlowSeries {
    /// Appends a sample.
    pub fn push(&mut self, sample: Sample) {
        self.time_ns.push(sample.time_ns);
        self.cwnd.push(sample.cwnd);
        self.ssthresh.push(if sample.ssthresh >= Limits::INFINITE { u32::MAX } else { sample.ssthresh });
        self.pacing_bps.push(or_absent(sample.pacing_bps));
        self.inflight.push(sample.inflight);
        self.srtt_ns.push(or_absent(sample.srtt_ns));
        self.min_rtt_ns.push(or_absent(sample.min_rtt_ns));
        self.delivery_bps.push(sample.delivery_bps);
        self.bandwidth_bps.push(or_absent(sample.bandwidth_bps));
        self.delivered_bytes.push(sample.delivered_bytes);
        self.retransmits.push(sample.retransmits);
        self.phase.push(sample.phase as u8);
        self.ca_state.push(sample.ca_state as u8);
    }

    /// Appends what packets tell at one time; the rest is absent.
    pub fn push_seen(&mut self, sample: SeenSample) {
        self.time_ns.push(sample.time_ns);
        self.cwnd.push(u32::MAX);
        self.ssthresh.push(u32::MAX);
        self.pacing_bps.push(u64::MAX);
        self.inflight.push(u32::MAX);
        self.srtt_ns.push(or_absent(sample.srtt_ns));
        self.min_rtt_ns.push(or_absent(sample.min_rtt_ns));
        self.delivery_bps.push(u64::MAX);
        self.bandwidth_bps.push(u64::MAX);
        self.delivered_bytes.push(sample.delivered_bytes);
        self.retransmits.push(sample.retransmits.unwrap_or(UNKNOWN));
        self.phase.push(u8::MAX);
        self.ca_state.push(u8::MAX);
    }

    /// Keeps the first `samples` samples.
    pub fn truncate(&mut self, samples: usize) {
        let FlowSeries { time_ns, pacing_bps, srtt_ns, min_rtt_ns, delivery_bps, bandwidth_bps, .. } = self;
        for column in [time_ns, pacing_bps, srtt_ns, min_rtt_ns, delivery_bps, bandwidth_bps] {
            column.truncate(samples);
        }
        for column in [&mut self.delivered_bytes, &mut self.retransmits] {
            column.truncate(samples);
        }
        for column in [&mut self.cwnd, &mut self.ssthresh, &mut self.inflight] {
            column.truncate(samples);
        }
        for column in [&mut self.phase, &mut self.ca_state] {
            column.truncate(samples);
        }
    }

    /// Number of samples.
    ///
    /// # Panics
    /// If the columns differ in length.
    pub fn len(&self) -> usize {
        assert!(self.is_even(), "columns of a flow's series differ in length");
        self.time_ns.len()
    }

    /// Whether all columns are equally long.
    pub(crate) fn is_even(&self) -> bool {
        let columns = [
            self.cwnd.len(),
            self.ssthresh.len(),
            self.pacing_bps.len(),
            self.inflight.len(),
            self.srtt_ns.len(),
            self.min_rtt_ns.len(),
            self.delivery_bps.len(),
            self.bandwidth_bps.len(),
            self.delivered_bytes.len(),
            self.retransmits.len(),
            self.phase.len(),
            self.ca_state.len(),
        ];
        columns.iter().all(|&other| other == self.time_ns.len())
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl QueueSample {
    /// The state of a path's queue at `now`. The path has settled at that time.
    pub fn of(queue: QueueView<'_>, now: Time) -> QueueSample {
        let totals = queue.totals(now);
        QueueSample {
            time_ns: now.as_nanos(),
            backlog_bytes: queue.backlog(now).as_u64(),
            delay_ns: queue.delay(now).as_nanos(),
            arrived_packets: totals.arrived.packets,
            dropped_packets: totals.dropped.packets,
            early_packets: totals.early.packets,
            marked_packets: totals.marked.packets,
            accepted_bytes: totals.accepted.bytes.as_u64(),
        }
    }
}

impl LinkTotals {
    /// Whether a discipline has signalled congestion: by a mark, or by a drop where there was room.
    #[cfg(feature = "parquet")]
    pub(crate) fn has_signals(&self) -> bool {
        self.early_packets > 0 || self.marked_packets > 0
    }
}

impl LinkRecord {
    /// The records of the queues of a path that is made of `elements`, with the series of each, when the run ends at `end`.
    pub fn of_path<'a>(
        elements: &[ElementConfig],
        queues: impl IntoIterator<Item = QueueView<'a>>,
        series: Vec<LinkSeries>,
        end: Time,
    ) -> Vec<LinkRecord> {
        let each = queues.into_iter().zip(series).zip(capacities(elements, end));
        each.map(|((queue, series), capacity_bytes)| {
            LinkRecord::new(queue.name(), QueueSample::of(queue, end), capacity_bytes, series)
        })
        .collect()
    }

    /// The record of a queue that is in the state `end` when the run ends. `capacity_bytes`: see [`LinkTotals`].
    pub fn new(name: &str, end: QueueSample, capacity_bytes: Option<u64>, series: LinkSeries) -> LinkRecord {
        let totals = LinkTotals {
            arrived_packets: end.arrived_packets,
            dropped_packets: end.dropped_packets,
            accepted_bytes: end.accepted_bytes,
            departed_bytes: end.accepted_bytes.saturating_sub(end.backlog_bytes),
            capacity_bytes,
            early_packets: end.early_packets,
            marked_packets: end.marked_packets,
        };
        LinkRecord { name: name.to_owned(), totals, series }
    }
}

impl LinkSeries {
    /// Appends the state of the queue.
    pub fn sample(&mut self, queue: QueueSample) {
        self.time_ns.push(queue.time_ns);
        self.queue_bytes.push(queue.backlog_bytes);
        self.queue_delay_ns.push(queue.delay_ns);
        self.dropped_packets.push(queue.dropped_packets);
        self.early_packets.push(queue.early_packets);
        self.marked_packets.push(queue.marked_packets);
    }

    /// Number of samples.
    ///
    /// # Panics
    /// If the columns differ in length.
    pub fn len(&self) -> usize {
        assert!(self.is_even(), "columns of a link's series differ in length");
        self.time_ns.len()
    }

    /// Whether all columns are equally long.
    pub(crate) fn is_even(&self) -> bool {
        let columns = [
            self.queue_bytes.len(),
            self.queue_delay_ns.len(),
            self.dropped_packets.len(),
            self.early_packets.len(),
            self.marked_packets.len(),
        ];
        columns.iter().all(|&other| other == self.time_ns.len())
    }

    /// Whether there is no sample.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

fn is_no(value: &bool) -> bool {
    !value
}

/// Whether a total is left out of summaries, as it is where no discipline could have made it another.
fn is_zero(total: &u64) -> bool {
    *total == 0
}

/// An absent sample is `u64::MAX`.
fn or_absent(value: Option<u64>) -> u64 {
    value.unwrap_or(u64::MAX)
}

/// A sample, or `None` if it is absent (`u64::MAX`).
pub(crate) fn present(value: u64) -> Option<u64> {
    (value != u64::MAX).then_some(value)
}

/// A small record with every kind of absent value, for tests of this crate.
#[cfg(test)]
pub(crate) fn example() -> Run {
    let ms = 1_000_000;
    let a = FlowRecord {
        label: "a".into(),
        controller: "bbr1".into(),
        totals: FlowTotals {
            end_ns: 1_000 * ms,
            completed: true,
            delivered_bytes: 75_000,
            segments_sent: 100,
            retransmits: 5,
            timeouts: 1,
            written_bytes: Some(75_000),
            written_ns: Some(800 * ms),
            ..FlowTotals::default()
        },
        transfers_ns: Vec::new(),
        rebuffered_ns: None,
        series: FlowSeries {
            time_ns: vec![0, 500 * ms],
            cwnd: vec![10, 30],
            ssthresh: vec![u32::MAX, 20],
            pacing_bps: vec![1_000_000, 2_000_000],
            inflight: vec![0, 25],
            srtt_ns: vec![u64::MAX, 40_500_000],
            min_rtt_ns: vec![u64::MAX, 40 * ms],
            delivery_bps: vec![0, 900_000],
            bandwidth_bps: vec![0, 950_000],
            delivered_bytes: vec![0, 50_000],
            retransmits: vec![0, 5],
            phase: vec![Phase::Startup as u8, Phase::Drain as u8],
            ca_state: vec![0, 3],
        },
    };
    let b = FlowRecord {
        label: "b".into(),
        controller: "reno".into(),
        totals: FlowTotals { end_ns: 1_000 * ms, delivered_bytes: 25_000, ..FlowTotals::default() },
        transfers_ns: vec![20_000_000, 30_500_000],
        rebuffered_ns: Some(1_500_000),
        series: FlowSeries {
            time_ns: vec![500 * ms],
            cwnd: vec![4],
            ssthresh: vec![fullpipe_cc::Limits::INFINITE],
            pacing_bps: vec![u64::MAX],
            inflight: vec![4],
            srtt_ns: vec![50 * ms],
            min_rtt_ns: vec![50 * ms],
            delivery_bps: vec![100_000],
            bandwidth_bps: vec![u64::MAX],
            delivered_bytes: vec![12_500],
            retransmits: vec![0],
            phase: vec![u8::MAX],
            ca_state: vec![0],
        },
    };
    let bottleneck = LinkRecord {
        name: "bottleneck".into(),
        totals: LinkTotals {
            arrived_packets: 10,
            dropped_packets: 3,
            accepted_bytes: 10_500,
            departed_bytes: 9_000,
            capacity_bytes: Some(12_000),
            ..LinkTotals::default()
        },
        series: LinkSeries {
            time_ns: vec![0, 500 * ms],
            queue_bytes: vec![0, 1_500],
            queue_delay_ns: vec![0, 1_200_000],
            dropped_packets: vec![0, 3],
            early_packets: vec![0, 0],
            marked_packets: vec![0, 0],
        },
    };
    Run {
        provenance: Provenance {
            world: WorldName::Sim,
            seed: 7,
            spec_json: r#"{"name":"example"}"#.into(),
            version: "0.1.0".into(),
            host: String::new(),
            kernel: String::new(),
            sysctls: Vec::new(),
            lateness: None,
            processor: None,
            untrustworthy: Vec::new(),
            unsupported: Vec::new(),
        },
        flows: vec![a, b],
        links: vec![bottleneck],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_path::config::{QueueConfig, Schedule};
    use fullpipe_path::{Chain, Packet};
    use fullpipe_units::{Bytes, Duration, Rate};

    /// Every number of its own, so that none can stand in another's column.
    fn sample() -> Sample {
        Sample {
            time_ns: 1,
            cwnd: 2,
            ssthresh: 3,
            pacing_bps: Some(4),
            inflight: 5,
            srtt_ns: Some(6),
            min_rtt_ns: Some(7),
            delivery_bps: 8,
            bandwidth_bps: Some(9),
            delivered_bytes: 10,
            retransmits: 11,
            phase: Phase::Drain,
            ca_state: CaState::Recovery,
        }
    }

    #[test]
    fn sample_values_fill_their_columns() {
        let mut series = FlowSeries::default();
        series.push(sample());
        let expected = FlowSeries {
            time_ns: vec![1],
            cwnd: vec![2],
            ssthresh: vec![3],
            pacing_bps: vec![4],
            inflight: vec![5],
            srtt_ns: vec![6],
            min_rtt_ns: vec![7],
            delivery_bps: vec![8],
            bandwidth_bps: vec![9],
            delivered_bytes: vec![10],
            retransmits: vec![11],
            phase: vec![Phase::Drain as u8],
            ca_state: vec![CaState::Recovery as u8],
        };
        assert_eq!(series, expected);
    }

    #[test]
    fn unknown_value_is_largest_number() {
        let mut series = FlowSeries::default();
        let unknown = Sample {
            ssthresh: Limits::INFINITE,
            pacing_bps: None,
            srtt_ns: None,
            min_rtt_ns: None,
            bandwidth_bps: None,
            ..sample()
        };
        series.push(unknown);
        series.push(Sample { ssthresh: Limits::INFINITE - 1, ..sample() });
        assert_eq!(series.ssthresh, [u32::MAX, Limits::INFINITE - 1]);
        let absent = [series.pacing_bps[0], series.srtt_ns[0], series.min_rtt_ns[0], series.bandwidth_bps[0]];
        assert_eq!(absent, [u64::MAX; 4]);
        assert_eq!(series.len(), 2);
    }

    #[test]
    fn link_record_uses_final_queue() {
        let link = ElementConfig::Link {
            name: "bottleneck".to_owned(),
            rate_bps: Schedule::constant(Rate::from_bits_per_sec(8_000_000)),
            queue: QueueConfig::drop_tail(Bytes::new(3_500), None),
        };
        let delay = ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(5)) };
        let elements = [delay, link];
        let mut chain: Chain<()> = Chain::new(&elements, &[], 1).unwrap();
        let at = |ms| Time::ZERO + Duration::from_millis(ms);
        // 1000 bytes take a millisecond. Of four packets that reach the link at 5 ms, the last finds no room.
        for _ in 0..4 {
            let _ = chain.push(at(0), Packet::new(1000, 0), ());
        }
        while chain.pop(at(7)).is_some() {}
        let sample = QueueSample {
            time_ns: 7_000_000,
            backlog_bytes: 1_000,
            delay_ns: 1_000_000,
            arrived_packets: 4,
            dropped_packets: 1,
            early_packets: 0,
            marked_packets: 0,
            accepted_bytes: 3_000,
        };
        assert_eq!(QueueSample::of(chain.queue(0), at(7)), sample);
        let mut series = LinkSeries::default();
        series.sample(sample);
        let records = LinkRecord::of_path(&elements, [chain.queue(0)], vec![series.clone()], at(7));
        // 7 ms at a byte each microsecond.
        assert_eq!(records, [LinkRecord::new("bottleneck", sample, Some(7_000), series)]);
    }

    #[test]
    fn waiting_at_end_has_not_departed() {
        let end = QueueSample {
            time_ns: 1,
            backlog_bytes: 2,
            delay_ns: 3,
            arrived_packets: 4,
            dropped_packets: 5,
            early_packets: 8,
            marked_packets: 9,
            accepted_bytes: 6,
        };
        let mut series = LinkSeries::default();
        series.sample(end);
        let link = LinkRecord::new("bottleneck", end, Some(7), series);
        let totals = LinkTotals {
            arrived_packets: 4,
            dropped_packets: 5,
            accepted_bytes: 6,
            departed_bytes: 4,
            capacity_bytes: Some(7),
            early_packets: 8,
            marked_packets: 9,
        };
        let series = LinkSeries {
            time_ns: vec![1],
            queue_bytes: vec![2],
            queue_delay_ns: vec![3],
            dropped_packets: vec![5],
            early_packets: vec![8],
            marked_packets: vec![9],
        };
        assert_eq!(link, LinkRecord { name: "bottleneck".into(), totals, series });
    }
}
