"""The list of known mistakes fits the code; `make mistakes` makes them."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from fullpipe.conformance import registry

ROOT = Path(__file__).parent.parent
RUNNER = ROOT / "tests" / "mistakes" / "run.py"
MISTAKES = tomllib.loads((RUNNER.parent / "mistakes.toml").read_text())


def test_mutations_are_enough_with_quick_subset() -> None:
    assert len(MISTAKES) >= 14
    assert 10 <= sum(mistake.get("quick", False) for mistake in MISTAKES.values()) < len(MISTAKES)


@pytest.mark.parametrize("name", MISTAKES)
def test_every_mutation_replaces_unique_text(name: str) -> None:
    mistake = MISTAKES[name]
    assert (ROOT / mistake["file"]).read_text().count(mistake["text"]) == 1
    assert mistake["instead"] != mistake["text"]
    assert set(mistake["caught"]) <= {"replay", "laws", "conform"}
    assert mistake["caught"]
    assert ("case" in mistake) == ("conform" in mistake["caught"])


def test_ten_bbr3_mutations_name_existing_cases() -> None:
    named = [mistake["case"] for mistake in MISTAKES.values() if "case" in mistake]
    assert len(named) >= 10
    assert set(named) <= {case.name for case in registry.every()}


def test_runner_lists_mutations_and_refuses_unknown() -> None:
    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, str(RUNNER), *arguments], capture_output=True, text=True, check=False, timeout=60
        )

    listed = run("--list")
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[0] for line in listed.stdout.splitlines()] == list(MISTAKES)
    unknown = run("no_such_mistake")
    assert unknown.returncode == 2
    assert "no_such_mistake" in unknown.stderr
