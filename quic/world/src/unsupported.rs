//! What a run does not support, in sentences for its record.
//!
//! What an adapter of ours does not get from its stack is said by the adapter, and only repeated here.

use fullpipe_scenario::spec::{Spec, Workload};

use crate::outside::not_told;
use crate::stack::OutsideStack;

/// Said of a transfer over noq. Of a bulk flow, what lies behind a hole counts, too. `tests/noq_stream_hole.rs` has the cause.
const HOLE: &str = "noq can lose bytes of a stream for good after thousands of losses, because this world reads streams in any \
                    order: the transfer never completes.";
const PACING: &str = "hosts.pacing is ignored: the stack paces every flow.";
const POLICY: &str = "hosts.pacing is ignored: the stack paces by its own policy.";
const MODEL: &str =
    "hosts.model is ignored: it is about TCP's hosts, and here the stack's own endpoints run.";

/// Controllers of quinn's that have no rate.
const BY_WINDOW: [&str; 2] = ["cubic", "newreno"];

/// Each sentence once: what concerns the flows, in their order, and then the settings that are ignored.
pub(crate) fn unsupported(spec: &Spec, outside: &[OutsideStack]) -> Vec<String> {
    let mut message: Vec<&str> = Vec::new();
    for flow in &spec.flows {
        match flow.controller.stack() {
            // Nothing shows whether a controller that a program brings has a rate.
            Some(("quinn", name)) if BY_WINDOW.contains(&name) => {}
            Some(("quinn", _)) => message.push(fullpipe_quinn::PACER_TAKES_NO_RATE),
            Some((stack, _)) if stack != "noq" => {}
            inside_noq => {
                if inside_noq.is_none() {
                    message.extend(fullpipe_noq::unsupported());
                }
                if flow.workload != Workload::Bulk {
                    message.push(HOLE);
                }
            }
        }
    }
    if spec.hosts.pacing {
        message.push(if outside.is_empty() { PACING } else { POLICY });
    }
    if !spec.hosts.model.is_ideal() {
        message.push(MODEL);
    }
    let not_told = outside.iter().filter_map(not_told);
    let mut once: Vec<String> = Vec::new();
    for sentence in message.into_iter().map(str::to_owned).chain(not_told) {
        if !once.contains(&sentence) {
            once.push(sentence);
        }
    }
    once
}
