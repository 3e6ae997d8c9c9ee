//! A run from start to end, and what is answered of it.

use fullpipe_record::Run;
use fullpipe_scenario::Spec;
use fullpipe_sim::Simulation;
use fullpipe_units::Time;
use serde::Serialize;

use crate::answer::{Answer, Refusal, TableAt};
use crate::{columns, limits};

/// A whole run.
#[derive(Serialize)]
pub(crate) struct RunAnswer {
    pub(crate) summary: String,
    pub(crate) flows: Vec<TableAt>,
    pub(crate) queues: Vec<TableAt>,
    pub(crate) packets: u64,
}

impl RunAnswer {
    /// Everything of a run, its series among the columns of `answer`, if they are kept.
    pub(crate) fn of(answer: &mut Answer, mut run: Run, keep_series: bool) -> RunAnswer {
        let summary = run.summary_json();
        if !keep_series {
            run.drop_series();
        }
        RunAnswer {
            summary,
            flows: run.flows.iter().map(|flow| columns::of_flow(answer, &flow.series, 0)).collect(),
            queues: run.links.iter().map(|link| columns::of_queue(answer, &link.series, 0)).collect(),
            packets: run.flows.iter().map(|flow| flow.totals.segments_sent).sum(),
        }
    }
}

/// Runs a spec from start to end.
pub(crate) fn run(spec: &Spec, seed: u64) -> Result<Run, Refusal> {
    limits::check_rows(spec)?;
    let mut simulation = Simulation::fixed(spec, seed)?;
    limits::advance(&mut simulation, Time::NEVER)?;
    Ok(simulation.finish())
}

/// Runs a spec from start to end, and tells `log` what happens to packets.
pub(crate) fn run_logged(
    spec: &Spec,
    seed: u64,
    log: impl fullpipe_export::Log + Send + 'static,
) -> Result<(), Refusal> {
    limits::check_rows(spec)?;
    let mut simulation = Simulation::logged(spec, seed, Box::new(log))?;
    limits::advance(&mut simulation, Time::NEVER)?;
    Ok(())
}
