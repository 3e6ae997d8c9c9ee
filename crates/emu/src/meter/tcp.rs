//! A TCP connection by its sequence numbers.
//!
//! Each direction of it is a [`Stream`]: what its sender sent, and what its receiver acknowledged. A byte is delivered when the
//! receiver acknowledges it, at the receiver's end of the path. A round-trip time is from when a segment enters the path to when
//! the acknowledgement that first covers it leaves the path back, at the sender's end of both. As RFC 6298 section 3 (Karn) wants
//! it, no segment counts that was sent twice; nor does an acknowledgement that also covers one of these, because the other
//! segments then waited for it.

use std::collections::VecDeque;

use fullpipe_units::{Duration, Time};

use super::packet::Segment;
use crate::frame::flag;

/// Segments of a stream that are remembered. Those beyond give no round-trip time: 90 MB in flight.
const MOST_OUTSTANDING: usize = 1 << 16;
/// Gaps in what was seen of a stream that are remembered: it is sent in order, unless it is forged.
const MOST_GAPS: usize = 64;
/// Where the numbers begin, so that earlier ones are above zero.
const ORIGIN: u64 = 1 << 40;

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// `None` before the first segment.
    numbers: Option<Numbers>,
    /// In order of their numbers.
    outstanding: VecDeque<Outstanding>,
    /// Numbers below the next one whose bytes were not seen, from one up to another.
    gaps: Vec<(u64, u64)>,
    /// Bytes of payload that were seen once or more, and not counted as delivered yet.
    fresh: u64,
    /// It was reset: nothing more will arrive.
    is_reset: bool,
}

/// Sequence numbers that do not wrap.
#[derive(Clone, Copy, Debug)]
struct Numbers {
    /// The first byte of payload.
    base: u64,
    /// Behind the last byte of payload that was sent.
    next: u64,
    /// Up to here it was acknowledged, at the receiver's end.
    acknowledged: u64,
}

#[derive(Clone, Copy, Debug)]
struct Outstanding {
    start: u64,
    end: u64,
    sent: Time,
    again: bool,
    sacked: bool,
}

/// What became of a segment that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sent {
    /// It has no payload.
    Nothing,
    /// Payload that was not sent before.
    New,
    /// All or some of it was sent before.
    Again,
}

impl Stream {
    /// A segment enters the path to the receiver.
    pub(super) fn on_sent(&mut self, segment: &Segment, at: Time) -> Sent {
        let begins = segment.flags & flag::SYN != 0;
        let first = segment.sequence.wrapping_add(u32::from(begins));
        // Another connection of the same ports: the same numbers are the same SYN again.
        let another = begins && self.numbers.is_some_and(|numbers| numbers.base as u32 != first);
        if another || self.numbers.is_none() {
            let base = ORIGIN | u64::from(first);
            self.numbers = Some(Numbers { base, next: base, acknowledged: base });
            self.outstanding.clear();
            self.gaps.clear();
            self.fresh = 0;
            self.is_reset = false;
        }
        let numbers = self.numbers.as_mut().expect("set above");
        if segment.payload == 0 {
            return Sent::Nothing;
        }
        let start = unwrapped(first, numbers.next);
        let end = start.wrapping_add(u64::from(segment.payload));
        let again = start < numbers.next;
        self.fresh += fill(&mut self.gaps, start, end);
        // A gap may have become two. Of those that are forgotten, no byte counts.
        self.gaps.truncate(MOST_GAPS);
        if end > numbers.next {
            self.fresh += end - start.max(numbers.next);
            if start > numbers.next && self.gaps.len() < MOST_GAPS {
                self.gaps.push((numbers.next, start));
            }
            if self.outstanding.len() < MOST_OUTSTANDING {
                let start = start.max(numbers.next);
                self.outstanding.push_back(Outstanding { start, end, sent: at, again, sacked: false });
            }
            numbers.next = end;
        }
        if !again {
            return Sent::New;
        }
        let from = self.outstanding.partition_point(|one| one.end <= start);
        for one in self.outstanding.range_mut(from..).take_while(|one| one.start < end) {
            one.again = true;
        }
        Sent::Again
    }

    /// A segment of either direction resets the connection.
    pub(super) fn on_reset(&mut self) {
        self.is_reset = true;
    }

    /// Bytes that were sent, and not acknowledged at the receiver's end.
    pub(super) fn on_its_way(&self) -> u64 {
        let numbers = self.numbers.filter(|_| !self.is_reset);
        numbers.map_or(0, |numbers| (numbers.next - numbers.acknowledged).min(self.fresh))
    }

    /// An acknowledgement leaves its receiver; returns how many bytes it is the first to acknowledge, of those that were seen:
    /// the numbers of a program that forges its segments say nothing about how much it sent.
    pub(super) fn on_acknowledged(&mut self, ack: u32) -> u64 {
        let Some(numbers) = &mut self.numbers else { return 0 };
        // The sequence number of a FIN is no byte, and what was never sent cannot be there.
        let upto = unwrapped(ack, numbers.acknowledged).min(numbers.next);
        let more = upto.saturating_sub(numbers.acknowledged);
        numbers.acknowledged += more;
        let upto = numbers.acknowledged;
        self.gaps.retain(|(_, end)| *end > upto);
        let credited = more.min(self.fresh);
        self.fresh -= credited;
        credited
    }

    /// An acknowledgement reaches the sender; returns the round-trip time that it tells, if it does.
    pub(super) fn on_ack_arrived(&mut self, segment: &Segment, at: Time) -> Option<Duration> {
        let numbers = self.numbers?;
        let covered = segment
            .ack
            .map(|ack| unwrapped(ack, numbers.next))
            .filter(|ack| *ack <= numbers.next.wrapping_add(1));
        let (mut newest, mut ambiguous) = (None, false);
        while let Some(first) =
            self.outstanding.front().copied().filter(|first| covered.is_some_and(|ack| first.end <= ack))
        {
            self.outstanding.pop_front();
            if !first.sacked {
                newest = Some(first.sent);
                ambiguous |= first.again;
            }
        }
        if newest.is_none() {
            let (left, right) = segment.sacked?;
            (newest, ambiguous) =
                self.on_sacked(unwrapped(left, numbers.next), unwrapped(right, numbers.next));
        }
        newest.filter(|_| !ambiguous).map(|sent| at.saturating_since(sent))
    }

    /// Marks what a block covers; returns when the newest of it was sent that no block had covered before, and whether that was
    /// sent twice.
    fn on_sacked(&mut self, left: u64, right: u64) -> (Option<Time>, bool) {
        let upto = self.outstanding.partition_point(|one| one.end <= right);
        let from = self.outstanding.partition_point(|one| one.start < left).min(upto);
        let (mut newest, mut again) = (None, false);
        // From its right edge to what was covered before: each segment is looked at about once.
        for one in self.outstanding.range_mut(from..upto).rev().take_while(|one| !one.sacked) {
            one.sacked = true;
            if newest.is_none() {
                (newest, again) = (Some(one.sent), one.again);
            }
        }
        (newest, again)
    }
}

/// Takes the bytes from `start` to `end` out of the gaps; returns how many of them were in gaps.
fn fill(gaps: &mut Vec<(u64, u64)>, start: u64, end: u64) -> u64 {
    let mut filled = 0;
    let mut at = 0;
    while at < gaps.len() {
        let (from, to) = gaps[at];
        let (left, right) = (from.max(start), to.min(end));
        if left >= right {
            at += 1;
            continue;
        }
        filled += right - left;
        let rest = [(from, left), (right, to)].into_iter().filter(|(from, to)| from < to);
        let rest: Vec<_> = rest.collect();
        let kept = rest.len();
        gaps.splice(at..=at, rest);
        at += kept;
    }
    filled
}

/// The number of 64 bits that is nearest to `reference` and ends in these 32 bits.
fn unwrapped(number: u32, reference: u64) -> u64 {
    let ahead = number.wrapping_sub(reference as u32) as i32;
    reference.wrapping_add_signed(i64::from(ahead))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(given: u64) -> Time {
        Time::ZERO + Duration::from_millis(given)
    }

    fn data(sequence: u32, payload: u32) -> Segment {
        Segment { sequence, payload, ..Segment::default() }
    }

    fn ack(number: u32) -> Segment {
        Segment { ack: Some(number), ..Segment::default() }
    }

    fn sack(number: u32, block: (u32, u32)) -> Segment {
        Segment { sacked: Some(block), ..ack(number) }
    }

    /// A stream whose numbers begin shortly before they wrap, after its SYN.
    fn stream() -> (Stream, u32) {
        let mut stream = Stream::default();
        let syn = Segment { sequence: u32::MAX - 1000, flags: flag::SYN, ..Segment::default() };
        assert_eq!(stream.on_sent(&syn, ms(0)), Sent::Nothing);
        (stream, syn.sequence + 1)
    }

    #[test]
    fn bytes_deliver_once_across_wrap() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        assert_eq!(stream.on_acknowledged(base), 0, "the SYN is no byte");
        for number in 0..4 {
            assert_eq!(stream.on_sent(&data(at(number * 500), 500), ms(1)), Sent::New);
        }
        assert_eq!(stream.on_acknowledged(at(1500)), 1500);
        assert_eq!(stream.on_acknowledged(at(1000)), 0);
        // Behind the last byte is the FIN; beyond that nobody has sent anything.
        assert_eq!(stream.on_acknowledged(at(2001)), 500);
        assert_eq!(stream.on_acknowledged(at(9000)), 0);
        assert_eq!(Stream::default().on_acknowledged(5), 0);
    }

    #[test]
    fn rtt_is_of_newest_covered_segment() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        stream.on_sent(&data(at(0), 500), ms(1));
        stream.on_sent(&data(at(500), 500), ms(3));
        assert_eq!(stream.on_ack_arrived(&ack(at(499)), ms(20)), None);
        assert_eq!(stream.on_ack_arrived(&ack(at(1000)), ms(23)), Some(Duration::from_millis(20)));
        assert_eq!(stream.on_ack_arrived(&ack(at(1000)), ms(29)), None, "it tells nothing new");
    }

    #[test]
    fn retransmission_gives_no_rtt() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        for number in 0..4 {
            stream.on_sent(&data(at(number * 500), 500), ms(u64::from(number)));
        }
        assert_eq!(stream.on_sent(&data(at(500), 500), ms(50)), Sent::Again);
        assert_eq!(stream.on_ack_arrived(&ack(at(500)), ms(60)), Some(Duration::from_millis(60)));
        // The third and the fourth waited for the second.
        assert_eq!(stream.on_ack_arrived(&ack(at(2000)), ms(70)), None);
    }

    #[test]
    fn sack_gives_rtt_of_newly_covered() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        for number in 0..5 {
            stream.on_sent(&data(at(number * 500), 500), ms(u64::from(number)));
        }
        // The first is lost.
        assert_eq!(
            stream.on_ack_arrived(&sack(base, (at(500), at(1000))), ms(21)),
            Some(Duration::from_millis(20))
        );
        assert_eq!(
            stream.on_ack_arrived(&sack(base, (at(500), at(2000))), ms(23)),
            Some(Duration::from_millis(20))
        );
        assert_eq!(stream.on_ack_arrived(&sack(base, (at(500), at(2000))), ms(29)), None);
        assert_eq!(stream.on_sent(&data(at(0), 500), ms(30)), Sent::Again);
        // It covers the lost one, those that blocks have covered, and one more that waited.
        assert_eq!(stream.on_ack_arrived(&ack(at(2500)), ms(50)), None);
        assert!(stream.outstanding.is_empty());
    }

    #[test]
    fn partly_new_segment_is_retransmission() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        stream.on_sent(&data(at(0), 500), ms(1));
        assert_eq!(stream.on_sent(&data(at(250), 500), ms(2)), Sent::Again);
        assert_eq!(stream.on_acknowledged(at(750)), 750);
        assert_eq!(stream.on_ack_arrived(&ack(at(750)), ms(9)), None);
    }

    #[test]
    fn new_connection_on_same_ports_restarts() {
        let (mut stream, base) = stream();
        stream.on_sent(&data(base, 500), ms(1));
        assert_eq!(stream.on_acknowledged(base.wrapping_add(500)), 500);
        let syn = Segment { sequence: 77, flags: flag::SYN, ..Segment::default() };
        stream.on_sent(&syn, ms(2));
        assert_eq!(stream.on_sent(&data(78, 10), ms(3)), Sent::New);
        // The SYN again is no other connection.
        stream.on_sent(&syn, ms(4));
        assert_eq!(stream.on_acknowledged(88), 10);
    }

    #[test]
    fn only_observed_bytes_are_delivered() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        stream.on_sent(&data(base, 1), ms(1));
        stream.on_sent(&data(at(0x7fff_0000), 1), ms(1));
        assert_eq!(stream.on_acknowledged(at(0x7fff_0001)), 2);
    }

    #[test]
    fn unacknowledged_is_in_flight_unless_reset() {
        let (mut stream, base) = stream();
        assert_eq!(stream.on_its_way(), 0);
        stream.on_sent(&data(base, 500), ms(1));
        stream.on_sent(&data(base.wrapping_add(500), 500), ms(1));
        stream.on_acknowledged(base.wrapping_add(300));
        assert_eq!(stream.on_its_way(), 700);
        stream.on_reset();
        assert_eq!(stream.on_its_way(), 0);
        let syn = Segment { sequence: 77, flags: flag::SYN, ..Segment::default() };
        stream.on_sent(&syn, ms(2));
        stream.on_sent(&data(78, 10), ms(3));
        assert_eq!(stream.on_its_way(), 10);
    }

    #[test]
    fn gap_filling_bytes_count_once() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        // The second of four comes last, and its middle first.
        for (offset, payload) in [(0, 500), (1000, 1000), (600, 100), (500, 500), (500, 500)] {
            stream.on_sent(&data(at(offset), payload), ms(1));
        }
        assert!(stream.gaps.is_empty());
        assert_eq!(stream.on_acknowledged(at(2001)), 2000);
        assert_eq!(stream.fresh, 0);
    }

    /// Numbers that a generator of 32 bits gives.
    fn generated(mut number: u32) -> impl Iterator<Item = u32> {
        std::iter::repeat_with(move || {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            number
        })
    }

    #[test]
    fn delivered_never_exceeds_sent() {
        for seed in 0..200 {
            let mut numbers = generated(seed);
            let mut draw = || numbers.next().unwrap();
            let mut stream = Stream::default();
            let (mut sent, mut delivered) = (0, 0);
            // Small numbers meet, and wrap; a few are far away.
            for _ in 0..2_000 {
                let far = if draw() >> 28 == 0 { draw() } else { 0 };
                let sequence = (draw() >> 18).wrapping_sub(1 << 13).wrapping_add(far);
                let flags = if draw() >> 27 == 0 { flag::SYN } else { 0 };
                let payload = draw() >> 21;
                stream.on_sent(&Segment { sequence, flags, payload, ..Segment::default() }, ms(1));
                sent += u64::from(payload);
                let ack = if draw() >> 31 == 0 { sequence.wrapping_add(draw() >> 20) } else { draw() };
                delivered += stream.on_acknowledged(ack);
                assert!(delivered <= sent, "seed {seed}: {delivered} of {sent}");
                assert!(stream.gaps.len() <= MOST_GAPS);
            }
            assert!(delivered > 0, "seed {seed}");
        }
    }

    #[test]
    fn in_order_data_is_delivered_completely() {
        // Sent again or not, acknowledged at once or not, with numbers that wrap.
        for seed in 0..200 {
            let mut numbers = generated(seed);
            let mut draw = || numbers.next().unwrap();
            let (mut stream, base) = stream();
            let (mut next, mut delivered) = (0_u32, 0);
            for _ in 0..500 {
                let payload = draw() >> 21;
                let back = (draw() >> 22).min(next);
                let start = if draw() >> 30 == 0 { next - back } else { next };
                stream.on_sent(&data(base.wrapping_add(start), payload), ms(1));
                next = next.max(start + payload);
                if draw() >> 30 == 0 {
                    delivered += stream.on_acknowledged(base.wrapping_add(next));
                }
            }
            delivered += stream.on_acknowledged(base.wrapping_add(next));
            assert_eq!(delivered, u64::from(next), "seed {seed}");
        }
    }

    #[test]
    fn hostile_numbers_use_bounded_memory() {
        let mut stream = Stream::default();
        let mut number = 1_u32;
        for step in 0..300_000_u32 {
            number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let flags = if step % 97 == 0 { flag::SYN } else { 0 };
            stream.on_sent(
                &Segment { sequence: number, flags, payload: number >> 16, ..Segment::default() },
                ms(1),
            );
            stream.on_acknowledged(number.rotate_left(7));
            stream.on_ack_arrived(&sack(number.rotate_left(9), (number, number.rotate_left(3))), ms(2));
        }
        let mut stream = Stream::default();
        for step in 0..2 * MOST_OUTSTANDING as u32 {
            stream.on_sent(&data(step * 10, 10), ms(1));
        }
        assert_eq!(stream.outstanding.len(), MOST_OUTSTANDING);
    }
}
