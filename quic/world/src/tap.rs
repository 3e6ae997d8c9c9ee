//! What a log receives of a flow.
//!
//! A connection of a logged run has keys that note each packet: its number and its frames, which only keys see as they are. The
//! sender's packets are told when they are protected, those of the receiver when the sender has opened them. That a packet is lost
//! the stacks tell only by a count, but which ones follows: RFC 9002 section 6.1 takes packets for lost from the lowest number on.
//!
//! Nothing here exists in a run that nobody logs, and the record of one that is logged is the same.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullpipe_export::quic::{Arrival, Drop, Event, Frame, Loss, Packet, Space, Trigger, frames};
use fullpipe_export::{self as export, Codepoint, Log};
use fullpipe_path::{Cause, Ecn};
use fullpipe_scenario::spec::{FlowSpec, Spec};
use fullpipe_units::Time;

use crate::options::HEADER_BYTES;

/// Of packets, a later one must be acknowledged for a packet to be lost by their number (RFC 9002 section 6.1.1; both stacks).
const PACKET_THRESHOLD: u64 = 3;

/// What the reader of a run's log must know.
pub fn log_header(title: &str, spec: &Spec, seed: u64) -> export::Header {
    let flow = |flow: &FlowSpec| export::Flow {
        label: flow.label.clone(),
        controller: flow.controller.text().to_owned(),
        mss: spec.mtu_bytes.saturating_sub(HEADER_BYTES),
        window_scale: 0,
    };
    export::Header {
        title: title.to_owned(),
        world: "quic".to_owned(),
        seed,
        clock: "virtual",
        protocol: export::Protocol::Quic,
        flows: spec.flows.iter().map(flow).collect(),
    }
}

/// What tells the log of one flow.
#[derive(Clone)]
pub(crate) struct Tap {
    recorder: Arc<Mutex<Recorder>>,
    flow: u32,
}

impl fmt::Debug for Tap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tap({})", self.flow)
    }
}

/// The tap of one end of a connection, for its keys.
#[derive(Clone, Debug)]
pub(crate) struct EndTap {
    tap: Tap,
    of_sender: bool,
}

struct Recorder {
    log: Box<dyn Log + Send>,
    now: Time,
    /// Of the datagram that has arrived.
    codepoint: Codepoint,
    flows: Vec<FlowTap>,
}

/// What a flow has shown so far.
#[derive(Default)]
struct FlowTap {
    /// Packets that are in no datagram yet, with their lengths: the receiver's, and the sender's.
    waiting: [VecDeque<(Space, u64, u64)>; 2],
    /// The sender's packets that are neither acknowledged nor lost, and when they left.
    out: [BTreeMap<u64, Time>; 3],
    /// The largest number that is acknowledged.
    largest: [Option<u64>; 3],
    /// How many packets the sender has taken for lost.
    lost: u64,
    state: export::State,
}

impl Tap {
    /// The taps of all flows.
    pub(crate) fn all(flows: usize, log: Box<dyn Log + Send>) -> Vec<Tap> {
        let recorder = Recorder {
            log,
            now: Time::ZERO,
            codepoint: Codepoint::default(),
            flows: (0..flows).map(|_| FlowTap::default()).collect(),
        };
        let recorder = Arc::new(Mutex::new(recorder));
        (0..flows as u32).map(|flow| Tap { recorder: recorder.clone(), flow }).collect()
    }

    pub(crate) fn end(&self, of_sender: bool) -> EndTap {
        EndTap { tap: self.clone(), of_sender }
    }

    fn recorder(&self) -> MutexGuard<'_, Recorder> {
        self.recorder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is told from now on happens now.
    pub(crate) fn at(&self, now: Time) {
        self.recorder().now = now;
    }

    /// A datagram with this codepoint arrives now.
    pub(crate) fn arrives(&self, now: Time, ecn: Ecn) {
        let mut recorder = self.recorder();
        (recorder.now, recorder.codepoint) = (now, Codepoint(ecn as u8));
    }

    /// A datagram of so many bytes is offered to the path. If it was dropped: why, and by which queue.
    pub(crate) fn offered(&self, to_sender: bool, bytes: u64, dropped: Option<(Cause, Option<&str>)>) {
        let recorder = &mut *self.recorder();
        let waiting = &mut recorder.flows[self.flow as usize].waiting[usize::from(!to_sender)];
        let mut left = bytes;
        while let Some(&(space, number, length)) = waiting.front() {
            // What an endpoint answers without its connection is no packet of ours.
            let Some(rest) = left.checked_sub(length) else { break };
            left = rest;
            waiting.pop_front();
            if let Some((cause, queue)) = dropped {
                let drop = Drop { space, number, to_sender, queue, cause: cause_name(cause) };
                recorder.log.take(recorder.now, self.flow, &export::Event::Quic(&Event::Dropped(drop)));
            }
        }
    }

    /// The sender has taken so many packets for lost, since it began.
    pub(crate) fn lost(&self, total: u64) {
        let recorder = &mut *self.recorder();
        let flow = &mut recorder.flows[self.flow as usize];
        let mut more = total.saturating_sub(std::mem::replace(&mut flow.lost, total));
        for space in Space::ALL {
            let (out, Some(largest)) = (&mut flow.out[space as usize], flow.largest[space as usize]) else {
                continue;
            };
            while more > 0
                && let Some(first) = out.first_entry()
                && *first.key() < largest
            {
                let number = *first.key();
                first.remove();
                more -= 1;
                let late = largest >= number + PACKET_THRESHOLD;
                let trigger = if late { Trigger::Packets } else { Trigger::Time };
                let loss = Loss { space, number, trigger };
                recorder.log.take(recorder.now, self.flow, &export::Event::Quic(&Event::Lost(loss)));
            }
        }
    }

    /// What the sender and its controller believe now.
    pub(crate) fn believes(&self, state: export::State) {
        let recorder = &mut *self.recorder();
        if recorder.flows[self.flow as usize].state != state {
            recorder.flows[self.flow as usize].state = state;
            recorder.log.take(recorder.now, self.flow, &export::Event::State(&state));
        }
    }
}

impl EndTap {
    /// A packet is about to be protected: `packet` is all of it, and its payload is behind `header` bytes and in front of `tag`.
    pub(crate) fn sealed(&self, space: Space, number: u64, packet: &[u8], header: usize, tag: usize) {
        let recorder = &mut *self.tap.recorder();
        let flow = &mut recorder.flows[self.tap.flow as usize];
        flow.waiting[usize::from(self.of_sender)].push_back((space, number, packet.len() as u64));
        if !self.of_sender {
            return;
        }
        flow.out[space as usize].insert(number, recorder.now);
        if space == Space::Handshake {
            // A client forgets its Initial packets then (RFC 9001 section 4.9.1).
            flow.out[Space::Initial as usize].clear();
        }
        let payload = packet.get(header..packet.len().saturating_sub(tag)).unwrap_or_default();
        let sent = Packet { space, number, length: packet.len() as u32, payload, rtt_ns: None };
        recorder.log.take(recorder.now, self.tap.flow, &export::Event::Quic(&Event::Sent(sent)));
    }

    /// A packet of so many bytes was opened.
    pub(crate) fn opened(&self, space: Space, number: u64, length: usize, payload: &[u8]) {
        let recorder = &mut *self.tap.recorder();
        let now = recorder.now;
        if !self.of_sender {
            let arrival = Arrival { space, number, codepoint: recorder.codepoint };
            recorder.log.take(now, self.tap.flow, &export::Event::Quic(&Event::Arrived(arrival)));
            return;
        }
        let rtt_ns = recorder.flows[self.tap.flow as usize].received(now, space, payload);
        let received = Packet { space, number, length: length as u32, payload, rtt_ns };
        recorder.log.take(now, self.tap.flow, &export::Event::Quic(&Event::Received(received)));
    }
}

impl FlowTap {
    /// Takes out what a packet acknowledges. Returns the round-trip time that it shows (RFC 9002 section 5.1).
    fn received(&mut self, now: Time, space: Space, payload: &[u8]) -> Option<u64> {
        let mut rtt_ns = None;
        for frame in frames(payload) {
            match frame {
                Frame::Ack(ack) => {
                    let out = &mut self.out[space as usize];
                    let newly = out.get(&ack.largest()).map(|sent| now.saturating_since(*sent).as_nanos());
                    rtt_ns = newly.or(rtt_ns);
                    for (lowest, highest) in ack.ranges() {
                        while let Some((&number, _)) = out.range(lowest..=highest).next() {
                            out.remove(&number);
                        }
                    }
                    let largest = &mut self.largest[space as usize];
                    *largest = (*largest).max(Some(ack.largest()));
                }
                // A client forgets its Handshake packets then (RFC 9001 section 4.9.2).
                Frame::HandshakeDone => self.out[Space::Handshake as usize].clear(),
                _ => {}
            }
        }
        rtt_ns
    }
}

fn cause_name(cause: Cause) -> &'static str {
    match cause {
        Cause::QueueFull => "queue_full",
        Cause::Lost => "lost",
        Cause::Policed => "policed",
        Cause::Oversize => "oversize",
        Cause::Early => "early",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Default)]
    struct Reported(Arc<Mutex<Vec<String>>>);

    impl Log for Reported {
        fn take(&mut self, at: Time, _: u32, event: &export::Event<'_>) {
            let text = match event {
                export::Event::Quic(Event::Lost(loss)) => format!("lost {} {:?}", loss.number, loss.trigger),
                export::Event::Quic(Event::Received(packet)) => format!("rtt {:?}", packet.rtt_ns),
                export::Event::Quic(Event::Dropped(drop)) => {
                    format!("dropped {} {}", drop.number, drop.cause)
                }
                _ => return,
            };
            self.0.lock().unwrap().push(format!("{}: {text}", at.as_nanos()));
        }
    }

    fn tap() -> (Tap, Reported) {
        let reported = Reported::default();
        (Tap::all(1, Box::new(reported.clone())).remove(0), reported)
    }

    #[test]
    fn lowest_unacked_numbers_are_lost() {
        let (tap, reported) = tap();
        let end = tap.end(true);
        for number in 0..8 {
            tap.at(Time::from_nanos(number));
            end.sealed(Space::Data, number, &[0x01; 40], 10, 16);
        }
        tap.at(Time::from_nanos(100));
        tap.lost(1);
        assert!(reported.0.lock().unwrap().is_empty(), "nothing is acknowledged");
        // 5 and 1.
        end.opened(Space::Data, 0, 30, &[0x02, 5, 0, 1, 0, 2, 0]);
        tap.lost(4);
        // The same once more shows no time, and what is past the largest is not lost.
        end.opened(Space::Data, 1, 30, &[0x02, 5, 0, 0, 0]);
        tap.lost(9);
        let expected = [
            "100: rtt Some(95)",
            "100: lost 0 Packets",
            "100: lost 2 Packets",
            "100: lost 3 Time",
            "100: rtt None",
            "100: lost 4 Time",
        ];
        assert_eq!(*reported.0.lock().unwrap(), expected);
    }

    #[test]
    fn dropped_datagram_drops_all_packets() {
        let (tap, reported) = tap();
        let end = tap.end(false);
        for (number, length) in [(0, 40), (1, 60), (2, 50)] {
            end.sealed(Space::Data, number, &vec![0; length], 10, 16);
        }
        // An answer without a connection, which is shorter than any packet.
        tap.offered(true, 20, Some((Cause::Lost, None)));
        tap.offered(true, 100, Some((Cause::QueueFull, Some("bottleneck"))));
        tap.offered(true, 50, None);
        assert_eq!(*reported.0.lock().unwrap(), ["0: dropped 0 queue_full", "0: dropped 1 queue_full"]);
    }

    #[test]
    fn packets_without_keys_are_not_lost() {
        let (tap, reported) = tap();
        let end = tap.end(true);
        end.sealed(Space::Initial, 0, &[0; 40], 10, 16);
        end.sealed(Space::Initial, 1, &[0; 40], 10, 16);
        end.opened(Space::Initial, 0, 30, &[0x02, 1, 0, 0, 0]);
        end.sealed(Space::Handshake, 0, &[0; 40], 10, 16);
        tap.lost(1);
        assert_eq!(*reported.0.lock().unwrap(), ["0: rtt Some(0)"]);
    }
}
