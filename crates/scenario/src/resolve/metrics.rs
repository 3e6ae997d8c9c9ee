//! `hosts.metrics` as people write it, in numbers.

use fullpipe_units::Duration;

use super::default;
use crate::bounds::{MAX_KEPT_RTT, MAX_REORDERING, MAX_WINDOW};
use crate::document::MetricsDocument;
use crate::error::ScenarioError;
use crate::metrics::MetricsSpec;
use crate::quantity::{Count, Said};

/// Reads `hosts.metrics`.
pub(super) fn resolve(document: &MetricsDocument) -> Result<MetricsSpec, ScenarioError> {
    let count = |field: &str, said: &Option<Said<Count>>, most: u64| {
        let said = default(said, "0");
        said.read_within(&format!("hosts.metrics.{field}"), Count(0)..=Count(most))
            .map(|count| count.0 as u32)
    };
    let time = |field: &str, said: &Option<Said<Duration>>| {
        default(said, "0").read_within(&format!("hosts.metrics.{field}"), Duration::ZERO..=MAX_KEPT_RTT)
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
