"""bench/instructions.py: what it reads from callgrind, and when it fails. Nothing is counted here."""

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).resolve().parent.parent / "bench" / "instructions.py"
# As callgrind writes it: each name once, a cost for each line, and the cost of a call in the line after it.
PROFILE = """version: 1
events: Ir
fl=(1) a.rs
fn=(1) simulate::World::step::h0123456789abcdef
16 4
+3 90
cfn=(2) simulate::Flow::send'2
calls=3 20
* 500
-1 6
fn=(2)
20 500
fi=(3) inlined.rs
7 2
fe=(1)
totals: 602
"""


@pytest.fixture(scope="module")
def counting() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_instructions", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[spec.name]
    return module


def test_a_call_counts_for_the_function_that_is_called(counting: ModuleType) -> None:
    found = counting.by_function(PROFILE)
    assert found == {"simulate::World::step": 100, "simulate::Flow::send": 502}
    assert sum(found.values()) == 602


def test_more_than_two_percent_fails_and_shows_the_functions(counting: ModuleType) -> None:
    before = {"one": counting.Count(1000.0, {"step": 600.0, "send": 400.0})}
    for more, passes in ((-50.0, True), (0.0, True), (19.9, True), (20.1, False)):
        now = {"one": counting.Count(1000.0 + more, {"step": 600.0, "send": 390.0, "new": 10.0 + more})}
        text, passed = counting.judged("rustc 1", now, "rustc 1", before)
        assert passed is passes, more
        assert ("FAILS" in text) is not passes
        assert ("commit to it (--renew)" in text) is (more < -20)
        if not passes:
            rows = [line.split() for line in text.splitlines()]
            assert ["0.0", "30.1", "+30.1", "new"] in rows and ["400.0", "390.0", "-10.0", "send"] in rows


def test_another_compiler_is_compared_but_not_judged(counting: ModuleType) -> None:
    before, now = ({"one": counting.Count(count, {})} for count in (1000.0, 1500.0))
    text, passed = counting.judged("rustc 2", now, "rustc 1", before)
    assert passed and "+50.0 %" in text and "not judged" in text and "FAILS" not in text


def test_a_case_without_a_committed_count_fails(counting: ModuleType) -> None:
    text, passed = counting.judged("rustc 1", {"new": counting.Count(1.0, {})}, "rustc 1", {})
    assert not passed and "no committed count" in text


def test_every_case_has_a_committed_count(counting: ModuleType) -> None:
    committed = json.loads(counting.COMMITTED.read_text(encoding="utf-8"))
    found = counting.counts(committed)
    assert list(found) == [case.name for case in counting.CASES]
    for name, one in found.items():
        # Functions of less than half an instruction a packet are left out.
        assert 0.97 * one.packet < sum(one.functions.values()) < 1.001 * one.packet, name


def test_without_valgrind_it_says_so(
    counting: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(counting.shutil, "which", lambda _name: None)
    monkeypatch.setattr(sys, "argv", ["instructions.py"])
    assert counting.main() == 0
    assert "valgrind is missing" in capsys.readouterr().out
    monkeypatch.setattr(sys, "argv", ["instructions.py", "--renew"])
    assert counting.main() == 2
