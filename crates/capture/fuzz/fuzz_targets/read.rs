//! Reads any bytes as a capture. Ten minutes, in `crates/capture`, with a nightly compiler and `cargo install cargo-fuzz`:
//!
//! ```sh
//! FULLPIPE_CORPUS=fuzz/corpus/read cargo test --lib fuzzed && cargo +nightly fuzz run read -- -max_total_time=600
//! ```
#![no_main]

use std::sync::atomic::AtomicBool;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if let Ok(capture) = fullpipe_capture::read(bytes, &AtomicBool::new(false)) {
        capture.check(bytes.len());
    }
});
