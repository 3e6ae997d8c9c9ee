//! Independent runs on one thread and on two.

use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use fullpipe_scenario::Spec;

use crate::case::{Case, run};
use crate::measure::interleaved;

const ROUNDS: usize = 7;
const THREADS: [usize; 2] = [1, 2];
const RUNS: usize = 8;

pub(crate) fn table() {
    println!(
        "{RUNS} independent runs, shared by one thread and by two, in turn; medians of {ROUNDS} rounds."
    );
    println!(
        "\"of 2x\": the speed-up as a share of two. The first line holds no simulator: what the machine gives."
    );
    println!();
    println!(
        "{:<34} {:>9} {:>10} {:>9} {:>7} {:>7}",
        "each run", "1 thread", "2 threads", "speed-up", "of 2x", "best"
    );
    row("arithmetic, no memory", &|_| spin());
    for (controller, rate, rtt, duration) in [
        ("bbr1", "100 Mbit/s", "40 ms", "60 s"),
        ("cubic", "100 Mbit/s", "40 ms", "60 s"),
        ("cubic", "10 Gbit/s", "100 ms", "4 s"),
    ] {
        let case = Case { duration: duration.into(), ..Case::bulk(controller, rate, rtt) };
        let spec: Spec = case.spec();
        row(&format!("{controller}, {rate}, {rtt}, {duration}"), &|seed| {
            black_box(run(&spec, seed));
        });
    }
}

fn row(name: &str, job: &(dyn Fn(u64) + Sync)) {
    let seconds = interleaved(ROUNDS, &mut THREADS.clone(), |threads| share(*threads, job));
    let speed_up = seconds[0].ratio_to(&seconds[1]);
    println!(
        "{:<34} {:>7.3} s {:>8.3} s {:>9.2} {:>5.1} % {:>5.1} %",
        name,
        seconds[0].median(),
        seconds[1].median(),
        speed_up,
        speed_up * 50.0,
        seconds[0].min() / seconds[1].min() * 50.0,
    );
}

/// Seconds that `threads` need for all runs; whoever is free takes the next.
fn share(threads: usize, job: &(dyn Fn(u64) + Sync)) -> f64 {
    let next = AtomicUsize::new(0);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= RUNS {
                        return;
                    }
                    job(1 + number as u64);
                }
            });
        }
    });
    start.elapsed().as_secs_f64()
}

fn spin() {
    let mut state = 1u64;
    for _ in 0..30_000_000 {
        // xorshift64
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    black_box(state);
}
