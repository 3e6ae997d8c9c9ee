"""`fullpipe probe` over emulated paths in namespaces, and what its options refuse."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from conftest import command
from fullpipe.probe.analysis import kinds

TOKEN = "0123456789abcdef"
PROGRAM = shlex.join([sys.executable, "-P", "-m", "fullpipe"])


def measure(folder: Path, *options: str, short: bool = False) -> dict[str, dict[str, dict[str, float]]]:
    """The estimates of a path; fails with what the commands said."""
    server = f"{PROGRAM} probe serve --bind {{server}} --port {{port}} --token {TOKEN}"
    client = f"{PROGRAM} probe $FULLPIPE_SERVER --port $FULLPIPE_PORT --token {TOKEN}"
    client += f" --out {shlex.quote(str(folder))}{' --short' if short else ''}"
    done = command("shell", *options, "--seed", "7", "--server", server, "--", "sh", "-c", client)
    assert done.returncode == 0, done.stderr
    found: dict[str, dict[str, dict[str, float]]] = json.loads((folder / "estimates.json").read_text())
    return found


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        (("--rate", "20 Mbit/s", "--rtt", "40 ms", "--buffer", "100 KB"), kinds.TAIL),
        (("--rate", "20 Mbit/s", "--rtt", "30 ms", "--buffer", "300 KB", "--queue", "fq_codel"), kinds.FAIR),
        (("--rate", "20 Mbit/s", "--rtt", "20 ms", "--buffer", "300 KB", "--queue", "dualpi2"), kinds.DUAL),
        (("--rate", "50 Mbit/s", "--rtt", "20 ms", "--policer", "10 Mbit/s, 60 KB"), kinds.POLICER),
    ],
    ids=["tail", "fair", "dual", "policer"],
)
@pytest.mark.usefixtures("kernel_world")
def test_the_discipline_is_told(tmp_path: Path, options: tuple[str, ...], kind: str) -> None:
    # On a busy machine it may not know, and says so; what it says must be right.
    for _ in range(3):
        found = measure(tmp_path, *options)
        if found["forward"]["discipline"] is not None:
            break
    assert found["forward"]["discipline"] == kind, found
    assert (tmp_path / "path.toml").read_text().startswith("# The path to")
    assert (tmp_path / "report.html").exists()
    assert command("run", str(tmp_path / "path.toml"), "--out", str(tmp_path / "run")).returncode == 0


@pytest.mark.usefixtures("kernel_world")
def test_the_short_form_measures_rate_rtt_and_buffer_both_ways(tmp_path: Path) -> None:
    options = ("--up-rate", "20 Mbit/s", "--down-rate", "10 Mbit/s", "--rtt", "40 ms")
    found = measure(tmp_path, *options, "--up-buffer", "100 KB", "--down-buffer", "50 KB", short=True)
    for way, rate, buffer in (("forward", 20e6, 100e3), ("back", 10e6, 50e3)):
        # A busy machine widens what follows; that the ways are not mixed up it cannot hide.
        assert found[way]["rate_bps"]["value"] == pytest.approx(rate, rel=0.1)
        assert found[way]["buffer_bytes"]["value"] == pytest.approx(buffer, rel=0.25)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("there",), "--token is missing"),
        (("there", "--token", "x", "--budget", "long"), '--budget "long"'),
        (("there", "--token", "x", "--max-bytes", "-5 MB"), '--max-bytes "-5 MB"'),
        (("there", "--token", "x", "--max-rate", "10 parsecs"), '--max-rate "10 parsecs"'),
        (("serve", "--token", "short"), '--token "short"'),
        (("serve", "--bind", "192.0.2.1"), '--bind "192.0.2.1'),
    ],
)
def test_mistakes_name_the_option(in_empty_folder: Path, options: tuple[str, ...], named: str) -> None:
    done = command("probe", *options)
    assert done.returncode == 2 and named in done.stderr, done.stderr
    assert not list(in_empty_folder.iterdir())


def test_nobody_there_is_one_sentence(in_empty_folder: Path) -> None:
    done = command("probe", "127.0.0.1", "--port", "1", "--token", "x")
    assert done.returncode == 2 and "fullpipe probe serve" in done.stderr and "Traceback" not in done.stderr
