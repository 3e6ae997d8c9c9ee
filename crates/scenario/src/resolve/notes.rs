//! Notes on a scenario that can run: what was assumed, what its words hide, and which settings have no effect.
//!
//! A setting that can never make sense is an error of `resolve`. A setting that has no effect beside the others is a note.

use std::iter;

use fullpipe_cc::Config;
use fullpipe_path::config::{AdmissionUnit, DisciplineConfig, ElementConfig, QueueConfig, Schedule};
use fullpipe_path::element::Side;
use fullpipe_path::elements::{aggregate, bleach, duplicate, gilbert_elliott, jitter, policer, reorder};
use fullpipe_units::{Bytes, Duration, Rate, Time};

use super::builder::mean_rate;
use crate::bounds;
use crate::declared::WithOptions;
use crate::document::{Document, FlowDocument, PathDocument, ReverseDocument};
use crate::elements::Element;
use crate::metrics::{Metric, MetricsSpec};
use crate::quantity::{Quantity, QuantityText, Size};
use crate::spec::{EcnUse, FlowSpec, Lie, Spec};
use crate::unit::Unit;

/// Sentences about a scenario: a document, and what it resolved to, one spec for each alternative.
pub fn notes(document: &Document, alternatives: &[Spec]) -> Vec<String> {
    let (Some(path), Some(spec)) = (&document.path, alternatives.first()) else { return Vec::new() };
    let forward = Way::forward(path, spec);
    let reverse = Way::reverse(&path.reverse, spec);
    let ways = [&forward, &reverse];
    let elements = || spec.forward.iter().chain(&spec.reverse);
    let rtt = path.rtt.as_ref().and_then(|rtt| rtt.read("path.rtt").ok()).unwrap_or_default();
    let mut found: Vec<String> = ways.iter().flat_map(|way| way.assumed_buffers(spec, rtt)).collect();
    found.extend(ways.iter().flat_map(|way| way.small_buffers(spec)));
    found.extend(elements().filter_map(|element| deep_bucket(spec, element)));
    found.extend(spec.forward.iter().filter_map(|element| too_long_bursts(spec, element)));
    found.extend(spec.hosts.metrics.iter().flat_map(unused_metrics));
    found.extend(ways.iter().flat_map(|way| way.parted(spec)));
    found.extend(ways.iter().flat_map(|way| way.idle(alternatives)));
    found.extend(ways.iter().flat_map(|way| way.repeated()));
    found.extend(unused_ecn(document, alternatives));
    found.extend(unanswered_marks(alternatives, rtt));
    found.extend(unmarked_liars(alternatives));
    found.extend(unused_hosts(document, alternatives));
    found.extend(document.flows.iter().enumerate().flat_map(|(index, flow)| unused_times(index, flow, spec)));
    found
}

/// The elements of one direction, and where a document has them.
struct Way<'a> {
    field: &'static str,
    elements: &'a [ElementConfig],
    before: &'a [Element],
    /// How many of them are the path's own: its link, its loss, and what other keys put there.
    own: usize,
    after: &'a [Element],
    /// The buffer of its own link as it is given.
    buffer: Option<&'a QuantityText<Size>>,
    /// Whether the document itself says that its own queue and loss take bursts whole.
    bursts: bool,
    /// Whether flows send data that way, and not acknowledgements only.
    has_data: bool,
    /// Whether hosts hand over several packets as one.
    together: bool,
}

impl<'a> Way<'a> {
    fn forward(path: &'a WithOptions<PathDocument>, spec: &'a Spec) -> Way<'a> {
        let has_loss = path.loss.is_some() || path.changes.iter().any(|change| change.loss.is_some());
        Way {
            field: "path",
            elements: &spec.forward,
            before: &path.before,
            own: 1
                + usize::from(has_loss)
                + path.options.count(Side::Before)
                + path.options.count(Side::After),
            after: &path.after,
            buffer: path.buffer.as_ref(),
            bursts: path.unit == Some(Unit::Burst),
            has_data: true,
            together: spec.hosts.gso_max_segs > 1,
        }
    }

    /// Acknowledgements leave one by one.
    fn reverse(path: &'a WithOptions<ReverseDocument>, spec: &'a Spec) -> Way<'a> {
        let has_loss = path.loss.is_some() || path.changes.iter().any(|change| change.loss.is_some());
        let has_link = path.rate.is_some() || path.deliveries.is_some();
        Way {
            field: "path.reverse",
            elements: &spec.reverse,
            before: &path.before,
            own: usize::from(has_link)
                + usize::from(has_loss)
                + path.options.count(Side::Before)
                + path.options.count(Side::After),
            after: &path.after,
            buffer: path.buffer.as_ref(),
            bursts: path.unit == Some(Unit::Burst),
            has_data: spec.has_reverse_flows(),
            together: spec.has_reverse_flows() && spec.hosts.gso_max_segs > 1,
        }
    }

    fn is_forward(&self) -> bool {
        self.field == "path"
    }

    /// The table of an element in the document.
    fn place(&self, index: usize) -> String {
        let behind = self.before.len() + self.own;
        match index {
            index if index < self.before.len() => format!("{}.before[{index}]", self.field),
            index if index < behind => self.field.to_owned(),
            index if index < behind + self.after.len() => format!("{}.after[{}]", self.field, index - behind),
            _ => "path.rtt".to_owned(),
        }
    }

    fn placed(&self) -> impl Iterator<Item = (String, &ElementConfig)> {
        self.elements.iter().enumerate().map(|(index, element)| (self.place(index), element))
    }

    /// The buffer of an element as it is given.
    fn given(&self, index: usize) -> Option<&QuantityText<Size>> {
        let behind = self.before.len() + self.own;
        match index {
            index if index < self.before.len() => self.before[index].buffer(),
            index if index < behind => self.buffer,
            index => self.after.get(index - behind).and_then(Element::buffer),
        }
    }

    /// Buffers that are larger than what was given, or than the one bandwidth-delay product where none was.
    fn assumed_buffers(&self, spec: &Spec, rtt: Duration) -> impl Iterator<Item = String> {
        let elements = self.elements.iter().enumerate();
        elements.filter_map(move |(index, element)| {
            let (rate, queue) = (nominal_rate(element)?, element.queue()?);
            let (bdp, given) = (rate.bytes_in(rtt), self.given(index));
            let packets = bounds::LEAST_ASSUMED_PACKETS;
            let Some(written) = given else {
                // On the way back, the default does not depend on the path.
                return (self.is_forward() && queue.bytes > bdp).then(|| {
                    let bdp = bdp.as_u64() as f64 / f64::from(spec.mtu_bytes);
                    format!("buffer: {packets} packets (assumed; 1 BDP is {bdp:.1} packets)")
                });
            };
            let asked = written.read("buffer").ok()?.bytes(Bytes::ZERO, bdp)?;
            let is_bdp = matches!(written.read("buffer"), Ok(Size::Bdp(_)));
            (is_bdp && queue.bytes > asked).then(|| {
                let (place, given) = (self.place(index), written.text());
                format!("{place}.buffer: {packets} packets (assumed; {given} is below one packet)")
            })
        })
    }

    /// Queues in which hardly a packet can wait. The bytes of acknowledgements say nothing about their number.
    fn small_buffers(&self, spec: &Spec) -> impl Iterator<Item = String> {
        self.placed().filter_map(move |(place, element)| {
            let queue = element.queue()?;
            let by_bytes = queue.bytes.as_u64() / u64::from(spec.mtu_bytes);
            let packets = queue.packets.map_or(by_bytes, u64::from);
            // Of a queue that takes bursts whole, `too_long_bursts` says more.
            let counts = queue.unit.is_segment() && (self.has_data || queue.packets.is_some());
            (counts && packets < 3).then(|| {
                let (least, s) = (bounds::LEAST_ASSUMED_PACKETS, if packets == 1 { "" } else { "s" });
                format!(
                    "{place}.buffer: the queue has room for {packets} packet{s}, so flows lose packets although the link \
                     has capacity left; {least} packets are enough."
                )
            })
        })
    }

    /// Elements that decide about bursts, where no burst comes.
    fn parted(&self, spec: &Spec) -> Vec<String> {
        let mut together = self.together;
        let mut parted_by: Option<String> = None;
        let mut found = Vec::new();
        for (index, element) in self.elements.iter().enumerate() {
            let place = self.place(index);
            let is_own = place == self.field;
            if element.unit() == AdmissionUnit::Burst && !together && (!is_own || self.bursts) {
                let why = match &parted_by {
                    Some(other) => format!("{other} sends the packets of a burst one after the other"),
                    None if self.has_data => "every burst has one packet (hosts.gso_max_segs = 1)".to_owned(),
                    None => "acknowledgements do not come in bursts".to_owned(),
                };
                found.push(format!("{place}.unit = \"burst\" has no effect: {why}."));
            }
            if let ElementConfig::Aggregate(aggregate::Config { merge: true, .. }) = element {
                let used =
                    self.elements[index + 1..].iter().any(|later| later.unit() == AdmissionUnit::Burst);
                let why = match self.has_data {
                    false => Some("acknowledgements are not merged"),
                    true => (!used).then_some("no element behind it has unit = \"burst\""),
                };
                found.extend(why.map(|why| format!("{place}.merge = true has no effect: {why}.")));
            }
            let was = together;
            together = self.has_data && element.leaves_together(was);
            if was && !together {
                parted_by = Some(element.name().map_or(place, str::to_owned));
            }
        }
        // Of a path's own queue and loss once.
        found.dedup();
        let segments = u32::from(spec.hosts.gso_max_segs);
        let most = Config::GSO_MAX / spec.mss();
        if self.is_forward() && segments != u32::from(u16::MAX) && segments >= most {
            found.push(format!(
                "hosts.gso_max_segs = {segments} has no effect: 64 KB already limit a burst to {most} segments."
            ));
        }
        found
    }

    /// Elements and settings of queues that do nothing to any packet.
    fn idle(&self, alternatives: &[Spec]) -> impl Iterator<Item = String> {
        let capable = is_ecn_capable(alternatives, !self.is_forward());
        self.placed().filter_map(move |(place, element)| {
            let nothing = |why: &str| Some(format!("{place}: {} has no effect: {why}.", element.kind()));
            match element {
                ElementConfig::Jitter(jitter::Config { amplitude_ns, reorder: true })
                    if *amplitude_ns == Duration::ZERO =>
                {
                    nothing("no packet overtakes another without a delay")
                }
                ElementConfig::Duplicate(duplicate::Config { probability })
                    if probability.as_f64() == 0.0 =>
                {
                    nothing("its probability is 0 %")
                }
                ElementConfig::Reorder(reorder::Config { probability, delay_ns }) => {
                    match (probability.as_f64() == 0.0, *delay_ns == Duration::ZERO) {
                        (true, _) => nothing("its probability is 0 %"),
                        (_, true) => nothing("its delay is 0"),
                        _ => None,
                    }
                }
                ElementConfig::GilbertElliott(config) => {
                    let gilbert_elliott::Config { good_to_bad, loss_good, loss_bad, .. } = config;
                    let never_bad = good_to_bad.as_f64() == 0.0;
                    let loses = [(loss_good, true), (loss_bad, !never_bad)];
                    if !loses.iter().any(|(loss, comes)| *comes && loss.as_f64() > 0.0) {
                        return nothing("no state that it reaches loses packets");
                    }
                    never_bad.then(|| {
                        format!("{place}: bad_to_good and loss_bad have no effect: good_to_bad is 0 %.")
                    })
                }
                ElementConfig::Bleach(bleach::Config { probability }) if probability.as_f64() == 0.0 => {
                    nothing("its probability is 0 %")
                }
                ElementConfig::Bleach(_) | ElementConfig::EcnBlackhole(_) if !capable => {
                    nothing("no packet there is ECN-capable")
                }
                ElementConfig::Bleach(_) if !self.elements.iter().any(looks_at_ecn) => {
                    nothing("no queue on that way marks packets")
                }
                _ => element.queue().filter(|_| !capable).and_then(|queue| unmarking(&place, queue)),
            }
        })
    }

    /// Changes to the value that there is already.
    fn repeated(&self) -> impl Iterator<Item = String> {
        self.placed().filter(|(place, _)| self.is_forward() || place != "path.rtt").flat_map(
            |(place, element)| {
                let (what, times) = match element {
                    ElementConfig::Link { rate_bps, .. } => ("rate", same(rate_bps)),
                    ElementConfig::Delay { delay_ns } => ("delay", same(delay_ns)),
                    ElementConfig::Loss { probability, .. } => ("loss", same(probability)),
                    _ => ("", Vec::new()),
                };
                let note = move |at: Time| {
                    let at = at.saturating_since(Time::ZERO).text();
                    format!("{place}: the change at {at} has no effect: the {what} already has that value.")
                };
                times.into_iter().map(note)
            },
        )
    }
}

/// The times of changes that change nothing.
fn same<T: Copy + PartialEq>(schedule: &Schedule<T>) -> Vec<Time> {
    let values = iter::once(schedule.initial).chain(schedule.changes.iter().map(|(_, value)| *value));
    let changes = schedule.changes.iter().zip(values);
    changes.filter(|((_, value), before)| value == before).map(|((at, _), _)| *at).collect()
}

/// The rate that a bandwidth-delay product of an element's buffer is of.
pub(super) fn nominal_rate(element: &ElementConfig) -> Option<Rate> {
    match element {
        ElementConfig::Link { rate_bps, .. } => Some(rate_bps.initial),
        ElementConfig::TokenBucket { rate_bps, .. } => Some(*rate_bps),
        ElementConfig::Cellular { rates_bps, .. } => rates_bps.last().copied(),
        ElementConfig::DeliveryTrace { opportunities_ms, .. } => {
            Some(mean_rate(opportunities_ms.len(), opportunities_ms.last().copied()?))
        }
        _ => None,
    }
}

/// Whether packets may be ECN-capable in a direction, in any alternative: data, or the acknowledgements of the other one's.
fn is_ecn_capable(alternatives: &[Spec], reverse: bool) -> bool {
    let capable = |spec: &Spec, flow: &FlowSpec| match flow.ecn(&spec.hosts) {
        EcnUse::Exact(_) => true,
        EcnUse::Classic => flow.is_reverse() == reverse,
        // A program may ask for what it likes.
        EcnUse::None => flow.program.is_some(),
    };
    alternatives.iter().any(|spec| spec.flows.iter().any(|flow| capable(spec, flow)))
}

/// Whether a discipline marks packets that are ECN-capable.
fn marks(discipline: &DisciplineConfig) -> bool {
    let value = |name: &str| {
        let found = discipline.settings().find(|(setting, _)| setting.name == name);
        found.map(|(_, value)| value)
    };
    !discipline.is_fifo() && (value("ecn") != Some(0) || value("ce_threshold").is_some_and(|time| time > 0))
}

/// Whether an element treats ECN-capable packets in a way of their own.
fn looks_at_ecn(element: &ElementConfig) -> bool {
    matches!(element, ElementConfig::EcnBlackhole(_))
        || element.queue().is_some_and(|queue| marks(&queue.discipline))
}

/// Settings of disciplines that are about ECN-capable packets only.
const ABOUT_ECN: &[&str] = &["ecn", "ce_threshold", "mark_ecnth", "harddrop"];

/// A discipline, or its settings, where no packet is ECN-capable.
fn unmarking(place: &str, queue: &QueueConfig) -> Option<String> {
    let discipline = queue.discipline;
    let value = |name: &str| discipline.settings().find(|(setting, _)| setting.name == name);
    if discipline.info().name == "step" && value("drop").is_some_and(|(_, drop)| drop == 0) {
        return Some(format!(
            "{place}.queue = \"step\" has no effect: it marks packets, and none there is ECN-capable."
        ));
    }
    let about = |(setting, value): (&fullpipe_path::SettingInfo, u64)| {
        (ABOUT_ECN.contains(&setting.name) && value != setting.default).then_some(setting.name)
    };
    let names: Vec<&str> = discipline.settings().filter_map(about).collect();
    (!names.is_empty()).then(|| {
        let (names, have) = (names.join(" and "), if names.len() == 1 { "has" } else { "have" });
        format!("{place}.queue: {names} {have} no effect: no packet there is ECN-capable.")
    })
}

/// `ecn` where no queue marks, and where a controller decides by itself.
fn unused_ecn(document: &Document, alternatives: &[Spec]) -> Vec<String> {
    let mut found = Vec::new();
    let host = (document.hosts.ecn == Some(true)).then(|| "hosts.ecn".to_owned());
    let flows = document.flows.iter().enumerate();
    let own =
        flows.filter(|(_, flow)| flow.ecn == Some(true)).map(|(index, _)| format!("flows[{index}].ecn"));
    let asks: Vec<String> = host.into_iter().chain(own).collect();
    if let (Some(spec), false) = (alternatives.first(), asks.is_empty())
        && !spec.forward.iter().chain(&spec.reverse).any(looks_at_ecn)
    {
        found.push(format!(
            "{} = true has no effect: no queue of the path marks packets.",
            asks.join(" and ")
        ));
    }
    let all = || alternatives.iter().flat_map(|spec| &spec.flows);
    let needs = |flow: &FlowSpec| flow.controller.params().is_some_and(|params| params.ecn().is_some());
    if document.hosts.ecn == Some(true) && all().all(|flow| needs(flow) || flow.ecn.is_some()) {
        found.push("hosts.ecn = true has no effect: every flow decides about ECN by itself.".to_owned());
    }
    if let Some(flow) = all().find(|flow| flow.ecn == Some(false) && needs(flow)) {
        found.push(format!(
            "flows: ecn = false has no effect on {}, which needs ECN and always negotiates it.",
            flow.controller
        ));
    }
    found
}

/// Receivers that hide marks where none arrive.
fn unmarked_liars(alternatives: &[Spec]) -> Option<String> {
    let marking = |element: &ElementConfig| element.queue().is_some_and(|queue| marks(&queue.discipline));
    let hidden = |spec: &Spec| {
        let ecn =
            |flow: &FlowSpec| spec.way_of(flow).iter().any(marking) && flow.ecn(&spec.hosts) != EcnUse::None;
        spec.flows.iter().filter(|flow| flow.receiver == Some(Lie::HidesCe)).map(ecn).collect::<Vec<_>>()
    };
    let hidden: Vec<bool> = alternatives.iter().flat_map(hidden).collect();
    (!hidden.is_empty() && !hidden.contains(&true)).then(|| {
        "flows: receiver = \"hides_ce\" has no effect: no packet of such a flow is marked.".to_owned()
    })
}

/// Controllers that negotiate ECN on a path that marks, and do not answer the marks: nothing slows them there.
fn unanswered_marks(alternatives: &[Spec], rtt: Duration) -> Vec<String> {
    let mut found = Vec::new();
    for spec in alternatives {
        let marking = |element: &ElementConfig| element.queue().is_some_and(|queue| marks(&queue.discipline));
        let flows = spec.flows.iter().filter(|flow| flow.ecn(&spec.hosts) != EcnUse::None);
        for flow in flows.filter(|flow| spec.way_of(flow).iter().any(marking)) {
            let Some(params) = flow.controller.params() else { continue };
            let how = match params.answers_marks_up_to() {
                None => "does not answer marks".to_owned(),
                Some(most) if rtt > most => {
                    format!("answers marks up to an RTT of {}, and the path has {}", most.text(), rtt.text())
                }
                Some(_) => continue,
            };
            let written = format!(
                "flows: {} negotiates ECN and {how}: a queue that marks instead of dropping does not slow it. Leave out ecn, or \
                 choose a controller that answers (cubic, dctcp, bbr3).",
                flow.controller
            );
            if !found.contains(&written) {
                found.push(written);
            }
        }
    }
    found
}

/// Settings of the hosts that others replace.
fn unused_hosts(document: &Document, alternatives: &[Spec]) -> Vec<String> {
    let hosts = &document.hosts;
    let mut found = Vec::new();
    if hosts.tcp_memory.is_some() && hosts.tcp_rmem.is_some() && hosts.tcp_wmem.is_some() {
        found.push("hosts.tcp_memory has no effect: tcp_rmem and tcp_wmem replace it.".to_owned());
    }
    let paces = |flow: &FlowSpec| flow.controller.params().is_some_and(|params| params.needs_pacing());
    if hosts.pacing == Some(true) && alternatives.iter().flat_map(|spec| &spec.flows).all(paces) {
        found.push("hosts.pacing = true has no effect: every controller asks for pacing.".to_owned());
    }
    found
}

/// Times of flows at which nothing happens.
fn unused_times(index: usize, flow: &FlowDocument, spec: &Spec) -> Vec<String> {
    let field = |key: &str| format!("flows[{index}].{key}");
    let count = flow.count.as_ref().map_or(Ok(1), |count| count.read(&field("count")).map(|count| count.0));
    let mut found = Vec::new();
    if let (Some(stagger), Ok(1)) = (&flow.stagger, &count)
        && stagger.read(&field("stagger")).is_ok_and(|stagger| stagger > Duration::ZERO)
    {
        found.push(format!("{} has no effect: there is one such flow (count = 1).", field("stagger")));
    }
    let stop = flow.stop.as_ref().and_then(|stop| stop.read(&field("stop")).ok());
    if stop.is_some_and(|stop| stop >= spec.duration_ns) {
        let end = spec.duration_ns.text();
        found.push(format!("{} has no effect: the run ends at {end}.", field("stop")));
    }
    found
}

/// A bucket that adds a hundredth or more to what its rate carries in the run.
fn deep_bucket(spec: &Spec, element: &ElementConfig) -> Option<String> {
    let (name, rate, burst): (_, Rate, Bytes) = match element {
        ElementConfig::TokenBucket { name, rate_bps, burst_bytes, .. }
        | ElementConfig::Policer(policer::Config { name, rate_bps, burst_bytes, .. }) => {
            (name, *rate_bps, *burst_bytes)
        }
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
