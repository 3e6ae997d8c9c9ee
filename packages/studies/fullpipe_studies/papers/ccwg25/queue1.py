"""The queue that one flow builds.

Question: how long is the queue that a single flow builds, and does natural jitter lengthen it?
Method: one flow for 60 s on 100 Mbit/s, 50 ms and on 1 Gbit/s, 10 ms (20 s on 10 Gbit/s, 10 ms) with a
buffer of 8 BDP, with and without the natural jitter of the hosts. The queue is measured from 5 s on.
Prediction: BBRv3 builds a noticeable queue. It is about one RTTmin with natural jitter, and longer at higher
speeds and smaller RTTmin. CUBIC fills far more of the buffer.

"Around 1 RTTmin" is read as the median over time, as on the slide of two flows, which gives a share of time.
If the slides mean the peaks, it is the 99th percentile, which is checked too.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_BUFFER = "8 bdp"


def _document(controller: str, rate_mbps: int, jitter_us: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller}],
        rate_mbps=rate_mbps,
        buffer=_BUFFER,
        seconds=_path.lasts_s(rate_mbps, seconds),
        jitter_us=jitter_us,
        flow_series=False,
    )


def measure(trial: Trial) -> Row:
    after_s = min(_path.STEADY_S, trial.factors["seconds"] / 2)
    frame = _path.queue(trial, _path.RTT_MS[trial.factors["rate_mbps"]], after_s)
    return {
        "median_rtts": take.median(frame, "rtts"),
        "mean_rtts": take.mean(frame, "rtts"),
        "p99_rtts": take.quantile(frame, "rtts", 0.99),
        "goodput_mbps": take.goodput_mbps(trial.run),
    }


series = _path.drawn


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        frame = part.series
        if "rtts" in frame.columns:
            frame = frame.filter(pl.col("jitter_us") > 0)
        return _draw.queues(frame, "rate_mbps", _path.TITLES, 1.0)

    return charts.worlds(
        data,
        panel,
        "The queue that one flow builds",
        "8 BDP of buffer, natural jitter; dashed: the slides’ 1 RTTmin",
    )


def judge(data: Data) -> list[Check]:
    def at(
        column: str, controller: str, rate: int = _path.SLOW, jitter: int = _path.NATURAL_US
    ) -> list[float]:
        return data.values(column, controller=controller, rate_mbps=rate, jitter_us=jitter)

    checks = []
    rates = _path.rates_of(data)
    for name in _path.VARIANTS:
        checks += [
            Statement("BBR creates noticeable self-inflicted queuing delay").shape(
                f"{name}: 99th percentile of its queue (noticeable)",
                at("p99_rtts", name),
                least=0.1,
                unit="RTTmin",
            ),
            Statement("BBR avoids to fill deep buffers").more(
                f"CUBIC's median queue divided by that of {name}",
                at("median_rtts", "cubic"),
                at("median_rtts", name),
                least=2,
            ),
            Statement("around 1 RTTmin").shape(
                f"{name}: median queue at 100 Mbit/s, 50 ms (noticeable)",
                at("median_rtts", name),
                least=0.25,
                unit="RTTmin",
            ),
            Statement("around 1 RTTmin").within(
                f"{name}: median queue at 100 Mbit/s, 50 ms",
                at("median_rtts", name),
                least=0.5,
                most=1.5,
                unit="RTTmin",
            ),
            Statement("around 1 RTTmin").within(
                f"{name}: 99th percentile of its queue at 100 Mbit/s, 50 ms",
                at("p99_rtts", name),
                least=0.5,
                most=1.5,
                unit="RTTmin",
            ),
            Statement("bandwidth overestimation due to natural jitter").more(
                f"{name}: median queue with jitter divided by that without",
                at("median_rtts", name),
                at("median_rtts", name, jitter=0),
            ),
            *(
                Statement("it gets worse at higher speeds and smaller RTTmin values").more(
                    f"{name}: median queue at {_path.TITLES[rate]} divided by that at 100 Mbit/s, 50 ms",
                    at("median_rtts", name, rate),
                    at("median_rtts", name),
                )
                for rate in (_path.FAST, _path.FASTEST)
                if rate in rates
            ),
        ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.BBRS:
        for rate in _path.rates_of(data):
            for jitter in (0, _path.NATURAL_US):
                where = {"controller": name, "rate_mbps": rate, "jitter_us": jitter}
                middle, average, high = data.means("median_rtts", "mean_rtts", "p99_rtts", **where)
                if math.isnan(middle):
                    continue
                facts.append(
                    f"{name} at {_path.TITLES[rate]}, {'natural' if jitter else 'no'} jitter: median queue "
                    f"{number(middle)} RTTmin, mean {number(average)}, 99th percentile {number(high)}."
                )
    return facts


CLAIM = Claim(
    source="Self-Induced Queuing Delay; backup slide 14",
    says="BBR creates noticeable self-inflicted queuing delay, around 1 RTTmin for a single BBR flow. It "
    "gets worse at higher speeds and smaller RTTmin values.",
    worlds=("sim", "kernel", "quic"),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "jitter_us": (0, _path.NATURAL_US),
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW, _path.FAST), "seconds": (30,)},
        tiny={"rate_mbps": (_path.SLOW,), "seconds": (6,)},
        in_wall_time={**_path.IN_WALL_TIME, "controller": (*_path.VARIANTS, "cubic")},
        document=_document,
    ),
    look_at="Look for the peaks of each BBR above its baseline, and for how far below CUBIC both are.",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
