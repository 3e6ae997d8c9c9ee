//! One direction of the path, as flows hand datagrams to it.

use bytes::BytesMut;
use fullpipe_path::{Admission, Chain, Ecn, Packet};
use fullpipe_units::Time;

use crate::options::HEADER_BYTES;
use crate::tap::Tap;

/// One direction of the path, and what is handed to it.
pub(crate) struct Wire {
    pub(crate) chain: Chain<BytesMut>,
    /// Where datagrams are cut from: one allocation for dozens of them.
    arena: BytesMut,
    /// Whether the path takes bursts whole.
    bursts: bool,
    /// Whether it leads to the senders.
    to_sender: bool,
}

/// Bytes of an [arena](Wire::arena).
const ARENA: usize = 64 << 10;

impl Wire {
    pub(crate) fn new(chain: Chain<BytesMut>, bursts: bool, to_sender: bool) -> Wire {
        Wire { chain, arena: BytesMut::new(), bursts, to_sender }
    }

    fn datagram(&mut self, bytes: &[u8]) -> BytesMut {
        if self.arena.capacity() < bytes.len() {
            self.arena.reserve(ARENA.max(bytes.len()));
        }
        self.arena.extend_from_slice(bytes);
        self.arena.split()
    }

    /// Sends datagrams of `each` bytes, the last of which may be shorter. Returns how many.
    pub(crate) fn send(
        &mut self,
        now: Time,
        flow: u32,
        ecn: Ecn,
        all: &[u8],
        each: usize,
        tap: Option<&Tap>,
    ) -> u64 {
        let packet = |bytes: usize| Packet::new(bytes as u32 + HEADER_BYTES, flow).with_ecn(ecn);
        if self.bursts && all.len() > each {
            let parts: Vec<(Packet, BytesMut)> =
                all.chunks(each).map(|one| (packet(one.len()), self.datagram(one))).collect();
            let count = parts.len() as u64;
            if let Some(tap) = tap {
                // Which of a burst are dropped the path does not tell.
                all.chunks(each).for_each(|one| tap.offered(self.to_sender, one.len() as u64, None));
            }
            self.chain.push_burst(now, parts);
            return count;
        }
        let mut count = 0;
        for one in all.chunks(each) {
            let datagram = self.datagram(one);
            match tap {
                None => {
                    self.chain.push(now, packet(one.len()), datagram);
                }
                Some(tap) => self.push_tapped(now, packet(one.len()), datagram, tap),
            }
            count += 1;
        }
        count
    }

    /// Sends one packet, whose bytes on the wire its flow has counted.
    pub(crate) fn send_packet(&mut self, now: Time, packet: Packet, datagram: BytesMut) {
        self.chain.push(now, packet, datagram);
    }

    /// Offers a datagram to the path, and tells if it is dropped at once.
    fn push_tapped(&mut self, now: Time, packet: Packet, datagram: BytesMut, tap: &Tap) {
        let bytes = datagram.len() as u64;
        let dropped = |chain: &Chain<BytesMut>, index| chain.queue(index).totals(now).dropped.packets;
        let before: Vec<u64> = (0..self.chain.queues()).map(|index| dropped(&self.chain, index)).collect();
        let Admission::Dropped(cause) = self.chain.push(now, packet, datagram) else {
            return tap.offered(self.to_sender, bytes, None);
        };
        let by = (0..before.len()).find(|index| dropped(&self.chain, *index) > before[*index]);
        let view = by.map(|index| self.chain.queue(index));
        tap.offered(self.to_sender, bytes, Some((cause, view.as_ref().map(|queue| queue.name()))));
    }
}
