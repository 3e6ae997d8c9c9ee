//! What the page asks is answered as by the crates themselves.

use std::sync::{Arc, Mutex};

use fullpipe_export::qlog::Qlog;
use fullpipe_export::{Event, Files, Log};
use fullpipe_scenario::{Format, Resolved, Spec};
use fullpipe_sim::{Simulation, TextChange};
use fullpipe_units::Time;
use fullpipe_wasm::answer::Answer;
use fullpipe_wasm::engine::Engine;
use serde_json::{Value, json};

const TEXT: &str = r#"
duration = "2 s"
compare = ["bbr1", "cubic"]
[path]
rate = "20 Mbit/s"
rtt = "30 ms"
buffer = "40 packets"
loss = "0.1 %"
[[flows]]
[[flows]]
controller = "reno"
size = "200 KB"
start = "300 ms"
"#;

const ONE: &str = r#"
duration = "2 s"
[path]
rate = "20 Mbit/s"
rtt = "30 ms"
loss = "0 %"
[[flows]]
controller = "cubic"
"#;

fn document(text: &str) -> Value {
    json!({ "text": text, "format": "toml" })
}

fn spec(text: &str, alternative: usize) -> Spec {
    Resolved::without_files(text, Format::Toml).unwrap().alternatives.swap_remove(alternative).1
}

/// The answer and its value.
fn ask(engine: &mut Engine, request: &Value) -> (Answer, Value) {
    let answer = engine.answer(request.to_string().as_bytes());
    let mut wording: Value = serde_json::from_str(&answer.json).unwrap();
    let value = wording.get_mut("ok").unwrap_or_else(|| panic!("{request}: {}", answer.json)).take();
    (answer, value)
}

fn refused(engine: &mut Engine, request: &Value) -> Value {
    let answer = engine.answer(request.to_string().as_bytes());
    assert!(answer.columns.is_empty() && answer.text.is_empty());
    let wording: Value = serde_json::from_str(&answer.json).unwrap();
    wording
        .get("mistake")
        .or(wording.get("failure"))
        .unwrap_or_else(|| panic!("{request}: {wording}"))
        .clone()
}

/// A column of a table.
fn column(answer: &Answer, table: &Value, name: &str) -> Vec<f64> {
    let rows = table["rows"].as_u64().unwrap() as usize;
    let columns = table["columns"].as_array().unwrap();
    let found = columns.iter().find(|column| column[0] == name).unwrap_or_else(|| panic!("no {name}"));
    let from = found[1].as_u64().unwrap() as usize;
    answer.columns[from..from + rows].to_vec()
}

#[test]
fn a_run_is_the_simulators() {
    let mut engine = Engine::default();
    for (alternative, seed) in [(0, 1), (1, 7)] {
        let request =
            json!({"method": "run", "document": document(TEXT), "alternative": alternative, "seed": seed});
        let (answer, run) = ask(&mut engine, &request);
        let mut simulation = Simulation::new(&spec(TEXT, alternative), seed).unwrap();
        simulation.advance(Time::NEVER).unwrap();
        let expected = simulation.finish();
        assert_eq!(run["summary"], expected.summary_json());
        let sent: u64 = expected.flows.iter().map(|flow| flow.totals.segments_sent).sum();
        assert_eq!(run["packets"], sent);
        for (flow, table) in expected.flows.iter().zip(run["flows"].as_array().unwrap()) {
            let series = &flow.series;
            let same = |name: &str, values: Vec<f64>| {
                let found = column(&answer, table, name);
                let bits = |values: &[f64]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
                assert_eq!(bits(&found), bits(&values), "{name}");
            };
            same("time_s", series.time_ns.iter().map(|&time| time as f64 / 1e9).collect());
            same("cwnd", series.cwnd.iter().map(|&cwnd| f64::from(cwnd)).collect());
            same("delivered_bytes", series.delivered_bytes.iter().map(|&bytes| bytes as f64).collect());
            same("phase", series.phase.iter().map(|&phase| f64::from(phase)).collect());
            let unknown = |value: u64| if value == u64::MAX { f64::NAN } else { value as f64 };
            same("bandwidth_bps", series.bandwidth_bps.iter().map(|&rate| unknown(rate)).collect());
            let goodputs = series.goodputs_bps(0).map(|rate| rate.unwrap_or(f64::NAN)).collect::<Vec<_>>();
            assert!(goodputs[0].is_nan() && goodputs[1..].iter().all(|rate| rate.is_finite()));
            same("goodput_bps", goodputs);
        }
        let queue = &run["queues"][0];
        let backlog = &expected.links[0].series.queue_bytes;
        assert_eq!(
            column(&answer, queue, "queue_bytes"),
            backlog.iter().map(|&b| b as f64).collect::<Vec<_>>()
        );
    }
}

#[test]
fn document_resolves_with_path_facts() {
    let request = json!({"method": "resolve", "document": document(TEXT)});
    let (_, resolved) = ask(&mut Engine::default(), &request);
    assert_eq!(resolved["document"]["path"]["rate"], "20 Mbit/s");
    assert_eq!(resolved["document"].as_object().unwrap().len(), 4);
    let alternatives = resolved["alternatives"].as_array().unwrap();
    assert_eq!(alternatives.len(), 2);
    assert_eq!(
        alternatives[1],
        json!({
            "name": "cubic",
            "duration_s": 2.0,
            "mss_bytes": 1448,
            "flows": [
                {"label": "cubic", "controller": "cubic", "start_s": 0.0},
                {"label": "reno", "controller": "reno", "start_s": 0.3},
            ],
            "queues": ["bottleneck"],
            "facts": {"rate_bps": 20_000_000, "rtt_s": 0.03, "bdp_bytes": 75_000, "buffer_bytes": 60_000},
        })
    );
    assert_eq!(resolved["notes"], json!([]));
    let paced = format!("hosts.pacing = true\n{}", TEXT.replace("cubic", "bbr3").replace("reno", "bbr1"));
    let (_, resolved) =
        ask(&mut Engine::default(), &json!({"method": "resolve", "document": document(&paced)}));
    assert!(resolved["notes"][0].as_str().unwrap().contains("hosts.pacing"), "{resolved}");
    let one = json!({"method": "resolve", "document": document(ONE)});
    assert_eq!(ask(&mut Engine::default(), &one).1["alternatives"][0]["name"], "");
}

#[test]
fn live_run_with_change_matches_simulator() {
    let mut engine = Engine::default();
    let (_, opened) = ask(&mut engine, &json!({"method": "open", "document": document(ONE), "seed": 3}));
    let run = &opened["run"];
    let mut simulation = Simulation::new(&spec(ONE, 0), 3).unwrap();
    let mut reported = 0;
    for until_ms in [0_u32, 10, 700, 700, 1_000, 5_000] {
        if until_ms == 1_000 {
            let change = json!({"rate": "5 Mbit/s", "rtt": "60 ms", "buffer": "1 bdp"});
            ask(&mut engine, &json!({"method": "change", "run": run, "change": change}));
            let word = |text: &str| Some(text.to_owned());
            let [rate, rtt, buffer] = [word("5 Mbit/s"), word("60 ms"), word("1 bdp")];
            simulation.change_text(&TextChange { rate, rtt, buffer, ..TextChange::default() }).unwrap();
        }
        let until_s = f64::from(until_ms) / 1e3;
        let (answer, step) = ask(&mut engine, &json!({"method": "advance", "run": run, "until_s": until_s}));
        simulation.advance(Time::from_micros(u64::from(until_ms) * 1_000)).unwrap();
        assert_eq!(step["now_s"], simulation.now().as_secs_f64());
        assert_eq!(step["running"], until_ms < 2_000);
        let flow = simulation.flow(0);
        assert_eq!(step["flows"][0]["segments_sent"], flow.segments_sent());
        assert_eq!(step["flows"][0]["cwnd"], json!(flow.sample().map(|sample| sample.cwnd)));
        assert_eq!(step["queues"][0]["backlog_bytes"], simulation.queues()[0].sample.backlog_bytes);
        // Each sample is told once.
        let times = column(&answer, &step["flow_series"][0], "time_s");
        let series = simulation.flow_series(0);
        let expected: Vec<f64> = series.time_ns[reported..].iter().map(|&time| time as f64 / 1e9).collect();
        assert_eq!(times, expected);
        let goodputs = column(&answer, &step["flow_series"][0], "goodput_bps");
        assert!(goodputs.iter().enumerate().all(|(index, rate)| rate.is_nan() == (reported + index == 0)));
        reported = series.len();
    }
    let (answer, finished) = ask(&mut engine, &json!({"method": "finish", "run": run}));
    assert_eq!(finished["changed"], simulation.spec().to_json());
    assert_eq!(column(&answer, &finished["flows"][0], "cwnd").len(), reported);
    assert_eq!(finished["summary"], simulation.finish().summary_json());
    let gone = refused(&mut engine, &json!({"method": "advance", "run": run, "until_s": 1}));
    assert_eq!(gone, "live run 1 is finished or closed");
}

#[test]
fn live_runs_are_few_and_apart() {
    let mut engine = Engine::default();
    let open = json!({"method": "open", "document": document(ONE), "seed": 1});
    let runs: Vec<Value> = (0..16).map(|_| ask(&mut engine, &open).1["run"].clone()).collect();
    assert_eq!(refused(&mut engine, &open), "16 live runs are open already; close one");
    ask(&mut engine, &json!({"method": "advance", "run": runs[3], "until_s": 1}));
    let other = ask(&mut engine, &json!({"method": "advance", "run": runs[4], "until_s": 0.5})).1;
    assert_eq!(other["now_s"], 0.5);
    ask(&mut engine, &json!({"method": "close", "run": runs[0]}));
    ask(&mut engine, &open);
}

#[test]
fn invalid_time_does_nothing() {
    let mut engine = Engine::default();
    ask(&mut engine, &json!({"method": "open", "document": document(ONE), "seed": 1}));
    for (until_s, now_s) in [(-1e300, 0.0), (-0.0, 0.0), (0.25, 0.25), (0.1, 0.25), (1e300, 2.0)] {
        let step = ask(&mut engine, &json!({"method": "advance", "run": 1, "until_s": until_s})).1;
        assert_eq!(step["now_s"], now_s, "{until_s}");
    }
}

#[test]
fn summary_rows_are_documents_columns_seeds() {
    let mut engine = Engine::default();
    let request = json!({
        "method": "summaries", "documents": [document(ONE), document(TEXT)], "seeds": [1, 2, 3],
    });
    let (_, rows) = ask(&mut engine, &request);
    for (row, text) in [ONE, TEXT].iter().enumerate() {
        for (place, seed) in [1, 2, 3].iter().enumerate() {
            let run = ask(&mut engine, &json!({"method": "run", "document": document(text), "seed": seed})).1;
            assert_eq!(rows[row][place], run["summary"]);
        }
    }
}

#[test]
fn every_packet_of_flow_is_reported() {
    let mut engine = Engine::default();
    for flow in [0, 1] {
        let request = json!({"method": "packets", "document": document(TEXT), "seed": 1, "flow": flow});
        let (answer, packets) = ask(&mut engine, &request);
        let run = ask(&mut engine, &json!({"method": "run", "document": document(TEXT), "seed": 1})).1;
        let summary: Value = serde_json::from_str(run["summary"].as_str().unwrap()).unwrap();
        let totals = &summary["flows"][flow];
        let sent = &packets["sent"];
        assert_eq!(sent["rows"], totals["segments_sent"]);
        let again = column(&answer, sent, "again");
        let retransmits = again.iter().filter(|why| **why > 0.0).count();
        assert_eq!(totals["retransmits"], retransmits);
        let (starts, ends) = (column(&answer, sent, "start_bytes"), column(&answer, sent, "end_bytes"));
        assert!(starts.iter().zip(&ends).all(|(start, end)| start < end && end - start <= 1448.0));
        let times = column(&answer, sent, "time_s");
        assert!(times.is_sorted() && *times.last().unwrap() <= 2.0);
        let acks = column(&answer, &packets["acks"], "ack_bytes");
        let edges = column(&answer, &packets["acks"], "edge_bytes");
        assert!(acks.is_sorted() && acks.iter().zip(&edges).all(|(ack, edge)| ack <= edge));
        // Each byte range that was sent again was lost, and what was lost was dropped.
        let lost: Vec<f64> = column(&answer, &packets["lost"], "start_bytes");
        let dropped = column(&answer, sent, "dropped");
        let gone: Vec<f64> = starts
            .iter()
            .zip(&dropped)
            .filter(|(_, dropped)| **dropped > 0.0)
            .map(|(start, _)| *start)
            .collect();
        assert!(!lost.is_empty() && lost.iter().all(|start| gone.contains(start)));
        let repeated = starts.iter().zip(&again).filter(|(_, again)| **again == 1.0);
        assert!(repeated.into_iter().all(|(start, _)| lost.contains(start)));
        assert!(!column(&answer, &packets["sacks"], "time_s").is_empty());
        assert_eq!(packets["truncated_s"], Value::Null);
    }
}

#[test]
fn packets_are_truncated_at_row_limit() {
    let request = json!({
        "method": "packets", "document": document(ONE), "seed": 1, "flow": 0, "most_rows": 100,
    });
    let (answer, packets) = ask(&mut Engine::default(), &request);
    assert_eq!(packets["sent"]["rows"], 100);
    let last = *column(&answer, &packets["sent"], "time_s").last().unwrap();
    assert!(packets["truncated_s"].as_f64().unwrap() >= last);
    let none = json!({"method": "packets", "document": document(ONE), "seed": 1, "flow": 1});
    assert_eq!(refused(&mut Engine::default(), &none)["field"], "flows");
}

/// What a log writes into.
#[derive(Clone, Default)]
struct Out(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Out {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Shared(Arc<Mutex<Files<Out>>>);

impl Log for Shared {
    fn take(&mut self, at: Time, flow: u32, event: &Event<'_>) {
        self.0.lock().unwrap().take(at, flow, event);
    }
}

#[test]
fn log_matches_command_line() {
    // Named as the alternative is.
    let spec = spec(TEXT, 1);
    let header = fullpipe_sim::log_header("cubic", &spec, 5);
    let (current, qvis) = (Out::default(), Out::default());
    let qlog = Qlog::new(current.clone(), qvis.clone(), &header).unwrap();
    let files = Arc::new(Mutex::new(Files::new(Some(qlog), None, &header, u64::MAX)));
    let mut simulation = Simulation::logged(&spec, 5, Box::new(Shared(Arc::clone(&files)))).unwrap();
    simulation.advance(Time::NEVER).unwrap();
    drop(simulation);
    Arc::into_inner(files).unwrap().into_inner().unwrap().finish().unwrap();
    for (form, expected) in [("current", current), ("qvis", qvis)] {
        let request = json!({
            "method": "qlog", "document": document(TEXT), "alternative": 1, "seed": 5, "form": form,
        });
        let (answer, _) = ask(&mut Engine::default(), &request);
        assert!(answer.text.len() > 100_000);
        assert!(answer.text == *expected.0.lock().unwrap(), "{form}");
    }
}

#[test]
fn error_matches_command_line() {
    let text = "[path]\nrate = \"1 parsec\"\nrtt = \"40 ms\"\n[[flows]]\ncontroller = \"reno\"";
    let expected = Resolved::without_files(text, Format::Toml).unwrap_err();
    for method in ["resolve", "run", "open"] {
        let request = json!({"method": method, "document": document(text), "seed": 1});
        let mistake = refused(&mut Engine::default(), &request);
        assert_eq!(mistake["message"], expected.to_string());
        assert_eq!(mistake["field"], "path.rate");
        assert_eq!(mistake["given"], expected.given);
        assert_eq!(mistake["expected"], *expected.expected);
        assert_eq!(mistake["fix"], *expected.fix);
    }
    let mut engine = Engine::default();
    ask(&mut engine, &json!({"method": "open", "document": document(ONE), "seed": 1}));
    let mistake = refused(&mut engine, &json!({"method": "change", "run": 1, "change": {"rate": "fast"}}));
    assert_eq!(mistake["field"], "rate");
    let missing = json!({"method": "run", "document": document(TEXT), "alternative": 2, "seed": 1});
    assert_eq!(
        refused(&mut engine, &missing)["message"],
        "compare: there is no number 2; expected a number below 2; choose another alternative"
    );
}

#[test]
fn custom_python_controller_is_refused() {
    let text = ONE.replace("\"cubic\"", "\"mine.py:Mine\"");
    let request = json!({"method": "run", "document": document(&text), "seed": 1});
    let mistake = refused(&mut Engine::default(), &request);
    let message = mistake["message"].as_str().unwrap();
    assert!(message.starts_with("flows[0].controller: mine.py:Mine is not built in"), "{message}");
}

#[test]
fn what_is_no_request_is_refused() {
    let mut engine = Engine::default();
    let requests =
        ["", "{", "[]", "null", "{}", r#"{"method":"boom"}"#, r#"{"method":"run"}"#, "\u{0}", "\"run\""];
    for request in requests {
        let answer = engine.answer(request.as_bytes());
        let failure = answer.json.starts_with(r#"{"failure":"the engine does not understand the page: "#);
        assert!(failure, "{request}: {}", answer.json);
    }
    assert!(engine.answer(b"\xff\xfe").json.starts_with(r#"{"failure":"#));
    for seed in [json!(-1), json!(1.5), json!("1"), json!(1e30)] {
        refused(&mut engine, &json!({"method": "run", "document": document(ONE), "seed": seed}));
    }
}
