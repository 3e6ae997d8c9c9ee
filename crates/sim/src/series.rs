//! What a run's sampler sees.

use fullpipe_record::{FlowSeries, Sample, SeenSample};
use fullpipe_units::{Duration, Time};

use crate::flow::Flow;

/// Appends the present state of a flow; nothing before it starts. Of media there is what its packets show.
pub(crate) fn push(now: Time, flow: &Flow, series: &mut FlowSeries) {
    if let Some(sample) = sample(now, flow) {
        series.push(sample);
    } else if let Some(media) = flow.media().filter(|_| flow.start <= now) {
        series.push_seen(SeenSample {
            time_ns: now.as_nanos(),
            srtt_ns: None,
            min_rtt_ns: None,
            delivered_bytes: media.delivered_bytes,
            retransmits: Some(0),
        });
    }
}

/// The present state of a connection; `None` before it is established.
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
