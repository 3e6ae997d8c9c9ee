"""Studies: every claim runs in its tiny form, and no judge lets through what it must not."""

import json
import shutil
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import command
from fullpipe import _native
from fullpipe.engines import Done, Ended
from fullpipe.errors import ScenarioError
from fullpipe.studies import catalogue, gallery, run, tables, trace, write
from fullpipe.studies.catalogue import Built, Listed
from fullpipe.studies.claim import Check, Data, Finding, Grid, Size, Verdict, more, within
from fullpipe.studies.queue16 import cellular as cellular_claim
from fullpipe.sweeps.store import Store
from fullpipe.sweeps.task import Task
from fullpipe.worlds import sim

CLAIMS = catalogue.find(["all"])
IDS = [one.id for one in CLAIMS]


@pytest.fixture(scope="session")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[run.Result, Path]]:
    """Every claim in its tiny form, with one seed."""
    found = {}
    for paper in catalogue.papers():
        folder = tmp_path_factory.mktemp(paper.name)
        plans = [run.Plan(one, Size.TINY, ("sim",), 1, 1) for one in paper.claims]
        store = Store(folder)
        outcome = run.carry_out(plans, store)
        for plan in plans:
            result = run.examine(plan, store, outcome)
            write.claim(result, folder)
            found[plan.claim.id] = result, folder
        write.paper(paper, folder)
    return found


@pytest.mark.parametrize("claim", CLAIMS, ids=IDS)
def test_every_claim_runs_and_is_written(claim: Built, tiny: dict[str, tuple[run.Result, Path]]) -> None:
    result, folder = tiny[claim.id]
    said = json.loads((folder / "results" / f"{claim.name}.json").read_text())
    assert said["id"] == claim.id and said["question"] and said["prediction"]
    if result.plan.waiting is not None:
        assert claim.claim.needs is not None and claim.claim.needs in said["findings"][0]["reason"]
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


def test_flows_that_were_made_up_are_said_to_be(tiny: dict[str, tuple[run.Result, Path]]) -> None:
    (note,) = write.verdicts(tiny["ccwg25.short"][1])["ccwg25.short"]["notes"]
    assert "made up" in note


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
        assert finding.verdict is Verdict.NOT, (value, finding.checks)


class Late:
    """An engine whose kernel runs are simulated and never on time."""

    def __init__(self) -> None:
        self.given: list[Task] = []

    def cost(self, task: Task) -> float:
        return 1.0

    def run(self, tasks: Iterable[Task]) -> Generator[Ended, None, None]:
        for task in tasks:
            self.given.append(task)
            ran = sim.run_one(task.job, _native.Cancel())
            ran.summary["provenance"]["untrustworthy"] = ["late"]
            yield Done(task, ran, 0.1)


def test_a_kernel_run_that_is_never_trusted_is_tried_as_often_as_asked_and_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "try_kernel", lambda: None)
    built = catalogue.built("queue16.fig4")
    assert built is not None
    plan, store, engine = run.Plan(built, Size.TINY, ("kernel",), 1, 1), Store(tmp_path), Late()
    outcome = run.carry_out([plan], store, engine=engine, attempts=2)
    assert len(engine.given) == 2 * len(plan.tasks)
    result = run.examine(plan, store, outcome)
    assert result.data.runs.height == 0
    (note,) = result.notes
    assert "untrustworthy and left out" in note and "tried 2 times: late" in note


# What each claim would measure if the paper were right to the letter, and what must then not pass.


def grid_rows(name: str, measured: Callable[[dict[str, Any]], dict[str, Any]]) -> list[dict[str, Any]]:
    built = catalogue.built(name)
    assert built is not None
    return [
        {"world": "sim", "seed": seed, **cell.factors, **measured(dict(cell.factors))}
        for cell in built.claim.grid.cells()
        for seed in (1, 2)
    ]


def by(name: str, values: dict[str, dict[str, Any]]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    return lambda factors: values[factors[name]]


def fig1(factors: dict[str, Any]) -> dict[str, Any]:
    x = min(factors["cap_bdp"], 2.5)
    return {
        "inflight_bdp": x,
        "rate_mbps": 100 * min(x, 1),
        "rtt_ms": 40 * max(x, 1),
        "retransmits": 0.0 if factors["cap_bdp"] <= 2.5 else 9.0,
    }


def fig8(factors: dict[str, Any]) -> dict[str, Any]:
    p = factors["loss_pct"]
    part = 1.0 if p <= 5 else 0.9 if p <= 15 else 0.01
    cubic = 90 * min(1.0, (0.001 / p) ** 0.5)
    bbr = part * 96 * (1 - p / 100)
    goodput = bbr if factors["controller"] == "bbr1" else cubic if p < 1 else 0.5
    return {"goodput_mbps": goodput, "of_ceiling": goodput / (96 * (1 - p / 100)), "retransmits": 1}


def fig10(factors: dict[str, Any]) -> dict[str, Any]:
    full = 40 + factors["buffer_kb"] * 8e6 / 128e3
    cubic = factors["controller"] == "cubic"
    rtt = full if cubic else min(full, 3000.0)
    return {
        "rtt_ms": rtt,
        "of_full": rtt / full,
        "timed_out": float(cubic and factors["buffer_kb"] >= 3000),
    }


def startup(factors: dict[str, Any]) -> dict[str, Any]:
    import math

    bdp = factors["rate_bps"] * 0.04 / 12000
    return {"bdp_packets": bdp, "rounds": max(0.5, math.log2(bdp / 10))}


def policer(factors: dict[str, Any]) -> dict[str, Any]:
    loss = {"bbr1": 0.03, "cubic": 0.01, "bbr1:lt_bw=0": 0.1}
    return {"of_tokens": 0.99, "loss": loss[factors["controller"]]}


def acks(factors: dict[str, Any]) -> dict[str, Any]:
    stalled = factors["controller"].startswith("bbr1:cwnd_gain=1,") and factors["every_ms"] > 0
    return {"goodput_mbps": 45.0 if stalled else 95.0}


def fig7(factors: dict[str, Any]) -> dict[str, Any]:
    bbr = factors["controller"] == "bbr1"
    if factors["path"].startswith("intercontinental"):
        return {"throughput_mbps": 335.0 if bbr else 15.0}
    if factors["path"].startswith("US-Europe"):
        return {"throughput_mbps": 2000.0 if bbr else 15.0}
    # 2 to 25 times, evenly over the paths.
    return {"throughput_mbps": 10 * (2 + 23 * (int(factors["path"].split()[1]) - 1) / 39) if bbr else 10.0}


def fig9(factors: dict[str, Any]) -> dict[str, Any]:
    from fullpipe.studies.queue16 import fig9

    bbr = factors["controller"] == "bbr1"
    depths = sorted(path.buffer_ms for path in fig9._PATHS.values())
    deep = fig9._PATHS[factors["path"]].buffer_ms >= depths[30]
    return {"rtt_ms": 100 * ((0.15 if deep else 0.56) if bbr else 1), "goodput_mbps": 1.02 if bbr else 1.0}


def cellular(factors: dict[str, Any]) -> dict[str, Any]:
    part = 0.3 if factors["link"] == "radio" and "=" in factors["controller"] else 0.95
    return {"goodput_mbps": 48 * part, "of_most": part}


IDEAL: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "queue16.fig1": fig1,
    "queue16.fig2": lambda _factors: {
        "cycle_rtprops": 8.0,
        "up_rtprops": 1.0,
        "inflight_peak": 0.25,
        "rtt_peak": 0.25,
        "after_down": 1.0,
        "rate_low": 1.0,
        "rate_high": 1.0,
        "sampled_low": 1.0,
    },
    "queue16.fig3": lambda _factors: {
        "cycles_to_rise": 3.0,
        "first_step": 1.25,
        "up_rtprops": 1.0,
        "worst_rtt_ms": 100.0,
        "seconds_to_drain": 2.0,
        "settled_rtt_ms": 42.0,
    },
    "queue16.fig4": by(
        "controller",
        {
            "bbr1": {
                "growth_a_round": 2.0,
                "late_growth": 1.0,
                "last_rtt_ms": 42.0,
                "plateau_rounds": 3.0,
                "startup_queue_bdp": 2.0,
                "drained_queue_bdp": 0.0,
            },
            "cubic": {"growth_a_round": 2.0, "late_growth": 1.2, "last_rtt_ms": 100.0},
        },
    ),
    "queue16.fig5": by(
        "controller",
        {
            "bbr1": {"median_rtt_ms": 42.0, "high_part": None, "low_part": None},
            "cubic": {"median_rtt_ms": 300.0, "high_part": 1.0, "low_part": 0.7},
        },
    ),
    "queue16.fig6": lambda _factors: {"last_jain": 0.99, "converged_s": 30.0, "together": 1.0},
    "queue16.fig7": fig7,
    "queue16.fig8": fig8,
    "queue16.fig9": fig9,
    "queue16.fig10": fig10,
    "queue16.cellular": cellular,
    "queue16.acks": acks,
    "queue16.policer": policer,
    "queue16.coexist": lambda factors: {"bbr_share": 0.5 if factors["buffer_bdp"] <= 4 else 0.2},
    "queue16.startup": startup,
    "queue16.probertt": lambda _factors: {
        "probe_bw": 0.98,
        "probe_rtt": 0.02,
        "period_s": 10.2,
        "least_cwnd": 4.0,
        "goodput_part": 0.98,
    },
}

# (claim, column, factors, the value in its place, the best verdict that may be left)
WRONG: list[tuple[str, str, dict[str, Any], float, Verdict]] = [
    ("fig1", "retransmits", {"cap_bdp": 0.4}, 5.0, Verdict.NOT),
    ("fig1", "retransmits", {}, 0.0, Verdict.NOT),
    ("fig1", "rtt_ms", {"cap_bdp": 0.8}, 80.0, Verdict.NOT),
    ("fig1", "rtt_ms", {"cap_bdp": 2.2}, 40.0, Verdict.IN_SHAPE),
    ("fig2", "inflight_peak", {}, 0.01, Verdict.NOT),
    ("fig2", "cycle_rtprops", {}, 16.0, Verdict.IN_SHAPE),
    ("fig2", "after_down", {}, 1.2, Verdict.NOT),
    ("fig2", "rate_low", {}, 0.8, Verdict.NOT),
    ("fig2", "sampled_low", {}, 0.8, Verdict.IN_SHAPE),
    ("fig3", "cycles_to_rise", {}, 1.0, Verdict.IN_SHAPE),
    ("fig3", "cycles_to_rise", {}, 20.0, Verdict.NOT),
    ("fig3", "first_step", {}, 1.0, Verdict.NOT),
    ("fig3", "first_step", {}, 2.0, Verdict.IN_SHAPE),
    ("fig3", "settled_rtt_ms", {}, 80.0, Verdict.NOT),
    ("fig3", "seconds_to_drain", {}, 5.0, Verdict.IN_SHAPE),
    ("fig4", "growth_a_round", {"controller": "cubic"}, 1.0, Verdict.NOT),
    ("fig4", "drained_queue_bdp", {"controller": "bbr1"}, 1.0, Verdict.NOT),
    ("fig4", "plateau_rounds", {"controller": "bbr1"}, 8.0, Verdict.IN_SHAPE),
    ("fig4", "late_growth", {"controller": "cubic"}, 0.7, Verdict.NOT),
    ("fig5", "median_rtt_ms", {"controller": "bbr1"}, 200.0, Verdict.NOT),
    ("fig5", "low_part", {"controller": "cubic"}, 0.2, Verdict.IN_SHAPE),
    ("fig5", "high_part", {"controller": "cubic"}, 0.6, Verdict.NOT),
    ("fig6", "last_jain", {}, 0.5, Verdict.NOT),
    ("fig6", "converged_s", {}, 60.0, Verdict.IN_SHAPE),
    ("fig6", "together", {}, 0.3, Verdict.NOT),
    ("fig7", "throughput_mbps", {"controller": "bbr1", "path": "WAN 7"}, 9.0, Verdict.NOT),
    ("fig7", "throughput_mbps", {"controller": "bbr1"}, 11.0, Verdict.NOT),
    ("fig7", "throughput_mbps", {"controller": "bbr1", "path": "WAN 40"}, 900.0, Verdict.IN_SHAPE),
    (
        "fig7",
        "throughput_mbps",
        {"controller": "bbr1", "path": "intercontinental, 8 MB window, no loss"},
        500.0,
        Verdict.IN_SHAPE,
    ),
    (
        "fig7",
        "throughput_mbps",
        {"controller": "bbr1", "path": "US-Europe, window raised"},
        335.0,
        Verdict.NOT,
    ),
    (
        "fig7",
        "throughput_mbps",
        {"controller": "cubic", "path": "US-Europe, window raised"},
        150.0,
        Verdict.IN_SHAPE,
    ),
    ("fig9", "rtt_ms", {"controller": "bbr1"}, 100.0, Verdict.NOT),
    ("fig9", "rtt_ms", {"controller": "bbr1"}, 47.0, Verdict.NOT),
    ("fig9", "rtt_ms", {"controller": "cubic", "path": "access 1"}, 20.0, Verdict.IN_SHAPE),
    ("fig9", "goodput_mbps", {"controller": "bbr1"}, 1.5, Verdict.NOT),
    ("fig8", "goodput_mbps", {"controller": "cubic", "loss_pct": 2}, 50.0, Verdict.NOT),
    ("fig8", "of_ceiling", {"controller": "bbr1", "loss_pct": 15}, 0.6, Verdict.IN_SHAPE),
    ("fig8", "goodput_mbps", {"controller": "bbr1", "loss_pct": 1}, 1.0, Verdict.NOT),
    ("fig8", "of_ceiling", {"controller": "bbr1", "loss_pct": 50}, 0.9, Verdict.NOT),
    ("fig10", "rtt_ms", {"controller": "bbr1", "buffer_kb": 3000}, 180e3, Verdict.NOT),
    ("fig10", "rtt_ms", {"controller": "cubic", "buffer_kb": 3000}, 6e3, Verdict.NOT),
    ("fig10", "rtt_ms", {"controller": "bbr1", "buffer_kb": 300}, 9e3, Verdict.NOT),
    ("fig10", "timed_out", {"controller": "bbr1", "buffer_kb": 3000}, 1.0, Verdict.NOT),
    ("fig10", "timed_out", {"controller": "cubic", "buffer_kb": 3000}, 0.0, Verdict.NOT),
    ("cellular", "of_most", {"controller": "bbr1:probe_gain=1.15", "link": "radio"}, 0.9, Verdict.NOT),
    ("cellular", "of_most", {"controller": "bbr1", "link": "radio"}, 0.7, Verdict.IN_SHAPE),
    ("cellular", "goodput_mbps", {"controller": "bbr1", "link": "radio"}, 15.0, Verdict.NOT),
    ("cellular", "goodput_mbps", {"controller": "cubic", "link": "trace"}, 60.0, Verdict.IN_SHAPE),
    ("cellular", "of_most", {"controller": "bbr1", "link": "trace"}, 0.3, Verdict.NOT),
    (
        "acks",
        "goodput_mbps",
        {"controller": "bbr1:cwnd_gain=2,extra_acked_gain=0", "every_ms": 40},
        50.0,
        Verdict.NOT,
    ),
    (
        "acks",
        "goodput_mbps",
        {"controller": "bbr1:cwnd_gain=1,extra_acked_gain=0", "every_ms": 40},
        95.0,
        Verdict.NOT,
    ),
    ("policer", "of_tokens", {"controller": "bbr1"}, 0.3, Verdict.NOT),
    ("policer", "loss", {"controller": "bbr1"}, 0.5, Verdict.NOT),
    ("policer", "loss", {"controller": "bbr1:lt_bw=0"}, 0.011, Verdict.NOT),
    ("coexist", "bbr_share", {"buffer_bdp": 16}, 0.95, Verdict.NOT),
    # The mean over the moderate buffers would still be fair.
    ("coexist", "bbr_share", {"buffer_bdp": 1}, 0.88, Verdict.NOT),
    ("coexist", "bbr_share", {"buffer_bdp": 1}, 1.5, Verdict.NOT),
    ("startup", "rounds", {"rate_bps": 1e11}, 80.0, Verdict.NOT),
    ("probertt", "probe_bw", {}, 0.5, Verdict.NOT),
    ("probertt", "least_cwnd", {}, 10.0, Verdict.IN_SHAPE),
]


@pytest.mark.parametrize("name", IDEAL)
def test_what_the_paper_says_to_the_letter_is_reproduced(name: str) -> None:
    finding = judged(name, pl.DataFrame(grid_rows(name, IDEAL[name]), infer_schema_length=None))
    assert finding.verdict is Verdict.REPRODUCED, finding.reason


def test_every_claim_of_queue16_has_an_ideal() -> None:
    assert set(IDEAL) >= {one.id for one in CLAIMS if one.paper == "queue16"}


@pytest.mark.parametrize(("claim", "column", "where", "value", "best"), WRONG)
def test_a_judge_does_not_pass(
    claim: str, column: str, where: dict[str, Any], value: float, best: Verdict
) -> None:
    name = f"queue16.{claim}"
    rows = grid_rows(name, IDEAL[name])
    changed = 0
    for row in rows:
        if all(row[factor] == given for factor, given in where.items()):
            row[column] = value
            changed += 1
    assert changed
    finding = judged(name, pl.DataFrame(rows, infer_schema_length=None))
    assert finding.verdict is best, (finding.verdict, finding.checks)
    assert "where" in finding.reason


def test_where_shares_are_opposite_their_mean_is_not_fair() -> None:
    shares = {1: 0.95, 2: 0.95, 3: 0.05, 4: 0.05, 8: 0.2, 16: 0.2}
    rows = grid_rows("queue16.coexist", lambda one: {"bbr_share": shares.get(one["buffer_bdp"], 0.5)})
    assert judged("queue16.coexist", pl.DataFrame(rows)).verdict is Verdict.NOT


def test_without_deep_buffers_too_cubic_is_above_bbr_on_a_slow_link() -> None:
    rows = pl.DataFrame(grid_rows("queue16.fig10", fig10)).filter(pl.col("buffer_kb").is_in([100, 300]))
    assert judged("queue16.fig10", rows).verdict is Verdict.REPRODUCED
    bbr = pl.when(pl.col("controller") == "bbr1").then(19_500.0).otherwise(pl.col("rtt_ms"))
    assert judged("queue16.fig10", rows.with_columns(bbr.alias("rtt_ms"))).verdict is Verdict.NOT


def test_a_trace_carries_what_falls_into_the_time() -> None:
    times = trace.opportunities_ms()
    assert cellular_claim._carried_mbps(0, times[-1] / 1e3) == pytest.approx(trace.mean_mbps())
    again = [turn * times[-1] + time for turn in range(3) for time in times]
    within_it = sum(40_000 < time <= 60_000 for time in again)
    assert cellular_claim._carried_mbps(40, 60) == pytest.approx(within_it * 12e-3 / 20)


def explained(name: str, measured: Callable[[dict[str, Any]], dict[str, Any]]) -> str:
    built = catalogue.built(name)
    assert built is not None and built.claim.explain is not None
    runs = pl.DataFrame(grid_rows(name, measured), infer_schema_length=None)
    return "\n".join(built.claim.explain(Data(runs, pl.DataFrame())))


def test_runs_that_are_not_yet_steady_are_named_with_their_startups() -> None:
    def late(factors: dict[str, Any]) -> dict[str, Any]:
        end_s = 2000.0 if factors["buffer_kb"] == 300 else 100.0
        return {"rtt_ms": 9e3, "startup_s": end_s, "last_drop_s": end_s - 1}

    said = explained("queue16.fig10", late)
    assert said.startswith("In 300 KB") and said.count("\n") == 0 and "within 1 s" in said
    assert explained("queue16.fig10", lambda _factors: {"startup_s": 100.0, "last_drop_s": 99.0}) == ""


def test_runs_that_collapse_at_15_per_cent_stand_beside_those_without_the_model() -> None:
    def measured(factors: dict[str, Any]) -> dict[str, Any]:
        without = factors["controller"] == "bbr1:lt_bw=0"
        return {"of_ceiling": 0.3 if without else 0.04, "started_mbps": 1.7 if without else None}

    rows = pl.DataFrame(grid_rows("queue16.fig8", measured), infer_schema_length=None)
    high = (pl.col("seed") == 2) & (pl.col("controller") == "bbr1")
    rows = rows.with_columns(pl.when(high).then(0.8).otherwise(pl.col("of_ceiling")).alias("of_ceiling"))
    built = catalogue.built("queue16.fig8")
    assert built is not None and built.claim.explain is not None
    said = built.claim.explain(Data(rows, pl.DataFrame()))
    assert said[0].startswith("At 15 %, 1 of 2 runs have 0.04 to 0.04 of the ceiling, the others 0.8 to 0.8.")


def test_each_buffer_in_which_a_share_was_missed_has_its_cause() -> None:
    def measured(factors: dict[str, Any]) -> dict[str, Any]:
        kept = {"bbr_inflight_bdp": 1.5, "bbr_window_bdp": 2.0, "least_queue_rtts": 1.0}
        share = 0.9 if factors["buffer_bdp"] == 1 else 0.5
        return {"bbr_share": share, **kept, "bbr_again": 9.0, "cubic_again": 3.0}

    said = explained("queue16.coexist", measured).splitlines()
    assert [line[:11] for line in said] == ["With 1 BDP ", "With 8 BDP ", "With 16 BDP"]


@pytest.mark.parametrize("name", ["queue16.coexist", "ccwg25.cubic", "ccwg25.latecomer", "ccwg25.rttfair"])
def test_as_the_papers_stand_the_papers_words_and_what_is_of_the_list_is_named(name: str) -> None:
    built = catalogue.built(name)
    assert built is not None
    rows = pl.DataFrame(grid_rows(name, lambda _factors: {}))
    for check in built.claim.judge(Data(rows, pl.DataFrame())):
        theirs = check.paper.partition("claims list:")[0].strip(" ;")
        assert theirs.lower() in built.claim.says.lower()


def test_what_a_paper_only_plans_is_said_to_be_our_prediction() -> None:
    plans = [one for one in CLAIMS if one.claim.source.endswith("plan")]
    assert len(plans) == 3
    for one in plans:
        assert "gives no result; the prediction is ours" in one.about.prediction


def judged(name: str, runs: pl.DataFrame) -> Finding:
    built = catalogue.built(name)
    assert built is not None
    return Finding("sim", built.claim.judge(Data(runs, pl.DataFrame())))


# The framework.


def check(met: bool, shape: bool) -> Check:
    return within("x", 1.0, paper="1", least=1.0 if met else 2.0, shape=shape)


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([check(True, True), check(True, False)], Verdict.REPRODUCED),
        ([check(True, True), check(False, False)], Verdict.IN_SHAPE),
        ([check(False, True), check(True, False)], Verdict.NOT),
        ([check(False, False)], Verdict.NOT),
        ([], Verdict.NOT),
    ],
)
def test_the_verdict_follows_from_the_checks(checks: list[Check], verdict: Verdict) -> None:
    assert Finding("sim", checks).verdict is verdict


def test_what_was_not_run_is_not_judged(tmp_path: Path) -> None:
    built = catalogue.built("queue16.fig8")
    assert built is not None
    plan, store = run.Plan(built, Size.TINY, ("sim",), 1, 1), Store(tmp_path)
    run.sweep.carry_out(plan.tasks[:3], store, run.Local())
    (finding,) = run.examine(plan, store, run.sweep.Outcome({}, 0)).findings
    assert finding.verdict is Verdict.INCOMPLETE
    assert finding.reason.startswith("1 of 4 cells")


@pytest.mark.parametrize("values", [[], float("nan"), [1.0, float("nan")], [float("inf")]])
def test_nothing_measured_meets_nothing(values: Any) -> None:
    found = within("x", values, paper="", least=-1e9)
    assert not found.met and found.said == "no value"


def test_an_ordering_is_seen_seed_by_seed() -> None:
    assert more("x", [2.0, 4.0], [1.0, 2.0], paper="", least=1.5).met
    assert not more("x", [1.0, 2.0], [2.0, 4.0], paper="").met
    assert not more("x", [], [1.0], paper="").met
    assert more("x", [1.0], [0.0], paper="", least=10).met


def test_the_interval_is_beside_the_mean() -> None:
    found = within("x", [9.0, 10.0, 11.0], paper="10", least=9, most=11, unit="ms")
    assert found.said == "10 ± 2.48 ms" and found.criterion == "9 to 11 ms"


@pytest.mark.parametrize(
    ("value", "limits", "said"),
    [
        (0.8998, {"least": 0.9}, "0.8998 of x"),
        (0.899999, {"least": 0.9}, "0.899999 of x"),
        (1000.4, {"most": 1000}, "1,000.4 of x"),
        (0.9002, {"least": 0.9}, "0.9 of x"),  # Met: nothing to explain.
        (0.8, {"least": 0.9}, "0.8 of x"),
    ],
)
def test_what_misses_a_limit_by_little_does_not_print_like_it(
    value: float, limits: dict[str, float], said: str
) -> None:
    assert within("x", value, paper="", unit="of x", **limits).said == said


def test_just_as_large_is_missed_and_said() -> None:
    assert more("x", [2.0], [2.0], paper="").said == "1 times"


def test_short_forms_replace_factors() -> None:
    grid = Grid({"a": (1, 2), "b": (3,)}, lambda a, b: {"sum": a + b}, quick={"a": (1,)}, kernel={"b": (5,)})
    assert [cell.document["sum"] for cell in grid.cells()] == [4, 5]
    assert [cell.name for cell in grid.cells(Size.QUICK)] == ["a=1"]
    assert [cell.document["sum"] for cell in grid.cells(Size.FULL, "kernel")] == [6, 7]


def test_claims_are_found_and_ordered_as_listed() -> None:
    order = [one.id for one in catalogue.listed()]
    assert [one for one in order if one in IDS] == [one for one in IDS if one in order]
    assert {one.id for one in catalogue.everything()} >= {*order, *IDS}


def test_a_second_run_does_nothing_and_runs_of_another_world_are_taken_up(tmp_path: Path) -> None:
    built = catalogue.built("queue16.fig8")
    assert built is not None
    store = Store(tmp_path)
    first = run.carry_out([run.Plan(built, Size.TINY, ("sim",), 1, 1)], store)
    said: list[str] = []
    again = run.Plan(built, Size.TINY, ("kernel",), 1, 1)
    outcome = run.carry_out([run.Plan(built, Size.TINY, ("sim",), 1, 1)], store, say=said.append)
    assert first.found == 0 and outcome.found == 4 and said[0].startswith("0 runs to do")
    # Asked for the kernel only, the simulator's runs are there still.
    result = run.examine(again, store, run.sweep.Outcome({}, 0))
    assert result.data.worlds == ["sim"] and result.data.runs.height == 4


def test_the_command_lists_runs_and_writes_the_table(in_empty_folder: Path) -> None:
    listed = command("study", "list", "--json")
    rows = {row["id"]: row for row in json.loads(listed.stdout)}
    assert rows["queue16.fig4"]["worlds"]["kernel"]["expected_s"] > 0.2
    ran = command("study", "run", "queue16.fig4", "--quick", "--seeds", "2")
    assert ran.returncode == 0, ran.stderr
    assert "queue16.fig4" in ran.stdout and "reproduced" in ran.stdout
    folder = in_empty_folder / "out" / "study-queue16-quick"
    assert {path.name for path in folder.iterdir()} >= {"data", "figures", "claims.json", "report.html"}
    written = command("study", "claims", "--write", "claims.md", "--out", str(folder))
    assert written.returncode == 0, written.stderr
    text = (in_empty_folder / "claims.md").read_text()
    assert "| queue16.fig4 | The first second | sim | reproduced (quick) |" in text
    assert "| rebbr.rate |" in text and "not run" in text
    assert "| ccwg25.queue1 | The queue that one flow builds | quic | not built |" in text


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of results with two claims."""
    folder = tmp_path_factory.mktemp("two")
    done = command(
        "study", "run", "queue16.fig4", "queue16.fig5", "--quick", "--seeds", "1", "--out", str(folder)
    )
    assert done.returncode == 0, done.stderr
    return folder


def changed(**parts: Any) -> Callable[[Path], object]:
    """Changes parts of a JSON file."""
    return lambda path: path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))


@pytest.mark.parametrize(
    ("file", "spoil", "wrong"),
    [
        ("results/fig4.json", lambda path: path.write_text("{garbage"), "no JSON"),
        ("results/fig4.json", lambda path: path.write_bytes(b"\xff\xfe"), "no JSON"),
        ("results/fig4.json", lambda path: path.write_text('{"id": 5}'), "id is not what it should be"),
        ("results/fig4.json", lambda path: path.write_text("[]"), "the whole is not"),
        ("results/fig4.json", changed(findings=[{"world": "sim"}]), "findings[0].verdict is missing"),
        (
            "results/fig4.json",
            changed(findings=[{"world": "sim", "verdict": "", "reason": "", "checks": [{"what": "x"}]}]),
            "findings[0].checks[0].paper is missing",
        ),
        ("results/fig4.json", changed(spec=5), "spec is"),
        ("results/fig4.json", changed(id="queue16.fig5"), "the result of queue16.fig5"),
        ("figures/fig4.svg", lambda path: path.unlink(), "is missing"),
        ("figures/fig4.svg", lambda path: path.write_text("<svg cut o"), "no whole SVG"),
    ],
)
def test_a_damaged_result_is_told_and_left_out_and_does_not_stop_another_claim(
    file: str, spoil: Callable[[Path], object], wrong: str, two: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(two, tmp_path / "two")
    spoil(folder / file)
    said: list[str] = []
    study = catalogue.study("queue16")
    write.paper(study, folder, said.append)
    (sentence,) = said
    assert sentence.startswith(str(folder / file)) and wrong in sentence
    assert f"`fullpipe study run queue16.fig4 --out {folder}`" in sentence
    page = (folder / "report.html").read_text()
    assert 'id="fig5"' in page and 'id="fig4"' not in page
    assert list(write.verdicts(folder, said.append)) == ["queue16.fig5"]
    gallery.save(tmp_path / "gallery.md", [(study, folder)], said.append)
    assert said == [sentence, sentence]
    text = (tmp_path / "gallery.md").read_text()
    assert "queue16.fig5" in text and "queue16.fig4" not in text


def test_the_command_makes_a_damaged_result_anew_and_tells_of_another(two: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(two, tmp_path / "two")
    (folder / "results" / "fig4.json").write_text("{")
    (folder / "results" / "fig5.json").write_text("{")
    run_fig5 = ("study", "run", "queue16.fig5", "--quick", "--seeds", "1", "--out", str(folder))
    done = command(*run_fig5)
    assert done.returncode == 0, done.stderr
    assert "fig4.json is damaged" in done.stderr and "fig5.json" not in done.stderr
    assert "0 runs to do" in done.stderr and "queue16.fig5" in done.stdout


@pytest.mark.parametrize(
    ("spoil", "wrong", "kept"),
    [
        (lambda _: [], "the whole is not", set()),
        (lambda _: {"paper": "queue16", "claims": {}}, "claims is not", set()),
        (lambda said: {"claims": said["claims"]}, "paper is missing", set()),
        (
            lambda said: {**said, "claims": [{**said["claims"][0], "findings": 5}, said["claims"][1]]},
            "claims[0].findings is not",
            {"queue16.fig5"},
        ),
        (
            lambda said: {**said, "claims": [{"id": "queue16.fig4"}, said["claims"][1]]},
            "claims[0].name is missing",
            {"queue16.fig5"},
        ),
        (lambda said: {**said, "claims": [None, said["claims"][1]]}, "claims[0] is not", {"queue16.fig5"}),
    ],
)
def test_damaged_verdicts_are_told_and_left_out(
    spoil: Callable[[Any], Any], wrong: str, kept: set[str], two: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(two, tmp_path / "two")
    path = folder / "claims.json"
    path.write_text(json.dumps(spoil(json.loads(path.read_text()))))
    told: list[str] = []
    assert set(write.verdicts(folder, told.append)) == kept
    (sentence,) = told
    assert str(path) in sentence and wrong in sentence and "`fullpipe study run " in sentence


def test_commands_tell_damaged_verdicts_once_though_the_folder_may_be_that_of_any_paper(
    tmp_path: Path,
) -> None:
    (tmp_path / "claims.json").write_text("[]")
    for arguments in (["list", "--json", "--quick"], ["claims"]):
        done = command("study", *arguments, "--out", str(tmp_path))
        assert done.returncode == 0 and "not run" in done.stdout
        (sentence,) = done.stderr.splitlines()
        assert sentence.startswith(f"fullpipe: {tmp_path / 'claims.json'} is damaged")


def test_a_file_in_place_of_the_folder_is_said_to_be_one(in_empty_folder: Path) -> None:
    Path("f").write_text("")
    done = command("study", "run", "queue16.fig4", "--quick", "--out", "f")
    assert done.returncode == 2
    assert "f is a file, and a folder is needed" in done.stderr and "writable" not in done.stderr


@pytest.mark.parametrize(
    "claim", [one for one in CLAIMS if "kernel" in one.claim.worlds], ids=lambda one: one.id
)
def test_no_estimate_is_shorter_than_the_longest_run(claim: Built) -> None:
    tasks = run.Plan(claim, Size.FULL, ("kernel",), 1, 3).tasks
    assert run.expected_s(tasks) >= max(task.job.alternative.duration_s for task in tasks)


@pytest.mark.parametrize(
    ("arguments", "mend"),
    [
        (["queue16.fig99"], "study list"),
        (["queue16.fig1", "--world", "kernel"], "study list"),
        (["queue16.fig4", "--seeds", "0"], "e.g. 3"),
        (["queue16.fig4", "--attempts", "0"], "attempts"),
        (["queue16.fig4", "--engine", "cloud"], "local or ray"),
        (["queue16.fig4", "--ray-address", "x:1"], "--engine ray"),
        (["queue16.fig4", "--engine", "ray", "--world", "kernel"], "--engine local"),
    ],
)
def test_mistakes_are_a_sentence(in_empty_folder: Path, arguments: list[str], mend: str) -> None:
    done = command("study", "run", *arguments)
    assert done.returncode == 2 and mend in done.stderr and "Traceback" not in done.stderr


def test_a_claim_that_is_only_listed_cannot_be_run(monkeypatch: pytest.MonkeyPatch) -> None:
    listed = [*catalogue.listed(), Listed("queue16.fig99", ("sim",), "T")]
    monkeypatch.setattr(catalogue, "listed", lambda: listed)
    with pytest.raises(ScenarioError, match=r"queue16\.fig99.*nobody has built it"):
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
def test_what_an_application_sends_is_no_more_work_than_that(
    application: dict[str, Any], packets: float
) -> None:
    document = {
        "duration": "60 s",
        "path": {"rate": "1 Gbit/s", "rtt": "10 ms"},
        "flows": [{"controller": "bbr1", **application}],
    }
    task = run.Task("sim", run.Job(run.from_document(document).alternatives[0], 1))
    assert run._simulated_s(task) == pytest.approx(run._RUN_S + packets * run._PACKET_S, rel=0.01)


def test_a_table_says_what_is_not_built() -> None:
    row = {
        "id": "a.b",
        "title": "T",
        "worlds": {"sim": {"verdict": "not built", "reason": "", "expected_s": None}},
        "size": None,
    }
    assert tables.markdown([row]).splitlines()[-1] == "| a.b | T | sim | not built |  |"


def test_a_measure_sees_the_factors_of_its_cell(tiny: dict[str, tuple[run.Result, Path]]) -> None:
    runs = tiny["queue16.fig8"][0].data.runs
    assert set(runs["controller"]) == {"bbr1", "cubic"} and set(runs["loss_pct"]) == {0.1, 15.0}
