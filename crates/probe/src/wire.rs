//! A datagram's head: 48 bytes, little-endian, in front of zeros.

/// Bytes of a head. No datagram is shorter, so that a report is never longer than what it answers.
pub const BYTES: usize = 48;

/// What a datagram is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One of a stage's packets.
    Data,
    /// A request that is answered at once, by as many bytes.
    Echo,
    /// Its answer.
    Reply,
    /// What has arrived of a stage.
    Report,
}

impl Kind {
    fn of(byte: u8) -> Option<Kind> {
        [Kind::Data, Kind::Echo, Kind::Reply, Kind::Report].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// What a head says. Times are nanoseconds of the clock of whoever wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Known to both ends alone; datagrams with another one are ignored.
    pub cookie: u64,
    /// What it is for.
    pub kind: Kind,
    /// Number of the stage.
    pub stream: u16,
    /// Number in the stage. Of a report: the highest that arrived.
    pub seq: u32,
    /// When it was sent. Of a reply: when the request was. Of a report: when the last packet was.
    pub sent_ns: i64,
    /// Of a reply and a report: when that packet arrived.
    pub arrived_ns: i64,
    /// Of a reply: when it was answered.
    pub answered_ns: i64,
    /// Of a report: how many packets arrived.
    pub count: u32,
}

impl Head {
    /// Writes it into the first bytes of a datagram.
    pub fn write(&self, into: &mut [u8; BYTES]) {
        into[0..8].copy_from_slice(&self.cookie.to_le_bytes());
        into[8..12].copy_from_slice(&self.seq.to_le_bytes());
        into[12..14].copy_from_slice(&self.stream.to_le_bytes());
        into[14] = self.kind as u8;
        into[15] = 0;
        into[16..24].copy_from_slice(&self.sent_ns.to_le_bytes());
        into[24..32].copy_from_slice(&self.arrived_ns.to_le_bytes());
        into[32..40].copy_from_slice(&self.answered_ns.to_le_bytes());
        into[40..44].copy_from_slice(&self.count.to_le_bytes());
        into[44..48].fill(0);
    }

    /// Reads a datagram's head; `None` if it is too short, of no kind, or has another cookie.
    pub fn read(datagram: &[u8], cookie: u64) -> Option<Head> {
        let bytes: &[u8; BYTES] = datagram.get(..BYTES)?.try_into().ok()?;
        let word = |at: usize| u64::from_le_bytes(part(bytes, at));
        let half = |at: usize| u32::from_le_bytes(part(bytes, at));
        let head = Head {
            cookie: word(0),
            seq: half(8),
            stream: u16::from_le_bytes([bytes[12], bytes[13]]),
            kind: Kind::of(bytes[14])?,
            sent_ns: word(16) as i64,
            arrived_ns: word(24) as i64,
            answered_ns: word(32) as i64,
            count: half(40),
        };
        (head.cookie == cookie).then_some(head)
    }
}

/// So many bytes of a head from a place on.
fn part<const N: usize>(bytes: &[u8; BYTES], at: usize) -> [u8; N] {
    let mut part = [0; N];
    part.copy_from_slice(&bytes[at..at + N]);
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: Head = Head {
        cookie: 0x0123_4567_89ab_cdef,
        kind: Kind::Report,
        stream: 7,
        seq: 70_000,
        sent_ns: -5,
        arrived_ns: i64::MAX,
        answered_ns: 1,
        count: 3,
    };

    #[test]
    fn what_is_written_is_read() {
        let mut bytes = [0xff; BYTES];
        HEAD.write(&mut bytes);
        assert_eq!(Head::read(&bytes, HEAD.cookie), Some(HEAD));
    }

    #[test]
    fn garbage_is_nothing() {
        let mut bytes = [0; BYTES];
        HEAD.write(&mut bytes);
        assert_eq!(Head::read(&bytes, HEAD.cookie ^ 1), None);
        assert_eq!(Head::read(&bytes[..BYTES - 1], HEAD.cookie), None);
        bytes[14] = 4;
        assert_eq!(Head::read(&bytes, HEAD.cookie), None);
        assert_eq!(Head::read(&[], HEAD.cookie), None);
    }
}
