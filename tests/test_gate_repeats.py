"""The script that records a gate again and again on a busy machine; its real runs are in results/."""

import importlib.util
import itertools
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import jsonschema
import pytest

from fullpipe import evidence

ROOT = Path(__file__).resolve().parent.parent
SMALL = """
subject = "cubic"
seeds = 1
[[case]]
name = "small"
kind = "compare"
rate = "5 Mbit/s"
rtt = "20 ms"
duration = "500 ms"
"""


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, with a small gate."""
    spec = importlib.util.spec_from_file_location("bench_gate_repeats", ROOT / "bench" / "gate_repeats.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module.template, "text_of", lambda _: SMALL)
    return module


def test_equal_baselines_are_counted(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gate_repeats.py", "cubic", "--runs", "2"])
    assert script.main() == 0
    for row in capsys.readouterr().out.splitlines()[2:]:
        assert row.startswith("| `cubic` | 1 |") and row.endswith("| 1 |")


def test_a_baseline_that_differs_is_an_error(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    numbers = itertools.count()
    monkeypatch.setattr(script, "recorded", lambda *_: b"%d\n" % (next(numbers) == 2))
    monkeypatch.setattr(script.evidence, "replace", lambda _file, made, **_: kept.extend(made))
    monkeypatch.setattr(sys, "argv", ["gate_repeats.py", "cubic", "--runs", "4", "--record"])
    assert script.main() == 1
    assert sum(one["runs"] for one in kept) == 4
    assert len({hash for one in kept for hash in one["baselines"]}) == 2
    schema = ROOT / "results" / "schema" / "gate.json"
    for one in kept:
        jsonschema.validate(one, json.loads(schema.read_text(encoding="utf-8")))


def test_what_was_recorded_had_one_baseline() -> None:
    found = evidence.read(ROOT / "results" / "gate.jsonl")
    by_controller: dict[str, set[str]] = {}
    for one in found:
        by_controller.setdefault(one["key"]["controller"], set()).update(one["baselines"])
    assert by_controller and all(len(of) == 1 for of in by_controller.values())
    assert sum(one["runs"] for one in found if one["key"]["controller"] == "cubic") >= 50
