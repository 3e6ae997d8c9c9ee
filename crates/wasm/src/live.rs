//! Runs that go on step by step.

use std::collections::BTreeMap;

use fullpipe_cc::Limits;
use fullpipe_sim::{FlowView, QueueNow, Simulation, Status};
use fullpipe_units::Time;
use serde::Serialize;

use crate::answer::{Answer, Refusal, TableAt};
use crate::columns::{self, seconds};
use crate::limits;
use crate::run::RunAnswer;

/// The most live runs at a time.
const MOST: usize = 16;

/// All that are open, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct LiveRuns {
    opened: u32,
    runs: BTreeMap<u32, Live>,
}

/// A live run.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) simulation: Simulation,
    /// How many samples of each flow, and of each queue, the page has.
    reported_flows: Vec<usize>,
    reported_queues: Vec<usize>,
}

/// The number of a new one.
#[derive(Serialize)]
pub(crate) struct Opened {
    pub(crate) run: u32,
}

/// What a step gives.
#[derive(Serialize)]
pub(crate) struct Step {
    now_s: f64,
    end_s: f64,
    running: bool,
    flows: Vec<FlowAt>,
    queues: Vec<QueueAt>,
    flow_series: Vec<TableAt>,
    queue_series: Vec<TableAt>,
}

/// A flow at the end of a step.
#[derive(Serialize)]
struct FlowAt {
    label: String,
    controller: String,
    connected: bool,
    phase: Option<&'static str>,
    state: Option<&'static str>,
    cwnd: Option<u32>,
    ssthresh: Option<u32>,
    pacing_bps: Option<u64>,
    inflight: u32,
    srtt_s: Option<f64>,
    min_rtt_s: Option<f64>,
    delivery_bps: Option<u64>,
    bandwidth_bps: Option<u64>,
    delivered_bytes: u64,
    segments_sent: u64,
    lost: u64,
    retransmits: u64,
    timeouts: u64,
    ended_s: Option<f64>,
}

/// A queue at the end of a step.
#[derive(Serialize)]
struct QueueAt {
    name: String,
    backlog_bytes: u64,
    /// Absent while the link is down for good.
    delay_s: Option<f64>,
    arrived_packets: u64,
    dropped_packets: u64,
    early_packets: u64,
    marked_packets: u64,
}

/// A whole run, and the spec with all its changes as JSON.
#[derive(Serialize)]
pub(crate) struct Finished {
    #[serde(flatten)]
    run: RunAnswer,
    changed: String,
}

/// A time that the page names in seconds.
pub(crate) fn time(seconds: f64) -> Time {
    // Saturates, and is zero for what is no number.
    Time::from_nanos((seconds * 1e9).round() as u64)
}

impl LiveRuns {
    pub(crate) fn open(&mut self, simulation: Simulation) -> Result<u32, Refusal> {
        if self.runs.len() >= MOST {
            return Err(Refusal::Failure(format!("{MOST} live runs are open already; close one")));
        }
        let reported_flows = vec![0; simulation.flows()];
        let reported_queues = vec![0; simulation.link_series().count()];
        self.opened += 1;
        self.runs.insert(self.opened, Live { simulation, reported_flows, reported_queues });
        Ok(self.opened)
    }

    pub(crate) fn get(&mut self, number: u32) -> Result<&mut Live, Refusal> {
        self.runs.get_mut(&number).ok_or_else(|| gone(number))
    }

    pub(crate) fn take(&mut self, number: u32) -> Result<Live, Refusal> {
        self.runs.remove(&number).ok_or_else(|| gone(number))
    }
}

fn gone(number: u32) -> Refusal {
    Refusal::Failure(format!("live run {number} is finished or closed"))
}

impl Live {
    /// Advances it, and tells what is new.
    pub(crate) fn advance(&mut self, answer: &mut Answer, until: Time) -> Result<Step, Refusal> {
        let status = limits::advance(&mut self.simulation, until)?;
        let Live { simulation, reported_flows, reported_queues } = self;
        let flow_series = reported_flows.iter_mut().enumerate().map(|(index, reported)| {
            let series = simulation.flow_series(index);
            columns::of_flow(answer, series, std::mem::replace(reported, series.len()))
        });
        let flow_series = flow_series.collect();
        let queue_series = simulation.link_series().zip(reported_queues);
        let queue_series = queue_series.map(|(series, reported)| {
            columns::of_queue(answer, series, std::mem::replace(reported, series.len()))
        });
        Ok(Step {
            now_s: simulation.now().as_secs_f64(),
            end_s: simulation.end().as_secs_f64(),
            running: status == Status::Running,
            flow_series,
            queue_series: queue_series.collect(),
            flows: (0..simulation.flows()).map(|index| FlowAt::of(&simulation.flow(index))).collect(),
            queues: simulation.queues().iter().map(QueueAt::of).collect(),
        })
    }

    /// Ends it where it is.
    pub(crate) fn finish(self, answer: &mut Answer) -> Finished {
        let spec = self.simulation.spec();
        let (changed, keep_series) = (spec.to_json(), spec.keep_series);
        Finished { run: RunAnswer::of(answer, self.simulation.finish(), keep_series), changed }
    }
}

impl FlowAt {
    fn of(flow: &FlowView<'_>) -> FlowAt {
        let sample = flow.sample();
        let sample = sample.as_ref();
        FlowAt {
            label: flow.label().to_owned(),
            controller: flow.controller().to_owned(),
            connected: sample.is_some(),
            phase: sample.map(|sample| sample.phase.name()),
            state: sample.map(|sample| sample.ca_state.name()),
            cwnd: sample.map(|sample| sample.cwnd),
            ssthresh: sample.map(|sample| sample.ssthresh).filter(|&most| most < Limits::INFINITE),
            pacing_bps: sample.and_then(|sample| sample.pacing_bps),
            inflight: sample.map_or(0, |sample| sample.inflight),
            srtt_s: sample.and_then(|sample| sample.srtt_ns.as_ref()).map(seconds),
            min_rtt_s: sample.and_then(|sample| sample.min_rtt_ns.as_ref()).map(seconds),
            delivery_bps: sample.map(|sample| sample.delivery_bps),
            bandwidth_bps: sample.and_then(|sample| sample.bandwidth_bps),
            delivered_bytes: flow.delivered_bytes(),
            segments_sent: flow.segments_sent(),
            lost: flow.lost(),
            retransmits: sample.map_or(0, |sample| sample.retransmits),
            timeouts: flow.timeouts(),
            ended_s: flow.ended().map(|(at, _)| at.as_secs_f64()),
        }
    }
}

impl QueueAt {
    fn of(queue: &QueueNow<'_>) -> QueueAt {
        let sample = &queue.sample;
        QueueAt {
            name: queue.name.to_owned(),
            backlog_bytes: sample.backlog_bytes,
            delay_s: (sample.delay_ns != u64::MAX).then(|| seconds(&sample.delay_ns)),
            arrived_packets: sample.arrived_packets,
            dropped_packets: sample.dropped_packets,
            early_packets: sample.early_packets,
            marked_packets: sample.marked_packets,
        }
    }
}
