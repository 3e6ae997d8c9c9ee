//! Network namespaces without names: each belongs to a thread and ends with it, so nothing has to be cleaned up.
//!
//! Order: [`become_capable`] while the process has one thread; then [`enter_new_network`] on each thread that is to
//! be an end host. `/proc/sys/net` shows the namespace of the thread that reads it.

use std::fs::{self, File};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::EmuError;
use crate::settings::set_sysctl;
use crate::sys;

/// How the process came by the right to make network namespaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// It had it: root, or CAP_SYS_ADMIN and CAP_NET_ADMIN.
    Root,
    /// Through a user namespace of its own, in which it is root.
    UserNamespace,
}

/// Makes sure that this process may create network namespaces, through a user namespace if need be.
/// The process must have only one thread.
///
/// # Errors
/// When the kernel refuses a user namespace, or the process has several threads.
pub fn become_capable() -> Result<Privilege, EmuError> {
    const NEEDED: u64 = 1 << 12 | 1 << 21; // CAP_NET_ADMIN, CAP_SYS_ADMIN
    if effective_capabilities() & NEEDED == NEEDED {
        return Ok(Privilege::Root);
    }
    let (uid, gid) = sys::effective_ids();
    sys::unshare(libc::CLONE_NEWUSER).map_err(|error| match error.raw_os_error() {
        Some(libc::ENOSPC | libc::EUSERS) => EmuError::NotPermitted {
            attempted: "create a user namespace (user.max_user_namespaces is reached)".to_owned(),
            source: error,
        },
        // A mistake of the caller, not of the machine.
        Some(libc::EINVAL) => EmuError::System {
            attempted: "create a user namespace in a process with several threads".to_owned(),
            source: error,
        },
        _ => EmuError::system("create a user namespace", error),
    })?;
    write_proc("/proc/self/setgroups", "deny")?;
    write_proc("/proc/self/uid_map", &format!("0 {uid} 1"))?;
    write_proc("/proc/self/gid_map", &format!("0 {gid} 1"))?;
    Ok(Privilege::UserNamespace)
}

/// The calling thread's effective capabilities; none if unreadable.
pub fn effective_capabilities() -> u64 {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()).unwrap_or(0)
}

/// Moves the calling thread into a new, empty network namespace and brings its loopback up.
///
/// # Errors
/// When the process may not create network namespaces ([`become_capable`]).
pub fn enter_new_network() -> Result<(), EmuError> {
    sys::unshare(libc::CLONE_NEWNET)
        .map_err(|error| EmuError::system("create a network namespace", error))?;
    // Neighbour discovery and multicast reports would be foreign traffic on the path.
    let _ = set_sysctl("net.ipv6.conf.all.disable_ipv6", "1");
    let _ = set_sysctl("net.ipv6.conf.default.disable_ipv6", "1");
    crate::tun::bring_up("lo")
}

/// The network namespace of the calling thread.
pub(crate) fn current_network() -> Result<OwnedFd, EmuError> {
    let file = File::open("/proc/thread-self/ns/net");
    file.map(OwnedFd::from).map_err(|error| EmuError::system("open the network namespace", error))
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network(namespace: &OwnedFd) -> Result<(), EmuError> {
    sys::process::enter_network(namespace)
        .map_err(|error| EmuError::system("enter a network namespace", error))
}

fn write_proc(path: &str, value: &str) -> Result<(), EmuError> {
    fs::write(path, value).map_err(|error| EmuError::system(format!("write {value:?} to {path}"), error))
}

static WATCHES_STDIN: AtomicBool = AtomicBool::new(false);

/// From now on this process ends when the one that started it does: the kernel kills it when the starting *thread*
/// ends, and [`crate::Path::carry`] ends it when standard input, if that is a pipe, is closed at the other end.
///
/// [`crate::Path::carry`] and [`crate::shell()`] ask the kernel by themselves. Call this first in a child whose standard input
/// is a pipe that its parent holds open, so that it also ends if the parent died before it could ask.
pub fn die_with_parent() {
    WATCHES_STDIN.store(true, Ordering::Relaxed);
    ask_to_die_with_parent();
}

/// Asks the kernel to kill this process when the thread that started it ends. Entering a user namespace clears the
/// request, so it is made after that.
pub fn ask_to_die_with_parent() {
    let _ = sys::die_with_parent_thread();
}

/// The parent, if the end of standard input is its own ([`die_with_parent`]).
#[derive(Debug)]
pub(crate) struct Parent {
    input: RawFd,
}

impl Parent {
    /// The parent of this process.
    pub(crate) fn watched() -> Parent {
        let watched = WATCHES_STDIN.load(Ordering::Relaxed) && sys::is_pipe_or_socket(0);
        Parent { input: if watched { 0 } else { -1 } }
    }

    /// What to poll; -1, which poll ignores, if there is nothing to watch.
    pub(crate) fn input(&self) -> RawFd {
        self.input
    }

    /// Something came from there: ends the process if it was the end. What cannot be read is not watched any more.
    pub(crate) fn heed(&mut self) {
        match std::io::stdin().read(&mut [0; 64]) {
            Ok(0) => std::process::exit(1),
            Ok(_) => {}
            Err(_) => self.input = -1,
        }
    }
}

/// Waits until `done` is signalled. If the parent closes our standard input first, ends the process: its threads'
/// namespaces and devices end with it.
pub(crate) fn wait_for(done: &OwnedFd) -> Result<(), EmuError> {
    let mut parent = Parent::watched();
    loop {
        let ready = sys::poll([done.as_raw_fd(), parent.input()], libc::POLLIN, None)
            .map_err(|error| EmuError::system("wait for the run", error))?;
        if ready[0] != 0 {
            return Ok(());
        }
        if ready[1] != 0 {
            parent.heed();
        }
    }
}
