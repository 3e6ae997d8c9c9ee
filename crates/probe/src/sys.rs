//! What the kernel does for a datagram: sending with ECN, receiving with stamps, clocks.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use crate::schedule::MOST_BYTES;

/// Datagrams taken with one call.
const AT_ONCE: usize = 64;
const ROOM: usize = MOST_BYTES as usize;
/// Room for a stamp and a byte of ECN, each with its header.
const CONTROL_BYTES: usize = 128;

/// A datagram as it arrived, within the memory of an [`Inbox`].
pub(crate) struct Arrived<'a> {
    pub(crate) bytes: &'a [u8],
    /// How long it was; `bytes` has at most [`MOST_BYTES`] of it.
    pub(crate) length: usize,
    /// Nanoseconds of CLOCK_REALTIME at which it reached the kernel's network stack.
    pub(crate) stamped_ns: Option<i64>,
    pub(crate) ecn: u8,
}

/// Memory for [`Inbox::receive`].
pub(crate) struct Inbox {
    data: Vec<[u8; ROOM]>,
    controls: Vec<Control>,
}

/// Aligned as `cmsghdr` must be.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

impl Inbox {
    pub(crate) fn new() -> Inbox {
        Inbox { data: vec![[0; ROOM]; AT_ONCE], controls: vec![Control([0; CONTROL_BYTES]); AT_ONCE] }
    }

    /// Passes on the datagrams that wait on a socket, as many as one call takes.
    pub(crate) fn receive(&mut self, fd: &OwnedFd, mut each: impl FnMut(Arrived<'_>)) {
        let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: ROOM }; AT_ONCE];
        // SAFETY: all-zero is a valid mmsghdr.
        let mut messages: [libc::mmsghdr; AT_ONCE] = unsafe { mem::zeroed() };
        for index in 0..AT_ONCE {
            pieces[index].iov_base = self.data[index].as_mut_ptr().cast();
            let header = &mut messages[index].msg_hdr;
            header.msg_iov = &raw mut pieces[index];
            header.msg_iovlen = 1;
            header.msg_control = self.controls[index].0.as_mut_ptr().cast();
            header.msg_controllen = CONTROL_BYTES as _;
        }
        // SAFETY: every header points to memory of the length it states, which lives through the call; no timeout.
        let count = unsafe {
            libc::recvmmsg(
                fd.as_raw_fd(),
                messages.as_mut_ptr(),
                AT_ONCE as libc::c_uint,
                (libc::MSG_DONTWAIT | libc::MSG_TRUNC) as _,
                std::ptr::null_mut(),
            )
        };
        // An error, such as a refusal of an earlier datagram, is no datagram.
        for (message, data) in messages.iter().zip(&self.data).take(count.max(0) as usize) {
            let (stamped_ns, ecn) = controls_of(&message.msg_hdr);
            let length = message.msg_len as usize;
            each(Arrived { bytes: &data[..length.min(ROOM)], length, stamped_ns, ecn });
        }
    }
}

/// The time stamp and the ECN bits among a message's control data.
fn controls_of(header: &libc::msghdr) -> (Option<i64>, u8) {
    let (mut stamp, mut ecn) = (None, 0);
    // SAFETY: the kernel filled `header`, and what it points to is alive; CMSG_NXTHDR stays within msg_controllen. The data
    // of each type is at least as long as what is read of it, without regard to alignment.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while let Some(found) = control.as_ref() {
            match (found.cmsg_level, found.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    let time = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
                    stamp = Some(time.tv_sec * 1_000_000_000 + time.tv_nsec);
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => ecn = *libc::CMSG_DATA(control) & 3,
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    ecn = (libc::CMSG_DATA(control).cast::<i32>().read_unaligned() & 3) as u8;
                }
                _ => {}
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    (stamp, ecn)
}

/// Sends a datagram with these bits of ECN on a connected socket.
pub(crate) fn send(fd: &OwnedFd, v6: bool, bytes: &[u8], ecn: u8) -> io::Result<()> {
    let mut control = Control([0; CONTROL_BYTES]);
    let mut piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
    // SAFETY: all-zero is a valid msghdr. Its pointers are to memory of the stated lengths, which lives through the call;
    // the control buffer is aligned and has room for the one message that is written.
    let sent = unsafe {
        let mut message: libc::msghdr = mem::zeroed();
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(mem::size_of::<i32>() as u32) as _;
        let first = libc::CMSG_FIRSTHDR(&message);
        ((*first).cmsg_level, (*first).cmsg_type) =
            if v6 { (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) } else { (libc::IPPROTO_IP, libc::IP_TOS) };
        (*first).cmsg_len = libc::CMSG_LEN(mem::size_of::<i32>() as u32) as _;
        libc::CMSG_DATA(first).cast::<i32>().write_unaligned(i32::from(ecn));
        libc::sendmsg(fd.as_raw_fd(), &message, libc::MSG_DONTWAIT)
    };
    if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Waits up to 50 ms until one of the sockets has something to read.
pub(crate) fn wait(sockets: &[OwnedFd]) {
    let mut all: Vec<libc::pollfd> = sockets
        .iter()
        .map(|one| libc::pollfd { fd: one.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    // SAFETY: the array has as many entries as stated.
    unsafe { libc::poll(all.as_mut_ptr(), all.len() as libc::nfds_t, 50) };
}

/// A copy of a socket with stamps and ECN bits switched on, and large buffers where they are allowed.
/// Its datagrams are never fragmented, and may be as long as the interface allows, whatever was heard of the path.
pub(crate) fn prepared(socket: BorrowedFd<'_>, v6: bool) -> io::Result<OwnedFd> {
    let own = socket.try_clone_to_owned()?;
    set(&own, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
    // Linux takes IPv4's options on a socket of IPv6, too, where they do nothing.
    if v6 {
        set(&own, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        set(&own, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    } else {
        set(&own, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        set(&own, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    }
    for (forced, asked) in [(libc::SO_RCVBUFFORCE, libc::SO_RCVBUF), (libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)]
    {
        // More than the system's limit needs a right that users do not have.
        set(&own, libc::SOL_SOCKET, forced, 4 << 20)
            .or_else(|_| set(&own, libc::SOL_SOCKET, asked, 4 << 20))?;
    }
    Ok(own)
}

fn set(fd: &OwnedFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: the value is an int of the stated length.
    let result = unsafe {
        libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), mem::size_of::<i32>() as u32)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Datagrams that a socket had no room for (`SK_MEMINFO_DROPS` of SO_MEMINFO).
pub(crate) fn receive_drops(fd: &OwnedFd) -> u32 {
    let mut words = [0u32; 9];
    let mut length = mem::size_of_val(&words) as u32;
    // SAFETY: the kernel writes at most `length` bytes into `words`.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            words.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result < 0 { 0 } else { words[8] }
}

/// The clock of the kernel's stamps.
pub(crate) fn now_ns() -> i64 {
    clock(libc::CLOCK_REALTIME)
}

/// A clock that nobody sets.
pub(crate) fn steady_ns() -> i64 {
    clock(libc::CLOCK_MONOTONIC)
}

#[expect(clippy::disallowed_methods, reason = "the probe measures; it is in no world")]
fn clock(id: libc::clockid_t) -> i64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to.
    unsafe { libc::clock_gettime(id, &mut now) };
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Sleeps until a time of the steady clock, to some microseconds.
pub(crate) fn sleep_until_ns(at_ns: i64) {
    let until = libc::timespec { tv_sec: at_ns / 1_000_000_000, tv_nsec: at_ns % 1_000_000_000 };
    // SAFETY: `until` is a valid timespec; an interrupted sleep is repeated by the caller's loop.
    unsafe {
        libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &until, std::ptr::null_mut())
    };
}

/// Lets this thread's sleeps end on time.
pub(crate) fn sleep_exactly() {
    // SAFETY: the call has no pointer.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1 as libc::c_ulong) };
}
