"""Congestion that comes and goes.

Question: does each discipline keep the delay low when flows come and go?
Method: phases of 20 s with mild, medium and heavy congestion (6, 14 and 19 NewReno flows), twice, on 10
Mbit/s, 100 ms. Each phase is measured by itself, from its beginning, over both times.
Prediction: in each phase, every discipline has less delay than the FIFO, also in its 95th percentile.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench, load

_LEVELS = tuple(load.FLOWS)
_TIMES = 2
# Time 0 is when all flows of the first phase are past slow start (section 8.2).
_SETTLE_S = 5


def _document(discipline: str, phase_s: int) -> dict[str, Any]:
    whole = len(_LEVELS) * phase_s
    mild, medium, heavy = (load.FLOWS[level] for level in _LEVELS)
    flows: list[dict[str, Any]] = [{"controller": "reno", "label": "mild", "count": mild}]
    for time in range(_TIMES):
        end = _SETTLE_S + (time + 1) * whole
        for number, (level, count) in enumerate(
            (("medium", medium - mild), ("heavy", heavy - medium)), start=1
        ):
            start = _SETTLE_S + time * whole + number * phase_s
            flows.append(
                {
                    "controller": "reno",
                    "label": f"{level}{time}",
                    "count": count,
                    "start": f"{start} s",
                    "stop": f"{end} s",
                }
            )
    return _bench.document(flows, discipline, _SETTLE_S + _TIMES * whole, interval_ms=100)


def _phases(trial: Trial) -> pl.DataFrame:
    phase_s = trial.factors["phase_s"]
    number = ((pl.col("time_s") - _SETTLE_S) / phase_s).floor().cast(pl.Int64) % len(_LEVELS)
    frame = take.link(trial.run, after_s=_SETTLE_S)
    return frame.with_columns(number.replace_strict(dict(enumerate(_LEVELS)), default=None).alias("level"))


def measure(trial: Trial) -> Row:
    frame = _phases(trial)
    row: Row = {}
    for level in _LEVELS:
        part = frame.filter(pl.col("level") == level)
        row[f"{level}_ms"] = take.mean(part, "queue_delay_ms")
        row[f"{level}_p95_ms"] = take.quantile(part, "queue_delay_ms", 0.95)
    return row


def series(trial: Trial) -> pl.DataFrame:
    second = pl.col("time_s").floor().alias("second")
    frame = take.link(trial.run).group_by(second, maintain_order=True).agg(pl.col("queue_delay_ms").mean())
    return frame.rename({"second": "time_s", "queue_delay_ms": "queue_ms"})


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("time_s:Q", title="time, s")
        y = alt.Y("queue_ms:Q", title="delay of the queue, ms")
        return _bench.lines(part.series, x, y, "averages over 1 s of one run").properties(width=560)

    subtitle = "6, 14 and 19 NewReno flows in turn, 10 Mbit/s, 100 ms"
    return charts.worlds(data, panel, "Congestion that comes and goes", subtitle)


def judge(data: Data) -> list[Check]:
    checks = []
    for level in _LEVELS:
        for name in _bench.MANAGED:
            where = f", {level}"
            checks += [
                _bench.less(data, "delay", f"{level}_ms", name, where),
                _bench.less(data, "95th percentile", f"{level}_p95_ms", name, where, shape=False),
            ]
    return own(*checks)


CLAIM = Claim(
    source="section 8.2.5",
    says="This scenario can be used to evaluate how an AQM scheme reacts to incoming traffic resulting in "
    "various "
    "levels of congestion during the experiment.",
    grid=Grid(
        factors={"discipline": _bench.DISCIPLINES, "phase_s": (20,)},
        quick={"phase_s": (10,)},
        tiny={"phase_s": (2,)},
        document=_document,
    ),
    look_at="How high are the peaks where flows begin (each 20 s), and how long do they last?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
