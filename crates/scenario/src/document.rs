//! The shape of a scenario as people write it. TOML and JSON read the same.
//!
//! ```toml
//! name = "bbr-vs-cubic"
//! duration = "20 s"
//!
//! [path]
//! rate = "100 Mbit/s"
//! rtt = "40 ms"
//! buffer = "1 bdp"
//!
//! [[flows]]
//! controller = "bbr1"
//!
//! [[flows]]
//! controller = "cubic"
//! ```
//!
//! Quantities stay text here ([`Said`]); [`crate::resolve`](mod@crate::resolve) reads them and fills in the defaults.
//! A packet passes, in each direction: the elements `before`, the bottleneck, random loss, what other keys put there
//! (jitter, reordering), the elements `after`, and half of the round-trip time; last, what a flow's own longer `rtt` adds. Loss of whole bursts is in front of
//! the bottleneck.

use std::fmt;

use fullpipe_path::config::Probability;
use fullpipe_units::{Duration, Rate};
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::declared::WithOptions;
use crate::elements::Element;
use crate::error::ScenarioError;
use crate::format::Format;
use crate::metrics::Metric;
use crate::program::Side;
use crate::quantity::{Count, QuantityText, Size};
use crate::reader;
use crate::spec::{Direction, HostModel, Lie};
use crate::unit::Unit;

/// A Fullpipe scenario: a path, the flows that cross it, and the duration.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "Fullpipe scenario")]
pub struct Document {
    /// Name in records and reports. Default: "scenario".
    pub name: Option<String>,
    /// How long the run takes. Default: 20 s.
    pub duration: Option<QuantityText<Duration>>,
    /// Seed of every random stream; the command line may give others. Default: 1.
    pub seed: Option<QuantityText<Count>>,
    /// Run once for each of these controllers or programs, which all flows without one of their own use. Without `flows`,
    /// one flow is alone on the path.
    #[schemars(extend("examples" = [["bbr1", "cubic"]]))]
    pub compare: Option<Vec<Compared>>,
    /// The path that all flows share.
    #[schemars(required)]
    pub path: Option<WithOptions<PathDocument>>,
    /// The end hosts.
    #[serde(default)]
    pub hosts: HostsDocument,
    /// The flows.
    #[serde(default)]
    pub flows: Vec<FlowDocument>,
    /// What is recorded.
    #[serde(default)]
    pub record: RecordDocument,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// When the text is not TOML or JSON at all, by line and column, or a field is not one of a document.
    pub fn read(text: &str, format: Format) -> Result<Document, ScenarioError> {
        reader::read(text, format)
    }
}

/// One of the alternatives under `compare`.
#[derive(Clone, Debug, JsonSchema)]
#[serde(untagged)]
pub enum Compared {
    /// A controller, with parameters overridden by name.
    Controller(String),
    /// A program. Only the kernel world runs it.
    Program(ProgramDocument),
}

/// A program under `compare`: as the keys of a flow.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramDocument {
    /// The command that connects to the server.
    #[schemars(required)]
    pub client: Option<String>,
    /// The command that the client connects to.
    #[schemars(required)]
    pub server: Option<String>,
    /// Which of the two sends the data. Default: client.
    pub sender: Option<Side>,
    /// Name in records and reports. Default: the first word of `client`.
    pub label: Option<String>,
}

impl<'de> Deserialize<'de> for Compared {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Compared, D::Error> {
        struct Either;

        impl<'de> Visitor<'de> for Either {
            type Value = Compared;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a controller or a program")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Compared, E> {
                Ok(Compared::Controller(text.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Compared, A::Error> {
                ProgramDocument::deserialize(MapAccessDeserializer::new(map)).map(Compared::Program)
            }
        }

        deserializer.deserialize_any(Either)
    }
}

/// The path that all flows share: its bottleneck, its delay, and its other elements.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("oneOf" = [{ "required": ["rate"] }, { "required": ["deliveries"] }]))]
pub struct PathDocument {
    /// Rate of the bottleneck, headers from IP upwards counted. Either this or `deliveries`.
    pub rate: Option<QuantityText<Rate>>,
    /// File with a Mahimahi delivery trace that the bottleneck follows: one integer millisecond a line, one opportunity
    /// of 1500 bytes each. Relative to the scenario's folder. A "bdp" is then the file's mean rate times `rtt`.
    pub deliveries: Option<String>,
    /// Makes the bottleneck a token bucket of this depth (tc-tbf with `rate`): packets leave at once while tokens last. At most
    /// 2^32 - 1 bytes, as in tc.
    pub burst: Option<QuantityText<Size>>,
    /// Makes the bottleneck the interface of a Linux router: `rate`, `burst` and `buffer` are those of its tc-tbf (rate, burst,
    /// limit), which counts the header of each Ethernet frame, and `unit` is burst unless given.
    pub router: Option<Router>,
    /// Round-trip time of the empty path, half in each direction.
    #[schemars(required)]
    pub rtt: Option<QuantityText<Duration>>,
    /// What fits into the queue in front of the bottleneck. A "bdp" is `rate` times `rtt`. Default: 1 bdp, but at least 10
    /// packets.
    pub buffer: Option<QuantityText<Size>>,
    /// What that queue does with packets, with settings overridden by name. Default: fifo, which drops what does not fit.
    #[schemars(extend("examples" = crate::queue::names()))]
    pub queue: Option<String>,
    /// What that queue and `loss` take or drop as one: each segment, or the bursts that the host hands over. Default: segment,
    /// with `router` burst.
    pub unit: Option<Unit>,
    /// Independent random loss behind the bottleneck; with `unit` burst, in front of a bottleneck that sends the segments of a
    /// burst one after the other.
    pub loss: Option<QuantityText<Probability>>,
    /// What changes, and when.
    #[serde(default)]
    pub changes: Vec<PathChange>,
    /// Elements that a packet passes before the bottleneck, in order.
    #[serde(default)]
    pub before: Vec<Element>,
    /// Elements that a packet passes after the bottleneck, its loss and what other keys put behind it, in order.
    #[serde(default)]
    pub after: Vec<Element>,
    /// The path back, which acknowledgements take.
    #[serde(default)]
    pub reverse: WithOptions<ReverseDocument>,
}

/// What a router does to packets that leave it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Router {
    /// Linux's tc-tbf with the FIFO that it has by itself (bfifo), on an Ethernet interface.
    Tbf,
}

/// The path back. Without `rate` and `deliveries` it has no link; it always has the other half of the round-trip time.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("not" = { "required": ["rate", "deliveries"] }))]
pub struct ReverseDocument {
    /// Rate of a link on the way back. Default: unlimited.
    pub rate: Option<QuantityText<Rate>>,
    /// File with a Mahimahi delivery trace that a link on the way back follows. Instead of `rate`.
    pub deliveries: Option<String>,
    /// What fits into the queue in front of that link; a "bdp" is this `rate`, or the delivery trace's mean rate, times
    /// `rtt`. Default: 1000 packets, as in Linux.
    pub buffer: Option<QuantityText<Size>>,
    /// What that queue does with packets. Default: fifo.
    pub queue: Option<String>,
    /// What that queue and `loss` take or drop as one. Default: segment.
    pub unit: Option<Unit>,
    /// Independent random loss.
    pub loss: Option<QuantityText<Probability>>,
    /// What changes, and when.
    #[serde(default)]
    pub changes: Vec<ReverseChange>,
    /// Elements that a packet passes before the link, in order.
    #[serde(default)]
    pub before: Vec<Element>,
    /// Elements that a packet passes after the link, its loss and what other keys put behind it, in order.
    #[serde(default)]
    pub after: Vec<Element>,
}

/// A change of the path at one time. Values that are not given stay the same.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PathChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<QuantityText<Duration>>,
    /// The bottleneck's rate from then on.
    pub rate: Option<QuantityText<Rate>>,
    /// The round-trip time from then on, half in each direction.
    pub rtt: Option<QuantityText<Duration>>,
    /// The random loss from then on.
    pub loss: Option<QuantityText<Probability>>,
}

/// A change of the path back at one time. Values that are not given stay the same.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReverseChange {
    /// When, from the start of the run; later than the change before.
    #[schemars(required)]
    pub at: Option<QuantityText<Duration>>,
    /// The link's rate from then on.
    pub rate: Option<QuantityText<Rate>>,
    /// The random loss from then on.
    pub loss: Option<QuantityText<Probability>>,
}

/// The settings of the end hosts.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsDocument {
    /// What the simulator's hosts are: ideal, or of Linux's manners. The kernel world's are real. Default: ideal.
    pub model: Option<HostModel>,
    /// The largest IP packet, bytes, 576 to 65535. Default: 1500.
    pub mtu: Option<QuantityText<Count>>,
    /// Socket buffer sizes. Default: max.
    pub tcp_memory: Option<TcpMemory>,
    /// Linux `net.ipv4.tcp_rmem`: minimum, default and largest receive buffer. Overrides `tcp_memory`.
    pub tcp_rmem: Option<Vec<QuantityText<Size>>>,
    /// Linux `net.ipv4.tcp_wmem`: minimum, default and largest send buffer. Overrides `tcp_memory`.
    pub tcp_wmem: Option<Vec<QuantityText<Size>>>,
    /// Whether controllers that do not ask for pacing are paced too, as with fq. Default: false, as in Linux.
    pub pacing: Option<bool>,
    /// The receiver merges packets that arrive within this time (interrupt coalescing). Default: 0.
    pub gro: Option<QuantityText<Duration>>,
    /// The most segments that a sender hands over as one (Linux: `gso_max_segs` of its interface), 1 to 65535. Default: 65535,
    /// so that 64 KB limit them.
    pub gso_max_segs: Option<QuantityText<Count>>,
    /// Whether connections negotiate ECN, as with Linux's `net.ipv4.tcp_ecn` = 1. Controllers that need it negotiate it in any
    /// case. Default: false.
    pub ecn: Option<bool>,
    /// What the sending host keeps of its connections to the receiving one. Default: nothing, so that flows do not depend on
    /// each other's past.
    pub metrics: Option<MetricsDocument>,
}

/// The sending host keeps metrics of its connections to the receiving one, as with Linux's `net.ipv4.tcp_no_metrics_save` = 0:
/// each connection begins with what the ones before have left. The values are what is there before the first; 0 where there is
/// none. A run's summary has the entry that each flow leaves: its times in nanoseconds (`rtt_ns`, `rttvar_ns`) and when that was
/// (`at_ns`). In Python, `fullpipe.left_metrics(run)` has the last as fields of this table.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MetricsDocument {
    /// Whether the slow-start threshold is kept and used, as with Linux's `net.ipv4.tcp_no_ssthresh_metrics_save` = 0. Default:
    /// false, as in Linux since 5.6. Before, it always was.
    pub save_ssthresh: Option<bool>,
    /// Slow-start threshold, segments. It has no effect without `save_ssthresh`. Default: 0.
    pub ssthresh: Option<QuantityText<Count>>,
    /// Congestion window, segments. It is a cap if locked, and otherwise kept but not used. Default: 0.
    pub cwnd: Option<QuantityText<Count>>,
    /// Degree of reordering, segments, up to 300. Default: 0.
    pub reordering: Option<QuantityText<Count>>,
    /// Smoothed round-trip time, in which the first retransmission timeout is computed if it is longer than that of the
    /// handshake. Linux counts eighths of a microsecond. Default: 0.
    pub rtt: Option<QuantityText<Duration>>,
    /// Variation of the round-trip time; Linux counts quarters of a microsecond. Default: 0.
    pub rttvar: Option<QuantityText<Duration>>,
    /// Values that no connection changes, as `ip route ... lock` makes them. Default: none.
    pub locked: Option<Vec<Metric>>,
}

/// Presets of `tcp_rmem` and `tcp_wmem`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TcpMemory {
    /// The largest buffers that Linux can be set to (2^31 - 1), so that no window limits a flow.
    #[default]
    Max,
    /// Linux's defaults since 6.16: up to 32 MiB for receiving and 4 MiB for sending.
    Linux,
    /// Ubuntu 18.10's defaults: up to 6 MiB for receiving and 4 MiB for sending.
    #[serde(rename = "ubuntu-18.10")]
    Ubuntu1810,
}

/// One flow, or several equal ones.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowDocument {
    /// Its congestion control, with parameters overridden by name, or one inside a QUIC stack. May be left out under
    /// `compare`.
    #[schemars(extend("examples" = ["bbr1", "bbr1:probe_gain=1.5,cwnd_gain=2", "noq:bbr3"]))]
    pub controller: Option<String>,
    /// Instead of `controller`: the command of a program that connects to `server`, for /bin/sh. `{server}` in it is the
    /// server's address, and `{port}` a port of the flow's own. Only the kernel world runs it.
    #[schemars(extend("examples" = ["iperf3 -c {server} -t 20"]))]
    pub client: Option<String>,
    /// The command that `client` connects to; it is started first, and stays in the foreground.
    #[schemars(extend("examples" = ["iperf3 -s -1"]))]
    pub server: Option<String>,
    /// Which of `client` and `server` sends the data, and so is at the beginning of the path. Default: client.
    pub sender: Option<Side>,
    /// Instead of `controller`: frames of real-time media, in datagrams. Nothing limits its rate, and nothing is sent again.
    /// Only the simulator runs it.
    pub media: Option<MediaDocument>,
    /// The number of such flows. Default: 1.
    pub count: Option<QuantityText<Count>>,
    /// When it connects, from the start of the run. Default: 0.
    pub start: Option<QuantityText<Duration>>,
    /// Each of `count` flows starts this much after the one before. Default: 0.
    pub stagger: Option<QuantityText<Duration>>,
    /// Moves the start later by a random time below this, so that seeds differ. Default: the flow's round-trip time, or what
    /// is left to the end.
    pub start_jitter: Option<QuantityText<Duration>>,
    /// When the application stops writing. Default: at the end of the run.
    pub stop: Option<QuantityText<Duration>>,
    /// How much it sends. Default: as much as it can.
    pub size: Option<QuantityText<Size>>,
    /// Writes in bursts, with pauses between them, instead of `size`.
    pub bursts: Option<BurstsDocument>,
    /// The receiver requests the same amount repeatedly, instead of `size`.
    pub requests: Option<RequestsDocument>,
    /// The receiver plays a video, instead of `size`.
    pub video: Option<VideoDocument>,
    /// The receiver requests one transfer after another, and the flow is complete after the last; instead of `size`.
    pub transfers: Option<Vec<TransferDocument>>,
    /// Its own round-trip time, at least the path's; the rest is added for this flow alone. Default: the path's.
    pub rtt: Option<QuantityText<Duration>>,
    /// Name in records and reports, numbered where `count` is above 1. Default: the controller.
    pub label: Option<String>,
    /// A fixed cap on its window: packets, or bytes on the wire, or bandwidth-delay products at its own `rtt` and in its direction.
    pub max_cwnd: Option<QuantityText<Size>>,
    /// Whether its connection negotiates ECN. A controller that needs ECN negotiates it in any case. Default: as `hosts.ecn`.
    pub ecn: Option<bool>,
    /// Which way its data go. With `reverse` they go over `path.reverse`, which then needs a rate, and its ACKs share the queues of
    /// `path` with the data of other flows. Only the simulator has such flows. Default: forward.
    pub direction: Option<Direction>,
    /// How its receiver lies: it acknowledges lost data as received, sends two ACKs for each arrival, or echoes no mark. Only
    /// the simulator's can. `hides_loss` is for flows that send as much as they can. Default: it does not lie.
    pub receiver: Option<Lie>,
}

/// Real-time media: frames of one size, each sent back to back in datagrams of the size of a segment, of which the last is short.
/// There is no handshake, no feedback and no congestion control. `start` is when the first frame is sent.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MediaDocument {
    /// Payload of a frame, up to 10 MB. Each datagram has 52 B of headers, as segments have.
    #[schemars(required)]
    pub frame: Option<QuantityText<Size>>,
    /// From one frame to the next, at least 1 ms.
    #[schemars(required)]
    pub every: Option<QuantityText<Duration>>,
    /// How long after it was sent a frame's last packet may arrive. Default: 100 ms.
    pub deadline: Option<QuantityText<Duration>>,
}

/// An application that writes the same amount repeatedly, whether or not the previous one has arrived.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BurstsDocument {
    /// How much at a time, rounded up to whole segments.
    #[schemars(required)]
    pub size: Option<QuantityText<Size>>,
    /// From one write to the next, at least 1 ms; the first is when the flow connects.
    #[schemars(required)]
    pub every: Option<QuantityText<Duration>>,
}

/// A receiver that requests the same amount repeatedly. The request travels to the sender; connecting is the first.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestsDocument {
    /// The exact size of each answer.
    #[schemars(required)]
    pub size: Option<QuantityText<Size>>,
    /// From the complete arrival of an answer to the next request. Default: 0.
    pub pause: Option<QuantityText<Duration>>,
}

/// A receiver that plays a video. It requests one chunk after another while its playback buffer has room for one more.
/// Playback begins when the first chunk has arrived, and stalls while the next one is late.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct VideoDocument {
    /// Rate of the media, payload: a chunk holds `rate` times `chunk`, rounded up to whole bytes.
    #[schemars(required)]
    pub rate: Option<QuantityText<Rate>>,
    /// How long a chunk plays, at least 1 ms. Default: 4 s.
    pub chunk: Option<QuantityText<Duration>>,
    /// How much media the player holds, at least one chunk. Default: 30 s.
    pub buffer: Option<QuantityText<Duration>>,
}

/// One of the transfers that a receiver requests. The request travels to the sender; connecting is the first.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransferDocument {
    /// Its exact size.
    #[schemars(required)]
    pub size: Option<QuantityText<Size>>,
    /// From the complete arrival of the previous transfer, or the flow's start, to the request for it. Default: 0.
    pub pause: Option<QuantityText<Duration>>,
}

/// What is recorded besides the summary.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordDocument {
    /// Time between two samples of the time series, at most 20 000 samples a run. Default: 10 ms, or as often as fits.
    pub interval: Option<QuantityText<Duration>>,
    /// Whether time series are kept; the summary has all measures in either case. Default: true.
    pub series: Option<bool>,
    /// Whether flows have time series too, or only the queues, which are then sampled as often as those of one flow. The
    /// RTT in the summary needs the flows' series. Default: true.
    pub flows: Option<bool>,
}
