//! What a run can be told, what this world cannot run, and which stacks it has.

use fullpipe_path::ConfigError;
use fullpipe_path::config::AdmissionUnit;
use fullpipe_scenario::bounds::MAX_MTU;
use fullpipe_scenario::spec::Spec;
use fullpipe_scenario::{ControllerChoice, ScenarioError};
use fullpipe_units::Duration;

use crate::cc::Own;
use crate::change::Mistake;

/// Settings of a run that no scenario has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How packets are protected once the handshake is complete.
    pub crypto: Crypto,
    /// The most datagrams that a stack may write in one go, as for a socket with segmentation offload (GSO). A stack asks its
    /// pacer and its window once for each datagram, but sets its state of "limited by the application" once for each batch,
    /// and noq's controllers bound a batch by their send quantum. A scenario's `hosts.gso_max_segs` bounds it further.
    pub batch: u16,
}

impl Options {
    /// noq's and quinn's own endpoints write up to this many datagrams in one go.
    pub const BATCH: u16 = 10;
}

impl Default for Options {
    fn default() -> Options {
        Options { crypto: Crypto::default(), batch: Options::BATCH }
    }
}

/// How packets are protected once the handshake is complete. The handshake itself is TLS 1.3 in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Crypto {
    /// Not at all, but with headers and tags of the same lengths: the record is the same as with real keys, and comes sooner.
    #[default]
    Null,
    /// With the keys of the TLS session.
    Real,
}

/// A QUIC stack of this world.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stack {
    /// As in `NAME:controller`.
    pub name: &'static str,
    /// Its crate.
    pub package: &'static str,
    /// Of its crate, as this program was built with (`build.rs`).
    pub version: &'static str,
    /// The controllers that it ships: name and summary.
    pub controllers: &'static [(&'static str, &'static str)],
}

/// The stacks of this world.
pub fn stacks() -> &'static [Stack] {
    &STACKS
}

const STACKS: [Stack; 2] = [
    Stack {
        name: "noq",
        package: "noq-proto",
        version: env!("FULLPIPE_NOQ_PROTO"),
        controllers: &[
            ("bbr3", "noq's BBRv3"),
            ("cubic", "noq's CUBIC"),
            ("newreno", "noq's NewReno; its Reno of RFC 9002"),
        ],
    },
    Stack {
        name: "quinn",
        package: "quinn-proto",
        version: env!("FULLPIPE_QUINN_PROTO"),
        controllers: &[
            ("bbr", "quinn's BBR, experimental; its pacer follows the window, not the model's rate"),
            ("cubic", "quinn's CUBIC, its default"),
            ("newreno", "quinn's NewReno of RFC 9002"),
        ],
    },
];

/// Why a run could not be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QuicError {
    /// It was cancelled.
    Cancelled,
    /// The path cannot be built, or an element cannot change so.
    Path(ConfigError),
    /// This world cannot run such a scenario, or not change it so: a sentence with what can be done.
    Refused(String),
    /// An amount cannot be read, or the scenario is none.
    Scenario(Box<ScenarioError>),
    /// What was asked for does not fit the scenario.
    Mistake(Box<Mistake>),
    /// A connection ended although neither end wanted it to.
    Connection {
        /// The flow's label.
        flow: String,
        /// The stack's reason.
        reason: String,
    },
    /// The program was built so that the stacks' randomness does not come from the run's seed.
    Build,
    /// The run's thread ended: a defect of this world, of a stack or of a controller. The text is the panic's message, behind
    /// its place where that is known.
    Panicked(String),
}

impl std::fmt::Display for QuicError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            QuicError::Cancelled => f.write_str("the run was cancelled"),
            QuicError::Path(error) => error.fmt(f),
            QuicError::Refused(sentence) => f.write_str(sentence),
            QuicError::Scenario(error) => error.fmt(f),
            QuicError::Mistake(mistake) => mistake.fmt(f),
            QuicError::Connection { flow, reason } => write!(f, "the connection of flow {flow} ended: {reason}"),
            QuicError::Build => f.write_str(
                "this program was built without --cfg getrandom_backend=\"custom\", so that equal seeds would give different \
                 runs; copy quic/world/.cargo/config.toml into the folder of your program as .cargo/config.toml and run `cargo \
                 build` there, or run `make quic` for the program without controllers of your own",
            ),
            QuicError::Panicked(message) => write!(f, "the run ended by a panic: {message}"),
        }
    }
}

impl std::error::Error for QuicError {}

impl From<ConfigError> for QuicError {
    fn from(error: ConfigError) -> QuicError {
        QuicError::Path(error)
    }
}

/// What a packet has besides the payload of UDP: 20 bytes of IPv4 and 8 of UDP.
pub(crate) const HEADER_BYTES: u32 = 28;

/// The smallest payload of UDP that a QUIC path carries (RFC 9000, section 14).
const LEAST_PAYLOAD: u32 = 1200;

/// What this world cannot do of a scenario: a sentence that says what to change. `None` if it can run it.
pub fn refuses(spec: &Spec) -> Option<String> {
    refuses_with(spec, &[])
}

/// The same, where the program brings controllers of its own.
pub fn refuses_with(spec: &Spec, own: &[Own]) -> Option<String> {
    // A scenario's largest MTU leaves less payload than the 65527 bytes that a stack can be told of.
    let (least, most) = (LEAST_PAYLOAD + HEADER_BYTES, MAX_MTU);
    if !(least..=most).contains(&spec.mtu_bytes) {
        return Some(format!(
            "hosts.mtu: {} bytes; QUIC needs {least} to {most} bytes (RFC 9000, section 14): choose such an MTU",
            spec.mtu_bytes
        ));
    }
    if spec.hosts.gro_ns != Duration::ZERO {
        return Some(
            "hosts.gro: QUIC endpoints take each datagram as it arrives; leave hosts.gro out, or choose another world".into(),
        );
    }
    if spec.hosts.metrics.is_some() {
        return Some(
            "hosts.metrics: QUIC connections begin without what earlier TCP connections left; leave it out"
                .into(),
        );
    }
    if let Err(error) = spec.check_no_program("the world quic") {
        return Some(error.to_string());
    }
    spec.flows.iter().enumerate().find_map(|(index, flow)| {
        let problem = refuses_controller(&flow.controller, own)?;
        Some(format!("flows[{index}].controller: {problem}"))
    })
}

fn refuses_controller(choice: &ControllerChoice, own: &[Own]) -> Option<String> {
    if let Some((stack, name)) = choice.stack() {
        let Some(known) = STACKS.iter().find(|one| one.name == stack) else {
            let names: Vec<&str> = STACKS.iter().map(|one| one.name).collect();
            return Some(format!(
                "{stack} is not a QUIC stack of this world; it has {}",
                names.join(" and ")
            ));
        };
        let brought = own.iter().filter(|one| one.stack() == stack).map(Own::name);
        let names: Vec<&str> = known.controllers.iter().map(|one| one.0).chain(brought).collect();
        return (!names.contains(&name)).then(|| {
            let names: Vec<String> = names.iter().map(|name| format!("{stack}:{name}")).collect();
            let names = names.join(", ");
            if own.is_empty() {
                // The program is the one that `make quic` builds: most likely another one was meant.
                return format!(
                    "{stack} has no controller {name}; choose {names}, or let FULLPIPE_QUIC name a program that has {name}"
                );
            }
            format!("{stack} has no controller {name}; choose {names}")
        });
    }
    let Some(params) = choice.params() else {
        return Some(format!(
            "{choice} runs in the simulator only; for a QUIC stack, build it into the program of this world"
        ));
    };
    crate::cc::refuses(params)
}

/// Whether an element of the path takes or drops as one what a host hands over together.
pub(crate) fn takes_bursts(spec: &Spec) -> bool {
    spec.forward.iter().chain(&spec.reverse).any(|element| element.unit() == AdmissionUnit::Burst)
}
