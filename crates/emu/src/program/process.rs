//! One command of a program: started, listened to, ended.

use std::collections::VecDeque;
use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use fullpipe_scenario::Side;
use fullpipe_units::Duration;

use crate::load::Processes;
use crate::shell::contained::{Contained, NOT_FOUND, Role, start};
use crate::sys;
use crate::{EmuError, ProgramFailure};

/// What a command printed last is kept up to this many bytes.
const TAIL: usize = 2048;
/// How much of that an error shows.
const SHOWN_LINES: usize = 6;
/// A command that prints more floods.
const MOST_OUTPUT: u64 = 16 << 20;

/// All processes of a run: of program `i`, the client and the server `i`.
#[derive(Default)]
pub(super) struct Set {
    pub(super) clients: Vec<Process>,
    pub(super) servers: Vec<Process>,
    /// The path has ended.
    pub(super) is_over: bool,
    /// What the programs at the sender's and at the receiver's host have got of the processors.
    pub(super) load: [Processes; 2],
}

/// A command.
pub(super) struct Process {
    pub(super) label: String,
    side: Side,
    command: String,
    contained: Contained,
    output: PipeReader,
    closed: bool,
    tail: VecDeque<u8>,
    printed: u64,
    /// Starts it when it is written to.
    go: Option<PipeWriter>,
    /// Its exit code, once it has ended; 128 and more: the signal.
    pub(super) ended: Option<i32>,
    /// We ended it.
    killed: bool,
}

impl Set {
    pub(super) fn all(&self) -> impl Iterator<Item = &Process> {
        self.clients.iter().chain(&self.servers)
    }

    /// Reads what was printed, and notes who has ended.
    pub(super) fn look(&mut self) -> Result<(), EmuError> {
        self.clients.iter_mut().chain(&mut self.servers).try_for_each(Process::look)
    }

    /// Ends all, clients first.
    pub(super) fn end(&mut self) {
        self.clients.iter_mut().chain(&mut self.servers).for_each(Process::end);
    }
}

impl Process {
    /// Starts a command in the calling thread's network namespace. The process must have one thread.
    pub(super) fn start(label: &str, side: Side, command: String) -> Result<Process, EmuError> {
        let mut process = Process::prepare(label, side, command)?;
        process.go();
        Ok(process)
    }

    /// Makes its process, which waits for [`Process::go`]. The process must have one thread.
    pub(super) fn prepare(label: &str, side: Side, command: String) -> Result<Process, EmuError> {
        let pipe = || io::pipe().map_err(|error| EmuError::system("create a pipe", error));
        let ((output, print), (wait, go)) = (pipe()?, pipe()?);
        let words = ["/bin/sh".to_owned(), "-c".to_owned(), command.clone()];
        let role = Role::Program { print: print.as_raw_fd(), wait: wait.as_raw_fd() };
        let contained = start(&words, &[], role)?;
        Ok(Process {
            label: label.to_owned(),
            side,
            command,
            contained,
            output,
            closed: false,
            tail: VecDeque::new(),
            printed: 0,
            go: Some(go),
            ended: None,
            killed: false,
        })
    }

    /// Starts it, if it has not started.
    pub(super) fn go(&mut self) {
        if let Some(mut go) = self.go.take() {
            // It fails if the process has ended, which is noticed.
            let _ = go.write_all(&[1]);
        }
    }

    /// Its number in our process namespace.
    pub(super) fn id(&self) -> u32 {
        self.contained.child.id()
    }

    /// Where its output comes from; -1 once that is closed.
    pub(super) fn output(&self) -> RawFd {
        if self.closed { -1 } else { self.output.as_raw_fd() }
    }

    /// Reads what it printed and notes whether it has ended.
    fn look(&mut self) -> Result<(), EmuError> {
        if self.ended.is_none() {
            let ended = self.contained.child.ended();
            self.ended = ended.map_err(|error| EmuError::system("look after a program", error))?;
        }
        self.read();
        if self.printed > MOST_OUTPUT {
            self.end();
            let what = format!("printed more than {} MiB", MOST_OUTPUT >> 20);
            return Err(self.failed(&what, "write its output to /dev/null or to a file, or make it say less"));
        }
        Ok(())
    }

    /// Reads what is there, within bounds.
    fn read(&mut self) {
        let mut buffer = [0; 64 << 10];
        while !self.closed && self.printed <= MOST_OUTPUT {
            let ready = sys::poll([self.output.as_raw_fd()], libc::POLLIN, Some(Duration::ZERO));
            if !matches!(ready, Ok([events]) if events != 0) {
                return;
            }
            match self.output.read(&mut buffer) {
                Ok(0) | Err(_) => self.closed = true,
                Ok(length) => {
                    self.printed += length as u64;
                    self.tail.extend(&buffer[length.saturating_sub(TAIL)..length]);
                    let surplus = self.tail.len().saturating_sub(TAIL);
                    self.tail.drain(..surplus);
                }
            }
        }
    }

    /// Ends it and everything that it started, and waits until they are gone.
    pub(super) fn end(&mut self) {
        if self.ended.is_none() {
            self.contained.child.kill();
            self.ended = Some(self.contained.child.wait().unwrap_or_default());
            self.killed = true;
        }
        self.read();
    }

    /// That it failed: how, in words behind its exit code if it has one, and the fix.
    pub(super) fn failed(&self, what: &str, fix: &str) -> EmuError {
        let mut how = match self.ended.filter(|_| !self.killed) {
            Some(NOT_FOUND) => "was not found, or one of its parts (code 127)".to_owned(),
            Some(code) if code > 128 => format!("was ended by signal {}", code - 128),
            Some(0) => "ended".to_owned(),
            Some(code) => format!("exited with code {code}"),
            None => String::new(),
        };
        if !how.is_empty() && !what.is_empty() && !what.starts_with(',') {
            how.push(' ');
        }
        how.push_str(what);
        EmuError::Program(Box::new(ProgramFailure {
            label: self.label.clone(),
            side: self.side.name(),
            command: self.command.clone(),
            how,
            message: self.message(),
            fix: fix.to_owned(),
        }))
    }

    /// The last lines that it printed, in one.
    fn message(&self) -> String {
        let bytes: Vec<u8> = self.tail.iter().copied().collect();
        match last_lines(&bytes) {
            lines if lines.is_empty() => format!("; the {} printed nothing", self.side.name()),
            lines => format!("; the {} printed last: {lines}", self.side.name()),
        }
    }
}

/// The last lines of a text in one, without control characters.
fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = |line: &str| line.chars().filter(|one| !one.is_control()).collect::<String>();
    let lines: Vec<String> = text.lines().map(plain).filter(|line| !line.trim().is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join(" / ")
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

impl EmuError {
    /// The error of a program, with what the other command printed last as well.
    pub(super) fn beside(mut self, other: &Process) -> EmuError {
        if let EmuError::Program(failure) = &mut self {
            failure.message.push_str(&other.message());
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::last_lines;

    #[test]
    fn last_lines_fit_in_sentence() {
        assert_eq!(last_lines(b""), "");
        assert_eq!(last_lines(b"\n \n"), "");
        assert_eq!(last_lines(b"1\n2\n3\n4\n5\n6\n7\r\n\n"), "2 / 3 / 4 / 5 / 6 / 7");
        assert_eq!(last_lines(b"\x1b[31mred\x07\xff"), "[31mred\u{fffd}");
    }
}
