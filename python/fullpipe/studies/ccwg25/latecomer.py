"""Flows that start late.

Question: how long does a flow that starts later wait for its fair share?
Method: two flows of one controller, the second 10 s after the first, for 60 s on 100 Mbit/s, 50 ms with
buffers of 0.8 to 8 BDP, and on 1 Gbit/s, 10 ms with 1 and 8 BDP; the same on 10 Gbit/s, 10 ms for 20 s, the
second after 7 s. Shares are computed in bins of 1 s. The flows have converged once Jain's index over 5 s
stays at or above 0.95.
Prediction: convergence takes at least a hundred round trips, on every path and with every buffer. Our own
threshold at 50 ms is 10 s.
"""

import math
from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, sharing
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, number, within

_LATER_S = 10.0
_BIN_S, _WINDOW_S = 1.0, 5.0
_FAIR = 0.95
_ROUNDS, _LONG_S = 100, 10
_FIRST, _LATE = "first", "late"
_OFTEN_BDP = (1, 8)
_FASTEST_S = 20


def _lasts_s(rate_mbps: int, seconds: int) -> int:
    return _path.lasts_s(rate_mbps, seconds, _FASTEST_S)


def _document(controller: str, rate_mbps: int, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    seconds = _lasts_s(rate_mbps, seconds)
    later_s = min(_LATER_S, seconds / 3)
    return _path.document(
        [
            {"controller": controller, "label": _FIRST},
            {"controller": controller, "label": _LATE, "start": f"{later_s} s"},
        ],
        rate_mbps=rate_mbps,
        rtt_ms=_path.RTT_MS[rate_mbps],
        buffer=f"{buffer_bdp} bdp",
        seconds=seconds,
        jitter_us=_path.NATURAL_US,
        interval_ms=50,
    )


def _is_run(rate_mbps: int, buffer_bdp: float, **_others: Any) -> bool:
    return rate_mbps == _path.SLOW or buffer_bdp in _OFTEN_BDP


def _jain(first: float, late: float) -> float:
    return sharing.jain((first, late)) or 0.0


def _measure(trial: Trial) -> Row:
    seconds = _lasts_s(trial.factors["rate_mbps"], trial.factors["seconds"])
    later_s = min(_LATER_S, seconds / 3)
    by_flow = sharing.binned(trial.run, _BIN_S, seconds).pivot("flow", index="time_s", values="mbps")
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
    seconds = _lasts_s(trial.factors["rate_mbps"], trial.factors["seconds"])
    return sharing.binned(trial.run, _BIN_S, seconds)


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        frame = part.series
        if "flow" in frame.columns:
            deepest = pl.col("buffer_bdp") == pl.col("buffer_bdp").max()
            frame = frame.filter((pl.col("rate_mbps") == _path.SLOW) & deepest)
        x = alt.X("time_s:Q", title="time, s")
        y = alt.Y("mbps:Q", title="goodput, Mbit/s")
        titles = {name: name for name in _path.CONTROLLERS}
        shown = _draw.panels(
            frame, "controller", titles, lambda one: _draw.lines(one, x, y, "flow"), columns=len(titles)
        )
        waits = _draw.means(
            part,
            alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2)),
            "converge_s",
            "wait for fair shares, s",
            ["controller", "rate_mbps", "buffer_bdp"],
            "rate_mbps",
            _path.TITLES,
            columns=3,
        )
        return alt.vconcat(shown, waits, spacing=24).resolve_scale(
            color="independent", strokeDash="independent"
        )

    return charts.worlds(
        data,
        panel,
        "A flow that starts late",
        "above: one run on 100 Mbit/s, 50 ms with the deepest buffer, goodput per second",
    )


def _judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.VARIANTS:
        for rate in _path.rates_of(data):
            for buffer in sorted({*data.values("buffer_bdp", rate_mbps=rate)}):
                waits = data.values("converge_s", controller=name, rate_mbps=rate, buffer_bdp=buffer)
                where = f"{_path.TITLES[rate]}, {buffer:g} BDP"
                checks.append(
                    within(
                        f"{name}: time until shares stay fair, {where} (direction)",
                        waits,
                        paper="long convergence time",
                        least=_ROUNDS * _path.RTT_MS[rate] / 1e3,
                        unit="s",
                        shape=True,
                    )
                )
                if rate == _path.SLOW:
                    checks.append(
                        within(
                            f"{name}: time until shares stay fair, {where}",
                            waits,
                            paper="long convergence time",
                            least=_LONG_S,
                            unit="s",
                        )
                    )
    return checks


def _explain(data: Data) -> list[str]:
    said = []
    for name in _path.CONTROLLERS:
        for rate in _path.rates_of(data):
            for buffer in _OFTEN_BDP:
                where = {"controller": name, "rate_mbps": rate, "buffer_bdp": buffer}
                share, waits = (data.mean(column, **where) for column in ("early_share", "converge_s"))
                if not math.isnan(share):
                    said.append(
                        f"{name} at {_path.TITLES[rate]}, {buffer} BDP: in its first {_WINDOW_S:g} s the "
                        f"later flow gets {number(100 * share)} % of the goodput. Shares stay fair from "
                        f"{number(waits)} s after its start."
                    )
    return said


CLAIM = Claim(
    source="Latecomer Disadvantage",
    says="Long convergence time for flows that start later.",
    worlds=("sim",),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "buffer_bdp": _path.BUFFERS_BDP,
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW,)},
        tiny={"buffer_bdp": (1,), "seconds": (12,)},
        document=_document,
        only=_is_run,
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
