//! The kernel world end to end, each run in a fresh process: the example `kernel_run`, built next to this test.
//!
//! A machine whose processors are shared gives no exact numbers, so only physical bounds are asserted. Where the
//! kernel world is not permitted, a test prints why and passes.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use fullpipe_emu::namespace::enter_new_network;

const NOT_PERMITTED: i32 = 3;

/// The example's binary: `target/<profile>/examples`, seen from `target/<profile>/deps/<test>`.
fn example(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let binary = test.parent()?.parent()?.join("examples").join(name);
    assert!(binary.exists(), "{} is not built; cargo test builds it", binary.display());
    Some(binary)
}

/// Runs `kernel_run`; `None`, with the reason printed, where that is not possible.
fn kernel_run(arguments: &[&str]) -> Option<String> {
    let output = Command::new(example("kernel_run")?).args(arguments).stdin(Stdio::null()).output().unwrap();
    skip_or_text(&output)
}

fn skip_or_text(output: &Output) -> Option<String> {
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(NOT_PERMITTED) {
        // Where the kernel world must run, as on a machine that tests it, its absence is a failure.
        assert!(
            std::env::var_os("FULLPIPE_REQUIRE_KERNEL").is_none(),
            "the kernel world does not run: {err}"
        );
        println!("skipped: {err}");
        return None;
    }
    assert!(output.status.success(), "{out}{err}");
    println!("{out}");
    Some(out.into_owned())
}

/// The number behind `key` in the line that starts with `line`.
fn number(text: &str, line: &str, key: &str) -> f64 {
    let line =
        text.lines().find(|found| found.starts_with(line)).unwrap_or_else(|| panic!("no {line} in {text}"));
    let mut words = line.split_whitespace().skip_while(|word| *word != key).skip(1);
    words.next().and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("no {key} in {line}"))
}

/// Payload share of the rate: MSS 1448 in packets of 1500.
const CEILING: f64 = 1448.0 / 1500.0;

#[test]
fn bulk_flow_fills_without_exceeding_link() {
    let Some(text) = kernel_run(&["cubic", "20", "20", "100000", "0", "2"]) else { return };
    let goodput = number(&text, "flow 0", "goodput_mbps");
    assert!(goodput > 0.5 * 20.0 && goodput < 1.02 * CEILING * 20.0, "{goodput}");
    let rtt = number(&text, "flow 0", "mean_srtt_ms");
    // From the empty path to the path with a full buffer (40 ms) and a stall or two.
    assert!(rtt > 19.9 && rtt < 100.0, "{rtt}");
}

#[test]
fn random_loss_is_retransmitted() {
    let Some(text) = kernel_run(&["bbr", "20", "20", "100000", "0.02", "2"]) else { return };
    let (sent, again) = (number(&text, "flow 0", "segments"), number(&text, "flow 0", "retransmits"));
    assert!(again > 0.0 && again < 0.2 * sent, "{again} of {sent}");
}

#[test]
fn finite_flow_delivers_everything_and_ends() {
    let Some(text) = kernel_run(&["reno", "20", "20", "100000", "0", "30", "1", "1000000"]) else { return };
    let (goodput, seconds) = (number(&text, "flow 0", "goodput_mbps"), number(&text, "flow 0", "seconds"));
    // `seconds` is printed with two decimals.
    assert!((goodput * seconds / 8.0 - 1.0).abs() < 0.02, "{goodput} Mbit/s for {seconds} s");
    assert!(seconds > 0.4 && seconds < 20.0, "{seconds}");
}

#[test]
fn flows_share_a_link() {
    let Some(text) = kernel_run(&["reno+reno", "20", "20", "50000", "0", "2"]) else { return };
    let goodputs = ["flow 0", "flow 1"].map(|flow| number(&text, flow, "goodput_mbps"));
    assert!(goodputs.iter().all(|goodput| *goodput > 0.2), "{goodputs:?}");
    assert!(goodputs.iter().sum::<f64>() < 1.02 * CEILING * 20.0, "{goodputs:?}");
}

/// Threshold marking holds the queue at 20 packets of a buffer of 166: nothing is dropped, and nothing is sent again.
#[test]
fn echoed_marks_limit_queue_without_drops() {
    let arguments = ["reno", "20", "20", "250000", "0", "3", "--queue=step"];
    let Some(text) = kernel_run(&[&arguments[..], &["--ecn"]].concat()) else { return };
    let (marked, echoed) = (number(&text, "link", "marked"), number(&text, "flow 0", "echoed"));
    assert!(marked > 0.0 && echoed > 0.0, "{text}");
    assert_eq!(
        (number(&text, "link", "dropped"), number(&text, "flow 0", "retransmits")),
        (0.0, 0.0),
        "{text}"
    );
    assert!(number(&text, "flow 0", "goodput_mbps") > 0.5 * 20.0, "{text}");
    // Without ECN the same queue can mark nothing.
    let Some(text) = kernel_run(&arguments) else { return };
    assert_eq!(number(&text, "link", "marked"), 0.0, "{text}");
    assert!(text.contains("echoed none"), "{text}");
}

/// What a discipline drops at dequeue was admitted before: packets and their memory are accounted for all the same.
#[test]
fn disciplines_that_drop_late_carry_flows() {
    for queue in ["codel", "fq_codel", "pie", "red", "dualpi2"] {
        let option = format!("--queue={queue}");
        let Some(text) = kernel_run(&["cubic+reno", "20", "20", "250000", "0", "3", &option]) else { return };
        assert!(number(&text, "link", "early") > 0.0, "{queue}: {text}");
        let goodputs = ["flow 0", "flow 1"].map(|flow| number(&text, flow, "goodput_mbps"));
        let sum: f64 = goodputs.iter().sum();
        assert!(sum > 0.5 * 20.0 && sum < 1.02 * CEILING * 20.0, "{queue}: {goodputs:?}");
    }
}

/// The kernel hands over whole what TCP sends as one: a queue that takes bursts as one drops more than single packets at a time.
#[test]
fn bursts_reach_burst_queue_intact() {
    let arguments = ["cubic", "200", "10", "60000", "0", "2", "--burst"];
    let Some(text) = kernel_run(&arguments) else { return };
    let (dropped, arrived) = (number(&text, "link", "dropped"), number(&text, "link", "arrived"));
    assert!(dropped > 1.0 && dropped < 0.5 * arrived, "{text}");
    assert!(number(&text, "flow 0", "goodput_mbps") > 0.2 * 200.0, "{text}");
}

/// Linux's own queue at the same rate, and of nearly the same length: a packet in transmission counts in full there.
#[test]
fn linux_queues_what_the_emulator_would() {
    for controller in ["cubic", "bbr"] {
        let arguments = [controller, "20", "20", "100000", "0", "3"];
        let Some(ours) = kernel_run(&arguments) else { return };
        let Some(theirs) = kernel_run(&[&arguments[..], &["--linux-queue"]].concat()) else { return };
        for text in [&ours, &theirs] {
            let goodput = number(text, "flow 0", "goodput_mbps");
            assert!(goodput > 0.5 * 20.0 && goodput < 1.02 * CEILING * 20.0, "{text}");
            let rtt = number(text, "flow 0", "mean_srtt_ms");
            assert!(rtt > 19.9 && rtt < 100.0, "{text}");
        }
        // As TCP sees it: every drop is a loss in the network. The handshake and ACKs are packets, too.
        let (arrived, segments) = (number(&theirs, "link", "arrived"), number(&theirs, "flow 0", "segments"));
        assert!(arrived >= segments && arrived < segments + 20.0, "{theirs}");
    }
}

#[test]
fn discipline_unknown_to_linux_is_refused() {
    let Some(binary) = example("kernel_run") else { return };
    let arguments = ["cubic", "20", "20", "100000", "0", "1", "--linux-queue", "--queue=step"];
    let output = Command::new(binary).args(arguments).stdin(Stdio::null()).output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && err.contains("path.queue: is step, which Linux does not have"),
        "{err}"
    );
}

#[test]
fn stalled_run_reports_it_and_continues() {
    let Some(binary) = example("kernel_run") else { return };
    let mut command = Command::new(binary);
    command.args(["bbr", "20", "20", "100000", "0", "3"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let started = has_namespaces(&mut child);
    let signal = |name: &str| Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    if started {
        sleep(Duration::from_millis(800));
        signal("-STOP");
        sleep(Duration::from_millis(250));
        signal("-CONT");
    }
    let Some(text) = skip_or_text(&child.wait_with_output().unwrap()) else { return };
    let longest_us = number(&text, "lateness_us", "max");
    // Two signals are at least as far apart as the sleep between them, give or take a planned sleep of the ferry's.
    assert!(longest_us > 100_000.0 && longest_us < 3e6, "{longest_us}");
    assert!(text.contains("untrustworthy the host stalled for"), "{text}");
    assert!(number(&text, "flow 0", "goodput_mbps") > 0.2 * 20.0, "{text}");
}

/// The emulator has real-time priority and is on time. The hosts have the idle class (`chrt -i`), and others use every processor.
#[test]
fn cpu_starved_run_is_untrustworthy() {
    let Some(binary) = example("kernel_run") else { return };
    if Command::new("chrt").arg("--version").output().is_err() {
        return println!("skipped: chrt of util-linux is not installed");
    }
    let busy = |_| Command::new("sh").args(["-c", "while :; do :; done"]).spawn().unwrap();
    let processors = std::thread::available_parallelism().unwrap().get();
    let mut others: Vec<Child> = (0..processors).map(busy).collect();
    // Above 200 Mbit/s hosts have no real-time priority.
    let run = ["cubic", "500", "20", "1250000", "0", "2"];
    let mut starved = Command::new("chrt");
    let output = starved.args(["-i", "0"]).arg(binary).args(run).stdin(Stdio::null()).output().unwrap();
    for other in &mut others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    let Some(text) = skip_or_text(&output) else { return };
    assert!(text.contains("waited for a processor for"), "{text}");
}

/// Names the processes of one test in their environment.
const TOKEN: &str = "FULLPIPE_TEST_TOKEN";

/// A run that lasts, and how its processes are found.
struct LongRun {
    child: Child,
    token: String,
    /// The devices of the test's own network namespace; `None` if it may not have one. Nor can a run make devices then.
    devices: Option<BTreeSet<String>>,
}

impl LongRun {
    /// Starts one in a network namespace of the test's own, in which nobody else makes a device.
    fn start(test: &str, stdin: Stdio) -> Option<LongRun> {
        let devices = enter_new_network().ok().map(|()| devices());
        let token = format!("{test}-{}", std::process::id());
        let mut command = Command::new(example("kernel_run")?);
        command.args(["bbr", "20", "20", "100000", "0", "30"]).env(TOKEN, &token);
        let child = command.stdin(stdin).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        Some(LongRun { child, token, devices })
    }

    /// Its processes, zombies excluded. Its namespaces end with them. The numbers of namespaces would prove nothing: the kernel
    /// gives a number that is free to the next namespace that anybody makes.
    fn processes(&self) -> Vec<PathBuf> {
        let entry = format!("{TOKEN}={}", self.token);
        let has_token = |process: &PathBuf| {
            let environment = fs::read(process.join("environ")).unwrap_or_default();
            environment.split(|byte| *byte == 0).any(|variable| variable == entry.as_bytes())
        };
        fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()).filter(has_token).collect()
    }

    /// Asserts that its processes end, and that it has made no device outside its namespaces.
    fn assert_gone(&self) {
        for _ in 0..200 {
            if self.processes().is_empty() {
                assert!(self.devices.as_ref().is_none_or(|before| *before == devices()), "{:?}", devices());
                return;
            }
            sleep(Duration::from_millis(10));
        }
        panic!("processes remain: {:?}", self.processes());
    }
}

/// Network devices of the calling thread's namespace. `/sys/class/net` would show the machine's.
fn devices() -> BTreeSet<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").unwrap();
    table.lines().filter_map(|line| line.split_once(':')).map(|(name, _)| name.trim().to_owned()).collect()
}

/// Waits until the process's threads have two network namespaces of their own; false if it ended before, or never does.
fn has_namespaces(child: &mut Child) -> bool {
    let own = fs::read_link("/proc/thread-self/ns/net").unwrap();
    for _ in 0..500 {
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        let tasks = fs::read_dir(format!("/proc/{}/task", child.id())).into_iter().flatten().flatten();
        let links = tasks.filter_map(|task| fs::read_link(task.path().join("ns/net")).ok());
        if links.filter(|link| *link != own).collect::<BTreeSet<_>>().len() >= 2 {
            return true;
        }
        sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn sigkill_mid_run_leaves_nothing() {
    let Some(mut run) = LongRun::start("sigkill", Stdio::null()) else { return };
    if !has_namespaces(&mut run.child) {
        println!("skipped: the kernel world did not start");
        let _ = run.child.kill();
        return;
    }
    assert!(!run.processes().is_empty());
    run.child.kill().unwrap();
    run.child.wait().unwrap();
    run.assert_gone();
}

#[test]
fn a_run_ends_with_its_parent() {
    let Some(mut run) = LongRun::start("parent", Stdio::piped()) else { return };
    if !has_namespaces(&mut run.child) {
        println!("skipped: the kernel world did not start");
        let _ = run.child.kill();
        return;
    }
    // What the death of the parent does to the pipe.
    drop(run.child.stdin.take());
    for _ in 0..200 {
        if run.child.try_wait().unwrap().is_some() {
            run.assert_gone();
            return;
        }
        sleep(Duration::from_millis(10));
    }
    run.child.kill().unwrap();
    panic!("the run went on without its parent");
}
