//! Shows that the program in the kernel decides as the same Rust does here: every call of a run is recorded, and repeated.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::thread;

use fullpipe_bpf::{Call, Event, Outcome};
use fullpipe_cc::{Any, Params};
use fullpipe_emu::EmuError;
use fullpipe_emu::namespace::ask_to_die_with_parent;
use fullpipe_record::Run;
use fullpipe_scenario::spec::Spec;
use fullpipe_units::Duration;
use serde_json::json;

use crate::KernelError;
use crate::congestion::{How, Ours, RING_BYTES, loadable, status};
use crate::run::run_with;
use crate::sys::{self, bpf::Ring};

/// Time between two looks into the ring buffer.
const INTERVAL: Duration = Duration::from_millis(5);

/// What came of it.
#[derive(Clone, Debug, Default)]
pub struct Proof {
    /// Calls that were repeated, by kind ([`Call::ALL`]).
    pub calls: [u64; Call::ALL.len()],
    /// Connections.
    pub flows: u64,
    /// Calls after which ours answered differently.
    pub different: u64,
    /// The first of them, in words.
    pub first: Option<String>,
    /// Calls of connections whose beginning was not recorded, which cannot be repeated.
    pub orphans: u64,
    /// Records that found no room. Above zero, differences mean nothing.
    pub lost: u64,
    /// Counters of the shim, by name.
    pub counters: BTreeMap<&'static str, u64>,
    /// For each program, the instructions that the verifier looked at.
    pub verified: BTreeMap<String, u32>,
    /// ACKs by their time: below 64 ns, below 128 ns and so on.
    pub times: Vec<u64>,
}

/// `struct record` of the shim.
#[repr(C)]
#[derive(Clone, Copy)]
struct Record {
    id: u64,
    call: u32,
    network: u32,
    event: Event,
    outcome: Outcome,
}

/// Runs `spec` and repeats each call of its flows. They all have one controller, which is ours. Needs root and a process of its
/// own.
///
/// # Errors
/// As [`crate::run()`], and when the controller cannot be loaded.
pub fn prove(spec: &Spec, seed: u64) -> Result<(Run, Proof), KernelError> {
    ask_to_die_with_parent();
    let ours = Ours::of(spec, How { recording: true, timing: true })?;
    let [(params, _, loaded)] = &ours.loaded[..] else {
        return Err(EmuError::Unsupported {
            field: "flows".to_owned(),
            reason: "all flows must have one controller that is ours and not Linux's".to_owned(),
            fix: format!("give them one of {}", loadable().join(", ")),
        }
        .into());
    };
    let failed = |attempted: &'static str| move |error| KernelError::system(attempted, error);
    let ring =
        Ring::map(loaded.map(c"calls")?, RING_BYTES as usize).map_err(failed("map the ring buffer"))?;
    let done = sys::event_fd().map_err(failed("create an eventfd"))?;
    let (run, mut proof) = thread::scope(|scope| {
        let repeating = scope.spawn(|| repeat(ring, params, &done));
        let run = run_with(spec, seed, &ours);
        sys::signal_event(&done);
        let proof = repeating.join().map_err(EmuError::panicked("replay"))??;
        Ok::<_, KernelError>((run?, proof))
    })?;
    let counters = status::counters(loaded.map(c"counters")?).map_err(failed("read the counters"))?;
    proof.lost = counters.get("records_lost");
    for name in ["sends_unknown", "losses_unknown", "states_late", "connections_begun"] {
        proof.counters.insert(name, counters.get(name));
    }
    proof.counters.extend(counters.fallen());
    proof.verified = loaded.figures()?.into_iter().map(|figures| (figures.name, figures.verified)).collect();
    let times = loaded.map(c"times")?;
    for bucket in 0..24 {
        proof.times.push(sys::bpf::array_element(times, bucket).map_err(failed("read the times"))?);
    }
    Ok((run, proof))
}

fn repeat(mut ring: Ring, params: &Params, done: &OwnedFd) -> Result<Proof, KernelError> {
    let mut replay = Replay::new(params);
    loop {
        let over = sys::wait_for_event(done, INTERVAL)
            .map_err(|error| KernelError::system("wait for the run", error))?;
        ring.drain(|bytes| replay.take(bytes));
        if over {
            return Ok(replay.proof);
        }
    }
}

/// The connections of a recording, each with its controller.
struct Replay<'a> {
    params: &'a Params,
    flows: BTreeMap<u64, Any>,
    proof: Proof,
}

impl Replay<'_> {
    fn new(params: &Params) -> Replay<'_> {
        Replay { params, flows: BTreeMap::new(), proof: Proof::default() }
    }

    fn take(&mut self, bytes: &[u8]) {
        if bytes.len() < size_of::<Record>() {
            return;
        }
        // SAFETY: long enough, and any bytes are a record: all its members are integers.
        let record: Record = unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) };
        let Some(call) = Call::ALL.get(record.call as usize) else { return };
        let proof = &mut self.proof;
        let outcome = if *call == Call::Init {
            let (config, connection) =
                (fullpipe_bpf::config(&record.event), fullpipe_bpf::connection(&record.event));
            let controller = Any::new(self.params, &config, &connection);
            let outcome = fullpipe_bpf::outcome(&controller);
            self.flows.insert(record.id, controller);
            proof.flows += 1;
            outcome
        } else {
            let Some(controller) = self.flows.get_mut(&record.id) else {
                proof.orphans += 1;
                return;
            };
            fullpipe_bpf::step(controller, *call, &record.event);
            fullpipe_bpf::outcome(controller)
        };
        proof.calls[record.call as usize] += 1;
        if outcome != record.outcome {
            proof.different += 1;
            proof.first.get_or_insert_with(|| {
                let total: u64 = proof.calls.iter().sum();
                format!("call {total}, {call:?}: ours {outcome:?}, the kernel's {:?}", record.outcome)
            });
        }
    }
}

impl Proof {
    /// As JSON.
    pub fn to_json(&self) -> String {
        let kinds =
            Call::ALL.iter().zip(self.calls).map(|(call, count)| (format!("{call:?}").to_lowercase(), count));
        json!({
            "calls": self.total(),
            "kinds": kinds.collect::<BTreeMap<_, _>>(),
            "flows": self.flows,
            "different": self.different,
            "first": self.first,
            "orphans": self.orphans,
            "lost": self.lost,
            "counters": self.counters,
            "verified": self.verified,
            "ack_ns_below": {"median": self.time_ns(0.5), "p99": self.time_ns(0.99), "p99.9": self.time_ns(0.999)},
        })
        .to_string()
    }

    /// All calls.
    pub fn total(&self) -> u64 {
        self.calls.iter().sum()
    }

    /// The time in nanoseconds below which this share of ACKs took, as the end of a bucket; 0 without ACKs.
    pub fn time_ns(&self, share: f64) -> u64 {
        let total: u64 = self.times.iter().sum();
        let mut below = 0;
        for (bucket, count) in self.times.iter().enumerate() {
            below += count;
            if total > 0 && below as f64 >= share * total as f64 {
                return 64 << bucket;
            }
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(record: &Record) -> Vec<u8> {
        let start = std::ptr::from_ref(record).cast::<u8>();
        // SAFETY: the record has no padding: its members are in order of their sizes.
        unsafe { std::slice::from_raw_parts(start, size_of::<Record>()).to_vec() }
    }

    #[test]
    fn a_changed_answer_is_a_difference() {
        let params = Params::by_name("bbr3").unwrap();
        let event = Event {
            mss: 1448,
            initial_cwnd: 10,
            cwnd_clamp: u32::MAX,
            hz: 250,
            max_rate: u64::MAX,
            flags: fullpipe_bpf::FLAG_PACED,
            gso_max: 65343,
            ..Event::default()
        };
        let controller = Any::new(&params, &fullpipe_bpf::config(&event), &fullpipe_bpf::connection(&event));
        let outcome = fullpipe_bpf::outcome(&controller);
        let mut record = Record { id: 1, call: 0, network: 0, event, outcome };
        let mut replay = Replay::new(&params);
        replay.take(&bytes(&record));
        assert_eq!((replay.proof.total(), replay.proof.different), (1, 0));
        record.outcome.cwnd += 1;
        replay.take(&bytes(&record));
        assert_eq!((replay.proof.total(), replay.proof.different), (2, 1));
        assert!(replay.proof.first.as_ref().unwrap().contains("Init"));
        record.id = 2;
        record.call = 1;
        replay.take(&bytes(&record));
        assert_eq!(replay.proof.orphans, 1);
    }
}
