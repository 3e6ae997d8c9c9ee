//! Wrappers for processes, signals, mounts and terminals.

use std::ffi::CStr;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::check;

/// A child made by [`fork_into`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child(libc::pid_t);

/// Who returns from [`fork_into`].
pub(crate) enum Forked {
    /// The caller.
    Parent(Child),
    /// The new process: process 1 of its own process namespace.
    Child,
}

/// Forks a child that is process 1 of a new process namespace and has its own mounts.
///
/// # Safety
/// The process must have one thread: the child may then do anything that the caller could.
pub(crate) unsafe fn fork_into() -> io::Result<Forked> {
    let flags = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::SIGCHLD;
    // SAFETY: without a stack and CLONE_VM this is fork(); the caller vouches for a single thread.
    match unsafe { libc::syscall(libc::SYS_clone, flags, 0usize, 0usize, 0usize, 0usize) } {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Forked::Child),
        pid => Ok(Forked::Parent(Child(pid as libc::pid_t))),
    }
}

/// How a process ended, as shells report it: its exit code, or 128 plus the signal.
fn exit_code(status: libc::c_int) -> i32 {
    if libc::WIFSIGNALED(status) { 128 + libc::WTERMSIG(status) } else { libc::WEXITSTATUS(status) }
}

impl Child {
    /// Waits for its end.
    pub(crate) fn wait(self) -> io::Result<i32> {
        let mut status = 0;
        loop {
            // SAFETY: `status` is valid to write to.
            match check(unsafe { libc::waitpid(self.0, &mut status, 0) }) {
                Ok(_) => return Ok(exit_code(status)),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Its exit code if it has ended, without waiting. It is then reaped: no [`Child::wait`] or [`Child::kill`] after
    /// that.
    pub(crate) fn ended(self) -> io::Result<Option<i32>> {
        let mut status = 0;
        // SAFETY: `status` is valid to write to.
        let reaped = check(unsafe { libc::waitpid(self.0, &mut status, libc::WNOHANG) })?;
        Ok((reaped != 0).then(|| exit_code(status)))
    }

    /// Its number in our process namespace.
    pub(crate) fn id(self) -> u32 {
        self.0.unsigned_abs()
    }

    /// Kills it, and with it everything in its process namespace. Not after [`Child::wait`].
    pub(crate) fn kill(self) {
        // SAFETY: no pointers; the child has not been waited for, so the number is still its own.
        unsafe { libc::kill(self.0, libc::SIGKILL) };
    }
}

/// As process 1: reaps all children until `main` ends, and returns its exit code. Stopped processes are continued,
/// because nothing else could continue them.
pub(crate) fn reap_until(main: u32) -> i32 {
    let main = main as libc::pid_t;
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid to write to.
        let ended = unsafe { libc::waitpid(-1, &mut status, libc::WUNTRACED) };
        if ended < 0 {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return 1;
        }
        if libc::WIFSTOPPED(status) {
            // SAFETY: no pointers.
            unsafe { libc::kill(ended, libc::SIGCONT) };
        } else if ended == main {
            return exit_code(status);
        }
    }
}

/// Two more descriptors of an open file.
pub(crate) fn two_of(fd: RawFd) -> io::Result<[OwnedFd; 2]> {
    // SAFETY: no pointers. On success the descriptor is new and owned by nobody else.
    let copy =
        || unsafe { io::Result::Ok(OwnedFd::from_raw_fd(check(libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3))?)) };
    Ok([copy()?, copy()?])
}

/// Closes all descriptors above the standard ones but these.
pub(crate) fn close_all_but<const N: usize>(mut kept: [RawFd; N]) {
    kept.sort_unstable();
    let mut first = 3;
    for fd in kept {
        if fd > first {
            close_range(first, fd - 1);
        }
        first = first.max(fd + 1);
    }
    close_range(first, RawFd::MAX);
}

fn close_range(first: RawFd, last: RawFd) {
    // SAFETY: no pointers. The caller uses none of these descriptors any more, and never drops what owns them.
    unsafe {
        if libc::syscall(libc::SYS_close_range, first, last, 0) != 0 {
            // Linux before 5.9.
            let open = libc::sysconf(libc::_SC_OPEN_MAX).clamp(1024, 1 << 20) as RawFd;
            for fd in first..=last.min(open) {
                libc::close(fd);
            }
        }
    }
}

/// Makes the three standard files /dev/null.
pub(crate) fn close_standard_files() -> io::Result<()> {
    // SAFETY: the path is NUL-terminated.
    let null = check(unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) })?;
    for standard in 0..3 {
        // SAFETY: no pointers; the standard files are owned by nobody.
        check(unsafe { libc::dup2(null, standard) })?;
    }
    if null > 2 {
        // SAFETY: no pointers; it was opened above.
        unsafe { libc::close(null) };
    }
    Ok(())
}

/// Nobody may trace this process or look into it who has no right to trace any: not what it starts, as an ordinary user.
/// A command that it runs is an ordinary one again.
pub(crate) fn forbid_tracing() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0) }).map(drop)
}

/// Ends the process at once, without the exit handlers of the process it was forked from.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: no pointers.
    unsafe { libc::_exit(code) }
}

const TERMINAL_SIGNALS: [libc::c_int; 4] = [libc::SIGINT, libc::SIGQUIT, libc::SIGTTIN, libc::SIGTTOU];

/// Ignores the signals of a terminal, so that they reach the command only.
pub(crate) fn ignore_terminal_signals() {
    for signal in TERMINAL_SIGNALS {
        // SAFETY: SIG_IGN installs no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Undoes [`ignore_terminal_signals`]. Async-signal-safe.
pub(crate) fn heed_terminal_signals() {
    for signal in TERMINAL_SIGNALS {
        // SAFETY: SIG_DFL installs no handler.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}

/// Makes the calling process, which leads no group, the leader of a session and a group of its own, without a terminal.
pub(crate) fn lead_own_session() {
    // SAFETY: no pointers. It fails only if the process leads a group.
    unsafe { libc::setsid() };
}

/// The terminal's foreground process group, if standard input is a terminal and we are in that group.
pub(crate) fn own_foreground() -> Option<libc::pid_t> {
    // SAFETY: no pointers.
    let (foreground, own) = unsafe { (libc::tcgetpgrp(0), libc::getpgrp()) };
    (foreground == own).then_some(own)
}

/// Makes the calling process a process group of its own, in the foreground. Async-signal-safe.
/// SIGTTOU must be ignored.
pub(crate) fn take_foreground() {
    // SAFETY: no pointers.
    unsafe {
        libc::setpgid(0, 0);
        libc::tcsetpgrp(0, libc::getpid());
    }
}

/// Gives the terminal back to a process group. SIGTTOU must be ignored.
pub(crate) fn restore_foreground(group: libc::pid_t) {
    // SAFETY: no pointers.
    unsafe { libc::tcsetpgrp(0, group) };
}

/// Detaches the mounts from those of the parent and gives the process namespace its own /proc.
pub(crate) fn mount_own_proc() -> io::Result<()> {
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"proc", c"/proc", Some(c"proc"), libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC)
}

fn mount(source: &CStr, target: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all pointers are NUL-terminated strings or null where null is allowed.
    check(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), kind, flags, std::ptr::null()) }).map(drop)
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter_network(namespace: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}

/// Name, address and prefix length of every IPv4 interface of the calling thread's network namespace.
pub(crate) fn interfaces() -> io::Result<Vec<(String, Ipv4Addr, u32)>> {
    let mut first: *mut libc::ifaddrs = std::ptr::null_mut();
    // SAFETY: `first` is valid to write to; the list is freed below and not used afterwards.
    check(unsafe { libc::getifaddrs(&mut first) })?;
    let mut found = Vec::new();
    let mut next = first;
    // SAFETY: the list is valid until freed; an entry of family AF_INET has sockaddr_in as address and mask.
    unsafe {
        while let Some(entry) = next.as_ref() {
            next = entry.ifa_next;
            let (Some(address), Some(_)) = (entry.ifa_addr.as_ref(), entry.ifa_netmask.as_ref()) else {
                continue;
            };
            if libc::c_int::from(address.sa_family) != libc::AF_INET {
                continue;
            }
            let ip = |address: *mut libc::sockaddr| {
                u32::from_be(address.cast::<libc::sockaddr_in>().read_unaligned().sin_addr.s_addr)
            };
            let name = CStr::from_ptr(entry.ifa_name).to_string_lossy().into_owned();
            found.push((name, Ipv4Addr::from(ip(entry.ifa_addr)), ip(entry.ifa_netmask).count_ones()));
        }
        libc::freeifaddrs(first);
    }
    Ok(found)
}
