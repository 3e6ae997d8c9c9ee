"""What a report says of two worlds: each by its own data, its own criterion, its own count."""

import json
from dataclasses import replace
from pathlib import Path

import altair as alt
import polars as pl
import pytest

from conftest import answer_for_the_kernel
from fullpipe.measures.run import Run
from fullpipe.runs.store import Store
from fullpipe_studies import catalogue, charts, document, page, run, tables, write
from fullpipe_studies.claim import Check, Data, Finding, Size, Verdict, within
from fullpipe_studies.write import finding as _finding


def missed(values: list[float], criterion: float = 10.0, paper: str = "ten") -> Check:
    return within("speed", values, paper=paper, least=criterion, unit="m/s")


def findings(*worlds: str) -> list[Finding]:
    return [Finding(world, [missed([1.0, 2.0])]) for world in worlds]


def because(found: list[Finding], cause: str = "") -> list[str]:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    claim = replace(
        built.claim,
        explain=lambda data: ["The same.", f"The mean is {data.mean('x'):g}, {data.worlds[0]}."],
        cause=cause,
    )
    runs = pl.DataFrame({"world": ["sim", "sim", "kernel"], "x": [1.0, 3.0, 10.0]})
    return run._because(claim, Data(runs, pl.DataFrame()), found)


def test_worlds_are_explained_separately_common_once() -> None:
    assert because(findings("sim", "kernel")) == [
        "Simulation and Linux kernel: The same.",
        "Simulation: The mean is 2, sim.",
        "Linux kernel: The mean is 10, kernel.",
    ]


def test_world_without_misses_is_unexplained() -> None:
    met = Finding("sim", [within("speed", [11.0, 11.0, 11.0], paper="ten", least=10.0)])
    assert because([met, *findings("kernel")]) == [
        "Linux kernel: The same.",
        "Linux kernel: The mean is 10, kernel.",
    ]
    assert because([met]) == []


def test_cause_comes_first_only_on_miss() -> None:
    assert because(findings("sim", "kernel"), "Why.")[0] == "Why."
    assert (
        because([Finding("sim", [within("speed", [11.0, 11.0, 11.0], paper="ten", least=10.0)])], "Why.")
        == []
    )


def test_one_world_needs_no_name() -> None:
    assert because(findings("sim")) == ["The same.", "The mean is 2, sim."]


def test_differing_criteria_are_listed_per_world() -> None:
    found = [
        Finding("sim", [missed([20.0, 22.0])]),
        Finding("kernel", [missed([1.0], 1.0, "ten; a tenth of it")]),
    ]
    table = page._checks([_finding(one) for one in found])
    assert "simulation: at least 10 m/s<br>Linux kernel: at least 1 m/s" in table
    assert "simulation: ten<br>Linux kernel: ten; a tenth of it" in table
    assert table.count("n = 2") == 1 and table.count("n = 1") == 1, "one value has no interval, but a count"
    same = page._checks([_finding(one) for one in findings("sim", "kernel")])
    assert same.count("at least 10 m/s") == 1


def test_verdict_reports_its_number_of_runs() -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan = run.Plan(built, Size.TINY, ("kernel",), 1, 3)
    cells = list(dict.fromkeys(one.task.cell for one in plan.planned if one.task.world == "kernel"))
    all_of_them = {("kernel", cell): 3 for cell in cells}
    assert run._fewer(plan, "kernel", all_of_them) is None
    fewer = run._fewer(plan, "kernel", {**all_of_them, ("kernel", cells[0]): 1})
    assert fewer == ("1 of 3 repetitions" if len(cells) == 1 else "1 to 3 of 3 repetitions")
    met = within("speed", [1.0, 1.0, 1.0], paper="1", least=1.0)
    assert Finding("kernel", [met], fewer="1 to 3 of 3 repetitions").reason == (
        "The only check passes. Only 1 to 3 of 3 repetitions of each scenario can be trusted."
    )


def test_world_without_trusted_run_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def doubtful(found: Run) -> Run:
        doubt = {**found.summary["provenance"], "untrustworthy": ["the emulator was late"]}
        return replace(found, summary={**found.summary, "provenance": doubt})

    answer_for_the_kernel(monkeypatch, doubtful)
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan = run.Plan(built, Size.TINY, ("sim", "kernel"), 1, 1)
    store = Store(tmp_path)
    result = run.examine(plan, store, run.carry_out(plan.tasks, store, attempts=1))
    assert [one.world for one in result.findings] == ["sim", "kernel"]
    missing = result.findings[1]
    assert missing.verdict is Verdict.INCOMPLETE and "no trustworthy run" in missing.reason
    write.claim(result, tmp_path)
    (facts,) = (tmp_path / "results").glob("*.json")
    recorded = document.recorded([json.loads(facts.read_text(encoding="utf-8"))])
    assert [line["key"]["world"] for line in recorded] == ["sim"], "what was recorded before still stands"


def test_quick_form_warns_of_differing_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    quick, full = {"name": "a", "size": "quick"}, {"name": "b", "size": "full"}
    assert "may differ from those of the full form" in page._short_form([quick])
    assert "Claims in quick form: a." in page._short_form([quick, full])
    assert page._short_form([full]) == ""
    finding = {"verdict": "not reproduced", "reason": "Because."}
    for size, message in (("quick", True), ("full", False)):
        tables.verdicts([{"id": "p.a", "size": size, "worlds": {"sim": finding}}])
        printed = capsys.readouterr().out
        assert ("may differ from those of the full form" in printed) is message
        assert ("(quick)" in printed) is message


def test_unrun_worlds_are_not_counted() -> None:
    result = {"size": "full", "seeds": 10, "repetitions": 3, "version": "1", "at": "now", "id": "p.c"}
    assert page._provenance({**result, "findings": [{"world": "sim"}]}).startswith(
        "Provenance: 10 seeds in the simulator; "
    )
    dated = page._provenance({**result, "at": "2026-11-22T13:01:37Z", "findings": []})
    assert "2026-11-22 13:01:37 UTC" in dated, "the same form as in every other page"
    both = [{"world": "sim"}, {"world": "kernel"}]
    message = page._provenance({**result, "findings": both})
    assert "10 seeds in the simulator, 3 repetitions in the kernel world; " in message


def test_reason_shows_uncertainty_and_expectation() -> None:
    one = within("Cycles", [1.0, 1.07, 1.14], paper="", least=2, most=4.5, unit="cycles")
    assert Finding("sim", [one]).reason == "Cycles: 1.07 ± 0.17 cycles (expected 2 to 4.5)."


def test_command_has_every_relevant_option() -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    assert run.Plan(built, Size.FULL, ("sim",), 10, 3).command == "fullpipe study run queue16.fig4"
    short = run.Plan(built, Size.QUICK, ("sim", "kernel"), 7, 2).command
    assert short == "fullpipe study run queue16.fig4 --quick --world all --seeds 7 --repetitions 2"


def test_no_column_of_checks_can_hide() -> None:
    table = page._checks([_finding(one) for one in findings("sim", "kernel")])
    assert 'data-heading="Simulation"' in table and 'data-heading="Linux kernel"' in table
    assert 'class="number"' not in table, "words wrap"


def drawn(**factors: list[float]) -> dict[str, object]:
    """A figure of two worlds whose runs have these factors."""
    runs = pl.DataFrame({"world": ["sim", "sim", "kernel", "kernel"], "x": [1.0, 2.0, 3.0, 4.0], **factors})

    def panel(part: Data) -> alt.Chart:
        return alt.Chart(charts.values(part.runs)).mark_point().encode(x="x:Q", y="x:Q")

    return charts.worlds(Data(runs, pl.DataFrame()), panel, "title").to_dict()


def test_different_durations_do_not_share_axis() -> None:
    equal = drawn(seconds=[60.0] * 4)
    assert equal["resolve"] and "Simulation, 60" not in str(equal)
    different = drawn(seconds=[60.0, 60.0, 20.0, 20.0], rate_mbps=[1e3, 1e3, 1e2, 1e2])
    assert "resolve" not in different
    assert "Simulation, 60 s, 1000 Mbit/s" in str(different) and "Linux kernel, 20 s, 100 Mbit/s" in str(
        different
    )
    shown = drawn(rate_mbps=[10.0, 100.0, 10.0, 50.0])
    assert shown["resolve"], "a factor that is in the figure anyway"
