"""The controllers here decide what a real kernel decided: every call of every recording in `tests/traces`."""

import json
from pathlib import Path

import pytest

from conftest import command

TRACES = sorted((Path(__file__).parent / "traces").glob("*.trace"))


def test_there_are_recordings_of_both_algorithms() -> None:
    assert {trace.name.split("-")[0] for trace in TRACES} == {"bbr", "cubic"}


@pytest.mark.parametrize("trace", TRACES, ids=lambda trace: trace.stem)
def test_every_call_is_decided_as_the_kernel_did(trace: Path) -> None:
    done = command("replay", str(trace), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    [report] = json.loads(done.stdout)
    assert report["agrees"]
    assert report["calls"] > 100
