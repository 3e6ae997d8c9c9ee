"""Tables in a terminal of 80 columns: nothing is cut, and no number is broken over two lines."""

import io
import re
from collections.abc import Iterable
from typing import Any

import pytest
from rich.console import Console

import fullpipe as fp
from fullpipe import api
from fullpipe.agreement.agreement import Agreement, Check
from fullpipe.conformance import recording_tables
from fullpipe.report import tables
from fullpipe.report.fitting import Either, Fitting
from fullpipe.report.results import Results
from fullpipe.runs import doctor
from fullpipe.scenario.scenario import Scenario
from fullpipe_studies import catalogue, command
from fullpipe_studies import tables as study_tables

WIDTHS = (60, 80, 100, 160, 250)


def printed(table: object, width: int) -> str:
    console = Console(width=width, file=io.StringIO(), highlight=False)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def cells(table: Fitting | Either) -> Iterable[str]:
    table = table.wide if isinstance(table, Either) else table
    return (cell.plain for row in table.rows for cell in row)


def check_whole(table: Fitting | Either, width: int) -> None:
    """No line is too long, nothing is replaced by an ellipsis, and every word and number is whole."""
    text = printed(table, width)
    assert "…" not in text
    assert max(map(len, text.splitlines()), default=0) <= width
    words = set(re.split(r"\s+", text))
    for cell in cells(table):
        for word in cell.split():
            assert word in words or len(word) > width // 3, f"{word!r} is broken at {width} columns:\n{text}"


@pytest.fixture(scope="module")
def mixed() -> Results:
    """Names of every length, and five flows."""
    flows: list[dict[str, Any]] = [{"controller": "bbr1:probe_gain=1.5"}, {"controller": "cubic", "count": 4}]
    return fp.run({"duration": "1 s", "path": {"rate": "5 Mbit/s", "rtt": "10 ms"}, "flows": flows})


@pytest.mark.parametrize("width", WIDTHS)
def test_results_fit_every_terminal(small: Results, mixed: Results, width: int) -> None:
    for results in (small, mixed):
        for make in (tables.comparison, tables.flows, tables.links):
            check_whole(make(results), width)


def test_comparison_shows_measures_at_80_columns(small: Results) -> None:
    text = printed(tables.comparison(small), 80)
    for column in (
        "Goodput, Mbit/s",
        "RTT mean, ms",
        "RTT p95, ms",
        "Queue mean, ms",
        "Retransmits",
        "Loss, %",
    ):
        assert column in text


def test_comparison_has_controller_rows_at_160(small: Results) -> None:
    lines = printed(tables.comparison(small), 160).splitlines()
    assert len([line for line in lines if line.startswith(("bbr1", "cubic"))]) == 2


@pytest.mark.parametrize("width", WIDTHS)
def test_tables_of_words_wrap_at_spaces(width: int) -> None:
    check_whole(tables.diagnosis(doctor.requirements()), width)
    check_whole(tables.controllers(api.controllers()), width)
    everything = catalogue.everything()
    rows = [command._row(one, catalogue.built(one.id), None) for one in everything]
    check_whole(study_tables.claims(rows), width)
    for row in rows:
        for one in row["worlds"].values():  # type: ignore[attr-defined]
            one.update(verdict="reproduced in shape", reason="Accuracy: 90 ± 8.8 % (expected 76.3 to 86.3).")
    check_whole(study_tables.reasons(rows), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_checks_of_agreement_are_whole(width: int) -> None:
    good = Check("bbr1", "Goodput, Mbit/s", "93.59", "93.38 (93.1 to 93.9)", "+0.2 %", "3 %", True, "")
    odd = Check("bbr1", "Retransmits", "733", "744 (700 to 760)", "x 0.98", "x 1.5", False, "too few to say")
    results = Results(Scenario("{}", ()), [])
    found = Agreement(results, ("sim", "kernel"), (good, odd), {})
    check_whole(tables.checks(found), width)


@pytest.mark.parametrize("width", WIDTHS)
def test_thousand_flows_form_column_blocks(width: int) -> None:
    table = Fitting("Flow")
    for number in range(7):
        table.add_numbers(f"Measure {number}", "Mbit/s")
    for flow in range(1000):
        table.add_row(f"flow-{flow}", *(f"{flow * number:,}.25" for number in range(7)))
    check_whole(table, width)


def test_overlong_word_is_folded_not_cut() -> None:
    table = Fitting("Controller")
    table.add_numbers("Goodput", "Mbit/s")
    name = "bbr1:" + "x" * 220
    table.add_row(name, "9.59 ± 0.01")
    text = printed(table, 80)
    assert text.count("x") == 220
    assert "9.59 ± 0.01" in text


def test_replay_total_counts_calls_and_recordings() -> None:
    one = {"calls": 2566, "late": 0, "agrees": True}
    assert recording_tables.replays_total([one]) == "2,566 calls in 1 recording; all decisions are equal."
    other = {**one, "agrees": False}
    assert recording_tables.replays_total([one, other]) == "5,132 calls in 2 recordings; 1 of 2 are equal."
    late = recording_tables.replays_total([{**one, "late": 3}, {**one, "late": 1}])
    assert late == (
        "5,132 calls in 2 recordings; all decisions are equal."
        " Late: 4 calls, equal if the clock ticked just after the recorder read it."
    )


def test_late_calls_are_counted_per_recording() -> None:
    counts = {"flows": 1, "calls": 9, "replayed": 9}
    one = {"recording": "x.recording", "cc": "bbr", "kernel": "6.18", "whole": True, "agrees": True, **counts}
    assert "equal, 12 late" in printed(recording_tables.replays([{**one, "late": 12}]), 80)
    assert "late" not in printed(recording_tables.replays([{**one, "late": 0}]), 80)


def test_unmeasured_requirement_is_not_ok() -> None:
    found = doctor.Requirement("Kernel world", "emulator", True, "not measured: run the check", "")
    shown = printed(tables.diagnosis([found]), 100)
    assert "–" in shown and " ok " not in shown


def test_recordings_in_directory_omit_its_path() -> None:
    one = {
        "cc": "bbr",
        "kernel": "6.18",
        "whole": True,
        "agrees": True,
        "flows": 1,
        "calls": 9,
        "replayed": 9,
        "late": 0,
    }
    folder = "tests/recordings/of/a/rather/long/path"
    both = [{**one, "recording": f"{folder}/{name}.recording"} for name in ("bbr-a", "cubic-b")]
    shown = printed(recording_tables.replays(both), 80)
    assert len([line for line in shown.splitlines() if line.startswith(("bbr-a.rec", "cubic-b.rec"))]) == 2
    assert shown.count(folder) == 1, "in the line below the table"
    assert f"{folder}/bbr-a.recording" in printed(recording_tables.replays(both[:1]), 160)
