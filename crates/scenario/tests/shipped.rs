//! Every scenario in `scenarios/` resolves, fits the schema, and is what its header says.

use std::fs;
use std::path::{Path, PathBuf};

use fullpipe_scenario::resolve_file;

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

fn shipped() -> Vec<PathBuf> {
    let entries = fs::read_dir(scenarios()).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        entries.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect();
    files.sort();
    assert!(files.len() >= 14, "{files:?}");
    files
}

#[test]
fn shipped_scenarios_resolve_under_file_name() {
    for file in shipped() {
        let specs = resolve_file(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        for (label, spec) in specs {
            assert_eq!(spec.name, file.file_stem().unwrap().to_string_lossy(), "{label}");
        }
    }
}

#[test]
fn shipped_scenarios_open_with_question() {
    for file in shipped() {
        let text = fs::read_to_string(&file).unwrap();
        assert!(text.starts_with("# Question: ") && text.contains("\n# Look for: "), "{}", file.display());
    }
}

/// The line that figures hold goodput against must be the path's own rate, whatever element has it.
#[test]
fn shipped_scenarios_report_bottleneck_rate() {
    let mbit = |name: &str| match name {
        "policer" => Some(10.0),
        "queue16-cellular" => Some(50.0),
        "core-scale" => Some(10_000.0),
        _ => None,
    };
    for file in shipped() {
        for (label, spec) in resolve_file(&file).unwrap() {
            let facts = spec.path_facts();
            let steps = facts.round_trips[0]
                .rate_bps
                .clone()
                .unwrap_or_else(|| panic!("{}: no rate", file.display()));
            let most = steps.iter().map(|step| step.1).max().unwrap() as f64 / 1e6;
            assert!((1.0..=10_000.0).contains(&most), "{} {label}: {most} Mbit/s", file.display());
            if let Some(expected) = mbit(&spec.name) {
                assert_eq!(most, expected, "{} {label}", file.display());
            }
            for trip in facts.round_trips {
                assert!(
                    trip.rtt_ns[0].1 > 0 && trip.bdp_bytes.unwrap()[0].1 > 0,
                    "{} {label}",
                    file.display()
                );
            }
        }
    }
}

#[test]
fn the_synthetic_trace_follows_its_formula() {
    let mut credit = 0;
    let mut expected = String::new();
    for ms in 1..=30_000u32 {
        let outage = ms % 10_000 <= 100 || ms % 10_000 >= 9_900;
        if outage {
            continue;
        }
        let phase = ms % 7_500;
        credit += 7_500 + 22 * phase.min(7_500 - phase);
        while credit >= 75_000 {
            credit -= 75_000;
            expected.push_str(&format!("{ms}\n"));
        }
    }
    let trace = fs::read_to_string(scenarios().join("deliveries/cellular-synthetic.deliveries")).unwrap();
    assert!(trace == expected, "the trace differs from its formula");
}
