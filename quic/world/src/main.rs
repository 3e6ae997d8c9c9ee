//! The program `fullpipe-quic`: see [`fullpipe_quic::program`].

use std::process::ExitCode;

fn main() -> ExitCode {
    fullpipe_quic::program::main(Vec::new())
}
