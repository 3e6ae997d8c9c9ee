//! Random scenarios, the same ones for ever: the number of a scenario is its seed.

use serde_json::{Value, json};

/// Draws of SplitMix64.
pub(crate) struct Draws(pub(crate) u64);

impl Draws {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        fullpipe_path::mix(self.0) % bound
    }

    pub(crate) fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u64) as usize]
    }

    pub(crate) fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }
}

/// Scenario number `number`: up to 36 flows over a path of one to six elements, short enough for a debug build.
pub(crate) fn scenario(number: u64) -> Value {
    let mut draws = Draws(number.wrapping_mul(0x5851_f42d_4c95_7f2d));
    let rate_mbit = [1, 5, 10, 25, 100][draws.below(5) as usize];
    let mut path = json!({
        "rate": format!("{rate_mbit} Mbit/s"),
        "rtt": draws.pick(&["1 ms", "4 ms", "10 ms", "40 ms", "100 ms"]),
        "buffer": draws.pick(&["3 packets", "10 packets", "30 packets", "100 packets", "400 packets"]),
    });
    if draws.one_in(2) {
        path["loss"] = json!(draws.pick(&["0.01 %", "0.1 %", "1 %", "3 %", "10 %", "25 %"]));
    }
    if draws.one_in(4) {
        path["jitter"] = json!(draws.pick(&["0.2 ms", "1 ms", "5 ms"]));
        path["jitter_reorders"] = json!(draws.one_in(2));
    }
    if draws.one_in(6) {
        path["burst"] = json!("20 KB");
    } else if draws.one_in(4) {
        path["changes"] = json!([
            { "at": "700 ms", "rate": format!("{} Mbit/s", rate_mbit * 2) },
            { "at": "1400 ms", "rtt": draws.pick(&["3 ms", "30 ms", "90 ms"]), "loss": "0.5 %" },
        ]);
    }
    for place in ["before", "after"] {
        let mut elements = Vec::new();
        while draws.one_in(3) {
            elements.push(element(&mut draws, rate_mbit));
        }
        path[place] = json!(elements);
    }
    path["reverse"] = match draws.below(6) {
        0 => json!({ "rate": "1 Mbit/s", "buffer": "100 packets" }),
        1 => json!({ "loss": "5 %" }),
        2 => json!({ "jitter": "2 ms", "jitter_reorders": draws.one_in(2) }),
        _ => json!({}),
    };
    let mut flows = Vec::new();
    for _ in 0..=draws.below(3) {
        let count = [1, 1, 1, 2, 4, 12][draws.below(6) as usize];
        let mut flow = json!({
            "controller": draws.pick(&["reno", "cubic", "cubic", "bbr1", "bbr1", "bbr1:probe_gain=1.5"]),
            "count": count,
            "start": draws.pick(&["0 s", "0 s", "300 ms"]),
        });
        match draws.below(6) {
            0 => flow["size"] = json!(draws.pick(&["1 B", "14480 B", "100 KB", "1000001 B"])),
            1 => flow["stop"] = json!("1500 ms"),
            2 => flow["max_cwnd"] = json!("20 packets"),
            3 => {
                let every = draws.pick(&["20 ms", "150 ms", "700 ms"]);
                flow["bursts"] = json!({ "size": draws.pick(&["1 B", "30 KB", "200 KB"]), "every": every });
            }
            4 => flow["rtt"] = json!(draws.pick(&["110 ms", "150 ms"])),
            _ => {}
        }
        flows.push(flow);
    }
    json!({
        "name": format!("random {number}"),
        "duration": "2500 ms",
        "path": path,
        "flows": flows,
        "hosts": {
            "pacing": draws.one_in(3),
            "gro": draws.pick(&["0 s", "0 s", "0 s", "0.1 ms", "1 ms"]),
            "tcp_memory": draws.pick(&["max", "linux", "ubuntu-18.10"]),
        },
    })
}

/// The same with up to six elements more on the way back.
pub(crate) fn scenario_with_a_longer_way_back(number: u64) -> Value {
    let mut document = scenario(number);
    let mut draws = Draws(!number);
    for place in ["before", "after"] {
        let elements: Vec<Value> = (0..draws.below(4)).map(|_| element(&mut draws, 1)).collect();
        document["path"]["reverse"][place] = json!(elements);
    }
    document
}

/// The same, where every flow sends one transfer after another. Sizes are to the byte, so that segments in the middle of a
/// stream are short.
pub(crate) fn scenario_of_transfers(number: u64) -> Value {
    let mut document = scenario(number);
    let mut draws = Draws(!number.rotate_left(32));
    for flow in document["flows"].as_array_mut().expect("a list of flows") {
        let flow = flow.as_object_mut().expect("a flow");
        for key in ["size", "bursts"] {
            flow.remove(key);
        }
        let size = draws.pick(&["1 B", "1448 B", "1449 B", "12345 B", "99999 B"]);
        let pause = draws.pick(&["0 s", "3 ms", "130 ms"]);
        match draws.below(3) {
            0 => flow.insert("requests".into(), json!({ "size": size, "pause": pause })),
            1 => {
                let rate = draws.pick(&["333 kbit/s", "3 Mbit/s", "30 Mbit/s"]);
                flow.insert("video".into(), json!({ "rate": rate, "chunk": "130 ms", "buffer": "700 ms" }))
            }
            _ => {
                let transfers: Vec<Value> = (0..=draws.below(12))
                    .map(|_| {
                        let size = draws.pick(&["1 B", "1447 B", "2896 B", "40001 B"]);
                        json!({ "size": size, "pause": draws.pick(&["0 s", "0 s", "1 ms", "90 ms"]) })
                    })
                    .collect();
                flow.insert("transfers".into(), json!(transfers))
            }
        };
    }
    document
}

fn element(draws: &mut Draws, rate_mbit: u64) -> Value {
    let faster = format!("{} Mbit/s", rate_mbit * (1 + draws.below(3)));
    match draws.below(8) {
        0 => json!({ "kind": "link", "rate": faster, "buffer": draws.pick(&["20 packets", "200 packets"]) }),
        1 => json!({ "kind": "policer", "rate": faster, "burst": "60 KB" }),
        2 => json!({ "kind": "token_bucket", "rate": faster, "burst": "10 KB", "buffer": "100 KB" }),
        3 => json!({ "kind": "delay", "delay": draws.pick(&["0 s", "2 ms"]) }),
        4 => json!({ "kind": "gilbert_elliott", "good_to_bad": "0.2 %", "bad_to_good": "30 %" }),
        5 => json!({ "kind": "duplicate", "probability": "2 %" }),
        6 => json!({ "kind": "reorder", "probability": "2 %", "delay": "1 ms" }),
        _ => json!({ "kind": "jitter", "amplitude": "0.3 ms", "reorders": draws.one_in(3) }),
    }
}
