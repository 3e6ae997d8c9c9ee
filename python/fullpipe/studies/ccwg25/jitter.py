"""Sensitivity to delay jitter.

Question: how much goodput does delay jitter cost?
Method: one flow for 60 s on 100 Mbit/s, 50 ms with a buffer of 2 BDP. Behind the bottleneck, packets are
held and released together every 0 to 4 RTTmin, which delays each by up to that much and keeps their order.
Goodput is measured from 10 s on.
Prediction: less than other research predicts. According to that research BBR collapses once jitter exceeds
RTTmin, because its window is twice the BDP of the smallest RTT. We expect that most of the goodput is left
at a jitter of one RTTmin, and a quarter at four.
"""

import math
from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.ccwg25 import _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, number, within

_RATE_MBPS, _RTT_MS = 100, 50
_ONE, _MOST = 1.0, 4.0
_AFTER_S = 10.0


def _document(controller: str, jitter_rtts: float, seconds: int) -> dict[str, Any]:
    document = _path.document(
        [{"controller": controller}],
        rate_mbps=_RATE_MBPS,
        rtt_ms=_RTT_MS,
        buffer="2 bdp",
        seconds=seconds,
        interval_ms=20,
    )
    if jitter_rtts:
        document["path"]["after"] = [{"kind": "aggregate", "every": f"{jitter_rtts * _RTT_MS} ms"}]
    return document


def _measure(trial: Trial) -> Row:
    late = take.samples(trial.run, after_s=min(_AFTER_S, trial.factors["seconds"] / 2))
    rate = take.delivered_mbps(late)
    payload_bps = _RATE_MBPS * 1e6 * take.payload_share(trial)
    begun = take.samples(trial.run).filter(
        pl.col("bandwidth_bps").is_not_null() & (pl.col("phase") != "startup")
    )
    return {
        "of_rate": None if rate is None else rate * 1e6 / payload_bps,
        "estimate": take.ratio(take.mean(late, "bandwidth_bps"), payload_bps),
        "startup_s": take.least(begun, "time_s"),
        "startup_estimate": take.ratio(take.least(begun.head(1), "bandwidth_bps"), payload_bps),
    }


def _figure(data: Data) -> alt.TopLevelMixin:
    frame = charts.means(data, ["controller", "jitter_rtts"], "of_rate")

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        x = alt.X("jitter_rtts:Q", title="jitter, RTTmin")
        drawn = charts.points(
            ours, x, "goodput divided by the link’s rate", charts.controllers(ours), domain=[0, 1]
        )
        return drawn.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "Goodput against jitter", "100 Mbit/s, 50 ms, 2 BDP; jitter without reordering"
    )


def _judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.BBRS:
        none, one, most = (
            data.values("of_rate", controller=name, jitter_rtts=jitter) for jitter in (0.0, _ONE, _MOST)
        )
        checks += [
            within(
                f"{name}: goodput without jitter",
                none,
                paper="no number; claims list: from a jitter of 0 on",
                least=0.9,
                unit="of the rate",
                shape=True,
            ),
            within(
                f"{name}: goodput at a jitter of one RTTmin (direction)",
                one,
                paper="not as jitter sensitive as predicted by other research",
                least=0.5,
                unit="of the rate",
                shape=True,
            ),
            within(
                f"{name}: goodput at a jitter of one RTTmin",
                one,
                paper="not as jitter sensitive as predicted by other research",
                least=0.75,
                unit="of the rate",
            ),
            within(
                f"{name}: goodput at a jitter of 4 RTTmin",
                most,
                paper="not as jitter sensitive as predicted by other research",
                least=0.25,
                unit="of the rate",
            ),
        ]
    return checks


def _explain(data: Data) -> list[str]:
    said = []
    for name in _path.BBRS:
        after, then, later, kept = (
            data.mean(column, controller=name, jitter_rtts=_MOST)
            for column in ("startup_s", "startup_estimate", "estimate", "of_rate")
        )
        if not math.isnan(later):
            said.append(
                f"{name} at a jitter of {_MOST:g} RTTmin leaves Startup after {number(after)} s with an "
                f"estimate of {number(100 * then)} % of the rate. From {_AFTER_S:g} s on the estimate is "
                f"{number(100 * later)} %, and the flow delivers {number(100 * kept)} %."
            )
    return said


CLAIM = Claim(
    source="Conclusions: Delay-Jitter",
    says="BBR is not as jitter sensitive as predicted by other research.",
    worlds=("sim",),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "jitter_rtts": (0.0, 0.1, 0.25, 0.5, _ONE, 2.0, _MOST),
            "seconds": (60,),
        },
        quick={"jitter_rtts": (0.0, 0.5, _ONE, _MOST), "seconds": (30,)},
        tiny={"jitter_rtts": (0.0, _ONE), "seconds": (4,)},
        document=_document,
    ),
    measure=_measure,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="How slowly do the curves fall beyond one RTTmin?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
