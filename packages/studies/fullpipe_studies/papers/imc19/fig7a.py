"""The cliff point under random loss.

Question: at what loss rate does BBR's goodput collapse, and does its probing gain decide that?
Method: one flow for 60 s on 100 Mbit/s, 25 ms, 10 MB of buffer, random loss of 0 to 50 %. The controllers
are Reno, CUBIC, BBR, and BBR with probing gains of 1.1 and 1.5; BBR and BBR_1.5 also run without the
policer detector. The cliff is the loss rate at which goodput falls below half of link rate times (1 - p).
Prediction: the cliff is at 1 - 1/gain: 20 % for BBR and 9 % for BBR_1.1. BBR_1.5's is well before 33 %,
because BBR takes a loss rate above 20 % for a policer.
"""

import math
from collections.abc import Sequence
from typing import Any

import polars as pl

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Statement, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _loss, _testbed

# A cliff agrees with the paper's within this many percentage points of loss.
_NEAR_PCT = 3.0


def figure(data: Data) -> "alt.TopLevelMixin":
    frame = _loss.drawn(data, "goodput_mbps")

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        x = alt.X("loss_pct:Q", title="loss rate, %", scale=alt.Scale(domain=[0, 50]))
        there = [gain for name, gain in _loss.GAINS.items() if name in ours["controller"]]
        cliffs = pl.DataFrame({"loss_pct": [_loss.cliff_pct(gain) for gain in there]})
        predicted = (
            alt.Chart(charts.values(cliffs))
            .mark_rule(strokeDash=[4, 3], strokeWidth=1, color="#79818d")
            .encode(x=x)
        )
        lines = charts.points(
            ours, x, "goodput, Mbit/s", _loss.colours(ours), dash=_loss.dashes(ours), domain=[0, 100]
        )
        return alt.layer(predicted, lines).properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(
        data, panel, "Goodput under random loss", "100 Mbit/s, 25 ms, 10 MB; dashed: 1 − 1/gain for each gain"
    )


def judge(data: Data) -> list[Check]:
    found = {name: _loss.cliffs_pct(data, name) for name in _loss.NAMES}
    bbr, low, high = (found[name] for name in ("bbr1", "bbr1:probe_gain=1.1", "bbr1:probe_gain=1.5"))

    def goodput(controller: str, loss: float) -> list[float]:
        return data.values("goodput_mbps", controller=controller, loss_pct=loss)

    checks = [
        Statement("around 20 %").within(
            "BBR's cliff",
            bbr,
            least=_loss.cliff_pct(1.25) - _NEAR_PCT,
            most=_loss.cliff_pct(1.25) + _NEAR_PCT,
            unit="%",
        ),
        *(
            Statement("goodput decreases significantly even under moderate loss").more(
                f"BBR's goodput divided by {_loss.NAMES[name]}'s at 1 % loss",
                goodput("bbr1", 1),
                goodput(name, 1),
                least=2,
            )
            for name in ("reno", "cubic")
        ),
        Statement("an abrupt drop between them").more(
            "BBR's goodput at 10 % loss divided by that at 30 %",
            goodput("bbr1", 10) or goodput("bbr1", 9),
            goodput("bbr1", 30) or goodput("bbr1", 28),
            least=4,
        ),
    ]
    if low or high:
        checks += [
            Statement("around 9 %").within(
                "BBR_1.1's cliff",
                low,
                least=_loss.cliff_pct(1.1) - _NEAR_PCT,
                most=_loss.cliff_pct(1.1) + _NEAR_PCT,
                unit="%",
            ),
            Statement("20 % and 9 %").more("BBR's cliff divided by BBR_1.1's", bbr, low, least=1.3),
            Statement("much before the predicted 33 %").shape(
                "BBR_1.5's cliff", high, most=_loss.cliff_pct(1.5) - 5, unit="%"
            ),
            Statement("because loss is taken for policing").more(
                "BBR_1.5's cliff without the policer detector divided by that with it",
                found["bbr1:probe_gain=1.5,lt_bw=0"],
                high,
                least=1.2,
            ),
        ]
    return checks


def explain(data: Data) -> list[str]:
    facts = []
    for setup, there in data.setups.items():
        found = [_mean(_loss.cliffs_pct(there, name)) for name in _loss.GAINS]
        if all(map(math.isfinite, found)):
            cliffs = ", ".join(
                f"{_loss.NAMES[name]} {number(cliff)} %"
                for name, cliff in zip(_loss.GAINS, found, strict=True)
            )
            facts.append(f"{setup}: {cliffs}.")
    if facts:
        facts.insert(0, "netem loses a host's burst whole. The cliffs by set-up:")
    for name in ("bbr1", "bbr1:probe_gain=1.5"):
        off = "bbr1:lt_bw=0" if name == "bbr1" else f"{name},lt_bw=0"
        with_it, without = (_loss.cliffs_pct(data, one) for one in (name, off))
        known = [one for one in (*with_it, *without) if math.isfinite(one)]
        if with_it and without and len(known) == len(with_it) + len(without):
            facts.append(
                f"{_loss.NAMES[name]} has its cliff at {number(sum(with_it) / len(with_it))} % with the "
                f"policer detector and at {number(sum(without) / len(without))} % without it; equation (3) "
                f"gives {number(_loss.cliff_pct(_loss.GAINS[name]))} %. The detector divides losses by "
                f"deliveries, so its threshold is a loss rate of {number(_loss.DETECTED_PCT)} %."
            )
    return facts


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan


CLAIM = Claim(
    source="figure 7(a)",
    says="For loss-based algorithms goodput decreases significantly even under moderate loss rates. BBR and "
    "BBR_1.1 exhibit a drop in goodput around 20% and 9% loss rates. BBR_1.5 exhibits its cliff point much "
    "before the predicted 33%, because BBR considers a >20% loss rate a signal of policing.",
    worlds=("sim", "kernel"),
    grid=_loss.GRID,
    measure=_loss.measure,
    look_at="At which loss rate does each BBR leave the top? BBR_1.5 should not reach the last dashed line.",
    seeds=5,
    setups=_testbed.setups(_testbed.MININET, seeds=3),
)
