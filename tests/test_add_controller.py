"""A controller is added as crates/cc/README.md says, and works everywhere."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = ROOT / "crates" / "cc" / "README.md"
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


def steps() -> list[tuple[str, str]]:
    """Each step of the README: the file it touches, and the code."""
    text = README.read_text(encoding="utf-8").partition("## Adding a controller\n")[2]
    found = re.findall(r"^\d\. `([^`]+)`.*?^   ```rust\n(.*?)^   ```$", text, re.MULTILINE | re.DOTALL)
    # The code is indented as the step is.
    return [(file, re.sub(r"^   ", "", code, flags=re.MULTILINE)) for file, code in found]


def follow(tree: Path) -> None:
    """Takes the steps in a copy of the sources."""
    (new, controller), (library, module), (registry, line) = steps()
    assert not (tree / new).exists()
    (tree / new).write_text(controller, encoding="utf-8")
    for file, after, added in ((library, "pub mod reno;\n", module), (registry, "controllers! {\n", line)):
        text = (tree / file).read_text(encoding="utf-8")
        assert text.count(after) == 1, file
        (tree / file).write_text(text.replace(after, after + added), encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("controller") / "tree"
    left_out = shutil.ignore_patterns("target", "peers")
    for name in ("crates", "bench"):
        # Without the times of the files: to cargo every copy is the same package, and what looks older than
        # the last build would not be built again.
        shutil.copytree(ROOT / name, folder / name, ignore=left_out, copy_function=shutil.copyfile)
    for name in ("Cargo.toml", "Cargo.lock"):
        shutil.copyfile(ROOT / name, folder / name)
    follow(folder)
    return folder


def cargo(tree: Path, *arguments: str) -> str:
    """What cargo prints, with a target folder of its own that stays warm. Built to be built fast."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "added"
    profile = {"CARGO_PROFILE_DEV_OPT_LEVEL": "0", "CARGO_PROFILE_DEV_DEBUG": "0"}
    done = subprocess.run(
        ["cargo", *arguments],
        cwd=tree,
        env={**os.environ, **profile, "CARGO_TARGET_DIR": str(target), "CARGO_TERM_COLOR": "never"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_three_files_are_enough() -> None:
    files = [file for file, _ in steps()]
    assert len(set(files)) == len(files) == 3
    assert not (ROOT / files[0]).exists()


def test_the_added_controller_obeys_the_laws_and_has_its_parameters(tree: Path) -> None:
    arguments = ("--offline", "--locked", "--lib", "-p", "fullpipe-cc", "-p", "fullpipe-conformance")
    printed = cargo(tree, "test", *arguments, "--", "on_a_clean_path", "every_listed_controller")
    assert printed.count("1 passed; 0 failed") == 2, printed


def test_a_scenario_with_the_added_controller_runs_in_the_simulator(tree: Path, tmp_path: Path) -> None:
    scenario = tmp_path / "scalable.toml"
    scenario.write_text(SCENARIO, encoding="utf-8")
    example = ("-q", "--offline", "--locked", "-p", "fullpipe-sim", "--example", "simulate")
    printed = cargo(tree, "run", *example, "--", str(scenario), "1")
    goodput = re.search(r"scalable:per_segment=50: ([\d.]+) Mbit/s", printed)
    assert goodput is not None, printed
    assert float(goodput[1]) > 15
