"""How accurate the emulator is: how late packets are at each rate, and what a full link delivers."""

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt
import polars as pl

from fullpipe import files
from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import picture
from fullpipe.report.figures.svg import png as as_png
from fullpipe.runs.worlds.kernel_check import (
    MEDIAN_TOLERANCE_NS,
    TOLERANCES,
    Measured,
    RateVerdict,
    mbit,
)
from fullpipe.runs.worlds.kernel_trust import Trust

_QUANTILES = {"p50_ns": "median", "p99_ns": "99 %", "max_ns": "most"}
_LOADS = {"light": "a fifth of the rate", "heavy": "one and a half times the rate"}
_COLOURS = ("#0072b2", "#d55e00", "#79818d")
# A logarithmic axis has no zero.
_LEAST_MS = 0.001
_PNG_SCALE = 2


def write(verdicts: Sequence[RateVerdict], found: Trust, folder: Path) -> None:
    """Writes the figure, the measures, and every packet."""
    rates = [one.to_json() for one in verdicts]
    message = {**found.to_json(), "tolerances": TOLERANCES, "rates": rates}
    files.write(folder, "check.json", json.dumps(message, indent=2).encode())
    files.write(folder, "packets.parquet", files.parquet(packets(verdicts)))
    svg = picture(figure(verdicts, found).to_dict())
    files.write(folder, "emulator.svg", svg.encode())
    files.write(folder, "emulator.png", as_png(svg, scale=_PNG_SCALE))


def packets(verdicts: Sequence[RateVerdict]) -> pl.DataFrame:
    """Every packet: its rate, load and number, and when it was sent, received and due, in nanoseconds.

    `received_ns` is null if it did not arrive, `due_ns` if the queue dropped it. `expected` says whether it
    should have arrived, by the path model.
    """
    return pl.concat(_packets(one) for verdict in verdicts for one in (verdict.light, verdict.heavy))


def _packets(of: Measured) -> pl.DataFrame:
    numbers = array("q", of.trips).tolist()
    columns = {
        name: pl.Series(numbers[at::4], dtype=pl.Int64)
        for at, name in enumerate(("sent_ns", "received_ns", "due_ns", "expected"))
    }
    never = [pl.col(name).replace(-1, None) for name in ("received_ns", "due_ns")]
    frame = pl.DataFrame(columns).with_columns(*never, pl.col("expected").cast(pl.Boolean))
    about = [pl.lit(of.probe.rate_bps).alias("rate_bps"), pl.lit(of.probe.load).alias("load")]
    return frame.with_row_index("number").select(*about, pl.all())


def figure(verdicts: Sequence[RateVerdict], found: Trust) -> alt.HConcatChart:
    """Draws it."""
    rates = [mbit(one.rate_bps) for one in verdicts]
    chart: alt.HConcatChart = (
        alt.hconcat(_lateness(verdicts, rates), _delivery(verdicts, rates), spacing=48)
        .resolve_scale(color="independent")
        .properties(
            title=alt.TitleParams("Is the emulator accurate?", subtitle=[found.statement, found.conditions])
        )
        .configure(**theme.config())
    )
    return chart


def _lateness(verdicts: Sequence[RateVerdict], rates: list[str]) -> alt.LayerChart:
    rows = [
        {
            "rate": mbit(one.rate_bps),
            "load": _LOADS[of.probe.load],
            "what": title,
            "ms": max(_LEAST_MS, of.measures["late"][quantile] / 1e6),
        }
        for one in verdicts
        for of in (one.light, one.heavy)
        if of.measures["late"]
        for quantile, title in _QUANTILES.items()
    ]
    limits = [MEDIAN_TOLERANCE_NS / 1e6, verdicts[0].light.measures["lateness_limit_ns"] / 1e6]
    allowed = [
        {"ms": limit, "said": title}
        for limit, title in zip(limits, ("median allowed", "99 % allowed"), strict=True)
    ]
    rules = alt.Chart(alt.InlineData(values=allowed)).encode(
        y="ms:Q", tooltip=["said:N", alt.Tooltip("ms:Q", title="ms")]
    )
    texts = rules.mark_text(align="left", baseline="middle", dx=4, fontSize=10, color=theme.QUIET)
    points = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(size=70, filled=True)
        .encode(
            x=alt.X("rate:N", sort=rates, title="asked", axis=alt.Axis(labelAngle=0, labelFontSize=10)),
            xOffset=alt.XOffset("load:N", sort=list(_LOADS.values())),
            y=alt.Y("ms:Q", title="late, ms", scale=alt.Scale(type="log")),
            color=_colour("what", list(_QUANTILES.values()), list(_COLOURS)),
            shape=alt.Shape(
                "load:N",
                sort=list(_LOADS.values()),
                legend=alt.Legend(orient="bottom", title="sent at", labelLimit=300),
            ),
            tooltip=["rate:N", "load:N", "what:N", alt.Tooltip("ms:Q", format=".3f")],
        )
    )
    lines = rules.mark_rule(color=theme.QUIET, strokeDash=[4, 3])
    chart: alt.LayerChart = alt.LayerChart(
        layer=[lines, texts.encode(x=alt.value("width"), text="said:N"), points]
    ).properties(width=460, height=280, title=_small("How late packets arrive"))
    return chart


def _delivery(verdicts: Sequence[RateVerdict], rates: list[str]) -> alt.LayerChart:
    rows: list[dict[str, Any]] = [
        {"rate": mbit(one.rate_bps), "time_s": at_ns / 1e9, "percent": 100 * bps / one.rate_bps}
        for one in verdicts
        for at_ns, bps in one.heavy.measures["received_over_time"]
    ]
    means = [
        {"rate": mbit(one.rate_bps), "percent": 100 * bps / one.rate_bps}
        for one in verdicts
        if (bps := one.heavy.measures["received_bps"]) is not None
    ]
    x = alt.X("rate:N", sort=rates, title="asked", axis=alt.Axis(labelAngle=0, labelFontSize=10))
    y = alt.Y("percent:Q", title="delivered, % of the rate", scale=alt.Scale(zero=False))
    pieces = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(size=40, opacity=0.35, color=_COLOURS[0])
        .encode(
            x=x,
            y=y,
            tooltip=["rate:N", alt.Tooltip("time_s:Q", format=".1f"), alt.Tooltip("percent:Q", format=".2f")],
        )
    )
    wholes = (
        alt.Chart(alt.InlineData(values=means))
        .mark_tick(color=_COLOURS[1], thickness=2, size=34)
        .encode(x=x, y=y, tooltip=["rate:N", alt.Tooltip("percent:Q", format=".3f")])
    )
    asked = alt.Chart(alt.InlineData(values=[{"percent": 100}])).mark_rule(
        color=theme.QUIET, strokeDash=[4, 3]
    )
    title = "Delivered at one and a half times the rate: per tenth of a second, and overall"
    chart: alt.LayerChart = alt.LayerChart(
        layer=[asked.encode(y=alt.Y("percent:Q")), pieces, wholes]
    ).properties(width=400, height=280, title=_small(title))
    return chart


def _colour(field: str, domain: list[str], colours: list[str]) -> alt.Color:
    scale = alt.Scale(domain=domain, range=colours[: len(domain)])
    return alt.Color(f"{field}:N", scale=scale, legend=alt.Legend(orient="bottom", title=None))


def _small(text: str) -> alt.TitleParams:
    return alt.TitleParams(text, fontSize=12, fontWeight=500, offset=8)
