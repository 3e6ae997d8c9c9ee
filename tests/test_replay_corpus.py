"""The controllers here decide what a real kernel decided: every call in `tests/recordings`."""

import json
from pathlib import Path

import pytest

from conftest import command

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.recording"))


def test_there_are_recordings_of_both_algorithms() -> None:
    assert {one.name.split("-")[0] for one in RECORDINGS} == {"bbr", "cubic"}


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda one: one.stem)
def test_every_replayed_call_matches_kernel(recording: Path) -> None:
    done = command("replay", str(recording), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    [report] = json.loads(done.stdout)
    assert report["agrees"]
    assert report["calls"] > 100
    assert report["late"] == 0, "none of these has a clock tick between the recorder's read and the kernel's"
