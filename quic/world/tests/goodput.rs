//! Goodput against arithmetic, competition, and paths that are hard.

mod common;

use common::{SHIPPED, mbit, run, scenario, with_hosts};
use fullpipe_cc::CaState;
use fullpipe_record::WorldName;

#[test]
fn clean_path_goodput_excludes_headers() {
    // A datagram of 1500 bytes has 28 of IP and UDP, 16 of the tag, and of QUIC 1 + 8 bytes of connection id, 1 to 4 of packet
    // number and up to 9 of the frame: 1434 to 1446 of payload, 95.6 to 96.4 % of the link.
    for controller in ["noq:cubic", "noq:newreno", "quinn:cubic", "quinn:newreno"] {
        let spec = scenario(
            30.0,
            r#"rate = "20 Mbit/s", rtt = "40 ms", buffer = "2 bdp""#,
            &format!("{{ controller = \"{controller}\" }}"),
        );
        let record = run(&spec, 1);
        assert_eq!(record.provenance.world, WorldName::Quic);
        let share = mbit(&record.flows[0].totals) / 20.0;
        assert!((0.93..=0.964).contains(&share), "{controller}: {share}");
        // Everything that was delivered crossed the link.
        let link = &record.links[0].totals;
        assert!(link.departed_bytes > record.flows[0].totals.delivered_bytes, "{controller}");
        assert_eq!(link.dropped_packets > 0, record.flows[0].totals.retransmits > 0, "{controller}");
    }
}

#[test]
fn flow_control_window_bounds_rate() {
    // Of 160 kB, 100 kB in each round trip of 40 ms: 20 Mbit/s at most.
    for controller in ["noq:cubic", "quinn:cubic"] {
        let spec = with_hosts(
            10.0,
            r#"rate = "100 Mbit/s", rtt = "40 ms", buffer = "4 bdp""#,
            &format!("{{ controller = \"{controller}\" }}"),
            r#"tcp_rmem = ["4 KB", "64 KB", "160 KB"]"#,
        );
        let rate = mbit(&run(&spec, 1).flows[0].totals);
        assert!((15.0..=20.5).contains(&rate), "{controller}: {rate}");
    }
}

#[test]
fn flows_of_any_stack_share_path() {
    let spec = scenario(
        40.0,
        r#"rate = "20 Mbit/s", rtt = "30 ms", buffer = "1 bdp""#,
        r#"{ controller = "noq:cubic" }, { controller = "quinn:cubic" }, { controller = "noq:newreno", rtt = "50 ms" }"#,
    );
    let record = run(&spec, 2);
    let rates: Vec<f64> = record.flows.iter().map(|flow| mbit(&flow.totals)).collect();
    let sum: f64 = rates.iter().sum();
    assert!((17.5..=19.3).contains(&sum), "{rates:?}");
    assert!(rates.iter().all(|rate| *rate > 1.0), "{rates:?}");
    // The farther flow has the longer round trip.
    let least = |index: usize| *record.flows[index].series.min_rtt_ns.iter().min().unwrap();
    assert!(least(2) >= least(0) + 19_000_000, "{} and {}", least(0), least(2));
}

#[test]
fn long_fat_path_survives_startup_losses() {
    for controller in SHIPPED {
        let spec = scenario(
            6.0,
            r#"rate = "200 Mbit/s", rtt = "100 ms", buffer = "0.3 bdp""#,
            &format!("{{ controller = \"{controller}\" }}"),
        );
        let totals = run(&spec, 1).flows[0].totals;
        assert!(totals.delivered_bytes > 10_000_000, "{controller}: {totals:?}");
        assert!(totals.retransmits > 100, "{controller}: {totals:?}");
    }
}

#[test]
fn zero_time_pacing_keeps_clock_running() {
    // Startup paces at 2.89 times 10 Gbit/s: noq's pacer waits 0.3 ns for a byte, which it rounds to nothing.
    let spec = with_hosts(
        0.25,
        r#"rate = "10 Gbit/s", rtt = "10 ms", buffer = "8 bdp""#,
        r#"{ controller = "bbr1", start_jitter = "0 s" }"#,
        r#"tcp_rmem = ["4 KB", "64 MB", "256 MB"], tcp_wmem = ["4 KB", "64 MB", "256 MB"]"#,
    );
    let rate = mbit(&run(&spec, 1).flows[0].totals);
    assert!(rate > 4_000.0, "{rate}");
}

#[test]
fn handshake_survives_lossy_path() {
    for controller in SHIPPED {
        let spec = scenario(
            60.0,
            r#"rate = "5 Mbit/s", rtt = "40 ms", loss = "30 %", reverse = { loss = "30 %" }"#,
            &format!("{{ controller = \"{controller}\", size = \"100 KB\" }}"),
        );
        for seed in 0..6 {
            let totals = run(&spec, seed).flows[0].totals;
            assert!(totals.completed && totals.delivered_bytes == 100_000, "{controller} {seed}: {totals:?}");
            assert!(
                totals.end_ns > 60_000_000,
                "{controller} {seed}: sooner than a handshake and a way: {totals:?}"
            );
        }
    }
}

#[test]
fn series_show_controller_activity() {
    for controller in SHIPPED {
        let spec = scenario(
            12.0,
            r#"rate = "20 Mbit/s", rtt = "40 ms", buffer = "1 bdp""#,
            &format!("{{ controller = \"{controller}\" }}"),
        );
        let series = &run(&spec, 1).flows[0].series;
        let phases: std::collections::BTreeSet<u8> = series.phase.iter().copied().collect();
        assert!(phases.len() >= 2, "{controller}: {phases:?}");
        // A BDP is 68 datagrams.
        let most = *series.cwnd.iter().max().unwrap();
        assert!((60..=2000).contains(&most), "{controller}: {most}");
        let in_flight = *series.inflight.iter().max().unwrap();
        assert!(in_flight > 40 && in_flight <= most + 10, "{controller}: {in_flight} of {most}");
        let rtts = series.srtt_ns.iter().filter(|rtt| **rtt != u64::MAX);
        assert!(
            rtts.clone().count() > 100 && rtts.clone().all(|rtt| (40_000_000..200_000_000).contains(rtt))
        );
        let paced = series.pacing_bps.iter().filter(|rate| **rate != u64::MAX).max().unwrap();
        assert!(*paced > 15_000_000, "{controller}: {paced}");
    }
}

#[test]
fn a_cap_bounds_the_window() {
    for controller in SHIPPED {
        let spec = scenario(
            5.0,
            r#"rate = "20 Mbit/s", rtt = "40 ms", buffer = "1 bdp""#,
            &format!("{{ controller = \"{controller}\", max_cwnd = \"29 KB\" }}"),
        );
        let record = run(&spec, 1);
        assert!(record.flows[0].series.cwnd.iter().all(|cwnd| *cwnd <= 20), "{controller}");
        // 20 datagrams in 40 ms are 6 Mbit/s.
        let rate = mbit(&record.flows[0].totals);
        assert!((4.0..=6.0).contains(&rate), "{controller}: {rate}");
    }
}

/// What a stack's controllers know are rates of datagrams; records have those of payload.
#[test]
fn bandwidth_estimate_matches_delivered_rate() {
    for controller in ["bbr3", "noq:bbr3"] {
        let spec = scenario(
            10.0,
            r#"rate = "50 Mbit/s", rtt = "40 ms", buffer = "4 bdp""#,
            &format!("{{ controller = \"{controller}\" }}"),
        );
        let record = run(&spec, 1);
        let series = &record.flows[0].series;
        let late = series.time_ns.iter().position(|at| *at >= 5_000_000_000).unwrap();
        let last = series.time_ns.len() - 1;
        let bits = 8e9 * (series.delivered_bytes[last] - series.delivered_bytes[late]) as f64;
        let delivered = bits / (series.time_ns[last] - series.time_ns[late]) as f64;
        let most =
            *series.bandwidth_bps[late..].iter().filter(|rate| **rate != u64::MAX).max().unwrap() as f64;
        let link = 50e6 * 1438.0 / 1500.0;
        assert!(delivered < link && (most / link - 1.0).abs() < 0.01, "{controller}: {most}, {delivered}");
    }
}

/// The stacks begin with 333 ms, which is no measurement (RFC 9002 section 6.2.2).
#[test]
fn min_rtt_is_measured() {
    for controller in SHIPPED.into_iter().chain(["bbr3"]) {
        let flow = format!("{{ controller = \"{controller}\" }}");
        let record = run(&scenario(4.0, r#"rate = "10 Mbit/s", rtt = "600 ms""#, &flow), 1);
        let known = record.flows[0].series.min_rtt_ns.iter().filter(|rtt| **rtt != u64::MAX);
        let least = known.min().unwrap();
        assert!((600_000_000..620_000_000).contains(least), "{controller}: {least}");
    }
}

/// RFC 9002 section 7.3.2, whether the controller shows its state or not.
#[test]
fn every_controller_shows_recovery() {
    for controller in SHIPPED.into_iter().chain(["newreno", "bbr3"]) {
        let flow = format!("{{ controller = \"{controller}\" }}");
        let record = run(&scenario(8.0, r#"rate = "10 Mbit/s", rtt = "40 ms", loss = "0.3 %""#, &flow), 1);
        let states = &record.flows[0].series.ca_state;
        let in_recovery = states.iter().filter(|state| **state == CaState::Recovery as u8).count();
        let lost = record.flows[0].totals.retransmits;
        // A round trip or a little more for each loss at most.
        assert!(lost > 0 && in_recovery > 0, "{controller}: {lost} lost, {in_recovery} samples");
        assert!(states.contains(&(CaState::Open as u8)), "{controller}: it ends");
    }
}
