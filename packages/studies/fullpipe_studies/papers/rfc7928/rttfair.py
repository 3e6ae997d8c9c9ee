"""Fairness between round-trip times.

Question: does each discipline share the link between flows with different RTTs more evenly than a FIFO?
Method: two long NewReno flows for 60 s on 10 Mbit/s: category I has 100 ms, category II 5 to 560 ms. The
buffer is one BDP of the longer RTT. The ratio of their goodputs is measured from 10 s on.
Prediction: with equal RTTs no discipline is unfair (0.8 to 1.25). FQ-CoDel keeps the ratio between 2/3
and 3/2 from 20 to 200 ms; with a FIFO, the flow with 20 ms gets over 1.5 times the other's goodput.
"""

from typing import Any

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Grid, Statement, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench, _fair

_EVEN = (2 / 3, 3 / 2)


def _document(discipline: str, rtt_ms: int, seconds: int) -> dict[str, Any]:
    return _fair.document(discipline, rtt_ms, seconds, ecn=False)


measure = _fair.measure


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        x = alt.X("rtt_ms:Q", title="RTT of category II, ms", scale=alt.Scale(type="log", domain=[5, 600]))
        y = alt.Y("goodput_mbps:Q", title="goodput of both, Mbit/s", scale=alt.Scale(zero=False))
        return _bench.panels(
            _fair.ratios(part.runs, "how the link is shared"),
            _bench.averages(part.runs, "rtt_ms", "goodput_mbps", x, y, "how much of it is used"),
        )

    return charts.worlds(data, panel, "Fairness between round-trip times", "10 Mbit/s; category I has 100 ms")


def judge(data: Data) -> list[Check]:
    checks = [
        Statement("may cause unfairness between the flows, even if the RTTs are identical").within(
            f"{name}: ratio of the goodputs, equal RTTs",
            data.values("ratio", discipline=name, rtt_ms=_fair.EQUAL),
            least=0.8,
            most=1.25,
        )
        for name in _bench.DISCIPLINES
    ]
    least, most = _EVEN
    checks += [
        Statement("may potentially improve the RTT fairness").shape(
            f"fq_codel: ratio of the goodputs, {rtt} ms to {_fair.EQUAL} ms",
            data.values("ratio", discipline="fq_codel", rtt_ms=rtt),
            least=least,
            most=most,
        )
        for rtt in (20, 50, 200)
    ]
    checks.append(
        Statement("a flow traversing on a shorter RTT path may react faster to congestion").shape(
            f"fifo: ratio of the goodputs, 20 ms to {_fair.EQUAL} ms",
            data.values("ratio", discipline=_bench.FIFO, rtt_ms=20),
            least=most,
        )
    )
    return own(*checks)


CLAIM = Claim(
    source="section 6",
    says="The introduction of AQM schemes may potentially improve the RTT fairness.",
    grid=Grid(
        factors={
            "discipline": _bench.DISCIPLINES,
            "rtt_ms": _fair.RTTS_MS,
            "seconds": (60,),
        },
        quick={"rtt_ms": (20, 50, _fair.EQUAL, 200), "seconds": (40,)},
        tiny={"rtt_ms": (20, _fair.EQUAL), "seconds": (6,)},
        document=_document,
    ),
    look_at="Which curve is the flattest? Where do they cross 1?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
