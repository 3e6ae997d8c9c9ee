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
/// Where the numbers begin, so that earlier ones are above zero.
const ORIGIN: u64 = 1 << 40;

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    /// `None` before the first segment.
    numbers: Option<Numbers>,
    /// In order of their numbers.
    outstanding: VecDeque<Outstanding>,
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
        }
        let numbers = self.numbers.as_mut().expect("set above");
        if segment.payload == 0 {
            return Sent::Nothing;
        }
        let start = unwrapped(first, numbers.next);
        let end = start.wrapping_add(u64::from(segment.payload));
        let again = start < numbers.next;
        if end > numbers.next {
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

    /// An acknowledgement leaves its receiver; returns how many bytes it is the first to acknowledge.
    pub(super) fn on_acknowledged(&mut self, ack: u32) -> u64 {
        let Some(numbers) = &mut self.numbers else { return 0 };
        // The sequence number of a FIN is no byte, and what was never sent cannot be there.
        let upto = unwrapped(ack, numbers.acknowledged).min(numbers.next);
        let more = upto.saturating_sub(numbers.acknowledged);
        numbers.acknowledged += more;
        more
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
    fn bytes_are_delivered_once_and_numbers_wrap() {
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
    fn a_round_trip_is_that_of_the_newest_segment_that_an_ack_covers() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        stream.on_sent(&data(at(0), 500), ms(1));
        stream.on_sent(&data(at(500), 500), ms(3));
        assert_eq!(stream.on_ack_arrived(&ack(at(499)), ms(20)), None);
        assert_eq!(stream.on_ack_arrived(&ack(at(1000)), ms(23)), Some(Duration::from_millis(20)));
        assert_eq!(stream.on_ack_arrived(&ack(at(1000)), ms(29)), None, "it tells nothing new");
    }

    #[test]
    fn what_was_sent_twice_tells_no_round_trip() {
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
    fn a_block_tells_the_round_trip_of_what_it_is_the_first_to_cover() {
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
    fn a_segment_that_is_partly_new_counts_as_sent_again() {
        let (mut stream, base) = stream();
        let at = |offset: u32| base.wrapping_add(offset);
        stream.on_sent(&data(at(0), 500), ms(1));
        assert_eq!(stream.on_sent(&data(at(250), 500), ms(2)), Sent::Again);
        assert_eq!(stream.on_acknowledged(at(750)), 750);
        assert_eq!(stream.on_ack_arrived(&ack(at(750)), ms(9)), None);
    }

    #[test]
    fn another_connection_of_the_same_ports_begins_anew() {
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
    fn hostile_numbers_are_harmless_and_memory_is_bounded() {
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
