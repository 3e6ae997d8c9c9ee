"""Beside CUBIC.

Question: who has more of a bottleneck that BBR and CUBIC share, and how does that depend on the buffer?
Method: a flow of each for 60 s on 100 Mbit/s, 50 ms with buffers of 0.8 to 16 BDP; shares from 10 s on.
Prediction: BBR has more than its share in shallow buffers, CUBIC in deep ones; twice what CUBIC has, as a
number of ours.
"""

from typing import Any

import altair as alt

from fullpipe.studies import charts
from fullpipe.studies.ccwg25 import _draw, _path
from fullpipe.studies.claim import Check, Claim, Data, Grid, Row, Trial, more, within

_RATE_MBPS, _RTT_MS = 100, 50
# The slides' buffers, and one that is deeper than all of them.
_BUFFERS_BDP = (*_path.BUFFERS_BDP, 16)
_SHALLOW, _DEEP = 0.8, 8
_AFTER_S = 10.0
# The slides name the unfairness alone; in which buffers is of the list of claims.
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

    return charts.worlds(data, panel, "BBR's share beside CUBIC", "100 Mbit/s, 50 ms; dashed: a fair share")


def _judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.BBRS:
        shallow, deep = (
            data.values("bbr_share", controller=name, buffer_bdp=one) for one in (_SHALLOW, _DEEP)
        )
        cubic = data.values("cubic_share", controller=name, buffer_bdp=_DEEP)
        checks += [
            within(
                f"{name}: its share at 0.8 BDP, direction",
                shallow,
                paper=_SHALLOW_SAID,
                least=0.5,
                shape=True,
            ),
            within(
                f"{name}: its share at 0.8 BDP",
                shallow,
                paper=_SHALLOW_SAID,
                least=2 / 3,
            ),
            within(
                f"CUBIC's share beside {name} at 8 BDP, direction",
                cubic,
                paper=_DEEP_SAID,
                least=0.5,
                shape=True,
            ),
            more(
                f"{name}: its share at 0.8 BDP over that at 8 BDP",
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
    look_at="Look for where the line crosses a fair share.",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
