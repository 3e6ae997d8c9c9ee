//! What a controller of ours believes of a connection in this kernel, read from the map in which its program keeps it.

use std::os::fd::RawFd;

use fullpipe_cc::Phase;

use crate::sys::bpf;

/// What a controller believes of its connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Model {
    pub(crate) phase: Phase,
    /// Bits a second.
    pub(crate) bandwidth_bps: Option<u64>,
}

/// Bytes of the shim's `struct flow`, and where the answers of the controller are in it.
const FLOW_BYTES: usize = 12_480;
const OUTCOME_AT: usize = 8 + 768 + size_of::<fullpipe_bpf::Event>();

/// The model of a socket, if the socket's controller is in the map `flows`.
pub(crate) fn model(flows: RawFd, socket: RawFd) -> Option<Model> {
    let mut flow = vec![0u8; FLOW_BYTES];
    bpf::element(flows, socket as u32, &mut flow).ok()?;
    let word = |at: usize| Some(u64::from_ne_bytes(flow.get(at..at + 8)?.try_into().ok()?));
    let bandwidth = word(OUTCOME_AT + 8)?;
    let phase = word(OUTCOME_AT + 32)? as u32;
    Some(Model {
        phase: *Phase::ALL.get(phase as usize)?,
        bandwidth_bps: (bandwidth > 0).then(|| bandwidth.saturating_mul(8)),
    })
}
