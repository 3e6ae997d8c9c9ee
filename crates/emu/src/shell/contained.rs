//! Processes behind the path and at its outer end, each under a process 1 of ours.
//!
//! Process 1 has a process namespace of its own. It dies with us, also by SIGKILL, and the kernel then ends everything in
//! its namespace.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

use fullpipe_units::Duration;

use crate::EmuError;
use crate::sys;
use crate::sys::process::{self, Child, Forked};

/// The exit codes of shells for a command that is not found, and for one that cannot be run.
pub(crate) const NOT_FOUND: i32 = 127;
const NOT_RUNNABLE: i32 = 126;

/// What a process is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The user's command.
    Command {
        /// It gets the terminal.
        foreground: bool,
    },
    /// The server at the outer end; it reads nothing, and has no terminal.
    Server,
    /// A program that is a flow; it reads nothing, and has no terminal.
    Program {
        /// Where its output goes.
        print: RawFd,
        /// It starts when a byte comes from here.
        wait: RawFd,
    },
}

/// A process 1 of ours.
pub(crate) struct Contained {
    pub(crate) child: Child,
    /// Open as long as we live.
    _held: io::PipeWriter,
}

/// Starts a command in the calling thread's network namespace, with these variables added to its environment. The
/// process must have one thread.
pub(crate) fn start(
    command: &[String],
    variables: &[(&str, OsString)],
    role: Role,
) -> Result<Contained, EmuError> {
    let (alive, held) = io::pipe().map_err(|error| EmuError::system("create a pipe", error))?;
    // SAFETY: the ferry has not been started, and the caller promised that there is no other thread.
    let forked = unsafe { process::fork_into() };
    match forked.map_err(|error| EmuError::system("create a process namespace", error))? {
        Forked::Parent(child) => Ok(Contained { child, _held: held }),
        Forked::Child => {
            drop(held);
            process::exit_now(be_process_one(command, variables, role, &alive))
        }
    }
}

/// The life of process 1: prepare, start the command, reap.
fn be_process_one(
    command: &[String],
    variables: &[(&str, OsString)],
    role: Role,
    alive: &io::PipeReader,
) -> i32 {
    let _ = sys::die_with_parent_thread();
    // Nor is /proc/1 a way to our descriptors for those who may not trace us.
    let _ = process::forbid_tracing();
    // A fork without exec has them all: the pipe of the results, devices, namespaces, and pipes of other programs. The command
    // of a shell may have been given some by its user, and gets no others.
    if let Role::Program { print, wait } = role {
        process::close_all_but([alive.as_raw_fd(), print, wait]);
        if process::close_standard_files().is_err() {
            return NOT_RUNNABLE;
        }
    }
    // If the parent was gone before the request, its end of the pipe is closed.
    if !matches!(sys::poll([alive.as_raw_fd()], libc::POLLIN, Some(Duration::ZERO)), Ok([0])) {
        return 1;
    }
    if !matches!(role, Role::Command { .. }) {
        // A signal to its own group must not reach us, nor may it stop us by reading from our terminal.
        process::lead_own_session();
    }
    if let Role::Program { wait, .. } = role {
        // Other load of the machine must not pass for the program's. No real-time priority: it may never pause.
        let _ = sys::become_less_nice();
        if !matches!(sys::poll([wait], libc::POLLIN, None), Ok([events]) if events & libc::POLLIN != 0) {
            return 1;
        }
    }
    // Without the right to mount, the command sees the processes of the host; it is no less contained.
    let _ = process::mount_own_proc();
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).envs(variables.iter().map(|(name, value)| (name, value)));
    match role {
        Role::Command { .. } => {}
        Role::Server => {
            program.stdin(Stdio::null());
        }
        Role::Program { print, .. } => match process::two_of(print) {
            Ok([out, error]) => {
                program.stdin(Stdio::null()).stdout(out).stderr(error);
            }
            Err(_) => return NOT_RUNNABLE,
        },
    }
    let foreground = role == Role::Command { foreground: true };
    let prepare = move || {
        if foreground {
            process::take_foreground();
        }
        process::heed_terminal_signals();
        Ok(())
    };
    // SAFETY: `prepare` makes async-signal-safe calls only and allocates nothing.
    unsafe { program.pre_exec(prepare) };
    let spawned = program.spawn();
    // Its copies of `print`.
    drop(program);
    match spawned {
        Ok(child) => process::reap_until(child.id()),
        Err(error) => {
            eprintln!("fullpipe: cannot run {:?}: {error}", command[0]);
            if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE }
        }
    }
}
