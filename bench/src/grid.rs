//! The grid of "When to use and when not to use BBR" (IMC 2019, section 4.1): 8 RTTs x 8 rates x 5 buffers, BBR and
//! CUBIC alone on each path, for 60 s, with the largest TCP buffers.

use std::io::{IsTerminal, Write, stderr};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::thread;
use std::time::{Duration, Instant};

use crate::case::{Case, run, sent, thread_nanos};

const RTTS_MS: [u64; 8] = [5, 10, 25, 50, 75, 100, 150, 200];
const MBITS: [u64; 8] = [10, 20, 50, 100, 250, 500, 750, 1000];
const BUFFERS: [&str; 5] = ["100 KB", "1 MB", "10 MB", "20 MB", "50 MB"];
const CONTROLLERS: [&str; 2] = ["bbr1", "cubic"];
const SECONDS: u64 = 60;
const PATHS: usize = RTTS_MS.len() * MBITS.len() * BUFFERS.len();
/// Strides through the grid so that the first paths are already a fair picture of it; shares no factor with `PATHS`.
const STRIDE: usize = 97;

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    paths: usize,
    repetitions: usize,
}

impl Options {
    /// From the words after `grid`; `None` if they make no sense.
    pub(crate) fn read(words: &[&str]) -> Option<Options> {
        let mut options = Options { paths: PATHS, repetitions: 1 };
        for pair in words.chunks(2) {
            let [name, value] = *pair else { return None };
            let (option, most) = match name {
                "--paths" => (&mut options.paths, PATHS),
                "--repetitions" => (&mut options.repetitions, 1_000),
                _ => return None,
            };
            *option = value.parse().ok().filter(|number| (1..=most).contains(number))?;
        }
        Some(options)
    }
}

struct Job {
    controller: &'static str,
    mbits: u64,
    rtt_ms: u64,
    buffer: &'static str,
    seed: u64,
}

impl Job {
    /// How long it takes, beside others: about as the link carries packets.
    fn weight(&self) -> u64 {
        self.mbits
    }

    /// Runs it; packets sent.
    fn run(&self) -> u64 {
        let (rate, rtt) = (format!("{} Mbit/s", self.mbits), format!("{} ms", self.rtt_ms));
        let duration = format!("{SECONDS} s");
        // No `hosts`: the largest TCP buffers, 2^31 - 1 bytes, are the default.
        let case = Case { buffer: self.buffer, duration, ..Case::bulk(self.controller, &rate, &rtt) };
        sent(&run(&case.spec(), self.seed))
    }
}

fn jobs(options: &Options) -> Vec<Job> {
    let mut jobs = Vec::new();
    for number in 0..options.paths {
        let path = number * STRIDE % PATHS;
        for controller in CONTROLLERS {
            for seed in 1..=options.repetitions as u64 {
                jobs.push(Job {
                    controller,
                    mbits: MBITS[path / BUFFERS.len() % MBITS.len()],
                    rtt_ms: RTTS_MS[path / (BUFFERS.len() * MBITS.len())],
                    buffer: BUFFERS[path % BUFFERS.len()],
                    seed,
                });
            }
        }
    }
    // The longest first, so that all cores end together.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.weight()));
    jobs
}

/// What is done so far.
#[derive(Default)]
struct Done {
    jobs: AtomicUsize,
    weight: AtomicU64,
    packets: AtomicU64,
    nanos: AtomicU64,
}

pub(crate) fn table(options: &Options) {
    let jobs = jobs(options);
    let threads = thread::available_parallelism().map_or(1, usize::from).min(jobs.len());
    println!(
        "{} of {PATHS} paths, {}, repetitions: {}; {} runs of {SECONDS} s, no series, on {threads} threads",
        options.paths,
        CONTROLLERS.join(" and "),
        options.repetitions,
        jobs.len(),
    );
    let (next, done) = (AtomicUsize::new(0), Done::default());
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(job) = jobs.get(next.fetch_add(1, Relaxed)) {
                    done.packets.fetch_add(job.run(), Relaxed);
                    done.weight.fetch_add(job.weight(), Relaxed);
                    done.jobs.fetch_add(1, Relaxed);
                }
                done.nanos.fetch_add(thread_nanos(), Relaxed);
            });
        }
        watch(&jobs, &done, start);
    });
    let wall = start.elapsed();
    let packets = done.packets.load(Relaxed);
    println!();
    println!("wall time          {:>10.1} s", wall.as_secs_f64());
    println!("packets            {:>10.1} million", packets as f64 / 1e6);
    println!(
        "ns a packet        {:>10.1} (wall time, all threads together)",
        wall.as_nanos() as f64 / packets as f64
    );
    println!(
        "ns a packet, each  {:>10.1} (time of one thread)",
        done.nanos.load(Relaxed) as f64 / packets as f64
    );
    println!("simulated / wall   {:>10.0}", (jobs.len() as u64 * SECONDS) as f64 / wall.as_secs_f64());
}

/// Says on the error stream how far it is, until all is done: on a terminal in one line, otherwise in one every 10 s.
fn watch(jobs: &[Job], done: &Done, start: Instant) {
    let whole: u64 = jobs.iter().map(Job::weight).sum();
    let terminal = stderr().is_terminal();
    let mut next = Duration::ZERO;
    while done.jobs.load(Relaxed) < jobs.len() {
        thread::sleep(Duration::from_millis(50));
        let (passed, weight) = (start.elapsed(), done.weight.load(Relaxed));
        if weight == 0 || passed < next {
            continue;
        }
        next = passed + if terminal { Duration::from_millis(200) } else { Duration::from_secs(10) };
        let left = passed.as_secs_f64() * (whole - weight) as f64 / weight as f64;
        let count = done.jobs.load(Relaxed);
        let (before, after) = if terminal { ("\r", "   ") } else { ("", "\n") };
        eprint!(
            "{before}{count} of {} runs, {} s, about {left:.0} s left{after}",
            jobs.len(),
            passed.as_secs()
        );
        let _ = stderr().flush();
    }
    if terminal {
        eprintln!();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn full_grid_has_each_path_once() {
        let jobs = jobs(&Options::read(&[]).unwrap());
        let paths: BTreeSet<_> =
            jobs.iter().map(|job| (job.controller, job.mbits, job.rtt_ms, job.buffer)).collect();
        assert_eq!((jobs.len(), paths.len()), (640, 640));
    }

    #[test]
    fn options_are_numbers_within_the_grid() {
        let options = Options { paths: 10, repetitions: 5 };
        assert_eq!(Options::read(&["--paths", "10", "--repetitions", "5"]), Some(options));
        for wrong in [&["--paths"][..], &["--paths", "0"], &["--paths", "321"], &["--runs", "1"]] {
            assert_eq!(Options::read(wrong), None);
        }
    }
}
