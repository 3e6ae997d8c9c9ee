//! Injects each fault into a test object (`crates/bpf/objects/faults.o`): the connection goes on with the kernel's Reno, and the fall is
//! counted by its cause. Without the guards, it would not.

use super::*;
use crate::recorder::common;
use crate::run::run_with;

const OBJECT: &[u8] = include_bytes!("../../../bpf/objects/faults.o");

/// Fault, its code in `enum fault`, what it is counted as, and whether a connection without the guard cannot use the path.
const FAULTS: [(&str, u64, &str, bool); 6] = [
    ("storage", 1, "storage", true),
    ("stuck", 2, "stuck", true),
    ("clock", 3, "clock", false),
    ("magic", 4, "magic", false),
    ("rate", 5, "outcome", false),
    ("panic", 6, "panic", false),
];

/// Causes and how often each happened.
type Falls = Vec<(&'static str, u64)>;

/// Goodput in Mbit/s over 20 Mbit/s and 40 ms for 6 s, with a fault, and the falls.
fn run(fault: u64, guarded: bool) -> Result<(f64, Falls), KernelError> {
    let arguments = ["bbr3", "20", "40", "100000", "0", "6"].map(str::to_owned);
    let (spec, seed) = common::spec_of(&arguments).unwrap();
    let params = *spec.flows[0].controller.params().unwrap();
    let file = File::of(&params).unwrap();
    let options = Options { hz: sys::ticks_per_second(), recording: false, timing: false };
    let name = name_of_a_run(1);
    let loaded = Loaded::from_file(&file.file_of(OBJECT, &name, &params, options), &name, How::default())?;
    let faults = loaded.map(c"faults")?;
    bpf::set_element(faults, 0, &fault.to_ne_bytes()).unwrap();
    bpf::set_element(faults, 1, &u64::from(!guarded).to_ne_bytes()).unwrap();
    let ours = Ours { loaded: vec![(params, name, loaded)] };
    let run = run_with(&spec, seed, &ours)?;
    let totals = &run.flows[0].totals;
    let counters = status::counters(ours.loaded[0].2.map(c"counters")?).unwrap();
    assert!(!run.provenance.untrustworthy.is_empty(), "a run with a fall says so");
    Ok((totals.delivered_bytes as f64 * 8e-6 / 6.0, counters.fallen().collect()))
}

#[test]
#[ignore = "needs a process of its own: faults_leave_a_connection_with_reno runs it"]
fn faults() {
    for (name, code, cause, is_fatal) in FAULTS {
        let (goodput, fallen) = match run(code, true) {
            Ok(found) => found,
            Err(error) => return println!("skipped: {error}"),
        };
        assert_eq!(fallen, [(cause, 1)], "{name}: the one connection fell once");
        assert!(goodput > if code == 2 { 5.0 } else { 10.0 }, "{name}: Reno has {goodput:.1} of 20 Mbit/s");
        let (unguarded, _) = run(code, false).unwrap();
        println!("{name}: {goodput:.1} Mbit/s guarded, {unguarded:.1} unguarded");
        assert!(
            !is_fatal || unguarded < goodput / 2.0,
            "{name}: the guard is not needed: {unguarded:.1} Mbit/s"
        );
    }
}

#[test]
fn faults_leave_a_connection_with_reno() {
    let arguments = ["congestion::faults::faults", "--exact", "--ignored", "--nocapture", "--test-threads=1"];
    let this = std::env::current_exe().unwrap();
    let output = std::process::Command::new(this).args(arguments).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    println!("{text}");
}
