//! Time series as columns of numbers. What is absent is NaN, times are seconds.

use fullpipe_cc::Limits;
use fullpipe_record::{FlowSeries, LinkSeries};

use crate::answer::{Answer, TableAt};

/// The samples of a flow from number `from` on.
pub(crate) fn of_flow(answer: &mut Answer, series: &FlowSeries, from: usize) -> TableAt {
    let FlowSeries {
        time_ns,
        cwnd,
        ssthresh,
        pacing_bps,
        inflight,
        srtt_ns,
        min_rtt_ns,
        delivery_bps,
        bandwidth_bps,
        delivered_bytes,
        retransmits,
        phase,
        ca_state,
    } = series;
    let threshold = |&segments: &u32| if segments < Limits::INFINITE { segments as f64 } else { f64::NAN };
    TableAt {
        rows: series.len() - from,
        columns: vec![
            ("time_s", answer.column(time_ns[from..].iter().map(|&time| time as f64 / 1e9))),
            ("cwnd", answer.column(cwnd[from..].iter().map(small))),
            ("ssthresh", answer.column(ssthresh[from..].iter().map(threshold))),
            ("pacing_bps", answer.column(pacing_bps[from..].iter().map(number))),
            ("inflight", answer.column(inflight[from..].iter().map(small))),
            ("srtt_s", answer.column(srtt_ns[from..].iter().map(seconds))),
            ("min_rtt_s", answer.column(min_rtt_ns[from..].iter().map(seconds))),
            ("delivery_bps", answer.column(delivery_bps[from..].iter().map(number))),
            ("bandwidth_bps", answer.column(bandwidth_bps[from..].iter().map(number))),
            ("delivered_bytes", answer.column(delivered_bytes[from..].iter().map(number))),
            ("goodput_bps", answer.column(series.goodputs_bps(from).map(|rate| rate.unwrap_or(f64::NAN)))),
            ("retransmits", answer.column(retransmits[from..].iter().map(number))),
            ("phase", answer.column(phase[from..].iter().map(code))),
            ("state", answer.column(ca_state[from..].iter().map(code))),
        ],
    }
}

/// The samples of a queue from number `from` on.
pub(crate) fn of_queue(answer: &mut Answer, series: &LinkSeries, from: usize) -> TableAt {
    let LinkSeries { time_ns, queue_bytes, queue_delay_ns, dropped_packets, early_packets, marked_packets } =
        series;
    TableAt {
        rows: series.len() - from,
        columns: vec![
            ("time_s", answer.column(time_ns[from..].iter().map(|&time| time as f64 / 1e9))),
            ("queue_bytes", answer.column(queue_bytes[from..].iter().map(number))),
            ("queue_delay_s", answer.column(queue_delay_ns[from..].iter().map(seconds))),
            ("dropped_packets", answer.column(dropped_packets[from..].iter().map(number))),
            ("early_packets", answer.column(early_packets[from..].iter().map(number))),
            ("marked_packets", answer.column(marked_packets[from..].iter().map(number))),
        ],
    }
}

/// A duration that a series has as nanoseconds.
pub(crate) fn seconds(nanos: &u64) -> f64 {
    number(nanos) / 1e9
}

fn number(value: &u64) -> f64 {
    if *value == u64::MAX { f64::NAN } else { *value as f64 }
}

fn small(value: &u32) -> f64 {
    if *value == u32::MAX { f64::NAN } else { *value as f64 }
}

fn code(value: &u8) -> f64 {
    if *value == u8::MAX { f64::NAN } else { *value as f64 }
}
