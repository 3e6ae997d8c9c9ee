"""Checks: what is met, missed and undecided, and what a page says of it."""

import math
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from fullpipe.studies import catalogue, page, run, tables
from fullpipe.studies.checks import Outcome
from fullpipe.studies.claim import (
    Claim,
    Data,
    Finding,
    Grid,
    Over,
    Setups,
    Size,
    Values,
    Verdict,
    covers,
    geometric,
    meanings,
    median,
    more,
    own,
    share,
    within,
)
from fullpipe.studies.write import finding
from fullpipe.sweeps.store import Store

MET, MISSED, UNDECIDED = Outcome.MET, Outcome.MISSED, Outcome.UNDECIDED


@pytest.mark.parametrize(
    ("values", "limits", "outcome", "why"),
    [
        ([9.9, 10.0, 10.1], {"least": 9.0}, MET, ""),
        ([9.9, 10.0, 10.1], {"least": 11.0}, MISSED, ""),
        ([9.9, 10.0, 10.1], {"most": 9.0}, MISSED, ""),
        ([9.9, 10.0, 10.1], {"least": 10.0}, UNDECIDED, "the interval spans the limit"),
        ([9.9, 10.0, 10.1], {"least": 9.0, "most": 11.0}, MET, ""),
        # Wider than the limits, and around them.
        ([5.0, 10.0, 15.0], {"least": 9.0, "most": 11.0}, UNDECIDED, "the interval spans the limit"),
        ([10.0, 11.0], {"least": 1.0}, UNDECIDED, "fewer than 3: 2"),
        (10.0, {"least": 1.0}, UNDECIDED, "fewer than 3: 1"),
        ([10.0, 10.0], {"least": 1.0}, MET, ""),
        ([10.0, 10.0], {"least": 11.0}, MISSED, ""),
        ([], {"least": 1.0}, MISSED, ""),
    ],
)
def test_the_interval_decides(values: Any, limits: dict[str, float], outcome: Outcome, why: str) -> None:
    found = within("x", values, paper="", **limits)
    assert (found.outcome, found.why, found.met) == (outcome, why, outcome is MET)


def test_what_is_the_same_for_every_seed_has_no_interval() -> None:
    found = within("x", [0.866] * 10, paper="", least=0.95, unit="of it")
    assert found.said == "0.866 of it, the same for every seed" and "±" not in found.said
    assert found.told("repetition").endswith("for every repetition")
    assert finding(Finding("sim", [found]))["checks"][0]["ci95"] is None


def test_a_number_without_chance_needs_no_seeds() -> None:
    found = within("x", 0.25, paper="", least=0.2, over=Over.NOTHING)
    assert (found.outcome, found.said) == (MET, "0.25")
    assert within("x", 0.25, paper="", least=0.3, over=Over.NOTHING).outcome is MISSED


# Unlike scenarios.


def grid(of: dict[tuple[int, int], float]) -> Data:
    """Runs of a seed and a buffer."""
    rows = [{"world": "sim", "seed": seed, "kb": kb, "x": x} for (seed, kb), x in of.items()]
    return Data(pl.DataFrame(rows), pl.DataFrame())


STEPS = grid({(seed, kb): kb + seed / 10 for seed in (1, 2, 3) for kb in (10, 20, 90)})


def test_a_mean_over_unlike_scenarios_has_no_interval_but_a_range_over_seeds() -> None:
    one = STEPS.values("x", kb=10)
    assert (one.seeds, one.mixed) == ([1, 2, 3], False)
    assert "±" in within("x", one, paper="", least=1).said
    both = STEPS.values("x", kb=(10, 20))
    assert both.mixed and list(both.by_seed()) == pytest.approx([15.1, 15.2, 15.3])
    found = within("x", both, paper="", least=15, unit="ms")
    assert found.said == "15.2 ms, 15.1 to 15.3 over 3 seeds"
    assert (found.over, found.outcome, found.ours and found.ours.count) == (Over.CONDITIONS, MET, 3)
    undecided = within("x", both, paper="", least=15.2)
    assert (undecided.outcome, undecided.why) == (UNDECIDED, "seeds on both sides of the limit")
    assert within("x", both, paper="", most=15).outcome is MISSED
    # More seeds do not make it harder: of ten, one may be on the other side.
    ten = Values([2.0] * 9 + [0.5], range(10), conditions=True)
    assert within("x", ten, paper="", least=1).outcome is MET
    assert within("x", ten, paper="", most=1).outcome is MISSED
    assert within("x", ten.only([*[True] * 8, False, True]), paper="", least=1).outcome is UNDECIDED


def test_a_statistic_of_each_seed_has_no_interval_either() -> None:
    largest = STEPS.each_seed(lambda runs: float(runs["x"].max() or 0), kb=(20, 90))  # type: ignore[arg-type]
    assert list(largest) == pytest.approx([90.1, 90.2, 90.3])
    assert "±" not in within("x", largest, paper="", least=1).said
    assert Data(pl.DataFrame(), pl.DataFrame()).each_seed(lambda _runs: 1.0) == []


def test_orderings_over_unlike_scenarios_are_seen_scenario_by_scenario() -> None:
    # A path where one is ten times ahead, and a path where it is ten times behind: neither is ahead.
    large = Values([10.0, 1.0] * 3, [1, 1, 2, 2, 3, 3])
    small = Values([1.0, 10.0] * 3, [1, 1, 2, 2, 3, 3])
    found = more("x", large, small, paper="")
    assert (found.said, found.outcome) == ("1 times, the same for every seed", MISSED)


def test_scenarios_drawn_at_random_have_an_interval() -> None:
    ratios = [2.0, 4.0, 8.0, 4.0, 4.0]
    found = within("x", ratios, paper="", least=2, most=25, over=Over.POPULATION, middle=geometric)
    assert found.outcome is MET and found.said == "4 (2.18 to 7.35)"


def test_values_without_logarithms_have_no_geometric_mean() -> None:
    for values in ([0.0, 1.0, 2.0], Values([0.0, 1.0], [1, 1]), Values([-1.0], [1])):
        assert within("x", values, paper="", least=0, middle=geometric).said == "no value"


def test_seeds_are_matched() -> None:
    one, other = Values([4.0, 6.0, 8.0], [1, 2, 3]), Values([2.0, 3.0, 4.0], [1, 2, 3])
    assert (one.over(other), one.minus(other), one.over(other).seeds) == ([2, 2, 2], [2, 3, 4], [1, 2, 3])
    assert one.only([True, False, True]).seeds == [1, 3]
    late = Values([2.0, 3.0, 4.0], [2, 3, 4])
    assert one.over(late) == [] and one.minus(late) == [] and one.over(Values([0.0] * 3, [1, 2, 3])) == []


# Ratios.


def test_opposite_ratios_do_not_average_to_an_advantage() -> None:
    found = more("x", [5.0, 1.0, 5.0, 1.0], [1.0, 5.0, 1.0, 5.0], paper="")
    assert found.ours is not None and found.ours.mean == pytest.approx(1.0)
    assert found.outcome is UNDECIDED


def test_an_ordering_of_runs_that_were_left_out_has_the_interval_of_two_samples() -> None:
    close = Values([10.0, 10.1, 10.2], [1, 2, 3]), Values([5.0, 5.1, 5.0, 5.1], [2, 3, 4, 5])
    found = more("x", *close, paper="")
    assert found.outcome is MET and found.ours is not None and found.ours.count == 3
    assert more("x", [10.0, 11.0], [5.0], paper="").outcome is UNDECIDED
    assert more("x", [10.0, 11.0, 12.0], [0.0, 0.0], paper="").outcome is UNDECIDED
    assert more("x", [1.0, math.nan], [1.0], paper="").outcome is MISSED


# Modes.


@pytest.mark.parametrize(
    ("least", "outcome"), [(0.1, MET), (0.6, UNDECIDED), (0.95, MISSED)], ids=["met", "between", "missed"]
)
def test_of_two_modes_no_mean_is_told(least: float, outcome: Outcome) -> None:
    found = within("x", [0.4, 0.86, 0.42, 0.88, 0.87], paper="", least=least, unit="of it")
    assert found.said == "two modes: 0.41 of it in 2 of 5 runs, 0.87 of it in 3"
    assert found.outcome is outcome
    assert found.why == ("two modes, on both sides of the limit" if outcome is UNDECIDED else "")
    told = finding(Finding("sim", [found]))["checks"][0]
    assert told["modes"] == [[0.4, 0.42], [0.86, 0.87, 0.88]] and told["ci95"] is None


def test_modes_on_both_sides_of_a_range_miss_it() -> None:
    assert within("x", [1.0, 1.1, 9.0, 9.1, 9.2], paper="", least=4, most=6).outcome is MISSED


def test_ratios_that_are_opposite_in_each_mode_are_told_as_such() -> None:
    found = more("x", [60.0, 60.0, 0.1, 0.11, 62.0], [1.0] * 5, paper="", least=5)
    assert found.said == "two modes: 0.105 times in 2 of 5 runs, 60.7 times in 3"
    assert found.outcome is UNDECIDED


def test_a_mode_of_ratios_to_zero_is_infinite() -> None:
    found = more("x", [84.0] * 5, [1.0, 1.0, 1.0, 0.0, 0.0], paper="", least=10)
    assert found.said == "two modes: 84 times in 3 of 5 runs, ∞ times in 2" and found.met


def test_the_share_of_runs_in_a_mode_has_an_interval() -> None:
    runs = [0.86, 0.4, 0.87, 0.88, 0.87, 0.85, 0.86, 0.86, 0.87, 0.88]
    found = share("x", [value > 0.6 for value in runs], paper="", least=0.5)
    assert found.outcome is MET and found.said == "0.9 of runs (0.596 to 0.982)"
    assert share("x", [value > 0.6 for value in runs], paper="", least=0.9).outcome is UNDECIDED
    assert share("x", [False] * 10, paper="", least=0.9).outcome is MISSED
    assert share("x", [True] * 2, paper="", least=0.1).why == "fewer than 3: 2"
    assert share("x", [], paper="", least=0.9).outcome is MISSED


def test_a_median_says_that_it_is_one() -> None:
    found = within("x", [1.0, 2, 3, 4, 5, 6, 1e6], paper="", most=7, middle=median, unit="s")
    assert found.outcome is UNDECIDED and found.said.startswith("4 s (median) (1 to ")
    short = within("x", [1.0, 2, 30], paper="", most=7, middle=median)
    assert short.why == "no interval from 3 values"


def test_a_range_over_protocols_includes_the_papers_number_or_not() -> None:
    protocols = {"shuffled": 0.9, "in order": 0.61, "in order, deep": 0.89}
    found = covers("accuracy", protocols, 0.813, paper="81.3 %")
    assert found.outcome is MET and found.said == "0.61 to 0.9 over 3 protocols"
    assert found.criterion == "a range that includes 0.813"
    assert covers("accuracy", protocols, 0.95, paper="").outcome is MISSED
    assert covers("accuracy", {}, 0.95, paper="").said == "no value"


# Words.


def test_every_word_of_a_verdict_is_explained_where_it_is_used() -> None:
    unexplained = {Verdict.NOT_RUN, Verdict.NOT_BUILT}
    told = meanings({one.value for one in Verdict})
    assert {word for word, _ in told} == {one.value for one in Verdict if one not in unexplained}
    assert sum("gives no result" in meaning for _, meaning in told) == 1, "said once"
    assert [word for word, _ in meanings({"waiting", "not run"})] == ["waiting"]


def test_every_verdict_of_runs_has_a_colour() -> None:
    unfinished = {Verdict.INCOMPLETE, Verdict.WAITING, Verdict.NOT_RUN, Verdict.NOT_BUILT}
    for one in set(Verdict) - unfinished:
        assert tables._coloured(one.value).style


def test_a_page_tells_an_undecided_check_from_a_missed_one() -> None:
    checks = [
        within("speed", [1.0, 1.1, 1.2], paper="", least=1.1),
        within("speed of two", [1.0, 1.0], paper="", least=2),
        *own(within("mine", [3.0, 3.0], paper="", least=2)),
    ]
    table = page._checks([finding(Finding("sim", checks))])
    assert "1.1 ± 0.25, <b>undecided</b> <small>(the interval spans the limit)</small>" in table
    assert "<b>1, the same for every seed, missed</b>" in table
    assert "(number, own)" in table


# Set-ups.


def with_setups() -> Claim:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    known = built.claim.grid
    grid = Grid(
        {**known.factors, "seconds": (0.3,), "rig": ("as built", "without offload")},
        lambda rig, **factors: {**known.document(**factors), "duration": f"0.{len(rig)} s"},
    )
    return replace(
        built.claim,
        grid=grid,
        worlds=("sim",),
        setups=Setups("rig", "as built", seeds=2),
        measure=lambda trial: {"x": {"as built": 1.0, "without offload": 5.0}[trial.factors["rig"]]},
        series=None,
        judge=lambda data: [within("x", data.values("x", controller="bbr1"), paper="", least=2, shape=True)],
        explain=lambda data: [f"{data.runs.height} runs of {', '.join(data.setups)}."],
    )


def test_the_verdict_is_about_one_setup_and_the_report_shows_all(tmp_path: Any) -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan = run.Plan(replace(built, claim=with_setups()), Size.FULL, ("sim",), 4, 1)
    assert len(plan.tasks) == 2 * 4 + 2 * 2, "other set-ups have fewer seeds"
    store = Store(tmp_path)
    result = run.examine(plan, store, run.carry_out([plan], store))
    (found,) = result.findings
    assert found.verdict is Verdict.NOT and result.data.runs.height == 8
    assert {name: checks[0].outcome for name, checks in found.setups.items()} == {
        "as built": MISSED,
        "without offload": MET,
    }
    assert result.because == ["8 runs of as built, without offload."]
    said = finding(found, "as built")
    table = page._setups(said)
    assert "The verdict is about “as built”; the others have fewer seeds (n), " in table
    # Each value has its outcome and count.
    assert "missed</b><small> n = 4" in table
    assert table.count("<small> n = ") == 2
    assert 'data-heading="without offload"' in table and "5, the same for every seed" in table
    assert [one["judged"] for one in said["setups"]] == [True, False]


def test_what_another_setup_lacks_leaves_the_verdict_alone(tmp_path: Any) -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan = run.Plan(replace(built, claim=with_setups()), Size.FULL, ("sim",), 2, 1)
    store = Store(tmp_path)
    judged = [one.task for one in plan.planned if one.factors["rig"] == "as built"]
    run.sweep.carry_out(judged, store, run.Local())
    (found,) = run.examine(plan, store, run.sweep.Outcome({}, 0)).findings
    assert found.verdict is Verdict.NOT and found.setups == {} and found.fewer is None


# Claims that wait.


def test_a_claim_waits_if_the_runs_of_this_form_lack_its_controller(tmp_path: Any) -> None:
    built = catalogue.built("icnp17.loss")
    assert built is not None
    grid = replace(built.claim.grid, tiny={**built.claim.grid.tiny, "controller": ("cubic",)})
    plan = run.Plan(replace(built, claim=replace(built.claim, grid=grid)), Size.TINY, ("sim",), 1, 1)
    store = Store(tmp_path)
    (found,) = run.examine(plan, store, run.carry_out([plan], store)).findings
    assert found.verdict is Verdict.WAITING and found.others == ("cubic",)
    assert found.reason.startswith("bbr1 was not run yet.")
