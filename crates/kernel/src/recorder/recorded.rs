//! What a run that is recorded must know.

use std::ffi::CStr;
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use fullpipe_replay::Ops;
use fullpipe_scenario::spec::FlowSpec;

/// What an algorithm is called while it is recorded.
pub(super) const fn recorded_name(ops: Ops) -> &'static CStr {
    match ops {
        Ops::Bbr => c"fp_bbr",
        Ops::Cubic => c"fp_cubic",
    }
}

/// What a recorded run must know.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(super) ops: Ops,
    /// Inode number of the senders' network namespace; zero until it is known.
    pub(super) network: AtomicU32,
    /// There is no room for more calls, so the run must end.
    pub(crate) is_full: AtomicBool,
}

impl Recorder {
    pub(super) fn new(ops: Ops) -> Recorder {
        Recorder { ops, network: AtomicU32::new(0), is_full: AtomicBool::new(false) }
    }

    /// What a flow that is recorded sets as its congestion control; `None` for another.
    pub(crate) fn name_for(&self, flow: &FlowSpec) -> Option<&'static str> {
        let is_recorded = flow.controller.linux_name() == Some(self.ops.name());
        recorded_name(self.ops).to_str().ok().filter(|_| is_recorded)
    }

    /// The calling thread's network namespace is the one to record.
    pub(crate) fn is_here(&self) {
        let number = std::fs::metadata("/proc/thread-self/ns/net").map_or(0, |file| file.ino());
        self.network.store(number as u32, Ordering::Release);
    }
}
