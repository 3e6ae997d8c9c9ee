//! The engine without a browser: it reads cases as `lab/bench/cases.ts` has them (JSON on stdin), carries out each the
//! given number of times, and prints the best time of each in milliseconds as JSON.

use std::io::Read;
use std::time::Instant;

use fullpipe_wasm::engine::Engine;
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    times: usize,
    requests: Vec<serde_json::Value>,
}

#[expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]
fn main() {
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).expect("the cases on stdin");
    let cases: Vec<Case> = serde_json::from_str(&text).expect("cases as in lab/bench/cases.ts");
    let best = cases.iter().map(|case| {
        let requests: Vec<String> = case.requests.iter().map(ToString::to_string).collect();
        let mut engine = Engine::default();
        let times = (0..case.times).map(|_| {
            let from = Instant::now();
            for request in &requests {
                let answer = engine.answer(request.as_bytes());
                assert!(answer.json.starts_with("{\"ok\""), "{}", answer.json);
            }
            from.elapsed().as_secs_f64() * 1e3
        });
        times.fold(f64::INFINITY, f64::min)
    });
    println!("{}", serde_json::to_string(&best.collect::<Vec<f64>>()).expect("numbers"));
}
