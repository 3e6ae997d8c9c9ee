"""An unresponsive sender.

Question: does each discipline keep the delay low when a sender ignores congestion, and what is left for
NewReno?
Method: a sender that keeps its rate whatever is lost: alone at 12 Mbit/s on 10 Mbit/s (first scenario),
and at 7 Mbit/s beside a NewReno flow (second scenario); 100 ms. It stands for UDP, but retransmits what
is lost.
Prediction: alone, every discipline has less delay than the FIFO. Beside NewReno, too; only FQ-CoDel gives
NewReno over 4 of the 5 Mbit/s that are its half.
"""

from typing import Any

import polars as pl

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Grid, Row, Statement, Trial, own
from fullpipe_studies.later import alt
from fullpipe_studies.papers.rfc7928 import _bench

_ALONE, _MIXED = "alone", "mixed"
# Application rates. Headers add 4 %.
_OVER_MBPS, _PART_MBPS = 12, 7
_HALF_MBPS = 4.0


def _document(discipline: str, scenario: str, seconds: int) -> dict[str, Any]:
    rate = _OVER_MBPS if scenario == _ALONE else _PART_MBPS
    flows = [{"controller": f"fixed:rate={rate}", "label": "deaf"}]
    if scenario == _MIXED:
        flows.append({"controller": "reno", "label": "reno"})
    return _bench.document(flows, discipline, seconds)


def measure(trial: Trial) -> Row:
    row = {"deaf_mbps": _bench.point(trial, "deaf")["goodput_mbps"], **_bench.waits(trial)}
    if trial.factors["scenario"] == _MIXED:
        row |= _bench.point(trial, "reno")
    return {"goodput_mbps": None, "delay_ms": None, **row}


def figure(data: Data) -> "alt.TopLevelMixin":
    def panel(part: Data) -> Any:
        alone, mixed = (part.runs.filter(pl.col("scenario") == one) for one in (_ALONE, _MIXED))
        return _bench.panels(
            _bench.ellipses(alone, f"alone, {_OVER_MBPS} Mbit/s", x="queue_ms", y="deaf_mbps"),
            _bench.ellipses(mixed, "mixed: the unresponsive flow", x="queue_ms", y="deaf_mbps"),
            _bench.ellipses(mixed, "mixed: NewReno"),
        )

    return charts.worlds(
        data, panel, "An unresponsive sender", "10 Mbit/s, 100 ms; 1-sigma ellipses over runs"
    )


def judge(data: Data) -> list[Check]:
    checks = [
        _bench.less(data, "delay", "queue_ms", name, f", {scenario}", scenario=scenario)
        for scenario in (_ALONE, _MIXED)
        for name in _bench.MANAGED
    ]
    for name in _bench.DISCIPLINES:
        fair = name == "fq_codel"
        ours = data.values("goodput_mbps", discipline=name, scenario=_MIXED)
        checks.append(
            Statement("keep the responsive fraction under control").within(
                f"{name}: goodput of NewReno beside the unresponsive flow",
                ours if min(ours, default=0) > 0 else [],
                unit="Mbit/s",
                least=_HALF_MBPS if fair else None,
                most=None if fair else _HALF_MBPS,
            )
        )
    return own(*checks)


CLAIM = Claim(
    source="section 5.3",
    says="The first scenario can be used to evaluate queue build up. ... The second scenario can be used to "
    "evaluate if the AQM scheme is able to keep the responsive fraction under control.",
    grid=Grid(
        factors={
            "discipline": _bench.DISCIPLINES,
            "scenario": (_ALONE, _MIXED),
            "seconds": (60,),
        },
        quick={"seconds": (30,)},
        tiny={"seconds": (6,)},
        document=_document,
    ),
    look_at="Which disciplines hold the delay against a sender that does not listen, and which leave "
    "NewReno a share?",
    subject=_bench.MANAGED,
    wrong=_bench.UNMANAGED,
    seeds=_bench.SEEDS,
    quick_seeds=_bench.QUICK_SEEDS,
)
