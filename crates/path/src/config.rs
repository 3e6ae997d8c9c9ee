//! The configuration of a path, in numbers. `scenario` resolves what users write into this; `Chain::new` builds it.

use std::fmt;

pub use crate::disciplines::DisciplineConfig;
pub use crate::elements::ElementConfig;
use fullpipe_units::{Bytes, Time};
use serde::{Deserialize, Serialize};

/// A value that changes at known times: `initial` until the first change. Changes are in order of time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule<T> {
    /// The value at the start.
    pub initial: T,
    /// (time, the value from then on), strictly increasing in time.
    #[serde(default = "Vec::new", skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<(Time, T)>,
}

impl<T> Schedule<T> {
    /// A value that never changes.
    pub const fn constant(value: T) -> Schedule<T> {
        Schedule { initial: value, changes: Vec::new() }
    }

    /// Changes the value from `from` on, until the next change.
    pub fn change(&mut self, from: Time, value: T) {
        if from == Time::ZERO {
            self.initial = value;
            self.changes.retain(|change| change.0 > Time::ZERO);
            return;
        }
        let earlier = self.changes.partition_point(|&(time, _)| time < from);
        match self.changes.get_mut(earlier) {
            Some(same) if same.0 == from => same.1 = value,
            _ => self.changes.insert(earlier, (from, value)),
        }
    }
}

impl<T: Copy> Schedule<T> {
    /// The value at `time`.
    pub fn at(&self, time: Time) -> T {
        match self.changes.partition_point(|(change, _)| *change <= time) {
            0 => self.initial,
            past => self.changes[past - 1].1,
        }
    }
}

impl<T: fmt::Display> fmt::Display for Schedule<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.initial)?;
        self.changes.iter().try_for_each(|(at, value)| write!(f, ", {value} from {at}"))
    }
}

/// A probability in parts of 2^32, so that the decision is an integer comparison. `from_f64` clamps to 0..=1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probability(u64);

impl Probability {
    /// Never.
    pub const ZERO: Probability = Probability(0);
    const ONE: u64 = 1 << 32;

    /// The probability nearest to `p`; NaN and negatives become 0, anything above 1 becomes 1.
    pub fn from_f64(p: f64) -> Probability {
        let p = if p > 0.0 { p.min(1.0) } else { 0.0 };
        Probability((p * Self::ONE as f64 + 0.5) as u64)
    }

    /// As a fraction of one.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / Self::ONE as f64
    }

    /// Whether it happens for this random draw.
    pub const fn happens(self, random: u32) -> bool {
        (random as u64) < self.0
    }
}

/// In percent, rounded to what people write.
impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", (self.as_f64() * 1e6).round() / 1e4)
    }
}

/// What an element takes or drops as one.
///
/// Linux hands packets over in bursts of up to 64 KB (TSO and GSO: one `sk_buff` for many segments), and what does not split
/// them decides about the whole: a `bfifo`, `netem` (its limit and its random loss), a policer, and `tbf` up to its bucket's
/// depth. Sources: Linux 6.12 `net/sched/{sch_fifo,sch_netem,act_police,sch_tbf}.c`, of which only `tbf_segment` splits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdmissionUnit {
    /// Each packet, as behind a link or a network card, which send one after the other.
    #[default]
    Segment,
    /// All packets that the host handed over together, if nothing on their way has parted them. Limits in packets count a
    /// burst as one.
    Burst,
}

impl AdmissionUnit {
    /// Whether it is a single packet.
    pub fn is_segment(&self) -> bool {
        *self == AdmissionUnit::Segment
    }

    /// What follows the name of a loss in a text.
    pub(crate) fn in_words(self) -> &'static str {
        if self.is_segment() { "" } else { " of whole bursts" }
    }
}

/// A queue: what fits into it, and its discipline. A packet is dropped when it does not fit under either limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueConfig {
    /// Bytes not yet on the wire, including the arriving packet and the unsent part of the one in transmission. With a
    /// discipline other than drop-tail, what is in transmission does not count.
    pub bytes: Bytes,
    /// Packets that have not left, including the arriving one; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
    /// What leaves next, and what is dropped or marked.
    #[serde(default, skip_serializing_if = "DisciplineConfig::is_fifo")]
    pub discipline: DisciplineConfig,
    /// What it takes or drops as one.
    #[serde(default, skip_serializing_if = "AdmissionUnit::is_segment")]
    pub unit: AdmissionUnit,
}

impl QueueConfig {
    /// A queue that drops what does not fit.
    pub const fn drop_tail(bytes: Bytes, packets: Option<u32>) -> QueueConfig {
        QueueConfig { bytes, packets, discipline: DisciplineConfig::FIFO, unit: AdmissionUnit::Segment }
    }
}

impl fmt::Display for QueueConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "queue {}", self.bytes)?;
        self.packets.map_or(Ok(()), |packets| write!(f, " or {packets} packets"))?;
        if !self.discipline.is_fifo() {
            write!(f, ", {}", self.discipline)?;
        }
        if self.unit.is_segment() { Ok(()) } else { write!(f, ", takes bursts whole") }
    }
}
