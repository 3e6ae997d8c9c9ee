//! A sender without congestion control: datagrams of one size at a fixed rate, numbered and stamped.

use std::net::SocketAddrV4;
use std::os::fd::OwnedFd;

use fullpipe_units::Duration;

use super::Probe;
use crate::EmuError;
use crate::carry::Started;
use crate::path::{FAR, FIRST_PORT};
use crate::sys::{self, datagram::HEAD_BYTES};

/// IPv4 and UDP headers, bytes.
pub(super) const HEADER_BYTES: u32 = 28;
/// Time between the start of the clock and the first datagram, so that a late thread does not begin with a burst.
const LEAD: Duration = Duration::from_millis(20);

/// A sender that cannot keep the rate stops this long after the planned end, so that its datagrams have time to arrive.
const GRACE: Duration = Duration::from_millis(100);

/// The datagrams that were sent.
#[derive(Debug, Default)]
pub(super) struct Sent {
    /// When each datagram left, by its number: the clock right before the system call.
    pub(super) at_ns: Vec<u64>,
    /// Datagrams that the kernel refused.
    pub(super) refused: u64,
}

/// When datagram `number` is to leave, after the first one.
pub(super) fn due_ns(number: u64, bytes: u32, bps: u64) -> u64 {
    (u128::from(number) * u128::from(bytes) * 8_000_000_000 / u128::from(bps)) as u64
}

/// How many datagrams a probe sends.
pub(super) fn count(probe: &Probe) -> u64 {
    let bits = u128::from(probe.offered_bps) * u128::from(probe.sending_ns.as_nanos()) / 1_000_000_000;
    (bits / (u128::from(probe.datagram_bytes) * 8)) as u64
}

/// Writes number and stamp into the head of a datagram.
pub(super) fn write_head(datagram: &mut [u8], number: u64, at_ns: u64) {
    datagram[..8].copy_from_slice(&number.to_be_bytes());
    datagram[8..HEAD_BYTES].copy_from_slice(&at_ns.to_be_bytes());
}

/// Number and stamp out of the head of a datagram.
pub(super) fn read_head(head: &[u8; HEAD_BYTES]) -> (u64, u64) {
    let word = |at: usize| u64::from_be_bytes(head[at..at + 8].try_into().expect("eight bytes"));
    (word(0), word(8))
}

/// Sends everything, with one call per datagram so that each has its own stamp. A late sender sends all that is due at
/// once. Call it in the sending host's namespace with a connected socket.
pub(super) fn send(socket: &OwnedFd, probe: &Probe, started: Started<'_>) -> Result<Sent, EmuError> {
    let clock = started.clock;
    let count = count(probe);
    let mut sent = Sent { at_ns: Vec::with_capacity(count as usize), refused: 0 };
    let mut datagram = vec![0; (probe.datagram_bytes - HEADER_BYTES) as usize];
    let begin = clock.now() + LEAD;
    for number in 0..count {
        let due = begin + Duration::from_nanos(due_ns(number, probe.datagram_bytes, probe.offered_bps));
        let mut now = clock.now();
        if now.saturating_since(begin) > probe.sending_ns + GRACE {
            break;
        }
        if now < due {
            if started.is_over() {
                break;
            }
            clock.sleep_until(due);
            now = clock.now();
        }
        write_head(&mut datagram, number, now.as_nanos());
        sent.at_ns.push(now.as_nanos());
        let took =
            sys::send(socket, &datagram).map_err(|error| EmuError::system("send a datagram", error))?;
        sent.refused += u64::from(took.is_none());
    }
    Ok(sent)
}

/// A socket that sends to the receiver's.
pub(super) fn socket() -> Result<OwnedFd, EmuError> {
    let address = SocketAddrV4::new(FAR, FIRST_PORT);
    let open = || {
        let socket = sys::socket(libc::SOCK_DGRAM)?;
        sys::connect(&socket, address)?;
        Ok(socket)
    };
    open().map_err(|error| EmuError::system(format!("open a socket to {address}"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_are_due_at_exact_rate() {
        // 1500 bytes at 100 Mbit/s: 120 us. At 3 Gbit/s: 4 us. At 7 bit/s nothing is lost by rounding.
        assert_eq!(due_ns(1, 1500, 100_000_000), 120_000);
        assert_eq!(due_ns(250_000, 1500, 3_000_000_000), 1_000_000_000);
        assert_eq!(due_ns(7, 100, 7), 800_000_000_000);
    }

    #[test]
    fn number_and_stamp_come_back() {
        let mut head = [0; HEAD_BYTES];
        write_head(&mut head, 7, 1 << 40);
        assert_eq!(read_head(&head), (7, 1 << 40));
    }
}
