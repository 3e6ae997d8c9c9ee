//! What a scenario that resolves is noted for.

use super::*;

fn noted(path: &str, more: &str) -> Vec<String> {
    notes_of(&format!(
        "duration = \"1 s\"\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n{path}\n{more}\n{FLOW}"
    ))
}

fn notes_of(text: &str) -> Vec<String> {
    let specs = resolve_all(text, Format::Toml, None).unwrap();
    let specs: Vec<Spec> = specs.into_iter().map(|(_, spec)| spec).collect();
    notes(&Document::read(text, Format::Toml).unwrap(), &specs)
}

#[test]
fn plain_path_has_no_notes() {
    assert!(noted("", "").is_empty());
    // 2.5 MB are carried in a second.
    assert!(noted("burst = \"24 KB\"", "").is_empty());
    let all_fit = "router = \"tbf\"\nburst = \"24 KB\"\nbuffer = \"24 KB\"";
    assert!(noted(all_fit, "[hosts.metrics]\nsave_ssthresh = true\nssthresh = 10\n").is_empty());
}

#[test]
fn large_bucket_notes_added_capacity() {
    let note = "its bucket of 5 MB adds 200 % to what 20 Mbit/s carry in the run; while it has tokens, packets pass as fast \
                as they come.";
    assert_eq!(noted("burst = \"5 MB\"", ""), [format!("bottleneck: {note}")]);
    let policer = "before = [{ kind = \"policer\", rate = \"20 Mbit/s\", burst = \"5 MB\" }]";
    assert_eq!(noted(policer, ""), [format!("policer: {note}")]);
}

#[test]
fn buffer_below_burst_size_is_noted() {
    let router = "router = \"tbf\"\nburst = \"24 KB\"\nbuffer = \"3 KB\"";
    let found = noted(router, "");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_all(
        &found[0],
        &["bottleneck: a burst of more than 1 segment does not fit into 3 KB", "gso_max_segs = 1"],
    );
    assert!(noted(router, "[hosts]\ngso_max_segs = 1\n").is_empty());
    assert_all(
        &noted(&format!("{router}\nunit = \"segment\""), "")[0],
        &["path.buffer: the queue has room for"],
    );
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

/// One flow on a path of 300 kbit/s and 40 ms, which is one packet.
fn slow(path: &str) -> String {
    format!("[path]\nrate = \"300 kbit/s\"\nrtt = \"40 ms\"\n{path}\n{FLOW}")
}

fn buffer_of(text: &str) -> (u64, Option<u32>) {
    let spec = resolve(text, Format::Toml, None).unwrap();
    let queue = *spec.bottleneck().and_then(ElementConfig::queue).unwrap();
    (queue.bytes.as_u64(), queue.packets)
}

#[test]
fn default_small_buffer_becomes_ten_packets() {
    let assumed = "buffer: 10 packets (assumed; 1 BDP is 1.0 packets)";
    assert_eq!((buffer_of(&slow("")), notes_of(&slow(""))), ((15_000, None), vec![assumed.to_owned()]));
    // Ten packets and more of bandwidth-delay product are assumed as before.
    assert_eq!(buffer_of(&slow("").replace("300 kbit/s", "10 Mbit/s")), (50_000, None));
    assert_eq!(buffer_of(&slow("").replace("300 kbit/s", "3 Mbit/s")), (15_000, None));
    assert!(notes_of(&slow("").replace("300 kbit/s", "3 Mbit/s")).is_empty());
    // Frames of an Ethernet interface, jumbo packets, and a path of no delay.
    assert_eq!(buffer_of(&slow("router = \"tbf\"\nburst = \"9 KB\"")), (15_140, None));
    assert_eq!(buffer_of(&slow("").replace("[path]", "hosts.mtu = 9000\n[path]")), (90_000, None));
    assert_eq!(buffer_of(&slow("").replace("40 ms", "0 s")), (15_000, None));
}

#[test]
fn explicit_buffer_is_unchanged() {
    assert_eq!(buffer_of(&slow("buffer = \"1 bdp\"")), (1_500, None));
    assert_eq!(buffer_of(&slow("buffer = \"2 packets\"")), (3_000, Some(2)));
}

#[test]
fn bdp_below_packet_becomes_ten_packets() {
    let path = |buffer: &str| slow(&format!("buffer = \"{buffer}\"")).replace("40 ms", "10 ms");
    for buffer in ["1 bdp", "2 bdp"] {
        assert_eq!(buffer_of(&path(buffer)), (15_000, None));
        let note = format!("path.buffer: 10 packets (assumed; {buffer} is below one packet)");
        assert_eq!(notes_of(&path(buffer)), [note]);
    }
    assert_eq!(buffer_of(&path("5 bdp")), (1_875, None));
    // Who asks for less than one has asked for a small buffer.
    assert_all(&error(&path("0.9 bdp")).to_string(), &["path.buffer", "\"0.9 bdp\" is below one packet"]);
    assert_all(&error(&path("0 bdp")).to_string(), &["path.buffer", "is below one packet"]);
    let after = "buffer = \"9 KB\"\nafter = [{ kind = \"link\", rate = \"9 kbit/s\", buffer = \"1 bdp\" }]";
    assert_eq!(
        notes_of(&slow(after)),
        ["path.after[0].buffer: 10 packets (assumed; 1 bdp is below one packet)"]
    );
}

#[test]
fn explicit_two_packet_buffer_is_noted() {
    for (buffer, room) in [("1 bdp", "1 packet,"), ("2 packets", "2 packets,"), ("4000", "2 packets,")] {
        let found = notes_of(&slow(&format!("buffer = \"{buffer}\"")));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_all(&found[0], &["path.buffer: the queue has room for", room, "10 packets are enough"]);
    }
    assert!(notes_of(&slow("buffer = \"3 packets\"")).is_empty());
    let interface =
        "buffer = \"9 KB\"\nafter = [{ kind = \"link\", rate = \"1 Mbit/s\", buffer = \"2 KB\" }]";
    assert_all(&notes_of(&slow(interface))[0], &["path.after[0].buffer: the queue has room for 1 packet,"]);
    // Two kilobytes are many acknowledgements.
    assert!(
        notes_of(&slow("reverse = { rate = \"1 Mbit/s\", buffer = \"2 KB\" }\nbuffer = \"9 KB\"")).is_empty()
    );
}

#[test]
fn burst_loss_precedes_link_follows_bucket() {
    let kinds = |path: &str| -> Vec<&'static str> {
        let text = slow(&format!("buffer = \"90 KB\"\nloss = \"1 %\"\njitter = \"1 ms\"\n{path}"));
        let spec = resolve(&text, Format::Toml, None).unwrap();
        spec.forward.iter().map(ElementConfig::kind).collect()
    };
    assert_eq!(kinds(""), ["link", "loss", "jitter", "delay"]);
    assert_eq!(kinds("unit = \"segment\""), ["link", "loss", "jitter", "delay"]);
    assert_eq!(kinds("unit = \"burst\""), ["loss", "link", "jitter", "delay"]);
    assert_eq!(kinds("unit = \"burst\"\nburst = \"9 KB\""), ["token_bucket", "loss", "jitter", "delay"]);
    let router = "router = \"tbf\"\nburst = \"9 KB\"";
    assert_eq!(kinds(router), ["token_bucket", "loss", "jitter", "delay"]);
    let policer =
        "before = [{ kind = \"policer\", rate = \"1 Mbit/s\", burst = \"9 KB\" }]\nunit = \"burst\"";
    assert_eq!(kinds(policer), ["policer", "loss", "link", "jitter", "delay"]);
}

/// A path, more of the scenario, and the beginnings of its notes.
#[test]
fn settings_without_an_effect_are_noted() {
    let bursts = "unit = \"burst\"\nbuffer = \"90 KB\"";
    let loss = "{ kind = \"loss\", probability = \"1 %\", unit = \"burst\" }";
    for (path, more, expected) in [
        (
            &*format!("after = [{loss}]"),
            "",
            "path.after[0].unit = \"burst\" has no effect: bottleneck sends the packets of a burst one after",
        ),
        (
            &*format!("{bursts}\nloss = \"1 %\"\nbefore = [{{ kind = \"jitter\", amplitude = \"1 ms\" }}]"),
            "",
            "path.unit = \"burst\" has no effect: path.before[0] sends the packets",
        ),
        (bursts, "hosts.gso_max_segs = 1", "path.unit = \"burst\" has no effect: every burst has one packet"),
        ("", "hosts.gso_max_segs = 45", "hosts.gso_max_segs = 45 has no effect: 64 KB already limit"),
        (
            "reverse = { loss = \"1 %\", unit = \"burst\" }",
            "",
            "path.reverse.unit = \"burst\" has no effect: acknowledgements do not come in bursts",
        ),
        (
            "after = [{ kind = \"aggregate\", every = \"1 ms\", merge = true }]",
            "",
            "path.after[0].merge = true has no effect: no element behind it has unit",
        ),
        (
            "reverse = { before = [{ kind = \"aggregate\", every = \"1 ms\", merge = true }] }",
            "",
            "path.reverse.before[0].merge = true has no effect: acknowledgements are not merged",
        ),
        (
            "jitter = \"0 ms\"\njitter_reorders = true",
            "",
            "path: jitter has no effect: no packet overtakes another",
        ),
        (
            "before = [{ kind = \"duplicate\", probability = \"0 %\" }]",
            "",
            "path.before[0]: duplicate has no effect",
        ),
        (
            "before = [{ kind = \"reorder\", probability = \"1 %\", delay = \"0 ms\" }]",
            "",
            "path.before[0]: reorder has no effect: its delay is 0",
        ),
        (
            "after = [{ kind = \"gilbert_elliott\", good_to_bad = \"0 %\", bad_to_good = \"1 %\", loss_good = \"1 %\" }]",
            "",
            "path.after[0]: bad_to_good and loss_bad have no effect",
        ),
        (
            "after = [{ kind = \"gilbert_elliott\", good_to_bad = \"0 %\", bad_to_good = \"1 %\" }]",
            "",
            "path.after[0]: gilbert_elliott has no effect",
        ),
        (
            "before = [{ kind = \"bleach\" }]",
            "",
            "path.before[0]: bleach has no effect: no packet there is ECN-",
        ),
        (
            "queue = \"codel\"\nreverse = { before = [{ kind = \"bleach\" }] }",
            "compare = [\"dctcp\"]",
            "path.reverse.before[0]: bleach has no effect: no queue on that way marks packets",
        ),
        (
            "queue = \"codel\"\nreverse = { before = [{ kind = \"ecn_blackhole\" }] }",
            "compare = [\"cubic\"]\nhosts.ecn = true",
            "path.reverse.before[0]: ecn_blackhole has no effect",
        ),
        ("queue = \"codel:ecn=off\"", "", "path.queue: ecn has no effect: no packet there is ECN-capable"),
        ("queue = \"pie:mark_ecnth=5%,ecn=off\"", "", "path.queue: ecn and mark_ecnth have no effect"),
        ("queue = \"step\"", "", "path.queue = \"step\" has no effect"),
        ("", "hosts.ecn = true", "hosts.ecn = true has no effect: no queue of the path marks packets"),
        ("queue = \"codel:ecn=off\"", "hosts.ecn = true", "hosts.ecn = true has no effect: no queue"),
        (
            "changes = [{ at = \"100 ms\", rate = \"20 Mbit/s\" }]",
            "",
            "path: the change at 100 ms has no effect: the rate already has that value",
        ),
        (
            "changes = [{ at = \"100 ms\", rtt = \"30 ms\" }, { at = \"200 ms\", rtt = \"30 ms\" }]",
            "",
            "path.rtt: the change at 200 ms has no effect: the delay already",
        ),
        (
            "",
            "hosts = { tcp_memory = \"linux\", tcp_rmem = [4096, 9000, 9000], tcp_wmem = [4096, 9000, 9000] }",
            "hosts.tcp_memory has no effect",
        ),
    ] {
        let flow = if more.starts_with("compare") { "" } else { FLOW };
        let found = notes_of(&format!(
            "duration = \"1 s\"\n{more}\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n{path}\n{flow}"
        ));
        assert_eq!(found.len(), 1, "{path} {more}: {found:?}");
        assert!(found[0].starts_with(expected), "{path} {more}: {found:?}");
    }
}

#[test]
fn a_controller_that_negotiates_ecn_and_does_not_answer_marks_is_noted() {
    let found = |queue: &str, rtt: &str, controllers: &str| {
        notes_of(&format!(
            "duration = \"1 s\"\ncompare = [{controllers}]\nhosts.ecn = true\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"{rtt}\"\n\
             buffer = \"200 packets\"\nqueue = \"{queue}\"\n"
        ))
    };
    let silent = found("codel", "20 ms", "\"bbr1\", \"cubic\", \"bbr3\"");
    assert_eq!(silent.len(), 1, "{silent:?}");
    assert!(silent[0].starts_with("flows: bbr1 negotiates ECN and does not answer marks"), "{silent:?}");
    let google = "\"bbr3:profile=linux,ecn=1\", \"reno\"";
    let far = found("red", "20 ms", google);
    assert!(far[0].contains("answers marks up to an RTT of 5 ms, and the path has 20 ms"), "{far:?}");
    assert_eq!(found("red", "5 ms", google), [""; 0]);
    assert_eq!(found("codel", "20 ms", "\"cubic\", \"dctcp\""), [""; 0]);
}

#[test]
fn ineffective_flow_settings_are_noted() {
    for (flow, hosts, expected) in [
        ("stagger = \"100 ms\"", "", "flows[0].stagger has no effect: there is one such flow"),
        ("stop = \"1 s\"", "", "flows[0].stop has no effect: the run ends at 1 s"),
        ("ecn = true", "", "flows[0].ecn = true has no effect: no queue of the path marks packets"),
        (
            "receiver = \"hides_ce\"",
            "",
            "flows: receiver = \"hides_ce\" has no effect: no packet of such a flow",
        ),
        (
            "controller = \"bbr1\"",
            "pacing = true",
            "hosts.pacing = true has no effect: every controller asks",
        ),
    ] {
        let controller = if flow.starts_with("controller") { "" } else { "controller = \"cubic\"\n" };
        let text = format!(
            "duration = \"1 s\"\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n[hosts]\n{hosts}\n[[flows]]\n{controller}{flow}\n"
        );
        let found = notes_of(&text);
        assert_eq!(found.len(), 1, "{flow}: {found:?}");
        assert!(found[0].starts_with(expected), "{flow}: {found:?}");
    }
}

#[test]
fn settings_of_way_back_have_effect_on_reverse_data() {
    let found = |direction: &str| {
        notes_of(&format!(
            "[path]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\nbuffer = \"100 packets\"\n[path.reverse]\nrate = \"20 Mbit/s\"\n\
             buffer = \"100 packets\"\nunit = \"burst\"\nqueue = \"step\"\n[hosts]\necn = true\n[[flows]]\n\
             controller = \"cubic\"\ndirection = \"{direction}\"\n"
        ))
    };
    assert_eq!(found("reverse"), [""; 0]);
    let acks_only = found("forward").join("\n");
    assert!(acks_only.contains("acknowledgements do not come in bursts"), "{acks_only}");
    assert!(acks_only.contains("path.reverse.queue = \"step\" has no effect"), "{acks_only}");
}

#[test]
fn setting_effective_in_any_alternative_unnoted() {
    let text = |compare: &str| {
        format!(
            "duration = \"1 s\"\ncompare = {compare}\nhosts.pacing = true\n[path]\nrate = \"20 Mbit/s\"\nrtt = \"20 ms\"\n\
             queue = \"step\"\n"
        )
    };
    assert!(notes_of(&text("[\"bbr1\", \"dctcp\"]")).is_empty());
    assert_eq!(notes_of(&text("[\"bbr1\", \"bbr3\"]")).len(), 2);
}
