"""An answer as a figure, in a notebook, and as a page."""

import math
from pathlib import Path
from typing import Any

import altair as alt

import fullpipe._native as _native
from fullpipe import files
from fullpipe.advisor import terminal
from fullpipe.advisor.answer import COLUMNS, Answer, path_of
from fullpipe.advisor.crossings import NAMES
from fullpipe.advisor.map_answer import UNCLEAR, UNITS
from fullpipe.report import provenance as made
from fullpipe.report.figures import theme
from fullpipe.report.figures.offline import OfflineConcatChart
from fullpipe.report.figures.svg import picture
from fullpipe.report.page import Heading, figure, page, provenance, table, text

_WIDTH, _STEP = 480, 34
_LOOK_AT = (
    "Longer is better. Where whiskers overlap, the difference may still be clear: each seed is compared."
)
_LOOK_AT_PARTS = (
    "The strong part of a bar is where the candidate is clearly best, the pale part where it is as good."
)
_NOTEBOOK_STYLE = (
    "<style>table.summary .number { text-align: right } "
    "table.summary th, table.summary td { padding: 0.2em 0.6em }</style>"
)


def chart(advice: Answer) -> OfflineConcatChart:
    """The candidates' scores; over a range, the shares where each is best, or as good, and where that is."""
    panels: list[alt.LayerChart] = []
    for one in advice.buffers or (advice,):
        panel = _parts(one) if one.parts else _scores(one)
        panels.append(panel.properties(title=f"Buffer {one.buffer}") if advice.buffers else panel)
        panels += [_where(one)] if one.parts else []
    return _titled(panels, advice)


def _titled(panels: list[alt.LayerChart], advice: Answer) -> OfflineConcatChart:
    titled: OfflineConcatChart = (
        OfflineConcatChart(concat=panels, columns=1)
        .properties(title=alt.TitleParams(advice.answer, subtitle=[path(advice)]))
        .configure(**theme.config())
    )
    return titled


def path(advice: Answer) -> str:
    """The path and what it is for, in a line."""
    given = path_of(advice.question)
    words = {"rtt": "round-trip time", "flow_size": "flows of", "tcp_memory": "TCP memory"}
    message = [
        f"{words.get(name, name)} {', '.join(value) if isinstance(value, list) else value}"
        for name, value in given.items()
        if name != "ecn"
    ]
    return f"{', '.join([*message, *(['ECN'] if given.get('ecn') else [])])}; for {advice.goal}"


def _scores(advice: Answer) -> alt.LayerChart:
    names = [place.candidate for place in advice.ranking.places]
    rows = [
        {
            "candidate": place.candidate,
            "score": place.score.mean,
            "low": place.score.mean if place.score.low is None else place.score.low,
            "high": place.score.mean if place.score.high is None else place.score.high,
            "shown": f"{place.score.mean:.3f}",
        }
        for place in advice.ranking.places
    ]
    most = max(place.score.high or place.score.mean for place in advice.ranking.places) or 1.0
    base = alt.Chart(alt.InlineData(values=rows))
    y = alt.Y("candidate:N", sort=names, title=None)
    bars = base.mark_bar().encode(
        x=alt.X("score:Q", title="Score", scale=alt.Scale(domain=[0, 1.15 * most], nice=False)),
        y=y,
        color=_colour(names),
        tooltip=["candidate:N", alt.Tooltip("shown:N", title="Score")],
    )
    whiskers = base.mark_rule(color=theme.INK, strokeWidth=1.4).encode(x=alt.X("low:Q"), x2="high:Q", y=y)
    texts = base.mark_text(align="left", dx=5, color=theme.INK).encode(x=alt.X("high:Q"), y=y, text="shown:N")
    return _layered([bars, whiskers, texts], len(names))


def _parts(advice: Answer) -> alt.LayerChart:
    names = [part.candidate for part in advice.parts]
    rows = [{"candidate": part.candidate, "wins": part.wins, "leads": part.leads} for part in advice.parts]
    base = alt.Chart(alt.InlineData(values=rows))
    y = alt.Y("candidate:N", sort=names, title=None)
    axis = alt.Axis(format="%")
    leads, wins = (
        base.mark_bar(opacity=opacity).encode(
            x=alt.X(
                f"{what}:Q",
                title="Part of the paths in the range",
                axis=axis,
                scale=alt.Scale(domain=[0, 1]),
            ),
            y=y,
            color=_colour(names),
        )
        for what, opacity in (("leads", 0.35), ("wins", 1.0))
    )
    return _layered([leads, wins], len(names))


def _where(advice: Answer) -> alt.LayerChart:
    """The paths of a range with the winner of each, by its first two quantities, and their boundaries."""
    across, *others = advice.question.ranges[:2]
    names = [part.candidate for part in advice.parts]
    rows = [
        {"candidate": ranking.winner or UNCLEAR, "x": numbers.of(across)}
        | ({"y": numbers.of(others[0])} if others else {"y": ranking.winner or UNCLEAR})
        for numbers, ranking in zip((path.numbers() for path in advice.paths), advice.rankings, strict=True)
    ]
    log = alt.Scale(type="log", nice=False)
    title = f"{NAMES.get(across, across)} ({UNITS[across]})"
    x = alt.X("x:Q", title=title, scale=log)
    if others:
        other = f"{NAMES.get(others[0], others[0])} ({UNITS[others[0]]})"
        y: alt.Y = alt.Y("y:Q", title=other, scale=log)
    else:
        y = alt.Y("y:N", title=None, sort=[*names, UNCLEAR])
    colours = theme.controller_colours(names)
    shades = [*(colours[name] for name in names), theme.QUIET]
    points = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_circle(size=70, opacity=1)
        .encode(
            x=x, y=y, color=alt.Color("candidate:N", scale=alt.Scale(domain=[*names, UNCLEAR], range=shades))
        )
    )
    layers: list[alt.Chart] = [points]
    found = advice.boundaries.found if advice.boundaries else ()
    edges = [{"x": math.sqrt(one.low * one.high)} for one in found if one.unit == across and one.low > 0]
    if edges:
        rule = alt.Chart(alt.InlineData(values=edges)).mark_rule(color=theme.INK, strokeDash=[4, 3])
        layers.append(rule.encode(x=x))
    second = [one for one in found if others and one.unit == others[0] and one.low > 0]
    if edges := [{"y": math.sqrt(one.low * one.high)} for one in second]:
        rule = alt.Chart(alt.InlineData(values=edges)).mark_rule(color=theme.INK, strokeDash=[4, 3])
        layers.append(rule.encode(y=y))
    return alt.LayerChart(layer=layers).properties(width=_WIDTH, height=5 * _STEP)


def _colour(names: list[str]) -> alt.Color:
    colours = theme.controller_colours(names)
    return alt.Color(
        "candidate:N", scale=alt.Scale(domain=names, range=[colours[one] for one in names]), legend=None
    )


def _layered(layers: list[alt.Chart], rows: int) -> alt.LayerChart:
    return alt.LayerChart(layer=layers).properties(width=_WIDTH, height=_STEP * rows)


def notebook(advice: Answer) -> str:
    """The sentence and the table."""
    asked = "".join(f"<p>{text(line)}</p>" for line in advice.inputs.lines())
    return f"{_NOTEBOOK_STYLE}{asked}<p><b>{text(advice.answer)}</b></p>{_table(advice)}{_notes(advice)}"


def _table(advice: Answer) -> str:
    if advice.buffers:
        return "".join(
            f"<h3>Buffer {text(one.buffer)}: {text(one.answer)}</h3>{_table(one)}" for one in advice.buffers
        )
    if advice.parts:
        headings = [
            Heading("Controller"),
            Heading("Clearly best", "% of paths", number=True),
            Heading("Best or as good", "% of paths", number=True),
            Heading("Mean regret", number=True),
            Heading("Worst regret", number=True),
        ]
        rows = terminal.share_rows(advice)
        shares = [
            [text(part.candidate), *map(text, row)] for part, row in zip(advice.parts, rows, strict=True)
        ]
        return table(headings, shares)
    headings = [Heading("Controller"), Heading("Score", number=True)]
    headings += [Heading(column.title, column.unit, number=True) for column in COLUMNS]
    rows = [
        [text(place.candidate), *map(text, row)]
        for place, row in zip(advice.ranking.places, terminal.rows(advice), strict=True)
    ]
    return table(headings, rows)


def _notes(advice: Answer) -> str:
    each = advice.buffers or (advice,)
    sure = [f"Confidence: {advice.confidence}."] if advice.confidence else []
    over_time = [line for one in each for line in (one.as_now, one.over_time) if line]
    notes = [*sure, *over_time, *terminal.notes(advice), advice.hosts]
    message = [f"<p>{text(note)}</p>" for note in notes]
    for one in advice.buffers or (advice,):
        heading = f"<h3>Buffer {text(one.buffer)}</h3>" if advice.buffers else ""
        if crossed := terminal.crossings(one):
            title, *lines = crossed
            listed = "".join(f"<li>{text(line)}</li>" for line in lines)
            message.append(f"{heading}<p>{text(title)}</p>{f'<ul>{listed}</ul>' if listed else ''}")
        if one.trust:
            message.append(f"<p>How far to trust it: {text(one.trust)}</p>")
    return "".join(message)


def _apply(advice: Answer, title: str, simulated: bool) -> str:
    """The lines that apply an answer; empty without such lines."""
    rows = [
        [text(line.where), f"<code>{text(line.text)}</code>", text(line.checked)]
        for line in advice.lines
        if line.simulated is simulated
    ]
    headings = [Heading("Where"), Heading("Line"), Heading("Here")]
    return f"<h2>{text(title)}</h2>{table(headings, rows)}" if rows else ""


def report(advice: Answer, to: Path) -> Path:
    """Writes the page."""
    files.make_folder(to.parent)
    files.write_named(to, html(advice).encode(errors="replace"))
    return to


def html(advice: Answer) -> str:
    """The whole page."""
    spec: dict[str, Any] = chart(advice).to_dict()
    body = [
        "<header>",
        *(f'<p class="quiet">{text(line)}</p>' for line in advice.inputs.lines()),
        f'<h1>{text(advice.answer)}</h1><p class="quiet">{text(path(advice))}</p></header>',
        figure(0, "score", picture(spec), _LOOK_AT_PARTS if advice.parts else _LOOK_AT),
        _table(advice),
        _notes(advice),
        *(_apply(advice, title, simulated) for title, simulated in terminal.APPLY.items()),
        provenance(
            [
                ("Made", text(made.now())),
                ("Command", f"<code>{text(made.command() or 'from Python')}</code>"),
                ("Version", text(f"Fullpipe {_native.version()}")),
            ]
        ),
    ]
    return page("Fullpipe: advice", body, [spec])
