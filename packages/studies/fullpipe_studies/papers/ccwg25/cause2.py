"""Jitter and the maximum filter.

Question: by how much does a flow overestimate the bandwidth because a maximum filter keeps the noise of
jitter?
Method: one flow for 60 s on 100 Mbit/s, 50 ms with a buffer of 8 BDP. The hosts delay each packet at
random, in order, by up to 0 to 2 ms. The bandwidth estimate from 5 s on is divided by the payload rate of
the link. Some of it on 1 Gbit/s, 10 ms (and for 10 s on 10 Gbit/s, 10 ms) is drawn and not judged: the slide
shows the first path.
Prediction: without jitter the estimate is correct. Natural jitter raises it, and more jitter raises it
further. The queue grows with the estimate.
"""

import math
from typing import Any

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_JITTERS_US = (0, _path.NATURAL_US, 500, 1000, 2000)
_OFTEN_US = (0, _path.NATURAL_US, 2000)
_FASTEST_S = 10


def _document(controller: str, rate_mbps: int, jitter_us: int, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller}],
        rate_mbps=rate_mbps,
        buffer="8 bdp",
        seconds=_path.lasts_s(rate_mbps, seconds, _FASTEST_S),
        jitter_us=jitter_us,
        interval_ms=20,
    )


def _is_run(rate_mbps: int, jitter_us: int, **_others: Any) -> bool:
    return rate_mbps == _path.SLOW or jitter_us in _OFTEN_US


def measure(trial: Trial) -> Row:
    rate_mbps = trial.factors["rate_mbps"]
    after_s = min(_path.STEADY_S, trial.factors["seconds"] / 2)
    steady = take.samples(trial.run, after_s=after_s)
    estimate = take.mean(steady, "bandwidth_bps")
    carried = rate_mbps * 1e6 * take.payload_share(trial)
    return {
        "estimate": take.ratio(estimate, carried),
        "mean_rtts": take.mean(_path.queue(trial, _path.RTT_MS[rate_mbps], after_s), "rtts"),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("jitter_us:Q", title="maximum jitter of the hosts, µs")
        frames = {
            "estimate": ("estimate / link’s rate", 1.0),
            "mean_rtts": ("queueing delay, RTTmin", 0.0),
        }
        by = ["controller", "rate_mbps", "jitter_us"]
        rows = [
            _draw.means(part, x, column, title, by, "rate_mbps", _path.TITLES, level=level, zero=False)
            for column, (title, level) in frames.items()
        ]
        return alt.vconcat(*rows, spacing=24)

    return charts.worlds(
        data,
        panel,
        "Effect of jitter on the bandwidth estimate",
        f"8 BDP of buffer; dashed: a true estimate; {charts.BARS}",
    )


def judge(data: Data) -> list[Check]:
    def at(column: str, controller: str, jitter_us: int) -> list[float]:
        return data.values(column, controller=controller, rate_mbps=_path.SLOW, jitter_us=jitter_us)

    most = round(data.most("jitter_us")) if data.runs.height else 0
    checks = []
    for name in _path.VARIANTS:
        checks += [
            Statement("claims list: without jitter the effect vanishes").shape(
                f"{name}: estimate without jitter",
                at("estimate", name, 0),
                least=0.98,
                most=1.01,
                unit="of the rate",
            ),
            # With delays of up to 125 us, a sample of 50 ms may be 0.25 % too short, on average half of that.
            Statement("bandwidth overestimation due to natural jitter").more(
                f"{name}: estimate with natural jitter divided by that without",
                at("estimate", name, _path.NATURAL_US),
                at("estimate", name, 0),
                least=1.001,
            ),
            Statement("measurement noise in delivery rate samples").more(
                f"{name}: estimate with {most} us divided by that with natural jitter",
                at("estimate", name, most),
                at("estimate", name, _path.NATURAL_US),
            ),
            Statement("2nd cause of self-induced queuing delay").more(
                f"{name}: mean queue with natural jitter divided by that without",
                at("mean_rtts", name, _path.NATURAL_US),
                at("mean_rtts", name, 0),
                least=1.25,
            ),
        ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.BBRS:
        for jitter in sorted(data.runs["jitter_us"].unique().to_list()):
            where = {"controller": name, "rate_mbps": _path.SLOW, "jitter_us": jitter}
            estimate, queue = data.means("estimate", "mean_rtts", **where)
            if not math.isnan(estimate):
                facts.append(
                    f"{name}, jitter up to {jitter} us: the estimate is {number(100 * (estimate - 1))} % too "
                    f"high, and the mean queue is {number(queue)} RTTmin."
                )
    return facts


CLAIM = Claim(
    source="2nd Cause: Bandwidth overestimation",
    says="2nd Cause: Bandwidth overestimation due to natural jitter. Measurement noise in delivery rate "
    "samples.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "jitter_us": _JITTERS_US,
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW, _path.FAST), "seconds": (30,)},
        tiny={"rate_mbps": (_path.SLOW,), "jitter_us": (0, _path.NATURAL_US), "seconds": (6,)},
        in_wall_time={**_path.IN_WALL_TIME, "jitter_us": _OFTEN_US},
        document=_document,
        only=_is_run,
    ),
    wrong=("vegas", "cubic", "reno"),
    look_at="Where does the estimate begin, and how does it rise with jitter?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
