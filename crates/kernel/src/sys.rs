//! Thin wrappers around the system calls of TCP sockets, besides those of the emulator. Nearly all `unsafe` of the crate
//! is here.

use std::ffi::{CStr, CString};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use fullpipe_units::Duration;

pub(crate) use fullpipe_emu::sys::*;

pub(crate) mod bpf;
pub(crate) mod libbpf;

/// Listens for one connection.
pub(crate) fn listen(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::listen(fd.as_raw_fd(), 1) }).map(drop)
}

/// Accepts a connection; `None` when there is none yet.
pub(crate) fn accept(fd: &OwnedFd) -> io::Result<Option<OwnedFd>> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null pointers ask for no address. On success the descriptor is new and owned by nobody else.
    let result = unsafe { libc::accept4(fd.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) };
    match check(result) {
        // SAFETY: see above.
        Ok(fd) => Ok(Some(unsafe { OwnedFd::from_raw_fd(fd) })),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error),
    }
}

/// Takes up to `buffer.len()` bytes off a TCP socket without copying them; `None` when there are none.
pub(crate) fn discard(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<Option<usize>> {
    // SAFETY: the pointer and length describe `buffer`, writable for the call (MSG_TRUNC leaves it untouched).
    let taken =
        unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), libc::MSG_TRUNC) };
    would_block(taken)
}

/// Ends the sending direction of a connection.
pub(crate) fn shutdown_write(fd: &OwnedFd) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// The pending error of a socket.
pub(crate) fn socket_error(fd: &OwnedFd) -> io::Result<Option<io::Error>> {
    let mut code = [0u8; 4];
    get_option(fd, libc::SOL_SOCKET, libc::SO_ERROR, &mut code)?;
    Ok(match i32::from_ne_bytes(code) {
        0 => None,
        code => Some(io::Error::from_raw_os_error(code)),
    })
}

/// An epoll set whose entries carry a number.
#[derive(Debug)]
pub(crate) struct Epoll(OwnedFd);

impl Epoll {
    /// An empty set.
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: no pointers. On success the descriptor is new and owned by nobody else.
        unsafe { Ok(Epoll(OwnedFd::from_raw_fd(check(libc::epoll_create1(libc::EPOLL_CLOEXEC))?))) }
    }

    /// Watches `fd` for `events` (level-triggered).
    pub(crate) fn add(&self, fd: &OwnedFd, events: libc::c_int, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: events as u32, u64: token };
        // SAFETY: `event` is valid for the call; both descriptors are open.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_ADD, fd.as_raw_fd(), &mut event) })
            .map(drop)
    }

    /// Stops watching `fd`.
    pub(crate) fn remove(&self, fd: &OwnedFd) -> io::Result<()> {
        // SAFETY: EPOLL_CTL_DEL ignores the event pointer.
        check(unsafe {
            libc::epoll_ctl(self.0.as_raw_fd(), libc::EPOLL_CTL_DEL, fd.as_raw_fd(), std::ptr::null_mut())
        })
        .map(drop)
    }

    /// Waits for events or the timeout and appends (token, events) to `ready`, which is cleared first.
    pub(crate) fn wait(&self, ready: &mut Vec<(u64, u32)>, timeout: Duration) -> io::Result<()> {
        const AT_ONCE: usize = 64;
        ready.clear();
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; AT_ONCE];
        let timeout = timespec(timeout.as_nanos());
        // SAFETY: `events` holds AT_ONCE entries, `timeout` is valid, the null signal mask changes nothing.
        let result = unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.0.as_raw_fd(),
                events.as_mut_ptr(),
                AT_ONCE as libc::c_int,
                std::ptr::from_ref(&timeout),
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        };
        match check(result as libc::c_int) {
            Ok(count) => {
                ready.extend(events[..count as usize].iter().map(|event| (event.u64, event.events)));
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Waits until an eventfd is signalled; returns false if the timeout passed first.
pub(crate) fn wait_for_event(fd: &OwnedFd, timeout: Duration) -> io::Result<bool> {
    poll([fd.as_raw_fd()], libc::POLLIN, Some(timeout)).map(|[events]| events != 0)
}

/// Gives a file without a name (O_TMPFILE) the name `path`, which must be free.
pub(crate) fn link_file(file: &File, path: &CStr) -> io::Result<()> {
    let from = CString::new(format!("/proc/self/fd/{}", file.as_raw_fd()))?;
    let here = libc::AT_FDCWD;
    // SAFETY: both paths are NUL-terminated.
    check(unsafe { libc::linkat(here, from.as_ptr(), here, path.as_ptr(), libc::AT_SYMLINK_FOLLOW) })
        .map(drop)
}
