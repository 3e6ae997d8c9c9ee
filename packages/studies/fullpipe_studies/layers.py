"""Parts of the figures on fairness: levels, the papers' values, panels."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import polars as pl

from fullpipe.report.figures import theme
from fullpipe_studies import charts
from fullpipe_studies.claim import Data
from fullpipe_studies.later import alt

_WIDTH, _HEIGHT = 300, 180


def level(*ys: float) -> Any:
    """Dashed lines across."""
    data = alt.InlineData(values=[{"y": y} for y in ys])
    return alt.Chart(data).mark_rule(strokeDash=[4, 3], color=theme.QUIET).encode(y="y:Q")


def paper(points: Sequence[tuple[float, float]], x: str) -> Any:
    """Values of the paper or its model at values of the factor `x`: grey diamonds on a dashed line."""
    data = alt.InlineData(values=[{x: at, "paper": value} for at, value in points])
    base = alt.Chart(data).encode(x=f"{x}:Q", y=alt.Y("paper:Q"), tooltip=[f"{x}:Q", "paper:Q"])
    line = base.mark_line(strokeDash=[4, 3], color=theme.QUIET, strokeWidth=1.2)
    return alt.layer(line, base.mark_point(shape="diamond", filled=True, size=50, color=theme.QUIET))


def panels(
    frame: pl.DataFrame,
    by: str,
    titles: Mapping[Any, str],
    draw: Callable[[pl.DataFrame, Any], Any],
    columns: int = 2,
) -> Any:
    """One panel for each value of a factor that occurs, in the order of the titles."""
    there = set(frame[by].unique().to_list()) if by in frame.columns else set()
    made = [
        draw(frame.filter(pl.col(by) == value), value).properties(
            width=_WIDTH, height=_HEIGHT, title=alt.TitleParams(title, fontSize=12)
        )
        for value, title in titles.items()
        if value in there
    ]
    return alt.concat(*made, columns=columns, spacing=24)


def of(frame: pl.DataFrame, part: Data) -> pl.DataFrame:
    """The rows of a table that are from the world of a panel."""
    return frame.filter(pl.col("world") == part.worlds[0])


def lines(frame: pl.DataFrame, x: "alt.X", y: "alt.Y", by: str) -> Any:
    """Curves of a table, one for each value of `by`, which is no controller."""
    drawn = alt.Chart(charts.values(frame)).mark_line(strokeWidth=1.2, clip=True)
    return drawn.encode(x=x, y=y, color=alt.Color(f"{by}:N", legend=charts.legend()))
