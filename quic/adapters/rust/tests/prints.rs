//! What a stack prints does not get into the protocol: this program is the test, and the adapter.

use std::io::Write;
use std::process::{Command, Stdio};

use fullpipe_stack::{About, App, NEVER, Sent, Setup, Stack, State, serve};

struct Prints;

impl Stack for Prints {
    fn receive(&mut self, _: usize, _: u64, _: u8, _: &mut [u8]) {}
    fn timeout(&mut self, _: usize) -> u64 {
        NEVER
    }
    fn on_timeout(&mut self, _: usize, _: u64) {}
    fn application(&mut self, end: usize, _: u64, _: &App) {
        println!("end {end}");
    }
    fn transmit(&mut self, _: usize, _: u64, _: &mut Vec<u8>) -> Option<Sent> {
        None
    }
    fn delivered(&self) -> u64 {
        0
    }
    fn state(&mut self) -> State {
        State::default()
    }
}

fn main() {
    if std::env::args().nth(1).as_deref() == Some("adapter") {
        let make = |_: &Setup| {
            println!("set up");
            Ok(Prints)
        };
        return serve(&About { name: "prints", ..About::default() }, make)
            .expect("the test reads what we write");
    }
    let mut adapter = Command::new(std::env::current_exe().expect("this is a program"))
        .arg("adapter")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it can be started");
    let mut input = adapter.stdin.take().expect("a pipe");
    for frame in [&b"{}"[..], b"{}", &[0; 24]] {
        input.write_all(&(frame.len() as u32).to_le_bytes()).expect("it reads");
        input.write_all(frame).expect("it reads");
    }
    drop(input);
    let output = adapter.wait_with_output().expect("it ends");
    let mut frames = Vec::new();
    let mut rest = &output.stdout[..];
    while let Some((length, after)) = rest.split_first_chunk() {
        let (frame, after) =
            after.split_at_checked(u32::from_le_bytes(*length) as usize).expect("whole frames");
        frames.push(frame);
        rest = after;
    }
    assert_eq!((frames.len(), rest.len(), frames[1]), (3, 0, &br#"{"ok":true}"#[..]));
    assert_eq!(output.stderr, b"set up\nend 1\nend 0\n");
}
