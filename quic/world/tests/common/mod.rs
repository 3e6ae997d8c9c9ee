//! What the tests share: scenarios in a few words, and runs of them.

#![allow(dead_code, reason = "no test uses all of it")]

use std::sync::atomic::AtomicBool;

use fullpipe_quic::{Options, QuicError, run_with};
use fullpipe_record::{FlowTotals, Run};
use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::{Format, resolve};

/// A scenario of `seconds` over the path, with the flows, both as in a scenario file.
pub(crate) fn scenario(seconds: f64, path: &str, flows: &str) -> Spec {
    with_hosts(seconds, path, flows, "")
}

/// The same with settings of the hosts.
pub(crate) fn with_hosts(seconds: f64, path: &str, flows: &str, hosts: &str) -> Spec {
    let document = format!(
        "name = \"test\"\nduration = \"{} ms\"\npath = {{ {path} }}\nflows = [{flows}]\nhosts = {{ {hosts} }}\n",
        (seconds * 1000.0).round()
    );
    resolve(&document, Format::Toml, None).unwrap_or_else(|error| panic!("{document}: {error}"))
}

/// Runs it.
pub(crate) fn run(spec: &Spec, seed: u64) -> Run {
    attempt(spec, seed).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs it, perhaps in vain.
pub(crate) fn attempt(spec: &Spec, seed: u64) -> Result<Run, QuicError> {
    run_with(spec, seed, &AtomicBool::new(false), Options::default(), &[])
}

/// What a flow had as goodput, Mbit/s.
pub(crate) fn mbit(totals: &FlowTotals) -> f64 {
    totals.delivered_bytes as f64 * 8e3 / totals.lifetime_ns() as f64
}

/// The controllers that the stacks ship.
pub(crate) const SHIPPED: [&str; 6] =
    ["noq:cubic", "noq:newreno", "noq:bbr3", "quinn:cubic", "quinn:newreno", "quinn:bbr"];
