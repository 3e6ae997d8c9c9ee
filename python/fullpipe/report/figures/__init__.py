"""Figures: one grammar (Vega-Lite) for notebooks, reports and files."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fullpipe import files
from fullpipe.errors import mistake
from fullpipe.measures.run import Runs
from fullpipe.report.figures import inflight, rtt, summary, throughput
from fullpipe.report.figures.svg import Renderer
from fullpipe.report.figures.svg import png as as_png
from fullpipe.report.figures.vega import Spec

if TYPE_CHECKING:
    from fullpipe.report.figures.offline import OfflineConcatChart

# Pixels per unit in PNG files.
_PNG_SCALE = 2


@dataclass(frozen=True)
class Figure:
    """An available figure, and a sentence on what to look for."""

    name: str
    look_at: Callable[[Runs], str]
    draw: Callable[[Runs], Spec]
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


def figure_file() -> re.Pattern[str]:
    """The name of any file that `save` writes."""
    return re.compile(rf"({'|'.join(BY_NAME)})\.(svg|png)")


def draw(results: Runs, name: str) -> "OfflineConcatChart":
    """The figure with that name, for a notebook."""
    if name not in BY_NAME:
        raise mistake("plot", name, f"one of {', '.join(BY_NAME)}", "name one of these")
    from fullpipe.report.figures.offline import OfflineConcatChart

    chart: OfflineConcatChart = OfflineConcatChart.from_dict(BY_NAME[name].draw(results))
    return chart


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
    spec: Spec
    svg: str
    caption: str


def drawings(results: Runs) -> list[Drawing]:
    """Every figure that can be drawn. Each is rendered while the next is prepared."""
    drawn = []
    with Renderer() as renderer:
        for figure in drawable(results):
            spec = figure.draw(results)
            drawn.append((figure, spec, renderer.picture(spec)))
        return [Drawing(figure, spec, svg.result(), figure.look_at(results)) for figure, spec, svg in drawn]


def save(drawn: Sequence[Drawing], folder: Path, subfolder: str = "", *, png: bool = False) -> list[Path]:
    """Writes figures as SVG, and as PNG if asked, below a folder, and returns their paths."""
    written = []
    for drawing in drawn:
        formats = {".svg": drawing.svg.encode()}
        if png:
            formats[".png"] = as_png(drawing.svg, scale=_PNG_SCALE)
        for suffix, data in formats.items():
            written.append(files.write(folder, f"{subfolder}/{drawing.figure.name}{suffix}", data))
    return written
