"""Studies: every claim runs in its tiny form, and no judge lets through what it must not."""

import itertools
import json
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import filled_once
from fullpipe.errors import ScenarioError
from fullpipe.runs.engines import Done, Ended
from fullpipe.runs.engines.task import Task
from fullpipe.runs.store import Store
from fullpipe.runs.worlds import sim
from fullpipe.runs.worlds.world import Stop
from fullpipe_studies import catalogue, run, write
from fullpipe_studies.catalogue import Built, Listed
from fullpipe_studies.checks import Outcome
from fullpipe_studies.claim import (
    Check,
    Data,
    Finding,
    Grid,
    Over,
    Size,
    Verdict,
    more,
    own,
    within,
)

CLAIMS = catalogue.find(["all"])
IDS = [one.id for one in CLAIMS]
# Verdicts that say something for a claim.
PASSED = {Verdict.REPRODUCED, Verdict.IN_SHAPE, Verdict.OWN_MET, Verdict.OWN_IN_SHAPE}


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[run.Result, Path]]:
    """Every claim in its tiny form, with one seed."""
    found: dict[str, tuple[run.Result, Path]] = {}

    def examine(whole: Path, *, first: bool) -> None:
        for paper in catalogue.papers():
            folder = whole / paper.name
            plans = [run.Plan(one, Size.TINY, ("sim",), 1, 1) for one in paper.claims]
            store = Store(folder)
            outcome = run.carry_out([task for plan in plans for task in plan.tasks], store)
            for plan in plans:
                result = run.examine(plan, store, outcome)
                found[plan.claim.id] = result, folder
                if first:
                    write.claim(result, folder)
            if first:
                write.paper(paper, folder)

    whole = filled_once(tmp_path_factory, "tiny", lambda folder: examine(folder, first=True))
    if not found:
        examine(whole, first=False)
    return found


@pytest.mark.parametrize("claim", CLAIMS, ids=IDS)
def test_every_claim_runs_and_is_written(claim: Built, tiny: dict[str, tuple[run.Result, Path]]) -> None:
    result, folder = tiny[claim.id]
    message = json.loads((folder / "results" / f"{claim.name}.json").read_text())
    assert message["id"] == claim.id and message["question"] and message["prediction"]
    if result.plan.waiting is not None:
        assert claim.claim.needs is not None and claim.claim.needs in message["findings"][0]["reason"]
        return
    assert not result.notes
    data = pl.read_parquet(folder / "data" / f"{claim.name}.parquet")
    assert {"world", "seed", *claim.claim.grid.factors} <= set(data.columns)
    (finding,) = result.findings
    assert finding.checks and all(check.criterion and check.paper for check in finding.checks)
    # Without a check of shape, "in shape" could not be told from "not".
    assert any(check.shape for check in finding.checks)
    assert len({check.what for check in finding.checks}) == len(finding.checks)
    assert (folder / "figures" / f"{claim.name}.png").stat().st_size > 1000
    page = (folder / "report.html").read_text()
    assert f'id="{claim.name}"' in page and f'id="figure-{claim.name}"' in page
    assert "<link" not in page and 'src="http' not in page


def test_synthetic_flow_source_is_named(tiny: dict[str, tuple[run.Result, Path]]) -> None:
    (note,) = write.verdicts(tiny["ccwg25.short"][1])["ccwg25.short"]["notes"]
    assert "synthetic" in note


@pytest.mark.parametrize("claim", CLAIMS, ids=IDS)
def test_no_claim_is_reproduced_by_nothing(claim: Built, tiny: dict[str, tuple[run.Result, Path]]) -> None:
    runs = tiny[claim.id][0].data.runs
    if not runs.height:
        return
    kept = {"world", "seed", *claim.claim.grid.factors}
    for value in (None, 0.0, -1.0):
        same = runs.with_columns(
            pl.lit(value, dtype=pl.Float64).alias(name) for name in runs.columns if name not in kept
        )
        finding = Finding("sim", claim.claim.judge(Data(same, pl.DataFrame())))
        assert finding.verdict not in PASSED, (value, finding.checks)


@pytest.mark.parametrize("claim", CLAIMS, ids=IDS)
def test_every_share_is_attainable_as_planned(claim: Built, tiny: dict[str, tuple[run.Result, Path]]) -> None:
    runs = tiny[claim.id][0].data.runs
    known = {"world", "seed", *claim.claim.grid.factors}
    measures = {name: 1.0 for name in runs.columns if name not in known}
    for size, world in itertools.product((Size.FULL, Size.QUICK), claim.claim.worlds):
        plan = run.Plan(claim, size, (world,), claim.claim.seeds_of(size), run.REPETITIONS)
        made = [
            {"world": world, "seed": one.task.job.seed, **one.factors, **measures}
            for one in plan.planned
            if one.task.world == world and plan.judged(one.factors)
        ]
        checks = claim.claim.judge(Data(pl.DataFrame(made, infer_schema_length=None), pl.DataFrame()))
        of_runs = [one for one in checks if one.over is Over.RUNS]
        assert all(one.ours is not None and one.ours.count >= one.needs for one in of_runs), (size, world)
        if not of_runs and size is Size.FULL and world == claim.claim.worlds[-1]:
            return  # A shorter form has none either.


class Late:
    """An engine whose kernel runs are simulated and never on time."""

    def __init__(self) -> None:
        self.given: list[Task] = []

    def cost(self, task: Task) -> float:
        return 1.0

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        for task in tasks:
            self.given.append(task)
            ran = sim.WORLD.run(task.job, Stop())
            ran.summary["provenance"]["untrustworthy"] = ["late"]
            yield Done(task, ran, 0.1)


def test_untrusted_kernel_run_retries_then_excluded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "check_ready", lambda _tasks: None)
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan, store, engine = run.Plan(built, Size.TINY, ("kernel",), 1, 1), Store(tmp_path), Late()
    outcome = run.carry_out(plan.tasks, store, engine=engine, attempts=2)
    assert len(engine.given) == 2 * len(plan.tasks)
    result = run.examine(plan, store, outcome)
    assert result.data.runs.height == 0
    (note,) = result.notes
    assert "left out as untrustworthy" in note and "tried 2 times: late" in note


# The framework.


MET, MISSED, OPEN = {"least": 1.0}, {"least": 2.0}, {"least": 1.5}


def check(limits: dict[str, float], *, shape: bool) -> Check:
    """A check of values around 1.5 that is met, missed or undecided with these limits."""
    return within("x", [1.49, 1.5, 1.51], paper="1", shape=shape, **limits)


def shape(limits: dict[str, float]) -> Check:
    return check(limits, shape=True)


def numeral(limits: dict[str, float]) -> Check:
    return check(limits, shape=False)


VERDICTS = [
    ([shape(MET), numeral(MET)], Verdict.REPRODUCED, Verdict.OWN_MET),
    ([shape(MET), numeral(MISSED)], Verdict.IN_SHAPE, Verdict.OWN_IN_SHAPE),
    ([shape(MET), numeral(OPEN)], Verdict.IN_SHAPE, Verdict.OWN_IN_SHAPE),
    ([shape(MISSED), shape(OPEN), numeral(MET)], Verdict.NOT, Verdict.OWN_NOT),
    ([shape(OPEN), numeral(MET)], Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ([shape(OPEN), numeral(MISSED)], Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ([numeral(MET)], Verdict.REPRODUCED, Verdict.OWN_MET),
    ([numeral(OPEN), numeral(MET)], Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ([numeral(OPEN), numeral(MISSED)], Verdict.NOT, Verdict.OWN_NOT),
    ([], Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
]


@pytest.mark.parametrize(("checks", "verdict", "of_own"), VERDICTS)
def test_the_verdict_follows_from_the_checks(checks: list[Check], verdict: Verdict, of_own: Verdict) -> None:
    assert Finding("sim", checks).verdict is verdict
    assert Finding("sim", own(*checks)).verdict is of_own
    assert Finding("sim", checks, awaits="bbr3").verdict is Verdict.WAITING
    assert Finding("sim", checks, missing="1 of 2", awaits="bbr3").verdict is Verdict.INCOMPLETE


def test_paper_results_outweigh_own_expectations() -> None:
    missed = Finding("sim", [shape(MET), *own(shape(MISSED))])
    assert missed.verdict is Verdict.REPRODUCED
    assert missed.reason == (
        "The only check passes. Beside the paper’s results, an expectation of our own: "
        "x: 1.5 ± 0.025 (expected at least 2)."
    )
    assert Finding("sim", [shape(MISSED), *own(shape(MET))]).verdict is Verdict.NOT


def test_reason_names_deciding_checks_counts_undecided() -> None:
    assert Finding("sim", [numeral(MISSED), shape(MISSED), shape(OPEN)]).reason == (
        "x: 1.5 ± 0.025 (expected at least 2)."
    )
    assert Finding("sim", [shape(MET), numeral(OPEN), numeral(MISSED)]).reason == (
        "x: 1.5 ± 0.025 (expected at least 2); x: 1.5 ± 0.025 (expected at least 1.5; undecided)."
    )
    few = within("y", [1.0, 2.0], paper="", least=0.5, shape=True)
    finding = Finding("kernel", [few, few])
    assert (finding.verdict, finding.reason) == (
        Verdict.INCONCLUSIVE,
        "2 checks undecided with 2 repetitions.",
    )


def test_partial_run_is_incomplete(tmp_path: Path) -> None:
    built = catalogue.built("queue16.fig8")
    assert built is not None
    plan, store = run.Plan(built, Size.TINY, ("sim",), 1, 1), Store(tmp_path)
    run.sweep.carry_out(plan.tasks[:3], store, run.Local())
    (finding,) = run.examine(plan, store, run.sweep.Outcome({}, 0)).findings
    assert finding.verdict is Verdict.INCOMPLETE
    assert finding.reason.startswith("1 of 4 cells")


@pytest.mark.parametrize("values", [[], float("nan"), [1.0, float("nan")]])
def test_nothing_measured_meets_nothing(values: Any) -> None:
    found = within("x", values, paper="", least=-1e9)
    assert not found.met and found.facts == "no value"


def test_ordering_is_compared_per_seed() -> None:
    assert more("x", [2.0, 4.0, 6.0], [1.0, 2.0, 3.0], paper="", least=1.5).met
    assert more("x", [1.0, 2.0, 3.0], [2.0, 4.0, 6.0], paper="").outcome is Outcome.MISSED
    assert more("x", [], [1.0], paper="").why == "no value"
    infinite = more("x", [1.0, 2.0, 3.0], [0.0, 0.0, 0.0], paper="", least=10)
    assert infinite.met and infinite.facts == "∞ times, the same for every seed"
    none = more("x", [0.0, 0.0, 0.0], [1.0, 2.0, 3.0], paper="", least=1e-5)
    assert none.outcome is Outcome.MISSED and none.facts == "0 times, the same for every seed"


def test_the_interval_is_beside_the_mean() -> None:
    found = within("x", [9.0, 10.0, 11.0], paper="10", least=9, most=11, unit="ms")
    assert found.facts == "10 ± 2.5 ms" and found.criterion == "9 to 11 ms"
    assert (found.outcome, found.why) == (Outcome.UNDECIDED, "the interval spans the limit")
    assert within("x", [9.0, 10.0, 11.0], paper="10", least=7, most=13, unit="ms").met


@pytest.mark.parametrize(
    ("value", "limits", "message"),
    [
        (0.8998, {"least": 0.9}, "0.8998 of x"),
        (0.899999, {"least": 0.9}, "0.899999 of x"),
        (1000.4, {"most": 1000}, "1,000.4 of x"),
        (0.9002, {"least": 0.9}, "0.9 of x"),  # Met: nothing to explain.
        (0.8, {"least": 0.9}, "0.8 of x"),
    ],
)
def test_near_miss_prints_unlike_its_limit(value: float, limits: dict[str, float], message: str) -> None:
    assert within("x", value, paper="", unit="of x", over=Over.NOTHING, **limits).facts == message


def test_equal_values_miss_strict_ordering() -> None:
    equal = more("x", [2.0, 3.0, 4.0], [2.0, 3.0, 4.0], paper="")
    assert (equal.facts, equal.outcome) == ("1 times, the same for every seed", Outcome.MISSED)
    assert equal.reported("repetition") == "1 times, the same for every repetition"


def test_short_forms_replace_factors() -> None:
    grid = Grid(
        {"a": (1, 2), "b": (3,)}, lambda a, b: {"sum": a + b}, quick={"a": (1,)}, in_wall_time={"b": (5,)}
    )
    assert [cell.document["sum"] for cell in grid.cells()] == [4, 5]
    assert [cell.name for cell in grid.cells(Size.QUICK)] == ["a=1"]
    assert [cell.document["sum"] for cell in grid.cells(Size.FULL, "kernel")] == [6, 7]


def test_grid_skips_invalid_combinations() -> None:
    grid = Grid(
        {"a": (1, 2), "b": (3, 4)},
        lambda a, b: {"sum": a + b},
        quick={"b": (4,)},
        only=lambda a, b: a == 1 or b == 4,
    )
    assert [cell.document["sum"] for cell in grid.cells()] == [4, 5, 6]
    assert [cell.document["sum"] for cell in grid.cells(Size.QUICK)] == [5, 6]


def test_claims_keep_their_listed_order() -> None:
    order = [one.id for one in catalogue.listed()]
    assert [one for one in order if one in IDS] == [one for one in IDS if one in order]
    assert {one.id for one in catalogue.everything()} >= {*order, *IDS}


def test_second_run_reuses_stored_runs(tmp_path: Path) -> None:
    built = catalogue.built("queue16.fig8")
    assert built is not None
    store = Store(tmp_path)
    tasks = run.Plan(built, Size.TINY, ("sim",), 1, 1).tasks
    first = run.carry_out(tasks, store)
    message: list[str] = []
    again = run.Plan(built, Size.TINY, ("kernel",), 1, 1)
    outcome = run.carry_out(tasks, store, say=message.append)
    assert first.found == 0 and outcome.found == 4 and message[0].startswith("0 runs to do")
    # Asked for the kernel only, the simulator's runs are there still.
    result = run.examine(again, store, run.sweep.Outcome({}, 0))
    assert result.data.worlds == ["sim"] and result.data.runs.height == 4


@pytest.mark.parametrize(
    "claim", [one for one in CLAIMS if "kernel" in one.claim.worlds], ids=lambda one: one.id
)
def test_estimate_covers_longest_run(claim: Built) -> None:
    tasks = run.Plan(claim, Size.FULL, ("kernel",), 1, 3).tasks
    assert run.expected_s(tasks) >= max(task.job.alternative.duration_s for task in tasks)


def test_unbuilt_claim_cannot_run(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [*catalogue.listed(), Listed("queue16.fig99", ("sim",), "T")]
    monkeypatch.setattr(catalogue, "listed", lambda: listed)
    with pytest.raises(ScenarioError, match=r"queue16\.fig99.*not built yet"):
        catalogue.find(["queue16.fig99"])
    assert "queue16.fig99" in [one.id for one in catalogue.everything()]
    assert catalogue.built("queue16.fig99") is None


@pytest.mark.parametrize(
    ("application", "packets"),
    [
        ({}, 1e9 * 60 / 8 / 1500),
        ({"requests": {"size": "1 KB"}}, 1e9 * 60 / 8 / 1500),
        ({"size": "15 MB"}, 10_000),
        ({"transfers": [{"size": "6 MB"}, {"size": "9 MB", "pause": "1 s"}]}, 10_000),
        ({"bursts": {"size": "1448 KB", "every": "1 min"}}, 2 * 1448e3 / 1500),
        ({"video": {"rate": "12 Mbit/s", "chunk": "1 s", "buffer": "30 s"}}, 91_000),
    ],
)
def test_application_traffic_bounds_cost(application: dict[str, Any], packets: float) -> None:
    document = {
        "duration": "60 s",
        "path": {"rate": "1 Gbit/s", "rtt": "10 ms"},
        "flows": [{"controller": "bbr1", **application}],
    }
    job = run.Job(run.from_document(document).alternatives[0], 1)
    assert sim.WORLD.cost_s(job, 2) == pytest.approx(sim._RUN_S + packets * sim._PACKET_S, rel=0.01)


def test_measure_receives_factors_of_its_cell(tiny: dict[str, tuple[run.Result, Path]]) -> None:
    runs = tiny["queue16.fig8"][0].data.runs
    assert set(runs["controller"]) == {"bbr1", "cubic"} and set(runs["loss_pct"]) == {0.1, 15.0}


PAPERS = ("queue16", "rebbr", "ccwg25")


@pytest.mark.parametrize("claim", [one for one in CLAIMS if one.paper in PAPERS], ids=lambda one: one.id)
def test_figure_explains_bars_and_dashes(claim: Built, tiny: dict[str, tuple[run.Result, Path]]) -> None:
    message = json.loads((tiny[claim.id][1] / "results" / f"{claim.name}.json").read_text())["spec"]
    drawn = json.dumps(message)
    reported = json.dumps(message["title"])
    bars = [
        rows for rows in message["datasets"].values() if rows and {"low", "mean", "high"} <= rows[0].keys()
    ]
    # Bars of no length are not seen.
    if any(row["low"] != row["high"] for rows in bars for row in rows):
        assert "bars: least to most" in reported or "(bars: least to most" in drawn
    if '"strokeDash": [4, 3]' in drawn:
        assert "dashed" in reported
    # No name is longer than a legend shows.
    assert "cwnd_gain" not in drawn
