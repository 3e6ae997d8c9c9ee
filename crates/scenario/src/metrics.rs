//! What a host remembers of its earlier connections to another one (Linux: `net/ipv4/tcp_metrics.c`), in numbers.

use fullpipe_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One of the values that are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// Slow-start threshold.
    Ssthresh,
    /// Congestion window.
    Cwnd,
    /// Degree of reordering.
    Reordering,
    /// Smoothed round-trip time.
    Rtt,
    /// Its variation.
    Rttvar,
}

/// What a host keeps of its connections to the other one. Zeros are what there is before the first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MetricsSpec {
    /// Whether the slow-start threshold is kept and used.
    pub save_ssthresh: bool,
    /// Slow-start threshold, segments.
    pub ssthresh: u32,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Degree of reordering, segments.
    pub reordering: u32,
    /// Smoothed round-trip time.
    pub rtt_ns: Duration,
    /// Its variation.
    pub rttvar_ns: Duration,
    /// Values that do not change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<Metric>,
}

impl MetricsSpec {
    /// Whether connections leave this value as it is.
    pub fn is_locked(&self, metric: Metric) -> bool {
        self.locked.contains(&metric)
    }

    /// Whether there is nothing yet.
    pub fn is_empty(&self) -> bool {
        let Self { ssthresh, cwnd, reordering, rtt_ns, rttvar_ns, .. } = self;
        (*ssthresh, *cwnd, *reordering) == (0, 0, 0)
            && (*rtt_ns, *rttvar_ns) == (Duration::ZERO, Duration::ZERO)
            && self.locked.is_empty()
    }
}
