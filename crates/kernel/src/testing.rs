//! Shorthands of tests.

use fullpipe_path::config::{ElementConfig, QueueConfig, Schedule};
use fullpipe_scenario::controller::ControllerChoice;
use fullpipe_scenario::spec::{Direction, FlowSpec, HostModel, HostSpec, Spec, Workload};
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// A scenario of one flow over 100 Mbit/s and 40 ms.
pub(crate) fn spec(buffer_bytes: u64) -> Spec {
    let delay = |millis| ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_millis(millis)) };
    let link = ElementConfig::Link {
        name: "bottleneck".to_owned(),
        rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
        queue: QueueConfig::drop_tail(Bytes::new(buffer_bytes), None),
    };
    let flow = FlowSpec {
        label: "a".to_owned(),
        controller: ControllerChoice::parse("reno").unwrap(),
        start_ns: Time::ZERO,
        start_jitter_ns: Duration::ZERO,
        stop_ns: None,
        workload: Workload::Bulk,
        extra_forward_ns: Duration::from_millis(5),
        extra_reverse_ns: Duration::ZERO,
        max_cwnd: None,
        ecn: None,
        receiver: None,
        direction: Direction::Forward,
        program: None,
    };
    Spec {
        name: "test".to_owned(),
        duration_ns: Duration::from_secs(1),
        mtu_bytes: 1500,
        forward: vec![link, delay(20)],
        reverse: vec![delay(15)],
        hosts: HostSpec {
            model: HostModel::Ideal,
            tcp_rmem_bytes: [4096, 131_072, 6_291_456].map(Bytes::new),
            tcp_wmem_bytes: [4096, 16_384, 4_194_304].map(Bytes::new),
            pacing: false,
            gro_ns: Duration::ZERO,
            gso_max_segs: HostSpec::GSO_MAX_SEGS,
            ecn: false,
            metrics: None,
        },
        flows: vec![flow],
        sample_interval_ns: None,
        sample_flows: true,
        keep_series: true,
        seed: 1,
    }
}
