//! A command, or a shell, behind an emulated path.
//!
//! As root, the outer end of the path is a device in the caller's network namespace, so that servers outside are reached
//! on its address. Without root, the outer end is a second namespace of our own, in which a server command can run.
//!
//! The command runs under a small process 1 of its own process namespace. That process dies with us, also by SIGKILL,
//! and the kernel then ends everything in the namespace.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;

use fullpipe_scenario::spec::{Spec, Stream};
use fullpipe_units::{Duration, Time};

use crate::EmuError;
use crate::address::{Block, free_block};
use crate::clock::Clock;
use crate::ferry::{Classes, DirectionPlan, Ferry};
use crate::host;
use crate::namespace::{Privilege, ask_to_die_with_parent, become_capable, enter_new_network, set_sysctl};
use crate::path_clock::Standstill;
use crate::run::judge_ferry;
use crate::sys;
use crate::sys::process::{self, Child, Forked};
use crate::tun::{Address, Tun};

/// What a shell says when a command is not found, and when it cannot be run.
const NOT_FOUND: i32 = 127;
const NOT_RUNNABLE: i32 = 126;
/// In the command's environment: the address of the outer end.
const SERVER_VARIABLE: &str = "FULLPIPE_SERVER";

/// Runs `command` (or `$SHELL`, if it is empty) behind the path of `spec` and returns its exit code. The forward path
/// leads from the command outwards, the reverse path to it; flows and duration of the spec do not matter.
///
/// `server` runs at the outer end until the command ends. Without root it is the only thing that the command can
/// reach. The address of the outer end is printed on standard error and is in the command's environment as
/// `FULLPIPE_SERVER`. Shells nest, up to four deep.
///
/// Call it in a process of its own that has only one thread.
pub fn shell(spec: &Spec, command: &[String], server: Option<&[String]>) -> Result<i32, EmuError> {
    let privilege = become_capable()?;
    ask_to_die_with_parent();
    let ends = Ends::create(spec, privilege)?;
    let address = ends.block.outer();
    match (privilege, server) {
        (Privilege::Root, _) => eprintln!("fullpipe: servers outside are reachable at {address}"),
        (Privilege::UserNamespace, Some(_)) => eprintln!("fullpipe: the server is reachable at {address}"),
        (Privilege::UserNamespace, None) => {
            eprintln!(
                "fullpipe: without root nothing outside is reachable; --server COMMAND runs at {address}"
            )
        }
    }

    let foreground = process::own_foreground();
    process::ignore_terminal_signals();
    let finished = run_behind(spec, &ends, command, server, foreground.is_some());
    if let Some(group) = foreground {
        process::restore_foreground(group);
    }
    process::heed_terminal_signals();
    finished
}

/// The two ends of the path and where they are.
struct Ends {
    block: Block,
    inner: Arc<Tun>,
    outer: Arc<Tun>,
    inside: OwnedFd,
    outside: OwnedFd,
}

impl Ends {
    /// Makes both ends. Leaves the calling thread in the inner namespace.
    fn create(spec: &Spec, privilege: Privilege) -> Result<Ends, EmuError> {
        let mtu = spec.mtu_bytes;
        if privilege == Privilege::UserNamespace {
            enter_new_network()?;
            tune(spec);
        }
        let outside = current_network()?;
        let block = free_block()?;
        let outer = Tun::create(Address { own: block.outer(), prefix: block.prefix(), mtu })?;
        enter_new_network()?;
        let inside = current_network()?;
        tune(spec);
        // So that shells inside this one reach what is outside it.
        let _ = set_sysctl("net.ipv4.ip_forward", "1");
        let inner = Tun::create(Address { own: block.inner(), prefix: block.prefix(), mtu })?;
        inner.add_default_route(block.outer())?;
        Ok(Ends { block, inner: Arc::new(inner), outer: Arc::new(outer), inside, outside })
    }
}

/// Window limits as the scenario says; the default algorithm is the one outside.
fn tune(spec: &Spec) {
    let inherited = crate::namespace::sysctl("net.ipv4.tcp_congestion_control");
    for reason in host::tune(&spec.hosts) {
        eprintln!("fullpipe: {reason}");
    }
    let set = inherited.map(|name| set_sysctl("net.ipv4.tcp_congestion_control", &name));
    if let Some(Err(error)) = set {
        eprintln!("fullpipe: {error}");
    }
}

fn current_network() -> Result<OwnedFd, EmuError> {
    let file = File::open("/proc/thread-self/ns/net");
    file.map(OwnedFd::from).map_err(|error| EmuError::system("open the network namespace", error))
}

/// Starts the processes, carries their packets, and waits for the command.
fn run_behind(
    spec: &Spec,
    ends: &Ends,
    command: &[String],
    server: Option<&[String]>,
    foreground: bool,
) -> Result<i32, EmuError> {
    let shell = [std::env::var("SHELL").unwrap_or_else(|_| "/bin/sh".to_owned())];
    let command = if command.is_empty() { &shell[..] } else { command };
    let enter = |namespace: &OwnedFd| {
        process::enter_network(namespace)
            .map_err(|error| EmuError::system("enter a network namespace", error))
    };
    let server = match server {
        Some(server) if !server.is_empty() => {
            enter(&ends.outside)?;
            let server = start(server, ends, Role::Server)?;
            enter(&ends.inside)?;
            Some(server)
        }
        _ => None,
    };
    let finished = match start(command, ends, Role::Command { foreground }) {
        Ok(command) => carry(spec, ends, command.child),
        Err(error) => Err(error),
    };
    if let Some(server) = server {
        server.child.kill();
        let _ = server.child.wait();
    }
    finished
}

/// Carries packets until `child` ends; returns its exit code.
fn carry(spec: &Spec, ends: &Ends, child: Child) -> Result<i32, EmuError> {
    let stop = sys::event_fd().map_err(|error| EmuError::system("create an eventfd", error))?;
    let (code, ferried) = thread::scope(|scope| {
        let ferry = scope.spawn(|| {
            let plan =
                |elements, seed| DirectionPlan { elements, class_delays: &[], seed, gro: Duration::ZERO };
            let plans = (
                plan(&spec.forward, Stream::Forward.seed(spec.seed)),
                plan(&spec.reverse, Stream::Reverse.seed(spec.seed)),
            );
            let ends = (Arc::clone(&ends.inner), Arc::clone(&ends.outer));
            let ferry = Ferry::new(ends, plans, Classes { first_port: 0, flows: 0 });
            let ferried =
                ferry.and_then(|ferry| ferry.run(Clock::start(), Standstill::Stops, Time::NEVER, &stop));
            if ferried.is_err() {
                child.kill();
            }
            ferried
        });
        let code = child.wait();
        sys::signal_event(&stop);
        (code, ferry.join())
    });
    let ferried = ferried.map_err(|_| EmuError::Stopped("ferry"))??;
    for reason in judge_ferry(spec, &ferried) {
        eprintln!("fullpipe: {reason}");
    }
    code.map_err(|error| EmuError::system("wait for the command", error))
}

/// What a process is for.
#[derive(Clone, Copy)]
enum Role {
    Command {
        /// It gets the terminal.
        foreground: bool,
    },
    Server,
}

/// A process 1 of ours.
struct Contained {
    child: Child,
    /// Open as long as we live.
    _held: io::PipeWriter,
}

/// Starts a command under a process 1 of its own, in the calling thread's network namespace.
fn start(command: &[String], ends: &Ends, role: Role) -> Result<Contained, EmuError> {
    let (alive, held) = io::pipe().map_err(|error| EmuError::system("create a pipe", error))?;
    // SAFETY: the ferry has not been started, and the caller promised that there is no other thread.
    let forked = unsafe { process::fork_into() };
    match forked.map_err(|error| EmuError::system("create a process namespace", error))? {
        Forked::Parent(child) => Ok(Contained { child, _held: held }),
        Forked::Child => {
            drop(held);
            process::exit_now(be_process_one(command, ends, role, &alive))
        }
    }
}

/// The life of process 1: prepare, start the command, reap.
fn be_process_one(command: &[String], ends: &Ends, role: Role, alive: &io::PipeReader) -> i32 {
    let _ = sys::die_with_parent_thread();
    // If the parent was gone before the request, its end of the pipe is closed.
    if !matches!(sys::poll([alive.as_raw_fd()], libc::POLLIN, Some(Duration::ZERO)), Ok([0])) {
        return 1;
    }
    // Without the right to mount, the command sees the processes of the host; it is no less contained.
    let _ = process::mount_own_proc();
    let mut program = Command::new(&command[0]);
    program.args(&command[1..]).env(SERVER_VARIABLE, ends.block.outer().to_string());
    let foreground = matches!(role, Role::Command { foreground: true });
    if let Role::Server = role {
        program.stdin(Stdio::null());
    }
    let prepare = move || {
        if foreground {
            process::take_foreground();
        }
        process::heed_terminal_signals();
        Ok(())
    };
    // SAFETY: `prepare` makes async-signal-safe calls only and allocates nothing.
    unsafe { program.pre_exec(prepare) };
    match program.spawn() {
        Ok(child) => process::reap_until(child.id()),
        Err(error) => {
            eprintln!("fullpipe: cannot run {:?}: {error}", command[0]);
            if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_RUNNABLE }
        }
    }
}
