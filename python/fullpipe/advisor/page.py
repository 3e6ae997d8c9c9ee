"""A decision map as a figure, a page and files."""

import json
from pathlib import Path
from typing import Any

import altair as alt

from fullpipe import _native
from fullpipe.advisor.map import DecisionMap
from fullpipe.advisor.question import shown
from fullpipe.show.figures import theme
from fullpipe.show.figures.svg import picture
from fullpipe.show.page import Heading, figure, page, provenance, table, text
from fullpipe.system import files
from fullpipe.system import provenance as made

_TITLES = {
    "rate": "Rate",
    "rtt": "Round-trip time",
    "buffer": "Buffer",
    "loss": "Random loss",
    "jitter": "Jitter",
}
_UNCLEAR = "no clear winner"
# From this lead on, a cell has its controller's full colour.
_FULL = 0.30
_SIDE = 420
_LOOK_AT = (
    "Each cell has the colour of the controller that is clearly best there, the stronger the farther it is "
    "ahead; grey cells have no clear winner."
)
_PNG_SCALE = 2


def spec(of: DecisionMap) -> dict[str, Any]:
    """The map as Vega-Lite."""
    names = list(of.question.candidates)
    colours = theme.controller_colours(names)
    cells = [
        {
            "x": shown(of.x, of.x_values[point.x]),
            "y": shown(of.y, of.y_values[point.y]),
            "column": point.x,
            "row": point.y,
            "winner": point.winner or _UNCLEAR,
            "strength": 0.35 + 0.65 * min(1.0, point.ahead / _FULL) if point.winner else 0.5,
            "says": f"{point.winner} by {100 * point.ahead:.0f} %"
            if point.winner
            else f"{_UNCLEAR}: {', '.join(point.ranking.leaders)}",
        }
        for point in of.points
    ]
    order = {
        axis: [shown(quantity, value) for value in values]
        for axis, quantity, values in (("x", of.x, of.x_values), ("y", of.y, of.y_values))
    }
    chart = (
        alt.Chart(alt.InlineData(values=cells))
        .mark_rect(stroke=theme.PAPER)
        .encode(
            x=alt.X("x:N", sort=order["x"], title=_TITLES[of.x], axis=alt.Axis(labelAngle=-45)),
            y=alt.Y("y:N", sort=list(reversed(order["y"])), title=_TITLES[of.y]),
            color=alt.Color(
                "winner:N",
                title="Clearly best",
                scale=alt.Scale(
                    domain=[*names, _UNCLEAR], range=[*(colours[one] for one in names), "#b9bec6"]
                ),
            ),
            opacity=alt.Opacity("strength:Q", scale=None, legend=None),
            tooltip=[
                alt.Tooltip("x:N", title=_TITLES[of.x]),
                alt.Tooltip("y:N", title=_TITLES[of.y]),
                alt.Tooltip("says:N", title="Best"),
            ],
        )
        .properties(
            width=_SIDE,
            height=_SIDE,
            title=alt.TitleParams("Who is best where", subtitle=[f"{of.goal.name}; {_fixed(of)}"]),
        )
        .configure(**theme.config())
    )
    found: dict[str, Any] = chart.to_dict()
    return found


def _fixed(of: DecisionMap) -> str:
    """What is the same everywhere on the map."""
    asked = of.question
    said = [
        f"{_TITLES[name].lower()} {getattr(asked, name)}"
        for name in ("rate", "rtt", "buffer", "loss", "jitter")
        if name not in (of.x, of.y) and getattr(asked, name) is not None
    ]
    said += [f"queue {asked.queue}"] if asked.queue else []
    said += [f"beside {count} {name}" for name, count in asked.competitors]
    return ", ".join(said)


def html(of: DecisionMap, drawn: dict[str, Any], svg: str) -> str:
    """The whole page."""
    shares = [
        [text(name), f"{100 * of.share(name):.0f}", text(_where(of, name))]
        for name in sorted(of.question.candidates, key=lambda one: -of.share(one))
    ]
    rows = [*shares, [text(_UNCLEAR), f"{100 * of.unclear:.0f}", ""]]
    headings = [Heading("Clearly best"), Heading("Paths", "%", number=True), Heading("By how much")]
    body = [
        f'<header><h1>Decision map</h1><p class="answer">{text(str(of))}</p>'
        f'<p class="quiet">Score: {text(of.goal.means)}. {of.seeds} seeds on each path.</p></header>',
        figure(0, "map", svg, _LOOK_AT),
        table(headings, rows),
        provenance(
            [
                ("Made", text(made.now())),
                ("Command", f"<code>{text(made.command() or 'from Python')}</code>"),
                ("Version", text(f"Fullpipe {_native.version()}")),
            ]
        ),
    ]
    return page("Fullpipe: decision map", body, [drawn])


def _where(of: DecisionMap, name: str) -> str:
    """How far a controller is ahead where it wins."""
    leads = sorted(point.ahead for point in of.points if point.winner == name)
    if not leads:
        return ""
    return f"by {100 * leads[len(leads) // 2]:.0f} % in the median, {100 * leads[-1]:.0f} % at most"


def write(of: DecisionMap, folder: Path) -> Path:
    """Writes index.html, map.json, map.csv, and the figure as SVG and PNG; returns the page.

    Raises:
        OutputError: Something cannot be written, e.g. because the disk is full.
    """
    import vl_convert

    drawn = spec(of)
    svg = picture(drawn)
    files.write(folder, "map.json", (of.to_json() + "\n").encode())
    files.write(folder, "map.csv", _csv(of).encode())
    files.write(folder, "map.svg", svg.encode())
    files.write(folder, "map.png", vl_convert.svg_to_png(svg, scale=_PNG_SCALE))
    files.write(folder, "index.html", html(of, drawn, svg).encode())
    return folder / "index.html"


def _csv(of: DecisionMap) -> str:
    units = {"rate": "bps", "rtt": "ms", "buffer": "bytes", "loss": "probability", "jitter": "ms"}
    names = of.question.candidates
    lines = [
        ",".join(
            [f"{of.x}_{units[of.x]}", f"{of.y}_{units[of.y]}", "winner", "ahead", *map(json.dumps, names)]
        )
    ]
    for point in of.points:
        scores = [f"{point.ranking.place(name).score.mean:.6g}" for name in names]
        x, y = of.x_values[point.x], of.y_values[point.y]
        lines.append(
            ",".join([f"{x:.6g}", f"{y:.6g}", json.dumps(point.winner or ""), f"{point.ahead:.6g}", *scores])
        )
    return "\n".join(lines) + "\n"
