//! What a scenario that resolves is noted for.

use super::*;

fn noted(path: &str, more: &str) -> Vec<String> {
    notes(&toml(&format!(
        "duration = \"1 s\"\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n{path}\n{more}\n{FLOW}"
    )))
}

#[test]
fn a_plain_path_is_noted_for_nothing() {
    assert!(noted("", "").is_empty());
    // 2.5 MB are carried in a second.
    assert!(noted("burst = \"24 KB\"", "").is_empty());
    let all_fit = "router = \"tbf\"\nburst = \"24 KB\"\nbuffer = \"24 KB\"";
    assert!(noted(all_fit, "[hosts.metrics]\nsave_ssthresh = true\nssthresh = 10\n").is_empty());
}

#[test]
fn a_bucket_that_adds_to_the_rate_says_how_much() {
    let note = "its bucket of 5 MB adds 200 % to what 20 Mbit/s carry in the run; while it has tokens, packets pass as fast \
                as they come.";
    assert_eq!(noted("burst = \"5 MB\"", ""), [format!("bottleneck: {note}")]);
    let policer = "before = [{ kind = \"policer\", rate = \"20 Mbit/s\", burst = \"5 MB\" }]";
    assert_eq!(noted(policer, ""), [format!("policer: {note}")]);
}

#[test]
fn a_buffer_that_no_burst_fits_into_says_so() {
    let router = "router = \"tbf\"\nburst = \"24 KB\"\nbuffer = \"3 KB\"";
    let found = noted(router, "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_all(
        &found[0],
        &["bottleneck: a burst of more than 1 segment does not fit into 3 KB", "gso_max_segs = 1"],
    );
    assert!(noted(router, "[hosts]\ngso_max_segs = 1\n").is_empty());
    assert!(noted(&format!("{router}\nunit = \"segment\""), "").is_empty());
    // Packets count a burst as one.
    assert!(noted("unit = \"burst\"\nbuffer = \"3 packets\"", "").is_empty());
    assert_all(&noted("unit = \"burst\"\nbuffer = \"15 KB\"", "")[0], &["more than 10 segments"]);
}

#[test]
fn metrics_that_nothing_uses_are_named() {
    let metrics = |words: &str| noted("", &format!("[hosts.metrics]\n{words}\n"));
    for words in ["ssthresh = 10", "locked = [\"ssthresh\"]"] {
        assert_eq!(metrics(words), ["hosts.metrics.ssthresh has no effect without save_ssthresh = true."]);
    }
    assert_all(&metrics("cwnd = 10")[0], &["hosts.metrics.cwnd is kept and not used"]);
    assert!(metrics("cwnd = 10\nlocked = [\"cwnd\"]").is_empty());
    assert!(metrics("rtt = \"40 ms\"").is_empty());
}
