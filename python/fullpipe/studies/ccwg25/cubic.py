"""Sharing a bottleneck with CUBIC.

Question: which of BBR and CUBIC gets more of a shared bottleneck, and how does that depend on the buffer?
Method: one flow of each for 60 s on 100 Mbit/s, 50 ms with buffers of 0.8 to 16 BDP; shares from 10 s on.
Prediction: BBR gets more than its fair share in shallow buffers, CUBIC in deep ones. Our own threshold for
BBR in shallow buffers is twice CUBIC's share.
"""

from typing import Any

import altair as alt

from fullpipe.studies import charts
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_RATE_MBPS, _RTT_MS = 100, 50
# The buffers of the slides, and a deeper one.
_BUFFERS_BDP = (*_path.BUFFERS_BDP, 16)
_SHALLOW, _DEEP = 0.8, 8
_AFTER_S = 10.0
# The slides name only the unfairness; our list of claims says in which buffers.
_SHALLOW_SAID = "unfairness to CUBIC; claims list: in shallow buffers"
_DEEP_SAID = "claims list: and the reverse in deep ones"


def _document(controller: str, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller, "label": "bbr"}, {"controller": "cubic"}],
        rate_mbps=_RATE_MBPS,
        rtt_ms=_RTT_MS,
        buffer=f"{buffer_bdp} bdp",
        seconds=seconds,
        jitter_us=_path.NATURAL_US,
        interval_ms=50,
    )


def _measure(trial: Trial) -> Row:
    share = _path.share(trial, "bbr", min(_AFTER_S, trial.factors["seconds"] / 2))
    return {"bbr_share": share, "cubic_share": None if share is None else 1 - share}


def _figure(data: Data) -> alt.TopLevelMixin:
    frame = charts.means(data, ["controller", "buffer_bdp"], "bbr_share")

    def panel(part: Data) -> Any:
        ours = frame.filter(frame["world"] == part.worlds[0])
        x = alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2))
        points = charts.points(ours, x, "share of BBR", charts.controllers(ours), domain=[0, 1])
        return alt.layer(_draw.rule(0.5), points).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "BBR's share of a bottleneck with CUBIC", "100 Mbit/s, 50 ms; dashed: a fair share"
    )


def _judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.BBRS:
        shallow, deep = (
            data.values("bbr_share", controller=name, buffer_bdp=one) for one in (_SHALLOW, _DEEP)
        )
        cubic = data.values("cubic_share", controller=name, buffer_bdp=_DEEP)
        checks += [
            within(
                f"{name}'s share at 0.8 BDP (direction)",
                shallow,
                paper=_SHALLOW_SAID,
                least=0.5,
                shape=True,
            ),
            within(
                f"{name}'s share at 0.8 BDP",
                shallow,
                paper=_SHALLOW_SAID,
                least=2 / 3,
            ),
            within(
                f"CUBIC's share with {name} at 8 BDP (direction)",
                cubic,
                paper=_DEEP_SAID,
                least=0.5,
                shape=True,
            ),
            more(
                f"{name}'s share at 0.8 BDP divided by that at 8 BDP",
                shallow,
                deep,
                paper=_DEEP_SAID,
                least=1.5,
            ),
        ]
    return checks


CLAIM = Claim(
    source="Conclusions",
    says="We also confirmed other known fairness issues: unfairness to CUBIC.",
    worlds=("sim",),
    grid=Grid(
        factors={"controller": _path.BBRS, "buffer_bdp": _BUFFERS_BDP, "seconds": (60,)},
        tiny={"buffer_bdp": (_SHALLOW, _DEEP), "seconds": (4,)},
        document=_document,
    ),
    measure=_measure,
    figure=_figure,
    judge=_judge,
    look_at="Where does the line cross a fair share?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
