"""One long flow of a controller alone on the bottleneck, as sections 5.1.1 and 5.2 have it."""

from typing import Any

import polars as pl

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

_NEAR_MS = 20


def claim(controller: str, source: str, says: str, look_at: str) -> Claim:
    """The claim about that controller."""

    def document(discipline: str, rtt_ms: int, seconds: int) -> dict[str, Any]:
        flows = [{"controller": controller, "label": "flow"}]
        return _bench.document(flows, discipline, seconds, rtt_ms=rtt_ms)

    def measure(trial: Trial) -> Row:
        return {**_bench.point(trial, "flow", rtt_ms=trial.factors["rtt_ms"]), **_bench.waits(trial)}

    def figure(data: Data) -> "alt.TopLevelMixin":
        def panel(part: Data) -> Any:
            made = []
            for rtt in sorted(set(part.runs["rtt_ms"].to_list())):
                made.append(_bench.ellipses(part.runs.filter(pl.col("rtt_ms") == rtt), f"RTT {rtt} ms"))
                if "share" in part.series.columns:
                    series = part.series.filter(pl.col("rtt_ms") == rtt)
                    made.append(_bench.distribution(series, f"RTT {rtt} ms: the queue's delay in one run"))
            return _bench.panels(*made)

        title = f"One {controller} flow"
        return charts.worlds(data, panel, title, "10 Mbit/s, a buffer of 1 BDP; 1-sigma ellipses over runs")

    def judge(data: Data) -> list[Check]:
        return _bench.better(data, f"RTT {_bench.RTT_MS} ms", rtt_ms=_bench.RTT_MS)

    return Claim(
        source=source,
        says=says,
        worlds=("sim",),
        grid=Grid(
            factors={
                "discipline": _bench.DISCIPLINES,
                "rtt_ms": (_NEAR_MS, _bench.RTT_MS),
                "seconds": (60,),
            },
            quick={"rtt_ms": (_bench.RTT_MS,)},
            tiny={"seconds": (6,)},
            document=document,
        ),
        measure=measure,
        series=_bench.cdf,
        figure=figure,
        judge=lambda data: own(*judge(data)),
        look_at=look_at,
        subject=_bench.MANAGED,
        wrong=_bench.UNMANAGED,
        seeds=_bench.SEEDS,
        quick_seeds=_bench.QUICK_SEEDS,
    )
