//! Empties the ring buffer during a run, on a thread of its own.

use std::sync::atomic::Ordering;
use std::thread;

use fullpipe_replay::Call;
use fullpipe_units::Duration;

use super::record::Record;
use super::recorded::Recorder;
use fullpipe_emu::{EmuError, FIRST_PORT};

use crate::KernelError;
use crate::sys::{self, bpf::Ring};

/// Time between two rounds. On a fast path the ring has room for a hundred times as long.
const INTERVAL: Duration = Duration::from_millis(10);
/// The most calls a recording can have: they are kept in memory, half a kilobyte each.
pub(crate) const MOST_CALLS: usize = 2_000_000;

/// The calls that were in the ring.
#[derive(Debug)]
pub(super) struct Drained {
    most: usize,
    pub(super) calls: Vec<Call>,
    /// For each flow of the recording, its number in the scenario.
    pub(super) flows: Vec<usize>,
    /// There were more than fit.
    pub(super) overfull: bool,
}

/// Does `work` and drains the ring meanwhile, and once more afterwards.
pub(super) fn during<T>(
    mut ring: Ring,
    recorder: &Recorder,
    work: impl FnOnce() -> T,
) -> Result<(T, Drained), KernelError> {
    let done = sys::event_fd().map_err(|error| KernelError::system("create an eventfd", error))?;
    thread::scope(|scope| {
        let drain = scope.spawn(|| {
            let mut drained = Drained::up_to(MOST_CALLS);
            loop {
                let over = sys::wait_for_event(&done, INTERVAL)
                    .map_err(|error| KernelError::system("wait for the run", error))?;
                ring.drain(|bytes| drained.take(bytes, recorder));
                if over {
                    return Ok::<_, KernelError>(drained);
                }
            }
        });
        let worked = work();
        sys::signal_event(&done);
        Ok((worked, drain.join().map_err(EmuError::panicked("recorder"))??))
    })
}

impl Drained {
    fn up_to(most: usize) -> Drained {
        Drained { most, calls: Vec::new(), flows: Vec::new(), overfull: false }
    }

    fn take(&mut self, bytes: &[u8], recorder: &Recorder) {
        let Some(record) = Record::read(bytes) else { return };
        // Other sockets may use the congestion control by its name. They are not recorded.
        if record.network != recorder.network.load(Ordering::Acquire) {
            return;
        }
        if self.calls.len() == self.most {
            self.overfull = true;
            recorder.is_full.store(true, Ordering::Release);
            return;
        }
        let flow = self.flow_at(record.port);
        self.calls.extend(record.call(flow));
    }

    /// The number in the recording of the flow with that port.
    fn flow_at(&mut self, port: u16) -> u32 {
        let flow = usize::from(port.wrapping_sub(FIRST_PORT));
        let known = self.flows.iter().position(|known| *known == flow);
        let number = known.unwrap_or_else(|| {
            self.flows.push(flow);
            self.flows.len() - 1
        });
        number as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_replay::Ops;

    /// A record of a socket with that port, in the namespace with that number.
    fn record(port: u16, network: u32) -> [u8; 488] {
        let mut bytes = [0; 488];
        bytes[328..332].copy_from_slice(&network.to_ne_bytes());
        bytes[480..482].copy_from_slice(&port.to_ne_bytes());
        bytes
    }

    #[test]
    fn flows_numbered_by_arrival_strangers_ignored() {
        let recorder = Recorder::new(Ops::Bbr);
        recorder.network.store(7, Ordering::Release);
        let mut drained = Drained::up_to(3);
        for (port, network) in
            [(FIRST_PORT + 4, 7), (FIRST_PORT, 8), (FIRST_PORT + 1, 7), (FIRST_PORT + 4, 7)]
        {
            drained.take(&record(port, network), &recorder);
        }
        assert_eq!(drained.calls.iter().map(|call| call.flow).collect::<Vec<_>>(), [0, 1, 0]);
        assert_eq!(drained.flows, [4, 1]);
        assert!(!drained.overfull && !recorder.is_full.load(Ordering::Acquire));
        drained.take(&record(FIRST_PORT, 7), &recorder);
        assert_eq!(drained.calls.len(), 3);
        assert!(drained.overfull && recorder.is_full.load(Ordering::Acquire), "the run must end");
    }
}
