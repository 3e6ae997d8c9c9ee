//! Time series of a run, sampled at equal distances.

use fullpipe_cc::Limits;
use fullpipe_path::Carrier;
use fullpipe_record::{FlowSeries, LinkSeries};
use fullpipe_units::{Duration, Time};

use crate::flow::Flow;

/// Appends the present state of a flow.
pub(crate) fn sample_flow(series: &mut FlowSeries, now: Time, flow: &Flow) {
    let Some(sender) = &flow.sender else { return };
    let limits = sender.limits();
    let snapshot = sender.snapshot();
    let known = |duration: Duration| if duration == Duration::MAX { u64::MAX } else { duration.as_nanos() };
    series.time_ns.push(now.as_nanos());
    series.cwnd.push(limits.cwnd);
    series.ssthresh.push(if limits.ssthresh >= Limits::INFINITE { u32::MAX } else { limits.ssthresh });
    series.pacing_bps.push(if sender.is_paced() { sender.pacing_rate().as_bits_per_sec() } else { u64::MAX });
    series.inflight.push(sender.in_flight());
    let srtt = sender.srtt();
    series.srtt_ns.push(if srtt == Duration::ZERO { u64::MAX } else { srtt.as_nanos() });
    series.min_rtt_ns.push(known(sender.min_rtt()));
    series.delivery_bps.push(sender.delivery_rate().as_bits_per_sec());
    series.bandwidth_bps.push(snapshot.bandwidth.map_or(u64::MAX, |rate| rate.as_bits_per_sec()));
    series.delivered_bytes.push(flow.receiver.as_ref().map_or(0, |receiver| receiver.delivered_bytes()));
    series.retransmits.push(sender.counters.retransmits);
    series.phase.push(snapshot.phase as u8);
    series.ca_state.push(sender.state() as u8);
}

/// Appends the present state of a direction's queues. The chain has settled at `now`.
pub(crate) fn sample_links<P>(series: &mut [LinkSeries], now: Time, chain: &impl Carrier<P>) {
    for (index, series) in series.iter_mut().enumerate() {
        let queue = chain.queue(index);
        series.time_ns.push(now.as_nanos());
        series.queue_bytes.push(queue.backlog(now).as_u64());
        series.queue_delay_ns.push(queue.delay(now).as_nanos());
        series.dropped_packets.push(queue.totals(now).dropped.packets);
    }
}
