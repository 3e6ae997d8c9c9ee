"""The example of a controller of one's own for noq: what docs/how-to/quic-developers.md tells to do, done."""

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

import fullpipe as fp
from fullpipe import api
from fullpipe.conformance.results import FAIL, NOT_APPLICABLE, PASS
from fullpipe.runs.worlds import quic_program

ROOT = Path(__file__).parent.parent
EXAMPLE = ROOT / "examples" / "quic-controller"
PAGE = ROOT / "docs" / "how-to" / "quic-developers.md"
PATH: dict[str, Any] = {"rate": "10 Mbit/s", "rtt": "20 ms", "duration": "3 s"}


@pytest.fixture(scope="module")
def built() -> Path:
    """The program of the example, compiled beside what `make quic` compiled."""
    if not os.environ.get("FULLPIPE_REQUIRE_QUIC"):
        pytest.skip("compiles for minutes: `make test-quic` runs it")
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target").absolute() / "quic"
    done = subprocess.run(
        ["cargo", "build", "--release", "--locked"],
        cwd=EXAMPLE,  # Where .cargo/config.toml has the flag.
        env={**os.environ, "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr, done.stderr
    return target / "release" / "my-quic-controller"


@pytest.fixture
def named(built: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The example is the program of the world."""
    monkeypatch.setenv(quic_program.VARIABLE, str(built))
    return built


@pytest.mark.usefixtures("named")
def test_example_is_controller_like_shipped() -> None:
    assert {"noq:mine", "noq:cubic", "quinn:bbr"} <= {one["name"] for one in api.controllers()}
    found = fp.compare(["noq:mine", "noq:newreno", "bbr3"], world="quic", seeds=1, **PATH)
    goodput = dict(zip(found.summary["controller"], found.summary["goodput_bps"], strict=True))
    assert all(7e6 < one < 9.6e6 for one in goodput.values()), goodput
    assert goodput["noq:mine"] != goodput["noq:newreno"]


@pytest.mark.usefixtures("named")
def test_example_is_judged_and_failure_repeats(tmp_path: Path) -> None:
    found = fp.conform("noq:mine", ["clean-path", "deep-buffer", "startup-plateau"])
    verdicts = {one.case.name: one.verdict for one in found.results}
    assert verdicts == {"clean-path": PASS, "deep-buffer": FAIL, "startup-plateau": NOT_APPLICABLE}
    found.write(tmp_path)
    (again,) = fp.run(str(tmp_path / "cases" / "deep-buffer.toml"), world="quic", seeds=[1]).runs
    (deep,) = (one for one in found.results if one.case.name == "deep-buffer")
    (played,) = deep.played
    assert again.summary["flows"] == played.runs.runs[0].summary["flows"]


def test_quinn_name_is_not_for_noq(named: Path) -> None:
    with pytest.raises(fp.WorldError, match="quinn has no controller mine; choose quinn:bbr"):
        fp.compare(["quinn:mine"], world="quic", **PATH)
    alone = subprocess.run([named], capture_output=True, text=True, check=False)
    assert alone.returncode == 2 and "let FULLPIPE_QUIC name this program" in alone.stderr


def test_page_shows_example_and_its_flag() -> None:
    page = PAGE.read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```rust\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    code = (EXAMPLE / "src" / "main.rs").read_text(encoding="utf-8")
    assert shown and shown in code
    world = ROOT / "quic" / "world" / ".cargo" / "config.toml"
    settings = (EXAMPLE / ".cargo" / "config.toml").read_text(encoding="utf-8").partition("[build]")[2]
    assert settings and settings == world.read_text(encoding="utf-8").partition("[build]")[2]
