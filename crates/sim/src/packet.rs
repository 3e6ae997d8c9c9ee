//! Packets: data segments in one direction, acknowledgements in the other; both in each, if flows go both ways.
//!
//! Sequence numbers count segments, not bytes: every segment of a flow is full-sized except its last.

use fullpipe_path::Ecn;
use fullpipe_scenario::Spec;
use fullpipe_units::Time;

/// Length of a SYN and of its answer as IP packets: 20 IP + 20 TCP + 20 options (MSS, SACK, timestamps, window scale).
const SYN_BYTES: u32 = 60;

/// A data segment, or a SYN. The packet that carries it names the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its number, if it is mere data; see [`Segment::flags`].
    pub(crate) seq: u64,
    /// When it left the sender: its TCP timestamp (RFC 7323), milliseconds as in Linux, wrapping.
    pub(crate) stamp_ms: u32,
    /// The stamp of the latest ACK that the sender has seen (RFC 7323 TSecr).
    pub(crate) echo_ms: u16,
    /// Payload bytes; zero marks one with flags, because no data segment is empty.
    pub(crate) payload: u16,
}

/// What a segment is that is more than mere data. Such ones cost the others nothing: what they need lies in the upper bits of
/// the number, which counts to 2^47 only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flags {
    /// The first of a connection; `ecn` if it offers ECN (ECE and CWR).
    Syn { ecn: bool },
    /// Data of a connection that has negotiated ECN; `cwr` if the sender has reduced its window.
    Ecn { data: Segment, cwr: bool },
    /// Part of a frame of media.
    Datagram(Datagram),
}

/// Part of a frame of media.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Datagram {
    pub(crate) frame: u64,
    /// Its number within the frame.
    pub(crate) number: u32,
    pub(crate) payload: u16,
}

/// Where a segment with flags has its payload, ...
const PAYLOAD_SHIFT: u32 = 48;
/// ... and CWR. Without a payload there, it marks a datagram.
const CWR: u64 = 1 << 47;

impl Segment {
    /// A SYN.
    pub(crate) fn syn(stamp_ms: u32, ecn: bool) -> Segment {
        Segment { stamp_ms, echo_ms: 0, seq: ecn as u64, payload: 0 }
    }

    /// This data, of a connection that has negotiated ECN.
    pub(crate) fn with_ecn(self, cwr: bool) -> Segment {
        debug_assert!(self.payload > 0 && self.seq < CWR, "not mere data: {self:?}");
        let flag = if cwr { CWR } else { 0 };
        Segment { seq: self.seq | flag | (self.payload as u64) << PAYLOAD_SHIFT, payload: 0, ..self }
    }

    /// Part of a frame of media.
    pub(crate) fn datagram(datagram: Datagram) -> Segment {
        let Datagram { frame, number, payload } = datagram;
        debug_assert!(frame < CWR, "frame {frame}");
        Segment { seq: frame | CWR, stamp_ms: number, echo_ms: payload, payload: 0 }
    }

    /// Whether it is more than mere data.
    #[inline]
    pub(crate) fn has_flags(&self) -> bool {
        self.payload == 0
    }

    /// The flags of one that has some.
    pub(crate) fn flags(&self) -> Flags {
        let payload = (self.seq >> PAYLOAD_SHIFT) as u16;
        if payload == 0 {
            return match self.seq & CWR {
                0 => Flags::Syn { ecn: self.seq != 0 },
                _ => Flags::Datagram(Datagram {
                    frame: self.seq & (CWR - 1),
                    number: self.stamp_ms,
                    payload: self.echo_ms,
                }),
            };
        }
        let data = Segment { seq: self.seq & (CWR - 1), payload, ..*self };
        Flags::Ecn { data, cwr: self.seq & CWR != 0 }
    }

    /// Length of the IP packet.
    #[inline]
    pub(crate) fn wire_bytes(&self) -> u32 {
        if !self.has_flags() {
            return self.payload as u32 + Spec::HEADER_BYTES;
        }
        match self.flags() {
            Flags::Syn { .. } => SYN_BYTES,
            Flags::Ecn { data, .. } => data.payload as u32 + Spec::HEADER_BYTES,
            Flags::Datagram(datagram) => datagram.payload as u32 + Spec::HEADER_BYTES,
        }
    }
}

/// The value of the timestamp clock at `now`.
#[inline]
pub(crate) fn stamp_ms(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

/// The whole timestamp whose low bits are `low`, of a packet that is at most a minute old.
#[inline]
pub(crate) fn widened(now: Time, low: u16) -> u32 {
    let now = stamp_ms(now);
    now.wrapping_sub((now as u16).wrapping_sub(low) as u32)
}

/// How much older than the latest a timestamp may be (Linux: `TCP_PAWS_WINDOW`).
pub(crate) const PAWS_WINDOW_MS: i32 = 1;

/// Blocks that an acknowledgement can carry together with timestamps (RFC 2018: 40 bytes of options).
pub(crate) const SACK_BLOCKS: usize = 3;

/// An acknowledgement, or the answer to a SYN. The packet that carries it names the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acknowledgement {
    /// When it left the receiver: the low bits of its timestamp, which are enough to time a round trip below 65 s.
    pub(crate) stamp_ms: u16,
    /// Timestamp of the segment that it answers (RFC 7323 TSecr).
    pub(crate) echo_ms: u32,
    /// The next segment that the receiver expects.
    pub(crate) ack: u64,
    /// The first byte past the receive window, counted from the start of the stream.
    pub(crate) window_edge: u64,
    /// Half-open ranges of segments, counted from `ack`; the first so many count.
    sack: [(i32, i32); SACK_BLOCKS],
    /// How many ranges in the lowest bits, the receiver's [`Echo`] in the others.
    extras: u8,
    pub(crate) kind: AckKind,
}

/// What a receiver says of ECN with each acknowledgement: whether it echoes marks (ECE), and the codepoint of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Echo(u8);

impl Echo {
    const BLOCKS: u8 = 0b11;
    const CODEPOINT_SHIFT: u32 = 2;
    const ECE: u8 = 0b1_0000;

    /// None, in a packet whose codepoint is this.
    pub(crate) const fn new(codepoint: Ecn) -> Echo {
        Echo((codepoint as u8) << Echo::CODEPOINT_SHIFT)
    }

    /// The same, echoing marks or not.
    pub(crate) const fn echoing(self, marks: bool) -> Echo {
        Echo(self.0 & !Echo::ECE | if marks { Echo::ECE } else { 0 })
    }

    /// Whether it echoes marks.
    pub(crate) const fn echoes(self) -> bool {
        self.0 & Echo::ECE != 0
    }
}

/// The flags of an acknowledgement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AckKind {
    Plain,
    /// The first block reports a duplicate (RFC 2883).
    Duplicate,
    /// It carries a request for the transfer that begins at `ack`.
    Request,
    /// The answer to a SYN.
    Syn,
}

impl Acknowledgement {
    /// One that reports nothing.
    pub(crate) const NONE: Acknowledgement = Acknowledgement::new(AckKind::Plain, 0, 0, 0);

    /// One without blocks; the sender of the ACK sets the stamp.
    pub(crate) const fn new(kind: AckKind, echo_ms: u32, ack: u64, window_edge: u64) -> Acknowledgement {
        Acknowledgement {
            stamp_ms: 0,
            echo_ms,
            ack,
            window_edge,
            sack: [(0, 0); SACK_BLOCKS],
            extras: 0,
            kind,
        }
    }

    /// The same with an echo.
    #[inline]
    pub(crate) const fn with_echo(mut self, echo: Echo) -> Acknowledgement {
        self.extras |= echo.0;
        self
    }

    /// Whether it only acknowledges: it has no block, echoes no mark, and its receiver is not one of [`EcnUse::Exact`], whose
    /// ACKs all say something of marks.
    ///
    /// [`EcnUse::Exact`]: fullpipe_scenario::spec::EcnUse::Exact
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.extras == 0
    }

    /// Whether it echoes marks.
    pub(crate) fn echoes(&self) -> bool {
        Echo(self.extras).echoes()
    }

    /// The codepoint of its packet.
    #[inline]
    pub(crate) fn codepoint(&self) -> Ecn {
        Ecn::from_bits(self.extras >> Echo::CODEPOINT_SHIFT)
    }

    /// Reports another range, if there is room.
    #[inline]
    pub(crate) fn report(&mut self, (start, end): (u64, u64)) {
        let place = self.blocks();
        if let Some(block) = self.sack.get_mut(place) {
            let from_ack = |seq: u64| {
                let distance = seq.wrapping_sub(self.ack) as i64;
                debug_assert!(i32::try_from(distance).is_ok(), "a block {distance} segments away");
                distance as i32
            };
            *block = (from_ack(start), from_ack(end));
            self.extras += 1;
        }
    }

    /// How many ranges it reports.
    #[inline]
    pub(crate) fn blocks(&self) -> usize {
        (self.extras & Echo::BLOCKS) as usize
    }

    /// The ranges; those beyond [`Acknowledgement::blocks`] are empty.
    #[inline]
    pub(crate) fn sack(&self) -> [(u64, u64); SACK_BLOCKS] {
        let seq = |from_ack: i32| self.ack.wrapping_add_signed(from_ack as i64);
        self.sack.map(|(start, end)| (seq(start), seq(end)))
    }

    /// Length of the IP packet: headers with timestamps, 4 + 8 for each SACK block, and the one byte of a request.
    #[inline]
    pub(crate) fn wire_bytes(&self) -> u32 {
        let blocks = match self.blocks() {
            0 => 0,
            blocks => 4 + 8 * blocks as u32,
        };
        match self.kind {
            AckKind::Syn => SYN_BYTES,
            AckKind::Request => Spec::HEADER_BYTES + blocks + 1,
            AckKind::Plain | AckKind::Duplicate => Spec::HEADER_BYTES + blocks,
        }
    }
}

/// What one direction of a path carries.
pub(crate) trait Load: Clone {
    /// Whether there are flows in both directions, so that segments and acknowledgements share a queue.
    const MIXED: bool = false;
    fn of_segment(segment: Segment) -> Self;
    fn of_acknowledgement(ack: Acknowledgement) -> Self;
    fn segment(&self) -> Option<&Segment>;
    fn acknowledgement(&self) -> Option<&Acknowledgement>;
}

impl Load for Segment {
    #[inline]
    fn of_segment(segment: Segment) -> Segment {
        segment
    }

    fn of_acknowledgement(_: Acknowledgement) -> Segment {
        unreachable!("all flows go forward")
    }

    #[inline]
    fn segment(&self) -> Option<&Segment> {
        Some(self)
    }

    #[inline]
    fn acknowledgement(&self) -> Option<&Acknowledgement> {
        None
    }
}

impl Load for Acknowledgement {
    fn of_segment(_: Segment) -> Acknowledgement {
        unreachable!("all flows go forward")
    }

    #[inline]
    fn of_acknowledgement(ack: Acknowledgement) -> Acknowledgement {
        ack
    }

    #[inline]
    fn segment(&self) -> Option<&Segment> {
        None
    }

    #[inline]
    fn acknowledgement(&self) -> Option<&Acknowledgement> {
        Some(self)
    }
}

/// A segment of a flow in one direction, or an acknowledgement of one in the other.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Either {
    Segment(Segment),
    Acknowledgement(Acknowledgement),
}

impl Load for Either {
    const MIXED: bool = true;

    fn of_segment(segment: Segment) -> Either {
        Either::Segment(segment)
    }

    fn of_acknowledgement(ack: Acknowledgement) -> Either {
        Either::Acknowledgement(ack)
    }

    fn segment(&self) -> Option<&Segment> {
        if let Either::Segment(segment) = self { Some(segment) } else { None }
    }

    fn acknowledgement(&self) -> Option<&Acknowledgement> {
        if let Either::Acknowledgement(ack) = self { Some(ack) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // draft 4.1.3.5.1#6b5bed: timestamps leave room for three ranges
    #[test]
    fn ack_reports_three_ranges() {
        let ack_number = 1 << 40;
        let mut ack = Acknowledgement::new(AckKind::Plain, 0, ack_number, 0);
        let ranges = [
            (ack_number - 7, ack_number - 5),
            (ack_number + 3, ack_number + 4),
            (ack_number + 9, ack_number + 70_000),
        ];
        ranges.iter().chain([&(1, 2)]).for_each(|range| ack.report(*range));
        assert_eq!((ack.sack(), ack.blocks(), ack.wire_bytes()), (ranges, 3, 80));
    }

    #[test]
    fn ecn_fields_keep_sack_blocks() {
        for codepoint in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0] {
            for echoes in [false, true] {
                let echo = Echo::new(codepoint).echoing(!echoes).echoing(echoes);
                let mut ack = Acknowledgement::new(AckKind::Plain, 0, 9, 0).with_echo(echo);
                assert_eq!(ack.is_plain(), codepoint == Ecn::NotEct && !echoes);
                assert_eq!(ack.wire_bytes(), 52);
                for end in 11..16 {
                    ack.report((10, end));
                }
                assert_eq!((ack.codepoint(), ack.echoes(), ack.blocks()), (codepoint, echoes, 3));
                assert_eq!((ack.sack()[2], ack.wire_bytes()), ((10, 13), 80));
            }
        }
    }

    #[test]
    fn flags_preserve_segment_fields() {
        for (seq, payload) in [(0, 1), (5, 1448), ((1 << 47) - 1, 65_483)] {
            for cwr in [false, true] {
                let data = Segment { seq, stamp_ms: u32::MAX, echo_ms: 7, payload };
                let flagged = data.with_ecn(cwr);
                assert!(flagged.has_flags() && !data.has_flags());
                assert_eq!(flagged.flags(), Flags::Ecn { data, cwr });
                assert_eq!(flagged.wire_bytes(), data.wire_bytes());
            }
        }
        for (frame, number, payload) in [(0, 0, 1), (7, u32::MAX, 1448), ((1 << 47) - 1, 3, 65_483)] {
            let datagram = Datagram { frame, number, payload };
            let segment = Segment::datagram(datagram);
            assert_eq!((segment.has_flags(), segment.flags()), (true, Flags::Datagram(datagram)));
            assert_eq!(segment.wire_bytes(), payload as u32 + 52);
        }
        for ecn in [false, true] {
            let syn = Segment::syn(3, ecn);
            assert_eq!((syn.has_flags(), syn.flags(), syn.wire_bytes()), (true, Flags::Syn { ecn }, 60));
        }
    }

    /// With a length, a class and a due time, two segments or one acknowledgement fill a line of the caches.
    #[test]
    fn packets_are_small() {
        assert_eq!((size_of::<Segment>(), size_of::<Acknowledgement>()), (16, 48));
        assert_eq!(size_of::<Either>(), 48);
    }
}
