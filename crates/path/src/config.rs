//! The configuration of a path, in numbers. `scenario` resolves what users write into this; `Chain::new` builds it.

use fullpipe_units::{Bytes, Duration, Rate, Time};
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

/// A drop-tail limit. A packet is dropped when it does not fit under either.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueLimit {
    /// Bytes not yet on the wire, including the arriving packet and the unsent part of the one in transmission.
    #[serde(rename = "bytes")]
    pub bytes: Bytes,
    /// Packets that have not left, including the arriving one; `None` for no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packets: Option<u32>,
}

/// One element of a path. Packets pass the elements of a direction in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ElementConfig {
    /// A link of (piecewise) constant rate behind a drop-tail queue.
    Link {
        /// Name in records and reports.
        name: String,
        /// Bits per second, headers from IP upwards counted.
        rate_bps: Schedule<Rate>,
        /// The queue in front of it.
        queue: QueueLimit,
    },
    /// A link that follows a Mahimahi delivery trace: one opportunity of 1500 bytes at each listed millisecond; the
    /// trace repeats after its last entry. Shared by reference count because traces can be long.
    DeliveryTrace {
        /// Name in records and reports.
        name: String,
        /// Times of the opportunities in whole milliseconds, not decreasing, the last above zero.
        opportunities_ms: std::sync::Arc<Vec<u64>>,
        /// The queue in front of it.
        queue: QueueLimit,
    },
    /// A cellular radio whose rate follows the demand that it sees: from one of `rates_bps` to the next when a packet of
    /// the last interval found more than `demand_ns` of work in front of it, and back when the link was mostly idle.
    Cellular {
        /// Name in records and reports.
        name: String,
        /// The rates that it grants, rising; the first is granted at the start.
        rates_bps: Vec<Rate>,
        /// From one review of the grant to the next; above zero.
        review_ns: Duration,
        /// The wait above which there is demand for more.
        demand_ns: Duration,
        /// The queue in front of it; packets count in full until they leave.
        queue: QueueLimit,
    },
    /// Linux `tc-tbf`: packets wait for tokens; drop-tail in bytes.
    TokenBucket {
        /// Name in records and reports.
        name: String,
        /// Token rate.
        rate_bps: Rate,
        /// Bucket depth.
        burst_bytes: Bytes,
        /// The queue (`limit` of tc-tbf).
        queue: QueueLimit,
    },
    /// A policer: packets that find no tokens are dropped; packets never wait.
    Policer {
        /// Name in records and reports.
        name: String,
        /// Token rate.
        rate_bps: Rate,
        /// Bucket depth; full at the start.
        burst_bytes: Bytes,
    },
    /// A one-way delay. A delay that shrinks does not reorder: a packet never leaves before its predecessor.
    Delay {
        /// The delay.
        delay_ns: Schedule<Duration>,
    },
    /// Independent random loss.
    Loss {
        /// Probability a packet.
        probability: Schedule<Probability>,
    },
    /// Gilbert-Elliott loss: two states with their own loss probability.
    GilbertElliott {
        /// Probability of going from good to bad, a packet.
        good_to_bad: Probability,
        /// Probability of going from bad to good, a packet.
        bad_to_good: Probability,
        /// Loss probability in the good state.
        loss_good: Probability,
        /// Loss probability in the bad state.
        loss_bad: Probability,
    },
    /// Random extra delay, uniform in 0..=`amplitude_ns`.
    Jitter {
        /// The largest extra delay.
        amplitude_ns: Duration,
        /// Whether packets may overtake each other. If not, a packet waits for its predecessor.
        reorder: bool,
    },
    /// Holds packets and releases all that have arrived at once: at multiples of an interval, shifted by a phase drawn
    /// from the element's own random stream.
    Aggregate {
        /// From one release to the next; above zero.
        every_ns: Duration,
    },
    /// Delivers a packet twice with this probability.
    Duplicate {
        /// Probability a packet.
        probability: Probability,
    },
    /// Holds back a packet by `delay_ns` with this probability, so that later ones overtake it.
    Reorder {
        /// Probability a packet.
        probability: Probability,
        /// How long it is held back.
        delay_ns: Duration,
    },
}

impl ElementConfig {
    /// Its name in records and reports; `None` for an element without a queue.
    pub fn name(&self) -> Option<&str> {
        match self {
            ElementConfig::Link { name, .. }
            | ElementConfig::DeliveryTrace { name, .. }
            | ElementConfig::Cellular { name, .. }
            | ElementConfig::TokenBucket { name, .. }
            | ElementConfig::Policer { name, .. } => Some(name),
            _ => None,
        }
    }
}
