"""The recipe of docs/how-to/gate.md for a checkout of noq or Quinn, word by word, with a changed constant.

It compiles the stack with Fullpipe, which takes minutes, and cargo may look up versions: it runs only if
FULLPIPE_GATE_RECIPE is set. FULLPIPE_GATE_OUT keeps the answers in a folder.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import pytest

from fullpipe.runs.worlds import quic_program
from test_gate import gate

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "how-to" / "gate.md"
# What the released stacks have, and what is planted.
BEFORE, PLANTED = "const C: f64 = 0.4;", "const C: f64 = 0.3;"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target" / "quic-planted")).absolute()
CASES = ("--only", "l*")  # long-path, loss-0.1, loss-1, loss/...

pytestmark = pytest.mark.skipif(
    not os.environ.get("FULLPIPE_GATE_RECIPE"),
    reason="compiles a stack with Fullpipe, which takes minutes; set FULLPIPE_GATE_RECIPE=1",
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


@dataclass(frozen=True)
class Checkout:
    """A folder as a maintainer of a stack has it, with the crate that the page says."""

    stack: str  # noq or quinn

    @property
    def cubic(self) -> Path:
        return Path(f"{self.stack}-proto/src/congestion/cubic.rs")


@pytest.fixture(params=["noq", "quinn"])
def checkout(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    cargo = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    name = f"{request.param}-proto"
    lock = (ROOT / "quic" / "Cargo.lock").read_text()
    version = re.search(rf'name = "{name}"\nversion = "(.+?)"', lock)
    assert version is not None
    sources = sorted(cargo.glob(f"registry/src/*/{name}-{version[1]}"))
    if not sources:
        pytest.skip(f"needs the sources of {name}: `cargo fetch` in quic/")
    (tmp_path / "fullpipe").symlink_to(ROOT)
    here = tmp_path / request.param
    shutil.copytree(sources[0], here / name)
    text = PAGE.read_text(encoding="utf-8")
    (manifest,) = re.findall(r"^```toml\n(\[workspace\]\n.*?)^```$", text, re.DOTALL | re.MULTILINE)
    (main,) = re.findall(r"`(fn main\(\) .*?)` in `gate/src/main.rs`", text)
    (here / "gate" / "src").mkdir(parents=True)
    # "For Quinn, name `quinn-proto` instead."
    (here / "gate" / "Cargo.toml").write_text(manifest.replace("noq-proto", name))
    (here / "gate" / "src" / "main.rs").write_text(main)
    (here / "gate" / ".cargo").mkdir()
    shutil.copyfile(ROOT / "quic/world/.cargo/config.toml", here / "gate/.cargo/config.toml")
    monkeypatch.chdir(here)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv(quic_program.VARIABLE, str(TARGET / "release" / "gate"))
    return Checkout(request.param)


def test_a_changed_constant_is_reported_in_every_format(checkout: Checkout) -> None:
    assert build() == ""
    assert gate("init", "--stack", checkout.stack, "--controllers", "cubic")[0] == 0
    code, _, errors = gate("record", "--traces", *CASES)
    assert code == 0, errors
    assert gate("check", *CASES)[0] == 0
    replace(checkout.cubic, BEFORE, PLANTED)
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
    # The curve back to the last maximum is slower: Quinn's case then fails.
    assert cases["loss/cubic-k"] == {"noq": "changed", "quinn": "worse"}[checkout.stack]
    assert int(ElementTree.fromstring(answers["junit"][1]).get("failures") or 0) >= 2
    replace(checkout.cubic, PLANTED, BEFORE)
    assert build() == ""
    assert gate("check", *CASES)[0] == 0, "as before"


def test_a_version_that_cargo_does_not_use_fails_the_build(checkout: Checkout) -> None:
    name = f"{checkout.stack}-proto"
    manifest = Path(name, "Cargo.toml")
    manifest.write_text(
        re.sub(r'^version = ".+"$', 'version = "9.0.0"', manifest.read_text(), count=1, flags=re.M)
    )
    assert f"names {name} 9.0.0, which is incompatible" in build()
