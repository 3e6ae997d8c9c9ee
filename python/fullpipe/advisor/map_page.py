"""A decision map as a figure, a page and files."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

import fullpipe._native as _native
from fullpipe import files
from fullpipe.advisor.map_answer import UNCLEAR, MapAnswer
from fullpipe.advisor.question import percent
from fullpipe.advisor.tree import Tree
from fullpipe.measures.decision_tree import Node
from fullpipe.report import provenance as made
from fullpipe.report.figures import theme
from fullpipe.report.figures import tree as trees
from fullpipe.report.figures.offline import OfflineConcatChart
from fullpipe.report.figures.svg import picture
from fullpipe.report.figures.svg import png as as_png
from fullpipe.report.page import Heading, figure, page, provenance, table, text
from fullpipe.scenario.path import NAMES, OPTIONS
from fullpipe.text import counted

_TITLES = {
    "rate": "Rate",
    "rtt": "Round-trip time",
    "buffer": "Buffer",
    "loss": "Random loss",
    **{one.name: one.option.capitalize() for one in OPTIONS if one.element},
}
# From this lead on, a cell has its controller's full colour.
_FULL = 0.30
_SIDE = 420
_GREY = "#b9bec6"
# Cells of larger maps have no numbers, and not every one of their values has a label.
_NUMBERED, _LABELS = 16, 20
# From this opacity on, numbers have the paper's colour.
_DARK = 0.62
_LOOK_AT = (
    "Each cell has the colour of the controller that is clearly best there, the stronger the farther it is "
    "ahead; grey cells have no clear winner."
)
_GO_DOWN = (
    "Start at the top and go left where the condition is true. A decision says on how many of the map's "
    "paths there its controller is best or as good as the best; the stronger the colour, the more."
)
_PNG_SCALE = 2


def chart(of: MapAnswer) -> OfflineConcatChart:
    """The map as a figure, which a notebook shows without a network."""
    layers, title = _layers(of)
    whole: OfflineConcatChart = (
        OfflineConcatChart(concat=[layers]).properties(title=title).configure(**theme.config())
    )
    return whole


def spec(of: MapAnswer) -> dict[str, Any]:
    """The map as Vega-Lite."""
    layers, title = _layers(of)
    found: dict[str, Any] = layers.properties(title=title).configure(**theme.config()).to_dict()
    return found


def _layers(of: MapAnswer) -> tuple[alt.LayerChart, alt.TitleParams]:
    """The cells, with numbers if there are few, and the title."""
    names = list(of.question.candidates)
    colours = theme.controller_colours(names)
    numbered = max(len(of.x_values), len(of.y_values)) <= _NUMBERED
    cells = []
    across, upwards = of.shown(of.x), of.shown(of.y)
    for point in of.points:
        strength = 0.35 + 0.65 * min(1.0, point.ahead / _FULL) if point.winner else 0.5
        cells.append(
            {
                "x": across[point.x],
                "y": upwards[point.y],
                "winner": point.winner or UNCLEAR,
                "strength": strength,
                "ahead": f"{100 * point.ahead:.0f}" if point.winner else "=",
                "ink": theme.PAPER if point.winner and strength > _DARK else theme.INK,
                "says": point.verdict,
            }
        )
    chart = alt.Chart(alt.InlineData(values=cells)).encode(
        x=alt.X("x:N", sort=across, title=_TITLES[of.x], axis=_axis(of.x_values, labelAngle=-45)),
        y=alt.Y("y:N", sort=list(reversed(upwards)), title=_TITLES[of.y], axis=_axis(of.y_values)),
        tooltip=[
            alt.Tooltip("x:N", title=_TITLES[of.x]),
            alt.Tooltip("y:N", title=_TITLES[of.y]),
            alt.Tooltip("says:N", title="Best"),
        ],
    )
    rects = chart.mark_rect(stroke=theme.PAPER, strokeWidth=1 if numbered else 0.3).encode(
        color=alt.Color(
            "winner:N",
            title="Clearly best",
            legend=alt.Legend(symbolType="square"),
            scale=alt.Scale(domain=[*names, UNCLEAR], range=[*(colours[one] for one in names), _GREY]),
        ),
        opacity=alt.Opacity("strength:Q", scale=None, legend=None),
    )
    leads = chart.mark_text(fontSize=9).encode(text="ahead:N", color=alt.Color("ink:N", scale=None))
    layers = alt.LayerChart(layer=[rects, leads] if numbered else [rects])
    subtitle = [f"{of.goal.name}; {_fixed(of)}" if _fixed(of) else of.goal.name, str(of)]
    if numbered:
        subtitle.append("numbers: by how many per cent of the score; =: no clear winner")
    title = alt.TitleParams("Who is best where", subtitle=subtitle)
    layers.width = layers.height = _SIDE
    return layers, title


def _axis(values: Sequence[float], **more: Any) -> alt.Axis:
    """An axis whose labels do not overlap: of many, every second or third has one."""
    every = -(-len(values) // _LABELS)
    if every > 1:
        # Vega counts from 0, in the order of the scale.
        more["labelExpr"] = f"datum.index * {len(values) - 1} % {every} < 0.5 ? datum.label : ''"
    return alt.Axis(**more)


def _fixed(of: MapAnswer) -> str:
    """What is the same everywhere on the map."""
    asked = of.question
    message = [
        f"{_TITLES.get(name, name).lower()} {value}"
        for name in NAMES
        if name not in (of.x, of.y)
        and (value := asked.buffer_text if name == "buffer" else getattr(asked, name)) not in (None, False)
    ]
    message += [f"beside {count} {name}" for name, count in asked.competitors]
    message += ["ECN"] if asked.ecn else []
    message += ["every flow paced by fq" if asked.pacing else "hosts without pacing"]
    return ", ".join(message)


def tree_spec(of: MapAnswer, tree: Tree) -> dict[str, Any]:
    """The tree of a map as Vega-Lite."""
    colours = theme.controller_colours(of.question.candidates)
    chart = trees.draw(tree.nodes, colours, _lines, _reported, strength=_certain, wide=1.3)
    shared = f"{100 * tree.right / len(tree.tries):.0f} % of {len(tree.tries)} unseen paths"
    title = alt.TitleParams("Which to use", subtitle=[f"right on {shared}"])
    found: dict[str, Any] = (
        chart.properties(title=title, usermeta=theme.RIGID).configure(**theme.config()).to_dict()
    )
    return found


def _certain(node: Node) -> float:
    """How far its decision is above chance among the paths that reach a node."""
    chance = 1 / len(node.counts)
    share = node.counts[node.decision] / node.paths
    return (share - chance) / (1 - chance) if chance < 1 else 1.0


def _lines(node: Node) -> list[str]:
    if node.condition is not None:
        return [node.condition, counted(node.paths, "path")]
    return [f"use {node.decision}", f"{node.counts[node.decision]} of {counted(node.paths, 'path')}"]


def _reported(node: Node) -> dict[str, str | int | float]:
    return {"best or as good": ", ".join(f"{name} on {often}" for name, often in node.counts.items())}


def html(of: MapAnswer, drawn: Sequence[dict[str, Any]], svgs: Sequence[str]) -> str:
    """The whole page."""
    body = [
        f"<header><h1>Decision map</h1><p>{text(str(of))}</p>"
        f'<p class="quiet">Score: {text(of.goal.means)}. {_seeds(of)} on each path.</p></header>',
        figure(0, "map", svgs[0], _LOOK_AT),
        _shares(of),
        *(_short(of.tree, svgs[1]) if of.tree is not None else ()),
        provenance(
            [
                ("Made", text(made.now())),
                ("Command", f"<code>{text(made.command() or 'from Python')}</code>"),
                ("Version", text(f"Fullpipe {_native.version()}")),
            ]
        ),
    ]
    return page("Fullpipe: decision map", body, drawn)


def _seeds(of: MapAnswer) -> str:
    return counted(of.seeds, "seed") if of.seeds > 1 else "1 seed, which leaves chance unknown,"


def _short(tree: Tree, svg: str) -> list[str]:
    return ["<h2>In short</h2>", f"<p>{text(str(tree))}</p>", figure(1, "tree", svg, _GO_DOWN)]


def notebook(of: MapAnswer) -> str:
    """The sentence, the map and the table."""
    return f"<p><b>{text(str(of))}</b></p>{picture(spec(of))}{_shares(of)}"


def report(of: MapAnswer, to: Path) -> Path:
    """Writes the page."""
    drawn = _drawn(of)
    files.make_folder(to.parent)
    whole = html(of, list(drawn.values()), [picture(one) for one in drawn.values()])
    files.write_named(to, whole.encode(errors="replace"))
    return to


def _drawn(of: MapAnswer) -> dict[str, dict[str, Any]]:
    """The figures of the page by name: the map, and the tree if there is one."""
    return {"map": spec(of)} | ({"tree": tree_spec(of, of.tree)} if of.tree is not None else {})


def _shares(of: MapAnswer) -> str:
    """On how much of the map each candidate is best."""
    shares = [
        [text(name), f"{100 * of.share(name):.0f}", text(_where(of, name))]
        for name in sorted(of.question.candidates, key=lambda one: -of.share(one))
    ]
    rows = [*shares, [text(UNCLEAR), f"{100 * of.unclear:.0f}", text(_apart(of))]]
    headings = [Heading("Clearly best"), Heading("Paths", "%", number=True), Heading("By how much")]
    return table(headings, rows)


def _where(of: MapAnswer, name: str) -> str:
    """How far a controller is ahead where it wins."""
    leads = sorted(point.ahead for point in of.points if point.winner == name)
    if not leads:
        return ""
    return f"by {100 * leads[len(leads) // 2]:.0f} % in the median, {100 * leads[-1]:.0f} % at most"


def _apart(of: MapAnswer) -> str:
    """How far leaders are apart where there is no clear winner."""
    apart = sorted(point.apart for point in of.points if point.winner is None)
    if not apart:
        return ""
    return f"leaders within {percent(apart[len(apart) // 2])} in the median, {percent(apart[-1])} at most"


def write(of: MapAnswer, folder: Path) -> Path:
    """Writes index.html, map.json, map.csv, and the figures as SVG and PNG; returns the page.

    Raises:
        OutputError: Something cannot be written, e.g. because the disk is full.
    """
    drawn = _drawn(of)
    svgs = {name: picture(one) for name, one in drawn.items()}
    files.write(folder, "map.json", (of.to_json() + "\n").encode())
    files.write(folder, "map.csv", _csv(of).encode())
    for name, svg in svgs.items():
        files.write(folder, f"{name}.svg", svg.encode())
        files.write(folder, f"{name}.png", as_png(svg, scale=_PNG_SCALE))
    files.write(folder, "index.html", html(of, list(drawn.values()), list(svgs.values())).encode())
    return folder / "index.html"


def _csv(of: MapAnswer) -> str:
    names = of.question.candidates
    out = io.StringIO()
    rows = csv.writer(out, lineterminator="\n")
    axes = [_column(of, quantity) for quantity in (of.x, of.y)]
    rows.writerow([*axes, "winner", "leaders", "ahead", "ahead_low", "ahead_high", *names])
    for point in of.points:
        values = [of.x_values[point.x], of.y_values[point.y]]
        leads = [point.ahead, *(point.ahead_ci95 or ("", ""))]
        scores = [point.ranking.place(name).score.mean for name in names]
        rows.writerow(
            [
                *map(_cell, values),
                point.winner or UNCLEAR,
                " ".join(point.ranking.leaders),
                *map(_cell, leads + scores),
            ]
        )
    return out.getvalue()


def _column(of: MapAnswer, quantity: str) -> str:
    return f"{quantity}_{of.unit(quantity).replace('bit/s', 'bps').lower()}"


def _cell(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
