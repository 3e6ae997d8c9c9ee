//! The flows: one spec each, labelled, with times and sizes worked out.

use std::collections::BTreeMap;

use fullpipe_units::{Bytes, Duration, Time};

use super::{Frame, check_name, default};
use crate::bounds;
use crate::controller::ControllerChoice;
use crate::document::{Document, FlowDocument};
use crate::error::ScenarioError;
use crate::quantity::{Count, Quantity, Said, Size};
use crate::spec::{FlowSpec, Workload};

/// Resolves the flows; those without a controller get the `alternative`.
pub(super) fn resolve(
    document: &Document,
    alternative: Option<&ControllerChoice>,
    frame: &Frame,
) -> Result<Vec<FlowSpec>, ScenarioError> {
    let alone = [FlowDocument::default()];
    let documents = match (&document.flows[..], alternative) {
        ([], None) => {
            return Err(ScenarioError::missing("flows")
                .expected("a flow, or controllers to compare")
                .mend("add [[flows]] with controller = \"bbr1\", or compare = [\"bbr1\", \"cubic\"]"));
        }
        ([], Some(_)) => &alone[..],
        (flows, _) => flows,
    };
    let mut groups = Vec::new();
    let mut total = 0u64;
    for (index, document) in documents.iter().enumerate() {
        let field = format!("flows[{index}]");
        let group = Group::read(&field, document, alternative, frame)?;
        total += group.count;
        if total > bounds::MAX_FLOWS {
            let count = default(&document.count, "1");
            let expected = format!("at most {} flows", bounds::MAX_FLOWS);
            return Err(count
                .error(&format!("{field}.count"), format!("makes {total} flows"))
                .expected(expected));
        }
        groups.push(group);
    }
    label_all(&groups)
}

/// A group of flows alike: the first of them, and how the others differ.
struct Group {
    first: FlowSpec,
    count: u64,
    stagger: Duration,
}

impl Group {
    fn read(
        field: &str,
        document: &FlowDocument,
        alternative: Option<&ControllerChoice>,
        frame: &Frame,
    ) -> Result<Group, ScenarioError> {
        let at = |key: &str| format!("{field}.{key}");
        let controller = match (&document.controller, alternative) {
            (Some(text), _) => ControllerChoice::parse_field(&at("controller"), text)?,
            (None, Some(choice)) => choice.clone(),
            (None, None) => {
                return Err(ScenarioError::missing(&at("controller"))
                    .expected(crate::error::one_of(&crate::controller::controller_names()))
                    .mend("write controller = \"bbr1\", or compare = [\"bbr1\", \"cubic\"] at the top"));
            }
        };
        if let Some(label) = &document.label {
            check_name(&at("label"), label)?;
        }
        let Count(count) = default(&document.count, "1")
            .read_within(&at("count"), Count(1)..=Count(bounds::MAX_FLOWS))
            .map_err(|error| error.write("1"))?;
        let rtt = own_rtt(&at("rtt"), &document.rtt, frame)?;
        let extra = rtt.saturating_sub(frame.rtt);
        let extra_forward_ns = Duration::from_nanos(extra.as_nanos() / 2);
        let times = Times::read(field, document, count, rtt, frame)?;
        let bdp = frame.rate.bytes_in(rtt);
        let first = FlowSpec {
            label: document.label.clone().unwrap_or_else(|| controller.text().to_string()),
            controller,
            start_ns: Time::ZERO + times.start,
            start_jitter_ns: times.jitter,
            stop_ns: times.stop.map(|stop| Time::ZERO + stop),
            workload: workload(field, document, frame, bdp)?,
            extra_forward_ns,
            extra_reverse_ns: extra - extra_forward_ns,
            max_cwnd: max_cwnd(&at("max_cwnd"), &document.max_cwnd, frame, bdp)?,
        };
        Ok(Group { first, count, stagger: times.stagger })
    }
}

/// When the flows of a group are there.
struct Times {
    start: Duration,
    stagger: Duration,
    jitter: Duration,
    stop: Option<Duration>,
}

impl Times {
    fn read(
        field: &str,
        document: &FlowDocument,
        count: u64,
        rtt: Duration,
        frame: &Frame,
    ) -> Result<Times, ScenarioError> {
        let any = Duration::ZERO..=bounds::MAX_DURATION;
        let at = |key: &str| format!("{field}.{key}");
        let end = frame.spec.duration_ns;
        let start_said = default(&document.start, "0");
        let start = start_said.read_within(&at("start"), any.clone())?;
        let stagger_said = default(&document.stagger, "0");
        let stagger = stagger_said.read_within(&at("stagger"), any.clone())?;
        let jitter = match &document.start_jitter {
            Some(said) => said.read_within(&at("start_jitter"), any.clone())?,
            None => rtt,
        };
        let too_late = |said: &Said<Duration>, key: &str, last: Duration| {
            said.error(&at(key), format!("lets a flow start at {}", last.text()))
                .expected(format!("a start before the end ({})", end.text()))
                .mend("start earlier, or make duration longer")
        };
        if start >= end {
            return Err(too_late(&start_said, "start", start));
        }
        // Both factors are bounded, and their product is below 2^63.
        let last_start = start + stagger.saturating_mul(count - 1);
        if last_start >= end {
            return Err(too_late(&stagger_said, "stagger", last_start));
        }
        let stop = document.stop.as_ref().map(|said| said.read_within(&at("stop"), any)).transpose()?;
        if let (Some(stop), Some(said)) = (stop, &document.stop)
            && stop <= last_start + jitter
        {
            let latest = (last_start + jitter).text();
            return Err(said
                .error(&at("stop"), "is not after the start")
                .expected(format!("a time after {latest}, the latest start (start_jitter included)"))
                .mend("stop later, or start earlier"));
        }
        Ok(Times { start, stagger, jitter, stop })
    }
}

fn own_rtt(field: &str, said: &Option<Said<Duration>>, frame: &Frame) -> Result<Duration, ScenarioError> {
    let Some(said) = said else { return Ok(frame.rtt) };
    let rtt = said.read_within(field, Duration::ZERO..=bounds::MAX_DELAY)?;
    if rtt < frame.rtt {
        let least = frame.rtt.text();
        return Err(said
            .error(field, format!("is below the path's round-trip time ({least})"))
            .expected(format!("at least {least}"))
            .mend("lower path.rtt to the smallest of all flows, and give the others their own"));
    }
    Ok(rtt)
}

fn workload(
    field: &str,
    document: &FlowDocument,
    frame: &Frame,
    bdp: Bytes,
) -> Result<Workload, ScenarioError> {
    let mss = u64::from(frame.spec.mss());
    match (&document.size, &document.bursts) {
        (None, None) => Ok(Workload::Bulk),
        (Some(said), None) => {
            Ok(Workload::Finite { size_bytes: amount(&format!("{field}.size"), said, mss, bdp)? })
        }
        (None, Some(bursts)) => {
            let at = |key: &str| format!("{field}.bursts.{key}");
            let missing = |key: &str, expected: &str| {
                let mend = "write bursts = { size = \"200 KB\", every = \"500 ms\" }";
                ScenarioError::missing(&at(key)).expected(expected).mend(mend)
            };
            let size = bursts.size.as_ref().ok_or_else(|| missing("size", "an amount"))?;
            let every = bursts.every.as_ref().ok_or_else(|| missing("every", "a time"))?;
            let segments = amount(&at("size"), size, mss, bdp)?.as_u64().div_ceil(mss);
            let every_ns = every
                .read_within(&at("every"), bounds::MIN_BURST_INTERVAL..=bounds::MAX_DURATION)
                .map_err(|error| error.write("\"500 ms\""))?;
            Ok(Workload::Bursts { size_bytes: Bytes::new(segments * mss), every_ns })
        }
        (Some(size), Some(_)) => Err(size
            .error(&format!("{field}.size"), "stands beside bursts")
            .expected("one of them")
            .mend("leave out size, or bursts")),
    }
}

/// How much an application sends, given in bytes, segments or bandwidth-delay products.
fn amount(field: &str, said: &Said<Size>, mss: u64, bdp: Bytes) -> Result<Bytes, ScenarioError> {
    let payload = Bytes::new(mss);
    let size_bytes = said.read(field)?.bytes(payload, bdp).filter(|size| *size <= bounds::MAX_FLOW_SIZE);
    let most = Size::Bytes(bounds::MAX_FLOW_SIZE).text();
    let size_bytes = size_bytes.ok_or_else(|| said.error(field, format!("is above {most}")))?;
    if size_bytes == Bytes::ZERO {
        return Err(said.error(field, "is zero").expected("at least one byte").write("\"10 MB\""));
    }
    Ok(size_bytes)
}

fn max_cwnd(
    field: &str,
    said: &Option<Said<Size>>,
    frame: &Frame,
    bdp: Bytes,
) -> Result<Option<u32>, ScenarioError> {
    let Some(said) = said else { return Ok(None) };
    let size = said.read(field)?;
    let wire_bytes = size.bytes(frame.packet(), bdp).ok_or_else(|| said.error(field, "is too large"))?;
    let segments = wire_bytes.as_u64() / frame.packet().as_u64();
    match u32::try_from(segments).ok().filter(|segments| *segments <= bounds::MAX_CWND) {
        Some(0) => {
            Err(said.error(field, "is below one packet").expected("at least one packet").write("\"2 bdp\""))
        }
        None => Err(said.error(field, format!("is above {} packets", bounds::MAX_CWND))),
        segments => Ok(segments),
    }
}

/// All flows in order. A label that several flows share is numbered.
fn label_all(groups: &[Group]) -> Result<Vec<FlowSpec>, ScenarioError> {
    let mut totals: BTreeMap<&str, u64> = BTreeMap::new();
    for group in groups {
        *totals.entry(&group.first.label).or_default() += group.count;
    }
    let mut numbers: BTreeMap<&str, u64> = BTreeMap::new();
    // Which group a finished label came from.
    let mut taken: BTreeMap<String, usize> = BTreeMap::new();
    let mut flows = Vec::new();
    for (index, group) in groups.iter().enumerate() {
        let base = group.first.label.as_str();
        for copy in 0..group.count {
            let number = numbers.entry(base).or_default();
            *number += 1;
            let label = if totals[base] == 1 { base.to_string() } else { format!("{base}-{number}") };
            if let Some(other) = taken.insert(label.clone(), index) {
                return Err(ScenarioError::new(&format!("flows[{index}].label"), &label, "is taken")
                    .expected(format!("a label other than those of flows[{other}]"))
                    .mend("choose another label"));
            }
            let start_ns = group.first.start_ns + group.stagger.saturating_mul(copy);
            flows.push(FlowSpec { label, start_ns, ..group.first.clone() });
        }
    }
    Ok(flows)
}
