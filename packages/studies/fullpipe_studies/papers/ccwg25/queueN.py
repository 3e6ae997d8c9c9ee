"""The queue that several flows build.

Question: how long is the queue of several flows of one controller, and does each further flow lengthen it?
Method: 1 to 16 flows of one controller for 60 s on 100 Mbit/s, 50 ms with buffers of 0.8 to 8 BDP, and 2 and
16 flows on 1 Gbit/s, 10 ms (for 20 s on 10 Gbit/s, 10 ms) with 8 BDP, with the natural jitter of the hosts.
The queue is measured from 10 s on, in particular the share of time in which it is longer than one RTTmin, as
on the slides.
Prediction: two or more BBRv3 flows keep a queue of around one RTTmin for over half of the time where the
buffer is large enough, and a slightly longer one with each further flow. The cause is present since BBRv1.
CUBIC fills any buffer.

The checks of the share of time and of each step in the number of flows were added after results of BBRv1 were
seen, and before those of BBRv3: before, only the median and the two ends were checked.
"""

from itertools import pairwise
from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.ccwg25 import _draw, _path

_FEW, _MANY, _DEEP = 2, 16, 8
# All flows have started, and a first ProbeRTT has let them see the delay of the empty path.
_AFTER_S = 10.0


def _document(controller: str, rate_mbps: int, flows: int, buffer_bdp: float, seconds: int) -> dict[str, Any]:
    return _path.document(
        [{"controller": controller, "count": flows, "label": "flow"}],
        rate_mbps=rate_mbps,
        buffer=f"{buffer_bdp} bdp",
        seconds=_path.lasts_s(rate_mbps, seconds),
        jitter_us=_path.NATURAL_US,
        interval_ms=20,
        flow_series=False,
    )


def _is_run(rate_mbps: int, flows: int, buffer_bdp: float, **_others: Any) -> bool:
    return rate_mbps == _path.SLOW or (buffer_bdp == _DEEP and flows in (_FEW, _MANY))


def measure(trial: Trial) -> Row:
    rtt_ms = _path.RTT_MS[trial.factors["rate_mbps"]]
    frame = _path.queue(trial, rtt_ms, min(_AFTER_S, trial.factors["seconds"] / 2))
    return {
        "median_rtts": take.median(frame, "rtts"),
        "mean_rtts": take.mean(frame, "rtts"),
        "over_one": _path.part(frame, pl.col("rtts") > 1),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("flows:Q", title="flows", scale=alt.Scale(type="log", base=2))
        paths = {
            f"{rate} {buffer:g}": f"{title}, {buffer:g} BDP"
            for rate, title in _path.TITLES.items()
            for buffer in _path.BUFFERS_BDP
        }
        part = _path.named(part)
        by = ["controller", "path", "flows"]
        queue = _draw.means(
            part,
            x,
            "median_rtts",
            "median queue, RTTmin",
            by,
            "path",
            paths,
            level=1.0,
        )
        deep = Data(part.runs.filter(pl.col("buffer_bdp") == _DEEP), part.series)
        share = _draw.means(
            deep,
            x,
            "over_one",
            "time with more than 1 RTTmin",
            by,
            "path",
            paths,
            level=0.5,
            domain=[0, 1],
        )
        return alt.vconcat(queue, share, spacing=24)

    return charts.worlds(
        data,
        panel,
        "The queue that several flows build",
        [
            f"natural jitter; {charts.BARS}",
            "dashed: what the slides say: around 1 RTTmin, for more than half of the time",
        ],
    )


def judge(data: Data) -> list[Check]:
    def at(column: str, controller: str, flows: int, rate: int = _path.SLOW) -> list[float]:
        return data.values(column, controller=controller, flows=flows, rate_mbps=rate, buffer_bdp=_DEEP)

    counts = sorted({round(count) for count in data.values("flows")} - {1})
    checks = [_noticeable("bbr1", at("median_rtts", "bbr1", _FEW))]
    for name in _path.VARIANTS:
        checks += [
            *(
                Statement(">1 RTTmin more than 50% of the time for multiple flows").shape(
                    f"{name}: time with a queue longer than 1 RTTmin, {count} flows, 8 BDP, "
                    f"{_path.TITLES[rate]}",
                    at("over_one", name, count, rate),
                    least=0.5,
                    unit="of the time",
                )
                for rate in _path.rates_of(data)
                for count in counts
                if rate == _path.SLOW or count in (_FEW, _MANY)
            ),
            *(
                Statement("gets a bit worse with increasing number of flows").more(
                    f"{name}: mean queue of {count} flows divided by that of {fewer}, 8 BDP",
                    at("mean_rtts", name, count),
                    at("mean_rtts", name, fewer),
                )
                for fewer, count in pairwise(counts)
            ),
            _noticeable(name, at("median_rtts", name, _FEW)),
            Statement("around 1 RTTmin for over half of the time (present since BBRv1)").within(
                f"{name}: median queue of 2 flows, 8 BDP",
                at("median_rtts", name, _FEW),
                least=0.75,
                most=1.5,
                unit="RTTmin",
            ),
            Statement("a bit worse").within(
                f"{name}: mean queue of 16 flows minus that of 2, 8 BDP",
                [
                    more_ - few
                    for more_, few in _pairs(at("mean_rtts", name, _MANY), at("mean_rtts", name, _FEW))
                ],
                least=0,
                most=1,
                unit="RTTmin",
            ),
            Statement("BBR avoids completely filling deep buffers").more(
                f"CUBIC's median queue of 2 flows divided by that of {name}, 8 BDP",
                at("median_rtts", "cubic", _FEW),
                at("median_rtts", name, _FEW),
            ),
        ]
    return checks


def _noticeable(name: str, queues: list[float]) -> Check:
    return Statement("around 1 RTTmin for over half of the time (present since BBRv1)").shape(
        f"{name}: median queue of 2 flows, 8 BDP (noticeable)", queues, least=0.5, unit="RTTmin"
    )


def explain(data: Data) -> list[str]:
    facts = []
    for name in _path.BBRS:
        for rate in _path.rates_of(data):
            for flows in (_FEW, _MANY):
                where = {"controller": name, "rate_mbps": rate, "flows": flows, "buffer_bdp": _DEEP}
                middle, over = data.means("median_rtts", "over_one", **where)
                facts.append(
                    f"{name}, {flows} flows at {_path.TITLES[rate]}, 8 BDP: median queue {number(middle)} "
                    f"RTTmin, more than one RTTmin for {number(100 * over)} % of the time."
                )
    return facts


def _pairs(many: list[float], few: list[float]) -> list[tuple[float, float]]:
    return list(zip(many, few, strict=True)) if len(many) == len(few) else []


CLAIM = Claim(
    source="Self-induced Queuing Delay: Two Flows, Multiple Flows",
    says="Queuing Delay around 1 RTTmin for >50% of the time for larger buffers. Cause: overestimation of "
    "available bandwidth in ProbeBW_UP (present since BBRv1). Gets a bit worse with increasing number of "
    "flows.",
    worlds=("sim", "kernel"),
    grid=Grid(
        factors={
            "controller": _path.CONTROLLERS,
            "rate_mbps": tuple(_path.RTT_MS),
            "flows": (1, _FEW, 4, 8, _MANY),
            "buffer_bdp": _path.BUFFERS_BDP,
            "seconds": (60,),
        },
        quick={"rate_mbps": (_path.SLOW,), "flows": (1, _FEW, _MANY), "buffer_bdp": (1, _DEEP)},
        tiny={"flows": (_FEW, _MANY), "buffer_bdp": (_DEEP,), "seconds": (4,)},
        in_wall_time={
            **_path.IN_WALL_TIME,
            "controller": _path.CONTROLLERS,
            "flows": (_FEW, 4, 8, _MANY),
            "buffer_bdp": (_DEEP,),
        },
        document=_document,
        only=_is_run,
    ),
    look_at="At which level do BBR's curves stay in deep buffers, and how steep are they?",
    about=_path.ABOUT,
    seeds=_path.SEEDS,
    quick_seeds=_path.QUICK_SEEDS,
)
