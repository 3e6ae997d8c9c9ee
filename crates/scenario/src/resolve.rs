//! From words to numbers: defaults filled in, sizes relative to the path worked out, files read, limits held.
//!
//! [`resolve_all`] is the way in. It reads the document once and resolves the path once; the flows it resolves once for
//! each alternative under `compare`.

mod flows;
mod path;

use std::fs;
use std::path::Path;

use fullpipe_units::{Bytes, Duration, Rate};

use crate::bounds;
use crate::controller::ControllerChoice;
use crate::document::{Document, HostsDocument, TcpMemory};
use crate::error::ScenarioError;
use crate::quantity::{Count, Quantity, Said, Size};
use crate::spec::{HostSpec, Spec};

/// What a document is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// TOML 1.0.
    Toml,
    /// JSON of the same shape; `null` is an absent key.
    Json,
}

impl Format {
    /// By the file's extension: `.json` is JSON, everything else TOML.
    pub fn of(path: &Path) -> Format {
        let json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if json { Format::Json } else { Format::Toml }
    }
}

/// Resolves a document into one labelled spec for each controller under `compare`, in that order; without `compare` into
/// one, labelled with the scenario's name. Trace files are looked for in `base_dir`, or else the working directory.
pub fn resolve_all(
    document: &str,
    format: Format,
    base_dir: Option<&Path>,
) -> Result<Vec<(String, Spec)>, ScenarioError> {
    let document = Document::read(document, format)?;
    let frame = frame(&document, base_dir)?;
    let label = frame.spec.name.clone();
    match alternatives(&document)? {
        None => Ok(vec![(label, with_flows(&frame, &document, None)?)]),
        Some(choices) => choices
            .into_iter()
            .map(|choice| Ok((choice.text().to_string(), with_flows(&frame, &document, Some(&choice))?)))
            .collect(),
    }
}

/// Resolves a document that has one alternative only.
pub fn resolve(document: &str, format: Format, base_dir: Option<&Path>) -> Result<Spec, ScenarioError> {
    let mut specs = resolve_all(document, format, base_dir)?;
    match (specs.pop(), specs.len()) {
        (Some((_, spec)), 0) => Ok(spec),
        (_, others) => {
            let given = format!("{} controllers", others + 1);
            Err(ScenarioError::new("compare", &given, "are alternatives, each a run of its own")
                .expected("a scenario of one run")
                .mend("keep one controller under compare, or give each flow its controller"))
        }
    }
}

/// Reads a scenario file and resolves it; traces are looked for beside it.
pub fn resolve_file(path: &Path) -> Result<Vec<(String, Spec)>, ScenarioError> {
    let text = read_file("scenario", path, bounds::MAX_SCENARIO_FILE, "a scenario file in TOML or JSON")?;
    resolve_all(&text, Format::of(path), path.parent())
}

/// What is common to all alternatives.
struct Frame {
    /// The spec without its flows and their samples.
    spec: Spec,
    /// Round-trip time of the empty path at the start.
    rtt: Duration,
    /// Rate of the bottleneck at the start; a trace's mean.
    rate: Rate,
}

impl Frame {
    fn packet(&self) -> Bytes {
        Bytes::new(u64::from(self.spec.mtu_bytes))
    }
}

fn frame(document: &Document, base_dir: Option<&Path>) -> Result<Frame, ScenarioError> {
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
            .mend("write path = { rate = \"100 Mbit/s\", rtt = \"40 ms\", buffer = \"1 bdp\" }"));
    };
    let packet = Bytes::new(mtu.0);
    let path = path::resolve(path, packet, duration, base_dir)?;
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
        seed,
    };
    Ok(Frame { spec, rtt: path.rtt, rate: path.rate })
}

fn with_flows(
    frame: &Frame,
    document: &Document,
    alternative: Option<&ControllerChoice>,
) -> Result<Spec, ScenarioError> {
    let mut spec = frame.spec.clone();
    spec.flows = flows::resolve(document, alternative, frame)?;
    spec.sample_interval_ns = sample_interval(document, &spec)?;
    spec.validate()?;
    Ok(spec)
}

/// The controllers under `compare`; `None` without it.
fn alternatives(document: &Document) -> Result<Option<Vec<ControllerChoice>>, ScenarioError> {
    let Some(texts) = &document.compare else { return Ok(None) };
    let example = "[\"bbr1\", \"cubic\"]";
    if texts.is_empty() {
        let error =
            ScenarioError::new("compare", "[]", "is an empty list").expected("controllers to compare");
        return Err(error.write(example));
    }
    if !document.flows.is_empty() && document.flows.iter().all(|flow| flow.controller.is_some()) {
        return Err(ScenarioError::new("compare", &texts.join(", "), "would not change any flow")
            .expected("a flow without a controller of its own")
            .mend("remove compare, or remove controller from the flow that is to be compared"));
    }
    let mut choices: Vec<ControllerChoice> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let field = format!("compare[{index}]");
        let choice = ControllerChoice::parse_field(&field, text)?;
        if choices.contains(&choice) {
            let error = ScenarioError::new(&field, text, "is listed twice").expected("each controller once");
            return Err(error.mend("remove one of the two"));
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
    let explicit = |field: &str, said: &Option<Vec<Said<Size>>>, preset: [Bytes; 3]| match said {
        Some(sizes) => socket_buffers(field, sizes, packet, bdp),
        None => Ok(preset),
    };
    Ok(HostSpec {
        tcp_rmem_bytes: explicit("hosts.tcp_rmem", &document.tcp_rmem, preset(131_072, receive))?,
        tcp_wmem_bytes: explicit("hosts.tcp_wmem", &document.tcp_wmem, preset(16_384, send))?,
        pacing: document.pacing.unwrap_or(false),
        gro_ns: default(&document.gro, "0").read_within("hosts.gro", Duration::ZERO..=bounds::MAX_DELAY)?,
    })
}

fn socket_buffers(
    field: &str,
    sizes: &[Said<Size>],
    packet: Bytes,
    bdp: Bytes,
) -> Result<[Bytes; 3], ScenarioError> {
    let example = "[\"4096\", \"131072\", \"6 MB\"]";
    let expected = "three sizes in ascending order: minimum, default, maximum";
    let mut bytes = Vec::new();
    for (index, said) in sizes.iter().enumerate() {
        let field = format!("{field}[{index}]");
        let size = said.read(&field)?.bytes(packet, bdp).filter(|size| *size <= bounds::MAX_SOCKET_BUFFER);
        let size =
            size.ok_or_else(|| said.error(&field, "is above 2^31 - 1 bytes, the most that Linux allows"))?;
        if size == Bytes::ZERO {
            return Err(said.error(&field, "is zero"));
        }
        bytes.push(size);
    }
    let given = sizes.iter().map(Said::text).collect::<Vec<_>>().join(", ");
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
    if !document.record.series.unwrap_or(true) {
        return Ok(None);
    }
    let flows = if spec.sample_flows { spec.flows.len().max(1) as u64 } else { 1 };
    let most_samples = bounds::MAX_SAMPLES.min(bounds::MAX_ROWS / flows).max(1);
    let shortest = spec.duration_ns.as_nanos().div_ceil(most_samples);
    // Rounded up to a number that a person would choose.
    let shortest_usual = Duration::from_millis(Duration::from_nanos(shortest).as_millis() + 1);
    let Some(said) = &document.record.interval else {
        let fits = shortest <= USUAL.as_nanos();
        return Ok(Some(if fits { USUAL } else { shortest_usual }));
    };
    let interval = said.read_within(FIELD, Duration::from_micros(1)..=bounds::MAX_DURATION)?;
    if interval.as_nanos() < shortest {
        let samples = spec.duration_ns.as_nanos().div_ceil(interval.as_nanos());
        return Err(said
            .error(FIELD, format!("gives {samples} samples of each flow ({flows} of them)"))
            .expected(format!("at most {most_samples} samples in {}", spec.duration_ns.text()))
            .write(format!("\"{}\"", shortest_usual.max(USUAL).text())));
    }
    Ok(Some(interval))
}

/// What was said, or else the default.
fn default<T: Clone>(said: &Option<Said<T>>, text: &str) -> Said<T> {
    said.clone().unwrap_or_else(|| Said::new(text))
}

/// What was said, or an error.
fn required<'a, T: Quantity>(field: &str, said: &'a Option<Said<T>>) -> Result<&'a Said<T>, ScenarioError> {
    said.as_ref().ok_or_else(|| {
        ScenarioError::missing(field).expected(T::EXPECTED).write(format!("\"{}\"", T::EXAMPLES[0]))
    })
}

/// A name that fits in a table, a file name and a figure.
fn check_name(field: &str, name: &str) -> Result<(), ScenarioError> {
    match crate::check::name_problem(name) {
        None => Ok(()),
        Some(problem) => {
            let error = ScenarioError::new(field, name, problem);
            Err(error.expected("a short name in printable characters").write("\"my-name\""))
        }
    }
}

/// The text of a file of at most `most` bytes; errors name `field`.
fn read_file(field: &str, path: &Path, most: u64, expected: &str) -> Result<String, ScenarioError> {
    let shown = path.display().to_string();
    let wrong = |problem: String| ScenarioError::new(field, &shown, problem).expected(expected);
    let unreadable = |error: std::io::Error| wrong(format!("cannot be read: {error}")).mend("check the path");
    let metadata = fs::metadata(path).map_err(unreadable)?;
    if !metadata.is_file() {
        // A pipe could block forever, and a device could be endless.
        return Err(wrong("is not a regular file".into()).mend("give the path of a file"));
    }
    if metadata.len() > most {
        let (size, most) = (Size::Bytes(Bytes::new(metadata.len())), Size::Bytes(Bytes::new(most)));
        return Err(
            wrong(format!("is too large ({})", size.text())).mend(format!("keep it below {}", most.text()))
        );
    }
    fs::read_to_string(path).map_err(unreadable)
}

#[cfg(test)]
mod tests;
