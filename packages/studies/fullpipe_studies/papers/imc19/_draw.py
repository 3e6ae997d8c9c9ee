"""The figure of figure 4: the decision tree as in the paper, accuracies by protocol, and the shared paths.

Each node shows its condition, how many of its training paths BBR and CUBIC win, and the decision. The left
branch is for a true condition. A node has the colour of the controller that it chooses; purer nodes are
darker.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from fullpipe.measures.decision_tree import Node
from fullpipe.report.figures import theme
from fullpipe_studies import charts, layers
from fullpipe_studies.later import alt
from fullpipe_studies.papers.imc19._tree import CLASSES, SHUFFLED, Protocol, Tree

_COLOUR = {CLASSES[0]: theme.CONTROLLER["bbr1"], CLASSES[1]: theme.CONTROLLER["cubic"]}
# A leaf's box in the tree's usual ones, so that eight leaves can be read in a gallery.
_WIDE = 0.7
WIDTH = 560


def draw(tree: Tree | None, title: str) -> Any:
    """The chart of a tree; without a tree, a sentence."""
    if tree is None:
        facts = alt.InlineData(values=[{"text": "too few paths for a tree"}])
        return alt.Chart(facts).mark_text().encode(text="text:N").properties(title=title)
    from fullpipe.report.figures import tree as trees  # It imports altair.

    drawn = trees.draw(tree.nodes, _COLOUR, _lines, _tooltip, wide=_WIDE)
    return drawn.properties(title=alt.TitleParams(title, fontSize=12))


def accuracies(found: Mapping[str, Sequence[Protocol]], paper: Mapping[str, float]) -> Any:
    """A dot for each protocol of cross-validation, and the paper's accuracy, for each table of paths."""
    rows = [
        {
            "table": table,
            "accuracy": 100 * one.mean,
            "kind": SHUFFLED if one.order == SHUFFLED else "in the order of the rows",
            "features": one.features,
            "depth": one.depth or "unlimited",
            "order": one.order,
        }
        for table, protocols in found.items()
        for one in protocols
    ]
    y = alt.Y("table:N", title=None, sort=list(found), axis=alt.Axis(labelLimit=200))
    x = alt.X("accuracy:Q", title="mean accuracy over five folds, %", scale=alt.Scale(zero=False))
    folds = alt.Scale(domain=[SHUFFLED, "in the order of the rows"], range=[theme.SPARE[0], theme.QUIET])
    legend = alt.Legend(orient="bottom", title=None, labelLimit=300)
    dots = (
        alt.Chart(alt.InlineData(values=rows))
        .mark_point(filled=True, size=36, opacity=0.6)
        .encode(
            x=x,
            y=y,
            yOffset=alt.YOffset("kind:N", sort=[SHUFFLED]),
            color=alt.Color("kind:N", scale=folds, legend=legend),
            tooltip=["accuracy:Q", "features:N", "depth:N", "order:N"],
        )
    )
    theirs = [{"table": table, "accuracy": value} for table, value in paper.items() if table in found]
    marks = (
        alt.Chart(alt.InlineData(values=theirs))
        .mark_tick(thickness=3, size=36, color=theme.INK)
        .encode(x=x, y=y)
    )
    title = alt.TitleParams("Accuracy by protocol of cross-validation; black: the paper's", fontSize=12)
    return alt.layer(dots, marks).properties(width=WIDTH - 130, height=alt.Step(24), title=title)


def shared(frame: pl.DataFrame, worlds: Mapping[str, str]) -> Any:
    """The gain on the paths that all worlds have run, against the buffer in BDP: a colour for each world."""
    scale = alt.Scale(domain=list(worlds), range=list(worlds.values()))
    legend = alt.Legend(orient="bottom", title=None)
    dots = (
        alt.Chart(charts.values(frame))
        .mark_point(size=44, strokeWidth=1.5)
        .encode(
            x=alt.X("buffer_bdp:Q", title="buffer, BDP", scale=alt.Scale(type="log")),
            y=alt.Y(
                "gain_pct:Q",
                title="BBR's gain, %",
                scale=alt.Scale(type="symlog", constant=3),
                axis=alt.Axis(values=[-30, -10, -3, 0, 3, 10, 30, 100, 300]),
            ),
            color=alt.Color("title:N", scale=scale, legend=legend),
            shape=alt.Shape("title:N", scale=alt.Scale(domain=list(worlds)), legend=legend),
            tooltip=["rate_mbps:Q", "rtt_ms:Q", "buffer_kb:Q", "gain_pct:Q"],
        )
    )
    title = alt.TitleParams("Paths that every world can run: gain over CUBIC", fontSize=12)
    return alt.layer(layers.level(0), dots).properties(width=WIDTH - 60, height=150, title=title)


def _lines(node: Node) -> list[str]:
    counts = f"[{', '.join(map(str, node.counts.values()))}]"
    if node.condition is None:
        return [node.decision, counts]
    name, _, limit = node.condition.partition(" ≤ ")
    return [name, f"≤ {limit}", counts, node.decision]


def _tooltip(node: Node) -> dict[str, str | int | float]:
    return {"decision": node.decision, **node.counts, "gini": round(node.gini, 3)}
