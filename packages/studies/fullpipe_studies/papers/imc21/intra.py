"""Fairness among flows of one kind, at the core and at the edge.

Question: how fair are thousands of flows of one controller to each other?
Method: 1000 or 5000 flows of Reno, CUBIC or BBRv1 for 600 s on 10 Gbit/s with a buffer of 375 MB ("core"),
and 10 or 50 on 100 Mbit/s with 3 MB ("edge"); RTTs of 20 and 100 ms. Jain's index over goodput after 200 s.
Prediction: Reno and CUBIC are fair at both scales, BBR at the edge only.

The finding is the paper's. Ours: an index of at least 0.9 is high and one of at most 0.8 poor, for some
number of flows and RTT; BBR's is below CUBIC's at the core, and below its own at the edge, on average over
all of them (direction). The replication found 0.95 and more for Reno and CUBIC, and 0.64 to 1.00 for BBR at
the core: 1.00 with 20 ms, 0.64 with 5000 flows and 100 ms.

Changed after a first short form was seen, and before any full one: 9 s were too short for all controllers
at both scales, because one flow keeps what its slow start won until the first loss. So 60 s became 600, for
which 3000 flows and an RTT of 200 ms were left out; the short form has 60 s.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts, layers, sharing
from fullpipe_studies.claim import (
    Check,
    Claim,
    Data,
    Grid,
    Row,
    Statement,
    Trial,
    Values,
    number,
)
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc21 import _scale

_CONTROLLERS = ("reno", "cubic", "bbr1")
_HIGH, _POOR = 0.9, 0.8
_FAIR_SAID = Statement("high intra-CCA fairness in CoreScale")
_POOR_SAID = Statement(
    "poor intra-CCA fairness in CoreScale, contradicting previous research in the edge setting"
)


def _document(scale: str, controller: str, flows: int, rtt_ms: int, seconds: int) -> dict[str, Any]:
    many = {"controller": controller, "count": _scale.count(scale, flows)}
    return _scale.document(scale, [many], rtt_ms, seconds)


def measure(trial: Trial) -> Row:
    by_flow = sharing.rates(trial.run, _scale.begin(trial.factors["seconds"]))
    ordered = sorted(by_flow.values())
    tenth = max(1, len(ordered) // 10)
    total = math.fsum(ordered)
    return {
        "jain": sharing.jain(ordered),
        # What the tenth of the flows with the least has together; fair is 10 %.
        "poorest_pct": 100 * math.fsum(ordered[:tenth]) / total if total else None,
        "richest_pct": 100 * math.fsum(ordered[-tenth:]) / total if total else None,
        "used_gbps": total / 1e3,
    }


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = charts.means(data, ["scale", "controller", "flows", "rtt_ms"], "jain").with_columns(
        pl.format("{}, {} ms", pl.col("scale"), pl.col("rtt_ms")).alias("panel")
    )

    def panel(part: Data) -> Any:
        def draw(ours: pl.DataFrame, _panel: Any) -> Any:
            x = alt.X("flows:Q", title="flows (core: hundreds)")
            return charts.points(ours, x, "Jain's index", charts.controllers(ours), domain=[0, 1])

        names = [f"{scale}, {rtt} ms" for rtt in _scale.RTTS_MS for scale in (_scale.CORE, _scale.EDGE)]
        return layers.panels(layers.of(frame, part), "panel", {name: name for name in names}, draw)

    return charts.worlds(data, panel, "Fairness among flows of one kind", "core: 10 Gbit/s; edge: 100 Mbit/s")


def judge(data: Data) -> list[Check]:
    def index(controller: str, scale: str) -> Values:
        return data.values("jain", controller=controller, scale=scale)

    core = index("bbr1", _scale.CORE)

    def lowest(runs: pl.DataFrame) -> float:
        low = min(runs["jain"].drop_nulls().to_list(), default=0.0)
        return float(low) if low > 0 else math.nan

    worst = data.each_seed(lowest, controller="bbr1", scale=_scale.CORE)
    checks = [
        _FAIR_SAID.shape(f"Jain's index of {name} at the core", index(name, _scale.CORE), least=_HIGH)
        for name in ("reno", "cubic")
    ]
    return [
        *checks,
        _POOR_SAID.more(
            "Jain's index at the core, CUBIC's divided by BBR's", index("cubic", _scale.CORE), core
        ),
        _POOR_SAID.more(
            "Jain's index of BBR, at the edge divided by at the core", index("bbr1", _scale.EDGE), core
        ),
        _POOR_SAID.within(
            "Jain's index of BBR at the core, the least of all RTTs and numbers of flows", worst, most=_POOR
        ),
        _POOR_SAID.within("Jain's index of BBR at the edge", index("bbr1", _scale.EDGE), least=_HIGH),
    ]


def explain(data: Data) -> list[str]:
    facts = []
    for name in _CONTROLLERS:
        for rtt_ms in sorted(data.runs["rtt_ms"].unique().to_list()):
            where = {"controller": name, "rtt_ms": rtt_ms, "scale": _scale.CORE}
            index, poor, rich = data.means("jain", "poorest_pct", "richest_pct", **where)
            if not math.isnan(index):
                facts.append(
                    f"{name} at the core, {rtt_ms} ms: index {number(index)}; the poorest tenth of the flows "
                    f"has {number(poor, 2)} % of the goodput, the richest {number(rich, 2)} %."
                )
    return facts


CLAIM = Claim(
    source="finding on intra-CCA fairness",
    says="NewReno and Cubic show high intra-CCA fairness in CoreScale, in line with past research. BBR shows "
    "poor intra-CCA fairness in CoreScale, contradicting previous research in the edge setting.",
    grid=Grid(
        factors={
            "scale": (_scale.CORE, _scale.EDGE),
            "controller": _CONTROLLERS,
            "flows": _scale.FLOWS,
            "rtt_ms": _scale.RTTS_MS,
            "seconds": (600,),
        },
        quick={"flows": (10,), "rtt_ms": (20,), "seconds": (60,)},
        tiny={"flows": (10,), "rtt_ms": (20,), "seconds": (2,)},
        document=_document,
    ),
    look_at="Which lines on the left are lower than those on the right?",
    seeds=3,
)
