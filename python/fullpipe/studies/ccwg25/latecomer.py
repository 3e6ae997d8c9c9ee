"""Flows that start late.

Question: how long does a flow that starts later wait for its fair share?
Method: two flows of one controller for 60 s on 100 Mbit/s, 50 ms with buffers of 1 to 8 BDP, the second 10
s after the first. Shares are computed in bins of 1 s. The flows have converged once Jain's index over 5 s
stays at or above 0.95.
Prediction: convergence takes many seconds, hundreds of round trips.
"""

import math
from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, number, within

_RATE_MBPS, _RTT_MS = 100, 50
_LATER_S = 10.0
_BIN_S, _WINDOW_S = 1.0, 5.0
_FAIR = 0.95
_FIRST, _LATE = "first", "late"
_BUFFERS_BDP = (1, 2, 8)


def _document(controller: str, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    later_s = min(_LATER_S, seconds / 3)
    return _path.document(
        [
            {"controller": controller, "label": _FIRST},
            {"controller": controller, "label": _LATE, "start": f"{later_s} s"},
        ],
        rate_mbps=_RATE_MBPS,
        rtt_ms=_RTT_MS,
        buffer=f"{buffer_bdp} bdp",
        seconds=seconds,
        jitter_us=_path.NATURAL_US,
        interval_ms=20,
    )


def _jain(first: float, late: float) -> float:
    squares = first * first + late * late
    return (first + late) ** 2 / 2 / squares if squares else 0.0


def _measure(trial: Trial) -> Row:
    seconds = trial.factors["seconds"]
    later_s = min(_LATER_S, seconds / 3)
    by_flow = _path.rates(trial, _BIN_S).pivot("flow", index="time_s", values="mbps")
    if not {_FIRST, _LATE} <= set(by_flow.columns):
        return dict.fromkeys(("converge_s", "early_share", "last_jain"))
    window = round(_WINDOW_S / _BIN_S)
    shares = (
        by_flow.sort("time_s")
        .select(
            (pl.col("time_s") - window * _BIN_S).alias("from_s"),
            *(pl.col(name).fill_null(0.0).rolling_mean(window) for name in (_FIRST, _LATE)),
        )
        .filter((pl.col("from_s") >= later_s) & pl.col(_LATE).is_not_null())
        .rows()
    )
    if not shares:
        return dict.fromkeys(("converge_s", "early_share", "last_jain"))
    unfair = [from_s for from_s, first, late in shares if _jain(first, late) < _FAIR]
    _, first, late = shares[0]
    return {
        # Flows that never converge count until the end of the run; flows that are fair at once count as 0.
        "converge_s": unfair[-1] + _BIN_S - later_s if unfair else 0.0,
        "early_share": late / (first + late) if first + late else None,
        "last_jain": _jain(*shares[-1][1:]),
    }


def _series(trial: Trial) -> pl.DataFrame:
    return _path.rates(trial, _BIN_S)


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        frame = part.series
        if "flow" in frame.columns:
            frame = frame.filter(pl.col("buffer_bdp") == frame["buffer_bdp"].max())
        x = alt.X("time_s:Q", title="time, s")
        y = alt.Y("mbps:Q", title="goodput, Mbit/s")
        titles = {name: name for name in _path.CONTROLLERS}
        return _draw.panels(frame, "controller", titles, lambda one: _draw.lines(one, x, y, "flow"))

    return charts.worlds(
        data,
        panel,
        "A flow that starts late",
        "100 Mbit/s, 50 ms, the deepest buffer; goodput per second",
    )


def _judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.BBRS:
        waits = data.values("converge_s", controller=name)
        checks += [
            within(
                f"{name}: time until shares stay fair, over all buffers (direction)",
                waits,
                paper="long convergence time",
                least=100 * _RTT_MS / 1e3,
                unit="s",
                shape=True,
            ),
            within(
                f"{name}: time until shares stay fair, over all buffers",
                waits,
                paper="long convergence time",
                least=10,
                unit="s",
            ),
        ]
    return checks


def _explain(data: Data) -> list[str]:
    said = []
    for name in data.runs["controller"].unique(maintain_order=True).to_list():
        share, waits = (data.mean(column, controller=name) for column in ("early_share", "converge_s"))
        if not math.isnan(share):
            said.append(
                f"{name}: in its first {_WINDOW_S:g} s the later flow gets {number(100 * share)} % of the "
                f"goodput. Shares stay fair from {number(waits)} s after its start."
            )
    return said


CLAIM = Claim(
    source="Latecomer Disadvantage",
    says="Long convergence time for flows that start later.",
    worlds=("sim",),
    grid=Grid(
        factors={"controller": _path.CONTROLLERS, "buffer_bdp": _BUFFERS_BDP, "seconds": (60,)},
        tiny={"buffer_bdp": (1,), "seconds": (12,)},
        document=_document,
    ),
    measure=_measure,
    series=_series,
    figure=_figure,
    judge=_judge,
    explain=_explain,
    look_at="When do the two curves meet, and do they stay together?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
