//! A flow of real-time media: frames of one size at fixed intervals, in datagrams, to a receiver that only counts them.
//!
//! There is no handshake, no feedback and no retransmission, so that whatever is lost stays lost: the traffic of RFC 8868 section 7
//! without its adaptation. A frame's datagrams leave together, each of the size of a segment, the last one short. Its delay is from
//! then to the arrival of its last datagram; it is in time up to the deadline, and late behind it. What is missing counts as lost
//! once something newer has arrived, as in RFC 3550 appendix A.3; here, a datagram of a later frame.

use fullpipe_path::Ecn;
use fullpipe_record::Frames;
use fullpipe_scenario::spec::Workload;
use fullpipe_units::{Duration, Time};

use crate::packet::{Datagram, Segment};
use crate::sender::Wire;

/// Both ends of such a flow.
#[derive(Debug)]
pub(crate) struct Media {
    frame_bytes: u64,
    every: Duration,
    deadline: Duration,
    mss: u64,
    /// When the first frame leaves.
    start: Time,
    /// Datagrams of a frame.
    datagrams: u64,
    frames_sent: u64,
    /// Datagrams that have arrived, those that arrived twice or after the end of the measures included.
    pub(crate) arrived: u64,
    pub(crate) delivered_bytes: u64,
    /// A bit for each datagram, in their order: whether it has arrived.
    seen: Vec<u64>,
    /// How many datagrams of each frame have arrived.
    counts: Vec<u32>,
    in_time: u64,
    /// How long each complete frame took, in the order of their completion.
    pub(crate) delays_ns: Vec<u64>,
}

impl Media {
    /// Of a flow whose first frame leaves at `start`; `None` unless it is media. A datagram holds `mss` bytes.
    pub(crate) fn new(workload: &Workload, mss: u32, start: Time) -> Option<Media> {
        let Workload::Media { frame_bytes, every_ns, deadline_ns } = *workload else { return None };
        Some(Media {
            frame_bytes: frame_bytes.as_u64(),
            every: every_ns,
            deadline: deadline_ns,
            mss: mss.into(),
            start,
            datagrams: frame_bytes.as_u64().div_ceil(mss.into()),
            frames_sent: 0,
            arrived: 0,
            delivered_bytes: 0,
            seen: Vec::new(),
            counts: Vec::new(),
            in_time: 0,
            delays_ns: Vec::new(),
        })
    }

    /// Datagrams handed to the path.
    pub(crate) fn datagrams_sent(&self) -> u64 {
        self.frames_sent * self.datagrams
    }

    /// What the application wrote.
    pub(crate) fn written_bytes(&self) -> u64 {
        self.frames_sent * self.frame_bytes
    }

    /// When a frame leaves.
    fn sent_at(&self, frame: u64) -> Time {
        self.start.saturating_add(self.every.saturating_mul(frame))
    }

    /// Sends the frame that is due. Returns when the next one is.
    pub(crate) fn send(&mut self, now: Time, flow: u32, out: &mut impl Wire) -> Time {
        debug_assert_eq!(self.sent_at(self.frames_sent), now, "a frame leaves at its time");
        let mut left = self.frame_bytes;
        for number in 0..self.datagrams {
            let payload = left.min(self.mss);
            left -= payload;
            let datagram =
                Datagram { frame: self.frames_sent, number: number as u32, payload: payload as u16 };
            out.send(now, flow, Segment::datagram(datagram), Ecn::NotEct);
        }
        self.frames_sent += 1;
        self.sent_at(self.frames_sent)
    }

    /// A datagram arrives; `counts` unless the measures have ended.
    pub(crate) fn receive(&mut self, now: Time, datagram: Datagram, counts: bool) {
        self.arrived += 1;
        if !counts {
            return;
        }
        let Datagram { frame, number, payload } = datagram;
        let place = frame * self.datagrams + u64::from(number);
        let (word, bit) = ((place / 64) as usize, 1 << (place % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            return;
        }
        self.seen[word] |= bit;
        self.delivered_bytes += u64::from(payload);
        let frame = frame as usize;
        if self.counts.len() <= frame {
            self.counts.resize(frame + 1, 0);
        }
        self.counts[frame] += 1;
        if u64::from(self.counts[frame]) == self.datagrams {
            let delay = now.saturating_since(self.sent_at(frame as u64));
            self.in_time += u64::from(delay <= self.deadline);
            self.delays_ns.push(delay.as_nanos());
        }
    }

    /// What became of the frames by `end`.
    pub(crate) fn frames(&self, end: Time) -> Frames {
        let late = self.delays_ns.len() as u64 - self.in_time;
        let mut frames = Frames { sent: self.frames_sent, in_time: self.in_time, late, ..Frames::default() };
        for frame in 0..self.frames_sent {
            let arrived = self.counts.get(frame as usize).copied().unwrap_or(0);
            let missing = self.datagrams - u64::from(arrived);
            if missing > 0 && frame + 1 < self.counts.len() as u64 {
                frames.lost += 1;
                frames.lost_packets += missing;
            } else if missing > 0 && self.sent_at(frame).saturating_add(self.deadline) < end {
                frames.late += 1;
            }
        }
        frames
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_units::Bytes;

    fn at(millis: u64) -> Time {
        Time::from_micros(millis * 1000)
    }

    /// Frames of two and a half datagrams of 1000 B each 10 ms, due within 20 ms.
    fn media() -> Media {
        let millis = Duration::from_millis;
        let workload =
            Workload::Media { frame_bytes: Bytes::new(2500), every_ns: millis(10), deadline_ns: millis(20) };
        Media::new(&workload, 1000, at(5)).unwrap()
    }

    #[derive(Default)]
    struct Caught(Vec<(Time, Segment)>);

    impl Wire for Caught {
        fn send(&mut self, now: Time, _: u32, segment: Segment, ecn: Ecn) {
            assert_eq!(ecn, Ecn::NotEct);
            self.0.push((now, segment));
        }
        fn send_run(&mut self, _: Time, _: u32, _: Segment, _: u32) {
            panic!("no stream")
        }
        fn send_markable_run(&mut self, _: Time, _: u32, _: crate::sender::MarkableRun) {
            panic!("no stream")
        }
    }

    #[test]
    fn frame_leaves_at_once_with_short_last_datagram() {
        let (mut media, mut caught) = (media(), Caught::default());
        assert_eq!(media.send(at(5), 0, &mut caught), at(15));
        assert_eq!(media.send(at(15), 0, &mut caught), at(25));
        let sizes: Vec<u32> = caught.0.iter().map(|(_, segment)| segment.wire_bytes()).collect();
        assert_eq!(sizes, [1052, 1052, 552, 1052, 1052, 552]);
        assert!(caught.0[..3].iter().all(|(time, _)| *time == at(5)));
        assert_eq!((media.datagrams_sent(), media.written_bytes()), (6, 5000));
        assert!(Media::new(&Workload::Bulk, 1000, at(0)).is_none());
    }

    #[test]
    fn frames_are_in_time_late_lost_or_under_way() {
        let (mut media, mut caught) = (media(), Caught::default());
        for frame in 0..5 {
            media.send(at(5 + 10 * frame), 0, &mut caught);
        }
        let mut arrive = |millis, frame, number| {
            let payload = if number == 2 { 500 } else { 1000 };
            media.receive(at(millis), Datagram { frame, number, payload }, true);
        };
        // The first is complete at its deadline, the second 1 ms behind it, in another order.
        for (millis, number) in [(20, 0), (21, 1), (25, 2), (26, 2)] {
            arrive(millis, 0, number);
        }
        for (millis, number) in [(20, 2), (35, 0), (36, 1)] {
            arrive(millis, 1, number);
        }
        // Of the third, one is missing and one comes twice. Of the fourth, one comes in time. The fifth is not due.
        for number in [0, 2, 2, 0] {
            arrive(30, 2, number);
        }
        arrive(40, 3, 1);
        assert_eq!(media.delays_ns, [20_000_000, 21_000_000]);
        let found = media.frames(at(56));
        assert_eq!(found, Frames { sent: 5, in_time: 1, late: 2, lost: 1, lost_packets: 1 });
        assert_eq!((media.arrived, media.delivered_bytes), (12, 2500 + 2500 + 1500 + 1000));
        // At its very deadline a frame may still come in time; a moment later it may not.
        assert_eq!(media.frames(at(55)).late, 1);
        assert_eq!(media.frames(at(55) + Duration::from_nanos(1)).late, 2);
    }

    #[test]
    fn nothing_counts_once_measures_have_ended() {
        let (mut media, mut caught) = (media(), Caught::default());
        media.send(at(5), 0, &mut caught);
        media.receive(at(6), Datagram { frame: 0, number: 0, payload: 1000 }, false);
        assert_eq!((media.arrived, media.delivered_bytes), (1, 0));
        assert_eq!(media.frames(at(30)), Frames { sent: 1, late: 1, ..Frames::default() });
    }
}
