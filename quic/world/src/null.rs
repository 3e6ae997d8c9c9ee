//! What null keys put in place of a packet's authentication tag.
//!
//! A packet carries only the last bits of its number (RFC 9000 section 17.1), and the receiver completes it by the largest number
//! that it has seen (appendix A.3). A packet that comes later than half the range of those bits is completed wrongly. Real keys do
//! not open it, because the number is part of the nonce (RFC 9001 section 5.3), and the receiver drops it. Keys that check nothing
//! would take it for another packet, and acknowledge a number that was never sent. So null keys check what a real nonce depends
//! on.

use bytes::BytesMut;

/// What the nonce and the key of a packet depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Nonce {
    /// The packet's number, whole.
    pub(crate) number: u64,
    /// How often the keys had been updated (RFC 9001 section 6).
    pub(crate) update: u64,
}

impl Nonce {
    fn tag(self) -> [u8; 16] {
        let mut tag = [0; 16];
        tag[..8].copy_from_slice(&self.number.to_le_bytes());
        tag[8..].copy_from_slice(&self.update.to_le_bytes());
        tag
    }

    /// Writes the tag of `length` bytes at the end of a packet.
    pub(crate) fn seal(self, packet: &mut [u8], length: usize) {
        let begin = packet.len().saturating_sub(length);
        for (to, from) in packet[begin..].iter_mut().zip(self.tag()) {
            *to = from;
        }
    }

    /// Takes the tag of `length` bytes off the end of a payload; returns whether it is the one of this packet.
    pub(crate) fn open(self, payload: &mut BytesMut, length: usize) -> bool {
        let Some(begin) = payload.len().checked_sub(length) else { return false };
        let same = payload[begin..].iter().zip(self.tag()).all(|(found, expected)| *found == expected);
        payload.truncate(begin);
        same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packet_opens_only_as_sealed() {
        let sealed = Nonce { number: 0x1_0203, update: 5 };
        let mut packet = [7; 40];
        sealed.seal(&mut packet, 16);
        let opens = |nonce: Nonce| {
            let mut payload = BytesMut::from(&packet[10..]);
            let opened = nonce.open(&mut payload, 16);
            assert!(!opened || payload[..] == [7; 14]);
            opened
        };
        assert!(opens(sealed));
        // What a receiver makes of the last eight bits when it expects 300 more.
        assert!(!opens(Nonce { number: 0x1_0303, ..sealed }));
        assert!(!opens(Nonce { update: 6, ..sealed }));
        assert!(!sealed.open(&mut BytesMut::from(&packet[..15]), 16));
    }
}
