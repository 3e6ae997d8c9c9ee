//! What a run can be told, and which stacks this world has.

use fullpipe_path::config::AdmissionUnit;
use fullpipe_scenario::spec::Spec;

/// Settings of a run that no scenario has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How packets are protected once the handshake is complete.
    pub crypto: Crypto,
    /// The most datagrams that a stack may write in one go, as for a socket with segmentation offload (GSO). A stack asks its
    /// pacer and its window once for each datagram, but sets its state of "limited by the application" once for each batch,
    /// and noq's controllers bound a batch by their send quantum. A scenario's `hosts.gso_max_segs` bounds it further.
    pub batch: u16,
    /// Whether a stack in a process of its own is asked at each instant at which something happens to it, rather than for all
    /// the time in which nothing that it sends can arrive. The record is the same, and comes later.
    pub instants: bool,
    /// Whether flows of such stacks note all that they send.
    pub trace: bool,
}

impl Options {
    /// noq's and quinn's own endpoints write up to this many datagrams in one go.
    pub const BATCH: u16 = 10;
}

impl Default for Options {
    fn default() -> Options {
        Options { crypto: Crypto::default(), batch: Options::BATCH, instants: false, trace: false }
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

pub(crate) const STACKS: [Stack; 2] = [
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

/// What a packet has besides the payload of UDP: 20 bytes of IPv4 and 8 of UDP.
pub(crate) const HEADER_BYTES: u32 = 28;

/// Whether an element of the path takes or drops as one what a host hands over together.
pub(crate) fn takes_bursts(spec: &Spec) -> bool {
    spec.forward.iter().chain(&spec.reverse).any(|element| element.unit() == AdmissionUnit::Burst)
}
