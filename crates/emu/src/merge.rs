//! Puts packets that leave together back into one frame, as a network card with receive offload (GRO) would.
//!
//! The rules are those of `tcp_gro_receive()` in Linux: same headers, sequence without a gap, full segments except for the
//! last, nothing after FIN or PSH; a bare ACK, SYN, RST or URG is never merged. Nor are packets that a queue has marked merged
//! with others (`inet_gro_receive()`).

use std::io::IoSlice;

use fullpipe_units::Time;

use crate::frame::{Header, MAX_FRAME_BYTES, Unit, flag};

/// Packets in at most this many pieces, so that one `writev` suffices.
const MAX_UNITS: usize = 256;

/// A frame that is being merged.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    units: Vec<Unit>,
    /// When each was due.
    due: Vec<Time>,
    payload: usize,
    closed: bool,
}

impl Batch {
    /// Whether it holds nothing.
    pub(crate) fn is_empty(&self) -> bool {
        self.units.is_empty()
    }

    /// Whether nothing more can be added.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// When the first of its packets was due.
    pub(crate) fn first_due(&self) -> Option<Time> {
        self.due.first().copied()
    }

    /// When each of its packets was due.
    pub(crate) fn due(&self) -> &[Time] {
        &self.due
    }

    /// Adds a packet behind the others, or gives it back if it cannot be merged with them.
    pub(crate) fn add(&mut self, unit: Unit, due: Time) -> Result<(), Unit> {
        if let (Some(first), Some(last)) = (self.units.first(), self.units.last()) {
            let payload = unit.payload_bytes().unwrap_or(0);
            let follows = !self.closed
                && payload > 0
                && payload <= first.segment_bytes()
                && unit.flags() & (flag::SYN | flag::RST | flag::URG | flag::CWR) == 0
                && unit.flags() & !(flag::FIN | flag::PSH) == first.flags() & !(flag::FIN | flag::PSH)
                && last.sequence().wrapping_add(last.payload_bytes().unwrap_or(0) as u32) == unit.sequence()
                && unit.header_bytes() + self.payload + payload <= MAX_FRAME_BYTES
                && first.same_headers(&unit);
            if !follows {
                return Err(unit);
            }
        }
        let payload = unit.payload_bytes().unwrap_or(0);
        const NOTHING_FOLLOWS: u8 = flag::FIN | flag::SYN | flag::RST | flag::PSH | flag::URG | flag::CWR;
        let segment = self.units.first().unwrap_or(&unit).segment_bytes();
        self.payload += payload;
        self.closed = payload == 0
            || payload < segment
            || unit.flags() & NOTHING_FOLLOWS != 0
            || self.units.len() + 1 == MAX_UNITS;
        self.units.push(unit);
        self.due.push(due);
        Ok(())
    }

    /// Hands the frame's pieces to `write`, virtio header first, and becomes empty.
    pub(crate) fn flush<R>(&mut self, write: impl FnOnce(&[IoSlice<'_>]) -> R) -> R {
        let (first, last) = match (self.units.first(), self.units.last()) {
            (Some(first), Some(last)) => (first, last),
            _ => panic!("an empty batch is never flushed"),
        };
        let result = if first.is_opaque() {
            first.write_whole(write)
        } else {
            let header = Header::merged(first, last, self.payload);
            let mut slices = Vec::with_capacity(8);
            slices.push(IoSlice::new(header.bytes()));
            // Neighbours in one frame are one piece of memory.
            for run in self.units.chunk_by(|a, b| a.joined_payload(b).is_some()) {
                let piece = run[0].joined_payload(&run[run.len() - 1]).unwrap_or_else(|| run[0].payload());
                slices.push(IoSlice::new(piece));
            }
            write(&slices)
        };
        self.units.clear();
        self.due.clear();
        self.payload = 0;
        self.closed = false;
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::VNET_BYTES;
    use crate::frame::testing::{Sample, assert_checksums};
    use fullpipe_path::Ecn;

    const ACK: u8 = 0x10;

    /// Adds units as the ferry does and returns the frames written.
    fn merged(units: Vec<Unit>) -> Vec<Vec<u8>> {
        let mut batch = Batch::default();
        let mut frames = Vec::new();
        let mut flush = |batch: &mut Batch| {
            batch.flush(|slices| {
                frames.push(slices.iter().flat_map(|slice| slice.to_vec()).collect::<Vec<u8>>());
            })
        };
        for unit in units {
            if let Err(unit) = batch.add(unit, Time::ZERO) {
                flush(&mut batch);
                batch.add(unit, Time::ZERO).unwrap();
            }
            if batch.is_closed() {
                flush(&mut batch);
            }
        }
        if !batch.is_empty() {
            flush(&mut batch);
        }
        frames
    }

    fn sequence(frame: &[u8]) -> u32 {
        u32::from_be_bytes(frame[VNET_BYTES + 24..VNET_BYTES + 28].try_into().unwrap())
    }

    fn assert_payload(frame: &[u8]) {
        let first = sequence(frame) as usize;
        for (i, byte) in frame[VNET_BYTES + 52..].iter().enumerate() {
            assert_eq!(usize::from(*byte), (first + i) % 251);
        }
    }

    #[test]
    fn split_frame_merges_back_identically() {
        let original = Sample { flags: ACK | flag::PSH, ..Sample::data(1000, 10 * 1448 + 7) }.bytes();
        let frames = merged(Sample { flags: ACK | flag::PSH, ..Sample::data(1000, 10 * 1448 + 7) }.units());
        assert_eq!(frames.len(), 1);
        let frame = &frames[0];
        assert_checksums(frame);
        assert_payload(frame);
        assert_eq!(frame[1], 1, "TCPV4");
        assert_eq!(u16::from_ne_bytes([frame[2], frame[3]]), 52, "header length");
        assert_eq!(u16::from_ne_bytes([frame[4], frame[5]]), 1448, "segment size");
        // Apart from lengths and checksums, which the original left to the device.
        assert_eq!(frame[VNET_BYTES + 12..VNET_BYTES + 36], original[VNET_BYTES + 12..VNET_BYTES + 36]);
        assert_eq!(frame.len(), original.len());
    }

    #[test]
    fn gap_splits_into_valid_frames() {
        let mut units = Sample::data(0, 5 * 1448).units();
        units.remove(2);
        let frames = merged(units);
        assert_eq!(frames.iter().map(|frame| frame.len() - 62).collect::<Vec<_>>(), [2 * 1448, 2 * 1448]);
        assert_eq!(frames.iter().map(|frame| sequence(frame)).collect::<Vec<_>>(), [0, 3 * 1448]);
        // The identification counts segments: 0x1234 and three more.
        assert_eq!(frames[1][VNET_BYTES + 4..VNET_BYTES + 6], [0x12, 0x37]);
        for frame in &frames {
            assert_checksums(frame);
            assert_payload(frame);
        }
    }

    #[test]
    fn single_segment_is_not_gso() {
        let frames = merged(Sample::data(0, 3 * 1448).units().split_off(2));
        assert_eq!((frames[0][1], &frames[0][4..6]), (0, &[0, 0][..]));
        assert_checksums(&frames[0]);
    }

    #[test]
    fn frames_merge_across_sequence_wrap() {
        let first = u32::MAX - 1447;
        let mut units = Sample::data(first, 1448).units();
        units.extend(Sample::data(0, 2 * 1448).units());
        let frames = merged(units);
        assert_eq!(frames.len(), 1);
        assert_checksums(&frames[0]);
        assert_eq!(frames[0].len(), 62 + 3 * 1448);
    }

    #[test]
    fn different_headers_do_not_merge() {
        let second = Sample::data(1448, 1448);
        let pairs = [
            (Sample::data(0, 1448), Sample { timestamp: 8, ..second }),
            (Sample::data(0, 1448), Sample { payload: 0, ..second }),
            (Sample { payload: 0, ..Sample::data(0, 0) }, Sample { sequence: 0, ..second }),
            (Sample::data(0, 1448), Sample { flags: ACK | flag::RST, ..second }),
            (Sample::data(0, 1448), Sample { flags: ACK | flag::CWR, ..second }),
            (Sample { flags: ACK | flag::PSH, ..Sample::data(0, 1448) }, second),
            (Sample { flags: ACK | flag::FIN, ..Sample::data(0, 1448) }, second),
            (Sample { flags: flag::SYN, ..Sample::data(0, 1448) }, second),
        ];
        for (number, (a, b)) in pairs.into_iter().enumerate() {
            let units = a.units().into_iter().chain(b.units()).collect();
            let frames = merged(units);
            assert_eq!(frames.len(), 2, "case {number}");
            frames.iter().for_each(|frame| assert_checksums(frame));
        }
    }

    #[test]
    fn marks_split_frame_by_codepoint() {
        let units = Sample::data(0, 6 * 1448).units().into_iter().enumerate();
        let marked = units.map(|(n, unit)| if (2..4).contains(&n) { unit.with_ecn(Ecn::Ce) } else { unit });
        let frames = merged(marked.collect());
        let codepoints: Vec<u8> = frames.iter().map(|frame| frame[VNET_BYTES + 1]).collect();
        assert_eq!(codepoints, [0, 3, 0]);
        for frame in &frames {
            assert_checksums(frame);
            assert_payload(frame);
            assert_eq!(frame.len(), 62 + 2 * 1448);
        }
    }

    #[test]
    fn same_codepoint_at_exit_merges() {
        let mut second = Sample::data(1448, 1448).bytes();
        second[VNET_BYTES + 1] = 2;
        let second = crate::frame::units(std::rc::Rc::new(crate::frame::Frame::parse(&second).unwrap()));
        let units = Sample::data(0, 1448).units().into_iter().chain(second);
        let frames = merged(units.map(|unit| unit.with_ecn(Ecn::Ce)).collect());
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0][VNET_BYTES + 1], 3);
        assert_checksums(&frames[0]);
    }

    #[test]
    fn a_frame_stays_below_64_kb() {
        let mut units = Sample::data(0, 40 * 1448).units();
        units.extend(Sample::data(40 * 1448, 40 * 1448).units());
        let frames = merged(units);
        assert!(frames.iter().all(|frame| frame.len() - VNET_BYTES <= MAX_FRAME_BYTES));
        assert_eq!(frames.iter().map(|frame| frame.len() - 62).sum::<usize>(), 80 * 1448);
        frames.iter().for_each(|frame| assert_checksums(frame));
    }

    #[test]
    fn duplicate_stays_separate_frame() {
        let unit = Sample::data(0, 1448).units().remove(0);
        assert_eq!(merged(vec![unit.clone(), unit]).len(), 2);
    }
}
