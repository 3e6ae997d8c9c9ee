"""Parts of the claims' figures: rows, colours, a panel for each world."""

from collections.abc import Callable, Sequence
from typing import Any

import polars as pl

from fullpipe.report.figures import svg, theme
from fullpipe.report.figures.prepare import records
from fullpipe_studies.claim import Data
from fullpipe_studies.later import alt

WIDTH, HEIGHT = 420, 220
# What the bars of `points` are, for subtitles.
BARS = "bars: least to most of the runs"
# Of legends of lines.
STROKES: dict[str, Any] = {"symbolType": "stroke", "symbolStrokeWidth": 2}


def legend() -> "alt.Legend":
    """The legend of lines, below the figure."""
    return alt.Legend(orient="bottom", title=None, labelLimit=260, **STROKES)


def spec(chart: "alt.TopLevelMixin") -> dict[str, Any]:
    """A figure as Vega-Lite, in the look of all figures."""
    return theme.settled(chart.configure(**theme.config()).to_dict())


def picture(chart: "alt.TopLevelMixin") -> bytes:
    """A figure as a small PNG, for pages."""
    return svg.png(svg.picture(spec(chart)), scale=1.0)


def values(frame: pl.DataFrame) -> "alt.InlineData":
    """A table as data of a chart."""
    return alt.InlineData(values=records(frame))


def controllers(frame: pl.DataFrame, column: str = "controller") -> "alt.Color":
    """Each controller in its own colour, the same in every figure."""
    colours = theme.controller_colours(_names(frame, column))
    scale = alt.Scale(domain=list(colours), range=list(colours.values()))
    return alt.Color(f"{column}:N", scale=scale, legend=legend())


def dashes(frame: pl.DataFrame, column: str = "controller") -> "alt.StrokeDash":
    """Each controller's line with its own dashes, for readers who cannot distinguish the colours."""
    chosen = theme.controller_dashes(_names(frame, column))
    scale = alt.Scale(domain=list(chosen), range=list(chosen.values()))
    return alt.StrokeDash(f"{column}:N", scale=scale, legend=legend())


def _names(frame: pl.DataFrame, column: str) -> list[str]:
    names: list[str] = frame[column].unique(maintain_order=True).to_list()
    return names


def means(data: Data, by: Sequence[str], column: str) -> pl.DataFrame:
    """Mean, minimum and maximum of a column of the runs: columns world, the factors, mean, low, high."""
    frame = data.runs.filter(pl.col(column).is_not_null())
    return frame.group_by("world", *by, maintain_order=True).agg(
        pl.col(column).mean().alias("mean"),
        pl.col(column).min().alias("low"),
        pl.col(column).max().alias("high"),
    )


def points(
    frame: pl.DataFrame,
    x: "alt.X",
    y_title: str,
    colour: "alt.Color",
    *,
    dash: "alt.StrokeDash | None" = None,
    dashed: bool = True,
    ticks: Sequence[float] | None = None,
    reported: bool = False,
    **y: Any,
) -> Any:
    """Means as points and lines, with bars from the minimum to the maximum over seeds; `y` has the scale.

    `dashed`: whether controllers also differ by dashes, the given ones or their own. `told`: whether the
    figure's subtitle says what the bars are (`BARS`); panels that are narrow have no room for it.
    """
    base = alt.Chart(values(frame)).encode(x=x, color=colour)
    scale = alt.Scale(**y)
    axis = alt.Undefined if ticks is None else alt.Axis(values=list(ticks), format=",d")

    # Bars of no length are not seen.
    reported = reported or frame["low"].equals(frame["high"])
    title = y_title if reported else [y_title, "(bars: least to most of all runs)"]

    def upward(column: str) -> "alt.Y":
        return alt.Y(f"{column}:Q", title=title, scale=scale, axis=axis)

    line = base.mark_line(strokeWidth=1.5).encode(y=upward("mean"))
    if dashed and "controller" in frame.columns and frame["controller"].n_unique() > 1:
        line = line.encode(strokeDash=dash or dashes(frame))
    dots = base.mark_point(filled=True, size=38, opacity=1).encode(
        y=upward("mean"),
        tooltip=[f"{name}:{_kind(frame[name])}" for name in frame.columns if name != "world"],
    )
    bars = base.mark_rule(strokeWidth=1).encode(y=upward("low"), y2=alt.Y2("high:Q"))
    return alt.layer(bars, line, dots)


def every_run(
    runs: pl.DataFrame,
    x: "alt.X",
    column: str,
    y_title: str,
    by: Sequence[str],
    *,
    thick: float = 14,
    **y: Any,
) -> Any:
    """Every run as a point, and lines through the medians of those with equal factors; `y` has the scale.

    For values with two modes, of which a mean and its bars show neither. `by` are the factors, the one of `x`
    and `controller` among them.
    """
    there = runs.drop_nulls(column)
    middles = there.group_by(*by, maintain_order=True).agg(pl.col(column).median())
    upward = alt.Y(f"{column}:Q", title=y_title, scale=alt.Scale(**y))
    dots, lines = (
        alt.Chart(values(frame.select(*by, column))).encode(x=x, y=upward, color=controllers(frame))
        for frame in (there, middles)
    )
    line = lines.mark_line(strokeWidth=1.5)
    if middles["controller"].n_unique() > 1:
        line = line.encode(strokeDash=dashes(middles))
    return alt.layer(line, dots.mark_point(filled=True, size=thick, opacity=0.55))


def paper(points: Sequence[tuple[float, float]], x: str, y: str = "paper", *, size: float = 70) -> Any:
    """The paper's values, where the factor `x` has these values: hollow diamonds."""
    data = alt.InlineData(values=[{x: at, y: value} for at, value in points])
    drawn = alt.Chart(data).mark_point(shape="diamond", size=size, color=theme.INK, strokeWidth=1.5)
    return drawn.encode(x=f"{x}:Q", y=f"{y}:Q", tooltip=[f"{x}:Q", f"{y}:Q"])


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


def worlds(
    data: Data,
    panel: Callable[[Data], Any],
    title: str,
    subtitle: str | Sequence[str] = "",
    *,
    rigid: bool = False,
) -> "alt.TopLevelMixin":
    """One panel for each world, side by side; with the same axes if a panel has one of each.

    A subtitle may have several lines. Runs of another length, rate or set-up have axes of their own, and
    their panels say which they are.
    `rigid`: no panel can be made narrower, e.g. one with text in every cell; a narrow page then scrolls.
    """
    different = _different(data)
    panels = [
        panel(data.of(world)).properties(
            title=alt.TitleParams(
                ", ".join((theme.world_heading(world), *different.get(world, ()))), fontSize=12, offset=6
            )
        )
        for world in data.worlds
    ]
    together = alt.hconcat(*panels, spacing=30)
    # A combination of several charts has several axes of its own.
    several = any(isinstance(one, alt.VConcatChart | alt.HConcatChart | alt.ConcatChart) for one in panels)
    if len(panels) > 1 and not several and not different:
        together = together.resolve_scale(x="shared", y="shared")
    if rigid:
        together = together.properties(usermeta=theme.RIGID)
    found: alt.TopLevelMixin = together.properties(
        title=alt.TitleParams(title, subtitle=[subtitle] if isinstance(subtitle, str) else list(subtitle))
    )
    return found


# Factors that a world may have its own value of, because its runs take wall time.
_OF_WORLDS = {"seconds": "{:g} s", "minutes": "{:g} min", "rate_mbps": "{:g} Mbit/s", "setup": "{}"}


def _different(data: Data) -> dict[str, list[str]]:
    """What tells a world's runs from another's, by world: lengths, rates and set-ups in which they differ."""
    found: dict[str, list[str]] = {}
    parts = {world: data.of(world).runs for world in data.worlds}
    for name, facts in _OF_WORLDS.items():
        if name not in data.runs.columns:
            continue
        given = {world: runs[name].unique().to_list() for world, runs in parts.items()}
        # A factor that a panel shows in itself has several values.
        if all(len(values) == 1 for values in given.values()) and len({*map(tuple, given.values())}) > 1:
            for world, (value,) in given.items():
                found.setdefault(world, []).append(facts.format(value))
    return found
