//! A program with a controller that loops for ever: the program itself, and the test that starts it.

use std::any::Any;
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Instant;

use fullpipe_quic::{Own, program};
use fullpipe_scenario::{Format, resolve};
use noq_proto::RttEstimator;
use noq_proto::congestion::{Controller, ControllerFactory, CubicConfig};

/// In the environment of the program, and not of the test.
const CHILD: &str = "LOOPS_IS_THE_PROGRAM";

/// A CUBIC that does not return from its first loss.
#[derive(Debug)]
struct Loops(Box<dyn Controller>);

struct Factory;

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Loops(Arc::new(CubicConfig::default()).build(now, mtu)))
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
        self.0.on_ack(now, sent, bytes, pn, limited, rtt);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, _: bool, _: u64, _: u64) {
        loop {
            std::hint::spin_loop();
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.0.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.0.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Loops(self.0.clone_box()))
    }

    fn initial_window(&self) -> u64 {
        self.0.initial_window()
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
        return program::main(vec![Own::noq("loops", Arc::new(Factory))]);
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
        let said = answer["message"].as_str().unwrap();
        let expected = "flow mine: its controller or its stack has not returned for 0.2 s of CPU time, at 1.";
        assert!(said.starts_with(expected), "{command}: {said}");
    }
    let ended = asked("refuses", "none", &[], true);
    assert!(ended.complaint.contains("FULLPIPE_QUIC_PATIENCE: \"none\""), "{}", ended.complaint);
    assert_eq!(ended.code, Some(2));
    ExitCode::SUCCESS
}
