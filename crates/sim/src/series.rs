//! What a run's sampler sees.

use fullpipe_record::Sample;
use fullpipe_units::{Duration, Time};

use crate::flow::Flow;

/// The present state of a flow; `None` before it starts.
pub(crate) fn sample(now: Time, flow: &Flow) -> Option<Sample> {
    let sender = flow.sender.as_ref()?;
    let limits = sender.limits();
    let snapshot = sender.snapshot();
    let known = |duration: Duration, unknown| (duration != unknown).then_some(duration.as_nanos());
    Some(Sample {
        time_ns: now.as_nanos(),
        cwnd: limits.cwnd,
        ssthresh: limits.ssthresh,
        pacing_bps: sender.is_paced().then(|| sender.pacing_rate().as_bits_per_sec()),
        inflight: sender.in_flight(),
        srtt_ns: known(sender.srtt(), Duration::ZERO),
        min_rtt_ns: known(sender.min_rtt(), Duration::MAX),
        delivery_bps: sender.delivery_rate().as_bits_per_sec(),
        bandwidth_bps: snapshot.bandwidth.map(|rate| rate.as_bits_per_sec()),
        delivered_bytes: flow.receiver.as_ref().map_or(0, |receiver| receiver.delivered_bytes()),
        retransmits: sender.counters.retransmits,
        phase: snapshot.phase,
        ca_state: sender.state(),
    })
}
