"""Fairness between flows with different RTTs.

Question: which of two flows with different RTTmin gets more of a shared bottleneck?
Method: a flow with an RTT of 10 ms competes with one of 20, 50 or 100 ms and the same controller for 60 s on
100 Mbit/s, with buffers of 0.8 to 8 BDP of the longer RTT. On 1 Gbit/s (20 s on 10 Gbit/s) the longer RTT is
50 ms and the buffer 1 or 8 BDP. Shares are measured from 10 s on.
Prediction: with BBRv3 the flow with the longer RTTmin gets more than its fair share in each case. Our own
threshold is 1.5 times the other flow's share. The slides name neither RTTs nor buffers here: both are ours.
That it gets more the longer its RTTmin is, is our expectation: the slides do not say so, and it is no check
of shape.
"""

import math
from typing import Any

from fullpipe.text import joined
from fullpipe_studies import charts, sharing, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_SHORT_MS = 10
_LONG_MS = (20, 50, 100)
# At the faster rates.
_OFTEN_MS, _OFTEN_BDP = 50, (1, 8)
_AFTER_S = 10.0
_LONG = "long"


def _document(
    controller: str, rate_mbps: int, long_ms: int, buffer_bdp: float, seconds: int
) -> dict[str, Any]:
    buffer = round(buffer_bdp * take.bdp_bytes(rate_mbps, long_ms))
    return _path.document(
        [
            {"controller": controller, "label": "short"},
            {"controller": controller, "label": _LONG, "rtt": f"{long_ms} ms"},
        ],
        rate_mbps=rate_mbps,
        rtt_ms=_SHORT_MS,
        buffer=f"{buffer} B",
        seconds=_path.lasts_s(rate_mbps, seconds),
        jitter_us=_path.NATURAL_US,
        interval_ms=100,
    )


def _is_run(rate_mbps: int, long_ms: int, buffer_bdp: float, **_others: Any) -> bool:
    return rate_mbps == _path.SLOW or (long_ms == _OFTEN_MS and buffer_bdp in _OFTEN_BDP)


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, min(_AFTER_S, trial.factors["seconds"] / 2))
    return {"long_share": sharing.share(by_flow, _LONG)}


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("long_ms:Q", title="longer RTTmin, ms")
        titles = {
            f"{rate} {buffer:g}": f"{_path.TITLES[rate].partition(',')[0]}, {buffer:g} BDP"
            for rate in _path.TITLES
            for buffer in _path.BUFFERS_BDP
        }
        part = _path.named(part)
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
    checks = []
    for name in _path.VARIANTS:
        of = {"controller": name}
        for rate in _path.rates_of(data):
            for buffer in sorted({*data.values("buffer_bdp", rate_mbps=rate)}):
                there = {"rate_mbps": rate, "buffer_bdp": buffer}
                where = f"{_path.TITLES[rate].partition(',')[0]}, {buffer:g} BDP"
                longer = sorted({round(one) for one in data.values("long_ms", **there)})
                for long_ms in longer:
                    shares = data.values("long_share", **of, **there, long_ms=long_ms)
                    checks += [
                        *Statement("large RTTmin flows prevail").both(
                            f"{name}: share of the flow with {long_ms} ms, {where}",
                            shares,
                            direction=0.5,
                            least=0.6,
                        ),
                    ]
                if len(longer) > 1:
                    most, least = (
                        data.values("long_share", **of, **there, long_ms=one)
                        for one in (longer[-1], longer[0])
                    )
                    checks += own(
                        Statement("RTT unfairness").more(
                            f"{name}: share at {longer[-1]} ms divided by that at {longer[0]} ms, {where}",
                            most,
                            least,
                            shape=False,
                        )
                    )
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.CONTROLLERS:
        for buffer in sorted({*data.values("buffer_bdp", rate_mbps=_path.SLOW)}):
            shares = [
                (long_ms, data.mean("long_share", **{**where, "long_ms": long_ms}))
                for where in [{"controller": name, "rate_mbps": _path.SLOW, "buffer_bdp": buffer}]
                for long_ms in _LONG_MS
            ]
            shown = joined(
                [f"{number(100 * share)} % with {one} ms" for one, share in shares if not math.isnan(share)]
            )
            facts.append(f"{name}, 100 Mbit/s, {buffer:g} BDP: the flow with the longer RTT gets {shown}.")
    return facts


CLAIM = Claim(
    source="Conclusions",
    says="We also confirmed other known fairness issues: RTT unfairness (large RTTmin flows prevail).",
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "long_ms": _LONG_MS,
            "buffer_bdp": _path.BUFFERS_BDP,
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW,)},
        tiny={"long_ms": (_LONG_MS[0], _LONG_MS[-1]), "buffer_bdp": (2,), "seconds": (4,)},
        document=_document,
        only=_is_run,
    ),
    # Vegas is no control: large RTTs prevail with it, too.
    wrong=("cubic", "reno"),
    look_at="Which controllers are above one half, and which below?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
