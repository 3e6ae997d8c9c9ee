//! What resolves, and what does not and why.

use fullpipe_path::config::{ElementConfig, Probability, QueueLimit, Schedule};
use fullpipe_units::Time;
use proptest::prelude::*;

use super::*;
use crate::spec::{Transfer, Workload};

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
fn a_short_scenario_resolves_with_every_default() {
    let spec = toml(&format!("{PATH}{FLOW}"));
    assert_eq!(spec.name, "scenario");
    assert_eq!(spec.duration_ns, Duration::from_secs(20));
    assert_eq!((spec.mtu_bytes, spec.mss(), spec.seed), (1500, 1448, 1));
    let bottleneck = ElementConfig::Link {
        name: "bottleneck".into(),
        rate_bps: Schedule::constant(Rate::from_bits_per_sec(100_000_000)),
        // 100 Mbit/s times 40 ms.
        queue: QueueLimit { bytes: Bytes::new(500_000), packets: None },
    };
    let half = ElementConfig::Delay { delay_ns: Schedule::constant(millis(20)) };
    assert_eq!(spec.forward, [bottleneck, half.clone()]);
    assert_eq!(spec.reverse, [half]);
    let most = Bytes::new(2_147_483_647);
    assert_eq!(spec.hosts.tcp_rmem_bytes, [Bytes::new(4096), Bytes::new(131_072), most]);
    assert_eq!(spec.hosts.tcp_wmem_bytes, [Bytes::new(4096), Bytes::new(16_384), most]);
    assert_eq!((spec.hosts.pacing, spec.hosts.gro_ns), (false, Duration::ZERO));
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
    assert_eq!(*queue, QueueLimit { bytes: Bytes::new(180_000), packets: Some(20) });
    let ElementConfig::Loss { probability } = &spec.forward[3] else { panic!("{kinds:?}") };
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
fn json_of_the_same_shape_is_the_same_scenario() {
    let json = r#"{ "name": null, "path": { "rate": "100mbit", "rtt": "40ms", "buffer": "1bdp", "loss": null },
                    "flows": [{ "controller": "bbr" }] }"#;
    assert_eq!(resolve(json, Format::Json, None).unwrap(), toml(&format!("{PATH}{FLOW}")));
}

#[test]
fn compare_gives_one_spec_for_each_controller() {
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
fn compare_leaves_flows_with_a_controller_alone() {
    let text =
        format!("compare = [\"bbr1\", \"reno\"]\n{PATH}[[flows]]\n[[flows]]\ncontroller = \"cubic\"\n");
    let specs = resolve_all(&text, Format::Toml, None).unwrap();
    let of = |index: usize| specs[index].1.flows.iter().map(|flow| flow.label.as_str()).collect::<Vec<_>>();
    assert_eq!((of(0), of(1)), (vec!["bbr1", "cubic"], vec!["reno", "cubic"]));
}

#[test]
fn without_compare_the_label_is_the_name() {
    let specs = resolve_all(&format!("name = \"mine\"\n{PATH}{FLOW}"), Format::Toml, None).unwrap();
    assert_eq!(specs[0].0, "mine");
}

#[test]
fn a_token_bucket_can_be_the_bottleneck() {
    let spec = toml(
        &PATH.replace("rtt", "burst = \"15 KB\"\nrtt").replace("[path]", "compare = [\"bbr1\"]\n[path]"),
    );
    let ElementConfig::TokenBucket { burst_bytes, queue, .. } = &spec.forward[0] else { panic!("{spec:?}") };
    assert_eq!((burst_bytes.as_u64(), queue.bytes.as_u64()), (15_000, 500_000));
}

#[test]
fn long_runs_and_many_flows_are_sampled_less_often_by_default() {
    let interval = |text: &str| toml(text).sample_interval_ns.map(Duration::as_millis);
    assert_eq!(interval(&format!("duration = \"200 s\"\n{PATH}{FLOW}")), Some(10));
    assert_eq!(interval(&format!("duration = \"1 h\"\n{PATH}{FLOW}")), Some(181));
    assert_eq!(interval(&format!("{PATH}{FLOW}count = 10000\n")), Some(21));
    assert_eq!(interval(&format!("{PATH}{FLOW}[record]\nseries = false\n")), None);
    assert_eq!(interval(&format!("{PATH}{FLOW}count = 10000\n[record]\nflows = false\n")), Some(10));
}

#[test]
fn a_bad_controller_names_the_flow_or_the_place_in_the_list() {
    assert_all(
        &flow_error("controller = \"brr1\""),
        &["flows[0].controller: \"brr1\"", "did you mean bbr1?"],
    );
    assert_all(
        &flow_error("controller = \"bbr1:prob_gain=2\""),
        &["flows[0].controller", "did you mean probe_gain?"],
    );
    assert_all(&flow_error("label = \"a\""), &["flows[0].controller: nothing is given", "bbr1"]);
    let compared = |list: &str| error(&format!("compare = {list}\n{PATH}")).to_string();
    assert_all(&compared("[\"bbr1\", \"qubic\"]"), &["compare[1]: \"qubic\"", "did you mean cubic?"]);
    assert_all(&compared("[\"bbr1\", \"bbr\"]"), &["compare[1]", "listed twice"]);
    assert_all(&compared("[]"), &["compare", "empty list"]);
    let unchanged = error(&format!("compare = [\"bbr1\"]\n{PATH}{FLOW}")).to_string();
    assert_all(&unchanged, &["compare", "would not change any flow"]);
    assert_all(&error(PATH).to_string(), &["flows: nothing is given", "[[flows]]"]);
}

#[test]
fn a_bad_rate_says_what_a_rate_is() {
    for (given, problem) in [
        ("100 parsecs", "unknown unit"),
        ("0 Mbit/s", "is zero"),
        ("-5 Mbit/s", "is negative"),
        ("nan", "is not a finite number"),
        ("inf", "is not a finite number"),
        ("", "is empty"),
        ("100", "the unit is missing"),
        ("10 bit/s", "is below 1 kbit/s"),
        ("2 Tbit/s", "is above 1000 Gbit/s"),
        ("1e30 Gbit/s", "is too large"),
    ] {
        assert_all(
            &path_error(&format!("rate = \"{given}\"")),
            &["path.rate: ", &format!("{given:?}"), problem, "expected", "write rate = \"100 Mbit/s\""],
        );
    }
    for given in ["100", "1.5", "nan", "-inf", "-5"] {
        assert_all(&path_error(&format!("rate = {given}")), &["path.rate: ", "write rate"]);
    }
    assert_all(&path_error("rate = true"), &["path.rate: boolean `true` does not belong here", "100 Mbit/s"]);
    assert_all(&path_error("rate = [1]"), &["path.rate: a list does not belong here"]);
}

#[test]
fn a_bad_path_names_the_field() {
    assert_all(&path_error("rtt = \"11 s\""), &["path.rtt", "above 10 s"]);
    assert_all(&path_error("rtt = \"40\""), &["path.rtt", "unit is missing"]);
    assert_all(&path_error("buffer = \"1000 B\""), &["path.buffer", "below one packet", "1500 bytes"]);
    assert_all(&path_error("buffer = \"0.001 bdp\""), &["path.buffer", "below one packet (500 B)"]);
    assert_all(&path_error("buffer = \"0 packets\""), &["path.buffer", "below one packet"]);
    assert_all(&path_error("buffer = \"1 PB\""), &["path.buffer", "unknown unit"]);
    assert_all(&path_error("buffer = \"2 TB\""), &["path.buffer", "above 1000 GB"]);
    assert_all(&path_error("loss = \"101 %\""), &["path.loss", "above 100 %"]);
    assert_all(&path_error("loss = 1"), &["path.loss", "could be 1 % or 100 %"]);
    assert_all(&path_error("loss = -0.1"), &["path.loss", "negative"]);
    assert_all(&path_error("jitter = \"1 h\""), &["path.jitter", "above 10 s"]);
    assert_all(&path_error("jitter_reorders = true"), &["path.jitter: nothing is given"]);
    assert_all(&path_error("burst = \"100 B\""), &["path.burst", "below one packet"]);
    assert_all(&path_error("rtt = \"0\""), &["path.buffer", "below one packet (0 B)"]);
    assert_all(&error(FLOW).to_string(), &["path: nothing is given", "write path"]);
    assert_all(
        &error(&format!("[path]\nrtt = \"1 ms\"\n{FLOW}")).to_string(),
        &["path.rate: nothing is given"],
    );
    let no_rtt = format!("[path]\nrate = \"1 Mbit/s\"\n{FLOW}");
    assert_all(&error(&no_rtt).to_string(), &["path.rtt: nothing is given", "write rtt = \"40 ms\""]);
    let reverse = path_error("[path.reverse]\nbuffer = \"1 MB\"");
    assert_all(&reverse, &["path.reverse.rate: nothing is given"]);
}

#[test]
fn bad_changes_name_their_place() {
    let changes = |list: &str| path_error(&format!("changes = [{list}]"));
    assert_all(&changes("{ rate = \"1 Mbit/s\" }"), &["path.changes[0].at: nothing is given"]);
    assert_all(&changes("{ at = \"1 s\" }"), &["path.changes[0]: nothing is given", "rate, rtt or loss"]);
    assert_all(&changes("{ at = 0, loss = 0 }"), &["path.changes[0].at", "is the start"]);
    let backwards = changes("{ at = \"2 s\", loss = 0 }, { at = \"1 s\", loss = 0 }");
    assert_all(&backwards, &["path.changes[1].at", "not after the change before"]);
    assert_all(&changes("{ at = \"1 h\", loss = 0 }"), &["path.changes[0].at", "not before the end (20 s)"]);
    assert_all(&changes("{ at = \"1 s\", rate = \"0 bit/s\" }"), &["path.changes[0].rate", "is zero"]);
    let bucket = path_error("burst = \"15 KB\"\nchanges = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]");
    assert_all(&bucket, &["path.changes", "token bucket"]);
}

#[test]
fn bad_elements_name_their_place() {
    let before = |lines: &str| path_error(&format!("[[path.before]]\n{lines}"));
    assert_all(&before("rate = \"1 Mbit/s\""), &["path.before[0].kind: nothing is given", "policer"]);
    assert_all(&before("kind = \"polizer\""), &["path.before[0].kind: \"polizer\"", "did you mean policer?"]);
    assert_all(&before("kind = 3"), &["path.before[0].kind", "policer"]);
    assert_all(
        &before("kind = \"policer\"\nrat = \"1 Mbit/s\""),
        &["path.before[0].rat: \"rat\" is not a known key", "did you mean rate?"],
    );
    assert_all(&before("kind = \"policer\"\nburst = \"1 MB\""), &["path.before[0].rate: nothing is given"]);
    assert_all(
        &before("kind = \"jitter\"\namplitude = \"1 ms\"\nreorders = \"yes\""),
        &["path.before[0].reorders: string \"yes\" does not belong here", "a boolean"],
    );
    assert_all(&before("kind = \"aggregate\""), &["path.before[0].every: nothing is given"]);
    assert_all(&before("kind = \"aggregate\"\nevery = 0"), &["path.before[0].every", "is zero", "from 1 us"]);
    let radio = "kind = \"cellular\"\nreview = \"100 ms\"\ndemand = \"10 ms\"\nbuffer = \"1 MB\"\n";
    assert_all(&before(radio), &["path.before[0].rates: nothing is given", "rates that rise"]);
    let falling = format!("{radio}rates = [\"2 Mbit/s\", \"2 Mbit/s\"]");
    assert_all(&before(&falling), &["path.before[0].rates[1]", "not above the one before"]);
    let link = "kind = \"link\"\nrate = \"1 Mbit/s\"\n";
    assert_all(&before(link), &["path.before[0].buffer: nothing is given"]);
    assert_all(&before(&format!("{link}buffer = \"10 B\"")), &["path.before[0].buffer", "below one packet"]);
    let named = format!("{link}buffer = \"1 MB\"\nname = \"bottleneck\"");
    assert_all(&before(&named), &["path.before[0].name", "name of another element"]);
    assert_all(&path_error("before = [\"policer\"]"), &["path.before[0]"]);
}

#[test]
fn bad_hosts_name_the_field() {
    let hosts = |line: &str| error(&format!("{PATH}{FLOW}[hosts]\n{line}\n")).to_string();
    assert_all(&hosts("mtu = 575"), &["hosts.mtu: \"575\" is below 576", "write mtu = 1500"]);
    assert_all(&hosts("mtu = 65536"), &["hosts.mtu", "above 65535"]);
    assert_all(&hosts("mtu = 1500.5"), &["hosts.mtu", "not whole"]);
    assert_all(&hosts("tcp_memory = \"huge\""), &["hosts.tcp_memory: \"huge\"", "max, linux, ubuntu-18.10"]);
    assert_all(&hosts("tcp_rmem = [\"1 KB\", \"2 KB\"]"), &["hosts.tcp_rmem", "has 2 sizes"]);
    assert_all(&hosts("tcp_rmem = [\"3 KB\", \"2 KB\", \"4 KB\"]"), &["hosts.tcp_rmem", "ascending"]);
    assert_all(&hosts("tcp_wmem = [0, 1, 2]"), &["hosts.tcp_wmem[0]", "is zero"]);
    assert_all(&hosts("tcp_wmem = [1, 1, \"3 GB\"]"), &["hosts.tcp_wmem[2]", "2^31 - 1"]);
    assert_all(&hosts("pacing = 1"), &["hosts.pacing", "a boolean"]);
}

#[test]
fn bad_flows_name_their_place() {
    let flow = |lines: &str| flow_error(&format!("controller = \"bbr1\"\n{lines}"));
    assert_all(&flow("count = 0"), &["flows[0].count", "is zero"]);
    assert_all(&flow("count = 100001"), &["flows[0].count", "above 100000"]);
    assert_all(&flow("start = \"20 s\""), &["flows[0].start", "before the end (20 s)"]);
    assert_all(&flow("count = 3\nstagger = \"10 s\""), &["flows[0].stagger", "start at 20 s"]);
    assert_all(&flow("start = \"2 s\"\nstop = \"2 s\""), &["flows[0].stop", "not after the start"]);
    assert_all(&flow("rtt = \"10 ms\""), &["flows[0].rtt", "below the path's round-trip time (40 ms)"]);
    assert_all(&flow("size = \"0 B\""), &["flows[0].size", "is zero"]);
    assert_all(
        &flow("size = \"1 MB\"\nbursts = { size = \"1 MB\", every = \"1 s\" }"),
        &["flows[0].size", "stands beside bursts", "leave out size, or bursts"],
    );
    assert_all(
        &flow("bursts = { every = \"1 s\" }"),
        &["flows[0].bursts.size: nothing is given", "expected an amount", "200 KB"],
    );
    assert_all(
        &flow("bursts = { size = \"1 MB\" }"),
        &["flows[0].bursts.every: nothing is given", "expected a time", "500 ms"],
    );
    assert_all(
        &flow("bursts = { size = \"0 B\", every = \"1 s\" }"),
        &["flows[0].bursts.size", "is zero", "at least one byte"],
    );
    assert_all(
        &flow("bursts = { size = \"1 MB\", every = \"1 us\" }"),
        &["flows[0].bursts.every", "below 1 ms"],
    );
    assert_all(
        &flow("requests = { size = \"1 MB\" }\ntransfers = []"),
        &["flows[0].requests", "stands beside transfers"],
    );
    assert_all(&flow("requests = { pause = 0 }"), &["flows[0].requests.size: nothing is given", "64 KB"]);
    assert_all(&flow("requests = { size = \"1 KB\", pause = \"2 days\" }"), &["flows[0].requests.pause"]);
    assert_all(&flow("video = { chunk = \"1 s\" }"), &["flows[0].video.rate: nothing is given", "5 Mbit/s"]);
    assert_all(&flow("video = { rate = \"1 Mbit/s\", chunk = 0 }"), &["flows[0].video.chunk", "is zero"]);
    assert_all(
        &flow("video = { rate = \"1 Mbit/s\", buffer = \"3 s\" }"),
        &["flows[0].video.buffer: \"3 s\" holds no chunk of 4 s", "at least 4 s"],
    );
    assert_all(
        &flow("video = { rate = \"1 Tbit/s\", chunk = \"3 h\", buffer = \"3 h\" }"),
        &["flows[0].video.chunk: \"3 h\" holds more than"],
    );
    assert_all(
        &flow("transfers = [{ size = \"600 TB\" }, { size = \"600 TB\" }]"),
        &["flows[0].transfers", "are more than"],
    );
    assert_all(&flow("transfers = []"), &["flows[0].transfers: \"0 transfers\"", "1 to 100000 transfers"]);
    assert_all(
        &flow("transfers = [{ size = \"1 KB\" }, { pause = 0 }]"),
        &["flows[0].transfers[1].size: nothing is given", "12 KB"],
    );
    assert_all(
        &flow("transfers = [{ size = \"1 KB\", pause = \"soon\" }]"),
        &["flows[0].transfers[0].pause"],
    );
    assert_all(&flow("max_cwnd = \"100 B\""), &["flows[0].max_cwnd", "below one packet"]);
    assert_all(&flow("max_cwnd = \"2000000000 packets\""), &["flows[0].max_cwnd", "above"]);
    assert_all(&flow("label = \"\""), &["flows[0].label", "is empty"]);
    let taken = flow("count = 2\n[[flows]]\ncontroller = \"cubic\"\nlabel = \"bbr1-2\"");
    assert_all(&taken, &["flows[1].label: \"bbr1-2\" is taken"]);
    let many = flow("count = 60000\n[[flows]]\ncontroller = \"cubic\"\ncount = 60000");
    assert_all(&many, &["flows[1].count", "120000"]);
}

#[test]
fn a_bad_top_level_names_the_field() {
    let top = |line: &str| error(&format!("{line}\n{PATH}{FLOW}")).to_string();
    assert_all(&top("duration = \"0 s\""), &["duration: \"0 s\" is zero"]);
    assert_all(&top("duration = \"25 h\""), &["duration", "above 86400 s"]);
    assert_all(&top("name = \"\""), &["name", "is empty"]);
    assert_all(&top("name = 5"), &["name: integer `5` does not belong here", "a string"]);
    assert_all(&top("seed = -1"), &["seed", "is negative"]);
    assert_all(
        &top("duraton = \"1 s\""),
        &["duraton: \"duraton\" is not a known key", "did you mean duration?"],
    );
    assert_all(&top("zebra = 1"), &["zebra", "not a known key", "name, duration, seed", "fullpipe schema"]);
    let record = |line: &str| error(&format!("{PATH}{FLOW}[record]\n{line}\n")).to_string();
    assert_all(&record("interval = \"100 us\""), &["record.interval", "200000 samples", "at most 20000"]);
    assert_all(&record("interval = 0"), &["record.interval", "is zero"]);
}

#[test]
fn a_syntax_error_names_line_and_column() {
    let toml = error("name = \"a\"\n[path\nrate = 1\n");
    assert!(toml.field.starts_with("line 2, column "), "{toml}");
    assert_all(&toml.to_string(), &["\"[path\" is not TOML"]);
    let twice = error("name = \"a\"\nname = \"b\"\n");
    assert_all(&twice.to_string(), &["line 2, column 1", "duplicate key"]);
    let json = resolve("{\n  \"path\": ,\n}", Format::Json, None).unwrap_err();
    assert_all(&json.to_string(), &["line 2, column ", "is not JSON: expected value"]);
    let twice = resolve("{ \"name\": \"a\", \"name\": \"b\" }", Format::Json, None).unwrap_err();
    assert_all(&twice.to_string(), &["given twice"]);
    assert_all(&resolve("[]", Format::Json, None).unwrap_err().to_string(), &["a table"]);
    assert_all(&resolve("", Format::Json, None).unwrap_err().to_string(), &["is not JSON"]);
}

#[test]
fn one_spec_is_not_several() {
    let several =
        resolve(&format!("compare = [\"bbr1\", \"cubic\"]\n{PATH}"), Format::Toml, None).unwrap_err();
    assert_all(&several.to_string(), &["compare: \"2 controllers\""]);
}

/// A folder of its own for a test, removed at its end.
struct Folder(std::path::PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("fullpipe-scenario-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn write(&self, name: &str, content: &[u8]) -> std::path::PathBuf {
        fs::write(self.0.join(name), content).unwrap();
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const TRACE: &str =
    "compare = [\"bbr1\"]\n[path]\ntrace = \"t.trace\"\nrtt = \"40 ms\"\nbuffer = \"1 bdp\"\n";

#[test]
fn a_trace_is_read_beside_the_scenario_and_has_a_mean_rate() {
    let folder = Folder::new("good");
    folder.write("t.trace", b"1\n1\n2\n4\n");
    let scenario = folder.write("s.toml", TRACE.as_bytes());
    let specs = resolve_file(&scenario).unwrap();
    let ElementConfig::DeliveryTrace { opportunities_ms, queue, .. } = &specs[0].1.forward[0] else {
        panic!("{specs:?}")
    };
    assert_eq!(**opportunities_ms, [1, 1, 2, 4]);
    // One packet a millisecond on average, for 40 ms.
    assert_eq!(queue.bytes, Bytes::new(60_000));
    assert_eq!(resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap(), specs[0].1);
    assert_eq!(Spec::from_json(&specs[0].1.to_json()).unwrap(), specs[0].1);
}

#[test]
fn a_bad_trace_names_the_file_and_the_line() {
    let folder = Folder::new("bad");
    let trace_error = |content: &[u8]| {
        folder.write("t.trace", content);
        resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string()
    };
    for content in ["", "1\nx\n", "5\n4\n", "0\n", "-1\n", "1.5\n", "1\n\n2\n", "99999999999999999999999\n"] {
        let error = trace_error(content.as_bytes());
        assert_all(&error, &["path.trace: ", "is not a delivery trace", "expected", "mend the file"]);
    }
    assert_all(&trace_error(b"\xff\xfe\n"), &["path.trace: ", "cannot be read", "UTF-8"]);
    fs::remove_file(folder.0.join("t.trace")).unwrap();
    let missing = resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&missing, &["path.trace: ", "cannot be read: No such file", "check the path"]);
    fs::create_dir(folder.0.join("t.trace")).unwrap();
    let directory = resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&directory, &["path.trace: ", "is not a regular file"]);
    fs::remove_dir(folder.0.join("t.trace")).unwrap();
    // A file with a hole takes no space.
    fs::File::create(folder.0.join("t.trace")).unwrap().set_len(bounds::MAX_TRACE_FILE + 1).unwrap();
    let large = resolve(TRACE, Format::Toml, Some(&folder.0)).unwrap_err().to_string();
    assert_all(&large, &["path.trace: ", "is too large", "200 MB"]);
}

#[test]
fn a_trace_excludes_a_rate_and_its_changes() {
    let folder = Folder::new("excluded");
    folder.write("t.trace", b"1\n2\n");
    let with = |lines: &str| {
        let text = TRACE.replace("rtt", &format!("{lines}\nrtt"));
        resolve(&text, Format::Toml, Some(&folder.0)).unwrap_err().to_string()
    };
    assert_all(&with("rate = \"1 Mbit/s\""), &["path.trace", "either rate or trace"]);
    assert_all(&with("burst = \"1 MB\""), &["path.burst", "beside a trace"]);
    assert_all(
        &with("changes = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]"),
        &["path.changes", "cannot change a trace"],
    );
}

#[test]
fn an_unreadable_scenario_names_the_file() {
    let missing = resolve_file(Path::new("/nonexistent/s.toml")).unwrap_err().to_string();
    assert_all(&missing, &["scenario: \"/nonexistent/s.toml\" cannot be read", "check the path"]);
    assert_all(&resolve_file(Path::new("/")).unwrap_err().to_string(), &["is not a regular file"]);
}

#[test]
fn a_spec_from_elsewhere_is_held_against_the_limits() {
    let good = toml(&format!("{PATH}{FLOW}")).to_json();
    let spoiled = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        Spec::from_json(&good.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert_all(&spoiled("\"initial\":100000000", "\"initial\":0"), &["forward[0].rate_bps", "0 bit/s"]);
    assert_all(&spoiled("\"bytes\":500000", "\"bytes\":10"), &["forward[0].queue.bytes"]);
    assert_all(&spoiled("\"mtu_bytes\":1500", "\"mtu_bytes\":40"), &["mtu_bytes"]);
    assert_all(&spoiled("\"duration_ns\":20000000000", "\"duration_ns\":0"), &["duration_ns"]);
    assert_all(&spoiled("\"controller\":\"bbr1\"", "\"controller\":\"x\""), &["spec", "is not a controller"]);
    assert_all(&spoiled("131072", "1"), &["hosts.tcp_rmem_bytes"]);
    assert_all(
        &spoiled("\"sample_interval_ns\":10000000", "\"sample_interval_ns\":1"),
        &["sample_interval_ns"],
    );
    assert_all(&Spec::from_json("nonsense").unwrap_err().to_string(), &["spec: \"nonsense\" is not a spec"]);
}

#[test]
fn applications_from_elsewhere_are_held_against_the_limits() {
    let refused = |application: &str, from: &str, to: &str, expected: &str| {
        let good = toml(&format!("{PATH}{FLOW}{application}\n")).to_json();
        assert!(good.contains(from), "{from} in {good}");
        assert_all(&Spec::from_json(&good.replacen(from, to, 1)).unwrap_err().to_string(), &[expected]);
    };
    let size = "flows[0].workload.size_bytes";
    refused("size = 3000", "\"size_bytes\":3000", "\"size_bytes\":0", size);
    refused("bursts = { size = 1448, every = \"1 s\" }", "\"size_bytes\":1448", "\"size_bytes\":1449", size);
    let requests = "requests = { size = 3000 }";
    refused(requests, "\"size_bytes\":3000", "\"size_bytes\":1000000000000001", size);
    refused(requests, "\"pause_ns\":0", "\"pause_ns\":90000000000000", "flows[0].workload.pause_ns");
    let video = "video = { rate = \"8 Mbit/s\", chunk = \"4 s\", buffer = \"30 s\" }";
    refused(video, "\"chunk_bytes\":4000000", "\"chunk_bytes\":0", "flows[0].workload.chunk_bytes");
    refused(video, "\"chunk_ns\":4000000000", "\"chunk_ns\":0", "flows[0].workload.chunk_ns");
    refused(video, "\"buffer_ns\":30000000000", "\"buffer_ns\":3999999999", "flows[0].workload.buffer_ns");
    let script = "transfers = [{ size = 3000 }, { size = 4000, pause = \"1 s\" }]";
    let transfer = "flows[0].workload.transfers[1]";
    refused(script, "\"size_bytes\":4000", "\"size_bytes\":0", &format!("{transfer}.size_bytes"));
    refused(
        script,
        "\"pause_ns\":1000000000",
        "\"pause_ns\":90000000000000",
        &format!("{transfer}.pause_ns"),
    );
    let most = "\"size_bytes\":999999999999999";
    refused(script, "\"size_bytes\":4000", most, "flows[0].workload.transfers: \"1000000000002999\"");
    let listed = "[{\"size_bytes\":3000,\"pause_ns\":0},{\"size_bytes\":4000,\"pause_ns\":1000000000}]";
    refused(script, listed, "[]", "flows[0].workload.transfers: \"0\"");
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = resolve_all(&text, Format::Toml, None);
        let _ = resolve_all(&text, Format::Json, None);
    }

    #[test]
    fn toml_like_text_never_panics(lines in proptest::collection::vec(
        "(\\[{1,2}(path|flows|hosts|record|path\\.(before|reverse))\\]{1,2}|\
         (name|rate|rtt|buffer|kind|count|compare|changes|at) ?= ?(\"[0-9a-z %./]{0,12}\"|[0-9.e-]{1,8}|\\[.{0,9}\\]|\\{.{0,9}\\}|nan|true))",
        0..12,
    )) {
        let _ = resolve_all(&lines.join("\n"), Format::Toml, None);
    }

    #[test]
    fn any_values_give_a_valid_spec_or_an_error_that_names_a_field(
        (rate, rtt, buffer) in ("[0-9]{1,4} [kMG]bit/s", "[0-9]{1,4} (us|ms|s)", "[0-9]{1,3}(\\.[0-9])? (bdp|packets|KB)"),
        (duration, interval) in ("[0-9]{1,3} (ms|s|min)", "[0-9]{1,3} (us|ms|s)"),
        (controller, count, start) in ("(bbr1|cubic|reno|bbr1:cwnd_gain=[0-9])", 0u32..2000, "[0-9]{1,3} (ms|s)"),
        (mtu, size, cap) in (0u32..70_000, "[0-9]{1,5} (KB|packets|bdp)", "[0-9]{1,5} (KB|packets|bdp)"),
        (kind, pause) in (0usize..5, "[0-9]{1,3} (us|ms|s|h)"),
    ) {
        let application = [
            format!("size = \"{size}\""),
            format!("bursts = {{ size = \"{size}\", every = \"{pause}\" }}"),
            format!("requests = {{ size = \"{size}\", pause = \"{pause}\" }}"),
            format!("video = {{ rate = \"{rate}\", chunk = \"{pause}\", buffer = \"{interval}\" }}"),
            format!("transfers = [{{ size = \"{size}\" }}, {{ size = \"{size}\", pause = \"{pause}\" }}]"),
        ];
        let application = &application[kind];
        let text = format!(
            "duration = \"{duration}\"\n[path]\nrate = \"{rate}\"\nrtt = \"{rtt}\"\nbuffer = \"{buffer}\"\n\
             [hosts]\nmtu = {mtu}\n[[flows]]\ncontroller = \"{controller}\"\ncount = {count}\nstart = \"{start}\"\n\
             {application}\nmax_cwnd = \"{cap}\"\n[record]\ninterval = \"{interval}\"\n"
        );
        match resolve(&text, Format::Toml, None) {
            Ok(spec) => prop_assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec),
            Err(error) => {
                prop_assert!(!error.expected.is_empty() && !error.mend.is_empty(), "{}", error);
                let key = error.field.rsplit('.').next().unwrap();
                prop_assert!(text.contains(key), "{}", error);
            }
        }
    }
}
