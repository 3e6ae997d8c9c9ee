"""The interest of marks.

Question: what do ECN marks change in the test of RTT fairness?
Method: as `rttfair`, with RTTs of 20, 100 and 200 ms, with and without ECN in the hosts. A FIFO never
marks.
Prediction: with ECN, each discipline has at most a tenth of the retransmissions, and no less goodput (at
least 98 %).
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Grid, Statement, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench, _fair

_OFF, _ON = "off", "on"


def _document(discipline: str, ecn: str, rtt_ms: int, seconds: int) -> dict[str, Any]:
    return _fair.document(discipline, rtt_ms, seconds, ecn=ecn == _ON)


measure = _fair.measure


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("ecn:N", title=None, sort=[_OFF, _ON])
        base = alt.Chart(charts.values(part.runs)).encode(x=x, color=_bench.colour())
        made = []
        for column, title in (
            ("retransmits", "retransmissions"),
            ("goodput_mbps", "goodput of both, Mbit/s"),
        ):
            y = alt.Y(f"mean({column}):Q", title=title, scale=alt.Scale(zero=column == "retransmits"))
            made.append(_bench.titled(base.mark_line(point=True).encode(y=y), title))
        return _bench.panels(*made)

    return charts.worlds(
        data, panel, "The interest of marks", "two NewReno flows, 10 Mbit/s, without and with ECN"
    )


def judge(data: Data) -> list[Check]:
    checks = []
    for name in _bench.MANAGED:
        off, on = (data.each_seed(_retransmits, discipline=name, ecn=ecn) for ecn in (_OFF, _ON))
        checks.append(
            Statement(
                "marking packets instead of dropping them reduces the number of packet retransmissions"
            ).more(f"{name}: retransmissions without ECN divided by those with it", off, on, least=10)
        )
        without, with_ = (data.values("goodput_mbps", discipline=name, ecn=ecn) for ecn in (_OFF, _ON))
        checks.append(
            Statement("marking packets instead of dropping them ... increases goodput").within(
                f"{name}: goodput with ECN", with_.over(without, 100), least=98, unit="% of that without"
            )
        )
    return own(*checks)


def _retransmits(runs: pl.DataFrame) -> float:
    """The mean over round-trip times; NaN if there is none."""
    mean = runs["retransmits"].mean()
    return float(mean) if isinstance(mean, int | float) else math.nan


CLAIM = Claim(
    source="sections 4.5 and 2.5",
    says="Marking packets instead of dropping them reduces the number of packet retransmissions and "
    "increases goodput.",
    grid=Grid(
        factors={
            "discipline": _bench.MANAGED,
            "ecn": (_OFF, _ON),
            "rtt_ms": (20, _fair.EQUAL, 200),
            "seconds": (60,),
        },
        quick={"rtt_ms": (20, _fair.EQUAL), "seconds": (40,)},
        tiny={"rtt_ms": (20,), "seconds": (6,)},
        document=_document,
    ),
    look_at="Do retransmissions fall to about zero, and does any goodput fall?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
