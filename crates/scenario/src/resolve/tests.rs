//! What resolves, and what does not and why.

use fullpipe_path::Ecn;
use fullpipe_path::config::{AdmissionUnit, ElementConfig, Probability, QueueConfig, Schedule};
use fullpipe_units::Time;

use super::*;
use crate::spec::{EcnUse, Transfer, Workload};

mod any;
mod files;
mod notes;
mod queues;
mod refused;
mod specs;

const PATH: &str = "[path]\nrate = \"100 Mbit/s\"\nrtt = \"40 ms\"\nbuffer = \"1 bdp\"\n";
const FLOW: &str = "[[flows]]\ncontroller = \"bbr1\"\n";

fn toml(text: &str) -> Spec {
    resolve(text, Format::Toml, None).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn error(text: &str) -> ScenarioError {
    match resolve_all(text, Format::Toml, None) {
        Err(error) => error,
        Ok(specs) => panic!("resolved to {specs:?}\n{text}"),
    }
}

/// The error of a scenario whose path has these lines besides, or instead of, the usual.
fn path_error(lines: &str) -> String {
    let mut path: Vec<String> =
        ["rate = \"100 Mbit/s\"", "rtt = \"40 ms\"", "buffer = \"1 bdp\""].map(String::from).to_vec();
    for line in lines.lines().take_while(|line| !line.starts_with('[')) {
        let key = line.split(' ').next().unwrap_or_default();
        path.retain(|usual| !usual.starts_with(key));
    }
    error(&format!("[path]\n{}\n{lines}\n{FLOW}", path.join("\n"))).to_string()
}

fn flow_error(lines: &str) -> String {
    error(&format!("{PATH}[[flows]]\n{lines}\n")).to_string()
}

fn assert_all(error: &str, parts: &[&str]) {
    for part in parts {
        assert!(error.contains(part), "{part:?} is missing in {error:?}");
    }
}

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn controller_ecn_overrides_host_setting() {
    let uses = |ecn: &str| {
        let text = format!(
            r#"
            path = {{ rate = "10 Mbit/s", rtt = "20 ms" }}
            {ecn}
            flows = [{{ controller = "cubic" }}, {{ controller = "dctcp" }}, {{ controller = "dctcp:ect1=1" }}, {{ controller = "bbr1" }}]
            "#
        );
        let spec = crate::resolve(&text, crate::Format::Toml, None).unwrap();
        let uses: Vec<EcnUse> = spec.flows.iter().map(|flow| flow.ecn(&spec.hosts)).collect();
        (uses, spec.to_json().contains("ecn"))
    };
    let exact = [EcnUse::Exact(Ecn::Ect0), EcnUse::Exact(Ecn::Ect1)];
    let classic = [EcnUse::Classic, exact[0], exact[1], EcnUse::Classic].to_vec();
    let none = [EcnUse::None, exact[0], exact[1], EcnUse::None].to_vec();
    assert_eq!(uses("hosts = { ecn = true }"), (classic, true));
    // Specs without it are those of before.
    for default in ["", "hosts = { ecn = false }"] {
        assert_eq!(uses(default), (none.clone(), false));
    }
}

#[test]
fn minimal_scenario_resolves_with_defaults() {
    let spec = toml(&format!("{PATH}{FLOW}"));
    assert_eq!(spec.name, "scenario");
    assert_eq!(spec.duration_ns, Duration::from_secs(20));
    assert_eq!((spec.mtu_bytes, spec.mss(), spec.seed), (1500, 1448, 1));
    let bottleneck = ElementConfig::Link {
        name: "bottleneck".into(),
        rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
        // 100 Mbit/s times 40 ms.
        queue: QueueConfig::drop_tail(Bytes::new(500_000), None),
    };
    let half = ElementConfig::Delay { delay_ns: Schedule::constant(millis(20)) };
    assert_eq!(spec.forward, [bottleneck, half.clone()]);
    assert_eq!(spec.reverse, [half]);
    let most = Bytes::new(2_147_483_647);
    assert_eq!(spec.hosts.tcp_rmem_bytes, [Bytes::new(4096), Bytes::new(131_072), most]);
    assert_eq!(spec.hosts.tcp_wmem_bytes, [Bytes::new(4096), Bytes::new(16_384), most]);
    assert_eq!((spec.hosts.pacing, spec.hosts.gro_ns, spec.hosts.ecn), (false, Duration::ZERO, false));
    assert_eq!(spec.hosts.gso_max_segs, u16::MAX);
    let [flow] = &spec.flows[..] else { panic!("{:?}", spec.flows) };
    assert_eq!((flow.label.as_str(), flow.controller.text()), ("bbr1", "bbr1"));
    assert_eq!((flow.start_ns, flow.start_jitter_ns, flow.stop_ns), (Time::ZERO, millis(40), None));
    assert_eq!((&flow.workload, flow.max_cwnd), (&Workload::Bulk, None));
    assert_eq!((flow.extra_forward_ns, flow.extra_reverse_ns), (Duration::ZERO, Duration::ZERO));
    assert_eq!(spec.sample_interval_ns, Some(millis(10)));
}

#[test]
fn everything_that_may_be_said_resolves() {
    let spec = toml(
        r#"
        name = "everything"
        duration = "60 s"
        seed = 7
        [path]
        rate = "10 Mbit/s"
        rtt = "40 ms"
        buffer = "20 packets"
        loss = "0.1 %"
        jitter = "2 ms"
        jitter_reorders = true
        changes = [{ at = "20 s", rate = "20 Mbit/s" }, { at = "40 s", rtt = "60 ms", loss = 0.25 }]
        [[path.before]]
        kind = "policer"
        rate = "20 Mbit/s"
        burst = "100 KB"
        [[path.before]]
        kind = "token_bucket"
        rate = "20 Mbit/s"
        burst = "3 packets"
        buffer = "1 bdp"
        [[path.after]]
        kind = "gilbert_elliott"
        good_to_bad = "0.1 %"
        bad_to_good = "10 %"
        [[path.after]]
        kind = "link"
        rate = "50 Mbit/s"
        buffer = "20 KB"
        changes = [{ at = "1 s", rate = "5 Mbit/s" }]
        [[path.after]]
        kind = "link"
        rate = "50 Mbit/s"
        buffer = 20000
        [[path.after]]
        kind = "duplicate"
        probability = "1 %"
        [[path.after]]
        kind = "reorder"
        probability = "1 %"
        delay = "5 ms"
        [[path.after]]
        kind = "jitter"
        amplitude = "1 ms"
        [[path.after]]
        kind = "cellular"
        rates = ["5 Mbit/s", "10 Mbit/s"]
        review = "100 ms"
        demand = "10 ms"
        buffer = "2 bdp"
        [[path.after]]
        kind = "aggregate"
        every = "5 ms"
        [[path.after]]
        kind = "loss"
        probability = 0
        changes = [{ at = "1 s", probability = "2 %" }]
        [[path.after]]
        kind = "delay"
        delay = "1 ms"
        changes = [{ at = "1 s", delay = "2 ms" }]
        [path.reverse]
        rate = "1 Mbit/s"
        loss = "1 %"
        jitter = "1 ms"
        changes = [{ at = "1 s", rate = "2 Mbit/s", loss = "0" }]
        [hosts]
        mtu = 9000
        tcp_memory = "ubuntu-18.10"
        tcp_wmem = ["4096", 16384, "8 MB"]
        pacing = true
        gro = "50 us"
        [[flows]]
        controller = "bbr1:probe_gain=1.5"
        count = 2
        start = "1 s"
        stagger = "2 s"
        start_jitter = 0
        stop = "30 s"
        rtt = "81 ms"
        max_cwnd = "2 bdp"
        [[flows]]
        controller = "cubic"
        label = "short"
        size = "10 MB"
        [[flows]]
        controller = "reno"
        bursts = { size = "100 KB", every = "250 ms" }
        [[flows]]
        controller = "reno"
        label = "page"
        requests = { size = "64 KB", pause = "1 s" }
        [[flows]]
        controller = "reno"
        label = "video"
        video = { rate = "5 Mbit/s", chunk = "3.0001 ms", buffer = "1 s" }
        [[flows]]
        controller = "reno"
        label = "script"
        transfers = [{ size = "1 B" }, { size = "12 KB", pause = "300 ms" }]
        [record]
        interval = "5 ms"
        "#,
    );
    let kinds: Vec<String> = spec.forward.iter().map(|element| format!("{element:?}")).collect();
    let order = [
        "Policer",
        "TokenBucket",
        "Link",
        "Loss",
        "Jitter",
        "GilbertElliott",
        "Link",
        "Link",
        "Duplicate",
        "Reorder",
        "Jitter",
        "Cellular",
        "Aggregate",
        "Loss",
        "Delay",
        "Delay",
    ];
    assert_eq!(kinds.len(), order.len());
    for (kind, expected) in kinds.iter().zip(order) {
        assert!(kind.starts_with(expected), "{kind} is not a {expected}");
    }
    for name in ["policer", "token_bucket", "bottleneck", "link", "link-2"] {
        assert!(kinds.iter().any(|kind| kind.contains(&format!("name: {name:?}"))), "{name} in {kinds:?}");
    }
    let at = |secs| Time::ZERO + Duration::from_secs(secs);
    let ElementConfig::Link { rate_bps, queue, .. } = &spec.forward[2] else { panic!("{kinds:?}") };
    assert_eq!(rate_bps.changes, [(at(20), Rate::from_bits_per_sec(20_000_000))]);
    assert_eq!(*queue, QueueConfig::drop_tail(Bytes::new(180_000), Some(20)));
    let ElementConfig::Loss { probability, .. } = &spec.forward[3] else { panic!("{kinds:?}") };
    assert_eq!(probability.initial, Probability::from_f64(0.001));
    assert_eq!(probability.changes, [(at(40), Probability::from_f64(0.25))]);
    let path_delay = Schedule { initial: millis(20), changes: vec![(at(40), millis(30))] };
    assert_eq!(spec.forward[15], ElementConfig::Delay { delay_ns: path_delay.clone() });
    assert_eq!(spec.reverse.last(), Some(&ElementConfig::Delay { delay_ns: path_delay }));
    let ElementConfig::Link { name, queue, .. } = &spec.reverse[0] else { panic!("{:?}", spec.reverse) };
    assert_eq!((name.as_str(), queue.packets), ("reverse", Some(1000)));
    assert_eq!(spec.hosts.tcp_rmem_bytes[2], Bytes::new(6_291_456));
    assert_eq!(spec.hosts.tcp_wmem_bytes[2], Bytes::new(8_000_000));

    let labels: Vec<&str> = spec.flows.iter().map(|flow| flow.label.as_str()).collect();
    assert_eq!(
        labels,
        ["bbr1:probe_gain=1.5-1", "bbr1:probe_gain=1.5-2", "short", "reno", "page", "video", "script"]
    );
    assert_eq!((spec.flows[0].start_ns, spec.flows[1].start_ns), (at(1), at(3)));
    let extra = Duration::from_micros(20_500);
    assert_eq!((spec.flows[0].extra_forward_ns, spec.flows[0].extra_reverse_ns), (extra, extra));
    // 10 Mbit/s times 81 ms is 101 250 bytes; two of them are 22.5 packets of 9000 bytes.
    assert_eq!(spec.flows[0].max_cwnd, Some(22));
    assert_eq!(spec.flows[2].workload, Workload::Finite { size_bytes: Bytes::new(10_000_000) });

    // 8948 bytes a segment: twelve of them hold 100 KB.
    let bursts = Workload::Bursts { size_bytes: Bytes::new(12 * 8948), every_ns: Duration::from_millis(250) };
    assert_eq!(spec.flows[3].workload, bursts);
    let requests = Workload::Requests { size_bytes: Bytes::new(64_000), pause_ns: Duration::from_secs(1) };
    assert_eq!(spec.flows[4].workload, requests);
    // 5 Mbit/s for 3.0001 ms are 1875.0625 bytes.
    let video = Workload::Video {
        chunk_bytes: Bytes::new(1876),
        chunk_ns: Duration::from_nanos(3_000_100),
        buffer_ns: Duration::from_secs(1),
    };
    assert_eq!(spec.flows[5].workload, video);
    let transfer = |size, pause| Transfer { size_bytes: Bytes::new(size), pause_ns: millis(pause) };
    let script = Workload::Script { transfers: [transfer(1, 0), transfer(12_000, 300)].into() };
    assert_eq!(spec.flows[6].workload, script);
    assert_eq!(script.total_bytes(), Some(Bytes::new(12_001)));

    let again = Spec::from_json(&spec.to_json()).unwrap();
    assert_eq!(again, spec);
    assert_eq!(again.to_json(), spec.to_json());
}

#[test]
fn json_resolves_like_toml() {
    let json = r#"{ "name": null, "path": { "rate": "100mbit", "rtt": "40ms", "buffer": "1bdp", "loss": null },
                    "flows": [{ "controller": "bbr" }] }"#;
    assert_eq!(resolve(json, Format::Json, None).unwrap(), toml(&format!("{PATH}{FLOW}")));
}

#[test]
fn compare_yields_one_spec_per_controller() {
    let specs = resolve_all(&format!("compare = [\"bbr1\", \"cubic\"]\n{PATH}"), Format::Toml, None).unwrap();
    let labels: Vec<&str> = specs.iter().map(|(label, _)| label.as_str()).collect();
    assert_eq!(labels, ["bbr1", "cubic"]);
    for (label, spec) in &specs {
        assert_eq!(spec.flows.len(), 1);
        assert_eq!(spec.flows[0].controller.text(), label);
    }
    assert_eq!(specs[0].1.forward, specs[1].1.forward);
}

#[test]
fn compare_keeps_explicit_flow_controllers() {
    let text =
        format!("compare = [\"bbr1\", \"reno\"]\n{PATH}[[flows]]\n[[flows]]\ncontroller = \"cubic\"\n");
    let specs = resolve_all(&text, Format::Toml, None).unwrap();
    let of = |index: usize| specs[index].1.flows.iter().map(|flow| flow.label.as_str()).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec!["bbr1", "cubic"], vec!["reno", "cubic"]));
}

#[test]
fn without_compare_label_is_scenario_name() {
    let specs = resolve_all(&format!("name = \"mine\"\n{PATH}{FLOW}"), Format::Toml, None).unwrap();
    assert_eq!(specs[0].0, "mine");
}

#[test]
fn token_bucket_can_be_bottleneck() {
    let spec = toml(
        &PATH.replace("rtt", "burst = \"15 KB\"\nrtt").replace("[path]", "compare = [\"bbr1\"]\n[path]"),
    );
    let ElementConfig::TokenBucket { burst_bytes, queue, .. } = &spec.forward[0] else { panic!("{spec:?}") };
    assert_eq!((burst_bytes.as_u64(), queue.bytes.as_u64()), (15_000, 500_000));
}

#[test]
fn router_counts_frames_and_admits_bursts() {
    let router = |more: &str| {
        let words = format!("router = \"tbf\"\nburst = \"15 KB\"\nloss = 0.1\n{more}\nrtt");
        toml(&format!("{}{FLOW}", PATH.replace("rtt", &words)))
    };
    let spec = router("");
    let ElementConfig::TokenBucket { frame_bytes, queue, .. } = &spec.forward[0] else { panic!("{spec:?}") };
    assert_eq!((*frame_bytes, queue.unit), (14, AdmissionUnit::Burst));
    assert_eq!(spec.forward[1].unit(), AdmissionUnit::Burst);
    assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec);
    let singly = toml(&format!("{PATH}[hosts]\ngso_max_segs = 1\n{FLOW}"));
    assert_eq!(Spec::from_json(&singly.to_json()).unwrap().hosts.gso_max_segs, 1);
    let split = router("unit = \"segment\"");
    assert_eq!([split.forward[0].unit(), split.forward[1].unit()], [AdmissionUnit::Segment; 2]);
}

#[test]
fn larger_runs_sample_less_often() {
    let interval = |text: &str| toml(text).sample_interval_ns.map(Duration::as_millis);
    assert_eq!(interval(&format!("duration = \"200 s\"\n{PATH}{FLOW}")), Some(10));
    assert_eq!(interval(&format!("duration = \"1 h\"\n{PATH}{FLOW}")), Some(181));
    assert_eq!(interval(&format!("{PATH}{FLOW}count = 10000\n")), Some(21));
    assert_eq!(interval(&format!("{PATH}{FLOW}count = 10000\n[record]\nflows = false\n")), Some(10));
}

#[test]
fn runs_without_series_are_still_sampled() {
    let spec = toml(&format!("{PATH}{FLOW}[record]\nseries = false\n"));
    assert_eq!((spec.sample_interval_ns, spec.keep_series), (Some(Duration::from_millis(10)), false));
    assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec);
    assert!(toml(&format!("{PATH}{FLOW}")).keep_series);
}
