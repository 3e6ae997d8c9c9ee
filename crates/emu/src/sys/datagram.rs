//! Wrappers for datagrams, and for the time stamps that the kernel puts on them.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd};

use super::{check, get_option, monotonic_ns, set_option};

/// Datagrams taken with one call.
const AT_ONCE: usize = 64;
/// The number of bytes of a datagram that are kept; the rest is discarded.
pub(crate) const HEAD_BYTES: usize = 16;
/// Room for one time stamp: a header of 16 bytes and two 64-bit numbers, and as much again for other control data.
const CONTROL_BYTES: usize = 64;

/// A datagram as it arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Datagram {
    /// Its first bytes; zeros behind its end.
    pub(crate) head: [u8; HEAD_BYTES],
    /// How long it was.
    pub(crate) bytes: usize,
    /// Nanoseconds of CLOCK_REALTIME at which it reached the kernel's network stack; `None` without a stamp.
    pub(crate) stamped_ns: Option<u64>,
}

/// Memory for [`Inbox::receive`].
pub(crate) struct Inbox {
    heads: [[u8; HEAD_BYTES]; AT_ONCE],
    controls: [Control; AT_ONCE],
}

/// Aligned as `cmsghdr` must be.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox { heads: [[0; HEAD_BYTES]; AT_ONCE], controls: [Control([0; CONTROL_BYTES]); AT_ONCE] }
    }

    /// Appends the datagrams that wait on a non-blocking socket, as many as one call takes; returns how many.
    pub(crate) fn receive(&mut self, fd: &OwnedFd, into: &mut Vec<Datagram>) -> io::Result<usize> {
        self.heads = [[0; HEAD_BYTES]; AT_ONCE];
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: HEAD_BYTES }; AT_ONCE];
        // SAFETY: all-zero is a valid mmsghdr.
        let mut messages: [libc::mmsghdr; AT_ONCE] = unsafe { mem::zeroed() };
        for index in 0..AT_ONCE {
            pieces[index].iov_base = self.heads[index].as_mut_ptr().cast();
            let header = &mut messages[index].msg_hdr;
            header.msg_iov = &raw mut pieces[index];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[index].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
        }
        // MSG_TRUNC: lengths are those of the datagrams, not of what was kept.
        let flags = libc::MSG_DONTWAIT | libc::MSG_TRUNC;
        // SAFETY: every header points to memory of the length it states, which lives through the call; no timeout.
        let result = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                messages.as_mut_ptr(),
                AT_ONCE as libc::c_uint,
                flags as _,
                std::ptr::null_mut(),
            )
        };
        let count = match check(result) {
            Ok(count) => count as usize,
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => 0,
            Err(error) => return Err(error),
        };
        for (message, head) in messages.iter().zip(&self.heads).take(count) {
            let stamped_ns = stamp_of(&message.msg_hdr);
            into.push(Datagram { head: *head, bytes: message.msg_len as usize, stamped_ns });
        }
        Ok(count)
    }
}

/// The time stamp among a message's control data.
fn stamp_of(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: the kernel filled `header`, and what it points to is alive; CMSG_NXTHDR stays within msg_controllen. A
    // message of type SCM_TIMESTAMPNS carries a timespec, read without regard to alignment.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = control.as_ref() {
            if found.cmsg_level == libc::SOL_SOCKET && found.cmsg_type == libc::SCM_TIMESTAMPNS {
                let stamp = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
                return Some(stamp.tv_sec as u64 * 1_000_000_000 + stamp.tv_nsec as u64);
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    None
}

/// Makes the kernel stamp each packet that a socket receives when it enters the network stack.
pub(crate) fn stamp_arrivals(fd: &OwnedFd) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32.to_ne_bytes())
}

/// Sets the receive buffer of a socket, or the largest that is allowed.
pub(crate) fn want_receive_buffer(fd: &OwnedFd, bytes: i32) -> io::Result<()> {
    let bytes = bytes.to_ne_bytes();
    // More than the system's limit needs a right that a user namespace does not give.
    set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &bytes)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes))
}

/// Datagrams that a socket had no room for (`SK_MEMINFO_DROPS` of SO_MEMINFO).
pub(crate) fn receive_drops(fd: &OwnedFd) -> io::Result<u32> {
    const DROPS: usize = 8;
    let mut words = [0u8; 4 * (DROPS + 1)];
    let length = get_option(fd, libc::SOL_SOCKET, libc::SO_MEMINFO, &mut words)?;
    let drops = words[..length].chunks_exact(4).nth(DROPS).ok_or(io::ErrorKind::UnexpectedEof)?;
    Ok(u32::from_ne_bytes([drops[0], drops[1], drops[2], drops[3]]))
}

/// CLOCK_REALTIME minus CLOCK_MONOTONIC in nanoseconds, and the error of that.
#[expect(clippy::disallowed_methods, reason = "the kernel stamps datagrams by CLOCK_REALTIME")]
pub(crate) fn realtime_offset_ns() -> (i64, u64) {
    const TRIES: usize = 50;
    let once = || {
        let before = monotonic_ns();
        let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `now` is a valid timespec to write to, and the call cannot fail for this clock.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &mut now) };
        let after = monotonic_ns();
        let real = now.tv_sec * 1_000_000_000 + now.tv_nsec;
        (real - (before + (after - before) / 2) as i64, (after - before).div_ceil(2))
    };
    // The narrowest is the one that nothing interrupted.
    (0..TRIES).map(|_| once()).min_by_key(|(_, off)| *off).expect("there are tries")
}
