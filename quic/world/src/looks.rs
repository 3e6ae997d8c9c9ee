//! Many steps of a played run in one go: what the first flow shows at the end of each, in columns.
//!
//! A conformance case looks at its flow some hundred thousand times. An answer of its own for each look costs a hundred times as
//! much as the look: two processes wake each other, and so do the program's threads.

use std::sync::atomic::AtomicBool;

use fullpipe_cc::Phase;
use fullpipe_units::{Duration, Time};
use serde::{Deserialize, Serialize};

use crate::error::QuicError;
use crate::world::World;

/// Steps, which end early behind the first look that shows what is waited for.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LookRequest {
    /// The length of a step, nanoseconds.
    pub step_ns: u64,
    /// How many at most.
    pub steps: u32,
    /// Ends behind a look in this phase.
    #[serde(default)]
    pub until_in: Option<String>,
    /// Ends behind a look in another phase than this one, or in none.
    #[serde(default)]
    pub until_out: Option<String>,
    /// Ends behind a look at which a quantity is above an amount.
    #[serde(default)]
    pub until_above: Option<Above>,
}

/// A quantity of the first flow, and the amount that it has to exceed.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Above {
    /// A column of [`Looks`].
    pub quantity: Quantity,
    /// In the unit of that column.
    pub amount: u64,
}

/// The columns of [`Looks`] that a request can wait for. An unknown window is none.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    Cwnd,
    Inflight,
    DeliveredBytes,
    SegmentsSent,
    Lost,
}

impl LookRequest {
    /// The most steps of a request: their columns have some megabytes.
    pub const MOST_STEPS: u32 = 1 << 16;

    /// Whether the last look shows what is waited for. It was in this phase.
    fn is_met(&self, phase: Option<Phase>, looks: &Looks) -> bool {
        let phase = phase.map(Phase::name);
        self.until_in.as_deref().is_some_and(|name| phase == Some(name))
            || self.until_out.as_deref().is_some_and(|name| phase != Some(name))
            || self.until_above.as_ref().is_some_and(|above| looks.last(above.quantity) > above.amount)
    }
}

/// A word that does not change in many looks: the word, and in how many looks in a row it was shown.
pub type Stretch = (Option<&'static str>, u32);

/// What the first flow showed at the end of each step. Numbers have the units of a played run's `flow`.
#[derive(Clone, Debug, Default, Serialize)]
#[expect(missing_docs, reason = "named as the keys of `flow` are")]
pub struct Looks {
    pub connected: Vec<bool>,
    pub phase: Vec<Stretch>,
    pub state: Vec<Stretch>,
    pub cwnd: Vec<Option<u32>>,
    pub inflight: Vec<u32>,
    pub pacing_rate_bps: Vec<Option<u64>>,
    pub bandwidth_bps: Vec<Option<u64>>,
    pub rtt_ms: Vec<Option<f64>>,
    pub delivered_bytes: Vec<u64>,
    pub delivered_segments: Vec<u64>,
    pub segments_sent: Vec<u64>,
    pub lost: Vec<u64>,
    pub timeouts: Vec<u64>,
    /// Bytes in all queues.
    pub queued_bytes: Vec<u64>,
}

impl Looks {
    /// Looks now. Returns the phase.
    fn look(&mut self, world: &mut World) -> Option<Phase> {
        let (sample, measured, acked) = world.ask(0, |flow, now| {
            let measured = flow.measured(now, false);
            (flow.sample(now), measured, flow.acked())
        });
        let phase = sample.as_ref().map(|sample| sample.phase);
        self.connected.push(sample.is_some());
        stretch(&mut self.phase, phase.map(Phase::name));
        stretch(&mut self.state, sample.as_ref().map(|sample| sample.ca_state.name()));
        self.cwnd.push(sample.as_ref().map(|sample| sample.cwnd));
        self.inflight.push(sample.as_ref().map_or(0, |sample| sample.inflight));
        self.pacing_rate_bps.push(sample.as_ref().and_then(|sample| sample.pacing_bps));
        self.bandwidth_bps.push(sample.as_ref().and_then(|sample| sample.bandwidth_bps));
        self.rtt_ms.push(sample.and_then(|sample| sample.srtt_ns).map(|nanos| nanos as f64 / 1e6));
        self.delivered_bytes.push(measured.delivered_bytes);
        self.delivered_segments.push(acked);
        self.segments_sent.push(measured.datagrams);
        self.lost.push(measured.lost.unwrap_or(0));
        self.timeouts.push(measured.collapses.unwrap_or(0));
        self.queued_bytes.push(world.backlog_bytes());
        phase
    }

    /// What the last look shows of a quantity.
    fn last(&self, quantity: Quantity) -> u64 {
        match quantity {
            Quantity::Cwnd => self.cwnd.last().copied().flatten().map(u64::from),
            Quantity::Inflight => self.inflight.last().copied().map(u64::from),
            Quantity::DeliveredBytes => self.delivered_bytes.last().copied(),
            Quantity::SegmentsSent => self.segments_sent.last().copied(),
            Quantity::Lost => self.lost.last().copied(),
        }
        .unwrap_or(0)
    }
}

fn stretch(all: &mut Vec<Stretch>, word: Option<&'static str>) {
    match all.last_mut() {
        Some((last, looks)) if *last == word => *looks += 1,
        _ => all.push((word, 1)),
    }
}

/// Advances step by step and looks behind each; the looks until an error come with it.
pub(crate) fn look(
    world: &mut World,
    request: &LookRequest,
    cancel: &AtomicBool,
) -> (Looks, Result<(), QuicError>) {
    let mut looks = Looks::default();
    let (begun, step) = (world.now, Duration::from_nanos(request.step_ns));
    let mut until = begun;
    for _ in 0..request.steps.min(LookRequest::MOST_STEPS) {
        // A run that is over does not move on, and its last look is taken all the same.
        until = Time::from_nanos(until.as_nanos().saturating_add(step.as_nanos()));
        if let Err(error) = world.advance(until, cancel) {
            return (looks, Err(error));
        }
        let phase = looks.look(world);
        if request.is_met(phase, &looks) || world.is_over() {
            break;
        }
    }
    (looks, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_stays_is_written_once() {
        let mut all = Vec::new();
        for word in [None, Some("startup"), Some("startup"), Some("drain"), Some("startup")] {
            stretch(&mut all, word);
        }
        assert_eq!(all, [(None, 1), (Some("startup"), 2), (Some("drain"), 1), (Some("startup"), 1)]);
    }

    #[test]
    fn a_wait_ends_in_a_phase_or_out_of_it() {
        let request = |until_in: Option<&str>, until_out: Option<&str>| LookRequest {
            step_ns: 1,
            steps: 1,
            until_in: until_in.map(str::to_owned),
            until_out: until_out.map(str::to_owned),
            until_above: None,
        };
        let phases = [None, Some(Phase::Drain), Some(Phase::Startup)];
        let met = |request: LookRequest| phases.map(|phase| request.is_met(phase, &Looks::default()));
        assert_eq!(met(request(None, None)), [false, false, false]);
        assert_eq!(met(request(Some("drain"), None)), [false, true, false]);
        assert_eq!(met(request(None, Some("drain"))), [true, false, true]);
    }

    #[test]
    fn a_wait_for_an_amount_ends_above_it() {
        let request: LookRequest = serde_json::from_str(
            r#"{"step_ns": 1, "steps": 1, "until_above": {"quantity": "lost", "amount": 5}}"#,
        )
        .unwrap();
        let lost = |lost| Looks { lost: vec![9, lost], ..Looks::default() };
        assert_eq!([4, 5, 6].map(|count| request.is_met(None, &lost(count))), [false, false, true]);
        assert!(!request.is_met(None, &Looks::default()), "nothing was seen yet");
        let window =
            LookRequest { until_above: Some(Above { quantity: Quantity::Cwnd, amount: 9 }), ..request };
        let seen = |cwnd| Looks { cwnd: vec![cwnd], ..Looks::default() };
        assert_eq!(
            [None, Some(9), Some(10)].map(|cwnd| window.is_met(None, &seen(cwnd))),
            [false, false, true]
        );
    }
}
