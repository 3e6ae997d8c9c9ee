//! Runs flows over the kernel's TCP and prints what came of them:
//!
//! ```text
//! kernel_run CC[+CC...] RATE_MBPS RTT_MS BUFFER_BYTES LOSS DURATION_S [SEED [FLOW_BYTES]] [--series] [--ecn]
//!            [--queue=DISCIPLINE] [--burst] [--linux-queue]
//! kernel_run bbr+cubic 100 20 250000 0 40
//! ```
//!
//! One line a flow: goodput, retransmits, mean smoothed RTT; then queue drops and lateness. Exit code 3 says that the
//! kernel world is not permitted here. Ends when its standard input, if a pipe, is closed.

use std::process::ExitCode;

use fullpipe_emu::EmuError;
use fullpipe_kernel::KernelError;
use fullpipe_path::config::{AdmissionUnit, DisciplineConfig, ElementConfig};
use fullpipe_scenario::spec::Spec;

mod common;

const NOT_PERMITTED: u8 = 3;

fn main() -> ExitCode {
    fullpipe_emu::die_with_parent();
    let (options, arguments): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
    let Some((mut spec, seed)) = common::spec_of(&arguments) else {
        eprintln!(
            "usage: kernel_run CC[+CC...] RATE_MBPS RTT_MS BUFFER_BYTES LOSS DURATION_S [SEED [FLOW_BYTES]] [--series] \
             [--ecn] [--queue=DISCIPLINE] [--burst] [--linux-queue]"
        );
        return ExitCode::from(2);
    };
    if !apply(&options, &mut spec) {
        eprintln!("unknown option among {options:?}");
        return ExitCode::from(2);
    }
    let series = options.iter().any(|option| option == "--series");
    let behind = options.iter().any(|option| option == "--linux-queue");
    let run = if behind { fullpipe_kernel::run_behind_qdisc } else { fullpipe_kernel::run };
    let run = match run(&spec, seed) {
        Ok(run) => run,
        Err(error) => {
            eprintln!("error: {error}\n  {}", error.fix());
            return ExitCode::from(match error {
                KernelError::Emu(EmuError::NotPermitted { .. } | EmuError::NoTun(_))
                | KernelError::NoAlgorithm { .. } => NOT_PERMITTED,
                _ => 1,
            });
        }
    };
    for flow in &run.flows {
        let totals = &flow.totals;
        let seconds = (totals.end_ns - totals.start_ns) as f64 / 1e9;
        let rtts: Vec<f64> = flow.series.srtt_ns.iter().map(|ns| *ns as f64 / 1e6).collect();
        println!(
            "flow {} goodput_mbps {:.3} retransmits {} mean_srtt_ms {:.2} timeouts {} undos {} segments {} seconds {:.2} \
             echoed {}",
            flow.label,
            totals.delivered_bytes as f64 * 8.0 / seconds / 1e6,
            totals.retransmits,
            rtts.iter().sum::<f64>() / rtts.len().max(1) as f64,
            totals.timeouts,
            totals.undos,
            totals.segments_sent,
            seconds,
            totals.echoed_segments.map_or("none".to_owned(), |count| count.to_string()),
        );
    }
    for flow in run.flows.iter().filter(|_| series) {
        let s = &flow.series;
        for i in 0..s.len() {
            println!(
                "sample {:.3} cwnd {} ssthresh {} inflight {} srtt_ms {:.2} retransmits {} phase {} ca {}",
                s.time_ns[i] as f64 / 1e9,
                s.cwnd[i],
                s.ssthresh[i] as i32,
                s.inflight[i],
                s.srtt_ns[i] as f64 / 1e6,
                s.retransmits[i],
                s.phase[i],
                s.ca_state[i]
            );
        }
    }
    for link in &run.links {
        println!(
            "link {} arrived {} dropped {} early {} marked {}",
            link.name,
            link.totals.arrived_packets,
            link.totals.dropped_packets,
            link.totals.early_packets,
            link.totals.marked_packets
        );
    }
    if let Some(late) = run.provenance.lateness {
        println!(
            "lateness_us p50 {:.1} p99 {:.1} p99.9 {:.1} max {:.1} packets {}",
            late.p50_ns as f64 / 1e3,
            late.p99_ns as f64 / 1e3,
            late.p999_ns as f64 / 1e3,
            late.max_ns as f64 / 1e3,
            late.packets
        );
    }
    for reason in &run.provenance.untrustworthy {
        println!("untrustworthy {reason}");
    }
    ExitCode::SUCCESS
}

/// Applies `--ecn`, `--queue=DISCIPLINE` (with its defaults) and `--burst`; returns whether it knows all options.
fn apply(options: &[String], spec: &mut Spec) -> bool {
    let Some(ElementConfig::Link { queue, .. }) = spec.forward.first_mut() else { return false };
    options.iter().all(|option| match option.split_once('=') {
        None if option == "--ecn" => {
            spec.hosts.ecn = true;
            true
        }
        None if option == "--burst" => {
            queue.unit = AdmissionUnit::Burst;
            true
        }
        Some(("--queue", name)) => {
            DisciplineConfig::by_name(name).map(|discipline| queue.discipline = discipline).is_some()
        }
        _ => option == "--series" || option == "--linux-queue",
    })
}
