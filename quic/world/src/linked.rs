//! A flow whose stack is linked in: both ends of its connection, and both applications.

use bytes::BytesMut;
use fullpipe_cc::{CaState, Limits, Phase};
use fullpipe_export as export;
use fullpipe_noq::View;
use fullpipe_path::Ecn;
use fullpipe_record::Sample;
use fullpipe_scenario::spec::{EcnUse, FlowSpec, Randomness, Spec};
use fullpipe_units::{Duration, Time};

use crate::app::{Sink, Source};
use crate::cc::{Chosen, Factory, phase_by_threshold};
use crate::endpoint::{Counted, Endpoint, Event, Setup, State, Tally};
use crate::flow::{Ended, Ends, Flow, Sampled, payload};
use crate::noq;
use crate::options::Options;
use crate::quinn;
use crate::tap::Tap;
use crate::wire::Wire;

/// The windows of flow control follow the scenario's largest TCP buffers, but not above this: beyond 20 Gbit/s at 100 ms, a larger
/// one only takes memory.
const MOST_WINDOW: u64 = 256 << 20;

/// Payload that Linux offers for each 256 bytes of a receive buffer's memory: a segment of 1448 bytes takes 2304 (`scaling_ratio`),
/// as in the simulator.
const PAYLOAD_PER_256: u64 = 160;

/// The window of flow control for a receive buffer of so many bytes.
pub(crate) fn receive_window(buffer: fullpipe_units::Bytes) -> u64 {
    let offered = u128::from(buffer.as_u64()) * u128::from(PAYLOAD_PER_256) / 256;
    u64::try_from(offered).unwrap_or(u64::MAX).min(MOST_WINDOW)
}

/// How long a stack waits at least from one timer to the next. Where a byte takes less than half a nanosecond, above 16 Gbit/s,
/// noq's pacer asks for no time at all (noq-proto 1.4.0, `Pacer::delay_at_rate`): a real clock moves on by itself, this one would not.
const TICK: Duration = Duration::from_nanos(1);

/// A flow. What is `None` before it starts is made then.
pub(crate) struct Linked {
    index: u32,
    label: String,
    start: Time,
    stop: Time,
    /// Bytes of UDP payload in a full datagram: the unit of windows in records.
    unit: u64,
    batch: usize,
    /// Whether packets keep the ECN codepoint that the stack gives them.
    ecn: bool,
    /// Everything that it will ever send; `None` if that has no end.
    total: Option<u64>,
    controller: Chosen,
    setup: Setup,
    sender: Option<Box<dyn Endpoint>>,
    receiver: Option<Box<dyn Endpoint>>,
    source: Source,
    sink: Sink,
    sender_due: Time,
    receiver_due: Time,
    own_due: Time,
    connected: bool,
    forward: Ends,
    reverse: Ends,
    ended: Option<Ended>,
    sampled: Sampled,
}

/// Bytes of a full datagram that are not a stream's. The packet's header and tag have 27: a byte of flags, 8 of a connection's id, 2
/// of its number, 16 of the tag (RFC 9000 section 17.3.1, RFC 9001 section 5.3). The frame has 7: its type, the stream, an offset of 4,
/// and a byte more where a length is needed (RFC 9000 section 19.8).
const AROUND_STREAM: u64 = 27 + 7;

impl Linked {
    pub(crate) fn new(
        index: usize,
        spec: &Spec,
        flow: &FlowSpec,
        seed: u64,
        options: Options,
        controller: Chosen,
    ) -> Linked {
        let start = flow.start_time(index, seed);
        let stop = flow.stop_ns.unwrap_or(Time::NEVER);
        let unit = payload(spec);
        let of_host = |host| fullpipe_path::mix(Randomness::Host(host).seed(seed).wrapping_add(index as u64));
        let window = |bytes: fullpipe_units::Bytes| bytes.as_u64().min(MOST_WINDOW);
        let setup = Setup {
            seeds: [of_host(0), of_host(1)],
            payload: unit as u16,
            send_window: window(spec.hosts.tcp_wmem_bytes[2]),
            receive_window: receive_window(spec.hosts.tcp_rmem_bytes[2]),
            crypto: options.crypto,
            max_window: controller.max_window,
            tally: Tally::new(),
            tap: None,
        };
        Linked {
            index: index as u32,
            label: flow.label.clone(),
            start,
            stop,
            unit,
            batch: usize::from(options.batch.min(spec.hosts.gso_max_segs).max(1)),
            ecn: flow.ecn(&spec.hosts) != EcnUse::None,
            total: flow.workload.total_bytes().map(fullpipe_units::Bytes::as_u64),
            controller,
            setup,
            sender: None,
            receiver: None,
            source: Source::new(&flow.workload, start),
            sink: Sink::new(&flow.workload, start),
            sender_due: Time::NEVER,
            receiver_due: Time::NEVER,
            own_due: start.min(stop),
            connected: false,
            forward: Ends::default(),
            reverse: Ends::default(),
            ended: None,
            sampled: Sampled::new(start),
        }
    }

    /// Connects it to the log, if there is a tap. Called before the flow starts.
    pub(crate) fn tap(&mut self, tap: Option<Tap>) {
        self.setup.tap = tap;
    }

    fn on_own_timer(&mut self, now: Time) -> Result<(), String> {
        if self.stop <= now {
            self.stop = Time::NEVER;
            self.end(now, false);
            self.sink.stop();
            if let Some(sender) = &mut self.sender {
                self.source.stop(&mut **sender);
            }
        } else if self.start <= now && self.sender.is_none() && self.ended.is_none() {
            let (mut sender, receiver): (Box<dyn Endpoint>, Box<dyn Endpoint>) =
                match &self.controller.factory {
                    Factory::Noq(factory) => {
                        let (sender, receiver) = noq::pair(&self.setup, factory.clone());
                        (Box::new(sender), Box::new(receiver))
                    }
                    Factory::Quinn(factory) => {
                        let (sender, receiver) = quinn::pair(&self.setup, factory.clone());
                        (Box::new(sender), Box::new(receiver))
                    }
                    Factory::Outside(_) => unreachable!("it is no stack that is linked in"),
                };
            sender.connect(now)?;
            (self.sender, self.receiver) = (Some(sender), Some(receiver));
        }
        Ok(())
    }

    fn update_own_due(&mut self) {
        let starts = self.sender.is_none() && self.ended.is_none();
        let start = if starts { self.start } else { Time::NEVER };
        self.own_due = start.min(self.stop).min(self.source.due()).min(self.sink.due());
    }

    fn end(&mut self, at: Time, completed: bool) {
        if self.ended.is_none() {
            self.ended = Some(self.measured(at, completed));
        }
    }

    /// What the sender's connection says of itself; `None` before it starts.
    pub(crate) fn state(&mut self) -> Option<State> {
        self.sender.as_mut().map(|sender| sender.state())
    }

    /// What the sender's stack has counted; `None` before it starts.
    fn counted(&mut self) -> Option<Counted> {
        self.sender.as_mut().map(|sender| sender.counted())
    }

    /// One of our controllers as it is.
    fn seen(&self) -> Option<View> {
        self.controller.watch.as_ref()?.view()
    }

    /// What the sender's controller is doing; `state` is that of now.
    fn phase(&mut self, state: &State, seen: Option<&View>) -> Phase {
        if let Some(view) = seen {
            return view.snapshot.phase;
        }
        let reported = match &mut self.sender {
            Some(sender) if self.setup.tally.is_bbr() => sender.phase_of_bbr(),
            _ => None,
        };
        reported.unwrap_or_else(|| phase_by_threshold(state.window, state.ssthresh))
    }

    /// Tells the log what the sender believes.
    fn report_state(&mut self) {
        if !self.connected {
            return;
        }
        let Some(state) = self.state() else { return };
        let seen = self.seen();
        let phase = self.phase(&state, seen.as_ref());
        let recovery = self.recovery(seen.as_ref());
        let Some(tap) = &self.setup.tap else { return };
        tap.believes(export::State {
            cwnd: Some(state.window),
            ssthresh: state.ssthresh,
            pacing_bps: state.pacing.map(|rate| rate.saturating_mul(8)),
            in_flight: Some(self.setup.tally.in_flight()),
            segments_in_flight: None,
            srtt_ns: (state.srtt != Duration::ZERO).then(|| state.srtt.as_nanos()),
            min_rtt_ns: self.setup.tally.min_rtt().map(|rtt| rtt.as_nanos()),
            phase: Some(phase.name()),
            recovery: Some(recovery.name()),
        });
    }

    /// The recovery state: that of one of ours, or what follows from what the stack tells its own.
    fn recovery(&self, seen: Option<&View>) -> CaState {
        seen.map_or_else(|| self.setup.tally.state(), |view| view.state)
    }

    /// A rate of datagrams, which is what the stacks and their controllers know, as one of the streams' bytes in full datagrams.
    fn of_streams(&self, rate: u64) -> u64 {
        let share = self.unit.saturating_sub(AROUND_STREAM);
        u64::try_from(u128::from(rate) * u128::from(share) / u128::from(self.unit)).unwrap_or(u64::MAX)
    }
}

impl Flow for Linked {
    fn label(&self) -> &str {
        &self.label
    }

    fn start(&self) -> Time {
        self.start
    }

    fn ended(&self) -> Option<Ended> {
        self.ended
    }

    #[inline]
    fn next(&self) -> Time {
        self.own_due.min(self.sender_due).min(self.receiver_due)
    }

    fn on_timer(
        &mut self,
        now: Time,
        _horizon: Time,
        forward: &mut Wire,
        reverse: &mut Wire,
        scratch: &mut Vec<u8>,
    ) -> Result<(), String> {
        if self.own_due <= now {
            self.on_own_timer(now)?;
            self.drive_sender(now, forward, scratch)?;
            self.drive_receiver(now, reverse, scratch)?;
        }
        if self.sender_due <= now {
            if let Some(sender) = &mut self.sender {
                sender.on_timeout(now);
            }
            self.drive_sender(now, forward, scratch)?;
            self.sender_due = self.sender_due.max(now + TICK);
        }
        if self.receiver_due <= now {
            if let Some(receiver) = &mut self.receiver {
                receiver.on_timeout(now);
            }
            self.drive_receiver(now, reverse, scratch)?;
            self.receiver_due = self.receiver_due.max(now + TICK);
        }
        Ok(())
    }

    fn on_forward(
        &mut self,
        now: Time,
        ecn: Ecn,
        datagram: BytesMut,
        reverse: &mut Wire,
        scratch: &mut Vec<u8>,
    ) {
        self.forward.arrived += 1;
        let Some(receiver) = &mut self.receiver else { return };
        let tap = self.setup.tap.as_ref();
        if let Some(tap) = tap {
            tap.arrives(now, ecn);
        }
        scratch.clear();
        if let Some(bytes) = receiver.receive(now, ecn, datagram, scratch) {
            self.reverse.sent += reverse.send(now, self.index, Ecn::NotEct, &scratch[..bytes], bytes, tap);
        }
    }

    fn on_reverse(
        &mut self,
        now: Time,
        ecn: Ecn,
        datagram: BytesMut,
        forward: &mut Wire,
        scratch: &mut Vec<u8>,
    ) {
        self.reverse.arrived += 1;
        let Some(sender) = &mut self.sender else { return };
        let tap = self.setup.tap.as_ref();
        if let Some(tap) = tap {
            tap.arrives(now, ecn);
        }
        scratch.clear();
        if let Some(bytes) = sender.receive(now, ecn, datagram, scratch) {
            self.forward.sent += forward.send(now, self.index, Ecn::NotEct, &scratch[..bytes], bytes, tap);
        }
    }

    fn drive_sender(&mut self, now: Time, forward: &mut Wire, scratch: &mut Vec<u8>) -> Result<(), String> {
        if let Some(sender) = &mut self.sender {
            let sender = &mut **sender;
            let tap = self.setup.tap.as_ref();
            if let Some(tap) = tap {
                tap.at(now);
                tap.lost(sender.counted().lost_packets);
            }
            loop {
                while let Some(event) = sender.poll() {
                    if let Event::Lost(reason) = event {
                        return Err(reason);
                    }
                    self.connected |= event == Event::Connected;
                    self.source.on_event(&event, sender);
                }
                self.source.write(now, sender)?;
                scratch.clear();
                while let Some(sent) = sender.transmit(now, self.batch, scratch) {
                    let ecn = if self.ecn { sent.ecn } else { Ecn::NotEct };
                    self.forward.sent +=
                        forward.send(now, self.index, ecn, &scratch[..sent.bytes], sent.each, tap);
                    scratch.clear();
                }
                if !sender.exchange() {
                    break;
                }
            }
            self.sender_due = sender.timeout();
            if self.setup.tap.is_some() {
                self.report_state();
            }
        }
        self.update_own_due();
        Ok(())
    }

    fn drive_receiver(&mut self, now: Time, reverse: &mut Wire, scratch: &mut Vec<u8>) -> Result<(), String> {
        if let Some(receiver) = &mut self.receiver {
            let receiver = &mut **receiver;
            let tap = self.setup.tap.as_ref();
            if let Some(tap) = tap {
                tap.at(now);
            }
            loop {
                while let Some(event) = receiver.poll() {
                    if let Event::Lost(reason) = event {
                        return Err(reason);
                    }
                    self.sink.on_event(now, &event, receiver);
                }
                self.sink.ask(now, receiver);
                scratch.clear();
                while let Some(sent) = receiver.transmit(now, self.batch, scratch) {
                    let ecn = if self.ecn { sent.ecn } else { Ecn::NotEct };
                    self.reverse.sent +=
                        reverse.send(now, self.index, ecn, &scratch[..sent.bytes], sent.each, tap);
                    scratch.clear();
                }
                if !receiver.exchange() {
                    break;
                }
            }
            self.receiver_due = receiver.timeout();
        }
        if self.total.is_some_and(|total| self.sink.delivered() >= total) {
            self.end(now, true);
        }
        self.update_own_due();
        Ok(())
    }

    fn measured(&mut self, at: Time, completed: bool) -> Ended {
        let lost = self.counted().map_or(0, |counted| counted.lost_packets);
        Ended {
            at,
            completed,
            delivered_bytes: self.sink.delivered(),
            datagrams: self.forward.sent,
            lost: Some(lost),
            collapses: Some(self.setup.tally.collapses()),
            undone: Some(self.seen().map_or_else(|| self.setup.tally.undone(), |view| view.undone)),
            written: self.source.written,
            written_at: self.source.written_at,
        }
    }

    fn sample(&mut self, now: Time) -> Option<Sample> {
        if !self.connected {
            return None;
        }
        let state = self.state()?;
        let seen = self.seen();
        let phase = self.phase(&state, seen.as_ref());
        let lost = self.counted()?.lost_packets;
        let bandwidth = seen.and_then(|view| view.snapshot.bandwidth).map(|rate| rate.as_bits_per_sec());
        let segments = |bytes: u64| u32::try_from(bytes / self.unit).unwrap_or(u32::MAX);
        let delivered = self.sink.delivered();
        let ca_state = self.recovery(seen.as_ref());
        Some(Sample {
            time_ns: now.as_nanos(),
            cwnd: segments(state.window),
            ssthresh: state.ssthresh.map_or(Limits::INFINITE, segments),
            pacing_bps: state.pacing.map(|rate| self.of_streams(rate.saturating_mul(8))),
            inflight: segments(self.setup.tally.in_flight()),
            srtt_ns: (state.srtt != Duration::ZERO).then(|| state.srtt.as_nanos()),
            min_rtt_ns: self.setup.tally.min_rtt().map(|rtt| rtt.as_nanos()),
            delivery_bps: self.sampled.delivery_bps(delivered, now),
            bandwidth_bps: bandwidth.or(state.bandwidth_bps).map(|rate| self.of_streams(rate)),
            delivered_bytes: delivered,
            retransmits: lost,
            phase,
            ca_state,
        })
    }

    fn on_sampled(&mut self, now: Time) {
        self.sampled.on_sampled(self.sink.delivered(), now);
    }

    fn acked(&self) -> u64 {
        self.setup.tally.acked()
    }

    fn transfers_ns(&self) -> &[u64] {
        &self.sink.transfers_ns
    }

    fn rebuffered_ns(&self, now: Time) -> Option<u64> {
        self.sink.rebuffered_ns(now)
    }

    fn ends(&self) -> [Ends; 2] {
        [self.forward, self.reverse]
    }

    /// What its stack answers without a connection is not in the stack's count.
    fn check(&mut self) {
        assert!(self.sink.delivered() <= self.source.written, "more delivered than was written");
        let sent = self.forward.sent;
        if let Some(counted) = self.counted() {
            let counted = counted.datagrams;
            assert!(counted <= sent, "the stack sent {counted} datagrams, and the path got {sent}");
        }
    }

    fn set_delay(&mut self, _forward: bool, _delay: Duration) {
        unreachable!("the path does all delays of a stack that is linked in")
    }
}
