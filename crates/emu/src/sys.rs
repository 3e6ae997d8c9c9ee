//! Thin wrappers around the system calls that the standard library lacks. Nearly all `unsafe` of the
//! crate is here. Those that hosts at the ends of a path need as well are public.

use std::ffi::CStr;
use std::io;
use std::mem;
use std::net::{Ipv6Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use fullpipe_units::Duration;

pub(crate) mod datagram;
pub(crate) mod process;

/// Turns the C convention (-1 and errno) into a `Result`.
///
/// # Errors
/// When `result` is negative: the calling thread's `errno`.
pub fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Nanoseconds of CLOCK_MONOTONIC.
#[expect(clippy::disallowed_methods, reason = "what `clock.rs` reads")]
pub(crate) fn monotonic_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec to write to, and the call cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Resolution of CLOCK_MONOTONIC in nanoseconds.
pub(crate) fn monotonic_resolution_ns() -> u64 {
    resolution_ns(libc::CLOCK_MONOTONIC)
}

/// The kernel's `CONFIG_HZ`: CLOCK_MONOTONIC_COARSE moves once a tick of its timer.
pub fn ticks_per_second() -> u32 {
    const NANOS_PER_SEC: u64 = 1_000_000_000;
    let tick_ns = resolution_ns(libc::CLOCK_MONOTONIC_COARSE).max(1);
    ((NANOS_PER_SEC + tick_ns / 2) / tick_ns) as u32
}

fn resolution_ns(id: libc::clockid_t) -> u64 {
    let mut resolution = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `resolution` is a valid timespec to write to, and the call cannot fail for a clock that exists.
    unsafe { libc::clock_getres(id, &mut resolution) };
    resolution.tv_sec as u64 * 1_000_000_000 + resolution.tv_nsec as u64
}

/// Sleeps until CLOCK_MONOTONIC reads `at_ns`.
pub(crate) fn sleep_until_ns(at_ns: u64) {
    let at = timespec(at_ns);
    loop {
        // SAFETY: `at` is a valid timespec; no remainder is asked for with TIMER_ABSTIME.
        let error = unsafe {
            libc::clock_nanosleep(libc::CLOCK_MONOTONIC, libc::TIMER_ABSTIME, &at, std::ptr::null_mut())
        };
        if error != libc::EINTR {
            return;
        }
    }
}

/// Nanoseconds as the kernel takes them.
pub fn timespec(ns: u64) -> libc::timespec {
    let ns = ns.min(i64::MAX as u64);
    libc::timespec { tv_sec: (ns / 1_000_000_000) as _, tv_nsec: (ns % 1_000_000_000) as _ }
}

/// Waits until one of `fds` has an event of `events` or `timeout` has passed (`None`: for ever); returns the events of
/// each. A signal ends a wait with a timeout early, with no events: who has a timeout has a clock of its own. It never ends a
/// wait without one.
///
/// # Errors
/// When the kernel refuses it: a descriptor is not open.
pub fn poll<const N: usize>(fds: [RawFd; N], events: i16, timeout: Option<Duration>) -> io::Result<[i16; N]> {
    let mut polled = fds.map(|fd| libc::pollfd { fd, events, revents: 0 });
    wait_for_events(&mut polled, timeout)?;
    Ok(polled.map(|entry| entry.revents))
}

/// The same for any number of descriptors; negative ones are ignored.
pub(crate) fn poll_all(fds: &[RawFd], events: i16, timeout: Option<Duration>) -> io::Result<Vec<i16>> {
    let mut polled: Vec<libc::pollfd> =
        fds.iter().map(|fd| libc::pollfd { fd: *fd, events, revents: 0 }).collect();
    wait_for_events(&mut polled, timeout)?;
    Ok(polled.iter().map(|entry| entry.revents).collect())
}

fn wait_for_events(polled: &mut [libc::pollfd], timeout: Option<Duration>) -> io::Result<()> {
    let timeout = timeout.map(|timeout| timespec(timeout.as_nanos()));
    let until = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    let count = polled.len() as libc::nfds_t;
    loop {
        // SAFETY: `polled` holds `count` valid entries; the timeout is null or points to a live timespec; no signal mask.
        match check(unsafe { libc::ppoll(polled.as_mut_ptr(), count, until, std::ptr::null()) }) {
            Ok(_) => return Ok(()),
            // The kernel has written no events.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                if timeout.is_some() {
                    return Ok(());
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// Reads into `buffer`.
pub(crate) fn read(fd: &OwnedFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length describe `buffer`, which is writable for the call.
    let result = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// Writes the slices as one packet.
pub(crate) fn writev(fd: &OwnedFd, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: IoSlice is ABI-compatible with iovec (guaranteed on Unix), and every slice lives through the call.
    let result = unsafe { libc::writev(fd.as_raw_fd(), slices.as_ptr().cast(), slices.len() as libc::c_int) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result as usize) }
}

/// Opens a file for reading and writing without blocking.
pub(crate) fn open_nonblocking(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: `path` is NUL-terminated. On success the descriptor is new and owned by nobody else.
    unsafe {
        let fd = check(libc::open(path.as_ptr(), libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Issues an ioctl whose argument is `value`, read and written in place.
///
/// # Safety
/// `T` must be the type that the kernel expects for `request`.
pub(crate) unsafe fn ioctl<T>(fd: &OwnedFd, request: libc::Ioctl, value: &mut T) -> io::Result<()> {
    // SAFETY: the caller vouches for the type; `value` is valid for reads and writes.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request, std::ptr::from_mut(value)) }).map(drop)
}

/// Issues an ioctl whose argument is a number.
pub(crate) fn ioctl_number(fd: &OwnedFd, request: libc::Ioctl, value: libc::c_ulong) -> io::Result<()> {
    // SAFETY: a plain number is passed; the kernel dereferences nothing for the requests used with this function.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), request, value) }).map(drop)
}

/// A non-blocking IPv4 socket of the calling thread's network namespace.
///
/// # Errors
/// When the kernel refuses it.
pub fn socket(kind: libc::c_int) -> io::Result<OwnedFd> {
    // SAFETY: no pointers. On success the descriptor is new and owned by nobody else.
    unsafe {
        let fd = check(libc::socket(libc::AF_INET, kind | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Waits until no other process has locked this open file, and locks it until its descriptor is closed (flock(2)).
pub(crate) fn lock(file: &OwnedFd) -> io::Result<()> {
    loop {
        // SAFETY: no pointers.
        match check(unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX) }) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done.map(drop),
        }
    }
}

/// Number of a device of the calling thread's network namespace.
pub(crate) fn interface_index(name: &CStr) -> io::Result<u32> {
    // SAFETY: `name` is NUL-terminated.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Sets one numeric attribute of a device: an RTM_SETLINK message (rtnetlink(7)).
pub(crate) fn set_link_u32(index: u32, attribute: u16, value: u32) -> io::Result<()> {
    let mut body = vec![0; 4]; // ifinfomsg: any family, any type
    body.extend(index.to_ne_bytes());
    body.extend([0; 8]); // flags and their mask: no change
    push_attribute(&mut body, attribute, &value.to_ne_bytes());
    change_by_netlink(libc::RTM_SETLINK, 0, &body)
}

/// Gives a device an IPv6 address, without asking whether another host has it: an RTM_NEWADDR message.
pub(crate) fn add_ipv6_address(index: u32, address: Ipv6Addr, prefix: u8) -> io::Result<()> {
    let mut body = vec![libc::AF_INET6 as u8, prefix, libc::IFA_F_NODAD as u8, libc::RT_SCOPE_UNIVERSE]; // ifaddrmsg
    body.extend(index.to_ne_bytes());
    push_attribute(&mut body, libc::IFA_LOCAL, &address.octets());
    push_attribute(&mut body, libc::IFA_ADDRESS, &address.octets());
    change_by_netlink(libc::RTM_NEWADDR, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
}

/// Sends all IPv6 packets without another route through a device: an RTM_NEWROUTE message.
pub(crate) fn add_ipv6_default_route(index: u32) -> io::Result<()> {
    let kind = [libc::RT_TABLE_MAIN, libc::RTPROT_BOOT, libc::RT_SCOPE_UNIVERSE, libc::RTN_UNICAST];
    let mut body = vec![libc::AF_INET6 as u8, 0, 0, 0]; // rtmsg: to any destination, from any source
    body.extend(kind);
    body.extend([0; 4]);
    push_attribute(&mut body, libc::RTA_OIF, &index.to_ne_bytes());
    change_by_netlink(libc::RTM_NEWROUTE, libc::NLM_F_CREATE | libc::NLM_F_EXCL, &body)
}

/// Adds an attribute whose length is a multiple of 4, so that it needs no padding.
fn push_attribute(body: &mut Vec<u8>, attribute: u16, value: &[u8]) {
    body.extend((4 + value.len() as u16).to_ne_bytes());
    body.extend(attribute.to_ne_bytes());
    body.extend(value);
}

/// Sends one message of rtnetlink(7) and reads its acknowledgement.
fn change_by_netlink(kind: u16, more_flags: libc::c_int, body: &[u8]) -> io::Result<()> {
    const HEADER: u32 = 16;
    let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK | more_flags) as u16;
    let mut message = Vec::new();
    message.extend((HEADER + body.len() as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend([0; 8]); // sequence number and port
    message.extend(body);
    // SAFETY: no pointers. On success the descriptor is new and owned by nobody else.
    let socket = unsafe {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        OwnedFd::from_raw_fd(check(libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE))?)
    };
    writev(&socket, &[io::IoSlice::new(&message)])?;
    let mut reply = [0; 256];
    let length = read(&socket, &mut reply)?;
    // The acknowledgement is an NLMSG_ERROR: behind the header, zero or a negative errno.
    match reply[..length].get(16..20).map(|code| i32::from_ne_bytes([code[0], code[1], code[2], code[3]])) {
        Some(0) => Ok(()),
        Some(code) => Err(io::Error::from_raw_os_error(-code)),
        None => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// An IPv4 address in the kernel's form.
pub(crate) fn sockaddr(address: SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: address.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
        sin_zero: [0; 8],
    }
}

const SOCKADDR_BYTES: libc::socklen_t = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;

/// Binds a socket.
///
/// # Errors
/// When the kernel refuses it: the address is in use, or not this namespace's.
pub fn bind(fd: &OwnedFd, address: SocketAddrV4) -> io::Result<()> {
    let address = sockaddr(address);
    // SAFETY: the pointer and length describe `address`.
    check(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), SOCKADDR_BYTES) })
        .map(drop)
}

/// Begins to connect; does not wait.
///
/// # Errors
/// When the kernel refuses it: there is no route.
pub fn connect(fd: &OwnedFd, address: SocketAddrV4) -> io::Result<()> {
    let address = sockaddr(address);
    // SAFETY: the pointer and length describe `address`.
    let result =
        unsafe { libc::connect(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), SOCKADDR_BYTES) };
    match check(result) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(()),
    }
}

/// Sends without raising SIGPIPE; `None` when the socket buffer is full.
///
/// # Errors
/// When the connection has failed.
pub fn send(fd: &OwnedFd, data: &[u8]) -> io::Result<Option<usize>> {
    // SAFETY: the pointer and length describe `data`.
    let sent = unsafe { libc::send(fd.as_raw_fd(), data.as_ptr().cast(), data.len(), libc::MSG_NOSIGNAL) };
    would_block(sent)
}

/// A count, or `None` if the call would have had to wait.
///
/// # Errors
/// When `result` is negative for any other reason: the calling thread's `errno`.
pub fn would_block(result: isize) -> io::Result<Option<usize>> {
    if result >= 0 {
        return Ok(Some(result as usize));
    }
    let error = io::Error::last_os_error();
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
        _ => Err(error),
    }
}

/// Sets a socket option to the bytes of `value`.
///
/// # Errors
/// When the kernel does not know the option, or refuses the value.
pub fn set_option(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &[u8]) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe `value`.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, value.as_ptr().cast(), length) }).map(drop)
}

/// Reads a socket option into `buffer`; returns how many bytes the kernel wrote.
///
/// # Errors
/// When the kernel does not know the option.
pub fn get_option(
    fd: &OwnedFd,
    level: libc::c_int,
    name: libc::c_int,
    buffer: &mut [u8],
) -> io::Result<usize> {
    let mut length = buffer.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe `buffer`; the kernel writes at most that many bytes.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, buffer.as_mut_ptr().cast(), &mut length) })?;
    Ok(length as usize)
}

/// An eventfd: written once to wake whoever polls it.
///
/// # Errors
/// When the process has too many open files.
pub fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers. On success the descriptor is new and owned by nobody else.
    unsafe { Ok(OwnedFd::from_raw_fd(check(libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK))?)) }
}

/// Wakes the poller of an eventfd.
pub fn signal_event(fd: &OwnedFd) {
    let _ = writev(fd, &[io::IoSlice::new(&1u64.to_ne_bytes())]);
}

/// Real-time priorities in use: low, so that the kernel's own threads (at 50 and above) win.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Realtime {
    /// The path: before the end hosts.
    Ferry = 10,
    /// An end host. A thread that loses its processor while it holds the socket's lock keeps TCP from processing what
    /// arrives, and packets that should leave one by one then leave in a burst.
    Host = 5,
}

/// Gives the calling thread real-time priority and the finest timers. Children do not inherit the priority.
pub(crate) fn become_realtime(priority: Realtime) -> io::Result<()> {
    // SAFETY: no pointers. The finest timer slack matters where real-time priority is refused; it cannot fail.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    // SAFETY: all-zero is a valid sched_param.
    let mut parameter: libc::sched_param = unsafe { mem::zeroed() };
    parameter.sched_priority = priority as libc::c_int;
    // SAFETY: `parameter` is valid; 0 names the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &parameter) })
        .map(drop)
}

/// Gives the calling thread the best of the ordinary priorities.
pub(crate) fn become_less_nice() -> io::Result<()> {
    const BEST: libc::c_int = -20;
    // SAFETY: no pointers; 0 names the calling thread.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, BEST) }).map(drop)
}

/// Keeps touched memory in RAM. Best effort: without the right, swapping shows in the lateness record.
pub(crate) fn lock_memory() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE | libc::MCL_ONFAULT) }).map(drop)
}

/// Asks the kernel to kill this process when the thread that started it ends.
///
/// # Errors
/// When the kernel refuses it.
pub fn die_with_parent_thread() -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map(drop)
}

/// Leaves the namespaces named in `flags` (CLONE_NEW...) for new ones. Network namespaces change for the calling
/// thread only.
pub(crate) fn unshare(flags: libc::c_int) -> io::Result<()> {
    // SAFETY: no pointers; no flag in use here shares memory or descriptors differently.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// The effective user and group.
pub fn effective_ids() -> (u32, u32) {
    // SAFETY: these calls cannot fail.
    unsafe { (libc::geteuid(), libc::getegid()) }
}

/// `uname`: host name and kernel release.
pub fn host_and_kernel() -> (String, String) {
    // SAFETY: all-zero is a valid utsname, and uname fills it with NUL-terminated strings.
    let names = unsafe {
        let mut names: libc::utsname = mem::zeroed();
        libc::uname(&mut names);
        names
    };
    (c_text(&names.nodename), c_text(&names.release))
}

fn c_text(chars: &[libc::c_char]) -> String {
    let bytes: Vec<u8> = chars.iter().take_while(|c| **c != 0).map(|c| *c as u8).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether a descriptor is a pipe or a socket, whose end-of-file means that the other side is closed.
pub(crate) fn is_pipe_or_socket(fd: RawFd) -> bool {
    // SAFETY: all-zero is a valid stat, and `status` is valid to write to.
    unsafe {
        let mut status: libc::stat = mem::zeroed();
        libc::fstat(fd, &mut status) == 0
            && matches!(status.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

    use super::*;

    static INTERRUPTIONS: AtomicU32 = AtomicU32::new(0);

    extern "C" fn count(_: libc::c_int) {
        INTERRUPTIONS.fetch_add(1, Ordering::SeqCst);
    }

    #[test]
    fn signal_does_not_end_untimed_wait() {
        // SAFETY: all-zero is a valid sigaction; the handler touches an atomic only. SIGUSR2 has no other use in this process.
        unsafe {
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = count as *const () as libc::sighandler_t;
            assert_eq!(libc::sigaction(libc::SIGUSR2, &action, std::ptr::null_mut()), 0);
        }
        let event = event_fd().unwrap();
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let fd = event.as_raw_fd();
            let ended = &ended;
            let (report, reported) = std::sync::mpsc::channel();
            // SAFETY: it cannot fail.
            let this = || unsafe { libc::pthread_self() };
            let reported_by_list = report.clone();
            let of_array = scope.spawn(move || {
                report.send(this()).unwrap();
                let found = poll([fd], libc::POLLIN, None).unwrap();
                ended.store(true, Ordering::SeqCst);
                found
            });
            let of_list = scope.spawn(move || {
                reported_by_list.send(this()).unwrap();
                let found = poll_all(&[fd], libc::POLLIN, None).unwrap();
                ended.store(true, Ordering::SeqCst);
                found
            });
            let threads: [libc::pthread_t; 2] = [reported.recv().unwrap(), reported.recv().unwrap()];
            // Far more than can come before both wait. A signal that is pending already is not counted again.
            while INTERRUPTIONS.load(Ordering::SeqCst) < 10_000 && !ended.load(Ordering::SeqCst) {
                for thread in threads {
                    // SAFETY: the thread is not joined before the scope ends.
                    unsafe { libc::pthread_kill(thread, libc::SIGUSR2) };
                }
                std::thread::yield_now();
            }
            let early = ended.load(Ordering::SeqCst);
            signal_event(&event);
            assert_eq!(
                (of_array.join().unwrap(), of_list.join().unwrap()),
                ([libc::POLLIN], vec![libc::POLLIN])
            );
            assert!(!early, "a wait ended before its event");
        });
    }

    #[test]
    fn timed_wait_ends_without_events() {
        let event = event_fd().unwrap();
        assert_eq!(
            poll([event.as_raw_fd(), -1], libc::POLLIN, Some(Duration::from_nanos(1))).unwrap(),
            [0, 0]
        );
        assert_eq!(poll_all(&[event.as_raw_fd()], libc::POLLIN, Some(Duration::ZERO)).unwrap(), [0]);
        signal_event(&event);
        assert_eq!(poll([event.as_raw_fd(), -1], libc::POLLIN, None).unwrap(), [libc::POLLIN, 0]);
    }
}
