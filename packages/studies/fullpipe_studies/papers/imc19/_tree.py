"""The decision tree of figure 4: scikit-learn's DecisionTreeClassifier over paths, and its rules as text.

The paper names the classifier, the split (three quarters for training) and five-fold cross-validation. It
does not name the features, a limit of depth, whether the folds were shuffled, nor the order of the rows, on
which scikit-learn's default depends (`cross_val_score` with cv=5 cuts the rows in their order). So there is
an accuracy for each such protocol, and only their range can be compared with the paper's.

The drawn tree has the configured values and the BDP, which the paper mentions when it explains its tree; its
depth is limited to what can be read.
"""

import itertools
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

import polars as pl

from fullpipe.measures import decision_tree as trees
from fullpipe.measures.decision_tree import SEED, Node
from fullpipe.text import counted

# Columns of a table of paths, and their names in rules.
FEATURES = {
    "rtt_ms": ("RTT", "ms"),
    "rate_mbps": ("rate", "Mbit/s"),
    "buffer_kb": ("buffer", "KB"),
    "bdp_kb": ("BDP", "KB"),
}
CLASSES = ("BBR", "CUBIC")
DEPTH = 3
FOLDS = 5
_HELD_OUT = 0.25
# Protocols of cross-validation: what the paper leaves open.
_SETS = {
    "RTT, rate, buffer": ("rtt_ms", "rate_mbps", "buffer_kb"),
    "RTT, rate, buffer, BDP": ("rtt_ms", "rate_mbps", "buffer_kb", "bdp_kb"),
    "buffer, BDP": ("buffer_kb", "bdp_kb"),
}
_DEPTHS = (2, 3, 4, 6, None)
_ORDERS = tuple(itertools.permutations(("rtt_ms", "rate_mbps", "buffer_kb")))
SHUFFLED, _REPEATS = "shuffled", 5


@dataclass(frozen=True)
class Protocol:
    """A way to cross-validate, and its accuracies as shares of paths."""

    features: str
    depth: int | None
    # The columns by which the rows are sorted, the outermost first; or that they are shuffled.
    order: str
    mean: float
    median: float

    @property
    def name(self) -> str:
        """What distinguishes it from the others."""
        return f"{self.features}; depth {self.depth or 'unlimited'}; {self.order}"


@dataclass(frozen=True)
class Tree:
    """A fitted tree and its accuracies, as shares of paths."""

    rows: tuple[tuple[Any, ...], ...]  # The paths.
    nodes: Sequence[Node]
    held_out: float  # On the paths that were not used to train the drawn tree.
    majority: float  # Accuracy of always choosing the more frequent winner.
    decisions: Sequence[str]  # For every path, in the order of the table.

    @property
    def protocols(self) -> Sequence[Protocol]:
        """The accuracies by all protocols of cross-validation; they take a second."""
        return _protocols(self.rows)

    @property
    def mean(self) -> float:
        """Mean accuracy on unseen paths, with the drawn tree's depth and features and shuffled folds."""
        return _mean(self.rows)

    def about(self) -> dict[str, Any]:
        """All values, for JSON."""
        return {
            "mean": self.mean,
            "held_out": self.held_out,
            "majority": self.majority,
            "protocols": [asdict(one) for one in self.protocols],
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
    columns = ("rtt_ms", "rate_mbps", "buffer_kb", "bdp_kb", "bbr_wins")
    return _fit(tuple(paths.select(columns).rows()))


@cache
def _fit(rows: tuple[tuple[Any, ...], ...]) -> Tree | None:
    # Imported here because it takes a second.
    from sklearn.model_selection import train_test_split
    from sklearn.tree import DecisionTreeClassifier

    paths = _table(rows)
    wins = int(paths["bbr_wins"].sum())
    if min(wins, paths.height - wins) < FOLDS:
        return None
    inputs, winners = paths.select(*FEATURES).to_numpy(), _classes(paths)
    train, test, train_winners, test_winners = train_test_split(
        inputs, winners, test_size=_HELD_OUT, stratify=winners, random_state=SEED
    )
    fitted = DecisionTreeClassifier(max_depth=DEPTH, random_state=SEED).fit(train, train_winners)
    return Tree(
        rows=rows,
        nodes=_nodes(fitted.tree_),
        held_out=float(fitted.score(test, test_winners)),
        majority=max(wins, paths.height - wins) / paths.height,
        decisions=[CLASSES[int(one)] for one in fitted.predict(inputs)],
    )


def shuffled_accuracy(paths: pl.DataFrame) -> float:
    """Mean accuracy on unseen paths, with the drawn tree's depth and features; NaN if a class is too rare."""
    wins = int(paths["bbr_wins"].sum())
    if min(wins, paths.height - wins) < FOLDS:
        return float("nan")
    return statistics.fmean(_repeated(paths, tuple(FEATURES), DEPTH, repeats=1))


def _table(rows: tuple[tuple[Any, ...], ...]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=[*FEATURES, "bbr_wins"], orient="row")


@cache
def _mean(rows: tuple[tuple[Any, ...], ...]) -> float:
    return statistics.fmean(_repeated(_table(rows), tuple(FEATURES), DEPTH, repeats=_REPEATS))


@cache
def _protocols(rows: tuple[tuple[Any, ...], ...]) -> tuple[Protocol, ...]:
    return tuple(_by_protocol(_table(rows)))


def _by_protocol(paths: pl.DataFrame) -> Iterator[Protocol]:
    for (name, columns), depth in itertools.product(_SETS.items(), _DEPTHS):
        folds = _repeated(paths, columns, depth, repeats=_REPEATS)
        yield Protocol(name, depth, SHUFFLED, statistics.fmean(folds), statistics.median(folds))
        for order in _ORDERS:
            folds = _ordered(paths.sort(*order), columns, depth)
            facts = ", ".join(FEATURES[column][0] for column in order)
            yield Protocol(name, depth, facts, statistics.fmean(folds), statistics.median(folds))


def _repeated(paths: pl.DataFrame, columns: Sequence[str], depth: int | None, *, repeats: int) -> list[float]:
    """The accuracies of shuffled folds, all repetitions together."""
    from sklearn.model_selection import RepeatedStratifiedKFold

    folds = RepeatedStratifiedKFold(n_splits=FOLDS, n_repeats=repeats, random_state=SEED)
    return _folds(paths, columns, depth, folds)


def _ordered(paths: pl.DataFrame, columns: Sequence[str], depth: int | None) -> list[float]:
    """The accuracies of scikit-learn's default folds, which cut the rows in their order."""
    from sklearn.model_selection import StratifiedKFold

    return _folds(paths, columns, depth, StratifiedKFold(FOLDS))


def _folds(paths: pl.DataFrame, columns: Sequence[str], depth: int | None, folds: Any) -> list[float]:
    from sklearn.tree import DecisionTreeClassifier

    inputs, winners = paths.select(columns).to_numpy().astype("float32"), _classes(paths)
    found = []
    for train, test in folds.split(inputs, winners):
        classifier = DecisionTreeClassifier(max_depth=depth, random_state=SEED)
        decided = classifier.fit(inputs[train], winners[train]).tree_.predict(inputs[test]).argmax(axis=1)
        found.append(float((decided == winners[test]).mean()))
    return found


def _classes(paths: pl.DataFrame) -> Any:
    # Classes are numbered so that BBR's count comes first, as in the paper.
    return (~paths["bbr_wins"]).cast(pl.Int64).to_numpy()


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
