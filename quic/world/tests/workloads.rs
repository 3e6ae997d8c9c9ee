//! Each workload of a scenario, over each stack.

mod common;

use common::{SHIPPED, mbit, run, scenario};
use fullpipe_record::FlowRecord;

const PATH: &str = r#"rate = "10 Mbit/s", rtt = "40 ms", buffer = "4 bdp""#;

/// The flow of a run over a clean path.
fn flow(controller: &str, seconds: f64, workload: &str) -> FlowRecord {
    let spec = scenario(seconds, PATH, &format!("{{ controller = \"{controller}\", {workload} }}"));
    run(&spec, 1).flows.remove(0)
}

#[test]
fn finite_flow_ends_on_full_arrival() {
    for controller in SHIPPED {
        let record = flow(controller, 30.0, r#"size = "1 MB", start = "1 s""#);
        let totals = record.totals;
        assert!(totals.completed, "{controller}: {totals:?}");
        assert_eq!(
            (totals.delivered_bytes, totals.written_bytes),
            (1_000_000, Some(1_000_000)),
            "{controller}"
        );
        // A round trip for the handshake, at least two to open the window, and 0.8 s of the link.
        let took = totals.lifetime_ns() as f64 / 1e9;
        assert!((0.9..2.0).contains(&took), "{controller}: {took}");
        assert!(record.transfers_ns.is_empty(), "{controller}");
    }
}

#[test]
fn requests_take_rtt_plus_answer_time() {
    for controller in SHIPPED {
        let record = flow(controller, 10.0, r#"requests = { size = "5 KB", pause = "100 ms" }"#);
        let times = &record.transfers_ns;
        // The first has the handshake; each further one a round trip of 40 ms, and 4 ms or more for 5 KB.
        assert!((64_000_000..110_000_000).contains(&times[0]), "{controller}: {times:?}");
        assert!(
            times[1..].iter().all(|time| (44_000_000..140_000_000).contains(time)),
            "{controller}: {times:?}"
        );
        // With the pause, 145 to 160 ms each, most of the time.
        assert!((50..70).contains(&times.len()), "{controller}: {}", times.len());
        assert_eq!(record.totals.delivered_bytes / 5000, times.len() as u64, "{controller}");
    }
}

#[test]
fn bursts_leave_at_their_times() {
    for controller in SHIPPED {
        let record = flow(controller, 10.0, r#"bursts = { size = "28960", every = "250 ms" }"#);
        let times = &record.transfers_ns;
        assert!((39..=40).contains(&times.len()), "{controller}: {}", times.len());
        // Half a round trip, and 24 ms of the link for 29 KB, if the window takes it at once; more round trips if not.
        assert!(
            times[1..].iter().all(|time| (43_000_000..200_000_000).contains(time)),
            "{controller}: {times:?}"
        );
    }
}

#[test]
fn video_fills_then_keeps_buffer() {
    for controller in SHIPPED {
        let record =
            flow(controller, 20.0, r#"video = { rate = "4 Mbit/s", chunk = "1 s", buffer = "6 s" }"#);
        // 20 s are played, and 6 s are ahead.
        assert!(
            (24..=26).contains(&record.transfers_ns.len()),
            "{controller}: {}",
            record.transfers_ns.len()
        );
        assert_eq!(record.rebuffered_ns, Some(0), "{controller}");
    }
}

#[test]
fn script_ends_with_last_transfer() {
    for controller in SHIPPED {
        let transfers = r#"transfers = [{ size = "10 KB", pause = "200 ms" }, { size = "20 KB" }, { size = "30 KB", pause = "1 s" }]"#;
        let record = flow(controller, 20.0, transfers);
        assert!(record.totals.completed, "{controller}: {:?}", record.totals);
        assert_eq!((record.transfers_ns.len(), record.totals.delivered_bytes), (3, 60_000), "{controller}");
        let end = record.totals.end_ns;
        assert!((1_300_000_000..1_700_000_000).contains(&end), "{controller}: {end}");
    }
}

#[test]
fn a_flow_that_stops_falls_silent() {
    for controller in SHIPPED {
        let flows = format!(
            r#"{{ controller = "{controller}", stop = "5 s" }}, {{ controller = "{controller}", start = "6 s" }}"#
        );
        let record = run(&scenario(20.0, PATH, &flows), 1);
        let [first, second] = &record.flows[..] else { panic!("two flows") };
        assert_eq!((first.totals.end_ns, first.totals.completed), (5_000_000_000, false), "{controller}");
        assert!(mbit(&first.totals) > 7.0, "{controller}: {}", mbit(&first.totals));
        // The other has the path for itself.
        let share = mbit(&second.totals);
        assert!(share > 7.0, "{controller}: {share}");
    }
}

#[test]
fn many_transfers_never_exhaust_streams() {
    // More than the 100 streams that may be open at a time.
    for controller in ["noq:cubic", "quinn:cubic"] {
        let record = flow(controller, 10.0, r#"bursts = { size = "1448", every = "5 ms" }"#);
        assert!(record.transfers_ns.len() > 1900, "{controller}: {}", record.transfers_ns.len());
        let record = flow(controller, 40.0, r#"requests = { size = "100", pause = "0" }"#);
        assert!(record.transfers_ns.len() > 800, "{controller}: {}", record.transfers_ns.len());
    }
}
