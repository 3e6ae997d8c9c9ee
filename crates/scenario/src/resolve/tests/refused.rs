//! What does not resolve: every error names its field.

use super::*;

#[test]
fn bad_controller_names_flow_or_index() {
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
    assert_all(&compared("[\"bbr1\", \"bbr\"]"), &["compare[1]: \"bbr\" is bbr1, which is listed already"]);
    assert_all(&compared("[\"bbr1\", \"bbr1\"]"), &["compare[1]", "listed twice"]);
    assert_all(&compared("[]"), &["compare", "empty list"]);
    let unchanged = error(&format!("compare = [\"bbr1\"]\n{PATH}{FLOW}")).to_string();
    assert_all(&unchanged, &["compare", "would not change any flow"]);
    assert_all(&error(PATH).to_string(), &["flows: nothing is given", "[[flows]]"]);
}

#[test]
fn bad_rate_names_problem() {
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
    assert_all(
        &path_error("rate = \"50e6\""),
        &["path.rate", "unit is missing", "write rate = \"50 Mbit/s\""],
    );
    assert_all(&path_error("rate = \"50\""), &["write rate = \"50 Mbit/s\""]);
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
    assert_all(
        &path_error("reverse = { unit = \"burst\" }"),
        &["path.reverse.unit", "has nothing to apply to", "remove unit"],
    );
    assert_all(&path_error("burst = \"100 B\""), &["path.burst", "below one packet"]);
    let tbf = |more: &str| path_error(&format!("router = \"tbf\"\n{more}"));
    assert_all(&tbf(""), &["path.burst: nothing is given", "burst of tc-tbf", "32 KB"]);
    assert_all(&tbf("burst = \"1.5 KB\""), &["path.burst", "below one Ethernet frame", "1514 bytes"]);
    assert_all(
        &tbf("burst = \"9 KB\"\nbuffer = \"1.5 KB\""),
        &["path.buffer", "below one Ethernet frame", "100 KB"],
    );
    assert_all(
        &tbf("burst = \"9 KB\"\nbuffer = \"9 packets\""),
        &["path.buffer", "limit of tc-tbf is in bytes"],
    );
    assert_all(&tbf("burst = \"9 KB\"\nqueue = \"codel\""), &["path.queue", "fifo", "remove router"]);
    assert_all(&path_error("router = \"htb\""), &["path.router", "htb", "tbf"]);
    let changed = tbf("burst = \"9 KB\"\nchanges = [{ at = \"1 s\", rate = \"1 Mbit/s\" }]");
    assert_all(&changed, &["cannot change a router", "rtt and loss only, together with router"]);
    assert_all(&path_error("rtt = \"0\""), &["path.buffer", "no delay", "20 packets"]);
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
    assert_all(&hosts("gso_max_segs = 0"), &["hosts.gso_max_segs", "is zero", "write gso_max_segs = 1"]);
    assert_all(&hosts("gso_max_segs = 65536"), &["hosts.gso_max_segs", "above 65535"]);
    assert_all(&hosts("mtu = 1500.5"), &["hosts.mtu", "not whole"]);
    assert_all(&hosts("tcp_memory = \"huge\""), &["hosts.tcp_memory: \"huge\"", "max, linux, ubuntu-18.10"]);
    assert_all(&hosts("tcp_rmem = [\"1 KB\", \"2 KB\"]"), &["hosts.tcp_rmem", "has 2 sizes"]);
    assert_all(&hosts("tcp_rmem = [\"3 KB\", \"2 KB\", \"4 KB\"]"), &["hosts.tcp_rmem", "ascending"]);
    assert_all(&hosts("tcp_wmem = [0, 1, 2]"), &["hosts.tcp_wmem[0]", "is zero"]);
    assert_all(&hosts("tcp_wmem = [1, 1, \"3 GB\"]"), &["hosts.tcp_wmem[2]", "2^31 - 1"]);
    assert_all(&hosts("pacing = 1"), &["hosts.pacing", "a boolean"]);
    assert_all(&hosts("ecn = 1"), &["hosts.ecn", "a boolean"]);
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
        &["flows[0].size", "is given together with bursts", "leave out size, or bursts"],
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
        &["flows[0].requests", "is given together with transfers"],
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
    assert_all(&flow("receiver = \"hides_lose\""), &["flows[0].receiver", "hides_loss"]);
    assert_all(
        &flow("receiver = \"hides_loss\"\nsize = \"1 MB\""),
        &["flows[0].receiver: \"hides_loss\" never gets what was lost", "as much as it can"],
    );
    assert_all(&flow("direction = \"back\""), &["flows[0].direction", "reverse"]);
    assert_all(&flow("direction = 1"), &["flows[0].direction"]);
    assert_all(&flow("direction = [\"reverse\"]"), &["flows[0].direction"]);
    assert_all(&flow("label = \"\""), &["flows[0].label", "is empty"]);
    let taken = flow("count = 2\n[[flows]]\ncontroller = \"cubic\"\nlabel = \"bbr1-2\"");
    assert_all(&taken, &["flows[1].label: \"bbr1-2\" is taken"]);
    let many = flow("count = 60000\n[[flows]]\ncontroller = \"cubic\"\ncount = 60000");
    assert_all(&many, &["flows[1].count", "120000"]);
}

#[test]
fn bad_media_is_refused_by_field() {
    let media = |keys: &str, beside: &str| {
        error(&format!("{PATH}[[flows]]\nmedia = {{ {keys} }}\n{beside}\n")).to_string()
    };
    let refused = |keys: &str, parts: &[&str]| assert_all(&media(keys, ""), parts);
    refused("every = \"33 ms\"", &["flows[0].media.frame: nothing is given", "frame = \"12 kB\""]);
    refused("frame = \"12 kB\"", &["flows[0].media.every: nothing is given"]);
    refused("frame = 0, every = \"33 ms\"", &["flows[0].media.frame", "is zero", "at least one byte"]);
    refused("frame = \"-1 B\", every = \"33 ms\"", &["flows[0].media.frame", "negative"]);
    refused("frame = \"10000001 B\", every = \"33 ms\"", &["flows[0].media.frame", "is above 10 MB"]);
    refused("frame = \"9999999999999 bdp\", every = \"33 ms\"", &["flows[0].media.frame", "is above 10 MB"]);
    refused("frame = \"1 B\", every = 0", &["flows[0].media.every", "is zero"]);
    refused("frame = \"1 B\", every = \"999 us\"", &["flows[0].media.every", "is below 1 ms"]);
    refused("frame = \"1 B\", every = \"25 h\"", &["flows[0].media.every", "is above"]);
    refused("frame = \"1 B\", every = \"1 ms\", deadline = 0", &["flows[0].media.deadline", "is zero"]);
    refused("frame = \"1 B\", every = \"1 ms\", deadline = \"x\"", &["flows[0].media.deadline"]);
    refused("frame = \"1 B\", every = \"1 ms\", deadlin = 1", &["flows[0].media.deadlin", "deadline"]);

    let good = "frame = \"12 kB\", every = \"33 ms\"";
    for (key, value) in [
        ("controller", "\"bbr1\""),
        ("client", "\"true\""),
        ("server", "\"true\""),
        ("sender", "\"client\""),
        ("ecn", "true"),
        ("size", "\"1 MB\""),
        ("bursts", "{ size = \"1 MB\", every = \"1 s\" }"),
        ("requests", "{ size = \"1 MB\" }"),
        ("video", "{ rate = \"1 Mbit/s\" }"),
        ("transfers", "[{ size = \"1 MB\" }]"),
        ("max_cwnd", "\"9 packets\""),
        ("receiver", "\"hides_ce\""),
    ] {
        let problem = format!("flows[0].{key}: \"{key}\" is given together with media");
        assert_all(
            &media(good, &format!("{key} = {value}")),
            &[&problem, &format!("leave out {key}, or media")],
        );
    }
    // All else fits, and there is nothing for `compare` to change.
    let fits = "label = \"call\"\ncount = 3\nstart = \"1 s\"\nstagger = \"1 s\"\nstart_jitter = 0\nstop = \"9 s\"\n\
                rtt = \"90 ms\"";
    assert_eq!(toml(&format!("{PATH}[[flows]]\nmedia = {{ {good} }}\n{fits}\n")).flows.len(), 3);
    let compared = format!("compare = [\"bbr1\", \"reno\"]\n{PATH}[[flows]]\nmedia = {{ {good} }}\n");
    assert_all(&error(&compared).to_string(), &["compare", "would not change any flow"]);
    assert_eq!(
        resolve_all(&format!("{compared}[[flows]]\n"), Format::Toml, None).unwrap().len(),
        2,
        "the other flow is compared"
    );
}

#[test]
fn more_media_than_can_run_is_refused() {
    let text = |frame: &str, count: u64, more: &str| {
        let media = format!("media = {{ frame = \"{frame}\", every = \"1 ms\" }}\ncount = {count}");
        format!("duration = \"1000 s\"\n{PATH}[[flows]]\n{media}\n{more}\n")
    };
    // Each flow has 1 000 001 frames.
    assert_eq!(toml(&text("1448 B", 9, "")).flows.len(), 9);
    assert_all(
        &error(&text("1448 B", 10, "")).to_string(),
        &["flows[0].media", "makes 10000010 frames of 10000010 packets", "at most 10000000 frames"],
    );
    let other = "[[flows]]\nmedia = { frame = \"1 B\", every = \"1 ms\" }\ncount = 5";
    assert_all(
        &error(&text("1448 B", 5, other)).to_string(),
        &["flows[1].media", "makes 10000010 frames", "other media flows included"],
    );
    assert_eq!(toml(&text("1448 B", 4, other)).flows.len(), 9);
    assert_all(&error(&text("2 MB", 1, "")).to_string(), &["flows[0].media", "1000000000 packets"]);
    assert_eq!(toml(&text("1 MB", 1, "")).flows.len(), 1);
}

#[test]
fn reverse_flow_needs_rate_on_way_back() {
    let of = |back: &str, flow: &str| {
        format!("[path]\nrate = \"10 Mbit/s\"\nrtt = \"40 ms\"\nreverse = {{ {back} }}\n[[flows]]\n{flow}\n")
    };
    let bbr = "controller = \"bbr1\"\ndirection = \"reverse\"";
    for back in [
        "",
        "loss = \"1 %\"",
        "jitter = \"1 ms\"",
        "before = [{ kind = \"policer\", rate = \"1 Mbit/s\", burst = \"9 KB\" }]",
    ] {
        let refused = error(&of(back, bbr)).to_string();
        assert_all(
            &refused,
            &["flows[0].direction: \"reverse\" is over a path without a rate", "reverse = { rate ="],
        );
        // The control: the same path for a flow in the forward direction.
        toml(&of(back, "controller = \"bbr1\"\ndirection = \"forward\""));
    }
    toml(&of("rate = \"1 Mbit/s\"", bbr));
    toml(&of("after = [{ kind = \"link\", rate = \"1 Mbit/s\", buffer = \"9 KB\" }]", bbr));
    let long = format!("duration = \"10 h\"\n{}", of("rate = \"1 Tbit/s\"", bbr));
    assert_all(&error(&long).to_string(), &["duration: \"10 h\" at 1000 Gbit/s allows"]);
    toml(&format!("duration = \"10 h\"\n{}", of("rate = \"1 Tbit/s\"", "controller = \"bbr1\"")));
    let program = "client = \"a {server} {port}\"\nserver = \"b {port}\"\ndirection = \"reverse\"";
    assert_all(
        &error(&of("rate = \"1 Mbit/s\"", program)).to_string(),
        &["flows[0].direction", "together with client"],
    );
    // A spec from elsewhere is checked, too.
    let mut spec = toml(&of("rate = \"1 Mbit/s\"", bbr));
    spec.reverse.retain(|element| element.name().is_none());
    assert_all(
        &Spec::from_json(&spec.to_json()).unwrap_err().to_string(),
        &["flows[0].direction", "rate in reverse"],
    );
}

#[test]
fn bad_top_level_field_is_named() {
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
fn syntax_error_names_line_and_column() {
    let toml = error("name = \"a\"\n[path\nrate = 1\n");
    assert!(toml.field.starts_with("line 2, column "), "{toml}");
    assert_all(&toml.to_string(), &["\"[path\" is not TOML"]);
    let twice = error("name = \"a\"\nname = \"b\"\n");
    assert_all(&twice.to_string(), &["line 2, column 1", "duplicate key"]);
    for number in ["9223372036854775808", "0xffffffffffffffffffff"] {
        assert_all(&error(&format!("\nseed = {number}\n")).to_string(), &["line 2, column 8", "too large"]);
    }
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

/// Each factor is within its limit.
#[test]
fn products_are_bounded() {
    let transfers = "transfers = [".to_string() + &"{ size = 1 },".repeat(1_001) + "]";
    let many = flow_error(&format!("controller = \"bbr1\"\ncount = 1000\n{transfers}"));
    assert_all(
        &many,
        &["flows[0].count: \"1000 flows\"", "make 1001000 transfers", "at most 1000000 together"],
    );

    let compared: Vec<String> = (0..900).map(|number| format!("\"bbr1:cwnd_gain=2.{number:03}\"")).collect();
    let compare = format!("compare = [{}]\n", compared.join(","));
    let many = error(&format!("{compare}{PATH}[[flows]]\ncount = 30000\n")).to_string();
    assert_all(&many, &["compare: \"900 controllers\"", "at most 20000000 together"]);
    let many = error(&format!("compare = [{}]\n{PATH}", "\"bbr1\",".repeat(1_001))).to_string();
    assert_all(&many, &["compare: \"1001 controllers\" are too many", "at most 1000"]);

    let elements = "{ kind = \"policer\", rate = \"1 Mbit/s\", burst = \"1 MB\" },".repeat(1_001);
    assert_all(
        &path_error(&format!("before = [{elements}]")),
        &["path.before: \"1001 elements\" are too many"],
    );

    let long = format!("duration = \"24 h\"\n{FLOW}[path]\nrate = \"1 Tbit/s\"\nrtt = \"40 ms\"\n");
    assert_all(
        &error(&long).to_string(),
        &["duration: \"24 h\"", "packets", "at most 1000000000000 packets"],
    );
}

/// The error of a path of 1 Mbit/s and 1 ms, and the same with what the error says to write.
fn fixed(lines: &str) -> (String, Result<Vec<(String, Spec)>, ScenarioError>) {
    let text = |lines: &str| format!("[path]\nrate = \"1 Mbit/s\"\nrtt = \"1 ms\"\n{lines}\n{FLOW}");
    let error = error(&text(lines));
    let write = error.fix.strip_prefix("write ").unwrap_or_else(|| panic!("{error}"));
    let key = write.split(' ').next().unwrap_or_default();
    let kept = lines.lines().filter(|line| line.split(' ').next() != Some(key));
    let lines = kept.chain([write]).collect::<Vec<_>>().join("\n");
    (error.to_string(), resolve_all(&text(&lines), Format::Toml, None))
}

#[test]
fn suggested_fix_for_size_is_accepted() {
    for buffer in ["buffer = \"0.9 bdp\"", "buffer = 0", "buffer = 2", "buffer = 1000"] {
        for bucket in ["", "burst = \"9 KB\"", "router = \"tbf\"\nburst = \"9 KB\""] {
            let (error, fixed) = fixed(&format!("{buffer}\n{bucket}"));
            assert!(fixed.is_ok(), "{error}: {fixed:?}");
        }
    }
    let (error, fixed) = fixed("router = \"tbf\"\nbuffer = \"50 KB\"\nburst = 0");
    assert!(fixed.is_ok(), "{error}: {fixed:?}");
    assert_all(&error, &["path.burst", "one Ethernet frame of 1514 bytes", "32 KB"]);
}

#[test]
fn tbf_sizes_fit_32_bits() {
    let most = u64::from(u32::MAX);
    let path = |lines: &str| toml(&format!("[path]\nrate = \"1 Gbit/s\"\nrtt = \"1 ms\"\n{lines}\n{FLOW}"));
    path(&format!("router = \"tbf\"\nburst = {most}\nbuffer = {most}"));
    path(&format!("burst = {most}\nbuffer = \"1 TB\""));
    let too_deep = ["is above 4.294967295 GB", "at most 4.294967295 GB: tc has 32 bits for it"];
    for (field, lines) in [
        ("path.burst", format!("burst = {}", most + 1)),
        ("path.burst", format!("router = \"tbf\"\nburst = {}", most + 1)),
        ("path.buffer", format!("router = \"tbf\"\nburst = \"9 KB\"\nbuffer = {}", most + 1)),
        (
            "before[0].burst",
            "before = [{ kind = \"policer\", rate = \"1 Mbit/s\", burst = \"5 GB\" }]".into(),
        ),
    ] {
        let error = path_error(&lines);
        assert_all(&error, &too_deep);
        assert_all(&error, &[field]);
    }
    // A spec is held to the same.
    let mut spec = path("router = \"tbf\"\nburst = \"9 KB\"");
    let ElementConfig::TokenBucket { burst_bytes, queue, .. } = &mut spec.forward[0] else { panic!() };
    queue.bytes = Bytes::new(most + 1);
    let kept = std::mem::replace(burst_bytes, Bytes::new(most + 1));
    assert_eq!(spec.validate().unwrap_err().field, "forward[0].burst_bytes");
    let ElementConfig::TokenBucket { burst_bytes, .. } = &mut spec.forward[0] else { panic!() };
    *burst_bytes = kept;
    assert_eq!(spec.validate().unwrap_err().field, "forward[0].queue.bytes");
}

#[test]
fn a_locked_window_needs_a_value() {
    let metrics = |words: &str| format!("{PATH}[hosts.metrics]\n{words}\n{FLOW}");
    let nothing = error(&metrics("locked = [\"cwnd\"]")).to_string();
    assert_all(
        &nothing,
        &["hosts.metrics.cwnd: nothing is given", "write cwnd = 10, or remove cwnd from locked"],
    );
    let zero = error(&metrics("cwnd = 0\nlocked = [\"cwnd\"]")).to_string();
    assert_all(&zero, &["hosts.metrics.cwnd: \"0\" is locked", "at least one segment"]);
    toml(&metrics("cwnd = 10\nlocked = [\"cwnd\"]"));
}

#[test]
fn metrics_entry_fits_32_bits() {
    let metrics = |words: &str| format!("{PATH}[hosts.metrics]\n{words}\n{FLOW}");
    let spec = toml(&metrics("rtt = \"536870911875 ns\"\nrttvar = \"1073741823750 ns\""));
    assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec);
    assert_all(&error(&metrics("rtt = \"536870911876 ns\"")).to_string(), &["hosts.metrics.rtt", "is above"]);
    let variation = error(&metrics("rttvar = \"1073741823751 ns\"")).to_string();
    assert_all(&variation, &["hosts.metrics.rttvar", "is above"]);
}

#[test]
fn every_flow_starts_before_the_end() {
    let late = |more: &str| format!("duration = \"3 s\"\n{PATH}{FLOW}start = \"2999 ms\"\n{more}");
    // By default as far as there is room.
    assert_eq!(toml(&late("")).flows[0].start_jitter_ns, millis(1));
    assert_eq!(toml(&late("").replace("2999", "2000")).flows[0].start_jitter_ns, millis(40));
    for seed in 0..1_000 {
        assert!(toml(&late("")).flows[0].start_time(0, seed) < Time::ZERO + millis(3_000), "{seed}");
    }
    toml(&late("start_jitter = \"1 ms\""));
    let error = error(&late("start_jitter = \"2 ms\"")).to_string();
    assert_all(
        &error,
        &["flows[0].start_jitter", "after the end", "at most 1 ms", "write start_jitter = \"1 ms\""],
    );
}
