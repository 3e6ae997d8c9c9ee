//! What an application gives its socket to send.

use fullpipe_scenario::spec::Workload;

/// A stream of full-sized segments; the last may be short.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    mss: u32,
    segments: u64,
    tail_bytes: u32,
}

impl Stream {
    pub(crate) fn new(workload: &Workload, mss: u32) -> Stream {
        match workload {
            Workload::Bulk | Workload::Bursts { .. } => Stream { mss, segments: u64::MAX, tail_bytes: mss },
            Workload::Finite { size_bytes } => {
                let size = size_bytes.as_u64();
                let segments = size.div_ceil(mss as u64);
                let tail_bytes = if segments == 0 { 0 } else { size - (segments - 1) * mss as u64 };
                Stream { mss, segments, tail_bytes: tail_bytes as u32 }
            }
        }
    }

    /// The application writes `segments` more, in bursts: until now the stream ended before them.
    pub(crate) fn extend(&mut self, segments: u64) {
        self.segments = self.segments.saturating_add(segments);
    }

    /// Number of segments; `u64::MAX` when it never ends.
    #[inline]
    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// Payload of a segment.
    #[inline]
    pub(crate) fn bytes_of(&self, seq: u64) -> u32 {
        if seq.wrapping_add(1) == self.segments { self.tail_bytes } else { self.mss }
    }

    /// Ends the stream before segment `segments`, unless it ends earlier.
    pub(crate) fn end_at(&mut self, segments: u64) {
        if segments < self.segments {
            self.segments = segments;
            self.tail_bytes = self.mss;
        }
    }

    /// Payload of the whole stream, bytes; `u64::MAX` when it never ends.
    pub(crate) fn bytes(&self) -> u64 {
        if self.segments == u64::MAX {
            return u64::MAX;
        }
        if self.segments == 0 { 0 } else { (self.segments - 1) * self.mss as u64 + self.tail_bytes as u64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Bytes;

    #[test]
    fn the_last_segment_is_short() {
        let stream = Stream::new(&Workload::Finite { size_bytes: Bytes::new(2501) }, 1000);
        assert_eq!((stream.segments(), stream.bytes_of(1), stream.bytes_of(2)), (3, 1000, 501));
        assert_eq!(stream.bytes(), 2501);
    }

    #[test]
    fn a_bulk_stream_never_ends_but_can_be_stopped() {
        let mut stream = Stream::new(&Workload::Bulk, 1000);
        assert_eq!((stream.segments(), stream.bytes()), (u64::MAX, u64::MAX));
        stream.end_at(7);
        assert_eq!((stream.segments(), stream.bytes()), (7, 7000));
    }
}
