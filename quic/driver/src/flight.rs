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
