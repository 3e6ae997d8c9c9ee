"""The decision tree of figure 4: scikit-learn's DecisionTreeClassifier over paths, and its rules as text.

The paper names the classifier, the split (three quarters for training) and five-fold cross-validation. It
names neither the features nor a depth limit. Here the features are the configured values and the BDP, which
the paper mentions when it explains the tree; the depth is limited to what can be drawn.
"""

import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import polars as pl

from fullpipe.results import tree as trees
from fullpipe.results.tree import SEED, Node
from fullpipe.system.words import counted

# Columns of a table of paths, and their names in rules.
FEATURES = {
    "rtt_ms": ("RTT", "ms"),
    "rate_mbps": ("rate", "Mbit/s"),
    "buffer_kb": ("buffer", "KB"),
    "bdp_kb": ("BDP", "KB"),
}
CLASSES = ("BBR", "CUBIC")
DEPTH = 4
FOLDS = 5
_HELD_OUT = 0.25


@dataclass(frozen=True)
class Tree:
    """A fitted tree and its accuracies, as shares of paths."""

    nodes: Sequence[Node]
    folds: Sequence[float]  # Each fold of the cross-validation, over all paths.
    folds_unlimited: Sequence[float]  # The same without a limit of depth.
    held_out: float  # On the paths that were not used to train the drawn tree.
    majority: float  # Accuracy of always choosing the more frequent winner.
    decisions: Sequence[str]  # For every path, in the order of the table.

    @property
    def mean(self) -> float:
        """Mean over the folds."""
        return statistics.fmean(self.folds)

    @property
    def median(self) -> float:
        """Median over the folds."""
        return statistics.median(self.folds)

    def about(self) -> dict[str, Any]:
        """All values, for JSON."""
        return {
            "mean": self.mean,
            "median": self.median,
            **{name: value for name, value in asdict(self).items() if name not in ("nodes", "decisions")},
            "nodes": [_about(node) for node in self.nodes],
        }

    def rules(self) -> str:
        """The tree as indented rules."""
        return trees.rules(self.nodes, _decided)


def _about(node: Node) -> dict[str, Any]:
    values = {name: value for name, value in asdict(node).items() if name not in ("counts", "paths")}
    counts = {name.lower(): count for name, count in node.counts.items()}
    return {**values, "gini": node.gini, **counts, "decision": node.decision}


def _decided(node: Node) -> str:
    return f"use {node.decision} ({max(node.counts.values())} of {counted(node.paths, 'path')})"


def fit(paths: pl.DataFrame) -> Tree | None:
    """Fits a tree to a table of paths with the features and `bbr_wins`; None if a class is too rare."""
    # Imported here because it takes a second.
    from sklearn.model_selection import StratifiedKFold, cross_val_score, train_test_split
    from sklearn.tree import DecisionTreeClassifier

    wins = int(paths["bbr_wins"].sum())
    if min(wins, paths.height - wins) < FOLDS:
        return None
    # Classes are numbered so that BBR's count comes first, as in the paper.
    inputs, winners = paths.select(*FEATURES).to_numpy(), (~paths["bbr_wins"]).cast(pl.Int64).to_numpy()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=SEED)

    def accuracies(depth: int | None) -> tuple[float, ...]:
        classifier = DecisionTreeClassifier(max_depth=depth, random_state=SEED)
        return tuple(float(one) for one in cross_val_score(classifier, inputs, winners, cv=folds))

    train, test, train_winners, test_winners = train_test_split(
        inputs, winners, test_size=_HELD_OUT, stratify=winners, random_state=SEED
    )
    fitted = DecisionTreeClassifier(max_depth=DEPTH, random_state=SEED).fit(train, train_winners)
    return Tree(
        nodes=_nodes(fitted.tree_),
        folds=accuracies(DEPTH),
        folds_unlimited=accuracies(None),
        held_out=float(fitted.score(test, test_winners)),
        majority=max(wins, paths.height - wins) / paths.height,
        decisions=[CLASSES[int(one)] for one in fitted.predict(inputs)],
    )


def _nodes(tree: Any) -> list[Node]:
    depths = {0: 0}
    nodes = []
    for number in range(tree.node_count):  # Parents come before their children.
        left, right = int(tree.children_left[number]), int(tree.children_right[number])
        leaf = left < 0
        if not leaf:
            depths[left] = depths[right] = depths[number] + 1
        # Counts from the shares that scikit-learn stores.
        paths = int(tree.n_node_samples[number])
        counts = [round(float(part) * paths) for part in tree.value[number][0]]
        nodes.append(
            Node(
                number=number,
                depth=depths[number],
                condition=None if leaf else _condition(int(tree.feature[number]), tree.threshold[number]),
                left=None if leaf else left,
                right=None if leaf else right,
                paths=paths,
                counts=dict(zip(CLASSES, counts, strict=True)),
            )
        )
    return nodes


def _condition(feature: int, threshold: float) -> str:
    name, unit = list(FEATURES.values())[feature]
    if unit == "KB" and threshold >= 1000:
        return f"{name} ≤ {threshold / 1e3:.3g} MB"
    return f"{name} ≤ {threshold:.3g} {unit}"
