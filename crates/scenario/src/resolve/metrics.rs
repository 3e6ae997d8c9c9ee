//! `hosts.metrics` as people write it, in numbers.

use fullpipe_units::Duration;

use super::values::default;
use crate::bounds::{MAX_KEPT_RTT, MAX_KEPT_RTTVAR, MAX_REORDERING, MAX_WINDOW};
use crate::document::MetricsDocument;
use crate::error::ScenarioError;
use crate::metrics::{Metric, MetricsSpec};
use crate::quantity::{Count, QuantityText};

/// Reads `hosts.metrics`.
pub(super) fn resolve(document: &MetricsDocument) -> Result<MetricsSpec, ScenarioError> {
    let count = |field: &str, written: &Option<QuantityText<Count>>, most: u64| {
        let written = default(written, "0");
        written
            .read_within(&format!("hosts.metrics.{field}"), Count(0)..=Count(most))
            .map(|count| count.0 as u32)
    };
    let time = |field: &str, written: &Option<QuantityText<Duration>>, most: Duration| {
        default(written, "0").read_within(&format!("hosts.metrics.{field}"), Duration::ZERO..=most)
    };
    let mut locked = document.locked.clone().unwrap_or_default();
    locked.sort_unstable();
    locked.dedup();
    let cwnd = count("cwnd", &document.cwnd, MAX_WINDOW)?;
    if cwnd == 0 && locked.contains(&Metric::Cwnd) {
        const FIELD: &str = "hosts.metrics.cwnd";
        let error = match &document.cwnd {
            Some(written) => written.error(FIELD, "is locked, and a locked window is a cap"),
            None => ScenarioError::missing(FIELD),
        };
        return Err(error
            .expected("at least one segment, because a locked window is a cap")
            .fix("write cwnd = 10, or remove cwnd from locked"));
    }
    Ok(MetricsSpec {
        save_ssthresh: document.save_ssthresh.unwrap_or(false),
        ssthresh: count("ssthresh", &document.ssthresh, MAX_WINDOW)?,
        cwnd,
        reordering: count("reordering", &document.reordering, MAX_REORDERING)?,
        rtt_ns: time("rtt", &document.rtt, MAX_KEPT_RTT)?,
        rttvar_ns: time("rttvar", &document.rttvar, MAX_KEPT_RTTVAR)?,
        locked,
    })
}
