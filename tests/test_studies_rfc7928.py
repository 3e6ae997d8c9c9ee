"""The claims of rfc7928: judges against data that must fail, ellipses; the pictures of queues.md."""

import importlib.util
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import fullpipe as fp
import judging
from fullpipe_studies import catalogue
from fullpipe_studies.catalogue import Built
from fullpipe_studies.claim import Data, Finding, Size, Verdict
from fullpipe_studies.papers.rfc7928 import _bench

CLAIMS = list(catalogue.study("rfc7928").claims)
PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "queues.md"
Measured = dict[str, Any]


def built(name: str) -> Built:
    found = catalogue.built(f"rfc7928.{name}")
    assert found is not None
    return found


def slow(factors: Measured) -> bool:
    return bool(factors["discipline"] == _bench.FIFO)


def alone(factors: Measured) -> Measured:
    return {"goodput_mbps": 9.6 if slow(factors) else 9.2, "delay_ms": 60.0 if slow(factors) else 10.0}


def windows(factors: Measured) -> Measured:
    times = {_bench.FIFO: 900.0, "fq_codel": 400.0}
    return {"goodput_mbps": 9.0, "completion_ms": times.get(factors["discipline"], 600.0)}


def unresponsive(factors: Measured) -> Measured:
    own = 4.5 if factors["discipline"] == "fq_codel" else 2.0
    return {"queue_ms": 99.0 if slow(factors) else 20.0, "goodput_mbps": own, "deaf_mbps": 6.0}


def rttfair(factors: Measured) -> Measured:
    if factors["rtt_ms"] == 100 or factors["discipline"] == "fq_codel":
        return {"ratio": 1.1, "goodput_mbps": 9.0}
    return {"ratio": (100 / factors["rtt_ms"]) ** 0.5, "goodput_mbps": 9.0}


def varying(factors: Measured) -> Measured:
    wait = 80.0 if slow(factors) else 15.0
    levels = ("mild", "medium", "heavy")
    return {f"{level}{kind}": wait for level in levels for kind in ("_ms", "_p95_ms")}


def bursts(factors: Measured) -> Measured:
    bulk = factors["case"] in ("II", "IV")
    return {"page_s": (9.0 if slow(factors) else 6.0) if bulk else 5.0}


IDEAL: dict[str, Callable[[Measured], Measured]] = {
    "friendly": alone,
    "aggressive": alone,
    "windows": windows,
    "unresponsive": unresponsive,
    "lbe": lambda factors: {"share": 0.1 if slow(factors) else 0.4},
    "rttfair": rttfair,
    "ecn": lambda factors: {"retransmits": 200.0 if factors["ecn"] == "off" else 5.0, "goodput_mbps": 9.0},
    "bursts": bursts,
    "load": alone,
    "varying": varying,
    "capacity": lambda factors: {"slow_ms": 600.0 if slow(factors) else 30.0, "goodput_mbps": 40.0},
    "mix": lambda factors: {
        "call_ms": {_bench.FIFO: 90.0, "fq_codel": 3.0}.get(factors["discipline"], 20.0),
        "web_s": 9.0 if slow(factors) else 7.0,
    },
}

# (claim, column, factors, the value in its place, the best verdict that may be left)
WRONG: list[tuple[str, str, Measured, float, Verdict]] = [
    ("friendly", "delay_ms", {"discipline": "pie"}, 61.0, Verdict.OWN_NOT),
    ("friendly", "goodput_mbps", {"discipline": "red"}, 7.0, Verdict.OWN_IN_SHAPE),
    ("aggressive", "delay_ms", {"discipline": "step"}, 60.0, Verdict.OWN_NOT),
    ("windows", "completion_ms", {"discipline": "codel", "packets": 20}, 950.0, Verdict.OWN_NOT),
    ("windows", "completion_ms", {"discipline": "fq_codel"}, 700.0, Verdict.OWN_IN_SHAPE),
    ("windows", "goodput_mbps", {"discipline": "pie", "packets": 80}, 5.0, Verdict.OWN_IN_SHAPE),
    ("unresponsive", "queue_ms", {"discipline": "codel", "scenario": "alone"}, 99.0, Verdict.OWN_NOT),
    ("unresponsive", "goodput_mbps", {"discipline": "fq_codel"}, 2.0, Verdict.OWN_IN_SHAPE),
    ("unresponsive", "goodput_mbps", {"discipline": "pie"}, 4.5, Verdict.OWN_IN_SHAPE),
    ("lbe", "share", {"discipline": "fifo"}, 0.3, Verdict.OWN_NOT),
    ("lbe", "share", {"discipline": "dualpi2"}, 0.1, Verdict.OWN_NOT),
    ("rttfair", "ratio", {"discipline": "fq_codel", "rtt_ms": 20}, 2.0, Verdict.OWN_NOT),
    ("rttfair", "ratio", {"discipline": "fifo", "rtt_ms": 20}, 1.0, Verdict.OWN_NOT),
    ("rttfair", "ratio", {"discipline": "red", "rtt_ms": 100}, 1.4, Verdict.OWN_IN_SHAPE),
    ("ecn", "retransmits", {"discipline": "red", "ecn": "on"}, 40.0, Verdict.OWN_NOT),
    ("ecn", "goodput_mbps", {"discipline": "step", "ecn": "on"}, 8.0, Verdict.OWN_IN_SHAPE),
    ("bursts", "page_s", {"discipline": "step", "case": "IV"}, 10.0, Verdict.OWN_NOT),
    ("bursts", "page_s", {"discipline": "step", "case": "III"}, 7.0, Verdict.OWN_IN_SHAPE),
    ("load", "delay_ms", {"discipline": "codel", "level": "heavy"}, 61.0, Verdict.OWN_NOT),
    ("load", "delay_ms", {"discipline": "codel", "level": "heavy"}, 25.0, Verdict.OWN_IN_SHAPE),
    ("load", "goodput_mbps", {"discipline": "fq_codel", "level": "mild"}, 7.0, Verdict.OWN_IN_SHAPE),
    ("varying", "heavy_ms", {"discipline": "pie"}, 80.0, Verdict.OWN_NOT),
    ("varying", "mild_p95_ms", {"discipline": "red"}, 81.0, Verdict.OWN_IN_SHAPE),
    ("capacity", "slow_ms", {"discipline": "codel", "phase_s": 20.0}, 400.0, Verdict.OWN_NOT),
    # Thresholds that do not follow the rate have a lower bar.
    ("capacity", "slow_ms", {"discipline": "red", "phase_s": 20.0}, 400.0, Verdict.OWN_MET),
    ("capacity", "goodput_mbps", {"discipline": "pie"}, 20.0, Verdict.OWN_IN_SHAPE),
    ("mix", "call_ms", {"discipline": "red"}, 95.0, Verdict.OWN_NOT),
    ("mix", "call_ms", {"discipline": "fq_codel"}, 15.0, Verdict.OWN_IN_SHAPE),
    ("mix", "web_s", {"discipline": "step"}, 9.5, Verdict.OWN_NOT),
]


def rows(name: str) -> list[Measured]:
    """Three seeds of the whole grid, as they are ideally."""
    return [
        {"world": "sim", "seed": seed, **cell.factors, **IDEAL[name](dict(cell.factors))}
        for cell in built(name).claim.grid.cells(Size.FULL)
        for seed in (1, 2, 3)
    ]


def judged(name: str, made: list[Measured]) -> Finding:
    checks = built(name).claim.judge(Data(pl.DataFrame(made, infer_schema_length=None), pl.DataFrame()))
    return Finding("sim", checks)


def test_every_claim_is_listed_with_ideal() -> None:
    listed = {one.id for one in catalogue.listed() if one.paper == "rfc7928"}
    assert listed == {one.id for one in CLAIMS}
    assert {one.name for one in CLAIMS} == set(IDEAL)


@pytest.mark.parametrize("name", IDEAL)
def test_ideal_expected_results_are_met(name: str) -> None:
    finding = judged(name, rows(name))
    assert judging.mixed(finding, 3) == []
    assert finding.verdict is Verdict.OWN_MET, finding.reason


@pytest.mark.parametrize(("name", "column", "where", "value", "best"), WRONG)
def test_a_judge_does_not_pass(name: str, column: str, where: Measured, value: float, best: Verdict) -> None:
    made = rows(name)
    hit = [row for row in made if all(row[factor] == given for factor, given in where.items())]
    assert hit
    for row in hit:
        row[column] = value
    assert judged(name, made).verdict is best


def test_every_discipline_is_beside_a_fifo() -> None:
    known = {one["name"] for one in fp.queues()}
    assert set(_bench.QUEUES) == known
    for one in CLAIMS:
        tested = set(one.claim.grid.factors["discipline"])
        assert tested >= set(_bench.MANAGED)
        assert _bench.FIFO in tested or one.name == "ecn"  # A FIFO never marks.


def test_ellipse_is_one_sigma() -> None:
    # The covariance of these points, divided by their count, is [[2, 1], [1, 2]] about (5, 7).
    half = math.sqrt(3)
    points = [(5 + half, 7 + half), (5 - half, 7 - half), (6.0, 6.0), (4.0, 8.0)]
    found = _bench.ellipse(points, corners=360)
    # On the contour, the Mahalanobis distance is 1: (2 dx² - 2 dx dy + 2 dy²) / 3.
    for x, y in found:
        dx, dy = x - 5, y - 7
        assert (2 * dx * dx - 2 * dx * dy + 2 * dy * dy) / 3 == pytest.approx(1)
    assert max(x for x, _ in found) == pytest.approx(5 + math.sqrt(2), rel=1e-4)
    assert _bench.ellipse(points[:2]) == []
    assert {round(y, 9) for _, y in _bench.ellipse([(1.0, 2.0), (2.0, 2.0), (3.0, 2.0)])} == {2.0}


def test_congestion_levels_match_rfc() -> None:
    from fullpipe_studies.papers.rfc7928 import load

    # S is 83.3 packets of BDP and as many of buffer.
    assert load.FLOWS == {"mild": 6, "medium": 14, "heavy": 19}


def draw() -> Any:
    spec = importlib.util.spec_from_file_location("draw", PAGE.parent / "queues" / "draw.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_shows_pictures_disciplines_and_settings() -> None:
    text = PAGE.read_text()
    pages = text + (PAGE.parent.parent / "how-to" / "controllers.md").read_text().replace("../reference/", "")
    shown = set(re.findall(r"\]\((queues/[^)]*\.png)\)", pages))
    drawings = draw().DRAWINGS
    assert shown == {f"queues/{name}.png" for name in drawings}
    for picture in re.findall(r"\]\(([^)]*\.png)\)", pages):
        assert (PAGE.parent / picture).is_file(), picture
    for one in fp.queues():
        assert f"## {one['name']}\n" in text and one["name"] in drawings
        section = text.partition(f"## {one['name']}\n")[2].partition("\n## ")[0]
        if one["name"] == "fq_codel":
            section += text.partition("## codel\n")[2].partition("\n## ")[0]
        assert [known["name"] for known in one["settings"] if f"`{known['name']}`" not in section] == []


@pytest.mark.parametrize("name", ["red", "dualpi2"])
def test_a_picture_is_drawn_from_runs(name: str) -> None:
    module = draw()
    chart = module.DRAWINGS[name][0](3.0)
    assert module.picture(chart)[:4] == b"\x89PNG"
