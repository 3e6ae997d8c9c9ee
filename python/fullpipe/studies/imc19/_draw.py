"""A decision tree drawn as in figure 4 of the paper.

Each node shows its condition, the number of training paths that reach it, how many of them BBR and CUBIC
win, and the decision. The left branch is for a true condition. A node has the colour of the controller that
it chooses; purer nodes are darker.
"""

from typing import Any

import altair as alt

from fullpipe.results.tree import Node
from fullpipe.show.figures import theme
from fullpipe.show.figures import tree as trees
from fullpipe.studies.imc19._tree import CLASSES, Tree
from fullpipe.system.words import counted

_COLOUR = {CLASSES[0]: theme.CONTROLLER["bbr1"], CLASSES[1]: theme.CONTROLLER["cubic"]}


def draw(tree: Tree | None, title: str) -> Any:
    """The chart of a tree; without a tree, a sentence."""
    if tree is None:
        said = alt.InlineData(values=[{"text": "too few paths for a tree"}])
        return alt.Chart(said).mark_text().encode(text="text:N").properties(title=title)
    drawn = trees.draw(tree.nodes, _COLOUR, _lines, _tooltip)
    return drawn.properties(title=alt.TitleParams(title, fontSize=12))


def _lines(node: Node) -> list[str]:
    numbers = ", ".join(map(str, node.counts.values()))
    lines = [counted(node.paths, "path"), f"[{numbers}]", node.decision]
    return lines if node.condition is None else [node.condition, *lines]


def _tooltip(node: Node) -> dict[str, str | int | float]:
    return {"decision": node.decision, **node.counts, "gini": round(node.gini, 3)}
