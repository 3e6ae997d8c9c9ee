"""Goodput of one flow under random loss on the report's path; several claims use it.

Mahimahi's queue is unlimited. The buffer of 100 MB is more than any flow here can fill in a minute.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts, take
from fullpipe_studies.claim import Data, Grid, Row, Trial
from fullpipe_studies.later import alt

LOSSES_PCT = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 2, 5, 10, 15, 20, 30, 50)
_SHORT_PCT = (0.001, 0.01, 0.1, 1, 2, 5, 15, 50)


def _document(controller: str, loss_pct: float, rate_mbps: int, seconds: int) -> dict[str, Any]:
    return {
        "duration": f"{seconds} s",
        "path": {
            "rate": f"{rate_mbps} Mbit/s",
            "rtt": "100 ms",
            "buffer": "100 MB",
            "loss": f"{loss_pct} %",
        },
        "flows": [{"controller": controller}],
        "record": {"series": False},
    }


def grid(
    controllers: Sequence[str],
    rates_mbps: Sequence[int] = (100,),
    in_wall_time: Mapping[str, Sequence[Any]] | None = None,
) -> Grid:
    """The sweep; the short form has 8 of the 14 losses and 30 s."""
    return Grid(
        factors={
            "controller": tuple(controllers),
            "loss_pct": LOSSES_PCT,
            "rate_mbps": tuple(rates_mbps),
            "seconds": (60,),
        },
        quick={"loss_pct": _SHORT_PCT, "seconds": (30,)},
        tiny={"loss_pct": (0.1, 15), "seconds": (2,)},
        in_wall_time=in_wall_time or {},
        document=_document,
    )


def measure(trial: Trial) -> Row:
    """Goodput, absolute and relative to what the link can deliver at that loss rate."""
    goodput = take.goodput_mbps(trial.run)
    kept = 1 - trial.factors["loss_pct"] / 100
    return {
        "goodput_mbps": goodput,
        "of_ceiling": goodput / (trial.factors["rate_mbps"] * take.payload_share(trial) * kept),
    }


def figure(title: str, falls_pct: float | None = None) -> "Callable[[Data], alt.TopLevelMixin]":
    """Lines of goodput against loss, one panel a rate; `falls_pct`: where the report sees CUBIC fall."""

    def draw(data: Data) -> "alt.TopLevelMixin":
        def panel(part: Data) -> Any:
            ours = part.runs
            x = alt.X(
                "loss_pct:Q",
                title="loss rate, %",
                scale=alt.Scale(type="log", domain=[0.001, 50], nice=False),
            )
            rates = ours["rate_mbps"].unique().sort(descending=True).to_list()
            falls = alt.Chart(alt.InlineData(values=[{"loss_pct": falls_pct}])).mark_rule(
                strokeDash=[4, 3], color=theme.QUIET
            )
            below = [] if falls_pct is None else [falls.encode(x=x)]
            panels = [
                alt.layer(
                    *below,
                    charts.every_run(
                        ours.filter(pl.col("rate_mbps") == rate),
                        x,
                        "of_ceiling",
                        "goodput, of link rate × (1 − p)",
                        ["controller", "loss_pct"],
                        domain=[0, 1],
                    ),
                ).properties(
                    width=charts.WIDTH,
                    height=charts.HEIGHT,
                    title=alt.TitleParams(f"{rate} Mbit/s", fontSize=12),
                )
                for rate in rates
            ]
            return alt.vconcat(*panels) if len(panels) > 1 else panels[0]

        facts = ["RTT 100 ms, unlimited queue; every run, and lines through the medians"]
        if falls_pct is not None:
            facts.append("dashed: from here on the report’s CUBIC deteriorates")
        return charts.worlds(data, panel, title, facts)

    return draw


def fall_pct(runs: pl.DataFrame) -> float:
    """The lowest loss rate, in %, at which goodput is under half of what the link can deliver; or NaN."""
    fallen = runs.filter(pl.col("of_ceiling") < 0.5)["loss_pct"].min()
    return float(fallen) if isinstance(fallen, int | float) else float("nan")


def falls_pct(data: Data, controller: str, rate_mbps: int) -> list[float]:
    """`fall_pct` of each seed."""
    part = data.runs.filter((pl.col("controller") == controller) & (pl.col("rate_mbps") == rate_mbps))
    return [fall_pct(runs) for _, runs in part.group_by("seed", maintain_order=True)]
