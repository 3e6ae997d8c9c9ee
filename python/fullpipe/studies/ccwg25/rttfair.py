"""Fairness between flows with different RTTs.

Question: which of two flows with different RTTmin gets more of a shared bottleneck?
Method: a flow with an RTT of 10 ms competes with one of 20, 50 or 100 ms and the same controller for 60 s
on 100 Mbit/s, with buffers of 1 to 8 BDP of the longer RTT. Shares are measured from 10 s on.
Prediction: with BBR the flow with the longer RTTmin gets more than its fair share, and more the longer its
RTTmin is. Our own threshold is 1.5 times the other flow's share.
"""

from typing import Any

import altair as alt

from fullpipe.studies import charts, take
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_RATE_MBPS, _SHORT_MS = 100, 10
_LONG_MS = (20, 50, 100)
_BUFFERS_BDP = (1, 2, 8)
_AFTER_S = 10.0
_LONG = "long"


def _document(controller: str, long_ms: int, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    buffer = round(buffer_bdp * take.bdp_bytes(_RATE_MBPS, long_ms))
    return _path.document(
        [
            {"controller": controller, "label": "short"},
            {"controller": controller, "label": _LONG, "rtt": f"{long_ms} ms"},
        ],
        rate_mbps=_RATE_MBPS,
        rtt_ms=_SHORT_MS,
        buffer=f"{buffer} B",
        seconds=seconds,
        jitter_us=_path.NATURAL_US,
        interval_ms=50,
    )


def _measure(trial: Trial) -> Row:
    return {"long_share": _path.share(trial, _LONG, min(_AFTER_S, trial.factors["seconds"] / 2))}


def _figure(data: Data) -> alt.TopLevelMixin:
    def panel(part: Data) -> Any:
        x = alt.X("long_ms:Q", title="longer RTTmin, ms")
        titles = {one: f"{one:g} BDP of buffer" for one in _BUFFERS_BDP}
        by = ["controller", "buffer_bdp", "long_ms"]
        return _draw.means(
            part,
            x,
            "long_share",
            "share of the flow with the longer RTTmin",
            by,
            "buffer_bdp",
            titles,
            domain=[0, 1],
        )

    return charts.worlds(
        data, panel, "The share of the flow with the longer RTTmin", "100 Mbit/s; the other flow has 10 ms"
    )


def _judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.BBRS:
        every = data.values("long_share", controller=name)
        least, most = (
            data.values("long_share", controller=name, long_ms=one) for one in (_LONG_MS[0], _LONG_MS[-1])
        )
        checks += [
            within(
                f"{name}: share of the flow with the longer RTTmin, over all paths (direction)",
                every,
                paper="large RTTmin flows prevail",
                least=0.5,
                shape=True,
            ),
            within(
                f"{name}: share of the flow with the longer RTTmin, over all paths",
                every,
                paper="large RTTmin flows prevail",
                least=0.6,
            ),
            more(
                f"{name}: share at {_LONG_MS[-1]} ms divided by that at {_LONG_MS[0]} ms",
                most,
                least,
                paper="RTT unfairness",
            ),
        ]
    return checks


CLAIM = Claim(
    source="Conclusions",
    says="We also confirmed other known fairness issues: RTT unfairness (large RTTmin flows prevail).",
    worlds=("sim",),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "long_ms": _LONG_MS,
            "buffer_bdp": _BUFFERS_BDP,
            "seconds": (60,),
        },
        tiny={"long_ms": (_LONG_MS[0], _LONG_MS[-1]), "buffer_bdp": (2,), "seconds": (4,)},
        document=_document,
    ),
    measure=_measure,
    figure=_figure,
    judge=_judge,
    look_at="Which controllers are above one half, and which below?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
