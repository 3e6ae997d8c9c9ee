//! A scenario from a few plain arguments.

use fullpipe_path::config::{ElementConfig, Probability, QueueConfig, Schedule};
use fullpipe_scenario::controller::ControllerChoice;
use fullpipe_scenario::spec::{Direction, FlowSpec, HostModel, HostSpec, Spec, Workload};
use fullpipe_units::{Bytes, Duration, Rate, Time};

/// Reads `CC[+CC...] RATE_MBPS RTT_MS BUFFER_BYTES LOSS DURATION_S [SEED [FLOW_BYTES]]`.
pub(crate) fn spec_of(arguments: &[String]) -> Option<(Spec, u64)> {
    let [controllers, rate, rtt, buffer, loss, duration, rest @ ..] = arguments else { return None };
    let seed = rest.first().map_or(Some(1), |seed| seed.parse().ok())?;
    let workload = match rest.get(1) {
        Some(size) => Workload::Finite { size_bytes: Bytes::new(size.parse().ok()?) },
        None => Workload::Bulk,
    };
    let flow = |(number, name): (usize, &str)| {
        Some(FlowSpec {
            label: format!("{number}-{name}"),
            controller: ControllerChoice::parse(name).ok()?,
            start_ns: Time::ZERO,
            start_jitter_ns: Duration::ZERO,
            stop_ns: None,
            workload: workload.clone(),
            extra_forward_ns: Duration::ZERO,
            extra_reverse_ns: Duration::ZERO,
            max_cwnd: None,
            ecn: None,
            receiver: None,
            direction: Direction::Forward,
            program: None,
        })
    };
    let link = link(rate.parse().ok()?, buffer.parse().ok()?);
    let delay = delay(rtt.parse().ok()?);
    let mut forward = vec![link, delay.clone()];
    let loss: f64 = loss.parse().ok()?;
    if loss > 0.0 {
        forward.push(ElementConfig::loss(Schedule::constant(Probability::from_f64(loss))));
    }
    let spec = Spec {
        name: "example".to_owned(),
        duration_ns: Duration::from_nanos((duration.parse::<f64>().ok()? * 1e9) as u64),
        mtu_bytes: 1500,
        forward,
        reverse: vec![delay],
        hosts: HostSpec {
            model: HostModel::Ideal,
            tcp_rmem_bytes: [4096, 131_072, 67_108_864].map(Bytes::new),
            tcp_wmem_bytes: [4096, 16_384, 67_108_864].map(Bytes::new),
            pacing: false,
            gro_ns: Duration::ZERO,
            gso_max_segs: HostSpec::GSO_MAX_SEGS,
            ecn: false,
            metrics: None,
        },
        flows: controllers.split('+').enumerate().map(flow).collect::<Option<_>>()?,
        sample_interval_ns: Some(Duration::from_millis(10)),
        sample_flows: true,
        keep_series: true,
        seed,
    };
    Some((spec, seed))
}

/// A bottleneck.
pub(crate) fn link(rate_mbps: f64, buffer_bytes: u64) -> ElementConfig {
    ElementConfig::Link {
        name: "bottleneck".to_owned(),
        rate_bps: Schedule::constant(Rate::from_bits_per_sec((rate_mbps * 1e6) as u64)),
        queue: QueueConfig::drop_tail(Bytes::new(buffer_bytes), None),
    }
}

/// Half of an RTT.
fn delay(rtt_ms: f64) -> ElementConfig {
    ElementConfig::Delay { delay_ns: Schedule::constant(Duration::from_nanos((rtt_ms * 1e6 / 2.0) as u64)) }
}
