//! Controllers alone: nanoseconds an ACK. `bench/peers` compiles this file too and adds other people's controllers.
//!
//! All are shown one stream: a link of 100 Mbit/s that is always busy, a round trip of 40 ms, an ACK for every two
//! segments, in order, and two new segments 80 us after each. The flight is said to be what the window allows, up to two
//! bandwidth-delay products, and a quarter of that every other round trip, so that each phase of BBR ends as it would.
//! Loss-based controllers, whose windows would grow for ever, lose a segment every five seconds; that, and the making of
//! the events, is not timed.

use std::hint::black_box;
use std::mem::{size_of, size_of_val};
use std::time::Instant;

use fullpipe_cc::controllers::bbr1::{self, Bbr1};
use fullpipe_cc::controllers::bbr3::{self, Bbr3};
use fullpipe_cc::controllers::cubic::{self, Cubic};
use fullpipe_cc::controllers::reno::{self, Reno};
use fullpipe_cc::{
    Ack, CaState, Config, Connection, Controller, Lost, RateSample, Sampler, Sent, StateChange,
};
use fullpipe_cc::{Limits, Trigger, TxState};
use fullpipe_units::{Duration, Rate, Time};

use crate::measure::{Samples, interleaved, report, report_one};

const ROUNDS: usize = 15;
/// ACKs between two looks at the clock: few enough for the events to stay in the fastest cache.
const PIECE: usize = 64;
/// Pieces a round: two minutes of the stream.
const PIECES: usize = 8_192;
/// Pieces between two losses: about five seconds.
const LOSS_EVERY: u64 = 325;

pub(crate) const MSS: u32 = 1448;
/// Segments that an ACK acknowledges, and that leave after it.
pub(crate) const BURST: u32 = 2;
/// Two packets of 1500 bytes at 100 Mbit/s.
const ACK_EVERY: Duration = Duration::from_micros(240);
pub(crate) const RTT: Duration = Duration::from_millis(40);
/// From an ACK to the burst that it releases.
const SEND_AFTER: Duration = Duration::from_micros(80);
/// ACKs from a burst's departure to its acknowledgement: 167 of 240 us less 80 us are 40 ms.
const LAG: u64 = 167;
/// Segments that fit in the link and its queue: two bandwidth-delay products, rounded down so that a quarter of them is
/// below half of one, which is what quinn-proto's BBR makes of this stream.
const PIPE: u32 = 640;

/// One ACK of the stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tick {
    /// Its number.
    pub(crate) number: u64,
    pub(crate) now: Time,
    /// When what it acknowledges left.
    pub(crate) sent: Time,
    /// When the burst that it releases leaves.
    pub(crate) departure: Time,
    /// Whether the flight is at its lower turn.
    low: bool,
}

impl Tick {
    fn new(number: u64) -> Tick {
        let now = Time::from_micros(1_000_000) + ACK_EVERY.saturating_mul(number);
        let sent = Time::from_nanos(now.as_nanos() - RTT.as_nanos());
        Tick { number, now, sent, departure: now + SEND_AFTER, low: number / LAG % 2 == 1 }
    }

    /// Segments in flight after this ACK, under a window of so many.
    #[inline]
    pub(crate) fn flight(&self, window: u32) -> u32 {
        let flight = window.min(PIPE);
        if self.low { flight / 4 } else { flight }
    }

    /// Segments acknowledged, with this ACK.
    pub(crate) fn acked(&self) -> u64 {
        (self.number + 1) * BURST as u64
    }

    /// Segments sent, with the burst after this ACK.
    pub(crate) fn sent_after(&self) -> u64 {
        self.acked() + LAG * BURST as u64
    }
}

/// A controller under measurement.
pub(crate) trait Subject {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Bytes of its state.
    fn state_bytes(&self) -> usize;
    /// Makes the events of these ACKs; not timed.
    fn prepare(&mut self, ticks: &[Tick]);
    /// Hands them over; timed.
    fn replay(&mut self);
    /// Loses a segment; not timed.
    fn lose(&mut self);
}

/// Prints a line for each of `subjects`, measured in turn, and returns what was measured.
pub(crate) fn table(subjects: &mut [Box<dyn Subject>]) -> Vec<Samples> {
    let mut streams: Vec<(u64, &mut Box<dyn Subject>)> =
        subjects.iter_mut().map(|subject| (0, subject)).collect();
    let samples = interleaved(ROUNDS, &mut streams, |(piece, subject)| nanos_an_ack(piece, subject.as_mut()));
    println!(
        "One ACK for two segments: all that the controller is told, and the window that it is asked for."
    );
    println!("{} ACKs a round, median and least of {ROUNDS} rounds, warm.", PIECE * PIECES);
    println!();
    println!("{:<28} {:>8} {:>8} {:>6}", "controller", "state B", "ns/ACK", "min");
    for (subject, nanos) in subjects.iter().zip(&samples) {
        let (name, bytes) = (subject.name(), subject.state_bytes());
        println!("{:<28} {:>8} {:>8.1} {:>6.1}", name, bytes, nanos.median(), nanos.min());
        report("controllers", name, "ns/ACK", nanos, None);
        report_one("state", name, "B", bytes as f64);
    }
    samples
}

fn nanos_an_ack(piece: &mut u64, subject: &mut dyn Subject) -> f64 {
    let mut nanos = 0;
    for _ in 0..PIECES {
        let ticks: [Tick; PIECE] =
            std::array::from_fn(|index| Tick::new(*piece * PIECE as u64 + index as u64));
        subject.prepare(&ticks);
        let start = Instant::now();
        subject.replay();
        nanos += start.elapsed().as_nanos();
        *piece += 1;
        if piece.is_multiple_of(LOSS_EVERY) {
            subject.lose();
        }
    }
    nanos as f64 / (PIECES * PIECE) as f64
}

/// Ours: first the loop without a controller, then each alone, and BBR with the delivery-rate sampler that it needs.
pub(crate) fn ours() -> Vec<Box<dyn Subject>> {
    let (config, connection) = (config(), connection(Time::ZERO));
    let bbr1 = Bbr1::new(&bbr1::Params::default(), &config, &connection);
    let bbr3 = Bbr3::new(&bbr3::Params::default(), &config, &connection);
    let cubic = Cubic::new(&cubic::Params::default(), &config, &connection);
    let reno = Reno::new(&reno::Params::default(), &config, &connection);
    vec![
        Box::new(Nothing(Vec::new())),
        Box::new(Ours::<_, false>::new("bbr1", bbr1, false)),
        Box::new(Ours::<_, true>::new(BBR_WITH_SAMPLER, bbr1, false)),
        Box::new(Ours::<_, false>::new("bbr3", bbr3, false)),
        Box::new(Ours::<_, true>::new(BBR3_WITH_SAMPLER, bbr3, false)),
        Box::new(Ours::<_, false>::new("cubic", cubic, true)),
        Box::new(Ours::<_, false>::new("reno", reno, true)),
    ]
}

/// The row that compares with a BBR whose bandwidth sampler is part of it.
pub(crate) const BBR_WITH_SAMPLER: &str = "bbr1, with its rate sampler";
/// The same of BBRv3.
const BBR3_WITH_SAMPLER: &str = "bbr3, with its rate sampler";

fn config() -> Config {
    Config {
        mss: MSS,
        unit: MSS,
        initial_cwnd: 10,
        cwnd_clamp: u32::MAX,
        max_pacing_rate: Rate::MAX,
        gso_max: Config::GSO_MAX,
        max_tcp_header: Config::MAX_TCP_HEADER,
        paced: true,
        hz: 1000,
        ssthresh: Limits::INFINITE,
    }
}

fn connection(now: Time) -> Connection {
    Connection {
        now,
        jiffies: (now.as_micros() / 1_000) as u32,
        delivered_time: now,
        srtt: RTT,
        min_rtt: RTT,
        departure: now,
        random: 12_345,
        ..Connection::default()
    }
}

/// The loop alone: what the clock and the hand-over cost.
struct Nothing(Vec<Tick>);

impl Subject for Nothing {
    fn name(&self) -> &'static str {
        "none: the loop alone"
    }

    fn state_bytes(&self) -> usize {
        0
    }

    fn prepare(&mut self, ticks: &[Tick]) {
        ticks.clone_into(&mut self.0);
    }

    fn replay(&mut self) {
        for tick in &self.0 {
            black_box(tick);
        }
    }

    fn lose(&mut self) {}
}

/// One of ours. With `SAMPLES`, the sampler's work is timed too.
struct Ours<C, const SAMPLES: bool> {
    name: &'static str,
    controller: C,
    loses: bool,
    sampler: Sampler,
    /// Of the bursts in flight, by the number of the ACK that released them.
    states: [TxState; LAG as usize],
    events: Vec<Event>,
}

/// One ACK and the burst after it; the flight follows when they are handed over.
struct Event {
    tick: Tick,
    ack: Ack,
    sent: Sent,
}

impl<C: Controller, const SAMPLES: bool> Ours<C, SAMPLES> {
    fn new(name: &'static str, controller: C, loses: bool) -> Ours<C, SAMPLES> {
        let first = Tick::new(0);
        let mut sampler = Sampler::new(first.sent);
        let mut states = [TxState::default(); LAG as usize];
        for (index, state) in states.iter_mut().enumerate() {
            let departure = first.sent + ACK_EVERY.saturating_mul(index as u64);
            *state = sampler.on_sent(departure, index as u32 * BURST, (index as u32 + 1) * BURST, 0);
        }
        Ours { name, controller, loses, sampler, states, events: Vec::with_capacity(PIECE) }
    }
}

/// The sampler's part of an ACK and of the burst after it.
#[inline]
fn sample(
    sampler: &mut Sampler,
    states: &mut [TxState; LAG as usize],
    tick: &Tick,
    flight: u32,
) -> RateSample {
    let state = &mut states[(tick.number % LAG) as usize];
    let sample = sampler.take_in_order(tick.now, BURST, state, RTT, 0);
    *state = sampler.on_sent(tick.departure, flight, flight + BURST, 0);
    sample
}

impl<C: Controller, const SAMPLES: bool> Subject for Ours<C, SAMPLES> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn state_bytes(&self) -> usize {
        size_of::<C>() + if SAMPLES { size_of_val(&self.sampler) } else { 0 }
    }

    fn prepare(&mut self, ticks: &[Tick]) {
        self.events.clear();
        for &tick in ticks {
            let sample = if SAMPLES {
                RateSample::NONE
            } else {
                sample(&mut self.sampler, &mut self.states, &tick, LAG as u32 * BURST)
            };
            let delivered = tick.acked();
            let ack = Ack {
                connection: Connection { delivered, ..connection(tick.now) },
                prior_in_flight: 0,
                newly_delivered: BURST,
                newly_lost: 0,
                newly_acked: BURST,
                rtt: Some(RTT),
                maybe_delayed: false,
                una_advanced: true,
                snd_una: delivered,
                snd_nxt: tick.sent_after() - BURST as u64,
                sample,
                cwnd_limited: true,
                max_packets_out: 0,
                may_raise_cwnd: true,
                may_answer_probe: false,
            };
            let sent = Sent {
                departure: tick.departure,
                units: BURST,
                prior_in_flight: 0,
                prior_packets_out: 0,
                retransmission: false,
            };
            self.events.push(Event { tick, ack, sent });
        }
    }

    fn replay(&mut self) {
        let mut window = self.controller.limits().cwnd;
        for Event { tick, ack, sent } in &mut self.events {
            let flight = tick.flight(window);
            ack.connection.in_flight = flight;
            ack.connection.packets_out = flight;
            ack.prior_in_flight = flight + BURST;
            ack.max_packets_out = flight + BURST;
            if SAMPLES {
                ack.sample = sample(&mut self.sampler, &mut self.states, tick, flight);
            }
            if let Some(sample) = ack.rtt_sample() {
                self.controller.on_rtt(&sample);
            }
            self.controller.on_ack(ack);
            window = black_box(self.controller.limits()).cwnd;
            sent.prior_in_flight = flight;
            sent.prior_packets_out = flight;
            self.controller.on_sent(sent);
        }
    }

    fn lose(&mut self) {
        let Some(Event { ack: Ack { connection, .. }, .. }) = self.events.last().filter(|_| self.loses)
        else {
            return;
        };
        let trigger = Trigger::Ack;
        let open = StateChange {
            connection: *connection,
            to: CaState::Recovery,
            reduce: true,
            proven: false,
            trigger,
        };
        self.controller.on_state(&open);
        let flight = connection.in_flight;
        self.controller.on_lost(&Lost {
            now: connection.now,
            delivered: connection.delivered,
            units: 1,
            new_range: true,
            tx_in_flight: flight,
            tx_delivered: 0,
            tx_lost: 0,
            lost: 1,
            app_limited: false,
        });
        let connection = Connection { state: CaState::Recovery, ..*connection };
        self.controller.on_state(&StateChange {
            connection,
            to: CaState::Open,
            reduce: false,
            proven: false,
            trigger,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_cc::{Phase, Snapshot};

    /// A minute of the stream: the share of its ACKs in each phase, in percent, and what the controller then believes.
    fn a_minute_of<C: Controller>(controller: C, loses: bool) -> (impl Fn(Phase) -> u64, Snapshot) {
        let mut subject = Ours::<_, true>::new("", controller, loses);
        let mut counts = [0; Phase::ALL.len()];
        let acks = Duration::from_secs(60).as_nanos() / ACK_EVERY.as_nanos();
        for number in 0..acks {
            subject.prepare(&[Tick::new(number)]);
            subject.replay();
            counts[subject.controller.snapshot().phase as usize] += 1;
            if (number + 1).is_multiple_of(LOSS_EVERY * PIECE as u64) {
                subject.lose();
            }
        }
        (move |phase| counts[phase as usize] * 100 / acks, subject.controller.snapshot())
    }

    #[test]
    fn bbr_visits_phases_and_measures_link() {
        let bbr1 = Bbr1::new(&bbr1::Params::default(), &config(), &connection(Time::ZERO));
        let (share, snapshot) = a_minute_of(bbr1, false);
        assert!(share(Phase::ProbeBwUp) >= 8 && share(Phase::ProbeBwDown) >= 8);
        assert!(share(Phase::ProbeBwCruise) >= 60 && share(Phase::ProbeRtt) >= 1);
        // Payload: 1448 bytes of 1500.
        let mbits = snapshot.bandwidth.unwrap().as_bits_per_sec() as f64 / 1e6;
        assert!((96.0..97.0).contains(&mbits), "{mbits}");
    }

    #[test]
    fn bbr3_visits_phases_and_measures_link() {
        let bbr3 = Bbr3::new(&bbr3::Params::default(), &config(), &connection(Time::ZERO));
        let (share, snapshot) = a_minute_of(bbr3, false);
        assert!(share(Phase::ProbeBwUp) >= 2 && share(Phase::ProbeBwRefill) >= 1);
        assert!(share(Phase::ProbeBwCruise) >= 60 && share(Phase::ProbeRtt) >= 1);
        let mbits = snapshot.bandwidth.unwrap().as_bits_per_sec() as f64 / 1e6;
        assert!((95.0..97.0).contains(&mbits), "{mbits}");
    }

    #[test]
    fn loss_based_controllers_avoid_congestion() {
        let cubic = Cubic::new(&cubic::Params::default(), &config(), &connection(Time::ZERO));
        let reno = Reno::new(&reno::Params::default(), &config(), &connection(Time::ZERO));
        assert!(a_minute_of(cubic, true).0(Phase::CongestionAvoidance) >= 90);
        assert!(a_minute_of(reno, true).0(Phase::CongestionAvoidance) >= 90);
    }
}
