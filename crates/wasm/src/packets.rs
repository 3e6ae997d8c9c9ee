//! What happened to a flow's packets, as columns.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fullpipe_export::{Event, Log, Why};
use fullpipe_scenario::Spec;
use fullpipe_sim::Mistake;
use fullpipe_units::Time;
use serde::Serialize;

use crate::answer::{Answer, Refusal, TableAt};
use crate::run::run_logged;

/// Rows of each table unless the page says otherwise, and the most that it may say.
const USUAL_ROWS: usize = 1_000_000;
const MOST_ROWS: usize = 4_000_000;

/// The tables of a flow.
#[derive(Serialize)]
pub(crate) struct Packets {
    sent: TableAt,
    acks: TableAt,
    sacks: TableAt,
    lost: TableAt,
    truncated_s: Option<f64>,
}

/// The packets of a flow in a run.
pub(crate) fn of_flow(
    answer: &mut Answer,
    spec: &Spec,
    seed: u64,
    flow: usize,
    most_rows: Option<usize>,
) -> Result<Packets, Refusal> {
    if flow >= spec.flows.len() {
        let expected = format!("a number below {}", spec.flows.len());
        let given = format!("there is no number {flow}");
        return Err(Mistake::new("flows", &given, &expected, "choose another flow").into());
    }
    let most = most_rows.unwrap_or(USUAL_ROWS).min(MOST_ROWS);
    let seen = Arc::new(Mutex::new(Seen { flow: flow as u32, most, ..Seen::default() }));
    run_logged(spec, seed, Shared(Arc::clone(&seen)))?;
    let seen = std::mem::take(&mut *lock(&seen));
    Ok(Packets {
        sent: seen.sent.into_answer(answer, ["time_s", "start_bytes", "end_bytes", "again", "dropped"]),
        acks: seen.acks.into_answer(answer, ["time_s", "ack_bytes", "edge_bytes"]),
        sacks: seen.sacks.into_answer(answer, ["time_s", "start_bytes", "end_bytes"]),
        lost: seen.lost.into_answer(answer, ["time_s", "start_bytes", "end_bytes"]),
        truncated_s: seen.truncated.map(Time::as_secs_f64),
    })
}

/// Columns that grow.
#[derive(Debug)]
struct Rows<const N: usize>([Vec<f64>; N]);

impl<const N: usize> Default for Rows<N> {
    fn default() -> Rows<N> {
        Rows([const { Vec::new() }; N])
    }
}

impl<const N: usize> Rows<N> {
    fn len(&self) -> usize {
        self.0[0].len()
    }

    fn push(&mut self, row: [f64; N]) {
        self.0.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
    }

    /// Moves them into an answer.
    fn into_answer(self, answer: &mut Answer, names: [&'static str; N]) -> TableAt {
        let rows = self.len();
        let columns = names.into_iter().zip(self.0).map(|(name, values)| (name, answer.column(values)));
        TableAt { rows, columns: columns.collect() }
    }
}

/// What a flow has shown so far.
#[derive(Debug, Default)]
struct Seen {
    flow: u32,
    most: usize,
    sent: Rows<5>,
    acks: Rows<3>,
    sacks: Rows<3>,
    lost: Rows<3>,
    truncated: Option<Time>,
}

/// The column `dropped` of what was sent.
const DROPPED: usize = 4;

impl Seen {
    fn take(&mut self, at: Time, event: &Event<'_>) {
        let longest = [self.sent.len(), self.acks.len(), self.sacks.len(), self.lost.len()].into_iter().max();
        if longest >= Some(self.most) {
            self.truncated.get_or_insert(at);
            // What becomes of packets that are there is still of interest.
            if !matches!(event, Event::Dropped(_)) {
                return;
            }
        }
        let time = at.as_secs_f64();
        match event {
            Event::Sent(sent) if !sent.syn => {
                let again = match sent.again {
                    None => 0.0,
                    Some(Why::Lost | Why::Unknown) => 1.0,
                    Some(Why::TimedOut) => 2.0,
                    Some(Why::Probe) => 3.0,
                };
                let end = sent.start + u64::from(sent.payload);
                self.sent.push([time, sent.start as f64, end as f64, again, 0.0]);
            }
            Event::Dropped(drop) if !drop.syn && !drop.acknowledgement => {
                // A flow's segments are numbered from 0 as they are sent.
                if let Some(dropped) = self.sent.0[DROPPED].get_mut(drop.number as usize) {
                    *dropped = 1.0;
                }
            }
            Event::Acknowledged(ack) if !ack.syn => {
                self.acks.push([time, ack.ack as f64, ack.edge as f64]);
                for &(start, end) in ack.received() {
                    self.sacks.push([time, start as f64, end as f64]);
                }
            }
            Event::Lost(loss) => {
                let end = loss.start + u64::from(loss.payload);
                self.lost.push([time, loss.start as f64, end as f64]);
            }
            Event::Sent(_)
            | Event::Dropped(_)
            | Event::Acknowledged(_)
            | Event::Arrived(_)
            | Event::State(_)
            | Event::Quic(_) => {}
        }
    }
}

/// What the log of a run writes into.
struct Shared(Arc<Mutex<Seen>>);

impl Log for Shared {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        let mut seen = lock(&self.0);
        if flow == seen.flow {
            seen.take(at, event);
        }
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
