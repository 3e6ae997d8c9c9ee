//! Equal seeds give equal records: one after the other, on many threads at once, and in other processes; with real keys and with
//! null ones.

mod common;

use std::process::Command;
use std::sync::atomic::AtomicBool;

use common::{SHIPPED, assert_same, run, scenario};
use fullpipe_quic::{Crypto, Options, run_with};
use fullpipe_record::Run;
use fullpipe_scenario::spec::Spec;

/// Some of ours.
const OURS: [&str; 3] = ["bbr3", "cubic", "copa"];

/// A path on which chance matters, with two flows.
fn random_path(controller: &str) -> Spec {
    scenario(
        8.0,
        r#"rate = "10 Mbit/s", rtt = "40 ms", loss = "0.5 %""#,
        &format!(
            r#"{{ controller = "{controller}" }}, {{ controller = "{controller}", start = "1 s", start_jitter = "20 ms" }}"#
        ),
    )
}

/// A short name of a record: FNV-1a of its text.
fn fingerprint(run: &Run) -> u64 {
    let text = format!("{run:?}");
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[test]
fn equal_seeds_repeat_across_threads() {
    for controller in SHIPPED.into_iter().chain(OURS) {
        let spec = random_path(controller);
        let alone = run(&spec, 3);
        let together: Vec<Run> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| run(&spec, 3))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        for other in together {
            assert_same(&other, &alone, controller);
        }
        assert!(run(&spec, 4).flows != alone.flows, "{controller}");
    }
}

/// Each test binary runs itself once more for this.
#[test]
fn equal_seeds_repeat_across_processes() {
    const CHILD: &str = "FULLPIPE_QUIC_TEST_CHILD";
    let here: Vec<u64> = SHIPPED
        .iter()
        .chain(&OURS)
        .map(|controller| fingerprint(&run(&random_path(controller), 5)))
        .collect();
    let here = format!("fingerprints {here:?}");
    if std::env::var_os(CHILD).is_some() {
        println!("{here}");
        return;
    }
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "equal_seeds_repeat_across_processes", "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let message = String::from_utf8_lossy(&child.stdout);
    assert!(message.contains(&here), "here {here}; there {message}");
}

fn run_with_keys(spec: &Spec, crypto: Crypto) -> Run {
    let options = Options { crypto, ..Options::default() };
    run_with(spec, 6, &AtomicBool::new(false), options, &[])
        .unwrap_or_else(|error| panic!("{crypto:?}: {error}"))
}

fn assert_same_with_either_keys(controller: &str, spec: &Spec) -> Run {
    let real = run_with_keys(spec, Crypto::Real);
    assert_same(&run_with_keys(spec, Crypto::Null), &real, controller);
    real
}

#[test]
fn null_and_real_keys_match() {
    for controller in SHIPPED.into_iter().chain(OURS) {
        assert_same_with_either_keys(controller, &random_path(controller));
    }
}

/// A packet that is overtaken by more than 128 others may carry eight bits of its number only, from which the receiver makes
/// another number (RFC 9000 appendix A.3). No keys may open it: those that did acknowledged packets that were never sent.
#[test]
fn too_late_packet_never_opens() {
    for controller in SHIPPED.into_iter().chain(OURS) {
        let spec = scenario(
            12.0,
            r#"rate = "50 Mbit/s", rtt = "40 ms", buffer = "4 bdp", after = [{ kind = "reorder", probability = "0.2 %", delay = "60 ms" }]"#,
            &format!("{{ controller = \"{controller}\" }}"),
        );
        let record = assert_same_with_either_keys(controller, &spec);
        assert!(record.flows[0].totals.retransmits > 0, "{controller}");
    }
}
