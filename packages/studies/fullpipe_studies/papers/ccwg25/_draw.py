"""Parts of the figures of these claims."""

from collections.abc import Sequence
from typing import Any

import polars as pl

from fullpipe_studies import charts, layers
from fullpipe_studies.claim import Data
from fullpipe_studies.later import alt

# Two side by side are readable on a page.
_PANEL_WIDTH, _PANEL_HEIGHT = 225, 150


def lines(frame: pl.DataFrame, x: "alt.X", y: "alt.Y", by: str, level: float | None = None) -> Any:
    """Curves of a table, one for each value of `by`, with a dashed level."""
    colour = charts.controllers(frame, by)
    dash = charts.dashes(frame) if by == "controller" else alt.Undefined
    lines = alt.Chart(charts.values(frame)).mark_line(strokeWidth=1.2, clip=True)
    drawn = lines.encode(x=x, y=y, color=colour, strokeDash=dash)
    return drawn if level is None else alt.layer(layers.level(level), drawn)


def queues(frame: pl.DataFrame, by: str, titles: dict[Any, str], level: float) -> Any:
    """The queue of one run over time (`_path.drawn`): a curve for each controller, a panel for each `by`."""
    x = alt.X("time_s:Q", title="time, s", scale=alt.Scale(zero=False, nice=False))
    y = alt.Y("rtts:Q", title="queueing delay, RTTmin")
    return panels(frame, by, titles, lambda part: lines(part, x, y, "controller", level))


def panels(frame: pl.DataFrame, by: str, titles: dict[Any, str], draw: Any, columns: int = 2) -> Any:
    """One panel for each value of a factor that occurs, in the order of the titles."""
    there = set(frame[by].unique().to_list())
    made = [
        draw(frame.filter(pl.col(by) == value)).properties(
            width=_PANEL_WIDTH, height=_PANEL_HEIGHT, title=alt.TitleParams(title, fontSize=12)
        )
        for value, title in titles.items()
        if value in there
    ]
    return alt.concat(*made, columns=columns, spacing=18)


def means(
    data: Data,
    x: "alt.X",
    column: str,
    y_title: str,
    split: Sequence[str],
    by: str,
    titles: dict[Any, str],
    *,
    level: float | None = None,
    columns: int = 2,
    **y: Any,
) -> Any:
    """Means over seeds against a factor: a curve for each controller, a panel for each value of `by`."""
    frame = charts.means(data, split, column)

    def draw(part: pl.DataFrame) -> Any:
        drawn = charts.points(part, x, y_title, charts.controllers(part), reported=True, **y)
        return drawn if level is None else alt.layer(layers.level(level), drawn)

    return panels(frame, by, titles, draw, columns)
