//! A program with a controller that loops for ever: the program itself, and the test that starts it.

use std::any::Any;
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Instant;

use fullpipe_quic::{Own, program};
use fullpipe_scenario::{Format, resolve};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, ControllerMetrics, CubicConfig};

/// In the environment of the program, and not of the test.
const CHILD: &str = "LOOPS_IS_THE_PROGRAM";

/// A CUBIC that does not return.
#[derive(Debug)]
struct Loops {
    inner: Box<dyn Controller>,
    when: When,
    /// How often it was asked for its metrics since a packet was sent or acknowledged.
    asked: AtomicU32,
}

#[derive(Clone, Copy, Debug)]
enum When {
    /// From its first loss.
    Lost,
    /// When it is only looked at, again and again: while nothing happens, no run asks for so much.
    Asked,
}

const ASKED_OFTEN: u32 = 200;

struct Factory(When);

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::new(CubicConfig::default()).build(now, mtu);
        Box::new(Loops { inner, when: self.0, asked: AtomicU32::new(0) })
    }
}

fn forever() -> ! {
    loop {
        std::hint::spin_loop();
    }
}

impl Controller for Loops {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        limited: bool,
        rtt: &RttEstimator,
    ) {
        self.asked.store(0, Relaxed);
        self.inner.on_ack(now, sent, bytes, pn, limited, rtt);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.asked.store(0, Relaxed);
        self.inner.on_packet_sent(now, bytes, pn);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        persistent: bool,
        ecn: bool,
        bytes: u64,
        pn: u64,
    ) {
        match self.when {
            When::Lost => forever(),
            When::Asked => self.inner.on_congestion_event(now, sent, persistent, ecn, bytes, pn),
        }
    }

    fn metrics(&self) -> ControllerMetrics {
        if matches!(self.when, When::Asked) && self.asked.fetch_add(1, Relaxed) >= ASKED_OFTEN {
            forever();
        }
        self.inner.metrics()
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.inner.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Loops { inner: self.inner.clone_box(), when: self.when, asked: AtomicU32::new(0) })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// What a program ended with.
struct Ended {
    /// The last of its answers.
    answer: String,
    complaint: String,
    code: Option<i32>,
}

/// Asks such a program with these frames. Its input may be closed then.
fn asked(command: &str, patience: &str, frames: &[String], keep_open: bool) -> Ended {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .arg(command)
        .env(CHILD, "")
        .env("FULLPIPE_QUIC_PATIENCE", patience)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.as_mut().unwrap();
    for frame in frames {
        // A program that has ended says why.
        let _ = input.write_all(&(frame.len() as u64).to_be_bytes());
        let _ = input.write_all(frame.as_bytes());
    }
    let _ = input.flush();
    let input = child.stdin.take().filter(|_| keep_open);
    let (mut answers, mut complaint) = (Vec::new(), String::new());
    child.stdout.take().unwrap().read_to_end(&mut answers).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut complaint).unwrap();
    drop(input);
    let mut rest = &answers[..];
    let mut answer = "";
    while let Some((length, behind)) = rest.split_first_chunk() {
        let (frame, next) = behind.split_at(u64::from_be_bytes(*length) as usize);
        (answer, rest) = (std::str::from_utf8(frame).unwrap(), next);
    }
    Ended { answer: answer.to_owned(), complaint, code: child.wait().unwrap().code() }
}

fn main() -> ExitCode {
    if std::env::var_os(CHILD).is_some() {
        return program::main(vec![
            Own::noq("loops", Arc::new(Factory(When::Lost))),
            Own::noq("asked", Arc::new(Factory(When::Asked))),
        ]);
    }
    let document = r#"
        name = "loops"
        duration = "60 s"
        path = { rate = "10 Mbit/s", rtt = "40 ms", buffer = "0.2 bdp" }
        flows = [{ controller = "noq:cubic" }, { controller = "noq:loops", label = "mine", start = "1 s", start_jitter = "0 s" }]
    "#;
    let spec = resolve(document, Format::Toml, None).unwrap();
    let begin = serde_json::json!({"spec": spec.to_json(), "seed": 1}).to_string();
    let advance = serde_json::json!({"advance_ns": 60_000_000_000_u64}).to_string();
    // A parent that is gone, after Ctrl-C for instance, leaves no process that loops.
    let ended = asked("run", "1e9", std::slice::from_ref(&begin), false);
    assert_eq!(ended.code, Some(3), "{}", ended.complaint);
    for (command, frames) in [("run", vec![begin.clone()]), ("play", vec![begin, advance])] {
        let ended = asked(command, "0.2", &frames, true);
        assert_eq!(ended.code, Some(4), "{command}: {}", ended.complaint);
        let answer: serde_json::Value = serde_json::from_str(&ended.answer).unwrap();
        assert_eq!(
            (&answer["ok"], &answer["kind"]),
            (&false.into(), &"WorldError".into()),
            "{command}: {answer}"
        );
        let message = answer["message"].as_str().unwrap();
        let expected = "flow mine: its controller or its stack has not returned for 0.2 s of CPU time, at 1.";
        assert!(message.starts_with(expected), "{command}: {message}");
    }
    // One that is looked at between two steps.
    let spec = document.replace("noq:loops", "noq:asked").replace("0.2 bdp", "4 bdp");
    let spec = resolve(&spec, Format::Toml, None).unwrap();
    let begin = serde_json::json!({"spec": spec.to_json(), "seed": 1}).to_string();
    let advance = serde_json::json!({"advance_ns": 3_000_000_000_u64}).to_string();
    let looks = std::iter::repeat_n(advance, 2 * ASKED_OFTEN as usize);
    let ended = asked("play", "0.2", &std::iter::once(begin).chain(looks).collect::<Vec<_>>(), true);
    assert_eq!(ended.code, Some(4), "{}", ended.complaint);
    let expected =
        "flow mine: its controller or its stack has not returned for 0.2 s of CPU time, at 3.000000 s";
    assert!(ended.answer.contains(expected), "{}", ended.answer);

    let ended = asked("refuses", "none", &[], true);
    assert!(ended.complaint.contains("FULLPIPE_QUIC_PATIENCE: \"none\""), "{}", ended.complaint);
    assert_eq!(ended.code, Some(2));
    ExitCode::SUCCESS
}
