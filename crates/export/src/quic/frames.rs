//! The frames of a packet (RFC 9000 section 19), read from its payload.
//!
//! Any bytes can be read: what is no frame, or one of an extension, ends the list as [`Frame::Unknown`], because nothing says where
//! the next one begins.

/// A frame. Of data it has only the length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are called as in RFC 9000")]
pub enum Frame<'a> {
    /// So many bytes of padding.
    Padding(u64),
    /// It asks for an acknowledgement.
    Ping,
    /// Packets that have arrived.
    Ack(Ack<'a>),
    /// The sender abandons a stream.
    ResetStream { stream: u64, error: u64, final_size: u64 },
    /// The receiver does not want a stream.
    StopSending { stream: u64, error: u64 },
    /// A part of the handshake.
    Crypto { offset: u64, length: u64 },
    /// A part of a stream.
    Stream { stream: u64, offset: u64, length: u64, explicit: bool, fin: bool },
    /// How much the connection may send.
    MaxData(u64),
    /// How much a stream may send.
    MaxStreamData { stream: u64, maximum: u64 },
    /// How many streams of a kind may be opened.
    MaxStreams { uni: bool, maximum: u64 },
    /// The connection may not send more than this.
    DataBlocked(u64),
    /// A stream may not.
    StreamDataBlocked { stream: u64, limit: u64 },
    /// No more streams of a kind may be opened.
    StreamsBlocked { uni: bool, limit: u64 },
    /// Another connection id.
    NewConnectionId { sequence: u64, retire_prior_to: u64, id: &'a [u8] },
    /// One that is no longer used.
    RetireConnectionId(u64),
    /// It asks whether a path works.
    PathChallenge,
    /// It does.
    PathResponse,
    /// The end of the connection.
    ConnectionClose { by_application: bool, error: u64 },
    /// The server knows that the handshake is complete.
    HandshakeDone,
    /// Anything else, with its type; or 0 and more bytes that cannot be read.
    Unknown(u64),
}

/// An acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ack<'a> {
    /// How long the largest packet waited for it, in units of 2^[`Ack::EXPONENT`] microseconds.
    pub delay: u64,
    /// Codepoints of all packets so far: ECT(0), ECT(1) and CE.
    pub marks: Option<[u64; 3]>,
    largest: u64,
    /// The first range and those that follow, as the wire has them. [`Frames`] has checked them.
    rest: Reader<'a>,
    more: u64,
}

impl Ack<'_> {
    /// The default of `ack_delay_exponent` (RFC 9000 section 18.2), which both stacks of the world quic use.
    pub const EXPONENT: u32 = 3;

    /// Its delay, nanoseconds.
    pub fn delay_ns(&self) -> u64 {
        self.delay.saturating_mul(1_000 << Ack::EXPONENT)
    }

    /// The largest number that it acknowledges.
    pub fn largest(&self) -> u64 {
        self.largest
    }

    /// What it acknowledges: the lowest and the highest number of each range, the highest range first.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        let (mut rest, mut left, mut highest) = (self.rest, self.more, Some(self.largest));
        std::iter::from_fn(move || {
            let lowest = highest?.checked_sub(rest.number()?)?;
            let range = (lowest, highest?);
            highest = None;
            if left > 0 {
                left -= 1;
                highest = lowest.checked_sub(rest.number()?.checked_add(2)?);
            }
            Some(range)
        })
    }
}

/// Reads the frames of a payload.
pub fn frames(payload: &[u8]) -> Frames<'_> {
    Frames { rest: Reader(payload) }
}

/// The frames of a payload.
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    rest: Reader<'a>,
}

impl<'a> Iterator for Frames<'a> {
    type Item = Frame<'a>;

    fn next(&mut self) -> Option<Frame<'a>> {
        let padding = self.rest.0.iter().take_while(|byte| **byte == 0).count();
        if padding > 0 {
            self.rest.0 = &self.rest.0[padding..];
            return Some(Frame::Padding(padding as u64));
        }
        if self.rest.0.is_empty() {
            return None;
        }
        let kind = self.rest.number();
        let frame = kind.and_then(|kind| self.rest.frame(kind));
        if frame.is_none() {
            self.rest.0 = &[];
        }
        Some(frame.unwrap_or(Frame::Unknown(kind.unwrap_or(0))))
    }
}

/// What is left to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A variable-length integer (section 16).
    fn number(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.take(1 << (first >> 6))?;
        let rest = bytes[1..].iter();
        Some(rest.fold(u64::from(first & 0x3f), |number, byte| number << 8 | u64::from(*byte)))
    }

    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    /// A frame behind its type.
    fn frame(&mut self, kind: u64) -> Option<Frame<'a>> {
        Some(match kind {
            0x01 => Frame::Ping,
            0x02 | 0x03 => Frame::Ack(self.ack(kind == 0x03)?),
            0x04 => Frame::ResetStream {
                stream: self.number()?,
                error: self.number()?,
                final_size: self.number()?,
            },
            0x05 => Frame::StopSending { stream: self.number()?, error: self.number()? },
            0x06 => {
                let (offset, length) = (self.number()?, self.number()?);
                self.take(length)?;
                Frame::Crypto { offset, length }
            }
            0x08..=0x0f => {
                let stream = self.number()?;
                let offset = if kind & 4 != 0 { self.number()? } else { 0 };
                let explicit = kind & 2 != 0;
                let length = if explicit { self.number()? } else { self.0.len() as u64 };
                self.take(length)?;
                Frame::Stream { stream, offset, length, explicit, fin: kind & 1 != 0 }
            }
            0x10 => Frame::MaxData(self.number()?),
            0x11 => Frame::MaxStreamData { stream: self.number()?, maximum: self.number()? },
            0x12 | 0x13 => Frame::MaxStreams { uni: kind == 0x13, maximum: self.number()? },
            0x14 => Frame::DataBlocked(self.number()?),
            0x15 => Frame::StreamDataBlocked { stream: self.number()?, limit: self.number()? },
            0x16 | 0x17 => Frame::StreamsBlocked { uni: kind == 0x17, limit: self.number()? },
            0x18 => {
                let (sequence, retire_prior_to) = (self.number()?, self.number()?);
                let length = self.take(1)?[0];
                let id = self.take(length.into())?;
                self.take(16)?;
                Frame::NewConnectionId { sequence, retire_prior_to, id }
            }
            0x19 => Frame::RetireConnectionId(self.number()?),
            0x1a => self.take(8).map(|_| Frame::PathChallenge)?,
            0x1b => self.take(8).map(|_| Frame::PathResponse)?,
            0x1c | 0x1d => {
                let error = self.number()?;
                if kind == 0x1c {
                    // The type of the frame that it is about.
                    self.number()?;
                }
                let reason = self.number()?;
                self.take(reason)?;
                Frame::ConnectionClose { by_application: kind == 0x1d, error }
            }
            0x1e => Frame::HandshakeDone,
            _ => return None,
        })
    }

    fn ack(&mut self, marked: bool) -> Option<Ack<'a>> {
        let (largest, delay, more) = (self.number()?, self.number()?, self.number()?);
        let rest = *self;
        let mut lowest = largest.checked_sub(self.number()?)?;
        for _ in 0..more {
            let highest = lowest.checked_sub(self.number()?.checked_add(2)?)?;
            lowest = highest.checked_sub(self.number()?)?;
        }
        let marks = if marked { Some([self.number()?, self.number()?, self.number()?]) } else { None };
        Some(Ack { delay, marks, largest, rest, more })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn all(payload: &[u8]) -> Vec<Frame<'_>> {
        frames(payload).collect()
    }

    #[test]
    fn numbers_have_one_to_eight_bytes() {
        // RFC 9000 appendix A.1.
        for (bytes, number) in [
            (&[0x25][..], 37),
            (&[0x40, 0x25], 37),
            (&[0x7b, 0xbd], 15_293),
            (&[0x9d, 0x7f, 0x3e, 0x7d], 494_878_333),
            (&[0xc2, 0x19, 0x7c, 0x5e, 0xff, 0x14, 0xe8, 0x8c], 151_288_809_941_952_652),
        ] {
            assert_eq!(Reader(bytes).number(), Some(number));
            assert_eq!(Reader(&bytes[..bytes.len() - 1]).number(), None);
        }
    }

    #[test]
    fn an_acknowledgement_has_its_ranges() {
        // 100 to 98, then 95 (two are missing: 97 and 96), then 90 to 80, with marks; then a PING.
        let payload = [0x03, 0x40, 100, 25, 2, 2, 1, 0, 3, 10, 7, 0, 1, 0x01];
        let [Frame::Ack(ack), Frame::Ping] = all(&payload)[..] else { panic!("{:?}", all(&payload)) };
        assert_eq!(ack.ranges().collect::<Vec<_>>(), [(98, 100), (95, 95), (80, 90)]);
        assert_eq!((ack.largest(), ack.delay_ns(), ack.marks), (100, 200_000, Some([7, 0, 1])));
    }

    #[test]
    fn impossible_ack_is_no_frame() {
        for payload in [
            &[0x02, 5, 0, 0, 6][..],
            // The second range would begin below zero.
            &[0x02, 5, 0, 1, 4, 0, 0],
            // Ranges are missing.
            &[0x02, 5, 0, 0x3f, 0, 0, 0],
            &[0x03, 5, 0, 0, 0, 1, 1],
        ] {
            assert_eq!(all(payload), [Frame::Unknown(payload[0].into())]);
        }
    }

    #[test]
    fn each_frame_ends_at_next_start() {
        let mut payload =
            vec![0, 0, 0, 0x01, 0x06, 5, 2, 9, 9, 0x04, 4, 1, 6, 0x05, 8, 2, 0x10, 37, 0x11, 4, 38];
        payload.extend([0x13, 9, 0x14, 1, 0x15, 4, 3, 0x16, 2, 0x19, 6, 0x1e, 0x0e, 4, 40, 1, 9]);
        payload.extend([0x18, 1, 0, 2, 0xab, 0xcd]);
        payload.extend([7; 16]);
        payload.extend([0x1a; 9]);
        payload.extend([0x1b; 9]);
        payload.extend([0x1c, 1, 2, 1, b'x', 0x1d, 3, 0, 0x09, 3, 8, 8, 8]);
        let expected = [
            Frame::Padding(3),
            Frame::Ping,
            Frame::Crypto { offset: 5, length: 2 },
            Frame::ResetStream { stream: 4, error: 1, final_size: 6 },
            Frame::StopSending { stream: 8, error: 2 },
            Frame::MaxData(37),
            Frame::MaxStreamData { stream: 4, maximum: 38 },
            Frame::MaxStreams { uni: true, maximum: 9 },
            Frame::DataBlocked(1),
            Frame::StreamDataBlocked { stream: 4, limit: 3 },
            Frame::StreamsBlocked { uni: false, limit: 2 },
            Frame::RetireConnectionId(6),
            Frame::HandshakeDone,
            Frame::Stream { stream: 4, offset: 40, length: 1, explicit: true, fin: false },
            Frame::NewConnectionId { sequence: 1, retire_prior_to: 0, id: &[0xab, 0xcd] },
            Frame::PathChallenge,
            Frame::PathResponse,
            Frame::ConnectionClose { by_application: false, error: 1 },
            Frame::ConnectionClose { by_application: true, error: 3 },
            // Without a length, it takes the rest.
            Frame::Stream { stream: 3, offset: 0, length: 3, explicit: false, fin: true },
        ];
        assert_eq!(all(&payload), expected);
    }

    #[test]
    fn what_is_unknown_ends_the_list() {
        // IMMEDIATE_ACK of an extension, and a PING behind it.
        assert_eq!(all(&[0x01, 0x40, 0xac, 0x01]), [Frame::Ping, Frame::Unknown(0xac)]);
        // A stream frame that says that it is longer than it is, and a number without its second byte.
        assert_eq!(all(&[0x0a, 4, 3, 1, 1]), [Frame::Unknown(0x0a)]);
        assert_eq!(all(&[0x40]), [Frame::Unknown(0)]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_read_to_end(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut count = 0;
            for frame in frames(&payload) {
                count += 1;
                if let Frame::Ack(ack) = frame {
                    let ranges: Vec<_> = ack.ranges().collect();
                    prop_assert_eq!(ranges.len() as u64, ack.more + 1);
                    prop_assert!(ranges.iter().all(|(low, high)| low <= high));
                    prop_assert!(ranges.windows(2).all(|two| two[1].1 + 1 < two[0].0));
                }
            }
            prop_assert!(count <= payload.len());
        }
    }
}
