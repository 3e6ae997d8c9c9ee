//! What a flow begins with, and what it shares with others of its kind.

use std::sync::Arc;

use fullpipe_path::Ecn;
use fullpipe_scenario::spec::{EcnUse, FlowSpec, HostSpec, Lie};
use fullpipe_units::{Duration, Time};

use crate::hosts::Late;
use crate::sender::SenderConfig;
use crate::sender::metrics::Shared;
use crate::workload::ByteStream;

/// What flows of one kind have in common.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Without what each flow has of its own: number, seed and latencies.
    pub(crate) sender: SenderConfig,
    pub(crate) rmem: [u64; 3],
    pub(crate) gro: Duration,
    /// How the receiver lies, if it does.
    pub(crate) lie: Option<Lie>,
    /// Its data go over the reverse path.
    pub(crate) is_reverse: bool,
    /// What the host keeps of its connections, if it does.
    pub(crate) metrics: Option<Shared>,
    /// The run's.
    pub(crate) seed: u64,
}

impl Settings {
    pub(crate) fn new(
        sender: SenderConfig,
        flow: &FlowSpec,
        hosts: &HostSpec,
        metrics: Option<Shared>,
        seed: u64,
    ) -> Settings {
        Settings {
            sender,
            rmem: hosts.tcp_rmem_bytes.map(|bytes| bytes.as_u64()),
            gro: hosts.gro_ns,
            lie: flow.receiver,
            is_reverse: flow.is_reverse(),
            metrics,
            seed,
        }
    }

    /// Whether this flow of the run, with that sender, can share them: all else is the run's.
    pub(crate) fn are_for(&self, sender: &SenderConfig, flow: &FlowSpec) -> bool {
        self.sender == *sender && self.lie == flow.receiver && self.is_reverse == flow.is_reverse()
    }

    /// The codepoint of a SYN and its answer.
    pub(super) fn codepoint_of_others(&self) -> Ecn {
        if let EcnUse::Exact(codepoint) = self.sender.ecn { codepoint } else { Ecn::NotEct }
    }
}

/// What a flow begins with.
#[derive(Debug)]
pub(crate) struct FlowConfig {
    pub(crate) settings: Arc<Settings>,
    pub(crate) index: u32,
    /// `None` for ideal hosts, and only for these.
    pub(crate) late: Option<Late>,
    /// The whole stream that it will ever send.
    pub(crate) stream: ByteStream,
    pub(crate) start: Time,
    pub(crate) stop: Time,
}

impl FlowConfig {
    /// A flow of the scenario that starts to connect at `start`.
    pub(crate) fn new(
        settings: Arc<Settings>,
        index: usize,
        late: Option<Late>,
        spec: &FlowSpec,
        start: Time,
    ) -> FlowConfig {
        FlowConfig {
            index: index as u32,
            late,
            stream: ByteStream::new(&spec.workload, settings.sender.controller.mss),
            start,
            stop: spec.stop_ns.unwrap_or(Time::NEVER),
            settings,
        }
    }
}
