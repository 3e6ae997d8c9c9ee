//! From text to numbers: fills in defaults, computes sizes relative to the path, reads files, checks limits.
//!
//! [`Resolved`] is the entry point. It reads the document and resolves the path once; it resolves the flows once for each
//! alternative under `compare`.

pub(crate) mod builder;
mod files;
mod flows;
mod metrics;
mod notes;
mod path;
pub(crate) mod values;

pub use notes::notes;

use self::files::{Files, read_file};
use self::values::{check_name, default};
use std::path::Path;

use fullpipe_units::{Bytes, Duration, Rate};

use crate::bounds;
use crate::controller::ControllerChoice;
use crate::document::{Compared, Document, FlowDocument, HostsDocument, ProgramDocument, TcpMemory};
use crate::error::ScenarioError;
use crate::format::Format;
use crate::program::Program;
use crate::quantity::{Count, Quantity, QuantityText, Size};
use crate::reader;
use crate::spec::{HostSpec, Spec};

/// A document and its resolved specs.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The document in JSON, its keys in their order: what the user wrote, for display.
    pub document: String,
    /// A labelled spec for each controller under `compare`, in that order; without `compare` one, labelled with the
    /// scenario's name.
    pub alternatives: Vec<(String, Spec)>,
}

impl Resolved {
    /// Resolves a document. Trace files are looked for in `base_dir`, or else the working directory.
    ///
    /// # Errors
    /// The document makes no sense, or is too large. The error has the line of its field.
    pub fn of_text(text: &str, format: Format, base_dir: Option<&Path>) -> Result<Resolved, ScenarioError> {
        Self::with(text, format, Files::In(base_dir))
    }

    /// Resolves a document where there are no files: one that names a file is refused.
    ///
    /// # Errors
    /// As `of_text`, and when the document names a file.
    pub fn without_files(text: &str, format: Format) -> Result<Resolved, ScenarioError> {
        Self::with(text, format, Files::None)
    }

    fn with(text: &str, format: Format, files: Files<'_>) -> Result<Resolved, ScenarioError> {
        let alternatives = alternatives_of(text, format, files)?;
        Ok(Resolved { document: reader::to_json(text, format)?, alternatives })
    }

    /// Reads a scenario file and resolves it; traces are looked for in its folder.
    ///
    /// # Errors
    /// As `of_text`, with the file; or the file is missing, too large or not regular.
    pub fn of_file(path: &Path) -> Result<Resolved, ScenarioError> {
        let text = read_file("scenario", path, bounds::MAX_SCENARIO_FILE, "a scenario file in TOML or JSON")?;
        Self::of_text(&text, Format::of(path), path.parent()).map_err(|error| error.of_file(path))
    }
}

/// Reads a document of any shape: its text, and the same in JSON with its keys in their order. Errors name `field`, or the
/// file and the place in it.
///
/// # Errors
/// The file is missing, too large or not regular, or it is not what its name says.
pub fn read_any(field: &str, path: &Path, expected: &str) -> Result<(String, String), ScenarioError> {
    let text = read_file(field, path, bounds::MAX_SCENARIO_FILE, expected)?;
    let json = reader::to_json(&text, Format::of(path)).map_err(|error| error.of_file(path))?;
    Ok((text, json))
}

/// Resolves a document into one labelled spec for each controller under `compare`, in that order; without `compare` into
/// one, labelled with the scenario's name. Delivery traces are looked for in `base_dir`, or else the working directory.
///
/// # Errors
/// The document makes no sense, or is too large. The error has the line of its field.
pub fn resolve_all(
    text: &str,
    format: Format,
    base_dir: Option<&Path>,
) -> Result<Vec<(String, Spec)>, ScenarioError> {
    alternatives_of(text, format, Files::In(base_dir))
}

fn alternatives_of(
    text: &str,
    format: Format,
    files: Files<'_>,
) -> Result<Vec<(String, Spec)>, ScenarioError> {
    let document = Document::read(text, format)?;
    resolve_document(&document, files).map_err(|error| error.within(text, format))
}

fn resolve_document(document: &Document, files: Files<'_>) -> Result<Vec<(String, Spec)>, ScenarioError> {
    let frame = frame(document, files)?;
    let Some(choices) = alternatives(document)? else {
        return Ok(vec![(frame.spec.name.clone(), with_flows(&frame, document, None)?)]);
    };
    let mut specs = Vec::with_capacity(choices.len());
    for choice in &choices {
        let spec = with_flows(&frame, document, Some(choice))?;
        if specs.is_empty() {
            check_together(&spec, choices.len())?;
        }
        specs.push((choice.label.clone(), spec));
    }
    Ok(specs)
}

/// Checks that this many specs like this one fit in memory.
fn check_together(spec: &Spec, alternatives: usize) -> Result<(), ScenarioError> {
    let parts = spec.parts().saturating_mul(alternatives as u64);
    if parts <= bounds::MAX_PARTS {
        return Ok(());
    }
    let problem =
        format!("times {} flows, elements, changes, transfers and opportunities are {parts}", spec.parts());
    Err(ScenarioError::new("compare", &format!("{alternatives} controllers"), problem)
        .expected(format!("at most {} together", bounds::MAX_PARTS))
        .fix("compare fewer controllers at a time, or fewer flows"))
}

/// Resolves a document that has one alternative only.
///
/// # Errors
/// As [`resolve_all`], and when the document has several alternatives.
pub fn resolve(document: &str, format: Format, base_dir: Option<&Path>) -> Result<Spec, ScenarioError> {
    let mut specs = resolve_all(document, format, base_dir)?;
    match (specs.pop(), specs.len()) {
        (Some((_, spec)), 0) => Ok(spec),
        (_, others) => {
            let given = format!("{} controllers", others + 1);
            Err(ScenarioError::new("compare", &given, "are alternatives, each of them a separate run")
                .expected("a scenario of one run")
                .fix("keep one controller under compare, or give each flow its controller"))
        }
    }
}

/// Reads a scenario file and resolves it; delivery traces are looked for in its folder.
///
/// # Errors
/// As [`Resolved::of_file`].
pub fn resolve_file(path: &Path) -> Result<Vec<(String, Spec)>, ScenarioError> {
    Resolved::of_file(path).map(|resolved| resolved.alternatives)
}

/// The parts that all alternatives share.
struct Frame {
    /// The spec without its flows and their samples.
    spec: Spec,
    /// Round-trip time of the empty path at the start.
    rtt: Duration,
    /// Rate of the bottleneck at the start; a delivery trace's mean.
    rate: Rate,
}

impl Frame {
    fn packet(&self) -> Bytes {
        Bytes::new(u64::from(self.spec.mtu_bytes))
    }
}

fn frame(document: &Document, files: Files<'_>) -> Result<Frame, ScenarioError> {
    let name = document.name.as_deref().unwrap_or("scenario");
    check_name("name", name)?;
    let duration = default(&document.duration, "20 s")
        .read_within("duration", bounds::MIN_DURATION..=bounds::MAX_DURATION)?;
    let Count(seed) = default(&document.seed, "1").read("seed")?;
    let mtu = default(&document.hosts.mtu, "1500")
        .read_within("hosts.mtu", Count(u64::from(bounds::MIN_MTU))..=Count(u64::from(bounds::MAX_MTU)))
        .map_err(|error| error.write("1500"))?;
    let Some(path) = &document.path else {
        return Err(ScenarioError::missing("path")
            .expected("a table with rate, rtt and buffer")
            .fix("write path = { rate = \"100 Mbit/s\", rtt = \"40 ms\", buffer = \"1 bdp\" }"));
    };
    let packet = Bytes::new(mtu.0);
    let path = path::resolve(path, packet, duration, files)?;
    let spec = Spec {
        name: name.to_string(),
        duration_ns: duration,
        mtu_bytes: mtu.0 as u32,
        forward: path.forward,
        reverse: path.reverse,
        hosts: hosts(&document.hosts, packet, path.rate.bytes_in(path.rtt))?,
        flows: Vec::new(),
        sample_interval_ns: None,
        sample_flows: document.record.flows.unwrap_or(true),
        keep_series: document.record.series.unwrap_or(true),
        seed,
    };
    let frame = Frame { spec, rtt: path.rtt, rate: path.rate };
    check_packets(&document.duration, &frame, frame.rate)?;
    Ok(frame)
}

/// Checks that a bottleneck of that rate does not carry more packets than can be simulated in reasonable time.
fn check_packets(
    written: &Option<QuantityText<Duration>>,
    frame: &Frame,
    rate: Rate,
) -> Result<(), ScenarioError> {
    let packets = rate.bytes_in(frame.spec.duration_ns).as_u64() / frame.packet().as_u64();
    if packets <= bounds::MAX_PACKETS {
        return Ok(());
    }
    let problem = format!("at {} allows {packets} packets", rate.text());
    Err(default(written, "20 s")
        .error("duration", problem)
        .expected(format!("a duration and a rate that give at most {} packets", bounds::MAX_PACKETS))
        .fix("make duration shorter, or the rate lower"))
}

fn with_flows(
    frame: &Frame,
    document: &Document,
    alternative: Option<&Choice>,
) -> Result<Spec, ScenarioError> {
    let mut spec = frame.spec.clone();
    spec.flows = flows::resolve(document, alternative, frame)?;
    spec.sample_interval_ns = sample_interval(document, &spec)?;
    spec.validate()?;
    Ok(spec)
}

/// What a flow runs with: a controller, or itself a program.
#[derive(Clone, Debug, PartialEq)]
struct Choice {
    /// Its name.
    label: String,
    controller: ControllerChoice,
    program: Option<Program>,
}

impl Choice {
    fn of_controller(controller: ControllerChoice) -> Choice {
        Choice { label: controller.text().to_owned(), controller, program: None }
    }

    fn of_program(program: Program, label: Option<&String>) -> Choice {
        let label = label.cloned().unwrap_or_else(|| program.name().to_owned());
        Choice { label, controller: ControllerChoice::program(), program: Some(program) }
    }

    /// An item under `compare`.
    fn read(field: &str, compared: &Compared) -> Result<Choice, ScenarioError> {
        match compared {
            Compared::Controller(text) => {
                ControllerChoice::parse_field(field, text).map(Choice::of_controller)
            }
            Compared::Program(written) => {
                let ProgramDocument { client, server, sender, label } = written;
                if let Some(label) = label {
                    check_name(&format!("{field}.label"), label)?;
                }
                let sender = Some(sender.unwrap_or_default());
                let program = Program::read(field, client.as_ref(), server.as_ref(), sender)?;
                Ok(Choice::of_program(program.expect("a sender is given"), label.as_ref()))
            }
        }
    }
}

/// The controllers and programs under `compare`; `None` without it.
fn alternatives(document: &Document) -> Result<Option<Vec<Choice>>, ScenarioError> {
    let Some(texts) = &document.compare else { return Ok(None) };
    let example = "[\"bbr1\", \"cubic\"]";
    if texts.is_empty() {
        let error =
            ScenarioError::new("compare", "[]", "is an empty list").expected("controllers to compare");
        return Err(error.write(example));
    }
    let has_own =
        |flow: &FlowDocument| flow.controller.is_some() || flow.client.is_some() || flow.media.is_some();
    if !document.flows.is_empty() && document.flows.iter().all(has_own) {
        let given = texts.iter().map(|compared| match compared {
            Compared::Controller(text) => text.as_str(),
            Compared::Program(written) => written.client.as_deref().unwrap_or("program"),
        });
        let given = given.collect::<Vec<_>>().join(", ");
        return Err(ScenarioError::new("compare", &given, "would not change any flow")
            .expected("a flow without a controller of its own")
            .fix("remove compare, or remove controller from the flow that is to be compared"));
    }
    if texts.len() > bounds::MAX_ALTERNATIVES {
        let given = format!("{} controllers", texts.len());
        return Err(ScenarioError::new("compare", &given, "are too many")
            .expected(format!("at most {}", bounds::MAX_ALTERNATIVES))
            .fix("compare fewer at a time"));
    }
    let mut choices: Vec<Choice> = Vec::new();
    for (index, compared) in texts.iter().enumerate() {
        let field = format!("compare[{index}]");
        let choice = Choice::read(&field, compared)?;
        if choices.iter().any(|other| other.label == choice.label) {
            let given = if let Compared::Controller(text) = compared { text } else { &choice.label };
            let twice = match &choice.program {
                None if *given != choice.label => format!("is {}, which is listed already", choice.label),
                _ => "is listed twice".to_owned(),
            };
            let error = ScenarioError::new(&field, given, &twice);
            return Err(match choice.program {
                None => error.expected("each controller once").fix("remove one of the two"),
                Some(_) => error.expected("a name of its own for each").fix("give it a label"),
            });
        }
        choices.push(choice);
    }
    Ok(Some(choices))
}

fn hosts(document: &HostsDocument, packet: Bytes, bdp: Bytes) -> Result<HostSpec, ScenarioError> {
    // Linux's tcp_rmem and tcp_wmem: minimum, default, maximum. The presets differ in the maximum.
    let largest = bounds::MAX_SOCKET_BUFFER.as_u64();
    let (receive, send) = match document.tcp_memory.unwrap_or_default() {
        TcpMemory::Max => (largest, largest),
        TcpMemory::Linux => (32 << 20, 4 << 20),
        TcpMemory::Ubuntu1810 => (6 << 20, 4 << 20),
    };
    let preset = |default: u64, largest: u64| [4096, default, largest].map(Bytes::new);
    let explicit = |field: &str, written: &Option<Vec<QuantityText<Size>>>, preset: [Bytes; 3]| match written
    {
        Some(sizes) => socket_buffers(field, sizes, packet, bdp),
        None => Ok(preset),
    };
    Ok(HostSpec {
        model: document.model.unwrap_or_default(),
        tcp_rmem_bytes: explicit("hosts.tcp_rmem", &document.tcp_rmem, preset(131_072, receive))?,
        tcp_wmem_bytes: explicit("hosts.tcp_wmem", &document.tcp_wmem, preset(16_384, send))?,
        pacing: document.pacing.unwrap_or(false),
        gro_ns: default(&document.gro, "0").read_within("hosts.gro", Duration::ZERO..=bounds::MAX_DELAY)?,
        gso_max_segs: match &document.gso_max_segs {
            None => HostSpec::GSO_MAX_SEGS,
            Some(written) => {
                let most = Count(u64::from(HostSpec::GSO_MAX_SEGS));
                written
                    .read_within("hosts.gso_max_segs", Count(1)..=most)
                    .map_err(|error| error.write("1"))?
                    .0 as u16
            }
        },
        ecn: document.ecn.unwrap_or(false),
        metrics: document.metrics.as_ref().map(metrics::resolve).transpose()?,
    })
}

fn socket_buffers(
    field: &str,
    sizes: &[QuantityText<Size>],
    packet: Bytes,
    bdp: Bytes,
) -> Result<[Bytes; 3], ScenarioError> {
    let example = "[\"4096\", \"131072\", \"6 MB\"]";
    let expected = "three sizes in ascending order: minimum, default, maximum";
    let mut bytes = Vec::new();
    for (index, written) in sizes.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let size = written.read(&field)?.bytes(packet, bdp).filter(|size| *size <= bounds::MAX_SOCKET_BUFFER);
        let size =
            size.ok_or_else(|| written.error(&field, "is above 2^31 - 1 bytes, the most that Linux allows"))?;
        if size == Bytes::ZERO {
            return Err(written.error(&field, "is zero"));
        }
        bytes.push(size);
    }
    let given = sizes.iter().map(QuantityText::text).collect::<Vec<_>>().join(", ");
    let [least, default, most] = bytes[..] else {
        let error = ScenarioError::new(field, &given, format!("has {} sizes", sizes.len()));
        return Err(error.expected(expected).write(example));
    };
    if least > default || default > most {
        return Err(ScenarioError::new(field, &given, "is not in ascending order")
            .expected(expected)
            .write(example));
    }
    Ok([least, default, most])
}

fn sample_interval(document: &Document, spec: &Spec) -> Result<Option<Duration>, ScenarioError> {
    const FIELD: &str = "record.interval";
    const USUAL: Duration = Duration::from_millis(10);
    // Even if the series are not kept: the summary's RTT and queueing delay are computed from them.
    let flows = if spec.sample_flows { spec.flows.len().max(1) as u64 } else { 1 };
    let most_samples = bounds::MAX_SAMPLES.min(bounds::MAX_ROWS / flows).max(1);
    let shortest = spec.duration_ns.as_nanos().div_ceil(most_samples);
    // Rounded up to a number that a person would choose.
    let shortest_usual = Duration::from_millis(Duration::from_nanos(shortest).as_millis() + 1);
    let Some(written) = &document.record.interval else {
        let fits = shortest <= USUAL.as_nanos();
        return Ok(Some(if fits { USUAL } else { shortest_usual }));
    };
    let interval = written.read_within(FIELD, Duration::from_micros(1)..=bounds::MAX_DURATION)?;
    if interval.as_nanos() < shortest {
        let samples = spec.duration_ns.as_nanos().div_ceil(interval.as_nanos());
        return Err(written
            .error(FIELD, format!("gives {samples} samples of each flow ({flows} of them)"))
            .expected(format!("at most {most_samples} samples in {}", spec.duration_ns.text()))
            .write(format!("\"{}\"", shortest_usual.max(USUAL).text())));
    }
    Ok(Some(interval))
}

#[cfg(test)]
mod tests;
