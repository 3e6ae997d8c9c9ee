"""Figures: one grammar (Vega-Lite through altair) for notebooks, reports and files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt

from fullpipe.errors import mistake
from fullpipe.figures import inflight, rtt, summary, throughput
from fullpipe.results import Results

# Pixels a unit in PNG files.
_PNG_SCALE = 2


@dataclass(frozen=True)
class Figure:
    """A figure there is, and a sentence on what to look at."""

    name: str
    look_at: str
    draw: Callable[[Results], alt.ConcatChart]
    over_time: bool = True
    # Whether it says something that the other figures do not.
    worth_drawing: Callable[[Results], bool] = lambda _results: True


FIGURES = (
    Figure(
        "summary",
        summary.LOOK_AT,
        summary.figure,
        over_time=False,
        worth_drawing=lambda results: len(results.groups) > 1,
    ),
    Figure("throughput", throughput.LOOK_AT, throughput.figure),
    Figure("rtt", rtt.LOOK_AT, rtt.figure),
    Figure("inflight", inflight.LOOK_AT, inflight.figure),
    Figure(
        "startup",
        inflight.LOOK_AT_STARTUP,
        inflight.startup_figure,
        worth_drawing=inflight.is_longer_than_startup,
    ),
)
BY_NAME = {figure.name: figure for figure in FIGURES}


def draw(results: Results, name: str) -> alt.ConcatChart:
    """The figure of that name."""
    if name not in BY_NAME:
        raise mistake("plot", name, f"one of {', '.join(BY_NAME)}", "name one of these")
    return BY_NAME[name].draw(results)


def drawable(results: Results) -> list[Figure]:
    """The figures that these results have data for."""
    if not results.runs:
        return []
    sampled = any(run.flow_series().height for run in results.runs)
    return [
        figure for figure in FIGURES if (sampled or not figure.over_time) and figure.worth_drawing(results)
    ]


@dataclass(frozen=True)
class Drawing:
    """A figure drawn: as Vega-Lite and as SVG."""

    figure: Figure
    spec: dict[str, Any]
    svg: str


def drawings(results: Results) -> list[Drawing]:
    """Every figure that can be drawn."""
    import vl_convert

    specs = [(figure, figure.draw(results).to_dict()) for figure in drawable(results)]
    return [Drawing(figure, spec, vl_convert.vegalite_to_svg(spec)) for figure, spec in specs]


def save(drawn: Sequence[Drawing], folder: Path) -> list[Path]:
    """Writes figures as SVG and PNG."""
    import vl_convert

    written = []
    for drawing in drawn:
        png = vl_convert.svg_to_png(drawing.svg, scale=_PNG_SCALE)
        for suffix, data in ((".svg", drawing.svg.encode()), (".png", png)):
            path = folder / f"{drawing.figure.name}{suffix}"
            path.write_bytes(data)
            written.append(path)
    return written
