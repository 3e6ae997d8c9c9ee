//! Data packets that a CPU simulates in a second, both endpoints: of each controller, with null keys and with real ones.
//!
//! `cargo run --release --example speed [-- SECONDS RATE_MBIT [CONTROLLER...]]`
//!
//! The path is 50 Mbit/s and 50 ms with a buffer of one BDP, for 30 s, unless said otherwise.

use std::sync::atomic::AtomicBool;

use fullpipe_quic::{Crypto, Options, run_with};
use fullpipe_scenario::{Format, resolve};

/// CPU time of this process so far, nanoseconds.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` may be written.
    #[expect(clippy::disallowed_methods, reason = "a benchmark")]
    let failed = unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    assert_eq!(failed, 0);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn main() {
    let mut arguments = std::env::args().skip(1);
    let seconds = arguments.next().unwrap_or_else(|| "30".to_owned());
    let rate = arguments.next().unwrap_or_else(|| "50".to_owned());
    let mut controllers: Vec<String> = arguments.collect();
    if controllers.is_empty() {
        let all = ["noq:cubic", "noq:newreno", "noq:bbr3", "quinn:cubic", "quinn:newreno", "quinn:bbr"];
        controllers = all.map(str::to_owned).to_vec();
    }
    println!(
        "{:16} {:5} {:>5} {:>8} {:>9} {:>12}",
        "controller", "keys", "batch", "goodput", "packets", "a CPU second"
    );
    for controller in controllers {
        for (crypto, batch) in [
            (Crypto::Null, Options::BATCH),
            (Crypto::Null, 1),
            (Crypto::Real, Options::BATCH),
            (Crypto::Real, 1),
        ] {
            let document = format!(
                "name = \"speed\"\nduration = \"{seconds} s\"\npath = {{ rate = \"{rate} Mbit/s\", rtt = \"50 ms\", buffer = \
                 \"1 bdp\" }}\nflows = [{{ controller = \"{controller}\" }}]\n"
            );
            let spec = resolve(&document, Format::Toml, None).expect("a scenario");
            let options = Options { crypto, batch, ..Options::default() };
            let before = cpu_ns();
            let run = run_with(&spec, 1, &AtomicBool::new(false), options, &[]).expect("it runs");
            let cpu = (cpu_ns() - before) as f64 / 1e9;
            let totals = &run.flows[0].totals;
            let goodput = totals.delivered_bytes as f64 * 8.0 / (totals.lifetime_ns() as f64 / 1e3);
            println!(
                "{controller:16} {crypto:5?} {batch:5} {goodput:8.2} {:9} {:12.0}",
                totals.segments_sent,
                totals.segments_sent as f64 / cpu
            );
        }
    }
}
