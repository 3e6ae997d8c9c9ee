//! What a flow has sent and not got acknowledged: which transmissions an acknowledgement is for.

use std::collections::VecDeque;

use fullpipe_units::Time;

use crate::event::{Acknowledgement, SACK_BLOCKS, Sent};

/// A segment that is out.
#[derive(Clone, Copy, Debug)]
struct Out {
    start: u64,
    end: u64,
    /// The number of its last transmission, and when that left.
    number: u64,
    at: Time,
    /// It was sent more than once.
    again: bool,
    /// An acknowledgement has reported it.
    reported: bool,
}

/// The segments that are out, in order.
#[derive(Debug, Default)]
pub(crate) struct Window {
    out: VecDeque<Out>,
    /// What the latest acknowledgement reported, so that it need not be looked at again.
    known: [(u64, u64); SACK_BLOCKS],
    /// Numbers that an acknowledgement is for.
    numbers: Vec<u64>,
}

/// What an acknowledgement says of transmissions.
#[derive(Debug)]
pub(crate) struct Reported<'a> {
    /// The numbers that it is for, ascending; each is told once.
    pub(crate) numbers: &'a [u64],
    /// The round-trip time of the latest of them that was sent once.
    pub(crate) rtt_ns: Option<u64>,
}

impl Window {
    /// Notes a segment with data.
    pub(crate) fn sent(&mut self, at: Time, sent: &Sent) {
        let (start, end) = (sent.start, sent.start + sent.payload as u64);
        let next = self.out.back().map_or(start, |last| last.end);
        if start >= next {
            let again = sent.again.is_some();
            self.out.push_back(Out { start, end, number: sent.number, at, again, reported: false });
            return;
        }
        let mut place = self.split(start);
        if self.out.get(place).is_none_or(|out| end <= out.start) {
            // Its first transmission was not seen.
            self.out.insert(place, Out { start, end, number: sent.number, at, again: true, reported: false });
            return;
        }
        while let Some(out) = self.out.get(place).filter(|out| out.start < end) {
            if out.end > end {
                self.split(end);
            }
            let out = &mut self.out[place];
            (out.number, out.at, out.again) = (sent.number, at, true);
            place += 1;
        }
        // It may reach beyond what was sent before.
        if end > next {
            let (number, reported) = (sent.number, false);
            self.out.push_back(Out { start: next, end, number, at, again: true, reported });
        }
    }

    /// The place of the first segment that ends behind `byte`, which then begins there if it was within it.
    fn split(&mut self, byte: u64) -> usize {
        let place = self.out.partition_point(|out| out.end <= byte);
        match self.out.get_mut(place) {
            Some(out) if out.start < byte => {
                let front = Out { end: byte, ..*out };
                out.start = byte;
                self.out.insert(place, front);
                place + 1
            }
            _ => place,
        }
    }

    /// The number of the last transmission of the segment with this byte.
    pub(crate) fn number(&self, byte: u64) -> Option<u64> {
        let place = self.out.partition_point(|out| out.end <= byte);
        self.out.get(place).filter(|out| out.start <= byte).map(|out| out.number)
    }

    /// Takes an acknowledgement.
    pub(crate) fn acknowledged(&mut self, at: Time, ack: &Acknowledgement) -> Reported<'_> {
        self.numbers.clear();
        let mut latest: Option<Out> = None;
        let mut note = |out: &Out, numbers: &mut Vec<u64>| {
            if numbers.last() != Some(&out.number) {
                numbers.push(out.number);
            }
            if !out.again && latest.is_none_or(|latest| latest.number < out.number) {
                latest = Some(*out);
            }
        };
        while let Some(out) = self.out.front_mut().filter(|out| out.start < ack.ack) {
            if out.end > ack.ack {
                // A part of a segment: what is left is still out.
                out.start = ack.ack;
                break;
            }
            if !out.reported {
                note(out, &mut self.numbers);
            }
            self.out.pop_front();
        }
        for &(start, end) in ack.received() {
            let mut begin = start.max(ack.ack);
            let mut from = begin;
            if let Some(known) = self.known.iter().find(|known| known.0 <= from && from < known.1) {
                (begin, from) = *known;
            }
            // The first may have been reported in part before; one that begins before all that is reported is not whole.
            let mut place = self.out.partition_point(|out| out.end <= from);
            while let Some(out) = self.out.get_mut(place).filter(|out| out.end <= end) {
                if !out.reported && out.start >= begin {
                    out.reported = true;
                    note(out, &mut self.numbers);
                }
                place += 1;
            }
        }
        self.known = [(0, 0); SACK_BLOCKS];
        self.known[..ack.received().len()].copy_from_slice(ack.received());
        self.numbers.sort_unstable();
        self.numbers.dedup();
        let rtt_ns = latest.map(|out| at.saturating_since(out.at).as_nanos());
        Reported { numbers: &self.numbers, rtt_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codepoint::Codepoint;

    fn sent(number: u64, start: u64) -> Sent {
        Sent { number, start, payload: 1_000, ..Sent::default() }
    }

    fn notified(window: &mut Window, blocks: &[(u64, u64)]) -> Vec<u64> {
        let mut sack = [(0, 0); SACK_BLOCKS];
        sack[..blocks.len()].copy_from_slice(blocks);
        let blocks = blocks.len() as u8;
        let ack = Acknowledgement {
            ack: 1_000,
            sack,
            blocks,
            codepoint: Codepoint::default(),
            ..Acknowledgement::default()
        };
        window.acknowledged(Time::ZERO, &ack).numbers.to_vec()
    }

    #[test]
    fn segment_counts_when_fully_reported() {
        let mut window = Window::default();
        for number in 0..4 {
            window.sent(Time::ZERO, &sent(number, number * 1_000));
        }
        assert_eq!(notified(&mut window, &[(2_000, 2_500)]), [0], "a half of the third");
        assert_eq!(notified(&mut window, &[(2_000, 3_000)]), [2], "then all of it");
        assert_eq!(notified(&mut window, &[(3_500, 4_000)]), [], "the other half of the fourth");
        assert_eq!(notified(&mut window, &[(2_000, 4_000)]), [3]);
    }
}
