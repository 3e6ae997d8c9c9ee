"""Retransmissions at the cliff.

Question: at which loss rate does BBR retransmit most segments?
Method: the runs of figure 7(a): 60 s on 100 Mbit/s, 25 ms, 10 MB of buffer, random loss of 0 to 50 %.
Prediction: at its cliff: below it the rate is constant and the loss grows, beyond it the rate falls.
"""

import math
from typing import Any

import polars as pl

from fullpipe_studies import charts
from fullpipe_studies.claim import Check, Claim, Data, Statement, number
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19 import _loss, _testbed

# The peak counts as at the cliff within this many percentage points of loss.
_NEAR_PCT = 5.0


def figure(data: Data) -> "alt.TopLevelMixin":
    # The worlds' runs differ in length.
    a_second = pl.col("mean", "low", "high") / pl.col("seconds")
    frame = _loss.drawn(data, "retransmits").with_columns(a_second)

    def panel(part: Data) -> Any:
        ours = frame.filter(pl.col("world") == part.worlds[0])
        x = alt.X("loss_pct:Q", title="loss rate, %", scale=alt.Scale(domain=[0, 50]))
        lines = charts.points(
            ours, x, "retransmitted segments per second", _loss.colours(ours), dash=_loss.dashes(ours)
        )
        return lines.properties(width=charts.WIDTH, height=charts.HEIGHT)

    return charts.worlds(data, panel, "Retransmissions under random loss", "100 Mbit/s, 25 ms, 10 MB")


def judge(data: Data) -> list[Check]:
    checks = []
    for name in _loss.GAINS:
        peaks, cliffs = _loss.peaks_pct(data, name), _loss.cliffs_pct(data, name)
        if not peaks:
            continue  # A stock kernel has one gain.
        checks.append(
            Statement("around the loss rate cliff point").shape(
                f"Distance of {_loss.NAMES[name]}'s peak from its cliff",
                [abs(peak - cliff) for peak, cliff in zip(peaks, cliffs, strict=True)],
                most=_NEAR_PCT,
                unit="points of loss",
            )
        )
    peak = max(data.runs["loss_pct"].unique().to_list(), key=lambda loss: _mean(data, loss))
    checks += [
        Statement("around 20 %").within(
            "Loss rate with BBR's most retransmissions",
            _loss.peaks_pct(data, "bbr1"),
            least=_loss.cliff_pct(1.25) - _NEAR_PCT,
            most=_loss.cliff_pct(1.25) + _NEAR_PCT,
            unit="%",
        ),
        Statement("after the cliff fewer retransmissions").more(
            "BBR's retransmissions at the peak divided by those at the highest loss rate",
            data.values("retransmits", controller="bbr1", loss_pct=peak),
            data.values("retransmits", controller="bbr1", loss_pct=data.most("loss_pct")),
            least=2,
        ),
        *(
            Statement("BBR's are the most").more(
                f"BBR's retransmissions at the peak divided by {_loss.NAMES[name]}'s",
                data.values("retransmits", controller="bbr1", loss_pct=peak),
                data.values("retransmits", controller=name, loss_pct=peak),
                least=10,
            )
            for name in ("reno", "cubic")
        ),
    ]
    return checks


def explain(data: Data) -> list[str]:
    peaks, cliffs = (find(data, "bbr1") for find in (_loss.peaks_pct, _loss.cliffs_pct))
    if not peaks or not all(math.isfinite(one) for one in cliffs):
        return []
    return [
        f"BBR's peak is at {number(sum(peaks) / len(peaks))} % because its cliff is at "
        f"{number(sum(cliffs) / len(cliffs))} %; figure 7(a) explains why that is below 20 %."
    ]


def _mean(data: Data, loss: float) -> float:
    value = data.mean("retransmits", controller="bbr1", loss_pct=loss)
    return value if value == value else -1.0  # NaN is not a peak.


CLAIM = Claim(
    source="figure 7(b)",
    says="BBR reaches its peak retransmissions around the loss rate cliff point: before it the goodput is "
    "stable but the loss rate is increasing; after it, goodput decreases, resulting in fewer packets "
    "sent.",
    worlds=("sim", "kernel"),
    grid=_loss.GRID,
    measure=_loss.measure,
    look_at="At which loss rate is each peak?",
    seeds=5,
    setups=_testbed.setups(_testbed.MININET, seeds=3),
)
