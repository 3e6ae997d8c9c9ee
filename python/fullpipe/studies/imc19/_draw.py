"""A decision tree drawn as in figure 4 of the paper.

Each node shows its condition, the number of training paths that reach it, how many of them BBR and CUBIC
win, and the decision. The left branch is for a true condition. A node has the colour of the controller that
it chooses; purer nodes are darker.
"""

from typing import Any

import altair as alt

from fullpipe.show.figures import theme
from fullpipe.studies.imc19._tree import CLASSES, Node, Tree
from fullpipe.system.words import counted

_COLOUR = {CLASSES[0]: theme.CONTROLLER["bbr1"], CLASSES[1]: theme.CONTROLLER["cubic"]}
# A node keeps its colour on a dark page, so its text must keep its own.
_INK, _LINE = "#1b1b1b", "#79818d"
# The share of a controller's colour in the purest node; text must be readable on it.
_STRONGEST = 0.65
# In points: the width of a leaf, the height of a level, and the size of a node's box.
_LEAF, _LEVEL, _WIDTH, _HEIGHT = 104, 92, 98, 60
_LINE_HEIGHT = 13


def draw(tree: Tree | None, title: str) -> Any:
    """The chart of a tree; without a tree, a sentence."""
    if tree is None:
        said = alt.InlineData(values=[{"text": "too few paths for a tree"}])
        return alt.Chart(said).mark_text().encode(text="text:N").properties(title=title)
    places = _places(tree)
    wide = _LEAF * sum(node.condition is None for node in tree.nodes)
    high = _LEVEL * (max(node.depth for node in tree.nodes) + 1)
    x_scale, y_scale = alt.Scale(domain=[0, wide]), alt.Scale(domain=[high, 0])

    def at(field: str, scale: alt.Scale) -> dict[str, Any]:
        return {"field": field, "type": "quantitative", "scale": scale, "axis": None}

    def layer(rows: list[dict[str, Any]]) -> Any:
        return alt.Chart(alt.InlineData(values=rows)).encode(
            x=alt.X(**at("x", x_scale)), y=alt.Y(**at("y", y_scale))
        )

    edges = layer(_edges(tree, places)).mark_rule(color=_LINE, strokeWidth=1).encode(x2="x2:Q", y2="y2:Q")
    boxes = (
        layer(_boxes(tree, places))
        .mark_rect(stroke=_LINE, strokeWidth=0.7, cornerRadius=4)
        .encode(
            x2="x2:Q",
            y2="y2:Q",
            color=alt.Color("fill:N", scale=None),
            tooltip=["condition:N", "decision:N", "BBR:Q", "CUBIC:Q", "gini:Q"],
        )
    )
    texts = layer(_texts(tree, places)).mark_text(fontSize=10, color=_INK).encode(text="text:N")
    return alt.layer(edges, boxes, texts).properties(
        width=wide, height=high, title=alt.TitleParams(title, fontSize=12)
    )


def _places(tree: Tree) -> dict[int, tuple[float, float]]:
    """The middle of each node: leaves side by side, every other node between its children."""
    places: dict[int, tuple[float, float]] = {}
    leaves = 0

    def place(node: Node) -> float:
        nonlocal leaves
        if node.left is None or node.right is None:
            x = (leaves + 0.5) * _LEAF
            leaves += 1
        else:
            x = (place(tree.nodes[node.left]) + place(tree.nodes[node.right])) / 2
        places[node.number] = (x, (node.depth + 0.5) * _LEVEL)
        return x

    place(tree.nodes[0])
    return places


def _edges(tree: Tree, places: dict[int, tuple[float, float]]) -> list[dict[str, Any]]:
    rows = []
    for node in tree.nodes:
        for child in (node.left, node.right):
            if child is not None:
                (x, y), (to_x, to_y) = places[node.number], places[child]
                rows.append({"x": x, "y": y + _HEIGHT / 2, "x2": to_x, "y2": to_y - _HEIGHT / 2})
    return rows


def _boxes(tree: Tree, places: dict[int, tuple[float, float]]) -> list[dict[str, Any]]:
    rows = []
    for node in tree.nodes:
        x, y = places[node.number]
        rows.append(
            {
                "x": x - _WIDTH / 2,
                "x2": x + _WIDTH / 2,
                "y": y - _HEIGHT / 2,
                "y2": y + _HEIGHT / 2,
                "fill": _shade(node),
                "condition": node.condition or "leaf",
                "decision": node.decision,
                "BBR": node.bbr,
                "CUBIC": node.cubic,
                "gini": round(node.gini, 3),
            }
        )
    return rows


def _texts(tree: Tree, places: dict[int, tuple[float, float]]) -> list[dict[str, Any]]:
    rows = []
    for node in tree.nodes:
        lines = [counted(node.bbr + node.cubic, "path"), f"[{node.bbr}, {node.cubic}]", node.decision]
        if node.condition is not None:
            lines.insert(0, node.condition)
        x, y = places[node.number]
        top = y - (len(lines) - 1) / 2 * _LINE_HEIGHT
        rows += [{"x": x, "y": top + at * _LINE_HEIGHT, "text": line} for at, line in enumerate(lines)]
    return rows


def _shade(node: Node) -> str:
    """White for a Gini impurity of one half, the strongest colour for an impurity of zero."""
    return theme.tint(_COLOUR[node.decision], _STRONGEST * (1 - 2 * node.gini))
