//! Each element of a path, over each stack. Every run checks that packets and bytes are conserved.

mod common;

use common::{SHIPPED, attempt, mbit, run, scenario, with_hosts};
use fullpipe_record::Run;

/// The run of a bulk flow over the path.
fn over(controller: &str, path: &str) -> Run {
    run(&scenario(8.0, path, &format!("{{ controller = \"{controller}\" }}")), 1)
}

#[test]
fn every_element_carries_every_stack() {
    // The path, and the least and most Mbit/s that any of the controllers may have.
    let paths = [
        (r#"rate = "10 Mbit/s", rtt = "40 ms""#, 7.0, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", loss = "1 %""#, 0.5, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", jitter = "3 ms""#, 1.0, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", jitter = "3 ms", jitter_reorders = true"#, 0.5, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", queue = "codel""#, 4.0, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", queue = "fq_codel""#, 4.0, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", queue = "pie""#, 3.0, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", unit = "burst""#, 1.0, 9.7),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", burst = "20 KB""#, 4.0, 10.0),
        (
            r#"rate = "10 Mbit/s", rtt = "40 ms", changes = [{ at = "3 s", rate = "2 Mbit/s" }, { at = "4 s", rtt = "80 ms" }]"#,
            2.0,
            6.0,
        ),
        (r#"rate = "10 Mbit/s", rtt = "40 ms", reverse = { rate = "300 kbit/s", loss = "2 %" }"#, 3.0, 9.7),
        (
            r#"rate = "10 Mbit/s", rtt = "40 ms", after = [{ kind = "policer", rate = "5 Mbit/s", burst = "30 KB" }]"#,
            0.3,
            5.2,
        ),
        (
            r#"rate = "10 Mbit/s", rtt = "40 ms", after = [{ kind = "duplicate", probability = "5 %" }]"#,
            4.0,
            9.7,
        ),
        (
            r#"rate = "10 Mbit/s", rtt = "40 ms", after = [{ kind = "reorder", probability = "2 %", delay = "5 ms" }]"#,
            0.3,
            9.7,
        ),
        (
            r#"rate = "10 Mbit/s", rtt = "40 ms", reverse = { after = [{ kind = "aggregate", every = "10 ms" }] }"#,
            4.0,
            9.7,
        ),
    ];
    for (path, least, most) in paths {
        for controller in SHIPPED {
            let record = over(controller, path);
            let rate = mbit(&record.flows[0].totals);
            assert!((least..=most).contains(&rate), "{controller} over {path}: {rate}");
        }
    }
}

#[test]
fn queue_marks_only_ect_packets() {
    let path = r#"rate = "10 Mbit/s", rtt = "40 ms", queue = "codel""#;
    for controller in ["noq:cubic", "noq:newreno", "quinn:cubic", "quinn:newreno"] {
        let flows = format!("{{ controller = \"{controller}\" }}");
        let without = run(&scenario(8.0, path, &flows), 1);
        assert_eq!(without.links[0].totals.marked_packets, 0, "{controller}");
        assert!(without.flows[0].totals.retransmits > 0, "{controller}");
        let with = run(&with_hosts(8.0, path, &flows, "ecn = true"), 1);
        assert!(with.links[0].totals.marked_packets > 0, "{controller}");
        assert_eq!(with.flows[0].totals.retransmits, with.links[0].totals.dropped_packets, "{controller}");
        let rate = mbit(&with.flows[0].totals);
        assert!((6.0..9.7).contains(&rate), "{controller}: {rate}");
    }
}

#[test]
fn unsupported_spec_is_refused_with_fix() {
    let path = r#"rate = "10 Mbit/s", rtt = "40 ms""#;
    let sentence = |flows: &str, hosts: &str| {
        let spec = with_hosts(2.0, path, flows, hosts);
        let refused =
            fullpipe_quic::refuses(&spec).unwrap_or_else(|| panic!("{flows} {hosts} is not refused"));
        assert_eq!(attempt(&spec, 1).unwrap_err().to_string(), refused);
        refused
    };
    let cubic = r#"{ controller = "noq:cubic" }"#;
    let back = r#"{ controller = "noq:cubic", direction = "reverse" }"#;
    let path_back = r#"rate = "10 Mbit/s", rtt = "40 ms", reverse = { rate = "1 Mbit/s" }"#;
    let refused = fullpipe_quic::refuses(&with_hosts(2.0, path_back, back, "")).unwrap_or_default();
    assert!(
        refused.starts_with("flows[0].direction: \"reverse\" is a direction in which the world quic"),
        "{refused}"
    );
    assert!(refused.contains("--world sim"), "{refused}");
    assert_eq!(
        sentence(cubic, "mtu = 1000"),
        "hosts.mtu: 1000 bytes; QUIC needs 1228 to 65535 bytes (RFC 9000, section 14): choose such an MTU"
    );
    assert!(sentence(cubic, r#"gro = "1 ms""#).starts_with("hosts.gro: "));
    assert!(sentence(cubic, r#"metrics = { cwnd = 10 }"#).starts_with("hosts.metrics: "));
    let program = r#"{ client = "true", server = "true" }"#;
    assert!(sentence(program, "").starts_with("flows[0].client: "));
    assert!(sentence(r#"{ controller = "dctcp" }"#, "").starts_with("flows[0].controller: dctcp needs "));
    assert!(
        sentence(r#"{ controller = "own:mine" }"#, "")
            .starts_with("flows[0].controller: own:mine runs in the simulator")
    );
    assert_eq!(
        sentence(&format!("{cubic}, {{ controller = \"quinn:bbr3\" }}"), ""),
        "flows[1].controller: quinn has no controller bbr3; choose quinn:bbr, quinn:cubic, quinn:newreno, or let FULLPIPE_QUIC \
         name a program that has bbr3"
    );
}

#[test]
fn a_jumbo_path_carries_jumbo_datagrams() {
    for controller in ["noq:cubic", "quinn:cubic"] {
        let spec = with_hosts(
            4.0,
            r#"rate = "50 Mbit/s", rtt = "20 ms", buffer = "4 bdp""#,
            &format!("{{ controller = \"{controller}\" }}"),
            "mtu = 9000",
        );
        let totals = run(&spec, 1).flows[0].totals;
        assert!(totals.delivered_bytes / totals.segments_sent > 8000, "{controller}: {totals:?}");
    }
}
