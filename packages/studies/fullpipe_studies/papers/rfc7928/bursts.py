"""Burst absorption.

Question: do web pages and frames of video get through each discipline as quickly as through a FIFO, and
how long do they wait behind bulk traffic?
Method: the four cases of the RFC's figure 2 on 10 Mbit/s, 100 ms: web (six connections with 45 objects of
10 KB each, five pages of 54 objects), constant-rate traffic of 0.6 Mbit/s, and with or without video
(frames of 20 KB, 25 a second) and a bulk NewReno flow. The frames are sent by a sender that ignores
congestion.
Prediction: beside bulk traffic, the web takes less time than with a FIFO under every discipline (cases II
and IV). Without it, bursts alone cost at most 10 % more time (cases I and III).
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts, take
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

# The cases of figure 2: video, bulk.
_CASES = {"I": (False, False), "II": (False, True), "III": (True, False), "IV": (True, True)}
_CONNECTIONS, _OBJECTS = 6, 45
_BEGIN_S = 5


def _document(discipline: str, case: str, objects: int) -> dict[str, Any]:
    video, bulk = _CASES[case]
    page = [{"size": "10 kB"}] * objects
    flows: list[dict[str, Any]] = [
        {
            "controller": "reno",
            "label": "web",
            "count": _CONNECTIONS,
            "transfers": page,
            "start": f"{_BEGIN_S} s",
        },
        {"controller": "fixed:rate=0.6", "label": "cbr"},
    ]
    if video:
        frames = {"size": "20 kB", "every": "40 ms"}
        flows.append({"controller": "fixed:cwnd=1000", "label": "video", "bursts": frames})
    if bulk:
        flows.append({"controller": "reno", "label": "bulk"})
    return _bench.document(flows, discipline, 90 if objects == _OBJECTS else 12, interval_ms=50)


def measure(trial: Trial) -> Row:
    done = [one["completion_ms"] for one in trial.run.summary["flows"] if one["label"].startswith("web")]
    whole = all(one is not None for one in done)
    return {
        "page_s": max(done) / 1e3 if whole else None,
        "delay_ms": _bench.point(trial, "web", after_s=_BEGIN_S)["delay_ms"],
        "dropped": take.grown(take.link(trial.run), "dropped_packets"),
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        made = []
        for case, (video, bulk) in _CASES.items():
            frame = part.runs.filter((pl.col("case") == case) & pl.col("page_s").is_not_null())
            what = f"{case}: web, CBR{', video' if video else ''}{', bulk' if bulk else ''}"
            made.append(_bench.boxes(frame, "page_s", "time of the web, s", what, alt.Scale(zero=False)))
        return _bench.panels(*made)

    return charts.worlds(
        data, panel, "Burst absorption", "10 Mbit/s, 100 ms; the cases of the RFC's figure 2"
    )


def judge(data: Data) -> list[Check]:
    checks = []
    for case, (_, bulk) in _CASES.items():
        for name in _bench.MANAGED:
            if bulk:
                checks.append(
                    _bench.less(data, "time of the web", "page_s", name, f", case {case}", case=case)
                )
            else:
                checks.append(
                    Statement("balancing both aspects").within(
                        f"{name}: time of the web, case {case}",
                        [one for one in _bench.shares(data, "page_s", name, case=case) if one > 0],
                        most=110,
                        unit="% of FIFO's",
                    )
                )
    return own(*checks)


CLAIM = Claim(
    source="section 7",
    says="An AQM scheme ought to bring bursts under control by balancing both aspects -- (1) queuing delay "
    "spikes are "
    "minimized and (2) performance penalties for ongoing flows in terms of packet drops are minimized.",
    grid=Grid(
        factors={
            "discipline": _bench.DISCIPLINES,
            "case": tuple(_CASES),
            "objects": (_OBJECTS,),
        },
        tiny={"objects": (2,)},
        document=_document,
    ),
    look_at="Which boxes are above the FIFO's in cases I and III, and which below in II and IV?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
