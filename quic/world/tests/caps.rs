//! Windows that a scenario limits (`max_cwnd`).

mod common;

use common::{SHIPPED, mbit, run, scenario};
use fullpipe_record::Run;

/// A flow whose window may have so many packets.
fn capped(controller: &str, packets: u32, seconds: f64, path: &str) -> Run {
    let cap = packets * 1500;
    run(&scenario(seconds, path, &format!("{{ controller = \"{controller}\", max_cwnd = \"{cap}\" }}")), 1)
}

#[test]
fn a_reduction_begins_from_the_cap() {
    const REDUCING: [&str; 8] =
        ["noq:newreno", "noq:cubic", "quinn:newreno", "quinn:cubic", "newreno", "cubic9438", "cubic", "reno"];
    // Without losses a window that knew no cap would have grown to 2500 packets in 5 s. A cap of 4 is below the initial window.
    for (controller, (cap, loss)) in
        REDUCING.iter().flat_map(|one| [(20, "0.5 %"), (4, "5 %")].map(|of| (one, of)))
    {
        let path = format!(
            r#"rate = "100 Mbit/s", rtt = "40 ms", loss = "0 %", changes = [{{ at = "5 s", loss = "{loss}" }}]"#
        );
        let record = capped(controller, cap, 7.0, &path);
        let series = &record.flows[0].series;
        let lost = series.retransmits.iter().position(|count| *count > 0).unwrap();
        assert!(series.time_ns[lost] > 5_000_000_000, "{controller}");
        let before = series.cwnd[lost / 2];
        assert!((cap - 1..=cap).contains(&before), "{controller}: {before} packets of {cap} without losses");
        // CUBIC keeps 70 %. There is time for one reduction, or two.
        let soon = series.time_ns.iter().filter(|at| **at < series.time_ns[lost] + 100_000_000).count();
        let least = *series.cwnd[lost..soon].iter().min().unwrap();
        assert!(least <= cap * 7 / 10, "{controller}: {least} packets of {cap} after a loss");
    }
}

#[test]
fn minimal_window_regrows_to_cap() {
    let path =
        r#"rate = "20 Mbit/s", rtt = "40 ms", loss = "5 %", changes = [{ at = "10 s", loss = "0 %" }]"#;
    for controller in ["noq:newreno", "noq:cubic", "quinn:newreno", "quinn:cubic", "newreno", "cubic"] {
        let record = capped(controller, 2, 15.0, path);
        let series = &record.flows[0].series;
        let late = series.time_ns.iter().zip(&series.inflight).filter(|(at, _)| **at > 12_000_000_000);
        assert_eq!(late.map(|(_, packets)| *packets).max(), Some(2), "{controller}");
    }
}

#[test]
fn pacing_follows_the_cap() {
    let path = r#"rate = "100 Mbit/s", rtt = "40 ms""#;
    for controller in SHIPPED.into_iter().chain(["newreno", "cubic", "bbr1", "bbr3", "copa"]) {
        let record = capped(controller, 20, 5.0, path);
        let series = &record.flows[0].series;
        let paced =
            series.pacing_bps.iter().skip(series.pacing_bps.len() / 2).filter(|rate| **rate != u64::MAX);
        // 20 packets in 40 ms are 6 Mbit/s; the largest gain is 2.89, that of Startup.
        let most = *paced.max().unwrap();
        assert!((4_000_000..=18_000_000).contains(&most), "{controller}: {most}");
    }
}

#[test]
fn small_cap_allows_that_many_packets() {
    let path = r#"rate = "20 Mbit/s", rtt = "40 ms""#;
    // The payload of a packet of 1500 bytes (tests/goodput.rs), and the time that it takes to cross the bottleneck.
    let (bits, crossing_s) = (1440.0 * 8.0, 1500.0 * 8.0 / 20e6);
    for controller in ["noq:newreno", "noq:cubic", "quinn:newreno", "quinn:cubic", "newreno", "cubic"] {
        // Two packets are acknowledged together when the second has come (RFC 9000 section 13.2.2), which the pacer lets leave
        // after the first: at 1.25 windows in a round trip, 1 / 2.5 of one later.
        let two = mbit(&capped(controller, 2, 20.0, path).flows[0].totals);
        let expected = 2.0 * bits / (1.4 * (0.040 + crossing_s)) / 1e6;
        assert!((0.85..=1.15).contains(&(two / expected)), "{controller}: {two} of {expected} Mbit/s");
        // The acknowledgement of one packet waits for a second until max_ack_delay is over, 25 ms (RFC 9000 section 18.2).
        let one = mbit(&capped(controller, 1, 20.0, path).flows[0].totals);
        let expected = bits / (0.040 + crossing_s + 0.025) / 1e6;
        assert!((0.85..=1.15).contains(&(one / expected)), "{controller}: {one} of {expected} Mbit/s");
    }
}
