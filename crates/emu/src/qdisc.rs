//! Queues of Linux itself, by `tc` of iproute2: what a queue of a scenario is called there, what one has counted, and which
//! disciplines this machine has.
//!
//! It is the queue of a router of the scenario (`path.router`), as the scenario says it; or, in the world `qdisc`, a link of the
//! scenario: a token bucket (`tbf`) that holds little more than a packet, whose child is the discipline. Sources: tc-tbf(8), tc-bfifo(8), tc-codel(8), tc-fq_codel(8),
//! tc-pie(8), tc-red(8), tc-dualpi2(8).

use std::io;
use std::process::{Command, Stdio};

use fullpipe_path::Unit;
use fullpipe_path::config::{DisciplineConfig, ElementConfig, QueueConfig};
use fullpipe_record::{LinkRecord, LinkSeries, QueueSample};
use fullpipe_units::{Bytes, Duration, Rate};

use crate::EmuError;

/// What Linux may have for [`LinuxQueue`], and what else answers for its queues.
pub(crate) const KINDS: [&str; 9] =
    ["tbf", "bfifo", "codel", "fq_codel", "pie", "red", "dualpi2", "htb", "fq"];
/// The bucket holds a packet and this much of the link's time, so that a timer that is late does not change the rate. More would
/// leave as a burst after a pause.
const LATE: Duration = Duration::from_micros(100);
/// Settings that `tc` takes by the same name and in the same unit.
const SAME: [&str; 14] = [
    "target",
    "interval",
    "ce_threshold",
    "flows",
    "quantum",
    "drop_batch",
    "tupdate",
    "min",
    "max",
    "avpkt",
    "burst",
    "probability",
    "bytemode",
    "adaptive",
];

/// A router or a link of a scenario whose queue Linux manages.
#[derive(Clone, Debug, PartialEq)]
pub struct LinuxQueue {
    /// Its name in the scenario.
    name: String,
    rate: Rate,
    bytes: Bytes,
    /// The depth of the bucket.
    bucket: Bytes,
    /// It is the queue of a router that the scenario has; else one in place of a link.
    of_router: bool,
    /// The host's bursts reach it split into segments.
    comes_split: bool,
    /// The child of the token bucket, its name first; empty for the FIFO that the bucket has by itself.
    child: Vec<String>,
}

/// What a queue has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Counted {
    sent_bytes: u64,
    sent_packets: u64,
    dropped: u64,
    waiting_bytes: u64,
    waiting_packets: u64,
    marked: u64,
}

impl LinuxQueue {
    /// The queue of a direction's router; `None` if it has none.
    ///
    /// # Errors
    /// When something stands before the router, which then cannot be next to the host.
    pub fn of_router(elements: &[ElementConfig]) -> Result<Option<LinuxQueue>, EmuError> {
        let is_router = |element: &ElementConfig| matches!(element, ElementConfig::TokenBucket { frame_bytes, .. } if *frame_bytes > 0);
        let Some(place) = elements.iter().position(is_router) else { return Ok(None) };
        let ElementConfig::TokenBucket { name, rate_bps, burst_bytes, queue, .. } = &elements[place] else {
            unreachable!("it is a token bucket")
        };
        if place > 0 {
            return Err(EmuError::Unsupported {
                field: "path.before".to_owned(),
                reason: "stands before the router, which is a real one here and the host's neighbour"
                    .to_owned(),
                fix: "remove path.before, or use the simulator (--world sim)".to_owned(),
            });
        }
        Ok(Some(LinuxQueue {
            name: name.clone(),
            rate: *rate_bps,
            bytes: queue.bytes,
            bucket: *burst_bytes,
            of_router: true,
            comes_split: queue.unit.is_segment(),
            child: Vec::new(),
        }))
    }

    /// The queue of the first element of a direction: of a router, or in place of a link.
    ///
    /// # Errors
    /// Why Linux cannot manage it, with what would help.
    pub fn of(elements: &[ElementConfig], mtu_bytes: u32) -> Result<LinuxQueue, EmuError> {
        if let Some(queue) = LinuxQueue::of_router(elements)? {
            return Ok(queue);
        }
        let Some(ElementConfig::Link { name, rate_bps, queue }) = elements.first() else {
            return Err(unsupported(
                "path",
                "begins with something else than a link",
                "remove path.before and path.deliveries",
            ));
        };
        if !rate_bps.changes.is_empty() {
            return Err(unsupported("path.rate", "changes, which no token bucket does", "choose one rate"));
        }
        if queue.packets.is_some() {
            return Err(unsupported(
                "path.buffer",
                "is limited in packets",
                "give it in bytes, e.g. \"100 KB\"",
            ));
        }
        if !queue.unit.is_segment() {
            return Err(unsupported(
                "path.unit",
                "is burst, but every frame is split before the queue",
                "leave it out",
            ));
        }
        let child = child(queue, mtu_bytes).map_err(|reason| {
            unsupported("path.queue", &reason, "leave that setting out, or use the world kernel")
        })?;
        let rate = rate_bps.initial;
        Ok(LinuxQueue {
            name: name.clone(),
            rate,
            bytes: queue.bytes,
            bucket: rate.bytes_in(LATE) + Bytes::new(mtu_bytes.into()),
            of_router: false,
            comes_split: true,
            child,
        })
    }

    /// Whether it is on an Ethernet interface, and so counts the headers of frames.
    pub(crate) fn is_on_ethernet(&self) -> bool {
        self.of_router
    }

    /// Whether the host's bursts are to be split into segments before they reach it.
    pub(crate) fn comes_split(&self) -> bool {
        self.comes_split
    }

    /// The rate of the link.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The names of the disciplines that it needs.
    pub fn kinds(&self) -> Vec<&str> {
        let child = self.child.first().map_or("bfifo", |name| name);
        vec!["tbf", child]
    }

    /// Puts it in front of `device`, in the calling thread's namespace.
    pub(crate) fn install(&self, device: &str) -> Result<(), EmuError> {
        let link = format!(
            "qdisc add dev {device} root handle 1: tbf rate {}bit burst {}b limit {}b",
            self.rate.as_bits_per_sec(),
            self.bucket.as_u64(),
            self.bytes.as_u64()
        );
        self.add("tbf", &link)?;
        if let Some(kind) = self.child.first() {
            self.add(
                kind,
                &format!("qdisc add dev {device} parent 1:1 handle 10: {}", self.child.join(" ")),
            )?;
        }
        Ok(())
    }

    fn add(&self, kind: &str, words: &str) -> Result<(), EmuError> {
        tc(words).map(drop).map_err(|error| match error {
            Refused::NoTool(error) => no_tool(error),
            Refused::QuantityText(message) if is_missing(&message) => EmuError::Unsupported {
                field: if self.of_router { "path.router" } else { "path.queue" }.to_owned(),
                reason: format!("Linux has no qdisc {kind} here"),
                fix: format!("as root: `modprobe sch_{kind}`; `fullpipe doctor` lists those that there are"),
            },
            Refused::QuantityText(message) => EmuError::System {
                attempted: format!("run `tc {words}` ({message})"),
                source: io::Error::from(io::ErrorKind::InvalidInput),
            },
        })
    }

    /// The record of a run that lasted so long, and at whose end the queue was in this state. It has no samples: each would be a
    /// process.
    pub(crate) fn record(&self, end: QueueSample, lasted: Duration) -> LinkRecord {
        LinkRecord::new(&self.name, end, Some(self.rate.bytes_in(lasted).as_u64()), LinkSeries::default())
    }

    /// Its state, in the calling thread's namespace.
    pub(crate) fn sample(&self, device: &str) -> Result<QueueSample, EmuError> {
        let shown = tc(&format!("-s qdisc show dev {device}")).map_err(|error| match error {
            Refused::NoTool(error) => no_tool(error),
            Refused::QuantityText(message) => {
                EmuError::system(format!("read the queue of {device}"), io::Error::other(message))
            }
        })?;
        let counted = Counted::read(&shown);
        Ok(QueueSample {
            time_ns: 0,
            backlog_bytes: counted.waiting_bytes,
            delay_ns: self.rate.time_for(Bytes::new(counted.waiting_bytes)).as_nanos(),
            arrived_packets: counted.sent_packets + counted.waiting_packets + counted.dropped,
            dropped_packets: counted.dropped,
            accepted_bytes: counted.sent_bytes + counted.waiting_bytes,
            // Only some qdiscs count them apart.
            early_packets: 0,
            marked_packets: counted.marked,
        })
    }
}

impl Counted {
    /// Reads what `tc -s qdisc show` prints: the bucket first, which counts what its child drops, then the child, which marks.
    fn read(shown: &str) -> Counted {
        let words = shown.split(|c: char| c.is_whitespace() || matches!(c, '(' | ')' | ','));
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let behind = |key: &'static str| words.iter().skip_while(move |word| **word != key).skip(1);
        let number = |word: Option<&&str>| {
            // `tc` writes sizes near a multiple of 1024 bytes, or of 1024 of those, as 63Kb or 2Mb.
            let word = word.map_or("", |word| word.trim_end_matches('b'));
            let (digits, factor) = match word.strip_suffix('K') {
                Some(digits) => (digits, 1 << 10),
                None => word.strip_suffix('M').map_or((word, 1), |digits| (digits, 1 << 20)),
            };
            digits
                .trim_end_matches(|c: char| !c.is_ascii_digit())
                .parse()
                .map_or(0, |count: u64| count * factor)
        };
        let marks = ["ecn_mark", "marked", "ce_mark"].map(|key| number(behind(key).next()));
        Counted {
            sent_bytes: number(behind("Sent").next()),
            sent_packets: number(behind("Sent").nth(2)),
            dropped: number(behind("dropped").next()),
            waiting_bytes: number(behind("backlog").next()),
            waiting_packets: number(behind("backlog").nth(1)),
            marked: marks[0].max(marks[1]) + marks[2],
        }
    }
}

/// The child of the bucket in the words of `tc`. Settings with Linux's default are left out.
fn child(queue: &QueueConfig, mtu_bytes: u32) -> Result<Vec<String>, String> {
    let discipline: DisciplineConfig = queue.discipline;
    if discipline.is_fifo() {
        return Ok(Vec::new());
    }
    let info = discipline.info();
    let name = info.linux_name.ok_or_else(|| format!("is {}, which Linux does not have", info.name))?;
    // RED counts bytes, the others packets.
    let limit = if name == "red" {
        queue.bytes.as_u64()
    } else {
        (queue.bytes.as_u64() / u64::from(mtu_bytes)).max(1)
    };
    let mut words = vec![name.to_owned(), "limit".to_owned(), limit.to_string()];
    if name == "red" {
        words.extend(["avpkt".to_owned(), "1000".to_owned()]);
    }
    for (setting, value) in discipline.settings() {
        if setting.name == "ecn" {
            // Off by default in some.
            match value {
                1 => words.push("ecn".to_owned()),
                _ if name != "red" => words.push("noecn".to_owned()),
                _ => {}
            }
            continue;
        }
        if value == setting.default {
            continue;
        }
        if !SAME.contains(&setting.name) {
            return Err(format!("sets {}, which the world qdisc does not pass on to {name}", setting.name));
        }
        words.push(setting.name.to_owned());
        match setting.unit {
            Unit::Time => words.push(format!("{}us", value / 1_000)),
            Unit::Share => words.push(format!("{}", value as f64 / 1e6)),
            Unit::Bytes | Unit::Count => words.push(value.to_string()),
            // A word of its own.
            Unit::Switch => {}
        }
    }
    Ok(words)
}

/// Which of [`KINDS`] this kernel has: those that can be created on a device of the calling thread's namespace.
///
/// # Errors
/// When `tc` cannot be run.
pub(crate) fn available(device: &str) -> Result<Vec<&'static str>, EmuError> {
    let mut found = Vec::new();
    for kind in KINDS {
        let words = match kind {
            "tbf" => "tbf rate 1mbit burst 3000b limit 3000b",
            "bfifo" => "bfifo limit 3000b",
            "red" => "red limit 60000 avpkt 1000",
            other => other,
        };
        match tc(&format!("qdisc replace dev {device} root {words}")) {
            Ok(_) => found.push(kind),
            Err(Refused::NoTool(error)) => return Err(no_tool(error)),
            Err(Refused::QuantityText(_)) => {}
        }
    }
    Ok(found)
}

/// Why `tc` did not do it.
#[derive(Debug)]
pub(crate) enum Refused {
    NoTool(io::Error),
    /// What it printed.
    QuantityText(String),
}

fn tc(words: &str) -> Result<String, Refused> {
    run("tc", words)
}

/// Runs a tool of iproute2 in the calling thread's namespace; returns what it prints.
pub(crate) fn run(tool: &str, words: &str) -> Result<String, Refused> {
    let output =
        Command::new(tool).args(words.split_whitespace()).stdin(Stdio::null()).env("LC_ALL", "C").output();
    let output = output.map_err(Refused::NoTool)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Refused::QuantityText(String::from_utf8_lossy(&output.stderr).trim().replace('\n', " ")))
}

/// The kernel lacks the discipline, or `tc` has never heard of it.
fn is_missing(message: &str) -> bool {
    ["Specified qdisc", "No such file or directory", "Unknown qdisc"]
        .iter()
        .any(|words| message.contains(words))
}

fn no_tool(error: io::Error) -> EmuError {
    EmuError::Unsupported {
        field: "world".to_owned(),
        reason: format!("Linux's queues need tc and ip of iproute2 ({error})"),
        fix: "install iproute2".to_owned(),
    }
}

fn unsupported(field: &str, reason: &str, fix: &str) -> EmuError {
    EmuError::Unsupported {
        field: field.to_owned(),
        reason: format!("{reason} (world qdisc)"),
        fix: fix.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_scenario::{Format, resolve};

    fn queue(path: &str) -> Result<LinuxQueue, EmuError> {
        let text = format!("[path]\nrtt = \"20 ms\"\n{path}\n[[flows]]\ncontroller = \"reno\"\n");
        let spec = resolve(&text, Format::Toml, None).unwrap();
        LinuxQueue::of(&spec.forward, spec.mtu_bytes)
    }

    fn words(queue: &str) -> String {
        let path = format!("rate = \"10 Mbit/s\"\nbuffer = \"150 KB\"\nqueue = \"{queue}\"");
        self::queue(&path).unwrap().child.join(" ")
    }

    #[test]
    fn queue_is_expressed_in_tc_syntax() {
        assert_eq!(words("fifo"), "");
        assert_eq!(words("codel"), "codel limit 100 ecn");
        assert_eq!(words("codel:target=10 ms,ecn=0"), "codel limit 100 target 10000us noecn");
        assert_eq!(words("fq_codel:flows=16"), "fq_codel limit 100 ecn flows 16");
        assert_eq!(words("pie"), "pie limit 100 ecn");
        assert_eq!(words("red:probability=10 %"), "red limit 150000 avpkt 1000 probability 0.1 ecn");
        assert_eq!(words("dualpi2"), "dualpi2 limit 100");
    }

    #[test]
    fn linux_limitations_are_refused_by_name() {
        let refused = |path: &str| queue(path).unwrap_err().to_string();
        let link = "rate = \"10 Mbit/s\"\nbuffer = \"150 KB\"\n";
        for (more, field, words) in [
            ("queue = \"step\"", "path.queue", "which Linux does not have"),
            ("queue = \"red:gentle=1\"", "path.queue", "gentle"),
            ("unit = \"burst\"", "path.unit", "burst"),
        ] {
            let error = refused(&format!("{link}{more}"));
            assert!(error.starts_with(field) && error.contains(words), "{error}");
        }
        assert_eq!(queue(link).unwrap().kinds(), ["tbf", "bfifo"]);
    }

    #[test]
    fn what_it_counted_is_read() {
        let shown = "qdisc tbf 1: root refcnt 2 rate 10Mbit burst 3000b lat 38ms \n \
            Sent 123456 bytes 83 pkt (dropped 7, overlimits 90 requeues 0) \n \
            backlog 4500b 3p requeues 0\n\
            qdisc codel 10: parent 1:1 limit 1000p target 5ms interval 100ms ecn \n \
            Sent 1 bytes 2 pkt (dropped 3, overlimits 0 requeues 0) \n \
            backlog 5b 6p requeues 0\n  \
            count 0 lastcount 0 ldelay 3us drop_next 0us\n  \
            maxpacket 1514 ecn_mark 11 drop_overlimit 0\n";
        let counted = Counted {
            sent_bytes: 123_456,
            sent_packets: 83,
            dropped: 7,
            waiting_bytes: 4_500,
            waiting_packets: 3,
            marked: 11,
        };
        assert_eq!(Counted::read(shown), counted);
        assert_eq!(Counted::read(""), Counted::default());
        // What is within 16 bytes of a multiple of 1024 is written as that, and marks above a threshold apart.
        let near = Counted::read("Sent 1 bytes 2 pkt \n backlog 63Kb 43p requeues 0 \n ce_mark 5 ecn_mark 2");
        assert_eq!((near.waiting_bytes, near.waiting_packets, near.marked), (63 * 1024, 43, 7));
    }
}
