"""Mild, medium and heavy congestion.

Question: does each discipline keep the delay low, and about the same, when more flows come?
Method: 6, 14 and 19 long NewReno flows on 10 Mbit/s, 100 ms: 0.036, 0.081 and 0.114 times the sum of BDP
and buffer, which is 167 packets. The RFC projects a loss of 0.1, 0.5 and 1 % of these with a FIFO.
Prediction: at each level, every discipline has less delay than the FIFO and at least 90 % of its goodput.
From mild to heavy congestion, the delay of each at most doubles.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, geometric, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

# The sum of BDP and buffer in packets, and the factors of sections 8.2.2 to 8.2.4.
PACKETS = 2 * take.bdp_bytes(_bench.RATE_MBPS, _bench.RTT_MS) / 1500
FLOWS = {
    name: round(factor * PACKETS) for name, factor in (("mild", 0.036), ("medium", 0.081), ("heavy", 0.114))
}


def _document(discipline: str, level: str, seconds: int) -> dict[str, Any]:
    flows = [{"controller": "reno", "label": "flow", "count": FLOWS[level]}]
    return _bench.document(flows, discipline, seconds, interval_ms=50)


def measure(trial: Trial) -> Row:
    return {
        **_bench.point(trial, "flow"),
        **_bench.waits(trial),
        "flows": FLOWS[trial.factors["level"]],
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("flows:Q", title="flows")
        y = alt.Y("queue_ms:Q", title="delay of the queue, ms")
        made = [_bench.averages(part.runs, "flows", "queue_ms", x, y, "sojourn time against load")]
        made += [
            _bench.ellipses(part.runs.filter(pl.col("level") == level), f"{level}: {count} flows")
            for level, count in FLOWS.items()
        ]
        return _bench.panels(*made)

    subtitle = "NewReno, 10 Mbit/s, 100 ms, a buffer of 1 BDP; 1-sigma ellipses over runs"
    return charts.worlds(data, panel, "Mild, medium and heavy congestion", subtitle)


def judge(data: Data) -> list[Check]:
    checks = [check for level in FLOWS for check in _bench.better(data, level, level=level)]
    for name in _bench.MANAGED:
        mild, heavy = (data.values("delay_ms", discipline=name, level=level) for level in ("mild", "heavy"))
        checks.append(
            Statement("the AQM needs to remain stable under these conditions").within(
                f"{name}: delay under heavy congestion divided by that under mild",
                heavy.over(mild),
                middle=geometric,
                most=2,
                unit="times",
            )
        )
    return own(*checks)


CLAIM = Claim(
    source="sections 8.2.1 to 8.2.4",
    says="Since operating conditions can vary often, the AQM needs to remain stable under these conditions "
    "without the "
    "need for additional external tuning.",
    grid=Grid(
        factors={
            "discipline": _bench.DISCIPLINES,
            "level": tuple(FLOWS),
            "seconds": (60,),
        },
        quick={"seconds": (30,)},
        tiny={"seconds": (5,)},
        document=_document,
    ),
    look_at="Whose curve stays flat with more flows? Whose ellipses rise or fall with the level?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
