"""The recipe of docs/how-to/gate.md for a checkout of noq, word by word, with a changed constant.

It compiles noq with Fullpipe, which takes minutes, and cargo may look up versions: it runs only if
FULLPIPE_GATE_RECIPE is set. FULLPIPE_GATE_OUT keeps the answers in a folder.
"""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fullpipe.runs.worlds import quic_program
from test_gate import gate

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "gate.md"
CUBIC = Path("noq-proto/src/congestion/cubic.rs")
# What the released stack has, and what is planted.
BEFORE, PLANTED = "const C: f64 = 0.4;", "const C: f64 = 0.3;"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / "quic-planted")).absolute()
CASES = ("--only", "l*")  # long-path, loss-0.1, loss-1, loss/...

pytestmark = pytest.mark.skipif(
    not os.environ.get("FULLPIPE_GATE_RECIPE"),
    reason="compiles noq with Fullpipe, which takes minutes; set FULLPIPE_GATE_RECIPE=1",
)


def build() -> str:
    """Runs the page's build; what it prints if it fails."""
    (command,) = re.findall(
        r"^    (cd gate && cargo build --release) && cd \.\.$", PAGE.read_text(), re.MULTILINE
    )
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
    done = subprocess.run(command, shell=True, env=environment, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode else ""


def replace(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder as a maintainer of noq has it, with the crate that the page says."""
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    version = re.search(r'name = "noq-proto"\nversion = "(.+?)"', (ROOT / "quic" / "Cargo.lock").read_text())
    assert version is not None
    sources = sorted(cargo.glob(f"registry/src/*/noq-proto-{version[1]}"))
    if not sources:
        pytest.skip("needs the sources of noq-proto: `cargo fetch` in quic/")
    (tmp_path / "fullpipe").symlink_to(ROOT)
    noq = tmp_path / "noq"
    shutil.copytree(sources[0], noq / "noq-proto")
    text = PAGE.read_text(encoding="utf-8")
    (manifest,) = re.findall(r"^```toml\n(\[workspace\]\n.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (main,) = re.findall(r"`(fn main\(\) .*?)` in `gate/src/main.rs`", text)
    (noq / "gate" / "src").mkdir(parents=True)
    (noq / "gate" / "Cargo.toml").write_text(manifest)
    (noq / "gate" / "src" / "main.rs").write_text(main)
    (noq / "gate" / ".cargo").mkdir()
    shutil.copyfile(ROOT / "quic/world/.cargo/config.toml", noq / "gate/.cargo/config.toml")
    monkeypatch.chdir(noq)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(quic_program.VARIABLE, str(TARGET / "release" / "gate"))
    return noq


def test_a_constant_changed_in_noq_is_reported_in_every_format(checkout: Path) -> None:
    assert build() == ""
    assert gate("init", "--stack", "noq", "--controllers", "cubic")[0] == 0
    code, _, errors = gate("record", "--traces", *CASES)
    assert code == 0, errors
    assert gate("check", *CASES)[0] == 0
    replace(CUBIC, BEFORE, PLANTED)
    assert build() == ""
    answers = {
        form: gate("check", "--format", form, *CASES)
        for form in ("text", "markdown", "junit", "json", "github")
    }
    for form, (code, out, errors) in answers.items():
        assert code == 1, (form, errors)
        assert "the runs part at" in " ".join(out.split()), form
        if folder := os.environ.get("FULLPIPE_GATE_OUT"):
            Path(folder).mkdir(parents=True, exist_ok=True)
            (Path(folder) / form).write_text(out)
    cases = {one["case"]: one["status"] for one in json.loads(answers["json"][1])["cases"]}
    # The curve back to the last maximum is slower.
    assert cases["loss/cubic-k"] == "changed"
    assert int(ElementTree.fromstring(answers["junit"][1]).get("failures") or 0) >= 2
    replace(CUBIC, PLANTED, BEFORE)
    assert build() == ""
    assert gate("check", *CASES)[0] == 0, "as before"


def test_a_version_that_cargo_does_not_use_fails_the_build(checkout: Path) -> None:
    manifest = checkout / "noq-proto" / "Cargo.toml"
    manifest.write_text(
        re.sub(r'^version = ".+"$', 'version = "9.0.0"', manifest.read_text(), count=1, flags=re.M)
    )
    assert "names noq-proto 9.0.0, which is incompatible" in build()
