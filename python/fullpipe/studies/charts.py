"""What the claims' figures are drawn with: rows, colours, panels a world."""

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt
import polars as pl

from fullpipe.figures import theme
from fullpipe.figures.prepare import records
from fullpipe.studies.claim import Data

WIDTH, HEIGHT = 420, 220
LEGEND = alt.Legend(orient="bottom", title=None, symbolType="stroke", symbolStrokeWidth=2)


def values(frame: pl.DataFrame) -> alt.InlineData:
    """A table as data of a chart."""
    return alt.InlineData(values=records(frame))


def controllers(frame: pl.DataFrame, column: str = "controller") -> alt.Color:
    """Each controller in its own colour, the same in every figure."""
    colours = theme.controller_colours(frame[column].unique(maintain_order=True).to_list())
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{column}:N", scale=scale, legend=LEGEND)


def means(data: Data, by: Sequence[str], column: str) -> pl.DataFrame:
    """Mean, least and most of a column of the runs: columns world, the factors, mean, low, high."""
    frame = data.runs.filter(pl.col(column).is_not_null())
    return frame.group_by("world", *by, maintain_order=True).agg(
        pl.col(column).mean().alias("mean"),
        pl.col(column).min().alias("low"),
        pl.col(column).max().alias("high"),
    )


def points(
    frame: pl.DataFrame,
    x: alt.X,
    y_title: str,
    colour: alt.Color,
    *,
    ticks: Sequence[float] | None = None,
    **y: Any,
) -> Any:
    """Means as points and lines, with bars from the least to the most over seeds; `y` is of its scale."""
    base = alt.Chart(values(frame)).encode(x=x, color=colour)
    scale = alt.Scale(**y)
    axis = alt.Undefined if ticks is None else alt.Axis(values=list(ticks), format=",d")

    def upward(column: str) -> alt.Y:
        return alt.Y(f"{column}:Q", title=y_title, scale=scale, axis=axis)

    line = base.mark_line(strokeWidth=1.5).encode(y=upward("mean"))
    dots = base.mark_point(filled=True, size=38, opacity=1).encode(
        y=upward("mean"),
        tooltip=[f"{name}:{_kind(frame[name])}" for name in frame.columns if name != "world"],
    )
    bars = base.mark_rule(strokeWidth=1).encode(y=upward("low"), y2=alt.Y2("high:Q"))
    return alt.layer(bars, line, dots)


def boundaries(frame: pl.DataFrame, *, cycle: bool = False) -> Any:
    """Vertical lines where a flow's phase changes: columns time_s and phase. `cycle`: in ProbeBW too."""
    named = frame.sort("time_s")
    if not cycle:
        named = named.with_columns(pl.col("phase").str.replace("probe_bw.*", "probe_bw"))
    named = named.filter((pl.col("phase") != pl.col("phase").shift(1)).fill_null(False))
    return (
        alt.Chart(values(named.select("time_s", "phase")))
        .mark_rule(color=theme.QUIET, strokeWidth=1)
        .encode(x="time_s:Q", tooltip=["phase:N", "time_s:Q"])
    )


def _kind(column: pl.Series) -> str:
    return "Q" if column.dtype.is_numeric() else "N"


def worlds(data: Data, panel: Callable[[Data], Any], title: str, subtitle: str = "") -> alt.TopLevelMixin:
    """One panel a world, side by side; the same axes where a panel has one of each."""
    panels = [
        panel(data.of(world)).properties(
            title=alt.TitleParams(theme.world_title(world).capitalize(), fontSize=12, offset=6)
        )
        for world in data.worlds
    ]
    together = alt.hconcat(*panels, spacing=30)
    # What is put together of several charts has several axes of its own.
    several = any(isinstance(one, alt.VConcatChart | alt.HConcatChart | alt.ConcatChart) for one in panels)
    if len(panels) > 1 and not several:
        together = together.resolve_scale(x="shared", y="shared")
    found: alt.TopLevelMixin = together.properties(title=alt.TitleParams(title, subtitle=subtitle))
    return found
