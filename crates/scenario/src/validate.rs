//! Checks the invariants of a spec, whatever its origin. Field names in errors are those of the spec.

use std::collections::BTreeSet;

use fullpipe_path::rates;
use fullpipe_units::{Bytes, Duration, Rate, Time};

use crate::bounds::{self, MAX_KEPT_RTT, MAX_KEPT_RTTVAR, MAX_REORDERING, MAX_WINDOW};
use crate::check::{Result, delay, demand, name, within};
use crate::elements;
use crate::metrics::{Metric, MetricsSpec};
use crate::spec::{FlowSpec, HostSpec, Spec, Workload};

impl Spec {
    /// Whether every world can run it.
    ///
    /// # Errors
    /// When a number is out of its bounds: the first one, by its field.
    pub fn validate(&self) -> Result {
        name("name", &self.name)?;
        within("duration_ns", self.duration_ns, bounds::MIN_DURATION, bounds::MAX_DURATION)?;
        demand(
            (bounds::MIN_MTU..=bounds::MAX_MTU).contains(&self.mtu_bytes),
            "mtu_bytes",
            self.mtu_bytes,
            format!("{} to {}", bounds::MIN_MTU, bounds::MAX_MTU),
        )?;
        let mut names = BTreeSet::new();
        for (direction, elements) in [("forward", &self.forward), ("reverse", &self.reverse)] {
            for (index, config) in elements.iter().enumerate() {
                elements::check(config, self.mtu_bytes, &mut names)
                    .map_err(|error| error.inside(&format!("{direction}[{index}]")))?;
            }
        }
        hosts(&self.hosts, self.mss()).map_err(|error| error.inside("hosts"))?;
        flows(self)?;
        interval(self)
    }
}

fn hosts(hosts: &HostSpec, mss: u32) -> Result {
    for (field, [least, default, most]) in
        [("tcp_rmem_bytes", hosts.tcp_rmem_bytes), ("tcp_wmem_bytes", hosts.tcp_wmem_bytes)]
    {
        let right =
            Bytes::ZERO < least && least <= default && default <= most && most <= bounds::MAX_SOCKET_BUFFER;
        let given = format!("{}, {}, {}", least.as_u64(), default.as_u64(), most.as_u64());
        demand(right, field, given, "minimum, default, maximum in ascending order, at most 2^31 - 1")?;
    }
    // Buffers count memory, at first twice the payload; below the memory of one segment, nothing can be sent.
    let least = Bytes::new(2 * mss as u64);
    for (field, given) in
        [("tcp_rmem_bytes[1]", hosts.tcp_rmem_bytes[1]), ("tcp_wmem_bytes[2]", hosts.tcp_wmem_bytes[2])]
    {
        demand(
            given >= least,
            field,
            given.as_u64(),
            format!("at least {} bytes, the memory of a full-sized segment", least.as_u64()),
        )?;
    }
    demand(hosts.gso_max_segs > 0, "gso_max_segs", 0, "at least one segment")?;
    if let Some((field, given, expected)) = hosts.metrics.as_ref().and_then(metrics_problem) {
        return demand(false, field, given, expected);
    }
    delay("gro_ns", hosts.gro_ns)
}

fn flows(spec: &Spec) -> Result {
    let count = spec.flows.len();
    let counts = 1..=bounds::MAX_FLOWS;
    demand(counts.contains(&(count as u64)), "flows", count, format!("1 to {} flows", bounds::MAX_FLOWS))?;
    let transfers: u64 = spec.flows.iter().map(|flow| flow.workload.transfers() as u64).sum();
    let most = bounds::MAX_ALL_TRANSFERS;
    demand(transfers <= most, "flows", transfers, format!("at most {most} transfers of all flows together"))?;
    let has_reverse_rate = rates::highest_rate(&spec.reverse) != Rate::MAX;
    let mut labels = BTreeSet::new();
    for (index, checked) in spec.flows.iter().enumerate() {
        flow(checked, spec.mss(), spec.duration_ns, has_reverse_rate)
            .map_err(|error| error.inside(&format!("flows[{index}]")))?;
        let unique = labels.insert(checked.label.as_str());
        demand(unique, &format!("flows[{index}].label"), &checked.label, "a unique label for each flow")?;
    }
    let media = spec.flows.iter().map(|flow| flow.workload.frames(spec.duration_ns, spec.mss()));
    let (frames, packets) = media.fold((0u64, 0u64), |(frames, packets), one| {
        (frames.saturating_add(one.0), packets.saturating_add(one.1))
    });
    let (most, most_packets) = (bounds::MAX_FRAMES, bounds::MAX_FRAME_PACKETS);
    demand(frames <= most, "flows", frames, format!("at most {most} frames of all flows together"))?;
    let expected = format!("at most {most_packets} packets of the frames of all flows together");
    demand(packets <= most_packets, "flows", packets, expected)
}

fn flow(flow: &FlowSpec, mss: u32, duration: Duration, has_reverse_rate: bool) -> Result {
    let long = bounds::MAX_DURATION;
    demand(!flow.label.is_empty(), "label", &flow.label, "a label")?;
    let is_program = flow.controller.is_program();
    let expected =
        if is_program { "a controller, or a program besides" } else { "\"program\" beside a program" };
    demand(is_program == flow.program.is_some(), "controller", &flow.controller, expected)?;
    flow.program
        .as_ref()
        .map_or(Ok(()), |program| program.check().map_err(|error| error.inside("program")))?;
    let before_end = flow.start_ns < Time::ZERO + duration;
    demand(before_end, "start_ns", flow.start_ns.as_nanos(), "a time before the end")?;
    within("start_jitter_ns", flow.start_jitter_ns, Duration::ZERO, long)?;
    if let Some(stop) = flow.stop_ns {
        demand(stop > flow.start_ns, "stop_ns", stop.as_nanos(), "a time after start_ns")?;
    }
    workload(&flow.workload, mss).map_err(|error| error.inside("workload"))?;
    let is_media = matches!(flow.workload, Workload::Media { .. });
    let expected =
        if is_media { "\"media\" beside media" } else { "a controller, or frames of media besides" };
    demand(flow.controller.is_media() == is_media, "controller", &flow.controller, expected)?;
    if is_media {
        demand(flow.receiver.is_none(), "receiver", "a lie", "no receiver beside media")?;
        demand(flow.max_cwnd.is_none(), "max_cwnd", "a window", "no window beside media")?;
        demand(flow.ecn.is_none(), "ecn", "a choice", "no ecn beside media")?;
    }
    if let Some(lie) = flow.receiver {
        demand(
            lie.suits(&flow.workload),
            "receiver",
            lie.name(),
            "a bulk flow for a receiver that hides loss",
        )?;
        demand(!is_program, "receiver", lie.name(), "no receiver beside a program")?;
    }
    if flow.is_reverse() {
        demand(!is_program, "direction", "reverse", "no direction beside a program")?;
        demand(has_reverse_rate, "direction", "reverse", "an element with a rate in reverse")?;
    }
    delay("extra_forward_ns", flow.extra_forward_ns)?;
    delay("extra_reverse_ns", flow.extra_reverse_ns)?;
    let cap = flow.max_cwnd.unwrap_or(1);
    demand((1..=bounds::MAX_CWND).contains(&cap), "max_cwnd", cap, format!("1 to {}", bounds::MAX_CWND))
}

fn workload(workload: &Workload, mss: u32) -> Result {
    let long = bounds::MAX_DURATION;
    match workload {
        Workload::Bulk => Ok(()),
        Workload::Finite { size_bytes } => amount("size_bytes", *size_bytes),
        Workload::Bursts { size_bytes, every_ns } => {
            let whole = size_bytes.as_u64().is_multiple_of(u64::from(mss));
            let expected = format!("a multiple of the segment size ({mss} B), at most 1 PB");
            demand(whole, "size_bytes", size_bytes.as_u64(), expected)?;
            amount("size_bytes", *size_bytes)?;
            within("every_ns", *every_ns, bounds::MIN_BURST_INTERVAL, long)
        }
        Workload::Requests { size_bytes, pause_ns } => {
            amount("size_bytes", *size_bytes)?;
            within("pause_ns", *pause_ns, Duration::ZERO, long)
        }
        Workload::Video { chunk_bytes, chunk_ns, buffer_ns } => {
            amount("chunk_bytes", *chunk_bytes)?;
            within("chunk_ns", *chunk_ns, bounds::MIN_CHUNK, long)?;
            within("buffer_ns", *buffer_ns, *chunk_ns, long)
        }
        Workload::Media { frame_bytes, every_ns, deadline_ns } => {
            let right = Bytes::ZERO < *frame_bytes && *frame_bytes <= bounds::MAX_FRAME;
            demand(right, "frame_bytes", frame_bytes.as_u64(), "1 byte to 10 MB")?;
            within("every_ns", *every_ns, bounds::MIN_FRAME_INTERVAL, long)?;
            within("deadline_ns", *deadline_ns, Duration::from_nanos(1), long)
        }
        Workload::Script { transfers } => {
            let count = transfers.len();
            let right = (1..=bounds::MAX_TRANSFERS).contains(&count);
            demand(right, "transfers", count, format!("1 to {} transfers", bounds::MAX_TRANSFERS))?;
            let total = workload.total_bytes().unwrap_or_default();
            demand(total <= bounds::MAX_FLOW_SIZE, "transfers", total.as_u64(), "at most 1 PB together")?;
            transfers.iter().enumerate().try_for_each(|(index, transfer)| {
                amount(&format!("transfers[{index}].size_bytes"), transfer.size_bytes)?;
                within(&format!("transfers[{index}].pause_ns"), transfer.pause_ns, Duration::ZERO, long)
            })
        }
    }
}

fn amount(field: &str, bytes: Bytes) -> Result {
    let right = Bytes::ZERO < bytes && bytes <= bounds::MAX_FLOW_SIZE;
    demand(right, field, bytes.as_u64(), "1 byte to 1 PB")
}

fn interval(spec: &Spec) -> Result {
    let Some(interval) = spec.sample_interval_ns else { return Ok(()) };
    let flows = if spec.sample_flows { spec.flows.len().max(1) as u64 } else { 1 };
    let most_samples = bounds::MAX_SAMPLES.min(bounds::MAX_ROWS / flows).max(1);
    let shortest = spec.duration_ns.as_nanos().div_ceil(most_samples);
    let right = interval > Duration::ZERO && interval.as_nanos() >= shortest;
    demand(right, "sample_interval_ns", interval.as_nanos(), format!("at least {shortest}"))
}

/// Why the numbers make no sense: the field, its value, and what is expected.
fn metrics_problem(metrics: &MetricsSpec) -> Option<(&'static str, String, String)> {
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
    let times = [
        ("metrics.rtt_ns", metrics.rtt_ns, MAX_KEPT_RTT),
        ("metrics.rttvar_ns", metrics.rttvar_ns, MAX_KEPT_RTTVAR),
    ];
    for (field, given, most) in times {
        if given > most {
            return Some((field, given.as_nanos().to_string(), format!("up to {}", most.as_nanos())));
        }
    }
    // A locked window is a cap, and nothing could be sent.
    (metrics.is_locked(Metric::Cwnd) && metrics.cwnd == 0)
        .then(|| ("metrics.cwnd", "0".to_owned(), "at least 1 where it is locked".to_owned()))
}
