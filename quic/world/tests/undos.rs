//! What counts as a reduction that was undone: what the controller does, not what its stack finds.

mod common;

use common::{run, scenario};

#[test]
fn only_undoing_controllers_count_undos() {
    let totals = |controller: &str| {
        let spec = scenario(
            20.0,
            r#"rate = "10 Mbit/s", rtt = "40 ms", buffer = "200 bdp", after = [{ kind = "reorder", probability = "0.5 %", delay = "15 ms" }]"#,
            &format!("{{ controller = \"{controller}\", size = \"4 MB\" }}"),
        );
        let record = run(&spec, 1);
        // Every loss is spurious.
        assert_eq!(record.links[0].totals.dropped_packets, 0, "{controller}");
        assert!(record.flows[0].totals.retransmits > 0, "{controller}");
        record.flows[0].totals
    };
    // Those that do nothing when their stack finds losses to be spurious, and those that are never told.
    for controller in ["noq:newreno", "quinn:newreno", "quinn:cubic", "quinn:bbr", "fixed:cwnd=40"] {
        assert_eq!(totals(controller).undos, 0, "{controller}");
    }
    for controller in ["newreno", "cubic9438", "cubic", "noq:cubic", "noq:bbr3"] {
        let totals = totals(controller);
        assert!((1..=totals.retransmits).contains(&totals.undos), "{controller}: {totals:?}");
    }
}
