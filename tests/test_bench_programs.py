"""The pure parts of bench/programs_conform.py: what its table says of results."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from fullpipe.conformance.outside import registry

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "programs_conform.py"


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_programs_conform", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # A dataclass looks its module up.
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


def criterion(measured: float | None, *, met: bool, says: str = "goodput") -> dict[str, Any]:
    told = {"says": says, "measured": measured, "low": 85.0, "high": None, "unit": "%", "met": met}
    return {**told, "values": [measured, 99.0, None]}


def test_the_table_has_each_case_and_says_what_failed_and_why(bench: ModuleType, tmp_path: Path) -> None:
    shown = bench.programs(tmp_path)[:1]
    plain = {"verdict": "pass", "reason": "", "criteria": [criterion(94.2, met=True)]}
    cases = [{**plain, "name": case.name, "source": case.source} for case in registry.every()]
    cases[0] |= {
        "verdict": "fail",
        "criteria": [criterion(1.0, met=True), criterion(12.345, met=False, says="late")],
    }
    cases[1] |= {"verdict": "not applicable", "criteria": []}
    cases[2] |= {"verdict": "not judged", "reason": "the client ended with code 3", "criteria": []}
    cases[3] |= {"verdict": "fail", "criteria": [criterion(None, met=False)]}
    result = {"cases": cases, "program": {"load_a_core": 0.25}}
    text = bench.table(shown, {"iperf3-cubic": result}, {"iperf3-cubic": "iperf 3.12"}, tmp_path)
    count = len(cases)
    assert f"| iperf 3.12 | cubic | {count - 4} of {count - 1} | 0.25 |" in text
    rows = [case.name.removeprefix("outside.") for case in registry.every()]
    assert f"| `{rows[0]}` | **fail**, 12.3 % |\n" in text
    assert f"| `{rows[1]}` | – |\n| `{rows[2]}` | not judged |\n| `{rows[3]}` | **fail**, never |\n" in text
    assert f"| `{rows[4]}` | pass, 94.2 % |\n" in text
    why = "late: 12.3 %, of the repetitions 12.3, 99, never; wanted at least 85 %"
    assert f"* iperf3-cubic, `{registry.every()[0].name}`: {why} (" in text
    assert f"* iperf3-cubic, `{registry.every()[2].name}`: not judged: the client ended with code 3." in text


def test_commands_name_no_folder_of_the_machine(bench: ModuleType, tmp_path: Path) -> None:
    shown = [one for one in bench.programs(tmp_path) if one.name.startswith(("ngtcp2", "quic"))]
    cases = [
        {"name": case.name, "source": "", "verdict": "not applicable", "reason": "", "criteria": []}
        for case in registry.every()
    ]
    text = bench.table(
        shown, {one.name: {"cases": cases} for one in shown}, {one.name: "1" for one in shown}, tmp_path
    )
    assert str(tmp_path) not in text and "All applicable cases pass." in text
    assert "{port} key.pem certificate.pem" in text and "`bin/quic-go send" in text


def test_bounds_are_in_words(bench: ModuleType) -> None:
    told = {"low": 1.0, "high": 2.0, "unit": "s"}
    assert bench.bounds(told) == "1 to 2 s"
    assert bench.bounds({**told, "low": None}) == "at most 2 s"
    assert bench.bounds({**told, "high": None, "unit": ""}) == "at least 1"
