//! CoDel and FQ-CoDel beside Linux's own, on random arrivals.
//!
//! The fingerprints were computed by the functions of Linux 6.12 (`include/net/codel_impl.h`; enqueue, drop and dequeue of
//! `net/sched/sch_fq_codel.c`), compiled as they are, behind a link that works as [`Link`] does. They say when each packet left
//! or was dropped, and with which codepoint.

use super::harness::{Link, Outcome, config};
use crate::discipline::{Random, Room, Setup};
use crate::packet::{Ecn, Packet};
use crate::rng::Stream;
use fullpipe_units::{Bytes, Rate, Time};

struct Case {
    settings: Vec<(&'static str, u64)>,
    packets: u32,
    /// What a byte takes on the link.
    nanos_per_byte: u64,
    arrivals: Vec<(Time, Packet)>,
}

/// Phases of different load, with pauses in between, and a setup that stays.
fn case(name: &str, seed: u64) -> Case {
    let mut random = Stream::new(seed, 0);
    let mut pick = |list: &[u64]| list[random.up_to(list.len() as u64 - 1) as usize];
    let mut settings = vec![
        ("target", pick(&[1_000_000, 5_000_000, 20_000_000])),
        ("interval", pick(&[10_000_000, 33_000_000, 100_000_000])),
        ("ecn", pick(&[0, 1])),
        ("ce_threshold", pick(&[0, 0, 30_000_000])),
        ("mtu", pick(&[68, 1_500, 1_500, 9_000])),
    ];
    if name == "fq_codel" {
        let flows = ("flows", pick(&[1, 4, 1_024]));
        let quantum = ("quantum", pick(&[256, 1_500, 9_000]));
        settings.extend([flows, quantum, ("drop_batch", pick(&[1, 8, 64]))]);
    }
    let packets = pick(&[20, 100, 1_000]) as u32;
    let nanos_per_byte = pick(&[100, 1_000, 5_000]);
    let mut arrivals = Vec::new();
    let mut at = 0;
    for _ in 0..4 {
        let percent = pick(&[90, 105, 150, 400]);
        for _ in 0..pick(&[100, 400, 1_000]) {
            at += 1_500 * nanos_per_byte * 100 / percent * pick(&[0, 1, 1, 2]);
            let class = pick(&[0, 0, 1, 1, 2, 3, 4, 5]) as u32;
            let bytes = pick(&[60, 300, 1_500, 1_500, 1_500]) as u32;
            let ecn = if class.is_multiple_of(2) {
                Ecn::NotEct
            } else {
                Ecn::from_bits(pick(&[0, 1, 2, 2, 3]) as u8)
            };
            arrivals.push((Time::from_nanos(at), Packet::new(bytes, class).with_ecn(ecn)));
        }
        at += pick(&[0, 50_000_000, 3_000_000_000]);
    }
    Case { settings, packets, nanos_per_byte, arrivals }
}

fn run(name: &str, seed: u64) -> Outcome {
    let case = case(name, seed);
    let limit = Room { bytes: Bytes::MAX, packets: Some(case.packets) };
    let rate = Rate::from_bits_per_sec(8_000_000_000 / case.nanos_per_byte);
    let random = Random(Stream::new(seed, 1));
    let mut link = Link::new(&config(name, &case.settings), Setup { limit, rate, random });
    for (at, packet) in case.arrivals {
        link.arrive(at, packet);
    }
    link.finish()
}

/// How many were dropped, how many left with CE, and FNV-1a over all that left or was dropped, in order of time and number.
fn fingerprint(outcome: &Outcome) -> (usize, usize, u64) {
    const LOST: u64 = 4;
    let sent =
        outcome.sent.iter().map(|sent| [sent.at.as_nanos(), sent.number as u64, sent.packet.ecn as u64]);
    let lost = outcome.lost.iter().map(|lost| [lost.at.as_nanos(), lost.number as u64, LOST]);
    let mut events: Vec<[u64; 3]> = sent.chain(lost).collect();
    events.sort_unstable();
    let hash = events.as_flattened().iter();
    let hash =
        hash.fold(0xcbf2_9ce4_8422_2325, |hash: u64, word| (hash ^ word).wrapping_mul(0x100_0000_01b3));
    let ce = outcome.sent.iter().filter(|sent| sent.packet.ecn == Ecn::Ce).count();
    (outcome.lost.len(), ce, hash)
}

/// (dropped, left with CE, hash) for seeds 0, 1, ...
const CODEL: [(usize, usize, u64); 12] = [
    (1, 115, 0xe9d96ea3f6eed632),
    (1181, 160, 0xa0d26e7e8b5dfbf2),
    (15, 241, 0x16543508404c52ea),
    (0, 207, 0xc3d65d8aead2d0ed),
    (0, 316, 0x3cf22cb62da14b4c),
    (1, 410, 0x4df5a9698cde9b61),
    (348, 68, 0xd336cd08f9d96a53),
    (572, 110, 0x52239fb0414ba4d6),
    (70, 159, 0xefec9ca54c6e5a0b),
    (1, 85, 0xc24599087d616210),
    (135, 361, 0xf6dacd1b96ab8333),
    (34, 173, 0x125bff1425506cbc),
];

const FQ_CODEL: [(usize, usize, u64); 12] = [
    (23, 331, 0x53d63319c210a077),
    (87, 175, 0xc080851eb1e41700),
    (218, 167, 0x7f37ec0bc6907bed),
    (282, 298, 0xdb4d43a6504ba846),
    (78, 264, 0x048aafbda91b9ec5),
    (0, 148, 0xf8a7259e010383dd),
    (5, 32, 0xf9daa7b1ed3300c9),
    (0, 106, 0x22daaba6a5a8533a),
    (2, 197, 0x0aaf754848c58060),
    (2, 89, 0xc599d90e4034d922),
    (0, 103, 0x785987aa977cfe9b),
    (1726, 244, 0xd2518d4f368b1c71),
];

#[test]
fn codel_decides_as_linux_does() {
    for (seed, linux) in CODEL.into_iter().enumerate() {
        assert_eq!(fingerprint(&run("codel", seed as u64)), linux, "seed {seed}");
    }
}

#[test]
fn fq_codel_decides_as_linux_does() {
    for (seed, linux) in FQ_CODEL.into_iter().enumerate() {
        assert_eq!(fingerprint(&run("fq_codel", seed as u64)), linux, "seed {seed}");
    }
}
