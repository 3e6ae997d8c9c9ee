"""The examples: projects of their own, as a user's would be, so that nothing else builds them."""

import os
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"

pytestmark = pytest.mark.skipif(shutil.which("cargo") is None, reason="needs Rust")


def cargo(example: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs cargo on an example, in the workspace's profile, so that crates of registries compile once."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve()
    profile = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["profile"]["dev"]
    variables = {f"CARGO_PROFILE_DEV_{key.upper().replace('-', '_')}": str(of) for key, of in profile.items()}
    return subprocess.run(
        ["cargo", *arguments, "--manifest-path", str(EXAMPLES / example / "Cargo.toml")],
        cwd=ROOT,
        env={**os.environ, **variables, "CARGO_TARGET_DIR": str(target)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_custom_controller_shares_link_with_bbr() -> None:
    done = cargo("controller", "run", "--quiet", "--locked")
    assert done.returncode == 0, done.stderr
    header, *rows, dropped = done.stdout.splitlines()
    assert header.split()[:4] == ["s", "controller", "cwnd", "RTT,"]
    assert len(rows) == 20 and dropped.startswith("dropped at the bottleneck: ")
    for name in ("own:aimd", "bbr1"):
        rates = [float(row.split()[4]) for row in rows if row.split()[1] == name]
        # Each has a fair part of 50 Mbit/s, less headers, in every second after the first.
        assert all(10 < rate < 40 for rate in rates[1:]), (name, rates)


def test_custom_discipline_serves_flow() -> None:
    done = cargo("discipline", "run", "--quiet", "--locked")
    assert done.returncode == 0, done.stderr
    goodput = float(done.stdout.removeprefix("cubic behind a stack: ").split()[0])
    # Reordering by whole queues costs something, but no more than a few per cent of the 20 Mbit/s.
    assert 17 < goodput < 19.3, done.stdout


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.iterdir()))
def test_an_example_is_formatted(example: str) -> None:
    done = cargo(example, "fmt", "--check")
    assert done.returncode == 0, done.stdout
