"""A mix of traffic.

Question: what does each kind of traffic of a household get under each discipline?
Method: the RFC's example on 10 Mbit/s, 100 ms for 60 s: a call (in one direction), six web downloads
(connections with 30 objects of 10 KB), constant-rate traffic of 0.6 Mbit/s, a video of 2 Mbit/s in chunks
of 4 s, and five bulk NewReno flows. The call is two full packets each 80 ms.
Prediction: under every discipline the call has less delay and the web takes less time than with a FIFO;
under FQ-CoDel the call has less than 10 ms.

The call was one packet each 40 ms when the limits were written. The receiver acknowledged each 40 ms late,
which hid what the call waits in the queue. The limits are as they were.
"""

from typing import Any

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

_WEB, _OBJECTS, _BULK = 6, 30, 5
_BEGIN_S = 10


def _document(discipline: str, seconds: int) -> dict[str, Any]:
    begin = min(_BEGIN_S, seconds / 4)
    page = [{"size": "10 kB"}] * (_OBJECTS if seconds > 10 else 2)
    flows: list[dict[str, Any]] = [
        {"controller": "fixed:cwnd=1000", "label": "call", "bursts": {"size": "2896 B", "every": "80 ms"}},
        {"controller": "reno", "label": "web", "count": _WEB, "transfers": page, "start": f"{begin} s"},
        {"controller": "fixed:rate=0.6", "label": "cbr"},
        {"controller": "reno", "label": "video", "video": {"rate": "2 Mbit/s"}},
        {"controller": "reno", "label": "bulk", "count": _BULK},
    ]
    return _bench.document(flows, discipline, seconds, interval_ms=50)


def measure(trial: Trial) -> Row:
    flows = trial.run.summary["flows"]
    done = [one["completion_ms"] for one in flows if one["label"].startswith("web")]
    bulk = _bench.point(trial, "bulk")
    return {
        "call_ms": _bench.point(trial, "call")["delay_ms"],
        "web_s": max(done) / 1e3 if all(one is not None for one in done) else None,
        "stalls_ms": next(one["rebuffer_ms"] for one in flows if one["label"] == "video"),
        **bulk,
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        made = [_bench.ellipses(part.runs, "bulk: five NewReno flows together")]
        for column, title in (("call_ms", "call: delay, ms"), ("web_s", "web: time, s")):
            made.append(_bench.boxes(part.runs.drop_nulls(column), column, title, title))
        return _bench.panels(*made)

    subtitle = (
        "a call, six web downloads, constant-rate traffic, a video and five bulk flows, 10 Mbit/s, 100 ms"
    )
    return charts.worlds(data, panel, "A mix of traffic", subtitle)


def judge(data: Data) -> list[Check]:
    checks = []
    for name in _bench.MANAGED:
        for column, what in (("call_ms", "delay of the call"), ("web_s", "time of the web")):
            checks.append(_bench.less(data, what, column, name))
    ours = data.values("call_ms", discipline="fq_codel")
    checks.append(
        Statement("nothing").within(
            "fq_codel: delay of the call", ours if min(ours, default=0) > 0 else [], most=10, unit="ms"
        )
    )
    return own(*checks)


CLAIM = Claim(
    source="section 9.1",
    says="This scenario can be used to evaluate how an AQM scheme reacts to a traffic mix consisting of "
    "different "
    "applications.",
    grid=Grid(
        factors={"discipline": _bench.DISCIPLINES, "seconds": (60,)},
        tiny={"seconds": (8,)},
        document=_document,
    ),
    look_at="Which disciplines keep the call's delay low, and at what cost to the bulk flows?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
