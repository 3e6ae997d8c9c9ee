//! A receiver that only records when the kernel saw each datagram.
//!
//! The time is the kernel's own stamp (SO_TIMESTAMPNS), taken where the packet enters the receiving host's network stack:
//! how late this thread wakes does not matter.

use std::net::SocketAddrV4;
use std::os::fd::{AsRawFd, OwnedFd};

use fullpipe_units::Duration;

use super::sender::read_head;
use crate::EmuError;
use crate::carry::Started;
use crate::clock::StampClock;
use crate::path::{FAR, FIRST_PORT};
use crate::sys::{self, datagram};

/// The receive buffer, large enough that a late thread loses nothing.
const BUFFER_BYTES: i32 = 64 << 20;
/// How often it checks whether the run is over.
const LOOK_AROUND: Duration = Duration::from_millis(20);

/// A datagram that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    /// Its number.
    pub(super) number: u64,
    /// The sender's stamp.
    pub(super) sent_ns: u64,
    /// When it reached the receiving host.
    pub(super) at_ns: u64,
    /// Length with IP and UDP headers.
    pub(super) bytes: u32,
}

/// The datagrams that arrived.
#[derive(Debug, Default)]
pub(super) struct Received {
    /// In order of arrival.
    pub(super) arrivals: Vec<Arrival>,
    /// Datagrams without a stamp.
    pub(super) unstamped: u64,
    /// Datagrams that the socket had no room for.
    pub(super) dropped: u64,
    /// The error of the stamps: the time to read two clocks, and how far they moved apart.
    pub(super) stamp_error_ns: u64,
}

/// A socket for the sender's datagrams. Call it in the receiving host's namespace.
pub(super) fn socket() -> Result<OwnedFd, EmuError> {
    let address = SocketAddrV4::new(FAR, FIRST_PORT);
    let open = || {
        let socket = sys::socket(libc::SOCK_DGRAM)?;
        datagram::stamp_arrivals(&socket)?;
        datagram::want_receive_buffer(&socket, BUFFER_BYTES)?;
        sys::bind(&socket, address)?;
        Ok(socket)
    };
    open().map_err(|error| EmuError::system(format!("receive at {address}"), error))
}

/// Receives until the sender is done and nothing is left.
pub(super) fn receive(
    socket: &OwnedFd,
    started: Started<'_>,
    stamps: StampClock,
) -> Result<Received, EmuError> {
    let failed = |error| EmuError::system("receive datagrams", error);
    let mut received = Received::default();
    let (mut inbox, mut datagrams) = (datagram::Inbox::new(), Vec::new());
    loop {
        // Read before the socket is emptied, so that datagrams that arrived before that are received.
        let last = started.is_over();
        sys::poll([socket.as_raw_fd()], libc::POLLIN, Some(if last { Duration::ZERO } else { LOOK_AROUND }))
            .map_err(failed)?;
        while inbox.receive(socket, &mut datagrams).map_err(failed)? > 0 {
            for one in datagrams.drain(..) {
                let (number, sent_ns) = read_head(&one.head);
                let bytes = one.bytes as u32 + super::sender::HEADER_BYTES;
                match one.stamped_ns {
                    Some(at) => received.arrivals.push(Arrival {
                        number,
                        sent_ns,
                        at_ns: stamps.since_start(at, started.clock).as_nanos(),
                        bytes,
                    }),
                    None => received.unstamped += 1,
                }
            }
        }
        if last {
            break;
        }
    }
    received.dropped = datagram::receive_drops(socket).map_err(failed)?.into();
    received.stamp_error_ns = stamps.error_ns();
    Ok(received)
}
