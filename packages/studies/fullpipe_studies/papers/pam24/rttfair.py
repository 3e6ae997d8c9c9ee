"""BBRv3 is biased towards long RTTs, whoever starts first.

Question: how do two BBRv3 flows with different RTTs share a bottleneck, and does their order matter?
Method: one flow with 20 ms, one with 100 ms, on 100 Mbit/s with buffers of 1 to 8 BDP (of 50 ms); either
starts 10 s after the other. Shares in the last 60 s of 120.
Prediction: the flow with 100 ms gets more in both orders.

The abstract states the bias and that order is irrelevant. Ours: all of the set-up; over a half
(direction) for each order and buffer, and over 60 % on average. Judged are Google's BBRv3, which the paper
measured, and the draft's beside it.
"""

import itertools
from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt
from fullpipe_studies.papers.pam24 import _path

_SHORT_MS, _LONG_MS = 20, 100
_LATER_S = 10
_SAID = Statement("biased towards long-RTT flows ... regardless of which flow starts first")
# A buffer of one BDP of the other claims, in kilobytes.
_BDP_KB = 625


def _document(controller: str, first: str, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    later = f"{min(_LATER_S, seconds / 4)} s"
    starts = {name: "0 s" if name == first else later for name in ("short", "long")}
    document = _path.document(
        [
            {"controller": controller, "label": "short", "start": starts["short"]},
            {"controller": controller, "label": "long", "start": starts["long"], "rtt": f"{_LONG_MS} ms"},
        ],
        buffer_bdp,
        seconds,
        _SHORT_MS,
    )
    document["path"]["buffer"] = f"{buffer_bdp * _BDP_KB} KB"
    return document


def measure(trial: Trial) -> Row:
    return {"long_share": sharing.share(sharing.rates(trial.run, trial.factors["seconds"] / 2), "long")}


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["controller", "first", "buffer_bdp"], "long_share")

    def panel(part: Data) -> Any:
        def draw(ours: pl.DataFrame, _first: Any) -> Any:
            x = alt.X("buffer_bdp:Q", title="buffer, BDP of 50 ms", scale=alt.Scale(type="log", base=2))
            points = charts.points(ours, x, "share of 100 ms", charts.controllers(ours), domain=[0, 1])
            return alt.layer(layers.level(0.5), points)

        titles = {"short": "20 ms starts first", "long": "100 ms starts first"}
        return layers.panels(layers.of(frame, part), "first", titles, draw)

    return charts.worlds(data, panel, "RTTs of 20 and 100 ms", "100 Mbit/s; dashed: a fair share")


def judge(data: Data) -> list[Check]:
    checks = []
    buffers = sorted(data.runs["buffer_bdp"].unique().to_list())
    for name, first in itertools.product(_path.VARIANTS, ("short", "long")):
        named = f"{name}: share with {_LONG_MS} ms, the {first} RTT first"
        checks += [
            _SAID.shape(
                f"{named}, {buffer_bdp:g} BDP (direction)",
                data.values("long_share", controller=name, first=first, buffer_bdp=buffer_bdp),
                least=0.5,
            )
            for buffer_bdp in buffers
        ]
        over_all = data.values("long_share", controller=name, first=first)
        checks.append(_SAID.within(f"{named}, over all buffers", over_all, least=0.6))
    return checks


def explain(data: Data) -> list[str]:
    return _path.reported(data, "long_share", "the flow with 100 ms")


CLAIM = Claim(
    source="abstract",
    says="We note that BBRv3 (similar to BBRv2) is biased towards long-RTT flows; they receive a higher "
    "bandwidth than a competing short-RTT flow, regardless of which flow starts first.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": (*_path.VARIANTS, "bbr1", "cubic"),
            "first": ("short", "long"),
            "buffer_bdp": _path.BUFFERS_BDP,
            "seconds": (120,),
        },
        quick={"buffer_bdp": (1, 8)},
        tiny={"controller": _path.VARIANTS, "buffer_bdp": (1,), "seconds": (6,)},
        in_wall_time={"controller": _path.VARIANTS, "buffer_bdp": (1, 8)},
        document=_document,
    ),
    look_at="Is the line of BBRv3 above the dashed one on both sides?",
    about=_path.ABOUT,
    # BBRv1 is no control: the abstract says "similar to BBRv2", and BBRv1 favours long RTTs, too.
    wrong=("vegas", "cubic", "reno"),
    seeds=20,
)
