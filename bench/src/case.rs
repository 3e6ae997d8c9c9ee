//! What is run: a scenario with its variable parts, and how a run is timed.

use std::sync::atomic::AtomicBool;

use fullpipe_record::Run;
use fullpipe_scenario::{Format, Spec, resolve};
use serde_json::json;

/// Flows of one controller on one path.
#[derive(Clone, Debug)]
pub(crate) struct Case<'a> {
    pub(crate) controller: &'a str,
    pub(crate) flows: u32,
    /// What each flow sends; `None` for as much as it can.
    pub(crate) size: Option<&'a str>,
    pub(crate) rate: &'a str,
    pub(crate) rtt: &'a str,
    pub(crate) buffer: &'a str,
    /// The discipline of the bottleneck's queue.
    pub(crate) queue: &'a str,
    /// Random loss; `None` for none.
    pub(crate) loss: Option<&'a str>,
    pub(crate) duration: String,
    /// Time between samples of the series; `None` records none.
    pub(crate) interval: Option<String>,
}

impl<'a> Case<'a> {
    /// One bulk flow for a second over a buffer of a bandwidth-delay product, without loss and without series.
    pub(crate) fn bulk(controller: &'a str, rate: &'a str, rtt: &'a str) -> Case<'a> {
        Case {
            controller,
            flows: 1,
            size: None,
            rate,
            rtt,
            buffer: "1 bdp",
            queue: "fifo",
            loss: None,
            duration: "1 s".into(),
            interval: None,
        }
    }

    /// In numbers. Ends the program if the scenario cannot be run: `--once` takes words from outside.
    pub(crate) fn spec(&self) -> Spec {
        let mut document = json!({
            "name": "bench",
            "duration": self.duration,
            "path": { "rate": self.rate, "rtt": self.rtt, "buffer": self.buffer, "queue": self.queue },
            "record": { "series": false },
            "flows": [{ "controller": self.controller, "count": self.flows }],
        });
        if let Some(loss) = self.loss {
            document["path"]["loss"] = json!(loss);
        }
        if let Some(size) = self.size {
            document["flows"][0]["size"] = json!(size);
        }
        if let Some(interval) = &self.interval {
            document["record"] = json!({ "interval": interval });
        }
        let mut spec = resolve(&document.to_string(), Format::Json, None).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(2);
        });
        if self.interval.is_none() {
            // Documents always sample, because the summary needs it; here the simulator alone is measured.
            spec.sample_interval_ns = None;
        }
        spec
    }

    /// The spec of a run just long enough to send at least `packets` (runs are repeatable, so a trial tells).
    pub(crate) fn spec_with_packets(mut self, packets: u64) -> Spec {
        let mut milliseconds = 1_000;
        loop {
            self.duration = format!("{milliseconds} ms");
            let spec = self.spec();
            let sent = sent(&run(&spec, 1));
            if sent >= packets {
                return spec;
            }
            // A tenth more than it should take, for a flow that has yet to start up; never ten times as much at once.
            milliseconds = (milliseconds * packets * 11 / 10 / sent.max(1)).min(milliseconds * 10);
        }
    }
}

/// Runs it.
pub(crate) fn run(spec: &Spec, seed: u64) -> Run {
    fullpipe_sim::run(spec, seed, &AtomicBool::new(false))
        .expect("nothing cancels it, and scenario checks paths")
}

/// Data segments sent: the packets of all tables.
pub(crate) fn sent(run: &Run) -> u64 {
    run.flows.iter().map(|flow| flow.totals.segments_sent).sum()
}

/// Nanoseconds a packet of one run, of this thread's time on a core: other programs' share does not count.
pub(crate) fn nanos_a_packet(spec: &Spec) -> f64 {
    let start = thread_nanos();
    let run = run(spec, 1);
    (thread_nanos() - start) as f64 / sent(&run) as f64
}

/// How long this thread has been on a core.
pub(crate) fn thread_nanos() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a timespec of ours that outlives the call.
    let result = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    assert_eq!(result, 0, "every thread has such a clock");
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
