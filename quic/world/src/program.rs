//! The program `fullpipe-quic`, which `fullpipe` runs as a child process for each run of the world quic.
//!
//! A developer's own program is the same with more controllers in it:
//!
//! ```no_run
//! use std::process::ExitCode;
//! use std::sync::Arc;
//!
//! use fullpipe_quic::{Own, program};
//!
//! fn main() -> ExitCode {
//!     let factory = noq_proto::congestion::CubicConfig::default(); // or your own
//!     program::main(vec![Own::noq("mine", Arc::new(factory))])
//! }
//! ```
//!
//! Then `FULLPIPE_QUIC=./target/release/mine fullpipe compare bbr3 noq:mine --world quic`.
//!
//! # Protocol 4
//!
//! A frame is a length of 8 bytes, most significant first, and so many bytes. Frames hold JSON where nothing else is said.
//!
//! * `about` prints one line of JSON: protocol, build, stacks and their controllers.
//! * `run` takes one frame, `{"spec": JSON of a spec as text, "seed": n, "crypto": "null" or "real"}`. It answers with frames
//!   `{"progress": 0.4}`, and at last with `{"ok": true}`, the summary, and the run with its series (`Run::to_json`); or with
//!   `{"ok": false, "kind": ..., "message": ..., "field", "given", "expected", "fix"}`, the last four where they are known. With
//!   `"qlog": {"title": ..., "files": [a, b], "most": n}` in the request, what happens to packets is written into two files, which
//!   the program has inherited as descriptors `a` and `b`: the current form of qlog, and the older one, of at most `n` packets. The
//!   answer is then `{"ok": true, "full_at_s": ...}`, which is null unless the files have all that they may; a file that cannot be
//!   written is an error with `"errno"`.
//! * `play` takes the same frame first, and answers with the state of the run:
//!   `{"ok": true, "running": true, "now_ns": 0, "end_ns": ..., "flow": {...}, "flows": [...], "queues": [...]}`. Every further
//!   frame is one request: `{"advance_ns": n}` (a time, not a duration), `{"change": {"rate": "20 Mbit/s", ...}}`, `{"look": ...}`
//!   or `{"finish": true}`; the first two are answered in the same way, the last as `run` answers. An error ends nothing but what
//!   it is about.
//! * `{"look": {"step_ns": n, "steps": m, "until_in": "startup"}}` advances `m` times by `n`, and ends early behind a step at the end of
//!   which the first flow is in that phase (with `until_out`: is not), or the run is over; with
//!   `"until_above": {"quantity": "lost", "amount": n}`, behind one at which that is more. The answer has `"looks"` besides: a column
//!   for each quantity of the flow, with an entry for each step (`src/looks.rs`). `phase` and `state` are lists of a word and of how
//!   many looks in a row show it.
//! * A first request may have `"stacks": [{"name": ..., "command": [...], "about": {...}}]`: stacks whose adapters it may start
//!   (`quic/adapters/PROTOCOL.md`). With `"trace": true` a play notes what these send, and `{"trace": true}` is answered with
//!   `{"ok": true}`, a frame with 16 bytes for each datagram, and the state; with `"instants": true` they are asked at each instant.
//! * `refuses` takes `{"spec": ...}`, and answers `{"refused": null}` or with a sentence.
//!
//! It ends when its input ends, so that a parent that dies leaves nothing behind; and with an error as its answer when a
//! controller or a stack does not return (`src/watch.rs`).

use std::io::{self, Read, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;

use fullpipe_record::{Run, Sample, UNKNOWN};
use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::stack::LONGEST_NAME;
use fullpipe_scenario::{ControllerChoice, ScenarioError};
use fullpipe_units::Time;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cc::Own;
use crate::change::TextChange;
use crate::error::QuicError;
use crate::failure::failure;
use crate::frames::{Frame, Wrong, frames, read_frame, write_frame, write_json, write_last};
use crate::looks::LookRequest;
use crate::options::{Crypto, Options, stacks};
use crate::qlog::{QlogFiles, QlogRequest};
use crate::refusal::refuses_with;
use crate::run::{report_positions_of_panics, run_logged, run_telling};
use crate::simulation::{FlowNow, QueueNow, Simulation, Status};
use crate::stack::OutsideStack;
use crate::watch;

/// The version of the protocol.
const PROTOCOL: u32 = 4;

/// The fingerprint of the sources that decide what a run gives (`build.rs`).
const BUILD: &str = env!("FULLPIPE_QUIC_BUILD");
/// Whether it covers all of them: "whole" or "part".
const BUILD_IS: &str = env!("FULLPIPE_QUIC_BUILD_IS");

const USAGE: &str = "usage: fullpipe-quic about|run|play|refuses; fullpipe runs it: let FULLPIPE_QUIC name this program, and \
                     choose --world quic (docs/how-to/quic-developers.md)";

/// The program with these controllers besides the stacks'.
///
/// A name that no scenario could choose, or that is taken, ends it with a sentence and the code 2.
pub fn main(own: Vec<Own>) -> ExitCode {
    let problem = misnamed(&own).or_else(|| watch::start(answer_and_end).err());
    if let Some(problem) = problem {
        eprintln!("{problem}");
        return ExitCode::from(2);
    }
    report_positions_of_panics();
    let mut arguments = std::env::args_os().skip(1);
    let command = arguments.next().and_then(|word| word.into_string().ok());
    let command = if arguments.next().is_some() { None } else { command };
    let served = match command.as_deref() {
        Some("about") => writeln!(io::stdout(), "{}", about(&own)),
        Some("run") => serve_run(&own, &frames(), &mut io::stdout()),
        Some("play") => serve_play(&own, &frames(), &mut io::stdout()),
        Some("refuses") => serve_refuses(&own, &mut io::stdin(), &mut io::stdout()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fullpipe-quic: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The answer to whatever was asked, from the thread that watches. Nobody else writes while a run's thread handles an event.
fn answer_and_end(sentence: &str) {
    // Whoever does not read it has ended.
    let _ = write_last(&mut io::stdout(), &failure("WorldError", sentence));
}

/// What is wrong with the controllers' names: a sentence with what can be done.
fn misnamed(own: &[Own]) -> Option<String> {
    let taken =
        stacks().iter().flat_map(|stack| stack.controllers.iter().map(|(name, _)| (stack.name, *name)));
    let mut taken: Vec<(&str, &str)> = taken.collect();
    own.iter().find_map(|one| {
        let asked = format!("{}:{}", one.stack(), one.name());
        // What a scenario that asks for it gets.
        let read = ControllerChoice::parse(&asked).ok();
        if read.as_ref().and_then(ControllerChoice::stack) != Some((one.stack(), one.name())) {
            return Some(format!(
                "{:?} is no name for a controller; expected at most {LONGEST_NAME} lower-case letters, digits, - and _",
                one.name()
            ));
        }
        if taken.contains(&(one.stack(), one.name())) {
            return Some(format!("{asked} is there already; give your controller another name"));
        }
        taken.push((one.stack(), one.name()));
        None
    })
}

/// What the program has.
fn about(own: &[Own]) -> Value {
    let of_stack = |stack: &crate::Stack| {
        let shipped = stack
            .controllers
            .iter()
            .map(|(name, summary)| json!({"name": name, "summary": summary, "own": false}));
        let brought = own.iter().filter(|one| one.stack() == stack.name);
        let brought =
            brought.map(|one| json!({"name": one.name(), "summary": "brought by this program", "own": true}));
        let controllers: Vec<Value> = shipped.chain(brought).collect();
        json!({"name": stack.name, "package": stack.package, "version": stack.version, "controllers": controllers})
    };
    let stacks: Vec<Value> = stacks().iter().map(of_stack).collect();
    json!({"protocol": PROTOCOL, "build": build(own), "stacks": stacks})
}

/// The fingerprint of what decides what a run gives: of our sources, and of the program if there is more in it. That is a
/// controller of a developer's, or a program that was built elsewhere or with a changed stack.
fn build(own: &[Own]) -> String {
    if own.is_empty() && BUILD_IS == "whole" {
        return BUILD.to_owned();
    }
    let program = std::env::current_exe().and_then(std::fs::read);
    let hash = program.map_or(0, |bytes| {
        bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
        })
    });
    format!("{BUILD}-{hash:016x}")
}

/// The first request of a run.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    spec: String,
    seed: u64,
    #[serde(default)]
    crypto: CryptoRequest,
    #[serde(default)]
    qlog: Option<QlogRequest>,
    #[serde(default)]
    stacks: Vec<OutsideStack>,
    #[serde(default)]
    instants: bool,
    #[serde(default)]
    trace: bool,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum CryptoRequest {
    #[default]
    Null,
    Real,
}

impl Begin {
    fn options(&self) -> Options {
        let crypto = match self.crypto {
            CryptoRequest::Null => Crypto::Null,
            CryptoRequest::Real => Crypto::Real,
        };
        Options { crypto, instants: self.instants, trace: self.trace, ..Options::default() }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    spec: String,
    #[serde(default)]
    stacks: Vec<OutsideStack>,
}

/// A further request of a play.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "snake_case")]
enum Request {
    AdvanceNs(u64),
    Look(LookRequest),
    Change(TextChange),
    Trace(bool),
    Finish(bool),
}

/// Reads a request; `what` it should be is for the error.
fn read_json<T: for<'a> Deserialize<'a>>(frame: Frame, what: &str) -> Result<T, Value> {
    let frame = frame.map_err(|Wrong(message)| failure("WorldError", &message))?;
    serde_json::from_slice(&frame)
        .map_err(|error| failure("WorldError", &format!("the request is not {what}: {error}")))
}

fn read_spec(text: &str) -> Result<Spec, Value> {
    Spec::from_json(text).map_err(|error| of_scenario(&error))
}

fn of_scenario(error: &ScenarioError) -> Value {
    json!({
        "ok": false, "kind": "ScenarioError", "message": error.to_string(),
        "field": error.field, "given": error.given, "expected": error.expected, "fix": error.fix,
    })
}

fn of_error(error: &QuicError) -> Value {
    match error {
        QuicError::Scenario(error) => of_scenario(error),
        QuicError::Mistake(mistake) => json!({
            "ok": false, "kind": "ScenarioError", "message": mistake.to_string(),
            "field": mistake.field, "given": mistake.given, "expected": mistake.expected, "fix": mistake.fix,
        }),
        QuicError::Path(path) => json!({
            "ok": false, "kind": "ScenarioError", "message": path.to_string(),
            "field": path.field, "given": path.given, "expected": path.expected,
        }),
        _ => failure("WorldError", &error.to_string()),
    }
}

/// The whole first frame, or an answer that says why it is none.
fn begin(frames: &Receiver<Frame>) -> Result<(Begin, Spec), Value> {
    let frame = frames.recv().unwrap_or_else(|_| Err(Wrong("there is no request".to_owned())));
    let begin: Begin = read_json(frame, "{\"spec\": ..., \"seed\": ...}")?;
    let spec = read_spec(&begin.spec)?;
    Ok((begin, spec))
}

/// The controllers of a program, and those of stacks in processes of their own that a request brings.
fn with_stacks(own: &[Own], stacks: &[OutsideStack]) -> Result<Vec<Own>, Value> {
    let mut all = own.to_vec();
    for stack in stacks {
        if crate::stacks().iter().any(|linked| linked.name == stack.name) {
            let problem = format!("the stack {} is linked in; give the adapter's another name", stack.name);
            return Err(failure("WorldError", &problem));
        }
        all.extend(Own::outside(stack.clone()));
    }
    match misnamed(&all) {
        Some(problem) => Err(failure("WorldError", &problem)),
        None => Ok(all),
    }
}

fn serve_run(own: &[Own], frames: &Receiver<Frame>, output: &mut (impl Write + Send)) -> io::Result<()> {
    let (begin, spec) = match begin(frames) {
        Ok(both) => both,
        Err(answer) => return write_last(output, &answer),
    };
    let own = &match with_stacks(own, &begin.stacks) {
        Ok(own) => own,
        Err(answer) => return write_last(output, &answer),
    };
    let options = begin.options();
    let cancel = Arc::new(AtomicBool::new(false));
    let logged =
        begin.qlog.map(|asked| QlogFiles::begin(&asked, &spec, begin.seed, cancel.clone())).transpose();
    let logged = match logged {
        Ok(logged) => logged,
        Err(answer) => return write_last(output, &answer),
    };
    let mut written = Ok(());
    let mut progress = |done: f64| {
        if written.is_ok() {
            written = write_json(output, &json!({"progress": done}));
        }
    };
    let run = match &logged {
        None => run_telling(&spec, begin.seed, &cancel, options, own, &mut progress),
        Some(files) => run_logged(&spec, begin.seed, &cancel, options, own, &mut progress, files.log()),
    };
    written?;
    // A run that was cancelled was so because a file could not be written, which `finish` says.
    let full_at = match logged.map(QlogFiles::finish).transpose() {
        Ok(full_at) => full_at,
        Err(answer) => return write_last(output, &answer),
    };
    match run {
        Ok(run) => write_run(output, run, &spec, full_at),
        Err(error) => write_last(output, &of_error(&error)),
    }
}

/// A record: its header, and two frames. `full_at` is of the files of a logged run.
fn write_run(
    output: &mut impl Write,
    mut run: Run,
    spec: &Spec,
    full_at: Option<Option<Time>>,
) -> io::Result<()> {
    let summary = run.summary_json();
    if !spec.keep_series {
        run.drop_series();
    }
    let header = match full_at {
        None => json!({"ok": true}),
        Some(full_at) => json!({"ok": true, "full_at_s": full_at.map(Time::as_secs_f64)}),
    };
    write_last(output, &header)?;
    write_frame(output, summary.as_bytes())?;
    write_frame(output, &run.to_json())
}

fn serve_refuses(own: &[Own], input: &mut impl Read, output: &mut impl Write) -> io::Result<()> {
    let frame = match read_frame(input) {
        Ok(Some(frame)) => Ok(frame),
        Ok(None) => Err(Wrong("there is no request".to_owned())),
        Err(wrong) => Err(wrong),
    };
    let asked = read_json::<Asked>(frame, "{\"spec\": ...}")
        .and_then(|asked| Ok((read_spec(&asked.spec)?, with_stacks(own, &asked.stacks)?)));
    let answer = match asked {
        Ok((spec, own)) => json!({"refused": refuses_with(&spec, &own)}),
        Err(answer) => answer,
    };
    write_json(output, &answer)
}

fn serve_play(own: &[Own], frames: &Receiver<Frame>, output: &mut impl Write) -> io::Result<()> {
    let made = begin(frames).and_then(|(begin, spec)| {
        if begin.qlog.is_some() {
            return Err(failure("WorldError", "qlog: only `run` writes one; leave it out"));
        }
        let own = with_stacks(own, &begin.stacks)?;
        Simulation::with(&spec, begin.seed, begin.options(), own).map_err(|error| of_error(&error))
    });
    let mut simulation = match made {
        Ok(simulation) => simulation,
        Err(answer) => return write_last(output, &answer),
    };
    let mut answer = state(&mut simulation);
    loop {
        write_json(output, &answer)?;
        let Ok(frame) = frames.recv() else { return Ok(()) };
        let unreadable = frame.is_err();
        answer = match read_json::<Request>(frame, "advance_ns, look, change, trace or finish") {
            Ok(Request::Finish(true)) => {
                let spec = simulation.spec().clone();
                return match simulation.finish() {
                    Ok(run) => write_run(output, run, &spec, None),
                    Err(error) => write_last(output, &of_error(&error)),
                };
            }
            Ok(Request::Finish(false) | Request::Trace(false)) => state(&mut simulation),
            Ok(Request::Trace(true)) => match simulation.trace() {
                Ok(trace) => {
                    write_json(output, &json!({"ok": true}))?;
                    write_frame(output, &trace)?;
                    state(&mut simulation)
                }
                Err(error) => of_error(&error),
            },
            Ok(Request::AdvanceNs(until)) => match simulation.advance(Time::from_nanos(until)) {
                Ok(_) => state(&mut simulation),
                Err(error) => of_error(&error),
            },
            Ok(Request::Look(request)) => match simulation.look(&request) {
                Ok(looks) => {
                    let mut answer = state(&mut simulation);
                    answer["looks"] = json!(looks);
                    answer
                }
                Err(error) => of_error(&error),
            },
            Ok(Request::Change(wording)) => match simulation.change_text(&wording) {
                Ok(()) => state(&mut simulation),
                Err(error) => of_error(&error),
            },
            Err(answer) => answer,
        };
        if unreadable {
            return write_last(output, &answer);
        }
    }
}

/// The run as it is now.
fn state(simulation: &mut Simulation) -> Value {
    let flows: Result<Vec<Value>, QuicError> =
        (0..simulation.flows()).map(|index| Ok(flow_json(&simulation.flow(index)?))).collect();
    let queues = simulation.queues();
    match (flows, queues) {
        (Ok(flows), Ok(queues)) => json!({
            "ok": true,
            "running": simulation.status() == Status::Running,
            "now_ns": simulation.now().as_nanos(),
            "end_ns": simulation.end().as_nanos(),
            "flow": flows.first(),
            "flows": flows,
            "queues": queues.iter().map(queue_json).collect::<Vec<Value>>(),
        }),
        (Err(error), _) | (_, Err(error)) => of_error(&error),
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// A flow with the names that Python's `FlowNow` has.
fn flow_json(flow: &FlowNow) -> Value {
    let sample: Option<&Sample> = flow.sample.as_ref();
    let ssthresh = sample.map(|sample| sample.ssthresh).filter(|&most| most < fullpipe_cc::Limits::INFINITE);
    json!({
        "label": flow.label,
        "controller": flow.controller,
        "connected": sample.is_some(),
        "phase": sample.map(|sample| sample.phase.name()),
        "state": sample.map(|sample| sample.ca_state.name()),
        "cwnd": sample.map(|sample| sample.cwnd),
        "ssthresh": ssthresh,
        "pacing_rate_bps": sample.and_then(|sample| sample.pacing_bps),
        "inflight": sample.map_or(0, |sample| sample.inflight),
        "rtt_ms": sample.and_then(|sample| sample.srtt_ns).map(millis),
        "min_rtt_ms": sample.and_then(|sample| sample.min_rtt_ns).map(millis),
        "delivery_rate_bps": sample.map(|sample| sample.delivery_bps),
        "bandwidth_bps": sample.and_then(|sample| sample.bandwidth_bps),
        "delivered_bytes": flow.delivered_bytes,
        "delivered_segments": flow.delivered_segments,
        "segments_sent": flow.segments_sent,
        "lost": flow.lost,
        "retransmits": sample.map(|sample| sample.retransmits).filter(|&count| count != UNKNOWN).unwrap_or(0),
        "timeouts": flow.timeouts,
        "transfers_ms": flow.transfers_ns.iter().copied().map(millis).collect::<Vec<f64>>(),
        "ended_s": flow.ended.map(|(at, _)| at.as_nanos() as f64 / 1e9),
        "completed": flow.ended.is_some_and(|(_, completed)| completed),
    })
}

fn queue_json(queue: &QueueNow) -> Value {
    let sample = &queue.sample;
    json!({
        "name": queue.name,
        "backlog_bytes": sample.backlog_bytes,
        "delay_ms": (sample.delay_ns != u64::MAX).then(|| millis(sample.delay_ns)),
        "arrived_packets": sample.arrived_packets,
        "dropped_packets": sample.dropped_packets,
        "early_packets": sample.early_packets,
        "marked_packets": sample.marked_packets,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::frames::framed;
    use proptest::prelude::*;

    type Serve = fn(&[Own], &Receiver<Frame>, &mut Vec<u8>) -> io::Result<()>;

    /// What is answered to these frames, the input of which ends behind them.
    fn answers(serve: Serve, requests: &[&str]) -> Vec<Vec<u8>> {
        let (found, frames) = channel();
        requests.iter().for_each(|text| found.send(Ok(text.as_bytes().to_vec())).unwrap());
        drop(found);
        let mut output = Vec::new();
        serve(&[], &frames, &mut output).unwrap();
        let mut output = io::Cursor::new(output);
        std::iter::from_fn(|| read_frame(&mut output).unwrap()).collect()
    }

    fn value(frame: &[u8]) -> Value {
        serde_json::from_slice(frame).unwrap()
    }

    fn spec() -> String {
        let document = "duration = \"2 s\"\npath = { rate = \"5 Mbit/s\", rtt = \"20 ms\" }\nflows = [{ controller = \
                        \"noq:cubic\" }]";
        fullpipe_scenario::resolve(document, fullpipe_scenario::Format::Toml, None).unwrap().to_json()
    }

    #[test]
    fn run_answers_progress_then_record() {
        let request = json!({"spec": spec(), "seed": 1}).to_string();
        let frames = answers(serve_run, &[&request]);
        let (progress, record) = frames.split_at(frames.len() - 3);
        let shares: Vec<f64> =
            progress.iter().map(|frame| value(frame)["progress"].as_f64().unwrap()).collect();
        assert!(
            shares.len() > 10 && shares.is_sorted() && shares.iter().all(|share| *share < 1.0),
            "{shares:?}"
        );
        assert_eq!(value(&record[0]), json!({"ok": true}));
        assert!(value(&record[1]).to_string().contains("\"quic\""));
        assert_eq!(Run::told(&record[2]).unwrap().flows.len(), 1);
        let real = json!({"spec": spec(), "seed": 1, "crypto": "real"}).to_string();
        assert_eq!(answers(serve_run, &[&real])[frames.len() - 3..], *record);
    }

    #[test]
    fn play_advances_changes_and_finishes() {
        let begin = json!({"spec": spec(), "seed": 1}).to_string();
        let requests = [
            begin.as_str(),
            r#"{"advance_ns": 1000000000}"#,
            r#"{"change": {"rate": "1 Mbit/s"}}"#,
            r#"{"advance_ns": 99000000000}"#,
            r#"{"finish": true}"#,
        ];
        let frames = answers(serve_play, &requests);
        assert_eq!(frames.len(), 4 + 3);
        let at = |index: usize| value(&frames[index]);
        assert_eq!((at(0)["now_ns"].as_u64(), at(0)["flow"]["connected"].as_bool()), (Some(0), Some(false)));
        assert_eq!((at(1)["now_ns"].as_u64(), at(1)["running"].as_bool()), (Some(1_000_000_000), Some(true)));
        assert!(at(1)["flow"]["cwnd"].as_u64().unwrap() > 5, "{}", at(1));
        assert_eq!(at(1)["queues"][0]["name"], "bottleneck");
        assert_eq!(
            (at(3)["now_ns"].as_u64(), at(3)["running"].as_bool()),
            (Some(2_000_000_000), Some(false))
        );
        assert_eq!(at(4), json!({"ok": true}));
    }

    /// Of the same run, so many looks in one answer are those of so many answers.
    #[test]
    fn looks_in_one_answer_are_those_of_single_steps() {
        let begin = json!({"spec": spec(), "seed": 1}).to_string();
        let steps = 40u64;
        let singly: Vec<String> =
            (1..=steps).map(|step| json!({"advance_ns": step * 2_500_000}).to_string()).collect();
        let singly: Vec<&str> =
            [begin.as_str()].into_iter().chain(singly.iter().map(String::as_str)).collect();
        let singly: Vec<Value> = answers(serve_play, &singly)[1..].iter().map(|frame| value(frame)).collect();
        let look = json!({"look": {"step_ns": 2_500_000, "steps": steps}}).to_string();
        let together = value(&answers(serve_play, &[&begin, &look])[1]);
        let looks = &together["looks"];
        assert_eq!(together["flow"], singly[39]["flow"]);
        for name in [
            "connected",
            "cwnd",
            "inflight",
            "pacing_rate_bps",
            "rtt_ms",
            "delivered_bytes",
            "segments_sent",
            "lost",
        ] {
            let of_steps: Vec<&Value> = singly.iter().map(|state| &state["flow"][name]).collect();
            assert_eq!(looks[name], json!(of_steps), "{name}");
        }
        let queued: Vec<&Value> = singly.iter().map(|state| &state["queues"][0]["backlog_bytes"]).collect();
        assert_eq!(looks["queued_bytes"], json!(queued));
        let phases = looks["phase"].as_array().unwrap();
        let phases: Vec<&Value> = phases
            .iter()
            .flat_map(|one| std::iter::repeat_n(&one[0], one[1].as_u64().unwrap() as usize))
            .collect();
        assert_eq!(phases, singly.iter().map(|state| &state["flow"]["phase"]).collect::<Vec<_>>());
        // Steps end where a phase begins, or ends, and with the run.
        let first = phases.iter().position(|phase| !phase.is_null()).unwrap();
        let named = phases[first];
        let until = json!({"look": {"step_ns": 2_500_000, "steps": steps, "until_in": named}}).to_string();
        let found = value(&answers(serve_play, &[&begin, &until])[1]);
        assert_eq!(found["looks"]["cwnd"].as_array().unwrap().len(), first + 1);
        let far = json!({"look": {"step_ns": 1_500_000_000, "steps": 9}}).to_string();
        let over = value(&answers(serve_play, &[&begin, &far])[1]);
        assert_eq!((&over["running"], over["looks"]["cwnd"].as_array().unwrap().len()), (&json!(false), 2));
    }

    #[test]
    fn invalid_requests_leave_play_running() {
        let begin = json!({"spec": spec(), "seed": 1}).to_string();
        let requests = [
            begin.as_str(),
            "nonsense",
            r#"{"advance_ns": -1}"#,
            r#"{"change": {"rate": "fast"}}"#,
            r#"{"change": {"speed": "1 Mbit/s"}}"#,
            r#"{"change": {"element": "wifi", "loss": "1 %"}}"#,
            r#"{"change": {"element": "forward[99]", "delay": "1 ms"}}"#,
            r#"{"advance_ns": 1000}"#,
        ];
        let frames = answers(serve_play, &requests);
        let messages: Vec<Value> = frames[1..7].iter().map(|frame| value(frame)).collect();
        assert!(messages.iter().all(|one| one["ok"] == false), "{messages:?}");
        assert_eq!(messages[2]["field"], "rate");
        assert_eq!((&messages[4]["field"], &messages[5]["field"]), (&json!("element"), &json!("element")));
        assert_eq!(value(&frames[7])["now_ns"], 1000);
    }

    #[test]
    fn unsupported_spec_is_refused_with_reason() {
        let refused = |spec: &str| {
            let request = framed(&[json!({"spec": spec}).to_string().as_bytes()]);
            let mut output = Vec::new();
            serve_refuses(&[], &mut &*request, &mut output).unwrap();
            value(&read_frame(&mut &*output).unwrap().unwrap())
        };
        assert_eq!(refused(&spec()), json!({"refused": null}));
        let other = spec().replace("noq:cubic", "noq:vegas");
        assert_eq!(
            refused(&other)["refused"],
            "flows[0].controller: noq has no controller vegas; choose noq:bbr3, noq:cubic, noq:newreno, or let FULLPIPE_QUIC \
             name a program that has vegas"
        );
        assert_eq!(refused("{}")["kind"], "ScenarioError");
        let run = json!({"spec": other, "seed": 1}).to_string();
        assert_eq!(value(&answers(serve_run, &[&run])[0])["kind"], "WorldError");
        assert_eq!(value(&answers(serve_run, &[])[0])["message"], "there is no request");
    }

    #[test]
    fn the_program_says_what_it_has() {
        let own = [Own::noq("mine", std::sync::Arc::new(noq_proto::congestion::CubicConfig::default()))];
        let about = about(&own);
        assert_eq!(about["protocol"], json!(PROTOCOL));
        let versions = [&about["stacks"][0]["version"], &about["stacks"][1]["version"]];
        assert_eq!(versions, [&json!(env!("FULLPIPE_NOQ_PROTO")), &json!(env!("FULLPIPE_QUINN_PROTO"))]);
        assert_eq!(about["stacks"][1]["package"], json!("quinn-proto"));
        let names = about["stacks"][0]["controllers"].as_array().unwrap();
        assert_eq!((&names[3]["name"], &names[3]["own"]), (&json!("mine"), &json!(true)));
        assert_ne!(build(&own), build(&[]));
    }

    #[test]
    fn controller_names_are_valid_and_unique() {
        let noq =
            |name: &str| Own::noq(name, std::sync::Arc::new(noq_proto::congestion::CubicConfig::default()));
        let quinn = Own::quinn("mine", std::sync::Arc::new(quinn_proto::congestion::CubicConfig::default()));
        assert_eq!(misnamed(&[noq("mine"), quinn, noq("bbr"), noq("my_bbr-2")]), None);
        for name in ["", "Mine", "my cc", " mine", "a:b", &"x".repeat(33)] {
            let problem = misnamed(&[noq("mine"), noq(name)]).unwrap();
            assert!(problem.contains("is no name for a controller; expected at most 32"), "{problem}");
        }
        let taken =
            |name: &str| Some(format!("noq:{name} is there already; give your controller another name"));
        assert_eq!(misnamed(&[noq("cubic")]), taken("cubic"));
        assert_eq!(misnamed(&[noq("mine"), noq("mine")]), taken("mine"));
    }

    proptest! {
        #[test]
        fn no_input_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..64), text in ".{0,64}") {
            let _ = read_frame(&mut &*bytes);
            let mut output = Vec::new();
            serve_refuses(&[], &mut &*framed(&[&bytes]), &mut output).unwrap();
            serve_refuses(&[], &mut &*framed(&[text.as_bytes()]), &mut output).unwrap();
            prop_assert!(!output.is_empty());
        }
    }
}
