//! The process of an adapter: frames over its standard input and output, each within a deadline.
//!
//! A frame is its length, 4 bytes, least significant first, and so many bytes. What the adapter writes to its standard error is kept,
//! the end of it, for the sentence that says why it has failed.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::protocol::MOST_BYTES;

/// The variable that names another patience, in seconds.
pub(crate) const VARIABLE: &str = "FULLPIPE_STACK_PATIENCE";
/// How long an answer may take, seconds of real time. One takes milliseconds, and a turn of a gigabit a tenth of a second.
const PATIENCE_S: f64 = 20.0;
/// What is kept of what it complains of.
const MOST_KEPT: usize = 1 << 12;

/// A running adapter. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    patience: Duration,
    complaints: Vec<u8>,
    /// What was read and not yet taken.
    waiting: Vec<u8>,
}

#[expect(clippy::disallowed_methods, reason = "a deadline; no run depends on it")]
fn clock() -> Instant {
    Instant::now()
}

fn patience() -> Result<Duration, String> {
    let Some(message) = std::env::var_os(VARIABLE) else { return Ok(Duration::from_secs_f64(PATIENCE_S)) };
    let message = message.to_string_lossy();
    message
        .trim()
        .parse()
        .ok()
        .filter(|seconds: &f64| *seconds > 0.0)
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| format!("{VARIABLE}: {message:?}; expected seconds above 0, e.g. 60; or unset it"))
}

/// So that neither reading nor writing waits: `poll` does.
fn set_nonblocking(file: &impl AsRawFd) {
    // SAFETY: the descriptor is open while `file` is.
    unsafe {
        let flags = libc::fcntl(file.as_raw_fd(), libc::F_GETFL);
        libc::fcntl(file.as_raw_fd(), libc::F_SETFL, flags | libc::O_NONBLOCK);
    }
}

impl Process {
    /// Starts `command`, its words as they are: no shell reads them.
    ///
    /// # Errors
    /// Why it cannot be started.
    pub(crate) fn start(command: &[String]) -> Result<Process, String> {
        let (program, arguments) = command.split_first().ok_or("has no command")?;
        let patience = patience()?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|error| format!("cannot be started ({program}): {error}"))?;
        let process = Process { child, patience, complaints: Vec::new(), waiting: Vec::new() };
        if let (Some(input), Some(output), Some(errors)) =
            (&process.child.stdin, &process.child.stdout, &process.child.stderr)
        {
            set_nonblocking(input);
            set_nonblocking(output);
            set_nonblocking(errors);
        }
        Ok(process)
    }

    /// Sends a frame, and returns the answer to it.
    ///
    /// # Errors
    /// Why there is none, in words that go on behind the adapter's name.
    pub(crate) fn ask(&mut self, frame: &[u8]) -> Result<Vec<u8>, String> {
        let ends = clock() + self.patience;
        let length =
            u32::try_from(frame.len()).map_err(|_| "would be asked with more than 4 GB".to_owned())?;
        self.send(&length.to_le_bytes(), ends)?;
        self.send(frame, ends)?;
        let head = self.take(4, ends)?;
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > MOST_BYTES {
            return Err(format!("answers with {length} bytes; at most {MOST_BYTES} are read"));
        }
        let answer = self.take(length, ends)?;
        if !self.waiting.is_empty() {
            return Err("sends more than one answer to one question".to_owned());
        }
        Ok(answer)
    }

    fn send(&mut self, mut rest: &[u8], ends: Instant) -> Result<(), String> {
        while !rest.is_empty() {
            let Some(input) = &mut self.child.stdin else { return Err("has no input".to_owned()) };
            match input.write(rest) {
                Ok(taken) => rest = &rest[taken..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(true, ends)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(self.ended()),
            }
        }
        Ok(())
    }

    fn take(&mut self, length: usize, ends: Instant) -> Result<Vec<u8>, String> {
        let mut part = vec![0; 1 << 16];
        while self.waiting.len() < length {
            let Some(output) = &mut self.child.stdout else { return Err("has no output".to_owned()) };
            match output.read(&mut part) {
                Ok(0) => return Err(self.ended()),
                // What it sends besides is an error, and need not be kept: memory has a bound.
                Ok(read) => {
                    let room = length.max(4) + part.len() - self.waiting.len();
                    self.waiting.extend_from_slice(&part[..read.min(room)]);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.wait(false, ends)?,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return Err(self.ended()),
            }
            if clock() > ends && self.waiting.len() < length {
                return Err(self.late());
            }
        }
        let rest = self.waiting.split_off(length);
        Ok(std::mem::replace(&mut self.waiting, rest))
    }

    /// Waits until it reads or writes, and takes what it complains of meanwhile.
    fn wait(&mut self, to_write: bool, ends: Instant) -> Result<(), String> {
        let left = ends.saturating_duration_since(clock());
        if left.is_zero() {
            return Err(self.late());
        }
        let descriptor = |file: Option<i32>| file.unwrap_or(-1);
        let errors = descriptor(self.child.stderr.as_ref().map(AsRawFd::as_raw_fd));
        let talk = if to_write {
            descriptor(self.child.stdin.as_ref().map(AsRawFd::as_raw_fd))
        } else {
            descriptor(self.child.stdout.as_ref().map(AsRawFd::as_raw_fd))
        };
        let events = if to_write { libc::POLLOUT } else { libc::POLLIN };
        let mut all = [
            libc::pollfd { fd: talk, events, revents: 0 },
            libc::pollfd { fd: errors, events: libc::POLLIN, revents: 0 },
        ];
        // Rounded up, so that it does not return before the deadline and be called again at once.
        let millis = i32::try_from(left.as_millis() + 1).unwrap_or(i32::MAX);
        // SAFETY: `all` may be written, and has two elements.
        unsafe { libc::poll(all.as_mut_ptr(), 2, millis) };
        if all[1].revents != 0 {
            self.hear();
        }
        Ok(())
    }

    /// Takes what it complains of by now, and keeps the end.
    fn hear(&mut self) {
        let mut part = [0; 1 << 12];
        // A part at a time: one that complains without end must not keep us here.
        let read = self.child.stderr.as_mut().map(|errors| errors.read(&mut part));
        match read {
            Some(Ok(0)) => self.child.stderr = None,
            Some(Ok(read)) => {
                self.complaints.extend_from_slice(&part[..read]);
                let excess = self.complaints.len().saturating_sub(MOST_KEPT);
                self.complaints.drain(..excess);
            }
            Some(Err(error)) if error.kind() != io::ErrorKind::WouldBlock => self.child.stderr = None,
            Some(Err(_)) | None => {}
        }
    }

    fn late(&mut self) -> String {
        let message = self.last_words();
        format!(
            "does not answer within {} s{message}; look for a loop without end, or set {VARIABLE} to more seconds",
            self.patience.as_secs_f64()
        )
    }

    /// Why there is no answer: it has closed its output, or its input.
    fn ended(&mut self) -> String {
        let ends = clock() + Duration::from_secs(1).min(self.patience);
        let status = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break Some(status),
                Ok(None) if clock() < ends => std::thread::sleep(Duration::from_millis(2)),
                Ok(None) | Err(_) => break None,
            }
        };
        let message = self.last_words();
        match status {
            Some(status) => format!("has ended ({status}){message}"),
            None => format!("has closed its output and goes on{message}"),
        }
    }

    /// The last line of its complaints, behind a colon; nothing if there are none.
    pub(crate) fn last_words(&mut self) -> String {
        for _ in 0..64 {
            let before = self.complaints.clone();
            self.hear();
            if self.complaints == before {
                break;
            }
        }
        let text = String::from_utf8_lossy(&self.complaints);
        let last = text.lines().rev().find(|line| !line.trim().is_empty());
        last.map_or(String::new(), |line| format!(": {}", line.trim().chars().take(300).collect::<String>()))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that is done ends with its input; one that is not may be in a loop.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
