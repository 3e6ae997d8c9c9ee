//! The resolved scenario: numbers only, in base units. Every world runs exactly this.

use std::sync::Arc;

use fullpipe_cc::Ect;
use fullpipe_path::config::ElementConfig;
use fullpipe_path::{Ecn, mix};
use fullpipe_units::{Bytes, Duration, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::controller::ControllerChoice;
use crate::error::ScenarioError;
use crate::metrics::MetricsSpec;
use crate::program::Program;

mod change;

pub use change::{NoSpot, Place, Spot};

/// A scenario in numbers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    /// Name in records and reports.
    pub name: String,
    /// When the run ends.
    pub duration_ns: Duration,
    /// The largest IP packet on the path. The segment size follows: MTU less 52 bytes of IP, TCP and timestamps.
    pub mtu_bytes: u32,
    /// The path from senders to receivers, shared by all flows.
    pub forward: Vec<ElementConfig>,
    /// The path back.
    pub reverse: Vec<ElementConfig>,
    /// The end hosts.
    pub hosts: HostSpec,
    /// The flows, in the order of their numbers.
    pub flows: Vec<FlowSpec>,
    /// Time between two samples of the time series; `None` records no series.
    pub sample_interval_ns: Option<Duration>,
    /// Whether flows have time series, or the queues alone.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub sample_flows: bool,
    /// Whether the time series are kept once the summary is computed from them.
    #[serde(default = "yes", skip_serializing_if = "is_yes")]
    pub keep_series: bool,
    /// Seed of every random stream of the run.
    pub seed: u64,
}

impl Spec {
    /// IP and TCP headers with timestamps, bytes (20 + 20 + 12).
    pub const HEADER_BYTES: u32 = 52;

    /// The name that scenarios give to the element of `path.rate`, or of what stands in its place.
    pub const BOTTLENECK: &str = "bottleneck";

    /// The element of that name.
    pub fn bottleneck(&self) -> Option<&ElementConfig> {
        self.forward.iter().find(|element| element.name() == Some(Spec::BOTTLENECK))
    }

    /// Payload bytes of a full-sized segment.
    pub fn mss(&self) -> u32 {
        self.mtu_bytes - Self::HEADER_BYTES
    }

    /// The first flow that is a program.
    pub fn program_flow(&self) -> Option<usize> {
        self.flows.iter().position(|flow| flow.program.is_some())
    }

    /// For worlds that run no programs: checks that no flow is one. `place` is the world in words.
    ///
    /// # Errors
    /// When a flow is one: the first.
    pub fn check_no_program(&self, place: &str) -> Result<(), ScenarioError> {
        let mut programs = self.flows.iter().enumerate();
        let found = programs.find_map(|(index, flow)| Some((index, flow.program.as_ref()?)));
        let Some((index, program)) = found else { return Ok(()) };
        let problem = format!("is a program, which {place} does not run");
        Err(ScenarioError::new(&format!("flows[{index}].client"), &program.client, problem)
            .expected("a controller")
            .fix("run it in the kernel world (--world kernel)"))
    }

    /// For worlds whose receivers are not ours: checks that none lies. `place` is the world in words.
    ///
    /// # Errors
    /// When one does: the first.
    pub fn check_no_lie(&self, place: &str) -> Result<(), ScenarioError> {
        let mut flows = self.flows.iter().enumerate();
        let found = flows.find_map(|(index, flow)| Some((index, flow.receiver?)));
        let Some((index, lie)) = found else { return Ok(()) };
        let problem = format!("is a lie, and the receivers of {place} tell none");
        Err(ScenarioError::new(&format!("flows[{index}].receiver"), lie.name(), problem)
            .expected("a receiver that does not lie")
            .fix("leave receiver out, or use the simulator (--world sim)"))
    }

    /// For worlds that send no media: checks that no flow is media. `place` is the world in words.
    ///
    /// # Errors
    /// When one is: the first.
    pub fn check_no_media(&self, place: &str) -> Result<(), ScenarioError> {
        let Some(index) = self.flows.iter().position(|flow| flow.controller.is_media()) else {
            return Ok(());
        };
        let problem = format!("is a flow that only the simulator runs, not {place}");
        Err(ScenarioError::new(&format!("flows[{index}].media"), "media", problem)
            .expected("a controller")
            .fix("choose a controller, or use the simulator (--world sim)"))
    }

    /// Whether a flow's data go over the reverse path.
    pub fn has_reverse_flows(&self) -> bool {
        self.flows.iter().any(FlowSpec::is_reverse)
    }

    /// What a flow's data pass.
    pub(crate) fn way_of(&self, flow: &FlowSpec) -> &[ElementConfig] {
        if flow.is_reverse() { &self.reverse } else { &self.forward }
    }

    /// For worlds in which all flows go one way: checks that none goes the other way. `place` is the world in words.
    ///
    /// # Errors
    /// When one does: the first.
    pub fn check_no_reverse(&self, place: &str) -> Result<(), ScenarioError> {
        let Some(index) = self.flows.iter().position(FlowSpec::is_reverse) else { return Ok(()) };
        let problem = format!("is a direction in which {place} sends no data");
        Err(ScenarioError::new(&format!("flows[{index}].direction"), "reverse", problem)
            .expected("flows in the forward direction")
            .fix("leave direction out, or use the simulator (--world sim)"))
    }

    /// Whether connections negotiate ECN, for worlds whose hosts have one setting for all of them (Linux `net.ipv4.tcp_ecn`).
    /// Connections whose controller needs ECN do not count.
    ///
    /// # Errors
    /// When flows differ: the number of the first that is not as the ones before.
    pub fn shared_ecn(&self) -> Result<bool, usize> {
        let uses = self.flows.iter().map(|flow| flow.ecn(&self.hosts)).enumerate();
        let mut uses = uses.filter(|(_, ecn)| !matches!(ecn, EcnUse::Exact(_)));
        let Some((_, first)) = uses.next() else { return Ok(self.hosts.ecn) };
        uses.find(|(_, ecn)| *ecn != first).map_or(Ok(first == EcnUse::Classic), |(number, _)| Err(number))
    }

    /// The number of its flows, elements, changes, transfers and opportunities. Its size in memory grows with them.
    pub(crate) fn parts(&self) -> u64 {
        let elements = self.forward.iter().chain(&self.reverse).map(|element| match element {
            ElementConfig::Link { rate_bps, .. } => rate_bps.changes.len(),
            ElementConfig::Delay { delay_ns } => delay_ns.changes.len(),
            ElementConfig::Loss { probability, .. } => probability.changes.len(),
            ElementConfig::DeliveryTrace { opportunities_ms, .. } => opportunities_ms.len(),
            ElementConfig::Cellular { rates_bps, .. } => rates_bps.len(),
            _ => 0,
        });
        let flows = self.flows.iter().map(|flow| flow.workload.transfers());
        elements.chain(flows).map(|parts| 1 + parts as u64).sum()
    }

    /// As JSON, for records and for other languages.
    #[expect(clippy::missing_panics_doc, reason = "a spec is plain data, which JSON can always hold")]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self)
            .expect("a spec is plain JSON: no map keys but strings, no failing serialiser")
    }

    /// From JSON, checked against every limit: the returned spec can be run.
    ///
    /// # Errors
    /// When it is not the JSON of a spec, or a number is out of its bounds.
    pub fn from_json(json: &str) -> Result<Spec, ScenarioError> {
        let spec: Spec = serde_json::from_str(json).map_err(|error| {
            ScenarioError::new("spec", json, format!("is not a spec: {error}"))
                .expected("the JSON that to_json writes")
                .fix("resolve the scenario again")
        })?;
        spec.validate()?;
        Ok(spec)
    }
}

/// The default for specs without this field.
fn yes() -> bool {
    true
}

fn is_yes(written: &bool) -> bool {
    *written
}

fn is_no(written: &bool) -> bool {
    !written
}

/// Linux's default (`GSO_MAX_SEGS`).
fn gso_max_segs() -> u16 {
    HostSpec::GSO_MAX_SEGS
}

fn is_gso_max_segs(written: &u16) -> bool {
    *written == HostSpec::GSO_MAX_SEGS
}

/// The settings of the end hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostSpec {
    /// How the simulator's hosts behave.
    #[serde(default, skip_serializing_if = "HostModel::is_ideal")]
    pub model: HostModel,
    /// Linux `net.ipv4.tcp_rmem`: minimum, default, maximum receive buffer.
    pub tcp_rmem_bytes: [Bytes; 3],
    /// Linux `net.ipv4.tcp_wmem`: minimum, default, maximum send buffer.
    pub tcp_wmem_bytes: [Bytes; 3],
    /// Whether loss-based controllers are paced too (fq or SO_MAX_PACING_RATE). Off by default, as in Linux.
    pub pacing: bool,
    /// The receiver merges data packets that arrive within this time of the first of them before TCP sees them (GRO and
    /// interrupt coalescing). Zero merges only packets that arrive at the same instant; the emulator, which is never
    /// exactly on time, then merges the packets that it releases together.
    pub gro_ns: Duration,
    /// The most segments that a sender hands over as one (Linux: `gso_max_segs` of its interface); at least one.
    #[serde(default = "gso_max_segs", skip_serializing_if = "is_gso_max_segs")]
    pub gso_max_segs: u16,
    /// Whether connections negotiate ECN (Linux `net.ipv4.tcp_ecn` = 1). A flow whose controller needs it does in any case
    /// ([`FlowSpec::ecn`]).
    #[serde(default, skip_serializing_if = "is_no")]
    pub ecn: bool,
    /// What the sending host keeps of its connections to the receiving one; `None` if nothing. The other host, from which flows of
    /// the reverse direction come, begins with the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsSpec>,
}

impl HostSpec {
    /// No limit on the segments of a burst: their bytes limit it.
    pub const GSO_MAX_SEGS: u16 = u16::MAX;
}

/// How the simulator's hosts behave. Those of worlds with real hosts are what they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum HostModel {
    /// Their work takes no time, and their buffers have their full size from the start.
    #[default]
    Ideal,
    /// As Linux's: `docs/explanation/hosts.md` lists what differs, with the source of each.
    Linux,
}

impl HostModel {
    /// Whether the hosts are ideal.
    pub fn is_ideal(&self) -> bool {
        *self == HostModel::Ideal
    }
}

/// How a connection uses ECN, if its handshake negotiates it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EcnUse {
    /// Not at all.
    #[default]
    None,
    /// RFC 3168: new data leaves with ECT(0), and the receiver echoes a mark until it hears of the reduction.
    Classic,
    /// RFC 8257: every packet leaves with this codepoint, and the receiver tells marked segments from others.
    Exact(Ecn),
}

/// How a flow's receiver lies about what arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Lie {
    /// It acknowledges everything below the last segment that arrived, and reports no block: no loss is seen. What was lost
    /// never arrives, and does not count as delivered (Savage et al. 1999, section 2.3: optimistic ACKs conceal losses; RFC
    /// 3540 section 1).
    HidesLoss,
    /// Two ACKs for each arrival in order, of one segment or of several that its host has merged. Numbers count segments, so that the
    /// first, for half of one, repeats the last number and acknowledges nothing (Savage et al. 1999, section 2.1: ACK division).
    /// Whoever counts segments or bytes (RFC 5681 section 3.1) gains nothing from it.
    SplitsAcks,
    /// It echoes no congestion mark (RFC 3168 section 18.1.4; RFC 3540 section 1).
    HidesCe,
}

impl Lie {
    /// Its name in scenarios.
    pub fn name(self) -> &'static str {
        match self {
            Lie::HidesLoss => "hides_loss",
            Lie::SplitsAcks => "splits_acks",
            Lie::HidesCe => "hides_ce",
        }
    }

    /// Whether it works for this application: one that waits for all of a transfer would wait for ever for what was lost.
    pub fn suits(self, workload: &Workload) -> bool {
        self != Lie::HidesLoss || *workload == Workload::Bulk
    }
}

/// Which way a flow's data go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// Over the path, and its ACKs over the path back.
    #[default]
    Forward,
    /// Over the path back, and its ACKs over the path, where they share the queues with the data of other flows (Zhang, Shenker
    /// and Clark, SIGCOMM 1991: two-way traffic).
    Reverse,
}

impl Direction {
    fn is_forward(&self) -> bool {
        *self == Direction::Forward
    }
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Name in records and reports, unique.
    pub label: String,
    /// Its congestion controller.
    pub controller: ControllerChoice,
    /// When it starts to connect.
    pub start_ns: Time,
    /// The start moves later by a random time below this, from the run's seed (so that seeds differ).
    pub start_jitter_ns: Duration,
    /// When the application stops writing and the flow's measures end; `None` for the end of the run. Data left in
    /// the send buffer may still be sent, but does not count.
    pub stop_ns: Option<Time>,
    /// What the application sends.
    pub workload: Workload,
    /// One-way delay of this flow alone, added behind the shared forward path.
    pub extra_forward_ns: Duration,
    /// One-way delay of this flow alone, added behind the shared reverse path.
    pub extra_reverse_ns: Duration,
    /// A fixed cap on the window in segments; `None` for none.
    pub max_cwnd: Option<u32>,
    /// Whether its connection negotiates ECN; `None` for what the hosts do. A controller that needs ECN does in any case
    /// ([`FlowSpec::ecn`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// How its receiver lies; `None` if it does not. Worlds whose hosts cannot lie refuse it ([`Spec::check_no_lie`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver: Option<Lie>,
    /// Which way its data go. Worlds in which all go one way refuse the other ([`Spec::check_no_reverse`]).
    #[serde(default, skip_serializing_if = "Direction::is_forward")]
    pub direction: Direction,
    /// The program that sends its packets; `None` for a flow that the world itself makes, with its controller.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

impl FlowSpec {
    /// Whether its segments are paced: because its controller needs it, or because the host paces everything. A controller of
    /// the user's own says itself whether it needs it.
    pub fn is_paced(&self, hosts: &HostSpec) -> bool {
        hosts.pacing || self.controller.params().is_some_and(|params| params.needs_pacing())
    }

    /// Whether its data go over the reverse path.
    pub fn is_reverse(&self) -> bool {
        !self.direction.is_forward()
    }

    /// How its connection uses ECN: as its controller needs it, or else as the flow is set, or else as the hosts are.
    pub fn ecn(&self, hosts: &HostSpec) -> EcnUse {
        match self.controller.params().and_then(|params| params.ecn()) {
            Some(Ect::Zero) => EcnUse::Exact(Ecn::Ect0),
            Some(Ect::One) => EcnUse::Exact(Ecn::Ect1),
            None if self.ecn.unwrap_or(hosts.ecn) => EcnUse::Classic,
            None => EcnUse::None,
        }
    }

    /// When the flow starts in the run with this seed: `start_ns` and a uniform share of the jitter. Every world uses
    /// this, so that a seed starts flows alike in all of them. `index` is the number of the flow.
    pub fn start_time(&self, index: usize, seed: u64) -> Time {
        let draw = Randomness::Start(index).seed(seed);
        let jitter = (draw as u128 * self.start_jitter_ns.as_nanos() as u128) >> 64;
        self.start_ns + Duration::from_nanos(jitter as u64)
    }
}

/// A use of randomness in a run. Every world gets its streams from [`Randomness::seed`], so that a seed means the same in all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Randomness {
    /// The elements of the path to the receivers.
    Forward,
    /// The elements of the path back.
    Reverse,
    /// When flow `.0` starts.
    Start(usize),
    /// The draws of flow `.0`'s controller.
    Controller(usize),
    /// When a host handles what arrives: 0 is the senders', 1 the receivers'.
    Host(usize),
    /// How late the pacing timer of flow `.0` is.
    Timer(usize),
    /// How late the timer for compressed ACKs of flow `.0` is.
    AckTimer(usize),
}

impl Randomness {
    /// The seed of this stream in the run with seed `run`. Mixed twice, so that no two runs share a stream.
    pub fn seed(self, run: u64) -> u64 {
        let (kind, index) = match self {
            Randomness::Forward => (0, 0),
            Randomness::Reverse => (1, 0),
            Randomness::Start(flow) => (2, flow as u64),
            Randomness::Controller(flow) => (3, flow as u64),
            Randomness::Host(host) => (4, host as u64),
            Randomness::Timer(flow) => (5, flow as u64),
            Randomness::AckTimer(flow) => (6, flow as u64),
        };
        mix(mix(mix(run).wrapping_add(kind)).wrapping_add(index))
    }
}

/// What an application sends. Cheap to clone, however long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Workload {
    /// As much as it can.
    Bulk,
    /// This many bytes, then it closes.
    Finite {
        /// How many.
        size_bytes: Bytes,
    },
    /// This many bytes repeatedly, whether or not the previous ones have arrived.
    Bursts {
        /// How many at a time, a multiple of the segment size: nothing then depends on how a host joins the end of one
        /// burst to the start of the next.
        size_bytes: Bytes,
        /// From one write to the next. The first is when the connection is established; all due by then leave together.
        every_ns: Duration,
    },
    /// This many bytes for each request of the receiver.
    Requests {
        /// How many.
        size_bytes: Bytes,
        /// From the arrival of the last byte of an answer to the next request.
        pause_ns: Duration,
    },
    /// Chunks of a video, each requested by the receiver as soon as its player has room for it.
    Video {
        /// Bytes of a chunk.
        chunk_bytes: Bytes,
        /// How long a chunk plays.
        chunk_ns: Duration,
        /// How much media the player holds, at least one chunk.
        buffer_ns: Duration,
    },
    /// Frames of real-time media, each in datagrams that leave together: without a handshake, feedback or retransmissions.
    Media {
        /// Payload of a frame.
        frame_bytes: Bytes,
        /// From one frame to the next. The first leaves when the flow starts.
        every_ns: Duration,
        /// How long after it was sent a frame has to be complete.
        deadline_ns: Duration,
    },
    /// One transfer after another, each requested by the receiver; then it closes.
    Script {
        /// At least one.
        transfers: Arc<[Transfer]>,
    },
}

/// One of several transfers over a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// How much.
    pub size_bytes: Bytes,
    /// From the complete arrival of the previous transfer, or the flow's start, to the request for it.
    pub pause_ns: Duration,
}

impl Workload {
    /// How many transfers it lists.
    pub(crate) fn transfers(&self) -> usize {
        if let Workload::Script { transfers } = self { transfers.len() } else { 0 }
    }

    /// The most frames of media, and packets of these, that it sends in a run of this length; `mss` is the payload of a packet.
    pub(crate) fn frames(&self, duration: Duration, mss: u32) -> (u64, u64) {
        let Workload::Media { frame_bytes, every_ns, .. } = self else { return (0, 0) };
        let frames = 1 + duration.as_nanos() / every_ns.as_nanos().max(1);
        (frames, frames.saturating_mul(frame_bytes.as_u64().div_ceil(u64::from(mss))))
    }

    /// All that it sends before it closes; `None` if it never does.
    pub fn total_bytes(&self) -> Option<Bytes> {
        match self {
            Workload::Bulk
            | Workload::Bursts { .. }
            | Workload::Requests { .. }
            | Workload::Video { .. }
            | Workload::Media { .. } => None,
            Workload::Finite { size_bytes } => Some(*size_bytes),
            Workload::Script { transfers } => {
                let sizes = transfers.iter().map(|transfer| transfer.size_bytes.as_u64());
                Some(Bytes::new(sizes.fold(0, u64::saturating_add)))
            }
        }
    }
}
