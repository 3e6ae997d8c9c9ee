"""A capacity that varies.

Question: does each discipline keep the delay low when the link becomes ten times slower, and use it when
it is fast?
Method: two NewReno flows, 100 ms, a rate that changes between 100 and 10 Mbit/s each 20 s (experiment 1)
and each 100 ms (experiment 2), and a buffer of one BDP of the higher rate. The slow phases of experiment
1 are measured by themselves.
Prediction: in slow phases every discipline has less than half of the FIFO's delay, except RED and step,
whose thresholds are in bytes or packets and were set for the higher rate: they have less, too. In
experiment 2, all have less delay. The goodput is at least 90 % of the FIFO's.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

_FAST, _SLOW = 100, 10
_LONG_S, _SHORT_S = 20.0, 0.1
_COMPARED = Statement("the tester must compare its performance with those of drop-tail")
# Their thresholds do not follow the rate.
_BY_LENGTH = ("red", "step")


def _document(discipline: str, phase_s: float, seconds: int) -> dict[str, Any]:
    count = round(seconds / phase_s)
    changes = [
        {"at": f"{round(1000 * number * phase_s)} ms", "rate": f"{_SLOW if number % 2 else _FAST} Mbit/s"}
        for number in range(1, count)
    ]
    flows = [{"controller": "reno", "label": "flow", "count": 2}]
    return _bench.document(flows, discipline, seconds, rate_mbps=_FAST, changes=changes, interval_ms=50)


def measure(trial: Trial) -> Row:
    phase_s = trial.factors["phase_s"]
    begin = phase_s if phase_s >= 1 else _bench.steady(trial)
    frame = take.link(trial.run, after_s=begin)
    slow = frame.filter((pl.col("time_s") / phase_s).floor().cast(pl.Int64) % 2 == 1)
    return {
        "goodput_mbps": _bench.point(trial, "flow", after_s=begin)["goodput_mbps"],
        "slow_ms": take.mean(slow if phase_s >= 1 else frame, "queue_delay_ms"),
        "p95_ms": take.quantile(frame, "queue_delay_ms", 0.95),
    }


def series(trial: Trial) -> pl.DataFrame:
    step = 0.5
    bins = ((pl.col("time_s") / step).floor() * step).alias("bin")
    frame = take.link(trial.run).group_by(bins, maintain_order=True).agg(pl.col("queue_delay_ms").mean())
    return frame.rename({"bin": "time_s", "queue_delay_ms": "queue_ms"})


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("time_s:Q", title="time, s")
        y = alt.Y("queue_ms:Q", title="delay of the queue, ms (1 and above)", scale=alt.Scale(type="log"))
        made = []
        for phase_s, title in ((_LONG_S, "each 20 s"), (_SHORT_S, "each 100 ms")):
            series = part.series
            if "queue_ms" in series.columns:
                floor = pl.col("queue_ms").clip(lower_bound=1.0)
                series = series.filter(pl.col("phase_s") == phase_s).with_columns(floor)
            made.append(_bench.lines(series, x, y, f"100 and 10 Mbit/s, {title}"))
            runs = part.runs.filter(pl.col("phase_s") == phase_s)
            made.append(_bench.ellipses(runs, f"{title}", x="slow_ms"))
        return _bench.panels(*made)

    return charts.worlds(data, panel, "A capacity that varies", "two NewReno flows, 100 ms")


def judge(data: Data) -> list[Check]:
    checks = []
    for phase_s, what in ((_LONG_S, "slow phases of 20 s"), (_SHORT_S, "phases of 100 ms")):
        for name in _bench.MANAGED:
            least = 2 if phase_s == _LONG_S and name not in _BY_LENGTH else 1
            of: dict[str, Any] = {"statement": _COMPARED, "phase_s": phase_s}
            checks += [
                _bench.less(data, "delay", "slow_ms", name, f", {what}", least=least, **of),
                _bench.kept(data, name, f", {what}", **of),
            ]
    return own(*checks)


CLAIM = Claim(
    source="section 8.2.6",
    says="This scenario can be used to help characterize how the AQM behaves and adapts to bandwidth "
    "changes.",
    grid=Grid(
        factors={
            "discipline": _bench.DISCIPLINES,
            "phase_s": (_LONG_S, _SHORT_S),
            "seconds": (80,),
        },
        quick={"seconds": (40,)},
        tiny={"seconds": (22,)},
        document=_document,
    ),
    look_at="How high is the peak after each fall of the rate, and who drains it within the phase?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
)
