"""The queue that several flows build.

Question: how long is the queue of several flows of one controller, and does each further flow lengthen it?
Method: 1 to 16 flows of one controller for 60 s on 100 Mbit/s, 50 ms with buffers of 0.8 to 8 BDP and the
natural jitter of the hosts. The queue is measured from 10 s on, in particular the share of time in which it
is longer than one RTTmin, as on the slides.
Prediction: two or more BBR flows keep a queue of around one RTTmin for over half of the time where the
buffer is large enough, and a slightly longer one with each further flow. CUBIC fills any buffer.

The checks of the share of time and of each step in the number of flows were added after results were seen:
before, only the median and the two ends were checked.
"""

from itertools import pairwise
from typing import Any

import altair as alt
import polars as pl

from fullpipe.studies import charts, take
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_RATE_MBPS, _RTT_MS = 100, 50
_FEW, _MANY, _DEEP = 2, 16, 8
# All flows have started, and a first ProbeRTT has let them see the delay of the empty path.
_AFTER_S = 10.0


def _document(controller: str, flows: int, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller, "count": flows, "label": "flow"}],
        rate_mbps=_RATE_MBPS,
        rtt_ms=_RTT_MS,
        buffer=f"{buffer_bdp} bdp",
        seconds=seconds,
        jitter_us=_path.NATURAL_US,
        interval_ms=20,
    )


def _measure(trial: Trial) -> Row:
    frame = _path.queue(trial, _RTT_MS, min(_AFTER_S, trial.factors["seconds"] / 2))
    return {
        "median_rtts": take.median(frame, "rtts"),
        "mean_rtts": take.mean(frame, "rtts"),
        "over_one": _path.part(frame, pl.col("rtts") > 1),
    }


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        x = alt.X("flows:Q", title="flows", scale=alt.Scale(type="log", base=2))
        titles = {one: f"{one:g} BDP of buffer" for one in _path.BUFFERS_BDP}
        by = ["controller", "buffer_bdp", "flows"]
        return _draw.means(part, x, "median_rtts", "median queue, RTTmin", by, "buffer_bdp", titles)

    return charts.worlds(
        data, panel, "The queue that several flows build", "100 Mbit/s, 50 ms, natural jitter"
    )


def _judge(data: Data) -> list[Check]:
    def at(column: str, controller: str, flows: int) -> list[float]:
        return data.values(column, controller=controller, flows=flows, buffer_bdp=_DEEP)

    counts = sorted({round(count) for count in data.values("flows")} - {1})
    checks = []
    for name in _path.BBRS:
        checks += [
            *(
                within(
                    f"{name}: time with a queue longer than 1 RTTmin, {count} flows, 8 BDP",
                    at("over_one", name, count),
                    paper=">1 RTTmin more than 50% of the time for multiple flows",
                    least=0.5,
                    unit="of the time",
                    shape=True,
                )
                for count in counts
            ),
            *(
                more(
                    f"{name}: mean queue of {count} flows divided by that of {fewer}, 8 BDP",
                    at("mean_rtts", name, count),
                    at("mean_rtts", name, fewer),
                    paper="gets a bit worse with increasing number of flows",
                )
                for fewer, count in pairwise(counts)
            ),
            within(
                f"{name}: median queue of 2 flows, 8 BDP (noticeable)",
                at("median_rtts", name, _FEW),
                paper="around 1 RTTmin for over half of the time (present since BBRv1)",
                least=0.5,
                unit="RTTmin",
                shape=True,
            ),
            within(
                f"{name}: median queue of 2 flows, 8 BDP",
                at("median_rtts", name, _FEW),
                paper="around 1 RTTmin for over half of the time (present since BBRv1)",
                least=0.75,
                most=1.5,
                unit="RTTmin",
            ),
            within(
                f"{name}: mean queue of 16 flows minus that of 2, 8 BDP",
                [
                    more_ - few
                    for more_, few in _pairs(at("mean_rtts", name, _MANY), at("mean_rtts", name, _FEW))
                ],
                paper="a bit worse",
                least=0,
                most=1,
                unit="RTTmin",
            ),
            more(
                f"CUBIC's median queue of 2 flows divided by that of {name}, 8 BDP",
                at("median_rtts", "cubic", _FEW),
                at("median_rtts", name, _FEW),
                paper="BBR avoids completely filling deep buffers",
            ),
        ]
    return checks


def _pairs(many: list[float], few: list[float]) -> list[tuple[float, float]]:
    return list(zip(many, few, strict=True)) if len(many) == len(few) else []


CLAIM = Claim(
    source="Self-induced Queuing Delay: Two Flows, Multiple Flows",
    says="Queuing Delay around 1 RTTmin for >50% of the time for larger buffers. Cause: overestimation of "
    "available bandwidth in ProbeBW_UP (present since BBRv1). Gets a bit worse with increasing number of "
    "flows.",
    worlds=("sim",),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "flows": (1, _FEW, 4, 8, _MANY),
            "buffer_bdp": _path.BUFFERS_BDP,
            "seconds": (60,),
        },
        quick={"flows": (1, _FEW, _MANY), "buffer_bdp": (1, _DEEP)},
        tiny={"flows": (_FEW, _MANY), "buffer_bdp": (_DEEP,), "seconds": (4,)},
        document=_document,
    ),
    measure=_measure,
    figure=_figure,
    judge=_judge,
    look_at="At which level do BBR's curves stay in deep buffers, and how steep are they?",
    about=_path.ABOUT,
    seeds=10,
    quick_seeds=_path.QUICK_SEEDS,
)
