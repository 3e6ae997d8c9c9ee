//! Runs one of our controllers in this kernel, repeats every call of it in user space, and prints what came of it as JSON.
//! Arguments as those of `kernel_run`. Exit code 1: some call differs, or was lost.

use std::process::ExitCode;

mod common;

fn main() -> ExitCode {
    fullpipe_emu::die_with_parent();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some((spec, seed)) = common::spec_of(&arguments) else {
        eprintln!("usage: kernel_prove CC RATE_MBPS RTT_MS BUFFER_BYTES LOSS DURATION_S [SEED [FLOW_BYTES]]");
        return ExitCode::from(2);
    };
    match fullpipe_kernel::prove(&spec, seed) {
        Ok((run, proof)) => {
            println!("{}", proof.to_json());
            for flow in &run.flows {
                let seconds = (flow.totals.end_ns - flow.totals.start_ns) as f64 / 1e9;
                let mbps = flow.totals.delivered_bytes as f64 * 8.0 / seconds / 1e6;
                println!(
                    "flow {} goodput_mbps {mbps:.3} retransmits {}",
                    flow.label, flow.totals.retransmits
                );
            }
            ExitCode::from(u8::from(proof.different + proof.lost > 0))
        }
        Err(error) => {
            eprintln!("error: {error}\n  {}", error.fix());
            ExitCode::from(3)
        }
    }
}
