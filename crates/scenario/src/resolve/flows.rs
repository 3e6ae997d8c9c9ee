//! The flows: one labelled spec each, with times and sizes computed.

use std::collections::BTreeMap;

use fullpipe_units::{Bytes, Duration, Rate, Time};

use super::notes::nominal_rate;
use super::values::{check_name, default};
use super::{Choice, Frame, check_packets};
use crate::bounds;
use crate::controller::ControllerChoice;
use crate::document::{
    BurstsDocument, Document, FlowDocument, MediaDocument, RequestsDocument, TransferDocument, VideoDocument,
};
use crate::error::ScenarioError;
use crate::program::Program;
use crate::quantity::{Count, Quantity, QuantityText, Size};
use crate::spec::{Direction, FlowSpec, Transfer, Workload};

/// Resolves the flows; those without a controller get the `alternative`.
pub(super) fn resolve(
    whole: &Document,
    alternative: Option<&Choice>,
    frame: &Frame,
) -> Result<Vec<FlowSpec>, ScenarioError> {
    let alone = [FlowDocument::default()];
    let documents = match (&whole.flows[..], alternative) {
        ([], None) => {
            return Err(ScenarioError::missing("flows")
                .expected("a flow, or controllers to compare")
                .fix("add [[flows]] with controller = \"bbr1\", or compare = [\"bbr1\", \"cubic\"]"));
        }
        ([], Some(_)) => &alone[..],
        (flows, _) => flows,
    };
    let mut groups = Vec::new();
    let (mut total, mut transfers, mut frames, mut packets) = (0u64, 0u64, 0u64, 0u64);
    for (index, document) in documents.iter().enumerate() {
        let field = format!("flows[{index}]");
        if document.direction == Some(Direction::Reverse) {
            check_packets(&whole.duration, frame, reverse_rate(&field, frame)?)?;
        }
        let group = Group::read(&field, document, alternative, frame)?;
        total += group.count;
        if total > bounds::MAX_FLOWS {
            let count = default(&document.count, "1");
            let expected = format!("at most {} flows", bounds::MAX_FLOWS);
            return Err(count
                .error(&format!("{field}.count"), format!("makes {total} flows"))
                .expected(expected));
        }
        if let Workload::Script { transfers: script } = &group.first.workload {
            let (count, each) = (group.count, script.len() as u64);
            transfers += count * each;
            if transfers > bounds::MAX_ALL_TRANSFERS {
                let problem = format!("of {each} transfers make {transfers} transfers of all flows together");
                return Err(ScenarioError::new(
                    &format!("{field}.count"),
                    &format!("{count} flows"),
                    problem,
                )
                .expected(format!("at most {} together", bounds::MAX_ALL_TRANSFERS))
                .fix("use fewer flows, or fewer transfers each"));
            }
        }
        let each = group.first.workload.frames(frame.spec.duration_ns, frame.spec.mss());
        frames = frames.saturating_add(each.0.saturating_mul(group.count));
        packets = packets.saturating_add(each.1.saturating_mul(group.count));
        if frames > bounds::MAX_FRAMES || packets > bounds::MAX_FRAME_PACKETS {
            let problem =
                format!("makes {frames} frames of {packets} packets, those of other media flows included");
            let (most, most_packets) = (bounds::MAX_FRAMES, bounds::MAX_FRAME_PACKETS);
            return Err(ScenarioError::new(&format!("{field}.media"), "media", problem)
                .expected(format!(
                    "at most {most} frames and {most_packets} packets of all media flows together"
                ))
                .fix("make the run shorter, or send fewer frames"));
        }
        groups.push(group);
    }
    label_all(&groups)
}

/// A group of equal flows: the first of them, and how the others differ.
struct Group {
    first: FlowSpec,
    count: u64,
    stagger: Duration,
}

impl Group {
    fn read(
        field: &str,
        document: &FlowDocument,
        alternative: Option<&Choice>,
        frame: &Frame,
    ) -> Result<Group, ScenarioError> {
        let at = |key: &str| format!("{field}.{key}");
        if document.media.is_some() {
            check_beside_media(field, document)?;
        }
        let program = program(field, document)?;
        let Choice { label, controller, program } = match (program, &document.controller, alternative) {
            (Some(program), ..) => Choice::of_program(program, None),
            _ if document.media.is_some() => Choice::of_controller(ControllerChoice::media()),
            (None, Some(text), _) => {
                Choice::of_controller(ControllerChoice::parse_field(&at("controller"), text)?)
            }
            (None, None, Some(choice)) => choice.clone(),
            (None, None, None) => {
                return Err(ScenarioError::missing(&at("controller"))
                    .expected(crate::error::one_of(&crate::controller::controller_names()))
                    .fix("write controller = \"bbr1\", or compare = [\"bbr1\", \"cubic\"] at the top"));
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
        let direction = document.direction.unwrap_or_default();
        let rate = match direction {
            Direction::Forward => frame.rate,
            Direction::Reverse => reverse_rate(field, frame)?,
        };
        let bdp = rate.bytes_in(rtt);
        let first = FlowSpec {
            label: document.label.clone().unwrap_or(label),
            controller,
            start_ns: Time::ZERO + times.start,
            start_jitter_ns: times.jitter,
            stop_ns: times.stop.map(|stop| Time::ZERO + stop),
            workload: workload(field, document, frame, bdp)?,
            extra_forward_ns,
            extra_reverse_ns: extra - extra_forward_ns,
            max_cwnd: max_cwnd(&at("max_cwnd"), &document.max_cwnd, frame, bdp)?,
            ecn: document.ecn,
            receiver: document.receiver,
            direction,
            program,
        };
        if first.program.is_some() {
            check_alone(field, document)?;
        }
        if let Some(lie) = first.receiver
            && !lie.suits(&first.workload)
        {
            let problem = "never gets what was lost, so that no transfer completes";
            return Err(ScenarioError::new(&at("receiver"), lie.name(), problem)
                .expected("a flow that sends as much as it can")
                .fix("leave out receiver, or what the application sends"));
        }
        Ok(Group { first, count, stagger: times.stagger })
    }
}

/// The rate of the slowest link on the way back. Without one, nothing would slow a flow in that direction: a window without
/// losses grows until it fills the largest socket buffers.
fn reverse_rate(field: &str, frame: &Frame) -> Result<Rate, ScenarioError> {
    frame.spec.reverse.iter().filter_map(nominal_rate).min().ok_or_else(|| {
        let problem = "is over a path without a rate, where nothing but its window limits a flow";
        ScenarioError::new(&format!("{field}.direction"), "reverse", problem)
            .expected("a rate on the way back")
            .fix("write reverse = { rate = \"10 Mbit/s\" } under [path], or leave direction out")
    })
}

/// The program of a flow, if it is one.
fn program(field: &str, document: &FlowDocument) -> Result<Option<Program>, ScenarioError> {
    let FlowDocument { client, server, sender, controller, .. } = document;
    let program = Program::read(field, client.as_ref(), server.as_ref(), *sender)?;
    match (&program, controller) {
        (Some(_), Some(text)) => {
            Err(ScenarioError::new(&format!("{field}.controller"), text, "is given together with client")
                .expected("a controller or a program")
                .fix("leave out controller: the program brings its own"))
        }
        _ => Ok(program),
    }
}

/// Checks that nothing is given that a flow of media does without.
fn check_beside_media(field: &str, document: &FlowDocument) -> Result<(), ScenarioError> {
    let FlowDocument { controller, client, server, sender, ecn, .. } = document;
    let own = [
        ("controller", controller.is_some()),
        ("client", client.is_some()),
        ("server", server.is_some()),
        ("sender", sender.is_some()),
        ("ecn", ecn.is_some()),
    ];
    match own.into_iter().chain(of_connections(document)).find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((key, _)) => {
            Err(ScenarioError::new(&format!("{field}.{key}"), key, "is given together with media")
                .expected("one of them")
                .fix(format!("leave out {key}, or media")))
        }
    }
}

/// Keys that say how a connection behaves or what it sends, and whether each is given.
fn of_connections(document: &FlowDocument) -> [(&'static str, bool); 7] {
    let FlowDocument { size, bursts, requests, video, transfers, max_cwnd, receiver, .. } = document;
    [
        ("size", size.is_some()),
        ("bursts", bursts.is_some()),
        ("requests", requests.is_some()),
        ("video", video.is_some()),
        ("transfers", transfers.is_some()),
        ("max_cwnd", max_cwnd.is_some()),
        ("receiver", receiver.is_some()),
    ]
}

/// Checks that nothing says how much a program is to send: it knows by itself.
fn check_alone(field: &str, document: &FlowDocument) -> Result<(), ScenarioError> {
    let direction = ("direction", document.direction.is_some());
    match of_connections(document).into_iter().chain([direction]).find(|(_, is_given)| *is_given) {
        None => Ok(()),
        Some((key, _)) => {
            Err(ScenarioError::new(&format!("{field}.{key}"), key, "is given together with client")
                .expected("a program that decides by itself what it sends")
                .fix(format!("leave out {key}, and say it in the program's command line")))
        }
    }
}

/// When the flows of a group start and stop.
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
        let start_text = default(&document.start, "0");
        let start = start_text.read_within(&at("start"), any.clone())?;
        let stagger_text = default(&document.stagger, "0");
        let stagger = stagger_text.read_within(&at("stagger"), any.clone())?;
        let too_late = |written: &QuantityText<Duration>, key: &str, last: Duration| {
            written
                .error(&at(key), format!("lets a flow start at {}", last.text()))
                .expected(format!("a start before the end ({})", end.text()))
                .fix("start earlier, or make duration longer")
        };
        if start >= end {
            return Err(too_late(&start_text, "start", start));
        }
        // Both factors are bounded, and their product is below 2^63.
        let last_start = start + stagger.saturating_mul(count - 1);
        if last_start >= end {
            return Err(too_late(&stagger_text, "stagger", last_start));
        }
        let left = end - last_start;
        let jitter = match &document.start_jitter {
            Some(written) => written.read_within(&at("start_jitter"), any.clone())?,
            // A start is below the sum, so that every flow starts before the end.
            None => rtt.min(left),
        };
        if let (Some(written), true) = (&document.start_jitter, jitter > left) {
            return Err(written
                .error(&at("start_jitter"), "may let a flow start after the end")
                .expected(format!("at most {}, from the last start to the end", left.text()))
                .write(format!("\"{}\"", rtt.min(left).text())));
        }
        let stop = document.stop.as_ref().map(|written| written.read_within(&at("stop"), any)).transpose()?;
        if let (Some(stop), Some(written)) = (stop, &document.stop)
            && stop <= last_start + jitter
        {
            let latest = (last_start + jitter).text();
            return Err(written
                .error(&at("stop"), "is not after the start")
                .expected(format!("a time after {latest}, the latest start (start_jitter included)"))
                .fix("stop later, or start earlier"));
        }
        Ok(Times { start, stagger, jitter, stop })
    }
}

fn own_rtt(
    field: &str,
    written: &Option<QuantityText<Duration>>,
    frame: &Frame,
) -> Result<Duration, ScenarioError> {
    let Some(written) = written else { return Ok(frame.rtt) };
    let rtt = written.read_within(field, Duration::ZERO..=bounds::MAX_DELAY)?;
    if rtt < frame.rtt {
        let least = frame.rtt.text();
        return Err(written
            .error(field, format!("is below the path's round-trip time ({least})"))
            .expected(format!("at least {least}"))
            .fix("lower path.rtt to the smallest of all flows, and give the others their own"));
    }
    Ok(rtt)
}

/// Resolves what a group's application sends.
struct Application<'a> {
    field: &'a str,
    mss: u64,
    bdp: Bytes,
}

fn workload(
    field: &str,
    document: &FlowDocument,
    frame: &Frame,
    bdp: Bytes,
) -> Result<Workload, ScenarioError> {
    let application = Application { field, mss: u64::from(frame.spec.mss()), bdp };
    let FlowDocument { size, bursts, requests, video, transfers, .. } = document;
    let given = [
        ("size", size.is_some()),
        ("bursts", bursts.is_some()),
        ("requests", requests.is_some()),
        ("video", video.is_some()),
        ("transfers", transfers.is_some()),
    ];
    let given: Vec<&str> = given.into_iter().filter_map(|(key, is_given)| is_given.then_some(key)).collect();
    if let [first, second, ..] = given[..] {
        return Err(ScenarioError::new(
            &format!("{field}.{first}"),
            first,
            format!("is given together with {second}"),
        )
        .expected("one of them")
        .fix(format!("leave out {first}, or {second}")));
    }
    if let Some(written) = size {
        return Ok(Workload::Finite { size_bytes: application.amount("size", written)? });
    }
    if let Some(bursts) = bursts {
        return application.bursts(bursts);
    }
    if let Some(requests) = requests {
        return application.requests(requests);
    }
    if let Some(video) = video {
        return application.video(video);
    }
    if let Some(media) = &document.media {
        return application.media(media);
    }
    transfers.as_ref().map_or(Ok(Workload::Bulk), |transfers| application.script(transfers))
}

impl Application<'_> {
    fn bursts(&self, bursts: &BurstsDocument) -> Result<Workload, ScenarioError> {
        let example = "bursts = { size = \"200 KB\", every = \"500 ms\" }";
        let size = self.required("bursts.size", bursts.size.as_ref(), "an amount", example)?;
        let every = self.required("bursts.every", bursts.every.as_ref(), "a time", example)?;
        let segments = self.amount("bursts.size", size)?.as_u64().div_ceil(self.mss);
        let every_ns = every
            .read_within(&self.at("bursts.every"), bounds::MIN_BURST_INTERVAL..=bounds::MAX_DURATION)
            .map_err(|error| error.write("\"500 ms\""))?;
        Ok(Workload::Bursts { size_bytes: Bytes::new(segments * self.mss), every_ns })
    }

    fn requests(&self, requests: &RequestsDocument) -> Result<Workload, ScenarioError> {
        let example = "requests = { size = \"64 KB\", pause = \"1 s\" }";
        let size = self.required("requests.size", requests.size.as_ref(), "an amount", example)?;
        Ok(Workload::Requests {
            size_bytes: self.amount("requests.size", size)?,
            pause_ns: self.pause("requests.pause", &requests.pause)?,
        })
    }

    fn video(&self, video: &VideoDocument) -> Result<Workload, ScenarioError> {
        let example = "video = { rate = \"5 Mbit/s\", chunk = \"4 s\", buffer = \"30 s\" }";
        let rate = self
            .required("video.rate", video.rate.as_ref(), "a rate", example)?
            .read_within(&self.at("video.rate"), bounds::MIN_RATE..=bounds::MAX_RATE)?;
        let chunk = default(&video.chunk, "4 s");
        let chunk_ns =
            chunk.read_within(&self.at("video.chunk"), bounds::MIN_CHUNK..=bounds::MAX_DURATION)?;
        let buffer = default(&video.buffer, "30 s");
        let buffer_ns =
            buffer.read_within(&self.at("video.buffer"), Duration::ZERO..=bounds::MAX_DURATION)?;
        if buffer_ns < chunk_ns {
            let least = chunk_ns.text();
            return Err(buffer
                .error(&self.at("video.buffer"), format!("holds no chunk of {least}"))
                .expected(format!("at least {least}"))
                .fix("make the buffer longer, or the chunks shorter"));
        }
        // Both factors are bounded: at most 2^87.
        let nanobits = u128::from(rate.as_bits_per_sec()) * u128::from(chunk_ns.as_nanos());
        let chunk_bytes = u64::try_from(nanobits.div_ceil(8 * 1_000_000_000))
            .ok()
            .map(Bytes::new)
            .filter(|bytes| *bytes <= bounds::MAX_FLOW_SIZE)
            .ok_or_else(|| {
                let most = Size::Bytes(bounds::MAX_FLOW_SIZE).text();
                chunk
                    .error(&self.at("video.chunk"), format!("holds more than {most}"))
                    .expected("shorter chunks")
                    .write("\"4 s\"")
            })?;
        Ok(Workload::Video { chunk_bytes, chunk_ns, buffer_ns })
    }

    fn media(&self, media: &MediaDocument) -> Result<Workload, ScenarioError> {
        let example = "media = { frame = \"12 kB\", every = \"33 ms\" }";
        let frame = self.required("media.frame", media.frame.as_ref(), "an amount", example)?;
        let every = self.required("media.every", media.every.as_ref(), "a time", example)?;
        let frame_bytes = self.amount_up_to("media.frame", frame, bounds::MAX_FRAME, "\"12 kB\"")?;
        let every_ns = every
            .read_within(&self.at("media.every"), bounds::MIN_FRAME_INTERVAL..=bounds::MAX_DURATION)
            .map_err(|error| error.write("\"33 ms\""))?;
        let deadline_ns = default(&media.deadline, "100 ms")
            .read_within(&self.at("media.deadline"), Duration::from_nanos(1)..=bounds::MAX_DURATION)
            .map_err(|error| error.write("\"100 ms\""))?;
        Ok(Workload::Media { frame_bytes, every_ns, deadline_ns })
    }

    fn script(&self, transfers: &[TransferDocument]) -> Result<Workload, ScenarioError> {
        let example = "transfers = [{ size = \"12 KB\" }, { size = \"3 KB\", pause = \"300 ms\" }]";
        if !(1..=bounds::MAX_TRANSFERS).contains(&transfers.len()) {
            let given = format!("{} transfers", transfers.len());
            return Err(ScenarioError::new(&self.at("transfers"), &given, "are not a script")
                .expected(format!("1 to {} transfers", bounds::MAX_TRANSFERS))
                .fix(format!("write {example}")));
        }
        let transfer = |(index, written): (usize, &TransferDocument)| {
            let at = |key: &str| format!("transfers[{index}].{key}");
            let size = self.required(&at("size"), written.size.as_ref(), "an amount", example)?;
            Ok(Transfer {
                size_bytes: self.amount(&at("size"), size)?,
                pause_ns: self.pause(&at("pause"), &written.pause)?,
            })
        };
        let resolved: Result<Vec<Transfer>, ScenarioError> =
            transfers.iter().enumerate().map(transfer).collect();
        let workload = Workload::Script { transfers: resolved?.into() };
        if workload.total_bytes() > Some(bounds::MAX_FLOW_SIZE) {
            let most = Size::Bytes(bounds::MAX_FLOW_SIZE).text();
            let given = format!("{} transfers", transfers.len());
            return Err(ScenarioError::new(&self.at("transfers"), &given, format!("are more than {most}"))
                .expected(format!("at most {most} together"))
                .fix("make them smaller"));
        }
        Ok(workload)
    }

    fn at(&self, key: &str) -> String {
        format!("{}.{key}", self.field)
    }

    fn required<'a, T>(
        &self,
        key: &str,
        written: Option<&'a QuantityText<T>>,
        expected: &str,
        example: &str,
    ) -> Result<&'a QuantityText<T>, ScenarioError> {
        written.ok_or_else(|| {
            ScenarioError::missing(&self.at(key)).expected(expected).fix(format!("write {example}"))
        })
    }

    /// How much it sends, given in bytes, segments or bandwidth-delay products.
    fn amount(&self, key: &str, written: &QuantityText<Size>) -> Result<Bytes, ScenarioError> {
        self.amount_up_to(key, written, bounds::MAX_FLOW_SIZE, "\"10 MB\"")
    }

    /// The same, at most `most`; `example` is a right one.
    fn amount_up_to(
        &self,
        key: &str,
        written: &QuantityText<Size>,
        most: Bytes,
        example: &str,
    ) -> Result<Bytes, ScenarioError> {
        let field = &self.at(key);
        let size_bytes = written.read(field)?.bytes(Bytes::new(self.mss), self.bdp);
        let size_bytes = size_bytes
            .filter(|size| *size <= most)
            .ok_or_else(|| written.error(field, format!("is above {}", Size::Bytes(most).text())))?;
        if size_bytes == Bytes::ZERO {
            return Err(written.error(field, "is zero").expected("at least one byte").write(example));
        }
        Ok(size_bytes)
    }

    fn pause(&self, key: &str, written: &Option<QuantityText<Duration>>) -> Result<Duration, ScenarioError> {
        default(written, "0").read_within(&self.at(key), Duration::ZERO..=bounds::MAX_DURATION)
    }
}

fn max_cwnd(
    field: &str,
    written: &Option<QuantityText<Size>>,
    frame: &Frame,
    bdp: Bytes,
) -> Result<Option<u32>, ScenarioError> {
    let Some(written) = written else { return Ok(None) };
    let size = written.read(field)?;
    let wire_bytes = size.bytes(frame.packet(), bdp).ok_or_else(|| written.error(field, "is too large"))?;
    let segments = wire_bytes.as_u64() / frame.packet().as_u64();
    match u32::try_from(segments).ok().filter(|segments| *segments <= bounds::MAX_CWND) {
        Some(0) => Err(written
            .error(field, "is below one packet")
            .expected("at least one packet")
            .write("\"2 bdp\"")),
        None => Err(written.error(field, format!("is above {} packets", bounds::MAX_CWND))),
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
    // The group that each finished label is from.
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
                    .fix("choose another label"));
            }
            let start_ns = group.first.start_ns + group.stagger.saturating_mul(copy);
            flows.push(FlowSpec { label, start_ns, ..group.first.clone() });
        }
    }
    Ok(flows)
}
