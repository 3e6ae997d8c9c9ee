"""Figures: one grammar (Vega-Lite through altair) for notebooks, reports and files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt

from fullpipe import files
from fullpipe.errors import mistake
from fullpipe.measures.run import Runs
from fullpipe.report.figures import inflight, rtt, summary, throughput
from fullpipe.report.figures.svg import picture
from fullpipe.report.figures.svg import png as as_png

# Pixels per unit in PNG files.
_PNG_SCALE = 2


@dataclass(frozen=True)
class Figure:
    """An available figure, and a sentence on what to look for."""

    name: str
    look_at: Callable[[Runs], str]
    draw: Callable[[Runs], alt.ConcatChart]
    over_time: bool = True
    # Whether it adds something to the other figures.
    worth_drawing: Callable[[Runs], bool] = lambda _results: True


FIGURES = (
    Figure(
        "summary",
        lambda _results: summary.LOOK_AT,
        summary.figure,
        over_time=False,
        worth_drawing=lambda results: len(results.groups) > 1,
    ),
    Figure("throughput", throughput.look_at, throughput.figure),
    Figure("rtt", lambda _results: rtt.LOOK_AT, rtt.figure),
    Figure("inflight", inflight.look_at, inflight.figure),
    Figure(
        "startup",
        inflight.look_at_startup,
        inflight.startup_figure,
        worth_drawing=inflight.is_longer_than_startup,
    ),
)
BY_NAME = {figure.name: figure for figure in FIGURES}


def draw(results: Runs, name: str) -> alt.ConcatChart:
    """The figure with that name."""
    if name not in BY_NAME:
        raise mistake("plot", name, f"one of {', '.join(BY_NAME)}", "name one of these")
    return BY_NAME[name].draw(results)


def drawable(results: Runs) -> list[Figure]:
    """The figures for which these results have data."""
    if not results.runs:
        return []
    sampled = any(run.flow_series().height for run in results.runs)
    return [
        figure for figure in FIGURES if (sampled or not figure.over_time) and figure.worth_drawing(results)
    ]


@dataclass(frozen=True)
class Drawing:
    """A drawn figure: as Vega-Lite and as SVG, and what to look for in it."""

    figure: Figure
    spec: dict[str, Any]
    svg: str
    caption: str


def drawings(results: Runs) -> list[Drawing]:
    """Every figure that can be drawn."""
    specs = [(figure, figure.draw(results).to_dict()) for figure in drawable(results)]
    return [Drawing(figure, spec, picture(spec), figure.look_at(results)) for figure, spec in specs]


def save(drawn: Sequence[Drawing], folder: Path, subfolder: str = "") -> list[Path]:
    """Writes figures as SVG and PNG below a folder, and returns their paths."""
    written = []
    for drawing in drawn:
        png = as_png(drawing.svg, scale=_PNG_SCALE)
        for suffix, data in ((".svg", drawing.svg.encode()), (".png", png)):
            written.append(files.write(folder, f"{subfolder}/{drawing.figure.name}{suffix}", data))
    return written
