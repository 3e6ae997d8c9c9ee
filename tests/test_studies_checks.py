"""Checks: what is met, missed and undecided, and what a page says of it."""

import json
import math
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from fullpipe.runs.store import Store
from fullpipe_studies import catalogue, page, run, tables
from fullpipe_studies.checks import Limits, Outcome, fewest_for
from fullpipe_studies.claim import (
    Check,
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
from fullpipe_studies.write import finding

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
        ([10.0, 10.0, 10.0], {"least": 1.0}, MET, ""),
        ([10.0, 10.0, 10.0], {"least": 11.0}, MISSED, ""),
        # Counts are equal by chance.
        ([0.0, 0.0], {"most": 1.0}, UNDECIDED, "fewer than 3: 2"),
        # No value is no evidence.
        ([], {"least": 1.0}, UNDECIDED, "no value"),
        ([10.0, 10.0, math.nan], {"least": 1.0}, UNDECIDED, "no value in 1 of 3"),
        ([10.0, math.nan, math.nan], {"least": 11.0}, UNDECIDED, "no value in 2 of 3"),
    ],
)
def test_the_interval_decides(values: Any, limits: dict[str, float], outcome: Outcome, why: str) -> None:
    found = within("x", values, paper="", **limits)
    assert (found.outcome, found.why, found.met) == (outcome, why, outcome is MET)


def test_identical_seeds_have_no_interval() -> None:
    found = within("x", [0.866] * 10, paper="", least=0.95, unit="of it")
    assert found.facts == "0.866 of it, the same for every seed" and "±" not in found.facts
    assert found.reported("repetition").endswith("for every repetition")
    assert finding(Finding("sim", [found]))["checks"][0]["ci95"] is None


def test_deterministic_number_needs_no_seeds() -> None:
    found = within("x", 0.25, paper="", least=0.2, over=Over.NOTHING)
    assert (found.outcome, found.facts) == (MET, "0.25")
    assert within("x", 0.25, paper="", least=0.3, over=Over.NOTHING).outcome is MISSED


# Unlike scenarios.


def grid(of: dict[tuple[int, int], float]) -> Data:
    """Runs of a seed and a buffer."""
    rows = [{"world": "sim", "seed": seed, "kb": kb, "x": x} for (seed, kb), x in of.items()]
    return Data(pl.DataFrame(rows), pl.DataFrame())


STEPS = grid({(seed, kb): kb + seed / 10 for seed in (1, 2, 3) for kb in (10, 20, 90)})


def test_mixed_scenarios_report_range_over_seeds() -> None:
    one = STEPS.values("x", kb=10)
    assert (one.seeds, one.mixed) == ([1, 2, 3], False)
    assert "±" in within("x", one, paper="", least=1).facts
    both = STEPS.values("x", kb=(10, 20))
    assert both.mixed and list(both.by_seed()) == pytest.approx([15.1, 15.2, 15.3])
    found = within("x", both, paper="", least=15, unit="ms")
    assert found.facts == "15.2 ms, 15.1 to 15.3 over 3 seeds"
    assert (found.over, found.outcome, found.ours and found.ours.count) == (Over.CONDITIONS, MET, 3)
    undecided = within("x", both, paper="", least=15.2)
    assert (undecided.outcome, undecided.why) == (UNDECIDED, "seeds on both sides of the limit")
    assert within("x", both, paper="", most=15).outcome is MISSED
    # More seeds do not make it harder: of ten, one may be on the other side.
    ten = Values([2.0] * 9 + [0.5], range(10), conditions=True)
    assert within("x", ten, paper="", least=1).outcome is MET
    assert within("x", ten, paper="", most=1).outcome is MISSED
    assert within("x", ten.only([*[True] * 8, False, True]), paper="", least=1).outcome is UNDECIDED


def test_statistic_per_seed_has_no_interval() -> None:
    largest = STEPS.each_seed(lambda runs: float(runs["x"].max() or 0), kb=(20, 90))  # type: ignore[arg-type]
    assert list(largest) == pytest.approx([90.1, 90.2, 90.3])
    assert "±" not in within("x", largest, paper="", least=1).facts
    assert Data(pl.DataFrame(), pl.DataFrame()).each_seed(lambda _runs: 1.0) == []


def test_mixed_orderings_are_compared_per_scenario() -> None:
    # A path where one is ten times ahead, and a path where it is ten times behind: neither is ahead.
    large = Values([10.0, 1.0] * 3, [1, 1, 2, 2, 3, 3])
    small = Values([1.0, 10.0] * 3, [1, 1, 2, 2, 3, 3])
    found = more("x", large, small, paper="")
    assert (found.facts, found.outcome) == ("1 times, the same for every seed", MISSED)


def test_random_scenarios_have_interval() -> None:
    ratios = [2.0, 4.0, 8.0, 4.0, 4.0]
    found = within("x", ratios, paper="", least=2, most=25, over=Over.POPULATION, middle=geometric)
    assert found.outcome is MET and found.facts == "4 (2.18 to 7.35)"


def test_non_positive_values_have_no_geomean() -> None:
    for values in ([0.0, 1.0, 2.0], Values([0.0, 1.0], [1, 1]), Values([-1.0], [1])):
        assert within("x", values, paper="", least=0, middle=geometric).facts == "no value"


def test_seeds_are_matched() -> None:
    one, other = Values([4.0, 6.0, 8.0], [1, 2, 3]), Values([2.0, 3.0, 4.0], [1, 2, 3])
    assert (one.over(other), one.minus(other), one.over(other).seeds) == ([2, 2, 2], [2, 3, 4], [1, 2, 3])
    assert one.only([True, False, True]).seeds == [1, 3]
    late = Values([2.0, 3.0, 4.0], [2, 3, 4])
    assert one.over(late) == [] and one.minus(late) == [] and one.over(Values([0.0] * 3, [1, 2, 3])) == []


# Ratios.


def test_opposite_ratios_show_no_advantage() -> None:
    found = more("x", [5.0, 1.0, 5.0, 1.0], [1.0, 5.0, 1.0, 5.0], paper="")
    assert found.ours is not None and found.ours.mean == pytest.approx(1.0)
    assert found.outcome is UNDECIDED


def test_unpaired_ordering_has_two_sample_interval() -> None:
    close = Values([10.0, 10.1, 10.2], [1, 2, 3]), Values([5.0, 5.1, 5.0, 5.1], [2, 3, 4, 5])
    found = more("x", *close, paper="")
    assert found.outcome is MET and found.ours is not None and found.ours.count == 3
    assert more("x", [10.0, 11.0], [5.0], paper="").outcome is UNDECIDED
    assert more("x", [1.0, math.nan], [1.0], paper="").why == "no value in 1 of 3"


def test_samples_with_zeros_use_their_extremes() -> None:
    few = more("x", [10.0, 11.0, 12.0], [0.0, 0.0], paper="")
    assert (few.outcome, few.why) == (UNDECIDED, "fewer than 3: 2")
    over_nothing = more("x", [10.0, 11.0, 12.0], [0.0] * 4, paper="")
    assert over_nothing.met and over_nothing.facts == "∞ times, the same for every seed"
    wide = more("x", [10.0, 11.0, 12.0], [0.0, 0.0, 5.0, 20.0], paper="")
    assert (wide.facts, wide.outcome) == ("0.5 to ∞ times", UNDECIDED) and wide.why and not wide.few
    assert more("x", [10.0, 11.0, 12.0], [0.0, 0.0, 5.0, 8.0], paper="").met
    assert more("x", [0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0], paper="").outcome is MISSED
    assert more("x", [0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0], paper="").why.startswith("ratios to or of")
    assert more("x", [0.0] * 3, [0.0, 0.0, 3.0, 4.0], paper="").why == "ratios to or of zero"


# Runs without a value.


def test_mean_over_partial_runs_decides_nothing() -> None:
    rows = [{"world": "sim", "seed": seed, "x": 1.0 if seed < 9 else None} for seed in range(1, 11)]
    values = Data(pl.DataFrame(rows), pl.DataFrame()).values("x")
    assert (len(values), values.without) == (8, 2)
    for found in (within("x", values, paper="", least=0.5), more("x", values, values, paper="", least=0.5)):
        assert (found.outcome, found.facts) == (UNDECIDED, "no value")
    assert within("x", values, paper="", least=0.5).why == "no value in 2 of 10"
    assert within("x", values.over(values), paper="", least=0.5).why == "no value in 4 of 12"


def test_event_that_never_happens_exceeds_limit() -> None:
    def after(*seconds: float) -> Check:
        rows = [{"world": "sim", "seed": seed, "x": x} for seed, x in enumerate(seconds)]
        return within("x", Data(pl.DataFrame(rows), pl.DataFrame()).values("x"), paper="", most=2, unit="s")

    assert after(math.inf, math.inf, math.inf).outcome is MISSED
    assert (after(1.0, 1.1, math.inf).outcome, after(1.0, 1.1, math.inf).facts) == (UNDECIDED, "1 to ∞ s")
    assert after(3.0, 3.1, math.inf).outcome is MISSED


def test_seed_without_value_is_undecided() -> None:
    each = Values([0.5, 0.5, math.nan], [1, 2, 3], conditions=True)
    found = within("crossover", each, paper="", most=1, shape=True)
    assert (found.outcome, found.why) == (UNDECIDED, "no value in 1 of 3")
    assert Finding("sim", [found]).verdict is Verdict.INCONCLUSIVE


def test_infinite_statistic_exceeds_every_limit() -> None:
    # Such as the largest value divided by the smallest, which is zero.
    some = Values([1.1, 1.2, math.inf], [1, 2, 3], conditions=True)
    found = within("spread", some, paper="", most=2, unit="times")
    assert (found.facts, found.outcome) == ("1.1 to ∞ times", UNDECIDED) and found.why
    assert within("spread", [math.inf] * 3, paper="", most=2).outcome is MISSED
    assert within("spread", some, paper="", least=1).met
    reported = finding(Finding("sim", [found]))["checks"][0]
    assert (reported["ours"], reported["range"], reported["infinite"]) == (None, [1.1, None], True)
    within_zero = within("x", [-5.0, math.inf, math.inf], paper="", most=2)
    assert within_zero.facts == "-5 to ∞"


# Orderings over unlike scenarios of which some runs are missing.


LARGE = {(seed, kb): 2.0 * kb for seed in (1, 2, 3) for kb in (1, 10, 100)}


def two(large: dict[tuple[int, int], float], small: dict[tuple[int, int], float]) -> Data:
    """Runs of two controllers on paths with these buffers."""
    rows = [
        {"world": "sim", "seed": seed, "controller": name, "kb": kb, "x": x}
        for name, of in (("large", large), ("small", small))
        for (seed, kb), x in of.items()
    ]
    return Data(pl.DataFrame(rows), pl.DataFrame(), factors=("controller", "kb"))


def ordered(data: Data) -> Check:
    sides = (data.values("x", controller=name, kb=(1, 10, 100)) for name in ("large", "small"))
    return more("x", *sides, paper="")


@pytest.mark.parametrize("gone", [[(1, 100)], [(1, 100), (2, 1)], [(3, 10)]])
def test_same_seed_and_scenario_are_paired(gone: list[tuple[int, int]]) -> None:
    # One is twice the other on each path. By means over what is left, it would be a tenth.
    small = {key: x / 2 for key, x in LARGE.items()}
    left = {key: x for key, x in LARGE.items() if key not in gone}
    for found in (ordered(two(left, small)), ordered(two(LARGE, {key: small[key] for key in left}))):
        assert (found.facts, found.outcome, found.over) == (
            "2 times, the same for every seed",
            MET,
            Over.CONDITIONS,
        )


def test_equal_seeds_are_not_paired_positionally() -> None:
    small = {key: x / 2 for key, x in LARGE.items()}
    del small[1, 1]
    large = {key: x for key, x in LARGE.items() if key != (1, 100)}
    assert ordered(two(large, small)).facts == "2 times, the same for every seed"


def test_unpairable_scenarios_decide_nothing() -> None:
    one, other = (Values([5.0] * 3, seeds, conditions=True) for seeds in ([1, 2, 3], [4, 5, 6]))
    found = more("x", one, other, paper="")
    assert (found.outcome, found.over) == (UNDECIDED, Over.CONDITIONS) and "other scenarios" in found.why
    # The seeds that both have are paired.
    late = Values([2.5] * 3, [2, 3, 4], conditions=True)
    assert more("x", one, late, paper="").why == "fewer than 3: 2"


# Modes.


@pytest.mark.parametrize(
    ("least", "outcome"), [(0.1, MET), (0.6, UNDECIDED), (0.95, MISSED)], ids=["met", "between", "missed"]
)
def test_two_modes_report_no_mean(least: float, outcome: Outcome) -> None:
    found = within("x", [0.4, 0.86, 0.42, 0.88, 0.87], paper="", least=least, unit="of it")
    assert found.facts == "two modes: 0.41 of it in 2 of 5 runs, 0.87 of it in 3"
    assert found.outcome is outcome
    assert found.why == ("two modes, on both sides of the limit" if outcome is UNDECIDED else "")
    reported = finding(Finding("sim", [found]))["checks"][0]
    assert reported["modes"] == [[0.4, 0.42], [0.86, 0.87, 0.88]] and reported["ci95"] is None


def test_modes_around_range_miss_it() -> None:
    assert within("x", [1.0, 1.1, 9.0, 9.1, 9.2], paper="", least=4, most=6).outcome is MISSED


def test_opposite_ratio_modes_are_reported() -> None:
    found = more("x", [60.0, 60.0, 0.1, 0.11, 62.0], [1.0] * 5, paper="", least=5)
    assert found.facts == "two modes: 0.105 times in 2 of 5 runs, 60.7 times in 3"
    assert found.outcome is UNDECIDED


def test_mode_of_zero_denominators_is_infinite() -> None:
    found = more("x", [84.0] * 5, [1.0, 1.0, 1.0, 0.0, 0.0], paper="", least=10)
    assert found.facts == "two modes: 84 times in 3 of 5 runs, ∞ times in 2" and found.met
    reported = finding(Finding("sim", [found]))["checks"][0]
    assert reported["infinite"] and (reported["ours"], reported["range"]) == (None, [84.0, None])
    assert reported["modes"] == [pytest.approx([84.0] * 3), [None, None]]
    json.dumps(reported, allow_nan=False)


def test_mean_with_infinite_ratio_is_undefined() -> None:
    found = more("x", [84.0, 84.0, 84.0, 84.0], [1.0, 1.0, 1.0, 0.0], paper="", least=10, most=100)
    assert (found.facts, found.outcome) == ("84 to ∞ times", UNDECIDED) and "±" not in found.facts
    assert more("x", [84.0] * 4, [1.0, 1.0, 1.0, 0.0], paper="", least=10).met
    reported = finding(Finding("sim", [found]))["checks"][0]
    assert (reported["ours"], reported["ci95"], reported["infinite"]) == (None, None, True)
    both = more("x", [84.0, 84.0, 0.0], [1.0, 0.0, 1.0], paper="", least=10)
    assert (both.facts, both.outcome) == ("0 to ∞ times", UNDECIDED)
    # Of unlike scenarios, too: a seed's mean with one to zero is infinite.
    large, small = (Values(of, [1, 1, 2, 2, 3, 3]) for of in ([8.0, 9.0] * 3, [2.0, 0.0] * 3))
    assert more("x", large, small, paper="").facts == "∞ times, the same for every seed"


def test_infinite_ratio_is_null_in_json() -> None:
    reported = finding(Finding("sim", [more("x", [3.0, 4.0, 5.0], [0.0] * 3, paper="")]))["checks"][0]
    assert (reported["said"], reported["infinite"]) == ("∞ times, the same for every seed", True)
    assert (reported["ours"], reported["range"], reported["ci95"]) == (None, [None, None], None)
    nothing = finding(Finding("sim", [more("x", [0.0] * 3, [3.0, 4.0, 5.0], paper="")]))["checks"][0]
    assert (nothing["ours"], nothing["range"], nothing["infinite"]) == (0.0, [0.0, 0.0], False)
    # A ratio that large is one.
    large = finding(Finding("sim", [more("x", [2e6] * 3, [1.0] * 3, paper="")]))["checks"][0]
    assert large["ours"] == pytest.approx(2e6) and large["said"].startswith("2,000,000 times")


def test_mode_share_has_interval() -> None:
    runs = [0.86, 0.4, 0.87, 0.88, 0.87, 0.85, 0.86, 0.86, 0.87, 0.88]
    found = share("x", [value > 0.6 for value in runs], paper="", least=0.5)
    assert found.outcome is MET and found.facts == "0.9 of runs (0.596 to 0.982)"
    assert share("x", [value > 0.6 for value in runs], paper="", least=0.9).outcome is UNDECIDED
    assert share("x", [False] * 10, paper="", least=0.9).outcome is MISSED
    assert share("x", [True] * 2, paper="", least=0.1).why == "fewer than 3: 2"
    assert share("x", [], paper="", least=0.9).why == "no value"


@pytest.mark.parametrize(
    ("limits", "fewest"), [({"least": 0.9}, 35), ({"least": 0.8}, 16), ({"least": 0.5}, 4)]
)
def test_share_reports_runs_it_needs(limits: dict[str, float], fewest: int) -> None:
    assert share("x", [True] * fewest, paper="", **limits).met
    short = share("x", [True] * (fewest - 1), paper="", **limits)
    assert (short.outcome, short.why, short.needs) == (
        UNDECIDED,
        f"fewer than {fewest}: {fewest - 1}",
        fewest,
    )
    assert fewest_for(Limits(**limits)) == fewest == fewest_for(Limits(most=1 - limits["least"]))
    # That it is missed can be seen sooner.
    assert share("x", [False] * (fewest - 1), paper="", **limits).outcome is MISSED or fewest == 4


def test_median_is_labelled_as_such() -> None:
    found = within("x", [1.0, 2, 3, 4, 5, 6, 1e6], paper="", most=7, middle=median, unit="s")
    assert found.outcome is UNDECIDED and found.facts.startswith("4 s (median) (1 to ")
    short = within("x", [1.0, 2, 30], paper="", most=7, middle=median)
    assert short.why == "no interval from 3 values"


def test_protocol_range_includes_paper_value() -> None:
    protocols = {"shuffled": 0.9, "in order": 0.61, "in order, deep": 0.89}
    found = covers("accuracy", protocols, 0.813, paper="81.3 %")
    assert found.outcome is MET and found.facts == "0.61 to 0.9 over 3 protocols"
    assert found.criterion == "a range that includes 0.813"
    assert covers("accuracy", protocols, 0.95, paper="").outcome is MISSED
    assert covers("accuracy", {}, 0.95, paper="").facts == "no value"


# Words.


def test_used_verdict_words_are_explained() -> None:
    unexplained = {Verdict.NOT_RUN, Verdict.NOT_BUILT, Verdict.CANNOT}
    reported = meanings({one.value for one in Verdict})
    assert {word for word, _ in reported} == {one.value for one in Verdict if one not in unexplained}
    assert sum("gives no result" in meaning for _, meaning in reported) == 1, "said once"
    assert [word for word, _ in meanings({"waiting", "not run"})] == ["waiting"]


def test_finished_verdicts_have_colour() -> None:
    unfinished = {Verdict.INCOMPLETE, Verdict.WAITING, Verdict.NOT_RUN, Verdict.NOT_BUILT, Verdict.CANNOT}
    for one in set(Verdict) - unfinished:
        assert tables._coloured(one.value).style


def test_page_distinguishes_undecided_from_missed() -> None:
    checks = [
        within("speed", [1.0, 1.1, 1.2], paper="", least=1.1),
        within("speed of two", [1.0] * 3, paper="", least=2),
        *own(within("mine", [3.0] * 3, paper="", least=2)),
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
        setups=Setups("rig", "as built", seeds=3, left_open=("without offload",)),
        cause="",
        measure=lambda trial: {"x": {"as built": 1.0, "without offload": 5.0}[trial.factors["rig"]]},
        series=None,
        judge=lambda data: [within("x", data.values("x", controller="bbr1"), paper="", least=2, shape=True)],
        explain=lambda data: [f"{data.runs.height} runs of {', '.join(data.setups)}."],
    )


def test_verdict_depends_on_what_the_setups_differ_in(tmp_path: Any) -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan = run.Plan(replace(built, claim=with_setups()), Size.FULL, ("sim",), 4, 1)
    assert len(plan.tasks) == 2 * 4 + 2 * 3, "other set-ups have fewer seeds"
    store = Store(tmp_path)
    result = run.examine(plan, store, run.carry_out(plan.tasks, store))
    (found,) = result.findings
    assert found.verdict is Verdict.DEPENDS and result.data.runs.height == 8
    assert found.reason.startswith("With “without offload”, it is reproduced, at least in shape; here: x: 1")
    assert replace(found, left_open=()).verdict is Verdict.NOT, "the paper names what the other lacks"
    same = replace(found, setups=dict.fromkeys(found.setups, found.checks))
    assert same.verdict is Verdict.NOT, "the other set-up agrees"
    undecided = [replace(one, outcome=UNDECIDED) for one in found.checks]
    few = replace(found, setups=dict.fromkeys(found.setups, undecided))
    assert few.verdict is Verdict.NOT, "too few runs of the other set-up decide nothing"
    assert result.data.of("sim").factors == tuple(plan.claim.claim.grid.factors), "which tell scenarios apart"
    assert {name: checks[0].outcome for name, checks in found.setups.items()} == {
        "as built": MISSED,
        "without offload": MET,
    }
    assert result.because == ["8 runs of as built, without offload."]
    message = finding(found, "as built")
    table = page._setups(message)
    assert "The verdict is about “as built”; it depends on what the paper omits if another" in table
    # Each value has its outcome and count.
    assert "missed</b><small> n = 4" in table
    assert table.count("<small> n = ") == 2
    assert 'data-heading="without offload"' in table and "5, the same for every seed" in table
    assert [one["judged"] for one in message["setups"]] == [True, False]


def test_missing_other_setup_keeps_verdict(tmp_path: Any) -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan = run.Plan(replace(built, claim=with_setups()), Size.FULL, ("sim",), 3, 1)
    store = Store(tmp_path)
    judged = [one.task for one in plan.planned if one.factors["rig"] == "as built"]
    run.sweep.carry_out(judged, store, run.Local())
    (found,) = run.examine(plan, store, run.sweep.Outcome({}, 0)).findings
    assert found.verdict is Verdict.NOT and found.setups == {} and found.fewer is None


# Claims that wait.


def test_claim_waits_for_its_controller(tmp_path: Any) -> None:
    built = catalogue.built("icnp17.loss")
    assert built is not None
    grid = replace(built.claim.grid, tiny={**built.claim.grid.tiny, "controller": ("cubic",)})
    plan = run.Plan(replace(built, claim=replace(built.claim, grid=grid)), Size.TINY, ("sim",), 1, 1)
    store = Store(tmp_path)
    (found,) = run.examine(plan, store, run.carry_out(plan.tasks, store)).findings
    assert found.verdict is Verdict.WAITING and found.others == ("cubic",)
    assert found.reason.startswith("bbr1 was not run yet.")
