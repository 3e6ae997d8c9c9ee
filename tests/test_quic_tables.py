"""docs/quic.md and docs/quic: the tables and the scenarios of failures say the same. Nothing is run here."""

import re
import shlex
from pathlib import Path

import pytest

from fullpipe import api
from fullpipe.conformance import registry
from fullpipe.conformance.conformity import Conformity
from fullpipe.conformance.results import (
    FAIL,
    PASS,
    Check,
    Result,
)
from quic_tables import PAGE, ROOT, SCENARIOS, bench, between_markers, cells, column

FAILS = re.compile(r"\[\*\*fail\*\*\]\((?P<link>[^)]+)\): (?P<measured>[^(]+?)(?: \((?P<criterion>.+)\))?$")
TABLES = cells(between_markers("quic-conform"), "case")
FILES = sorted(path.relative_to(ROOT) for path in (ROOT / SCENARIOS).glob("*.toml"))
# Found by hand; its comment says what and where.
NO_CASE = Path("docs/quic/noq-stream-hole.toml")
HEAD = re.compile(
    r"# .+: the case (?P<case>\S+) of `fullpipe conform (?P<controller>\S+)`\.\n"
    r"# Expected: (?P<expected>.+)\.\n"
    r"# Measured: (?P<measured>.+), seed (?P<seed>\d+) \(.+\)\.\n"
)


def test_the_page_has_every_controller_and_every_case_that_applies() -> None:
    script = bench()
    assert {head for _, head in TABLES} == {"criterion", *script.CONTROLLERS}
    for controller in script.CONTROLLERS:
        of_all = {one.name for one in registry.every() if not one.phases and not one.name.startswith("law.")}
        shown = set(column(TABLES, controller))
        # The last two: hosts.gro is for TCP.
        assert shown >= of_all - {"stretched-acks-10", "stretched-acks-64"}, controller
    assert set(dict(cells(between_markers("quic-conform-short"), "controller"))) >= {
        (controller, "cases passed") for controller in script.SHORT
    }


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.stem)
def test_a_scenario_loads_and_has_its_whole_command(file: Path) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    (alternative,) = api.load(str(ROOT / file)).alternatives
    assert len(alternative.spec["flows"]) == 1
    (command,) = re.findall(r"^# {5}(fullpipe run .+)$", text, re.MULTILINE)
    program, verb, path, *others, seed = shlex.split(command)
    assert (program, verb, path) == ("fullpipe", "run", file.as_posix())
    assert others == ["--world", "quic", "--seed"]
    said = re.findall(r"^# Measured.*, seed (\d+)", text, re.MULTILINE)
    assert said == [seed]


@pytest.mark.parametrize("file", [one for one in FILES if one != NO_CASE], ids=lambda path: path.stem)
def test_a_scenario_says_what_the_table_says(file: Path) -> None:
    head = HEAD.match((ROOT / file).read_text(encoding="utf-8"))
    assert head is not None
    case, controller = head["case"], head["controller"]
    name = f"{controller.replace(':', '-')}-{case}"
    assert re.fullmatch(rf"{re.escape(name)}(-\d)?", file.stem)
    (alternative,) = api.load(str(ROOT / file)).alternatives
    assert alternative.spec["flows"][0]["controller"] == controller
    cell = FAILS.match(TABLES[case, controller])
    assert cell is not None, TABLES[case, controller]
    assert cell["measured"] == head["measured"]
    assert (cell["criterion"] or TABLES[case, "criterion"]) == head["expected"]
    # Of a case with several runs, the link leads to the last.
    assert cell["link"].startswith(f"quic/{name}")


def test_each_failure_in_the_tables_links_to_its_scenario() -> None:
    linked = set()
    for (case, controller), cell in TABLES.items():
        if "**fail**" in cell:
            found = FAILS.match(cell)
            assert found is not None, f"{controller}, {case}: {cell}"
            linked.add((PAGE.parent / found["link"]).relative_to(ROOT))
    assert linked, "nobody fails"
    assert linked <= set(FILES)
    # The others are earlier runs of a case, which name the one that is linked, and what was found by hand.
    for path in set(FILES) - linked - {NO_CASE}:
        (later,) = re.findall(r"The case consists .+ is (\S+\.toml)\.$", (ROOT / path).read_text(), re.M)
        assert path.with_name(later) in linked, path


def test_a_broken_law_is_a_row_and_others_are_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = bench()
    monkeypatch.setattr(script, "made_by", lambda command: command)
    laws = registry.chosen(["law.run", "law.idle"])

    def told(broken: float) -> str:
        results = [Result(law, PASS, checks=(Check(law.criteria[0], 0, 1),)) for law in laws]
        worst = Check(laws[0].criteria[0], broken, 1)
        results[0] = Result(laws[0], FAIL if broken else PASS, checks=(worst,))
        return str(script.table([Conformity("bbr3", "quic", tuple(results))], "", lambda *_: None))

    kept, lost = told(0), told(1)
    assert "bbr3 break none of the 2." in kept and cells(kept, "case") == {}
    assert "break none" not in lost
    assert cells(lost, "case") == {
        ("law.run", "criterion"): "laws broken: at most 0",
        ("law.run", "bbr3"): "**fail**: 1",
    }
