//! The receiving host: one listening port a flow; what arrives is counted and thrown away without being copied.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use fullpipe_scenario::spec::{Spec, Workload};
use fullpipe_units::Duration;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Progress, RECEIVER, failed, port};
use crate::EmuError;
use crate::clock::Clock;
use crate::sys::{self, Epoll};

/// At most this much is taken off a socket at once.
const DISCARD_BYTES: usize = 1 << 20;
/// How often it looks whether the run is over.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// The sockets of the receiving host.
pub(crate) struct Receiver {
    epoll: Epoll,
    flows: Vec<Socket>,
}

/// A flow's socket.
enum Socket {
    Listening(OwnedFd),
    Connected(OwnedFd),
}

impl Receiver {
    /// Listens for every flow, in the calling thread's namespace.
    pub(crate) fn listen(spec: &Spec) -> Result<Receiver, EmuError> {
        let epoll = Epoll::new().map_err(failed("create an epoll set"))?;
        let mut flows = Vec::with_capacity(spec.flows.len());
        for number in 0..spec.flows.len() {
            let address = SocketAddrV4::new(RECEIVER, port(number));
            let socket = sys::socket(libc::SOCK_STREAM).map_err(failed("open a socket"))?;
            sys::bind(&socket, address).map_err(failed(format!("bind to {address}")))?;
            sys::listen(&socket).map_err(failed(format!("listen on {address}")))?;
            epoll.add(&socket, libc::EPOLLIN, number as u64).map_err(failed("watch a socket"))?;
            flows.push(Socket::Listening(socket));
        }
        Ok(Receiver { epoll, flows })
    }

    /// Receives until `stop` is set.
    pub(crate) fn run(
        mut self,
        spec: &Spec,
        clock: Clock,
        progress: &[Progress],
        stop: &AtomicBool,
    ) -> Result<(), EmuError> {
        let mut buffer = vec![0; DISCARD_BYTES];
        let mut ready = Vec::new();
        while !stop.load(Ordering::Acquire) {
            self.epoll.wait(&mut ready, LOOK_AROUND).map_err(failed("wait for data"))?;
            for (number, _) in &ready {
                let number = *number as usize;
                self.serve(number, &mut buffer, clock, spec.flows[number].workload, &progress[number])?;
            }
        }
        Ok(())
    }

    fn serve(
        &mut self,
        number: usize,
        buffer: &mut [u8],
        clock: Clock,
        workload: Workload,
        progress: &Progress,
    ) -> Result<(), EmuError> {
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
                Ok(Some(0)) | Err(_) => {
                    // End of the stream, or a reset. The socket stays open so that the sender's can still be asked.
                    self.epoll.remove(socket).map_err(failed("stop watching a connection"))?;
                }
                Ok(Some(bytes)) => {
                    let total = progress.add(bytes as u64);
                    match workload {
                        Workload::Finite { size_bytes } => {
                            let size = size_bytes.as_u64();
                            if total >= size && total - (bytes as u64) < size {
                                progress.complete(clock.now());
                            }
                        }
                        Workload::Bursts { .. } => progress.time_bursts(total, clock.now()),
                        Workload::Bulk => {}
                    }
                }
            },
        }
        Ok(())
    }
}
