//! What a host remembers of its earlier connections to another one (Linux: `net/ipv4/tcp_metrics.c`): what a scenario says of
//! it, and the numbers.

use fullpipe_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::ScenarioError;
use crate::quantity::{Count, Said};
use crate::resolve::default;

/// The largest window that an entry may hold, segments.
const MAX_WINDOW: u64 = 1 << 30;
/// The largest degree of reordering (Linux: `net.ipv4.tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;
/// The longest round-trip time (Linux: `TCP_RTO_MAX`). Its entry is 32 bits wide, in eighths of a microsecond.
const MAX_RTT: Duration = Duration::from_secs(120);

/// The sending host keeps metrics of its connections to the receiving one, as with Linux's `net.ipv4.tcp_no_metrics_save` = 0:
/// each connection begins with what the ones before have left. The values are what is there before the first; 0 where there is
/// none. A run's summary has the entry that each flow leaves, in the same fields.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricsDocument {
    /// Whether the slow-start threshold is kept and used, as with Linux's `net.ipv4.tcp_no_ssthresh_metrics_save` = 0. Default:
    /// false, as in Linux since 5.6. Before, it always was.
    pub save_ssthresh: Option<bool>,
    /// Slow-start threshold, segments. Default: 0.
    pub ssthresh: Option<Said<Count>>,
    /// Congestion window, segments. It is a cap if locked, and otherwise kept but not used. Default: 0.
    pub cwnd: Option<Said<Count>>,
    /// Degree of reordering, segments, up to 300. Default: 0.
    pub reordering: Option<Said<Count>>,
    /// Smoothed round-trip time, in which the first retransmission timeout is computed if it is longer than that of the
    /// handshake. Linux counts eighths of a microsecond. Default: 0.
    pub rtt: Option<Said<Duration>>,
    /// Variation of the round-trip time; Linux counts quarters of a microsecond. Default: 0.
    pub rttvar: Option<Said<Duration>>,
    /// Values that no connection changes, as `ip route ... lock` makes them. Default: none.
    pub locked: Option<Vec<Metric>>,
}

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

/// Reads `hosts.metrics`.
pub(crate) fn resolve(document: &MetricsDocument) -> Result<MetricsSpec, ScenarioError> {
    let count = |field: &str, said: &Option<Said<Count>>, most: u64| {
        let said = default(said, "0");
        said.read_within(&format!("hosts.metrics.{field}"), Count(0)..=Count(most))
            .map(|count| count.0 as u32)
    };
    let time = |field: &str, said: &Option<Said<Duration>>| {
        default(said, "0").read_within(&format!("hosts.metrics.{field}"), Duration::ZERO..=MAX_RTT)
    };
    let mut locked = document.locked.clone().unwrap_or_default();
    locked.sort_unstable();
    locked.dedup();
    Ok(MetricsSpec {
        save_ssthresh: document.save_ssthresh.unwrap_or(false),
        ssthresh: count("ssthresh", &document.ssthresh, MAX_WINDOW)?,
        cwnd: count("cwnd", &document.cwnd, MAX_WINDOW)?,
        reordering: count("reordering", &document.reordering, MAX_REORDERING)?,
        rtt_ns: time("rtt", &document.rtt)?,
        rttvar_ns: time("rttvar", &document.rttvar)?,
        locked,
    })
}

/// Why the numbers make no sense: the field, its value, and what is expected.
pub(crate) fn problem(metrics: &MetricsSpec) -> Option<(&'static str, String, String)> {
    let counts = [
        ("metrics.ssthresh", metrics.ssthresh, MAX_WINDOW),
        ("metrics.cwnd", metrics.cwnd, MAX_WINDOW),
        ("metrics.reordering", metrics.reordering, MAX_REORDERING),
    ];
    for (field, given, most) in counts {
        if u64::from(given) > most {
            return Some((field, given.to_string(), format!("0 to {most}")));
        }
    }
    for (field, given) in [("metrics.rtt_ns", metrics.rtt_ns), ("metrics.rttvar_ns", metrics.rttvar_ns)] {
        if given > MAX_RTT {
            return Some((field, given.as_nanos().to_string(), format!("up to {}", MAX_RTT.as_nanos())));
        }
    }
    // A locked window is a cap, and nothing could be sent.
    (metrics.is_locked(Metric::Cwnd) && metrics.cwnd == 0)
        .then(|| ("metrics.cwnd", "0".to_owned(), "at least 1 where it is locked".to_owned()))
}
