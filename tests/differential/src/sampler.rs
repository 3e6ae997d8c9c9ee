//! `tcp_rate.c` against `delivery.rs`: bursts leave, and are delivered in and out of order, once and again.

use crate::linux::Rate;
use crate::random::Random;
use crate::report::{Difference, Report};
use fullpipe_cc::delivery::{Sampler, TxState};
use fullpipe_units::{Duration, Time};

const STEPS: u64 = 10_000;
/// Segments that may be out; `c/rate.c` has room for these.
const MOST_OUT: u32 = 2_048;

#[derive(Clone, Copy, Default)]
struct Segment {
    tx: TxState,
    retransmitted: bool,
    sacked: bool,
}

struct Flow {
    random: Random,
    ours: Sampler,
    now_us: u64,
    una: u32,
    nxt: u32,
    lost: u64,
    sacked: u32,
    segments: Vec<Segment>,
}

pub fn flow(linux: &mut Rate, seed: u64, number: u64, report: &mut Report) {
    let mut random = Random::of(seed, number);
    let now_us = random.magnitude(1, 1 << 45);
    let delivered = random.magnitude(1, u32::MAX as u64) as u32;
    let una = random.draw() as u32;
    linux.open(now_us, delivered);
    let mut flow = Flow {
        random,
        ours: Sampler::resume(Time::from_micros(now_us), delivered as u64),
        now_us,
        una,
        nxt: una,
        lost: 0,
        sacked: 0,
        segments: vec![Segment::default(); 4_096],
    };
    let longest = flow.random.magnitude(1, 10_000_000);
    for step in 0..STEPS {
        flow.now_us += if flow.random.chance(3_000) { 0 } else { flow.random.below(longest) };
        let event = flow.step(linux);
        report.events += 1;
        let differs = match event {
            Event::Sent => flow.compare_state(linux),
            Event::Ack(sample) => flow.compare_state(linux).or_else(|| flow.compare_sample(linux, &sample)),
        };
        if let Some((field, ours, linux)) = differs {
            let event = if matches!(event, Event::Sent) { "send" } else { "ACK" };
            return report.note(Difference { flow: number, step, event, field: field.into(), ours, linux });
        }
    }
}

enum Event {
    Sent,
    Ack(fullpipe_cc::RateSample),
}

type Differs = Option<(&'static str, u64, u64)>;

fn unequal(field: &'static str, ours: u64, linux: u64) -> Differs {
    (ours != linux).then_some((field, ours, linux))
}

impl Flow {
    fn segment(&mut self, sequence: u32) -> &mut Segment {
        &mut self.segments[sequence as usize % 4_096]
    }

    fn out(&self) -> u32 {
        self.nxt.wrapping_sub(self.una)
    }

    fn now(&self) -> Time {
        Time::from_micros(self.now_us)
    }

    fn step(&mut self, linux: &mut Rate) -> Event {
        // A sample's basis of zero segments delivered is none for Linux (docs/reference/deviations.md#delivery).
        let may_send = self.ours.delivered() as u32 != 0;
        let out = self.out();
        match self.random.below(100) {
            _ if out == 0 && may_send => self.send(linux),
            0..40 if out < MOST_OUT - 64 && may_send => self.send(linux),
            40..45 if out > self.sacked && may_send => self.retransmit(linux),
            45..48 => {
                let in_flight = self.random.upto(out);
                self.ours.mark_app_limited(in_flight);
                linux.app_limited(in_flight);
                Event::Sent
            }
            _ => self.acknowledge(linux),
        }
    }

    fn send(&mut self, linux: &mut Rate) -> Event {
        let out = self.out();
        let burst = self.random.between(1, 45) as u32;
        let tx = self.ours.on_sent(self.now(), out, out + burst, self.lost);
        for _ in 0..burst {
            let sequence = self.nxt;
            *self.segment(sequence) = Segment { tx, ..Segment::default() };
            self.nxt = sequence.wrapping_add(1);
            // Linux counts a burst as out after it left.
            linux.sent(sequence, self.now_us, out, self.nxt, false);
        }
        Event::Sent
    }

    fn retransmit(&mut self, linux: &mut Rate) -> Event {
        let out = self.out();
        let sequence = self.una.wrapping_add(self.random.below(out as u64) as u32);
        if self.segment(sequence).sacked {
            return Event::Sent;
        }
        self.lost += 1;
        let tx = self.ours.on_sent(self.now(), out, out, self.lost);
        *self.segment(sequence) = Segment { tx, retransmitted: true, sacked: false };
        linux.sent(sequence, self.now_us, out, sequence.wrapping_add(1), true);
        Event::Sent
    }

    fn deliver(&mut self, linux: &mut Rate, sequence: u32, sacked: bool) -> u32 {
        linux.delivered(sequence, sacked);
        let segment = *self.segment(sequence);
        if segment.sacked {
            return 0;
        }
        // Sequence numbers wrap, and ours may count anything that orders what is out.
        let end = sequence.wrapping_sub(self.una) as u64 + (1 << 32) + self.una as u64;
        self.ours.on_delivered(&segment.tx, end, segment.retransmitted);
        1
    }

    fn acknowledge(&mut self, linux: &mut Rate) -> Event {
        let out = self.out();
        linux.begin();
        self.ours.begin_ack();
        let mut newly = 0;
        if out > 0 && self.random.chance(2_500) {
            let first = self.random.below(out as u64) as u32;
            let most = (out - first).min(self.random.between(1, 64) as u32);
            for sequence in first..first + most {
                let sequence = self.una.wrapping_add(sequence);
                if !self.segment(sequence).sacked {
                    newly += self.deliver(linux, sequence, true);
                    self.segment(sequence).sacked = true;
                    self.sacked += 1;
                }
            }
        }
        if out > 0 && self.random.chance(8_000) {
            let acked = if self.random.chance(9_000) { out.min(3) } else { out };
            for _ in 0..self.random.between(1, acked as u64) {
                let sequence = self.una;
                newly += self.deliver(linux, sequence, false);
                self.sacked -= self.segment(sequence).sacked as u32;
                self.una = sequence.wrapping_add(1);
            }
        }
        // Duplicates count as delivered, too.
        newly += self.random.chance(200) as u32;
        let min_rtt_us =
            if self.random.chance(500) { u32::MAX } else { self.random.magnitude(1, 1_000_000) as u32 };
        let min_rtt =
            if min_rtt_us == u32::MAX { Duration::MAX } else { Duration::from_micros(min_rtt_us as u64) };
        self.ours.count_delivered(newly);
        let sample = self.ours.end_ack(self.now(), newly, min_rtt, self.lost);
        linux.end(self.now_us, newly, 0, min_rtt_us);
        Event::Ack(sample)
    }

    fn compare_state(&self, linux: &Rate) -> Differs {
        let view = linux.view();
        unequal("delivered", self.ours.delivered() as u32 as u64, view.total as u64)
            .or_else(|| {
                unequal("delivered_mstamp", self.ours.delivered_time().as_micros(), view.delivered_mstamp)
            })
            .or_else(|| {
                unequal("app_limited", self.ours.app_limited() as u64, (view.app_limited != 0) as u64)
            })
    }

    fn compare_sample(&self, linux: &Rate, ours: &fullpipe_cc::RateSample) -> Differs {
        let view = linux.view();
        let of = |value: Option<u64>| value.map_or(-1i64 as u64, |value| value);
        let delivered = of(ours.delivered.map(u64::from));
        let interval = of(ours.interval.map(Duration::as_micros));
        let found = unequal("rs->delivered", delivered, view.delivered as i64 as u64)
            .or_else(|| unequal("rs->interval_us", interval, view.interval_us as u64));
        if found.is_some() || view.delivered < 0 {
            return found;
        }
        let prior_us = ours.prior_delivered_time.as_micros();
        unequal("rs->prior_delivered", ours.prior_delivered as u32 as u64, view.prior_delivered as u64)
            .or_else(|| unequal("rs->prior_mstamp", prior_us, view.prior_mstamp))
            .or_else(|| {
                unequal("rs->is_app_limited", ours.app_limited as u64, (view.is_app_limited != 0) as u64)
            })
            .or_else(|| unequal("rs->is_retrans", ours.retransmitted as u64, (view.is_retrans != 0) as u64))
    }
}
