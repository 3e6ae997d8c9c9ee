"""An element of the path is added as crates/path/README.md says, and works everywhere."""

import shutil
from pathlib import Path

import pytest

from adding import ROOT, cargo, copied, steps

STEPS = steps(ROOT / "crates" / "path" / "README.md", "Adding an element")
# In a run of 5 s, packets are lost at four handovers that are not the end.
SIMULATION = """
use std::sync::atomic::AtomicBool;

use fullpipe_scenario::{Format, resolve};

const SCENARIO: &str = r#"
duration = "5 s"
flows = [{ controller = "cubic" }]
path = { rate = "20 Mbit/s", rtt = "40 ms", buffer = "10 bdp", after = [
    { kind = "handover", every = "1 s", away = "50 ms" },
] }
"#;

#[test]
fn a_flow_loses_packets_at_handovers() {
    let lost = |scenario: &str| {
        let spec = resolve(scenario, Format::Toml, None).unwrap();
        let run = fullpipe_sim::run(&spec, 1, &AtomicBool::new(false)).unwrap();
        let totals = &run.flows[0].totals;
        assert!(totals.delivered_bytes > 1_000_000);
        totals.retransmits
    };
    assert!(lost(SCENARIO) > 10);
    assert_eq!(lost(&SCENARIO.replace("50 ms", "0 ms")), 0);
    let (before, _) = SCENARIO.split_once("after").unwrap();
    let key = format!(r#"{before} handover = "1 s, 50 ms" }}"#);
    assert_eq!(lost(&key), lost(SCENARIO));
}

#[test]
fn a_handover_that_never_ends_is_refused() {
    let error = resolve(&SCENARIO.replace("50 ms", "2 s"), Format::Toml, None).unwrap_err();
    assert!(error.to_string().contains("longer than away"), "{error}");
}
"""

TABLE = """
#[test]
fn schema_and_options_know_it() {
    let options = fullpipe_scenario::path_options();
    let known = options.as_array().unwrap().iter().any(|one| one["name"] == "handover");
    assert!(known && fullpipe_scenario::schema().matches("handover").count() >= 3);
}
"""

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Rust")


def patched(text: str, diff: str) -> str:
    """The text with each piece of the diff put behind the line that the piece begins with."""
    for piece in diff.rstrip("\n").split("\n\n"):
        after, *added = piece.splitlines()
        lines = text.splitlines()
        found = [number for number, line in enumerate(lines) if line.strip() == after.strip()]
        assert len(found) == 1, f"{after.strip()!r} occurs {len(found)} times"
        assert all(line.startswith("+") for line in added)
        lines[found[0] + 1 : found[0] + 1] = [line[1:] for line in added]
        text = "\n".join(lines) + "\n"
    return text


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(tmp_path_factory.mktemp("element") / "tree")
    for file, kind, code in STEPS:
        path = folder / file
        assert path.exists() == (kind == "diff"), file
        text = patched(path.read_text(encoding="utf-8"), code) if kind == "diff" else code
        path.write_text(text, encoding="utf-8")
    (folder / "crates" / "sim" / "tests" / "handover.rs").write_text(SIMULATION, encoding="utf-8")
    return folder


GENERATED = "python/fullpipe/scenario/path_fields.py"


def test_three_files_are_enough() -> None:
    files = {file for file, _, _ in STEPS} | {GENERATED}
    assert len(files) == 3
    assert GENERATED in (ROOT / "crates" / "path" / "README.md").read_text(encoding="utf-8")


def test_schema_and_options_include_added_element(tree: Path) -> None:
    (tree / "crates" / "scenario" / "tests" / "handover.rs").write_text(TABLE, encoding="utf-8")
    printed = cargo(tree, "test", "--offline", "--locked", "-p", "fullpipe-scenario", "--test", "handover")
    assert "1 passed; 0 failed" in printed, printed


def test_generated_arguments_match_table() -> None:
    from fullpipe.scenario import path, path_fields

    namespace: dict[str, object] = {}
    exec(path.generated(), namespace)
    for name in ("PathFields", "PathValues"):
        made = namespace[name].__annotations__  # type: ignore[attr-defined]
        assert list(made) == list(getattr(path_fields, name).__annotations__) == list(path.NAMES)


def test_added_element_passes_own_tests(tree: Path) -> None:
    printed = cargo(tree, "test", "--offline", "--locked", "--lib", "-p", "fullpipe-path", "handover")
    assert "1 passed; 0 failed" in printed, printed


def test_added_element_runs_in_simulator(tree: Path) -> None:
    printed = cargo(tree, "test", "--offline", "--locked", "-p", "fullpipe-sim", "--test", "handover")
    assert "2 passed; 0 failed" in printed, printed


def test_the_emulator_takes_the_added_element(tree: Path) -> None:
    cargo(tree, "check", "--offline", "--locked", "-p", "fullpipe-kernel")
