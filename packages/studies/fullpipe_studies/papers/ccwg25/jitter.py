"""Sensitivity to delay jitter.

Question: how much goodput does delay jitter cost?
Method: one flow for 60 s on 100 Mbit/s, 50 ms with a buffer of 2 BDP (a part also for 30 s on 1 Gbit/s and
for 10 s on 10 Gbit/s, 10 ms). Behind the bottleneck, packets are delayed at random, uniformly by 0 to 4
RTTmin. The slides do not say how their delay varies, hence three kinds: each packet has a delay of its own
and may overtake, or waits for those before it; or the path has a new delay five times in each RTTmin, and
nothing overtakes. A fourth kind is drawn and not judged, because it is aggregation and no jitter: packets are
held and released together every 0 to 4 RTTmin. Goodput is measured from 10 s on (5 s at 10 Gbit/s).
Prediction: less than other research predicts. According to that research BBR collapses once jitter exceeds
RTTmin, because its window is twice the BDP of the smallest RTT. We expect of every kind that most of the
goodput is left at a jitter of one RTTmin, and a quarter at four.

Before BBRv3 was run, packets that are held and released together were the only kind, and judged for BBRv1.
"""

import math
import random
from functools import cache
from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_NONE, _ONE, _MOST = 0.0, 1.0, 4.0
_AFTER_S = 10.0
_OVERTAKING, _IN_ORDER, _VARYING, _HELD = "overtaking", "in order", "varying path", "held together"
_KINDS = {
    _OVERTAKING: "each packet by itself, overtaking",
    _IN_ORDER: "each packet by itself, in order",
    _VARYING: "the path, in order",
    _HELD: "held together (no jitter)",
}
_JUDGED = (_OVERTAKING, _IN_ORDER, _VARYING)
_A_ROUND = 5  # New delays of a varying path in each RTTmin.
_FAST_S, _FASTEST_S = 30, 10


def _lasts_s(rate_mbps: int, seconds: int) -> int:
    return min(seconds, {_path.FAST: _FAST_S, _path.FASTEST: _FASTEST_S}.get(rate_mbps, seconds))


def _from_s(rate_mbps: int, seconds: int) -> float:
    """When the measured part begins."""
    return min(_AFTER_S, _lasts_s(rate_mbps, seconds) / 2)


@cache
def _delayed(kind: str, most_ms: float, rtt_ms: float, seconds: float) -> dict[str, Any]:
    """The element that delays."""
    if kind == _HELD:
        return {"kind": "aggregate", "every": f"{most_ms} ms"}
    if kind == _VARYING:
        source = random.Random(1)
        step_ms = rtt_ms / _A_ROUND
        delays = [f"{most_ms * source.random():.3f} ms" for _ in range(round(seconds * 1e3 / step_ms))]
        later = [
            {"at": f"{number * step_ms:g} ms", "delay": delay}
            for number, delay in enumerate(delays[1:], start=1)
        ]
        return {"kind": "delay", "delay": delays[0], "changes": later}
    return {"kind": "jitter", "amplitude": f"{most_ms} ms", "reorders": kind == _OVERTAKING}


def _document(controller: str, rate_mbps: int, kind: str, jitter_rtts: float, seconds: int) -> dict[str, Any]:
    seconds, rtt_ms = _lasts_s(rate_mbps, seconds), _path.RTT_MS[rate_mbps]
    document = _path.document(
        [{"controller": controller}],
        rate_mbps=rate_mbps,
        rtt_ms=rtt_ms,
        buffer="2 bdp",
        seconds=seconds,
        interval_ms=50,
    )
    if jitter_rtts:
        document["path"]["after"] = [_delayed(kind, jitter_rtts * rtt_ms, rtt_ms, seconds)]
    return document


def _is_run(rate_mbps: int, kind: str, jitter_rtts: float, **_others: Any) -> bool:
    if rate_mbps == _path.SLOW:
        return True
    # Without jitter all kinds are the same.
    return kind in _JUDGED and (jitter_rtts in (_ONE, _MOST) or (jitter_rtts == _NONE and kind == _JUDGED[0]))


def measure(trial: Trial) -> Row:
    rate_mbps = trial.factors["rate_mbps"]
    late = take.samples(trial.run, after_s=_from_s(rate_mbps, trial.factors["seconds"]))
    rate = take.delivered_mbps(late)
    payload_bps = rate_mbps * 1e6 * take.payload_share(trial)
    begun = take.samples(trial.run).filter(
        pl.col("bandwidth_bps").is_not_null() & (pl.col("phase") != "startup")
    )
    return {
        "of_rate": None if rate is None else rate * 1e6 / payload_bps,
        "estimate": take.ratio(take.mean(late, "bandwidth_bps"), payload_bps),
        "startup_s": take.least(begun, "time_s"),
        "startup_estimate": take.ratio(take.least(begun.head(1), "bandwidth_bps"), payload_bps),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        slow = Data(part.runs.filter(pl.col("rate_mbps") == _path.SLOW), part.series)
        x = alt.X("jitter_rtts:Q", title="jitter, RTTmin")
        by = ["controller", "kind", "jitter_rtts"]
        title = "goodput / link’s rate"
        return _draw.means(slow, x, "of_rate", title, by, "kind", _KINDS, domain=[0, 1])

    return charts.worlds(data, panel, "Goodput against jitter", f"100 Mbit/s, 50 ms, 2 BDP; {charts.BARS}")


def judge(data: Data) -> list[Check]:
    checks = []
    facts = Statement("not as jitter sensitive as predicted by other research")
    for name in _path.VARIANTS:
        for rate in _path.rates_of(data):
            for kind in _JUDGED:
                of = {"controller": name, "rate_mbps": rate, "kind": kind}
                where = f"{kind}, {_path.TITLES[rate]}"
                none, one, most = (
                    data.values("of_rate", **of, jitter_rtts=jitter) for jitter in (_NONE, _ONE, _MOST)
                )
                if kind == _JUDGED[0]:  # Without jitter all kinds are the same.
                    checks.append(
                        Statement("no number; claims list: from a jitter of 0 on").shape(
                            f"{name}: goodput without jitter, {_path.TITLES[rate]}",
                            none,
                            least=0.9,
                            unit="of the rate",
                        )
                    )
                checks += [
                    *facts.both(
                        f"{name}: goodput at a jitter of one RTTmin, {where}",
                        one,
                        direction=0.5,
                        least=0.75,
                        unit="of the rate",
                    ),
                    facts.within(
                        f"{name}: goodput at a jitter of 4 RTTmin, {where}",
                        most,
                        least=0.25,
                        unit="of the rate",
                    ),
                ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.BBRS:
        for kind in _KINDS:
            for jitter in (_ONE, _MOST):
                where = {"controller": name, "rate_mbps": _path.SLOW, "kind": kind, "jitter_rtts": jitter}
                after, then, later, kept = data.means(
                    "startup_s", "startup_estimate", "estimate", "of_rate", **where
                )
                if not math.isnan(later):
                    facts.append(
                        f"{name}, {kind}, a jitter of {jitter:g} RTTmin at 100 Mbit/s: Startup ends after "
                        f"{number(after)} s with an estimate of {number(100 * then)} % of the rate. From "
                        f"{_AFTER_S:g} s on the estimate is {number(100 * later)} %, and the flow delivers "
                        f"{number(100 * kept)} %."
                    )
    return facts


CLAIM = Claim(
    source="Conclusions: Delay-Jitter",
    says="BBR is not as jitter sensitive as predicted by other research.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "kind": tuple(_KINDS),
            "jitter_rtts": (_NONE, 0.1, 0.25, 0.5, _ONE, 2.0, _MOST),
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW,), "jitter_rtts": (_NONE, 0.5, _ONE, _MOST), "seconds": (30,)},
        tiny={"jitter_rtts": (_NONE, _ONE), "seconds": (4,)},
        in_wall_time={**_path.IN_WALL_TIME, "kind": _JUDGED, "jitter_rtts": (_NONE, _ONE, _MOST)},
        document=_document,
        only=_is_run,
    ),
    # CUBIC is no control: it bears jitter, too.
    wrong=("vegas", "copa"),
    look_at="How slowly do the curves fall beyond one RTTmin?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
