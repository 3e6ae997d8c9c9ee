//! A discipline in front of a link of constant rate, for tests.
//!
//! [`Link`] checks with every call what holds for every discipline: each packet is sent or dropped once, the backlog is what
//! waits and within the limit, the link is not idle while something waits, and only what is ECN-capable is marked. What is left to a test is when
//! packets leave, and which do not.

use std::collections::BTreeMap;

use super::DisciplineConfig;
use crate::discipline::{Discipline, Dropped, Random, Room, Setup, Waiting};
use crate::packet::{Cause, Ecn, Packet, Tally};
use crate::rng::Stream;
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// What a discipline is built with where a test does not care: no limit, 10 Mbit/s, seed 1.
pub(crate) fn setup() -> Setup {
    Setup {
        limit: Room { bytes: Bytes::MAX, packets: None },
        rate: Rate::from_bits_per_sec(10_000_000),
        random: Random(Stream::new(1, 0)),
    }
}

/// `name` with some of its settings changed.
pub(crate) fn config(name: &str, settings: &[(&str, u64)]) -> DisciplineConfig {
    let mut config = DisciplineConfig::by_name(name).expect("the discipline is in the registry");
    for (setting, value) in settings {
        config.set(setting, *value).expect("the value is in its range");
    }
    config
}

/// Milliseconds since the start.
pub(crate) const fn ms(millis: u64) -> Time {
    Time::from_micros(millis * 1_000)
}

/// Microseconds since the start.
pub(crate) const fn us(micros: u64) -> Time {
    Time::from_micros(micros)
}

/// An ECN-capable packet.
pub(crate) const fn ect0(bytes: u32, flow: u32) -> Packet {
    Packet::new(bytes, flow).with_ecn(Ecn::Ect0)
}

/// A packet that a link has sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The how manieth arrival it was, from 0.
    pub(crate) number: u32,
    /// When its transmission began: when it was dequeued.
    pub(crate) at: Time,
    /// When it arrived.
    pub(crate) arrived: Time,
    /// As it was sent.
    pub(crate) packet: Packet,
    /// Its codepoint as it arrived.
    pub(crate) came: Ecn,
}

impl Sent {
    /// Whether the discipline marked it.
    pub(crate) fn is_marked(&self) -> bool {
        self.packet.ecn != self.came
    }

    /// How long it waited.
    pub(crate) fn sojourn(&self) -> Duration {
        self.at.saturating_since(self.arrived)
    }
}

/// A packet that was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lost {
    /// The how manieth arrival it was, from 0.
    pub(crate) number: u32,
    /// When.
    pub(crate) at: Time,
    /// As it arrived.
    pub(crate) packet: Packet,
    pub(crate) cause: Cause,
}

/// What became of all packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// In the order in which they were sent.
    pub(crate) sent: Vec<Sent>,
    /// In the order in which they were dropped.
    pub(crate) lost: Vec<Lost>,
}

impl Outcome {
    /// When packets were dropped.
    pub(crate) fn drop_times(&self) -> Vec<Time> {
        self.lost.iter().map(|lost| lost.at).collect()
    }

    /// When packets that the discipline marked were sent.
    pub(crate) fn mark_times(&self) -> Vec<Time> {
        self.sent.iter().filter(|sent| sent.is_marked()).map(|sent| sent.at).collect()
    }

    /// The numbers of the packets in the order in which they were sent.
    pub(crate) fn order(&self) -> Vec<u32> {
        self.sent.iter().map(|sent| sent.number).collect()
    }

    /// Bytes that a flow has sent.
    pub(crate) fn bytes_of(&self, flow: u32) -> u64 {
        self.sent.iter().filter(|sent| sent.packet.class == flow).map(|sent| sent.packet.bytes as u64).sum()
    }

    /// Checks that packets which are alike in `key` were sent in the order of their arrival.
    pub(crate) fn assert_order(&self, key: impl Fn(&Sent) -> (u32, u8)) {
        let mut latest = BTreeMap::new();
        for sent in &self.sent {
            let before = latest.insert(key(sent), sent.number);
            assert!(before.is_none_or(|before| before < sent.number), "{sent:?} overtaken by {before:?}");
        }
    }
}

/// What is known of a packet that waits.
#[derive(Clone, Copy, Debug)]
struct Held {
    arrived: Time,
    packet: Packet,
}

/// A link and the discipline before it.
#[derive(Debug)]
pub(crate) struct Link {
    /// Its rate, from the next packet on.
    pub(crate) rate: Rate,
    discipline: Box<dyn Discipline>,
    limit: Room,
    held: BTreeMap<u32, Held>,
    backlog: Tally,
    arrivals: u32,
    now: Time,
    /// When it has sent what it sends.
    free: Time,
    outcome: Outcome,
}

impl Link {
    /// A link of the rate in `setup` behind the discipline.
    pub(crate) fn new(config: &DisciplineConfig, setup: Setup) -> Link {
        Link {
            rate: setup.rate,
            limit: setup.limit,
            discipline: config.build(setup),
            held: BTreeMap::new(),
            backlog: Tally::default(),
            arrivals: 0,
            now: Time::ZERO,
            free: Time::ZERO,
            outcome: Outcome::default(),
        }
    }

    /// What waits.
    pub(crate) fn backlog(&self) -> Tally {
        self.backlog
    }

    /// What has become of packets so far.
    pub(crate) fn so_far(&self) -> &Outcome {
        &self.outcome
    }

    /// The most bytes that may wait become this.
    pub(crate) fn set_limit(&mut self, bytes: u64) {
        self.limit = Room { bytes: Bytes::new(bytes), packets: None };
        self.discipline.set_limit(Bytes::new(bytes));
        assert_eq!(self.discipline.backlog(), self.backlog, "what waits stays");
    }

    /// A packet arrives; returns its number.
    pub(crate) fn arrive(&mut self, at: Time, packet: Packet) -> u32 {
        self.run_until(at);
        let number = self.arrivals;
        self.arrivals += 1;
        let before = self.backlog;
        self.held.insert(number, Held { arrived: at, packet });
        self.backlog.packets += 1;
        self.backlog.bytes += Bytes::new(packet.bytes as u64);
        let mut dropped = Dropped::default();
        self.discipline.enqueue(at, Waiting::new(at, packet, number), &mut dropped);
        self.lose(dropped);
        // What waited before a limit was lowered may stay.
        let most = self.limit.packets.map_or(u64::MAX, u64::from).max(before.packets);
        let within = self.backlog.packets <= most && self.backlog.bytes <= self.limit.bytes.max(before.bytes);
        assert!(within, "{:?} wait, {:?} may", self.backlog, self.limit);
        if self.free <= at {
            self.serve(at);
        }
        number
    }

    /// `count` equal packets arrive, one each `every`, the first at `from`.
    pub(crate) fn arrive_steadily(&mut self, from: Time, count: u64, every: Duration, packet: Packet) {
        for index in 0..count {
            self.arrive(from.saturating_add(every.saturating_mul(index)), packet);
        }
    }

    /// Sends what the link can begin to send by `until`. At equal times, it sends before a packet arrives.
    pub(crate) fn run_until(&mut self, until: Time) {
        assert!(until >= self.now, "time goes back");
        while self.backlog.packets > 0 && self.free <= until {
            self.serve(self.free);
        }
        self.now = until;
    }

    /// Sends all that waits.
    pub(crate) fn finish(mut self) -> Outcome {
        while self.backlog.packets > 0 {
            self.serve(self.free);
        }
        assert!(self.held.is_empty(), "lost without trace: {:?}", self.held);
        assert_eq!(self.outcome.sent.len() + self.outcome.lost.len(), self.arrivals as usize);
        self.outcome
    }

    fn serve(&mut self, now: Time) {
        self.now = now;
        let mut dropped = Dropped::default();
        let sent = self.discipline.dequeue(now, &mut dropped);
        if let Some(waiting) = sent {
            let number = waiting.place;
            let (packet, held) = self.release(waiting);
            let came = held.packet.ecn;
            self.outcome.sent.push(Sent { number, at: now, arrived: held.arrived, packet, came });
            self.free = now.saturating_add(self.rate.time_for(Bytes::new(packet.bytes as u64)));
            self.lose(dropped);
        } else {
            self.lose(dropped);
            assert_eq!(self.backlog, Tally::default(), "the link is idle at {now} although packets wait");
        }
    }

    fn lose(&mut self, dropped: Dropped) {
        for (waiting, cause) in dropped.0 {
            let number = waiting.place;
            let (_, held) = self.release(waiting);
            self.outcome.lost.push(Lost { number, at: self.now, packet: held.packet, cause });
        }
        assert_eq!(self.discipline.backlog(), self.backlog, "the backlog is not what waits");
    }

    /// Takes a packet out of what waits: as it is now, and as it came.
    fn release(&mut self, waiting: Waiting) -> (Packet, Held) {
        let packet = Packet::new(waiting.bytes(), waiting.flow()).with_ecn(waiting.ecn());
        let held = self.held.remove(&waiting.place).expect("it was handed over, and not returned before");
        assert_eq!((held.packet.bytes, held.packet.class), (packet.bytes, packet.class));
        assert_eq!(held.arrived, waiting.arrived());
        let marked = held.packet.ecn.is_capable() && packet.ecn == Ecn::Ce;
        assert!(packet.ecn == held.packet.ecn || marked, "{held:?} became {packet:?}");
        self.backlog.packets -= 1;
        self.backlog.bytes = self.backlog.bytes.saturating_sub(Bytes::new(packet.bytes as u64));
        (packet, held)
    }
}
