"""Sharing a bottleneck with CUBIC.

Question: which of BBR and CUBIC gets more of a shared bottleneck, and how does that depend on the buffer?
Method: one flow of each for 60 s on 100 Mbit/s, 50 ms with buffers of 0.8 to 16 BDP, and on 1 Gbit/s, 10 ms
(30 s on 10 Gbit/s, 10 ms) with 0.8 and 8 BDP; shares from 10 s on. CUBIC beside CUBIC is drawn for
comparison.
Prediction: BBRv3 gets more than its fair share in shallow buffers, CUBIC in deep ones. Our own threshold for
BBR in shallow buffers is twice CUBIC's share.
"""

from typing import Any

from fullpipe.text import joined
from fullpipe_studies import charts, sharing
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

# The buffers of the slides, and a deeper one.
_BUFFERS_BDP = (*_path.BUFFERS_BDP, 16)
_SHALLOW, _DEEP = 0.8, 8
_AFTER_S = 10.0
# Longer than elsewhere: CUBIC needs tens of seconds to grow back.
_FASTEST_S = 30
# The slides name only the unfairness; our list of claims says in which buffers.
_SHALLOW_SAID = Statement("unfairness to CUBIC; claims list: in shallow buffers")
_DEEP_SAID = Statement("claims list: and the reverse in deep ones")


def _document(controller: str, rate_mbps: int, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller, "label": "one"}, {"controller": "cubic", "label": "cubic"}],
        rate_mbps=rate_mbps,
        buffer=f"{buffer_bdp} bdp",
        seconds=_path.lasts_s(rate_mbps, seconds, _FASTEST_S),
        jitter_us=_path.NATURAL_US,
        interval_ms=100,
    )


def _is_run(rate_mbps: int, buffer_bdp: float, **_others: Any) -> bool:
    return rate_mbps == _path.SLOW or buffer_bdp in (_SHALLOW, _DEEP)


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, min(_AFTER_S, trial.factors["seconds"] / 2))
    share = sharing.share(by_flow, "one")
    return {"share": share, "cubic_share": None if share is None else 1 - share}


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log", base=2))
        by = ["controller", "rate_mbps", "buffer_bdp"]
        return _draw.means(
            part,
            x,
            "share",
            "share beside CUBIC",
            by,
            "rate_mbps",
            _path.TITLES,
            level=0.5,
            domain=[0, 1],
        )

    return charts.worlds(
        data, panel, "The share of a bottleneck beside CUBIC", f"dashed: a fair share; {charts.BARS}"
    )


def judge(data: Data) -> list[Check]:
    checks = []
    for name in _path.VARIANTS:
        for rate in _path.rates_of(data):
            path = _path.TITLES[rate]
            of = {"controller": name, "rate_mbps": rate}
            shallow, deep = (data.values("share", **of, buffer_bdp=one) for one in (_SHALLOW, _DEEP))
            cubic = data.values("cubic_share", **of, buffer_bdp=_DEEP)
            checks += [
                *_SHALLOW_SAID.both(
                    f"{name}'s share at 0.8 BDP, {path}", shallow, direction=0.5, least=2 / 3
                ),
                _DEEP_SAID.shape(f"CUBIC's share with {name} at 8 BDP, {path} (direction)", cubic, least=0.5),
                _DEEP_SAID.more(
                    f"{name}'s share at 0.8 BDP divided by that at 8 BDP, {path}", shallow, deep, least=1.5
                ),
            ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.BBRS:
        for rate in _path.rates_of(data):
            buffers = sorted({*data.values("buffer_bdp", rate_mbps=rate)})
            shares = [data.mean("share", controller=name, rate_mbps=rate, buffer_bdp=one) for one in buffers]
            shown = joined(
                [
                    f"{number(100 * share)} % with {one:g} BDP"
                    for one, share in zip(buffers, shares, strict=True)
                ]
            )
            facts.append(f"{name} beside CUBIC at {_path.TITLES[rate]} gets {shown}.")
    return facts


CLAIM = Claim(
    source="Conclusions",
    says="We also confirmed other known fairness issues: unfairness to CUBIC.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "buffer_bdp": _BUFFERS_BDP,
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW,)},
        tiny={"buffer_bdp": (_SHALLOW, _DEEP), "seconds": (4,)},
        in_wall_time={**_path.IN_WALL_TIME, "buffer_bdp": (_SHALLOW, _DEEP)},
        document=_document,
        only=_is_run,
    ),
    look_at="Where does the line cross a fair share?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
