"""Commands that take the path of a scenario file: options override it, and what has no option is said."""

import json
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from typer.testing import CliRunner

from fullpipe._native import ScenarioError
from fullpipe.advisor import sources
from fullpipe.cli import app as cli
from fullpipe.cli.commands.lab import _link
from fullpipe.scenario import of_file

MEASURED = """
name = "measured"
compare = ["cubic"]
[path]
rate = "20 Mbit/s"
rtt = "40 ms"
buffer = 99572
loss = 0.0025
[path.reverse]
rate = "10 Mbit/s"
[[path.reverse.after]]
kind = "aggregate"
every = "3 ms"
"""


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    path = tmp_path / "path.toml"
    path.write_text(MEASURED)
    return path


def test_keys_are_those_of_options_and_others_are_named(measured: Path) -> None:
    own, reverse, notes = of_file.read(measured, "file")
    assert own == {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "99572 B", "loss": 0.0025}
    assert reverse is not None and reverse.rate == "10 Mbit/s"
    assert notes == ["path.toml has path.reverse.after, which has no option and is not used"]


def test_traces_are_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.deliveries").write_text("1\n2\n")
    path = tmp_path / "path.toml"
    path.write_text('compare = ["cubic"]\n[path]\nrtt = "40 ms"\ndeliveries = "a.deliveries"\n')
    own, _, _ = of_file.read(path, "file")
    assert own["deliveries"] == str(tmp_path / "a.deliveries")
    assert of_file.beside({"rate": "1 Mbit/s"}, own) == {"rtt": "40 ms", "rate": "1 Mbit/s"}


def test_compare_runs_on_it_and_options_override(measured: Path) -> None:
    words = ["compare", "cubic", "--path", str(measured), "--rtt", "30 ms", "--duration", "1 s", "--json"]
    done = CliRunner().invoke(cli.app, [*words, "--seeds", "1"])
    assert done.exit_code == 0, done.stderr
    path = json.loads(done.stdout)["scenario"]["path"]
    assert path["rate"] == "20 Mbit/s" and path["rtt"] == "30 ms"
    assert path["reverse"] == {"rate": "10 Mbit/s"}
    assert "path.reverse.after" in done.stderr


def test_advise_takes_it_as_a_source(measured: Path) -> None:
    (path,) = sources.read(measured)
    assert path.says == {"rate": "20 Mbit/s", "rtt": "40 ms", "buffer": "99572 B", "loss": "0.0025"}
    assert any("way back" in one for one in path.left_out)
    assert str(path.question({}).rate)


def test_the_lab_opens_it(measured: Path) -> None:
    place, _, query = _link(measured).partition("?")
    assert place == "#/compare" and parse_qs(query)["toml"] == [MEASURED]


@pytest.mark.parametrize(
    "command", [["compare", "cubic"], ["map", "--x", "rtt=1ms..2ms", "--y", "loss=1%..2%"]]
)
def test_what_is_no_scenario_is_refused(tmp_path: Path, command: list[str]) -> None:
    path = tmp_path / "path.toml"
    path.write_text("[path]\nrtt = 7 parsecs\n")
    done = CliRunner().invoke(cli.app, [*command, "--path", str(path)])
    assert done.exit_code == 2 and "path.toml" in done.stderr


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ScenarioError, match="cannot be read"):
        of_file.read(tmp_path / "none.toml", "file")
