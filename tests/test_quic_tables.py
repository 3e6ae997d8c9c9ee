"""The results over real QUIC and docs/explanation/quic agree on each failure. Nothing runs over QUIC."""

import re
import shlex
from pathlib import Path

import pytest

import fullpipe as fp
from fullpipe import api, evidence
from fullpipe.conformance import registry
from fullpipe.conformance.conformance_report import ConformanceReport
from fullpipe.conformance.results import (
    FAIL,
    PASS,
    Check,
    Result,
)
from quic_tables import ROOT, SCENARIOS, bench, lines

LINES = {(line["key"]["subject"], line["key"]["case"]): line for line in lines()}
RESULTS = {
    (one.controller, result.case.name): (one, result)
    for one in bench().conformities(lines())
    for result in one.results
}
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / SCENARIOS).glob("*.toml"))
# Found by hand; its comment says what and where.
NO_CASE = Path("docs/explanation/quic/noq-stream-hole.toml")
HEAD = re.compile(
    r"# .+: the case (?P<case>\S+) of `fullpipe conform (?P<controller>\S+)`\.\n"
    r"# Expected: (?P<expected>.+)\.\n"
    r"# Measured: (?P<measured>.+), seed (?P<seed>\d+) \(.+\)\.\n"
)


def test_page_covers_controllers_and_applicable_cases() -> None:
    script = bench()
    assert {controller for controller, _ in RESULTS} == set(script.CONTROLLERS) >= set(script.SHORT)
    of_all = {one.name for one in registry.every() if not one.phases and not one.name.startswith("law.")}
    for controller in script.CONTROLLERS:
        judged = {
            case for (name, case), line in LINES.items() if (name, line["outcome"]) == (controller, "judged")
        }
        # The last two: hosts.gro is for TCP.
        assert judged >= of_all - {"stretched-acks-10", "stretched-acks-64"}, controller


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_scenario_loads_and_has_full_command(file: Path) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    (alternative,) = api.load(str(ROOT / file)).alternatives
    assert len(alternative.spec["flows"]) == 1
    (command,) = re.findall(r"^# {5}(fullpipe run .+)$", text, re.MULTILINE)
    program, verb, path, *others, seed = shlex.split(command)
    assert (program, verb, path) == ("fullpipe", "run", file.as_posix())
    assert others == ["--world", "quic", "--seed"]
    message = re.findall(r"^# Measured.*, seed (\d+)", text, re.MULTILINE)
    assert message == [seed]


@pytest.mark.parametrize("file", [one for one in FILES if one != NO_CASE], ids=lambda path: path.stem)
def test_scenario_matches_table(file: Path) -> None:
    head = HEAD.match((ROOT / file).read_text(encoding="utf-8"))
    assert head is not None
    case, controller = head["case"], head["controller"]
    name = f"{controller.replace(':', '-')}-{case}"
    assert re.fullmatch(rf"{re.escape(name)}(-\d)?", file.stem)
    (alternative,) = api.load(str(ROOT / file)).alternatives
    assert alternative.spec["flows"][0]["controller"] == controller
    _, result = RESULTS[controller, case]
    check = result.decisive
    assert result.verdict == FAIL and check is not None
    assert check.measured == head["measured"]
    assert f"{check.criterion.quantity}: {check.criterion.bounds}" == head["expected"]
    # Of a case with several runs, the link leads to the last.
    assert LINES[controller, case]["scenario"].startswith(name)


def test_each_failure_links_to_its_scenario() -> None:
    linked = set()
    for at, (one, result) in RESULTS.items():
        failed = result.verdict == FAIL and one.expected(result) is None
        assert failed == (LINES[at]["scenario"] is not None), at
        linked |= {SCENARIOS / LINES[at]["scenario"]} if failed else set()
    assert linked, "nobody fails"
    assert linked <= set(FILES)
    # The others are earlier runs of a case, which name the one that is linked, and what was found by hand.
    for path in set(FILES) - linked - {NO_CASE}:
        (later,) = re.findall(r"The case consists .+ is (\S+\.toml)\.$", (ROOT / path).read_text(), re.M)
        assert path.with_name(later) in linked, path


def test_results_become_lines_and_results_again() -> None:
    script = bench()
    found = fp.conform("reno", ["law.idle", "clean-path", "drain-time"], world="sim")
    made = [{**line, "key": {**line["key"], "world": "quic"}} for line in script.lines([found], "c")]
    (again,) = script.conformities(made)
    assert script.table([again], "", lambda *_: None) == script.table([found], "", lambda *_: None)
    assert [one.verdict for one in again.results] == [one.verdict for one in found.results]


def test_broken_law_gets_row() -> None:
    script = bench()
    laws = registry.chosen(["law.run", "law.idle"])

    def reported(broken: float) -> str:
        results = [Result(law, PASS, checks=(Check(law.criteria[0], 0, 1),)) for law in laws]
        worst = Check(laws[0].criteria[0], broken, 1)
        results[0] = Result(laws[0], FAIL if broken else PASS, checks=(worst,))
        return str(script.table([ConformanceReport("bbr3", "quic", tuple(results))], "", lambda *_: None))

    kept, lost = reported(0), reported(1)
    assert "bbr3 break none of the 2." in kept and "`law.run`" not in kept
    assert "break none" not in lost
    assert "| [`law.run`](../how-to/conform.md#law.run) | laws broken: at most 0 | **fail**: 1 |" in lost
    assert "law.idle" not in lost


def test_the_cases_of_loss_based_control_have_a_table_of_their_own() -> None:
    script = bench()
    names = ["decrease-reno", "one-packet-a-round", "minimum-window"]
    found = [
        fp.conform(one, names, world="sim", suite="loss") for one in ("newreno", "newreno:loss_reduction=0.7")
    ]
    made = [{**line, "key": {**line["key"], "world": "quic"}} for line in script.lines(found, "c")]
    text = script.failures_table([*made, *lines()], "loss")
    head, _, *rows = text.splitlines()[2:]
    assert head == "| controller | passes | fails |"
    assert rows[0] == "| `newreno` | 3 of 3 | – |"
    # With the value that was measured, and the criterion's bounds.
    assert re.fullmatch(
        r"\| `newreno:loss_reduction=0.7` \| 2 of 3 \| `decrease-reno` \(0\.\d+; .+\) \|", rows[1]
    )
    assert script.conformities(made) == [], "they are no cases of BBRv3"


@pytest.mark.parametrize(
    ("equal", "message"),
    [(True, "Equal seeds give equal packets."), (False, "Equal seeds do not give equal packets for ")],
)
def test_table_of_stacks_names_those_that_do_not_repeat(
    equal: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(ROOT / "bench")
    script = bench(ROOT / "bench" / "stacks.py")
    made = [
        line | {"equal_packets": equal}
        for line in evidence.read(ROOT / "results" / "stacks.jsonl")
        if line["key"]["controller"] == "smoltcp:reno"
    ]
    first = script.table(made).partition("\n")[0]
    assert first.startswith(message) and ("`smoltcp:reno`" in first) is not equal
