"""The lab's commands: what it says gives the same numbers is carried out, and gives them.

`lab/tests/commands.json` has setups of the lab, with the scenario that it computes and what it says to type.
The lab's own tests (`lab/src/export/export.test.ts`) hold that file to be what the page says.
"""

import contextlib
import io
import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

import fullpipe
from conftest import command

SAID: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[1] / "lab/tests/commands.json").read_text(encoding="utf-8")
)
IDS = [one["name"] for one in SAID]


def of_the_lab(data: dict[str, Any]) -> Any:
    """What the lab computes: each alternative of its scenario."""
    return plain(fullpipe.run(tomllib.loads(data["scenario"]), seed=data["seed"], seeds=data["seeds"]))


def plain(results: fullpipe.Results) -> Any:
    """The measures of each alternative. With one seed, they are those of the run."""
    return json.loads(results.to_json())["results"]


@pytest.mark.parametrize("data", SAID, ids=IDS)
def test_command_line_matches_lab_numbers(
    data: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lab.toml").write_text(data["scenario"], encoding="utf-8", newline="")
    program, *words = shlex.split(data["command"])
    assert program == "fullpipe"
    monkeypatch.chdir(tmp_path)
    done = command(*words, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["results"] == of_the_lab(data)


@pytest.mark.parametrize("data", SAID, ids=IDS)
def test_python_code_matches_lab_numbers(data: dict[str, Any]) -> None:
    found: dict[str, Any] = {}
    with contextlib.redirect_stdout(io.StringIO()) as shown:
        exec(data["python"], found)
    assert shown.getvalue().strip()
    assert plain(found["results"]) == of_the_lab(data)
