"""The short form of a decision map: a few conditions that say what a path should run.

A tree of scikit-learn is fitted to the map's points. A point without a clear winner counts in equal parts for
each of its leaders; where all candidates lead, any answer is right, and the tree has nothing to learn. The
tree is then held against the simulation on random paths between the map's points. Its answer is right on a
path if nobody is clearly better there.
"""

import math
import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fullpipe.advisor.question import QUANTITIES, Numbers, Question, shown
from fullpipe.advisor.ranking import Ranking
from fullpipe.errors import stated
from fullpipe.measures.decision_tree import INSTALL, SEED, Node, rules
from fullpipe.measures.statistics import share_interval
from fullpipe.text import counted

# Paths that neither the map nor the tree has seen.
UNSEEN = 100
# What can be read: no more leaves and levels, and no leaf for less than this share of the points.
_LEAVES, _DEPTH, _LEAST = 8, 4, 0.02
# A condition has to make the tree right on this share of the points more.
_WORTH = 0.01
# Features whose logarithms are correlated like this divide the points in the same ways.
_SAME = 0.9999
# Values that agree in this many digits are equal: scenarios are in whole bits, bytes and microseconds.
_DIGITS = 3


@dataclass(frozen=True)
class Feature:
    """A quantity that conditions may name."""

    name: str
    of: Callable[[Numbers], float]
    shown: Callable[[float, int], str]

    def seen(self, path: Numbers) -> float:
        """Its value, rounded, so that nothing is learnt from rounding elsewhere."""
        return float(f"{self.of(path):.{_DIGITS}g}")


def _given(quantity: str) -> Feature:
    return Feature(
        {"rtt": "RTT"}.get(quantity, quantity),
        lambda path: path.of(quantity),
        lambda value, digits: shown(quantity, value, digits),
    )


# In this order; of two that divide the points in the same ways, the first is used.
FEATURES = (
    *map(_given, QUANTITIES),
    Feature("BDP", lambda path: path.bdp_bytes, lambda value, digits: shown("buffer", value, digits)),
    Feature(
        "buffer",
        lambda path: path.buffer_bytes / path.bdp_bytes,
        lambda value, digits: f"{float(f'{value:.{digits}g}'):g} BDP",
    ),
)


@dataclass(frozen=True)
class Try:
    """The tree's answer on a path that it has not seen."""

    path: Numbers
    ranking: Ranking
    answer: str

    @property
    def right(self) -> bool:
        """Whether nobody is clearly better."""
        return self.answer in self.ranking.leaders

    def shortfall(self, candidate: str) -> float:
        """The share of the best score that a candidate lacks there."""
        best = self.ranking.places[0].score.mean
        return self.ranking.place(candidate).behind.mean / best if best else 0.0


@dataclass(frozen=True)
class Tree:
    """A fitted tree, and how it does on paths that it has not seen."""

    nodes: Sequence[Node]
    splits: Mapping[int, tuple[Feature, float]]  # The condition of each node that has one.
    tries: tuple[Try, ...] = ()

    def decide(self, path: Numbers) -> str:
        """What a path should run."""
        node = self.nodes[0]
        while node.left is not None and node.right is not None:
            feature, threshold = self.splits[node.number]
            node = self.nodes[node.left if feature.of(path) <= threshold else node.right]
        return node.decision

    @property
    def right(self) -> int:
        """On how many unseen paths its answer is right."""
        return sum(one.right for one in self.tries)

    @property
    def constant(self) -> tuple[str, int]:
        """The candidate that is right most often on the same paths if it is always chosen, and how often."""
        names = list(self.nodes[0].counts)
        often = {name: sum(name in one.ranking.leaders for one in self.tries) for name in names}
        best = max(names, key=lambda name: often[name])
        return best, often[best]

    @property
    def lost(self) -> list[float]:
        """Where it errs, the share of the best score that its answer lacks."""
        return [one.shortfall(one.answer) for one in self.tries if not one.right]

    def rules(self) -> str:
        """The tree as indented rules."""
        return rules(self.nodes, decided)

    def __str__(self) -> str:
        return f"{self._accuracy()} {self._cost()}"

    def _accuracy(self) -> str:
        count = len(self.tries)
        low, high = share_interval(self.right, count)
        name, often = self.constant
        return (
            f"The tree is right on {self.right} of {counted(count, 'random path')} between the map's points "
            f"({100 * self.right / count:.0f} %, 95 % interval {100 * low:.0f} to {100 * high:.0f} %); "
            f"{name} everywhere, the best single answer, on {100 * often / count:.0f} %."
        )

    def _cost(self) -> str:
        name, _ = self.constant
        mean = statistics.fmean(one.shortfall(one.answer) for one in self.tries)
        alone = statistics.fmean(one.shortfall(name) for one in self.tries)
        lost = self.lost
        errs = ""
        if len(lost) == 1:
            errs = f"Where it errs, it loses {100 * lost[0]:.1f} % of the best score. "
        elif lost:
            errs = (
                f"Where it errs, it loses {100 * statistics.median(lost):.1f} % of the best score in the "
                f"median and {100 * max(lost):.1f} % at most. "
            )
        return f"{errs}Over all of them it loses {100 * mean:.1f} %, {name} everywhere {100 * alone:.1f} %."

    def to_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        name, often = self.constant
        count = len(self.tries)
        return {
            "answer": str(self),
            "rules": self.rules(),
            "nodes": [_about(node) for node in self.nodes],
            "unseen": {
                "paths": count,
                "right": self.right,
                "accuracy": self.right / count,
                "ci95": list(share_interval(self.right, count)),
                "constant": {"controller": name, "right": often, "accuracy": often / count},
                "tries": [
                    {
                        "rate_bps": one.path.rate_bps,
                        "rtt_ms": one.path.rtt_ms,
                        "buffer_bytes": one.path.buffer_bytes,
                        "loss": one.path.loss,
                        "jitter_ms": one.path.of("jitter"),
                        "answer": one.answer,
                        "right": one.right,
                        "lacks": one.shortfall(one.answer),
                        "winner": one.ranking.winner,
                        "leaders": list(one.ranking.leaders),
                    }
                    for one in self.tries
                ],
            },
        }


def decided(node: Node) -> str:
    """What a leaf says."""
    return f"use {node.decision} ({_right(node)} of {counted(node.paths, 'path')})"


def _about(node: Node) -> dict[str, Any]:
    return {
        "number": node.number,
        "condition": node.condition,
        "left": node.left,
        "right": node.right,
        "paths": node.paths,
        "leads": dict(node.counts),
        "use": node.decision,
    }


def check() -> None:
    """Raises `ScenarioError` if scikit-learn is not installed."""
    try:
        import sklearn  # noqa: F401
    except ImportError:
        sentence = f"tree: it needs scikit-learn, which is not installed; install it: {INSTALL}"
        raise stated("tree", "true", sentence, "scikit-learn", INSTALL) from None


def unseen(question: Question, count: int) -> list[Question]:
    """Random paths of a question with ranges, evenly on their logarithmic scales; always the same ones."""
    drawn = random.Random(SEED)
    return [question.at([drawn.random() for _ in question.ranges]) for _ in range(count)]


def grow(seen: Sequence[tuple[Numbers, Ranking]], candidates: Sequence[str]) -> Tree:
    """The tree of these paths."""
    paths = [path for path, _ in seen]
    leaders = [set(ranking.leaders) for _, ranking in seen]
    often = {name: sum(name in leading for leading in leaders) for name in candidates}
    # Of candidates that lead equally often in a leaf, the one that leads most often everywhere is chosen.
    names = sorted(candidates, key=lambda name: -often[name])
    features = _telling(paths)
    inputs = [[math.log(feature.seen(path)) for feature in features] for path in paths]
    rows = [
        (at, names.index(name), 1 / len(leading))
        for at, leading in enumerate(leaders)
        if len(leading) < len(names)
        for name in sorted(leading)
    ]
    if not rows or not features:
        return Tree([_leaf(0, 0, leaders, range(len(paths)), names)], {})
    # Imported here because it takes a second.
    from sklearn.tree import DecisionTreeClassifier

    classifier = DecisionTreeClassifier(
        max_depth=_DEPTH, max_leaf_nodes=_LEAVES, min_weight_fraction_leaf=_LEAST, random_state=SEED
    )
    taken, classes, weights = zip(*rows, strict=True)
    found = classifier.fit([inputs[at] for at in taken], classes, sample_weight=weights).tree_
    nodes: list[Node] = []
    splits: dict[int, tuple[Feature, float]] = {}

    def build(number: int, depth: int, reached: Sequence[int]) -> int:
        """Appends the node and all below it; returns its number."""
        own = len(nodes)
        left, right = int(found.children_left[number]), int(found.children_right[number])
        nodes.append(_leaf(own, depth, leaders, reached, names))
        if left < 0:
            return own
        feature = features[int(found.feature[number])]
        threshold, words = _rounded(feature, math.exp(float(found.threshold[number])), paths)
        below = [at for at in reached if feature.seen(paths[at]) <= threshold]
        above = [at for at in reached if feature.seen(paths[at]) > threshold]
        first = build(left, depth + 1, below)
        second = build(right, depth + 1, above)
        leaves = [node for node in nodes[own + 1 :] if node.left is None]
        gained = sum(_right(leaf) for leaf in leaves) - _right(nodes[own])
        if gained < _WORTH * len(paths) * (len(leaves) - 1):
            del nodes[own + 1 :]
            return own
        splits[own] = (feature, threshold)
        node = nodes[own]
        nodes[own] = Node(own, depth, f"{feature.name} ≤ {words}", first, second, node.paths, node.counts)
        return own

    build(0, 0, range(len(paths)))
    return Tree(nodes, splits)


def _right(leaf: Node) -> int:
    """On how many of its paths a leaf is right."""
    return leaf.counts[leaf.decision]


def _leaf(
    number: int, depth: int, leaders: Sequence[set[str]], reached: Sequence[int], names: Sequence[str]
) -> Node:
    counts = {name: sum(name in leaders[at] for at in reached) for name in names}
    return Node(number, depth, None, None, None, len(reached), counts)


def _telling(paths: Sequence[Numbers]) -> list[Feature]:
    """The features in which the paths differ, without those that follow from one before."""
    reported: list[tuple[Feature, list[float]]] = []
    for feature in FEATURES:
        values = [feature.seen(path) for path in paths]
        if min(values) <= 0 or min(values) == max(values):
            continue
        logs = [math.log(feature.of(path)) for path in paths]
        if all(abs(statistics.correlation(logs, other)) < _SAME for _, other in reported):
            reported.append((feature, logs))
    return [feature for feature, _ in reported]


def _rounded(feature: Feature, threshold: float, paths: Sequence[Numbers]) -> tuple[float, str]:
    """The threshold with as few digits as divide the paths in the same way, and its words."""
    values = [feature.seen(path) for path in paths]
    below = sum(value <= threshold for value in values)
    for digits in range(2, 6):
        step = 10.0 ** (math.floor(math.log10(threshold)) + 1 - digits)
        for whole in (round(threshold / step), math.floor(threshold / step), math.ceil(threshold / step)):
            # Through text, because a product is not the nearest number to its digits.
            rounded = float(f"{whole * step:.{digits}g}")
            if sum(value <= rounded for value in values) == below:
                return rounded, feature.shown(rounded, digits)
    return threshold, feature.shown(threshold, 6)
