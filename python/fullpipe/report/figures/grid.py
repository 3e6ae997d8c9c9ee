"""Figures of a grid: a heat map over all cells, and the time series of both worlds on one cell."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import polars as pl

from fullpipe.measures.run import Run
from fullpipe.report.figures import theme
from fullpipe.report.figures.prepare import Panel, Row, goodput_mbps, line

# Beyond this many tolerances, the colour stays the same.
CLIP = 2.0
# Points of one line: a page has some hundred lines.
_POINTS = 240
# Not colours of the theme: the map's own colours do not change with the page's scheme, so text on them must
# not. Fields without colour have the page's ink.
# Not colours of controllers either, because this map is about worlds.
_LABEL, _LESS, _NEUTRAL, _MORE = "#20242a", "#af8dc3", "#f4f1ec", "#7fbf7b"

_LEGEND = alt.Legend(orient="bottom", title=None, symbolType="stroke", symbolStrokeWidth=2)


@dataclass(frozen=True)
class Tile:
    """One field of the heat map."""

    cell: str
    slug: str
    measure: str
    of_tolerance: float | None  # None if the difference is meaningless.
    text: str
    tip: str


def heat_map(tiles: Sequence[Tile], measures: Sequence[str], worlds: Sequence[str]) -> dict[str, Any]:
    """Cells by measures: how far the first world is below (purple) or above (green) the second."""
    names = list(dict.fromkeys(tile.cell for tile in tiles))
    rows = [
        {
            "cell": tile.cell,
            "measure": tile.measure,
            "value": None if tile.of_tolerance is None else max(-CLIP, min(CLIP, tile.of_tolerance)),
            "text": tile.text,
            "tip": tile.tip,
            "link": f"#cell-{tile.slug}",
        }
        for tile in tiles
    ]
    base = alt.Chart(alt.InlineData(values=rows)).encode(
        x=alt.X("measure:N", sort=list(measures), title=None, axis=alt.Axis(orient="top", labelAngle=0)),
        y=alt.Y("cell:N", sort=names, title=None, axis=alt.Axis(labelLimit=400)),
        href="link:N",
        tooltip=[
            alt.Tooltip("cell:N"),
            alt.Tooltip("measure:N"),
            alt.Tooltip("tip:N", title=", ".join(worlds)),
        ],
    )
    # Through a neutral middle: the default interpolation passes through other colours.
    scale = alt.Scale(domain=[-CLIP, 0, CLIP], range=[_LESS, _NEUTRAL, _MORE], clamp=True, interpolate="rgb")
    legend = alt.Legend(title="difference, in tolerances", orient="bottom", gradientLength=260)
    boxes = base.mark_rect(stroke="white", strokeWidth=1).encode(
        color=alt.Color("value:Q", scale=scale, legend=legend)
    )
    ink = alt.condition("datum.value === null", alt.value(theme.INK), alt.value(_LABEL))
    texts = base.mark_text(fontSize=10.5).encode(text="text:N", color=ink)
    chart = alt.LayerChart(layer=[boxes, texts]).properties(
        usermeta=theme.RIGID,
        width={"step": 108},
        height={"step": 17},
        title=alt.TitleParams(
            f"{theme.world_short(worlds[0])} against {theme.world_short(worlds[1]).lower()}",
            subtitle="Each field links to the cell’s time series. Without colour: too few to judge",
        ),
    )
    spec: dict[str, Any] = chart.configure(**theme.config()).to_dict()
    return spec


def over_time(runs: Sequence[Run]) -> dict[str, Any]:
    """Throughput and RTT of one run in each world, on top of each other."""
    worlds = {run.world: run for run in runs}
    throughput = _lines(worlds, "goodput, Mbit/s", _throughput)
    rtt = _lines(worlds, "smoothed RTT, ms", _rtt)
    chart = alt.hconcat(throughput, rtt, spacing=36).configure(**theme.config())
    spec: dict[str, Any] = chart.to_dict()
    return spec


def _throughput(run: Run, end_s: float) -> pl.DataFrame:
    return goodput_mbps(Panel(Row("", run.label, "", None, ""), run), end_s)


def _rtt(run: Run, end_s: float) -> pl.DataFrame:
    return line(run.flow_series(), "srtt_ms", end_s=end_s, max_points=_POINTS)


def _lines(worlds: dict[str, Run], axis: str, values: Any) -> alt.Chart:
    # Short flows end long before the run's time does.
    end_s = max(_end_s(run) for run in worlds.values())
    frames = [
        values(run, end_s).with_columns(pl.lit(theme.world_title(world)).alias("world"))
        for world, run in worlds.items()
    ]
    rows = pl.concat(frames, how="vertical_relaxed")
    several = rows["flow"].n_unique() > 1
    # As CSV, a third of the size of JSON: a page has some hundred of these.
    data = alt.InlineData(
        values=rows.with_columns(pl.col("time_s").round(3), pl.col("value").round(3)).write_csv(),
        format=alt.CsvDataFormat(type="csv", parse={"time_s": "number", "value": "number"}),
    )
    # The axis holds all values, whatever their number: a line must not leave the plot.
    most = rows["value"].max()
    top = 1.05 * float(most) if isinstance(most, int | float) and most > 0 else 1.0
    titles = [theme.world_title(world) for world in worlds]
    chart: alt.Chart = (
        alt.Chart(data)
        .mark_line(strokeWidth=1.3, opacity=0.85, clip=True, strokeJoin="round")
        .encode(
            x=alt.X("time_s:Q", title="time, s", scale=alt.Scale(domain=[0, end_s], nice=False)),
            y=alt.Y("value:Q", title=axis, scale=alt.Scale(domain=[0, top], nice=False)),
            color=alt.Color(
                "world:N",
                scale=alt.Scale(domain=titles, range=list(theme.world_colours(worlds).values())),
                legend=_LEGEND,
            ),
            strokeDash=alt.StrokeDash("flow:N", legend=_LEGEND) if several else alt.Undefined,
            detail="flow:N",
            tooltip=["world:N", "flow:N", alt.Tooltip("time_s:Q", format=".3f"), alt.Tooltip("value:Q")],
        )
        .properties(width=430, height=170)
    )
    return chart


def _end_s(run: Run) -> float:
    last = run.flow_series()["time_s"].max()
    return float(last) if isinstance(last, int | float) and last > 0 else run.alternative.duration_s
