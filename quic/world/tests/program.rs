//! The program as a child process.

mod common;

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};

use common::scenario;
use fullpipe_record::Run;
use serde_json::{Value, json};

fn start(command: &str) -> Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_fullpipe-quic"));
    program.arg(command).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    program.spawn().unwrap()
}

fn report(child: &mut Child, request: &[u8]) {
    let input = child.stdin.as_mut().unwrap();
    input.write_all(&(request.len() as u64).to_be_bytes()).unwrap();
    input.write_all(request).unwrap();
    input.flush().unwrap();
}

fn answer(child: &mut Child) -> Vec<u8> {
    let output = child.stdout.as_mut().unwrap();
    let mut length = [0; 8];
    output.read_exact(&mut length).unwrap();
    let mut frame = vec![0; u64::from_be_bytes(length) as usize];
    output.read_exact(&mut frame).unwrap();
    frame
}

fn value(child: &mut Child) -> Value {
    serde_json::from_slice(&answer(child)).unwrap()
}

fn request(seconds: f64) -> Vec<u8> {
    let spec = scenario(seconds, r#"rate = "20 Mbit/s", rtt = "40 ms""#, r#"{ controller = "bbr3" }"#);
    json!({"spec": spec.to_json(), "seed": 3}).to_string().into_bytes()
}

#[test]
fn it_says_what_it_is() {
    let message = start("about").wait_with_output().unwrap();
    let about: Value = serde_json::from_slice(&message.stdout).unwrap();
    assert_eq!((about["protocol"].as_u64(), about["build"].as_str().map(str::len)), (Some(4), Some(32)));
    let names: Vec<&str> =
        about["stacks"].as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["noq", "quinn"]);
    let wrong = start("fly").wait_with_output().unwrap();
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).starts_with("usage: "));
}

#[test]
fn a_run_ends_with_its_record() {
    let mut child = start("run");
    report(&mut child, &request(2.0));
    let mut last = 0.0;
    loop {
        let message = value(&mut child);
        let Some(progress) = message.get("progress") else {
            assert_eq!(message, json!({"ok": true}));
            break;
        };
        assert!(progress.as_f64().unwrap() > last, "{message}");
        last = progress.as_f64().unwrap();
    }
    let summary = value(&mut child);
    assert!(summary.is_object() && last > 0.9);
    let run = Run::told(&answer(&mut child)).unwrap();
    assert!(run.flows[0].series.len() > 10 && run.links[0].series.len() > 10);
    assert!(child.wait().unwrap().success());
}

#[test]
fn it_ends_when_its_input_ends() {
    for command in ["run", "play"] {
        let mut child = start(command);
        // Hours of virtual time: it would go on for minutes.
        report(&mut child, &request(3600.0));
        if command == "play" {
            assert_eq!(value(&mut child)["ok"], true);
            report(&mut child, br#"{"advance_ns": 3600000000000}"#);
        }
        drop(child.stdin.take());
        assert_eq!(child.wait().unwrap().code(), Some(3), "{command}");
    }
}

#[test]
fn what_is_no_request_is_answered() {
    for (bytes, words) in [
        (&b"\xff\xff\xff\xff\xff\xff\xff\xff"[..], "expected at most"),
        (&b"\0\0\0\0\0\0\0\x02{}"[..], "the request is not"),
        (&b"\0\0\0\0\0\0\0\x01\xff"[..], "the request is not"),
        (&b"\0\0\0\0\0\0\0\x1d{\"spec\": \"nonsense\", \"seed\":1}"[..29 + 8], "the request is not"),
    ] {
        let mut child = start("run");
        child.stdin.as_mut().unwrap().write_all(bytes).unwrap();
        let message = value(&mut child);
        assert_eq!(message["ok"], false, "{message}");
        assert!(message["message"].as_str().unwrap().contains(words), "{message}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

#[test]
fn invalid_qlog_descriptors_are_answered() {
    for (files, words) in [
        (json!([0, 1]), "0 is no descriptor of a file of its own"),
        (json!([-1, 9]), "-1 is no descriptor"),
        (json!([9_999, 9_998]), "9999 is not open"),
        (json!([7, 7]), "both are 7"),
        (json!([7]), "the request is not"),
        (json!([7, 4_294_967_296_u64]), "the request is not"),
        (json!("/etc/passwd"), "the request is not"),
    ] {
        let mut child = start("run");
        let mut asked: Value = serde_json::from_slice(&request(1.0)).unwrap();
        asked["qlog"] = json!({"title": "x", "files": files, "most": 10});
        report(&mut child, asked.to_string().as_bytes());
        let message = value(&mut child);
        assert_eq!(message["ok"], false, "{message}");
        assert!(message["message"].as_str().unwrap().contains(words), "{files}: {message}");
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

#[test]
fn a_play_writes_no_qlog() {
    let mut child = start("play");
    let mut asked: Value = serde_json::from_slice(&request(1.0)).unwrap();
    asked["qlog"] = json!({"title": "x", "files": [7, 8], "most": 10});
    report(&mut child, asked.to_string().as_bytes());
    let message = value(&mut child);
    assert!(message["message"].as_str().unwrap().contains("only `run` writes one"), "{message}");
    drop(child.stdin.take());
    child.wait().unwrap();
}
