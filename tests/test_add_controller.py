"""A controller is added as crates/cc/README.md says, and works everywhere."""

import re
import shutil
from pathlib import Path

import pytest

from adding import ROOT, cargo, copied, steps

STEPS = steps(ROOT / "crates" / "cc" / "README.md", "Adding a controller")
SCENARIO = """
duration = "5 s"

[path]
rate = "20 Mbit/s"
rtt = "40 ms"
buffer = "1 bdp"

[[flows]]
controller = "scalable:per_segment=50"
"""

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Rust")


def follow(tree: Path) -> None:
    """Takes the steps in a copy of the sources."""
    (new, _, controller), (library, _, module), (registry, _, line) = STEPS
    assert not (tree / new).exists()
    (tree / new).write_text(controller, encoding="utf-8")
    for file, after, added in ((library, "pub mod reno;\n", module), (registry, "controllers! {\n", line)):
        text = (tree / file).read_text(encoding="utf-8")
        assert text.count(after) == 1, file
        (tree / file).write_text(text.replace(after, after + added), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(tmp_path_factory.mktemp("controller") / "tree")
    follow(folder)
    return folder


def test_three_files_are_enough() -> None:
    files = [file for file, _, _ in STEPS]
    assert len(set(files)) == len(files) == 3
    assert not (ROOT / files[0]).exists()


def test_added_controller_passes_law_tests(tree: Path) -> None:
    arguments = ("--offline", "--locked", "--lib", "-p", "fullpipe-cc", "-p", "fullpipe-conformance")
    printed = cargo(tree, "test", *arguments, "--", "on_a_clean_path", "every_listed_controller")
    assert printed.count("1 passed; 0 failed") == 2, printed


def test_added_controller_runs_in_simulator(tree: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "scalable.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    example = ("-q", "--offline", "--locked", "-p", "fullpipe-sim", "--example", "simulate")
    printed = cargo(tree, "run", *example, "--", str(scenario), "1")
    goodput = re.search(r"scalable:per_segment=50: ([\d.]+) Mbit/s", printed)
    assert goodput is not None, printed
    assert float(goodput[1]) > 15
