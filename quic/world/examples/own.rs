//! A program with a controller of one's own: the least that is needed.
//!
//! `cargo build --release --example own`, and then
//! `FULLPIPE_QUIC=target/release/examples/own fullpipe compare noq:mine noq:cubic --world quic`.

use std::process::ExitCode;
use std::sync::Arc;

use fullpipe_quic::{Own, program};

fn main() -> ExitCode {
    // Stands for your factory: anything that implements noq's `ControllerFactory`.
    let mut factory = noq_proto::congestion::NewRenoConfig::default();
    factory.initial_window(20 * 1200);
    program::main(vec![Own::noq("mine", Arc::new(factory))])
}
