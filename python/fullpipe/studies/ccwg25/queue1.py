"""The queue that one flow builds.

Question: how long is the queue that a single flow builds, and does natural jitter lengthen it?
Method: one flow for 60 s on 100 Mbit/s, 50 ms and on 1 Gbit/s, 10 ms (10 s on 10 Gbit/s, 10 ms) with a
buffer of 8 BDP, with and without the natural jitter of the hosts. The queue is measured from 5 s on.
Prediction: BBR builds a noticeable queue. BBRv3's is about one RTTmin with natural jitter, and longer at 1
Gbit/s, 10 ms. CUBIC fills far more of the buffer.
"""

from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_SLOW, _FAST = 100, 1000
_BUFFER = "8 bdp"
# At 10 Gbit/s, 10 s have as many packets as 1000 s at 100 Mbit/s.
_SECONDS = {10_000: 10}


def _document(controller: str, rate_mbps: int, jitter_us: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller}],
        rate_mbps=rate_mbps,
        rtt_ms=_path.RTT_MS[rate_mbps],
        buffer=_BUFFER,
        seconds=min(seconds, _SECONDS.get(rate_mbps, seconds)),
        jitter_us=jitter_us,
    )


def _measure(trial: Trial) -> Row:
    after_s = min(_path.STEADY_S, trial.factors["seconds"] / 2)
    frame = _path.queue(trial, _path.RTT_MS[trial.factors["rate_mbps"]], after_s)
    return {
        "median_rtts": take.median(frame, "rtts"),
        "mean_rtts": take.mean(frame, "rtts"),
        "p99_rtts": take.quantile(frame, "rtts", 0.99),
        "goodput_mbps": take.goodput_mbps(trial.run),
    }


def _series(trial: Trial) -> pl.DataFrame:
    return _path.drawn(trial, _path.RTT_MS[trial.factors["rate_mbps"]])


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        frame = part.series
        if "rtts" in frame.columns:
            frame = frame.filter(pl.col("jitter_us") > 0)
        x = alt.X("time_s:Q", title="time, s", scale=alt.Scale(zero=False, nice=False))
        y = alt.Y("rtts:Q", title="queueing delay, RTTmin")
        titles = {
            _SLOW: "100 Mbit/s, 50 ms",
            _FAST: "1 Gbit/s, 10 ms",
            10_000: "10 Gbit/s, 10 ms",
        }
        return _draw.panels(frame, "rate_mbps", titles, lambda one: _draw.lines(one, x, y, "controller", 1.0))

    return charts.worlds(
        data, panel, "The queue that one flow builds", "8 BDP of buffer, natural jitter; dashed: one RTTmin"
    )


def _judge(data: Data) -> list[Check]:
    def at(column: str, controller: str, rate: int = _SLOW, jitter: int = _path.NATURAL_US) -> list[float]:
        return data.values(column, controller=controller, rate_mbps=rate, jitter_us=jitter)

    checks = []
    for name in _path.BBRS:
        checks += [
            within(
                f"{name}: 99th percentile of its queue",
                at("p99_rtts", name),
                paper="BBR creates noticeable self-inflicted queuing delay",
                least=0.1,
                unit="RTTmin",
                shape=True,
            ),
            more(
                f"CUBIC's median queue divided by that of {name}",
                at("median_rtts", "cubic"),
                at("median_rtts", name),
                paper="BBR avoids to fill deep buffers",
                least=2,
            ),
        ]
    if _path.ABOUT in _path.BBRS:
        checks += [
            within(
                "BBRv3: median queue at 100 Mbit/s, 50 ms (noticeable)",
                at("median_rtts", _path.ABOUT),
                paper="around 1 RTTmin",
                least=0.25,
                unit="RTTmin",
                shape=True,
            ),
            within(
                "BBRv3: median queue at 100 Mbit/s, 50 ms",
                at("median_rtts", _path.ABOUT),
                paper="around 1 RTTmin",
                least=0.5,
                most=1.5,
                unit="RTTmin",
            ),
            more(
                "BBRv3: median queue with jitter divided by that without",
                at("median_rtts", _path.ABOUT),
                at("median_rtts", _path.ABOUT, jitter=0),
                paper="bandwidth overestimation due to natural jitter",
            ),
            more(
                "BBRv3: median queue at 1 Gbit/s, 10 ms divided by that at 100 Mbit/s, 50 ms",
                at("median_rtts", _path.ABOUT, _FAST),
                at("median_rtts", _path.ABOUT),
                paper="it gets worse at higher speeds and smaller RTTmin values",
            ),
        ]
    return checks


CLAIM = Claim(
    source="Self-Induced Queuing Delay; backup slide 14",
    says="BBR creates noticeable self-inflicted queuing delay, around 1 RTTmin for a single BBR flow. It "
    "gets worse at higher speeds and smaller RTTmin values.",
    worlds=("sim",),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "jitter_us": (0, _path.NATURAL_US),
            "seconds": (60,),
        },
        quick={"rate_mbps": (_SLOW, _FAST), "seconds": (30,)},
        tiny={"rate_mbps": (_SLOW,), "seconds": (6,)},
        document=_document,
    ),
    measure=_measure,
    series=_series,
    figure=_figure,
    judge=_judge,
    look_at="Look for the peaks of each BBR above its baseline, and for how far below CUBIC both are.",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
