"""The answers of a source as a map: where its paths are, and who is best on each."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

import fullpipe._native as _native
from fullpipe import files
from fullpipe.advisor.many import Answered, Answers
from fullpipe.advisor.map_answer import UNCLEAR
from fullpipe.advisor.question import Numbers, shown
from fullpipe.report import provenance as made
from fullpipe.report.figures import theme
from fullpipe.report.figures.svg import picture
from fullpipe.report.figures.svg import png as as_png
from fullpipe.report.page import Heading, figure, page, provenance, table, text
from fullpipe.text import counted, joined

_WIDTH, _HEIGHT = 520, 380
_GREY = "#b9bec6"
_ROOM = 1.4
# The area of the heaviest path's dot, and the least that can be seen.
_AREA, _LEAST_AREA = 500.0, 24.0
# The page lists no more paths; the files have all of them.
_LISTED = 500
_LOOK_AT = (
    "Each dot is a path, in the colour of the controller that is clearly best on it; grey dots have no clear "
    "winner. A larger dot counts more."
)
_PNG_SCALE = 2


def spec(answers: Answers) -> dict[str, Any]:
    """The map as Vega-Lite."""
    names = sorted(answers.candidates)
    colours = theme.controller_colours(names)
    most = max(one.path.weight for one in answers.answered) or 1.0
    dots: list[dict[str, Any]] = []
    # Small dots are drawn last, so that none is hidden.
    for one in sorted(answers.answered, key=lambda one: -one.path.weight):
        path = _numbers(one)
        dots.append(
            {
                "rtt": path.rtt_ms,
                "rate": path.rate_bps / 1e6,
                "winner": one.advice.winner or UNCLEAR,
                "area": max(_LEAST_AREA, _AREA * one.path.weight / most),
                "name": one.path.name,
                "says": _verdict(one),
                "at": f"{shown('rate', path.rate_bps)}, {shown('rtt', path.rtt_ms)}",
            }
        )
    range_ = [*(colours[one] for one in names), _GREY]
    chart = (
        alt.Chart(alt.InlineData(values=dots))
        .mark_circle(opacity=0.8, stroke=theme.PAPER, strokeWidth=0.6)
        .encode(
            x=_axis("rtt", "Round-trip time, ms", [dot["rtt"] for dot in dots]),
            y=_axis("rate", "Rate, Mbit/s", [dot["rate"] for dot in dots]),
            color=alt.Color(
                "winner:N", title="Clearly best", scale=alt.Scale(domain=[*names, UNCLEAR], range=range_)
            ),
            size=alt.Size("area:Q", scale=None, legend=None),
            tooltip=[
                alt.Tooltip("name:N", title="Path"),
                alt.Tooltip("at:N", title="Is"),
                alt.Tooltip("says:N", title="Best"),
            ],
        )
        .properties(
            width=_WIDTH,
            height=_HEIGHT,
            title=alt.TitleParams("Who is best on which path", subtitle=str(answers)),
        )
        .configure(**theme.config())
    )
    found: dict[str, Any] = chart.to_dict()
    return found


def _axis(name: str, title: str, values: Sequence[float]) -> Any:
    """A logarithmic axis that has room around the values, and labels at 1, 2 and 5."""
    low, high = min(values) / _ROOM, max(values) * _ROOM
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0**decade for decade in decades for step in (1, 2, 5)]
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    shown_ticks = [tick for tick in ticks if low <= tick <= high]
    axis = alt.Axis(title=title, format="~g", values=shown_ticks, grid=True, labelOverlap=True)
    return (alt.X if name == "rtt" else alt.Y)(f"{name}:Q", scale=scale, axis=axis)


def _numbers(one: Answered) -> Numbers:
    """The path, or the middle of its ranges."""
    question = one.advice.question
    return question.at([0.5] * len(question.ranges)).numbers()


def _verdict(one: Answered) -> str:
    if one.advice.winner is not None:
        return one.advice.winner
    leaders = [] if one.advice.parts or one.advice.buffers else list(one.advice.ranking.leaders)
    return f"{UNCLEAR} between {joined(leaders)}" if leaders else UNCLEAR


def html(answers: Answers, drawn: dict[str, Any], svg: str) -> str:
    """The whole page."""
    heaviest = sorted(answers.answered, key=lambda one: -one.path.weight)[:_LISTED]
    rows = [
        [
            text(one.path.name),
            f"{one.path.weight:g}",
            text(shown("rate", _numbers(one).rate_bps)),
            text(shown("rtt", _numbers(one).rtt_ms)),
            text(_verdict(one)),
            text("; ".join(one.notes)),
        ]
        for one in heaviest
    ]
    headings = [
        Heading("Path"),
        Heading("Weight", number=True),
        Heading("Rate", number=True),
        Heading("RTT", number=True),
        Heading("Best"),
        Heading("Notes"),
    ]
    left = len(answers.answered) - len(heaviest)
    rest = f'<p class="quiet">{counted(left, "path")} more in answers.csv.</p>' if left else ""
    without = "".join(f"<li>{text(one.path.name)}: {text(one.why)}</li>" for one in answers.refused[:_LISTED])
    body = [
        "<header>",
        *(f'<p class="quiet">{text(line)}</p>' for line in answers.inputs.lines()),
        f"<h1>Answers for a source</h1><p>{text(str(answers))}</p></header>",
        figure(0, "map", svg, _LOOK_AT),
        table(headings, rows),
        rest,
        f"<h2>Without an answer</h2><ul>{without}</ul>" if without else "",
        *(f"<p>{text(line)}</p>" for line in answers.inputs.unused),
        provenance(
            [
                ("Made", text(made.now())),
                ("Command", f"<code>{text(made.command() or 'from Python')}</code>"),
                ("Version", text(f"Fullpipe {_native.version()}")),
            ]
        ),
    ]
    return page("Fullpipe: answers", body, [drawn])


def write(answers: Answers, folder: Path) -> Path:
    """Writes index.html, answers.json, answers.csv, map.svg and map.png into a folder; returns the page.

    Raises:
        OutputError: Something cannot be written, e.g. because the disk is full.
    """
    drawn = spec(answers)
    svg = picture(drawn)
    files.make_folder(folder)
    files.write(folder, "answers.json", (answers.to_json() + "\n").encode())
    files.write(folder, "answers.csv", answers.to_csv().encode())
    files.write(folder, "map.svg", svg.encode())
    files.write(folder, "map.png", as_png(svg, scale=_PNG_SCALE))
    files.write(folder, "index.html", html(answers, drawn, svg).encode())
    return folder / "index.html"
