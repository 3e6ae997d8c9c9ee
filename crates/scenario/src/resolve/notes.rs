//! What a scenario that can run means, where its words hide it: notes for whoever reads its results.

use fullpipe_cc::Config;
use fullpipe_path::config::{AdmissionUnit, ElementConfig, QueueConfig};
use fullpipe_units::{Bytes, Rate};

use crate::metrics::{Metric, MetricsSpec};
use crate::quantity::{Quantity, Size};
use crate::spec::Spec;

/// Sentences about the path and the hosts, which all alternatives of a scenario share.
pub fn notes(spec: &Spec) -> Vec<String> {
    let buckets = spec.forward.iter().chain(&spec.reverse).filter_map(|element| deep_bucket(spec, element));
    let bursts = spec.forward.iter().filter_map(|element| too_long_bursts(spec, element));
    let metrics = spec.hosts.metrics.iter().flat_map(unused_metrics);
    buckets.chain(bursts).chain(metrics).collect()
}

/// A bucket that adds a hundredth or more to what its rate carries in the run.
fn deep_bucket(spec: &Spec, element: &ElementConfig) -> Option<String> {
    let (name, rate, burst): (_, Rate, Bytes) = match element {
        ElementConfig::TokenBucket { name, rate_bps, burst_bytes, .. }
        | ElementConfig::Policer { name, rate_bps, burst_bytes, .. } => (name, *rate_bps, *burst_bytes),
        _ => return None,
    };
    let carried = rate.bytes_in(spec.duration_ns).as_u64().max(1);
    let per_cent = burst.as_u64() * 100 / carried;
    (per_cent >= 1).then(|| {
        let (burst, rate) = (Size::Bytes(burst).text(), rate.text());
        let share = match per_cent {
            ..1000 => format!("{per_cent} % to"),
            _ => format!("{} times", per_cent / 100),
        };
        format!(
            "{name}: its bucket of {burst} adds {share} what {rate} carry in the run; while it has tokens, \
             packets pass as fast as they come."
        )
    })
}

/// A queue that takes or drops bursts whole, and is too short for those that the host may hand over.
fn too_long_bursts(spec: &Spec, element: &ElementConfig) -> Option<String> {
    // A token bucket splits what is longer than its depth.
    let (queue, header, unsplit): (&QueueConfig, u32, Bytes) = match element {
        ElementConfig::TokenBucket { queue, frame_bytes, burst_bytes, .. } => {
            (queue, *frame_bytes, *burst_bytes)
        }
        ElementConfig::Link { queue, .. }
        | ElementConfig::DeliveryTrace { queue, .. }
        | ElementConfig::Cellular { queue, .. } => (queue, 0, Bytes::new(u64::MAX)),
        _ => return None,
    };
    if queue.unit != AdmissionUnit::Burst || queue.packets.is_some() {
        return None;
    }
    let each = u64::from(spec.mtu_bytes + header);
    let most = u64::from(Config::GSO_MAX / spec.mss()).clamp(1, u64::from(spec.hosts.gso_max_segs));
    let fits = queue.bytes.as_u64() / each;
    (fits < most.min(unsplit.as_u64() / each)).then(|| {
        let (name, buffer) = (element.name().unwrap_or_default(), Size::Bytes(queue.bytes).text());
        let segments = if fits == 1 { "segment" } else { "segments" };
        format!(
            "{name}: a burst of more than {fits} {segments} does not fit into {buffer} and is dropped whole; with a \
             larger buffer, hosts.gso_max_segs = {fits} or unit = \"segment\" it is not."
        )
    })
}

/// Values of `hosts.metrics` that nothing uses.
fn unused_metrics(metrics: &MetricsSpec) -> impl Iterator<Item = String> {
    let unsaved = !metrics.save_ssthresh && (metrics.ssthresh > 0 || metrics.is_locked(Metric::Ssthresh));
    let uncapped = metrics.cwnd > 0 && !metrics.is_locked(Metric::Cwnd);
    let ssthresh = "hosts.metrics.ssthresh has no effect without save_ssthresh = true.";
    let cwnd = "hosts.metrics.cwnd is kept and not used, as in Linux; with locked = [\"cwnd\"] it is a cap.";
    [unsaved.then(|| ssthresh.to_owned()), uncapped.then(|| cwnd.to_owned())].into_iter().flatten()
}
