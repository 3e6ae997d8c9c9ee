"""The claims of ccwg25: judges against data that must fail, BBRv3 before and after it comes, slowdowns."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fullpipe as fp
from fullpipe.ask.arrivals import flow_list, models
from fullpipe.studies import catalogue, write
from fullpipe.studies import run as running
from fullpipe.studies.catalogue import Built
from fullpipe.studies.ccwg25 import _arrivals, _path, latecomer
from fullpipe.studies.claim import Check, Data, Finding, Size, Trial, Verdict, within
from fullpipe.studies.run import Plan
from fullpipe.sweeps.store import Store

CLAIMS = list(catalogue.study("ccwg25").claims)
BBR3 = "bbr3"
Measured = dict[str, Any]


def built(name: str) -> Built:
    found = catalogue.built(f"ccwg25.{name}")
    assert found is not None
    return found


def rows(name: str, ideal: Callable[[Measured], Measured], controllers: tuple[str, ...]) -> list[Measured]:
    """Two seeds of the whole grid, with these controllers, as they are ideally."""
    made = {}
    for cell in built(name).claim.grid.cells(Size.FULL):
        for controller in controllers:
            factors = {**cell.factors, "controller": controller}
            made[repr(factors)] = factors
    return [
        {"world": "sim", "seed": seed, **factors, **ideal(factors)}
        for factors in made.values()
        for seed in (1, 2)
    ]


def judged(name: str, made: list[Measured]) -> Finding:
    checks = built(name).claim.judge(Data(pl.DataFrame(made, infer_schema_length=None), pl.DataFrame()))
    return Finding("sim", checks)


def queue1(factors: Measured) -> Measured:
    if factors["controller"] == "cubic":
        return {"median_rtts": 6.0, "p99_rtts": 8.0}
    jitter, fast = factors["jitter_us"] > 0, factors["rate_mbps"] > 100
    bbr3 = (1.0 if jitter else 0.3) * (1.3 if fast else 1.0)
    return {"median_rtts": bbr3 if factors["controller"] == BBR3 else 0.05, "p99_rtts": 0.3}


def cause1(factors: Measured) -> Measured:
    if factors["controller"] == BBR3:
        return {"peak_rtts": 1.0, "up_rtts": 4.0}
    return {"peak_rtts": 0.25, "up_rtts": 1.0}


def cause2(factors: Measured) -> Measured:
    over = factors["jitter_us"] / 1e5
    return {"estimate": 1 + over, "mean_rtts": 0.1 + 1e3 * over}


def queueN(factors: Measured) -> Measured:
    queue = 7.0 if factors["controller"] == "cubic" else 1.0 + factors["flows"] / 40
    return {"median_rtts": queue, "mean_rtts": queue, "over_one": 0.85}


def rttfair(factors: Measured) -> Measured:
    ratio = factors["long_ms"] / 10
    return {"long_share": ratio / (1 + ratio)}


def cubic(factors: Measured) -> Measured:
    share = min(0.9, 0.9 / factors["buffer_bdp"])
    return {"bbr_share": share, "cubic_share": 1 - share}


def short(factors: Measured) -> Measured:
    bbr = factors["controller"] != "cubic"
    return {
        "slowdown": 2.0 if bbr else 2.2,
        "srpt_slowdown": 1.1,
        "over_limit": 0.01 if bbr else 0.6,
        "p95_rtts": 1.5 if bbr else 7.0,
        "most_rtts": 3.0 if bbr else 8.0,
    }


IDEAL: dict[str, Callable[[Measured], Measured]] = {
    "queue1": queue1,
    "cause1": cause1,
    "cause2": cause2,
    "queueN": queueN,
    "latecomer": lambda _factors: {"converge_s": 30.0},
    "rttfair": rttfair,
    "cubic": cubic,
    "jitter": lambda factors: {"of_rate": 1 / (1 + factors["jitter_rtts"] / 4)},
    "short": short,
}
NOW = ("bbr1", "cubic")
THEN = ("bbr1", BBR3, "cubic")

# (claim, controllers, column, factors, the value in its place, the best verdict that may be left)
WRONG: list[tuple[str, tuple[str, ...], str, Measured, float, Verdict]] = [
    ("queue1", NOW, "p99_rtts", {"controller": "bbr1"}, 0.01, Verdict.NOT),
    ("queue1", NOW, "median_rtts", {"controller": "cubic"}, 0.06, Verdict.NOT),
    ("queue1", THEN, "median_rtts", {"controller": BBR3}, 0.1, Verdict.NOT),
    ("queue1", THEN, "median_rtts", {"controller": BBR3, "rate_mbps": 1000}, 0.5, Verdict.NOT),
    ("queue1", THEN, "median_rtts", {"controller": BBR3, "jitter_us": 0}, 1.1, Verdict.NOT),
    ("cause1", NOW, "peak_rtts", {"controller": "bbr1"}, 1.0, Verdict.NOT),
    ("cause1", NOW, "peak_rtts", {"controller": "bbr1"}, 0.45, Verdict.IN_SHAPE),
    ("cause1", NOW, "up_rtts", {"controller": "bbr1"}, 4.0, Verdict.IN_SHAPE),
    ("cause1", THEN, "peak_rtts", {"controller": BBR3}, 0.25, Verdict.NOT),
    ("cause1", THEN, "up_rtts", {"controller": BBR3}, 1.0, Verdict.NOT),
    ("cause2", NOW, "estimate", {"jitter_us": 0}, 1.2, Verdict.NOT),
    ("cause2", NOW, "estimate", {"jitter_us": 125}, 1.0, Verdict.NOT),
    ("cause2", NOW, "estimate", {"jitter_us": 2000}, 1.0, Verdict.NOT),
    ("cause2", THEN, "mean_rtts", {"controller": BBR3, "jitter_us": 125}, 0.1, Verdict.NOT),
    ("queueN", NOW, "median_rtts", {"controller": "bbr1"}, 0.1, Verdict.NOT),
    ("queueN", NOW, "median_rtts", {"controller": "bbr1"}, 3.0, Verdict.IN_SHAPE),
    ("queueN", NOW, "mean_rtts", {"controller": "bbr1", "flows": 16}, 0.5, Verdict.NOT),
    ("queueN", NOW, "mean_rtts", {"controller": "bbr1", "flows": 16}, 6.0, Verdict.IN_SHAPE),
    ("queueN", NOW, "mean_rtts", {"controller": "bbr1", "flows": 4}, 1.0, Verdict.NOT),
    ("queueN", NOW, "over_one", {"controller": "bbr1", "flows": 2}, 0.3, Verdict.NOT),
    ("queueN", THEN, "over_one", {"controller": BBR3, "flows": 8}, 0.3, Verdict.NOT),
    ("queueN", NOW, "median_rtts", {"controller": "cubic"}, 0.5, Verdict.NOT),
    ("latecomer", NOW, "converge_s", {"controller": "bbr1"}, 0.0, Verdict.NOT),
    ("latecomer", NOW, "converge_s", {"controller": "bbr1"}, 6.0, Verdict.IN_SHAPE),
    ("latecomer", THEN, "converge_s", {"controller": BBR3}, 1.0, Verdict.NOT),
    ("rttfair", NOW, "long_share", {"controller": "bbr1"}, 0.3, Verdict.NOT),
    ("rttfair", NOW, "long_share", {"controller": "bbr1", "long_ms": 100}, 0.5, Verdict.NOT),
    ("rttfair", THEN, "long_share", {"controller": BBR3}, 0.3, Verdict.NOT),
    ("cubic", NOW, "bbr_share", {"buffer_bdp": 0.8}, 0.1, Verdict.NOT),
    ("cubic", NOW, "bbr_share", {"buffer_bdp": 0.8}, 0.6, Verdict.IN_SHAPE),
    ("cubic", NOW, "cubic_share", {"buffer_bdp": 8}, 0.1, Verdict.NOT),
    ("jitter", NOW, "of_rate", {"controller": "bbr1", "jitter_rtts": 1.0}, 0.1, Verdict.NOT),
    ("jitter", NOW, "of_rate", {"controller": "bbr1", "jitter_rtts": 4.0}, 0.1, Verdict.IN_SHAPE),
    ("jitter", NOW, "of_rate", {"controller": "bbr1", "jitter_rtts": 0.0}, 0.5, Verdict.NOT),
    ("short", NOW, "slowdown", {"controller": "bbr1"}, 2.5, Verdict.NOT),
    ("short", NOW, "slowdown", {"controller": "bbr1", "model": "paused"}, 2.5, Verdict.NOT),
    # Slower in one buffer and faster in the other is not faster, in one model or in all.
    ("short", NOW, "slowdown", {"controller": "bbr1", "buffer_bdp": 1, "model": "paused"}, 2.3, Verdict.NOT),
    ("short", NOW, "slowdown", {"controller": "bbr1", "buffer_bdp": 1}, 2.3, Verdict.NOT),
    ("short", NOW, "slowdown", {"controller": "cubic", "buffer_bdp": 8}, 4.2, Verdict.IN_SHAPE),
    ("short", NOW, "srpt_slowdown", {}, 3.0, Verdict.NOT),
    ("short", NOW, "over_limit", {"controller": "bbr1"}, 0.6, Verdict.NOT),
    ("short", NOW, "p95_rtts", {"controller": "bbr1"}, 4.0, Verdict.IN_SHAPE),
    ("short", NOW, "most_rtts", {"controller": "bbr1"}, 8.0, Verdict.IN_SHAPE),
    ("short", THEN, "slowdown", {"controller": BBR3}, 2.5, Verdict.NOT),
]


def with_bbr3(monkeypatch: pytest.MonkeyPatch, controllers: tuple[str, ...]) -> None:
    monkeypatch.setattr(_path, "BBRS", tuple(name for name in controllers if name.startswith("bbr")))


def test_every_listed_claim_is_built_and_has_an_ideal() -> None:
    listed = [one.id for one in catalogue.listed() if one.paper == "ccwg25"]
    assert [one for one in listed if catalogue.built(one) is None] == []
    assert {one.name for one in CLAIMS} == set(IDEAL)


@pytest.mark.parametrize("controllers", [NOW, THEN], ids=["now", "with bbr3"])
@pytest.mark.parametrize("name", IDEAL)
def test_what_the_slides_say_to_the_letter_is_reproduced(
    name: str, controllers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_bbr3(monkeypatch, controllers)
    finding = judged(name, rows(name, IDEAL[name], controllers))
    assert finding.verdict is Verdict.REPRODUCED, finding.reason


@pytest.mark.parametrize(("name", "controllers", "column", "where", "value", "best"), WRONG)
def test_a_judge_does_not_pass(
    name: str,
    controllers: tuple[str, ...],
    column: str,
    where: Measured,
    value: float,
    best: Verdict,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_bbr3(monkeypatch, controllers)
    made = rows(name, IDEAL[name], controllers)
    hit = [row for row in made if all(row[factor] == given for factor, given in where.items())]
    assert hit
    for row in hit:
        row[column] = value
    finding = judged(name, made)
    assert finding.verdict is best, (finding.verdict, finding.checks)


def test_short_flows_are_drawn_in_every_buffer_that_is_judged() -> None:
    rows = [
        {"world": "sim", "controller": name, "model": model, "buffer_bdp": buffer, "bytes": 1e3 * size}
        for name in NOW
        for model in models.MODELS
        for buffer in (1, 8)
        for size in (1, 2)
    ]
    series = pl.DataFrame(rows).with_columns(slowdown=pl.lit(2.0), srpt=pl.lit(1.0))
    drawn = json.dumps(built("short").claim.figure(Data(series, series)).to_dict())
    assert all(f"{model}, {buffer} BDP of buffer" in drawn for model in models.MODELS for buffer in (1, 8))


# BBRv3 was not run yet.


def met(shape: bool = True, value: float = 1.0) -> Check:
    return within("x", value, paper="1", least=1.0, shape=shape)


@pytest.mark.parametrize(
    ("checks", "verdict"),
    [
        ([met(), met(False)], Verdict.WAITING),
        ([met(), met(False, 0.0)], Verdict.WAITING),
        ([met(True, 0.0), met(False)], Verdict.NOT),
        ([], Verdict.NOT),
    ],
)
def test_what_stands_beside_can_refute_but_not_reproduce(checks: list[Check], verdict: Verdict) -> None:
    assert Finding("sim", checks, awaits=BBR3).verdict is verdict


def test_the_reason_says_what_is_awaited_and_what_was_found() -> None:
    assert Finding("sim", [met()], awaits=BBR3, others=("bbr1", "cubic")).reason == (
        "bbr3 was not run yet. The only check of bbr1 and cubic passes."
    )
    missed = Finding("sim", [met(), met(False, 0.5)], awaits=BBR3).reason
    assert missed.endswith("yet. x: 0.5 (expected at least 1).")


@pytest.mark.parametrize("name", IDEAL)
def test_every_claim_waits_as_long_as_no_scenario_has_bbr3(name: str, tmp_path_factory: Any) -> None:
    assert built(name).claim.about == BBR3
    assert (BBR3 in built(name).claim.grid.factors["controller"]) == (BBR3 in _path.CONTROLLERS)
    if BBR3 in _path.CONTROLLERS:
        return
    plan, store = Plan(built(name), Size.TINY, ("sim",), 1, 1), Store(tmp_path_factory.mktemp(name))
    (finding,) = running.examine(plan, store, running.carry_out([plan], store)).findings
    assert finding.awaits == BBR3
    assert finding.verdict in (Verdict.WAITING, Verdict.NOT)


# What is measured.


def test_a_share_that_is_never_fair_waits_until_the_end_and_one_that_is_at_once_not_at_all() -> None:
    document = built("latecomer").claim.grid.cells(Size.FULL)[0].document
    factors = {"controller": "x", "buffer_bdp": 1, "seconds": 60}

    def waits(*flows: Measured) -> float | None:
        run = fp.run({**document, "flows": list(flows)}).runs[0]
        row = built("latecomer").claim.measure(Trial(factors, run))
        assert isinstance(row, dict)
        waited = row["converge_s"]
        assert waited is None or isinstance(waited, float)
        return waited

    first, late = document["flows"]
    capped = {"controller": "fixed:cwnd=100"}
    assert waits({**first, **capped}, {**late, **capped, "max_cwnd": "20 packets"}) == pytest.approx(46)
    assert waits({**first, **capped}, {**late, **capped}) == 0
    assert latecomer.CLAIM.about == BBR3


def replay(transfers: list[tuple[int, int, int]], **path: str) -> tuple[Trial, pl.DataFrame]:
    """Flows (number, pause in ms, bytes), a second apart, alone on a fast path each."""
    listed = pl.DataFrame(
        [(flow, flow * 1_000_000_000, pause * 1_000_000, size) for flow, pause, size in transfers],
        schema=flow_list.SCHEMA,
        orient="row",
    )
    flows = models.flows(listed, before_s=1e3, controller="fixed:cwnd=2000", start_jitter="0 ms")
    road = {"rate": "100 Mbit/s", "rtt": "10 ms", "buffer": "8 bdp", **path}
    run = fp.run({"duration": "60 s", "path": road, "flows": flows, "record": {"flows": False}}).runs[0]
    trial = Trial({}, run)
    return trial, _arrivals.outcomes(trial, 100e6, 0.010)


def test_a_flow_alone_with_a_window_that_is_large_enough_is_not_slowed_down() -> None:
    # Up to what the receiver's first window holds, 64 KB.
    _, found = replay([(0, 0, 1), (1, 0, 14_480), (2, 0, 60_000), (3, 0, 3_000), (3, 400, 50_000)])
    assert found["bytes"].to_list() == [1, 14_480, 60_000, 53_000]
    assert found["slowdown"].to_list() == pytest.approx([1.0] * 4, rel=0.02)
    assert found["srpt"].to_list() == pytest.approx([1.0] * 4, rel=1e-9)


def test_what_a_longer_path_costs_is_in_the_slowdown() -> None:
    _, found = replay([(0, 0, 1), (1, 0, 500_000)], rtt="30 ms")
    assert found["slowdown"][0] == pytest.approx(3, rel=0.02)
    assert found["srpt"].to_list() == pytest.approx([1.0, 1.0], rel=1e-9)


def test_flows_of_similar_size_are_averaged() -> None:
    flows = pl.DataFrame(
        {
            "start_s": [0.0] * 4,
            "bytes": [100, 110, 5000, 10**9],
            "slowdown": [1.0, 3.0, 5.0, 7.0],
            "srpt": [1.0] * 4,
        }
    )
    found = _arrivals.by_size(flows)
    assert found["slowdown"].to_list() == [2.0, 5.0, 7.0]
    assert found["flows"].to_list() == [2, 1, 1]


def test_a_capture_s_flows_stand_in_for_those_made_up(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = pl.DataFrame([(0, 0, 0, 500), (1, 2_000_000, 0, 700)], schema=flow_list.SCHEMA, orient="row")
    flow_list.write(listed, tmp_path / "flows.parquet")
    monkeypatch.setenv(_arrivals.VARIABLE, str(tmp_path / "flows.parquet"))
    _arrivals.replayed.cache_clear()
    flows = _arrivals.replayed("collapsed", 3.0, 0.1)
    _arrivals.replayed.cache_clear()
    # A tenth of the arrivals a second.
    assert [(flow["start"], flow["size"]) for flow in flows] == [
        ("0.000000000 s", "500 B"),
        ("0.020000000 s", "700 B"),
    ]


def test_the_result_names_the_capture_s_flows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # A hundredth of the arrivals a second: the tiny form's three seconds have all of them.
    rows = [(flow, 3_000_000 * flow, 0, 20_000) for flow in range(10)]
    flow_list.write(pl.DataFrame(rows, schema=flow_list.SCHEMA, orient="row"), tmp_path / "mawi.parquet")
    monkeypatch.setenv(_arrivals.VARIABLE, str(tmp_path / "mawi.parquet"))
    _arrivals.replayed.cache_clear()
    _arrivals.source.cache_clear()
    try:
        plan, store = Plan(built("short"), Size.TINY, ("sim",), 1, 1), Store(tmp_path)
        result = running.examine(plan, store, running.carry_out([plan], store))
    finally:
        _arrivals.replayed.cache_clear()
        _arrivals.source.cache_clear()
    write.claim(result, tmp_path)
    write.paper(catalogue.study("ccwg25"), tmp_path)
    (note,) = write.verdicts(tmp_path)["ccwg25.short"]["notes"]
    content = hashlib.sha256((tmp_path / "mawi.parquet").read_bytes()).hexdigest()
    assert "mawi.parquet" in note and content[:16] in note
    assert note in (tmp_path / "report.html").read_text()
