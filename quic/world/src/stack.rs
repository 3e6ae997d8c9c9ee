//! A stack in a process of its own, as it describes itself (`quic/adapters/PROTOCOL.md`, About).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// What an adapter says of itself.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct StackAbout {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// The stack.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its licence, as an SPDX expression.
    #[serde(default)]
    pub licence: String,
    /// Its congestion controllers.
    pub controllers: Vec<String>,
    /// What its datagrams are.
    #[serde(default)]
    pub layer: Layer,
    /// What it can tell of a connection: names of the answer's numbers.
    #[serde(default)]
    pub tells: Vec<String>,
    /// What the adapter decides for the stack, as a sentence: pacing, sizes of writes, acknowledgements.
    #[serde(default)]
    pub policy: String,
    /// The largest datagram that it sends, where that is less than what the path carries.
    #[serde(default)]
    pub most_datagram: Option<u16>,
}

/// What a datagram is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Layer {
    /// The payload of UDP over IPv4.
    #[default]
    Udp,
    /// A whole IP packet.
    Ip,
}

/// A stack in a process of its own, as a run is given it.
#[derive(Clone, Debug, Deserialize)]
pub struct OutsideStack {
    /// As in `NAME:controller`.
    pub name: String,
    /// The words of the command that starts its adapter; no shell reads them.
    pub command: Vec<String>,
    /// What the adapter says of itself.
    pub about: StackAbout,
}

/// A controller of such a stack.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    pub(crate) stack: Arc<OutsideStack>,
    pub(crate) controller: String,
}
