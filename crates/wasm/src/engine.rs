//! A request is answered.

use fullpipe_path::config::ElementConfig;
use fullpipe_scenario::facts::Steps;
use fullpipe_scenario::resolve::notes;
use fullpipe_scenario::{Format, Resolved, Spec};
use fullpipe_sim::{Mistake, Simulation};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::answer::{Answer, Refusal};
use crate::catalogue::Catalogue;
use crate::live::{LiveRuns, Opened};
use crate::request::{Document, Request, RunRequest};
use crate::run::{RunAnswer, run};
use crate::{limits, live, packets, qlog};

/// The engine: it has the live runs, and nothing else.
#[derive(Debug, Default)]
pub struct Engine {
    runs: LiveRuns,
}

#[derive(Serialize)]
struct ResolvedAnswer {
    document: Box<RawValue>,
    alternatives: Vec<Alternative>,
    notes: Vec<String>,
}

#[derive(Serialize)]
struct Alternative {
    name: String,
    duration_s: f64,
    mss_bytes: u32,
    flows: Vec<FlowOf>,
    queues: Vec<String>,
    facts: Facts,
}

#[derive(Serialize)]
struct FlowOf {
    label: String,
    controller: String,
    start_s: f64,
}

/// What is known of a path at its start.
#[derive(Serialize)]
struct Facts {
    rate_bps: Option<u64>,
    rtt_s: Option<f64>,
    bdp_bytes: Option<u64>,
    buffer_bytes: Option<u64>,
}

impl Engine {
    /// Answers a request, which is JSON.
    pub fn answer(&mut self, request: &[u8]) -> Answer {
        let request = serde_json::from_slice(request)
            .map_err(|error| Refusal::Failure(format!("the engine does not understand the page: {error}")));
        match request.and_then(|request| self.carry_out(request)) {
            Ok(answer) => answer,
            Err(refusal) => Answer::refusal(&refusal),
        }
    }

    fn carry_out(&mut self, request: Request) -> Result<Answer, Refusal> {
        let mut answer = Answer::default();
        match request {
            Request::Catalogue => Ok(answer.ok(&Catalogue::new())),
            Request::Resolve { document } => Ok(answer.ok(&resolved_answer(resolved(&document)?))),
            Request::Run(request) => {
                let spec = spec(&request)?;
                let run = run(&spec, request.seed)?;
                let run = RunAnswer::of(&mut answer, run, spec.keep_series);
                Ok(answer.ok(&run))
            }
            Request::Summaries { documents, seeds } => {
                let mut rows = Vec::with_capacity(documents.len());
                for document in &documents {
                    let (_, spec) = alternative(resolved(document)?, 0)?;
                    let row = seeds.iter().map(|&seed| Ok(run(&spec, seed)?.summary_json()));
                    rows.push(row.collect::<Result<Vec<String>, Refusal>>()?);
                }
                Ok(answer.ok(&rows))
            }
            Request::Open(request) => {
                let spec = spec(&request)?;
                limits::check_rows(&spec)?;
                let run = self.runs.open(Simulation::new(&spec, request.seed)?)?;
                Ok(answer.ok(&Opened { run }))
            }
            Request::Advance { run, until_s } => {
                let step = self.runs.get(run)?.advance(&mut answer, live::time(until_s))?;
                Ok(answer.ok(&step))
            }
            Request::Change { run, change } => {
                self.runs.get(run)?.simulation.change_text(&change)?;
                Ok(answer.ok(&()))
            }
            Request::Finish { run } => {
                let finished = self.runs.take(run)?.finish(&mut answer);
                Ok(answer.ok(&finished))
            }
            Request::Close { run } => {
                self.runs.take(run)?;
                Ok(answer.ok(&()))
            }
            Request::Packets { run, flow, most_rows } => {
                let (spec, seed) = (spec(&run)?, run.seed);
                let packets = packets::of_flow(&mut answer, &spec, seed, flow, most_rows)?;
                Ok(answer.ok(&packets))
            }
            Request::Qlog { run, form } => {
                let (label, spec) = chosen(&run)?;
                answer.text = qlog::of_run(&label, &spec, run.seed, form)?;
                Ok(answer.ok(&()))
            }
        }
    }
}

fn resolved(document: &Document) -> Result<Resolved, Refusal> {
    limits::resolve(&document.text, document.format)
}

/// The spec that a request is about.
fn spec(request: &RunRequest) -> Result<Spec, Refusal> {
    Ok(chosen(request)?.1)
}

/// The same with its label.
fn chosen(request: &RunRequest) -> Result<(String, Spec), Refusal> {
    alternative(resolved(&request.document)?, request.alternative)
}

fn alternative(mut resolved: Resolved, number: usize) -> Result<(String, Spec), Refusal> {
    let alternatives = resolved.alternatives.len();
    if number >= alternatives {
        let given = format!("there is no number {number}");
        let expected = format!("a number below {alternatives}");
        return Err(Mistake::new("compare", &given, &expected, "choose another alternative").into());
    }
    Ok(resolved.alternatives.swap_remove(number))
}

fn resolved_answer(resolved: Resolved) -> ResolvedAnswer {
    let several = resolved.alternatives.len() > 1;
    let specs: Vec<Spec> = resolved.alternatives.iter().map(|(_, spec)| spec.clone()).collect();
    let document = fullpipe_scenario::document::Document::read(&resolved.document, Format::Json);
    let notes = document.map(|document| notes(&document, &specs)).unwrap_or_default();
    let alternatives = resolved.alternatives.into_iter().map(|(name, spec)| {
        let name = if several { name } else { String::new() };
        Alternative::of(name, &spec)
    });
    ResolvedAnswer {
        alternatives: alternatives.collect(),
        notes,
        document: RawValue::from_string(resolved.document).expect("the document is JSON"),
    }
}

impl Alternative {
    fn of(name: String, spec: &Spec) -> Alternative {
        let facts = spec.path_facts();
        let start = |steps: Option<&Steps>| steps.and_then(|steps| steps.first()).map(|step| step.1);
        let trip = facts.round_trips.first();
        let queues = spec.forward.iter().chain(&spec.reverse).filter_map(ElementConfig::name);
        let flows = spec.flows.iter().map(|flow| FlowOf {
            label: flow.label.clone(),
            controller: flow.controller.text().to_owned(),
            start_s: flow.start_ns.as_secs_f64(),
        });
        Alternative {
            name,
            duration_s: spec.duration_ns.as_secs_f64(),
            mss_bytes: spec.mss(),
            flows: flows.collect(),
            queues: queues.map(str::to_owned).collect(),
            facts: Facts {
                rate_bps: start(trip.and_then(|trip| trip.rate_bps.as_ref())),
                rtt_s: start(trip.map(|trip| &trip.rtt_ns)).map(|rtt| rtt as f64 / 1e9),
                bdp_bytes: start(trip.and_then(|trip| trip.bdp_bytes.as_ref())),
                buffer_bytes: spec
                    .bottleneck()
                    .and_then(ElementConfig::queue)
                    .map(|queue| queue.bytes.as_u64()),
            },
        }
    }
}
