"""A short flow beside a long one.

Question: how long does a short transfer take that begins while a long NewReno flow fills the queue?
Method: a long NewReno flow on 10 Mbit/s, 100 ms; at a random time from 15 to 28 s another one sends 20 or
80 packets, beginning with ten segments. The RFC has initial windows of three and ten, and sizes from 10 to
100 packets.
Prediction: the transfer takes less time than with a FIFO under every discipline, the least under FQ-
CoDel, and the long flow keeps 90 % of its goodput.

In its first form, the transfer always began at 15 s, just after the FIFO's queue had emptied. The limits are
as they were.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

_SMALL, _LARGE = 20, 80
_SEGMENT = 1448
# The short flow begins at a random time of the long one's cycle, which takes 13 s with a FIFO.
_BEGIN_S, _WITHIN_S = 15, 13


def _document(discipline: str, packets: int, seconds: int) -> dict[str, Any]:
    begin = min(_BEGIN_S, seconds / 2)
    within_s = min(_WITHIN_S, seconds / 4)
    flows = [
        {"controller": "reno", "label": "long"},
        {
            "controller": "reno",
            "label": "short",
            "size": f"{packets * _SEGMENT} B",
            "start": f"{begin} s",
            "start_jitter": f"{within_s} s",
        },
    ]
    return _bench.document(flows, discipline, seconds)


def measure(trial: Trial) -> Row:
    short = take.flow(trial.run, "short")
    return {**_bench.point(trial, "long"), "completion_ms": short["completion_ms"]}


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        made = []
        for packets in sorted(set(part.runs["packets"].to_list())):
            frame = part.runs.filter(pl.col("packets") == packets)
            title = f"{packets} packets"
            made.append(_bench.boxes(frame, "completion_ms", "completion time, ms", title))
        return _bench.panels(*made)

    return charts.worlds(data, panel, "A short flow beside a long one", "10 Mbit/s, 100 ms, NewReno")


def judge(data: Data) -> list[Check]:
    checks = []
    for packets in (_SMALL, _LARGE):
        for name in _bench.MANAGED:
            where = f", {packets} packets"
            checks.append(_bench.less(data, "completion time", "completion_ms", name, where, packets=packets))
            if name != "fq_codel":
                checks.append(
                    Statement("nothing").more(
                        f"completion time of {name} divided by that of fq_codel, {packets} packets",
                        *(
                            data.values("completion_ms", discipline=one, packets=packets)
                            for one in (name, "fq_codel")
                        ),
                        shape=False,
                    )
                )
            what = "goodput of the long flow"
            checks.append(_bench.kept(data, name, where, what=what, packets=packets))
    return own(*checks)


CLAIM = Claim(
    source="section 5.1.2",
    says="This scenario can be used to evaluate how an AQM scheme adapts to a traffic mix consisting of "
    "TCP flows "
    "with different values of the IW.",
    grid=Grid(
        factors={
            "discipline": _bench.DISCIPLINES,
            "packets": (_SMALL, _LARGE),
            "seconds": (35,),
        },
        tiny={"seconds": (8,)},
        document=_document,
    ),
    look_at="Which boxes are below the FIFO's? A box with a high end has transfers that lost their last "
    "packets.",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
