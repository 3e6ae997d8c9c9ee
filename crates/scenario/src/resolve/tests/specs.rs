//! Specs that come from elsewhere are held against the limits.

use super::*;
use crate::metrics::{Metric, MetricsSpec};

#[test]
fn external_spec_is_checked_against_limits() {
    let good = toml(&format!("{PATH}{FLOW}")).to_json();
    let invalidated = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        Spec::from_json(&good.replacen(from, to, 1)).unwrap_err().to_string()
    };
    assert_all(&invalidated("\"initial\":100000000", "\"initial\":0"), &["forward[0].rate_bps", "0 bit/s"]);
    assert_all(&invalidated("\"bytes\":500000", "\"bytes\":10"), &["forward[0].queue.bytes"]);
    assert_all(&invalidated("\"mtu_bytes\":1500", "\"mtu_bytes\":40"), &["mtu_bytes"]);
    assert_all(&invalidated("\"duration_ns\":20000000000", "\"duration_ns\":0"), &["duration_ns"]);
    assert_all(
        &invalidated("\"controller\":\"bbr1\"", "\"controller\":\"x\""),
        &["spec", "is not a controller"],
    );
    assert_all(&invalidated("131072", "1"), &["hosts.tcp_rmem_bytes"]);
    assert_all(
        &invalidated("\"sample_interval_ns\":10000000", "\"sample_interval_ns\":1"),
        &["sample_interval_ns"],
    );
    assert_all(&Spec::from_json("nonsense").unwrap_err().to_string(), &["spec: \"nonsense\" is not a spec"]);
}

#[test]
fn external_router_is_checked_against_limits() {
    let hosts = "[hosts]\ngso_max_segs = 7\n";
    let router = PATH.replace("rtt", "router = \"tbf\"\nburst = \"9 KB\"\nrtt");
    let good = toml(&format!("{router}{hosts}{FLOW}")).to_json();
    let invalidated = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        Spec::from_json(&good.replacen(from, to, 1)).unwrap_err().to_string()
    };
    for bytes in ["1", "13", "4294967295"] {
        let written = invalidated("\"frame_bytes\":14", &format!("\"frame_bytes\":{bytes}"));
        assert_all(&written, &["forward[0].frame_bytes", bytes, "14 on an Ethernet interface"]);
    }
    assert_all(
        &invalidated("\"burst_bytes\":9000", "\"burst_bytes\":1513"),
        &["forward[0].burst_bytes", "1513"],
    );
    assert_all(&invalidated("\"bytes\":500000", "\"bytes\":1513"), &["forward[0].queue.bytes", "1513"]);
    let codel = "\"bytes\":500000,\"discipline\":\"codel\"";
    assert!(!invalidated("\"bytes\":500000", codel).is_empty());
    assert_all(
        &invalidated("\"gso_max_segs\":7", "\"gso_max_segs\":0"),
        &["hosts.gso_max_segs", "at least one"],
    );
    assert!(invalidated("\"gso_max_segs\":7", "\"gso_max_segs\":65536").contains("not a spec"));
}

#[test]
fn external_application_is_checked_against_limits() {
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

#[test]
fn external_media_is_checked_against_limits() {
    let keys = "media = { frame = \"3 kB\", every = \"33 ms\" }";
    let good = toml(&format!("{PATH}[[flows]]\n{keys}\n{FLOW}"));
    let expected = Workload::Media {
        frame_bytes: Bytes::new(3000),
        every_ns: Duration::from_millis(33),
        deadline_ns: Duration::from_millis(100),
    };
    assert_eq!((&good.flows[0].workload, good.flows[0].label.as_str()), (&expected, "media"));
    let json = good.to_json();
    assert_eq!(Spec::from_json(&json).unwrap(), good);
    // Without samples a run may be long.
    let json = json.replacen("\"sample_interval_ns\":10000000", "\"sample_interval_ns\":null", 1);
    for (from, to, field) in [
        ("\"frame_bytes\":3000", "\"frame_bytes\":0", "workload.frame_bytes"),
        ("\"frame_bytes\":3000", "\"frame_bytes\":10000001", "workload.frame_bytes"),
        ("\"every_ns\":33000000", "\"every_ns\":0", "workload.every_ns"),
        ("\"every_ns\":33000000", "\"every_ns\":999999", "workload.every_ns"),
        ("\"deadline_ns\":100000000", "\"deadline_ns\":0", "workload.deadline_ns"),
        ("\"controller\":\"media\"", "\"controller\":\"reno\"", "controller"),
        ("\"max_cwnd\":null", "\"max_cwnd\":9", "max_cwnd"),
        ("\"max_cwnd\":null", "\"max_cwnd\":null,\"ecn\":true", "ecn"),
        ("\"max_cwnd\":null", "\"max_cwnd\":null,\"receiver\":\"hides_ce\"", "receiver"),
        ("\"duration_ns\":20000000000", "\"duration_ns\":86400000000000", ""),
    ] {
        assert!(json.contains(from), "{from} in {json}");
        let found = Spec::from_json(&json.replacen(from, to, 1));
        match field {
            // 2 618 182 frames.
            "" => assert!(found.is_ok(), "{found:?}"),
            _ => assert_all(&found.unwrap_err().to_string(), &[&format!("flows[0].{field}")]),
        }
    }
    let controller = json.replacen("\"controller\":\"bbr1\"", "\"controller\":\"media\"", 1);
    assert_all(&Spec::from_json(&controller).unwrap_err().to_string(), &["flows[1].controller"]);
    let many = json.replacen("\"duration_ns\":20000000000", "\"duration_ns\":86400000000000", 1).replacen(
        "\"every_ns\":33000000",
        "\"every_ns\":1000000",
        1,
    );
    assert_all(&Spec::from_json(&many).unwrap_err().to_string(), &["flows: \"86400001\"", "frames"]);
}

#[test]
fn tcp_metrics_are_off_by_default() {
    let spec = |hosts: &str| toml(&format!("{PATH}[hosts]\n{hosts}\n{FLOW}")).hosts.metrics;
    assert_eq!(spec(""), None);
    assert_eq!(spec("metrics = {}"), Some(MetricsSpec::default()));
    let given = spec(
        "metrics = { save_ssthresh = true, ssthresh = 84, cwnd = 20, reordering = 9, rtt = \"46648125 ns\", \
         rttvar = \"1 ms\", locked = [\"rtt\", \"cwnd\", \"rtt\"] }",
    );
    let expected = MetricsSpec {
        save_ssthresh: true,
        ssthresh: 84,
        cwnd: 20,
        reordering: 9,
        rtt_ns: Duration::from_nanos(46_648_125),
        rttvar_ns: Duration::from_millis(1),
        locked: vec![Metric::Cwnd, Metric::Rtt],
    };
    assert_eq!(given, Some(expected));
    let refused = |metrics: &str, parts: &[&str]| {
        assert_all(&error(&format!("{PATH}[hosts]\nmetrics = {metrics}\n{FLOW}")).to_string(), parts);
    };
    refused("{ ssthresh = -1 }", &["hosts.metrics.ssthresh", "negative"]);
    refused("{ ssthresh = 4294967296 }", &["hosts.metrics.ssthresh", "above"]);
    refused("{ cwnd = 1.5 }", &["hosts.metrics.cwnd", "not whole"]);
    refused("{ reordering = 301 }", &["hosts.metrics.reordering", "above 300"]);
    refused("{ rtt = \"537 s\" }", &["hosts.metrics.rtt", "above"]);
    refused("{ rttvar = \"40\" }", &["hosts.metrics.rttvar", "unit is missing"]);
    refused("{ locked = [\"cwnd\"] }", &["hosts.metrics.cwnd", "remove cwnd from locked"]);
    refused("{ locked = [\"mss\"] }", &["hosts.metrics.locked", "ssthresh"]);
    refused("{ sstresh = 1 }", &["hosts.metrics.sstresh"]);
    let good = toml(&format!("{PATH}[hosts]\nmetrics = {{ ssthresh = 84 }}\n{FLOW}")).to_json();
    let invalidated = Spec::from_json(&good.replace("\"ssthresh\":84", "\"ssthresh\":4294967295"));
    assert_all(&invalidated.unwrap_err().to_string(), &["hosts.metrics.ssthresh"]);
}

#[test]
fn hosts_default_to_ideal_model() {
    let spec = |hosts: &str| toml(&format!("{PATH}{hosts}{FLOW}"));
    assert!(spec("").hosts.model.is_ideal());
    assert_eq!(spec(""), spec("[hosts]\nmodel = \"ideal\"\n"));
    let linux = spec("[hosts]\nmodel = \"linux\"\n");
    assert_eq!(linux.hosts.model, crate::spec::HostModel::Linux);
    assert_eq!(Spec::from_json(&linux.to_json()).map(|spec| spec.hosts.model), Ok(linux.hosts.model));
    assert!(!spec("").to_json().contains("model"), "addresses of stored runs stay as they were");
    let refused = error(&format!("{PATH}[hosts]\nmodel = \"windows\"\n{FLOW}")).to_string();
    assert!(refused.contains("hosts.model") && refused.contains("linux"), "{refused}");
}

#[test]
fn flow_ecn_overrides_host_ecn() {
    let spec = |hosts: bool, flows: &[(&str, &str)]| {
        let flows = flows.iter().map(|(name, ecn)| format!("[[flows]]\ncontroller = \"{name}\"\n{ecn}\n"));
        let flows = flows.collect::<String>();
        toml(&format!("[hosts]\necn = {hosts}\n{PATH}{flows}"))
    };
    let mixed = [("cubic", "ecn = true"), ("cubic", "ecn = false"), ("cubic", ""), ("dctcp", "ecn = false")];
    for (hosts, third) in [(false, EcnUse::None), (true, EcnUse::Classic)] {
        let spec = spec(hosts, &mixed);
        let uses: Vec<EcnUse> = spec.flows.iter().map(|flow| flow.ecn(&spec.hosts)).collect();
        assert_eq!(uses, [EcnUse::Classic, EcnUse::None, third, EcnUse::Exact(Ecn::Ect0)]);
        assert_eq!(spec.shared_ecn(), Err(1));
    }
    assert_eq!(spec(false, &[("cubic", "ecn = true"), ("dctcp", "")]).shared_ecn(), Ok(true));
    assert_eq!(spec(true, &[("cubic", "ecn = false"), ("reno", "ecn = false")]).shared_ecn(), Ok(false));
    assert_eq!(spec(true, &[("dctcp", "ecn = false")]).shared_ecn(), Ok(true));
}

#[test]
fn window_of_reverse_flow_is_in_products_of_reverse_rate() {
    let cap = |direction: &str| {
        let text = format!(
            "[path]\nrate = \"120 Mbit/s\"\nrtt = \"100 ms\"\nreverse = {{ rate = \"12 Mbit/s\" }}\n\
             [[flows]]\ncontroller = \"reno\"\nmax_cwnd = \"1 bdp\"\n{direction}\n"
        );
        let spec = toml(&text);
        assert_eq!(Spec::from_json(&spec.to_json()).unwrap(), spec);
        (spec.flows[0].max_cwnd, spec.to_json().contains("direction"))
    };
    assert_eq!(cap("direction = \"reverse\""), (Some(100), true));
    assert_eq!(cap("direction = \"forward\""), (Some(1000), false), "as without the key");
    assert_eq!(cap(""), (Some(1000), false));
}
