"""Fairness between flows with different RTTs.

Question: which of two flows with different RTTmin gets more of a shared bottleneck?
Method: a flow with an RTT of 10 ms competes with one of 20, 50 or 100 ms and the same controller for 60 s on
100 Mbit/s, with buffers of 0.8 to 8 BDP of the longer RTT. On 1 Gbit/s (20 s on 10 Gbit/s) the longer RTT is
50 ms and the buffer 1 or 8 BDP. Shares are measured from 10 s on. The verdict is about 1 BDP. The slides do
not say with which of their buffers they saw it, so the others are set-ups that they leave open.
Prediction: with BBRv3 the flow with the longer RTTmin gets more than its fair share in each case. Our own
threshold is 1.5 times the other flow's share. The slides do not name RTTs here, either: ours.
That it gets more the longer its RTTmin is, is our expectation: the slides do not say so, and it is no check
of shape.
"""

import math
from typing import Any

import polars as pl

from fullpipe.text import joined
from fullpipe_studies import charts, sharing, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Setups, Statement, Trial, number, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_SHORT_MS = 10
_LONG_MS = (20, 50, 100)
# At the faster rates.
_OFTEN_MS, _OFTEN = 50, ("1 BDP", "8 BDP")
_BUFFERS = {f"{one:g} BDP": one for one in _path.BUFFERS_BDP}
_JUDGED = "1 BDP"
_AFTER_S = 10.0
_LONG = "long"


def _document(controller: str, rate_mbps: int, long_ms: int, buffer: str, seconds: int) -> dict[str, Any]:
    limit = round(_BUFFERS[buffer] * take.bdp_bytes(rate_mbps, long_ms))
    return _path.document(
        [
            {"controller": controller, "label": "short"},
            {"controller": controller, "label": _LONG, "rtt": f"{long_ms} ms"},
        ],
        rate_mbps=rate_mbps,
        rtt_ms=_SHORT_MS,
        buffer=f"{limit} B",
        seconds=_path.lasts_s(rate_mbps, seconds),
        jitter_us=_path.NATURAL_US,
        interval_ms=100,
    )


def _is_run(rate_mbps: int, long_ms: int, buffer: str, **_others: Any) -> bool:
    return rate_mbps == _path.SLOW or (long_ms == _OFTEN_MS and buffer in _OFTEN)


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, min(_AFTER_S, trial.factors["seconds"] / 2))
    return {"long_share": sharing.share(by_flow, _LONG)}


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("long_ms:Q", title="longer RTTmin, ms")
        titles = {
            f"{rate} {buffer}": f"{_path.TITLES[rate].partition(',')[0]}, {buffer}"
            for rate in _path.TITLES
            for buffer in _BUFFERS
        }
        every = pl.concat([one.runs for one in part.setups.values()]) if part.setups else part.runs
        part = Data(every.with_columns(path=pl.format("{} {}", "rate_mbps", "buffer")), part.series)
        return _draw.means(
            part,
            x,
            "long_share",
            "share of the longer RTT",
            ["controller", "path", "long_ms"],
            "path",
            titles,
            level=0.5,
            domain=[0, 1],
        )

    return charts.worlds(
        data,
        panel,
        "The share of the flow with the longer RTTmin",
        f"the other flow has 10 ms; dashed: a fair share; {charts.BARS}",
    )


def judge(data: Data) -> list[Check]:
    checks: list[Check] = []
    for name in _path.VARIANTS:
        for rate in _path.rates_of(data):
            where = _path.TITLES[rate].partition(",")[0]
            longer = sorted({round(one) for one in data.values("long_ms", rate_mbps=rate)})
            shares = {
                long_ms: data.values("long_share", controller=name, rate_mbps=rate, long_ms=long_ms)
                for long_ms in longer
            }
            for long_ms in longer:
                checks += Statement("large RTTmin flows prevail").both(
                    f"{name}: share of the flow with {long_ms} ms, {where}",
                    shares[long_ms],
                    direction=0.5,
                    least=0.6,
                )
            if len(longer) > 1:
                checks += own(
                    Statement("RTT unfairness").more(
                        f"{name}: share at {longer[-1]} ms divided by that at {longer[0]} ms, {where}",
                        shares[longer[-1]],
                        shares[longer[0]],
                        shape=False,
                    )
                )
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.CONTROLLERS:
        for buffer, part in data.setups.items():
            shares = [
                (long_ms, part.mean("long_share", **{**where, "long_ms": long_ms}))
                for where in [{"controller": name, "rate_mbps": _path.SLOW, "buffer": buffer}]
                for long_ms in _LONG_MS
            ]
            shown = joined(
                [f"{number(100 * share)} % with {one} ms" for one, share in shares if not math.isnan(share)]
            )
            facts.append(f"{name}, 100 Mbit/s, {buffer}: the flow with the longer RTT gets {shown}.")
    return facts


CLAIM = Claim(
    source="Conclusions",
    says="We also confirmed other known fairness issues: RTT unfairness (large RTTmin flows prevail).",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "long_ms": _LONG_MS,
            "buffer": tuple(_BUFFERS),
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW,)},
        tiny={"long_ms": (_LONG_MS[0], _LONG_MS[-1]), "buffer": (_JUDGED,), "seconds": (4,)},
        in_wall_time={**_path.IN_WALL_TIME, "buffer": ("0.8 BDP", _JUDGED)},
        document=_document,
        only=_is_run,
    ),
    setups=Setups("buffer", _JUDGED, _path.SEEDS, left_open=tuple(one for one in _BUFFERS if one != _JUDGED)),
    # Vegas is no control: large RTTs prevail with it, too.
    wrong=("cubic", "reno"),
    look_at="Which controllers are above one half, and which below?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
