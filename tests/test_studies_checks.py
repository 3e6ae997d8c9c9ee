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
    assert more("x", [1.0, math.nan], [1.0], paper="").why == "no value in 1 of 3"


def test_samples_with_zeros_are_known_by_their_extremes() -> None:
    few = more("x", [10.0, 11.0, 12.0], [0.0, 0.0], paper="")
    assert (few.outcome, few.why) == (UNDECIDED, "fewer than 3: 2")
    over_nothing = more("x", [10.0, 11.0, 12.0], [0.0] * 4, paper="")
    assert over_nothing.met and over_nothing.said == "∞ times, the same for every seed"
    wide = more("x", [10.0, 11.0, 12.0], [0.0, 0.0, 5.0, 20.0], paper="")
    assert (wide.said, wide.outcome) == ("0.5 to ∞ times", UNDECIDED) and wide.why and not wide.few
    assert more("x", [10.0, 11.0, 12.0], [0.0, 0.0, 5.0, 8.0], paper="").met
    assert more("x", [0.0, 0.0, 0.0], [1.0, 2.0, 3.0, 4.0], paper="").outcome is MISSED
    assert more("x", [0.0, 1.0, 2.0], [0.0, 0.0, 3.0, 4.0], paper="").why.startswith("ratios to or of")
    assert more("x", [0.0] * 3, [0.0, 0.0, 3.0, 4.0], paper="").why == "ratios to or of zero"


# Runs without a value.


def test_a_mean_over_the_runs_that_did_well_decides_nothing() -> None:
    rows = [{"world": "sim", "seed": seed, "x": 1.0 if seed < 9 else None} for seed in range(1, 11)]
    values = Data(pl.DataFrame(rows), pl.DataFrame()).values("x")
    assert (len(values), values.without) == (8, 2)
    for found in (within("x", values, paper="", least=0.5), more("x", values, values, paper="", least=0.5)):
        assert (found.outcome, found.said) == (UNDECIDED, "no value")
    assert within("x", values, paper="", least=0.5).why == "no value in 2 of 10"
    assert within("x", values.over(values), paper="", least=0.5).why == "no value in 4 of 12"


def test_what_did_not_happen_in_a_run_is_beyond_the_limit() -> None:
    def after(*seconds: float) -> Check:
        rows = [{"world": "sim", "seed": seed, "x": x} for seed, x in enumerate(seconds)]
        return within("x", Data(pl.DataFrame(rows), pl.DataFrame()).values("x"), paper="", most=2, unit="s")

    assert after(math.inf, math.inf, math.inf).outcome is MISSED
    assert (after(1.0, 1.1, math.inf).outcome, after(1.0, 1.1, math.inf).said) == (UNDECIDED, "1 to ∞ s")
    assert after(3.0, 3.1, math.inf).outcome is MISSED


def test_a_seed_without_a_value_misses_nothing() -> None:
    each = Values([0.5, 0.5, math.nan], [1, 2, 3], conditions=True)
    found = within("crossover", each, paper="", most=1, shape=True)
    assert (found.outcome, found.why) == (UNDECIDED, "no value in 1 of 3")
    assert Finding("sim", [found]).verdict is Verdict.INCONCLUSIVE


def test_an_infinite_statistic_is_beyond_every_limit() -> None:
    # Such as the largest value divided by the smallest, which is zero.
    some = Values([1.1, 1.2, math.inf], [1, 2, 3], conditions=True)
    found = within("spread", some, paper="", most=2, unit="times")
    assert (found.said, found.outcome) == ("1.1 to ∞ times", UNDECIDED) and found.why
    assert within("spread", [math.inf] * 3, paper="", most=2).outcome is MISSED
    assert within("spread", some, paper="", least=1).met
    told = finding(Finding("sim", [found]))["checks"][0]
    assert (told["ours"], told["range"], told["infinite"]) == (None, [1.1, None], True)
    within_zero = within("x", [-5.0, math.inf, math.inf], paper="", most=2)
    assert within_zero.said == "-5 to ∞"


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
def test_runs_of_the_same_seed_and_scenario_are_compared(gone: list[tuple[int, int]]) -> None:
    # One is twice the other on each path. By means over what is left, it would be a tenth.
    small = {key: x / 2 for key, x in LARGE.items()}
    left = {key: x for key, x in LARGE.items() if key not in gone}
    for found in (ordered(two(left, small)), ordered(two(LARGE, {key: small[key] for key in left}))):
        assert (found.said, found.outcome, found.over) == (
            "2 times, the same for every seed",
            MET,
            Over.CONDITIONS,
        )


def test_lists_of_seeds_that_happen_to_be_equal_are_not_paired_by_their_order() -> None:
    small = {key: x / 2 for key, x in LARGE.items()}
    del small[1, 1]
    large = {key: x for key, x in LARGE.items() if key != (1, 100)}
    assert ordered(two(large, small)).said == "2 times, the same for every seed"


def test_unlike_scenarios_that_cannot_be_paired_decide_nothing() -> None:
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
    told = finding(Finding("sim", [found]))["checks"][0]
    assert told["infinite"] and (told["ours"], told["range"]) == (None, [84.0, None])
    assert told["modes"] == [pytest.approx([84.0] * 3), [None, None]]
    json.dumps(told, allow_nan=False)


def test_the_mean_of_ratios_of_which_one_is_infinite_is_no_number() -> None:
    found = more("x", [84.0, 84.0, 84.0, 84.0], [1.0, 1.0, 1.0, 0.0], paper="", least=10, most=100)
    assert (found.said, found.outcome) == ("84 to ∞ times", UNDECIDED) and "±" not in found.said
    assert more("x", [84.0] * 4, [1.0, 1.0, 1.0, 0.0], paper="", least=10).met
    told = finding(Finding("sim", [found]))["checks"][0]
    assert (told["ours"], told["ci95"], told["infinite"]) == (None, None, True)
    both = more("x", [84.0, 84.0, 0.0], [1.0, 0.0, 1.0], paper="", least=10)
    assert (both.said, both.outcome) == ("0 to ∞ times", UNDECIDED)
    # Of unlike scenarios, too: a seed's mean with one to zero is infinite.
    large, small = (Values(of, [1, 1, 2, 2, 3, 3]) for of in ([8.0, 9.0] * 3, [2.0, 0.0] * 3))
    assert more("x", large, small, paper="").said == "∞ times, the same for every seed"


def test_a_ratio_of_infinity_is_no_number_in_json() -> None:
    told = finding(Finding("sim", [more("x", [3.0, 4.0, 5.0], [0.0] * 3, paper="")]))["checks"][0]
    assert (told["said"], told["infinite"]) == ("∞ times, the same for every seed", True)
    assert (told["ours"], told["range"], told["ci95"]) == (None, [None, None], None)
    nothing = finding(Finding("sim", [more("x", [0.0] * 3, [3.0, 4.0, 5.0], paper="")]))["checks"][0]
    assert (nothing["ours"], nothing["range"], nothing["infinite"]) == (0.0, [0.0, 0.0], False)
    # A ratio that large is one.
    large = finding(Finding("sim", [more("x", [2e6] * 3, [1.0] * 3, paper="")]))["checks"][0]
    assert large["ours"] == pytest.approx(2e6) and large["said"].startswith("2,000,000 times")


def test_the_share_of_runs_in_a_mode_has_an_interval() -> None:
    runs = [0.86, 0.4, 0.87, 0.88, 0.87, 0.85, 0.86, 0.86, 0.87, 0.88]
    found = share("x", [value > 0.6 for value in runs], paper="", least=0.5)
    assert found.outcome is MET and found.said == "0.9 of runs (0.596 to 0.982)"
    assert share("x", [value > 0.6 for value in runs], paper="", least=0.9).outcome is UNDECIDED
    assert share("x", [False] * 10, paper="", least=0.9).outcome is MISSED
    assert share("x", [True] * 2, paper="", least=0.1).why == "fewer than 3: 2"
    assert share("x", [], paper="", least=0.9).why == "no value"


@pytest.mark.parametrize(
    ("limits", "fewest"), [({"least": 0.9}, 35), ({"least": 0.8}, 16), ({"least": 0.5}, 4)]
)
def test_a_share_says_how_many_runs_it_takes(limits: dict[str, float], fewest: int) -> None:
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
        setups=Setups("rig", "as built", seeds=3),
        cause="",
        measure=lambda trial: {"x": {"as built": 1.0, "without offload": 5.0}[trial.factors["rig"]]},
        series=None,
        judge=lambda data: [within("x", data.values("x", controller="bbr1"), paper="", least=2, shape=True)],
        explain=lambda data: [f"{data.runs.height} runs of {', '.join(data.setups)}."],
    )


def test_the_verdict_is_about_one_setup_and_the_report_shows_all(tmp_path: Any) -> None:
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan = run.Plan(replace(built, claim=with_setups()), Size.FULL, ("sim",), 4, 1)
    assert len(plan.tasks) == 2 * 4 + 2 * 3, "other set-ups have fewer seeds"
    store = Store(tmp_path)
    result = run.examine(plan, store, run.carry_out([plan], store))
    (found,) = result.findings
    assert found.verdict is Verdict.NOT and result.data.runs.height == 8
    assert result.data.of("sim").factors == tuple(plan.claim.claim.grid.factors), "which tell scenarios apart"
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
    plan = run.Plan(replace(built, claim=with_setups()), Size.FULL, ("sim",), 3, 1)
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
