"""Delayed and aggregated ACKs.

Question: why does BBR need a window of two BDP?
Method: one BBR flow on 100 Mbit/s, 40 ms for 30 s, with windows of one and of two BDP. The reverse path
releases ACKs only every 0 to 40 ms (one RTT). BBR's allowance for aggregated ACKs is off: Linux has it only
since 5.1, so the BBR of the paper did not have it, and it serves the same purpose as the second BDP.
Prediction: with one BDP the sender stalls until the next ACKs arrive; with two it does not.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial
from fullpipe_studies.later import alt

_ONE, _TWO = "bbr1:cwnd_gain=1,extra_acked_gain=0", "bbr1:cwnd_gain=2,extra_acked_gain=0"


def _document(controller: str, every_ms: int, seconds: int) -> dict[str, Any]:
    held = [{"kind": "aggregate", "every": f"{every_ms} ms"}] if every_ms else []
    return {
        "duration": f"{seconds} s",
        "path": {"rate": "100 Mbit/s", "rtt": "40 ms", "buffer": "4 bdp", "reverse": {"before": held}},
        "flows": [{"controller": controller}],
        "record": {"series": False},
    }


def measure(trial: Trial) -> Row:
    return {"goodput_mbps": take.goodput_mbps(trial.run)}


def figure(data: Data) -> "alt.TopLevelMixin":
    names = {_TWO: "window of 2 BDP", _ONE: "window of 1 BDP"}
    frame = charts.means(data, ["controller", "every_ms"], "goodput_mbps").with_columns(
        pl.col("controller").replace_strict(names)
    )

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        x = alt.X("every_ms:Q", title="interval between ACK releases, ms")
        lines = charts.points(ours, x, "goodput, Mbit/s", charts.controllers(ours), domain=[0, 100])
        return lines.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "Goodput under aggregated ACKs", "one BBR flow, 100 Mbit/s, 40 ms")


def judge(data: Data) -> list[Check]:
    def at(controller: str, every_ms: int) -> list[float]:
        return data.values("goodput_mbps", controller=controller, every_ms=every_ms)

    worst = int(data.runs["every_ms"].max() or 0)  # type: ignore[arg-type]
    return [
        Statement("continue sending smoothly, even when ACKs are delayed by up to one RTT").more(
            f"goodput with two BDP: ACKs every {worst} ms, divided by that without aggregation",
            at(_TWO, worst),
            at(_TWO, 0),
            least=0.9,
        ),
        Statement("throughput-reducing stalls").more(
            f"goodput with one BDP: ACKs every {worst} ms, divided by that without aggregation",
            at(_ONE, worst),
            at(_ONE, 0),
            least=0,
            most=0.8,
            shape=False,
        ),
        Statement("cwnd_gain of two avoids stalls").more(
            f"goodput with two BDP divided by that with one, ACKs every {worst} ms",
            at(_TWO, worst),
            at(_ONE, worst),
            least=1.1,
        ),
        Statement("continue sending smoothly at the estimated delivery rate").shape(
            "goodput with two BDP without aggregation", at(_TWO, 0), least=90, unit="Mbit/s"
        ),
    ]


CLAIM = Claim(
    source="Delayed and Stretched ACKs",
    says="When inflight is limited to one BDP, this results in throughput-reducing stalls. Raising "
    "ProbeBW's cwnd_gain to two allowed BBR to continue sending smoothly at the estimated delivery rate, "
    "even when ACKs are delayed by up to one RTT.",
    grid=Grid(
        factors={"controller": (_TWO, _ONE), "every_ms": (0, 5, 10, 20, 30, 40), "seconds": (30,)},
        quick={"every_ms": (0, 20, 40)},
        tiny={"every_ms": (0, 40), "seconds": (2,)},
        document=_document,
    ),
    look_at="How far apart are the lines at one RTT (40 ms)?",
)
