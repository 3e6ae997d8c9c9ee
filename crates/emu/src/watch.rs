//! Packets as they pass the near host's device, copied for whoever watches.
//!
//! The ferry must never wait for a disk: it hands copies over in batches, and drops a batch, which is counted, while
//! [`MOST_WAITING`] others wait. Times are the machine's, as those of the hosts: from the beginning of the run.

use std::io::IoSlice;

use fullpipe_units::Time;

use crate::batches::{Giving, Taking, batches};
use crate::frame::{Header, Unit, VNET_BYTES};

/// A batch is handed over when it is this long.
const BATCH_BYTES: usize = 128 << 10;
/// Batches that may wait: 32 MB.
const MOST_WAITING: usize = 256;
/// Before each packet: time, flags, length.
const HEAD_BYTES: usize = 13;

const INBOUND: u8 = 1;
const NEEDS_CHECKSUM: u8 = 2;

/// Lets the ferry tell a [`Watched`] of packets.
#[derive(Clone, Debug)]
pub struct Watcher {
    batches: Giving<u8>,
}

/// The packets that a [`Watcher`] tells of.
#[derive(Debug)]
pub struct Watched {
    batches: Taking<u8>,
}

/// A packet at the near host's device.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen<'a> {
    /// When.
    pub at: Time,
    /// Whether it goes to the near host.
    pub inbound: bool,
    /// The whole IP packet, with the checksums that it would have on a wire.
    pub ip: &'a mut [u8],
}

/// A watcher, and what it tells.
pub fn watch() -> (Watcher, Watched) {
    let (giving, taking) = batches(MOST_WAITING);
    (Watcher { batches: giving }, Watched { batches: taking })
}

impl Watcher {
    /// Ends what [`Watched::each`] reads.
    pub(crate) fn end(&self) {
        self.batches.end();
    }
}

impl Watched {
    /// Calls `take` for each packet in order, until the path is over. Returns how many packets were missed.
    pub fn each(self, mut take: impl FnMut(Seen<'_>)) -> u64 {
        for mut batch in self.batches.each() {
            let mut rest = &mut batch[..];
            while let Some((head, behind)) = rest.split_first_chunk_mut::<HEAD_BYTES>() {
                let [a, b, c, d, e, f, g, h, flags, i, j, k, l] = *head;
                let at = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                let length = u32::from_le_bytes([i, j, k, l]);
                let (ip, after) = behind.split_at_mut(length as usize);
                if flags & NEEDS_CHECKSUM != 0 {
                    finish_checksum(ip);
                }
                take(Seen { at: Time::from_nanos(at), inbound: flags & INBOUND != 0, ip });
                rest = after;
            }
        }
        self.batches.missed()
    }
}

/// Adds to the checksum of a TCP segment, which holds the sum of the pseudo header, the rest.
fn finish_checksum(ip: &mut [u8]) {
    let header = usize::from(ip[0] & 0x0f) * 4;
    let tcp = &mut ip[header..];
    let pairs = tcp.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u64 = pairs.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    tcp[16..18].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// The ferry's end of a [`Watcher`].
#[derive(Debug)]
pub(crate) struct Tap {
    watcher: Watcher,
    batch: Vec<u8>,
    packets: u64,
}

impl Tap {
    pub(crate) fn new(watcher: &Watcher) -> Tap {
        Tap { watcher: watcher.clone(), batch: Vec::with_capacity(BATCH_BYTES), packets: 0 }
    }

    /// Copies a packet.
    pub(crate) fn see(&mut self, at: Time, inbound: bool, unit: &Unit) {
        let flags = if inbound { INBOUND } else { 0 } | if unit.is_opaque() { 0 } else { NEEDS_CHECKSUM };
        self.batch.extend(at.as_nanos().to_le_bytes());
        self.batch.push(flags);
        self.batch.extend(unit.ip_bytes().to_le_bytes());
        let before = self.batch.len();
        if unit.is_opaque() {
            unit.write_whole(|pieces: &[IoSlice<'_>]| {
                // The first piece begins with the virtio header.
                let pieces = pieces.iter().flat_map(|piece| piece.iter()).skip(VNET_BYTES);
                self.batch.extend(pieces);
            });
        } else {
            let payload = unit.payload();
            self.batch.extend(&Header::merged(unit, unit, payload.len()).bytes()[VNET_BYTES..]);
            self.batch.extend(payload);
        }
        debug_assert_eq!(self.batch.len() - before, unit.ip_bytes() as usize);
        self.packets += 1;
        if self.batch.len() >= BATCH_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let packets = std::mem::take(&mut self.packets);
        self.watcher.batches.hand_over(&mut self.batch, packets, BATCH_BYTES);
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        self.hand_over();
        self.watcher.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::testing::Sample;
    use fullpipe_path::Ecn;

    #[test]
    fn frame_is_observed_as_wire_packets() {
        let (watcher, watched) = watch();
        let mut tap = Tap::new(&watcher);
        for unit in Sample::data(1000, 3 * 1448 - 1).units() {
            tap.see(Time::from_nanos(7), false, &unit.with_ecn(Ecn::Ce));
        }
        drop(tap);
        let mut seen = Vec::new();
        let missed = watched.each(|one| {
            assert_eq!((one.at, one.inbound), (Time::from_nanos(7), false));
            seen.push(one.ip.to_vec());
        });
        assert_eq!(missed, 0);
        assert_eq!(seen.iter().map(Vec::len).collect::<Vec<_>>(), [1500, 1500, 1499]);
        for (place, ip) in seen.iter().enumerate() {
            assert_eq!(ip[1] & 3, 3);
            assert_eq!(ip[24..28], (1000 + 1448 * place as u32).to_be_bytes());
            // Of the whole segment, with its own checksum in it, nothing is left.
            let mut whole = vec![0; 12];
            whole[..8].copy_from_slice(&ip[12..20]);
            whole[9] = 6;
            whole[10..].copy_from_slice(&(ip.len() as u16 - 20).to_be_bytes());
            whole.extend(&ip[20..]);
            whole.resize(whole.len().next_multiple_of(2), 0);
            let sum: u32 =
                whole.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
            assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff, "segment {place}");
        }
    }

    #[test]
    fn unconsumed_data_is_counted_without_blocking() {
        let (watcher, watched) = watch();
        let mut tap = Tap::new(&watcher);
        let frames = (MOST_WAITING + 2) * BATCH_BYTES / 1500 + 100;
        for unit in std::iter::repeat_n(Sample::data(1, 1448), frames).flat_map(|one| one.units()) {
            tap.see(Time::ZERO, true, &unit);
        }
        // The end needs a place, too.
        let taken = std::thread::spawn(move || {
            let mut taken = 0;
            let missed = watched.each(|_| taken += 1);
            (taken, missed)
        });
        drop(tap);
        let (taken, missed) = taken.join().unwrap();
        assert!(missed > 0 && taken > 0, "{taken} taken, {missed} missed");
        assert_eq!(taken + missed, frames as u64);
    }
}
