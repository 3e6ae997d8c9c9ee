//! The receiving host: one listening port per flow. Data that arrives is counted and discarded without being copied. Each
//! request for more is a byte on the same connection.

use std::collections::BTreeSet;
use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use fullpipe_emu::clock::Clock;
use fullpipe_emu::{FAR, Started};
use fullpipe_scenario::spec::{EcnUse, Spec, Workload};
use fullpipe_units::{Bytes, Duration, Rate, Time};

use super::sender::set_algorithm;
use super::{Progress, failed, port};
use crate::KernelError;
use crate::sys::{self, Epoll};

/// The maximum number of bytes taken off a socket at once.
const DISCARD_BYTES: usize = 1 << 20;
/// What gathers on the socket of a flow without end before the receiver is woken, as time at the path's rate. Waking it for
/// each packet took half of the processor time of a run at 100 Mbit/s.
const GATHER: Duration = Duration::from_millis(1);
/// And at most one part in this many of the receive buffer that a connection begins with.
const GATHER_SHARE: u64 = 4;
/// A connection has received this many times that before anything gathers. TCP sizes its window by what is read within a round
/// trip, and does not lengthen its estimate of that while something waits to be read (Linux 6.16 and later: `tcp_rcv_rtt_update`). So a
/// window that is still growing falls behind, and limits slow start.
const GATHER_AFTER: u64 = 1024;
/// How often it checks whether the run is over.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// The sockets of the receiving host.
pub(crate) struct Receiver {
    epoll: Epoll,
    flows: Vec<Socket>,
    /// What gathers before the receiver is woken, for flows without end.
    gather: Bytes,
    /// Which flow requests the next transfer, and when.
    requests: BTreeSet<(Time, usize)>,
}

/// A flow's socket.
enum Socket {
    Listening(OwnedFd),
    Connected(OwnedFd),
    /// Both ends have closed the connection.
    Closed,
}

impl Receiver {
    /// Listens for every flow, in the calling thread's namespace.
    pub(crate) fn listen(spec: &Spec) -> Result<Receiver, KernelError> {
        let epoll = Epoll::new().map_err(failed("create an epoll set"))?;
        let mut flows = Vec::with_capacity(spec.flows.len());
        for (number, flow) in spec.flows.iter().enumerate() {
            let address = SocketAddrV4::new(FAR, port(number));
            let socket = sys::socket(libc::SOCK_STREAM).map_err(failed("open a socket"))?;
            if matches!(flow.ecn(&spec.hosts), EcnUse::Exact(_)) {
                // The receiver's controller decides how marks are echoed (Linux `tcp_ca_needs_ecn`, `dctcp_ece_ack_update`).
                let name = flow.controller.linux_name().unwrap_or_default();
                set_algorithm(&socket, name).map_err(|error| crate::refusal::no_algorithm(name, error))?;
            }
            sys::bind(&socket, address).map_err(failed(format!("bind to {address}")))?;
            sys::listen(&socket).map_err(failed(format!("listen on {address}")))?;
            epoll.add(&socket, libc::EPOLLIN, number as u64).map_err(failed("watch a socket"))?;
            flows.push(Socket::Listening(socket));
        }
        Ok(Receiver { epoll, flows, gather: gather(spec), requests: BTreeSet::new() })
    }

    /// Receives until the sending host is done.
    pub(crate) fn run(
        mut self,
        spec: &Spec,
        started: Started<'_>,
        progress: &[Progress],
    ) -> Result<(), KernelError> {
        let clock = started.clock;
        let mut buffer = vec![0; DISCARD_BYTES];
        let mut ready = Vec::new();
        while !started.is_over() {
            let next = self.requests.first().map_or(Time::NEVER, |(due, _)| *due);
            let timeout = next.saturating_since(clock.now()).min(LOOK_AROUND);
            self.epoll.wait(&mut ready, timeout).map_err(failed("wait for data"))?;
            for (number, _) in &ready {
                let number = *number as usize;
                self.serve(spec, number, &mut buffer, clock, &progress[number])?;
            }
            self.ask(clock.now(), progress);
        }
        Ok(())
    }

    fn serve(
        &mut self,
        spec: &Spec,
        number: usize,
        buffer: &mut [u8],
        clock: Clock,
        progress: &Progress,
    ) -> Result<(), KernelError> {
        match &self.flows[number] {
            Socket::Listening(listener) => {
                if let Some(socket) = sys::accept(listener).map_err(failed("accept a connection"))? {
                    self.epoll
                        .add(&socket, libc::EPOLLIN, number as u64)
                        .map_err(failed("watch a connection"))?;
                    // Replacing it closes the listening socket.
                    self.flows[number] = Socket::Connected(socket);
                }
            }
            Socket::Connected(socket) => match sys::discard(socket, buffer) {
                Ok(None) => {}
                // A connection leaves metrics only if both ends close it.
                Ok(Some(0)) if spec.hosts.metrics.is_some() => {
                    self.epoll.remove(socket).map_err(failed("stop watching a connection"))?;
                    self.flows[number] = Socket::Closed;
                }
                Ok(Some(0)) | Err(_) => {
                    // End of the stream, or a reset. The socket stays open so that the sender's can still be queried.
                    self.epoll.remove(socket).map_err(failed("stop watching a connection"))?;
                }
                Ok(Some(bytes)) => {
                    let total = progress.add(bytes as u64);
                    // Only endless flows gather bytes: others must see the last byte when it comes.
                    if matches!(spec.flows[number].workload, Workload::Bulk)
                        && gathers_from(self.gather, total, bytes as u64)
                    {
                        wake_at(socket, self.gather).map_err(failed("set when a connection wakes us"))?;
                    }
                    let now = clock.now();
                    let due = progress.on_delivered(total, now);
                    if due < Time::NEVER {
                        self.requests.insert((due, number));
                    }
                    if let Some(all) = spec.flows[number].workload.total_bytes().map(Bytes::as_u64)
                        && total >= all
                        && total - (bytes as u64) < all
                    {
                        progress.complete(now);
                    }
                }
            },
            Socket::Closed => {}
        }
        Ok(())
    }
    /// Sends all requests that are due by `now`.
    fn ask(&mut self, now: Time, progress: &[Progress]) {
        while let Some(&(due, number)) = self.requests.first()
            && due <= now
        {
            self.requests.pop_first();
            if let Socket::Connected(socket) = &self.flows[number] {
                progress[number].ask(now);
                // Fails if the connection is gone, which the sender notices.
                let _ = sys::send(socket, &[0]);
            }
        }
    }
}

/// What may gather on the path of `spec`. Nothing where the way back has a rate: the end of a burst is acknowledged when it is read (Linux
/// 6.7 and later: `__tcp_cleanup_rbuf`), so a reader that comes late saves ACKs, and there they are what limits the flow.
fn gather(spec: &Spec) -> Bytes {
    if fullpipe_path::highest_rate(&spec.reverse) < Rate::MAX {
        return Bytes::ZERO;
    }
    let most = Bytes::new(spec.hosts.tcp_rmem_bytes[1].as_u64() / GATHER_SHARE);
    fullpipe_path::highest_rate(&spec.forward).bytes_in(GATHER).min(most)
}

/// Whether a connection's data gathers from now on: when `total` bytes have been received, the last `bytes` of them just now.
fn gathers_from(gather: Bytes, total: u64, bytes: u64) -> bool {
    let from = GATHER_AFTER * gather.as_u64();
    total >= from && total - bytes < from
}

/// Has a socket wake its reader when this much waits (SO_RCVLOWAT). TCP acknowledges every second segment at once all the same:
/// below that mark it does not look at how much of the window is free (Linux `__tcp_ack_snd_check`).
fn wake_at(socket: &OwnedFd, bytes: Bytes) -> std::io::Result<()> {
    let bytes = i32::try_from(bytes.as_u64()).unwrap_or(i32::MAX).max(1);
    sys::set_option(socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &bytes.to_ne_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::{Format, resolve};

    fn spec(path: &str) -> Spec {
        let text = format!("path = {{ {path}, rtt = \"40 ms\" }}\nflows = [{{ controller = \"cubic\" }}]");
        resolve(&text, Format::Toml, None).unwrap()
    }

    #[test]
    fn receiver_gathers_millisecond_within_window() {
        let mut spec = spec("rate = \"100 Mbit/s\"");
        assert_eq!(gather(&spec), Bytes::new(12_500));
        spec.hosts.tcp_rmem_bytes[1] = Bytes::new(20_000);
        assert_eq!(gather(&spec), Bytes::new(5_000));
        // Half a packet: every packet wakes the receiver.
        assert_eq!(gather(&self::spec("rate = \"6 Mbit/s\"")), Bytes::new(750));
    }

    #[test]
    fn limited_ack_rate_prevents_gathering() {
        let spec = spec("rate = \"30 Mbit/s\", reverse = { rate = \"600 kbit/s\" }");
        assert_eq!(gather(&spec), Bytes::ZERO);
        assert!(!gathers_from(gather(&spec), 10_000_000, 1_000));
    }

    #[test]
    fn growing_window_prevents_gathering() {
        let gather = Bytes::new(1_000);
        assert!(!gathers_from(gather, 1_023_999, 1_023_999));
        assert!(gathers_from(gather, 1_024_000, 1));
        assert!(gathers_from(gather, 1_030_000, 10_000));
        // Once.
        assert!(!gathers_from(gather, 1_030_001, 1));
    }

    #[test]
    fn socket_wakes_reader_at_mark() {
        let socket = sys::socket(libc::SOCK_STREAM).unwrap();
        let mut mark = [0; 4];
        for (asked, set) in [(5_000, 5_000), (0, 1)] {
            wake_at(&socket, Bytes::new(asked)).unwrap();
            sys::get_option(&socket, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &mut mark).unwrap();
            assert_eq!(i32::from_ne_bytes(mark), set);
        }
    }
}
