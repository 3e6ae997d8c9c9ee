//! The data that an application gives its socket to send.

use fullpipe_scenario::spec::Workload;
use fullpipe_units::Bytes;

/// A stream of full-sized segments; the last may be short. One that grows by transfers may have a short one at the end of
/// each: the next is written only after all before has been acknowledged, so that only the last is ever sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteStream {
    mss: u32,
    segments: u64,
    tail_bytes: u32,
    /// Bytes by which the segments before the last transfer's are short of full ones.
    missing: u64,
}

impl ByteStream {
    /// The whole stream that an application ever writes.
    pub(crate) fn new(workload: &Workload, mss: u32) -> ByteStream {
        let mut stream = ByteStream::empty(mss);
        match workload {
            Workload::Bulk
            | Workload::Bursts { .. }
            | Workload::Requests { .. }
            | Workload::Video { .. }
            | Workload::Media { .. } => stream.segments = u64::MAX,
            Workload::Finite { size_bytes } => stream.extend(*size_bytes),
            Workload::Script { transfers } => {
                transfers.iter().for_each(|transfer| stream.extend(transfer.size_bytes));
            }
        }
        stream
    }

    /// An empty stream.
    pub(crate) fn empty(mss: u32) -> ByteStream {
        ByteStream { mss, segments: 0, tail_bytes: mss, missing: 0 }
    }

    /// The application writes more: until now the stream ended before it.
    pub(crate) fn extend(&mut self, bytes: Bytes) {
        let bytes = bytes.as_u64();
        if bytes == 0 {
            return;
        }
        let segments = bytes.div_ceil(self.mss as u64);
        self.missing += (self.mss - self.tail_bytes) as u64;
        self.tail_bytes = (bytes - (segments - 1) * self.mss as u64) as u32;
        self.segments = self.segments.saturating_add(segments);
    }

    /// Number of segments; `u64::MAX` when it never ends.
    #[inline]
    pub(crate) fn segments(&self) -> u64 {
        self.segments
    }

    /// Payload of a segment that is not yet acknowledged.
    #[inline]
    pub(crate) fn bytes_of(&self, seq: u64) -> u32 {
        if seq.wrapping_add(1) == self.segments { self.tail_bytes } else { self.mss }
    }

    /// The first byte of a segment that is not yet acknowledged.
    #[inline]
    pub(crate) fn start_of(&self, seq: u64) -> u64 {
        seq * self.mss as u64 - self.missing
    }

    /// Number of segments that end before byte `edge`, were all of them full that are not yet acknowledged.
    #[inline]
    pub(crate) fn full_before(&self, edge: u64) -> u64 {
        (edge + self.missing) / self.mss as u64
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
        match self.segments {
            u64::MAX => u64::MAX,
            0 => 0,
            segments => self.start_of(segments - 1) + self.tail_bytes as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::spec::Transfer;
    use fullpipe_units::Duration;

    #[test]
    fn the_last_segment_is_short() {
        let stream = ByteStream::new(&Workload::Finite { size_bytes: Bytes::new(2501) }, 1000);
        assert_eq!((stream.segments(), stream.bytes_of(1), stream.bytes_of(2)), (3, 1000, 501));
        assert_eq!(stream.bytes(), 2501);
    }

    #[test]
    fn bulk_stream_ends_only_on_stop() {
        let mut stream = ByteStream::new(&Workload::Bulk, 1000);
        assert_eq!((stream.segments(), stream.bytes()), (u64::MAX, u64::MAX));
        stream.end_at(7);
        assert_eq!((stream.segments(), stream.bytes()), (7, 7000));
    }
    #[test]
    fn each_transfer_starts_new_segment() {
        let transfer = |size| Transfer { size_bytes: Bytes::new(size), pause_ns: Duration::ZERO };
        let transfers = [2501, 1, 3000, 0].map(transfer).into();
        let stream = ByteStream::new(&Workload::Script { transfers }, 1000);
        assert_eq!((stream.segments(), stream.bytes()), (3 + 1 + 3, 5502));
        // The last begins behind 2501 + 1 bytes, which are 1498 short of four segments.
        assert_eq!((stream.start_of(4), stream.start_of(6), stream.bytes_of(6)), (2502, 4502, 1000));
        assert_eq!([4501, 4502, 5501, 5502].map(|edge| stream.full_before(edge)), [5, 6, 6, 7]);
    }
}
