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

/// Panics if two records differ, and names where, because whole records are long.
pub(crate) fn assert_same(one: &Run, other: &Run, what: &str) {
    assert_eq!(one.provenance, other.provenance, "{what}");
    for (one, other) in one.flows.iter().zip(&other.flows) {
        assert_eq!(one.totals, other.totals, "{what}: {}", one.label);
        let differs = |(index, _): &(usize, &u64)| {
            let of = |flow: &fullpipe_record::FlowRecord| {
                let series = &flow.series;
                (
                    series.time_ns.get(*index).copied(),
                    series.cwnd.get(*index).copied(),
                    series.delivered_bytes.get(*index).copied(),
                )
            };
            of(one) != of(other)
        };
        let first = one.series.time_ns.iter().enumerate().find(differs);
        assert_eq!(first, None, "{what}: {} differs from this sample on", one.label);
    }
    for (one, other) in one.links.iter().zip(&other.links) {
        assert_eq!(one.totals, other.totals, "{what}: {}", one.name);
        let samples = |link: &fullpipe_record::LinkRecord| {
            let series = &link.series;
            let rows = series.time_ns.iter().zip(&series.queue_bytes).zip(&series.queue_delay_ns);
            rows.map(|((time, bytes), delay)| (*time, *bytes, *delay)).collect::<Vec<_>>()
        };
        let (one, other) = (samples(one), samples(other));
        let first = one.iter().zip(&other).find(|(one, other)| one != other);
        assert_eq!(first, None, "{what}: a queue differs");
    }
    for (one, other) in one.flows.iter().zip(&other.flows) {
        let columns = |flow: &fullpipe_record::FlowRecord| {
            let series = &flow.series;
            let known = [
                &series.pacing_bps,
                &series.srtt_ns,
                &series.min_rtt_ns,
                &series.delivery_bps,
                &series.bandwidth_bps,
            ];
            known.map(Clone::clone)
        };
        for (column, (one, other)) in columns(one).iter().zip(&columns(other)).enumerate() {
            let first = one.iter().zip(other).position(|(one, other)| one != other);
            assert_eq!(first, None, "{what}: column {column}");
        }
    }
    assert!(one == other, "{what}: the records differ");
}
