//! From 10 Mbit/s to 100 Gbit/s and from 1 ms to half a second: time a packet, and memory.

use std::time::Instant;

use fullpipe_units::{Bytes, Duration, Rate};

use crate::case::{Case, nanos_a_packet, run, sent};
use crate::measure::{interleaved, report};
use crate::memory;

const ROUNDS: usize = 3;
const CONTROLLERS: [&str; 2] = ["bbr1", "cubic"];
const MBITS: [u64; 5] = [10, 100, 1_000, 10_000, 100_000];
const RTTS_MS: [u64; 4] = [1, 10, 100, 500];

/// A run lasts long enough for the link to carry so many packets, and for so many round trips.
const PACKETS: u64 = 1_000_000;
const ROUND_TRIPS: u64 = 40;
/// No buffer is smaller, in packets.
const LEAST_BUFFER: u64 = 20;
const LEAST_BUFFER_WORDS: &str = "20 packets";
/// Fewer packets are said to be few.
const FEW: u64 = 200_000;
/// Fewer samples than a series may hold.
const SAMPLES: u64 = 19_000;

pub(crate) fn table() {
    println!(
        "One bulk flow, buffer 1 bdp, at least {LEAST_BUFFER_WORDS}; without series, median of {ROUNDS} runs. \"wall\": one."
    );
    println!("\"memory\": most bytes held at once, less those of the same scenario cut to 1 ms.");
    println!("\"out\": most segments in flight, from a run with series. \"B/out\": memory over that.");
    println!();
    println!(
        "{:<6} {:<11} {:>6} {:>9} {:>9} {:>5} {:>7} {:>10} {:>11} {:>8} {:>6}",
        "cc", "rate", "rtt", "simulated", "packets", "link", "wall", "ns/packet", "memory", "out", "B/out"
    );
    for controller in CONTROLLERS {
        for mbits in MBITS {
            for rtt_ms in RTTS_MS {
                cell(controller, mbits, rtt_ms);
            }
        }
    }
    println!();
    state_of_a_flow();
}

fn cell(controller: &str, mbits: u64, rtt_ms: u64) {
    let rate = Rate::from_bits_per_sec(mbits * 1_000_000).to_string();
    let rtt = Duration::from_millis(rtt_ms).to_string();
    let busy_ms = PACKETS * 12_000 / (mbits * 1_000);
    let duration_ms = busy_ms.max(ROUND_TRIPS * rtt_ms);
    let bdp_packets = mbits * 1_000 * rtt_ms / 12_000;
    let buffer = if bdp_packets < LEAST_BUFFER { LEAST_BUFFER_WORDS } else { "1 bdp" };
    let case = Case { buffer, duration: format!("{duration_ms} ms"), ..Case::bulk(controller, &rate, &rtt) };
    let mut spec = [case.spec()];
    let start = Instant::now();
    let (run, taken) = memory::count(|| run(&spec[0], 1));
    let wall = start.elapsed();
    let packets = sent(&run);
    let link = &run.links[0].totals;
    let used = link.capacity_bytes.map_or(0.0, |capacity| link.departed_bytes as f64 / capacity as f64);
    let held = taken.peak - peak_of_almost_nothing(&case);
    let out = most_in_flight(&case, duration_ms);
    let nanos = &interleaved(ROUNDS, &mut spec, |spec| nanos_a_packet(spec))[0];
    println!(
        "{:<6} {:<11} {:>6} {:>7.1} s {:>9} {:>3.0} % {:>5.2} s {:>10.1} {:>11} {:>8} {:>6.0}{}",
        controller,
        rate,
        rtt,
        duration_ms as f64 / 1e3,
        packets,
        used * 100.0,
        wall.as_secs_f64(),
        nanos.median(),
        Bytes::new(held.max(0) as u64).to_string(),
        out,
        held as f64 / out as f64,
        remark(packets, out, bdp_packets),
    );
    report("scale", &format!("{controller}, {rate}, {rtt}"), "ns/packet", nanos, None);
}

fn peak_of_almost_nothing(case: &Case) -> i64 {
    let spec = Case { duration: "1 ms".into(), ..case.clone() }.spec();
    memory::count(|| run(&spec, 1)).1.peak
}

fn most_in_flight(case: &Case, duration_ms: u64) -> u32 {
    let interval = Some(format!("{} ns", duration_ms * 1_000_000 / SAMPLES));
    let run = run(&Case { interval, ..case.clone() }.spec(), 1);
    run.flows[0].series.inflight.iter().copied().max().unwrap_or(0)
}

fn remark(packets: u64, out: u32, bdp_packets: u64) -> &'static str {
    if u64::from(out) < bdp_packets {
        "  TCP's largest buffers, 2^31 - 1 bytes, hold less than the path"
    } else if packets < FEW {
        "  few packets"
    } else {
        ""
    }
}

/// What a flow takes besides its window: more flows of one byte each, and how the memory grows.
fn state_of_a_flow() {
    const FEWER: u32 = 1_000;
    const MORE: u32 = 2_000;
    println!(
        "State of a flow: growth of the memory between {FEWER} and {MORE} flows of 1 B each, over the difference."
    );
    println!("\"record\" is what the run gives back, the spec in JSON above all.");
    println!();
    println!("{:<6} {:>10} {:>10}", "cc", "B/flow", "B/record");
    for controller in ["bbr1", "cubic", "reno"] {
        let taken = |flows| {
            let case = Case { flows, size: Some("1 B"), ..Case::bulk(controller, "1 Gbit/s", "20 ms") };
            let spec = case.spec();
            memory::count(|| run(&spec, 1)).1
        };
        let (fewer, more) = (taken(FEWER), taken(MORE));
        let each = |more: i64, fewer: i64| (more - fewer) as f64 / f64::from(MORE - FEWER);
        println!(
            "{:<6} {:>10.0} {:>10.0}",
            controller,
            // The record is made while the world still stands: the peak is the sum of both.
            each(more.peak - more.kept, fewer.peak - fewer.kept),
            each(more.kept, fewer.kept),
        );
    }
}
