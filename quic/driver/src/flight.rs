//! The notes of packets in flight, by their numbers.
//!
//! A QUIC connection has up to three packet number spaces during its handshake, and a stack may not say to which a packet belongs.
//! The numbers of each space ascend, so packets are kept in lanes with ascending numbers: a packet goes into the lane whose last
//! number is the largest below its own, or into a new one. That takes no more lanes than there are spaces, and after the handshake
//! one lane is left. A number may be in several lanes; when the packet was sent and its size tell which one is meant.

use crate::events::Note;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use fullpipe_units::Time;

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Packet {
    number: u64,
    /// Zero once it left the flight.
    bytes: u32,
    note: Note,
}

impl Packet {
    const fn is_gone(&self) -> bool {
        self.bytes == 0
    }
}

/// What a stack knows of a packet that it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Which {
    /// Its number.
    pub number: u64,
    /// When it was sent, if the stack says so.
    pub sent: Option<Time>,
    /// Its size, if the stack says so.
    pub bytes: Option<u32>,
}

/// The packets in flight.
#[derive(Clone, Debug, Default)]
pub struct Flight {
    lanes: Vec<VecDeque<Packet>>,
}

impl Flight {
    /// Nothing is in flight.
    pub const fn new() -> Flight {
        Flight { lanes: Vec::new() }
    }

    /// A packet was sent; `bytes` is not zero.
    pub fn insert(&mut self, number: u64, bytes: u32, note: Note) {
        debug_assert!(bytes > 0, "a packet in flight has bytes");
        let last = |lane: &VecDeque<Packet>| lane.back().map(|packet| packet.number);
        let fits = |lane: &&mut VecDeque<Packet>| last(lane).is_none_or(|last| last < number);
        let packet = Packet { number, bytes, note };
        match self.lanes.iter_mut().filter(fits).max_by_key(|lane| last(lane)) {
            Some(lane) => lane.push_back(packet),
            None => self.lanes.push(VecDeque::from_iter([packet])),
        }
    }

    /// Takes a packet out of the flight, and returns its size and its note; `None` if it is not in flight. If the description fits
    /// several, the oldest is taken.
    pub fn take(&mut self, which: &Which) -> Option<(u32, Note)> {
        let found = |lane: &VecDeque<Packet>| {
            let place = lane.binary_search_by_key(&which.number, |packet| packet.number).ok()?;
            let packet = lane.get(place).filter(|packet| !packet.is_gone())?;
            let fits = which.sent.is_none_or(|sent| sent == packet.note.sent())
                && which.bytes.is_none_or(|bytes| bytes == packet.bytes);
            fits.then_some((packet.note.index(), place))
        };
        let fitting =
            self.lanes.iter().enumerate().filter_map(|(lane, packets)| Some((found(packets)?, lane)));
        let ((_, place), lane) = fitting.min()?;
        Some(self.remove(lane, place))
    }

    fn remove(&mut self, lane: usize, place: usize) -> (u32, Note) {
        let packets = &mut self.lanes[lane];
        let packet = &mut packets[place];
        let taken = (core::mem::take(&mut packet.bytes), packet.note);
        while packets.front().is_some_and(Packet::is_gone) {
            packets.pop_front();
        }
        if packets.is_empty() && self.lanes.len() > 1 {
            self.lanes.remove(lane);
        }
        taken
    }

    /// Takes the packet out that was sent first of those that `fits` chooses.
    pub fn take_oldest(&mut self, fits: impl Fn(u32) -> bool) -> Option<(u32, Note)> {
        let mut best: Option<(u64, usize, usize)> = None;
        for (lane, packets) in self.lanes.iter().enumerate() {
            let is_meant = |packet: &Packet| !packet.is_gone() && fits(packet.bytes);
            if let Some(place) = packets.iter().position(is_meant) {
                let candidate = (packets[place].note.index(), lane, place);
                best = Some(best.map_or(candidate, |best| best.min(candidate)));
            }
        }
        best.map(|(_, lane, place)| self.remove(lane, place))
    }

    /// How many packets are in flight.
    pub fn len(&self) -> usize {
        self.lanes.iter().flatten().filter(|packet| !packet.is_gone()).count()
    }

    /// Nothing is in flight.
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().flatten().all(Packet::is_gone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::{Events, Start};
    use crate::in_bytes::InBytes;
    use fullpipe_cc::Params;
    use fullpipe_units::Duration;

    const START: Start = Start { now: Time::from_micros(1_000_000), mtu: 1200, seed: 1 };

    /// Packets with these numbers and sizes, a millisecond apart.
    fn flight(packets: &[(u64, u32)]) -> Flight {
        let mut events = Events::new(InBytes::new(&Params::by_name("fixed").unwrap(), &START), &START);
        let mut flight = Flight::new();
        for (ms, (number, bytes)) in packets.iter().enumerate() {
            let note = events.sent(START.now + Duration::from_millis(ms as u64), *bytes, None);
            flight.insert(*number, *bytes, note);
        }
        flight
    }

    fn any(number: u64) -> Which {
        Which { number, sent: None, bytes: None }
    }

    #[test]
    fn spaces_use_minimal_lanes() {
        let flight = flight(&[(0, 1), (0, 2), (1, 3), (0, 4), (1, 5), (2, 6), (1, 7), (3, 8)]);
        assert_eq!((flight.lanes.len(), flight.len()), (3, 8));
    }

    #[test]
    fn one_lane_remains_after_handshake() {
        let mut flight = flight(&[(0, 300), (0, 900), (1, 1200), (2, 1200)]);
        assert_eq!(flight.lanes.len(), 2);
        assert!(flight.take(&Which { bytes: Some(900), ..any(0) }).is_some());
        assert_eq!((flight.lanes.len(), flight.len()), (2, 3));
        while flight.take_oldest(|_| true).is_some() {}
        assert!(flight.is_empty() && flight.lanes.len() == 1 && flight.lanes[0].is_empty());
    }

    #[test]
    fn oldest_matching_packet_is_removed() {
        let mut flight = flight(&[(7, 100), (7, 100), (u64::MAX, 50)]);
        let first = flight.take(&any(7)).map(|(bytes, note)| (bytes, note.index()));
        assert_eq!(first, Some((100, 0)));
        assert!(flight.take(&Which { sent: Some(START.now), ..any(7) }).is_none(), "that one is gone");
        assert!(flight.take(&Which { bytes: Some(99), ..any(7) }).is_none());
        assert!(flight.take(&any(8)).is_none());
        assert!(flight.take(&any(7)).is_some() && flight.take(&any(7)).is_none());
        assert!(flight.take(&any(u64::MAX)).is_some() && flight.is_empty());
    }

    #[test]
    fn oldest_fitting_packet_spans_lanes() {
        let mut flight = flight(&[(5, 1200), (0, 1400), (6, 1300), (1, 1400)]);
        let taken = flight.take_oldest(|bytes| bytes > 1200).map(|(bytes, note)| (bytes, note.index()));
        assert_eq!(taken, Some((1400, 1)));
        assert!(flight.take_oldest(|bytes| bytes > 1400).is_none());
    }
}
