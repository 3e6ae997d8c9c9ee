//! Errors as sentences, each with a fix.

use std::any::Any;
use std::io;

/// Why a path cannot be emulated. `Display` is one sentence; [`EmuError::fix`] is the fix.
#[derive(Debug, thiserror::Error)]
pub enum EmuError {
    /// A right is missing.
    #[error("not permitted to {attempted}: {source}")]
    NotPermitted {
        /// What was attempted.
        attempted: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// There is no usable `/dev/net/tun`.
    #[error("cannot open /dev/net/tun: {0}")]
    NoTun(io::Error),
    /// The scenario needs something that cannot be done here.
    #[error("{field}: {reason}")]
    Unsupported {
        /// Which part of the scenario.
        field: String,
        /// Why not.
        reason: String,
        /// What to do instead.
        fix: String,
    },
    /// The path cannot be built.
    #[error("the path cannot be built: {0}")]
    Path(String),
    /// Any other failed system call.
    #[error("cannot {attempted}: {source}")]
    System {
        /// What was attempted.
        attempted: String,
        /// The kernel's error.
        source: io::Error,
    },
    /// The server of a shell ended before it could be reached.
    #[error("the server {command:?} exited with code {code} before it opened a port")]
    ServerEnded {
        /// Its command line.
        command: String,
        /// Its exit code.
        code: i32,
    },
    /// A program that is a flow failed.
    #[error(transparent)]
    Program(Box<ProgramFailure>),
    /// Part of the emulator stopped early.
    #[error("the {part} stopped unexpectedly{why}")]
    Stopped {
        /// Which part.
        part: &'static str,
        /// What its panic said, with a colon before; empty where nobody knows.
        why: String,
    },
}

/// How a program that is a flow failed.
#[derive(Debug, thiserror::Error)]
#[error("{label}: the {side} {command:?} {how}{message}")]
pub struct ProgramFailure {
    /// The flow.
    pub label: String,
    /// Which of its commands: client or server.
    pub side: &'static str,
    /// The command.
    pub command: String,
    /// How it failed.
    pub how: String,
    /// What it printed last.
    pub message: String,
    /// What to do.
    pub fix: String,
}

impl EmuError {
    /// A failed system call, sorted by what it means. `attempted` completes the sentence "cannot ...".
    pub fn system(attempted: impl Into<String>, source: io::Error) -> EmuError {
        let attempted = attempted.into();
        match source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => EmuError::NotPermitted { attempted, source },
            _ => EmuError::System { attempted, source },
        }
    }

    /// Part of the emulator ended without a result.
    pub(crate) fn stopped(part: &'static str) -> EmuError {
        EmuError::Stopped { part, why: String::new() }
    }

    /// The thread of a part of the emulator panicked.
    pub fn panicked(part: &'static str) -> impl FnOnce(Box<dyn Any + Send>) -> EmuError {
        move |panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            EmuError::Stopped { part, why: text.map(|text| format!(": {text}")).unwrap_or_default() }
        }
    }

    /// The fix, one sentence.
    pub fn fix(&self) -> String {
        match self {
            EmuError::NotPermitted { .. } => crate::sysctl::how_to_permit(),
            EmuError::NoTun(source) if source.raw_os_error() == Some(libc::EACCES) => {
                "run as root, or let everyone open the device: `chmod 666 /dev/net/tun`".to_owned()
            }
            EmuError::NoTun(_) => {
                "load the module (`modprobe tun`) and make the node: `mkdir -p /dev/net && mknod -m 666 /dev/net/tun c \
                 10 200`; in a container, pass `--device /dev/net/tun`"
                    .to_owned()
            }
            EmuError::Unsupported { fix, .. } => fix.clone(),
            EmuError::Program(failure) => failure.fix.clone(),
            EmuError::ServerEnded { .. } => {
                "try the server by itself; it must stay in the foreground (`iperf3 -s`, not `iperf3 -s -D`)".to_owned()
            }
            EmuError::Path(_) => "fix the path in the scenario".to_owned(),
            EmuError::System { .. } => "`fullpipe doctor` shows what this machine can do".to_owned(),
            EmuError::Stopped { why, .. } if why.is_empty() => {
                "`fullpipe doctor` shows what this machine can do".to_owned()
            }
            EmuError::Stopped { .. } => {
                "this is a defect of Fullpipe: please report it with the scenario and the seed".to_owned()
            }
        }
    }
}
