"""A decision tree drawn: conditions above, decisions below.

The left branch is for a true condition. A node has the colour of its decision, by default the darker the
purer it is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import altair as alt

from fullpipe.measures.decision_tree import Node
from fullpipe.report.figures import theme

# A node keeps its colour on a dark page, so its text must keep its own.
_INK, _LINE = "#1b1b1b", "#79818d"
# The share of a decision's colour in the purest node; text must be readable on it.
STRONGEST = 0.65
# In points: the width of a leaf, the height of a level, and the size of a node's box.
_LEAF, _LEVEL, _WIDTH, _HEIGHT = 104, 92, 98, 60
_LINE_HEIGHT = 13


def draw(
    nodes: Sequence[Node],
    colours: Mapping[str, str],
    lines: Callable[[Node], list[str]],
    tooltip: Callable[[Node], Mapping[str, str | int | float]],
    *,
    strength: Callable[[Node], float] = lambda node: node.purity,
    wide: float = 1.0,
) -> Any:
    """The chart of a tree: `colours` of its classes, the `lines` in a node, what it tells when pointed at.

    `strength` is how much of its decision's colour a node has, and `wide` stretches the boxes.
    """
    places = _places(nodes, _LEAF * wide)
    width = _LEAF * wide * sum(node.condition is None for node in nodes)
    high = _LEVEL * (max(node.depth for node in nodes) + 1)
    x_scale, y_scale = alt.Scale(domain=[0, width]), alt.Scale(domain=[high, 0])

    def at(field: str, scale: alt.Scale) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "scale": scale, "axis": None}

    def layer(rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.InlineData(values=rows)).encode(
            x=alt.X(**at("x", x_scale)), y=alt.Y(**at("y", y_scale))
        )

    rows = []
    reported: dict[str, str | int | float] = {}
    for node in nodes:
        x, y = places[node.number]
        half = _WIDTH * wide / 2
        box = {"x": x - half, "x2": x + half, "y": y - _HEIGHT / 2, "y2": y + _HEIGHT / 2}
        reported = {"condition": node.condition or "leaf", **tooltip(node)}
        rows.append(
            {**box, "fill": theme.tint(colours[node.decision], STRONGEST * strength(node)), **reported}
        )
    kinds = {name: "N" if isinstance(value, str) else "Q" for name, value in reported.items()}
    edges = layer(_edges(nodes, places)).mark_rule(color=_LINE, strokeWidth=1).encode(x2="x2:Q", y2="y2:Q")
    boxes = (
        layer(rows)
        .mark_rect(stroke=_LINE, strokeWidth=0.7, cornerRadius=4)
        .encode(
            x2="x2:Q",
            y2="y2:Q",
            color=alt.Color("fill:N", scale=None),
            tooltip=[alt.Tooltip(f"{name}:{kind}") for name, kind in kinds.items()],
        )
    )
    texts = layer(_texts(nodes, places, lines)).mark_text(fontSize=10, color=_INK).encode(text="text:N")
    return alt.layer(edges, boxes, texts).properties(width=width, height=high)


def _places(nodes: Sequence[Node], leaf: float) -> dict[int, tuple[float, float]]:
    """The middle of each node: leaves side by side, every other node between its children."""
    places: dict[int, tuple[float, float]] = {}
    leaves = 0

    def place(node: Node) -> float:
        nonlocal leaves
        if node.left is None or node.right is None:
            x = (leaves + 0.5) * leaf
            leaves += 1
        else:
            x = (place(nodes[node.left]) + place(nodes[node.right])) / 2
        places[node.number] = (x, (node.depth + 0.5) * _LEVEL)
        return x

    place(nodes[0])
    return places


def _edges(nodes: Sequence[Node], places: Mapping[int, tuple[float, float]]) -> list[dict[str, Any]]:
    rows = []
    for node in nodes:
        for child in (node.left, node.right):
            if child is not None:
                (x, y), (to_x, to_y) = places[node.number], places[child]
                rows.append({"x": x, "y": y + _HEIGHT / 2, "x2": to_x, "y2": to_y - _HEIGHT / 2})
    return rows


def _texts(
    nodes: Sequence[Node],
    places: Mapping[int, tuple[float, float]],
    lines: Callable[[Node], list[str]],
) -> list[dict[str, Any]]:
    rows = []
    for node in nodes:
        message = lines(node)
        x, y = places[node.number]
        top = y - (len(message) - 1) / 2 * _LINE_HEIGHT
        rows += [{"x": x, "y": top + at * _LINE_HEIGHT, "text": line} for at, line in enumerate(message)]
    return rows
